"""``auto`` among Bedrock, Cohere and Ollama: the payload that tells each, and those that only look like it."""

from __future__ import annotations

from typing import Any

import pytest

import streamfold
from streamfold.providers.by_shape import shape_of
from tests.reading import alike, read
from tests.wires import ANTHROPIC, CHAT, GEMINI, INTERACTIONS, RESPONSES, Payload, Stream
from tests.wires_more import (
    COHERE_START,
    METRICS,
    MORE_WIRES,
    TEXTS,
    block_delta,
    block_start,
    cohere,
    content,
    message_end,
    ollama,
    part,
)

CHOICE: Payload = {"text": "a", "index": 0}

SHAPES: dict[str, tuple[Payload, str | None, str | None]] = {
    # payload, name of its frame, provider
    "an event of Converse by its header": ({"role": "assistant"}, "messageStart", "bedrock-converse"),
    "one that stands under its name": ({"messageStart": {"role": "assistant"}}, None, "bedrock-converse"),
    "one that stands bare": ({"contentBlockIndex": 0, "delta": {"text": "a"}}, None, "bedrock-converse"),
    "a delta under its name": (block_delta(0, text="a"), None, "bedrock-converse"),
    "a start under its name": (block_start(0, toolUse={}), None, "bedrock-converse"),
    "an exception by its header": ({"message": "m"}, "throttlingException", "bedrock-converse"),
    "metadata of anybody": ({"metadata": {"a": 1}}, None, None),
    "a member that only has the name": ({"messageStart": 5}, None, None),
    "message-start": (COHERE_START, None, "cohere"),
    "a delta of Cohere's": (content("a"), None, "cohere"),
    "a plan": (cohere("tool-plan-delta", message={"tool_plan": "a"}), None, "cohere"),
    "message-end by its frame's name": ({"delta": {}}, "message-end", "cohere"),
    "the end alone": (message_end(), None, "cohere"),
    "a chunk of Ollama's": (ollama(content="a"), None, "ollama"),
    "one of generate": ({"response": "a", "done": False}, None, "ollama"),
    "done, and nothing else": ({"done": True}, None, None),
    "a response that is none of Ollama's": ({"response": {"id": "r"}, "done": False}, None, None),
    "a message of anybody": ({"message": {"role": "assistant"}}, None, None),
    "Titan": (TEXTS["Titan"][0], None, "bedrock-text"),
    "Llama": (TEXTS["Llama"][0], None, "bedrock-text"),
    "Mistral": (TEXTS["Mistral"][0], None, "bedrock-text"),
    "DeepSeek": (TEXTS["DeepSeek"][0], None, "bedrock-text"),
    "Claude's text": (TEXTS["Claude's text"][0], None, "bedrock-text"),
    "Cohere's Command": (TEXTS["Cohere's Command"][0], None, "bedrock-text"),
    "Cohere's Command in pieces": (TEXTS["Cohere's Command in pieces"][0], None, "bedrock-text"),
    "a legacy completion": ({"choices": [{**CHOICE, "finish_reason": None}]}, None, "openai-chat"),
    "one with both reasons, as vLLM has it": (
        {"choices": [{**CHOICE, "finish_reason": None, "stop_reason": None}]},
        None,
        "openai-chat",
    ),
    "a completion without any": ({"choices": [CHOICE]}, None, "openai-chat"),
    "a chunk with the counts of the service": (
        {"choices": [{"delta": {"content": "a"}}], "amazon-bedrock-invocationMetrics": METRICS},
        None,
        "openai-chat",
    ),
    "a generation of something else": ({"generation": {"id": "g"}}, None, None),
}


@pytest.mark.parametrize(("payload", "name", "provider"), SHAPES.values(), ids=SHAPES.keys())
def test_the_shape_of_a_payload(payload: Payload, name: str | None, provider: str | None) -> None:
    assert shape_of(payload, name) == provider


STREAMS: dict[str, tuple[str, Stream]] = {
    f"{provider}: {name}": (provider, stream)
    for provider, wires in MORE_WIRES.items()
    for name, stream in wires.items()
    if name != "a failure" or provider == "cohere"
}


@pytest.mark.parametrize(("provider", "stream"), STREAMS.values(), ids=STREAMS.keys())
def test_auto_is_the_dialect_itself(provider: str, stream: Stream) -> None:
    assert alike(read("auto", stream, call_id=str)) == alike(read(provider, stream, call_id=str))


OTHERS: dict[str, tuple[str, Stream]] = {
    f"{provider}: {name}": (provider, stream)
    for provider, wires in (
        ("openai-chat", CHAT),
        ("openai-responses", RESPONSES),
        ("anthropic", ANTHROPIC),
        ("gemini-generate-content", GEMINI),
        ("gemini-interactions", INTERACTIONS),
    )
    for name, stream in wires.items()
}


@pytest.mark.parametrize(("provider", "stream"), OTHERS.values(), ids=OTHERS.keys())
def test_no_payload_of_the_others_is_taken_for_one_of_these(provider: str, stream: Stream) -> None:
    told = {shape_of(payload, None) for payload in stream if isinstance(payload, dict)}
    assert not told & {"bedrock-converse", "bedrock-text", "cohere", "ollama"}


def test_payloads_inside_others_go_on_after_the_dialect_is_known() -> None:
    made: Any = streamfold.BedrockInvokeNormalizer()
    events = [event for payload in ANTHROPIC["text"] for event in made.feed([part(payload)])]
    assert alike(events) == alike(read("anthropic", ANTHROPIC["text"]))
    assert made.chosen.surface == "anthropic"
