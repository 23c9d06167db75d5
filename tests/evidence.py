"""Reading the shared evidence: captures and the facts they fold to, cases and the one right outcome of each."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from streamfold import (
    BlockEnd,
    Event,
    JSONText,
    Raw,
    ReasoningBlock,
    Restart,
    Snapshot,
    ToolCallBlock,
    encode_event,
)

SURFACES = {  # of each family
    "chat": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "interactions": "gemini-interactions",
}
FAMILIES = (*SURFACES, "error-body", "foreign")
PROVIDERS = ("openai-responses", "openai-chat", "anthropic", "xai", "gemini", "auto")
MORE_SURFACES = {
    "converse": "bedrock-converse",
    "converse-invoke": "bedrock-converse",
    "bedrock-anthropic": "anthropic",  # which it is, inside of other payloads
    "cohere": "cohere",
}
DOUBTED = {
    # capture -> members whose fact is not what the body says
    "compat-cohere/rig-streaming-grammar-reasoning-then-tool-call.sse": {
        "usage.reasoning_tokens": "not reported, says the fact; the last event has tokens.reasoning_tokens, 304",
    },
}


def captures(shared: Path) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Name, body and facts of every capture of the surfaces that clients and frameworks read too."""
    for name, body, facts in every_capture(shared):
        if facts["family"] in FAMILIES and facts["provider"] in PROVIDERS and facts["framing"] != "eventstream":
            yield name, body, facts


def every_capture(shared: Path) -> Iterator[tuple[str, bytes, dict[str, Any]]]:
    """Name, body and facts of every capture that is the body of a response."""
    for path in sorted((shared / "expected").glob("*.json")):
        document = json.loads(path.read_text())
        for file, facts in document["captures"].items():
            if "family" in facts:
                name = f"{document['folder']}/{file}"
                unchecked = [*facts["unchecked"], *DOUBTED.get(name, ())]
                body = (shared / "captures" / name).read_bytes()
                yield name, body, {**facts, "unchecked": unchecked}


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)] or [b""]


# -- captures ---------------------------------------------------------------------------------------------------------


def same_text(text: str, fact: Any) -> bool:
    """Whether a text is the one a fact describes, in full or by digest."""
    if not isinstance(fact, dict):
        return text == fact
    digest = fact["digest"]
    return len(text) == digest["length"] and hashlib.sha256(text.encode()).hexdigest() == digest["sha256"]


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def differences(answer: Snapshot, events: Iterable[Event], facts: dict[str, Any]) -> Iterator[str]:
    """What the answer says otherwise than the facts."""
    events = list(events)
    for member, found in compared(answer, events, facts):
        if member not in facts["unchecked"] and member.split(".")[0] not in facts["unchecked"] and found:
            yield f"{member}: {found}"


