"""OpenAI Responses: every type of event and of item, and the order they may come in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamfold import (
    ApprovalBlock,
    BlockEnd,
    BlockStart,
    Citation,
    Cursor,
    Done,
    ErrorEvent,
    Event,
    MediaBlock,
    MediaDelta,
    OpenAIResponsesNormalizer,
    OtherBlock,
    ReasoningBlock,
    ReasoningDelta,
    RefusalBlock,
    Start,
    Stop,
    StreamDecoder,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResultBlock,
    TranscriptBlock,
    TranscriptDelta,
)
from streamfold.blocks import Executor, ToolCallState
from streamfold.events import StopReason
from streamfold.providers import _usage
from streamfold.providers.openai_responses import EVENTS, PROGRESS
from tests.reading import BAD_JSON, ORPHAN, TRUNCATED, alike, done, fold, json_of, raw, read, rows, usage
from tests.wires import (
    CALL,
    MESSAGE,
    RESPONSES,
    RESPONSES_USAGE,
    TEXT_PART,
    Payload,
    added,
    completed,
    created,
    event,
    finished,
    numbered,
    of,
)

S = Start("openai-responses", "resp_1", "m")
UNNAMED = Start("openai-responses")
END = done("end", "completed")
PROGRESSED = event("in_progress", response={"id": "resp_1", "status": "in_progress"})
COMPLETED: Payload = {"type": "response.completed"}


def incomplete(reason: Any, *output: Payload) -> Payload:
    response = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": list(output)}
    return event("incomplete", response=response)


def meta(item_id: str | None = None, **members: Any) -> Any:
    """What a block keeps of its item."""
    return json_of({**({} if item_id is None else {"item_id": item_id}), **members})


def text(index: int, whole: str, *citations: Citation, complete: bool = True, meta: Any = None) -> BlockEnd:
    return BlockEnd(index, TextBlock(index, whole, citations, 0, complete, meta))


def call(
    index: int,
    id_: str,
    name: str,
    arguments: str,
    kind: str = "function",
    executor: Executor = "client",
    *,
    meta: Any = None,
    valid: bool = True,
) -> list[Event]:
    """The end of a call."""
    state: ToolCallState = "provider" if executor == "provider" else "ready" if valid else "invalid"
    block = ToolCallBlock(index, id_, name, arguments, kind, executor, state, meta=meta)
    return [ToolCallDone(index, id_, name, arguments, valid, executor), BlockEnd(index, block)]


def delta(piece: str, index: int = 0, part: int = 0, item_id: str = "msg_1") -> Payload:
    return of("output_text.delta", index, item_id, content_index=part, delta=piece)


def settled(whole: str, index: int = 0, part: int = 0) -> Payload:
    return of("output_text.done", index, "msg_1", content_index=part, text=whole)


def item(**members: Any) -> Payload:
    return {"id": "x_1", **members}


def message(whole: str, **members: Any) -> Payload:
    return {"type": "message", "id": "msg_1", **members, "content": [{"type": "output_text", "text": whole}]}


CONTAINER: Payload = {"type": "container_reference", "container_id": "c"}


URL: Payload = {"type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 3}
FILE: Payload = {"type": "file_citation", "file_id": "f", "filename": "a.txt", "index": 3}
BARE: Payload = {"type": "url_citation", "url": "https://a"}
BACKWARDS: Payload = {"type": "url_citation", "url": "https://a", "start_index": 5, "end_index": 2}
NOWHERE = Citation(0, "https://a", raw=json_of(BACKWARDS))
CITED = Citation(0, "https://a", "A", None, 0, 3, json_of(URL))
FILED = Citation(0, None, "a.txt", raw=json_of(FILE))
BARELY = Citation(0, "https://a", raw=json_of(BARE))


def annotated(annotation: Any) -> Payload:
    return of("output_text.annotation.added", 0, "msg_1", content_index=0, annotation_index=0, annotation=annotation)


MSG = meta("msg_1", type="message")
NEWER: Payload = {
    "type": "message",
    "id": "msg_1",
    "content": [{"type": "hologram"}, {"type": "output_text", "text": "abc"}],
}
STREAMED = meta("msg_1", type="message", role="assistant", status="in_progress")
WHOLE = meta("msg_1", type="message", role="assistant", status="completed")

MESSAGES = {
    "a message from its first event to its last": (
        [
            created(),
            PROGRESSED,
            {"type": "keepalive"},
            added(0, **{**MESSAGE, "status": "in_progress", "content": []}),
            of("content_part.added", 0, "msg_1", content_index=0, part={**TEXT_PART, "text": ""}),
            delta("Hel"),
            delta("lo"),
            settled("Hello"),
            of("content_part.done", 0, "msg_1", content_index=0, part=TEXT_PART),
            finished(0, **MESSAGE),
            completed(MESSAGE, usage=RESPONSES_USAGE),
        ],
        [
            S,
            raw(PROGRESSED),
            raw({"type": "keepalive"}),
            BlockStart(0, "text", 0, STREAMED),
            TextDelta(0, "Hel"),
            TextDelta(0, "lo"),
            text(0, "Hello", meta=WHOLE),
            usage(
                RESPONSES_USAGE,
                input_tokens=9,
                output_tokens=6,
                total_tokens=15,
                reasoning_tokens=2,
                cache_read_tokens=4,
            ),
            END,
        ],
    ),
    "deltas alone are enough": (
        [delta("a"), delta("b"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), text(0, "ab"), END],
    ),
    "padding beside a delta is no content, and no event": (
        [{**delta("a"), "obfuscation": "x9"}, {**settled("a"), "obfuscation": "x"}, COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "what filters said of the answer is no content (Azure)": (
        [created(), delta("a"), completed(content_filters=[{"blocked": False, "source_type": "completion"}])],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "an empty delta is raw": (
        [delta("a"), delta(""), delta("b"), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            raw(delta(""), 0),
            TextDelta(0, "b"),
            text(0, "ab"),
            END,
        ],
    ),
    "what the done event adds comes as a delta": (
        [delta("a"), settled("abc"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "bc"), text(0, "abc"), END],
    ),
    "text that only the done event has": (
        [settled("abc"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), text(0, "abc"), END],
    ),
    "text that only the part has": (
        [of("content_part.done", 0, "msg_1", content_index=0, part=TEXT_PART), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "Hello"), text(0, "Hello"), END],
    ),
    "text that only the item has": (
        [finished(0, **message("abc")), COMPLETED],
        [UNNAMED, BlockStart(0, "text", 0, MSG), TextDelta(0, "abc"), text(0, "abc", meta=MSG), END],
    ),
    "text that only the terminal event has": (
        [completed(message("abc"))],
        [S, BlockStart(0, "text", 0, MSG), TextDelta(0, "abc"), text(0, "abc", meta=MSG), END],
    ),
    "where the end contradicts the deltas it alone tells": (
        [delta("abc"), settled("abX"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), text(0, "abX"), END],
    ),
    "an end that takes a contradiction back adds nothing twice": (
        [delta("abc"), settled("ab"), finished(0, **message("abcd")), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), TextDelta(0, "d"), text(0, "abcd", meta=MSG), END],
    ),
    "a piece after an end shows that it was none": (
        [delta("abc"), settled("abX"), delta("d"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), TextDelta(0, "d"), text(0, "abcd"), END],
    ),
    "an end of an item that is done is raw": (
        [finished(0, **message("abc")), settled("abcd"), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "text", 0, MSG),
            TextDelta(0, "abc"),
            text(0, "abc", meta=MSG),
            raw(settled("abcd")),
            END,
        ],
    ),
    "a part that no block is of is raw, with the message that it is part of": (
        [finished(0, **NEWER), COMPLETED],
        [
            UNNAMED,
            raw(finished(0, **NEWER)),
            BlockStart(0, "text", 0, MSG),
            TextDelta(0, "abc"),
            text(0, "abc", meta=MSG),
            END,
        ],
    ),
    "an empty end is no contradiction": (
        [delta("abc"), settled(""), finished(0, type="message", id="msg_1", content=[]), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), text(0, "abc", meta=MSG), END],
    ),
    "each part is a block": (
        [delta("a", part=0), delta("b", part=1), delta("c", part=0), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockStart(1, "text"),
            TextDelta(1, "b"),
            TextDelta(0, "c"),
            text(0, "ac"),
            text(1, "b"),
            END,
        ],
    ),
    "items interleave, told by their index, whatever their ids": (
        [
            added(0, type="message", id="r0"),
            added(1, type="message", id="r1"),
            delta("a", 0, item_id="r2"),
            delta("b", 1, item_id="r3"),
            delta("c", 0, item_id="r4"),
            finished(1, type="message", id="r5", content=[]),
            finished(0, type="message", id="r6", content=[]),
            completed({"type": "message", "id": "r7"}, {"type": "message", "id": "r8"}),
        ],
        [
            UNNAMED,
            BlockStart(0, "text", 0, meta("r0", type="message")),
            TextDelta(0, "a"),
            BlockStart(1, "text", 0, meta("r1", type="message")),
            TextDelta(1, "b"),
            TextDelta(0, "c"),
            text(1, "b", meta=meta("r5", type="message")),
            text(0, "ac", meta=meta("r6", type="message")),
            S,
            END,
        ],
    ),
    "without an index the item's id tells": (
        [
            event("output_text.delta", item_id="a", delta="1"),
            event("output_text.delta", item_id="b", delta="2"),
            event("output_text.delta", item_id="a", delta="3"),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "text"),
            TextDelta(0, "1"),
            BlockStart(1, "text"),
            TextDelta(1, "2"),
            TextDelta(0, "3"),
            text(0, "13"),
            text(1, "2"),
            END,
        ],
    ),
    "with neither, the item that came last": (
        [event("output_text.delta", delta="1"), event("output_text.delta", item_id="", delta="2"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "1"), TextDelta(0, "2"), text(0, "12"), END],
    ),
    "an id that came with an index tells it later": (
        [
            delta("1", item_id="a"),
            delta("2", item_id="a"),
            delta("x", 1, item_id="b"),
            event("output_text.delta", item_id="a", delta="3"),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "text"),
            TextDelta(0, "1"),
            TextDelta(0, "2"),
            BlockStart(1, "text"),
            TextDelta(1, "x"),
            TextDelta(0, "3"),
            text(0, "123"),
            text(1, "x"),
            END,
        ],
    ),
    "an index that comes after the id is that item's": (
        [event("output_text.delta", item_id="a", delta="1"), delta("2", item_id="a"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "1"), TextDelta(0, "2"), text(0, "12"), END],
    ),
    "an id that is the word null is none": (
        [
            event("output_text.delta", item_id="null", delta="1"),
            event("output_text.delta", item_id=None, delta="2"),
            COMPLETED,
        ],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "1"), TextDelta(0, "2"), text(0, "12"), END],
    ),
    "items told by id are those that the terminal event lists": (
        [event("output_text.delta", item_id="msg_1", delta="abc"), completed(message("abc"))],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), S, text(0, "abc", meta=MSG), END],
    ),
    "a terminal list that leaves items out": (
        [
            finished(0, type="reasoning", id="rs_1", summary=[]),
            added(1, type="message", id="msg_1"),
            delta("abc", 1),
            completed(message("abcd")),
        ],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, meta("rs_1", type="reasoning")),
            BlockEnd(0, ReasoningBlock(0, meta=meta("rs_1", type="reasoning"))),
            BlockStart(1, "text", 0, MSG),
            TextDelta(1, "abc"),
            S,
            TextDelta(1, "d"),
            text(1, "abcd", meta=MSG),
            END,
        ],
    ),
    "a terminal list that leaves items out and gives the others new ids": (
        [
            finished(0, type="reasoning", id="rs_1", summary=[]),
            added(1, type="message", id="msg_1"),
            delta("a", 1),
            added(2, type="message", id="msg_2"),
            delta("b", 2),
            completed(message("ac", id="r1"), message("bd", id="r2"), message("e", id="r3")),
        ],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, meta("rs_1", type="reasoning")),
            BlockEnd(0, ReasoningBlock(0, meta=meta("rs_1", type="reasoning"))),
            BlockStart(1, "text", 0, MSG),
            TextDelta(1, "a"),
            BlockStart(2, "text", 0, meta("msg_2", type="message")),
            TextDelta(2, "b"),
            S,
            TextDelta(1, "c"),
            text(1, "ac", meta=meta("r1", type="message")),
            TextDelta(2, "d"),
            text(2, "bd", meta=meta("r2", type="message")),
            BlockStart(3, "text", 0, meta("r3", type="message")),
            TextDelta(3, "e"),
            text(3, "e", meta=meta("r3", type="message")),
            END,
        ],
    ),
    "items that know neither index nor id are those that the terminal event lists": (
        [event("output_text.delta", delta="ab"), completed(message("abc"))],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "ab"), S, TextDelta(0, "c"), text(0, "abc", meta=MSG), END],
    ),
    "one index for all items": (
        [
            added(0, type="message", id="a"),
            delta("1", item_id="a"),
            finished(0, **message("1", id="a")),
            added(0, type="message", id="b"),
            delta("2", item_id="b"),
            delta("3", item_id="b"),
            finished(0, **message("23", id="b")),
            completed(message("1", id="a"), message("23", id="b")),
        ],
        [
            UNNAMED,
            BlockStart(0, "text", 0, meta("a", type="message")),
            TextDelta(0, "1"),
            text(0, "1", meta=meta("a", type="message")),
            BlockStart(1, "text", 0, meta("b", type="message")),
            TextDelta(1, "2"),
            TextDelta(1, "3"),
            text(1, "23", meta=meta("b", type="message")),
            S,
            END,
        ],
    ),
    "an empty or missing terminal list (Codex)": (
        [finished(0, **message("abc")), event("completed", response={"status": "completed", "output": None})],
        [UNNAMED, BlockStart(0, "text", 0, MSG), TextDelta(0, "abc"), text(0, "abc", meta=MSG), END],
    ),
    "an item that is done is not read again": (
        [finished(0, **message("abc")), finished(0, **message("abcd")), completed(message("abcde"))],
        [UNNAMED, BlockStart(0, "text", 0, MSG), TextDelta(0, "abc"), text(0, "abc", meta=MSG), S, END],
    ),
    "a delta of an item that is done is raw": (
        [finished(0, **message("abc")), delta("d"), COMPLETED],
        [UNNAMED, BlockStart(0, "text", 0, MSG), TextDelta(0, "abc"), text(0, "abc", meta=MSG), raw(delta("d")), END],
    ),
    "phase and status stay with the text": (
        [finished(0, **message("a", phase="commentary", status="completed")), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "text", 0, meta("msg_1", type="message", phase="commentary", status="completed")),
            TextDelta(0, "a"),
            text(0, "a", meta=meta("msg_1", type="message", phase="commentary", status="completed")),
            END,
        ],
    ),
    "a refusal": (
        [
            of("content_part.added", 0, "msg_1", content_index=0, part={"type": "refusal", "refusal": ""}),
            of("refusal.delta", 0, "msg_1", content_index=0, delta="I can"),
            of("refusal.done", 0, "msg_1", content_index=0, refusal="I cannot."),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "refusal"),
            TextDelta(0, "I can"),
            TextDelta(0, "not."),
            BlockEnd(0, RefusalBlock(0, "I cannot.")),
            done("refusal", "completed"),
        ],
    ),
    "a refusal that only the item has": (
        [
            finished(0, type="message", id="msg_1", content=[{"type": "refusal", "refusal": "No"}]),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "refusal", 0, MSG),
            TextDelta(0, "No"),
            BlockEnd(0, RefusalBlock(0, "No", meta=MSG)),
            done("refusal", "completed"),
        ],
    ),
    "sources": (
        [delta("abc"), annotated(URL), annotated(FILE), annotated(BARE), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "text"),
            TextDelta(0, "abc"),
            CITED,
            FILED,
            BARELY,
            text(0, "abc", CITED, FILED, BARELY),
            END,
        ],
    ),
    "sources that only the part has": (
        [
            delta("abc"),
            annotated(URL),
            of(
                "content_part.done",
                0,
                "msg_1",
                content_index=0,
                part={"type": "output_text", "text": "abc", "annotations": [URL, FILE]},
            ),
            COMPLETED,
        ],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), CITED, FILED, text(0, "abc", CITED, FILED), END],
    ),
    "a place that ends before it begins is none": (
        [delta("abc"), annotated(BACKWARDS), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), NOWHERE, text(0, "abc", NOWHERE), END],
    ),
    "no source": (
        [delta("abc"), annotated(None), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "abc"), raw(annotated(None), 0), text(0, "abc"), END],
    ),
    "a surrogate pair over two deltas": (
        [delta("a\ud83d"), delta("\ude00b"), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            TextDelta(0, "\U0001f600b"),
            text(0, "a\U0001f600b"),
            END,
        ],
    ),
}


def summary(piece: str, part: int = 0) -> Payload:
    return of("reasoning_summary_text.delta", 0, "rs_1", summary_index=part, delta=piece)


def reasoning(piece: str, part: int = 0) -> Payload:
    return of("reasoning_text.delta", 0, "rs_1", content_index=part, delta=piece)


PART_ADDED = of("reasoning_summary_part.added", 0, "rs_1", summary_index=0, part={"type": "summary_text", "text": ""})
PART_DONE = of("reasoning_summary_part.done", 0, "rs_1", summary_index=0, part={"type": "summary_text", "text": "a"})
CONTENT_ADDED = of("content_part.added", 0, "rs_1", content_index=0, part={"type": "reasoning_text", "text": ""})
RS = meta("rs_1", type="reasoning")


def thoughts(*parts: str, **members: Any) -> BlockEnd:
    return BlockEnd(0, ReasoningBlock(0, "\n\n".join(parts), parts, **members))


REASONING = {
    "a summary in parts": (
        [
            added(0, type="reasoning", id="rs_1", summary=[]),
            PART_ADDED,
            summary("a"),
            of("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="a"),
            PART_DONE,
            summary("b", 1),
            summary("c", 1),
            finished(0, type="reasoning", id="rs_1", summary=[{"text": "a"}, {"text": "bc"}], encrypted_content="enc"),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, RS),
            raw(PART_ADDED, 0),
            ReasoningDelta(0, "a"),
            raw(PART_DONE, 0),
            ReasoningDelta(0, "b", 1),
            ReasoningDelta(0, "c", 1),
            thoughts("a", "bc", encrypted="enc", meta=RS),
            END,
        ],
    ),
    "reasoning itself": (
        [
            reasoning("a"),
            reasoning("b"),
            of("reasoning_text.done", 0, "rs_1", content_index=0, text="abc"),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "a"),
            ReasoningDelta(0, "b"),
            ReasoningDelta(0, "c"),
            thoughts("abc", meta=meta(content=[0])),
            END,
        ],
    ),
    "summary and text are parts of their own": (
        [summary("s"), reasoning("t"), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "s"),
            ReasoningDelta(0, "t", 1),
            thoughts("s", "t", meta=meta(summary=[0], content=[1])),
            END,
        ],
    ),
    "an item without any text": (
        [
            added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="enc1"),
            finished(0, type="reasoning", id="rs_1", summary=[], encrypted_content="enc2"),
            COMPLETED,
        ],
        [UNNAMED, BlockStart(0, "reasoning", 0, RS), thoughts(encrypted="enc2", meta=RS), END],
    ),
    "each copy is encrypted anew: that of the end of the item counts": (
        [
            added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="enc1"),
            finished(0, type="reasoning", id="rs_1", summary=[], encrypted_content="enc2"),
            completed({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc3"}),
        ],
        [UNNAMED, BlockStart(0, "reasoning", 0, RS), thoughts(encrypted="enc2", meta=RS), S, END],
    ),
    "and that of the terminal event, where no other came": (
        [
            added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="enc1"),
            completed({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc3"}),
        ],
        [UNNAMED, BlockStart(0, "reasoning", 0, RS), S, thoughts(encrypted="enc3", meta=RS), END],
    ),
    "a summary that only the item has": (
        [finished(0, type="reasoning", id="rs_1", summary=[{"text": "a"}, {"text": "b"}]), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, RS),
            ReasoningDelta(0, "a"),
            ReasoningDelta(0, "b", 1),
            thoughts("a", "b", meta=RS),
            END,
        ],
    ),
    "two parts of one text are two parts": (
        [finished(0, type="reasoning", id="rs_1", summary=[{"text": "a"}, {"text": "a"}]), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, RS),
            ReasoningDelta(0, "a"),
            ReasoningDelta(0, "a", 1),
            thoughts("a", "a", meta=RS),
            END,
        ],
    ),
    "one text under both names is told once": (
        [
            reasoning("a"),
            finished(0, type="reasoning", id="rs_1", content=[{"text": "a"}], summary=[{"text": "a"}]),
            COMPLETED,
        ],
        [
            UNNAMED,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "a"),
            thoughts("a", meta=meta("rs_1", type="reasoning", summary=[0], content=[0])),
            END,
        ],
    ),
    "the boundary of a part of reasoning is raw": (
        [added(0, type="reasoning", id="rs_1"), CONTENT_ADDED, reasoning("a"), COMPLETED],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, RS),
            raw(CONTENT_ADDED, 0),
            ReasoningDelta(0, "a"),
            thoughts("a", meta=meta("rs_1", type="reasoning", content=[0])),
            END,
        ],
    ),
}

FC = meta("fc_1", type="function_call", status="completed")
FC_OPEN = meta("fc_1", type="function_call", status="in_progress")


def arguments(piece: str, index: int = 0) -> Payload:
    return of("function_call_arguments.delta", index, "fc_1", delta=piece)


def arguments_done(whole: str, index: int = 0) -> Payload:
    return of("function_call_arguments.done", index, "fc_1", arguments=whole)


OPENED = added(0, **{**CALL, "status": "in_progress", "arguments": ""})
STARTED = ToolCallStart(0, "call_1", "add", meta=FC_OPEN)
CUT = meta("fc_1", type="function_call", status="incomplete")

CALLS = {
    "a call from its first event to its last": (
        [
            created(),
            OPENED,
            arguments('{"x"'),
            arguments(":1}"),
            arguments_done('{"x":1}'),
            finished(0, **CALL, arguments='{"x":1}'),
            completed({**CALL, "arguments": '{"x":1}'}),
        ],
        [
            S,
            STARTED,
            ToolCallDelta(0, "call_1", '{"x"'),
            ToolCallDelta(0, "call_1", ":1}"),
            *call(0, "call_1", "add", '{"x":1}', meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "arguments that only the done event has": (
        [OPENED, arguments_done("{}"), finished(0, **CALL, arguments="{}"), COMPLETED],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", "{}"),
            *call(0, "call_1", "add", "{}", meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "a call that only the finished item has": (
        [finished(0, **CALL, arguments="{}"), COMPLETED],
        [
            UNNAMED,
            ToolCallStart(0, "call_1", "add", meta=FC),
            ToolCallDelta(0, "call_1", "{}"),
            *call(0, "call_1", "add", "{}", meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "a call that the terminal event finishes": (
        [OPENED, arguments("{}"), completed({**CALL, "arguments": "{}"})],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", "{}"),
            S,
            *call(0, "call_1", "add", "{}", meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "a call that nothing finishes is withheld": (
        [OPENED, arguments("{}"), arguments_done("{}"), completed()],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", "{}"),
            S,
            BlockEnd(0, ToolCallBlock(0, "call_1", "add", "{}", state="cut", complete=False, meta=FC_OPEN)),
            done("tool_use", "completed"),
        ],
    ),
    "a call that the terminal event lists as not finished is withheld": (
        [
            OPENED,
            arguments("{}"),
            incomplete("max_output_tokens", {**CALL, "status": "in_progress", "arguments": "{}"}),
        ],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", "{}"),
            ToolCallDone(0, "call_1", "add", "{}", valid=False),
            BlockEnd(0, ToolCallBlock(0, "call_1", "add", "{}", state="invalid", complete=False, meta=FC_OPEN)),
            done("length", "max_output_tokens"),
        ],
    ),
    "a call that the tokens cut is invalid, though it is done": (
        [
            OPENED,
            arguments('{"x'),
            arguments_done('{"x'),
            finished(0, **{**CALL, "status": "incomplete"}, arguments='{"x'),
            incomplete("max_output_tokens"),
        ],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", '{"x'),
            ToolCallDone(0, "call_1", "add", '{"x', valid=False),
            BlockEnd(0, ToolCallBlock(0, "call_1", "add", '{"x', state="invalid", complete=False, meta=CUT)),
            done("length", "max_output_tokens"),
        ],
    ),
    "one that is incomplete is invalid even with arguments that parse": (
        [OPENED, finished(0, **{**CALL, "status": "incomplete"}, arguments="{}"), incomplete("max_output_tokens")],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", "{}"),
            ToolCallDone(0, "call_1", "add", "{}", valid=False),
            BlockEnd(0, ToolCallBlock(0, "call_1", "add", "{}", state="invalid", complete=False, meta=CUT)),
            done("length", "max_output_tokens"),
        ],
    ),
    "blank arguments are {}": (
        [OPENED, finished(0, **CALL, arguments=""), COMPLETED],
        [UNNAMED, STARTED, *call(0, "call_1", "add", "{}", meta=FC), done("tool_use", "completed")],
    ),
    "where the done event contradicts the deltas it wins (LM Studio)": (
        [OPENED, arguments('{"x": 1}'), arguments_done('{"x":1}'), finished(0, **CALL, arguments='{"x":1}'), COMPLETED],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", '{"x": 1}'),
            *call(0, "call_1", "add", '{"x":1}', meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "arguments that come as an object": (
        [OPENED, finished(0, **CALL, arguments={"x": 1}), COMPLETED],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", '{"x":1}'),
            *call(0, "call_1", "add", '{"x":1}', meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "parallel calls that interleave": (
        [
            OPENED,
            added(1, **{**CALL, "id": "fc_2", "call_id": "call_2", "arguments": ""}),
            arguments("{", 0),
            arguments("{", 1),
            arguments("}", 0),
            arguments(" }", 1),
            finished(1, **{**CALL, "id": "fc_2", "call_id": "call_2"}, arguments="{ }"),
            finished(0, **CALL, arguments="{}"),
            COMPLETED,
        ],
        [
            UNNAMED,
            STARTED,
            ToolCallStart(1, "call_2", "add", meta=meta("fc_2", type="function_call", status="completed")),
            ToolCallDelta(0, "call_1", "{"),
            ToolCallDelta(1, "call_2", "{"),
            ToolCallDelta(0, "call_1", "}"),
            ToolCallDelta(1, "call_2", " }"),
            *call(1, "call_2", "add", "{ }", meta=meta("fc_2", type="function_call", status="completed")),
            *call(0, "call_1", "add", "{}", meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "the name is the item's, whatever the events say": (
        [
            OPENED,
            of("function_call_arguments.done", 0, "fc_1", arguments="{}", name="other"),
            finished(0, **{**CALL, "name": "add2"}, arguments="{}"),
            COMPLETED,
        ],
        [
            UNNAMED,
            STARTED,
            ToolCallDelta(0, "call_1", "{}"),
            *call(0, "call_1", "add2", "{}", meta=FC),
            done("tool_use", "completed"),
        ],
    ),
    "a call that turns out to be the provider's": (
        [
            added(0, type="shell_call", id="sh_1", call_id="call_1"),
            finished(0, type="shell_call", id="sh_1", call_id="call_1", environment=CONTAINER),
            COMPLETED,
        ],
        [
            UNNAMED,
            ToolCallStart(0, "call_1", "shell", "shell", meta=meta("sh_1", type="shell_call")),
            *call(
                0,
                "call_1",
                "shell",
                "",
                "shell",
                "provider",
                meta=meta("sh_1", type="shell_call", environment=CONTAINER),
            ),
            END,
        ],
    ),
    "a piece of arguments of no call": (
        [created(), arguments("{}"), COMPLETED],
        [S, raw(arguments("{}")), ORPHAN, END],
    ),
    "whole arguments of no call": (
        [created(), arguments_done("{}"), COMPLETED],
        [S, raw(arguments_done("{}")), END],
    ),
    "without a call_id the item's id": (
        [finished(0, type="function_call", id="fc_1", call_id="", name="add", arguments="{}"), COMPLETED],
        [
            UNNAMED,
            ToolCallStart(0, "fc_1", "add", meta=meta("fc_1", type="function_call")),
            ToolCallDelta(0, "fc_1", "{}"),
            *call(0, "fc_1", "add", "{}", meta=meta("fc_1", type="function_call")),
            done("tool_use", "completed"),
        ],
    ),
    'the word "null" is no id': (
        [finished(0, type="function_call", id="fc_1", call_id="null", name="add", arguments="{}"), COMPLETED],
        [
            UNNAMED,
            ToolCallStart(0, "fc_1", "add", meta=meta("fc_1", type="function_call")),
            ToolCallDelta(0, "fc_1", "{}"),
            *call(0, "fc_1", "add", "{}", meta=meta("fc_1", type="function_call")),
            done("tool_use", "completed"),
        ],
    ),
    "an item that becomes another is two blocks": (
        [
            added(0, type="function_call", id="fc_1", call_id="call_1", name="add"),
            finished(0, type="reasoning", id="rs_1"),
            COMPLETED,
        ],
        [
            UNNAMED,
            ToolCallStart(0, "call_1", "add", meta=meta("fc_1", type="function_call")),
            BlockStart(1, "reasoning", 0, RS),
            BlockEnd(1, ReasoningBlock(1, meta=RS)),
            BlockEnd(
                0,
                ToolCallBlock(0, "call_1", "add", state="cut", complete=False, meta=meta("fc_1", type="function_call")),
            ),
            done("tool_use", "completed"),
        ],
    ),
}


# Items that are calls: the finished item, what comes of it, and what stands beside.
Kind = tuple[Payload, str, str, str, Executor, str]
KINDS: dict[str, Kind] = {
    # item; id, name, kind, executor, arguments
    "custom tool": (
        item(type="custom_tool_call", call_id="c", name="sh", input="ls -l"),
        "c",
        "sh",
        "custom",
        "client",
        "ls -l",
    ),
    "a search in X, which xAI has run": (
        item(type="custom_tool_call", call_id="xs_call_1", name="x_keyword_search", input='{"q":1}'),
        "xs_call_1",
        "x_keyword_search",
        "custom",
        "provider",
        '{"q":1}',
    ),
    "MCP": (
        item(type="mcp_call", server_label="s", name="find", arguments='{"q":1}'),
        "x_1",
        "find",
        "mcp",
        "provider",
        '{"q":1}',
    ),
    "web search": (
        item(type="web_search_call", action={"type": "search", "query": "q"}),
        "x_1",
        "web_search",
        "web_search",
        "provider",
        '{"type":"search","query":"q"}',
    ),
    "file search": (
        item(type="file_search_call", queries=["a", "b"]),
        "x_1",
        "file_search",
        "file_search",
        "provider",
        '{"queries":["a","b"]}',
    ),
    "code interpreter": (
        item(type="code_interpreter_call", code="1+1", container_id="c"),
        "x_1",
        "code_execution",
        "code_execution",
        "provider",
        "1+1",
    ),
    "image generation": (
        item(type="image_generation_call", status="completed"),
        "x_1",
        "image_generation",
        "image_generation",
        "provider",
        "{}",
    ),
    "local shell": (
        item(type="local_shell_call", call_id="c", action={"type": "exec", "command": ["ls"]}),
        "c",
        "local_shell",
        "local_shell",
        "client",
        '{"type":"exec","command":["ls"]}',
    ),
    "shell on the client's machine": (
        item(type="shell_call", call_id="c", action={"commands": ["ls", "pwd"]}, environment={"type": "local"}),
        "c",
        "shell",
        "shell",
        "client",
        "ls\npwd",
    ),
    "shell on the provider's": (
        item(type="shell_call", call_id="c", action={"commands": ["ls"]}, environment={"type": "container_reference"}),
        "c",
        "shell",
        "shell",
        "provider",
        "ls",
    ),
    "apply patch": (
        item(type="apply_patch_call", call_id="c", operation={"type": "update_file", "path": "a", "diff": "@@\n+a"}),
        "c",
        "apply_patch",
        "apply_patch",
        "client",
        "@@\n+a",
    ),
    "apply patch that deletes": (
        item(type="apply_patch_call", call_id="c", operation={"type": "delete_file", "path": "a"}),
        "c",
        "apply_patch",
        "apply_patch",
        "client",
        "",
    ),
    "computer": (
        item(type="computer_call", call_id="c", action={"type": "click", "x": 1}),
        "c",
        "computer",
        "computer",
        "client",
        '{"type":"click","x":1}',
    ),
    "tool search by the client": (
        item(type="tool_search_call", call_id="c", execution="client", arguments={"q": 1}),
        "c",
        "tool_search",
        "tool_search",
        "client",
        '{"q":1}',
    ),
    "tool search by the provider": (
        item(type="tool_search_call", execution="server", arguments="{}"),
        "x_1",
        "tool_search",
        "tool_search",
        "provider",
        "{}",
    ),
}
HELD = {
    "id",
    "call_id",
    "name",
    "input",
    "arguments",
    "code",
    "result",
    "output",
    "content",
    "summary",
    "encrypted_content",
}


@pytest.mark.parametrize("row", KINDS.values(), ids=KINDS.keys())
def test_items_that_are_calls(row: Kind) -> None:
    wire, id_, name, kind, executor, whole = row
    kept = meta("x_1", **{member: value for member, value in wire.items() if member not in HELD})
    events = read("openai-responses", [created(), finished(0, **wire), COMPLETED])
    told: list[Event] = [] if whole in ("", "{}") and not wire.get("arguments") else [ToolCallDelta(0, id_, whole)]
    assert events == [
        S,
        ToolCallStart(0, id_, name, kind, executor, meta=kept),
        *told,
        *call(0, id_, name, whole, kind, executor, meta=kept),
        done("tool_use" if executor == "client" else "end", "completed"),
    ]


# Calls that stream: opening, deltas, authoritative event, finished item; the pieces; the whole.
STREAMED_CALLS: dict[str, tuple[list[Payload], list[str], str]] = {
    "custom tool": (
        [
            added(0, type="custom_tool_call", id="x_1", call_id="c", name="sh", input=""),
            of("custom_tool_call_input.delta", 0, "x_1", delta="ls"),
            of("custom_tool_call_input.done", 0, "x_1", input="ls -l"),
            finished(0, type="custom_tool_call", id="x_1", call_id="c", name="sh", input="ls -l"),
        ],
        ["ls", " -l"],
        "ls -l",
    ),
    "MCP": (
        [
            added(0, type="mcp_call", id="x_1", name="find", server_label="s", arguments=""),
            of("mcp_call_arguments.delta", 0, "x_1", delta="{"),
            of("mcp_call_arguments.delta", 0, "x_1", delta="}"),
            of("mcp_call_arguments.done", 0, "x_1", arguments="{}"),
            finished(0, type="mcp_call", id="x_1", name="find", server_label="s", arguments="{}"),
        ],
        ["{", "}"],
        "{}",
    ),
    "code interpreter": (
        [
            added(0, type="code_interpreter_call", id="x_1", code=""),
            of("code_interpreter_call_code.delta", 0, "x_1", delta="1+"),
            of("code_interpreter_call_code.delta", 0, "x_1", delta="1"),
            of("code_interpreter_call_code.done", 0, "x_1", code="1+1"),
            finished(0, type="code_interpreter_call", id="x_1", code="1+1"),
        ],
        ["1+", "1"],
        "1+1",
    ),
    "shell, whose events name no item": (
        [
            added(0, type="shell_call", id="x_1", call_id="c", action={"commands": []}),
            event("shell_call_command.added", output_index=0, command_index=0, command=""),
            event("shell_call_command.delta", output_index=0, command_index=0, delta="l", obfuscation="x"),
            event("shell_call_command.delta", output_index=0, command_index=0, delta="s"),
            event("shell_call_command.done", output_index=0, command_index=0, command="ls"),
            event("shell_call_command.added", output_index=0, command_index=1, command=""),
            event("shell_call_command.delta", output_index=0, command_index=1, delta="pwd"),
            event("shell_call_command.done", output_index=0, command_index=1, command="pwd"),
            finished(0, type="shell_call", id="x_1", call_id="c", action={"commands": ["ls", "pwd"]}),
        ],
        ["l", "s", "\n", "pwd"],
        "ls\npwd",
    ),
    "apply patch": (
        [
            added(0, type="apply_patch_call", id="x_1", call_id="c", operation={"type": "create_file", "path": "a"}),
            of("apply_patch_call_operation_diff.delta", 0, "x_1", delta="+a"),
            of("apply_patch_call_operation_diff.delta", 0, "x_1", delta="b"),
            of("apply_patch_call_operation_diff.done", 0, "x_1", diff="+ab"),
            finished(0, type="apply_patch_call", id="x_1", call_id="c", operation={"path": "a", "diff": "+ab"}),
        ],
        ["+a", "b"],
        "+ab",
    ),
}


@pytest.mark.parametrize(("payloads", "pieces", "whole"), STREAMED_CALLS.values(), ids=STREAMED_CALLS.keys())
def test_calls_as_they_stream(payloads: list[Payload], pieces: list[str], whole: str) -> None:
    events = read("openai-responses", [created(), *payloads, COMPLETED])
    assert [event.delta for event in events if isinstance(event, ToolCallDelta)] == pieces
    assert [event.arguments for event in events if isinstance(event, ToolCallDone)] == [whole]
    assert not [event for event in events if event.type == "raw"]


@pytest.mark.parametrize(("payloads", "pieces", "whole"), STREAMED_CALLS.values(), ids=STREAMED_CALLS.keys())
def test_calls_that_stream_without_deltas(payloads: list[Payload], pieces: list[str], whole: str) -> None:
    quiet = [payload for payload in payloads if not payload["type"].endswith(".delta")]
    events = read("openai-responses", [created(), *quiet, COMPLETED])
    assert "".join(event.delta for event in events if isinstance(event, ToolCallDelta)) == whole
    assert [event.arguments for event in events if isinstance(event, ToolCallDone)] == [whole]


def test_the_end_of_a_command_is_measured_by_the_pieces_of_that_command() -> None:
    def of_command(kind: str, number: int, **members: Any) -> Payload:
        return event(f"shell_call_command.{kind}", output_index=0, command_index=number, **members)

    stream = [
        created(),
        added(0, type="shell_call", id="x_1", call_id="c", action={"commands": []}),
        of_command("delta", 0, delta="ls"),
        of_command("done", 0, command="dir"),
        of_command("delta", 1, delta="pw"),
        of_command("done", 1, command="cd"),
        of_command("done", 1, command="pwd"),
        of_command("done", 0, command="ls -l"),
        finished(0, type="shell_call", id="x_1", call_id="c", action={"commands": ["ls", "pwd"]}),
        COMPLETED,
    ]
    events = read("openai-responses", stream)
    assert [event.delta for event in events if isinstance(event, ToolCallDelta)] == ["ls", "\n", "pw", "d"]
    assert [event.arguments for event in events if isinstance(event, ToolCallDone)] == ["ls\npwd"]


RESULTS: dict[str, tuple[Payload, list[Event]]] = {
    "MCP": (
        item(type="mcp_call", name="find", arguments="{}", output="found", error=None),
        [BlockStart(1, "tool_result"), BlockEnd(1, ToolResultBlock(1, "x_1", "find", json_of('"found"')))],
    ),
    "MCP that failed": (
        item(type="mcp_call", name="find", arguments="{}", output=None, error={"code": 1}),
        [BlockStart(1, "tool_result"), BlockEnd(1, ToolResultBlock(1, "x_1", "find", json_of({"code": 1}), True))],
    ),
    "code interpreter": (
        item(type="code_interpreter_call", code="1", outputs=[{"type": "logs", "logs": "1"}]),
        [
            BlockStart(1, "tool_result"),
            BlockEnd(1, ToolResultBlock(1, "x_1", "code_execution", json_of([{"type": "logs", "logs": "1"}]))),
        ],
    ),
    "code interpreter without outputs": (item(type="code_interpreter_call", code="1", outputs=None), []),
    "file search": (
        item(type="file_search_call", queries=["q"], results=[{"file_id": "f"}]),
        [
            BlockStart(1, "tool_result"),
            BlockEnd(1, ToolResultBlock(1, "x_1", "file_search", json_of([{"file_id": "f"}]))),
        ],
    ),
    "image generation": (
        item(type="image_generation_call", result="QUJD", output_format="webp"),
        [
            BlockStart(1, "media", 0, json_of({"item_id": "x_1"})),
            MediaDelta(1, "image/webp", b"ABC"),
            BlockEnd(1, MediaBlock(1, "image/webp", b"ABC", meta=json_of({"item_id": "x_1"}))),
        ],
    ),
}


@pytest.mark.parametrize(("wire", "events"), RESULTS.values(), ids=RESULTS.keys())
def test_what_a_tool_gave_back_stands_inside_its_item(wire: Payload, events: list[Event]) -> None:
    found = read("openai-responses", [created(), finished(0, **wire), COMPLETED])
    ends = [at for at, event in enumerate(found) if isinstance(event, BlockEnd) and event.index == 0]
    assert found[ends[0] + 1 : -1] == events


def outputs() -> dict[str, tuple[Payload, list[Event]]]:
    result: Payload = {"call_id": "c", "output": [{"a": 1}]}
    table: dict[str, tuple[Payload, list[Event]]] = {}
    for kind in (
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "multi_agent_call_output",
    ):
        kept = meta("x_1", type=kind)
        end = ToolResultBlock(0, "c", kind, json_of([{"a": 1}]), meta=kept)
        table[kind] = (item(type=kind, **result), [BlockStart(0, "tool_result", 0, kept), BlockEnd(0, end)])
    for kind, member in (("program_output", "result"), ("tool_search_output", "tools")):
        kept = meta("x_1", type=kind)
        end = ToolResultBlock(0, "c", kind, json_of([1]), meta=kept)
        wire = item(type=kind, call_id="c", **{member: [1]})
        table[kind] = (wire, [BlockStart(0, "tool_result", 0, kept), BlockEnd(0, end)])
    for kind in (
        "mcp_list_tools",
        "mcp_approval_response",
        "additional_tools",
        "program",
        "compaction",
        "agent_message",
        "multi_agent_call",
        "something_new",
    ):
        wire = item(type=kind, a=1)
        table[kind] = (wire, [BlockStart(0, "other"), BlockEnd(0, OtherBlock(0, kind, json_of(wire)))])
    return table


@pytest.mark.parametrize(("wire", "events"), outputs().values(), ids=outputs().keys())
def test_items_that_come_whole(wire: Payload, events: list[Event]) -> None:
    whole = read("openai-responses", [created(), finished(0, **wire), COMPLETED])
    assert whole == [S, *events, END]
    opened = read("openai-responses", [created(), added(0, **wire), finished(0, **wire), COMPLETED])
    assert opened == whole


def test_an_approval_request_asks_the_caller_to_act() -> None:
    wire = item(type="mcp_approval_request", name="rm", arguments='{"f":1}', server_label="s")
    kept = meta("x_1", type="mcp_approval_request", server_label="s")
    assert read("openai-responses", [created(), finished(0, **wire), COMPLETED]) == [
        S,
        BlockStart(0, "approval", 0, kept),
        BlockEnd(0, ApprovalBlock(0, "x_1", "rm", '{"f":1}', meta=kept)),
        done("tool_use", "completed"),
    ]


def test_items_overlap_and_the_terminal_event_closes_what_is_open() -> None:
    """Three lists of tools: opened before any is finished, finished out of order, and only the last by name."""
    lists = [{"type": "mcp_list_tools", "id": f"l{n}", "tools": [n]} for n in range(3)]
    stream = [
        *(added(n, type="mcp_list_tools", id=f"l{n}") for n in range(3)),
        of("mcp_list_tools.completed", 1, "l1"),
        finished(2, **lists[2]),
        of("mcp_list_tools.completed", 0, "l0"),
        completed(*lists),
    ]
    blocks = [event.block for event in read("openai-responses", stream) if isinstance(event, BlockEnd)]
    assert blocks == [OtherBlock(n, "mcp_list_tools", json_of(lists[n])) for n in (2, 0, 1)]


def test_audio_and_its_words() -> None:
    stream = [
        created(),
        event("audio.delta", delta="QUJ"),
        event("audio.transcript.delta", delta="H"),
        event("audio.delta", delta="D"),
        event("audio.transcript.delta", delta="i"),
        event("audio.done"),
        event("audio.transcript.done"),
        COMPLETED,
    ]
    assert read("openai-responses", stream) == [
        S,
        BlockStart(0, "media"),
        BlockStart(1, "transcript"),
        TranscriptDelta(1, "H"),
        MediaDelta(0, None, b"ABC"),
        TranscriptDelta(1, "i"),
        BlockEnd(0, MediaBlock(0, None, b"ABC")),
        BlockEnd(1, TranscriptBlock(1, "Hi")),
        END,
    ]


# -- types of events --------------------------------------------------------------------------------------------------

_PROGRESS = """
    keepalive response.queued response.in_progress
    response.reasoning_summary_part.added response.reasoning_summary_part.done
    response.reasoning_part.added response.reasoning_part.done
    response.mcp_call.in_progress response.mcp_call.completed response.mcp_call.failed
    response.mcp_list_tools.in_progress response.mcp_list_tools.completed response.mcp_list_tools.failed
    response.web_search_call.in_progress response.web_search_call.searching response.web_search_call.completed
    response.file_search_call.in_progress response.file_search_call.searching response.file_search_call.completed
    response.code_interpreter_call.in_progress response.code_interpreter_call.interpreting
    response.code_interpreter_call.completed
    response.image_generation_call.in_progress response.image_generation_call.generating
    response.image_generation_call.completed response.image_generation_call.partial_image
    response.shell_call_output_content.delta response.shell_call_output_content.done
    response.compaction.compacting
    response.steer.accepted response.steer.pending response.steer.failed
    response.inject.created response.inject.failed
