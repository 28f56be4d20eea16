"""Sphinx directives that run shell commands while building and show what they print and draw.

`run-console` runs the lines that begin with `$ ` in one folder, build/tutorial, which is emptied when a build reads the
page. A command that does not end with the expected status (`:status:`, default 0) is a warning, and so fails the build.
`console-picture` shows a picture that a command has written there.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.util import logging

logger = logging.getLogger(__name__)

DOCS = Path(__file__).parents[1]
FOLDER = DOCS.parent / "build" / "tutorial"
COPIES = DOCS / "auto_gallery" / "tutorial"
WIDTH = 104  # columns of a table of candidates; a code block on a narrow page scrolls


def setup(app):
    """Register the directives; a page that is read again starts with an empty folder."""
    app.add_directive("run-console", RunConsole)
    app.add_directive("console-picture", ConsolePicture)
    app.connect("source-read", empty_folder)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def empty_folder(app, docname, source):
    """Remove what an earlier run of the page's commands has left."""
    if "{run-console}" in source[0]:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        for script in (DOCS / "tutorial").glob("*.py"):
            shutil.copy(script, FOLDER)


class RunConsole(Directive):
    """Commands and their output."""

    has_content = True
    option_spec = {"status": directives.nonnegative_int}  # noqa: RUF012

    def run(self):
        """Run the commands in turn."""
        lines = []
        for command in commands(self.content):
            finished = run(command)
            if finished.returncode != self.options.get("status", 0):
                place = (self.state.document.current_source, self.lineno)
                logger.warning("%s: status %d: %s", command, finished.returncode, finished.stdout, location=place)
            lines.append(f"$ {command}")
            for line in finished.stdout.rstrip().splitlines():
                lines += textwrap.wrap(line, WIDTH, drop_whitespace=False) if len(line) > WIDTH else [line]
        block = nodes.literal_block(text="\n".join(lines), language="console")
        return [block]


def commands(lines):
    """The commands after the `$ ` of each; a line that ends in a backslash continues on the next."""
    return "\n".join(lines).removeprefix("$ ").split("\n$ ")


def run(command):
    """Run a command line with the interpreter of the build first in the path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {"PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "dumb", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        command, shell=True, cwd=FOLDER, env=os.environ | settings, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


class ConsolePicture(Directive):
    """A picture that a command has written; the content is its caption."""

    required_arguments = 1
    has_content = True

    def run(self):
        """Return the figure."""
        name, caption = self.arguments[0], " ".join(self.content)
        COPIES.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FOLDER / name, COPIES / Path(name).name)
        figure = nodes.figure()
        figure += nodes.image(uri=f"/auto_gallery/tutorial/{Path(name).name}", alt=caption)
        figure += nodes.caption(text=caption)
        return [figure]
