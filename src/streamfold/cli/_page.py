"""Where a drawing goes: plain lines into a file or a pipe, or a terminal whose last rows are drawn anew."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, Protocol

import click
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from streamfold.snapshot import Snapshot
from streamfold.views.terminal import Drawing, Line, Span, plain, wrap

__all__ = ["Page", "Paper", "Screen", "page"]

_LOOKS: Final = {
    "": "",
    "dim": "dim",
    "reasoning": "dim italic",
    "name": "bold cyan",
    "key": "cyan",
    "value": "green",
    "note": "yellow",
    "error": "bold red",
}


class Page(Protocol):
    """What a drawing is shown on."""

    def show(self, drawing: Drawing, progress: str) -> None:
        """Show what the drawing has become since the last time."""
        ...

    def finish(self, drawing: Drawing, answer: Snapshot) -> None:
        """Show the rest, and the lines that close the answer."""
        ...


def page() -> Page:
    """A screen if standard output is one, else paper."""
    if sys.stdout is not None and sys.stdout.isatty():
        console = Console(highlight=False)
        if not console.is_dumb_terminal:
            return Screen(console)
    return Paper()


class Paper:
    """Lines once they are final, without colours and unwrapped."""

    def show(self, drawing: Drawing, progress: str) -> None:
        """Print what has become final."""
        self._print(drawing.take())

    def finish(self, drawing: Drawing, answer: Snapshot) -> None:
        """Print the rest."""
        self._print(drawing.finish(answer))

    def _print(self, lines: Iterable[Line]) -> None:
        click.echo("".join(f"{plain(line)}\n" for line in lines), nl=False)
        

class Screen:
    """A terminal. What is final is printed once and scrolls away; below it, a few rows are drawn over and over."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._region: list[Line] = []  # the rows below

    def show(self, drawing: Drawing, progress: str) -> None:
        """Print what has become final, and draw the rest as it stands."""
        width, height = self._size()
        final = drawing.take(width)
        status = Line((Span(f"… {progress}", "dim"),))
        self._draw(final, [*drawing.tail(width, height - 2), *wrap(status, width)[:1]], width)

    def finish(self, drawing: Drawing, answer: Snapshot) -> None:
        """Print the rest."""
        width, _ = self._size()
        self._draw([*drawing.take(width), *drawing.finish(answer)], [], width)

    def _size(self) -> tuple[int, int]:
        size = self._console.size
        return max(size.width - 1, 2), max(size.height, 3)  # a column to spare: terminals disagree on some widths

    def _draw(self, final: list[Line], region: list[Line], width: int) -> None:
        with self._console:  # all of it is one write: nothing flickers
            self._erase()
            rows = [row for line in final for row in wrap(line, width)]
            for row in rows:
                self._print(row, end="\n")
            for number, row in enumerate(region):
                self._print(row, end="\n" if number < len(region) - 1 else "")
            self._region = region

    def _erase(self) -> None:
        if not self._region:
            return
        width = self._console.width  # after a resize the terminal has wrapped the rows anew
        count = sum(max(1, -(-row_cells(row) // width)) for row in self._region)
        clear = (ControlType.ERASE_IN_LINE, 2)
        above = [(ControlType.CURSOR_UP, 1), clear] * (count - 1)
        self._console.control(Control(ControlType.CARRIAGE_RETURN, clear, *above))

    def _print(self, row: Line, end: str) -> None:
        text = Text(row.gutter, _LOOKS["dim"])
        for span in row.spans:
            text.append(span.text, _LOOKS[span.style])
        self._console.print(text, end=end, soft_wrap=True)
