"""The wire linter over recorded sessions: what the rules say of either side, and that cuts change nothing."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from streamfold import RULES, Finding, Linter, SessionLinter, UsageError, check_session
from tests.check_wires import OF_SESSIONS, Payload, Stream, before, edited, put, without
from tests.conftest import SHARED
from tests.evidence import cut
from tests.live import recordings

STEPS = (1, 17, 1 << 20)

# -- sessions that keep to every rule ---------------------------------------------------------------------------------

SETUP = [{"out": {"setup": {"model": "m"}}}, {"setupComplete": {}}]
TOTALS = {"promptTokenCount": 5, "responseTokenCount": 7, "totalTokenCount": 12}
GEMINI_LIVE: Stream = [
    *SETUP,
    {"out": {"client_content": {"turns": [], "turn_complete": True}}},
    {"toolCall": {"functionCalls": [{"id": "c1", "name": "f", "args": {}}]}},
    {"out": {"tool_response": {"function_responses": [{"id": "c1", "name": "f", "response": {}}]}}},
    {"serverContent": {"modelTurn": {"parts": [{"text": "Hi"}]}, "outputTranscription": {"text": "Hi"}}},
    {"serverContent": {"generationComplete": True}},
    {"serverContent": {"turnComplete": True}, "usageMetadata": TOTALS},
    {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True}},
    {"goAway": {"timeLeft": "9.500s"}},
]
INTERRUPTED: Stream = [
    *SETUP,
    {"serverContent": {"modelTurn": {"parts": [{"text": "Hi"}]}}},
    {"serverContent": {"interrupted": True}},
    {"serverContent": {"turnComplete": True}, "usageMetadata": TOTALS},
]
LYRIA: Stream = [
    *SETUP,
    {"out": {"clientContent": {"weightedPrompts": [{"text": "rain", "weight": 0.5}]}}},
    {"out": {"playbackControl": "PLAY"}},
    {"serverContent": {"audioChunks": [{"data": "AAAA"}]}},
    {"filteredPrompt": {"text": "x", "filteredReason": "y"}},
    {"close": 1000},
]
ITEM: Payload = {"id": "i1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
CALL: Payload = {"id": "i2", "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
AT: Payload = {"response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
OF_CALL: Payload = {"response_id": "r1", "item_id": "i2", "output_index": 1, "call_id": "c1"}
USAGE = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
DONE: Payload = {"id": "r1", "status": "completed", "output": [ITEM, CALL], "usage": USAGE}


def numbered(stream: Stream) -> Stream:
    """Events of a Realtime session, each with its id."""
    return [e if "out" in e or "close" in e else {"event_id": f"e{n}", **e} for n, e in enumerate(stream)]


REALTIME: Stream = numbered(
    [
        {"type": "session.created", "session": {"id": "s1", "model": "m"}},
        {"type": "response.created", "response": {"id": "r1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "response_id": "r1", "output_index": 0, "item": {**ITEM, "content": []}},
        {"type": "response.output_text.delta", **AT, "delta": "H"},
        {
            "type": "response.output_item.added",
            "response_id": "r1",
            "output_index": 1,
            "item": {**CALL, "arguments": ""},
        },
        {"type": "response.function_call_arguments.delta", **OF_CALL, "delta": "{}"},
        {"type": "response.output_text.delta", **AT, "delta": "i"},
        {"type": "response.output_text.done", **AT, "text": "Hi"},
        {"type": "response.output_item.done", "response_id": "r1", "output_index": 0, "item": ITEM},
        {"type": "response.function_call_arguments.done", **OF_CALL, "name": "f", "arguments": "{}"},
        {"type": "response.output_item.done", "response_id": "r1", "output_index": 1, "item": CALL},
        {"type": "response.done", "response": DONE},
        {
            "out": {
                "type": "conversation.item.create",
                "item": {"type": "function_call_output", "call_id": "c1", "output": "1"},
            }
        },
        {"type": "rate_limits.updated", "rate_limits": []},
    ]
)
XAI: Stream = [
    {name: 0 if name == "output_index" else value for name, value in event.items()}
    for event in before(REALTIME, 1, {"type": "ping", "event_id": "p", "timestamp": 1})
]
STT: Stream = [
    {"type": "transcript.created"},
    {"type": "transcript.partial", "text": "on", "is_final": False, "speech_final": False},
    {"type": "transcript.partial", "text": "on", "is_final": True, "speech_final": True},
    {"type": "transcript.done", "text": "", "duration": 1.0},
    {"close": 1000},
]
TTS: Stream = [
    {"out": {"type": "text.delta", "delta": "Hi"}},
    {"out": {"type": "text.done"}},
    {"type": "audio.delta", "delta": "AAAA"},
    {"type": "audio.done"},
]
STEPS_OF_ONE: Stream = [
    {"event_type": "interaction.connected"},
    {
        "events": [
            {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hi"}},
        ]
    },
    {"event_type": "step.stop", "index": 0},
    {
        "event_type": "interaction.completed",
        "interaction": {
            "id": "v1",
            "status": "completed",
            "usage": {"total_input_tokens": 5, "total_output_tokens": 7, "total_tokens": 12},
        },
    },
]


def lane(id_: str, *, stream: str | None = None) -> Stream:
    """A response of one message, in a lane of its own where one is named."""
    part = {"type": "output_text", "text": "Hi", "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
    at = {"output_index": 0, "item_id": "m1", "content_index": 0}
    events: Stream = [
        {"type": "response.created", "response": {"id": id_, "model": "m", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": "Hi"},
        {"type": "response.output_text.done", **at, "text": "Hi"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {"id": id_, "model": "m", "status": "completed", "output": [item], "usage": USAGE},
        },
    ]
    of = {} if stream is None else {"stream_id": stream}
    return [{**event, "sequence_number": number, **of} for number, event in enumerate(events)]


LANES = [event for pair in zip(lane("r1"), lane("r2", stream="b"), strict=True) for event in pair]

HEALTHY: dict[str, tuple[str, Stream]] = {
    "gemini-live": ("gemini-live", GEMINI_LIVE),
    "gemini-live, interrupted": ("gemini-live", INTERRUPTED),
    "lyria": ("lyria", LYRIA),
    "openai-realtime": ("openai-realtime", REALTIME),
    "xai-realtime": ("xai-realtime", XAI),
    "xai-stt": ("xai-stt", STT),
    "xai-tts": ("xai-tts", TTS),
    "interactions": ("gemini", STEPS_OF_ONE),
    "two responses": ("openai-responses", [*lane("r1"), *lane("r2")]),
    "two lanes": ("openai-responses", LANES),
    "two connections": ("gemini-live", [*GEMINI_LIVE, {"close": 1000}, *GEMINI_LIVE]),
    "a connection that drops": ("gemini-live", [*GEMINI_LIVE[:6], {"close": 1006}, *GEMINI_LIVE]),
}


def line(event: Payload) -> bytes:
    if "close" in event:
        return json.dumps({"dir": "close", "code": event["close"]}).encode() + b"\n"
    sent = {"dir": "out", "frame": event["out"]} if "out" in event else {"dir": "in", "frame": event}
    return json.dumps(sent).encode() + b"\n"


def recorded(stream: Stream) -> bytes:
    return b"".join(map(line, stream))


def findings(wire: bytes, provider: str, step: int = 1 << 20) -> list[Finding]:
    with check_session(cut(wire, step), provider) as found:
        return list(found)


# -- a fault each: the code, the session, the number of the line ------------------------------------------------------


def content(stream: Stream, number: int, **members: Any) -> Stream:
    return edited(stream, number, lambda event: event["serverContent"].update(members))


def result(call_id: str | None) -> Payload:
    return {"out": {"toolResponse": {"functionResponses": [{"id": call_id, "name": "f", "response": {}}]}}}


ANSWER: Payload = {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c9"}}
FAULTS: dict[str, tuple[str, str, Stream, int]] = {
    "live: no setupComplete": ("order", "gemini-live", without(GEMINI_LIVE, 1), 2),
    "live: setupComplete twice": ("restarted", "gemini-live", before(GEMINI_LIVE, 2, {"setupComplete": {}}), 2),
    "live: a member": ("unknown_member", "gemini-live", put(GEMINI_LIVE, 5, mood={}), 5),
    "live: a member of the content": ("unknown_member", "gemini-live", content(GEMINI_LIVE, 5, mood=1), 5),
    "live: content after its end": (
        "content_after_finish",
        "gemini-live",
        before(GEMINI_LIVE, 7, GEMINI_LIVE[5]),
        7,
    ),
    "live: generated twice": ("terminal_twice", "gemini-live", before(GEMINI_LIVE, 7, GEMINI_LIVE[6]), 7),
    "live: generated and interrupted": ("order", "gemini-live", before(INTERRUPTED, 4, GEMINI_LIVE[6]), 4),
    "live: a call without id": (
        "no_call_id",
        "gemini-live",
        put(GEMINI_LIVE, 3, toolCall={"functionCalls": [{"name": "f", "args": {}}]})[:4],
        3,
    ),
    "live: a call without name": (
        "no_call_name",
        "gemini-live",
        put(GEMINI_LIVE, 3, toolCall={"functionCalls": [{"id": "c1", "args": {}}]}),
        3,
    ),
    "live: arguments that are text": (
        "wrong_type",
        "gemini-live",
        put(GEMINI_LIVE, 3, toolCall={"functionCalls": [{"id": "c1", "name": "f", "args": "{}"}]}),
        3,
    ),
    "live: time left is a number": ("wrong_type", "gemini-live", put(GEMINI_LIVE, 9, goAway={"timeLeft": 9}), 9),
    "live: resumable without a handle": (
        "no_handle",
        "gemini-live",
        put(GEMINI_LIVE, 8, sessionResumptionUpdate={"resumable": True}),
        8,
    ),
    "live: a call is taken back that never came": (
        "unknown_call",
        "gemini-live",
        before(GEMINI_LIVE, 5, {"toolCallCancellation": {"ids": ["c9"]}}),
        5,
    ),
    "live: the client answers what never came": (
        "unknown_call",
        "gemini-live",
        before(GEMINI_LIVE, 4, result("c9")),
        4,
    ),
    "live: the client answers no call": ("no_call_id", "gemini-live", before(GEMINI_LIVE, 4, result(None)), 4),
    "live: the client does not wait": ("client_message", "gemini-live", before(GEMINI_LIVE, 1, GEMINI_LIVE[2]), 1),
    "live: the client sets up twice": ("client_message", "gemini-live", before(GEMINI_LIVE, 2, GEMINI_LIVE[0]), 2),
    "live: the client says two things": (
        "client_message",
        "gemini-live",
        before(GEMINI_LIVE, 2, {"out": {"clientContent": {}, "realtimeInput": {}}}),
        2,
    ),
    "live: usage does not add up": (
        "usage_sum",
        "gemini-live",
        put(GEMINI_LIVE, 7, usageMetadata={**TOTALS, "totalTokenCount": 13}),
        7,
    ),
    "live: the connection closes inside a turn": (
        "truncated",
        "gemini-live",
        [*GEMINI_LIVE[:6], {"close": 1011}],
        5,
    ),
    "lyria: a member": ("unknown_member", "lyria", put(LYRIA, 4, mood=1), 4),
    "lyria: no setupComplete": ("order", "lyria", without(LYRIA, 1), 3),
    "lyria: a prompt of no weight": (
        "client_message",
        "lyria",
        put(LYRIA, 2, out={"clientContent": {"weightedPrompts": [{"text": "rain", "weight": 0}]}}),
        2,
    ),
    "lyria: the client talks": ("client_message", "lyria", before(LYRIA, 2, {"out": {"realtimeInput": {}}}), 2),
    "realtime: no event id": ("no_event_id", "openai-realtime", edited(REALTIME, 3, lambda e: e.pop("event_id")), 3),
    "realtime: a type of event": ("unknown_type", "openai-realtime", put(REALTIME, 13, type="mood.updated"), 13),
    "realtime: a type of item": (
        "unknown_type",
        "openai-realtime",
        edited(REALTIME, 2, lambda e: e["item"].update(type="poem")),
        2,
    ),
    "realtime: created twice": ("restarted", "openai-realtime", before(REALTIME, 2, REALTIME[1]), 2),
    "realtime: a response that was not created": ("order", "openai-realtime", without(REALTIME, 1), 1),
    "realtime: a delta before its item": ("order", "openai-realtime", without(REALTIME, 2), 2),
    "realtime: a delta after its item": ("order", "openai-realtime", before(REALTIME, 9, REALTIME[3]), 9),
    "realtime: a delta after its text": ("order", "openai-realtime", before(REALTIME, 8, REALTIME[3]), 8),
    "realtime: two ends of a text": ("terminal_twice", "openai-realtime", before(REALTIME, 8, REALTIME[7]), 8),
    "realtime: no index": ("no_index", "openai-realtime", edited(REALTIME, 3, lambda e: e.pop("output_index")), 3),
    "realtime: an index left out": ("index_jump", "openai-realtime", put(REALTIME, 4, output_index=2)[:5], 4),
    "realtime: an index given again": ("index_reused", "openai-realtime", put(REALTIME, 4, output_index=0)[:5], 4),
    "realtime: another id of the item": ("id_changes", "openai-realtime", put(REALTIME, 3, item_id="i9"), 3),
    "realtime: the end differs": ("end_differs", "openai-realtime", put(REALTIME, 7, text="Ho"), 7),
    "realtime: the end adds": ("end_adds", "openai-realtime", without(REALTIME, 6), 6),
    "realtime: the item differs": (
        "end_differs",
        "openai-realtime",
        put(REALTIME, 8, item={**ITEM, "content": [{"type": "output_text", "text": "Ho"}]}),
        8,
    ),
    "realtime: other arguments": ("end_differs", "openai-realtime", put(REALTIME, 9, arguments='{"a":1}'), 9),
    "realtime: an item without end": ("not_closed", "openai-realtime", without(REALTIME, 8), 10),
    "realtime: items left out of the output": (
        "output_differs",
        "openai-realtime",
        put(REALTIME, 11, response={**DONE, "output": [ITEM]}),
        11,
    ),
    "realtime: done while it runs": (
        "status_differs",
        "openai-realtime",
        put(REALTIME, 11, response={**DONE, "status": "in_progress"}),
        11,
    ),
    "realtime: the client answers what never came": (
        "unknown_call",
        "openai-realtime",
        put(REALTIME, 12, out=ANSWER),
        12,
    ),
    "realtime: an error is no fault of the wire": (
        "in_band_error",
        "openai-realtime",
        before(REALTIME, 1, {"type": "error", "event_id": "x", "error": {"type": "t", "message": "no"}}),
        1,
    ),
    "xai: an event of no item": (
        "no_index",
        "xai-realtime",
        edited(XAI, 4, lambda e: e.pop("item_id")),
        4,
    ),
    "stt: not created": ("order", "xai-stt", without(STT, 0), 0),
    "stt: created twice": ("restarted", "xai-stt", before(STT, 1, STT[0]), 1),
    "stt: over and not final": ("order", "xai-stt", put(STT, 2, is_final=False), 2),
    "stt: a member": ("unknown_member", "xai-stt", put(STT, 1, mood=1), 1),
    "tts: an end nobody waits for": ("order", "xai-tts", [*TTS, TTS[2], TTS[3]], 5),
    "tts: the client asks for something else": ("client_message", "xai-tts", before(TTS, 0, {"out": {"type": "x"}}), 0),
    "tts: a member": ("unknown_member", "xai-tts", put(TTS, 2, mood=1), 2),
    "interactions: a delta of nothing": ("wrong_index", "gemini", before(STEPS_OF_ONE, 3, STEPS_OF_ONE[2]), 3),
    "interactions: a step without stop": ("not_closed", "gemini", without(STEPS_OF_ONE, 2), 2),
    "lanes: a number left out": ("sequence_back", "openai-responses", put(lane("r1"), 3, sequence_number=1), 3),
    "lanes: a delta of no item": ("order", "openai-responses", without(lane("r1"), 1), 1),
    "lanes: created twice": ("restarted", "openai-responses", before(lane("r1"), 1, lane("r1")[0]), 1),
}


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("step", STEPS)
def test_a_healthy_session_has_no_findings(name: str, step: int) -> None:
    provider, stream = HEALTHY[name]
    assert findings(recorded(stream), provider, step) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_session_that_breaks_a_rule(name: str) -> None:
    code, provider, stream, number = FAULTS[name]
    found = findings(recorded(stream), provider)
    assert code in {finding.code for finding in found}, [str(finding) for finding in found]
    first = next(finding for finding in found if finding.code == code)
    at = len(recorded(stream[:number]))
    assert first.offset == at or (code == "truncated" and at < first.offset <= at + len(line(stream[number])))
    assert all(one.offset <= other.offset for one, other in pairwise(found))
    assert [findings(recorded(stream), provider, step) for step in STEPS] == [found] * len(STEPS)


def test_the_rules_of_sessions_alone_have_their_sessions() -> None:
    assert set(OF_SESSIONS) - {"not_a_recording"} <= {code for code, *_ in FAULTS.values()}


def test_a_line_that_is_none_of_a_recording_ends_the_reading() -> None:
    wire = recorded(GEMINI_LIVE[:2]) + b'{"dir":"up"}\n' + recorded(GEMINI_LIVE)
    for step in STEPS:
        found = findings(wire, "gemini-live", step)
        assert [(finding.code, finding.offset) for finding in found] == [
            ("not_a_recording", len(recorded(GEMINI_LIVE[:2])))
        ]


def test_a_line_over_the_limit_ends_the_reading() -> None:
    with check_session(recorded(GEMINI_LIVE), "gemini-live", max_frame_bytes=100) as found:
        assert [finding.code for finding in found] == ["limit"]


def test_a_payload_that_is_no_json_is_told_at_its_line() -> None:
    linter = Linter("gemini-live")
    assert linter.feed(b'{"setupComplete":{}}') == []
    assert [(finding.code, finding.offset) for finding in linter.feed(b"{")] == [("bad_json", 20)]


def test_what_the_client_sends_can_be_told_beside_the_messages() -> None:
    linter = Linter("gemini-live")
    assert linter.sent({"setup": {"model": "m"}}) == []
    assert linter.feed(b'{"setupComplete":{}}') == []
    linter.sent({"setup": {"model": "m"}})
    assert [finding.code for finding in linter.close("cut")] == ["client_message"]


def test_findings_come_as_the_session_goes_on() -> None:
    linter = SessionLinter("gemini-live")
    assert linter.feed(recorded(GEMINI_LIVE[:2])) == []
    assert [finding.code for finding in linter.feed(line({"setupComplete": {}}))] == ["restarted"]
    assert linter.close() == []
    assert linter.close() == []


def test_misuse() -> None:
    with pytest.raises(UsageError, match="no provider"):
        SessionLinter("nobody")
    with pytest.raises(UsageError, match="name whose"):
        check_session(b"", "auto")


# -- the recorded sessions --------------------------------------------------------------------------------------------

SESSIONS = dict(recordings(SHARED))
FAULTY: dict[str, set[str]] = {
    # recording -> rules of errors and warnings that it breaks; all others break none
    "gemini-live/text-in-audio-out.jsonl": {"usage_sum"},
    # made by hand, and shorter than the surface allows
    "openai-realtime/syn-errors-keep-the-session.jsonl": {"not_closed"},
    "responses-ws/syn-errors.jsonl": {"order", "not_closed", "output_differs"},
    "responses-ws/syn-two-turns.jsonl": {"order", "not_closed", "output_differs"},
}


@pytest.mark.parametrize("name", SESSIONS)
def test_a_recorded_session_has_the_findings_that_it_earns(name: str, record_property: Any) -> None:
    body = (Path(SHARED) / "captures" / name).read_bytes()
    provider = SESSIONS[name].facts["provider"]
    found = findings(body, provider)
    assert {f.code for f in found if f.severity != "note"} == FAULTY.get(name, set()), [str(f) for f in found]
    assert findings(body, provider, 17) == found
    record_property("ran", "linted sessions=1")


def test_no_session_that_was_really_recorded_has_an_error(shared: object) -> None:
    wrong = {name for name, codes in FAULTY.items() if any(RULES[code].severity == "error" for code in codes)}
    assert wrong <= SESSIONS.keys()
    assert all("/syn-" in name for name in wrong)
