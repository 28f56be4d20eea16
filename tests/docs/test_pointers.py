"""Every pointer from the documentation into the code, and from the code to an equation, has a target.

Documents: docs/**/*.md, README.md and CONTRIBUTING.md. Files are given relative to `src/revarb` or to the repository.

1. `` `gp/psi.py` `` is a file: a path in backticks that has a folder and ends in `.py` must exist.
2. `` `gp/psi.py: psi1, Layer.zeta` `` are definitions: the file must define these functions, classes or constants; an
   attribute may be inherited.
3. After "Code:", until the end of the paragraph, a name in backticks without a file is defined or used in the file that
   was named before it.
4. Tables with a column `file` (docs/theory/notation.md): every name in backticks in the other columns is defined or
   used in one of the files of its row, or is a class or an attribute of one. `baselines/` is all files of a folder.
   Remarks in parentheses are not checked.
5. What is after a name (`[h-1]`, `(mean, cov)`) does not matter, and texts that are no Python names are not checked.
6. "Eq. 21a", "Eqs. 7, 8 and 28" and "Eqs. 10 to 16" in src/, studies/, tests/ and docs/ cite `\\tag{21a}` of
   docs/theory/derivation.md. ("the paper's Eq. 3" does not.)
7. Call trees (docs/design/call_trees.md): every `package/module.py` in them is a file.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "revarb"
DERIVATION = ROOT / "docs" / "theory" / "derivation.md"
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
SOURCES = [path for name in ("src", "studies", "tests") for path in sorted((ROOT / name).rglob("*.py"))]
SOURCES.remove(Path(__file__))

SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]*/[\w-]+\.py")
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
REMARK = re.compile(r"(`[^`]*`)|\((?:[^()`]|`[^`]*`)*\)")
NUMBER = r"\d+[a-z]?"
CITATION = re.compile(rf"(?<!paper's )\bEqs?\. ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")


def find_files(name):
    """The file that a pointer names, or all files of a folder."""
    if name.endswith("/"):
        return sorted((SOURCE / name).rglob("*.py"))
    return [folder / name for folder in (SOURCE, ROOT) if (folder / name).is_file()][:1]


def bound_names(node):
    """The names that a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


@cache
def parse(path):
    """Top-level names, {class: (attributes, bases)}, and all identifiers of a file."""
    tree, classes = ast.parse(path.read_text()), {}
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        stored = {
            item.attr for item in ast.walk(node) if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store)
        }
        bases = [re.split(r"[\[.]", ast.unparse(base))[0] for base in node.bases]
        classes[node.name] = stored.union(*map(bound_names, node.body)), bases
    kinds = ("id", "arg", "attr", "name")
    identifiers = {getattr(node, kind, None) for node in ast.walk(tree) for kind in kinds}
    return set().union(*map(bound_names, tree.body)), classes, identifiers


@cache
def find_classes(name):
    return [classes[name] for path in SOURCE.rglob("*.py") for classes in [parse(path)[1]] if name in classes]


def has_attribute(class_name, attribute):
    """Whether the class or one of its bases in the package has it."""
    found = find_classes(class_name)
    return any(attribute in names or any(has_attribute(base, attribute) for base in bases) for names, bases in found)


def is_defined(path, name):
    first, *rest = name.split(".")
    return first in parse(path)[0] and (not rest or has_attribute(first, rest[0]))


def is_used(paths, name):
    first, *rest = name.split(".")
    if find_classes(first):
        return not rest or has_attribute(first, rest[0])
    return any((rest or [first])[-1] in parse(path)[2] for path in paths)


def names_in(text):
    """The Python names that a text in backticks consists of; none where it is something else."""
    found = [re.sub(r"[\[(].*", "", part).strip() for part in re.split(r",\s*(?![^(\[]*[)\]])", text)]
    return [name for name in found if NAME.fullmatch(name)]


def check_spans(text):
    """Rules 1 and 2."""
    for span in SPAN.findall(text):
        file, _, names = span.partition(":")
        if not FILE.fullmatch(file) or (names and not names.startswith(" ")):
            continue
        paths = find_files(file)
        if not paths:
            yield f"there is no file {file}"
        for name in names_in(names):
            if paths and not is_defined(paths[0], name):
                yield f"{file} does not define {name}"


def check_code_paragraphs(text):
    """Rule 3."""
    for paragraph in re.split(r"\n\s*\n", text):
        paths = []
        for span in SPAN.findall(paragraph.partition("Code:")[2]):
            file = span.partition(":")[0]
            if FILE.fullmatch(file):
                paths = find_files(file)
            elif paths:
                yield from (f"{paths[0].name} has no {name}" for name in names_in(span) if not is_used(paths, name))


def list_rows(text):
    """The cells by column of every row of every Markdown table."""
    head = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("| "))]
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells
        elif not set(line) <= set("|-: "):
            yield dict(zip(head, cells, strict=False))


def check_tables(text):
    """Rule 4."""
    for row in list_rows(text):
        files = [file.strip(" `") for file in row.pop("file", "").split(",") if file.strip(" `–")]
        yield from (f"there is no file {file}" for file in files if not find_files(file))
        paths = [path for file in files for path in find_files(file)]
        cells = [REMARK.sub(lambda found: found[1] or "", each) for each in row.values()]
        names = [name for cell in cells for span in SPAN.findall(cell) for name in names_in(span)]
        yield from (f"no {name} in {files}" for name in names if paths and not is_used(paths, name))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_pointers_into_the_code(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
    wrong = [*check_spans(text), *check_code_paragraphs(text), *check_tables(text)]
    assert not wrong, "\n".join(wrong)


def test_call_trees():
    named = FILE.findall((ROOT / "docs" / "design" / "call_trees.md").read_text())
    assert len(named) > 30 and not [name for name in named if not find_files(name)]


def list_citations(text):
    """The numbers of all citations in a text, the ends of a range being two of them."""
    joined = re.sub(r"\s*\n[\s#]*", " ", text)
    return [number for found in CITATION.findall(joined) for number in re.findall(NUMBER, found)]


def test_cited_equations():
    numbered = re.findall(rf"\\tag\{{({NUMBER})\}}", DERIVATION.read_text())
    assert len(numbered) == len(set(numbered)) > 40
    missing = {path: set(list_citations(path.read_text())) - set(numbered) for path in (*SOURCES, *DOCUMENTS)}
    assert not {str(path): numbers for path, numbers in missing.items() if numbers}


def test_the_rules_find_errors():
    pointers = "`gp/psi.py: psi1`, `gp/none.py`, `gp/psi.py: no_such`, `x.py`, `models/base.py: Fitted.skip`"
    assert list(check_spans(pointers)) == ["there is no file gp/none.py", "gp/psi.py does not define no_such"]
    code = "Code: `gp/psi.py: psi1`, `psi2`, `no_such` and `--option`."
    assert list(check_code_paragraphs(code)) == ["psi.py has no no_such"]
    table = "| name | file |\n|---|---|\n"
    table += "| `psi1`, `wrong_one` (`remark`) | gp/psi.py |\n| `Layer.zeta[h]`, `Layer.none` | gp/layer.py |\n"
    assert list(check_tables(table)) == ["no wrong_one in ['gp/psi.py']", "no Layer.none in ['gp/layer.py']"]
    text = "(Eqs. 7, 8 and 28), Eqs. 35a to\n    36, the paper's Eq. 99, Eq. for x"
    assert list_citations(text) == ["7", "8", "28", "35a", "36"]
