"""xAI's speech over WebSockets: what was heard, utterance by utterance, and what is spoken."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    Event,
    Interrupted,
    LiveSession,
    MediaBlock,
    MediaDelta,
    Start,
    TranscriptBlock,
    TranscriptDelta,
    TurnEvent,
)
from tests.live import broken
from tests.reading import done, raw

Frame = dict[str, Any]
CREATED: Frame = {"type": "transcript.created"}


def heard(text: str, *, final: bool = True, over: bool = False) -> Frame:
    return {"type": "transcript.partial", "text": text, "is_final": final, "speech_final": over}


def written(text: str = "") -> Frame:
    return {"type": "transcript.done", "text": text, "duration": 1.5}


def told(provider: str, *frames: Frame) -> tuple[LiveSession, list[TurnEvent]]:
    session = LiveSession(provider)
    events = [told for frame in frames for told in session.feed(frame)]
    assert not broken(events, closed=False)
    return session, events


def delta(text: str, *, final: bool = False, replaces: int = 0, index: int = 0) -> TranscriptDelta:
    return TranscriptDelta(index, text, "user", final, replaces)


def ends(text: str, index: int = 0) -> BlockEnd:
    return BlockEnd(index, TranscriptBlock(index, text, "user"))


OPENS = BlockStart(0, "transcript")
INTERIM = heard("tu", final=False)
HEARD: dict[str, tuple[list[Frame], list[Event]]] = {
    # frames -> events of the turn between its start and its end
    "what is not final": ([INTERIM], [raw(INTERIM)]),
    "a chunk": ([heard("turn on")], [OPENS, delta("turn on"), ends("turn on")]),
    "an utterance repeats its chunks": (
        [heard("turn on"), heard("turn on the lights", over=True)],
        [OPENS, delta("turn on"), delta(" the lights", final=True), ends("turn on the lights")],
    ),
    "an utterance revises its chunks": (
        [heard("turn an"), heard("turn on", over=True)],
        [OPENS, delta("turn an"), delta("on", final=True, replaces=2), ends("turn on")],
    ),
    "chunks are words apart": (
        [heard("turn on"), heard("the lights"), heard("turn on the lights", over=True)],
        [OPENS, delta("turn on"), delta(" the lights"), ends("turn on the lights")],
    ),
    "chunks that grow": (
        [heard("turn on"), heard("turn on the")],
        [OPENS, delta("turn on"), delta(" the"), ends("turn on the")],
    ),
    "an utterance in one piece": (
        [heard("turn on", over=True)],
        [OPENS, delta("turn on", final=True), ends("turn on")],
    ),
    "two utterances": (
        [heard("one", over=True), heard("two", over=True)],
        [
            OPENS,
            delta("one", final=True),
            ends("one"),
            BlockStart(1, "transcript"),
            delta("two", final=True, index=1),
            ends("two", 1),
        ],
    ),
    "an end of an utterance without words": ([heard("one"), heard("", over=True)], [OPENS, delta("one"), ends("one")]),
    "an end of nothing": ([heard("", over=True)], [raw(heard("", over=True))]),
}


@pytest.mark.parametrize(("frames", "events"), HEARD.values(), ids=HEARD)
def test_what_was_heard(frames: list[Frame], events: list[Event]) -> None:
    _, found = told("xai-stt", *frames, written())
    assert found == [TurnEvent(0, event) for event in (Start("xai-stt"), *events, done("end"))]


def test_what_was_heard_may_be_there_only_at_the_end() -> None:
    session, _ = told("xai-stt", CREATED, INTERIM, written("turn on"))
    assert session.turns[0].blocks == (TranscriptBlock(0, "turn on", "user"),)
    session, _ = told("xai-stt", heard("one", over=True), written("one"))
    assert session.turns[0].blocks == (TranscriptBlock(0, "one", "user"),)


def test_the_next_words_are_another_turn() -> None:
    session, _ = told("xai-stt", heard("one", over=True), written(), heard("two"), written("two."))
    assert [turn.blocks for turn in session.turns] == [
        (TranscriptBlock(0, "one", "user"),),
        (TranscriptBlock(0, "two.", "user"),),
    ]


@pytest.mark.parametrize("frames", [[INTERIM], [heard("one")], [heard("one", over=True)]])
def test_a_close_before_the_end_is_a_truncation(frames: list[Frame]) -> None:
    session, _ = told("xai-stt", CREATED, *frames)
    last = session.close(1000)[-1]
    assert isinstance(last.event, ErrorEvent)
    assert (last.turn, last.event.kind) == (0, "truncated")
    session, events = told("xai-stt", CREATED)
    assert events == [TurnEvent(None, raw(CREATED))]
    assert session.close(1000) == []


def audio(data: str = "AAEC", **more: Any) -> Frame:
    return {"type": "audio.delta", "delta": data, **more}


OVER: Frame = {"type": "audio.done"}
CLEAR: Frame = {"type": "audio.clear"}
SOUND = MediaBlock(0, None, b"\0\1\2")


def test_each_utterance_is_a_turn_of_its_own() -> None:
    _, events = told("xai-tts", audio(), OVER, audio(), audio(), OVER)
    assert events[:5] == [
        TurnEvent(0, event)
        for event in (
            Start("xai-tts"),
            BlockStart(0, "media"),
            MediaDelta(0, None, b"\0\1\2"),
            BlockEnd(0, SOUND),
            done("end"),
        )
    ]
    assert events[-2:] == [TurnEvent(1, BlockEnd(0, MediaBlock(0, None, b"\0\1\2" * 2))), TurnEvent(1, done("end"))]


def test_audio_that_is_dropped_is_an_interruption() -> None:
    session, events = told("xai-tts", audio(), CLEAR, CLEAR, audio(), OVER)
    assert [event.event for event in events if event.turn == 0][-2:] == [Interrupted(), done("cancelled")]
    assert [event for event in events if event.turn is None] == [TurnEvent(None, raw(CLEAR))]
    assert [turn.blocks[0].complete for turn in session.turns] == [False, True]


def test_times_of_words_come_without_audio() -> None:
    frame = audio("", words=[{"text": "Hello", "start": 0.1}])
    _, events = told("xai-tts", frame)
    assert events == [TurnEvent(None, raw(frame))]


@pytest.mark.parametrize(("provider", "frame"), [("xai-stt", heard("x")), ("xai-tts", audio())])
def test_an_error_ends_the_turn_that_is_open_and_no_session(provider: str, frame: Frame) -> None:
    error = {"type": "error", "message": "no such voice"}
    session, _ = told(provider, frame, error, frame)
    assert [turn.outcome for turn in session.turns] == ["failed", "open"]
    assert session.turns[0].error is not None
    assert session.turns[0].error.message == "no such voice"
    _, events = told(provider, error)
    assert [(event.turn, event.event.type) for event in events] == [(None, "error")]


@pytest.mark.parametrize("provider", ["xai-stt", "xai-tts"])
def test_what_is_unknown_is_raw(provider: str) -> None:
    frame = {"type": "new"}
    assert told(provider, frame)[1] == [TurnEvent(None, raw(frame))]
