"""Responses: the output items as they came, and an item for each result.

Reads against ``ResponseInputItemParam``. An item is put together again from its block and what the block's ``meta``
kept of it. Reasoning and what it led to belong together: the API refuses either without the other.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias, cast

from streamfold.blocks import (
    ApprovalBlock,
    Block,
    MediaBlock,
    OtherBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    TranscriptBlock,
)
from streamfold.echo._items import Item, Turn, meta_of, typed, value_of, waiting, without
from streamfold.echo._outputs import results

__all__ = ["items", "results", "waiting"]


class _CallType(NamedTuple):
    type: str
    arguments: str = ""  # the member that holds them, where ``meta`` does not
    named: bool = False
    has_call_id: bool = True
    required: tuple[str, ...] = ()  # members that the request type wants though they be null
    unknown: tuple[str, ...] = ()  # members of the answer that the request type does not have


_FUNCTION: Final = _CallType("function_call", "arguments", named=True)
_CALLS: Final[Mapping[str, _CallType]] = {
    "function": _FUNCTION,
    "custom": _CallType("custom_tool_call", "input", named=True, unknown=("status",)),
    "apply_patch": _CallType("apply_patch_call"),
    "computer": _CallType("computer_call"),
    "local_shell": _CallType("local_shell_call"),
    "shell": _CallType("shell_call"),
    "tool_search": _CallType("tool_search_call"),
    "code_execution": _CallType("code_interpreter_call", "code", has_call_id=False, required=("outputs",)),
    "file_search": _CallType("file_search_call", has_call_id=False),
    "image_generation": _CallType("image_generation_call", has_call_id=False, required=("result",)),
    "mcp": _CallType("mcp_call", "arguments", named=True, has_call_id=False),
    "web_search": _CallType("web_search_call", has_call_id=False),
}
"""Items that are calls, by the kind of their block."""

_RESULTS: Final = {"program_output": "result", "tool_search_output": "tools"}
"""The member in which an item holds what a tool gave back, where it is not ``output``."""

_Entry: TypeAlias = tuple[Block, Item | None]
"""A block and its item; None: it cannot go back. Blocks that stand inside another block's item have no entry."""


def items(turn: Turn) -> list[Item]:
    """The items, in their order."""
    return [item for run in _runs(_entries(turn)) for item in _paired(run)]


def _entries(turn: Turn) -> Iterator[_Entry]:
    inside = _Inside(turn.blocks)
    messages: dict[object, Item] = {}  # by id: each of their parts is a block
    for block in turn.blocks:
        match block:
            case TextBlock() | RefusalBlock():
                id_ = _item_id(block)
                if id_ in messages:
                    messages[id_]["content"].append(_part(block))
                    continue
                item = _message(block)
                if "id" in item:
                    messages[id_] = item
                yield block, item
            case ReasoningBlock():
                yield block, _reasoning(block) if _can_return(block, turn) else None
            case ToolCallBlock():
                yield block, _call(block, inside) if _goes(block) else None
            case ToolResultBlock() if "type" in meta_of(block):
                yield block, _output(block) if block.complete else None
            case ApprovalBlock():
                yield block, _approval(block) if block.complete else None
            case OtherBlock():
                yield block, _other(block) if block.complete else None
            case TranscriptBlock(source="model"):
                yield block, _words(block.text, {})
            case _:
                continue


def _goes(block: ToolCallBlock) -> bool:
    """Whether the call can go back: it is whole, and has the id that its type wants, which is all that names it."""
    whole = block.complete if block.executor == "provider" else block.state == "ready"
    return whole and (_CALLS.get(block.kind, _FUNCTION).has_call_id or bool(_item_id(block)))


def _can_return(block: ReasoningBlock, turn: Turn) -> bool:
    """Whether the API can make sense of the reasoning: it is whole, and either in the item or in the API's store."""
    meta = meta_of(block)
    in_the_item = block.encrypted is not None or bool(meta.get("content"))  # open models show all they think
    return block.complete and (in_the_item or (turn.complete and meta.get("store") is not False))


def _runs(entries: Iterable[_Entry]) -> Iterator[list[_Entry]]:
    """Reasoning, and all that came until the model reasoned again."""
    run: list[_Entry] = []
    for entry in entries:
        if isinstance(entry[0], ReasoningBlock) and run and not isinstance(run[-1][0], ReasoningBlock):
            yield run
            run = []
        run.append(entry)
    yield run


def _paired(run: list[_Entry]) -> Iterator[Item]:
    """The items of one run.

    "Item … of type 'reasoning' was provided without its required following item": it goes back only if what came right
    after it does, under its id. "Item … was provided without its required 'reasoning' item": what goes back without it
    does so under no id, for that is how the API would know.
    """
    thoughts = list(takewhile(lambda entry: isinstance(entry[0], ReasoningBlock), run))
    led_to = [item for _, item in run[len(thoughts) :]]
    kept = [item for _, item in thoughts if item is not None and led_to and _follows(led_to[0], item)]
    yield from kept
    for item in led_to:
        if item is not None:
            yield item if kept or not thoughts else _loosened(item)


def _follows(item: Item | None, thought: Item) -> bool:
    return item is not None and ("id" in item or "id" not in thought)


def _loosened(item: Item) -> Item:
    """The item without its id, where it can do without one."""
    if item["type"] == "message" and isinstance(item["content"], list):
        parts = cast("list[Item]", item["content"])
        return _words("".join(part.get("text") or part.get("refusal") or "" for part in parts), item)
    return without(item, "id") if item["type"] in _NEED_NO_ID else item


