"""The drivers over sources that are pulled: what they read, when they read it, and that they always close it."""

from __future__ import annotations

import gc
import gzip
import io
import queue
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import httpx2
import pytest

import streamfold
from streamfold import (
    Done,
    ErrorEvent,
    Event,
    FrameTooLarge,
    Malformed,
    Raw,
    ServerSentEvent,
    StreamAccumulator,
    TextDelta,
    Truncated,
    UsageError,
    encode_event,
)
from tests.samples import ANSWERS, ANTHROPIC, CHAT, RESPONSES, array, chat, chat_text, cut, sse
from tests.sources import Server, Source, http_server
from tests.ways import folded

FRAMES = [frame + b"\n\n" for frame in CHAT.split(b"\n\n") if frame]  # of an answer of four events and a sentinel
PIECES = [event.text for event in streamfold.iter_unified([CHAT]) if isinstance(event, TextDelta)]


def as_text(frame: ServerSentEvent) -> list[Event]:
    """A mapping of one's own: every frame is a piece of text."""
    return [TextDelta(0, frame.data)]


Opening = Callable[[Any], Any]
STREAMS: dict[str, Opening] = {
    "iter_unified": lambda source: streamfold.iter_unified(source, "openai-chat"),
    "iter_traced": lambda source: streamfold.iter_traced(source, "openai-chat"),
    "parse_event_stream": streamfold.parse_event_stream,
    "map_event_stream": lambda source: streamfold.map_event_stream(source, as_text),
}
every_stream = pytest.mark.parametrize("opening", STREAMS.values(), ids=STREAMS.keys())


def drained(stream: Any) -> tuple[list[Any], BaseException | None]:
    """What came, and what was raised in the end, or by leaving."""
    got: list[Any] = []
    try:
        with stream:
            for item in stream:
                got.append(item)  # noqa: PERF402 - it stays when the next one raises
    except BaseException as fault:  # noqa: BLE001 - whatever it is, a test looks at it
        return got, fault
    return got, None


# -- what can be read -------------------------------------------------------------------------------------------------


class WithIterBytes:
    """As responses of httpx are; it can be iterated too, by something that is no bytes."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def iter_bytes(self) -> Iterator[bytes]:
        yield from self.chunks

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("not asked for")


class WithIterContent:
    """As responses of requests are: without a size it gives whatever has arrived."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def iter_content(self, chunk_size: int | None) -> Iterator[bytes]:
        assert chunk_size is None
        yield from self.chunks

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("it would give 128 bytes at a time")


class WithRead:
    """A file that has ``read`` alone."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = [*chunks, b""]

    def read(self, size: int) -> bytes:
        assert size > 0
        return self.chunks.pop(0)


class WithRead1(WithRead):
    """One that would wait for the whole amount, were it not asked for what is there."""

    def read1(self, size: int) -> bytes:
        return super().read(size)

    def read(self, size: int) -> bytes:
        raise AssertionError("read would wait for all of it")


class Iterable:
    """Something that only can be iterated."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.chunks)


def through_a_pipe(chunks: list[bytes]) -> Any:
    near, far = socket.socketpair()
    with near:
        for chunk in chunks:
            near.sendall(chunk)
    file = far.makefile("rb")
    far.close()
    return file


def through_a_queue(chunks: list[bytes]) -> Iterator[bytes]:
    waiting: queue.Queue[bytes | None] = queue.Queue()
    for chunk in chunks:
        waiting.put(chunk)
    waiting.put(None)
    return iter(waiting.get, None)


SOURCES: dict[str, Callable[[list[bytes]], Any]] = {
    "a list": list,
    "a tuple": tuple,
    "an iterator": iter,
    "a generator": lambda chunks: (chunk for chunk in chunks),
    "an iterable": Iterable,
    "empty chunks between": lambda chunks: [piece for chunk in chunks for piece in (b"", chunk, b"")],
    "bytes": b"".join,
    "a bytearray": lambda chunks: bytearray(b"".join(chunks)),
    "a view": lambda chunks: memoryview(b"".join(chunks)),
    "bytearrays": lambda chunks: [bytearray(chunk) for chunk in chunks],
    "views": lambda chunks: [memoryview(chunk) for chunk in chunks],
    "BytesIO": lambda chunks: io.BytesIO(b"".join(chunks)),
    "gzip": lambda chunks: gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(b"".join(chunks)))),
    "a socket's file": through_a_pipe,
    "a queue": through_a_queue,
    "iter_bytes": WithIterBytes,
    "iter_content": WithIterContent,
    "read": WithRead,
    "read1": WithRead1,
}


