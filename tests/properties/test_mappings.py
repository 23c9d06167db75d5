"""The fold under mappings that people write themselves: blocks that a delta opens, that are named late or never, that
nothing closes, in any order and in turns. What an answer says does not depend on how much of it a mapping bothers with.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from streamfold import (
    Block,
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    JSONText,
    MediaBlock,
    MediaDelta,
    Raw,
    ReasoningBlock,
    ReasoningDelta,
    RefusalBlock,
    Snapshot,
    Start,
    StreamAccumulator,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptBlock,
    TranscriptDelta,
    Usage,
)
from tests.naive_fold import differences

META: Final = JSONText('{"m":1}')
words = st.sampled_from(["a", "bc", " ", "é\U0001f600", "\n", "x" * 70])
pieces = st.lists(words, min_size=1, max_size=6)


class Lane(NamedTuple):
    """One block as a mapping tells it, and what it is as long as it is open."""

    events: list[Event]
    block: Block


def texts(index: int, said: list[str]) -> Lane:
    cited = Citation(index, "https://a.example")
    events: list[Event] = [TextDelta(index, piece) for piece in said]
    return Lane([*events[:1], cited, *events[1:]], TextBlock(index, "".join(said), (cited,), complete=False))


def refusals(index: int, said: list[str]) -> Lane:
    """Only its start tells it from text."""
    return Lane([TextDelta(index, piece) for piece in said], RefusalBlock(index, "".join(said), complete=False))


def thoughts(index: int, said: list[str]) -> Lane:
    events: list[Event] = [ReasoningDelta(index, piece, number // 2) for number, piece in enumerate(said)]
    parts = tuple("".join(said[at : at + 2]) for at in range(0, len(said), 2))
    return Lane(events, ReasoningBlock(index, "\n\n".join(parts), parts, complete=False))


def calls(index: int, said: list[str]) -> Lane:
    arguments = msgspec.json.encode("".join(said)).decode()
    cuts = [0, *range(3, len(arguments), 9), len(arguments)]
    events: list[Event] = [ToolCallDelta(index, f"c{index}", arguments[a:b]) for a, b in pairwise(cuts)]
    return Lane(events, ToolCallBlock(index, f"c{index}", "", arguments, complete=False))


def spoken(index: int, said: list[str]) -> Lane:
    """Every other piece is heard wrong at first."""
    events: list[Event] = []
    for number, piece in enumerate(said):
        heard = piece[:-1] + "??" if number % 2 else piece
        events.append(TranscriptDelta(index, heard, "user"))
        if heard != piece:
            events.append(TranscriptDelta(index, piece[-1:], "user", True, 2))
    return Lane(events, TranscriptBlock(index, "".join(said), "user", complete=False))


def media(index: int, said: list[str]) -> Lane:
    data = [piece.encode() for piece in said]
    events: list[Event] = [MediaDelta(index, "audio/wav", data[0]), *(MediaDelta(index, None, d) for d in data[1:])]
    return Lane(events, MediaBlock(index, "audio/wav", b"".join(data), complete=False))


KINDS: Final = (texts, refusals, thoughts, calls, spoken, media)


def start_of(block: Block, choice: int) -> Event:
    if isinstance(block, ToolCallBlock):
        return ToolCallStart(block.index, block.id, "f", "function", "client", choice, META)
    kind: Any = block.type
    return BlockStart(block.index, kind, choice, META)


@st.composite
def lanes(draw: st.DrawFn, index: int) -> Lane:
    """A block: by which of its events it is told, and what those make of it."""
    made = draw(st.sampled_from(KINDS))(index, draw(pieces))
    events, block = list(made.events), made.block
    at = draw(st.none() | st.integers(0, len(events)))
    if at is not None:
        choice = draw(st.integers(0, 1))
        events.insert(at, start_of(block, choice))
        block = msgspec.structs.replace(block, choice=choice, meta=META)
    elif isinstance(block, RefusalBlock):
        block = TextBlock(index, block.text, complete=False)
    if isinstance(block, ToolCallBlock):
        block = msgspec.structs.replace(block, name="f") if at is not None else block
        if draw(st.booleans()):
            events.append(ToolCallDone(index, block.id, "f", block.arguments))
            block = msgspec.structs.replace(block, name="f", state="ready", complete=True)
    if draw(st.booleans()):
        whole = msgspec.structs.replace(block, complete=True)
        if isinstance(whole, ToolCallBlock):
            whole = msgspec.structs.replace(whole, state="ready", name="f")
        return Lane([*events, BlockEnd(index, whole)], whole)
    return Lane(events, block)


besides: st.SearchStrategy[Event] = st.sampled_from(
    [Start("mine", "one", "m"), Usage(1, 2), Raw("ping", JSONText("{}"))]
)
ends: st.SearchStrategy[Event | None] = st.sampled_from(
    [Done("end"), Done("refusal"), ErrorEvent("provider", "no"), ErrorEvent("truncated", "cut"), None]
)


class Told(NamedTuple):
    events: list[Event]
    blocks: tuple[Block, ...]


@st.composite
def mappings(draw: st.DrawFn) -> Told:
    """The events of an answer without its end, blocks in turns; and the blocks as they stand then."""
    drawn = [draw(lanes(index)) for index in range(draw(st.integers(1, 4)))]
    turns = draw(st.permutations([number for number, lane in enumerate(drawn) for _ in lane.events]))
    following = [iter(lane.events) for lane in drawn]
    events = [next(following[number]) for number in turns]
    for event in draw(st.lists(besides, max_size=3)):
        events.insert(draw(st.integers(0, len(events))), event)
    return Told(events, tuple(lane.block for lane in drawn))


def folded(events: list[Event]) -> Snapshot:
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.push(event)
    return accumulator.snapshot()


def ended(block: Block, end: Event | None) -> Block:
    """The block once the answer is over."""
    if isinstance(block, ToolCallBlock):
        refused = isinstance(end, Done) and end.reason == "refusal" and block.choice == 0
        state: Any = "void" if refused and block.state == "ready" else "cut" if block.state == "open" else block.state
        return msgspec.structs.replace(block, state=state)
    return msgspec.structs.replace(block, complete=block.complete or isinstance(end, Done))


@given(told=mappings(), end=ends)
def test_what_an_answer_says_does_not_depend_on_how_a_mapping_tells_it(told: Told, end: Event | None) -> None:
    before = folded(told.events)
    assert before.blocks == told.blocks
    assert before.warnings == ()
    accumulator = StreamAccumulator()
    accumulator.extend([*told.events, end] if end is not None else told.events)
    if end is None:
        accumulator.close()
    assert accumulator.snapshot().blocks == tuple(ended(block, end) for block in told.blocks)


@given(told=mappings(), end=ends)
def test_every_step_is_the_naive_fold(told: Told, end: Event | None) -> None:
    events = [*told.events, end] if end is not None else told.events
    accumulator = StreamAccumulator()
    taken: list[Snapshot] = []
    for event in events:
        accumulator.push(event)
        taken.append(accumulator.snapshot())
    for number, snapshot in enumerate(taken):  # looked at only now: what came later changed nothing in them
        assert not differences(snapshot, events[: number + 1])


@given(told=mappings(), looked=st.sets(st.integers(0, 60)), cuts=st.lists(st.integers(0, 60)))
def test_it_does_not_matter_how_events_come_or_who_looks(told: Told, looked: set[int], cuts: list[int]) -> None:
    accumulator = StreamAccumulator()
    for a, b in pairwise([0, *sorted(cut for cut in cuts if cut <= len(told.events)), len(told.events)]):
        accumulator.extend(told.events[a:b])
        if a in looked:
            for block in accumulator.snapshot().blocks:
                if isinstance(block, ToolCallBlock):
                    accumulator.preview(block.index)
    assert accumulator.snapshot() == folded(told.events)


@given(told=mappings())
def test_an_event_changes_the_block_that_it_names_and_no_other(told: Told) -> None:
    accumulator = StreamAccumulator()
    before = accumulator.snapshot()
    for event in told.events:
        accumulator.push(event)
        after = accumulator.snapshot()
        index = getattr(event, "index", None)
        changed = accumulator.changed()
        assert changed <= {index}
        kept = {block.index: block for block in before.blocks if block.index != index}
        assert kept == {block.index: block for block in after.blocks if block.index != index}
        if not isinstance(event, BlockEnd):  # a call that is whole shows no trace of being closed
            assert (after is before) == (after == before)
            assert bool(changed) == (before.blocks != after.blocks)
        before = after
