"""Gemini ``generateContent``: every part, finish reason, total and quirk of the protocol page, sentence by sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamfold
from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    JSONText,
    MediaBlock,
    MediaDelta,
    OtherBlock,
    ReasoningBlock,
    ReasoningDelta,
    Snapshot,
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
    iter_unified,
    limits,
)
from streamfold.events import StopReason
from streamfold.providers.gemini import FINISH_REASONS, GeminiGenerateContentNormalizer
from tests.reading import ORPHAN, TRUNCATED, done, fold, json_of, raw, read, rows, usage
from tests.wires import (
    GEMINI,
    GEMINI_NAMES,
    GEMINI_USAGE,
    INTERACTIONS,
    XAI,
    Payload,
    candidate,
    function_call,
    gemini,
    leaf,
)

GEN = "gemini-generate-content"
S = Start("gemini")
NAMED = Start("gemini", "r1", "gm")
STOP = gemini(finish="STOP")
END = done("end", "STOP")
USED = done("tool_use", "STOP")
MADE_UP: Payload = {"synthetic_id": True}


def made_up(index: int) -> str:
    return f"id_{index}"


def events_of(payloads: list[Any], **settings: Any) -> list[Event]:
    return read(GEN, payloads, call_id=made_up, **settings)


def text(
    index: int, whole: str, *citations: Citation, choice: int = 0, complete: bool = True, meta: Any = None
) -> Event:
    return BlockEnd(
        index, TextBlock(index, whole, citations, choice, complete, None if meta is None else json_of(meta))
    )


def thought(index: int, whole: str, meta: Any = None, **members: Any) -> BlockEnd:
    parts = (whole,) if whole else ()
    return BlockEnd(index, ReasoningBlock(index, whole, parts, meta=None if meta is None else json_of(meta), **members))


def signed(*marks: tuple[str, int, int]) -> Payload:
    """``meta`` of a text whose parts carry signatures: each with the place of its part."""
    return {"parts": [{"thoughtSignature": sign, "start": start, "end": end} for sign, start, end in marks]}


def opened(index: int, name: str, meta: Payload | None = None, id_: str | None = None) -> ToolCallStart:
    known = {**(meta or {}), **({} if id_ else MADE_UP)}
    return ToolCallStart(index, id_ or made_up(index), name, meta=json_of(known) if known else None)


def called(
    index: int, name: str, arguments: str, meta: Payload | None = None, id_: str | None = None, state: Any = "ready"
) -> list[Event]:
    """The end of a call of the client's tools."""
    known = {**(meta or {}), **({} if id_ else MADE_UP)}
    call_id, ready = id_ or made_up(index), state == "ready"
    block = ToolCallBlock(
        index, call_id, name, arguments, state=state, complete=ready, meta=json_of(known) if known else None
    )
    return [ToolCallDone(index, call_id, name, arguments, valid=ready), BlockEnd(index, block)]


def whole_call(
    index: int, name: str, arguments: str, meta: Payload | None = None, id_: str | None = None
) -> list[Event]:
    piece = [ToolCallDelta(index, id_ or made_up(index), arguments)] if arguments != "{}" else []
    return [opened(index, name, meta, id_), *piece, *called(index, name, arguments, meta, id_)]


def ran(index: int, id_: str, kind: str, arguments: str, meta: Payload) -> list[Event]:
    """A call that the provider ran, whole."""
    block = ToolCallBlock(index, id_, kind, arguments, kind, "provider", "provider", meta=json_of(meta))
    return [
        ToolCallStart(index, id_, kind, kind, "provider", meta=json_of(meta)),
        ToolCallDelta(index, id_, arguments),
        ToolCallDone(index, id_, kind, arguments, executor="provider"),
        BlockEnd(index, block),
    ]


def result(
    index: int, meta: Payload, call_id: str | None, name: str, content: JSONText, is_error: bool = False
) -> list[Event]:
    block = ToolResultBlock(index, call_id, name, content, is_error, meta=json_of(meta))
    return [BlockStart(index, "tool_result", meta=json_of(meta)), BlockEnd(index, block)]


def other(index: int, kind: str, part: Any) -> list[Event]:
    return [BlockStart(index, "other"), BlockEnd(index, OtherBlock(index, kind, json_of(part)))]


SIG = {"thoughtSignature": "c2ln"}
EMPTY_SIGNED = gemini({"text": "", "thoughtSignature": "c2lnMw=="})
LAST_SIGNED = gemini({"text": " and no", "thoughtSignature": "c2lnMg=="})
ONE_OTHER = {"audioTranscription": {"text": "la"}}

