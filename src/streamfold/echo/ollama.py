"""Ollama's own chat: one message of the assistant, and a message of the tool for each result.

Reads against the ``Message`` of its API. Arguments go back as the object they came as; ids go back where they came.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from streamfold.blocks import MediaBlock, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock
from streamfold.echo._items import (
    Answered,
    Item,
    ToolResult,
    Turn,
    Waiting,
    error_text,
    meta_of,
    object_of,
    waiting,
)

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """The message; none where it would say nothing and call nothing."""
    content = "".join(block.text for block in turn.blocks if isinstance(block, TextBlock | RefusalBlock))
    calls = [_call(block) for block in turn.blocks if isinstance(block, ToolCallBlock) and block.state == "ready"]
    images = [base64.b64encode(b.data).decode() for b in turn.blocks if isinstance(b, MediaBlock) and b.data]
    if not (content or calls or images):
        return []  # thinking alone is no message
    message: Item = {"role": "assistant", "content": content}
    if thinking := "".join(block.text for block in turn.blocks if isinstance(block, ReasoningBlock)):
        message["thinking"] = thinking
    if images:
        message["images"] = images
    if calls:
        message["tool_calls"] = calls
    return [message]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """A message for each."""
    return [_result(block, result) for block, result in answered]


def _result(block: Waiting, result: ToolResult) -> Item:
    # The API has no word for an error: what the tool answers is the one place to say it.
    content = result.content if result.native else error_text(result)
    return {"role": "tool", "tool_name": block.name, **_id(block, "tool_call_id"), "content": content}


def _call(block: ToolCallBlock) -> Item:
    return {**_id(block, "id"), "function": {"name": block.name, "arguments": object_of(block.arguments)}}


def _id(block: Waiting, name: str) -> Item:
    return {} if "synthetic_id" in meta_of(block) else {name: block.id}
