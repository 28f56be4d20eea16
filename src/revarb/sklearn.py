"""Every model of revarb as an estimator of scikit-learn (extra `sklearn`)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from revarb.adapter import fit_model, merge_model_params, simulate_after, simulate_inputs
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from revarb.models.configuration import check_word

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.metrics import r2_score
    from sklearn.utils import Tags, check_array, check_consistent_length
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:
    raise InputError('revarb.sklearn needs scikit-learn; pip install "revarb[sklearn]"') from None

EXPECTED_FAILED_CHECKS = {
    "check_methods_sample_order_invariance": "rows are samples in the order of time: another order is another input",
    "check_methods_subset_invariance": "a row depends on those before it: a subset of the rows is another input",
}
"""Checks of `sklearn.utils.estimator_checks.check_estimator` that cannot hold for a dynamic system, with the reason."""


class Simulator(RegressorMixin, BaseEstimator):
    """Simulates y from X alone: a regressor whose rows are samples in the order of time.

    Parameters
    ----------
    model : configuration, optional
        What is fitted, such as `revarb.RGP(lags=5)` or `revarb.ARX()`; default: what `revarb.fit` chooses. Its values
        are parameters too: `model__lags`, `model__recipe__jitter`.
    start : "continue" or "cold"
        Where a prediction starts. "continue": X has the rows right after those of the fit, as in `TimeSeriesSplit` or
        `train_test_split(shuffle=False)`; models that simulate from a cold start only (GP-NARX, MLP-NARX, LSTM) run
        through the inputs of the fit first. "cold": X is another record, or that of the fit.
    random_state : int
        Seed of the fit.

    Attributes
    ----------
    model_ : FittedRGP, Ensemble, …
        The trained model, with all its methods.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : array of str
        Their names, where X is a data frame.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> from revarb.sklearn import Simulator
    >>> from sklearn.model_selection import TimeSeriesSplit, cross_val_score
    >>> u = np.sin(np.arange(200.0) ** 1.5)
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:200]
    >>> simulator = Simulator(revarb.ARX(lags=2, input_lags=3))
    >>> cross_val_score(simulator, u[:, None], y, cv=TimeSeriesSplit(3)).round(3).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, model: Any = None, *, start: Literal["continue", "cold"] = "continue", random_state: int = 0):
        self.model = model
        self.start = start
        self.random_state = random_state

    def set_params(self, **params: Any) -> "Simulator":
        """Set parameters, also those of the model, such as `model__lags`: the model becomes a changed copy.

        Parameters
        ----------
        **params
            Values by the names of `get_params`.

        Returns
        -------
        Simulator
            Itself.
        """
        return super().set_params(**merge_model_params(self.model, params))

    def fit(self, X: Any, y: Any) -> "Simulator":
        """Train the model on one record.

        Parameters
        ----------
        X : array-like [T, inputs] or data frame
            Inputs, a row per sample.
        y : array-like [T] or [T, outputs], or data frame
            Outputs; NaN is a missing value.

        Returns
        -------
        Simulator
            Itself.

        Raises
        ------
        InputError
            If the record does not fit the model.
        """
        check_word("start", self.start, ("continue", "cold"))
        if y is None:
            raise InputError("Simulator requires y to be passed, but the target y is None")
        u = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=2))
        outputs = _check_outputs(y)
        check_consistent_length(u, outputs)
        framed = hasattr(X, "columns"), hasattr(y, "index")  # a frame has names and times
        self._record = Series(X if framed[0] else u, y if framed[1] else outputs)
        self._one_output = outputs.ndim == 1
        self.model_ = fit_model(self.model, self._record, self.random_state)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Simulate the outputs.

        Parameters
        ----------
        X : array-like [T, inputs] or data frame
            Inputs; with `start="continue"` those right after the inputs of the fit.
        return_std : bool
            Return the standard deviation of a measurement too.

        Returns
        -------
        mean : array [T] or [T, outputs]
            As y was in the fit.
        std : array like mean
            With `return_std` only.

        Raises
        ------
        InputError
            If the inputs do not fit the model, or it has no standard deviation.
        """
        path = self._simulate(X)
        if not return_std:
            return self._shape(path.mean)
        if path.std is None:
            raise InputError(f"a {type(self.model_).__name__} has no standard deviation; leave out return_std")
        return self._shape(path.mean), self._shape(path.std)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the simulated mean, at the measured values of y.

        Parameters
        ----------
        X : array-like [T, inputs] or data frame
            Inputs.
        y : array-like [T] or [T, outputs]
            Outputs; NaN, and the first `path.skip` rows after a cold start, are left out.
        sample_weight : array-like [T], optional
            Weights of the rows.

        Returns
        -------
        float
            The mean over the outputs.
        """
        path = self._simulate(X)
        measured = _check_outputs(y)
        weights = np.ones(len(path)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        check_consistent_length(path.mean, measured, weights)
        columns = zip(path.mean.T, measured.reshape(len(path), -1).T, strict=True)
        return float(np.mean([_score_column(mean, each, weights, path.skip) for mean, each in columns]))

    def _simulate(self, X: Any) -> Trajectory:
        check_is_fitted(self)
        u = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        if self.start == "cold":
            return simulate_inputs(self.model_, u)
        return simulate_after(self.model_, self._record, u)

    def _shape(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self._one_output else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # its targets in the checks do not depend on earlier rows
        return tags


def _check_outputs(y: Any) -> np.ndarray:
    options: dict[str, Any] = {"dtype": np.float64, "ensure_2d": False, "ensure_all_finite": "allow-nan"}
    return check_array(y, input_name="y", **options)


def _score_column(mean: np.ndarray, measured: np.ndarray, weights: np.ndarray, skip: int) -> float:
    used = np.isfinite(measured) & (np.arange(len(mean)) >= skip)
    if used.sum() < 2:
        raise InputError(f"R² needs two measured rows, received {used.sum()} after the first {skip}; pass more rows")
    return float(r2_score(measured[used], mean[used], sample_weight=weights[used]))
