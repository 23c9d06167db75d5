"""Whole answers as bytes, hand-made from the protocol pages: one each of the surfaces, and what they are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Payload = dict[str, Any]


def sse(payloads: Iterable[Payload | str], *, names: bool = False, end: str = "\n") -> bytes:
    """Payloads as an event stream; with the event names that Anthropic, OpenAI and Gemini Interactions send."""
    frames: list[str] = []
    for payload in payloads:
        text = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"))
        named = payload.get("type") or payload["event_type"] if names and isinstance(payload, dict) else None
        name = f"event: {named}{end}" if named else ""
        frames.append(f"{name}data: {text}{end}{end}")
    return "".join(frames).encode()


def array(payloads: Iterable[Payload]) -> bytes:
    """Payloads as Gemini lays out its JSON array."""
    return b"[" + b"\n,\r\n".join(json.dumps(payload, indent=1).encode() for payload in payloads) + b"\n]"


# -- Chat -------------------------------------------------------------------------------------------------------------


def chat(delta: Payload | None = None, finish: str | None = None, *, choice: int = 0, **members: Any) -> Payload:
    """One chunk."""
    choices = [{"index": choice, "delta": delta or {}, "finish_reason": finish}]
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": choices, **members}


def chat_text(*pieces: str, finish: str | None = "stop") -> list[Payload | str]:
    """An answer of text."""
    end: list[Payload | str] = [] if finish is None else [chat(finish=finish), "[DONE]"]
    return [chat({"role": "assistant", "content": ""}), *(chat({"content": piece}) for piece in pieces), *end]


def chat_call(index: int, arguments: str = "", *, id: str = "", name: str = "") -> Payload:  # noqa: A002
    """A chunk that carries a piece of a call."""
    call = {"index": index, "function": {"arguments": arguments, **({"name": name} if name else {})}}
    return chat({"tool_calls": [{**({"id": id, "type": "function"} if id else {}), **call}]})


CHAT = sse(chat_text("Hel", "lo"))

# -- Anthropic --------------------------------------------------------------------------------------------------------


def message_start(id: str = "msg_1") -> Payload:  # noqa: A002
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": id, "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return {"type": "message_start", "message": message}


def block_start(index: int, **block: Any) -> Payload:
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, **delta: Any) -> Payload:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def text_delta(text: str, index: int = 0) -> Payload:
    return block_delta(index, type="text_delta", text=text)


def block_stop(index: int) -> Payload:
    return {"type": "content_block_stop", "index": index}


def message_end(reason: str = "end_turn") -> list[Payload]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}, {"type": "message_stop"}]


ANTHROPIC_PAYLOADS: list[Payload] = [
    message_start(),
    block_start(0, type="text", text=""),
    {"type": "ping"},
    text_delta("Hel"),
    text_delta("lo"),
    block_stop(0),
    block_start(1, type="tool_use", id="toolu_1", name="add", input={}),
    block_delta(1, type="input_json_delta", partial_json='{"a":'),
    block_delta(1, type="input_json_delta", partial_json="1}"),
    block_stop(1),
    *message_end("tool_use"),
]
ANTHROPIC = sse(ANTHROPIC_PAYLOADS, names=True)

# -- Responses --------------------------------------------------------------------------------------------------------


def responses_payloads(*pieces: str) -> list[Payload]:
    """A message of these pieces, numbered from 0."""
    response = {"id": "resp_1", "object": "response", "model": "m", "status": "in_progress", "output": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    text = "".join(pieces)
    part = {"type": "output_text", "text": text, "annotations": []}
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    whole = {**item, "status": "completed", "content": [part]}
    payloads: list[Payload] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": piece} for piece in pieces),
        {"type": "response.output_text.done", **at, "text": text},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": whole},
        {"type": "response.completed", "response": {**response, "status": "completed", "output": [whole]}},
    ]
    return [{**payload, "sequence_number": number} for number, payload in enumerate(payloads)]


RESPONSES_PAYLOADS = responses_payloads("Hel", "lo")
RESPONSES = sse(RESPONSES_PAYLOADS, names=True)

ANSWERS = {"openai-chat": CHAT, "anthropic": ANTHROPIC, "openai-responses": RESPONSES}
"""One whole answer of each surface; its text is ``Hello``."""


def cut(body: bytes, size: int) -> list[bytes]:
    """The body in reads of this size."""
    return [body[at : at + size] for at in range(0, len(body), size)]