@pytest.mark.parametrize("made", SOURCES.values(), ids=SOURCES.keys())
def test_a_source(made: Callable[[list[bytes]], Any]) -> None:
    for size in (7, 100_000):
        source = made(cut(ANTHROPIC, size))
        with streamfold.iter_unified(source, "anthropic") as stream:
            assert list(stream) == list(streamfold.iter_unified([ANTHROPIC], "anthropic"))
        assert streamfold.fold(made(cut(ANTHROPIC, size))) == stream.snapshot()


@pytest.mark.parametrize("buffering", [-1, 0], ids=["buffered", "unbuffered"])
def test_a_file(tmp_path: Path, buffering: int) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(RESPONSES)
    file = path.open("rb", buffering=buffering)
    assert streamfold.fold(file).text == "Hello"
    assert file.closed


NO_SOURCES: dict[str, Any] = {"None": None, "a number": 5, "text": CHAT.decode(), "a thing": object()}


@every_stream
@pytest.mark.parametrize("source", NO_SOURCES.values(), ids=NO_SOURCES.keys())
def test_no_source(source: Any, opening: Opening) -> None:
    with pytest.raises(UsageError, match="no source of bytes"):
        opening(source)


@every_stream
@pytest.mark.parametrize("chunk", ["data: x\n\n", 5, ["data"]], ids=["text", "a number", "a list"])
def test_a_source_of_no_bytes(chunk: Any, opening: Opening) -> None:
    source = Source([FRAMES[0], chunk])
    got, raised = drained(opening(source))
    assert got
    assert isinstance(raised, UsageError)
    assert type(chunk).__name__ in str(raised)
    assert source.closed == 1


@every_stream
def test_a_source_that_gives_none(opening: Opening) -> None:
    """As a file does that would block."""
    got, raised = drained(opening(iter([FRAMES[0], None])))
    assert got
    assert isinstance(raised, UsageError)


# -- pull only --------------------------------------------------------------------------------------------------------


@every_stream
def test_nothing_is_read_before_it_is_asked_for(opening: Opening) -> None:
    source = Source(FRAMES)
    with opening(source) as stream:
        iter(stream)
        assert source.reads == 0
        next(stream)
        assert source.reads == 1
    assert source.reads == 1


def test_each_event_is_handed_out_before_the_next_read() -> None:
    source = Source(FRAMES)
    with streamfold.iter_unified(source, "openai-chat") as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                assert FRAMES[source.reads - 1].find(event.text.encode()) > 0
    assert source.reads == len(FRAMES)


def test_a_read_may_hold_no_frame() -> None:
    source = Source([b": hi\n", b"\n", FRAMES[0][:9], FRAMES[0][9:], *FRAMES[1:]])
    with streamfold.iter_unified(source, "openai-chat") as stream:
        next(stream)
        assert source.reads == 4
        assert [event.type for event in stream][-1] == "done"


TERMINALS = {"openai-chat": CHAT, "anthropic": ANTHROPIC, "openai-responses": RESPONSES}


@pytest.mark.parametrize("provider", TERMINALS)
def test_nothing_is_read_after_the_terminal_sign(provider: str) -> None:
    """The connection stays open: another read would wait for ever."""
    source = Source(cut(TERMINALS[provider], 40), fails=AssertionError("it was read"))
    with streamfold.iter_unified(source, provider) as stream:
        assert isinstance(list(stream)[-1], Done)
    assert source.closed == 1
    source = Source(cut(TERMINALS[provider], 40), fails=AssertionError("it was read"))
    assert streamfold.fold(source, provider).outcome == "complete"


def test_nothing_is_read_after_a_fatal_error() -> None:
    error = b'data: {"error":{"message":"no"}}\n\ndata: [DONE]\n\n'
    source = Source([FRAMES[0], error, b"more"], fails=AssertionError("it was read"))
    events = list(streamfold.iter_unified(source, "openai-chat"))
    assert isinstance(events[-1], ErrorEvent)
    assert source.reads == 2


