"""``<think>…</think>`` in visible text becomes reasoning: events in, events out. Off by default, text is text.

Some models write their reasoning into the answer and leave it to the reader to find. One block of text then becomes
several blocks, so all indexes are counted anew. At most what may still become a tag is held back.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from streamfold.blocks import Citation, JSONText, ReasoningBlock, TextBlock
from streamfold.events import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Done,
    ErrorEvent,
    Event,
    ReasoningDelta,
    Restart,
    Start,
    TextDelta,
    ToolCallStart,
)
from streamfold.pieces import Pieces

__all__ = ["ThinkTags"]

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_META: Final = JSONText('{"member":"content","form":"think"}')  # so that it can go back as it came: inside the text


class _Text:
    """One block of text of the input, while it is cut into blocks of text and of reasoning."""

    def __init__(self, start: BlockStart) -> None:
        self.choice: int = start.choice
        self.meta: JSONText | None = start.meta
        self.thinking = False
        self.held = ""  # may become a tag
        self.seen = 0  # characters of the input that were read, tags included
        self.whole = Pieces()  # all of them, to see what the authoritative end adds
        self.index: int | None = None  # of the output block that is open
        self.latest: int | None = None  # of the one that was opened last
        self.begin = 0  # where that one begins in the input
        self.pieces = Pieces()
        self.citations: list[Citation] = []
        self.waiting: list[Citation] = []  # came inside the tags: reasoning cites nothing, the text that follows does


class ThinkTags:
    """The transformer of one answer, or of the turns of a session one after the other.

    Args:
        max_blocks: Blocks that an answer may open, those that the tags make counted in.
    """

    full = False
    """Whether it opened more: what comes then is nothing but the ends of those that are open, and the error."""

    def __init__(self, max_blocks: int | None = None) -> None:
        self._max_blocks = max_blocks
        self._begin()

    def _begin(self) -> None:
        self._over = self.full = False
        self._next = 0
        self._indexes: dict[int, int] = {}  # input index -> output index; of a text that ended, its last one
        self._texts: dict[int, _Text] = {}

    def apply(self, events: list[Event]) -> list[Event]:
        """The same events, with reasoning told from text."""
        out: list[Event] = []
        for event in events:
            self._event(event, out)
        return out

    def _event(self, event: Event, out: list[Event]) -> None:
        if self.full and not isinstance(event, Start):
            self._last_events(event, out)
            return
        match event:
            case Start() if self._over:  # another turn, whose indexes begin anew
                self._begin()
                out.append(event)
            case Done() | ErrorEvent(fatal=True):
                self._over = True
                out.append(event)
            case Restart():  # of the same answer, whose indexes go on counting
                self._over = False
                out.append(event)
            case BlockStart(kind="text"):
                self._texts[event.index] = _Text(event)
            case BlockStart() | ToolCallStart():
                index = self._take_index()
                if index is not None:
                    self._indexes[event.index] = index
                    out.append(self._moved(event))
            case TextDelta() if event.index in self._texts:
                self._read(self._texts[event.index], event.text, out)
            case Citation() if event.index in self._texts:
                self._cite(self._texts[event.index], event, out)
            case BlockEnd() if event.index in self._texts and isinstance(event.block, TextBlock):
                text = self._texts.pop(event.index)
                self._finish(text, event.block, out)
                if text.latest is not None:
                    self._indexes[event.index] = text.latest
            case BlockEnd():
                index = self._indexes.get(event.index, event.index)
                out.append(BlockEnd(index, msgspec.structs.replace(event.block, index=index)))
            case _:
                out.append(self._moved(event))

    def _last_events(self, event: Event, out: list[Event]) -> None:
        match event:
            case Done() | ErrorEvent(fatal=True) if not self._over:
                self._over = True
                most = f"the answer opens more than {self._max_blocks} blocks"
                out.append(ErrorEvent("limit", most, "blocks", offset=getattr(event, "offset", None)))
            case BlockEnd() if event.index in self._texts:
                self._close(self._texts.pop(event.index), out, complete=False)
            case BlockEnd() if event.index in self._indexes:
                index = self._indexes[event.index]
                out.append(BlockEnd(index, msgspec.structs.replace(event.block, index=index)))
            case _:
                pass

    def _moved(self, event: Any) -> Event:
        index = getattr(event, "index", None)
        text = self._texts.get(index) if index is not None else None
        new = text.latest if text is not None else index if index is None else self._indexes.get(index)
        moved: Event = event if new == index else msgspec.structs.replace(event, index=new)
        return moved

    def _take_index(self) -> int | None:
        index = self._next
        if self._max_blocks is not None and index >= self._max_blocks:
            self.full = True
            return None
        self._next += 1
        return index

    def _read(self, text: _Text, piece: str, out: list[Event]) -> None:
        text.whole.add(piece)
        rest, at = text.held + piece, 0
        tag = _CLOSE if text.thinking else _OPEN
        while not self.full and (end := rest.find(tag, at)) >= 0:
            self._say(text, rest[at:end], out)
            self._close(text, out)
            text.seen += len(tag)
            text.thinking = not text.thinking
            at, tag = end + len(tag), _CLOSE if text.thinking else _OPEN
        rest = rest[at:]
        keep = _prefix_at_end(rest, tag)
        self._say(text, rest[: len(rest) - keep], out)
        text.held = rest[len(rest) - keep :]

    def _say(self, text: _Text, piece: str, out: list[Event]) -> None:
        if not piece:
            return
        if text.index is None:
            self._open(text, out)
        if text.index is None:
            return
        text.pieces.add(piece)
        text.seen += len(piece)
        out.append(ReasoningDelta(text.index, piece) if text.thinking else TextDelta(text.index, piece))

    def _open(self, text: _Text, out: list[Event]) -> None:
        index = self._take_index()
        if index is None:
            return
        text.index = text.latest = index
        text.begin, text.pieces = text.seen, Pieces()
        kind: BlockKind = "reasoning" if text.thinking else "text"
        out.append(BlockStart(text.index, kind, text.choice, _META if text.thinking else text.meta))
        if text.waiting and not text.thinking:
            waiting, text.waiting = text.waiting, []
            for citation in waiting:
                self._cite(text, citation, out)

    def _close(self, text: _Text, out: list[Event], *, complete: bool = True) -> None:
        if text.index is None:
            return
        index, words = text.index, text.pieces.whole()
        if text.thinking:
            parts = (words,) if words else ()
            thought = ReasoningBlock(index, words, parts, choice=text.choice, complete=complete, meta=_META)
            out.append(BlockEnd(index, thought))
        else:
            block = TextBlock(index, words, tuple(text.citations), text.choice, complete, text.meta)
            out.append(BlockEnd(index, block))
        text.index, text.citations = None, []

    def _cite(self, text: _Text, citation: Citation, out: list[Event]) -> None:
        """The place of a citation moves with its block; one that lies in another block has none."""
        if text.thinking:
            text.waiting.append(citation)
            return
        if text.index is None:
            self._open(text, out)
        if text.index is None:
            return
        start, end = citation.start, citation.end
        if start is not None and end is not None:
            start, end = start - text.begin, end - text.begin
        if start is None or end is None or start < 0:
            start = end = None
        moved = msgspec.structs.replace(citation, index=text.index, start=start, end=end)
        text.citations.append(moved)
        out.append(moved)

    def _finish(self, text: _Text, block: TextBlock, out: list[Event]) -> None:
        """The block ends; what still may have become a tag is text after all."""
        seen = text.whole.whole()
        if block.text.startswith(seen) and len(block.text) > len(seen):
            self._read(text, block.text[len(seen) :], out)
        text.meta = block.meta
        held, text.held = text.held, ""
        self._say(text, held, out)
        if text.index is None and text.whole.is_empty():  # a block without any text is a block all the same
            self._open(text, out)
        self._close(text, out, complete=block.complete)
        if text.waiting:
            text.thinking = False
            self._open(text, out)
            self._close(text, out, complete=block.complete)


def _prefix_at_end(text: str, tag: str) -> int:
    """How many characters at the end of the text may begin the tag."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:n])), 0)
