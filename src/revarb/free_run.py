"""A chain of layers in its frame: raw inputs in, a `Trajectory` in raw units out, by any method."""

from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.collapsed import Posterior
from revarb.errors import InputError, check_seed, check_whole
from revarb.frame import Frame
from revarb.numerics import AnyArray
from revarb.simulate import Chain, Start, cold_start, run_mean, run_moments, run_samples
from revarb.trajectory import Trajectory
from revarb.windows import Lags, input_windows

Method = Literal["moments", "mean", "samples"]


def free_run(
    frame: Frame,
    chain: Chain[Posterior],
    u: ArrayLike | None,
    method: Method,
    initial: Start | None,
    steps: int | None,
    samples: int,
    seed: int,
) -> Trajectory:
    """Simulate a chain of GPs. `initial` None is cold: see `FittedRGP.simulate`."""
    start = _checked_start(frame, chain, initial)
    z = frame.checked_inputs(u, steps, warm=initial is not None)
    u_bar = input_windows(np.concatenate([start.past_u, z]), frame.lags)
    fresh, skip = (frame.lags.reach, frame.skip) if initial is None else (0, 0)
    if method == "mean":
        return frame.trajectory(method, skip, run_mean(chain, start, u_bar, fresh), None)
    if method == "moments":
        moments = run_moments(chain, start, u_bar, fresh)
        return frame.trajectory(method, skip, moments.mean, moments.variance)
    if method == "samples":
        count = check_whole("samples", samples, least=2)
        given, drawn = run_samples(chain, start, u_bar, fresh, jax.random.key(check_seed(seed)), count)
        # Law of total variance: what each trajectory does not know, and how far they are apart.
        variance = np.mean(given.variance, axis=0) + np.var(given.mean, axis=0)
        return frame.trajectory(method, skip, np.mean(given.mean, axis=0), variance, drawn)
    raise InputError(f"method must be 'moments', 'mean' or 'samples', received {method!r}")


def cold_mean(chain: Chain, lags: Lags, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
    """The mean-only free run on z-scored inputs, cold where the window of inputs is full; z-scored."""
    start = cold_start(chain.latent_dims, chain.lags, lags.reach, z.shape[1])
    return run_mean(chain, start, input_windows(np.concatenate([start.past_u, z]), lags), lags.reach)


def _checked_start(frame: Frame, chain: Chain, initial: Start | None) -> Start:
    cold = cold_start(chain.latent_dims, chain.lags, frame.lags.reach, len(frame.input_names))
    if initial is None:
        return cold
    if not isinstance(initial, Start) or _shapes(initial) != _shapes(cold):
        raise InputError(
            "initial does not fit: pass one of the final_states of a model with the same lags, layers and inputs"
        )
    return initial


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    return [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
