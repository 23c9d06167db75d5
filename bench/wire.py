"""Two hundred answers at once on the loopback: ``streamfold.client`` reads ``streamfold replay``; one reader is frozen.

    python bench/wire.py [--streams 200] [--rounds 5]

Server and client are a process each. The frozen one stops behind its first event of an answer of 60 MB; the others read
a recording, round by round. Told are their times to the end, without the frozen one and beside it, what of the long
answer was read meanwhile, and the memory of both processes round by round (resident, in MiB).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from streamfold.client import aopen_stream

ROOT = Path(__file__).resolve().parent.parent
RECORDING = "openai-responses-function-call"
PIECE = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "x" * 1000}}]}


def resident_mib(pid: int | str) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Taken:
    """An observer that counts the bytes of its connection."""

    count = 0

    def request(self, *_: object) -> None: ...

    def response(self, *_: object) -> None: ...

    def end(self, *_: object, **__: object) -> None: ...

    def read(self, data: bytes) -> None:
        self.count += len(data)


async def one(client: httpx2.AsyncClient, url: str) -> float:
    began = time.perf_counter()
    asked = {"model": RECORDING, "stream": True}
    async with aopen_stream("POST", f"{url}/v1/responses", json=asked, client=client) as stream:
        async for _ in stream:
            pass
    assert stream.snapshot().outcome == "complete"
    return time.perf_counter() - began


def told(times: list[float]) -> str:
    times.sort()
    return f"p50 {times[len(times) // 2] * 1000:.0f} ms, p99 {times[len(times) * 99 // 100] * 1000:.0f} ms"


async def measured(url: str, server: int, streams: int, rounds: int) -> None:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:

        async def all_of(count: int) -> list[float]:
            return [t for _ in range(rounds) for t in await asyncio.gather(*(one(client, url) for _ in range(count)))]

        await asyncio.gather(*(one(client, url) for _ in range(streams)))
        gc.collect()
        print(f"without a frozen reader: {told(await all_of(streams - 1))}")
        taken = Taken()
        asked = {"model": "large", "stream": True}
        frozen = aopen_stream("POST", f"{url}/v1/chat/completions", json=asked, client=client, observer=lambda: taken)
        async with frozen:
            await anext(frozen)
            memory = [(resident_mib("self"), resident_mib(server))]
            times: list[float] = []
            for _ in range(rounds):
                times += await asyncio.gather(*(one(client, url) for _ in range(streams - 1)))
                memory.append((resident_mib("self"), resident_mib(server)))
            print(f"beside a frozen reader:  {told(times)}; of the 60 MB it took {taken.count / 1024:.0f} KiB")
        for name, values in zip(("client", "server"), zip(*memory, strict=True), strict=True):
            print(f"{name}, MiB: {', '.join(f'{value:.1f}' for value in values)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.sse"
        large.write_bytes(b"data: %b\n\n" % json.dumps(PIECE).encode() * 55_000)
        command = [sys.executable, "-m", "streamfold", "replay", folder, str(ROOT / "examples/recordings")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                url = next(line for line in server.stdout if line.startswith("ANTHROPIC")).strip().partition("=")[2]
                asyncio.run(measured(url, server.pid, options.streams, options.rounds))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
