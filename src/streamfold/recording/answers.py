"""Recordings as they are replayed: the reads of an answer and where its events end; the messages of a session.

Bytes in, values out. Tells whose a recording is: by the address that was asked, or by what the bytes are. Does no I/O.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from streamfold import limits
from streamfold.decoder import BY_FIRST_BYTE, StreamDecoder
from streamfold.errors import UsageError
from streamfold.events import Start
from streamfold.framing.eventstream import EventStreamParser
from streamfold.framing.json_array import JSONArrayStreamParser
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.framing.sse import SSEParser
from streamfold.recording._redact import REDACTED
from streamfold.recording.sessions import LINE, LOOKED_AT, Line, provider_of, told_session
from streamfold.recording.sfcap import End, Head, Headers, Read, ResponseHead
from streamfold.recording.surfaces import ENDPOINTS, asked, session_surfaces

__all__ = ["Message", "Part", "RecordedAnswer", "Sitting", "after", "as_array", "as_events", "from_body", "from_reads"]

_DECODE: Final = msgspec.json.Decoder().decode
_NO_CONTENT: Final = b"\xef\xbb\xbf \t\r\n"
_SURFACES: Final = frozenset(endpoint.surface for endpoint in ENDPOINTS)


# -- events of a body -------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """One event of a body.

    Attributes:
        end: Where it is over, in bytes from the start of the body.
        payload: What it holds, without its framing.
    """

    end: int
    payload: bytes

    @property
    def decoded(self) -> Any:
        """The payload as JSON; None where it is none."""
        try:
            return _DECODE(self.payload)
        except (msgspec.DecodeError, RecursionError):
            return None


def _sse(body: bytes) -> Iterator[Part]:
    parser = SSEParser(max_frame_bytes=None, max_residue_bytes=None)
    end, bare = 0, list[bytes]()
    for line in body.splitlines(keepends=True):  # where a frame can end; comments alone are none
        end += len(line)
        payloads = parser.take(line)
        bare += [stray.line for stray in parser.strays]
        if payloads or line in _BLANK_LINES:
            yield from _whole(payloads, bare, end)
            bare = []
    payloads = parser.finish("eof")  # the last may be not whole, or lack its blank line alone
    yield from _whole(payloads, [*bare, *(stray.line for stray in parser.strays)], end)


_BLANK_LINES: Final = (b"\n", b"\r\n", b"\r")


def _whole(payloads: list[bytes], bare: list[bytes], end: int) -> Iterator[Part]:
    """A frame that is whole; or what stands for one: Gemini's errors in mid-stream are JSON without a field."""
    if payloads or (bare and bare[0].lstrip().startswith(b"{")):
        yield Part(end, payloads[0] if payloads else b"\n".join(bare).strip())


def _json_array(body: bytes) -> Iterator[Part]:
    parser = JSONArrayStreamParser(max_frame_bytes=None, max_depth=limits.MAX_DEPTH)
    for k, item in enumerate(parser.take(body)):
        yield Part(parser.offset_of(k) + len(item), item)


def _jsonl(body: bytes) -> Iterator[Part]:
    parser = JSONLinesParser(max_frame_bytes=None)
    end = 0
    for line in body.splitlines(keepends=True):
        end += len(line)
        yield from (Part(end, text) for text in parser.take(line))
    yield from (Part(end, text) for text in parser.finish("eof"))


def _eventstream(body: bytes) -> Iterator[Part]:
    parser = EventStreamParser(max_frame_bytes=None)
    for k, payload in enumerate(parser.take(body)):
        begin = parser.offset_of(k)
        yield Part(begin + int.from_bytes(body[begin : begin + 4], "big"), payload)  # its length comes first


_PARTS: Final = {"sse": _sse, "json_array": _json_array, "jsonl": _jsonl, "eventstream": _eventstream}


# -- an answer --------------------------------------------------------------------------------------------------------


