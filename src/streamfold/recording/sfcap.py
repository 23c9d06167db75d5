"""``.sfcap``: one exchange as it came over the network, read by read, byte for byte, each with its time.

JSON Lines. The first line holds the heads of request and response; then a line for each read; the last line says how it
ended, and what the bytes must hash to. A file without a last line is one whose recorder died: what it holds counts.

    {"sfcap":1,"request":{"method":"POST","url":"https://…","headers":[["accept","*/*"]]},"response":{"status":200,…}}
    {"t":312500000,"text":"data: {\\"id\\":…}\\n\\n"}
    {"t":313000000,"base64":"/w=="}
    {"t":901200000,"end":"eof","bytes":5120,"reads":17,"sha256":"…"}

``t``: nanoseconds since the request was sent. A read that is valid UTF-8 stands as text, any other as base64: either
way it is the bytes that came. A message of a WebSocket is a read with ``op`` (``text`` or ``binary``), and with
``sent`` where the client sent it. Members that a reader does not know are passed over.

Knows lines and bytes; knows neither files nor clocks nor what the bytes mean.
"""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from streamfold import limits
from streamfold.errors import FramingError, Malformed, UsageError
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.recording._redact import redacted_command, redacted_fault, redacted_headers, redacted_url

__all__ = [
    "LONGEST",
    "VERSION",
    "End",
    "EndHow",
    "Head",
    "Headers",
    "Nanoseconds",
    "Read",
    "RecordingReader",
    "RecordingWriter",
    "RequestHead",
    "ResponseHead",
    "redacted",
]

VERSION: Final = 1

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values in the order of the wire; a name may stand more than once."""

EndHow: TypeAlias = Literal["eof", "cut", "cancel"]
"""``eof``: the body ended; ``cut``: the transport failed; ``cancel``: the client left."""

LONGEST: Final = 2**63 - 1
"""Nanoseconds of a recording at most: three centuries, which every reckoning can hold."""

Nanoseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LONGEST)]


class RequestHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was asked, and where.

    Attributes:
        method: ``POST``, ``GET``, ….
        url: Secrets left out, unless the recorder was told to keep them.
        headers: So are they.
        body: The body as text, where the recorder was told to keep it.
    """

    method: str
    url: str
    headers: Headers = ()
    body: str | None = None


class ResponseHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the server said before the body.

    Attributes:
        status: 200, 429, …; 101 for a WebSocket.
        headers: Names and values.
        http_version: ``HTTP/1.1``, ``HTTP/2``, where known.
        t: When it came, in nanoseconds since the request.
    """

    status: int
    headers: Headers = ()
    http_version: str | None = None
    t: Nanoseconds = 0

    def header(self, name: str) -> str | None:
        """The first header of this name, upper and lower case alike."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line.

    Attributes:
        request: None where only the answer was seen (a pipe).
        response: So is this.
        provider: Whose stream it is, where whoever recorded it knew.
        started: When the request was sent, RFC 3339 with an offset.
        command: What was run, for a recording of a command's output; secrets are left out.
    """

    request: RequestHead | None = None
    response: ResponseHead | None = None
    provider: str | None = None
    started: str | None = None
    command: tuple[str, ...] | None = None


class Read(msgspec.Struct, frozen=True):
    """What one read of the network brought.

    Attributes:
        t: Nanoseconds since the request was sent.
        data: The bytes.
        op: ``text`` or ``binary`` for a message of a WebSocket, None for bytes of an HTTP body.
        sent: Whether it is a message that the client sent.
    """

    t: int
    data: bytes
    op: Literal["text", "binary"] | None = None
    sent: bool = False


class End(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last line.

    Attributes:
        t: Nanoseconds since the request was sent.
        end: See :data:`EndHow`.
        bytes: How many were received.
        reads: In how many reads.
        sha256: Of all the bytes that were received, in hexadecimal.
        error: What failed, as its own words, for ``cut``.
        code: The close code of a WebSocket.
        reason: And what was said with it.
    """

    t: Nanoseconds
    end: EndHow
    bytes: int
    reads: int
    sha256: str
    error: str | None = None
    code: int | None = None
    reason: str | None = None


class _FirstLine(msgspec.Struct):
    sfcap: Annotated[int, msgspec.Meta(ge=1)]


class _Line(msgspec.Struct):
    t: Nanoseconds
    text: str | None = None
    base64: str | None = None
    op: Literal["text", "binary"] | None = None
    sent: bool = False
    end: EndHow | None = None


_FIRST: Final = msgspec.json.Decoder(_FirstLine)
_HEAD: Final = msgspec.json.Decoder(Head)
_LINE: Final = msgspec.json.Decoder(_Line)
_END: Final = msgspec.json.Decoder(End)
_FAULTS: Final = (msgspec.DecodeError, ValueError, RecursionError)
"""What a line that is none of ours makes of being read; the last, one that nests too deep in what is passed over."""


