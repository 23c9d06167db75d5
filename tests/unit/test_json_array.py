"""The JSON-array parser: what it yields and when, which fault it raises and where."""

from __future__ import annotations

import json
import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from streamfold.errors import (
    Empty,
    FrameTooLarge,
    FramingError,
    Malformed,
    NotJSONArray,
    TooDeep,
    TrailingData,
    Truncated,
    UsageError,
)
from streamfold.framing.json_array import JSONArrayStreamParser

BOM = b"\xef\xbb\xbf"


def outcome(chunks: list[bytes], **bounds: Any) -> tuple[list[str], type[FramingError] | None, int | None]:
    parser = JSONArrayStreamParser(**bounds)
    items: list[str] = []
    try:
        for chunk in chunks:
            parser.feed(chunk)
            items += parser
        parser.close()
        items += parser
    except FramingError as fault:
        return items, type(fault), fault.offset
    return items, None, None


def taken(chunks: list[bytes], **bounds: Any) -> tuple[list[str], type[FramingError] | None, int | None]:
    parser = JSONArrayStreamParser(**bounds)
    items = [item for chunk in chunks for item in parser.take(chunk)] + parser.finish("eof")
    fault = parser.fault
    return [item.decode("utf-8", "replace") for item in items], fault and type(fault), fault and fault.offset


def cut(wire: bytes, step: int) -> list[bytes]:
    return [wire[at : at + step] for at in range(0, len(wire), step)]


CASES: dict[str, tuple[bytes, list[str], type[FramingError] | None, int | None]] = {
    # wire, items, fault, offset
    "text comes as it was sent": (b'[{ "a" : 1.0 }, {"b":\t[ ]}]', ['{ "a" : 1.0 }', '{"b":\t[ ]}'], None, None),
    "scalars": (b'[1, -2.5e3,true ,null,"x"]', ["1", "-2.5e3", "true", "null", '"x"'], None, None),
    "a number that the end completes": (b"[1,23", ["1", "23"], Truncated, 5),
    "a literal that the end cuts": (b"[1,tru", ["1"], Truncated, 3),
    "a number that the end cuts": (b"[-", [], Truncated, 1),
    "a bad literal": (b"[nul]", [], Malformed, 1),
    "a bad number": (b"[1,01]", ["1"], Malformed, 3),
    "a number, then no comma": (b'[1"x"]', ["1"], Malformed, 2),
    "a bare word": (b"[xyz]", [], Malformed, 1),
    "not a comma": (b"[1;2]", ["1"], Malformed, 2),
    "a comma first": (b"[,1]", [], Malformed, 1),
    "a comma last": (b'[{"a":1}\n,\r\n]', ['{"a":1}'], Malformed, 12),
    "a bracket of the other kind": (b'[{"a":1]', [], Malformed, 1),
    "balanced, but no JSON": (b'[{}, {"a" 2}, {}]', ["{}"], Malformed, 5),
    "a comma before the bracket": (b'[{"a":1,}]', [], Malformed, 1),
    "a bad escape": (b'["\\x"]', [], Malformed, 1),
    "bad UTF-8 outside strings": (b"[{\xff}]", [], Malformed, 1),
    "control characters in strings": (b'[{"a":"\x00\n\t"}]', ['{"a":"\x00\n\t"}'], None, None),
    "NaN and Infinity": (b'[NaN,{"a":-Infinity}]', ["NaN", '{"a":-Infinity}'], None, None),
    "no such thing as -NaN": (b"[-NaN]", [], Malformed, 1),
    "half a surrogate pair": (b'["\\ud800",{"a":"\\udc00x"}]', ['"\\ud800"', '{"a":"\\udc00x"}'], None, None),
    "bad UTF-8 in strings": (b'["a\xffb\xe2\x82"]', ['"a\ufffdb\ufffd"'], None, None),
    "5000 digits": (b"[" + b"7" * 5000 + b"]", ["7" * 5000], None, None),
    "5000 digits where the strict decoder gives up": (
        b"[[NaN," + b"7" * 5000 + b"]]",
        ["[NaN," + "7" * 5000 + "]"],
        None,
        None,
    ),
    "objects without an array": (b'{"a":1} {"b":2}\n{"c":3}', ['{"a":1}', '{"b":2}', '{"c":3}'], None, None),
    "the second object is cut": (b'{"a":1}\n{"b"', ['{"a":1}'], Truncated, 8),
    "arrays after arrays": (b"[1][2] [] [3]", ["1", "2", "3"], None, None),
    "the second array is cut": (b"[1][2", ["1", "2"], Truncated, 5),
    "an object after an array": (b"[1]{}", ["1"], TrailingData, 3),
    "an array after an object": (b"{}[1]", ["{}"], TrailingData, 2),
    "a comma after an array": (b"[1],[2]", ["1"], TrailingData, 3),
    "text after an object": (b"{} ok", ["{}"], TrailingData, 3),
    "one byte order mark": (BOM + b"[1]", ["1"], None, None),
    "offsets count the byte order mark": (BOM + b'[1,{"a"}]', ["1"], Malformed, 6),
    "two byte order marks": (BOM + BOM + b"[1]", [], NotJSONArray, 3),
    "a byte order mark too late": (b" " + BOM + b"[1]", [], NotJSONArray, 1),
    "nothing but a byte order mark": (BOM, [], Empty, 3),
    "a byte order mark cut short": (BOM[:2], [], Truncated, 0),
    "half a byte order mark, then text": (b"\xef\xbb[1]", [], NotJSONArray, 0),
    "white space before something else": (b" \n<html>", [], NotJSONArray, 2),
    "white space that JSON does not know": (b"[\x0b1]", [], Malformed, 1),
    "nothing": (b"", [], Empty, 0),
    "white space": (b" \r\n", [], Empty, 3),
}


