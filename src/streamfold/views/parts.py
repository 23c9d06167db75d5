"""The parts of a drawing: the lines of one block, while it grows and when it is whole.

Each kind of block says how its deltas are drawn and what only the whole block has. Where the whole block contradicts
what was drawn, it is drawn again. Knows nothing of other blocks, nor of how an answer begins and ends.
"""

from __future__ import annotations

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
from streamfold.events import (
    MediaDelta,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    TranscriptDelta,
)
from streamfold.views.arguments import Arguments
from streamfold.views.lines import Flow, Line, Span, Style, line_of, neutral, one_line, size

__all__ = ["GROWN_BY", "PART_OF", "CallPart", "Delta", "Part"]

Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta | MediaDelta | TranscriptDelta

_RESULT_LINES: Final = 8  # of what a provider-run tool gave back: whole pages may come
_RESULT_CHARACTERS: Final = 600


class Part:
    """The lines of one block, of a kind that is drawn when it is whole."""

    gutter = ""

    def __init__(self) -> None:
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
            self.flow.add_line(line_of("the provider corrects this block:", "note"))
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
                yield line_of(f"· {one_line(block.kind)}", "dim")
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


class _Text(Part):
    def grow(self, event: Delta) -> None:
        if isinstance(event, TextDelta):
            self.add(event.text)

    def text_of(self, block: Block) -> str:
        return block.text if isinstance(block, TextBlock) else ""

    def closing(self, block: Block) -> Iterable[Line]:
        if isinstance(block, TextBlock):
            yield from _sources(block.citations)
        if not block.complete:
            yield line_of("(cut off)", "note", self.gutter)


class _Refusal(_Text):
    def put(self, text: str) -> None:
        if not self.flow.begun:
            self.flow.add_line(line_of("declined:", "note"))
        self.flow.add(text)

    def text_of(self, block: Block) -> str:
        return block.text if isinstance(block, RefusalBlock) else ""


class _Reasoning(Part):
    gutter = "│ "

    def __init__(self) -> None:
        super().__init__()
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
                yield line_of(f"(reasoning: {', '.join(words)})", "reasoning", self.gutter)
        if not block.complete:
            yield line_of("(cut off)", "note", self.gutter)


class CallPart(Part):
    gutter = "  "

    def __init__(self) -> None:
        super().__init__()
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


class _Media(Part):
    def __init__(self) -> None:
        super().__init__()
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
            yield line_of(_media(block.mime_type, len(block.data), block.url), "name")


class _Transcript(Part):
    gutter = "♪ "

    def __init__(self) -> None:
        super().__init__()
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

PART_OF: Final[Mapping[str, type[Part]]] = {
    "text": _Text,
    "refusal": _Refusal,
    "reasoning": _Reasoning,
    "tool_call": CallPart,
    "media": _Media,
    "transcript": _Transcript,
}
GROWN_BY: Final[Mapping[type[Delta], type[Part]]] = {
    TextDelta: _Text,
    ReasoningDelta: _Reasoning,
    ToolCallDelta: CallPart,
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


def _sources(citations: Iterable[Citation]) -> Iterator[Line]:
    """Each source once, in the order of their first use."""
    seen = dict.fromkeys((c.title, c.url) if c.title or c.url else (c.cited_text, None) for c in citations)
    for number, source in enumerate(seen, 1):
        words = [one_line(word, 200) for word in source if word]
        yield line_of(f"[{number}] {' · '.join(words)}", "dim", "  ")


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
        yield line_of(f"… of {len(text):,} characters", "dim", "  ")
