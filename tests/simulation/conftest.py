"""Trained models that several files simulate. revarb is imported inside: see tests/conftest.py."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def model():
    """Two hidden layers."""
    from support import small

    return small.spec().fit(small.record())


@pytest.fixture(scope="session")
def shallow_model():
    """One hidden layer."""
    from support import small

    return small.spec(hidden=1).fit(small.record(samples=80))


@pytest.fixture(scope="session")
def wide_model():
    """Two latent dimensions in the first layer, and two outputs."""
    from support import small

    return small.spec(latent_dim=(2, 1), lags=3).fit(small.record(outputs=2))


@pytest.fixture(scope="session")
def tilted(wide_model):
    """The chain of the wide model with random linear parts beside its GPs, and little noise."""
    from support.chains import change_linear, smooth_chain

    rng = np.random.default_rng(7)
    chain = change_linear(
        wide_model.trained.chain, lambda shape: (0.2 * rng.normal(size=shape), np.full(shape[1], 0.1))
    )
    return smooth_chain(chain, 1e-3)