"""
_SPEAKING = """
    response.created response.completed response.incomplete response.failed error
    response.output_item.added response.output_item.done
    response.content_part.added response.content_part.done
    response.output_text.delta response.output_text.done response.output_text.annotation.added
    response.refusal.delta response.refusal.done
    response.reasoning_summary_text.delta response.reasoning_summary_text.done
    response.reasoning_text.delta response.reasoning_text.done
    response.function_call_arguments.delta response.function_call_arguments.done
    response.custom_tool_call_input.delta response.custom_tool_call_input.done
    response.mcp_call_arguments.delta response.mcp_call_arguments.done
    response.code_interpreter_call_code.delta response.code_interpreter_call_code.done
    response.shell_call_command.added response.shell_call_command.delta response.shell_call_command.done
    response.apply_patch_call_operation_diff.delta response.apply_patch_call_operation_diff.done
    response.audio.delta response.audio.done response.audio.transcript.delta response.audio.transcript.done
"""
PROGRESS_TYPES, SPEAKING_TYPES = _PROGRESS.split(), _SPEAKING.split()


def test_the_page_lists_sixty_four_types_and_the_table_knows_them() -> None:
    websocket = {name for name in PROGRESS_TYPES if name.startswith(("response.steer.", "response.inject."))}
    assert len({*PROGRESS_TYPES, *SPEAKING_TYPES} - websocket) == 59 + 5
    assert {*PROGRESS_TYPES, *SPEAKING_TYPES} <= {*EVENTS, *PROGRESS}


@pytest.mark.parametrize("kind", [*PROGRESS_TYPES, "response.something.new"])
def test_types_that_say_nothing_are_raw(kind: str) -> None:
    payload = {"type": kind, "item_id": "x_1", "output_index": 0, "response": {"id": "resp_1", "model": "m"}}
    stream = [created(), payload, COMPLETED]
    assert read("openai-responses", stream) == [S, raw(payload), END]
    unknown = read("openai-responses", stream, raw="unknown")
    assert unknown == ([S, raw(payload), END] if kind == "response.something.new" else [S, END])


CONCERNING: dict[str, tuple[Payload, Payload]] = {
    "a part of reasoning": (
        added(0, type="reasoning", id="x_1"),
        of("reasoning_summary_part.added", 0, "x_1", summary_index=0),
    ),
    "a search": (added(0, type="web_search_call", id="x_1"), of("web_search_call.searching", 0, "x_1")),
    "an image": (
        added(0, type="image_generation_call", id="x_1"),
        of("image_generation_call.partial_image", 0, "x_1", partial_image_b64="QUJD", partial_image_index=0),
    ),
    "an empty piece of a call": (
        added(0, **{**CALL, "id": "x_1"}),
        of("function_call_arguments.delta", 0, "x_1", delta=""),
    ),
}


@pytest.mark.parametrize(("opening", "payload"), CONCERNING.values(), ids=CONCERNING.keys())
def test_a_raw_event_names_the_block_it_concerns(opening: Payload, payload: Payload) -> None:
    assert raw(payload, 0) in read("openai-responses", [created(), opening, payload, COMPLETED])


NOTHING: dict[str, Payload] = {
    "a part of no known kind": of("content_part.added", 0, "msg_1", content_index=0, part={"type": "new", "text": "a"}),
    "a part that is done, of no known kind": of("content_part.done", 0, "msg_1", content_index=0, part={"type": "new"}),
    "no part": of("content_part.added", 0, "msg_1", content_index=0, part=None),
    "no item": event("output_item.added", output_index=0, item=None),
    "a delta that is no text": of("output_text.delta", 0, "msg_1", content_index=0, delta={"a": 1}),
}


@pytest.mark.parametrize("payload", NOTHING.values(), ids=NOTHING.keys())
def test_what_has_no_meaning_is_raw(payload: Payload) -> None:
    assert read("openai-responses", [created(), payload, COMPLETED]) == [S, raw(payload), END]


# -- ends -------------------------------------------------------------------------------------------------------------

ENDS: dict[str, tuple[list[Any], list[Event]]] = {
    "completed": ([created(), completed()], [S, END]),
    "completed, and nothing else": ([COMPLETED], [UNNAMED, END]),
    "no terminal event": ([created()], [S, TRUNCATED]),
    "[DONE] is none": ([created(), "[DONE]"], [S, raw("[DONE]", is_json=False), TRUNCATED]),
    "[DONE] after it changes nothing (OpenRouter)": ([created(), completed(), "[DONE]"], [S, END]),
    "nothing at all": ([], [UNNAMED, TRUNCATED]),
    "payloads after it change nothing": (
        [created(), completed(), delta("a"), {"type": "error", "message": "m"}],
        [S, END],
    ),
    "text that is open is whole": (
        [delta("a"), COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "text at a cut is not": (
        [delta("a")],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), TRUNCATED],
    ),
    "no JSON": (
        [delta("a"), '{"type":', COMPLETED],
        [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), BAD_JSON],
    ),
    "what is no item in the terminal list is passed over": (
        [created(), event("completed", response={"status": "completed", "output": [None, 5, message("a")]})],
        [S, BlockStart(0, "text", 0, MSG), TextDelta(0, "a"), text(0, "a", meta=MSG), END],
    ),
    "what the event is called counts where the status is that of no end": (
        [created(), event("completed", response={"status": "in_progress"})],
        [S, END],
    ),
    "cancelled, as a background response that is retrieved": (
        [created(), event("completed", response={"status": "cancelled"})],
        [S, done("cancelled", "cancelled")],
    ),
    "the whole budget went into reasoning": (
        [
            finished(0, type="reasoning", id="rs_1", summary=[]),
            incomplete("max_output_tokens", {"type": "reasoning", "id": "rs_1"}),
        ],
        [
            UNNAMED,
            BlockStart(0, "reasoning", 0, RS),
            BlockEnd(0, ReasoningBlock(0, meta=RS)),
            done("length", "max_output_tokens"),
        ],
    ),
    "a response that did not stream and has no status": (
        [{"object": "response", "id": "resp_1", "model": "m", "output": []}],
        [S, END],
    ),
    "a response that did not stream": (
        [{"object": "response", "id": "resp_1", "model": "m", "status": "completed", "output": [message("abc")]}],
        [S, BlockStart(0, "text", 0, MSG), TextDelta(0, "abc"), text(0, "abc", meta=MSG), END],
    ),
}
REASONS: dict[str, StopReason] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "refusal",
    "steered": "cancelled",
    "a new word": "other",
}


@pytest.mark.parametrize(("payloads", "events"), rows({**MESSAGES, **REASONING, **CALLS, **ENDS}))
def test_events(payloads: list[Any], events: list[Event]) -> None:
    assert read("openai-responses", payloads) == events


@pytest.mark.parametrize(("word", "reason"), REASONS.items())
def test_why_a_response_is_incomplete(word: str, reason: StopReason) -> None:
    assert read("openai-responses", [created(), incomplete(word)])[-1] == done(reason, word)


def test_incomplete_without_a_reason() -> None:
    assert read("openai-responses", [event("incomplete", response={})])[-1] == done("other", "incomplete")


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_response_that_did_not_stream_and_is_not_finished(status: str) -> None:
    body = {"object": "response", "id": "resp_1", "model": "m", "status": status, "output": []}
    assert read("openai-responses", [body])[-1] == TRUNCATED


def test_length_is_no_tool_use() -> None:
    stream = [finished(0, **CALL, arguments="{}"), incomplete("max_output_tokens")]
    assert read("openai-responses", stream)[-1] == done("length", "max_output_tokens")


# -- sequence numbers -------------------------------------------------------------------------------------------------


def gaps(payloads: list[Payload], **settings: Any) -> list[str]:
    made = OpenAIResponsesNormalizer(**settings)
    events = [event for payload in payloads for event in made.feed([json.dumps(payload).encode()])]
    return [event.message for event in events if isinstance(event, ErrorEvent) and event.code == "sequence_gap"]


def at(number: Any, piece: str = "a") -> Payload:
    return {**delta(piece), "sequence_number": number}


GAPS: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "one after the other": ([0, 1, 2, 3], []),
    "from the first number seen": ([7, 8], []),
    "one is missing": ([0, 2], [("1", "1")]),
    "several are missing": ([0, 5], [("1", "4")]),
    "twice": ([0, 2, 5], [("1", "1"), ("3", "4")]),
    "after pieces that took the quick way": ([0, 1, 2, 3, 9], [("4", "8")]),
    "payloads without a number do not count": ([0, None, 1], []),
    "what is no number does not count": ([0, "1", 1.5, True, -1, 1], []),
    "numbers that go back are no hole": ([5, 3, 4, 6], []),
    "a keep-alive takes a number": ([0, "keepalive", 2], []),
}


@pytest.mark.parametrize(("numbers", "holes"), GAPS.values(), ids=GAPS.keys())
def test_holes_in_the_numbers(numbers: list[Any], holes: list[tuple[str, str]]) -> None:
    stream = [{"type": "keepalive", "sequence_number": 1} if n == "keepalive" else at(n) for n in numbers]
    found = gaps(stream)
    assert len(found) == len(holes)
    for said, (first, last) in zip(found, holes, strict=True):
        assert first in said
        assert last in said


def test_a_hole_is_a_warning_and_changes_nothing_else() -> None:
    events = read("openai-responses", [at(0, "a"), at(3, "b"), {**COMPLETED, "sequence_number": 4}])
    warning = ErrorEvent("protocol", "", "sequence_gap", fatal=False)
    assert events == [UNNAMED, BlockStart(0, "text"), TextDelta(0, "a"), warning, TextDelta(0, "b"), text(0, "ab"), END]


def test_numbers_count_from_the_cursor_that_was_given() -> None:
    after = Cursor("resp_1", last_sequence=2)
    assert gaps([at(3), at(4)], after=after) == []
    assert len(gaps([at(5)], after=after)) == 1


def test_what_a_cursor_has_seen_is_dropped() -> None:
    stream = [
        {**p, "sequence_number": n} for n, p in enumerate([created(), delta("a"), delta("b"), delta("c"), COMPLETED])
    ]
    events = read("openai-responses", stream, after=Cursor("resp_1", last_sequence=2))
    assert fold(events).text == "c"
    assert fold(events).outcome == "complete"


def test_an_answer_that_is_taken_up_has_the_id_of_its_cursor() -> None:
    events = read(
        "openai-responses", [at(3, "c"), {**COMPLETED, "sequence_number": 4}], after=Cursor("resp_1", last_sequence=2)
    )
    assert fold(events).id == "resp_1"


def test_what_a_new_connection_repeats_is_dropped() -> None:
    made = OpenAIResponsesNormalizer()
    stream = [
        json.dumps({**p, "sequence_number": n}).encode()
        for n, p in enumerate([created(), delta("a"), delta("b"), COMPLETED])
    ]
    events = made.feed(stream[:2])
    made.replay()
    events += made.feed(stream)
    assert fold(events).text == "ab"
    assert made.cursor == Cursor("resp_1", last_sequence=3)


def test_the_cursor_moves_with_keep_alives() -> None:
    made = OpenAIResponsesNormalizer()
    made.feed([json.dumps(payload).encode() for payload in numbered(created(), {"type": "keepalive"})])
    assert made.cursor == Cursor("resp_1", last_sequence=1)


def test_the_last_signature_is_the_last_encrypted_reasoning() -> None:
    made = OpenAIResponsesNormalizer()
    for copy in ("one", "two"):
        made.feed([json.dumps(finished(0 if copy == "one" else 1, type="reasoning", encrypted_content=copy)).encode()])
        assert made.cursor.last_signature == copy


# -- odds and ends ----------------------------------------------------------------------------------------------------


def test_the_type_is_the_json_s_and_only_without_one_the_frame_s() -> None:
    decoder = StreamDecoder("openai-responses")
    frames = [
        "event: response.completed\ndata: " + json.dumps(delta("a")),
        'event: response.output_text.delta\ndata: {"output_index":0,"content_index":0,"delta":"b"}',
        'data: {"output_index":0,"content_index":0,"delta":"c"}',
        'event: response.completed\ndata: {"response":{"status":"completed"}}',
    ]
    events = [event for frame in frames for event in decoder.feed(f"{frame}\n\n".encode())]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["a", "b"]
    assert [event.name for event in events if event.type == "raw"] == ["message"]
    assert decoder.ended


@pytest.mark.parametrize("name", RESPONSES)
def test_members_stand_in_any_order(name: str) -> None:
    """Newer servers put ``type`` first, older and re-hosted ones anywhere."""
    turned = [dict(reversed(payload.items())) for payload in RESPONSES[name]]
    assert alike(read("openai-responses", turned)) == alike(read("openai-responses", RESPONSES[name]))


def test_created_at_may_be_a_float_and_other_members_anything() -> None:
    start = created()
    start["response"].update({"created_at": 1.5, "tools": [[[]]], "output": "none", "error": 0})
    assert read("openai-responses", [start, completed()]) == [S, END]


def test_the_id_is_the_first_that_came() -> None:
    """Copilot's changes with every event."""
    events = read(
        "openai-responses",
        [created("resp_a"), created("resp_b"), event("completed", response={"id": "resp_c", "model": "m"})],
    )
    assert [event.id for event in events if isinstance(event, Start)] == ["resp_a"]


