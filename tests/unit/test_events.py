"""The vocabulary: names, members, order and defaults as the design has them; what it looks like as JSON, and back."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    JSONText,
    Malformed,
    OtherBlock,
    Raw,
    ReasoningDelta,
    Stop,
    TextBlock,
    TextDelta,
    ToolCallStart,
    ToolResultBlock,
    Usage,
    UsageError,
    decode_event,
    encode_event,
)
from streamfold.events import BlockKind, ErrorKind, StopReason
from tests.vocabulary import EVENT_CLASSES, EVENTS, events, events_of_any_text, name_of, parts_of

VOCABULARY = {  # type -> class, and its members with their defaults
    "start": "Start(surface, id=None, model=None)",
    "restart": "Restart(reason)",
    "block_start": "BlockStart(index, kind, choice=0, meta=None)",
    "text_delta": "TextDelta(index, text)",
    "reasoning_delta": "ReasoningDelta(index, text, part=0)",
    "tool_call_start": "ToolCallStart(index, id, name, kind='function', executor='client', choice=0, meta=None)",
    "tool_call_delta": "ToolCallDelta(index, id, delta)",
    "tool_call_done": "ToolCallDone(index, id, name, arguments, valid=True, executor='client')",
    "citation": "Citation(index, url=None, title=None, cited_text=None, start=None, end=None, raw=None)",
    "media_delta": "MediaDelta(index, mime_type=None, data=b'', url=None)",
    "transcript_delta": "TranscriptDelta(index, text, source='model', final=False, replaces=0)",
    "block_end": "BlockEnd(index, block)",
    "usage": (
        "Usage(input_tokens=None, output_tokens=None, total_tokens=None, reasoning_tokens=None, cache_read_tokens=None,"
        " cache_write_tokens=None, input_audio_tokens=None, output_audio_tokens=None, input_image_tokens=None,"
        " output_image_tokens=None, cost_usd=None, raw=None)"
    ),
    "done": "Done(reason=None, raw_reason=None, stop_sequence=None, stops=())",
    "error": (
        "ErrorEvent(kind, message, code=None, status=None, fatal=True, retryable=False, retry_after_ms=None,"
        " offset=None, request_id=None, raw=None)"
    ),
    "interrupted": "Interrupted(reason=None, audio_ms=None)",
    "tool_call_cancelled": "ToolCallCancelled(ids)",
    "go_away": "GoAway(time_left_ms=None)",
    "session": "Session(id=None, resumable=False, handle=None)",
    "raw": "Raw(name, payload, index=None, is_json=True)",
}


def signature(kind: Any) -> str:
    """A struct's name and members, as a call would have them."""
    fields = msgspec.structs.fields(kind)
    members = (field.name if field.required else f"{field.name}={field.default!r}" for field in fields)
    return f"{kind.__name__}({', '.join(members)})"


# -- the table --------------------------------------------------------------------------------------------------------


def test_the_vocabulary_is_the_designs() -> None:
    assert {kind.type: signature(kind) for kind in EVENT_CLASSES} == VOCABULARY


def test_there_is_an_exemplar_of_every_event() -> None:
    assert {type(event) for event in EVENTS} == set(EVENT_CLASSES)


def test_the_designs_own_table_says_the_same(shared: Path) -> None:
    found = table((shared / "DESIGN.md").read_text())
    assert found.keys() == {kind.__name__ for kind in EVENT_CLASSES}
    for kind in EVENT_CLASSES:
        tag, members = found[kind.__name__]
        assert tag == kind.type
        if kind is not Usage:  # whose members another section names
            assert [name for name, _ in members] == list(kind.__struct_fields__)
        defaults = {field.name: field.default for field in msgspec.structs.fields(kind) if not field.required}
        assert {name: defaults[name] for name, wanted in members if wanted} == {n: d[0] for n, d in members if d}


def table(design: str) -> dict[str, tuple[str, list[tuple[str, list[Any]]]]]:
    """Class -> its type and its members, each with its default where the table gives one."""
    rows = re.findall(r"^\| `(\w+)` · `(\w+)` \| (.*?) \|", design, re.MULTILINE)
    found = {name: (tag, members_in(cell)) for name, tag, cell in rows}
    names, cells = re.findall(r"^\| (`\w+`(?:, `\w+`)+) · (.*?) \|", design, re.MULTILINE)[0]
    live = re.findall(r"`(\w+)` \((`[^)]*)\)", cells)
    return found | {
        name: (tag, members_in(cell)) for name, (tag, cell) in zip(re.findall(r"\w+", names), live, strict=True)
    }


