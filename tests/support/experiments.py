"""Experiments with quick models."""

import revarb
from revarb.baselines.training_mean import Mean
from revarb.experiments.table2 import Table2, load_table2


class QuickTable2(Table2):
    """The table with quick models; one of them fails."""

    def models(self):
        recipe = revarb.Recipe(stages=(revarb.Stage(("lam",), 1),), kmeans_starts=1, output_noise=1.0)
        return {
            "Mean": Mean(),
            self.shown: revarb.RGP(20, 20, hidden=1, inducing=5, recipe=recipe, calibrate=False),
            "Too long": revarb.RGP(lags=100, input_lags=20),
        }


def quick_table2():
    """Table 2 with the shipped settings and quick models."""
    return QuickTable2(**vars(load_table2()))
