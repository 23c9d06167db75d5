"""The replay server against plain clients: what answers what, every fault, runs that are taken up and cancelled."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

import streamfold
from streamfold import UsageError
from streamfold.recording.files import Recorder
from streamfold.testing import ReplayServer
from tests.conftest import RECORDED
from tests.replay.conftest import RECORDINGS

RESPONSES = (RECORDINGS / "openai-responses-function-call.sse").read_bytes()
STEPS = (RECORDINGS / "gemini-interactions-steps.sse").read_bytes()
GENERATE = "/v1beta/models/gemini-thought-signature:streamGenerateContent"
PATHS = {
    "openai-responses": "/v1/responses",
    "openai-chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
    "gemini-interactions": "/v1beta/interactions",
    "cohere": "/v2/chat",
    "ollama": "/api/chat",
    "bedrock-converse": "/model/m/converse-stream",
}


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=10) as client:
        yield client


def post(client: httpx2.Client, server: ReplayServer, path: str, said: str = "", **more: Any) -> httpx2.Response:
    """Ask for a stream; ``said`` is a recording's name or a fault."""
    kind = "fault" if "=" in said else "recording"
    headers = {f"streamfold-{kind}": said} if said else {}
    return client.post(server.url + path, json={"stream": True, **more}, headers=headers)


# -- which recording, at which path -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_each_recording_is_served_byte_for_byte(client: httpx2.Client, server: ReplayServer, path: Path) -> None:
    surface = next(surface for surface, names in server.served.items() if path.stem in names)
    at = PATHS[surface].partition("?")[0] if path.suffix == ".json" else PATHS[surface]
    response = post(client, server, at, path.name)
    assert response.content == path.read_bytes()
    assert response.headers["transfer-encoding"] == "chunked"


def test_heads_are_those_of_the_providers(client: httpx2.Client, server: ReplayServer) -> None:
    heads = {surface: post(client, server, path).headers for surface, path in PATHS.items()}
    kinds = {surface: head["content-type"] for surface, head in heads.items()}
    sse = "text/event-stream"
    assert kinds == {
        **dict.fromkeys(("openai-responses", "openai-chat", "anthropic", "cohere"), f"{sse}; charset=utf-8"),
        **dict.fromkeys(("gemini", "gemini-interactions"), sse),
        "ollama": "application/x-ndjson",
        "bedrock-converse": "application/vnd.amazon.eventstream",
    }
    assert heads["openai-chat"]["openai-version"] == "2020-10-01"
    assert "cache-control" not in heads["openai-chat"]
    assert heads["anthropic"]["cache-control"] == "no-cache"
    assert heads["anthropic"]["request-id"].startswith("req_")
    assert heads["gemini"]["server-timing"].startswith("gfet4t7")
    assert not {"server", "date"} & set(heads["gemini"])


@pytest.mark.parametrize(
    "path",
    [
        "/v1/responses",
        "/openai/v1/responses",
        "/api/accounts/7/responses?api-version=1",
        "/backend-api/codex/responses",
    ],
)
def test_any_prefix_fits(client: httpx2.Client, server: ReplayServer, path: str) -> None:
    assert post(client, server, path, "openai-responses-function-call").content == RESPONSES


def test_several_of_a_surface_answer_in_turn_and_one_by_its_name(client: httpx2.Client) -> None:
    names = ["gemini-interactions-function-call", "gemini-interactions-steps"]
    bodies = [(RECORDINGS / f"{name}.sse").read_bytes() for name in names]
    with ReplayServer(RECORDINGS) as server:

        def ask(said: str = "", **more: Any) -> bytes:
            return post(client, server, "/v1beta/interactions", said, **more).content

        assert [ask() for _ in range(3)] == [*bodies, bodies[0]]
        assert ask(names[1]) == ask(model=names[1]) == ask(f"{names[1]}.sse") == bodies[1]
        by_query = client.post(
            f"{server.url}/v1/interactions", params={"streamfold-recording": names[0]}, json={"stream": True}
        )
        assert by_query.content == bodies[0]


