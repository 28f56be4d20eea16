"""Fits of valid but ill-conditioned records: a model of finite numbers, or a clear error."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import revarb
from fuzz.arrays import Gaps, gaps
from fuzz.harness import Property, attempt, check_path
from revarb.data.series import Series
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import GROUPS, Recipe, Stage
from revarb.models.rgp import RGP
from support import small

SAMPLES = 20
LONG_ENOUGH = 112  # to be calibrated


def _spoiled(kind: str, clean: np.ndarray, size: float) -> np.ndarray:
    values = np.array(clean)
    rows = np.arange(len(values))
    match kind:
        case "offset":
            return values + size
        case "scale":
            return values * size
        case "outlier":
            values[len(values) // 2] = size
        case "jump":
            values[len(values) // 2 :] += size
        case "nearly constant":
            values = np.full_like(values, size)
            values[-1] *= 1.0 + 1e-9
        case "duplicates":
            values = np.resize(values[:3], values.shape) * size
        case "ramp":
            values = size * rows[:, None].astype(float)
        case "two values":
            values = np.where(rows[:, None] % 2 == 0, size, -size)
        case "spike at the start":
            values = np.zeros_like(values)
            values[0] = size
    return values


KINDS = ["clean", "offset", "scale", "outlier", "jump", "nearly constant", "duplicates", "ramp", "two values",
         "spike at the start"]  # fmt: skip
sizes = st.sampled_from([1.0, 1e12, 1e-300, 1e300, 1e30, -1e6, 1e-12, 1e150, 5e-324, 1.7e308])
columns = st.tuples(st.sampled_from(KINDS), sizes)
recipes = st.sampled_from(
    [{}, {"hidden_noise": 1e-12, "output_noise": 1e-12}, {"jitter": 1e-300}, {"lengthscale_factor": 1e200},
     {"kernel_variance": 1e-300}, {"zeta_noise": 0.0}, {"latent_variance": 1e300}, {"initial_variance": 1e-300}]
)  # fmt: skip
lengths = st.sampled_from([SAMPLES] * 6 + [2, 4, 5, 6])
cases = st.tuples(columns, columns, lengths, recipes)


def fit_is_finite(case) -> bool:
    """Bound, parameters, training fit, simulation and file."""
    (kind_u, size_u), (kind_y, size_y), length, changes = case
    clean = small.record(samples=length)
    with np.errstate(all="ignore"):
        u, y = _spoiled(kind_u, clean.u, size_u), _spoiled(kind_y, clean.y, size_y)
    record = attempt(lambda: Series(u, y))
    recipe = Recipe(stages=(Stage(GROUPS, 2),), kmeans_starts=2, **changes)
    spec = RGP(lags=2, input_lags=2, hidden=1, inducing=4, recipe=recipe)
    model = None if record is None else attempt(lambda: spec.fit(record))
    if model is None:
        return False
    return _is_sound(model, u)


def _is_sound(model: FittedRGP, u: np.ndarray) -> bool:
    assert np.isfinite(model.bound) and repr(model)
    fitted, (mean, std) = model.smooth()[0].mean, model.latent_paths()[0]
    assert np.isfinite(fitted).all() and np.isfinite(mean).all() and np.isfinite(std).all()
    for method in ("mean", "moments"):
        check_path(attempt(lambda method=method: model.simulate(u, method=method)))
    assert revarb.load(model.save(Path("m.rgp"))).bound == model.bound
    return True


def fit_with_gaps_is_finite(where: Gaps) -> bool:
    """The same with its bands calibrated, and the paths through the gaps."""
    clean = small.record(samples=LONG_ENOUGH)
    y = where.cut_into(clean.y)
    y[-1] = np.nan  # a gap after the lags in every case, so that all cases share one compiled program
    record = Series(clean.u, y)
    recipe = Recipe(stages=(Stage(GROUPS, 2),), kmeans_starts=1)
    spec = RGP(lags=2, input_lags=2, hidden=1, inducing=5, recipe=recipe)
    model = attempt(lambda: spec.fit(record))
    if model is None:
        return False
    for path in model.smooth():
        check_path(path)
    return _is_sound(model, clean.u)


PROPERTIES = {
    "fits of ill-conditioned records": Property(fit_is_finite, cases, 20),
    "fits of records with gaps, calibrated": Property(fit_with_gaps_is_finite, gaps(LONG_ENOUGH, 1), 15),
}
