"""OpenAI Realtime and xAI's copy of it: every row of the event table, the ends, what the user says, cut calls."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pytest

from streamfold import (
    ApprovalBlock,
    BlockEnd,
    BlockStart,
    ErrorEvent,
    Event,
    GoAway,
    Interrupted,
    LiveSession,
    MediaBlock,
    MediaDelta,
    Raw,
    Session,
    Snapshot,
    Start,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallCancelled,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResult,
    ToolResultBlock,
    TranscriptBlock,
    TranscriptDelta,
    TurnEvent,
    UsageError,
    tool_results,
)
from streamfold.blocks import JSONText, ToolCallState, TranscriptSource
from streamfold.events import StopReason
from streamfold.providers.openai_realtime import BETA, SILENT
from tests.live import broken
from tests.reading import done, json_of, raw, usage

Frame = dict[str, Any]

READY: Frame = {"type": "session.created", "session": {"id": "s1", "model": "m1"}}
S = Start("openai-realtime", "r1", "m1")
COUNTED = {"total_tokens": 7, "input_tokens": 3, "output_tokens": 4, "input_token_details": {"cached_tokens": 1}}
COUNTS = usage(COUNTED, total_tokens=7, input_tokens=3, output_tokens=4, cache_read_tokens=1)
WORDS = "conversation.item.input_audio_transcription"
ITEM = {"item_id": "i1"}
PLACED = {"item_id": "i1", "content_index": 0}


def created(id_: str = "r1", **more: Any) -> Frame:
    return {"type": "response.created", "response": {"id": id_, "status": "in_progress", **more}}


def of_response(kind: str, id_: str = "r1", item: str = "i1", place: int = 0, **more: Any) -> Frame:
    return {"type": f"response.{kind}", "response_id": id_, "item_id": item, "content_index": place, **more}


def over(status: str = "completed", id_: str = "r1", output: Any = (), details: Any = None, **more: Any) -> Frame:
    response = {"id": id_, "status": status, "status_details": details, "output": list(output), **more}
    return {"type": "response.done", "response": response}


def added(item: Frame, id_: str = "r1") -> Frame:
    return {"type": "response.output_item.added", "response_id": id_, "output_index": 0, "item": item}


def finished(item: Frame, id_: str = "r1") -> Frame:
    return {"type": "response.output_item.done", "response_id": id_, "output_index": 0, "item": item}


def call(status: str = "in_progress", arguments: str = "", item: str = "c1", id_: str = "call_1") -> Frame:
    return {
        "id": item,
        "type": "function_call",
        "status": status,
        "call_id": id_,
        "name": "f",
        "arguments": arguments,
    }


def pieces(delta: str, item: str = "c1") -> Frame:
    return of_response("function_call_arguments.delta", item=item, delta=delta)


def whole(arguments: str, item: str = "c1", **more: Any) -> Frame:
    return of_response("function_call_arguments.done", item=item, arguments=arguments, **more)


def message(*content: Frame, status: str = "completed", item: str = "i1") -> Frame:
    return {"id": item, "type": "message", "role": "assistant", "status": status, "content": list(content)}


def heard(kind: str, item: str = "u1", **more: Any) -> Frame:
    return {"type": f"{WORDS}.{kind}", "item_id": item, "content_index": 0, **more}


def speech(item: str = "u1") -> Frame:
    return {"type": "input_audio_buffer.speech_started", "item_id": item, "audio_start_ms": 9}


def committed(item: str = "u1") -> Frame:
    return {"type": "input_audio_buffer.committed", "item_id": item}


def session_of(
    *frames: Frame, provider: str = "openai-realtime", ready: bool = True
) -> tuple[LiveSession, list[TurnEvent]]:
    session = LiveSession(provider)
    sent = [READY, *frames] if ready else list(frames)
    events = [told for frame in sent for told in session.feed(json.dumps(frame, separators=(",", ":")))]
    assert not broken(events, closed=False)
    return session, events[ready:]


def told(*frames: Frame, **how: Any) -> list[TurnEvent]:
    """The events of a session, each with its turn, but for that of ``session.created``."""
    return session_of(*frames, **how)[1]


def turn(*frames: Frame, **how: Any) -> list[Event]:
    """The events of the only turn, but for ``start`` and the ``raw`` of ``response.created``."""
    events = told(created(), *frames, **how)
    assert [event.turn for event in events] == [0] * len(events)
    return [event for _, event in events[2:]]


def of(number: int | None, events: Iterable[Event]) -> list[TurnEvent]:
    return [TurnEvent(number, event) for event in events]


def words(index: int, *texts: str, source: TranscriptSource = "model", complete: bool = True) -> list[Event]:
    deltas = [TranscriptDelta(index, text, source) for text in texts]
    block = TranscriptBlock(index, "".join(texts), source, complete=complete)
    return [BlockStart(index, "transcript"), *deltas, BlockEnd(index, block)]


META = json_of({"item_id": "i1"})
SOUND = json_of({"item_id": "i1", "content_index": 0})
CALL = json_of({"item_id": "c1"})
TEXT: list[Event] = [
    BlockStart(0, "text", meta=META),
    TextDelta(0, "Hi"),
    TextDelta(0, " you"),
    BlockEnd(0, TextBlock(0, "Hi you", meta=META)),
]
CALLED: list[Event] = [ToolCallStart(0, "call_1", "f", meta=CALL), ToolCallDelta(0, "call_1", '{"a":1}')]


def ends_call(
    arguments: str = '{"a":1}', *, valid: bool = True, state: ToolCallState = "ready", index: int = 0
) -> list[Event]:
    block = ToolCallBlock(index, "call_1", "f", arguments, state=state, complete=valid, meta=CALL)
    return [ToolCallDone(index, "call_1", "f", arguments, valid), BlockEnd(index, block)]


TOLD: dict[str, tuple[list[Frame], list[Event]]] = {
    # what comes in a response -> its events, but for the raw of frames that say nothing
    "text": (
        [
            of_response("output_text.delta", delta="Hi"),
            of_response("output_text.delta", delta=" you", obfuscation="x"),
            of_response("output_text.done", text="Hi you"),
        ],
        TEXT,
    ),
    "text that the end adds to": (
        [of_response("output_text.delta", delta="Hi"), of_response("output_text.done", text="Hi you")],
        TEXT,
    ),
    "text that only its item has": (
        [finished(message({"type": "output_text", "text": "Hi"}))],
        [BlockStart(0, "text", meta=META), TextDelta(0, "Hi"), BlockEnd(0, TextBlock(0, "Hi", meta=META))],
    ),
    "text of the older item type": (
        [finished(message({"type": "text", "text": "Hi"}))],
        [BlockStart(0, "text", meta=META), TextDelta(0, "Hi"), BlockEnd(0, TextBlock(0, "Hi", meta=META))],
    ),
    "text that contradicts its pieces": (
        [of_response("output_text.delta", delta="Hi"), of_response("output_text.done", text="Ho")],
        [BlockStart(0, "text", meta=META), TextDelta(0, "Hi"), BlockEnd(0, TextBlock(0, "Ho", meta=META))],
    ),
    "an item of what was told already adds nothing": (
        [
            of_response("output_text.delta", delta="Hi"),
            of_response("output_text.delta", delta=" you"),
            of_response("output_text.done", text="Hi you"),
            finished(message({"type": "output_text", "text": "Hi you"})),
        ],
        TEXT,
    ),
    "audio": (
        [of_response("output_audio.delta", delta="AAEC"), of_response("output_audio.done")],
        [
            BlockStart(0, "media", meta=SOUND),
            MediaDelta(0, None, b"\0\1\2"),
            BlockEnd(0, MediaBlock(0, None, b"\0\1\2", meta=SOUND)),
        ],
    ),
    "words of audio": (
        [
            of_response("output_audio_transcript.delta", delta="Hi"),
            of_response("output_audio_transcript.delta", delta=" you"),
            of_response("output_audio_transcript.done", transcript="Hi you"),
        ],
        words(0, "Hi", " you"),
    ),
    "words that their end revises": (
        [
            of_response("output_audio_transcript.delta", delta="Hi"),
            of_response("output_audio_transcript.done", transcript="Ho!"),
        ],
        [
            BlockStart(0, "transcript"),
            TranscriptDelta(0, "Hi"),
            TranscriptDelta(0, "o!", final=True, replaces=1),
            BlockEnd(0, TranscriptBlock(0, "Ho!")),
        ],
    ),
    "a call": (
        [
            added(call()),
            pieces('{"a":1}'),
            whole('{"a":1}', call_id="call_1", name="f"),
            finished(call("completed", '{"a":1}')),
        ],
        [*CALLED, *ends_call()],
    ),
    "a call of which only the end of its arguments came": (
        [whole('{"a":1}', call_id="call_1", name="f"), finished(call("completed", '{"a":1}'))],
        [*CALLED, *ends_call()],
    ),
    "a call of which only its item came": ([finished(call("completed", '{"a":1}'))], [*CALLED, *ends_call()]),
    "a call that was cut, though its arguments were said to be done": (
        [added(call()), pieces('{"a":'), whole('{"a":'), finished(call("incomplete", '{"a":'))],
        [
            ToolCallStart(0, "call_1", "f", meta=CALL),
            ToolCallDelta(0, "call_1", '{"a":'),
            *ends_call('{"a":', valid=False, state="invalid"),
        ],
    ),
    "a call that the provider runs": (
        [
            added({"id": "c1", "type": "mcp_call", "name": "look", "server_label": "s", "arguments": ""}),
            of_response("mcp_call_arguments.delta", item="c1", delta="{}"),
            of_response("mcp_call_arguments.done", item="c1", arguments="{}"),
            finished(
                {"id": "c1", "type": "mcp_call", "name": "look", "server_label": "s", "arguments": "{}", "output": "ok"}
            ),
        ],
        [
            ToolCallStart(0, "c1", "look", "mcp", "provider", meta=json_of({"server_label": "s"})),
            ToolCallDelta(0, "c1", "{}"),
            ToolCallDone(0, "c1", "look", "{}", executor="provider"),
            BlockEnd(
                0,
                ToolCallBlock(
                    0, "c1", "look", "{}", "mcp", "provider", "provider", meta=json_of({"server_label": "s"})
                ),
            ),
            BlockStart(1, "tool_result"),
            BlockEnd(1, ToolResultBlock(1, "c1", "look", JSONText('"ok"'))),
        ],
    ),
    "a request for approval": (
        [finished({"id": "a1", "type": "mcp_approval_request", "name": "look", "arguments": "{}"})],
        [BlockStart(0, "approval"), BlockEnd(0, ApprovalBlock(0, "a1", "look", "{}"))],
    ),
}


@pytest.mark.parametrize("end", [over(), over(output=[message({"type": "output_text", "text": "", "x": 1})])])
@pytest.mark.parametrize(("frames", "events"), TOLD.values(), ids=TOLD)
def test_what_comes_in_a_response(frames: list[Frame], events: list[Event], end: Frame) -> None:
    *found, last = turn(*frames, end)
    assert [event for event in found if not isinstance(event, Raw)] == events
    assert last.type == "done"


@pytest.mark.parametrize("name", BETA)
def test_older_names_mean_what_todays_do(name: str) -> None:
    frames = [
        of_response("output_text.delta", delta="Hi"),
        of_response("output_text.done", text="Hi there"),
        of_response("output_audio.delta", delta="AAEC", place=1),
        of_response("output_audio.done", place=1),
        of_response("output_audio_transcript.delta", delta="Ho", place=1),
        of_response("output_audio_transcript.done", transcript="Ho!", place=1),
        {"type": "conversation.item.added", "item": {"id": "u1", "type": "message", "role": "user"}},
        {"type": "session.created", "session": {"id": "s2"}},
        {"type": "session.updated", "session": {"id": "s2"}},
    ]
    older = [{**frame, "type": name} if BETA[name] == frame["type"] else frame for frame in frames]
    assert older != frames
    found, wanted = (list(told(created(), *them, over())) for them in (older, frames))
    assert [e for e in found if not isinstance(e.event, Raw)] == [e for e in wanted if not isinstance(e.event, Raw)]
    assert len(found) == len(wanted)


@pytest.mark.parametrize("kind", [*sorted(SILENT), f"{WORDS}.failed", "input_audio_buffer.committed", "new.event"])
@pytest.mark.parametrize("inside", [False, True])
def test_what_has_no_meaning_is_raw_and_ends_nothing(kind: str, inside: bool) -> None:
    frame: Frame = {"type": kind, "event_id": "e1", "error": {"code": "x"}}
    events = told(*[created()] * inside, frame)
    assert events[-1].event == raw(frame)
    assert [e for e in events if e.event.type in ("done", "error", "session")] == []


def test_only_unknown_events_are_raw_where_only_those_are_asked_for() -> None:
    session = LiveSession("openai-realtime", raw="unknown")
    assert not session.feed({"type": "rate_limits.updated"})
    assert [told.event.type for told in session.feed({"type": "new.event"})] == ["raw"]


def test_items_of_one_response_interleave() -> None:
    events = turn(
        of_response("output_text.delta", delta="Let me"),
        added(call()),
        pieces('{"a"'),
        of_response("output_text.delta", delta=" see"),
        pieces(":1}"),
        of_response("output_text.done", text="Let me see"),
        finished(call("completed", '{"a":1}')),
        over(usage=COUNTED),
    )
    ends = [event.block for event in events if isinstance(event, BlockEnd)]
    assert ends == [
        TextBlock(0, "Let me see", meta=META),
        ToolCallBlock(1, "call_1", "f", '{"a":1}', state="ready", meta=CALL),
    ]
    assert events[-2:] == [COUNTS, done("tool_use", "completed")]


def test_responses_that_run_beside_each_other_are_turns_of_their_own() -> None:
    session, _ = session_of(
        created("r1"),
        created("r2", conversation_id=None),
        of_response("output_text.delta", "r2", delta="two"),
        of_response("output_text.delta", "r1", delta="one"),
        over(id_="r2"),
        of_response("output_text.delta", "r1", delta=" more"),
        over(id_="r1"),
    )
    assert [turn.text for turn in session.turns] == ["one more", "two"]
    assert [turn.id for turn in session.turns] == ["r1", "r2"]
    assert {turn.outcome for turn in session.turns} == {"complete"}


ENDS: dict[str, tuple[Frame, StopReason, str]] = {
    "completed": (over(), "end", "completed"),
    "cut by the user": (over("cancelled", details={"reason": "turn_detected"}), "cancelled", "turn_detected"),
    "by the client": (over("cancelled", details={"reason": "client_cancelled"}), "cancelled", "client_cancelled"),
    "cancelled, for a reason that is new": (over("cancelled", details={"reason": "new"}), "cancelled", "new"),
    "too long": (over("incomplete", details={"reason": "max_output_tokens"}), "length", "max_output_tokens"),
    "filtered": (over("incomplete", details={"reason": "content_filter"}), "refusal", "content_filter"),
    "incomplete, for a reason that is new": (over("incomplete", details={"reason": "new"}), "other", "new"),
    "xAI's details": (over(details="unimplemented"), "end", "completed"),
    "a status that is new": (over("new"), "other", "new"),
}


@pytest.mark.parametrize(("end", "reason", "word"), ENDS.values(), ids=ENDS)
def test_why_a_response_ended(end: Frame, reason: StopReason, word: str) -> None:
    assert turn(end)[-1] == done(reason, word)


def test_a_response_that_failed_is_an_error_behind_its_usage() -> None:
    error = {"type": "server_error", "code": "boom", "message": "no"}
    events = turn(of_response("output_text.delta", delta="Hi"), over("failed", details={"error": error}, usage=COUNTED))
    assert [event.type for event in events] == ["block_start", "text_delta", "block_end", "usage", "error"]
    last = events[-1]
    assert isinstance(last, ErrorEvent)
    assert (last.kind, last.code, last.fatal) == ("provider", "boom", True)
    assert turn(over("failed"))[-1].type == "error"


def test_usage_is_read_beside_the_response_too() -> None:
    frame = {**over(usage={}), "usage": COUNTED}
    assert turn(frame)[-2:] == [COUNTS, done("end", "completed")]


# -- cut calls ----------------------------------------------------------------------------------------------------

CUT: dict[str, tuple[list[Frame], ToolCallState, tuple[str, ...]]] = {
    # frames -> state of the call, ids that were taken back
    "done, then its response completes": ([whole("{}"), over()], "ready", ()),
    "done, then its response is too long": ([whole("{}"), over("incomplete")], "invalid", ()),
    "done, then its response fails": ([whole("{}"), over("failed")], "invalid", ()),
    "done, then its response is cancelled": ([whole("{}"), over("cancelled")], "cancelled", ("call_1",)),
    "not done, its response is cancelled": ([pieces("{"), over("cancelled")], "cancelled", ("call_1",)),
    "not done, its response completes": ([pieces("{"), over()], "cut", ()),
    "not done, its response says what it was": ([over(output=[call("completed", "{}")])], "ready", ()),
    "completed, then its response is cancelled": ([finished(call("completed", "{}")), over("cancelled")], "ready", ()),
    "incomplete, then its response is cancelled": (
        [whole("{"), finished(call("incomplete", "{")), over("cancelled")],
        "invalid",
        (),
    ),
    "incomplete in a response that is cancelled": (
        [whole("{"), over("cancelled", output=[call("incomplete", "{")])],
        "cancelled",
        ("call_1",),
    ),
    "completed without JSON": ([finished(call("completed", "{"))], "invalid", ()),
}


@pytest.mark.parametrize(("frames", "state", "cancelled"), CUT.values(), ids=CUT)
def test_what_becomes_of_a_call(frames: list[Frame], state: ToolCallState, cancelled: tuple[str, ...]) -> None:
    session, events = session_of(created(), added(call()), *frames)
    block = session.turns[0].blocks[0]
    assert isinstance(block, ToolCallBlock)
    assert block.state == state
    taken = [event.ids for _, event in events if isinstance(event, ToolCallCancelled)]
    assert taken == [cancelled] * bool(cancelled)
    assert len(session.turns[0].tool_calls) == (state == "ready")


def test_arguments_keep_their_padding() -> None:
    padded = '{  \n  "city": "London" \n} \n'
    session, _ = session_of(created(), added(call()), pieces(padded), finished(call("completed", padded)), over())
    assert session.turns[0].tool_calls[0].arguments == padded


# -- what the user says -------------------------------------------------------------------------------------------


def user(*texts: str, index: int = 0, complete: bool = True) -> list[Event]:
    return words(index, *texts, source="user", complete=complete)


def test_speech_breaks_in_on_a_response_that_runs_and_on_nothing_else() -> None:
    events = told(speech(), created(), speech("u2"), speech("u3"), over("cancelled"), speech("u4"))
    assert events[0] == TurnEvent(None, raw(speech()))
    assert events[3] == TurnEvent(0, Interrupted())
    assert [e.event.type for e in events[4:]] == ["raw", "done", "raw"]


def test_speech_breaks_in_on_nothing_where_the_session_says_so() -> None:
    detection = {"type": "server_vad", "interrupt_response": False}
    for session in ({"turn_detection": detection}, {"audio": {"input": {"turn_detection": detection}}}):
        events = told({"type": "session.updated", "session": session}, created(), speech())
        assert events[-1].event == raw(speech())


def test_a_response_that_was_broken_in_on_without_a_sign_has_one_before_its_end() -> None:
    events = turn(over("cancelled", details={"type": "cancelled", "reason": "turn_detected"}))
    assert events == [Interrupted("turn_detected"), done("cancelled", "turn_detected")]


def test_what_was_being_said_at_a_break_is_cut() -> None:
    session, _ = session_of(
        created(),
        of_response("output_audio_transcript.delta", delta="The hist"),
        speech(),
        of_response("output_audio_transcript.done", transcript="The hist"),
        over("cancelled"),
    )
    assert session.turns[0].blocks == (TranscriptBlock(0, "The hist", complete=False),)


HEARD: dict[str, tuple[list[Frame], list[TurnEvent]]] = {
    # frames -> events of the turns, but for start, raw and done
    "before the response, whose turn it opens": (
        [committed(), heard("delta", delta="Hi"), heard("completed", transcript="Hi."), created(), over()],
        of(
            0,
            [
                BlockStart(0, "transcript"),
                TranscriptDelta(0, "Hi", "user"),
                TranscriptDelta(0, ".", "user", True),
                BlockEnd(0, TranscriptBlock(0, "Hi.", "user")),
            ],
        ),
    ),
    "beside the response": (
        [committed(), created(), heard("delta", delta="Hi"), heard("completed", transcript="Hi"), over()],
        of(0, user("Hi")),
    ),
    "only when the response has ended": (
        [committed(), created(), over(), heard("completed", transcript="Hi"), created("r2"), over(id_="r2")],
        of(
            0,
            [
                BlockStart(0, "transcript"),
                TranscriptDelta(0, "Hi", "user", True),
                BlockEnd(0, TranscriptBlock(0, "Hi", "user")),
            ],
        ),
    ),
    "across the end of the response": (
        [
            committed(),
            created(),
            heard("delta", delta="Hi"),
            over(),
            heard("delta", delta=" yo"),
            heard("completed", transcript="Hi you"),
        ],
        of(
            0,
            [
                *user("Hi", complete=False),
                BlockStart(1, "transcript"),
                TranscriptDelta(1, " yo", "user"),
                TranscriptDelta(1, "u", "user", True),
                BlockEnd(1, TranscriptBlock(1, " you", "user")),
            ],
        ),
    ),
    "while another response runs, into which it breaks": (
        [
            created(),
            speech(),
            committed(),
            over("cancelled"),
            created("r2"),
            heard("delta", delta="Stop"),
            heard("completed", transcript="Stop"),
        ],
        [*of(0, [Interrupted()]), *of(1, user("Stop"))],
    ),
    "of an item whose beginning nobody saw": (
        [created(), heard("completed", transcript="Hi"), over()],
        of(
            0,
            [
                BlockStart(0, "transcript"),
                TranscriptDelta(0, "Hi", "user", True),
                BlockEnd(0, TranscriptBlock(0, "Hi", "user")),
            ],
        ),
    ),
    "no more of it after it failed": (
        [
            committed(),
            created(),
            heard("delta", delta="Hi"),
            heard("failed", error={"code": "x"}),
            heard("delta", delta="?"),
            over(),
        ],
        of(0, user("Hi", complete=False)),
    ),
}


@pytest.mark.parametrize(("frames", "events"), HEARD.values(), ids=HEARD)
def test_whose_the_words_of_the_user_are(frames: list[Frame], events: list[TurnEvent]) -> None:
    found = [e for e in told(*frames) if e.event.type not in ("start", "raw", "done")]
    assert found == events


def test_a_turn_that_the_user_opened_gets_the_name_of_its_response() -> None:
    events = told(committed(), heard("delta", delta="Hi"), created())
    starts = [e for e in events if isinstance(e.event, Start)]
    assert starts == of(0, [Start("openai-realtime", None, "m1"), Start("openai-realtime", "r1", "m1")])


def test_speech_that_nobody_answered_is_no_answer_that_broke_off() -> None:
    session, _ = session_of(committed(), heard("delta", delta="Hi"))
    assert [told.event.type for told in session.close(1000)] == ["block_end", "done"]
    assert session.snapshot().stop.reason == "cancelled"


def test_words_of_a_response_beside_the_conversation_are_not_the_users() -> None:
    events = told(
        created("r0", conversation_id="c"),
        over(id_="r0"),
        committed(),
        created("r1", conversation_id=None),
        heard("delta", delta="Hi"),
        created("r2", conversation_id="c"),
    )
    assert [e.turn for e in events if isinstance(e.event, TranscriptDelta)] == [2]
    assert [e.event for e in events if isinstance(e.event, Start)][-1] == Start("openai-realtime", "r2", "m1")


@pytest.mark.parametrize("kind", ["transcription_session.created", "session.created"])
def test_a_session_that_only_writes_down_has_a_turn_for_each_item(kind: str) -> None:
    session, _ = session_of(
        {"type": kind, "session": {"type": "transcription"}},
        committed("u1"),
        heard("delta", "u1", delta="one"),
        committed("u2"),
        heard("delta", "u2", delta="two"),
        heard("completed", "u1", transcript="one.", usage={"type": "tokens", **COUNTED}),
        heard("failed", "u2", error={"code": "x"}),
    )
    one, two = session.turns
    assert (one.blocks[0], one.stop.reason, one.outcome) == (TranscriptBlock(0, "one.", "user"), "end", "complete")
    assert one.usage is not None
    assert one.usage.total_tokens == 7
    assert (two.stop.reason, two.blocks[0].complete) == ("other", False)


# -- the session --------------------------------------------------------------------------------------------------


def test_errors_leave_the_session_open() -> None:
    frame: Frame = {"type": "error", "error": {"type": "t", "code": "response_cancel_not_active", "message": "no"}}
    for events in (told(frame), told(created(), frame)):
        number, error = events[-1]
        assert isinstance(error, ErrorEvent)
        assert (number, error.kind, error.code, error.fatal) == (None, "provider", "response_cancel_not_active", False)


def test_a_session_whose_time_is_up_goes_away_and_a_response_that_ran_was_cut() -> None:
    session, events = session_of(created(), {"type": "error", "error": {"code": "session_expired", "message": "60"}})
    assert [e.event for e in events][-1] == GoAway(0)
    (last,) = session.close(1001, "Your session hit the maximum duration of 60 minutes.")
    assert isinstance(last.event, ErrorEvent)
    assert (last.turn, last.event.kind, last.event.retryable) == (0, "truncated", True)


def test_what_comes_behind_the_end_of_a_response_changes_nothing() -> None:
    session, events = session_of(created(), over(), of_response("output_text.delta", delta="late"), over())
    assert [e.event.type for e in events[3:]] == ["raw", "raw"]
    assert session.turns[0].text == ""


def test_a_reading_may_begin_inside_a_response() -> None:
    events = told(of_response("output_text.delta", delta="Hi"), over())
    assert [e.event.type for e in events] == ["start", "block_start", "text_delta", "block_end", "done"]
    assert events[0] == TurnEvent(0, S)


FORMATS: dict[str, tuple[Frame, str | None]] = {
    "none": ({}, None),
    "today's": ({"audio": {"output": {"format": {"type": "audio/pcm", "rate": 24000}}}}, "audio/pcm;rate=24000"),
    "without a rate": ({"audio": {"output": {"format": {"type": "audio/pcmu"}}}}, "audio/pcmu"),
    "the older word": ({"output_audio_format": "pcm16"}, "audio/pcm;rate=24000"),
    "an unknown word": ({"output_audio_format": "new"}, None),
}


@pytest.mark.parametrize("where", ["session", "response"])
@pytest.mark.parametrize(("members", "mime_type"), FORMATS.values(), ids=FORMATS)
def test_audio_has_the_type_that_the_session_or_the_response_tells(
    members: Frame, mime_type: str | None, where: str
) -> None:
    frames = [{"type": "session.updated", "session": members if where == "session" else {}}]
    frames += [
        created("r1", **(members if where == "response" else {})),
        of_response("output_audio.delta", delta="AAEC"),
    ]
    assert [e.event.mime_type for e in told(*frames) if isinstance(e.event, MediaDelta)] == [mime_type]


def test_a_message_that_is_no_json_ends_the_response_and_the_next_one_counts() -> None:
    session = LiveSession("openai-realtime")
    frames: list[Any] = [
        created(),
        "{",
        of_response("output_text.delta", delta="Hi"),
        over(),
        created("r2"),
        of_response("output_text.delta", "r2", delta="Ho"),
        over(id_="r2"),
    ]
    events = [told for frame in frames for told in session.feed(frame)]
    assert not broken(events)
    assert [(turn.outcome, turn.text) for turn in session.turns] == [("failed", ""), ("complete", "Ho")]


def test_a_session_that_translates_is_one_turn() -> None:
    session, _ = session_of(
        {"type": "session.input_transcript.delta", "delta": "Hallo"},
        {"type": "session.output_audio.delta", "delta": "AAEC", "format": "pcm16", "sample_rate": 24000, "channels": 1},
        {"type": "session.output_transcript.delta", "delta": "Hel"},
        {"type": "session.output_transcript.delta", "delta": "lo"},
        {"type": "session.closed", "reason": "close_requested"},
    )
    (turn,) = session.turns
    assert turn.blocks == (
        TranscriptBlock(0, "Hallo", "user"),
        MediaBlock(1, "audio/pcm;rate=24000;channels=1", b"\0\1\2"),
        TranscriptBlock(2, "Hello"),
    )
    assert (turn.stop.reason, turn.stop.raw) == ("end", "close_requested")


CLOSED: dict[str, tuple[str | None, str]] = {
    "content": ("refusal", "complete"),
    "expired": ("other", "complete"),
    "connection_lost": (None, "failed"),
}


@pytest.mark.parametrize(("reason", "end"), CLOSED.items(), ids=CLOSED)
def test_why_a_translation_ended(reason: str, end: tuple[str | None, str]) -> None:
    words_of_it = {"type": "session.output_transcript.delta", "delta": "x"}
    session, _ = session_of(words_of_it, {"type": "session.closed", "reason": reason})
    assert (session.turns[0].stop.reason, session.turns[0].outcome) == end
    cut, _ = session_of(words_of_it)
    assert [told.event.type for told in cut.close(1000)] == ["block_end", "error"]
    assert told({"type": "session.closed"})[0].event.type == "raw"


def test_a_session_that_wraps_events_of_responses_breaks_nothing() -> None:
    """OpenAI's full-duplex sessions: words and sound are told, what they wrap comes out as it came."""
    wrapped = {"type": "response.event", "event": {"type": "response.output_text.delta", "delta": "no"}}
    frames: list[Frame] = [
        {"type": "session.started", "session": {"id": "s"}},
        {"type": "session.input_transcript.delta", "delta": "And?"},
        wrapped,
        {"type": "session.output_transcript.delta", "delta": "Well."},
        {"type": "session.delegation.created", "delegation": {"id": "d"}},
        {"type": "session.usage.updated", "usage": {"total_tokens": 3}},
        {"type": "transport.connected"},
        {"type": "session.closed", "reason": "close_requested"},
    ]
    session, events = session_of(*frames)
    assert [(block.source, block.text) for block in session.turns[0].blocks] == [("user", "And?"), ("model", "Well.")]  # type: ignore[union-attr]
    assert [event.name for _, event in events if isinstance(event, Raw)] == [
        *("session.started", "response.event", "session.delegation.created"),
        *("session.usage.updated", "transport.connected"),
    ]
    assert [turn.outcome for turn in session.turns] == ["complete"]


