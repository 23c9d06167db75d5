"""Anthropic Messages: every event, block and delta, and the servers that speak it less well."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamfold import (
    AnthropicNormalizer,
    BlockEnd,
    BlockStart,
    Citation,
    ErrorEvent,
    Event,
    OtherBlock,
    Raw,
    ReasoningBlock,
    ReasoningDelta,
    Restart,
    Start,
    StreamDecoder,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResultBlock,
    iter_unified,
)
from streamfold import fold as fold_bytes
from streamfold.blocks import Executor
from streamfold.events import StopReason
from tests.reading import BAD_JSON, ORPHAN, TRUNCATED, done, fold, json_of, raw, read, rows, usage
from tests.wires import MESSAGE_STOP, PING, Payload, block_delta, block_start, block_stop, message_delta, message_start

S = Start("anthropic", "msg_1", "m")
UNNAMED = Start("anthropic")
START = message_start()
OVER = [message_delta("end_turn"), MESSAGE_STOP]
CALLED = [message_delta("tool_use"), MESSAGE_STOP]
END = done("end", "end_turn")
USED = done("tool_use", "tool_use")


def text(index: int, whole: str, *citations: Citation, complete: bool = True) -> BlockEnd:
    return BlockEnd(index, TextBlock(index, whole, citations, 0, complete))


def thought(index: int, whole: str, **members: Any) -> BlockEnd:
    return BlockEnd(index, ReasoningBlock(index, whole, (whole,) if whole else (), **members))


def called(index: int, id_: str, name: str, arguments: str, **members: Any) -> list[Event]:
    """The end of a call that is ready."""
    block = ToolCallBlock(index, id_, name, arguments, state="ready", **members)
    return [ToolCallDone(index, id_, name, arguments), BlockEnd(index, block)]


def served(index: int, id_: str, name: str, arguments: str, kind: str, meta: Any = None) -> list[Event]:
    """The end of a call that the provider ran."""
    block = ToolCallBlock(index, id_, name, arguments, kind, "provider", "provider", meta=meta)
    return [ToolCallDone(index, id_, name, arguments, executor="provider"), BlockEnd(index, block)]


def other(index: int, kind: str, whole: Any, *, complete: bool = True) -> BlockEnd:
    return BlockEnd(index, OtherBlock(index, kind, json_of(whole), complete=complete))


def words(piece: str, index: int = 0) -> Payload:
    return block_delta(index, "text_delta", text=piece)


def thinking(piece: str, index: int = 0, **members: Any) -> Payload:
    return block_delta(index, "thinking_delta", thinking=piece, **members)


def signed(piece: str, index: int = 0) -> Payload:
    return block_delta(index, "signature_delta", signature=piece)


def pieces(piece: str, index: int = 0) -> Payload:
    return block_delta(index, "input_json_delta", partial_json=piece)


def cites(index: int = 0, **citation: Any) -> Payload:
    return block_delta(index, "citations_delta", citation=citation)


def without_index(payload: Payload) -> Payload:
    return {name: value for name, value in payload.items() if name != "index"}


TEXT = block_start(0, "text", text="")
THINKING = block_start(0, "thinking", thinking="", signature="")
TOOL = block_start(0, "tool_use", id="toolu_1", name="add", input={})
WEB: Payload = {
    "type": "web_search_result_location",
    "url": "https://a",
    "title": "A",
    "cited_text": "c",
    "encrypted_index": "e",
}
WEB_CITED = Citation(0, "https://a", "A", "c", raw=json_of(WEB))
CHAR: Payload = {
    "type": "char_location",
    "cited_text": "c",
    "document_index": 0,
    "document_title": "D",
    "start_char_index": 5,
    "end_char_index": 6,
}
CHAR_CITED = Citation(0, None, "D", "c", raw=json_of(CHAR))

BLOCKS = {
    "text": (
        [START, TEXT, PING, words("Hel"), words("lo"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw(PING), TextDelta(0, "Hel"), TextDelta(0, "lo"), text(0, "Hello"), END],
    ),
    "text in the start of its block": (
        [START, block_start(0, "text", text="Hel"), words("lo"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "Hel"), TextDelta(0, "lo"), text(0, "Hello"), END],
    ),
    "a block without deltas": (
        [START, TEXT, block_stop(0), *OVER],
        [S, BlockStart(0, "text"), text(0, ""), END],
    ),
    "an empty piece of text is raw": (
        [START, TEXT, words(""), words("a"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw(words(""), 0), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "thinking, its signature joined from pieces": (
        [START, THINKING, thinking("H"), thinking("m"), signed("sig"), signed("nature"), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "H"),
            ReasoningDelta(0, "m"),
            raw(signed("sig"), 0),
            raw(signed("nature"), 0),
            thought(0, "Hm", signature="signature"),
            END,
        ],
    ),
    "thinking that is not shown has a signature all the same": (
        [START, THINKING, thinking("", estimated_tokens=9), signed("sig"), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            raw(thinking("", estimated_tokens=9), 0),
            raw(signed("sig"), 0),
            thought(0, "", signature="sig"),
            END,
        ],
    ),
    "thinking between texts stays in its place, with the signature that is its own": (
        [
            START,
            THINKING,
            thinking("H"),
            signed("one"),
            block_stop(0),
            block_start(1, "text", text=""),
            words("a", 1),
            block_stop(1),
            block_start(2, "thinking", thinking="", signature=""),
            block_delta(2, "thinking_delta", thinking="m"),
            block_delta(2, "signature_delta", signature="two"),
            block_stop(2),
            block_start(3, "text", text=""),
            words("b", 3),
            block_stop(3),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "H"),
            raw(signed("one"), 0),
            thought(0, "H", signature="one"),
            BlockStart(1, "text"),
            TextDelta(1, "a"),
            text(1, "a"),
            BlockStart(2, "reasoning"),
            ReasoningDelta(2, "m"),
            raw(block_delta(2, "signature_delta", signature="two"), 2),
            thought(2, "m", signature="two"),
            BlockStart(3, "text"),
            TextDelta(3, "b"),
            text(3, "b"),
            END,
        ],
    ),
    "thinking and signature in the start of the block": (
        [START, block_start(0, "thinking", thinking="Hm", signature="sig"), block_stop(0), *OVER],
        [S, BlockStart(0, "reasoning"), ReasoningDelta(0, "Hm"), thought(0, "Hm", signature="sig"), END],
    ),
    "redacted thinking": (
        [START, block_start(0, "redacted_thinking", data="blob"), block_stop(0), *OVER],
        [S, BlockStart(0, "reasoning"), thought(0, "", encrypted="blob", redacted=True), END],
    ),
    "a call": (
        [START, TOOL, pieces(""), pieces('{"x":'), pieces("1}"), block_stop(0), *CALLED],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            raw(pieces(""), 0),
            ToolCallDelta(0, "toolu_1", '{"x":'),
            ToolCallDelta(0, "toolu_1", "1}"),
            *called(0, "toolu_1", "add", '{"x":1}'),
            USED,
        ],
    ),
    "a call without arguments": (
        [START, TOOL, pieces(""), block_stop(0), *CALLED],
        [S, ToolCallStart(0, "toolu_1", "add"), raw(pieces(""), 0), *called(0, "toolu_1", "add", "{}"), USED],
    ),
    "a call with empty arguments": (
        [START, TOOL, pieces(""), pieces("{}"), block_stop(0), *CALLED],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            raw(pieces(""), 0),
            ToolCallDelta(0, "toolu_1", "{}"),
            *called(0, "toolu_1", "add", "{}"),
            USED,
        ],
    ),
    "a call by server code: the input is in the start": (
        [
            START,
            block_start(
                0,
                "tool_use",
                id="t",
                name="add",
                input={"x": 1},
                caller={"type": "code_execution_20250825", "tool_id": "s"},
            ),
            block_stop(0),
            *CALLED,
        ],
        [
            S,
            ToolCallStart(0, "t", "add", meta=json_of({"caller": {"type": "code_execution_20250825", "tool_id": "s"}})),
            ToolCallDelta(0, "t", '{"x":1}'),
            *called(
                0, "t", "add", '{"x":1}', meta=json_of({"caller": {"type": "code_execution_20250825", "tool_id": "s"}})
            ),
            USED,
        ],
    ),
    "where pieces come, the input of the start is a placeholder": (
        [
            START,
            block_start(0, "tool_use", id="t", name="add", input={"y": 2}),
            pieces('{"x":1}'),
            block_stop(0),
            *CALLED,
        ],
        [
            S,
            ToolCallStart(0, "t", "add"),
            ToolCallDelta(0, "t", '{"x":1}'),
            *called(0, "t", "add", '{"x":1}'),
            USED,
        ],
    ),
    **{
        f"an input of the start that holds nothing is a placeholder: {given!r}": (
            [START, block_start(0, "tool_use", id="t", name="add", input=given), block_stop(0), *CALLED],
            [S, ToolCallStart(0, "t", "add"), *called(0, "t", "add", "{}"), USED],
        )
        for given in (None, {}, "", [])
    },
    "a call without arguments is whole as soon as another block goes on": (
        [
            START,
            TEXT,
            words("a"),
            block_start(1, "tool_use", id="t", name="add", input={}),
            block_stop(1),
            words("b"),
            block_stop(0),
            *CALLED,
        ],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            ToolCallStart(1, "t", "add"),
            *called(1, "t", "add", "{}"),
            TextDelta(0, "b"),
            text(0, "ab"),
            USED,
        ],
    ),
    "input that is no JSON is handed on as it is (eager streaming)": (
        [START, TOOL, pieces('{"x":'), block_stop(0), *CALLED],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            ToolCallDelta(0, "toolu_1", '{"x":'),
            ToolCallDone(0, "toolu_1", "add", '{"x":', valid=False),
            BlockEnd(0, ToolCallBlock(0, "toolu_1", "add", '{"x":', state="invalid")),
            USED,
        ],
    ),
    "compaction: the delta replaces": (
        [
            START,
            block_start(0, "compaction", content=None),
            block_delta(0, "compaction_delta", content="s", encrypted_content="e"),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "other"),
            raw(block_delta(0, "compaction_delta", content="s", encrypted_content="e"), 0),
            other(0, "compaction", {"type": "compaction", "content": "s", "encrypted_content": "e"}),
            END,
        ],
    ),
    "compaction that failed": (
        [
            START,
            block_start(0, "compaction", content="x"),
            block_delta(0, "compaction_delta", content=None),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "other"),
            raw(block_delta(0, "compaction_delta", content=None), 0),
            other(0, "compaction", {"type": "compaction", "content": None}),
            END,
        ],
    ),
    "compaction that holds a number beyond all floats": (
        [
            START,
            '{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"x":1e999}}',
            block_delta(0, "compaction_delta", content="s"),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "other"),
            raw(block_delta(0, "compaction_delta", content="s"), 0),
            other(0, "compaction", {"type": "compaction", "content": "s", "x": None}),
            END,
        ],
    ),
    "fallback: what follows comes from another model": (
        [
            START,
            block_start(
                0, "fallback", **{"from": {"model": "m"}, "to": {"model": "m2"}, "trigger": {"type": "refusal"}}
            ),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            Start("anthropic", "msg_1", "m2"),
            BlockStart(0, "other"),
            other(
                0,
                "fallback",
                {"type": "fallback", "from": {"model": "m"}, "to": {"model": "m2"}, "trigger": {"type": "refusal"}},
            ),
            END,
        ],
    ),
    "citations come before their text, and belong to the whole block": (
        [
            START,
            block_start(0, "text", text="", citations=[]),
            cites(**WEB),
            cites(**CHAR),
            words("Cited."),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "text"),
            WEB_CITED,
            CHAR_CITED,
            TextDelta(0, "Cited."),
            text(0, "Cited.", WEB_CITED, CHAR_CITED),
            END,
        ],
    ),
    "citations in the start of the block": (
        [START, block_start(0, "text", text="a", citations=[WEB]), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), WEB_CITED, text(0, "a", WEB_CITED), END],
    ),
    "no citation": (
        [START, TEXT, block_delta(0, "citations_delta", citation=None), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw(block_delta(0, "citations_delta", citation=None), 0), text(0, ""), END],
    ),
    "a delta of no known type is raw": (
        [START, TEXT, block_delta(0, "new_delta", x=1), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw(block_delta(0, "new_delta", x=1), 0), text(0, ""), END],
    ),
    "a delta that is none names the block of its index": (
        [START, TEXT, {"type": "content_block_delta", "index": 0}, block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw({"type": "content_block_delta", "index": 0}, 0), text(0, ""), END],
    ),
    "a surrogate pair over two deltas": (
        [START, TEXT, words("a\ud83d"), words("\ude00"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "\U0001f600"), text(0, "a\U0001f600"), END],
    ),
}

INDEXES = {
    "an index that is used again is a fresh block": (
        [START, TEXT, words("a"), block_stop(0), TEXT, words("b"), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            BlockStart(1, "text"),
            TextDelta(1, "b"),
            text(1, "b"),
            END,
        ],
    ),
    "one that is still open is closed first (xAI)": (
        [START, THINKING, thinking("H"), TEXT, words("a"), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "H"),
            thought(0, "H"),
            BlockStart(1, "text"),
            TextDelta(1, "a"),
            text(1, "a"),
            END,
        ],
    ),
    "a call without input that another block takes the place of is whole": (
        [START, TOOL, TEXT, words("a" * 64), block_stop(0), *CALLED],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            *called(0, "toolu_1", "add", "{}"),
            BlockStart(1, "text"),
            TextDelta(1, "a" * 64),
            text(1, "a" * 64),
            USED,
        ],
    ),
    "and so is one that a delta of another kind takes the place of": (
        [START, TOOL, words("a" * 64), words("b" * 64), block_stop(0), *CALLED],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            *called(0, "toolu_1", "add", "{}"),
            BlockStart(1, "text"),
            TextDelta(1, "a" * 64),
            TextDelta(1, "b" * 64),
            text(1, "a" * 64 + "b" * 64),
            USED,
        ],
    ),
    "indexes that are skipped": (
        [START, TEXT, block_stop(0), block_start(2, "text", text=""), words("b", 2), block_stop(2), *OVER],
        [S, BlockStart(0, "text"), text(0, ""), BlockStart(1, "text"), TextDelta(1, "b"), text(1, "b"), END],
    ),
    "deltas and stops without an index are of the block opened last (xAI)": (
        [START, TEXT, without_index(words("a")), without_index(words("b")), without_index(block_stop(0)), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), text(0, "ab"), END],
    ),
    "an index of no open block means the one opened last": (
        [START, TEXT, words("a", 7), block_stop(7), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "blocks that interleave after all": (
        [
            START,
            TEXT,
            block_start(1, "text", text=""),
            words("a", 0),
            words("b", 1),
            words("c", 0),
            block_stop(0),
            block_stop(1),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "text"),
            BlockStart(1, "text"),
            TextDelta(0, "a"),
            TextDelta(1, "b"),
            TextDelta(0, "c"),
            text(0, "ac"),
            text(1, "b"),
            END,
        ],
    ),
    "pieces of two calls that interleave belong to the call of their index": (
        [
            START,
            block_start(0, "tool_use", id="t", name="add", input={}),
            block_start(1, "tool_use", id="u", name="sub", input={}),
            block_delta(0, "input_json_delta", partial_json='{"x"'),
            block_delta(1, "input_json_delta", partial_json='{"y"'),
            block_delta(0, "input_json_delta", partial_json=":1}"),
            block_delta(1, "input_json_delta", partial_json=":2}"),
            block_stop(1),
            block_stop(0),
            *CALLED,
        ],
        [
            S,
            ToolCallStart(0, "t", "add"),
            ToolCallStart(1, "u", "sub"),
            ToolCallDelta(0, "t", '{"x"'),
            ToolCallDelta(1, "u", '{"y"'),
            ToolCallDelta(0, "t", ":1}"),
            ToolCallDelta(1, "u", ":2}"),
            *called(1, "u", "sub", '{"y":2}'),
            *called(0, "t", "add", '{"x":1}'),
            USED,
        ],
    ),
    "a delta that does not fit the open block opens one of its own": (
        [START, THINKING, thinking("H"), words("a"), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "H"),
            thought(0, "H"),
            BlockStart(1, "text"),
            TextDelta(1, "a"),
            text(1, "a"),
            END,
        ],
    ),
    "text without a block opens one": (
        [START, words("a"), words("b"), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), text(0, "ab", complete=False), END],
    ),
    "input without a call is nobody's": (
        [START, TEXT, pieces("{}"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw(pieces("{}")), ORPHAN, text(0, ""), END],
    ),
    "no citation without a block opens none": (
        [START, block_delta(0, "citations_delta", citation=None), *OVER],
        [S, raw(block_delta(0, "citations_delta", citation=None)), END],
    ),
    "a signature without thinking is raw": (
        [START, TEXT, signed("s"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), raw(signed("s"), 0), text(0, ""), END],
    ),
    "a stop without a block is raw": ([START, block_stop(3), *OVER], [S, raw(block_stop(3)), END]),
    "a start without a block is raw": (
        [START, {"type": "content_block_start", "index": 0}, *OVER],
        [S, raw({"type": "content_block_start", "index": 0}), END],
    ),
}

# Blocks that come whole: what they are, and which members stay beside.
RESULT: list[Payload] = [{"type": "web_search_result", "url": "https://a"}]
FAILED: Payload = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
RAN: Payload = {"type": "code_execution_result", "stdout": "2", "return_code": 0}
RESULTS: dict[str, tuple[Payload, ToolResultBlock]] = {
    "web search": (
        block_start(0, "web_search_tool_result", tool_use_id="s", content=RESULT),
        ToolResultBlock(0, "s", "web_search_tool_result", json_of(RESULT)),
    ),
    "web search that failed": (
        block_start(0, "web_search_tool_result", tool_use_id="s", content=FAILED),
        ToolResultBlock(0, "s", "web_search_tool_result", json_of(FAILED), True),
    ),
    "code execution": (
        block_start(0, "code_execution_tool_result", tool_use_id="s", content=RAN),
        ToolResultBlock(0, "s", "code_execution_tool_result", json_of(RAN)),
    ),
    "MCP": (
        block_start(0, "mcp_tool_result", tool_use_id="s", is_error=False, content=[{"type": "text", "text": "a"}]),
        ToolResultBlock(0, "s", "mcp_tool_result", json_of([{"type": "text", "text": "a"}])),
    ),
    "MCP that failed": (
        block_start(0, "mcp_tool_result", tool_use_id="s", is_error=True, content=[]),
        ToolResultBlock(0, "s", "mcp_tool_result", json_of([]), True),
    ),
    "of a call in an earlier answer, with its caller": (
        block_start(0, "bash_code_execution_tool_result", tool_use_id="old", content=RAN, caller={"type": "direct"}),
        ToolResultBlock(
            0, "old", "bash_code_execution_tool_result", json_of(RAN), meta=json_of({"caller": {"type": "direct"}})
        ),
    ),
    **{
        kind: (
            block_start(0, kind, tool_use_id="s", content=RAN),
            ToolResultBlock(0, "s", kind, json_of(RAN)),
        )
        for kind in (
            "web_fetch_tool_result",
            "text_editor_code_execution_tool_result",
            "tool_search_tool_result",
            "advisor_tool_result",
            "something_new_tool_result",
        )
    },
}


@pytest.mark.parametrize(("start", "block"), RESULTS.values(), ids=RESULTS.keys())
def test_results_come_whole(start: Payload, block: ToolResultBlock) -> None:
    events = read("anthropic", [START, start, block_stop(0), *OVER])
    assert events == [S, BlockStart(0, "tool_result", 0, block.meta), BlockEnd(0, block), END]


@pytest.mark.parametrize(
    "wire",
    [
        {"type": "container_upload", "file_id": "f"},
        {"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []},
        {"type": "something_new", "a": [1]},
    ],
    ids=lambda wire: wire["type"],
)
def test_blocks_of_no_other_kind(wire: Payload) -> None:
    stream = [START, {"type": "content_block_start", "index": 0, "content_block": wire}, block_stop(0), *OVER]
    assert read("anthropic", stream) == [S, BlockStart(0, "other"), other(0, wire["type"], wire), END]


TOOLS: dict[str, tuple[str, str, Executor, str, dict[str, Any]]] = {
    # type of the block; name; who runs it; kind; what stays beside
    "of the client": ("tool_use", "add", "client", "function", {}),
    "of a toolset": ("tool_use", "add", "client", "function", {"toolset_name": "math"}),
    "of MCP": ("mcp_tool_use", "find", "provider", "mcp", {"server_name": "s"}),
    "web search": ("server_tool_use", "web_search", "provider", "web_search", {}),
    "web fetch": ("server_tool_use", "web_fetch", "provider", "web_fetch", {}),
    "advisor": ("server_tool_use", "advisor", "provider", "advisor", {}),
    "code execution": ("server_tool_use", "code_execution", "provider", "code_execution", {}),
    "bash": ("server_tool_use", "bash_code_execution", "provider", "code_execution", {}),
    "editor": ("server_tool_use", "text_editor_code_execution", "provider", "code_execution", {}),
    "tool search": ("server_tool_use", "tool_search_tool_regex", "provider", "tool_search", {}),
    "the other tool search": ("server_tool_use", "tool_search_tool_bm25", "provider", "tool_search", {}),
    "one that is new": ("server_tool_use", "something_new", "provider", "something_new", {}),
}


@pytest.mark.parametrize("row", TOOLS.values(), ids=TOOLS.keys())
def test_who_runs_a_call(row: tuple[str, str, Executor, str, dict[str, Any]]) -> None:
    block, name, executor, kind, beside = row
    meta = json_of(beside) if beside else None
    stream = [
        START,
        block_start(0, block, id="t", name=name, input={}, **beside),
        pieces('{"q":1}'),
        block_stop(0),
        *OVER,
    ]
    end = (
        called(0, "t", name, '{"q":1}', meta=meta)
        if executor == "client"
        else served(0, "t", name, '{"q":1}', kind, meta)
    )
    assert read("anthropic", stream) == [
        S,
        ToolCallStart(0, "t", name, kind, executor, meta=meta),
        ToolCallDelta(0, "t", '{"q":1}'),
        *end,
        done("tool_use" if executor == "client" else "end", "end_turn"),
    ]


def test_a_pause_with_a_call_of_the_server_that_nobody_answered() -> None:
    stream = [
        START,
        block_start(0, "server_tool_use", id="s", name="web_search", input={}),
        pieces("{}"),
        block_stop(0),
    ]
    assert read("anthropic", [*stream, message_delta("pause_turn"), MESSAGE_STOP]) == [
        S,
        ToolCallStart(0, "s", "web_search", "web_search", "provider"),
        ToolCallDelta(0, "s", "{}"),
        *served(0, "s", "web_search", "{}", "web_search"),
        done("pause", "pause_turn"),
    ]


# -- whole blocks in message_start ------------------------------------------------------------------------------------

ROLL: Payload = {"type": "tool_use", "id": "toolu_x", "name": "roll", "input": {"p": 1}}
UPLOADED: Payload = {"type": "container_upload", "file_id": "f"}
ZERO: Payload = {"input_tokens": 0, "output_tokens": 0}
PREFILLED = {
    "a call, and the stop reason": (
        [message_start(ZERO, stop_reason="tool_use", content=[ROLL]), MESSAGE_STOP],
        [
            S,
            usage(ZERO, input_tokens=0, output_tokens=0, total_tokens=0),
            ToolCallStart(0, "toolu_x", "roll"),
            ToolCallDelta(0, "toolu_x", '{"p":1}'),
            *called(0, "toolu_x", "roll", '{"p":1}'),
            USED,
        ],
    ),
    "several, and one without input": (
        [
            message_start(
                stop_reason="tool_use", content=[{"type": "text", "text": "a"}, ROLL, {**ROLL, "id": "y", "input": {}}]
            ),
            MESSAGE_STOP,
        ],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            ToolCallStart(1, "toolu_x", "roll"),
            ToolCallDelta(1, "toolu_x", '{"p":1}'),
            *called(1, "toolu_x", "roll", '{"p":1}'),
            ToolCallStart(2, "y", "roll"),
            *called(2, "y", "roll", "{}"),
            USED,
        ],
    ),
    "a newer stop reason replaces it": (
        [message_start(stop_reason="tool_use", content=[ROLL]), message_delta("max_tokens"), MESSAGE_STOP],
        [
            S,
            ToolCallStart(0, "toolu_x", "roll"),
            ToolCallDelta(0, "toolu_x", '{"p":1}'),
            *called(0, "toolu_x", "roll", '{"p":1}'),
            done("length", "max_tokens"),
        ],
    ),
    "what is no block is passed over": (
        [message_start(content=[5, UPLOADED]), *OVER],
        [S, BlockStart(0, "other"), other(0, "container_upload", UPLOADED), END],
    ),
    "blocks of no other kind, among what is none": (
        [message_start(content=[UPLOADED, None, {**UPLOADED, "file_id": "g"}, [], ROLL, {}]), *CALLED],
        [
            S,
            BlockStart(0, "other"),
            other(0, "container_upload", UPLOADED),
            BlockStart(1, "other"),
            other(1, "container_upload", {**UPLOADED, "file_id": "g"}),
            ToolCallStart(2, "toolu_x", "roll"),
            ToolCallDelta(2, "toolu_x", '{"p":1}'),
            *called(2, "toolu_x", "roll", '{"p":1}'),
            BlockStart(3, "other"),
            other(3, "unknown", {}),
            USED,
        ],
    ),
    "no list": ([message_start(content="text"), *OVER], [S, END]),
}

# -- ends -------------------------------------------------------------------------------------------------------------

CONTEXT: Payload = {**message_delta("end_turn"), "context_management": {"applied_edits": []}}
CONTAINED = message_delta("end_turn", container={"id": "c"})
DETAILED = message_delta("refusal", stop_details={"type": "refusal", "category": "cyber"})
OVERLOADED: Payload = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
    "request_id": "req_x",
}
SAID = ErrorEvent(
    "provider",
    "Overloaded",
    "overloaded_error",
    retryable=True,
    request_id="req_x",
    raw=json_of({"type": "overloaded_error", "message": "Overloaded"}),
)

ENDS = {
    "without message_stop it is truncated": ([START], [S, TRUNCATED]),
    "even if the stop reason is known": ([START, message_delta("end_turn")], [S, TRUNCATED]),
    "nothing at all": ([], [UNNAMED, TRUNCATED]),
    "a text that broke off": (
        [START, TEXT, words("a")],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), TRUNCATED],
    ),
    "a call that broke off": (
        [START, TOOL, pieces('{"x')],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            ToolCallDelta(0, "toolu_1", '{"x'),
            BlockEnd(0, ToolCallBlock(0, "toolu_1", "add", '{"x', state="cut", complete=False)),
            TRUNCATED,
        ],
    ),
    "a call that was closed before it broke off stays ready": (
        [START, TOOL, pieces("{}"), block_stop(0)],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            ToolCallDelta(0, "toolu_1", "{}"),
            *called(0, "toolu_1", "add", "{}"),
            TRUNCATED,
        ],
    ),
    "so does one without arguments": (
        [START, TOOL, block_stop(0)],
        [S, ToolCallStart(0, "toolu_1", "add"), *called(0, "toolu_1", "add", "{}"), TRUNCATED],
    ),
    "max_tokens inside a call: no stop of the block comes": (
        [START, TOOL, pieces('{"x'), message_delta("max_tokens"), MESSAGE_STOP],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            ToolCallDelta(0, "toolu_1", '{"x'),
            BlockEnd(0, ToolCallBlock(0, "toolu_1", "add", '{"x', state="cut", complete=False)),
            done("length", "max_tokens"),
        ],
    ),
    "max_tokens before the first piece of a call": (
        [START, TOOL, pieces(""), block_stop(0), message_delta("max_tokens"), MESSAGE_STOP],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            raw(pieces(""), 0),
            ToolCallDone(0, "toolu_1", "add", "", valid=False),
            BlockEnd(0, ToolCallBlock(0, "toolu_1", "add", "", state="invalid", complete=False)),
            done("length", "max_tokens"),
        ],
    ),
    "an error ends it": (
        [START, TEXT, words("a"), OVERLOADED, words("b"), MESSAGE_STOP],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), SAID],
    ),
    "an error without an object of its own": (
        [START, {"type": "error", "message": "Overloaded", "request_id": "r"}],
        [
            S,
            ErrorEvent(
                "provider",
                "Overloaded",
                request_id="r",
                raw=json_of({"type": "error", "message": "Overloaded", "request_id": "r"}),
            ),
        ],
    ),
    "the last message_delta counts": (
        [START, message_delta("end_turn"), message_delta("max_tokens"), MESSAGE_STOP],
        [S, done("length", "max_tokens")],
    ),
    "a null in a later one does not take it back": (
        [START, message_delta("max_tokens"), message_delta(None), MESSAGE_STOP],
        [S, done("length", "max_tokens")],
    ),
    "no stop reason at all": ([START, message_delta(None), MESSAGE_STOP], [S, done("other")]),
    "a stop sequence is named": (
        [START, message_delta("stop_sequence", stop_sequence="END"), MESSAGE_STOP],
        [S, done("end", "stop_sequence", "END")],
    ),
    "payloads after message_stop change nothing": ([START, *OVER, TEXT, words("a"), OVERLOADED], [S, END]),
    "no JSON": ([START, '{"type":', MESSAGE_STOP], [S, BAD_JSON]),
    "a second message_start begins anew": (
        [
            START,
            TOOL,
            pieces('{"x'),
            message_start(id="msg_2", model="n"),
            TOOL,
            pieces("{}"),
            block_stop(0),
            *CALLED,
        ],
        [
            S,
            ToolCallStart(0, "toolu_1", "add"),
            ToolCallDelta(0, "toolu_1", '{"x'),
            BlockEnd(0, ToolCallBlock(0, "toolu_1", "add", '{"x', state="cut", complete=False)),
            Restart("message_start"),
            Start("anthropic", "msg_2", "n"),
            ToolCallStart(1, "toolu_1", "add"),
            ToolCallDelta(1, "toolu_1", "{}"),
            *called(1, "toolu_1", "add", "{}"),
            USED,
        ],
    ),
    "a restart forgets what the first message said of its end": (
        [
            message_start(stop_reason="max_tokens", content=[ROLL]),
            message_start(id="msg_2"),
            message_delta("end_turn"),
            MESSAGE_STOP,
        ],
        [
            S,
            ToolCallStart(0, "toolu_x", "roll"),
            ToolCallDelta(0, "toolu_x", '{"p":1}'),
            *called(0, "toolu_x", "roll", '{"p":1}'),
            Restart("message_start"),
            Start("anthropic", "msg_2", "m"),
            END,
        ],
    ),
    "pings mean nothing, wherever they come": ([START, PING, PING, *OVER], [S, raw(PING), raw(PING), END]),
    "other events are raw (Vertex)": (
        [START, {"type": "vertex_event", "usage": {"tiers": {}}}, *OVER],
        [S, raw({"type": "vertex_event", "usage": {"tiers": {}}}), END],
    ),
    "context management is raw": ([START, CONTEXT, MESSAGE_STOP], [S, raw(CONTEXT), END]),
    **{
        f"what the start says besides is raw: {name}": (
            [message_start(**{name: value}), *OVER],
            [S, raw(message_start(**{name: value})), END],
        )
        for name, value in {
            "container": {"id": "c"},
            "context_management": {"applied_edits": []},
            "input_transformations": [{"type": "t"}],
            "stop_details": {"type": "refusal"},
            "diagnostics": {"a": 1},
        }.items()
    },
    "so is a container": ([START, CONTAINED, MESSAGE_STOP], [S, raw(CONTAINED), END]),
    "and the details of a refusal": ([START, DETAILED, MESSAGE_STOP], [S, raw(DETAILED), done("refusal", "refusal")]),
    "what the transport counted is no usage (Bedrock)": (
        [
            START,
            message_delta("end_turn"),
            {**MESSAGE_STOP, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 97}},
        ],
        [S, END],
    ),
    'the word "null" is no id': (
        [block_start(0, "tool_use", id="null", name="add", input={"x": 1}), block_stop(0), *CALLED],
        [
            UNNAMED,
            ToolCallStart(0, "made_0", "add", meta=json_of({"synthetic_id": True})),
            ToolCallDelta(0, "made_0", '{"x":1}'),
            *called(0, "made_0", "add", '{"x":1}', meta=json_of({"synthetic_id": True})),
            USED,
        ],
    ),
}

REASONS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
    "something_new": "other",
}


@pytest.mark.parametrize(("payloads", "events"), rows({**BLOCKS, **INDEXES, **PREFILLED, **ENDS}))
def test_events(payloads: list[Any], events: list[Event]) -> None:
    assert read("anthropic", payloads, call_id=lambda index: f"made_{index}") == events


@pytest.mark.parametrize(("word", "reason"), REASONS.items())
def test_what_a_stop_reason_means(word: str, reason: StopReason) -> None:
    assert read("anthropic", [START, message_delta(word), MESSAGE_STOP])[-1] == done(reason, word)


def test_calls_of_a_refused_turn_must_not_run() -> None:
    answer = fold(read("anthropic", [START, TOOL, pieces("{}"), block_stop(0), message_delta("refusal"), MESSAGE_STOP]))
    assert (answer.tool_calls, [call.state for call in answer.withheld_calls]) == ((), ["void"])


def test_a_restart_leaves_only_the_new_message() -> None:
    answer = fold(
        read(
            "anthropic",
            [START, TEXT, words("old"), message_start(id="msg_2"), TEXT, words("new"), block_stop(0), *OVER],
        )
    )
    assert (answer.text, answer.id, [block.index for block in answer.blocks]) == ("new", "msg_2", [1])


def frames(*named: tuple[str | None, Payload]) -> bytes:
    lines = [f"event: {name}\n" if name else "" for name, _ in named]
    return "".join(f"{line}data: {json.dumps(p)}\n\n" for line, (_, p) in zip(lines, named, strict=True)).encode()


def untyped(payload: Payload) -> Payload:
    return {name: value for name, value in payload.items() if name != "type"}


WHOLE: Payload = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 2},
}


@pytest.mark.parametrize("provider", ["anthropic", "bedrock-anthropic", "xai", "auto"])
@pytest.mark.parametrize("size", [1, 9, 10_000])
def test_a_message_that_did_not_stream(provider: str, size: int) -> None:
    body = json.dumps(WHOLE, indent=1).encode()
    answer = fold_bytes((body[at : at + size] for at in range(0, len(body), size)), provider)
    assert (answer.id, answer.text, answer.stop.reason, answer.outcome) == ("msg_1", "Hello", "tool_use", "complete")
    assert [(call.id, json.loads(call.arguments), call.state) for call in answer.tool_calls] == [
        ("t", {"a": 1}, "ready")
    ]
    assert answer.echo() == [{"role": "assistant", "content": WHOLE["content"]}]
    assert answer.usage is not None
    assert answer.usage.total_tokens == 3


def test_a_frame_that_is_called_message_is_no_message() -> None:
    body = b'event: message\ndata: {"foo":1}\n\nevent: message\ndata: {"type":"message","content":4}\n\n'
    events = list(iter_unified([body], "anthropic"))
    assert [type(event) for event in events] == [Start, Raw, Raw, ErrorEvent]


def test_the_type_is_the_json_s_whatever_the_frame_says() -> None:
    stream = [START, TEXT, words("a"), block_stop(0), *OVER]
    decoder = StreamDecoder("anthropic")
    decoder.feed(frames(*(("ping", payload) for payload in stream)))
    assert (decoder.snapshot().text, decoder.snapshot().outcome) == ("a", "complete")


def test_no_frame_needs_a_name() -> None:
    decoder = StreamDecoder("anthropic")
    decoder.feed(frames(*((None, payload) for payload in [START, TEXT, words("a"), block_stop(0), *OVER])))
    assert (decoder.snapshot().text, decoder.snapshot().outcome) == ("a", "complete")


def test_without_a_type_the_frame_s_name_counts() -> None:
    stream = [START, TEXT, words("a"), block_stop(0), message_delta("max_tokens", {"output_tokens": 9}), MESSAGE_STOP]
    decoder = StreamDecoder("anthropic")
    decoder.feed(frames(*((payload["type"], untyped(payload)) for payload in stream)))
    answer = decoder.snapshot()
    assert (answer.text, answer.outcome, answer.stop.reason) == ("a", "complete", "length")
    assert answer.usage is not None


def test_spaces_that_pad_a_payload_change_nothing() -> None:
    made = AnthropicNormalizer()
    data = [
        json.dumps(payload)[:-1].encode() + b"       }" for payload in [START, TEXT, words("a"), block_stop(0), *OVER]
    ]
    assert fold([*made.feed(data), *made.close()]).text == "a"


def test_the_last_signature_is_in_the_cursor() -> None:
    made = AnthropicNormalizer()
    made.feed(
        [json.dumps(payload).encode() for payload in [START, THINKING, signed("sig"), signed("nature"), block_stop(0)]]
    )
    assert (made.cursor.response_id, made.cursor.last_signature) == ("msg_1", "signature")


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("all", ["ping", "content_block_delta", "new", "content_block_delta"]),
        ("unknown", ["new", "content_block_delta"]),
        ("none", []),
    ],
)
def test_which_raw_events_are_handed_out(mode: Any, names: list[str]) -> None:
    stream = [START, PING, THINKING, signed("s"), {"type": "new"}, block_delta(0, "new_delta"), block_stop(0), *OVER]
    events = read("anthropic", stream, raw=mode)
    assert [event.name for event in events if event.type == "raw"] == names
    assert fold(events).blocks == (ReasoningBlock(0, signature="s"),)


AFTER_THE_END: dict[str, list[Payload]] = {
    "text": [TEXT, words("a")],
    "thinking": [THINKING, thinking("a")],
    "a call": [TOOL, pieces("{")],
}


@pytest.mark.parametrize("opening", AFTER_THE_END.values(), ids=AFTER_THE_END.keys())
@pytest.mark.parametrize("how", ["an error", "close", "the limit of blocks"])
def test_deltas_after_the_end_are_no_events(opening: list[Payload], how: str) -> None:
    made = AnthropicNormalizer(max_blocks=0 if how == "the limit of blocks" else None)
    data = [json.dumps(payload).encode() for payload in [START, *opening]]
    events = made.feed([*data, json.dumps(OVERLOADED).encode()] if how == "an error" else data)
    if how == "close":
        events += made.close()
    assert events[-1].type == "error"
    assert made.feed([data[-1]]) == []
    assert made.feed([data[-2], data[-1]]) == []


def test_deltas_after_an_error_in_one_read_are_no_events() -> None:
    events = read("anthropic", [START, TEXT, words("a"), OVERLOADED, words("b"), words("c")])
    assert events[-1] == SAID