PARTS: dict[str, tuple[list[Any], list[Event]]] = {
    "text": (
        [gemini({"text": "Hel"}), gemini({"text": "lo"}), STOP],
        [S, BlockStart(0, "text"), TextDelta(0, "Hel"), TextDelta(0, "lo"), text(0, "Hello"), END],
    ),
    "several parts of text in one chunk": (
        [gemini({"text": "Hel"}, {"text": "lo"}, finish="STOP")],
        [S, BlockStart(0, "text"), TextDelta(0, "Hel"), TextDelta(0, "lo"), text(0, "Hello"), END],
    ),
    "thoughts, whole paragraphs": (
        [
            gemini({"text": "Hm.\n\n", "thought": True}),
            gemini({"text": "Ah.", "thought": True}),
            gemini({"text": "a"}),
            STOP,
        ],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm.\n\n"),
            ReasoningDelta(0, "Ah."),
            thought(0, "Hm.\n\nAh."),
            BlockStart(1, "text"),
            TextDelta(1, "a"),
            text(1, "a"),
            END,
        ],
    ),
    "thoughts between text are blocks of their own": (
        [gemini({"text": "a"}), gemini({"text": "Hm", "thought": True}), gemini({"text": "b"}), STOP],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "reasoning"),
            ReasoningDelta(1, "Hm"),
            thought(1, "Hm"),
            BlockStart(2, "text"),
            TextDelta(2, "b"),
            text(2, "b"),
            END,
        ],
    ),
    "thought: false is text": (
        [gemini({"text": "a", "thought": False}), STOP],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "a signature on an empty part after text: raw, and its place is kept": (
        [gemini({"text": "Yes"}), EMPTY_SIGNED, STOP],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "Yes"),
            raw(EMPTY_SIGNED, 0, "thoughtSignature"),
            text(0, "Yes", meta=signed(("c2lnMw==", 3, 3))),
            END,
        ],
    ),
    "a signature on a part with text": (
        [gemini({"text": "Yes"}), LAST_SIGNED, gemini({"text": "!"}), STOP],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "Yes"),
            TextDelta(0, " and no"),
            raw(LAST_SIGNED, 0, "thoughtSignature"),
            TextDelta(0, "!"),
            text(0, "Yes and no!", meta=signed(("c2lnMg==", 3, 10))),
            END,
        ],
    ),
    "a signature on an empty part and no text at all": (
        [EMPTY_SIGNED, STOP],
        [
            S,
            BlockStart(0, "text"),
            raw(EMPTY_SIGNED, 0, "thoughtSignature"),
            text(0, "", meta=signed(("c2lnMw==", 0, 0))),
            END,
        ],
    ),
    "of the signatures of thoughts the last one counts, and each keeps its place": (
        [
            gemini({"text": "Hm", "thought": True, "thoughtSignature": "c2ln"}),
            gemini({"text": "m", "thought": True, "thoughtSignature": "c2lnMg=="}),
            STOP,
        ],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm"),
            raw(gemini({"text": "Hm", "thought": True, "thoughtSignature": "c2ln"}), 0, "thoughtSignature"),
            ReasoningDelta(0, "m"),
            raw(gemini({"text": "m", "thought": True, "thoughtSignature": "c2lnMg=="}), 0, "thoughtSignature"),
            thought(0, "Hmm", signed(("c2ln", 0, 2), ("c2lnMg==", 2, 3)), signature="c2lnMg=="),
            END,
        ],
    ),
    "an empty part without signature says nothing": (
        [gemini({"text": "a"}), gemini({"text": ""}), gemini({"text": "b"}), STOP],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), raw(gemini({"text": ""})), TextDelta(0, "b"), text(0, "ab"), END],
    ),
    "nor does one on the last chunk": (
        [gemini({"text": "a"}), gemini({"text": ""}, finish="STOP")],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "a content without parts": ([gemini({"text": ""}), gemini(), STOP], [S, raw(gemini()), END]),
    "an empty content": (
        [{"candidates": [{"content": {}}]}, {"candidates": [{"finishReason": "STOP"}]}],
        [S, END],
    ),
    "a signature by itself goes back as it is": (
        [gemini({"text": "a"}), gemini(SIG), STOP],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "other"),
            BlockEnd(1, OtherBlock(1, "thoughtSignature", json_of(SIG))),
            END,
        ],
    ),
    "inline data: bytes, and no second copy in raw": (
        [gemini({"inlineData": {"mimeType": "image/png", "data": "QUJD"}, **SIG}), STOP],
        [
            S,
            BlockStart(0, "media", meta=json_of(SIG)),
            MediaDelta(0, "image/png", b"ABC"),
            BlockEnd(0, MediaBlock(0, "image/png", b"ABC", meta=json_of(SIG))),
            END,
        ],
    ),
    "a file": (
        [gemini({"fileData": {"mimeType": "image/png", "fileUri": "https://f", "displayName": "F"}}), STOP],
        [
            S,
            BlockStart(0, "media", meta=json_of({"fileData": {"displayName": "F"}})),
            MediaDelta(0, "image/png", url="https://f"),
            BlockEnd(0, MediaBlock(0, "image/png", url="https://f", meta=json_of({"fileData": {"displayName": "F"}}))),
            END,
        ],
    ),
    "code that ran, and what it gave": (
        [
            gemini({"executableCode": {"language": "PYTHON", "code": "1+1", "id": "e1"}, **SIG}),
            gemini({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2", "id": "e1"}}),
            gemini({"text": "Two."}, finish="STOP"),
        ],
        [
            S,
            *ran(0, "e1", "code_execution", "1+1", {**SIG, "executableCode": {"language": "PYTHON"}}),
            *result(
                1,
                {"codeExecutionResult": {}},
                "e1",
                "code_execution",
                json_of({"outcome": "OUTCOME_OK", "output": "2"}),
            ),
            BlockStart(2, "text"),
            TextDelta(2, "Two."),
            text(2, "Two."),
            END,
        ],
    ),
    "code that failed, without ids: the result is of the code that ran last": (
        [
            gemini({"executableCode": {"language": "PYTHON", "code": "1/0"}}),
            gemini({"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}}),
            STOP,
        ],
        [
            S,
            *ran(0, "id_0", "code_execution", "1/0", {"executableCode": {"language": "PYTHON"}, **MADE_UP}),
            *result(
                1,
                {"codeExecutionResult": {}},
                "id_0",
                "code_execution",
                json_of({"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}),
                True,
            ),
            END,
        ],
    ),
    "a tool that Google ran": (
        [
            gemini({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"q": 1}, "id": "t1"}, **SIG}),
            gemini({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"s": 1}, "id": "t1"}, **SIG}),
            STOP,
        ],
        [
            S,
            *ran(0, "t1", "web_search", '{"q":1}', {**SIG, "toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}}),
            *result(
                1,
                {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB"}, **SIG},
                "t1",
                "web_search",
                json_of({"s": 1}),
            ),
            END,
        ],
    ),
    "what a server gave back over MCP": (
        [gemini({"functionResponse": {"name": "find", "response": {"a": 1}}}), STOP],
        [S, *result(0, {"functionResponse": {}}, None, "find", json_of({"a": 1})), END],
    ),
    "a part of another kind": ([gemini(ONE_OTHER), STOP], [S, *other(0, "audioTranscription", ONE_OTHER), END]),
    "a part that is no object": (
        [{"candidates": [{"content": {"parts": [5, None]}, "finishReason": "STOP"}]}],
        [S, END],
    ),
    "text and data in one part: each is read": (
        [gemini({"text": "a", "inlineData": {"data": "QUJD"}}), STOP],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "media"),
            MediaDelta(1, None, b"ABC"),
            BlockEnd(1, MediaBlock(1, None, b"ABC")),
            END,
        ],
    ),
    "text after a part that held text and more is a block of its own": (
        [gemini({"text": "a", "inlineData": {"data": "QUJD"}}), gemini({"text": "b"}), STOP],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "media"),
            MediaDelta(1, None, b"ABC"),
            BlockEnd(1, MediaBlock(1, None, b"ABC")),
            BlockStart(2, "text"),
            TextDelta(2, "b"),
            text(2, "b"),
            END,
        ],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(PARTS))
def test_a_part(payloads: list[Any], events: list[Event]) -> None:
    assert events_of(payloads) == events


# -- calls ------------------------------------------------------------------------------------------------------------

FINISHED_CALLS = gemini(
    {**function_call("add", args={"x": 1}), **SIG},
    function_call("add", args={"x": 2}),
    finish="STOP",
    finishMessage="Model generated function call(s).",
)
FILLER = gemini(function_call())

CALLS: dict[str, tuple[list[Any], list[Event]]] = {
    "a whole call": (
        [gemini(function_call("add", args={"x": 1}), finish="STOP")],
        [S, *whole_call(0, "add", '{"x":1}'), USED],
    ),
    "one with an id": (
        [gemini(function_call("add", args={"x": 1}, id="g1"), finish="STOP")],
        [S, *whole_call(0, "add", '{"x":1}', id_="g1"), USED],
    ),
    "without args there are none": (
        [gemini(function_call("now"), finish="STOP")],
        [S, *whole_call(0, "now", "{}"), USED],
    ),
    "empty args": (
        [gemini(function_call("now", args={}), finish="STOP")],
        [S, opened(0, "now"), ToolCallDelta(0, "id_0", "{}"), *called(0, "now", "{}"), USED],
    ),
    "parallel calls of one name in one chunk: the first carries the signature": (
        [FINISHED_CALLS],
        [S, *whole_call(0, "add", '{"x":1}', SIG), *whole_call(1, "add", '{"x":2}'), USED],
    ),
    "parallel calls of one name with ids, in chunks": (
        [
            gemini(function_call("add", args={"x": 1}, id="g1")),
            gemini(function_call("add", args={"x": 2}, id="g2")),
            STOP,
        ],
        [S, *whole_call(0, "add", '{"x":1}', id_="g1"), *whole_call(1, "add", '{"x":2}', id_="g2"), USED],
    ),
    "text before a call": (
        [gemini({"text": "a"}), gemini(function_call("now"), finish="STOP")],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), *whole_call(1, "now", "{}"), USED],
    ),
    "what else the call says stays with it": (
        [gemini({**function_call("now", extra=1), "partMetadata": {"a": 1}}, finish="STOP")],
        [S, *whole_call(0, "now", "{}", {"partMetadata": {"a": 1}, "functionCall": {"extra": 1}}), USED],
    ),
    "the sequence of the page": (
        [
            gemini({**function_call("f", willContinue=True), **SIG}),
            gemini(function_call(None, leaf("$.city", "Bos", more=True), willContinue=True)),
            gemini(function_call(None, leaf("$.city", "ton", more=True), willContinue=True)),
            gemini(function_call(None, leaf("$.city", ""), willContinue=True)),
            gemini(function_call(None, leaf("$.items[0].price", 0.5), willContinue=True)),
            gemini(function_call(willContinue=True)),
            gemini(function_call()),
            STOP,
        ],
        [
            S,
            opened(0, "f", SIG),
            ToolCallDelta(0, "id_0", '{"city":"Bos'),
            ToolCallDelta(0, "id_0", "ton"),
            ToolCallDelta(0, "id_0", '"'),
            ToolCallDelta(0, "id_0", ',"items":[{"price":0.5'),
            raw(gemini(function_call(willContinue=True)), name="message"),
            ToolCallDelta(0, "id_0", "}]}"),
            *called(0, "f", '{"city":"Boston","items":[{"price":0.5}]}', SIG),
            USED,
        ],
    ),
    "an end without the outer willContinue, though it has leaves": (
        [
            gemini(function_call("f", willContinue=True)),
            gemini(function_call(None, leaf("$.a", 1))),
            STOP,
        ],
        [
            S,
            opened(0, "f"),
            ToolCallDelta(0, "id_0", '{"a":1'),
            ToolCallDelta(0, "id_0", "}"),
            *called(0, "f", '{"a":1}'),
            USED,
        ],
    ),
    "no arguments: a name, then the end": (
        [gemini(function_call("f", willContinue=True)), FILLER, STOP],
        [S, opened(0, "f"), *called(0, "f", "{}"), USED],
    ),
    "no end but a finish chunk": (
        [gemini(function_call("f", leaf("$.a", "x", more=True), willContinue=True)), STOP],
        [
            S,
            opened(0, "f"),
            ToolCallDelta(0, "id_0", '{"a":"x'),
            ToolCallDelta(0, "id_0", '"}'),
            *called(0, "f", '{"a":"x"}'),
            USED,
        ],
    ),
    "no end but a new name": (
        [gemini(function_call("f", leaf("$.a", 1), willContinue=True)), gemini(function_call("g")), STOP],
        [
            S,
            opened(0, "f"),
            ToolCallDelta(0, "id_0", '{"a":1'),
            ToolCallDelta(0, "id_0", "}"),
            *called(0, "f", '{"a":1}'),
            *whole_call(1, "g", "{}"),
            USED,
        ],
    ),
    "the whole call in one part of leaves": (
        [gemini(function_call("f", leaf("$.a", 100), leaf("$.b", True), leaf("$.c", None)), finish="STOP")],
        [
            S,
            opened(0, "f"),
            ToolCallDelta(0, "id_0", '{"a":100'),
            ToolCallDelta(0, "id_0", ',"b":true'),
            ToolCallDelta(0, "id_0", ',"c":null'),
            ToolCallDelta(0, "id_0", "}"),
            *called(0, "f", '{"a":100,"b":true,"c":null}'),
            USED,
        ],
    ),
    "filler behind a call that is done": (
        [gemini(function_call("f")), FILLER, STOP],
        [S, *whole_call(0, "f", "{}"), raw(FILLER, name="functionCall"), USED],
    ),
    "a piece of no call that is open": (
        [gemini(function_call(None, leaf("$.a", 1))), STOP],
        [S, raw(gemini(function_call(None, leaf("$.a", 1))), name="functionCall"), ORPHAN, END],
    ),
    "cut off by the token limit: it must not run": (
        [gemini(function_call("f", leaf("$.a", "x", more=True), willContinue=True)), gemini(finish="MAX_TOKENS")],
        [
            S,
            opened(0, "f"),
            ToolCallDelta(0, "id_0", '{"a":"x'),
            *called(0, "f", '{"a":"x', state="invalid"),
            done("length", "MAX_TOKENS"),
        ],
    ),
    "cut off by the end of the stream": (
        [gemini(function_call("f", leaf("$.a", "x", more=True), willContinue=True))],
        [
            S,
            opened(0, "f"),
            ToolCallDelta(0, "id_0", '{"a":"x'),
            BlockEnd(0, ToolCallBlock(0, "id_0", "f", '{"a":"x', state="cut", complete=False, meta=json_of(MADE_UP))),
            TRUNCATED,
        ],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(CALLS))
