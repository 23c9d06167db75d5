"""The recordings that the benchmarks read, and the ways they are cut."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from streamfold import JSONArrayStreamParser, SSEParser

__all__ = ["FAMILIES", "Family", "bodies", "cut", "frames", "payloads"]

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STREAMFOLD_SHARED", ROOT.parent / "shared"))
SEPARATOR = b"\n,\r\n"  # Gemini's, between the items of an array


class Family(NamedTuple):
    """Recordings that are measured together.

    Attributes:
        provider: What they are read as.
        families: What the evidence calls them.
        framing: How they are framed.
        long: How many payloads a long one of them has.
        wanted: Which of them, by their bytes.
    """

    provider: str
    families: tuple[str, ...]
    framing: str = "sse"
    long: int = 100
    wanted: Callable[[bytes], bool] = bool


def _by_path(body: bytes) -> bool:
    return b'"partialArgs"' in body or b'"event_type"' in body


FAMILIES: Mapping[str, Family] = {
    "chat": Family("openai-chat", ("chat",)),
    "responses": Family("openai-responses", ("responses",)),
    "anthropic": Family("anthropic", ("anthropic",)),
    # Gemini's chunks are large and few: no recording holds a hundred.
    "gemini": Family("gemini", ("gemini",), long=10, wanted=lambda body: not _by_path(body)),
    "gemini by path, interactions": Family("gemini", ("gemini", "interactions"), long=8, wanted=_by_path),
    "gemini array": Family("gemini", ("gemini",), "json_array", long=3),
}


def bodies(family: Family, at_least: int = 0) -> list[bytes]:
    """The recorded streams of a family that hold at least so many payloads."""
    if not SHARED.is_dir():
        sys.exit(f"no recordings at {SHARED}: set STREAMFOLD_SHARED")
    return [body for body in _recorded(family) if len(payloads(body)) >= max(1, at_least)]


def _recorded(family: Family) -> Iterator[bytes]:
    for path in sorted((SHARED / "expected").glob("*.json")):
        document = json.loads(path.read_text())
        for name, facts in document["captures"].items():
            if facts.get("family") in family.families and facts["framing"] == family.framing:
                body = (SHARED / "captures" / document["folder"] / name).read_bytes()
                if family.wanted(body):
                    yield body


def payloads(body: bytes) -> list[bytes]:
    """The JSON payloads of a body."""
    if body[:1] == b"[":
        return JSONArrayStreamParser().take(body)
    return [data for data in SSEParser().take(body) if not data.startswith((b"[DONE]", b":"))]


def frames(body: bytes) -> list[bytes]:
    """The body, cut as frames come: after each one, the items of an array before their separator."""
    if body[:1] == b"[":
        first, *rest = body.split(SEPARATOR)
        return [first, *(SEPARATOR + item for item in rest)]
    end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    *whole, rest = body.split(end)
    return [frame + end for frame in whole] + ([rest] if rest else [])


def cut(body: bytes, size: int) -> list[bytes]:
    """The body in reads of ``size`` bytes."""
    return [body[at : at + size] for at in range(0, len(body), size)]