class RecordingWriter:
    """What happens, in order, to the lines that say it; each ends in a line feed and can be written at once.

    Args:
        redact: Whether headers and addresses go in without their secrets. What the body holds is never changed.
    """

    def __init__(self, *, redact: bool = True) -> None:
        self._redact = redact
        self._sent: Headers = ()
        self._hash = hashlib.sha256()
        self._bytes = self._reads = 0
        self._state: Literal["new", "open", "ended"] = "new"

    def head(self, head: Head) -> bytes:
        """The first line.

        Raises:
            UsageError: There was one already.
        """
        if self._state != "new":
            raise UsageError("a recording has one head, and begins with it")
        self._state = "open"
        if self._redact:
            self._sent = () if head.request is None else head.request.headers
            head = redacted(head)
        members = msgspec.json.encode(head)[1:]
        return b'{"sfcap":%d%b%b\n' % (VERSION, b"" if members == b"}" else b",", members)

    def read(self, t: int, data: bytes, *, op: Literal["text", "binary"] | None = None, sent: bool = False) -> bytes:
        """The line of one read, or of a message of a WebSocket.

        Args:
            t: When, in nanoseconds since the request.
            data: What it brought.
            op: The kind of the message, None for bytes of a body.
            sent: Whether the client sent it.

        Raises:
            UsageError: No head came before it, or the end did.
        """
        self._ask_open()
        if not sent:
            self._hash.update(data)
            self._bytes += len(data)
            self._reads += 1
        line: dict[str, Any] = {"t": t, **_told(data)}
        if op is not None:
            line["op"] = op
        if sent:
            line["sent"] = True
        return msgspec.json.encode(line) + b"\n"

    def end(
        self,
        t: int,
        how: EndHow,
        *,
        error: str | None = None,
        code: int | None = None,
        reason: str | None = None,
    ) -> bytes:
        """The last line.

        Raises:
            UsageError: No head came before it, or the end did.
        """
        self._ask_open()
        self._state = "ended"
        if self._redact and error is not None:
            error = redacted_fault(error, self._sent)
        end = End(t, how, self._bytes, self._reads, self._hash.hexdigest(), error, code, reason)
        return msgspec.json.encode(end) + b"\n"

    def _ask_open(self) -> None:
        if self._state != "open":
            raise UsageError(f"a recording that is {self._state} takes no reads")


def redacted(head: Head) -> Head:
    """The same head without the secrets in its headers, addresses and command."""
    request, response = head.request, head.response
    if request is not None:
        request = msgspec.structs.replace(
            request, url=redacted_url(request.url), headers=redacted_headers(request.headers)
        )
    if response is not None:
        response = msgspec.structs.replace(response, headers=redacted_headers(response.headers))
    command = None if head.command is None else redacted_command(head.command)
    return msgspec.structs.replace(head, request=request, response=response, command=command)


def _told(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


class RecordingReader:
    """Bytes of a recording in, cut anywhere; its head and its reads out. Does no I/O.

    Feed it, then iterate: it yields each read that is whole and stops when it needs more. Reads before a fault are
    yielded before the fault is raised.

    Args:
        max_line_bytes: Bound of one line, in bytes; None is no limit.

    Attributes:
        head: The first line, None until it came.
        end: The last line, None until it came, and where the recorder died.
        intact: Whether the bytes are those that were recorded: None until the end tells.
    """

    def __init__(self, *, max_line_bytes: int | None = 4 * limits.MAX_FRAME_BYTES) -> None:
        self._lines = JSONLinesParser(max_frame_bytes=max_line_bytes)
        self._hash = hashlib.sha256()
        self._ready: deque[tuple[int, bytes]] = deque()
        self._fault: FramingError | None = None
        self.head: Head | None = None
        self.end: End | None = None
        self.intact: bool | None = None

    def feed(self, data: bytes) -> None:
        """Take in the next bytes of the file."""
        lines = self._lines.take(data)
        self._ready.extend((self._lines.offset_of(k), line) for k, line in enumerate(lines))

    def close(self) -> None:
        """Declare the end of the file. A last line that was cut off in the middle is passed over: the recorder died."""
        tail = self._lines.finish("eof")
        if tail and _is_whole(tail[0]):
            self._ready.append((self._lines.offset_of(0), tail[0]))

    def __iter__(self) -> Iterator[Read]:
        return self

    def __next__(self) -> Read:
        if self._fault is not None:
            raise self._fault.with_traceback(None)
        while self._ready:
            try:
                read = self._read(*self._ready.popleft())
            except FramingError as fault:
                self._fault = fault
                raise
            if read is not None:
                return read
        if self._lines.fault is not None:
            self._fault = self._lines.fault
            raise self._fault
        raise StopIteration

    def _read(self, offset: int, line: bytes) -> Read | None:
        if self.head is None:
            self.head = _head_of(line, offset)
            return None
        if self.end is not None:
            raise Malformed("something follows the last line of the recording", offset)
        try:
            told = _LINE.decode(line)
            if told.end is not None:
                self.end = _END.decode(line)
                self.intact = self.end.sha256 == self._hash.hexdigest()
                return None
            data = _bytes_of(told)
        except _FAULTS:
            raise Malformed("this line is none of a recording", offset) from None
        if not told.sent:
            self._hash.update(data)
        return Read(told.t, data, told.op, told.sent)


def _head_of(line: bytes, offset: int) -> Head:
    try:
        version = _FIRST.decode(line).sfcap
        if version > VERSION:
            raise Malformed(f"the recording is of version {version}, this reader knows {VERSION}", offset)
        return _HEAD.decode(line)
    except _FAULTS:
        raise Malformed("the first line is no head of a recording", offset) from None


def _bytes_of(line: _Line) -> bytes:
    """What a line holds. ``ValueError``: it holds nothing, or no base64."""
    if line.text is not None:
        return line.text.encode()
    if line.base64 is not None:
        return base64.b64decode(line.base64, validate=True)
    raise ValueError


def _is_whole(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except _FAULTS:
        return False
    return True
