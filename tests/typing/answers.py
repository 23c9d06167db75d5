"""What checkers know of an answer. Checked by mypy and pyright, never run; an ignored error must be one."""

from __future__ import annotations

from typing import Any, Literal, assert_type

from streamfold import (
    NOTHING,
    Block,
    Choice,
    ErrorEvent,
    JSONText,
    PartialJSON,
    Snapshot,
    Stop,
    StreamAccumulator,
    StreamError,
    TextDelta,
    ToolCallBlock,
    Usage,
    parse_partial_json,
)


def a_snapshot(answer: Snapshot) -> None:
    assert_type(answer.surface, str | None)
    assert_type(answer.id, str | None)
    assert_type(answer.model, str | None)
    assert_type(answer.blocks, tuple[Block, ...])
    assert_type(answer.usage, Usage | None)
    assert_type(answer.stop, Stop)
    assert_type(answer.stop.stop_sequence, str | None)
    assert_type(answer.error, ErrorEvent | None)
    assert_type(answer.warnings, tuple[ErrorEvent, ...])
    assert_type(answer.outcome, Literal["open", "complete", "failed", "truncated", "cancelled"])
    assert_type(answer.choices, int)
    assert_type(answer.choice(1), Choice)
    assert_type(answer.text, str)
    assert_type(answer.reasoning, str)
    assert_type(answer.tool_calls, tuple[ToolCallBlock, ...])
    assert_type(answer.withheld_calls, tuple[ToolCallBlock, ...])
    assert_type(answer.to_json(), str)
    answer.raise_for_error()
    answer.outcome = "open"  # type: ignore[misc]
    answer.text = ""  # type: ignore[misc]
    if answer.outcome == "done":  # type: ignore[comparison-overlap]
        pass


def a_choice(choice: Choice) -> None:
    assert_type(choice.blocks, tuple[Block, ...])
    assert_type(choice.text, str)
    assert_type(choice.tool_calls, tuple[ToolCallBlock, ...])
    assert_type(choice.stop, Stop)


def what_was_raised(error: StreamError) -> None:
    assert_type(error.event, ErrorEvent)
    assert_type(error.event.status, int | None)


def a_fold_of_ones_own(accumulator: StreamAccumulator) -> None:
    accumulator.push(TextDelta(0, "x"))
    accumulator.extend([TextDelta(0, "x")])
    accumulator.close("failed")
    assert_type(accumulator.snapshot(), Snapshot)
    assert_type(accumulator.changed(), frozenset[int])
    assert_type(accumulator.text(), str)
    assert_type(accumulator.reasoning(), str)
    assert_type(accumulator.tool_calls(), tuple[ToolCallBlock, ...])
    accumulator.push("text")  # type: ignore[arg-type]
    accumulator.close("done")  # type: ignore[arg-type]


def a_preview(accumulator: StreamAccumulator) -> None:
    preview = accumulator.preview(0)
    if preview is NOTHING:
        return
    if isinstance(preview, dict):
        for name in preview:
            assert_type(name, str)
    len(preview)  # type: ignore[arg-type]


def partial_json(parser: PartialJSON) -> None:
    parser.feed("{")
    assert_type(parser.complete, bool)
    if parser.value is not NOTHING and isinstance(parser.value, dict):
        parser.value.get("a")
    parse_partial_json("{", mode="complete", default=None)
    parse_partial_json("{", mode="some")  # type: ignore[call-overload]


def json_text(text: JSONText) -> str:
    assert_type(text.decoded(), Any)
    return text
