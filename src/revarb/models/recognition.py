"""Configuration of the recognition model and its training."""

from dataclasses import dataclass
from typing import ClassVar

from revarb.errors import check_integer, check_number
from revarb.models.configuration import Configuration, check_integers, check_word

MAX_UNITS = 100_000  # far more than can be trained: a typing error must not exhaust the memory


@dataclass(frozen=True, repr=False)
class Recognition(Configuration):
    """Configuration of a recognition model and its training.

    Parameters
    ----------
    hidden : tuple of int
        Units of the tanh layers of every network, from its input to its output.
    variance : str
        "free": one variance per latent state; "shared": one per layer, so that no parameter grows with N.
    start : str
        "output-error": the networks are first trained to simulate y; "random": not trained first, as in the paper;
        "free-form": they are first trained to follow the latent path of a fit without networks.
    starts : int
        Number of networks that are drawn; all have the first round, the one with the best bound has the others.
    start_steps, start_rate, weight_decay : int, float, float
        Steps of Adam for the start, their learning rate and penalty on squared weights.
    rounds : tuple of int
        Steps of Adam on the bound; every round begins with new inducing inputs along the latent paths.
    learning_rate : float
        Of Adam on the bound.
    clip : float
        Largest norm of a gradient, per training row.

    Examples
    --------
    >>> import revarb
    >>> revarb.Recognition(hidden=(50, 20)).steps
    3500
    """

    _prefix: ClassVar[str] = "recognition."

    hidden: tuple[int, ...] = (50,)
    variance: str = "free"
    start: str = "output-error"
    starts: int = 4
    start_steps: int = 500
    start_rate: float = 5e-3
    weight_decay: float = 1e-4
    rounds: tuple[int, ...] = (500, 500, 1000)
    learning_rate: float = 2e-3
    clip: float = 10.0

    @property
    def steps(self) -> int:
        """Total number of steps of Adam on the bound."""
        return self.starts * self.rounds[0] + sum(self.rounds[1:])

    def __post_init__(self):
        self._check(("hidden",), check_integers, least=1, most=MAX_UNITS)
        self._check(("rounds",), check_integers, least=1)
        self._check(("starts", "start_steps"), check_integer, least=1)
        self._check(("start_rate", "learning_rate", "clip"), check_number, above=0.0)
        self._check(("weight_decay",), check_number, least=0.0)
        self._check(("variance",), check_word, ("free", "shared"))
        self._check(("start",), check_word, ("output-error", "random", "free-form"))
