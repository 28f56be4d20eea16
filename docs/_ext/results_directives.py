"""Sphinx directives for results: tables and percentages from results/*.json, pictures that `make results` has drawn."""

import shutil

import results_tables
from docutils import nodes
from docutils.parsers.rst import Directive

ROOT = results_tables.ROOT
PICTURES = ROOT / "build" / "results"
COPIES = ROOT / "docs" / "auto_gallery" / "results"


def setup(app):
    """Register `results-table`, `results-picture` and the role `result`."""
    app.add_directive("results-table", ResultsTable)
    app.add_directive("results-picture", ResultsPicture)
    app.add_role("result", result_role)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class ResultsTable(Directive):
    """One table of `results_tables.TABLES` if it has rows, and a line that says where its numbers were computed."""

    required_arguments = 1

    def run(self):
        """Return the table and its origin."""
        name = self.arguments[0]
        sources = results_tables.SOURCES[name]
        for source in sources:
            self.state.document.settings.env.note_dependency(str(ROOT / "results" / source))
        head, *rows = results_tables.TABLES[name]()
        origins = (nodes.paragraph(text=results_tables.origin(source), classes=["origin"]) for source in sources)
        return [*([make_table(head, rows)] if rows else []), *origins]


def result_role(name, rawtext, text, lineno, inliner, options=None, content=None):
    """Insert one of `results_tables.percentages`."""
    inliner.document.settings.env.note_dependency(str(ROOT / "results" / "calibration.json"))
    found = results_tables.percentages()
    if text not in found:
        message = inliner.reporter.error(f"no result {text!r}; there are {', '.join(found)}", line=lineno)
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.Text(found[text])], []


class ResultsPicture(Directive):
    """A picture from build/results, or a line that says which command draws it. The content is its caption."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return a figure or a paragraph."""
        name, caption = self.arguments[0], " ".join(self.content)
        found = PICTURES / name
        if not found.is_file():
            text = f"{caption} (`make results` draws it: build/results/{name}.)"
            return [nodes.paragraph(text=text.replace("`", ""), classes=["origin"])]
        COPIES.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, COPIES / name)
        figure = nodes.figure()
        figure += nodes.image(uri=f"/auto_gallery/results/{name}", alt=caption)
        figure += nodes.caption(text=caption)
        return [figure]


def make_table(head, rows):
    """Return a table node; a bracket in a cell is a range, in smaller type."""
    table, group = nodes.table(classes=["results"]), nodes.tgroup(cols=len(head))
    table += group
    for _ in head:
        group += nodes.colspec(colwidth=1)
    group += nodes.thead("", _row(head))
    body = nodes.tbody()
    body += [_row(cells) for cells in rows]
    group += body
    return table


def _row(cells):
    row = nodes.row()
    for cell in cells:
        median, bracket, rest = cell.partition(" (")
        paragraph = nodes.paragraph(text=median)
        if bracket:
            paragraph += nodes.inline(text=f" ({rest}", classes=["range"])
        row += nodes.entry("", paragraph)
    return row
