"""Where in a growing text a byte of its UTF-8 form stands: Google counts in bytes, the vocabulary in code points."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from streamfold.pieces import Pieces

__all__ = ["ByteOffsets"]

_STRIDE: Final = 1024  # code points in a stretch: what one look-up reads at most


class ByteOffsets:
    """Of the text of one block, or of several that are read as one.

    Linear: :meth:`follow` reads what is new, a look-up one stretch of the text.
    """

    def __init__(self) -> None:
        self._stretches: list[bytes] = []
        self._bytes, self._points = [0], [0]  # where each stretch begins, and the last one ends
        self._full = self._in_next = 0  # joined texts of the block that were read wholly; letters of what comes after

    @property
    def length(self) -> int:
        """Of what was read so far, in code points."""
        return self._points[-1]

    @property
    def size(self) -> int:
        """Of what was read so far, in bytes."""
        return self._bytes[-1]

    def follow(self, pieces: Pieces) -> None:
        """Read what has come of the block since the last time."""
        for text in pieces.full[self._full :]:
            self._read(text[self._in_next :])
            self._full, self._in_next = self._full + 1, 0
        text = "".join(pieces.tail)
        self._read(text[self._in_next :])
        self._in_next = len(text)

    def turn(self) -> None:
        """What is followed next is another block, whose text comes after this one's."""
        self._full = self._in_next = 0

    def code_point(self, offset: int) -> int | None:
        """The code point that begins at this byte; None inside of one, and beyond the text."""
        if not 0 <= offset <= self._bytes[-1]:
            return None
        if self._bytes[-1] == self._points[-1]:  # all of it is ASCII
            return offset
        number = min(bisect_right(self._bytes, offset), len(self._bytes) - 1) - 1
        if number < 0:  # there is no text yet
            return 0
        data, at, begin = self._stretches[number], offset - self._bytes[number], self._points[number]
        if len(data) == self._points[number + 1] - begin:  # all of the stretch is
            return begin + at
        if at < len(data) and data[at] & 0xC0 == 0x80:
            return None
        return begin + len(data[:at].decode())

    def has(self, words: str, start: int, end: int) -> bool:
        """Whether these are the words from one byte to another."""
        first = bisect_right(self._bytes, start) - 1
        last = bisect_right(self._bytes, end)
        begin = self._bytes[first]
        stretches = self._stretches[first:last]
        data = stretches[0] if len(stretches) == 1 else b"".join(stretches)
        return data[start - begin : end - begin] == words.encode()

    def _read(self, text: str) -> None:
        for at in range(0, len(text), _STRIDE):
            stretch = text[at : at + _STRIDE]
            data = stretch.encode()
            self._stretches.append(data)
            self._bytes.append(self._bytes[-1] + len(data))
            self._points.append(self._points[-1] + len(stretch))
