"""File formats of the trained baselines, for models/model_file.py."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float64

from revarb.baselines.gp_narx import FittedGPNARX
from revarb.baselines.lstm import FittedLSTM
from revarb.baselines.lstm_network import LSTMNetwork
from revarb.baselines.mlp_narx import FittedMLPNARX, Perceptron
from revarb.baselines.per_output import FittedPerOutput
from revarb.baselines.training_mean import FittedMean
from revarb.config.recognition import MAX_UNITS
from revarb.data.windows import regressor_sizes
from revarb.errors import InputError, check_integer, check_number
from revarb.gp.layer import Linear
from revarb.gp.posterior import Posterior
from revarb.models.by_residuals import FittedByResiduals
from revarb.models.container import fill_template
from revarb.models.fitted_arx import FittedARX
from revarb.models.model_file import (
    MAX_ORDER,
    Arrays,
    CommonFields,
    Header,
    ModelFormat,
    blank_array,
    check_chain,
    common_fields,
    members_from_parts,
    members_parts,
)
from revarb.simulation.chain import Chain, StartState

Parts = tuple[dict[str, Any], dict[str, Any]]


def _write_mean(model: FittedMean) -> Parts:
    return {}, _get_residuals(model)


def _read_mean(header: Header, arrays: Arrays) -> FittedMean:
    fields = common_fields(header)
    trained = fill_template({"residual_std": blank_array(_count_outputs(fields))}, arrays)
    return FittedMean(*fields, _check_residuals(trained["residual_std"]))


def _write_arx(model: FittedARX) -> Parts:
    horizons, ends = len(model.horizon_std), model.final_states
    arrays = {**_get_residuals(model), "model": model.model}
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
    trained = fill_template(_arx_template(fields, horizons, ends), arrays)
    return FittedARX(
        *fields,
        _check_residuals(trained["residual_std"]),
        trained["model"],
        _join_states(trained["final_means"], trained["final_inputs"]) if ends else (),
        trained.get("horizon_std", np.empty((0, _count_outputs(fields)))),
    )


def _arx_template(fields: CommonFields, horizons: int, ends: int) -> dict[str, Any]:
    outputs, order, blank = _count_outputs(fields), fields.preprocessor.order, blank_array
    linear = Linear(blank(_count_regressors(fields), outputs), blank(outputs))
    template = {"residual_std": blank(outputs), "model": linear}
    if horizons:
        template["horizon_std"] = blank(horizons, outputs)
    if ends:
        template["final_means"] = blank(ends, order.lags * outputs)
        template["final_inputs"] = blank(ends, order.reach, len(fields.preprocessor.input_names))
    return template


def _join_states(means: np.ndarray, inputs: np.ndarray) -> tuple[StartState, ...]:
    known = blank_array(means.shape[1], means.shape[1])
    return tuple(StartState(mean, known, past_u) for mean, past_u in zip(means, inputs, strict=True))


def _write_gp_narx(model: FittedGPNARX) -> Parts:
    [layer] = model.chain.hidden
    return {"inducing": len(layer.zeta), "evidence": model.evidence}, {"layer": layer}


def _read_gp_narx(header: Header, arrays: Arrays) -> FittedGPNARX:
    fields = common_fields(header)
    inducing = check_integer("inducing", header["inducing"], least=1)
    size, blank = _count_regressors(fields), blank_array
    beta, reduction = blank(inducing, _count_outputs(fields)), blank(inducing, inducing)
    layer = Posterior(blank(inducing, size), blank(size), blank(), blank(), beta, reduction)
    trained = fill_template({"layer": layer}, arrays)["layer"]
    chain: Chain[Posterior] = Chain((trained,), None, fields.preprocessor.order.lags)
    check_chain(chain)
    return FittedGPNARX(*fields, chain, check_number("evidence", header["evidence"]))


def _write_mlp_narx(model: FittedMLPNARX) -> Parts:
    return {"units": model.model.hidden.out_features}, {**_get_residuals(model), "model": model.model}


def _read_mlp_narx(header: Header, arrays: Arrays) -> FittedMLPNARX:
    fields = common_fields(header)
    units, outputs = check_integer("units", header["units"], 1, MAX_UNITS), _count_outputs(fields)
    network = _blank_network(Perceptron.draw, _count_regressors(fields), units, outputs)
    trained = fill_template({"residual_std": blank_array(outputs), "model": network}, arrays)
    return FittedMLPNARX(*fields, _check_residuals(trained["residual_std"]), trained["model"])


def _write_lstm(model: FittedLSTM) -> Parts:
    cells = model.network.cells
    return {"layers": len(cells), "units": cells[0].hidden_size}, {**_get_residuals(model), "network": model.network}


def _read_lstm(header: Header, arrays: Arrays) -> FittedLSTM:
    fields = common_fields(header)
    layers = check_integer("layers", header["layers"], 1, 3)
    units = check_integer("units", header["units"], 1, MAX_UNITS)
    prep, outputs = fields.preprocessor, _count_outputs(fields)
    inputs = prep.order.input_lags * len(prep.input_names)
    network = _blank_network(LSTMNetwork.draw, inputs, layers, units, outputs)
    trained = fill_template({"residual_std": blank_array(outputs), "network": network}, arrays)
    return FittedLSTM(*fields, _check_residuals(trained["residual_std"]), trained["network"])


def _write_per_output(model: FittedPerOutput) -> Parts:
    headers, arrays = members_parts(model.members)
    return {"members": headers}, arrays


def _read_per_output(header: Header, arrays: Arrays) -> FittedPerOutput:
    fields, members = common_fields(header), members_from_parts(header["members"], arrays)
    names = tuple(name for member in members for name in member.output_names)
    if names != fields.preprocessor.output_names:
        raise InputError(f"its members have the outputs {list(names)}, but it names {list(header['output_names'])}")
    return FittedPerOutput(*fields, tuple(members))


def _get_residuals(model: FittedByResiduals) -> dict[str, np.ndarray]:
    return {"residual_std": model.residual_std}


def _check_residuals(std: Float64[np.ndarray, " Dy"]) -> Float64[np.ndarray, " Dy"]:
    if not (std > 0.0).all():
        raise InputError("a residual standard deviation is not positive")
    return std


def _count_outputs(fields: CommonFields) -> int:
    return len(fields.preprocessor.output_names)


def _count_regressors(fields: CommonFields) -> int:
    prep = fields.preprocessor
    return regressor_sizes(prep.order, (_count_outputs(fields),), len(prep.input_names))[0]


def _blank_network(make: Any, *sizes: int) -> Any:
    # The network's tree with arrays that take no memory, whatever sizes the header contains.
    shapes = eqx.filter_eval_shape(make, *sizes, jax.random.key(0))
    return jax.tree.map(lambda leaf: blank_array(*leaf.shape), shapes)


BASELINE_FORMATS = (
    ModelFormat("Mean", FittedMean, _write_mean, _read_mean),
    ModelFormat("ARX", FittedARX, _write_arx, _read_arx),
    ModelFormat("GP-NARX", FittedGPNARX, _write_gp_narx, _read_gp_narx),
    ModelFormat("MLP-NARX", FittedMLPNARX, _write_mlp_narx, _read_mlp_narx),
    ModelFormat("LSTM", FittedLSTM, _write_lstm, _read_lstm),
    ModelFormat("per output", FittedPerOutput, _write_per_output, _read_per_output),
)