# -- closing ----------------------------------------------------------------------------------------------------------


class Left(Exception):
    """The consumer's own."""


def leave_by_break(stream: Any) -> None:
    with stream:
        for _ in stream:
            break


def leave_by_exception(stream: Any) -> None:
    with pytest.raises(Left), stream:
        raise Left(next(stream))


def leave_before_the_first(stream: Any) -> None:
    with stream:
        pass


def close_unopened(stream: Any) -> None:
    stream.close()


def close_inside_the_loop(stream: Any) -> None:
    seen = 0
    for _ in stream:
        seen += 1
        stream.close()
    assert seen == 1


def close_after_one(stream: Any) -> None:
    next(stream)
    stream.close()
    with pytest.raises(StopIteration):
        next(stream)


def close_twice(stream: Any) -> None:
    with stream:
        next(stream)
        stream.close()
        stream.close()
    assert list(stream) == []


def exhaust(stream: Any) -> None:
    with stream:
        assert list(stream)
        assert list(stream) == []


def exhaust_without_with(stream: Any) -> None:
    for _ in stream:
        pass


ENDS: dict[str, Callable[[Any], None]] = {
    "break": leave_by_break,
    "an exception": leave_by_exception,
    "before the first event": leave_before_the_first,
    "close, never opened": close_unopened,
    "close inside the loop": close_inside_the_loop,
    "close after one": close_after_one,
    "close twice": close_twice,
    "the end": exhaust,
    "the end of a plain loop": exhaust_without_with,
}


@every_stream
@pytest.mark.parametrize("chunks", [FRAMES, [CHAT]], ids=["frame by frame", "at once"])
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_source_is_closed_exactly_once(end: Callable[[Any], None], chunks: list[bytes], opening: Opening) -> None:
    source = Source(chunks)
    end(opening(source))
    assert source.closed == 1


def test_a_traced_stream_may_be_left_after_any_frame() -> None:
    for chunks in (FRAMES, [CHAT], cut(CHAT, 50)):
        for count in range(len(FRAMES)):
            source = Source(chunks)
            with streamfold.iter_traced(source, "openai-chat") as stream:
                for _ in range(count):
                    next(stream)
            assert source.closed == 1


@every_stream
def test_a_stream_that_is_forgotten_closes_its_source(opening: Opening) -> None:
    source = Source(FRAMES)

    def consume() -> None:
        for _ in opening(source):
            return

    consume()
    gc.collect()
    assert source.closed == 1


@every_stream
def test_a_generator_is_closed_where_it_stands(opening: Opening) -> None:
    log: list[str] = []

    def source() -> Iterator[bytes]:
        try:
            yield from FRAMES
            log.append("ended")
        finally:
            log.append("closed")

    with opening(source()) as stream:
        next(stream)
    assert log == ["closed"]


class Response:
    """Whose body is a generator: both have to be closed."""

    def __init__(self, *, fails: bool) -> None:
        self.log: list[str] = []
        self.fails = fails

    def iter_bytes(self) -> Iterator[bytes]:
        try:
            yield from FRAMES
        finally:
            self.log.append("body")
            if self.fails:
                raise OSError("closing the body")

    def close(self) -> None:
        self.log.append("response")


@every_stream
@pytest.mark.parametrize("fails", [False, True], ids=["well", "and one fails"])
def test_the_body_and_its_response_are_both_closed(fails: bool, opening: Opening) -> None:
    response = Response(fails=fails)
    stream = opening(response)
    next(stream)
    if fails:
        with pytest.raises(OSError, match="closing the body"):
            stream.close()
    else:
        stream.close()
    assert response.log == ["body", "response"]


@every_stream
def test_a_source_that_fails_to_close_is_closed_once(opening: Opening) -> None:
    source = Source(FRAMES, closing_fails=OSError("closing"))
    stream = opening(source)
    next(stream)
    with pytest.raises(OSError, match="closing"):
        stream.close()
    stream.close()
    assert source.closed == 1


def test_a_source_that_fails_to_close_at_the_end_loses_no_event() -> None:
    source = Source([CHAT], closing_fails=OSError("closing"))
    stream = streamfold.iter_unified(source, "openai-chat")
    got, raised = drained(stream)
    assert got == list(streamfold.iter_unified([CHAT], "openai-chat"))
    assert isinstance(raised, OSError)
    assert list(stream) == []
    assert source.closed == 1
    assert stream.snapshot().outcome == "complete"


