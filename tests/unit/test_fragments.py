"""Which call a fragment belongs to, what it is called, and by which id: the seven steps of DESIGN 3, step by step."""

from __future__ import annotations

import re
from typing import Any

import pytest

from streamfold import ErrorEvent, Event, Raw, Start, ToolCallBlock, ToolCallDelta, ToolCallDone, ToolCallStart
from tests.reading import ORPHAN, fold, raw, read, rows
from tests.wires import Payload, call_chunk, chunk, entry

Call = tuple[str, str, str, str]  # id, name, arguments, state
FINISH = chunk({}, "tool_calls")
DONE = "[DONE]"


def made(index: int) -> str:
    return f"made_{index}"


def calls_of(events: list[Event]) -> list[Call]:
    blocks = [block for block in fold(events).blocks if isinstance(block, ToolCallBlock)]
    return [(block.id, block.name, block.arguments, block.state) for block in blocks]


def orphans_of(events: list[Event]) -> int:
    return sum(isinstance(event, ErrorEvent) and event.code == "orphan_fragment" for event in events)


# Each row: chunks, each a list of entries; the calls they make; how many fragments are nobody's.
STEPS: dict[str, tuple[list[list[Payload]], list[Call], int]] = {
    "1: to the call whose id it names, whatever index it comes with": (
        [[entry('{"x"', "f", index=0, id="a")], [entry(":1}", index=5, id="a")]],
        [("a", "f", '{"x":1}', "ready")],
        0,
    ),
    "1: and without an index": (
        [
            [entry("{", "f", id="a")],
            [entry("{", "g", id="b")],
            [entry("}", id="a")],
            [entry(" }", id="b")],
        ],
        [("a", "f", "{}", "ready"), ("b", "g", "{ }", "ready")],
        0,
    ),
    "1: id and name on every fragment": (
        [[entry('{"x"', "f", index=0, id="a")], [entry(":1}", "f", index=0, id="a")]],
        [("a", "f", '{"x":1}', "ready")],
        0,
    ),
    "2: a new id opens a new call, also at an index that is taken": (
        [[entry("{}", "f", index=0, id="a")], [entry("{}", "g", index=0, id="b")]],
        [("a", "f", "{}", "ready"), ("b", "g", "{}", "ready")],
        0,
    ),
    "2: also while the call there is not whole": (
        [[entry('{"x', "f", index=0, id="a")], [entry("{}", "g", index=0, id="b")]],
        [("a", "f", '{"x', "invalid"), ("b", "g", "{}", "ready")],
        0,
    ),
    "2: after that the index means the new one": (
        [[entry("{}", "f", index=0, id="a")], [entry("{", "g", index=0, id="b")], [entry("}", index=0)]],
        [("a", "f", "{}", "ready"), ("b", "g", "{}", "ready")],
        0,
    ),
    "2: a new id names the call at its index that has neither id nor arguments": (
        [[entry(name="f", index=0)], [entry(index=0, id="a")], [entry("{}", index=0)]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "2: but not one that has arguments": (
        [[entry("{}", "f", index=0)], [entry("{}", "g", index=0, id="a")]],
        [("made_0", "f", "{}", "ready"), ("a", "g", "{}", "ready")],
        0,
    ),
    "3: without an id, a name at an index never seen opens a new call": (
        [[entry("{}", "f", index=0)], [entry("{", "g", index=3)], [entry("}", index=3)]],
        [("made_0", "f", "{}", "ready"), ("made_1", "g", "{}", "ready")],
        0,
    ),
    "3: also while another is not whole": (
        [[entry("{", "f", index=0), entry("{", "g", index=1)], [entry("}", index=1), entry(" }", index=0)]],
        [("made_0", "f", "{ }", "ready"), ("made_1", "g", "{}", "ready")],
        0,
    ),
    "4: without an id, a name at an index whose call has whole arguments opens a new call": (
        [[entry('{"a":1}', "f", index=0)], [entry('{"b":2}', "g", index=0)]],
        [("made_0", "f", '{"a":1}', "ready"), ("made_1", "g", '{"b":2}', "ready")],
        0,
    ),
    "4: the same name too": (
        [[entry('{"a":1}', "f", index=0)], [entry('{"a":2}', "f", index=0)]],
        [("made_0", "f", '{"a":1}', "ready"), ("made_1", "f", '{"a":2}', "ready")],
        0,
    ),
    "4: parallel calls with neither id nor index": (
        [[entry('{"a":1}', "f"), entry('{"b":2}', "g"), entry("{}", "h")]],
        [("made_0", "f", '{"a":1}', "ready"), ("made_1", "g", '{"b":2}', "ready"), ("made_2", "h", "{}", "ready")],
        0,
    ),
    "4: whole means one JSON value, not a bracket": (
        [[entry('{"a":"}', "f", index=0)], [entry('"}', "f", index=0)]],
        [("made_0", "f", '{"a":"}"}', "ready")],
        0,
    ),
    "5: to the open call at its index": (
        [
            [entry("{", "f", index=0, id="a"), entry("{", "g", index=1, id="b")],
            [entry("}", index=0)],
            [entry(" }", index=1)],
        ],
        [("a", "f", "{}", "ready"), ("b", "g", "{ }", "ready")],
        0,
    ),
    "5: an empty id counts as none (DashScope)": (
        [[entry("{", "f", index=0, id="a")], [entry("}", None, index=0, id="")]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "5: null too": (
        [[entry("{", "f", index=0, id="a")], [{"index": 0, "id": None, "function": {"name": None, "arguments": "}"}}]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    '5: "null" too': (
        [[entry("{", "f", index=0, id="a")], [entry("}", "null", index=0, id="null")]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "5: what follows whole arguments makes them invalid": (
        [[entry("{}", "f", index=0, id="a")], [entry("{}", index=0)]],
        [("a", "f", "{}{}", "invalid")],
        0,
    ),
    "5: a call that was named at another index is not at that one": (
        [
            [entry("{", "f", index=0, id="a"), entry("{", "g", index=1, id="b")],
            [entry('"x"', index=5, id="a")],
            [entry(":1}", index=5)],
        ],
        [("a", "f", '{"x"', "invalid"), ("b", "g", "{", "invalid")],
        1,
    ),
    "5: an index may be a float, and is no truth": (
        [
            [entry("{", "f", index=1, id="a"), entry("{", "g", index=2, id="b")],
            [entry("}", index=1.0)],
            [entry(" }", index=True)],
        ],
        [("a", "f", "{}", "ready"), ("b", "g", "{ }", "ready")],
        0,
    ),
    "6: without an index, to the only call whose arguments are not whole": (
        [[entry("{}", "f", index=0, id="a"), entry("{", "g", index=1, id="b")], [entry("}")]],
        [("a", "f", "{}", "ready"), ("b", "g", "{}", "ready")],
        0,
    ),
    "6: at an index nobody has, the same": (
        [[entry("{", "f", index=0, id="a")], [entry("}", index=7)]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "7: where two could take it, nobody gets it": (
        [[entry("{", "f", index=0, id="a"), entry("{", "g", index=1, id="b")], [entry("}")]],
        [("a", "f", "{", "invalid"), ("b", "g", "{", "invalid")],
        1,
    ),
    "7: where none could take it, nobody gets it": (
        [[entry("{}", "f", index=0, id="a")], [entry("}")]],
        [("a", "f", "{}", "ready")],
        1,
    ),
    "7: nor without any call": ([[entry("{}", index=0)]], [], 1),
}

NAMES: dict[str, tuple[list[list[Payload]], list[Call], int]] = {
    "repeated": (
        [[entry("", "f", index=0, id="a")], [entry("{", "f", index=0)], [entry("}", "f", index=0)]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "growing": (
        [[entry(None, "get", index=0, id="a")], [entry("{}", "get_weather", index=0)]],
        [("a", "get_weather", "{}", "ready")],
        0,
    ),
    "growing after arguments": (
        [[entry("{", "get", index=0, id="a")], [entry("}", "get_weather", index=0)]],
        [("a", "get_weather", "{}", "ready")],
        0,
    ),
    "in pieces": (
        [[entry(None, "get_", index=0, id="a")], [entry(None, "wea", index=0)], [entry("{}", "ther", index=0)]],
        [("a", "get_weather", "{}", "ready")],
        0,
    ),
    "another one after arguments is no piece": (
        [[entry("{", "f", index=0, id="a")], [entry("}", "g", index=0)]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "empty ones never overwrite (Mistral)": (
        [[entry("{", "f", index=0, id="a")], [entry("}", "", index=0)]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "arguments that come before the name wait for it": (
        [[entry('{"x"', index=0, id="a")], [entry(":1", "f", index=0)], [entry("}", index=0)]],
        [("a", "f", '{"x":1}', "ready")],
        0,
    ),
    "whole arguments that come before the name wait too": (
        [[entry("{}", index=0, id="a")], [entry(None, "f", index=0)]],
        [("a", "f", "{}", "ready")],
        0,
    ),
    "a call that never gets a name is reported, not run": (
        [[entry("{}", index=0, id="a")]],
        [("a", "", "{}", "invalid")],
        0,
    ),
}

ARGUMENTS: dict[str, tuple[list[list[Payload]], list[Call], int]] = {
    "blank": ([[entry("", "f", index=0, id="a")]], [("a", "f", "{}", "ready")], 0),
    "blanks": ([[entry("  \n", "f", index=0, id="a")]], [("a", "f", "{}", "ready")], 0),
    "null": ([[{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}]], [("a", "f", "{}", "ready")], 0),
    "none": ([[entry(None, "f", index=0, id="a")]], [("a", "f", "{}", "ready")], 0),
    "an object instead of text": ([[entry({"x": [1]}, "f", index=0, id="a")]], [("a", "f", '{"x":[1]}', "ready")], 0),
    "an empty object instead of text": ([[entry({}, "f", index=0, id="a")]], [("a", "f", "{}", "ready")], 0),
    "no JSON": ([[entry("x=1", "f", index=0, id="a")]], [("a", "f", "x=1", "invalid")], 0),
    "not quite JSON": ([[entry('{"x":NaN}', "f", index=0, id="a")]], [("a", "f", '{"x":NaN}', "invalid")], 0),
    "text stays as it is": (
        [[entry('{ "x" : 1.0 }', "f", index=0, id="a")]],
        [("a", "f", '{ "x" : 1.0 }', "ready")],
        0,
    ),
    "name and arguments beside the index": (
        [[{"index": 0, "id": "a", "name": "f", "arguments": "{}"}]],
        [("a", "f", "{}", "ready")],
        0,
    ),
}


@pytest.mark.parametrize(("chunks", "calls", "orphans"), rows({**STEPS, **NAMES, **ARGUMENTS}))
def test_calls(chunks: list[list[Payload]], calls: list[Call], orphans: int) -> None:
    events = read("openai-chat", [*(call_chunk(*entries) for entries in chunks), FINISH, DONE], call_id=made)
    assert calls_of(events) == calls
    assert orphans_of(events) == orphans
    runnable = [call for call in calls if call[3] == "ready"]
    assert [(c.id, c.name, c.arguments, c.state) for c in fold(events).tool_calls] == runnable


def test_an_orphan_is_raw_and_a_warning() -> None:
    orphan = call_chunk(entry("}", index=4))
    events = read("openai-chat", [chunk({}, id="c"), orphan, orphan, chunk({}, "stop")])
    assert events[1:-1] == [raw(orphan), ORPHAN, raw(orphan), ORPHAN]
    assert fold(events).outcome == "complete"
    assert [warning.code for warning in fold(events).warnings] == ["orphan_fragment", "orphan_fragment"]


def test_two_orphans_of_one_payload_are_one_raw() -> None:
    orphans = call_chunk(entry("}", index=4), entry("]", index=5))
    events = read("openai-chat", [chunk({}, id="c"), orphans, chunk({}, "stop")])
    assert events[1:-1] == [raw(orphans), ORPHAN, ORPHAN]


def test_the_first_name_starts_the_call_and_the_last_counts() -> None:
    pieces = [call_chunk(entry(None, "get_", index=0, id="a")), call_chunk(entry(None, "weather", index=0)), FINISH]
    events = [event for event in read("openai-chat", pieces) if isinstance(event, ToolCallStart | ToolCallDone)]
    assert events == [ToolCallStart(0, "a", "get_"), ToolCallDone(0, "a", "get_weather", "{}")]


def test_arguments_before_the_name_are_told_with_it() -> None:
    stream = [
        chunk({}, id="c"),
        call_chunk(entry('{"x"', index=0, id="a")),
        call_chunk(entry(":1", "f", index=0)),
        call_chunk(entry("}", index=0)),
        FINISH,
    ]
    events = read("openai-chat", stream)
    told = [event for event in events if isinstance(event, ToolCallStart | ToolCallDelta | Raw)]
    assert told[:2] == [raw(stream[1]), ToolCallStart(0, "a", "f")]
    assert [event.delta for event in told if isinstance(event, ToolCallDelta)] == ['{"x"', ":1", "}"]


@pytest.mark.parametrize("value", [None, "text", {"x": 1}, [1], 5, True])
def test_arguments_are_text_in_every_event(value: Any) -> None:
    for event in read("openai-chat", [call_chunk(entry(value, "f", index=0, id="a")), FINISH]):
        for name in ("delta", "arguments"):
            assert type(getattr(event, name, "")) is str


# -- ids that the wire does not have ----------------------------------------------------------------------------------


def ids_of(payloads: list[Any], **settings: Any) -> list[str]:
    return [call[0] for call in calls_of(read("openai-chat", payloads, **settings))]


TWO = [call_chunk(entry("{}", "f", index=0), entry("{}", "g", index=1)), FINISH]


def test_made_up_ids_are_the_same_at_every_reading_and_differ_within_it() -> None:
    first, second = ids_of(TWO)
    assert re.fullmatch("call_[0-9a-f]{12}", first)
    assert first != second
    assert ids_of(TWO) == [first, second]


def test_made_up_ids_depend_on_the_id_of_the_answer_and_the_place_of_the_call() -> None:
    def named(id_: str, *more: Payload) -> list[str]:
        return ids_of([chunk({}, id=id_), *more, *TWO])

    assert named("c1") == named("c1", chunk({"content": "other text"}))
    assert not set(named("c1")) & set(named("c2"))


def test_without_an_id_of_the_answer_they_depend_on_its_first_payload() -> None:
    assert ids_of([chunk({"content": "a"}), *TWO]) == ids_of([chunk({"content": "a"}), chunk({"content": "b"}), *TWO])
    assert not set(ids_of([chunk({"content": "a"}), *TWO])) & set(ids_of([chunk({"content": "b"}), *TWO]))


def test_meta_says_that_an_id_was_made_up() -> None:
    known = entry("{}", "h", index=2, id="a")
    events = read("openai-chat", [call_chunk(entry("{}", "f", index=0), known), FINISH])
    metas = [event.meta for event in events if isinstance(event, ToolCallStart)]
    assert [meta and meta.decoded() for meta in metas] == [{"synthetic_id": True}, None]
    blocks = [block for block in fold(events).blocks if isinstance(block, ToolCallBlock)]
    assert [block.meta and block.meta.decoded() for block in blocks] == [{"synthetic_id": True}, None]


def test_a_caller_makes_its_own_ids_from_the_index_of_the_block() -> None:
    stream = [chunk({"content": "a"}), call_chunk(entry("{}", "f", index=0)), FINISH]
    assert ids_of(stream, call_id=made) == ["made_1"]
    assert ids_of(stream, call_id=lambda index: f"\ud800{index}") == ["\ufffd1"]


# -- when a call is finished ------------------------------------------------------------------------------------------


def test_a_call_is_finished_by_its_choice_not_by_the_next_call() -> None:
    stream = [call_chunk(entry("{}", "f", index=0, id="a")), call_chunk(entry("{}", "g", index=1, id="b")), FINISH]
    kinds = [
        (event.type, event.index)
        for event in read("openai-chat", stream)
        if isinstance(event, ToolCallStart | ToolCallDone)
    ]
    assert kinds == [("tool_call_start", 0), ("tool_call_start", 1), ("tool_call_done", 0), ("tool_call_done", 1)]


def test_the_last_fragment_may_come_after_the_finish_reason() -> None:
    stream = [
        call_chunk(entry('{"x"', "f", index=0, id="a"), finish="tool_calls"),
        call_chunk(entry(":1}", index=0)),
        DONE,
    ]
    assert calls_of(read("openai-chat", stream)) == [("a", "f", '{"x":1}', "ready")]


def test_a_call_begun_after_the_finish_reason_is_finished_by_the_end() -> None:
    stream = [FINISH, call_chunk(entry("{}", "f", index=0, id="a")), DONE]
    assert calls_of(read("openai-chat", stream)) == [("a", "f", "{}", "ready")]


def test_a_fragment_of_a_finished_call_is_nobodys() -> None:
    stream = [call_chunk(entry("{}", "f", index=0, id="a"), finish="tool_calls"), call_chunk(entry("x", index=0)), DONE]
    events = read("openai-chat", stream)
    assert (calls_of(events), orphans_of(events)) == ([("a", "f", "{}", "ready")], 1)


CUTS: dict[str, tuple[list[Any], str]] = {
    "blank arguments when the tokens ran out (DeepSeek)": (
        [call_chunk(entry("", "f", index=0, id="a"), finish="length"), DONE],
        "invalid",
    ),
    "half arguments when the tokens ran out": (
        [call_chunk(entry('{"x', "f", index=0, id="a"), finish="length"), DONE],
        "invalid",
    ),
    "blank arguments at a cut": ([call_chunk(entry("", "f", index=0, id="a"))], "cut"),
    "whole arguments at a cut": ([call_chunk(entry("{}", "f", index=0, id="a"))], "cut"),
    "without a name at a cut": ([call_chunk(entry("{}", index=0, id="a"))], "cut"),
}


@pytest.mark.parametrize(("payloads", "state"), CUTS.values(), ids=CUTS.keys())
def test_half_a_call_is_withheld(payloads: list[Any], state: str) -> None:
    answer = fold(read("openai-chat", payloads))
    assert (answer.tool_calls, [call.state for call in answer.withheld_calls]) == ((), [state])


LEGACY: dict[str, tuple[list[Payload], list[Call]]] = {
    "name first, then fragments": (
        [
            chunk({"function_call": {"name": "f"}}),
            chunk({"function_call": {"arguments": '{"x"'}}),
            chunk({"function_call": {"arguments": ":1}"}}, "function_call"),
        ],
        [("made_0", "f", '{"x":1}', "ready")],
    ),
    "all at once": (
        [chunk({"function_call": {"name": "f", "arguments": "{}"}}, "function_call")],
        [("made_0", "f", "{}", "ready")],
    ),
    "one a choice": (
        [
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"name": "g", "arguments": "{}"}}, "function_call", index=1),
            chunk({"function_call": {"arguments": "}"}}, "function_call"),
        ],
        [("made_0", "f", "{}", "ready"), ("made_1", "g", "{}", "ready")],
    ),
    "null": ([chunk({"content": "a", "function_call": None}, "stop")], []),
}


@pytest.mark.parametrize(("payloads", "calls"), LEGACY.values(), ids=LEGACY.keys())
def test_the_legacy_function_call(payloads: list[Payload], calls: list[Call]) -> None:
    assert calls_of(read("openai-chat", payloads, call_id=made)) == calls


def test_a_call_is_told_as_soon_as_id_and_name_are_there() -> None:
    stream = [chunk({}, id="c"), call_chunk(entry("", "f", index=0, id="a"))]
    assert read("openai-chat", stream)[:2] == [Start("openai-chat", "c"), ToolCallStart(0, "a", "f")]
