"""Providers as they answer: an assistant turn in the form a request holds it, told as the stream it once came by.

Written from the protocol pages and the vendors' request types, and by nothing else: ``echo()`` of the stream must give
the turn. Text is cut into small pieces; members that only answers have are put in, as those must not go back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy

from tests.samples import Payload, block_delta, block_start, block_stop, chat, message_end, message_start


def pieces(text: str, size: int = 3) -> list[str]:
    """The text as deltas bring it."""
    return [text[at : at + size] for at in range(0, len(text), size)]


# -- Anthropic --------------------------------------------------------------------------------------------------------


def anthropic(message: Payload, reason: str = "end_turn") -> list[Payload]:
    """The stream of one assistant message."""
    blocks = [payload for index, block in enumerate(message["content"]) for payload in _content_block(index, block)]
    return [message_start(), *blocks, *message_end(reason)]


def _content_block(index: int, block: Payload) -> Iterator[Payload]:
    match block["type"]:
        case "text":
            cited = {"citations": []} if "citations" in block else {}
            yield block_start(index, type="text", text="", **cited)
            for citation in block.get("citations", ()):  # before the text, as on the wire
                yield block_delta(index, type="citations_delta", citation=citation)
            for piece in pieces(block["text"]):
                yield block_delta(index, type="text_delta", text=piece)
        case "thinking":
            yield block_start(index, type="thinking", thinking="", signature="")
            for piece in pieces(block["thinking"]):
                yield block_delta(index, type="thinking_delta", thinking=piece)
            if block["signature"]:
                yield block_delta(index, type="signature_delta", signature=block["signature"])
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            yield block_start(index, **{**block, "input": {}})
            for piece in ["", *pieces(json.dumps(block["input"]) if block["input"] else "")]:
                yield block_delta(index, type="input_json_delta", partial_json=piece)
        case _:
            yield block_start(index, **block)
    yield block_stop(index)


# -- Responses --------------------------------------------------------------------------------------------------------


def responses(items: list[Payload], status: str = "completed", *, store: bool = True) -> list[Payload]:
    """The stream of these output items."""
    items = [_answered(item) for item in items]
    response = {"id": "resp_1", "object": "response", "model": "m", "store": store, "status": "in_progress"}
    payloads = [{"type": "response.created", "response": {**response, "output": []}}]
    for index, item in enumerate(items):
        payloads += [{**event, "output_index": index} for event in _output_item(item)]
    payloads.append({"type": f"response.{status}", "response": {**response, "status": status, "output": items}})
    return [{**payload, "sequence_number": number} for number, payload in enumerate(payloads)]


def _answered(item: Payload) -> Payload:
    """The item with what only answers have."""
    item = deepcopy(item)
    if item["type"] in ("reasoning", "custom_tool_call"):
        item["status"] = "completed"
    for part in item["content"] if item["type"] == "message" else ():
        if part["type"] == "output_text":
            part["logprobs"] = []
    return item


ARGUMENTS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
    "mcp_call": ("response.mcp_call_arguments", "arguments"),
    "code_interpreter_call": ("response.code_interpreter_call_code", "code"),
}


def _output_item(item: Payload) -> Iterator[Payload]:
    kind, id_ = item["type"], {"item_id": item["id"]} if "id" in item else {}
    begun = {**item, **({"status": "in_progress"} if "status" in item else {})}
    if kind == "message":
        yield {"type": "response.output_item.added", "item": {**begun, "content": []}}
        for index, part in enumerate(item["content"]):
            yield from ({**event, **id_, "content_index": index} for event in _content_part(part))
    elif kind == "reasoning":
        yield {"type": "response.output_item.added", "item": {**begun, "summary": []}}
        for index, part in enumerate(item["summary"]):
            for piece in pieces(part["text"]):
                delta = {"type": "response.reasoning_summary_text.delta", "delta": piece}
                yield {**delta, **id_, "summary_index": index}
        for index, part in enumerate(item.get("content", ())):
            for piece in pieces(part["text"]):
                delta = {"type": "response.reasoning_text.delta", "delta": piece}
                yield {**delta, **id_, "content_index": index}
    elif kind in ARGUMENTS:
        name, member = ARGUMENTS[kind]
        yield {"type": "response.output_item.added", "item": {**begun, member: ""}}
        for piece in pieces(item[member]):
            yield {"type": f"{name}.delta", **id_, "delta": piece}
        yield {"type": f"{name}.done", **id_, member: item[member]}
    else:
        yield {"type": "response.output_item.added", "item": begun}
    yield {"type": "response.output_item.done", "item": item}


def _content_part(part: Payload) -> Iterator[Payload]:
    kind, member = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    blank = {**part, member: "", **({"annotations": []} if member == "text" else {})}
    yield {"type": "response.content_part.added", "part": blank}
    for piece in pieces(part[member]):
        yield {"type": f"response.{kind}.delta", "delta": piece}
    for number, annotation in enumerate(part.get("annotations", ())):
        yield {
            "type": "response.output_text.annotation.added",
            "annotation_index": number,
            "annotation": annotation,
        }
    yield {"type": f"response.{kind}.done", member: part[member]}
    yield {"type": "response.content_part.done", "part": part}


# -- Chat Completions -------------------------------------------------------------------------------------------------


def chat_completions(message: Payload, finish: str | None = None) -> list[Payload | str]:
    """The stream of one assistant message, by a host that has a member for whatever the message has."""
    deltas: list[Payload] = [{"role": "assistant", "content": ""}]
    for name in ("reasoning_content", "reasoning", "refusal"):
        deltas += [{name: piece} for piece in pieces(message.get(name) or "")]
    for name in ("reasoning_details", "thinking_blocks"):
        deltas += [{name: [entry]} for entry in message.get(name, ())]
    content = message.get("content") or ""
    deltas += _content_deltas(content) if isinstance(content, list) else [{"content": p} for p in pieces(content)]
    for index, call in enumerate(message.get("tool_calls", ())):
        deltas += [{"tool_calls": [entry]} for entry in _fragments(index, call)]
    if "function_call" in message:
        call = message["function_call"]
        deltas.append({"function_call": {"name": call["name"], "arguments": ""}})
        deltas += [{"function_call": {"arguments": piece}} for piece in pieces(call["arguments"])]
    word = "tool_calls" if "tool_calls" in message else "function_call" if "function_call" in message else "stop"
    return [*map(chat, deltas), chat(finish=finish or word), "[DONE]"]


def _content_deltas(content: list[Payload]) -> Iterator[Payload]:
    """A list of parts: those that are text come as plain strings (Mistral), a refusal by a member of its own."""
    for part in content:
        match part["type"]:
            case "text":
                yield from ({"content": piece} for piece in pieces(part["text"]))
            case "refusal":
                yield from ({"refusal": piece} for piece in pieces(part["refusal"]))
            case _:
                yield {"content": [part]}


def _fragments(index: int, call: Payload) -> Iterator[Payload]:
    kind, member = ("custom", "input") if call["type"] == "custom" else ("function", "arguments")
    yield {"index": index, **call, kind: {"name": call[kind]["name"], member: ""}}
    for piece in pieces(call[kind][member]):
        yield {"index": index, kind: {member: piece}}


# -- Gemini -----------------------------------------------------------------------------------------------------------


def gemini(content: Payload, finish: str = "STOP") -> list[Payload]:
    """The chunks of one content of the model: a part each, but for text that carries nothing besides."""
    said = [chunk(piece) for part in content["parts"] for piece in _gemini_parts(part)]
    return [*said, chunk(finish=finish)]


def chunk(*parts: Payload, finish: str | None = None, candidate: int = 0) -> Payload:
    """One chunk, with the totals that each of them repeats."""
    spoken: Payload = {"content": {"role": "model", "parts": list(parts)}, "index": candidate}
    ended = {} if finish is None else {"finishReason": finish}
    usage = {"promptTokenCount": 3, "totalTokenCount": 3, "trafficType": "ON_DEMAND"}
    return {"candidates": [{**spoken, **ended}], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"}


def _gemini_parts(part: Payload) -> Iterator[Payload]:
    if "text" in part and part.keys() <= {"text", "thought"}:
        yield from ({**part, "text": piece} for piece in pieces(part["text"]))
    else:
        yield part


def gemini_arguments_by_path(name: str, arguments: Payload, **beside: str) -> list[Payload]:
    """Chunks of one call, whose arguments of text, numbers and the like come one by one (Vertex AI)."""
    calls: list[Payload] = [{"name": name, "willContinue": True}]
    for member, value in arguments.items():
        path = f"$.{member}"
        if isinstance(value, str):
            leaves = [{"stringValue": piece, "willContinue": True} for piece in pieces(value)]
            calls += [_leaf(jsonPath=path, **leaf) for leaf in [*leaves, {"stringValue": ""}]]
        else:
            calls.append(_leaf(jsonPath=path, **{"boolValue" if isinstance(value, bool) else "numberValue": value}))
    first, *others = calls
    return [chunk({"functionCall": first, **beside}), *(chunk({"functionCall": call}) for call in [*others, {}])]


def _leaf(**leaf: object) -> Payload:
    return {"partialArgs": [leaf], "willContinue": True}


# -- Gemini Interactions ----------------------------------------------------------------------------------------------


def interactions(steps: list[Payload], status: str = "completed") -> list[Payload | str]:
    """The events of these steps."""
    interaction = {"id": "v1_1", "model": "m", "object": "interaction"}
    events: list[Payload] = [
        {"interaction": {**interaction, "status": "in_progress"}, "event_type": "interaction.created"},
        {"interaction_id": "v1_1", "status": "in_progress", "event_type": "interaction.status_update"},
    ]
    for index, step in enumerate(steps):
        begun, deltas = _step(step)
        events.append({"index": index, "step": begun, "event_type": "step.start"})
        events += [{"index": index, "delta": delta, "event_type": "step.delta"} for delta in deltas]
        events.append({"index": index, "event_type": "step.stop"})
    usage = {"total_input_tokens": 3, "total_output_tokens": 4, "total_thought_tokens": 0, "total_tokens": 7}
    end = {"interaction": {**interaction, "status": status, "usage": usage}, "event_type": "interaction.completed"}
    return [*events, end, "[DONE]"]


def interactions_of_old(contents: list[Payload], status: str = "completed") -> list[Payload | str]:
    """The same in the older vocabulary, which knows contents where the newer one has steps."""
    (*events, end, done) = interactions(contents, status)
    told = [{**event, "event_type": _OLD.get(event["event_type"], event["event_type"])} for event in (*events, end)]  # type: ignore[index]
    for event in told:
        if "step" in event:
            event["content"] = event.pop("step")
    return [*told, done]


_OLD = {
    "interaction.created": "interaction.start",
    "interaction.completed": "interaction.complete",
    "step.start": "content.start",
    "step.delta": "content.delta",
    "step.stop": "content.stop",
}


def _step(step: Payload) -> tuple[Payload, list[Payload]]:
    """How a step begins, and what adds to it until it is whole."""
    kind = step["type"]
    if kind == "thought":
        signatures = [{"type": "thought_signature", "signature": step[name]} for name in step if name == "signature"]
        summary = [part for entry in step.get("summary", ()) for part in pieces(entry["text"])]
        said = [{"type": "thought_summary", "content": {"type": "text", "text": piece}} for piece in summary]
        blank = {"type": "thought_signature", "signature": ""}
        return {"type": kind}, [*said, *signatures, blank]
    if kind == "model_output":
        return {"type": kind}, [delta for content in step["content"] for delta in _content_deltas_of(content)]
    if kind == "text":
        return {"type": kind}, list(_content_deltas_of(step, "text_annotation"))
    if kind == "function_call":
        said = [{"type": "arguments_delta", "arguments": piece} for piece in pieces(json.dumps(step["arguments"]))]
        return {"signature": "", **step, "arguments": {}}, said
    if kind.endswith(("_call", "_result")):
        known = {name: step[name] for name in step if name in ("type", "id", "call_id", "name", "server_name")}
        later = {name: value for name, value in step.items() if name not in known or name == "type"}
        return {**known, "signature": ""}, [later]
    return step, []


def _content_deltas_of(content: Payload, annotated: str = "text_annotation_delta") -> Iterator[Payload]:
    if content["type"] != "text":
        yield content
        return
    yield from ({"type": "text", "text": piece} for piece in pieces(content["text"]))
    if "annotations" in content:
        yield {"type": annotated, "annotations": content["annotations"]}
