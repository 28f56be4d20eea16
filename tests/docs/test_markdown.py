"""Markdown of the repository: lines, links between documents, the size of the README, the form of the changelog."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("auto_gallery", "api/generated")  # written by Sphinx
WIDTH = 120
PLACES = ("*.md", ".github/**/*.md", "bench/**/*.md", "docs/**/*.md", "studies/**/*.md", "tests/**/*.md")
DOCUMENTS = sorted(path for place in PLACES for path in ROOT.glob(place) if not any(made in str(path) for made in MADE))


def find_long_lines(text):
    """Lines of more than WIDTH characters, tables and code included; an address alone on its line cannot be broken."""
    return [line for line in text.splitlines() if len(line) > WIDTH and not re.fullmatch(r"\s*<?https?://\S+", line)]


def find_links(text):
    """Targets of links to files, without the part after "#"; links in code are ignored."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    return [target for target in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_and_links(document):
    text = document.read_text()
    assert not find_long_lines(text)
    targets = [(document.parent / target).resolve() for target in find_links(text)]
    assert not [str(path) for path in targets if not path.exists() and not any(made in str(path) for made in MADE)]


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text()) <= 6500  # characters: two screens and a table


def test_the_table_of_the_readme_has_the_committed_results():
    spec = spec_from_file_location("results_tables", ROOT / "docs" / "results_tables.py")
    tables = module_from_spec(spec)
    spec.loader.exec_module(tables)
    assert tables.marked((ROOT / "README.md").read_text(), "readme") == tables.block("readme")


def test_the_changelog_can_be_scanned():
    """Every entry is one line under Added, Changed or Fixed of a version."""
    _, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    for version in versions:
        _, *sections = re.split(r"^### ", version, flags=re.M)
        lines = [line for section in sections for line in section.splitlines()[1:] if line]
        assert {section.split("\n")[0] for section in sections} <= {"Added", "Changed", "Fixed"}
        assert not [line for line in lines if not re.match(r"- \S|\*\*[A-Z].*\*\*$", line)]
