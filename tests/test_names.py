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
APPLICATIONS = {"cli", "experiments"}
"""Packages of commands and tables: a command may be named like what it runs."""


@pytest.mark.parametrize("name", PACKAGES)
def test_no_export_shadows_a_submodule(name):
    """An attribute of a package that has the name of one of its modules is that module."""
    package = importlib.import_module(name)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name == "__main__":
            continue
        value = getattr(package, module.name, None)
        assert value is None or isinstance(value, ModuleType), f"{name}.{module.name} is a module and {value!r}"


def test_module_names_are_unique():
    files = [
        path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")
    ]
    counts = Counter(path.stem for path in files if path.parts[0] not in APPLICATIONS)
    doubled = {stem for stem, count in counts.items() if count > 1}
    assert not doubled, [str(path) for path in files if path.stem in doubled and path.parts[0] not in APPLICATIONS]


def test_class_names_are_unique():
    """No two packages define a class of the same name; private names may repeat."""
    packages = {}
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0]
        if package in APPLICATIONS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                packages.setdefault(node.name, set()).add(package)
    doubled = {name: sorted(found) for name, found in packages.items() if len(found) > 1}
    assert not doubled


def test_public_names_differ_by_more_than_case_and_underscores():
    counts = Counter(name.replace("_", "").lower() for name in revarb.__all__ if name != "Scores")  # what scores gives
    doubled = {name for name, count in counts.items() if count > 1}
    assert not doubled, [name for name in revarb.__all__ if name.replace("_", "").lower() in doubled]


def test_every_public_name_exists():
    assert len(set(revarb.__all__)) == len(revarb.__all__)
    assert all(hasattr(revarb, name) for name in revarb.__all__)


def test_names_that_are_imported_on_use_are_those_that_a_type_checker_sees():
    """The block for type checkers and the table for `__getattr__` name the same things."""
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {(node.module, alias.name) for node in imports for alias in node.names}
    packages = {("revarb", name) for name in revarb.__all__ if isinstance(getattr(revarb, name), ModuleType)}
    assert seen == packages | {(module, name) for name, module in revarb._HOMES.items()}
    assert {name for _, name in seen} == set(revarb.__all__)


def test_public_names_are_listed_before_they_are_used():
    done = run_python("-c", "import sys, revarb; print(*dir(revarb)); print('jax' in sys.modules)")
    names, imported = done.stdout.splitlines()
    assert {*revarb.__all__, "__version__"} == set(names.split()) and imported == "False"


def test_nothing_but_public_names_is_exposed():
    done = run_python("-c", "import revarb; print(*(name for name in vars(revarb) if not name.startswith('_')))")
    assert done.stdout.split() == []


def test_packages_are_attributes_and_other_names_are_not():
    assert revarb.evaluation.reliability is importlib.import_module("revarb.evaluation.reliability")
    for name in ("no_such_name", "_private", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'revarb' has no attribute '{name}'"):
            getattr(revarb, name)
