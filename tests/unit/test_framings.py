"""AWS's binary framing, lines and whole messages of JSON: what a message is, and what ends a stream early."""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any
from zlib import crc32

import pytest

import streamfold
from streamfold import (
    ChecksumMismatch,
    ErrorEvent,
    FrameTooLarge,
    FramingError,
    Malformed,
    ServerSentEvent,
    StreamDecoder,
    Truncated,
    UsageError,
    parse_event_stream,
)
from streamfold.framing.eventstream import EventStreamMessage, EventStreamParser
from streamfold.framing.jsonl import JSONLinesParser
from tests.wires_more import (
    MESSAGE_START,
    OLLAMA,
    block_delta,
    block_stop,
    converse_bytes,
    header,
    message_stop,
    named,
)
from tests.wires_more import (
    binary as message,
)

EVENT = named("chunk", b'{"a":1}')


def parsed(wire: bytes, **settings: Any) -> tuple[list[EventStreamMessage], FramingError | None]:
    parser = EventStreamParser(**settings)
    found: list[EventStreamMessage] = []
    parser.feed(wire)
    try:
        found.extend(parser)
        parser.close()
        found.extend(parser)
    except FramingError as fault:
        return found, fault
    return found, None


# -- headers ----------------------------------------------------------------------------------------------------------

HEADERS: dict[str, tuple[bytes, Any]] = {
    "true": (header("h", 0), True),
    "false": (header("h", 1), False),
    "int8": (header("h", 2, b"\xff"), -1),
    "int16": (header("h", 3, b"\x01\x00"), 256),
    "int32": (header("h", 4, b"\xff\xff\xff\xfe"), -2),
    "int64": (header("h", 5, b"\x00" * 7 + b"\x07"), 7),
    "bytes": (header("h", 6, b"\x00\xff"), b"\x00\xff"),
    "a string": (header("h", 7, "é".encode()), "é"),
    "a string that is no UTF-8": (header("h", 7, b"\xff"), "\ufffd"),
    "a timestamp": (header("h", 8, struct.pack(">q", 1_700_000_000_000)), 1_700_000_000_000),
    "a UUID": (header("h", 9, b"0123456789abcdef"), b"0123456789abcdef"),
}


@pytest.mark.parametrize(("block", "value"), HEADERS.values(), ids=HEADERS.keys())
def test_headers(block: bytes, value: Any) -> None:
    found, fault = parsed(message(header("first", 0) + block + header("last", 1), b"p") * 2)
    assert fault is None
    assert found == [EventStreamMessage({"first": True, "h": value, "last": False}, b"p")] * 2
    assert type(found[0].headers["h"]) is type(value)


KINDS = {
    "an event": (named("chunk", b"{}"), "event", "chunk", False),
    "an exception": (named("throttlingException", b"{}", "exception"), "exception", "throttlingException", True),
    "an error": (named("Internal", b"", "error"), "error", "Internal", True),
    "a message that says nothing": (message(b""), "event", None, False),
    "a kind that is no text": (message(header(":message-type", 0)), "event", None, False),
}


@pytest.mark.parametrize(("wire", "kind", "name", "fails"), KINDS.values(), ids=KINDS.keys())
def test_kinds(wire: bytes, kind: str, name: str | None, fails: bool) -> None:
    (found,), _ = parsed(wire)
    assert (found.kind, found.name, found.is_failure) == (kind, name, fails)


def test_what_is_done_to_the_headers_of_a_message_is_done_to_no_other() -> None:
    (first, second), _ = parsed(EVENT * 2)
    first.headers.clear()
    assert second.headers[":event-type"] == "chunk"


# -- faults -----------------------------------------------------------------------------------------------------------


def prelude(total: int, headers: int) -> bytes:
    lengths = struct.pack(">II", total, headers)
    return lengths + struct.pack(">I", crc32(lengths))


FAULTS: dict[str, tuple[bytes, type[FramingError], str]] = {
    "a prelude that was damaged": (b"\0" + prelude(16, 0)[1:-1] + b"?", ChecksumMismatch, "prelude"),
    "a message that was damaged": (EVENT[:-20] + b"?" + EVENT[-19:], ChecksumMismatch, "a message does not"),
    "no stream at all": (b"HTTP/1.1 500 ", ChecksumMismatch, "prelude"),
    "a length below the least": (prelude(15, 0), Malformed, "cannot hold"),
    "headers longer than the message": (prelude(20, 5), Malformed, "cannot hold"),
    "more headers than the format allows": (prelude(200_000, 150_000), Malformed, "headers"),
    "a message longer than its bound": (prelude(9_000_000, 0), FrameTooLarge, "limit of 8388608"),
    "a header that ends beyond the headers": (message(b"\x05ab"), Malformed, "ends beyond"),
    "a header without its value": (message(b"\x01a\x07"), Malformed, "ends beyond"),
    "a type that is none": (message(header("a", 10)), Malformed, "type 10"),
    "a header that stands there twice": (message(header("a", 0) * 2), Malformed, "twice"),
    "the end inside a prelude": (EVENT[:5], Truncated, "inside a message"),
    "the end inside a message": (EVENT[:-1], Truncated, "inside a message"),
}


