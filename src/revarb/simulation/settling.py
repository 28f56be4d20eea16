"""How a cold run settles: the share of its variance that is due to what is not known before it, row by row.

docs/theory/derivation.md, Eqs. 36d and 36e.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from revarb.data.windows import Order, input_windows_after
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import run_mean_spread, run_means
from revarb.simulation.moments import JointState, compute_known_rows, observe_moments, scan_chunks

SETTLED = 0.05  # share of the variance; with less the start makes a band 2.5 % wider
CHUNK, MAX_ROWS = 128, 1024  # rows that are computed at a time, and at most: some systems never forget their start


class Settling(NamedTuple):
    """The first rows of a cold run, at inputs at their training mean; the last row stands for all later ones.

    `shares` is the share of the variance that is due to what is not known before the run: the largest of all outputs.
    It never rises, and is scaled such that it is 0 from the row on at which less than `SETTLED` is left. `unseen` is
    the variance that inputs before the run add to that of propagated states, z-scored.
    """

    shares: Float64[np.ndarray, " K"]
    variance: Float64[np.ndarray, "K Dy"]
    unseen: Float64[np.ndarray, "K Dy"]

    @property
    def rows(self) -> int:
        """Number of rows in which the run settles."""
        return int(np.count_nonzero(self.shares))

    @property
    def widths(self) -> Float64[np.ndarray, "K Dy"]:
        """Factors on the standard deviation of propagated states, for the inputs before the run."""
        return np.sqrt(1.0 + self.unseen / self.variance)


def measure_settling(chain: Chain[Posterior], start: StartState, order: Order) -> Settling:
    """Measure how a cold run of a chain of GPs settles: against a run that knows its state and its past inputs."""
    mean, cov = np.asarray(start.mean), np.asarray(start.cov)
    cold, exact = JointState(mean, cov), JointState(mean, np.zeros_like(cov))
    known = compute_known_rows(chain.hidden[0], np.zeros((CHUNK, order.input_lags * start.past_u.shape[1])), CHUNK)
    largest, parts = np.asarray(_observe_variance(chain, cold)), []
    unseen = measure_unseen(chain, start, order, MAX_ROWS)
    while len(parts) * CHUNK < MAX_ROWS:
        added = unseen[len(parts) * CHUNK :][:CHUNK]
        (cold, ours), (exact, least) = (scan_chunks(chain, state, known) for state in (cold, exact))
        parts.append(compare_variances(np.asarray(ours.variance), np.asarray(least.variance), added, largest))
        if parts[-1].shares[-CHUNK // 4 :].max() < SETTLED:
            break
    return scale_settling(Settling(*(np.concatenate(part) for part in zip(*parts, strict=True))))


@jax.jit
def _observe_variance(chain: Chain[Posterior], state: JointState) -> Float[AnyArray, " Dy"]:
    return jnp.diagonal(observe_moments(chain)(state).cov)


def measure_narx_settling(chain: Chain, start: StartState, order: Order, std: Float64[np.ndarray, " Dy"]) -> Settling:
    """The same of a NARX model with a mean only, whose band has this standard deviation once it has settled."""
    inputs = np.zeros((MAX_ROWS, order.input_lags * start.past_u.shape[1]))
    exact, unseen = np.tile(std**2, (MAX_ROWS, 1)), measure_unseen(chain, start, order, MAX_ROWS)
    largest = std**2 + np.diagonal(np.asarray(start.cov))[: len(std)]
    spread = run_mean_spread(chain, start, inputs)[1]
    return scale_settling(compare_variances(exact + spread, exact, unseen, largest))


def measure_unseen(chain: Chain, start: StartState, order: Order, rows: int) -> Float64[np.ndarray, "T Dy"]:
    """Measure how far outputs go from their mean with past inputs at a level, a standard deviation from theirs."""
    reach, inputs = start.past_u.shape
    levels = np.concatenate([np.zeros((1, inputs)), np.eye(inputs), -np.eye(inputs)])
    later = np.zeros((rows, inputs))
    u_bar = np.stack([input_windows_after(np.tile(level, (reach, 1)), later, order) for level in levels], axis=1)
    runs = np.asarray(run_means(chain, np.tile(np.asarray(start.mean), (len(levels), 1)), u_bar))
    with np.errstate(invalid="ignore", over="ignore"):  # of runs that diverge
        return 0.5 * np.sum((runs[:, 1:] - runs[:, :1]) ** 2, axis=1)


def compare_variances(
    cold: Float64[np.ndarray, "T Dy"], exact: Float64[np.ndarray, "T Dy"], unseen: Float64[np.ndarray, "T Dy"],
    largest: Float64[np.ndarray, " Dy"],
) -> Settling:  # fmt: skip
    """A cold run against an exact one; unseen inputs make its variance no larger than that of y itself."""
    with np.errstate(invalid="ignore", over="ignore"):  # of a run that diverges
        added = np.clip(largest - cold, 0.0, unseen)
        shares = np.nan_to_num(1.0 - exact / (cold + added), nan=1.0)
    return Settling(shares.max(axis=1), cold, np.nan_to_num(added))


def scale_settling(measured: Settling) -> Settling:
    """Let the shares never rise, and end at 0, where they stay below `SETTLED`; what unseen inputs add, too."""
    later = np.maximum.accumulate(measured.shares[::-1])[::-1]
    scaled = np.clip((later - SETTLED) / (1.0 - SETTLED), 0.0, 1.0)
    kept = slice(np.count_nonzero(scaled) + 1)
    left = np.divide(scaled, later, out=np.zeros_like(later), where=later > 0.0)[kept, None]
    return Settling(scaled[kept], measured.variance[kept], left * measured.unseen[kept])


def find_row(steps: Float64[np.ndarray, " T"] | np.ndarray, rows: int) -> np.ndarray:
    """Positions of steps, the first of which is 1, in a table whose last row stands for all later steps."""
    return np.minimum(steps, rows) - 1
