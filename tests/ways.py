"""Every way to read an answer, as one function each, so that a table can run them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, TypeVar

import streamfold
from streamfold import Event, Snapshot, StreamAccumulator, StreamDecoder

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it under asyncio, and leave no loop behind."""
    return asyncio.run(main)


async def later(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    """The chunks, each behind a step of the event loop."""
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


def by_decoder(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    decoder = StreamDecoder(provider, **settings)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    events += decoder.close()
    return events, decoder.snapshot()


def by_iterating(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    with streamfold.iter_unified(chunks, provider, **settings) as stream:
        events = list(stream)
    return events, stream.snapshot()


def by_awaiting(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    async def main() -> tuple[list[Event], Snapshot]:
        async with streamfold.aiter_unified(later(chunks), provider, **settings) as stream:
            events = [event async for event in stream]
        return events, stream.snapshot()

    return run(main())


def by_tracing(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    with streamfold.iter_traced(chunks, provider, **settings) as stream:
        events = [event for _, caused in stream for event in caused]
    return events, folded(events)


def by_tracing_later(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    async def main() -> list[Event]:
        async with streamfold.aiter_traced(later(chunks), provider, **settings) as stream:
            return [event async for _, caused in stream for event in caused]

    events = run(main())
    return events, folded(events)


def by_folding(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    chunks = list(chunks)
    return by_decoder(chunks, provider, **settings)[0], streamfold.fold(chunks, provider, **settings)


def by_folding_later(chunks: Iterable[bytes], provider: str = "auto", **settings: Any) -> tuple[list[Event], Snapshot]:
    chunks = list(chunks)
    answer = run(streamfold.afold(later(chunks), provider, **settings))
    return by_decoder(chunks, provider, **settings)[0], answer


def folded(events: Iterable[Event]) -> Snapshot:
    """What the events add up to."""
    accumulator = StreamAccumulator()
    accumulator.extend(events)
    return accumulator.snapshot()


Way = Callable[..., tuple[list[Event], Snapshot]]
WAYS: dict[str, Way] = {
    "StreamDecoder": by_decoder,
    "iter_unified": by_iterating,
    "aiter_unified": by_awaiting,
    "iter_traced": by_tracing,
    "aiter_traced": by_tracing_later,
    "fold": by_folding,
    "afold": by_folding_later,
}
