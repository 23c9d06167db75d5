"""OpenAI Realtime and xAI's copy of it: each item as the event by which a client puts it into the conversation.

Reads against ``RealtimeConversationItem`` and ``conversation.item.create``. A session holds its own history: items are
for one that is begun anew, where none can be taken up again. Words of audio go back as the text they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from streamfold.blocks import Block, RefusalBlock, TextBlock, ToolCallBlock, TranscriptBlock
from streamfold.echo import _items, _outputs
from streamfold.echo._items import Answered, Item, Turn, Waiting, value_of

__all__ = ["items", "results", "waiting"]


def waiting(turn: Turn) -> Sequence[Waiting]:
    """The calls that are handed out, and those whose arguments are all there while their item is still open.

    The latter are nobody's to run yet: their response may break off. A client that has done so all the same sends the
    result behind ``function_call_arguments.done``, before the item is done, and the server takes it (recorded).
    """
    early = filter(_is_whole, turn.blocks)
    return sorted([*_items.waiting(turn), *early], key=lambda block: block.index)


def _is_whole(block: Block) -> TypeGuard[ToolCallBlock]:
    if not isinstance(block, ToolCallBlock) or (block.state, block.executor) != ("open", "client"):
        return False
    return isinstance(value_of(block.arguments), dict)  # an object that was cut is none


def items(turn: Turn) -> list[Item]:
    """What was said, by whom, and the calls that are handed out, in their order."""
    return [_created(item) for item in _said(turn)]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """An event for each. What makes the model go on (``response.create``) is the caller's to send."""
    return [_created(item) for item in _outputs.results(turn, answered)]


def _created(item: Item) -> Item:
    return {"type": "conversation.item.create", "item": item}


def _said(turn: Turn) -> Iterator[Item]:
    for block in turn.blocks:
        match block:
            case TranscriptBlock(source="user") if block.text:
                yield _message("user", "input_text", block.text)
            case TextBlock() | RefusalBlock() | TranscriptBlock() if block.text:
                yield _message("assistant", "output_text", block.text)
            case ToolCallBlock(state="ready", kind="function"):
                yield {
                    "type": "function_call",
                    "call_id": block.id,
                    "name": block.name,
                    "arguments": block.arguments,
                }
            case _:
                continue


def _message(role: str, kind: str, text: str) -> Item:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