@pytest.mark.parametrize("step", [1, 2, 7, 4096])
@pytest.mark.parametrize(("wire", "items", "fault", "offset"), CASES.values(), ids=CASES.keys())
def test_outcome(
    wire: bytes, items: list[str], fault: type[FramingError] | None, offset: int | None, step: int
) -> None:
    assert outcome(cut(wire, step)) == (items, fault, offset)
    assert taken(cut(wire, step)) == (items, fault, offset)


BOUNDED: dict[str, tuple[bytes, dict[str, int], list[str], type[FramingError] | None, int | None]] = {
    # wire, bounds, items, fault, offset
    "just within": (b'[{"a":12}]', {"max_frame_bytes": 8}, ['{"a":12}'], None, None),
    "a byte over": (b'[1,{"a":123}]', {"max_frame_bytes": 8}, ["1"], FrameTooLarge, 3),
    "a byte over, cut before its end": (b'[{"a":1234', {"max_frame_bytes": 8}, [], FrameTooLarge, 1),
    "just within, cut before its end": (b'[{"a":12', {"max_frame_bytes": 8}, [], Truncated, 1),
    "a string within": (b'["123456"]', {"max_frame_bytes": 8}, ['"123456"'], None, None),
    "a string over": (b'["1234567"]', {"max_frame_bytes": 8}, [], FrameTooLarge, 1),
    "a string that escapes over": (b'["12345\\""]', {"max_frame_bytes": 8}, [], FrameTooLarge, 1),
    "a number within": (b"[12345678]", {"max_frame_bytes": 8}, ["12345678"], None, None),
    "a number within, at the end": (b"[12345678", {"max_frame_bytes": 8}, ["12345678"], Truncated, 9),
    "a number over": (b"[123456789]", {"max_frame_bytes": 8}, [], FrameTooLarge, 1),
    "a number over, at the end": (b"[123456789", {"max_frame_bytes": 8}, [], FrameTooLarge, 1),
    "white space does not count": (b"[1%b,2]" % (b" \n" * 99), {"max_frame_bytes": 8}, ["1", "2"], None, None),
    "small items do not add up": (b"[%b1]" % (b"1\n," * 99), {"max_frame_bytes": 8}, ["1"] * 100, None, None),
    "too large before it is malformed": (b'[{"a" 234}]', {"max_frame_bytes": 8}, [], FrameTooLarge, 1),
    "levels just within": (b'[{"a":[{}]}]', {"max_depth": 3}, ['{"a":[{}]}'], None, None),
    "a level too many": (b'[[1],{"a":[{"b":[]}]}]', {"max_depth": 3}, ["[1]"], TooDeep, 5),
    "siblings do not add up": (b"[[[],[],[]],[[[]]]]", {"max_depth": 3}, ["[[],[],[]]", "[[[]]]"], None, None),
    "brackets in strings are no levels": (b'["[[[[",["{{{{"]]', {"max_depth": 1}, ['"[[[["', '["{{{{"]'], None, None),
    "a bare object nests as an item does": (b'{"a":{}}', {"max_depth": 1}, [], TooDeep, 0),
    "too deep comes before too large": (b'[[[["x"]]]]', {"max_depth": 2, "max_frame_bytes": 3}, [], TooDeep, 1),
    "too large comes before too deep": (b'[["x",[[]]]]', {"max_depth": 2, "max_frame_bytes": 4}, [], FrameTooLarge, 1),
}  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 7, 4096])
@pytest.mark.parametrize(("wire", "bounds", "items", "fault", "offset"), BOUNDED.values(), ids=BOUNDED.keys())
def test_bounds(
    wire: bytes,
    bounds: dict[str, int],
    items: list[str],
    fault: type[FramingError] | None,
    offset: int | None,
    step: int,
) -> None:
    assert outcome(cut(wire, step), **bounds) == (items, fault, offset)
    assert taken(cut(wire, step), **bounds) == (items, fault, offset)


