"""The plan of a replay by itself: when what is sent, and where it breaks. Nothing here waits."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import Snapshot, UsageError
from streamfold.recording.answers import RecordedAnswer, after, as_array, as_events, from_body
from streamfold.recording.plan import Fault, Place, Plan, Step, fault_of, pace_of, recut, schedule
from streamfold.recording.sfcap import Read
from tests.conftest import RECORDED

READS = [Read(1_000_000_000, b"abc"), Read(1_500_000_000, b"defg"), Read(4_000_000_000, b"h")]
BODY = b"abcdefgh"
AT_ONCE = Plan(None)

SCHEDULES: dict[str, tuple[Plan, dict[str, Any], list[Step]]] = {
    "as recorded": (Plan(), {}, [Step(1.0, b"abc"), Step(0.5, b"defg"), Step(2.5, b"h")]),
    "from the head on": (Plan(), {"since": 10**9}, [Step(0.0, b"abc"), Step(0.5, b"defg"), Step(2.5, b"h")]),
    "twice as fast": (Plan(2.0), {}, [Step(0.5, b"abc"), Step(0.25, b"defg"), Step(1.25, b"h")]),
    "at once": (AT_ONCE, {}, [Step(0.0, b"abc"), Step(0.0, b"defg"), Step(0.0, b"h")]),
    "cut anew: a piece waits for its last byte": (
        Plan(1.0, 5),
        {},
        [Step(1.5, b"abcde"), Step(2.5, b"fgh")],
    ),
    "cut inside a read": (
        Plan(fault=fault_of("cut=5")),
        {},
        [Step(1.0, b"abc"), Step(0.5, b"de"), Step(0.0, b"", "cut")],
    ),
    "cut between reads": (Plan(None, fault=fault_of("cut=3")), {}, [Step(0.0, b"abc"), Step(0.0, b"", "cut")]),
    "nothing at all": (Plan(None, fault=fault_of("end=0")), {}, [Step(0.0, b"", "end")]),
    "broken as it was": (
        AT_ONCE,
        {"broken": True},
        [Step(0.0, b"abc"), Step(0.0, b"defg"), Step(0.0, b"h"), Step(0.0, b"", "cut")],
    ),
}


@pytest.mark.parametrize(("plan", "more", "steps"), SCHEDULES.values(), ids=SCHEDULES.keys())
def test_schedules(plan: Plan, more: dict[str, Any], steps: list[Step]) -> None:
    assert list(schedule(READS, plan, **more)) == steps


reads = st.lists(st.tuples(st.integers(0, 10**9), st.binary(min_size=1, max_size=9)), max_size=9).map(
    lambda pairs: [Read(at, data) for at, (_, data) in zip(accumulate(at for at, _ in pairs), pairs, strict=True)]
)
places = st.none() | st.builds(Place, st.sampled_from(["byte", "random"]), st.integers(0, 40))
faults = st.builds(Fault, cut=places, end=places, reset=places, stall=places, garbage=places)
plans = st.builds(Plan, st.none() | st.floats(0.1, 10), st.none() | st.integers(1, 9), st.integers(0, 3), faults)


@given(reads=reads, plan=plans)
def test_what_is_sent_is_a_beginning_of_what_was_recorded(reads: list[Read], plan: Plan) -> None:
    steps = list(schedule(reads, plan))
    body = b"".join(read.data for read in reads)
    sent = b"".join(step.data for step in steps if step.strike is None)
    ends = [step.strike for step in steps if step.strike not in (None, "garbage")]
    assert body.startswith(sent)
    assert sent == body or ends
    assert not ends or (len(ends) == 1 and steps[-1].strike == ends[0])
    assert all(step.wait_s >= 0 for step in steps)
    assert steps == list(schedule(reads, plan))
    if plan.pace is not None and not ends:
        waited = sum(step.wait_s for step in steps)
        assert waited == pytest.approx((reads[-1].t if reads else 0) / 1e9 / plan.pace)


@given(reads=reads, chunk=st.none() | st.integers(1, 9), offset=st.integers(0, 90))
def test_cutting_anew_and_cutting_off_keep_the_bytes(reads: list[Read], chunk: int | None, offset: int) -> None:
    body = b"".join(read.data for read in reads)
    pieces = [data for _, data in recut(reads, chunk)]
    assert b"".join(pieces) == body
    assert chunk is None or all(len(piece) == chunk for piece in pieces[:-1])
    assert b"".join(read.data for read in after(reads, offset)) == body[offset:]


def test_chance_follows_from_the_seed_and_the_recording() -> None:
    read = [Read(0, b"x" * 10_000)]

    def struck(seed: int, key: str) -> int:
        return len(next(schedule(read, Plan(None, None, seed, fault_of("cut=random")), key=key)).data)

    drawn = {(seed, key): struck(seed, key) for seed in range(5) for key in ("a/1", "a/2", "b/1")}
    assert len(set(drawn.values())) == len(drawn)
    assert drawn == {(seed, key): struck(seed, key) for seed, key in drawn}
    assert drawn[0, "a/1"] == 198  # the same on every machine and version


WRITTEN = {
    "": Fault(),
    "cut=1200": Fault(cut=Place("byte", 1200)),
    "stall=3": Fault(stall=Place("event", 3)),
    "stall=byte:3, cut=event:2": Fault(stall=Place("byte", 3), cut=Place("event", 2)),
    "reset=random": Fault(reset=Place("random")),
    "status=429,times=2,retry-after=none": Fault(status=429, times=2, retry_after=None),
    "error=500,first-byte=2.5": Fault(error=500, first_byte=2.5),
}


@pytest.mark.parametrize(("text", "fault"), WRITTEN.items())
def test_faults_as_they_are_written(text: str, fault: Fault) -> None:
    assert fault_of(text) == fault


def test_paces_as_they_are_written() -> None:
    assert [pace_of(text) for text in ("recorded", "at-once", "2", "0.5")] == [1.0, None, 2.0, 0.5]
    for text in ("fast", "", "-1", "nan"):
        with pytest.raises(UsageError):
            Plan().but({"pace": text})


EVENTS = {
    "line feeds": (b"data: 1\n\ndata: 2\n\n", "sse", [(9, b"1"), (18, b"2")]),
    "carriage returns": (b"data: 1\r\rdata:2\r\r", "sse", [(9, b"1"), (17, b"2")]),
    "both": (b"event: x\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", "sse", [(21, b"1"), (32, b"2")]),
    "comments are none": (b": hi\n\ndata: 1\n\n: bye\n\n", "sse", [(15, b"1")]),
    "several lines of data": (b"data: [\ndata: 1]\n\n", "sse", [(18, b"[\n1]")]),
    "one without its blank line": (b"data: 1\n\ndata: 2\n", "sse", [(9, b"1"), (17, b"2")]),
    "one that is cut": (b'data: 1\n\ndata: {"a', "sse", [(9, b"1"), (18, b'{"a')]),
    "an error without a field": (b'data: 1\n\n{"error":\n{}}\n', "sse", [(9, b"1"), (23, b'{"error":\n{}}')]),
    "an array": (b"[{}\n,\r\n{}]", "json_array", [(3, b"{}"), (9, b"{}")]),
    "lines": (b"{}\n\n{}\r\n{}", "jsonl", [(3, b"{}"), (8, b"{}"), (10, b"{}")]),
}


@pytest.mark.parametrize(("body", "framing", "parts"), EVENTS.values(), ids=EVENTS.keys())
def test_where_events_end(body: bytes, framing: str, parts: list[tuple[int, bytes]]) -> None:
    assert list(RecordedAnswer("x", "gemini", framing, (Read(0, body),)).parts) == parts


def replayed(answer: RecordedAnswer, fault: Fault) -> Snapshot:
    """What comes of an answer that goes wrong."""
    steps = schedule(answer.reads, Plan(None, fault=fault), framing=answer.framing, parts=answer.parts)
    data = [step.data for step in steps if step.data]
    return streamfold.fold(data, answer.surface, framing=answer.framing)  # type: ignore[arg-type] # of the table


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_garbage_is_never_overlooked(path: Path) -> None:
    """Before the answer has ended, that is: behind its terminal sign nothing is read."""
    answer = from_body(path.stem, path.read_bytes())
    assert isinstance(answer, RecordedAnswer)
    whole = replayed(answer, Fault())
    ends = [0, *(part.end for part in answer.parts)]
    cuts = [replayed(answer, Fault(end=Place("event", at))).outcome for at in range(len(ends))]
    last = next((at for at, outcome in enumerate(cuts) if outcome == whole.outcome), len(ends))
    places = [Place("event", at) for at in range(last)]
    places += [Place("byte", at) for at in range(1, ends[last - 1], max(1, ends[last - 1] // 100))]
    for place in places:
        struck = replayed(answer, Fault(garbage=place))
        assert (struck.outcome, struck.error and struck.error.kind) == ("failed", "protocol"), place


def test_framed_anew_each_payload_keeps_its_time() -> None:
    answer = RecordedAnswer(
        "x", "gemini", "sse", (Read(1, b'data: {"a'), Read(2, b'":1}\r\n\r\ndata: {}\r\n\r\n'), Read(3, b""))
    )
    array = as_array(answer)
    assert array.reads == (Read(2, b'[{"a":1}'), Read(2, b"\n,\r\n{}"), Read(2, b"]"))
    back = as_events(array)
    assert back.reads == (Read(2, b'data: {"a":1}\r\n\r\n'), Read(2, b"data: {}\r\n\r\n"))
    assert as_array(array) is array
    assert as_events(answer) is answer
    assert as_array(RecordedAnswer("x", "gemini", "sse", ())).body == b"[]"
    cut = RecordedAnswer("x", "gemini", "sse", (Read(1, b'data: {}\r\n\r\ndata: {"a'),))
    assert as_array(cut).body == b'[{}\n,\r\n{"a'


def test_bytes_that_tell_nothing() -> None:
    for body in (b"", b"hello", b"{}", b'{"dir":"in"}\n', b'{"dir":"in","frame":{}}\n{"dir":\n'):
        with pytest.raises(UsageError):
            from_body("x", body)
