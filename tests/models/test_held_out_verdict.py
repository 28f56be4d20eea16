import re

import pytest

from revarb.models.held_out_verdict import state_held_out


@pytest.mark.parametrize(
    ("error", "linear", "mean", "words"),
    [
        (0.12, 0.31, 1.0, r"held-out error 0.12 of the output's standard deviation \(ARX 0.31, .*\): use it$"),
        (0.12, None, 1.0, r"held-out error 0.12 of the output's standard deviation \(the training mean 1\): use it$"),
        (0.12, 0.118, 1.0, ": use it$"),  # the same as ARX
        (0.40, 0.31, 1.0, ": a linear model is better; use revarb.fit or ARX$"),
        (0.70, 0.90, 1.0, ": hardly better than the mean; try revarb.fit, more or other inputs, or a longer record$"),
        (0.99, 0.90, 1.0, ": no better than the mean, do not use it; try revarb.fit"),
        (0.30, 0.50, 0.31, ": no better than the mean, do not use it"),
    ],
)
def test_the_sentence_says_whether_the_model_is_any_good(error, linear, mean, words):
    assert re.search(words, state_held_out(error, linear, mean))


@pytest.mark.parametrize(("error", "linear"), [(0.99, 0.9), (0.4, 0.3), (0.7, 0.9)])
def test_what_a_model_lacks_is_named_first(error, linear):
    assert state_held_out(error, linear, 1.0, "latent_dim=2").endswith("; try latent_dim=2")


def test_a_good_model_lacks_nothing():
    assert state_held_out(0.1, 0.3, 1.0, "latent_dim=2").endswith(": use it")
