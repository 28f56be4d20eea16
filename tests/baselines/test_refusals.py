"""Invalid configurations, records, arguments and files of the baselines: one line that says what is wrong."""

from functools import cache

import numpy as np
import pytest

from revarb.baselines import ARX, GPNARX, GPSSM, LSTM, MLPNARX, Mean, PerOutput, ReducedRankGPSSM
from revarb.errors import InputError
from revarb.models.model_file import model_from_parts, model_parts
from support import small

RECORD = small.record()
TWO = small.record(outputs=2)
EVERY_THIRD = small.with_gaps(RECORD, slice(0, 57, 3), 58)
BETWEEN_QUARTERS = small.with_gaps(RECORD, slice(20, None, 2), slice(0, 3), slice(14, 20))
QUICK_SSM = GPSSM(states=2, inducing=4, subsequence=6, window=2, batch=1, samples=1, updates=1)
QUICK_RANK = ReducedRankGPSSM(states=1, basis=20, particles=3, burn_in=1, draws=20, thinning=1)
NARX = {"lags": 2, "input_lags": 2}


class OwnModel:
    """A user's model that `compare` accepts, but that is no `Fitted`."""

    def fit(self, train, seed=0):
        return self


@cache
def trained(spec):
    return spec.fit(RECORD)


def simulate(spec, **arguments):
    return trained(spec).simulate(RECORD.u, **arguments)


def read_changed(header=(), **arrays):
    """The reduced-rank model from its file, with some entries replaced; a number fills an array."""
    known, found = model_parts(trained(QUICK_RANK))
    changed = {name.replace("__", "."): value for name, value in arrays.items()}
    filled = {name: np.full_like(found[name], value) for name, value in changed.items()}
    return model_from_parts({**known, **dict(header)}, {**found, **filled})


REFUSALS = [
    (lambda: GPNARX(inducing=0), "inducing must be a whole number of at least 1"),
    (lambda: MLPNARX(units=()), r"units must be a list of whole numbers, received \(\)"),
    (lambda: MLPNARX(units=(0,)), "units must be a whole number of at least 1"),
    (lambda: MLPNARX(weight_decay=-1.0), "weight_decay must be a finite number of at least 0"),
    (lambda: LSTM(layers=(4,)), "layers must be a whole number from 1 to 3, received 4"),
    (lambda: LSTM(layers=()), r"layers must be a list of whole numbers, received \(\)"),
    (lambda: LSTM(learning_rate=0.0), "learning_rate must be a finite number above 0"),
    (lambda: LSTM(batch=0), "batch must be a whole number of at least 1"),
    (lambda: GPSSM(structure="full"), "structure must be 'prior', 'mean-field' or 'markov', received 'full'"),
    (lambda: GPSSM(structure=["prior"]), "structure must be 'prior'"),
    (lambda: GPSSM(mean="zero"), "mean must be 'identity' or 'linear', received 'zero'"),
    (lambda: GPSSM(states=0), "states must be a whole number of at least 1"),
    (lambda: GPSSM(learning_rate=-1.0), "learning_rate must be a finite number above 0"),
    (lambda: ReducedRankGPSSM(states=0), "states must be a whole number of at least 1, received 0"),
    (lambda: ReducedRankGPSSM(particles=1), "particles must be a whole number of at least 2"),
    (lambda: ReducedRankGPSSM(box=0.5), "box must be a finite number above 1"),
    (lambda: PerOutput(GPNARX), r"takes a configuration, such as PerOutput\(GPNARX\(\)\), received <class"),
    (lambda: PerOutput(OwnModel()).fit(RECORD), r"whose fit returns a Fitted .* which returns a OwnModel"),
    # Records
    (lambda: GPNARX().fit(small.record(samples=11)), "need at least 12"),
    (lambda: QUICK_RANK.fit(small.record(samples=2)), "record 0 has 2 samples"),
    (lambda: GPSSM(states=1).fit(TWO), "states=1 are fewer than the 2 outputs"),
    (lambda: QUICK_RANK.fit(TWO), "states=1 are fewer than the 2 outputs"),
    (lambda: GPNARX(**NARX).fit(EVERY_THIRD), "GP-NARX regresses on measured past outputs, and 1 of 58 training rows"),
    (lambda: MLPNARX(**NARX).fit(EVERY_THIRD), "MLP-NARX regresses on measured past outputs, and 1 of 58 training"),
    (lambda: ARX(3, 3).fit(EVERY_THIRD), "no row of the records has all its past outputs measured; use fewer lags"),
    (lambda: LSTM().fit(EVERY_THIRD), "^LSTM needs every output value, and 20 of 60 are missing; fill them"),
    (lambda: MLPNARX(**NARX).fit(BETWEEN_QUARTERS), "the gaps leave no training rows beside a held-out piece"),
    # Simulations
    (lambda: simulate(Mean(), method="moments"), "method must be 'residuals', received 'moments'"),
    (lambda: simulate(PerOutput(Mean()), method="moments"), "method must be 'residuals', received .moments.; for"),
    (lambda: simulate(QUICK_SSM, method="moments"), "method must be 'samples' or 'mean', received 'moments'"),
    (lambda: simulate(QUICK_SSM, start="hot"), "start must be"),
    # Model files
    (lambda: read_changed(posterior__R=-1.0), "a draw has a noise that is not positive"),
    (lambda: read_changed(posterior__Q=-1.0), "a draw has a noise that is not positive"),
    (lambda: read_changed(basis__half_width=0.0), "a width of its box is not positive"),
    (lambda: read_changed(basis__numbers=1.5), "a number of half waves is not a whole number"),
    (lambda: read_changed(starts__cov=-1.0), "a final state has an invalid covariance"),
    (lambda: read_changed({"states": 0}), "states must be"),
    (lambda: read_changed({"draws": 3}), "'posterior.weights' has shape"),
    (lambda: read_changed({"basis": 7}), "has shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSALS, ids=[message[:40] for _, message in REFUSALS])
def test_invalid_input_is_refused_with_a_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()
