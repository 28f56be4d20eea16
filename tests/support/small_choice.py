"""`revarb.fit` with two quick candidates in place of its own, for tests of what surrounds the choice."""

import os
import signal
from dataclasses import replace

from revarb.training import choose, linear_trial, trials
from revarb.training.candidates import Structure
from support import small

SAMPLES = 140
"""Of a record that is long enough to hold something out."""


def use_quick_candidates(monkeypatch, linear=False):
    """Try linear models of one delay and one small recurrent GP, with or without a linear part."""
    recipe = replace(small.QUICK, free_run_weight=1.0)
    spec = small.spec(hidden=1, calibrate=True, linear=linear, recipe=recipe)
    monkeypatch.setattr(linear_trial, "DELAYS", (1,))
    monkeypatch.setattr(choose, "list_structures", lambda records, delay: [Structure("small", spec)])
    monkeypatch.setattr(choose, "list_variants", lambda best, records: [])


def press_ctrl_c(monkeypatch, fit):
    """Send Ctrl-C when this fit of a candidate without a fold begins, counted from 1; return the list of all fits."""
    real, seen = trials.fit_path, []

    def counted(spec, records, stretches, fold, seed, report):
        seen.append(fold)
        if len(seen) == fit:
            os.kill(os.getpid(), signal.SIGINT)
        return real(spec, records, stretches, fold, seed, report)

    monkeypatch.setattr(trials, "fit_path", counted)
    return seen
