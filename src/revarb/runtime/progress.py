"""Progress bars on a terminal and in a notebook; nothing elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(title: str, total: int, show: bool) -> Iterator[Callable[[int, str], None]]:
    """Show one progress bar and yield `update(done, text)`; see `progress_lines`."""
    with progress_lines([title], total, show, waiting="compiling") as update:
        yield lambda done, text: update(0, done, text)


@contextmanager
def progress_lines(
    titles: Sequence[str], total: int, show: bool, waiting: str = "waiting"
) -> Iterator[Callable[[int, int, str], None]]:
    """Show one progress bar per title and yield `update(line, done, text)`; `waiting` is the text before the first one.

    Nothing is drawn unless `show` is set, and stderr is a terminal or this is a notebook.
    """
    console = Console(stderr=True)
    if not (show and _can_draw(console)):
        yield lambda line, done, text: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        tasks = [bar.add_task(title, total=total, text=waiting) for title in titles]
        yield lambda line, done, text: bar.update(tasks[line], completed=done, text=text)


def _can_draw(console: Console) -> bool:
    # In a notebook rich redraws a bar through ipywidgets, which most of them have.
    return console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None)
