"""What checkers know of the ways in. Checked by mypy and pyright, never run; an ignored error must be one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import assert_type

import streamfold
from streamfold import (
    AsyncPullStream,
    AsyncUnifiedStream,
    Cursor,
    Event,
    PullStream,
    Raw,
    ServerSentEvent,
    Settings,
    Snapshot,
    StreamAccumulator,
    StreamDecoder,
    TextDelta,
    UnifiedStream,
)


def a_stream_is_an_iterator_and_a_context(chunks: Iterable[bytes]) -> None:
    with streamfold.iter_unified(chunks, "anthropic") as stream:
        assert_type(stream, UnifiedStream)
        for event in stream:
            assert_type(event, Event)
        assert_type(next(stream), Event)
        assert_type(iter(stream), Iterator[Event])
    assert_type(stream.snapshot(), Snapshot)
    assert_type(stream.cursor, Cursor)
    assert_type(list(streamfold.iter_unified(chunks)), list[Event])
    stream.close()


def names_that_annotate(
    source: streamfold.ByteSource,
    later: streamfold.AsyncByteSource,
    provider: streamfold.Provider,
    outcome: streamfold.Outcome,
    reason: streamfold.StopReason,
    kind: streamfold.ErrorKind,
) -> None:
    assert_type(streamfold.fold(source, provider).outcome, streamfold.Outcome)
    assert_type(streamfold.aiter_unified(later, provider).resume(later), AsyncUnifiedStream)
    assert_type(streamfold.iter_unified(source, provider).resume(source), UnifiedStream)
    streamfold.Stop(reason=reason)
    streamfold.ErrorEvent(kind, outcome)
    print(streamfold.nonsense)  # type: ignore[attr-defined]


class Acme(streamfold.BaseNormalizer):
    surface = "acme"
    terminal = "bye"


def a_provider_is_a_name_or_a_class(chunks: list[bytes], payloads: list[dict[str, object]]) -> None:
    assert_type(streamfold.fold(chunks, Acme), Snapshot)
    assert_type(streamfold.iter_unified(payloads, Acme, framing="messages"), UnifiedStream)
    assert_type(StreamDecoder(Acme, framing="jsonl").feed(b""), list[Event])
    streamfold.fold(chunks, 5)  # type: ignore[arg-type]
    streamfold.fold(chunks, "ollama", framing="lines")  # type: ignore[arg-type]


async def and_its_twin(chunks: AsyncIterator[bytes]) -> None:
    async with streamfold.aiter_unified(chunks, "openai-responses") as stream:
        assert_type(stream, AsyncUnifiedStream)
        async for event in stream:
            assert_type(event, Event)
        assert_type(await anext(stream), Event)
    assert_type(stream.snapshot(), Snapshot)
    assert_type(stream.cursor, Cursor)
    assert_type([event async for event in streamfold.aiter_unified(chunks)], list[Event])
    await stream.aclose()
    for _ in stream:  # type: ignore[attr-defined]
        pass


async def an_answer_in_one_call(chunks: list[bytes], later: AsyncIterator[bytes]) -> None:
    assert_type(streamfold.fold(chunks, "gemini", into=StreamAccumulator()), Snapshot)
    assert_type(await streamfold.afold(later, into=None, raw="none"), Snapshot)
    streamfold.fold(chunks, into=Snapshot())  # type: ignore[arg-type]


def settings_are_keywords_with_types(chunks: list[bytes], cursor: Cursor) -> None:
    streamfold.iter_unified(
        chunks,
        "auto",
        framing="sse",
        max_frame_bytes=None,
        max_residue_bytes=1024,
        max_depth=50,
        max_blocks=None,
        on_eof="discard",
        think_tags=True,
        raw="unknown",
        call_id=lambda index: f"call_{index}",
        after=cursor,
    )
    streamfold.iter_unified(chunks, max_frame=1)  # type: ignore[call-arg]
    streamfold.iter_unified(chunks, framing="html")  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, max_frame_bytes="1")  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, on_eof="drop")  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, think_tags="yes")  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, raw="some")  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, call_id=str.upper)  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, after="r_1")  # type: ignore[arg-type]
    streamfold.iter_unified(chunks, provider=None)  # type: ignore[arg-type]
    streamfold.aiter_unified(chunks, max_frame=1)  # type: ignore[call-arg]
    streamfold.iter_traced(chunks, raw="some")  # type: ignore[arg-type]
    streamfold.aiter_traced(chunks, raw="some")  # type: ignore[arg-type]
    streamfold.fold(chunks, raw="some")  # type: ignore[arg-type]
    StreamDecoder("anthropic", max_frame=1)  # type: ignore[call-arg]
    StreamDecoder("anthropic", raw="some")  # type: ignore[arg-type]


def settings_can_be_kept(chunks: list[bytes]) -> None:
    settings: Settings = {"raw": "none", "max_depth": 9}
    streamfold.iter_unified(chunks, **settings)
    StreamDecoder(**settings)
    wrong: Settings = {"raw": "some"}  # type: ignore[typeddict-item]
    del wrong


def each_frame_with_its_events(chunks: list[bytes]) -> None:
    for frame, events in streamfold.iter_traced(chunks, "anthropic"):
        assert_type(frame, ServerSentEvent | None)
        assert_type(events, tuple[Event, ...])


async def and_their_twins(chunks: AsyncIterator[bytes]) -> None:
    async for frame, events in streamfold.aiter_traced(chunks):
        assert_type(frame, ServerSentEvent | None)
        assert_type(events, tuple[Event, ...])
    assert_type(streamfold.aparse_event_stream(chunks), AsyncPullStream[ServerSentEvent])
    assert_type(streamfold.amap_event_stream(chunks, generator), AsyncPullStream[Event])
    async with streamfold.aparse_event_stream(chunks, max_frame_bytes=9) as frames:
        assert_type([frame.data async for frame in frames], list[str])
    streamfold.aparse_event_stream(chunks, framing="binary")  # type: ignore[arg-type]


def frames_alone(chunks: list[bytes]) -> None:
    frames = streamfold.parse_event_stream(chunks, framing="json_array", max_depth=3, on_eof="flush")
    assert_type(frames, PullStream[ServerSentEvent])
    with frames as stream:
        for frame in stream:
            assert_type((frame.event, frame.data, frame.id), tuple[str, str, str])
            assert_type(frame.retry, int | None)
            assert_type(frame.complete, bool)
    streamfold.parse_event_stream(chunks, provider="anthropic")  # type: ignore[call-arg]
    streamfold.parse_event_stream(chunks, framing="auto")  # type: ignore[arg-type]
    streamfold.parse_event_stream(chunks, max_frame_bytes="1")  # type: ignore[arg-type]


def generator(frame: ServerSentEvent) -> Iterator[TextDelta]:
    yield TextDelta(0, frame.data)


def listing(frame: ServerSentEvent) -> list[Event]:
    return [TextDelta(0, frame.data), Raw("x", streamfold.JSONText(frame.data))]


def sometimes(frame: ServerSentEvent) -> tuple[TextDelta, ...] | None:
    return (TextDelta(0, frame.data),) if frame.data else None


class Mapping:
    """A mapping with a state of its own."""

    def __call__(self, frame: ServerSentEvent) -> list[TextDelta]:
        return [TextDelta(0, frame.data)]


def of_payloads(frame: ServerSentEvent) -> list[str]:
    return [frame.data]


def of_text(frame: str) -> list[TextDelta]:
    return [TextDelta(0, frame)]


def a_mapping_of_ones_own(chunks: list[bytes]) -> None:
    for mapped in (
        streamfold.map_event_stream(chunks, generator),
        streamfold.map_event_stream(chunks, listing, max_frame_bytes=9),
        streamfold.map_event_stream(chunks, sometimes, framing="json_array"),
        streamfold.map_event_stream(chunks, Mapping()),
        streamfold.map_event_stream(chunks, lambda frame: [TextDelta(0, frame.data)]),
    ):
        assert_type(mapped, PullStream[Event])
        accumulator = StreamAccumulator()
        for event in mapped:
            accumulator.push(event)
    streamfold.map_event_stream(chunks, of_payloads)  # type: ignore[arg-type]
    streamfold.map_event_stream(chunks, of_text)  # type: ignore[arg-type]
    streamfold.map_event_stream(chunks)  # type: ignore[call-arg]


def sans_io(data: bytes) -> None:
    decoder = StreamDecoder("openai-chat")
    assert_type(decoder.feed(data), list[Event])
    assert_type(decoder.feed_payload({"id": "x"}), list[Event])
    assert_type(decoder.feed_payload("{}"), list[Event])
    assert_type(decoder.close(), list[Event])
    assert_type(decoder.close("cut"), list[Event])
    assert_type(decoder.snapshot(), Snapshot)
    assert_type(decoder.cursor, Cursor)
    assert_type(decoder.ended, bool)
    decoder.reconnect()
    decoder.feed("text")  # type: ignore[arg-type]
    decoder.close("later")  # type: ignore[arg-type]
    decoder.feed_payload(5)  # type: ignore[arg-type]


def parsers(data: bytes) -> None:
    events = streamfold.SSEParser(max_frame_bytes=9)
    events.feed(data)
    assert_type(list(events), list[ServerSentEvent])
    assert_type(events.retry_ms, int | None)
    assert_type((events.last_event_id, events.residue), tuple[str, str])
    assert_type(events.replacements, int)
    items = streamfold.JSONArrayStreamParser(max_depth=None)
    items.feed(data)
    assert_type(list(items), list[str])
    events.feed("text")  # type: ignore[arg-type]
    items.feed("text")  # type: ignore[arg-type]
