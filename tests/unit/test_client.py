"""The client against servers on the loopback that say every byte, pause and end: sync, under asyncio and under trio."""

from __future__ import annotations

import asyncio
import gc
import gzip
import re
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from itertools import islice, pairwise
from types import AsyncGeneratorType, GeneratorType
from typing import Any, NamedTuple

import httpx2
import pytest
import trio

import streamfold
from streamfold import ErrorEvent, Event, Snapshot, UsageError
from streamfold.client import AsyncClientStream, ClientStream, EndHow, Head, aopen_stream, open_stream
from streamfold.recording.files import Recorder, read_recording
from tests.conftest import ROOT, shared_or_skip
from tests.samples import ANSWERS, ANTHROPIC, CHAT, RESPONSES_PAYLOADS, array, sse
from tests.wire_server import END, Act, Asked, WireServer, chunk, head, serving, whole

BACKGROUND = {"background": True, "stream": True, "store": True}
QUICK: dict[str, Any] = {"delay_s": 0.001}


class Read(NamedTuple):
    """What an answer came to."""

    events: list[Event]
    answer: Snapshot
    fault: Exception | None
    head: Head | None


STREAM: Any = {"stream": True}


def read(url: str, method: str = "POST", json: Any = STREAM, **options: Any) -> Read:
    events: list[Event] = []
    fault = None
    with open_stream(method, url, json=json, **options) as stream:
        try:
            for event in stream:
                events.append(event)  # noqa: PERF402 - what came before it raised is what matters
        except httpx2.HTTPError as raised:
            fault = raised
    return Read(events, stream.snapshot(), fault, stream.response)


async def aread(url: str, method: str = "POST", json: Any = STREAM, **options: Any) -> Read:
    events: list[Event] = []
    fault = None
    async with aopen_stream(method, url, json=json, **options) as stream:
        try:
            async for event in stream:
                events.append(event)  # noqa: PERF401 - what came before it raised is what matters
        except httpx2.HTTPError as raised:
            fault = raised
    return Read(events, stream.snapshot(), fault, stream.response)


def by_asyncio(url: str, **options: Any) -> Read:
    return asyncio.run(aread(url, **options))


def by_trio(url: str, **options: Any) -> Read:
    return trio.run(partial(aread, url, **options))


WAYS: dict[str, Callable[..., Read]] = {"sync": read, "asyncio": by_asyncio, "trio": by_trio}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No thread of ours stands behind a test; a socket that is only forgotten warns, and warnings fail."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name == "streamfold-watch"] == []


# -- one answer -------------------------------------------------------------------------------------------------------


@ways
@pytest.mark.parametrize("provider", ANSWERS)
def test_an_answer(way: Any, provider: str) -> None:
    with serving(lambda _: whole(ANSWERS[provider])) as server:
        got = way(server.url, provider=provider)
        assert server.wait_until_left()
    assert (got.events, got.fault) == (list(streamfold.iter_unified([ANSWERS[provider]], provider)), None)
    assert got.answer == streamfold.fold([ANSWERS[provider]], provider)
    assert got.head.status == 200
    assert got.head.headers["Content-Type"] == "text/event-stream"


