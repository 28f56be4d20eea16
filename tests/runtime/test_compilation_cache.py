"""The compilation cache, in fresh interpreters: JAX looks for its cache once."""

import os

import pytest

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
def test_the_users_cache_folder_is_respected(tmp_path):
    fit_in(tmp_path / "home", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "mine"))
    assert not kept(tmp_path / "home")


@pytest.mark.slow
def test_a_disabled_cache_stays_disabled(tmp_path):
    fit_in(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false")
    assert not kept(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="permissions")
@pytest.mark.slow
def test_a_fit_works_without_a_writable_cache_folder(tmp_path):
    (tmp_path / "home").write_text("not a folder")
    fit_in(tmp_path / "home")
