"""float64 inside, without changing the caller's JAX."""

import textwrap

import pytest

from support import small
from support.processes import run_python


def test_float64_inside_and_the_callers_jax_unchanged():
    """In a fresh interpreter with JAX's defaults: ours is float64, the caller's arrays stay float32."""
    program = textwrap.dedent("""
        import jax, jax.numpy as jnp, numpy as np
        from support import small
        before = jnp.ones(2).dtype
        model = small.spec().fit(small.record())
        path = model.simulate(small.record(1).u)
        assert path.mean.dtype == np.float64
        assert all(np.asarray(leaf).dtype == np.float64 for leaf in jax.tree.leaves(model.trained))
        assert before == jnp.ones(2).dtype == np.float32, jnp.ones(2).dtype
        print(repr(model.bound))
    """)
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr
    # Float32 would show in the third digit; another process may have other threads, and with them another rounding.
    assert float(done.stdout) == pytest.approx(small.spec().fit(small.record()).bound, rel=1e-6)