@pytest.mark.parametrize("step", [1, 3, 4096])
def test_what_was_held_does_not_depend_on_the_cuts(step: int) -> None:
    parser = JSONArrayStreamParser(max_frame_bytes=8)
    for chunk in cut(b'[{"a":"' + b"x" * 100 + b'"}]', step):
        parser.take(chunk)
    assert isinstance(parser.fault, FrameTooLarge)
    assert (parser.fault.held, parser.fault.limit, parser.fault.offset) == (9, 8, 1)


def test_the_default_bounds_let_200_levels_and_8_mib_pass() -> None:
    assert outcome([b"[" + b"[" * 200 + b"]" * 200 + b"]"])[1] is None
    assert outcome([b"[" + b"[" * 201 + b"]" * 201 + b"]"])[1:] == (TooDeep, 1)
    size = 8 * 1024 * 1024
    assert outcome([b'["' + b"x" * (size - 2) + b'"]'])[1] is None
    assert outcome([b'["' + b"x" * (size - 1) + b'"]'])[1:] == (FrameTooLarge, 1)


def test_no_bounds() -> None:
    wire = b"[" + b"[" * 300 + b"]" * 300 + b',"' + b"x" * (9 * 1024 * 1024) + b'"]'
    items, fault, _ = outcome(cut(wire, 1 << 20), max_frame_bytes=None, max_depth=None)
    assert (len(items), fault) == (2, None)


# -- when items come ---------------------------------------------------------------------------------------------------

