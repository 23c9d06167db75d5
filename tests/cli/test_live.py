"""The command line on a terminal: the answer drawn while it comes."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import pytest

import streamfold
from streamfold.views.lines import plain, size, wrap
from streamfold.views.terminal import draw
from tests.cli.conftest import COMMAND, ENVIRONMENT, RECORDINGS, chat, text
from tests.cli.terminal import Terminal
from tests.cli.test_cli import EVIL
from tests.conftest import RECORDED


class Live:
    """A command on a terminal of its own, fed through a pipe."""

    def __init__(self, *arguments: str | Path, width: int, height: int, **pipes: Any) -> None:
        self.terminal = Terminal(width, height)
        self.written = ""
        self._master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        environment = {
            name: value for name, value in ENVIRONMENT.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        environment |= {"TERM": "xterm-256color", **pipes.pop("env", {})}
        pipes = {"stdin": subprocess.PIPE, "stdout": self._slave, "stderr": self._slave, **pipes}
        self.process = subprocess.Popen([*COMMAND, *map(str, arguments)], env=environment, **pipes)
        os.close(self._slave)
        self._shown = Condition()
        self._fault: BaseException | None = None
        self._reader = Thread(target=self._read)
        self._reader.start()

    def feed(self, data: bytes) -> None:
        """Pipe it some bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def wait_for(self, shown: Callable[[list[str]], bool]) -> list[str]:
        """The rows of the terminal, once they are as they should be."""
        with self._shown:
            if not self._shown.wait_for(lambda: self._fault is not None or shown(self.terminal.rows), timeout=20):
                raise AssertionError("never shown; the rows are\n" + "\n".join(self.terminal.rows))
            if self._fault is not None:
                raise self._fault
            return self.terminal.rows

    def end(self) -> int:
        """Close the pipe; the exit code, once it has shown everything."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.wait(60)
        self._reader.join(60)
        if self._fault is not None:
            raise self._fault
        return code

    def close(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.process.wait()
        self._reader.join()
        os.close(self._master)

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        with suppress(OSError):  # nobody holds the other side any more
            while data := os.read(self._master, 65536):
                with self._shown:
                    written = decoder.decode(data)
                    self.written += written
                    try:
                        self.terminal.feed(written)
                    except AssertionError as fault:
                        self._fault = self._fault or fault
                    self._shown.notify_all()


@contextmanager
def live(*arguments: str | Path, width: int = 72, height: int = 16, **pipes: Any) -> Iterator[Live]:
    command = Live(*arguments, width=width, height=height, **pipes)
    try:
        yield command
    finally:
        command.close()


def drawn(body: bytes, width: int) -> list[str]:
    """The rows that an answer takes on a terminal."""
    return [plain(row) for line in draw(streamfold.fold(body)) for row in wrap(line, width - 1)]


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)
@pytest.mark.parametrize(("width", "height"), [(72, 16), (40, 6)])
def test_what_is_left_on_the_terminal_is_the_whole_answer(recording: Path, width: int, height: int) -> None:
    """Also where it is longer than the window: nothing is lost, nothing stands there twice."""
    body = recording.read_bytes()
    with live("fold", "-", width=width, height=height) as command:
        fed = 0
        for frame in re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)|(?<=\n,\r\n)", body)[:-4]:
            command.feed(frame)
            fed += len(frame)
            command.wait_for(drawn_at(fed))
        command.feed(body[fed:])
        code = command.end()
    assert command.terminal.rows == [*drawn(body, width), ""]
    assert code == (0 if streamfold.fold(body).outcome == "complete" else 1)


def drawn_at(count: int) -> Callable[[list[str]], bool]:
    """Whether the last row says that so many bytes were read."""
    return lambda rows: rows[-1] == f"… {size(count)}"


def test_text_is_shown_as_it_grows() -> None:
    with live("fold", "-", width=30) as command:
        for word in ("One", " two", " three", " four", " five", " six", " seven", "\neight"):
            command.feed(chat({"content": word}, finish=None, done=False))
            rows = command.wait_for(lambda rows, word=word: rows[-2:-1] != [] and rows[-2].endswith(word.strip()))  # type: ignore[misc]
            assert rows[-1].startswith("… ")
    assert rows[:-1] == ["openai-chat · m · c1", "", "One two three four five six", "seven", "eight"]


def test_arguments_are_shown_as_they_come() -> None:
    shown = ["  pa", '  path: "a.', '  path: "a.txt"', "  lines: [1, 2]"]
    with live("fold", "-") as command:
        for piece, last in zip(('{"pa', 'th": "a.', 'txt"', ', "lines": [1, 2]}'), shown, strict=True):
            call = {"index": 0, "id": "call_1", "function": {"name": "edit", "arguments": piece}}
            command.feed(chat({"tool_calls": [call]}, finish=None, done=False))
            rows = command.wait_for(lambda rows, last=last: rows[-2:-1] == [last])  # type: ignore[misc]
    assert rows[2:-1] == ["▸ edit  call_1", '  path: "a.txt"', "  lines: [1, 2]"]


def test_rows_that_do_not_fit_are_cropped_and_come_at_last() -> None:
    """Of two answers that grow at once, only the first can be printed for good."""
    with live("fold", "-", height=6) as command:
        command.feed(chat({"content": "first"}, finish=None, done=False))
        for number in range(12):
            command.feed(chat({"content": f"line {number}\n"}, finish=None, done=False, choice=1))
            rows = command.wait_for(lambda rows, number=number: rows[-2:-1] == [f"line {number}"])  # type: ignore[misc]
            assert len(rows) <= 8
        command.feed(chat({"content": " last"}, done=False) + chat(choice=1))
        assert command.end() == 0
    rows = command.terminal.rows
    assert [row for row in rows if row.startswith("line ")] == [f"line {number}" for number in range(12)]
    assert rows.index("first last") < rows.index("── choice 1 ──") < rows.index("line 0")


def test_kinds_of_text_look_different() -> None:
    body = chat({"reasoning_content": "hmm"}, {"content": "yes"}, finish=None, done=False)
    with live("fold", "-") as command:
        command.feed(body + text("."))
        command.end()
    assert "\x1b[2;3mhmm" in command.written
    assert "\x1b[2;3myes" not in command.written


def test_without_colours_where_they_are_not_wanted() -> None:
    with live("fold", RECORDINGS / "anthropic-overloaded.sse", env={"NO_COLOR": "1"}) as command:
        command.end()
    assert not [sequence for sequence in command.terminal.sequences if sequence.endswith("m") and "3" in sequence]


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines() -> None:
    with live("fold", RECORDINGS / "anthropic-overloaded.sse", env={"TERM": "dumb"}) as command:
        assert command.end() == 1
    assert command.terminal.sequences == set()
    assert "failed · 64 in + 2 out = 66 tokens" in command.terminal.rows


def test_what_a_model_writes_cannot_drive_the_terminal() -> None:
    """:class:`Terminal` fails at any sequence that is not the drawing's own, and at bare control characters."""
    call = {"index": 0, "id": f"id{EVIL}", "function": {"name": f"n{EVIL}", "arguments": json.dumps({EVIL: EVIL})}}
    with live("fold", "-") as command:
        for delta in ({"content": EVIL}, {"reasoning_content": EVIL}, {"tool_calls": [call]}):
            command.feed(chat(delta, finish=None, done=False))
        command.feed(text(EVIL) + b'data: {"error":{"message":' + json.dumps(EVIL).encode() + b"}}\n\n")
        command.end()
    shown = "".join(command.terminal.rows)
    assert "[bold]markup[/bold] :smile:" in shown


