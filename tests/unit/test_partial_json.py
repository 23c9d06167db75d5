"""PartialJSON beyond the vectors: faults, ends, bounds, copies, the sentinel, and how the work grows."""

from __future__ import annotations

import copy
import json
import pickle
import platform
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from streamfold import limits, partial_json
from streamfold.errors import StreamfoldError, UsageError
from streamfold.partial_json import NOTHING, Nothing, PartialJSON, PartialJSONFault, parse_partial_json


def fed(*pieces: str, **settings: Any) -> PartialJSON:
    preview = PartialJSON(**settings)
    for piece in pieces:
        preview.feed(piece)
    return preview


def fault(preview: PartialJSON) -> tuple[str, int]:
    assert preview.error is not None
    return preview.error.code, preview.error.offset


# What is shown.


def test_a_document_as_it_grows() -> None:
    preview = PartialJSON()
    shown = []
    for piece in ('{"ci', 'ty":', '"Par', 'is","n":1', '2,"ok":tr', "ue", "}"):
        preview.feed(piece)
        shown.append(preview.copy())
    assert shown == [
        {},
        {},
        {"city": "Par"},
        {"city": "Paris"},
        {"city": "Paris", "n": 12},
        {"city": "Paris", "n": 12, "ok": True},
        {"city": "Paris", "n": 12, "ok": True},
    ]
    assert preview.complete
    assert preview.error is None


def test_value_is_the_tree_that_grows() -> None:
    preview = fed('{"a":[1,')
    tree = preview.value
    preview.feed('2],"b":"x')
    assert preview.value is tree
    assert tree == {"a": [1, 2], "b": "x"}


def test_previews_only_ever_grow() -> None:
    text = '{"a": [1, -2.5, {"b": "x\\ud83d\\ude00\\n", "c": null}, []], "d": "y", "e": {"f": false}} '
    for mode in ("trailing-strings", "complete"):
        preview, before = PartialJSON(mode), ""
        for character in text:
            preview.feed(character)
            # Brackets and quotes close at the end; without them the later preview begins with the earlier one.
            now = json.dumps(preview.copy() if preview.value is not NOTHING else None).rstrip('"]}')
            assert now.startswith(before)
            before = now if preview.value is not NOTHING else ""


def test_a_repeated_key_takes_its_later_value_and_keeps_its_place() -> None:
    preview = fed('{"a":{"long":"value"},"b":2,"a":')
    assert preview.value == {"a": {"long": "value"}, "b": 2}
    preview.feed("[")
    assert list(preview.copy().items()) == [("a", []), ("b", 2)]  # type: ignore[union-attr]


def test_keys_may_collide_after_replacement() -> None:
    assert fed('{"\\ud800":1,"\\udc00":2}').value == {"\ufffd": 2}


SURROGATES = {
    "raw pair over two pieces": (['"\ud83d', '\ude00"'], "😀"),
    "raw pair in one piece": (['"\ud83d\ude00"'], "😀"),
    "escaped high, raw low": (['"\\ud83d', '\ude00"'], "😀"),
    "raw high, escaped low": (['"\ud83d', "\\ud", 'e00"'], "😀"),
    "raw high, then text": (['"\ud83d', 'x"'], "\ufffdx"),
    "raw high, then the quote": (['"\ud83d', '"'], "\ufffd"),
    "raw low": (['"a\ude00b"'], "a\ufffdb"),
    "two highs": (['"\ud83d\ud83d', '\ude00"'], "\ufffd😀"),
    "high, then an escape": (['"\\ud83d', '\\t"'], "\ufffd\t"),
    "two lows": (['"\\ude00\\ude00"'], "\ufffd\ufffd"),
    "beside other wide text": (['"é😀\ud83d', '\ude00中\udfff"'], "é😀😀中\ufffd"),
}


@pytest.mark.parametrize(("pieces", "text"), SURROGATES.values(), ids=SURROGATES.keys())
def test_surrogates(pieces: list[str], text: str) -> None:
    assert fed(*pieces).value == text
    assert fed(*("".join(pieces))).value == text
    assert fed("{", *pieces, ":", *pieces, "}").value == {text: text}


def test_half_a_pair_is_held_back_however_it_is_written() -> None:
    for half in ("\\ud83d", "\ud83d"):
        assert fed('["a' + half).value == ["a"]
        assert fed('["a', half, "\\u").value == ["a"]


def test_a_half_held_back_stays_so_when_the_text_breaks() -> None:
    for broken in ("\n", "\\x", "\\u00g"):
        preview = fed('["a\\ud83d' + broken)
        assert preview.value == ["a"]
        assert preview.error is not None


