"""The fold once more, as a script would do it: dicts and ``+=``, nothing shared, nothing fast."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamfold import Event, Snapshot

TAKEN_BACK = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
TAKEN_BACK |= {"MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"}
"""Gemini's finish reasons after which no call of the turn may be run."""


def naive(events: Iterable[Event], outcome: str = "open") -> dict[str, Any]:
    """What the events of one answer add up to."""
    out: dict[str, Any] = {"surface": None, "id": None, "model": None, "usage": None, "error": None, "outcome": "open"}
    out |= {"warnings": [], "stops": {}, "blocks": {}}
    blocks: dict[int, dict[str, Any]] = out["blocks"]
    event: Any
    for event in events:
        match event.type:
            case "start":
                out |= {"surface": event.surface, "id": event.id or out["id"], "model": event.model or out["model"]}
            case "restart":
                blocks.clear()
            case "block_start" | "tool_call_start":
                kind = "tool_call" if event.type == "tool_call_start" else event.kind
                named = {"type": kind, "choice": event.choice, "complete": False}
                blocks[event.index] = {**named, "text": {}, "data": b"", "cites": ()}
            case "text_delta" | "tool_call_delta" | "reasoning_delta" | "transcript_delta":
                text, part = blocks[event.index]["text"], getattr(event, "part", 0)
                text[part] = text.get(part, "") + (event.delta if event.type == "tool_call_delta" else event.text)
            case "media_delta":
                blocks[event.index]["data"] += event.data
            case "citation":
                blocks[event.index]["cites"] += (event,)
            case "tool_call_done":
                blocks[event.index] |= {"text": {0: event.arguments}, "complete": True}
            case "block_end":
                blocks[event.index] = {"block": event.block}
            case "usage":
                out["usage"] = event
            case "done":
                out |= {"outcome": "complete", "stops": {stop.choice: stop for stop in event.stops}}
            case "error" if event.fatal:
                out |= {"error": event, "outcome": "truncated" if event.kind == "truncated" else "failed"}
            case "error":
                out["warnings"].append(event)
    return out


def shown(block: Any) -> dict[str, Any]:
    """A block that is still open, in the form the script holds it."""
    match block.type:
        case "reasoning":
            return {"parts": list(block.parts)}
        case "tool_call":
            return {"text": block.arguments}
        case "media":
            return {"data": block.data}
        case "text":
            return {"text": block.text, "cites": block.citations}
        case "refusal" | "transcript":
            return {"text": block.text}
    return {}


def differences(answer: Snapshot, events: Iterable[Event]) -> list[str]:
    """Where a snapshot says otherwise than the script."""
    wanted = naive(events)
    names = ("surface", "id", "model", "usage", "error", "outcome")
    said = {name: (getattr(answer, name), wanted[name]) for name in names}
    found = [f"{name}: {shown!r} is not {told!r}" for name, (shown, told) in said.items() if shown != told]
    if list(answer.warnings) != wanted["warnings"]:
        found.append(f"warnings: {answer.warnings!r}")
    if [block.index for block in answer.blocks] != sorted(wanted["blocks"]):
        return [*found, f"blocks: {answer.blocks!r}"]
    refused = {stop.choice for stop in wanted["stops"].values() if stop.reason == "refusal" or stop.raw in TAKEN_BACK}
    for block in answer.blocks:
        found += _block_differences(block, wanted["blocks"][block.index], refused)
    stops = {n: answer.choice(n).stop for n in wanted["stops"]}
    if stops != wanted["stops"] or answer.stop != wanted["stops"].get(0, answer.stop):
        found.append(f"stops: {stops!r}")
    texts = [b.text for b in answer.blocks if b.type in ("text", "refusal") and b.choice == 0]
    if answer.text != "".join(texts):
        found.append(f"text: {answer.text!r}")
    ready = [b for b in answer.blocks if b.type == "tool_call" and b.choice == 0 and b.state == "ready"]
    if list(answer.tool_calls) != ready:
        found.append(f"tool_calls: {answer.tool_calls!r}")
    return found


def _block_differences(block: Any, wanted: dict[str, Any], refused: set[int]) -> list[str]:
    if "block" in wanted:
        end = wanted["block"]
        void = end.type == "tool_call" and end.choice in refused and end.state == "ready"
        same = block.state == "void" and block.arguments == end.arguments if void else block == end
        return [] if same else [f"block {block.index}: {block!r} is not {end!r}"]
    parts = [text for _, text in sorted(wanted["text"].items())]
    views = {"parts": parts, "text": "".join(parts), "data": wanted["data"], "cites": wanted["cites"]}
    said = {name: views[name] for name in shown(block)}
    said |= {name: wanted[name] for name in ("type", "choice", "complete")}
    if {"type": block.type, "choice": block.choice, "complete": block.complete, **shown(block)} == said:
        return []
    return [f"block {block.index}: {block!r} is not {wanted!r}"]
