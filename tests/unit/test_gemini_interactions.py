"""Gemini Interactions: both vocabularies, every step, delta, status and quirk of the page, sentence by sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Cursor,
    ErrorEvent,
    Event,
    JSONText,
    MediaBlock,
    MediaDelta,
    OtherBlock,
    ReasoningBlock,
    ReasoningDelta,
    Snapshot,
    Start,
    StreamDecoder,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResultBlock,
)
from streamfold.events import StopReason
from streamfold.providers.gemini_interactions import STATUSES, GeminiInteractionsNormalizer
from tests.reading import ORPHAN, TRUNCATED, done, fold, json_of, raw, read, rows, usage
from tests.wires import (
    COMPLETED,
    CREATED,
    IN_PROGRESS,
    INTERACTIONS,
    INTERACTIONS_USAGE,
    Payload,
    content_delta,
    content_start,
    content_stop,
    interaction,
    step_delta,
    step_start,
    step_stop,
)

S = Start("gemini-interactions", "v1_x", "gm")
UNNAMED = Start("gemini-interactions")
OLD = Start("gemini-interactions", "v1_x")
OVER = interaction("completed", "completed")
ACT = interaction("completed", "requires_action")
OLD_START, OLD_OVER = interaction("start", "in_progress"), interaction("complete", "completed")
END = done("end", "completed")
USED = done("tool_use", "requires_action")
USAGE = usage(INTERACTIONS_USAGE, input_tokens=5, output_tokens=5, reasoning_tokens=2, total_tokens=10)


def made_up(index: int) -> str:
    return f"id_{index}"


def events_of(payloads: list[Any], **settings: Any) -> list[Event]:
    return read("gemini-interactions", payloads, call_id=made_up, **settings)


def text(index: int, whole: str, *citations: Citation, complete: bool = True, meta: Any = None) -> BlockEnd:
    return BlockEnd(index, TextBlock(index, whole, citations, 0, complete, None if meta is None else json_of(meta)))


def thought(index: int, whole: str, **members: Any) -> BlockEnd:
    return BlockEnd(index, ReasoningBlock(index, whole, (whole,) if whole else (), **members))


def called(index: int, id_: str, name: str, arguments: str, meta: Any = None) -> list[Event]:
    known = None if meta is None else json_of(meta)
    block = ToolCallBlock(index, id_, name, arguments, state="ready", meta=known)
    return [ToolCallDone(index, id_, name, arguments), BlockEnd(index, block)]


def ran(index: int, id_: str, name: str, arguments: str, kind: str, meta: Any) -> list[Event]:
    block = ToolCallBlock(index, id_, name, arguments, kind, "provider", "provider", meta=json_of(meta))
    return [ToolCallDone(index, id_, name, arguments, executor="provider"), BlockEnd(index, block)]


def result(
    index: int, call_id: str, name: str, content: JSONText | None, meta: Any, is_error: bool = False
) -> BlockEnd:
    return BlockEnd(index, ToolResultBlock(index, call_id, name, content, is_error, meta=json_of(meta)))


def words(piece: str, index: int = 0) -> Payload:
    return step_delta(index, "text", text=piece)


def signs(signature: str, index: int = 0) -> Payload:
    return step_delta(index, "thought_signature", signature=signature)


def summary(piece: str, index: int = 0) -> Payload:
    return step_delta(index, "thought_summary", content={"type": "text", "text": piece})


def pieces(piece: Any, index: int = 0) -> Payload:
    return step_delta(index, "arguments_delta", arguments=piece)


OUTPUT = step_start(0, "model_output")
THOUGHT = step_start(0, "thought")
CALL = step_start(0, "function_call", id="c1", name="f", arguments={}, signature="")
SEARCH: Payload = {"type": "google_search_call"}
SEARCHED: Payload = {"type": "google_search_result"}
URL: Payload = {"type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 7}
NEW_DELTA = step_delta(0, "brand_new", x=1)

STEPS: dict[str, tuple[list[Any], list[Event]]] = {
    "text": (
        [CREATED, IN_PROGRESS, OUTPUT, words("Hel"), words("lo"), step_stop(0), COMPLETED, "[DONE]"],
        [
            S,
            raw(IN_PROGRESS),
            BlockStart(0, "text"),
            TextDelta(0, "Hel"),
            TextDelta(0, "lo"),
            text(0, "Hello"),
            USAGE,
            END,
        ],
    ),
    "the first step is a thought with nothing but a signature": (
        [CREATED, THOUGHT, signs("c2ln"), step_stop(0), OVER],
        [S, BlockStart(0, "reasoning"), raw(signs("c2ln"), 0), thought(0, "", signature="c2ln"), END],
    ),
    "of several signatures the last one that says something counts": (
        [CREATED, THOUGHT, summary("Hm"), signs("c2ln"), signs("c2lnMg=="), signs(""), step_stop(0), OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm"),
            raw(signs("c2ln"), 0),
            raw(signs("c2lnMg=="), 0),
            raw(signs(""), 0),
            thought(0, "Hm", signature="c2lnMg=="),
            END,
        ],
    ),
    "a call": (
        [CREATED, CALL, pieces('{"a":'), pieces("1}"), step_stop(0), ACT],
        [
            S,
            ToolCallStart(0, "c1", "f"),
            ToolCallDelta(0, "c1", '{"a":'),
            ToolCallDelta(0, "c1", "1}"),
            *called(0, "c1", "f", '{"a":1}'),
            USED,
        ],
    ),
    "a signature inside a call: a member of its step, and no thought": (
        [CREATED, CALL, signs("c2ln"), step_delta(0, "arguments_delta", arguments="{}"), signs(""), step_stop(0), ACT],
        [
            S,
            ToolCallStart(0, "c1", "f"),
            raw(signs("c2ln"), 0),
            ToolCallDelta(0, "c1", "{}"),
            raw(signs(""), 0),
            *called(0, "c1", "f", "{}", {"signature": "c2ln"}),
            USED,
        ],
    ),
    "the signature stands before the call, in its start": (
        [CREATED, step_start(0, "function_call", id="c1", name="f", arguments={}, signature="c2ln"), step_stop(0), ACT],
        [
            S,
            ToolCallStart(0, "c1", "f", meta=json_of({"signature": "c2ln"})),
            *called(0, "c1", "f", "{}", {"signature": "c2ln"}),
            USED,
        ],
    ),
    "the arguments of the start are a placeholder": (
        [CREATED, CALL, step_stop(0), ACT],
        [S, ToolCallStart(0, "c1", "f"), *called(0, "c1", "f", "{}"), USED],
    ),
    "unless no piece follows": (
        [CREATED, step_start(0, "function_call", id="c1", name="f", arguments={"a": 1}), step_stop(0), ACT],
        [
            S,
            ToolCallStart(0, "c1", "f"),
            ToolCallDelta(0, "c1", '{"a":1}'),
            *called(0, "c1", "f", '{"a":1}'),
            USED,
        ],
    ),
    "a call without an id gets one": (
        [CREATED, step_start(0, "function_call", name="f", arguments={}), step_stop(0), ACT],
        [
            S,
            ToolCallStart(0, "id_0", "f", meta=json_of({"synthetic_id": True})),
            *called(0, "id_0", "f", "{}", {"synthetic_id": True}),
            USED,
        ],
    ),
    "a search that Google ran: whole arguments in one delta, the signature too": (
        [
            CREATED,
            step_start(0, "google_search_call", id="s1"),
            step_delta(0, "google_search_call", arguments={"queries": ["q"]}, signature="c2ln"),
            step_stop(0),
            step_start(1, "google_search_result", call_id="s1"),
            step_delta(1, "google_search_result", result=[{"s": 1}], is_error=False, signature="c2lnMg=="),
            step_stop(1),
            OVER,
        ],
        [
            S,
            ToolCallStart(0, "s1", "web_search", "web_search", "provider", meta=json_of(SEARCH)),
            ToolCallDelta(0, "s1", '{"queries":["q"]}'),
            *ran(0, "s1", "web_search", '{"queries":["q"]}', "web_search", {**SEARCH, "signature": "c2ln"}),
            BlockStart(1, "tool_result", meta=json_of(SEARCHED)),
            result(1, "s1", "web_search", json_of([{"s": 1}]), {**SEARCHED, "signature": "c2lnMg=="}),
            END,
        ],
    ),
    "a call over MCP keeps the name of its server": (
        [
            CREATED,
            step_start(0, "mcp_server_tool_call", id="m1", name="find", server_name="s", arguments={"a": 1}),
            step_stop(0),
            step_start(1, "mcp_server_tool_result", call_id="m1", name="find", result="no", is_error=True),
            step_stop(1),
            OVER,
        ],
        [
            S,
            ToolCallStart(
                0, "m1", "find", "mcp", "provider", meta=json_of({"type": "mcp_server_tool_call", "server_name": "s"})
            ),
            ToolCallDelta(0, "m1", '{"a":1}'),
            *ran(0, "m1", "find", '{"a":1}', "mcp", {"type": "mcp_server_tool_call", "server_name": "s"}),
            BlockStart(1, "tool_result", meta=json_of({"type": "mcp_server_tool_result"})),
            result(1, "m1", "find", JSONText('"no"'), {"type": "mcp_server_tool_result"}, is_error=True),
            END,
        ],
    ),
    "a step that nobody knows": (
        [CREATED, step_start(0, "brand_new", a=1), step_stop(0), OVER],
        [
            S,
            BlockStart(0, "other"),
            BlockEnd(0, OtherBlock(0, "brand_new", json_of({"type": "brand_new", "a": 1}), meta=None)),
            END,
        ],
    ),
    "a delta that nobody knows": (
        [CREATED, OUTPUT, words("a"), NEW_DELTA, step_stop(0), OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), raw(NEW_DELTA, 0), text(0, "a"), END],
    ),
    "an image, whole": (
        [CREATED, OUTPUT, step_delta(0, "image", mime_type="image/png", data="QUJD"), step_stop(0), OVER],
        [
            S,
            BlockStart(0, "media", meta=json_of({"type": "image"})),
            MediaDelta(0, "image/png", b"ABC"),
            BlockEnd(0, MediaBlock(0, "image/png", b"ABC", meta=json_of({"type": "image"}))),
            END,
        ],
    ),
    "sound in pieces, cut inside a quartet": (
        [
            CREATED,
            OUTPUT,
            step_delta(0, "audio", mime_type="audio/pcm", data="QUJDR"),
            step_delta(0, "audio", data="EVG"),
            step_stop(0),
            OVER,
        ],
        [
            S,
            BlockStart(0, "media", meta=json_of({"type": "audio"})),
            MediaDelta(0, "audio/pcm", b"ABC"),
            MediaDelta(0, "audio/pcm", b"DEF"),
            BlockEnd(0, MediaBlock(0, "audio/pcm", b"ABCDEF", meta=json_of({"type": "audio"}))),
            END,
        ],
    ),
    "a document that lies elsewhere": (
        [CREATED, OUTPUT, step_delta(0, "document", mime_type="application/pdf", uri="https://d"), step_stop(0), OVER],
        [
            S,
            BlockStart(0, "media", meta=json_of({"type": "document"})),
            MediaDelta(0, "application/pdf", url="https://d"),
            BlockEnd(0, MediaBlock(0, "application/pdf", url="https://d", meta=json_of({"type": "document"}))),
            END,
        ],
    ),
    "text and media of one step are several blocks": (
        [CREATED, OUTPUT, words("a"), step_delta(0, "image", data="QUJD"), words("b"), step_stop(0), OVER],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "media", meta=json_of({"type": "image", "continues_step": True})),
            MediaDelta(1, None, b"ABC"),
            BlockEnd(1, MediaBlock(1, None, b"ABC", meta=json_of({"type": "image", "continues_step": True}))),
            BlockStart(2, "text", meta=json_of({"continues_step": True})),
            TextDelta(2, "b"),
            text(2, "b", meta={"continues_step": True}),
            END,
        ],
    ),
    "sources, their places in bytes of UTF-8": (
        [
            CREATED,
            OUTPUT,
            words("Grüße."),
            step_delta(0, "text_annotation_delta", annotations=[URL]),
            step_stop(0),
            OVER,
        ],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "Grüße."),
            Citation(0, "https://a", "A", None, 0, 5, json_of(URL)),
            text(0, "Grüße.", Citation(0, "https://a", "A", None, 0, 5, json_of(URL))),
            END,
        ],
    ),
    "content in the start of the step": (
        [
            CREATED,
            step_start(0, "model_output", content=[{"type": "text", "text": "Hel"}]),
            words("lo"),
            step_stop(0),
            OVER,
        ],
        [S, BlockStart(0, "text"), TextDelta(0, "Hel"), TextDelta(0, "lo"), text(0, "Hello"), END],
    ),
    "a summary in the start of the step": (
        [
            CREATED,
            step_start(0, "thought", summary=[{"type": "text", "text": "Hm"}], signature="c2ln"),
            step_stop(0),
            OVER,
        ],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm"),
            raw(step_start(0, "thought", summary=[{"type": "text", "text": "Hm"}], signature="c2ln"), 0),
            thought(0, "Hm", signature="c2ln"),
            END,
        ],
    ),
    "a step that failed inside of a running interaction": (
        [CREATED, step_start(0, "model_output", error={"code": "internal", "message": "m"}), step_stop(0), OVER],
        [
            S,
            ErrorEvent("provider", "m", "internal", fatal=False, raw=json_of({"code": "internal", "message": "m"})),
            END,
        ],
    ),
    "the same in the vocabulary of old": (
        [
            OLD_START,
            content_start(0, "thought"),
            content_delta(0, "thought_summary", content={"type": "text", "text": "Hm"}),
            content_delta(0, "thought_signature", signature="c2ln"),
            content_stop(0),
            content_start(1, "text"),
            content_delta(1, "text", text="Grüße."),
            content_delta(1, "text_annotation", annotations=[URL]),
            content_stop(1),
            OLD_OVER,
        ],
        [
            OLD,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm"),
            raw(content_delta(0, "thought_signature", signature="c2ln"), 0),
            thought(0, "Hm", signature="c2ln"),
            BlockStart(1, "text"),
            TextDelta(1, "Grüße."),
            Citation(1, "https://a", "A", None, 0, 5, json_of(URL)),
            text(1, "Grüße.", Citation(1, "https://a", "A", None, 0, 5, json_of(URL))),
            END,
        ],
    ),
    "a call of old: the start has only an id, one delta has all the rest": (
        [
            OLD_START,
            content_start(0, "function_call", id="c1"),
            content_delta(0, "function_call", id="c1", name="f", arguments={"a": 1}),
            content_stop(0),
            OLD_OVER,
        ],
        [
            OLD,
            ToolCallStart(0, "c1", "f"),
            ToolCallDelta(0, "c1", '{"a":1}'),
            *called(0, "c1", "f", '{"a":1}'),
            done("tool_use", "completed"),
        ],
    ),
    "both vocabularies in one stream": (
        [CREATED, OUTPUT, content_delta(0, "text", text="a"), content_stop(0), OLD_OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "steps that interleave after all": (
        [
            CREATED,
            OUTPUT,
            step_start(1, "model_output"),
            words("a"),
            words("b", 1),
            words("c"),
            step_stop(0),
            step_stop(1),
            OVER,
        ],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockStart(1, "text"),
            TextDelta(1, "b"),
            TextDelta(0, "c"),
            text(0, "ac"),
            text(1, "b"),
            END,
        ],
    ),
    "an index that is used again is a fresh step": (
        [CREATED, OUTPUT, words("a"), OUTPUT, words("b"), step_stop(0), OVER],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "text"),
            TextDelta(1, "b"),
            text(1, "b"),
            END,
        ],
    ),
    "a delta without a step opens one": (
        [CREATED, words("a"), words("b"), step_stop(0), OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), text(0, "ab"), END],
    ),
    "arguments without a step are nobody's": (
        [CREATED, pieces("{}"), OVER],
        [S, raw(pieces("{}")), ORPHAN, END],
    ),
    "a stop without a step is raw": ([CREATED, step_stop(3), OVER], [S, raw(step_stop(3)), END]),
    "an event that nobody knows": (
        [CREATED, {"event_type": "brand.new", "a": 1}, OVER],
        [S, raw({"event_type": "brand.new", "a": 1}), END],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(STEPS))
def test_steps(payloads: list[Any], events: list[Event]) -> None:
    assert events_of(payloads) == events


# -- ends -------------------------------------------------------------------------------------------------------------

REASONS: dict[str, tuple[str, StopReason]] = {
    "completed": ("completed", "end"),
    "requires_action": ("requires_action", "tool_use"),
    "incomplete": ("incomplete", "length"),
    "budget_exceeded": ("budget_exceeded", "length"),
    "requires_continuation": ("requires_continuation", "pause"),
    "cancelled": ("cancelled", "cancelled"),
    "canceled, as the WebSocket spells it": ("canceled", "cancelled"),
    "a status that nobody knows": ("brand_new", "other"),
}


def test_what_names_no_index_is_of_the_step_that_came_last() -> None:
    opened, piece = step_start(0, "thought"), step_delta(0, "thought_signature", signature="c2ln")
    summary = step_delta(0, "thought_summary", content={"type": "text", "text": "Hm"})
    del opened["index"], piece["index"]
    events = read("gemini-interactions", [CREATED, opened, summary, piece, COMPLETED])  # in every way there is
    assert [event.index for event in events if event.type == "raw" and event.name == "step.delta"] == [1]


@pytest.mark.parametrize(("status", "reason"), rows(REASONS))
@pytest.mark.parametrize("kind", ["completed", "complete"])
def test_final_statuses(status: str, reason: StopReason, kind: str) -> None:
    answer = fold(events_of([CREATED, OUTPUT, words("a"), step_stop(0), interaction(kind, status)]))
    assert (answer.outcome, answer.text, answer.stop.reason, answer.stop.raw) == ("complete", "a", reason, status)


def test_every_final_status_has_a_row() -> None:
    assert set(STATUSES) <= {status for status, _ in REASONS.values()}


@pytest.mark.parametrize("status", ["queued", "in_progress", "idle"])
def test_a_run_that_goes_on_is_not_finished(status: str) -> None:
    answer = fold(events_of([CREATED, OUTPUT, words("a"), step_stop(0), interaction("completed", status)]))
    assert (answer.outcome, answer.text) == ("truncated", "a")


FAILED = interaction("completed", "failed", usage=INTERACTIONS_USAGE, error={"code": "internal", "message": "m"})
FAULT: Payload = {"code": "gateway_timeout", "message": "m"}
ERROR: Payload = {"error": FAULT, "event_type": "error"}
SAID = ErrorEvent("provider", "m", "gateway_timeout", raw=json_of(FAULT))
TOKEN = interaction("completed", "requires_continuation", continuation_token="tok")
CHECKPOINT: Payload = {**IN_PROGRESS, "continuation_token": "tok"}

ENDS: dict[str, tuple[list[Any], list[Event]]] = {
    "[DONE] behind the end changes nothing": ([CREATED, OVER, "[DONE]"], [S, END]),
    "[DONE] without an end": ([CREATED, "[DONE]"], [S, TRUNCATED]),
    "the end of the stream without an end": ([CREATED], [S, TRUNCATED]),
    "the end of the stream inside a step": (
        [CREATED, OUTPUT, words("a")],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), TRUNCATED],
    ),
    "plainly completed, with calls of the client": (
        [CREATED, CALL, step_stop(0), OVER],
        [S, ToolCallStart(0, "c1", "f"), *called(0, "c1", "f", "{}"), done("tool_use", "completed")],
    ),
    "an end without a status": ([CREATED, {"event_type": "interaction.completed"}], [S, done("end", "completed")]),
    "an interaction that failed": (
        [CREATED, FAILED],
        [
            S,
            USAGE,
            ErrorEvent("provider", "m", "internal", retryable=True, raw=json_of({"code": "internal", "message": "m"})),
        ],
    ),
    "an error, and no done after it": (
        [CREATED, OUTPUT, words("a"), ERROR, "[DONE]"],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), SAID],
    ),
    "a name by its status": (
        [CREATED, CALL, step_stop(0), interaction("requires_action", "requires_action")],
        [S, ToolCallStart(0, "c1", "f"), *called(0, "c1", "f", "{}"), USED],
    ),
    "a step that was not stopped: text is taken as it is": (
        [CREATED, OUTPUT, words("a"), OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "and a call is not": (
        [CREATED, CALL, pieces("{}"), ACT],
        [
            S,
            ToolCallStart(0, "c1", "f"),
            ToolCallDelta(0, "c1", "{}"),
            BlockEnd(0, ToolCallBlock(0, "c1", "f", "{}", state="cut", complete=False)),
            USED,
        ],
    ),
    "a token to continue with": ([CREATED, TOKEN], [S, raw(TOKEN), done("pause", "requires_continuation")]),
    "checkpoints in between": ([CREATED, CHECKPOINT, OVER], [S, raw(CHECKPOINT), END]),
}


@pytest.mark.parametrize(("payloads", "events"), rows(ENDS))
def test_ends(payloads: list[Any], events: list[Event]) -> None:
    assert [_plain(event) for event in events_of(payloads)] == [_plain(event) for event in events]


def _plain(event: Event) -> Event:
    """Whether waiting helps is for the table of errors to say."""
    if isinstance(event, ErrorEvent) and event.kind == "provider":
        return ErrorEvent(event.kind, event.message, event.code, fatal=event.fatal, raw=event.raw)
    return event


# -- names, totals ----------------------------------------------------------------------------------------------------

NAMES: dict[str, tuple[list[Payload], tuple[str | None, str | None]]] = {
    "in the start": ([CREATED, OVER], ("v1_x", "gm")),
    "in the status alone": ([IN_PROGRESS, {"event_type": "interaction.completed"}], ("v1_x", None)),
    "of an agent": ([interaction("created", "in_progress", agent="deep"), OVER], ("v1_x", "deep")),
    "in the end alone": ([OUTPUT, step_stop(0), interaction("completed", "completed", model="gm")], ("v1_x", "gm")),
}


@pytest.mark.parametrize(("payloads", "names"), rows(NAMES))
def test_names(payloads: list[Payload], names: tuple[str | None, str | None]) -> None:
    answer = fold(events_of(payloads))
    assert (answer.id, answer.model) == names


FULL: Payload = {
    "total_input_tokens": 7,
    "total_output_tokens": 3,
    "total_thought_tokens": 2,
    "total_tool_use_tokens": 4,
    "total_cached_tokens": 5,
    "total_tokens": 16,
    "input_tokens_by_modality": [{"modality": "text", "tokens": 4}, {"modality": "audio", "tokens": 3}],
    "output_tokens_by_modality": [{"modality": "image", "tokens": 3}],
    "grounding_tool_count": [{"type": "google_search", "count": 1}],
}
FULL_TOLD = usage(
    FULL,
    input_tokens=11,
    output_tokens=5,
    total_tokens=16,
    reasoning_tokens=2,
    cache_read_tokens=5,
    input_audio_tokens=3,
    output_image_tokens=3,
)
EARLY: Payload = {"total_input_tokens": 5, "total_tokens": 5}
EARLY_TOLD = usage(EARLY, input_tokens=5, total_tokens=5)

TOTALS: dict[str, tuple[list[Payload], list[Any]]] = {
    "thoughts beside the output, tools beside the input": (
        [CREATED, interaction("completed", "completed", usage=FULL)],
        [FULL_TOLD],
    ),
    "in the metadata of the start and of a delta, once": (
        [
            {**CREATED, "metadata": {"usage": EARLY}},
            OUTPUT,
            words("a"),
            {**words("b"), "metadata": {"usage": EARLY}},
            step_stop(0),
            COMPLETED,
        ],
        [EARLY_TOLD, USAGE],
    ),
    "by the name that the official client types": (
        [CREATED, {**IN_PROGRESS, "metadata": {"total_usage": EARLY}}, OVER],
        [EARLY_TOLD],
    ),
    "with the stop of a step; what the step alone used is raw": (
        [CREATED, OUTPUT, step_stop(0, usage=INTERACTIONS_USAGE, step_usage={"total_tokens": 3}), OVER],
        [USAGE],
    ),
    "none": ([CREATED, OVER], []),
}


@pytest.mark.parametrize(("payloads", "told"), rows(TOTALS))
def test_totals(payloads: list[Payload], told: list[Any]) -> None:
    assert [event for event in events_of(payloads) if event.type == "usage"] == told


# -- the wire ---------------------------------------------------------------------------------------------------------


def frames(*payloads: Any) -> bytes:
    lines = []
    for payload in payloads:
        name = "done" if payload == "[DONE]" else payload["event_type"]
        lines.append(f"event: {name}\ndata: {payload if payload == '[DONE]' else json.dumps(payload)}\n\n")
    return "".join(lines).encode()


REFUSAL = b'{"error":{"code":"prohibited_content","message":"no"}}\n'
BODIES: dict[str, tuple[bytes, str, str]] = {
    "a stream": (frames(CREATED, OUTPUT, words("a"), step_stop(0), OVER, "[DONE]"), "a", "complete"),
    "a refusal as one bare line": (frames(CREATED, IN_PROGRESS) + REFUSAL, "", "failed"),
    "a refusal as one bare line in the middle": (frames(CREATED, OUTPUT, words("a")) + REFUSAL, "a", "failed"),
    "a refusal before anything": (REFUSAL, "", "failed"),
    "[DONE] and nothing else": (frames(CREATED, "[DONE]"), "", "truncated"),
    "an answer that did not stream": (
        json.dumps(INTERACTIONS["an interaction that did not stream"][0], indent=2).encode(),
        "Hi",
        "complete",
    ),
}


@pytest.mark.parametrize(("body", "told", "outcome"), rows(BODIES))
@pytest.mark.parametrize("provider", ["gemini", "gemini-interactions", "auto"])
def test_bodies(body: bytes, told: str, outcome: str, provider: str) -> None:
    for size in (1, 7, len(body)):
        decoder = StreamDecoder(provider)
        for at in range(0, len(body), size):
            decoder.feed(body[at : at + size])
        decoder.close()
        answer = decoder.snapshot()
        assert (answer.text, answer.outcome) == (told, outcome), size
        if outcome == "failed":
            assert answer.error is not None
            assert answer.error.code == "prohibited_content"


def untyped(payload: Payload) -> bytes:
    bare = {name: value for name, value in payload.items() if name != "event_type"}
    return f"event: {payload['event_type']}\ndata: {json.dumps(bare)}\n\n".encode()


def test_without_a_type_the_frame_s_name_counts() -> None:
    decoder = StreamDecoder("gemini-interactions")
    for payload in (CREATED, OUTPUT, words("a"), step_stop(0), OVER):
        decoder.feed(untyped(payload))
    assert (decoder.snapshot().text, decoder.snapshot().outcome) == ("a", "complete")


# -- runs in the background -------------------------------------------------------------------------------------------

RUN = INTERACTIONS["in the background"]


def numbered(*payloads: Payload) -> list[bytes]:
    return [json.dumps(payload).encode() for payload in payloads]


def test_the_cursor_is_the_last_event_id() -> None:
    made = GeminiInteractionsNormalizer()
    for payload in RUN:
        made.feed(numbered(payload))
        assert made.cursor == Cursor("v1_x", None, payload["event_id"])


def test_without_event_ids_there_is_none() -> None:
    made = GeminiInteractionsNormalizer()
    made.feed(numbered(CREATED, OUTPUT, words("a")))
    assert made.cursor == Cursor("v1_x")


@pytest.mark.parametrize("cut", range(1, len(RUN)))
@pytest.mark.parametrize("replayed", ["all of it", "what comes after", "the last one again"])
def test_what_another_connection_repeats_is_dropped(cut: int, replayed: str) -> None:
    """A server begins after the event that it is told, or with the first one."""
    first = {"all of it": 0, "what comes after": cut, "the last one again": cut - 1}[replayed]
    made = GeminiInteractionsNormalizer()
    events = made.feed(numbered(*RUN[:cut]))
    made.replay()
    events += made.feed(numbered(*RUN[first:]))
    events += made.close()
    assert fold(events) == whole()


def whole() -> Snapshot:
    return fold(read("gemini-interactions", RUN))


def test_the_last_signature_is_in_the_cursor() -> None:
    made = GeminiInteractionsNormalizer()
    made.feed(numbered(CREATED, THOUGHT, signs("c2ln"), signs("")))
    assert made.cursor.last_signature == "c2ln"


@pytest.mark.parametrize(("mode", "count"), [("all", 3), ("unknown", 1), ("none", 0)])
def test_which_raw_events_are_handed_out(mode: Any, count: int) -> None:
    events = events_of(
        [CREATED, IN_PROGRESS, THOUGHT, signs("c2ln"), {"event_type": "new"}, step_stop(0), OVER], raw=mode
    )
    assert sum(event.type == "raw" for event in events) == count
    assert fold(events).blocks == (ReasoningBlock(0, signature="c2ln"),)
