"""Sessions: turns and what is of none, closes by their codes, bounds, surfaces that give one answer a connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamfold
from streamfold import (
    BlockEnd,
    BlockStart,
    Done,
    ErrorEvent,
    GoAway,
    LiveSession,
    MediaBlock,
    MediaDelta,
    Session,
    Snapshot,
    Start,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallCancelled,
    ToolResult,
    TranscriptDelta,
    TurnEvent,
    Usage,
    UsageError,
    tool_results,
)
from streamfold.accumulator import StreamAccumulator
from streamfold.providers._closes import CLOSES, Meaning, meaning_of
from streamfold.providers.lyria import MIME_TYPE
from tests.live import broken
from tests.reading import done, raw

SPOKEN = {"serverContent": {"outputTranscription": {"text": "Hi"}}}
END = {"serverContent": {"turnComplete": True}}
CONNECTED = {"event_type": "interaction.connected"}


# -- closes -----------------------------------------------------------------------------------------------------------

MEANINGS: dict[str, tuple[int | None, str, Meaning]] = {
    "none": (None, "", Meaning("transport", True)),
    "unknown": (4000, "", Meaning("provider", False)),
    "a quota": (1011, "You exceeded your current quota", Meaning("provider", False)),
    "a deadline": (1011, "Deadline expired before operation could complete.", Meaning("provider", True)),
    "a fault": (1011, "", Meaning("provider", True)),
    "no such model": (1008, "models/x is not found for API version v1beta", Meaning("provider", False)),
    "not for this": (1008, "is not supported for bidiGenerateContent", Meaning("provider", False)),
    "broken off": (1008, "The operation was aborted", Meaning("provider", True)),
    "a policy": (1008, "policy", Meaning("provider", False)),
    "a reason alone decides nothing": (1012, "quota", Meaning("provider", True)),
}


@pytest.mark.parametrize(("code", "reason", "meaning"), MEANINGS.values(), ids=MEANINGS)
def test_what_a_close_means(code: int | None, reason: str, meaning: Meaning) -> None:
    assert meaning_of(code, reason) == meaning


@pytest.mark.parametrize("code", [None, 3000, 4000, *CLOSES])
def test_a_close_inside_a_turn_is_a_truncation_whatever_its_code(code: int | None) -> None:
    session = LiveSession("gemini-live")
    session.feed(SPOKEN)
    (_, end), (turn, error) = session.close(code, "why")
    assert isinstance(end, BlockEnd)
    assert isinstance(error, ErrorEvent)
    assert (turn, error.kind, error.fatal, error.status) == (0, "truncated", True, code)
    assert (error.retryable, "why" in error.message) == (meaning_of(code, "why").retryable, True)
    assert session.snapshot().outcome == "truncated"
    assert session.close(code) == ([] if code in (None, 1000, 1001) else session.close(code))


@pytest.mark.parametrize("code", CLOSES)
def test_a_close_between_two_turns_is_an_error_where_its_code_says_so(code: int) -> None:
    session = LiveSession("gemini-live")
    for frame in (SPOKEN, END):
        session.feed(frame)
    events = session.close(code)
    assert [(turn, event.type) for turn, event in events] == ([] if code in (1000, 1001) else [(None, "error")])
    for _, error in events:
        assert isinstance(error, ErrorEvent)
        assert (error.kind, error.retryable) == CLOSES[code]
    assert session.snapshot().outcome == "complete"


def test_a_session_goes_on_with_another_connection() -> None:
    session = LiveSession("gemini-live")
    session.feed(SPOKEN)
    session.close(1006)
    session.feed({"setupComplete": {}})
    assert session.feed(SPOKEN)[0] == TurnEvent(1, Start("gemini-live"))
    session.feed(END)
    assert [turn.outcome for turn in session.turns] == ["truncated", "complete"]


# -- the session itself -----------------------------------------------------------------------------------------------


def test_snapshots_are_there_by_number_and_the_last_one_without() -> None:
    session = LiveSession("gemini-live")
    assert (session.snapshot(), list(session.turns)) == (Snapshot(), [])
    for frame in (SPOKEN, END, {"serverContent": {}}, SPOKEN):
        session.feed(frame)
    assert [session.snapshot(number) for number in range(2)] == list(session.turns)
    assert session.snapshot() is session.snapshot(1)
    with pytest.raises(UsageError, match="no turn 2"):
        session.snapshot(2)


def test_old_turns_are_let_go() -> None:
    session = LiveSession("gemini-live", max_turns=2)
    for _ in range(5):
        session.feed(END)
    assert len(session.turns) == 2
    with pytest.raises(UsageError, match="no turn 2"):
        session.snapshot(2)
    assert session.snapshot(3).outcome == "complete"


WRONG: dict[str, dict[str, Any]] = {
    "no provider": {"provider": "nobody"},
    "no setting": {"speed": 1},
    "no bound": {"max_turns": 0},
    "no bound of messages": {"max_frame_bytes": -1},
    "no way of raw": {"raw": "some"},
}


@pytest.mark.parametrize("settings", WRONG.values(), ids=WRONG)
def test_misuse_is_told_when_it_happens(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LiveSession(**{"provider": "gemini-live", **settings})


@pytest.mark.parametrize("message", [None, 7, ["{}"]])
def test_a_message_is_bytes_text_or_an_object(message: Any) -> None:
    session = LiveSession("gemini-live")
    with pytest.raises(UsageError):
        session.feed(message)
    session.sent(message)  # says nothing
    assert session.feed(bytearray(b'{"goAway":{}}')) == [TurnEvent(None, GoAway())]
    assert session.feed(b"  ") == []


def test_a_message_too_large_ends_the_session() -> None:
    session = LiveSession("gemini-live", max_frame_bytes=100)
    session.feed(SPOKEN)
    _, (turn, error) = session.feed("x" * 101)
    assert isinstance(error, ErrorEvent)
    assert (turn, error.kind, error.code, session.ended) == (0, "limit", "frame", True)
    assert session.feed(SPOKEN) == session.close(1006) == []


def test_a_turn_that_opens_too_many_blocks_ends_alone() -> None:
    session = LiveSession("gemini-live", max_blocks=1)
    events = [
        event
        for frame in (
            SPOKEN,
            {"serverContent": {"modelTurn": {"parts": [{"text": "a"}]}}},
            SPOKEN,
            END,
            {"serverContent": {}},
            SPOKEN,
        )
        for event in session.feed(frame)
    ]
    assert [turn.outcome for turn in session.turns] == ["failed", "open"]
    assert session.snapshot(0).error is not None
    assert not broken(events, closed=False)


def test_what_is_late_is_folded_where_that_is_asked_for() -> None:
    call = ToolCallBlock(0, "c1", "f", "{}", state="ready")
    late = (
        ToolCallCancelled(("c1",)),
        Usage(1, 2, 3),
        BlockStart(1, "transcript"),
        TranscriptDelta(1, "late"),
    )
    for asked in (False, True):
        accumulator = StreamAccumulator()
        accumulator.late = asked
        for event in (Start("s"), BlockEnd(0, call), Done("tool_use"), *late, TextDelta(2, "never")):
            accumulator.push(event)
        answer = accumulator.snapshot()
        assert (len(answer.tool_calls), answer.usage, len(answer.blocks)) == (
            (0, Usage(1, 2, 3), 2) if asked else (1, None, 1)
        )
        assert answer.outcome == "complete"


# -- whose it is ------------------------------------------------------------------------------------------------------

GROK = {"type": "session.created", "session": {"id": "s", "model": "grok-voice-latest"}}
NAMELESS = {"type": "session.created", "session": {"id": "s"}}
TOLD: dict[str, tuple[list[Any], str]] = {
    # messages, those the client sent as {"sent": message} -> whose session they are of
    "Gemini Live": ([{"setupComplete": {}}], "gemini-live"),
    "music, by what the client sent": (
        [{"sent": {"setup": {"model": "models/lyria-x"}}}, {"setupComplete": {}}],
        "lyria",
    ),
    "music, by itself": ([{"setupComplete": {}}, {"serverContent": {"audioChunks": [{"data": "AAAB"}]}}], "lyria"),
    "music that was asked for": (
        [{"setupComplete": {}}, {"sent": {"clientContent": {"weightedPrompts": []}}}, {"filteredPrompt": {}}],
        "lyria",
    ),
    "Realtime": ([NAMELESS], "openai-realtime"),
    "Realtime, from the middle": ([{"type": "response.created", "event_id": "e", "response": {}}], "openai-realtime"),
    "Realtime of old": (
        [{"type": "session.created", "session": {"model": "gpt-4o"}}, {"type": "conversation.created"}],
        "openai-realtime",
    ),
    "an error of Realtime": ([{"type": "error", "event_id": "e", "error": {"code": "c"}}], "openai-realtime"),
    "xAI's voice, by its model": ([GROK], "xai-realtime"),
    "xAI's voice, by its pings": ([NAMELESS, {"type": "ping", "timestamp": 1}], "xai-realtime"),
    "Responses": ([{"type": "response.created", "sequence_number": 0, "response": {"id": "r"}}], "openai-responses"),
    "Responses, by the request": ([{"sent": {"type": "response.create", "model": "m"}}], "openai-responses"),
    "Responses, refused": ([{"type": "error", "status": 400, "error": {"code": "c"}}], "openai-responses"),
    "Interactions": ([CONNECTED], "gemini"),
    "speech to text": ([{"type": "transcript.created"}], "xai-stt"),
    "speech to text, whose end was sent": (
        [{"sent": {"type": "audio.done"}}, {"type": "transcript.created"}],
        "xai-stt",
    ),
    "text to speech": ([{"sent": b"no JSON"}, {"type": "audio.delta", "delta": "AAAB"}], "xai-tts"),
    "something else": ([{"new": n} for n in range(9)], "auto"),
    "an answer as over HTTP": ([{"choices": [{"delta": {"content": "Hi"}}]}, {"type": "transcript.done"}], "auto"),
}


@pytest.mark.parametrize(("messages", "provider"), TOLD.values(), ids=TOLD)
def test_a_session_that_nobody_named_is_told_by_its_first_messages(messages: list[Any], provider: str) -> None:
    named, told = LiveSession(provider), LiveSession("auto")
    assert told.provider == "auto"
    events: list[list[TurnEvent]] = [[], []]
    for message in messages:
        for session, said in zip((named, told), events, strict=True):
            if "sent" in message:
                session.sent(message["sent"])
            else:
                said += session.feed(message)
    assert (named.provider, told.provider) == (provider, provider)
    assert events[0] == events[1]
    assert named.close(1006) == told.close(1006)
    assert not broken(events[1] + told.close(), closed=False)


def test_what_the_client_sent_before_it_was_told_counts() -> None:
    session = LiveSession("auto")
    session.sent({"type": "session.update", "session": {"resumption": {"enabled": True}}})
    session.feed(GROK)
    session.feed({"type": "conversation.created", "conversation": {"id": "conv"}})
    assert (session.resume_handle, session.resumable) == ("conv", True)


def test_a_session_like_nobodys_is_unknown() -> None:
    session = LiveSession("auto")
    events = [event for n in range(9) for _, event in session.feed({"new": n})]
    assert [event.type for event in events] == ["start", *["raw"] * 9]
    (_, error) = session.close(1000)[-1]
    assert isinstance(error, ErrorEvent)
    assert error.kind == "truncated"
    assert session.snapshot().surface == "unknown"


def test_a_connection_that_told_nothing_is_a_turn_of_its_own_and_an_empty_one_is_none() -> None:
    session = LiveSession("auto")
    assert [event.type for _, event in session.close(1006)] == ["error"]
    session.feed(SPOKEN)
    assert session.provider == "gemini-live"
    session = LiveSession("auto")
    session.feed({})
    session.close(1000)
    events = session.feed({"choices": [{"delta": {"content": "Hi"}}]})
    assert events[0] == TurnEvent(1, Start("openai-chat"))
    assert [turn.outcome for turn in session.turns] == ["truncated", "open"]


def test_what_is_no_json_is_nobodys() -> None:
    (_, (_, error)) = LiveSession("auto").feed(b"{")
    assert isinstance(error, ErrorEvent)
    assert error.code == "bad_json"


# -- reading without a session object ---------------------------------------------------------------------------------


def test_a_reading_goes_on_after_the_end_of_a_turn() -> None:
    frames = [{"setupComplete": {}}, SPOKEN, END, {"serverContent": {}}, SPOKEN, END]
    for form in (json.dumps, lambda frame: json.dumps(frame).encode(), dict):
        with streamfold.iter_unified([form(frame) for frame in frames], "gemini-live", framing="messages") as stream:
            events = list(stream)
        assert [event.type for event in events if event.type in ("session", "start", "done")] == [
            *("session", "start", "done", "start", "done")
        ]
        assert stream.snapshot().outcome == "complete"
        assert stream.cursor.last_event_id is None
    lines = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    assert [event.type for event in streamfold.iter_unified([lines], "gemini-live", framing="jsonl")] == [
        event.type for event in events
    ]


def test_a_reading_of_nothing_is_truncated_and_so_is_an_open_turn() -> None:
    for frames in ([], [SPOKEN]):
        assert streamfold.fold(frames, "gemini-live").outcome == "truncated"
    assert streamfold.fold([SPOKEN, END], "gemini-live").outcome == "complete"
    decoder = streamfold.StreamDecoder("gemini-live")
    decoder.feed_payload(SPOKEN)
    (_, error) = decoder.close("cut")
    assert isinstance(error, ErrorEvent)
    assert (error.kind, decoder.snapshot().outcome, decoder.ended) == ("transport", "failed", True)


LATE = {"serverContent": {"outputTranscription": {"text": " there"}}}


@pytest.mark.parametrize("how", ["eof", "cut", "fail"])
def test_late_words_are_closed_with_the_stream(how: Any) -> None:
    made = streamfold.StreamDecoder("gemini-live", max_frame_bytes=100)
    for frame in (SPOKEN, END, LATE):
        made.feed_payload(frame)
    events = made.feed("x" * 101) if how == "fail" else made.close(how)  # type: ignore[arg-type]
    assert [event.type for event in events] == ([] if how == "eof" else ["error"]) + ["block_end"]
    assert [block.complete for block in made.snapshot().blocks] == [True, True]


def test_tags_are_looked_for_in_each_turn() -> None:
    thought = {"serverContent": {"modelTurn": {"parts": [{"text": "<think>Hm.</think>Hi."}]}, "turnComplete": True}}
    events = list(
        streamfold.iter_unified([thought, LATE, {"serverContent": {}}, thought], "gemini-live", think_tags=True)
    )
    ends = [event.block for event in events if isinstance(event, BlockEnd)]
    assert [(block.index, block.type) for block in ends] == [
        *((0, "reasoning"), (1, "text"), (2, "transcript")),
        *((0, "reasoning"), (1, "text")),
    ]


def test_a_call_that_is_taken_back_behind_its_turn_is_not_to_be_run() -> None:
    call = {"toolCall": {"functionCalls": [{"id": "c1", "name": "f", "args": {}}]}}
    frames = [call, END, {"toolCallCancellation": {"ids": ["c1"]}}]
    answer = streamfold.fold(frames, "gemini-live")
    assert [block.state for block in answer.withheld_calls] == ["cancelled"]


# -- what a handle holds ----------------------------------------------------------------------------------------------


def handle(name: str, *, resumable: bool = True) -> dict[str, Any]:
    return {"sessionResumptionUpdate": {"newHandle": name, "resumable": resumable}}


NEXT = {"serverContent": {}}
KEPT: dict[str, tuple[list[Any], Any]] = {
    # messages -> handle, whether taking it up loses nothing, turns that it does not hold
    "none came": ([SPOKEN, END], (None, False, ())),
    "between two turns": ([SPOKEN, END, handle("h")], ("h", True, ())),
    "before the first": ([handle("h")], ("h", True, ())),
    "a turn began since": ([handle("h"), SPOKEN], ("h", False, (0,))),
    "a turn ended since": ([handle("h"), SPOKEN, END], ("h", False, (0,))),
    "two turns since": ([handle("h"), SPOKEN, END, NEXT, SPOKEN], ("h", False, (0, 1))),
    "inside a turn": ([SPOKEN, handle("h")], ("h", False, (0,))),
    "inside a turn that has ended": ([SPOKEN, handle("h"), END], ("h", False, (0,))),
    "inside, where one came between": ([handle("g"), SPOKEN, handle("h")], ("g", False, (0,))),
    "not to be taken up now": ([handle("h"), {"sessionResumptionUpdate": {}}], ("h", False, ())),
    "marked so, with a name": ([handle("h", resumable=False)], (None, False, ())),
    "the link dropped inside a turn": ([SPOKEN, END, handle("h"), NEXT, SPOKEN, 1006], ("h", False, (1,))),
    "the link dropped between": ([SPOKEN, END, handle("h"), 1006], ("h", True, ())),
}


@pytest.mark.parametrize(("messages", "kept"), KEPT.values(), ids=KEPT)
def test_what_a_handle_holds_is_known(messages: list[Any], kept: Any) -> None:
    session = LiveSession("gemini-live")
    for message in messages:
        if isinstance(message, int):
            session.close(message)
        else:
            session.feed(message)
    assert (session.resume_handle, session.resumable, session.unsaved) == kept


def test_a_handle_that_names_the_conversation_holds_all_of_it() -> None:
    session = LiveSession("xai-realtime")
    session.feed({"type": "session.updated", "session": {"resumption": {"enabled": True}}})
    session.feed({"type": "conversation.created", "conversation": {"id": "conv"}})
    session.feed({"type": "response.created", "response": {"id": "r"}})
    assert (session.resume_handle, session.unsaved) == ("conv", ())


# -- Lyria ------------------------------------------------------------------------------------------------------------


def music(*chunks: dict[str, Any]) -> dict[str, Any]:
    return {"serverContent": {"audioChunks": list(chunks)}}


def test_music_is_one_turn_that_a_normal_close_ends() -> None:
    session = LiveSession("lyria")
    filtered = {"filteredPrompt": {"text": "in the style of", "filteredReason": "named artist"}}
    warning = {"warning": "mind the bpm"}
    frames = [
        {"setupComplete": {}},
        filtered,
        music({"data": "AAAB"}, {"data": "AAAC", "mimeType": MIME_TYPE, "sourceMetadata": {"clientContent": {}}}),
        warning,
        {"new": 1},
        music({"data": "AAAD", "mimeType": "audio/opus"}, {}),
    ]
    events = [event for frame in frames for event in session.feed(frame)]
    assert events == [
        TurnEvent(None, Session()),
        TurnEvent(None, raw(filtered, name="filteredPrompt")),
        TurnEvent(0, Start("lyria")),
        TurnEvent(0, BlockStart(0, "media")),
        TurnEvent(0, MediaDelta(0, MIME_TYPE, b"\0\0\1")),
        TurnEvent(0, MediaDelta(0, MIME_TYPE, b"\0\0\2")),
        TurnEvent(0, raw(warning, name="warning")),
        TurnEvent(0, raw({"new": 1}, name="new")),
        TurnEvent(0, BlockEnd(0, MediaBlock(0, MIME_TYPE, b"\0\0\1\0\0\2"))),
        TurnEvent(0, BlockStart(1, "media")),
        TurnEvent(0, MediaDelta(1, "audio/opus", b"\0\0\3")),
    ]
    assert session.close(1000) == [
        TurnEvent(0, BlockEnd(1, MediaBlock(1, "audio/opus", b"\0\0\3"))),
        TurnEvent(0, done("end")),
    ]
    assert (session.resume_handle, session.resumable) == (None, False)


@pytest.mark.parametrize("code", [1001, 1006, 1011])
def test_music_that_any_other_close_ends_is_cut(code: int) -> None:
    session = LiveSession("lyria")
    session.feed(music({"data": "AAAB"}))
    session.close(code)
    assert session.snapshot().outcome == "truncated"


def test_an_error_of_lyria_is_one() -> None:
    assert isinstance(LiveSession("lyria").feed({"error": {"code": 400, "message": "no"}})[0].event, ErrorEvent)


# -- one answer a connection ------------------------------------------------------------------------------------------

STEP = {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}
DELTA = {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": "Hi"}}
STOP = {"event_type": "step.stop", "index": 0}


def over(kind: str = "completed", **interaction: Any) -> dict[str, Any]:
    return {"event_type": f"interaction.{kind}", "interaction": {"id": "int_1", **interaction}}


HI = [BlockStart(0, "text"), TextDelta(0, "Hi"), BlockEnd(0, TextBlock(0, "Hi"))]
I = Start("gemini-interactions")  # noqa: E741
NAMED = Start("gemini-interactions", "int_1")

INTERACTIONS: dict[str, tuple[list[Any], list[Any]]] = {
    # messages -> events
    "one event a message": ([CONNECTED, STEP, DELTA, STOP, over()], [I, *HI, NAMED, done("end", "completed")]),
    "several events a message": (
        [CONNECTED, {"events": [STEP, DELTA, STOP]}, {"events": [over()]}],
        [I, *HI, NAMED, done("end", "completed")],
    ),
    "all in one": ([{"events": [STEP, DELTA, STOP, over()]}], [NAMED, *HI, done("end", "completed")]),
    "cancelled": ([STEP, over("cancelled")], [I, NAMED, done("cancelled", "cancelled")]),
    "canceled": ([STEP, over("canceled")], [I, NAMED, done("cancelled", "cancelled")]),
    "none": ([CONNECTED, {"events": []}], [I, raw({"events": []})]),
    "one that nobody knows": (
        [CONNECTED, {"events": [STEP, {"event_type": "new"}, 7]}],
        [I, raw({"events": [STEP, {"event_type": "new"}, 7]})],
    ),
}


@pytest.mark.parametrize(("messages", "events"), INTERACTIONS.values(), ids=INTERACTIONS)
def test_interactions_over_a_websocket(messages: list[Any], events: list[Any]) -> None:
    session = LiveSession("gemini")
    told = [told for message in messages for told in session.feed(json.dumps(message, separators=(",", ":")))]
    assert told == [TurnEvent(0, event) for event in events]
    assert not broken(told, closed=False)


def test_a_server_that_wants_another_connection_goes_away() -> None:
    session = LiveSession("gemini")
    for message in (CONNECTED, STEP):
        session.feed(message)
    assert session.feed({"event_type": "reconnection_required"}) == [TurnEvent(None, GoAway(0))]
    (_, error) = session.close(1000)[-1]
    assert isinstance(error, ErrorEvent)
    assert error.kind == "truncated"


def test_each_connection_is_a_turn_where_each_gives_one_answer() -> None:
    session = LiveSession("gemini")
    for _ in range(2):
        for message in (CONNECTED, STEP, DELTA, STOP, over()):
            session.feed(message)
        assert session.feed(DELTA) == []  # behind the end
        assert session.close(1000) == []
    assert [turn.text for turn in session.turns] == ["Hi", "Hi"]
    assert session.close(1000) == []
    assert [event.type for _, event in session.close(1011)] == ["error"]


def test_a_normal_close_is_the_end_of_an_answer_that_has_no_other() -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    outcomes = []
    for code in (1000, 1006):
        session = LiveSession("gemini")
        session.feed(chunk)
        session.close(code)
        outcomes.append(session.snapshot().outcome)
    assert outcomes == ["complete", "truncated"]


# -- results ----------------------------------------------------------------------------------------------------------


def test_results_go_back_one_by_one() -> None:
    session = LiveSession("gemini-live")
    session.feed({"toolCall": {"functionCalls": [{"id": f"c{n}", "name": "f", "args": {}} for n in range(3)]}})
    session.feed({"toolCallCancellation": {"ids": ["c2"]}})
    turn = session.snapshot()
    assert tool_results(turn, {}) == []
    assert tool_results(turn, {"c1": "07:12"}) == [
        {"toolResponse": {"functionResponses": [{"id": "c1", "name": "f", "response": {"output": "07:12"}}]}}
    ]
    native = ToolResult({"response": {"output": 1}, "scheduling": "SILENT"}, native=True)
    assert tool_results(turn, {"c1": native, "c0": ToolResult("no", is_error=True)}) == [
        {
            "toolResponse": {
                "functionResponses": [
                    {"id": "c0", "name": "f", "response": {"error": "no"}},
                    {"id": "c1", "name": "f", "response": {"output": 1}, "scheduling": "SILENT"},
                ]
            }
        }
    ]
    with pytest.raises(UsageError, match="withheld"):
        tool_results(turn, {"c2": "late"})


def test_what_was_said_can_begin_another_session() -> None:
    session = LiveSession("gemini-live")
    heard = {"serverContent": {"inputTranscription": {"text": "And?"}}}
    for message in (heard, SPOKEN, SPOKEN, END):
        session.feed(message)
    assert session.snapshot().echo() == [
        {"role": "user", "parts": [{"text": "And?"}]},
        {"role": "model", "parts": [{"text": "HiHi"}]},
    ]


def test_a_link_that_drops_while_only_the_user_has_spoken_is_told_by_the_session() -> None:
    """No answer broke off, so the turn ends well; but that the link dropped must not go unsaid."""
    session = LiveSession("gemini-live")
    session.feed({"setupComplete": {}})
    session.feed({"serverContent": {"inputTranscription": {"text": "Find a train"}}})
    *_, done, error = session.close(1006)
    assert (done.turn, done.event.type) == (0, "done")
    assert error.turn is None
    assert isinstance(error.event, ErrorEvent)
    assert (error.event.kind, error.event.status) == ("transport", 1006)


def test_whose_session_it_was_taken_for_takes_no_start_from_a_turn() -> None:
    """The first message is like Realtime's, to which it says nothing; to whom it belonged, it began a turn."""
    part = {"type": "output_text", "text": "Hi"}
    ids = {"event_id": "e1", "response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    call = {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "c1",
        "name": "f",
        "arguments": "{}",
    }
    session = LiveSession("auto")
    told = session.feed({"type": "response.content_part.done", **ids, "part": part})
    told += session.feed({"type": "response.output_item.done", "sequence_number": 5, "output_index": 0, "item": call})
    assert session.provider == "openai-responses"
    assert next(event.type for turn, event in told if turn == 0) == "start"
    accumulator = StreamAccumulator()
    for turn, event in told:
        if turn == 0:
            accumulator.push(event)
    assert accumulator.snapshot() == session.snapshot(0)


