"""Who looks at an answer after every event pays for the event, not for all that came before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest

import streamfold
from streamfold import (
    BlockEnd,
    Event,
    ReasoningDelta,
    StreamAccumulator,
    TextBlock,
    TextDelta,
    ToolCallCancelled,
    ToolCallStart,
)
from tests.samples import block_delta, block_start, chat, chat_call, message_start, sse

FEW: Final = 400
MANY: Final = 8 * FEW
WORSE: Final = 24  # times the cost for 8 times the events: between 8, which is linear, and 64, which is quadratic

Events = Callable[[int], Iterable[Event]]
Looking = Callable[[Any], object]


def closed(index: int, text: str = "x") -> BlockEnd:
    return BlockEnd(index, TextBlock(index, text))


FOLDED: dict[str, Events] = {
    # how many -> so many events
    "pieces of one text": lambda n: [TextDelta(0, "a") for _ in range(n)],
    "blocks that stay open": lambda n: [TextDelta(index, "a") for index in range(n)],
    "closed blocks behind an open one": lambda n: [TextDelta(0, "a"), *(closed(index) for index in range(1, n))],
    "closed blocks, the last one first": lambda n: [closed(index) for index in reversed(range(n))],
    "a block closed again and again": lambda n: [
        *map(closed, range(n // 2)),
        *(closed(0, "x" * (k % 7)) for k in range(n // 2)),
    ],
    "parts of one block": lambda n: [ReasoningDelta(0, "a", part) for part in range(n)],
    "parts of one block, the last one first": lambda n: [ReasoningDelta(0, "a", part) for part in reversed(range(n))],
    "calls that are taken back": lambda n: [
        *(ToolCallStart(index, f"c{index}", "f") for index in range(n // 2)),
        *(ToolCallCancelled((f"c{index}",)) for index in range(n // 2)),
    ],
    "many blocks in turns": lambda n: [TextDelta(index % (n // 4), "a") for index in range(n)],
}

LOOKS: dict[str, Looking] = {
    "cursor": lambda stream: stream.cursor,
    "snapshot": lambda stream: stream.snapshot(),
}


def cost(run: Callable[[], object]) -> float:
    """Seconds of this process, the least of three."""
    costs: list[float] = []
    for _ in range(3):
        begin = time.process_time()
        run()
        costs.append(time.process_time() - begin)
    return min(costs)


def folds(events: Iterable[Event]) -> Callable[[], object]:
    def run() -> None:
        accumulator = StreamAccumulator()
        for event in events:
            accumulator.push(event)
            accumulator.snapshot()

    return run


@pytest.mark.parametrize("events", FOLDED.values(), ids=FOLDED.keys())
def test_a_snapshot_after_every_event_is_linear(events: Events) -> None:
    assert cost(folds(events(MANY))) < WORSE * cost(folds(events(FEW)))


@pytest.mark.parametrize("events", FOLDED.values(), ids=FOLDED.keys())
def test_snapshots_taken_on_the_way_stay_as_they_were(events: Events) -> None:
    """And show what one shows that is taken without any before it."""
    accumulator, taken = StreamAccumulator(), list[streamfold.Snapshot]()
    for event in events(200):
        accumulator.push(event)
        taken.append(accumulator.snapshot())
    for count in range(1, 201, 13):
        alone = StreamAccumulator()
        alone.extend(list(events(200))[:count])
        assert taken[count - 1] == alone.snapshot()
        assert [block.index for block in taken[count - 1].blocks] == sorted(set(alone._blocks))


def read(count: int, look: Looking) -> Callable[[], object]:
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "m", "delta": "a"}
    payloads = [{**delta, "sequence_number": number} for number in range(1, count)]
    body = sse([{"type": "response.created", "sequence_number": 0, "response": {"id": "r"}}, *payloads])

    def run() -> None:
        with streamfold.iter_unified([body], "openai-responses") as stream:
            for _ in stream:
                look(stream)

    return run


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_looking_after_every_event_of_one_read_is_linear(look: Looking) -> None:
    assert cost(read(MANY, look)) < WORSE * cost(read(FEW, look))


SOME: Final = "a" * 100
FEW_PAYLOADS: Final = 600

Payloads = Callable[[int], list[dict[str, Any]]]

HOSTILE: dict[str, tuple[str, Payloads]] = {
    # how many -> so many payloads, of which each concerns all that came before it
    "arguments of a call without a name, and without an index": (
        "openai-chat",
        lambda n: [chat_call(0, SOME, id="c"), *[chat({"tool_calls": [{"function": {"arguments": SOME}}]})] * n],
    ),
    "a name in pieces": (
        "openai-chat",
        lambda n: [chat_call(0, id="c", name="f"), *[chat_call(0, name=SOME * 20)] * n],
    ),
    "totals of ever other members": (
        "openai-chat",
        lambda n: [{"choices": [], "usage": {f"a{k}{SOME}": 1, "prompt_tokens": k}} for k in range(n)],
    ),
    "pieces of a signature": (
        "anthropic",
        lambda n: [
            *(message_start(), block_start(0, type="thinking", thinking="")),
            *[block_delta(0, type="signature_delta", signature=SOME * 20)] * n,
        ],
    ),
    "pieces of a signature, Bedrock": (
        "bedrock-converse",
        lambda n: (
            [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": SOME * 20}}}}]
            * n
        ),
    ),
    "pieces of reasoning that nobody is to read": (
        "bedrock-converse",
        lambda n: (
            [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": SOME}}}}]
            * n
        ),
    ),
    "a compaction that is told again and again": (
        "anthropic",
        lambda n: [
            *(message_start(), block_start(0, type="compaction", content="", beside=SOME * n)),
            *[block_delta(0, type="compaction_delta", content="a")] * n,
        ],
    ),
}


def reads(provider: str, payloads: Payloads, count: int) -> Callable[[], object]:
    body = sse(payloads(count))
    return lambda: streamfold.fold([body], provider)


@pytest.mark.parametrize(("provider", "payloads"), HOSTILE.values(), ids=HOSTILE)
def test_what_each_payload_adds_to_costs_no_more_for_being_long(provider: str, payloads: Payloads) -> None:
    few, many = reads(provider, payloads, FEW_PAYLOADS), reads(provider, payloads, 8 * FEW_PAYLOADS)
    assert cost(many) < WORSE * cost(few)
