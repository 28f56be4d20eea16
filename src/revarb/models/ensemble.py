"""Several trained models of the same records as one: their mixture."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import safe_rms, safe_std
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import ComputationError, InputError, check_integer, check_seed, warn_user
from revarb.export.exportable import Exportable
from revarb.export.step_model import MemberParts
from revarb.models.calibration import Calibration
from revarb.models.choice import format_error
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.model_file import (
    Arrays,
    Header,
    ModelFormat,
    members_from_parts,
    members_parts,
    register_format,
)
from revarb.models.prediction import Predictor
from revarb.models.recipe import Status, Step
from revarb.models.rgp import RGP
from revarb.models.summary import Outlier, Summary, SummaryTable
from revarb.runtime.numerics import map_in_threads, with_numerics
from revarb.simulation.chain import StartState
from revarb.simulation.run import Method
from revarb.simulation.starts import StartChoice, begin_measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

Member = FittedRGP | FittedARX
AnyMember = TypeVar("AnyMember")  # or the run of one, in `Live`


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Predictor, Exportable):
    """Several fits to the same records as one model; simulations are their mixture with equal weights.

    The members are the best candidates of `revarb.fit`, linear models among them, or fits of one configuration with
    different seeds (`fit(restarts=…)`). It has the surface of a single model. What cannot be mixed (configuration,
    bound, history, latent paths, calibration, the figure of the fit) is that of the member `best`. A member whose run
    diverges is left out of that run, with a warning.

    Attributes
    ----------
    members : tuple of FittedRGP or FittedARX
        The trained models, in the order of their seeds; different models in the order of the choice, the best one
        first.
    status : Status
        "interrupted" if a fit was interrupted, else the status of `best`.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu",), 2),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
    >>> many = spec.fit(revarb.Series(u, np.cumsum(u)), restarts=2)
    >>> many
    Ensemble(2 members, inputs ('u',), outputs ('y',), status='finished')
    >>> many.simulate(u).mean.shape
    (60, 1)
    """

    members: tuple[Member, ...]

    methods = FittedRGP.methods

    @classmethod
    def from_members(cls, members: Sequence[FittedRGP]) -> "Ensemble":
        """The mixture of fits of one configuration to the same records.

        Parameters
        ----------
        members : list of FittedRGP
            They must differ in their seeds, and in nothing else but the outcome.

        Returns
        -------
        Ensemble

        Raises
        ------
        InputError
            If the members differ in configuration or records, or two have the same seed.
        """
        members = tuple(members)
        if not members or not all(isinstance(member, FittedRGP) for member in members):
            raise InputError(f"an ensemble takes one or more fitted RGPs, received {members!r}")
        if len({member.seed for member in members}) < len(members):
            raise InputError(f"members must differ in their seeds, received {[member.seed for member in members]}")
        ordered = tuple(sorted(members, key=lambda member: member.seed))
        first = ordered[0]
        for member in ordered[1:]:
            if (member.spec, member.lengths) != (first.spec, first.lengths) or not _same_records(member, first):
                raise InputError(
                    f"members must be fits of one configuration to the same records; the one of seed {member.seed} "
                    f"differs from that of seed {first.seed}: fit both with one call of fit(restarts=…)"
                )
        best = max(ordered, key=lambda member: member.bound)
        return cls(first.preprocessor, _join_status(members, best), first.seed, ordered)

    @classmethod
    def from_candidates(cls, members: Sequence[Member]) -> "Ensemble":
        """The mixture of different models of the same records, the best one first, as `revarb.fit` makes it.

        Parameters
        ----------
        members : list of FittedRGP or FittedARX
            They may differ in everything but the records.

        Returns
        -------
        Ensemble

        Raises
        ------
        InputError
            If the members were fitted to different records, or are models of other kinds.
        """
        members = tuple(members)
        if not members or not all(isinstance(member, Member) for member in members):
            raise InputError(f"a mixture takes one or more fitted RGPs or ARX models, received {members!r}")
        if not all(_same_records(member, members[0]) for member in members):
            raise InputError("members must be fits to the same records")
        slowest = max(members, key=lambda member: member.preprocessor.skip)
        return cls(slowest.preprocessor, _join_status(members, members[0]), members[0].seed, members)

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        columns = f"inputs {self.input_names}, outputs {self.output_names}"
        return f"Ensemble({len(self)} members, {columns}, status={self.status.label!r}{self._error_text})"

    @cached_property
    def best(self) -> FittedRGP:
        """The member with the highest bound; of different models, the first one that is a recurrent GP."""
        recurrent = [member for member in self.members if isinstance(member, FittedRGP)]
        if not recurrent:
            raise InputError("none of the members is a recurrent GP: configuration, bound and history are those of one")
        return recurrent[0] if self.mixed else max(recurrent, key=lambda member: member.bound)

    @property
    def skip(self) -> int:
        """Number of first rows in which a cold run of a member settles; scores leave them out."""
        return max(member.skip for member in self.members)

    @property
    def mixed(self) -> bool:
        """Whether the members have different configurations."""
        return len({member.spec if isinstance(member, FittedRGP) else id(member) for member in self.members}) > 1

    @property
    def bounds(self) -> tuple[float, ...]:
        """The lower bounds of the members that are recurrent GPs."""
        return tuple(member.bound for member in self.members if isinstance(member, FittedRGP))

    @property
    def bound(self) -> float:
        """The lower bound of the best member."""
        return self.best.bound

    @property
    def spec(self) -> RGP:
        """The configuration of the best member; that of all members unless they are `mixed`."""
        return self.best.spec

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of latent states of each training record, or block of long ones, of the best member."""
        return self.best.lengths

    @property
    def history(self) -> tuple[Step, ...]:
        """Steps of the best member."""
        return self.best.history

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the best member; those of a mixture have the widths with which the mixture is honest."""
        return self.best.calibration

    @property
    def verdict(self) -> str | None:
        """What the held-out error says, in a sentence; None where nothing was held out."""
        if self.choice is not None:
            return super().verdict
        return replace(self.best, status=self.status).verdict if self.bounds else None

    @property
    def _has_bands(self) -> bool:
        return all(member._has_bands for member in self.members)

    @property
    def final_states(self) -> tuple[tuple[StartState, ...], ...]:
        """For every training record the states at its end, one per member, for `simulate(u, start=…)`."""
        return tuple(zip(*(member.final_states for member in self.members), strict=True))

    def simulate(
        self,
        u: Any = None,
        method: Method = "moments",
        *,
        start: StartChoice | Sequence[StartState] = "cold",
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation by all members: mean of their means, and the law of total variance.

        Parameters
        ----------
        u : array-like [T, inputs], data frame or Series
            Inputs, or a record with these inputs, raw units; None for a system without inputs.
        method : str
            "moments", "mean", "samples" or "network", as in `FittedRGP.simulate`.
        start : str, Window or list of StartState
            As there, or one of `final_states`, with a state for each member.
        steps : int, optional
            Number of steps for a system without inputs.
        samples : int
            Number of trajectories in all, divided among the members.
        seed : int
            Seed of the sampled trajectories.

        Returns
        -------
        Trajectory
            One row per row of `u`.

        Raises
        ------
        InputError
            If the inputs or the start do not fit the model.
        ComputationError
            If the simulations of all members diverge.
        """
        seed, (u, start) = check_seed(seed), begin_measured(self.preprocessor, u, start)
        _, starts = list_starts(self, start)
        counts = self._divide(samples) if method == "samples" else [samples] * len(self)

        def run(number: int, member: Member) -> Trajectory:
            own: dict[str, Any] = {"start": starts[number], "steps": steps}
            if isinstance(member, FittedRGP):
                return member.simulate(u, method, **own, samples=counts[number], seed=seed + number)
            return _simulate_linear(member, u, method, own, counts[number], seed + number)

        return mix_paths(run_members(self.members, run))

    def _simulate_from(self, states: Sequence[StartState], u: Float64[np.ndarray, "T Du"]) -> Trajectory:
        return self.simulate(u, start=states)

    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """Predict every sample of a measured record by all members; see `FittedRGP.predict`.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs; missing outputs are NaN.
        horizon : int
            Number of samples ahead.

        Returns
        -------
        Trajectory
            Mixture of the members' predictions, one row per sample of the record.
        """
        return mix_paths(run_members(self.members, lambda _, member: member.predict(record, horizon)))

    def refit(self, records: Series | Sequence[Series], progress: bool = False) -> "Ensemble":
        """Train all members further on more records; see `FittedRGP.refit`. The bands stay calibrated as they were.

        Linear members are fitted again with the same order. Ctrl-C returns the members so far, with status
        "interrupted".

        Parameters
        ----------
        records : Series or list of Series
            All records to train on, old and new ones.
        progress : bool
            Show a progress bar for each member.

        Returns
        -------
        Ensemble
            A new model; this one is not changed.
        """
        members: list[Member] = []
        for member in self.members:
            members.append(member.refit(records, progress))
            if members[-1].status is Status.INTERRUPTED:
                break
        return replace(Ensemble.from_candidates(members), choice=self.choice)

    def outliers(self, level: float = 1e-3) -> tuple[Outlier, ...]:
        """The training samples that the first member with Student-t noise takes as outliers; see `FittedRGP.outliers`.

        Parameters
        ----------
        level : float
            A sample counts as an outlier if fewer than this share of ordinary samples would be as far from the model.

        Returns
        -------
        tuple of Outlier
            The most unlikely one first.

        Raises
        ------
        InputError
            If the noise of all members is Gaussian.
        """
        robust = (each for each in self.members if isinstance(each, FittedRGP) and each.spec.noise == "student-t")
        return next(robust, self.best).outliers(level)

    def smooth(self) -> list[Trajectory]:
        """The training records as fitted by the recurrent GPs among the members; see `FittedRGP.smooth`.

        Returns
        -------
        list of Trajectory
            Mixture of the members' fits, one per record, with the noise as fitted (no calibration), for the samples
            with a full window of lags of all members behind them.
        """
        recurrent = [member for member in self.members if isinstance(member, FittedRGP)]
        records = zip(*(member.smooth() for member in recurrent), strict=True)
        return [mix_paths(_cut_to_shortest(paths)) for paths in records]

    def latent_paths(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Latent paths of the best member; see `FittedRGP.latent_paths`.

        Returns
        -------
        list of (mean, std)
            One pair of arrays [states, latent states] per hidden layer, z-scored.
        """
        return self.best.latent_paths()

    def recognise(self, u: Any = None, *, steps: int | None = None) -> list[Float64[np.ndarray, "T _"]]:
        """Latent paths of the best member for new inputs; see `FittedRGP.recognise`.

        Parameters
        ----------
        u : array-like [T, inputs] or data frame
            Inputs, raw units; None for a system without inputs.
        steps : int, optional
            Number of steps for a system without inputs.

        Returns
        -------
        list of arrays [T, latent states]
            One per hidden layer, z-scored.
        """
        return self.best.recognise(u, steps=steps)

    def plot_fit(
        self, records: Series | Sequence[Series] | None = None, fig: "Figure | SubFigure | None" = None
    ) -> "Figure":
        """Draw the fit of the best recurrent GP among the members; see `FittedRGP.plot_fit`.

        Parameters
        ----------
        records : Series or list of Series, optional
            The training records, to draw the measured outputs too; a model does not keep them.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        if not self.bounds:
            return super().plot_fit(() if records is None else records, fig)
        from revarb.runtime.figure_style import set_title  # matplotlib is slow to import

        figure = self.best.plot_fit(records, fig)
        drawn = figure if fig is None else fig
        set_title(drawn, f"Best member: {_describe_member(self.best)}\n{drawn.get_suptitle()}")
        return figure

    def summary(self) -> Summary:
        """The members with their bounds and held-out errors, the summary of the best one, and what was tried.

        Returns
        -------
        Summary
            Prints itself as text; `rich.print` draws it with colours, a notebook as HTML.
        """
        rows = [(_describe_member(member), member.status.label, *_describe_fit(member)) for member in self.members]
        heads = ("member", "status", "bound", "held-out error")
        if self.choice is not None:  # whose table has the errors of the members
            rows, heads = [row[:-1] for row in rows], heads[:-1]
        members = SummaryTable("members, equal weights", heads, rows)
        chosen = () if self.choice is None else (self.choice.table(),)
        of_best = self.best.summary().tables if self.bounds else (self._common_table(),)
        return Summary(f"Ensemble of {len(self)} models; below, the best member", (members, *of_best, *chosen))

    def step_parts(self) -> tuple[MemberParts, ...]:
        """What an export of one step needs, of every member; see `Exportable`."""
        return tuple(part for member in self.members for part in member.step_parts())

    def _divide(self, samples: int) -> list[int]:
        count = check_integer("samples (two or more per member)", samples, least=2 * len(self))
        return [count // len(self) + (number < count % len(self)) for number in range(len(self))]


def list_starts(model: Member | Ensemble, start: Any) -> tuple[Sequence[Member], list[Any]]:
    """The members of a model, or the single model, and a start for each; a state is that of one model."""
    if not isinstance(model, Ensemble):
        return [model], [start]
    starts = list(start) if isinstance(start, list | tuple) else [start] * len(model)
    if len(starts) != len(model) or isinstance(start, StartState):
        what = f"a state for each of its {len(model)} members"
        raise InputError(f"a start that is a state must be one of this ensemble's final_states, {what}")
    return model.members, starts


@with_numerics
def run_members(members: Sequence[AnyMember], run: Callable[[int, AnyMember], Trajectory]) -> list[Trajectory]:
    """The runs of all members, side by side in threads, without those that diverge.

    What several members warn of is said once.
    """

    def try_member(number: int) -> Trajectory | ComputationError:
        try:
            return run(number, members[number])
        except ComputationError as error:
            return error

    with warnings.catch_warnings(record=True) as caught:  # filters are those of the process: set around all threads
        warnings.simplefilter("always")
        outcomes = map_in_threads(try_member, range(len(members)))
    for message in dict.fromkeys(str(each.message) for each in caught):
        warn_user(message)
    failures = [each for each in outcomes if isinstance(each, ComputationError)]
    paths = [each for each in outcomes if isinstance(each, Trajectory)]
    if not paths:
        raise failures[0]
    if failures:
        warn_user(f"{len(failures)} of {len(members)} members diverged and are left out of this run: {failures[0]}")
    return paths


def mix_paths(paths: Sequence[Trajectory]) -> Trajectory:
    """The mixture, with equal weights, of simulations of one record; its disagreement is the largest of theirs."""
    means = np.stack([path.mean for path in paths])
    stds = [path.std for path in paths if path.std is not None]
    samples = [path.samples for path in paths if path.samples is not None]
    marks = [path.output_extrapolates for path in paths if path.output_extrapolates is not None]
    states = [path.state_extrapolates for path in paths if path.state_extrapolates is not None]
    return replace(
        paths[0],
        method=next((path.method for path in paths if path.method != "residuals"), paths[0].method),
        mean=means.mean(axis=0),
        std=_mixture_std(means, np.stack(stds)) if stds else None,
        samples=np.concatenate(samples) if samples else None,
        skip=max(path.skip for path in paths),
        disagreement=max((path.disagreement for path in paths if path.disagreement is not None), default=None),
        output_extrapolates=np.any(marks, axis=0) if marks else None,
        state_extrapolates=np.any(states, axis=0) if states else None,
        degrees_of_freedom=mix_degrees([path.degrees_of_freedom for path in paths]),
    )


def mix_degrees(degrees: Sequence[float | None]) -> float | None:
    """Degrees of freedom of the Student-t that stands for a mixture; None is a Gaussian.

    1/ν is the mean of the members' 1/ν, 0 for a Gaussian: the mixture of a Student-t with 4 degrees of freedom and a
    Gaussian has 8, and its 99 % band is that of the mixture to 2 %.
    """
    heaviness = np.mean([0.0 if each is None else 1.0 / each for each in degrees])
    return float(1.0 / heaviness) if heaviness else None


def _cut_to_shortest(paths: Sequence[Trajectory]) -> list[Trajectory]:
    # Smoothed paths end with their record and begin after a window of lags, which differs between models.
    rows = min(len(path) for path in paths)
    return [replace(path, mean=path.mean[-rows:], std=None if path.std is None else path.std[-rows:]) for path in paths]


def _mixture_std(means: Float64[np.ndarray, "K T Dy"], stds: Float64[np.ndarray, "K T Dy"]) -> np.ndarray:
    # Law of total variance.
    between = safe_std((means - means[0]).reshape(len(means), -1)).reshape(means.shape[1:])
    return np.hypot(safe_rms(stds), between)


def _simulate_linear(
    member: FittedARX, u: Any, method: str, options: dict[str, Any], samples: int, seed: int
) -> Trajectory:
    # A linear model has one method, a mean with a band, in which a sample keeps its place: errors of a free run do not
    # change their sign at every step.
    if method not in Ensemble.methods and method != "samples":
        raise InputError(f"method must be 'moments', 'mean' or 'samples' for this mixture, received {method!r}")
    path = member.simulate(u, **options)
    assert path.std is not None
    drawn = None
    if method == "samples":
        drawn = path.mean + path.std * np.random.default_rng(seed).standard_normal((samples, 1, path.mean.shape[1]))
    return replace(path, method=method, std=None if method == "mean" else path.std, samples=drawn)


def _join_status(members: Sequence[Member], best: Member) -> Status:
    interrupted = any(member.status is Status.INTERRUPTED for member in members)
    return Status.INTERRUPTED if interrupted else best.status


def _same_records(one: Member, other: Member) -> bool:
    # By the scaling of the inputs: that of the outputs is without outliers where the noise is a Student-t.
    scalings = [np.concatenate([model.scaling.u_mean, model.scaling.u_std]) for model in (one, other)]
    names = [(model.input_names, model.output_names, model.dt) for model in (one, other)]
    return names[0] == names[1] and np.array_equal(scalings[0], scalings[1])


def _describe_member(member: Member) -> str:
    if not isinstance(member, FittedRGP):
        return f"{type(member).__name__}, {member.order.lags} + {member.order.input_lags} lags"
    spec = member.spec
    linear = ", linear part" if spec.linear else ""
    lags = f"{spec.lags} + {spec.input_lags} lags, {spec.hidden} hidden{linear}"
    return f"{lags}, w = {spec.recipe.free_run_weight:g}, seed {member.seed}"


def _describe_fit(member: Member) -> tuple[str, str]:
    if not isinstance(member, FittedRGP):
        return "", ""
    error = "not calibrated" if member.calibration is None else format_error(member.calibration.error)
    return f"{member.bound:.2f}", error


def _write_ensemble(model: Ensemble) -> tuple[dict[str, Any], dict[str, Any]]:
    headers, arrays = members_parts(model.members)
    return {"members": headers}, arrays


def _read_ensemble(header: Header, arrays: Arrays) -> Ensemble:
    members = members_from_parts(header["members"], arrays)
    mixed = any(getattr(member, "spec", None) != members[0].spec for member in members)
    ensemble = Ensemble.from_candidates(members) if mixed else Ensemble.from_members(members)
    # Of an interrupted mixture only the finished members are kept: theirs does not say that it was interrupted.
    return replace(ensemble, status=Status(header.get("status", ensemble.status)))  # version 0.1 has none


register_format(ModelFormat("Ensemble", Ensemble, _write_ensemble, _read_ensemble))
