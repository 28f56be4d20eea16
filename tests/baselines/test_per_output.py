"""One model per output."""

import itertools
import signal
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
import pytest

from revarb.baselines import gp_narx
from revarb.baselines.gp_narx import GPNARX
from revarb.baselines.lstm import LSTM
from revarb.baselines.mean import Mean
from revarb.baselines.per_output import PerOutput
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.fitting.arx import ARX
from revarb.models.recipe import Status
from revarb.simulation.mean import scan_mean
from revarb.simulation.moments import scan_moments
from support import small

QUICK = GPNARX(2, 2, inducing=8, iterations=5)


def column(record, k):
    return Series(record.u, record.y[:, k], record.dt, record.input_names, (record.output_names[k],))


def test_per_output_is_the_separate_models_side_by_side():
    records, u = [small.record(0, outputs=2), small.record(1, samples=30, outputs=2)], small.record(4).u
    together = PerOutput(QUICK).fit(records, seed=3)
    apart = [QUICK.fit([column(record, k) for record in records], seed=3) for k in range(2)]
    assert together.methods == apart[0].methods == ("mean", "moments")
    for method in together.methods:
        path, singles = together.simulate(u, method), [model.simulate(u, method) for model in apart]
        np.testing.assert_array_equal(path.mean, np.hstack([single.mean for single in singles]))
        assert (path.method, path.skip, path.output_names) == (method, singles[0].skip, ("y0", "y1"))
        if path.std is not None:
            np.testing.assert_array_equal(path.std, np.hstack([single.std for single in singles]))
        assert (path.std is None) == (method == "mean")
    np.testing.assert_array_equal(together.simulate(u).std, together.simulate(u, "moments").std)


@pytest.mark.usefixtures("kept_programs")
def test_outputs_of_one_shape_compile_once():
    compiled = [gp_narx._compute_evidence, gp_narx._compute_posterior, scan_mean, scan_moments]
    before = [function._cache_size() for function in compiled]
    model = PerOutput(QUICK).fit(small.record(samples=43, outputs=3))
    for method in model.methods:
        model.simulate(small.record(1, samples=37).u, method)
    assert [function._cache_size() for function in compiled] == [size + 1 for size in before]


def test_per_output_of_a_model_that_chooses_its_order_also_outside_of_training():
    model = PerOutput(ARX(3, 3)).fit(small.record(0, outputs=2))
    assert model.methods == ("residuals",) and model.status is Status.CONVERGED
    assert model.order.lags == max(member.order.lags for member in model.members)
    assert model.simulate(small.record(1).u).skip >= max(member.skip for member in model.members)
    with pytest.warns(UserWarning, match="leaves its training range"):
        path = model.simulate(50.0 * small.record(1).u)
    assert path.output_extrapolates.shape == path.mean.shape and "leaves what training has shown" in path.warning


@dataclass(frozen=True)
class Ending:
    """A configuration whose fits end one after the other with these statuses."""

    statuses: list

    def fit(self, train, seed=0):
        return replace(Mean().fit(train), status=Status(self.statuses.pop(0)))


@pytest.mark.parametrize("ends", [("converged", "stalled"), ("stalled", "not finite"), ("iteration limit", "stalled")])
def test_the_status_is_the_worst_of_the_members(ends):
    for order in (ends, ends[::-1]):
        assert PerOutput(Ending(list(order))).fit(small.record(outputs=2)).status is Status(ends[1])


def interrupt_at(monkeypatch, name, call):
    """Send Ctrl-C at the given call of a function of `gp_narx`."""
    calls, real = itertools.count(1), getattr(gp_narx, name)

    def pressed(*arguments):
        if next(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(gp_narx, name, pressed)


@pytest.mark.parametrize(
    "name, call, kept",
    [
        ("_compute_evidence", 1, False),
        ("_compute_evidence", 3, False),
        ("_compute_posterior", 1, False),
        ("_compute_posterior", 2, True),
    ],
)
def test_ctrl_c_keeps_all_models_once_every_output_has_one(name, call, kept, monkeypatch):
    interrupt_at(monkeypatch, name, call)
    with nullcontext() if kept else pytest.raises(KeyboardInterrupt):
        model = PerOutput(QUICK).fit(small.record(outputs=2))
        assert model.status is Status.INTERRUPTED and np.isfinite(model.simulate(small.record(1).u).mean).all()


def test_per_output_does_without_a_record_that_lacks_it():
    whole, lacking = small.record(outputs=2), small.with_gaps(small.record(1, outputs=2), (slice(None), 1))
    model = PerOutput(ARX(2, 2)).fit([whole, lacking])
    alone = ARX(2, 2).fit(Series(whole.u, whole.y[:, 1]))
    u = small.record(5).u
    np.testing.assert_array_equal(model.simulate(u).mean[:, 1], alone.simulate(u).mean[:, 0])


def test_per_output_refuses_gaps_before_it_fits_anything(monkeypatch):
    fitted, fit = [], LSTM.fit
    monkeypatch.setattr(LSTM, "fit", lambda spec, train, **options: fitted.append(train) or fit(spec, train, **options))
    with pytest.raises(InputError, match="LSTM needs every output value, and 1 of 60 are missing"):
        PerOutput(LSTM()).fit(small.with_gaps(small.record(outputs=3), (7, 2)))
    assert [records[0].output_names for records in fitted] == [("y2",)]
