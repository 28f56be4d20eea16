"""Trained models that several files simulate."""

import pytest

from support import small


@pytest.fixture(scope="module")
def model():
    return small.spec().fit(small.record())


@pytest.fixture(scope="module")
def wide_model():
    return small.spec(latent_dim=(2, 1), lags=3).fit(small.record(outputs=2))
