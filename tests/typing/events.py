"""What checkers know of events and blocks. Checked by mypy and pyright, never run; an ignored error must be one."""

from __future__ import annotations

from typing import Literal, assert_never, assert_type

from streamfold import (
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
    Start,
    Stop,
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
    decode_event,
    encode_event,
)


def every_class_closes_the_union(event: Event) -> None:
    match event:
        case Start():
            assert_type(event.id, str | None)
        case Restart():
            assert_type(event.reason, str)
        case BlockStart():
            assert_type(event.choice, int)
        case TextDelta():
            assert_type(event.text, str)
        case ReasoningDelta():
            assert_type(event.part, int)
        case ToolCallStart():
            assert_type(event.executor, Literal["client", "provider"])
        case ToolCallDelta():
            assert_type(event.delta, str)
        case ToolCallDone():
            assert_type(event.valid, bool)
        case Citation():
            assert_type(event.start, int | None)
        case MediaDelta():
            assert_type(event.data, bytes)
        case TranscriptDelta():
            assert_type(event.source, Literal["model", "user"])
        case BlockEnd():
            assert_type(event.block, Block)
        case Usage():
            assert_type(event.cost_usd, float | None)
        case Done():
            assert_type(event.stops, tuple[Stop, ...])
        case ErrorEvent():
            assert_type(event.kind, Literal["provider", "truncated", "protocol", "limit", "transport"])
        case Interrupted():
            assert_type(event.audio_ms, int | None)
        case ToolCallCancelled():
            assert_type(event.ids, tuple[str, ...])
        case GoAway():
            assert_type(event.time_left_ms, int | None)
        case Session():
            assert_type(event.resumable, bool)
        case Raw():
            assert_type(event.payload, JSONText)
        case _:
            assert_never(event)


def a_class_that_is_missing_is_seen(event: TextDelta | Done) -> None:
    match event:
        case TextDelta():
            pass
        case _:
            assert_never(event)  # type: ignore[arg-type]


def the_type_narrows(event: Event) -> str:
    if event.type == "text_delta":
        assert_type(event, TextDelta)
        return event.text
    if event.type == "tool_call_done":
        assert_type(event, ToolCallDone)
        return event.arguments
    if event.type == "block_end":
        assert_type(event, BlockEnd)
        return event.block.type
    if event.type == "error" and event.fatal:
        assert_type(event, ErrorEvent)
        return event.message
    return event.text  # type: ignore[union-attr]


def the_type_matches(event: TextDelta | ReasoningDelta | Done) -> str | None:
    match event.type:
        case "text_delta" | "reasoning_delta":
            return "piece"
        case "done":
            return None


def isinstance_narrows(event: Event) -> str:
    if isinstance(event, TextDelta | ReasoningDelta | TranscriptDelta):
        return event.text
    if event.type == "text_delta":  # type: ignore[comparison-overlap]
        pass
    return event.type


def patterns_by_member(event: Event) -> str:
    match event:
        case ToolCallDone(valid=True, executor="client", name=name):
            return assert_type(name, str)
        case BlockEnd(block=ToolCallBlock(state="ready", id=id_)):
            return assert_type(id_, str)
        case Done(reason="refusal" | "length"):
            return "not good"
        case _:
            return event.type


def every_block_closes_the_union(block: Block) -> None:
    match block:
        case TextBlock():
            assert_type(block.citations, tuple[Citation, ...])
        case RefusalBlock():
            assert_type(block.text, str)
        case ReasoningBlock():
            assert_type(block.parts, tuple[str, ...])
        case ToolCallBlock():
            assert_type(block.state, Literal["open", "ready", "invalid", "cut", "void", "cancelled", "provider"])
        case MediaBlock():
            assert_type(block.data, bytes)
        case TranscriptBlock():
            assert_type(block.source, Literal["model", "user"])
        case ToolResultBlock():
            assert_type(block.content, JSONText | None)
        case ApprovalBlock():
            assert_type(block.arguments, str)
        case OtherBlock():
            assert_type(block.raw, JSONText | None)
        case _:
            assert_never(block)


def the_type_of_a_block_narrows(block: Block) -> str:
    assert_type((block.index, block.choice, block.complete), tuple[int, int, bool])
    if block.type == "text":
        assert_type(block, TextBlock)
        return block.text
    if block.type == "tool_call":
        assert_type(block, ToolCallBlock)
        return block.name
    return block.text  # type: ignore[union-attr]


def reasons_are_words(done: Done) -> None:
    assert_type(done.reason, Literal["end", "length", "tool_use", "refusal", "pause", "cancelled", "other"] | None)
    if done.reason == "stop":  # type: ignore[comparison-overlap]
        pass


def events_are_made_and_never_changed() -> Event:
    event = TextDelta(0, "x")
    event.text = "y"  # type: ignore[misc]
    TextDelta(0)  # type: ignore[call-arg]
    TextDelta("0", "x")  # type: ignore[arg-type]
    BlockStart(0, "paragraph")  # type: ignore[arg-type]
    ErrorEvent("network", "no")  # type: ignore[arg-type]
    Raw("ping", "{}")  # type: ignore[arg-type]
    BlockEnd(0, event)  # type: ignore[arg-type]
    return event


def there_and_back(event: Event) -> None:
    assert_type(encode_event(event), bytes)
    assert_type(decode_event(b"{}"), Event)
    assert_type(decode_event("{}"), Event)
    encode_event("text")  # type: ignore[arg-type]
    decode_event(5)  # type: ignore[arg-type]
