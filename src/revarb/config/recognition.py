"""Configuration of the recognition model and its training."""

from dataclasses import dataclass

from revarb.config.plain_values import describe_changes
from revarb.errors import InputError, check_integer, check_number, describe

MAX_UNITS = 100_000  # far more than can be trained: a typing error must not exhaust the memory


@dataclass(frozen=True, repr=False)
class Recognition:
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

    def __repr__(self) -> str:
        return describe_changes(self)

    def __post_init__(self):
        for name, most in (("hidden", MAX_UNITS), ("rounds", None)):
            values = getattr(self, name)
            if not isinstance(values, tuple | list) or not values:
                raise InputError(f"recognition.{name} must be a list of whole numbers, received {describe(values)}")
            checked = tuple(check_integer(f"recognition.{name}", value, 1, most) for value in values)
            object.__setattr__(self, name, checked)
        for name in ("starts", "start_steps"):
            object.__setattr__(self, name, check_integer(f"recognition.{name}", getattr(self, name), least=1))
        for name in ("start_rate", "learning_rate", "clip"):
            object.__setattr__(self, name, check_number(f"recognition.{name}", getattr(self, name), above=0.0))
        object.__setattr__(self, "weight_decay", check_number("recognition.weight_decay", self.weight_decay, least=0.0))
        for name, known in (("variance", ("free", "shared")), ("start", ("output-error", "random", "free-form"))):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in known:
                raise InputError(f"recognition.{name} must be one of {known}, received {describe(value)}")