# -- what goes back -----------------------------------------------------------------------------------------------


def answered(*frames: Frame) -> Snapshot:
    return session_of(created(), *frames)[0].turns[0]


def test_results_go_back_one_by_one_and_those_of_calls_taken_back_do_not() -> None:
    answer = answered(
        finished(call("completed", "{}")),
        finished(call("completed", "{}", "c2", "call_2")),
        added(call("in_progress", "", "c3", "call_3")),
        over("cancelled"),
    )
    assert [block.id for block in answer.withheld_calls] == ["call_3"]
    (sent,) = tool_results(answer, {"call_2": ToolResult("no", is_error=True)})
    item = {"type": "function_call_output", "call_id": "call_2", "output": '{"error":"no"}'}
    assert sent == {"type": "conversation.item.create", "item": item}
    with pytest.raises(UsageError, match="cancelled"):
        tool_results(answer, {"call_3": "late"})


@pytest.mark.parametrize(("arguments", "whole"), [('{"city":', False), ('{"city":"Oslo"} ', True), ("12", False)])
def test_a_result_may_be_sent_before_the_item_of_its_call_is_done(arguments: str, whole: bool) -> None:
    """By a client that takes the arguments for whole; it is handed out to nobody, since its response may break off."""
    told = of_response("function_call_arguments.done", item_id="c1", call_id="call_1", arguments=arguments)
    answer = answered(added(call("in_progress", "")), told)
    assert (answer.tool_calls, [block.state for block in answer.withheld_calls]) == ((), ["open"])
    if whole:
        (sent,) = tool_results(answer, {"call_1": "07:12"})
        assert sent["item"] == {"type": "function_call_output", "call_id": "call_1", "output": "07:12"}
        assert tool_results(answer, {}) == []
    else:
        with pytest.raises(UsageError, match=r"withheld \(open\)"):
            tool_results(answer, {"call_1": "07:12"})


