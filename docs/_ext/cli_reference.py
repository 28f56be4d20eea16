"""Sphinx directive that writes the reference of the command line from the commands themselves."""

import inspect

import typer
from docutils import nodes
from docutils.parsers.rst import Directive


def setup(app):
    """Register `cli-reference`."""
    app.add_directive("cli-reference", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class CommandReference(Directive):
    """One section per command: its help and a table of its arguments and options."""

    def run(self):
        """Walk through the commands and their subcommands."""
        from revarb.cli.application import app

        return list(_sections(typer.main.get_command(app), "revarb"))


def _sections(command, name):
    for key, child in command.commands.items():
        full = f"{name} {key}"
        if hasattr(child, "commands"):
            yield from _sections(child, full)
            continue
        section = nodes.section(ids=[full.replace(" ", "-")])
        section += nodes.title(text=full)
        for paragraph in inspect.cleandoc(child.help or "").split("\n\n"):
            section += nodes.paragraph(text=" ".join(paragraph.split()))
        section += _table([row for row in map(_row, child.params) if row])
        yield section


def _row(parameter):
    if parameter.name == "help":
        return None
    required = " (required)" if parameter.required else ""
    if parameter.param_type_name == "argument":
        return f"{parameter.name.upper()}{required}", parameter.help or ""
    flags = ", ".join(parameter.opts)
    default = parameter.default
    shown = "" if default in (None, False, ()) or callable(default) or required else f" Default: {default}."
    return f"{flags}{required}", f"{parameter.help or ''}{shown}"


def _table(rows):
    table, group = nodes.table(classes=["cli"]), nodes.tgroup(cols=2)
    table += group
    group += [nodes.colspec(colwidth=30), nodes.colspec(colwidth=70)]
    body = nodes.tbody()
    group += body
    for name, text in rows:
        row = nodes.row()
        row += nodes.entry("", nodes.paragraph("", "", nodes.literal(text=name)))
        row += nodes.entry("", nodes.paragraph(text=text))
        body += row
    return table
