"""Work on the host of an accelerator."""

import jax
import jax.numpy as jnp

from revarb.runtime.host import on_host


def test_nothing_changes_without_an_accelerator():
    with on_host():
        assert jax.config.jax_default_device is None


def test_an_accelerator_leaves_the_work_to_the_host(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")

    @on_host()
    def compute():
        assert jax.config.jax_default_device.platform == "cpu"
        return jnp.zeros(2)

    assert compute().device.platform == "cpu"
    assert jax.config.jax_default_device is None
