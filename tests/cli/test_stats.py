"""``streamfold stats``: figures of many answers, and of those that cannot be read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamfold
from streamfold.recording.files import Recorder
from streamfold.timing import Timing
from tests.cli.conftest import ENVIRONMENT, RECORDINGS, Run, Started, chat, text
from tests.conftest import RECORDED

MS = 1_000_000
URL = "https://api.openai.com/v1/chat/completions"
REQUEST = ("POST", URL)


def record(
    path: Path,
    *reads: tuple[int, bytes],
    end: tuple[int, Any] | None = None,
    status: int = 200,
    headers: Any = (),
    provider: str | None = None,
) -> Path:
    """Write a recording of reads at these milliseconds."""
    now = 0
    recorder = Recorder(path, provider=provider, clock=lambda: now)
    recorder.request(*REQUEST)
    now = 50 * MS
    recorder.response(status, headers)
    for at, data in reads:
        now = at * MS
        recorder.read(data)
    if end is None:  # as if the recorder died
        recorder.end()
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    else:
        now = end[0] * MS
        recorder.end(end[1])
    return path


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


PIECES = text("Hel", "lo", " you")
FRAMES = PIECES.split(b"\n\n")


def steady(path: Path, **more: Any) -> Path:
    """Three pieces, 100 ms apart."""
    reads = [(200 + 100 * k, frame + b"\n\n") for k, frame in enumerate(FRAMES[:-1])]
    return record(path, *reads, end=(1000, "eof"), **more)


# -- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.sfcap", "a.sfcap.zst"])
def test_the_figures_of_a_recording(run: Run, tmp_path: Path, name: str) -> None:
    path = steady(tmp_path / name)
    done = run("stats", "--json", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert lines(done) == [
        {
            "file": str(path),
            "turn": None,
            "surface": "openai-chat",
            "model": "m",
            "outcome": "complete",
            "error": None,
            "time_to_response_head_s": 0.05,
            "time_to_first_byte_s": 0.2,
            "time_to_first_chunk_s": 0.2,
            "time_to_first_token_s": 0.2,
            "time_to_first_text_s": 0.2,
            "duration_s": 0.6,
            "gap_p50_s": 0.1,
            "gap_p99_s": 0.1,
            "gap_max_s": 0.1,
            "time_per_output_token_s": None,
            "output_tokens_per_s": None,
            "output_tokens": None,
            "stall_s": 2.0,
            "stalls": 0,
            "stalled_s": 0.0,
            "glued": None,
            "reads": 5,
            "bytes": len(PIECES),
            "frames": 5,
            "chunks": 4,
            "input_tokens": None,
            "cost_usd": None,
            "cost_is_estimate": None,
        }
    ]


def test_a_body_has_the_figures_that_need_no_times(run: Run) -> None:
    path = RECORDINGS / "anthropic-thinking-tool-use.sse"
    (told,) = lines(run("stats", "--json", path))
    needs_none = {"bytes", "frames", "chunks", "output_tokens"}
    assert {name for name in Timing.__struct_fields__ if told.get(name) is not None} == needs_none
    assert (told["output_tokens"], told["input_tokens"], told["bytes"]) == (211, 2560, path.stat().st_size)
    assert told["cost_is_estimate"] is True


def test_every_recording_has_a_row(run: Run) -> None:
    done = run("stats", "--json", RECORDINGS)
    assert done.returncode == 0
    told = lines(done)
    assert [row["file"] for row in told] == [str(path) for path in RECORDED]
    for row, path in zip(told, RECORDED, strict=True):
        answer = streamfold.fold(path.read_bytes())
        assert (row["outcome"], row["model"], row["surface"]) == (answer.outcome, answer.model, answer.surface)


def test_a_stall_is_what_the_caller_says(run: Run, tmp_path: Path) -> None:
    path = steady(tmp_path / "a.sfcap")
    assert lines(run("stats", "--json", "--stall", "0.05", path))[0]["stalls"] == 4


ENDS = {
    "cut": ((700, "cut"), "failed", "transport"),
    "cancel": ((700, "cancel"), "cancelled", None),
    "eof": ((700, "eof"), "truncated", "truncated"),
    "the recorder died": (None, "failed", "transport"),
}


@pytest.mark.parametrize(("end", "outcome", "error"), ENDS.values(), ids=ENDS.keys())
def test_how_it_ended(run: Run, tmp_path: Path, end: Any, outcome: str, error: str | None) -> None:
    path = record(tmp_path / "a.sfcap", (200, FRAMES[0] + b"\n\n"), end=end)
    (told,) = lines(run("stats", "--json", path))
    assert (told["outcome"], told["error"], told["duration_s"]) == (outcome, error, 0.2 if end is None else 0.7)


def test_an_error_body_is_an_answer_that_failed(run: Run, tmp_path: Path) -> None:
    path = record(tmp_path / "a.sfcap", (60, b'{"error":{"message":"slow"}}'), end=(60, "eof"), status=429)
    done = run("stats", "--json", path)
    assert done.returncode == 0
    assert lines(done)[0]["outcome"] == "failed"


def test_a_packed_body_is_unpacked_read_by_read(run: Run, tmp_path: Path) -> None:
    import zlib

    packing = zlib.compressobj(wbits=31)
    reads = []
    for number, frame in enumerate(FRAMES[:-1]):
        reads.append((200 + 100 * number, packing.compress(frame + b"\n\n") + packing.flush(zlib.Z_SYNC_FLUSH)))
    reads.append((700, packing.flush()))
    packed = record(tmp_path / "a.sfcap", *reads, end=(1000, "eof"), headers=[("content-encoding", "gzip")])
    plain = steady(tmp_path / "b.sfcap")
    first, second = lines(run("stats", "--json", packed, plain))
    assert {**first, "file": ""} == {**second, "file": ""}


def test_the_recording_knows_whose_it_is(run: Run, tmp_path: Path) -> None:
    path = steady(tmp_path / "a.sfcap", provider="anthropic")
    assert lines(run("stats", "--json", path))[0]["surface"] == "anthropic"
    assert lines(run("stats", "--json", "--provider", "openai-chat", path))[0]["surface"] == "openai-chat"


# -- sessions ---------------------------------------------------------------------------------------------------------


def message(value: Any) -> bytes:
    return json.dumps(value).encode()


SETUP = message({"setup": {"model": "models/m"}})
TURN = [
    message({"serverContent": {"modelTurn": {"parts": [{"text": "Hi"}]}}}),
    message({"serverContent": {"modelTurn": {"parts": [{"text": "!"}]}}}),
    message({"serverContent": {"turnComplete": True}}),
]
ASK = message({"clientContent": {"turns": [], "turnComplete": True}})


def test_a_session_has_a_row_for_each_turn(run: Run, tmp_path: Path) -> None:
    now = 0
    path = tmp_path / "a.sfcap"
    with Recorder(path, provider="gemini-live", clock=lambda: now) as recorder:
        recorder.request("GET", "wss://example/live")
        recorder.response(101)
        recorder.read(SETUP, op="text", sent=True)
        recorder.read(message({"setupComplete": {}}), op="text")
        for turn in range(2):
            now = (1000 + 5000 * turn) * MS
            recorder.read(ASK, op="text", sent=True)
            for frame in TURN:
                now += (300 + 100 * turn) * MS
                recorder.read(frame, op="text")
    told = lines(run("stats", "--json", path))
    assert [(row["turn"], row["time_to_first_text_s"], row["duration_s"]) for row in told] == [
        (0, 0.3, 0.9),
        (1, 0.4, 1.2),
    ]


def test_a_recorded_session_without_times(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    frames = [{"dir": "out", "frame": json.loads(SETUP)}, *({"dir": "in", "frame": json.loads(f)} for f in TURN)]
    path.write_text("\n".join(map(json.dumps, frames)))
    (told,) = lines(run("stats", "--json", path))
    assert (told["turn"], told["outcome"], told["chunks"] > 0, told["duration_s"]) == (0, "complete", True, None)


def test_a_session_that_broke_off(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.sfcap"
    with Recorder(path, provider="gemini-live") as recorder:
        recorder.response(101)
        recorder.read(TURN[0], op="text")
        recorder.end("cut", code=1011, reason="busy")
    (told,) = lines(run("stats", "--json", path))
    assert (told["turn"], told["outcome"], told["error"]) == (0, "truncated", "1011")


def test_a_session_whose_first_messages_are_audio(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.sfcap"
    with Recorder(path) as recorder:
        recorder.response(101)
        recorder.read(b"\x00\x01", op="binary", sent=True)
        recorder.read(SETUP, op="text", sent=True)
        for frame in TURN:
            recorder.read(frame, op="text")
    assert lines(run("stats", "--json", path))[0]["surface"] == "gemini-live"


def test_a_recording_that_knows_no_times_tells_none(run: Run, tmp_path: Path) -> None:
    body, session = tmp_path / "a.sse", tmp_path / "b.jsonl"
    body.write_bytes(PIECES)
    session.write_text("\n".join(json.dumps({"dir": "in", "frame": json.loads(frame)}) for frame in TURN))
    for bare in (body, session):
        made = bare.with_suffix(".sfcap")
        assert run("convert", bare, made).returncode == 0
        (told,), (wanted,) = lines(run("stats", "--json", made)), lines(run("stats", "--json", bare))
        assert (told["time_to_first_byte_s"], told["duration_s"], told["gap_max_s"]) == (None, None, None)
        assert {**told, "file": ""} == {**wanted, "file": ""}


# -- tables -----------------------------------------------------------------------------------------------------------


def test_a_table_has_a_line_for_each_answer(run: Run, tmp_path: Path) -> None:
    path = steady(tmp_path / "a.sfcap")
    names, row = run("stats", path).stdout.splitlines()
    assert names.split() == [
        *("file", "model", "outcome", "first", "byte", "token", "text", "end", "chunks", "gap", "p50", "p99", "max"),
        "stalls",
    ]
    assert row.split()[:3] == [str(path), "m", "complete"]
    assert row.split("complete")[1].split()[:8] == ["200", "ms", "200", "ms", "200", "ms", "600", "ms"]


def test_the_summary_adds_up(run: Run, tmp_path: Path) -> None:
    for number in range(3):
        steady(tmp_path / f"{number}.sfcap")
    done = run("stats", "--json", "--summary", tmp_path)
    *rows, last = lines(done)
    assert len(rows) == 3
    summary = last["summary"]
    assert (summary["answers"], summary["timed"], summary["broken"]) == (3, 3, 0)
    assert summary["outcomes"] == {"complete": 3}
    assert summary["duration_s"] == {"p50": 0.6, "p99": 0.6, "max": 0.6}
    assert summary["gap_s"] == {"p50": 0.1, "p99": 0.1, "max": 0.1}
    assert run("stats", "--summary", tmp_path).stdout.splitlines()[-1] == "3 answers: 3 complete"


def test_costs_add_up_and_are_estimates_if_one_is(run: Run) -> None:
    reported = RECORDINGS / "xai-chat-reasoning-tool-call.sse"
    estimated = RECORDINGS / "anthropic-thinking-tool-use.sse"
    *rows, last = lines(run("stats", "--json", "--summary", reported, estimated))
    assert [row["cost_is_estimate"] for row in rows] == [False, True]
    assert last["summary"]["cost_is_estimate"] is True
    assert last["summary"]["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in rows))
    told = run("stats", reported, estimated).stdout
    assert "~$" in told.splitlines()[2]
    assert "~$" not in told.splitlines()[1]


def test_nothing_that_a_model_is_called_reaches_the_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.sse"
    path.write_bytes(chat({"content": "x"}).replace(b'"m"', b'"\\u001b[2Jm\\nx[red]"'))
    assert "\x1b" not in run("stats", path).stdout
    assert len(run("stats", path).stdout.splitlines()) == 2


# -- files ------------------------------------------------------------------------------------------------------------


def test_folders_are_walked_in_order(run: Run, tmp_path: Path) -> None:
    for name in ("b/2.sse", "b/1.sse", "a.sse", "c/d/3.sfcap", "notes.md", "b/x.tsv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".sfcap":
            steady(path)
        else:
            path.write_bytes(PIECES)
    told = lines(run("stats", "--json", tmp_path))
    assert [row["file"] for row in told] == [
        str(tmp_path / name) for name in ("a.sse", "b/1.sse", "b/2.sse", "c/d/3.sfcap")
    ]


def test_standard_input(run: Run, tmp_path: Path) -> None:
    assert lines(run("stats", "--json", "-", stdin=PIECES))[0]["chunks"] == 4
    recorded = steady(tmp_path / "a.sfcap").read_bytes()
    assert lines(run("stats", "--json", "-", stdin=recorded))[0]["duration_s"] == 0.6


def test_a_name_that_is_no_text(run: Run, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.sse"
    for wire, code in ((PIECES, 0), (b"# Notes", 1)):
        with open(path, "wb") as file:
            file.write(wire)
        done = run("stats", "--json", tmp_path)
        assert done.returncode == code
        assert "\ufffd.sse" in done.stdout + done.stderr


def damaged(path: Path, change: Callable[[bytes], bytes]) -> Path:
    path.write_bytes(change(steady(path).read_bytes()))
    return path


BROKEN: dict[str, Callable[[Path], Path]] = {
    "a line that is none": lambda path: damaged(path, lambda body: body.replace(b'{"t":300000000', b"{t:")),
    "bytes that are others": lambda path: damaged(path, lambda body: body.replace(b"Hel", b"Hal")),
    "no answer": lambda path: Path(path.write_text("# Notes\n") and path),
    "nothing": lambda path: Path(path.write_bytes(b"") or path),
    "half of what was packed": lambda path: Path(path.write_bytes(b"\x28\xb5\x2f\xfd\x00") and path),
}


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("break_", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_a_line_and_the_others_still_stand(
    run: Run, tmp_path: Path, break_: Callable[[Path], Path], jobs: str
) -> None:
    first, broken, last = steady(tmp_path / "1.sfcap"), break_(tmp_path / "2.sfcap"), steady(tmp_path / "3.sfcap")
    done = run("stats", "--json", "--jobs", jobs, tmp_path)
    assert done.returncode == 1
    assert [row["file"] for row in lines(done)] == [str(first), str(last)]
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"streamfold: {broken}: ")


def test_where_nothing_was_measured_no_table_is_printed(run: Run, tmp_path: Path) -> None:
    notes = BROKEN["no answer"](tmp_path / "a.md")
    assert run("stats", notes).stdout == ""
    assert run("stats", "--summary", notes).stdout == "no answers\n"


def test_wrong_usage(run: Run, tmp_path: Path) -> None:
    for arguments in ([], [tmp_path / "none"], [tmp_path], ["--jobs", "0", RECORDINGS], ["--stall", "-1", RECORDINGS]):
        done = run("stats", *arguments)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), arguments


# -- processes --------------------------------------------------------------------------------------------------------


def test_processes_change_nothing(run: Run) -> None:
    alone = run("stats", "--json", "--summary", "--jobs", "1", RECORDINGS)
    together = run("stats", "--json", "--summary", "--jobs", "3", RECORDINGS)
    assert (together.stdout, together.stderr, together.returncode) == (alone.stdout, alone.stderr, alone.returncode)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Files that take long to read."""
    body = chat(*({"content": "word "} for _ in range(150_000)))
    for number in range(6):
        (tmp_path / f"{number}.sse").write_bytes(body)
    return tmp_path


