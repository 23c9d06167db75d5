"""Turns of Bedrock, Cohere and Ollama go back: in the shape of their requests, with what belongs to them."""

from __future__ import annotations

from typing import Any

import pytest

import streamfold
from streamfold import Snapshot, ToolResult, UsageError, tool_results
from tests.reading import rows
from tests.wires import ANTHROPIC
from tests.wires_more import (
    CITATION,
    CITED,
    COHERE,
    CONVERSE,
    MESSAGE_START,
    OLLAMA,
    TEXTS,
    block_delta,
    block_start,
    block_stop,
    cohere,
    message_stop,
    ollama,
    part,
    tool,
)


def folded(provider: str, stream: list[Any]) -> Snapshot:
    return streamfold.fold(stream, provider, framing="messages")


def converse(*payloads: Any, stop: str = "end_turn") -> tuple[str, list[Any]]:
    return "bedrock-converse", [MESSAGE_START, *payloads, message_stop(stop)]


def assistant(*content: Any) -> list[Any]:
    return [{"role": "assistant", "content": list(content)}]


SIGNED = {"reasoningContent": {"reasoningText": {"text": "Hm so", "signature": "c2ln"}}}
CODE = {"toolUseId": "s1", "name": "nova_code_interpreter", "input": {"snippet": "1"}, "type": "server_tool_use"}
RAN = {
    "toolUseId": "s1",
    "content": [{"json": {"stdOut": "1"}}, {"text": "more"}],
    "status": "success",
    "type": "nova_code_interpreter_result",
}
CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}},
    {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
]

TURNS: dict[str, tuple[tuple[str, list[Any]], list[Any]]] = {
    "Converse: text": (("bedrock-converse", CONVERSE["text"]), assistant({"text": "Hello"})),
    "Converse: reasoning with its signature, and the blob": (
        ("bedrock-converse", CONVERSE["reasoning"]),
        assistant(SIGNED, {"reasoningContent": {"redactedContent": "QUJD"}}, {"text": "Yes"}),
    ),
    "Converse: calls": (
        ("bedrock-converse", CONVERSE["calls"]),
        assistant(
            {"toolUse": {"toolUseId": "t1", "name": "add", "input": {"x": 1}}},
            {"toolUse": {"toolUseId": "t2", "name": "now", "input": {}}},
        ),
    ),
    "Converse: what the service ran, with its result": (
        ("bedrock-converse", CONVERSE["a tool of the service"]),
        assistant({"toolUse": CODE}, {"toolResult": RAN}),
    ),
    "Converse: citations and an image": (
        ("bedrock-converse", CONVERSE["citations and an image"]),
        assistant(
            {"citationsContent": {"content": [{"text": "20 days"}], "citations": [CITED]}},
            {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
        ),
    ),
    "Converse: a call that was cut stays out": (
        ("bedrock-converse", CONVERSE["cut by max_tokens"]),
        assistant(
            {"toolUse": {"toolUseId": "t3", "name": "add", "input": {}}},
            {"text": "and"},
        ),
    ),
    "Converse: reasoning that nobody signed stays out": (
        converse(
            block_delta(0, reasoningContent={"text": "Hm"}), block_stop(0), block_delta(1, text="a"), block_stop(1)
        ),
        assistant({"text": "a"}),
    ),
    "Converse: blank text stays out": (
        converse(block_delta(0, text=" \n"), block_stop(0), block_delta(1, text="a"), block_stop(1)),
        assistant({"text": "a"}),
    ),
    "Converse: reasoning at the end stays out": (
        converse(block_delta(0, reasoningContent={"text": "Hm", "signature": "s"}), block_stop(0)),
        [],
    ),
    "Converse: what the service ran and never answered stays out": (
        converse(block_start(0, toolUse={"toolUseId": "s", "name": "n", "type": "server_tool_use"}), block_stop(0)),
        [],
    ),
    "Nova inside InvokeModel": (
        ("bedrock-invoke", [part(payload) for payload in CONVERSE["text"]]),
        assistant({"text": "Hello"}),
    ),
    "Anthropic inside InvokeModel": (
        ("bedrock-anthropic", [part(payload) for payload in ANTHROPIC["text"]]),
        folded("anthropic", ANTHROPIC["text"]).echo(),
    ),
    "Cohere: text with its citations": (
        ("cohere", COHERE["text"]),
        [{"role": "assistant", "content": [{"type": "text", "text": "Hello"}], "citations": [CITATION]}],
    ),
    "Cohere: thinking is content": (
        ("cohere", COHERE["thinking and calls"]),
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm"}], "tool_calls": CALLS}],
    ),
    "Cohere: a plan is the plan": (
        ("cohere", COHERE["a plan"]),
        [
            {
                "role": "assistant",
                "tool_plan": "I will add",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}],
            }
        ],
    ),
    "Cohere: a plan alone is nothing": (
        ("cohere", [COHERE["text"][0], cohere("tool-plan-delta", message={"tool_plan": "I"}), COHERE["text"][-1]]),
        [],
    ),
    "Ollama: text": (("ollama", OLLAMA["text"]), [{"role": "assistant", "content": "Hello"}]),
    "Ollama: thinking and calls, ids where they came": (
        ("ollama", OLLAMA["thinking and calls"]),
        [
            {
                "role": "assistant",
                "content": "I add.",
                "thinking": "Hm so",
                "tool_calls": [
                    {"function": {"name": "add", "arguments": {"x": 1}}},
                    {"id": "call_1", "function": {"name": "now", "arguments": {}}},
                ],
            }
        ],
    ),
    "Ollama: thinking alone is nothing": (("ollama", [ollama(thinking="Hm", done=True)]), []),
    "Ollama: an image": (
        ("ollama", [{"model": "m", "image": "QUJD", "response": "", "done": True}]),
        [{"role": "assistant", "content": "", "images": ["QUJD"]}],
    ),
}


