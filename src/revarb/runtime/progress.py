"""Progress of long work: bars on a terminal and in a notebook; elsewhere, as in a log file, a line now and then."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LOG_SECONDS = 5.0  # between the lines of a log at first
LOG_SHARE = 0.1  # of the time so far, between later lines

Update = Callable[[int, int, str], None]
"""A function that takes the number of a line, its number of steps done, and a text.

A text that ends with a line break is kept: it is written above the bars, or as a line of the log.
"""


@contextmanager
def progress_bar(title: str, total: int, show: bool) -> Iterator[Callable[[int, str], None]]:
    """Show one progress bar and yield `update(done, text)`; see `progress_lines`."""
    with progress_lines([title], total, show, waiting="compiling") as update:
        yield lambda done, text: update(0, done, text)


@contextmanager
def progress_lines(titles: Sequence[str], total: int, show: bool, waiting: str = "waiting") -> Iterator[Update]:
    """Show one progress bar per title and yield `update(line, done, text)`; `waiting` is the text before the first one.

    Where stderr is neither a terminal nor a notebook that can redraw, lines are written to it instead. Without `show`
    there is nothing.
    """
    console = Console(stderr=True)
    if not show:
        yield lambda line, done, text: None
    # In a notebook rich redraws a bar through ipywidgets, which most of them have.
    elif console.is_terminal or (console.is_jupyter and find_spec("ipywidgets") is not None):
        with _draw_bars(console, titles, total, waiting) as update:
            yield update
    else:
        with _write_log(titles, total, waiting) as update:
            yield update


@contextmanager
def _draw_bars(console: Console, titles: Sequence[str], total: int, waiting: str) -> Iterator[Update]:
    # Names of candidates are a user's own texts.
    title, text = (TextColumn(each, markup=False) for each in ("{task.description}", "{task.fields[text]}"))
    columns = (title, BarColumn(), MofNCompleteColumn(), text, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        tasks = [bar.add_task(title, total=total, text=waiting) for title in titles]

        def update(line: int, done: int, text: str) -> None:
            if text.endswith("\n"):
                bar.console.print(text, end="", markup=False, highlight=False)
            else:
                bar.update(tasks[line], completed=done, text=text)

        yield update


@contextmanager
def _write_log(titles: Sequence[str], total: int, waiting: str) -> Iterator[Update]:
    # By a thread, so that a log grows while a program is compiled, too.
    started, finished = time.monotonic(), threading.Event()
    done, latest = [0] * len(titles), [f"{titles[0]}: {waiting}"]

    def update(line: int, steps: int, text: str) -> None:
        if text.endswith("\n"):
            print(text, end="", file=sys.stderr, flush=True)
        else:
            done[line], latest[0] = steps, f"{titles[line]}: {text}"

    def write() -> None:
        seconds = 0.0
        while not finished.wait(max(LOG_SECONDS, LOG_SHARE * seconds)):
            seconds = time.monotonic() - started
            share = min(1.0, sum(done) / max(1, total * len(done)))
            print(f"{latest[0]} ({share:.0%} of all steps, {seconds:.0f} s)", file=sys.stderr, flush=True)

    thread = threading.Thread(target=write, name="revarb progress", daemon=True)
    thread.start()
    try:
        yield update
    finally:
        finished.set()
        thread.join()
