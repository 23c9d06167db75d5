"""Every command reads recordings as it reads the bytes in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from streamfold.recording.exchange import Ending, Exchange, sessions_of, written
from streamfold.recording.sfcap import Head, Read, ResponseHead
from tests.cli.conftest import RECORDINGS, Run, Started
from tests.conftest import RECORDED

COMMANDS = (("fold",), ("fold", "--json"), ("events",), ("frames",), ("check",))
BODY = (RECORDINGS / "openai-chat-parallel-tools.sse").read_bytes()


def capture(body: bytes, how: Any = "eof", *, error: str | None = None, **head: Any) -> bytes:
    reads = [Read(1000 * at, body[at : at + 500]) for at in range(0, len(body), 500)]
    return written(Exchange(Head(**head), tuple(reads), Ending(9**9, how, error)))


@pytest.fixture(params=["x.sfcap", "x.sfcap.zst", "x.bin"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def put(place: Path, data: bytes) -> Path:
    place.write_bytes(zstandard.compress(data) if place.suffix == ".zst" else data)
    return place


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("recording", RECORDED[::4], ids=lambda path: path.name)
def test_a_recording_says_what_its_bytes_say(
    run: Run, tmp_path: Path, command: tuple[str, ...], recording: Path
) -> None:
    body = recording.read_bytes()
    plain = run(*command, recording)
    taken = run(*command, "-", stdin=capture(body))
    assert (taken.stdout, taken.stderr, taken.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_by_its_first_bytes_whatever_it_is_called(run: Run, place: Path, command: tuple[str, ...]) -> None:
    plain = run(*command, "-", stdin=BODY)
    for more in ((), ("--chunk", "1")):
        taken = run(*command, put(place, capture(BODY)), *more)
        assert (taken.stdout, taken.stderr, taken.returncode) == (plain.stdout, plain.stderr, plain.returncode)


def test_what_is_compressed_and_no_recording_is_what_it_was(run: Run, tmp_path: Path) -> None:
    done = run("fold", put(tmp_path / "x.zst", BODY))
    assert done.returncode == 1
    assert "compressed" in done.stderr


def test_the_head_names_the_provider_unless_somebody_does(run: Run) -> None:
    body = b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    told = capture(body, provider="xai")
    for provider, surface in ((None, "xai-chat"), ("openai-chat", "openai-chat")):
        more = () if provider is None else ("--provider", provider)
        assert json.loads(run("fold", "--json", "-", *more, stdin=told).stdout)["surface"] in (surface, "openai-chat")
    events = run("events", "-", stdin=capture(b'data: {"type":"x"}\n\n', provider="anthropic"))
    assert '"surface":"anthropic"' in events.stdout
    assert run("fold", "-", stdin=capture(body, provider="somebody")).returncode == 0


def test_the_status_of_a_refusal_is_known(run: Run) -> None:
    head = {"response": ResponseHead(529, (("Retry-After", "3"),))}
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    error = json.loads(run("fold", "--json", "-", stdin=capture(body, **head)).stdout)["error"]
    assert (error["status"], error["retry_after_ms"], error["retryable"]) == (529, 3000, True)
    assert '"status":529' in run("events", "-", stdin=capture(body, **head)).stdout


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_where_the_transport_failed_it_fails_again(run: Run, command: tuple[str, ...]) -> None:
    done = run(*command, "-", stdin=capture(BODY[:600], "cut", error="connection reset"))
    assert done.returncode == 1
    assert "connection reset" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    if command[0] == "events":
        last = json.loads(done.stdout.splitlines()[-1])
        assert (last["type"], last["kind"]) == ("error", "transport")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("last", [b"", b'{"t":9,"text":"hal'])
def test_of_a_recorder_that_died_what_it_wrote_is_read(run: Run, command: tuple[str, ...], last: bytes) -> None:
    data = b"".join(capture(BODY[:1000]).splitlines(keepends=True)[:-1]) + last
    plain = run(*command, "-", stdin=BODY[:1000])
    taken = run(*command, "-", stdin=data)
    assert (taken.stdout, taken.stderr, taken.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_damage_is_a_line_on_standard_error(run: Run, place: Path, command: tuple[str, ...]) -> None:
    lines = capture(BODY).splitlines(keepends=True)
    for data in (b"".join([*lines[:3], b"{]\n", *lines[3:]]), b'{"sfcap":7}\n', b'{"sfcap":[]}\n'):
        done = run(*command, put(place, data))
        assert done.returncode == 1
        assert "at byte" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_bytes_that_are_others_are_told(run: Run, place: Path, command: tuple[str, ...]) -> None:
    data = capture(BODY + b": a comment\n\n").replace(b"a comment", b"no remark")
    done = run(*command, put(place, data))
    assert done.stderr.splitlines()[-1] == (
        "streamfold: warning: these are not the bytes that were recorded: their hash is another"
    )


@pytest.mark.parametrize("command", COMMANDS[:3] + COMMANDS[4:], ids=" ".join)
def test_a_recorded_session_is_read_as_one(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    lines = [
        {"dir": "in", "frame": {"setupComplete": {}}},
        {"dir": "out", "frame": {"clientContent": {"turns": [], "turnComplete": True}}},
        {"dir": "in", "frame": {"serverContent": {"modelTurn": {"parts": [{"text": "Hello"}]}}}},
        {"dir": "in", "frame": {"serverContent": {"generationComplete": True}}},
        {"dir": "in", "frame": {"serverContent": {"turnComplete": True}}},
        {"dir": "close", "code": 1000, "reason": ""},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    [exchange] = sessions_of(text)
    plain = run(*command, "-", stdin=text)
    taken = run(*command, put(tmp_path / "x.sfcap", written(exchange)))
    if command[0] == "check":  # whose offsets are those of its lines
        assert [line.partition(":")[2] for line in taken.stdout.splitlines()] == [
            line.partition(":")[2] for line in plain.stdout.splitlines()
        ]
    else:
        assert taken.stdout == plain.stdout
        assert "Hello" in taken.stdout
    assert (taken.stderr, taken.returncode) == (plain.stderr, plain.returncode)


def test_a_recording_that_is_still_written_is_read_as_it_grows() -> None:
    head, first, second, *_ = capture(BODY).splitlines(keepends=True)
    with Started("events", "-") as command:
        command.feed(head + first)
        assert json.loads(command.line())["type"] == "start"
        command.feed(second)
        code, _, _ = command.end()
    assert code == 1
