"""The order of the packages: a file imports from its own package and from those to its left, and never in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import revarb

ORDER = ("errors", "runtime", "data", "gp", "variational", "simulation", "export", "models", "fitting", "selection",
         "baselines", "analysis", "datasets", "adapter", "sklearn", "sktime", "cli")  # fmt: skip
PACKAGE = Path(revarb.__file__).parent
TREES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): ast.parse(path.read_text())
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.parent != PACKAGE or not path.stem.startswith("__")
}
FORWARDS = {"models.rgp": {"fitting"}}  # RGP.fit and RGP.refit forward to what trains a model


def find_imports(node):
    """Modules of revarb that are imported anywhere in a tree, also in functions, but not for type checkers."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Import(names=names):
            found = [alias.name for alias in names]
        case ast.ImportFrom(module="revarb", names=names):  # a public name counts as the module that defines it
            found = [revarb._HOMES.get(each.name, f"revarb.{each.name}") for each in names if each.name[0] != "_"]
        case ast.ImportFrom(module=module, names=names, level=0):
            inner = {f"{module}.{alias.name}" for alias in names} & {f"revarb.{name}" for name in TREES}
            found = inner or [module]
        case _:
            found = []
    yield from (name.removeprefix("revarb.") for name in found if name.startswith("revarb."))
    for child in ast.iter_child_nodes(node):
        yield from find_imports(child)


def package_of(module):
    return module.split(".")[0]


def test_packages_are_those_of_the_order():
    assert {package_of(module) for module in TREES} == set(ORDER)


@pytest.mark.parametrize("module", TREES)
def test_imports_point_to_the_left(module):
    own, imported = package_of(module), {package_of(name) for name in find_imports(TREES[module])}
    wrong = {name for name in imported - FORWARDS.get(module, set()) if ORDER.index(name) > ORDER.index(own)}
    assert not wrong, f"{own} imports {sorted(wrong)}, which are to its right"


@pytest.mark.parametrize("package", ORDER)
def test_no_modules_of_a_package_import_each_other(package):
    own = [module for module in TREES if package_of(module) == package]
    TopologicalSorter({module: set(find_imports(TREES[module])) & set(own) for module in own}).prepare()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from revarb import load, gp", ["models.model_file", "gp"]),
        ("def f():\n    import revarb.gp.psi", ["gp.psi"]),
        ("from revarb.gp import psi\nfrom revarb.gp.psi import psi1", ["gp.psi", "gp.psi"]),
        ("if TYPE_CHECKING:\n    import revarb.gp\nfrom revarb import __version__\nimport numpy", []),
    ],
)
def test_imports_are_found_wherever_they_are(source, expected):
    assert list(find_imports(ast.parse(source))) == expected


def test_only_the_command_line_and_progress_print():
    for module, tree in TREES.items():
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {function.id for function in calls if isinstance(function, ast.Name)}
        if package_of(module) != "cli" and module != "runtime.progress":
            assert "print" not in names, module
            assert "Console" not in names or module == "models.summary", module  # it renders to text
