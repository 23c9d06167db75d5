"""Responses: the items that answer calls and requests for approval, by the kind of what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamfold.blocks import ApprovalBlock, ToolCallBlock
from streamfold.echo._items import Answered, Item, ToolResult, Turn, error_text, members_of, meta_of, text_of_result
from streamfold.errors import UsageError

__all__ = ["results"]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """An item for each."""
    return [
        _approval(block, result)
        if isinstance(block, ApprovalBlock)
        else _OUTPUTS.get(block.kind, _function_output)(block, result)
        for block, result in answered
    ]


def _approval(block: ApprovalBlock, result: ToolResult) -> Item:
    item: Item = {"type": "mcp_approval_response", "approval_request_id": block.id}
    if result.native:
        return {**item, **members_of(result)}
    if not isinstance(result.content, bool):
        raise UsageError(f"the approval {block.id} is answered by True or False")
    return {**item, "approve": result.content}


def _function_output(block: ToolCallBlock, result: ToolResult) -> Item:
    kind = "custom_tool_call_output" if block.kind == "custom" else "function_call_output"
    # The API has no word for an error: what the tool answers is the one place to say it.
    output = result.content if result.native else error_text(result)
    return _called({"type": kind, "call_id": block.id, "output": output}, block)


def _apply_patch_output(block: ToolCallBlock, result: ToolResult) -> Item:
    status, log = "failed" if result.is_error else "completed", text_of_result(result.content)
    item: Item = {"type": "apply_patch_call_output", "call_id": block.id, "status": status}
    return _called({**item, "output": log} if log else item, block)


def _shell_output(block: ToolCallBlock, result: ToolResult) -> Item:
    output = result.content if result.native else [_ran(result)]
    item: Item = {"type": "shell_call_output", "call_id": block.id, "output": output}
    action = meta_of(block).get("action")
    length = action.get("max_output_length") if isinstance(action, dict) else None
    return _called(item if length is None else {**item, "max_output_length": length}, block)


def _ran(result: ToolResult) -> Item:
    """What one run of all commands printed."""
    stream, other = ("stderr", "stdout") if result.is_error else ("stdout", "stderr")
    outcome = {"type": "exit", "exit_code": int(result.is_error)}
    return {stream: text_of_result(result.content), other: "", "outcome": outcome}


def _local_shell_output(block: ToolCallBlock, result: ToolResult) -> Item:
    output = result.content if result.native else error_text(result)
    return {"type": "local_shell_call_output", "id": block.id, "output": output}


def _computer_output(block: ToolCallBlock, result: ToolResult) -> Item:
    """A screenshot: its address or data URL, or the whole output object."""
    output: Any = result.content
    if isinstance(output, str) and not result.native:
        output = {"type": "computer_screenshot", "image_url": output}
    return {"type": "computer_call_output", "call_id": block.id, "output": output}


def _tool_search_output(block: ToolCallBlock, result: ToolResult) -> Item:
    """The tools that were found."""
    item: Item = {"type": "tool_search_output", "execution": "client", "status": "completed", "tools": result.content}
    return item if block.id == meta_of(block).get("item_id") else {**item, "call_id": block.id}


def _called(item: Item, block: ToolCallBlock) -> Item:
    """The item, which names the program that made the call where one did."""
    caller = meta_of(block).get("caller")
    return item if caller is None else {**item, "caller": caller}


_OUTPUTS: Final[Mapping[str, Callable[[ToolCallBlock, ToolResult], Item]]] = {
    "apply_patch": _apply_patch_output,
    "computer": _computer_output,
    "local_shell": _local_shell_output,
    "shell": _shell_output,
    "tool_search": _tool_search_output,
}
