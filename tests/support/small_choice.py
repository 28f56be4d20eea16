"""`revarb.fit` with quick candidates in place of its own, for tests of what surrounds the choice."""

import os
import signal
from dataclasses import replace

from revarb.models.recipe import Recipe, Stage
from revarb.selection import choose, ranking, schedule
from revarb.selection.candidates import CandidatePath, DefaultCandidates
from support import small

SAMPLES = 140
"""Of a record that is long enough to hold something out."""
STAGES = (Stage(("mu", "lam", "zeta", "w"), 8), Stage(("mu", "lam", "zeta", "w"), 7))
RECIPE = Recipe(latent_variance=0.45, stages=STAGES, free_run_weight=1.0, free_run_iterations=5)
CLOSE = small.spec(hidden=1, inducing=8, recipe=RECIPE)
ALSO_CLOSE = replace(CLOSE, recipe=replace(RECIPE, latent_variance=0.5))
"""The same compiled program; 4 % worse on `small.record(samples=SAMPLES)`, about one standard error."""


def use_quick_candidates(monkeypatch):
    """By default, try linear models of one delay and two small recurrent GPs, which are mixed."""
    monkeypatch.setattr(ranking, "MAX_DEVIATIONS", 100.0)  # however small their standard error is
    use_defaults(monkeypatch, CLOSE, ALSO_CLOSE)


def use_defaults(monkeypatch, *specs):
    """By default, try linear models of one delay and these configurations."""

    class Quick(DefaultCandidates):
        def list_linear_orders(self, held_out):
            return super().list_linear_orders(held_out)[:1]

        def list_paths(self, records, delay):
            names = ["RGP, small", *(f"RGP, small {number}" for number in range(1, len(specs)))]
            return [CandidatePath(spec, name) for spec, name in zip(specs, names, strict=True)]

    monkeypatch.setattr(choose, "DefaultCandidates", Quick)


def count_calls(monkeypatch, module, name, press_at=0):
    """Collect the arguments of all calls of a function; send Ctrl-C when one of them begins, counted from 1."""
    real, seen = getattr(module, name), []

    def counted(*arguments, **options):
        seen.append(arguments)
        if len(seen) == press_at:
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, counted)
    return seen


def press_ctrl_c(monkeypatch, fit):
    """Send Ctrl-C when this fit of a candidate without a fold begins; return a function that lists all folds."""
    calls = count_calls(monkeypatch, schedule, "fit_whole_path", fit)
    return lambda: [fold for _, _, _, fold, *_ in calls]
