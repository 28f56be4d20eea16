"""What `revarb.fit` tried, what it took and why; stored with the model. What a held-out error means, in a sentence."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from revarb.errors import InputError, check_integer, check_number
from revarb.models.summary import Summary, SummaryTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLD_RUNS = "cold runs"  # what held-out errors are errors of, unless no cold run follows the record
MAX_TEXT = 2000  # characters of a name or a sentence in a model file
FEWER_BLOCKS = ("dropped", "unfinished")  # notes of candidates that were scored on fewer blocks than the others
NO_BETTER, HARDLY_BETTER = 0.95, 0.6  # of the error of the training mean
WORSE = 1.05  # times the error of a linear model


@dataclass(frozen=True)
class Candidate:
    """A model that was tried, with its error on the held-out blocks.

    Attributes
    ----------
    name : str
        What it is, such as "linear part, 10 lags, w = 2".
    error : float or None
        Geometric mean over the held-out blocks of its error in units of the output's standard deviation; None where
        its runs diverged.
    standard_error : float or None
        Standard error of log(error / error of the best candidate) over the blocks; None for the best one, and
        where there is one block only.
    stretches : int
        Number of blocks it was scored on; fewer than the others where it was dropped early.
    seconds : float
        Time that its fits took, without the full fit of the one that is taken.
    note : str
        "taken": it is the model. "member": it is a member of the mixture that is. "unfinished": Ctrl-C or the time
        limit came before all of its folds were fitted. "unstable": its runs on other inputs leave the range of the
        record, or those on held-out blocks diverge. "failed": it could not be fitted. Empty for those that were
        compared and not taken. "dropped", in files of version 0.2: it was behind on the blocks of the first fold.
    weight : float
        Its weight in the mixture; 0 where it is no member of one.

    Examples
    --------
    >>> import revarb
    >>> revarb.Candidate("linear, 2 lags", 0.31, None, 12, 0.4, "taken").error
    0.31
    """

    name: str
    error: float | None
    standard_error: float | None
    stretches: int
    seconds: float
    note: str = ""
    weight: float = 0.0

    def __post_init__(self):
        check_number("weight", self.weight, least=0.0)
        for name in ("error", "standard_error"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=0.0)
        check_integer("stretches", self.stretches, least=0)
        check_number("seconds", self.seconds, least=0.0)
        _check_text(self.name, self.note)


@dataclass(frozen=True, repr=False)
class Choice:
    """The outcome of choosing a model on held-out blocks.

    Attributes
    ----------
    candidates : tuple of Candidate
        Everything that was tried, in the order in which it was tried, and the mixture of the best.
    taken : str
        Name of the candidate, or of the mixture, that is the model.
    sentence : str
        Why.
    scored_by : str
        What the errors are errors of: cold runs, predictions a few steps ahead where no cold run follows the record,
        or "nothing" where the records were too short to compare.
    linear_error, mean_error : float or None
        Held-out errors of the best linear candidate and of the training mean; None where they are not known.

    Examples
    --------
    >>> import revarb
    >>> linear = revarb.Candidate("linear, 2 lags", 0.31, None, 12, 0.4, "taken")
    >>> choice = revarb.Choice((linear,), "linear, 2 lags", "Nothing nonlinear was found.", "cold runs")
    >>> choice
    Choice('linear, 2 lags', 1 candidate: Nothing nonlinear was found.)
    """

    candidates: tuple[Candidate, ...]
    taken: str
    sentence: str
    scored_by: str
    linear_error: float | None = None
    mean_error: float | None = None

    def __post_init__(self):
        _check_text(self.taken, self.sentence, self.scored_by)
        for name in ("linear_error", "mean_error"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=0.0)
        if self.taken not in [candidate.name for candidate in self.candidates]:
            raise InputError(f"the candidate that was taken, {self.taken!r}, is not among those that were tried")

    def __repr__(self) -> str:
        many = "" if len(self.candidates) == 1 else "s"
        return f"Choice({self.taken!r}, {len(self.candidates)} candidate{many}: {self.sentence})"

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def taken_candidate(self) -> Candidate:
        """The candidate, or the mixture, that was taken."""
        return next(candidate for candidate in self.candidates if candidate.name == self.taken)

    @property
    def error(self) -> float | None:
        """The held-out error of the candidate, or the mixture, that was taken; None where nothing was compared."""
        return self.taken_candidate.error

    @property
    def members(self) -> tuple[Candidate, ...]:
        """The members of the mixture, or the only model."""
        return tuple(each for each in self.candidates if each.weight > 0.0) or (self.taken_candidate,)

    def summary(self) -> Summary:
        """All candidates with their held-out errors, best first, and the sentence.

        Returns
        -------
        Summary
            Prints as text; `rich.print` draws it with colours, a notebook as HTML.
        """
        return Summary(self.sentence, (self.table(),))

    def table(self) -> SummaryTable:
        """The candidates, best first, with what each gave alone and, of a mixture, the weights of its members.

        Returns
        -------
        SummaryTable
        """
        ordered = sorted(self.candidates, key=_sort_key)
        blocks = {each.stretches for each in ordered if each.stretches}
        columns = {
            "candidate": [each.name for each in ordered],
            "error": ["" if each.error is None else format_error(each.error) for each in ordered],
            "std. error": ["" if each.standard_error is None else f"{each.standard_error:.3g}" for each in ordered],
            "blocks": [str(each.stretches or "") if len(blocks) > 1 else "" for each in ordered],
            "seconds": [_describe_seconds(each.seconds) for each in ordered],
            "weight": [f"{each.weight:.2g}" if each.weight else "" for each in ordered],
            "": [each.note for each in ordered],
        }
        shown = {head: cells for head, cells in columns.items() if any(cells)}
        title = "nothing was compared" if self.scored_by == "nothing" else f"held-out errors of {self.scored_by}"
        if len(blocks) == 1:
            title += f" ({max(blocks)} blocks each)"
        return SummaryTable(title, list(shown), list(zip(*shown.values(), strict=True)))

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the held-out error of every candidate with its standard error; that of the model is in the title.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw, without the title and in the style of its figure. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("choice.png")`; a notebook displays it.
        """
        from revarb.models.figures import draw_errors  # matplotlib is slow to import

        notes = [("taken" if each.name == self.taken else each.note, each) for each in self.candidates]
        groups = {
            "taken": [each for note, each in notes if note == "taken"],
            f"member, weight {self.members[0].weight:.2g}": [each for note, each in notes if note == "member"],
            "tried": [each for note, each in notes if note not in ("taken", "member", *FEWER_BLOCKS)],
            "fewer blocks (dropped, or not finished)": [each for note, each in notes if note in FEWER_BLOCKS],
        }
        known = "" if self.error is None else f", held-out error {format_error(self.error)}"
        return draw_errors(groups, f"taken: {self.taken}{known}", self.scored_by, ax)

    def to_dict(self) -> dict[str, Any]:
        """The choice as plain values, for a model file.

        Returns
        -------
        dict
        """
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Choice":
        """The choice from the plain values of a model file.

        Parameters
        ----------
        values : dict
            As `to_dict` returns them; lists in place of tuples.

        Returns
        -------
        Choice
        """
        return cls(**{**values, "candidates": tuple(Candidate(**each) for each in values["candidates"])})


