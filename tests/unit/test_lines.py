"""Lines for people: what is made harmless, how text is measured, wrapped and cut into lines as it grows."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold.views.lines import Flow, Line, Span, cells, neutral, neutral_json, one_line, plain, size, wrap

# -- harmless text ----------------------------------------------------------------------------------------------------

NEUTRAL = {
    "plain text": ("plain text, with\ttabs\nand lines", "plain text, with\ttabs\nand lines"),
    "an escape sequence": ("\x1b[2J", "␛[2J"),
    "a window title": ("\x1b]0;x\x07", "␛]0;x␇"),
    "a C1 sequence": ("\x9b31m", "\ufffd31m"),
    "backspaces": ("rm\b\bls", "rm␈␈ls"),
    "a carriage return": ("safe\revil", "safe␍evil"),
    "delete": ("\x7f", "␡"),
    "NUL": ("\0", "␀"),
    "a turn of the direction": ("\u202etxt.exe\u2066", "\ufffdtxt.exe\ufffd"),
    "other line ends": ("a\u2028b\u2029c\x85d", "a⏎b⏎c\ufffdd"),
    "half a surrogate pair": ("\ud83d", "\ufffd"),
    "letters of all kinds": ("é 東京 👩‍👩‍👧 עברית", "é 東京 👩‍👩‍👧 עברית"),
}


@pytest.mark.parametrize(("text", "shown"), NEUTRAL.values(), ids=NEUTRAL.keys())
def test_neutral(text: str, shown: str) -> None:
    assert neutral(text) == shown


@given(st.text(st.characters(max_codepoint=0x2100) | st.characters()))
def test_nothing_neutral_is_obeyed_by_a_terminal(text: str) -> None:
    left = set(neutral(text)) - {"\n", "\t"}
    assert not [c for c in left if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]
    neutral(text).encode()
    assert neutral(neutral(text)) == neutral(text)


@given(st.text())
def test_neutral_json_means_the_same(text: str) -> None:
    line = neutral_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(line) == {"text": text}
    assert not [c for c in line if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]


def test_one_line() -> None:
    assert one_line("a\n b\r\n\tc\x1b") == "a b c␛"
    assert one_line("x" * 20, limit=10) == "xxxxxxxxx…"
    assert one_line("x" * 10, limit=10) == "x" * 10


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (12_345_678, "12.3 MB")])
def test_size(count: int, words: str) -> None:
    assert size(count) == words


# -- width ------------------------------------------------------------------------------------------------------------

CELLS = {"abc": 3, "é": 1, "e\u0301": 1, "東京": 4, "👍": 2, "a\u200db": 2, "\u2764\ufe0f": 2, "": 0}


@pytest.mark.parametrize(("text", "count"), CELLS.items())
def test_cells(text: str, count: int) -> None:
    assert cells(text) == count


# -- wrapping ---------------------------------------------------------------------------------------------------------

WRAPPED = {
    "nothing": ("", 10, [""]),
    "what fits": ("a b c", 10, ["a b c"]),
    "between words": ("one two three four", 9, ["one two", "three", "four"]),
    "exactly": ("one two three", 7, ["one two", "three"]),
    "blanks at the end of a row": ("one   two", 4, ["one", "two"]),
    "a word longer than a row": ("a donaudampfschiff b", 6, ["a", "donaud", "ampfsc", "hiff b"]),
    "a word longer than a row, first": ("donaudampfschiff", 6, ["donaud", "ampfsc", "hiff"]),
    "wide characters": ("東京は雨です", 5, ["東京", "は雨", "です"]),
    "wide characters among words": ("in 東京 rain", 6, ["in 東", "京", "rain"]),
    "no full stop at the begin of a row": ("東京は。", 6, ["東京", "は。"]),
    "an indented line": ("  one two three", 9, ["  one two", "  three"]),
    "an item of a list": ("- one two three", 9, ["- one two", "  three"]),
    "a numbered item": ("12. one two three", 11, ["12. one two", "    three"]),
    "an indentation too deep to keep": ("        one two", 10, ["", "one two"]),
    "tabs": ("\ta", 10, ["    a"]),
}


@pytest.mark.parametrize(("text", "width", "rows"), WRAPPED.values(), ids=WRAPPED.keys())
def test_wrap(text: str, width: int, rows: list[str]) -> None:
    assert [plain(row) for row in wrap(Line((Span(text),)), width)] == rows


def test_wrap_keeps_styles_and_gutters() -> None:
    line = Line((Span("one ", "name"), Span("two three", "dim")), "│ ")
    assert wrap(line, 9) == [
        Line((Span("one ", "name"), Span("two", "dim")), "│ "),
        Line((Span("three", "dim"),), "│ ", below=True),
    ]


def test_wrap_indents_what_hangs_below_a_key() -> None:
    line = Line((Span("key", "key"), Span(": "), Span("a long value", "value")), "  ")
    assert [plain(row) for row in wrap(line, 12)] == ["  key: a", "    long", "    value"]


words = st.text(
    st.sampled_from("ab -é東👍\u0301。") | st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30
)


@given(pieces=st.lists(words, max_size=8), width=st.integers(4, 20))
def test_rows_fit_and_keep_every_character(pieces: list[str], width: int) -> None:
    spans = tuple(Span(piece) for piece in pieces)
    rows = wrap(Line(spans), width)
    assert all(cells(plain(row)) <= width for row in rows)
    shown = "".join(span.text for row in rows for span in row.spans)
    assert shown.replace(" ", "") == "".join(pieces).replace(" ", "")


@given(pieces=st.lists(words, min_size=1, max_size=8), width=st.integers(4, 20))
def test_rows_stay_as_they_are_while_the_line_grows(pieces: list[str], width: int) -> None:
    spans: tuple[Span, ...] = ()
    for piece in pieces:
        before = wrap(Line(spans), width)[:-1]
        spans += (Span(piece),)
        assert [plain(row) for row in wrap(Line(spans), width)[: len(before)]] == [plain(row) for row in before]


# -- growing text -----------------------------------------------------------------------------------------------------

FLOWS = {
    "lines": (["a\nb"], ["a", "b"]),
    "one line in pieces": (["a", "b\n", "c"], ["ab", "c"]),
    "empty lines between": (["a\n\n\nb"], ["a", "", "", "b"]),
    "empty lines around": (["\n\na\n", "\n"], ["a"]),
    "blanks are no ink": (["a\n", "   \n\t\n", "b"], ["a", "", "", "b"]),
    "CRLF": (["a\r\nb\r\n"], ["a", "b"]),
    "CRLF in two pieces": (["a\r", "\nb"], ["a", "b"]),
    "a carriage return alone": (["a\r", "b\r"], ["a␍b␍"]),
    "nothing": (["", "\n"], []),
}


@pytest.mark.parametrize(("pieces", "lines"), FLOWS.values(), ids=FLOWS.keys())
def test_flow(pieces: list[str], lines: list[str]) -> None:
    assert flowed(pieces) == lines


@given(text=st.text(st.sampled_from("ab \r\n\t\x1b")), points=st.lists(st.integers(0, 40), max_size=5))
def test_how_text_was_cut_changes_no_line(text: str, points: list[int]) -> None:
    cuts = [0, *sorted(point for point in points if point < len(text)), len(text)]
    assert flowed([text[a:b] for a, b in pairwise(cuts)]) == flowed([text])


@given(pieces=st.lists(st.text(st.sampled_from("ab -é東\n"), max_size=12), max_size=12), width=st.integers(4, 12))
def test_rows_taken_early_are_the_rows_of_the_whole(pieces: list[str], width: int) -> None:
    early, whole = Flow("│ "), Flow("│ ")
    for piece in pieces:
        whole.add(piece)
        early.add(piece)
        early.settle(width)
    assert rows_of(early, width) == rows_of(whole, width)


def test_the_open_line_is_shown_with_what_was_held_back() -> None:
    flow = Flow("│ ")
    flow.add("a\n\nb")
    assert [plain(line) for line in flow.whole] == ["│ a"]
    assert [plain(line) for line in flow.open_lines()] == ["│", "│ b"]
    flow.set_open(Span("c"))
    assert [plain(line) for line in flow.open_lines()] == ["│", "│ c"]
    flow.set_open()
    assert flow.open_lines() == []


def flowed(pieces: list[str]) -> list[str]:
    flow = Flow()
    for piece in pieces:
        flow.add(piece)
    flow.close()
    return [plain(line) for line in flow.whole]


def rows_of(flow: Flow, width: int) -> list[str]:
    flow.close()
    return [plain(row) for line in flow.whole for row in wrap(line, width)]