@every_stream
def test_another_thread_can_close_a_stream_that_waits(opening: Opening) -> None:
    """A watchdog closes the connection, so that the read ends."""

    class Hanging(Source):
        waits, gone = threading.Event(), threading.Event()

        def read_next(self) -> bytes | None:
            if self.reads == len(self.chunks):
                self.waits.set()
                self.gone.wait()
                raise OSError("closed under the read")
            return super().read_next()

        def close(self) -> None:
            super().close()
            self.gone.set()

    source = Hanging(FRAMES[:1])
    stream = opening(source)

    def watch() -> None:
        source.waits.wait()
        stream.close()

    watchdog = threading.Thread(target=watch)
    watchdog.start()
    _, raised = drained(stream)
    watchdog.join()
    assert isinstance(raised, OSError)
    assert str(raised) == "closed under the read"
    assert source.closed == 1


@every_stream
def test_a_generator_that_another_thread_closes_is_closed_when_its_read_returns(opening: Opening) -> None:
    waits, goes_on, log = threading.Event(), threading.Event(), list[str]()

    def source() -> Iterator[bytes]:
        try:
            yield FRAMES[0]
            waits.set()
            goes_on.wait()
            yield from FRAMES[1:]
        finally:
            log.append("closed")

    stream = opening(source())

    def watch() -> None:
        waits.wait()
        stream.close()
        log.append("asked for")
        goes_on.set()

    watchdog = threading.Thread(target=watch)
    watchdog.start()
    got, raised = drained(stream)
    watchdog.join()
    assert raised is None
    assert log == ["asked for", "closed"]
    assert got == drained(opening(FRAMES[:1]))[0][: len(got)]  # nothing of what came after it was asked for


@every_stream
def test_a_generator_may_close_the_stream_that_reads_it(opening: Opening) -> None:
    log = list[str]()

    def source() -> Iterator[bytes]:
        try:
            yield FRAMES[0]
            stream.close()
            yield from FRAMES[1:]
        finally:
            log.append("closed")

    stream = opening(source())
    got, raised = drained(stream)
    assert raised is None
    assert log == ["closed"]
    assert got == drained(opening(FRAMES[:1]))[0][: len(got)]


@every_stream
@pytest.mark.parametrize("first", [KeyboardInterrupt, SystemExit, GeneratorExit, OSError])
def test_what_ended_a_read_is_not_hidden_by_a_source_that_fails_to_close(
    first: type[BaseException], opening: Opening
) -> None:
    source = Source(FRAMES[:2], fails=first(), closing_fails=RuntimeError("closing"))  # type: ignore[arg-type]
    with pytest.raises(first), opening(source) as stream:
        list(stream)
    assert source.closed == 1


@every_stream
def test_what_the_consumer_raised_is_not_hidden_by_a_source_that_fails_to_close(opening: Opening) -> None:
    source = Source(FRAMES, closing_fails=RuntimeError("closing"))

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), opening(source) as stream:
        interrupted(next(iter(stream)))
    assert source.closed == 1


# -- faults of the source ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 40, 10_000])
def test_a_source_that_raises_ends_in_an_event_and_then_in_its_exception(size: int) -> None:
    fault = OSError("gone")
    source = Source(cut(CHAT[:-40], size), fails=fault)
    stream = streamfold.iter_unified(source, "openai-chat")
    got, raised = drained(stream)
    assert raised is fault
    assert [event.type for event in got].count("error") == 1
    assert (got[-1].kind, got[-1].fatal, got[-1].retryable) == ("transport", True, True)
    assert source.closed == 1
    assert stream.snapshot() == folded(got)
    assert stream.snapshot().outcome == "failed"


def test_a_source_that_raises_at_once() -> None:
    got, raised = drained(streamfold.iter_unified(Source([], fails=OSError("gone")), "openai-chat"))
    assert [event.type for event in got] == ["start", "error"]
    assert isinstance(raised, OSError)


def test_a_source_that_raises_and_fails_to_close_raises_what_was_first() -> None:
    source = Source(FRAMES[:2], fails=OSError("gone"), closing_fails=ValueError("closing"))
    got, raised = drained(streamfold.iter_unified(source, "openai-chat"))
    assert got[-1].kind == "transport"
    assert isinstance(raised, OSError)
    assert source.closed == 1


