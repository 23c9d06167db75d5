"""Cohere's v2 chat: one message of the assistant, and a message of the tool for each result.

Reads against ``AssistantChatMessageV2`` and ``ToolChatMessageV2``. The plan goes back as the plan, thinking as content;
the results carry the ids of their calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamfold.blocks import ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock
from streamfold.echo._items import (
    Answered,
    Item,
    ToolResult,
    Turn,
    Waiting,
    error_text,
    meta_of,
    value_of,
    waiting,
)

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """The message; none where it would say nothing and call nothing."""
    calls = [_call(block) for block in turn.blocks if isinstance(block, ToolCallBlock) and block.state == "ready"]
    content = [part for block in turn.blocks if (part := _part(block)) is not None]
    says = any(part["type"] == "text" for part in content)
    if not (says or calls):
        return []  # thinking alone is no message
    message: Item = {"role": "assistant"}
    if content:
        message["content"] = content
    if plan := "".join(block.text for block in turn.blocks if isinstance(block, ReasoningBlock) and _is_plan(block)):
        message["tool_plan"] = plan
    if calls:
        message["tool_calls"] = calls
    if citations := [value for block in turn.blocks if isinstance(block, TextBlock) for value in _citations(block)]:
        message["citations"] = citations
    return [message]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """A message for each."""
    return [_result(block, result) for block, result in answered]


def _result(block: Waiting, result: ToolResult) -> Item:
    # The API has no word for an error: what the tool answers is the one place to say it.
    content = result.content if result.native else error_text(result)
    return {"role": "tool", "tool_call_id": block.id, "content": content}


def _part(block: object) -> Item | None:
    """A part of ``content``."""
    if isinstance(block, TextBlock | RefusalBlock):
        return {"type": "text", "text": block.text} if block.text else None
    if isinstance(block, ReasoningBlock) and block.text and block.complete and not _is_plan(block):
        return {"type": "thinking", "thinking": block.text}
    return None


def _is_plan(block: ReasoningBlock) -> bool:
    return meta_of(block).get("member") == "tool_plan"


def _call(block: ToolCallBlock) -> Item:
    return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": block.arguments}}


def _citations(block: TextBlock) -> list[Any]:
    return [value_of(citation.raw) for citation in block.citations if citation.raw is not None]
