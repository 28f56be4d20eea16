"""Thousands of spoiled cases, in separate processes: see the package."""

import ast
from pathlib import Path

import pytest

from support.processes import run_python

TESTS = Path(__file__).parent.parent
RUNS = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
"""Modules that execute the data they read."""


@pytest.mark.parametrize(
    ("group", "length"),
    [
        ("arguments", "short"),
        *(pytest.param(group, "long", marks=pytest.mark.slow) for group in ("model_files", "arguments", "fits")),
    ],
)
def test_every_case_is_a_result_or_a_clear_error(group, length):
    """A crash or a hang of their process is a failure too."""
    done = run_python("-m", "fuzz", group, length)
    assert done.returncode == 0, done.stderr[-6000:]


def test_the_package_executes_no_data():
    """No pickle and no eval: a model file has numbers and text. (Of joblib's workers, only the error is used.)"""
    for path in (TESTS.parent / "src" / "revarb").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path}:{getattr(node, 'lineno', '')}"
            match node:
                case ast.Call(func=ast.Name(id=name)):
                    assert name not in {"eval", "exec", "compile", "__import__"}, where
                case ast.Import(names=names):
                    assert not RUNS & {alias.name.split(".")[0] for alias in names}, where
                case ast.ImportFrom(module=module, names=names) if module in RUNS:
                    assert [alias.name for alias in names] == ["PicklingError"], where
                case ast.keyword(arg="allow_pickle"):
                    raise AssertionError(where)