def test_a_frame_that_broke_off_is_dropped() -> None:
    source = Source([FRAMES[0], FRAMES[1][:-1]], fails=OSError("gone"))
    got, _ = drained(streamfold.iter_unified(source, "openai-chat"))
    assert not [event for event in got if isinstance(event, TextDelta)]
    assert got[-1].kind == "transport"


def test_what_is_no_fault_of_the_source_is_no_event() -> None:
    source = Source(FRAMES[:2], fails=KeyboardInterrupt())
    stream = streamfold.iter_unified(source, "openai-chat")
    got, raised = drained(stream)
    assert isinstance(raised, KeyboardInterrupt)
    assert not [event for event in got if isinstance(event, ErrorEvent)]
    assert source.closed == 1
    assert stream.snapshot().outcome == "cancelled"


@pytest.mark.parametrize("name", ["parse_event_stream", "map_event_stream"])
def test_the_neutral_layer_adds_no_event(name: str) -> None:
    source = Source(FRAMES[:2], fails=OSError("gone"))
    got, raised = drained(STREAMS[name](source))
    assert len(got) == 2
    assert isinstance(raised, OSError)
    assert source.closed == 1


def test_a_traced_cut_is_an_event_of_no_frame() -> None:
    source = Source(FRAMES[:2], fails=OSError("gone"))
    got, raised = drained(streamfold.iter_traced(source, "openai-chat"))
    assert got[-1][0] is None
    assert [event.type for event in got[-1][1]][-1] == "error"
    assert isinstance(raised, OSError)
    assert source.closed == 1


# -- fold -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "outcome"), [(OSError("gone"), "failed"), (KeyboardInterrupt(), "cancelled")], ids=["OSError", "Ctrl-C"]
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_fold_into_keeps_the_part_that_came(size: int, fault: BaseException, outcome: str) -> None:
    part = StreamAccumulator()
    source = Source(cut(b"".join(FRAMES[:2]), size), fails=fault)
    with pytest.raises(type(fault)):
        streamfold.fold(source, "openai-chat", into=part)
    assert part.text() == PIECES[0]
    assert part.snapshot().outcome == outcome
    assert not part.snapshot().blocks[0].complete
    assert source.closed == 1


def test_fold_into_is_what_fold_returns() -> None:
    into = StreamAccumulator()
    answer = streamfold.fold([CHAT], "openai-chat", into=into)
    assert into.snapshot() == answer == streamfold.fold([CHAT], "openai-chat")


def test_fold_closes_its_source() -> None:
    source = Source(FRAMES)
    assert streamfold.fold(source, "openai-chat").text == "Hello"
    assert source.closed == 1


def test_fold_raises_nothing_for_what_came() -> None:
    answer = streamfold.fold([b"<html>"], "anthropic")
    assert answer.outcome == "failed"


# -- as far as it was handed out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 30, 100_000])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_snapshot_is_of_the_events_that_were_handed_out(name: str, size: int) -> None:
    got: list[Event] = []
    with streamfold.iter_unified(cut(ANSWERS[name], size), name) as stream:
        assert stream.snapshot() == folded([])
        for event in stream:
            got.append(event)
            assert stream.snapshot() == folded(got)
    assert stream.snapshot() == folded(got)


@pytest.mark.parametrize("size", [30, 100_000])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_snapshot_after_leaving_early_is_cancelled(name: str, size: int) -> None:
    events = list(streamfold.iter_unified([ANSWERS[name]], name))
    for count in range(len(events)):
        with streamfold.iter_unified(cut(ANSWERS[name], size), name) as stream:
            for _ in range(count):
                next(stream)
        accumulator = StreamAccumulator()
        accumulator.extend(events[:count])
        accumulator.close("cancelled")
        assert stream.snapshot() == accumulator.snapshot()
        assert stream.snapshot() is stream.snapshot()


def test_leaving_at_the_last_event_is_no_cancel() -> None:
    with streamfold.iter_unified([CHAT], "openai-chat") as stream:
        for event in stream:
            if isinstance(event, Done):
                break
    assert stream.snapshot().outcome == "complete"


