"""A terminal small enough to read: what it shows after the bytes that a live drawing writes.

It knows the few sequences such a drawing needs, and fails at any other: what a model writes must never become one.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["Terminal"]

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Terminal:
    """Feed it what was written; ``rows`` are all of its rows, those that have scrolled away included."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells: list[list[str]] = [[]]
        self._row = self._column = 0
        self.sequences: set[str] = set()

    @property
    def rows(self) -> list[str]:
        return ["".join(cells).rstrip() for cells in self._cells]

    @property
    def screen(self) -> list[str]:
        """The rows that can be seen."""
        return self.rows[-self.height :]

    def feed(self, written: str) -> None:
        at = 0
        while at < len(written):
            sequence = _SEQUENCE.match(written, at)
            if sequence is not None:
                self._obey(sequence[1], sequence[2])
                at = sequence.end()
            else:
                self._put(written[at])
                at += 1

    def _obey(self, parameters: str, final: str) -> None:
        self.sequences.add(parameters + final)
        match final:
            case "m":
                pass
            case "l" | "h" if parameters == "?25":  # the cursor is hidden or shown
                pass
            case "A":
                self._row = max(0, len(self._cells) - self.height, self._row - int(parameters or 1))
            case "K" if parameters == "2":
                self._cells[self._row] = []
            case _:
                raise AssertionError(f"the terminal was sent ESC [ {parameters}{final}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
            return
        if character == "\n":
            self._row += 1
            if self._row == len(self._cells):
                self._cells.append([])
            return
        assert character.isprintable(), f"the terminal was sent {character!r}"
        size = 2 if unicodedata.east_asian_width(character) in "WF" else 0 if unicodedata.combining(character) else 1
        if self._column + size > self.width:
            self._put("\r")
            self._put("\n")
        row = self._cells[self._row]
        row += [" "] * (self._column + size - len(row))
        if size:
            row[self._column : self._column + size] = [character] + [""] * (size - 1)
        elif row:
            row[self._column - 1] += character
        self._column += size
