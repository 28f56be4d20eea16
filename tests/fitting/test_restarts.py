"""Several seeds: in turn, in processes, on a cluster, batched; failures, killed workers and Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster, get_task_stream

import revarb
from revarb.data.table_file import write_table
from revarb.errors import ComputationError
from revarb.fitting.batched_fits import fit_batched
from revarb.fitting.fit import _build_ensemble, _fit_all, fit_task
from revarb.fitting.problem import prepare
from revarb.models.ensemble import Ensemble
from revarb.models.recipe import Recipe, Stage
from revarb.runtime.numerics import with_numerics
from revarb.runtime.workers import call_task
from support import small
from support.journals import assert_same, count_evaluations
from support.processes import environment
from support.waiting import DEADLINE, read_until


@pytest.fixture(scope="module")
def ensemble():
    return small.spec().fit(small.record(), seed=3, restarts=3)


def same_numbers(one, other):
    for ours, theirs in zip(one.members, other.members, strict=True):
        assert ours.seed == theirs.seed
        assert_same(ours, theirs)


def test_members_are_the_fits_of_the_seeds_that_follow(ensemble):
    assert [member.seed for member in ensemble.members] == [3, 4, 5]
    alone = [small.spec().fit(small.record(), seed=seed) for seed in (3, 4, 5)]
    same_numbers(ensemble, Ensemble.from_members(alone))
    assert len({member.bound for member in alone}) == 3
    assert ensemble.best.bound == max(ensemble.bounds)


def test_the_number_of_processes_changes_nothing(ensemble):
    same_numbers(ensemble, small.spec().fit(small.record(), seed=3, restarts=3, jobs=2))


@pytest.mark.slow
def test_a_dask_cluster_takes_the_members_and_changes_nothing(ensemble):
    """Two real worker processes, through joblib's own backend."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        with get_task_stream(client) as stream, joblib.parallel_config(backend="dask"):
            far = small.spec().fit(small.record(), seed=3, restarts=3)
        assert len({task["worker"] for task in stream.data}) == 2
    same_numbers(ensemble, far)


@pytest.mark.slow
@with_numerics
def test_batched_members_reach_the_same_optimum():
    """The batched fit of an accelerator, on a CPU. Members stop after different numbers of iterations."""
    recipe = Recipe(stages=(Stage(("mu", "lam"), 60), Stage(("mu", "lam", "zeta", "w"), 60)), ftol=1e-4)
    spec, steps = small.spec(inducing=5, recipe=recipe), []
    apart = spec.fit(small.record(), restarts=3)
    batched = fit_batched(prepare(spec, [small.record()]), range(3), lambda *report: steps.append(report))
    lengths = [len(member.history) for member in batched]
    assert len(set(lengths)) > 1
    assert [sum(member == number for member, *_ in steps) for number in range(3)] == lengths
    np.testing.assert_allclose([member.bound for member in batched], apart.bounds, rtol=5e-3)  # ftol is 1e-4


def test_a_failed_restart_is_left_out_with_a_warning(ensemble):
    def fail(steps, text):
        raise ComputationError("the bound is nan")

    failed = with_numerics(call_task)(fit_task, (prepare(small.spec(), [small.record()]), 0, None), fail)
    first, _, third = ensemble.members
    with pytest.warns(UserWarning, match="a restart was left out: the bound is nan"):
        model = _build_ensemble([first, failed, third], 3, interrupted=False)
    assert [member.seed for member in model.members] == [3, 5]
    with pytest.raises(ComputationError, match="the bound is nan"):
        _build_ensemble([failed], 1, interrupted=False)


@with_numerics
@pytest.mark.slow
def test_a_killed_worker_is_reported_and_nothing_hangs():
    """A real worker process is killed as soon as it has reported its first step."""

    def kill_a_worker(member, steps, text):
        found = subprocess.run(["pgrep", "-f", "-P", str(os.getpid()), "popen_loky"], capture_output=True, check=False)
        for child in found.stdout.split()[:1]:
            os.kill(int(child), signal.SIGKILL)

    endless = Recipe(stages=(Stage(("mu", "lam", "zeta", "w"), 99_999),), ftol=0.0, gtol=0.0)
    task = prepare(small.spec(recipe=endless), [small.record()])
    with pytest.warns(UserWarning, match="restarts were lost"):
        outcomes = list(_fit_all([(task, 0, None), (task, 1, None)], 2, kill_a_worker, []))
    with pytest.raises(ComputationError, match="no fit was completed"):
        _build_ensemble(outcomes, 2, interrupted=False)


def test_ctrl_c_while_the_first_member_compiles_stops_the_others_too():
    with count_evaluations(press_at=1):
        model = small.spec().fit(small.record(), restarts=3)
    assert [member.status for member in model.members] == ["interrupted"]


@pytest.mark.slow
def test_ctrl_c_keeps_the_members_that_were_begun(in_empty_folder):
    """A real terminal, and a signal to all processes of it: a line for every member, the fits so far on disk."""
    record = small.record()
    write_table("train.csv", {"u": record.u[:, 0], "y": record.y[:, 0]})
    stage = "[[recipe.stages]]\nfree = ['mu', 'zeta', 'w', 'sigma2']\niterations = 99999\n"
    endless = "lags = 5\ninput_lags = 5\n[recipe]\nftol = 0.0\ngtol = 0.0\n" + stage
    (in_empty_folder / "long.toml").write_text(endless)
    command = [sys.executable, "-m", "revarb", "fit", "train.csv", "-u", "u", "-y", "y", "-o", "m.rgp"]
    command += ["--config", "long.toml", "--restarts", "4", "--jobs", "2"]
    ours, theirs = pty.openpty()
    variables = environment(TERM="xterm", COLUMNS="120")
    with (in_empty_folder / "out.txt").open("w+") as out:
        process = subprocess.Popen(command, stdout=out, stderr=theirs, env=variables, start_new_session=True)
        os.close(theirs)
        screen = read_until(ours, lambda text: text.count(b"bound") >= 6)
        os.killpg(process.pid, signal.SIGINT)
        screen += read_until(ours)
        assert process.wait(timeout=DEADLINE) == 130, screen
    assert all(f"seed {seed}".encode() in screen for seed in range(4))
    model, out = revarb.load("m.rgp"), (in_empty_folder / "out.txt").read_text()
    assert isinstance(model, Ensemble) and model.status == "interrupted"
    assert 1 <= len(model) <= 4 and out.count("interrupted after") == len(model)
    assert b"Traceback" not in screen
