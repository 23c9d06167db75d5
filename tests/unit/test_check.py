"""The wire linter: of every rule a stream that breaks it, at which byte, and the same stream keeping to it."""

from __future__ import annotations

import copy
import json
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

import streamfold
from streamfold import RULES, Finding, Linter, UsageError, check
from tests import check_wires as more
from tests.conftest import ROOT
from tests.evidence import cut

Payload = dict[str, Any]
Stream = list[Payload]
STEPS = (1, 2, 7, 1 << 20)
ENDS = 20_000  # bytes, of a large stream, that are cut as small as those of any other

# -- streams that keep to every rule ----------------------------------------------------------------------------------


def chunk(delta: Payload, finish: str | None = None, **members: Any) -> Payload:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **members}


def call(arguments: str, **members: Any) -> Payload:
    return {"index": 0, "function": {"arguments": arguments}, **members}


CHAT: Stream = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Hi"}),
    chunk({}, "stop"),
    chunk({}, choices=[], usage={"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}),
]
CALLS: Stream = [
    chunk({"role": "assistant", "tool_calls": [call("", id="call_a", type="function")]}),
    chunk({"tool_calls": [call('{"x":')]}),
    chunk({"tool_calls": [call("1}")]}),
    chunk({}, "tool_calls"),
    CHAT[3],
]
CALLS[0]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "add"

MESSAGES: Stream = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 7},
    },
    {"type": "message_stop"},
]

