"""Ollama's own API: chunks of chat and generate, a JSON object a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamfold
from streamfold import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    Event,
    MediaBlock,
    MediaDelta,
    ReasoningBlock,
    ReasoningDelta,
    Start,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
)
from streamfold.events import StopReason
from tests.reading import TRUNCATED, done, json_of, raw, read, rows, usage
from tests.wires_more import OLLAMA, OLLAMA_COUNTS, ollama, tool

S = Start("ollama", None, "llama3.2")
SYNTHETIC = json_of({"synthetic_id": True})
OVER = [ollama(done=True, done_reason="stop")]
END = done("end", "stop")
COUNTS = usage(
    {"prompt_eval_count": 26, "eval_count": 28, "total_duration": 9}, input_tokens=26, output_tokens=28, total_tokens=54
)


def text(index: int, *pieces: str) -> list[Event]:
    whole = TextBlock(index, "".join(pieces))
    return [BlockStart(index, "text"), *[TextDelta(index, piece) for piece in pieces], BlockEnd(index, whole)]


def thought(index: int, *pieces: str) -> list[Event]:
    whole = "".join(pieces)
    block = ReasoningBlock(index, whole, (whole,))
    return [BlockStart(index, "reasoning"), *[ReasoningDelta(index, p) for p in pieces], BlockEnd(index, block)]


def called(index: int, id_: str, name: str, arguments: str, meta: Any = None) -> list[Event]:
    block = ToolCallBlock(index, id_, name, arguments, state="ready", meta=meta)
    deltas = [ToolCallDelta(index, id_, arguments)] if arguments != "{}" else []
    start = ToolCallStart(index, id_, name, meta=meta)
    return [start, *deltas, ToolCallDone(index, id_, name, arguments), BlockEnd(index, block)]


LAST = {"model": "m", "response": "", "done": True, "done_reason": "length", "context": [1]}
NO_CALL = ollama(tool_calls=[{"function": {}}])
LIKELY = ollama(content="a", logprobs=[{"token": "a"}])

STREAMS: dict[str, tuple[list[Any], list[Event]]] = {
    "text": (
        [
            ollama(content="Hel"),
            ollama(content="lo"),
            ollama(content="", done=True, done_reason="stop", **OLLAMA_COUNTS),
        ],
        [S, *text(0, "Hel", "lo"), COUNTS, END],
    ),
    "thinking comes first": (
        [ollama(thinking="Hm"), ollama(thinking=" so"), ollama(content="a"), *OVER],
        [S, *thought(0, "Hm", " so"), *text(1, "a"), END],
    ),
    "and may come again": (
        [ollama(content="a"), ollama(thinking="Hm"), ollama(content="b"), *OVER],
        [S, *text(0, "a"), *thought(1, "Hm"), *text(2, "b"), END],
    ),
    "calls come whole, with an id or without": (
        [ollama(tool_calls=[tool("add", {"x": 1}, id="call_9"), tool("now", {}, id="call_8")]), *OVER],
        [
            S,
            *called(0, "call_9", "add", '{"x":1}'),
            *called(1, "call_8", "now", "{}"),
            done("tool_use", "stop"),
        ],
    ),
    "the last chunk may say it all": (
        [ollama(content="a", done=True, done_reason="stop")],
        [S, *text(0, "a"), END],
    ),
    "generate": (
        [{"model": "m", "response": "a", "done": False}, LAST],
        [Start("ollama", None, "m"), *text(0, "a"), raw(LAST), done("length", "length")],
    ),
    "an image": (
        [{"model": "m", "image": "QUJD", "response": "", "done": True}],
        [
            Start("ollama", None, "m"),
            BlockStart(0, "media"),
            MediaDelta(0, None, b"ABC"),
            BlockEnd(0, MediaBlock(0, None, b"ABC")),
            done(None),
        ],
    ),
    "an empty chunk is raw": (
        [ollama(content="a"), ollama(content=""), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), raw(ollama(content="")), *text(0, "a")[2:], END],
    ),
    "log probabilities come out as raw too": (
        [LIKELY, *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), raw(LIKELY), *text(0, "a")[2:], END],
    ),
    "old servers name no reason": ([ollama(content="a"), ollama(done=True)], [S, *text(0, "a"), done(None)]),
    "progress of something else": (
        [{"status": "pulling"}, *OVER],
        [Start("ollama"), raw({"status": "pulling"}), S, END],
    ),
    "a call that says nothing": ([NO_CALL, *OVER], [S, raw(NO_CALL), END]),
    "a payload that is no object": (["5", *OVER], [Start("ollama"), raw("5"), S, END]),
    "an error ends the answer": (
        [ollama(content="a"), {"error": "it stopped"}],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockEnd(0, TextBlock(0, "a", complete=False)),
            ErrorEvent("provider", "it stopped", raw=json_of('"it stopped"')),
        ],
    ),
    "no last chunk is no end": (
        [ollama(content="a")],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockEnd(0, TextBlock(0, "a", complete=False)),
            TRUNCATED,
        ],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(STREAMS))
def test_streams(payloads: list[Any], events: list[Event]) -> None:
    assert read("ollama", payloads) == events


STOPS: dict[str, StopReason] = {"stop": "end", "length": "length", "load": "other", "unload": "other"}


@pytest.mark.parametrize(("word", "reason"), STOPS.items())
def test_done_reasons(word: str, reason: StopReason) -> None:
    assert read("ollama", [ollama(done=True, done_reason=word)]) == [S, done(reason, word)]


def test_calls_without_ids_get_their_own() -> None:
    stream = [ollama(tool_calls=[tool("add", {"x": 1}), tool("add", {"x": 1})]), *OVER]
    answer = streamfold.fold(stream, "ollama", framing="messages")
    first, second = answer.tool_calls
    assert first.id != second.id
    assert first.meta == second.meta == SYNTHETIC


def test_a_call_without_a_name_is_withheld() -> None:
    answer = streamfold.fold([ollama(tool_calls=[tool(None, {"x": 1})]), *OVER], "ollama", framing="messages")
    assert [(call.state, call.arguments) for call in answer.withheld_calls] == [("invalid", '{"x":1}')]


@pytest.mark.parametrize("framing", ["auto", "jsonl"])
@pytest.mark.parametrize("provider", ["ollama", "auto"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("name", OLLAMA)
def test_lines(name: str, end: str, provider: str, framing: Any) -> None:
    body = end.join(json.dumps(payload) for payload in OLLAMA[name]).encode()
    wanted = streamfold.fold(OLLAMA[name], "ollama", framing="messages")
    for size in (1, 7, 4096):
        for tail in (b"", end.encode()):
            whole = body + tail
            chunks = [whole[at : at + size] for at in range(0, len(whole), size)]
            answer = streamfold.fold(chunks, provider, framing=framing)
            assert (answer.text, answer.stop, answer.usage, answer.outcome) == (
                *(wanted.text, wanted.stop, wanted.usage, wanted.outcome),
            )


@pytest.mark.parametrize("framing", ["auto", "jsonl"])
def test_a_line_that_breaks_off_is_no_end(framing: Any) -> None:
    body = b'{"model":"m","message":{"content":"a"},"done":false}\n{"model":"m","mess'
    answer = streamfold.fold([body], "ollama", framing=framing)
    assert (answer.text, answer.outcome) == ("a", "truncated")