def compared(answer: Snapshot, events: list[Event], facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "outcome", "" if answer.outcome == facts["outcome"] else f"{answer.outcome} ({answer.error})"
    yield "error", error_difference(answer, facts["error"])
    if facts["family"] == "error-body":
        return
    if facts["family"] == "foreign":
        raws = sum(isinstance(event, Raw) for event in events)
        yield "raw_payloads", "" if raws == facts["payloads"] else f"{raws} raw events of {facts['payloads']} payloads"
        return
    surface = {**SURFACES, **MORE_SURFACES}[facts["family"]]
    yield "surface", "" if answer.surface == surface else repr(answer.surface)
    yield "id", "" if answer.id == facts["id"] else repr(answer.id)
    yield "model", "" if answer.model == facts["model"] else repr(answer.model)
    yield "text", "" if same_text(answer.text, facts["text"]) else repr(answer.text[:200])
    for index, text in facts["other_choices"].items():
        found = answer.choice(int(index)).text
        yield "other_choices", "" if same_text(found, text) else repr(found[:200])
    yield "reasoning", reasoning_difference(answer, events, facts)
    yield "tool_calls", calls_difference(answer, facts["tool_calls"])
    withheld = sorted(c.name for c in answer.withheld_calls if c.executor == "client")
    restarted = any(isinstance(event, Restart) for event in events)  # which takes what came before out of the answer
    yield "withheld_calls", "" if restarted or withheld == sorted(facts["withheld_calls"]) else repr(withheld)
    provided = [b.name for b in answer.choice(0).blocks if isinstance(b, ToolCallBlock) and b.executor == "provider"]
    alike = len(provided) == len(facts["provider_calls"]) and all(
        wanted in (None, found) for wanted, found in zip(facts["provider_calls"], provided, strict=True)
    )
    yield "provider_calls", "" if alike else repr(provided)
    if facts["outcome"] == "complete":
        stop = facts["stop"]
        fits = stop["reason"] in (None, answer.stop.reason) and (
            stop["reason"] is None or stop["raw"] == answer.stop.raw
        )
        yield "stop", "" if fits else repr(answer.stop)
    yield from usage_differences(answer, facts["usage"])
    kept = [text for block in answer.blocks for text in strings_of(block)] + [
        str(e.payload) for e in events if isinstance(e, Raw)
    ]
    for group in facts["signatures"]:
        yield "signatures", "" if any(holds(kept, copy) for copy in group) else f"none of {group!r:.120} is kept"
    raws = {padded(e.payload.decoded()) for e in events if isinstance(e, Raw) and e.is_json}
    for payload in facts["raw_payloads"]:
        yield (
            "raw_payloads",
            "" if any(same_text(raw, payload) for raw in raws) else f"{payload!r:.120} is no raw event",
        )


def error_difference(answer: Snapshot, fact: dict[str, Any] | None) -> str:
    error = answer.error
    if fact is None or error is None:
        return "" if fact is None and error is None else repr(error)
    codes = {str(error.code), str(error.status)}
    fits = (
        error.kind == fact["kind"]
        and (fact.get("code") is None or str(fact["code"]) in codes)
        and (fact.get("message") or "") in error.message
    )
    return "" if fits else repr(error)


def reasoning_difference(answer: Snapshot, events: list[Event], facts: dict[str, Any]) -> str:
    blocks = [e.block for e in events if isinstance(e, BlockEnd) and isinstance(e.block, ReasoningBlock)]
    parts = "".join(part for block in blocks if block.choice == 0 for part in block.parts)
    wanted = [facts["reasoning"], *facts["reasoning_or"]]
    return (
        "" if any(same_text(t, w) for t in (answer.reasoning, parts) for w in wanted) else repr(answer.reasoning[:300])
    )


def calls_difference(answer: Snapshot, facts: list[dict[str, Any]]) -> str:
    calls = answer.tool_calls
    if len({call.id for call in calls}) != len(calls) or len(calls) != len(facts):
        return repr(calls)
    for call, fact in zip(calls, facts, strict=True):
        if (fact["id"] is not None and call.id != fact["id"]) or (
            fact["name"] is not None and call.name != fact["name"]
        ):
            return repr(call)
        wanted = fact["arguments"]
        if not fact["json"]:
            if wanted is not None and not same_text(call.arguments, wanted):
                return repr(call)
        elif isinstance(wanted, dict) and "digest" in wanted:
            if not same_text(canonical(json.loads(call.arguments)), wanted):
                return repr(call)
        elif json.loads(call.arguments) != wanted:
            return repr(call)
    return ""


def usage_differences(answer: Snapshot, facts: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if facts is None:
        yield "usage", "" if answer.usage is None else repr(answer.usage)
        return
    if answer.usage is None:
        yield "usage", "none"
        return
    for name, wanted in facts.items():
        found = getattr(answer.usage, name)
        if wanted is None and name == "total_tokens":
            parts = (answer.usage.input_tokens or 0) + (answer.usage.output_tokens or 0)
            yield f"usage.{name}", "" if found in (None, parts) else repr(found)
        elif wanted is None:
            yield f"usage.{name}", "" if found in (None, 0) else repr(found)
        else:
            yield f"usage.{name}", "" if found == wanted else f"{found} is not {wanted}"


def strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if isinstance(value, JSONText):
            yield from strings_of(value.decoded())
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_of(item)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from strings_of(getattr(value, name))
    elif isinstance(value, bytes):
        yield base64.b64encode(value).decode()


def holds(kept: list[str], wanted: Any) -> bool:
    if isinstance(wanted, str):
        return any(wanted in text for text in kept)
    head, length = wanted["digest"]["head"], wanted["digest"]["length"]
    for text in kept:
        at = text.find(head)
        while at >= 0:
            if same_text(text[at : at + length], wanted):
                return True
            at = text.find(head, at + 1)
    return False


def padded(value: Any) -> str:
    """A payload without the members that only pad it, in the form the facts use."""
    if isinstance(value, dict):
        value = {name: item for name, item in value.items() if name not in ("obfuscation", "p")}
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def lines(events: Iterable[Event]) -> list[bytes]:
    """Events in a form that compares and prints well."""
    return [encode_event(event) for event in events]