# -- frames with their events -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 30, 100_000])
@pytest.mark.parametrize("provider", ["auto", "its own"])
@pytest.mark.parametrize("name", ANSWERS)
def test_traced_events_are_the_streams_events_and_traced_frames_its_frames(name: str, provider: str, size: int) -> None:
    provider = name if provider == "its own" else provider
    pairs = list(streamfold.iter_traced(cut(ANSWERS[name], size), provider))
    events = [event for _, caused in pairs for event in caused]
    assert events == list(streamfold.iter_unified([ANSWERS[name]], provider))
    assert [frame for frame, _ in pairs] == list(streamfold.parse_event_stream([ANSWERS[name]]))
    assert pairs == list(streamfold.iter_traced([ANSWERS[name]], provider))


@pytest.mark.parametrize("size", [1, 30, 100_000])
def test_frames_after_the_terminal_sign_cause_nothing(size: int) -> None:
    late = sse([chat({"content": "late"}), "[DONE]"])
    pairs = list(streamfold.iter_traced(cut(CHAT + late, size), "openai-chat"))
    frames = list(streamfold.parse_event_stream([CHAT + late]))
    assert [frame for frame, _ in pairs] == frames
    assert [caused for _, caused in pairs[-2:]] == [(), ()]
    assert pairs[-3][1][-1].type == "done"


@pytest.mark.parametrize("size", [1, 30, 100_000])
def test_a_truncation_is_caused_by_no_frame(size: int) -> None:
    body = b"".join(FRAMES[:2])
    pairs = list(streamfold.iter_traced(cut(body, size), "openai-chat"))
    assert [frame is None for frame, _ in pairs] == [False, False, True]
    assert [event.type for event in pairs[-1][1]] == ["block_end", "error"]


@pytest.mark.parametrize("size", [1, 30, 100_000])
def test_an_item_of_an_array_is_a_frame_of_data(size: int) -> None:
    body = array([chat({"content": "Hel"}), chat({"content": "lo"}), chat(finish="stop")])
    pairs = list(streamfold.iter_traced(cut(body, size), "openai-chat"))
    items = [frame.data for frame in streamfold.parse_event_stream([body], framing="json_array")]
    assert [frame.data for frame, _ in pairs if frame is not None] == items
    assert [event for _, caused in pairs for event in caused] == list(streamfold.iter_unified([body], "openai-chat"))


def test_items_of_an_array_after_the_end_cause_nothing() -> None:
    chunks = [b'[{"error":{"message":"no"}}', b',{"a":1}', b',{"b":1}]']
    pairs = list(streamfold.iter_traced(chunks, "openai-chat"))
    assert [frame.data for frame, _ in pairs if frame] == ['{"error":{"message":"no"}}', '{"a":1}', '{"b":1}']
    assert [len(caused) for _, caused in pairs] == [2, 0, 0]


def test_an_unclosed_frame_after_the_terminal_sign_causes_nothing() -> None:
    pairs = list(streamfold.iter_traced([CHAT, b"data: late"], "openai-chat"))
    assert [frame.data for frame, _ in pairs if frame][-1] == "late"


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        pytest.param(CHAT, {"think_tags": True}, id="tags"),
        pytest.param(array([chat({"content": "Hello"}), chat(finish="stop")]), {}, id="array"),
    ],
)
def test_empty_reads_cause_no_pairs(body: bytes, settings: Any) -> None:
    chunks = [piece for chunk in cut(body, 50) for piece in (chunk, b"", b"")]
    assert list(streamfold.iter_traced(chunks, "openai-chat", **settings)) == list(
        streamfold.iter_traced([body], "openai-chat", **settings)
    )


# -- frames alone -----------------------------------------------------------------------------------------------------