PART = {"type": "output_text", "text": "Hello", "annotations": []}
ITEM = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [PART]}
USAGE = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
AT: Payload = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
RESPONSES: Stream = [
    {"type": "response.created", "response": {"id": "resp_1", "model": "m", "status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "content": []}},
    {"type": "response.content_part.added", **AT, "part": {**PART, "text": ""}},
    {"type": "response.output_text.delta", **AT, "delta": "Hel"},
    {"type": "response.output_text.delta", **AT, "delta": "lo"},
    {"type": "response.output_text.done", **AT, "text": "Hello"},
    {"type": "response.content_part.done", **AT, "part": PART},
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {
        "type": "response.completed",
        "response": {"id": "resp_1", "model": "m", "status": "completed", "output": [ITEM], "usage": USAGE},
    },
]


def candidate(*parts: Payload, **members: Any) -> Payload:
    content = {"role": "model", "parts": list(parts)}
    return {"responseId": "r1", "modelVersion": "m", "candidates": [{"index": 0, "content": content, **members}]}


TOTALS = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
GEMINI: Stream = [
    candidate({"text": "Hi"}),
    {**candidate({"text": "!"}, finishReason="STOP"), "usageMetadata": TOTALS},
]

INTERACTIONS: Stream = [
    {"interaction": {"id": "v1", "model": "m"}, "event_type": "interaction.created"},
    {"index": 0, "step": {"type": "model_output"}, "event_type": "step.start"},
    {"index": 0, "delta": {"type": "text", "text": "Hi"}, "event_type": "step.delta"},
    {"index": 0, "event_type": "step.stop"},
    {
        "interaction": {
            "id": "v1",
            "status": "completed",
            "usage": {"total_input_tokens": 5, "total_output_tokens": 7, "total_tokens": 12},
        },
        "event_type": "interaction.completed",
    },
]


def frame(payload: Payload | str, name: str = "") -> bytes:
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


DONE = b"data: [DONE]\n\n"


def chat(stream: Stream, done: bytes = DONE) -> bytes:
    return b"".join(map(frame, stream)) + done


def messages(stream: Stream) -> bytes:
    return b"".join(frame(event, event["type"]) for event in stream)


def responses(stream: Stream) -> bytes:
    numbered = [{"sequence_number": number, **event} for number, event in enumerate(stream)]
    return b"".join(
        frame({k: v for k, v in event.items() if (k, v) != ("sequence_number", None)}, event["type"])
        for event in numbered
    )


def gemini(stream: Stream) -> bytes:
    return b"".join(map(frame, stream))


def interactions(stream: Stream, done: bytes = b"event: done\n" + DONE) -> bytes:
    return b"".join(frame(event, event["event_type"]) for event in stream) + done


HEALTHY = {
    "openai-chat": chat(CHAT),
    "calls": chat(CALLS),
    "anthropic": messages(MESSAGES),
    "openai-responses": responses(RESPONSES),
    "gemini": gemini(GEMINI),
    "gemini array": json.dumps(GEMINI).encode(),
    "gemini-interactions": interactions(INTERACTIONS),
    **more.HEALTHY,
}


# -- what may be done to them -----------------------------------------------------------------------------------------


def changed(stream: Stream, number: int, edit: Callable[[Any], object]) -> Stream:
    """The stream with one payload changed in place."""
    stream = copy.deepcopy(stream)
    edit(stream[number])
    return stream


def put(stream: Stream, number: int, **members: Any) -> Stream:
    return changed(stream, number, lambda payload: payload.update(members))


def left_out(stream: Stream, number: int) -> Stream:
    return stream[:number] + stream[number + 1 :]


def added(stream: Stream, number: int, *payloads: Payload) -> Stream:
    return [*stream[:number], *payloads, *stream[number:]]


def choice(**members: Any) -> Callable[[Any], object]:
    return lambda payload: payload["choices"][0].update(members)


def entry(**members: Any) -> Callable[[Any], object]:
    return lambda payload: payload["choices"][0]["delta"]["tool_calls"][0].update(members)


# -- the rules --------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A stream that breaks the rule, and the bytes where it does."""

    provider: str
    wire: bytes
    at: bytes | int | None  # None: the end of the stream
    clean: bytes  # what it would be if it kept to the rule


def bytes_of(broken: bytes, at: bytes, clean: bytes, *, before: bytes = b"") -> Row:
    """Bytes that stand before a Chat stream, or between its first two frames."""
    rest = HEALTHY["openai-chat"].removeprefix(before)
    return Row("openai-chat", before + broken + rest, at, before + clean + rest)


FIRST = frame(CHAT[0])
QUEUED = {"type": "response.queued", "response": {"id": "resp_1", "status": "queued"}}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
SECOND_ITEM: Stream = [
    {"type": "response.output_item.added", "output_index": 1, "item": REASONING},
    {"type": "response.output_item.done", "output_index": 1, "item": REASONING},
]
BOTH_LISTED = changed(
    added(RESPONSES, 8, *SECOND_ITEM), 10, lambda event: event["response"].update(output=[ITEM, REASONING])
)
CALL_BLOCK: Payload = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
INPUT: Payload = {"type": "input_json_delta", "partial_json": "{}"}
OVERLAP: Stream = [*MESSAGES[:4], MESSAGES[5], {**MESSAGES[6], "index": 1}, *MESSAGES[7:]]

ROWS: dict[str, Row] = {
    # -- bytes and lines
    "bom": bytes_of(b"\xef\xbb\xbf", b"\xef\xbb\xbf", b""),
    "bom_inside": bytes_of(b"\xef\xbb\xbf: hi\n\n", b"\xef\xbb\xbf", b": hi\n\n", before=FIRST),
    "bad_utf8": bytes_of(b": \xff\n\n", b"\xff", b": \xc3\xbf\n\n"),
    "unicode_line_end": bytes_of(b": a\xe2\x80\xa8b\n\n", b"\xe2\x80\xa8", b": a b\n\n"),
    "cr_line_end": bytes_of(b": hi\r\r", b"\r", b": hi\n\n"),
    "mixed_line_ends": bytes_of(b": hi\r\n\r\n", b"\r\n", b": hi\n\n", before=FIRST),
    "bare_text": bytes_of(b'{"a":\n1}\n\n', b'{"a"', b': {"a":1}\n\n', before=FIRST),
    "unknown_field": bytes_of(b"date: 1\n\n", b"date: 1", b": 1\n\n"),
    "id_nul": bytes_of(b"id: 1\0\n" + FIRST, b"id: 1", b"id: 1\n" + FIRST),
    "bad_retry": bytes_of(b"retry: +5\n" + FIRST, b"retry", b"retry: 5\n" + FIRST),
    "no_data": bytes_of(b"event: ping\n\n", b"event: ping", b": ping\n\n"),
    "empty_data": bytes_of(b"data:\n\n", b"data:\n", b":\n\n", before=FIRST),
    "framed_comment": bytes_of(b"data: : keep-alive\n\n", b"data: : keep", b": keep-alive\n\n"),
    "several_data_lines": bytes_of(
        FIRST.replace(b' "object"', b'\ndata:  "object"'), b'data:  "object"', FIRST, before=FIRST
    ),
    "comment_in_frame": bytes_of(b"event: message\n: hi\n" + FIRST, b": hi", b": hi\n\nevent: message\n" + FIRST),
    "no_blank_line": Row("openai-chat", HEALTHY["openai-chat"][:-1], b"data: [DONE]", HEALTHY["openai-chat"]),
    "large_frame": Row(
        "openai-chat",
        chat(put(CHAT, 1, obfuscation="x" * 1024 * 1024)),
        frame(put(CHAT, 1, obfuscation="x" * 1024 * 1024)[1])[:4000],
        chat(put(CHAT, 1, obfuscation="x" * 1024 * 1023)),
    ),
    # -- payloads
    "not_strict_json": Row(
        "openai-chat",
        HEALTHY["openai-chat"].replace(b'"Hi"', b'"H\ti"'),
        frame(CHAT[1]).replace(b'"Hi"', b'"H\ti"'),
        HEALTHY["openai-chat"].replace(b'"Hi"', b'"H\\ti"'),
    ),
    "lone_surrogate": Row(
        "openai-chat",
        HEALTHY["openai-chat"].replace(b'"Hi"', b'"\\ud83d"'),
        frame(CHAT[1]).replace(b'"Hi"', b'"\\ud83d"'),
        HEALTHY["openai-chat"].replace(b'"Hi"', b'"\\ud83d\\ude00"'),
    ),
    "not_an_object": bytes_of(b"data: 7\n\n", b"data: 7", b""),
    "bad_json": Row("openai-chat", FIRST + b'data: {"a":\n\n', b'data: {"a":\n', HEALTHY["openai-chat"]),
    "bad_framing": Row(
        "gemini",
        b"[" + json.dumps(GEMINI[0]).encode() + b" " + json.dumps(GEMINI[1]).encode() + b"]",
        1 + len(json.dumps(GEMINI[0])) + 1,
        HEALTHY["gemini array"],
    ),
    "bad_checksum": Row(
        "bedrock-converse",
        more.FIRST + more.REST[:-1] + bytes([more.REST[-1] ^ 1]),
        len(more.converse(more.CONVERSE[:7])),
        more.converse(more.CONVERSE),
    ),
    "no_event_type": Row(
        "bedrock-converse",
        more.FIRST + more.message(b"{}", message_type="event") + more.REST,
        len(more.FIRST),
        more.converse(more.CONVERSE),
    ),
    "blank_line": Row(
        "ollama",
        more.jsonl(more.OLLAMA[:1]) + b" \n" + more.jsonl(more.OLLAMA[1:]),
        b" \n",
        more.jsonl(more.OLLAMA),
    ),
    "no_line_end": Row(
        "ollama", more.jsonl(more.OLLAMA)[:-1], len(more.jsonl(more.OLLAMA[:2])), more.jsonl(more.OLLAMA)
    ),
    "limit": Row("openai-chat", FIRST + frame("[" * 201 + "]" * 201), b"data: [[", HEALTHY["openai-chat"]),
    "not_a_stream": Row("auto", b"<html>no</html>\n", b"<html>", HEALTHY["openai-chat"]),
    "unknown_surface": Row("auto", frame({"a": 1}) * 9, b"data", frame({"a": 1}) + HEALTHY["openai-chat"]),
    "unknown_type": Row(
        "openai-responses",
        responses(added(RESPONSES, 3, {"type": "response.new"})),
        b"event: response.new",
        responses(added(RESPONSES, 3, {"type": "keepalive"})),
    ),
    "unknown_member": Row(
        "openai-chat", chat(put(CHAT, 1, provider="p")), frame(put(CHAT, 1, provider="p")[1]), chat(CHAT)
    ),
    "wrong_type": Row(
        "ollama",
        more.jsonl(more.call_with('{"a":1}')),
        len(more.jsonl(more.OLLAMA[:1])),
        more.jsonl(more.call_with({"a": 1})),
    ),
    "no_event_name": Row(
        "anthropic", messages(MESSAGES).replace(b"event: ping\n", b""), b'data: {"type": "ping"}', messages(MESSAGES)
    ),
    "event_name_differs": Row(
        "anthropic", messages(MESSAGES).replace(b"event: ping", b"event: pong"), b"event: pong", messages(MESSAGES)
    ),
    "extra_line": Row("gemini", b": hi\n\n" + gemini(GEMINI), b": hi", gemini(GEMINI)),
    # -- order
    "order": Row(
        "anthropic",
        messages([MESSAGES[1], MESSAGES[0], *MESSAGES[2:]]),
        b"event: content_block_start",
        messages(MESSAGES),
    ),
    "restarted": Row(
        "openai-responses",
        responses(added(RESPONSES, 1, RESPONSES[0])),
        frame({"sequence_number": 1, **RESPONSES[0]}, "response.created"),
        responses(added(RESPONSES, 1, QUEUED)),
    ),
    "part_not_added": Row(
        "openai-responses",
        responses(left_out(RESPONSES, 2)),
        b"event: response.output_text.delta",
        responses(RESPONSES),
    ),
    "block_overlap": Row("anthropic", messages(OVERLAP), frame(MESSAGES[5], "content_block_start"), messages(MESSAGES)),
    "index_jump": Row("openai-chat", chat(changed(CALLS, 0, entry(index=1))[:1] + CALLS[3:]), b"data", chat(CALLS)),
    "index_reused": Row(
        "anthropic",
        messages(put(put(MESSAGES, 5, index=0), 6, index=0)),
        len(messages(MESSAGES[:5])),
        messages(MESSAGES),
    ),
    "no_index": Row(
        "openai-chat",
        chat(changed(CALLS, 0, lambda p: p["choices"][0]["delta"]["tool_calls"][0].pop("index"))),
        b"data",
        chat(CALLS),
    ),
    "wrong_index": Row(
        "anthropic",
        messages(put(MESSAGES, 3, index=4)),
        b"event: content_block_delta",
        messages(MESSAGES),
    ),
    "wrong_delta": Row(
        "anthropic",
        messages(put(MESSAGES, 3, delta=INPUT)),
        b"event: content_block_delta",
        messages(put(put(MESSAGES, 1, content_block=CALL_BLOCK), 3, delta=INPUT)),
    ),
    "not_closed": Row("anthropic", messages(left_out(MESSAGES, 6)), b"event: message_delta", messages(MESSAGES)),
    "id_changes": Row(
        "openai-chat", chat(put(CHAT, 2, id="c2")), frame(put(CHAT, 2, id="c2")[2]), chat(put(CHAT, 2, id=""))
    ),
    "sequence_gap": Row(
        "openai-responses",
        responses(put(RESPONSES, 8, sequence_number=9)),
        b"event: response.completed",
        responses(RESPONSES),
    ),
    "sequence_back": Row(
        "openai-responses",
        responses(put(RESPONSES, 8, sequence_number=7)),
        b"event: response.completed",
        responses(RESPONSES),
    ),
    "no_sequence": Row(
        "openai-responses",
        responses(put(RESPONSES, 8, sequence_number=None)),
        b"event: response.completed",
        responses(RESPONSES),
    ),
    # -- ends
    "truncated": Row("openai-chat", chat(CHAT[:2], b""), None, chat(CHAT)),
    "no_done": Row("openai-chat", chat(CHAT, b""), None, chat(CHAT)),
    "foreign_done": Row("openai-responses", responses(RESPONSES) + DONE, DONE, responses(RESPONSES)),
    "no_finish_reason": Row("openai-chat", chat(left_out(CHAT, 2)), DONE, chat(CHAT)),
    "terminal_twice": Row(
        "openai-chat",
        chat(changed(put(CHAT, 3, choices=copy.deepcopy(CHAT[2]["choices"])), 3, choice(finish_reason="stop"))),
        frame(put(CHAT, 3, choices=CHAT[2]["choices"])[3]),
        chat(CHAT),
    ),
    "reason_changes": Row(
        "openai-chat",
        chat(added(CHAT, 3, chunk({}, "length"))),
        frame(chunk({}, "length")),
        chat(CHAT),
    ),
    "content_after_finish": Row(
        "openai-chat", chat(added(CHAT, 3, chunk({"content": "late"}))), frame(chunk({"content": "late"})), chat(CHAT)
    ),
    "early_finish": Row(
        "gemini",
        gemini(added(GEMINI, 1, candidate({"text": "a"}, finishReason="STOP"))),
        frame(GEMINI[1]),
        gemini(added(GEMINI, 1, candidate({"text": "a"}))),
    ),
    "after_end": Row("anthropic", messages([*MESSAGES, MESSAGES[3]]), len(messages(MESSAGES)), messages(MESSAGES)),
    "status_differs": Row(
        "openai-responses",
        responses(changed(RESPONSES, 8, lambda event: event["response"].update(status="incomplete"))),
        b"event: response.completed",
        responses(RESPONSES),
    ),
    "in_band_error": Row(
        "anthropic",
        messages([*MESSAGES[:4], {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}]),
        b"event: error",
        messages(MESSAGES),
    ),
    # -- content
    "end_differs": Row(
        "openai-responses",
        responses(put(RESPONSES, 5, text="Hallo")),
        b"event: response.output_text.done",
        responses(RESPONSES),
    ),
    "end_adds": Row(
        "openai-responses",
        responses(left_out(RESPONSES, 4)),
        b"event: response.output_text.done",
        responses(RESPONSES),
    ),
    "output_differs": Row(
        "openai-responses",
        responses(added(RESPONSES, 8, *SECOND_ITEM)),
        b"event: response.completed",
        responses(BOTH_LISTED),
    ),
    "bad_arguments": Row("openai-chat", chat(left_out(CALLS, 2)), DONE, chat(CALLS)),
    "no_call_id": Row(
        "openai-chat",
        chat(changed(CALLS, 0, lambda p: p["choices"][0]["delta"]["tool_calls"][0].pop("id"))),
        frame(CALLS[1]),
        chat(CALLS),
    ),
    "empty_id": Row(
        "openai-chat",
        chat(changed(CALLS, 1, entry(id=""))),
        frame(changed(CALLS, 1, entry(id=""))[1]),
        chat(changed(CALLS, 1, entry(id="call_a"))),
    ),
    "no_call_name": Row(
        "gemini",
        gemini([candidate({"functionCall": {"args": {}}}), GEMINI[1]]),
        b"data",
        gemini([candidate({"functionCall": {"name": "f", "args": {}}}), GEMINI[1]]),
    ),
    "call_id_twice": Row(
        "anthropic",
        messages(put(put(MESSAGES, 1, content_block=CALL_BLOCK), 5, content_block=CALL_BLOCK)),
        frame(put(MESSAGES, 5, content_block=CALL_BLOCK)[5], "content_block_start"),
        messages(put(put(MESSAGES, 1, content_block=CALL_BLOCK), 5, content_block={**CALL_BLOCK, "id": "toolu_2"})),
    ),
    "orphan_fragment": Row(
        "anthropic",
        messages(added(MESSAGES, 7, {"type": "content_block_delta", "index": 2, "delta": INPUT})),
        frame({"type": "content_block_delta", "index": 2, "delta": INPUT}, "content_block_delta"),
        messages(MESSAGES),
    ),
    "no_choices": Row(
        "openai-chat", chat(put(CHAT, 1, choices=None)), frame(put(CHAT, 1, choices=None)[1]), chat(CHAT)
    ),
    "no_message": Row(
        "ollama",
        more.jsonl(more.edited(more.OLLAMA, 1, lambda chunk: chunk.pop("message"))),
        len(more.jsonl(more.OLLAMA[:1])),
        more.jsonl(more.OLLAMA),
    ),
    "no_delta": Row(
        "openai-chat",
        chat(changed(CHAT, 1, choice(delta=None))),
        frame(changed(CHAT, 1, choice(delta=None))[1]),
        chat(CHAT),
    ),
    "both_reasonings": Row(
        "openai-chat",
        chat(changed(CHAT, 0, choice(delta={"reasoning": "a", "reasoning_content": "a"}))),
        b"data",
        chat(changed(CHAT, 0, choice(delta={"reasoning": "a"}))),
    ),
    "other_reason": Row("openai-chat", chat(changed(CHAT, 2, choice(finish_reason="eos"))), DONE, chat(CHAT)),
    # -- usage
    "no_usage": Row("openai-chat", chat(CHAT[:3]), DONE, chat(CHAT)),
    "usage_missing": Row(
        "anthropic",
        messages(changed(MESSAGES, 7, lambda event: event.pop("usage"))),
        b"event: message_delta",
        messages(MESSAGES),
    ),
    "usage_sum": Row(
        "openai-chat", chat(changed(CHAT, 3, lambda c: c["usage"].update(total_tokens=11))), DONE, chat(CHAT)
    ),
    "usage_part": Row(
        "openai-chat",
        chat(changed(CHAT, 3, lambda c: c["usage"].update(prompt_tokens_details={"cached_tokens": 6}))),
        DONE,
        chat(changed(CHAT, 3, lambda c: c["usage"].update(prompt_tokens_details={"cached_tokens": 5}))),
    ),
}


def item(kind: str, index: int = 0, **members: Any) -> tuple[Payload, Payload]:
    """An item as it is added and as it is done."""
    whole = {"type": kind, "id": "it_1", **members}
    return (
        {"type": "response.output_item.added", "output_index": index, "item": {"type": kind, "id": "it_1"}},
        {"type": "response.output_item.done", "output_index": index, "item": whole},
    )


def one_item(kind: str, *events: Payload, **members: Any) -> bytes:
    """A Responses stream of one item and what is told of it."""
    begun, done = item(kind, **members)
    told = [{"output_index": 0, "item_id": "it_1", **event} for event in events]
    response = {"id": "resp_1", "model": "m", "status": "completed", "output": [done["item"]], "usage": USAGE}
    return responses([RESPONSES[0], begun, *told, done, {"type": "response.completed", "response": response}])


SUMMARY: Payload = {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "a"}
THOUGHT: Payload = {"type": "response.reasoning_text.delta", "content_index": 0, "delta": "a"}
ARGUMENTS: Payload = {"type": "response.function_call_arguments.delta", "delta": "{}"}
COMMAND: Payload = {"type": "response.shell_call_command.delta", "command_index": 0, "delta": "ls"}
CALL_ITEM = {"call_id": "call_a", "name": "f", "status": "completed"}
LATE_DELTA: Payload = {"type": "response.output_text.delta", **AT, "delta": "!"}
STEP_DELTA = INTERACTIONS[2]
PARTIAL: Payload = {"functionCall": {"name": "f", "willContinue": True}}
GOES_ON: Payload = {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]}}

