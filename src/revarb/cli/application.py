"""What all commands share: the application, output to the screen, and the exit status of errors."""

import shlex
import sys
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from typer import Option

from revarb.errors import InputError, RevarbError
from revarb.runtime.files import check_writable
from revarb.runtime.interrupts import INTERRUPTED, recover_interrupts

app = typer.Typer(
    name="revarb",
    help="Recurrent Gaussian processes: from a table of inputs and outputs to simulations with calibrated bands.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would read "[recipe]" as markup
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


# Without a terminal rich would wrap tables at 80 columns.
_console = partial(Console, highlight=False, markup=False, width=None if sys.stdout.isatty() else 110)
screen, error_screen = _console(), _console(stderr=True)


command_line: ContextVar[str] = ContextVar("command_line", default="revarb")
"""The command line as typed, for files that record how they were made."""


COMPUTATION_FAILED, INPUT_WRONG = 1, 2  # exit status


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `revarb` command."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command_line.set(shlex.join(["revarb", *given]))
    with warnings.catch_warnings(), recover_interrupts():
        warnings.showwarning = _one_line_warning
        try:
            code = app(given or ["--help"], "revarb", standalone_mode=False)  # Ctrl-C: INTERRUPTED
        except RevarbError as error:
            print_line("error", str(error))
            code = INPUT_WRONG if isinstance(error, InputError) else COMPUTATION_FAILED
        except typer.TyperException as error:
            print_line("error", error.format_message())
            code = INPUT_WRONG
    if code == INTERRUPTED:
        print_line("interrupted", "stopped before the end")
    sys.exit(code if isinstance(code, int) else 0)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        from revarb import __version__

        screen.print(__version__)
        raise typer.Exit


def check_targets(option: str, targets: Sequence[Path], read: Sequence[Path]) -> None:
    """Refuse files, before the work, that cannot be written or would replace one that is read."""
    for target in targets:
        written = check_writable(target).resolve()
        for path in read:
            if path.resolve() == written:
                raise InputError(f"{option} would overwrite {path}, which is read; choose another name")


def find_picture(target: Path, ending: str, read: Sequence[Path]) -> Path:
    """The file for the picture of a result; both are checked before the work."""
    picture = check_writable(target).with_suffix(ending)
    check_targets(f"-o {target}", [target, picture], read)
    return picture


def say(sentence: str, bold: bool = False) -> None:
    """Print a sentence, which the terminal breaks."""
    screen.print(sentence, style="bold" if bold else None, soft_wrap=True)


def print_written(*paths: Path) -> None:
    """Name the files that were written."""
    for path in paths:
        say(f"wrote {path}")


def print_line(kind: str, message: str) -> None:
    """One line on the standard error."""
    print(f"{kind}: {' '.join(message.split())}", file=sys.stderr)


def stop_interrupted(message: str) -> NoReturn:
    """End a command after Ctrl-C, once what was done before it has been written."""
    print_line("interrupted", message)
    sys.exit(INTERRUPTED)


def _one_line_warning(message, category, filename, lineno, file=None, line=None) -> None:
    print_line("warning", str(message))
