"""Recordings: every byte at its time, whatever becomes of who writes or reads; and nothing that is a secret."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import pickle
import shlex
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold.errors import FrameTooLarge, FramingError, Malformed, UsageError
from streamfold.recording._redact import redacted_command, redacted_headers, redacted_url
from streamfold.recording.files import Recorder, Recordings, is_recording, read_recording, unpacked
from streamfold.recording.sfcap import Head, Read, RecordingReader, RecordingWriter, RequestHead, ResponseHead
from tests.conftest import ROOT

BODY = [b"data: {}\n\n", "data: é".encode()[:-1], b"\xa9\n\n", b""]


def written(reads: list[Read], how: Any = "eof", head: Head = Head(), **end: Any) -> bytes:  # noqa: B008 - immutable
    writer = RecordingWriter()
    lines = [writer.head(head)]
    lines += [writer.read(read.t, read.data, op=read.op, sent=read.sent) for read in reads]
    return b"".join([*lines, writer.end(reads[-1].t if reads else 0, how, **end)])


def read_back(data: bytes, points: list[int], **bounds: Any) -> tuple[list[Read], RecordingReader, FramingError | None]:
    """The reads of a file that comes cut at these points, the reader, and the fault that ended it."""
    reader = RecordingReader(**bounds)
    reads: list[Read] = []
    ends = sorted({min(point, len(data)) for point in points} | {len(data)})
    try:
        for begin, end in zip([0, *ends], ends, strict=False):
            reader.feed(data[begin:end])
            reads += reader
        reader.close()
        reads += reader
    except FramingError as fault:
        return reads, reader, fault
    return reads, reader, None


# -- the format -------------------------------------------------------------------------------------------------------

a_read = st.builds(
    Read,
    st.integers(0, 2**63 - 1),
    st.binary() | st.text().map(str.encode),
    st.sampled_from([None, "text", "binary"]),
    st.booleans(),
)


@given(reads=st.lists(a_read), points=st.lists(st.integers(0, 2000)))
def test_what_was_written_is_read_back_however_the_file_is_cut(reads: list[Read], points: list[int]) -> None:
    back, reader, fault = read_back(written(reads), points)
    assert (back, fault, reader.intact) == (reads, None, True)
    assert reader.end is not None
    received = b"".join(read.data for read in reads if not read.sent)
    assert (reader.end.bytes, reader.end.sha256) == (len(received), hashlib.sha256(received).hexdigest())
    assert reader.end.reads == sum(not read.sent for read in reads)


@given(reads=st.lists(a_read), at=st.integers(0, 4000))
def test_a_file_that_stops_anywhere_holds_the_reads_before(reads: list[Read], at: int) -> None:
    data = written(reads)[:at]
    back, reader, fault = read_back(data, [])
    assert fault is None
    assert back == reads[: len(back)]
    assert len(back) >= data.count(b"\n") - 1 - (reader.end is not None)


@given(data=st.binary() | st.lists(a_read).map(written), at=st.integers(0, 300), junk=st.binary(max_size=4))
def test_damage_is_a_fault_of_ours_or_none(data: bytes, at: int, junk: bytes) -> None:
    damaged = data[:at] + junk + data[at + len(junk) :]
    back, _, fault = read_back(damaged, [])
    again, _, same = read_back(damaged, list(range(len(damaged))))
    assert (back, str(fault)) == (again, str(same))


LINES: dict[str, tuple[bytes, dict[str, Any]]] = {
    "text": (b'data: "x"\n\n', {"t": 1, "text": 'data: "x"\n\n'}),
    "a character cut in two": ("é".encode()[:1], {"t": 1, "base64": "ww=="}),
    "no character": (b"\xff\x00", {"t": 1, "base64": "/wA="}),
    "nothing": (b"", {"t": 1, "text": ""}),
    "a control character": (b"\x00\x1f", {"t": 1, "text": "\x00\x1f"}),
}


@pytest.mark.parametrize(("data", "line"), LINES.values(), ids=LINES.keys())
def test_a_read_is_a_line(data: bytes, line: dict[str, Any]) -> None:
    writer = RecordingWriter()
    writer.head(Head())
    written_ = writer.read(1, data)
    assert json.loads(written_) == line
    assert written_.count(b"\n") == 1
    assert written_.endswith(b"\n")


def test_the_lines_of_a_message() -> None:
    writer = RecordingWriter()
    assert writer.head(Head()) == b'{"sfcap":1}\n'
    assert json.loads(writer.read(5, b"{}", op="text", sent=True)) == {"t": 5, "text": "{}", "op": "text", "sent": True}
    end = json.loads(writer.end(9, "cut", error="gone", code=1006, reason="r"))
    assert end.pop("sha256") == hashlib.sha256(b"").hexdigest()
    assert end == {"t": 9, "end": "cut", "bytes": 0, "reads": 0, "error": "gone", "code": 1006, "reason": "r"}


def test_the_first_line_holds_the_heads() -> None:
    head = Head(
        RequestHead("POST", "https://h/v1?key=k&alt=sse", (("accept", "*/*"), ("Authorization", "Bearer k")), "{}"),
        ResponseHead(200, (("Set-Cookie", "a=b"), ("x", "1"), ("x", "2")), "HTTP/2", 7),
        "openai-chat",
        "2026-11-30T00:00:00+00:00",
    )
    line = json.loads(RecordingWriter().head(head))
    assert line.pop("sfcap") == 1
    assert line == {
        "request": {
            "method": "POST",
            "url": "https://h/v1?key=REDACTED&alt=sse",
            "headers": [["accept", "*/*"], ["Authorization", "REDACTED"]],
            "body": "{}",
        },
        "response": {
            "status": 200,
            "headers": [["Set-Cookie", "REDACTED"], ["x", "1"], ["x", "2"]],
            "http_version": "HTTP/2",
            "t": 7,
        },
        "provider": "openai-chat",
        "started": "2026-11-30T00:00:00+00:00",
    }
    kept = RecordingWriter(redact=False).head(head)
    assert read_back(kept, [])[1].head == head


HEAD = b'{"sfcap":1}\n'
READ = b'{"t":1,"text":"a"}\n'
DAMAGED: dict[str, tuple[bytes, int]] = {
    "no JSON": (HEAD + READ + b"{x}\n" + READ, len(HEAD + READ)),
    "no object": (HEAD + READ + b"[1]\n" + READ, len(HEAD + READ)),
    "no time": (HEAD + b'{"text":"a"}\n', len(HEAD)),
    "a time before the request": (HEAD + b'{"t":-1,"text":"a"}\n', len(HEAD)),
    "a time beyond all reckoning": (HEAD + b'{"t":1%b,"text":"a"}\n' % (b"0" * 400), len(HEAD)),
    "neither text nor base64": (HEAD + b'{"t":1}\n', len(HEAD)),
    "no base64": (HEAD + b'{"t":1,"base64":"a"}\n', len(HEAD)),
    "half a surrogate": (HEAD + b'{"t":1,"text":"\\ud800"}\n', len(HEAD)),
    "no UTF-8": (HEAD + b'{"t":1,"text":"\xff"}\n', len(HEAD)),
    "an end of no kind": (HEAD + b'{"t":1,"end":"perhaps"}\n', len(HEAD)),
    "an end without its hash": (HEAD + b'{"t":1,"end":"eof"}\n', len(HEAD)),
    "something behind the end": (written([]) + READ, len(written([]))),
    "deep": (HEAD + b'{"t":1,"text":"a","x":' + b"[" * 100_000 + b"}\n", len(HEAD)),
    "no head": (b'{"t":1,"text":"a"}\n', 0),
    "a head of another kind": (b'{"sfcap":"1"}\n', 0),
    "a version before the first": (b'{"sfcap":0}\n', 0),
    "a request without its address": (b'{"sfcap":1,"request":{"method":"GET"}}\n', 0),
}


@pytest.mark.parametrize(("data", "offset"), DAMAGED.values(), ids=DAMAGED.keys())
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_damage_is_told_with_its_place(data: bytes, offset: int, step: int) -> None:
    if step == 1 and len(data) > 10_000:
        step = 1000
    reads, reader, fault = read_back(data, list(range(0, len(data), step)))
    assert isinstance(fault, Malformed)
    assert fault.offset == offset
    assert len(reads) == data[:offset].count(b'"text"')
    with pytest.raises(Malformed):  # again, to whoever asks again
        next(reader)


def test_a_version_of_the_future_is_told_whatever_its_head_has_become() -> None:
    fault = read_back(b'{"sfcap":2,"request":7}\n', [])[2]
    assert isinstance(fault, Malformed)
    assert "version 2" in str(fault)


def test_members_that_nobody_knows_are_passed_over() -> None:
    data = b'{"sfcap":1,"new":[1]}\n{"t":1,"text":"a","new":{}}\n\n\r\n{"t":2,"text":"b"}'
    assert read_back(data, [])[0] == [Read(1, b"a"), Read(2, b"b")]


def test_a_line_beyond_its_bound() -> None:
    reads, _, fault = read_back(HEAD + READ + b'{"t":1,"text":"' + b"a" * 100, [40], max_line_bytes=64)
    assert reads == [Read(1, b"a")]
    assert isinstance(fault, FrameTooLarge)
    assert (fault.limit, fault.offset) == (64, len(HEAD + READ))


@pytest.mark.parametrize("last", ["", '{"t":3,"text', '{"t":3,"end":"eof","by', "{"])
def test_a_recorder_that_died_leaves_what_it_wrote(last: str) -> None:
    reads, reader, fault = read_back(HEAD + READ + last.encode(), [])
    assert (reads, fault, reader.end, reader.intact) == ([Read(1, b"a")], None, None, None)


def test_bytes_that_are_others() -> None:
    data = written([Read(1, b"abc")]).replace(b'"abc"', b'"abd"')
    reads, reader, fault = read_back(data, [])
    assert (reads, fault, reader.intact) == ([Read(1, b"abd")], None, False)


def test_a_recording_begins_once_and_ends_once() -> None:
    writer = RecordingWriter()
    with pytest.raises(UsageError):
        writer.read(0, b"")
    writer.head(Head())
    with pytest.raises(UsageError):
        writer.head(Head())
    writer.end(0, "eof")
    with pytest.raises(UsageError):
        writer.end(0, "eof")


# -- secrets ----------------------------------------------------------------------------------------------------------

SECRET = [
    *("authorization", "Authorization", "Proxy-Authorization", "x-api-key", "api-key", "X-Goog-Api-Key", "cookie"),
    *("Set-Cookie", "X-Amz-Security-Token", "x-auth-token", "X-Client-Secret", "apikey", "ocp-apim-subscription-key"),
    *("x-access-token", "cf-aig-authorization", "X-Signature", "X-API-KEY", "Authentication", "AccessToken"),
]
PLAIN = [
    *("content-type", "x-request-id", "anthropic-version", "x-ratelimit-remaining-tokens", "retry-after"),
    *("anthropic-ratelimit-tokens-limit", "x-ratelimit-limit-tokens", "openai-organization", "monkey"),
]


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_header(name: str) -> None:
    assert redacted_headers([("a", "b"), (name, "s3cret")]) == (("a", "b"), (name, "REDACTED"))


@pytest.mark.parametrize("name", PLAIN)
def test_a_header_that_is_none(name: str) -> None:
    assert redacted_headers([(name, "v")]) == ((name, "v"),)


HEADERS = {
    "where to go next": ("Location", "https://u:s3cret@h/a?key=s3cret&x=1", "https://h/a?key=REDACTED&x=1"),
    "a key among protocols": (
        "Sec-WebSocket-Protocol",
        "realtime, openai-insecure-api-key.s3cret, openai-beta.realtime-v1",
        "realtime, openai-insecure-api-key.REDACTED, openai-beta.realtime-v1",
    ),
    "a bearer of some kind": (
        "Sec-WebSocket-Protocol",
        "base64url.bearer.authorization.k8s.io.s3cret, v1, bearer, s3cret",
        "base64url.bearer.REDACTED, v1, bearer, REDACTED",
    ),
    "xAI's": ("sec-websocket-protocol", "xai-client-secret.s3cret", "xai-client-secret.REDACTED"),
    "a media type": ("content-type", "text/event-stream;charset=utf-8", "text/event-stream;charset=utf-8"),
}


@pytest.mark.parametrize(("name", "value", "left"), HEADERS.values(), ids=HEADERS.keys())
def test_secrets_inside_a_header(name: str, value: str, left: str) -> None:
    assert redacted_headers([(name, value)]) == ((name, left),)


URLS = {
    "https://h/v1/messages": "https://h/v1/messages",
    "https://h/v1?key=s3cret": "https://h/v1?key=REDACTED",
    "https://h/v1?alt=sse&key=s3cret&x=%20y": "https://h/v1?alt=sse&key=REDACTED&x=%20y",
    "https://h/v1?api-version=1&api-key=s3cret": "https://h/v1?api-version=1&api-key=REDACTED",
    "https://h/v1?api_key=s3cret;access_token=s3cret": "https://h/v1?api_key=REDACTED;access_token=REDACTED",
    "https://h/?apiKey=s3cret&accessToken=s3cret": "https://h/?apiKey=REDACTED&accessToken=REDACTED",
    "https://h/?api%5Fkey=s3cret": "https://h/?api%5Fkey=REDACTED",
    "https://h/?auth[token]=s3cret": "https://h/?auth[token]=REDACTED",
    "https://h/?X-Amz-Credential=s3cret&X-Amz-Signature=s3cret&X-Amz-Date=1": (
        "https://h/?X-Amz-Credential=REDACTED&X-Amz-Signature=REDACTED&X-Amz-Date=1"
    ),
    "https://h/?sv=1&sig=s3cret": "https://h/?sv=1&sig=REDACTED",
    "https://user:s3cret@h:8080/p": "https://h:8080/p",
    "https://user:s3cret@@h/p": "https://h/p",
    "wss://s3cret@h/p#access_token=s3cret": "wss://h/p#access_token=REDACTED",
    "https://[half/p?key=s3cret": "https://[half/p?key=REDACTED",
    "https://h/p?q=a@b&monkey=1&starting_after=3": "https://h/p?q=a@b&monkey=1&starting_after=3",
    "https://h/p?key=&x": "https://h/p?key=&x",
    "https://h/?to=https://i/p?key=s3cret&x=1": "https://h/?to=https://i/p?key=REDACTED&x=1",
    "https://h/?to=https%3A%2F%2Fi%3Fa%3D1%26key%3Ds3cret&x=1": (
        "https://h/?to=https%3A%2F%2Fi%3Fa%3D1%26key%3DREDACTED&x=1"
    ),
    "https://h/?key=s3%26cret?s3cret": "https://h/?key=REDACTED",
    "https://h/?x?key=s3cret": "https://h/?x?key=REDACTED",
    "https://h/?accesstoken=s3cret&CLIENTSECRET=s3cret": "https://h/?accesstoken=REDACTED&CLIENTSECRET=REDACTED",
    "//h/p?x=1": "//h/p?x=1",
}


@pytest.mark.parametrize(("url", "left"), URLS.items())
def test_an_address_without_its_secrets(url: str, left: str) -> None:
    assert redacted_url(url) == left


COMMANDS = {
    "-H 'Authorization: s3cret'": "-H 'Authorization: REDACTED'",
    "-HAuthorization:s3cret": "-HAuthorization:REDACTED",
    "'-HAuthorization: Bearer s3cret'": "'-HAuthorization: REDACTED'",
    "--header 'x-api-key: s3cret' -N": "--header 'x-api-key: REDACTED' -N",
    "'--header=x-goog-api-key: s3cret'": "'--header=x-goog-api-key: REDACTED'",
    "-H 'accept: text/event-stream'": "-H 'accept: text/event-stream'",
    "-H 'Cookie: s3cret'": "-H 'Cookie: REDACTED'",
    "--proxy-header 'Proxy-Authorization: s3cret'": "--proxy-header 'Proxy-Authorization: REDACTED'",
    "-sNH 'Authorization: s3cret'": "-sNH 'Authorization: REDACTED'",
    "'-sNHAuthorization: s3cret'": "'-sNHAuthorization: REDACTED'",
    "-u me:s3cret": "-u REDACTED",
    "-ume:s3cret": "-uREDACTED",
    "-sNu me:s3cret -v": "-sNu REDACTED -v",
    "--user me:s3cret": "--user REDACTED",
    "--user=me:s3cret": "--user=REDACTED",
    "-U me:s3cret --proxy-user me:s3cret": "-U REDACTED --proxy-user REDACTED",
    "-b a=s3cret --cookie b=s3cret": "-b REDACTED --cookie REDACTED",
    "-c jar --cookie-jar jar": "-c jar --cookie-jar jar",
    "--oauth2-bearer s3cret": "--oauth2-bearer REDACTED",
    "-E cert.pem:s3cret --pass s3cret": "-E REDACTED --pass REDACTED",
    "'https://h/?key=s3cret&alt=sse'": "'https://h/?key=REDACTED&alt=sse'",
    "--url 'https://u:s3cret@h/'": "--url https://h/",
    "-x http://u:s3cret@proxy:1": "-x http://proxy:1",
    "-x u:s3cret@proxy:1 u:s3cret@h/v1": "-x u:REDACTED@proxy:1 u:REDACTED@h/v1",
    """sh -c "curl -sNu 'me:s3cret' --oauth2-bearer s3cret -b a=s3cret h" """: (
        """sh -c 'curl -sNu REDACTED --oauth2-bearer REDACTED -b REDACTED h' """
    ),
    """sh -c "API_KEY='s3cret' TOKEN=s3cret python -u x.py" """: (
        """sh -c 'API_KEY=REDACTED TOKEN=REDACTED python -u x.py' """
    ),
    "-d 'grant_type=x&client_secret=s3cret'": "-d 'grant_type=x&client_secret=REDACTED'",
    "--url-query key=s3cret": "--url-query key=REDACTED",
    """-d '{"max_tokens": 5, "prompt": "a key: b"}'""": """-d '{"max_tokens": 5, "prompt": "a key: b"}'""",
    "-N -X POST -m 5": "-N -X POST -m 5",
    "env OPENAI_API_KEY=s3cret python x.py": "env OPENAI_API_KEY=REDACTED python x.py",
    "tool --api-key s3cret --token=s3cret": "tool --api-key REDACTED --token=REDACTED",
    "http POST h Authorization:s3cret": "http POST h Authorization:REDACTED",
    """sh -c 'curl -H "Authorization: Bearer s3cret" https://h/?key=s3cret'""": (
        """sh -c 'curl -H "Authorization: REDACTED" https://h/?key=REDACTED'"""
    ),
    "-H": "-H",
    "-u": "-u",
    "- -- ''": "- -- ''",
}


@pytest.mark.parametrize(("command", "left"), COMMANDS.items())
def test_a_command_without_its_secrets(command: str, left: str) -> None:
    assert list(redacted_command(shlex.split(command))) == shlex.split(left)


@given(st.lists(st.text()))
def test_redacting_changes_the_number_of_no_arguments(arguments: list[str]) -> None:
    assert len(redacted_command(arguments)) == len(arguments)
    assert redacted_command(redacted_command(arguments)) == redacted_command(arguments)


def test_a_failure_is_recorded_without_the_key_in_its_address() -> None:
    data = written([], "cut", error="no answer from 'https://h/?key=s3cret'")
    assert b"s3cret" not in data


# -- files ------------------------------------------------------------------------------------------------------------


class Clock:
    """Nanoseconds that a test sets."""

    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture(params=["x.sfcap", "x.sfcap.zst"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def recorded(path: Path, how: Any = "eof", **end: Any) -> Path:
    clock = Clock()
    with Recorder(path, provider="openai-chat", clock=clock) as recorder:
        clock.now = 100
        recorder.request("POST", "https://h/v1", [("authorization", "s3cret")])
        clock.now = 1100
        recorder.response(200, [("content-type", "text/event-stream")], "HTTP/1.1")
        for data in BODY:
            clock.now += 1000
            recorder.read(data)
        recorder.end(how, **end)
    return path


def test_an_exchange_is_recorded_with_its_times(path: Path) -> None:
    with read_recording(recorded(path)) as recording:
        assert recording.head.provider == "openai-chat"
        assert recording.head.request == RequestHead("POST", "https://h/v1", (("authorization", "REDACTED"),))
        assert recording.head.response is not None
        assert recording.head.response.t == 1000
        assert recording.headers == {"content-type": "text/event-stream"}
        assert recording.status_code == 200
        assert (recording.end, recording.intact) == (None, None)
        assert list(recording) == [Read(2000 + 1000 * k, data) for k, data in enumerate(BODY)]
        assert recording.end is not None
        assert (recording.end.end, recording.intact) == ("eof", True)
        assert not recording.is_session


def test_every_line_is_in_the_file_before_the_call_returns(path: Path) -> None:
    recorder = Recorder(path)
    recorder.request("POST", "https://h/")
    recorder.response(200)
    for count, data in enumerate(BODY, 1):
        recorder.read(data)
        assert [read.data for read in read_recording(path)] == BODY[:count]  # as of a recorder that died here
    recorder.end()


def test_a_recorder_that_is_killed_leaves_a_file_that_reads(path: Path) -> None:
    code = f"""
