"""Every vector of the JSON preview, at every cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfold.partial_json import NOTHING, PartialJSON, parse_partial_json

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors" / "partial_json.json").read_text(encoding="utf-8")
)["vectors"]
UNFINISHED = [vector for vector in VECTORS if "finished" not in vector]


def cuts(text: str) -> Iterator[list[str]]:
    yield [text]
    for step in (1, 2, 3, 7):
        yield [text[at : at + step] for at in range(0, len(text), step)]
        yield [piece for at in range(0, len(text), step) for piece in ("", text[at : at + step])]
    for at in range(len(text) + 1):
        yield [text[:at], text[at:]]


def by_type(value: object) -> str:
    """Equal only for equal types: 1, 1.0 and True have representations of their own, and so has NOTHING."""
    return repr(value)


def due(vector: dict[str, Any]) -> tuple[str, bool, int | None]:
    return by_type(vector.get("expect", NOTHING)), vector["complete"], vector.get("error_at")


def outcome(pieces: list[str], mode: Any, *, finished: bool) -> tuple[str, bool, int | None]:
    preview = PartialJSON(mode)
    for piece in pieces:
        preview.feed(piece)
    if finished:
        preview.close()
    return by_type(preview.value), preview.complete, None if preview.error is None else preview.error.offset


def test_the_vectors_are_all_there() -> None:
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS) == 127
    assert {vector["status"] for vector in VECTORS} == {"value", "none", "error"}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_status_says_the_same_as_the_fields(vector: dict[str, Any]) -> None:
    assert (vector["status"] == "error") == ("error_at" in vector)
    assert vector["status"] != "none" or "expect" not in vector
    assert vector["status"] != "value" or "expect" in vector


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector(vector: dict[str, Any], record_property: Callable[[str, object], None]) -> None:
    record_property("ran", "vectors=1")
    for pieces in cuts(vector["input"]):
        assert outcome(pieces, vector["mode"], finished=vector.get("finished", False)) == due(vector), pieces


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_every_prefix_is_the_same_at_every_cut(vector: dict[str, Any]) -> None:
    text, mode = vector["input"], vector["mode"]
    for end in range(len(text) + 1):
        whole = outcome([text[:end]], mode, finished=False)
        for at in range(end):
            assert outcome([text[:at], text[at:end]], mode, finished=False) == whole


@pytest.mark.parametrize("vector", UNFINISHED, ids=lambda vector: vector["id"])
def test_vector_in_one_call(vector: dict[str, Any]) -> None:
    value = parse_partial_json(vector["input"], mode=vector["mode"])
    assert by_type(value) == by_type(vector.get("expect", NOTHING))
