"""How far an answer was read, and taking it up again: nothing twice, nothing lost, nothing guessed."""

from __future__ import annotations

import json
import pickle
from collections import deque
from itertools import islice
from typing import Any

import msgspec
import pytest

import streamfold
from streamfold import Cursor, ErrorEvent, Event, StreamDecoder, encode_event
from tests.samples import (
    ANSWERS,
    ANTHROPIC,
    CHAT,
    RESPONSES,
    RESPONSES_PAYLOADS,
    array,
    block_delta,
    block_start,
    block_stop,
    chat,
    cut,
    message_end,
    message_start,
    responses_payloads,
    sse,
)

FRAMES = [sse([payload], names=True) for payload in RESPONSES_PAYLOADS]
LAST = len(FRAMES) - 1


def encoded(events: list[Event]) -> list[bytes]:
    return [encode_event(event) for event in events]


def counts(body: bytes, provider: str) -> list[int]:
    """How many events each frame causes."""
    return [len(caused) for _, caused in streamfold.iter_traced([body], provider)]


WHOLE = StreamDecoder("openai-responses")
EVENTS = encoded(WHOLE.feed(RESPONSES))

# -- the value --------------------------------------------------------------------------------------------------------


def test_a_cursor_is_a_value() -> None:
    cursor = Cursor("resp_1", 7, "evt", "sig")
    assert cursor.__struct_fields__ == ("response_id", "last_sequence", "last_event_id", "last_signature")
    assert Cursor() == Cursor(None, None, None, None)
    assert len({cursor, Cursor("resp_1", 7, "evt", "sig")}) == 1
    assert pickle.loads(pickle.dumps(cursor)) == cursor
    assert msgspec.json.decode(msgspec.json.encode(cursor), type=Cursor) == cursor
    with pytest.raises(AttributeError):
        cursor.last_sequence = 8  # type: ignore[misc]


# -- how far ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai-responses", "auto"])
def test_a_cursor_moves_with_each_whole_frame(provider: str) -> None:
    decoder = StreamDecoder(provider)
    assert decoder.cursor == Cursor()
    for number, frame in enumerate(FRAMES):
        decoder.feed(frame[:-1])
        assert decoder.cursor == (Cursor("resp_1", number - 1) if number else Cursor())
        decoder.feed(frame[-1:])
        assert decoder.cursor == Cursor("resp_1", number)


def test_a_cursor_of_payloads() -> None:
    decoder = StreamDecoder("openai-responses")
    for number, payload in enumerate(RESPONSES_PAYLOADS):
        decoder.feed_payload(payload if number % 2 else json.dumps(payload))
        assert decoder.cursor == Cursor("resp_1", number)


IDS: dict[str, tuple[bytes, str | None]] = {  # what stands before the last frame of a stream -> last_event_id
    "none": (b"", None),
    "one": (b"id: 7\n", "7"),
    "none that counts": (b"id: 7\0\n", None),
    "reset": (b"id: 7\ndata: {}\n\nid\n", None),
    "of an earlier frame": (b"id: 7\ndata: {}\n\n", "7"),
    "of a block without data": (b"id: 7\n\n", "7"),
    "the last of several": (b"id: 7\nid: 8\n", "8"),
}


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(("before", "last"), IDS.values(), ids=IDS.keys())
def test_the_last_event_id(before: bytes, last: str | None, size: int) -> None:
    decoder = StreamDecoder("openai-chat")
    for chunk in cut(before + CHAT[: CHAT.index(b"\n\n") + 2], size):
        decoder.feed(chunk)
    assert decoder.cursor.last_event_id == last


@pytest.mark.parametrize("how", ["eof", "cut"])
def test_a_tail_never_moves_the_cursor(how: Any) -> None:
    for tail in (FRAMES[4][:-1], FRAMES[4][:-2], FRAMES[4][:-9], b"id: 9\n" + FRAMES[4][:-1], b"id: 9\n", b"id: 9"):
        decoder = StreamDecoder("openai-responses")
        decoder.feed(b"id: 1\n" + b"".join(FRAMES[:4]))
        assert decoder.cursor == Cursor("resp_1", 3, "1")
        decoder.feed(tail)
        assert decoder.cursor == Cursor("resp_1", 3, "1")
        decoder.close(how)
        assert decoder.cursor.last_event_id == "1"
        if how == "cut":
            assert decoder.cursor == Cursor("resp_1", 3, "1")