def test_a_turn_can_begin_another_session() -> None:
    answer = answered(
        heard("completed", transcript="Weather?"),
        of_response("output_audio_transcript.done", transcript="Let me see."),
        of_response("output_audio.delta", delta="AAEC"),
        finished(call("completed", "{}")),
        over(),
    )
    items = [event["item"] for event in answer.echo() if event["type"] == "conversation.item.create"]
    assert items == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ]


def test_an_approval_is_answered() -> None:
    answer = answered(finished({"id": "a1", "type": "mcp_approval_request", "name": "look", "arguments": "{}"}), over())
    assert answer.stop.reason == "tool_use"
    (sent,) = tool_results(answer, {"a1": True})
    assert sent["item"] == {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": True}


# -- xAI ----------------------------------------------------------------------------------------------------------


def xai(*frames: Any) -> tuple[LiveSession, list[TurnEvent]]:
    session = LiveSession("xai-realtime")
    events = [told for frame in frames for told in session.feed(frame)]
    assert not broken(events, closed=False)
    return session, events


def test_xai_says_the_words_of_the_user_from_the_beginning_each_time() -> None:
    frames = [
        heard("updated", transcript="What is"),
        heard("updated", transcript="What's the wet"),
        heard("completed", transcript="What's the weather", status="in_progress"),
        created(),
        heard("completed", transcript="What's the weather?", status="completed"),
        heard("completed", transcript="What's the weather?", status="completed"),
    ]
    session, events = xai(*frames)
    said = [event for _, event in events if isinstance(event, TranscriptDelta)]
    assert said == [
        TranscriptDelta(0, "What is", "user"),
        TranscriptDelta(0, "'s the wet", "user", replaces=3),
        TranscriptDelta(0, "ather", "user", replaces=1),
        TranscriptDelta(0, "?", "user", final=True),
    ]
    assert session.turns[0].blocks == (TranscriptBlock(0, "What's the weather?", "user"),)
    assert events[-1].event.type == "raw"


def test_items_of_xai_have_all_the_same_index_and_are_known_by_their_ids() -> None:
    session, _ = xai(
        created(),
        of_response("output_audio_transcript.delta", item="a", output_index=0, delta="One"),
        of_response("output_audio_transcript.delta", item="b", output_index=0, delta="Two"),
        of_response("output_audio_transcript.done", item="a", output_index=0, transcript="One."),
        of_response("output_audio_transcript.done", item="b", output_index=0, transcript="Two."),
        over(),
    )
    assert [getattr(block, "text", None) for block in session.turns[0].blocks] == ["One.", "Two."]


def test_words_of_xai_that_only_the_end_has() -> None:
    without = {"id": "i1", "type": "message", "status": "completed", "role": "assistant"}
    session, _ = xai(created(), finished(without), over(output=[message({"type": "audio", "transcript": "Hi"})]))
    assert session.turns[0].blocks == (TranscriptBlock(0, "Hi"),)


def resumption(enabled: bool) -> list[Frame]:
    return [
        {"type": "session.created", "session": {"id": "s1"}},
        {"type": "conversation.created", "conversation": {"id": "conv"}},
        {"type": "ping", "timestamp": 1},
        {"type": "conversation.item.added", "item": message({"type": "text", "text": "before"}, item="new")},
        {"type": "session.updated", "session": {"resumption": {"enabled": enabled}}},
    ]


def test_a_conversation_of_xai_is_taken_up_by_its_id_where_the_session_allows_it() -> None:
    session, events = xai(*resumption(True))
    assert (session.resume_handle, session.resumable) == ("conv", True)
    assert events[-1].event == Session("s1", True, "conv")
    session.feed(created())
    assert not session.resumable
    session, _ = xai(*resumption(False))
    assert (session.resume_handle, session.resumable) == (None, False)


def test_a_conversation_of_xai_can_be_taken_up_whoever_tells_first_that_it_is_kept() -> None:
    session, events = xai(*resumption(True)[:1], resumption(True)[-1], resumption(True)[1])
    assert (session.resume_handle, session.resumable) == ("conv", True)
    assert events[-1].event == Session("s1", True, "conv")
    session = LiveSession("xai-realtime")
    for sent in ("{", {"type": "session.update", "session": {"resumption": {"enabled": True}}}):
        session.sent(sent)
    for frame in resumption(False)[:2]:
        session.feed(frame)
    assert (session.resume_handle, session.resumable) == ("conv", True)


def test_what_was_said_before_comes_again_as_raw() -> None:
    session, events = xai(*resumption(True))
    assert [e.event.type for e in events] == ["session", "raw", "raw", "raw", "session"]
    assert session.turns == ()


BINARY: Frame = {"type": "session.updated", "session": {"audio": {"output": {"transport": "binary"}}}}
SOUNDS = [b"\0\1\2\3", b"{\0\1", b"[1]", b"\x7b" * 500, b"17"]


@pytest.mark.parametrize("data", SOUNDS, ids=range(len(SOUNDS)))
def test_binary_frames_are_audio_where_that_was_agreed(data: bytes) -> None:
    item = added({"id": "i1", "type": "message"})
    session, events = xai(BINARY, created(), item, data, json.dumps(over()).encode())
    assert [event.data for _, event in events if isinstance(event, MediaDelta)] == [data]
    assert session.turns[0].blocks == (MediaBlock(0, None, data, meta=SOUND),)
    assert session.turns[0].outcome == "complete"


def test_binary_frames_are_messages_where_it_was_not_and_strange_outside_of_a_response() -> None:
    _, events = xai(created(), b"\0\1\2\3")
    assert events[-1].event.type == "error"
    _, events = xai(BINARY, b"\0\1\2\3")
    assert events[-1] == TurnEvent(None, events[-1].event)
    assert events[-1].event.type == "raw"
    encoded = of_response("output_audio.delta", delta=base64.b64encode(b"abc").decode())
    _, events = xai(BINARY, created(), json.dumps(encoded).encode())
    assert [event.data for _, event in events if isinstance(event, MediaDelta)] == [b"abc"]
