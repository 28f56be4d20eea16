"""The way through the house: a module imports only from rooms to its left."""

import ast
from pathlib import Path

import pytest

ORDER = [
    *("errors", "compiled", "numerics", "mesh", "files", "interrupts", "journal", "reports", "progress"),
    *(
        "series",
        "windows",
        "kernel",
        "psi",
        "collapsed",
        "pathwise",
        "exact",
        "states",
        "recognition",
        "parameters",
        "recipe",
        "bound",
        "initialise",
        "adam",
    ),
    *("optimise", "together", "simulate", "sound", "conditioning", "trajectory", "scores", "reliability"),
    *("store", "results", "table", "frame", "start", "free_run", "calibration"),
    *(
        "rgp",
        "fitted",
        "live",
        "ensemble",
        "load",
        "problem",
        "calibrate",
        "fit",
        "restarts",
        "baselines",
        "comparison",
        "datasets",
        "experiments",
        "report",
        "avatar",
        "cli",
        "__main__",
    ),
]
PACKAGE = Path(__file__).parent.parent / "src" / "revarb"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room(dotted):
    return dotted.split(".")[1] if "." in dotted else None


def rooms_imported_at_the_top(path):
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "revarb":
            if node.module == "revarb":
                yield from (alias.name for alias in node.names if not alias.name.startswith("_"))
            else:
                yield room(node.module)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_to_the_left(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert own in ORDER, f"give {own} its place in ORDER and in CONTRIBUTING.md"
    for imported in rooms_imported_at_the_top(path):
        if imported != own:
            assert ORDER.index(imported) < ORDER.index(own), f"{own} imports {imported}, which is to its right"


def test_only_the_command_line_prints():
    for path in MODULES:
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        in_cli = path.parent == PACKAGE / "cli"
        assert "print" not in names or in_cli, path
        assert "Console" not in names or in_cli or path.name == "progress.py", path