def test_deltas_after_the_limit_of_blocks_are_no_events() -> None:
    part: Payload = {"type": "output_text", "text": ""}
    stream = [of("content_part.added", 0, "msg_1", content_index=0, part=part), delta("a"), delta("b")]
    limit = ErrorEvent("limit", "", "blocks")
    assert read("openai-responses", stream, max_blocks=0) == [UNNAMED, limit]


def test_items_without_blocks_count_as_blocks() -> None:
    """Else an endless answer could fill the memory without opening one."""
    stream = [added(n, type="message", id=f"msg_{n}") for n in range(3)]
    limit = ErrorEvent("limit", "", "blocks")
    assert read("openai-responses", stream, max_blocks=2) == [UNNAMED, limit]


def test_nothing_follows_the_close() -> None:
    made = OpenAIResponsesNormalizer()
    assert made.feed([json.dumps(delta("a")).encode()])[-1] == TextDelta(0, "a")
    assert made.close()[-1].type == "error"
    assert made.feed([json.dumps(delta("b")).encode()]) == []


def test_one_stop_of_one_choice() -> None:
    assert read("openai-responses", [completed()])[-1] == Done("end", "completed", None, (Stop(0, "end", "completed"),))


def test_a_stop_of_many_sources_nests_no_deeper_for_that() -> None:
    """It has more brackets than it may have levels: no item of it has."""
    whole = message("a")
    whole["content"][0]["annotations"] = [URL] * 100
    stream = [created(), added(0, type="message", id="msg_1"), finished(0, **whole), completed(whole, whole)]
    assert read("openai-responses", stream)[-1] == END