def test_calls(payloads: list[Any], events: list[Event]) -> None:
    assert events_of(payloads) == events


Leaves = list[Payload]
TREES: dict[str, tuple[Leaves, Any]] = {
    # leaves -> the value they make; None where they make none
    "members and items": (
        [leaf("$.a.b[0].c", 1), leaf("$.a.b[0].d", "x"), leaf("$.a.b[1]", True), leaf("$.e", None)],
        {"a": {"b": [{"c": 1, "d": "x"}, True]}, "e": None},
    ),
    "quoted names": (
        [leaf("$['a.b']", 1), leaf('$["c d"][0]', 2), leaf(r"$['it\'s']", 3), leaf(r"$['\u00e9']", 4)],
        {"a.b": 1, "c d": [2], "it's": 3, "é": 4},
    ),
    "names in letters of any kind": ([leaf("$.größe", 1), leaf("$.a-b", 2)], {"größe": 1, "a-b": 2}),
    "lists of lists": ([leaf("$.a[0][0]", 1), leaf("$.a[0][1]", 2), leaf("$.a[1][0]", 3)], {"a": [[1, 2], [3]]}),
    "whole numbers stay whole": ([leaf("$.n", 100), leaf("$.f", 0.5), leaf("$.m", -3)], {"n": 100, "f": 0.5, "m": -3}),
    "what strings have to escape": (
        [leaf("$.a", 'q"\\', more=True), leaf("$.a", "\n\t😀")],
        {"a": 'q"\\\n\t😀'},
    ),
    "an empty string": ([leaf("$.a", "")], {"a": ""}),
    "strings that take turns": (
        [leaf("$.a", "x", more=True), leaf("$.b", "1", more=True), leaf("$.a", "y"), leaf("$.b", "2")],
        {"a": "xy", "b": "12"},
    ),
    "a string that is told anew takes the place of the one before": (
        [leaf("$.a", "x"), leaf("$.a", "y")],
        {"a": "y"},
    ),
    "a value that is told anew": ([leaf("$.a", 1), leaf("$.a", 2)], {"a": 2}),
    "back into an object that was left": (
        [leaf("$.a.x", 1), leaf("$.b", 2), leaf("$.a.y", 3)],
        {"a": {"x": 1, "y": 3}, "b": 2},
    ),
    "back into a list that was left": ([leaf("$.a[0]", 1), leaf("$.b", 2), leaf("$.a[1]", 3)], {"a": [1, 3], "b": 2}),
    "no place: an item beyond the next": ([leaf("$.a[0]", 1), leaf("$.a[2]", 3)], None),
    "no place: a member of a number": ([leaf("$.a", 1), leaf("$.a.b", 2)], None),
    "no path to one place: a wildcard": ([leaf("$.a[*]", 1)], None),
    "no path to one place: descendants": ([leaf("$..a", 1)], None),
    "no path at all": ([leaf("a", 1)], None),
    "the root is no place": ([leaf("$", 1)], None),
    "a path that is deeper than anything may be": ([leaf("$" + ".a" * (limits.MAX_DEPTH + 1), 1)], None),
    "no path at all, then strings, then one that goes back": (
        [leaf("a", 1), leaf("$.a.b", "x"), leaf("$.c", "y"), leaf("$.a.d", "z")],
        None,
    ),
}


