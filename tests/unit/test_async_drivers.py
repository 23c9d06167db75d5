"""The drivers over sources that are awaited, under asyncio and under trio alike."""

from __future__ import annotations

import asyncio
import io
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
import trio

import streamfold
from streamfold import (
    Done,
    ErrorEvent,
    Event,
    FrameTooLarge,
    ServerSentEvent,
    StreamAccumulator,
    TextDelta,
    UsageError,
    encode_event,
)
from tests.samples import ANSWERS, ANTHROPIC, CHAT, RESPONSES, cut
from tests.sources import AsyncSource, Server, Source, http_server
from tests.ways import folded

FRAMES = [frame + b"\n\n" for frame in CHAT.split(b"\n\n") if frame]
Main = Callable[[], Awaitable[None]]


def by_asyncio(main: Main) -> None:
    async def run() -> None:
        await main()

    asyncio.run(run())


async def checkpoint() -> None:
    """Let others run, in whichever event loop this is."""
    if in_trio():
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


def in_trio() -> bool:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


LOOPS: dict[str, Callable[[Main], None]] = {"asyncio": by_asyncio, "trio": trio.run}
every_loop = pytest.mark.parametrize("run", LOOPS.values(), ids=LOOPS.keys())


def as_text(frame: ServerSentEvent) -> list[Event]:
    return [TextDelta(0, frame.data)]


Opening = Callable[[Any], Any]
STREAMS: dict[str, Opening] = {
    "aiter_unified": lambda source: streamfold.aiter_unified(source, "openai-chat"),
    "aiter_traced": lambda source: streamfold.aiter_traced(source, "openai-chat"),
    "aparse_event_stream": streamfold.aparse_event_stream,
    "amap_event_stream": lambda source: streamfold.amap_event_stream(source, as_text),
}
every_stream = pytest.mark.parametrize("opening", STREAMS.values(), ids=STREAMS.keys())


async def drained(stream: Any) -> tuple[list[Any], Exception | None]:
    """What came, and what was raised in the end, or by leaving."""
    got: list[Any] = []
    try:
        async with stream:
            async for item in stream:
                got.append(item)  # noqa: PERF401 - it stays when the next one raises
    except Exception as fault:  # noqa: BLE001 - whatever it is, a test looks at it
        return got, fault
    return got, None


# -- what can be read -------------------------------------------------------------------------------------------------


