"""What the vocabulary promises of every answer, whatever the provider sent: a checker that shares no code with ours.

Reads a list of events from the first to the last and names each promise that they break (DESIGN 1 and 3).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    JSONText,
    MediaDelta,
    Raw,
    ReasoningDelta,
    Restart,
    Start,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptDelta,
    Usage,
    decode_event,
    encode_event,
)

JSON_KINDS: Final = frozenset({"function", "mcp", "local_shell", "computer", "tool_search", "file_search"})
"""Kinds of calls whose arguments are JSON on every surface. Others are JSON on one and plain text on another."""
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "text_delta": ("text", "refusal"),
    "reasoning_delta": ("reasoning",),
    "transcript_delta": ("transcript",),
}
LIVE: Final = ("interrupted", "tool_call_cancelled", "go_away", "session")


class _Open:
    """What came of one block so far."""

    def __init__(self, kind: str, event: BlockStart | ToolCallStart) -> None:
        self.kind, self.choice = kind, event.choice
        self.start = event
        self.pieces: dict[int, str] = {}
        self.data = b""
        self.citations: list[Citation] = []
        self.done: ToolCallDone | None = None

    def joined(self) -> str:
        return self.pieces.get(0, "")


class Reader:
    """Reads the events of one answer in order and collects what they break."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.open: dict[int, _Open] = {}
        self.opened = 0
        self.started = self.ended = False
        self.last: Event | None = None

    def expect(self, holds: bool, promise: str, event: Event) -> None:
        if not holds:
            self.broken.append(f"{promise}: {event!r}")

    def read(self, event: Event) -> None:
        expect = self.expect
        expect(self.started or isinstance(event, Start), "start is the first event", event)
        expect(not self.ended, "nothing follows the end", event)
        done_before = isinstance(self.last, ToolCallDone) and self.last.index
        ends_it = isinstance(event, BlockEnd) and event.index == done_before
        expect(not isinstance(self.last, ToolCallDone) or ends_it, "block_end comes right after tool_call_done", event)
        self.started = True
        _CHECKS.get(type(event), _anything)(self, event)
        self.check_form(event)
        self.last = event

    def check_form(self, event: Event) -> None:
        """Text is UTF-8, JSON text is JSON on one line, and the event survives being written and read."""
        for text in texts_of(event):
            try:
                text.encode()
            except UnicodeEncodeError:
                self.expect(False, "text can be encoded as UTF-8", event)
                return
            if isinstance(text, JSONText):
                one_line = "\n" not in text and "\r" not in text
                self.expect(one_line and is_json(text), "JSON text is JSON on one line", event)
        line = encode_event(event)
        self.expect(b"\n" not in line and b"\r" not in line, "an encoded event is one line", event)
        self.expect(decode_event(line) == event, "an encoded event is read back as it was", event)
        self.expect(hash(event) == hash(decode_event(line)), "equal events hash alike", event)

    # -- blocks -------------------------------------------------------------------------------------------------------

    def opens(self, event: Any) -> None:
        self.expect(event.index == self.opened, "indexes are dense in order of opening", event)
        self.expect(event.choice >= 0, "choices are counted from 0", event)
        self.opened += 1
        self.open[event.index] = _Open(event.kind if isinstance(event, BlockStart) else "tool_call", event)

    def opens_call(self, event: Any) -> None:
        self.expect(event.id != "", "a call has an id", event)
        self.opens(event)

    def block_of(self, event: Any, *kinds: str) -> _Open | None:
        block = self.open.get(event.index)
        self.expect(block is not None, "an event names a block that is open", event)
        if block is not None:
            self.expect(block.kind in kinds, f"a {block.kind} block takes no {event.type}", event)
        return block

    def text(self, event: Any) -> None:
        block = self.block_of(event, *_KINDS[event.type])
        self.expect(event.text != "", "a delta is never empty", event)
        if block is not None:
            part = event.part if isinstance(event, ReasoningDelta) else 0
            had = block.pieces.get(part, "")
            replaces = event.replaces if isinstance(event, TranscriptDelta) else 0
            block.pieces[part] = had[: max(0, len(had) - replaces)] + event.text
            parts = sorted(block.pieces)
            self.expect(0 <= part <= len(block.pieces), "parts are counted as they open", event)
            self.expect(parts[0] >= 0, "parts are counted from 0", event)

    def arguments(self, event: Any) -> None:
        block = self.block_of(event, "tool_call")
        self.expect(event.delta != "", "a delta is never empty", event)
        if block is not None:
            self.expect(event.id == getattr(block.start, "id", None), "the id of a call does not change", event)
            block.pieces[0] = block.joined() + event.delta

    def media(self, event: Any) -> None:
        block = self.block_of(event, "media")
        self.expect(bool(event.data or event.url), "a delta is never empty", event)
        if block is not None:
            block.data += event.data

    def citation(self, event: Any) -> None:
        block = self.block_of(event, "text")
        self.expect((event.start is None) == (event.end is None), "a citation has a whole place or none", event)
        if block is not None:
            block.citations.append(event)

    def call_done(self, event: Any) -> None:
        block = self.block_of(event, "tool_call")
        if block is None:
            return
        start = block.start
        assert isinstance(start, ToolCallStart)
        self.expect(block.done is None, "a call is done once", event)
        self.expect(event.id == start.id, "the id of a call does not change", event)
        if start.kind in JSON_KINDS:
            self.expect(not event.valid or is_json(event.arguments), "a valid call has JSON arguments", event)
        blank = event.arguments == "{}" and not block.joined().strip()
        self.adds_up(block.joined(), event.arguments, event, blank=blank)
        block.done = event

    def closes(self, event: Any) -> None:
        open_ = self.open.pop(event.index, None)
        self.expect(open_ is not None, "a block is closed once, and only if it was opened", event)
        if open_ is None:
            return
        block = event.block
        self.expect(block.index == event.index, "block_end holds its own block", event)
        self.expect(block.type == open_.kind, "a block ends as the kind it began", event)
        self.expect(block.choice == open_.choice, "a block stays in its choice", event)
        match block.type:
            case "text" | "refusal" | "transcript":
                self.adds_up(open_.joined(), block.text, event)
            case "reasoning":
                self.reasoning_adds_up(open_, event)
            case "tool_call":
                self.call_adds_up(open_, event)
            case "media":
                self.expect(open_.data == block.data, "the data of a block is that of its deltas", event)
        if block.type == "text":
            self.expect(block.citations == tuple(open_.citations), "a block holds the citations that came", event)

    def reasoning_adds_up(self, open_: _Open, event: Any) -> None:
        block = event.block
        self.expect(block.text == "\n\n".join(block.parts), "reasoning joins its parts by a blank line", event)
        self.expect("" not in block.parts, "a part of reasoning is never empty", event)
        told = [text for _, text in sorted(open_.pieces.items())]
        self.expect(len(told) >= len(block.parts) or block.parts == (), "a part is told before it is closed", event)
        for joined, part in zip(told, block.parts, strict=False):
            self.adds_up(joined, part, event)

    def call_adds_up(self, open_: _Open, event: Any) -> None:
        block, done, start = event.block, open_.done, open_.start
        assert isinstance(start, ToolCallStart)
        self.expect((block.id, block.kind) == (start.id, start.kind), "a call keeps its id and its kind", event)
        if done is None:
            self.expect(not block.complete, "a call that is not done is not complete", event)
            self.expect(block.state in ("cut", "provider"), "a call that is not done is cut", event)
            self.adds_up(open_.joined(), block.arguments, event)
            return
        said = (done.name, done.arguments, done.executor)
        ends = (block.name, block.arguments, block.executor)
        self.expect(ends == said, "block_end says what tool_call_done says", event)
        state = "provider" if done.executor == "provider" else "ready" if done.valid else "invalid"
        self.expect(block.state == state, f"the state of the call is {state}", event)

    def adds_up(self, joined: str, whole: str, event: Event, *, blank: bool = False) -> None:
        """The deltas are the whole text, unless that contradicts them."""
        contradicts = not whole.startswith(joined)
        self.expect(joined == whole or contradicts or blank, "deltas join to the text of the block", event)

    # -- ends ---------------------------------------------------------------------------------------------------------

    def restarts(self, event: Event) -> None:
        self.expect(not self.open, "a restart closes what is open", event)

    def done(self, event: Any) -> None:
        self.expect(not self.open, "every block is closed before done", event)
        choices = [stop.choice for stop in event.stops]
        self.expect(choices == sorted(set(choices)), "one stop a choice", event)
        first = next((stop for stop in event.stops if stop.choice == 0), None)
        said = (event.reason, event.raw_reason, event.stop_sequence)
        told = (None, None, None) if first is None else (first.reason, first.raw, first.stop_sequence)
        self.expect(said == told, "done speaks of choice 0", event)
        self.ended = True

    def failed(self, event: Any) -> None:
        if event.fatal:
            self.expect(not self.open, "every block is closed before a fatal error", event)
            self.ended = True
        self.expect(event.message != "", "an error says something", event)

    def raw(self, event: Any) -> None:
        self.expect(event.name != "", "a raw event has a name", event)
        if event.index is not None:
            self.expect(0 <= event.index < self.opened, "a raw event names a block that there is", event)
        if not event.is_json:
            text = event.payload.decoded() if is_json(event.payload) else None
            self.expect(isinstance(text, str), "what is no JSON is a JSON string", event)


