"""Going on with an answer over another connection: whatever broke it off, what comes out is the whole answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest

import streamfold
from streamfold import AsyncUnifiedStream, ErrorEvent, Event, Snapshot, StreamDecoder, UnifiedStream, UsageError
from streamfold.decoder import CloseHow
from tests.conftest import ROOT
from tests.samples import CHAT, RESPONSES_PAYLOADS, cut, sse

RECORDED = {
    # recordings whose answers come to their end
    path.stem: path.read_bytes()
    for path in sorted((ROOT / "examples" / "recordings").glob("*.sse"))
    if path.stem not in ("openai-responses-cut", "anthropic-overloaded")
}
NUMBERED = [name for name in RECORDED if "responses" in name]
FRAMES = [sse([payload], names=True) for payload in RESPONSES_PAYLOADS]


def frames_of(body: bytes) -> list[bytes]:
    end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    return [frame + end for frame in body.split(end) if frame.strip()]


def breaking(chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield from chunks
    raise ConnectionResetError("gone")


def read(stream: UnifiedStream) -> list[Event]:
    events: list[Event] = []
    try:
        for event in stream:
            events.append(event)  # noqa: PERF402 - what came before it raised is what matters
    except ConnectionResetError:
        pass
    return events


def pieces(events: Iterable[Event]) -> list[Any]:
    """What only comes once: every piece, every beginning, every whole call."""
    once = ("text_delta", "reasoning_delta", "tool_call_start", "tool_call_delta", "tool_call_done", "block_start")
    return [event for event in events if event.type in once]


def whole(body: bytes) -> tuple[list[Any], Snapshot]:
    stream = streamfold.iter_unified([body])
    return pieces(stream), stream.snapshot()


# -- what breaks an answer off, before the frame ``at`` ----------------------------------------------------------------


def raises(frames: list[bytes], at: int) -> tuple[UnifiedStream, list[Event]]:
    stream = streamfold.iter_unified(breaking(frames[:at]))
    return stream, read(stream)


def raises_in_a_frame(frames: list[bytes], at: int) -> tuple[UnifiedStream, list[Event]]:
    stream = streamfold.iter_unified(breaking([b"".join(frames[:at]) + frames[at][:25]]))
    return stream, read(stream)


def ends(frames: list[bytes], at: int) -> tuple[UnifiedStream, list[Event]]:
    stream = streamfold.iter_unified(frames[:at])
    return stream, read(stream)


def ends_in_a_frame(frames: list[bytes], at: int) -> tuple[UnifiedStream, list[Event]]:
    stream = streamfold.iter_unified([*frames[:at], frames[at][:-9]])
    return stream, read(stream)


def is_left(frames: list[bytes], at: int) -> tuple[UnifiedStream, list[Event]]:
    """By its reader, who was handed half of the events that a read held."""
    stream = streamfold.iter_unified([b"".join(frames[: at + 1])])
    with stream:
        events = list(islice(stream, at))
    return stream, events


BROKEN: dict[str, Callable[[list[bytes], int], tuple[UnifiedStream, list[Event]]]] = {
    "the source raises": raises,
    "the source raises in a frame": raises_in_a_frame,
    "the source ends": ends,
    "the source ends in a frame": ends_in_a_frame,
    "it is left": is_left,
}


@pytest.mark.parametrize("how", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("name", NUMBERED)
def test_a_numbered_answer_is_taken_up_by_its_cursor(name: str, how: Any) -> None:
    frames = frames_of(RECORDED[name])
    once, answer = whole(RECORDED[name])
    for at in range(len(frames) - 1):
        stream, events = how(frames, at)
        last = stream.cursor.last_sequence
        again = stream.resume(frames[0 if last is None else last + 1 :])
        events += read(again)
        assert pieces(events) == once, at
        assert again.snapshot() == answer == stream.snapshot()


@pytest.mark.parametrize("how", [raises, raises_in_a_frame])
@pytest.mark.parametrize("name", RECORDED)
def test_any_answer_is_taken_up_where_the_frames_go_on(name: str, how: Any) -> None:
    frames = frames_of(RECORDED[name])
    once, answer = whole(RECORDED[name])
    for at in range(1, len(frames)):
        stream, events = how(frames, at)
        if stream.snapshot().outcome == "complete":
            break  # what is behind its end is nothing to go on with
        again = stream.resume(frames[at:])
        events += read(again)
        assert again.snapshot() == answer, at
        if "gemini" not in name and "chat" not in name:  # where a cut shows calls that were held back
            assert pieces(events) == once, at


def test_it_may_break_again_and_again() -> None:
    once, answer = whole(b"".join(FRAMES))
    stream = streamfold.iter_unified(breaking([]), "openai-responses")
    events = read(stream)
    for number in range(len(FRAMES)):
        stream = stream.resume(breaking([*FRAMES[: number + 1], b"data: {half"]))
        events += read(stream)
    assert pieces(events) == once
    assert stream.snapshot() == answer


def test_what_was_said_of_the_break_is_unsaid() -> None:
    stream, events = raises(FRAMES, 5)
    assert isinstance(events[-1], ErrorEvent)
    assert (stream.snapshot().outcome, events[-1].kind) == ("failed", "transport")
    again = stream.resume(FRAMES[5:])
    assert (again.snapshot().outcome, again.snapshot().error) == ("open", None)
    assert [block.complete for block in again.snapshot().blocks] == [False]
    assert again.cursor.last_sequence == 4


def test_what_is_left_out_is_reported() -> None:
    stream, _ = raises(FRAMES, 4)
    again = stream.resume(FRAMES[6:])
    assert [event.message for event in again if isinstance(event, ErrorEvent)] == ["missing sequence numbers: 4 to 5"]


def test_a_page_in_the_place_of_the_rest_is_no_end() -> None:
    stream, events = raises(FRAMES, 5)
    again = stream.resume([b"<html>Bad Gateway</html>"])
    assert [event.code for event in again if isinstance(event, ErrorEvent)] == ["not_a_stream"]
    events += read(again.resume(FRAMES[5:]))
    assert pieces(events) == whole(b"".join(FRAMES))[0]


def test_an_answer_at_its_end_gives_nothing_more() -> None:
    reads: list[int] = []

    def rest() -> Iterator[bytes]:
        reads.append(1)
        yield FRAMES[0]

    stream = streamfold.iter_unified(FRAMES, "openai-responses")
    list(stream)
    assert list(stream.resume(rest())) == []
    assert (reads, stream.snapshot().outcome) == ([], "complete")


def test_what_nobody_was_handed_of_an_answer_at_its_end() -> None:
    once, answer = whole(CHAT)
    for count in range(1, len(list(streamfold.iter_unified([CHAT])))):
        with streamfold.iter_unified([CHAT]) as stream:
            events = list(islice(stream, count))
        again = stream.resume(breaking([]))
        events += list(again)
        assert (pieces(events), again.snapshot()) == (once, answer)


def test_a_fold_has_nothing_to_go_on_with() -> None:
    into = streamfold.StreamAccumulator()
    decoder = StreamDecoder("openai-responses")
    decoder.fold_into(into)
    decoder.feed(b"".join(FRAMES[:5]))
    decoder.close("cut")
    assert decoder.reconnect() == []
    assert decoder.ended
    assert (decoder.snapshot().outcome, into.snapshot().outcome) == ("failed", "failed")


def test_a_decoder_that_was_closed_goes_on() -> None:
    hows: tuple[CloseHow, ...] = ("cut", "eof", "cancel")
    for how in hows:
        decoder = StreamDecoder("openai-responses")
        events = decoder.feed(b"".join(FRAMES[:5]))
        decoder.close(how)
        assert decoder.reconnect() == []
        events += decoder.feed(b"".join(FRAMES))
        assert (pieces(events), decoder.snapshot()) == whole(b"".join(FRAMES))


class Locked(streamfold.OpenAIResponsesNormalizer):
    """One that cannot be copied."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.lock = threading.Lock()