async def generator(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await checkpoint()
        yield chunk


class WithAiterBytes:
    """As responses of httpx are, which refuse ``content`` while they stream."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        return generator(self.chunks)

    @property
    def content(self) -> bytes:
        raise RuntimeError("not read yet")

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise AssertionError("not asked for")


class WithContent:
    """As responses of aiohttp are: ``read`` would wait for all of it."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks
        self.content = self

    def iter_any(self) -> AsyncIterator[bytes]:
        return generator(self.chunks)

    async def read(self) -> bytes:
        raise AssertionError("it would wait for all of it")


class WithRead:
    """Something whose ``read`` is awaited."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = [*chunks, b""]

    async def read(self, size: int) -> bytes:
        assert size > 0
        await checkpoint()
        return self.chunks.pop(0)


class WithLines(WithRead):
    """As readers of asyncio are: iterated they give lines, and refuse long ones."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise AssertionError("it would give lines")


class WithReceiveSome:
    """A stream of trio, without its iteration."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = [*chunks, b""]

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await checkpoint()
        return self.chunks.pop(0)


class OfRequests:
    """A response of requests: ``content`` would read all of it."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.chunks = chunks

    def iter_content(self, chunk_size: int | None) -> Iterator[bytes]:
        return iter(self.chunks)

    @property
    def content(self) -> bytes:
        raise AssertionError("it would read all of it")


SOURCES: dict[str, Callable[[list[bytes]], Any]] = {
    "a generator": generator,
    "an iterator": lambda chunks: AsyncSource(chunks, checkpoint),
    "aiter_bytes": WithAiterBytes,
    "content.iter_any": WithContent,
    "read": WithRead,
    "a reader of lines": WithLines,
    "receive_some": WithReceiveSome,
    # and whatever the drivers that are pulled can read
    "a list": list,
    "a plain generator": lambda chunks: (chunk for chunk in chunks),
    "bytes": b"".join,
    "BytesIO": lambda chunks: io.BytesIO(b"".join(chunks)),
    "iter_content": OfRequests,
}


@every_loop
@pytest.mark.parametrize("made", SOURCES.values(), ids=SOURCES.keys())
def test_a_source(made: Callable[[list[bytes]], Any], run: Callable[[Main], None]) -> None:
    async def main() -> None:
        for size in (7, 100_000):
            async with streamfold.aiter_unified(made(cut(ANTHROPIC, size)), "anthropic") as stream:
                events = [event async for event in stream]
            assert events == list(streamfold.iter_unified([ANTHROPIC], "anthropic"))
            assert await streamfold.afold(made(cut(ANTHROPIC, size))) == stream.snapshot()

    run(main)


NO_SOURCES: dict[str, Any] = {"None": None, "a number": 5, "text": CHAT.decode(), "a thing": object()}


@every_stream
@pytest.mark.parametrize("source", NO_SOURCES.values(), ids=NO_SOURCES.keys())
def test_no_source(source: Any, opening: Opening) -> None:
    with pytest.raises(UsageError, match="no source of bytes"):
        opening(source)


@every_loop
@every_stream
def test_a_source_of_no_bytes(opening: Opening, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        chunks: list[Any] = [FRAMES[0], "text"]
        source = AsyncSource(chunks, checkpoint)
        got, raised = await drained(opening(source))
        assert got
        assert isinstance(raised, UsageError)
        assert source.closed == 1

    run(main)


# -- pull only, and the same as the twin ------------------------------------------------------------------------------


@every_loop
@every_stream
def test_nothing_is_read_before_it_is_asked_for(opening: Opening, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        source = AsyncSource(FRAMES, checkpoint)
        async with opening(source) as stream:
            aiter(stream)
            assert source.reads == 0
            await anext(stream)
            assert source.reads == 1

    run(main)


@every_loop
@pytest.mark.parametrize("provider", ANSWERS)
def test_nothing_is_read_after_the_terminal_sign(provider: str, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        source = AsyncSource(cut(ANSWERS[provider], 40), checkpoint, fails=AssertionError("it was read"))
        async with streamfold.aiter_unified(source, provider) as stream:
            events = [event async for event in stream]
        assert isinstance(events[-1], Done)
        assert source.closed == 1

    run(main)


@every_loop
@pytest.mark.parametrize("size", [1, 30, 100_000])
@pytest.mark.parametrize("name", ANSWERS)
def test_the_twins_agree(name: str, size: int, run: Callable[[Main], None]) -> None:
    chunks = cut(ANSWERS[name], size)

    async def main() -> None:
        source = partial(AsyncSource, chunks, checkpoint)
        for twin, other in (
            (streamfold.aiter_unified(source(), name), streamfold.iter_unified(chunks, name)),
            (streamfold.aiter_traced(source(), name), streamfold.iter_traced(chunks, name)),
            (streamfold.aparse_event_stream(source()), streamfold.parse_event_stream(chunks)),
            (streamfold.amap_event_stream(source(), as_text), streamfold.map_event_stream(chunks, as_text)),
        ):
            assert await drained(twin) == (list(other), None)

    run(main)


@every_loop
def test_a_snapshot_is_of_the_events_that_were_handed_out(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        for size in (1, 100_000):
            got: list[Event] = []
            async with streamfold.aiter_unified(cut(RESPONSES, size), "openai-responses") as stream:
                assert stream.snapshot() == folded([])
                async for event in stream:
                    got.append(event)
                    assert stream.snapshot() == folded(got)

    run(main)


# -- closing ----------------------------------------------------------------------------------------------------------


class Left(Exception):
    """The consumer's own."""


async def leave_by_break(stream: Any) -> None:
    async with stream:
        async for _ in stream:
            break


async def leave_by_exception(stream: Any) -> None:
    with pytest.raises(Left):
        async with stream:
            raise Left(await anext(stream))


async def leave_before_the_first(stream: Any) -> None:
    async with stream:
        pass


async def close_unopened(stream: Any) -> None:
    await stream.aclose()


async def close_inside_the_loop(stream: Any) -> None:
    seen = 0
    async for _ in stream:
        seen += 1
        await stream.aclose()
    assert seen == 1


async def close_after_one(stream: Any) -> None:
    await anext(stream)
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def close_twice(stream: Any) -> None:
    async with stream:
        await anext(stream)
        await stream.aclose()
        await stream.aclose()
    assert [item async for item in stream] == []


async def exhaust(stream: Any) -> None:
    async with stream:
        assert [item async for item in stream]
        assert [item async for item in stream] == []


async def exhaust_without_with(stream: Any) -> None:
    async for _ in stream:
        pass


ENDS: dict[str, Callable[[Any], Awaitable[None]]] = {
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


@every_loop
@every_stream
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_the_source_is_closed_exactly_once(
    end: Callable[[Any], Awaitable[None]], opening: Opening, run: Callable[[Main], None]
) -> None:
    async def main() -> None:
        for chunks in (FRAMES, [CHAT]):
            for source in (AsyncSource(chunks, checkpoint), Source(chunks)):
                await end(opening(source))
                assert source.closed == 1

    run(main)


class Response:
    """Whose body is a generator: both have to be closed, and each passes a checkpoint as it closes."""

    def __init__(self, *, hangs: bool = False, fails: bool = False) -> None:
        self.log: list[str] = []
        self.hangs, self.fails = hangs, fails
        self.waiting = False  # it hangs now

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        try:
            for frame in FRAMES[:2]:
                await checkpoint()
                yield frame
            while self.hangs:
                self.waiting = True
                await checkpoint()
        finally:
            self.log.append("body")
            await checkpoint()
            if self.fails:
                raise OSError("closing the body")

    async def aclose(self) -> None:
        self.log.append("response")
        await checkpoint()


@every_loop
@every_stream
def test_the_body_and_its_response_are_both_closed(opening: Opening, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        response = Response()
        async with opening(response) as stream:
            await anext(stream)
        assert response.log == ["body", "response"]
        failing = Response(fails=True)
        stream = opening(failing)
        await anext(stream)
        with pytest.raises(OSError, match="closing the body"):
            await stream.aclose()
        await stream.aclose()
        assert failing.log == ["body", "response"]

    run(main)


# -- cancellation -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def cancelled_when(ready: Callable[[], bool], task: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run the task, and cancel it when it is ready, under whichever loop this is."""
    if in_trio():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            while not ready():
                await checkpoint()
            nursery.cancel_scope.cancel()
    else:
        running = asyncio.ensure_future(task())
        while not ready():
            await checkpoint()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    yield


@every_loop
@every_stream
def test_cancelling_the_reader_closes_the_source(opening: Opening, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        response = Response(hangs=True)
        stream = opening(response)
        got: list[Any] = []

        async def read() -> None:
            async with stream:
                async for item in stream:
                    got.append(item)  # noqa: PERF401

        async with cancelled_when(lambda: response.waiting, read):
            assert got
            assert sorted(response.log) == ["body", "response"]
            assert not [item for item in got if isinstance(item, ErrorEvent)]
            if isinstance(stream, streamfold.AsyncUnifiedStream):
                assert stream.snapshot().outcome == "cancelled"
                assert stream.snapshot().text == "Hel"

    run(main)


@every_loop
def test_cancelling_the_reader_without_async_with_closes_the_source(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        response = Response(hangs=True)

        async def read() -> None:
            async for _ in streamfold.aiter_unified(response, "openai-chat"):
                pass

        async with cancelled_when(lambda: response.waiting, read):
            assert sorted(response.log) == ["body", "response"]

    run(main)


@every_loop
def test_cancelling_afold_keeps_the_part_that_came(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        response = Response(hangs=True)
        part = StreamAccumulator()

        async def read() -> None:
            await streamfold.afold(response, "openai-chat", into=part)

        async with cancelled_when(lambda: response.waiting, read):
            assert (part.text(), part.snapshot().outcome) == ("Hel", "cancelled")
            assert sorted(response.log) == ["body", "response"]

    run(main)


@every_loop
def test_cancelling_the_consumer_between_events_closes_the_source(run: Callable[[Main], None]) -> None:
    """Cancelled in its own wait, not in a read."""

    async def main() -> None:
        source = AsyncSource([CHAT], checkpoint)
        waits: list[bool] = []

        async def read() -> None:
            async with streamfold.aiter_unified(source, "openai-chat") as stream:
                async for _ in stream:
                    while True:
                        waits.append(True)
                        await checkpoint()

        async with cancelled_when(lambda: len(waits) > 2, read):
            assert source.closed == 1
            assert source.reads == 1

    run(main)


# -- faults -----------------------------------------------------------------------------------------------------------


@every_loop
def test_a_source_that_raises_ends_in_an_event_and_then_in_its_exception(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        for closing in (None, ValueError("closing")):
            fault = OSError("gone")
            source = AsyncSource(FRAMES[:2], checkpoint, fails=fault, closing_fails=closing)
            stream = streamfold.aiter_unified(source, "openai-chat")
            got, raised = await drained(stream)
            assert raised is fault
            assert (got[-1].kind, got[-1].retryable) == ("transport", True)
            assert source.closed == 1
            assert stream.snapshot() == folded(got)

    run(main)


@every_loop
def test_a_source_that_fails_to_close_is_closed_once(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        source = AsyncSource([CHAT], checkpoint, closing_fails=OSError("closing"))
        stream = streamfold.aiter_unified(source, "openai-chat")
        got, raised = await drained(stream)
        assert got == list(streamfold.iter_unified([CHAT], "openai-chat"))
        assert isinstance(raised, OSError)
        await stream.aclose()
        assert source.closed == 1

    run(main)


@every_stream
@pytest.mark.parametrize("closes", [True, False], ids=["an object", "a generator"])
def test_another_task_can_close_a_stream_that_waits(closes: bool, opening: Opening) -> None:
    async def main() -> None:
        waits, goes_on, log = asyncio.Event(), asyncio.Event(), list[str]()

        async def reads() -> AsyncIterator[bytes]:
            try:
                yield FRAMES[0]
                waits.set()
                await goes_on.wait()
                for frame in FRAMES[1:]:
                    yield frame
            finally:
                log.append("read")

        class Body:
            """Closing it ends the read, as it does with a connection."""

            aiter_bytes = staticmethod(reads)

            async def aclose(self) -> None:
                log.append("closed")
                goes_on.set()

        stream = opening(Body() if closes else reads())
        reading = asyncio.create_task(drained(stream))
        await waits.wait()
        await stream.aclose()
        await stream.aclose()
        assert log == (["closed"] if closes else [])
        goes_on.set()
        got, raised = await reading
        assert raised is None
        assert log == (["closed", "read"] if closes else ["read"])
        assert got == (await drained(opening(AsyncSource(FRAMES[:1], checkpoint))))[0][: len(got)]

    by_asyncio(main)


@every_loop
@pytest.mark.parametrize("first", [KeyboardInterrupt, asyncio.CancelledError, OSError])
def test_what_ended_a_read_is_not_hidden_by_a_source_that_fails_to_close(
    first: type[BaseException], run: Callable[[Main], None]
) -> None:
    async def main() -> None:
        closing = RuntimeError("closing")
        source = AsyncSource(FRAMES[:2], checkpoint, fails=first(), closing_fails=closing)  # type: ignore[arg-type]

        async def read_all() -> None:
            async with streamfold.aiter_unified(source, "openai-chat") as stream:
                async for _ in stream:
                    pass

        with pytest.raises(first):
            await read_all()
        assert source.closed == 1

    run(main)


@every_loop
def test_afold_into_keeps_the_part_that_came(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        part = StreamAccumulator()
        source = AsyncSource(FRAMES[:2], checkpoint, fails=OSError("gone"))
        with pytest.raises(OSError, match="gone"):
            await streamfold.afold(source, "openai-chat", into=part)
        assert (part.text(), part.snapshot().outcome) == ("Hel", "failed")
        assert source.closed == 1

    run(main)


@every_loop
@pytest.mark.parametrize("size", [1, 9, 1000])
def test_items_come_before_the_fault(size: int, run: Callable[[Main], None]) -> None:
    body = b"data: 1\n\ndata: 234567\n\ndata: 3\n\n"

    def refuses(frame: ServerSentEvent) -> list[Event]:
        if frame.data == "234567":
            raise Left
        return as_text(frame)

    async def main() -> None:
        source = AsyncSource(cut(body, size), checkpoint)
        frames, fault = await drained(streamfold.aparse_event_stream(source, max_frame_bytes=9))
        assert ([frame.data for frame in frames], type(fault)) == (["1"], FrameTooLarge)
        assert source.closed == 1
        source = AsyncSource(cut(body, size), checkpoint)
        events, fault = await drained(streamfold.amap_event_stream(source, refuses))
        assert ([event.text for event in events], type(fault)) == (["1"], Left)
        assert source.closed == 1

    run(main)


# -- many at once -----------------------------------------------------------------------------------------------------


@every_loop
def test_many_streams_in_one_loop_do_not_mix(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        answers: dict[int, str] = {}

        async def read(number: int) -> None:
            body = CHAT.replace(b"Hel", b"%d:" % number)
            answers[number] = (await streamfold.afold(AsyncSource(cut(body, 20), checkpoint))).text

        if in_trio():
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(read, number)
        else:
            await asyncio.gather(*map(read, range(50)))
        assert answers == {number: f"{number}:lo" for number in range(50)}

    run(main)


# -- over the network -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with http_server() as server:
        yield server


# httpx2 leaves a generator of its connection pool to the collector, which trio warns of, with or without us.
of_httpx2 = pytest.mark.filterwarnings("ignore:Async generator 'httpcore2:ResourceWarning")


@of_httpx2
@every_loop
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("through", ["the response", "aiter_bytes", "aiter_raw"])
def test_over_http(server: Server, name: str, through: str, run: Callable[[Main], None]) -> None:
    address = server.serve(f"/{name}", cut(ANSWERS[name], 33))

    async def main() -> None:
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", address) as response:
            body = response if through == "the response" else getattr(response, through)()
            async with streamfold.aiter_unified(body, name) as stream:
                events = [encode_event(event) async for event in stream]
            assert response.is_closed
        assert events == [encode_event(event) for event in streamfold.iter_unified([ANSWERS[name]], name)]

    run(main)


@of_httpx2
@every_loop
def test_over_http_the_end_does_not_wait_for_the_connection(server: Server, run: Callable[[Main], None]) -> None:
    address = server.serve("/held", cut(CHAT, 33), held=True)

    async def main() -> None:
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", address) as response:
            assert (await streamfold.afold(response, "openai-chat")).outcome == "complete"
            assert not server.released.is_set()
            assert response.is_closed

    run(main)


@of_httpx2
@every_loop
def test_over_http_a_cut_is_a_transport_error(server: Server, run: Callable[[Main], None]) -> None:
    address = server.serve("/cut", FRAMES[:2], cut=True)

    async def main() -> None:
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", address) as response:
            got, raised = await drained(streamfold.aiter_unified(response, "openai-chat"))
        assert isinstance(raised, httpx2.RemoteProtocolError)
        assert (got[-1].kind, got[-1].retryable) == ("transport", True)

    run(main)


@of_httpx2
@every_loop
def test_over_http_cancelling_closes_the_connection(server: Server, run: Callable[[Main], None]) -> None:
    address = server.serve("/left", FRAMES[:2], held=True)

    async def main() -> None:
        got: list[Event] = []
        async with httpx2.AsyncClient(trust_env=False) as client, client.stream("GET", address) as response:

            async def read() -> None:
                async with streamfold.aiter_unified(response, "openai-chat") as stream:
                    async for event in stream:
                        got.append(event)  # noqa: PERF401

            async with cancelled_when(lambda: len(got) >= 3, read):
                assert response.is_closed

    run(main)


@contextmanager
def tcp_server(chunks: list[bytes]) -> Iterator[int]:
    """A server that sends the chunks to whoever connects first, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                for chunk in chunks:
                    connection.sendall(chunk)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


@pytest.mark.parametrize("name", ANSWERS)
def test_over_a_stream_of_trio(name: str) -> None:
    async def main(port: int) -> None:
        connection = await trio.open_tcp_stream("127.0.0.1", port)
        async with streamfold.aiter_unified(connection, name) as stream:
            events = [event async for event in stream]
        assert events == list(streamfold.iter_unified([ANSWERS[name]], name))
        with pytest.raises(trio.ClosedResourceError):
            await connection.receive_some()

    with tcp_server(cut(ANSWERS[name], 33)) as port:
        trio.run(main, port)


@pytest.mark.parametrize("name", ANSWERS)
def test_over_a_reader_of_asyncio(name: str) -> None:
    async def main(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=16)  # lines are longer than that
        answer = await streamfold.afold(reader, name)
        writer.close()
        await writer.wait_closed()
        assert answer == streamfold.fold([ANSWERS[name]], name)

    with tcp_server(cut(ANSWERS[name], 33)) as port:
        asyncio.run(main(port))
