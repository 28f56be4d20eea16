"""Benchmark records by name, split into training and test part: `revarb.datasets.load("drive")`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from revarb.data.series import Series
from revarb.datasets.benchmarks import GENERATED, RECORDED, Recorded
from revarb.errors import InputError, check_seed

__all__ = ["Split", "about", "fetch", "load", "names"]

Records = TypeVar("Records", Series, tuple[Series, ...])


@dataclass(frozen=True, eq=False)
class Split(Generic[Records]):
    """A benchmark, split into a training and a test part.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    train, test : Series, or tuple of Series
        The records; `RGP.fit` and `compare` take both kinds.
    lags : int
        Lags of the states and of the inputs: the paper's where it has the record.
    window : int
        First samples of a test record from which a run may start, `revarb.Window(u[:window], y[:window])`: of the
        records of nonlinearbenchmark.org; 0 of the others.
    test_names : tuple of str
        Names of several test records.

    Examples
    --------
    >>> import revarb
    >>> split = revarb.datasets.load("artificial")
    >>> split.name, split.lags, split.skip
    ('artificial', 5, 10)
    """

    name: str
    train: Records
    test: Records
    lags: int
    window: int = 0
    test_names: tuple[str, ...] = ()

    @property
    def skip(self) -> int:
        """First rows of a test record that are not scored.

        The window where there is one, else lags + input lags; only lags where several test records are short.
        """
        if self.window:
            return self.window
        return 2 * self.lags if isinstance(self.test, Series) else self.lags


def load(name: str, seed: int = 0) -> Split[Any]:
    """Load a benchmark by name; its files are downloaded on first use (see `fetch`).

    Parameters
    ----------
    name : str
        One of `names()`.
    seed : int
        Seed of the inputs and the noise of the generated "artificial" and "two_tanks"; the others ignore it.

    Returns
    -------
    Split
        Training and test records, and the lags. "ced" has two training records; "ced" and "silverbox" have several
        test records.

    Examples
    --------
    >>> import revarb
    >>> split = revarb.datasets.load("artificial", seed=0)
    >>> len(split.train), len(split.test)
    (300, 300)
    """
    if name in GENERATED:
        generate, _ = GENERATED[name]
        return Split(name, *generate(check_seed(seed)), lags=5)
    entry = _entry(name)
    return Split(name, *entry.load(), entry.lags, entry.window, entry.test_names)


def names() -> tuple[str, ...]:
    """Names of all benchmarks.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.names()[:7]
    ('artificial', 'two_tanks', 'artificial_recorded', 'drive', 'actuator', 'dryer', 'gas_furnace')
    >>> revarb.datasets.names()[7:13]
    ('ballbeam', 'robot_arm', 'heating', 'thermic', 'cstr', 'winding')
    >>> revarb.datasets.names()[13:]
    ('ced', 'cascaded_tanks', 'wiener_hammerstein', 'silverbox')
    """
    return (*GENERATED, *RECORDED)


def about(name: str) -> str:
    """Describe a benchmark in one line.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    str

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.about("drive")
    'coupled electric drives, voltage to belt speed (Wigren & Schoukens 2010)'
    """
    return GENERATED[name][1] if name in GENERATED else _entry(name).about


def fetch(name: str) -> Path:
    """Download the file of a recorded benchmark unless it is in the cache, and verify its checksum.

    With the environment variable REVARB_DATA set, the file is taken from that folder and nothing is downloaded.

    Parameters
    ----------
    name : str
        One of `names()`, but not a generated one.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.fetch("artificial")
    Traceback (most recent call last):
        ...
    revarb.errors.InputError: 'artificial' is generated and has no file; the paper's record is 'artificial_recorded'
    """
    return _entry(name).fetch()


def _entry(name: str) -> Recorded:
    if name in GENERATED:
        recorded = "; the paper's record is 'artificial_recorded'" if name == "artificial" else ""
        raise InputError(f"{name!r} is generated and has no file{recorded}")
    if name not in RECORDED:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(names())}")
    return RECORDED[name]
