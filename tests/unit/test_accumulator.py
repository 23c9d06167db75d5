"""The fold: what events add up to, whatever order a mapping pushes them in, and what snapshots promise of it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold import (
    NOTHING,
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
    Snapshot,
    Start,
    Stop,
    StreamAccumulator,
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
    UsageError,
    limits,
    parse_partial_json,
)
from tests.vocabulary import EVENTS

META = JSONText('{"m":1}')
CITED = Citation(0, "https://a.example")
RAW = Raw("ping", JSONText("{}"))
WARNING = ErrorEvent("protocol", "a hole", "sequence_gap", fatal=False)
FATAL = ErrorEvent("provider", "no")
CALL = ToolCallStart(0, "c", "f")
WHOLE = ToolCallDone(0, "c", "f", '{"a":1}')
READY = ToolCallBlock(0, "c", "f", '{"a":1}', state="ready")


def folded(events: Iterable[Event]) -> StreamAccumulator:
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.push(event)
    return accumulator


# -- what a block becomes ---------------------------------------------------------------------------------------------

OPEN: dict[str, tuple[list[Event], Block]] = {  # events, and the one block that is open after them
    "text": ([BlockStart(0, "text", 1, META), TextDelta(0, "a")], TextBlock(0, "a", (), 1, False, META)),
    "text without a start": ([TextDelta(0, "a"), TextDelta(0, "b")], TextBlock(0, "ab", complete=False)),
    "text and a source": ([TextDelta(0, "a"), CITED, TextDelta(0, "b")], TextBlock(0, "ab", (CITED,), complete=False)),
    "a source first": ([CITED], TextBlock(0, "", (CITED,), complete=False)),
    "nothing yet": ([BlockStart(0, "text")], TextBlock(0, complete=False)),
    "a start that comes twice": (
        [BlockStart(0, "text", 1), TextDelta(0, "a"), BlockStart(0, "refusal", 2)],
        TextBlock(0, "a", choice=1, complete=False),
    ),
    "refusal": ([BlockStart(0, "refusal", 1), TextDelta(0, "No")], RefusalBlock(0, "No", 1, False)),
    "reasoning": (
        [BlockStart(0, "reasoning", 1, META), ReasoningDelta(0, "a"), ReasoningDelta(0, "b")],
        ReasoningBlock(0, "ab", ("ab",), choice=1, complete=False, meta=META),
    ),
    "reasoning in parts": (
        [ReasoningDelta(0, "b", 1), ReasoningDelta(0, "a"), ReasoningDelta(0, "c", 1)],
        ReasoningBlock(0, "a\n\nbc", ("a", "bc"), complete=False),
    ),
    "call": (
        [ToolCallStart(0, "c", "f", "mcp", "client", 1, META), ToolCallDelta(0, "c", "{")],
        ToolCallBlock(0, "c", "f", "{", "mcp", "client", "open", 1, False, META),
    ),
    "call without a start": ([ToolCallDelta(0, "c", "{")], ToolCallBlock(0, "c", "", "{", complete=False)),
    "call of the provider": (
        [ToolCallStart(0, "c", "web_search", "web_search", "provider")],
        ToolCallBlock(0, "c", "web_search", "", "web_search", "provider", "provider", complete=False),
    ),
    "call that is whole": ([CALL, ToolCallDelta(0, "c", '{"a":'), WHOLE], READY),
    "call that comes whole": ([WHOLE], READY),
    "call that says otherwise at its end": (
        [CALL, ToolCallDelta(0, "c", "{"), ToolCallDone(0, "c2", "g", "[]")],
        ToolCallBlock(0, "c2", "g", "[]", state="ready"),
    ),
    "media": (
        [MediaDelta(0, "image/png", b"ab"), MediaDelta(0, None, b"c"), MediaDelta(0, None, b"", "https://x.example")],
        MediaBlock(0, "image/png", b"abc", "https://x.example", complete=False),
    ),
    "transcript": (
        [
            BlockStart(0, "transcript", 1),
            TranscriptDelta(0, "helo", "user"),
            TranscriptDelta(0, "lo you", "user", True, 1),
        ],
        TranscriptBlock(0, "hello you", "user", 1, False),
    ),
    "transcript that takes back more than there is": (
        [TranscriptDelta(0, "ab"), TranscriptDelta(0, "c", replaces=9)],
        TranscriptBlock(0, "c", complete=False),
    ),
    "transcript that only takes back": (
        [TranscriptDelta(0, "ab"), TranscriptDelta(0, "c"), TranscriptDelta(0, "", replaces=2)],
        TranscriptBlock(0, "a", complete=False),
    ),
    "tool result": ([BlockStart(0, "tool_result", 1, META)], ToolResultBlock(0, choice=1, complete=False, meta=META)),
    "approval": ([BlockStart(0, "approval")], ApprovalBlock(0, "", "", complete=False)),
    "other": ([BlockStart(0, "other")], OtherBlock(0, "unknown", complete=False)),
}


@pytest.mark.parametrize(("events", "block"), OPEN.values(), ids=OPEN.keys())
def test_a_block_that_is_open(events: list[Event], block: Block) -> None:
    assert folded(events).snapshot().blocks == (block,)


ENDS: dict[str, tuple[Event | None, bool]] = {  # what ends the answer, and whether an open block is whole then
    "done": (Done("end"), True),
    "a fatal error": (FATAL, False),
    "close": (None, False),
}
SETTLED = {  # state of an open call -> state once the answer is over
    "open": "cut",
    "ready": "ready",
    "provider": "provider",
}


@pytest.mark.parametrize(("end", "complete"), ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize(("events", "block"), OPEN.values(), ids=OPEN.keys())
def test_a_block_that_nothing_closed_by_name(
    events: list[Event], block: Block, end: Event | None, complete: bool
) -> None:
    accumulator = folded(events)
    if end is None:
        accumulator.close()
    else:
        accumulator.push(end)
    if isinstance(block, ToolCallBlock):  # half a call is no call, however well the answer ended
        expected: Block = msgspec.structs.replace(block, state=SETTLED[block.state])
    else:
        expected = msgspec.structs.replace(block, complete=complete)
    assert accumulator.snapshot().blocks == (expected,)


@pytest.mark.parametrize(("events", "block"), OPEN.values(), ids=OPEN.keys())
def test_what_ends_a_block_is_authoritative(events: list[Event], block: Block) -> None:
    end = TextBlock(0, "all else", (CITED,), 2, True, META)
    assert folded([*events, BlockEnd(0, end)]).snapshot().blocks == (end,)
    assert folded([BlockEnd(0, end)]).snapshot().blocks == (end,)


def test_the_place_of_a_block_is_where_its_end_says() -> None:
    """As with every other event: a mapping that numbers its blocks otherwise has slipped."""
    (block,) = folded([TextDelta(3, "a"), BlockEnd(3, TextBlock(0, "ab"))]).snapshot().blocks
    assert block == TextBlock(3, "ab")


def test_a_block_that_is_closed_twice_is_what_the_last_end_says() -> None:
    accumulator = folded([BlockEnd(0, TextBlock(0, "a")), BlockEnd(1, TextBlock(1, "b"))])
    before = accumulator.snapshot()
    accumulator.push(BlockEnd(0, TextBlock(0, "c")))
    assert accumulator.snapshot().text == "cb"
    assert before.text == "ab"


LATE: dict[str, tuple[Event, Event, Block]] = {  # what opens the block, the start that follows, what both make of it
    "text": (
        TextDelta(0, "a"),
        BlockStart(0, "text", 1, META),
        TextBlock(0, "a", choice=1, complete=False, meta=META),
    ),
    "refusal": (
        TextDelta(0, "a"),
        BlockStart(0, "refusal", 1, META),
        RefusalBlock(0, "a", 1, False, META),
    ),
    "reasoning": (
        ReasoningDelta(0, "a"),
        BlockStart(0, "reasoning", 1, META),
        ReasoningBlock(0, "a", ("a",), choice=1, complete=False, meta=META),
    ),
    "media": (
        MediaDelta(0, None, b"a"),
        BlockStart(0, "media", 1, META),
        MediaBlock(0, None, b"a", None, 1, False, META),
    ),
    "transcript": (
        TranscriptDelta(0, "a", "user"),
        BlockStart(0, "transcript", 1, META),
        TranscriptBlock(0, "a", "user", 1, False, META),
    ),
    "call": (
        ToolCallDelta(0, "c", "{"),
        ToolCallStart(0, "d", "f", "mcp", "client", 1, META),
        ToolCallBlock(0, "d", "f", "{", "mcp", choice=1, complete=False, meta=META),
    ),
    "call of the provider": (
        ToolCallDelta(0, "c", "{"),
        ToolCallStart(0, "c", "f", "mcp", "provider"),
        ToolCallBlock(0, "c", "f", "{", "mcp", "provider", "provider", complete=False),
    ),
    "call that is whole: what its end said counts": (
        WHOLE,
        ToolCallStart(0, "d", "g", "mcp", "provider", 1, META),
        ToolCallBlock(0, "c", "f", '{"a":1}', "mcp", "client", "ready", 1, True, META),
    ),
}


@pytest.mark.parametrize(("first", "start", "block"), LATE.values(), ids=LATE.keys())
def test_a_start_that_comes_late_still_names_the_block(first: Event, start: Event, block: Block) -> None:
    accumulator = folded([first])
    before = accumulator.snapshot()
    accumulator.changed()
    accumulator.push(start)
    accumulator.push(BlockStart(0, "approval", 7))
    after = accumulator.snapshot()
    assert after.blocks == (block,)
    assert after.choices == block.choice + 1
    assert accumulator.changed() == {0}
    assert before.blocks == folded([first]).snapshot().blocks
    accumulator.push(start)
    assert accumulator.snapshot() is after


# -- order ------------------------------------------------------------------------------------------------------------


def test_blocks_are_in_the_order_of_their_indexes_however_they_come() -> None:
    events: list[Event] = [
        BlockEnd(5, TextBlock(5, "f")),
        TextDelta(2, "c"),
        ReasoningDelta(4, "e"),
        TextDelta(0, "a"),
        BlockEnd(1, TextBlock(1, "b")),
        TextDelta(2, "C"),
        ReasoningDelta(3, "d"),
        BlockEnd(2, TextBlock(2, "cC")),
    ]
    snapshot = folded(events).snapshot()
    assert [block.index for block in snapshot.blocks] == [0, 1, 2, 3, 4, 5]
    assert (snapshot.text, snapshot.reasoning) == ("abcCf", "d\n\ne")


def test_pieces_of_many_blocks_may_come_in_turns() -> None:
    events = [TextDelta(index, f"{index}{turn} ") for turn in range(3) for index in range(3)]
    assert folded(events).text() == "00 01 02 10 11 12 20 21 22 "


MISPLACED: dict[str, tuple[list[Event], Event, str]] = {
    "text of a closed block": ([BlockEnd(0, TextBlock(0, "a"))], TextDelta(0, "x"), "is closed"),
    "arguments of a closed block": ([BlockEnd(0, READY)], ToolCallDelta(0, "c", "x"), "is closed"),
    "a call that is done twice": ([BlockEnd(0, READY)], WHOLE, "is closed"),
    "text of reasoning": ([ReasoningDelta(0, "a")], TextDelta(0, "x"), "is of another kind"),
    "text of a call": ([CALL], TextDelta(0, "x"), "is of another kind"),
    "reasoning of text": ([TextDelta(0, "a")], ReasoningDelta(0, "x"), "is of another kind"),
    "arguments of text": ([TextDelta(0, "a")], ToolCallDelta(0, "c", "x"), "is of another kind"),
    "media of text": ([TextDelta(0, "a")], MediaDelta(0, None, b"x"), "is of another kind"),
    "words of text": ([TextDelta(0, "a")], TranscriptDelta(0, "x"), "is of another kind"),
    "a source of reasoning": ([ReasoningDelta(0, "a")], CITED, "is of another kind"),
    "a source of a refusal": ([BlockStart(0, "refusal")], CITED, "is of another kind"),
    "text of a tool's result": ([BlockStart(0, "tool_result")], TextDelta(0, "x"), "is of another kind"),
    "text of something else": ([BlockStart(0, "other")], TextDelta(0, "x"), "is of another kind"),
    "a start of another kind": ([TextDelta(0, "a")], BlockStart(0, "reasoning"), "is of another kind"),
    "a start of a call where text is": ([TextDelta(0, "a")], CALL, "is of another kind"),
    "a start of a closed block": ([BlockEnd(0, TextBlock(0, "a"))], BlockStart(0, "text"), "is closed"),
    "arguments of a call that is whole": ([WHOLE], ToolCallDelta(0, "c", "x"), "is closed"),
    "arguments like the last of a call that is whole": (
        [CALL, ToolCallDelta(0, "c", "{}"), ToolCallDelta(0, "c", " "), ToolCallDone(0, "c", "f", "{}")],
        ToolCallDelta(0, "c", "x"),
        "is closed",
    ),
}


@pytest.mark.parametrize(("events", "event", "why"), MISPLACED.values(), ids=MISPLACED.keys())
def test_an_event_that_names_the_wrong_block_is_a_warning(events: list[Event], event: Event, why: str) -> None:
    accumulator = folded(events)
    before = accumulator.snapshot()
    accumulator.push(event)
    after = accumulator.snapshot()
    assert after.blocks == before.blocks
    assert [(warning.code, warning.fatal) for warning in after.warnings] == [("misplaced_event", False)]
    assert why in after.warnings[0].message
    assert after.outcome == "open"


# -- the answer -------------------------------------------------------------------------------------------------------


def test_a_later_start_fills_or_replaces() -> None:
    accumulator = folded([Start("unknown"), Start("anthropic", "m1"), Start("anthropic", None, "model")])
    snapshot = accumulator.snapshot()
    assert (snapshot.surface, snapshot.id, snapshot.model) == ("anthropic", "m1", "model")
    accumulator.push(Start("anthropic", "m2", "other"))
    assert (accumulator.snapshot().id, accumulator.snapshot().model) == ("m2", "other")


OUTCOMES: dict[str, tuple[list[Event], str]] = {
    "nothing": ([], "open"),
    "text": ([TextDelta(0, "a")], "open"),
    "a warning": ([WARNING], "open"),
    "done": ([Done()], "complete"),
    "done for another reason": ([Done("refusal")], "complete"),
    "the provider failed": ([ErrorEvent("provider", "no")], "failed"),
    "the transport failed": ([ErrorEvent("transport", "no")], "failed"),
    "the protocol was broken": ([ErrorEvent("protocol", "no")], "failed"),
    "a limit": ([ErrorEvent("limit", "no")], "failed"),
    "truncated": ([ErrorEvent("truncated", "no")], "truncated"),
    "the first end counts": ([Done(), ErrorEvent("provider", "no"), ErrorEvent("truncated", "no")], "complete"),
    "a restart is no end": ([TextDelta(0, "a"), Restart("again")], "open"),
}


@pytest.mark.parametrize(("events", "outcome"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_outcome(events: list[Event], outcome: str) -> None:
    snapshot = folded(events).snapshot()
    assert snapshot.outcome == outcome
    fatal = [event for event in events if isinstance(event, ErrorEvent) and event.fatal]
    assert snapshot.error == (fatal[0] if outcome in ("failed", "truncated") else None)


@pytest.mark.parametrize("end", [Done("end"), FATAL], ids=["done", "error"])
@pytest.mark.parametrize("event", [e for e in EVENTS if not isinstance(e, Start)], ids=lambda event: event.type)
def test_nothing_follows_the_end(end: Event, event: Event) -> None:
    accumulator = folded([TextDelta(0, "a"), end])
    before = accumulator.snapshot()
    accumulator.push(event)
    accumulator.close("failed")
    assert accumulator.snapshot() is before


def test_a_start_after_the_end_begins_another_answer() -> None:
    accumulator = folded([Start("s", "one", "m"), TextDelta(0, "a"), Usage(1), WARNING, Done("end")])
    first = accumulator.snapshot()
    accumulator.extend([Start("s", "two"), TextDelta(0, "b")])
    second = accumulator.snapshot()
    assert (first.id, first.text, first.outcome) == ("one", "a", "complete")
    assert (second.id, second.model, second.text, second.outcome) == ("two", None, "b", "open")
    assert (second.usage, second.warnings, second.stop) == (None, (), Stop())


def test_usage_is_the_last_that_came() -> None:
    assert folded([Usage(1, 2), Usage(3)]).snapshot().usage == Usage(3)


STOPPED: dict[str, tuple[Done, list[Stop], int]] = {  # done, stop of each choice, choices
    "of the first": (Done("length", "max"), [Stop(0, "length", "max")], 1),
    "of none": (Done(), [Stop()], 1),
    "of two": (
        Done("end", "stop", None, (Stop(0, "end", "stop"), Stop(1, "length", "max"))),
        [Stop(0, "end", "stop"), Stop(1, "length", "max")],
        2,
    ),
    "of the second alone": (Done(None, None, None, (Stop(1, "end"),)), [Stop(0), Stop(1, "end")], 2),
    "of the first beside the list": (Done("length", stops=(Stop(1, "end"),)), [Stop(0, "length"), Stop(1, "end")], 2),
    "of one twice: the last": (Done("end", stops=(Stop(0, "end"), Stop(0, "length"))), [Stop(0, "length")], 1),
}


@pytest.mark.parametrize(("done", "stops", "choices"), STOPPED.values(), ids=STOPPED.keys())
def test_stops(done: Done, stops: list[Stop], choices: int) -> None:
    snapshot = folded([TextDelta(0, "a"), done]).snapshot()
    assert snapshot.choices == choices
    assert [snapshot.choice(n).stop for n in range(choices)] == stops
    assert snapshot.stop == stops[0]


CHOICES: dict[str, list[Event]] = {  # ways to say that there are three
    "block start": [BlockStart(0, "text", 2)],
    "call start": [ToolCallStart(0, "c", "f", choice=2)],
    "block end": [BlockEnd(0, TextBlock(0, choice=2))],
    "stop": [Done(stops=(Stop(2),))],
}


@pytest.mark.parametrize("events", CHOICES.values(), ids=CHOICES.keys())
def test_how_many_choices_there_are(events: list[Event]) -> None:
    assert folded(events).snapshot().choices == 3


def test_a_choice_that_only_the_end_of_a_block_names() -> None:
    end = BlockEnd(0, TextBlock(0, "a", choice=1))
    for events in ([end], [TextDelta(0, "a"), end], [BlockEnd(0, TextBlock(0)), end]):
        snapshot = folded(events).snapshot()
        assert snapshot.choice(1).text == "a"
        assert snapshot.choices == 2


def test_a_restart_takes_all_blocks_out() -> None:
    ready = msgspec.structs.replace(READY, index=1, choice=1)
    accumulator = folded([Start("s", "one"), TextDelta(0, "a"), BlockEnd(1, ready), WARNING, Usage(1)])
    before = accumulator.snapshot()
    accumulator.changed()
    accumulator.push(Restart("again"))
    restarted = accumulator.snapshot()
    assert (restarted.blocks, restarted.text, restarted.tool_calls, restarted.choices) == ((), "", (), 1)
    assert accumulator.changed() == {0, 1}
    assert (before.text, before.blocks[1], before.choices) == ("a", ready, 2)
    accumulator.extend([Start("s", "two"), TextDelta(2, "b"), Done("end")])
    after = accumulator.snapshot()
    assert (after.id, after.text, after.outcome) == ("two", "b", "complete")
    assert [block.index for block in after.blocks] == [2]
    assert (after.warnings, after.usage) == ((WARNING,), Usage(1))


def test_warnings_are_bounded() -> None:
    accumulator = folded([ErrorEvent("protocol", str(n), fatal=False) for n in range(limits.MAX_WARNINGS + 9)])
    warnings = accumulator.snapshot().warnings
    assert len(warnings) == limits.MAX_WARNINGS
    assert warnings[-1].message == str(limits.MAX_WARNINGS - 1)


# -- calls ------------------------------------------------------------------------------------------------------------

CANCEL = ToolCallCancelled(("x", "c"))
PROVIDED = ToolCallStart(0, "c", "f", executor="provider")
STATES: dict[str, tuple[list[Event], str]] = {
    "open": ([CALL, ToolCallDelta(0, "c", "{}")], "open"),
    "done": ([CALL, WHOLE], "ready"),
    "done and closed": ([CALL, WHOLE, BlockEnd(0, READY)], "ready"),
    "done, then the answer": ([CALL, WHOLE, Done("tool_use")], "ready"),
    "done, then a cut": ([CALL, WHOLE, ErrorEvent("truncated", "cut")], "ready"),
    "closed, then a cut": ([CALL, WHOLE, BlockEnd(0, READY), ErrorEvent("truncated", "cut")], "ready"),
    "no JSON": ([CALL, ToolCallDone(0, "c", "f", "{", valid=False)], "invalid"),
    "cut by an error": ([CALL, ToolCallDelta(0, "c", "{}"), FATAL], "cut"),
    "cut by a truncation": ([CALL, ErrorEvent("truncated", "cut")], "cut"),
    "never finished": ([CALL, ToolCallDelta(0, "c", "{}"), Done("tool_use")], "cut"),
    "cancelled while open": ([CALL, CANCEL], "cancelled"),
    "cancelled when whole": ([CALL, WHOLE, CANCEL], "cancelled"),
    "cancelled when closed": ([CALL, WHOLE, BlockEnd(0, READY), CANCEL], "cancelled"),
    "cancelled, then the answer ends": ([CALL, CANCEL, Done("end")], "cancelled"),
    "another is cancelled": ([CALL, WHOLE, ToolCallCancelled(("x",))], "ready"),
    "the turn is refused": ([CALL, WHOLE, Done("refusal")], "void"),
    "the turn is refused after the call": ([CALL, WHOLE, BlockEnd(0, READY), Done("refusal")], "void"),
    "the provider takes the calls back": (
        [CALL, WHOLE, BlockEnd(0, READY), Done("other", "TOO_MANY_TOOL_CALLS")],
        "void",
    ),
    "an invalid call of a refused turn": ([ToolCallDone(0, "c", "f", "{", False), Done("refusal")], "invalid"),
    "another choice is refused": (
        [CALL, WHOLE, Done("tool_use", stops=(Stop(0, "tool_use"), Stop(1, "refusal")))],
        "ready",
    ),
    "of the provider": ([PROVIDED], "provider"),
    "of the provider, done": ([PROVIDED, ToolCallDone(0, "c", "f", "{}", executor="provider")], "provider"),
    "of the provider, never done": ([PROVIDED, Done("end")], "provider"),
    "found to be the provider's": ([CALL, ToolCallDone(0, "c", "f", "{}", executor="provider")], "provider"),
    "what the end says": ([CALL, BlockEnd(0, ToolCallBlock(0, "c", "f", "{}", state="void"))], "void"),
}


@pytest.mark.parametrize(("events", "state"), STATES.values(), ids=STATES.keys())
def test_state_of_a_call(events: list[Event], state: str) -> None:
    accumulator = folded(events)
    snapshot = accumulator.snapshot()
    (call,) = snapshot.blocks
    assert isinstance(call, ToolCallBlock)
    assert call.state == state
    assert snapshot.tool_calls == accumulator.tool_calls() == ((call,) if state == "ready" else ())
    assert snapshot.withheld_calls == (() if state == "ready" else (call,))


@pytest.mark.parametrize("end", [[WHOLE], [WHOLE, BlockEnd(0, READY)]], ids=["done", "done and closed"])
def test_a_cancelled_call_stays_cancelled(end: list[Event]) -> None:
    answer = folded([CALL, CANCEL, *end]).snapshot()
    assert answer.tool_calls == ()
    assert [call.state for call in answer.withheld_calls] == ["cancelled"]


def test_a_call_that_was_closed_and_cancelled_stays_cancelled() -> None:
    accumulator = folded([CALL, WHOLE, BlockEnd(0, READY), CANCEL])
    cancelled = accumulator.snapshot()
    accumulator.push(BlockEnd(0, READY))
    assert accumulator.snapshot() is cancelled


def test_the_calls_of_a_snapshot_that_was_taken_before_a_refusal_stay_ready() -> None:
    accumulator = folded([CALL, WHOLE, BlockEnd(0, READY)])
    before = accumulator.snapshot()
    accumulator.push(Done("refusal"))
    assert before.tool_calls == (READY,)
    assert accumulator.tool_calls() == ()


# -- preview ----------------------------------------------------------------------------------------------------------


def test_preview_grows() -> None:
    accumulator = folded([CALL])
    assert accumulator.preview(0) is NOTHING
    accumulator.push(ToolCallDelta(0, "c", '{"city": "Par'))
    tree = accumulator.preview(0)
    assert tree == {"city": "Par"}
    accumulator.push(ToolCallDelta(0, "c", 'is", "n": 1'))
    assert accumulator.preview(0) is tree, "the tree itself, not a copy at each look"
    assert tree == {"city": "Paris"}
    accumulator.push(ToolCallDelta(0, "c", "2}"))
    assert tree == {"city": "Paris", "n": 12}


def test_preview_of_a_call_that_ended() -> None:
    accumulator = folded([CALL, ToolCallDelta(0, "c", '{"a":'), WHOLE])
    assert accumulator.preview(0) == {"a": 1}
    accumulator.push(BlockEnd(0, READY))
    assert accumulator.preview(0) == {"a": 1}
    accumulator.push(Done("tool_use"))
    assert accumulator.preview(0) == {"a": 1}


def test_preview_shows_what_the_end_says() -> None:
    accumulator = folded([CALL, ToolCallDelta(0, "c", '{"b":2')])
    assert accumulator.preview(0) == {}
    accumulator.push(WHOLE)
    assert accumulator.preview(0) == {"a": 1}


NO_CALLS: dict[str, list[Event]] = {
    "nothing there": [],
    "text": [TextDelta(0, "{}")],
    "text that is closed": [BlockEnd(0, TextBlock(0, "{}"))],
    "taken out by a restart": [CALL, Restart("again")],
}


@pytest.mark.parametrize("events", NO_CALLS.values(), ids=NO_CALLS.keys())
def test_preview_of_what_is_no_call(events: list[Event]) -> None:
    with pytest.raises(UsageError):
        folded(events).preview(0)


@given(
    pieces=st.lists(st.sampled_from(['{"a":', "1", ",", '"b":', '"x', '"', "[", "]", "}", " ", "nul"])),
    asked=st.sets(st.integers(0, 9)),
)
def test_preview_does_not_depend_on_when_it_was_asked_for(pieces: list[str], asked: set[int]) -> None:
    accumulator = folded([CALL])
    for number, piece in enumerate(pieces):
        accumulator.push(ToolCallDelta(0, "c", piece))
        if number in asked:
            assert accumulator.preview(0) == parse_partial_json("".join(pieces[: number + 1]))
    assert accumulator.preview(0) == parse_partial_json("".join(pieces))
    (call,) = accumulator.snapshot().blocks
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == "".join(pieces)


# -- changed ----------------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[list[Event], Event, set[int]]] = {
    "a start": ([], BlockStart(3, "text"), {3}),
    "a delta": ([TextDelta(0, "a"), TextDelta(1, "b")], TextDelta(1, "c"), {1}),
    "a delta like the last": ([TextDelta(0, "a"), TextDelta(0, "b")], TextDelta(0, "c"), {0}),
    "an end": ([TextDelta(0, "a"), TextDelta(1, "b")], BlockEnd(0, TextBlock(0, "a")), {0}),
    "another end": ([BlockEnd(0, TextBlock(0, "a"))], BlockEnd(0, TextBlock(0, "b")), {0}),
    "an end of the answer": ([TextDelta(0, "a"), BlockEnd(1, TextBlock(1, "b"))], Done("end"), {0}),
    "a failure": ([TextDelta(0, "a"), BlockEnd(1, TextBlock(1, "b"))], FATAL, {0}),
    "a call is whole": ([CALL], WHOLE, {0}),
    "a call is cancelled": ([CALL, WHOLE, BlockEnd(0, READY)], CANCEL, {0}),
    "a source": ([TextDelta(0, "a")], CITED, {0}),
    "a part of reasoning": ([ReasoningDelta(0, "a")], ReasoningDelta(0, "b", 1), {0}),
    "a ping": ([TextDelta(0, "a")], RAW, set()),
    "usage": ([TextDelta(0, "a")], Usage(1), set()),
    "a warning": ([TextDelta(0, "a")], WARNING, set()),
    "a misplaced event": ([BlockEnd(0, TextBlock(0, "a"))], TextDelta(0, "b"), set()),
    "another name": ([TextDelta(0, "a")], Start("s", "id"), set()),
    "another answer": ([TextDelta(0, "a"), BlockEnd(1, TextBlock(1, "b")), Done("end")], Start("s"), {0, 1}),
}


@pytest.mark.parametrize(("events", "event", "indexes"), CHANGES.values(), ids=CHANGES.keys())
def test_changed(events: list[Event], event: Event, indexes: set[int]) -> None:
    accumulator = folded(events)
    accumulator.changed()
    accumulator.push(event)
    assert accumulator.changed() == indexes
    assert accumulator.changed() == frozenset()


def test_changed_gathers_from_the_beginning() -> None:
    accumulator = folded([TextDelta(0, "a"), TextDelta(0, "b"), ReasoningDelta(2, "c"), TextDelta(0, "d")])
    accumulator.snapshot()
    assert accumulator.changed() == {0, 2}


def test_a_call_that_becomes_void_has_changed() -> None:
    accumulator = folded([CALL, WHOLE, BlockEnd(0, READY)])
    accumulator.changed()
    accumulator.push(Done("refusal"))
    assert accumulator.changed() == {0}


# -- reset, close -----------------------------------------------------------------------------------------------------


def test_reset_forgets_everything_and_leaves_snapshots_alone() -> None:
    accumulator = folded([Start("s", "one", "m"), TextDelta(0, "a"), CALL, Usage(1), WARNING, FATAL])
    before = accumulator.snapshot()
    shown = repr(before)
    accumulator.reset()
    assert accumulator.snapshot() == Snapshot()
    assert accumulator.changed() == frozenset()
    accumulator.push(TextDelta(0, "b"))
    assert accumulator.text() == "b"
    assert repr(before) == shown


@pytest.mark.parametrize("outcome", ["cancelled", "failed", "truncated", "complete"])
def test_close(outcome: Any) -> None:
    accumulator = folded([TextDelta(0, "a"), ToolCallDelta(1, "c", "{")])
    accumulator.close(outcome)
    closed = accumulator.snapshot()
    assert closed.outcome == outcome
    assert closed.blocks == (
        TextBlock(0, "a", complete=False),
        ToolCallBlock(1, "c", "", "{", state="cut", complete=False),
    )
    assert closed.error is None
    accumulator.close("failed")
    assert accumulator.snapshot() is closed


def test_close_is_cancel_unless_it_is_said_otherwise() -> None:
    accumulator = StreamAccumulator()
    accumulator.close()
    assert accumulator.snapshot().outcome == "cancelled"


@pytest.mark.parametrize("outcome", ["open", "finished", None])
def test_close_by_a_word_that_is_no_outcome(outcome: Any) -> None:
    with pytest.raises(UsageError):
        StreamAccumulator().close(outcome)


# -- snapshots: shared, and never changed -----------------------------------------------------------------------------

NOTHING_NEW: dict[str, list[Event]] = {
    "no event": [],
    "raw": [RAW, RAW],
    "live matters": [Interrupted("barge-in"), GoAway(5), Session("s")],
}


@pytest.mark.parametrize("more", NOTHING_NEW.values(), ids=NOTHING_NEW.keys())
def test_the_same_snapshot_comes_back_when_nothing_changed(more: list[Event]) -> None:
    known: list[list[Event]] = [
        [],
        [TextDelta(0, "a"), TextDelta(0, "b")],
        [CALL, ToolCallDelta(0, "c", "{")],
        [TextDelta(0, "a"), Done()],
    ]
    for events in known:
        accumulator = folded(events)
        snapshot = accumulator.snapshot()
        accumulator.extend(more)
        for event in more:
            accumulator.push(event)
        assert accumulator.snapshot() is snapshot
        assert accumulator.changed() is not None
        assert accumulator.snapshot() is snapshot


SAID_BEFORE: dict[str, list[Event]] = {
    "a start of the same surface": [Start("s")],
    "nothing": [TextDelta(3, ""), ReasoningDelta(4, "", 7), ToolCallDelta(1, "c", ""), MediaDelta(5, "image/png")],
    "no words": [TranscriptDelta(6, "", "user", True)],
    "a call that is whole": [ToolCallDone(7, "d", "g", "{}")],
    "a call that was cancelled": [ToolCallCancelled(("e",))],
    "one warning more than are kept": [WARNING],
    "the same names": [Start("s", "one", "m")],
    "the same totals": [Usage(1)],
    "a block that is there": [BlockStart(0, "text")],
    "a call that is there": [ToolCallStart(1, "c", "f")],
    "an end that was said": [BlockEnd(2, TextBlock(2, "z"))],
    "no such call": [ToolCallCancelled(("x",))],
}


@pytest.mark.parametrize("more", SAID_BEFORE.values(), ids=SAID_BEFORE.keys())
def test_the_same_snapshot_comes_back_when_nothing_new_was_said(more: list[Event]) -> None:
    known: list[Event] = [
        *[WARNING] * limits.MAX_WARNINGS,
        Start("s", "one", "m"),
        TextDelta(0, "a"),
        ToolCallStart(1, "c", "f"),
        Usage(1),
        BlockEnd(2, TextBlock(2, "z")),
        TextDelta(3, "a"),
        ReasoningDelta(4, "a"),
        MediaDelta(5, "image/png", b"a"),
        TranscriptDelta(6, "a", "user"),
        ToolCallDone(7, "d", "g", "{}"),
        ToolCallStart(8, "e", "f"),
        ToolCallCancelled(("e",)),
    ]
    accumulator = folded(known)
    snapshot = accumulator.snapshot()
    accumulator.changed()
    accumulator.extend(more)
    assert accumulator.snapshot() is snapshot
    assert accumulator.changed() == frozenset()


def test_snapshots_share_what_did_not_change() -> None:
    accumulator = folded([BlockEnd(0, TextBlock(0, "a")), TextDelta(1, "b"), ReasoningDelta(2, "c")])
    one = accumulator.snapshot().blocks
    accumulator.push(ReasoningDelta(2, "d"))
    two = accumulator.snapshot().blocks
    assert two[0] is one[0]
    assert two[1] is one[1], "an open block, too"
    assert two[2] != one[2]


def test_a_snapshot_that_nobody_looks_at_keeps_no_joined_text() -> None:
    accumulator = StreamAccumulator()
    taken: list[Snapshot] = []
    for _ in range(1000):
        accumulator.push(TextDelta(0, "x" * 1000))
        taken.append(accumulator.snapshot())
    sizes = {len(snapshot.text) for snapshot in taken[:3]}
    assert sizes == {1000, 2000, 3000}
    assert len(taken[-1].text) == 1_000_000


# -- breadth: a naive twin, old snapshots, cuts -----------------------------------------------------------------------

indexes = st.integers(0, 4)
words = st.sampled_from(["a", "bc", " ", "é", "", "{}"])
choices = st.integers(0, 1)
kinds = st.sampled_from(["text", "refusal", "reasoning", "media", "transcript", "tool_result", "approval", "other"])
ids = st.sampled_from(["c", "d"])
blocks = st.one_of(
    st.builds(TextBlock, indexes, words, choice=choices),
    st.builds(RefusalBlock, indexes, words),
    st.builds(ReasoningBlock, indexes, words, words.map(lambda word: (word,))),
    st.builds(ToolCallBlock, indexes, ids, words, words, state=st.sampled_from(["ready", "invalid", "cut"])),
)
some_deltas: list[st.SearchStrategy[Any]] = [
    st.builds(TextDelta, indexes, words),
    st.builds(TextDelta, indexes, words),
    st.builds(ReasoningDelta, indexes, words, st.integers(0, 2)),
    st.builds(ToolCallDelta, indexes, ids, words),
]
some_events: st.SearchStrategy[Event] = st.one_of(
    *some_deltas,
    *some_deltas,
    st.builds(TranscriptDelta, indexes, words, st.sampled_from(["model", "user"]), st.booleans(), st.integers(0, 3)),
    st.builds(MediaDelta, indexes, st.none() | words, st.binary(max_size=2), st.none() | words),
    st.builds(Citation, indexes, words),
    st.builds(BlockStart, indexes, kinds, choices),
    st.builds(ToolCallStart, indexes, ids, words, executor=st.sampled_from(["client", "provider"]), choice=choices),
    st.builds(ToolCallDone, indexes, ids, words, words, st.booleans()),
    blocks.map(lambda block: BlockEnd(block.index, block)),
    st.builds(Usage, st.integers(0, 3)),
    st.sampled_from([RAW, WARNING, GoAway(1), ToolCallCancelled(("c",)), Start("s", "i")]),
)
rare_events: st.SearchStrategy[Event] = st.sampled_from(
    [Restart("again"), Done("end"), Done("refusal"), FATAL, ErrorEvent("truncated", "cut"), Start("s", "j")]
)
runs = st.lists(st.lists(some_events, max_size=12), min_size=1, max_size=3).flatmap(
    lambda parts: st.tuples(*(rare_events for _ in parts)).map(
        lambda rare: [event for part, last in zip(parts, rare, strict=True) for event in (*part, last)]
    )
) | st.lists(some_events, max_size=30)


class Twin:
    """The fold once more, as a script would do it: everything is made anew at every event."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}  # a dict while it is open, then the block
        self.outcome = "open"
        self.misplaced = 0

    def push(self, event: Any) -> None:
        if self.outcome != "open":
            if not isinstance(event, Start):
                return
            self.__init__()  # type: ignore[misc]
        match event:
            case Restart():
                self.blocks = {}
            case BlockStart() if block := self.place(event.index, event.kind, *ALIKE.get(event.kind, WHOLES)):
                if not block["named"]:
                    block.update(kind=event.kind, choice=event.choice, named=True)
            case ToolCallStart() if block := self.place(event.index, "call"):
                if not block["named"]:
                    block.update(choice=event.choice, named=True)
                    if not block["finished"]:
                        block.update(id=event.id, name=event.name, executor=event.executor)
                        if event.executor == "provider" and block["state"] == "open":
                            block["state"] = "provider"
            case TextDelta() if block := self.place(event.index, "text", "refusal"):
                block["text"] += event.text
            case Citation() if block := self.place(event.index, "text"):
                block["citations"] += (event,)
            case ReasoningDelta() if block := self.place(event.index, "reasoning"):
                block["parts"][event.part] = block["parts"].get(event.part, "") + event.text
            case TranscriptDelta() if block := self.place(event.index, "transcript"):
                kept = block["text"][: max(0, len(block["text"]) - event.replaces)]
                block.update(text=kept + event.text, source=event.source)
            case MediaDelta() if block := self.place(event.index, "media"):
                block["data"] += event.data
                block.update(mime=event.mime_type or block["mime"], url=event.url or block["url"])
            case ToolCallDelta() if block := self.place(event.index, "call"):
                if block["finished"]:
                    self.misplaced += 1
                else:
                    block.update(text=block["text"] + event.delta, id=block["id"] or event.id)
            case ToolCallDone() if block := self.place(event.index, "call"):
                state = "provider" if event.executor == "provider" else "ready" if event.valid else "invalid"
                state = block["state"] if block["state"] == "cancelled" else state
                block.update(id=event.id, name=event.name, text=event.arguments, executor=event.executor)
                block.update(state=state, finished=True)
            case ToolCallCancelled():
                for index, block in self.blocks.items():
                    if isinstance(block, dict) and block["kind"] == "call" and block["id"] in event.ids:
                        block["state"] = "cancelled"
                    elif isinstance(block, ToolCallBlock) and block.id in event.ids:
                        self.blocks[index] = msgspec.structs.replace(block, state="cancelled")
            case BlockEnd():
                known, block = self.blocks.get(event.index), event.block
                state = known["state"] if isinstance(known, dict) else getattr(known, "state", "")
                if isinstance(block, ToolCallBlock) and state == "cancelled":
                    block = msgspec.structs.replace(block, state=state)
                self.blocks[event.index] = block
            case Done():
                self.end("complete")
                ready = {i: b for i, b in self.blocks.items() if isinstance(b, ToolCallBlock) and b.state == "ready"}
                for index, call in ready.items():
                    if event.reason == "refusal" and call.choice == 0:
                        self.blocks[index] = msgspec.structs.replace(call, state="void")
            case ErrorEvent(fatal=True):
                self.end("truncated" if event.kind == "truncated" else "failed")

    def place(self, index: int, kind: str, *others: str) -> dict[str, Any] | None:
        block = self.blocks.setdefault(index, opened(kind))
        if isinstance(block, dict) and block["kind"] in (kind, *others):
            return block
        self.misplaced += 1
        return None

    def end(self, outcome: str) -> None:
        self.outcome = outcome
        for index, block in self.blocks.items():
            if isinstance(block, dict):
                if block["kind"] == "call" and block["state"] == "open":
                    block["state"] = "cut"
                self.blocks[index] = made(index, block, outcome == "complete")

    def shown(self) -> tuple[Block, ...]:
        return tuple(
            made(index, block, False) if isinstance(block, dict) else block
            for index, block in sorted(self.blocks.items())
        )


