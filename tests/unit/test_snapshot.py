"""An answer as it stands: what is asked of it, and that nothing changes it."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest

from streamfold import (
    Block,
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    JSONText,
    ReasoningBlock,
    ReasoningDelta,
    RefusalBlock,
    Snapshot,
    Start,
    Stop,
    StreamAccumulator,
    StreamError,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)

READY = ToolCallBlock(5, "c5", "f", "{}", state="ready")
BLOCKS: list[Block] = [
    ReasoningBlock(0, "Hm", ("Hm",)),
    TextBlock(1, "Hel"),
    ReasoningBlock(2),
    RefusalBlock(3, "no"),
    TextBlock(4, "other", choice=1),
    READY,
    ToolCallBlock(6, "c6", "f", "{", state="invalid"),
    ToolCallBlock(7, "c7", "web_search", "{}", kind="web_search", executor="provider", state="provider"),
    ToolCallBlock(8, "c8", "f", "{}", state="ready", choice=1),
    ReasoningBlock(9, "a\n\nb", ("a", "b")),
    TextBlock(10, "lo", (Citation(10, raw=JSONText('{"a": 1.0}')),)),
]
STOPS = (Stop(0, "tool_use", "stop", "END"), Stop(1, "length", "max"))
WARNING = ErrorEvent("protocol", "a hole", "sequence_gap", fatal=False)
FATAL = ErrorEvent("provider", "try later", "overloaded")


def folded(*events: Event) -> Snapshot:
    accumulator = StreamAccumulator()
    accumulator.extend(events)
    return accumulator.snapshot()


def whole(*more: Event) -> Snapshot:
    ends = [BlockEnd(block.index, block) for block in BLOCKS]
    return folded(Start("anthropic", "m", "model"), *ends, Usage(1, 2, 3), WARNING, *more)


def open_and_closed() -> Snapshot:
    """One whose blocks are made when somebody looks."""
    return folded(
        Start("anthropic"),
        BlockEnd(0, TextBlock(0, "done")),
        TextDelta(1, "gro"),
        TextDelta(1, "ws"),
        ToolCallStart(2, "c", "f"),
        ToolCallDelta(2, "c", '{"a":'),
        ReasoningDelta(3, "Hm", 1),
    )


# -- what is asked of it ----------------------------------------------------------------------------------------------


def test_an_answer_that_has_not_begun() -> None:
    for empty in (Snapshot(), StreamAccumulator().snapshot()):
        assert (empty.surface, empty.id, empty.model, empty.usage, empty.error) == (None,) * 5
        assert (empty.blocks, empty.warnings, empty.tool_calls, empty.withheld_calls) == ((),) * 4
        assert (empty.text, empty.reasoning) == ("", "")
        assert (empty.outcome, empty.choices, empty.stop) == ("open", 1, Stop())
        empty.raise_for_error()


def test_an_answer_that_is_whole() -> None:
    answer = whole(Done("tool_use", "stop", "END", STOPS))
    assert (answer.surface, answer.id, answer.model, answer.outcome) == ("anthropic", "m", "model", "complete")
    assert answer.blocks == tuple(BLOCKS)
    assert answer.usage == Usage(1, 2, 3)
    assert answer.warnings == (WARNING,)
    assert answer.error is None
    assert answer.choices == 2


CHOICES = {  # of several choices, each has its own; the answer's are those of the first
    0: ("Hel" + "no" + "lo", "Hm\n\na\n\nb", (READY,), ("c6", "c7"), STOPS[0]),
    1: ("other", "", (BLOCKS[8],), (), STOPS[1]),
    2: ("", "", (), (), Stop(2)),
    -1: ("", "", (), (), Stop(-1)),
}


@pytest.mark.parametrize(("index", "facts"), CHOICES.items(), ids=CHOICES.keys())
def test_a_choice_has_its_own(index: int, facts: tuple[Any, ...]) -> None:
    answer = whole(Done("tool_use", "stop", "END", STOPS))
    choice = answer.choice(index)
    assert choice.index == index
    assert choice.blocks == tuple(block for block in BLOCKS if block.choice == index)
    withheld = tuple(call.id for call in choice.withheld_calls)
    assert (choice.text, choice.reasoning, choice.tool_calls, withheld, choice.stop) == facts
    if index == 0:
        assert (answer.text, answer.reasoning, answer.tool_calls) == facts[:3]
        assert (answer.withheld_calls, answer.stop) == (choice.withheld_calls, choice.stop)


STATES = ["open", "ready", "invalid", "cut", "void", "cancelled", "provider"]


@pytest.mark.parametrize("state", STATES)
def test_only_a_call_that_is_ready_is_handed_out(state: Any) -> None:
    call = ToolCallBlock(0, "c", "f", "{}", state=state)
    answer = folded(BlockEnd(0, call))
    assert (answer.tool_calls, answer.withheld_calls) == (((call,), ()) if state == "ready" else ((), (call,)))


def test_a_stop_of_another_choice_is_not_the_answers() -> None:
    answer = folded(TextDelta(0, "x"), Done(None, None, None, (Stop(1, "length", "max"),)))
    assert answer.stop == Stop(0)
    assert answer.choice(1).stop == Stop(1, "length", "max")


def test_a_fatal_error_is_raised_when_asked_for() -> None:
    answer = whole(FATAL)
    assert answer.error == FATAL
    with pytest.raises(StreamError) as caught:
        answer.raise_for_error()
    assert caught.value.event == FATAL


def test_a_warning_is_not() -> None:
    answer = whole(Done("end"))
    assert answer.warnings == (WARNING,)
    answer.raise_for_error()


# -- JSON -------------------------------------------------------------------------------------------------------------

MEMBERS = ["id", "model", "surface", "outcome", "stop", "text", "reasoning", "blocks"]
MEMBERS += ["tool_calls", "withheld_calls", "usage", "error", "warnings", "choices"]


def test_json_of_an_answer() -> None:
    text = whole(Done("tool_use", "stop", "END", STOPS)).to_json()
    members = json.loads(text)
    assert "\n" not in text
    assert list(members) == MEMBERS
    assert (members["id"], members["model"], members["surface"]) == ("m", "model", "anthropic")
    assert members["outcome"] == "complete"
    assert members["stop"] == {"reason": "tool_use", "raw": "stop", "stop_sequence": "END"}
    assert members["text"] == "Hel" + "no" + "lo"
    assert members["reasoning"] == "Hm\n\na\n\nb"
    assert [block["type"] for block in members["blocks"]] == [block.type for block in BLOCKS]
    assert members["blocks"][10]["citations"][0]["raw"] == {"a": 1.0}
    assert members["tool_calls"] == [{"id": "c5", "name": "f", "arguments": "{}"}]
    assert members["withheld_calls"] == [
        {"id": "c6", "name": "f", "arguments": "{", "state": "invalid"},
        {"id": "c7", "name": "web_search", "arguments": "{}", "state": "provider"},
    ]
    assert members["usage"]["output_tokens"] == 2
    assert members["error"] is None
    assert members["warnings"][0]["code"] == "sequence_gap"


def test_json_of_several_choices() -> None:
    members = json.loads(whole(Done("tool_use", "stop", "END", STOPS)).to_json())
    first, second = members["choices"]
    assert first == {"index": 0, **{name: members[name] for name in first if name != "index"}}
    assert second == {
        "index": 1,
        "stop": {"reason": "length", "raw": "max", "stop_sequence": None},
        "text": "other",
        "reasoning": "",
        "tool_calls": [{"id": "c8", "name": "f", "arguments": "{}"}],
        "withheld_calls": [],
    }


def test_json_of_one_choice_names_no_choices() -> None:
    members = json.loads(folded(Start("s"), TextDelta(0, "x"), FATAL).to_json())
    assert list(members) == MEMBERS[:-1]
    assert members["error"]["message"] == "try later"
    block = {"type": "text", "index": 0, "text": "x", "citations": [], "choice": 0, "complete": False, "meta": None}
    assert members["blocks"] == [block]
    assert members["usage"] is None


def test_json_of_an_answer_that_has_not_begun() -> None:
    members = json.loads(Snapshot().to_json())
    assert list(members) == MEMBERS[:-1]
    assert members["stop"] == {"reason": None, "raw": None, "stop_sequence": None}


def test_json_is_one_line_of_utf_8_whatever_a_mapping_made() -> None:
    answer = folded(
        Start("s", "\ud800"),
        TextDelta(0, "a\ud83d\n\u2028"),
        BlockEnd(1, ToolCallBlock(1, "c", "f", "{}", meta=JSONText('{\n"a":\r\n"\udc00"}'))),
    )
    text = answer.to_json()
    assert "\n" not in text
    assert "\r" not in text
    members = json.loads(text.encode())
    assert (members["id"], members["text"]) == ("\ufffd", "a\ufffd\n\u2028")
    assert members["blocks"][1]["meta"] == {"a": "\ufffd"}


def test_json_names_the_choices_that_came_however_far_apart() -> None:
    """A provider may say that a choice is any number."""
    far = 10**12
    answer = folded(BlockStart(0, "text", far), TextDelta(0, "x"), Done(stops=(Stop(far + 1, "end", "stop"),)))
    members = json.loads(answer.to_json())
    assert [choice["index"] for choice in members["choices"]] == [0, far, far + 1]
    assert [choice["text"] for choice in members["choices"]] == ["", "x", ""]
    assert members["choices"][2]["stop"]["reason"] == "end"


# -- a value ----------------------------------------------------------------------------------------------------------

CHANGES: dict[str, list[Event]] = {
    "surface": [Start("openai-chat")],
    "id": [Start("anthropic", "other")],
    "model": [Start("anthropic", None, "other")],
    "usage": [Usage(9)],
    "block": [TextDelta(4, "x")],
    "warning": [WARNING],
    "error": [FATAL],
    "outcome": [Done()],
    "stops": [Done("end")],
    "choices": [Done(None, None, None, (Stop(), Stop(1)))],
}


@pytest.mark.parametrize("events", CHANGES.values(), ids=CHANGES.keys())
def test_answers_are_equal_where_nothing_tells_them_apart(events: list[Event]) -> None:
    start: list[Event] = [Start("anthropic", "m", "model"), TextDelta(0, "x")]
    one, twin, other = folded(*start), folded(*start), folded(*start, *events)
    assert one == twin
    assert not one != twin  # noqa: SIM202
    assert hash(one) == hash(twin)
    assert one != other
    assert not one == other  # noqa: SIM201
    assert len({one, twin, other}) == 2


def test_an_answer_is_no_other_thing() -> None:
    other: object = "Snapshot"
    assert Snapshot() != other


def test_an_answer_is_immutable() -> None:
    answer = whole()
    for name in ("surface", "outcome", "usage", "blocks", "text", "stop", "warnings", "anything_else"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(answer, name, None)
    for value in (answer.blocks, answer.warnings, answer.tool_calls, answer.withheld_calls, answer.choice(0).blocks):
        assert type(value) is tuple


def test_what_was_made_is_made_once() -> None:
    answer = open_and_closed()
    assert answer.blocks is answer.blocks
    assert all(one is two for one, two in zip(answer.blocks, answer.choice(0).blocks, strict=True))


COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copy_of_an_answer_is_equal(copied: Any) -> None:
    for answer in (Snapshot(), whole(), open_and_closed(), whole(FATAL), whole(Done(stops=STOPS))):
        twin = copied(answer)
        assert twin == answer
        assert hash(twin) == hash(answer)
        assert twin.to_json() == answer.to_json()


def test_the_repr_shows_the_answer_and_nothing_of_how_it_is_held() -> None:
    accumulator = StreamAccumulator()
    accumulator.extend([Start("s"), TextDelta(1, "now")])
    answer = accumulator.snapshot()
    shown = repr(answer)
    assert shown.startswith("Snapshot(surface='s'")
    assert "TextBlock(index=1, text='now'" in shown
    assert " at 0x" not in shown
    accumulator.extend([BlockEnd(1, TextBlock(1, "now and later")), WARNING])
    assert repr(answer) == shown, "what came later does not show"


def test_a_choice_is_a_value() -> None:
    choice = whole(Done(stops=STOPS)).choice(1)
    assert choice == whole(Done(stops=STOPS)).choice(1)
    assert hash(choice) == hash(pickle.loads(pickle.dumps(choice)))
    assert isinstance(choice, msgspec.Struct)
    with pytest.raises(AttributeError):
        choice.index = 0  # type: ignore[misc]
