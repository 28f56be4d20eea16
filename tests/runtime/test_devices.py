"""Rows over devices, in fresh interpreters: the number of devices is fixed when JAX starts. Work on the host."""

import json
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from revarb.errors import InputError
from revarb.runtime.machine import on_host, row_mesh
from support.processes import environment
from support.waiting import DEADLINE

MOST_MESSAGES = 40


def on_devices(count, *arguments):
    """Run support/rows_over_devices.py in a process that has `count` virtual CPU devices."""
    command = [sys.executable, "-m", "support.rows_over_devices", *arguments]
    variables = environment(XLA_FLAGS=f"--xla_force_host_platform_device_count={count}")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)


def answer(process):
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.slow
def test_four_devices_agree_with_one():
    """Of two processes that jax.distributed joins on loopback: both get the same numbers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    joined = [on_devices(2, address, str(number)) for number in range(2)]
    answers = [answer(process) for process in joined]
    for found in answers:
        assert found["devices"] == 4
        # Three layers: sums of their rows, and of derivatives by what they share; the rows' own derivatives go back.
        assert 0 < found["messages"] <= MOST_MESSAGES, found
        assert found["bound_error"] < 1e-10 and found["gradient_error"] < 1e-10
        assert found["fit_bound"] == pytest.approx(found["fit_bound_alone"], rel=1e-6)
    assert answers[0]["fit_bound"] == answers[-1]["fit_bound"]


def test_a_mesh_and_worker_processes_are_refused_together():
    message = "a mesh cannot be shared with other processes; use jobs=1 and no cluster inside set_mesh"
    assert answer(on_devices(2, "refused")) == {"message": message}


@pytest.mark.parametrize("devices", [[], [1], "cpu"])
def test_only_devices_make_a_mesh(devices):
    with pytest.raises(InputError, match=r"takes a list of one or more JAX devices, received"):
        row_mesh(devices)


def test_an_accelerator_leaves_small_work_to_the_host(monkeypatch):
    with on_host():
        assert jax.config.jax_default_device is None  # nothing changes without an accelerator
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    @on_host()
    def compute():
        assert jax.config.jax_default_device.platform == "cpu"
        return jnp.zeros(2)

    assert compute().device.platform == "cpu"
    assert jax.config.jax_default_device is None
