"""The main job, shown on the recordings beside this file: bytes in, events out, folded into an answer.

    .venv/bin/python examples/demo.py                          every surface over HTTP, and faults: 64 lines
    .venv/bin/python examples/demo.py gemini-partial-args.sse  this recording in full, and any others that are named

COLUMNS says how wide the lines may be where no terminal does. Each recording is read a few bytes at a time, so that
frames, JSON and characters are all cut in two; the answer is the same as in one read, and the demo stops with an error
if it is not.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import streamfold
from streamfold.views.lines import Line, Style, cells, one_line, plain, wrap
from streamfold.views.terminal import draw, error_line, usage_line

RECORDINGS = Path(__file__).parent / "recordings"
SHOWN = {  # in this order, with the provider whose stream it is and the size of a read, in bytes
    "openai-responses-function-call.sse": ("openai-responses", 7),
    "openai-chat-parallel-tools.sse": ("openai-chat", 13),
    "anthropic-thinking-tool-use.sse": ("anthropic", 11),
    "gemini-thought-signature.sse": ("gemini", 5),
    "gemini-thought-signature.json": ("gemini", 17),
    "gemini-interactions-function-call.sse": ("gemini", 3),
    "xai-chat-reasoning-tool-call.sse": ("xai", 19),
    "xai-responses-reasoning-function-call.sse": ("xai", 23),
    "xai-messages-index.sse": ("xai", 2),
    "bedrock-converse.bin": ("bedrock-converse", 9),
    "cohere-tool-call.sse": ("cohere", 8),
    "ollama-chat.jsonl": ("ollama", 6),
    "gemini-blocked.sse": ("gemini", 4),
    "anthropic-overloaded.sse": ("auto", 5),
    "openai-responses-cut.sse": ("auto", 1),
}
LEGEND = "│ reasoning, ▸ tool call, … cut to fit; “B by 7”: bytes, in reads of seven"
EVENTS_SHOWN = 6
WIDTH = max(40, shutil.get_terminal_size((80, 24)).columns)  # COLUMNS, else the terminal, else 80
COLOURS: dict[Style, str] = {
    "dim": "2",
    "reasoning": "2;3",
    "name": "1;36",
    "key": "36",
    "value": "32",
    "note": "33",
    "error": "1;31",
}


def main(names: list[str]) -> None:
    if names:
        for name in names:
            show(name, recording(name), *SHOWN.get(name, ("auto", 7)))
        return
    print(paint(shortened(LEGEND), "dim"))
    before: tuple[streamfold.Block, ...] = ()
    for name, (provider, size) in SHOWN.items():
        before = show_briefly(name, recording(name), provider, size, before)
    print(paint(shortened("In full: .venv/bin/python examples/demo.py NAME, of those in examples/recordings"), "dim"))


def recording(name: str) -> bytes:
    try:
        return (RECORDINGS / name).read_bytes()
    except OSError:
        raise SystemExit(f"no recording is called {name}") from None


def read(name: str, body: bytes, provider: str, size: int) -> tuple[list[streamfold.Event], streamfold.Snapshot]:
    """The recording in reads of some size: its events, and the answer that they fold into."""
    with streamfold.iter_unified(cut(body, size), provider, raw="none") as stream:
        events = list(stream)
    answer = stream.snapshot()
    if answer != streamfold.fold(body, provider):
        raise SystemExit(f"{name}: reads of {size} bytes changed the answer")
    return events, answer


def show_briefly(
    name: str, body: bytes, provider: str, size: int, before: tuple[streamfold.Block, ...]
) -> tuple[streamfold.Block, ...]:
    """One recording in a line for each kind of block; those of the recording before it are not shown twice."""
    events, answer = read(name, body, provider, size)
    print(
        paint(name, "name") + paint(f"  {shortened(counts(answer, body, size, events), WIDTH - len(name) - 2)}", "dim")
    )
    if answer.blocks and answer.blocks == before:
        print(shortened("  the same answer, block by block, from an array"))
    else:
        for text, style in summary(answer):
            print(paint(shortened(f"  {text}"), style))
    if answer.error is None:
        print(paint(shortened(f"  {usage_line(answer)}"), "dim"))
    else:
        print(paint(shortened(f"  {answer.outcome} · {error_line(answer.error)}"), "error"))
    return answer.blocks


def counts(answer: streamfold.Snapshot, body: bytes, size: int, events: list[streamfold.Event]) -> str:
    return f"{answer.surface} · {len(body):,} B by {size}, {len(events)} events"


def summary(answer: streamfold.Snapshot) -> Iterator[tuple[str, Style]]:
    if answer.reasoning:
        yield f"│ {answer.reasoning}", "reasoning"
    if answer.text:
        yield answer.text, ""
    for call in answer.tool_calls[:1]:
        others = f" (and {len(answer.tool_calls) - 1} more)" if len(answer.tool_calls) > 1 else ""
        yield f"▸ {call.name}{others} {call.arguments}", "key"
    for call in answer.withheld_calls:
        yield f"withheld ({call.state}) {call.name} {call.arguments}", "error"


def show(name: str, body: bytes, provider: str, size: int) -> None:
    """One recording: what is read, its first events, and the answer."""
    events, answer = read(name, body, provider, size)
    frames = sum(1 for frame, _ in streamfold.iter_traced(body, provider) if frame is not None)
    print(paint(f"━━ {name} ".ljust(WIDTH, "━"), "name"))
    print(f"{len(body):,} bytes in reads of {size}, {frames} frames, {len(events)} events:\n")
    for event in events[:EVENTS_SHOWN]:
        print(paint("  " + shortened(streamfold.encode_event(event).decode(), WIDTH - 2), "dim"))
    print(paint(f"  … and {max(0, len(events) - EVENTS_SHOWN)} more. Folded:\n", "dim"))
    for line in draw(answer):
        for row in wrap(line, WIDTH - 2):
            print(f"  {coloured(row)}".rstrip())
    print()


def cut(body: bytes, size: int) -> Iterator[bytes]:
    return (body[at : at + size] for at in range(0, len(body), size))


def shortened(text: str, width: int = WIDTH) -> str:
    """The text on one line of so many columns."""
    indent = text[: len(text) - len(text.lstrip())]
    text = indent + one_line(text)
    if cells(text) <= width:
        return text
    while cells(text) >= width:
        text = text[:-1]
    return text + "…"


def coloured(row: Line) -> str:
    """The row in colours on a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        return plain(row)
    return paint(row.gutter, "dim") + "".join(paint(span.text, span.style) for span in row.spans)


def paint(text: str, style: Style) -> str:
    return f"\x1b[{COLOURS[style]}m{text}\x1b[0m" if style and sys.stdout.isatty() else text


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
