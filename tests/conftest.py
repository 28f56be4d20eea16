"""Fixtures of all tests. Nothing of revarb is imported at the top: jaxtyping must come first, to check annotations."""

import os
import signal

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)  # the pure numerics are tested as they run inside `with_numerics`

# Variables of the shell that change what a command prints. (GitHub's makes typer believe in a terminal.)
COLOURS = ("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "COLORTERM", "GITHUB_ACTIONS", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


def pytest_configure(config):
    """Make this process, and those that it starts, independent of the shell; pytest-xdist's workers call this too.

    SIGINT (Ctrl-C) raises KeyboardInterrupt. Under nohup, in the background of a script and in some CI systems it is
    ignored; Python then installs no handler, and every child inherits that. The width and colours of the terminal are
    always the same. They are set before the first import of rich, which keeps what it finds then.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in (*COLOURS, "LINES"):
        os.environ.pop(name, None)
    os.environ.update(COLUMNS="80", TERM="dumb")


@pytest.fixture(autouse=True, scope="session")
def no_downloads():
    """A test that needs real data asks for `recorded_data`: none depends on the network, nor on the user's cache."""

    def refuse(*arguments, **options):
        pytest.fail("this test would download a file; it needs the fixture `recorded_data`")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pooch.retrieve", refuse)
        yield


@pytest.fixture
def rng():
    """A random generator with a fixed seed."""
    return np.random.default_rng(20161116)


@pytest.fixture
def same_width_beyond(monkeypatch):
    """Bands do not widen beyond the training data: what else makes them is tested."""
    monkeypatch.setattr("revarb.simulation.extrapolation.DOUBT", 0.0)


@pytest.fixture(autouse=True)
def unfinished(tmp_path_factory, monkeypatch):
    """Keep what unfinished fits, choices and comparisons leave behind in a temporary folder, not the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("revarb.runtime.unfinished.user_cache_path", lambda name: folder / name)
    return folder / "revarb" / "unfinished"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """No lines of progress on stderr, however slow the machine is."""
    monkeypatch.setattr("revarb.runtime.progress.LOG_SECONDS", 1e6)


@pytest.fixture(autouse=True, scope="module")
def few_programs():
    """Release compiled programs between modules, so that none of them comes near the limit on memory mappings."""
    from revarb.runtime.numerics import release_programs

    yield
    release_programs()


@pytest.fixture
def kept_programs(monkeypatch):
    """Programs are released before the test, never during it: for tests that count what is compiled."""
    jax.clear_caches()
    monkeypatch.setattr("revarb.runtime.numerics.CHECK_SECONDS", float("inf"))


@pytest.fixture
def at_once(monkeypatch):
    """Write journals from the start of a fit, without the delay of a minute."""
    monkeypatch.setattr("revarb.runtime.unfinished.DELAY_SECONDS", 0.0)


@pytest.fixture
def recorded_data():
    """Real data: skipped only when REVARB_DATA is unset; a missing file then fails in `datasets.load`."""
    if not os.environ.get("REVARB_DATA"):
        pytest.skip("REVARB_DATA is not set")


@pytest.fixture
def browser():
    """Path of Chromium; without one the test is skipped, unless REVARB_BROWSER=required (as in CI)."""
    from support.browser import BROWSER

    if BROWSER is None and os.environ.get("REVARB_BROWSER") != "required":
        pytest.skip("no chromium on this machine")
    assert BROWSER is not None, "REVARB_BROWSER=required, but there is no chromium"
    return BROWSER


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    """The current folder, with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
