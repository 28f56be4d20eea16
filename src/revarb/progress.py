"""A progress bar on a terminal, and silence everywhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(title: str, total: int, show: bool) -> Iterator[Callable[[int, str], None]]:
    """Yield `update(done, text)`. Nothing is drawn unless `show` is set and stderr is a terminal."""
    console = Console(stderr=True)
    if not (show and console.is_terminal):
        yield lambda done, text: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total, text="compiling")
        yield lambda done, text: bar.update(task, completed=done, text=text)
