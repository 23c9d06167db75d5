"""``auto``: which dialect a stream speaks, told by the first payload that shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamfold import Cursor, ErrorEvent, Event, Raw, Start, StreamDecoder
from streamfold.providers.by_shape import AutoNormalizer, shape_of
from tests.reading import BAD_JSON, TRUNCATED, alike, fold, raw, read, rows
from tests.wires import (
    ANTHROPIC,
    CHAT,
    MESSAGE_STOP,
    PING,
    RESPONSES,
    Payload,
    Stream,
    chunk,
    completed,
    created,
    event,
    message_delta,
    message_start,
)

CHUNK = chunk({"content": "a"})
UNKNOWN = Start("unknown")

SHAPES: dict[str, tuple[Any, str | None, str | None]] = {
    # payload, name of its frame, provider
    "a chunk": (CHUNK, None, "openai-chat"),
    "a chunk with nothing but choices": ({"choices": []}, None, "openai-chat"),
    "a chunk by its object alone": ({"object": "chat.completion.chunk"}, None, "openai-chat"),
    "a completion that did not stream": ({"object": "chat.completion"}, None, "openai-chat"),
    "a legacy completion": ({"object": "text_completion"}, None, "openai-chat"),
    "an event of Responses": (created(), None, "openai-responses"),
    "any event of Responses": (event("something.new"), None, "openai-responses"),
    "an event of Responses by its frame's name": ({"response": {}}, "response.created", "openai-responses"),
    "a response that did not stream": ({"object": "response"}, None, "openai-responses"),
    "an error of Responses": ({"type": "error", "sequence_number": 0, "error": {}}, None, "openai-responses"),
    "message_start": (message_start(), None, "anthropic"),
    "a block of Anthropic": ({"type": "content_block_start"}, None, "anthropic"),
    "message_delta by its frame's name": ({"delta": {}}, "message_delta", "anthropic"),
    "an error of Anthropic": ({"type": "error", "error": {"type": "api_error"}}, None, "anthropic"),
    "a ping": (PING, None, None),
    "a keep-alive": ({"type": "keepalive"}, None, None),
    "an error of anybody": ({"error": {"message": "m"}}, None, None),
    "nothing": ({}, None, None),
    "a foreign payload": ({"foreign": []}, None, None),
    "a type that is no text": ({"type": 5}, None, None),
}


@pytest.mark.parametrize(("payload", "name", "provider"), SHAPES.values(), ids=SHAPES.keys())
def test_the_shape_of_a_payload(payload: Payload, name: str | None, provider: str | None) -> None:
    assert shape_of(payload, name) == provider


STREAMS: dict[str, tuple[str, Stream]] = {
    f"{provider}: {name}": (provider, stream)
    for provider, wires in (("openai-chat", CHAT), ("openai-responses", RESPONSES), ("anthropic", ANTHROPIC))
    for name, stream in wires.items()
}


@pytest.mark.parametrize(("provider", "stream"), STREAMS.values(), ids=STREAMS.keys())
def test_auto_is_the_dialect_itself(provider: str, stream: Stream) -> None:
    assert read("auto", stream) == read(provider, stream)


HEADS: dict[str, list[Any]] = {
    "pings": [PING, {"type": "keepalive"}, PING],
    "keep-alives that were framed as data": [": hi", "", "  "],
    "payloads of no shape": [{"a": 1}, "5", "null", "[]"],
    "seven payloads of no shape": [{"a": n} for n in range(7)],
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
@pytest.mark.parametrize("first", [CHUNK, created(), message_start()], ids=["chat", "responses", "anthropic"])
def test_what_comes_before_waits_and_comes_out_in_order(head: list[Any], first: Payload) -> None:
    surface = shape_of(first, None)
    assert surface is not None
    events = read("auto", [*head, first])
    assert events == read(surface, [*head, first])
    assert events[0] == Start(surface)
    assert sum(isinstance(event, Raw) for event in events) == len(head)


def test_what_is_held_comes_out_with_the_payload_that_shows_the_dialect() -> None:
    made = AutoNormalizer()
    assert made.feed([b'{"a":1}', b'{"type":"ping"}']) == []
    events = made.feed([json.dumps(message_start()).encode(), b'{"type":"ping"}'])
    assert [event.type for event in events] == ["start", "raw", "raw", "start", "raw"]


GIVES_UP: dict[str, tuple[list[Any], list[Event]]] = {
    "eight payloads of no shape": (
        [*({"a": n} for n in range(8)), CHUNK],
        [UNKNOWN, *(raw({"a": n}) for n in range(8)), raw(CHUNK), TRUNCATED],
    ),
    "eight blank ones, for somebody has to stop waiting": (
        [*[""] * 8, CHUNK],
        [UNKNOWN, *(raw("", is_json=False) for _ in range(8)), raw(CHUNK), TRUNCATED],
    ),
    "too many bytes of no shape": (
        [{"a": "x" * 70_000}, CHUNK],
        [UNKNOWN, raw({"a": "x" * 70_000}), raw(CHUNK), TRUNCATED],
    ),
    "too many bytes in fewer characters": (
        [{"a": "é" * 33_000}, CHUNK],
        [UNKNOWN, raw({"a": "é" * 33_000}), raw(CHUNK), TRUNCATED],
    ),
    "the end before any shape": ([{"a": 1}, PING], [UNKNOWN, raw({"a": 1}), raw(PING), TRUNCATED]),
    "the end before anything": ([], [UNKNOWN, TRUNCATED]),
    "no JSON": ([{"a": 1}, '{"b":', CHUNK], [UNKNOWN, raw({"a": 1}), BAD_JSON]),
    "an error body": (
        [{"a": 1}, {"error": {"message": "m", "code": "c"}}],
        [UNKNOWN, raw({"a": 1}), ErrorEvent("provider", "m", "c", raw=raw({"message": "m", "code": "c"}).payload)],
    ),
    "an error body of one sentence": (
        [{"error": "m", "code": "invalid-argument"}],
        [UNKNOWN, ErrorEvent("provider", "m", "invalid-argument", raw=raw("m", is_json=False).payload)],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(GIVES_UP))
def test_a_surface_that_nobody_knows(payloads: list[Any], events: list[Event]) -> None:
    assert read("auto", payloads) == events


def test_a_surface_that_nobody_knows_is_never_complete() -> None:
    answer = fold(read("auto", [{"a": n} for n in range(20)]))
    assert (answer.surface, answer.outcome, answer.blocks) == ("unknown", "truncated", ())


def test_bytes_are_counted_to_the_last() -> None:
    """64 KiB may be held, not one byte more."""
    for size, surface in ((64 * 1024, "openai-chat"), (64 * 1024 + 1, "unknown")):
        filler = json.dumps({"a": ""}, separators=(",", ":")).encode()
        made = AutoNormalizer()
        made.feed([filler[:-2] + b"x" * (size - len(filler)) + filler[-2:]])
        assert made.feed([json.dumps(CHUNK).encode()])[-1].type == ("text_delta" if surface == "openai-chat" else "raw")


def test_done_alone_is_chat() -> None:
    assert [event.type for event in read("auto", ["[DONE]"])] == ["start", "done"]


@pytest.mark.parametrize("how", ["eof", "cut", "cancel"])
def test_how_it_ends_before_any_shape(how: Any) -> None:
    events = read("auto", [{"a": 1}], how)
    wanted: dict[str, list[Event]] = {
        "eof": [UNKNOWN, raw({"a": 1}), TRUNCATED],
        "cut": [UNKNOWN, raw({"a": 1}), ErrorEvent("transport", "", retryable=True)],
        "cancel": [],
    }
    assert events == wanted[how]


def test_a_fault_below_ends_it_and_drops_nothing() -> None:
    made = AutoNormalizer()
    made.feed([b'{"a":1}'])
    fault = ErrorEvent("limit", "too large", "frame")
    assert made.fail(fault) == [UNKNOWN, raw({"a": 1}), fault]
    assert made.feed([json.dumps(CHUNK).encode()]) == []


@pytest.mark.parametrize("how", ["eof", "cut", "cancel"])
@pytest.mark.parametrize("payloads", [[{"a": 1}], [CHUNK], [PING] * 8], ids=["waiting", "chosen", "unknown"])
def test_a_fault_below_after_the_end_is_no_event(payloads: list[Payload], how: Any) -> None:
    made = AutoNormalizer()
    made.feed([json.dumps(payload).encode() for payload in payloads])
    made.close(how)
    assert made.fail(ErrorEvent("limit", "too large", "frame")) == []


def test_settings_reach_the_dialect() -> None:
    call = chunk({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]})
    assert fold(read("auto", [call, "[DONE]"], call_id=lambda index: f"mine_{index}")).tool_calls[0].id == "mine_0"
    assert not [event for event in read("auto", [PING, CHUNK], raw="none") if isinstance(event, Raw)]
    assert read("auto", [CHUNK], max_blocks=0)[-1] == ErrorEvent("limit", "", "blocks")


def test_a_cursor_reaches_the_dialect() -> None:
    stream = [{**payload, "sequence_number": n} for n, payload in enumerate([created(), PING, completed()])]
    events = read("auto", stream, after=Cursor("resp_1", last_sequence=1))
    assert not [event for event in events if isinstance(event, Raw)]
    assert fold(events).outcome == "complete"


def test_names_and_places_of_frames_survive_the_wait() -> None:
    named = (("mine", '{"b":1}'), ("yours", '{"choices":[]}'), ("x", '{"c":1}'))
    frames = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in named)
    body = f'data: {{"a":1}}\n\n{frames}data: {{"d"\n\n'.encode()
    for size in (len(body), 1, 20):
        decoder = StreamDecoder("auto")
        events = [event for start in range(0, len(body), size) for event in decoder.feed(body[start : start + size])]
        assert [event.name for event in events if isinstance(event, Raw)] == ["choices", "mine", "yours", "x"]
        assert events[-1].type == "error"
        assert getattr(events[-1], "offset", None) == body.index(b'data: {"d"')


@pytest.mark.parametrize("payloads", [[PING, message_start(), message_delta("end_turn"), MESSAGE_STOP], [{"a": 1}] * 9])
def test_one_batch_or_many(payloads: list[Payload]) -> None:
    data = [json.dumps(payload).encode() for payload in payloads]
    one = AutoNormalizer()
    many = AutoNormalizer()
    assert alike([*one.feed(data), *one.close()]) == alike(
        [event for d in data for event in many.feed([d])] + many.close()
    )
