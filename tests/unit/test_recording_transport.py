"""The official clients over the transport that records: each gets what it would have got, and so does the recording."""

from __future__ import annotations

import asyncio
import gzip
import http.server
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import streamfold
from streamfold.client import open_stream
from streamfold.recording.files import Recordings, read_recording
from streamfold.transports.recording import AsyncRecordingTransport, RecordingTransport
from tests.conftest import ROOT
from tests.official import anthropic, genai, openai

RECORDED = ROOT / "examples/recordings"
BODIES = {
    "/v1/messages": RECORDED / "anthropic-thinking-tool-use.sse",
    "/v1/responses": RECORDED / "openai-responses-function-call.sse",
    "/v1/chat/completions": RECORDED / "openai-chat-parallel-tools.sse",
    "/models/m:streamGenerateContent": RECORDED / "gemini-thought-signature.sse",
}
REFUSED = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers with the recording of its path, in chunks; what else it does, a parameter of the path says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        refused, cut, packed = (self.path.startswith(f"/{kind}/") for kind in ("refused", "cut", "packed"))
        body = REFUSED if refused else next(file for end, file in BODIES.items() if path.endswith(end)).read_bytes()
        body = gzip.compress(body) if packed else body
        self.send_response(529 if refused else 200)
        self.send_header("content-type", "application/json" if refused else "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("set-cookie", "session=s3cret")
        if packed:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        for at in range(0, len(body) // 2 if cut else len(body), 700):
            chunk = body[at : at + 700]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        if cut:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
        """Be quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


MESSAGES: Any = [{"role": "user", "content": "s3cret no more"}]


def _anthropic(url: str, client: httpx2.Client) -> int:
    its = anthropic.Anthropic(api_key="s3cret", base_url=url, http_client=client, max_retries=0)
    with its, its.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        return len(list(stream))


def _responses(url: str, client: httpx2.Client) -> int:
    its = openai.OpenAI(api_key="s3cret", base_url=f"{url}/v1", http_client=client, max_retries=0)
    with its, its.responses.create(model="m", input="x", stream=True) as stream:
        return len(list(stream))


def _chat(url: str, client: httpx2.Client) -> int:
    its = openai.OpenAI(api_key="s3cret", base_url=f"{url}/v1", http_client=client, max_retries=0)
    with its, its.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        return len(list(stream))


def _gemini(url: str, client: httpx2.Client) -> int:
    options = genai.types.HttpOptions(base_url=url, httpx_client=client)
    its = genai.Client(api_key="s3cret", http_options=options)
    return len(list(its.models.generate_content_stream(model="m", contents="x")))


async def _aanthropic(url: str, client: httpx2.AsyncClient) -> int:
    its = anthropic.AsyncAnthropic(api_key="s3cret", base_url=url, http_client=client, max_retries=0)
    async with its, its.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        return len([event async for event in stream])


async def _aresponses(url: str, client: httpx2.AsyncClient) -> int:
    its = openai.AsyncOpenAI(api_key="s3cret", base_url=f"{url}/v1", http_client=client, max_retries=0)
    async with its, await its.responses.create(model="m", input="x", stream=True) as stream:
        return len([event async for event in stream])


async def _achat(url: str, client: httpx2.AsyncClient) -> int:
    its = openai.AsyncOpenAI(api_key="s3cret", base_url=f"{url}/v1", http_client=client, max_retries=0)
    async with its, await its.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
        return len([event async for event in stream])


async def _agemini(url: str, client: httpx2.AsyncClient) -> int:
    options = genai.types.HttpOptions(base_url=url, httpx_async_client=client)
    its = genai.Client(api_key="s3cret", http_options=options)
    stream = await its.aio.models.generate_content_stream(model="m", contents="x")
    return len([chunk async for chunk in stream])


CLIENTS: dict[str, tuple[Callable[..., int], Callable[..., Any], str]] = {
    "anthropic": (_anthropic, _aanthropic, "/v1/messages"),
    "responses": (_responses, _aresponses, "/v1/responses"),
    "chat": (_chat, _achat, "/v1/chat/completions"),
    "gemini": (_gemini, _agemini, "/models/m:streamGenerateContent"),
}


def run(kind: str, url: str, folder: Path | None, *, asynchronous: bool, **settings: Any) -> int:
    """How many events the official client gives; with a folder, recorded into it."""
    sync, async_, _ = CLIENTS[kind]
    if not asynchronous:
        with httpx2.Client(transport=RecordingTransport(folder, **settings) if folder else None) as client:
            return sync(url, client)

    async def main() -> int:
        transport = AsyncRecordingTransport(folder, **settings) if folder else None
        async with httpx2.AsyncClient(transport=transport) as client:
            count: int = await async_(url, client)
            return count

    return asyncio.run(main())


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("prefix", ["", "/packed"], ids=["plain", "packed"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_an_official_client_is_recorded(tmp_path: Path, url: str, kind: str, prefix: str, asynchronous: bool) -> None:
    expected = run(kind, url + prefix, None, asynchronous=asynchronous)
    assert run(kind, url + prefix, tmp_path, asynchronous=asynchronous, provider="auto") == expected > 1
    [path] = tmp_path.iterdir()
    assert b"s3cret" not in path.read_bytes()
    body = BODIES[CLIENTS[kind][2]].read_bytes()
    with read_recording(path) as recording:
        reads = list(recording)
    assert recording.end is not None
    assert recording.end.end in ("eof", "cancel")  # some leave behind the last event
    assert recording.intact
    assert [read.t for read in reads] == sorted(read.t for read in reads)
    assert b"".join(read_recording(path).iter_bytes()) == body
    if not prefix:
        assert all(len(read.data) <= 700 or len(read.data) % 700 == 0 or read is reads[-1] for read in reads)
    assert recording.head.request is not None
    assert recording.head.request.method == "POST"
    assert recording.head.request.body is None
    assert recording.head.response is not None
    assert recording.head.response.status == 200
    assert recording.head.response.http_version == "HTTP/1.1"
    assert 0 < recording.head.response.t <= reads[0].t
    assert streamfold.fold(read_recording(path)) == streamfold.fold(body)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_refusal_and_a_cut_are_recorded(tmp_path: Path, url: str, asynchronous: bool) -> None:
    with pytest.raises(anthropic.APIStatusError):
        run("anthropic", f"{url}/refused", tmp_path, asynchronous=asynchronous)
    with pytest.raises((httpx2.HTTPError, anthropic.APIConnectionError)):
        run("anthropic", f"{url}/cut", tmp_path, asynchronous=asynchronous)
    with pytest.raises(anthropic.APIConnectionError):
        run("anthropic", "http://127.0.0.1:9", tmp_path, asynchronous=asynchronous)
    refused, cut, nowhere = sorted(tmp_path.iterdir())
    answer = streamfold.fold(read_recording(refused))
    assert answer.error is not None
    assert (answer.error.status, answer.error.retryable) == (529, True)
    with pytest.raises(ConnectionError):
        streamfold.fold(read_recording(cut))
    with read_recording(nowhere) as recording:
        assert list(recording) == []
    assert recording.head.response is None
    assert recording.end is not None
    assert recording.end.end == "cut"
    assert recording.end.error is not None
    assert recording.end.error.startswith("ConnectError: ")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_who_leaves_early_has_cancelled(tmp_path: Path, url: str, asynchronous: bool) -> None:
    if asynchronous:

        async def main() -> None:
            transport = AsyncRecordingTransport(tmp_path, bodies=True)
            async with (
                httpx2.AsyncClient(transport=transport) as client,
                client.stream("POST", f"{url}/v1/responses", content=b"{}") as response,
            ):
                await anext(response.aiter_bytes())

        asyncio.run(main())
    else:
        with (
            httpx2.Client(transport=RecordingTransport(tmp_path, bodies=True)) as client,
            client.stream("POST", f"{url}/v1/responses", content=b"{}") as response,
        ):
            next(response.iter_bytes())
    [path] = tmp_path.iterdir()
    with read_recording(path) as recording:
        assert len(list(recording)) == 1
    assert recording.head.request is not None
    assert recording.head.request.body == "{}"
    assert recording.end is not None
    assert recording.end.end == "cancel"


def test_the_client_takes_a_folder_of_recordings_for_its_observer(tmp_path: Path, url: str) -> None:
    for _ in range(2):
        with open_stream("POST", f"{url}/packed/v1/messages", json={}, observer=Recordings(tmp_path)) as stream:
            count = len(list(stream))
    assert count > 1
    for path in tmp_path.iterdir():
        assert streamfold.fold(read_recording(path)) == stream.snapshot()
    assert len(list(tmp_path.iterdir())) == 2