def members_in(cell: str) -> list[tuple[str, list[Any]]]:
    constants = {"None": None, "True": True, "False": False, "0": 0}
    found: list[tuple[str, list[Any]]] = []
    for name, default in re.findall(r"`(\w+)`(?: \(([^)]*)\))?", cell):
        words = re.findall(r"`(\w+)`", default)[:1]  # the first of several is the default
        found.append((name, [constants[default]] if default in constants else words))
    return found


@pytest.mark.parametrize("kind", EVENT_CLASSES, ids=lambda kind: kind.__name__)
def test_the_tag_is_the_type_is_the_word_in_json(kind: Any) -> None:
    assert kind.__struct_config__.tag == kind.type
    assert kind.__struct_config__.tag_field == "type"


WORDS = {
    "stop reasons": (StopReason, "end length tool_use refusal pause cancelled other"),
    "kinds of errors": (ErrorKind, "provider truncated protocol limit transport"),
}


@pytest.mark.parametrize(("alias", "words"), WORDS.values(), ids=WORDS.keys())
def test_closed_sets_of_words(alias: Any, words: str) -> None:
    assert list(get_args(alias)) == words.split()


def test_the_kinds_of_blocks_that_a_block_start_opens() -> None:
    words = "text refusal reasoning media transcript tool_result approval other"
    assert list(get_args(BlockKind)) == words.split()


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_an_event_is_immutable(event: Event) -> None:
    for name in event.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(event, name, getattr(event, name))
        with pytest.raises(AttributeError):
            delattr(event, name)
    with pytest.raises(AttributeError):
        event.anything_else = 1  # type: ignore[union-attr]


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_an_event_is_hashable_and_equal_to_its_like(event: Event) -> None:
    twin = type(event)(*(getattr(event, name) for name in event.__struct_fields__))
    assert twin == event
    assert hash(twin) == hash(event)
    assert len({event, twin}) == 1


def test_events_of_other_classes_are_never_equal() -> None:
    assert len(set(EVENTS)) == len(EVENTS)
    alike: list[Event] = [ReasoningDelta(0, "a"), TextDelta(0, "a")]
    assert alike[0] != alike[1]


@given(event=events_of_any_text)
def test_nothing_in_an_event_can_be_changed(event: Event) -> None:
    hash(event)
    assert not [part for part in parts_of(event) if isinstance(part, list | dict | set | bytearray)]


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_a_copy_is_equal_and_of_the_same_types(event: Event, copied: Callable[[Any], Any]) -> None:
    twin = copied(event)
    assert twin == event
    assert [type(part) for part in parts_of(twin)] == [type(part) for part in parts_of(event)]


# -- to JSON ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_an_encoded_event_names_its_type_first_and_then_every_member(event: Event) -> None:
    members = json.loads(encode_event(event))
    assert list(members) == ["type", *event.__struct_fields__]
    assert members["type"] == event.type


