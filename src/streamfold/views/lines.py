"""Text for people as lines of styled spans: made harmless, cut into lines as it grows, wrapped to a width.

Knows characters and their cells; knows nothing of answers. What a model wrote must not be able to drive the terminal it
is shown on, so everything passes through :func:`neutral` before it becomes a span.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

__all__ = [
    "BLANK",
    "Flow",
    "Line",
    "Span",
    "Style",
    "cells",
    "line_of",
    "neutral",
    "neutral_json",
    "one_line",
    "plain",
    "size",
    "wrap",
]

Style: TypeAlias = Literal["", "dim", "reasoning", "name", "key", "value", "note", "error"]
"""What a span is, not how it looks: colours are the terminal's business."""


class Span(NamedTuple):
    """A run of text in one style."""

    text: str
    style: Style = ""


class Line(NamedTuple):
    """One line, without its end.

    Attributes:
        spans: What it says.
        gutter: Stands before every row that it is wrapped into.
        below: It is the rest of a line whose first rows were given away; ``gutter`` has its indentation.
    """

    spans: tuple[Span, ...]
    gutter: str = ""
    below: bool = False


BLANK: Final = Line(())


def line_of(text: str, style: Style = "", gutter: str = "") -> Line:
    """A line in one style."""
    return Line((Span(text, style),), gutter)


def plain(line: Line) -> str:
    """The line without its styles."""
    return (line.gutter + "".join(span.text for span in line.spans)).rstrip()


# -- harmless text ----------------------------------------------------------------------------------------------------

_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHOWN: Final = {
    **{chr(code): chr(0x2400 + code) for code in range(0x20)},  # control pictures: ESC becomes ␛
    "\x7f": "\u2421",
    "\u2028": "\u23ce",
    "\u2029": "\u23ce",
}


def neutral(text: str) -> str:
    """The same text with nothing in it that a terminal would obey.

    Control characters (C0 and C1, so every escape sequence) become their pictures or U+FFFD, and so do the marks that
    turn the direction of writing, which can make a line read as what it is not. Line ends and tabs stay.
    """
    return _UNSAFE.sub(lambda found: _SHOWN.get(found[0], "\ufffd"), text)


def neutral_json(text: str) -> str:
    """JSON text that means the same, with nothing in it that a terminal would obey."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str, limit: int = 500) -> str:
    """The text made harmless, on one line, and shortened where it is longer than ``limit`` characters."""
    text = neutral(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


# -- width ------------------------------------------------------------------------------------------------------------


def cells(text: str) -> int:
    """How many columns of a terminal the text takes. Where terminals disagree, the larger number."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    if character == "\ufe0f":  # asks for the emoji form of the character before it, which is wider in most terminals
        return 1
    return 0 if unicodedata.category(character) in ("Mn", "Me", "Cf") else 1


# -- wrapping ---------------------------------------------------------------------------------------------------------

_WIDE: Final = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd"
)
_TOKENS: Final = rf" +|[{_WIDE}][\ufe0f\U0001f3fb-\U0001f3ff]?(?:\u200d.\ufe0f?)*[、。，！？：；）」』]?|[^ {_WIDE}]+"
_ITEM: Final = re.compile(r" *(?:(?:[-*+•▸◂▣·]|[0-9]{1,3}[.)]) )?")
_TAB: Final = "    "


