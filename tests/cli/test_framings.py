"""Every framing on the command line: told by the first byte, or named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.wires_more import MESSAGE_START, OLLAMA, block_delta, block_stop, converse_bytes, message_stop, named

BINARY = converse_bytes([MESSAGE_START, block_delta(0, text="Hello"), block_stop(0), message_stop()])
LINES = b"\r\n".join(json.dumps(payload).encode() for payload in OLLAMA["text"])


@pytest.mark.parametrize("framing", [[], ["--framing", "eventstream"]], ids=["told", "named"])
@pytest.mark.parametrize("chunk", [[], ["--chunk", "1"]], ids=["whole", "cut"])
def test_binary_frames(run: Run, tmp_path: Path, framing: list[str], chunk: list[str]) -> None:
    (tmp_path / "body").write_bytes(BINARY)
    answer = json.loads(run("fold", "--json", *framing, *chunk, tmp_path / "body").stdout)
    assert (answer["text"], answer["surface"], answer["outcome"]) == ("Hello", "bedrock-converse", "complete")
    frames = [json.loads(line) for line in run("frames", *framing, *chunk, tmp_path / "body").stdout.splitlines()]
    assert [list(frame) for frame in frames] == [["event", "data"]] * 4
    assert [frame["event"] for frame in frames] == [
        *("messageStart", "contentBlockDelta", "contentBlockStop", "messageStop")
    ]


def test_a_failure_is_one_line(run: Run) -> None:
    done = run("events", "-", stdin=BINARY[:-40])
    assert done.returncode == 1
    assert "the input ended inside a message" in done.stderr
    done = run("events", "-", stdin=named("throttlingException", b'{"message":"slow"}', "exception"))
    assert (done.returncode, "throttlingException: slow" in done.stderr) == (1, True)


@pytest.mark.parametrize("framing", [[], ["--framing", "jsonl"]], ids=["told", "named"])
def test_lines(run: Run, framing: list[str]) -> None:
    answer = json.loads(run("fold", "--json", *framing, "-", stdin=LINES).stdout)
    assert (answer["text"], answer["surface"], answer["outcome"]) == ("Hello", "ollama", "complete")
    frames = run("frames", *framing, "-", stdin=LINES).stdout.splitlines()
    assert [json.loads(json.loads(line)["data"]) for line in frames] == OLLAMA["text"]
