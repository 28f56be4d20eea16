"""Table 2: its scores against loops, and small models on the real motions."""

import numpy as np
import pytest

import revarb
from studies.paper.motion import cmu35
from studies.paper.table2 import SHOWN, MotionScores, Table2, score_motions
from studies.study import run_fits
from studies.tables import list_failures, select


def test_the_scores_equal_plain_loops(rng):
    errors = [rng.standard_normal((rows, 3)) for rows in (5, 9, 4)]
    found = score_motions(errors, np.array([True, False, True]), (5, 6, 21))
    kept = [[[row[0], row[2]] for row in error] for error in errors]

    def rms(rows):
        values = [value for row in rows for value in row]
        return (sum(value**2 for value in values) / len(values)) ** 0.5

    first, second, run = (rms(rows) for rows in kept)
    everything = [row for rows in kept for row in rows]
    channels = [rms([row[k : k + 1] for row in everything]) for k in (0, 1)]
    expected = MotionScores(
        motions=(first + second + run) / 3, pooled=rms(everything), channels=sum(channels) / 2,
        walks=(first + second) / 2, runs=run,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


class QuickTable2(Table2):
    """The table with quick models; one of them fails."""

    def models(self):
        recipe = revarb.Recipe(stages=(revarb.Stage(("lam",), 1),), kmeans_starts=1, output_noise=1.0)
        shown = revarb.RGP(20, 20, hidden=1, inducing=5, recipe=recipe, calibrate=False)
        return {"Mean": revarb.Mean(), SHOWN: shown, "Too long": revarb.RGP(lags=100, input_lags=20)}


@pytest.mark.slow
def test_a_quick_table_on_the_real_motions(recorded_data):
    study = QuickTable2(seeds=2)
    rows, drawn = run_fits(study)
    assert len(rows) == 1 + 2 * 2 + 2
    mean, (train, test) = select(rows, model="Mean")[0], cmu35.load_split()
    together = np.concatenate([record.y for record in train])
    z = [((record.y - together.mean(0)) / together.std(0))[20:] for record in test]
    assert mean["pooled_57"] == pytest.approx(np.sqrt(np.mean(np.concatenate(z) ** 2)), rel=1e-9)
    assert mean["runs_57"] > mean["walks_57"] and 0.9 < mean["coverage95"] < 1.0
    assert "need at least" in list_failures(rows)[0]
    assert sorted(study.figures(rows, drawn)) == ["motion_35_05_walk", "motion_35_21_run"]
    page = study.page(rows, drawn, {})
    assert "35_05 walk" in page and "35_24 run" in page and "53 channels" in page and "http" not in page
