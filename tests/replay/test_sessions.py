"""Recorded sessions over real WebSockets: to ``websockets``, and to our own client of live sessions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import streamfold
from streamfold import LiveSession
from streamfold.recording.files import Recorder
from streamfold.testing import ReplayServer
from tests.conftest import SHARED
from tests.live import Recording, recordings

LIVE = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
PATHS = {
    "gemini-live": LIVE,
    "lyria": "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateMusic",
    "openai-realtime": "/v1/realtime",
    "xai-realtime": "/v1/realtime",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/interactions/live",
    "gemini-interactions": "/v1beta/interactions/live",
    "xai-stt": "/v1/stt",
    "xai-tts": "/v1/tts",
}
SESSIONS = {name: told for name, told in recordings(SHARED) if told.facts["connections"] == 1}
SETUP = {"setup": {"model": "models/m"}}
LINES: list[dict[str, Any]] = [
    {"dir": "out", "frame": SETUP},
    {"dir": "in", "frame": {"setupComplete": {}}},
    {"dir": "out", "frame": {"realtimeInput": {"text": "hello"}}},
    {"dir": "in", "frame": {"serverContent": {"modelTurn": {"parts": [{"text": "Hi "}]}}}},
    {"dir": "in", "frame": {"serverContent": {"modelTurn": {"parts": [{"text": "there."}]}}}},
    {"dir": "in", "frame": {"serverContent": {"turnComplete": True}}},
    {"dir": "close", "code": 1001, "reason": "going away"},
]
FRAMES = [json.dumps(line["frame"]) for line in LINES if line["dir"] == "in"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayServer]:
    path = tmp_path_factory.mktemp("sessions") / "hello.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    with ReplayServer(path) as server:
        yield server


def run(client: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(client(), 20))


async def heard(server: ReplayServer, said: str = "", *, path: str = LIVE) -> tuple[list[str], int | None]:
    """The messages that came, and the close code; None where the connection broke."""
    frames: list[str] = []
    async with connect(f"{server.ws_url}{path}?key=k{said}", proxy=None) as socket:
        with suppress(ConnectionClosed):  # who said all does not wait for what the client has to say
            for line in LINES:
                if line["dir"] == "out":
                    await socket.send(json.dumps(line["frame"]))
        try:
            while True:
                frames.append(str(await socket.recv()))
        except ConnectionClosed as closed:
            return frames, None if closed.rcvd is None else closed.rcvd.code


def test_the_server_waits_for_the_client_where_the_recording_did(server: ReplayServer) -> None:
    async def client() -> None:
        async with connect(server.ws_url + LIVE, proxy=None) as socket:
            await silent(socket)
            await socket.send(json.dumps(SETUP))
            assert json.loads(await socket.recv()) == {"setupComplete": {}}
            await silent(socket)
            await socket.send("{}")
            assert [json.loads(await socket.recv()) for _ in range(3)] == [json.loads(frame) for frame in FRAMES[1:]]
            with pytest.raises(ConnectionClosed, match="1001"):
                await socket.recv()

    run(client)


async def silent(socket: ClientConnection) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(socket.recv(), 0.05)


@pytest.mark.parametrize("name", SESSIONS)
def test_every_recorded_session_is_replayed(name: str) -> None:
    recording: Recording = SESSIONS[name]
    provider = recording.facts["provider"]

    async def client() -> LiveSession:
        async with streamfold.live(provider, server.ws_url + PATHS[provider], attempts=0) as connection:
            for frame in recording.frames("out"):
                await connection.send(frame)
            async for _ in connection:
                pass
            return connection.session

    with ReplayServer(SHARED / "captures" / name) as server:
        session = run(client)
    alone = LiveSession(provider)
    for frame in recording.frames("out"):
        alone.sent(frame)
    for frame in recording.frames():
        alone.feed(frame)
    ends = [(line["code"], line["reason"]) for line in recording.lines if line["dir"] == "close"]
    alone.close(*(ends[-1] if ends else (1000, "")))
    assert [turn.to_json() for turn in session.turns] == [turn.to_json() for turn in alone.turns]
    assert session.turns or not recording.facts["messages"]


FAULTS = {
    "none": ("", FRAMES, 1001),
    "cut": ("cut=event:2", FRAMES[:2], None),
    "reset": ("reset=event:1", FRAMES[:1], None),
    "end": ("end=event:3", FRAMES[:3], 1000),
    "inside a message": ("cut=byte:30", FRAMES[:1], None),
}


@pytest.mark.parametrize(("fault", "frames", "code"), FAULTS.values(), ids=FAULTS.keys())
def test_faults(server: ReplayServer, fault: str, frames: list[str], code: int | None) -> None:
    got, closed = run(lambda: heard(server, f"&streamfold-fault={fault}" if fault else ""))
    assert [json.loads(frame) for frame in got] == [json.loads(frame) for frame in frames]
    assert closed == code


def test_garbage_is_a_message_of_its_own_that_no_session_overlooks(server: ReplayServer) -> None:
    got, closed = run(lambda: heard(server, "&streamfold-fault=garbage=event:1"))
    assert (len(got), closed) == (len(FRAMES) + 1, 1001)
    for provider in PATHS:
        session = LiveSession(provider)
        session.sent(LINES[0]["frame"])
        errors = [told.event for told in session.feed(got[1]) if told.event.type == "error"]
        assert [error.code for error in errors] == ["bad_json"], provider


def test_a_stall_lasts_until_the_client_leaves(server: ReplayServer) -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(heard(server, "&streamfold-fault=stall=2"), 0.5))


@pytest.mark.parametrize(
    ("said", "path", "status"),
    [
        ("&streamfold-fault=error=429", LIVE, 429),
        ("&streamfold-recording=none", LIVE, 404),
        ("", "/v1/realtime", 404),
        ("", "/elsewhere", 404),
        ("&streamfold-fault=x", LIVE, 400),
    ],
)
def test_handshakes_are_refused(server: ReplayServer, said: str, path: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        run(lambda: heard(server, said, path=path))
    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]


def test_a_session_with_times_keeps_kind_and_pace(tmp_path: Path) -> None:
    now = 0
    with Recorder(tmp_path / "live.sfcap", clock=lambda: now) as recorder:
        recorder.request("GET", f"wss://generativelanguage.googleapis.com{LIVE}")
        recorder.response(101)
        recorder.read(json.dumps(SETUP).encode(), op="text", sent=True)
        for frame in FRAMES:
            now += 10**9
            recorder.read(frame.encode(), op="binary")
        recorder.end(code=4001, reason="enough")

    async def client() -> tuple[list[Any], float]:
        begun = asyncio.get_running_loop().time()
        async with connect(server.ws_url + LIVE, proxy=None) as socket:
            await socket.send("{}")
            frames = [await socket.recv() for _ in FRAMES]
            with pytest.raises(ConnectionClosed, match="4001"):
                await socket.recv()
        return frames, asyncio.get_running_loop().time() - begun

    with ReplayServer(tmp_path, pace=20) as server:
        assert server.served == {"gemini-live": ["live"]}
        frames, took = run(client)
    assert frames == [frame.encode() for frame in FRAMES]
    assert took >= len(FRAMES) / 20


def test_what_no_frame_can_hold_is_sent_as_far_as_one_can(tmp_path: Path) -> None:
    """A text that is none, and a reason longer than a close frame."""
    head = b'{"sfcap":1,"request":{"method":"GET","url":"wss://h/v1/tts"},"response":{"status":101}}\n'
    end = b'{"t":3,"end":"eof","bytes":1,"reads":1,"sha256":"","code":1000,"reason":"%b"}\n' % ("é" * 300).encode()
    (tmp_path / "x.sfcap").write_bytes(head + b'{"t":1,"op":"text","base64":"/w=="}\n' + end)
    with ReplayServer(tmp_path) as server:
        assert asyncio.run(heard(server, path="/v1/tts")) == (["\ufffd"], 1000)
