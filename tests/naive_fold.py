"""The fold once more, as a script would do it: dicts and ``+=``, nothing shared, nothing fast.

It asks as little of the events as the fold does: a block may open by its first delta, be named later or never, and be
closed by nothing but the end of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamfold import Event, Snapshot, Stop

TAKEN_BACK = {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
TAKEN_BACK |= {"MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"}
"""Gemini's finish reasons after which no call of the turn may be run."""


KINDS = {
    "text_delta": "text",
    "citation": "text",
    "reasoning_delta": "reasoning",
    "transcript_delta": "transcript",
    "media_delta": "media",
    "tool_call_start": "tool_call",
    "tool_call_delta": "tool_call",
    "tool_call_done": "tool_call",
}
"""What kind of block an event opens that names none."""


OWN: dict[str, dict[str, Any]] = {
    "tool_call": {"id": "", "name": "", "executor": "client", "state": "open"},
    "media": {"data": b"", "mime_type": None, "url": None},
    "transcript": {"source": "model"},
}
"""What only blocks of that kind have, before anything is said of it."""


def fresh(kind: str) -> dict[str, Any]:
    """A block that has just opened, by something other than its start."""
    common = {"type": kind, "choice": 0, "meta": None, "complete": False, "text": {}, "cites": ()}
    return {**common, **OWN.get(kind, {})}


def naive(events: Iterable[Event]) -> dict[str, Any]:
    """What the events of one answer add up to."""
    out: dict[str, Any] = {"surface": None, "id": None, "model": None, "usage": None, "error": None, "outcome": "open"}
    out |= {"warnings": [], "stops": {}, "blocks": {}}
    blocks: dict[int, dict[str, Any]] = out["blocks"]
    event: Any
    for event in events:
        kind = event.kind if event.type == "block_start" else KINDS.get(event.type)
        block = blocks.setdefault(event.index, fresh(kind)) if kind else {}
        match event.type:
            case "start":
                out |= {"surface": event.surface, "id": event.id or out["id"], "model": event.model or out["model"]}
            case "restart":
                blocks.clear()
            case "block_start" | "tool_call_start" if "named" not in block:
                block |= {"type": kind, "choice": event.choice, "meta": event.meta, "named": True}
                if event.type == "tool_call_start" and not block["complete"]:
                    state = "provider" if event.executor == "provider" else "open"
                    block |= {"id": event.id, "name": event.name, "executor": event.executor, "state": state}
            case "text_delta" | "tool_call_delta" | "reasoning_delta" | "transcript_delta":
                text, part = block["text"], getattr(event, "part", 0)
                kept = text.get(part, "")
                kept = kept[: max(0, len(kept) - getattr(event, "replaces", 0))]
                text[part] = kept + (event.delta if event.type == "tool_call_delta" else event.text)
                if event.type == "tool_call_delta":
                    block["id"] = block["id"] or event.id
                elif event.type == "transcript_delta":
                    block["source"] = event.source
            case "media_delta":
                mime_type, url = event.mime_type or block["mime_type"], event.url or block["url"]
                block |= {"data": block["data"] + event.data, "mime_type": mime_type, "url": url}
            case "citation":
                block["cites"] += (event,)
            case "tool_call_done":
                state = "provider" if event.executor == "provider" else "ready" if event.valid else "invalid"
                block |= {"id": event.id, "name": event.name, "executor": event.executor, "state": state}
                block |= {"text": {0: event.arguments}, "complete": True}
            case "block_end":
                blocks[event.index] = {"block": event.block}
            case "usage":
                out["usage"] = event
            case "done":
                stops = event.stops or (Stop(0, event.reason, event.raw_reason, event.stop_sequence),)
                out |= {"outcome": "complete", "stops": {stop.choice: stop for stop in stops}}
                _end(blocks, complete=True)
            case "error" if event.fatal:
                out |= {"error": event, "outcome": "truncated" if event.kind == "truncated" else "failed"}
                _end(blocks, complete=False)
            case "error":
                out["warnings"].append(event)
    choices = [b["block"].choice if "block" in b else b["choice"] for b in blocks.values()]
    out["choices"] = 1 + max([0, *choices, *out["stops"]])
    return out


def _end(blocks: dict[int, dict[str, Any]], *, complete: bool) -> None:
    """The answer is over: what is open is closed. A call that nobody finished is cut, however well it ended."""
    for block in blocks.values():
        if block.get("state") == "open":
            block["state"] = "cut"
        elif "block" not in block and block["type"] != "tool_call":
            block["complete"] = complete


def shown(block: Any) -> dict[str, Any]:
    """A block that is still open, in the form the script holds it."""
    own = {name: getattr(block, name) for name in OWN.get(block.type, {})}
    match block.type:
        case "reasoning":
            return {"parts": list(block.parts)}
        case "tool_call":
            return {"text": block.arguments, **own}
        case "text":
            return {"text": block.text, "cites": block.citations}
        case "refusal" | "transcript":
            return {"text": block.text, **own}
    return own


def differences(answer: Snapshot, events: Iterable[Event]) -> list[str]:
    """Where a snapshot says otherwise than the script."""
    wanted = naive(events)
    names = ("surface", "id", "model", "usage", "error", "outcome", "choices")
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
    parts = [text for _, text in sorted(wanted["text"].items()) if text]
    views = {"parts": parts, "text": "".join(parts), "cites": wanted["cites"]}
    said = {name: views.get(name, wanted.get(name)) for name in shown(block)}
    if wanted.get("state") == "ready" and wanted["choice"] in refused:
        said["state"] = "void"
    names = ("type", "choice", "complete", "meta")
    said |= {name: wanted[name] for name in names}
    if {**{name: getattr(block, name) for name in names}, **shown(block)} == said:
        return []
    return [f"block {block.index}: {block!r} is not {wanted!r}"]
