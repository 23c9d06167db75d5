"""The command line off a terminal: what it prints, how it ends."""

from __future__ import annotations

import fcntl
import json
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import click
import pytest

import streamfold
from streamfold.cli.commands import COMMANDS as ALL
from streamfold.cli.commands import main
from streamfold.views.lines import plain
from streamfold.views.terminal import draw, error_line
from tests.cli.conftest import COMMAND, ENVIRONMENT, RECORDINGS, Run, Started, chat, text
from tests.conftest import RECORDED

WHOLE = RECORDINGS / "openai-responses-function-call.sse"
FAILED = RECORDINGS / "anthropic-overloaded.sse"
CUT = RECORDINGS / "openai-responses-cut.sse"
COMMANDS = ("fold", "events", "frames")

by_name = pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)


# -- what is printed --------------------------------------------------------------------------------------------------


@by_name
def test_fold_prints_the_lines_of_the_drawing(run: Run, recording: Path) -> None:
    answer = streamfold.fold(recording.read_bytes())
    assert run("fold", recording).stdout.splitlines() == [plain(line) for line in draw(answer, faults=False)]


@by_name
def test_fold_ends_with_the_outcome_and_the_usage(run: Run, recording: Path) -> None:
    answer = streamfold.fold(recording.read_bytes())
    last = run("fold", recording).stdout.splitlines()[-1]
    assert last.startswith(answer.outcome)
    assert f"{answer.usage.total_tokens:,} tokens" in last if answer.usage else last.endswith("no usage")


@by_name
def test_fold_json_is_the_snapshot(run: Run, recording: Path) -> None:
    answer = streamfold.fold(recording.read_bytes())
    assert run("fold", "--json", recording).stdout == answer.to_json() + "\n"


FOLDED: dict[str, Any] = {
    "id": (str, type(None)),  # Bedrock and Ollama say none
    "model": (str, type(None)),
    "surface": str,
    "outcome": str,
    "stop": dict,
    "text": str,
    "reasoning": str,
    "blocks": list,
    "tool_calls": list,
    "withheld_calls": list,
    "usage": (dict, type(None)),
    "error": (dict, type(None)),
    "warnings": list,
}


@by_name
def test_fold_json_has_the_promised_members(run: Run, recording: Path) -> None:
    folded = json.loads(run("fold", "--json", recording).stdout)
    assert list(folded) == list(FOLDED)
    assert [name for name, kind in FOLDED.items() if not isinstance(folded[name], kind)] == []
    assert list(folded["stop"]) == ["reason", "raw", "stop_sequence"]
    assert all(
        list(call)[:3] == ["id", "name", "arguments"] for call in folded["tool_calls"] + folded["withheld_calls"]
    )


def test_fold_json_of_several_choices(run: Run) -> None:
    body = chat({"content": "first"}, done=False) + chat({"content": "second"}, choice=1)
    folded = json.loads(run("fold", "--json", "-", stdin=body).stdout)
    assert folded["text"] == "first"
    assert [(choice["index"], choice["text"]) for choice in folded["choices"]] == [(0, "first"), (1, "second")]


def test_fold_hands_out_only_calls_that_are_whole(run: Run) -> None:
    folded = json.loads(run("fold", "--json", CUT).stdout)
    assert [call["name"] for call in folded["tool_calls"]] == ["read_file"]
    assert [(call["name"], call["state"]) for call in folded["withheld_calls"]] == [("write_file", "cut")]


@by_name
@pytest.mark.parametrize("raw", ["all", "none"])
def test_events_prints_each_event_as_a_line(run: Run, recording: Path, raw: Any) -> None:
    with streamfold.iter_unified(recording.read_bytes(), raw=raw) as stream:
        wanted = [streamfold.encode_event(event).decode() for event in stream]
    assert run("events", "--raw", raw, recording).stdout == "".join(f"{line}\n" for line in wanted)


FRAMED: dict[str, tuple[Any, tuple[str, ...]]] = {
    ".sse": ("sse", ("event", "data", "id", "retry")),
    ".json": ("json_array", ("data",)),
    ".jsonl": ("jsonl", ("data",)),
    ".bin": ("eventstream", ("event", "data")),
}


