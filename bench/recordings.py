"""The recordings that the benchmarks read, and the ways they are cut."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from streamfold import SSEParser

__all__ = ["PROVIDERS", "bodies", "cut", "frames", "payloads"]

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STREAMFOLD_SHARED", ROOT.parent / "shared"))
PROVIDERS = {"chat": "openai-chat", "responses": "openai-responses", "anthropic": "anthropic"}


def bodies(family: str, at_least: int = 0) -> list[bytes]:
    """The recorded event streams of a family that hold at least so many payloads."""
    if not SHARED.is_dir():
        sys.exit(f"no recordings at {SHARED}: set STREAMFOLD_SHARED")
    found: list[bytes] = []
    for path in sorted((SHARED / "expected").glob("*.json")):
        document = json.loads(path.read_text())
        for name, facts in document["captures"].items():
            if facts.get("family") == family and facts["framing"] == "sse":
                found.append((SHARED / "captures" / document["folder"] / name).read_bytes())
    return [body for body in found if len(payloads(body)) >= at_least]


def payloads(body: bytes) -> list[bytes]:
    """The JSON payloads of a body."""
    return [data for data in SSEParser().take(body) if not data.startswith((b"[DONE]", b":"))]


def frames(body: bytes) -> list[bytes]:
    """The body, cut after each frame."""
    end = b"\r\n\r\n" if b"\r\n\r\n" in body else b"\n\n"
    *whole, rest = body.split(end)
    return [frame + end for frame in whole] + ([rest] if rest else [])


def cut(body: bytes, size: int) -> list[bytes]:
    """The body in reads of ``size`` bytes."""
    return [body[at : at + size] for at in range(0, len(body), size)]
