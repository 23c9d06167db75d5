"""Recorded sessions on the command line: every turn of them, whatever is cut, and what was cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


def line(direction: str, frame: Any) -> dict[str, Any]:
    return {"dir": direction, "frame": frame}


SETUP = [line("out", {"setup": {"model": "models/m"}}), line("in", {"setupComplete": {}})]
CALL = line("in", {"toolCall": {"functionCalls": [{"id": "c1", "name": "f", "args": {"a": 1}}]}})
RESULT = line("out", {"toolResponse": {"functionResponses": [{"id": "c1", "name": "f", "response": {}}]}})
SPOKEN = line("in", {"serverContent": {"outputTranscription": {"text": "Hello"}}})
END = line("in", {"serverContent": {"turnComplete": True}})
CLOSE = {"dir": "close", "code": 1000, "reason": "", "clean": True}
NEXT = line("in", {"serverContent": {}})


def recorded(*lines: dict[str, Any], end: bytes = b"\n") -> bytes:
    return end.join(json.dumps(line).encode() for line in lines)


TWO_TURNS = recorded(*SETUP, CALL, RESULT, SPOKEN, END, NEXT, SPOKEN, END, CLOSE)


@pytest.mark.parametrize("options", [[], ["--provider", "gemini-live"], ["--chunk", "1"], ["--framing", "messages"]])
def test_the_turns_stand_under_turns(run: Run, options: list[str]) -> None:
    done = run("fold", "--json", *options, "-", stdin=TWO_TURNS)
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [turn["stop"]["reason"] for turn in answer["turns"]] == ["end", "end"]
    assert answer["turns"][0]["tool_calls"] == [{"id": "c1", "name": "f", "arguments": '{"a":1}'}]
    assert [block["text"] for block in answer["turns"][1]["blocks"]] == ["Hello"]
    last = answer.pop("turns")[-1]
    assert answer == last
    assert answer["outcome"] == "complete"


def test_the_turns_are_drawn_one_below_the_other(run: Run) -> None:
    done = run("fold", "-", stdin=TWO_TURNS)
    assert done.returncode == 0
    assert done.stdout.count("Hello") == 2
    assert done.stdout.count("complete · end") == 2


def test_each_event_names_its_turn(run: Run) -> None:
    events = [json.loads(event) for event in run("events", "-", stdin=TWO_TURNS).stdout.splitlines()]
    assert [(event["type"], event["turn"]) for event in events if event["type"] in ("session", "start", "done")] == [
        ("session", None),
        ("start", 0),
        ("done", 0),
        ("start", 1),
        ("done", 1),
    ]
    assert any(event["type"] == "raw" for event in events)
    few = run("events", "--raw", "none", "-", stdin=TWO_TURNS).stdout.splitlines()
    assert [json.loads(event) for event in few] == [event for event in events if event["type"] != "raw"]


CUT = {
    "the recording ends": recorded(*SETUP, SPOKEN),
    "the connection was dropped": recorded(*SETUP, SPOKEN, {**CLOSE, "code": 1006}),
    "it closed as if nothing was": recorded(*SETUP, SPOKEN, CLOSE),
    "between two turns": recorded(*SETUP, SPOKEN, END, {**CLOSE, "code": 1011, "reason": "quota"}),
}


@pytest.mark.parametrize("body", CUT.values(), ids=CUT)
@pytest.mark.parametrize("command", [["fold", "--json"], ["fold"], ["events"]], ids=" ".join)
def test_what_was_cut_off_is_one_line_and_a_code(run: Run, body: bytes, command: list[str]) -> None:
    done = run(*command, "-", stdin=body)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("streamfold: ")


def test_a_line_that_is_none_of_a_session_is_said_by_its_number(run: Run) -> None:
    for bad in (b"{", b'{"dir":"sideways"}', b"[]"):
        done = run("fold", "--json", "-", stdin=recorded(*SETUP, SPOKEN, END) + b"\n" + bad + b"\n")
        assert done.returncode == 1
        assert "line 5" in done.stderr
        assert len(json.loads(done.stdout)["turns"]) == 1
        assert run("events", "-", stdin=recorded(*SETUP) + b"\n" + bad).returncode == 1


RESPONSE = [line("in", {"type": "response.created", "response": {"id": "r"}})]
MUSIC = line("in", {"serverContent": {"audioChunks": [{"data": "AAAB"}]}})
PROVIDERS = {
    "lyria": ([line("in", {"setupComplete": {}}), MUSIC], "lyria"),
    "lyria, by its model": ([line("out", {"setup": {"model": "models/lyria-x"}}), *[END] * 9, MUSIC], "lyria"),
    "gemini": ([line("in", {"event_type": "interaction.connected"})], "gemini-interactions"),
    "gemini-live": ([SPOKEN, END], "gemini-live"),
    "openai-realtime": ([line("in", {"type": "session.created", "session": {}}), *RESPONSE], "openai-realtime"),
    "xai-realtime": ([line("in", {"type": "ping"}), *RESPONSE], "xai-realtime"),
    "openai-responses": (RESPONSE, "openai-responses"),
    "xai-stt": (
        [
            line("in", {"type": "transcript.partial", "text": "a", "is_final": True}),
            line("out", {"type": "audio.done"}),
        ],
        "xai-stt",
    ),
    "xai-tts": ([line("out", {"type": "text.done"}), line("in", {"type": "audio.delta", "delta": "AAAB"})], "xai-tts"),
}


@pytest.mark.parametrize(("lines", "surface"), PROVIDERS.values(), ids=PROVIDERS)
def test_whose_session_it_is_shows(run: Run, lines: list[dict[str, Any]], surface: str) -> None:
    answer = json.loads(run("fold", "--json", "-", stdin=recorded(*lines)).stdout)
    assert answer["turns"][0]["surface"] == surface


def test_a_session_that_shows_nothing_needs_the_name_of_its_provider(run: Run) -> None:
    done = run("fold", "-", stdin=recorded(line("in", {"hello": 1})))
    assert (done.returncode, "name the provider" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["fold", "events", "check", "stats"])
def test_a_message_that_nests_too_deep_is_no_error_of_pythons(run: Run, tmp_path: Path, command: str) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    (tmp_path / "lines.jsonl").write_bytes(b'{"dir":"in","frame":%b}\n' % deep)
    head = b'{"sfcap":1,"response":{"status":101}}\n'
    (tmp_path / "read.sfcap").write_bytes(head + b'{"t":1,"op":"text","text":"%b"}\n' % deep)
    for path in tmp_path.iterdir():
        done = run(command, path)
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr


def test_lines_of_payloads_are_no_recorded_session(run: Run, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b'{"model":"m","message":{"content":"Hi"},"done":true,"done_reason":"stop"}\n')
    assert json.loads(run("fold", "--json", tmp_path / "body").stdout)["text"] == "Hi"
    frames = recorded({"setupComplete": {}}, SPOKEN["frame"], END["frame"])
    for framing in ([], ["--framing", "jsonl"], ["--framing", "messages"]):
        done = run("fold", "--json", "--provider", "gemini-live", *framing, "-", stdin=frames)
        assert json.loads(done.stdout)["blocks"][0]["text"] == "Hello"
        assert len(run("events", "--provider", "gemini-live", *framing, "-", stdin=frames).stdout.splitlines()) == 6
