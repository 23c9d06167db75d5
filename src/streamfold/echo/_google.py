"""What Google's surfaces want of the result of a call, on generateContent and in a live session alike."""

from __future__ import annotations

from typing import cast

from streamfold.echo._items import Item, ToolResult, Waiting, json_value, members_of, meta_of

__all__ = ["function_response"]


def function_response(block: Waiting, result: ToolResult) -> Item:
    """A ``FunctionResponse``: by the call's id where the wire has one, and by its name."""
    item: Item = {}
    if "synthetic_id" not in meta_of(block):
        item["id"] = block.id
    item["name"] = block.name
    if result.native:
        return {**item, **members_of(result)}
    return {**item, "response": _object(result)}


def _object(result: ToolResult) -> Item:
    """The response is an object; the page names ``output`` for what is none, and ``error`` for what went wrong."""
    content = json_value(result.content)
    if result.is_error:
        return {"error": content}
    return cast("Item", content) if isinstance(content, dict) else {"output": content}
