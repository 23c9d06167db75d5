"""Where a drawing goes: plain lines into a file or a pipe, or a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Protocol

import click

from streamfold.snapshot import Snapshot
from streamfold.views.lines import Line, plain
from streamfold.views.terminal import Drawing

__all__ = ["Page", "Paper", "page"]


class Page(Protocol):
    """What a drawing is shown on.

    Attributes:
        seen_with_errors: Who looks at it sees standard error too, so that nothing needs to be said twice.
    """

    @property
    def seen_with_errors(self) -> bool: ...

    def show(self, drawing: Drawing, progress: str) -> None:
        """Show what the drawing has become since the last time."""
        ...

    def finish(self, drawing: Drawing, answer: Snapshot) -> None:
        """Show the rest, and the lines that close the answer."""
        ...


def page() -> Page:
    """A screen if standard output is one that can move its cursor, else paper."""
    if sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        from streamfold.cli._screen import Screen  # rich takes a while to load, and nothing else needs it

        return Screen()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # it may be of an encoding that has no word for a model's characters
    return Paper()


class Paper:
    """Lines once they are final, without colours and unwrapped. Faults are left to standard error, which says them."""

    seen_with_errors = False

    def show(self, drawing: Drawing, progress: str) -> None:
        """Print what has become final."""
        self._print(drawing.take())

    def finish(self, drawing: Drawing, answer: Snapshot) -> None:
        """Print the rest."""
        self._print([*drawing.take(), *drawing.finish(answer, faults=False)])

    def _print(self, lines: Iterable[Line]) -> None:
        text = "".join(f"{plain(line)}\n" for line in lines)
        if text:
            click.echo(text, nl=False)  # which flushes
