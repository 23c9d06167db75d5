"""Gemini Interactions: the steps of the answer as they came, and a step for each result.

Reads against ``StepParam``. They go at the end of ``input`` where the conversation is kept by the caller; where the
provider keeps it (``previous_interaction_id``), the results alone are sent. Answers in the older vocabulary go back as
steps too: a content of theirs is a step, or the content of one.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from streamfold.blocks import Block, MediaBlock, OtherBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from streamfold.echo._items import (
    Answered,
    Item,
    ToolResult,
    Turn,
    Waiting,
    meta_of,
    object_of,
    text_of_result,
    typed,
    value_of,
    waiting,
    without,
)
from streamfold.errors import UsageError

__all__ = ["items", "results", "waiting"]

NO_ARGUMENTS: Final = frozenset({"file_search_call", "processing_call"})
"""Calls of the provider's tools whose steps have no such member."""

NAMED: Final = frozenset({"function_call", "mcp_server_tool_call"})
"""Calls whose steps say the name of the tool."""

UNNAMED: Final[Mapping[str, tuple[str | None, ...]]] = {
    "function_result": (None, "function"),
    "mcp_server_tool_result": (None, "mcp"),
}
"""Results whose steps may say it, and what their blocks are called where they did not."""


def items(turn: Turn) -> list[Item]:
    """The steps; none where the model said nothing and called nothing.

    Raises:
        UsageError: The turn is not over.
    """
    if turn.stop.reason == "pause":
        raise UsageError("the turn goes on under its continuation_token: send that with the interaction's id, no input")
    steps = list(_steps(turn))
    return [] if all(step.get("type") == "thought" for step in steps) else steps


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """A step for each."""
    return [_function_result(block, result) for block, result in answered]


def _function_result(block: Waiting, result: ToolResult) -> Item:
    item: Item = {"type": "function_result", "call_id": block.id, "name": block.name, "result": _returned(result)}
    return {**item, "is_error": True} if result.is_error else item


def _returned(result: ToolResult) -> Any:
    """An object or text; a list would be one of contents."""
    if result.native:
        return result.content
    text = text_of_result(result.content)
    value = None if isinstance(result.content, str) else value_of(text)
    return value if isinstance(value, dict) else text


# -- steps ------------------------------------------------------------------------------------------------------------


def _steps(turn: Turn) -> Iterator[Item]:
    output: Item | None = None  # the step of the model's output that the next block may stand in
    for block in turn.blocks:
        content = _content(block)
        if content is None:
            step = _step(block)
            if step is not None:
                yield step
        elif output is not None and "continues_step" in meta_of(block):
            output["content"].append(content)
        else:
            output = {"type": "model_output", "content": [content]}
            yield output


def _content(block: Block) -> Item | None:
    """What stands in a step of the model's output; None: a step of its own, or nothing."""
    match block:
        case TextBlock() if block.text or block.citations:
            return _text(block)
        case MediaBlock() if block.complete:
            return _media(block)
        case _:
            return None


def _text(block: TextBlock) -> Item:
    annotations = [value_of(citation.raw) for citation in block.citations if citation.raw is not None]
    content: Item = {"type": "text", "text": block.text}
    return {**content, "annotations": annotations} if annotations else content


def _media(block: MediaBlock) -> Item:
    content = without(meta_of(block), "continues_step")
    if block.mime_type is not None:
        content["mime_type"] = block.mime_type
    if block.url is not None:
        return {**content, "uri": block.url}
    return {**content, "data": base64.b64encode(block.data).decode()}


def _step(block: Block) -> Item | None:
    match block:
        case ReasoningBlock() if block.complete and (block.text or block.signature is not None):
            return _thought(block)
        case ToolCallBlock() if block.complete and block.state in ("ready", "provider"):
            return _call(block)
        case ToolResultBlock() if block.complete:
            return _result(block)
        case OtherBlock() if block.complete and block.raw is not None:
            return typed(value_of(block.raw))
        case _:
            return None


def _thought(block: ReasoningBlock) -> Item:
    step: Item = {"type": "thought"}
    if block.signature is not None:
        step["signature"] = block.signature
    if block.text:
        step["summary"] = [{"type": "text", "text": part} for part in block.parts]
    return {**step, **without(meta_of(block), "continues_step")}


def _call(block: ToolCallBlock) -> Item:
    meta = without(meta_of(block), "synthetic_id")
    type_ = _type(meta, "function_call")
    step: Item = {"type": type_, "id": block.id}
    if type_ in NAMED or block.name != block.kind:  # else no name came, and the tool is called by its kind
        step["name"] = block.name
    if type_ not in NO_ARGUMENTS:
        step["arguments"] = object_of(block.arguments)
    return {**step, **meta}


def _type(meta: Item, usual: str) -> str:
    """The type of the step, the usual one where the wire gave none that could be one."""
    type_ = meta.pop("type", usual)
    return type_ if isinstance(type_, str) else usual


def _result(block: ToolResultBlock) -> Item:
    meta = meta_of(block)
    type_ = _type(meta, "function_result")
    step: Item = {"type": type_}
    if block.call_id is not None:
        step["call_id"] = block.call_id
    if block.name not in UNNAMED.get(type_, (block.name,)):
        step["name"] = block.name
    if block.content is not None:
        step["result"] = value_of(block.content)
    return {**step, "is_error": True, **meta} if block.is_error else {**step, **meta}
