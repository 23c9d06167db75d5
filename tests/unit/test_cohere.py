"""Cohere's v2 chat: every event of the vendor's list."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    CohereNormalizer,
    ErrorEvent,
    Event,
    ReasoningBlock,
    ReasoningDelta,
    Restart,
    Start,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    Usage,
)
from streamfold.events import StopReason
from tests.reading import ORPHAN, TRUNCATED, done, json_of, raw, read, rows, usage
from tests.wires import Payload
from tests.wires_more import (
    CITATION,
    COHERE_START,
    COUNTED,
    call_delta,
    call_start,
    cohere,
    content,
    content_end,
    content_start,
    message_end,
)

S = Start("cohere", "m1")
COUNTS = usage(COUNTED, input_tokens=30, output_tokens=4, total_tokens=34, cache_read_tokens=16)
END = [COUNTS, done("end", "COMPLETE")]
CALLED = [COUNTS, done("tool_use", "TOOL_CALL")]
OVER = [message_end()]


def said(index: int, whole: str, *citations: Citation, complete: bool = True) -> BlockEnd:
    return BlockEnd(index, TextBlock(index, whole, citations, complete=complete))


def text(index: int, *pieces: str) -> list[Event]:
    return [BlockStart(index, "text"), *[TextDelta(index, p) for p in pieces], said(index, "".join(pieces))]


def thought(index: int, whole: str, meta: Any = None) -> list[Event]:
    block = ReasoningBlock(index, whole, (whole,), meta=meta)
    return [BlockStart(index, "reasoning", meta=meta), ReasoningDelta(index, whole), BlockEnd(index, block)]


def called(index: int, id_: str, name: str, arguments: str) -> list[Event]:
    block = ToolCallBlock(index, id_, name, arguments, state="ready")
    return [ToolCallDone(index, id_, name, arguments), BlockEnd(index, block)]


PLAN = json_of({"member": "tool_plan"})
CITED = Citation(0, "https://example.org", "T", "s", 0, 5, json_of(CITATION))
CITES = cohere("citation-start", 0, message={"citations": CITATION})
PLANS = cohere("tool-plan-delta", message={"tool_plan": "I will"})
OF_PLAN = cohere("citation-start", 0, message={"citations": {"start": 0, "end": 1, "type": "PLAN"}})
BACKWARDS = cohere("citation-start", 0, message={"citations": {"start": 5, "end": 3}})
NO_CITATION = cohere("citation-start", 0, message={"citations": "c"})
CITATION_END = cohere("citation-end", 0)
CALL_END = cohere("tool-call-end", 0)
DEBUG = cohere("debug", prompt="p")
LIKELY: Payload = {**content("a"), "logprobs": {"logprobs": [-0.1]}}

STREAMS: dict[str, tuple[list[Any], list[Event]]] = {
    "text": (
        [COHERE_START, content_start(), content("Hel"), content("lo"), content_end(), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "Hel"), TextDelta(0, "lo"), said(0, "Hello"), *END],
    ),
    "a start that brings text": (
        [
            COHERE_START,
            cohere("content-start", 0, message={"content": {"type": "text", "text": "a"}}),
            content_end(),
            *OVER,
        ],
        [S, *text(0, "a"), *END],
    ),
    "thinking": (
        [COHERE_START, content_start("thinking"), content("Hm", member="thinking"), content_end(), *OVER],
        [S, *thought(0, "Hm"), *END],
    ),
    "a plan is reasoning, and ends where the calls begin": (
        [
            COHERE_START,
            cohere("tool-plan-delta", message={"tool_plan": "I will"}),
            call_start(0, "c", "add"),
            call_delta(0, '{"x":1}'),
            CALL_END,
            message_end("TOOL_CALL"),
        ],
        [
            S,
            *thought(0, "I will", PLAN),
            ToolCallStart(1, "c", "add"),
            ToolCallDelta(1, "c", '{"x":1}'),
            *called(1, "c", "add", '{"x":1}'),
            *CALLED,
        ],
    ),
    "or where the message ends": (
        [COHERE_START, cohere("tool-plan-delta", message={"tool_plan": "I will"}), *OVER],
        [S, *thought(0, "I will", PLAN), *END],
    ),
    "calls are numbered apart from contents": (
        [COHERE_START, content_start(), call_start(0, "c", "now"), content("a"), CALL_END, content_end(), *OVER],
        [
            S,
            BlockStart(0, "text"),
            ToolCallStart(1, "c", "now"),
            TextDelta(0, "a"),
            *called(1, "c", "now", "{}"),
            said(0, "a"),
            COUNTS,
            done("tool_use", "COMPLETE"),
        ],
    ),
    "the call of an event may be a list of one": (
        [
            COHERE_START,
            cohere("tool-call-start", 0, message={"tool_calls": [{"id": "c", "function": {"name": "now"}}]}),
            CALL_END,
            message_end("TOOL_CALL"),
        ],
        [S, ToolCallStart(0, "c", "now"), *called(0, "c", "now", "{}"), *CALLED],
    ),
    "a piece that no call waits for": (
        [COHERE_START, call_delta(3, "{"), *OVER],
        [S, raw(call_delta(3, "{")), ORPHAN, *END],
    ),
    "a citation, by its places in the text": (
        [COHERE_START, content_start(), content("Hello"), CITES, CITATION_END, content_end(), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "Hello"), CITED, raw(CITATION_END), said(0, "Hello", CITED), *END],
    ),
    "one whose text is over is raw": (
        [COHERE_START, content_start(), content("Hello"), content_end(), CITES, *OVER],
        [S, *text(0, "Hello"), raw(CITES), *END],
    ),
    "log probabilities come out as raw too": (
        [COHERE_START, content_start(), LIKELY, content_end(), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), raw(LIKELY), said(0, "a"), *END],
    ),
    "a delta of another kind has a block of its own": (
        [COHERE_START, content_start("thinking"), content("Hm", member="thinking"), content("a"), content_end(), *OVER],
        [S, *thought(0, "Hm"), *text(1, "a"), *END],
    ),
    "a citation of the plan, or of thoughts, is raw": (
        [COHERE_START, PLANS, OF_PLAN, content_start(), content("a"), OF_PLAN, content_end(), *OVER],
        [
            S,
            *thought(0, "I will", PLAN)[:2],
            raw(OF_PLAN),
            thought(0, "I will", PLAN)[2],
            *text(1, "a")[:2],
            raw(OF_PLAN),
            *text(1, "a")[2:],
            *END,
        ],
    ),
    "places that end before they begin are none": (
        [COHERE_START, content_start(), content("a"), BACKWARDS, content_end(), *OVER],
        [
            S,
            *text(0, "a")[:2],
            Citation(0, raw=json_of({"start": 5, "end": 3})),
            said(0, "a", Citation(0, raw=json_of({"start": 5, "end": 3}))),
            *END,
        ],
    ),
    "a citation that is none": ([COHERE_START, NO_CITATION, *OVER], [S, raw(NO_CITATION), *END]),
    "a payload that is no object": ([COHERE_START, "5", *OVER], [S, raw("5"), *END]),
    "what has no meaning": (
        [COHERE_START, DEBUG, {"type": "new"}, *OVER],
        [S, raw(DEBUG), raw({"type": "new"}), *END],
    ),
    "what is open at the end broke off": (
        [COHERE_START, content_start(), content("a"), message_end("MAX_TOKENS")],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            COUNTS,
            said(0, "a", complete=False),
            done("length", "MAX_TOKENS"),
        ],
    ),
    "an end that is a failure": (
        [COHERE_START, content_start(), content("a"), message_end("ERROR", error="internal")],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            COUNTS,
            said(0, "a", complete=False),
            ErrorEvent("provider", "internal", "ERROR", 500, retryable=True, raw=json_of('"internal"')),
        ],
    ),
    "an error in the place of an event": (
        [COHERE_START, {"message": "invalid request"}],
        [S, ErrorEvent("provider", "invalid request", raw=json_of({"message": "invalid request"}))],
    ),
    "a message that starts again": (
        [COHERE_START, content_start(), content("a"), {**COHERE_START, "id": "m2"}, *OVER],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            said(0, "a", complete=False),
            Restart("message-start"),
            Start("cohere", "m2"),
            *END,
        ],
    ),
    "no message-end is no end": (
        [COHERE_START, content_start(), content("a"), content_end()],
        [S, *text(0, "a"), TRUNCATED],
    ),
    "what follows the end says nothing": ([COHERE_START, *OVER, "[DONE]", DEBUG], [S, *END]),
}


@pytest.mark.parametrize(("payloads", "events"), rows(STREAMS))
def test_streams(payloads: list[Any], events: list[Event]) -> None:
    assert read("cohere", payloads) == events


STOPS: dict[str, StopReason] = {
    "COMPLETE": "end",
    "STOP_SEQUENCE": "end",
    "TOOL_CALL": "tool_use",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "refusal",
    "USER_CANCEL": "cancelled",
    "SOMETHING_NEW": "other",
}


@pytest.mark.parametrize(("word", "reason"), STOPS.items())
def test_finish_reasons(word: str, reason: StopReason) -> None:
    assert read("cohere", [COHERE_START, message_end(word)])[-1] == done(reason, word)


@pytest.mark.parametrize(("word", "status"), [("ERROR", 500), ("TIMEOUT", 504)])
def test_failures(word: str, status: int) -> None:
    error = read("cohere", [COHERE_START, message_end(word)])[-1]
    assert isinstance(error, ErrorEvent)
    assert (error.code, error.status, error.retryable) == (word, status, True)


def test_tokens_count_and_not_what_is_billed() -> None:
    told = {
        "billed_units": {"input_tokens": 1},
        "tokens": {"input_tokens": 9, "output_tokens": 8, "reasoning_tokens": 7},
    }
    events = read("cohere", [COHERE_START, message_end(usage=told)])
    counted = usage(told, input_tokens=9, output_tokens=8, total_tokens=17, reasoning_tokens=7)
    assert [event for event in events if isinstance(event, Usage)] == [counted]


def test_done_does_not_wait_for_the_sentinel() -> None:
    assert CohereNormalizer().feed([COHERE_START, *OVER])[-1].type == "done"
