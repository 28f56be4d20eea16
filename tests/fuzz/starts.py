"""Where runs begin, and predictions from measured records."""

from functools import partial

import numpy as np
from hypothesis import strategies as st

import revarb
from fuzz import samples
from fuzz.arrays import matrices, measured, odd_objects, sides
from fuzz.harness import Property, attempt, check_path
from fuzz.junk import mostly, plain, real, text
from revarb.simulation.chain import StartState, make_cold_start

models = st.sampled_from(["model", "calibrated", "ensemble", "linear"]).map(lambda name: getattr(samples, name)())
OTHER_SHAPES = [((1,), 2, 2, 1), ((1, 1), 3, 2, 1), ((1, 1), 2, 1, 1), ((1, 1), 2, 2, 2), ((), 0, 0, 0)]
odd_types = st.sampled_from(["f4", "i8", "?", "O", "U3", "c16", "M8[s]"])


@st.composite
def records(draw, kind: type[revarb.Series], outputs: int) -> revarb.Series:
    """A measured record with gaps, possibly with other columns or very few rows. (Every length is compiled.)"""
    rows, inputs = draw(mostly(st.just(samples.ROWS), st.integers(0, 1))), draw(mostly(st.just(1), sides))
    return kind(draw(matrices(inputs, rows)), draw(measured(draw(mostly(st.just(outputs), st.just(3))), rows)))


@st.composite
def states(draw) -> StartState:
    """The state of this or another model, possibly with values that are not finite."""
    others = st.sampled_from([make_cold_start(*shape) for shape in OTHER_SHAPES])
    state = draw(mostly(st.sampled_from(samples.model().final_states), others))
    parts = {name: np.array(getattr(state, name)) for name in ("mean", "cov", "past_u")}
    spoiled = parts[draw(st.sampled_from(list(parts)))]
    if spoiled.size:
        spoiled.flat[draw(st.integers(0, spoiled.size - 1))] = draw(real)
    odd_mean = odd_types.map(lambda kind: np.ones(parts["mean"].shape, dtype=kind)) | st.none()
    return StartState(**parts | {"mean": draw(mostly(st.just(parts["mean"]), odd_mean))})


@st.composite
def runs(draw):
    """A model, inputs for it and a start."""
    model = draw(models)
    outputs = len(model.output_names)
    known = st.sampled_from(["cold", "continue", *model.final_states]) | states() | records(revarb.Window, outputs)
    start = mostly(known, records(revarb.Series, outputs) | odd_objects | plain)
    return model, draw(matrices(1)), draw(start)


predictors = st.sampled_from(["calibrated", "linear"]).map(lambda name: getattr(samples, name)())
record_or_junk = mostly(records(revarb.Series, 2), odd_objects | plain)
horizons = mostly(st.sampled_from([1, 1, 1, 100, 10**4300]), st.integers(max_value=0) | real | text)


predictions = st.tuples(predictors, record_or_junk, horizons)


def path_is_finite(case, method: str, argument: str) -> None:
    """A simulation from any start, or a prediction: a row for every sample."""
    model, rows, value = case
    path = attempt(lambda: getattr(model, method)(rows, **{argument: value}))
    check_path(path)
    assert path is None or len(path) == len(rows)


PROPERTIES = {
    "starts of simulations": Property(partial(path_is_finite, method="simulate", argument="start"), runs(), 150),
    "records and horizons into predict": Property(
        partial(path_is_finite, method="predict", argument="horizon"), predictions, 150
    ),
}
