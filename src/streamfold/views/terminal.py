"""An answer drawn for people: a snapshot, or events as they come, in; lines of styled spans out.

Pure: no terminal, no colours, no clock. :func:`draw` gives the lines of a whole answer. :class:`Drawing` gives the same
lines while the answer streams: what nothing can change any more is handed out once, to be printed for good, and only
the rest is drawn again. Each line is made once, so the cost is linear however long the answer grows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from streamfold.blocks import Block, ToolCallBlock
from streamfold.errors import StreamError
from streamfold.events import (
    BlockEnd,
    BlockStart,
    ErrorEvent,
    Event,
    MediaDelta,
    ReasoningDelta,
    Restart,
    Start,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    TranscriptDelta,
    Usage,
)
from streamfold.snapshot import Snapshot
from streamfold.views.lines import BLANK, Line, Span, line_of, one_line, wrap
from streamfold.views.parts import GROWN_BY, PART_OF, CallPart, Part

__all__ = ["Drawing", "draw", "error_line", "events_of", "usage_line"]

_CHOICES_SHOWN: Final = 8
_SAY_LITTLE: Final = ("refusal", "other")
"""Stop reasons that many words of providers mean."""

_WITHHELD: Final[Mapping[str, str]] = {
    "open": "it is still streaming",
    "cut": "the stream ended inside it",
    "invalid": "its arguments are no JSON, or the provider marked it incomplete",
    "void": "the turn was refused, or the call is malformed",
    "cancelled": "it was cancelled",
}


def draw(answer: Snapshot, *, faults: bool = True) -> list[Line]:
    """The whole answer: its blocks in order, then what was withheld, the error and the usage.

    Args:
        answer: Whole or not.
        faults: Whether warnings and the error are drawn too; else how it ended is all that tells of them.
    """
    drawing = Drawing()
    for event in events_of(answer):
        drawing.push(event)
    return [*drawing.take(), *drawing.finish(answer, faults=faults)]


def events_of(answer: Snapshot) -> Iterator[Event]:
    """What a drawing has to be told of an answer that is there already."""
    yield Start(answer.surface or "unknown", answer.id, answer.model)
    for block in answer.blocks:
        yield BlockEnd(block.index, block)


class Drawing:
    """The lines of an answer as its events come.

    ``take`` hands out what will not change, each line once; ``tail`` shows the rest as it stands, which is to be drawn
    over; ``finish`` gives what is left and the lines that close an answer.
    """

    def __init__(self) -> None:
        self._start: Start | None = None
        self._headed = False
        self._open: dict[int, Part] = {}
        self._order: deque[Part] = deque()  # what still has lines to give, in index order
        self._choice = 0  # of the part that was opened last

    def push(self, event: Event) -> None:
        """Draw what the event adds."""
        match event:
            case TextDelta() | ReasoningDelta() | ToolCallDelta() | MediaDelta() | TranscriptDelta():
                self._part(event.index, GROWN_BY[type(event)]).grow(event)
            case ToolCallStart():
                self._part(event.index, CallPart, event.choice).grow(event)
            case BlockStart():
                self._part(event.index, PART_OF.get(event.kind, Part), event.choice)
            case BlockEnd():
                self._end(event.block)
            case Start():
                self._begin(event)
            case Restart():
                self._restart(event)
            case _:
                return

    def take(self, width: int | None = None) -> list[Line]:
        """The lines that have become final since the last call.

        Args:
            width: In columns. Rows of a line that still grows are final too, once it is this wide. None: whole lines.
        """
        lines: list[Line] = []
        while self._order:
            part = self._order[0]
            lines += part.take(width)
            if not part.ended:
                break
            self._order.popleft()
        if lines and not self._headed:
            self._headed = True
            lines = [*self._head(), *lines]
        return lines

    def tail(self, width: int, height: int) -> list[Line]:
        """The rows that may still change, as they stand: the last ``height`` of them at ``width`` columns."""
        rows: deque[Line] = deque()
        for part in reversed(self._order):
            rows.extendleft(_rows_upwards(part.last(width, height), width))
            if len(rows) >= height:
                break
        if rows and not self._headed:
            rows.extendleft(_rows_upwards(self._head(), width))
        return list(islice(rows, max(0, len(rows) - height), None))

    def finish(self, answer: Snapshot, *, faults: bool = True) -> list[Line]:
        """The lines that were not taken yet, blocks as ``answer`` has them, and those that close the answer."""
        for block in answer.blocks if self._open else ():
            if block.index in self._open:
                self._end(block)
        lines = self.take()
        if not self._headed:
            lines = self._head()
        return [*lines, BLANK, *_closing(answer, faults=faults)]

    def _begin(self, start: Start) -> None:
        before = self._start
        if before is not None:
            start = Start(start.surface, start.id or before.id, start.model or before.model)
        self._start = start

    def _restart(self, event: Restart) -> None:
        self._open.clear()
        self._order.clear()
        note = Part()
        note.lead = [BLANK]
        note.flow.add_line(line_of(f"restarted ({one_line(event.reason)}): what stands above is void", "note"))
        note.ended = True
        self._order.append(note)

    def _end(self, block: Block) -> None:
        self._part(block.index, PART_OF.get(block.type, Part), block.choice).end(block)
        del self._open[block.index]

    def _part(self, index: int, kind: type[Part], choice: int = 0) -> Part:
        part = self._open.get(index)
        if part is None:
            part = self._open[index] = kind()
            part.lead = [BLANK] if choice == self._choice else [BLANK, line_of(f"── choice {choice} ──", "dim"), BLANK]
            self._choice = choice
            self._order.append(part)
        return part

    def _head(self) -> list[Line]:
        start = self._start
        names = [start.surface, start.model, start.id] if start is not None else []
        return [line_of(" · ".join(one_line(name) for name in names if name), "dim")] if names else []


def _rows_upwards(lines: list[Line], width: int) -> Iterator[Line]:
    return (row for line in reversed(lines) for row in reversed(wrap(line, width)))


# -- the end of a drawing ---------------------------------------------------------------------------------------------


def _closing(answer: Snapshot, *, faults: bool) -> Iterator[Line]:
    for block in answer.blocks:
        if isinstance(block, ToolCallBlock) and block.state in _WITHHELD:
            name, why = Span(one_line(block.name), "name"), Span(f": {_WITHHELD[block.state]}", "error")
            yield Line((Span("withheld ", "error"), name, Span(f"  {one_line(block.id)}", "dim"), why))
    for warning in answer.warnings if faults else ():
        yield line_of(f"warning: {error_line(warning)}", "note")
    if answer.error is not None and faults:
        yield line_of(f"error: {error_line(answer.error)}", "error")
    yield line_of(usage_line(answer), "dim")


def error_line(error: ErrorEvent) -> str:
    """What went wrong, on one line."""
    return one_line(str(StreamError(error))) + (" (may be retried)" if error.fatal and error.retryable else "")


def usage_line(answer: Snapshot) -> str:
    """How the answer ended and what it cost, on one line."""
    words: list[str] = [answer.outcome, *_reasons(answer)]
    return " · ".join([*words, *(_counts(answer.usage) if answer.usage is not None else ["no usage"])])


def _reasons(answer: Snapshot) -> Iterator[str]:
    """Why each choice ended; the first few of them, as a provider may number choices as it likes."""
    numbers = sorted({0, *(block.choice for block in answer.blocks)})
    for number in numbers[:_CHOICES_SHOWN]:
        stop = answer.choice(number).stop
        reason = one_line(stop.reason or stop.raw or "")
        if stop.raw and stop.reason in _SAY_LITTLE:
            reason += f" ({one_line(stop.raw)})"
        if reason:
            yield reason if len(numbers) == 1 else f"choice {number}: {reason}"
    if len(numbers) > _CHOICES_SHOWN:
        yield f"{len(numbers)} choices"


def _counts(usage: Usage) -> list[str]:
    read = {"cached": usage.cache_read_tokens, "written to the cache": usage.cache_write_tokens}
    out = {"reasoning": usage.reasoning_tokens}
    words = " + ".join(
        w for w in (_part_count("in", usage.input_tokens, read), _part_count("out", usage.output_tokens, out)) if w
    )
    total = f"{usage.total_tokens:,}" if usage.total_tokens is not None else ""
    sides = " = ".join(side for side in (words, total) if side)
    return [f"{sides} tokens"] * bool(sides) + ([f"${usage.cost_usd:.4f}"] if usage.cost_usd is not None else [])


def _part_count(name: str, count: int | None, parts: Mapping[str, int | None]) -> str:
    if count is None:
        return ""
    inner = ", ".join(f"{part:,} {word}" for word, part in parts.items() if part)
    return f"{count:,} {name}" + (f" ({inner})" if inner else "")