import os
from streamfold.recording.files import Recorder
recorder = Recorder({str(path)!r})
recorder.request("POST", "https://h/")
for k in range(100): recorder.read(b"data: %d\\n\\n" % k)
os.kill(os.getpid(), 9)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=60)
    recording = read_recording(path)
    assert b"".join(recording.iter_bytes()) == b"".join(b"data: %d\n\n" % k for k in range(100))
    assert (recording.end, recording.intact) == (None, None)


def test_whoever_leaves_a_recorder_has_cancelled(path: Path) -> None:
    with Recorder(path) as recorder:
        recorder.read(b"a")
    recorder.end("eof")  # the first counts
    recording = read_recording(path)
    assert [read.data for read in recording] == [b"a"]
    assert recording.end is not None
    assert recording.end.end == "cancel"


def test_a_recording_of_nothing(path: Path) -> None:
    with Recorder(path) as recorder:
        recorder.request("GET", "https://h/")
        recorder.end("cut", error="no connection")
    recording = read_recording(path)
    assert list(recording) == []
    assert recording.status_code is None
    assert recording.end is not None
    assert recording.end.error == "no connection"


def test_a_recording_is_a_source_for_every_driver(path: Path) -> None:
    body = (ROOT / "examples/recordings/anthropic-thinking-tool-use.sse").read_bytes()
    with Recorder(path) as recorder:
        for at in range(0, len(body), 100):
            recorder.read(body[at : at + 100])
        recorder.end()
    assert streamfold.fold(read_recording(path)) == streamfold.fold(body)


