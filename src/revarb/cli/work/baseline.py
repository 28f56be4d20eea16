"""Fit a baseline by its name; write it and its picture, and say whether it is any good."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from revarb.baselines.arx import ARX
from revarb.baselines.gp_narx import GPNARX, FittedGPNARX
from revarb.baselines.lstm import LSTM, FittedLSTM
from revarb.baselines.mlp_narx import MLPNARX, FittedMLPNARX
from revarb.baselines.state_space.fitted_state_space import FittedStateSpace
from revarb.baselines.state_space.gpssm import GPSSM
from revarb.baselines.state_space.reduced_rank import ReducedRankGPSSM
from revarb.baselines.training_mean import Mean
from revarb.cli.application import print_written, screen, stop_interrupted
from revarb.cli.work.fit import Work
from revarb.data.series import Series
from revarb.errors import ComputationError, InputError, RevarbError, warn_user
from revarb.models.by_residuals import FittedByResiduals
from revarb.models.fitted_arx import FittedARX
from revarb.models.held_out_verdict import state_held_out
from revarb.optim.status import Status
from revarb.runtime.figure_style import save_figure
from revarb.runtime.interrupts import capture_interrupts

Baseline = ARX | GPNARX | MLPNARX | LSTM | GPSSM | ReducedRankGPSSM
FittedBaseline = FittedARX | FittedGPNARX | FittedMLPNARX | FittedLSTM | FittedStateSpace

BASELINES: dict[str, type[Baseline]] = {
    "arx": ARX,
    "gp-narx": GPNARX,
    "mlp-narx": MLPNARX,
    "lstm": LSTM,
    "gpssm": GPSSM,
    "reduced-rank-gpssm": ReducedRankGPSSM,
}
OPTIONS = ("lags", "input_lags", "input_delay", "inducing", "states")  # those of `revarb fit` that a baseline may have


def make_baseline(name: str, given: Mapping[str, int | str]) -> Baseline:
    """The configuration of the model of this name; options that it does not have are refused."""
    if name not in BASELINES:
        raise InputError(
            f"--model {name}: there is no such model; there are {', '.join(BASELINES)}, and without --model an RGP"
        )
    known = [field.name for field in fields(BASELINES[name])]
    taken = [option for option in OPTIONS if option in known]
    for option in given:
        if option not in taken:
            raise InputError(
                f"{_name_option(option)} is not for --model {name}, which takes {', '.join(map(_name_option, taken))} "
                "and --seed"
            )
    return BASELINES[name](**given)  # pyright: ignore[reportArgumentType] (checked by the configuration)


def fit_baseline(work: Work, spec: Baseline) -> None:
    """Fit the model and write it; what Ctrl-C leaves of it is written too."""
    started = time.perf_counter()
    model = spec.fit(work.records, seed=work.seed, progress=True)
    seconds = time.perf_counter() - started
    written = _write(work, model)
    screen.print(f"fitted {work.size} in {seconds:.1f} s: {model.status.words}")
    screen.print(_state_quality(model, spec, work.records), style="bold", soft_wrap=True)
    print_written(*written)
    if model.status is Status.INTERRUPTED:
        stop_interrupted(f"{_name_kept(model)} was kept")


def _name_kept(model: FittedBaseline) -> str:
    # Of a stochastic bound, or of a Markov chain, no point is known to be the best one.
    return "the last model" if isinstance(model, FittedStateSpace) else "the best model so far"


def _name_option(name: str) -> str:
    return "--no-calibrate" if name == "calibrate" else f"--{name.replace('_', '-')}"


def _write(work: Work, model: FittedBaseline) -> list[Path]:
    with capture_interrupts():
        written = [model.save(work.model_file)]
        try:
            written.append(save_figure(work.fit_picture, model.plot_fit(work.records)))
        except ComputationError as error:  # a model that is bad at long runs may still predict
            warn_user(f"there is no picture of the fit: {error}")
    return written


def _state_quality(model: FittedBaseline, spec: Baseline, records: Sequence[Series]) -> str:
    if not isinstance(model, FittedByResiduals):
        return (
            "nothing was held out: revarb compare, or revarb simulate on a test record, shows the error of this model"
        )
    linear = None if isinstance(model, FittedARX) else _measure_linear(spec.input_delay, records)
    return state_held_out(_held_out_error(model), linear, _held_out_error(Mean().fit(records)))


def _measure_linear(input_delay: int, records: Sequence[Series]) -> float | None:
    try:
        return _held_out_error(ARX(input_delay=input_delay).fit(records))
    except RevarbError:
        return None


def _held_out_error(model: FittedByResiduals) -> float:
    # In standard deviations of the outputs. That of an MLP is over four pieces of the records, of the others over the
    # last one.
    return float(np.sqrt(np.mean(model.residual_std**2)))