def test_a_tail_that_was_delivered_does_not_move_the_sequence() -> None:
    decoder = StreamDecoder("openai-responses")
    decoder.feed(b"".join(FRAMES[:4]) + FRAMES[4][:-1])
    decoder.close("eof")
    assert decoder.cursor.last_sequence == 3


def test_the_last_signature() -> None:
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "enc"}
    decoder = StreamDecoder("openai-responses")
    decoder.feed_payload(
        {"type": "response.output_item.done", "output_index": 0, "item": reasoning, "sequence_number": 3}
    )
    assert decoder.cursor == Cursor(None, 3, None, "enc")
    decoder = StreamDecoder("anthropic")
    for payload in (
        message_start(),
        block_start(0, type="thinking", thinking="", signature=""),
        block_delta(0, type="thinking_delta", thinking="Hm"),
        block_delta(0, type="signature_delta", signature="si"),
        block_delta(0, type="signature_delta", signature="g"),
        block_stop(0),
        *message_end(),
    ):
        decoder.feed_payload(payload)
    assert decoder.cursor == Cursor("msg_1", None, None, "sig")


# -- of the last event handed out -------------------------------------------------------------------------------------

NUMBERED = b"".join(b"id: n%d\n" % n + frame for n, frame in enumerate(FRAMES))


@pytest.mark.parametrize("size", [1, 100, 1000, 100_000])
@pytest.mark.parametrize("body", [RESPONSES, NUMBERED], ids=["without ids", "with ids"])
def test_a_stream_s_cursor_moves_when_all_events_of_a_frame_are_out(body: bytes, size: int) -> None:
    each = counts(body, "openai-responses")
    with streamfold.iter_unified(cut(body, size), "openai-responses") as stream:
        assert stream.cursor == Cursor()
        for out, _ in enumerate(stream, 1):
            least = most = -1  # the last frame whose events are out; frames without any may count or not
            for number in range(len(each)):
                if sum(each[: number + 1]) <= out:
                    most = number
                    least = number if each[number] else least
            last = stream.cursor.last_sequence
            assert least <= (-1 if last is None else last) <= most
            if body is NUMBERED:
                event_id = stream.cursor.last_event_id
                assert least <= (-1 if event_id is None else int(event_id.removeprefix("n"))) <= most
    assert stream.cursor.last_sequence == LAST


@pytest.mark.parametrize("size", [100, 1000, 100_000])
@pytest.mark.parametrize("provider", ["openai-responses", "auto"])
@pytest.mark.parametrize("body", [RESPONSES, NUMBERED], ids=["without ids", "with ids"])
def test_a_stream_s_cursor_does_not_depend_on_when_it_was_asked_for(body: bytes, provider: Any, size: int) -> None:
    with streamfold.iter_unified(cut(body, size), provider) as stream:
        asked = [stream.cursor for _ in stream]
    for count, cursor in enumerate(asked, 1):
        with streamfold.iter_unified(cut(body, size), provider) as stream:
            deque(islice(stream, count), maxlen=0)
            assert stream.cursor == cursor


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_stream_s_cursor_stays_when_it_is_closed(size: int) -> None:
    for count in range(6):
        with streamfold.iter_unified(cut(NUMBERED, size), "openai-responses") as stream:
            for _ in range(count):
                next(stream)
            before = stream.cursor
        assert stream.cursor == before


def test_a_cursor_leads_to_the_rest_of_the_answer() -> None:
    """Leave after any event, ask for what comes after the cursor: no event is missing."""
    for count in range(len(EVENTS) + 1):
        with streamfold.iter_unified([RESPONSES], "openai-responses") as stream:
            first = [next(stream) for _ in range(count)]
        at = (-1 if stream.cursor.last_sequence is None else stream.cursor.last_sequence) + 1
        out = sum(counts(RESPONSES, "openai-responses")[:at])
        assert out <= count, "nothing is skipped"
        assert encoded(first)[:out] == EVENTS[:out]


