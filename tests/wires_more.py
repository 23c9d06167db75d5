"""Payloads of Bedrock, Cohere and Ollama, made by hand from the protocol pages; and AWS's binary frames around them."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final
from zlib import crc32

from tests.wires import Payload, Stream

# -- Bedrock Converse -------------------------------------------------------------------------------------------------


def wrapped(name: str, **members: Any) -> Payload:
    """An event that stands under its name, as Nova sends it and clients hand it out."""
    return {name: members}


MESSAGE_START: Final = wrapped("messageStart", role="assistant")


def block_start(index: Any, **start: Any) -> Payload:
    return wrapped("contentBlockStart", contentBlockIndex=index, start=start)


def block_delta(index: Any, **delta: Any) -> Payload:
    return wrapped("contentBlockDelta", contentBlockIndex=index, delta=delta)


def block_stop(index: Any) -> Payload:
    return wrapped("contentBlockStop", contentBlockIndex=index)


def message_stop(reason: Any = "end_turn", **members: Any) -> Payload:
    return wrapped("messageStop", stopReason=reason, **members)


def metadata(usage: Any = None, **members: Any) -> Payload:
    return wrapped("metadata", usage=usage or {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}, **members)


CITED: Final = {
    "title": "policy",
    "sourceContent": [{"text": "20 days "}, {"text": "of leave"}],
    "location": {"web": {"url": "https://example.org/p", "domain": "example.org"}},
}

CONVERSE: Final[dict[str, Stream]] = {
    "text": [
        MESSAGE_START,
        block_delta(0, text="Hel"),
        block_delta(0, text="lo"),
        block_stop(0),
        message_stop(),
        metadata(metrics={"latencyMs": 5}),
    ],
    "reasoning": [
        MESSAGE_START,
        block_delta(0, text=""),
        block_delta(0, reasoningContent={"text": "Hm"}),
        block_delta(0, reasoningContent={"text": " so"}),
        block_delta(0, reasoningContent={"signature": "c2ln"}),
        block_stop(0),
        block_delta(1, reasoningContent={"redactedContent": "QUJD"}),
        block_stop(1),
        block_delta(2, text="Yes"),
        block_stop(2),
        message_stop(),
        metadata(),
    ],
    "calls": [
        MESSAGE_START,
        block_start(0, toolUse={"toolUseId": "t1", "name": "add"}),
        block_delta(0, toolUse={"input": ""}),
        block_delta(0, toolUse={"input": '{"x":'}),
        block_delta(0, toolUse={"input": "1}"}),
        block_stop(0),
        block_start(1, toolUse={"toolUseId": "t2", "name": "now"}),
        block_delta(1, toolUse={"input": ""}),
        block_stop(1),
        message_stop("tool_use"),
        metadata(),
    ],
    "a tool of the service": [
        MESSAGE_START,
        block_start(0, toolUse={"toolUseId": "s1", "name": "nova_code_interpreter", "type": "server_tool_use"}),
        block_delta(0, toolUse={"input": '{"snippet":"1"}'}),
        block_stop(0),
        block_start(1, toolResult={"toolUseId": "s1", "type": "nova_code_interpreter_result", "status": "success"}),
        block_delta(1, toolResult=[{"json": {"stdOut": "1"}}]),
        block_delta(1, toolResult=[{"text": "more"}]),
        block_stop(1),
        message_stop(),
        metadata(serviceTier={"type": "default"}),
    ],
    "citations and an image": [
        MESSAGE_START,
        block_delta(0, citation=CITED),
        block_delta(0, text="20 days"),
        block_stop(0),
        block_start(1, image={"format": "png"}),
        block_delta(1, image={"source": {"bytes": "QUJD"}}),
        block_stop(1),
        message_stop("stop_sequence", additionalModelResponseFields={"stop_sequence": "END"}),
    ],
    "cut by max_tokens": [
        MESSAGE_START,
        block_start(0, toolUse={"toolUseId": "t3", "name": "add"}),
        block_stop(0),
        block_delta(1, text="and"),
        message_stop("max_tokens"),
        metadata(),
    ],
    "no message": [block_delta(0, text="Hel"), {"throttlingException": {"message": "slow down"}}],
}

# -- InvokeModel ------------------------------------------------------------------------------------------------------

METRICS: Final = {"inputTokenCount": 5, "outputTokenCount": 6, "invocationLatency": 7, "firstByteLatency": 1}

TEXTS: Final[dict[str, Stream]] = {
    "Titan": [
        {"outputText": "Hel", "index": 0, "totalOutputTextTokenCount": None, "completionReason": None},
        {
            "outputText": "lo",
            "index": 0,
            "totalOutputTextTokenCount": 6,
            "completionReason": "FINISH",
            "inputTextTokenCount": 5,
            "amazon-bedrock-invocationMetrics": METRICS,
        },
    ],
    "Titan behind a guardrail": [
        {
            "outputText": "Blocked",
            "index": 0.0,
            "totalOutputTextTokenCount": 3.0,
            "inputTextTokenCount": 6.0,
            "amazon-bedrock-guardrailAction": "INTERVENED",
            "amazon-bedrock-trace": {"guardrail": {}},
        }
    ],
    "Llama": [
        {"generation": "", "prompt_token_count": 5, "generation_token_count": 1, "stop_reason": None},
        {"generation": "Hi", "prompt_token_count": None, "generation_token_count": 2, "stop_reason": None},
        {"generation": "", "prompt_token_count": None, "generation_token_count": 3, "stop_reason": "length"},
    ],
    "Mistral": [
        {"outputs": [{"text": "Hi", "stop_reason": None}]},
        {"outputs": [{"text": "", "stop_reason": "stop"}], "amazon-bedrock-invocationMetrics": METRICS},
    ],
    "DeepSeek": [
        {"choices": [{"text": "Hi", "stop_reason": None}]},
        {"choices": [{"text": "!", "stop_reason": "stop"}]},
    ],
    "Claude's text": [
        {"completion": " Hi", "stop_reason": None, "stop": None},
        {"completion": ".", "stop_reason": "stop_sequence", "stop": "\n\nHuman:"},
    ],
    "Cohere's Command": [{"id": "g", "generations": [{"id": "h", "text": "Hi", "finish_reason": "COMPLETE"}]}],
    "Cohere's Command in pieces": [
        {"is_finished": False, "text": "Hi", "event_type": "text-generation"},
        {"is_finished": True, "finish_reason": "MAX_TOKENS", "amazon-bedrock-invocationMetrics": METRICS},
    ],
}


def part(payload: Payload, padding: str | None = "abc") -> Payload:
    """What InvokeModel sends: the model's own payload in base64."""
    data = base64.b64encode(json.dumps(payload).encode()).decode()
    return {"bytes": data} if padding is None else {"bytes": data, "p": padding}


