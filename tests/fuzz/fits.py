"""Fits of valid but ill-conditioned records: a model of finite numbers, or a clear error."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import revarb
from fuzz.harness import Property, attempt, check_path
from revarb.data.series import Series
from revarb.models.recipe import GROUPS, Recipe, Stage
from revarb.models.rgp import RGP
from support import small

SAMPLES = 20


def _row(values: np.ndarray) -> np.ndarray:
    return np.arange(len(values))[:, None]


KINDS = {
    "clean": lambda values, size: values,
    "offset": lambda values, size: values + size,
    "scale": lambda values, size: values * size,
    "outlier": lambda values, size: np.where(_row(values) == len(values) // 2, size, values),
    "jump": lambda values, size: np.where(_row(values) >= len(values) // 2, values + size, values),
    "nearly constant": lambda values, size: np.where(_row(values) == len(values) - 1, size * (1.0 + 1e-9), size),
    "duplicates": lambda values, size: np.resize(values[:3], values.shape) * size,
    "ramp": lambda values, size: size * _row(values).astype(float),
    "two values": lambda values, size: np.where(_row(values) % 2 == 0, size, -size),
    "spike at the start": lambda values, size: np.where(_row(values) == 0, size, 0.0),
}
sizes = st.sampled_from([1.0, 1e12, 1e-300, 1e300, 1e30, -1e6, 1e-12, 1e150, 5e-324, 1.7e308])
columns = st.tuples(st.sampled_from(list(KINDS)), sizes)
recipes = st.sampled_from(
    [{}, {"hidden_noise": 1e-12, "output_noise": 1e-12}, {"jitter": 1e-300}, {"lengthscale_factor": 1e200},
     {"kernel_variance": 1e-300}, {"zeta_noise": 0.0}, {"latent_variance": 1e300}, {"initial_variance": 1e-300}]
)  # fmt: skip
lengths = st.sampled_from([SAMPLES] * 6 + [2, 4, 5, 6])
cases = st.tuples(columns, columns, lengths, recipes)


def fit_is_finite(case) -> None:
    """Bound, parameters, training fit, simulation and file."""
    (kind_u, size_u), (kind_y, size_y), length, changes = case
    clean = small.record(samples=length)
    with np.errstate(all="ignore"):
        u, y = KINDS[kind_u](clean.u, size_u), KINDS[kind_y](clean.y, size_y)
    record = attempt(lambda: Series(u, y))
    if record is None:
        return
    recipe = Recipe(stages=(Stage(GROUPS, 2),), kmeans_starts=2, **changes)
    model = attempt(lambda: RGP(lags=2, input_lags=2, hidden=1, inducing=4, recipe=recipe).fit(record))
    if model is None:
        return
    assert np.isfinite(model.bound) and repr(model)
    for path in model.smooth():
        check_path(path)
    assert np.isfinite(model.latent_paths()[0]).all()
    for method in ("mean", "moments"):
        check_path(attempt(lambda method=method: model.simulate(record.u, method=method)))
    assert revarb.load(model.save(Path("m.rgp"))).bound == model.bound


PROPERTIES = {"fits of ill-conditioned records": Property(fit_is_finite, cases, 20)}
