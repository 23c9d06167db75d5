"""Recorded sessions: lines of ``{"dir": "in"|"out"|"close", …}``, each a message of a WebSocket or its end.

Tells whether bytes are one, and whose it is, by its first lines. Knows neither files nor what the messages mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, Literal

import msgspec

from streamfold.errors import UsageError
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.providers._sessions import told_by

__all__ = ["LINE", "LOOKED_AT", "Line", "provider_of", "told_provider", "told_session"]

_FIRST: Final = re.compile(rb'\s*\{\s*"dir"\s*:', re.ASCII)
_ENOUGH: Final = 64  # bytes that tell whether a line begins like that
_NO_CONTENT: Final = b"\xef\xbb\xbf \t\r\n"
LOOKED_AT: Final = 8
"""Lines, to tell whose session it is."""


class Line(msgspec.Struct):
    """A message, or the end of a connection.

    Attributes:
        dir: ``in``: from the server; ``out``: from the client; ``close``.
        frame: The message, as its JSON text.
        code: The close code.
        reason: What was said with it.
    """

    dir: Literal["in", "out", "close"]
    frame: msgspec.Raw = msgspec.Raw(b"null")
    code: int | None = None
    reason: str | None = ""


LINE: Final = msgspec.json.Decoder(Line)
"""Reads a line."""
_ANY: Final = msgspec.json.Decoder()


def told_session(chunks: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Whether the bytes begin as a recorded session does, and the chunks that this was read from."""
    head: list[bytes] = []
    begin = b""
    for chunk in chunks:
        head.append(chunk)
        begin = (begin + chunk).lstrip(_NO_CONTENT)
        if len(begin) >= _ENOUGH or begin[:1] not in (b"", b"{"):
            break
    return _FIRST.match(begin) is not None, chain(head, chunks)


def told_provider(chunks: Iterator[bytes], provider: str) -> tuple[str, Iterator[bytes]]:
    """Whose session a recording is, and the chunks that this was read from.

    Raises:
        UsageError: ``provider`` is ``auto``, and the first lines do not tell.
    """
    if provider != "auto":
        return provider, chunks
    parser, head, lines = JSONLinesParser(), list[bytes](), list[Line]()
    for chunk in chunks:
        head.append(chunk)
        lines += map(_line_of, parser.take(chunk))
        if len(lines) >= LOOKED_AT or parser.fault is not None:
            break
    lines += map(_line_of, parser.finish("eof"))
    return provider_of(lines[:LOOKED_AT]), chain(head, chunks)


def _line_of(text: bytes) -> Line:
    """A line, or one that says nothing where it is none: the linter tells that."""
    try:
        return LINE.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return Line("close")


def provider_of(lines: Iterable[Line]) -> str:
    """Whose session these first lines are of.

    Raises:
        UsageError: They do not tell.
    """
    told = [told for line in lines if line.dir != "close" and (told := told_by(_frame_of(line))) is not None]
    for one in sorted(told, key=lambda one: not one.sure):
        return one.provider
    raise UsageError("the first messages do not tell whose session this is: name the provider")


def _frame_of(line: Line) -> Any:
    try:
        return _ANY.decode(line.frame)
    except (msgspec.DecodeError, RecursionError):  # a binary message: audio, say
        return None
