"""Until models/ is merged: the file format of ARX and the check of a band, which stand in models/ from then on."""

from typing import Any

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import regressor_sizes
from revarb.errors import InputError, check_integer
from revarb.gp.layer import Linear
from revarb.models.container import fill_template
from revarb.models.fitted_arx import FittedARX
from revarb.models.model_file import (
    MAX_ORDER,
    Arrays,
    Header,
    ModelFormat,
    blank_array,
    common_fields,
    register_format,
)
from revarb.simulation.chain import StartState


def check_residual_std(std: np.ndarray) -> np.ndarray:
    """Return the band; raise `InputError` where it is not positive."""
    if not (std > 0.0).all():
        raise InputError("a residual standard deviation is not positive")
    return std


def _write_arx(model: FittedARX) -> tuple[dict[str, Any], dict[str, Any]]:
    horizons, ends = len(model.horizon_std), model.final_states
    arrays = {"residual_std": model.residual_std, "model": model.model}
    if horizons:
        arrays["horizon_std"] = model.horizon_std
    if ends:  # covariances are zero
        arrays["final_means"], arrays["final_inputs"] = (
            np.stack(each) for each in zip(*((end.mean, end.past_u) for end in ends), strict=True)
        )
    return {"horizons": horizons, "final_states": len(ends)}, arrays


def _read_arx(header: Header, arrays: Arrays) -> FittedARX:
    fields = common_fields(header)
    # The first files have neither.
    horizons, ends = (check_integer(name, header.get(name, 0), 0, MAX_ORDER) for name in ("horizons", "final_states"))
    trained = fill_template(_arx_template(fields.preprocessor, horizons, ends), arrays)
    std = check_residual_std(trained["residual_std"])
    states = ()
    if ends:
        known = blank_array(*trained["final_means"].shape[1:] * 2)
        pairs = zip(trained["final_means"], trained["final_inputs"], strict=True)
        states = tuple(StartState(mean, known, past_u) for mean, past_u in pairs)
    horizon_std = trained.get("horizon_std", np.empty((0, len(std))))
    return FittedARX(*fields, std, trained["model"], states, horizon_std)


def _arx_template(prep: Preprocessor, horizons: int, ends: int) -> dict[str, Any]:
    inputs, outputs, order, blank = len(prep.input_names), len(prep.output_names), prep.order, blank_array
    [regressors, _] = regressor_sizes(order, (outputs,), inputs)
    template = {"residual_std": blank(outputs), "model": Linear(blank(regressors, outputs), blank(outputs))}
    if horizons:
        template["horizon_std"] = blank(horizons, outputs)
    if ends:
        template["final_means"] = blank(ends, order.lags * outputs)
        template["final_inputs"] = blank(ends, order.reach, inputs)
    return template


register_format(ModelFormat("ARX", FittedARX, _write_arx, _read_arx))