FEEDS: dict[str, list[tuple[bytes, list[str]]]] = {
    "an object with its last byte": [(b"[", []), (b'{"a":1', []), (b"}", ['{"a":1}']), (b"\n", []), (b"]", [])],
    "a number with the byte after it": [(b"[1", []), (b"2", []), (b",", ["12"]), (b"3", []), (b" ", ["3"]), (b"]", [])],
    "a literal with the bracket": [(b"[null", []), (b"]", ["null"])],
    "a string with its quote": [(b'["a\\', []), (b'"', []), (b'"', ['"a\\""']), (b"]", [])],
    "two and a half": [(b'[{"a":1},{"b":2},{"c"', ['{"a":1}', '{"b":2}']), (b":3}", ['{"c":3}']), (b"]", [])],
    "the vendor's reads": [
        (b'[{\n  "a": 1\n}', ['{\n  "a": 1\n}']),
        (b'\n,\r\n{\n  "b": [\n    2\n  ]\n}', ['{\n  "b": [\n    2\n  ]\n}']),
        (b"\n]", []),
    ],
    "the vendor's layout in two halves": [
        (b'[{\n  "a": 1\n}\n,\r\n{\n  "b": {\n    "c": 3\n  },\n', ['{\n  "a": 1\n}']),
        (b'  "d": 4\n}\n,\r\n{', ['{\n  "b": {\n    "c": 3\n  },\n  "d": 4\n}']),
        (b"}", ["{}"]),
        (b"\n]", []),
    ],
    # where the strict decoder would wait for more bytes, though the item is whole
    "half a surrogate pair at the end of a read": [(b'[{"a":"\\ud800"}', ['{"a":"\\ud800"}']), (b"]", [])],
    "half a surrogate pair, then a comma": [(b'[{"a":"\\ud800"} ,', ['{"a":"\\ud800"}']), (b"{}]", ["{}"])],
    "a half item without bytes to follow": [(b'[{"a":', []), (b"", []), (b"", []), (b"1}", ['{"a":1}']), (b"]", [])],
}


@pytest.mark.parametrize("feeds", FEEDS.values(), ids=FEEDS.keys())
def test_items_come_as_soon_as_they_are_whole(feeds: list[tuple[bytes, list[str]]]) -> None:
    iterated, taking = JSONArrayStreamParser(), JSONArrayStreamParser()
    for chunk, due in feeds:
        iterated.feed(chunk)
        assert list(iterated) == due
        assert [item.decode() for item in taking.take(chunk)] == due
    iterated.close()
    assert list(iterated) == taking.finish("eof") == []
    assert taking.fault is None


FAULTS_AT_ONCE = {
    "a page": b"<",
    "an event stream": b"d",
    "a number": b"7",
    "text after the array": b"[]x",
    "a second comma": b"[1,,",
    "no comma": b'[{"a":1}{',
    "a broken item": b'[{"a" 1}',
    "a half item that waited": b'[{"a":[1, {}]]',
}


@pytest.mark.parametrize("wire", FAULTS_AT_ONCE.values(), ids=FAULTS_AT_ONCE.keys())
def test_a_fault_needs_no_more_bytes_than_it_takes(wire: bytes) -> None:
    for step in (1, 4096):
        parser = JSONArrayStreamParser()
        for chunk in cut(wire, step):
            assert parser.fault is None
            parser.take(chunk)
        assert parser.fault is not None


def test_what_was_fed_ahead_is_walked_as_it_is_asked_for() -> None:
    parser = JSONArrayStreamParser()
    parser.feed(b'[1,{"a"')
    parser.feed(b":2},")
    assert next(parser) == "1"
    parser.feed(b"3,4x")
    assert [next(parser), next(parser)] == ['{"a":2}', "3"]
    with pytest.raises(StopIteration):
        next(parser)
    parser.feed(b"]")
    with pytest.raises(Malformed):
        next(parser)


# -- faults ------------------------------------------------------------------------------------------------------------

HINTS = {
    b"data: {}\n\n": "an event stream",
    b": keep-alive\n\n": "an event stream",
    b"event: x\n": "an event stream or plain text",
    b"<!doctype html>": "an HTML or XML page",
    b"\x1f\x8b\x08": "compressed",
    b"Bad Gateway": "plain text",
    b'"a string"': "plain text",
    b"42": "plain text",
    b"\x00\x01": "binary data",
}