@pytest.mark.parametrize(("leaves", "value"), rows(TREES))
@pytest.mark.parametrize("at_once", [True, False], ids=["in one part", "a part each"])
def test_arguments_by_path(leaves: Leaves, value: Any, at_once: bool) -> None:
    chunks = (
        [gemini(function_call("f", *leaves))]
        if at_once
        else [
            gemini(function_call("f", willContinue=True)),
            *(gemini(function_call(None, one, willContinue=True)) for one in leaves),
            FILLER,
        ]
    )
    answer = fold(events_of([*chunks, STOP]))
    (block,) = answer.blocks
    assert isinstance(block, ToolCallBlock)
    if value is None:
        assert (block.state, answer.tool_calls) == ("invalid", ())
    else:
        assert json.loads(block.arguments) == value
        assert answer.tool_calls == (block,)


def test_the_text_of_the_arguments_grows_with_the_leaves() -> None:
    """In the order of a document every leaf is heard of at once, and the deltas join to the arguments."""
    leaves = TREES["members and items"][0]
    events = events_of([gemini(function_call("f", *leaves)), STOP])
    deltas = [event.delta for event in events if isinstance(event, ToolCallDelta)]
    assert len(deltas) == len(leaves) + 1
    assert "".join(deltas) == fold(events).tool_calls[0].arguments


def test_calls_of_two_candidates_at_once_stay_apart() -> None:
    def both(first: Payload, second: Payload) -> Payload:
        return {"candidates": [candidate(first, index=0), candidate(second, index=1)]}

    answer = fold(
        events_of(
            [
                both(function_call("f", willContinue=True), function_call("g", willContinue=True)),
                both(
                    function_call(None, leaf("$.a", "x", more=True), willContinue=True),
                    function_call(None, leaf("$.b", "y", more=True), willContinue=True),
                ),
                gemini(function_call(None, leaf("$.a", "X", more=True), willContinue=True), index=0),
                gemini(function_call(None, leaf("$.b", "Y", more=True), willContinue=True), index=1),
                {"candidates": [candidate(index=0, finish="STOP"), candidate(index=1, finish="STOP")]},
            ]
        )
    )
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("f", '{"a":"xX"}')]
    assert [(call.name, call.arguments) for call in answer.choice(1).tool_calls] == [("g", '{"b":"yY"}')]


# -- ends -------------------------------------------------------------------------------------------------------------

REASONS: dict[str, tuple[Any, StopReason]] = {
    **{word: (word, "refusal") for word in ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT")},
    **{word: (word, "refusal") for word in ("SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")},
    **{word: (word, "refusal") for word in ("MODEL_ARMOR", "ESCALATION", "PUP_LIMITED_DISABLED")},
    **{
        word: (word, "other") for word in ("OTHER", "IMAGE_OTHER", "NO_IMAGE", "FINISH_REASON_UNSPECIFIED", "BRAND_NEW")
    },
    "STOP": ("STOP", "end"),
    "MAX_TOKENS": ("MAX_TOKENS", "length"),
    "CONTINUATION": ("CONTINUATION", "pause"),
    "the number of STOP": (1, "end"),
    "the number of MAX_TOKENS": (2, "length"),
    "the number of SAFETY": (3, "refusal"),
    "the number of RECITATION": (4, "refusal"),
    "the number of OTHER": (5, "other"),
    "a number that means one thing here and another there": (8, "other"),
}
MALFORMED = (
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
)


@pytest.mark.parametrize(("word", "reason"), rows(REASONS))
def test_finish_reasons(word: Any, reason: StopReason) -> None:
    answer = fold(events_of([gemini({"text": "a"}, finish=word)]))
    assert (answer.outcome, answer.text) == ("complete", "a")
    assert answer.stop == Stop(0, reason, str(word))


@pytest.mark.parametrize("word", MALFORMED)
@pytest.mark.parametrize("call", ["before", "in the same chunk"])
def test_calls_of_a_malformed_turn_must_not_run(word: str, call: str) -> None:
    one = function_call("add", args={"x": 1})
    chunks = [gemini(one), gemini(finish=word)] if call == "before" else [gemini(one, finish=word)]
    answer = fold(events_of(chunks))
    assert (answer.stop.reason, answer.stop.raw, answer.tool_calls) == ("other", word, ())
    assert len(answer.withheld_calls) == 1


def test_every_word_of_the_page_has_a_meaning() -> None:
    assert {word for word, reason in REASONS.values() if reason != "other"} == set(FINISH_REASONS)


BLOCKED: Payload = {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "no"}}
RATED: Payload = {"promptFeedback": {"safetyRatings": [{"category": "C"}]}}
EXPLAINED = gemini(finish="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: add(")
RATINGS = gemini({"text": "a"}, finish="SAFETY", safetyRatings=[{"category": "NEW", "probability": "ODD"}])
MORE = gemini({"text": "a"}, finish="CONTINUATION", continuationToken="tok")
NO_CONTENT = {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]}
OVERLOADED: Payload = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
SAID = ErrorEvent(
    "provider", "The model is overloaded.", "UNAVAILABLE", 503, retryable=True, raw=json_of(OVERLOADED["error"])
)
BESIDE: Payload = {"turnToken": "tt", "createTime": "2026-11-30T00:00:00Z", "modelStatus": {"modelStage": "STABLE"}}
PROMPT: Payload = {"promptTokenCount": 10, "totalTokenCount": 10}