def _anything(reader: Reader, event: Event) -> None:
    reader.expect(event.type not in LIVE, "live events come on live surfaces only", event)


_CHECKS: Final[Mapping[type, Callable[[Reader, Any], None]]] = {
    BlockStart: Reader.opens,
    ToolCallStart: Reader.opens_call,
    TextDelta: Reader.text,
    ReasoningDelta: Reader.text,
    TranscriptDelta: Reader.text,
    ToolCallDelta: Reader.arguments,
    MediaDelta: Reader.media,
    Citation: Reader.citation,
    ToolCallDone: Reader.call_done,
    BlockEnd: Reader.closes,
    Restart: Reader.restarts,
    Done: Reader.done,
    ErrorEvent: Reader.failed,
    Raw: Reader.raw,
    Start: _anything,
    Usage: _anything,
}


def broken(events: Iterable[Event], *, ended: bool = True) -> list[str]:
    """The promises that these events break.

    Args:
        events: Of one answer, from the first.
        ended: Whether the input has ended, so that the answer has to be over too.
    """
    reader = Reader()
    for event in events:
        reader.read(event)
    if ended and not reader.ended:
        reader.broken.append("an answer ends in done or a fatal error")
    return reader.broken


def broken_by_batches(batches: Iterable[Iterable[Event]]) -> list[str]:
    """The promises broken by the events of single payloads, each batch those of one.

    A payload that shows the dialect sets those free that waited for it: what never came out may come later.
    """
    found: list[str] = []
    room = 0
    for batch in batches:
        room += 1
        raws = [event for event in batch if isinstance(event, Raw)]
        if len(raws) > room:
            found.append(f"at most one raw a payload: {raws}")
        room -= len(raws)
    return found


def texts_of(value: Any) -> Iterator[str]:
    """All text inside an event."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from texts_of(item)
    elif hasattr(value, "__struct_fields__"):
        for name in value.__struct_fields__:
            yield from texts_of(getattr(value, name))


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse, parse_int=whole)
    except ValueError:
        return False
    return True


def whole(digits: str) -> int | str:
    """The number; its digits where they are more than Python reads."""
    return int(digits) if len(digits) < 4300 else digits


def _refuse(constant: str) -> None:
    raise ValueError(constant)
