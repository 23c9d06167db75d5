"""The twin of :mod:`streamfold.stream` for sources that are awaited. Runs under any event loop: it imports none."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, TypeVar, Unpack

from streamfold.events import Event
from streamfold.framing.sse import ServerSentEvent
from streamfold.stream import (
    MANY_ITEMS,
    MUCH,
    READ_BYTES,
    FrameSettings,
    FrameStage,
    Mapping,
    MapStage,
    Stage,
    open_source,
    parted,
)

__all__ = ["AsyncByteSource", "AsyncPullStream", "amap_event_stream", "aparse_event_stream"]

T = TypeVar("T")

AsyncByteSource: TypeAlias = Any
"""Where bytes come from: an async iterable of bytes, a response with ``aiter_bytes`` or an awaitable ``read``, or any
source that :mod:`streamfold.stream` reads."""

Closer: TypeAlias = Callable[[], object]


class AsyncPullStream(Generic[T]):
    """An async iterator over what comes of a source, and a context manager that closes it."""

    def __init__(self, source: AsyncByteSource, stage: Stage[T]) -> None:
        self._chunks, self._closers = open_async_source(source)
        self._stage = stage
        self._batch: Any = iter(())  # what is being handed out; it knows how much of it is left
        self._items: Any = self._pull()  # Any: typing's AsyncGenerator does not know that one can be running
        self._closed = False

    def __aiter__(self) -> AsyncIterator[T]:
        items: AsyncIterator[T] = self._items
        return items

    async def __anext__(self) -> T:
        item: T = await anext(self._items)
        return item

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            await self.aclose()
        else:
            with suppress(Exception):  # what is wrong is what was raised first
                await self.aclose()

    async def aclose(self) -> None:
        """Stop, and close the source. May be called at any time and more than once, by another task too.

        A read that another task waits for is not interrupted, unless closing the source does that: what it brings is
        dropped, and the loop of that task ends. A generator cannot be closed while it runs: a source that is one is
        closed as soon as its read returns; who cannot wait for that cancels the task that reads.
        """
        if not self._items.ag_running:
            await self._items.aclose()
        await self._finish()

    async def _pull(self) -> AsyncGenerator[T, None]:
        stage, chunks = self._stage, self._chunks
        feed = stage.feed
        try:
            for item in self._batch:  # what another stream read of the same answer and never handed out
                yield item
            while not stage.ended:
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    break
                except BaseException as fault:
                    self._batch = iter(stage.close("cut") if isinstance(fault, Exception) else ())
                    for item in self._batch:
                        yield item
                    with suppress(Exception):  # what is wrong is what the source raised first
                        await self._finish()
                    raise
                if self._closed:  # while it was read
                    return
                items = feed(chunk)
                if items:
                    self._batch = batch = iter(items)
                    for item in batch:
                        yield item
                    if len(items) > MANY_ITEMS or len(chunk) > MUCH:
                        items.clear()
                        stage.release()
            self._batch = iter(() if self._closed else stage.close("eof"))
            for item in self._batch:
                yield item
            if stage.fault is not None:
                raise stage.fault
        finally:
            await self._finish()

    def _left(self) -> int:
        """How many items of the batch were not handed out yet."""
        left: int = self._batch.__length_hint__()
        return left

    async def _finish(self) -> None:
        if not self._closed:
            self._closed = True
            if not sys.is_finalizing():  # as in blocking code
                self._cancel()
        closers, self._closers = parted(self._closers)
        async with AsyncExitStack() as stack:  # all of them, though one raises: under trio, a cancelled one does
            for close in reversed(closers):
                stack.push_async_callback(_close, close)

    def _cancel(self) -> None:
        if not self._stage.ended:
            self._stage.close("cancel")


# -- sources ----------------------------------------------------------------------------------------------------------


def open_async_source(source: AsyncByteSource) -> tuple[AsyncIterator[bytes], list[Closer]]:
    """The reads of a source, and what closes it.

    Raises:
        UsageError: It is nothing that gives bytes.
    """
    chunks = _reads(source)
    if chunks is None:
        reads, closing = open_source(source)
        awaited = _awaited(reads)
        return awaited, [awaited.aclose, *closing]  # trio warns of a generator that is only forgotten
    closers = [closer for closer in (_closer(chunks), _closer(source)) if closer is not None]
    return chunks, closers[-1:] if chunks is source else closers


def _reads(source: Any) -> AsyncIterator[bytes] | None:
    """The reads of a source that is awaited, None for one that is not."""
    reads: AsyncIterator[bytes] | None = None
    if hasattr(source, "aiter_bytes"):  # httpx, httpx2
        reads = aiter(source.aiter_bytes())
    elif hasattr(source, "__aiter__"):
        # asyncio's and aiofiles' readers iterate by lines, with a limit on their length; read() has neither fault
        reads = _read_until_empty(source.read) if hasattr(source, "read") else aiter(source)
    elif hasattr(source, "receive_some"):  # a trio stream
        reads = _read_until_empty(source.receive_some)
    elif not (hasattr(source, "iter_bytes") or hasattr(source, "iter_content") or hasattr(source, "read1")):
        content: Any = getattr(source, "content", None)  # last: on a response of requests this would read all of it
        if hasattr(content, "iter_any"):  # aiohttp
            reads = aiter(content.iter_any())
        elif hasattr(source, "read"):
            reads = _read_until_empty(source.read)
    return reads


async def _read_until_empty(read: Callable[[int], Any]) -> AsyncIterator[bytes]:
    while chunk := await _settled(read(READ_BYTES)):
        yield chunk


async def _close(close: Closer) -> None:
    await _settled(close())


async def _settled(value: Any) -> Any:
    """The value, awaited if it is to be awaited."""
    return await value if hasattr(value, "__await__") else value


async def _awaited(chunks: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk


def _closer(thing: Any) -> Closer | None:
    close = getattr(thing, "aclose", None) or getattr(thing, "close", None)
    return close if callable(close) else None


def aparse_event_stream(source: AsyncByteSource, **settings: Unpack[FrameSettings]) -> AsyncPullStream[ServerSentEvent]:
    """The async twin of :func:`streamfold.parse_event_stream`."""
    return AsyncPullStream(source, FrameStage(**settings))


def amap_event_stream(
    source: AsyncByteSource, mapping: Mapping, **settings: Unpack[FrameSettings]
) -> AsyncPullStream[Event]:
    """The async twin of :func:`streamfold.map_event_stream`."""
    return AsyncPullStream(source, MapStage(mapping, FrameStage(**settings)))