WHOLES = ("tool_result", "approval", "other")  # of which nothing comes before the end
TEXTS = ("text", "refusal")
ALIKE = {"text": TEXTS, "refusal": TEXTS, "reasoning": (), "media": (), "transcript": ()}


def opened(kind: str) -> dict[str, Any]:
    call = {"id": "", "name": "", "executor": "client", "state": "open", "finished": False}
    media = {"mime": None, "data": b"", "url": None, "source": "model"}
    return {"kind": kind, "choice": 0, "named": False, "text": "", "citations": (), "parts": {}, **call, **media}


def made(index: int, b: dict[str, Any], complete: bool) -> Block:
    choice, text = b["choice"], b["text"]
    match b["kind"]:
        case "text":
            return TextBlock(index, text, b["citations"], choice, complete)
        case "refusal":
            return RefusalBlock(index, text, choice, complete)
        case "reasoning":
            parts = tuple(part for _, part in sorted(b["parts"].items()) if part)
            return ReasoningBlock(index, "\n\n".join(parts), parts, choice=choice, complete=complete)
        case "call":
            facts = (b["id"], b["name"], text, "function", b["executor"], b["state"])
            return ToolCallBlock(index, *facts, choice, b["finished"])
        case "media":
            return MediaBlock(index, b["mime"], b["data"], b["url"], choice, complete)
        case "transcript":
            return TranscriptBlock(index, text, b["source"], choice, complete)
        case "tool_result":
            return ToolResultBlock(index, choice=choice, complete=complete)
        case "approval":
            return ApprovalBlock(index, "", "", choice=choice, complete=complete)
        case _:
            return OtherBlock(index, "unknown", choice=choice, complete=complete)


