"""The client over HTTP/2: a client of the caller's with ``http2=True``, whose answers share a connection.

httpx2 does not tell the server that an answer was left (no RST_STREAM), which the page on the client says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2
import pytest
import trio

import streamfold
from streamfold import Event
from streamfold.client import aopen_stream, open_stream
from tests.http2_server import Act, Http2Server, serving_http2
from tests.samples import CHAT

CUT = len(CHAT) // 2
SAID: dict[str, list[Act]] = {
    "/whole": [CHAT[:CUT], 0.01, CHAT[CUT:], "end"],
    "/silent": [CHAT[:CUT], "hold"],
    "/reset": [CHAT[:CUT], "reset"],
    "/goaway": [CHAT[:CUT], "goaway"],
}


class Got(NamedTuple):
    """What an answer came to."""

    events: list[Event]
    fault: httpx2.HTTPError | None
    version: str


def read(client: httpx2.Client, url: str, **options: Any) -> Got:
    events: list[Event] = []
    with open_stream("POST", url, json={}, client=client, **options) as stream:
        assert stream.response is not None
        try:
            for event in stream:
                events.append(event)  # noqa: PERF402 - what came before it raised is what matters
        except httpx2.HTTPError as fault:
            return Got(events, fault, stream.response.http_version)
    return Got(events, None, stream.response.http_version)


async def aread(client: httpx2.AsyncClient, url: str, **options: Any) -> Got:
    events: list[Event] = []
    async with aopen_stream("POST", url, json={}, client=client, **options) as stream:
        assert stream.response is not None
        try:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before it raised is what matters
        except httpx2.HTTPError as fault:
            return Got(events, fault, stream.response.http_version)
    return Got(events, None, stream.response.http_version)


def by_threads(url: str) -> dict[str, Got]:
    with httpx2.Client(http1=False, http2=True) as client:
        return {path: read(client, url + path, idle_timeout_s=0.2) for path in SAID}


async def by_tasks(url: str) -> dict[str, Got]:
    async with httpx2.AsyncClient(http1=False, http2=True) as client:
        return {path: await aread(client, url + path, idle_timeout_s=0.2) for path in SAID}


WAYS: dict[str, Callable[[str], dict[str, Got]]] = {
    "sync": by_threads,
    "asyncio": lambda url: asyncio.run(by_tasks(url)),
    "trio": lambda url: trio.run(by_tasks, url),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_answers_and_faults_are_those_of_any_connection(way: Callable[[str], dict[str, Got]]) -> None:
    with serving_http2(SAID.__getitem__) as server:
        began = time.monotonic()
        got = way(server.url)
        assert time.monotonic() - began < 2
    assert {one.version for one in got.values()} == {"HTTP/2"}
    assert (got["/whole"].events, got["/whole"].fault) == (list(streamfold.iter_unified([CHAT])), None)
    told = {path: (one.events[-1].type, getattr(one.events[-1], "code", None)) for path, one in got.items()}
    assert told == {
        "/whole": ("done", None),
        "/silent": ("error", "idle_timeout"),
        "/reset": ("error", "broken_off"),
        "/goaway": ("error", "broken_off"),
    }


def test_who_leaves_or_cancels_leaves_the_others_on_the_connection_alone() -> None:
    async def later(server: Http2Server) -> None:
        async with httpx2.AsyncClient(http1=False, http2=True) as client:
            url = server.url
            async with (
                aopen_stream("POST", f"{url}/silent", json={}, client=client) as left,
                aopen_stream("POST", f"{url}/silent?2", json={}, client=client) as cancelled,
            ):
                await anext(left)
                await anext(cancelled)
                await left.aclose()
                await cancelled.cancel()
                assert (await aread(client, f"{url}/whole")).events[-1].type == "done"
                assert asyncio.all_tasks() == {asyncio.current_task()}

    with serving_http2(lambda path: SAID[path.partition("?")[0]]) as server:
        with httpx2.Client(http1=False, http2=True) as client:
            url = server.url
            with (
                open_stream("POST", f"{url}/silent", json={}, client=client) as left,
                open_stream("POST", f"{url}/silent?2", json={}, client=client) as cancelled,
            ):
                next(left)
                next(cancelled)
                left.close()
                cancelled.cancel()
                assert read(client, f"{url}/whole").events[-1].type == "done"
        assert server.connections == 1
        asyncio.run(later(server))
        assert server.connections == 2
