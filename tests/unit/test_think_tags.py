"""``<think>…</think>`` told from text: what stands beside the words, and the blocks that it renumbers."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Event,
    JSONText,
    Raw,
    ReasoningBlock,
    ReasoningDelta,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallStart,
)
from streamfold.think_tags import ThinkTags

META = JSONText('{"member":"content","form":"think"}')
CALL = ToolCallBlock(1, "c", "f", "{}", state="ready")
URL = "https://a.example"


def told(pieces: list[str | Citation | Raw]) -> list[Event]:
    """One block of text, told in these pieces."""
    words = "".join(piece for piece in pieces if isinstance(piece, str))
    cited = tuple(piece for piece in pieces if isinstance(piece, Citation))
    events: list[Event] = [TextDelta(0, piece) if isinstance(piece, str) else piece for piece in pieces]
    return [BlockStart(0, "text"), *events, BlockEnd(0, TextBlock(0, words, cited))]


def text(index: int, words: str, *cited: Citation) -> list[Event]:
    """A block of text that is told in one piece, behind what it cites."""
    pieces: list[Event] = [TextDelta(index, words)] if words else []
    return [BlockStart(index, "text"), *cited, *pieces, BlockEnd(index, TextBlock(index, words, cited))]


def thought(index: int, words: str, *beside: Event) -> list[Event]:
    block = ReasoningBlock(index, words, (words,), meta=META)
    pieces: list[Event] = [BlockStart(index, "reasoning", 0, META), ReasoningDelta(index, words)]
    return [*pieces, *beside, BlockEnd(index, block)]


def raw(index: int | None) -> Raw:
    return Raw("ping", JSONText("{}"), index)


BESIDE: dict[str, tuple[list[Any], list[Event]]] = {
    "a source of the text behind the tags": (
        ["<think>Hm</think>", Citation(0, URL, start=17, end=19), "So"],
        [*thought(0, "Hm"), *text(1, "So", Citation(1, URL, start=0, end=2))],
    ),
    "a source that comes inside the tags waits for the text": (
        ["<think>Hm", Citation(0, URL), Citation(0, "https://b.example"), "</think>So"],
        [*thought(0, "Hm"), *text(1, "So", Citation(1, URL), Citation(1, "https://b.example"))],
    ),
    "and has a block of its own where none follows": (
        ["<think>Hm", Citation(0, URL), "</think>"],
        [*thought(0, "Hm"), *text(1, "", Citation(1, URL))],
    ),
    "also where the tags are never closed": (
        ["<think>Hm", Citation(0, URL)],
        [*thought(0, "Hm"), *text(1, "", Citation(1, URL))],
    ),
    "a source of what lies in another block has no place": (
        ["ab<think>Hm</think>", Citation(0, URL, start=0, end=2), "So"],
        [*text(0, "ab"), *thought(1, "Hm"), *text(2, "So", Citation(2, URL))],
    ),
    "a payload names the block that is open": (["<think>Hm", raw(0), "</think>"], thought(0, "Hm", raw(0))),
    "between two blocks it names the last": (["<think>Hm</think>", raw(0)], [*thought(0, "Hm"), raw(0)]),
    "before the first it names none": ([raw(0), "a"], [raw(None), *text(0, "a")]),
    "as long as it may be a tag there is no block": (["<thi", raw(0), "s>"], [raw(None), *text(0, "<this>")]),
}


@pytest.mark.parametrize(("pieces", "events"), BESIDE.values(), ids=BESIDE.keys())
def test_what_stands_beside_the_words(pieces: list[Any], events: list[Event]) -> None:
    assert ThinkTags().apply(told(pieces)) == events


def test_events_that_come_after_the_end_of_a_text_still_name_its_block() -> None:
    call: list[Event] = [ToolCallStart(1, "c", "f"), BlockEnd(1, CALL)]
    moved = ToolCallBlock(2, "c", "f", "{}", state="ready")
    assert ThinkTags().apply([*told(["<think>a</think>b"]), raw(0), *call, raw(1)]) == [
        *thought(0, "a"),
        *text(1, "b"),
        raw(1),
        ToolCallStart(2, "c", "f"),
        BlockEnd(2, moved),
        raw(2),
    ]


def test_a_text_of_tags_alone_leaves_no_block_to_name() -> None:
    assert ThinkTags().apply([*told(["<think></think>"]), raw(0)]) == [raw(None)]


def test_a_piece_of_many_tags_is_read_in_one_go() -> None:
    """Half a million tags in one piece: anything that copied the rest at each would not come back."""
    events = ThinkTags().apply(told(["<think></think>" * 250_000 + "a"]))
    assert events == text(0, "a")
