"""Every model of revarb as a forecaster of sktime (extra `sktime`)."""

from typing import Any, ClassVar

import numpy as np

from revarb.adapter import fit_model, merge_model_params, simulate_after
from revarb.data.series import Series, Window
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError

try:
    import pandas as pd
    from sktime.datatypes import update_data
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
except ModuleNotFoundError:
    raise InputError('revarb.sktime needs sktime; pip install "revarb[sktime]"') from None


class Forecaster(BaseForecaster):
    """Forecasts y by a simulation that starts where the record ended, driven by the inputs X.

    Parameters
    ----------
    model : configuration, optional
        What is fitted, such as `revarb.RGP(lags=5)` or `revarb.ARX()`; default: what `revarb.fit` chooses. Its values
        are parameters too: `model__lags`, `model__recipe__jitter`.
    random_state : int
        Seed of the fit.

    Attributes
    ----------
    model_ : FittedRGP, Ensemble, …
        The trained model, with all its methods; its sampling interval is 1.

    Notes
    -----
    Missing values of y are allowed. A forecast needs the rows of X from the first one after the record to the last
    one that is forecast, whichever of them are in `fh`. After `update(y, X, update_params=False)` forecasts start from
    the states that the model infers from all rows by filtering; `update_params=True` fits again to all rows.

    Examples
    --------
    >>> import numpy as np, pandas as pd, revarb
    >>> from revarb.sktime import Forecaster
    >>> X = pd.DataFrame({"valve": np.sin(np.arange(200.0) ** 1.5)})
    >>> y = pd.Series(np.convolve(X["valve"], [0.0, 0.5, 0.3])[:200], name="level")
    >>> forecaster = Forecaster(revarb.ARX(lags=2, input_lags=3)).fit(y[:150], X=X[:150])
    >>> forecast = forecaster.predict(fh=[1, 2, 3], X=X[150:153])
    >>> bool(np.allclose(forecast, y[150:153]))
    True
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "revarb developers",
        "y_inner_mtype": "pd.DataFrame",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:non_contiguous_X": False,
        "capability:update": True,
        "capability:random_state": True,
        "requires-fh-in-fit": False,
        "property:randomness": "derandomized",
    }
    _config: ClassVar[dict[str, Any]] = {"remember_data": False}  # `_update` remembers them

    def __init__(self, model: Any = None, random_state: int = 0):
        self.model = model
        self.random_state = random_state
        super().__init__()
        self._y = self._X = None  # for those who set the config remember_data

    def set_params(self, **params: Any) -> "Forecaster":
        """Set parameters, also those of the model, such as `model__lags`: the model becomes a changed copy.

        Parameters
        ----------
        **params
            Values by the names of `get_params`.

        Returns
        -------
        Forecaster
            Itself.
        """
        return super().set_params(**merge_model_params(self.model, params))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> Any:
        """Parameters for the checks of sktime.

        Parameters
        ----------
        parameter_set : str
            Not used.

        Returns
        -------
        list of dict
        """
        from revarb import ARX, Mean

        return [{"model": ARX(lags=1, input_lags=1)}, {"model": Mean()}]

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None = None, fh: Any = None) -> "Forecaster":
        _check_even(y.index)
        self._rows_y, self._rows_X, self._updated = y, X, False
        self.model_ = fit_model(self.model, Series(**self._tables()), self.random_state)
        return self

    def _update(self, y: pd.DataFrame, X: pd.DataFrame | None = None, update_params: bool = True) -> "Forecaster":
        rows: tuple[Any, Any] = update_data(self._rows_y, y), update_data(self._rows_X, X)
        if update_params:
            return self._fit(*rows)
        _check_even(rows[0].index)
        (self._rows_y, self._rows_X), self._updated = rows, True
        return self

    def _predict(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> pd.DataFrame:
        path, rows = self._simulate(fh, X)
        return self._make_frame(fh, path.mean[rows], self._rows_y.columns)

    def _predict_quantiles(  # pyright: ignore[reportIncompatibleMethodOverride] (sktime's base class has **kwargs)
        self, fh: ForecastingHorizon, X: pd.DataFrame | None, alpha: list[float]
    ) -> pd.DataFrame:
        path, rows = self._simulate(fh, X)
        # A row per sample, in it the quantiles of the first output, then those of the second.
        quantiles = np.stack([_compute_quantile(path, each)[rows] for each in alpha], axis=2)
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return self._make_frame(fh, quantiles.reshape(len(rows), -1), columns)

    def _predict_var(  # pyright: ignore[reportIncompatibleMethodOverride] (likewise)
        self, fh: ForecastingHorizon, X: pd.DataFrame | None = None, cov: bool = False
    ) -> pd.DataFrame:
        path, rows = self._simulate(fh, X)
        if path.std is None:
            raise InputError(f"a {type(self.model_).__name__} has no standard deviation; forecast its mean only")
        return self._make_frame(fh, path.std[rows] ** 2, self._get_varnames())

    def _simulate(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> tuple[Trajectory, np.ndarray]:
        # The run to the last row that is forecast, and which of its rows are.
        ahead = np.asarray(fh.to_relative(self.cutoff).to_numpy(), dtype=int)
        steps = int(ahead.max())
        u = np.empty((steps, 0)) if self._rows_X is None else self._select_inputs(fh, X, steps)
        past = Window(**self._tables())
        return simulate_after(self.model_, past, u, past if self._updated else "continue"), ahead - 1

    def _select_inputs(self, fh: ForecastingHorizon, X: pd.DataFrame | None, steps: int) -> np.ndarray:
        wanted = ForecastingHorizon(np.arange(1, steps + 1), freq=fh.freq).to_absolute_index(self.cutoff)
        missing = wanted if X is None else wanted.difference(X.index)
        if X is None or len(missing):
            raise InputError(
                f"a forecast of {steps} steps needs the rows of X from {wanted[0]} to {wanted[-1]}; {missing[0]} is "
                "missing"
            )
        assert self._rows_X is not None
        names = list(self._rows_X.columns)
        if set(X.columns) != set(names):
            raise InputError(f"X must have the columns that it had in fit, {names}, received {list(X.columns)}")
        return X.loc[wanted, names].to_numpy(dtype=np.float64)

    def _tables(self) -> dict[str, Any]:
        # What a `Series` of all rows takes. Its index is sktime's, which need not be one of times.
        y, output_names = _read_table(self._rows_y)
        u, input_names = (None, None) if self._rows_X is None else _read_table(self._rows_X)
        return {"u": u, "y": y, "input_names": input_names, "output_names": output_names}

    def _make_frame(self, fh: ForecastingHorizon, values: np.ndarray, columns: Any) -> pd.DataFrame:
        return pd.DataFrame(values, index=fh.to_absolute_index(self.cutoff), columns=columns)


def _check_even(index: Any) -> None:
    # Times of a calendar are even where they have a frequency: months differ in length.
    if len(index) < 3:
        return
    if isinstance(index, pd.DatetimeIndex):
        even = (index.freq or pd.infer_freq(index)) is not None
    else:
        even = np.ptp(np.diff(getattr(index, "asi8", index))) == 0
    if not even:
        raise InputError(
            f"the index of y must be in even steps, and the {len(index)} rows from {index[0]} to {index[-1]} are not; "
            "add the missing rows, with NaN in y"
        )


def _read_table(table: pd.DataFrame) -> tuple[np.ndarray, list[str] | None]:
    # The values, and the names of the columns where they are texts.
    named = all(isinstance(name, str) for name in table.columns)
    return table.to_numpy(dtype=np.float64), list(table.columns) if named else None


def _compute_quantile(path: Trajectory, share: float) -> np.ndarray:
    if share == 0.5:
        return path.mean
    lower, upper = path.interval(abs(1.0 - 2.0 * share))
    return lower if share < 0.5 else upper