@pytest.mark.parametrize("levels", [20, 200])
@pytest.mark.parametrize("place", ["output", "metadata"])
def test_what_nests_too_deep_at_the_end_is_found_among_many_brackets(place: str, levels: int) -> None:
    nested: Any = {"type": "new"}
    for _ in range(levels):
        nested = {"of": [nested], "and": [{}]}
    items = [message("a") for _ in range(60)]
    end = completed(*items, nested) if place == "output" else completed(*items, metadata=nested)
    events = read("openai-responses", [created(), end])
    last = events[-1]
    assert last == END if levels == 20 else isinstance(last, ErrorEvent) and last.code == "depth"


TOTALS = json.dumps(RESPONSES_USAGE, separators=(",", ":"))


@pytest.mark.parametrize(
    "usage",
    [
        TOTALS,
        json.dumps(RESPONSES_USAGE),
        TOTALS.replace('"cached_tokens":4', '"cached_tokens":4,"cache_write_tokens":1'),
        TOTALS.replace('"cached_tokens":4', '"cache_write_tokens":1,"cached_tokens":4'),
        TOTALS.replace('"cached_tokens":4', '"cached_tokens":3,"cached_tokens":4'),
        TOTALS.replace('"cached_tokens":4', '"cached_tokens":null'),
        TOTALS.replace('"cached_tokens":4', '"cached_tokens":4.0'),
        TOTALS.replace('"cached_tokens":4', '"cached_tokens":-0'),
        TOTALS.replace('"cached_tokens":4', '"cach\\u0065d_tokens":4'),
        TOTALS.replace('"total_tokens":15', '"total_tokens":17'),
        TOTALS.replace('"total_tokens":15', '"total_tokens":16'),
        TOTALS.replace('"total_tokens":15', '"total_tokens":null'),
        TOTALS.replace(',"total_tokens":15', ""),
        TOTALS.replace("}}", '},"cost":0.5}'),
        TOTALS[:-1] + ',"cost":0.5}',
        TOTALS[:-1] + ',"input_tokens":1}',
        '{"total_tokens":15,"output_tokens":6,"input_tokens":9}',
    ],
)
def test_totals_are_what_the_table_says_however_they_are_written(usage: str) -> None:
    end = f'{{"type":"response.completed","response":{{"status":"completed","usage":{usage}}}}}'.encode()
    try:
        members = json.loads(usage)
    except ValueError:
        members = None
    told = [event for event in OpenAIResponsesNormalizer().feed([end]) if event.type == "usage"]
    assert told == ([] if members is None else [_usage.read(members)])


@pytest.mark.parametrize("usage", [None, {}, [], 3, "many"])
def test_totals_that_are_none_are_not_told(usage: Any) -> None:
    assert read("openai-responses", [created(), completed(usage=usage)]) == [S, END]


@pytest.mark.parametrize(("index", "part"), [(0, 0), (31, 0), (32, 0), (3, 31), (3, 32), (5000, 5000)])
def test_pieces_of_any_item_and_part_go_where_they_belong(index: int, part: int) -> None:
    """The first items have a decoder of their own, which refuses the pieces of all others."""
    others = [(index + 1, part), (index, part + 1), (0, 0)]
    stream = [created()]
    for place in [(index, part), *others]:
        stream += [delta(f"{place}{n};", *place, f"msg_{place[0]}") for n in range(3)]
    stream += [delta("again", index, part, f"msg_{index}"), delta("", index, part), delta("!", index, part)]
    ends = [event.block for event in read("openai-responses", stream) if isinstance(event, BlockEnd)]
    texts = {block.index: block.text for block in ends if isinstance(block, TextBlock)}
    told = f"{(index, part)}0;{(index, part)}1;{(index, part)}2;"
    first = told * 2 + "again!" if (index, part) == (0, 0) else told + "again!"
    assert texts[0] == first