@pytest.mark.parametrize(("turn", "items"), rows(TURNS))
def test_turns(turn: tuple[str, list[Any]], items: list[Any]) -> None:
    assert folded(*turn).echo() == items


RESULTS: dict[str, tuple[str, list[Any], dict[str, Any], list[Any]]] = {
    "Converse": (
        "bedrock-converse",
        CONVERSE["calls"],
        {"t1": "two", "t2": ToolResult({"now": 5}, is_error=True)},
        [
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "t1", "content": [{"text": "two"}]}},
                    {"toolResult": {"toolUseId": "t2", "content": [{"json": {"now": 5}}], "status": "error"}},
                ],
            }
        ],
    ),
    "Converse's own form": (
        "bedrock-converse",
        CONVERSE["calls"],
        {"t1": ToolResult([{"image": {}}], native=True), "t2": [1]},
        [
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "t1", "content": [{"image": {}}]}},
                    {"toolResult": {"toolUseId": "t2", "content": [{"text": "[1]"}]}},
                ],
            }
        ],
    ),
    "Cohere": (
        "cohere",
        COHERE["thinking and calls"],
        {"c1": {"sum": 1}, "c2": ToolResult("broken", is_error=True)},
        [
            {"role": "tool", "tool_call_id": "c1", "content": '{"sum":1}'},
            {"role": "tool", "tool_call_id": "c2", "content": '{"error":"broken"}'},
        ],
    ),
    "Ollama": (
        "ollama",
        [ollama(tool_calls=[tool("now", {}, id="call_1")], done=True, done_reason="stop")],
        {"call_1": "noon"},
        [{"role": "tool", "tool_name": "now", "tool_call_id": "call_1", "content": "noon"}],
    ),
}


@pytest.mark.parametrize(("provider", "stream", "results", "items"), RESULTS.values(), ids=RESULTS.keys())
def test_results(provider: str, stream: list[Any], results: dict[str, Any], items: list[Any]) -> None:
    assert tool_results(folded(provider, stream), results) == items


def test_an_id_that_was_made_up_names_nobody() -> None:
    answer = folded("ollama", [ollama(tool_calls=[tool("add", {"x": 1})], done=True, done_reason="stop")])
    (call,) = answer.tool_calls
    assert tool_results(answer, {call.id: 2}) == [{"role": "tool", "tool_name": "add", "content": "2"}]


def test_texts_that_are_completed_have_no_turns() -> None:
    with pytest.raises(UsageError, match="takes no answers back"):
        folded("bedrock-text", TEXTS["Titan"]).echo()
