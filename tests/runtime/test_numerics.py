"""float64 inside, the persistent cache of programs (in fresh interpreters), padding, release."""

import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.runtime import numerics
from revarb.runtime.numerics import LONGEST, cut_rows, pad_rows, round_up_rows, with_numerics
from support import small
from support.processes import environment, run_python

FIT = "from support import small; print(repr(small.spec().fit(small.record()).bound))"


def fit_in(home, **more):
    cleared = {name: value for name, value in environment().items() if not name.startswith("JAX_")}
    done = run_python("-c", FIT, env={**cleared, "XDG_CACHE_HOME": str(home), **more})
    assert done.returncode == 0, done.stderr
    return float(done.stdout), done.stderr


def kept(home):
    return {path.name: path.stat().st_mtime_ns for path in home.rglob("*-cache")}


@pytest.mark.slow
def test_the_second_run_uses_the_cache_and_has_the_same_numbers(tmp_path):
    first, _ = fit_in(tmp_path)
    programs = kept(tmp_path)
    assert any("bound_and_gradient" in name for name in programs)
    assert (tmp_path / "revarb" / "compiled").is_dir()
    second, err = fit_in(tmp_path, JAX_LOG_COMPILES="1")
    # On a busy machine, small programs that compiled too quickly to be cached the first time may be added.
    assert second == first and programs.items() <= kept(tmp_path).items()
    assert "Persistent compilation cache hit" in err and "bound_and_gradient" in err


@pytest.mark.slow
def test_the_users_settings_are_respected_and_a_folder_that_is_not_writable_is_accepted(tmp_path):
    fit_in(tmp_path / "home", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine"))
    fit_in(tmp_path / "home", JAX_ENABLE_COMPILATION_CACHE="false")
    assert not kept(tmp_path / "home")
    (tmp_path / "file").write_text("not a folder")
    fit_in(tmp_path / "file")


def test_sizes_are_few_and_little_is_added():
    rows = np.arange(1, LONGEST + 1)
    sizes = np.array([round_up_rows(int(count)) for count in rows])
    assert (sizes >= rows).all() and (sizes - rows < rows / 8).all()
    assert (np.diff(sizes) >= 0).all()
    assert len(set(sizes)) == 16 + 8 * 10  # 1 … 16, then eight sizes for every doubling up to 2^14
    assert [round_up_rows(int(size)) for size in set(sizes)] == list(set(sizes))
    assert [round_up_rows(rows) for rows in (0, 1, 17, 200, 205, LONGEST + 1)] == [0, 1, 18, 208, 208, LONGEST + 1]


def test_padded_rows_are_cut_off_again():
    values = np.arange(17 * 3.0).reshape(17, 3)
    padded = pad_rows(values, np.nan)
    assert padded.shape == (18, 3) and np.isnan(padded[17:]).all()
    np.testing.assert_array_equal(cut_rows(padded, 17), values)
    np.testing.assert_array_equal(cut_rows(padded.T, 17, axis=1), values.T)


@with_numerics
def call():
    """Any public call that computes."""


@pytest.fixture
def compiled(monkeypatch):
    """Ten programs of this process; the last count of the mappings is long ago."""
    monkeypatch.setattr(numerics, "_last_check", float("-inf"))
    function = jax.jit(lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(len(x))).sum())
    for size in range(2, 12):
        function(jnp.ones((size, 3)))
    assert function._cache_size() == 10
    return function


@pytest.mark.parametrize(("factor", "programs"), [(1.9, 0), (4.0, 10), (None, 10)])
def test_programs_are_released_near_the_limit_only(compiled, monkeypatch, tmp_path, factor, programs):
    """Not on other systems than Linux, which say no limit, and not twice in ten seconds."""
    limit = tmp_path / "max_map_count"
    if factor is not None:
        limit.write_text(str(int(factor * len(numerics.MAPPINGS.read_text().splitlines()))))
    monkeypatch.setattr(numerics, "LIMIT", limit)
    call()
    assert compiled._cache_size() == programs
    assert float(compiled(jnp.zeros((3, 3)))) == 3.0  # compiled again
    call()
    assert compiled._cache_size() == max(programs, 1)


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
