"""Every kind of trained model: simulations, starts, files, pickles, copies, representations, figures."""

import copy
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from matplotlib.figure import Figure

import revarb
from fuzz import samples
from revarb.baselines import FittedARX, PerOutput
from revarb.export.exportable import Exportable
from revarb.models.base import Fitted
from revarb.models.model_file import save_model
from revarb.models.prediction import Predictor
from support import small
from support.processes import run_python
from support.recognised import QUICK_NETWORKS

RECORD = small.record(samples=80, inputs=2, outputs=2)
NEW = small.record(5, samples=30, inputs=2, outputs=2)
CALIBRATION = revarb.Calibration(0.5, 0.03, edges=(2, 10), factors=(1.0, 1.2, 1.5), stretches=12, error=0.2)
NARX = {"lags": 2, "input_lags": 2, "iterations": 5}
MODELS = {
    "Mean": lambda: revarb.Mean().fit(RECORD),
    "ARX": lambda: revarb.ARX(2, 2).fit(RECORD),
    "GP-NARX": lambda: revarb.GPNARX(**NARX).fit(RECORD),
    "sparse GP-NARX": lambda: revarb.GPNARX(inducing=10, **NARX).fit(RECORD),
    "MLP-NARX": lambda: revarb.MLPNARX(units=(2, 3), **NARX).fit(RECORD),
    "LSTM": lambda: revarb.LSTM(layers=(2,), units=3, updates=25).fit(RECORD),
    "per output": lambda: PerOutput(revarb.ARX(2, 2)).fit(RECORD),
    "GP-SSM": lambda: revarb.GPSSM(states=2, inducing=4, subsequence=6, window=2, batch=1, samples=1, updates=1).fit(
        RECORD
    ),
    "reduced-rank GP-SSM": lambda: revarb.ReducedRankGPSSM(
        states=2, basis=6, particles=3, burn_in=1, draws=3, thinning=1
    ).fit(RECORD),
    "RGP": lambda: small.spec(hidden=1).fit(RECORD),
    "RGP, calibrated": lambda: replace(trained("RGP"), calibration=CALIBRATION),
    "RGP, linear part": lambda: start_of(linear=True),
    "RGP, Student-t": lambda: start_of(noise="student-t"),
    "RGP, networks": lambda: small.spec(recognition=QUICK_NETWORKS).fit(RECORD),
    "ensemble": lambda: revarb.Ensemble.from_members([trained("RGP"), replace(trained("RGP, calibrated"), seed=1)]),
    "mixed ensemble": lambda: revarb.Ensemble.from_candidates([trained("RGP"), start_of(lags=3)]),
    "mixture": lambda: revarb.Ensemble.from_candidates([trained("RGP, calibrated"), trained("ARX"), trained("RGP")]),
    "chosen": lambda: replace(trained("RGP"), choice=samples.CHOICE),
}
SLOW = ("GP-SSM", "reduced-rank GP-SSM", "RGP, networks")
ALL = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in MODELS]


@cache
def trained(name):
    return MODELS[name]()


def start_of(**changes):
    """An RGP at the initial values of its fit."""
    return samples.at_the_start(small.spec(hidden=1, **changes), 0, [RECORD])


