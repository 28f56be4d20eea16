"""A trained model in every format of `model.export`: difference to its own mean-only run, size, and time per step.

The models are those of Table 1, fitted once with seed 0.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

import revarb
from revarb.simulation.mean import advance_mean
from studies.records import Benchmark, raise_if_interrupted
from studies.study import Fit, Result, Study
from studies.tables import Grid, Row, Rows, Target, names_of, select
from studies.timed_program import run_program

MODEL = {"hidden": 2, "inducing": 100, "calibrate": False}  # the mean-only run does not depend on a calibration
RECORDS: Mapping[str, Mapping[str, Any]] = {  # with the fields of RGP that are their own
    "drive": {},
    "actuator": {},
    "cstr": {"latent_dim": 2},  # as many latent states as outputs
    "winding": {"latent_dim": 2},
}
PASSES = 150  # over 100 rows of the test part; the fastest counts, and a long one is always disturbed by other programs
TIMED_ROWS, TIMED_TOGETHER = 100, 25

C_DOUBLE, C_FLOAT, CASADI, ONNX, FMU = "C, double", "C, float", "CasADi", "ONNX", "FMU"
JAX, JAX_FIXED, LIVE = "JAX step", "JAX step, fixed model", "revarb.Live"
EXPORTED = (C_DOUBLE, C_FLOAT, CASADI, ONNX, FMU)

# What the table must show. Differences are in standard deviations of the output in the training part.
DOUBLE, SINGLE = 1e-9, 1e-3  # the largest difference to `simulate`
FASTER = 20.0  # time of a compiled JAX step called from Python / time of a step in C, double

Step = Callable[[Any, Any], tuple[Any, Any]]  # state, inputs -> next state, outputs


class Export(Study):
    """Four records; seeds make no difference to an export."""

    name, title = "export", "Exports: difference to simulate, size, time per step"
    protocol = "mean-only run over the test part, cold start, raw units; models of Table 1, seed 0"
    columns = ("dataset", "format", "rows", "seed", "difference", "kilobytes", "microseconds", "speedup", "status")
    notes = (
        "difference: largest one to simulate(u, 'mean') over the test part, cold start, in standard deviations of the "
        "output in the training part.",
        "µs per step: one call per step, in C from C, else from Python with NumPy arrays in and out; the FMU by FMPy. "
        "µs per step of a run: all steps in one call; of the JAX step, simulate. The fastest of many passes counts.",
        "kB: the files of the export; beside the JAX step, the model file. JAX step: the compiled step that "
        "revarb.Live and simulate run, without their checks and scaling, the trained layers an argument; with a fixed "
        "model they are constants of the program.",
    )
    default_seeds = 1
    concurrent = False  # others beside it would disturb the times
    records, passes = RECORDS, PASSES

    def load(self, name: str) -> tuple[revarb.Series, revarb.Series, revarb.RGP]:
        """Training part, test part and model of a record."""
        split = Benchmark(name).load(0)
        return split.train, split.test, revarb.RGP(split.lags, split.lags, **MODEL, **self.records[name])

    def list_fits(self) -> list[Fit]:
        """A fit per record."""
        return [Fit(name, "REVARB", 0) for name in self.records]

    def run_fit(self, fit: Fit) -> Result:
        """Fit a model, export it to all formats and measure these."""
        (train, test, spec), begin = self.load(fit.dataset), time.perf_counter()
        model = raise_if_interrupted(spec.fit(train, seed=0))
        common = {
            "dataset": fit.dataset,
            "inputs": len(model.input_names),
            "outputs": len(model.output_names),
            "lags": spec.lags,
            "states": len(model.step_state()),
            "rows": len(test),
            "seed": model.seed,
            "status": str(model.status),
            "fit_seconds": time.perf_counter() - begin,
        }
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* leaves its training range")  # true of Actuator's test part
            measures = measure_exports(Trial(model, test.u, Path(folder), self.passes))
            expected = model.simulate(test.u, "mean").mean
        std = train.y.std(axis=0)
        return Result([_make_row(common, kind, measures, expected, std) for kind in measures])

    def tables(self, rows: Rows) -> list[Grid]:
        """Every record with a row per format."""
        grids, columns = [], ("format", "difference", "kB", "µs per step", "µs per step of a run", "JAX / it")
        for name in names_of(rows):
            own = select(rows, dataset=name)
            size = "{inputs} input(s), {outputs} output(s), {states} states".format(**own[0])
            grids.append(Grid(f"{name}: {size}", columns, [export_cells(row) for row in own]))
        return grids

    def targets(self, rows: Rows) -> list[Target]:
        """The outputs of `simulate` in every format, and a step in C that is fast."""
        return [target for name in names_of(rows) for target in _judge(name, select(rows, dataset=name))]


def export_cells(row: Row) -> list[str]:
    """Format, difference, size, times, and how many times faster than a JAX step."""
    numbers = (row[name] for name in ("kilobytes", "microseconds", "run_microseconds", "speedup"))
    return [row["format"], f"{row['difference']:.1e}", *("–" if each is None else f"{each:.3g}" for each in numbers)]


def _judge(name: str, rows: Rows) -> Iterator[Target]:
    own = {row["format"]: row for row in rows}
    for kind in (kind for kind in EXPORTED if kind in own):
        limit, found = SINGLE if kind == C_FLOAT else DOUBLE, own[kind]["difference"]
        yield Target(f"{name}, {kind}: difference at most {limit:g}", found <= limit, f"{found:.1e}")
    if C_DOUBLE in own and JAX in own:
        ratio, what = own[C_DOUBLE]["speedup"], f"C at least {FASTER:g} × faster than a JAX step"
        yield Target(f"{name}: {what}", ratio >= FASTER, f"{ratio:.1f} ×")


class Measure(NamedTuple):
    """What was found of one format: outputs, size, and microseconds per step, one at a time and all in one call."""

    y: Float64[np.ndarray, "T Dy"]
    kilobytes: float | None
    step: float
    run: float | None = None


def _make_row(
    common: Row, kind: str, measures: Mapping[str, Measure], expected: np.ndarray, std: np.ndarray
) -> dict[str, Any]:
    own = measures[kind]
    return {
        **common,
        "format": kind,
        "difference": float(np.max(np.abs(own.y - expected) / std)),
        "kilobytes": own.kilobytes,
        "microseconds": own.step,
        "run_microseconds": own.run,
        "speedup": measures[JAX].step / own.step,
    }


@dataclass(frozen=True, eq=False)
class Trial:
    """A trained model, the inputs of a test part, a folder for its files, and how often its steps are timed."""

    model: revarb.FittedRGP
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
        """A cold run by one that knows no restart: until the window of inputs is full, and from there."""
        reach, state, parts = self.model.order.reach, self.model.step_state(), []
        for rows in (self.u[:reach], self.u[reach:]):
            if len(rows):
                state, y = run(state, rows)
                parts.append(y)
            state = np.array(state).ravel()
            state[: self.states] = 0.0
        return np.concatenate(parts)


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
        raise revarb.InputError(f'the study of exports needs {error.name}; pip install "revarb[onnx]"') from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # no word about the default of the state
    options.intra_op_num_threads = 1  # the work of a step is too little for threads
    return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])


def _measure_fmu(trial: Trial) -> Measure:
    files = trial.model.export(trial.folder / "model.fmu")
    with FmuSlave(files[0], trial.folder / "fmu") as unit:
        y = np.stack([unit.step(now) for now in trial.u])
        return Measure(y, _add_sizes(files), trial.time_steps(lambda state, now: (None, unit.step(now))))


class FmuSlave:
    """An FMU 2.0 of co-simulation, run step by step by FMPy; a context manager."""

    def __init__(self, path: Path, folder: Path):
        try:
            from fmpy import extract, read_model_description
            from fmpy.fmi2 import FMU2Slave
        except ImportError as error:
            raise revarb.InputError(f"the study of exports needs {error.name}; pip install fmpy") from None
        about: Any = read_model_description(str(path))
        self._inputs, self._outputs = (
            [each.valueReference for each in about.modelVariables if each.causality == causality]
            for causality in ("input", "output")
        )
        self._dt, self._steps = float(about.defaultExperiment.stepSize), 0
        self._unit = FMU2Slave(
            guid=about.guid,
            unzipDirectory=extract(str(path), str(folder)),
            modelIdentifier=about.coSimulation.modelIdentifier,
            instanceName="model",
        )
        self._unit.instantiate()

    def __enter__(self) -> "FmuSlave":
        self._unit.setupExperiment()
        self._unit.enterInitializationMode()
        self._unit.exitInitializationMode()
        return self

    def __exit__(self, *error: Any) -> None:
        self._unit.terminate()
        self._unit.freeInstance()

    def step(self, u: Float64[np.ndarray, " Du"]) -> Float64[np.ndarray, " Dy"]:
        """Set the inputs, advance by one sampling interval, read the outputs."""
        self._unit.setReal(self._inputs, u.tolist())
        self._unit.doStep(currentCommunicationPoint=self._steps * self._dt, communicationStepSize=self._dt)
        self._steps += 1
        return np.array(self._unit.getReal(self._outputs))


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
    live = revarb.Live(trial.model)
    y = np.stack([live.step(now).mean for now in trial.u])
    return Measure(y, None, trial.time_steps(lambda state, now: (None, live.step(now).mean)))


def _add_sizes(files: Sequence[Path]) -> float:
    return sum(path.stat().st_size for path in files) / 1e3


STUDY = Export
