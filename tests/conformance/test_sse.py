"""Every vector of the event-stream grammar, at every cut."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfold.framing.sse import SSEParser

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors" / "sse.json").read_text())["vectors"]


def wire(vector: dict[str, Any]) -> bytes:
    return vector["text"].encode() if "text" in vector else base64.b64decode(vector["bytes_b64"])


def cuts(data: bytes) -> Iterator[list[bytes]]:
    yield [data]
    for step in (1, 2, 3, 5, 7, 64):
        yield [data[at : at + step] for at in range(0, len(data), step)]
        yield [piece for at in range(0, len(data), step) for piece in (b"", data[at : at + step])]
    for at in range(1, len(data)):
        yield [data[:at], data[at:]]


def run(chunks: list[bytes], *, close: bool, fast: bool = True, on_eof: Any = "flush") -> tuple[Any, ...]:
    parser = SSEParser(on_eof=on_eof)
    parser.fast = fast
    frames = []
    for chunk in chunks:
        parser.feed(chunk)
        frames += list(parser)
    if close:
        parser.close()
        frames += list(parser)
    return [(f.event, f.data, f.id) for f in frames], parser.retry_ms, parser.last_event_id


def due(events: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(event["event"], event["data"], event["id"]) for event in events]


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "general"])
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any], fast: bool, record_property: Callable[[str, object], None]) -> None:
    record_property("ran", f"vectors={int(fast)}")
    spec = due(vector["spec_events"])
    flushed = due(vector.get("flush_on_close_events", vector["spec_events"]))
    state = (vector["retry"], vector["last_event_id"])
    for chunks in cuts(wire(vector)):
        assert run(chunks, close=False, fast=fast) == (spec, *state)
        assert run(chunks, close=True, fast=fast, on_eof="discard") == (spec, *state)
        assert run(chunks, close=True, fast=fast) == (flushed, *state)


@pytest.mark.parametrize("fast", [True, False], ids=["fast", "general"])
@pytest.mark.parametrize("vector", [v for v in VECTORS if "feeds" in v], ids=lambda vector: vector["name"])
def test_an_event_is_out_as_soon_as_it_can_be(vector: dict[str, Any], fast: bool) -> None:
    parser = SSEParser()
    parser.fast = fast
    seen = 0
    for feed in vector["feeds"]:
        parser.feed(base64.b64decode(feed["bytes_b64"]))
        seen += len(list(parser))
        assert seen == feed["events_so_far"]
