"""``streamfold check``: what it prints, and how it ends."""

from __future__ import annotations

import json

import pytest

from streamfold import check
from tests.cli.conftest import RECORDINGS, Run, Started, chat, text

CUT = RECORDINGS / "openai-responses-cut.sse"
WHOLE = RECORDINGS / "openai-responses-function-call.sse"
FAILED = RECORDINGS / "anthropic-overloaded.sse"


def test_one_finding_a_line(run: Run) -> None:
    done = run("check", CUT)
    found = list(check(CUT.read_bytes()))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [str(finding) for finding in found]
    assert done.stderr == "streamfold: 1 warning, 2 errors\n"


def test_one_object_a_line(run: Run) -> None:
    done = run("check", "--json", CUT)
    found = list(check(CUT.read_bytes()))
    assert done.returncode == 1
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {name: getattr(finding, name) for name in ("code", "severity", "offset", "message", "breaks")}
        for finding in found
    ]


def test_nothing_wrong_is_nothing_said(run: Run) -> None:
    done = run("check", WHOLE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_notes_alone_are_no_fault(run: Run) -> None:
    done = run("check", FAILED)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[1:3] for line in done.stdout.splitlines()] == [["note", "in_band_error:"]]


@pytest.mark.parametrize("chunk", ["1", "7"])
def test_cuts_change_nothing(run: Run, chunk: str) -> None:
    assert run("check", "--chunk", chunk, CUT).stdout == run("check", CUT).stdout


def test_the_provider_decides_whose_rules_hold(run: Run) -> None:
    wire = text("hello")
    assert run("check", "--provider", "openai-chat", "-", stdin=wire).returncode == 0
    done = run("check", "--provider", "anthropic", "-", stdin=wire)
    assert done.returncode == 1
    assert "they look like openai-chat's" in done.stdout


def test_findings_come_while_the_pipe_is_open() -> None:
    with Started("check", "--json", "--provider", "openai-chat", "-") as command:
        command.feed(b"data: 7\n\n")
        assert json.loads(command.line())["code"] == "not_an_object"
        code, rest, said = command.end(chat({"content": "hi"}))
    assert (code, rest.count(b"\n") > 0, said) == (1, True, b"streamfold: 1 warning, 1 note\n")


def test_what_is_said_of_a_payload_cannot_touch_a_terminal(run: Run) -> None:
    done = run("check", "-", stdin=b'data: "\x1b[31m\\u001b[31m"\n\n' + text("hello"))
    assert "not_an_object" in done.stdout
    assert "\x1b" not in done.stdout


def test_no_such_file(run: Run) -> None:
    done = run("check", "nowhere.sse")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


SESSION = (
    b'{"dir":"out","frame":{"setup":{"model":"m"}}}\n'
    b'{"dir":"in","frame":{"setupComplete":{}}}\n'
    b'{"dir":"in","frame":{"setupComplete":{}}}\n'
)


@pytest.mark.parametrize("options", [[], ["--provider", "gemini-live"], ["--framing", "messages", "--chunk", "1"]])
def test_a_recorded_session_is_told_by_its_lines(run: Run, options: list[str]) -> None:
    done = run("check", "--json", *options, "-", stdin=SESSION)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(finding["code"], finding["offset"]) for finding in found] == [("restarted", SESSION.rindex(b'{"dir"'))]
    assert (done.returncode, done.stderr) == (1, "streamfold: 1 warning\n")


def test_a_session_that_nobody_can_tell_needs_its_provider(run: Run) -> None:
    done = run("check", "-", stdin=b'{"dir":"in","frame":{"a":1}}\n')
    assert (done.returncode, done.stdout) == (2, "")
    assert "name the provider" in done.stderr


def test_messages_a_line_are_held_to_the_rules_of_their_session(run: Run) -> None:
    messages = b'{"setupComplete":{}}\n{"setupComplete":{}}\n'
    done = run("check", "--provider", "gemini-live", "-", stdin=messages)
    assert [row.split(":")[:2] for row in done.stdout.splitlines()] == [["21", " warning restarted"]]


def test_binary_frames_are_read_to_their_checksums(run: Run) -> None:
    wire = (RECORDINGS / "bedrock-converse.bin").read_bytes()
    assert run("check", "-", stdin=wire).returncode == 0
    done = run("check", "--json", "-", stdin=wire[:-1] + b"\0")
    assert [json.loads(row)["code"] for row in done.stdout.splitlines()][-1] == "bad_checksum"