def same_model(one, other):
    assert type(one) is type(other) and repr(one) == repr(other) and str(one.summary()) == str(other.summary())
    for name in ("status", "seed", "order", "dt", "choice"):
        assert getattr(one, name) == getattr(other, name), name
    for method in one.methods:
        ours, theirs = one.simulate(NEW.u, method), other.simulate(NEW.u, method)
        for name in ("mean", "std", "method", "start", "skip", "degrees_of_freedom"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


@pytest.mark.parametrize("name", ALL)
def test_a_simulation_has_a_row_per_row_of_its_inputs(name):
    model = trained(name)
    for method in model.methods:
        path = model.simulate(NEW.u, method)
        assert path.mean.shape == NEW.y.shape and np.isfinite(path.mean).all()
        assert (path.method, path.output_names, path.start, path.skip) == (method, ("y0", "y1"), "cold", model.skip)
        assert path.std is None or (path.std > 0.0).all()
        np.testing.assert_array_equal(path.inputs, NEW.u)
    with pytest.raises(revarb.InputError, match=r"u has 1 column\(s\), but the model was trained with 2"):
        model.simulate(NEW.u[:, :1])
    with pytest.raises(revarb.InputError, match="method"):
        model.simulate(NEW.u, "guess")


@pytest.mark.parametrize("name", ALL)
def test_a_saved_pickled_or_copied_model_is_the_same_model(name, tmp_path):
    model = trained(name)
    saved = revarb.load(model.save(tmp_path / "model.rgp"))
    for again in (saved, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        same_model(model, again)
    assert len(repr(model)) < 200 and " at 0x" not in repr(model) and repr(model).startswith(type(model).__name__)


@pytest.mark.parametrize("names", [["ARX"], [name for name in MODELS if name not in SLOW]], ids=len)
def test_pickles_can_be_saved_in_a_process_that_imported_nothing_else(names, tmp_path):
    """Formats are registered beside their classes: the pickle of an ARX model does not import the baselines."""
    for number, name in enumerate(names):
        (tmp_path / f"{number}.pickle").write_bytes(pickle.dumps(trained(name)))
    files = [tmp_path / f"{number}.pickle" for number in range(len(names))]
    code = "import pickle, sys; [pickle.load(open(file, 'rb')).save(file + '.rgp') for file in sys.argv[1:]]"
    done = run_python("-c", code, *files)
    assert done.returncode == 0, done.stderr
    for name, file in zip(names, files, strict=True):
        assert type(revarb.load(f"{file}.rgp")) is type(trained(name))


@pytest.mark.parametrize(
    "name", ["ARX", "RGP", "RGP, calibrated", "RGP, Student-t", "ensemble", "mixed ensemble", "mixture"]
)
def test_starts_agree(name):
    """The end of the training record, its final state, and a window of the record that ends there."""
    model, first = trained(name), RECORD[:40]
    continued = model.simulate(NEW.u, start="continue")
    assert (continued.start, continued.skip) == ("continued", 0)
    given = model.simulate(NEW.u, start=model.final_states[-1])
    np.testing.assert_array_equal(given.mean, continued.mean)
    np.testing.assert_array_equal(given.std, continued.std)
    window = revarb.Window(first.u, first.y)
    after = model.simulate(RECORD.u[40:], start=window)
    assert (after.start, after.skip) == ("window of 40 samples", 0)
    np.testing.assert_allclose(after.mean[0], model.predict(RECORD).mean[40], rtol=1e-8)
    np.testing.assert_allclose(after.std[0], model.predict(RECORD).std[40], rtol=1e-8)


@pytest.mark.parametrize("name", ["ARX", "GP-NARX", "MLP-NARX", "RGP, calibrated", "ensemble", "mixture"])
def test_a_horizon_beyond_the_record_is_a_cold_run(name):
    model = trained(name)
    path, cold = model.predict(NEW, 1000), model.simulate(NEW.u)
    np.testing.assert_allclose(path.mean, cold.mean, rtol=1e-9)
    np.testing.assert_allclose(path.std, cold.std, rtol=1e-9)
    assert path.start == "1000 steps ahead" and model.predict(NEW).start == "1 step ahead"


@pytest.mark.parametrize("name", [each for each in MODELS if each not in SLOW])
def test_figures_are_returned(name):
    figure = trained(name).plot_fit(RECORD)
    assert isinstance(figure, Figure) and len(figure.axes) >= 2
    with pytest.raises(revarb.InputError, match=r"records must have the outputs \['y0', 'y1'\]"):
        trained(name).plot_fit(small.record(samples=80, inputs=2))


@pytest.mark.parametrize("name", ALL)
def test_methods_are_only_where_they_work(name):
    model = trained(name)
    refitted = isinstance(model, revarb.FittedRGP | FittedARX | revarb.Ensemble)
    assert isinstance(model, Fitted) and hasattr(model, "refit") == refitted
    if not refitted:
        with pytest.raises(revarb.InputError, match=f"a {type(model).__name__} cannot be refitted, only an RGP, an"):
            model.refit(RECORD)
    exportable = {"export", "step_state", "to_casadi"}
    if isinstance(model, Exportable):
        assert isinstance(model, Predictor) and np.isfinite(model.step_state()).all()
    else:
        assert not exportable & set(dir(model)) and not hasattr(model, "export")
        with pytest.raises(revarb.InputError, match=f"a {type(model).__name__} cannot be exported; an RGP"):
            model.export("m.c")
    with pytest.raises(AttributeError, match="no attribute 'colour'"):
        _ = model.colour


def test_a_mixture_has_the_whole_surface_of_a_model():
    """Each member enters with its own linearisation, response and refit."""
    model = trained("mixture")
    linear, alone = model.linearise(), [member.linearise() for member in model.members]
    np.testing.assert_allclose(linear.static_gain, np.mean([each.static_gain for each in alone], axis=0), rtol=1e-9)
    assert len(linear.A) == sum(len(each.A) for each in alone)
    response = model.step_response(input="u0", steps=20)
    assert response.path.mean.shape == (20, 2) and (response.path.std > 0.0).all()
    curve = model.static_gain_curve([-0.2, 0.2], input="u0")
    assert np.isfinite(curve.outputs).all()
    with pytest.raises(revarb.InputError, match="Gaussian noise knows no outliers"):
        model.outliers()
    assert "FittedARX" in str(model.summary())
    again = model.refit([RECORD, NEW])
    assert [len(states) for states in again.final_states] == [3, 3]
    for old, new in zip(model.members, again.members, strict=True):
        same = old.refit([RECORD, NEW]).simulate(NEW.u)
        np.testing.assert_array_equal(new.simulate(NEW.u).mean, same.mean)
    [kept, refitted] = model.members[1], again.members[1]
    assert refitted.order == kept.order and refitted.horizon_std is kept.horizon_std
    np.testing.assert_array_equal(refitted.residual_std, kept.residual_std)
    assert not np.array_equal(refitted.model.coefficients, kept.model.coefficients)
    unchanged = kept.refit(RECORD)
    np.testing.assert_allclose(unchanged.model.coefficients, kept.model.coefficients, rtol=1e-9)


def test_public_values_have_short_representations():
    path = trained("RGP").simulate(NEW.u)
    for value in (path, RECORD, revarb.Live(trained("RGP")), revarb.RGP(), revarb.Recognition(), samples.CHOICE):
        assert len(repr(value)) < 300 and " at 0x" not in repr(value)


def test_a_model_without_a_format_cannot_be_saved(tmp_path):
    class Own(Fitted):
        def simulate(self, u=None, method=None, *, steps=None):
            raise NotImplementedError

    own = Own(trained("Mean").preprocessor, trained("Mean").status, 0)
    with pytest.raises(revarb.InputError, match=r"a Own has no file format; known are .*RGP"):
        save_model(own, tmp_path / "own.rgp")


@pytest.mark.parametrize("use", ["revarb.load('{file}')", "revarb.fit; revarb.load('{file}').save('{file}')"])
def test_a_fresh_interpreter_knows_all_kinds_of_files(tmp_path, use):
    """Public names are imported when they are used."""
    file = trained("LSTM").save(tmp_path / "lstm.rgp")
    done = run_python("-c", f"import revarb; {use.format(file=file)}")
    assert done.returncode == 0, done.stderr