LINES = {  # None and defaults are written
    "start": (EVENT_CLASSES[0]("gemini"), '{"type":"start","surface":"gemini","id":null,"model":null}'),
    "call": (
        ToolCallStart(0, "c", "f"),
        '{"type":"tool_call_start","index":0,"id":"c","name":"f","kind":"function","executor":"client","choice":0,"meta":null}',
    ),
    "done": (Done(), '{"type":"done","reason":null,"raw_reason":null,"stop_sequence":null,"stops":[]}'),
    "stops": (
        Done("end", "stop", None, (Stop(1, "length", "max"),)),
        '{"type":"done","reason":"end","raw_reason":"stop","stop_sequence":null,'
        '"stops":[{"choice":1,"reason":"length","raw":"max","stop_sequence":null}]}',
    ),
    "error": (
        ErrorEvent("truncated", "cut"),
        '{"type":"error","kind":"truncated","message":"cut","code":null,"status":null,"fatal":true,"retryable":false,'
        '"retry_after_ms":null,"offset":null,"request_id":null,"raw":null}',
    ),
    "raw embeds its payload": (
        Raw("ping", JSONText('{"a": [1.0, "\\u00e9"]}')),
        '{"type":"raw","name":"ping","payload":{"a": [1.0, "\\u00e9"]},"index":null,"is_json":true}',
    ),
    "raw that is no JSON": (
        Raw("message", JSONText('"oops"'), None, False),
        '{"type":"raw","name":"message","payload":"oops","index":null,"is_json":false}',
    ),
    "block and its tag": (
        BlockEnd(2, OtherBlock(2, "k", JSONText("[1]"))),
        '{"type":"block_end","index":2,"block":{"type":"other","index":2,"kind":"k","raw":[1],"choice":0,"complete":true,"meta":null}}',
    ),
    "a number that is none": (
        Usage(cost_usd=float("nan")),
        '{"type":"usage","input_tokens":null,"output_tokens":null,"total_tokens":null,"reasoning_tokens":null,'
        '"cache_read_tokens":null,"cache_write_tokens":null,"input_audio_tokens":null,"output_audio_tokens":null,'
        '"input_image_tokens":null,"output_image_tokens":null,"cost_usd":null,"raw":null}',
    ),
    "control characters": (TextDelta(0, "\x00\n\r\x7f"), '{"type":"text_delta","index":0,"text":"\\u0000\\n\\r\x7f"}'),
    "line ends of other alphabets": (TextDelta(0, "\u2028\x85"), '{"type":"text_delta","index":0,"text":"\u2028\x85"}'),
    "half a surrogate pair": (TextDelta(0, "a\ud83d"), '{"type":"text_delta","index":0,"text":"a\ufffd"}'),
    "a pair in two halves": (TextDelta(0, "\ud83d\ude00"), '{"type":"text_delta","index":0,"text":"\U0001f600"}'),
    "half a pair in a payload": (
        Raw("n", JSONText('{"a":"\udc00"}')),
        '{"type":"raw","name":"n","payload":{"a":"\ufffd"},"index":null,"is_json":true}',
    ),
    "half a pair deep inside": (
        BlockEnd(0, TextBlock(0, "x", (Citation(0, "\ud800", raw=JSONText('"\ud800"')),))),
        '{"type":"block_end","index":0,"block":{"type":"text","index":0,"text":"x","citations":[{"type":"citation",'
        '"index":0,"url":"\ufffd","title":null,"cited_text":null,"start":null,"end":null,"raw":"\ufffd"}],"choice":0,'
        '"complete":true,"meta":null}}',
    ),
    "JSON on many lines": (
        Raw("n", JSONText('{\r\n "a" : "x y",\n "b":\t1\n}')),
        '{"type":"raw","name":"n","payload":{"a":"x y","b":1},"index":null,"is_json":true}',
    ),
    "JSON on lines of old": (
        Raw("n", JSONText("[1,\r2]")),
        '{"type":"raw","name":"n","payload":[1,2],"index":null,"is_json":true}',
    ),
    "no JSON on many lines": (
        Raw("n", JSONText('{"a":\nNaN}')),
        '{"type":"raw","name":"n","payload":{"a": NaN},"index":null,"is_json":true}',
    ),
}


@pytest.mark.parametrize(("event", "line"), LINES.values(), ids=LINES.keys())
def test_an_encoded_event(event: Event, line: str) -> None:
    assert encode_event(event) == line.encode()


@given(event=events_of_any_text)
def test_whatever_is_encoded_is_one_line_of_json_in_utf_8(event: Event) -> None:
    line = encode_event(event)
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line.decode())["type"] == event.type


# -- and back ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_an_event_comes_back(event: Event) -> None:
    assert_comes_back(event)


@given(event=events)
def test_every_event_comes_back(event: Event) -> None:
    assert_comes_back(event)


def assert_comes_back(event: Event) -> None:
    line = encode_event(event)
    for source in (line, line.decode(), b" \n" + line + b"\r\n"):
        twin = decode_event(source)
        assert twin == event
        assert [type(part) for part in parts_of(twin)] == [type(part) for part in parts_of(event)]


@given(event=events, name=st.text(max_size=5), value=st.integers())
def test_members_of_a_newer_version_are_passed_over(event: Event, name: str, value: int) -> None:
    members = {f"x{name}": value, **json.loads(encode_event(event))}
    if isinstance(event, BlockEnd):
        members["block"][f"x{name}"] = value
    again = decode_event(json.dumps(members))
    assert json.loads(encode_event(again)) == json.loads(encode_event(event))


SHORT = {  # what has a default may be left out
    "start": ('{"type":"start","surface":"s"}', EVENT_CLASSES[0]("s")),
    "type last": ('{"index":1,"text":"x","type":"text_delta"}', TextDelta(1, "x")),
    "block": ('{"type":"block_end","index":0,"block":{"index":0,"type":"text"}}', BlockEnd(0, TextBlock(0))),
    "citations": (
        '{"type":"block_end","index":0,"block":{"type":"text","index":0,"citations":[{"index":0,"raw":{"a":1e2}}]}}',
        BlockEnd(0, TextBlock(0, citations=(Citation(0, raw=JSONText('{"a":1e2}')),))),
    ),
    "null is no payload of its own": (
        '{"type":"block_end","index":0,"block":{"type":"tool_result","index":0,"content":null}}',
        BlockEnd(0, ToolResultBlock(0)),
    ),
    "but the payload of a raw event may be null": (
        '{"type":"raw","name":"n","payload":null}',
        Raw("n", JSONText("null")),
    ),
    "whole lines of blanks": (
        '{"type":"raw","name":"n","payload":\n{"a" :\n1}\n}',
        Raw("n", JSONText('{"a":1}')),
    ),
}


