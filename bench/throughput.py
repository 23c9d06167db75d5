"""Events and folded answers against ``orjson.loads`` alone on the same payloads, over recorded streams.

    python bench/throughput.py [FAMILY…] [--rounds N]

The yardstick parses each payload and drops the result at once. A stream's set-up is inside the figures: every recording
is a stream of its own, at reads of 64 KiB, of 4 KiB and of one frame.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
from measure import compare

from streamfold import SSEParser, StreamDecoder, fold, iter_unified

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STREAMFOLD_SHARED", ROOT.parent / "shared"))

CEILINGS = {  # 64 KiB reads, 4 KiB reads, one frame a read, folded at 4 KiB
    "chat": (2.0, 2.3, 3.2, 2.7),
    "responses": (2.25, 2.6, 4.2, 3.0),
    "anthropic": (2.5, 3.0, 5.0, 3.75),
}
PROVIDERS = {"chat": "openai-chat", "responses": "openai-responses", "anthropic": "anthropic"}
COLUMNS = ("64 KiB", "4 KiB", "one frame", "folded, 4 KiB")


def bodies(family: str) -> list[bytes]:
    """The recorded streams of a family; without the recordings, this repository's own."""
    found: list[bytes] = []
    for path in sorted((SHARED / "expected").glob("*.json")):
        document = json.loads(path.read_text())
        for name, facts in document["captures"].items():
            if facts.get("family") == family and facts["framing"] == "sse":
                found.append((SHARED / "captures" / document["folder"] / name).read_bytes())
    return found


def payloads(body: bytes) -> list[bytes]:
    """The JSON payloads of a body."""
    return [data for data in SSEParser().take(body) if not data.startswith(b"[DONE]")]


def frames(body: bytes) -> list[bytes]:
    """The body, cut after each frame."""
    end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    *whole, rest = body.split(end)
    return [frame + end for frame in whole] + ([rest] if rest else [])


def cut(body: bytes, size: int) -> list[bytes]:
    return [body[at : at + size] for at in range(0, len(body), size)]


def events(streams: list[list[bytes]], provider: str) -> Callable[[], None]:
    def run() -> None:
        for chunks in streams:
            for _ in iter_unified(chunks, provider):
                pass

    return run


def folded(streams: list[list[bytes]], provider: str) -> Callable[[], None]:
    def run() -> None:
        for chunks in streams:
            fold(chunks, provider)

    return run


def check_cuts(streams: list[list[list[bytes]]], provider: str) -> None:
    """The events must be the same at every cut before anything is timed."""
    for ways in zip(*streams, strict=True):
        runs = [[event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close() for chunks in ways if (decoder := StreamDecoder(provider))]
        assert all(run == runs[0] for run in runs)


def measure(family: str, rounds: int) -> tuple[list[float], int]:
    provider, found = PROVIDERS[family], bodies(family)
    data = [payload for body in found for payload in payloads(body)]
    ways = [[cut(b, 65536) for b in found], [cut(b, 4096) for b in found], [frames(b) for b in found]]
    check_cuts(ways, provider)

    def yardstick() -> None:
        for payload in data:
            orjson.loads(payload)

    runs = {name: events(streams, provider) for name, streams in zip(COLUMNS, ways, strict=False)}
    runs[COLUMNS[3]] = folded(ways[1], provider)
    ratios = compare(yardstick, runs, rounds)
    return [ratios[name] for name in COLUMNS], len(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(CEILINGS))
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if not SHARED.is_dir():
        print(f"no recordings at {SHARED}: set STREAMFOLD_SHARED", file=sys.stderr)
        return 2
    over = 0
    print("| surface | payloads | " + " | ".join(COLUMNS) + " |\n| --- | --- | --- | --- | --- | --- |")
    for family in options.families:
        ratios, count = measure(family, options.rounds)
        cells = [f"{r:.2f} (≤ {c:g}){'' if r <= c else ' OVER'}" for r, c in zip(ratios, CEILINGS[family], strict=True)]
        over += sum(r > c for r, c in zip(ratios, CEILINGS[family], strict=True))
        print(f"| {family} | {count} | " + " | ".join(cells) + " |", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
