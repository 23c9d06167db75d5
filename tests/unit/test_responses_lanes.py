"""Responses over a WebSocket: one response after another, lanes beside each other, steering, errors, no cursor."""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamfold
from streamfold import (
    Cursor,
    ErrorEvent,
    LiveSession,
    OpenAIResponsesNormalizer,
    Start,
    StreamDecoder,
    TextDelta,
    TurnEvent,
    tool_results,
)
from tests.live import broken
from tests.reading import alike, raw

Frame = dict[str, Any]
PROVIDERS = ("openai-responses", "xai")


def created(id_: str, lane: str | None = None) -> Frame:
    return in_lane({"type": "response.created", "sequence_number": 0, "response": {"id": id_}}, lane)


def text(piece: str, lane: str | None = None, number: int = 1) -> Frame:
    frame: Frame = {"type": "response.output_text.delta", "sequence_number": number, "output_index": 0}
    return in_lane({**frame, "item_id": "m1", "content_index": 0, "delta": piece}, lane)


def over(id_: str, lane: str | None = None, status: str = "completed", number: int = 2, **more: Any) -> Frame:
    response = {"id": id_, "status": status, **more}
    return in_lane({"type": f"response.{status}", "sequence_number": number, "response": response}, lane)


def refused(code: str, lane: str | None = None, **more: Any) -> Frame:
    error = {"type": "invalid_request_error", "code": code, "message": "no"}
    return in_lane({"type": "error", "status": 400, "error": error, **more}, lane)


def in_lane(frame: Frame, lane: str | None) -> Frame:
    return frame if lane is None else {**frame, "stream_id": lane}


def session_of(*frames: Any, provider: str = "openai-responses") -> tuple[LiveSession, list[TurnEvent]]:
    session = LiveSession(provider)
    events = [told for frame in frames for told in session.feed(frame)]
    assert not broken(events, closed=False)
    return session, events


def texts(session: LiveSession) -> list[tuple[str | None, str, str]]:
    return [(turn.id, turn.text, turn.outcome) for turn in session.turns]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_connection_carries_one_response_after_another(provider: str) -> None:
    session, events = session_of(
        created("a"), text("one"), over("a"), created("b"), text("two"), over("b"), provider=provider
    )
    assert texts(session) == [("a", "one", "complete"), ("b", "two", "complete")]
    assert [event for event in events if isinstance(event.event, ErrorEvent)] == []
    assert [e.turn for e in events if isinstance(e.event, Start)] == [0, 1]


def test_lanes_run_beside_each_other_and_the_one_without_a_name_is_one() -> None:
    session, _ = session_of(
        created("a"),
        created("b", "left"),
        text("B", "left"),
        text("A"),
        created("c", "right"),
        text("C", "right"),
        over("b", "left"),
        text("a", number=2),
        created("d", "left"),
        over("c", "right"),
        over("a", number=3),
        text("D", "left"),
        over("d", "left"),
    )
    done = "complete"
    assert texts(session) == [("a", "Aa", done), ("b", "B", done), ("c", "C", done), ("d", "D", done)]


def test_each_response_counts_for_itself() -> None:
    session, _ = session_of(created("a"), over("a", number=3), created("b"), over("b", number=1))
    first, second = session.turns
    assert [warning.code for warning in first.warnings] == ["sequence_gap"]
    assert second.warnings == ()


def test_a_response_that_was_steered_is_followed_by_one_that_nobody_asked_for() -> None:
    steer: Frame = {"type": "response.steer.accepted", "steer": {"id": "s", "previous_response_id": "a"}}
    session, events = session_of(
        created("a"),
        text("wro"),
        steer,
        over("a", status="incomplete", incomplete_details={"reason": "steered"}, number=2),
        created("b"),
        text("right"),
        over("b"),
    )
    assert TurnEvent(0, raw(steer)) in events
    assert (session.turns[0].stop.reason, session.turns[0].stop.raw) == ("cancelled", "steered")
    assert texts(session)[1] == ("b", "right", "complete")


@pytest.mark.parametrize("kind", ["response.steer.failed", "response.steer.pending", "ping", "response.event"])
def test_what_is_of_no_response_is_raw_and_begins_none(kind: str) -> None:
    frame = {"type": kind, "steer": {}}
    session, events = session_of(frame, created("a"), over("a"), frame)
    assert [events[0], events[-1]] == [TurnEvent(None, raw(frame))] * 2
    assert len(session.turns) == 1


@pytest.mark.parametrize("inner", [{}, {"sequence_number": 2}])
def test_an_error_ends_what_its_lane_runs_and_no_other(inner: Frame) -> None:
    session, _ = session_of(
        created("a", "left"), created("b"), text("B"), refused("boom", "left", **inner), over("b"), created("c", "left")
    )
    assert [turn.outcome for turn in session.turns] == ["failed", "complete", "open"]
    error = session.turns[0].error
    assert error is not None
    assert (error.code, error.status, error.fatal) == ("boom", 400, True)