def test_what_is_not_there_is_said(client: httpx2.Client, server: ReplayServer) -> None:
    def words(response: httpx2.Response) -> tuple[int, str]:
        return response.status_code, json.dumps(response.json())

    assert words(post(client, server, "/v1/embeddings"))[0] == 404
    status, text = words(post(client, server, "/v1/messages", "none"))
    assert status == 404
    assert "anthropic-thinking-tool-use" in text
    for path in ("/v1/responses", "/v1/chat/completions", "/v1/messages", "/v1/interactions", "/v2/chat"):
        status, text = words(client.post(server.url + path, json={"model": "m"}))
        assert status == 400
        assert "only streams" in text
    assert words(client.post(f"{server.url}/api/chat", json={"stream": False}))[0] == 400
    assert words(client.post(f"{server.url}/v1/models/m:generateContent", json={}))[0] == 400
    for body in (b"[]", b"[" * 100_000, b'{"x":' * 100_000):
        assert words(client.post(f"{server.url}/v1/responses", content=body))[0] == 400
    assert words(client.get(f"{server.url}/v1/responses"))[0] == 405
    assert words(post(client, server, "/v1/responses", "no-such=1"))[0] == 400


def test_recordings_that_are_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recording"):
        ReplayServer(tmp_path)
    strange = tmp_path / "package.json"
    strange.write_text("{}")
    with pytest.raises(UsageError, match="package"):
        ReplayServer(strange)
    (tmp_path / "damaged.sfcap").write_text('{"sfcap":1}\n{"t":')
    (tmp_path / "deep.jsonl").write_bytes(b'{"dir":"in","frame":%b%b}\n' % (b"[" * 100_000, b"]" * 100_000))
    (tmp_path / "good.sse").write_bytes(RESPONSES)
    with ReplayServer(tmp_path) as server:
        assert [words.partition(":")[0] for words in server.skipped] == ["damaged", "deep", "package"]
        assert server.served == {"openai-responses": ["good"]}


def test_gemini_without_alt_is_a_json_array_and_back(client: httpx2.Client, tmp_path: Path) -> None:
    as_sse = (RECORDINGS / "gemini-thought-signature.sse").read_bytes()
    as_array = (RECORDINGS / "gemini-thought-signature.json").read_bytes()
    payloads = [json.loads(data) for data in re.findall(rb"^data: (.*)\r$", as_sse, re.MULTILINE)]
    for name, body in (("sse", as_sse), ("json", as_array)):
        recording = tmp_path / f"gemini-thought-signature.{name}"
        recording.write_bytes(body)
        with ReplayServer(recording) as server:
            array = post(client, server, GENERATE)
            assert array.headers["content-type"] == "application/json; charset=UTF-8"
            assert array.json() == (payloads if name == "sse" else json.loads(as_array))
            events = post(client, server, f"{GENERATE}?alt=sse")
            assert events.headers["content-type"] == "text/event-stream"
            lines = events.text.split("\r\n\r\n")
            assert [json.loads(line.removeprefix("data: ")) for line in lines[:-1]] == array.json()
            assert lines[-1] == ""
    assert streamfold.fold([array.content]).text == streamfold.fold([as_sse]).text


def test_what_was_asked_is_kept(client: httpx2.Client) -> None:
    with ReplayServer(RECORDINGS) as server:
        post(client, server, "/v1/responses?x=1", model="gpt", input="words")
        [request] = server.requests
    assert (request.method, request.path, request.query) == ("POST", "/v1/responses", "x=1")
    assert request.body == {"stream": True, "model": "gpt", "input": "words"}
    assert request.headers["content-type"] == "application/json"


# -- recordings with times --------------------------------------------------------------------------------------------


def recorded(path: Path, reads: list[tuple[float, bytes]], *, url: str, status: int = 200, end: Any = "eof") -> Path:
    """A recording; each read with the seconds since the request."""
    now = 0

    def clock() -> int:
        return now

    with Recorder(path, clock=clock) as recorder:
        recorder.request("POST", url)
        headers = {"content-type": "text/event-stream", "x-request-id": "req_of_then", "connection": "keep-alive"}
        recorder.response(status, [*headers.items(), ("content-length", "3"), ("set-cookie", "secret")], "HTTP/2")
        for at, data in reads:
            now = round(at * 1e9)
            recorder.read(data)
        recorder.end(end)
    return path