def test_a_recorded_failure_fails_again(path: Path) -> None:
    with Recorder(path) as recorder:
        recorder.read(b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n')
        recorder.end("cut", error="connection reset")
    events: list[streamfold.Event] = []
    with pytest.raises(ConnectionError, match="connection reset"):
        events.extend(streamfold.iter_unified(read_recording(path), "openai-chat"))
    assert isinstance(events[-1], streamfold.ErrorEvent)
    assert events[-1].kind == "transport"


def test_a_recorded_refusal_has_its_status(path: Path) -> None:
    with Recorder(path) as recorder:
        recorder.response(429, [("Retry-After", "7")])
        recorder.read(b'{"error":{"message":"slow down"}}')
        recorder.end()
    answer = streamfold.fold(read_recording(path), "openai-chat")
    assert answer.error is not None
    assert (answer.error.status, answer.error.retry_after_ms, answer.error.retryable) == (429, 7000, True)


def test_open_files_and_chunks_are_places_too(path: Path) -> None:
    data = recorded(path).read_bytes()
    assert is_recording(data)
    for place in (io.BytesIO(data), [data], [data[at : at + 1] for at in range(len(data))], path.open("rb")):
        recording = read_recording(place)
        assert [read.data for read in recording] == BODY
        recording.close()
        if isinstance(place, io.IOBase):
            assert not place.closed
            place.close()
    sink = io.BytesIO()
    with Recorder(sink) as recorder:
        recorder.read(b"a")
    assert [read.data for read in read_recording([sink.getvalue()])] == [b"a"]


NONE = {"nothing": b"", "an event stream": b"data: {}\n\n", "half a head": b'{"sfcap":1', "compressed": None}


@pytest.mark.parametrize("data", NONE.values(), ids=NONE.keys())
def test_what_is_no_recording(data: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.write_bytes(zstandard.compress(b"data: {}\n\n") if data is None else data)
    with pytest.raises(Malformed):
        read_recording(place)


def test_faults_of_recordings_pickle() -> None:
    fault = read_back(b"x\n", [])[2]
    assert fault is not None
    assert str(pickle.loads(pickle.dumps(fault))) == str(fault)


@given(at=st.integers(0, 400), junk=st.binary(min_size=1, max_size=3))
def test_damage_of_a_compressed_file_is_a_fault_of_ours(at: int, junk: bytes) -> None:
    data = zstandard.compress(written([Read(k, bytes([k]) * 40) for k in range(9)]))
    damaged = data[:at] + junk + data[at + len(junk) :]
    with suppress(Malformed):  # it need not be raised
        list(read_recording([damaged]).iter_bytes())


def test_a_folder_of_recordings(tmp_path: Path) -> None:
    many = Recordings(tmp_path / "new", provider="xai", bodies=True)
    for number in range(3):
        with many.begin("POST", "https://h/", [], b"{}" if number else b"\xff") as recorder:
            recorder.read(b"%d" % number)
    paths = sorted((tmp_path / "new").iterdir())
    assert [path.name for path in paths] == ["0001.sfcap", "0002.sfcap", "0003.sfcap"]
    heads = []
    for path in paths:
        with read_recording(path) as recording:
            heads.append(recording.head)
    assert [head.provider for head in heads] == ["xai"] * 3
    assert [head.request and head.request.body for head in heads] == [None, "{}", "{}"]
    with Recordings(lambda: tmp_path / "x.sfcap").begin("GET", "https://h/", body=b"private") as recorder:
        recorder.end()
    assert b"private" not in (tmp_path / "x.sfcap").read_bytes()


# -- bodies that are packed -------------------------------------------------------------------------------------------

PLAIN_BODY = b"".join(b"data: {%d}\n\n" % k for k in range(2000))
RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)
PACKED = {
    "identity": PLAIN_BODY,
    "": PLAIN_BODY,
    "gzip": gzip.compress(PLAIN_BODY),
    "GZIP ": gzip.compress(PLAIN_BODY[:99]) + gzip.compress(PLAIN_BODY[99:]),
    "x-gzip": gzip.compress(PLAIN_BODY),
    "deflate": zlib.compress(PLAIN_BODY),
    " deflate": RAW.compress(PLAIN_BODY) + RAW.flush(),
    "zstd": zstandard.compress(PLAIN_BODY),
    "Zstd": zstandard.compress(PLAIN_BODY[:99]) + zstandard.compress(PLAIN_BODY[99:]),
    "gzip, zstd": zstandard.compress(gzip.compress(PLAIN_BODY)),
}


@pytest.mark.parametrize(("encoding", "data"), PACKED.items())
@pytest.mark.parametrize("step", [1, 100, 1 << 20])
def test_a_packed_body_is_unpacked(encoding: str, data: bytes, step: int) -> None:
    reads = [data[at : at + step] for at in range(0, len(data), step)]
    assert b"".join(unpacked(reads, encoding)) == PLAIN_BODY


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@given(data=st.binary(min_size=8), at=st.integers(0, 60))
def test_what_is_not_packed_so_is_a_fault_of_ours(encoding: str, data: bytes, at: int) -> None:
    packed = PACKED[encoding]
    for broken in (data, packed[:at] + data + packed[at:]):
        with suppress(Malformed):
            list(unpacked([broken[:5], broken[5:]], encoding))


def test_an_encoding_that_nobody_can_unpack() -> None:
    with pytest.raises(UsageError, match="br"):
        unpacked([b""], "br")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_goes_off_in_pieces(encoding: str) -> None:
    bomb = gzip.compress(bytes(1 << 26)) if encoding == "gzip" else zstandard.compress(bytes(1 << 26))
    sizes = [len(piece) for piece in unpacked(iter([bomb]), encoding)]
    assert sum(sizes) == 1 << 26
    assert max(sizes) <= 1 << 24


def test_a_packed_recording_reads_plain(tmp_path: Path) -> None:
    packing = zlib.compressobj(wbits=31)
    with Recorder(tmp_path / "x.sfcap") as recorder:
        recorder.response(200, [("Content-Encoding", "gzip")])
        for frame in (b"data: 1\n\n", b"data: 2\n\n"):
            recorder.read(packing.compress(frame) + packing.flush(zlib.Z_SYNC_FLUSH))
        recorder.end("cut")
    reads = streamfold_reads(tmp_path / "x.sfcap")
    assert [next(reads), next(reads)] == [b"data: 1\n\n", b"data: 2\n\n"]
    with pytest.raises(ConnectionError):
        next(reads)


def streamfold_reads(path: Path) -> Iterator[bytes]:
    return read_recording(path).iter_bytes()


def test_base64_is_what_others_write() -> None:
    line = json.loads(written([Read(0, bytes(range(256)))]).split(b"\n")[1])
    assert base64.b64decode(line["base64"]) == bytes(range(256))
