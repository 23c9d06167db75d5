"""Our own client against the replay server: both ends of the wire, with every fault between them."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from streamfold import Event, Snapshot, encode_event
from streamfold.client import aopen_stream, open_stream
from streamfold.recording.files import Recorder
from streamfold.testing import ReplayServer
from tests.replay.conftest import RECORDINGS
from tests.replay.test_server import PATHS, RESPONSES, STEPS, with_event_ids

QUICK: Any = {"delay_s": 0.0, "attempts": 2}
RUNS = {
    "openai-responses": ("/v1/responses", RESPONSES),
    "gemini-interactions": ("/v1beta/interactions", with_event_ids(STEPS)),
}


def told(server: ReplayServer, path: str, *, background: bool = False, **more: Any) -> tuple[list[Event], Snapshot]:
    """Events of an answer, and the answer; what is raised behind an error is let go."""
    asked = {"stream": True, "background": background} if background else {"stream": True}
    events: list[Event] = []
    with open_stream("POST", server.url + path, json=asked, **{**QUICK, **more}) as stream:
        try:
            for event in stream:
                events.append(event)  # noqa: PERF402 - those before a fault stay
        except httpx2.HTTPError:
            assert events[-1].type == "error"
    return events, stream.snapshot()


def told_async(server: ReplayServer, path: str) -> list[Event]:
    async def events() -> list[Event]:
        asked = {"stream": True, "background": True}
        async with aopen_stream("POST", server.url + path, json=asked, **QUICK) as stream:
            return [event async for event in stream]

    return asyncio.run(events())


@pytest.mark.parametrize("surface", RUNS)
@pytest.mark.parametrize("fault", ["cut", "reset", "end"])
def test_a_run_that_breaks_behind_every_event_is_told_as_one(surface: str, fault: str, tmp_path: Path) -> None:
    path, body = RUNS[surface]
    (tmp_path / "run.sse").write_bytes(body)
    with ReplayServer(tmp_path) as server:
        whole, answer = told(server, path, background=True)
    with ReplayServer(tmp_path, fault=f"{fault}=event:1") as server:
        pieces, same = told(server, path, background=True)
        assert len(server.requests) >= body.count(b"\n\n") - 1
        again = told_async(server, path)
    assert [encode_event(event) for event in pieces] == [encode_event(event) for event in whole]
    assert [encode_event(event) for event in again] == [encode_event(event) for event in whole]
    assert same.to_json() == answer.to_json()


FAULTS: dict[str, tuple[str, dict[str, Any], tuple[Any, ...]]] = {
    # fault -> settings of the client, and kind, code and status of the error
    "cut": ("cut=1200", {}, ("transport", "broken_off", None)),
    "reset": ("reset=1200", {}, ("transport", "broken_off", None)),
    "end": ("end=1200", {}, ("truncated", None, None)),
    "garbage between events": ("garbage=event:2", {}, ("protocol", "bad_json", None)),
    "garbage": ("garbage=random", {}, ("protocol", "bad_json", None)),
    "stall": ("stall=3", {"idle_timeout_s": 0.2}, ("transport", "idle_timeout", None)),
    "first byte": ("first-byte=9", {"first_byte_timeout_s": 0.2}, ("transport", "first_byte_timeout", None)),
    "refused": ("error=429", {}, ("provider", "rate_limit_error", 429)),
    "overloaded": ("error=529", {}, ("provider", "overloaded_error", 529)),
    "without a stream": ("stall=0", {"first_byte_timeout_s": 0.2}, ("transport", "first_byte_timeout", None)),
}


@pytest.mark.parametrize(("fault", "settings", "error"), FAULTS.values(), ids=FAULTS.keys())
def test_every_fault_is_one_typed_error_in_its_time(
    server: ReplayServer, fault: str, settings: dict[str, Any], error: tuple[Any, ...]
) -> None:
    begun = time.monotonic()
    headers = {"streamfold-fault": fault, "streamfold-recording": "anthropic-thinking-tool-use"}
    events, answer = told(server, "/v1/messages", headers=headers, **settings)
    assert time.monotonic() - begun < 2
    last = events[-1]
    assert last.type == "error"
    assert [event.type for event in events].count("error") == 1
    assert (last.kind, last.code, last.status) == error
    assert not answer.tool_calls


AT_ANY: dict[str, tuple[dict[str, Any], set[tuple[str, str | None]]]] = {
    # fault -> settings of the client, and kind and code of the error; the word for a refusal is the surface's own
    "cut=event:1": ({}, {("transport", "broken_off")}),
    "reset=event:1": ({}, {("transport", "broken_off")}),
    "end=event:1": ({}, {("truncated", None)}),
    "garbage=event:1": ({}, {("protocol", "bad_json"), ("protocol", "malformed"), ("protocol", "checksum")}),
    "stall=event:1": ({"idle_timeout_s": 0.1}, {("transport", "idle_timeout")}),
    "first-byte=9": ({"first_byte_timeout_s": 0.1}, {("transport", "first_byte_timeout")}),
    "error=429": ({}, set()),
    "error=529": ({}, set()),
}


@pytest.mark.parametrize("surface", PATHS)
def test_faults_are_those_of_every_surface(server: ReplayServer, surface: str) -> None:
    with httpx2.Client() as client:
        for fault, (settings, errors) in AT_ANY.items():
            headers = {"streamfold-fault": fault}
            if surface == "anthropic":  # another of its recordings ends in an error by itself
                headers["streamfold-recording"] = "anthropic-thinking-tool-use"
            provider: Any = "ollama" if surface == "ollama" else "auto"
            events, answer = told(server, PATHS[surface], headers=headers, client=client, provider=provider, **settings)
            last = events[-1]
            assert last.type == "error", fault
            assert not answer.tool_calls, fault
            if errors:
                assert (last.kind, last.code) in errors, fault
            else:
                assert (last.kind, last.status, last.retryable) == ("provider", int(fault[-3:]), True), fault


def test_what_was_cancelled_ends_so(tmp_path: Path) -> None:
    for surface, (path, body) in RUNS.items():
        recording = tmp_path / f"{surface}.sse"
        recording.write_bytes(body)
        with ReplayServer(recording, fault="stall=4") as server:
            asked = {"stream": True, "background": True}
            with open_stream("POST", server.url + path, json=asked, **QUICK) as stream:
                for event in stream:
                    if event.type == "block_start":
                        stream.cancel()
                        break
            assert stream.snapshot().outcome == "cancelled"
            assert re.search(r"/cancel$", server.requests[-1].path)


def test_what_is_recorded_of_a_replay_is_replayed_the_same(tmp_path: Path) -> None:
    with ReplayServer(RECORDINGS, chunk=1000) as server:
        url, asked = f"{server.url}/v1/messages", {"model": "anthropic-thinking-tool-use", "stream": True}
        observer = lambda: Recorder(tmp_path / "again.sfcap.zst")  # noqa: E731 - one a connection
        with open_stream("POST", url, json=asked, observer=observer) as stream:
            first = [encode_event(event) for event in stream]
    with ReplayServer(tmp_path, pace="at-once") as server:
        assert server.served == {"anthropic": ["again"]}
        events, _ = told(server, "/v1/messages")
    assert [encode_event(event) for event in events] == first
