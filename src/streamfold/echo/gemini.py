"""Gemini ``generateContent``: one content of the model with its parts, and one of the user with all results.

Reads against ``Content`` and ``Part``. A part goes back with every member it came with, in its place: what a signature
signs is the part that it stands on, also one without any text. Only text that carries nothing besides is put together.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from streamfold.blocks import (
    MediaBlock,
    OtherBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from streamfold.echo._google import function_response
from streamfold.echo._items import (
    Answered,
    Item,
    Turn,
    meta_of,
    object_of,
    value_of,
    waiting,
    without,
)
from streamfold.errors import UsageError

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """The content of the model; none where it says nothing and calls nothing.

    Raises:
        UsageError: The turn is not over.
    """
    if turn.stop.reason == "pause":
        raise UsageError("the turn goes on under its continuationToken: send the same contents with it and add nothing")
    parts = list(_parts(turn))
    if all(part.get("thought") is True or part.get("text") == "" for part in parts):
        return []  # nothing but thoughts and marks
    return [{"role": "model", "parts": parts}]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """One content with all of them: as many responses are wanted as there were calls."""
    parts = [{"functionResponse": function_response(block, result)} for block, result in answered]
    return [{"role": "user", "parts": parts}] if parts else []


# -- parts ------------------------------------------------------------------------------------------------------------


def _parts(turn: Turn) -> Iterator[Item]:
    made_up = {
        block.id for block in turn.blocks if isinstance(block, ToolCallBlock) and "synthetic_id" in meta_of(block)
    }
    for block in turn.blocks:
        match block:
            case TextBlock():
                yield from _texts(block, {})
            case ReasoningBlock():
                yield from _texts(block, {"thought": True})
            case ToolCallBlock() if block.complete and block.state in ("ready", "provider"):
                yield _call(block)
            case ToolResultBlock() if block.complete:
                yield _result(block, made_up)
            case MediaBlock() if block.complete:
                yield _media(block)
            case OtherBlock() if block.complete and block.raw is not None:
                yield cast("Item", value_of(block.raw))
            case _:
                continue


def _texts(block: TextBlock | ReasoningBlock, kind: Item) -> Iterator[Item]:
    """The parts of a text: those that carry more than their text, and between them what carries nothing."""
    text, at = block.text, 0
    for mark in meta_of(block).get("parts", ()):
        start, end, beside = mark["start"], mark["end"], without(mark, "start", "end")
        if at < start:
            yield {"text": text[at:start], **kind}
        yield {"text": text[start:end], **kind, **beside}
        at = end
    if at < len(text):
        yield {"text": text[at:], **kind}


def _call(block: ToolCallBlock) -> Item:
    meta = meta_of(block)
    id_: Item = {} if "synthetic_id" in meta else {"id": block.id}
    beside = without(meta, "synthetic_id", *_CALLS)
    if block.executor == "client":
        call = {"name": block.name, "args": object_of(block.arguments), **id_, **meta.get("functionCall", {})}
        return {"functionCall": call, **beside}
    if "toolCall" in meta:
        args = {} if not block.arguments else {"args": value_of(block.arguments)}
        return {"toolCall": {**meta["toolCall"], **args, **id_}, **beside}
    return {"executableCode": {**meta.get("executableCode", {}), "code": block.arguments, **id_}, **beside}


_CALLS: Final = ("functionCall", "toolCall", "executableCode")


def _result(block: ToolResultBlock, made_up: set[str]) -> Item:
    meta, content = meta_of(block), None if block.content is None else value_of(block.content)
    member = next((name for name in _RESULTS if name in meta), "functionResponse")
    id_: Item = {} if block.call_id is None or block.call_id in made_up else {"id": block.call_id}
    return {member: {**meta.pop(member, {}), **_RESULTS[member](block, content), **id_}, **meta}


def _code_result(block: ToolResultBlock, content: Any) -> Item:
    return cast("Item", content) if isinstance(content, dict) else {}


def _server_result(block: ToolResultBlock, content: Any) -> Item:
    return {} if content is None else {"response": content}


def _function_result(block: ToolResultBlock, content: Any) -> Item:
    name = {} if block.name is None else {"name": block.name}
    return {**name, **_server_result(block, content)}


_RESULTS: Final[Mapping[str, Callable[[ToolResultBlock, Any], Item]]] = {
    "codeExecutionResult": _code_result,
    "toolResponse": _server_result,
    "functionResponse": _function_result,
}


def _media(block: MediaBlock) -> Item:
    meta = meta_of(block)
    kind = {} if block.mime_type is None else {"mimeType": block.mime_type}
    if block.url is not None:
        return {"fileData": {**kind, "fileUri": block.url, **meta.pop("fileData", {})}, **meta}
    data = base64.b64encode(block.data).decode()
    return {"inlineData": {**kind, "data": data, **meta.pop("inlineData", {})}, **meta}