def test_what_the_client_sends_may_tell_what_the_server_said() -> None:
    """What that was comes with the next events, and is in the snapshot at once."""
    part = {"type": "output_text", "text": "Hi"}
    ids = {"event_id": "e1", "response_id": "r1", "item_id": "i1", "output_index": 0, "content_index": 0}
    session = LiveSession("auto")
    session.feed({"type": "response.content_part.done", **ids, "part": part})
    session.sent({"type": "response.create", "model": "m", "input": "Hello?"})
    assert (session.provider, session.snapshot().outcome) == ("openai-responses", "open")
    told = [event for turn, event in session.close(1006) if turn == 0]
    assert [told[0].type, told[-1].type] == ["start", "error"]


def test_a_late_word_of_a_turn_that_is_no_longer_kept_brings_none_back() -> None:
    def event(response: str, kind: str, **members: Any) -> dict[str, Any]:
        ids = {"response_id": response, "item_id": f"i{response}", "output_index": 0, "content_index": 0}
        return {"type": f"response.{kind}", "event_id": "e", **ids, **members}

    session = LiveSession("openai-realtime", max_turns=1)
    for response in "ab":
        session.feed({"type": "response.created", "event_id": "e", "response": {"id": response, "output": []}})
        session.feed(event(response, "output_text.delta", delta=f"{response}!"))
        if response == "a":
            session.feed({"type": "response.done", "event_id": "e", "response": {"id": "a", "status": "completed"}})
    late = session.feed(event("a", "output_text.annotation.unheard_of"))
    assert [turn for turn, _ in late] == [0]
    session.feed(event("b", "output_text.delta", delta="?"))
    assert [turn.text for turn in session.turns] == ["b!?"]
