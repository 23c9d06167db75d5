"""The figures of every capture: what must hold whatever a provider sends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamfold
from streamfold import Stopwatch, Timing
from tests.evidence import cut, every_capture

MS = 1_000_000
STEPS = (1, 25, 900)
"""Milliseconds between reads."""


def timed(body: bytes, facts: dict[str, Any], *, size: int, step: int) -> tuple[Timing, Any]:
    watch = Stopwatch(facts["provider"])
    now = 100
    for data in cut(body, size):
        watch.read(now * MS, data)
        now += step
    watch.end(now * MS)
    return watch.timing(), watch.snapshot()


def test_every_capture_can_be_timed(shared: Path, record_property: Any) -> None:
    count = 0
    for name, body, facts in every_capture(shared):
        answer = streamfold.fold(body, facts["provider"])
        for step in STEPS:
            timing, watched = timed(body, facts, size=512, step=step)
            assert watched == answer, name
            check(timing, name)
        count += 1
    record_property("ran", f"captures timed={count}")


def check(timing: Timing, name: str) -> None:
    in_order = (
        timing.time_to_first_byte_s,
        timing.time_to_first_chunk_s,
        timing.time_to_first_token_s,
        timing.duration_s,
    )
    known = [time for time in in_order if time is not None]
    assert known == sorted(known), name
    text, token = timing.time_to_first_text_s, timing.time_to_first_token_s
    assert text is None or (token is not None and token <= text), name
    assert len(timing.gaps_s) == max(timing.chunks - 1, 0), name
    assert timing.chunks <= timing.frames + 1, name  # what the end of input completes may be of no frame
    if timing.gaps_s:
        assert timing.gap_p50_s in timing.gaps_s, name
        assert timing.gap_p50_s <= timing.gap_p99_s <= timing.gap_max_s == max(timing.gaps_s), name  # type: ignore[operator]
        assert timing.time_to_first_chunk_s + sum(timing.gaps_s) <= timing.duration_s + 1e-6, name  # type: ignore[operator]


def test_text_comes_when_its_bytes_come(shared: Path) -> None:
    """A byte a millisecond: the first text is there when the bytes up to it are, and not a byte before."""
    for name, body, facts in every_capture(shared):
        timing, _ = timed(body[:4000], facts, size=1, step=1)
        if timing.time_to_first_text_s is None:
            continue
        read = round(timing.time_to_first_text_s * 1000) - 100 + 1  # bytes
        before, after = (texts_of(body[:end], facts) for end in (read - 1, read))
        assert (bool(before), bool(after)) == (False, True), name


def texts_of(begin: bytes, facts: dict[str, Any]) -> list[str]:
    decoder = streamfold.StreamDecoder(facts["provider"])
    return [event.text for event in decoder.feed(begin) if event.type == "text_delta"]
