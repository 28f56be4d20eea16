"""Every trained model has the same surface: figures, files, short representations."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import revarb
from revarb.baselines import FittedPerOutput, PerOutput
from revarb.models.base import Fitted
from support import small

RECORD = small.record(samples=80, inputs=2, outputs=2)
CALIBRATION = revarb.Calibration(0.5, 0.03, edges=(2, 10), factors=(1.0, 1.2, 1.5), stretches=12, error=0.2)
SPECS = {
    "Mean": revarb.Mean(),
    "ARX": revarb.ARX(2, 2),
    "GPNARX": revarb.GPNARX(2, 2, iterations=5),
    "sparse GPNARX": revarb.GPNARX(2, 2, inducing=10, iterations=5),
    "MLPNARX": revarb.MLPNARX(2, 2, units=(2, 3), iterations=5),
    "LSTM": revarb.LSTM(layers=(2,), units=3, updates=25),
    "PerOutput": PerOutput(revarb.ARX(2, 2)),
    "RGP": small.spec(hidden=1),
}


@pytest.fixture(scope="module")
def models():
    return {name: spec.fit(RECORD) for name, spec in SPECS.items()}


@pytest.mark.parametrize("name", SPECS)
def test_a_saved_model_simulates_the_same(models, name, tmp_path):
    model = models[name]
    again = revarb.load(model.save(tmp_path / "model.rgp"))
    assert type(again) is type(model)
    ours, theirs = model.simulate(RECORD.u), again.simulate(RECORD.u)
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    np.testing.assert_array_equal(ours.std, theirs.std)
    assert (again.status, again.seed, again.order, again.dt) == (model.status, model.seed, model.order, model.dt)


@pytest.mark.parametrize("name", SPECS)
def test_a_representation_is_short_and_has_no_address(models, name):
    text = repr(models[name])
    assert len(text) < 200
    assert " at 0x" not in text
    assert text.startswith(type(models[name]).__name__)


def test_public_values_have_short_representations(models):
    path = models["RGP"].simulate(RECORD.u)
    comparison = revarb.compare(RECORD, RECORD, {"Mean": revarb.Mean()}, seeds=1)
    bands = comparison.reliability()["Mean", "residuals"]
    for value in (path, RECORD, comparison, revarb.Live(models["RGP"]), revarb.RGP(), revarb.Recognition(), bands):
        assert len(repr(value)) < 300
        assert " at 0x" not in repr(value)


@pytest.mark.parametrize("name", ["Mean", "LSTM", "GPNARX", "PerOutput"])
def test_a_damaged_baseline_file_is_refused(models, name, tmp_path):
    file = models[name].save(tmp_path / "model.rgp")
    content = bytearray(file.read_bytes())
    content[-9] ^= 1
    file.write_bytes(content)
    with pytest.raises(revarb.InputError, match="its checksum differs"):
        revarb.load(file)


def test_a_model_without_a_format_cannot_be_saved(models, tmp_path):
    class Own(Fitted):
        def simulate(self, u=None, method=None, *, steps=None):
            raise NotImplementedError

    own = Own(models["Mean"].preprocessor, models["Mean"].status, 0)
    with pytest.raises(revarb.InputError, match="a Own has no file format; known are RGP, Ensemble, Mean"):
        own.save(tmp_path / "own.rgp")


def test_members_of_per_output_must_fit_its_outputs(models, tmp_path):
    model = models["PerOutput"]
    swapped = FittedPerOutput(model.preprocessor, model.status, model.seed, model.members[::-1])
    with pytest.raises(revarb.InputError, match="its members have the outputs"):
        revarb.load(swapped.save(tmp_path / "swapped.rgp"))


def test_an_ensemble_has_the_surface_of_a_single_model():
    record = small.record()
    single = small.spec(hidden=1).fit(record)
    many = small.spec(hidden=1).fit(record, restarts=2)
    internal = {"trained", "chain", "resolve_start"}
    missing = {name for name in dir(single) if not name.startswith("_")} - set(dir(many)) - internal
    assert not missing
    assert many.bound == max(many.bounds)
    assert isinstance(many.plot_fit(record), Figure)
    assert many.smooth()[0].mean.shape == single.smooth()[0].mean.shape
    assert len(many.latent_paths()) == 1


def test_an_ensemble_mixes_the_calibrated_distributions_of_its_members():
    record = small.record()
    many = small.spec(hidden=1).fit(record, restarts=2)
    members = [
        replace(member, calibration=replace(CALIBRATION, factors=(2.0 + k, 2.0 + k, 2.0 + k)))
        for k, member in enumerate(many.members)
    ]
    mixed = revarb.Ensemble.from_members(members).simulate(record.u)
    paths = [member.simulate(record.u) for member in members]
    means, stds = np.stack([path.mean for path in paths]), np.stack([path.std for path in paths])
    np.testing.assert_allclose(mixed.std, np.sqrt(np.mean(stds**2, axis=0) + means.var(axis=0)), rtol=1e-12)


def test_one_distribution(models):
    """The interval follows from mean and std, and so do the samples' spread and the scores."""
    record = small.record()
    model = small.spec(hidden=1).fit(record)
    wide, narrow = (replace(CALIBRATION, factors=(factor,) * 3) for factor in (1.7, 1.0))
    one, other = (replace(model, calibration=each) for each in (wide, narrow))
    path, plain = one.simulate(record.u), other.simulate(record.u)
    np.testing.assert_allclose(path.std, 1.7 * plain.std, rtol=1e-12)
    lower, upper = path.interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.959963984540054 * path.std, rtol=1e-12)
    drawn, plainly_drawn = (each.simulate(record.u, "samples", samples=50) for each in (one, other))
    ours, theirs = drawn.samples - drawn.mean, plainly_drawn.samples - plainly_drawn.mean
    np.testing.assert_allclose(ours, 1.7 * theirs, rtol=1e-9, atol=1e-12)
    error = (record.y - path.mean)[path.skip :] / path.std[path.skip :]
    nlpd = np.mean(0.5 * np.log(2 * np.pi) + np.log(path.std[path.skip :]) + 0.5 * error**2)
    assert revarb.scores(path, record.y).nlpd == pytest.approx(nlpd, rel=1e-12)


def test_figures_are_returned(models):
    model, path = models["RGP"], models["RGP"].simulate(RECORD.u)
    figures = (model.plot_fit(), model.plot_fit(RECORD), path.plot(), path.plot(measured=RECORD.y, title="test"))
    comparison = revarb.compare(RECORD, RECORD, {"Mean": revarb.Mean(), "ARX": revarb.ARX(2, 2)}, seeds=1)
    for figure in (*figures, comparison.plot(), comparison.plot(1)):
        assert isinstance(figure, Figure)
    assert [len(figure.axes) for figure in figures] == [4, 4, 4, 6]


def test_figures_refuse_what_does_not_fit(models):
    path = models["RGP"].simulate(RECORD.u)
    with pytest.raises(revarb.InputError, match=r"measured has shape \(10, 2\)"):
        path.plot(RECORD.y[:10])
    with pytest.raises(revarb.InputError, match="pass the training records"):
        models["RGP"].plot_fit(small.record(samples=70, inputs=2, outputs=2))
    with pytest.raises(revarb.InputError, match=r"records must have the outputs \['y0', 'y1'\]"):
        models["RGP"].plot_fit(small.record(samples=80, inputs=2))
    comparison = revarb.compare(RECORD, RECORD, {"Mean": revarb.Mean()}, seeds=1)
    with pytest.raises(revarb.InputError, match="column must be a whole number from 0 to 1"):
        comparison.plot(2)
