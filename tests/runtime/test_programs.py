import jax
import jax.numpy as jnp
import pytest

from revarb.runtime import programs
from revarb.runtime.numerics import with_numerics


@with_numerics
def call():
    """Any public call that computes."""


@pytest.fixture
def compiled(monkeypatch):
    """A program of this process; the last look at the mappings is long ago."""
    monkeypatch.setattr(programs, "_last_check", float("-inf"))
    function = jax.jit(lambda x: jnp.sin(x).sum())
    function(jnp.ones(3))
    assert function._cache_size() == 1
    return function


def test_programs_are_released_near_the_limit(compiled, monkeypatch):
    monkeypatch.setattr(programs, "find_limit", lambda: 2.0 * programs.count_mappings() - 2.0)
    call()
    assert compiled._cache_size() == 0
    assert float(compiled(jnp.zeros(3))) == 0.0  # compiled again


def test_programs_are_kept_far_from_the_limit(compiled, monkeypatch):
    monkeypatch.setattr(programs, "find_limit", lambda: 4.0 * programs.count_mappings())
    call()
    assert compiled._cache_size() == 1


def test_the_mappings_are_counted_once_in_ten_seconds(compiled, monkeypatch):
    counted = []
    monkeypatch.setattr(programs, "count_mappings", lambda: counted.append(1) or 0)
    call()
    call()
    assert len(counted) == 1


def test_released_programs_return_their_mappings():
    """What the release relies on."""
    function = jax.jit(lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(len(x))).sum())
    for size in range(2, 12):
        function(jnp.ones((size, 3)))
    compiled = programs.count_mappings()
    function.clear_cache()
    assert programs.count_mappings() < compiled


def test_other_systems_have_no_limit(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "MAPPINGS", tmp_path / "none")
    monkeypatch.setattr(programs, "LIMIT", tmp_path / "none")
    assert programs.count_mappings() == 0 and programs.find_limit() == float("inf")
