"""The JSON-array parser against itself at other cuts, against its own general reader, and against a naive twin."""

from __future__ import annotations

import json
import re
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, islice, pairwise, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold.errors import (
    Empty,
    FrameTooLarge,
    FramingError,
    Malformed,
    NotJSONArray,
    TooDeep,
    TrailingData,
    Truncated,
)
from streamfold.framing.json_array import JSONArrayStreamParser

BOUNDS = {"max_frame_bytes": 24, "max_depth": 3}
BOM = b"\xef\xbb\xbf"

items = st.sampled_from(
    [
        b'{"a":1}',
        b'{\n  "a": [\n    {}\n  ]\n}',
        b'{"a":1\n,"b":2}',  # the vendor's separator inside an item
        b'{"t":"}{][,"}',
        b'{"t":"\\"}\\\\"}',
        b'{"t":"a\n,b"}',  # and, against the grammar, inside a string
        b'{"t":"\xe2\x82\xac\xff"}',
        b'{"t":"\\ud800"}',
        b'{"n":NaN}',
        b"[1\n,[2]]",
        b"[]",
        b'"}\\\\"',
        b'"\\u2028"',
        b"12",
        b"-1.5e3",
        b"true",
        b"null",
        b"-Infinity",
        b'{"long":"is longer than the bound"}',
        b'"a string longer than the bound"',
        b"1234567890123456789012345",
        b"[[[3]]]",
        b'{"a":[{"b":[]}]}',  # a level too deep
        b'[[[["deep, and then too long"]]]]',
        b'{"a" 2}',
        b'{"a":[1}]}',
        b"[1,]",
        b'{"a":tru}',
        b"nul",
        b"01",
        b'"bad \\x escape"',
    ]
)
separators = st.sampled_from([b"\n,\r\n", b"\n,\r\n", b"\n,\n", b",", b" , ", b",\n"])
strays = st.sampled_from(
    [b"", b" ", b"\r\n", b",", b"[", b"]", b"{", b"}", b'"', b"\\", b"x", b"\n,", BOM, BOM[:2], b"\xff"]
)


@st.composite
def arrays(draw: st.DrawFn, parts: st.SearchStrategy[list[bytes]] = st.lists(items, max_size=6)) -> bytes:  # noqa: B008
    body = draw(separators).join(draw(parts))
    return (
        draw(st.sampled_from([b"[", b"[", b" [\n", BOM + b"["])) + body + draw(st.sampled_from([b"\n]", b"]", b"]\n"]))
    )


sound = st.lists(st.sampled_from([b'{"a":1}', b'{\n  "b": [\n    2\n  ]\n}', b"{}", b"[{}]", b'"c"', b"4"]), max_size=8)
wires = (
    arrays(sound)
    | arrays()
    | st.lists(arrays() | items | separators | strays, max_size=6).map(b"".join)
    | st.builds(lambda wire, at, stray: wire[:at] + stray + wire[at:], arrays(), st.integers(0, 80), strays)
    | st.builds(lambda wire, at: wire[:at], arrays(), st.integers(0, 80))
    | st.binary(max_size=40)
)
cut_points = st.lists(st.integers(0, 160), max_size=12)

Outcome = tuple[list[bytes], "tuple[Any, ...] | None"]


def cut(wire: bytes, points: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(point for point in points if point <= len(wire)), len(wire)]
    return [wire[a:b] for a, b in pairwise(edges)]


def described(fault: FramingError | None) -> tuple[Any, ...] | None:
    return None if fault is None else (type(fault), fault.offset, str(fault))


def iterated(chunks: list[bytes], **bounds: Any) -> tuple[list[str], tuple[Any, ...] | None]:
    parser = JSONArrayStreamParser(**bounds)
    found: list[str] = []
    with suppress(FramingError):
        for chunk in chunks:
            parser.feed(chunk)
            found += parser
        parser.close()
        found += parser
    if parser.fault is None:
        assert list(parser) == []
    else:
        with pytest.raises(FramingError) as again:  # a fault is sticky
            next(parser)
        assert again.value is parser.fault
    return found, described(parser.fault)


def taken(chunks: list[bytes], *, fast: bool = True, how: str = "eof", **bounds: Any) -> tuple[Outcome, list[int]]:
    """The outcome, and how many items there were after each chunk."""
    parser = JSONArrayStreamParser(**bounds)
    parser.fast = fast
    found: list[bytes] = []
    counts: list[int] = []
    wire = b"".join(chunks)
    for read in (*(lambda chunk=chunk: parser.take(chunk) for chunk in chunks), lambda: parser.finish(how)):
        new = read()
        for k, item in enumerate(new):
            assert wire.startswith(item, parser.offset_of(k))
        found += new
        counts.append(len(found))
    return (found, described(parser.fault)), counts


