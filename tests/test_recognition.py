import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import oracles
import revarb
import small
from revarb.config.recipe import Recipe, Stage
from revarb.config.recognition import Recognition
from revarb.data.windows import Order, initial_states
from revarb.errors import InputError
from revarb.optim.journal import Journal
from revarb.optim.status import Status
from revarb.runtime.numerics import with_numerics
from revarb.training.network_training import run_adam_rounds, start_networks
from revarb.training.problem import prepare
from revarb.training.solve import train_networks
from revarb.variational.bound import revarb_bound
from revarb.variational.networks import Network, RecognisedStates, random_networks, run_networks
from revarb.variational.parameters import Parameters, flatten, form_of, free_entries, unflatten
from revarb.variational.states import FreeStates

LAGS = Order(states=3, inputs=2, delay=1)
DIMS = (2, 1)
LENGTHS = (9, 5, 7)
QUICK = Recognition(hidden=(6,), start_steps=100, rounds=(50, 50))


@pytest.fixture
def networks(rng):
    return random_networks(Recognition(hidden=(5, 4)), LAGS, DIMS, 1, rng)


@pytest.fixture
def initial(rng):
    return tuple(rng.normal(size=(len(LENGTHS), LAGS.states, dim)) for dim in DIMS)


@pytest.fixture
def u_bar(rng):
    return rng.normal(size=(sum(LENGTHS) - LAGS.states * len(LENGTHS), LAGS.inputs))


def apply(network, x):
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        x = np.tanh(x @ weight + bias)
    return x @ network.weights[-1] + network.biases[-1]


def looped(networks, initial, u_bar):
    """Record by record, step by step, with lists."""
    paths, row = [[] for _ in networks], 0
    for record, length in enumerate(LENGTHS):
        states = [list(start[record]) for start in initial]
        for _ in range(length - LAGS.states):
            below = u_bar[row]
            for h, network in enumerate(networks):
                own = np.concatenate(states[h][: -LAGS.states - 1 : -1])
                states[h].append(apply(network, np.concatenate([own, below])))
                below = np.concatenate(states[h][: -LAGS.states - 1 : -1])
            row += 1
        for path, these in zip(paths, states, strict=True):
            path.extend(these)
    return [np.array(path) for path in paths]


def test_the_scan_is_a_plain_loop(networks, initial, u_bar):
    got = run_networks(networks, initial, u_bar, LAGS.states, LENGTHS)
    for path, expected in zip(got, looped(networks, initial, u_bar), strict=True):
        np.testing.assert_allclose(path, expected, rtol=1e-12, atol=1e-13)