def test_a_request_that_is_refused_is_a_turn_and_the_socket_stays_usable() -> None:
    session, events = session_of(refused("previous_response_not_found"), created("a"), text("Hi"), over("a"))
    assert [e.event.type for e in events[:2]] == ["start", "error"]
    assert texts(session) == [(None, "", "failed"), ("a", "Hi", "complete")]


def test_the_age_of_a_connection_is_no_fault_of_a_request() -> None:
    session, events = session_of(created("a"), over("a"), refused("websocket_connection_limit_reached"))
    number, error = events[-1]
    assert isinstance(error, ErrorEvent)
    assert (number, error.code, error.fatal) == (None, "websocket_connection_limit_reached", False)
    session, events = session_of(created("a"), refused("websocket_connection_limit_reached"))
    assert session.turns[0].outcome == "failed"


FLAT: Frame = {"type": "error", "sequence_number": 1, "code": "server_error", "message": "no"}


def test_a_flat_error_and_the_failure_that_it_announces_are_one() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    failed = over("a", status="failed", error={"code": "server_error", "message": "no"}, usage=usage)
    session, events = session_of(created("a"), FLAT, failed)
    assert [e.event.type for e in events][-2:] == ["usage", "error"]
    assert session.turns[0].outcome == "failed"
    _, events = session_of(FLAT)
    assert [e.event.type for e in events] == ["start", "error"]


def test_a_response_that_another_one_follows_without_an_end_was_cut() -> None:
    session, _ = session_of(created("a"), text("Hi"), created("b"), text("Ho"), over("b"))
    assert texts(session) == [("a", "Hi", "truncated"), ("b", "Ho", "complete")]


def test_what_comes_behind_an_end_changes_nothing() -> None:
    session, events = session_of(created("a"), over("a"), over("a", number=3), text("late", number=4))
    assert [e.event.type for e in events[-2:]] == ["raw", "raw"]
    assert texts(session) == [("a", "", "complete")]


def test_a_connection_that_drops_loses_what_was_running_and_has_no_cursor() -> None:
    session, _ = session_of(created("a"), over("a"), created("b"), text("Hi"), created("c", "x"))
    events = session.close(1011, "keepalive ping timeout")
    errors = [(e.turn, e.event.kind, e.event.retryable) for e in events if isinstance(e.event, ErrorEvent)]
    assert errors == [(1, "truncated", True), (2, "truncated", True)]
    assert (session.resume_handle, session.resumable) == (None, False)
    session.feed(created("d"))
    session.feed(over("d"))
    assert texts(session)[-1] == ("d", "", "complete")
    decoder = StreamDecoder("openai-responses", framing="messages")
    decoder.feed(json.dumps(created("a")).encode())
    assert decoder.cursor == Cursor("a")


def test_a_close_between_two_responses_is_an_error_where_its_code_says_so() -> None:
    session, _ = session_of(created("a"), over("a"))
    assert session.close(1000) == []
    (event,) = session.close(1011)
    assert event.turn is None
    assert event.event.type == "error"


def test_a_reading_goes_on_and_ends_truncated_where_a_response_was_open() -> None:
    frames = [json.dumps(frame) for frame in (created("a"), text("A"), over("a"), created("b"), text("B"))]
    source: Any = frames
    with streamfold.iter_unified(source, "openai-responses", framing="messages") as stream:
        events = list(stream)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["A", "B"]
    assert [event.type for event in events[-2:]] == ["block_end", "error"]
    assert stream.snapshot().outcome == "truncated"


def test_one_response_is_read_as_its_own_normaliser_reads_it() -> None:
    frames = [created("a"), text("A"), {"type": "response.new"}, over("a"), "[DONE]"]
    decoder = StreamDecoder("openai-responses", framing="messages")
    plain = OpenAIResponsesNormalizer()
    found = [event for frame in frames for event in decoder.feed_payload(frame)]
    assert alike(found)[:-1] == alike(plain.feed(frames[:-1]))
    assert found[-1].type == "raw"


@pytest.mark.parametrize("broken_one", ["{", b"\xff\xfe", "[" * 300])
def test_a_message_that_cannot_be_read_ends_what_runs(broken_one: Any) -> None:
    session, events = session_of(created("a"), created("b", "x"), broken_one, created("c"), over("c"))
    assert [turn.outcome for turn in session.turns] == ["failed", "failed", "complete"]
    _, events = session_of(broken_one)
    assert [(e.turn, e.event.type) for e in events] == [(None, "error")]


def test_results_are_the_input_of_the_next_request() -> None:
    item = {"id": "fc", "type": "function_call", "status": "completed", "call_id": "c1", "name": "f", "arguments": "{}"}
    done = {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": item}
    session, _ = session_of(created("a"), done, over("a"))
    sent = [{"type": "function_call_output", "call_id": "c1", "output": "rain"}]
    assert tool_results(session.turns[0], {"c1": "rain"}) == sent