@pytest.mark.parametrize(("wire", "hint"), HINTS.items(), ids=HINTS.values())
def test_the_first_byte_says_what_it_looks_like(wire: bytes, hint: str) -> None:
    for chunk in (wire, wire[:1]):
        parser = JSONArrayStreamParser()
        parser.feed(chunk)
        with pytest.raises(NotJSONArray, match=hint):
            next(parser)


def test_a_fault_is_sticky_and_piles_nothing_up() -> None:
    parser = JSONArrayStreamParser()
    parser.feed(b"[1,]")
    assert next(parser) == "1"
    depths: list[int] = []
    for _ in range(3):
        with pytest.raises(Malformed) as caught:
            next(parser)
        assert caught.value is parser.fault
        depths.append(len(caught.traceback))
        parser.feed(b"[2]")  # of no use any more
    assert len(set(depths)) == 1
    assert parser.take(b"[3]") == parser.finish("eof") == []


@pytest.mark.parametrize("wire", [b"", b"x", b"[", b"[1 2]", b"[1]x", b"[[[]]]", b'["long"]'])
def test_faults_pickle(wire: bytes) -> None:
    parser = JSONArrayStreamParser(max_frame_bytes=5, max_depth=1)
    parser.take(wire)
    parser.finish("eof")
    fault = parser.fault
    assert fault is not None
    copy = pickle.loads(pickle.dumps(fault))
    assert (type(copy), str(copy), copy.offset) == (type(fault), str(fault), fault.offset)


def test_messages_hold_nothing_of_the_payload() -> None:
    for wire in (b'[{"secret" 1}]', b'["secret" "secret"]', b"[1]secret", b"secret", b'["secret'):
        parser = JSONArrayStreamParser()
        parser.take(wire)
        parser.finish("eof")
        assert "secret" not in str(parser.fault)


# -- ends, misuse, places ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cut", "cancel"])
@pytest.mark.parametrize(
    "wire", [b"", b" ", BOM[:1], b"[", b"[1", b'[{"a":', b"[1,", b'{"a":1}{', b'[{"a":1}\n,\r\n{\n "b']
)
def test_a_cut_drops_the_tail(wire: bytes, how: str) -> None:
    parser = JSONArrayStreamParser()
    parser.take(wire)
    assert parser.finish(how) == []
    assert (parser.fault, list(parser)) == (None, [])


def test_a_cut_keeps_what_was_whole_and_the_fault_before_it() -> None:
    parser = JSONArrayStreamParser()
    parser.feed(b'[1,{"a":2},3')
    assert parser.finish("cut") == [b"1", b'{"a":2}']
    faulty = JSONArrayStreamParser()
    faulty.take(b"[1,,")
    faulty.finish("cancel")
    assert isinstance(faulty.fault, Malformed)


def test_closing_twice_is_no_misuse_but_feeding_then_is() -> None:
    parser = JSONArrayStreamParser()
    parser.feed(b"[1]")
    parser.close()
    parser.close()
    assert list(parser) == ["1"]
    for feed in (parser.feed, parser.take):
        with pytest.raises(UsageError, match="closed"):
            feed(b"[2]")
    assert parser.finish("eof") == parser.finish("cut") == []


@pytest.mark.parametrize("data", ["[1]", None, [91, 93], 3])
def test_only_bytes_can_be_fed(data: Any) -> None:
    with pytest.raises(UsageError, match="bytes"):
        JSONArrayStreamParser().feed(data)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_can_be_fed(kind: Any) -> None:
    chunks = cut(b'[{"a":1}\n,\r\n{"b":2}]', 5)
    parser = JSONArrayStreamParser()
    buffer = kind(chunks[0])
    parser.feed(buffer)
    if kind is bytearray:
        buffer[:] = b"xxxxx"  # the parser has a copy
    for chunk in chunks[1:]:
        parser.feed(kind(chunk))
    parser.close()
    assert list(parser) == ['{"a":1}', '{"b":2}']


def test_a_bound_below_one_byte_is_misuse() -> None:
    with pytest.raises(UsageError, match="max_frame_bytes"):
        JSONArrayStreamParser(max_frame_bytes=0)