ENDS: dict[str, tuple[list[Any], list[Event]]] = {
    "a reason is remembered, done waits for the end of the stream": (
        [gemini({"text": "a"}, finish="STOP"), gemini({"text": "b"}, finish="STOP")],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), text(0, "ab"), END],
    ),
    "a call with a reason, then text in the same answer (MCP)": (
        [
            gemini(function_call("f"), finish="STOP", finishMessage="Model generated function call(s)."),
            gemini({"text": "a"}),
            STOP,
        ],
        [S, *whole_call(0, "f", "{}"), BlockStart(1, "text"), TextDelta(1, "a"), text(1, "a"), USED],
    ),
    "a sentence beside a plain stop is no fault": (
        [gemini(function_call("f"), finish="STOP", finishMessage="Model generated function call(s).")],
        [S, *whole_call(0, "f", "{}"), USED],
    ),
    "all of it in one chunk": (
        [gemini({"text": "a"}, finish="STOP", usage=PROMPT, top=GEMINI_NAMES)],
        [
            NAMED,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            usage(PROMPT, input_tokens=10, total_tokens=10),
            text(0, "a"),
            END,
        ],
    ),
    "what a chunk says besides is no content: turnToken, createTime, modelStatus": (
        [gemini({"text": "a"}, top=BESIDE), gemini(finish="STOP", top=BESIDE)],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "a plain stop never weakens what was said before": (
        [gemini({"text": "a"}, finish="MAX_TOKENS"), STOP],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), done("length", "MAX_TOKENS")],
    ),
    "no reason": (
        [gemini({"text": "a"})],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), TRUNCATED],
    ),
    "no chunk": ([], [S, TRUNCATED]),
    "a blocked prompt": ([BLOCKED], [S, raw(BLOCKED, name="promptFeedback"), done("refusal", "SAFETY")]),
    "ratings of the prompt are no end": (
        [RATED, gemini({"text": "a"}, finish="STOP")],
        [S, raw(RATED, name="promptFeedback"), BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "ratings of the prompt alone": ([RATED], [S, raw(RATED, name="promptFeedback"), TRUNCATED]),
    "a malformed call with nothing but its reason": (
        [NO_CONTENT],
        [S, done("other", "MALFORMED_FUNCTION_CALL")],
    ),
    "why, where it is no plain stop": (
        [EXPLAINED],
        [S, raw(EXPLAINED, name="finishReason"), done("other", "MALFORMED_FUNCTION_CALL")],
    ),
    "ratings of an answer that was refused": (
        [RATINGS],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            raw(RATINGS, name="finishReason"),
            text(0, "a"),
            done("refusal", "SAFETY"),
        ],
    ),
    "SAFETY with an empty content": (
        [{"candidates": [{"content": {}, "finishReason": "SAFETY"}]}],
        [S, done("refusal", "SAFETY")],
    ),
    "a token to continue with": (
        [MORE],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            raw(MORE, name="finishReason"),
            text(0, "a"),
            done("pause", "CONTINUATION"),
        ],
    ),
    "an error in a frame": (
        [gemini({"text": "a"}), OVERLOADED],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), SAID],
    ),
    "an error after the reason: what was finished is whole": (
        [gemini({"text": "a"}, finish="STOP"), OVERLOADED],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), SAID],
    ),
    "an error before anything": ([OVERLOADED], [S, SAID]),
    "several candidates, each with its reason": (
        [
            {"candidates": [candidate({"text": "a"}, index=0), candidate({"text": "b"}, index=1)]},
            gemini({"text": "B"}, index=1, finish="MAX_TOKENS"),
            gemini({"text": "A"}, finish="STOP"),
        ],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockStart(1, "text", 1),
            TextDelta(1, "b"),
            TextDelta(1, "B"),
            TextDelta(0, "A"),
            text(0, "aA"),
            text(1, "bB", choice=1),
            Done("end", "STOP", None, (Stop(0, "end", "STOP"), Stop(1, "length", "MAX_TOKENS"))),
        ],
    ),
    "one of them without a reason": (
        [{"candidates": [candidate({"text": "a"}, index=0, finish="STOP"), candidate({"text": "b"}, index=1)]}],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockStart(1, "text", 1),
            TextDelta(1, "b"),
            text(0, "a"),
            text(1, "b", choice=1, complete=False),
            TRUNCATED,
        ],
    ),
    "a chunk of unknown shape": (
        [{"this": {"is": "odd"}}, gemini({"text": "a"}, finish="STOP")],
        [S, raw({"this": {"is": "odd"}}), BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(ENDS))
def test_ends(payloads: list[Any], events: list[Event]) -> None:
    assert events_of(payloads) == events


# -- totals -----------------------------------------------------------------------------------------------------------


def totals(members: Payload, **counts: Any) -> Any:
    return usage(members, **counts)


FULL: Payload = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 3,
    "toolUsePromptTokenCount": 5,
    "cachedContentTokenCount": 6,
    "totalTokenCount": 22,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 7}, {"modality": "AUDIO", "tokenCount": 3}],
    "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 4}],
    "serviceTier": "standard",
}
FULL_COUNTS: Payload = {
    "input_tokens": 15,
    "output_tokens": 7,
    "total_tokens": 22,
    "reasoning_tokens": 3,
    "cache_read_tokens": 6,
    "input_audio_tokens": 3,
    "output_image_tokens": 4,
}
TRAFFIC: Payload = {"trafficType": "ON_DEMAND"}
NUMBERED: Payload = {
    "promptTokenCount": 2,
    "totalTokenCount": 2,
    "promptTokensDetails": [{"modality": 2, "tokenCount": 1}, {"modality": 4, "tokenCount": 1}],
}

