"""Healthy streams of the surfaces beyond the first five, for the wire linter, and the same with a fault each."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from typing import Any
from zlib import crc32

from tests.wires_more import binary, header

Payload = dict[str, Any]
Stream = list[Payload]

OF_SESSIONS = ("not_a_recording", "no_event_id", "no_handle", "client_message", "unknown_call")
"""Rules that only sessions can break."""

# -- framings ---------------------------------------------------------------------------------------------------------


def message(payload: bytes, **headers: str) -> bytes:
    """A message of AWS's binary framing; ``event_type`` is the header ``:event-type``."""
    return binary(
        b"".join(header(f":{name.replace('_', '-')}", 7, value.encode()) for name, value in headers.items()), payload
    )


def converse(stream: Stream) -> bytes:
    """Events of ConverseStream, each ``{name: members}``."""
    return b"".join(
        message(json.dumps(members).encode(), event_type=name, message_type="event")
        for event in stream
        for name, members in event.items()
    )


def invoke(stream: Stream) -> bytes:
    """The same inside the chunks of InvokeModelWithResponseStream, wrapped by name, in an event stream."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in stream)


def cohere(stream: Stream, done: bytes = b"data: [DONE]\n\n") -> bytes:
    frames = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream)
    return "".join(frames).encode() + done


def jsonl(stream: Stream) -> bytes:
    return b"".join(json.dumps(chunk).encode() + b"\n" for chunk in stream)


# -- streams that keep to every rule ----------------------------------------------------------------------------------

CONVERSE: Stream = [
    {"messageStart": {"role": "assistant", "p": "abc"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}, "p": "ab"}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"messageStop": {"stopReason": "tool_use"}},
    {
        "metadata": {
            "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
            "metrics": {"latencyMs": 1},
        }
    },
]

COHERE: Stream = [
    {"type": "message-start", "id": "m1", "delta": {"message": {"role": "assistant", "content": []}}},
    {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I add."}}},
    {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hi"}}}},
    {
        "type": "citation-start",
        "index": 0,
        "delta": {"message": {"citations": {"start": 0, "end": 2, "text": "Hi", "sources": []}}},
    },
    {"type": "citation-end", "index": 0},
    {"type": "content-end", "index": 0},
    {
        "type": "tool-call-start",
        "index": 0,
        "delta": {
            "message": {
                "tool_calls": {"id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}},
            }
        },
    },
    {
        "type": "tool-call-delta",
        "index": 0,
        "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}},
    },
    {"type": "tool-call-end", "index": 0},
    {
        "type": "message-end",
        "delta": {
            "finish_reason": "TOOL_CALL",
            "usage": {"billed_units": {"input_tokens": 1}, "tokens": {"input_tokens": 5, "output_tokens": 7}},
        },
    },
]

OLLAMA: Stream = [
    {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "Hi"},
        "done": False,
    },
    {
        "model": "m",
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
        },
        "done": False,
    },
    {
        "model": "m",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 7,
    },
]

HEALTHY = {
    "bedrock-converse": converse(CONVERSE),
    "bedrock-converse wrapped": invoke(CONVERSE),
    "cohere": cohere(COHERE),
    "ollama": jsonl(OLLAMA),
}

# -- a fault each -----------------------------------------------------------------------------------------------------


def edited(stream: Stream, number: int, edit: Callable[[Any], object]) -> Stream:
    stream = copy.deepcopy(stream)
    edit(stream[number])
    return stream


def without(stream: Stream, number: int) -> Stream:
    return stream[:number] + stream[number + 1 :]


def before(stream: Stream, number: int, *payloads: Payload) -> Stream:
    return [*stream[:number], *payloads, *stream[number:]]


def at(stream: Stream, number: int, name: str, **members: Any) -> Stream:
    """A Converse stream with members of one event put otherwise."""
    return edited(stream, number, lambda event: event[name].update(members))


def put(stream: Stream, number: int, **members: Any) -> Stream:
    return edited(stream, number, lambda event: event.update(members))


def call_with(arguments: Any) -> Stream:
    """The Ollama stream whose call has these arguments."""
    calls = [{"function": {"name": "f", "arguments": arguments}}]
    return put(OLLAMA, 1, message={"role": "assistant", "content": "", "tool_calls": calls})


FIRST, REST = converse(CONVERSE[:1]), converse(CONVERSE[1:])


def prelude(total: int, headers: int) -> bytes:
    """The beginning of a message; its own checksum is right."""
    lengths = struct.pack(">II", total, headers)
    return lengths + struct.pack(">I", crc32(lengths))


def delta(**members: Any) -> Payload:
    return {"contentBlockDelta": {"contentBlockIndex": 0, "delta": members}}


THINKING = {"message": {"content": {"thinking": "hm"}}}

FAULTS: dict[str, tuple[str | None, str, bytes]] = {
    # what is done -> the rule that it breaks (None: none), provider, stream
    "eventstream: the checksum of a prelude": (
        "bad_checksum",
        "bedrock-converse",
        FIRST + REST[:8] + bytes([REST[8] ^ 1]) + REST[9:],
    ),
    "eventstream: headers longer than the message": ("bad_framing", "bedrock-converse", FIRST + prelude(40, 30)),
    "eventstream: a length over the limit": ("limit", "bedrock-converse", FIRST + prelude(1 << 28, 0)),
    "eventstream: a header twice": (
        "bad_framing",
        "bedrock-converse",
        FIRST + binary(header(":a", 7, b"1") + header(":a", 7, b"2")),
    ),
    "eventstream: the end inside a message": ("truncated", "bedrock-converse", converse(CONVERSE)[:-1]),
    "eventstream: no type of message": (
        "no_event_type",
        "bedrock-converse",
        FIRST + message(b"{}", event_type="ping") + REST,
    ),
    "eventstream: another type of message": (
        "unknown_type",
        "bedrock-converse",
        FIRST + message(b"{}", message_type="note", event_type="metadata") + REST,
    ),
    "eventstream: an exception": (
        "in_band_error",
        "bedrock-converse",
        FIRST + message(b'{"message":"no"}', message_type="exception", exception_type="throttlingException"),
    ),
    "jsonl: CRLF": (None, "ollama", jsonl(OLLAMA).replace(b"\n", b"\r\n")),
    "jsonl: a blank line with a CR": ("blank_line", "ollama", b"\r\n" + jsonl(OLLAMA)),
    "jsonl: an object on two lines": ("bad_json", "ollama", jsonl(OLLAMA).replace(b', "message"', b',\n "message"')),
    "jsonl: two objects on a line": ("bad_json", "ollama", jsonl(OLLAMA).replace(b"}\n{", b"} {")),
    "jsonl: a line over 1 MiB": (
        "large_frame",
        "ollama",
        jsonl(put(OLLAMA, 0, message={"role": "assistant", "content": "x" * (1 << 20)})),
    ),
    "converse: not started": ("order", "bedrock-converse", converse(without(CONVERSE, 0))),
    "converse: started twice": ("restarted", "bedrock-converse", converse(before(CONVERSE, 3, CONVERSE[0]))),
    "converse: a kind of delta": ("unknown_type", "bedrock-converse", converse(before(CONVERSE, 2, delta(smell="a")))),
    "converse: a kind of block": (
        "unknown_type",
        "bedrock-converse",
        converse(at(CONVERSE, 3, "contentBlockStart", start={"poem": {}})),
    ),
    "converse: a type of event": ("unknown_type", "bedrock-converse", converse(before(CONVERSE, 2, {"news": {}}))),
    "converse: a start of nothing": (
        "wrong_type",
        "bedrock-converse",
        converse(at(CONVERSE, 3, "contentBlockStart", start={})),
    ),
    "converse: a delta of two kinds": (
        "wrong_type",
        "bedrock-converse",
        converse(before(CONVERSE, 2, delta(text="a", citation={}))),
    ),
    "converse: a member": ("unknown_member", "bedrock-converse", converse(at(CONVERSE, 1, "contentBlockDelta", x=1))),
    "converse: a member of a start": (
        "unknown_member",
        "bedrock-converse",
        converse(at(CONVERSE, 3, "contentBlockStart", start={"toolUse": {"toolUseId": "t", "name": "f", "x": 1}})),
    ),
    "converse: a block without index": (
        "no_index",
        "bedrock-converse",
        converse(edited(CONVERSE, 1, lambda e: e["contentBlockDelta"].pop("contentBlockIndex"))),
    ),
    "converse: a call without a name": (
        "no_call_name",
        "bedrock-converse",
        converse(at(CONVERSE, 3, "contentBlockStart", start={"toolUse": {"toolUseId": "t1"}})),
    ),
    "converse: an index left out": (
        "index_jump",
        "bedrock-converse",
        converse(
            [
                *(at(CONVERSE, 1, "contentBlockDelta", contentBlockIndex=1)[:2]),
                {"contentBlockStop": {"contentBlockIndex": 1}},
                *CONVERSE[6:],
            ]
        ),
    ),
    "converse: an index given again": (
        "index_reused",
        "bedrock-converse",
        converse(at(CONVERSE, 3, "contentBlockStart", contentBlockIndex=0)),
    ),
    "converse: a delta of a block that stopped": (
        "wrong_index",
        "bedrock-converse",
        converse(before(CONVERSE, 3, CONVERSE[1])),
    ),
    "converse: a stop of nothing": ("wrong_index", "bedrock-converse", converse(before(CONVERSE, 3, CONVERSE[2]))),
    "converse: input in a text": (
        "wrong_delta",
        "bedrock-converse",
        converse(before(CONVERSE, 2, delta(toolUse={"input": "{}"}))),
    ),
    "converse: input without a start": ("order", "bedrock-converse", converse(without(CONVERSE, 3))),
    "converse: a citation before its text": (
        None,
        "bedrock-converse",
        converse(before(CONVERSE, 1, delta(citation={"title": "t", "sourceContent": [{"text": "s"}]}))),
    ),
    "converse: a block without stop": ("not_closed", "bedrock-converse", converse(without(CONVERSE, 2))),
    "converse: a block after the stop": (
        "content_after_finish",
        "bedrock-converse",
        converse([*CONVERSE[:3], CONVERSE[6], *CONVERSE[3:6], CONVERSE[7]]),
    ),
    "converse: two stops": ("terminal_twice", "bedrock-converse", converse(before(CONVERSE, 7, CONVERSE[6]))),
    "converse: usage twice": ("terminal_twice", "bedrock-converse", converse([*CONVERSE, CONVERSE[7]])),
    "converse: usage before the stop": (
        "order",
        "bedrock-converse",
        converse([*CONVERSE[:6], CONVERSE[7], CONVERSE[6]]),
    ),
    "converse: a stop without reason": (
        "no_finish_reason",
        "bedrock-converse",
        converse(edited(CONVERSE, 6, lambda e: e["messageStop"].pop("stopReason"))),
    ),
    "converse: a reason that is documented": (
        None,
        "bedrock-converse",
        converse(at(CONVERSE, 6, "messageStop", stopReason="malformed_tool_use")),
    ),
    "converse: a reason that is not": (
        "other_reason",
        "bedrock-converse",
        converse(at(CONVERSE, 6, "messageStop", stopReason="tired")),
    ),
    "converse: no stop": ("truncated", "bedrock-converse", converse(CONVERSE[:6])),
    "converse: no usage": ("no_usage", "bedrock-converse", converse(CONVERSE[:7])),
    "converse: cached tokens are beside the input": (
        None,
        "bedrock-converse",
        converse(
            at(
                CONVERSE,
                7,
                "metadata",
                usage={"inputTokens": 5, "cacheReadInputTokens": 3, "outputTokens": 7, "totalTokens": 15},
            )
        ),
    ),
    "cohere: not started": ("order", "cohere", cohere(without(COHERE, 0))),
    "cohere: started twice": ("restarted", "cohere", cohere(before(COHERE, 1, COHERE[0]))),
    "cohere: another name": (
        "event_name_differs",
        "cohere",
        cohere(COHERE).replace(b"event: content-end", b"event: content-stop"),
    ),
    "cohere: a type of event": ("unknown_type", "cohere", cohere(before(COHERE, 1, {"type": "content-news"}))),
    "cohere: a type of content": (
        "unknown_type",
        "cohere",
        cohere(put(COHERE, 2, delta={"message": {"content": {"type": "poem"}}})),
    ),
    "cohere: a member": ("unknown_member", "cohere", cohere(put(COHERE, 3, mood=1))),
    "cohere: a start without index": ("no_index", "cohere", cohere(edited(COHERE, 2, lambda e: e.pop("index")))),
    "cohere: a call without a name": (
        "no_call_name",
        "cohere",
        cohere(put(COHERE, 7, delta={"message": {"tool_calls": {"id": "t1", "type": "function", "function": {}}}})),
    ),
    "cohere: an index left out": (
        "index_jump",
        "cohere",
        cohere(put(put(put(COHERE, 7, index=1), 8, index=1), 9, index=1)),
    ),
    "cohere: an index given again": ("index_reused", "cohere", cohere(before(COHERE, 7, COHERE[2], COHERE[6]))),
    "cohere: contents and calls are numbered apart": (None, "cohere", cohere(COHERE)),
    "cohere: a delta of nothing": ("wrong_index", "cohere", cohere(before(COHERE, 7, COHERE[3]))),
    "cohere: thinking in a text": (
        "wrong_delta",
        "cohere",
        cohere(before(COHERE, 3, {**COHERE[3], "delta": THINKING})),
    ),
    "cohere: a content without end": ("not_closed", "cohere", cohere(without(COHERE, 6))),
    "cohere: a call without end": ("not_closed", "cohere", cohere(without(COHERE, 9))),
    "cohere: a citation without end": ("not_closed", "cohere", cohere(without(COHERE, 5))),
    "cohere: arguments of no call": (
        "orphan_fragment",
        "cohere",
        cohere(before(COHERE, 10, put(COHERE, 8, index=3)[8])),
    ),
    "cohere: no reason": (
        "no_finish_reason",
        "cohere",
        cohere(edited(COHERE, 10, lambda e: e["delta"].pop("finish_reason"))),
    ),
    "cohere: a failure is told by the reason": (
        "in_band_error",
        "cohere",
        cohere(edited(COHERE, 10, lambda e: e["delta"].update(finish_reason="ERROR"))),
    ),
    "cohere: no [DONE]": ("no_done", "cohere", cohere(COHERE, b"")),
    "cohere: no end": ("truncated", "cohere", cohere(COHERE[:10], b"")),
    "ollama: a blank line, told without the provider": ("blank_line", "auto", b"\n" + jsonl(OLLAMA)),
    "ollama: a member": ("unknown_member", "ollama", jsonl(put(OLLAMA, 0, mood=1))),
    "ollama: a member of a message": (
        "unknown_member",
        "ollama",
        jsonl(put(OLLAMA, 0, message={"role": "assistant", "content": "Hi", "mood": 1})),
    ),
    "ollama: another model": ("id_changes", "ollama", jsonl(put(OLLAMA, 2, model="n"))),
    "ollama: no reason": ("no_finish_reason", "ollama", jsonl(edited(OLLAMA, 2, lambda c: c.pop("done_reason")))),
    "ollama: a call without a name": (
        "no_call_name",
        "ollama",
        jsonl(put(OLLAMA, 1, message={"role": "assistant", "content": "", "tool_calls": [{"function": {}}]})),
    ),
    "ollama: a model that is loaded": (
        None,
        "ollama",
        jsonl([{"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"}]),
    ),
    "ollama: generate": (
        None,
        "ollama",
        jsonl(
            [
                {"model": "m", "response": "Hi", "done": False},
                {"model": "m", "response": "", "done": True, "done_reason": "stop", "context": [1], "eval_count": 1},
            ]
        ),
    ),
    "ollama: an error": ("in_band_error", "ollama", jsonl([OLLAMA[0], {"error": "no"}])),
    "ollama: no end": ("truncated", "ollama", jsonl(OLLAMA[:2])),
    "ollama: a chunk after the end": ("after_end", "ollama", jsonl([*OLLAMA, OLLAMA[0]])),
}