@by_name
def test_frames_prints_each_frame_as_a_line(run: Run, recording: Path) -> None:
    framing, members = FRAMED[recording.suffix]
    with streamfold.parse_event_stream(recording.read_bytes(), framing=framing) as frames:
        wanted = [{name: getattr(frame, name) for name in members} for frame in frames]
    assert [json.loads(line) for line in run("frames", recording).stdout.splitlines()] == wanted


def test_frames_of_an_array_are_its_items(run: Run) -> None:
    done = run("frames", "-", stdin=b' [{"a": 1},\n{"b":"\xc3\xa9"}]')
    assert done.stdout == '{"data":"{\\"a\\": 1}"}\n{"data":"{\\"b\\":\\"é\\"}"}\n'
    assert run("frames", "--framing", "sse", "-", stdin=b"[1]").stdout == ""


@by_name
@pytest.mark.parametrize("command", [["fold"], ["fold", "--json"], ["events"], ["frames"]], ids=" ".join)
def test_cuts_change_nothing(run: Run, recording: Path, command: list[str]) -> None:
    whole = run(*command, recording)
    for size in ("1", "7"):
        cut = run(*command, "--chunk", size, recording)
        assert (cut.stdout, cut.stderr, cut.returncode) == (whole.stdout, whole.stderr, whole.returncode)


def test_a_stream_may_come_from_standard_input(run: Run) -> None:
    for command in COMMANDS:
        assert run(command, "-", stdin=WHOLE.read_bytes()).stdout == run(command, WHOLE).stdout


def test_think_tags(run: Run) -> None:
    body = text("<think>hmm</think>", "yes")
    assert json.loads(run("fold", "--json", "-", stdin=body).stdout)["reasoning"] == ""
    assert json.loads(run("fold", "--json", "--think-tags", "-", stdin=body).stdout)["reasoning"] == "hmm"


def test_the_provider_may_be_named(run: Run) -> None:
    done = run("events", "--provider", "anthropic", "-", stdin=b"data: {}\n\n")
    assert json.loads(done.stdout.splitlines()[0])["surface"] == "anthropic"


# -- how it ends ------------------------------------------------------------------------------------------------------

ENDS = {
    "complete": (["fold", WHOLE], 0, ""),
    "complete, as JSON": (["fold", "--json", WHOLE], 0, ""),
    "complete, events": (["events", WHOLE], 0, ""),
    "failed": (["fold", FAILED], 1, "provider overloaded_error: Overloaded"),
    "failed, as JSON": (["fold", "--json", FAILED], 1, "provider overloaded_error: Overloaded"),
    "failed, events": (["events", FAILED], 1, "provider overloaded_error: Overloaded"),
    "failed, whose frames are whole": (["frames", FAILED], 0, ""),
    "truncated": (["fold", CUT], 1, "truncated: "),
    "truncated, events": (["events", CUT], 1, "truncated: "),
    "a limit": (["fold", "--max-frame-bytes", "100", WHOLE], 1, "limit frame: "),
    "a limit, frames": (["frames", "--max-frame-bytes", "100", WHOLE], 1, "more than the limit of 100 bytes"),
    "no limit": (["fold", "--max-frame-bytes", "0", WHOLE], 0, ""),
    "no such file": (["fold", "no-such-file"], 2, "No such file"),
    "a folder": (["events", RECORDINGS], 2, "directory"),
    "no file": (["frames"], 2, "Missing argument 'FILE'"),
    "no such provider": (["fold", "--provider", "nobody", WHOLE], 2, "'nobody'"),
    "no such framing": (["events", "--framing", "smoke", WHOLE], 2, "'smoke'"),
    "no reads of nothing": (["fold", "--chunk", "0", WHOLE], 2, "--chunk"),
    "no such option": (["fold", "--colour", WHOLE], 2, "--colour"),
    "no such command": (["unfold"], 2, "'unfold'"),
}


