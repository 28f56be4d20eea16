"""A trained recurrent GP: simulation, prediction, summary."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.config.rgp import RGP
from revarb.data.preprocessor import check_finite
from revarb.data.series import Series, as_records
from revarb.data.trajectory import Trajectory
from revarb.data.windows import current_windows, map_blocks, split_rows
from revarb.errors import InputError
from revarb.gp.posterior import Posterior
from revarb.models.calibration import Calibration
from revarb.models.held_out_verdict import state_held_out
from revarb.models.prediction import Predictor, align_record, check_prediction, name_horizon
from revarb.models.summary import SummaryTable
from revarb.optim.status import Step
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.filtering import predict_ahead
from revarb.simulation.moments import observe_independent
from revarb.simulation.run import Method, recognise_paths, simulate_chain, simulate_networks
from revarb.simulation.starts import Origin, StartChoice, resolve_start
from revarb.variational.networks import Network
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from revarb.models.outlier_detection import Outlier


class Trained(NamedTuple):
    """The arrays of a trained model, all z-scored: what a model file holds."""

    parameters: Parameters  # its states are written out, also those of a recognition model
    chain: Chain[Posterior]
    final_states: tuple[StartState, ...]
    networks: tuple[Network, ...] | None = None  # of a recognition model


@dataclass(frozen=True, eq=False, repr=False)
class FittedRGP(Predictor):
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
        Noises and band widths from held-out stretches; None where there was no calibration.
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
        calibrated = "not calibrated" if self.calibration is None else f"held-out error {self.calibration.error:.3g}"
        return f"FittedRGP({columns}, status={self.status.words!r}, {calibrated})"

    def _own_tables(self) -> tuple[SummaryTable, ...]:
        from revarb.models.rgp_summary import rgp_tables  # which imports this module

        return rgp_tables(self)

    def plot_fit(self, records: Series | Sequence[Series] | None = None) -> "Figure":
        """Draw the fitted outputs, the latent path of every hidden layer, and the bound.

        Parameters
        ----------
        records : Series or list of Series, optional
            The training records, to draw the measured outputs too; a model does not keep them.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("fit.png")`; a notebook displays it.
        """
        from revarb.models.fit_figure import draw_fit  # matplotlib is slow to import

        return draw_fit(self, None if records is None else as_records(records))

    def outliers(self, level: float = 1e-3) -> "tuple[Outlier, ...]":
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
        from revarb.models.outlier_detection import find_outliers  # which imports this module

        return find_outliers(self, level)

    @property
    def verdict(self) -> str | None:
        """What the held-out error says about the model, in a sentence; None where nothing was held out."""
        known = self.calibration
        if self.choice is not None or known is None or known.mean_error is None:
            return super().verdict
        states, outputs = min(self.spec.latent_dims), len(self.output_names)
        lacking = f"latent_dim={outputs} (it has {states} latent state(s) for {outputs} outputs)"
        try_first = lacking if states < outputs else ""
        return state_held_out(known.error, known.linear_error, known.mean_error, try_first)

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
        return resolve_start(start, self.preprocessor, self.trained.chain, self.final_states)

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
        u : array-like [T, inputs] or data frame
            Inputs; None for a system without inputs.
        method : str
            "moments": mean and standard deviation, uncertainty propagated with full covariance.
            "mean": mean-only run, no uncertainty.
            "samples": sampled trajectories, each of which follows one draw of every layer's function.
            "network": the networks of a recognition model in place of the hidden layers, no uncertainty.
        start : str, Window or StartState
            "cold": zero mean and unit variance at the first row with a full window of inputs behind it, as in the
            authors' code. The rows before it are simulated with the missing past inputs at their training mean, and
            have no effect on later rows.
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
        origin = self.resolve_start(start)
        if method == "network":
            path = simulate_networks(self.preprocessor, self.trained.chain, self._networks, u, origin, steps)
        else:
            path = simulate_chain(self.preprocessor, self.chain, u, method, origin, steps, samples, seed)
        path = replace(path, degrees_of_freedom=self._degrees)
        calibrated = self._with_calibrated_std(path, 1 + np.arange(len(path)), origin.cold)
        return self.preprocessor.add_inputs(calibrated, u)

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
        rows = align_record(self.preprocessor, self.chain, record)
        ahead = min(horizon, len(rows.y))
        moments = predict_ahead(self.trained.chain, self.chain, *rows, self.order.reach, ahead)
        path = self.preprocessor.to_trajectory(
            "moments", self.skip, moments.mean, moments.variance, start=name_horizon(horizon)
        )
        path = replace(path, degrees_of_freedom=self._degrees)
        path = self._with_calibrated_std(path, np.full(len(path), horizon), np.arange(len(path)) < ahead)
        return self.preprocessor.add_inputs(path, record.u, record.index)

    def refit(
        self, records: Series | Sequence[Series], progress: bool = False, *, calibrate: bool = False
    ) -> "FittedRGP":
        """Train further on more records, from the trained parameters: a fifth of the iterations of a fit.

        The model that comes back knows the records that are given, and no others: it does not keep those of its own
        fit, so pass old and new ones together. Inputs and outputs keep their scaling, and the number of inducing inputs
        stays. Ctrl-C returns the best model so far, with status "interrupted".

        Parameters
        ----------
        records : Series or list of Series
            All records to train on, with the columns of the model.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.
        calibrate : bool
            Set noises and bands again on held-out stretches of these records. It takes four fits from scratch. Without
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

    @property
    def _degrees(self) -> float | None:
        # The sum of a Gaussian state and Student-t noise is taken as a Student-t with the variance of the sum.
        return None if self.chain.degrees is None else float(self.chain.degrees)

    def _with_calibrated_std(self, path: Trajectory, steps: np.ndarray, cold: bool | np.ndarray) -> Trajectory:
        if self.calibration is None or path.std is None:
            return path
        factors = self.calibration.width_factors(steps, cold)[:, None]
        samples = None if path.samples is None else path.mean + factors * (path.samples - path.mean)
        with np.errstate(over="ignore"):
            std = path.std * factors
        check_finite(path.method, std, samples)
        return replace(path, std=std, samples=samples)

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
        return recognise_paths(self.preprocessor, self.trained.chain, self._networks, u, steps)

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
        lags, states = self.spec.lags, self._states
        means, variances = (map_blocks(current_windows, x[-1], lags, self.lengths) for x in (states.mu, states.lam))
        y = observe_independent(self.trained.chain, np.asarray(means), np.asarray(variances))
        parts = (split_rows(np.asarray(values), lags, self.lengths) for values in (y.mean, y.variance))
        degrees = None if self.trained.chain.degrees is None else float(self.trained.chain.degrees)
        return [
            replace(
                self.preprocessor.to_trajectory("smoothed", 0, *part, start="training record"),
                degrees_of_freedom=degrees,
            )
            for part in zip(*parts, strict=True)
        ]

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
