"""Token counts: where each surface keeps which number, how running totals merge, and what is never worked out."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import Usage
from tests.reading import json_of, read, rows
from tests.wires import MESSAGE_STOP, Payload, chunk, completed, message_delta, message_start

STOP = chunk({}, "stop")


def totals(provider: str, payloads: list[Any]) -> list[Usage]:
    return [event for event in read(provider, payloads) if isinstance(event, Usage)]


def counts(usage: Usage) -> dict[str, Any]:
    """The numbers that were reported."""
    names = [name for name in usage.__struct_fields__ if name != "raw"]
    return {name: getattr(usage, name) for name in names if getattr(usage, name) is not None}


def chat(*objects: Any, **top: Any) -> list[Payload]:
    return [*({"choices": [], "usage": members, **top} for members in objects), STOP]


BASE = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
IN_OUT = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}

CHAT: dict[str, tuple[Any, dict[str, Any]]] = {
    "the three counts": (BASE, IN_OUT),
    "cached and audio input, reasoning and audio output are parts": (
        {
            **BASE,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 1, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": 2, "rejected_prediction_tokens": 1},
        },
        {
            **IN_OUT,
            "cache_read_tokens": 4,
            "cache_write_tokens": 2,
            "input_audio_tokens": 1,
            "reasoning_tokens": 3,
            "output_audio_tokens": 2,
        },
    ),
    "reasoning inside, as the total adds up without it": (
        {**BASE, "completion_tokens_details": {"reasoning_tokens": 7}},
        {**IN_OUT, "reasoning_tokens": 7},
    ),
    "reasoning on top, as the total adds up only with it (xAI chat)": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 2,
            "total_tokens": 354,
            "completion_tokens_details": {"reasoning_tokens": 340},
        },
        {"input_tokens": 12, "output_tokens": 342, "total_tokens": 354, "reasoning_tokens": 340},
    ),
    "more reasoning than output, and no total to ask: on top": (
        {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 9}},
        {"input_tokens": 5, "output_tokens": 16, "total_tokens": 21, "reasoning_tokens": 9},
    ),
    "more reasoning than output, yet the total says inside (Doubleword)": (
        {**BASE, "completion_tokens_details": {"reasoning_tokens": 9}},
        {**IN_OUT, "reasoning_tokens": 9},
    ),
    "a total that is no sum stays the provider's (Mistral audio)": (
        {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 99},
        {**IN_OUT, "total_tokens": 99},
    ),
    "without a total it is the sum": ({"prompt_tokens": 5, "completion_tokens": 7}, IN_OUT),
    "no sum of one part": ({"prompt_tokens": 5}, {"input_tokens": 5}),
    "nulls are not reported": (
        {"prompt_tokens": 5, "completion_tokens": None, "total_tokens": None, "prompt_tokens_details": None},
        {"input_tokens": 5},
    ),
    "zeros are": (
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    ),
    "whole floats count, booleans and text do not": (
        {"prompt_tokens": 5.0, "completion_tokens": 7.5, "total_tokens": True, "cached_tokens": "4"},
        {"input_tokens": 5},
    ),
    "hits and misses of the cache (DeepSeek)": (
        {**BASE, "prompt_cache_hit_tokens": 2, "prompt_cache_miss_tokens": 3},
        {**IN_OUT, "cache_read_tokens": 2},
    ),
    "cached_tokens at the top (Together)": ({**BASE, "cached_tokens": 2}, {**IN_OUT, "cache_read_tokens": 2}),
    "reasoning_tokens at the top (Copilot)": ({**BASE, "reasoning_tokens": 2}, {**IN_OUT, "reasoning_tokens": 2}),
    "cost in dollars (OpenRouter)": ({**BASE, "cost": 0.0025, "is_byok": False}, {**IN_OUT, "cost_usd": 0.0025}),
    "cost as an object (Perplexity)": (
        {**BASE, "cost": {"input_tokens_cost": 0.001, "total_cost": 0.006}},
        {**IN_OUT, "cost_usd": 0.006},
    ),
    "cost in ticks (xAI)": ({**BASE, "cost_in_usd_ticks": 37_756_000}, {**IN_OUT, "cost_usd": 0.0037756}),
    "ticks are divided, not multiplied by what no float holds": (
        {**BASE, "cost_in_usd_ticks": 4_321_000},
        {**IN_OUT, "cost_usd": 0.0004321},
    ),
    "a cost beyond all floats is none": ({**BASE, "cost": 10**400}, IN_OUT),
    "no ticks are no cost, which is a report too": ({**BASE, "cost_in_usd_ticks": 0}, {**IN_OUT, "cost_usd": 0.0}),
    "timings and speeds are no counts (Groq, mistral.rs)": (
        {**BASE, "queue_time": 0.1, "total_time": 0.2, "avg_tok_per_sec": 30.5},
        IN_OUT,
    ),
}


@pytest.mark.parametrize(("members", "numbers"), rows(CHAT))
def test_where_chat_keeps_its_counts(members: Any, numbers: dict[str, Any]) -> None:
    found = totals("openai-chat", chat(members))
    assert [counts(usage) for usage in found] == [numbers]
    assert [usage.raw for usage in found] == [json_of(members)]


RUNNING: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "each replaces the one before": (
        [{**BASE, "completion_tokens": n, "total_tokens": 5 + n} for n in (1, 2)],
        [
            {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6},
            {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
        ],
    ),
    "what does not change is told once": ([BASE, BASE], [IN_OUT]),
    "totals can go down": (
        [BASE, {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}],
        [IN_OUT, {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}],
    ),
    "one with its own total replaces all, also what it leaves out": (
        [{**BASE, "cached_tokens": 4}, {"prompt_tokens": 6, "completion_tokens": 7, "total_tokens": 13}],
        [{**IN_OUT, "cache_read_tokens": 4}, {"input_tokens": 6, "output_tokens": 7, "total_tokens": 13}],
    ),
    "one without merges member by member": (
        [{"prompt_tokens": 5}, {"completion_tokens": 7}, {"completion_tokens": 8}],
        [
            {"input_tokens": 5},
            {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12},
            {"input_tokens": 5, "output_tokens": 8, "total_tokens": 13},
        ],
    ),
    "the last that is not null wins (Databricks)": (
        [
            {"prompt_tokens": 5, "completion_tokens": None, "total_tokens": None},
            {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
            {"prompt_tokens": 5, "completion_tokens": None, "total_tokens": None},
        ],
        [{"input_tokens": 5}, IN_OUT],
    ),
    "objects inside merge too": (
        [
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 1}},
            {"prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": None}},
        ],
        [
            {"input_tokens": 5, "cache_read_tokens": 4, "input_audio_tokens": 1},
            {"input_tokens": 5, "cache_read_tokens": 3, "input_audio_tokens": 1},
        ],
    ),
    "no object, or an empty one, says nothing": ([BASE, None, {}, [], 7], [IN_OUT]),
}


@pytest.mark.parametrize(("objects", "numbers"), RUNNING.values(), ids=RUNNING.keys())
def test_running_totals(objects: list[Any], numbers: list[dict[str, Any]]) -> None:
    assert [counts(usage) for usage in totals("openai-chat", chat(*objects))] == numbers


def test_raw_is_what_was_merged() -> None:
    merged = totals("openai-chat", chat({"prompt_tokens": 5, "x": 1}, {"completion_tokens": 7, "x": None}))[-1]
    assert merged.raw == json_of({"prompt_tokens": 5, "x": 1, "completion_tokens": 7})


def test_cost_beside_the_usage() -> None:
    """Venice keeps it at the top of the chunk."""
    found = totals("openai-chat", chat(BASE, cost={"usd": 0.01, "diem": 0.02}))
    assert [counts(usage) for usage in found] == [{**IN_OUT, "cost_usd": 0.01}]


def test_groq_counts_in_two_places() -> None:
    last = chunk({}, "stop", x_groq={"usage": BASE}, usage=BASE)
    assert [counts(usage) for usage in totals("openai-chat", [last])] == [IN_OUT]


RESPONSES: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "input, output and their parts": (
        {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
            "output_tokens": 6,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 15,
        },
        [
            {
                "input_tokens": 9,
                "output_tokens": 6,
                "total_tokens": 15,
                "reasoning_tokens": 2,
                "cache_read_tokens": 4,
                "cache_write_tokens": 1,
            }
        ],
    ),
    "reasoning inside (xAI counts otherwise here than on chat)": (
        {
            "input_tokens": 10,
            "output_tokens": 53,
            "total_tokens": 63,
            "output_tokens_details": {"reasoning_tokens": 50},
            "cost_in_usd_ticks": 250_000,
            "num_sources_used": 3,
            "context_details": {"input_tokens": 1, "output_tokens": 1},
        },
        [{"input_tokens": 10, "output_tokens": 53, "total_tokens": 63, "reasoning_tokens": 50, "cost_usd": 0.000025}],
    ),
    "null": (None, []),
    "empty": ({}, []),
}


@pytest.mark.parametrize(("members", "numbers"), RESPONSES.values(), ids=RESPONSES.keys())
def test_where_responses_keeps_its_counts(members: Any, numbers: list[dict[str, Any]]) -> None:
    assert [counts(usage) for usage in totals("openai-responses", [completed(usage=members)])] == numbers


def test_tool_usage_is_no_part_of_usage() -> None:
    done = completed(
        usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}, tool_usage={"image_gen": {"input_tokens": 9}}
    )
    assert counts(totals("openai-responses", [done])[0]) == {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


ANTHROPIC: dict[str, tuple[Any, Any, list[dict[str, Any]]]] = {
    "the whole input is what was read, what was written to the cache, and what came from it": (
        {"input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 1},
        {"output_tokens": 8},
        [
            {
                "input_tokens": 33,
                "output_tokens": 1,
                "total_tokens": 34,
                "cache_read_tokens": 20,
                "cache_write_tokens": 10,
            },
            {
                "input_tokens": 33,
                "output_tokens": 8,
                "total_tokens": 41,
                "cache_read_tokens": 20,
                "cache_write_tokens": 10,
            },
        ],
    ),
    "the split by time to live is not added": (
        {
            "input_tokens": 3,
            "cache_creation_input_tokens": 10,
            "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6},
        },
        None,
        [{"input_tokens": 13, "cache_write_tokens": 10}],
    ),
    "what the delta has overwrites, also downwards": (
        {"input_tokens": 60_385, "cache_read_input_tokens": 55_096, "output_tokens": 1},
        {"input_tokens": 612, "cache_read_input_tokens": 0, "output_tokens": 9},
        [
            {"input_tokens": 115_481, "output_tokens": 1, "total_tokens": 115_482, "cache_read_tokens": 55_096},
            {"input_tokens": 612, "output_tokens": 9, "total_tokens": 621, "cache_read_tokens": 0},
        ],
    ),
    "what it lacks or has as null stays": (
        {"input_tokens": 43, "cache_read_input_tokens": 2, "output_tokens": 1},
        {"input_tokens": None, "output_tokens": 9},
        [
            {"input_tokens": 45, "output_tokens": 1, "total_tokens": 46, "cache_read_tokens": 2},
            {"input_tokens": 45, "output_tokens": 9, "total_tokens": 54, "cache_read_tokens": 2},
        ],
    ),
    "thinking is part of the output": (
        {"input_tokens": 1},
        {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 4}},
        [{"input_tokens": 1}, {"input_tokens": 1, "output_tokens": 9, "total_tokens": 10, "reasoning_tokens": 4}],
    ),
    "passes, and searches, are not added": (
        {"input_tokens": 1, "output_tokens": 1},
        {
            "output_tokens": 9,
            "iterations": [{"type": "compaction", "input_tokens": 500, "output_tokens": 50}],
            "server_tool_use": {"web_search_requests": 2},
        },
        [
            {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
            {"input_tokens": 1, "output_tokens": 9, "total_tokens": 10},
        ],
    ),
    "a start without usage": (None, {"output_tokens": 9}, [{"output_tokens": 9}]),
    "no usage at all": (None, None, []),
    "a total of the provider's own stands": (
        {"input_tokens": 1, "output_tokens": 2, "total_tokens": 30},
        None,
        [{"input_tokens": 1, "output_tokens": 2, "total_tokens": 30}],
    ),
    "a cost that the provider reports": (
        {"input_tokens": 1, "cost": 0.25},
        None,
        [{"input_tokens": 1, "cost_usd": 0.25}],
    ),
    "nothing that counts": ({"service_tier": "standard"}, {"speed": "fast"}, []),
}


@pytest.mark.parametrize(("start", "delta", "numbers"), rows(ANTHROPIC))
def test_where_anthropic_keeps_its_counts(start: Any, delta: Any, numbers: list[dict[str, Any]]) -> None:
    found = totals("anthropic", [message_start(start), message_delta("end_turn", delta), MESSAGE_STOP])
    assert [counts(usage) for usage in found] == numbers


def test_a_fresh_start_forgets_the_totals_of_the_one_before() -> None:
    stream = [
        message_start({"input_tokens": 7, "output_tokens": 1}),
        message_start({"input_tokens": 3}, id="msg_2"),
        message_delta("end_turn", {"output_tokens": 2}),
        MESSAGE_STOP,
    ]
    assert [counts(usage) for usage in totals("anthropic", stream)][-1] == {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
    }


def test_metrics_of_the_transport_are_no_usage() -> None:
    stop = {**MESSAGE_STOP, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 97, "outputTokenCount": 133}}
    found = totals(
        "anthropic", [message_start({"input_tokens": 3}), {"type": "vertex_event", "usage": {"input_tokens": 99}}, stop]
    )
    assert [counts(usage) for usage in found] == [{"input_tokens": 3}]


def test_usage_comes_before_the_end() -> None:
    streams: dict[str, list[Any]] = {
        "openai-chat": [
            STOP,
            {"choices": [], "usage": BASE},
            {"error": {"message": "x"}, "usage": {**BASE, "prompt_tokens": 6}},
        ],
        "openai-responses": [
            {"type": "response.failed", "response": {"status": "failed", "usage": {"input_tokens": 1}}}
        ],
        "anthropic": [message_start({"input_tokens": 3}), {"type": "error", "error": {"type": "api_error"}}],
    }
    for provider, payloads in streams.items():
        kinds = [event.type for event in read(provider, payloads)]
        assert kinds[-2:] == ["usage", "error"], provider
