"""The arguments of a tool call laid out for reading while they stream: a member a line, strings without their escapes.

What is shown depends only on the text so far, so lines can be printed before the call is whole. It is a drawing, not a
parser: text that is no JSON comes through as it stands. Knows JSON's characters; knows nothing of calls or terminals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streamfold.views.lines import Span, Style

__all__ = ["Arguments"]

_INDENT: Final = "  "
_BARE: Final = re.compile(r'[^\s"{}\[\],:]+')
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([^u]))")
_OPEN_ESCAPE: Final = re.compile(
    r"\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z"
)
_STRING_PART: Final = re.compile(r'[^"\\]+')
_MEANING: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Arguments:
    """Feed it the text of the arguments, cut anywhere; it gives spans, in which a line end begins a new line.

    The braces of the outermost object are left out.

    Args:
        json: Whether the text is JSON; else it comes through untouched. None: told by its first character.
    """

    def __init__(self, *, json: bool | None = None) -> None:
        self._json = json
        self._closers: list[str] = []  # of the containers that are open
        self._fresh = False  # the innermost one is empty so far
        self._key_next = False
        self._quoted: Style | None = None  # inside a string, of this style
        self._held: str = ""  # an escape that is not whole
        self._shown = False  # something has come out

    def feed(self, text: str) -> Iterator[Span]:
        """The spans that the next piece of the text adds."""
        if self._json is None:
            text = self._held + text
            first = text.lstrip()[:1]
            if not first:
                self._held = text
                return
            self._held = ""
            self._json = first in '{["'
        if not self._json:
            yield Span(text)
            return
        for span in self._spans(self._held + text):
            self._shown = True
            yield span

    def _spans(self, text: str) -> Iterator[Span]:
        self._held = ""
        at = 0
        while at < len(text):
            if self._quoted is not None:
                span, at = self._in_string(text, at, self._quoted)
                if span is None:
                    self._held = text[at:]
                    return
                yield span
            elif (bare := _BARE.match(text, at)) is not None:
                yield from self._begin_value()
                yield Span(bare[0], "value")
                at = bare.end()
            else:
                yield from self._mark(text[at])
                at += 1

    def _in_string(self, text: str, at: int, style: Style) -> tuple[Span | None, int]:
        """The next part of the string that is open, and where it ends; None where an escape is cut off."""
        part = _STRING_PART.match(text, at)
        if part is not None:
            return Span(self._indented(part[0]), style), part.end()
        if text[at] == '"':
            self._quoted = None
            return Span("" if style == "key" else '"', style), at + 1
        if _OPEN_ESCAPE.match(text, at):
            return None, at
        return self._escaped(text, at, style)

    def _escaped(self, text: str, at: int, style: Style) -> tuple[Span, int]:
        escape = _ESCAPE.match(text, at)
        if escape is None:  # no escape of JSON's
            return Span("\\", style), at + 1
        if escape[1] is None:
            return Span(self._indented(_MEANING.get(escape[2], escape[2])), style), escape.end()
        units, end = escape[1], escape.end()
        other = _ESCAPE.match(text, end)
        if "d800" <= units.lower() <= "dbff" and other is not None and other[1] is not None:
            units, end = units + other[1], other.end()
        return Span(self._indented(bytes.fromhex(units).decode("utf-16-be", "replace")), style), end

    def _indented(self, text: str) -> str:
        """Lines of a string stand below their member."""
        return text.replace("\n", "\n" + _INDENT * len(self._closers))

    def _mark(self, mark: str) -> Iterator[Span]:
        """One character between strings and other values."""
        match mark:
            case '"' if self._key_next:
                yield from self._begin_value()
                self._quoted = "key"
            case '"':
                yield from self._begin_value()
                self._quoted = "value"
                yield Span('"', "value")
            case "{" | "[":
                yield from self._begin_value()
                self._open(mark)
                if mark == "[" or len(self._closers) > 1:
                    yield Span(mark)
            case "}" | "]":
                yield from self._close(mark)
            case "," if self._closers[-1:] == ["}"]:
                self._key_next = True
                yield self._new_line()
            case ",":
                yield Span(", ")
            case ":" if self._closers:
                yield Span(": ")
            case _ if not mark.isspace():
                yield Span(mark)
            case _:
                return

    def _begin_value(self) -> Iterator[Span]:
        """The first member of an object begins a line."""
        first, self._fresh = self._fresh, False
        self._key_next = False
        if first and self._closers[-1] == "}" and self._shown:
            yield self._new_line()

    def _open(self, mark: str) -> None:
        self._closers.append("}" if mark == "{" else "]")
        self._fresh, self._key_next = True, mark == "{"

    def _close(self, mark: str) -> Iterator[Span]:
        empty, self._fresh, self._key_next = self._fresh, False, False
        if self._closers[-1:] != [mark]:  # no JSON
            yield Span(mark)
            return
        self._closers.pop()
        if mark == "}" and self._closers and not empty:
            yield self._new_line()
        if mark == "]" or self._closers:
            yield Span(mark)

    def _new_line(self) -> Span:
        depth = self._closers.count("}") - (self._closers[:1] == ["}"])
        return Span("\n" + _INDENT * depth)
