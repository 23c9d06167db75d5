"""One of everything: events and blocks with every member given, and strategies for all that may be said."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from streamfold import (
    ApprovalBlock,
    Block,
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    GoAway,
    Interrupted,
    JSONText,
    MediaBlock,
    MediaDelta,
    OtherBlock,
    Raw,
    ReasoningBlock,
    ReasoningDelta,
    RefusalBlock,
    Restart,
    Session,
    Start,
    Stop,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallCancelled,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResultBlock,
    TranscriptBlock,
    TranscriptDelta,
    Usage,
)

META = JSONText('{"item":"i"}')
CITED = Citation(2, "https://a.example", "A", "words", 3, 8, JSONText('{"n":1.0}'))

BLOCKS: list[Block] = [
    TextBlock(0, "Hi", (CITED, Citation(0)), 1, False, META),
    RefusalBlock(1, "No", 1, False, META),
    ReasoningBlock(2, "a\n\nb", ("a", "b"), "sig", "enc", True, 1, False, META),
    ToolCallBlock(3, "id", "name", "{}", "custom", "provider", "provider", 1, False, META),
    MediaBlock(4, "image/png", b"\x89PNG\x00", "https://b.example", 1, False, META),
    TranscriptBlock(5, "said", "user", 1, False, META),
    ToolResultBlock(6, "id", "search", JSONText("[1]"), True, 1, False, META),
    ApprovalBlock(7, "id", "name", "{}", 1, False, META),
    OtherBlock(8, "kind", JSONText('{"a":[null]}'), 1, False, META),
]
"""One of each class, every member given and none at its default."""

EVENTS: list[Event] = [
    Start("anthropic", "msg_1", "model"),
    Restart("again"),
    BlockStart(1, "reasoning", 2, META),
    TextDelta(1, "text"),
    ReasoningDelta(1, "text", 2),
    ToolCallStart(1, "id", "name", "mcp", "provider", 2, META),
    ToolCallDelta(1, "id", '{"'),
    ToolCallDone(1, "id", "name", "{}", False, "provider"),
    CITED,
    MediaDelta(1, "image/png", b"\x00\xff", "https://b.example"),
    TranscriptDelta(1, "text", "user", True, 3),
    *(BlockEnd(block.index, block) for block in BLOCKS),
    Usage(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0.25, JSONText('{"prompt_tokens":1}')),
    Done("refusal", "raw", "END", (Stop(0, "refusal", "raw", "END"), Stop(1, None, None, None))),
    ErrorEvent("limit", "too much", "blocks", 429, False, True, 1000, 17, "req", JSONText('{"e":1}')),
    Interrupted("barge-in", 250),
    ToolCallCancelled(("a", "b")),
    GoAway(5000),
    Session("s", True, "handle"),
    Raw("ping", JSONText('{"type":"ping"}'), 1, False),
]
"""One of each class (``block_end`` with each block), every member given."""

EVENT_CLASSES: tuple[Any, ...] = get_args(Event)
BLOCK_CLASSES: tuple[Any, ...] = get_args(Block)


def name_of(value: object) -> str:
    """An id for a table of exemplars."""
    block = getattr(value, "block", None)
    return f"{type(value).__name__}({type(block).__name__})" if block is not None else type(value).__name__


# -- all that may be said ---------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
json_texts = st.builds(json.dumps, json_values.filter(lambda value: value is not None), ensure_ascii=st.booleans()).map(
    JSONText
)
texts = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["\u2028", "\x85", "\x00\x1f\x7f", "\ufeff", "👩‍🚀"]
)
any_texts = texts | st.text(st.characters(categories=["Cs", "Cc", "Lu"]), max_size=8)


def members(kind: Any, text: st.SearchStrategy[str]) -> dict[str, st.SearchStrategy[Any]]:
    """What each member of a struct may be, by its type."""
    hints = get_type_hints(kind)
    return {name: values(hints[name], text) for name in kind.__struct_fields__}


def values(hint: Any, text: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Any]:
    """All values of a member's type."""
    plain: dict[Any, st.SearchStrategy[Any]] = {
        str: text,
        int: st.integers(0, 2**40),
        bool: st.booleans(),
        float: st.floats(0, 1e6),
        bytes: st.binary(max_size=9),
        JSONText: json_texts,
        type(None): st.none(),
    }
    if hint in plain:
        return plain[hint]
    origin, options = get_origin(hint), get_args(hint)
    if origin is Literal:
        return st.sampled_from(options)
    if origin in (Union, types.UnionType):
        return st.one_of([values(option, text) for option in options])
    if origin is tuple:
        return st.lists(values(options[0], text), max_size=3).map(tuple)
    return structs(hint, text)


def structs(kind: Any, text: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Any]:
    """All instances of a class."""
    return st.builds(kind, **members(kind, text))


events: st.SearchStrategy[Event] = st.one_of([structs(kind) for kind in EVENT_CLASSES])
events_of_any_text: st.SearchStrategy[Event] = st.one_of([structs(kind, any_texts) for kind in EVENT_CLASSES])


def parts_of(value: Any) -> Iterator[Any]:
    """A value and everything inside it."""
    yield value
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from parts_of(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from parts_of(item)