def format_error(error: float) -> str:
    """A held-out error with the digits that it has everywhere: in tables, sentences, pictures and representations."""
    return f"{error:.3g}"


def describe_held_out(
    error: float, linear: float | None, mean: float, try_first: str = "", name: str = "held-out error", flaw: str = ""
) -> str:
    """What an error of a model means, beside that of a linear model and of the training mean.

    Errors are in units of the outputs' standard deviation. `try_first` is what this model lacks, if anything; `name`
    says which error it is; a `flaw` is why a model with a small error is not to be used as it is.
    """
    beside = "" if linear is None else f"ARX {format_error(linear)}, "
    rest = f"({beside}the training mean {format_error(mean)})"
    numbers = f"{name} {format_error(error)} of the output's standard deviation {rest}"
    advice = f"try {try_first}" if try_first else "try revarb.fit, more or other inputs, or a longer record"
    if error >= NO_BETTER * mean:
        return f"{numbers}: no better than the mean, do not use it; {advice}"
    if linear is not None and error > WORSE * linear:
        return f"{numbers}: a linear model is better; {f'try {try_first}' if try_first else 'use revarb.fit or ARX'}"
    if error >= HARDLY_BETTER * mean:
        return f"{numbers}: hardly better than the mean; {advice}"
    return f"{numbers}: {flaw or 'use it'}"


def _check_text(*texts: object) -> None:
    if not all(isinstance(text, str) and len(text) <= MAX_TEXT for text in texts):
        raise InputError(f"names and sentences of a choice must be texts of at most {MAX_TEXT} characters")


def _describe_seconds(seconds: float) -> str:
    # A mixture takes none.
    return "" if seconds == 0.0 else f"{seconds:.1f}" if seconds < 10.0 else f"{seconds:.0f}"


def _sort_key(candidate: Candidate) -> tuple[bool, bool, float]:
    # Those that were scored on fewer blocks come after the others.
    return candidate.note in FEWER_BLOCKS, candidate.error is None, candidate.error or 0.0