def children_of(pid: int) -> set[int]:
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.add(int(status.parent.name))
    return found


def wait_for_readers(pid: int) -> set[int]:
    """Two processes that read, and the one that keeps count of what they share, which comes first."""
    for _ in range(200):
        found = children_of(pid)
        if len(found) >= 3:
            return found
        time.sleep(0.05)
    return pytest.fail("it began no processes")


def gone(pids: set[int]) -> bool:
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
@pytest.mark.parametrize("how", ["Ctrl-C", "kill"])
def test_what_ends_the_command_ends_its_processes(large: Path, how: str) -> None:
    with Started("stats", "--json", "--jobs", "2", large, start_new_session=True) as started:
        children = wait_for_readers(started.process.pid)
        if how == "Ctrl-C":  # a terminal sends it to all of them
            os.killpg(started.process.pid, signal.SIGINT)
        else:
            started.process.kill()
        code, _, said = started.end()
    assert code == (130 if how == "Ctrl-C" else -signal.SIGKILL)
    if how == "Ctrl-C":
        assert said == b""
    assert gone(children)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")
def test_a_process_that_dies_is_told(large: Path) -> None:
    with Started("stats", "--json", "--jobs", "2", large) as started:
        readers = wait_for_readers(started.process.pid)
        os.kill(max(readers), signal.SIGKILL)
        code, _, said = started.end()
    assert code == 1
    assert said == b"streamfold: a process that was reading died; what it had not read is left out\n"
    assert gone(readers)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_nobody_reads_any_more(large: Path, jobs: str) -> None:
    with Started("stats", "--json", "--jobs", jobs, large) as started:
        assert started.line()
        started.stop_reading()
        assert started.end()[::2] == (0, b"")


def test_output_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    steady(tmp_path / "a.sfcap")
    for form in ([], ["--json"]):
        with open("/dev/full", "wb") as full, Started("stats", *form, tmp_path, stdout=full) as started:
            code, _, said = started.end()
        assert (code, said) == (1, b"streamfold: No space left on device\n")


def test_a_bar_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    import pty

    for number in range(4):
        steady(tmp_path / f"{number}.sfcap")
    master, slave = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "streamfold", "stats", "--json", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=ENVIRONMENT,
        check=True,
        timeout=60,
    )
    os.close(slave)
    shown = os.read(master, 65536)
    os.close(master)
    assert b"measuring" in shown
    assert len(done.stdout.splitlines()) == 4
