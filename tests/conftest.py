import os

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)  # the pure numerics are tested as they run inside `with_numerics`


@pytest.fixture
def rng():
    return np.random.default_rng(20161116)


@pytest.fixture(autouse=True)
def unfinished(tmp_path_factory, monkeypatch):
    """Where the journals of unfinished fits are: not in the user's cache folder."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("revarb.optim.journal.user_cache_path", lambda name: folder / name)
    return folder / "revarb" / "unfinished"


@pytest.fixture
def recorded_data():
    """Real data: skipped only when REVARB_DATA is unset; a missing file then fails in `datasets.load`."""
    if not os.environ.get("REVARB_DATA"):
        pytest.skip("REVARB_DATA is not set")


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_terminal_summary(terminalreporter):
    """How many cases the fuzz tests (test_fuzz.py) have tried."""
    reports = [report for several in terminalreporter.stats.values() for report in several]
    lines = [
        text
        for report in reports
        if getattr(report, "when", "") == "call"
        for key, text in report.user_properties
        if key == "fuzzed"
    ]
    if lines:
        terminalreporter.section("fuzzing and killing")
        for line in lines:
            terminalreporter.write_line(line)
