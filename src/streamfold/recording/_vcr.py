"""Cassettes of VCR (vcrpy's YAML, version 1; Ruby's too): exchanges in, exchanges out. They know no times.

The bodies of answers are unpacked on the way in, as their headers say, which then say so no more.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from streamfold.errors import Malformed, UsageError
from streamfold.recording._packing import unpacked
from streamfold.recording.exchange import Ending, Exchange, body_of
from streamfold.recording.sfcap import Head, Headers, Read, RequestHead, ResponseHead

__all__ = ["cassette_of", "exchanges_in", "plain_answer"]

_OF_PACKING = ("content-encoding", "content-length", "transfer-encoding")
_OF_TAGS = (ValueError, LookupError, AttributeError)
"""What PyYAML makes of a scalar that is not what its tag says: ``!!bool perhaps``."""

_MOST = 16
"""How many times larger than its text a cassette may be, once its aliases are written out."""


def exchanges_in(data: bytes) -> list[Exchange]:
    """The interactions of a cassette.

    Raises:
        Malformed: It is none.
        UsageError: The library that reads YAML is not installed.
    """
    yaml = _yaml()
    try:
        cassette = yaml.load(data, Loader=_without_merging(getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        size = _size_of(cassette, {})
    except (yaml.YAMLError, *_OF_TAGS, RecursionError) as fault:
        mark = getattr(fault, "problem_mark", None)
        raise Malformed("the cassette is no YAML", 0 if mark is None else mark.index) from None
    if size > _MOST * len(data):
        raise Malformed("the cassette repeats its parts without measure", 0)
    members = _object(cassette)
    interactions = members.get("interactions", members.get("http_interactions"))
    if not isinstance(interactions, list):
        raise Malformed("this is no cassette: it has no interactions", 0)
    return [_exchange(_object(interaction)) for interaction in interactions]


def _exchange(interaction: dict[str, Any]) -> Exchange:
    asked, answered = _object(interaction.get("request")), _object(interaction.get("response"))
    status = answered.get("status", answered.get("status_code"))
    status = status.get("code") if isinstance(status, dict) else status
    url = asked.get("uri", asked.get("url"))
    if not isinstance(status, int) or not isinstance(url, str):
        raise Malformed("an interaction of the cassette has no address, or no status", 0)
    body = _bytes_of(asked)
    request = RequestHead(
        str(asked.get("method", "GET")).upper(), url, _headers(asked.get("headers")), _text_of(body) if body else None
    )
    version = answered.get("http_version")
    response = ResponseHead(status, _headers(answered.get("headers")), version if isinstance(version, str) else None)
    return plain_answer(request, response, _bytes_of(answered))


def plain_answer(
    request: RequestHead, response: ResponseHead, body: bytes, started: str | None = None, t: int = 0
) -> Exchange:
    """An exchange whose answer came in one read; its body is unpacked, unless somebody has done so already."""
    with suppress(Malformed):  # else the header was kept, and the body is plain
        body = b"".join(unpacked([body], response.header("content-encoding")))
    response = without_packing(response)
    reads = (Read(t, body),) if body else ()
    return Exchange(Head(request, response, None, started), reads, Ending(t, "eof"))


def without_packing(response: ResponseHead) -> ResponseHead:
    """The head of a response whose body is plain, and whole."""
    headers = tuple([pair for pair in response.headers if pair[0].lower() not in _OF_PACKING])
    return msgspec.structs.replace(response, headers=headers)


def cassette_of(exchanges: Iterable[Exchange]) -> bytes:
    """A cassette of these exchanges, for vcrpy.

    Raises:
        UsageError: An exchange is no request and its answer; or the library that writes YAML is not installed.
    """
    interactions = [_interaction(exchange) for exchange in exchanges]
    text: str = _yaml().safe_dump({"interactions": interactions, "version": 1}, allow_unicode=True, sort_keys=False)
    return text.encode()


def _interaction(exchange: Exchange) -> dict[str, Any]:
    request, response = exchange.head.request, exchange.head.response
    if request is None or response is None or exchange.is_session:
        raise UsageError("a cassette holds requests and their answers, and this recording does not know both")
    body = body_of(exchange)
    return {
        "request": {
            "body": request.body,
            "headers": _by_name(request.headers),
            "method": request.method,
            "uri": request.url,
        },
        "response": {
            "body": {"string": _text_of(body) or body},
            "headers": _by_name(without_packing(response).headers),
            "status": {"code": response.status, "message": ""},
        },
    }


def _bytes_of(message: dict[str, Any]) -> bytes:
    """The body of a request or an answer, in whichever of its forms: text, bytes, base64, or JSON that was read."""
    if "parsed_body" in message:
        try:
            return msgspec.json.encode(message["parsed_body"])
        except (TypeError, ValueError, OverflowError):  # YAML has keys and numbers that JSON has not
            raise Malformed("a body of the cassette is no JSON", 0) from None
    body = message.get("body", message.get("content"))
    if isinstance(body, dict):
        packed = body.get("base64_string")
        body = body.get("string")
        if isinstance(packed, str):
            try:
                return base64.b64decode(packed)
            except ValueError:
                raise Malformed("a body of the cassette is no base64", 0) from None
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    return body if isinstance(body, bytes) else b""


def _headers(headers: Any) -> Headers:
    return tuple(
        (str(name), value.decode("latin-1") if isinstance(value, bytes) else str(value))
        for name, values in _object(headers).items()
        for value in (values if isinstance(values, list) else [values])
    )


def _by_name(headers: Headers) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, value in headers:
        names.setdefault(name, []).append(value)
    return names


def _text_of(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _size_of(value: Any, sizes: dict[int, int]) -> int:
    """How much a value is, in characters and members, where each alias stands for all it names.

    Raises:
        ValueError: A value holds itself.
    """
    if isinstance(value, str | bytes):
        return len(value)
    if not isinstance(value, list | dict | set | tuple):
        return 1
    if id(value) not in sizes:
        sizes[id(value)] = -1  # until it is known
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        sizes[id(value)] = 1 + sum(_size_of(part, sizes) for part in parts)
    if sizes[id(value)] < 0:
        raise ValueError
    return sizes[id(value)]


def _without_merging(loader: Any) -> Any:
    """The loader, for which ``<<`` is a key that nobody knows: no recorder writes it, and a few of them can stand for
    any number of members."""

    class Loader(loader):  # type: ignore[misc]
        def flatten_mapping(self, node: Any) -> None: ...

    return Loader


def _object(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise UsageError("cassettes need PyYAML: pip install 'streamfold[record]'") from None
    return yaml
