"""Chat Completions as each host serves it: one short answer a row, in the layout of that host's wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamfold import Snapshot, StreamDecoder, TextBlock
from streamfold.events import StopReason
from tests.reading import rows
from tests.wires import CHAT_USAGE, Payload, call_chunk, chunk, detail, entry

END = "data: [DONE]\n\n"
PROCESSING = ": OPENROUTER PROCESSING\n\n"


def framed(*payloads: Payload, end: str = END, between: str = "") -> bytes:
    """The payloads in frames, ``between`` before each; the wire ends in ``end``."""
    return ("".join(f"{between}data: {json.dumps(p, separators=(',', ':'))}\n\n" for p in payloads) + end).encode()


def dressed(delta: Any, **choice: Any) -> Payload:
    """A chunk whose choice has only the members that are named: no ``finish_reason`` that is null."""
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **choice}]}


def counted(**members: Any) -> Payload:
    return {"object": "chat.completion.chunk", "choices": [], "usage": {**CHAT_USAGE, **members}}


@dataclass
class Facts:
    """What the answer must say; a call is its id, name and arguments."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    reason: StopReason | None = "end"
    raw: str | None = "stop"
    outcome: str = "complete"
    usage: dict[str, Any] | None = None
    model: str | None = None


COUNTS = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
CALLED = [("call_a", "add", '{"x":1}')]
PERPLEXITY = {"citations": ["https://a"], "search_results": [{"url": "https://a", "title": "A"}]}


def perplexity(piece: str, so_far: str, finish: str | None = None, **usage: Any) -> Payload:
    """One of its chunks: the delta, the whole message so far, all sources and the totals once more."""
    return {
        "id": "p",
        "object": "chat.completion.chunk",
        "model": "sonar",
        "usage": {**CHAT_USAGE, **usage},
        **PERPLEXITY,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": so_far},
                "delta": {"role": "assistant", "content": piece},
            }
        ],
    }


