"""Answers drawn for people: each kind of block, how an answer closes, and a drawing that keeps up with the stream."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import (
    ApprovalBlock,
    Block,
    BlockEnd,
    BlockStart,
    Done,
    ErrorEvent,
    Event,
    JSONText,
    MediaBlock,
    MediaDelta,
    OtherBlock,
    ReasoningBlock,
    ReasoningDelta,
    RefusalBlock,
    Restart,
    Snapshot,
    Start,
    Stop,
    StreamAccumulator,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResultBlock,
    TranscriptBlock,
    TranscriptDelta,
    Usage,
)
from streamfold.blocks import Citation
from streamfold.views.lines import Line, cells, plain, wrap
from streamfold.views.terminal import Drawing, draw, error_line, usage_line
from tests.conftest import RECORDED
from tests.evidence import cut


def folded(*events: Event) -> Snapshot:
    accumulator = StreamAccumulator()
    for event in (Start("anthropic", "id", "model"), *events):
        accumulator.push(event)
    return accumulator.snapshot()


def lines_of(*events: Event) -> list[str]:
    return [plain(line) for line in draw(folded(*events))]


# -- blocks -----------------------------------------------------------------------------------------------------------

CITED = (
    Citation(0, "https://a.example/", "A title"),
    Citation(0, "https://a.example/", "A title", "other words"),
    Citation(0, cited_text="some words"),
)
BLOCKS: dict[str, tuple[Block, list[str]]] = {
    "text": (TextBlock(0, "one\ntwo\n\n"), ["one", "two"]),
    "text with sources": (TextBlock(0, "x", CITED), ["x", "  [1] A title · https://a.example/", "  [2] some words"]),
    "text cut off": (TextBlock(0, "one", complete=False), ["one", "(cut off)"]),
    "a refusal": (RefusalBlock(0, "I can't."), ["declined:", "I can't."]),
    "reasoning": (ReasoningBlock(0, "a\n\nb", ("a", "b")), ["│ a", "│", "│ b"]),
    "reasoning cut off": (ReasoningBlock(0, "a", ("a",), complete=False), ["│ a", "│ (cut off)"]),
    "encrypted reasoning": (
        ReasoningBlock(0, encrypted="x" * 1234),
        ["│ (reasoning: encrypted, 1,234 characters)"],
    ),
    "redacted reasoning": (
        ReasoningBlock(0, encrypted="xy", redacted=True),
        ["│ (reasoning: redacted, encrypted, 2 characters)"],
    ),
    "reasoning that is only signed": (ReasoningBlock(0, signature="s"), ["│ (reasoning: signed)"]),
    "reasoning without anything": (ReasoningBlock(0), []),
    "a call": (ToolCallBlock(0, "c1", "f", '{"a":1}', state="ready"), ["▸ f  c1", "  a: 1"]),
    "a call without arguments": (ToolCallBlock(0, "c1", "f", "{}", state="ready"), ["▸ f  c1"]),
    "a custom tool's text": (
        ToolCallBlock(0, "c1", "run", '{"a":1}', "custom", state="ready"),
        ["▸ run  c1 · custom", '  {"a":1}'],
    ),
    "a call the provider ran": (
        ToolCallBlock(0, "c1", "web_search", '{"q":"x"}', "web_search", "provider", "provider"),
        ["▸ web_search  c1 · run by the provider", '  q: "x"'],
    ),
    "a call without a name": (ToolCallBlock(0, "c1", "", "", state="ready"), ["▸ (no name)  c1"]),
    "an image": (MediaBlock(0, "image/png", bytes(12_345)), ["▣ image/png · 12.3 kB"]),
    "an image elsewhere": (MediaBlock(0, None, url="https://x.example/i"), ["▣ media · https://x.example/i"]),
    "words": (TranscriptBlock(0, "hello"), ["♪ hello"]),
    "a result": (
        ToolResultBlock(0, "c1", "search", JSONText('[{"title":"T"}]')),
        ["◂ search result  c1", "  [{", '    title: "T"', "  }]"],
    ),
    "a result that failed": (ToolResultBlock(0, None, None, None, True), ["◂ tool failed"]),
    "a long result": (
        ToolResultBlock(0, None, "r", JSONText('["' + "x\\n" * 500 + '"]')),
        ["◂ r result", '  ["x', *["    x"] * 7, "  … of 1,504 characters"],
    ),
    "an approval": (ApprovalBlock(0, "a1", "rm", '{"path":"/"}'), ["? rm waits for approval", '  path: "/"']),
    "another": (OtherBlock(0, "compaction", JSONText('{"a":null}')), ["· compaction", "  a: null"]),
}


@pytest.mark.parametrize(("block", "lines"), BLOCKS.values(), ids=BLOCKS.keys())
def test_a_block(block: Block, lines: list[str]) -> None:
    drawn = lines_of(BlockEnd(0, block))
    assert drawn[0] == "anthropic · model · id"
    assert drawn[1:-2] == (["", *lines] if lines else [])


def test_blocks_stand_apart_and_empty_ones_are_not_seen() -> None:
    blocks: list[Block] = [TextBlock(0, "a"), TextBlock(1, " \n"), ReasoningBlock(2), TextBlock(3, "b")]
    assert lines_of(*(BlockEnd(block.index, block) for block in blocks))[1:-2] == ["", "a", "", "b"]


def test_choices_have_headings() -> None:
    blocks = [TextBlock(0, "a"), TextBlock(1, "b", choice=1), TextBlock(2, "c", choice=1), TextBlock(3, "d")]
    shown = [line for line in lines_of(*(BlockEnd(b.index, b) for b in blocks))[1:-2] if line]
    assert shown == ["a", "── choice 1 ──", "b", "c", "── choice 0 ──", "d"]


# -- the end ----------------------------------------------------------------------------------------------------------

STATES = {
    "cut": "the stream ended inside it",
    "invalid": "its arguments are no JSON, or the provider marked it incomplete",
    "void": "the turn was refused, or the call is malformed",
    "cancelled": "it was cancelled",
}


@pytest.mark.parametrize(("state", "why"), STATES.items())
def test_withheld_calls_are_listed_with_the_reason(state: streamfold.blocks.ToolCallState, why: str) -> None:
    drawn = lines_of(BlockEnd(0, ToolCallBlock(0, "c1", "f", "{", state=state, choice=2)), Done("end"))
    assert f"withheld f  c1: {why}" in drawn


def test_calls_that_are_ready_or_were_run_are_not_withheld() -> None:
    ready = ToolCallBlock(0, "c1", "f", "{}", state="ready")
    run = ToolCallBlock(1, "c2", "g", "{}", executor="provider", state="provider")
    assert not [line for line in lines_of(BlockEnd(0, ready), BlockEnd(1, run), Done("tool_use")) if "withheld" in line]


def test_faults_and_warnings_stand_before_the_last_line() -> None:
    warning = ErrorEvent("protocol", "a hole", "sequence_gap", fatal=False)
    fault = ErrorEvent("provider", "Over\nloaded\x1b", "overloaded_error", retryable=True)
    assert lines_of(warning, fault)[-3:] == [
        "warning: protocol sequence_gap: a hole",
        "error: provider overloaded_error: Over loaded␛ (may be retried)",
        "failed · no usage",
    ]
    assert error_line(warning) == "protocol sequence_gap: a hole"


USAGES = {
    "nothing": (None, "no usage"),
    "all of it": (
        Usage(1500, 20, 1520, 5, 1000, 200, cost_usd=0.01234),
        "1,500 in (1,000 cached, 200 written to the cache) + 20 out (5 reasoning) = 1,520 tokens · $0.0123",
    ),
    "input alone": (Usage(7), "7 in tokens"),
    "a total alone": (Usage(total_tokens=7), "7 tokens"),
    "zeros": (Usage(0, 0, 0, 0, 0), "0 in + 0 out = 0 tokens"),
    "a cost alone": (Usage(cost_usd=0.5), "$0.5000"),
}


@pytest.mark.parametrize(("usage", "words"), USAGES.values(), ids=USAGES.keys())
def test_usage_line(usage: Usage | None, words: str) -> None:
    reported: list[Event] = [usage] if usage is not None else []
    assert usage_line(folded(*reported, Done("tool_use", "tool_calls"))) == f"complete · tool_use · {words}"


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Done("refusal", "SAFETY"), "refusal (SAFETY)"),
        (Done("other", "TOO_MANY\x1bTOOL_CALLS"), "other (TOO_MANY␛TOOL_CALLS)"),
        (Done("refusal"), "refusal"),
        (Done("end", "STOP"), "end"),
        (Done(None, "odd"), "odd"),
    ],
)
def test_a_reason_that_says_little_comes_with_the_providers_word(done: Done, words: str) -> None:
    assert usage_line(folded(done)) == f"complete · {words} · no usage"


def test_usage_line_of_choices() -> None:
    events = [BlockEnd(0, TextBlock(0)), BlockEnd(1, TextBlock(1, choice=1_000_000_000))]
    stops = (Stop(0, "end"), Stop(1_000_000_000, "length"))
    answer = folded(*events, Done("end", stops=stops))
    assert usage_line(answer) == "complete · choice 0: end · choice 1000000000: length · no usage"
    many = folded(*(BlockEnd(n, TextBlock(n, choice=n)) for n in range(20)), Done("end"))
    assert usage_line(many) == "complete · choice 0: end · 20 choices · no usage"


# -- while it streams -------------------------------------------------------------------------------------------------


def live(*events: Event, width: int = 30, height: int = 10) -> tuple[list[str], list[str]]:
    """What was given for good, and what is drawn below it."""
    drawing = Drawing()
    given: list[Line] = []
    for event in (Start("s", "id", "m"), *events):
        drawing.push(event)
        given += drawing.take(width)
    return [plain(line) for line in given], [plain(row) for row in drawing.tail(width, height)]


def test_whole_lines_are_given_and_the_open_one_is_drawn_below() -> None:
    assert live(TextDelta(0, "one\ntwo\nth")) == (["s · m · id", "", "one", "two"], ["th"])


def test_full_rows_of_the_open_line_are_given_too() -> None:
    given, below = live(TextDelta(0, "word " * 11 + "wo"))
    assert given[2:] == ["word word word word word word"]
    assert below == ["word word word word word wo"]


def test_blocks_behind_an_open_one_wait() -> None:
    given, below = live(TextDelta(0, "a"), TextDelta(1, "b\n" * 20), height=5)
    assert given == []
    assert below == ["b"] * 5
    given, below = live(TextDelta(0, "a"), TextDelta(1, "b\nc"), BlockEnd(0, TextBlock(0, "a")))
    assert (given[2:], below) == (["a", "", "b"], ["c"])


def test_the_heading_of_a_call_is_seen_before_its_arguments() -> None:
    given, below = live(ToolCallStart(0, "c1", "f"), ToolCallDelta(0, "c1", '{"path":"a.t'))
    assert (given[2:], below) == (["▸ f  c1"], ['  path: "a.t'])


def test_a_name_that_became_another_is_drawn_again() -> None:
    done = ToolCallDone(0, "c1", "find", "{}")
    end = BlockEnd(0, ToolCallBlock(0, "c1", "find", "{}", state="ready"))
    given, _ = live(ToolCallStart(0, "c1", "fi"), done, end)
    assert given[2:] == ["▸ fi  c1", "the provider corrects this block:", "▸ find  c1"]


def test_text_that_became_another_is_drawn_again() -> None:
    end = BlockEnd(0, TextBlock(0, "seen\nnew"))
    assert live(TextDelta(0, "seen\nold"), end)[0][2:] == ["seen", "the provider corrects this block:", "seen", "new"]
    assert live(TextDelta(0, "old"), end)[0][2:] == ["seen", "new"]  # in its place: nobody saw it for good


def test_what_the_end_adds_is_drawn() -> None:
    assert live(TextDelta(0, "one"), BlockEnd(0, TextBlock(0, "one two")))[0][2:] == ["one two"]


def test_parts_of_reasoning_stand_apart() -> None:
    events = [ReasoningDelta(0, "a"), ReasoningDelta(0, "b", 1), ReasoningDelta(0, "c", 1)]
    given, _ = live(*events, BlockEnd(0, ReasoningBlock(0, "a\n\nbc", ("a", "bc"))))
    assert given[2:] == ["│ a", "│", "│ bc"]


def test_media_and_words_are_drawn_while_they_come() -> None:
    assert live(MediaDelta(0, "audio/pcm", bytes(1500)), MediaDelta(0, None, bytes(500)))[1][2:] == ["▣ media · 2.0 kB"]
    words = [TranscriptDelta(0, "hello wold"), TranscriptDelta(0, "world", replaces=4)]
    assert live(*words)[1][2:] == ["♪ hello world"]
    assert live(*words, BlockEnd(0, TranscriptBlock(0, "Hello world.")))[0][2:] == ["♪ Hello world."]


def test_a_restart_is_said_and_begins_anew() -> None:
    given, below = live(TextDelta(0, "old\nol"), Restart("message_start"), TextDelta(1, "new"))
    assert given[2:] == ["old", "", "restarted (message_start): what stands above is void"]
    assert below == ["", "new"]


def test_a_refusal_and_an_unknown_block() -> None:
    assert live(BlockStart(0, "refusal"), TextDelta(0, "No"))[0][2:] == ["declined:"]
    assert live(BlockStart(0, "other"), TextDelta(0, "x"), BlockEnd(0, OtherBlock(0, "x")))[0][2:] == ["· x"]


def test_what_is_still_open_at_the_end_is_drawn_as_the_answer_has_it() -> None:
    accumulator, drawing = StreamAccumulator(), Drawing()
    call = (ToolCallStart(1, "c1", "f"), ToolCallDelta(1, "c1", '{"a":'))
    events: list[Event] = [Start("s"), TextDelta(0, "half"), *call]
    for event in events:
        accumulator.push(event)
        drawing.push(event)
    accumulator.close("cancelled")
    lines = [plain(line) for line in [*drawing.take(), *drawing.finish(accumulator.snapshot())]]
    assert lines == [
        "s",
        "",
        "half",
        "(cut off)",
        "",
        "▸ f  c1",
        "  a:",
        "",
        "withheld f  c1: the stream ended inside it",
        "cancelled · no usage",
    ]


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)
@pytest.mark.parametrize("width", [None, 24, 79])
def test_a_live_drawing_ends_as_the_drawing_of_the_whole(recording: Path, width: int | None) -> None:
    body = recording.read_bytes()
    drawing = Drawing()
    given: list[Line] = []
    with streamfold.iter_unified(cut(body, 50), raw="none") as stream:
        for number, event in enumerate(stream):
            drawing.push(event)
            if number % 3:
                given += drawing.take(width)
            if width is not None:
                rows = drawing.tail(width, 4)
                assert len(rows) <= 4
                assert all(cells(plain(row)) <= width for row in rows)
    answer = stream.snapshot()
    given += [*drawing.take(width), *drawing.finish(answer)]
    assert rows_at(given, width) == rows_at(draw(answer), width)


pieces = st.text(st.sampled_from("ab -\n東\r\x1b"), min_size=1, max_size=8)
growth = st.lists(st.tuples(st.integers(0, 3), pieces), max_size=30)


@given(growth=growth, width=st.integers(8, 20))
def test_blocks_that_grow_at_once_are_drawn_in_order_and_whole(growth: list[tuple[int, str]], width: int) -> None:
    places: dict[int, int] = {}
    events: list[Event] = [Start("s")]
    events += [TextDelta(places.setdefault(block, len(places)), piece) for block, piece in growth]
    accumulator, drawing = StreamAccumulator(), Drawing()
    given: list[Line] = []
    for event in events:
        accumulator.push(event)
        drawing.push(event)
        given += drawing.take(width)
        assert len(drawing.tail(width, 5)) <= 5
    accumulator.push(Done("end"))
    given += [*drawing.take(width), *drawing.finish(accumulator.snapshot())]
    assert rows_at(given, width) == rows_at(draw(accumulator.snapshot()), width)


def rows_at(lines: list[Line], width: int | None) -> list[str]:
    return [plain(row) for line in lines for row in (wrap(line, width) if width is not None else [line])]