@pytest.mark.parametrize(("command", "code", "fault"), ENDS.values(), ids=ENDS.keys())
def test_exit_codes_and_faults(run_anew: Run, command: list[str | Path], code: int, fault: str) -> None:
    done = run_anew(*command)
    assert done.returncode == code
    assert fault in done.stderr
    assert len(done.stderr.splitlines()) == (1 if fault else 0)
    assert done.stderr.startswith("streamfold: ") or not fault


@pytest.mark.parametrize("recording", [FAILED, CUT], ids=lambda path: path.name)
def test_a_fault_is_said_once(recording: Path) -> None:
    """Also where both outputs go into one file."""
    with Started("fold", recording, stderr=subprocess.STDOUT) as command:
        code, out, _ = command.end()
    answer = streamfold.fold(recording.read_bytes())
    assert (code, out.decode().count(error_line(answer.error))) == (1, 1)  # type: ignore[arg-type]


def test_warnings_are_lines_and_no_fault(run: Run) -> None:
    frames = WHOLE.read_bytes().split(b"\n\n")
    body = b"\n\n".join(frames[:9] + frames[10:20] + frames[22:])  # with two holes in its sequence numbers
    for command in (["fold"], ["fold", "--json"], ["events"]):
        done = run(*command, "-", stdin=body)
        assert done.returncode == 0
        assert len(done.stderr.splitlines()) == 2
        assert all(line.startswith("streamfold: warning: protocol sequence_gap") for line in done.stderr.splitlines())


def test_a_frame_that_nothing_closed_is_a_warning(run: Run) -> None:
    done = run("frames", "-", stdin=b"data: 1\n\ndata: 2")
    assert (done.returncode, len(done.stdout.splitlines()), len(done.stderr.splitlines())) == (0, 2, 1)


def test_a_body_that_is_no_stream_is_said_to_be_none(run: Run) -> None:
    done = run("fold", "-", stdin=b"<html>\n<title>502</title>\n</html>\n")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "no stream" in done.stderr


