"""Spoiled model files: `load` refuses them in one line, or the loaded model simulates in finite numbers."""

import json
import os
from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

import revarb
from fuzz import samples
from fuzz.harness import Property, attempt, check_path
from fuzz.junk import REAL, spoiled_json
from revarb.models.container import checksum

FILE = "m.rgp"
KINDS = ("model", "with_networks", "calibrated", "linear", "chosen", "state_space", "reduced_rank")
SNIPPETS = [b"\x00", b"\xff\xfe", b"{", b"]", b'"', b"9" * 30, b"../../x", b"[" * 3000, b"NaN", b"\\ud800"]


@cache
def sound(kind: str) -> tuple[bytes, str, dict[str, np.ndarray]]:
    """Content, JSON header and arrays of a sound file."""
    content = getattr(samples, kind)().save(FILE).read_bytes()
    container = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return content, container["__metadata__"]["revarb"], load_file(FILE)


def opens_or_is_refused(content: bytes) -> None:
    """Load this file, use the model, and check that no other file was written."""
    Path(FILE).write_bytes(content)
    model = attempt(lambda: revarb.load(FILE))
    if model is not None:
        _use(model)
    tree = [(len(folders), files) for _, folders, files in os.walk("../..")]
    assert tree == [(1, []), (1, []), (0, [FILE])], tree


def _use(model) -> None:
    assert repr(model) and (model.choice is None or (str(model.choice) and repr(model.choice)))
    steps = {"steps": samples.ROWS} if not model.input_names else {"u": samples.U}
    for method in model.methods:
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
def spoiled_header(draw) -> bytes:
    """The model's own header changed, and signed again."""
    _, header, arrays = sound(draw(kinds))
    return signed(json.dumps(draw(spoiled_json(header))), arrays)


@st.composite
def spoiled_arrays(draw) -> bytes:
    """Arrays changed, and signed again."""
    _, header, sound_arrays = sound(draw(kinds))
    arrays = dict(sound_arrays)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(arrays)))
        value = draw(st.sampled_from([*REAL, 1e-9, 30.0, 1e5, 1e10, 1e100, 1e150, 1e160, -1e5]))
        array = np.array(arrays[name], dtype=np.float64)
        match draw(st.sampled_from(["entry", "entry", "all", "scale", "shape", "dtype", "remove"])):
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
            case "remove":
                del arrays[name]
                continue
        arrays[name] = np.ascontiguousarray(array).reshape(np.shape(array))
    return signed(header, arrays)


PROPERTIES = {
    "model files: bytes": Property(opens_or_is_refused, spoiled_bytes(), 500),
    "model files: header, signed": Property(opens_or_is_refused, spoiled_header(), 700),
    "model files: arrays, signed": Property(opens_or_is_refused, spoiled_arrays(), 500),
}
