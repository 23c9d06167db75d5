"""The decoder under bytes cut anywhere: its events stay the same, and so do its pairs, cursors and snapshots."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice, pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import Event, StreamDecoder
from tests.promises import broken
from tests.samples import ANTHROPIC_PAYLOADS, RESPONSES_PAYLOADS, chat, chat_call, chat_text

PAYLOADS: dict[str, list[Any]] = {
    "openai-chat": [
        *chat_text("<think>Hm</thi", "nk>Hel", "lo<th", finish=None),
        chat_call(0, "{}", id="c", name="f"),
        chat(finish="stop"),
        chat({"content": "é"}, choice=1),
        {"error": {"message": "no", "code": "c"}},
        "[DONE]",
    ],
    "openai-responses": [
        *RESPONSES_PAYLOADS,
        {"type": "error", "code": "slow", "message": "slow", "sequence_number": 3},
        {"type": "keepalive"},
    ],
    "anthropic": [*ANTHROPIC_PAYLOADS, {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}], "responseId": "r"},
        {"candidates": [{"finishReason": "STOP"}]},
        {"event_type": "interaction.created", "event_id": "e1", "interaction": {"id": "i"}},
        {"event_type": "step.start", "event_id": "e2", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "event_id": "e3", "index": 0, "delta": {"type": "text", "text": "Hi"}},
        {"event_type": "interaction.completed", "event_id": "e4", "interaction": {"id": "i", "status": "completed"}},
    ],
}
PAYLOADS["auto"] = [{"type": "ping"}, {"hello": 1}, *(payload for some in PAYLOADS.values() for payload in some)]

ERROR = {"error": {"message": "gone", "code": "bare"}}
ODD = (
    b": hi",
    b"id: 7",
    b"id: 8\0",
    b"id",
    b"retry: 5",
    b"event: x",
    b"data",
    b"data: {}",
    b"data: [DONE]",
    b"data: {oops",
    b"stray",
    b"{oops",
    b'{"a":1}',
    b'{"message":"m"}',
    b"[" + json.dumps(ERROR).encode() + b"]",
    json.dumps(ERROR).encode(),
    json.dumps(ERROR, indent=1).encode(),
    b'{"error":null}',
    b"data: " + b"x" * 90,
    b"",
    b" \t",
)
ENDS = (b"\n", b"\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\r")
HEADS = (
    b"",
    b"",
    b"",
    b"\xef\xbb\xbf",
    b"\n\n",
    b"  \r\n \t",
    b"\xef\xbb\xbf\n ",
    b"\xef\xbb\xbf\xef\xbb\xbf",
    b"\x1f\x8b\x08",
    b" " * 300,
)
settings_of_a_decoder = st.fixed_dictionaries(
    {},
    optional={
        "framing": st.sampled_from(["sse", "json_array"]),
        "max_frame_bytes": st.sampled_from([40, 100, 300]),
        "max_residue_bytes": st.sampled_from([0, 10, None]),
        "max_depth": st.sampled_from([3, None]),
        "on_eof": st.just("discard"),
        "think_tags": st.just(True),
        "raw": st.sampled_from(["unknown", "none"]),
        "after": st.sampled_from([streamfold.Cursor("resp_1", 2, "e1", "sig"), streamfold.Cursor(None, None, "7")]),
    },
)


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, bytes]:
    """A provider and a body, mostly of its own."""
    provider = draw(st.sampled_from(list(PAYLOADS)))
    payloads = [p if isinstance(p, str) else json.dumps(p) for p in PAYLOADS[provider]]
    shape = draw(st.sampled_from(["frames", "frames", "items", "bytes"]))
    if shape == "bytes":
        return provider, draw(st.sampled_from(HEADS)) + draw(st.binary(max_size=30))
    if shape == "items":
        items = draw(st.lists(st.sampled_from(payloads), max_size=6))
        return (
            provider,
            f"[{draw(st.sampled_from([',', chr(10) + ','])).join(items)}{draw(st.sampled_from(['', ']']))}".encode(),
        )
    begin = draw(st.integers(0, len(payloads)))
    frames = st.sampled_from([f"{name}data: {text}".encode() for text in payloads for name in ("", "event: x\n")])
    in_order = [b"data: " + text.encode() + b"\n\n" for text in payloads[:begin]]
    lines = draw(st.lists(st.builds(bytes.__add__, st.sampled_from(ODD) | frames, st.sampled_from(ENDS)), max_size=7))
    at = draw(st.integers(0, len(in_order)))
    return provider, draw(st.sampled_from(HEADS)) + b"".join(in_order[:at] + lines + in_order[at:])


def cut(body: bytes, points: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(point, len(body)) for point in points), len(body)]
    return [body[a:b] for a, b in pairwise(edges)]


def outcome(chunks: list[bytes], provider: str, how: Any, settings: dict[str, Any]) -> tuple[Any, ...]:
    """All that a decoder tells, fed or traced."""
    fed, traced = StreamDecoder(provider, **settings), StreamDecoder(provider, **settings)
    events = [event for chunk in chunks for event in fed.feed(chunk)] + fed.close(how)
    pairs = [pair for chunk in chunks for pair in traced.trace(chunk)] + traced.trace_close(how)
    assert [event for _, caused in pairs for event in caused] == events
    assert not broken(events, ended=how != "cancel")
    assert traced.snapshot() == fed.snapshot()
    assert traced.cursor == fed.cursor
    return events, joined(pairs), fed.snapshot(), fed.cursor


def joined(pairs: list[Any]) -> list[Any]:
    """The pairs, with what no frame caused told once, whether it came in one read or in two."""
    whole: list[Any] = []
    for frame, caused in pairs:
        if frame is None and whole and whole[-1][0] is None:
            whole[-1] = (None, whole[-1][1] + caused)
        else:
            whole.append((frame, caused))
    return whole


def cursors(chunks: list[bytes], provider: str, settings: dict[str, Any]) -> list[Any]:
    """Where the reading stood at each event. Signatures are told at the end of a read."""
    with streamfold.iter_unified(chunks, provider, **settings) as stream:
        return [(event, msgspec.structs.replace(stream.cursor, last_signature=None)) for event in stream]


@given(
    stream=streams(),
    how=st.sampled_from(["eof", "eof", "cut", "cancel"]),
    settings=settings_of_a_decoder,
    points=st.lists(st.integers(0, 600), max_size=6),
)
def test_cuts_change_nothing_that_is_told(
    stream: tuple[str, bytes], how: Any, settings: dict[str, Any], points: list[int]
) -> None:
    provider, body = stream
    whole = outcome([body], provider, how, settings)
    for chunks in (cut(body, points), [body[at : at + 1] for at in range(len(body))]):
        assert outcome(chunks, provider, how, settings) == whole
        assert cursors(chunks, provider, settings) == cursors([body], provider, settings)


@given(
    stream=streams(), settings=settings_of_a_decoder, count=st.integers(0, 12), size=st.sampled_from([1, 50, 10_000])
)
def test_a_stream_that_is_left_stands_where_it_stood(
    stream: tuple[str, bytes], settings: dict[str, Any], count: int, size: int
) -> None:
    provider, body = stream
    with streamfold.iter_unified(cut(body, list(range(0, len(body), size))), provider, **settings) as events:
        got: list[Event] = list(islice(events, count))
        before, cursor = events.snapshot(), events.cursor
    assert events.cursor == cursor
    after = events.snapshot()
    assert after.text == before.text
    assert after.outcome == (before.outcome if before.outcome != "open" else "cancelled")
    folded = streamfold.StreamAccumulator()
    folded.extend(got)
    assert before == folded.snapshot()


@given(stream=streams(), settings=settings_of_a_decoder, points=st.lists(st.integers(0, 600), max_size=4))
def test_frames_are_paired_as_the_framing_has_them(
    stream: tuple[str, bytes], settings: dict[str, Any], points: list[int]
) -> None:
    """All frames, those after the end of the answer too, up to a fault of the framing."""
    provider, body = stream
    decoder = StreamDecoder(provider, **settings)
    pairs = [pair for chunk in cut(body, points) for pair in decoder.trace(chunk)] + decoder.trace_close()
    framing: Any = decoder.framing
    if framing != "auto":
        taken = {name: settings[name] for name in ("max_frame_bytes", "max_depth", "on_eof") if name in settings}
        parsed = streamfold.parse_event_stream([body], framing=framing, **taken)
        frames: list[str] = []
        with suppress(streamfold.FramingError):
            frames.extend(frame.data for frame in parsed)
        assert [frame.data for frame, _ in pairs if frame is not None] == frames
