"""Every vector of the JSON-array framing, at every cut, by both faces of the parser."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfold.errors import FramingError
from streamfold.framing.json_array import JSONArrayStreamParser

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors" / "json_array.json").read_text())[
    "vectors"
]
SHORT = 300  # bytes; longer ones are not split at every place


def wire(vector: dict[str, Any]) -> bytes:
    if "parts" in vector:
        return "".join(text * times for text, times in vector["parts"]).encode()
    return vector["text"].encode() if "text" in vector else base64.b64decode(vector["bytes_b64"])


def cuts(data: bytes) -> Iterator[list[bytes]]:
    yield [data]
    for step in (1, 2, 3, 7, 64):
        yield [data[at : at + step] for at in range(0, len(data), step)]
        yield [piece for at in range(0, len(data), step) for piece in (b"", data[at : at + step])]
    if len(data) <= SHORT:
        yield from ([data[:at], data[at:]] for at in range(1, len(data)))


def iterated(chunks: list[bytes], **settings: Any) -> tuple[list[Any], FramingError | None]:
    parser = JSONArrayStreamParser(**settings)
    items: list[str] = []
    try:
        for chunk in chunks:
            parser.feed(chunk)
            items += parser
        parser.close()
        items += parser
    except FramingError as fault:
        return [json.loads(item) for item in items], fault
    return [json.loads(item) for item in items], None


def taken(chunks: list[bytes], *, fast: bool, **settings: Any) -> tuple[list[Any], FramingError | None]:
    parser = JSONArrayStreamParser(**settings)
    parser.fast = fast
    items = [item for chunk in chunks for item in parser.take(chunk)]
    items += parser.finish("eof")
    return [json.loads(item) for item in items], parser.fault


def is_due(vector: dict[str, Any], items: list[Any], fault: FramingError | None) -> bool:
    code = None if fault is None else fault.code
    if (items, code) == (vector["items"], vector["error"]):
        return True
    return items == vector.get("alt_items") and code in vector.get("alt_error", ())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any], record_property: Callable[[str, object], None]) -> None:
    record_property("ran", "vectors=1")
    bound = {"max_frame_bytes": vector["max_item_bytes"]} if "max_item_bytes" in vector else {}
    outcomes: set[tuple[Any, ...]] = set()
    for chunks in cuts(wire(vector)):
        for items, fault in (
            iterated(chunks, **bound),
            taken(chunks, fast=True, **bound),
            taken(chunks, fast=False, **bound),
        ):
            assert is_due(vector, items, fault), chunks[:4]
            outcomes.add((json.dumps(items), type(fault), fault and fault.offset, str(fault)))
    assert len(outcomes) == 1  # also where the vector allows two


def test_the_vectors_are_all_there() -> None:
    assert len(VECTORS) == 49