def test_filling_up_short_records_changes_nothing(networks, initial, u_bar):
    """Each record alone, where nothing is filled up, against all of them side by side; the gradients as well."""
    together = run_networks(networks, initial, u_bar, LAGS.states, LENGTHS)
    rows = np.cumsum([0, *(length - LAGS.states for length in LENGTHS)])
    states = np.cumsum([0, *LENGTHS])

    def alone(networks, record):
        starts = [start[record : record + 1] for start in initial]
        return run_networks(networks, starts, u_bar[rows[record] : rows[record + 1]], LAGS.states, LENGTHS[record:][:1])

    for record in range(len(LENGTHS)):
        for path, expected in zip(together, alone(networks, record), strict=True):
            np.testing.assert_allclose(path[states[record] : states[record + 1]], expected, rtol=1e-12)
    joint = jax.grad(lambda g: jnp.sum(run_networks(g, initial, u_bar, LAGS.states, LENGTHS)[-1] ** 2))(networks)
    parts = jax.grad(lambda g: sum(jnp.sum(alone(g, record)[-1] ** 2) for record in range(len(LENGTHS))))(networks)
    for a, b in zip(jax.tree.leaves(joint), jax.tree.leaves(parts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@with_numerics
def recognised_problem(variance="free"):
    spec = small.spec(inducing=5, latent_dim=(2, 1), recognition=Recognition(hidden=(4,), variance=variance))
    problem = prepare(spec, [small.record(0, samples=14), small.record(1, samples=11)], 0)
    chosen = Recognition(hidden=(4,), variance=variance, start="random")
    rng = np.random.default_rng(1)
    start = start_networks(
        chosen, problem.start, problem.rows, problem.layout, problem.preprocessor.order, rng, Journal()
    )[0]
    return problem, start


@pytest.mark.parametrize("variance", ["free", pytest.param("shared", marks=pytest.mark.slow)])
def test_the_gradient_by_finite_differences(variance):
    problem, start = recognised_problem(variance)
    form, vector = form_of(start), np.array(flatten(start))
    bound = jax.jit(lambda v: revarb_bound(unflatten(v, form), problem.rows, problem.layout))
    gradient = np.asarray(jax.grad(bound)(vector))
    chosen = np.random.default_rng(0).choice(np.flatnonzero(free_entries(start, ("mu", "lam"))), 40, replace=False)
    expected = [oracles.finite_difference(lambda v: float(bound(v)), vector, k, step=1e-4) for k in chosen]
    np.testing.assert_allclose(gradient[chosen], expected, rtol=1e-5, atol=1e-5)
    assert np.abs(gradient[free_entries(start, ("mu",))]).max() > 0.0


@pytest.mark.slow
def test_networks_that_give_the_free_means_give_the_same_bound():
    problem, start = recognised_problem()
    states = start.states.along(problem.rows.u_bar, problem.layout.lags, problem.layout.lengths)
    written_out = Parameters(start.layers, FreeStates(states.mu, states.raw_lam), start.priors)
    ours = float(revarb_bound(start, problem.rows, problem.layout))
    assert ours == pytest.approx(float(revarb_bound(written_out, problem.rows, problem.layout)), rel=1e-12)
    # A network that is constant gives a constant path, as free means would be.
    flat = tuple(
        Network(tuple(0 * w for w in g.weights), tuple(0 * b + 0.3 for b in g.biases)) for g in start.states.networks
    )
    constant = RecognisedStates(flat, start.states.initial, start.states.raw_lam)
    path = constant.along(problem.rows.u_bar, problem.layout.lags, problem.layout.lengths).mu[0]
    first = initial_states(path, problem.layout.lags, problem.layout.lengths)
    np.testing.assert_array_equal(first, start.states.initial[0])
    np.testing.assert_allclose(path[problem.layout.lags : problem.layout.lengths[0]], 0.3)


def test_shared_variances_make_nothing_grow_with_the_record():
    def variational(samples, variance):
        spec = small.spec(recognition=Recognition(hidden=(4,), variance=variance, start="random"))
        problem = prepare(spec, [small.record(samples=samples)], 0)
        rng, lags = np.random.default_rng(0), problem.preprocessor.order
        start = start_networks(spec.recognition, problem.start, problem.rows, problem.layout, lags, rng, Journal())[0]
        return int(free_entries(start, ("mu", "lam")).sum())

    assert variational(40, "shared") == variational(80, "shared")
    assert variational(80, "free") == variational(40, "free") + 2 * 40


@pytest.fixture(scope="module")
def model():
    return small.spec(recognition=QUICK).fit([small.record(0), small.record(1, samples=40)], seed=2)


def test_training_beats_the_mean_and_repeats_itself(model):
    test = small.record(5)
    assert revarb.scores(model.simulate(test.u, "mean"), test.y).nrmse < 0.5
    again = small.spec(recognition=QUICK).fit([small.record(0), small.record(1, samples=40)], seed=2)
    assert again.bound == model.bound
    assert model.status in (Status.ITERATION_LIMIT, Status.CONVERGED)


@pytest.mark.slow
def test_adam_goes_up_and_new_inducing_inputs_follow_the_paths():
    problem, start = recognised_problem()
    recipe, rng = Recipe(stages=(Stage(("mu", "lam"), 1),)), np.random.default_rng(0)
    told = []
    rows, layout = problem.rows, problem.layout
    after = run_adam_rounds(
        Recognition(rounds=(100,)), recipe, [start], rows, layout, rng, lambda *each: told.append(each), Journal()
    )
    before = float(revarb_bound(start, problem.rows, problem.layout))
    assert float(revarb_bound(after, problem.rows, problem.layout)) > before + 10.0
    assert [steps for steps, _ in told] == [50, 100]
    np.testing.assert_array_equal(after.layers[0].raw_w, start.layers[0].raw_w)  # not free in this recipe


@pytest.mark.slow
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_several_starts_the_best_goes_on(order):
    problem, good = recognised_problem()
    bad = eqx.tree_at(lambda start: start.states.networks[0].biases[-1], good, replace_fn=lambda bias: bias + 30.0)
    spec, starts, told = Recognition(rounds=(100, 50), starts=2), [[good, bad][k] for k in order], []
    rows, layout, rng = problem.rows, problem.layout, np.random.default_rng(0)
    found = run_adam_rounds(spec, Recipe(), starts, rows, layout, rng, lambda *each: told.append(each), Journal())
    ends = [each.states.networks[0].biases[-1] for each in (found, good)]
    np.testing.assert_allclose(*ends, atol=2.0)  # so far Adam goes in 150 steps, and no further
    assert [steps for steps, _ in told] == [50, 100, 150, 200, 250] and spec.steps == 250


@pytest.mark.slow
def test_networks_can_start_from_what_the_free_form_has_found():
    spec = small.spec(recognition=dataclasses.replace(QUICK, start="free-form"))
    found = spec.fit(small.record(), seed=1)
    free = small.spec().fit(small.record(), seed=1)
    problem = prepare(spec, [small.record()], 1)
    seen = []

    def note(recognition, start, *rest):
        seen.append(start)
        return start_networks(recognition, start, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("revarb.training.solve.recognised_starts", note)
        train_networks(problem, lambda steps, text: None, Journal())
    np.testing.assert_array_equal(seen[0].states.mu[0], free.trained.parameters.states.mu[0])
    test = small.record(5)
    assert revarb.scores(found.simulate(test.u, "mean"), test.y).nrmse < 0.5


def test_who_listens_can_stop_it():
    problem, start = recognised_problem()

    def stop(steps, text):
        raise KeyboardInterrupt

    spec, rng = Recognition(rounds=(1000, 1000), starts=2), np.random.default_rng(0)
    after = run_adam_rounds(spec, Recipe(), [start, start], problem.rows, problem.layout, rng, stop, Journal())
    before = float(revarb_bound(start, problem.rows, problem.layout))
    assert float(revarb_bound(after, problem.rows, problem.layout)) > before


def test_a_network_run_is_its_own_simulation(model):
    u = small.record(5).u
    path = model.simulate(u, "network")
    assert path.std is None and path.method == "network" and len(path) == len(u)
    paths = model.recognise(u)
    assert [each.shape for each in paths] == [(60, 1), (60, 1)]
    # The output layer at the window of the last layer's path, once the cold start has left the window.
    window = np.array([[paths[-1][30, 0], paths[-1][29, 0]]])
    z = np.asarray(model.trained.chain.output.mean(window))
    np.testing.assert_allclose(path.mean[30], model.scaling.raw_outputs(z)[0], rtol=1e-9)
    warm = model.simulate(u, "network", start=model.final_states[0])
    assert warm.skip == 0 and not np.array_equal(warm.mean[3], path.mean[3])


def test_a_model_with_networks_is_saved_whole(model, tmp_path):
    again = revarb.load(model.save(tmp_path / "n.rgp"))
    assert again.spec == model.spec
    u = small.record(5).u
    for method in ("network", "moments"):
        np.testing.assert_array_equal(again.simulate(u, method).mean, model.simulate(u, method).mean)


@pytest.mark.slow
def test_restarts_train_their_own_networks():
    ensemble = small.spec(recognition=QUICK).fit(small.record(), restarts=2)
    assert ensemble.bounds[1] == small.spec(recognition=QUICK).fit(small.record(), seed=1).bound
    assert len(ensemble.simulate(small.record(5).u, "network")) == 60


def test_a_model_without_networks_says_so():
    model = small.spec().fit(small.record())
    for call in (lambda: model.simulate(small.record().u, "network"), lambda: model.recognise(small.record().u)):
        with pytest.raises(InputError, match=r"has no networks; fit RGP\(recognition="):
            call()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden": ()}, "recognition.hidden must be a list of whole numbers"),
        ({"hidden": (0,)}, "recognition.hidden must be a whole number from 1 to 100000"),
        ({"rounds": []}, "recognition.rounds must be a list"),
        ({"learning_rate": 0.0}, "recognition.learning_rate must be a finite number above 0"),
        ({"variance": "common"}, "recognition.variance must be one of"),
        ({"start": "zero"}, "recognition.start must be one of"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        revarb.RGP.from_dict({"recognition": wrong})


def test_a_configuration_survives_plain_values():
    spec = small.spec(recognition=Recognition(hidden=(7, 3), variance="shared"))
    assert revarb.RGP.from_dict(spec.to_dict()) == spec
