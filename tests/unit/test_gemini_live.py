"""Gemini Live: every member of a message, the end of a turn, what comes late, and what the client sent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from streamfold import (
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
    ReasoningBlock,
    ReasoningDelta,
    Session,
    Start,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallCancelled,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptBlock,
    TranscriptDelta,
    TurnEvent,
)
from streamfold.blocks import JSONText, TranscriptSource
from streamfold.events import StopReason
from streamfold.providers.gemini_live import REASONS, REFUSED_BY, STATUSES_OF_AN_END
from tests.live import broken
from tests.reading import done, json_of, raw, usage

Frame = dict[str, Any]

PCM = "audio/pcm;rate=24000"
SETUP: Frame = {"setupComplete": {}}
READY = Session()
S = Start("gemini-live")
HEARD = {"promptTokenCount": 90, "responseTokenCount": 31, "totalTokenCount": 121}
COUNTS = usage(HEARD, input_tokens=90, output_tokens=31, total_tokens=121)


def content(**members: Any) -> Frame:
    return {"serverContent": members}


def model(*parts: Frame) -> Frame:
    return content(modelTurn={"parts": list(parts)})


def audio(data: str = "AAAB", mime_type: str = PCM) -> Frame:
    return {"inlineData": {"mimeType": mime_type, "data": data}}


def spoken(text: str, **more: Any) -> Frame:
    return content(outputTranscription={"text": text, **more})


def heard(text: str, **more: Any) -> Frame:
    return content(inputTranscription={"text": text, **more})


def call(id_: str | None, name: str = "f", **args: Any) -> Frame:
    made: Frame = {"name": name, "args": args}
    return {"toolCall": {"functionCalls": [made if id_ is None else {"id": id_, **made}]}}


END = content(turnComplete=True)


def told(*frames: Frame, settings: dict[str, Any] | None = None) -> list[TurnEvent]:
    """The events of a session that is set up, each with its turn."""
    session = LiveSession("gemini-live", **(settings or {}))
    session.feed(SETUP)
    events = [event for frame in frames for event in session.feed(json.dumps(frame, separators=(",", ":")))]
    assert not broken(events, closed=False)
    return events


def of(turn: int | None, events: Iterable[Event]) -> list[TurnEvent]:
    return [TurnEvent(turn, event) for event in events]


def words(index: int, text: str, source: TranscriptSource = "model", meta: JSONText | None = None) -> list[Event]:
    """A block of words that came in one piece."""
    block = TranscriptBlock(index, text, source, meta=meta)
    start = BlockStart(index, "transcript", meta=meta)
    return [start, TranscriptDelta(index, text, source), BlockEnd(index, block)]


def opened(index: int, text: str, source: TranscriptSource = "model") -> list[Event]:
    return words(index, text, source)[:2]


def sound(index: int, data: bytes = b"\0\0\1") -> list[Event]:
    return [
        BlockStart(index, "media"),
        MediaDelta(index, PCM, data),
        BlockEnd(index, MediaBlock(index, PCM, data)),
    ]


def called(index: int, id_: str, arguments: str = "{}", name: str = "f", meta: Any = None) -> list[Event]:
    block = ToolCallBlock(index, id_, name, arguments, state="ready", meta=meta)
    deltas = [ToolCallDelta(index, id_, arguments)] if arguments != "{}" else []
    start = ToolCallStart(index, id_, name, meta=meta)
    return [start, *deltas, ToolCallDone(index, id_, name, arguments), BlockEnd(index, block)]


THOUGHT = [BlockStart(0, "reasoning"), ReasoningDelta(0, "Hm."), BlockEnd(0, ReasoningBlock(0, "Hm.", ("Hm.",)))]
SAID = [BlockStart(0, "text"), TextDelta(0, "Hi."), BlockEnd(0, TextBlock(0, "Hi."))]

ONE_TURN: dict[str, tuple[list[Frame], list[Event]]] = {
    # frames -> the events of turn 0, which END ends
    "text": ([model({"text": "Hi."})], SAID),
    "a thought": ([model({"text": "Hm.", "thought": True})], THOUGHT),
    "a thought, then text": (
        [model({"text": "Hm.", "thought": True}, {"text": "Hi."})],
        [*THOUGHT, BlockStart(1, "text"), TextDelta(1, "Hi."), BlockEnd(1, TextBlock(1, "Hi."))],
    ),
    "audio": ([model(audio())], sound(0)),
    "audio of another type is another block": (
        [model(audio(), audio("AAAB", "audio/opus"))],
        [
            *sound(0),
            BlockStart(1, "media"),
            MediaDelta(1, "audio/opus", b"\0\0\1"),
            BlockEnd(1, MediaBlock(1, "audio/opus", b"\0\0\1")),
        ],
    ),
    "words": ([spoken("It is")], words(0, "It is")),
    "words in pieces": (
        [spoken("It"), spoken(" is")],
        [*opened(0, "It"), TranscriptDelta(0, " is"), BlockEnd(0, TranscriptBlock(0, "It is"))],
    ),
    "what the user said": ([heard("Hello?")], words(0, "Hello?", "user")),
    "words in a language": (
        [spoken("El", languageCode="es"), spoken(" zorro", languageCode="es")],
        [
            words(0, "El", meta=json_of({"languageCode": "es"}))[0],
            TranscriptDelta(0, "El"),
            TranscriptDelta(0, " zorro"),
            BlockEnd(0, TranscriptBlock(0, "El zorro", meta=json_of({"languageCode": "es"}))),
        ],
    ),
    "another language is another block": (
        [heard("a", languageCode="en"), heard("b", languageCode="es")],
        [
            *words(0, "a", "user", json_of({"languageCode": "en"})),
            *words(1, "b", "user", json_of({"languageCode": "es"})),
        ],
    ),
    "words that are finished": (
        [spoken("Hi", finished=True)],
        [
            BlockStart(0, "transcript"),
            TranscriptDelta(0, "Hi", final=True),
            BlockEnd(0, TranscriptBlock(0, "Hi")),
        ],
    ),
    "finished without a word": (
        [spoken("Hi"), content(outputTranscription={"finished": True})],
        words(0, "Hi"),
    ),
    "a call": ([call("c1", to="Oslo"), model(audio())], [*called(0, "c1", '{"to":"Oslo"}'), *sound(1)]),
    "a call without arguments": ([call("c1"), model(audio())], [*called(0, "c1"), *sound(1)]),
    "a call among the parts": (
        [model({"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}), model(audio())],
        [*called(0, "c1", '{"a":1}'), *sound(1)],
    ),
}


@pytest.mark.parametrize(("frames", "events"), ONE_TURN.values(), ids=ONE_TURN)
def test_a_turn(frames: list[Frame], events: list[Event]) -> None:
    assert told(*frames, END) == of(0, [S, *events, done("end")])


def test_audio_and_words_of_one_message_are_blocks_side_by_side() -> None:
    both = content(modelTurn={"parts": [audio("AAABAAIA")]}, outputTranscription={"text": "It is"})
    assert told(both, spoken(" foggy"), model(audio())) == of(
        0,
        [
            S,
            BlockStart(0, "media"),
            MediaDelta(0, PCM, b"\0\0\1\0\2\0"),
            *opened(1, "It is"),
            TranscriptDelta(1, " foggy"),
            MediaDelta(0, PCM, b"\0\0\1"),
        ],
    )


RAW: dict[str, Frame] = {
    # name -> a message that has no meaning of its own
    "executableCode": model({"executableCode": {"code": "1"}}),
    "codeExecutionResult": model({"codeExecutionResult": {"output": "1"}}),
    "thoughtSignature": model({"thoughtSignature": "abc="}),
    "interimInputTranscription": content(interimInputTranscription={"text": "Hel"}),
    "generationComplete": content(generationComplete=True),
    "groundingMetadata": content(groundingMetadata={"a": 1}),
    "urlContextMetadata": content(urlContextMetadata={}),
    "waitingForInput": content(waitingForInput=True),
    "serverContent": {"serverContent": {}},
    "voiceActivity": {"voiceActivity": {"voiceActivityType": "ACTIVITY_START", "audioOffset": "1s"}},
    "voiceActivityDetectionSignal": {"voiceActivityDetectionSignal": {"vadSignalType": "VAD_SIGNAL_TYPE_SOS"}},
    "toolCallCancellation": {"toolCallCancellation": {"ids": ["never", "seen"]}},
    "somethingNew": {"somethingNew": 1},
    "message": {},
    "usageMetadata": {"usageMetadata": {"promptTokenCount": 3}},  # of no turn
}


@pytest.mark.parametrize("name", RAW)
def test_what_has_no_meaning_is_raw_by_its_name(name: str) -> None:
    assert told(RAW[name]) == of(None, [raw(RAW[name], name=name)])
    if name != "usageMetadata":
        assert told(spoken("Hi"), RAW[name])[3:] == of(0, [raw(RAW[name], name=name)])  # of the turn that is open


def test_only_unknown_members_are_raw_where_only_those_are_asked_for() -> None:
    settings = {"raw": "unknown"}
    assert told(RAW["generationComplete"], settings=settings) == []
    both = {**RAW["generationComplete"], "somethingNew": 1}
    assert [type(event) for _, event in told(both, settings=settings)] == [Raw]


SESSIONS: dict[str, tuple[Frame, list[Event]]] = {
    "set up": ({"setupComplete": {"sessionId": "s-1"}}, [Session("s-1")]),
    "a handle": (
        {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True}},
        [Session(None, True, "h")],
    ),
    "no handle now": ({"sessionResumptionUpdate": {}}, [Session()]),
    "how far the state goes": (
        {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True, "lastConsumedClientMessageIndex": "7"}},
        [
            Session(None, True, "h"),
            raw(
                {
                    "sessionResumptionUpdate": {
                        "newHandle": "h",
                        "resumable": True,
                        "lastConsumedClientMessageIndex": "7",
                    }
                },
                name="lastConsumedClientMessageIndex",
            ),
        ],
    ),
    "going away": ({"goAway": {"timeLeft": "9.500s"}}, [GoAway(9500)]),
    "in whole seconds": ({"goAway": {"timeLeft": "50s"}}, [GoAway(50_000)]),
    "at once": ({"goAway": {"timeLeft": "0s"}}, [GoAway(0)]),
    "nobody says when": ({"goAway": {}}, [GoAway()]),
    "in no duration": ({"goAway": {"timeLeft": "soon"}}, [GoAway()]),
}


@pytest.mark.parametrize(("frame", "events"), SESSIONS.values(), ids=SESSIONS)
def test_what_is_the_sessions_is_of_no_turn(frame: Frame, events: list[Event]) -> None:
    assert told(frame) == of(None, events)
    if "setupComplete" not in frame:  # which ends it
        kept = told(spoken("Hi"), frame)[3:]
        assert [event for event in kept if not isinstance(event.event, Raw)] == of(
            None, [event for event in events if not isinstance(event, Raw)]
        )


# -- the end of a turn ------------------------------------------------------------------------------------------------

ENDS: dict[str, tuple[Frame, StopReason]] = {
    **{
        status or "no status": (content(turnComplete=True, interactionStatus=status), "end")
        for status in sorted(STATUSES_OF_AN_END)
    },
    **{
        word or "no word": (content(turnComplete=True, turnCompleteReason=word), reason)
        for word, reason in REASONS.items()
    },
    "PROHIBITED_INPUT_CONTENT": (content(turnComplete=True, turnCompleteReason="PROHIBITED_INPUT_CONTENT"), "refusal"),
    "GENERATED_AUDIO_SAFETY": (content(turnComplete=True, turnCompleteReason="GENERATED_AUDIO_SAFETY"), "refusal"),
    "BLOCKLIST": (content(turnComplete=True, turnCompleteReason="BLOCKLIST"), "refusal"),
    "MALFORMED_FUNCTION_CALL": (content(turnComplete=True, turnCompleteReason="MALFORMED_FUNCTION_CALL"), "other"),
    "MAX_REGENERATION_REACHED": (content(turnComplete=True, turnCompleteReason="MAX_REGENERATION_REACHED"), "other"),
}


@pytest.mark.parametrize(("end", "reason"), ENDS.values(), ids=ENDS)
def test_why_a_turn_ended(end: Frame, reason: StopReason) -> None:
    word = end["serverContent"].get("turnCompleteReason") or None
    assert told(spoken("Hi"), end) == of(0, [S, *words(0, "Hi"), done(reason, word)])


def test_a_turn_goes_on_while_the_model_works_in_the_background() -> None:
    pause = content(turnComplete=True, interactionStatus="IN_PROGRESS")
    events = told(spoken("Let me look."), pause, spoken("Found it."), END)
    boundary = raw(pause, name="serverContent")
    assert events == of(0, [S, *words(0, "Let me look."), boundary, *words(1, "Found it."), done("end")])


def test_usage_stands_before_the_end_and_counts_of_two_spellings() -> None:
    assert told(spoken("Hi"), {**END, "usageMetadata": HEARD})[3:] == of(
        0, [COUNTS, BlockEnd(0, TranscriptBlock(0, "Hi")), done("end")]
    )
    vertex = {
        "promptTokenCount": 12,
        "candidatesTokenCount": 3,
        "totalTokenCount": 15,
        "thoughtsTokenCount": 4,
        "cachedContentTokenCount": 2,
        "toolUsePromptTokenCount": 5,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 12}, {"modality": "IMAGE", "tokenCount": 6}],
        "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 3}, {"modality": "AUDIO"}],
    }
    counted = usage(
        vertex,
        input_tokens=17,
        output_tokens=7,
        total_tokens=15,
        reasoning_tokens=4,
        cache_read_tokens=2,
        input_image_tokens=6,
    )
    assert TurnEvent(0, counted) in told(spoken("Hi"), {**END, "usageMetadata": vertex})


def test_totals_that_lack_the_total_are_added_to_those_before() -> None:
    more = {"thoughtsTokenCount": 9}
    merged = {**HEARD, **more}
    totals = usage(merged, input_tokens=90, output_tokens=40, total_tokens=121, reasoning_tokens=9)
    events = told(spoken("Hi"), {"usageMetadata": HEARD}, {"usageMetadata": more})
    assert events[3:] == of(0, [COUNTS, totals])


def test_words_of_a_message_that_ends_a_turn_are_of_that_turn() -> None:
    both = content(outputTranscription={"text": "Hi"}, turnComplete=True)
    one = [S, *words(0, "Hi"), done("end")]
    assert told(both, both) == [*of(0, one), *of(1, one)]


def test_an_empty_turn_is_one() -> None:
    assert told(END) == of(0, [S, done("end")])
    counted = {**END, "usageMetadata": HEARD}
    assert told(counted, counted) == [*of(0, [S, COUNTS, done("end")]), *of(1, [S, COUNTS, done("end")])]


def test_indexes_begin_anew_with_each_turn() -> None:
    assert told(heard("A"), spoken("B"), END, heard("C"), END) == [
        *of(0, [S, *opened(0, "A", "user"), *opened(1, "B")]),
        *of(0, [BlockEnd(0, TranscriptBlock(0, "A", "user")), BlockEnd(1, TranscriptBlock(1, "B")), done("end")]),
        *of(1, [S, *words(0, "C", "user"), done("end")]),
    ]


# -- interruption and calls -------------------------------------------------------------------------------------------

INTERRUPTED = content(interrupted=True)


def test_an_interruption_cuts_what_the_model_was_saying() -> None:
    events = told(heard("A"), spoken("One, two"), INTERRUPTED, END)
    cut = BlockEnd(1, TranscriptBlock(1, "One, two", complete=False))
    said = BlockEnd(0, TranscriptBlock(0, "A", "user"))
    assert events == of(
        0, [S, *opened(0, "A", "user"), *opened(1, "One, two"), cut, Interrupted(), said, done("cancelled")]
    )


def test_an_interruption_of_nothing_is_raw_and_one_behind_the_end_is_of_the_turn() -> None:
    assert told(INTERRUPTED) == of(None, [raw(INTERRUPTED, name="serverContent")])
    assert told(spoken("Hi"), END, INTERRUPTED)[-1] == TurnEvent(0, Interrupted())


def test_calls_that_are_taken_back_are_so_in_their_turn() -> None:
    session = LiveSession("gemini-live")
    frames = [call("c1"), call("c2"), END, spoken("Hi", finished=True), {"toolCallCancellation": {"ids": ["c2", "x"]}}]
    events = [told for frame in frames for told in session.feed(frame)]
    assert TurnEvent(0, done("tool_use")) in events
    assert events[-2:] == [
        TurnEvent(0, ToolCallCancelled(("c2",))),
        TurnEvent(None, raw(frames[-1], name="toolCallCancellation")),
    ]
    turn = session.snapshot(0)
    assert [call.id for call in turn.tool_calls] == ["c1"]
    assert [(call.id, call.state) for call in turn.withheld_calls] == [("c2", "cancelled")]
    assert session.feed({"toolCallCancellation": {"ids": ["c2"]}})[0].event.type == "raw"  # once is enough


WAITING: dict[str, tuple[list[Frame], StopReason]] = {
    "nobody answered": ([call("c1"), END], "tool_use"),
    "the model goes on": ([call("c1"), model(audio()), END], "end"),
    "words may be of what it said before": ([call("c1"), spoken("Let me look."), END], "tool_use"),
    "taken back": ([call("c1"), {"toolCallCancellation": {"ids": ["c1"]}}, END], "end"),
    "one of two taken back": ([call("c1"), call("c2"), {"toolCallCancellation": {"ids": ["c1"]}}, END], "tool_use"),
    "interrupted": ([call("c1"), INTERRUPTED, END], "cancelled"),
}


@pytest.mark.parametrize(("frames", "reason"), WAITING.values(), ids=WAITING)
def test_a_turn_whose_calls_wait_is_a_tool_use(frames: list[Frame], reason: StopReason) -> None:
    assert told(*frames)[-1] == TurnEvent(0, done(reason))


RESULT = {"functionResponses": [{"id": "c1", "name": "f", "response": {}}]}
SENT: dict[str, tuple[Frame, StopReason]] = {
    "its result": ({"toolResponse": RESULT}, "end"),
    "its result in the client's spelling": ({"tool_response": RESULT}, "end"),
    "another result": ({"toolResponse": {"functionResponses": [{"id": "c9"}]}}, "tool_use"),
    "something else": ({"realtimeInput": {"text": "?"}}, "tool_use"),
    "nothing that can be read": ({"toolResponse": 7}, "tool_use"),
}


@pytest.mark.parametrize(("sent", "reason"), SENT.values(), ids=SENT)
def test_who_tells_what_is_sent_learns_whether_calls_wait(sent: Frame, reason: StopReason) -> None:
    session = LiveSession("gemini-live")
    session.feed(call("c1"))
    session.sent(json.dumps(sent))
    assert session.feed(END)[-1] == TurnEvent(0, done(reason))


def test_ids_that_are_made_up_are_of_one_call_each() -> None:
    events = told(call(None), END, call(None), END)
    ids = [told.event.id for told in events if isinstance(told.event, ToolCallStart)]
    assert len(set(ids)) == 2
    assert told(call(None), END, call(None), END) == events


def test_a_call_in_pieces_of_paths_is_not_to_be_run() -> None:
    pieces = {"id": "c1", "name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}
    events = [event for _, event in told({"toolCall": {"functionCalls": [pieces]}})]
    assert [event.valid for event in events if isinstance(event, ToolCallDone)] == [False]
    assert isinstance(events[-1], Raw)


# -- what comes late --------------------------------------------------------------------------------------------------


def test_words_that_come_after_the_end_are_of_the_turn_before() -> None:
    events = told(model(audio()), spoken("One,"), END, spoken(" two,"), spoken(" three."), model(audio()))
    late = [*opened(2, " two,"), TranscriptDelta(2, " three.")]
    done_before = [BlockEnd(0, MediaBlock(0, PCM, b"\0\0\1")), BlockEnd(1, TranscriptBlock(1, "One,")), done("end")]
    assert events[5:] == [
        *of(0, [*done_before, *late, BlockEnd(2, TranscriptBlock(2, " two, three."))]),
        *of(1, [S, BlockStart(0, "media"), MediaDelta(0, PCM, b"\0\0\1")]),
    ]


NEXT: dict[str, list[Frame]] = {
    # what shows, behind the end of a turn, that the model's next words are of another one
    "the user speaks": [heard("And?")],
    "the user has spoken": [{"voiceActivity": {"voiceActivityType": "ACTIVITY_END", "audioOffset": "4s"}}],
    "newer models begin with an empty message": [{"serverContent": {}}],
    "a new connection": [SETUP],
    "content": [model(audio())],
    "a call": [call("c1")],
}


@pytest.mark.parametrize("frames", NEXT.values(), ids=NEXT)
def test_what_shows_that_the_next_turn_has_begun(frames: list[Frame]) -> None:
    events = told(spoken("One."), END, *frames, spoken("Two."))
    assert events[-1] == TurnEvent(1, TranscriptDelta(events[-1].event.index, "Two."))  # type: ignore[union-attr]


def test_words_may_still_be_late_when_the_user_begins_to_speak() -> None:
    """What the model said is often written down only then."""
    began = {"voiceActivity": {"voiceActivityType": "ACTIVITY_START", "audioOffset": "3s"}}
    assert told(spoken("One,"), END, began, spoken(" two."))[-1].turn == 0


def test_words_that_were_finished_have_no_late_ones() -> None:
    assert told(spoken("One.", finished=True), END, spoken("Two."))[-1].turn == 1


@pytest.mark.parametrize(
    "sent",
    [
        {"clientContent": {"turns": [], "turnComplete": True}},
        {"client_content": {"turnComplete": True}},
        {"realtimeInput": {"text": "And?"}},
        {"realtimeInput": {"activityEnd": {}}},
        {"toolResponse": RESULT},
    ],
    ids=lambda sent: json.dumps(sent)[:40],
)
def test_what_the_client_sent_begins_the_next_turn(sent: Frame) -> None:
    session = LiveSession("gemini-live")
    for frame in (spoken("One."), END):
        session.feed(frame)
    session.sent({"realtimeInput": {"audio": {"data": "AAAB"}}})  # flows all the time
    assert session.feed(spoken(" late"))[0].turn == 0
    session.sent(sent)
    assert session.feed(spoken("Two."))[-1].turn == 1
    assert [turn.outcome for turn in session.turns] == ["complete", "open"]


def test_usage_that_comes_late_is_of_the_turn_before() -> None:
    session = LiveSession("gemini-live")
    for frame in (spoken("One."), END):
        session.feed(frame)
    assert session.feed({"usageMetadata": HEARD}) == of(0, [COUNTS])
    assert session.snapshot(0).usage == COUNTS
    assert session.snapshot(0).outcome == "complete"


def test_late_words_are_in_the_snapshot_of_their_turn() -> None:
    session = LiveSession("gemini-live")
    for frame in (spoken("One,"), END, spoken(" two.")):
        session.feed(frame)
    blocks = session.snapshot(0).blocks
    assert [(block.text, block.complete) for block in blocks if isinstance(block, TranscriptBlock)] == [
        ("One,", True),
        (" two.", False),
    ]
    session.close(1000)
    assert [block.complete for block in session.snapshot(0).blocks] == [True, True]


# -- taking it up -----------------------------------------------------------------------------------------------------


def kept() -> LiveSession:
    """A session with a handle, a turn that it holds, one that it does not, and a link that dropped."""
    session = LiveSession("gemini-live")
    for frame in (SETUP, spoken("One."), END, {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True}}):
        session.feed(frame)
    for frame in ({"serverContent": {}}, spoken("Two.")):
        session.feed(frame)
    session.close(1006)
    return session


def asks(handle: str, *, spelling: str = "sessionResumption") -> Frame:
    return {"setup": {"model": "m", spelling: {"handle": handle}}}


@pytest.mark.parametrize("spelling", ["sessionResumption", "session_resumption"])
@pytest.mark.parametrize("code", sorted(REFUSED_BY))
def test_a_handle_that_is_refused_is_given_up_and_all_that_was_said_is_unsaved(code: int, spelling: str) -> None:
    session = kept()
    assert (session.resume_handle, session.unsaved) == ("h", (1,))
    session.sent(asks("h", spelling=spelling))
    lost, told = session.close(code, "no such handle")
    assert isinstance(lost.event, ErrorEvent)
    assert (lost.turn, lost.event.code, lost.event.status, lost.event.fatal) == (None, "session_lost", code, False)
    assert "no such handle" in lost.event.message
    assert told == TurnEvent(None, Session(None, False, None))
    assert (session.resume_handle, session.resumable, session.unsaved) == (None, False, (0, 1))
    for frame in (SETUP, spoken("Three."), END, {"sessionResumptionUpdate": {"newHandle": "g", "resumable": True}}):
        session.feed(frame)
    assert (session.resume_handle, session.resumable, session.unsaved) == ("g", True, (0, 1))
    session.feed({"serverContent": {}})
    session.feed(spoken("Four."))
    assert (session.resumable, session.unsaved) == (False, (0, 1, 3))


def test_a_close_that_refuses_no_handle_of_the_sessions_own_is_an_error_like_any_other() -> None:
    for code, frames in ((1006, []), (1007, [SETUP]), (1012, [])):
        session = kept()
        session.sent(asks("h"))
        for frame in frames:
            session.feed(frame)
        (error,) = [event for _, event in session.close(code) if isinstance(event, ErrorEvent)]
        assert (error.code, error.fatal, session.resume_handle) == (str(code), True, "h")
    for first in (kept(), LiveSession("gemini-live")):
        first.sent(asks("another one"))
        (error,) = [event for _, event in first.close(1007) if isinstance(event, ErrorEvent)]
        assert error.fatal


# -- faults and connections -------------------------------------------------------------------------------------------

FAULT = {"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}


def test_an_error_ends_the_turn_that_is_open_and_no_session() -> None:
    events = told(spoken("Hi"), FAULT, spoken("Again"), END)
    error = events[4].event
    assert isinstance(error, ErrorEvent)
    assert (error.kind, error.code, error.status, error.retryable) == ("provider", "UNAVAILABLE", 503, True)
    assert [turn for turn, _ in events] == [0] * 5 + [1] * 5
    assert told(FAULT)[0].turn is None
    assert isinstance(told({"code": 7, "message": "no"})[0].event, ErrorEvent)


def test_a_message_that_is_no_json_ends_the_turn_and_nothing_more_of_it_counts() -> None:
    session = LiveSession("gemini-live")
    events = session.feed(spoken("Hi")) + session.feed('{"serverContent":')
    assert isinstance(events[-1].event, ErrorEvent)
    assert (events[-1].turn, events[-1].event.code) == (0, "bad_json")
    for frame in (spoken(" there"), model({"text": "x"})):
        events += (more := session.feed(frame))
        assert [(told.turn, told.event.type) for told in more] == [(None, "raw")]
    assert [told.event.type for told in session.feed(END)] == ["raw"]
    assert session.feed(spoken("New"))[0] == TurnEvent(1, S)
    assert not broken(events, closed=False)


def test_a_turn_that_was_open_on_another_connection_was_called_off() -> None:
    events = told(spoken("One,"), SETUP, spoken("Anew"))
    assert events[3:5] == of(0, [BlockEnd(0, TranscriptBlock(0, "One,", complete=False)), done("cancelled")])
    assert events[5:] == [TurnEvent(None, READY), *of(1, [S, *opened(0, "Anew")])]


def test_speech_that_nobody_answered_is_no_answer_that_broke_off() -> None:
    session = LiveSession("gemini-live")
    session.feed(heard("Bye!"))
    assert session.close(1000) == of(0, [BlockEnd(0, TranscriptBlock(0, "Bye!", "user")), done("cancelled")])
    session.feed(heard("Hello?"))
    session.feed(spoken("He"))
    assert [told.event.type for told in session.close(1000)] == ["block_end", "block_end", "error"]


HANDLES: dict[str, tuple[list[Frame], str | None, bool]] = {
    "none": ([], None, False),
    "between two turns": ([{"sessionResumptionUpdate": {"newHandle": "a", "resumable": True}}], "a", True),
    "of a session that cannot be taken up": (
        [{"sessionResumptionUpdate": {"newHandle": "a", "resumable": False}}],
        None,
        False,
    ),
    "an empty update loses nothing": (
        [{"sessionResumptionUpdate": {"newHandle": "a", "resumable": True}}, {"sessionResumptionUpdate": {}}],
        "a",
        False,
    ),
    "inside a turn, and no other": (
        [spoken("Hi"), {"sessionResumptionUpdate": {"newHandle": "a", "resumable": True}}],
        "a",
        False,
    ),
    "one between two turns is worth more than one inside": (
        [
            {"sessionResumptionUpdate": {"newHandle": "a", "resumable": True}},
            spoken("Hi"),
            {"sessionResumptionUpdate": {"newHandle": "b", "resumable": True}},
        ],
        "a",
        False,
    ),
    "the next one between two turns counts": (
        [
            {"sessionResumptionUpdate": {"newHandle": "a", "resumable": True}},
            spoken("Hi"),
            END,
            {"sessionResumptionUpdate": {"newHandle": "b", "resumable": True}},
        ],
        "b",
        True,
    ),
}


@pytest.mark.parametrize(("frames", "handle", "resumable"), HANDLES.values(), ids=HANDLES)
def test_by_which_handle_a_session_can_be_taken_up(frames: list[Frame], handle: str | None, resumable: bool) -> None:
    session = LiveSession("gemini-live")
    for frame in frames:
        session.feed(frame)
    assert (session.resume_handle, session.resumable) == (handle, resumable)
