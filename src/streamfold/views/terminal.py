"""An answer drawn for people: a snapshot, or events as they come, in; lines of styled spans out.

Pure: no terminal, no colours, no clock. :func:`draw` gives the lines of a whole answer. :class:`Drawing` gives the same
lines while the answer streams: what nothing can change any more is handed out once, to be printed for good, and only
the rest is drawn again. Each line is made once, so the cost is linear however long the answer grows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeAlias

from streamfold.blocks import (
    ApprovalBlock,
    Block,
    Citation,
    MediaBlock,
    OtherBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    TranscriptBlock,
    TranscriptSource,
)
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
from streamfold.views.arguments import Arguments
from streamfold.views.lines import BLANK, Flow, Line, Span, Style, neutral, one_line, wrap

__all__ = ["Drawing", "draw", "error_line", "size", "usage_line"]

Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta | MediaDelta | TranscriptDelta

_CHOICES_SHOWN: Final = 8
_RESULT_LINES: Final = 8  # of what a provider-run tool gave back: whole pages may come
_RESULT_CHARACTERS: Final = 600

_WITHHELD: Final[Mapping[str, str]] = {
    "open": "it is still streaming",
    "cut": "the stream ended inside it",
    "invalid": "its arguments are no JSON, or the provider marked it incomplete",
    "void": "the turn was refused, or the call is malformed",
    "cancelled": "it was cancelled",
}


def draw(answer: Snapshot) -> list[Line]:
    """The whole answer: its blocks in order, then what was withheld, the error and the usage."""
    drawing = Drawing()
    drawing.push(Start(answer.surface or "unknown", answer.id, answer.model))
    for block in answer.blocks:
        drawing.push(BlockEnd(block.index, block))
    return [*drawing.take(), *drawing.finish(answer)]


class Drawing:
    """The lines of an answer as its events come.

    ``take`` hands out what will not change, each line once; ``tail`` shows the rest as it stands, which is to be drawn
    over; ``finish`` gives what is left and the lines that close an answer.
    """

    def __init__(self) -> None:
        self._start: Start | None = None
        self._headed = False
        self._open: dict[int, _Part] = {}
        self._order: deque[_Part] = deque()  # what still has lines to give, in index order
        self._choice = 0  # of the part that was opened last

    def push(self, event: Event) -> None:
        """Draw what the event adds."""
        match event:
            case TextDelta() | ReasoningDelta() | ToolCallDelta() | MediaDelta() | TranscriptDelta():
                self._part(event.index, _GROWN_BY[type(event)]).grow(event)
            case ToolCallStart():
                self._part(event.index, _Call, event.choice).grow(event)
            case BlockStart():
                self._part(event.index, _PART_OF.get(event.kind, _Part), event.choice)
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

    def finish(self, answer: Snapshot) -> list[Line]:
        """The lines that were not taken yet, blocks as ``answer`` has them, and those that close the answer."""
        for block in answer.blocks if self._open else ():
            if block.index in self._open:
                self._end(block)
        lines = self.take()
        if not self._headed:
            lines = self._head()
        return [*lines, BLANK, *_closing(answer)]

    def _begin(self, start: Start) -> None:
        before = self._start
        if before is not None:
            start = Start(start.surface, start.id or before.id, start.model or before.model)
        self._start = start

    def _restart(self, event: Restart) -> None:
        self._open.clear()
        self._order.clear()
        note = _Part(0)
        note.lead = [BLANK]
        note.flow.add_line(_line(f"restarted ({one_line(event.reason)}): what stands above is void", "note"))
        note.ended = True
        self._order.append(note)

    def _end(self, block: Block) -> None:
        self._part(block.index, _PART_OF.get(block.type, _Part), block.choice).end(block)
        del self._open[block.index]

    def _part(self, index: int, kind: type[_Part], choice: int = 0) -> _Part:
        part = self._open.get(index)
        if part is None:
            part = self._open[index] = kind(choice)
            part.lead = [BLANK] if choice == self._choice else [BLANK, _line(f"── choice {choice} ──", "dim"), BLANK]
            self._choice = choice
            self._order.append(part)
        return part

    def _head(self) -> list[Line]:
        start = self._start
        names = [start.surface, start.model, start.id] if start is not None else []
        return [_line(" · ".join(one_line(name) for name in names if name), "dim")] if names else []


def _rows_upwards(lines: list[Line], width: int) -> Iterator[Line]:
    return (row for line in reversed(lines) for row in reversed(wrap(line, width)))


# -- the parts of a drawing: one a block ------------------------------------------------------------------------------


class _Part:
    """The lines of one block, of a kind that is drawn when it is whole."""

    gutter = ""

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.flow = Flow(self.gutter)
        self.lead: list[Line] = []  # stands before its first line
        self.ended = False
        self._pieces: list[str] = []  # of the text as it was drawn
        self._given = False  # some of its lines were taken

    def grow(self, event: Delta) -> None:
        """The block grows by a delta; a kind that does not know it waits for the whole block."""

    def add(self, text: str) -> None:
        """The text of the block grows."""
        self._pieces.append(text)
        self.put(text)

    def put(self, text: str) -> None:
        """Draw more text."""
        self.flow.add(text)

    def begin_anew(self) -> None:
        """What was drawn does not hold: draw the block again, in its place if nobody has seen it for good."""
        self.flow = Flow(self.gutter)
        if self._given:
            self.flow.add_line(_line("the provider corrects this block:", "note"))
        self._pieces = []

    def end(self, block: Block) -> None:
        """The block is whole: draw what it has beyond its text so far."""
        text = self.text_of(block)
        drawn = "".join(self._pieces)
        if not text.startswith(drawn):
            self.begin_anew()
            drawn = ""
        if len(text) > len(drawn):
            self.add(text[len(drawn) :])
        self.flow.close()
        for line in self.closing(block):
            self.flow.add_line(line)
        self.ended, self._pieces = True, []

    def text_of(self, block: Block) -> str:
        """The text of the block that its deltas spell."""
        return ""

    def closing(self, block: Block) -> Iterable[Line]:
        """The lines that only the whole block has."""
        match block:
            case ToolResultBlock():
                yield from _result_lines(block)
            case ApprovalBlock():
                yield Line(
                    (Span("? ", "note"), Span(one_line(block.name), "name"), Span(" waits for approval", "note"))
                )
                yield from _shortened(block.arguments)
            case OtherBlock():
                yield _line(f"· {one_line(block.kind)}", "dim")
                yield from _shortened(block.raw or "")
            case _:
                return

    def take(self, width: int | None) -> list[Line]:
        """The lines that will not change, each once."""
        if width is not None:
            self.flow.settle(width)
        if not self.flow.whole:
            return []
        lines = [*self.lead, *self.flow.whole]
        self.flow.whole.clear()
        self.lead, self._given = [], True
        return lines

    def last(self, width: int, height: int) -> list[Line]:
        """The last lines that were not taken yet, ``height`` of them at most and what leads to them."""
        self.flow.settle(width)
        whole = self.flow.whole
        lines = [*islice(whole, max(0, len(whole) - height), None), *self.flow.open_lines()]
        return [*self.lead, *lines] if lines else []


class _Text(_Part):
    def grow(self, event: Delta) -> None:
        if isinstance(event, TextDelta):
            self.add(event.text)

    def text_of(self, block: Block) -> str:
        return block.text if isinstance(block, TextBlock) else ""

    def closing(self, block: Block) -> Iterable[Line]:
        if isinstance(block, TextBlock):
            yield from _sources(block.citations)
        if not block.complete:
            yield _line("(cut off)", "note", self.gutter)


class _Refusal(_Text):
    def put(self, text: str) -> None:
        if not self.flow.begun:
            self.flow.add_line(_line("declined:", "note"))
        self.flow.add(text)

    def text_of(self, block: Block) -> str:
        return block.text if isinstance(block, RefusalBlock) else ""


class _Reasoning(_Part):
    gutter = "│ "

    def __init__(self, choice: int) -> None:
        super().__init__(choice)
        self._number = 0  # of the part that is drawn

    def grow(self, event: Delta) -> None:
        if not isinstance(event, ReasoningDelta):
            return
        if event.part != self._number:  # parts stand apart by an empty line
            self._number = event.part
            if self._pieces:
                self.add("\n\n")
        self.add(event.text)

    def put(self, text: str) -> None:
        self.flow.add(text, "reasoning")

    def text_of(self, block: Block) -> str:
        return block.text if isinstance(block, ReasoningBlock) else ""

    def closing(self, block: Block) -> Iterable[Line]:
        if isinstance(block, ReasoningBlock) and not block.text:
            words = ["redacted"] if block.redacted else []
            words += [f"encrypted, {len(block.encrypted):,} characters"] if block.encrypted else []
            words += ["signed"] if block.signature else []
            if words:
                yield _line(f"(reasoning: {', '.join(words)})", "reasoning", self.gutter)
        if not block.complete:
            yield _line("(cut off)", "note", self.gutter)


class _Call(_Part):
    gutter = "  "

    def __init__(self, choice: int) -> None:
        super().__init__(choice)
        self._heading: tuple[Span, ...] = ()
        self._json: bool | None = None
        self._arguments = Arguments()

    def grow(self, event: Delta) -> None:
        if isinstance(event, ToolCallStart):
            self._begin(event)
        elif isinstance(event, ToolCallDelta):
            self.add(event.delta)

    def _begin(self, call: ToolCallStart | ToolCallBlock) -> None:
        heading = _heading(call)
        if heading == self._heading:
            return
        drawn, self._heading = self._heading, heading
        self._json = False if call.kind == "custom" else None  # custom tools take text, whatever it looks like
        if drawn:
            self.begin_anew()
        else:
            self._draw_heading()

    def begin_anew(self) -> None:
        super().begin_anew()
        self._draw_heading()

    def put(self, text: str) -> None:
        for span in self._arguments.feed(text):
            self.flow.add(span.text, span.style)

    def end(self, block: Block) -> None:
        if isinstance(block, ToolCallBlock):
            self._begin(block)
        super().end(block)

    def text_of(self, block: Block) -> str:
        return block.arguments if isinstance(block, ToolCallBlock) else ""

    def _draw_heading(self) -> None:
        self._arguments = Arguments(json=self._json)
        self.flow.add_line(Line(self._heading))


class _Media(_Part):
    def __init__(self, choice: int) -> None:
        super().__init__(choice)
        self._bytes = 0

    def grow(self, event: Delta) -> None:
        if isinstance(event, MediaDelta):
            self._bytes += len(event.data)
            self.flow.set_open(Span(_media(event.mime_type, self._bytes, event.url), "name"))

    def end(self, block: Block) -> None:
        self.flow.set_open()
        super().end(block)

    def closing(self, block: Block) -> Iterable[Line]:
        if isinstance(block, MediaBlock):
            yield _line(_media(block.mime_type, len(block.data), block.url), "name")


class _Transcript(_Part):
    gutter = "♪ "

    def __init__(self, choice: int) -> None:
        super().__init__(choice)
        self._text = ""

    def grow(self, event: Delta) -> None:
        if isinstance(event, TranscriptDelta):  # it may take the place of words before it: all stay open
            self._text = self._text[: max(0, len(self._text) - event.replaces)] + event.text
            self.flow.set_open(Span(neutral(" ".join(self._text.split())), _SPOKEN[event.source]))

    def take(self, width: int | None) -> list[Line]:
        return super().take(width if self.ended else None)

    def last(self, width: int, height: int) -> list[Line]:
        lines = self.flow.open_lines()
        return [*self.lead, *lines] if lines else []

    def end(self, block: Block) -> None:
        self.flow.set_open()
        if isinstance(block, TranscriptBlock):
            self.flow.add(block.text, _SPOKEN[block.source])
        super().end(block)


_SPOKEN: Final[Mapping[TranscriptSource, Style]] = {"model": "", "user": "reasoning"}

_PART_OF: Final[Mapping[str, type[_Part]]] = {
    "text": _Text,
    "refusal": _Refusal,
    "reasoning": _Reasoning,
    "tool_call": _Call,
    "media": _Media,
    "transcript": _Transcript,
}
_GROWN_BY: Final[Mapping[type[Delta], type[_Part]]] = {
    TextDelta: _Text,
    ReasoningDelta: _Reasoning,
    ToolCallDelta: _Call,
    MediaDelta: _Media,
    TranscriptDelta: _Transcript,
}


def _heading(call: ToolCallStart | ToolCallBlock) -> tuple[Span, ...]:
    words = [call.kind] if call.kind not in ("function", call.name) else []
    words += ["run by the provider"] if call.executor == "provider" else []
    more = f"  {one_line(call.id)}" + "".join(f" · {one_line(word)}" for word in words)
    return Span("▸ ", "name"), Span(one_line(call.name) or "(no name)", "name"), Span(more, "dim")


def _media(mime_type: str | None, count: int, url: str | None) -> str:
    where = one_line(url) if url else ""
    return "▣ " + " · ".join(
        word for word in (one_line(mime_type or "media"), size(count) if count else "", where) if word
    )


def _line(text: str, style: Style, gutter: str = "") -> Line:
    return Line((Span(text, style),), gutter)


def _sources(citations: Iterable[Citation]) -> Iterator[Line]:
    """Each source once, in the order of their first use."""
    seen = dict.fromkeys((c.title, c.url) if c.title or c.url else (c.cited_text, None) for c in citations)
    for number, source in enumerate(seen, 1):
        words = [one_line(word, 200) for word in source if word]
        yield _line(f"[{number}] {' · '.join(words)}", "dim", "  ")


def _result_lines(block: ToolResultBlock) -> Iterator[Line]:
    outcome = Span(" failed", "error") if block.is_error else Span(" result", "dim")
    call = f"  {one_line(block.call_id)}" if block.call_id else ""
    yield Line((Span("◂ ", "name"), Span(one_line(block.name or "tool"), "name"), outcome, Span(call, "dim")))
    yield from _shortened(block.content or "")


def _shortened(text: str) -> Iterator[Line]:
    """JSON text laid out, with a word on how much of it is left out."""
    flow = Flow("  ")
    for span in Arguments().feed(text[:_RESULT_CHARACTERS]):
        flow.add(span.text, "dim")
    flow.close()
    lines = list(islice(flow.whole, _RESULT_LINES))
    while lines and not lines[-1].spans:
        lines.pop()
    yield from lines
    if len(text) > _RESULT_CHARACTERS or len(flow.whole) > _RESULT_LINES:
        yield _line(f"… of {len(text):,} characters", "dim", "  ")


# -- the end of a drawing ---------------------------------------------------------------------------------------------


def _closing(answer: Snapshot) -> Iterator[Line]:
    for block in answer.blocks:
        if isinstance(block, ToolCallBlock) and block.state in _WITHHELD:
            name, why = Span(one_line(block.name), "name"), Span(f": {_WITHHELD[block.state]}", "error")
            yield Line((Span("withheld ", "error"), name, Span(f"  {one_line(block.id)}", "dim"), why))
    for warning in answer.warnings:
        yield _line(f"warning: {error_line(warning)}", "note")
    if answer.error is not None:
        yield _line(f"error: {error_line(answer.error)}", "error")
    yield _line(usage_line(answer), "dim")


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


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
