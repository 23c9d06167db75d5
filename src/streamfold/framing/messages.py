"""Messages that came whole: each read is one, as a WebSocket or a log hands it over. Nothing is cut or joined.

A message is bytes, text or an object that somebody has decoded already.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec

from streamfold import limits
from streamfold.errors import FrameTooLarge, FramingError, UsageError

__all__ = ["WholeMessages"]


class WholeMessages:
    """The parser's part where there is nothing to parse: it holds nothing, and keeps to the bound.

    Args:
        max_frame_bytes: Bound of one message that is bytes or text, in bytes.

    Attributes:
        fault: The message that was too large, else None.
    """

    fault: FramingError | None = None

    def __init__(self, *, max_frame_bytes: int | None = limits.MAX_FRAME_BYTES) -> None:
        self._limit = sys.maxsize if max_frame_bytes is None else max_frame_bytes
        self._ready: deque[Any] = deque()
        self._start = self._next = 0  # of the last message and the one to come, in bytes of all that were text

    def feed(self, data: Any) -> None:
        """Take in the next message.

        Raises:
            UsageError: It is neither bytes, text nor an object.
        """
        self._ready.extend(self.take(data))

    def close(self) -> None:
        """Declare the end of input, which completes nothing."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """The text of the next message.

        Raises:
            UsageError: It is an object that JSON has no words for.
        """
        if self._ready:
            return _text_of(self._ready.popleft())
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        raise StopIteration

    def take(self, data: Any) -> list[Any]:
        """The message, if it is one that anybody could read; blank ones are passed over.

        Raises:
            UsageError: It is neither bytes, text nor an object.
        """
        if self.fault is not None:
            return []
        if isinstance(data, dict):
            return [data]
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        elif isinstance(data, bytearray | memoryview):
            data = bytes(data)
        elif not isinstance(data, bytes):
            raise UsageError(f"a message is bytes, text or an object, not {type(data).__name__}")
        self._start, self._next = self._next, self._next + len(data)
        if len(data) > self._limit:
            self.fault = FrameTooLarge(len(data), self._limit, self._start)
            return []
        return [data] if data.strip() else []

    def begin_at(self, offset: int) -> None:
        """Messages have no place in a stream of bytes."""

    def finish(self, how: str) -> list[Any]:
        """Declare the end, which completes nothing."""
        return []

    def offset_of(self, k: int) -> int:
        """Where the last message begins, in bytes of all messages that came as bytes or text."""
        return self._start

    def release(self) -> None:
        """There is nothing to let go."""


def _text_of(message: Any) -> str:
    if isinstance(message, bytes):
        return message.decode("utf-8", "replace")
    try:
        return msgspec.json.encode(message).decode()
    except (TypeError, ValueError, RecursionError):
        raise UsageError("the message is an object that JSON has no words for") from None
