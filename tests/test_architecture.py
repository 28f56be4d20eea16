"""The order of the packages: a file imports only from its own package and from those to its left."""

import ast
from pathlib import Path

import pytest

ORDER = (
    "errors",
    "runtime",
    "data",
    "gp",
    "variational",
    "simulation",
    "export",
    "models",
    "fitting",
    "selection",
    "baselines",
    "analysis",
    "datasets",
    "cli",
)
PACKAGE = Path(__file__).parent.parent / "src" / "revarb"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__main__.py" and path != PACKAGE / "__init__.py")
FORWARDS = {"models/rgp.py": {"fitting"}}  # RGP.fit and RGP.refit forward to what trains a model


def package_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_packages(tree):
    """Packages named by any import of a file, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("revarb."))
        elif isinstance(node, ast.ImportFrom) and node.module == "revarb":
            yield from (alias.name for alias in node.names if not alias.name.startswith("__"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("revarb."):
            yield node.module.split(".")[1]


def test_packages_are_those_of_the_order():
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    files = {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    assert folders | files == set(ORDER)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_to_the_left(path):
    own, allowed = package_of(path), FORWARDS.get(str(path.relative_to(PACKAGE)), set())
    wrong = {
        name
        for name in imported_packages(ast.parse(path.read_text()))
        if name not in allowed and ORDER.index(name) > ORDER.index(own)
    }
    assert not wrong, f"{own} imports {sorted(wrong)}, which are to its right"


def test_only_the_command_line_and_progress_print():
    for path in FILES:
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        in_cli = package_of(path) == "cli"
        assert "print" not in names or in_cli or path.name == "progress.py", path
        # A summary renders itself to text, and prints nothing.
        assert "Console" not in names or in_cli or path.name in ("progress.py", "summary.py"), path
