"""HAR 1.2, as browsers and proxies export it: exchanges in, exchanges out.

Of an answer HAR knows when it began and how long it took, so it comes as one read; our own member ``_chunks`` of
``content`` (``[[nanoseconds, bytes], …]``) keeps every read of one that goes out, and ``_error`` of ``response``, as
Chrome has it, why it broke off. Chrome's ``_webSocketMessages`` are a session.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from streamfold.errors import Malformed, UsageError
from streamfold.recording._packing import unpacked
from streamfold.recording._vcr import without_packing
from streamfold.recording.exchange import Ending, Exchange, packed_by
from streamfold.recording.sfcap import LONGEST, Head, Headers, Nanoseconds, Read, RequestHead, ResponseHead

__all__ = ["exchanges_in", "har_of"]

_MS: Final = 1_000_000  # nanoseconds of a millisecond, in which HAR counts
_BEFORE: Final = ("blocked", "dns", "connect", "send", "wait")
"""The parts of ``timings`` before the answer; ``ssl`` is a part of ``connect``. -1: does not apply."""

_TEXT: Final = 1  # RFC 6455, 11.8: opcode of a text frame


class _Content(msgspec.Struct):
    text: str | None = None
    encoding: str | None = None
    chunks: list[tuple[Nanoseconds, int]] | None = msgspec.field(name="_chunks", default=None)


class _Pair(msgspec.Struct):
    name: str
    value: str


class _PostData(msgspec.Struct):
    text: str | None = None


class _Request(msgspec.Struct):
    method: str
    url: str
    headers: list[_Pair] = []
    post: _PostData | None = msgspec.field(name="postData", default=None)


class _Response(msgspec.Struct):
    status: int = 0
    headers: list[_Pair] = []
    http_version: str | None = msgspec.field(name="httpVersion", default=None)
    content: _Content = msgspec.field(default_factory=_Content)
    error: str | None = msgspec.field(name="_error", default=None)


class _Message(msgspec.Struct):
    type: str
    time: float
    opcode: int
    data: str


class _Entry(msgspec.Struct):
    request: _Request
    response: _Response
    started: str | None = msgspec.field(name="startedDateTime", default=None)
    timings: dict[str, Any] = {}
    messages: list[_Message] | None = msgspec.field(name="_webSocketMessages", default=None)


class _Log(msgspec.Struct):
    entries: list[_Entry]


class _Har(msgspec.Struct):
    log: _Log


_HAR: Final = msgspec.json.Decoder(_Har)


def exchanges_in(data: bytes) -> list[Exchange]:
    """The entries of a HAR file.

    Raises:
        Malformed: It is none.
    """
    try:
        har = _HAR.decode(data.removeprefix(b"\xef\xbb\xbf"))
        return [_exchange(entry) for entry in har.log.entries]
    except (msgspec.DecodeError, ValueError, RecursionError) as fault:
        raise Malformed(f"this is no HAR: {fault}", 0) from None


def _exchange(entry: _Entry) -> Exchange:
    asked, answered = entry.request, entry.response
    request = RequestHead(asked.method, asked.url, _headers(asked.headers), asked.post.text if asked.post else None)
    begun = _time(sum(_ns(entry.timings.get(part)) for part in _BEFORE))
    ended = _time(begun + _ns(entry.timings.get("receive")))
    head = Head(request, None, None, entry.started)
    if answered.status:
        response = ResponseHead(answered.status, _headers(answered.headers), answered.http_version, begun)
        head = msgspec.structs.replace(head, response=without_packing(response))
    if entry.messages is not None:
        reads = _messages(entry.messages)
        return Exchange(head, reads, Ending(max([read.t for read in reads], default=begun), "eof"))
    text = answered.content.text or ""
    body = base64.b64decode(text) if answered.content.encoding == "base64" else text.encode("utf-8", "surrogatepass")
    reads = _chunks(body, answered.content.chunks) or ((Read(begun, body),) if body else ())
    end = Ending(ended, "cut", answered.error) if answered.error else Ending(ended, "eof")
    return Exchange(head, reads, end)


def _chunks(body: bytes, chunks: list[tuple[int, int]] | None) -> tuple[Read, ...]:
    """The reads of a body, if that is what they make up."""
    if not chunks or sum(size for _, size in chunks) != len(body) or any(min(chunk) < 0 for chunk in chunks):
        return ()
    reads: list[Read] = []
    at = 0
    for t, size in chunks:
        reads.append(Read(t, body[at : at + size]))
        at += size
    return tuple(reads)


def _messages(messages: list[_Message]) -> tuple[Read, ...]:
    begin = messages[0].time if messages else 0.0
    reads: list[Read] = []
    for message in messages:
        is_text = message.opcode == _TEXT
        data = message.data.encode("utf-8", "surrogatepass") if is_text else base64.b64decode(message.data)
        t = _time((message.time - begin) * 1000 * _MS)
        reads.append(Read(t, data, "text" if is_text else "binary", message.type == "send"))
    return tuple(reads)


def _ns(ms: Any) -> float:
    return ms * _MS if isinstance(ms, int | float) and ms > 0 else 0


def _time(ns: float) -> int:
    """A time that a recording can hold, whatever the file says."""
    return int(min(max(ns, 0), LONGEST))


def _headers(pairs: list[_Pair]) -> Headers:
    """Without the pseudo-headers of HTTP/2, which Chrome lists as well."""
    return tuple([(pair.name, pair.value) for pair in pairs if not pair.name.startswith(":")])


def har_of(exchanges: Iterable[Exchange], version: str) -> bytes:
    """A HAR file of these exchanges.

    Args:
        exchanges: Of HTTP.
        version: Of what writes it.

    Raises:
        UsageError: An exchange is of a WebSocket, or its request is not known.
    """
    creator = {"name": "streamfold", "version": version}
    log = {"version": "1.2", "creator": creator, "entries": [_entry(exchange) for exchange in exchanges]}
    return msgspec.json.format(msgspec.json.encode({"log": log}), indent=2) + b"\n"


def _entry(exchange: Exchange) -> dict[str, Any]:
    head, end = exchange.head, exchange.end
    request, response = head.request, head.response
    if request is None or exchange.is_session:
        raise UsageError("a HAR holds requests of HTTP, and this recording does not know one")
    pieces = [b"".join(unpacked([read.data], None)) for read in exchange.reads if not read.sent]
    if packed_by(head):
        pieces = list(unpacked((read.data for read in exchange.reads), packed_by(head)))
    body = b"".join(pieces)
    content: dict[str, Any] = {"size": len(body), "mimeType": (response and response.header("content-type")) or ""}
    try:
        content["text"] = body.decode()
    except UnicodeDecodeError:
        content |= {"text": base64.b64encode(body).decode(), "encoding": "base64"}
    if not packed_by(head):
        content["_chunks"] = [(read.t, len(read.data)) for read in exchange.reads]
    begun = 0 if response is None else response.t
    ended = max([begun, *(read.t for read in exchange.reads), *(() if end is None else (end.t,))])
    version = (response and response.http_version) or ""
    posted = {} if request.body is None else {"postData": {"mimeType": "", "text": request.body}}
    failed = {"_error": end.error or "cut"} if end is not None and end.how == "cut" else {}
    sizes = {"headersSize": -1, "bodySize": -1, "cookies": []}
    return {
        "startedDateTime": head.started or "1970-01-01T00:00:00+00:00",
        "time": ended / _MS,
        "request": {
            "method": request.method,
            "url": request.url,
            "httpVersion": version,
            "headers": _pairs(request.headers),
            "queryString": [],
            **posted,
            **sizes,
        },
        "response": {
            "status": response.status if response else 0,
            "statusText": "",
            "httpVersion": version,
            "headers": _pairs(response.headers if response else ()),
            "content": content,
            "redirectURL": "",
            **failed,
            **sizes,
        },
        "cache": {},
        "timings": {"send": 0, "wait": begun / _MS, "receive": (ended - begun) / _MS},
    }


def _pairs(headers: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers]
