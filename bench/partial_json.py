"""What a preview of tool-call arguments costs: pieces of 20 characters, the value taken after every piece.

Run ``python bench/partial_json.py``. Linear means that the last column stays flat while the text grows.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable

from streamfold.partial_json import PartialJSON

PIECE = 20  # characters
ROUNDS = 5
SIZES_KB = (50, 100, 200, 400)


def one_string(size: int) -> str:
    line = "def total(rows):\n    return sum(row['amount'] for row in rows if row)  # all of them\n"
    return json.dumps({"path": "src/report.py", "content": line * (size // len(line))})


def edits(size: int) -> str:
    edit = {
        "old": "return sum(row for row in rows)\n",
        "new": 'return sum(row["amount"] for row in rows)\n',
        "all": True,
    }
    return json.dumps({"edits": [edit] * (size // len(json.dumps(edit)))})


def objects(size: int) -> str:
    item = {"id": 1234, "ok": True, "tags": ["a", "b"], "at": {"x": 1, "y": 2}}
    return json.dumps({"items": [item] * (size // len(json.dumps(item)))})


def numbers(size: int) -> str:
    return json.dumps({"series": [number * 37 % 10_000 for number in range(size // 6)]})


SHAPES: dict[str, Callable[[int], str]] = {
    "one string": one_string,
    "edits": edits,
    "objects": objects,
    "numbers": numbers,
}


def seconds(pieces: list[str]) -> float:
    """Processor time of one preview, best of a few rounds: other work on the machine moves it little."""
    best = float("inf")
    for _ in range(ROUNDS):
        gc.collect()
        preview = PartialJSON()
        began = time.thread_time()
        for piece in pieces:
            preview.feed(piece)
            _ = preview.value
        best = min(best, time.thread_time() - began)
        if not preview.complete:
            raise SystemExit(f"the preview is wrong: {preview.error}")
    return best


def main() -> None:
    print(f"{'shape':<12}{'KB':>6}{'pieces':>9}{'ms':>9}{'us/piece':>10}")
    for name, shape in SHAPES.items():
        for size_kb in SIZES_KB:
            text = shape(size_kb * 1000)
            pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
            took = seconds(pieces)
            print(f"{name:<12}{size_kb:>6}{len(pieces):>9}{took * 1e3:>9.1f}{took / len(pieces) * 1e6:>10.2f}")


if __name__ == "__main__":
    main()
