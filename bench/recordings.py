"""The recordings that the benchmarks read, and the ways they are cut."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from streamfold import JSONArrayStreamParser, SSEParser

__all__ = ["FAMILIES", "LONG", "Family", "bodies", "cut", "frames", "joined", "payloads"]

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STREAMFOLD_SHARED", ROOT.parent / "shared"))
LONG = 100  # payloads: an answer of a paragraph or more
SEPARATOR = b"\n,\r\n"  # Gemini's, between the items of an array


class Family(NamedTuple):
    """Recordings that are measured together.

    Attributes:
        provider: What they are read as.
        families: What the evidence calls them.
        framing: How they are framed.
        wanted: Which of them, by their bytes.
    """

    provider: str
    families: tuple[str, ...]
    framing: str = "sse"
    wanted: Callable[[bytes], bool] = bool


def _by_path(body: bytes) -> bool:
    return b'"partialArgs"' in body or b'"event_type"' in body


FAMILIES: Mapping[str, Family] = {
    "chat": Family("openai-chat", ("chat",)),
    "responses": Family("openai-responses", ("responses",)),
    "anthropic": Family("anthropic", ("anthropic",)),
    "gemini": Family("gemini", ("gemini",), wanted=lambda body: not _by_path(body)),
    "gemini by path, interactions": Family("gemini", ("gemini", "interactions"), wanted=_by_path),
    "gemini array": Family("gemini", ("gemini",), "json_array"),
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


def joined(family: Family) -> list[bytes]:
    """Long answers made of the recordings, of each dialect one: Gemini's chunks are large, and no recording is long.

    What begins an answer is taken once, and so is what ends it; all else follows one another, over and over.
    """
    kinds: dict[bool, list[bytes]] = {}
    for body in bodies(family, 2):
        kinds.setdefault(b'"event_type"' in body, []).append(body)
    return [_joined(found, family.framing) for found in kinds.values()]


def _joined(found: list[bytes], framing: str) -> bytes:
    if framing == "json_array":
        items = [item for body in found for item in payloads(body)]
        middle = [item for item in items if not _is_end(item)]
        return b"[" + SEPARATOR.join([*(middle * LONG)[:LONG], items[-1]]) + b"]"
    first, *rest = frames(found[-1])
    middle = [frame for body in found for frame in frames(body) if not _is_end(frame)]
    ends = [frame for frame in rest if _is_end(frame)]
    end = b"\n\n" if first.startswith(b"event:") else b"\r\n\r\n"  # some were kept with other line ends
    whole = [first, *(middle * LONG)[: max(LONG, len(middle))], *ends]
    return b"".join([frame.strip() + end for frame in whole if frame.strip()])


def _is_end(data: bytes) -> bool:
    return any(word in data for word in (b'"finishReason"', b'"interaction.', b"[DONE]", b'"error"'))


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