@pytest.mark.parametrize("step", [1, 7, 50, 4096, 1 << 30])
@pytest.mark.parametrize("fast", [True, False])
def test_offsets(fast: bool, step: int) -> None:
    wire = BOM + b' [{"a": 1}\n,\r\n"b" ,\n3\n,\t{"d":1\n,"e":4},[{}]\n,{\n}\n,\r\n{"a": 1}]\n[5,{"a": 1}\n] '
    wire += b"[" + b'{"a": 1}\n,  ' * 20_000 + b"6]"  # longer than one piece of a read
    parser = JSONArrayStreamParser()
    parser.fast = fast
    end = 0
    count = 0
    for read in (*cut(wire, step), None):
        items = parser.finish("eof") if read is None else parser.take(read)
        for k, item in enumerate(items):
            offset = parser.offset_of(k)
            assert offset >= end
            assert wire[end:offset].strip(b" \t\r\n,[]") == (b"" if end else BOM)
            end = offset + len(item)
            assert wire[offset:end] == item
        count += len(items)
        with pytest.raises(IndexError):
            parser.offset_of(len(items))
    assert (count, parser.fault) == (20_010, None)


# -- the short way -----------------------------------------------------------------------------------------------------


class Counting(JSONArrayStreamParser):
    """Counts how often the general reader reads an item, or a part of one."""

    read = 0

    def _read_item(self) -> bytes | None:
        self.read += 1
        return super()._read_item()


def vendors(count: int) -> bytes:
    part = {"text": 'a "quoted" {word}\n,', "thought": True}
    answer = {"candidates": [{"content": {"parts": [part], "role": "model"}}], "usage": {"total": 12}}
    return b"[" + b"\n,\r\n".join([json.dumps(answer, indent=2).encode()] * count) + b"\n]"


@pytest.mark.parametrize("step", [100, 1000, 4096, 65536, 1 << 30])
def test_the_vendors_layout_never_needs_the_general_reader(step: int) -> None:
    count = 2000
    parser = Counting()
    wire = vendors(count)
    items = [item for read in cut(wire, step) for item in parser.take(read)]
    assert (len(items), parser.finish("eof"), parser.fault) == (count, [], None)
    # an item that spans more than two reads does; and a read that ends inside an escape or a literal
    assert step == 100 or parser.read <= len(wire) // step // 20


def test_reads_of_one_item_never_need_the_general_reader() -> None:
    parser = Counting()
    first, *rest = vendors(50).split(b"\n,\r\n")
    reads = [first, *(b"\n,\r\n" + item for item in rest)]
    assert [len(parser.take(read)) for read in reads] == [1] * 50
    assert (parser.read, parser.finish("eof"), parser.fault) == (0, [], None)


def test_an_idle_stream_holds_little() -> None:
    item = b'{"a":"' + b"x" * 1000 + b'"}'
    tracemalloc.start()
    try:
        parser = JSONArrayStreamParser()
        parser.take(b"[" + b"\n,\r\n".join([item] * 200))
        parser.take(b"\n,\r\n" + item)
        assert tracemalloc.get_traced_memory()[0] < 8 * 1024
    finally:
        tracemalloc.stop()


# -- recordings --------------------------------------------------------------------------------------------------------


def test_recordings() -> None:
    folder = Path(os.environ.get("STREAMFOLD_SHARED", "../shared"), "captures", "gemini-json-array")
    if not folder.is_dir():
        if os.environ.get("STREAMFOLD_REQUIRE_SHARED") == "1":
            pytest.fail(f"no recordings at {folder}")
        pytest.skip(f"no recordings at {folder}")
    for file in sorted(folder.glob("*.json")):
        wire = file.read_bytes()
        for step in (1, 64, 4096, 1 << 30):
            for run in (outcome, taken):
                items, fault, _ = run(cut(wire, step))
                assert ([json.loads(item) for item in items], fault) == (json.loads(wire), None), file.name
