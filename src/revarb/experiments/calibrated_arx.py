"""ARX with a band that is calibrated by the same held-out stretches and the same rule as REVARB's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from revarb.baselines.arx import ARX
from revarb.config.recipe import Recipe
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.datasets.registry import Split
from revarb.training.calibration_rule import HeldOutRun, Noises, choose_output_noise, find_median_width
from revarb.training.stretches import FOLDS, Stretch, cut_stretches


def simulate_calibrated_arx(split: Split[Series]) -> Trajectory:
    """Fit ARX, calibrate its band, and simulate the test part. There is no latent noise to choose."""
    spec, record = ARX(), split.train
    prep = Preprocessor.from_records([record], Order(split.lags, split.lags, 1))
    stretches = cut_stretches([record], prep)
    held = [run for fold in range(FOLDS) for run in _hold_out(spec, record, stretches, fold, prep)]
    noise = choose_output_noise(held, least=Recipe().output_noise)  # as for REVARB
    path = spec.fit(record).simulate(split.test.u)
    std = np.sqrt(noise) * prep.scaling.y_std * find_median_width(held, Noises(1.0, noise))
    return replace(path, std=np.broadcast_to(std, path.mean.shape))


def _hold_out(
    spec: ARX, record: Series, stretches: Sequence[Stretch], fold: int, prep: Preprocessor
) -> list[HeldOutRun]:
    """Fit to everything but the stretches of one fold, and simulate these; errors are z-scored."""
    own = [stretch for stretch in stretches if stretch.fold == fold]
    edges = [0, *(edge for stretch in own for edge in (stretch.begin, stretch.end)), len(record)]
    parts = [record[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    error = record.y - spec.fit([part for part in parts if len(part) > prep.skip]).simulate(record.u).mean
    error = error / prep.scaling.y_std
    return [
        HeldOutRun(error[stretch.rows].ravel(), np.zeros(error[stretch.rows].size),
             np.arange(stretch.begin, stretch.end, dtype=np.float64).repeat(error.shape[1]))
        for stretch in own
    ]  # fmt: skip
