"""A trained recurrent GP: simulation, prediction, summary, and its file format."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64, Int

from revarb.data.series import Series
from revarb.data.training_records import shorten_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import current_windows, map_blocks, split_rows
from revarb.errors import InputError, check_integer, check_number, check_seed
from revarb.export.exportable import Exportable
from revarb.export.step_model import MemberParts
from revarb.gp.posterior import Posterior
from revarb.models.calibration import Calibration
from revarb.models.choice import describe_held_out, format_error
from revarb.models.model_file import Arrays, Header, ModelFormat, Trained, common_fields, read_trained, register_format
from revarb.models.prediction import (
    ChainPredictor,
    align_record,
    check_prediction,
    count_steps_ahead,
    name_horizon,
    read_record_inputs,
)
from revarb.models.recipe import Step
from revarb.models.rgp import RGP
from revarb.models.summary import Outlier, SummaryTable, find_outliers, make_noise_table, make_relevance_table
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.extrapolation import KnownRange, find_known_range
from revarb.simulation.filtering import predict_ahead
from revarb.simulation.moments import observe_independent
from revarb.simulation.run import (
    Method,
    add_doubt,
    recognise_paths,
    simulate_chain,
    simulate_networks,
    widen_beyond,
    widen_path,
)
from revarb.simulation.settling import find_row
from revarb.simulation.starts import Origin, StartChoice, begin_measured, resolve_start, summarise_windows
from revarb.variational.states import FreeStates, Network

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


@dataclass(frozen=True, eq=False, repr=False)
class FittedRGP(ChainPredictor, Exportable):
    """A trained recurrent GP, as `RGP.fit` returns it.

    Attributes
    ----------
    spec : RGP
        Its configuration.
    bound : float
        Value of the lower bound at the end of training.
    status : Status
        How the optimisation ended.
    history : tuple of Step
        Stage, iteration and bound of every step.
    calibration : Calibration or None
        Noises and band widths from held-out blocks; None where there was no calibration.
    lengths : tuple of int
        Number of latent states of each training record; of each block where the records are longer than
        `spec.recipe.max_rows`.
    trained : Trained
        All arrays, in z-scored units.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
    >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
    >>> model = spec.fit(revarb.Series(u, np.cumsum(u)))
    >>> model
    FittedRGP(inputs ('u',), outputs ('y',), hidden=1, status='finished', not calibrated)
    >>> model.simulate(u).mean.shape
    (60, 1)
    """

    spec: RGP
    trained: Trained
    lengths: tuple[int, ...]
    bound: float
    history: tuple[Step, ...]
    calibration: Calibration | None = None

    methods = ("mean", "moments")

    def __repr__(self) -> str:
        columns = f"inputs {self.input_names}, outputs {self.output_names}, hidden={self.spec.hidden}"
        return f"FittedRGP({columns}, status={self.status.label!r}{self._error_text})"

    @property
    def _error_text(self) -> str:
        if self.choice is not None:
            return super()._error_text
        known = self.calibration
        return ", not calibrated" if known is None else f", held-out error {format_error(known.error)}"

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        spec, chain = self.spec, self.trained.chain
        records, blocks = len(self.final_states), len(self.lengths)
        rows = f"{records}, {sum(self.lengths) - blocks * spec.lags} rows"
        fit = (
            ("latent states of the hidden layers", ", ".join(str(dim) for dim in spec.latent_dims)),
            ("inducing inputs per layer", str(len(chain.last_layer.zeta))),
            ("training records", rows if blocks == records else f"{rows} in {blocks} blocks"),
            ("iterations", str(len(self.history))),
            ("lower bound", f"{self.bound:.2f}"),
            ("recognition model", "none" if spec.recognition is None else f"tanh units {spec.recognition.hidden}"),
        )
        none = SummaryTable("calibration", ("", ""), (("held-out blocks", "none: bands are as fitted"),))
        return (
            SummaryTable("fit", ("", ""), fit),
            make_relevance_table(chain, self.order, self.input_names),
            make_noise_table(chain, self.chain, self.output_names, self.scaling.y_std),
            none if self.calibration is None else self.calibration.table(),
        )

    def plot_fit(
        self, records: Series | Sequence[Series] | None = None, fig: "Figure | SubFigure | None" = None
    ) -> "Figure":
        """Draw the fitted outputs, the latent path of every hidden layer, and what was maximised.

        That is the bound, or with a free-run term in the recipe the bound less this term.

        Parameters
        ----------
        records : Series or list of Series, optional
            The training records, to draw the measured outputs too; a model does not keep them.
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("fit.png")`; a notebook displays it.
        """
        from revarb.models.figures import TimeLine, draw_fit  # matplotlib is slow to import

        # Latent states begin later than the record where the inputs reach back further than the states.
        first = self.order.first_row - self.order.lags
        measured, line = None, TimeLine(self.lengths, first, self.dt)
        if records is not None:
            parts = self._align_records(self._check_outputs(records), first)
            measured, line = [part.y[first:] for part in parts], TimeLine.of_records(parts, first)
        outliers = ()
        if measured is not None and self.trained.parameters.noise is not None:
            column = self.output_names.index
            outliers = [(each.record, each.row - first, column(each.output)) for each in self.outliers()]
        maximised = "bound"
        title = f"Training: {self.status.label} after {len(self.history)} iterations, bound {self.bound:.1f}"
        if self.spec.recipe.free_run_weight > 0.0 and self.history:
            maximised = "objective"
            title += f"; objective {self.history[-1].bound:.1f}, the bound less the free-run term"
        return draw_fit(
            line, self.smooth(), measured, outliers, self.latent_paths(), self.history, title, maximised, fig
        )

    def _align_records(self, records: Sequence[Series], first: int) -> Sequence[Series]:
        # The training records, or their blocks, to which the latent states belong. Records as they are, too: files
        # written before version 0.2 do not know blocks.
        for parts in (records, shorten_records(records, self.order, self.spec.recipe.max_rows).records):
            if tuple(len(part) - first for part in parts) == self.lengths:
                return parts
        raise InputError(
            f"records have {[len(record) for record in records]} samples, but the model was fitted to "
            f"{[length + first for length in self.lengths]}; pass the training records"
        )

    def outliers(self, level: float = 1e-3) -> tuple[Outlier, ...]:
        """The training samples that the model takes as outliers, the most unlikely one first.

        Parameters
        ----------
        level : float
            A sample counts as an outlier if fewer than this share of ordinary samples would be as far from the model.

        Returns
        -------
        tuple of Outlier
            Each with `record`, `row`, `output`, `weight` and `probability`.

        Raises
        ------
        InputError
            If the noise of the model is Gaussian.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0))
        >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
        >>> y[30] += 4.0
        >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta", "tau"), 20),))
        >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe, noise="student-t")
        >>> spec.fit(revarb.Series(u, y)).outliers()[0].row
        30
        """
        noise = self.trained.parameters.noise
        return find_outliers(noise, self.order, self.lengths, self.output_names, level)

    @property
    def verdict(self) -> str | None:
        """What the held-out error says about the model, in a sentence; None where nothing was held out."""
        known = self.calibration
        if self.choice is not None or known is None or known.mean_error is None:
            return super().verdict
        states, outputs = min(self.spec.latent_dims), len(self.output_names)
        lacking = f"latent_dim={outputs} (it has {states} latent state(s) for {outputs} outputs)"
        try_first = lacking if states < outputs else ""
        return describe_held_out(known.error, known.linear_error, known.mean_error, try_first, flaw=self._flaw)

    @property
    def _has_bands(self) -> bool:
        return self.calibration is not None

    @property
    def final_states(self) -> tuple[StartState, ...]:
        """The state at the end of each training record, for `simulate(u, start=model.final_states[0])`."""
        return self.trained.final_states

    @cached_property
    def chain(self) -> Chain[Posterior]:
        """The trained layers with calibrated noise, as `simulate` runs them."""
        return self.trained.chain if self.calibration is None else self.calibration.apply_to(self.trained.chain)

    @with_numerics
    def resolve_start(self, start: StartChoice) -> Origin:
        """The state that a run starts from.

        Parameters
        ----------
        start : str, Window or StartState
            As in `simulate`.

        Returns
        -------
        Origin
            `state`, the state before the first step, and `name`, the name that `Trajectory.start` has.

        Raises
        ------
        InputError
            If `start` is none of these, or does not fit the model.
        """
        return resolve_start(start, self.preprocessor, self.trained.chain, self.cold_start, self.final_states)

    @cached_property
    @with_numerics
    def cold_start(self) -> StartState:
        """The distribution of the windows of states over the training records: the state before a cold run."""
        lags, states = self.spec.lags, self._states
        mu, lam = (
            np.concatenate([map_blocks(current_windows, np.asarray(x), lags, self.lengths) for x in layers], axis=1)
            for layers in (states.mu, states.lam)
        )
        return summarise_windows(self.preprocessor, mu, lam.mean(axis=0))

    @cached_property
    def known_range(self) -> KnownRange:
        """The ranges of the states and inputs over the training records; beyond them bands become wider."""
        return find_known_range(self.preprocessor, [np.asarray(mu) for mu in self._states.mu])

    @with_numerics
    def simulate(
        self,
        u: Any = None,
        method: Method = "moments",
        *,
        start: StartChoice = "cold",
        steps: int | None = None,
        samples: int = 200,
        seed: int = 0,
    ) -> Trajectory:
        """Free simulation on new inputs: one row out per row in, raw units in and out.

        Parameters
        ----------
        u : array-like [T, inputs], data frame or Series
            Inputs, or a record with these inputs; None for a system without inputs.
        method : str
            "moments": mean and standard deviation, uncertainty propagated with full covariance.
            "mean": mean-only run, no uncertainty.
            "samples": sampled trajectories, each of which follows one draw of every layer's function.
            "network": the networks of a recognition model in place of the hidden layers, no uncertainty.
        start : str, Window or StartState
            "cold": nothing is known. The states have the distribution that they had over the training records, so
            that the first band is about that of the output itself; the inputs before the first row are at their
            training mean.
            "measured": after the first measured samples of the record `u`, twenty or as many as the lags need; the
            run has the rows after them.
            "continue": the end of the (last) training record; or one of `final_states`.
            `Window(u, y)`: after these measured samples, whose latent states are inferred by filtering.
        steps : int, optional
            Number of steps for a system without inputs.
        samples, seed : int
            Number of trajectories of method "samples", and the seed that draws them.

        Returns
        -------
        Trajectory
            One row per row of `u`.

        Raises
        ------
        InputError
            If the inputs or the start do not fit the model.
        ComputationError
            If the simulation diverges.

        Examples
        --------
        A cold start, and a start after ten measured samples:

        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0))
        >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
        >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
        >>> record = revarb.Series(u, np.cumsum(u))
        >>> model = spec.fit(record)
        >>> model.simulate(u)
        Trajectory(60 rows, outputs ('y',), method='moments', start='cold')
        >>> model.simulate(u[10:], start=revarb.Window(u[:10], record.y[:10]))
        Trajectory(50 rows, outputs ('y',), method='moments', start='window of 10 samples')
        """
        u, start = begin_measured(self.preprocessor, u, start)
        origin = self.resolve_start(start)
        prep, settling = self.preprocessor, self.skip - origin.age if origin.cold else 0
        if method == "network":
            path = simulate_networks(prep, self.trained.chain, self._networks, u, origin, steps, settling)
        else:
            path = simulate_chain(prep, self.chain, u, method, origin, steps, samples, seed, settling)
        path = self._calibrate_path(path, self.width_factors(origin.age + 1 + np.arange(len(path)), origin.cold))
        return widen_beyond(path, prep, self.chain, origin, self.known_range, check_seed(seed))

    @with_numerics
    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """Predict every sample of a measured record from the samples up to `horizon` before it, raw units.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs. Missing outputs (NaN) are skipped by the filter.
        horizon : int
            Number of samples ahead. The first rows are predicted from a cold start.

        Returns
        -------
        Trajectory
            One row per sample of the record.

        Raises
        ------
        InputError
            If the record does not fit the model.
        ComputationError
            If the prediction diverges.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(60.0))
        >>> recipe = revarb.Recipe(stages=(revarb.Stage(("mu", "zeta"), 5),))
        >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, recipe=recipe)
        >>> record = revarb.Series(u, np.cumsum(u))
        >>> spec.fit(record).predict(record, horizon=3)
        Trajectory(60 rows, outputs ('y',), method='moments', start='3 steps ahead')
        """
        horizon = check_prediction(record, horizon)
        prep, rows = self.preprocessor, align_record(self.preprocessor, self.cold_start, record)
        free = min(horizon, len(rows.y))
        moments, beyond = predict_ahead(self.trained.chain, self.chain, *rows, free, self.known_range)
        inputs = read_record_inputs(prep, record)
        path = prep.to_trajectory("moments", prep.skip, *moments, start=name_horizon(horizon), inputs=inputs)
        steps, cold = count_steps_ahead(rows.y, horizon)
        factors = (self.width_factors(steps, cold=each) for each in (True, False))
        path = self._calibrate_path(path, np.where(cold[:, None], *factors))
        return add_doubt(path, prep, beyond)

    def refit(
        self, records: Series | Sequence[Series], progress: bool = False, *, calibrate: bool = False
    ) -> "FittedRGP":
        """Train further on more records, from the trained parameters: a fifth of the iterations of a fit.

        The new model is trained on the given records only. A model does not keep the records of its own fit: pass old
        and new ones together. The scaling of inputs and outputs and the number of inducing inputs stay. Ctrl-C returns
        the best model so far, with status "interrupted".

        Parameters
        ----------
        records : Series or list of Series
            All records to train on, with the columns of the model.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.
        calibrate : bool
            Set noises and bands again on held-out blocks of these records. It takes four fits from scratch. Without
            it, or where it fails, the calibration is that of this model.

        Returns
        -------
        FittedRGP
            A new model; this one is not changed.

        Raises
        ------
        InputError
            If the records do not fit the model, or it has a recognition model.
        ComputationError
            If the bound is not finite at the start.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> u = np.sin(np.arange(90.0) ** 1.5)
        >>> record = revarb.Series(u, np.convolve(np.tanh(u), 0.8 ** np.arange(30))[:90])
        >>> spec = revarb.RGP(lags=2, input_lags=2, hidden=1, inducing=10, calibrate=False)
        >>> model = spec.fit(record[:60])
        >>> len(model.history), len(model.refit(record).history)
        (150, 30)
        """
        return self.spec.refit(self, records, progress, calibrate=calibrate)

    def _simulate_from(self, states: Sequence[StartState], u: Float64[np.ndarray, "T Du"]) -> Trajectory:
        [state] = states
        return self.simulate(u, start=state)

    def width_factors(self, steps: Int[np.ndarray, " T"], cold: bool) -> Float64[np.ndarray, "T Dy"]:
        """Factors on the standard deviation of propagated moments: the calibrated one, and what a cold run adds.

        Parameters
        ----------
        steps : array of int [T]
            Number of steps since the last measured output; of a cold run since its start.
        cold : bool
            Whether the run is cold. It begins with the variance of its start, of which nothing is calibrated, and of
            the inputs before it, which is not propagated.

        Returns
        -------
        array [T, outputs]
        """
        known, factors = self.calibration, np.ones((len(steps), len(self.output_names)))
        if not cold:
            return factors if known is None else factors * known.width_factors(steps)[:, None]
        rows = find_row(steps, len(self.settling.shares))
        if known is not None:
            factors *= known.width_factors(np.full(len(steps), np.inf), self.settling.shares[rows])[:, None]
        return factors * self.settling.widths[rows]

    def _calibrate_path(self, path: Trajectory, factors: Float64[np.ndarray, "T Dy"]) -> Trajectory:
        # The distribution of a run of `chain`: its calibrated width, and the tails of its noise.
        return widen_path(_set_tails(path, self.chain), factors)

    def step_parts(self) -> tuple[MemberParts, ...]:
        """What an export of one step needs; see `Exportable`."""
        last = 1 if self.calibration is None else int(np.ceil(self.calibration.middles[-1]))
        widths = self.width_factors(1 + np.arange(last), cold=False)
        cold_widths = self.width_factors(1 + np.arange(len(self.settling.shares)), cold=True)
        prep = self.preprocessor
        part = MemberParts(type(self).__name__, prep, self.chain, self.resolve_start, widths, cold_widths)
        return (part._replace(known_range=self.known_range),)

    @with_numerics
    def recognise(self, u: Any = None, *, steps: int | None = None) -> list[Float64[np.ndarray, "T _"]]:
        """The latent path of every hidden layer for new inputs, by the recognition model; nothing is optimised.

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

        Raises
        ------
        InputError
            If the model was fitted without `RGP(recognition=…)`.
        """
        return recognise_paths(self.preprocessor, self.trained.chain, self._networks, u, self.cold_start, steps)

    @property
    def _networks(self) -> tuple[Network, ...]:
        if self.trained.networks is None:
            raise InputError("this model has no networks; fit RGP(recognition=revarb.Recognition()) for that")
        return self.trained.networks

    @with_numerics
    def smooth(self) -> list[Trajectory]:
        """The training records as fitted, also where outputs are missing.

        Returns
        -------
        list of Trajectory
            One per record, or per block of long ones (`Recipe.max_rows`), for the samples with a full window of lags
            behind them. The band is narrow where the output was measured, and as wide as the latent states are
            uncertain in a gap. `std` has the variance of the latent states and the output noise as fitted; the
            calibration, which is for simulations, is not applied.
        """
        lags, states, chain = self.spec.lags, self._states, self.trained.chain
        windows = [map_blocks(current_windows, x[-1], lags, self.lengths) for x in (states.mu, states.lam)]
        y = observe_independent(chain, *(np.asarray(each) for each in windows))
        parts = (split_rows(np.asarray(values), lags, self.lengths) for values in (y.mean, y.variance))
        to_path = partial(self.preprocessor.to_trajectory, "smoothed", 0, start="training record")
        return [_set_tails(to_path(*part), chain) for part in zip(*parts, strict=True)]

    @with_numerics
    def latent_paths(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Mean and standard deviation of the latent states of every hidden layer, records or blocks in order.

        Returns
        -------
        list of (mean, std)
            One pair of arrays [states, latent states] per hidden layer, z-scored.
        """
        states = self._states
        return [(np.asarray(mu), np.sqrt(np.asarray(lam))) for mu, lam in zip(states.mu, states.lam, strict=True)]

    @property
    def _states(self) -> FreeStates:
        states = self.trained.parameters.states
        assert isinstance(states, FreeStates)
        return states


def _set_tails(path: Trajectory, chain: Chain[Posterior]) -> Trajectory:
    # The sum of a Gaussian state and Student-t noise is taken as a Student-t with the variance of the sum.
    return replace(path, degrees_of_freedom=None if chain.degrees is None else float(chain.degrees))


def _write_rgp(model: FittedRGP) -> tuple[dict[str, Any], Trained]:
    output = model.trained.chain.last_layer
    header = {
        "configuration": model.spec.to_dict(),
        "inducing": len(output.zeta),
        "lengths": model.lengths,
        "records": len(model.final_states),
        "bound": model.bound,
        "history": model.history,
        "calibration": None if model.calibration is None else asdict(model.calibration),
        "outputs_apart": output.reduction.ndim == 3,  # outputs with different gaps have a matrix G each
    }
    return header, model.trained


def _read_rgp(header: Header, arrays: Arrays) -> FittedRGP:
    spec = RGP.from_dict(header["configuration"])
    fields = common_fields(header, spec.order_for(len(header["standardiser"]["u_mean"])))
    lengths = tuple(check_integer("a length", length, least=spec.lags + 1) for length in header["lengths"])
    # Files written before version 0.2 have no number of records: none of them was cut into blocks.
    records = check_integer("records", header.get("records", len(lengths)), 1, max(1, len(lengths)))
    inducing, apart = check_integer("inducing", header["inducing"], least=1), header.get("outputs_apart") is True
    return FittedRGP(
        *fields,
        spec=spec,
        trained=read_trained(arrays, spec, fields.preprocessor, lengths, records, inducing, apart),
        lengths=lengths,
        bound=check_number("bound", header["bound"]),
        history=tuple(
            Step(
                check_integer("a stage of the history", stage, 1),
                check_integer("an iteration of the history", iteration, 1),
                check_number("a bound of the history", bound),
            )
            for stage, iteration, bound in header["history"]
        ),
        calibration=None if header.get("calibration") is None else Calibration.from_dict(header["calibration"]),
    )


register_format(ModelFormat("RGP", FittedRGP, _write_rgp, _read_rgp))