# -- Cohere -----------------------------------------------------------------------------------------------------------


def cohere(kind: str, index: Any = None, *, message: Any = None, **members: Any) -> Payload:
    """An event; ``message`` stands inside its delta."""
    event: Payload = {"type": kind, **members}
    if index is not None:
        event["index"] = index
    if message is not None:
        event["delta"] = {"message": message}
    return event


def content(piece: str, index: int = 0, member: str = "text") -> Payload:
    return cohere("content-delta", index, message={"content": {member: piece}})


def content_start(kind: str = "text", index: int = 0) -> Payload:
    return cohere("content-start", index, message={"content": {"type": kind, kind: ""}})


def content_end(index: int = 0) -> Payload:
    return cohere("content-end", index)


def call_start(index: int, id_: str, name: str) -> Payload:
    function = {"name": name, "arguments": ""}
    return cohere(
        "tool-call-start", index, message={"tool_calls": {"id": id_, "type": "function", "function": function}}
    )


def call_delta(index: int, piece: str) -> Payload:
    return cohere("tool-call-delta", index, message={"tool_calls": {"function": {"arguments": piece}}})


def message_end(reason: Any = "COMPLETE", usage: Any = None, **members: Any) -> Payload:
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": usage or COUNTED, **members}}


COHERE_START: Final = cohere("message-start", id="m1", message={"role": "assistant", "content": [], "tool_plan": ""})
COUNTED: Final = {
    "billed_units": {"input_tokens": 1, "output_tokens": 2},
    "tokens": {"input_tokens": 30, "output_tokens": 4.0},
    "cached_tokens": 16,
}
DOCUMENT: Final = {"title": "T", "url": "https://example.org", "snippet": "s"}
CITATION: Final = {
    "start": 0,
    "end": 5,
    "text": "Hello",
    "sources": [
        {"type": "document", "id": "d", "document": {"title": "T", "url": "https://example.org", "snippet": "s"}}
    ],
    "type": "TEXT_CONTENT",
}

