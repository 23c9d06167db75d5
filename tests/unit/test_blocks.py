"""Blocks: members and defaults as the design has them; immutable all the way down, and cheap where that is safe."""

from __future__ import annotations

import copy
import pickle
import re
import types
from importlib import import_module
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold import Block, JSONText, Malformed, TextBlock, ToolCallBlock
from streamfold.blocks import Executor, ToolCallState, TranscriptSource
from tests.unit.test_events import signature
from tests.vocabulary import BLOCK_CLASSES, BLOCKS, json_values, name_of, parts_of, structs

COMMON = "choice=0, complete=True, meta=None"
TABLE = {  # type -> class, and its members with their defaults
    "text": f"TextBlock(index, text='', citations=(), {COMMON})",
    "refusal": f"RefusalBlock(index, text='', {COMMON})",
    "reasoning": f"ReasoningBlock(index, text='', parts=(), signature=None, encrypted=None, redacted=False, {COMMON})",
    "tool_call": (
        f"ToolCallBlock(index, id, name, arguments='', kind='function', executor='client', state='open', {COMMON})"
    ),
    "media": f"MediaBlock(index, mime_type=None, data=b'', url=None, {COMMON})",
    "transcript": f"TranscriptBlock(index, text='', source='model', {COMMON})",
    "tool_result": f"ToolResultBlock(index, call_id=None, name=None, content=None, is_error=False, {COMMON})",
    "approval": f"ApprovalBlock(index, id, name, arguments='', {COMMON})",
    "other": f"OtherBlock(index, kind, raw=None, {COMMON})",
}


def test_the_blocks_are_the_designs() -> None:
    assert {kind.type: signature(kind) for kind in BLOCK_CLASSES} == TABLE


def test_there_is_an_exemplar_of_every_block() -> None:
    assert {type(block) for block in BLOCKS} == set(BLOCK_CLASSES)


def test_the_designs_own_list_says_the_same(shared: Path) -> None:
    section = (shared / "DESIGN.md").read_text().partition("## 4.")[2]
    listed = re.findall(r"`(\w+Block)\(([^)]*)\)`", section)
    common = re.findall(r"All blocks: ([^.]*)\.", section)[0]
    assert set(re.findall(r"`(\w+)`", common)) == {"index", "choice", "complete", "meta"}
    own = {kind.__name__: [n for n in kind.__struct_fields__ if f"`{n}`" not in common] for kind in BLOCK_CLASSES}
    assert own == {name: members.split(", ") for name, members in listed}
    states = re.findall(r"`ToolCallBlock.state`: (.*)", section)[0]
    assert list(get_args(ToolCallState)) == re.findall(r"`(\w+)`", states)


WORDS = {
    "states of a call": (ToolCallState, "open ready invalid cut void cancelled provider"),
    "executors": (Executor, "client provider"),
    "speakers": (TranscriptSource, "model user"),
}


@pytest.mark.parametrize(("alias", "words"), WORDS.values(), ids=WORDS.keys())
def test_closed_sets_of_words(alias: Any, words: str) -> None:
    assert list(get_args(alias)) == words.split()


@pytest.mark.parametrize("kind", BLOCK_CLASSES, ids=lambda kind: kind.__name__)
def test_the_tag_is_the_type(kind: Any) -> None:
    assert kind.__struct_config__.tag == kind.type
    assert kind.__struct_config__.tag_field == "type"


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_a_block_is_immutable(block: Block) -> None:
    for name in block.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(block, name, getattr(block, name))
    with pytest.raises(AttributeError):
        block.anything_else = 1  # type: ignore[union-attr]


@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_a_block_is_a_value(block: Block) -> None:
    for twin in (pickle.loads(pickle.dumps(block)), copy.copy(block), copy.deepcopy(block)):
        assert twin == block
        assert hash(twin) == hash(block)
        assert [type(part) for part in parts_of(twin)] == [type(part) for part in parts_of(block)]
    other = msgspec.structs.replace(block, index=99)
    assert other != block
    assert len({block, other}) == 2


