"""Exports of a trained model, run and timed: C in a program of its own, CasADi, ONNX, FMU and JAX from Python."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from revarb import ComputationError, FittedRGP, InputError, Live
from revarb.simulation.mean import advance_mean

TIMED_ROWS, TIMED_TOGETHER = 100, 25
FLAGS = ("-std=c99", "-O2", "-D_POSIX_C_SOURCE=199309L")
MAIN = Path(__file__).with_name("timed_main.c")

C_DOUBLE, C_FLOAT, CASADI, ONNX, FMU = "C, double", "C, float", "CasADi", "ONNX", "FMU"
JAX, JAX_FIXED, LIVE = "JAX step", "JAX step, fixed model", "revarb.Live"
EXPORTED = (C_DOUBLE, C_FLOAT, CASADI, ONNX, FMU)

Step = Callable[[Any, Any], tuple[Any, Any]]  # state, inputs -> next state, outputs


class Measure(NamedTuple):
    """What was found of one format: outputs, size, and microseconds per step, one at a time and all in one call."""

    y: Float64[np.ndarray, "T Dy"]
    kilobytes: float | None
    step: float
    run: float | None = None


@dataclass(frozen=True, eq=False)
class Trial:
    """A trained model, the inputs of a test part, a folder for its files, and how often its steps are timed."""

    model: FittedRGP
    u: Float64[np.ndarray, "T Du"]
    folder: Path
    passes: int

    @property
    def timed(self) -> Float64[np.ndarray, "T Du"]:
        """The inputs that steps are timed with."""
        return self.u[:TIMED_ROWS]

    @property
    def states(self) -> int:
        """Size of the joint state: the state vector of a step has it first, and then the last inputs."""
        return len(self.model.step_state()) - self.model.order.reach * self.u.shape[1]

    def time_run(self, run: Callable[[], Any], rows: int) -> float:
        """Microseconds per row of a run: the fastest pass."""
        times = []
        for _ in range(self.passes):
            began = time.perf_counter()
            run()
            times.append(time.perf_counter() - began)
        return 1e6 * min(times) / rows

    def time_steps(self, step: Step, start: Any = None) -> float:
        """Microseconds of a step that is called from Python, on its own states, and gives NumPy outputs.

        Some steps are timed together: on a busy machine a long run is always interrupted.
        """
        step(start, self.timed[0])  # compiles, where something compiles
        times = []
        for _ in range(self.passes):
            state = start
            for begin in range(0, len(self.timed), TIMED_TOGETHER):
                rows = list(self.timed[begin : begin + TIMED_TOGETHER])
                began = time.perf_counter()
                for now in rows:
                    state, y = step(state, now)
                    np.asarray(y)
                times.append((time.perf_counter() - began) * 1e6 / len(rows))
        return min(times)

    def run_cold(self, run: Step) -> Float64[np.ndarray, "T Dy"]:
        """The outputs of a cold run."""
        return run(self.model.step_state(), self.u)[1]


def measure_exports(trial: Trial) -> dict[str, Measure]:
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


def _measure_c(trial: Trial, precision: str) -> Measure:
    source = trial.folder / f"{precision}.c"
    files = trial.model.export(source, name="model", precision=precision)
    y, microseconds = run_program(source, trial.u, len(trial.timed), trial.passes)
    return Measure(y, _add_sizes(files), microseconds)


def _measure_casadi(trial: Trial) -> Measure:
    files = trial.model.export(trial.folder / "model.casadi")
    start, u = trial.model.step_state(), np.ascontiguousarray(trial.timed.T)

    def run(state: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        final_state, y = trial.model.to_casadi(len(rows))(state, rows.T)
        return np.asarray(final_state)[:, 0], np.asarray(y).T

    step, timed = trial.model.to_casadi(), trial.model.to_casadi(len(trial.timed))
    alone = trial.time_steps(lambda state, now: step(state, now), start)
    return Measure(
        trial.run_cold(run), _add_sizes(files), alone, trial.time_run(lambda: timed(start, u), len(trial.timed))
    )


def _measure_onnx(trial: Trial) -> Measure:
    files, start = trial.model.export(trial.folder / "model.onnx"), trial.model.step_state()
    whole = _open_session(files[0])
    single = _open_session(trial.model.export(trial.folder / "step.onnx", step_only=True)[0])

    def run(state: Any, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        return whole.run(["final_state", "y"], {"state": state, "u": rows})

    def step(state: Any, now: np.ndarray) -> tuple[Any, np.ndarray]:
        return single.run(["next_state", "y"], {"state": state, "u": now})

    times = trial.time_steps(step, start), trial.time_run(lambda: run(start, trial.timed), len(trial.timed))
    return Measure(trial.run_cold(run), _add_sizes(files), *times)


def _open_session(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError(f'the study of exports needs {error.name}; pip install "revarb[onnx]"') from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # no word about the default of the state
    options.intra_op_num_threads = 1  # the work of a step is too little for threads
    return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])


def _measure_fmu(trial: Trial) -> Measure:
    files = trial.model.export(trial.folder / "model.fmu")
    with run_fmu(files[0], trial.folder / "fmu") as step:
        y = np.stack([step(now) for now in trial.u])
        return Measure(y, _add_sizes(files), trial.time_steps(lambda state, now: (None, step(now))))


@contextmanager
def run_fmu(path: Path, folder: Path) -> Iterator[Callable[[Any], Any]]:
    """An FMU 2.0 of co-simulation, run by FMPy: a function that sets the inputs and reads the outputs after a step."""
    try:
        from fmpy import extract, read_model_description
        from fmpy.fmi2 import FMU2Slave
    except ImportError as error:
        raise InputError(f"the study of exports needs {error.name}; pip install fmpy") from None
    about: Any = read_model_description(str(path))
    inputs, outputs = (
        [each.valueReference for each in about.modelVariables if each.causality == causality]
        for causality in ("input", "output")
    )
    dt, begins = float(about.defaultExperiment.stepSize), count()
    unit = FMU2Slave(
        guid=about.guid,
        unzipDirectory=extract(str(path), str(folder)),
        modelIdentifier=about.coSimulation.modelIdentifier,
        instanceName="model",
    )
    unit.instantiate()
    unit.setupExperiment()
    unit.enterInitializationMode()
    unit.exitInitializationMode()

    def step(u: Float64[np.ndarray, " Du"]) -> Float64[np.ndarray, " Dy"]:
        unit.setReal(inputs, u.tolist())
        unit.doStep(currentCommunicationPoint=next(begins) * dt, communicationStepSize=dt)
        return np.array(unit.getReal(outputs))

    try:
        yield step
    finally:
        unit.terminate()
        unit.freeInstance()


def _measure_jax(trial: Trial, fixed: bool) -> Measure:
    model, order, states = trial.model, trial.model.order, trial.states
    newest_first = order.reach - order.input_delay - np.arange(order.input_lags)  # rows of the past inputs and now

    def run(state: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        joint, past, outputs = state[:states], state[states:].reshape(-1, rows.shape[1]), []
        for now in rows:
            window = np.vstack([past, now])
            joint, y = advance(joint, model.scaling.inputs(window[newest_first]).ravel())
            past = window[1:]
            outputs.append(model.scaling.raw_outputs(np.asarray(y)))
        return np.concatenate([np.asarray(joint), past.ravel()]), np.array(outputs)

    with jax.enable_x64(True):
        advance = _compile_step(model.chain, fixed)
        u_bar = np.zeros(newest_first.size * trial.u.shape[1])
        alone = trial.time_steps(lambda state, now: advance(state, u_bar), np.zeros(states))
        y = trial.run_cold(run)
    if fixed:
        return Measure(y, None, alone)
    whole = trial.time_run(lambda: model.simulate(trial.u, "mean"), len(trial.u))
    return Measure(y, _add_sizes([model.save(trial.folder / "model.rgp")]), alone, whole)


def _compile_step(chain: Any, fixed: bool) -> Step:
    # As `Live` and `simulate` have it, one program serves all models of these sizes: the trained layers, which are on
    # the device, are arguments. In a program for a fixed model they are constants.
    layers = jax.device_put(chain)
    if fixed:
        return jax.jit(lambda state, inputs_now: advance_mean(layers, state, inputs_now))
    advance = jax.jit(advance_mean)
    return lambda state, inputs_now: advance(layers, state, inputs_now)


def _measure_live(trial: Trial) -> Measure:
    live = Live(trial.model)
    y = np.stack([live.step(now).mean for now in trial.u])
    return Measure(y, None, trial.time_steps(lambda state, now: (None, live.step(now).mean)))


def _add_sizes(files: Sequence[Path]) -> float:
    return sum(path.stat().st_size for path in files) / 1e3


class TimedRun(NamedTuple):
    """Outputs of a cold run, and microseconds per step of the fastest pass."""

    y: Float64[np.ndarray, "T Dy"]
    microseconds: float


def run_program(source: Path, u: Float64[np.ndarray, "T Du"], timed: int, passes: int) -> TimedRun:
    """Compile an exported C source with the name "model", and run it."""
    program, header = source.with_suffix(""), source.with_suffix(".h")
    _call([_find_compiler(), *FLAGS, "-include", str(header), str(source), str(MAIN), "-o", str(program), "-lm"])
    found = np.frombuffer(_call([str(program), str(len(u)), str(timed), str(passes)], u.tobytes()))
    return TimedRun(found[:-1].reshape(len(u), -1), float(found[-1]))


def _find_compiler() -> str:
    found = shutil.which("cc")
    if found is None:
        raise InputError("the study of exports needs a C compiler named cc, and there is none; install gcc or clang")
    return found


def _call(command: list[str], content: bytes = b"") -> bytes:
    done = subprocess.run(command, input=content, capture_output=True)
    if done.returncode:
        raise ComputationError(f"{command[0]} failed with status {done.returncode}: {done.stderr.decode()}")
    return done.stdout
