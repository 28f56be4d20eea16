"""float64 inside, without changing the caller's JAX, in a fresh interpreter with JAX's defaults."""

import textwrap

import pytest

from support import small
from support.processes import run_python


@pytest.mark.parametrize("models", ["{'RGP': small.spec()}", pytest.param("QUICK_MODELS", marks=pytest.mark.slow)])
def test_float64_inside_and_the_callers_jax_unchanged(models):
    program = textwrap.dedent(f"""
        import jax, jax.numpy as jnp, numpy as np
        from support import small
        from support.small_rivals import QUICK_MODELS
        for name, spec in {models}.items():
            model = spec.fit(small.record())
            path = model.simulate(small.record(1).u)
            assert type(path.mean) is np.ndarray and path.mean.dtype == np.float64, name
            assert jnp.ones(2).dtype == np.float32, name
        assert all(np.asarray(leaf).dtype == np.float64 for leaf in jax.tree.leaves(model.trained))
        print(repr(model.bound))
    """)
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr
    # Float32 would show in the third digit; another process may have other threads, and with them another rounding.
    assert float(done.stdout) == pytest.approx(small.spec().fit(small.record()).bound, rel=1e-6)
