"""Streams that grow for ever, or for long, each read in a process of its own: how it ended, and how far memory grew.

    echo NAME | python -m tests.endless

prints one line of JSON for each name. What is generated is generated lazily: whatever memory grows by, the reading
holds. The process is a fork, whose memory is counted from what it was born with.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import streamfold
from streamfold import ErrorEvent
from tests.samples import (
    ANSWERS,
    block_start,
    block_stop,
    chat,
    chat_call,
    chat_text,
    message_start,
    responses_payloads,
    sse,
    text_delta,
)
from tests.wires import (
    CREATED,
    function_call,
    gemini,
    interaction,
    leaf,
    step_delta,
    step_start,
    step_stop,
)

READ = 64 * 1024
MIB = 1024 * 1024
STATUS = Path("/proc/self/status")  # Linux's; what resource.getrusage says of a child begins with its parent's memory

HEADS: dict[str, bytes] = {  # an answer of each surface that has said "Hel"
    "openai-chat": sse(chat_text("Hel", finish=None)),
    "anthropic": sse([message_start(), block_start(0, type="text", text=""), text_delta("Hel")], names=True),
    "openai-responses": sse(responses_payloads("Hel")[:4], names=True),
    "gemini-generate-content": sse([gemini({"text": "Hel"})]),
    "gemini-interactions": sse([CREATED, step_start(0, "model_output"), step_delta(0, "text", text="Hel")]),
}


class Stream(NamedTuple):
    """A stream to read."""

    chunks: Callable[[], Iterable[bytes]]
    provider: str = "openai-chat"
    settings: Mapping[str, Any] = MappingProxyType({})


def of(size: int, piece: bytes) -> Iterator[bytes]:
    """So many bytes of this piece over and over, in reads of 64 KiB."""
    read = piece * (READ // len(piece))
    return repeat(read, size // len(read))


def endless(piece: bytes) -> Iterator[bytes]:
    return repeat(piece * (READ // len(piece)))


def after(head: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    return chain([head], rest)


ENDS: dict[str, list[Any]] = {  # where calls are finished by the end of the answer, or it is told apart
    "openai-chat": [chat(finish="tool_calls"), "[DONE]"],
    "gemini-generate-content": [gemini(finish="STOP")],
    "gemini-interactions": [interaction("completed", "requires_action")],
}


def calls(provider: str, count: int) -> Iterator[bytes]:
    """An answer of nothing but calls, each of which is finished where the surface can say so."""
    if provider == "anthropic":
        yield sse([message_start()], names=True)
    for n in range(count):
        if provider == "openai-chat":
            yield sse([chat_call(n, "{}", id=f"c{n}", name="f")])
        elif provider == "gemini-generate-content":
            yield sse([gemini(function_call("f", args={}, id=f"g{n}"))])
        elif provider == "gemini-interactions":
            yield sse([step_start(n, "function_call", id=f"g{n}", name="f", arguments={}), step_stop(n)])
        elif provider == "anthropic":
            yield sse([block_start(n, type="tool_use", id=f"t{n}", name="f", input={}), block_stop(n)], names=True)
        else:
            item = {"type": "function_call", "id": f"i{n}", "call_id": f"c{n}", "name": "f", "arguments": ""}
            yield sse(
                [
                    {"type": "response.output_item.added", "output_index": n, "item": item},
                    {"type": "response.output_item.done", "output_index": n, "item": {**item, "arguments": "{}"}},
                ],
                names=True,
            )
    if provider in ENDS:
        yield sse(ENDS[provider])


CHAT = HEADS["openai-chat"]
GEMINI, INTERACTIONS = HEADS["gemini-generate-content"], HEADS["gemini-interactions"]
ITEM = json.dumps(gemini({"text": "Hel"}), indent=2).encode()  # in the vendor's layout
STRING = function_call(None, leaf("$.a", "word ", more=True), willContinue=True)
LIST = b"[" + json.dumps(chat({"content": "Hel"})).encode()
NO_RAW = {"raw": "none"}
MANY = 20_000

STREAMS: dict[str, Stream] = {
    # a frame that never ends
    **{
        f"a line, {provider}": Stream(lambda head=head: after(head + b"data: ", endless(b"x")), provider)  # type: ignore[misc]
        for provider, head in HEADS.items()
    },
    "a line, auto": Stream(lambda: after(b"data: ", endless(b"x")), "auto"),
    "a line of a field that nobody knows": Stream(lambda: after(CHAT, endless(b"x"))),
    "a comment": Stream(lambda: after(CHAT + b":", endless(b"x"))),
    "data lines": Stream(lambda: after(CHAT, endless(b"data: x\n")), settings={"max_frame_bytes": 4 * MIB}),
    "data lines without data": Stream(lambda: after(CHAT, endless(b"data\n")), settings={"max_frame_bytes": 2 * MIB}),
    # an item that never ends
    "an item": Stream(lambda: after(LIST + b',{"a":"', endless(b"x"))),
    "an item of escapes": Stream(lambda: after(LIST + b',{"a":"', endless(b"\\u00e9"))),
    "a number": Stream(lambda: after(LIST + b",", endless(b"7"))),
    "a literal": Stream(lambda: after(LIST + b",", endless(b"t"))),
    "brackets": Stream(lambda: after(LIST + b",", endless(b"["))),
    "members": Stream(lambda: after(LIST + b',{"a":0', endless(b',"a":0'))),
    "an item of Gemini's": Stream(lambda: after(b"[" + ITEM + b'\n,\r\n{\n  "candidates": "', endless(b"x")), "gemini"),
    # lines that are no frames
    "comments": Stream(lambda: after(CHAT, of(12 * MIB, b": hi\n\n"))),
    "comments without a blank line": Stream(lambda: after(CHAT, of(12 * MIB, b": hi\n"))),
    "ids": Stream(lambda: after(CHAT, of(6 * MIB, b"id: 1\n\n"))),
    "ids without a blank line": Stream(lambda: after(CHAT, of(10 * MIB, b"id: 1\n"))),
    "event names without a blank line": Stream(lambda: after(CHAT, of(10 * MIB, b"event: x\n"))),
    "line ends": Stream(lambda: after(CHAT, of(4 * MIB, b"\n"))),
    "line ends of old": Stream(lambda: after(CHAT, of(2 * MIB, b"\r"))),
    "line ends first": Stream(lambda: repeat(b"\n" * MIB, 12)),
    "blanks first": Stream(lambda: repeat(b" " * MIB, 12)),
    "blanks between items": Stream(lambda: after(LIST, of(32 * MIB, b" "))),
    # residue
    "stray lines": Stream(lambda: after(CHAT, of(16 * MIB, b"a stray line\n\n"))),
    "stray lines without a blank line": Stream(lambda: after(CHAT, of(12 * MIB, b"a stray line\n"))),
    "a page": Stream(lambda: after(b"<html>\n", of(32 * MIB, b"<p>a paragraph of a page</p>\n\n"))),
    "objects": Stream(lambda: after(CHAT, of(8 * MIB, b'{"a":1}\n\n'))),
    # frames without end
    "a million frames": Stream(lambda: after(CHAT, of(10 * MIB, b"data: {}\n\n")), settings=NO_RAW),
    "a million frames, auto": Stream(lambda: of(10 * MIB, b"data: {}\n\n"), "auto", NO_RAW),
    "a million items": Stream(lambda: after(LIST, of(3 * MIB, b",{}")), settings=NO_RAW),
    "a million items of Gemini's": Stream(
        lambda: after(b"[" + ITEM, of(7 * MIB, b"\n,\r\n{\n}")), "gemini", {"raw": "none"}
    ),
    "32 MiB of text in Gemini's items": Stream(lambda: after(b"[" + ITEM, of(32 * MIB, b"\n,\r\n" + ITEM)), "gemini"),
    "32 MiB of text, gemini": Stream(lambda: after(GEMINI, of(32 * MIB, sse([gemini({"text": "word "})]))), "gemini"),
    "32 MiB of totals, gemini": Stream(
        lambda: after(
            GEMINI,
            of(32 * MIB, b"".join(sse([gemini(usage={"totalTokenCount": n})]) for n in (1, 2))),
        ),
        "gemini",
    ),
    "a string of arguments without end, gemini": Stream(
        lambda: after(
            GEMINI + sse([gemini(function_call("f", willContinue=True))]), of(16 * MIB, sse([gemini(STRING)]))
        ),
        "gemini",
    ),
    "32 MiB of text, interactions": Stream(
        lambda: after(INTERACTIONS, of(32 * MIB, sse([step_delta(0, "text", text="word ")]))), "gemini"
    ),
    "event ids without end, interactions": Stream(
        lambda: (sse([{**step_delta(0, "text", text="Hel"), "event_id": f"e{n}" * 20}]) for n in range(50_000)),
        "gemini",
    ),
    "many raw events": Stream(lambda: after(CHAT, of(3 * MIB, b"data: {}\n\n"))),
    "32 MiB of text": Stream(lambda: after(CHAT, of(32 * MIB, sse([chat({"content": "word "})])))),
    "32 MiB of text, anthropic": Stream(
        lambda: after(HEADS["anthropic"], of(32 * MIB, sse([text_delta("word ")], names=True))), "anthropic"
    ),
    "32 MiB of pings": Stream(
        lambda: after(HEADS["anthropic"], of(32 * MIB, sse([{"type": "ping"}], names=True))), "anthropic", NO_RAW
    ),
    "32 MiB that nobody knows": Stream(
        lambda: after(HEADS["anthropic"], of(32 * MIB, sse([{"type": "brand_new", "x": "y" * 99}], names=True))),
        "anthropic",
    ),
    "holes in the numbers": Stream(
        lambda: (
            sse([{"type": "response.in_progress", "sequence_number": 2 * n, "response": {"id": "r"}}], names=True)
            for n in range(20_000)
        ),
        "openai-responses",
        NO_RAW,
    ),
    "payloads after the end": Stream(lambda: after(ANSWERS["openai-chat"], endless(b"data: {}\n\n"))),
    # blocks
    "a million calls": Stream(lambda: calls("anthropic", 1_000_000), "anthropic", NO_RAW),
    **{
        f"more calls than may be, {provider}": Stream(
            lambda provider=provider: calls(provider, 1_000_000),  # type: ignore[misc]
            provider,
            {**NO_RAW, "max_blocks": MANY},
        )
        for provider in HEADS
    },
    **{
        f"as many calls as may be, {provider}": Stream(
            lambda provider=provider: calls(provider, MANY),  # type: ignore[misc]
            provider,
            {**NO_RAW, "max_blocks": MANY},
        )
        for provider in HEADS
    },
}


def memory() -> int:
    """The most memory this process has held so far, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def read(stream: Stream) -> dict[str, Any]:
    """How the stream ended, and by how many bytes memory grew."""
    before = memory()
    types: Counter[str] = Counter()
    with streamfold.iter_unified(stream.chunks(), stream.provider, **stream.settings) as events:
        last = None
        for last in events:
            types[last.type] += 1
    answer = events.snapshot()
    grown = memory() - before
    return {
        "outcome": answer.outcome,
        "fault": [last.kind, last.code] if isinstance(last, ErrorEvent) else None,
        "ends": types["done"] + sum(1 for _ in (answer.error,) if answer.error),
        "text": answer.text[:9],
        "length": len(answer.text),
        "blocks": len(answer.blocks),
        "calls": len(answer.tool_calls),
        "withheld": len(answer.withheld_calls),
        "warnings": len(answer.warnings),
        "raw": types["raw"],
        "grown": grown,
    }


if __name__ == "__main__":
    for provider, body in ANSWERS.items():  # so that all code is there
        streamfold.fold([body], provider)
    gc.freeze()
    for name in sys.stdin:
        child = os.fork()
        if child == 0:
            print(json.dumps(read(STREAMS[name.rstrip()])), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, name
