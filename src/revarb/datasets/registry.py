"""Registry of the benchmarks: records by name, split into training and test part, with their lags."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, overload

from revarb.data.series import Series
from revarb.datasets.artificial import generate_artificial
from revarb.datasets.recorded import RECORDED, Recorded
from revarb.datasets.two_tanks import generate_two_tanks
from revarb.errors import InputError, check_seed
from revarb.motion import cmu35
from revarb.runtime.downloads import PublicFile, fetch_file

Records = TypeVar("Records", Series, tuple[Series, ...])


@dataclass(frozen=True, eq=False)
class Split(Generic[Records]):
    """A benchmark, split into a training and a test part.

    Attributes
    ----------
    name : str
        Name of the benchmark.
    train, test : Series, or tuple of Series for "cmu35"
        The records; `RGP.fit` and `compare` take both kinds.
    lags : int
        Lags of the states and of the inputs: the paper's where it has the record.

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

    @property
    def skip(self) -> int:
        """First rows of a test record that are not scored: lags + input lags; only lags for the short "cmu35" ones."""
        return 2 * self.lags if isinstance(self.test, Series) else self.lags


@overload
def load(name: Literal["cmu35"], seed: int = 0) -> Split[tuple[Series, ...]]: ...  # pyright: ignore[reportOverlappingOverload]
@overload
def load(name: str, seed: int = 0) -> Split[Series]: ...
def load(name: str, seed: int = 0) -> Split:
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
        Training and test records, and the lags.

    Examples
    --------
    >>> import revarb
    >>> split = revarb.datasets.load("artificial", seed=0)
    >>> len(split.train), len(split.test)
    (300, 300)
    """
    if name in GENERATED:
        return Split(name, *GENERATED[name](check_seed(seed)), lags=5)
    if name == "cmu35":
        return Split(name, *cmu35.load_split(), lags=20)
    entry = _entry(name)
    train, test = entry.read(fetch(name))
    return Split(name, train, test, entry.lags)


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
    >>> revarb.datasets.names()[7:]
    ('ballbeam', 'robot_arm', 'heating', 'thermic', 'cstr', 'winding', 'cmu35')
    """
    return (*GENERATED, *RECORDED, "cmu35")


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
    return _OTHERS[name] if name in _OTHERS else _entry(name).about


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
        The file; for "cmu35", which has several, the skeleton.

    Examples
    --------
    >>> import revarb
    >>> revarb.datasets.fetch("artificial")
    Traceback (most recent call last):
        ...
    revarb.errors.InputError: 'artificial' is generated and has no file; the paper's record is 'artificial_recorded'
    """
    if name == "cmu35":
        return cmu35.fetch_files()
    entry = _entry(name)
    return fetch_file(PublicFile(entry.file, entry.source.folder, entry.source.address + entry.file, entry.sha256))


def _entry(name: str) -> Recorded:
    if name in GENERATED:
        recorded = "; the paper's record is 'artificial_recorded'" if name == "artificial" else ""
        raise InputError(f"{name!r} is generated and has no file{recorded}")
    if name not in RECORDED:
        raise InputError(f"unknown data set {name!r}; known are {', '.join(names())}")
    return RECORDED[name]


GENERATED = {"artificial": generate_artificial, "two_tanks": generate_two_tanks}

_OTHERS = {
    "artificial": "Narendra & Li 1996, generated with a seed: 300 noisy training samples, 300 noise-free test samples",
    "two_tanks": "two tanks with an overflow, generated with a seed: pump voltage to level, 400 + 400 noisy samples",
    "cmu35": "CMU motion capture, subject 35: four walks and four runs each to train on and to simulate, 57 channels",
}
