"""What the demo prints, letter by letter, and facts of it that the recordings themselves tell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamfold.views.lines import cells
from tests.conftest import RECORDED, ROOT

DEMO = ROOT / "examples" / "demo.py"
PRINTED = Path(__file__).parent / "golden" / "demo.txt"
SURFACES = {
    *("openai-responses", "openai-chat", "anthropic", "gemini", "gemini-interactions"),
    *("bedrock-converse", "cohere", "ollama"),
}
ROWS, COLUMNS = 64, 80


def run(*names: str, columns: int = COLUMNS) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8", "COLUMNS": str(columns)}
    done = subprocess.run([sys.executable, DEMO, *names], env=environment, capture_output=True, check=False, timeout=60)
    assert done.stderr == b""
    assert done.returncode == 0
    return done.stdout.decode()


@pytest.fixture(scope="module")
def screen() -> str:
    return run()


@pytest.fixture(scope="module")
def printed() -> str:
    return run(*(path.name for path in RECORDED))


def test_the_demo_prints_what_it_did(screen: str) -> None:
    """Where it prints something better: ``COLUMNS=80 .venv/bin/python examples/demo.py > tests/golden/demo.txt``."""
    assert screen == PRINTED.read_text(encoding="utf-8")


def test_it_shows_every_surface_in_as_many_lines_as_it_says(screen: str) -> None:
    rows = screen.splitlines()
    assert len(rows) == ROWS
    assert f" {ROWS} lines" in DEMO.read_text(encoding="utf-8")
    assert max(map(cells, rows)) <= COLUMNS
    heads = [row for row in rows if re.search(r" B by \d", row)]
    assert {head.split("  ")[1].split(" · ")[0] for head in heads} == SURFACES
    assert {"xai-chat", "xai-responses", "xai-messages"} <= {"-".join(head.split("-")[:2]) for head in heads}
    assert sum(".json  " in head for head in heads) == 1


@pytest.mark.parametrize("columns", [60, 132])
def test_lines_are_as_wide_as_there_are_columns(columns: int) -> None:
    widths = [cells(row) for row in run(columns=columns).splitlines()]
    assert (len(widths), max(widths)) == (ROWS, columns)


def test_a_recording_that_is_not_there() -> None:
    done = subprocess.run([sys.executable, DEMO, "none.sse"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, "no recording is called none.sse\n")


@pytest.mark.parametrize("recording", RECORDED, ids=lambda path: path.name)
def test_each_recording_is_shown_in_full(printed: str, recording: Path) -> None:
    section = printed.split(f"━━ {recording.name} ")[1].split("\n━━ ")[0]
    body = recording.read_bytes()
    assert f"{len(body):,} bytes" in section
    assert '{"type":"start"' in section
    for name in names_of_calls(body):
        assert f"▸ {name} " in section
    assert ("truncated" in section) == ("cut" in recording.stem)
    assert ("overloaded_error" in section) == ("overloaded" in recording.stem)
    assert ("refusal" in section) == ("blocked" in recording.stem)


def names_of_calls(body: bytes) -> set[str]:
    """Every name of a tool call that stands in the recording, by plain search."""
    return {name for payload in payloads(body) for name in strings_at("name", payload) if "_" in name}


def payloads(body: bytes) -> Iterator[object]:
    """What is one JSON object on a line, or behind the headers of a binary frame."""
    text = body.decode("utf-8", "replace")
    if body[0] == 0:
        yield from (json.JSONDecoder().raw_decode(text, found.end())[0] for found in re.finditer(r"event(?=\{)", text))
        return
    for line in text.splitlines():
        payload = line.removeprefix("data: ")
        if payload.startswith("{") and payload.endswith("}"):
            yield json.loads(payload)


def strings_at(key: str, value: object) -> set[str]:
    if isinstance(value, dict):
        inner = {text for name, item in value.items() if name != "tools" for text in strings_at(key, item)}
        return inner | ({value[key]} if isinstance(value.get(key), str) else set())
    return {text for item in value for text in strings_at(key, item)} if isinstance(value, list) else set()
