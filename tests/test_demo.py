"""What the demo prints, letter by letter, and facts of it that the recordings themselves tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamfold.views.lines import cells
from tests.conftest import RECORDED, ROOT

DEMO = ROOT / "examples" / "demo.py"
PRINTED = Path(__file__).parent / "golden" / "demo.txt"
SURFACES = {"openai-responses", "openai-chat", "anthropic", "gemini", "gemini-interactions"}
ROWS, COLUMNS = 50, 100


def run(*names: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
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
    """Where it prints something better now: ``python examples/demo.py > tests/golden/demo.txt``."""
    assert screen == PRINTED.read_text(encoding="utf-8")


def test_it_shows_every_surface_on_one_screen(screen: str) -> None:
    rows = screen.splitlines()
    assert len(rows) <= ROWS
    assert max(map(cells, rows)) <= COLUMNS
    heads = [row for row in rows if " bytes in reads of " in row]
    assert {head.split("  ")[1].split(" · ")[0] for head in heads} == SURFACES
    assert {"xai-chat", "xai-responses", "xai-messages"} <= {"-".join(head.split("-")[:2]) for head in heads}
    assert sum(".json  " in head for head in heads) == 1


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
    names: set[str] = set()
    for line in body.decode("utf-8", "replace").splitlines():
        if line.startswith("data: {") and line.endswith("}"):
            found = json.loads(line.removeprefix("data: "))
            names |= {name for name in strings_at("name", found) if "_" in name}
    return names


def strings_at(key: str, value: object) -> set[str]:
    if isinstance(value, dict):
        inner = {text for name, item in value.items() if name != "tools" for text in strings_at(key, item)}
        return inner | ({value[key]} if isinstance(value.get(key), str) else set())
    return {text for item in value for text in strings_at(key, item)} if isinstance(value, list) else set()
