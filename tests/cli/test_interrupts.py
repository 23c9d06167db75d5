"""Ctrl-C, for every command: on large files, open pipes and output that nobody takes; and readers that leave."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streamfold import fold, read_recording
from streamfold.cli.commands import main
from streamfold.recording.files import Recorder
from tests.cli.conftest import Started, chat, text
from tests.samples import block_stop, message_start, sse

BEGUN = chat({"content": "one\n"}, {"content": "two"}, finish=None, done=False)
LONG = BEGUN + b":\n" * 20_000_000
"""A body that takes seconds to read: comments are read one by one."""
WHOLE = text(*["a line of text\n" * 100] * 2000)
"""One whose events and lines are more than a pipe holds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("large")
    (folder / "long.sse").write_bytes(LONG)
    (folder / "whole.sse").write_bytes(WHOLE)
    (folder / "wrong.sse").write_bytes(sse([message_start(), *map(block_stop, range(1000))]))
    with Recorder(folder / "long.sfcap") as recorder:
        recorder.read(BEGUN)
        for _ in range(300_000):
            recorder.read(b":\n")
        recorder.end()
    many = folder / "many"
    many.mkdir()
    for number in range(400):
        (many / f"{'a long name of a recording ' * 9}{number}.sse").write_bytes(text("hello"))
    yield folder
    for path in folder.glob("long.*"):
        path.unlink()


def until_it_reads(started: Started, path: Path) -> None:
    """Until the process has the file open."""
    place = Path(f"/proc/{started.process.pid}/fd")
    for _ in range(3000):
        for entry in place.iterdir():
            try:
                if os.readlink(entry) == str(path):
                    return
            except FileNotFoundError:
                continue
        assert started.process.poll() is None
        time.sleep(0.01)
    pytest.fail(f"{path} is not read")


def interrupted(*started: Started) -> None:
    """They end with 130, say nothing, and soon."""
    began = time.monotonic()
    for one in started:
        assert one.process.poll() is None
        one.interrupt()
    for one in started:
        assert one.process.wait(30) == 130, one.process.args
        assert one.process.stderr is not None
        assert one.process.stderr.read() == b"", one.process.args
    assert time.monotonic() - began < 10


LARGE = {
    # command -> what it reads
    "fold": "long.sse",
    "check": "long.sfcap",
    "convert": "long.sfcap",
    "stats": "long.sfcap",
    "replay": "long.sfcap",
}
LIVE = {
    "events": ["events", "-"],
    "frames": ["frames", "-"],
    "check": ["check", "-"],
    "convert": ["convert", "-", "OUT"],
    "stats": ["stats", "-"],
    "record": ["record", "-o", "OUT", "-"],
}
UNREAD = {
    # output that is more than a pipe holds, and that nobody takes
    "fold": ["fold", "whole.sse"],
    "events": ["events", "whole.sse"],
    "convert": ["convert", "whole.sse", "-"],
    "stats": ["stats", "--json", "many"],
    "record": ["record", "-o", "OUT", "--", "cat", "whole.sse"],
}
LEFT = {
    # output that is closed at once; of the other commands their own tests have it
    "check": ["check", "wrong.sse"],
    "convert": ["convert", "whole.sse", "-"],
    "replay": ["replay", "whole.sse"],
}


def test_every_command_is_here() -> None:
    assert set(main.commands) == {*LARGE, *LIVE}


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are seen in /proc")


@needs_proc
@pytest.mark.parametrize("name", LARGE)
def test_a_large_file(folder: Path, tmp_path: Path, name: str) -> None:
    file = folder / LARGE[name]
    more = [tmp_path / "out.har"] if name == "convert" else []
    with Started(name, file, *more) as started:
        until_it_reads(started, file)
        interrupted(started)
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_pipes_that_stay_open(tmp_path: Path) -> None:
    """All at once: they wait most of the time."""
    with ExitStack() as stack:
        started = {}
        for name, arguments in LIVE.items():
            out = tmp_path / f"{name}.sfcap"
            started[name] = stack.enter_context(Started(*[out if word == "OUT" else word for word in arguments]))
            started[name].feed(BEGUN)
        for one in started.values():
            until_it_is_in(one, READS)
        interrupted(*started.values())
    with read_recording(tmp_path / "record.sfcap") as recording:
        assert fold(recording).text == "one\ntwo"
        assert recording.intact
        assert recording.end is not None
        assert recording.end.end == "cancel"


_READ, _WRITE = (63, 64) if platform.machine() == "aarch64" else (0, 1)  # Linux numbers its calls so
READS, WRITES = f"{_READ} 0x0 ", f"{_WRITE} 0x1 "
"""Calls of the system, and the file they are for: standard input, standard output."""


def until_it_is_in(started: Started, call: str) -> None:
    """Until the process waits in this call of the system, for standard input or output."""
    place = Path(f"/proc/{started.process.pid}/syscall")
    for _ in range(3000):
        if place.read_text().startswith(call):
            return
        assert started.process.poll() is None
        time.sleep(0.01)
    pytest.fail("it does not wait there")


def all_started(stack: ExitStack, folder: Path, out: Path, rows: dict[str, list[str]]) -> dict[str, Started]:
    """Each command of the rows, at once, with its files in the folder."""
    places = {name: folder / name for name in ("whole.sse", "wrong.sse", "many")} | {"OUT": out}
    return {
        name: stack.enter_context(Started(*[places.get(word, word) for word in arguments]))
        for name, arguments in rows.items()
    }


@needs_proc
def test_output_that_nobody_takes(folder: Path, tmp_path: Path) -> None:
    """A pager, say, that waits for its user: a write into its pipe has no end."""
    with ExitStack() as stack:
        started = all_started(stack, folder, tmp_path / "out.sfcap", UNREAD)
        for one in started.values():
            until_it_is_in(one, WRITES)
        interrupted(*started.values())
    with read_recording(tmp_path / "out.sfcap") as recording:
        begun = b"".join(recording.iter_bytes())
        assert WHOLE.startswith(begun)
        assert recording.intact
        assert recording.end is not None
        assert recording.end.end == "cancel"


def test_a_pipe_that_is_closed(folder: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        started = all_started(stack, folder, tmp_path / "out.sfcap", LEFT)
        for one in started.values():
            one.stop_reading()
        for name, one in started.items():
            assert (name, *one.end()[::2]) == (name, 0, b"")