@pytest.mark.parametrize(("line", "event"), SHORT.values(), ids=SHORT.keys())
def test_an_event_that_others_wrote(line: str, event: Event) -> None:
    assert decode_event(line) == decode_event(line.encode()) == event


STRANGE = {  # what a reader of this version does not know
    "unknown type": '{"type":"brand_new","index":7,"text":"x"}',
    "empty type": '{"type":""}',
    "missing member": '{"type":"text_delta","index":0}',
    "ill-typed index": '{"type":"text_delta","index":"0","text":"x"}',
    "a float for a number": '{"type":"text_delta","index":1.5,"text":"x"}',
    "true for a number": '{"type":"text_delta","index":true,"text":"x"}',
    "null for text": '{"type":"text_delta","index":0,"text":null}',
    "unknown word": '{"type":"done","reason":"brand_new"}',
    "unknown kind of block": '{"type":"block_start","index":0,"kind":"brand_new"}',
    "unknown block": '{"type":"block_end","index":0,"block":{"type":"brand_new","index":0}}',
    "block without type": '{"type":"block_end","index":0,"block":{"index":0}}',
    "block that is none": '{"type":"block_end","index":0,"block":[]}',
    "ill-typed block": '{"type":"block_end","index":0,"block":{"type":"text","index":0,"text":5}}',
    "citations that are none": '{"type":"block_end","index":0,"block":{"type":"text","index":0,"citations":{}}}',
    "ill-typed citation": '{"type":"block_end","index":0,"block":{"type":"text","index":0,"citations":[{}]}}',
    "no base64": '{"type":"media_delta","index":0,"data":"!"}',
    "ids that are none": '{"type":"tool_call_cancelled","ids":"a"}',
    "raw without payload": '{"type":"raw","name":"n"}',
}


@pytest.mark.parametrize("line", STRANGE.values(), ids=STRANGE.keys())
def test_what_this_version_does_not_know_becomes_raw(line: str) -> None:
    name = json.loads(line)["type"]
    assert decode_event(line) == decode_event(f" {line}\r\n".encode()) == Raw(name, JSONText(line))
    assert decode_event(f"\t {line} ") == Raw(name, JSONText(line))
    spread = line.replace(":", ":\n")
    assert decode_event(spread) == Raw(name, JSONText(line)), "on one line"


NONE = {
    "nothing": b"",
    "blank": b" \n",
    "no JSON": b"data: x",
    "cut": b'{"type":"text_delta","ind',
    "two": b'{"type":"start","surface":"s"}{}',
    "an array": b"[]",
    "a string": b'"text_delta"',
    "null": b"null",
    "no type": b'{"index":0}',
    "a type that is no text": b'{"type":5}',
    "no type but null": b'{"type":null}',
    "a constant that is none": b'{"type":"text_delta","index":NaN,"text":""}',
    "bad UTF-8 in a known event": b'{"type":"text_delta","index":0,"text":"\xff"}',
    "bad UTF-8 in a payload": b'{"type":"raw","name":"n","payload":{"a":"\xff"}}',
    "bad UTF-8 in an unknown one": b'{"type":"brand_new","x":"\xff"}',
    "half an escaped pair": b'{"type":"text_delta","index":0,"text":"\\ud83d and more text"}',
    "too deep": b'{"type":"brand_new","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("line", NONE.values(), ids=NONE.keys())
def test_what_is_no_event(line: bytes) -> None:
    with pytest.raises(Malformed, match="not an event"):
        decode_event(line)


def test_half_a_surrogate_pair_is_no_event() -> None:
    with pytest.raises(Malformed):
        decode_event('{"type":"text_delta","index":0,"text":"\ud800"}')


@pytest.mark.parametrize("line", [None, 5, {"type": "start"}, TextDelta(0, "x")], ids=repr)
def test_an_event_is_decoded_from_bytes_or_text(line: Any) -> None:
    with pytest.raises(UsageError):
        decode_event(line)


@given(line=st.binary(max_size=60) | st.text(max_size=40).map(lambda text: json.dumps({"type": text}).encode()))
def test_decoding_raises_nothing_else(line: bytes) -> None:
    try:
        event = decode_event(line)
    except Malformed:
        return
    assert isinstance(event, EVENT_CLASSES)


def test_the_kinds_of_a_block_start_are_checked() -> None:
    for kind in get_args(BlockKind):
        assert decode_event(f'{{"type":"block_start","index":0,"kind":"{kind}"}}') == BlockStart(0, kind)
