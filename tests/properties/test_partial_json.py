"""The JSON preview against itself at other cuts, against a naive twin, and against the standard library."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NoReturn

from hypothesis import example, given
from hypothesis import strategies as st

from streamfold.partial_json import NOTHING, PartialJSON, PreviewMode, parse_partial_json

# Texts: whole documents in every layout, documents with one thing wrong, tokens in any order, anything.

characters = st.characters(exclude_categories=()) | st.sampled_from('"\\/\b\n\t\x7f\0é中😀\ud83d\ude00\ufffd')
strings = st.text(characters, max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(strings, inner, max_size=4), max_leaves=8
)
documents = st.builds(
    json.dumps,
    trees,
    ensure_ascii=st.booleans(),
    indent=st.sampled_from([None, None, 1, "\t"]),
    separators=st.sampled_from([None, (",", ":"), (" , ", " :\r\n")]),
)
tokens = st.sampled_from(
    [
        *'{}[],:"" \n0-1ex/\0é\\\ud83d\ude00',
        *("true", "false", "null", "nul", "12", ".5", "E+3", '"a"', '"a":', '{"a":'),
        *("\\n", "\\u", "\\ud83d", "\\uDE00", "\\u00e9"),
    ]
)
soups = st.lists(tokens, max_size=14).map("".join)
in_string = st.lists(tokens, max_size=8).map(lambda pieces: '["' + "".join(pieces))
in_number = st.text("0123456789-+.eE", max_size=8).map(lambda digits: "[" + digits + ",")


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    text, token = draw(documents), draw(tokens)
    start = draw(st.integers(0, len(text)))
    return f"{text[:start]}{token}{text[start + draw(st.integers(0, 2)) :]}"


texts = documents | spoilt() | soups | in_string | in_number | st.text(characters, max_size=20)
modes = st.sampled_from(["trailing-strings", "complete"])
points = st.lists(st.integers(0, 60), max_size=8)
depths = st.sampled_from([None, None, 0, 1, 2, 200])


def cut(text: str, points: Iterable[int]) -> list[str]:
    edges = [0, *sorted(min(point, len(text)) for point in points), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def fed(pieces: Iterable[str], mode: PreviewMode, *, finished: bool = False, **settings: Any) -> PartialJSON:
    preview = PartialJSON(mode, **settings)
    for piece in pieces:
        preview.feed(piece)
    if finished:
        preview.close()
    return preview


def outcome(preview: PartialJSON) -> tuple[str, bool, int | None]:
    """The value by its representation, telling 1 from 1.0 and True, 0.0 from -0.0, one order of keys from another."""
    return repr(preview.value), preview.complete, None if preview.error is None else preview.error.offset


# The twin: reads the whole prefix from the start by recursive descent, and lets regular expressions and the standard
# library do what the parser does step by step.


class Cut(Exception):
    """The prefix ends inside the document."""


class Wrong(Exception):
    """The character at this offset cannot be right."""


class Twin:
    BODY = re.compile(r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
    NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
    BEGUN = re.compile(
        r"-?((0|[1-9][0-9]*)(\.[0-9]*((?<=[0-9])[eE][+-]?[0-9]*)?|[eE][+-]?[0-9]*)?)?"  # how far it may become one
    )

    def __init__(self, text: str, mode: str, finished: bool, max_depth: int | None) -> None:
        self.text, self.mode, self.finished, self.max_depth = text, mode, finished, max_depth
        self.depth = 0

    def outcome(self) -> tuple[str, bool, int | None]:
        shown: list[object] = []
        complete, error = False, None
        try:
            self.blank(self.value(self.blank(0), shown.append), "")
        except Wrong as wrong:
            error = wrong.args[0]
        except Cut:
            error = len(self.text) if self.finished else None
        else:
            complete = True
        return repr(shown[-1] if shown else NOTHING), complete, error

    def blank(self, at: int, due: str | None = None) -> int:
        while at < len(self.text) and self.text[at] in " \t\r\n":
            at += 1
        if due is not None and at < len(self.text) and self.text[at] not in (due or ()):
            raise Wrong(at)
        if due != "" and at == len(self.text):
            raise Cut
        return at

    def value(self, at: int, show: Callable[[Any], None]) -> int:
        first = self.text[at]
        if first in "[{":
            return self.container(at, [] if first == "[" else {}, show)
        if first == '"':
            return self.string(at, show if self.mode == "trailing-strings" else None, show)
        if first in "-0123456789":
            return self.number(at, show)
        for word in ("true", "false", "null"):
            if first == word[0]:
                return self.literal(at, word, show)
        raise Wrong(at)

    def container(self, at: int, tree: Any, show: Callable[[Any], None]) -> int:
        if self.depth == self.max_depth:
            raise Wrong(at)
        self.depth += 1
        show(tree)
        item, end = (self.element, "]") if isinstance(tree, list) else (self.member, "}")
        at = self.blank(at + 1)
        while self.text[at] != end:
            at = self.blank(item(at, tree), "," + end)
            if self.text[at] == ",":
                at = self.blank(at + 1)
                if self.text[at] == end:
                    raise Wrong(at)
        self.depth -= 1
        return at + 1

    def element(self, at: int, tree: list[Any]) -> int:
        place = len(tree)

        def show(value: Any) -> None:
            tree[place:] = [value]

        return self.value(at, show)

    def member(self, at: int, tree: dict[str, Any]) -> int:
        key: list[str] = []
        if self.text[at] != '"':
            raise Wrong(at)
        at = self.blank(self.blank(self.string(at, None, key.append), ":") + 1)

        def show(value: Any) -> None:
            tree[key[0]] = value

        return self.value(at, show)

    def string(self, at: int, show_open: Callable[[str], None] | None, show: Callable[[str], None]) -> int:
        body = self.BODY.match(self.text, at + 1)
        assert body is not None
        halves = json.loads(f'"{body[0]}"')
        closed = self.text[body.end() : body.end() + 1] == '"'
        if closed:
            show(well_formed(halves))
            return body.end() + 1
        if show_open is not None:
            show_open(well_formed(re.sub("[\ud800-\udbff]\\Z", "", halves)))
        return self.broken_string(body.end())

    def broken_string(self, at: int) -> NoReturn:
        rest = self.text[at:]
        if re.fullmatch(r"(\\(u[0-9a-fA-F]{0,3})?)?", rest):
            raise Cut
        if rest[0] != "\\":
            raise Wrong(at)
        if rest[1] != "u":
            raise Wrong(at + 1)
        raise Wrong(at + next(i for i in range(2, 6) if rest[i] not in "0123456789abcdefABCDEF"))

    def number(self, at: int, show: Callable[[Any], None]) -> int:
        begun = self.BEGUN.match(self.text, at)
        assert begun is not None
        whole = self.NUMBER.fullmatch(begun[0])
        at_end = begun.end() == len(self.text)
        if at_end and not (self.finished and whole):
            raise Cut
        if not whole or not (at_end or self.text[begun.end()] in " \t\r\n,]}"):
            raise Wrong(begun.end())
        show(json.loads(begun[0]))
        return begun.end()

    def literal(self, at: int, word: str, show: Callable[[Any], None]) -> int:
        same = max(letters for letters in range(len(word) + 1) if self.text.startswith(word[:letters], at))
        if same == len(word):
            show(json.loads(word))
            return at + same
        if at + same == len(self.text):
            raise Cut
        raise Wrong(at + same)


def well_formed(text: str) -> str:
    def joined(match: re.Match[str]) -> str:
        high, low = match.groups()
        return chr(0x10000 + ((ord(high) - 0xD800) << 10) + ord(low) - 0xDC00) if high else "\ufffd"

    return re.sub("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]", joined, text)


# Properties.


@given(text=texts, points=points, mode=modes, finished=st.booleans(), max_depth=depths)
def test_cuts_never_change_the_outcome(
    text: str, points: list[int], mode: PreviewMode, finished: bool, max_depth: int | None
) -> None:
    whole = fed([text], mode, finished=finished, max_depth=max_depth)
    for pieces in (cut(text, points), list(text)):
        preview = fed(pieces, mode, finished=finished, max_depth=max_depth)
        assert outcome(preview) == outcome(whole)
        assert preview.error == whole.error


@given(text=texts, mode=modes, max_depth=depths)
@example(text='["\ud83d\\ude00\\ud83d\\u0', mode="trailing-strings", max_depth=None)
@example(text='{"a":"x","a":["y', mode="complete", max_depth=None)
def test_every_prefix_agrees_with_the_naive_twin(text: str, mode: PreviewMode, max_depth: int | None) -> None:
    growing = PartialJSON(mode, max_depth=max_depth)
    for end in range(len(text) + 1):
        growing.feed(text[max(end - 1, 0) : end])
        assert outcome(growing) == Twin(text[:end], mode, False, max_depth).outcome()
        finished = fed([text[:end]], mode, finished=True, max_depth=max_depth)
        assert outcome(finished) == Twin(text[:end], mode, True, max_depth).outcome()


@given(text=documents, points=points, mode=modes)
def test_whole_documents_are_what_the_standard_library_reads(text: str, points: list[int], mode: PreviewMode) -> None:
    preview = fed(cut(text, points), mode, finished=True)
    assert preview.complete
    assert repr(preview.value) == repr(cleaned(json.loads(text)))


@given(text=texts)
def test_complete_means_that_the_standard_library_accepts_it(text: str) -> None:
    preview = fed([text], "trailing-strings", finished=True, max_depth=None)
    try:
        due = json.loads(text, parse_constant=refuse)
    except ValueError:
        assert not preview.complete
        assert preview.error is not None
    else:
        assert preview.complete
        assert repr(preview.value) == repr(cleaned(due))


def refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def cleaned(tree: Any) -> Any:
    """The tree with every string well-formed; raw and escaped halves join alike."""
    if isinstance(tree, dict):
        return {well_formed(key): cleaned(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [cleaned(value) for value in tree]
    return well_formed(tree) if isinstance(tree, str) else tree


@given(text=texts | st.text(), points=points, mode=modes)
def test_no_text_raises_and_every_preview_can_be_sent(text: str, points: list[int], mode: PreviewMode) -> None:
    preview = PartialJSON(mode)
    for piece in cut(text, points):
        preview.feed(piece)
        if preview.value is not NOTHING:
            json.dumps(preview.value, ensure_ascii=False).encode()
    assert repr(parse_partial_json(text, mode)) == repr(preview.value)
    preview.close()
    assert preview.complete == (preview.error is None)


def continues(later: Any, earlier: Any) -> bool:
    """Whether the later preview only adds to the earlier one, at its open end."""
    if earlier is NOTHING or earlier == []:
        return earlier is NOTHING or isinstance(later, list)
    if type(later) is not type(earlier):
        return False
    if isinstance(earlier, str):
        return bool(later.startswith(earlier))
    if isinstance(earlier, dict):
        keys = list(later)[: len(earlier)] == list(earlier)
        return keys and continues(list(later.values()), list(earlier.values()))
    if isinstance(earlier, list):
        last = len(earlier) - 1
        return (
            repr(later[:last]) == repr(earlier[:last]) and len(later) > last and continues(later[last], earlier[last])
        )
    return repr(later) == repr(earlier)


# Keys that differ in a lone half alone become one key, whose value is replaced: leave those documents out.
well_formed_documents = documents.filter(lambda text: "\\ud" not in text and not re.search("[\ud800-\udfff]", text))


@given(text=well_formed_documents, mode=modes)
def test_previews_only_ever_grow(text: str, mode: PreviewMode) -> None:
    preview = PartialJSON(mode)
    earlier = preview.copy()
    for character in text:
        preview.feed(character)
        assert continues(preview.value, earlier)
        earlier = preview.copy()


@given(text=well_formed_documents)
def test_complete_mode_shows_a_part_of_the_other(text: str) -> None:
    careful, eager = PartialJSON("complete"), PartialJSON()
    for character in text:
        careful.feed(character)
        eager.feed(character)
        assert careful.error == eager.error
        assert careful.complete == eager.complete
        assert continues(eager.value, careful.value)
    careful.close()
    eager.close()
    assert repr(careful.value) == repr(eager.value)


@given(text=texts, at=st.integers(0, 40))
def test_a_copy_equals_the_value_and_then_stands_still(text: str, at: int) -> None:
    preview = fed([text[:at]], "trailing-strings")
    duplicate, reference = preview.copy(), copy.deepcopy(preview.value)
    preview.feed(text[at:])
    assert repr(duplicate) == repr(reference)