@given(wire=wires, points=cut_points, bounds=st.sampled_from([BOUNDS, {}]))
def test_cuts_never_change_the_outcome(wire: bytes, points: list[int], bounds: dict[str, int]) -> None:
    assert taken(cut(wire, points), **bounds)[0] == taken([wire], **bounds)[0]
    assert iterated(cut(wire, points), **bounds) == iterated([wire], **bounds)


@given(wire=wires, points=cut_points, bounds=st.sampled_from([BOUNDS, {}]))
def test_the_short_way_and_the_general_reader_agree(wire: bytes, points: list[int], bounds: dict[str, int]) -> None:
    chunks = cut(wire, points)
    assert taken(chunks, fast=True, **bounds) == taken(chunks, fast=False, **bounds)  # item for item, read for read


@given(wire=wires, points=cut_points)
def test_both_faces_agree(wire: bytes, points: list[int]) -> None:
    found, fault = taken(cut(wire, points), **BOUNDS)[0]
    assert iterated(cut(wire, points), **BOUNDS) == ([item.decode("utf-8", "replace") for item in found], fault)


@given(wire=wires, points=cut_points)
def test_bytes_may_be_fed_ahead_of_reading(wire: bytes, points: list[int]) -> None:
    parser = JSONArrayStreamParser(**BOUNDS)
    for chunk in cut(wire, points):
        parser.feed(chunk)
    parser.close()
    found, fault = taken([wire], **BOUNDS)[0]
    assert (parser.finish("eof"), described(parser.fault)) == (found, fault)


@given(wire=wires, points=cut_points, how=st.sampled_from(["cut", "cancel"]))
def test_a_cut_drops_the_tail_and_faults_nothing(wire: bytes, points: list[int], how: str) -> None:
    (found, fault), counts = taken(cut(wire, points), how=how, **BOUNDS)
    (whole_found, whole_fault), _ = taken([wire], **BOUNDS)
    assert found == whole_found[: len(found)]
    assert counts[-1] == counts[-2]
    assert fault in (whole_fault, None)
    assert fault is None or fault[0] not in (Truncated, Empty)


@given(wire=st.binary() | st.text(alphabet='[]{}",:\\ \n1ae', max_size=60).map(str.encode), points=cut_points)
def test_nothing_but_framing_errors_comes_of_any_bytes(wire: bytes, points: list[int]) -> None:
    assert taken(cut(wire, points))[0] == taken(cut(wire, range(len(wire))), fast=False)[0]
    iterated(cut(wire, points))


# -- the naive twin: the whole text at once, strings blanked out, levels as running sums -------------------------------

STRING = re.compile(r'"(?:[^"\\]|\\.)*("|\\?\Z)', re.DOTALL)
BARE = re.compile("[-+.0-9A-Za-z]+")
STARTS = dict.fromkeys('{["-0123456789tfnNI', "item")
STEPS = {
    "start": {"[": "first", "{": "item"},
    "first": {"]": "after array", **STARTS},
    "value": STARTS,
    "comma": {",": "value", "]": "after array"},
    "after array": {"[": "first"},
    "after object": {"{": "item"},
}
AT_END = {"start": Empty, "after array": None, "after object": None}
MISPLACED = {"start": NotJSONArray, "after array": TrailingData, "after object": TrailingData}


def end_of(text: str, levels: list[int], at: int) -> int | None:
    if text[at] in "{[":
        return next((k + 1 for k in range(at, len(text)) if levels[k] < levels[at]), None)
    if text[at] == '"':
        string = STRING.match(text, at)
        return string.end() if string[1] == '"' else None
    end = BARE.match(text, at).end()
    return end if end < len(text) or is_json(text[at:]) else None


def is_json(text: str) -> bool:
    try:
        json.loads(text.encode("latin-1").decode("utf-8", "replace"), strict=False)
    except ValueError:
        return False
    return True


