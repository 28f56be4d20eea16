"""Unambiguous names: modules, classes, exports of packages, and the public names of revarb."""

import ast
import importlib
import pkgutil
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

import revarb

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
