"""Events and folded answers against ``orjson.loads`` alone on the same payloads, over recorded streams.

    python bench/throughput.py [FAMILY…] [--rounds N] [--at-least PAYLOADS]

The yardstick parses each payload and drops the result at once. Every recording is a stream of its own, its set-up
included. Two rows a family: the recordings of a hundred payloads and more, which is what an answer of a paragraph
brings, and all recordings, most of which are as short as test recordings are. No recording of Gemini is long: there,
long answers are made of all that was recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

import orjson

from measure import compare
from recordings import FAMILIES, LONG, bodies, cut, frames, joined, payloads
from streamfold import StreamDecoder, fold, iter_unified

CEILINGS = {  # 64 KiB reads, 4 KiB reads, one frame a read, folded at 4 KiB
    "chat": (2.0, 2.3, 3.2, 2.7),
    "responses": (2.25, 2.6, 4.2, 3.0),
    "anthropic": (2.5, 3.0, 5.0, 3.75),
    "gemini": (2.75, 3.25, 3.25, 3.6),
    "gemini by path, interactions": (3.6, 4.0, 5.25, 5.2),
    "gemini array": (6, 6, 6, 7),
}
COLUMNS = ("64 KiB", "4 KiB", "one frame", "folded, 4 KiB")


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


def check_cuts(ways: list[list[list[bytes]]], provider: str) -> None:
    """The events must be the same at every cut before anything is timed."""
    for streams in zip(*ways, strict=True):
        runs = []
        for chunks in streams:
            decoder = StreamDecoder(provider)
            runs.append([event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close())
        if any(run != runs[0] for run in runs):
            sys.exit("the events differ from cut to cut")


def measure(found: list[bytes], provider: str, rounds: int) -> tuple[list[float], int]:
    data = [payload for body in found for payload in payloads(body)]
    ways = [[cut(b, 65536) for b in found], [cut(b, 4096) for b in found], [frames(b) for b in found]]
    check_cuts(ways, provider)

    def yardstick() -> None:
        for payload in data:
            orjson.loads(payload)

    def json_alone() -> None:
        for payload in data:
            json.loads(payload)

    runs = {name: events(streams, provider) for name, streams in zip(COLUMNS, ways, strict=False)}
    runs[COLUMNS[3]] = folded(ways[1], provider)
    ratios = compare(yardstick, {**runs, "json.loads": json_alone}, rounds)
    return [ratios[name] for name in (*COLUMNS, "json.loads")], len(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(CEILINGS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--at-least", type=int, nargs="*", default=[LONG, 0], metavar="PAYLOADS")
    options = parser.parse_args()
    print(f"| recordings | payloads | {' | '.join(COLUMNS)} | json.loads alone |\n|{' --- |' * 7}")
    for at_least in options.at_least:
        for name in options.families:
            row(name, at_least, options.rounds)
    return 0


def row(name: str, at_least: int, rounds: int) -> None:
    family = FAMILIES[name]
    found = bodies(family, at_least)
    made = " made of them" if not found else ""
    found = found or joined(family)
    ratios, count = measure(found, family.provider, rounds)
    cells = [f"{r:.2f} (≤ {c:g})" for r, c in zip(ratios, CEILINGS[name], strict=False)]
    which = f"{name}, {f'{at_least}+ payloads{made}' if at_least else 'all'} ({len(found)})"
    print(f"| {which} | {count} | {' | '.join(cells)} | {ratios[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
