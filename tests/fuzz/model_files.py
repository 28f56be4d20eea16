"""Spoiled model files: `load` refuses them in one line, or the loaded model simulates in finite numbers."""

import json
import os
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

import revarb
from fuzz import samples
from fuzz.harness import Property, attempt, check_path
from fuzz.junk import NAMES, REAL, plain, spoiled_json
from revarb.models.model_file import checksum

FILE = "m.rgp"
KINDS = ("model", "with_networks", "ensemble", "calibrated", "linear", "chosen", "state_space", "reduced_rank")
SNIPPETS = [b"\x00", b"\xff\xfe", b"{", b"]", b'"', b"9" * 30, b"../../x", b"[" * 3000, b"NaN", b"\\ud800"]


@cache
def sound(kind: str) -> tuple[bytes, str, dict[str, np.ndarray]]:
    """Content, JSON header and arrays of a sound file."""
    content = getattr(samples, kind)().save(FILE).read_bytes()
    container = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return content, container["__metadata__"]["revarb"], load_file(FILE)


def opens_or_is_refused(content: bytes, methods: Sequence[str] | None = None) -> bool:
    """Load this file, use the model, and check that no other file was written."""
    Path(FILE).write_bytes(content)
    model = attempt(lambda: revarb.load(FILE))
    if model is not None:
        _use(model, model.methods if methods is None else methods)
    tree = [(len(folders), files) for _, folders, files in os.walk("../..")]
    assert tree == [(1, []), (1, []), (0, [FILE])], tree
    return model is not None


def _use(model, methods: Sequence[str]) -> None:
    assert repr(model) and (model.choice is None or (str(model.choice) and repr(model.choice)))
    steps = {"steps": samples.ROWS} if not model.input_names else {"u": samples.U}
    for method in methods:
        for start in ("cold", "continue"):
            check_path(attempt(lambda how=(method, start): model.simulate(**steps, method=how[0], start=how[1])))


def signed(header: str, arrays: dict[str, np.ndarray]) -> bytes:
    """A file whose checksum is right, whatever is in it."""
    return save(arrays, metadata={"revarb": header, "sha256": checksum(header, arrays)})


kinds = st.sampled_from(KINDS)


@st.composite
def spoiled_bytes(draw) -> bytes:
    """Bits flipped, bytes cut off, put in, taken out or swapped."""
    content = bytearray(sound(draw(kinds))[0])
    size = len(content)
    # Half of all damage near the front, where the structure is.
    places = st.integers(0, 400) | st.integers(0, size - 1)
    for _ in range(draw(st.integers(1, 3))):
        place, length = draw(places), draw(st.integers(1, 40))
        match draw(st.sampled_from(["flip", "cut", "insert", "remove", "swap", "length"])):
            case "flip":
                content[min(place, len(content) - 1)] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del content[max(place, 1) :]
            case "insert":
                content[place:place] = draw(st.sampled_from(SNIPPETS) | st.binary(min_size=1, max_size=9))
            case "remove":
                del content[place + 1 : place + 1 + length]
            case "swap":
                other = draw(places)
                one, two = content[place : place + length], content[other : other + length]
                content[place : place + length], content[other : other + length] = two, one
            case "length":
                content[:8] = draw(st.integers(0, 2**64 - 1) | st.integers(0, 3 * size)).to_bytes(8, "little")
    return bytes(content)


@st.composite
def spoiled_container(draw) -> bytes:
    """The table of arrays changed: names, types, shapes and places that the file claims."""
    content = sound(draw(kinds))[0]
    end = 8 + int.from_bytes(content[:8], "little")
    container = json.loads(content[8:end])
    entries = [name for name in container if name != "__metadata__"]
    for _ in range(draw(st.integers(1, 2))):
        entry = container[draw(st.sampled_from(entries))]
        what = draw(st.sampled_from(["dtype", "shape", "data_offsets"]))
        sizes = st.sampled_from([0, 1, 5, 8, 2**31, 2**40, 2**61, 2**63, 2**64 - 1, -1])
        types = ["F32", "F16", "BF16", "I64", "BOOL", "U8", "F8_E4M3", "C64", "F4", "F64 "]
        entry[what] = draw(
            st.sampled_from(types) if what == "dtype" else st.lists(sizes, min_size=0, max_size=3) | plain
        )
    text = json.dumps(container).encode()
    return len(text).to_bytes(8, "little") + text + content[end:]


