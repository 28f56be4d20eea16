"""Interface of the experiments: what `revarb reproduce` runs, prints and writes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from matplotlib.figure import Figure

from revarb.report.tables import Grid

Report = Callable[[str], None]


class Part(ABC):
    """Results of a finished part of an experiment, such as one data set. `rows` go into the results file."""

    rows: list[dict[str, Any]]

    @abstractmethod
    def grids(self) -> list[Grid]:
        """Tables to print."""

    def sentences(self) -> list[str]:
        """Sentences to print below the tables."""
        return []

    def figures(self) -> dict[str, Figure]:
        """Draw the figures, by the names of their files without ending."""
        return {}


AnyPart = TypeVar("AnyPart", bound=Part)


class Experiment(ABC, Generic[AnyPart]):
    """An experiment: its settings come from a TOML file, `run` carries it out part by part."""

    name: ClassVar[str]
    protocol: ClassVar[str]
    title: str

    @abstractmethod
    def count_steps(self, seeds: int) -> int:
        """Number of times that `run` calls `report`."""

    @abstractmethod
    def run(self, seeds: int, jobs: int = 1, report: Report = lambda text: None) -> Iterator[AnyPart]:
        """Run the experiment with seeds 0 to `seeds` - 1 in `jobs` processes; `report` gets a text after each step."""

    def notes(self, seeds: int) -> list[str]:
        """Sentences to print at the end: the protocol, and how to read the tables."""
        return [f"protocol: {self.protocol}; median (smallest – largest) of {seeds} seed(s)"]

    def page(self, parts: Sequence[AnyPart], meta: Mapping[str, Any]) -> str | None:
        """HTML page of the results; None where there is none. `meta` says how it was made."""
        return None
