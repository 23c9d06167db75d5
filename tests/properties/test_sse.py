"""The event-stream parser against itself at other cuts, against its own general reader, and against a naive twin."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streamfold.errors import FramingError
from streamfold.framing.sse import ServerSentEvent, SSEParser

lines = st.sampled_from(
    [
        b"",
        b"",
        b"data: a",
        b'data: {"x": 1}',
        b"data:b",
        b"data",
        b"event: x",
        b"event: y z",
        b"event",
        b"id: 7",
        b"id",
        b"id: 8\0",
        b"retry: 10",
        b"retry: +5",
        b": hi",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbfdata: c",
        b"data: \xe2\x82\xac\xff",
        b"what: ever",
        b'{"error":',
        b"data: a long line that is longer than the bound",
    ]
)
line_ends = st.sampled_from([b"\n", b"\n", b"\r", b"\r\n"])
one_style = st.sampled_from([b"\n", b"\r\n"]).flatmap(
    lambda end: st.lists(
        st.sampled_from(
            [b"data: a", b"data: bb", b"event: x" + end + b"data: c", b"event: y" + end + b"data: \xc3\xa9"]
        ),
        max_size=8,
    ).map(lambda frames: b"".join(frame + end + end for frame in frames))
)
wires = (
    st.lists(st.builds(bytes.__add__, lines, line_ends), max_size=14).map(b"".join)
    | st.builds(
        bytes.__add__, one_style, st.lists(st.builds(bytes.__add__, lines, line_ends), max_size=3).map(b"".join)
    )
    | st.binary(max_size=60)
)
cut_points = st.lists(st.integers(0, 240), max_size=12)


def cut(wire: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted(point for point in points if point <= len(wire)), len(wire)]
    return [wire[a:b] for a, b in pairwise(edges)]


def outcome(chunks: list[bytes], *, fast: bool = True, **settings: Any) -> tuple[Any, ...]:
    parser = SSEParser(**settings)
    parser.fast = fast
    frames: list[ServerSentEvent] = []
    fault: tuple[Any, ...] | None = None
    try:
        for chunk in chunks:
            parser.feed(chunk)
            frames += parser
        parser.close()
        frames += parser
    except FramingError as error:
        fault = (type(error), error.offset, str(error))
    return frames, fault, parser.retry_ms, parser.last_event_id, parser.residue, parser.replacements


@given(wire=wires, points=cut_points)
def test_cuts_never_change_the_outcome(wire: bytes, points: list[int]) -> None:
    assert outcome(cut(wire, points), max_frame_bytes=24) == outcome([wire], max_frame_bytes=24)


@given(wire=wires, points=cut_points)
def test_residue_is_bounded_the_same_at_every_cut(wire: bytes, points: list[int]) -> None:
    assert outcome(cut(wire, points), max_residue_bytes=10) == outcome([wire], max_residue_bytes=10)


@given(wire=wires, points=cut_points, limit=st.sampled_from([8, 24, None]))
def test_the_fast_way_is_the_general_way(wire: bytes, points: list[int], limit: int | None) -> None:
    chunks = cut(wire, points)
    assert outcome(chunks, max_frame_bytes=limit) == outcome(chunks, fast=False, max_frame_bytes=limit)


@given(wire=wires, points=cut_points)
def test_agrees_with_the_naive_parser(wire: bytes, points: list[int]) -> None:
    frames, fault, retry, last_id, *_ = outcome(cut(wire, points))
    assert (frames, fault, retry, last_id) == (*whole(wire),)


@given(wire=wires, points=cut_points)
def test_offsets_and_names_are_those_of_the_frames(wire: bytes, points: list[int]) -> None:
    def places(fast: bool, chunks: list[bytes]) -> list[tuple[bytes, str | None, int, str]]:
        parser = SSEParser()
        parser.fast = fast
        found = []
        for chunk in [*chunks, None]:
            payloads = parser.finish("eof") if chunk is None else parser.take(chunk)
            found += [(p, parser.name_of(k), parser.offset_of(k), parser.id_of(k)) for k, p in enumerate(payloads)]
        return found

    assert places(True, cut(wire, points)) == places(False, [wire])


def whole(wire: bytes) -> tuple[list[ServerSentEvent], None, int | None, str]:
    """The standard's algorithm over the whole text at once, with the lenient end of input."""
    text = wire.decode("utf-8", "replace").removeprefix("\ufeff")
    *ended, tail = re.split("\r\n|\r|\n", text)
    frames: list[ServerSentEvent] = []
    last_id, retry, fields = "", None, {}
    data: list[str] = []
    for number, line in enumerate([*ended, tail, None]):
        if line or (line == "" and number == len(ended)):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data" and line:
                data.append(value)
            elif (name == "id" and "\0" in value) or (name == "retry" and not re.fullmatch("[0-9]{1,18}", value)):
                pass
            elif name:
                fields[name] = value
            if "retry" in fields and number < len(ended):
                retry = int(fields["retry"])
            continue
        new_id = fields.get("id", last_id)
        if data:
            wait = int(fields["retry"]) if "retry" in fields else None
            frames.append(
                ServerSentEvent(fields.get("event") or "message", "\n".join(data), new_id, wait, line is not None)
            )
        if line is not None:
            last_id = new_id
        data, fields = [], {}
    return frames, None, retry, last_id