@st.composite
def spoiled_header(draw) -> bytes:
    """The model's own header changed, and signed again."""
    _, header, arrays = sound(draw(kinds))
    return signed(json.dumps(draw(spoiled_json(header))), arrays)


@st.composite
def spoiled_part(draw, kind: str, *keys: str) -> bytes:
    """Only this part of the header changed."""
    _, header, arrays = sound(kind)
    tree = json.loads(header)
    part = draw(spoiled_json(json.dumps({key: tree.pop(key) for key in keys})))
    return signed(json.dumps(tree | part), arrays)


def choice_is_drawn_or_refused(content: bytes) -> bool:
    """The choice as text, table and figure, and written again."""
    Path(FILE).write_bytes(content)
    model = attempt(lambda: revarb.load(FILE))
    if model is None or model.choice is None:
        return False
    choice = model.choice
    assert str(choice) and choice.taken_candidate in choice.candidates
    assert np.isfinite(choice.plot().axes[0].get_xlim()).all()
    assert revarb.Choice.from_dict(json.loads(json.dumps(choice.to_dict(), allow_nan=False))) == choice
    return True


@st.composite
def spoiled_header_text(draw) -> bytes:
    """The text of the header changed in ways that no JSON writer produces."""
    _, header, arrays = sound(draw(kinds))
    place = draw(st.integers(0, len(header)))
    pieces = ["9" * 5000, "1e999", "-", "[" * 100_000, "NaN", "Infinity", '"\\ud800"', "\x00", "}", "{}", ",", '"', "0"]
    replaced = draw(st.integers(0, 12))
    return signed(header[:place] + draw(st.sampled_from(pieces)) + header[place + replaced :], arrays)


@st.composite
def spoiled_arrays(draw, kinds=kinds, prefix: str = "") -> bytes:
    """The arrays changed whose names begin so, and signed again."""
    _, header, sound_arrays = sound(draw(kinds))
    arrays = dict(sound_arrays)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(name for name in arrays if name.startswith(prefix))))
        value = draw(st.sampled_from([*REAL, 1e-9, 30.0, 1e5, 1e10, 1e100, 1e150, 1e160, -1e5]))
        array = np.array(arrays[name], dtype=np.float64)
        match draw(st.sampled_from(["entry", "entry", "all", "scale", "shape", "dtype", "name", "remove", "another"])):
            case "entry" if array.size:
                array.flat[draw(st.integers(0, array.size - 1))] = value
            case "all":
                array[...] = value
            case "scale":
                with np.errstate(all="ignore"):
                    array = array * value
            case "shape":
                flat = array.ravel()
                array = draw(st.sampled_from([array.T, array[None], flat, flat[:0], np.concatenate([flat, flat])]))
            case "dtype":
                with np.errstate(all="ignore"):
                    array = array.astype(draw(st.sampled_from(["f4", "f2", "i8", "u1", "?"])))
            case "name" | "remove" as action:
                del arrays[name]
                if action == "remove":
                    continue
                name = draw(st.sampled_from([item for item in NAMES if item != "\ud800"] + sorted(sound_arrays)))
            case _:
                array = arrays[draw(st.sampled_from(sorted(arrays)))]
        arrays[name] = np.ascontiguousarray(array).reshape(np.shape(array))
    return signed(header, arrays)


PROPERTIES = {
    "model files: bytes": Property(opens_or_is_refused, spoiled_bytes(), 500),
    "model files: table of arrays": Property(opens_or_is_refused, spoiled_container(), 300),
    "model files: header, signed": Property(opens_or_is_refused, spoiled_header(), 500),
    "model files: calibration and gaps, signed": Property(
        opens_or_is_refused, spoiled_part("calibrated", "calibration", "outputs_apart"), 100
    ),
    "model files: choice, signed": Property(choice_is_drawn_or_refused, spoiled_part("chosen", "choice"), 100),
    "model files: header text, signed": Property(opens_or_is_refused, spoiled_header_text(), 150),
    "model files: arrays, signed": Property(opens_or_is_refused, spoiled_arrays(), 500),
    "model files: arrays of networks, signed": Property(
        partial(opens_or_is_refused, methods=("network",)), spoiled_arrays(st.just("with_networks"), "networks."), 10
    ),  # a third of a second each
}
