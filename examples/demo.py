"""The main job, shown on the recordings beside this file: bytes in, events out, folded into an answer.

    python examples/demo.py

Each recording is read a few bytes at a time, so that frames, JSON and characters are all cut in two; the answer is the
same as in one read, and the demo stops with an error if it is not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import streamfold
from streamfold.views.lines import Line, Style, plain, wrap
from streamfold.views.terminal import draw

RECORDINGS = Path(__file__).parent / "recordings"
SHOWN = {  # in this order, with the provider whose stream it is and the size of a read, in bytes
    "openai-responses-function-call.sse": ("openai-responses", 7),
    "openai-chat-parallel-tools.sse": ("openai-chat", 13),
    "deepseek-reasoning.sse": ("openai-chat", 3),
    "anthropic-thinking-tool-use.sse": ("anthropic", 11),
    "anthropic-overloaded.sse": ("anthropic", 5),
    "openai-responses-cut.sse": ("openai-responses", 1),
}
EVENTS_SHOWN = 6
WIDTH = 88
COLOURS: dict[Style, str] = {
    "dim": "2",
    "reasoning": "2;3",
    "name": "1;36",
    "key": "36",
    "value": "32",
    "note": "33",
    "error": "1;31",
}


def main() -> None:
    for name, (provider, size) in SHOWN.items():
        body = (RECORDINGS / name).read_bytes()
        show(name, body, provider, size)


def show(name: str, body: bytes, provider: str, size: int) -> None:
    """One recording: what is read, its first events, and the answer that they fold into."""
    with streamfold.iter_unified(cut(body, size), provider, raw="none") as stream:
        events = list(stream)
    answer = stream.snapshot()
    if answer != streamfold.fold(body, provider):
        raise SystemExit(f"{name}: reads of {size} bytes changed the answer")

    frames = sum(1 for _ in streamfold.parse_event_stream([body]))
    print(paint(f"━━ {name} ".ljust(WIDTH, "━"), "name"))
    print(f"{len(body):,} bytes in reads of {size}, {frames} frames, {len(events)} events:\n")
    for event in events[:EVENTS_SHOWN]:
        print(paint("  " + shortened(streamfold.encode_event(event).decode(), WIDTH - 2), "dim"))
    print(paint(f"  … and {len(events) - EVENTS_SHOWN} more. Folded:\n", "dim"))
    for line in draw(answer):
        for row in wrap(line, WIDTH - 2):
            print(f"  {coloured(row)}".rstrip())
    print()


def cut(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def coloured(row: Line) -> str:
    """The row in colours on a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        return plain(row)
    return paint(row.gutter, "dim") + "".join(paint(span.text, span.style) for span in row.spans)


def paint(text: str, style: Style) -> str:
    return f"\x1b[{COLOURS[style]}m{text}\x1b[0m" if style and sys.stdout.isatty() else text


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
