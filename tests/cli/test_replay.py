"""``streamfold replay`` as a person runs it, and the fixture in a pytest of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2

from tests.cli.conftest import ENVIRONMENT, RECORDINGS, Run, Started
from tests.conftest import ROOT


def lines_until(started: Started, last: str) -> list[str]:
    lines: list[str] = []
    out = started.process.stdout
    assert out is not None
    while not (lines and lines[-1].startswith(last)):
        lines.append(out.readline().decode().rstrip())
        assert lines[-1], lines
    return lines


def test_it_says_where_serves_and_ends_clean_on_ctrl_c() -> None:
    with Started(
        "replay", RECORDINGS, "--fault", "stall=event:2", "--fault", "first-byte=0", "--chunk", "100"
    ) as started:
        lines = lines_until(started, "# openai-responses")
        said = dict(line.split("=", 1) for line in lines if "=" in line)
        url = said["ANTHROPIC_BASE_URL"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
        assert (said["OPENAI_BASE_URL"], said["GOOGLE_GEMINI_BASE_URL"]) == (f"{url}/v1", url)
        assert "# cohere: cohere-tool-call" in lines
        asked = {"url": f"{url}/v1/messages", "json": {"stream": True}}
        with httpx2.Client() as client, client.stream("POST", **asked) as response:  # type: ignore[arg-type]
            assert len(next(response.iter_raw())) == 100
            started.process.send_signal(signal.SIGINT)
            assert started.process.wait(5) == 130
        assert started.process.stderr is not None
        assert started.process.stderr.read() == b""


def test_wrong_usage_is_a_line(run: Run, tmp_path: Path) -> None:
    for arguments, words in (
        (["replay", tmp_path], "there is no recording"),
        (["replay", RECORDINGS, "--fault", "fire=1"], "no fault"),
        (["replay", RECORDINGS, "--pace", "slow"], "pace"),
        (["replay", RECORDINGS, "--pace", "0"], "pace"),
        (["replay", tmp_path / "none"], "does not exist"),
        (["replay"], "Missing argument"),
    ):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1


FIXTURE = f"""
import threading

import httpx2

def test_one(streamfold_replay):
    server = streamfold_replay({str(RECORDINGS)!r}, fault="end=10")
    response = httpx2.post(server.openai_url + "/responses", json={{"stream": True}})
    assert len(response.content) == 10

def test_two():
    assert threading.active_count() == 1
"""


def test_the_fixture_ends_its_servers_with_the_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["streamfold.testing"]\nimport streamfold.testing\n')
    (tmp_path / "test_it.py").write_text(FIXTURE)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", tmp_path]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=ENVIRONMENT, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_server_alone_loads_no_pytest() -> None:
    code = "import sys, streamfold.testing; assert streamfold.testing.ReplayServer; assert 'pytest' not in sys.modules"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
