"""One recorded exchange as a value, which every format of recordings is made from and read into.

And the plainest of those: the body alone; and sessions of WebSockets as lines of ``{"dir": "in", "frame": {…}}``, with
``out`` for what the client sent and ``close`` for the end of a connection. A message that is no JSON is a string; one
that is no text either is base64, with ``"op": "binary"``. Knows neither files nor clocks.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from streamfold.errors import Malformed
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.recording._packing import unpacked
from streamfold.recording._redact import redacted_fault
from streamfold.recording.sfcap import End, EndHow, Head, Nanoseconds, Read, RecordingWriter, redacted

__all__ = ["Ending", "Exchange", "body_of", "packed_by", "session_lines", "sessions_of", "without_secrets", "written"]


class Ending(NamedTuple):
    """How an exchange ended; see :class:`streamfold.recording.sfcap.End`."""

    t: int
    how: EndHow
    error: str | None = None
    code: int | None = None
    reason: str | None = None


class Exchange(NamedTuple):
    """A request, what came of it, and when.

    Attributes:
        head: What was asked and answered.
        reads: What came; of a session also what was sent.
        end: How it ended, None where nobody knows.
    """

    head: Head
    reads: tuple[Read, ...]
    end: Ending | None

    @property
    def is_session(self) -> bool:
        """Whether its reads are messages of a WebSocket."""
        return any(read.op is not None for read in self.reads)


def written(exchange: Exchange, *, redact: bool = True) -> bytes:
    """The exchange as a recording, ``.sfcap``."""
    writer = RecordingWriter(redact=redact)
    lines = [writer.head(exchange.head)]
    lines += [writer.read(read.t, read.data, op=read.op, sent=read.sent) for read in exchange.reads]
    if (end := exchange.end) is not None:
        lines.append(writer.end(end.t, end.how, error=end.error, code=end.code, reason=end.reason))
    return b"".join(lines)


def without_secrets(exchange: Exchange) -> Exchange:
    """The same exchange, with neither keys in its heads nor in what is said of its end."""
    head, end = exchange.head, exchange.end
    if end is not None and end.error is not None:
        end = end._replace(error=redacted_fault(end.error, () if head.request is None else head.request.headers))
    return exchange._replace(head=redacted(head), end=end)


def packed_by(head: Head) -> str | None:
    """The ``Content-Encoding`` of the response."""
    return None if head.response is None else head.response.header("content-encoding")


def body_of(exchange: Exchange) -> bytes:
    """What was received, in one piece, unpacked.

    Raises:
        Malformed: It is not packed as its head says.
        UsageError: It is packed in a way that cannot be undone here.
    """
    return b"".join(unpacked((read.data for read in exchange.reads if not read.sent), packed_by(exchange.head)))


# -- sessions ---------------------------------------------------------------------------------------------------------


class _Line(msgspec.Struct):
    dir: Literal["in", "out", "close"]
    frame: msgspec.Raw = msgspec.Raw(b"null")
    t: Nanoseconds = 0
    op: Literal["text", "binary"] = "text"
    code: int | None = None
    reason: str | None = None


_LINE: Final = msgspec.json.Decoder(_Line)
_TEXT: Final = msgspec.json.Decoder(str)
_NO_FRAME: Final = 1006  # RFC 6455, 7.4.1: there was no close frame
_LINE_ENDS: Final = bytes.maketrans(b"\r\n", b"  ")
_FAULTS: Final = (msgspec.DecodeError, ValueError, RecursionError)


def session_lines(reads: Iterable[Read], end: End | Ending | None = None) -> Iterator[bytes]:
    """A session as lines; how it ended is asked when the reads are out, where no ``end`` is given."""
    for read in reads:
        members: dict[str, Any] = {"dir": "out" if read.sent else "in", "t": read.t}
        if read.op == "binary":
            members["op"] = "binary"
        yield b'%b,"frame":%b}\n' % (msgspec.json.encode(members)[:-1], _frame_of(read))
    if end is not None:
        yield close_line(end)


def close_line(end: End | Ending) -> bytes:
    """The line of the end of a connection; one that nobody closed has the code that stands for that."""
    how = end.how if isinstance(end, Ending) else end.end
    code = _NO_FRAME if end.code is None and how == "cut" else end.code
    members = {"dir": "close", "t": end.t, "code": code, "reason": end.reason}
    return msgspec.json.encode({name: value for name, value in members.items() if value is not None}) + b"\n"


def _frame_of(read: Read) -> bytes:
    """The message as a JSON value on one line: line ends between the tokens of JSON are blanks like others."""
    data = read.data
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        is_value = not data.decode().lstrip().startswith('"')  # a string stands for a message that is none
    except _FAULTS:
        is_value = False
    if not is_value:
        return msgspec.json.encode(_as_text(read))
    return data.translate(_LINE_ENDS)


def _as_text(read: Read) -> str:
    return base64.b64encode(read.data).decode() if read.op == "binary" else read.data.decode("utf-8", "replace")


def sessions_of(data: bytes) -> list[Exchange]:
    """The connections of a recorded session, one exchange each.

    Raises:
        FramingError: A line is none of a recorded session.
    """
    parser = JSONLinesParser(max_frame_bytes=None)
    lines = [*parser.take(data)]
    offsets = [parser.offset_of(k) for k in range(len(lines))]
    if tail := parser.finish("eof"):
        lines += tail
        offsets.append(parser.offset_of(0))
    found: list[Exchange] = []
    reads: list[Read] = []
    for text, offset in zip(lines, offsets, strict=True):
        try:
            line = _LINE.decode(text)
            read = Read(line.t, _message_of(line), line.op, line.dir == "out")
        except _FAULTS:
            raise Malformed("this line is none of a recorded session", offset) from None
        if line.dir == "close":
            how: EndHow = "cut" if line.code == _NO_FRAME else "eof"
            found.append(Exchange(Head(), tuple(reads), Ending(line.t, how, None, line.code, line.reason)))
            reads = []
        else:
            reads.append(read)
    if reads or not found:
        found.append(Exchange(Head(), tuple(reads), None))
    return found


def _message_of(line: _Line) -> bytes:
    frame = bytes(line.frame)
    if not frame.startswith(b'"'):
        return frame
    text = _TEXT.decode(frame)
    return base64.b64decode(text, validate=True) if line.op == "binary" else text.encode()