TOTALS: dict[str, tuple[list[Payload], list[Any]]] = {
    # the totals of one chunk after the other -> the usage events
    "thoughts are counted beside the answer, tool results beside the prompt": ([FULL], [totals(FULL, **FULL_COUNTS)]),
    "repeated on every chunk, told once": (
        [PROMPT, PROMPT, dict(PROMPT)],
        [totals(PROMPT, input_tokens=10, total_tokens=10)],
    ),
    "they may fall": (
        [{"promptTokenCount": 9, "totalTokenCount": 9}, {"promptTokenCount": 5, "totalTokenCount": 5}],
        [
            totals({"promptTokenCount": 9, "totalTokenCount": 9}, input_tokens=9, total_tokens=9),
            totals({"promptTokenCount": 5, "totalTokenCount": 5}, input_tokens=5, total_tokens=5),
        ],
    ),
    "all tokens went to thoughts": (
        [{"promptTokenCount": 9, "thoughtsTokenCount": 5, "totalTokenCount": 14}],
        [
            totals(
                {"promptTokenCount": 9, "thoughtsTokenCount": 5, "totalTokenCount": 14},
                input_tokens=9,
                output_tokens=5,
                reasoning_tokens=5,
                total_tokens=14,
            )
        ],
    ),
    "chunks of Vertex wipe nothing": (
        [PROMPT, TRAFFIC],
        [
            totals(PROMPT, input_tokens=10, total_tokens=10),
            totals({**PROMPT, **TRAFFIC}, input_tokens=10, total_tokens=10),
        ],
    ),
    "what is no count is kept as it came": (
        [{**PROMPT, "billablePromptUsage": {"textCount": 9}, "serviceTier": "standard"}],
        [
            totals(
                {**PROMPT, "billablePromptUsage": {"textCount": 9}, "serviceTier": "standard"},
                input_tokens=10,
                total_tokens=10,
            )
        ],
    ),
    "nothing is counted yet": ([TRAFFIC, PROMPT], [totals(PROMPT, input_tokens=10, total_tokens=10)]),
    "without a total it is the sum": (
        [{"promptTokenCount": 2, "candidatesTokenCount": 3}],
        [totals({"promptTokenCount": 2, "candidatesTokenCount": 3}, input_tokens=2, output_tokens=3, total_tokens=5)],
    ),
    "numbers for words": (
        [NUMBERED],
        [totals(NUMBERED, input_tokens=2, total_tokens=2, input_image_tokens=1, input_audio_tokens=1)],
    ),
    "what counts nothing is left out": (
        [{"promptTokenCount": -1, "candidatesTokenCount": "4", "totalTokenCount": 4, "thoughtsTokenCount": True}],
        [
            totals(
                {"promptTokenCount": -1, "candidatesTokenCount": "4", "totalTokenCount": 4, "thoughtsTokenCount": True},
                total_tokens=4,
            )
        ],
    ),
}


@pytest.mark.parametrize(("given", "told"), rows(TOTALS))
@pytest.mark.parametrize("with_text", [True, False], ids=["beside text", "alone"])
def test_totals(given: list[Payload], told: list[Any], with_text: bool) -> None:
    parts = [{"text": "a"}] if with_text else []
    chunks = [gemini({"text": "a"}), *(gemini(*parts, usage=members) for members in given), STOP]
    events = events_of(chunks)
    assert [event for event in events if event.type == "usage"] == told


@pytest.mark.parametrize(
    "beside",
    [{}, {"serviceTier": "standard"}, {"trafficType": "ON_DEMAND"}, {"new": ' a:  b, "c" '}, {" new": {"x y": [1]}}],
)
@pytest.mark.parametrize("indent", [None, 0, 2, "\t"])
@pytest.mark.parametrize("hot", [True, False], ids=["short", "general"])
def test_totals_come_on_one_line_and_whole(beside: Payload, indent: Any, hot: bool) -> None:
    counts = [{"promptTokenCount": 7, "candidatesTokenCount": n, "totalTokenCount": 7 + n} for n in range(1, 4)]
    given = [{**count, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 7}], **beside} for count in counts]
    made = GeminiGenerateContentNormalizer()
    made.hot = hot
    chunks = [gemini({"text": "a"}, usage=totals, top=GEMINI_NAMES) for totals in given]
    events = [event for chunk in chunks for event in made.feed([json.dumps(chunk, indent=indent).encode()])]
    told = [event.raw for event in events if isinstance(event, streamfold.Usage)]
    between = (", ", ": ") if indent is None else (",", ":")
    assert told == [json.dumps(totals, separators=between) for totals in given]


@pytest.mark.parametrize("members", [None, {}], ids=["null", "empty"])
def test_totals_that_say_nothing(members: Any) -> None:
    chunk = {**gemini({"text": "b"}), "usageMetadata": members}
    events = events_of([gemini({"text": "a"}, usage=PROMPT), chunk, chunk, STOP])
    assert [event.type for event in events].count("usage") == 1
    assert fold(events).usage == totals(PROMPT, input_tokens=10, total_tokens=10)


# -- sources ----------------------------------------------------------------------------------------------------------

WEB = {"web": {"uri": "https://a", "title": "A"}}
RETRIEVED = {"retrievedContext": {"uri": "gs://b", "title": "B", "text": "words"}}


def supports(*segments: Payload, chunks: tuple[Payload, ...] = (WEB,)) -> Payload:
    return {
        "groundingChunks": list(chunks),
        "groundingSupports": [
            {"segment": segment, "groundingChunkIndices": list(range(len(chunks)))} for segment in segments
        ],
    }


