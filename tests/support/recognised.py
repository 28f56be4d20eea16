"""A problem whose states come from recognition networks."""

import numpy as np

from revarb.fitting.networks import start_networks
from revarb.models.recipe import Recognition
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import with_numerics
from support import small

QUICK_NETWORKS = Recognition(hidden=(6,), start_steps=100, rounds=(50, 50))


@with_numerics
def recognised_problem(variance="free"):
    """A fit of two short records before its first step, and start values with random networks."""
    spec = small.spec(inducing=5, latent_dim=(2, 1), recognition=Recognition(hidden=(4,), variance=variance))
    problem = small.problem(spec, small.record(0, samples=14), small.record(1, samples=11))
    chosen = Recognition(hidden=(4,), variance=variance, start="random")
    return problem, start_networks(chosen, problem, problem.start, np.random.default_rng(1), Journal())[0]