@given(events=runs)
def test_agrees_with_its_naive_twin(events: list[Event]) -> None:
    accumulator, twin = StreamAccumulator(), Twin()
    for event in events:
        accumulator.push(event)
        twin.push(event)
        snapshot = accumulator.snapshot()
        assert snapshot.blocks == twin.shown()
        assert snapshot.outcome == twin.outcome
        warned = sum(warning.code == "misplaced_event" for warning in snapshot.warnings)
        assert warned == twin.misplaced


@given(events=runs, looked=st.sets(st.integers(0, 60)))
def test_old_snapshots_never_change(events: list[Event], looked: set[int]) -> None:
    accumulator = StreamAccumulator()
    taken: list[tuple[Snapshot, Snapshot]] = []  # and what a fold of that far alone says
    for number, event in enumerate(events):
        accumulator.push(event)
        alone = folded(events[: number + 1]).snapshot()
        taken.append((accumulator.snapshot(), alone))
        assert alone.blocks is not None
        if number in looked:
            assert taken[-1][0].blocks == alone.blocks
    accumulator.close()
    for snapshot, alone in taken:
        assert snapshot == alone
        assert repr(snapshot) == repr(alone)
        assert snapshot.to_json() == alone.to_json()


def test_an_old_snapshot_says_who_spoke_then() -> None:
    accumulator = folded([TranscriptDelta(0, "a", "model")])
    before = accumulator.snapshot()
    accumulator.push(TranscriptDelta(0, "b", "user"))
    assert before.blocks == (TranscriptBlock(0, "a", "model", complete=False),)


