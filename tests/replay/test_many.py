"""Two hundred answers at once through client and replay server, one reader frozen. Figures: ``bench/wire.py``."""

from __future__ import annotations

import asyncio
import gc
import json
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest

import streamfold
from streamfold.client import aopen_stream
from streamfold.testing import ReplayServer
from tests.replay.conftest import RECORDINGS

PIECE = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "x" * 1000}}]}
ASKED = {
    # recording -> path
    "openai-chat-parallel-tools": "/v1/chat/completions",
    "anthropic-thinking-tool-use": "/v1/messages",
    "gemini-partial-args": "/v1beta/models/gemini-partial-args:streamGenerateContent?alt=sse",
    "gemini-interactions-steps": "/v1beta/interactions",
}


class Taken:
    """An observer that counts the bytes of its connection."""

    count = 0

    def request(self, *_: Any) -> None: ...

    def response(self, *_: Any) -> None: ...

    def end(self, *_: Any, **__: Any) -> None: ...

    def read(self, data: bytes) -> None:
        self.count += len(data)


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is seen in /proc")
def test_a_frozen_reader_among_two_hundred_leaves_the_others_alone_and_memory_flat(tmp_path: Path) -> None:
    (tmp_path / "large.sse").write_bytes(b"data: %b\n\n" % json.dumps(PIECE).encode() * 20_000)
    whole = {name: streamfold.fold([(RECORDINGS / f"{name}.sse").read_bytes()]).to_json() for name in ASKED}

    async def one(url: str, name: str, client: httpx2.AsyncClient) -> None:
        asked = {"model": name, "stream": True}
        async with aopen_stream("POST", url + ASKED[name], json=asked, client=client) as stream:
            async for _ in stream:
                pass
        assert stream.snapshot().to_json() == whole[name]

    async def others(url: str, client: httpx2.AsyncClient) -> None:
        names = [*ASKED] * 50
        await asyncio.gather(*(one(url, name, client) for name in names[1:]))

    async def client_of(url: str) -> None:
        limits, taken = httpx2.Limits(max_connections=None, max_keepalive_connections=None), Taken()
        async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
            asked = {"model": "large", "stream": True}
            at = f"{url}/v1/chat/completions"
            async with aopen_stream("POST", at, json=asked, client=client, observer=lambda: taken) as frozen:
                await anext(frozen)
                await others(url, client)
                count, before = taken.count, resident()
                await others(url, client)
                assert taken.count == count < 1_000_000  # of twenty: nothing is read for who does not ask
                assert resident() - before < 8_000_000
                async for _ in frozen:  # and it can go on
                    if taken.count > 5_000_000:
                        break

    with ReplayServer(tmp_path, RECORDINGS) as server:
        asyncio.run(client_of(server.url))