def test_what_cannot_be_copied_stays_broken() -> None:
    provider: Any = Locked
    stream = streamfold.iter_unified(breaking(FRAMES[:5]), provider)
    read(stream)
    assert list(stream.resume(FRAMES[5:])) == []
    assert stream.snapshot().outcome == "failed"


def test_only_one_stream_goes_on() -> None:
    stream, _ = raises(FRAMES, 4)
    stream.resume(FRAMES[4:])
    with pytest.raises(UsageError, match="another stream"):
        stream.resume(FRAMES[4:])
    stream, _ = raises(FRAMES, 4)
    with pytest.raises(UsageError, match="no source of bytes"):
        stream.resume(5)
    assert stream.resume(FRAMES[4:]).snapshot().outcome == "open"


# -- the same, awaited ------------------------------------------------------------------------------------------------


async def later(chunks: Iterable[bytes], fault: Exception | None = None) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
    if fault is not None:
        raise fault


def test_the_async_twin() -> None:
    once, answer = whole(b"".join(FRAMES))

    async def taken_up(at: int) -> None:
        events: list[Event] = []
        stream: AsyncUnifiedStream = streamfold.aiter_unified(later(FRAMES[:at], OSError("gone")))
        with suppress(OSError):
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before it raised is what matters
        again = stream.resume(later(cut(b"".join(FRAMES), 100)))
        with pytest.raises(UsageError, match="another stream"):
            stream.resume(later([]))
        events += [event async for event in again]
        assert (pieces(events), again.snapshot()) == (once, answer)

    async def left(at: int) -> None:
        events: list[Event] = []
        async with streamfold.aiter_unified(later([b"".join(FRAMES)])) as stream:
            with pytest.raises(UsageError, match="is open"):
                stream.resume(later([]))
            async for event in stream:
                events.append(event)
                if len(events) > at:
                    break
        events += [event async for event in stream.resume(later(FRAMES))]
        assert (pieces(events), stream.snapshot()) == (once, answer)

    for at in range(len(FRAMES) - 1):
        asyncio.run(taken_up(at))
        asyncio.run(left(at))