@given(
    events=runs,
    cuts=st.lists(st.integers(0, 60)),
    looks=st.lists(st.sampled_from(["snapshot", "changed", "text", "preview"])),
)
def test_it_does_not_matter_how_events_come_or_who_looks(
    events: list[Event], cuts: list[int], looks: list[str]
) -> None:
    accumulator = StreamAccumulator()
    looking = iter(looks)
    for start, stop in pairwise([0, *sorted(cut for cut in cuts if cut <= len(events)), len(events)]):
        accumulator.extend(events[start:stop])
        match next(looking, None):
            case "snapshot":
                assert accumulator.snapshot() is accumulator.snapshot()
            case "changed":
                accumulator.changed()
            case "text":
                assert accumulator.text() == accumulator.snapshot().text
            case "preview":
                calls = [b.index for b in accumulator.snapshot().blocks if isinstance(b, ToolCallBlock)]
                for index in calls:
                    accumulator.preview(index)
    assert accumulator.snapshot() == folded(events).snapshot()


@given(events=runs, asked=st.sets(st.integers(0, 60)))
def test_changed_misses_nothing(events: list[Event], asked: set[int]) -> None:
    accumulator = StreamAccumulator()
    before: dict[int, Block] = {}
    for number, event in enumerate(events):
        accumulator.push(event)
        if number in asked or number == len(events) - 1:
            after = {block.index: block for block in accumulator.snapshot().blocks}
            differ = {index for index in before.keys() | after.keys() if before.get(index) != after.get(index)}
            assert differ <= accumulator.changed()
            before = after


def test_a_million_pieces_are_joined_right() -> None:
    accumulator = StreamAccumulator()
    accumulator.extend(TextDelta(0, str(n % 10)) for n in range(100_000))
    for n in range(10_000):
        accumulator.push(TextDelta(0, str(n % 10)))
    assert accumulator.text() == "0123456789" * 11_000
