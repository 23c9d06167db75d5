"""What checkers know of the client. Checked by mypy and pyright, never run; an ignored error must be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_type

import httpx2

import streamfold
from streamfold import Event, Snapshot
from streamfold.client import AsyncClientStream, ClientStream, EndHow, Head, Observer, aopen_stream, open_stream
from streamfold.recording.files import Recorder


class Quiet:
    """An observer."""

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> None: ...

    def response(self, status: int, headers: Iterable[tuple[str, str]], http_version: str) -> None: ...

    def read(self, data: bytes) -> None: ...

    def end(self, how: EndHow, *, error: str | None = None) -> None: ...


def a_stream_is_an_iterator_under_with(request: httpx2.Request, client: httpx2.Client) -> None:
    observers: list[Callable[[], Observer]] = [Quiet, lambda: Recorder("x.sfcap")]
    with open_stream(request, client=client, provider="xai", observer=observers[0], raw="none") as stream:
        assert_type(stream, ClientStream)
        for event in stream:
            assert_type(event, Event)
        assert_type(stream.cancel(), bool)
    assert_type(stream.snapshot(), Snapshot)
    assert_type(stream.response, Head | None)
    streamfold.client.open_stream("GET", "http://h", idle_timeout_s=None)
    open_stream("GET", "http://h", drain_timeout_s=None)  # type: ignore[arg-type]
    open_stream("GET", "http://h", client=httpx2.AsyncClient())  # type: ignore[arg-type]
    open_stream("GET", "http://h", raw="some")  # type: ignore[arg-type]


async def and_awaited(client: httpx2.AsyncClient) -> None:
    async with aopen_stream("POST", "http://h", json={}, client=client) as stream:
        assert_type(stream, AsyncClientStream)
        async for event in stream:
            assert_type(event, Event)
        assert_type(await stream.cancel(), bool)