Place = tuple[str | None, str | None, int | None, int | None]
SOURCES: dict[str, tuple[list[Payload], list[Place]]] = {
    # chunks -> url, title, start and end of each citation, in code points
    "places are bytes of UTF-8": (
        [gemini({"text": "Grüße, Welt."}), gemini(groundingMetadata=supports({"startIndex": 9, "endIndex": 13}))],
        [("https://a", "A", 7, 11)],
    ),
    "a start that is left out is 0": (
        [gemini({"text": "Grüße"}), gemini(groundingMetadata=supports({"endIndex": 7, "text": "Grüße"}))],
        [("https://a", "A", 0, 5)],
    ),
    "every source of a stretch": (
        [gemini({"text": "abc"}), gemini(groundingMetadata=supports({"endIndex": 3}, chunks=(WEB, RETRIEVED)))],
        [("https://a", "A", 0, 3), ("gs://b", "B", 0, 3)],
    ),
    "repeated on several chunks, cited once": (
        [
            gemini({"text": "abc"}, groundingMetadata=supports({"endIndex": 1})),
            gemini({"text": "def"}, groundingMetadata=supports({"endIndex": 1}, {"startIndex": 3, "endIndex": 6})),
            gemini(groundingMetadata=supports({"endIndex": 1}, {"startIndex": 3, "endIndex": 6})),
        ],
        [("https://a", "A", 0, 1), ("https://a", "A", 3, 6)],
    ),
    "told before the text that it speaks of": (
        [
            gemini({"text": "ab"}, groundingMetadata=supports({"startIndex": 2, "endIndex": 4, "text": "cd"})),
            gemini({"text": "cd"}),
        ],
        [("https://a", "A", 2, 4)],
    ),
    "inside of a character: cited without a place": (
        [gemini({"text": "Grüße"}, groundingMetadata=supports({"startIndex": 3, "endIndex": 5}))],
        [("https://a", "A", None, None)],
    ),
    "beyond the text: cited without a place": (
        [gemini({"text": "abc"}, groundingMetadata=supports({"startIndex": 7, "endIndex": 9}))],
        [("https://a", "A", None, None)],
    ),
    "where the quote is another, the place is none": (
        [gemini({"text": "abc"}, groundingMetadata=supports({"endIndex": 3, "text": "xyz"}))],
        [("https://a", "A", None, None)],
    ),
    "the citations of old, by both names": (
        [
            gemini({"text": "abc"}, citationMetadata={"citationSources": [{"endIndex": 2, "uri": "https://c"}]}),
            gemini({"text": "d"}, citationMetadata={"citations": [{"startIndex": 1, "endIndex": 3, "title": "T"}]}),
        ],
        [("https://c", None, 0, 2), (None, "T", 1, 3)],
    ),
    "RECITATION without any content": (
        [{"candidates": [{"finishReason": "RECITATION", "citationMetadata": {"citations": [{"uri": "https://c"}]}}]}],
        [],
    ),
    "an index of no source": (
        [
            gemini(
                {"text": "abc"},
                groundingMetadata={
                    "groundingSupports": [{"segment": {"endIndex": 1}, "groundingChunkIndices": [0, -1, 7]}]
                },
            )
        ],
        [],
    ),
    "metadata of other shapes": (
        [
            gemini(
                {"text": "abc"}, groundingMetadata={"groundingChunks": 5, "groundingSupports": [None, {"segment": 5}]}
            )
        ],
        [],
    ),
}


@pytest.mark.parametrize(("chunks", "places"), rows(SOURCES))
def test_sources(chunks: list[Payload], places: list[Place]) -> None:
    events = events_of([*chunks, STOP])
    cited = [event for event in events if isinstance(event, Citation)]
    assert [(c.url, c.title, c.start, c.end) for c in cited] == places
    assert fold(events).outcome == "complete"


def test_what_a_source_says_is_kept() -> None:
    metadata = supports({"endIndex": 3}, chunks=(RETRIEVED,))
    cited = next(
        e for e in events_of([gemini({"text": "abc"}, groundingMetadata=metadata), STOP]) if e.type == "citation"
    )
    assert (cited.cited_text, cited.raw.decoded()) == ("words", RETRIEVED)  # type: ignore[union-attr]


def test_metadata_is_raw_each_time_it_says_something_new() -> None:
    """Nothing dropped: search entry points, queries and scores have no unified meaning."""
    first, second = supports({"endIndex": 1}), {**supports({"endIndex": 1}), "webSearchQueries": ["q"]}
    chunks = [gemini({"text": "a"}, groundingMetadata=m) for m in (first, first, second)]
    events = events_of([*chunks, gemini(urlContextMetadata={"urlMetadata": []}), STOP])
    assert [e.payload for e in events if e.type == "raw"] == [
        json_of(chunks[0]),
        json_of(chunks[2]),
        json_of(gemini(urlContextMetadata={"urlMetadata": []})),
    ]


@pytest.mark.parametrize("length", [10, 3000])
@pytest.mark.parametrize("letter", ["a", "é", "漢", "😀"])
def test_places_in_long_text_of_any_letters(letter: str, length: int) -> None:
    size = len(letter.encode())
    metadata = supports({"startIndex": size, "endIndex": size * (length - 1), "text": letter * (length - 2)})
    chunks = [gemini({"text": letter}) for _ in range(length)]
    cited = next(e for e in events_of([*chunks, gemini(groundingMetadata=metadata), STOP]) if e.type == "citation")
    assert (cited.start, cited.end) == (1, length - 1)


# -- framings ---------------------------------------------------------------------------------------------------------

HELLO = [
    gemini({"text": "Hel"}, top=GEMINI_NAMES),
    gemini({"text": "lo"}, finish="STOP", usage=GEMINI_USAGE, top=GEMINI_NAMES),
]


def as_events(payloads: list[Any], end: str = "\r\n", between: str = "") -> bytes:
    return "".join(f"data: {json.dumps(payload)}{end}{end}{between}" for payload in payloads).encode()


def as_array(payloads: list[Any], indent: int | None = 2) -> bytes:
    return b"[" + b"\n,\r\n".join(json.dumps(payload, indent=indent).encode() for payload in payloads) + b"\n]"


BARE = json.dumps(OVERLOADED, indent=2).encode()
BODIES: dict[str, tuple[bytes, str, str]] = {
    # body -> text and outcome
    "CRLF": (as_events(HELLO), "Hello", "complete"),
    "LF": (as_events(HELLO, "\n"), "Hello", "complete"),
    "no blank after the colon": (as_events(HELLO).replace(b"data: ", b"data:"), "Hello", "complete"),
    "blank lines keep it alive": (b"\r\n\r\n" + as_events(HELLO, between="\r\n\r\n\r\n"), "Hello", "complete"),
    "U+2028, U+2029 and U+0085 raw inside of strings": (
        "data: {}\r\n\r\n".format(
            json.dumps(gemini({"text": "a\u2028b\u2029c\u0085d"}, finish="STOP"), ensure_ascii=False)
        ).encode(),
        "a\u2028b\u2029c\u0085d",
        "complete",
    ),
    "a bare error after the last event": (as_events(HELLO[:1]) + b"\r\n" + BARE + b"\n", "Hel", "failed"),
    "a bare error after a reason": (as_events(HELLO) + BARE + b"\n", "Hello", "failed"),
    "a bare error before any event": (BARE, "", "failed"),
    "an error in a data line": (as_events([*HELLO[:1], OVERLOADED]), "Hel", "failed"),
    "an array in the vendor's layout": (as_array(HELLO), "Hello", "complete"),
    "an array on one line": (as_array(HELLO, None), "Hello", "complete"),
    "an array that was cut": (as_array(HELLO)[:-2], "Hello", "truncated"),
    "an array with an error for an item": (as_array([*HELLO[:1], OVERLOADED]), "Hel", "failed"),
    "an array that is nothing but an error": (as_array([OVERLOADED]), "", "failed"),
    "an object that is an error": (json.dumps(OVERLOADED).encode(), "", "failed"),
    "an empty array is no answer": (b"[]", "", "truncated"),
    "an answer that did not stream": (json.dumps(HELLO[1], indent=2).encode(), "lo", "complete"),
}


