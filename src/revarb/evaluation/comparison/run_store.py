"""Finished runs of an unfinished comparison: files in the user's cache folder, from which it is resumed.

A file has the arrays of a run in safetensors, and all else as JSON. No pickle, no code runs.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.evaluation.comparison.runs import Run, Simulated
from revarb.models.base import ModelSpec
from revarb.models.container import checksum
from revarb.models.residuals import Residuals
from revarb.optim.journal import Checkpoint, discard_journals, remove_old, warn_about_unfinished
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import collect_versions

TYPES = {kind.__name__: kind for kind in (Run, Simulated, Trajectory, Residuals, Order)}
"""What a file may contain, beside arrays, texts, numbers, and lists and dictionaries of these."""


@dataclass(frozen=True)
class RunStore:
    """Keeps every finished run under a digest of its model, seed, records and versions.

    Runs that failed are tried again. A user's own model is fitted again too: nothing says what its fit depends on. If
    the folder cannot be written to, the comparison goes on without it.
    """

    files: Mapping[tuple[str, int], Path]  # by the name of the model and the seed
    resume: bool  # whether runs of an earlier call are used

    @classmethod
    def open(
        cls,
        models: Mapping[str, ModelSpec],
        seeds: Sequence[int],
        train: Sequence[Series],
        test: Sequence[Series],
        analysed: Sequence[int],
        resume: bool,
    ) -> "RunStore":
        """Open the store of this comparison; without `resume` it is emptied, and one that had runs is mentioned."""
        folder = user_cache_path("revarb") / "unfinished"
        remove_old(folder)
        data = _digest_records(train, test)
        files = {
            (name, seed): folder / f"{_digest_run(spec, seed, data, seed in analysed)}.run"
            for name, spec in models.items()
            for seed in seeds
            if _is_ours(spec)
        }
        store = cls(files, resume)
        known = store._list_files()
        warn_about_unfinished("comparison", bool(known), resume)
        for file in () if resume else known:  # now, whatever `keep_journals` says: they are not those of this call
            with suppress(OSError):
                file.unlink(missing_ok=True)
        return store

    def read(self) -> list[Run]:
        """The runs that an earlier call finished; none without `resume`."""
        found = {key: _read_run(file) for key, file in self.files.items()} if self.resume else {}
        return [replace(run, model=name, seed=seed) for (name, seed), run in found.items() if run is not None]

    def write(self, run: Run) -> None:
        """Keep a finished run."""
        file = self.files.get((run.model, run.seed))
        if file is not None and run.reason is None:
            with suppress(OSError, InputError, TypeError):  # also what JSON cannot hold
                file.parent.mkdir(parents=True, exist_ok=True)
                _write_run(file, run)

    def discard(self) -> None:
        """Remove all runs, now or at the end of `keep_journals`."""
        discard_journals([Checkpoint(file, resume=True, write_after=0.0) for file in self._list_files()])

    def _list_files(self) -> list[Path]:
        return [file for file in dict.fromkeys(self.files.values()) if os.access(file, os.F_OK)]


def _is_ours(spec: ModelSpec) -> bool:
    return type(spec).__module__.startswith("revarb.") and is_dataclass(spec)


def _digest_records(train: Sequence[Series], test: Sequence[Series]) -> str:
    first = train[0]
    about = [len(train), first.input_names, first.output_names, first.dt]
    data = hashlib.sha256(json.dumps(about).encode())
    for values in (values for record in (*train, *test) for values in (record.u, record.y)):
        data.update(f"{values.shape}".encode() + values.tobytes())
    return data.hexdigest()


def _digest_run(spec: Any, seed: int, data: str, analysed: bool) -> str:
    settings = {name: value for name, value in asdict(spec).items() if name != "jobs"}  # the result is the same
    about = [type(spec).__qualname__, settings, seed, data, analysed, collect_versions()]
    return hashlib.sha256(json.dumps(about, default=repr).encode()).hexdigest()


def _write_run(file: Path, run: Run) -> None:
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_pack(run, arrays))
    write_atomic(file, save(arrays, metadata={"run": text, "sha256": checksum(text, arrays)}))


def _read_run(file: Path) -> Run | None:
    # None where there is no such file, or it is damaged.
    try:
        with safe_open(file, framework="numpy") as content:
            metadata = content.metadata()
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 (not a dictionary)
        if metadata["sha256"] != checksum(metadata["run"], arrays):
            return None
        run = _unpack(json.loads(metadata["run"]), arrays)
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        return None
    return run if isinstance(run, Run) else None


def _pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    # The value for JSON, with its arrays in `arrays`.
    if isinstance(value, np.ndarray):
        name = str(len(arrays))
        arrays[name] = np.array(value, order="C")
        return {"array": name}
    if isinstance(value, np.generic):
        return value.item()
    if (kind := type(value).__name__) in TYPES:
        return {"type": kind, "fields": {name: _pack(getattr(value, name), arrays) for name in _list_fields(value)}}
    if isinstance(value, Mapping):
        return {"items": {name: _pack(each, arrays) for name, each in value.items()}}
    if isinstance(value, tuple):
        return [_pack(each, arrays) for each in value]
    return value


def _unpack(packed: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(packed, list):
        return tuple(_unpack(each, arrays) for each in packed)
    if not isinstance(packed, dict):
        return packed
    if "array" in packed:
        return arrays[packed["array"]]
    if "items" in packed:
        return {name: _unpack(each, arrays) for name, each in packed["items"].items()}
    return TYPES[packed["type"]](**{name: _unpack(each, arrays) for name, each in packed["fields"].items()})


def _list_fields(value: Any) -> Sequence[str]:
    return [item.name for item in fields(value)] if is_dataclass(value) else value._fields
