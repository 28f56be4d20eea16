"""Table 2: its scores against loops, and small models on the real motions."""

import numpy as np
import pytest

import revarb
from revarb.baselines.per_output import PerOutput
from revarb.experiments.motion_scores import MotionScores, score_motions
from revarb.experiments.table2 import load_table2
from revarb.motion import cmu35
from support.experiments import quick_table2


def test_the_scores_equal_plain_loops(rng):
    errors = [rng.standard_normal((rows, 3)) for rows in (5, 9, 4)]
    found = score_motions(errors, np.array([True, False, True]), (5, 6, 21))
    kept = [[[row[0], row[2]] for row in error] for error in errors]

    def rms(values):
        return (sum(value**2 for value in values) / len(values)) ** 0.5

    per_motion = [rms([value for row in rows for value in row]) for rows in kept]
    everything = [row for rows in kept for row in rows]
    expected = MotionScores(
        motions=sum(per_motion) / 3,
        pooled=rms([value for row in everything for value in row]),
        channels=(rms([row[0] for row in everything]) + rms([row[1] for row in everything])) / 2,
        walks=(per_motion[0] + per_motion[1]) / 2,
        runs=per_motion[2],
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_shipped_table_is_the_papers():
    table = load_table2()
    assert table.paper == {"MLP-NARX": 1.2141, "GP-NARX": 0.8987, "REVARB 2 x 1": 0.8600}
    models = table.models()
    assert models["MLP-NARX"].units == (1000,) and isinstance(models["GP-NARX"], PerOutput)
    revarbs = {name: spec for name, spec in models.items() if isinstance(spec, revarb.RGP)}
    assert [(spec.hidden, spec.latent_dim, spec.recognition is not None) for spec in revarbs.values()] == [
        (hidden, dim, networks) for networks in (False, True) for hidden in (1, 2) for dim in (1, 3)
    ]
    assert {(spec.inducing, spec.lags, spec.input_lags) for spec in revarbs.values()} == {(200, 20, 20)}
    assert table.shown in models and set(table.paper) <= set(models)


@pytest.fixture
def quick(recorded_data):
    return quick_table2()


@pytest.mark.slow
def test_the_scores_of_the_training_mean(quick):
    runs = {run.model: run for run in quick.fit_all(seeds=1)}
    (row,) = runs["Mean"].rows
    train, test = cmu35.load_split()
    together = np.concatenate([record.y for record in train])
    z = [((record.y - together.mean(0)) / together.std(0))[20:] for record in test]
    assert row["pooled_57"] == pytest.approx(np.sqrt(np.mean(np.concatenate(z) ** 2)), rel=1e-9)
    assert row["runs_57"] > row["walks_57"] and row["skip"] == 20
    assert runs["Mean"].errors == pytest.approx([np.sqrt(np.mean(each**2)) for each in z])
    assert "need at least" in runs["Too long"].rows[0]["reason"] and runs["Too long"].paths == ()
    assert {row["method"] for row in runs[quick.shown].rows} == {"mean", "moments"}
