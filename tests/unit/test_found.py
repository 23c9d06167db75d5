"""What the generated streams found, kept as rows: each is the shortest input that once broke a promise."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import ErrorEvent, Raw, StreamDecoder
from streamfold.providers.registry import normalizer
from tests.promises import broken
from tests.reading import read, rows
from tests.wires import MESSAGE, Payload, block_delta, block_start, chunk, completed, event, finished, message_start

REASONED = chunk({"reasoning_content": "Hm"})

PAYLOADS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "an object that is no text": ("openai-chat", [chunk({}, id="c"), {"object": {}}], {}),
    "an object that is a number, where it would be a name": ("openai-chat", [chunk({}, id="c"), {"object": 2}], {}),
    "reasoning with details, then without": (
        "openai-chat",
        [
            chunk({"reasoning": "a", "reasoning_details": [{"text": "a"}]}, id="c", model="m"),
            REASONED,
            REASONED,
            REASONED,
        ],
        {},
    ),
    "an id that comes late": ("openai-chat", [REASONED, REASONED, {**REASONED, "id": "c"}], {}),
    "arguments as an object": (
        "openai-chat",
        [chunk({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]})],
        {},
    ),
    "an error that is a list": ("openai-chat", [{"error": [{"msg": "m"}]}], {}),
    "an error that is no number": ("openai-chat", ['{"error":NaN}'], {}),
    "a content index that is an object": (
        "openai-responses",
        [event("content_part.done", content_index={}, part={"type": "output_text", "text": "a"})],
        {},
    ),
    "an output index that is a float": (
        "openai-responses",
        [
            event("output_item.added", output_index=0.0, item={"type": "function_call", "call_id": "a", "name": "f"}),
            event("function_call_arguments.delta", output_index=0, delta="{}"),
        ],
        {},
    ),
    "a call that becomes reasoning": (
        "openai-responses",
        [
            event("output_item.added", output_index=0, item={"type": "function_call", "call_id": "a", "name": "f"}),
            finished(0, type="reasoning"),
        ],
        {},
    ),
    "a delta of an item that is done": (
        "openai-responses",
        [finished(0, **MESSAGE), event("output_text.delta", output_index=0, content_index=0, delta="a")],
        {},
    ),
    "a refusal of an item that is done": (
        "openai-responses",
        [
            finished(0, type="message", content=[{"type": "refusal", "refusal": "No"}]),
            event("refusal.delta", output_index=0, content_index=0, delta="a"),
        ],
        {},
    ),
    "a part of an item that is done": (
        "openai-responses",
        [
            finished(0, **MESSAGE),
            event(
                "content_part.added", output_index=0, content_index=0, part={"type": "output_text", "text": "Hello you"}
            ),
        ],
        {},
    ),
    "an end that takes a contradiction back": (
        "openai-responses",
        [
            event("output_text.delta", output_index=0, content_index=0, delta="ls"),
            event("output_text.done", output_index=0, content_index=0, text="pwd"),
            finished(0, type="message", content=[{"type": "output_text", "text": "ls -l"}]),
        ],
        {},
    ),
    "a result that is no number": (
        "openai-responses",
        ['{"type":"response.output_item.done","item":{"type":"code_interpreter_call","outputs":NaN}}'],
        {},
    ),
    "the limit of blocks within the first payload": (
        "openai-responses",
        [finished(0, type="mcp_call", name="f", output="found")],
        {"max_blocks": 1},
    ),
    "the limit of blocks, then more of the block that passed it": (
        "openai-responses",
        [event("output_text.delta", output_index=0, delta="a"), event("output_text.delta", output_index=0, delta="b")],
        {"max_blocks": 0},
    ),
    "a delta after an error": (
        "anthropic",
        [
            message_start(),
            block_start(0, "text", text=""),
            {"type": "error", "error": {"type": "api_error"}},
            block_delta(0, "text_delta", text="a" * 64),
        ],
        {},
    ),
}


@pytest.mark.parametrize(("provider", "payloads", "settings"), rows(PAYLOADS))
def test_payloads(provider: str, payloads: list[Any], settings: dict[str, Any]) -> None:
    """Reading them in every way keeps all promises."""
    assert read(provider, payloads, **settings)
    assert read("auto", payloads, **settings)


def test_a_fault_below_after_the_end_is_no_event() -> None:
    made = normalizer("openai-chat")
    made.feed([b'{"choices":[{"delta":{"content":"a"}}]}', b'{"choices":[{"finish_reason":"stop"}]}'])
    made.feed([b'{"choices":[{"delta":{"content":"b"}}]}'])
    assert made.close("cancel") == []
    assert made.fail(ErrorEvent("limit", "too large")) == []


FILTERED: Payload = {"choices": [], "prompt_filter_results": []}
TAIL = b"data: \r\ndata: " + b"y" * 100

BODIES: dict[str, tuple[str, bytes, dict[str, Any], str]] = {
    "compressed bytes": ("auto", b"\x1f\x8b\x08\x00", {}, "eof"),
    "a bare error before the cut": ("openai-responses", b'data\n{"error":"m"}\r\n', {}, "cut"),
    "a bare error, then another stray line": ("openai-chat", b'data: {"a":1}\r{"error":"x"}\r\nstray\n', {}, "eof"),
    "a bare error, then a frame": ("openai-chat", b'data: {"a":1}\n\n{"error":"x"}\ndata: {"b":1}\n\n', {}, "eof"),
    "whole frames, then a tail of several lines over the limit": (
        "openai-chat",
        b"data: {}\r\n\r\n" + TAIL,
        {"max_frame_bytes": 50},
        "eof",
    ),
    "an array that goes on after its end": (
        "openai-responses",
        b'[{"type":"response.completed"},{"a":1},{"b":1}]',
        {},
        "eof",
    ),
    "an id after the end": ("openai-chat", b"data: ]\n\nid: 7\n\n", {}, "eof"),
    "a bare error without a blank line, then nobody waits": (
        "gemini",
        b': hi\n{"error":{"code":503,"message":"m"}}\r\n',
        {},
        "cancel",
    ),
    "a bare error of many lines, then nobody waits": ("gemini", b'event: x\n{\n"error":\n"m"\n}\ndat', {}, "cancel"),
    "an end, then what looks like another surface's": (
        "gemini",
        b'data: [DONE]\ndata: {"x":1}\n\ndata: {"candidates":[{"finishReason":"STOP"}]}\n\n',
        {},
        "eof",
    ),
    "a line that begins with more blanks than its limit": (
        "gemini",
        b" " * 308 + b'data: {}\n\ndata: {"candidates":[{"finishReason":"STOP"}]}\n\n',
        {"max_frame_bytes": 300},
        "eof",
    ),
    "a cancelled stream whose last read held half a frame": (
        "openai-chat",
        b'data: {"a":1}\r\rdata: {"b"',
        {},
        "cancel",
    ),
}


@pytest.mark.parametrize(("provider", "body", "settings", "how"), rows(BODIES))
def test_bodies(provider: str, body: bytes, settings: dict[str, Any], how: Any) -> None:
    """How they are cut, and whether frames are asked for, changes nothing."""

    def outcome(size: int) -> tuple[Any, ...]:
        decoder, traced = StreamDecoder(provider, **settings), StreamDecoder(provider, **settings)
        chunks = [body[at : at + size] for at in range(0, len(body), size)]
        events = [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close(how)
        pairs = [pair for chunk in chunks for pair in traced.trace(chunk)] + traced.trace_close(how)
        assert [event for _, caused in pairs for event in caused] == events
        assert not broken(events, ended=how != "cancel")
        frames = [(frame, caused) for frame, caused in pairs if frame is not None]
        return events, frames, decoder.snapshot(), decoder.cursor

    whole = outcome(len(body))
    for size in (1, 2, 3, 5, 7, 11):
        assert outcome(size) == whole, size


def test_a_read_without_a_frame_after_one_with_several_events_can_be_traced() -> None:
    decoder = StreamDecoder("openai-chat")
    first = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    assert [len(events) for _, events in decoder.trace(first)] == [3]
    assert decoder.trace(b"data: {") == []
    assert decoder.trace_close("cancel") == []


NUMBERS = {"a number beyond all floats": "1e999", "an integer of 5000 digits": "9" * 5000}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS.keys())
def test_json_text_can_always_be_decoded(number: str) -> None:
    event = read("anthropic", [message_start(), f'{{"type":"new","x":{number}}}'])[1]
    assert isinstance(event, Raw)
    assert set(event.payload.decoded()) == {"type", "x"}


def test_a_completed_response_ends_all_the_same() -> None:
    assert read("openai-responses", [completed(MESSAGE)])[-1].type == "done"
