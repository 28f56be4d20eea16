"""Sphinx directives about the packages of revarb, read from the source: which imports which, and their sizes."""

import ast
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from results_directives import make_table

SOURCE = Path(__file__).parents[2] / "src" / "revarb"
ORDER = ["errors", "runtime", "data", "gp", "variational", "simulation", "export", "models", "fitting", "selection"]
ORDER += ["baselines", "analysis", "datasets", "adapter", "sklearn", "sktime", "cli"]
CELL, LABEL, TOP = 22, 130, 96


def setup(app):
    """Register `package-matrix` and `package-sizes`."""
    app.add_directive("package-matrix", PackageMatrix)
    app.add_directive("package-sizes", PackageSizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class PackageMatrix(Directive):
    """The lower triangle of the import matrix: a dot where the package of the row imports the one of the column."""

    def run(self):
        """Return the SVG as raw HTML."""
        return [nodes.raw("", draw(imports()), format="html")]


class PackageSizes(Directive):
    """A table of the packages: modules, lines, and the largest file of each."""

    def run(self):
        """Return the table."""
        return [make_table(["package", "modules", "lines", "largest file"], sizes())]


def sizes():
    """Return a row per package and one for all of revarb; `__init__.py` counts as lines, not as a module."""
    files = {path.relative_to(SOURCE): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    groups = {package: {} for package in ORDER}
    for path, lines in files.items():
        groups.get(path.parts[0].removesuffix(".py"), {})[path] = lines
    return [_size_row(name, group) for name, group in [*groups.items(), ("all", files)]]


def _size_row(name, files):
    largest = max(files, key=files.get)
    modules = sum(path.name != "__init__.py" for path in files)
    return [name, str(modules), str(sum(files.values())), f"{largest.as_posix()}, {files[largest]} lines"]


def imports():
    """Return the set of (importing package, imported package), lazy imports included, and modules per package."""
    edges, modules = set(), dict.fromkeys(ORDER, 0)
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE).parts
        package = parts[0].removesuffix(".py")
        if package not in modules:
            continue
        modules[package] += file.name != "__init__.py"
        for target in _targets(ast.parse(file.read_text())):
            if target in modules and target != package:
                edges.add((package, target))
    return edges, modules


def draw(found):
    """Return the matrix as SVG in the colour of the text."""
    edges, modules = found
    size = CELL * len(ORDER)
    lines = [
        f'<svg class="package-matrix" viewBox="0 0 {LABEL + size + 40} {TOP + size + 6}" role="img"',
        ' aria-label="Which package imports which: all dots lie below the diagonal, except RGP.fit">',
    ]
    for row, package in enumerate(ORDER):
        y = TOP + CELL * row
        middle = y + CELL / 2
        x = LABEL + CELL * row
        lines += [
            f'<rect x="{LABEL}" y="{y + 1}" width="{CELL * row}" height="{CELL - 2}" class="allowed"/>',
            f'<rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" rx="3" class="own"/>',
            f'<text x="{LABEL - 8}" y="{middle + 4}" text-anchor="end">{package}'
            f'<tspan class="count" dx="6">{modules[package]}</tspan></text>',
            f'<text transform="translate({x + CELL / 2 + 4} {TOP - 6}) rotate(-60)">{package}</text>',
        ]
        for column, target in enumerate(ORDER):
            if (package, target) in edges:
                kind = "dot" if column < row else "dot forward"
                lines.append(f'<circle cx="{LABEL + CELL * column + CELL / 2}" cy="{middle}" r="4.5" class="{kind}"/>')
    return "\n".join([*lines, "</svg>"])


def _targets(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("revarb"):
            names = node.module.split(".")[1:2] or [alias.name for alias in node.names]
            yield from names
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("revarb."))
