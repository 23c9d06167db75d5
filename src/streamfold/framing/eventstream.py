"""AWS's binary event stream (``application/vnd.amazon.eventstream``): bytes cut anywhere in, whole messages out.

A message is a prelude (its length, its headers' length, a checksum of both), headers, a payload and a checksum of all
before it. The prelude is checked before its lengths are believed; a fault ends the stream, for no mark tells where the
next message begins. What a header means is known to this module as far as the framing itself names it (events,
exceptions, errors); payloads and providers lie further along.

Source: the decoder of botocore, and 1,641 recorded messages of Bedrock. All numbers are big-endian.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from struct import Struct
from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from streamfold import limits
from streamfold.errors import ChecksumMismatch, FrameTooLarge, FramingError, Malformed, Truncated, UsageError

__all__ = ["EventStreamMessage", "EventStreamParser", "HeaderValue"]

HeaderValue: TypeAlias = bool | int | bytes | str
"""A timestamp is a number (milliseconds since 1970), a UUID its 16 bytes."""

_PRELUDE: Final = Struct(">III")
_LENGTH: Final = Struct(">H")
_SMALLEST: Final = 16  # a prelude and a checksum
_MAX_HEADER_BYTES: Final = 128 * 1024  # what AWS's own decoders refuse beyond
_MAX_PAYLOAD_BYTES: Final = 24 * 1024 * 1024
_KNOWN_BLOCKS: Final = 64  # header blocks that are remembered: a stream has one for each type of its events
_KNOWN_BYTES: Final = 1024  # and how long one may be

_TRUE, _FALSE, _BYTES, _STRING, _UUID = 0, 1, 6, 7, 9
_INTEGERS: Final[Mapping[int, Struct]] = {
    # int8, int16, int32, int64, timestamp
    2: Struct(">b"),
    3: Struct(">h"),
    4: Struct(">i"),
    5: Struct(">q"),
    8: Struct(">q"),
}


_NAMED_BY: Final[Mapping[str, str]] = {"exception": ":exception-type", "error": ":error-code"}


class EventStreamMessage(msgspec.Struct, frozen=True, dict=True):
    """One message.

    Attributes:
        headers: By name, in the order of the wire.
        payload: What they stand above; JSON on all surfaces seen.
    """

    headers: dict[str, HeaderValue]
    payload: bytes = b""

    @cached_property
    def kind(self) -> str:
        """``event``; ``exception``, an error that the service's model lists; ``error``, any other."""
        return self._text(":message-type") or "event"

    @cached_property
    def name(self) -> str | None:
        """The type of the event or exception, or the code of the error; None where the message names none."""
        return self._text(_NAMED_BY.get(self.kind, ":event-type"))

    @cached_property
    def is_failure(self) -> bool:
        """Whether it ends the stream: an exception or an error."""
        return self.kind in _NAMED_BY

    def _text(self, name: str) -> str | None:
        value = self.headers.get(name)
        return value if isinstance(value, str) and value else None


