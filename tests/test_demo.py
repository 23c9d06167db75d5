"""What the demo prints, letter by letter, and facts of it that the recordings themselves tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

DEMO = ROOT / "examples" / "demo.py"
RECORDINGS = sorted((ROOT / "examples" / "recordings").glob("*.sse"))
PRINTED = Path(__file__).parent / "golden" / "demo.txt"


@pytest.fixture(scope="module")
def printed() -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, DEMO], env=environment, capture_output=True, check=False, timeout=60)
    assert done.stderr == b""
    assert done.returncode == 0
    return done.stdout.decode()


def test_the_demo_prints_what_it_did(printed: str) -> None:
    """Where it prints something better now: ``python examples/demo.py > tests/golden/demo.txt``."""
    assert printed == PRINTED.read_text(encoding="utf-8")


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_each_recording_is_shown(printed: str, recording: Path) -> None:
    section = printed.split(f"━━ {recording.name} ")[1].split("\n━━ ")[0]
    body = recording.read_bytes()
    assert f"{len(body):,} bytes" in section
    assert '{"type":"start"' in section
    for name in names_of_calls(body):
        assert f"▸ {name} " in section
    assert ("truncated" in section) == ("cut" in recording.stem)
    assert ("overloaded_error" in section) == ("overloaded" in recording.stem)


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
