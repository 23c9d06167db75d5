"""Chat Completions and the servers that copy it: what each chunk becomes, sentence by sentence of the protocol page."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    MediaBlock,
    MediaDelta,
    OpenAIChatNormalizer,
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
    TranscriptBlock,
    TranscriptDelta,
)
from streamfold.events import StopReason
from tests.reading import BAD_JSON, TRUNCATED, done, fold, json_of, raw, read, rows, usage
from tests.wires import CHAT_USAGE, Payload, call_chunk, chunk, detail, entry

S = Start("openai-chat")
STOP = chunk({}, "stop")
END = done("end", "stop")
DONE = "[DONE]"
USAGE = usage(CHAT_USAGE, input_tokens=5, output_tokens=7, total_tokens=12)


def opened(index: int, kind: Any, meta: Any = None, *, choice: int = 0) -> BlockStart:
    return BlockStart(index, kind, choice, None if meta is None else json_of(meta))


def text(index: int, whole: str, *citations: Citation, choice: int = 0, complete: bool = True) -> BlockEnd:
    return BlockEnd(index, TextBlock(index, whole, citations, choice, complete))


def thought(index: int, whole: str, meta: Any = None, **members: Any) -> BlockEnd:
    parts = (whole,) if whole else ()
    return BlockEnd(index, ReasoningBlock(index, whole, parts, meta=None if meta is None else json_of(meta), **members))


def media(index: int, data: bytes, mime_type: str | None = None, url: str | None = None, meta: Any = None) -> BlockEnd:
    return BlockEnd(index, MediaBlock(index, mime_type, data, url, meta=None if meta is None else json_of(meta)))


def called(index: int, id_: str, name: str, arguments: str, *, choice: int = 0, meta: Any = None) -> list[Event]:
    """The end of a call that is ready."""
    kept = None if meta is None else json_of(meta)
    block = ToolCallBlock(index, id_, name, arguments, state="ready", choice=choice, meta=kept)
    return [ToolCallDone(index, id_, name, arguments), BlockEnd(index, block)]


def image(url: str) -> Payload:
    return {"type": "image_url", "image_url": {"url": url}}


def cited(**source: Any) -> Payload:
    return {"type": "url_citation", "url_citation": source}


FILTERED: Payload = {"choices": [{"index": 0, "finish_reason": None, "content_filter_results": {"hate": {}}}]}
AZURE_FIRST: Payload = {"id": "", "model": "", "object": "", "created": 0, "choices": [], "prompt_filter_results": []}
PROGRESS: Payload = {"object": "chat.completion.chunk", "choices": [], "prompt_progress": {"total": 9}}
MODERATION: Payload = {"object": "chat.completion.chunk", "choices": [], "moderation": {"input": {}}}
ENCRYPTED = chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "enc", "index": 0}]})
SIGNED = chunk({"reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "sig", "index": 0}]})
SIGNED_SUMMARY = chunk(
    {"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "S", "signature": "U2ln"}]}]}
)
OTHER = {"member": "reasoning"}
BARE_SIGNATURE = {"type": "reasoning.text", "text": "", "signature": "sig", "index": 0}
ENDS_AND_REFERS: Payload = {
    "object": "chat.completion.chunk",
    "choices": [
        {"index": 0, "delta": {}, "finish_reason": "stop"},
        {"index": 1, "delta": {"content": [{"type": "reference"}]}},
    ],
}
REFERENCE = chunk({"content": [{"type": "reference", "reference_ids": [1]}]})
AUDIO_ID = chunk({"audio": {"id": "au"}})
AUDIO_END = chunk({"audio": {"expires_at": 9}})
TOO_EARLY = chunk({"annotations": [cited(url="https://a")]})
A, C = Citation(0, "https://a", raw=json_of({"url": "https://a", "title": None})), "https://c"

TEXT = {
    "the first chunk names the answer, before anything else": (
        [chunk({"role": "assistant", "content": "", "refusal": None}, id="c1", model="m")],
        [Start("openai-chat", "c1", "m"), TRUNCATED],
    ),
    "text and its end": (
        [chunk({"content": "Hel"}), chunk({"content": "lo"}), STOP, DONE],
        [S, opened(0, "text"), TextDelta(0, "Hel"), TextDelta(0, "lo"), text(0, "Hello"), END],
    ),
    "a plain stop without anything": ([STOP, DONE], [S, END]),
    "role and empty content on every chunk say nothing more": (
        [chunk({"role": "assistant", "content": "a"}), chunk({"role": "assistant", "content": ""}), STOP, DONE],
        [S, opened(0, "text"), TextDelta(0, "a"), raw(chunk({"role": "assistant", "content": ""})), text(0, "a"), END],
    ),
    "obfuscation and padding are no content": (
        [chunk({"content": "a"}, obfuscation="xyz", p="abc"), {**STOP, "obfuscation": "q"}, DONE],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "logprobs go with their text": (
        [{"choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": {"content": [{"token": "a"}]}}]}, STOP],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "delta and finish reason in one chunk: the delta comes first": (
        [chunk({"content": "a"}, "length", usage=CHAT_USAGE), DONE],
        [S, USAGE, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), done("length", "length")],
    ),
    "missing or null members": (
        [
            {"choices": None},
            {"choices": [{}]},
            {"choices": [{"delta": None, "finish_reason": None}], "usage": None},
            STOP,
        ],
        [
            S,
            raw({"choices": None}, name="choices"),
            raw({"choices": [{}]}),
            raw({"choices": [{"delta": None, "finish_reason": None}], "usage": None}),
            END,
        ],
    ),
    "a list of text parts": (
        [chunk({"content": [{"type": "text", "text": "a"}, "b"]}), chunk({"content": "c"}), STOP],
        [S, opened(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), TextDelta(0, "c"), text(0, "abc"), END],
    ),
    "a list part of no known type is raw": ([REFERENCE, STOP], [S, raw(REFERENCE), END]),
    "known and unknown parts in one list": (
        [chunk({"content": [{"type": "text", "text": "a"}, {"type": "reference"}, {"type": "file"}]}), STOP],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            raw(chunk({"content": [{"type": "text", "text": "a"}, {"type": "reference"}, {"type": "file"}]})),
            text(0, "a"),
            END,
        ],
    ),
    "message and text beside a delta are not added to it (Perplexity, Together)": (
        [
            {"choices": [{"index": 0, "delta": {"content": "a"}, "message": {"content": "a"}, "text": "a"}]},
            {"choices": [{"index": 0, "delta": {"content": "b"}, "message": {"content": "ab"}, "text": "b"}]},
            STOP,
        ],
        [S, opened(0, "text"), TextDelta(0, "a"), TextDelta(0, "b"), text(0, "ab"), END],
    ),
    "the legacy completions endpoint": (
        [
            {"object": "text_completion", "id": "t", "choices": [{"index": 0, "text": "Once", "logprobs": None}]},
            {"object": "text_completion", "id": "t", "choices": [{"index": 0, "text": " upon", "finish_reason": None}]},
            {"object": "text_completion", "id": "t", "choices": [{"index": 0, "text": "", "finish_reason": "length"}]},
            DONE,
        ],
        [
            Start("openai-chat", "t"),
            opened(0, "text"),
            TextDelta(0, "Once"),
            TextDelta(0, " upon"),
            text(0, "Once upon"),
            done("length", "length"),
        ],
    ),
    "a server that did not stream": (
        [
            {
                "object": "chat.completion",
                "id": "c",
                "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
                "usage": CHAT_USAGE,
            }
        ],
        [Start("openai-chat", "c", "m"), USAGE, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "a surrogate pair over two deltas": (
        [chunk({"content": "a\ud83d"}), chunk({"content": "\ude00"}), STOP],
        [S, opened(0, "text"), TextDelta(0, "a"), TextDelta(0, "\U0001f600"), text(0, "a\U0001f600"), END],
    ),
    "half a pair that stays alone": (
        [chunk({"content": "a\ud83d"}), chunk({"content": "b"}), chunk({"content": "\ude00"}), STOP],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            TextDelta(0, "\ufffdb"),
            TextDelta(0, "\ufffd"),
            text(0, "a\ufffdb\ufffd"),
            END,
        ],
    ),
    "half a pair at the end": (
        [chunk({"content": "a\ud83d"}), STOP],
        [S, opened(0, "text"), TextDelta(0, "a"), TextDelta(0, "\ufffd"), text(0, "a\ufffd"), END],
    ),
    "text after its choice's finish reason is a block of its own": (
        [chunk({"content": "a"}), STOP, chunk({"content": "b"}), DONE],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            opened(1, "text"),
            TextDelta(1, "b"),
            text(1, "b"),
            END,
        ],
    ),
    "the first id and model that are named count (Groq's compound models)": (
        [chunk({}, id="q1"), chunk({"content": "a"}, id="q2", model="m"), chunk({}, "stop", id="stub", model="n")],
        [
            Start("openai-chat", "q1"),
            Start("openai-chat", "q1", "m"),
            opened(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            END,
        ],
    ),
    "an id that comes late": (
        [chunk({"content": "a"}), chunk({"content": "b"}), chunk({"content": "c"}, id="c1", model="m"), STOP],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            TextDelta(0, "b"),
            Start("openai-chat", "c1", "m"),
            TextDelta(0, "c"),
            text(0, "abc"),
            END,
        ],
    ),
    "one refusal block, and a plain stop is a refusal": (
        [chunk({"refusal": "I can"}), chunk({"refusal": "not."}), STOP, DONE],
        [
            S,
            opened(0, "refusal"),
            TextDelta(0, "I can"),
            TextDelta(0, "not."),
            BlockEnd(0, RefusalBlock(0, "I cannot.")),
            done("refusal", "stop"),
        ],
    ),
    "choices interleave and keep apart": (
        [
            chunk({"content": "a"}, index=1),
            chunk({"content": "b"}, index=0),
            chunk({"content": "c"}, index=1),
            chunk({}, "stop", index=1),
            chunk({}, "length", index=0),
            DONE,
        ],
        [
            S,
            opened(0, "text", choice=1),
            TextDelta(0, "a"),
            opened(1, "text"),
            TextDelta(1, "b"),
            TextDelta(0, "c"),
            text(0, "ac", choice=1),
            text(1, "b"),
            Done("length", "length", None, (Stop(0, "length", "length"), Stop(1, "end", "stop"))),
        ],
    ),
    "a choice's number may be a float": (
        [
            chunk({"content": "a"}),
            {"choices": [{"index": 1.0, "delta": {"content": "b"}, "finish_reason": "stop"}]},
            STOP,
        ],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            opened(1, "text", choice=1),
            TextDelta(1, "b"),
            text(1, "b", choice=1),
            text(0, "a"),
            Done("end", "stop", None, (Stop(0, "end", "stop"), Stop(1, "end", "stop"))),
        ],
    ),
    "what one choice brings is raw, though another one ends in the same chunk": (
        [ENDS_AND_REFERS, chunk({}, "stop", index=1)],
        [S, raw(ENDS_AND_REFERS), Done("end", "stop", None, (Stop(0, "end", "stop"), Stop(1, "end", "stop")))],
    ),
    "a delta counts whatever the object is called": (
        [{"object": "chat.completion", "choices": [{"delta": {"content": piece}}]} for piece in "abc"] + [STOP],
        [S, opened(0, "text"), *(TextDelta(0, piece) for piece in "abc"), text(0, "abc"), END],
    ),
    "a choice without an index is the first": (
        [{"choices": [{"delta": {"content": "a"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
}

REASONING = {
    "reasoning, then text": (
        [
            chunk({"content": None, "reasoning_content": "H"}),
            chunk({"content": None, "reasoning_content": "m"}),
            chunk({"content": "a", "reasoning_content": None}),
            STOP,
        ],
        [
            S,
            opened(0, "reasoning"),
            ReasoningDelta(0, "H"),
            ReasoningDelta(0, "m"),
            opened(1, "text"),
            TextDelta(1, "a"),
            thought(0, "Hm"),
            text(1, "a"),
            END,
        ],
    ),
    "the other name (Groq, Ollama, Cerebras)": (
        [chunk({"reasoning": "H", "channel": "analysis"}), chunk({"reasoning": "m"}), STOP],
        [
            S,
            opened(0, "reasoning", OTHER),
            ReasoningDelta(0, "H"),
            ReasoningDelta(0, "m"),
            thought(0, "Hm", OTHER),
            END,
        ],
    ),
    "under both names: the first that is there": (
        [chunk({"reasoning_content": "H", "reasoning": "H"}), chunk({"reasoning_content": "", "reasoning": "m"}), STOP],
        [S, opened(0, "reasoning"), ReasoningDelta(0, "H"), ReasoningDelta(0, "m"), thought(0, "Hm"), END],
    ),
    "reasoning and its details are the same text twice": (
        [
            chunk({"reasoning": "H", "reasoning_details": [{"type": "reasoning.text", "text": "H", "index": 0}]}),
            chunk({"reasoning": "m", "reasoning_details": [{"type": "reasoning.text", "text": "m", "index": 0}]}),
            STOP,
        ],
        [
            S,
            opened(0, "reasoning", OTHER),
            ReasoningDelta(0, "H"),
            ReasoningDelta(0, "m"),
            thought(0, "Hm", {**OTHER, "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0}]}),
            END,
        ],
    ),
    "details alone: their text counts": (
        [
            chunk({"reasoning_details": [{"type": "reasoning.text", "text": "H", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "m", "index": 1}]}),
            STOP,
        ],
        [
            S,
            opened(0, "reasoning"),
            ReasoningDelta(0, "H"),
            ReasoningDelta(0, "m"),
            thought(
                0,
                "Hm",
                {
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "H", "index": 0},
                        {"type": "reasoning.summary", "summary": "m", "index": 1},
                    ]
                },
            ),
            END,
        ],
    ),
    "details without an index are entries of their own": (
        [chunk({"reasoning": piece, "reasoning_details": [{"text": piece}]}, id="c", model="m") for piece in "abc"]
        + [STOP],
        [
            Start("openai-chat", "c", "m"),
            opened(0, "reasoning", OTHER),
            *(ReasoningDelta(0, piece) for piece in "abc"),
            thought(0, "abc", {**OTHER, "reasoning_details": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}),
            END,
        ],
    ),
    "a later blank takes no signature back": (
        [SIGNED, chunk({"reasoning_details": [{**detail("H"), "signature": ""}]}), STOP],
        [
            S,
            opened(0, "reasoning"),
            raw(SIGNED, 0),
            ReasoningDelta(0, "H"),
            thought(
                0,
                "H",
                {
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "H", "signature": "sig", "index": 0, "format": "f"}
                    ]
                },
                signature="sig",
            ),
            END,
        ],
    ),
    "details in both dialects are the same text twice": (
        [chunk({"reasoning_details": [detail("H")], "thinking_blocks": [{"type": "thinking", "thinking": "H"}]}), STOP],
        [
            S,
            opened(0, "reasoning"),
            ReasoningDelta(0, "H"),
            thought(
                0,
                "H",
                {
                    "reasoning_details": [detail("H")],
                    "thinking_blocks": [{"type": "thinking", "thinking": "H"}],
                },
            ),
            END,
        ],
    ),
    "encrypted details are kept for the next request": (
        [ENCRYPTED, STOP],
        [
            S,
            opened(0, "reasoning"),
            thought(
                0,
                "",
                {"reasoning_details": [{"type": "reasoning.encrypted", "data": "enc", "index": 0}]},
                encrypted="enc",
            ),
            END,
        ],
    ),
    "a signature is raw, and the block's": (
        [chunk({"reasoning": "H"}), SIGNED, STOP],
        [
            S,
            opened(0, "reasoning", OTHER),
            ReasoningDelta(0, "H"),
            raw(SIGNED, 0),
            thought(
                0,
                "H",
                {
                    **OTHER,
                    "reasoning_details": [{"type": "reasoning.text", "text": "", "signature": "sig", "index": 0}],
                },
                signature="sig",
            ),
            END,
        ],
    ),
    "encrypted reasoning as text (Venice)": (
        [chunk({"reasoning_content": "H"}), chunk({"reasoning_encrypted": "v"}), STOP],
        [
            S,
            opened(0, "reasoning"),
            ReasoningDelta(0, "H"),
            raw(chunk({"reasoning_encrypted": "v"}), 0),
            thought(0, "H", encrypted="v"),
            END,
        ],
    ),
    "thinking in a content list, then plain content (Mistral)": (
        [
            chunk(
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "H"}, {"type": "text", "text": "m"}]}
                    ]
                }
            ),
            chunk({"content": "a"}, "stop"),
        ],
        [
            S,
            opened(0, "reasoning", {"member": "content", "form": "thinking"}),
            ReasoningDelta(0, "Hm"),
            opened(1, "text"),
            TextDelta(1, "a"),
            thought(0, "Hm", {"member": "content", "form": "thinking"}),
            text(1, "a"),
            END,
        ],
    ),
    "reasoning in a content list, signed (Databricks)": (
        [SIGNED_SUMMARY, STOP],
        [
            S,
            opened(0, "reasoning", {"member": "content", "form": "reasoning"}),
            ReasoningDelta(0, "S"),
            raw(SIGNED_SUMMARY, 0),
            thought(0, "S", {"member": "content", "form": "reasoning"}, signature="U2ln"),
            END,
        ],
    ),
}

CALLS = {
    "id and name first, then arguments": (
        [
            call_chunk(entry("", "add", index=0, id="call_a", type="function")),
            call_chunk(entry('{"x":', index=0)),
            call_chunk(entry("1}", index=0)),
            chunk({}, "tool_calls"),
            DONE,
        ],
        [
            S,
            ToolCallStart(0, "call_a", "add"),
            ToolCallDelta(0, "call_a", '{"x":'),
            ToolCallDelta(0, "call_a", "1}"),
            *called(0, "call_a", "add", '{"x":1}'),
            done("tool_use", "tool_calls"),
        ],
    ),
    "a whole call is start, one delta, done": (
        [call_chunk(entry("{}", "now", index=0, id="a"), finish="tool_calls"), DONE],
        [
            S,
            ToolCallStart(0, "a", "now"),
            ToolCallDelta(0, "a", "{}"),
            *called(0, "a", "now", "{}"),
            done("tool_use", "tool_calls"),
        ],
    ),
    "a whole call without arguments has no delta": (
        [call_chunk(entry("", "now", index=0, id="a")), chunk({}, "tool_calls"), DONE],
        [S, ToolCallStart(0, "a", "now"), *called(0, "a", "now", "{}"), done("tool_use", "tool_calls")],
    ),
    "text first, then a call": (
        [chunk({"content": "a"}), call_chunk(entry("{}", "f", index=0, id="i")), chunk({}, "tool_calls"), DONE],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            ToolCallStart(1, "i", "f"),
            ToolCallDelta(1, "i", "{}"),
            text(0, "a"),
            *called(1, "i", "f", "{}"),
            done("tool_use", "tool_calls"),
        ],
    ),
    "two calls in one chunk without an index (Mistral)": (
        [call_chunk(entry("{}", "f", id="a"), entry('{"x":1}', "g", id="b"), finish="tool_calls")],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", "{}"),
            ToolCallStart(1, "b", "g"),
            ToolCallDelta(1, "b", '{"x":1}'),
            *called(0, "a", "f", "{}"),
            *called(1, "b", "g", '{"x":1}'),
            done("tool_use", "tool_calls"),
        ],
    ),
    "fragments of two calls in one chunk": (
        [
            call_chunk(entry("{", "f", index=0, id="a"), entry("{", "g", index=1, id="b")),
            call_chunk(entry("}", index=0), entry("}", index=1)),
            chunk({}, "tool_calls"),
        ],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", "{"),
            ToolCallStart(1, "b", "g"),
            ToolCallDelta(1, "b", "{"),
            ToolCallDelta(0, "a", "}"),
            ToolCallDelta(1, "b", "}"),
            *called(0, "a", "f", "{}"),
            *called(1, "b", "g", "{}"),
            done("tool_use", "tool_calls"),
        ],
    ),
    "the first index can be 1 (Anthropic behind proxies)": (
        [call_chunk(entry("{}", "f", index=1, id="a")), chunk({}, "tool_calls")],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", "{}"),
            *called(0, "a", "f", "{}"),
            done("tool_use", "tool_calls"),
        ],
    ),
    "a stop with a call is a tool use (forced tools)": (
        [call_chunk(entry("{}", "f", index=0, id="a")), STOP, DONE],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", "{}"),
            *called(0, "a", "f", "{}"),
            done("tool_use", "stop"),
        ],
    ),
    "a custom tool takes plain text": (
        [
            call_chunk({"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}),
            call_chunk({"index": 0, "custom": {"input": " -l"}}, finish="tool_calls"),
        ],
        [
            S,
            ToolCallStart(0, "a", "sh", "custom"),
            ToolCallDelta(0, "a", "ls"),
            ToolCallDelta(0, "a", " -l"),
            ToolCallDone(0, "a", "sh", "ls -l"),
            BlockEnd(0, ToolCallBlock(0, "a", "sh", "ls -l", "custom", state="ready")),
            done("tool_use", "tool_calls"),
        ],
    ),
    "what a call brings besides stays with it (Gemini's signature)": (
        [
            call_chunk(entry("{}", "f", index=0, id="a", extra_content={"google": {"thought_signature": "s"}})),
            chunk({}, "tool_calls"),
        ],
        [
            S,
            ToolCallStart(0, "a", "f", meta=json_of({"extra_content": {"google": {"thought_signature": "s"}}})),
            ToolCallDelta(0, "a", "{}"),
            *called(0, "a", "f", "{}", meta={"extra_content": {"google": {"thought_signature": "s"}}}),
            done("tool_use", "tool_calls"),
        ],
    ),
    "tool_calls null (Snowflake)": (
        [chunk({"content": "a", "tool_calls": None}), STOP],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), END],
    ),
    "calls keep to their choice": (
        [
            call_chunk(entry("{", "f", index=0, id="a"), index=0),
            call_chunk(entry("{", "f", index=0, id="a"), index=1),
            call_chunk(entry("}", index=0), index=1),
            call_chunk(entry(" }", index=0), index=0),
            chunk({}, "tool_calls", index=0),
            chunk({}, "stop", index=1),
        ],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", "{"),
            ToolCallStart(1, "a", "f", choice=1),
            ToolCallDelta(1, "a", "{"),
            ToolCallDelta(1, "a", "}"),
            ToolCallDelta(0, "a", " }"),
            *called(0, "a", "f", "{ }"),
            *called(1, "a", "f", "{}", choice=1),
            Done("tool_use", "tool_calls", None, (Stop(0, "tool_use", "tool_calls"), Stop(1, "tool_use", "stop"))),
        ],
    ),
}

MEDIA = {
    "audio: id, pieces, expiry": (
        [
            chunk({"role": "assistant"}),
            AUDIO_ID,
            chunk({"audio": {"data": "QUJ"}}),
            chunk({"audio": {"transcript": "Hi"}}),
            chunk({"audio": {"data": "DRA==", "transcript": "!"}}),
            AUDIO_END,
            STOP,
        ],
        [
            S,
            raw(AUDIO_ID),
            opened(0, "media"),
            opened(1, "transcript"),
            TranscriptDelta(1, "Hi"),
            MediaDelta(0, None, b"ABCD"),
            TranscriptDelta(1, "!"),
            raw(AUDIO_END),
            media(0, b"ABCD", meta={"audio": {"id": "au", "expires_at": 9}}),
            BlockEnd(1, TranscriptBlock(1, "Hi!", meta=json_of({"audio": {"id": "au", "expires_at": 9}}))),
            END,
        ],
    ),
    "audio whose pieces are padded one by one": (
        [chunk({"audio": {"data": "QQ=="}}), chunk({"audio": {"data": "QkM="}}), STOP],
        [S, opened(0, "media"), MediaDelta(0, None, b"A"), MediaDelta(0, None, b"BC"), media(0, b"ABC"), END],
    ),
    "audio whose padding comes by itself, between letters of no alphabet": (
        [
            chunk({"audio": {"data": "Q-"}}),
            chunk({"audio": {"data": "="}}),
            chunk({"audio": {"data": "=\nQ\xe9kNE"}}),
            STOP,
        ],
        [S, opened(0, "media"), MediaDelta(0, None, b"C"), MediaDelta(0, None, b"BCD"), media(0, b"CBCD"), END],
    ),
    "an image as a data URL": (
        [chunk({"images": [image("data:image/png;base64,QUJD")]}), STOP],
        [S, opened(0, "media"), MediaDelta(0, "image/png", b"ABC"), media(0, b"ABC", "image/png"), END],
    ),
    "an image by its address": (
        [chunk({"images": [image("https://i")]}), STOP],
        [S, opened(0, "media"), MediaDelta(0, url="https://i"), media(0, b"", url="https://i"), END],
    ),
}

SOURCES = {
    "annotations of the text": (
        [
            chunk({"content": "See."}),
            chunk({"annotations": [cited(url="https://a", title="A", start_index=0, end_index=3, content="c")]}),
            STOP,
        ],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "See."),
            (
                c := Citation(
                    0,
                    "https://a",
                    "A",
                    "c",
                    0,
                    3,
                    json_of(cited(url="https://a", title="A", start_index=0, end_index=3, content="c")),
                )
            ),
            text(0, "See.", c),
            END,
        ],
    ),
    "an annotation of 0 to 0 has no place (OpenRouter)": (
        [chunk({"content": "a", "annotations": [cited(url="https://a", start_index=0, end_index=0)]}), STOP],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            (c := Citation(0, "https://a", raw=json_of(cited(url="https://a", start_index=0, end_index=0)))),
            text(0, "a", c),
            END,
        ],
    ),
    "an annotation without a text is raw": ([TOO_EARLY, STOP], [S, raw(TOO_EARLY), END]),
    "search results without citations are the sources": (
        [chunk({"content": "a"}, "stop", search_results=[{"url": C, "title": "T"}])],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            (c := Citation(0, C, "T", raw=json_of({"url": C, "title": "T"}))),
            text(0, "a", c),
            END,
        ],
    ),
    "every chunk repeats all citations: each counts once (Perplexity)": (
        [
            chunk({"content": "a"}, citations=["https://a"]),
            chunk({"content": "b"}, citations=["https://a"]),
            chunk({}, "stop", citations=["https://a", C], search_results=[{"url": C, "title": "T"}]),
        ],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            A,
            TextDelta(0, "b"),
            (c := Citation(0, C, "T", raw=json_of({"url": C, "title": "T"}))),
            text(0, "ab", A, c),
            END,
        ],
    ),
    "citations that come before the text wait for it": (
        [chunk({}, id="c"), chunk({}, citations=["https://a"]), chunk({"content": "a"}, citations=["https://a"]), STOP],
        [
            Start("openai-chat", "c"),
            raw(chunk({}, citations=["https://a"])),
            opened(0, "text"),
            TextDelta(0, "a"),
            A,
            text(0, "a", A),
            END,
        ],
    ),
    "sources that are no addresses are raw": (
        [chunk({"content": "a"}), chunk({"content": "b"}, citations=[{"n": 1}]), STOP],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            TextDelta(0, "b"),
            raw(chunk({"content": "b"}, citations=[{"n": 1}])),
            text(0, "ab"),
            END,
        ],
    ),
    "sources that wait are raw once": (
        [
            chunk({"reasoning": "H"}, id="c"),
            chunk({"reasoning": "m"}, citations=["https://a"]),
            chunk({"reasoning": "."}, citations=["https://a"]),
            STOP,
        ],
        [
            Start("openai-chat", "c"),
            opened(0, "reasoning", OTHER),
            ReasoningDelta(0, "H"),
            ReasoningDelta(0, "m"),
            raw(chunk({"reasoning": "m"}, citations=["https://a"])),
            ReasoningDelta(0, "."),
            thought(0, "Hm.", OTHER),
            END,
        ],
    ),
    "citations that come after the text are not dropped (xAI's last chunk)": (
        [chunk({"content": "a"}), STOP, {"choices": [], "usage": CHAT_USAGE, "citations": ["https://a"]}, DONE],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            USAGE,
            raw({"choices": [], "usage": CHAT_USAGE, "citations": ["https://a"]}, name="citations"),
            END,
        ],
    ),
}

BESIDES = {
    "Azure's first chunk": (
        [AZURE_FIRST, chunk({"content": "a"}, id="az", model="m"), FILTERED, chunk({}, "content_filter"), DONE],
        [
            S,
            raw(AZURE_FIRST, name="choices"),
            Start("openai-chat", "az", "m"),
            opened(0, "text"),
            TextDelta(0, "a"),
            raw(FILTERED),
            text(0, "a"),
            done("refusal", "content_filter"),
        ],
    ),
    "moderation": ([STOP, MODERATION, DONE], [S, raw(MODERATION), END]),
    "progress (llama.cpp)": ([PROGRESS, STOP, DONE], [S, raw(PROGRESS), END]),
    "usage on a chunk of its own": ([STOP, {"choices": [], "usage": CHAT_USAGE}, DONE], [S, USAGE, END]),
    "usage on the last chunk": ([chunk({}, "stop", usage=CHAT_USAGE), DONE], [S, USAGE, END]),
    "usage that repeats is told once": (
        [chunk({}, usage=CHAT_USAGE), chunk({}, "stop", usage=CHAT_USAGE), {"choices": [], "usage": CHAT_USAGE}, DONE],
        [S, USAGE, raw({"choices": [], "usage": CHAT_USAGE}), END],
    ),
    "usage within x_groq": ([chunk({}, "stop", x_groq={"id": "r", "usage": CHAT_USAGE}), DONE], [S, USAGE, END]),
    "usage within the choice (Moonshot)": (
        [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": CHAT_USAGE}]}, DONE],
        [S, USAGE, END],
    ),
    "JSON that is no object": (
        ["[1]", "5", "null", STOP],
        [S, raw("[1]"), raw("5"), raw("null"), END],
    ),
    "a payload of another kind": (
        [{"type": "ping", "x": 1}, STOP],
        [S, raw({"type": "ping", "x": 1}), END],
    ),
    "a keep-alive that was framed as data": (
        [": keep-alive", "", STOP],
        [S, raw(": keep-alive", is_json=False), raw("", is_json=False), END],
    ),
}

ENDS = {
    "[DONE] with trailing bytes": ([STOP, "[DONE]\r"], [S, END]),
    "[DONE] after blanks": ([STOP, " [DONE] bye"], [S, END]),
    "[DONE] without any finish reason (Snowflake)": (
        [chunk({"content": "a"}), DONE],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), Done()],
    ),
    "[DONE] alone": ([DONE], [S, Done()]),
    "the end of input after a finish reason": ([STOP], [S, END]),
    "the end of input before a finish reason": (
        [chunk({"content": "a"})],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), TRUNCATED],
    ),
    "the end of input when one choice is open": (
        [chunk({"content": "a"}, "stop", index=0), chunk({"content": "b"}, index=1)],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            opened(1, "text", choice=1),
            TextDelta(1, "b"),
            text(1, "b", choice=1, complete=False),
            TRUNCATED,
        ],
    ),
    "nothing at all": ([], [S, TRUNCATED]),
    "payloads after [DONE] change nothing": (
        [STOP, DONE, chunk({"content": "a"}), {"choices": [], "usage": CHAT_USAGE}, "no JSON"],
        [S, END],
    ),
    "the finish reason comes twice (OpenRouter)": (
        [chunk({"content": "a"}), STOP, chunk({"content": ""}, "stop", usage=CHAT_USAGE), DONE],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a"), USAGE, END],
    ),
    "a plain stop does not weaken another reason": ([chunk({}, "length"), STOP, DONE], [S, done("length", "length")]),
    "a more specific reason replaces a plain stop": ([STOP, chunk({}, "length"), DONE], [S, done("length", "length")]),
    "no JSON": (
        [chunk({"content": "a"}), '{"choices":', STOP],
        [S, opened(0, "text"), TextDelta(0, "a"), text(0, "a", complete=False), BAD_JSON],
    ),
    "a cut call is not done": (
        [call_chunk(entry('{"x', "f", index=0, id="a"))],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", '{"x'),
            BlockEnd(0, ToolCallBlock(0, "a", "f", '{"x', state="cut", complete=False)),
            TRUNCATED,
        ],
    ),
    "a call that its choice finished stays so": (
        [call_chunk(entry("{}", "f", index=0, id="a"), finish="tool_calls"), chunk({"content": "b"}, index=1)],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", "{}"),
            *called(0, "a", "f", "{}"),
            opened(1, "text", choice=1),
            TextDelta(1, "b"),
            text(1, "b", choice=1, complete=False),
            TRUNCATED,
        ],
    ),
    "a call that the tokens cut is invalid": (
        [call_chunk(entry('{"x', "f", index=0, id="a"), finish="length"), DONE],
        [
            S,
            ToolCallStart(0, "a", "f"),
            ToolCallDelta(0, "a", '{"x'),
            ToolCallDone(0, "a", "f", '{"x', valid=False),
            BlockEnd(0, ToolCallBlock(0, "a", "f", '{"x', state="invalid")),
            done("length", "length"),
        ],
    ),
    "content of a chunk that brings an error is not dropped (OpenRouter)": (
        [chunk({"content": "a"}, "error", error={"code": 502, "message": "up"}, usage=CHAT_USAGE), DONE],
        [
            S,
            USAGE,
            opened(0, "text"),
            TextDelta(0, "a"),
            text(0, "a", complete=False),
            ErrorEvent("provider", "up", "502", 502, retryable=True, raw=json_of({"code": 502, "message": "up"})),
        ],
    ),
    "an error after a finish reason is an error": (
        [chunk({"content": "a"}), STOP, {"error": {"message": "up"}}, DONE],
        [
            S,
            opened(0, "text"),
            TextDelta(0, "a"),
            text(0, "a"),
            ErrorEvent("provider", "up", raw=json_of({"message": "up"})),
        ],
    ),
}

REASONS: dict[str, StopReason] = {
    "stop": "end",
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
    "error": "other",
    "insufficient_system_resource": "other",
    "network_error": "other",
    "a new word": "other",
}


@pytest.mark.parametrize(
    ("payloads", "events"),
    rows({**TEXT, **REASONING, **CALLS, **MEDIA, **SOURCES, **BESIDES, **ENDS}),
)
def test_events(payloads: list[Any], events: list[Event]) -> None:
    assert read("openai-chat", payloads) == events


@pytest.mark.parametrize(("word", "reason"), REASONS.items())
def test_what_a_finish_reason_means(word: str, reason: StopReason) -> None:
    assert read("openai-chat", [chunk({}, word), DONE])[-1] == done(reason, word)


def test_calls_of_a_filtered_choice_must_not_run() -> None:
    answer = fold(read("openai-chat", [call_chunk(entry("{}", "f", index=0, id="a"), finish="content_filter")]))
    assert answer.stop.reason == "refusal"
    assert (answer.tool_calls, [call.state for call in answer.withheld_calls]) == ((), ["void"])


def test_the_text_of_a_custom_tool_that_the_tokens_cut_must_not_run() -> None:
    cut = call_chunk({"index": 0, "id": "a", "custom": {"name": "sh", "input": "rm -r /tmp/x"}}, finish="length")
    answer = fold(read("openai-chat", [cut, DONE]))
    assert (answer.tool_calls, len(answer.withheld_calls)) == ((), 1)


@pytest.mark.parametrize("word", ["length", "error", "insufficient_system_resource", "network_error"])
def test_what_broke_off_is_no_call_without_arguments(word: str) -> None:
    begun = call_chunk(entry("", "f", index=0, id="a"), {"index": 1, "id": "b", "custom": {"name": "sh"}}, finish=word)
    answer = fold(read("openai-chat", [begun, DONE]))
    assert (answer.tool_calls, [call.state for call in answer.withheld_calls]) == ((), ["invalid", "invalid"])


def test_each_choice_has_its_own_answer() -> None:
    stream = [
        chunk({"content": "a"}, "stop", index=0),
        chunk({"refusal": "no"}, "stop", index=2),
        call_chunk(entry("{}", "f", index=0, id="i"), finish="stop", index=1),
    ]
    answer = fold(read("openai-chat", stream))
    assert answer.choices == 3
    assert [answer.choice(n).text for n in range(3)] == ["a", "", "no"]
    assert [answer.choice(n).stop.reason for n in range(3)] == ["end", "tool_use", "refusal"]
    assert [len(answer.choice(n).tool_calls) for n in range(3)] == [0, 1, 0]
    assert (answer.text, answer.tool_calls) == ("a", ())


RAW_MODES = {
    "all": ([{"type": "ping"}, MODERATION, chunk({"content": ""})], 3),
    "unknown": ([{"type": "ping"}, MODERATION, chunk({"content": ""})], 1),
    "none": ([{"type": "ping"}, MODERATION, chunk({"content": ""})], 0),
}


@pytest.mark.parametrize(("mode", "row"), RAW_MODES.items())
def test_which_raw_events_are_handed_out(mode: Any, row: tuple[list[Payload], int]) -> None:
    payloads, count = row
    events = read("openai-chat", [chunk({"content": "a"}), *payloads, STOP], raw=mode)
    assert sum(event.type == "raw" for event in events) == count
    assert fold(events).text == "a"


def test_a_first_payload_of_no_known_kind_is_raw_in_every_mode_that_hands_out_such() -> None:
    for mode in ("all", "unknown"):
        assert read("openai-chat", [{"weird": 1}, STOP], raw=mode) == [S, raw({"weird": 1}, name="choices"), END]


def test_an_error_by_its_event_name_alone() -> None:
    decoder = StreamDecoder("openai-chat")
    events = decoder.feed(b'data: {"choices":[]}\n\nevent: error\ndata: {"message":"no","code":"tool_use_failed"}\n\n')
    assert events[-1] == ErrorEvent(
        "provider", "no", "tool_use_failed", raw=json_of({"message": "no", "code": "tool_use_failed"})
    )
    assert decoder.ended


def test_nothing_follows_the_close() -> None:
    made = OpenAIChatNormalizer()
    first = made.feed([b'{"id":"c","model":"m","choices":[{"delta":{"content":"a"}}]}'])
    assert first[-1] == TextDelta(0, "a")
    assert made.close()[-1].type == "error"
    assert made.feed([b'{"id":"c","model":"m","choices":[{"delta":{"content":"b"}}]}']) == []
    assert made.close() == []
