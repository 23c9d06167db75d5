"""Fuzz the framings and the normalisers for a bounded time.

    python -m fuzz.run [TARGET…] [--seconds N] [--seed N]

Starts from the recordings under ``examples/recordings`` and from what was found before, and changes them at random;
``fuzz/guided.py`` lets atheris choose by coverage. What breaks a promise is made smaller and written to
``fuzz/found/TARGET/``, and the run ends with exit code 1. The tests read all files there: what was found stays found.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fuzz.mutate import mutate
from fuzz.targets import TARGETS, Target
from tests.wires_more import CONVERSE, MORE_WIRES, converse_bytes, invoke_bytes

ROOT: Final = Path(__file__).resolve().parent.parent
FOUND: Final = Path(__file__).resolve().parent / "found"


def seeds(name: str) -> list[bytes]:
    """Where to start from: whole bodies, or their payloads a line each."""
    bodies = [
        path.read_bytes() for path in sorted((ROOT / "examples" / "recordings").iterdir()) if path.suffix != ".md"
    ]
    bodies += made_by_hand(name)
    if name.startswith("payloads-"):
        bodies = [b"\n".join(_payloads(body)) for body in bodies]
    elif name == "partial_json":
        bodies = [payload for body in bodies for payload in _payloads(body)]
    else:
        bodies = [b"\x06" + body for body in bodies]
    return [*bodies, *(path.read_bytes() for path in sorted((FOUND / name).glob("*")))]


def made_by_hand(name: str) -> list[bytes]:
    """Bodies of the surfaces that no recording is of: binary frames, lines, arrays of their payloads."""
    streams = [stream for wires in MORE_WIRES.values() for stream in wires.values()]
    if name in ("eventstream", "stream-bedrock-converse", "stream-auto"):
        return [converse_bytes(stream) for stream in CONVERSE.values()]
    if name == "stream-bedrock-invoke":
        return [invoke_bytes(stream) for stream in streams]
    if name in ("jsonl", "stream-ollama"):
        return [b"\n".join(json.dumps(payload).encode() for payload in stream) for stream in streams]
    provider = name.removeprefix("payloads-").removeprefix("stream-")
    return [json.dumps(stream).encode() for stream in MORE_WIRES.get(provider, {}).values()]


def _payloads(body: bytes) -> Iterator[bytes]:
    if body.lstrip()[:1] == b"[":
        yield from (json.dumps(item, separators=(",", ":")).encode() for item in json.loads(body))
        return
    for line in body.splitlines():
        if line.startswith(b"data: {"):
            yield line[6:]


def words(inputs: list[bytes]) -> tuple[Any, ...]:
    """Values that the wire itself uses: its words find more than ours."""
    found: set[str] = set()
    for data in inputs:
        for payload in _payloads(data):
            try:
                found.update(_texts(json.loads(payload)))
            except ValueError:
                continue
    return tuple(sorted(found))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and len(value) < 40:
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def keep(name: str, data: bytes) -> Path:
    folder = FOUND / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    return path


def broken(target: Target, data: bytes) -> bool:
    try:
        target(data)
    except Exception:  # noqa: BLE001
        return True
    return False


def smaller(target: Target, data: bytes) -> bytes:
    """The input without the lines, then without the bytes, that it breaks without."""
    for apart in (b"\n", None):
        parts = data.split(apart) if apart else [data[at : at + 1] for at in range(len(data))]
        size = max(1, len(parts) // 2)
        while size:
            at = 0
            while at < len(parts) and len(parts) < 4000:
                fewer = parts[:at] + parts[at + size :]
                if broken(target, (apart or b"").join(fewer)):
                    parts = fewer
                else:
                    at += size
            size //= 2
        data = (apart or b"").join(parts)
    return data


def run(name: str, seconds: float, seed: int) -> int:
    """How many inputs were tried; raises what the target raised, after the input was kept."""
    target, chance = TARGETS[name], random.Random(seed)
    inputs = seeds(name)
    known = words([*inputs, *seeds("payloads-auto")])
    end, tried = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = mutate(chance.choice(inputs), chance, known)
        tried += 1
        try:
            target(data)
        except Exception:
            path = keep(name, smaller(target, data))
            print(f"{name}: broken by {path.relative_to(ROOT)}", file=sys.stderr)
            raise
        if chance.random() < 0.02:
            inputs.append(data)  # some changes build on others
    return tried


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--seed", type=int, default=None, help="the same changes again")
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}")
    seed = random.randrange(2**32) if options.seed is None else options.seed
    failed = False
    for name in options.targets or TARGETS:
        try:
            tried = run(name, options.seconds, seed)
        except Exception:  # noqa: BLE001
            traceback.print_exc(limit=-4)
            failed = True
        else:
            print(f"{name}: {tried} inputs, seed {seed}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