def test_a_recording_keeps_its_head_its_status_and_its_pace(client: httpx2.Client, tmp_path: Path) -> None:
    url = "https://gateway.example/openai/v1/responses"
    reads = [(0.5, RESPONSES[:100]), (1.0, RESPONSES[100:2000]), (3.0, RESPONSES[2000:])]
    recorded(tmp_path / "slow.sfcap", reads, url=url)
    recorded(tmp_path / "refused.sfcap.zst", [(0.1, b'{"error":{"message":"no"}}')], url=url, status=401)
    recorded(tmp_path / "broken.sfcap", reads[:2], url=url, end="cut")
    with ReplayServer(tmp_path, pace=20) as server:
        begun = time.monotonic()
        response = post(client, server, "/v1/responses", "slow")
        took = time.monotonic() - begun
        assert response.content == RESPONSES
        assert took >= 3 / 20
        assert response.headers["x-request-id"] == "req_of_then"
        assert "set-cookie" not in response.headers
        assert "content-length" not in response.headers
        refused = post(client, server, "/v1/responses", "refused")
        assert (refused.status_code, refused.json()) == (401, {"error": {"message": "no"}})
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete"):
            post(client, server, "/v1/responses", "broken")
        begun = time.monotonic()
        client.post(
            f"{server.url}/v1/responses",
            json={"stream": True},
            headers={"streamfold-recording": "slow", "streamfold-pace": "at-once"},
        )
        assert time.monotonic() - begun < 3 / 20


@pytest.mark.parametrize("name", ["died.sfcap", "died.sfcap.zst"])
def test_what_a_recorder_wrote_that_died_is_replayed(client: httpx2.Client, tmp_path: Path, name: str) -> None:
    recorder = Recorder(tmp_path / f"whole{Path(name).suffix}")
    recorder.request("POST", "https://api.test/v1/responses")
    for at in range(0, 3000, 100):
        recorder.read(RESPONSES[at : at + 100])
    written = next(tmp_path.iterdir()).read_bytes()
    (tmp_path / name).write_bytes(written[:-7])  # in the middle of its last line
    recorder.end("cancel")
    with ReplayServer(tmp_path / name) as server:
        assert post(client, server, "/v1/responses").content == RESPONSES[:2900]


def test_bodies_are_cut_anew(client: httpx2.Client) -> None:
    with (
        ReplayServer(RECORDINGS, chunk=7) as server,
        client.stream("POST", f"{server.url}/v1/messages", json={"stream": True}) as response,
    ):
        pieces = list(response.iter_raw())
    assert {len(piece) for piece in pieces[:-1]} == {7}
    assert b"".join(pieces) == (RECORDINGS / "anthropic-overloaded.sse").read_bytes()


# -- faults -----------------------------------------------------------------------------------------------------------


def received(client: httpx2.Client, server: ReplayServer, fault: str, *, timeout: float = 5) -> tuple[bytes, str]:
    """The bytes of a broken answer, and what the client saw of its end."""
    headers = {"streamfold-fault": fault, "streamfold-recording": "openai-responses-function-call"}
    url = f"{server.url}/v1/responses"
    return all_of(client, method="POST", url=url, json={"stream": True}, headers=headers, timeout=timeout)


def all_of(client: httpx2.Client, **request: Any) -> tuple[bytes, str]:
    got = b""
    try:
        with client.stream(**request) as response:
            for piece in response.iter_raw():
                got += piece
    except httpx2.TransportError as error:
        return got, type(error).__name__
    return got, "end"


END_OF_SECOND = RESPONSES.index(b"\n\n", RESPONSES.index(b"\n\n") + 2) + 2
FAULTS = {
    "cut": ("cut=1200", RESPONSES[:1200], "RemoteProtocolError"),
    "cut at an event": ("cut=event:2", RESPONSES[:END_OF_SECOND], "RemoteProtocolError"),
    "cut before a byte": ("cut=0", b"", "RemoteProtocolError"),
    "cut behind the last byte": (f"cut={len(RESPONSES)}", RESPONSES, "RemoteProtocolError"),
    "clean end": ("end=1200", RESPONSES[:1200], "end"),
    "stall": ("stall=2", RESPONSES[:END_OF_SECOND], "ReadTimeout"),
    "stall at a byte": ("stall=byte:10", RESPONSES[:10], "ReadTimeout"),
    "out of reach": ("cut=9999999,stall=999", RESPONSES, "end"),
    "the first of two": ("cut=200,end=100", RESPONSES[:100], "end"),
}


