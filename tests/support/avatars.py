"""A small trained avatar."""

import functools

from revarb import RGP, Recipe, Stage
from studies.paper.motion import cmu35
from studies.paper.motion.avatar_model import Gaits

QUICK_RECIPE = Recipe(
    hidden_noise=0.01, output_noise=0.3, latent_variance=0.1, stages=(Stage(("mu", "lam", "zeta", "w"), 20),)
)
TINY = RGP(lags=6, input_lags=1, hidden=1, inducing=30, latent_dim=3, recipe=QUICK_RECIPE, calibrate=False)


@functools.cache
def gaits():
    """One walk and one run."""
    return Gaits((cmu35.load_speed_series(1),), (cmu35.load_speed_series(17),))


@functools.cache
def trained():
    """The avatar's model of them."""
    return TINY.fit(gaits().records)
