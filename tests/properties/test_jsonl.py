"""Lines of JSON against themselves at other cuts, and against a naive twin."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamfold.errors import FramingError
from streamfold.framing.jsonl import JSONLinesParser

BOM = b"\xef\xbb\xbf"
LIMIT = 12
lines = st.sampled_from(
    [b"", b" ", b'{"a":1}', b"5", b"\r", b' {"b":"\xff"}\t', b"x" * LIMIT, b"y" * (LIMIT + 1), BOM, b"\0", b"z\rz"]
)
ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n", b""])
wires = st.lists(st.builds(bytes.__add__, lines, ends), max_size=8).map(b"".join) | st.binary(max_size=40)
limits = st.sampled_from([LIMIT, None])
points = st.lists(st.integers(0, 80), max_size=8)
Outcome = tuple[list[bytes], list[int], "tuple[str, int] | None"]


def cut(wire: bytes, at: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(min(point, len(wire)) for point in at), len(wire)]
    return [wire[a:b] for a, b in pairwise(edges)]


def taken(chunks: list[bytes], limit: int | None) -> Outcome:
    parser = JSONLinesParser(max_frame_bytes=limit)
    found: list[bytes] = []
    offsets: list[int] = []
    for read in (*(lambda chunk=chunk: parser.take(chunk) for chunk in chunks), lambda: parser.finish("eof")):
        new = read()
        found += new
        offsets += [parser.offset_of(k) for k in range(len(new))]
    fault = parser.fault
    return found, offsets, None if fault is None else (str(fault), fault.offset)


def iterated(chunks: list[bytes], limit: int | None) -> list[str]:
    parser = JSONLinesParser(max_frame_bytes=limit)
    found: list[str] = []
    with suppress(FramingError):
        for chunk in chunks:
            parser.feed(chunk)
            found += parser
        parser.close()
        found += parser
    return found


def whole(wire: bytes) -> tuple[list[bytes], list[int]]:
    """The naive twin."""
    found: list[bytes] = []
    offsets: list[int] = []
    at = 0
    for number, line in enumerate(wire.split(b"\n")):
        text = (line.removeprefix(BOM) if number == 0 else line).strip(b" \t\r")
        if text:
            found.append(text)
            offsets.append(at)
        at += len(line) + 1
    return found, offsets


@given(wire=wires, at=points, limit=limits)
def test_cuts_never_change_the_outcome(wire: bytes, at: list[int], limit: int | None) -> None:
    for chunks in (cut(wire, at), cut(wire, range(len(wire)))):
        assert taken(chunks, limit) == taken([wire], limit)
        assert iterated(chunks, limit) == [line.decode("utf-8", "replace") for line in taken([wire], limit)[0]]


@given(wire=wires)
def test_agrees_with_the_naive_parser(wire: bytes) -> None:
    assert taken([wire], None) == (*whole(wire), None)


@given(wire=wires)
def test_a_bound_takes_away_what_follows_the_line_that_passes_it(wire: bytes) -> None:
    found, _, fault = taken([wire], LIMIT)
    everything, _ = whole(wire)
    assert found == everything[: len(found)]
    over = any(len(line.removesuffix(b"\r")) > LIMIT for line in wire.split(b"\n"))
    assert (fault is not None) == over