def wrap(line: Line, width: int) -> list[Line]:
    """The rows that the line takes at this width, at least one.

    Broken between words, inside a word only where it is longer than a row; rows below an item of a list are indented
    like its text. All rows but the last stay as they are whatever is appended to the line, so they can be printed while
    the line still grows.
    """
    spans = tuple(Span(span.text.replace("\t", _TAB), span.style) for span in line.spans)
    text = "".join(span.text for span in spans)
    room = max(width - cells(line.gutter), 2)
    if cells(text) <= room:
        return [line._replace(spans=spans)]
    hang = "" if line.below else _hang(text, spans)
    if len(hang) >= max(room // 2, 1):
        hang = ""
    first, *more = _cut(spans, _breaks(text, room, room - len(hang)))
    return [line._replace(spans=first), *(Line(row, line.gutter + hang, below=True) for row in more)]


def _hang(text: str, spans: tuple[Span, ...]) -> str:
    """How far the rows below the first one are indented."""
    item = _ITEM.match(text)
    depth = item.end() if item is not None else 0
    return " " * (depth + 2 if any(span.style == "key" for span in spans[:2]) else depth)


@cache
def _tokens() -> re.Pattern[str]:
    """What a row is made of; such a pattern takes 5 ms to compile, and only a terminal needs it."""
    return re.compile(_TOKENS)


def _breaks(text: str, room: int, room_below: int) -> Iterator[int]:
    """Where each row but the first begins."""
    used = 0
    blank = True  # the row holds nothing but blanks: its word is broken rather than moved
    for token in _tokens().finditer(text):
        word, at = token[0], token.start()
        size = cells(word)
        if word[0] == " ":  # blanks may stick out: they vanish at the end of a row
            used += size
            continue
        if used + size > room and not (blank and used < room // 2):
            if at:
                yield at
            used, room = 0, room_below
        blank = False
        if used + size <= room:
            used += size
            continue
        for character in word:
            step = _cells_of(character)
            if used + step > room:
                yield at
                used, room = 0, room_below
            used += step
            at += 1


def _cut(spans: tuple[Span, ...], breaks: Iterator[int]) -> Iterator[tuple[Span, ...]]:
    """The spans of each row; blanks before a break are left out."""
    row: list[Span] = []
    at = 0  # of the span, in the whole text
    end = next(breaks, None)
    for text, style in spans:
        begin = 0
        while end is not None and end <= at + len(text):
            row.append(Span(text[begin : end - at], style))
            begin = end - at
            yield _trimmed(row)
            row, end = [], next(breaks, None)
        if begin < len(text):
            row.append(Span(text[begin:], style))
        at += len(text)
    yield tuple(row)


def _trimmed(row: list[Span]) -> tuple[Span, ...]:
    while row and not row[-1].text.rstrip(" "):
        row.pop()
    return (*row[:-1], Span(row[-1].text.rstrip(" "), row[-1].style)) if row else ()


# -- growing text -----------------------------------------------------------------------------------------------------


class Flow:
    """Text that grows at its end: lines that are whole, waiting to be taken, and the one that is still open.

    Empty lines are held back until something follows them, so that text may begin and end in as many as it likes.
    """

    def __init__(self, gutter: str = "") -> None:
        self.gutter = gutter
        self.whole: deque[Line] = deque()
        self.begun = False  # a line that is not empty has come
        self._open: list[Span] = []
        self._rest_of: Line | None = None  # the last row of the open line, where others were given away
        self._empty = 0  # lines held back
        self._cr = False  # the text so far ends in CR: half a line end, or a control character

    def add(self, text: str, style: Style = "") -> None:
        """Append text; it may hold line ends."""
        if self._cr:
            text, self._cr = "\r" + text, False
        if text.endswith("\r"):
            text, self._cr = text[:-1], True
        first, *more = neutral(text.replace("\r\n", "\n")).split("\n")
        if first:
            self._open.append(Span(first, style))
        for line in more:
            self._end_line()
            if line:
                self._open.append(Span(line, style))

    def add_line(self, line: Line) -> None:
        """Append a whole line, after ending the open one."""
        self.close()
        self._give(line)

    def set_open(self, *spans: Span) -> None:
        """Let the open line be this one."""
        self._open = list(spans)

    def settle(self, width: int) -> None:
        """Rows of the open line that nothing can change any more become whole."""
        *rows, last = wrap(self._open_line(), width)
        for row in rows:
            self._give(row)
        if rows:
            self._open, self._rest_of = list(last.spans), last

    def close(self) -> None:
        """End the open line."""
        if self._cr:
            self._cr = False
            self._open.append(Span(neutral("\r")))
        if self._open:
            self._end_line()

    def open_lines(self) -> list[Line]:
        """The line that is open, with the empty ones before it; nothing where it is empty."""
        return [*self._held_back(), self._open_line()] if self._has_ink() else []

    def _open_line(self) -> Line:
        line = self._rest_of or Line((), self.gutter)
        return line._replace(spans=tuple(self._open))

    def _has_ink(self) -> bool:
        return any(span.text.strip() for span in self._open)

    def _held_back(self) -> list[Line]:
        return [Line((), self.gutter)] * (self._empty if self.begun else 0)

    def _give(self, line: Line) -> None:
        self.whole.extend(self._held_back())
        self._empty, self.begun = 0, True
        self.whole.append(line)

    def _end_line(self) -> None:
        if self._has_ink():
            self._give(self._open_line())
        else:
            self._empty += 1
        self._open, self._rest_of = [], None
