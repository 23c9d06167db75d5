"""Whether cost stays linear and memory flat where streams grow.

    python bench/growth.py

Time per byte at 1 and at 8 MB (the promise: within 1.5), a snapshot on each of 100,000 deltas against none (within 2),
and what a stream of 64 MB adds to the memory of the process (under 24 MiB).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator

from measure import seconds
from streamfold import StreamAccumulator, StreamDecoder, TextDelta, iter_unified, parse_event_stream

MB = 1_000_000
ROUNDS = 5


def chat(size: int, piece: str = "some words and ") -> bytes:
    """A Chat answer of about ``size`` bytes."""
    frame = (
        b"data: %s\n\n"
        % json.dumps(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}],
            }
        ).encode()
    )
    return frame * max(1, size // len(frame)) + b"data: [DONE]\n\n"


def cut(body: bytes, step: int) -> Iterator[bytes]:
    return (body[at : at + step] for at in range(0, len(body), step))


def events_in(step: int) -> Callable[[int], Callable[[], object]]:
    def of(size: int) -> Callable[[], object]:
        body = chat(size)
        return lambda: sum(1 for _ in iter_unified(cut(body, step), "openai-chat"))

    return of


def one_line(size: int) -> Callable[[], object]:
    body = chat(0, "x" * size)
    return lambda: sum(1 for _ in iter_unified(cut(body, 1024), "openai-chat", max_frame_bytes=None))


def tiny_frames(size: int) -> Callable[[], object]:
    body = b"data: x\n\n" * (size // 9)
    return lambda: sum(1 for _ in parse_event_stream(cut(body, 4096)))


SHAPES: dict[str, Callable[[int], Callable[[], object]]] = {
    "one read": events_in(1 << 30),
    "4 KiB reads": events_in(4096),
    "1-byte reads": events_in(1),
    "one line": one_line,
    "tiny frames": tiny_frames,
}


def growth() -> None:
    print("| shape | ns a byte at 1 MB | at 8 MB | growth |\n| --- | --- | --- | --- |")
    for name, shape in SHAPES.items():
        small, large = (min(seconds(shape(size)) for _ in range(ROUNDS)) / size * 1e9 for size in (MB, 8 * MB))
        print(f"| {name} | {small:.2f} | {large:.2f} | {large / small:.2f} |", flush=True)


def snapshots(deltas: int = 100_000) -> None:
    chunks = [b'data: {"choices":[{"index":0,"delta":{"content":"some words "}}]}\n\n'] * deltas

    def without() -> None:
        decoder, accumulator = StreamDecoder("openai-chat"), StreamAccumulator()
        for chunk in chunks:
            for event in decoder.feed(chunk):
                accumulator.push(event)

    def with_one_each() -> None:
        decoder, accumulator = StreamDecoder("openai-chat"), StreamAccumulator()
        for chunk in chunks:
            for event in decoder.feed(chunk):
                accumulator.push(event)
                accumulator.snapshot()

    base, each = (min(seconds(run) for _ in range(ROUNDS)) for run in (without, with_one_each))
    print(f"\na snapshot on each of {deltas:,} deltas: {each / base:.2f} times the cost without")
    accumulator = StreamAccumulator()
    marks = [10_000, 90_000]
    costs = []
    for first in marks:
        while accumulator.text() is not None and len(accumulator.text()) < first:
            accumulator.extend(TextDelta(0, "x") for _ in range(first - len(accumulator.text())))

        def some() -> None:
            for _ in range(1000):
                accumulator.push(TextDelta(0, "x"))
                accumulator.snapshot()

        costs.append(min(seconds(some) for _ in range(ROUNDS)))
    print(f"a delta and a snapshot after {marks[1]:,} deltas against after {marks[0]:,}: {costs[1] / costs[0]:.2f}")


def memory() -> None:
    script = """if True:
        import resource, sys
        sys.path.insert(0, "bench")
        from growth import chat
        from streamfold import iter_unified
        megabyte = chat(1_000_000).removesuffix(b"data: [DONE]\\n\\n")
        def source():
            for _ in range(64):
                for at in range(0, len(megabyte), 65536):
                    yield megabyte[at : at + 65536]
            yield b"data: [DONE]\\n\\n"
        for _ in iter_unified([megabyte[:65536]], "openai-chat"): pass
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        stream = iter_unified(source(), "openai-chat")
        text = sum(len(event.text) for event in stream if event.type == "text_delta")
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print((after - before) / 1024, text)
    """
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    added, text = out.split()
    print(f"a stream of 64 MB adds {float(added):.1f} MiB, the {int(text) / MB:.1f} MB of its text included")


def main() -> None:
    growth()
    snapshots()
    memory()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
