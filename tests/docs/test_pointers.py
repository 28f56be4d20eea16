"""Every pointer from the documentation into the code, and from the code to an equation, has a target.

Documents: docs/**/*.md, README.md and CONTRIBUTING.md. Files are given relative to `src/revarb` or to the repository.

1. `` `gp/psi.py` `` is a file: a path in backticks that has a folder and ends in `.py` must exist. (A bare `fit.py` is
   no pointer.)
2. `` `gp/psi.py: psi1` `` is a definition: the file must define that function, class or constant.
   `` `gp/layer.py: Layer.zeta` `` is an attribute or a method of the class, which it may inherit. Several names are
   separated by commas.
3. Code paragraphs: after "Code:", until the end of the paragraph, a name in backticks without a file is in the file
   that was named before it: defined there, or used there as an identifier (a local variable, a field, an argument).
4. Tables with a column `file` (docs/theory/notation.md): every name in backticks in the other columns is in one of the
   files of its row, in the sense of 3; a class, or `` `Class.name` `` in the sense of 2, may be anywhere in src/revarb.
   Files stand in their column with or without backticks, separated by commas; `baselines/` is all files of a folder.
   Rows without a file, and remarks in parentheses, are not checked.
5. In 3 and 4, what is after the name (`[h-1]`, `(mean, cov)`) does not matter, and texts in backticks that are no
   Python names (`fit(…)`, `--start`) are not checked.
6. Equations are numbered by `\\tag{21a}` in docs/theory/derivation.md. "Eq. 21a", "Eqs. 7, 8 and 28" and
   "Eqs. 10 to 16" in src/, tests/ and docs/ cite them; every number must be there. ("the paper's Eq. 3" is not
   one of them.)
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "revarb"
DERIVATION = ROOT / "docs" / "theory" / "derivation.md"
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
SOURCES = sorted({*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")} - {Path(__file__)})

SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]*/[\w-]+\.py")
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
NUMBER = r"\d+[a-z]?"
CITATION = re.compile(rf"(?<!paper's )\bEqs?\. ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")


def short(path):
    return str(path.relative_to(ROOT))


def find_file(name):
    """The file that a pointer names, or None."""
    return next((folder / name for folder in (SOURCE, ROOT) if (folder / name).is_file()), None)


def find_files(name):
    """The file, or all files of the folder, that a table names."""
    if name.endswith("/"):
        return sorted((SOURCE / name).rglob("*.py"))
    return [path for path in [find_file(name)] if path is not None]


class Definitions:
    """What a file defines: top-level names, and the attributes and bases of its classes."""

    def __init__(self, path):
        tree = ast.parse(path.read_text())
        self.names, self.classes = set(), {}
        for node in tree.body:
            self.names |= _bound_names(node)
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = _class_attributes(node), [ast.unparse(base) for base in node.bases]
        self.identifiers = {
            name
            for node in ast.walk(tree)
            for name in (getattr(node, "id", None), getattr(node, "arg", None), getattr(node, "attr", None),
                         getattr(node, "name", None))
            if isinstance(name, str)
        }  # fmt: skip


def _bound_names(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _class_attributes(node):
    names = set().union(*(_bound_names(item) for item in node.body))
    for item in ast.walk(node):  # self.name = …
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store):
            names.add(item.attr)
    return names


@cache
def definitions(path):
    return Definitions(path)


@cache
def all_classes():
    found = {}
    for path in SOURCE.rglob("*.py"):
        for name, attributes_and_bases in definitions(path).classes.items():
            found.setdefault(name, []).append(attributes_and_bases)
    return found


def has_attribute(class_name, attribute):
    """Whether the class or one of its bases in the package has it."""
    return any(
        attribute in attributes or any(has_attribute(re.split(r"[\[.]", base)[0], attribute) for base in bases)
        for attributes, bases in all_classes().get(class_name, [])
    )


def is_defined(path, name):
    """A top-level name, or Class.attribute, of this file."""
    first, *rest = name.split(".")
    return first in definitions(path).names and (not rest or has_attribute(first, rest[0]))


def is_used(paths, name):
    """A name that occurs in one of the files, or an attribute of a class of the package."""
    first, *rest = name.split(".")
    if first in all_classes():
        return not rest or has_attribute(first, rest[0])
    return any((rest or [first])[-1] in definitions(path).identifiers for path in paths)


def names_in(text):
    """The Python names that a text in backticks consists of; none where it is something else."""
    found = [re.sub(r"[\[(].*", "", part).strip() for part in re.split(r",\s*(?![^(\[]*[)\]])", text)]
    return [name for name in found if NAME.fullmatch(name)]


def wrong_pointers(text):
    """Rules 1 and 2."""
    for span in SPAN.findall(text):
        file, _, names = span.partition(":")
        if not FILE.fullmatch(file) or (names and not names.startswith(" ")):
            continue
        path = find_file(file)
        if path is None:
            yield f"there is no file {file}"
        else:
            yield from (f"{file} does not define {name}" for name in names_in(names) if not is_defined(path, name))


def wrong_names_in_code_paragraphs(text):
    """Rule 3."""
    for paragraph in re.split(r"\n\s*\n", text):
        if "Code:" not in paragraph:
            continue
        path = None
        for span in SPAN.findall(paragraph.split("Code:", 1)[1]):
            file = span.partition(":")[0]
            if FILE.fullmatch(file):
                path = find_file(file)
            elif path is not None:
                yield from (f"{short(path)} has no {name}" for name in names_in(span) if not is_used([path], name))


def without_remarks(cell):
    """Without what is in parentheses outside of backticks."""
    return re.sub(r"(`[^`]*`)|\((?:[^()`]|`[^`]*`)*\)", lambda found: found[1] or "", cell)


def table_rows(text):
    """(cells by column, line) of every row of every Markdown table."""
    head = None
    for line in text.splitlines():
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("| "))]
        if head is None:
            head = cells
        elif not set(line) <= set("|-: "):
            yield dict(zip(head, cells, strict=False)), line


def wrong_names_in_tables(text):
    """Rule 4."""
    for row, line in table_rows(text):
        files = [file.strip(" `") for file in row.pop("file", "").split(",") if file.strip(" `–")]
        found = {file: find_files(file) for file in files}
        yield from (f"there is no file {file}" for file, paths in found.items() if not paths)
        paths = [path for several in found.values() for path in several]
        if paths:
            cells = [without_remarks(cell) for cell in row.values()]
            names = [name for cell in cells for span in SPAN.findall(cell) for name in names_in(span)]
            yield from (f"no {name} in {files}: {line[:60]}" for name in names if not is_used(paths, name))


@pytest.mark.parametrize("document", DOCUMENTS, ids=short)
def test_pointers_into_the_code(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
    wrong = [*wrong_pointers(text), *wrong_names_in_code_paragraphs(text), *wrong_names_in_tables(text)]
    assert not wrong, "\n".join(wrong)


def numbered_equations():
    return set(re.findall(rf"\\tag\{{({NUMBER})\}}", DERIVATION.read_text()))


def cited(text):
    """The numbers of all citations in a text, the ends of a range being two of them."""
    joined = re.sub(r"\s*\n[\s#]*", " ", text)
    return [number for found in CITATION.findall(joined) for number in re.findall(NUMBER, found)]


def test_equation_numbers_are_unique():
    found = re.findall(rf"\\tag\{{({NUMBER})\}}", DERIVATION.read_text())
    assert len(found) == len(set(found)) > 40


@pytest.mark.parametrize("path", [path for path in (*SOURCES, *DOCUMENTS) if cited(path.read_text())], ids=short)
def test_cited_equations(path):
    missing = sorted(set(cited(path.read_text())) - numbered_equations())
    assert not missing, f"docs/theory/derivation.md has no equation {', '.join(missing)}"


def test_the_rules_find_errors():
    assert list(
        wrong_pointers("`gp/psi.py: psi1`, `gp/none.py`, `gp/psi.py: no_such`, `x.py`, `models/base.py: Fitted.skip`")
    ) == [
        "there is no file gp/none.py",
        "gp/psi.py does not define no_such",
    ]
    assert list(wrong_names_in_code_paragraphs("Code: `gp/psi.py: psi1`, `psi2`, `no_such` and `--option`.")) == [
        "src/revarb/gp/psi.py has no no_such"
    ]
    table = "| name | file |\n|---|---|\n"
    table += "| `psi1`, `wrong_one` (`remark`) | gp/psi.py |\n| `Layer.zeta[h]`, `Layer.none` | gp/layer.py |\n"
    assert [problem.split(":")[0] for problem in wrong_names_in_tables(table)] == [
        "no wrong_one in ['gp/psi.py']",
        "no Layer.none in ['gp/layer.py']",
    ]
    assert cited("(Eqs. 7, 8 and 28), Eqs. 35a to\n    36, the paper's Eq. 99, Eq. for x") == [
        "7",
        "8",
        "28",
        "35a",
        "36",
    ]