class RecordedAnswer(msgspec.Struct, frozen=True, dict=True):
    """A recorded answer over HTTP.

    Attributes:
        name: What it is asked for by: the name of its file, without suffixes.
        surface: At whose paths it is served.
        framing: How its bytes are framed.
        reads: What came, with its times.
        head: The head of the response, where it was recorded.
        broken: Whether the transport failed at its end.
        file: The name of its file, which may differ where two have one name.
    """

    name: str
    surface: str
    framing: str
    reads: tuple[Read, ...]
    head: ResponseHead | None = None
    broken: bool = False
    file: str = ""

    @cached_property
    def body(self) -> bytes:
        """All bytes."""
        return b"".join(read.data for read in self.reads)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Its events."""
        return tuple(_PARTS[self.framing](self.body))

    @property
    def headers(self) -> Headers:
        """Those of the response that a replay can say again; empty where none were recorded."""
        headers = () if self.head is None else self.head.headers
        return tuple((name, value) for name, value in headers if name.lower() not in _NOT_AGAIN and value != REDACTED)


_NOT_AGAIN: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade", "content-length", "content-encoding",
        "alt-svc",  # where else the provider's own server listens
        ":status",
    }
)  # fmt: skip
"""Headers of a connection, of bytes that are unpacked here, and of another server's place."""


def after(reads: Iterable[Read], offset: int) -> tuple[Read, ...]:
    """The reads without their first ``offset`` bytes, and with the times that they had."""
    kept: list[Read] = []
    for read in reads:
        if offset < len(read.data):
            kept.append(Read(read.t, read.data[offset:]))
        offset = max(0, offset - len(read.data))
    return tuple(kept)


def as_array(answer: RecordedAnswer) -> RecordedAnswer:
    """The same payloads as Gemini sends them without ``alt=sse``: in a JSON array, an item when its event came."""
    if answer.framing == "json_array":
        return answer
    opened = [b"[" if k == 0 else b"\n,\r\n" for k in range(len(answer.parts))]
    told = zip(_times(answer), opened, answer.parts, strict=True)
    reads = [Read(at, begin + part.payload) for at, begin, part in told]
    last = reads[-1].t if reads else 0
    if not answer.parts or answer.parts[-1].decoded is not None:  # else it breaks off inside an item
        reads.append(Read(last, b"]" if reads else b"[]"))
    return _reframed(answer, "json_array", reads)


def as_events(answer: RecordedAnswer) -> RecordedAnswer:
    """The same payloads as Gemini sends them with ``alt=sse``: nothing but ``data`` lines, CRLF between them."""
    if answer.framing == "sse":
        return answer
    told = zip(_times(answer), map(_in_a_line, answer.parts), strict=True)
    return _reframed(answer, "sse", [Read(at, b"data: %b\r\n\r\n" % payload) for at, payload in told])


def _in_a_line(part: Part) -> bytes:
    return part.payload if part.decoded is None else msgspec.json.format(part.payload, indent=-1)


def _times(answer: RecordedAnswer) -> list[int]:
    """When each event was whole."""
    ends = list(accumulate(len(read.data) for read in answer.reads))
    return [answer.reads[bisect_left(ends, part.end)].t for part in answer.parts]


def _reframed(answer: RecordedAnswer, framing: str, reads: Iterable[Read]) -> RecordedAnswer:
    head = answer.head
    if head is not None:
        headers = tuple((name, value) for name, value in head.headers if name.lower() != "content-type")
        head = msgspec.structs.replace(head, headers=headers)
    return RecordedAnswer(answer.name, answer.surface, framing, tuple(reads), head, answer.broken)


# -- a session --------------------------------------------------------------------------------------------------------


class Message(NamedTuple):
    """A message of a session, or the end of its connection.

    Attributes:
        t: When, in nanoseconds since the request; 0 where it is not known.
        dir: ``in``: from the server; ``out``: from the client; ``close``.
        data: The message.
        binary: Whether it is a binary one.
        code: The close code.
        reason: What was said with it.
    """

    t: int
    dir: Literal["in", "out", "close"]
    data: bytes = b""
    binary: bool = False
    code: int | None = None
    reason: str = ""


