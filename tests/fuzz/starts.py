"""Where runs begin, and predictions from measured records."""

import numpy as np
from hypothesis import strategies as st

import revarb
from fuzz import samples
from fuzz.arrays import matrices, measured, odd_objects, sides
from fuzz.harness import Property, attempt, check_path
from fuzz.junk import mostly, plain, real, text
from revarb.simulate import Start, cold_start

models = st.sampled_from(["model", "calibrated", "several_outputs", "ensemble"]).map(
    lambda name: getattr(samples, name)()
)
OTHER_SHAPES = [((1,), 2, 2, 1), ((1, 1), 3, 2, 1), ((1, 1), 2, 1, 1), ((1, 1), 2, 2, 2), ((), 0, 0, 0)]


@st.composite
def records(draw, kind: type[revarb.Series], outputs: int) -> revarb.Series:
    """A measured record with gaps, which may have a column more, or a few rows only."""
    rows, inputs = draw(mostly(st.just(samples.ROWS), sides)), draw(mostly(st.just(1), sides))
    return kind(draw(matrices(inputs, rows)), draw(measured(draw(mostly(st.just(outputs), st.just(3))), rows)))


@st.composite
def states(draw) -> Start:
    """The state of a model that may be another one, with a number that may be none."""
    others = st.sampled_from([cold_start(*shape) for shape in OTHER_SHAPES])
    start = draw(
        mostly(st.sampled_from(samples.model().final_states), others | st.builds(Start, *[plain | odd_objects] * 3))
    )
    parts = {"mean": start.mean, "cov": start.cov, "past_u": start.past_u}
    name = draw(st.sampled_from(list(parts)))
    if isinstance(parts[name], np.ndarray) and parts[name].size:
        parts[name] = np.array(parts[name])
        parts[name].flat[draw(st.integers(0, parts[name].size - 1))] = draw(real)
    return Start(**parts)


@st.composite
def runs(draw):
    """A model, inputs for it and a start."""
    model = draw(models)
    outputs = len(model.output_names)
    known = st.sampled_from(["cold", "continue", *model.final_states]) | states() | records(revarb.Window, outputs)
    start = mostly(known, records(revarb.Series, outputs) | odd_objects | plain)
    return model, draw(matrices(1)), draw(start)


def run_is_finite(case) -> bool:
    """From wherever it begins."""
    model, u, start = case
    path = attempt(lambda: model.simulate(u, start=start))
    check_path(path)
    assert path is None or len(path) == len(u)
    return path is not None


@st.composite
def predictions(draw):
    """A model, a record and a horizon. (Every horizon within the record is compiled, so there are few.)"""
    model = draw(models)
    horizon = mostly(st.sampled_from([1, 3, 100, 10**30, 10**400, 10**5000]), st.integers(max_value=0) | real | text)
    record = mostly(records(revarb.Series, len(model.output_names)), odd_objects | plain)
    return model, draw(record), draw(horizon)


def prediction_is_finite(case) -> bool:
    """A row for every sample."""
    model, record, horizon = case
    path = attempt(lambda: model.predict(record, horizon))
    check_path(path)
    assert path is None or len(path) == len(record)
    return path is not None


PROPERTIES = {
    "starts of simulations": Property(run_is_finite, runs(), 150),
    "records and horizons into predict": Property(prediction_is_finite, predictions(), 100),
}
