"""The vectors in this repository are those of the shared evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["sse", "json_array", "partial_json"])
def test_the_vectors_are_those_of_the_shared_evidence(name: str, shared: Path) -> None:
    here = Path(__file__).parent / "vectors" / f"{name}.json"
    assert json.loads(here.read_text()) == json.loads((shared / "conformance" / f"{name}.json").read_text())