# -- another connection -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", ["none", "one frame", "from the start"])
@pytest.mark.parametrize("provider", ["openai-responses", "auto"])
def test_a_connection_that_broke_anywhere_is_taken_up(provider: str, overlap: str) -> None:
    for at in range(0, len(RESPONSES), 3):
        decoder = StreamDecoder(provider)
        events = decoder.feed(RESPONSES[:at])
        last = decoder.cursor.last_sequence
        after = -1 if last is None else last
        start = {"none": after + 1, "one frame": max(0, after), "from the start": 0}[overlap]
        decoder.reconnect()
        assert decoder.cursor.last_sequence == last
        events += decoder.feed(b"".join(FRAMES[start:]))
        assert encoded(events) == EVENTS
        assert decoder.close() == []
        assert decoder.snapshot() == WHOLE.snapshot()


def test_it_may_break_again_and_again() -> None:
    decoder = StreamDecoder("openai-responses")
    events: list[Event] = []
    for number, frame in enumerate(FRAMES):
        events += decoder.feed(b"\xef\xbb\xbf" + b"".join(FRAMES[:number]) + frame + b"data: {half")
        decoder.reconnect()
    assert encoded(events) == EVENTS


def test_half_a_frame_is_dropped_whatever_comes_next() -> None:
    for name, body in ANSWERS.items():
        at = body.index(b"\n\n") + 2
        decoder = StreamDecoder(name)
        events = decoder.feed(body[:at] + b'event: gone\nid: 9\ndata: {"half":')
        decoder.reconnect()
        events += decoder.feed(body[at:])
        assert encoded(events) == encoded(StreamDecoder(name).feed(body))
        assert decoder.cursor.last_event_id is None


def test_half_an_item_of_an_array_is_dropped() -> None:
    decoder = StreamDecoder("openai-chat")
    decoder.feed(array([chat({"content": "Hel"}), chat({"content": "XX"})])[:-40])
    decoder.reconnect()
    decoder.feed(array([chat({"content": "lo"}), chat(finish="stop")]))
    decoder.close()
    assert (decoder.snapshot().text, decoder.snapshot().outcome) == ("Hello", "complete")


def test_the_last_event_id_outlives_the_connection() -> None:
    decoder = StreamDecoder("openai-chat")
    decoder.feed(b"id: 7\n" + CHAT[: CHAT.index(b"\n\n") + 2])
    decoder.reconnect()
    assert decoder.cursor.last_event_id == "7"
    decoder.feed(CHAT[CHAT.index(b"\n\n") + 2 :])
    assert decoder.cursor.last_event_id == "7"


def test_a_connection_that_never_began() -> None:
    for head in (b"", b"\n\n", b"\xef\xbb", b": hi\n", b"data: {"):
        decoder = StreamDecoder("openai-responses")
        decoder.feed(head)
        decoder.reconnect()
        assert encoded(decoder.feed(RESPONSES)) == EVENTS


def test_nothing_is_taken_up_after_the_end() -> None:
    decoder = StreamDecoder("openai-responses")
    decoder.feed(RESPONSES)
    before = decoder.snapshot()
    decoder.reconnect()
    assert decoder.ended
    assert decoder.feed(RESPONSES) == []
    assert decoder.snapshot() is before


# -- a later reading --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", [0, 1, 3])
def test_a_new_reading_drops_what_the_old_one_had(overlap: int) -> None:
    for last in range(3, LAST):
        old = StreamDecoder("openai-responses")
        old.feed(b"".join(FRAMES[: last + 1]))
        new = StreamDecoder("openai-responses", after=old.cursor)
        assert (new.cursor.response_id, new.cursor.last_sequence) == ("resp_1", last)
        events = new.feed(b"".join(FRAMES[max(0, last + 1 - overlap) :]))
        alone = StreamDecoder("openai-responses").feed(b"".join(FRAMES[last + 1 :]))
        assert [event for event in events if event.type != "start"] == [e for e in alone if e.type != "start"]
        assert events[0].type == "start"
        assert not [event for event in events if isinstance(event, ErrorEvent)]
        assert new.snapshot().id == "resp_1"


def test_every_way_in_takes_a_cursor() -> None:
    chunks = cut(b"".join(FRAMES[2:]), 50)
    answer = streamfold.fold(chunks, "openai-responses", after=Cursor("resp_1", 4))
    assert answer.text == streamfold.fold([b"".join(FRAMES[5:])], "openai-responses").text
    assert answer.warnings == ()