@pytest.mark.parametrize(("fault", "body", "seen"), FAULTS.values(), ids=FAULTS.keys())
def test_faults(client: httpx2.Client, server: ReplayServer, fault: str, body: bytes, seen: str) -> None:
    assert received(client, server, fault, timeout=0.3 if "stall=" in fault else 5) == (body, seen)


def test_a_reset_is_one(server: ReplayServer) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    body = b'{"stream":true}'
    lines = (
        f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nstreamfold-fault: reset=40\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), 5) as plain:
        plain.sendall(lines.encode() + body)
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: plain.recv(65536), b""))


def test_garbage_stands_between_the_bytes(client: httpx2.Client, server: ReplayServer) -> None:
    body, seen = received(client, server, "garbage=500")
    assert seen == "end"
    assert body[:500] + body[532:] == RESPONSES
    body, seen = received(client, server, "garbage=500,cut=600")
    assert (body[:500] + body[532:], seen) == (RESPONSES[:600], "RemoteProtocolError")


@pytest.mark.parametrize("status", [429, 529, 503])
def test_refusals_come_first_and_then_the_answer(client: httpx2.Client, status: int) -> None:
    with ReplayServer(RECORDINGS, fault=f"status={status},times=2,retry-after=7") as server:
        for surface, path in PATHS.items():
            answers = [post(client, server, path) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [status, status, 200]
            assert answers[0].headers["retry-after"] == "7"
            said = streamfold.fold([answers[0].content], provider="auto" if surface != "ollama" else "ollama")
            assert said.error is not None, surface


def test_errors_are_worded_as_the_surface_does(client: httpx2.Client, server: ReplayServer) -> None:
    def error(path: str, status: int) -> Any:
        response = post(client, server, path, f"error={status}")
        assert response.status_code == status
        return response.json()

    assert error("/v1/chat/completions", 429)["error"]["code"] == "rate_limit_exceeded"
    assert error("/v1/messages", 529)["error"]["type"] == "overloaded_error"
    assert error(f"{GENERATE}?alt=sse", 503)["error"]["status"] == "UNAVAILABLE"
    assert error(GENERATE, 503)[0]["error"]["code"] == 503
    assert error("/v2/chat", 500).keys() == {"message"}
    assert error("/model/m/converse-stream", 429).keys() == {"message"}
    refused = post(client, server, "/model/m/converse-stream", "error=429")
    assert refused.headers["x-amzn-errortype"] == "ThrottlingException"


def test_the_first_byte_comes_late(client: httpx2.Client, server: ReplayServer) -> None:
    begun = time.monotonic()
    assert received(client, server, "first-byte=0.2") == (RESPONSES, "end")
    assert time.monotonic() - begun >= 0.2
    assert received(client, server, "first-byte=30", timeout=0.2) == (b"", "ReadTimeout")


def test_a_seed_says_where_chance_strikes(client: httpx2.Client) -> None:
    def lengths(seed: int) -> list[int]:
        with ReplayServer(RECORDINGS, seed=seed, fault="end=random") as server:
            return [len(post(client, server, "/v1/responses").content) for _ in range(6)]

    first = lengths(1)
    assert lengths(1) == first != lengths(2)
    assert len(set(first)) == 6


@pytest.mark.parametrize(
    "fault",
    [
        "cut",
        "cut=",
        "cut=-1",
        "cut=1.5",
        "cut=line:3",
        f"cut={'9' * 5000}",
        "stall=soon",
        "status=200",
        "error=x",
        "first-byte=-1",
        "fire=1",
    ],
)
def test_faults_that_are_none(fault: str) -> None:
    with pytest.raises(UsageError):
        ReplayServer(RECORDINGS, fault=fault)


def test_no_fault_may_be_said_by_none(client: httpx2.Client) -> None:
    with ReplayServer(RECORDINGS, fault=None) as server:
        assert post(client, server, PATHS["anthropic"]).status_code == 200


@pytest.mark.parametrize("setting", [{"pace": "slow"}, {"pace": 0}, {"chunk": 0}], ids=str)
def test_settings_that_are_none(setting: Any) -> None:
    with pytest.raises(UsageError):
        ReplayServer(RECORDINGS, **setting)


# -- runs in the background -------------------------------------------------------------------------------------------


def with_event_ids(body: bytes) -> bytes:
    """An Interactions stream as a run in the background sends it."""
    frames = body.split(b"\n\n")
    return b"\n\n".join(re.sub(rb"\}$", b',"event_id":"e%d"}' % k, frame) for k, frame in enumerate(frames))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayServer]:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "responses.sse").write_bytes(RESPONSES)
    (folder / "interactions.sse").write_bytes(with_event_ids(STEPS))
    with ReplayServer(folder) as server:
        yield server


