"""Links between documents lead to files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
GENERATED = ("auto_gallery/", "api/generated/")
"""Folders of the site that Sphinx writes."""


def links(text):
    """Targets of Markdown links to files, without what is after "#"; code is no text."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    return [target for target in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_has_its_file(document):
    lost = [
        target
        for target in links(document.read_text())
        if not (document.parent / target).exists()
        and not any(folder in str((document.parent / target).resolve()) for folder in GENERATED)
    ]
    assert not lost