def test_white_space_is_only_json_white_space() -> None:
    assert fed(" \t\r\n[ \t\r\n] \t\r\n").complete
    for space in "\f\v\u00a0\u2028\ufeff":
        assert fault(fed("[" + space)) == ("malformed", 1)


def test_digits_are_only_ascii_digits() -> None:
    assert fault(fed("[1\u0661,")) == ("malformed", 2)
    assert fault(fed("[\u0661,")) == ("malformed", 1)


NUMBERS = [
    "0",
    "-0",
    "7",
    "-7",
    "10",
    "0.5",
    "-0.0",
    "1e3",
    "1E+3",
    "1e-3",
    "12.50e1",
    "0e0",
    "1e400",
    "-1e400",
    "5e-324",
    "2.5E1",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_those_of_the_standard_library(text: str) -> None:
    due = json.loads(text)
    for pieces in ([text + " "], [*text, " "], [*text]):
        preview = fed(*pieces)
        preview.close()
        assert repr(preview.value) == repr(due)


@pytest.mark.parametrize("end", [" ", "\t", "\n", "\r", ",", "]"])
def test_delimiters_end_a_number(end: str) -> None:
    assert fed("[1", end).value == [1]


@pytest.mark.parametrize(
    "text", ["[1x", '[1"', "[1[", "[1:", "[1/", "[1\f", "[1-", "[1.5.", "[1e5.", "[0x", "[00", "[-a"]
)
def test_what_cannot_follow_a_number_leaves_it_unshown(text: str) -> None:
    preview = fed(text)
    assert preview.value == []
    assert fault(preview) == ("malformed", len(text) - 1)


def test_an_integer_too_long_for_int_becomes_a_float() -> None:
    digits = "1" + "0" * 10**5
    assert fed(f"[{digits}]").value == [float("inf")]
    assert fed("[", *digits, "]").value == [float("inf")]
    assert fed(f"[-{digits}]").value == [float("-inf")]
    assert parse_partial_json(f"[{digits[:4300]},") == [10**4299]


def test_a_float_of_many_digits() -> None:
    assert fed("[0." + "3" * 10**5 + "]").value == [0.3333333333333333]


# Faults.

FAULTS = {
    "nothing can begin so": ("]", "malformed", 0),
    "element missing": ("[1,,", "malformed", 3),
    "key missing": ('{"a":1,,', "malformed", 7),
    "key not in quotes": ("{1", "malformed", 1),
    "value missing": ('{"a":}', "malformed", 5),
    "colon in an array": ('["a":', "malformed", 4),
    "control character in a key": ('{"a\tb":1}', "malformed", 3),
    "unknown escape in a key": ('{"a\\x', "malformed", 4),
    "capital U": ('"\\U0041', "malformed", 2),
    "literal in capitals": ("[tRue", "malformed", 2),
    "second document": ("[] []", "trailing_data", 3),
    "literal run on": ("nulll", "trailing_data", 4),
    "number then comma": ("1,", "trailing_data", 1),
    "bracket too many": ("[]]", "trailing_data", 2),
    "NUL": ("\0", "malformed", 0),
    "NUL in a string": ('"\0', "malformed", 1),
    "comment": ("// x", "malformed", 0),
    "raw surrogate outside a string": ("[\ud800", "malformed", 1),
}


@pytest.mark.parametrize(("text", "code", "offset"), FAULTS.values(), ids=FAULTS.keys())
def test_faults(text: str, code: str, offset: int) -> None:
    assert fault(fed(text)) == (code, offset)
    assert fault(fed(*text)) == (code, offset)


def test_offsets_count_characters_over_all_pieces() -> None:
    pieces = ['{"é😀', '":"中\\', "n\\u00", 'e9" ']
    assert fault(fed(*pieces, "!")) == ("malformed", len("".join(pieces)))


def test_errors_are_sticky() -> None:
    preview = fed('{"a":[1,"x')
    preview.feed("\n")
    error, value = preview.error, preview.copy()
    assert value == {"a": [1, "x"]}
    for piece in ("", "y", '"]}', "\n"):
        preview.feed(piece)
        assert preview.error is error
        assert preview.value == value
        assert not preview.complete
    preview.close()
    assert preview.error is error


def test_an_error_is_a_small_immutable_value() -> None:
    error = fed("[}").error
    assert error == PartialJSONFault("malformed", 1, "an element or ']' should come here")
    assert str(error) == "an element or ']' should come here (at character 1)"
    assert pickle.loads(pickle.dumps(error)) == error
    assert len({error, fed("[}").error}) == 1
    with pytest.raises(AttributeError):
        error.offset = 2  # type: ignore[misc]


def test_messages_hold_none_of_the_text() -> None:
    for text in (
        '{"secret":"hunter2\n',
        '{"secret" "hunter2"',
        "[secret",
        '["\\secret',
        "[12secret",
        "[] secret",
        "[nosecret",
    ):
        message = str(fed(text).error)
        assert "secret" not in message
        assert "hunter2" not in message


def test_trailing_text_takes_complete_back() -> None:
    preview = fed("{}")
    assert preview.complete
    preview.feed(" \n")
    assert preview.complete
    preview.feed("{")
    assert not preview.complete
    assert preview.value == {}


# The end.


@pytest.mark.parametrize("text", ["12", "-1.5e3", "12 ", "[]", "null", '"a"', ' {"a":1} '])
def test_close_on_a_whole_document(text: str) -> None:
    preview = fed(text)
    preview.close()
    preview.close()
    assert preview.complete
    assert preview.error is None
    assert repr(preview.value) == repr(json.loads(text))


UNFINISHED = [
    "",
    "  ",
    "[",
    "[1",
    "[1,",
    "[12.",
    '{"a',
    '{"a":',
    '"a',
    '"a\\',
    '"a\\u12',
    '"a\\ud83d',
    "tru",
    "-",
    "1.",
    "1e",
    "[nul",
]


@pytest.mark.parametrize("text", UNFINISHED)
@pytest.mark.parametrize("mode", ["trailing-strings", "complete"])
def test_close_inside_the_document(text: str, mode: str) -> None:
    preview = fed(*text, mode=mode)
    before = preview.copy()
    preview.close()
    assert fault(preview) == ("truncated", len(text))
    assert not preview.complete
    assert preview.value == before or text == "[1"


def test_close_shows_a_number_that_touches_the_end() -> None:
    preview = fed('{"a":[1')
    assert preview.value == {"a": []}
    preview.close()
    assert preview.value == {"a": [1]}
    assert fault(preview) == ("truncated", 7)


def test_text_after_close_is_an_error() -> None:
    preview = fed("12")
    preview.close()
    preview.feed("\n")
    assert preview.complete
    preview.feed("3")
    assert fault(preview) == ("trailing_data", 3)
    assert preview.value == 12
    assert not preview.complete


# Bounds.


def test_the_default_bound() -> None:
    deep = "[" * limits.MAX_DEPTH
    assert fed(deep).error is None
    assert fed(deep + "]" * limits.MAX_DEPTH).complete
    preview = fed(deep + "[")
    assert fault(preview) == ("too_deep", limits.MAX_DEPTH)
    assert preview.value == fed(deep).value


def test_depth_counts_what_is_open_not_what_was() -> None:
    assert fed("[[],[],{},[]]", max_depth=2).complete
    assert fault(fed('[{"a":[', max_depth=2)) == ("too_deep", 6)
    assert fault(fed('{"a":1,"b":{"c":{', max_depth=2)) == ("too_deep", 16)
    assert fault(fed("[", max_depth=0)) == ("too_deep", 0)
    assert fed("7 ", max_depth=0).complete


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_no_bound_and_no_recursion(opening: str, closing: str) -> None:
    levels = 50_000
    preview = fed(opening * levels + "[1,2]", max_depth=None)
    assert preview.error is None
    duplicate: Any = preview.copy()
    preview.feed(closing * levels)
    assert preview.complete
    for _ in range(levels):
        duplicate = duplicate[0] if type(duplicate) is list else duplicate["a"]
    assert duplicate == [1, 2]


# Copies.


def test_a_copy_stands_still() -> None:
    preview = fed('{"a":[{"b":"x')
    duplicate = preview.copy()
    preview.feed('y"},2,')
    assert duplicate == {"a": [{"b": "x"}]}
    assert preview.value == {"a": [{"b": "xy"}, 2]}


def test_a_copy_shares_nothing() -> None:
    preview = fed('{"a":[{}],"b":{"c":[]}}')
    duplicate: Any = preview.copy()
    duplicate["a"][0]["x"] = 1
    duplicate["a"].append(2)
    duplicate["b"]["c"].append(3)
    assert preview.value == {"a": [{}], "b": {"c": []}}


@pytest.mark.parametrize(("text", "value"), [("", NOTHING), ('"ab', "ab"), ("null", None), ("[1,2]", [1, 2])])
def test_a_copy_of_anything(text: str, value: object) -> None:
    assert fed(text).copy() == value


# The sentinel.


def test_nothing_is_one_object() -> None:
    assert PartialJSON().value is NOTHING
    assert PartialJSON().copy() is NOTHING
    assert Nothing.NOTHING is NOTHING
    assert copy.copy(NOTHING) is NOTHING
    assert copy.deepcopy([NOTHING])[0] is NOTHING
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(NOTHING, protocol)) is NOTHING