RUNS = {
    # surface -> path, the run's id, the parameter of its cursor, and the cursor of each event
    "openai-responses": ("/v1/responses", re.findall(rb'"id":"(resp_\w+)"', RESPONSES)[0].decode(), "starting_after",
                         re.findall(rb'"sequence_number":(\d+)', RESPONSES), RESPONSES),
    "gemini-interactions": ("/v1beta/interactions", re.findall(rb'"id":"(v1_\w+)"', STEPS)[0].decode(),
                            "last_event_id", re.findall(rb'"event_id":"(e\d+)"', with_event_ids(STEPS)),
                            with_event_ids(STEPS)),
}  # fmt: skip


@pytest.mark.parametrize("surface", RUNS)
def test_a_run_is_taken_up_behind_each_of_its_events(client: httpx2.Client, runs: ReplayServer, surface: str) -> None:
    path, id_, parameter, cursors, body = RUNS[surface]
    ends = [blank.end() for blank in re.finditer(rb"\n\n", body)]
    assert post(client, runs, path, background=True).content == body
    one = f"{runs.url}{path}/{id_}"
    assert client.get(one, params={"stream": "true"}).content == body
    for end, cursor in zip(ends, cursors, strict=False):
        rest = client.get(one, params={"stream": "true", parameter: cursor.decode()})
        assert rest.content == body[end:]
    for cursor in ("none-such", "9" * 5000):
        assert client.get(one, params={"stream": "true", parameter: cursor}).status_code == 400
    assert client.get(one).json()["id"] == id_
    assert client.get(f"{runs.url}{path}/other", params={"stream": "true"}).status_code == 404


