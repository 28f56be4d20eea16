"""`revarb.fit` with quick candidates in place of its own, for tests of what surrounds the choice."""

import os
import signal
from dataclasses import replace

from revarb.selection import choose, schedule
from revarb.selection.candidates import CandidatePath, DefaultCandidates
from support import small

SAMPLES = 140
"""Of a record that is long enough to hold something out."""


def use_quick_candidates(monkeypatch, linear=False):
    """By default, try linear models of one delay and one small recurrent GP, with or without a linear part."""
    recipe = replace(small.QUICK, free_run_weight=1.0)
    use_defaults(monkeypatch, small.spec(hidden=1, calibrate=True, linear=linear, recipe=recipe))


def use_defaults(monkeypatch, *specs, variants=()):
    """By default, try linear models of one delay and these configurations, with the variants of the best one."""

    class Quick(DefaultCandidates):
        def list_linear_orders(self, held_out):
            return super().list_linear_orders(held_out)[:1]

        def list_paths(self, records, delay):
            names = ["RGP, small", *(f"RGP, small {number}" for number in range(1, len(specs)))]
            return [CandidatePath(spec, name) for spec, name in zip(specs, names, strict=True)]

        def list_variants(self, best, records):
            return [CandidatePath(spec, "RGP, variant") for spec in variants]

    monkeypatch.setattr(choose, "DefaultCandidates", Quick)


def press_ctrl_c(monkeypatch, fit):
    """Send Ctrl-C when this fit of a candidate without a fold begins, counted from 1; return the list of all fits."""
    real, seen = schedule.fit_whole_path, []

    def counted(spec, records, blocks, fold, seed, report):
        seen.append(fold)
        if len(seen) == fit:
            os.kill(os.getpid(), signal.SIGINT)
        return real(spec, records, blocks, fold, seed, report)

    monkeypatch.setattr(schedule, "fit_whole_path", counted)
    return seen