def test_no_command_shows_the_help() -> None:
    done = subprocess.run(COMMAND, env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"Usage:" in done.stderr


def test_each_command_has_help(run_anew: Run) -> None:
    assert set(main.commands) >= set(COMMANDS)
    for name, command in main.commands.items():
        done = run_anew(name, "--help")
        assert done.returncode == 0
        assert command.help
        assert command.help.splitlines()[0] in done.stdout
        assert command.help.startswith(ALL.words[name])
        assert all(getattr(option, "help", None) for option in command.params if isinstance(option, click.Option))


def test_the_help_has_every_command_with_its_first_sentence(run: Run) -> None:
    shown = " ".join(run("--help").stdout.partition("Commands:")[2].split())
    assert shown == " ".join(f"{name} {words}" for name, words in sorted(ALL.words.items()))


def test_the_version(run_anew: Run) -> None:
    assert run_anew("--version").stdout.split() == ["streamfold", streamfold.__version__]


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['streamfold', 'fold', '-']\n"
    code += "sys.stdout.isatty = lambda: True\nfrom streamfold.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, input=b"", capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [done.stderr.decode().strip()]
    assert b"pip install 'streamfold[cli]'" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_a_fault(command: str) -> None:
    with open("/dev/full", "wb") as full, Started(command, WHOLE, stdout=full) as started:
        code, _, said = started.end()
    assert code == 1
    assert len(said.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file that cannot be read")
@pytest.mark.parametrize("command", [["fold"], ["fold", "--json"], ["events"], ["frames"]], ids=" ".join)
def test_input_that_cannot_be_read_is_a_fault(run: Run, command: list[str]) -> None:
    done = run(*command, "/proc/self/mem")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Input/output error" in done.stderr


# -- pipes ------------------------------------------------------------------------------------------------------------


def test_a_live_pipe_is_shown_as_it_comes() -> None:
    first, second, rest = WHOLE.read_bytes().split(b"\n\n", 2)
    with Started("events", "-") as command:
        command.feed(first + b"\n\n")
        assert json.loads(command.line())["type"] == "start"  # although nothing more has come
        command.feed(second + b"\n\n")
        assert json.loads(command.line())["type"] == "raw"
        code, out, said = command.end(rest)
    assert json.loads(out.splitlines()[-1])["type"] == "done"
    assert (code, said) == (0, b"")


@pytest.mark.parametrize("name", ["frames", "fold"])
def test_frames_and_lines_of_a_live_pipe_are_shown_as_they_come(name: str) -> None:
    with Started(name, "-") as command:
        command.feed(chat({"content": "one\ntwo"}, finish=None, done=False))
        assert command.line()


def test_the_answer_ends_at_its_terminal_sign() -> None:
    """Also where the connection stays open."""
    with Started("fold", "--json", "-") as command:
        command.feed(text("hello"))
        assert json.loads(command.line())["text"] == "hello"
        assert command.process.wait(60) == 0


@pytest.mark.parametrize("arguments", [["fold"], ["fold", "--json"], ["events"], ["frames"]], ids=" ".join)
@pytest.mark.parametrize("lines", [0, 1])
def test_a_closed_pipe_ends_it_quietly(tmp_path: Path, arguments: list[str], lines: int) -> None:
    large = tmp_path / "large.sse"
    large.write_bytes(text(*["a line of text\n" * 1000] * 100))  # more than a pipe holds
    with Started(*arguments, large) as command:
        for _ in range(lines):
            command.line()
        command.stop_reading()
        assert command.end()[::2] == (0, b"")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_pipe_closed_at_once_ends_it_quietly(name: str) -> None:
    """What is held until the interpreter ends must not make it complain."""
    with Started(name, "-") as command:
        command.stop_reading()
        assert command.end(text("hello"))[::2] == (0, b"")


def test_a_pipe_of_faults_may_be_closed_too() -> None:
    with Started("fold", FAILED, stderr=subprocess.STDOUT) as command:
        command.stop_reading()
        command.process.wait(60)
        assert command.process.returncode in (0, 1)


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_an_interrupt_keeps_what_was_folded() -> None:
    with Started("fold", "-") as command:
        command.feed(chat({"content": "one\n"}, {"content": "two"}, finish=None, done=False))
        assert [command.line() for _ in range(3)][-1] == b"one\n"
        command.interrupt()
        code, out, said = command.end()
    assert (code, said) == (130, b"")
    assert out.decode().splitlines() == ["two", "(cut off)", "", "cancelled · no usage"]


def test_an_interrupt_of_json_keeps_what_was_folded() -> None:
    with Started("fold", "--json", "-") as command:
        command.feed(chat({"content": "one"}, finish=None, done=False))
        wait_until_read(command)
        command.interrupt()
        code, out, said = command.end()
    folded = json.loads(out)
    assert (code, said) == (130, b"")
    assert (folded["outcome"], folded["text"]) == ("cancelled", "one")


def wait_until_read(command: Started) -> None:
    """Until the pipe to the command is empty, and a while more, as nothing shows that it has folded what it read."""
    assert command.process.stdin is not None
    for _ in range(1000):
        (left,) = struct.unpack("i", fcntl.ioctl(command.process.stdin.fileno(), termios.FIONREAD, bytes(4)))
        if not left:
            break
        time.sleep(0.01)
    time.sleep(0.3)


# -- what models write ------------------------------------------------------------------------------------------------

EVIL = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x7f \u202e[bold]markup[/bold] :smile:\r"


def test_escapes_in_text_do_not_come_through(run: Run) -> None:
    done = run("fold", "-", stdin=text(EVIL, "\n" + EVIL))
    shown = done.stdout.replace("\n", "")
    assert not [c for c in shown if c in "\x1b\x07\x9b\x7f\u202e\r"]
    assert "␛]0;owned␇" in shown
    assert "[bold]markup[/bold] :smile:" in shown


def test_escapes_in_names_and_faults_do_not_come_through(run: Run) -> None:
    call = {"index": 0, "id": f"id{EVIL}", "function": {"name": f"name{EVIL}", "arguments": json.dumps({EVIL: EVIL})}}
    body = chat({"tool_calls": [call]}, finish="tool_calls") + b""
    for wire in (body, b'data: {"error":{"message":' + json.dumps(EVIL).encode() + b"}}\n\n"):
        done = run("fold", "-", stdin=wire)
        assert not [c for c in done.stdout + done.stderr if c in "\x1b\x07\x9b\x7f\u202e\r"]
