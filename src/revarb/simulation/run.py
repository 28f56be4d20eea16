"""Free simulation by any method: raw inputs in, a `Trajectory` in raw units out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float, Float64
from numpy.typing import ArrayLike

from revarb.data.preprocessor import MARGIN, Preprocessor, check_finite
from revarb.data.trajectory import Trajectory
from revarb.data.windows import current_windows, input_windows_after
from revarb.errors import InputError, check_integer, check_seed
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState, find_noise_variance
from revarb.simulation.extrapolation import Extrapolation, KnownRange, measure_doubt, run_extrapolation
from revarb.simulation.mean import run_mean
from revarb.simulation.moments import Moments, run_moments
from revarb.simulation.samples import run_samples
from revarb.simulation.starts import Origin
from revarb.variational.states import Network, run_networks

METHODS = ("moments", "mean", "samples")  # of every chain of GPs
Method = Literal["moments", "mean", "samples", "network"]  # the last one only with a recognition model


def simulate_chain(
    prep: Preprocessor,
    chain: Chain[Posterior],
    u: ArrayLike | None,
    method: Method,
    origin: Origin,
    steps: int | None,
    samples: int,
    seed: int,
    settling: int = 0,
) -> Trajectory:
    """Simulate a chain of GPs; see `FittedRGP.simulate`. A cold run settles for so many rows."""
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise InputError(
            f"method must be {known}, or 'network' for an RGP with a recognition model, received {method!r}"
        )
    start, inputs = origin.state, prep.read_inputs(u, steps)
    u_bar, skip = input_windows_after(start.past_u, inputs.z, prep.order), limit_skip(settling, len(inputs.z))
    if method == "mean":
        mean = run_mean(chain, start, u_bar)
        return prep.to_trajectory(method, skip, mean, None, start=origin.name, inputs=inputs)
    if method == "moments":
        moments = run_moments(chain, start, u_bar)
        return prep.to_trajectory(method, skip, *moments, start=origin.name, inputs=inputs)
    count = check_integer("samples", samples, least=2)
    f, drawn = run_samples(chain, start, u_bar, jax.random.key(check_seed(seed)), count)
    mean, sample_variance = np.mean(f, axis=0), np.var(f, axis=0, ddof=1)
    moments = run_moments(chain, start, u_bar)
    disagreement = _measure_disagreement(mean, sample_variance / count, moments, skip)
    variance = find_noise_variance(chain) + sample_variance  # law of total variance (Eq. 36)
    return prep.to_trajectory(method, skip, mean, variance, drawn, disagreement, origin.name, inputs)


def widen_path(path: Trajectory, factors: Float64[np.ndarray, "T Dy"]) -> Trajectory:
    """A run with the standard deviations of its rows multiplied by factors; its samples go as much further out."""
    if path.std is None:
        return path
    samples = None if path.samples is None else path.mean + factors * (path.samples - path.mean)
    with np.errstate(over="ignore"):
        std = path.std * factors
    check_finite(path.method, std, samples)
    return replace(path, std=std, samples=samples)


def widen_beyond(
    path: Trajectory, prep: Preprocessor, chain: Chain, origin: Origin, known: KnownRange, seed: int = 0
) -> Trajectory:
    """A run with marks where its states leave their ranges, and with the band that is wider beyond."""
    raw = np.empty((len(path), 0)) if path.inputs is None else path.inputs
    u_bar = input_windows_after(np.asarray(origin.state.past_u), prep.scaling.inputs(raw), prep.order)
    return add_doubt(path, prep, run_extrapolation(chain, origin.apart, u_bar, known), seed)


def add_doubt(path: Trajectory, prep: Preprocessor, found: Extrapolation, seed: int = 0) -> Trajectory:
    """A run with what was found of its extrapolation: marks, and the band that is wider."""
    path = replace(path, state_extrapolates=np.asarray(found.excess) > MARGIN)
    if path.std is None:
        return path
    distance = prep.scaling.raw_std(np.asarray(found.distance))
    doubt = measure_doubt(distance)
    std, samples = np.hypot(path.std, doubt), path.samples
    if samples is not None:  # one draw for the whole of a trajectory
        samples = samples + doubt * np.random.default_rng(seed).standard_normal((len(samples), 1, 1))
    check_finite(path.method, std, samples)
    return replace(path, std=std, samples=samples)


def limit_skip(settling: int, rows: int) -> int:
    """The number of rows of a cold run that are left out of its scores: while it settles, but at most half of them."""
    return min(max(settling, 0), rows // 2)


def _measure_disagreement(
    mean: Float[AnyArray, "T Dy"], error: Float[AnyArray, "T Dy"], moments: Moments, skip: int
) -> float | None:
    # Root mean square distance of the sampled mean from that of the moments, in standard deviations of the moments,
    # over the scored rows; the Monte Carlo error of the sampled mean is subtracted (Eq. 36a). None without scored rows.
    squares = (((mean - moments.mean) ** 2 - error) / moments.variance)[skip:]
    if not len(squares):
        return None
    return float(np.sqrt(np.maximum(np.mean(squares), 0.0))) if np.isfinite(squares).all() else np.inf


def simulate_networks(
    prep: Preprocessor, chain: Chain[Posterior], networks: Sequence[Network], u: ArrayLike | None, origin: Origin,
    steps: int | None, settling: int,
) -> Trajectory:  # fmt: skip
    """Simulate the networks of a recognition model in place of the hidden layers; the output layer at their means."""
    assert chain.output is not None  # a model with networks has one
    inputs = prep.read_inputs(u, steps)
    paths = _run_networks(prep, chain, networks, inputs.z, origin.state)
    mean, skip = chain.output.mean(current_windows(paths[-1], chain.lags)), limit_skip(settling, len(inputs.z))
    return prep.to_trajectory("network", skip, mean, None, start=origin.name, inputs=inputs)


def recognise_paths(
    prep: Preprocessor, chain: Chain[Posterior], networks: Sequence[Network], u: ArrayLike | None, start: StartState,
    steps: int | None,
) -> list[Float64[np.ndarray, "T _"]]:  # fmt: skip
    """Compute the latent path of every hidden layer by the networks from a start, z-scored."""
    paths = _run_networks(prep, chain, networks, prep.read_inputs(u, steps).z, start)
    return [np.asarray(path)[chain.lags :] for path in paths]


def _run_networks(
    prep: Preprocessor,
    chain: Chain[Posterior],
    networks: Sequence[Network],
    z: Float64[np.ndarray, "T Du"],
    start: StartState,
) -> tuple[AnyArray, ...]:
    # The states before the start and those of every row.
    u_bar = input_windows_after(start.past_u, z, prep.order)
    ends = np.cumsum([chain.lags * dim for dim in chain.latent_dims])[:-1]
    windows = zip(np.split(np.asarray(start.mean), ends), chain.latent_dims, strict=True)
    states = [window.reshape(1, chain.lags, dim)[:, ::-1] for window, dim in windows]  # oldest first
    return run_networks(networks, states, u_bar, chain.lags, (chain.lags + len(u_bar),))
