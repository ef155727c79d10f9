"""A progress bar for people, and silence for everybody else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Observe", "StatusLine", "progress"]

Observe = Callable[[str, int, int], None]
"""Told the stage a planner is in, how far it is, and how far it goes."""


@contextmanager
def progress() -> Iterator[Observe | None]:
    """Yield an observer that draws a bar on standard error, or None if nobody is there."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("planning", total=None)

        def observe(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        yield observe


class StatusLine:
    """One line on standard error that says what goes on, for people; silence for others.

    For what writes data all the while: a bar would take what is printed for its own terminal.
    """

    def __init__(self) -> None:
        self._seen = sys.stderr.isatty()

    def show(self, text: str) -> None:
        """Have this stand there and nothing else; before anything is printed, nothing at all."""
        if self._seen:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