COHERE: Final[dict[str, Stream]] = {
    "text": [
        COHERE_START,
        content_start(),
        content("Hel"),
        content("lo"),
        cohere("citation-start", 0, message={"citations": CITATION}),
        cohere("citation-end", 0),
        content_end(),
        message_end(),
    ],
    "thinking and calls": [
        COHERE_START,
        content_start("thinking"),
        content("Hm", member="thinking"),
        content_end(),
        call_start(0, "c1", "add"),
        call_delta(0, '{"x":'),
        call_delta(0, "1}"),
        cohere("tool-call-end", 0),
        call_start(1, "c2", "now"),
        cohere("tool-call-end", 1),
        message_end("TOOL_CALL"),
    ],
    "a plan": [
        COHERE_START,
        cohere("tool-plan-delta", message={"tool_plan": "I will"}),
        cohere("tool-plan-delta", message={"tool_plan": " add"}),
        call_start(0, "c1", "add"),
        call_delta(0, "{}"),
        cohere("tool-call-end", 0),
        cohere("debug", prompt="p"),
        message_end("TOOL_CALL"),
    ],
    "cut off": [COHERE_START, content_start(), content("Hel"), call_start(0, "c1", "add"), message_end("MAX_TOKENS")],
    "a failure": [COHERE_START, content_start(), content("Hel"), message_end("ERROR", error="internal")],
}

# -- Ollama -----------------------------------------------------------------------------------------------------------


def ollama(*, done: bool = False, model: str | None = "llama3.2", **members: Any) -> Payload:
    """A chunk of ``/api/chat``; ``content``, ``thinking`` and ``tool_calls`` stand in its message."""
    inside = {name: members.pop(name) for name in ("content", "thinking", "tool_calls", "images") if name in members}
    return {"model": model, "created_at": "2026", "message": {"role": "assistant", **inside}, "done": done, **members}


OLLAMA_COUNTS: Final = {"total_duration": 9, "prompt_eval_count": 26, "eval_count": 28}


def tool(name: str, arguments: Any, **members: Any) -> Payload:
    return {**members, "function": {"name": name, "arguments": arguments}}


OLLAMA: Final[dict[str, Stream]] = {
    "text": [
        ollama(content="Hel"),
        ollama(content="lo"),
        ollama(content="", done=True, done_reason="stop", **OLLAMA_COUNTS),
    ],
    "thinking and calls": [
        ollama(content="", thinking="Hm"),
        ollama(content="", thinking=" so"),
        ollama(content="I add."),
        ollama(content="", tool_calls=[tool("add", {"x": 1}), tool("now", {}, id="call_1")]),
        ollama(content="", done=True, done_reason="stop", **OLLAMA_COUNTS),
    ],
    "generate": [
        {"model": "m", "response": "Hi", "done": False},
        {"model": "m", "response": "", "done": True, "done_reason": "length", "context": [1, 2], **OLLAMA_COUNTS},
    ],
    "an error": [ollama(content="Hel"), {"error": "the model runner has stopped"}],
}

MORE_WIRES: Final[dict[str, dict[str, Stream]]] = {
    "bedrock-converse": CONVERSE,
    "bedrock-text": TEXTS,
    "cohere": COHERE,
    "ollama": OLLAMA,
}

# -- AWS's binary frames ----------------------------------------------------------------------------------------------


def header(name: str, kind: int, value: bytes = b"") -> bytes:
    """One header; the length of texts and byte strings is written here."""
    size = struct.pack(">H", len(value)) if kind in (6, 7) else b""
    return bytes([len(name)]) + name.encode() + bytes([kind]) + size + value


def binary(headers: bytes, payload: bytes = b"") -> bytes:
    """A message with these headers."""
    prelude = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    body = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return body + struct.pack(">I", crc32(body))


def texts(headers: Mapping[str, str]) -> bytes:
    return b"".join(header(name, 7, value.encode()) for name, value in headers.items())


def named(name: str, payload: bytes, kind: str = "event") -> bytes:
    """A message of an event, as Bedrock sends it."""
    told = {"event": ":event-type", "exception": ":exception-type", "error": ":error-code"}[kind]
    return binary(texts({told: name, ":content-type": "application/json", ":message-type": kind}), payload)


def converse_bytes(stream: Iterable[Payload]) -> bytes:
    """The events of ConverseStream in their framing: the name of each is a header."""
    events = ((name, event) for payload in stream for name, event in payload.items())
    return b"".join(
        named(name, json.dumps(event).encode(), "exception" if name.endswith("Exception") else "event")
        for name, event in events
    )


def invoke_bytes(stream: Iterable[Payload]) -> bytes:
    """The payloads of a model in the framing of InvokeModel."""
    return b"".join(named("chunk", json.dumps(part(payload)).encode()) for payload in stream)