MORE: dict[str, tuple[str | None, str, bytes]] = {
    # a rule on each other surface that has it, or None where there is nothing to find -> provider, stream
    "anthropic: a type of block": (
        "unknown_type",
        "anthropic",
        messages(put(MESSAGES, 1, content_block={"type": "poem", "text": ""})),
    ),
    "anthropic: any result is known": (
        None,
        "anthropic",
        messages(put(MESSAGES, 5, content_block={"type": "new_tool_result", "tool_use_id": "t", "content": []})),
    ),
    "anthropic: a type of delta": ("unknown_type", "anthropic", messages(put(MESSAGES, 3, delta={"type": "x_delta"}))),
    "anthropic: no index on a start": (
        "no_index",
        "anthropic",
        messages(changed(MESSAGES, 1, lambda e: e.pop("index"))),
    ),
    "anthropic: no index on a delta": (
        "no_index",
        "anthropic",
        messages(changed(MESSAGES, 3, lambda e: e.pop("index"))),
    ),
    "anthropic: an index left out": ("index_jump", "anthropic", messages(put(put(MESSAGES, 5, index=2), 6, index=2))),
    "anthropic: a stop of nothing": ("order", "anthropic", messages(added(MESSAGES, 7, MESSAGES[6]))),
    "anthropic: begun twice": ("restarted", "anthropic", messages([*MESSAGES[:4], *MESSAGES])),
    "anthropic: two ends": ("terminal_twice", "anthropic", messages(added(MESSAGES, 8, MESSAGES[7]))),
    "anthropic: a block after the reason": (
        "content_after_finish",
        "anthropic",
        messages(added(MESSAGES, 8, {**MESSAGES[5], "index": 2}, {**MESSAGES[6], "index": 2})),
    ),
    "anthropic: no reason": ("no_finish_reason", "anthropic", messages(left_out(MESSAGES, 7))),
    "anthropic: a start that is all": (
        None,
        "anthropic",
        messages(
            [
                changed(
                    MESSAGES,
                    0,
                    lambda e: e["message"].update(
                        stop_reason="tool_use", content=[{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
                    ),
                )[0],
                MESSAGES[8],
            ]
        ),
    ),
    "anthropic: a member of a block": (
        "unknown_member",
        "anthropic",
        messages(put(MESSAGES, 1, content_block={"type": "text", "text": "", "mood": 1})),
    ),
    "anthropic: [DONE]": ("foreign_done", "anthropic", messages(MESSAGES) + DONE),
    "chat: [DONE] twice": ("after_end", "openai-chat", chat(CHAT) + DONE),
    "chat: another object": ("unknown_type", "openai-chat", chat(put(CHAT, 1, object="chat.chunk"))),
    "chat: a choice without index": (
        "no_index",
        "openai-chat",
        chat(changed(CHAT, 1, lambda c: c["choices"][0].pop("index"))),
    ),
    "chat: another id at an index": ("index_reused", "openai-chat", chat(changed(CALLS, 1, entry(id="call_b")))),
    "chat: a member of a call": ("unknown_member", "openai-chat", chat(changed(CALLS, 0, entry(extra={})))),
    "chat: a second choice without reason": (
        "no_finish_reason",
        "openai-chat",
        chat(added(CHAT, 1, chunk({}, choices=[{"index": 1, "delta": {"content": "x"}, "finish_reason": None}]))),
    ),
    "chat: nothing but [DONE]": ("no_finish_reason", "openai-chat", DONE),
    "chat: a legacy completion": (
        None,
        "openai-chat",
        chat(
            [
                {"object": "text_completion", "choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]},
                CHAT[3],
            ]
        ),
    ),
    "chat: an error is nobody's chunk": ("in_band_error", "openai-chat", frame({"error": {"message": "no"}}) + DONE),
    "responses: an item without index": (
        "no_index",
        "openai-responses",
        responses(changed(RESPONSES, 1, lambda e: e.pop("output_index"))),
    ),
    "responses: a delta without index": (
        "no_index",
        "openai-responses",
        responses(changed(RESPONSES, 3, lambda e: e.pop("output_index"))),
    ),
    "responses: an index given again": (
        "index_reused",
        "openai-responses",
        responses(added(RESPONSES, 2, RESPONSES[1])),
    ),
    "responses: an index left out": (
        "index_jump",
        "openai-responses",
        responses(added(RESPONSES, 8, *item("reasoning", 2))),
    ),
    "responses: a delta before its item": ("order", "openai-responses", responses(left_out(RESPONSES, 1))),
    "responses: a delta after its item": ("order", "openai-responses", responses(added(RESPONSES, 8, LATE_DELTA))),
    "responses: not created": ("order", "openai-responses", responses(left_out(RESPONSES, 0))),
    "responses: another id of the item": (
        "id_changes",
        "openai-responses",
        responses(put(RESPONSES, 3, item_id="msg_2")),
    ),
    "responses: another id of the answer": (
        "id_changes",
        "openai-responses",
        responses(changed(RESPONSES, 8, lambda e: e["response"].update(id="resp_2"))),
    ),
    "responses: a type of item": ("unknown_type", "openai-responses", one_item("poem")),
    "responses: a type of part": (
        "unknown_type",
        "openai-responses",
        responses(put(RESPONSES, 2, part={"type": "output_smell"})),
    ),
    "responses: an item never done": (
        "not_closed",
        "openai-responses",
        responses(added(RESPONSES, 8, item("message", 1)[0])),
    ),
    "responses: an item that the end settles": (
        None,
        "openai-responses",
        responses(left_out(RESPONSES, 7)),
    ),
    "responses: an empty output": (
        "output_differs",
        "openai-responses",
        responses(changed(RESPONSES, 8, lambda e: e["response"].update(output=[]))),
    ),
    "responses: another type in the end": (
        "output_differs",
        "openai-responses",
        responses(changed(RESPONSES, 7, lambda e: e["item"].update(type="reasoning"))),
    ),
    "responses: the part differs": (
        "end_differs",
        "openai-responses",
        responses(put(RESPONSES, 6, part={**PART, "text": "Hullo"})),
    ),
    "responses: the item differs": (
        "end_differs",
        "openai-responses",
        responses(changed(RESPONSES, 7, lambda e: e["item"]["content"][0].update(text="Hullo"))),
    ),
    "responses: the terminal differs": (
        "end_differs",
        "openai-responses",
        responses(changed(RESPONSES, 8, lambda e: e["response"]["output"][0]["content"][0].update(text="Hullo"))),
    ),
    "responses: an empty end says nothing": (None, "openai-responses", responses(put(RESPONSES, 5, text=""))),
    "responses: a text without deltas": (
        "end_adds",
        "openai-responses",
        responses(left_out(left_out(RESPONSES, 4), 3)),
    ),
    "responses: a summary": (None, "openai-responses", one_item("reasoning", SUMMARY, summary=[{"text": "a"}])),
    "responses: another summary": (
        "end_differs",
        "openai-responses",
        one_item("reasoning", SUMMARY, summary=[{"text": "b"}]),
    ),
    "responses: reasoning": (
        None,
        "openai-responses",
        one_item("reasoning", THOUGHT, content=[{"type": "reasoning_text", "text": "a"}]),
    ),
    "responses: other reasoning": (
        "end_differs",
        "openai-responses",
        one_item("reasoning", THOUGHT, content=[{"type": "reasoning_text", "text": "b"}]),
    ),
    "responses: arguments": (
        None,
        "openai-responses",
        one_item("function_call", ARGUMENTS, arguments="{}", **CALL_ITEM),
    ),
    "responses: other arguments": (
        "end_differs",
        "openai-responses",
        one_item("function_call", ARGUMENTS, arguments='{"a":1}', **CALL_ITEM),
    ),
    "responses: commands": (
        None,
        "openai-responses",
        one_item("shell_call", COMMAND, {**COMMAND, "type": "response.shell_call_command.done", "command": "ls"}),
    ),
    "responses: other commands": (
        "end_differs",
        "openai-responses",
        one_item("shell_call", COMMAND, {**COMMAND, "type": "response.shell_call_command.done", "command": "rm"}),
    ),
    "responses: two errors are one": (
        "in_band_error",
        "openai-responses",
        responses(
            [
                RESPONSES[0],
                {"type": "error", "error": {"code": "no", "message": "no"}},
                {"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": {"code": "no"}}},
            ]
        ),
    ),
    "gemini: another id": ("id_changes", "gemini", gemini(put(GEMINI, 1, responseId="r2"))),
    "gemini: two reasons": (
        "terminal_twice",
        "gemini",
        gemini([{**GEMINI[0], **candidate(finishReason="STOP")}, GEMINI[1]]),
    ),
    "gemini: a call in parts": (None, "gemini", gemini([candidate(PARTIAL), candidate(GOES_ON), GEMINI[1]])),
    "gemini: a call in parts without a name": (
        "no_call_name",
        "gemini",
        gemini([candidate(PARTIAL), candidate(GOES_ON), candidate(GOES_ON), GEMINI[1]]),
    ),
    "gemini: a member of a part": (
        "unknown_member",
        "gemini",
        gemini([candidate({"text": "a", "mood": 1}), GEMINI[1]]),
    ),
    "gemini: an error after the frames": (
        "in_band_error",
        "gemini",
        gemini(GEMINI[:1]) + b'{\n "error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}\n}\n',
    ),
    "interactions: not created": ("order", "gemini", interactions(left_out(INTERACTIONS, 0))),
    "interactions: created twice": ("restarted", "gemini", interactions(added(INTERACTIONS, 1, INTERACTIONS[0]))),
    "interactions: a type of step": (
        "unknown_type",
        "gemini",
        interactions(put(INTERACTIONS, 1, step={"type": "poem"})),
    ),
    "interactions: a type of delta": (
        "unknown_type",
        "gemini",
        interactions(put(INTERACTIONS, 2, delta={"type": "x"})),
    ),
    "interactions: no index on a start": (
        "no_index",
        "gemini",
        interactions(changed(INTERACTIONS, 1, lambda e: e.pop("index"))),
    ),
    "interactions: no index on a delta": (
        "no_index",
        "gemini",
        interactions(changed(INTERACTIONS, 2, lambda e: e.pop("index"))),
    ),
    "interactions: an index left out": ("index_jump", "gemini", interactions(put(INTERACTIONS, 1, index=1))),
    "interactions: an index given again": (
        "index_reused",
        "gemini",
        interactions(added(INTERACTIONS, 4, *INTERACTIONS[1:4])),
    ),
    "interactions: a delta of nothing": ("wrong_index", "gemini", interactions(added(INTERACTIONS, 4, STEP_DELTA))),
    "interactions: a step without stop": ("not_closed", "gemini", interactions(left_out(INTERACTIONS, 3))),
    "interactions: no [DONE]": ("no_done", "gemini", interactions(INTERACTIONS, b"")),
    "interactions: another name": (
        "event_name_differs",
        "gemini",
        interactions(INTERACTIONS).replace(b"event: step.stop", b"event: step.end"),
    ),
    "interactions: the older words": (
        None,
        "gemini",
        interactions(
            [
                {**INTERACTIONS[0], "event_type": "interaction.start"},
                {"index": 0, "content": {"type": "text"}, "event_type": "content.start"},
                {**INTERACTIONS[2], "event_type": "content.delta"},
                {**INTERACTIONS[3], "event_type": "content.stop"},
                {**INTERACTIONS[4], "event_type": "interaction.complete"},
            ]
        ),
    ),
    "lines: a mark before an array": ("bom", "gemini", b"\xef\xbb\xbf" + HEALTHY["gemini array"]),
    "lines: an empty body": ("not_a_stream", "openai-chat", b""),
    "lines: a cut character": ("bad_utf8", "openai-chat", HEALTHY["openai-chat"] + b": \xe2\x82"),
    "lines: nothing but CR": ("cr_line_end", "openai-chat", HEALTHY["openai-chat"].replace(b"\n", b"\r")),
    "lines: CRLF throughout": (None, "openai-chat", HEALTHY["openai-chat"].replace(b"\n", b"\r\n")),
    "lines: comments between frames": (None, "openai-chat", b": a\n\n: b\n: c\n\n" + HEALTHY["openai-chat"]),
    **more.FAULTS,
    "lines: a name without a colon": ("empty_data", "openai-chat", b"data\n\n" + HEALTHY["openai-chat"]),
}


def findings(wire: bytes, provider: str = "auto", step: int = 1 << 20, **settings: Any) -> list[Finding]:
    with check(reads(wire, step), provider, **settings) as found:
        return list(found)


def reads(wire: bytes, step: int) -> list[bytes]:
    """The wire in reads of so many bytes; of a large one, its two ends: what lies between them is filler."""
    if len(wire) < 100_000:
        return cut(wire, step)
    head, filler, tail = wire[:ENDS], wire[ENDS:-ENDS], wire[-ENDS:]
    return [*cut(head, step), *cut(filler, 65_536 + step), *cut(tail, step)]


@cache
def whole(wire: bytes, provider: str) -> list[Finding]:
    """What is found of it in one read."""
    return findings(wire, provider)


def test_every_rule_has_its_streams() -> None:
    assert list(ROWS) == [code for code in RULES if code not in more.OF_SESSIONS]


@pytest.mark.parametrize("code", ROWS)
def test_a_stream_that_breaks_the_rule(code: str) -> None:
    row = ROWS[code]
    found = [finding for finding in findings(row.wire, row.provider) if finding.code == code]
    assert found, [str(finding) for finding in findings(row.wire, row.provider)]
    rule = RULES[code]
    assert (found[0].severity, found[0].breaks) == (rule.severity, rule.breaks)
    at = len(row.wire) if row.at is None else row.at
    assert found[0].offset == (at if isinstance(at, int) else row.wire.index(at))


@pytest.mark.parametrize("code", ROWS)
def test_the_same_stream_keeping_to_the_rule(code: str) -> None:
    row = ROWS[code]
    assert code not in {finding.code for finding in findings(row.clean, row.provider)}


@pytest.mark.parametrize("code", ROWS)
@pytest.mark.parametrize("step", STEPS)
def test_cuts_change_nothing(code: str, step: int) -> None:
    row = ROWS[code]
    assert findings(row.wire, row.provider, step) == whole(row.wire, row.provider)


@pytest.mark.parametrize("code", ROWS)
def test_findings_come_in_the_order_of_the_stream(code: str) -> None:
    found = findings(ROWS[code].wire, ROWS[code].provider)
    assert all(one.offset <= other.offset for one, other in pairwise(found))
    assert all("\n" not in str(finding) for finding in found)


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize("step", STEPS)
def test_a_rule_on_every_surface_that_has_it(name: str, step: int) -> None:
    code, provider, wire = MORE[name]
    found = findings(wire, provider, step)
    if code is None:
        assert [finding for finding in found if finding.severity != "note"] == []
    else:
        assert code in {finding.code for finding in found}, [str(finding) for finding in found]
    assert found == whole(wire, provider)


# -- what holds of all ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("step", STEPS)
def test_a_healthy_stream_has_no_findings(name: str, step: int) -> None:
    assert findings(HEALTHY[name], "auto", step) == []


def test_a_stream_that_goes_on_with_an_answer_need_not_begin_it() -> None:
    """What GET /v1/responses/{id}?starting_after=N sends begins anywhere."""
    whole = responses(RESPONSES)
    for begun in range(1, len(RESPONSES)):
        rest = whole[whole.index(frame({"sequence_number": begun, **RESPONSES[begun]}, RESPONSES[begun]["type"])) :]
        assert findings(rest, "openai-responses") == []


ENDS_OF_CALLS = {"the end": ("tool_calls", 1), "too many tokens": ("length", 0), "a filter": ("content_filter", 0)}


@pytest.mark.parametrize(("reason", "count"), ENDS_OF_CALLS.values(), ids=ENDS_OF_CALLS)
def test_arguments_that_the_end_cut_off_are_no_fault_of_the_wire(reason: str, count: int) -> None:
    stream = changed(left_out(CALLS, 2), 2, choice(finish_reason=reason))
    assert [finding.code for finding in findings(chat(stream), "openai-chat")] == ["bad_arguments"] * count


def test_halves_of_a_character_in_two_deltas_are_the_character() -> None:
    wire = responses(put(put(RESPONSES, 3, delta="HALF"), 4, delta="OTHER"))
    wire = wire.replace(b"HALF", b"\\ud83d").replace(b"OTHER", b"\\ude00").replace(b"Hello", b"\\ud83d\\ude00")
    assert {finding.code for finding in findings(wire, "openai-responses")} == {"lone_surrogate"}


def test_every_kind_of_line_that_gemini_does_not_have() -> None:
    wire = b": hi\n\nid: 1\nretry: 1\nevent: message\ndata:{}\n\n" + gemini(GEMINI)
    found = [finding for finding in findings(wire, "gemini") if finding.code == "extra_line"]
    assert [finding.offset for finding in found] == [wire.index(w) for w in (b":", b"id", b"retry", b"event", b"data")]


def test_of_many_findings_of_a_rule_ten_are_shown_and_the_rest_counted() -> None:
    stream = [CHAT[0], *(put(CHAT, 1, choices=None)[1:2] * 25), *CHAT[1:]]
    found = [finding for finding in findings(chat(stream)) if finding.code == "no_choices"]
    assert len(found) == 11
    assert (found[-1].message, found[-1].offset) == ("and 15 more of these", len(chat(stream)))


def test_findings_come_as_soon_as_they_are_sure() -> None:
    linter = Linter("openai-chat")
    assert linter.feed(frame(CHAT[0]) + b"data: 7") == []
    assert [finding.code for finding in linter.feed(b"\n\n")] == ["not_an_object"]
    assert linter.feed(frame(CHAT[1])) == []
    assert [finding.code for finding in linter.close()] == ["truncated"]
    assert linter.close() == []


def test_nothing_is_read_ahead_and_the_source_is_closed() -> None:
    told: list[int] = []

    def reads() -> Iterator[bytes]:
        try:
            for number in range(9):
                told.append(number)
                yield frame(CHAT[0]) if number == 0 else b"data: 7\n\n"
        finally:
            told.append(-1)

    with check(reads(), "openai-chat") as found:
        assert told == []
        assert next(found).code == "not_an_object"
        assert told == [0, 1]
    assert told == [0, 1, -1]


@pytest.mark.parametrize("how", ["cut", "cancel"])
def test_a_connection_that_broke_is_no_fault_of_the_wire(how: Any) -> None:
    linter = Linter("openai-chat")
    assert linter.feed(frame(CHAT[0]) + b"data: {") == []
    assert linter.close(how) == []


def test_misuse() -> None:
    with pytest.raises(UsageError, match="no provider"):
        Linter("nobody")
    with pytest.raises(UsageError, match="no setting"):
        check(b"", "auto", colour="red")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="bytes"):
        Linter().feed("text")  # type: ignore[arg-type]


@pytest.mark.parametrize("step", STEPS)
def test_the_wrong_provider_is_told_where_the_reading_ends(step: int) -> None:
    wire = HEALTHY["openai-chat"] + b": hi\n\n" * 9
    assert [found.offset for found in findings(wire, "gemini", step) if found.code == "bad_framing"] == [
        wire.index(DONE)
    ]


def test_settings_reach_the_reading() -> None:
    wire = HEALTHY["openai-chat"]
    assert "limit" in {finding.code for finding in findings(wire, max_frame_bytes=100)}
    assert "limit" in {finding.code for finding in findings(wire, max_depth=2)}
    assert "not_a_stream" in {finding.code for finding in findings(wire, framing="json_array")}


def test_a_long_answer_is_not_kept() -> None:
    """3 MB of text in 750 blocks: a reading holds the block that is open."""
    linter = Linter("anthropic")
    linter.feed(messages(MESSAGES[:1]))
    tracemalloc.start()
    try:
        for number in range(750):
            delta = {"type": "text_delta", "text": "x" * 4_000}
            block = put(put([MESSAGES[1], MESSAGES[3], MESSAGES[4]], 0, index=number), 1, index=number, delta=delta)
            assert linter.feed(messages(put(block, 2, index=number))) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000


@pytest.mark.parametrize(
    "line", [b": hi\n", b"foo: 1\n", b"{\n", b"retry: x\n", b"\xef\xbb\xbfid: 1\n", b"event: \xff\n"]
)
@pytest.mark.parametrize("provider", ["auto", "openai-chat"])
def test_a_frame_without_end_is_not_kept(line: bytes, provider: str) -> None:
    linter = Linter(provider)
    linter.feed(FIRST + b"event: message\n")
    tracemalloc.start()
    try:
        for _ in range(50):
            linter.feed(line * 250)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_000_000  # the lines that are kept for an error body; findings would be 2 MB
    assert len(linter.close()) < 20


# -- the documentation ------------------------------------------------------------------------------------------------


def test_the_page_is_the_table() -> None:
    page = (ROOT / "docs" / "check.md").read_text()
    rows = [f"| `{code}` | {rule.severity} | {rule.about} | {rule.breaks} |" for code, rule in RULES.items()]
    table = page.partition("## The rules")[2].splitlines()
    assert [line for line in table if line.startswith("| `")] == rows


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_the_number_of_rules_is_told(page: str) -> None:
    assert f" {len(RULES)} rules" in (ROOT / page).read_text()


def test_findings_are_public() -> None:
    assert {"check", "check_session", "Finding", "Linter", "RULES", "SessionLinter"} <= set(streamfold.__all__)
