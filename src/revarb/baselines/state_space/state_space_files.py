"""File formats of the trained state-space models, for models/model_file.py."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from revarb.baselines.state_space.fitted_state_space import FittedStateSpace
from revarb.baselines.state_space.gibbs_chain import Draw
from revarb.baselines.state_space.gpssm import GPSSM, FittedGPSSM
from revarb.baselines.state_space.laplace_basis import LaplaceBasis
from revarb.baselines.state_space.reduced_rank import FittedReducedRankGPSSM
from revarb.baselines.state_space.transition import Transition
from revarb.config.plain_values import check_keys
from revarb.errors import InputError, check_integer, check_number
from revarb.gp.layer import Layer, Linear
from revarb.models.container import fill_template
from revarb.models.model_file import (
    MAX_ORDER,
    Arrays,
    CommonFields,
    Header,
    ModelFormat,
    blank_array,
    check_starts,
    common_fields,
)
from revarb.simulation.chain import StartState

Tree = dict[str, Any]
MAX_STATES = 1000


class StartStates(NamedTuple):
    """The start states of a trained state-space model."""

    cold: StartState
    final_states: tuple[StartState, ...]


def write_starts(model: FittedStateSpace) -> tuple[dict[str, int], Tree]:
    """The start states, as header and arrays: `cold`, then the ends of the records, stacked."""
    starts = (model.cold, *model.final_states)
    arrays = {name: np.stack([getattr(start, name) for start in starts]) for name in ("mean", "cov", "past_u")}
    return {"states": model.states, "starts": len(starts)}, {"starts": arrays}


def blank_starts(header: Header, fields: CommonFields) -> Tree:
    """The template of what `write_starts` wrote."""
    states = check_integer("states", header["states"], len(fields.preprocessor.output_names), MAX_STATES)
    starts = check_integer("starts", header["starts"], 2, MAX_ORDER)
    past_u = blank_array(starts, fields.preprocessor.order.reach, len(fields.preprocessor.input_names))
    arrays = {"mean": blank_array(starts, states), "cov": blank_array(starts, states, states), "past_u": past_u}
    return {"starts": arrays}


def read_starts(arrays: Mapping[str, np.ndarray]) -> StartStates:
    """The start states from the arrays of `write_starts`, validated."""
    parts = zip(arrays["mean"], arrays["cov"], arrays["past_u"], strict=True)
    cold, *final_states = (StartState(*each) for each in parts)
    check_starts((cold, *final_states))
    return StartStates(cold, tuple(final_states))


def _write_reduced_rank(model: FittedReducedRankGPSSM) -> tuple[dict[str, Any], Tree]:
    header, starts = write_starts(model)
    sizes = {"hidden": model.hidden, "basis": len(model.basis.numbers), "draws": len(model.posterior.R)}
    return {**header, **sizes}, {**starts, "basis": model.basis, "posterior": model.posterior}


def _read_reduced_rank(header: Header, arrays: Arrays) -> FittedReducedRankGPSSM:
    fields = common_fields(header)
    starts = blank_starts(header, fields)
    count, draws = (check_integer(name, header[name], 1, MAX_ORDER) for name in ("basis", "draws"))
    # The first models of this kind had no such entry: their f depends on the whole state, outputs included.
    hidden = check_integer("hidden", header.get("hidden", header["states"]), 1, header["states"])
    template = _reduced_rank_template(header["states"], hidden, count, draws, fields)
    trained = fill_template({**starts, **template}, arrays)
    half_width, numbers = trained["basis"].half_width, trained["basis"].numbers
    _check_box(half_width, numbers)
    _check_noise(trained["posterior"])
    basis = LaplaceBasis.from_numbers(half_width, numbers)
    return FittedReducedRankGPSSM(*fields, *read_starts(trained["starts"]), basis, trained["posterior"])


def _reduced_rank_template(states: int, hidden: int, count: int, draws: int, fields: CommonFields) -> Tree:
    prep, blank = fields.preprocessor, blank_array
    dimensions = hidden + prep.order.input_lags * len(prep.input_names)
    weights, Q = blank(draws, states, 1 + dimensions + count), blank(draws, states, states)
    posterior = Draw(weights, Q, blank(draws, len(prep.output_names)))
    return {"basis": LaplaceBasis(blank(dimensions), blank(count, dimensions), 1), "posterior": posterior}


def _check_box(half_width: Float64[np.ndarray, " D"], numbers: Float64[np.ndarray, "n D"]) -> None:
    if not (half_width > 0.0).all():
        raise InputError("a width of its box is not positive")
    # The smoothest products: what has j half waves along a dimension stands beside all that have fewer.
    if not ((numbers >= 1.0) & (numbers <= len(numbers)) & (numbers == np.round(numbers))).all():
        raise InputError(f"a number of half waves is not a whole number from 1 to {len(numbers)}")


def _check_noise(posterior: Draw) -> None:
    if not ((np.linalg.eigvalsh(posterior.Q) > 0.0).all() and (posterior.R > 0.0).all()):
        raise InputError("a draw has a noise that is not positive")


def _write_gpssm(model: FittedGPSSM) -> tuple[dict[str, Any], Tree]:
    header, starts = write_starts(model)
    about = {"configuration": asdict(model.spec), "inducing": model.transition.v_mean.shape[1], "bound": model.bound}
    return {**header, **about}, {**starts, "transition": model.transition}


def _read_gpssm(header: Header, arrays: Arrays) -> FittedGPSSM:
    fields, spec = common_fields(header), GPSSM(**check_keys(GPSSM, header["configuration"]))
    starts = blank_starts(header, fields)
    if spec.states != header["states"] or spec.input_delay != fields.preprocessor.order.input_delay:
        raise InputError("its configuration has other states or another input delay than the model")
    inducing = check_integer("inducing", header["inducing"], 1, spec.inducing)
    template = _gpssm_template(header["states"], inducing, fields)
    trained = fill_template({**starts, "transition": template}, arrays)
    bound = check_number("bound", header["bound"])
    return FittedGPSSM(*fields, *read_starts(trained["starts"]), spec, trained["transition"], bound)


def _gpssm_template(states: int, inducing: int, fields: CommonFields) -> Transition:
    prep, blank = fields.preprocessor, blank_array
    size = states + prep.order.input_lags * len(prep.input_names)
    layer = Layer(blank(inducing, size), blank(size), blank(), blank())
    layers = jax.tree.map(lambda leaf: blank(states, *leaf.shape), layer)  # stacked along a first axis
    linear = Linear(blank(size, states), blank(states))
    v_mean, v_root = blank(states, inducing), blank(states, inducing, inducing)
    return Transition(layers, v_mean, v_root, linear, blank(len(prep.output_names)))


STATE_SPACE_FORMATS = (
    ModelFormat("GP-SSM", FittedGPSSM, _write_gpssm, _read_gpssm),
    ModelFormat("reduced-rank GP-SSM", FittedReducedRankGPSSM, _write_reduced_rank, _read_reduced_rank),
)
