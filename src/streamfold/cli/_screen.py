"""A live drawing on a terminal: what is final scrolls away, the rows below it are drawn over and over."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from streamfold.snapshot import Snapshot
from streamfold.views.lines import Line, Span, Style, cells, wrap
from streamfold.views.terminal import Drawing

__all__ = ["Screen"]

_LOOKS: Final[dict[Style, str]] = {
    "": "",
    "dim": "dim",
    "reasoning": "dim italic",
    "name": "bold cyan",
    "key": "cyan",
    "value": "green",
    "note": "yellow",
    "error": "bold red",
}
_ERASE: Final = (ControlType.ERASE_IN_LINE, 2)
_UP: Final = (ControlType.CURSOR_UP, 1)


class Screen:
    """A terminal. Lines that are final are printed once, so all of a long answer can be scrolled back to."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self.seen_with_errors = sys.stderr.isatty()
        self._region: list[Line] = []  # the rows below what is final, as they were drawn last

    def show(self, drawing: Drawing, progress: str) -> None:
        """Print what has become final, and draw the rest as it stands."""
        width, height = self._size()
        final = drawing.take(width)
        status = wrap(Line((Span(f"… {progress}", "dim"),)), width)[:1]
        self._draw(final, [*drawing.tail(width, height - 2), *status], width)

    def finish(self, drawing: Drawing, answer: Snapshot) -> None:
        """Print the rest."""
        width, _ = self._size()
        self._draw([*drawing.take(width), *drawing.finish(answer)], [], width)

    def _size(self) -> tuple[int, int]:
        size = self._console.size
        return max(size.width - 1, 2), max(size.height, 3)  # a column to spare: terminals disagree on some widths

    def _draw(self, final: list[Line], region: list[Line], width: int) -> None:
        rows = [row for line in final for row in wrap(line, width)]
        with self._console:  # makes one write of all of it, so that nothing flickers
            self._erase()
            for row in rows:
                self._console.print(_text(row), soft_wrap=True)
            self._console.print(Text("\n").join(map(_text, region)), soft_wrap=True, end="")
            self._region = region

    def _erase(self) -> None:
        """Take the region away; after a resize, the terminal has wrapped its rows anew."""
        if self._region:
            width = self._console.width
            count = sum(max(1, -(-_cells_of(row) // width)) for row in self._region)
            self._console.control(Control(ControlType.CARRIAGE_RETURN, _ERASE, *(_UP, _ERASE) * (count - 1)))


def _cells_of(row: Line) -> int:
    return cells(row.gutter) + sum(cells(span.text) for span in row.spans)


def _text(row: Line) -> Text:
    text = Text()
    text.append(row.gutter, _LOOKS["dim"])
    for span in row.spans:
        text.append(span.text, _LOOKS[span.style])
    return text
