"""``streamfold record``: what goes through it is unchanged and at once, and is in the recording however it ends."""

from __future__ import annotations

import http.server
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import streamfold
from streamfold.recording.files import Recording, read_recording
from tests.cli.conftest import COMMAND, ENVIRONMENT, RECORDINGS, Run, Started

BODY = (RECORDINGS / "anthropic-thinking-tool-use.sse").read_bytes()


def finished(path: Path) -> tuple[Recording, bytes]:
    """A recording, and the bytes in it."""
    with read_recording(path) as recording:
        return recording, b"".join(read.data for read in recording)


def script(text: str) -> list[str]:
    return ["--", sys.executable, "-c", f"import os, sys, time\nsys.stdout.reconfigure(line_buffering=True)\n{text}"]


@pytest.fixture(params=["x.sfcap", "x.sfcap.zst"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


def test_a_command(path: Path) -> None:
    bytes_ = bytes(range(256)) * 400
    text = "sys.stdout.buffer.write(bytes(range(256)) * 400); print('said', file=sys.stderr)"
    done = subprocess.run(
        [*COMMAND, "record", "-o", path, "--provider", "xai", *script(text)],
        env=ENVIRONMENT,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, bytes_, b"said\n")
    recording, data = finished(path)
    assert data == bytes_
    assert recording.intact
    assert recording.end is not None
    assert recording.end.end == "eof"
    assert recording.head.provider == "xai"
    assert recording.head.command is not None
    assert recording.head.command[1:] == tuple(script(text)[2:])


def test_a_pipe(run: Run, path: Path) -> None:
    done = run("record", "-o", path, "-", stdin=BODY)
    assert (done.returncode, done.stdout, done.stderr) == (0, BODY.decode(), "")
    assert finished(path)[1] == BODY
    assert streamfold.fold(read_recording(path)) == streamfold.fold(BODY)


def test_each_read_goes_through_at_once_with_its_time(path: Path) -> None:
    with Started("record", "-o", path, "-") as command:
        for piece in (b"data: 1\n", b"data: 2\n"):
            command.feed(piece)
            assert command.line() == piece
            time.sleep(0.05)
        assert command.end()[0] == 0
    with read_recording(path) as recording:
        first, second = recording
    assert second.t - first.t > 40_000_000
    assert recording.end is not None
    assert recording.end.t >= second.t


@pytest.mark.parametrize("redact", [True, False])
def test_secrets_of_the_command_line(run: Run, tmp_path: Path, redact: bool) -> None:
    command = ["-H", "Authorization: Bearer s3cret", "--", *script("")[1:], "-HAuthorization: Bearer s3cret"]
    done = run("record", "-o", tmp_path / "x", *(() if redact else ("--no-redact",)), *command[2:])
    assert done.returncode == 0
    assert (b"s3cret" not in (tmp_path / "x").read_bytes()) == redact


CODES = {"sys.exit(18)": 18, "os.kill(os.getpid(), 9)": 137, "os.kill(os.getpid(), 15)": 143}


@pytest.mark.parametrize(("text", "code"), CODES.items())
def test_the_exit_code_is_that_of_the_command(run: Run, path: Path, text: str, code: int) -> None:
    assert run("record", "-o", path, *script(f"print('a'); {text}")).returncode == code
    recording, data = finished(path)
    assert data == b"a\n"
    assert recording.end is not None
    assert recording.end.end == "cut"
    assert str(code) in (recording.end.error or "")
    assert run("fold", path).returncode == 1


def test_wrong_usage(run: Run, tmp_path: Path) -> None:
    for arguments in (
        ("-o", tmp_path / "x"),
        ("-", "x"),
        ("-o", "-", "-"),
        ("-o", tmp_path / "x", "--", "no-such-command-here"),
        ("-o", tmp_path / "x", "--provider", "nobody", "-"),
    ):
        done = run("record", *arguments)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert not (tmp_path / "x").exists()
    done = run("record", "-o", tmp_path / "no" / "x", "-")
    assert (done.returncode, done.stderr) == (1, f"streamfold: {tmp_path / 'no' / 'x'}: No such file or directory\n")


@pytest.mark.parametrize("ignores", [False, True])
def test_ctrl_c_ends_both_and_the_recording(path: Path, ignores: bool) -> None:
    deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" if ignores else ""
    with Started("record", "-o", path, *script(f"{deaf}print(os.getpid())\ntime.sleep(60)")) as command:
        child = int(command.line())
        command.interrupt()
        begun = time.monotonic()
        if ignores:  # and whoever sees that nothing happens presses it again
            time.sleep(0.3)
            command.interrupt()
        code, out, said = command.end()
    assert (code, out) == (130, b"")
    assert b"Traceback" not in said.replace(b"Traceback (most recent call last)", b"", 1)  # the child's own
    assert time.monotonic() - begun < 10
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    recording, _ = finished(path)
    assert recording.intact
    assert recording.end is not None
    assert recording.end.end == "cancel"


def test_ctrl_c_while_much_goes_through(path: Path) -> None:
    flood = "while True: sys.stdout.buffer.write(b'x' * 999)"
    process = subprocess.Popen(
        [*COMMAND, "record", "-o", str(path), *script(flood)],
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not path.exists() or path.stat().st_size < 10_000:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    recording, _ = finished(path)
    assert recording.intact
    assert recording.end is not None
    assert recording.end.end == "cancel"


def test_a_reader_that_leaves_ends_it_quietly(path: Path) -> None:
    with Started("record", "-o", path, *script("while True: print('x' * 999)")) as command:
        assert command.line()
        command.stop_reading()
        assert command.process.wait(30) == 0
    recording, data = finished(path)
    assert recording.intact
    assert data
    assert recording.end is not None
    assert recording.end.end == "cancel"


def test_killed_it_leaves_what_went_through(path: Path) -> None:
    with Started("record", "-o", path, "-") as command:
        command.feed(b"data: 1\n")
        assert command.line() == b"data: 1\n"
        command.process.kill()
        command.process.wait()
    recording, data = finished(path)
    assert data == b"data: 1\n"
    assert recording.end is None


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(run: Run, path: Path) -> None:
    class Provider(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
            """Be quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1?key=s3cret"
        done = run("record", "-o", path, "curl", "-sN", "-H", "x-api-key: s3cret", "-d", "{}", url)  # -- is not needed
        server.shutdown()
    assert (done.returncode, done.stdout) == (0, BODY.decode())
    recording, data = finished(path)
    assert data == BODY
    assert recording.head.command == (
        *("curl", "-sN", "-H", "x-api-key: REDACTED", "-d", "{}", url.replace("s3cret", "REDACTED")),
    )
    assert recording.head.started is not None