TEXT_IN = {
    "events": (["events"], lambda rows: next(row["text"] for row in rows if row["type"] == "text_delta")),
    "fold --json": (["fold", "--json"], lambda rows: rows[0]["text"]),
    "frames": (["frames"], lambda rows: json.loads(rows[0]["data"])["choices"][0]["delta"]["content"]),
}


@pytest.mark.parametrize(("arguments", "text_in"), TEXT_IN.values(), ids=TEXT_IN.keys())
def test_json_on_a_terminal_means_the_same_and_drives_nothing(arguments: list[str], text_in: Any) -> None:
    with live(*arguments, "-", width=5000) as command:
        command.feed(text(EVIL))
        assert command.end() == 0
    assert text_in([json.loads(row) for row in command.terminal.rows if row]) == EVIL


def test_a_fault_is_said_once() -> None:
    with live("fold", RECORDINGS / "anthropic-overloaded.sse") as command:
        command.end()
    assert command.written.count("Overloaded") == 1


def test_a_fault_is_said_on_standard_error_too_where_that_is_elsewhere() -> None:
    with live("fold", RECORDINGS / "anthropic-overloaded.sse", stderr=subprocess.PIPE) as command:
        assert command.process.stderr is not None
        said = command.process.stderr.read()
        command.end()
    assert said.decode().splitlines() == ["streamfold: provider overloaded_error: Overloaded (may be retried)"]


def test_an_interrupt_leaves_what_was_drawn() -> None:
    with live("fold", "-") as command:
        command.feed(chat({"content": "one\n"}, {"content": "two"}, finish=None, done=False))
        command.wait_for(lambda rows: "two" in rows)
        command.process.send_signal(signal.SIGINT)
        assert command.end() == 130
    assert command.terminal.rows[2:] == ["one", "two", "(cut off)", "", "cancelled · no usage", ""]


def test_the_progress_of_a_large_file_is_shown_beside_its_lines(tmp_path: Path) -> None:
    large = tmp_path / "large.sse"
    large.write_bytes(text(*["a line of text\n" * 1000] * 400))
    with open(tmp_path / "out", "wb") as out, live("fold", large, stdout=out, height=30) as command:
        command.end()
    assert "reading" in command.written
    assert "".join(command.terminal.rows).strip() == ""  # and gone when it is done
    with open(tmp_path / "out", "wb") as out, live("fold", RECORDED[0], stdout=out) as command:
        command.end()
    assert "reading" not in command.written


def test_what_is_written_grows_with_the_answer_and_no_faster(tmp_path: Path) -> None:
    """A paragraph without end must not be drawn anew at every read."""
    written: list[int] = []
    for count in (5_000, 20_000):
        path = tmp_path / f"{count}.sse"
        path.write_bytes(text(*["word "] * count))
        with live("fold", path) as command:
            command.end()
        assert sum(row.count("word") for row in command.terminal.rows) == count
        written.append(len(command.written))
    assert written[1] < 5 * written[0]


def test_the_fault_of_a_turn_is_said_once() -> None:
    message = json.dumps({"serverContent": {"modelTurn": {"parts": [{"text": "half"}]}}})
    lines = [f'{{"dir":"in","frame":{message}}}', '{"dir":"close","code":1006,"reason":""}']
    with live("fold", "--provider", "gemini-live", "-") as command:
        command.feed("".join(f"{line}\n" for line in lines).encode())
        assert command.end() == 1
    rows = command.terminal.rows
    assert "half" in rows
    assert sum("1006" in row for row in rows) == 1