def twin(wire: bytes, max_frame_bytes: int, max_depth: int) -> tuple[list[str], tuple[type, int] | None]:
    text, found, place, at = wire.decode("latin-1"), [], "start", 0  # a character a byte
    if wire[:1] == BOM[:1]:
        if wire[:3] != BOM:
            return [], (Truncated if BOM.startswith(wire) else NotJSONArray, 0)
        at = 3
    blank = STRING.sub(lambda string: '"' * len(string[0]), text)
    levels = list(accumulate((c in "{[") - (c in "]}") for c in blank))
    while rest := text[at:].lstrip(" \t\r\n"):
        at = len(text) - len(rest)
        step = STEPS[place].get(text[at])
        if step is None:
            return found, (MISPLACED.get(place, Malformed), at)
        if step != "item":
            place, at = step, at + 1
            continue
        end = end_of(text, levels, at)
        if text[at] in "{[" and max(levels[at:end][:max_frame_bytes]) - levels[at] >= max_depth:
            return found, (TooDeep, at)
        if len(text[at:end]) > max_frame_bytes:
            return found, (FrameTooLarge, at)
        if end is None or not is_json(text[at:end]):
            return found, (Truncated if end is None else Malformed, at)
        found.append(text[at:end])
        place, at = "comma" if place in ("first", "value") else "after object", end
    kind = AT_END.get(place, Truncated)
    return found, kind and (kind, len(text))


@given(wire=wires, points=cut_points)
def test_agrees_with_the_naive_twin(wire: bytes, points: list[int]) -> None:
    found, fault = taken(cut(wire, points), **BOUNDS)[0]
    assert ([item.decode("latin-1") for item in found], fault and fault[:2]) == twin(wire, **BOUNDS)


# -- bounds: a typed outcome and flat memory, whatever comes -----------------------------------------------------------

READ = 64 * 1024
MIB = 1024 * 1024


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def fed(chunks: Iterator[bytes], **bounds: Any) -> tuple[int, FramingError | None]:
    """How many items came, and the fault; stops feeding at the fault."""
    parser = JSONArrayStreamParser(**bounds)
    count = 0
    for chunk in chunks:
        count += len(parser.take(chunk))
        if parser.fault is not None:
            break
    else:
        count += len(parser.finish("eof"))
    return count, parser.fault


ENDLESS = {
    "string": (b'[{"a":"', b"x" * READ),
    "escapes": (b'[{"a":"', b'\\"' * (READ // 2)),
    "members": (b"[{", b'"a":1,' * (READ // 6)),
    "separators": (b"[[1", b"\n,1" * (READ // 3)),
    "string item": (b'["', b"x" * READ),
    "number": (b"[1", b"0" * READ),
}


@pytest.mark.parametrize(("head", "body"), ENDLESS.values(), ids=ENDLESS.keys())
def test_an_endless_item_fails_at_its_bound_and_is_not_kept(head: bytes, body: bytes) -> None:
    def work() -> None:
        count, fault = fed((head, *repeat(body, 64)).__iter__(), max_frame_bytes=MIB)
        assert count == 0
        assert isinstance(fault, FrameTooLarge)
        assert (fault.offset, fault.held, fault.limit) == (1, MIB + 1, MIB)

    assert peak_of(work) < 6 * MIB


@pytest.mark.parametrize("head", [b"", b"[", b'[{"a":1}', b'[{"a":1},', b"[]"])
def test_endless_white_space_is_neither_kept_nor_counted(head: bytes) -> None:
    assert peak_of(lambda: fed((head, *repeat(b" \r\n\t" * (READ // 4), 64)).__iter__(), max_frame_bytes=1024)) < MIB


@pytest.mark.parametrize("step", [1, READ, MIB])
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_a_hundred_thousand_levels_fail_at_the_bound(opening: bytes, step: int) -> None:
    wire = b"[1," + opening * 100_000
    count, fault = fed(iter(cut(wire, range(0, len(wire), step))))
    assert (count, type(fault), fault and fault.offset) == (1, TooDeep, 3)


@pytest.mark.parametrize("closing", [b"", b"]" * 100_001])
def test_without_a_bound_depth_still_ends_in_a_typed_outcome(closing: bytes) -> None:
    count, fault = fed(iter([b"[" + b"[" * 100_000 + closing]), max_depth=None)
    assert (count, type(fault), fault and fault.offset) == (0, TooDeep if closing else Truncated, 1)


def test_a_million_tiny_items_in_one_read_are_walked_one_by_one() -> None:
    wire = b"[" + b"1," * 1_000_000 + b"1]"

    parser = JSONArrayStreamParser()
    parser.feed(wire)
    parser.close()
    # watched over the first part only: tracing memory triples the time
    assert peak_of(lambda: sum(1 for _ in islice(parser, 100_000))) < READ
    assert sum(1 for _ in parser) == 900_001


def test_a_million_tiny_items_in_small_reads_leave_nothing_behind() -> None:
    body = b"{}\n," * 1000
    assert peak_of(lambda: fed(iter((b"[", *repeat(body, 1000), b"1]")))) < 8 * READ
