"""Finished fits of an unfinished choice: model files in the user's cache folder, from which it is resumed."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from revarb.errors import InputError
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.model_file import load, save_model
from revarb.optim.journal import Checkpoint, discard_journals, remove_old, warn_about_unfinished
from revarb.runtime.files import write_atomic


@dataclass(frozen=True)
class ChoiceStore:
    """Keeps the models of every finished path of fits under a name that identifies records, seed and versions.

    If the folder cannot be written to, the choice goes on without it.
    """

    folder: Path
    digest: str
    resume: bool  # whether entries of an earlier call are used

    @classmethod
    def open(cls, digest: str, resume: bool) -> "ChoiceStore":
        """Open the store of this choice; without `resume` it is emptied, and one that had entries is mentioned."""
        store = cls(user_cache_path("revarb") / "unfinished", digest, resume)
        remove_old(store.folder)
        known = store._list_files()
        warn_about_unfinished("choice", bool(known), resume)
        for file in () if resume else known:  # now, whatever `keep_journals` says: they are not those of this call
            with suppress(OSError):
                file.unlink(missing_ok=True)
        return store

    def read(self, name: str) -> tuple[list[FittedRGP], float] | None:
        """The models of a path that an earlier call finished, and the seconds it took; None where it was not."""
        if not self.resume:
            return None
        try:
            entry = json.loads(self._locate(name, "json").read_text())
            models = [load(self._locate(name, f"{number}.rgp")) for number in range(entry["models"])]
            return models, float(entry["seconds"])
        except (OSError, ValueError, KeyError, TypeError, InputError):  # missing or damaged
            return None

    def write(self, name: str, models: Sequence[FittedRGP], seconds: float) -> None:
        """Keep the models of a finished path; the entry is complete when its last file is."""
        with suppress(OSError, InputError):
            self.folder.mkdir(parents=True, exist_ok=True)
            for number, model in enumerate(models):
                save_model(model, self._locate(name, f"{number}.rgp"))
            write_atomic(self._locate(name, "json"), json.dumps({"models": len(models), "seconds": seconds}).encode())

    def discard(self) -> None:
        """Remove all entries, now or at the end of `keep_journals`."""
        discard_journals([Checkpoint(file, resume=True, write_after=0.0) for file in self._list_files()])

    def _locate(self, name: str, ending: str) -> Path:
        return self.folder / f"{self.digest}.{name}.{ending}"

    def _list_files(self) -> list[Path]:
        with suppress(OSError):
            return sorted(self.folder.glob(f"{self.digest}.*"))
        return []