def test_a_cursor_given_is_the_cursor_until_something_comes() -> None:
    given = Cursor("resp_1", 7)
    assert StreamDecoder("openai-responses", after=given).cursor == given
    assert streamfold.iter_unified([], "openai-responses", after=given).cursor == given


@pytest.mark.parametrize(
    ("provider", "given"),
    [
        ("openai-responses", Cursor("resp_1", 7, "evt")),
        ("openai-responses", Cursor("resp_1", 7, None, "sig")),
        ("anthropic", Cursor("msg_1", None, "evt", "sig")),
        ("auto", Cursor("resp_1", 7)),
    ],
    ids=["event id", "signature", "anthropic", "auto"],
)
def test_a_cursor_given_is_kept_whole(provider: str, given: Cursor) -> None:
    assert StreamDecoder(provider, after=given).cursor == given


# -- holes ------------------------------------------------------------------------------------------------------------


def gaps(numbers: list[int], after: Cursor | None = None) -> list[str]:
    """What is reported of payloads of these numbers."""
    decoder = StreamDecoder("openai-responses", after=after)
    events: list[Event] = []
    for number in numbers:
        delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x"}
        events += decoder.feed_payload({**delta, "sequence_number": number})
    assert decoder.snapshot().text == "x" * len([n for n in numbers if after is None or n > (after.last_sequence or 0)])
    errors = [event for event in events if isinstance(event, ErrorEvent)]
    assert {(error.kind, error.code, error.fatal) for error in errors} <= {("protocol", "sequence_gap", False)}
    assert decoder.snapshot().warnings == tuple(errors)
    return [error.message for error in errors]


HOLES: dict[str, tuple[list[int], Cursor | None, list[str]]] = {
    "none": ([0, 1, 2, 3], None, []),
    "counted from the first": ([5, 6, 7], None, []),
    "one": ([0, 1, 3], None, ["2"]),
    "several": ([0, 1, 5, 6], None, ["2 to 4"]),
    "two holes": ([0, 2, 3, 7], None, ["1", "4 to 6"]),
    "after the cursor": ([8, 9], Cursor("r", 5), ["6 to 7"]),
    "not after the cursor": ([6, 7], Cursor("r", 5), []),
    "replayed, then a hole": ([4, 5, 7], Cursor("r", 5), ["6"]),
    "a number that comes again is no hole": ([0, 1, 1, 2], None, []),
    "a number from before is none": ([3, 4, 2, 5], None, []),
}


@pytest.mark.parametrize(("numbers", "after", "missing"), HOLES.values(), ids=HOLES.keys())
def test_a_hole_in_the_numbers_is_reported(numbers: list[int], after: Cursor | None, missing: list[str]) -> None:
    assert gaps(numbers, after) == [f"missing sequence numbers: {hole}" for hole in missing]


def test_a_hole_across_connections_is_reported() -> None:
    decoder = StreamDecoder("openai-responses")
    decoder.feed(b"".join(FRAMES[:4]))
    decoder.reconnect()
    events = decoder.feed(b"".join(FRAMES[6:]))
    errors = [event.message for event in events if isinstance(event, ErrorEvent)]
    assert errors == ["missing sequence numbers: 4 to 5"]
    assert decoder.snapshot().outcome == "complete"


def test_a_keep_alive_consumes_a_number() -> None:
    payloads = [*responses_payloads("Hel", "lo")]
    alive = {"type": "keepalive", "sequence_number": 4}
    shifted = [{**p, "sequence_number": p["sequence_number"] + 1} for p in payloads[4:]]
    decoder = StreamDecoder("openai-responses")
    for payload in (*payloads[:4], alive, *shifted):
        assert not [event for event in decoder.feed_payload(payload) if isinstance(event, ErrorEvent)]
    assert decoder.snapshot().text == "Hello"
    assert decoder.cursor.last_sequence == LAST + 1


def test_surfaces_without_numbers_have_none() -> None:
    for name, body in (("anthropic", ANTHROPIC), ("openai-chat", CHAT)):
        decoder = StreamDecoder(name)
        decoder.feed(body)
        assert decoder.cursor.last_sequence is None
        assert decoder.cursor.response_id == {"anthropic": "msg_1", "openai-chat": "c1"}[name]