class Sitting(msgspec.Struct, frozen=True):
    """A recorded session over a WebSocket.

    Attributes:
        name: What it is asked for by.
        surface: Whose it is.
        messages: In order.
        file: The name of its file.
    """

    name: str
    surface: str
    messages: tuple[Message, ...]
    file: str = ""


# -- telling what a recording is --------------------------------------------------------------------------------------


def from_body(name: str, body: bytes) -> RecordedAnswer | Sitting:
    """A recording that is nothing but bytes: a body, or lines of a session.

    Raises:
        UsageError: The bytes do not tell whose it is.
    """
    if told_session(iter([body]))[0]:
        return _sitting(name, body)
    return _answer(name, (Read(0, body),), _surface_of(name, body, "auto"), None, broken=False)


def from_reads(name: str, head: Head, reads: Iterable[Read], end: End | None) -> RecordedAnswer | Sitting:
    """A recording with times: the reads of a body, unpacked; or the messages of a WebSocket.

    Raises:
        UsageError: Neither its address nor its bytes tell whose it is.
    """
    reads = tuple(reads)
    path = "" if head.request is None else urlsplit(head.request.url).path
    if any(read.op is not None for read in reads):
        return _recorded_sitting(name, path, reads, end)
    body = b"".join(read.data for read in reads)
    told = asked(path)
    surface = told.endpoint.surface if told is not None else _surface_of(name, body, head.provider or "auto")
    return _answer(name, reads, surface, head.response, broken=end is not None and end.end == "cut")


def _answer(
    name: str, reads: tuple[Read, ...], surface: str, head: ResponseHead | None, *, broken: bool
) -> RecordedAnswer:
    framing = _framing_of(b"".join(read.data for read in reads), surface)
    if framing == "eventstream" and not surface.startswith("bedrock-"):
        surface = "bedrock-invoke"  # a model's own dialect inside AWS's messages
    if surface not in _SURFACES:
        raise UsageError(f"{name}: nothing is known of where {surface} is served")
    return RecordedAnswer(name, surface, framing, reads, head, broken)


def _framing_of(body: bytes, surface: str) -> str:
    if surface == "ollama":
        return "jsonl"
    first = body.lstrip(_NO_CONTENT)[:1]
    return BY_FIRST_BYTE.get(first[0], "sse") if first else "sse"


def _surface_of(name: str, body: bytes, provider: str) -> str:
    decoder = StreamDecoder(provider)
    for event in [*decoder.feed(body), *decoder.close()]:
        if isinstance(event, Start) and event.surface != "unknown":
            return event.surface
    raise UsageError(f"{name}: its bytes do not tell whose stream it is")


def _sitting(name: str, body: bytes) -> Sitting:
    lines: list[Line] = []
    for number, text in enumerate(filter(bytes.strip, body.removeprefix(b"\xef\xbb\xbf").split(b"\n")), 1):
        try:
            lines.append(LINE.decode(text))
        except (msgspec.DecodeError, RecursionError):
            raise UsageError(f"{name}: line {number} is none of a recorded session") from None
    messages = [Message(0, line.dir, bytes(line.frame), False, line.code, line.reason or "") for line in lines]
    return Sitting(name, provider_of(lines[:LOOKED_AT]), tuple(messages))


def _recorded_sitting(name: str, path: str, reads: tuple[Read, ...], end: End | None) -> Sitting:
    surfaces = session_surfaces(path)
    surface = surfaces[0] if len(surfaces) == 1 else provider_of(_lines(reads))
    messages = [Message(read.t, "out" if read.sent else "in", read.data, read.op == "binary") for read in reads]
    if end is not None:
        messages.append(Message(end.t, "close", code=end.code, reason=end.reason or ""))
    return Sitting(name, surface, tuple(messages))


def _lines(reads: Iterable[Read]) -> list[Line]:
    """The first messages that are JSON."""
    lines: list[Line] = []
    for read in reads:
        try:
            _DECODE(read.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        lines.append(Line("out" if read.sent else "in", msgspec.Raw(read.data)))
    return lines[:LOOKED_AT]
