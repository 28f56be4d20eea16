"""Trained models that several files simulate."""

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