def test_nothing_is_falsy_and_neither_null_nor_empty() -> None:
    assert not NOTHING
    empty: list[object] = [None, False, 0, "", {}, []]
    assert NOTHING not in empty
    assert repr(NOTHING) == str(NOTHING) == "NOTHING"


# One call.


def test_parse_partial_json() -> None:
    assert parse_partial_json('{"a":"b') == {"a": "b"}
    assert parse_partial_json('{"a":"b', mode="complete") == {}
    assert parse_partial_json("[[[", max_depth=2) == [[]]
    assert parse_partial_json('{"a":1}}') == {"a": 1}


@pytest.mark.parametrize("text", ["", " ", "12", "tru", "}", "\ufeff{}", "\ud800"])
def test_the_default_where_there_is_no_preview(text: str) -> None:
    assert parse_partial_json(text) is NOTHING
    assert parse_partial_json(text, default=None) is None
    assert parse_partial_json(text, default={}) == {}


@pytest.mark.parametrize(("text", "value"), [("null", None), ("false", False), ("{", {}), ('"', ""), ("0 ", 0)])
def test_an_empty_preview_is_not_the_default(text: str, value: object) -> None:
    assert repr(parse_partial_json(text, default="default")) == repr(value)


def test_huge_texts_do_not_raise() -> None:
    assert parse_partial_json("1" * 10**5) is NOTHING
    assert parse_partial_json("[" * 10**5) == fed("[" * limits.MAX_DEPTH).value
    assert parse_partial_json('"' + "\ud800" * 10**5) == "\ufffd" * (10**5 - 1)
    assert parse_partial_json('"' + "\\" * 10**5) == "\\" * (10**5 // 2)


# Misuse.


@pytest.mark.parametrize("text", [b"{}", None, 1, bytearray(b"{}"), ["{}"]])
def test_only_str_is_text(text: Any) -> None:
    preview = fed("[1,")
    with pytest.raises(UsageError, match="takes str"):
        preview.feed(text)
    assert preview.error is None
    assert preview.value == [1]
    with pytest.raises(StreamfoldError):
        parse_partial_json(text)


def test_settings_are_checked() -> None:
    with pytest.raises(UsageError, match="trailing-strings, complete"):
        PartialJSON("strings")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="max_depth is -1"):
        PartialJSON(max_depth=-1)


