"""Links between documents lead to existing files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
GENERATED = ("auto_gallery/", "api/generated/")
"""Folders of the site that Sphinx writes."""


def links(text):
    """Targets of Markdown links to files, without the part after "#"; links in code are ignored."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)
    return [target for target in re.findall(r"\]\(([^)#\s]+)", text) if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files(document):
    lost = [
        target
        for target in links(document.read_text())
        if not (document.parent / target).exists()
        and not any(folder in str((document.parent / target).resolve()) for folder in GENERATED)
    ]
    assert not lost
