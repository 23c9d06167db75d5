"""Newline-delimited JSON: bytes cut anywhere in, whole lines out (Ollama's own API, logs of payloads).

A line ends in LF or CRLF; blank lines are passed over, the last line needs no end. Whether a line is JSON is asked
further along: this module knows line ends and nothing else.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Final

from streamfold import limits
from streamfold.errors import FrameTooLarge, FramingError, UsageError

__all__ = ["JSONLinesParser"]

_BOM: Final = b"\xef\xbb\xbf"
_BLANKS: Final = b" \t\r"  # around a line; the CR of its end among them


class JSONLinesParser:
    """Incremental, bounded parser of newline-delimited JSON; does no I/O.

    Feed it bytes cut anywhere, then iterate: it yields the text of each line that is complete and stops when it needs
    more bytes. Lines before a fault are yielded before the fault is raised, so how the bytes were cut never changes
    the outcome.

    Args:
        max_frame_bytes: Bound of one line, its end not counted, in bytes.

    Attributes:
        fault: What ended the stream early, else None.
        tail_incomplete: The last line was closed by the end of input.
    """

    fault: FramingError | None = None
    tail_incomplete = False

    def __init__(self, *, max_frame_bytes: int | None = limits.MAX_FRAME_BYTES) -> None:
        self._limit = sys.maxsize - 1 if max_frame_bytes is None else max_frame_bytes
        self._held = bytearray()  # of the line that is open
        self._start = 0  # where it begins, in bytes from the start of the stream
        self._closed = False
        self._ready: deque[bytes] = deque()
        self._offsets: list[int] = []  # of the last take

    # -- the public face: feed, iterate, close ------------------------------------------------------------------------

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take in the next bytes, however they were cut.

        Raises:
            UsageError: ``data`` is no bytes, or the parser is closed.
        """
        if self._closed:
            raise UsageError("the parser is closed")
        if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"feed takes bytes, not {type(data).__name__}")
        self._ready.extend(self.take(bytes(data)))

    def close(self) -> None:
        """Declare the end of input, which ends the line that is open."""
        self._ready.extend(self.finish("eof"))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._ready:
            return self._ready.popleft().decode("utf-8", "replace")
        if self.fault is not None:
            raise self.fault.with_traceback(None)  # raised again on every call: do not pile tracebacks up
        raise StopIteration

    # -- the decoder's face: all lines of a read at once --------------------------------------------------------------

    def take(self, data: bytes) -> list[bytes]:
        """Feed, and return every line that is whole now. A fault is left in ``fault``, never raised."""
        self._offsets = []
        lines: list[bytes] = []
        if self.fault is not None or self._closed:
            return lines
        *whole, rest = data.split(b"\n")
        for piece in whole:
            if not self._hold(piece):
                return lines
            size = len(self._held) + 1
            self._let_go(lines)
            self._start += size
        self._hold(rest)
        return lines

    def begin_at(self, offset: int) -> None:
        """The stream began so many bytes before what is fed first: nothing but blanks, and perhaps its mark."""
        self._start = offset

    def finish(self, how: str) -> list[bytes]:
        """Declare the end: ``"eof"`` ends the line that is open, ``"cut"`` and ``"cancel"`` drop it."""
        self._offsets = []
        lines: list[bytes] = []
        if how == "eof" and not self._closed:
            self._let_go(lines)
            self.tail_incomplete = bool(lines)
        self._closed = True
        self._held = bytearray()
        return lines

    def offset_of(self, k: int) -> int:
        """Where the ``k``-th line of the last take or finish begins, in bytes from the start of the stream."""
        return self._offsets[k]

    def release(self) -> None:
        """Keep nothing of the last :meth:`take`: a long wait may come."""
        self._offsets = []

    # -- the reader ---------------------------------------------------------------------------------------------------

    def _hold(self, piece: bytes) -> bool:
        """More of the line that is open; whether it stays within its bound, which the CR of its end does not count to.

        The byte beyond the bound may be that CR, so it is held until the next one shows.
        """
        self._held += piece
        size = len(self._held)
        if size <= self._limit or (size == self._limit + 1 and self._held.endswith(b"\r")):
            return True
        self.fault = FrameTooLarge(self._limit + 1, self._limit, self._start)
        self._held = bytearray()
        return False

    def _let_go(self, lines: list[bytes]) -> None:
        """The line that is open is whole: it is one of the lines, unless it is blank."""
        line = bytes(self._held)
        self._held = bytearray()
        if self._start == 0:
            line = line.removeprefix(_BOM)
        line = line.strip(_BLANKS)
        if line:
            lines.append(line)
            self._offsets.append(self._start)