# How the work grows. Counted, not timed: calls of functions, and the memory a piece needs.


def items(item: object) -> Callable[[int], str]:
    return lambda size: json.dumps({"items": [item] * (size // len(json.dumps(item)))})


SHAPES: dict[str, Callable[[int], str]] = {
    "one string": lambda size: json.dumps({"a": "line of text\n" * (size // 13)}),
    "one wide string": lambda size: json.dumps({"a": "é中😀" * (size // 3)}, ensure_ascii=False),
    "escapes": lambda size: json.dumps("é中😀" * (size // 24)),
    "edits": items({"old": "before\n", "new": "after\n"}),
    "objects": items({"a": {"b": [True, None]}}),
    "numbers": items(-12.5e3),
    "one number": lambda size: "1" * size + " ",
    "one key": lambda size: '{"' + "k" * size + '":1}',
    "white space": lambda size: " " * size + "1 ",
    "levels": lambda size: "[" * (size // 2) + "]" * (size // 2),
}


def calls(pieces: Iterable[str]) -> int:
    """Functions called to preview the pieces, C functions included."""
    preview, count = PartialJSON(max_depth=None), 0

    def count_calls(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        for piece in pieces:
            preview.feed(piece)
            _ = preview.value
    finally:
        sys.setprofile(before)
    assert preview.complete
    return count


@pytest.mark.parametrize("step", [1, 20])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_calls_grow_with_the_text(shape: Callable[[int], str], step: int) -> None:
    def pieces(size: int) -> list[str]:
        text = shape(size)
        return [text[at : at + step] for at in range(0, len(text), step)]

    small, large = calls(pieces(2_000)), calls(pieces(16_000))
    assert large < 8.5 * small


@pytest.mark.skipif(platform.python_implementation() != "CPython", reason="a string with one owner grows in place")
@pytest.mark.parametrize(
    ("opening", "settings"),
    [('{"a":"', {}), ('["', {}), ('"', {}), ('["', {"mode": "complete"}), ('{"', {}), ("[", {})],
    ids=["member", "element", "document", "hidden", "key", "number"],
)
def test_growing_text_is_not_copied(opening: str, settings: dict[str, Any]) -> None:
    size = 1_000_000
    tracemalloc.start()
    try:
        preview = fed(opening + "1", "1" * size, "1" * 20, **settings)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(10):
            preview.feed("1" * 20)
            _ = preview.value
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size <= held
    assert peak - held < size / 10


def test_all_names_exist() -> None:
    assert all(hasattr(partial_json, name) for name in partial_json.__all__)
