"""xAI: one name for three dialects, and what its endpoints do otherwise than those they copy, sentence by sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamfold import Citation, Event, ReasoningBlock, Snapshot, StreamDecoder, TextBlock, ToolCallBlock, Usage
from streamfold.providers.by_shape import XAINormalizer
from tests.reading import fold, read, rows
from tests.wires import (
    MESSAGE_STOP,
    RESPONSES_USAGE,
    XAI,
    XAI_USAGE,
    Payload,
    added,
    block_delta,
    block_start,
    block_stop,
    call_chunk,
    chunk,
    completed,
    created,
    entry,
    event,
    finished,
    message_delta,
    message_start,
    numbered,
    of,
    without_index,
)


def answer_of(payloads: list[Any]) -> Snapshot:
    return fold(read("xai", payloads))


# -- which dialect ----------------------------------------------------------------------------------------------------

SURFACES: dict[str, tuple[str]] = {
    name: ({"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}[name.split(":")[0]],)
    for name in XAI
}


@pytest.mark.parametrize(("name", "surface"), [(name, surface) for name, (surface,) in SURFACES.items()])
def test_the_dialect_is_told_by_the_shape(name: str, surface: str) -> None:
    assert read("xai", XAI[name]) == read(surface, XAI[name]) == read("auto", XAI[name])
    assert answer_of(XAI[name]).surface == surface


def test_gemini_is_none_of_its_dialects() -> None:
    made = XAINormalizer()
    made.feed([b'{"candidates":[]}'] * 9)
    assert made.surface == "unknown"


# -- Chat Completions -------------------------------------------------------------------------------------------------


def test_reasoning_comes_before_a_whole_call_in_one_chunk() -> None:
    answer = answer_of(XAI["chat: reasoning, then a call in one chunk"])
    assert (answer.outcome, answer.stop.reason, answer.reasoning) == ("complete", "tool_use", "Hmm")
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == [
        ("call_1", "add", '{"x":1}'),
        ("call_2", "sub", "{}"),
    ]


def test_a_call_and_the_reason_in_one_chunk() -> None:
    """grok-2: the delta counts before the finish reason of the same chunk."""
    answer = answer_of(XAI["chat: call, reason and usage in one chunk (grok-2)"])
    assert [(call.id, call.name) for call in answer.tool_calls] == [("1", "add")]
    assert (answer.stop.reason, answer.outcome) == ("tool_use", "complete")


def test_the_reason_is_absent_before_the_end_and_the_role_on_every_delta() -> None:
    def words(piece: str) -> Payload:
        return {
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}],
        }

    answer = answer_of([words("Hel"), words("lo"), chunk({}, "stop"), "[DONE]"])
    assert (answer.text, answer.stop.reason) == ("Hello", "end")
    assert len(answer.blocks) == 1


def test_sources_on_the_last_chunk() -> None:
    (block,) = answer_of(XAI["chat: sources"]).blocks
    assert isinstance(block, TextBlock)
    assert [cited.url for cited in block.citations] == ["https://a", "https://b"]


REASONS = {"stop": ("stop", "end"), "length": ("length", "length"), "content_filter": ("content_filter", "refusal")}


@pytest.mark.parametrize(("word", "reason"), rows(REASONS))
def test_finish_reasons(word: str, reason: str) -> None:
    assert answer_of([chunk({"content": "a"}), chunk({}, word), "[DONE]"]).stop.reason == reason


# -- totals and costs -------------------------------------------------------------------------------------------------

TOGETHER: Payload = {
    "prompt_tokens": 10,
    "completion_tokens": 53,
    "total_tokens": 63,
    "completion_tokens_details": {"reasoning_tokens": 50},
}
APART: Payload = {**TOGETHER, "completion_tokens": 3, "cost_in_usd_ticks": 250_000}
RESPONSES: Payload = {
    "input_tokens": 10,
    "output_tokens": 53,
    "total_tokens": 63,
    "output_tokens_details": {"reasoning_tokens": 50},
    "cost_in_usd_ticks": 250_000,
}
DETAILED: Payload = {
    **XAI_USAGE,
    "prompt_tokens_details": {"text_tokens": 12, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 4},
    "completion_tokens_details": {
        "reasoning_tokens": 340,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
    "num_sources_used": 3,
}
Counts = tuple[int, int, int, int | None, float | None]
TOTALS: dict[str, tuple[str, Payload, Counts]] = {
    # dialect, usage -> input, output, total, reasoning, cost in dollars
    "chat: reasoning is beside the completion": ("chat", APART, (10, 53, 63, 50, 0.000025)),
    "chat: inside of it, where the total says so": ("chat", TOGETHER, (10, 53, 63, 50, None)),
    "chat: of a recording": ("chat", XAI_USAGE, (12, 342, 354, 340, 0.0037756)),
    "chat: what else it counts is kept": ("chat", DETAILED, (12, 342, 354, 340, 0.0037756)),
    "chat: no cost is no cost": ("chat", {**TOGETHER, "cost_in_usd_ticks": None}, (10, 53, 63, 50, None)),
    "chat: a cost of nothing (behind Azure)": ("chat", {**TOGETHER, "cost_in_usd_ticks": 0}, (10, 53, 63, 50, 0.0)),
    "responses: the same answer, counted inside": ("responses", RESPONSES, (10, 53, 63, 50, 0.000025)),
}


@pytest.mark.parametrize(("dialect", "members", "counts"), rows(TOTALS))
def test_totals(dialect: str, members: Payload, counts: Counts) -> None:
    stream = [created(), completed(usage=members)]
    if dialect == "chat":
        stream = [chunk({"content": "a"}, "stop"), {"object": "chat.completion.chunk", "choices": [], "usage": members}]
    told = answer_of(stream).usage
    assert isinstance(told, Usage)
    found = (told.input_tokens, told.output_tokens, told.total_tokens, told.reasoning_tokens, told.cost_usd)
    assert found == counts
    assert told.raw.decoded() == members  # type: ignore[union-attr]


def test_totals_on_every_chunk_are_running() -> None:
    """grok-2; they come once for each that is new, and the last one counts."""
    seen = [{"prompt_tokens": 5, "completion_tokens": n, "total_tokens": 5 + n} for n in (1, 1, 2)]
    events = read("xai", [chunk({"content": "a"}, usage=one) for one in seen] + [chunk({}, "stop")])
    assert [e.output_tokens for e in events if isinstance(e, Usage)] == [1, 2]


def test_the_last_chunk_is_spaced_as_no_other() -> None:
    text = "".join(
        f"data: {json.dumps(payload, separators=separators)}\n\n"
        for payload, separators in (
            (chunk({"content": "a"}), (",", ":")),
            (chunk({}, "stop"), (",", ":")),
            ({"object": "chat.completion.chunk", "choices": [], "usage": APART}, (", ", ": ")),
        )
    )
    decoder = StreamDecoder("xai")
    decoder.feed(text.encode() + b"data: [DONE]\n\n")
    told = decoder.snapshot().usage
    assert told is not None
    assert (told.output_tokens, told.cost_usd) == (53, 0.000025)


# -- Responses --------------------------------------------------------------------------------------------------------


def test_a_search_that_xai_ran_is_not_for_the_caller() -> None:
    answer = answer_of(XAI["responses: a search that xAI ran"])
    reasoning, search, web = answer.blocks
    assert isinstance(reasoning, ReasoningBlock)
    assert (reasoning.text, reasoning.encrypted) == ("Hm\n", "e")
    assert isinstance(search, ToolCallBlock)
    assert isinstance(web, ToolCallBlock)
    assert (search.id, search.name, search.arguments) == ("xs_call_1", "x_keyword_search", '{"q":1}')
    assert (search.executor, search.state, web.executor) == ("provider", "provider", "provider")
    assert (answer.tool_calls, answer.withheld_calls == (), answer.stop.reason) == ((), False, "end")


ID = "0a1b2c3d-0000-4000-8000-000000000000"
SEALED: dict[str, tuple[Payload, str | None]] = {
    "sealed, where xAI stores nothing": ({"encrypted_content": "e"}, "e"),
    "not sealed, where it does": ({}, None),
}


@pytest.mark.parametrize(("members", "sealed"), rows(SEALED))
@pytest.mark.parametrize("listed", [True, False], ids=["listed at the end", "not listed"])
def test_a_summary_that_nobody_asked_for(members: Payload, sealed: str | None, listed: bool) -> None:
    """Its ids are of a form of their own, its text ends in a line end, and the terminal list adds nothing to it."""
    thought = {"type": "reasoning", "id": f"rs_{ID}", "summary": [{"type": "summary_text", "text": "Hm\n"}], **members}
    said = {
        "type": "message",
        "id": f"msg_{ID}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi"}],
    }
    stream = numbered(
        created(ID, "grok"),
        added(0, type="reasoning", id=f"rs_{ID}", summary=[], status="in_progress"),
        of("reasoning_summary_text.delta", 0, f"rs_{ID}", summary_index=0, delta="Hm\n"),
        of("reasoning_summary_text.done", 0, f"rs_{ID}", summary_index=0, text="Hm\n"),
        finished(0, **thought),
        added(1, **{**said, "content": [], "status": "in_progress"}),
        of("output_text.delta", 1, f"msg_{ID}", content_index=0, delta="Hi"),
        finished(1, **said),
        completed(*([thought, said] if listed else []), id=ID, model="grok"),
    )
    answer = answer_of(stream)
    reasoning, _ = answer.blocks
    assert isinstance(reasoning, ReasoningBlock)
    assert (answer.id, answer.model, answer.text) == (ID, "grok", "Hi")
    assert (reasoning.text, reasoning.encrypted) == ("Hm\n", sealed)


def custom(call_id: str, name: str, item_id: str = "ctc_1") -> list[Payload]:
    item = {"type": "custom_tool_call", "id": item_id, "call_id": call_id, "name": name}
    return numbered(
        created(),
        added(0, **item, input="", status="in_progress"),
        of("custom_tool_call_input.delta", 0, item_id, delta="ls"),
        of("custom_tool_call_input.done", 0, item_id, input="ls"),
        finished(0, **item, input="ls", status="completed"),
        completed({**item, "input": "ls"}),
    )


CUSTOM: dict[str, tuple[str, str, str, str]] = {
    # call id, name -> who runs it, why it ends
    "of older recordings, by the id of the call": ("xs_call_12345678", "x_keyword_search", "provider", "end"),
    "by the id, whatever it is called": ("xs_call_1", "brand_new", "provider", "end"),
    "a tool of the caller": ("call-1", "shell", "client", "tool_use"),
}


@pytest.mark.parametrize(("call_id", "name", "executor", "reason"), rows(CUSTOM))
def test_who_runs_a_custom_tool(call_id: str, name: str, executor: str, reason: str) -> None:
    answer = answer_of(custom(call_id, name))
    (block,) = answer.blocks
    assert isinstance(block, ToolCallBlock)
    assert (block.executor, answer.stop.reason, len(answer.tool_calls)) == (executor, reason, int(reason == "tool_use"))


def test_a_function_call_in_one_delta_and_a_done_without_a_name() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call-1-0", "name": "add", "status": "completed"}
    stream = numbered(
        created("c0ffee", "grok"),
        added(0, **{**item, "status": "in_progress", "arguments": ""}),
        of("function_call_arguments.delta", 0, "fc_1", delta='{"x":1}'),
        of("function_call_arguments.done", 0, "fc_1", arguments='{"x":1}'),
        finished(0, **item, arguments='{"x":1}'),
        completed({**item, "arguments": '{"x":1}'}),
    )
    (call,) = answer_of(stream).tool_calls
    assert (call.id, call.name, call.arguments) == ("call-1-0", "add", '{"x":1}')


def test_sources_after_the_text_without_places() -> None:
    stream = numbered(
        created(),
        added(0, type="message", id="m", role="assistant", content=[]),
        of("output_text.delta", 0, "m", content_index=0, delta="See."),
        of(
            "output_text.annotation.added",
            0,
            "m",
            content_index=0,
            annotation_index=0,
            annotation={"type": "url_citation", "url": "https://a"},
        ),
        of("output_text.done", 0, "m", content_index=0, text="See."),
        completed(),
    )
    cited = [e for e in read("xai", stream) if isinstance(e, Citation)]
    assert [(c.url, c.title, c.start, c.end) for c in cited] == [("https://a", None, None, None)]


def frames(payloads: list[Payload], keep_alive: str) -> bytes:
    return "".join(f"{keep_alive}event: {p['type']}\ndata: {json.dumps(p)}\n\n" for p in payloads).encode()


@pytest.mark.parametrize("count", [1, 7, 100])
def test_keep_alives_are_comments_and_may_come_first(count: int) -> None:
    body = frames(XAI["responses: a search that xAI ran"], ": keepalive\n\n" * count)
    for provider in ("xai", "openai-responses", "auto"):
        for size in (1, 100, len(body)):
            decoder = StreamDecoder(provider)
            events: list[Event] = []
            for at in range(0, len(body), size):
                events += decoder.feed(body[at : at + size])
            assert decoder.snapshot() == answer_of(XAI["responses: a search that xAI ran"])
            assert not [e for e in events if e.type == "raw" and not e.is_json]


def test_totals_of_tools_are_kept() -> None:
    told = answer_of(XAI["responses: a search that xAI ran"]).usage
    assert told is not None
    assert told.cost_usd == 0.000025
    assert told.raw.decoded() == {**RESPONSES_USAGE, "cost_in_usd_ticks": 250_000, "num_server_side_tools_used": 1}  # type: ignore[union-attr]


def test_a_search_that_interleaves_with_others() -> None:
    video = {"type": "custom_tool_call", "id": "ctc_v_xs_call_2", "call_id": "xs_call_2", "name": "view_x_video"}
    web = [{"type": "web_search_call", "id": f"ws_{n}", "action": {"type": "search", "query": ""}} for n in range(2)]
    stream = numbered(
        created(),
        added(0, **video, input=""),
        added(1, **web[0], status="in_progress"),
        finished(1, **web[0], status="completed"),
        added(2, **web[1], status="in_progress"),
        of("custom_tool_call_input.delta", 0, video["id"], delta="{}"),
        finished(2, **web[1], status="completed"),
        of("custom_tool_call_input.done", 0, video["id"], input="{}"),
        finished(0, **video, input="{}", status="completed"),
        completed(),
    )
    answer = answer_of(stream)
    assert [(block.name, block.state) for block in answer.blocks if isinstance(block, ToolCallBlock)] == [
        ("view_x_video", "provider"),
        ("web_search", "provider"),
        ("web_search", "provider"),
    ]
    assert answer.stop.reason == "end"


def test_other_ends_are_those_of_openai() -> None:
    cut = event("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}})
    assert answer_of(numbered(created(), cut)).stop.reason == "length"
    failed = event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "m"}})
    answer = answer_of(numbered(created(), failed))
    assert (answer.outcome, answer.error and answer.error.code) == ("failed", "server_error")


# -- errors -----------------------------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[Any, str | None, str]] = {
    "a sentence and a word beside it": (
        {"code": "invalid-argument", "error": "Incorrect API key provided."},
        "invalid-argument",
        "Incorrect API key provided.",
    ),
    "an object": ({"error": {"message": "m", "code": "c"}}, "c", "m"),
    "a sentence alone": ({"error": "m"}, None, "m"),
}


@pytest.mark.parametrize(("body", "code", "message"), rows(ERRORS))
@pytest.mark.parametrize("provider", ["xai", "auto"])
def test_errors_before_the_stream(body: Payload, code: str | None, message: str, provider: str) -> None:
    decoder = StreamDecoder(provider)
    decoder.feed(json.dumps(body).encode())
    decoder.close()
    answer = decoder.snapshot()
    assert answer.error is not None
    assert (answer.outcome, answer.error.kind, answer.error.code, answer.error.message) == (
        "failed",
        "provider",
        code,
        message,
    )


# -- /v1/messages -----------------------------------------------------------------------------------------------------

THINKING = block_start(0, "thinking", thinking="")
TEXT = block_start(0, "text", text="")
OVER = [message_delta("end_turn"), MESSAGE_STOP]

MESSAGES: dict[str, tuple[list[Payload], list[tuple[str, str]]]] = {
    # payloads -> type and text of each block
    "two blocks of index 0, deltas without an index": (
        XAI["messages: two blocks of index 0, deltas without one"],
        [("reasoning", "Hm"), ("text", "Hi")],
    ),
    "each with its own stop": (
        [
            message_start(),
            THINKING,
            without_index(block_delta(0, "thinking_delta", thinking="Hm")),
            block_stop(0),
            TEXT,
            without_index(block_delta(0, "text_delta", text="Hi")),
            block_stop(0),
            *OVER,
        ],
        [("reasoning", "Hm"), ("text", "Hi")],
    ),
    "stops without an index": (
        [
            message_start(),
            THINKING,
            without_index(block_delta(0, "thinking_delta", thinking="Hm")),
            without_index(block_stop(0)),
            TEXT,
            without_index(block_delta(0, "text_delta", text="Hi")),
            without_index(block_stop(0)),
            *OVER,
        ],
        [("reasoning", "Hm"), ("text", "Hi")],
    ),
    "a delta of another type opens a block of its own": (
        [
            message_start(),
            THINKING,
            without_index(block_delta(0, "thinking_delta", thinking="Hm")),
            without_index(block_delta(0, "text_delta", text="Hi")),
            without_index(block_stop(0)),
            *OVER,
        ],
        [("reasoning", "Hm"), ("text", "Hi")],
    ),
}


@pytest.mark.parametrize(("payloads", "blocks"), rows(MESSAGES))
def test_messages(payloads: list[Payload], blocks: list[tuple[str, str]]) -> None:
    answer = answer_of(payloads)
    assert [(block.type, getattr(block, "text", "")) for block in answer.blocks] == blocks
    assert all(block.complete for block in answer.blocks)
    assert (answer.outcome, answer.stop.reason) == ("complete", "end")


def test_a_call_without_indexes() -> None:
    answer = answer_of(
        [
            message_start(),
            TEXT,
            without_index(block_delta(0, "text_delta", text="Hi")),
            block_start(0, "tool_use", id="t", name="add", input={}),
            without_index(block_delta(0, "input_json_delta", partial_json='{"x":')),
            without_index(block_delta(0, "input_json_delta", partial_json="1}")),
            block_stop(0),
            message_delta("tool_use"),
            MESSAGE_STOP,
        ]
    )
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [("t", '{"x":1}')]


# -- the whole of it --------------------------------------------------------------------------------------------------


def test_parallel_calls_in_one_chunk() -> None:
    both = call_chunk(
        entry('{"x":1}', "add", index=0, id="call_1", type="function"),
        entry('{"x":2}', "add", index=1, id="call_2", type="function"),
    )
    answer = answer_of([both, chunk({}, "tool_calls"), "[DONE]"])
    assert [(call.id, call.arguments) for call in answer.tool_calls] == [("call_1", '{"x":1}'), ("call_2", '{"x":2}')]
