"""What goes back of an answer, worked out from its payloads by a plain reader that shares no code with the package.

It reads whole bodies, keeps no state between payloads but the turn itself, and knows only what streams that ended well
do: enough to say of every recording what the next request holds of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from tests.samples import Payload


def payloads_of(body: bytes) -> list[Payload]:
    """The JSON objects of a body, framed either way."""
    text = body.decode()
    if text.lstrip().startswith("["):
        items: list[Payload] = json.loads(text)
        return items
    frames = re.split(r"\r?\n\r?\n", text.removeprefix("\ufeff"))
    found = ["\n".join(line[5:].removeprefix(" ") for line in _lines(f) if line.startswith("data:")) for f in frames]
    return [json.loads(data) for data in found if data.strip().startswith("{")]


def _lines(frame: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", frame)


# -- Responses --------------------------------------------------------------------------------------------------------


def responses(payloads: list[Payload]) -> list[Payload]:
    """The items as they were when they were done, but for what only answers have."""
    done = [payload for payload in payloads if payload.get("type") == "response.output_item.done"]
    return [_asked(payload["item"]) for payload in sorted(done, key=lambda payload: payload["output_index"])]


def _asked(item: Payload) -> Payload:
    unknown = {"reasoning": ("status",), "custom_tool_call": ("status",)}.get(item["type"], ())
    item = _without(item, *unknown)
    if item["type"] == "message":
        item["content"] = [_without(part, "logprobs") for part in item["content"]]
    return {name: value for name, value in item.items() if (name, value) not in (("content", []), ("call_id", ""))}


def _without(members: Payload, *names: str) -> Payload:
    return {name: value for name, value in members.items() if name not in names}


# -- Anthropic --------------------------------------------------------------------------------------------------------

_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


def anthropic(payloads: list[Payload]) -> list[Payload]:
    """The content blocks, those that came with the message and those that deltas made."""
    blocks: dict[int, Payload] = {}
    for payload in payloads:
        if payload["type"] == "message_start":
            blocks = dict(enumerate(payload["message"].get("content") or ()))
        elif payload["type"] == "content_block_start":
            blocks[payload["index"]] = dict(payload["content_block"])
        elif payload["type"] == "content_block_delta":
            _grow_block(blocks[payload["index"]], payload["delta"])
    content = [_block(block) for _, block in sorted(blocks.items())]
    content = [block for block in content if block.get("text") != ""]
    return [{"role": "assistant", "content": content}] if content else []


def _grow_block(block: Payload, delta: Payload) -> None:
    kind = delta["type"]
    if kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
    elif kind == "compaction_delta":
        block.update(_without(delta, "type"))
    elif kind in _GROWS:
        block[_GROWS[kind]] = block.get(_GROWS[kind], "") + delta[_GROWS[kind]]


def _block(block: Payload) -> Payload:
    text = block.pop("partial_json", "")
    if text:
        block["input"] = json.loads(text)
    return _without(block, "citations") if block.get("citations") == [] else block


# -- Gemini -----------------------------------------------------------------------------------------------------------


def gemini(payloads: list[Payload]) -> list[Payload]:
    """All parts of the first candidate; bare text is put together with its like."""
    candidates = [c for payload in payloads for c in payload.get("candidates", ()) if not c.get("index")]
    parts = [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]
    kept = list(joined(_whole_calls([part for part in parts if part != {"text": ""}])))
    said = any(part.get("thought") is not True and part.get("text") != "" for part in kept)
    return [{"role": "model", "parts": kept}] if said else []


def _whole_calls(parts: list[Payload]) -> Iterator[Payload]:
    """The parts, but calls whose arguments came by path put together."""
    call: Payload | None = None
    for part in parts:
        told = part.get("functionCall")
        if told is None or ("args" in told and not told.get("willContinue")):
            yield part
        elif "name" in told:
            call = {"name": told["name"], "args": {}}
            yield {**part, "functionCall": call}
        for leaf in (told or {}).get("partialArgs", ()):
            assert call is not None
            _put(call["args"], leaf)


def _put(value: Any, leaf: Payload) -> None:
    """One leaf to its place; a piece of a string is added to the pieces before it."""
    *path, last = [name or int(number) for name, number in re.findall(r"\.(\w+)|\[(\d+)\]", leaf["jsonPath"])]
    for step in path:
        value = value.setdefault(step, {})  # objects alone: no recording has lists
    given = next((leaf[name] for name in ("stringValue", "numberValue", "boolValue") if name in leaf), None)
    value[last] = value.get(last, "") + given if isinstance(given, str) else given


def bare(part: Payload) -> frozenset[str] | None:
    """What kind of text it is, if it carries nothing besides."""
    return frozenset(part) if "text" in part and part.keys() <= {"text", "thought"} else None


def joined(parts: Iterable[Payload]) -> Iterator[Payload]:
    """The parts, but bare text put together with its like."""
    for kind, group in groupby(parts, bare):
        alike = list(group)
        yield from alike if kind is None else [{**alike[0], "text": "".join(part["text"] for part in alike)}]


# -- Interactions -----------------------------------------------------------------------------------------------------


def interactions(payloads: list[Payload]) -> list[Payload]:
    """The steps, grown by their deltas; a content of old is a step, or the content of one."""
    steps: dict[int, Payload] = {}
    for payload in payloads:
        kind = payload.get("event_type", "")
        if kind in ("step.start", "content.start"):
            begun = payload.get("step") or payload["content"]
            steps[payload["index"]] = {"type": "model_output"} if begun["type"] == "text" else dict(begun)
        elif kind in ("step.delta", "content.delta"):
            _grow(steps[payload["index"]], payload["delta"])
    return [_step(step) for _, step in sorted(steps.items())]


def _grow(step: Payload, delta: Payload) -> None:
    kind = delta["type"]
    if kind == "text":
        content = step.setdefault("content", [{"type": "text", "text": ""}])
        content[0]["text"] += delta["text"]
    elif kind.startswith("text_annotation"):
        step["content"][0].setdefault("annotations", []).extend(delta["annotations"])
    elif kind == "thought_signature":
        step["signature"] = delta["signature"] or step.get("signature", "")
    elif kind == "arguments_delta":
        step["text"] = step.get("text", "") + delta["arguments"]
    else:
        step.update(_without(delta, "type"))


_BLANK = {"signature": "", "is_error": False}  # to leave them out says the same


def _step(step: Payload) -> Payload:
    if "text" in step:
        step["arguments"] = json.loads(step.pop("text"))
    return {
        name: value for name, value in step.items() if (name, value) not in (("signature", ""), ("is_error", False))
    }


# -- Chat Completions -------------------------------------------------------------------------------------------------

_TEXTS = ("text", "summary", "data", "signature")


def chat(payloads: list[Payload]) -> list[Payload]:
    """The message of the first choice, with the members that it came by."""
    choices = [choice for payload in payloads for choice in payload.get("choices") or () if not choice.get("index")]
    deltas = [choice.get("delta") or {"content": choice.get("text")} for choice in choices]
    texts: dict[str, str] = {}
    thinking: dict[str, str] = {}
    structured: dict[str, dict[Any, Payload]] = {}
    calls: dict[Any, Payload] = {}
    for delta in deltas:
        content = delta.get("content")
        _add_texts(texts, thinking, content if isinstance(content, list) else [{"type": "text", "text": content}])
        named = [name for name in ("reasoning_content", "reasoning") if delta.get(name)][:1]
        for name in (*named, "refusal"):
            texts[name] = texts.get(name, "") + (delta.get(name) or "")
        for name in ("reasoning_details", "thinking_blocks"):
            for entry in delta.get(name) or ():
                _add_entry(structured.setdefault(name, {}), entry)
        for fragment in delta.get("tool_calls") or ():
            _add_call(calls, fragment)
    message: Payload = {"role": "assistant", "content": _listed(thinking, texts.pop("content", "")) or None}
    if not message["content"] and texts.get("refusal"):
        message["content"] = [{"type": "refusal", "refusal": texts.pop("refusal")}]
    reasoning = {name: list(entries.values()) for name, entries in structured.items()}
    message |= {name: text for name, text in texts.items() if text and (name == "refusal" or not reasoning)}
    for call in calls.values():
        call["function"]["arguments"] = call["function"]["arguments"] or "{}"
    message |= {**reasoning, **({"tool_calls": list(calls.values())} if calls else {})}
    return [message] if calls or message["content"] else []


def _add_texts(texts: dict[str, str], thinking: dict[str, str], parts: list[Any]) -> None:
    """What stands in ``content``; reasoning in a list of its own (Mistral, Databricks)."""
    for part in parts:
        member = {"thinking": "thinking", "reasoning": "summary"}.get(part.get("type"))
        if member is None:
            texts["content"] = texts.get("content", "") + (part.get("text") or "")
        else:
            kind = part["type"]
            thinking[kind] = thinking.get(kind, "") + "".join(entry.get("text") or "" for entry in part[member])


def _listed(thinking: dict[str, str], text: str) -> Any:
    if not thinking:
        return text
    said = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]} for thought in thinking.values()]
    return [*said, {"type": "text", "text": text}]


def _add_entry(entries: dict[Any, Payload], entry: Payload) -> None:
    known = entries.setdefault(entry.get("index"), {})
    for name, value in entry.items():
        grows = name in _TEXTS and isinstance(known.get(name), str) and isinstance(value, str)
        known[name] = known[name] + value if grows else known.get(name) if value is None else value


def _add_call(calls: dict[Any, Payload], fragment: Payload) -> None:
    function = fragment["function"]
    blank = {"id": fragment.get("id"), "type": "function", "function": {"name": "", "arguments": ""}}
    call = calls.setdefault(fragment.get("index"), blank)["function"]
    call["name"] = call["name"] or function.get("name") or ""
    call["arguments"] += function.get("arguments") or ""


RETOLD: dict[str, Callable[[list[Payload]], list[Payload]]] = {
    "anthropic": anthropic,
    "gemini": gemini,
    "gemini-interactions": interactions,
    "openai-chat": chat,
    "openai-responses": responses,
}
"""Of each surface."""


def dense(value: Any) -> Any:
    """The value without members that are null: to leave them out says the same."""
    if isinstance(value, dict):
        return {name: dense(inner) for name, inner in value.items() if inner is not None}
    return [dense(inner) for inner in value] if isinstance(value, list) else value
