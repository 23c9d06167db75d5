"""Every exception that streamfold raises on its own account, as one tree.

Nothing here is raised for what a provider sent once an answer is being folded: that is an ``error`` event. These are
for the framing parsers used alone, for misuse, for connections that are not to be had, and for callers who ask
(``Snapshot.raise_for_error``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from streamfold.events import ErrorEvent

__all__ = [
    "ChecksumMismatch",
    "Empty",
    "FrameTooLarge",
    "FramingError",
    "LinkError",
    "Malformed",
    "NotJSONArray",
    "StreamError",
    "StreamfoldError",
    "TooDeep",
    "TrailingData",
    "Truncated",
    "UsageError",
]


class StreamfoldError(Exception):
    """The root: ``except StreamfoldError`` catches everything of ours and nothing else."""


class UsageError(StreamfoldError, ValueError):
    """The library was called in a way that cannot work: an unknown provider, text where bytes are needed."""


class LinkError(StreamfoldError):
    """A connection of a live session could not be made, or is gone. What the WebSocket library raised is its cause.

    Attributes:
        status: Of the HTTP answer that refused the connection, or the close code; None where there was neither.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[LinkError], tuple[str, int | None]]:
        return (type(self), (str(self), self.status))


class StreamError(StreamfoldError):
    """A stream ended in a fatal ``error`` event and the caller asked for an exception.

    Attributes:
        event: The fatal event, with kind, code, status and message.
    """

    def __init__(self, event: ErrorEvent) -> None:
        super().__init__(
            f"{event.kind}: {event.message}" if event.code is None else f"{event.kind} {event.code}: {event.message}"
        )
        self.event = event

    def __reduce__(self) -> tuple[type[StreamError], tuple[ErrorEvent]]:
        return (type(self), (self.event,))


class FramingError(StreamfoldError):
    """The bytes cannot be cut into frames. The parser that raised it is finished.

    Attributes:
        offset: Where the frame at fault begins, in bytes from the start of the stream.
        code: One word for programs, the same for every instance of a class.
    """

    code: ClassVar[str] = "framing"
    offset: int


class FrameTooLarge(FramingError):
    """One frame outgrew its bound before it ended.

    Attributes:
        held: Bytes held for the unfinished frame when the bound was passed.
        limit: The bound, in bytes.
    """

    code: ClassVar[str] = "too_large"

    def __init__(self, held: int, limit: int, offset: int) -> None:
        super().__init__(f"the frame at byte {offset} holds {held} bytes, more than the limit of {limit} bytes")
        self.held, self.limit, self.offset = held, limit, offset

    def __reduce__(self) -> tuple[type[FrameTooLarge], tuple[int, int, int]]:
        return (type(self), (self.held, self.limit, self.offset))


class TooDeep(FramingError):
    """One JSON value nests more levels than its bound.

    Attributes:
        limit: The bound, in levels of arrays and objects.
    """

    code: ClassVar[str] = "too_deep"

    def __init__(self, limit: int, offset: int) -> None:
        super().__init__(f"the JSON value at byte {offset} nests more than {limit} levels")
        self.limit, self.offset = limit, offset

    def __reduce__(self) -> tuple[type[TooDeep], tuple[int, int]]:
        return (type(self), (self.limit, self.offset))


class _Located(FramingError):
    """A fault that a sentence and a place describe."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"{reason} (at byte {offset})")
        self.reason, self.offset = reason, offset

    def __reduce__(self) -> tuple[type[_Located], tuple[str, int]]:
        return (type(self), (self.reason, self.offset))


class Malformed(_Located):
    """The bytes break the grammar of their framing."""

    code: ClassVar[str] = "malformed"


class ChecksumMismatch(Malformed):
    """The bytes of a message are not those that were sent: its checksum says so."""

    code: ClassVar[str] = "checksum"


class TrailingData(Malformed):
    """Something other than white space follows the end of the JSON."""

    code: ClassVar[str] = "trailing_data"


class NotJSONArray(Malformed):
    """The first byte can start neither a JSON array nor an object. ``reason`` says what it looks like instead."""

    code: ClassVar[str] = "not_json_array"


class Truncated(_Located):
    """The bytes ended inside a frame."""

    code: ClassVar[str] = "truncated"


class Empty(Truncated):
    """The bytes ended before anything but white space came."""

    code: ClassVar[str] = "empty"
