"""What is fuzzed, and the oracle: the promises hold, and however the same bytes are read, the outcome is the same.

A target takes bytes and raises ``AssertionError`` (or whatever a bug of ours raises) where a promise is broken. The
first byte of the input says how the rest is cut, so that one input is one run, to be repeated at will.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from streamfold import (
    NOTHING,
    FramingError,
    JSONArrayStreamParser,
    PartialJSON,
    SSEParser,
    StreamDecoder,
    parse_partial_json,
)
from streamfold.framing.eventstream import EventStreamParser
from streamfold.framing.jsonl import JSONLinesParser
from tests.promises import broken
from tests.reading import read

__all__ = ["TARGETS"]

Target = Callable[[bytes], None]

PROVIDERS: Final = (
    *("openai-chat", "openai-responses", "anthropic", "gemini", "xai", "auto"),
    *("bedrock-converse", "bedrock-invoke", "cohere", "ollama"),
)


def cuts(data: bytes) -> tuple[int, bytes]:
    """The size of the reads, and what is read."""
    return 1 + data[0] % 64 if data else 1, data[1:]


def reads(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


# -- framings ---------------------------------------------------------------------------------------------------------


def framing(parser: Callable[[], Any], data: bytes) -> None:
    """A parser gives the same items, in the same state, and the same fault, at every cut."""
    size, body = cuts(data)

    def outcome(chunks: list[bytes]) -> tuple[list[Any], str | None, list[Any]]:
        made, items = parser(), []
        try:
            for chunk in chunks:
                made.feed(chunk)
                items.extend(made)  # those before a fault stay
            made.close()
            items.extend(made)
        except FramingError as fault:
            return items, f"{type(fault).__name__} {fault.offset}", []
        state = [getattr(made, name, None) for name in ("last_event_id", "retry_ms", "replacements")]
        return items, None, state

    assert outcome([body]) == outcome(reads(body, size))


def partial_json(data: bytes) -> None:
    """A preview grows to the value; what is JSON ends as that value."""
    size, body = cuts(data)
    text = body.decode("utf-8", "replace")
    parser = PartialJSON()
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    assert repr(parse_partial_json(text, default=NOTHING)) == repr(parser.value)  # a number may go on until the end
    parser.close()
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return
    if parser.error is None:  # deeper than it goes, else
        assert parser.complete
        assert parser.value == _utf8(value)


def _utf8(value: Any) -> Any:
    """Half a surrogate pair, which only an escape can write, is U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_utf8(item) for item in value]
    return {_utf8(name): _utf8(item) for name, item in value.items()} if isinstance(value, dict) else value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


# -- streams and payloads ---------------------------------------------------------------------------------------------


def stream(provider: str, data: bytes) -> None:
    """The bytes of a body, cut anywhere: all promises, one outcome."""
    size, body = cuts(data)

    def outcome(chunks: list[bytes]) -> tuple[Any, ...]:
        decoder = StreamDecoder(provider, max_frame_bytes=1 << 16, max_blocks=64)
        events = [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()
        return events, decoder.snapshot(), decoder.cursor

    whole = outcome([body])
    assert not broken(whole[0])
    assert outcome(reads(body, size)) == whole


def payloads(provider: str, data: bytes) -> None:
    """Payloads, a line each: read in every way, they say the same."""
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
    read(provider, [value for value in map(_value, lines[:64]) if value is not None])


def _value(line: str) -> Any:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


TARGETS: Final[Mapping[str, Target]] = {
    "sse": partial(framing, SSEParser),
    "json_array": partial(framing, JSONArrayStreamParser),
    "eventstream": partial(framing, EventStreamParser),
    "jsonl": partial(framing, JSONLinesParser),
    "partial_json": partial_json,
    **{f"stream-{provider}": partial(stream, provider) for provider in PROVIDERS},
    **{f"payloads-{provider}": partial(payloads, provider) for provider in PROVIDERS},
}
