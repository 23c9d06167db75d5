"""The arguments of tool calls, laid out while they stream."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold.views.arguments import Arguments

LAYOUTS = {
    "nothing": ("", ""),
    "blanks": ("  ", ""),
    "no arguments": ("{}", ""),
    "members": ('{"city":"Paris", "days": 3,"sure":true}', 'city: "Paris"\ndays: 3\nsure: true'),
    "an object inside": ('{"a":{"b":1,"c":{}},"d":null}', "a: {\n  b: 1\n  c: {}\n}\nd: null"),
    "arrays": ('{"a":[1,2.5,"x"],"b":[]}', 'a: [1, 2.5, "x"]\nb: []'),
    "objects in an array": ('{"a":[{"b":1},{"b":2}]}', "a: [{\n  b: 1\n}, {\n  b: 2\n}]"),
    "an array outside": ('[{"a":1},2]', "[{\n  a: 1\n}, 2]"),
    "a string outside": ('"a\\nb"', '"a\nb"'),
    "line ends in a string": ('{"a":"one\\ntwo\\n"}', 'a: "one\n  two\n  "'),
    "escapes": (r'{"a":"\"\\\/\t\u00e9\ud83d\ude00"}', 'a: ""\\/\té😀"'),
    "half a surrogate pair": (r'{"a":"\ud83dx\ude00"}', 'a: "\ufffdx\ufffd"'),
    "layout of the sender's own": ('{\n  "a" : [\n 1 ,\n 2 ]\n}', "a: [1, 2]"),
    "an empty key": ('{"":1}', ": 1"),
    "cut off": ('{"a":"one\\ntw', 'a: "one\n  tw'),
    "cut off in an escape": ('{"a":"x\\u00', 'a: "x'),
    "text": ("ls -l {a,b}\n", "ls -l {a,b}\n"),
    "no JSON, though it begins so": ('{"a" tru]e}}', "atru]e}"),
    "a bad escape": ('{"a":"\\q\\ux"}', 'a: "q\\ux"'),
}


@pytest.mark.parametrize(("text", "shown"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_layout(text: str, shown: str) -> None:
    assert layout([text]) == shown
    assert layout(list(text)) == shown


def test_text_of_a_custom_tool_is_left_alone() -> None:
    assert layout(['{"a": 1}'], json=False) == '{"a": 1}'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(value=values, escaped=st.booleans(), points=st.lists(st.integers(0, 60), max_size=5))
def test_how_they_were_cut_changes_nothing(value: Any, escaped: bool, points: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=escaped)
    cuts = [0, *sorted(point for point in points if point < len(text)), len(text)]
    assert layout([text[a:b] for a, b in pairwise(cuts)]) == layout([text])


@given(text=st.text(st.sampled_from('{}[]",:\\ntu0d8a ')), points=st.lists(st.integers(0, 30), max_size=4))
def test_no_text_is_too_broken(text: str, points: list[int]) -> None:
    cuts = [0, *sorted(point for point in points if point < len(text)), len(text)]
    assert layout([text[a:b] for a, b in pairwise(cuts)]) == layout([text])


@given(st.dictionaries(st.text("abc", min_size=1), st.text(), min_size=1))
def test_every_key_and_string_is_shown(arguments: dict[str, str]) -> None:
    shown = layout([json.dumps(arguments)])
    for name, text in arguments.items():
        assert f'{name}: "{text}"'.replace("\n", "\n  ") in shown


def layout(pieces: list[str], **settings: Any) -> str:
    arguments = Arguments(**settings)
    return "".join(span.text for piece in pieces for span in arguments.feed(piece))