LINES = b'{"model":"m","message":{"role":"assistant","content":"Hello"},"done":false}\n'
LINES += b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
GEMINI = [{"candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}], "modelVersion": "m"}]
CONVERSE = (ROOT / "examples/recordings/bedrock-converse.bin").read_bytes()
BODIES: dict[str, tuple[list[Act], str]] = {
    # what is sent -> the text it comes to
    "chunked": ([head(), chunk(CHAT[:99]), chunk(CHAT[99:]), END], "Hello"),
    "of a length": ([head(length=len(CHAT)), CHAT], "Hello"),
    "ended by closing": ([head(length=-1), CHAT, "cut"], "Hello"),
    "compressed": (
        [head(200, "text/event-stream", "Content-Encoding: gzip"), chunk(gzip.compress(CHAT)), END],
        "Hello",
    ),
    "a JSON array": ([head(200, "application/json; charset=UTF-8"), chunk(array(GEMINI)), END], "Hello"),
    "an array under the name of events": ([head(), chunk(array(GEMINI)), END], "Hello"),
    "events under the name of JSON": ([head(200, "application/json"), chunk(CHAT), END], "Hello"),
    "events under no name": ([head(200, "application/octet-stream"), chunk(CHAT), END], "Hello"),
    "JSON lines": ([head(200, "application/x-ndjson"), chunk(LINES), END], "Hello"),
    "AWS's framing": (
        [head(200, "application/vnd.amazon.eventstream"), chunk(CONVERSE), END],
        streamfold.fold([CONVERSE]).text,
    ),
}


@ways
@pytest.mark.parametrize(("acts", "text"), BODIES.values(), ids=BODIES.keys())
def test_a_body_is_framed_by_its_type_or_its_first_byte(way: Any, acts: list[Act], text: str) -> None:
    with serving(lambda _: acts) as server:
        got = way(server.url)
    assert (got.answer.outcome, got.answer.text, got.fault) == ("complete", text, None)


def test_a_request_that_is_built_and_one_of_a_clients_own() -> None:
    with serving(lambda _: whole(CHAT)) as server:
        built = httpx2.Request("POST", server.url + "/built?q=1", headers={"authorization": "Bearer k"}, content=b"{}")
        with open_stream(built, provider="openai-chat") as stream:
            assert stream.snapshot().outcome == "open"
            assert [event.type for event in stream][-1] == "done"
        with (
            httpx2.Client(base_url=server.url, headers={"x-mine": "1"}) as client,
            open_stream("POST", "/own", client=client, json={"a": 1}) as stream,
        ):
            list(stream)
        for event in open_stream("GET", server.url + "/plain"):
            last = event
    assert last.type == "done"
    assert [(asked.method, asked.path) for asked in server.asked] == [
        ("POST", "/built?q=1"), ("POST", "/own"), ("GET", "/plain"),
    ]  # fmt: skip
    assert (server.asked[0].headers["authorization"], server.asked[0].body) == ("Bearer k", b"{}")
    assert (server.asked[1].headers["x-mine"], server.asked[1].body) == ("1", b'{"a":1}')


WRONG: dict[str, Callable[[], Any]] = {
    "no URL": lambda: open_stream("POST"),
    "a URL that is none": lambda: open_stream("POST", "http://h:port", json={}),
    "a body that is no JSON": lambda: open_stream("POST", "http://h", json=object()),
    "a request and a URL": lambda: open_stream(httpx2.Request("GET", "http://h"), "http://h"),
    "a client of the other kind": lambda: open_stream("GET", "http://h", client=httpx2.AsyncClient()),  # type: ignore[arg-type]
    "and the other way round": lambda: aopen_stream("GET", "http://h", client=httpx2.Client()),  # type: ignore[arg-type]
    "a provider that is none": lambda: open_stream("GET", "http://h", provider="x"),
    "a setting that is none": lambda: open_stream("GET", "http://h", speed=1),  # type: ignore[call-arg]
    "a time that is none": lambda: open_stream("GET", "http://h", idle_timeout_s=-1),
    "attempts that are none": lambda: aopen_stream("GET", "http://h", attempts=1.5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG.keys())
def test_misuse(make: Callable[[], Any]) -> None:
    with pytest.raises(UsageError):
        make()


# -- what goes wrong --------------------------------------------------------------------------------------------------


def refusal(status: int, body: bytes, *lines: str, content_type: str = "application/json") -> list[Act]:
    return [head(status, content_type, *lines, length=len(body)), body]


OPENAI = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}'
REFUSALS: dict[str, tuple[list[Act], dict[str, Any]]] = {
    # what is sent -> members of the one error
    "OpenAI": (
        refusal(401, OPENAI, "x-request-id: req_1"),
        {"code": "invalid_api_key", "status": 401, "retryable": False, "request_id": "req_1", "message": "no"},
    ),
    "Anthropic": (
        refusal(
            529,
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_b"}',
            "request-id: req_h",
            "retry-after: 7",
        ),
        {"code": "overloaded_error", "status": 529, "retryable": True, "retry_after_ms": 7000, "request_id": "req_b"},
    ),
    "Google": (
        refusal(429, b'[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[]}}]'),
        {"code": "RESOURCE_EXHAUSTED", "status": 429, "retryable": True, "request_id": None},
    ),
    "xAI": (
        refusal(400, b'{"code":"invalid-argument","error":"Incorrect API key"}'),
        {"code": "invalid-argument", "status": 400, "retryable": False, "message": "Incorrect API key"},
    ),
    "AWS": (
        refusal(
            429,
            b'{"message":"Too many tokens"}',
            "x-amzn-requestid: req_a",
            "x-amzn-errortype: ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/",
        ),
        {"code": "ThrottlingException", "status": 429, "retryable": True, "request_id": "req_a"},
    ),
    "in milliseconds": (
        refusal(429, OPENAI.replace(b"invalid_api_key", b"rate_limit_exceeded"), "retry-after-ms: 1500.0"),
        {"retryable": True, "retry_after_ms": 1500},
    ),
    "a date": (
        refusal(
            503,
            b"{}",
            "Date: Wed, 21 Oct 2026 07:28:00 GMT",
            "Retry-After: Wed, 21 Oct 2026 07:28:30 GMT",
        ),
        {"status": 503, "retryable": True, "retry_after_ms": 30_000},
    ),
    "a page": (
        refusal(502, b"<html>Bad Gateway</html>", content_type="text/html"),
        {"kind": "protocol", "code": "not_a_stream", "status": 502, "retryable": True},
    ),
    "nothing": (refusal(503, b""), {"kind": "provider", "code": "503", "status": 503, "retryable": True}),
    "it is elsewhere": (
        [head(307, "text/html", "Location: /x", length=0)],
        {"code": "307", "status": 307, "retryable": False},
    ),
    "JSON under the name of events": (
        refusal(404, b'{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}', content_type="text/event-stream"),
        {"code": "NOT_FOUND", "status": 404, "retryable": False},
    ),
    "a page without an end": (
        [head(500, "text/html"), *[chunk(b"<p>" * 5000)] * 9, "hold"],
        {"code": "not_a_stream", "status": 500, "retryable": True},
    ),
    "an error inside the stream has the id of its request": (
        [
            head(200, "text/event-stream", "request-id: req_h"),
            chunk(sse([{"type": "error", "error": {"type": "overloaded_error", "message": "m"}}], names=True)),
            END,
        ],
        {"code": "overloaded_error", "status": None, "retryable": True, "request_id": "req_h"},
    ),
}


@ways
@pytest.mark.parametrize(("acts", "members"), REFUSALS.values(), ids=REFUSALS.keys())
def test_an_error_body_is_one_error(way: Any, acts: list[Act], members: dict[str, Any]) -> None:
    with serving(lambda _: acts) as server:
        got = way(server.url)
    errors = [event for event in got.events if isinstance(event, ErrorEvent)]
    assert errors == got.events[-1:]
    assert {name: getattr(errors[0], name) for name in members} == members
    assert (got.fault, got.answer.error, got.answer.outcome) == (None, errors[0], "failed")
    assert len(server.asked) == 1


@ways
def test_recorded_error_bodies_come_out_as_without_a_client(way: Any) -> None:
    files = sorted((shared_or_skip() / "captures/http-errors").glob("*.body"))
    bodies = [file.read_bytes() for file in files[:: 1 if way is read else 5]]
    assert bodies
    with serving(lambda asked: refusal(418, bodies[int(asked.path[1:])])) as server:
        for number, body in enumerate(bodies):
            decoder = streamfold.StreamDecoder()
            decoder.came_with(418)
            assert way(f"{server.url}/{number}").events == [*decoder.feed(body), *decoder.close()]


FIRST = chunk(CHAT[:260])
FAULTS: dict[str, tuple[list[Act], dict[str, float], str, type[Exception]]] = {
    # what is sent, timeouts -> code, what is raised behind the event
    "no head": (["hold"], {"first_byte_timeout_s": 0.1}, "first_byte_timeout", httpx2.ReadTimeout),
    "half a head": ([b"HTTP/1.1 200", "hold"], {"first_byte_timeout_s": 0.1}, "first_byte_timeout", httpx2.ReadTimeout),
    "no first byte": ([head(), "hold"], {"first_byte_timeout_s": 0.1}, "first_byte_timeout", httpx2.ReadTimeout),
    "no first byte of a body that closing ends": (
        [head(length=-1), "hold"],
        {"first_byte_timeout_s": 0.1},
        "first_byte_timeout",
        httpx2.ReadTimeout,
    ),
    "silence": ([head(), FIRST, "hold"], {"idle_timeout_s": 0.1}, "idle_timeout", httpx2.ReadTimeout),
    "silence in a body that closing ends": (
        [head(length=-1), CHAT[:260], "hold"],
        {"idle_timeout_s": 0.1},
        "idle_timeout",
        httpx2.ReadTimeout,
    ),
    "cut": ([head(), FIRST, "cut"], {}, "broken_off", httpx2.RemoteProtocolError),
    "cut in a chunk": ([head(), FIRST, b"40\r\ndata: {", "cut"], {}, "broken_off", httpx2.RemoteProtocolError),
    "short of its length": ([head(length=9000), CHAT[:260], "cut"], {}, "broken_off", httpx2.RemoteProtocolError),
    "reset": ([head(), FIRST, 0.02, "reset"], {}, "broken_off", httpx2.ReadError),
    "cut before the head": (["cut"], {}, "broken_off", httpx2.RemoteProtocolError),
    "no HTTP": ([b"SSH-2.0-x\r\n\r\n", "hold"], {}, "broken_off", httpx2.RemoteProtocolError),
}


@ways
@pytest.mark.parametrize(("acts", "timeouts", "code", "raised"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_typed_within_its_time(way: Any, acts: list[Act], timeouts: Any, code: str, raised: Any) -> None:
    with serving(lambda _: acts) as server:
        began = time.monotonic()
        got = way(server.url, **timeouts)
        took = time.monotonic() - began
        assert server.wait_until_left()
    error = got.events[-1]
    assert (error.kind, error.code, error.fatal) == ("transport", code, True)
    assert error.retryable
    assert type(got.fault) is raised
    assert got.answer.outcome == "failed"
    assert got.answer.error == error
    assert took < sum(timeouts.values()) + 0.6


@pytest.mark.parametrize("way", [read, by_asyncio])  # under trio httpx2 leaves a generator of its own behind this
def test_what_cannot_be_decompressed(way: Any) -> None:
    acts: list[Act] = [head(200, "text/event-stream", "Content-Encoding: gzip"), chunk(CHAT), END]
    with serving(lambda _: acts) as server:
        got = way(server.url, restart=True)
    assert (got.events[-1].code, got.events[-1].retryable, len(server.asked)) == ("compressed", False, 1)
    assert type(got.fault) is httpx2.DecodingError


@ways
def test_keep_alives_are_life_and_a_slow_reader_is_no_silence(way: Any) -> None:
    acts: list[Act] = [head(), *[chunk(b": keep-alive\n\n"), 0.05] * 5, chunk(CHAT), END]
    with serving(lambda _: acts) as server:
        assert way(server.url, idle_timeout_s=0.2).answer.outcome == "complete"
        with open_stream("POST", server.url, idle_timeout_s=0.1) as stream:
            next(stream)
            time.sleep(0.25)
            assert list(stream)[-1].type == "done"


@ways
def test_what_cannot_be_sent_is_told_without_the_key(way: Any, tmp_path: Any) -> None:
    """A key that was read with the end of its line, as from a file: h11 says which value it is that cannot be sent."""
    place = tmp_path / "x.sfcap"
    headers = {"authorization": "Bearer sk-s3cret\n", "accept": "*/*"}
    with serving(lambda _: []) as server:
        got = way(f"{server.url}/?key=s3cret", headers=headers, observer=lambda: Recorder(place), restart=True)
        assert server.asked == []
    error = got.events[-1]
    assert (error.kind, error.code, error.retryable) == ("transport", "request", False)
    assert type(got.fault) is httpx2.LocalProtocolError
    assert "Illegal header value" in error.message
    assert "s3cret" not in error.message
    assert b"s3cret" not in place.read_bytes()
    assert b"LocalProtocolError: Illegal header value" in place.read_bytes()


@ways
def test_no_server(way: Any) -> None:
    with serving(lambda _: []) as server:
        pass
    got = way(server.url)
    assert (got.events[-1].code, type(got.fault), got.head) == ("connect_failed", httpx2.ConnectError, None)
    assert way("ftp://127.0.0.1/").events[-1].code == "unsupported_protocol"


def test_no_connection_within_its_time() -> None:
    """That of a pool which has none left."""
    with (
        serving(lambda _: [head(), FIRST, "hold"]) as server,
        httpx2.Client(limits=httpx2.Limits(max_connections=1)) as client,
        open_stream("POST", server.url, client=client),
    ):
        got = read(server.url, client=client, connect_timeout_s=0.05)
    assert (got.events[-1].code, type(got.fault)) == ("connect_timeout", httpx2.PoolTimeout)  # type: ignore[union-attr]


# -- taken up ---------------------------------------------------------------------------------------------------------


def numbered(body: bytes) -> list[bytes]:
    return [frame + b"\n\n" for frame in body.split(b"\n\n") if frame.strip()]


def with_keep_alive() -> list[bytes]:
    payloads: list[Any] = [*RESPONSES_PAYLOADS[:2], {"type": "keepalive"}, *RESPONSES_PAYLOADS[2:]]
    payloads = [{**payload, "sequence_number": number} for number, payload in enumerate(payloads)]
    return [sse([payload], names=True) for payload in payloads]


def with_event_ids(name: str) -> list[bytes]:
    """A recording of Interactions, as a run in the background has it."""
    frames = numbered((ROOT / f"examples/recordings/{name}.sse").read_bytes())
    return [frame.replace(b"data: {", b'data: {"event_id":"e%d",' % number, 1) for number, frame in enumerate(frames)]


RUNS: dict[str, tuple[str, list[bytes]]] = {
    # what ran in the background -> its collection, its frames
    "Responses": ("/v1/responses", with_keep_alive()),
    "Responses with a call": (
        "/openai/v1/responses?api-version=2026-01",
        numbered((ROOT / "examples/recordings/openai-responses-function-call.sse").read_bytes()),
    ),
    "Interactions": ("/v1beta/interactions?key=k", with_event_ids("gemini-interactions-steps")),
    "Interactions with a call": ("/v1beta/interactions", with_event_ids("gemini-interactions-function-call")),
}
runs = pytest.mark.parametrize(("place", "frames"), RUNS.values(), ids=RUNS.keys())


class Run:
    """A run in the background: the first connection brings ``at`` frames and what ``how`` says, the others the rest."""

    def __init__(self, place: str, frames: list[bytes]) -> None:
        self.place, self.frames = place, frames
        self.cuts: list[list[Act]] = []  # of the connections to come: how each ends
        self.at: list[int] = []  # and behind how many frames
        self.overlap = 0
        self.left_out = 0
        self.cancelled: list[str] = []

    def __call__(self, asked: Asked) -> list[Act]:
        assert asked.headers["authorization"] == "Bearer k"
        path, _, query = asked.path.partition("?")
        collection, _, own = self.place.partition("?")
        assert own in query
        if path.endswith("/cancel"):
            self.cancelled.append(path)
            return refusal(200, b"{}")
        begin = 0
        if asked.method == "GET":
            assert (asked.body, "content-type" in asked.headers) == (b"", False)
            assert re.fullmatch(re.escape(collection) + r"/[\w-]+", path), path
            begin = self.behind(query)
        frames = self.frames[max(0, begin - self.overlap) + (self.left_out if begin else 0) :]
        if not self.cuts:
            return [head(), chunk(b"".join(frames)), END]
        return [head(), *map(chunk, frames[: self.at.pop(0)]), *self.cuts.pop(0)]

    def behind(self, query: str) -> int:
        last = re.search(r"(?:starting_after=|last_event_id=e)(\d+)", query)
        assert last
        assert "stream=true" in query
        return int(last[1]) + 1


KEY = {"authorization": "Bearer k"}


def ways_to_break(frame: bytes) -> list[list[Act]]:
    return [["cut"], [chunk(frame[: len(frame) // 2]), "cut"], [END], [chunk(frame[:-1]), 0.001, "reset"]]


@runs
def test_cut_behind_every_event_the_events_are_those_of_an_uninterrupted_reading(
    place: str, frames: list[bytes]
) -> None:
    run = Run(place, frames)
    ended = next(number for number, frame in enumerate(frames) if b"ompleted" in frame.partition(b"\n")[0])
    few = ended < 12
    whole_events = list(streamfold.iter_unified(frames))
    options: dict[str, Any] = {"json": BACKGROUND, "headers": KEY, **QUICK}

    async def all_of_them(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            for at in range(1, ended + 1):
                for cut in ways_to_break(frames[at])[0 if few else 2 :]:
                    run.at, run.cuts, run.overlap = [at], [cut], at % 3
                    got = await aread(url, client=client, **options)
                    assert (got.events, got.fault) == (whole_events, None), (at, cut)
                    assert got.answer == answer

    with serving(run) as server, httpx2.Client() as client:
        answer = read(server.url + place, client=client, **options).answer
        assert answer.outcome == "complete"
        for at in range(1, ended + 1):
            for cut in ways_to_break(frames[at])[: 4 if few else 2]:
                run.at, run.cuts, run.overlap = [at], [cut], at % 3
                got = read(server.url + place, client=client, **options)
                assert (got.events, got.fault) == (whole_events, None), (at, cut)
                assert got.answer == answer
        run.at, run.cuts = [1] * ended, [["cut"]] * ended  # one event a connection
        run.overlap = 0
        assert read(server.url + place, client=client, **options).events == whole_events
        asyncio.run(all_of_them(server.url + place))
        if few:
            trio.run(all_of_them, server.url + place)


@ways
def test_a_recorded_run_in_the_background(way: Any) -> None:
    folder = shared_or_skip() / "captures/openai-responses"
    frames = numbered((folder / "pai-openai-responses-background-mode-streaming-vcr.sse").read_bytes())
    run = Run("/v1/responses", frames)
    with serving(run) as server:
        run.at, run.cuts = [2, 3, 5], [["cut"], [chunk(frames[5][:40]), "reset"], [END]]
        got = way(server.url + "/v1/responses", json=BACKGROUND, headers=KEY, **QUICK)
    assert got.events == list(streamfold.iter_unified(frames))
    assert [asked.method for asked in server.asked] == ["POST", "GET", "GET", "GET"]


@ways
def test_what_is_left_out_is_reported(way: Any) -> None:
    place, frames = RUNS["Responses"]
    run = Run(place, frames)
    run.at, run.cuts, run.left_out = [4], [["cut"]], 2
    with serving(run) as server:
        got = way(server.url + place, json=BACKGROUND, headers=KEY, **QUICK)
    (gap,) = [event for event in got.events if isinstance(event, ErrorEvent)]
    assert (gap.code, gap.fatal, gap.message) == ("sequence_gap", False, "missing sequence numbers: 4 to 5")
    assert got.answer.warnings == (gap,)


@ways
def test_the_server_of_the_rest_may_fail_for_a_while(way: Any) -> None:
    place, frames = RUNS["Responses"]
    run = Run(place, frames)
    faults: list[list[Act]] = [
        refusal(503, b"<html>"),
        ["cut"],
        refusal(429, b'{"error":{"message":"m","code":"rate_limit_exceeded"}}', "retry-after-ms: 1"),
    ]

    def answer(asked: Asked) -> list[Act]:
        return faults.pop(0) if asked.method == "GET" and faults else run(asked)

    run.at, run.cuts = [4], [["cut"]]
    with serving(answer) as server:
        got = way(server.url + place, json=BACKGROUND, headers=KEY, attempts=4, **QUICK)
        assert got.events == list(streamfold.iter_unified(frames))
        faults += [refusal(503, b"<html>"), refusal(404, b'{"error":{"message":"gone","code":"not_found"}}')]
        run.at, run.cuts = [4], [["cut"]]
        got = way(server.url + place, json=BACKGROUND, headers=KEY, **QUICK)
        assert got.events[:-1] == [*islice(streamfold.iter_unified(frames), len(got.events) - 2), got.events[-2]]
        assert (got.events[-1].code, got.events[-1].status, got.fault) == ("not_found", 404, None)
        faults += [["cut"]] * 9
        run.at, run.cuts = [4], [["cut"]]
        before = len(server.asked)
        got = way(server.url + place, json=BACKGROUND, headers=KEY, attempts=2, **QUICK)
        assert (got.events[-1].code, type(got.fault)) == ("broken_off", httpx2.RemoteProtocolError)
        assert len(server.asked) - before == 3


@ways
@pytest.mark.parametrize("rest", [b'data: {"type":"unheard.of"}\n\n', CHAT], ids=["unknown", "another's"])
def test_what_is_none_of_the_answers_is_nothing_new(way: Any, rest: bytes) -> None:
    """However much of it comes: a gateway that answers with something else is not asked for ever."""
    place, frames = RUNS["Responses"]
    run = Run(place, frames)
    run.at, run.cuts = [4], [["cut"]]
    with serving(lambda asked: [head(), chunk(rest), "cut"] if asked.method == "GET" else run(asked)) as server:
        got = way(server.url + place, json=BACKGROUND, headers=KEY, attempts=2, **QUICK)
        assert (got.events[-1].code, len(server.asked)) == ("broken_off", 3)


@pytest.mark.parametrize("wait", ["31", "1000000000", "100000000000000000"])
def test_a_wait_that_is_too_long_is_not_taken_for_none(wait: str) -> None:
    with serving(lambda _: refusal(429, OPENAI, f"Retry-After: {wait}")) as server:
        got = read(server.url, restart=True, **QUICK)
        assert len(server.asked) == 1
    assert got.events[-1] == got.answer.error
    assert isinstance(got.answer.error, ErrorEvent)
    assert got.answer.error.retry_after_ms == int(wait) * 1000


@ways
def test_waits_are_as_long_as_the_server_asks(way: Any) -> None:
    """By ``retry:`` in the stream, in the head of a refusal in both forms; a run is taken up, the rest begins anew."""
    place, frames = RUNS["Responses"]
    busy = b'{"type":"error","error":{"type":"overloaded_error","message":"m"}}'
    answers: list[list[Act]] = [
        [head(), *map(chunk, frames[:4]), chunk(b"retry: 150\n\n"), "cut"],
        refusal(503, b"", "retry-after-ms: 250"),
        [head(), chunk(b"".join(frames[4:])), END],
        refusal(529, busy, "retry-after: 1"),
        whole(ANSWERS["anthropic"]),
    ]
    times: list[float] = []

    def answer(asked: Asked) -> list[Act]:
        times.append(time.monotonic())
        return answers[len(times) - 1]

    with serving(answer) as server:
        got = way(server.url + place, json=BACKGROUND, headers=KEY, **QUICK)
        assert got.events == list(streamfold.iter_unified(frames))
        got = way(server.url + "/v1/messages", restart=True, **QUICK)
        assert got.answer.outcome == "complete"
    waits = [later - sooner for sooner, later in pairwise(times)]
    assert [least <= wait < least + 1.5 for least, wait in zip((0.15, 0.25, 0, 1), waits, strict=True)] == [True] * 4


@ways
def test_silence_is_a_break_as_well(way: Any) -> None:
    place, frames = RUNS["Responses"]
    run = Run(place, frames)
    run.at, run.cuts = [3, 2], [["hold"], ["hold"]]
    with serving(run) as server:
        got = way(server.url + place, json=BACKGROUND, headers=KEY, idle_timeout_s=0.05, **QUICK)
    assert got.events == list(streamfold.iter_unified(frames))


@ways
def test_another_process_goes_on_by_the_cursor(way: Any) -> None:
    """Its first request is a GET already, and what takes that up is another one."""
    place, frames = RUNS["Responses"]
    run = Run(place, frames)
    run.at, run.cuts = [2], [["cut"]]
    after = streamfold.Cursor("resp_1", 3)
    with serving(run) as server:
        url = f"{server.url}{place}/resp_1?stream=true&starting_after=3"
        got = way(url, method="GET", json=None, headers=KEY, after=after, provider="openai-responses", **QUICK)
    assert got.answer.outcome == "complete"
    assert [asked.path.partition("?")[2] for asked in server.asked] == [
        "stream=true&starting_after=3",
        "stream=true&starting_after=5",
    ]


@ways
@pytest.mark.parametrize("provider", ["anthropic", "openai-chat", "xai", "openai-responses"])
def test_without_a_cursor_a_cut_is_the_end(way: Any, provider: str) -> None:
    body = ANSWERS.get(provider, ANSWERS["openai-responses"])
    asked = BACKGROUND if provider == "xai" else {"stream": True}
    with serving(lambda _: [head(), chunk(body[: len(body) // 2]), "cut"]) as server:
        got = way(server.url + "/v1/responses", json=asked, provider=provider, **QUICK)
    assert (got.events[-1].code, len(server.asked)) == ("broken_off", 1)


# -- started again ----------------------------------------------------------------------------------------------------

BREAKS: dict[str, list[list[Act]]] = {
    "cut": [[head(), chunk(ANTHROPIC[:-300]), "cut"]],
    "truncated": [[head(), chunk(ANTHROPIC[:-300]), END]],
    "frozen": [[head(), chunk(ANTHROPIC[:-300]), "hold"]],
    "an error in the stream": [
        [
            head(),
            chunk(ANTHROPIC[: ANTHROPIC.index(b"event: content_block_stop")]),
            chunk(sse([{"type": "error", "error": {"type": "overloaded_error"}}], names=True)),
            "hold",
        ]
    ],
    "twice": [[head(), chunk(ANTHROPIC[:-300]), "cut"], [head(), chunk(ANTHROPIC[:-500]), END]],
}


@ways
@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS.keys())
@pytest.mark.parametrize("tags", [False, True])
def test_started_again(way: Any, breaks: list[list[Act]], tags: bool) -> None:
    left = list(breaks)
    with serving(lambda _: left.pop(0) if left else whole(ANTHROPIC)) as server:
        got = way(server.url, restart=True, json={"n": 1}, idle_timeout_s=0.1, think_tags=tags, **QUICK)
        assert server.wait_until_left()
    assert [asked.body for asked in server.asked] == [b'{"n":1}'] * (len(breaks) + 1)
    assert [event.type for event in got.events].count("restart") == len(breaks)
    assert [event for event in got.events if isinstance(event, ErrorEvent)] == []
    opened: dict[int, bool] = {}
    for event in got.events:
        if event.type in ("block_start", "tool_call_start"):
            assert event.index == len(opened)  # dense over all of it
            opened[event.index] = True
        elif event.type == "block_end":
            assert opened[event.index]
            opened[event.index] = False
        elif event.type == "restart":
            assert not any(opened.values())
            assert event.reason
    plain = streamfold.fold([ANTHROPIC])
    assert (got.answer.outcome, got.answer.text) == ("complete", plain.text)
    assert [call.arguments for call in got.answer.tool_calls] == [call.arguments for call in plain.tool_calls]
    assert got.answer.usage == plain.usage


class Own(streamfold.OpenAIChatNormalizer):
    """A provider of one's own."""


FOLDED: dict[str, tuple[Any, bytes]] = {
    # provider, body
    "chat": ("openai-chat", CHAT),
    "an array": (
        "gemini",
        array([GEMINI[0] | {"n": 1, "candidates": [{"content": {"parts": [{"text": "He"}]}}]}, *GEMINI]),
    ),
    "told by its shape": ("xai", CHAT),
    "one's own": (Own, CHAT),
    "lines": ("ollama", LINES),
}


@pytest.mark.parametrize(("provider", "body"), FOLDED.values(), ids=FOLDED.keys())
def test_any_dialect_is_started_again_at_any_byte(provider: Any, body: bytes) -> None:
    plain = streamfold.fold([body], provider)
    first = b""
    kind = "application/x-ndjson" if provider == "ollama" else "text/event-stream"

    def answer(_: Asked) -> list[Act]:
        return [head(200, kind), chunk(first), "cut"] if len(server.asked) % 2 else [head(200, kind), chunk(body), END]

    with serving(answer) as server, httpx2.Client() as client:
        for at in range(1, len(body) - 20, 7):
            first = body[:at]
            got = read(server.url, client=client, provider=provider, restart=True, **QUICK)
            assert (got.answer.outcome, got.answer.text, len(got.answer.blocks)) == (
                "complete",
                plain.text,
                len(plain.blocks),
            )
            indexes = [event.index for event in got.events if event.type == "block_start"]
            assert indexes == list(range(len(indexes)))


def test_a_reading_that_continues_another_is_not_started_again() -> None:
    """Its first request asks for the rest alone."""
    with serving(lambda _: ["cut"]) as server:
        got = read(server.url, restart=True, after=streamfold.Cursor("r", 1), **QUICK)
    assert (got.events[-1].code, len(server.asked)) == ("broken_off", 1)  # type: ignore[union-attr]


@ways
def test_what_was_refused_at_first_is_asked_again_and_nothing_is_taken_back(way: Any) -> None:
    faults: list[list[Act]] = [refusal(529, b'{"type":"error","error":{"type":"overloaded_error"}}'), ["cut"]]
    with serving(lambda _: faults.pop(0) if faults else whole(ANTHROPIC)) as server:
        got = way(server.url, restart=True, **QUICK)
        assert got.events == list(streamfold.iter_unified([ANTHROPIC]))
        faults += [["cut"]] * 9
        before = len(server.asked)
        assert way(server.url, restart=True, attempts=2, **QUICK).events[-1].code == "broken_off"
        assert len(server.asked) - before == 3
        faults[:] = [refusal(401, OPENAI)]
        assert way(server.url, restart=True, **QUICK).events[-1].code == "invalid_api_key"


# -- left and cancelled -----------------------------------------------------------------------------------------------


@runs
def test_a_run_in_the_background_is_cancelled_at_the_provider(place: str, frames: list[bytes]) -> None:
    run = Run(place, frames)
    ids = {"/v1/responses": "resp_1"}

    async def later(url: str, options: dict[str, Any]) -> None:
        async with aopen_stream("POST", url, **options) as stream:
            await anext(stream)
            assert await stream.cancel()
        assert stream.snapshot().outcome == "cancelled"

    with serving(run) as server, httpx2.Client(limits=httpx2.Limits(max_connections=1)) as shared:
        for client in (shared, None):
            run.at, run.cuts = [4], [["hold"]]
            options: dict[str, Any] = {"json": BACKGROUND, "headers": KEY}
            with open_stream("POST", server.url + place, client=client, **options) as stream:
                came = list(islice(stream, 3))
                assert stream.cancel() is True
                assert list(stream) == []
                assert stream.cancel() is True  # harmless, as the providers say
            answer = stream.snapshot()
            assert (answer.outcome, came[0].type) == ("cancelled", "start")
            name = stream.cursor.response_id
            assert name
            assert run.cancelled[-1] == f"{place.partition('?')[0]}/{name}/cancel"
            assert ids.get(place, name) == name
        run.at, run.cuts = [4], [["hold"]]
        asyncio.run(later(server.url + place, options))
        run.at, run.cuts = [4], [["hold"]]
        trio.run(later, server.url + place, options)
        before = len(run.cancelled)
        with open_stream("POST", server.url + place, **options) as stream:
            list(stream)
            assert stream.cancel() is False  # it has ended
        assert (stream.snapshot().outcome, len(run.cancelled)) == ("complete", before)


@ways
def test_whoever_cancels_does_not_wait_for_what_is_said_of_it(way: Any) -> None:
    place, frames = RUNS["Responses"]

    def answer(asked: Asked) -> Iterator[Act]:
        yield head()
        if not asked.path.endswith("/cancel"):
            yield from map(chunk, frames[:4])
        while True:
            yield chunk(b" ")
            yield 0.01

    async def cancelled(url: str) -> bool:
        async with aopen_stream("POST", url, json=BACKGROUND) as stream:
            await anext(stream)
            return await stream.cancel()

    with serving(answer) as server:
        begun = time.monotonic()
        if way is read:
            with open_stream("POST", server.url + place, json=BACKGROUND) as stream:
                next(stream)
                assert stream.cancel()
        else:
            url = server.url + place
            assert asyncio.run(cancelled(url)) if way is by_asyncio else trio.run(cancelled, url)
        assert time.monotonic() - begun < 1
        assert server.wait_until_left()


def test_elsewhere_closing_is_all_there_is() -> None:
    def answer(asked: Asked) -> list[Act]:
        return [head(), FIRST, "hold"] if asked.path == "/" else ["cut"] if "cancel" in asked.path else responses

    responses: list[Act] = [head(), chunk(b"".join(RUNS["Responses"][1][:4])), "hold"]
    with serving(answer) as server:
        with open_stream("POST", server.url + "/") as stream:
            next(stream)
            assert stream.cancel() is False
        assert stream.snapshot().outcome == "cancelled"
        with open_stream("POST", server.url + "/v1/responses", json=BACKGROUND) as stream:
            next(stream)
            assert stream.cancel() is False  # nobody heard it
        assert stream.snapshot().outcome == "cancelled"
        with open_stream("POST", server.url + "/") as stream:
            pass
        assert stream.snapshot().outcome == "cancelled"
        assert server.wait_until_left()


def test_another_thread_closes_a_stream_that_waits() -> None:
    with serving(lambda _: [head(), FIRST, "hold"]) as server:
        stream = open_stream("POST", server.url).__enter__()
        closing = threading.Timer(0.1, stream.close)
        closing.start()
        began = time.monotonic()
        events = list(stream)
        assert time.monotonic() - began < 1
        closing.join()
        assert events[-1].type != "error"
        assert stream.snapshot().outcome == "cancelled"
        assert server.wait_until_left()


def test_another_task_closes_a_stream_that_waits() -> None:
    async def reading(stream: AsyncClientStream, kinds: list[str]) -> None:
        async for event in stream:
            kinds.append(event.type)  # noqa: PERF401 - what came before it is closed is what matters

    async def under_asyncio(url: str) -> None:
        kinds: list[str] = []
        stream = await aopen_stream("POST", url).__aenter__()
        task = asyncio.create_task(reading(stream, kinds))
        await asyncio.sleep(0.1)
        await stream.aclose()
        await asyncio.wait_for(task, 1)
        assert (kinds, stream.snapshot().outcome) == (["start"], "cancelled")

    async def under_trio(url: str) -> None:
        kinds: list[str] = []
        stream = await aopen_stream("POST", url).__aenter__()
        with trio.fail_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(reading, stream, kinds)
                await trio.sleep(0.1)
                await stream.aclose()
        assert (kinds, stream.snapshot().outcome) == (["start"], "cancelled")

    with serving(lambda _: [head(), FIRST, "hold"]) as server:
        asyncio.run(under_asyncio(server.url))
        trio.run(under_trio, server.url)
        assert server.wait_until_left()


LATER: dict[str, list[Act]] = {"head": ["hold"], "byte": [head(), "hold"], "wait": refusal(503, b"")}
"""What a stream waits for: the head, the first byte, the time to ask again."""


@pytest.mark.parametrize("shared", [False, True], ids=["a client of its own", "a client that is shared"])
@pytest.mark.parametrize("waits", LATER)
def test_another_task_cancels_whatever_a_stream_waits_for(waits: str, shared: bool) -> None:
    """Nothing is asked again, nothing is raised, and nobody waits on."""

    async def main(server: WireServer) -> None:
        client = httpx2.AsyncClient() if shared else None
        stream = aopen_stream("POST", server.url, json={}, restart=True, delay_s=9, client=client)

        async def reading() -> list[Event]:
            return [event async for event in stream]

        task = asyncio.create_task(reading())
        while not server.asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert await stream.cancel() is False
        assert await asyncio.wait_for(task, 1) == []
        assert stream.snapshot().outcome == "cancelled"
        assert asyncio.all_tasks() == {asyncio.current_task()}
        if client is not None:
            await client.aclose()

    with serving(lambda _: LATER[waits]) as server:
        asyncio.run(main(server))
        assert len(server.asked) == 1
        assert server.wait_until_left()


def test_another_thread_cancels_the_wait_before_it_asks_again() -> None:
    with serving(lambda _: LATER["wait"]) as server, httpx2.Client() as client:
        stream = open_stream("POST", server.url, json={}, restart=True, delay_s=9, client=client)
        closing = threading.Timer(0.1, stream.cancel)
        closing.start()
        assert list(stream) == []
        closing.join()
        assert (stream.snapshot().outcome, len(server.asked)) == ("cancelled", 1)


@pytest.mark.parametrize("block", [False, True], ids=["iterated", "under with"])
@pytest.mark.parametrize("shared", [False, True], ids=["a client of its own", "a client that is shared"])
def test_another_thread_closes_a_stream_that_waits_for_its_head(shared: bool, block: bool) -> None:
    """On a connection of its own at once; else when the head has come, which has no other end in blocking code."""
    with serving(lambda _: [0.5, head(), chunk(CHAT), "hold"]) as server, ExitStack() as stack:
        client = stack.enter_context(httpx2.Client()) if shared else None
        stream = open_stream("POST", server.url, json={}, client=client)
        closing = threading.Timer(0.1, stream.close)
        closing.start()
        began = time.monotonic()
        if block:
            with stream:
                assert list(stream) == []
        assert list(stream) == []
        assert (time.monotonic() - began < 0.4) is not shared
        closing.join()
        assert stream.snapshot().outcome == "cancelled"
        assert server.wait_until_left()


def leave_by_break(url: str) -> None:
    with open_stream("POST", url) as stream:
        for _ in stream:
            break


def leave_by_an_exception(url: str) -> None:
    with suppress(KeyError), open_stream("POST", url) as stream:
        next(stream)
        raise KeyError


async def aleave_by_break(url: str) -> None:
    async with aopen_stream("POST", url) as stream:
        async for _ in stream:
            break


async def aleave_by_an_exception(url: str) -> None:
    with suppress(KeyError):
        async with aopen_stream("POST", url) as stream:
            await anext(stream)
            raise KeyError


async def leave_by_a_task_that_is_cancelled(url: str) -> None:
    task = asyncio.create_task(aread(url, restart=True, delay_s=9))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def leave_by_a_scope(url: str) -> None:
    with trio.move_on_after(0.1) as scope:
        await aread(url, restart=True, delay_s=9)
    assert scope.cancelled_caught


def leave_by_cancel(url: str) -> None:
    with open_stream("POST", url) as stream:
        next(stream)
        stream.cancel()
        assert list(stream) == []


async def aleave_by_cancel(url: str) -> None:
    async with aopen_stream("POST", url) as stream:
        await anext(stream)
        await stream.cancel()
        assert [event async for event in stream] == []


async def leave_by_cancel_and_no_block(url: str) -> None:
    stream = aopen_stream("POST", url)
    await anext(stream)
    await stream.cancel()
    assert asyncio.all_tasks() == {asyncio.current_task()}


LEAVING: dict[str, Callable[[str], Any]] = {
    "break": leave_by_break,
    "an exception": leave_by_an_exception,
    "break, asyncio": lambda url: asyncio.run(aleave_by_break(url)),
    "an exception, asyncio": lambda url: asyncio.run(aleave_by_an_exception(url)),
    "a cancelled task": lambda url: asyncio.run(leave_by_a_task_that_is_cancelled(url)),
    "break, trio": lambda url: trio.run(aleave_by_break, url),
    "an exception, trio": lambda url: trio.run(aleave_by_an_exception, url),
    "a cancelled scope": lambda url: trio.run(leave_by_a_scope, url),
    "cancel": leave_by_cancel,
    "cancel, asyncio": lambda url: asyncio.run(aleave_by_cancel(url)),
    "cancel, no block": lambda url: asyncio.run(leave_by_cancel_and_no_block(url)),
    "cancel, trio": lambda url: trio.run(aleave_by_cancel, url),
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING.keys())
def test_leaving_leaves_nothing_behind(leave: Any) -> None:
    before = generators()
    with serving(lambda _: [head(), FIRST, "hold"]) as server:
        leave(server.url)
        assert server.wait_until_left()
    gc.collect()
    assert generators() <= before


@pytest.mark.parametrize("acts", [["hold"], [head(), "hold"], refusal(503, b"")], ids=["head", "byte", "wait"])
@pytest.mark.parametrize("leave", ["a cancelled task", "a cancelled scope"])
def test_waits_for_the_first_byte_and_between_attempts_can_be_left(leave: str, acts: list[Act]) -> None:
    with serving(lambda _: acts) as server:
        LEAVING[leave](server.url)
        assert server.wait_until_left()


def generators() -> int:
    """Generators of ours that still stand."""
    codes = [
        thing.gi_code if type(thing) is GeneratorType else thing.ag_code
        for thing in gc.get_objects()  # by their types: proxies of what is gone raise when they are asked
        if type(thing) in (GeneratorType, AsyncGeneratorType)
    ]
    return sum("/src/streamfold/" in code.co_filename or "/http" in code.co_filename for code in codes)


# -- connections ------------------------------------------------------------------------------------------------------


def test_twenty_answers_in_a_row_use_one_connection() -> None:
    acts: list[Act] = [head(), chunk(CHAT), 0.005, END]  # the end of the body comes behind that of the answer

    async def later(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            for _ in range(20):
                assert (await aread(url, client=client)).answer.outcome == "complete"

    with serving(lambda _: acts) as server:
        with httpx2.Client() as client:
            for _ in range(20):
                assert read(server.url, client=client).answer.outcome == "complete"
        assert server.connections == 1
        asyncio.run(later(server.url))
        assert server.connections == 2
        trio.run(later, server.url)
        assert server.connections == 3
        with httpx2.Client() as client:  # left at its end, not read behind it
            for _ in range(5):
                with open_stream("POST", server.url, client=client) as stream:
                    for event in stream:
                        if event.type == "done":
                            break
        assert server.connections == 4


def ticking() -> Iterator[Act]:
    """An answer, and a server that never ends."""
    yield head()
    yield chunk(CHAT)
    while True:
        yield chunk(b": \n\n")
        yield 0.01


@pytest.mark.parametrize("acts", [lambda: [head(), chunk(CHAT), "hold"], ticking], ids=["silent", "ticking"])
def test_against_a_server_that_never_ends_each_closes_in_time(acts: Any) -> None:
    times: list[float] = []

    def timed(got: Read, began: float) -> float:
        assert got.answer.outcome == "complete"
        times.append(time.monotonic() - began)
        return time.monotonic()

    async def later(url: str) -> None:
        async with httpx2.AsyncClient() as client:
            began = time.monotonic()
            for _ in range(5):
                began = timed(await aread(url, client=client), began)

    with serving(lambda _: acts()) as server:
        with httpx2.Client() as client:
            began = time.monotonic()
            for _ in range(5):
                began = timed(read(server.url, client=client), began)
        asyncio.run(later(server.url))
        trio.run(later, server.url)
        assert server.wait_until_left()
        assert server.connections == 15
    assert sorted(times)[12] < 0.2  # of fifteen: a busy machine is no fault of the code
    assert min(times) > 0.09  # it was given its time


PIECES = sse(
    [{"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x" * 999}}]}]
)


def test_a_frozen_consumer_leaves_the_others_alone_and_memory_flat() -> None:
    """Two hundred at once. The server of the frozen one has far more to say than what may lie on the way."""
    sent = 0

    def endless() -> Iterator[Act]:
        nonlocal sent
        yield head()
        while True:
            yield chunk(PIECES * 50)
            sent += 50 * len(PIECES)

    def answer(asked: Asked) -> Iterable[Act]:
        return endless() if asked.path == "/frozen" else [head(), *[chunk(PIECES)] * 10, chunk(CHAT), END]

    def held_kib() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def main(url: str) -> tuple[int, list[Read]]:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(limits=limits, timeout=30) as client:
            async with aopen_stream("POST", url + "/frozen", client=client) as frozen:
                await anext(frozen)
                first = await asyncio.gather(*(aread(url + "/x", client=client) for _ in range(199)))
                await asyncio.sleep(0.1)
                held = sent
                for _ in range(20):
                    await aread(url + "/x", client=client)
                assert sent == held  # the server waits
            return held, first

    before = held_kib()
    with serving(answer) as server:
        held, answers = asyncio.run(main(server.url))
    assert held_kib() - before < 64 * 1024  # for both ends of two hundred connections, and two hundred threads
    assert {(got.answer.outcome, len(got.answer.text)) for got in answers} == {("complete", 9990 + 5)}
    assert held < 16 * 1024 * 1024  # what the system holds for both sockets, and nothing of ours


# -- who looks on -----------------------------------------------------------------------------------------------------


class Notes:
    """An observer that writes down what it sees; reads that follow each other as one."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> None:
        self.seen.append((method, url.partition("?")[2], dict(headers).get("authorization")))

    def response(self, status: int, headers: Iterable[tuple[str, str]], http_version: str) -> None:
        assert dict(headers)["content-type"]
        self.seen.append((status, http_version))

    def read(self, data: bytes) -> None:
        if self.seen and isinstance(self.seen[-1], bytes):
            data = self.seen.pop() + data
        self.seen.append(data)

    def end(self, how: EndHow, *, error: str | None = None) -> None:
        self.seen.append((how, error and error.partition(":")[0]))


PACKED = gzip.compress(CHAT)
SEEN: dict[str, tuple[list[Act], list[Any]]] = {
    "an answer behind which nothing ends": (
        [head(), chunk(CHAT), "hold"],
        [(200, "HTTP/1.1"), CHAT, ("cancel", None)],
    ),
    "compressed": (
        [head(200, "text/event-stream", "Content-Encoding: gzip"), chunk(PACKED), END],
        [(200, "HTTP/1.1"), PACKED, ("eof", None)],
    ),
    "refused": (refusal(401, OPENAI), [(401, "HTTP/1.1"), OPENAI, ("eof", None)]),
    "no head": (["cut"], [("cut", "RemoteProtocolError")]),
    "frozen": ([head(), FIRST, "hold"], [(200, "HTTP/1.1"), CHAT[:260], ("cut", "ReadTimeout")]),
}


@ways
@pytest.mark.parametrize(("acts", "seen"), SEEN.values(), ids=SEEN.keys())
def test_an_observer_sees_a_connection_as_it_was(way: Any, acts: list[Act], seen: list[Any]) -> None:
    notes: list[Any] = []
    with serving(lambda _: acts) as server:
        way(server.url, observer=lambda: Notes(notes), headers=KEY, idle_timeout_s=0.1)
    assert notes == [("POST", "", "Bearer k"), *seen]


@ways
def test_each_connection_has_an_observer_of_its_own(way: Any) -> None:
    place, frames = RUNS["Responses"]
    run = Run(place, frames)
    run.at, run.cuts = [4], [["cut"]]
    notes: list[list[Any]] = []

    def another() -> Notes:
        notes.append([])
        return Notes(notes[-1])

    with serving(run) as server:
        way(server.url + place, json=BACKGROUND, headers=KEY, observer=another, **QUICK)
    first, rest = b"".join(frames[:4]), b"".join(frames[4:])
    assert [kept[2] for kept in notes] == [first, rest]
    assert [kept[0][:2] for kept in notes] == [("POST", ""), ("GET", "stream=true&starting_after=3")]
    assert [kept[3][0] for kept in notes] == ["cut", "eof"]


@ways
def test_the_recorder_is_one(way: Any, tmp_path: Any) -> None:
    acts: list[Act] = [head(200, "text/event-stream", "Content-Encoding: gzip"), chunk(PACKED), END]
    with serving(lambda _: acts) as server:
        way(server.url, headers=KEY, observer=lambda: Recorder(tmp_path / "x.sfcap"))
    assert streamfold.fold(read_recording(tmp_path / "x.sfcap")) == streamfold.fold([CHAT])
    with closing(read_recording(tmp_path / "x.sfcap")) as recorded:
        assert b"".join(read.data for read in recorded) == PACKED
    assert (recorded.intact, recorded.status_code) == (True, 200)
    assert b"Bearer k" not in (tmp_path / "x.sfcap").read_bytes()


def test_the_streams_are_those_of_the_package() -> None:
    assert issubclass(ClientStream, streamfold.UnifiedStream)
    assert issubclass(AsyncClientStream, streamfold.AsyncUnifiedStream)
    assert streamfold.client.open_stream is open_stream
    assert WireServer.__doc__
