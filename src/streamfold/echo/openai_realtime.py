"""OpenAI Realtime and xAI's copy of it: each item as the event by which a client puts it into the conversation.

Reads against ``RealtimeConversationItem`` and ``conversation.item.create``. A session holds its own history: items are
for one that is begun anew, since none can be taken up again. Words of audio go back as the text they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamfold.blocks import RefusalBlock, TextBlock, ToolCallBlock, TranscriptBlock
from streamfold.echo import _outputs
from streamfold.echo._items import Answered, Item, Turn, waiting

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """What was said, by whom, and the calls that are handed out, in their order."""
    return [_created(item) for item in _items(turn)]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """An event for each. What makes the model go on (``response.create``) is the caller's to send."""
    return [_created(item) for item in _outputs.results(turn, answered)]


def _created(item: Item) -> Item:
    return {"type": "conversation.item.create", "item": item}


def _items(turn: Turn) -> Iterator[Item]:
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