def running(tokens: int | None) -> Payload:
    total = None if tokens is None else 5 + tokens
    return {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": total}


HOSTS: dict[str, tuple[bytes, Facts]] = {
    "OpenAI: the role first, the reason on an empty delta, the totals on a chunk without choices": (
        framed(
            chunk({"role": "assistant", "content": "", "refusal": None}, id="c1", model="m", usage=None),
            chunk({"content": "Hi"}, id="c1", model="m", usage=None, obfuscation="x9"),
            chunk({}, "stop", id="c1", model="m", usage=None, obfuscation="x"),
            {**counted(), "id": "c1", "model": "m", "obfuscation": "x99"},
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "Azure: nothing in the first chunk but the filter's word on the prompt": (
        framed(
            {"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": [{}]},
            chunk({"role": "assistant", "content": "Hi"}, id="a", model="m"),
            dressed({}, finish_reason=None, content_filter_results={"hate": {"filtered": False}}),
            chunk({}, "stop", id="a", model="m"),
            {**counted(latency_checkpoint={"engine_ttft_ms": 9}), "obfuscation": "x"},
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "Azure AI Foundry, grok: reasoning, a whole call, totals in JSON with blanks and a cost of nothing": (
        framed(
            chunk({"role": "assistant", "content": "", "reasoning_content": "Hm"}, id="g", model="grok"),
            call_chunk(entry('{"x":1}', "add", index=0, id="call_a", type="function")),
            chunk({}, "tool_calls"),
            end=f"data: {json.dumps(counted(cost_in_usd_ticks=0))}\n\n{END}",
        ),
        Facts("", "Hm", CALLED, "tool_use", "tool_calls", usage={**COUNTS, "cost_usd": 0.0}, model="grok"),
    ),
    "DeepSeek: keep-alives, reasoning beside a null content, the totals with the reason": (
        framed(
            chunk({"role": "assistant", "content": None, "reasoning_content": ""}, id="d", model="m"),
            chunk({"content": None, "reasoning_content": "Hm"}, id="d", model="m"),
            chunk({"content": "Hi", "reasoning_content": None}, id="d", model="m"),
            chunk(
                {"content": "", "reasoning_content": None},
                "stop",
                id="d",
                model="m",
                usage={**CHAT_USAGE, "prompt_cache_hit_tokens": 2, "prompt_cache_miss_tokens": 3},
            ),
            between=": keep-alive\n\n",
        ),
        Facts("Hi", "Hm", usage={**COUNTS, "cache_read_tokens": 2}, model="m"),
    ),
    "OpenRouter: comments between, reasoning told under two names, the reason told twice": (
        framed(
            chunk(
                {"role": "assistant", "content": "", "reasoning": "Hm", "reasoning_details": [detail("Hm")]},
                id="o",
                model="m",
                provider="P",
            ),
            chunk({"role": "assistant", "content": "Hi"}, id="o", model="m", provider="P"),
            dressed({"role": "assistant", "content": ""}, finish_reason="stop", native_finish_reason="end_turn"),
            {
                **dressed({"role": "assistant", "content": ""}, finish_reason="stop", native_finish_reason="end_turn"),
                "usage": {**CHAT_USAGE, "cost": 0.01, "is_byok": False, "cost_details": {}},
            },
            between=PROCESSING,
        ),
        Facts("Hi", "Hm", usage={**COUNTS, "cost_usd": 0.01}, model="m"),
    ),
    "OpenRouter: an error in an ordinary chunk, and [DONE] all the same": (
        framed(
            chunk({"role": "assistant", "content": "Hi"}, id="o", model="m"),
            chunk({"content": ""}, "error", error={"code": 502, "message": "up"}, usage=CHAT_USAGE),
        ),
        Facts("Hi", reason=None, raw=None, outcome="failed", usage=COUNTS, model="m"),
    ),
    "Groq: the totals within x_groq, reasoning in a channel, a whole call": (
        framed(
            chunk({"role": "assistant", "content": None}, id="q", model="m", x_groq={"id": "req", "seed": 1}),
            chunk({"reasoning": "Hm", "channel": "analysis"}, id="q", model="m"),
            call_chunk(entry('{"x":1}', "add", index=0, id="call_a", type="function")),
            chunk({}, "tool_calls", x_groq={"id": "req", "usage": {**CHAT_USAGE, "queue_time": 0.1}}),
        ),
        Facts("", "Hm", CALLED, "tool_use", "tool_calls", usage=COUNTS, model="m"),
    ),
    "Groq: a failure is an event of its own, and nothing follows": (
        framed(
            chunk({"role": "assistant", "content": "Hi"}, id="q", model="m"),
            end='event: error\ndata: {"error":{"message":"up","type":"invalid_request_error","code":"tool_use_failed",'
            '"failed_generation":"<f>","status_code":400}}\n\n',
        ),
        Facts("Hi", reason=None, raw=None, outcome="failed", model="m"),
    ),
    "Groq, compound models: each chunk has another id": (
        framed(
            chunk({"role": "assistant", "content": "H"}, id="one", model="m"),
            chunk({"content": "i", "executed_tools": [{"index": 0, "type": "search"}]}, id="two", model="m"),
            chunk({}, "stop", id="stub", model="m", usage=CHAT_USAGE, usage_breakdown={"models": []}),
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "Mistral: a list for content, whole calls without an index, padding": (
        framed(
            chunk(
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "closed": False}],
                },
                id="m",
                model="m",
                p="abc",
            ),
            chunk({"content": "Hi"}, id="m", model="m", p="abcdef"),
            call_chunk(
                entry('{"x":1}', "add", id="a23456789"), entry('{"x":2}', "add", id="b23456789"), finish="tool_calls"
            )
            | {"usage": CHAT_USAGE},
        ),
        Facts(
            "Hi",
            "Hm",
            [("a23456789", "add", '{"x":1}'), ("b23456789", "add", '{"x":2}')],
            "tool_use",
            "tool_calls",
            usage=COUNTS,
            model="m",
        ),
    ),
    "Mistral: the last text and the reason in one chunk": (
        framed(chunk({"content": "H"}, id="m"), chunk({"content": "i"}, "length", id="m", usage=CHAT_USAGE)),
        Facts("Hi", reason="length", raw="length", usage=COUNTS),
    ),
    "Mistral, incremental: later names are empty": (
        framed(
            call_chunk(entry("", "add", index=0, id="call_a", type="function")),
            call_chunk(entry('{"x"', "", index=0, id="null")),
            call_chunk(entry(":1}", "", index=0, id="null"), finish="tool_calls"),
        ),
        Facts(calls=CALLED, reason="tool_use", raw="tool_calls"),
    ),
    "Ollama: role and empty content on every chunk, a whole call": (
        framed(
            chunk({"role": "assistant", "content": "", "reasoning": "Hm"}, id="chatcmpl-123", model="m"),
            chunk({"role": "assistant", "content": "Hi"}, id="chatcmpl-123", model="m"),
            chunk(
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [entry('{"x":1}', "add", index=0, id="call_a", type="function")],
                },
                id="chatcmpl-123",
            ),
            chunk({"role": "assistant", "content": ""}, "tool_calls", id="chatcmpl-123"),
            counted(),
        ),
        Facts("Hi", "Hm", CALLED, "tool_use", "tool_calls", usage=COUNTS, model="m"),
    ),
    "Ollama, older: a call without an index, and a plain stop": (
        framed(
            chunk({"role": "assistant", "content": "", "tool_calls": [entry('{"x":1}', "add", id="call_a")]}),
            chunk({"role": "assistant", "content": ""}, "stop"),
        ),
        Facts(calls=CALLED, reason="tool_use", raw="stop"),
    ),
    "llama.cpp: progress before anything, timings at the end": (
        framed(
            {**chunk(), "choices": [], "id": "l", "model": "m", "prompt_progress": {"total": 9, "processed": 4}},
            chunk({"role": "assistant", "content": None}, id="l", model="m"),
            chunk({"reasoning_content": "Hm"}, id="l", model="m"),
            call_chunk(entry("", "add", index=0, id="call_a", type="function")),
            call_chunk(entry('{"x":1}', index=0)),
            chunk({}, "tool_calls", id="l", model="m"),
            {**counted(), "id": "l", "model": "m", "timings": {"prompt_n": 5, "predicted_n": 7, "cache_n": 0}},
        ),
        Facts("", "Hm", CALLED, "tool_use", "tool_calls", usage=COUNTS, model="m"),
    ),
    "vLLM: a stop_reason beside the finish reason, tokens beside the text, running totals": (
        framed(
            chunk({"role": "assistant", "content": ""}, id="v", model="m", usage=running(0), prompt_token_ids=[1, 2]),
            {**dressed({"content": "Hi"}, finish_reason=None, token_ids=[3], stop_reason=None), "usage": running(1)},
            {**dressed({"content": ""}, finish_reason="stop", stop_reason=151645, token_ids=[]), "usage": running(2)},
            {**counted(), "usage": running(7)},
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "mistral.rs: rates within the totals": (
        framed(
            chunk({"role": "assistant", "content": None, "reasoning_content": "Hm"}, id="r", model="m"),
            chunk({"role": "assistant", "content": "Hi"}, id="r", model="m"),
            chunk({"role": "assistant", "content": ""}, "stop", usage={**CHAT_USAGE, "avg_tok_per_sec": 30.5}),
        ),
        Facts("Hi", "Hm", usage=COUNTS, model="m"),
    ),
    "GPUStack: never [DONE], a reason is the end": (
        framed(
            chunk({"role": "assistant", "content": None, "reasoning_content": "Hm"}, id="s", model="m"),
            chunk({"content": "Hi"}, id="s", model="m"),
            chunk({}, "stop", usage={**CHAT_USAGE, "tokens_per_second": 30.5, "draft_tokens": None}),
            end="",
        ),
        Facts("Hi", "Hm", usage=COUNTS, model="m"),
    ),
    "GPUStack: neither [DONE] nor a reason is a cut": (
        framed(chunk({"content": "Hi"}, id="s", model="m"), end=""),
        Facts("Hi", reason=None, raw=None, outcome="truncated", model="m"),
    ),
    "Perplexity: CRLF, pings in comments, the whole message beside the delta, totals on every chunk, never [DONE]": (
        framed(
            perplexity("<think>Hm</think>", "<think>Hm</think>", **running(1)),
            perplexity("Hi", "<think>Hm</think>Hi", **running(6)),
            perplexity("", "<think>Hm</think>Hi", "stop", cost={"total_cost": 0.006}, search_context_size="low"),
            end="",
            between=": ping - 2026-11-30 00:00:00+00:00\n\n",
        ).replace(b"\n", b"\r\n"),
        Facts("<think>Hm</think>Hi", usage={**COUNTS, "cost_usd": 0.006}, model="sonar"),
    ),
    "Together: text once more beside the delta": (
        framed(
            {**dressed({"role": "assistant", "content": "H", "token_id": 7}, text="H", seed=None), "id": "t"},
            {**dressed({"role": "assistant", "content": "i", "token_id": 8}, text="i", seed=None), "id": "t"},
            {
                **dressed({"role": "assistant", "content": "", "token_id": 9}, text="", finish_reason="stop", seed=1),
                "usage": {**CHAT_USAGE, "cached_tokens": 2},
            },
        ),
        Facts("Hi", usage={**COUNTS, "cache_read_tokens": 2}),
    ),
    "Cerebras by a router: no finish_reason before the end, a whole call, never [DONE]": (
        framed(
            {**dressed({"role": "assistant"}), "id": "x", "model": "m"},
            {**dressed({"reasoning": "Hm"}), "id": "x", "model": "m"},
            dressed({"tool_calls": [entry('{"x":1}', "add", index=0, id="call_a", type="function")]}),
            {**dressed({}, finish_reason="tool_calls"), "usage": CHAT_USAGE, "time_info": {"queue_time": 0.1}},
            end="",
        ),
        Facts("", "Hm", CALLED, "tool_use", "tool_calls", usage=COUNTS, model="m"),
    ),
    "Novita by a router: metrics of its own beside the choices": (
        framed(
            chunk({"role": "assistant", "content": "Hi"}, id="n", model="m", sla_metrics={"ttft": 1}),
            chunk({}, "stop", id="n", model="m"),
            {**counted(), "sla_metrics": {"ttft": 1}},
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "DashScope: later fragments repeat an empty id and a null name": (
        framed(
            chunk({"role": "assistant", "content": None, "reasoning_content": "Hm"}, id="k", model="m"),
            call_chunk(entry("", "add", index=0, id="call_a", type="function")),
            call_chunk({"index": 0, "id": "", "type": "function", "function": {"name": None, "arguments": '{"x"'}}),
            call_chunk({"index": 0, "id": "", "type": "function", "function": {"name": None, "arguments": ":1}"}}),
            chunk({"content": ""}, "tool_calls"),
            counted(),
        ),
        Facts("", "Hm", CALLED, "tool_use", "tool_calls", usage=COUNTS, model="m"),
    ),
    "Z.ai: the role on every chunk, a whole call": (
        framed(
            {**dressed({"role": "assistant", "reasoning_content": "Hm"}), "id": "z", "model": "m"},
            {**dressed({"role": "assistant", "content": "Hi"}), "id": "z", "model": "m"},
            dressed(
                {
                    "role": "assistant",
                    "tool_calls": [entry('{"x":1}', "add", index=0, id="call_a", type="function")],
                }
            ),
            {**dressed({"role": "assistant", "content": ""}, finish_reason="tool_calls"), "usage": CHAT_USAGE},
        ),
        Facts("Hi", "Hm", CALLED, "tool_use", "tool_calls", usage=COUNTS, model="m"),
    ),
    "Databricks: totals on every chunk, null until the end": (
        framed(
            chunk({"role": "assistant", "content": "H"}, id="msg_bdrk_1", model="m", usage=running(None)),
            chunk({"content": "i"}, id="msg_bdrk_1", model="m", usage=running(None)),
            chunk({"content": ""}, "stop", id="msg_bdrk_1", model="m", usage=running(7)),
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "Cloudflare: no role, no finish_reason before the end": (
        framed(
            {**dressed({"content": "H"}), "id": "id-1700000000000", "model": "m"},
            {**dressed({"content": "i"}), "id": "id-1700000000000", "model": "m"},
            {**dressed({}, finish_reason="stop"), "usage": CHAT_USAGE},
        ),
        Facts("Hi", usage=COUNTS, model="m"),
    ),
    "Snowflake: no reason ever, no id, calls that are null": (
        framed(
            {
                "id": "",
                "created": 0,
                "model": "m",
                "choices": [{"delta": {"content": "H", "tool_calls": None, "reasoning_details": [detail("Hm")]}}],
            },
            {"id": "", "created": 0, "model": "m", "choices": [{"delta": {"content": "i", "tool_calls": None}}]},
            {"id": "", "created": 0, "model": "m", "choices": [], "usage": CHAT_USAGE},
        ),
        Facts("Hi", "Hm", reason=None, raw=None, usage=COUNTS, model="m"),
    ),
    "Copilot: a first chunk as Azure's, no object, reasoning counted at the top": (
        framed(
            {"choices": [], "created": 0, "id": "", "prompt_filter_results": [{}]},
            {"id": "p", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hi", "role": "assistant"}}]},
            {
                "id": "p",
                "model": "m",
                "choices": [{"index": 0, "delta": {"content": None}, "finish_reason": "stop"}],
                "usage": {**CHAT_USAGE, "reasoning_tokens": 2},
                "copilot_usage": {"token_details": []},
            },
        ),
        Facts("Hi", usage={**COUNTS, "reasoning_tokens": 2}, model="m"),
    ),
    "Venice: nulls for what is absent, reasoning sealed, a cost at the top": (
        framed(
            chunk(
                {"role": "assistant", "content": None, "reasoning_content": "Hm", "tool_calls": None}, id="v", model="m"
            ),
            chunk({"content": None, "reasoning_content": None, "reasoning_encrypted": "c2VhbA=="}, id="v", model="m"),
            chunk({"content": "Hi", "reasoning_content": None, "tool_calls": None}, id="v", model="m"),
            chunk({"content": None}, "stop", usage=CHAT_USAGE, cost={"usd": 0.01, "diem": 0.02}),
        ),
        Facts("Hi", "Hm", usage={**COUNTS, "cost_usd": 0.01}, model="m"),
    ),
    "Doubleword: reasoning under two names, the reason told twice, more reasoning than output": (
        framed(
            chunk({"role": "assistant", "reasoning": "Hm", "reasoning_details": [detail("Hm")]}, id="w", model="m"),
            chunk({"content": "Hi"}, id="w", model="m"),
            chunk({}, "stop", id="w", model="m"),
            chunk({}, "stop", usage={**CHAT_USAGE, "completion_tokens_details": {"reasoning_tokens": 9}}),
        ),
        Facts("Hi", "Hm", usage={**COUNTS, "reasoning_tokens": 9}, model="m"),
    ),
    "Anthropic behind a proxy: the first call has index 1, nothing is counted": (
        framed(
            chunk({"role": "assistant", "content": "Hi"}, id="y", model="m"),
            call_chunk(entry("", "add", index=1, id="call_a", type="function")),
            call_chunk(entry('{"x":1}', index=1)),
            chunk({}, "tool_calls"),
        ),
        Facts("Hi", calls=CALLED, reason="tool_use", raw="tool_calls", model="m"),
    ),
}


def answer_of(body: bytes, provider: str, size: int) -> Snapshot:
    decoder = StreamDecoder(provider)
    for at in range(0, len(body), size):
        decoder.feed(body[at : at + size])
    decoder.close()
    return decoder.snapshot()


@pytest.mark.parametrize(("body", "facts"), rows(HOSTS))
def test_hosts(body: bytes, facts: Facts) -> None:
    answer = answer_of(body, "openai-chat", len(body))
    assert (answer.text, answer.reasoning, answer.model) == (facts.text, facts.reasoning, facts.model)
    assert [(call.id, call.name, call.arguments) for call in answer.tool_calls] == facts.calls
    assert (answer.outcome, answer.stop.reason, answer.stop.raw) == (facts.outcome, facts.reason, facts.raw)
    told = {} if answer.usage is None else {name: getattr(answer.usage, name) for name in facts.usage or COUNTS}
    assert told == (facts.usage or {})
    assert not answer.warnings
    for provider in ("openai-chat", "auto"):
        for size in (1, 17, len(body)):
            assert answer_of(body, provider, size) == answer


def test_sources_that_every_chunk_repeats_are_cited_once() -> None:
    body, _ = HOSTS[next(name for name in HOSTS if name.startswith("Perplexity"))]
    (block,) = answer_of(body, "openai-chat", len(body)).blocks
    assert isinstance(block, TextBlock)
    assert [(cited.url, cited.title) for cited in block.citations] == [("https://a", "A")]


def test_totals_of_several_choices_come_on_several_chunks() -> None:
    """llama.cpp, asked for two choices: the last totals count."""
    body = framed(
        chunk({"content": "a"}, "stop", id="l", usage=running(3)),
        chunk({"content": "b"}, "stop", id="l", usage=running(7), index=1),
    )
    answer = answer_of(body, "openai-chat", len(body))
    assert (answer.text, answer.choice(1).text, answer.choices) == ("a", "b", 2)
    assert answer.usage is not None
    assert answer.usage.output_tokens == 7


FAILURES = {"OpenRouter": ("502", 502, "up"), "Groq": ("tool_use_failed", 400, "up")}


@pytest.mark.parametrize(("host", "code", "status", "message"), [(host, *fact) for host, fact in FAILURES.items()])
def test_a_failure_in_the_middle_is_told_with_its_code(host: str, code: str, status: int, message: str) -> None:
    body = next(
        body for name, (body, facts) in HOSTS.items() if name.startswith(f"{host}:") and facts.outcome == "failed"
    )
    error = answer_of(body, "openai-chat", len(body)).error
    assert error is not None
    assert (error.kind, error.code, error.status, error.message) == ("provider", code, status, message)
