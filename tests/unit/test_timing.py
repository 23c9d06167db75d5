"""Figures of answers whose every read has a time: constructed schedules with their exact numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import Stopwatch, TextDelta, Timing, UsageError
from streamfold.events import Raw, Usage
from streamfold.timing import percentile
from tests.conftest import RECORDED

MS = 1_000_000
Schedule = Sequence[tuple[int, bytes]]
"""Milliseconds since the request, and what a read brought."""


def frame(payload: dict[str, Any] | str) -> bytes:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return f"data: {text}\n\n".encode()


def chunk(finish: str | None = None, **delta: Any) -> bytes:
    """A frame of Chat Completions."""
    return frame({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def text(piece: str = "x") -> bytes:
    return chunk(content=piece)


def usage(output: int) -> bytes:
    return frame({"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": output}})


ROLE = chunk(role="assistant", content="")
THOUGHT = chunk(reasoning_content="hm")
CALL = chunk(tool_calls=[{"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}}])
ARGUMENTS = chunk(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}])
END = chunk(finish="stop") + usage(9) + frame("[DONE]")
KEEP_ALIVE = b": keep-alive\n\n"


def timed(
    schedule: Iterable[tuple[int, bytes]], *, end: int | None = None, head: int | None = None, **settings: Any
) -> Timing:
    """The figures of a schedule; ``end`` is that of the stream, if it comes later than the last read."""
    watch = Stopwatch("openai-chat", **settings)
    if head is not None:
        watch.head(head * MS)
    last = 0
    for last, data in schedule:
        watch.read(last * MS, data)
    watch.end((last if end is None else end) * MS)
    return watch.timing()


SCHEDULES: dict[str, tuple[Schedule, dict[str, Any]]] = {
    "nothing ever came": (
        [],
        {
            "time_to_first_byte_s": None,
            "time_to_first_chunk_s": None,
            "duration_s": 0.0,
            "chunks": 0,
            "gap_p50_s": None,
        },
    ),
    "a steady answer": (
        [(200, ROLE), *((at, text()) for at in (400, 500, 600, 700)), (800, END)],
        {
            "time_to_first_byte_s": 0.2,
            "time_to_first_chunk_s": 0.4,
            "time_to_first_token_s": 0.4,
            "time_to_first_text_s": 0.4,
            "duration_s": 0.8,
            "gaps_s": (0.1, 0.1, 0.1, 0.1),
            "gap_p50_s": 0.1,
            "gap_max_s": 0.1,
            "output_tokens": 9,
            "time_per_output_token_s": 0.05,  # (0.8 - 0.4) / (9 - 1)
            "output_tokens_per_s": 11.25,  # 9 / 0.8
            "stalls": 0,
            "stalled_s": 0.0,
            "glued": None,
            "reads": 6,
            "frames": 8,
            "chunks": 5,
        },
    ),
    "keep-alives are bytes and no chunks": (
        [(100, KEEP_ALIVE), (1000, KEEP_ALIVE), (2000, text()), (2500, KEEP_ALIVE), (3000, text() + END)],
        {"time_to_first_byte_s": 0.1, "time_to_first_chunk_s": 2.0, "gaps_s": (1.0, 0.0), "chunks": 3},
    ),
    "reasoning is a token and no text": (
        [(100, THOUGHT), (300, THOUGHT), (600, text()), (700, END)],
        {"time_to_first_token_s": 0.1, "time_to_first_text_s": 0.6},
    ),
    "a call is a chunk when it opens and a token with its first arguments": (
        [(100, CALL), (250, ARGUMENTS), (300, chunk(finish="tool_calls") + frame("[DONE]"))],
        {"time_to_first_chunk_s": 0.1, "time_to_first_token_s": 0.25, "time_to_first_text_s": None},
    ),
    "a frame counts when it is whole": (
        [(100, text()[:20]), (400, text()[20:]), (500, END)],
        {"time_to_first_byte_s": 0.1, "time_to_first_chunk_s": 0.4},
    ),
    "one token has no time each": (
        [(100, text()), (200, chunk(finish="stop") + usage(1) + frame("[DONE]"))],
        {"output_tokens": 1, "time_per_output_token_s": None, "output_tokens_per_s": 5.0},
    ),
    "what broke off has no time per token": (
        [(100, text()), (200, usage(9)), (300, text())],
        {"output_tokens": 9, "time_per_output_token_s": None, "duration_s": 0.3},
    ),
    "silence between chunks": (
        [(0, text()), (2000, text()), (4001, text()), (8001, text()), (8002, END)],
        {"stalls": 2, "stalled_s": 6.001, "gap_max_s": 4.0, "gap_p50_s": 2.0, "gap_p99_s": 4.0},
    ),
    "times do not go back": (
        [(300, text()), (100, text()), (400, END)],
        {"time_to_first_chunk_s": 0.3, "gaps_s": (0.0, 0.1)},
    ),
}


@pytest.mark.parametrize(("schedule", "figures"), SCHEDULES.values(), ids=SCHEDULES.keys())
def test_figures(schedule: Schedule, figures: dict[str, Any]) -> None:
    timing = timed(schedule)
    assert {name: getattr(timing, name) for name in figures} == figures


def test_the_answer_ends_with_its_sign_and_not_with_the_connection() -> None:
    assert timed([(100, text()), (200, END)], end=90_000).duration_s == 0.2


def test_a_connection_that_is_left_ends_the_answer() -> None:
    watch = Stopwatch("openai-chat")
    watch.read(100 * MS, text())
    assert watch.timing().duration_s is None
    watch.end(700 * MS, "cancel")
    watch.end(900 * MS)
    assert watch.timing().duration_s == 0.7
    assert watch.snapshot().outcome == "cancelled"


def test_silence_up_to_the_end_is_a_stall() -> None:
    timing = timed([(100, text())], end=30_100)
    assert (timing.stalls, timing.stalled_s, timing.gap_max_s) == (1, 30.0, None)


def test_the_wait_for_the_first_chunk_is_none() -> None:
    assert timed([(60_000, text()), (60_100, END)]).stalls == 0


@pytest.mark.parametrize(("stall_s", "stalls"), [(0, 3), (0.1, 2), (0.3, 1), (0.7, 0)])
def test_what_a_stall_is_can_be_said(stall_s: float, stalls: int) -> None:
    schedule = [(0, text()), (100, text()), (400, text()), (1000, text() + END)]
    assert timed(schedule, stall_s=stall_s).stalls == stalls


def test_the_head_of_the_response() -> None:
    assert timed([(300, text())], head=250).time_to_response_head_s == 0.25
    assert timed([(300, text())]).time_to_response_head_s is None


def test_an_error_body_is_read_by_its_status() -> None:
    watch = Stopwatch("openai-chat")
    watch.head(50 * MS, 429)
    watch.read(60 * MS, b'{"error":{"message":"slow down"}}')
    watch.end(61 * MS)
    error = watch.snapshot().error
    assert error is not None
    assert (error.status, error.retryable) == (429, True)
    assert (watch.timing().time_to_first_chunk_s, watch.timing().duration_s) == (None, 0.06)


def test_times_are_on_the_clock_of_the_caller() -> None:
    watch = Stopwatch("openai-chat", begun_ns=5_000_000_000)
    watch.read(5_250_000_000, text() + END)
    watch.end(5_300_000_000)
    assert (watch.timing().time_to_first_token_s, watch.timing().duration_s) == (0.25, 0.25)


def test_a_length_of_time_is_asked_for() -> None:
    for wrong in (-1, float("nan")):
        with pytest.raises(UsageError):
            Stopwatch(stall_s=wrong)


# -- what a proxy does ------------------------------------------------------------------------------------------------


def every(step: float, count: int, size: int = 1, begin: float = 500) -> list[tuple[int, bytes]]:
    """So many pieces at a time, so often, in thousandths of a millisecond."""
    return [(int((begin + step * k) * 1000), text() * size) for k in range(count)]


DELIVERIES: dict[str, tuple[list[tuple[int, bytes]], bool | None]] = {
    "one piece at a time": (every(20, 40), False),
    "two at a time": (every(40, 20, 2), False),
    "ten at a time, five times a second": (every(200, 5, 10), True),
    "three at a time behind 50 ms": (every(50, 4, 3), True),
    "three at a time behind 49 ms: a fast model": (every(49, 40, 3, begin=40), False),
    "all of it at once": (every(0, 1, 40), True),
    "all of it at once, in the kernel's reads": (every(0.3, 5, 10), True),
    "a fast model, one piece a read": (every(0.4, 400), False),
    "once, at the beginning": (every(0, 1, 5) + every(30, 40, begin=700), False),
    "too few to tell": (every(200, 2, 3), None),
    "held back behind a first piece": ([*every(0, 1, begin=100), *every(0, 1, 40, begin=3000)], True),
}


@pytest.mark.parametrize(("schedule", "glued"), DELIVERIES.values(), ids=DELIVERIES.keys())
def test_what_was_held_back_and_came_together(schedule: list[tuple[int, bytes]], glued: bool | None) -> None:
    watch = Stopwatch("openai-chat")
    for at, data in schedule:
        watch.read(at * 1000, data)
    assert watch.timing().glued is glued


# -- beside a stream --------------------------------------------------------------------------------------------------


def test_events_of_a_stream_that_another_reads() -> None:
    watch = Stopwatch(begun_ns=1000 * MS)
    body = ROLE + text() + text() + END
    for number, (_, events) in enumerate(streamfold.iter_traced(body, "openai-chat")):
        watch.see((1100 + 100 * number) * MS, *events)
    timing = watch.timing()
    assert (timing.time_to_first_text_s, timing.duration_s, timing.chunks) == (0.2, 0.6, 3)
    assert timing.time_per_output_token_s == 0.05
    assert (timing.glued, timing.reads, timing.time_to_first_byte_s) == (None, 0, None)


def test_events_one_by_one() -> None:
    watch = Stopwatch()
    watch.see(1 * MS, streamfold.Start("openai-chat"))
    watch.see(2 * MS, Raw("ping", streamfold.JSONText("{}")))
    watch.see(3 * MS, Usage(output_tokens=3))
    watch.see(4 * MS, TextDelta(0, "x"))
    watch.see(9 * MS, TextDelta(0, "y"))
    watch.see(10 * MS, streamfold.Done("end"))
    assert watch.timing() == Timing(
        time_to_first_chunk_s=0.004,
        time_to_first_token_s=0.004,
        time_to_first_text_s=0.004,
        duration_s=0.01,
        gap_p50_s=0.005,
        gap_p99_s=0.005,
        gap_max_s=0.005,
        time_per_output_token_s=0.003,
        output_tokens_per_s=300.0,
        output_tokens=3,
        frames=6,
        chunks=2,
        gaps_s=(0.005,),
    )


# -- every recording --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)
def test_the_events_are_those_of_the_decoder(recording: Any) -> None:
    body = recording.read_bytes()
    watch = Stopwatch()
    events = [event for at in range(0, len(body), 100) for event in watch.read(at, body[at : at + 100])]
    events += watch.end(len(body))
    with streamfold.iter_unified(body) as stream:
        assert events == list(stream)
    assert watch.snapshot() == stream.snapshot()
    assert watch.timing().bytes == len(body)


@given(data=st.data(), recording=st.sampled_from(RECORDED))
def test_cuts_within_a_time_change_no_figure(data: st.DataObject, recording: Any) -> None:
    body = recording.read_bytes()
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=12))})
    times = sorted(data.draw(st.lists(st.integers(0, 3000), min_size=len(cuts), max_size=len(cuts))))
    whole, cut = Stopwatch(), Stopwatch()
    for (begin, end), at in zip(pairwise(cuts), times, strict=False):
        whole.read(at * MS, body[begin:end])
        more = sorted({begin, end, *data.draw(st.lists(st.integers(begin, end), max_size=4))})
        for first, last in pairwise(more):
            cut.read(at * MS, body[first:last])
    whole.end(times[-1] * MS)
    cut.end(times[-1] * MS)
    figures = [name for name in Timing.__struct_fields__ if name != "reads"]
    assert {n: getattr(cut.timing(), n) for n in figures} == {n: getattr(whole.timing(), n) for n in figures}


# -- percentiles ------------------------------------------------------------------------------------------------------


@given(values=st.lists(st.integers(0, 1000), min_size=1, max_size=300), percent=st.integers(1, 100))
def test_percentiles_agree_with_the_definition(values: list[int], percent: int) -> None:
    def enough(value: int) -> bool:
        return sum(other <= value for other in values) * 100 >= percent * len(values)

    assert percentile(sorted(values), percent) == min(filter(enough, values))


def test_of_nothing_there_is_no_percentile() -> None:
    for ordered, percent in (([], 50), ([1], 0), ([1], 101)):
        with pytest.raises(UsageError):
            percentile(ordered, percent)
