"""Small valid models to damage, made of the initial values of a fit, which takes a second."""

from dataclasses import replace
from functools import cache

import numpy as np

import revarb
from revarb.data.windows import initial_states
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.weight_path import build_model
from revarb.models.recipe import Status, Step
from revarb.variational.parameters import Parameters, flatten
from revarb.variational.states import RecognisedStates, draw_networks
from support import small

ROWS = 8
RECORDS = (small.record(0, samples=14), small.record(1, samples=10))
U = small.record(3, samples=ROWS).u


@cache
def model(seed: int = 0):
    """Two records, two hidden layers, five inducing inputs."""
    return at_the_start(small.spec(inducing=5), seed)


@cache
def with_networks():
    """The same with a recognition model."""
    return at_the_start(small.spec(inducing=5, recognition=revarb.Recognition(hidden=(3,))), 0)


@cache
def calibrated():
    """Two outputs with gaps of their own, and bands from held-out stretches."""
    whole = [small.record(0, samples=length, outputs=2) for length in (14, 10)]
    records = [small.with_gaps(record, np.s_[4:7, 0], np.s_[6:9, 1]) for record in whole]
    uncalibrated = at_the_start(small.spec(inducing=5), 0, records)
    return replace(uncalibrated, calibration=revarb.Calibration(0.3, 0.05, (2, 5), (1.2, 0.9, 1.5), 12, 0.4))


@cache
def linear():
    """Two outputs, two records, a band for three horizons."""
    records = [small.record(seed, samples=24, outputs=2) for seed in (0, 1)]
    return replace(revarb.ARX(2, 2).fit(records), horizon_std=np.array([[0.1, 0.2], [0.2, 0.3], [0.3, 0.3]]))


@cache
def state_space():
    """Two states, four inducing inputs, after one call of the optimiser."""
    return revarb.GPSSM(states=2, inducing=4, subsequence=6, window=2, batch=1, samples=1, updates=1).fit(RECORDS)


@cache
def reduced_rank():
    """Three draws of six sines."""
    return revarb.ReducedRankGPSSM(states=2, basis=6, particles=3, burn_in=1, draws=3, thinning=1).fit(RECORDS)


CHOICE = revarb.Choice(
    (
        revarb.Candidate("linear, 2 lags", 0.31, 0.05, 12, 0.4),
        revarb.Candidate("RGP, 2 lags, w = 2", 0.2, None, 12, 2.5, "taken"),
        revarb.Candidate("RGP, 5 lags, w = 0", 0.4, None, 3, 1.5, "dropped"),
        revarb.Candidate("RGP, 5 lags", None, None, 0, 0.0, "failed"),
    ),
    "RGP, 2 lags, w = 2", "RGP, 2 lags, w = 2: it is the best.", "cold runs",
)  # fmt: skip


@cache
def chosen():
    """A mixture of two configurations, with what was tried."""
    other = at_the_start(small.spec(inducing=4, hidden=1), 0)
    return replace(revarb.Ensemble.from_candidates([model(0), other]), choice=CHOICE)


@cache
def ensemble():
    return revarb.Ensemble.from_members([model(0), model(1)])


@cache
def path():
    return model().simulate(U)


def warm_up() -> None:
    """Make all of them, and compile what they need."""
    path()
    for each in (model(), with_networks(), chosen(), linear(), state_space(), reduced_rank()):
        for method in each.methods:
            each.simulate(U, method=method)


def at_the_start(spec, seed, records=RECORDS):
    """The model at the initial values of a fit."""
    problem = small.problem(spec, *records, seed=seed)
    start, layout = problem.start, problem.layout
    if spec.recognition is not None:
        rng = np.random.default_rng(seed)
        networks = draw_networks(spec.recognition.hidden, problem.preprocessor.order, spec.latent_dims, 1, rng)
        initial = tuple(np.asarray(initial_states(mu, layout.lags, layout.lengths)) for mu in start.states.mu)
        states = RecognisedStates(networks, initial, start.states.raw_lam)
        problem = problem._replace(start=Parameters(start.layers, states, start.priors))
    vector = np.array(flatten(problem.start))
    optimum = Optimum(vector, -1.5 - seed, Status.ITERATION_LIMIT, (Step(1, 1, -3.0), Step(1, 2, -1.5)))
    return build_model(problem, optimum)
