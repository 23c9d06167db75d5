"""What checkers know of recordings, replay, timing and relays. Checked, never run; an ignored error must be one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any, assert_type

import httpx2
from opentelemetry.metrics import Meter
from starlette.responses import StreamingResponse

import streamfold
from streamfold import Event, Recorder, Recording, Recordings, Snapshot, Stopwatch, Timing
from streamfold.client import open_stream
from streamfold.costs import Cost, cost_of
from streamfold.encoders.chat_completions import ChatCompletionsEncoder, achat_completions, chat_completions
from streamfold.otel import MetricsExport
from streamfold.relay.app import chat_completions_response
from streamfold.testing import ReplayRequest, ReplayServer
from streamfold.transports.recording import AsyncRecordingTransport, RecordingTransport


def what_is_recorded_is_read(folder: Path) -> None:
    with Recorder(folder / "x.sfcap", provider="anthropic", redact=False) as recorder:
        recorder.request("POST", "https://h", [("accept", "*/*")])
        recorder.response(200, (), "HTTP/1.1")
        recorder.read(b"data: {}\n\n")
        recorder.end("cut", error="gone")
        recorder.end("lost")  # type: ignore[arg-type]
    with streamfold.read_recording(folder / "x.sfcap") as recording:
        assert_type(recording, Recording)
        assert_type(streamfold.fold(recording), Snapshot)
        assert_type(list(recording.iter_bytes()), list[bytes])
        assert_type([read.t for read in recording], list[int])
        assert_type(recording.intact, bool | None)
        assert_type(recording.status_code, int | None)
    streamfold.read_recording(5)  # type: ignore[arg-type]


def clients_are_recorded(folder: Path, url: str) -> None:
    httpx2.Client(transport=RecordingTransport(folder, bodies=True))
    httpx2.AsyncClient(transport=AsyncRecordingTransport(lambda: folder / "one.sfcap"))
    open_stream("POST", url, observer=Recordings(folder))
    httpx2.Client(transport=AsyncRecordingTransport(folder))  # type: ignore[arg-type]


def what_is_recorded_is_replayed(folder: Path) -> None:
    with ReplayServer(folder, "more", pace="at-once", chunk=7, seed=1, fault="cut=event:3") as server:
        assert_type(server, ReplayServer)
        assert_type(server.openai_url, str)
        assert_type(server.served, dict[str, list[str]])
        assert_type(list(server.requests), list[ReplayRequest])
        assert_type(server.requests[0].headers, dict[str, str])
    ReplayServer(folder, speed=2)  # type: ignore[call-arg]


def times_are_taken(reads: Iterable[tuple[int, bytes]], answer: Snapshot, meter: Meter) -> None:
    watch = Stopwatch("openai-chat", begun_ns=0)
    assert_type([watch.read(t_ns, data) for t_ns, data in reads], list[list[Event]])
    assert_type(watch.end(9), list[Event])
    assert_type(watch.timing(), Timing)
    assert_type(watch.timing().time_to_first_token_s, float | None)
    assert_type(watch.timing().gaps_s, tuple[float, ...])
    MetricsExport(meter, conventions="inference").record(watch.timing(), answer, request_model="m")
    assert_type(cost_of(answer), Cost | None)
    Stopwatch(5)  # type: ignore[arg-type]
    MetricsExport(meter, conventions="mine")  # type: ignore[arg-type]


async def and_told_to_others(events: list[Event], later: AsyncIterator[Event]) -> Any:
    assert_type(chat_completions(events), Iterator[bytes])
    assert_type(ChatCompletionsEncoder().encode(events[0]), bytes)
    assert_type([piece async for piece in achat_completions(later)], list[bytes])
    response: StreamingResponse = chat_completions_response(later, model="m")
    chat_completions(later)  # type: ignore[arg-type]
    return response