_NEED_NO_ID: Final = frozenset(
    {"function_call", "custom_tool_call", "shell_call", "apply_patch_call", "tool_search_call"}
)


class _Inside:
    """Blocks that stand inside the item of a call: what the provider's tool gave back, the image it made."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.results: dict[str | None, ToolResultBlock] = {}
        self.images: dict[str | None, MediaBlock] = {}
        for block in blocks:
            if isinstance(block, ToolResultBlock):
                self.results[block.call_id] = block
            elif isinstance(block, MediaBlock):
                self.images[_item_id(block)] = block


# -- items ------------------------------------------------------------------------------------------------------------


def _message(block: TextBlock | RefusalBlock) -> Item:
    meta = meta_of(block)
    if (
        not meta.get("item_id") or not block.complete
    ):  # the type with parts wants an id; half a message has none to keep
        return _words(block.text, meta)
    return _identified({"type": "message", "role": "assistant", "content": [_part(block)]}, meta)


def _words(text: str, members: Mapping[str, Any]) -> Item:
    """A message that is nothing but text. The phase is to be kept: it tells a preamble from the answer."""
    phase = members.get("phase")
    item: Item = {"type": "message", "role": "assistant", "content": text}
    return item if phase is None else {**item, "phase": phase}


def _part(block: TextBlock | RefusalBlock) -> Item:
    if isinstance(block, RefusalBlock):
        return {"type": "refusal", "refusal": block.text}
    annotations = [value_of(citation.raw) for citation in block.citations if citation.raw is not None]
    return {"type": "output_text", "text": block.text, "annotations": annotations}


def _reasoning(block: ReasoningBlock) -> Item:
    meta = meta_of(block)
    # Which parts stand under which name; a text that the host repeats under both is one part. Else all are summary.
    summary, content = meta.pop("summary", None), meta.pop("content", None)
    if summary is None:
        summary = [] if content is not None else list(range(len(block.parts)))
    item: Item = {"type": "reasoning", "summary": _texts(block, summary, "summary_text")}
    if content is not None:
        item["content"] = _texts(block, content, "reasoning_text")
    if block.encrypted is not None:
        item["encrypted_content"] = block.encrypted
    # "Unknown parameter: 'input[3].status'": it is for items that the API returns, and for no others.
    return _identified(item, without(meta, "store", "status"))


def _texts(block: ReasoningBlock, places: Any, kind: str) -> list[Item]:
    parts = block.parts
    return [{"type": kind, "text": parts[place] if place in range(len(parts)) else ""} for place in places]


def _call(block: ToolCallBlock, inside: _Inside) -> Item:
    meta, call = meta_of(block), _CALLS.get(block.kind, _FUNCTION)
    item: Item = {"type": call.type, **dict.fromkeys(call.required)}
    if call.has_call_id and block.id != meta.get("item_id"):  # a tool search may have none
        item["call_id"] = block.id
    if call.named:
        item["name"] = block.name
    if call.arguments:
        item[call.arguments] = block.arguments
    add = _BESIDE.get(block.kind)
    if add is not None:
        add(item, block, inside)
    return _identified(item, without(meta, *call.unknown))


def _add_search(item: Item, block: ToolCallBlock, inside: _Inside) -> None:
    item["arguments"] = value_of(block.arguments)


def _add_query(item: Item, block: ToolCallBlock, inside: _Inside) -> None:
    if "action" not in meta_of(block) and block.arguments not in ("", "{}"):  # xAI; ``action`` is in meta
        item["name"], item["arguments"] = block.name, block.arguments


def _add_output(item: Item, block: ToolCallBlock, inside: _Inside) -> None:
    result = inside.results.get(block.id)
    given = value_of(result.content) if result is not None and result.content is not None else None
    if given is not None and given != meta_of(block).get("error"):  # where it failed, the error is all there is
        item["output"] = given


def _add_image(item: Item, block: ToolCallBlock, inside: _Inside) -> None:
    image = inside.images.get(_item_id(block))
    if image is not None:
        item["result"] = base64.b64encode(image.data).decode()


_BESIDE: Final[Mapping[str, Callable[[Item, ToolCallBlock, _Inside], None]]] = {
    "tool_search": _add_search,  # its arguments are an object
    "web_search": _add_query,
    "mcp": _add_output,
    "image_generation": _add_image,
}


def _output(block: ToolResultBlock) -> Item:
    meta, member = meta_of(block), _RESULTS.get(block.name or "", "output")
    item: Item = {"type": block.name, "call_id": block.call_id} if block.call_id else {"type": block.name}
    if block.content is not None:
        item[member] = value_of(block.content)
        meta.pop(member, None)
    return _identified(item, meta)


def _approval(block: ApprovalBlock) -> Item:
    item: Item = {"type": "mcp_approval_request", "id": block.id, "name": block.name, "arguments": block.arguments}
    return _identified(item, meta_of(block))


def _other(block: OtherBlock) -> Item | None:
    """An item that no block describes, whole: lists of MCP tools, compactions, what is new."""
    return None if block.raw is None else typed(value_of(block.raw))


def _item_id(block: Block) -> str | None:
    """The id of the item that the block is of; what is no text names none."""
    id_ = meta_of(block).get("item_id")
    return id_ if isinstance(id_, str) else None


def _identified(item: Item, meta: Item) -> Item:
    """The item with its id and with what else the wire said of it."""
    id_ = meta.get("item_id")
    id_ = id_ if isinstance(id_, str) else None
    beside = without(meta, "item_id", "synthetic_id")
    return {**item, **({"id": id_} if id_ else {}), **beside}
