"""Every recorded stream of our surfaces folds to its facts, however it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamfold
from tests.conftest import SHARED
from tests.evidence import DOUBTED, cut, differences, every_capture, lines

SIZES = (1, 17, 4096)
CAPTURES = {name: (body, facts) for name, body, facts in every_capture(SHARED)}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_folds_to_its_facts(name: str, record_property: Any) -> None:
    body, facts = CAPTURES[name]
    for provider in {facts["provider"], "auto"}:
        runs = [read(cut(body, size), provider) for size in SIZES]
        answer, events = runs[-1]
        assert not list(differences(answer, events, facts)), provider
        for other, its_events in runs[:-1]:
            assert lines(its_events) == lines(events), provider
            assert other == answer
        assert streamfold.fold(cut(body, 4096), provider) == answer
        assert streamfold.fold([body], provider, framing=facts["framing"]) == answer
    record_property("ran", "captures=1")
    record_property("ran", f"facts={len(facts)}")


def test_the_captures_are_there(shared: Path) -> None:
    bodies = [path for path in (shared / "captures").glob("*/*") if path.suffix not in (".tsv", ".jsonl")]
    assert CAPTURES.keys() == {f"{path.parent.name}/{path.name}" for path in bodies}  # jsonl: sessions of WebSockets


@pytest.mark.parametrize("name", DOUBTED)
def test_a_fact_is_doubted_where_the_body_says_otherwise(name: str, shared: Path) -> None:
    body, facts = CAPTURES[name]
    answer, events = read([body], facts["provider"])
    checked = [member for member in facts["unchecked"] if member not in DOUBTED[name]]
    found = {line.partition(":")[0] for line in differences(answer, events, {**facts, "unchecked": checked})}
    assert found == set(DOUBTED[name])


def read(chunks: list[bytes], provider: str) -> tuple[streamfold.Snapshot, list[streamfold.Event]]:
    with streamfold.iter_unified(chunks, provider) as stream:
        events = list(stream)
    return stream.snapshot(), events