FAULTS: dict[str, tuple[bytes, dict[str, Any], list[str], type[Exception] | None]] = {
    "a whole stream": (b"data: 1\n\ndata: 2\n\n", {}, ["1", "2"], None),
    "a tail": (b"data: 1\n\ndata: 2", {}, ["1", "2"], None),
    "a tail by the browser's rule": (b"data: 1\n\ndata: 2", {"on_eof": "discard"}, ["1"], None),
    "a frame too large": (b"data: 1\n\ndata: 234567\n\ndata: 3\n\n", {"max_frame_bytes": 9}, ["1"], FrameTooLarge),
    "an array": (b'[1,{"a":[2]}]', {"framing": "json_array"}, ["1", '{"a":[2]}'], None),
    "an array that is cut": (b"[1,{", {"framing": "json_array"}, ["1"], Truncated),
    "an array that is none": (b"[1,}", {"framing": "json_array"}, ["1"], Malformed),
    "an item too deep": (b"[1,[[2]]]", {"framing": "json_array", "max_depth": 1}, ["1"], streamfold.TooDeep),
    "no array": (b"<html>", {"framing": "json_array"}, [], streamfold.NotJSONArray),
    "nothing": (b"", {}, [], None),
    "nothing in the place of an array": (b"", {"framing": "json_array"}, [], streamfold.Empty),
}


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize(("body", "settings", "data", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_frames_come_before_the_fault(
    body: bytes, settings: Any, data: list[str], fault: type[Exception] | None, size: int
) -> None:
    for opening in (streamfold.parse_event_stream, mapped):
        source = Source(cut(body, size))
        got, raised = drained(opening(source, **settings))
        assert [item.data if isinstance(item, ServerSentEvent) else item.text for item in got] == data
        assert raised is None if fault is None else type(raised) is fault
        assert source.closed == 1


def mapped(source: Any, **settings: Any) -> Any:
    return streamfold.map_event_stream(source, as_text, **settings)


def test_frames_have_all_their_fields() -> None:
    body = b"\xef\xbb\xbfid: 7\nevent: note\nretry: 10\ndata: a\ndata: b\n\n: ping\n\ndata: c"
    assert list(streamfold.parse_event_stream([body])) == [
        ServerSentEvent("note", "a\nb", "7", 10, True),
        ServerSentEvent("message", "c", "7", None, False),
    ]


# -- mappings of one's own --------------------------------------------------------------------------------------------

NUMBERS = b"".join(b"data: %d\n\n" % n for n in range(1, 6))


class Unmappable(Exception):
    """What a mapping raises."""


def refuses_three(frame: ServerSentEvent) -> list[Event]:
    if frame.data == "3":
        raise Unmappable
    return as_text(frame)


def refuses_three_halfway(frame: ServerSentEvent) -> Iterator[Event]:
    yield TextDelta(0, f"{frame.data}a")
    if frame.data == "3":
        raise Unmappable
    yield TextDelta(0, f"{frame.data}b")


@pytest.mark.parametrize("size", [1, 9, 1000])
@pytest.mark.parametrize(
    ("mapping", "texts"),
    [(refuses_three, ["1", "2"]), (refuses_three_halfway, ["1a", "1b", "2a", "2b", "3a"])],
    ids=["at once", "halfway"],
)
def test_events_come_before_what_the_mapping_raises(mapping: Any, texts: list[str], size: int) -> None:
    source = Source(cut(NUMBERS, size))
    got, raised = drained(streamfold.map_event_stream(source, mapping))
    assert [event.text for event in got] == texts
    assert type(raised) is Unmappable
    assert source.closed == 1


@pytest.mark.parametrize("body", [b"data: 3", b"data: 1\n\ndata: 3\n\ndata: 4"], ids=["in the tail", "before a tail"])
def test_a_mapping_that_raises_sees_no_more_frames(body: bytes) -> None:
    seen: list[str] = []

    def mapping(frame: ServerSentEvent) -> list[Event]:
        seen.append(frame.data)
        return refuses_three(frame)

    _, raised = drained(streamfold.map_event_stream([body], mapping))
    assert type(raised) is Unmappable
    assert seen[-1] == "3"


def test_a_mapping_may_have_nothing_to_say() -> None:
    def even(frame: ServerSentEvent) -> list[Event] | None:
        return as_text(frame) if int(frame.data) % 2 == 0 else None

    assert [event.text for event in streamfold.map_event_stream([NUMBERS], even) if isinstance(event, TextDelta)] == [
        "2",
        "4",
    ]


def test_mapped_events_fold_without_starts_or_ends() -> None:
    accumulator = StreamAccumulator()
    for event in streamfold.map_event_stream(cut(NUMBERS, 3), as_text):
        accumulator.push(event)
    assert accumulator.text() == "12345"
    assert accumulator.snapshot().outcome == "open"


def test_a_mapping_of_an_array() -> None:
    body = b'[{"a":1},[2]]'
    events = streamfold.map_event_stream(
        cut(body, 2), lambda f: [Raw("item", streamfold.JSONText(f.data))], framing="json_array"
    )
    assert [event.payload.decoded() for event in events if isinstance(event, Raw)] == [{"a": 1}, [2]]


# -- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with http_server() as server:
        yield server


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(trust_env=False) as client:
        yield client


BODIES: dict[str, Callable[[httpx2.Response], Any]] = {
    "the response": lambda response: response,
    "iter_bytes": lambda response: response.iter_bytes(),
    "iter_raw": lambda response: response.iter_raw(),
    "iter_bytes, small": lambda response: response.iter_bytes(7),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("name", ANSWERS)
def test_over_http(server: Server, client: httpx2.Client, name: str, body: Callable[[httpx2.Response], Any]) -> None:
    address = server.serve(f"/{name}", cut(ANSWERS[name], 33))
    with client.stream("GET", address) as response:
        with streamfold.iter_unified(body(response), name) as stream:
            events = list(stream)
        assert response.is_closed
    assert [encode_event(event) for event in events] == [
        encode_event(event) for event in streamfold.iter_unified([ANSWERS[name]], name)
    ]


def test_over_http_the_end_does_not_wait_for_the_connection(server: Server, client: httpx2.Client) -> None:
    address = server.serve("/held", cut(CHAT, 33), held=True)
    with client.stream("GET", address) as response:
        assert streamfold.fold(response, "openai-chat").outcome == "complete"
        assert not server.released.is_set()
        assert response.is_closed


def test_over_http_leaving_closes_the_connection(server: Server, client: httpx2.Client) -> None:
    address = server.serve("/left", cut(CHAT[:-20], 33), held=True)
    with client.stream("GET", address) as response:
        with streamfold.iter_unified(response, "openai-chat") as stream:
            next(stream)
        assert response.is_closed
    assert stream.snapshot().outcome == "cancelled"


def test_over_http_a_cut_is_a_transport_error(server: Server, client: httpx2.Client) -> None:
    address = server.serve("/cut", FRAMES[:2], cut=True)
    part = StreamAccumulator()
    with client.stream("GET", address) as response, pytest.raises(httpx2.RemoteProtocolError):
        streamfold.fold(response, "openai-chat", into=part)
    snapshot = part.snapshot()
    assert snapshot.error is not None
    assert (snapshot.text, snapshot.outcome, snapshot.error.kind) == (PIECES[0], "failed", "transport")


LEFT = """
import sys, streamfold

body = sys.stdin.buffer.read()
left = [streamfold.iter_unified(body), streamfold.iter_traced(body), streamfold.check(body)]
left += [streamfold.parse_event_stream(body), streamfold.sentences(streamfold.iter_unified(body))]
for stream in left:
    next(iter(stream))
awaited = streamfold.aiter_unified(body)
try:
    anext(awaited).send(None)
except StopIteration:
    pass
"""


def test_streams_that_are_left_when_the_interpreter_ends_end_without_a_word() -> None:
    for body in (RESPONSES, ANTHROPIC):
        done = subprocess.run([sys.executable, "-c", LEFT], input=body + b"data: [", capture_output=True)
        assert (done.returncode, done.stderr) == (0, b"")


def test_over_http_by_urllib(server: Server) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    response = opener.open(server.serve("/urllib", cut(CHAT, 33)))
    assert streamfold.fold(response, "openai-chat").text == "Hello"
    assert response.isclosed()


def test_over_http_by_urllib_a_cut_raises(server: Server) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    part = StreamAccumulator()
    with opener.open(server.serve("/urllib-cut", FRAMES[:2], cut=True)) as response, pytest.raises(IncompleteRead):
        streamfold.fold(response, "openai-chat", into=part)
    assert part.snapshot().outcome == "failed"


def test_a_mapping_over_http(server: Server, client: httpx2.Client) -> None:
    with client.stream("GET", server.serve("/mapped", cut(NUMBERS, 4))) as response:
        events = list(streamfold.map_event_stream(response, as_text))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "12345"


def test_text_of_the_sample() -> None:
    assert PIECES == ["Hel", "lo"]
    assert chat_text("Hel", "lo")[-1] == "[DONE]"