@pytest.mark.parametrize("surface", RUNS)
def test_a_run_that_breaks_again_and_again_comes_whole(client: httpx2.Client, runs: ReplayServer, surface: str) -> None:
    path, id_, parameter, cursors, body = RUNS[surface]
    fault = {"streamfold-fault": "cut=event:3"}
    got, asked = b"", 0
    request: Any = {"method": "POST", "url": runs.url + path, "json": {"stream": True, "background": True}}
    while got != body:
        got += all_of(client, headers=fault, **request)[0]
        assert body.startswith(got)
        cursor = cursors[min(got.count(b"\n\n"), len(cursors)) - 1].decode()
        request = {"method": "GET", "url": f"{runs.url}{path}/{id_}", "params": {"stream": "true", parameter: cursor}}
        asked += 1
    assert asked == -(-body.count(b"\n\n") // 3)


@pytest.mark.parametrize("surface", RUNS)
def test_a_run_in_the_foreground_is_not_taken_up(client: httpx2.Client, runs: ReplayServer, surface: str) -> None:
    path, id_, *_ = RUNS[surface]
    post(client, runs, path)
    assert client.get(f"{runs.url}{path}/{id_}", params={"stream": "true"}).status_code == 404
    assert client.post(f"{runs.url}{path}/{id_}/cancel").status_code == 400


@pytest.mark.parametrize("surface", RUNS)
def test_a_run_is_cancelled_while_it_streams(client: httpx2.Client, runs: ReplayServer, surface: str) -> None:
    path, id_, parameter, cursors, body = RUNS[surface]
    asked: Any = {"json": {"stream": True, "background": True}, "headers": {"streamfold-fault": "stall=4"}}
    with client.stream("POST", runs.url + path, **asked) as response:
        pieces = response.iter_raw()
        got = b""
        while got.count(b"\n\n") < 4:
            got += next(pieces)
        cancelled = client.post(f"{runs.url}{path}/{id_}/cancel").json()
        assert (cancelled["id"], cancelled["status"]) == (id_, "cancelled")
        got += b"".join(pieces)
    end = [blank.end() for blank in re.finditer(rb"\n\n", body)][3]
    assert got.startswith(body[:end])
    stop = streamfold.fold([got]).stop
    assert stop is not None
    assert stop.reason == "cancelled"
    again = client.post(f"{runs.url}{path}/{id_}/cancel")
    assert again.json() == cancelled
    begin = [blank.end() for blank in re.finditer(rb"\n\n", body)][1]
    rest = client.get(f"{runs.url}{path}/{id_}", params={"stream": "true", parameter: cursors[1].decode()})
    assert rest.content == got[begin:]


@pytest.mark.parametrize("surface", RUNS)
def test_a_run_that_is_over_is_not_cancelled_any_more(client: httpx2.Client, runs: ReplayServer, surface: str) -> None:
    path, id_, *_, body = RUNS[surface]
    post(client, runs, path, background=True)
    assert client.post(f"{runs.url}{path}/{id_}/cancel").json()["status"] == "completed"
    assert client.get(f"{runs.url}{path}/{id_}", params={"stream": "true"}).content == body


@pytest.mark.parametrize("surface", RUNS)
def test_a_run_begins_without_a_stream(client: httpx2.Client, runs: ReplayServer, surface: str) -> None:
    path, id_, *_, body = RUNS[surface]
    begun = post(client, runs, path, stream=False, background=True)
    assert (begun.json()["id"], begun.json()["status"]) == (id_, "in_progress")
    assert client.get(f"{runs.url}{path}/{id_}", params={"stream": "true"}).content == body


# -- the server itself ------------------------------------------------------------------------------------------------


def test_nothing_stays_behind() -> None:
    before = set(threading.enumerate())
    server = ReplayServer(RECORDINGS, fault="stall=1")
    for _ in range(2):  # it can be started again
        with server, httpx2.Client() as client:
            port = int(server.url.rpartition(":")[2])
            with client.stream("POST", f"{server.url}/v1/responses", json={"stream": True}) as response:
                pieces = response.iter_raw()
                assert next(pieces)
                begun = time.monotonic()
                server.close()
                assert time.monotonic() - begun < 1
                with pytest.raises(httpx2.TransportError):
                    list(pieces)
        assert set(threading.enumerate()) == before
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)
    server.close()


def test_many_at_once(client: httpx2.Client, server: ReplayServer) -> None:
    def one(k: int) -> bytes:
        return post(client, server, "/v1/responses", "openai-responses-function-call").content

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(one, range(100))) == {RESPONSES}


def test_a_place_that_is_taken_is_an_oserror(server: ReplayServer) -> None:
    port = server.url.rpartition(":")[2]
    with pytest.raises(OSError, match=f"127.0.0.1, port {port}: "):
        ReplayServer(RECORDINGS, port=int(port)).start()
    with pytest.raises(UsageError):
        server.start()


def test_a_client_that_does_not_read_keeps_nobody_from_anything(client: httpx2.Client, tmp_path: Path) -> None:
    large = tmp_path / "large.sse"
    chunk = {"choices": [{"index": 0, "delta": {"content": "x" * 1000}}]}
    large.write_bytes(b"data: %b\n\n" % json.dumps(chunk).encode() * 20_000)
    with ReplayServer(tmp_path, RECORDINGS) as server:
        asked: Any = {"json": {"stream": True, "model": "large"}}
        with client.stream("POST", f"{server.url}/v1/chat/completions", **asked) as frozen:
            assert next(frozen.iter_raw())
            assert post(client, server, "/v1/responses", "openai-responses-function-call").content == RESPONSES
            begun = time.monotonic()
            server.close()
            assert time.monotonic() - begun < 1
