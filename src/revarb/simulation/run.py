"""A chain of layers in its frame: raw inputs in, a `Trajectory` in raw units out, by any method."""

from collections.abc import Sequence
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.data.preprocessor import Frame
from revarb.data.trajectory import Trajectory
from revarb.data.windows import current_windows, input_windows
from revarb.errors import InputError, check_seed, check_whole
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean
from revarb.simulation.moments import Moments, run_moments
from revarb.simulation.samples import run_samples
from revarb.simulation.starts import Origin, cold_origin
from revarb.variational.networks import Network, run_networks

Method = Literal["moments", "mean", "samples", "network"]


def free_run(
    frame: Frame,
    chain: Chain[Posterior],
    u: ArrayLike | None,
    method: Method,
    origin: Origin,
    steps: int | None,
    samples: int,
    seed: int,
) -> Trajectory:
    """Simulate a chain of GPs: see `FittedRGP.simulate`."""
    start, z = origin.state, frame.checked_inputs(u, steps, warm=not origin.cold)
    u_bar = input_windows(np.concatenate([start.past_u, z]), frame.lags)
    fresh, skip = (frame.lags.reach, frame.skip) if origin.cold else (0, 0)
    if method == "mean":
        return frame.trajectory(method, skip, run_mean(chain, start, u_bar, fresh), None, start=origin.name)
    if method == "moments":
        moments = run_moments(chain, start, u_bar, fresh)
        return frame.trajectory(method, skip, moments.mean, moments.variance, start=origin.name)
    if method == "samples":
        count = check_whole("samples", samples, least=2)
        f, drawn = run_samples(chain, start, u_bar, fresh, jax.random.key(check_seed(seed)), count)
        mean, apart = np.mean(f, axis=0), np.var(f, axis=0, ddof=1)
        moments = run_moments(chain, start, u_bar, fresh)
        distance = _distance(mean, apart / count, moments, skip)
        # Law of total variance: the noise of y given a trajectory, and how far the trajectories are apart.
        return frame.trajectory(method, skip, mean, chain.last.sigma2 + apart, drawn, distance, origin.name)
    raise InputError(f"method must be 'moments', 'mean', 'samples' or 'network', received {method!r}")


def _distance(
    mean: Float[AnyArray, "T Dy"], error: Float[AnyArray, "T Dy"], moments: Moments, skip: int
) -> float | None:
    # How far a sampled mean is from that of the moments, in their standard deviations: root mean square over what is
    # scored, less the Monte Carlo error of the sampled mean (Eq. 36a). None where nothing is left to score.
    squares = (((mean - moments.mean) ** 2 - error) / moments.variance)[skip:]
    if not len(squares):
        return None
    return float(np.sqrt(np.maximum(np.mean(squares), 0.0))) if np.isfinite(squares).all() else np.inf


def network_run(
    frame: Frame, chain: Chain[Posterior], networks: Sequence[Network], u: ArrayLike | None, origin: Origin,
    steps: int | None,
) -> Trajectory:  # fmt: skip
    """The networks run free in place of the hidden layers; the output layer at their means."""
    assert chain.output is not None  # a model with networks has one
    pieces = _network_pieces(frame, chain, networks, u, origin, steps)
    means = [chain.output.mean(current_windows(paths[-1], chain.lags)) for paths in pieces]
    skip = frame.skip if origin.cold else 0
    return frame.trajectory("network", skip, np.concatenate(means), None, start=origin.name)


def network_paths(
    frame: Frame, chain: Chain[Posterior], networks: Sequence[Network], u: ArrayLike | None, steps: int | None
) -> list[Float64[np.ndarray, "T _"]]:
    """What the networks give for every hidden layer, cold start, z-scored."""
    pieces = _network_pieces(frame, chain, networks, u, cold_origin(frame, chain), steps)
    return [np.concatenate([np.asarray(path)[chain.lags :] for path in layer]) for layer in zip(*pieces, strict=True)]


def _network_pieces(
    frame: Frame, chain: Chain[Posterior], networks: Sequence[Network], u: ArrayLike | None, origin: Origin,
    steps: int | None,
) -> list[tuple[AnyArray, ...]]:  # fmt: skip
    # A cold run begins anew where the window of inputs is full, as that of the chain does: two pieces.
    start, z = origin.state, frame.checked_inputs(u, steps, warm=not origin.cold)
    u_bar = input_windows(np.concatenate([start.past_u, z]), frame.lags)
    ends = np.cumsum([chain.lags * dim for dim in chain.latent_dims])[:-1]
    windows = zip(np.split(np.asarray(start.mean), ends), chain.latent_dims, strict=True)
    states = [window.reshape(1, chain.lags, dim)[:, ::-1] for window, dim in windows]  # oldest first
    pieces = [u_bar] if not origin.cold or not frame.lags.reach else np.split(u_bar, [frame.lags.reach])
    return [run_networks(networks, states, piece, chain.lags, (chain.lags + len(piece),)) for piece in pieces]
