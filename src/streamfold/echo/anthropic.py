"""Anthropic Messages: one assistant message with the content blocks as they came; one user message with all results.

Reads against the vendor's ``MessageParam``. Thinking goes back with its signature and in its place, what server tools
did goes back too, and so do blocks that nobody here knows. What the API would refuse is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from streamfold.blocks import Block, OtherBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from streamfold.echo import _items
from streamfold.echo._items import (
    Answered,
    Item,
    ToolResult,
    Turn,
    Waiting,
    meta_of,
    object_of,
    text_of_result,
    value_of,
    without,
)
from streamfold.errors import UsageError

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """The assistant message; none where nothing of the answer can go back.

    Raises:
        UsageError: The turn was refused.
    """
    if turn.stop.reason == "refusal":
        # "You must reset the conversation context before continuing" (Streaming refusals): whatever was said is to be
        # discarded, and so is the message that asked for it.
        raise UsageError("Anthropic refused this turn: leave it out of the next request, and what asked for it too")
    kept = _without_empty_ends(list(_kept(turn)))
    content = [_CONTENT[type(block)](block) for block in kept]
    return [{"role": "assistant", "content": content}] if content else []


def waiting(turn: Turn) -> Sequence[Waiting]:
    """The calls to answer. Those before a handover to another model do not go back, so nothing answers them."""
    handover = _handover(turn.blocks)
    return [block for block in _items.waiting(turn) if block.index > handover]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """One message with all of them: results that are spread over messages are refused."""
    content = [_result(block, result) for block, result in answered]
    return [{"role": "user", "content": content}] if content else []


def _result(block: Waiting, result: ToolResult) -> Item:
    content = result.content if result.native else text_of_result(result.content)
    item: Item = {"type": "tool_result", "tool_use_id": block.id, "content": content}
    if result.is_error:
        item["is_error"] = True
    family = meta_of(block).get("toolset_name")  # "the toolset family of the paired tool_use"
    return item if family is None else {**item, "toolset_name": family}


# -- what goes back ---------------------------------------------------------------------------------------------------


def _kept(turn: Turn) -> Iterator[Block]:
    """The blocks that the API takes back, in their order."""
    handover = _handover(turn.blocks)
    answered = {block.call_id for block in turn.blocks if isinstance(block, ToolResultBlock) and block.complete}
    # A server tool that has not answered yet waits for the next request (pause_turn; a call of ours from inside code
    # execution). Where the answer broke off, its result never comes, and the API wants one.
    pending = turn.complete and turn.stop.reason != "length"
    for block in turn.blocks:
        before = block.index < handover
        match block:
            case TextBlock():
                keep = bool(block.text)  # "text content blocks must be non-empty"
            case ReasoningBlock():
                # Half a thought has no signature. What the model before a handover thought is not to be sent.
                keep = block.complete and not before
            case ToolCallBlock(executor="provider"):
                keep = block.complete and (block.id in answered or (pending and not before))
            case ToolCallBlock():
                keep = block.state == "ready" and not before
            case ToolResultBlock():
                keep = block.complete and block.call_id is not None and block.content is not None
            case OtherBlock(kind="connector_text"):
                keep = block.complete and not before
            case OtherBlock():
                keep = block.complete and block.raw is not None
            case _:  # of another surface
                keep = False
        if keep:
            yield block


def _handover(blocks: Iterable[Block]) -> int:
    """Where the last ``fallback`` block stands; from there on another model spoke. -1: nowhere.

    The vendor's page on refusals and fallback, "Continuing the conversation", says what goes back of the part before.
    """
    places = [block.index for block in blocks if isinstance(block, OtherBlock) and block.kind == "fallback"]
    return max(places, default=-1)


def _without_empty_ends(blocks: list[Block]) -> list[Block]:
    """The blocks but for those that stood only because of what was left out."""
    if all(block.text.isspace() for block in blocks if isinstance(block, TextBlock)):
        # "text content blocks must contain non-whitespace text": seen to hold where no other text of the message does.
        blocks = [block for block in blocks if not isinstance(block, TextBlock)]
    while blocks and isinstance(blocks[-1], ReasoningBlock):
        blocks.pop()  # "the final block in an assistant message cannot be `thinking`"
    return blocks


# -- content blocks ---------------------------------------------------------------------------------------------------


def _text(block: TextBlock) -> Item:
    item: Item = {"type": "text", "text": block.text}
    citations = [value_of(citation.raw) for citation in block.citations if citation.raw is not None]
    if citations:
        item["citations"] = citations
    return item


def _thinking(block: ReasoningBlock) -> Item:
    if block.redacted:
        return {"type": "redacted_thinking", "data": block.encrypted or ""}
    # The type wants a signature; servers that copy the API may send none, and check none.
    return {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}


def _call(block: ToolCallBlock) -> Item:
    kind = "tool_use"
    if block.executor == "provider":
        kind = "mcp_tool_use" if block.kind == "mcp" else "server_tool_use"
    beside = without(meta_of(block), "synthetic_id")
    return {"type": kind, "id": block.id, "name": block.name, "input": object_of(block.arguments), **beside}


def _server_result(block: ToolResultBlock) -> Item:
    item: Item = {"type": block.name, "tool_use_id": block.call_id, "content": value_of(block.content or "null")}
    if block.name == "mcp_tool_result":  # the others say so inside their content
        item["is_error"] = block.is_error
    return {**item, **meta_of(block)}


def _other(block: OtherBlock) -> Any:
    return value_of(block.raw or "null")


_CONTENT: Final[Mapping[type[Block], Callable[[Any], Item]]] = {
    TextBlock: _text,
    ReasoningBlock: _thinking,
    ToolCallBlock: _call,
    ToolResultBlock: _server_result,
    OtherBlock: _other,
}
