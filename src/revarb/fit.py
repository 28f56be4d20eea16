"""From records to a trained model: rows, start, staged optimisation, posterior."""

import warnings
from collections.abc import Sequence

import jax
import numpy as np

from revarb.bound import Layout, Rows, layer_posteriors, revarb_bound
from revarb.errors import check_seed
from revarb.fitted import FittedRGP, Trained
from revarb.frame import Frame
from revarb.initialise import initial_parameters
from revarb.interrupts import held_interrupts
from revarb.numerics import AnyArray, with_numerics
from revarb.optimise import Optimum, Phase, Settings, Step, maximise
from revarb.parameters import Parameters, flatten, free_entries, unflatten
from revarb.progress import progress_bar
from revarb.recipe import Recipe
from revarb.rgp import RGP
from revarb.series import Series, as_records
from revarb.simulate import Chain, Start
from revarb.states import FreeStates

bound_and_gradient = jax.jit(jax.value_and_grad(revarb_bound), static_argnames="layout")
_posteriors = jax.jit(layer_posteriors, static_argnames="layout")


@with_numerics
def fit(spec: RGP, train: Series | Sequence[Series], seed: int, progress: bool) -> FittedRGP:
    """Train `spec` on one record or several; `RGP.fit` is the public door."""
    seed = check_seed(seed)
    records = as_records(train)
    frame = Frame.of(records, spec.lags_for(records[0].u.shape[1]))
    rows, y_blocks, layout = training_rows(frame, records, spec.recipe.jitter)
    start = initial_parameters(
        spec.recipe,
        spec.latent_dims,
        _affordable_inducing(spec, len(rows.y)),
        rows,
        y_blocks,
        layout,
        np.random.default_rng(seed),
    )
    optimum = _maximise(spec.recipe, start, rows, layout, progress)
    parameters = unflatten(optimum.vector, start)
    with held_interrupts():  # what was found is not lost in the last second
        layers = jax.tree.map(np.asarray, _posteriors(parameters, rows, layout=layout))
    past_u = [frame.scaling.inputs(record.u)[len(record) - frame.lags.reach :] for record in records]
    return FittedRGP(
        frame=frame,
        status=optimum.status,
        seed=seed,
        spec=spec,
        trained=Trained(
            parameters, Chain(layers[:-1], layers[-1], spec.lags), _final_states(parameters.states, layout, past_u)
        ),
        lengths=layout.lengths,
        bound=optimum.bound,
        history=optimum.history,
    )


def training_rows(frame: Frame, records: Sequence[Series], jitter: float) -> tuple[Rows, list[np.ndarray], Layout]:
    """The z-scored rows of all records, and the outputs at the times of each record's latent states."""
    blocks = frame.blocks(records)
    lags, y_blocks = frame.lags.states, [block.y for block in blocks]
    rows = Rows(np.concatenate([block.u_bar for block in blocks]), np.concatenate([y[lags:] for y in y_blocks]))
    return rows, y_blocks, Layout(lags, tuple(len(y) for y in y_blocks), jitter)


def _affordable_inducing(spec: RGP, rows: int) -> int:
    if spec.inducing > rows:
        message = f"inducing={spec.inducing}, but there are only {rows} training rows: using {rows}"
        warnings.warn(message, stacklevel=5)
    return min(spec.inducing, rows)


def _maximise(recipe: Recipe, start: Parameters, rows: Rows, layout: Layout, progress: bool) -> Optimum:
    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        bound, gradient = bound_and_gradient(unflatten(vector, start), rows, layout=layout)
        return float(bound), flatten(gradient)

    phases = [Phase(free_entries(start, stage.free), stage.iterations) for stage in recipe.stages]
    settings = Settings(recipe.memory, recipe.ftol, recipe.gtol)
    before = np.cumsum([0, *(stage.iterations for stage in recipe.stages)])
    with progress_bar("fitting", int(before[-1]), progress) as update:

        def report(step: Step) -> None:
            update(int(before[step.stage - 1]) + step.iteration, f"bound {step.bound:.1f}")

        return maximise(objective, flatten(start), phases, settings, report)


def _final_states(states: FreeStates, layout: Layout, past_u: Sequence[np.ndarray]) -> tuple[Start, ...]:
    ends = np.cumsum(layout.lengths).tolist()
    return tuple(
        Start(_last_windows(states.mu, end, layout.lags), np.diag(_last_windows(states.lam, end, layout.lags)), u)
        for end, u in zip(ends, past_u, strict=True)
    )


def _last_windows(layers: Sequence[AnyArray], end: int, lags: int) -> np.ndarray:
    # Newest first, layer after layer: the joint state of simulate.py.
    return np.concatenate([np.ravel(np.asarray(x)[end - lags : end][::-1]) for x in layers])
