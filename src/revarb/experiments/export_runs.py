"""One trained model in every format: its outputs over the test part, its size, and the time of a step."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.experiments.timed_program import run_program
from revarb.gp.posterior import Posterior
from revarb.models.export.casadi_function import make_casadi
from revarb.models.export.onnx_graph import make_onnx
from revarb.models.export.step_model import StepModel, make_step_model, run_cold
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.live import Live
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain
from revarb.simulation.mean import advance_mean

C_DOUBLE, C_FLOAT, CASADI, ONNX, FMU = "C, double", "C, float", "CasADi", "ONNX", "FMU"
JAX, JAX_FIXED, LIVE = "JAX step", "JAX step, fixed model", "revarb.Live"
STRETCH = 25  # steps that are timed together
EXPORTED = (C_DOUBLE, C_FLOAT, CASADI, ONNX, FMU)


class ExportMeasure(NamedTuple):
    """What was found of one format: outputs, size, and microseconds per step, one at a time and all in one call."""

    y: Float64[np.ndarray, "T Dy"]
    kilobytes: float | None
    step: float
    run: float | None = None


@dataclass(frozen=True, eq=False)
class ExportTrial:
    """A trained model, the inputs of a test part, a folder for its files, and how its steps are timed."""

    model: FittedRGP
    u: Float64[np.ndarray, "T Du"]
    folder: Path
    timed_rows: int
    passes: int

    @property
    def step_model(self) -> StepModel:
        """The step in plain arrays."""
        return make_step_model(self.model)

    @property
    def timed(self) -> Float64[np.ndarray, "T Du"]:
        """The inputs that steps are timed with."""
        return self.u[: self.timed_rows]

    def time_run(self, run: Callable[[], Any], rows: int) -> float:
        """Microseconds per row of a run: the fastest pass."""
        return min(_time(run) for _ in range(self.passes)) / rows

    def time_steps(self, step: Callable[[Any, Any], tuple[Any, Any]], start: Any = None) -> float:
        """Microseconds of a step that is called from Python, on its own states, and gives NumPy outputs.

        By short stretches: on a busy machine a long one is always interrupted.
        """
        step(start, self.timed[0])  # compiles, where something compiles
        stretches = [list(self.timed[row : row + STRETCH]) for row in range(0, len(self.timed), STRETCH)]
        times = []
        for _ in range(self.passes):
            state = start
            for rows in stretches:
                began = time.perf_counter()
                for now in rows:
                    state, y = step(state, now)
                    np.asarray(y)
                times.append((time.perf_counter() - began) * 1e6 / len(rows))
        return min(times)


def _time(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e6


def measure_exports(trial: ExportTrial) -> dict[str, ExportMeasure]:
    """All formats, and the model itself in Python."""
    return {
        C_DOUBLE: _measure_c(trial, "double"),
        C_FLOAT: _measure_c(trial, "float"),
        CASADI: _measure_casadi(trial),
        ONNX: _measure_onnx(trial),
        FMU: _measure_fmu(trial),
        JAX: _measure_jax(trial, fixed=False),
        JAX_FIXED: _measure_jax(trial, fixed=True),
        LIVE: _measure_live(trial),
    }


def _measure_c(trial: ExportTrial, precision: str) -> ExportMeasure:
    source = trial.folder / f"{precision}.c"
    files = trial.model.export(source, name="model", precision=precision)
    y, microseconds = run_program(source, "model", trial.u, len(trial.timed), trial.passes)
    return ExportMeasure(y, _add_sizes(files), microseconds)


def _measure_casadi(trial: ExportTrial) -> ExportMeasure:
    files = trial.model.export(trial.folder / "model.casadi")
    model, start, u = trial.step_model, trial.model.step_state(), np.ascontiguousarray(trial.timed.T)

    def run(state: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        final_state, y = make_casadi(model, len(rows))(state, rows.T)
        return np.asarray(final_state)[:, 0], np.asarray(y).T

    step, timed = trial.model.to_casadi(), trial.model.to_casadi(len(trial.timed))
    alone = trial.time_steps(lambda state, now: step(state, now), start)
    times = alone, trial.time_run(lambda: timed(start, u), len(trial.timed))
    return ExportMeasure(run_twice(model, run, trial.u), _add_sizes(files), *times)


def _measure_onnx(trial: ExportTrial) -> ExportMeasure:
    files = trial.model.export(trial.folder / "model.onnx")
    model, start = trial.step_model, trial.model.step_state()
    whole, single = _open_session(files[0].read_bytes()), _open_session(make_onnx(model, "step"))

    def run(state: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        return whole.run(["final_state", "y"], {"state": state, "u": rows})

    def step(state: Any, now: np.ndarray) -> tuple[Any, np.ndarray]:
        return single.run(["next_state", "y"], {"state": state, "u": now})

    times = trial.time_steps(step, start), trial.time_run(lambda: run(start, trial.timed), len(trial.timed))
    return ExportMeasure(run_twice(model, run, trial.u), _add_sizes(files), *times)


def _measure_fmu(trial: ExportTrial) -> ExportMeasure:
    files = trial.model.export(trial.folder / "model.fmu")
    with _open_fmu(files[0], trial.folder / "fmu") as unit:
        y = np.stack([unit.step(now) for now in trial.u])
        return ExportMeasure(y, _add_sizes(files), trial.time_steps(lambda state, now: (None, unit.step(now))))


@with_numerics
def _measure_jax(trial: ExportTrial, fixed: bool) -> ExportMeasure:
    model, scaling = trial.step_model, trial.model.scaling
    advance, positions = _compile_step(trial.model.chain, fixed), model.locate_inputs(model.members[0])

    def step(state: np.ndarray, now: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        window = np.concatenate([state[model.states :], now])
        recent = window[positions].reshape(-1, model.inputs)
        joint, y = advance(state[: model.states], scaling.inputs(recent).ravel())
        return np.concatenate([np.asarray(joint), window[model.inputs :]]), scaling.raw_outputs(np.asarray(y))

    u_bar = np.zeros(positions.size)
    alone = trial.time_steps(lambda state, now: advance(state, u_bar), np.zeros(model.states))
    y = run_cold(model, step, trial.u)
    if fixed:
        return ExportMeasure(y, None, alone)
    whole = trial.time_run(lambda: trial.model.simulate(trial.u, "mean"), len(trial.u))
    return ExportMeasure(y, _add_sizes([trial.model.save(trial.folder / "model.rgp")]), alone, whole)


def _compile_step(chain: Chain[Posterior], fixed: bool) -> Callable[[Any, Any], tuple[Any, Any]]:
    # As `Live` and `simulate` have it, one program serves all models of these sizes: the trained layers, which are on
    # the device, are arguments. In a program for a fixed model they are constants.
    layers = jax.device_put(chain)
    if fixed:
        return jax.jit(lambda state, inputs_now: advance_mean(layers, state, inputs_now))
    advance = jax.jit(advance_mean)
    return lambda state, inputs_now: advance(layers, state, inputs_now)


def _measure_live(trial: ExportTrial) -> ExportMeasure:
    live = Live(trial.model)
    y = np.stack([live.step(now).mean for now in trial.u])
    return ExportMeasure(y, None, trial.time_steps(lambda state, now: (None, live.step(now).mean)))


def run_twice(
    model: StepModel, run: Callable[[Any, Any], tuple[Any, Any]], u: Float64[np.ndarray, "T Du"]
) -> Float64[np.ndarray, "T Dy"]:
    """A cold run of a single model by one that knows no restart: until the window of inputs is full, and from there."""
    reach, state, parts = model.past_inputs, model.make_cold_state(), []
    for rows in (u[:reach], u[reach:]):
        if len(rows):
            state, y = run(state, rows)
            parts.append(y)
        state = model.restart(np.asarray(state), reach)
    return np.concatenate(parts)


def _add_sizes(files: Sequence[Path]) -> float:
    return sum(path.stat().st_size for path in files) / 1e3


def _open_session(content: bytes) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(f'the table of exports needs {error.name}; pip install "revarb[onnx]"') from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # no word about the default of the state
    options.intra_op_num_threads = 1  # the work of a step is too little for threads
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _open_fmu(path: Path, folder: Path) -> Any:
    try:
        from revarb.experiments.fmu_slave import FmuSlave
    except ImportError as error:
        raise InputError(f"the table of exports needs {error.name}; pip install fmpy") from None
    return FmuSlave(path, folder)
