"""What finding the items of a JSON array costs, as a multiple of ``orjson.loads`` on the same items.

Run ``python bench/json_array.py [FILE OR FOLDER ...]``; without a path it reads ``captures/gemini-json-array`` under
``$STREAMFOLD_SHARED`` (default ``../shared``). The recordings are measured as they are, and as one long answer of all
their items in the vendor's layout; the shapes below are made up. Linear means that the last column stays flat from
1 to 8 MB.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from streamfold.framing.json_array import JSONArrayStreamParser

ROUNDS = 9
MB = 1_000_000
SEPARATOR = b"\n,\r\n"  # the vendor's
LONG = 1000  # items in the long answer, about


def recordings(paths: list[str]) -> list[bytes]:
    shared = os.environ.get("STREAMFOLD_SHARED", "../shared")
    folders = [Path(path) for path in paths] or [Path(shared, "captures", "gemini-json-array")]
    files = [file for path in folders for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    return [file.read_bytes() for file in files]


def sized(wire: bytes, step: int) -> list[bytes]:
    return [wire[at : at + step] for at in range(0, len(wire), step)]


def one_item(wire: bytes) -> list[bytes]:
    """Reads as a live answer brings them: each one item, the separator in front of it."""
    first, *rest = wire.split(SEPARATOR)
    return [first, *(SEPARATOR + item for item in rest)]


def parse(streams: list[list[bytes]], parser: type[JSONArrayStreamParser] = JSONArrayStreamParser) -> None:
    for reads in streams:
        array = parser()
        for read in reads:
            array.take(read)
        array.finish("eof")


def items_of(streams: list[list[bytes]]) -> list[bytes]:
    found: list[bytes] = []
    for reads in streams:
        array = JSONArrayStreamParser()
        found += [item for read in reads for item in array.take(read)]
        found += array.finish("eof")
        if array.fault is not None:
            raise SystemExit(f"a recording does not parse: {array.fault}")
    return found


def load_all(items: list[bytes]) -> None:
    for item in items:
        orjson.loads(item)


def side_by_side(*ways: Callable[[], None]) -> list[float]:
    """Processor seconds of each, in turn, best of the rounds: other work on the machine moves the ratios little."""
    best = [float("inf")] * len(ways)
    for way in ways:
        way()
    for _ in range(ROUNDS):
        for k, way in enumerate(ways):
            gc.collect()
            began = time.thread_time()
            way()
            best[k] = min(best[k], time.thread_time() - began)
    return best


def repeated(work: Callable[[], None], times: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            work()

    return run


class General(JSONArrayStreamParser):
    fast = False


def compare(name: str, wires: list[bytes], times: int) -> None:
    cuts: dict[str, Callable[[bytes], list[bytes]]] = {
        "64 KiB": lambda wire: sized(wire, 65536),
        "4 KiB": lambda wire: sized(wire, 4096),
        "one item": one_item,
    }
    items = items_of([[wire] for wire in wires])
    for cut_name, cut in cuts.items():
        streams = [cut(wire) for wire in wires]
        if items_of(streams) != items:
            raise SystemExit(f"the items differ at {cut_name} reads")
        loads, short, general = side_by_side(
            repeated(lambda: load_all(items), times),
            repeated(lambda streams=streams: parse(streams), times),
            repeated(lambda streams=streams: parse(streams, General), times),
        )
        each = 1e6 / times / len(items)
        print(
            f"{name:<14}{cut_name:<10}{len(items):>7}{loads * each:>9.2f}{short * each:>9.2f}"
            f"{short / loads:>8.2f}{general / loads:>10.2f}"
        )


def one_big_item(size: int) -> bytes:
    return b'[{"data":"' + b"QUJD" * (size // 4) + b'"}]'


def structured_item(size: int) -> bytes:
    member = b'{"a": [1, "b\\n", {}], "c": null}\n,'
    return b'[{"rows":[' + (member * (size // len(member)))[:-1] + b"]}]"


def tiny_items(size: int) -> bytes:
    return b"[" + (b"{}\n," * (size // 4))[:-1] + b"]"


def tiny_items_on_a_line(size: int) -> bytes:
    return b"[" + (b'{"a":1},' * (size // 8))[:-1] + b"]"


def white_space(size: int) -> bytes:
    return b"[" + b" \r\n\t" * (size // 4) + b"]"


SHAPES: dict[str, tuple[Callable[[int], bytes], int]] = {
    "one big item, one read": (one_big_item, 1 << 30),
    "one big item, 1 KiB reads": (one_big_item, 1024),
    "one big item, 1-byte reads": (one_big_item, 1),
    "structured item, 1 KiB reads": (structured_item, 1024),
    "tiny items, one read": (tiny_items, 1 << 30),
    "tiny items, 1-byte reads": (tiny_items, 1),
    "tiny items on a line": (tiny_items_on_a_line, 1 << 30),
    "white space, 1 KiB reads": (white_space, 1024),
}


def growth() -> Iterator[tuple[str, list[float]]]:
    for name, (shape, step) in SHAPES.items():
        per_byte: list[float] = []
        for size in (MB, 8 * MB):
            wire = shape(size)
            best = float("inf")
            for _ in range(3 if step > 1 else 1):
                reads = sized(wire, step)
                gc.collect()
                began = time.thread_time()
                parse([reads])
                best = min(best, time.thread_time() - began)
            per_byte.append(best / len(wire) * 1e9)
        yield name, per_byte


def main() -> None:
    print(f"{'stream':<14}{'reads':<10}{'items':>7}{'loads us':>9}{'take us':>9}{'ratio':>8}{'general':>10}")
    wires = recordings(sys.argv[1:])
    if not wires:
        print("no recordings found", file=sys.stderr)
    else:
        compare("recordings", wires, times=50)
        items = items_of([[wire] for wire in wires])
        long = b"[" + SEPARATOR.join(items * (LONG // len(items) + 1)) + b"\n]"
        json.loads(long)
        compare("a long answer", [long], times=1)
    print(f"\n{'growth':<32}{'1 MB ns/B':>11}{'8 MB ns/B':>11}{'ratio':>8}")
    for name, (small, large) in growth():
        print(f"{name:<32}{small:>11.2f}{large:>11.2f}{large / small:>8.2f}")


if __name__ == "__main__":
    main()
