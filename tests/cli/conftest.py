"""Running the command line as a person does: in a process of its own, on files, pipes and terminals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.cli.forks import Forks
from tests.conftest import ROOT

RECORDINGS = ROOT / "examples" / "recordings"
COMMAND = [sys.executable, "-m", "streamfold"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "", "TERM": "xterm", "COLUMNS": ""}

Run: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    forks = Forks(ENVIRONMENT)
    yield forks
    forks.close()


@pytest.fixture
def run(forks: Forks) -> Run:
    """Run a command to its end, in a fork of a process that has loaded it; ``stdin`` is what it is piped."""

    def to_the_end(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        return forks.run([*map(str, arguments)], stdin)

    return to_the_end


@pytest.fixture
def run_anew() -> Run:
    """The same in an interpreter of its own."""

    def to_the_end(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, env=ENVIRONMENT, check=False, timeout=60
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return to_the_end


def hear_ctrl_c() -> None:
    """Whoever runs the tests in the background ignores Ctrl-C, and hands that on to all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Started:
    """A command that is being fed and read; leaving the ``with`` ends it."""

    def __init__(self, *arguments: str | Path, **pipes: Any) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], env=ENVIRONMENT, preexec_fn=hear_ctrl_c, **pipes
        )

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *fault: object) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()

    def feed(self, data: bytes) -> None:
        """Pipe it some bytes, at once."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> bytes:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line: bytes = self.process.stdout.readline()
        return line

    def stop_reading(self) -> None:
        """Close the pipe that it prints into."""
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.stdout = None

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def end(self, rest: bytes = b"") -> tuple[int, bytes, bytes]:
        """Pipe it the rest and close; its exit code, and what it still prints and says."""
        out, said = self.process.communicate(rest, timeout=60)
        return self.process.returncode, out, said


def chat(*deltas: dict[str, Any], finish: str | None = "stop", done: bool = True, choice: int = 0) -> bytes:
    """A Chat Completions stream of these deltas."""
    chunks: list[dict[str, Any]] = [{"index": choice, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks += [{"index": choice, "delta": {}, "finish_reason": finish}] if finish else []
    payloads = [json.dumps({"id": "c1", "model": "m", "choices": [chunk]}) for chunk in chunks]
    return b"".join(f"data: {payload}\n\n".encode() for payload in [*payloads, *(["[DONE]"] if done else [])])


def text(*pieces: str) -> bytes:
    """A whole answer of text."""
    return chat(*({"content": piece} for piece in pieces))