@pytest.mark.parametrize(("body", "words", "outcome"), rows(BODIES))
@pytest.mark.parametrize("provider", ["gemini", GEN, "auto"])
def test_framings(body: bytes, words: str, outcome: str, provider: str) -> None:
    for size in (1, 7, len(body)):
        decoder = StreamDecoder(provider)
        events = [e for at in range(0, len(body), size) for e in decoder.feed(body[at : at + size])] + decoder.close()
        answer = decoder.snapshot()
        assert (answer.text, answer.outcome) == (words, outcome), size
        if outcome == "failed":
            assert (answer.error.code, answer.error.status) == ("UNAVAILABLE", 503)  # type: ignore[union-attr]
            assert answer.error.retryable  # type: ignore[union-attr]
        assert events[-1].type in ("done", "error")


@pytest.mark.parametrize("size", [4096, 65536])
def test_a_picture_in_one_line_of_300_kb(size: int) -> None:
    body = as_events([gemini({"inlineData": {"mimeType": "image/png", "data": "QUJD" * 75_000}}), STOP])
    (block,) = streamfold.fold([body[at : at + size] for at in range(0, len(body), size)], "gemini").blocks
    assert block == MediaBlock(0, "image/png", b"ABC" * 75_000)


def test_where_a_bare_error_stands_it_ends_the_answer_at_once() -> None:
    """The connection may stay open: nobody has to wait for its end."""
    decoder = StreamDecoder("gemini")
    decoder.feed(as_events(HELLO[:1]))
    assert decoder.feed(BARE + b"\n\n")[-1].type == "error"
    assert decoder.ended


RETRY: Payload = {
    "error": {
        "code": 429,
        "message": "slow",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}],
    }
}


def test_how_long_to_wait() -> None:
    answer = fold(events_of([RETRY]))
    assert answer.error is not None
    assert (answer.error.retryable, answer.error.retry_after_ms) == (True, 34070)


@pytest.mark.parametrize("status", ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED"])
def test_words_that_waiting_helps(status: str) -> None:
    answer = fold(events_of([{"error": {"message": "m", "status": status}}]))
    assert answer.error is not None
    assert (answer.error.code, answer.error.retryable) == (status, True)


# -- names, cursors, settings -----------------------------------------------------------------------------------------

NAMES: dict[str, tuple[list[Payload], tuple[str | None, str | None]]] = {
    "on every chunk": ([{"responseId": "r1", "modelVersion": "gm"}] * 2, ("r1", "gm")),
    "on none, in old bodies": ([{}, {}], (None, None)),
    "late": ([{}, {"responseId": "r1"}, {"modelVersion": "gm"}], ("r1", "gm")),
    "the first counts": ([{"responseId": "r1"}, {"responseId": "r2"}], ("r1", None)),
    "of other types": ([{"responseId": 5, "modelVersion": []}], (None, None)),
}


@pytest.mark.parametrize(("tops", "names"), rows(NAMES))
def test_names(tops: list[Payload], names: tuple[str | None, str | None]) -> None:
    answer = fold(events_of([*(gemini({"text": "a"}, top=top) for top in tops), STOP]))
    assert (answer.id, answer.model) == names
    assert answer.text == "a" * len(tops)


def test_the_cursor_has_the_last_signature() -> None:
    made = GeminiGenerateContentNormalizer()
    made.feed(
        [json.dumps(p).encode() for p in (gemini({"text": "a"}, top=GEMINI_NAMES), EMPTY_SIGNED, gemini({"text": "b"}))]
    )
    assert (made.cursor.response_id, made.cursor.last_signature, made.cursor.last_sequence) == ("r1", "c2lnMw==", None)


@pytest.mark.parametrize(("mode", "count"), [("all", 2), ("unknown", 1), ("none", 0)])
def test_which_raw_events_are_handed_out(mode: Any, count: int) -> None:
    events = events_of([gemini({"text": "a"}), EMPTY_SIGNED, {"this": 1}, STOP], raw=mode)
    assert sum(event.type == "raw" for event in events) == count
    (block,) = fold(events).blocks
    assert block.meta == json_of(signed(("c2lnMw==", 1, 1)))


def test_a_made_up_id_is_the_same_at_every_reading() -> None:
    ids = [call.id for _ in range(2) for call in _folded(GEMINI["calls in one chunk"]).tool_calls]
    assert ids[:3] == ids[3:]
    assert len(set(ids)) == 3


def _folded(payloads: list[Any]) -> Snapshot:
    return fold(read(GEN, payloads))


# -- closing ----------------------------------------------------------------------------------------------------------

STREAMS = {
    "gemini": GEMINI["thoughts and signatures"],
    "gemini, arguments by path": GEMINI["arguments by path"],
    "interactions": INTERACTIONS["a call"],
    "xai": XAI["messages: two blocks of index 0, deltas without one"],
}


class Source:
    """Reads of one frame each, which count how far they were asked for and how often they were closed."""

    def __init__(self, payloads: list[Any], fails_at: int = -1) -> None:
        self.reads = [f"data: {json.dumps(payload)}\n\n".encode() for payload in payloads]
        self.fails_at, self.asked, self.closed = fails_at, 0, 0

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> bytes:
        if self.asked == self.fails_at:
            raise ConnectionError
        if self.asked == len(self.reads):
            raise StopIteration
        self.asked += 1
        return self.reads[self.asked - 1]

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("name", STREAMS)
def test_closing_at_any_event_closes_the_source_once_and_reads_no_further(name: str) -> None:
    provider = "xai" if name == "xai" else "gemini"
    total = len(list(iter_unified(Source(STREAMS[name]), provider)))
    for count in range(total):
        source = Source(STREAMS[name])
        with iter_unified(source, provider) as stream:
            events = [next(iter(stream)) for _ in range(count)]
            asked = source.asked
        stream.close()
        assert (source.closed, source.asked, len(events)) == (1, asked, count)
        answer = stream.snapshot()
        assert answer.outcome == "cancelled"
        assert [call.state for call in answer.withheld_calls if call.executor == "client"] in ([], ["cut"])


@pytest.mark.parametrize("name", STREAMS)
def test_a_source_that_fails_leaves_what_came(name: str) -> None:
    provider = "xai" if name == "xai" else "gemini"
    for at in range(len(STREAMS[name])):
        source = Source(STREAMS[name], fails_at=at)
        events: list[Event] = []
        with pytest.raises(ConnectionError), iter_unified(source, provider) as stream:
            events.extend(stream)
        answer = stream.snapshot()
        assert source.closed == 1
        assert (answer.outcome, answer.error and answer.error.kind) == ("failed", "transport")
        assert all(call.state == "cut" for call in answer.withheld_calls if not call.complete)
