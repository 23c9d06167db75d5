"""AWS's binary framing against itself at other cuts, and against a naive twin that reads the whole body."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress
from itertools import pairwise
from typing import Any
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from streamfold.errors import ChecksumMismatch, FrameTooLarge, FramingError, Malformed, Truncated
from streamfold.framing.eventstream import EventStreamParser
from tests.wires_more import binary, header, named

sized = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
names = st.sampled_from([":event-type", ":message-type", "a", "b", "é"])


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    block = b""
    for name in draw(st.lists(names, max_size=4)):
        kind = draw(st.sampled_from([*sized, 6, 7, 7, 7]))
        size = sized.get(kind)
        value = draw(st.binary(max_size=5)) if size is None else draw(st.binary(min_size=size, max_size=size))
        block += header(name, kind, value) if name.isascii() else header("e", kind, value)
    return block


messages = st.builds(binary, headers(), st.binary(max_size=30)) | st.builds(
    named, st.sampled_from(["chunk", "metadata"]), st.just(b"{}"), st.sampled_from(["event", "exception", "error"])
)
strays = st.sampled_from(
    [
        b"",
        b"{}",
        binary(b"\xff"),  # a header that ends beyond the headers
        binary(header("a", 10)),  # a type that is none
        binary(b"", b"x" * 200),
        struct.pack(">II", 15, 0) + struct.pack(">I", crc32(struct.pack(">II", 15, 0))),
        struct.pack(">II", 40, 30) + struct.pack(">I", crc32(struct.pack(">II", 40, 30))),
        named("chunk", b"{}")[:-1] + b"\0",
    ]
)


@st.composite
def wires(draw: st.DrawFn) -> bytes:
    parts = draw(st.lists(messages | messages | strays, max_size=5))
    wire = bytearray(b"".join(parts))
    if wire and draw(st.booleans()):
        at = draw(st.integers(0, len(wire) - 1))
        if draw(st.booleans()):
            wire[at] ^= draw(st.integers(1, 255))
        else:
            del wire[at:]
    return bytes(wire)


bounds = st.sampled_from([100, 24, None])
points = st.lists(st.integers(0, 300), max_size=8)
Outcome = tuple[list[Any], "tuple[type[FramingError], int] | None"]


def cut(wire: bytes, at: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(min(point, len(wire)) for point in at), len(wire)]
    return [wire[a:b] for a, b in pairwise(edges)]


def described(fault: FramingError | None) -> tuple[type[FramingError], int] | None:
    return None if fault is None else (type(fault), fault.offset)


def iterated(chunks: list[bytes], limit: int | None) -> Outcome:
    parser = EventStreamParser(max_frame_bytes=limit)
    found: list[Any] = []
    with suppress(FramingError):
        for chunk in chunks:
            parser.feed(chunk)
            found += parser
        parser.close()
        found += parser
    return [(message.headers, message.payload) for message in found], described(parser.fault)


def taken(chunks: list[bytes], limit: int | None) -> tuple[list[Any], Any, Any]:
    parser = EventStreamParser(max_frame_bytes=limit)
    found: list[Any] = []
    wire = b"".join(chunks)
    for read in (*(lambda chunk=chunk: parser.take(chunk) for chunk in chunks), lambda: parser.finish("eof")):
        for k, payload in enumerate(read()):
            assert payload in wire[parser.offset_of(k) :]
            found.append((parser.name_of(k), payload))
    return found, described(parser.fault), parser.failure


def whole(wire: bytes, limit: int | None) -> Outcome:
    """The naive twin: the whole body, from the first message to the last."""
    found: list[Any] = []
    at = 0
    while at < len(wire):
        if len(wire) - at < 12:
            return found, (Truncated, at)
        total, size, checksum = struct.unpack_from(">III", wire, at)
        if crc32(wire[at : at + 8]) != checksum:
            return found, (ChecksumMismatch, at)
        if size > total - 16:
            return found, (Malformed, at)
        if limit is not None and total > limit:
            return found, (FrameTooLarge, at)
        message = wire[at : at + total]
        if len(message) < total:
            return found, (Truncated, at)
        if crc32(message[:-4]) != int.from_bytes(message[-4:]):
            return found, (ChecksumMismatch, at)
        told = told_by(message[12 : 12 + size])
        if told is None:
            return found, (Malformed, at)
        found.append((told, message[12 + size : -4]))
        at += total
    return found, None


def told_by(block: bytes) -> dict[str, Any] | None:
    told: dict[str, Any] = {}
    try:
        while block:
            name, kind, block = block[1 : 1 + block[0]], block[1 + block[0]], block[2 + block[0] :]
            size = sized.get(kind)
            if size is None:
                size, block = int.from_bytes(block[:2]) if kind in (6, 7) and len(block) > 1 else 1 << 40, block[2:]
            value, block = block[:size], block[size:]
            if len(value) < size or name.decode() in told:
                return None
            told[name.decode()] = READ.get(kind, int_of)(value)
    except IndexError:
        return None
    return told


def int_of(value: bytes) -> Any:
    return int.from_bytes(value, signed=True)


READ = {0: lambda v: True, 1: lambda v: False, 6: bytes, 7: lambda v: v.decode("utf-8", "replace"), 9: bytes}


@given(wire=wires(), at=points, limit=bounds)
def test_cuts_never_change_the_outcome(wire: bytes, at: list[int], limit: int | None) -> None:
    for chunks in (cut(wire, at), cut(wire, range(len(wire)))):
        assert iterated(chunks, limit) == iterated([wire], limit)
        assert taken(chunks, limit) == taken([wire], limit)


@given(wire=wires(), limit=bounds)
def test_agrees_with_the_naive_parser(wire: bytes, limit: int | None) -> None:
    assert iterated([wire], limit) == whole(wire, limit)


@given(wire=wires(), limit=bounds)
def test_the_decoder_is_handed_what_is_iterated(wire: bytes, limit: int | None) -> None:
    messages, fault = iterated([wire], limit)
    payloads, its_fault, failure = taken([wire], limit)
    assert [payload for _, payload in payloads] == [payload for _, payload in messages[: len(payloads)]]
    assert its_fault == fault or failure is not None  # behind a failure nothing is read
    assert failure is not None or len(payloads) == len(messages)
