"""Unambiguous names: modules, classes, exports of packages, and the public names of revarb."""

import ast
import importlib
import pkgutil
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import revarb
from support.processes import run_python

SOURCE = Path(revarb.__file__).parent
PACKAGES = sorted(".".join(("revarb", *path.parent.relative_to(SOURCE).parts)) for path in SOURCE.rglob("__init__.py"))
OF_THEIR_PACKAGE = {"figures", "mean", "networks"}  # modules whose package says which ones


def find_doubled(names):
    return sorted(name for name, count in Counter(names).items() if count > 1)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_export_shadows_a_submodule(name):
    """An attribute of a package that has the name of one of its modules is that module."""
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        value = getattr(package, module.name, None)
        assert value is None or isinstance(value, ModuleType), f"{name}.{module.name} is a module and {value!r}"


def test_names_of_modules_classes_and_functions_are_unique():
    """Between packages, but for private names; a command may be named like what it runs."""
    files = [path for path in SOURCE.rglob("*.py") if path.parent != SOURCE / "cli"]
    assert set(find_doubled(path.stem for path in files)) <= OF_THEIR_PACKAGE | {"__init__"}
    found = {
        (path.relative_to(SOURCE).parts[0], node.name)
        for path in files
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    }
    assert find_doubled(name for _, name in found) == ["load"]  # a model, or a data set


def test_public_names_exist_and_differ_by_more_than_case_and_underscores():
    names = [name.replace("_", "").lower() for name in revarb.__all__ if name != "Scores"]  # what scores gives
    assert find_doubled(names) == [] and all(hasattr(revarb, name) for name in revarb.__all__)


def test_names_that_are_imported_on_use_are_those_that_a_type_checker_sees():
    """The block for type checkers and the table for `__getattr__` name the same things."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {(node.module, alias.name) for node in imports for alias in node.names}
    packages = {("revarb", name) for name in revarb.__all__ if isinstance(getattr(revarb, name), ModuleType)}
    assert seen == packages | {(module, name) for name, module in revarb._HOMES.items()}
    assert {name for _, name in seen} == set(revarb.__all__)


def test_public_names_are_listed_before_they_are_used_and_nothing_else_is_exposed():
    exposed = "*(name for name in vars(revarb) if not name.startswith('_'))"
    done = run_python("-c", f"import sys, revarb; print(*dir(revarb)); print('jax' in sys.modules, {exposed})")
    names, others = done.stdout.splitlines()
    assert {*revarb.__all__, "__version__"} == set(names.split()) and others == "False"


def test_packages_are_attributes_and_other_names_are_not():
    assert revarb.analysis.reliability is importlib.import_module("revarb.analysis.reliability")
    for name in ("no_such_name", "_private", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'revarb' has no attribute '{name}'"):
            getattr(revarb, name)
