"""Rising weights of the free-run term: the algorithm, and fits without a fold, one after the other and batched."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.errors import ComputationError, InputError
from revarb.fitting.batched_fits import fit_paths_batched, trace_batched
from revarb.fitting.held_out import mask_fold
from revarb.fitting.lbfgs import DEFAULT_SETTINGS, Optimum, Phase
from revarb.fitting.problem import Plan, initialise, prepare
from revarb.fitting.weight_path import ALL, fit_whole_path, raise_weights
from revarb.models.recipe import FIXED_FREE, Recipe, Stage, Status, Step
from revarb.runtime.numerics import with_numerics
from support import small

STAGES = (Stage(FIXED_FREE, 4), Stage(FIXED_FREE, 4))
RECIPE = Recipe(hidden_noise=0.01, latent_variance=0.02, stages=STAGES, free_run_weight=10.0, free_run_iterations=4)
SPEC = small.spec(hidden=1, inducing=8, recipe=RECIPE, calibrate=True)
RECORD = small.record(samples=130)
BLOCKS = prepare(SPEC, [RECORD]).blocks


def ignore(*said):
    pass


def test_every_fit_rises_until_it_fails_diverges_or_is_interrupted():
    """Four fits of which the second fails at its start, the third diverges at weight 2 and the fourth is stopped."""
    calls, free = [], np.ones(1, dtype=bool)
    plans = [Plan(np.array([float(k)]), [Phase(free, 7), Phase(free, 9)], DEFAULT_SETTINGS) for k in range(4)]
    failed = ComputationError("the bound is nan")

    def optimise(weight, starts, phases, first_stage):
        calls.append((weight, [float(start[0]) for start in starts], [phase.iterations for phase in phases[0]]))
        status = Status.INTERRUPTED if weight == 2.0 else Status.CONVERGED
        found = [Optimum(start + 10.0, weight, Status.CONVERGED, (Step(first_stage, 1, weight),)) for start in starts]
        return [found[0], failed, failed if weight == 2.0 else found[2], found[3]._replace(status=status)]

    path = list(raise_weights(RECIPE, plans, optimise))
    assert calls == [(0.0, [0, 1, 2, 3], [7, 9]), (2.0, [10, 1, 12, 13], [4]), (10.0, [20, 1, 12, 23], [4])]
    assert [weight for weight, _ in path] == [0.0, 2.0, 10.0]
    (_, start), (_, middle), (_, end) = path
    assert [step.stage for step in end[0].history] == [1, 3, 4] and end[0].vector == 30.0
    assert start[1] is failed and middle[1] is None
    assert middle[2] == start[2]._replace(status=Status.NOT_FINITE) and end[2] is None
    assert middle[3].status is Status.INTERRUPTED and end[3] is None
    assert [weight for weight, _ in raise_weights(RECIPE, plans[:1], lambda *_: [failed])] == [0.0]


@pytest.fixture(scope="module")
def path():
    return fit_whole_path(SPEC, [RECORD], BLOCKS, 1, 0, ignore)


def test_a_model_at_every_weight(path):
    assert [model.spec.recipe.free_run_weight for model in path.models] == [0.0, 2.0, 10.0]
    assert all(replace(model.spec, recipe=SPEC.recipe) == SPEC for model in path.models)
    assert path.seconds > 0.0 and len({model.bound for model in path.models}) == 3
    lengths = [len(model.history) for model in path.models]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]
    fitted = mask_fold([RECORD], BLOCKS, 1)[0].y[10:]
    first, _, last = (np.nanmean((model.simulate(RECORD.u, "mean").mean[10:] - fitted) ** 2) for model in path.models)
    assert last < first


def test_ctrl_c_leaves_no_models_and_a_constant_output_outside_the_fold_is_refused():
    seen = []

    def press(steps, text):
        seen.append(steps)
        if len(seen) == 3:
            raise KeyboardInterrupt

    assert fit_whole_path(SPEC, [RECORD], BLOCKS, 0, 0, press).models == () and len(seen) == 3
    y = np.zeros(130)
    rows = next(block.rows for block in BLOCKS if block.fold == 2)
    y[rows] = RECORD.y[rows, 0]
    with pytest.raises(InputError, match="output column 'y' is constant"):
        fit_whole_path(SPEC, [Series(RECORD.u, y)], BLOCKS, 2, 0, ignore)


@pytest.mark.slow
@with_numerics
def test_batched_folds_are_those_one_after_the_other():
    recipe = replace(RECIPE, stages=(Stage(FIXED_FREE, 60),), free_run_weight=2.0, free_run_iterations=40)
    spec, steps = replace(SPEC, inducing=5, recipe=recipe), []
    fits = [(spec, 0), (spec, 2), (spec, ALL)]
    found = dict(fit_paths_batched(fits, [RECORD], BLOCKS, 0, lambda *report: steps.append(report)))
    assert {member for member, *_ in steps} == {0, 1, 2}
    for number, (_, fold) in enumerate(fits):
        alone = fit_whole_path(spec, [RECORD], BLOCKS, fold, 0, ignore)
        assert [model.spec.recipe.free_run_weight for model in found[number].models] == [0.0, 2.0]
        for model, same in zip(found[number].models, alone.models, strict=True):
            assert model.bound == pytest.approx(same.bound, rel=0.02)
            np.testing.assert_array_equal(model.scaling.y_mean, same.scaling.y_mean)
            paths = [each.simulate(RECORD.u, "mean").mean for each in (model, same)]
            np.testing.assert_allclose(*paths, atol=0.15)


QUICK = replace(RECIPE, stages=(Stage(FIXED_FREE, 2),), free_run_weight=2.0, free_run_iterations=1)


@pytest.mark.slow
@with_numerics
def test_fits_of_other_shapes_and_recipes():
    """Two recipes of one model are a batch; a fold whose outputs form other groups, because of a gap, has its own."""
    record = Series(RECORD.u, np.column_stack([RECORD.y, np.roll(RECORD.y, 3)]))
    record, spec = small.with_gaps(record, (BLOCKS[0].begin + 1, 1)), replace(SPEC, inducing=5, recipe=QUICK)
    other = replace(spec, recipe=replace(QUICK, stages=(Stage(("mu",), 3),)))
    found = dict(fit_paths_batched([(spec, 0), (spec, ALL), (other, ALL)], [record], BLOCKS, 0, ignore))
    assert sorted(found) == [0, 1, 2]
    assert [[step.stage for step in found[k].models[-1].history] for k in range(3)] == [[1, 1, 2]] * 2 + [[1, 1, 1, 2]]
    start = initialise(prepare(other, [record]), 0).start
    np.testing.assert_array_equal(found[2].models[0].trained.parameters.layers[0].zeta, start.layers[0].zeta)


def test_a_batched_fit_that_cannot_start_is_an_error_of_its_own():
    constant = Series(RECORD.u, np.zeros(130))
    [(number, wrong)] = fit_paths_batched([(SPEC, ALL)], [constant], BLOCKS, 0, ignore)
    assert number == 0 and isinstance(wrong, InputError)
    assert trace_batched([wrong], ignore) == [wrong]