@pytest.mark.parametrize(("wire", "kind", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_faults(wire: bytes, kind: type[FramingError], words: str) -> None:
    found, fault = parsed(EVENT + wire)
    assert [m.payload for m in found] == [b'{"a":1}']  # what came before is yielded before
    assert type(fault) is kind
    assert fault.offset == len(EVENT)
    assert words in str(fault)


def test_more_than_the_format_allows_is_refused_without_a_bound() -> None:
    _, fault = parsed(prelude(40 * 1024 * 1024, 0), max_frame_bytes=None)
    assert isinstance(fault, Malformed)


def test_a_fault_is_sticky() -> None:
    parser = EventStreamParser()
    parser.feed(b"x" * 12)
    for _ in range(2):
        with pytest.raises(ChecksumMismatch):
            next(parser)
    parser.feed(EVENT)
    with pytest.raises(ChecksumMismatch):
        next(parser)


@pytest.mark.parametrize("parser", [EventStreamParser, JSONLinesParser])
def test_misuse(parser: Any) -> None:
    made = parser()
    with pytest.raises(UsageError):
        made.feed("text")
    made.close()
    with pytest.raises(UsageError):
        made.feed(b"")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes(kind: Any) -> None:
    for parser, wire in ((EventStreamParser(), EVENT), (JSONLinesParser(), b"{}\n")):
        parser.feed(kind(wire))
        assert len(list(parser)) == 1


# -- lines ------------------------------------------------------------------------------------------------------------

LINES: dict[str, tuple[bytes, list[str]]] = {
    "LF": (b'{"a":1}\n{"b":2}\n', ['{"a":1}', '{"b":2}']),
    "CRLF": (b'{"a":1}\r\n{"b":2}\r\n', ['{"a":1}', '{"b":2}']),
    "the last line needs no end": (b'{"a":1}\n{"b":2}', ['{"a":1}', '{"b":2}']),
    "blank lines": (b"\n\r\n  \n{}\n\n\t\n", ["{}"]),
    "blanks around a line": (b" {} \t\n", ["{}"]),
    "a byte order mark": (b"\xef\xbb\xbf{}\n", ["{}"]),
    "any JSON value": (b'5\n"a"\nnull\n', ["5", '"a"', "null"]),
    "what is no JSON is not asked here": (b"{\n<html>\n", ["{", "<html>"]),
    "a CR alone ends no line": (b"1\r2\n", ["1\r2"]),
    "separators of text end no line": ('"\u2028"\n'.encode(), ['"\u2028"']),
    "bad UTF-8": (b'"\xff"\n', ['"\ufffd"']),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("wire", "lines"), LINES.values(), ids=LINES.keys())
@pytest.mark.parametrize("step", [1, 2, 4096])
def test_lines(wire: bytes, lines: list[str], step: int) -> None:
    parser = JSONLinesParser()
    found: list[str] = []
    for at in range(0, len(wire), step):
        parser.feed(wire[at : at + step])
        found += parser
    parser.close()
    assert [*found, *parser] == lines


def test_a_line_keeps_to_its_bound() -> None:
    parser = JSONLinesParser(max_frame_bytes=3)
    parser.feed(b"123\r\n1234\n5\n")
    assert next(parser) == "123"
    with pytest.raises(FrameTooLarge) as caught:
        next(parser)
    assert (caught.value.offset, caught.value.limit) == (5, 3)


# -- frames, traces, messages -----------------------------------------------------------------------------------------


def test_frames_of_every_framing() -> None:
    lines = b'{"a":1}\n{"b":2}'
    frames = [ServerSentEvent(data='{"a":1}'), ServerSentEvent(data='{"b":2}')]
    assert list(parse_event_stream([lines], framing="jsonl")) == frames
    assert list(parse_event_stream(['{"a":1}', {"b": 2}], framing="messages")) == frames
    wire = EVENT + named("throttlingException", b"{}", "exception")
    assert list(parse_event_stream([wire], framing="eventstream")) == [
        ServerSentEvent("chunk", '{"a":1}'),
        ServerSentEvent("throttlingException", "{}"),
    ]


def test_a_fault_is_raised_behind_the_frames_before_it() -> None:
    frames = parse_event_stream([EVENT + b"x" * 12], framing="eventstream")
    assert next(frames).event == "chunk"
    with pytest.raises(ChecksumMismatch):
        next(frames)


def test_traces_of_every_framing() -> None:
    converse = converse_bytes([MESSAGE_START, block_delta(0, text="a"), block_stop(0), message_stop()])
    for source, provider, framing in (
        ([converse], "bedrock-converse", "eventstream"),
        ([json.dumps(p).encode() + b"\n" for p in OLLAMA["text"]], "ollama", "jsonl"),
        (OLLAMA["text"], "ollama", "messages"),
    ):
        pairs = list(streamfold.iter_traced(source, provider, framing=framing))  # type: ignore[arg-type]
        events = list(streamfold.iter_unified(source, provider, framing=framing))  # type: ignore[arg-type]
        assert [event for _, caused in pairs for event in caused] == events
        assert sum(frame is not None for frame, _ in pairs) in (3, 4)


def test_messages_that_are_awaited() -> None:
    async def source() -> AsyncIterator[str]:
        for payload in OLLAMA["text"]:
            yield json.dumps(payload)

    answer = asyncio.run(streamfold.afold(source(), "ollama", framing="messages"))
    assert (answer.text, answer.outcome) == ("Hello", "complete")


def test_a_message_that_is_none() -> None:
    decoder = StreamDecoder("ollama", framing="messages")
    with pytest.raises(UsageError):
        decoder.feed(5)  # type: ignore[arg-type]
    assert decoder.feed("  ") == []  # type: ignore[arg-type]


def test_a_message_keeps_to_its_bound() -> None:
    decoder = StreamDecoder("ollama", framing="messages", max_frame_bytes=10)
    error = decoder.feed(b'{"long":"message"}')[-1]
    assert isinstance(error, ErrorEvent)
    assert (error.kind, error.code) == ("limit", "frame")


def test_behind_a_fault_nothing_is_read() -> None:
    for framing, bad in (("messages", b"x" * 11), ("jsonl", b"x" * 11), ("eventstream", b"x" * 12)):
        frames = parse_event_stream([bad, EVENT, b"{}\n"], framing=framing, max_frame_bytes=10)  # type: ignore[arg-type]
        with pytest.raises(FramingError):
            next(frames)
        assert list(frames) == []


def test_messages_of_any_kind() -> None:
    frames = parse_event_stream([b"1", bytearray(b"2"), memoryview(b"3"), "4", {"5": 6}], framing="messages")
    assert [frame.data for frame in frames] == ["1", "2", "3", "4", '{"5":6}']
    with pytest.raises(UsageError, match="no words for"):
        list(parse_event_stream([{"a": object()}], framing="messages"))


def test_places_are_told_in_every_framing() -> None:
    for source, framing in (
        ([b'{"model":"m","message":{"content":"a"},"done":false}\n{"a":'], "jsonl"),
        ([b'{"model":"m","message":{"content":"a"},"done":false}', b'{"a":'], "messages"),
    ):
        decoder = StreamDecoder("ollama", framing=framing)  # type: ignore[arg-type]
        events = [event for chunk in source for event in decoder.feed(chunk)] + decoder.close()
        error = events[-1]
        assert isinstance(error, ErrorEvent)
        assert error.offset == len(source[0]) - (5 if framing == "jsonl" else 0)


# -- growth -----------------------------------------------------------------------------------------------------------


def feeding(parser: Any, wire: bytes, step: int) -> float:
    started = time.thread_time()
    for at in range(0, len(wire), step):
        parser.take(wire[at : at + step])
    return time.thread_time() - started


GROWING: dict[str, tuple[Any, Any, int]] = {
    "messages in one read": (EventStreamParser, lambda size: EVENT * (size // len(EVENT)), 1 << 30),
    "messages a byte a read": (EventStreamParser, lambda size: EVENT * (size // len(EVENT) // 20), 1),
    "one message in small reads": (EventStreamParser, lambda size: message(b"", b"x" * size), 1024),
    "lines in one read": (JSONLinesParser, lambda size: b'{"a":1}\n' * (size // 8), 1 << 30),
    "one line in small reads": (JSONLinesParser, lambda size: b"x" * size + b"\n", 1024),
    "blank lines": (JSONLinesParser, lambda size: b"\n" * size, 4096),
}


@pytest.mark.parametrize(("make", "wire_of", "step"), GROWING.values(), ids=GROWING.keys())
def test_cost_grows_with_bytes(make: Any, wire_of: Any, step: int) -> None:
    def cost(size: int) -> float:
        wire = wire_of(size)
        return min(feeding(make(), wire, step) for _ in range(3)) / len(wire)

    assert cost(4_000_000) < 4 * cost(500_000)  # a quadratic one costs eight times as much a byte


def test_an_endless_line_is_let_go() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    answer = streamfold.fold(endless(), "ollama", framing="jsonl", max_frame_bytes=1_000_000)
    assert answer.error is not None
    assert answer.error.kind == "limit"