@given(block=st.one_of([structs(kind) for kind in BLOCK_CLASSES]))
def test_nothing_in_a_block_can_be_changed(block: Block) -> None:
    hash(block)
    assert not [part for part in parts_of(block) if isinstance(part, list | dict | set | bytearray)]


# -- which types the collector may pass over --------------------------------------------------------------------------

MODULES = ("blocks", "events", "snapshot", "framing.sse", "partial_json", "decoder")
VALUES = {
    f"{module}.{value.__name__}": value
    for module in MODULES
    for value in vars(import_module(f"streamfold.{module}")).values()
    if isinstance(value, type)
    and issubclass(value, msgspec.Struct)
    and value.__struct_config__.frozen
    and value.__module__ == f"streamfold.{module}"
}


def can_hold_a_container(hint: Any) -> bool:
    """Whether a member of this type can refer to something that refers back."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(map(can_hold_a_container, get_args(hint)))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        hints = get_type_hints(hint)
        return any(can_hold_a_container(hints[name]) for name in hint.__struct_fields__)
    if isinstance(hint, type) and issubclass(hint, str | int | float | bytes | bool | None):
        return False
    words = get_args(hint)
    return not (words and all(isinstance(word, str) for word in words))  # Literal


def test_the_values_are_found() -> None:
    assert {f"blocks.{kind.__name__}" for kind in BLOCK_CLASSES} <= VALUES.keys()
    assert {"events.TextDelta", "events.Done", "snapshot.Snapshot", "framing.sse.ServerSentEvent"} <= VALUES.keys()


@pytest.mark.parametrize("kind", VALUES.values(), ids=VALUES.keys())
def test_the_collector_passes_over_text_and_numbers_alone(kind: Any) -> None:
    if can_hold_a_container(kind):
        assert kind.__struct_config__.gc
    elif kind in (*BLOCK_CLASSES, *get_args(import_module("streamfold").Event)):  # made by the thousand
        assert not kind.__struct_config__.gc


HINTS = {
    "text": (str, False),
    "JSON text": (JSONText, False),
    "a word": (Executor, False),
    "or None": (JSONText | None, False),
    "bytes": (bytes, False),
    "a tuple": (tuple[str, ...], True),
    "a list": (list[int], True),
    "anything": (Any, True),
    "a struct of text": (ToolCallBlock, False),
    "a struct with a tuple": (TextBlock, True),
    "a union with one": (ToolCallBlock | TextBlock, True),
}


@pytest.mark.parametrize(("hint", "holds"), HINTS.values(), ids=HINTS.keys())
def test_what_can_hold_a_container(hint: Any, holds: bool) -> None:
    assert can_hold_a_container(hint) is holds


# -- JSON text --------------------------------------------------------------------------------------------------------


@given(value=json_values)
def test_json_text_decodes_to_its_value_afresh(value: Any) -> None:
    text = JSONText(msgspec.json.encode(value).decode())
    assert text.decoded() == value
    if isinstance(value, list | dict):
        assert text.decoded() is not text.decoded()


def test_json_text_is_text_that_nothing_can_be_hung_on() -> None:
    text = JSONText('{"a":1}')
    assert isinstance(text, str)
    assert hash(text) == hash('{"a":1}')
    assert text == '{"a":1}'
    with pytest.raises(AttributeError):
        text.note = "x"  # type: ignore[attr-defined]


NO_JSON = {
    "nothing": "",
    "a word": "oops",
    "half an object": '{"a":',
    "no number of JSON": "NaN",
    "half a surrogate pair": '"\ud800"',
    "too deep": "[" * 100_000 + "]" * 100_000,
}


@pytest.mark.parametrize("text", NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_raises_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        JSONText(text).decoded()