class EventStreamParser:
    """Incremental, bounded parser of AWS's binary framing; does no I/O.

    Feed it bytes cut anywhere, then iterate: it yields each message that is complete and stops when it needs more
    bytes. Messages before a fault are yielded before the fault is raised, so how the bytes were cut never changes the
    outcome. Exceptions and errors are messages too (see :attr:`EventStreamMessage.is_failure`).

    Args:
        max_frame_bytes: Bound of one message, in bytes; it is refused by its prelude, before anything is held.

    Attributes:
        fault: What ended the stream early, else None.
        failure: The exception or error that ended the last take, for the decoder; nothing is read behind it.
    """

    fault: FramingError | None = None
    failure: EventStreamMessage | None = None

    def __init__(self, *, max_frame_bytes: int | None = limits.MAX_FRAME_BYTES) -> None:
        self._limit = sys.maxsize if max_frame_bytes is None else max_frame_bytes
        self._held = bytearray()  # of the message that is not whole yet
        self._wanted = 0  # bytes of it that are worth another look
        self._position = 0  # of its first byte, from the start of the stream
        self._closed = False
        self._ready: deque[EventStreamMessage] = deque()
        # Header blocks that came, and what a message that has them is, its payload left out: a stream has few.
        self._known: dict[bytes, EventStreamMessage] = {}
        # of the last take
        self._names: list[str | None] = []
        self._offsets: list[int] = []

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
        for head, payload, _ in self._messages(bytes(data)):
            self._ready.append(EventStreamMessage(dict(head.headers), payload))

    def close(self) -> None:
        """Declare the end of input: inside a message it is a fault."""
        self._closed = True
        if self._held and self.fault is None:
            self._fail(Truncated("the input ended inside a message", self._position))

    def __iter__(self) -> Iterator[EventStreamMessage]:
        return self

    def __next__(self) -> EventStreamMessage:
        if self._ready:
            return self._ready.popleft()
        if self.fault is not None:
            raise self.fault.with_traceback(None)  # raised again on every call: do not pile tracebacks up
        raise StopIteration

    # -- the decoder's face: the payloads of a read at once -----------------------------------------------------------

    def take(self, data: bytes) -> list[bytes]:
        """Feed, and return the payload of every message that is whole now. What ended the stream is left in ``fault``,
        or in ``failure``, whose payload is the last one."""
        self.release()
        payloads: list[bytes] = []
        if self.failure is not None or self._closed:
            return payloads
        for head, payload, offset in self._messages(data):
            self._names.append(head.name)
            self._offsets.append(offset)
            payloads.append(payload)
            if head.is_failure:
                self.failure, self._held = EventStreamMessage(head.headers, payload), bytearray()
                break
        return payloads

    def begin_at(self, offset: int) -> None:
        """The stream began so many bytes before what is fed first."""
        self._position = offset

    def finish(self, how: str) -> list[bytes]:
        """Declare the end: only a clean one (``"eof"``) can cut a message off."""
        self.release()
        if how == "eof" and self.failure is None:
            self.close()
        self._closed = True
        self._held = bytearray()
        return []

    def name_of(self, k: int) -> str | None:
        """The type of the ``k``-th event of the last take."""
        return self._names[k]

    def offset_of(self, k: int) -> int:
        """Where its message begins, in bytes from the start of the stream."""
        return self._offsets[k]

    def release(self) -> None:
        """Keep nothing of the last :meth:`take`: a long wait may come."""
        self._names, self._offsets = [], []

    # -- the reader ---------------------------------------------------------------------------------------------------

    def _messages(self, data: bytes) -> Iterator[tuple[EventStreamMessage, bytes, int]]:
        """Every message that is whole now: what its headers say, its payload, and where it begins."""
        if self.fault is not None:
            return
        if self._held:
            self._held += data
            if len(self._held) < self._wanted:
                return
            data, self._held = bytes(self._held), bytearray()
        at, start = 0, self._position
        self._wanted = _PRELUDE.size
        while True:
            self._position = start + at
            try:
                found = self._next(data, at)
            except FramingError as fault:
                self._fail(fault)
                return
            if found is None:
                break
            head, payload, at = found
            yield head, payload, self._position
        self._held += data[at:]

    def _next(self, data: bytes, at: int) -> tuple[EventStreamMessage, bytes, int] | None:
        """The message there, if it is whole: what its headers say, its payload, and where it ends.

        Raises:
            FramingError: It is at fault.
        """
        if len(data) - at < _PRELUDE.size:
            return None
        total, header_bytes = self._check_prelude(data, at)
        end = at + total
        if end > len(data):
            self._wanted = total
            return None
        if crc32(data[at : end - 4]) != int.from_bytes(data[end - 4 : end]):
            raise ChecksumMismatch("a message does not match its checksum", self._position)
        body = at + _PRELUDE.size + header_bytes
        block = data[at + _PRELUDE.size : body]
        return self._known.get(block) or self._head(block), data[body : end - 4], end

    def _check_prelude(self, data: bytes, at: int) -> tuple[int, int]:
        """How long the message there is, and its headers.

        Raises:
            FramingError: The prelude is at fault.
        """
        total, header_bytes, checksum = _PRELUDE.unpack_from(data, at)
        if crc32(data[at : at + 8]) != checksum:
            raise ChecksumMismatch("the prelude of a message does not match its checksum", self._position)
        if total - _SMALLEST < header_bytes:
            reason = f"a message of {total} bytes cannot hold {header_bytes} bytes of headers"
            raise Malformed(reason, self._position)
        if total > self._limit:
            raise FrameTooLarge(total, self._limit, self._position)
        if header_bytes > _MAX_HEADER_BYTES:
            raise Malformed(f"{header_bytes} bytes of headers are more than the format allows", self._position)
        if total - header_bytes - _SMALLEST > _MAX_PAYLOAD_BYTES:
            raise Malformed(f"a message of {total} bytes is more than the format allows", self._position)
        return total, header_bytes

    def _head(self, block: bytes) -> EventStreamMessage:
        """What a message with these headers is. Those of most are the ones of a message before, to the byte."""
        head = EventStreamMessage(self._read_headers(block))
        if len(block) <= _KNOWN_BYTES and len(self._known) < _KNOWN_BLOCKS:
            self._known[block] = head
        return head

    def _read_headers(self, block: bytes) -> dict[str, HeaderValue]:
        headers: dict[str, HeaderValue] = {}
        at = 0
        while at < len(block):
            name, at = self._part(block, at + 1, block[at])
            kind, at = self._part(block, at, 1)
            value, at = self._value(block, at, kind[0])
            text = name.decode("utf-8", "replace")
            if text in headers:
                raise Malformed(f"the header {text!r:.80} stands there twice", self._position)
            headers[text] = value
        return headers

    def _value(self, block: bytes, at: int, kind: int) -> tuple[HeaderValue, int]:
        """The value of a header, and where it ends."""
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE, at
        integer = _INTEGERS.get(kind)
        if integer is not None:
            data, at = self._part(block, at, integer.size)
            return int(integer.unpack(data)[0]), at
        if kind == _UUID:
            return self._part(block, at, 16)
        if kind not in (_BYTES, _STRING):
            raise Malformed(f"a header has the type {kind}, which is none", self._position)
        data, at = self._part(block, at, _LENGTH.size)
        data, at = self._part(block, at, _LENGTH.unpack(data)[0])
        return (data if kind == _BYTES else data.decode("utf-8", "replace")), at

    def _part(self, block: bytes, at: int, size: int) -> tuple[bytes, int]:
        """So many bytes of the headers, and where they end."""
        end = at + size
        if end > len(block):
            raise Malformed("a header ends beyond the headers", self._position)
        return block[at:end], end

    def _fail(self, fault: FramingError) -> None:
        self.fault = fault
        self._held = bytearray()
        self._known = {}
