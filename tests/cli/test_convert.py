"""``streamfold convert``: recordings of other tools in, recordings for other tools out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamfold.errors import Malformed
from streamfold.recording import _har, _vcr
from streamfold.recording.exchange import Ending, Exchange, session_lines, sessions_of, written
from streamfold.recording.files import read_recording
from streamfold.recording.sfcap import Head, Read, RequestHead, ResponseHead
from tests.cli.conftest import RECORDINGS, Run

DATA = Path(__file__).parent.parent / "data"


def of(path: Path) -> tuple[Head, list[Read], Any]:
    with read_recording(path) as recording:
        reads = list(recording)
    return recording.head, reads, recording.end


def test_a_cassette_goes_into_a_folder(run: Run, tmp_path: Path) -> None:
    done = run("convert", DATA / "cassette.yaml", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    paths = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in paths] == [f"000{number}.sfcap" for number in range(1, 6)]
    assert not any(b"s3cret" in path.read_bytes() for path in paths)
    heads, reads, ends = zip(*map(of, paths), strict=True)
    assert heads[0].request == RequestHead(
        "POST",
        "https://api.anthropic.com/v1/messages?api-key=REDACTED",
        (("Accept", "application/json"), ("X-Api-Key", "REDACTED")),
        '{"model": "claude", "stream": true}',
    )
    assert heads[0].response is not None
    assert [name for name, _ in heads[0].response.headers] == ["Content-Type", "Set-Cookie", "Set-Cookie"]
    assert [read.data for each in reads for read in each] == [
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        b"data: {}\n\n",  # unpacked, and the header gone
        b"data: 1\n\n",  # which it was: the header lied
        '{"b":["é"]}'.encode(),
        b"data: 1\n\n",
    ]
    assert [head.response and head.response.status for head in heads] == [200, 529, 200, 200, 200]
    assert [head.response and head.response.header("content-encoding") for head in heads] == [None] * 5
    assert [head.request and head.request.body for head in heads][1:] == [None, None, '{"a":1}', None]
    assert {end.end for end in ends} == {"eof"}


def test_a_har_goes_into_a_folder(run: Run, tmp_path: Path) -> None:
    assert run("convert", "--provider", "openai-chat", DATA / "exchanges.har", tmp_path).returncode == 0
    chat, broken, session, nowhere = map(of, sorted(tmp_path.glob("*.sfcap")))
    head, reads, end = chat
    assert head == Head(
        RequestHead("POST", "https://h/v1/chat/completions?key=REDACTED", (("authorization", "REDACTED"),), "{}"),
        ResponseHead(200, (("content-type", "text/event-stream"),), "http/2.0", 110_500_000),
        "openai-chat",
        "2026-11-30T10:00:00.000Z",
    )
    assert reads == [Read(110_500_000, "data: é\n\n".encode())]
    assert (end.t, end.end) == (130_500_000, "eof")
    assert broken[1] == [Read(4_000_000, b"\xff\0")]
    assert (broken[2].end, broken[2].error) == ("cut", "net::ERR_FAILED")
    assert session[1] == [Read(0, b'{"setup":{}}', "text", True), Read(500_000_000, b"\xff\0", "binary")]
    assert (nowhere[0].response, nowhere[1], nowhere[2].end) == (None, [], "cut")


an_exchange = st.builds(
    lambda url, status, bodies, body: Exchange(
        Head(
            RequestHead("POST", url, (("a", "b"), ("a", "c")), body),
            ResponseHead(status, (("x", "y"),), "HTTP/1.1", 7_000_000),
            None,
            "2026-11-30T00:00:00Z",
        ),
        tuple(Read(7_000_000 + k, data) for k, data in enumerate(bodies)),
        Ending(9_000_000, "eof"),
    ),
    st.sampled_from(["https://h/?x=1", "http://h"]),
    st.integers(200, 599),
    st.lists(st.binary(min_size=1) | st.text(min_size=1).map(str.encode)),
    st.none() | st.text(min_size=1),
)


@given(st.lists(an_exchange))
def test_har_and_back(exchanges: list[Exchange]) -> None:
    assert _har.exchanges_in(_har.har_of(exchanges, "1")) == exchanges


@given(st.lists(an_exchange))
def test_a_cassette_and_back_loses_the_times_alone(exchanges: list[Exchange]) -> None:
    back = _vcr.exchanges_in(_vcr.cassette_of(exchanges))
    assert [exchange.head.request for exchange in back] == [exchange.head.request for exchange in exchanges]
    bodies = [b"".join(read.data for read in exchange.reads) for exchange in exchanges]
    assert [b"".join(read.data for read in exchange.reads) for exchange in back] == bodies
    heads = [(each.head.response.status, each.head.response.headers) for each in exchanges if each.head.response]
    assert [(each.head.response.status, each.head.response.headers) for each in back if each.head.response] == heads


def test_a_folder_goes_into_one_file_and_back(run: Run, tmp_path: Path) -> None:
    run("convert", DATA / "cassette.yaml", tmp_path / "a")
    for name in ("all.har", "all.yaml"):
        assert run("convert", tmp_path / "a", tmp_path / name).returncode == 0
        assert run("convert", tmp_path / name, tmp_path / "one.sfcap").returncode == 2  # five, and no folder
        assert run("convert", tmp_path / name, f"{tmp_path}/{name}-back/").returncode == 0
        before, after = ([of(path) for path in sorted((tmp_path / part).iterdir())] for part in ("a", f"{name}-back"))
        assert [[read.data for read in reads] for _, reads, _ in before] == [
            [read.data for read in reads] for _, reads, _ in after
        ]
    assert json.loads((tmp_path / "all.har").read_bytes())["log"]["version"] == "1.2"
    cassette = yaml.safe_load((tmp_path / "all.yaml").read_bytes())
    assert (cassette["version"], len(cassette["interactions"])) == (1, 5)


@pytest.mark.parametrize("name", ["anthropic-thinking-tool-use.sse", "bedrock-converse.bin", "ollama-chat.jsonl"])
@pytest.mark.parametrize("through", ["x.sfcap", "x.sfcap.zst"])
def test_a_body_goes_in_and_out(run: Run, tmp_path: Path, name: str, through: str) -> None:
    assert run("convert", RECORDINGS / name, tmp_path / through).returncode == 0
    out = tmp_path / f"out{Path(name).suffix}"
    assert run("convert", tmp_path / through, out).returncode == 0
    assert out.read_bytes() == (RECORDINGS / name).read_bytes()


def test_standard_input_and_output(run_anew: Run) -> None:
    body = (RECORDINGS / "gemini-blocked.sse").read_bytes()
    recorded = run_anew("convert", "-", "-", stdin=body)
    assert (recorded.returncode, recorded.stderr) == (0, "")
    assert recorded.stdout.startswith('{"sfcap":1')
    again = run_anew("convert", "-", "-", "--to", "raw", stdin=recorded.stdout.encode())
    assert (again.returncode, again.stdout.encode()) == (0, body)


def test_one_of_many(run: Run, tmp_path: Path) -> None:
    assert run("convert", DATA / "cassette.yaml", tmp_path / "x.sse", "--index", "1").returncode == 0
    assert (tmp_path / "x.sse").read_bytes() == b"data: {}\n\n"
    assert run("convert", DATA / "cassette.yaml", tmp_path / "x.sse", "--index", "5").returncode == 2


def test_secrets_stay_where_they_are_asked_to(run: Run, tmp_path: Path) -> None:
    assert run("convert", DATA / "cassette.yaml", tmp_path / "x.sfcap", "--index", "0", "--no-redact").returncode == 0
    assert (tmp_path / "x.sfcap").read_bytes().count(b"s3cret") == 4
    assert run("convert", tmp_path / "x.sfcap", tmp_path / "x.har").returncode == 0
    assert b"s3cret" not in (tmp_path / "x.har").read_bytes()


def test_why_it_broke_off_is_told_without_secrets(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.har").write_bytes(
        b'{"log":{"entries":[{"request":{"method":"GET","url":"u","headers":[{"name":"x-api-key","value":"s3cret"}]},'
        b'"response":{"status":200,"_error":"no way to https://h/?key=s3cret with s3cret"}}]}}'
    )
    assert run("convert", tmp_path / "x.har", tmp_path / "y.har").returncode == 0
    assert b"s3cret" not in (tmp_path / "y.har").read_bytes()


def test_times_beyond_all_reckoning_are_the_longest_that_there_are(run: Run, tmp_path: Path) -> None:
    message = b'{"type":"receive","time":%b,"opcode":1,"data":"{}"}'
    messages = b'"_webSocketMessages":[%b,%b]' % (message % b"0", message % b"1e308")
    for k, members in enumerate((b'"timings":{"wait":1e308}', b'"timings":{"wait":1%b}' % (b"0" * 300), messages)):
        entry = b'{"request":{"method":"GET","url":"u"},"response":{"status":200,"content":{"text":"a"}},%b}' % members
        (tmp_path / f"{k}.har").write_bytes(b'{"log":{"entries":[%b]}}' % entry)
        assert run("convert", tmp_path / f"{k}.har", tmp_path / f"{k}.sfcap").returncode == 0
        with read_recording(tmp_path / f"{k}.sfcap") as recording:
            assert list(recording)[-1].t == 2**63 - 1


SESSION = (
    b'{"dir":"in","t":1,"frame":{"a": 1}}\n'
    b'{"dir":"out","t":2,"frame":"no JSON"}\n'
    b'{"dir":"in","t":3,"op":"binary","frame":"/wA="}\n'
    b'{"dir":"close","t":4,"code":1000,"reason":"bye"}\n'
)


def test_a_session_goes_in_and_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(SESSION)
    assert run("convert", tmp_path / "x.jsonl", tmp_path / "x.sfcap").returncode == 0
    _, reads, end = of(tmp_path / "x.sfcap")
    assert reads == [
        Read(1, b'{"a": 1}', "text"),
        Read(2, b"no JSON", "text", True),
        Read(3, b"\xff\0", "binary"),
    ]
    assert (end.code, end.reason) == (1000, "bye")
    assert run("convert", tmp_path / "x.sfcap", tmp_path / "y.jsonl").returncode == 0
    assert (tmp_path / "y.jsonl").read_bytes() == SESSION


messages = st.lists(
    st.builds(Read, st.integers(0, 99), st.text().map(str.encode), st.just("text"), st.booleans())
    | st.builds(Read, st.integers(0, 99), st.binary(), st.just("binary"), st.booleans()),
    min_size=1,
)


@given(messages)
def test_every_message_has_a_line(reads: list[Read]) -> None:
    lines = b"".join(session_lines(reads, Ending(99, "eof", None, 1000, "")))
    assert lines.count(b"\n") == len(reads) + 1
    [back] = sessions_of(lines)
    assert [(read.op, read.sent, read.t) for read in back.reads] == [(read.op, read.sent, read.t) for read in reads]
    for read, again in zip(reads, back.reads, strict=True):
        assert again.data.split() == read.data.split() or again.data == read.data


WRONG: dict[str, tuple[str, bytes]] = {
    "no YAML": ("x.yaml", b"a: [1"),
    "no cassette": ("x.yaml", b"a: 1"),
    "an object of Python": ("x.yaml", b"!!python/object:os.system {}"),
    "no status": ("x.yaml", b"interactions: [{request: {uri: x}, response: {}}]"),
    "no base64 in it": (
        "x.yaml",
        b"interactions: [{request: {uri: x}, response: {status: {code: 1}, body: {base64_string: a}}}]",
    ),
    "deep YAML": ("x.yaml", b"[" * 3000),
    "no word of its tag": ("x.yaml", b"!!bool perhaps"),
    "no number of its tag": ("x.yaml", b'!!int ""'),
    "no time of its tag": ("x.yaml", b"!!timestamp noon"),
    "a body that JSON has not": (
        "x.yaml",
        b"interactions: [{request: {uri: x}, response: {status: {code: 1}, parsed_body: {~: 1}}}]",
    ),
    "something that holds itself": (
        "x.yaml",
        b"interactions: [{request: {uri: x}, response: {status: {code: 1}, parsed_body: &a [*a]}}]",
    ),
    "aliases of aliases": (
        "x.yaml",
        b"0: &b0 [x]\n%b"
        % b"".join(b"%d: &b%d [*b%d%b]\n" % (k, k, k - 1, b", *b%d" % (k - 1) * 9) for k in range(1, 9))
        + b"interactions: [{request: {uri: x}, response: {status: {code: 1}, parsed_body: *b8}}]",
    ),
    "members of members": (
        "x.yaml",
        b"0: &b0 {a: 1}\n%b"
        % b"".join(b"%d: &b%d {<<: [*b%d%b]}\n" % (k, k, k - 1, b", *b%d" % (k - 1) * 9) for k in range(1, 9))
        + b"interactions: []",
    ),
    "no JSON": ("x.har", b"{"),
    "no HAR": ("x.har", b"{}"),
    "no base64": (
        "x.har",
        b'{"log":{"entries":[{"request":{"method":"GET","url":"u"},"response":{"status":200,"content":'
        b'{"text":"a","encoding":"base64"}}}]}}',
    ),
    "no recording": ("x.sfcap", b"data: 1\n\n"),
    "a session before its beginning": ("x.jsonl", b'{"dir":"in","t":-1,"frame":1}\n'),
    "a session with damage": ("x.jsonl", b'{"dir":"in","frame":1}\n{"dir":"on"}\n'),
}


@pytest.mark.parametrize(("name", "data"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_read_is_a_line_on_standard_error(run: Run, tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    done = run("convert", tmp_path / name, tmp_path / "out.sfcap")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out.sfcap").exists()


def test_what_does_not_fit(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x.sfcap").write_bytes(written(Exchange(Head(), (Read(0, b"a"),), None)))
    (tmp_path / "empty").mkdir()
    for source, target in (("x.sfcap", "x.yaml"), ("x.sfcap", "x.har"), ("empty", "x.har"), ("none", "x.har")):
        assert run("convert", tmp_path / source, tmp_path / target).returncode == 2
        assert not (tmp_path / target).exists()


@given(st.binary() | st.text().map(str.encode))
def test_no_other_error_gets_out(data: bytes) -> None:
    for read in (_har.exchanges_in, _vcr.exchanges_in):
        with pytest.raises(Malformed):
            read(data)
