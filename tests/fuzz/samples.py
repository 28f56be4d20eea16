"""Small valid models to damage, made of the initial values of a fit, which takes a second."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from revarb.baselines.state_space.gpssm import GPSSM, FittedGPSSM
from revarb.baselines.state_space.reduced_rank import FittedReducedRankGPSSM, ReducedRankGPSSM
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import initial_states
from revarb.fitting.arx import ARX
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.weight_path import build_model
from revarb.models.calibration import Calibration
from revarb.models.choice import Candidate, Choice
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import Recognition
from revarb.models.rgp import RGP
from revarb.models.status import Status, Step
from revarb.variational.networks import RecognisedStates, draw_networks
from revarb.variational.parameters import Parameters, flatten
from support import small

ROWS = 8
RECORDS = (small.record(0, samples=14), small.record(1, samples=10))
U = small.record(3, samples=ROWS).u


@cache
def model(seed: int = 0) -> FittedRGP:
    """Two records, two hidden layers, five inducing inputs."""
    return at_the_start(small.spec(inducing=5), seed)


@cache
def with_networks() -> FittedRGP:
    """The same with a recognition model."""
    return at_the_start(small.spec(inducing=5, recognition=Recognition(hidden=(3,))), 0)


@cache
def calibrated() -> FittedRGP:
    """Two outputs with gaps of their own, and bands from held-out stretches."""
    uncalibrated = at_the_start(small.spec(inducing=5), 0, [_with_gaps(14), _with_gaps(10)])
    return replace(uncalibrated, calibration=Calibration(0.3, 0.05, (2, 5), (1.2, 0.9, 1.5), 12, 0.4))


def _with_gaps(length: int) -> Series:
    record = small.record(0, samples=length, outputs=2)
    y = record.y.copy()
    y[4:7, 0] = y[6:9, 1] = np.nan
    return Series(record.u, y)


@cache
def linear() -> FittedARX:
    """Two outputs, two records, a band for three horizons."""
    records = [small.record(seed, samples=24, outputs=2) for seed in (0, 1)]
    return replace(ARX(2, 2).fit(records), horizon_std=np.array([[0.1, 0.2], [0.2, 0.3], [0.3, 0.3]]))


@cache
def state_space() -> FittedGPSSM:
    """Two states, four inducing inputs, after one call of the optimiser."""
    return GPSSM(states=2, inducing=4, subsequence=6, window=2, batch=1, samples=1, updates=1).fit(RECORDS)


@cache
def reduced_rank() -> FittedReducedRankGPSSM:
    """Three draws of six sines."""
    return ReducedRankGPSSM(states=2, basis=6, particles=3, burn_in=1, draws=3, thinning=1).fit(RECORDS)


CHOICE = Choice(
    (
        Candidate("linear, 2 lags", 0.31, 0.05, 12, 0.4),
        Candidate("RGP, 2 lags, w = 2", 0.2, None, 12, 2.5, "taken"),
        Candidate("RGP, 5 lags, w = 0", 0.4, None, 3, 1.5, "dropped"),
        Candidate("RGP, 5 lags", None, None, 0, 0.0, "failed"),
    ),
    "RGP, 2 lags, w = 2", "RGP, 2 lags, w = 2: it is the best.", "cold runs",
)  # fmt: skip


@cache
def chosen() -> Ensemble:
    """A mixture of two configurations, with what was tried."""
    other = at_the_start(small.spec(inducing=4, hidden=1), 0)
    return replace(Ensemble.from_candidates([model(0), other]), choice=CHOICE)


@cache
def ensemble() -> Ensemble:
    """Two members."""
    return Ensemble.from_members([model(0), model(1)])


@cache
def path() -> Trajectory:
    """A simulation."""
    return model().simulate(U)


def warm_up() -> None:
    """Make all of them, and compile what they need."""
    path()
    for one in (model(), with_networks()):
        one.simulate(U, method="mean")
    with_networks().simulate(U, method="network")
    for many in (ensemble(), chosen()):
        many.simulate(U)
    for relative in (linear(), state_space(), reduced_rank()):
        for method in relative.methods:
            relative.simulate(U, method=method)


def at_the_start(spec: RGP, seed: int, records: Sequence[Series] = RECORDS) -> FittedRGP:
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
