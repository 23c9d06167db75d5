"""Many streams in one event loop, and what an open one holds while it waits.

    python bench/streams.py [--streams N]

The promise: at 2,000 concurrent streams at most 2.5 times the cost of an event alone; an idle open stream holds under
16 KiB.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator

from streamfold import StreamDecoder, aiter_unified

FRAME = b"event: content_block_delta\ndata: %s\n\n" % (
    b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words "}}'
)
HEAD = b"event: message_start\ndata: %s\n\nevent: content_block_start\ndata: %s\n\n" % (
    b'{"type":"message_start","message":{"id":"m","model":"m","usage":{"input_tokens":1}}}',
    b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
)
ROUNDS = 5


async def source(deltas: int) -> AsyncIterator[bytes]:
    yield HEAD
    for _ in range(deltas):
        await asyncio.sleep(0)  # every other stream has its turn before the next frame is there
        yield FRAME


async def drain(deltas: int) -> None:
    async for _ in aiter_unified(source(deltas), "anthropic"):
        pass


async def all_at_once(streams: int, deltas: int) -> None:
    await asyncio.gather(*(drain(deltas) for _ in range(streams)))


def microseconds(streams: int, deltas: int) -> float:
    """Processor time of an event."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        begin = time.thread_time()
        asyncio.run(all_at_once(streams, deltas))
        best = min(best, time.thread_time() - begin)
    return best / (streams * deltas) * 1e6


def idle_kib(events: int, read: int, count: int = 200) -> float:
    """What an open decoder holds after so many events, in reads of ``read`` frames, nothing of it asked for."""
    StreamDecoder("anthropic").feed(HEAD)
    frames = b"".join([FRAME] * read)
    held = []
    tracemalloc.start()
    for _ in range(count):
        decoder = StreamDecoder("anthropic")
        decoder.feed(HEAD)
        for _ in range(events // read):
            decoder.feed(bytes(bytearray(frames)))
        held.append(decoder)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / count / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000)
    options = parser.parse_args()
    alone, many = microseconds(1, 20_000), microseconds(options.streams, 50)
    print(f"one stream: {alone:.2f} µs an event; {options.streams:,} streams: {many:.2f} µs, {many / alone:.2f} times")
    for events, read in ((10, 1), (100, 1), (1000, 1), (640, 640)):
        print(f"an idle stream after {events} deltas, {read} a read: {idle_kib(events, read):.1f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
