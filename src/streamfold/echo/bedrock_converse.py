"""Bedrock Converse: a message of the assistant with its content blocks as they came, and one of the user with results.

Reads against the service's ``Message`` and ``ContentBlock``, in the JSON of its HTTP interface: blobs are base64 there,
which an SDK that encodes them itself wants decoded. What the service would refuse is left out: blank text, half a
thought, and reasoning without a signature (a model that signs wants one, and no other takes reasoning back).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from streamfold.blocks import Block, MediaBlock, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock, ToolResultBlock
from streamfold.echo._items import (
    Answered,
    Item,
    ToolResult,
    Turn,
    Waiting,
    json_value,
    object_of,
    text_of_result,
    value_of,
    waiting,
)

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """The message; none where nothing of the answer can go back."""
    kept = list(_kept(turn))
    while kept and isinstance(kept[-1], ReasoningBlock):
        kept.pop()  # a message does not end in reasoning
    content = [_CONTENT[type(block)](block) for block in kept]
    return [{"role": "assistant", "content": content}] if content else []


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """One message with all of them: the service wants as many results as there were calls, in the next message."""
    content = [{"toolResult": _result(block, result)} for block, result in answered]
    return [{"role": "user", "content": content}] if content else []


def _result(block: Waiting, result: ToolResult) -> Item:
    item: Item = {"toolUseId": block.id, "content": _result_content(result)}
    return {**item, "status": "error"} if result.is_error else item


def _result_content(result: ToolResult) -> Any:
    if result.native:
        return result.content
    value = json_value(result.content)
    return [{"json": value}] if isinstance(value, dict) else [{"text": text_of_result(result.content)}]


# -- what goes back ---------------------------------------------------------------------------------------------------


def _kept(turn: Turn) -> Iterator[Block]:
    """The blocks that the service takes back, in their order."""
    answered = {block.call_id for block in turn.blocks if isinstance(block, ToolResultBlock) and block.complete}
    for block in turn.blocks:
        match block:
            case TextBlock() | RefusalBlock():
                keep = bool(block.text.strip())  # "The text field in the ContentBlock object is blank"
            case ReasoningBlock():
                keep = block.complete and (block.signature is not None or block.redacted)
            case ToolCallBlock(executor="provider"):
                keep = block.complete and block.id in answered
            case ToolCallBlock():
                keep = block.state == "ready"
            case ToolResultBlock():
                keep = block.complete and block.call_id is not None and block.content is not None
            case MediaBlock():
                keep = block.complete and (block.mime_type or "").startswith("image/") and bool(block.data or block.url)
            case _:  # of another surface
                keep = False
        if keep:
            yield block


def _text(block: TextBlock | RefusalBlock) -> Item:
    citations = block.citations if isinstance(block, TextBlock) else ()
    sources = [value_of(citation.raw) for citation in citations if citation.raw is not None]
    if sources:
        return {"citationsContent": {"content": [{"text": block.text}], "citations": sources}}
    return {"text": block.text}


def _reasoning(block: ReasoningBlock) -> Item:
    if block.redacted:
        return {"reasoningContent": {"redactedContent": block.encrypted or ""}}
    return {"reasoningContent": {"reasoningText": {"text": block.text, "signature": block.signature}}}


def _call(block: ToolCallBlock) -> Item:
    use: Item = {"toolUseId": block.id, "name": block.name, "input": object_of(block.arguments)}
    return {"toolUse": {**use, "type": "server_tool_use"} if block.executor == "provider" else use}


def _server_result(block: ToolResultBlock) -> Item:
    content = value_of(block.content or "null")
    result: Item = {"toolUseId": block.call_id, "content": content, "status": "error" if block.is_error else "success"}
    return {"toolResult": {**result, "type": block.name}}


def _image(block: MediaBlock) -> Item:
    source: Item = (
        {"bytes": base64.b64encode(block.data).decode()} if block.data else {"s3Location": {"uri": block.url}}
    )
    return {"image": {"format": (block.mime_type or "").removeprefix("image/"), "source": source}}


_CONTENT: Final[Mapping[type[Block], Callable[[Any], Item]]] = {
    TextBlock: _text,
    RefusalBlock: _text,
    ReasoningBlock: _reasoning,
    ToolCallBlock: _call,
    ToolResultBlock: _server_result,
    MediaBlock: _image,
}
