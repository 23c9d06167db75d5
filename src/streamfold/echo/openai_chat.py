"""Chat Completions: one assistant message, and one message for each result.

Reads against ``ChatCompletionAssistantMessageParam`` and what the hosts that copy the API want back besides. No vendor
is asked for by name: reasoning goes back under the member that it came by, and so does what nobody knows of a call.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from streamfold.blocks import MediaBlock, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, TranscriptBlock
from streamfold.echo._items import (
    Answered,
    Item,
    ToolResult,
    Turn,
    Waiting,
    error_text,
    meta_of,
    waiting,
    without,
)

__all__ = ["items", "results", "waiting"]

STRUCTURED: Final = ("reasoning_details", "thinking_blocks")
"""Members that hold reasoning in the form in which it is wanted back, and repeat what plain members say."""


def items(turn: Turn) -> list[Item]:
    """The assistant message; none where it would say nothing and call nothing."""
    calls = [_call(block) for block in _calls(turn)]
    audio = next((found for block in turn.blocks if (found := meta_of(block).get("audio"))), None)
    spoken: Item = {"audio": {"id": audio["id"]}} if audio and audio.get("id") else {}
    content, refusal = _content(turn, words=not spoken), _refusal(turn)
    beside = {**spoken, **_images(turn)}
    if refusal and content:
        beside["refusal"] = refusal
    elif refusal:  # "required unless tool_calls or function_call is specified", and then "exactly one of type refusal"
        content = [{"type": "refusal", "refusal": refusal}]
    if not (content or beside or calls):
        return []  # reasoning alone is no message
    message: Item = {"role": "assistant", "content": content or None, **_reasoning(turn), **beside}
    if calls:
        legacy = _is_legacy(turn)
        message |= {"function_call": calls[0]["function"]} if legacy else {"tool_calls": calls}
    return [message]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """A message for each."""
    legacy = _is_legacy(turn)
    return [_result(block, result, legacy=legacy) for block, result in answered]


def _result(block: Waiting, result: ToolResult, *, legacy: bool) -> Item:
    # The API has no word for an error: what the tool answers is the one place to say it.
    content = result.content if result.native else error_text(result)
    if legacy:
        return {"role": "function", "name": block.name, "content": content}
    return {"role": "tool", "tool_call_id": block.id, "content": content}


# -- members of the message -------------------------------------------------------------------------------------------


def _content(turn: Turn, *, words: bool) -> Any:
    """Its text, in the form it came in; ``words``: what was spoken too, as nothing else stands for it."""
    parts: list[Item] = []
    text = ""
    for block in turn.blocks:
        if isinstance(block, TextBlock) or (words and isinstance(block, TranscriptBlock)):
            text += block.text
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ReasoningBlock):
            form = _form(block)
            if form == "think":
                text += f"<think>{block.text}</think>"  # the model's own marks, which a setting took for reasoning
            elif form in _PARTS:
                parts.append(_PARTS[form](block))
    listed = any(part["type"] != "text" for part in parts)
    return [part for part in parts if part.get("text") != ""] if listed else text


def _form(block: ReasoningBlock) -> str:
    """How reasoning that came inside ``content`` stood there; "" for one that had a member of its own."""
    meta = meta_of(block)
    return str(meta.get("form", "")) if meta.get("member") == "content" else ""


def _thinking_part(block: ReasoningBlock) -> Item:
    return {"type": "thinking", "thinking": [{"type": "text", "text": block.text}]}


def _reasoning_part(block: ReasoningBlock) -> Item:
    summary: Item = {"type": "summary_text", "text": block.text}
    if block.signature is not None:
        summary["signature"] = block.signature
    return {"type": "reasoning", "summary": [summary]}


_PARTS: Final[Mapping[str, Callable[[ReasoningBlock], Item]]] = {
    "thinking": _thinking_part,  # Mistral
    "reasoning": _reasoning_part,  # Databricks
}


def _reasoning(turn: Turn) -> Item:
    """Reasoning with a member of its own.

    It goes back whether or not the turn calls tools: DeepSeek, Moonshot and Z.ai refuse a request that lacks it in the
    first case and accept it in the second.
    """
    members: Item = {}
    for block in turn.blocks:
        if isinstance(block, ReasoningBlock) and not _form(block):
            for name, value in _reasoning_members(block):
                members[name] = members[name] + value if name in members else value
    return members


def _reasoning_members(block: ReasoningBlock) -> Iterator[tuple[str, Any]]:
    meta = meta_of(block)
    structured = [(name, meta[name]) for name in STRUCTURED if name in meta]
    if structured:
        yield from structured if block.complete else ()  # its signature may not have come
        return
    if block.text:
        yield str(meta.get("member", "reasoning_content")), block.text
    if block.encrypted is not None:
        yield "reasoning_encrypted", block.encrypted  # Venice


def _refusal(turn: Turn) -> str:
    return "".join(block.text for block in turn.blocks if isinstance(block, RefusalBlock))


def _images(turn: Turn) -> Item:
    images = [_image(block) for block in turn.blocks if isinstance(block, MediaBlock) and _is_image(block)]
    return {"images": images} if images else {}


def _is_image(block: MediaBlock) -> bool:
    return block.url is not None or (block.mime_type or "").startswith("image/")


def _image(block: MediaBlock) -> Item:
    url = block.url or f"data:{block.mime_type};base64,{base64.b64encode(block.data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def _calls(turn: Turn) -> list[ToolCallBlock]:
    return [block for block in turn.blocks if isinstance(block, ToolCallBlock) and block.state == "ready"]


def _call(block: ToolCallBlock) -> Item:
    beside = without(meta_of(block), "synthetic_id")
    if block.kind == "custom":
        return {"id": block.id, "type": "custom", "custom": {"name": block.name, "input": block.arguments}, **beside}
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": block.name, "arguments": block.arguments},
        **beside,
    }


def _is_legacy(turn: Turn) -> bool:
    """Whether the call came by ``function_call``, which knows no ids and wants its answer by the function's name."""
    calls = _calls(turn)
    return turn.stop.raw == "function_call" and len(calls) == 1 and "synthetic_id" in meta_of(calls[0])
