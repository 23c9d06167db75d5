"""Events in, an answer out: the one place that folds.

Asks little of the events, so that people's own mappings can stay small: a block may open by its first delta and may
never be closed by name. What ``block_end`` and ``tool_call_done`` say is authoritative.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from streamfold import limits
from streamfold.blocks import (
    ApprovalBlock,
    Block,
    Citation,
    JSONText,
    MediaBlock,
    OtherBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolCallState,
    ToolResultBlock,
    TranscriptBlock,
    TranscriptSource,
)
from streamfold.errors import UsageError
from streamfold.events import (
    BlockEnd,
    BlockStart,
    Done,
    ErrorEvent,
    Event,
    MediaDelta,
    ReasoningDelta,
    Restart,
    Start,
    Stop,
    TextDelta,
    ToolCallCancelled,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptDelta,
    Usage,
)
from streamfold.partial_json import JSONValue, Nothing, PartialJSON
from streamfold.pieces import MANY, Pieces, joined
from streamfold.snapshot import BlockView, Outcome, Snapshot

__all__ = ["StreamAccumulator"]


class _Open:
    """A block that is open, of kind ``text`` or ``refusal``, and what all kinds share."""

    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        self.index, self.kind, self.choice, self.meta = index, kind, choice, meta
        self.pieces = Pieces()
        self.citations: tuple[Citation, ...] = ()
        self.view: _View | None = None  # of the block as it stands, if one was taken

    def state(self) -> Any:
        """What changes while the block is open, in a form that does not."""
        return self.pieces.view(), self.citations

    def make(self, state: Any, complete: bool) -> Block:
        """The block as it stood at ``state``."""
        view, citations = state
        match self.kind:
            case "refusal":
                return RefusalBlock(self.index, joined(view), self.choice, complete, self.meta)
            case "tool_result":
                return ToolResultBlock(self.index, choice=self.choice, complete=complete, meta=self.meta)
            case "approval":
                return ApprovalBlock(self.index, "", "", choice=self.choice, complete=complete, meta=self.meta)
            case "other":
                return OtherBlock(self.index, "unknown", choice=self.choice, complete=complete, meta=self.meta)
            case _:
                return TextBlock(self.index, joined(view), citations, self.choice, complete, self.meta)

    def end(self, complete: bool) -> Block:
        """The block, now that the answer is over and nothing closed it by name."""
        return self.make(self.state(), complete)


class _OpenReasoning(_Open):
    def __init__(self, index: int, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, "reasoning", choice, meta)
        self.parts: dict[int, Pieces] = {}

    def part(self, number: int) -> Pieces:
        if number not in self.parts:
            self.parts[number] = Pieces()
            self.parts = dict(sorted(self.parts.items()))
        return self.parts[number]

    def state(self) -> Any:
        return [part.view() for part in self.parts.values()]

    def make(self, state: Any, complete: bool) -> Block:
        parts = tuple(text for text in map(joined, state) if text)
        text = "\n\n".join(parts)
        return ReasoningBlock(self.index, text, parts, choice=self.choice, complete=complete, meta=self.meta)


class _OpenCall(_Open):
    def __init__(self, start: ToolCallStart | ToolCallDelta | ToolCallDone) -> None:
        if isinstance(start, ToolCallStart):
            super().__init__(start.index, "tool_call", start.choice, start.meta)
            self.call_kind, self.executor, self.name = start.kind, start.executor, start.name
        else:
            super().__init__(start.index, "tool_call")
            self.call_kind, self.executor, self.name = "function", "client", ""
        self.id = start.id
        self.call_state: ToolCallState = "provider" if self.executor == "provider" else "open"
        self.finished = False
        self.preview: PartialJSON | None = None  # fed from the first time somebody asks

    def finish(self, done: ToolCallDone) -> None:
        self.id, self.name, self.executor, self.finished = done.id, done.name, done.executor, True
        self.call_state = "provider" if done.executor == "provider" else "ready" if done.valid else "invalid"
        if self.pieces.whole() != done.arguments:
            self.pieces.replace(done.arguments)
            self.preview = None

    def state(self) -> Any:
        return self.pieces.view(), self.id, self.name, self.executor, self.call_state, self.finished

    def make(self, state: Any, complete: bool) -> Block:
        view, id_, name, executor, call_state, finished = state
        return ToolCallBlock(
            self.index, id_, name, joined(view), self.call_kind, executor, call_state, self.choice, finished, self.meta
        )

    def end(self, complete: bool) -> Block:
        if self.call_state == "open":  # half a call is never handed out, however well the answer ended
            self.call_state = "cut"
        return super().end(complete)


class _OpenMedia(_Open):
    def __init__(self, index: int, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, "media", choice, meta)
        self.mime_type: str | None = None
        self.url: str | None = None
        self.data: list[bytes] = []

    def add(self, delta: MediaDelta) -> None:
        self.mime_type, self.url = delta.mime_type or self.mime_type, delta.url or self.url
        if delta.data:
            self.data.append(delta.data)

    def state(self) -> Any:
        return self.mime_type, self.data, len(self.data), self.url

    def make(self, state: Any, complete: bool) -> Block:
        mime_type, data, count, url = state
        return MediaBlock(self.index, mime_type, b"".join(data[:count]), url, self.choice, complete, self.meta)


class _OpenTranscript(_Open):
    def __init__(self, index: int, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, "transcript", choice, meta)
        self.source: TranscriptSource = "model"

    def add(self, delta: TranscriptDelta) -> None:
        self.source = delta.source
        if delta.replaces:
            text = self.pieces.whole()
            self.pieces.replace(text[: max(0, len(text) - delta.replaces)])
        self.pieces.add(delta.text)

    def make(self, state: Any, complete: bool) -> Block:
        return TranscriptBlock(self.index, joined(state[0]), self.source, self.choice, complete, self.meta)


OpenBlock = TypeVar("OpenBlock", bound="_Open")


class _View:
    """An open block as it stood; made into a block when somebody looks, once."""

    __slots__ = ("_block", "_open", "_state")

    def __init__(self, open_: _Open) -> None:
        self._open, self._state = open_, open_.state()
        self._block: Block | None = None

    def block(self) -> Block:
        if self._block is None:
            self._block = self._open.make(self._state, False)
        return self._block


_OPENERS: Final[Mapping[str, Callable[[int, int, JSONText | None], _Open]]] = {
    "reasoning": _OpenReasoning,
    "media": _OpenMedia,
    "transcript": _OpenTranscript,
}


class StreamAccumulator:
    """Folds events into blocks. Push events in order; take a snapshot whenever one is wanted.

    ``push`` costs about what creating the event cost; a snapshot costs the same at the first delta and at the
    100,000th.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything; snapshots that were taken stay as they are."""
        self._surface: str | None = None
        self._id: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._error: ErrorEvent | None = None
        self._outcome: Outcome = "open"
        self._stops: tuple[Stop, ...] = ()
        self._choices = 1
        self._warnings: list[ErrorEvent] = []
        self._changed: set[int] = set()
        self._snapshot: Snapshot | None = None
        self._clear_blocks()

    def _clear_blocks(self) -> None:
        self._blocks: dict[int, _Open | Block] = {}
        # In index order: first those that are closed, with all before them; then the rest. Snapshots share the first.
        self._settled: list[Block] = []
        self._settled_to = -1  # the last index of them
        self._rest: deque[int] = deque()
        # Where a piece like the last one goes, until somebody looks.
        self._hot_kind: Any = None
        self._hot_index = -1
        self._hot_part = 0
        self._hot_pieces = Pieces()
        self._hot_seen = 0  # how long its tail was when somebody last looked

    # -- in -----------------------------------------------------------------------------------------------------------

    def push(self, event: Event) -> None:
        """Fold one event in. After a terminal event only ``start`` means something: it begins another answer."""
        kind = type(event)
        if kind is self._hot_kind and event.index == self._hot_index:  # type: ignore[union-attr]
            pieces = self._hot_pieces
            if kind is TextDelta:
                pieces.tail.append(event.text)  # type: ignore[union-attr]
            elif kind is ToolCallDelta:
                pieces.tail.append(event.delta)  # type: ignore[union-attr]
            elif event.part == self._hot_part:  # type: ignore[union-attr]
                pieces.tail.append(event.text)  # type: ignore[union-attr]
            else:
                self._push(event)
            if len(pieces.tail) > MANY:
                self._roll()
        else:
            self._push(event)

    def _push(self, event: Event) -> None:
        handler = _HANDLERS.get(type(event))
        if handler is not None and (self._outcome == "open" or type(event) is Start):
            self._snapshot = None
            handler(self, event)

    def extend(self, events: Iterable[Event], *, ended: bool = False) -> None:
        """Fold events in, in order.

        Args:
            events: Which.
            ended: They reach to the end of an answer whose blocks are all closed by name. What closes a block holds all
                of it, so the pieces need not be looked at.
        """
        if ended:
            events = [event for event in events if type(event) not in _OF_OPEN_BLOCKS]
        push = self._push
        kind, index, part, tail = self._hot_kind, self._hot_index, self._hot_part, self._hot_pieces.tail
        event: Any
        for event in events:
            if type(event) is kind and event.index == index:
                if kind is TextDelta:
                    tail.append(event.text)
                    continue
                if kind is ToolCallDelta:
                    tail.append(event.delta)
                    continue
                if event.part == part:
                    tail.append(event.text)
                    continue
            if len(tail) > MANY:
                self._roll()
            push(event)
            kind, index, part, tail = self._hot_kind, self._hot_index, self._hot_part, self._hot_pieces.tail
        if len(tail) > MANY:
            self._roll()

    def close(self, outcome: Outcome = "cancelled") -> None:
        """No more events will come: what is open is closed as incomplete. Does nothing once the answer has ended.

        Args:
            outcome: How to call it.
        """
        if self._outcome == "open":
            self._snapshot = None
            self._end(outcome, complete=False)

    # -- out ----------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The answer as it stands; the same object as the last time where nothing has changed since."""
        if len(self._hot_pieces.tail) != self._hot_seen:
            self._note()
        if self._snapshot is None:
            shown, blocks = self._shown, self._blocks
            self._snapshot = Snapshot(
                self._surface,
                self._id,
                self._model,
                self._usage,
                self._error,
                self._outcome,
                self._choices,
                self._stops,
                (self._warnings, len(self._warnings)),
                (self._settled, len(self._settled)),
                tuple([shown(blocks[index]) for index in self._rest]),
            )
        return self._snapshot

    def changed(self) -> frozenset[int]:
        """The indexes of the blocks that changed since the last call."""
        self._note()
        changed, self._changed = self._changed, set()
        return frozenset(changed)

    def preview(self, index: int) -> JSONValue | Nothing:
        """What can be shown of the arguments of the call at ``index`` while they stream.

        Returns:
            The tree itself, which grows with the next pieces; ``NOTHING`` where there is nothing to show yet.

        Raises:
            UsageError: There is no such call.
        """
        call = self._blocks.get(index)
        if not isinstance(call, _OpenCall | ToolCallBlock):
            raise UsageError(f"block {index} is no tool call")
        if isinstance(call, _OpenCall) and call.preview is not None:
            return call.preview.value
        preview = PartialJSON()
        preview.feed(call.pieces.whole() if isinstance(call, _OpenCall) else call.arguments)
        if isinstance(call, _OpenCall):
            call.preview = preview
            self._cool()
        return preview.value

    def text(self) -> str:
        """All visible text of choice 0 so far."""
        return self.snapshot().text

    def reasoning(self) -> str:
        """All reasoning of choice 0 so far."""
        return self.snapshot().reasoning

    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls of choice 0 that are ready to run."""
        return self.snapshot().tool_calls

    # -- events -------------------------------------------------------------------------------------------------------

    def _start(self, event: Start) -> None:
        if self._outcome != "open":
            self.reset()
        self._surface = event.surface
        self._id, self._model = event.id or self._id, event.model or self._model

    def _restart(self, event: Restart) -> None:
        self._changed.update(self._blocks)
        self._clear_blocks()
        self._stops = ()

    def _block_start(self, event: BlockStart) -> None:
        if event.index not in self._blocks:
            opener = _OPENERS.get(event.kind)
            plain = _Open(event.index, event.kind, event.choice, event.meta)
            self._open(opener(event.index, event.choice, event.meta) if opener else plain)

    def _text_delta(self, event: TextDelta) -> None:
        block = self._block(event.index, _Open, lambda: _Open(event.index, "text"))
        if block is not None:
            block.pieces.add(event.text)
            self._warm(event, block.pieces)

    def _reasoning_delta(self, event: ReasoningDelta) -> None:
        block = self._block(event.index, _OpenReasoning, lambda: _OpenReasoning(event.index))
        if block is not None:
            pieces = block.part(event.part)
            pieces.add(event.text)
            self._warm(event, pieces, event.part)

    def _media_delta(self, event: MediaDelta) -> None:
        block = self._block(event.index, _OpenMedia, lambda: _OpenMedia(event.index))
        if block is not None:
            block.add(event)

    def _transcript_delta(self, event: TranscriptDelta) -> None:
        block = self._block(event.index, _OpenTranscript, lambda: _OpenTranscript(event.index))
        if block is not None:
            block.add(event)

    def _citation(self, event: Citation) -> None:
        block = self._block(event.index, _Open, lambda: _Open(event.index, "text"))
        if block is not None:
            block.citations = (*block.citations, event)

    def _call_start(self, event: ToolCallStart) -> None:
        if event.index not in self._blocks:
            self._open(_OpenCall(event))

    def _call_delta(self, event: ToolCallDelta) -> None:
        call = self._block(event.index, _OpenCall, lambda: _OpenCall(event))
        if call is not None:
            call.pieces.add(event.delta)
            if call.preview is not None:
                call.preview.feed(event.delta)
            else:
                self._warm(event, call.pieces)

    def _call_done(self, event: ToolCallDone) -> None:
        call = self._block(event.index, _OpenCall, lambda: _OpenCall(event))
        if call is not None:
            call.finish(event)

    def _calls_cancelled(self, event: ToolCallCancelled) -> None:
        for index, block in list(self._blocks.items()):
            if isinstance(block, _OpenCall) and block.id in event.ids:
                block.call_state, block.view = "cancelled", None
                self._changed.add(index)
            elif isinstance(block, ToolCallBlock) and block.id in event.ids:
                self._replace(index, msgspec.structs.replace(block, state="cancelled"))

    def _block_end(self, event: BlockEnd) -> None:
        known = self._blocks.get(event.index)
        if isinstance(known, _Open):
            self._cool()
            self._changed.add(event.index)
            self._blocks[event.index] = event.block
            self._settle()
        elif known is None:
            self._choices = max(self._choices, event.block.choice + 1)
            self._place(event.index, event.block)
            self._settle()
        elif known != event.block:
            self._replace(event.index, event.block)

    def _set_usage(self, event: Usage) -> None:
        self._usage = event

    def _done(self, event: Done) -> None:
        stops = event.stops or (Stop(0, event.reason, event.raw_reason, event.stop_sequence),)
        self._stops = tuple(sorted(stops, key=_choice_of))
        self._choices = max(self._choices, *(stop.choice + 1 for stop in stops))
        self._end("complete", complete=True)
        refused = {stop.choice for stop in stops if stop.reason == "refusal"}
        for block in list(self._blocks.values()) if refused else ():  # the calls of a refused turn must not run
            if isinstance(block, ToolCallBlock) and block.state == "ready" and block.choice in refused:
                self._blocks[block.index] = msgspec.structs.replace(block, state="void")
        if refused:
            self._settle_anew()

    def _fault(self, event: ErrorEvent) -> None:
        if not event.fatal:
            self._warn(event)
            return
        self._error = event
        self._end("truncated" if event.kind == "truncated" else "failed", complete=False)

    def _warn(self, event: ErrorEvent) -> None:
        if len(self._warnings) < limits.MAX_WARNINGS:
            self._warnings.append(event)

    # -- blocks in their order ----------------------------------------------------------------------------------------

    def _block(self, index: int, kind: type[OpenBlock], make: Callable[[], OpenBlock]) -> OpenBlock | None:
        """The open block that a delta goes to; opened by it if it is new. None, and a warning, where it cannot be."""
        block = self._blocks.get(index)
        if block is None:
            block = make()
            self._open(block)
        if not isinstance(block, kind) or (kind is _Open and type(block) is not _Open):
            what = "is closed" if not isinstance(block, _Open) else "is of another kind"
            message = f"an event names block {index}, which {what}"
            self._warn(ErrorEvent("protocol", message, "misplaced_event", fatal=False))
            return None
        block.view = None
        self._changed.add(index)
        return block

    def _open(self, block: _Open) -> None:
        self._choices = max(self._choices, block.choice + 1)
        self._place(block.index, block)

    def _place(self, index: int, block: _Open | Block) -> None:
        self._changed.add(index)
        self._blocks[index] = block
        if index < self._settled_to:
            self._settle_anew()
            return
        self._rest.append(index)
        if len(self._rest) > 1 and index < self._rest[-2]:
            self._rest = deque(sorted(self._rest))

    def _replace(self, index: int, block: Block) -> None:
        """Another form of a block that was closed: snapshots that show the one before must not change."""
        self._changed.add(index)
        self._blocks[index] = block
        self._settle_anew()

    def _settle_anew(self) -> None:
        self._cool()
        self._settled, self._settled_to, self._rest = [], -1, deque(sorted(self._blocks))
        self._settle()

    def _settle(self) -> None:
        while self._rest:
            block = self._blocks[self._rest[0]]
            if isinstance(block, _Open):
                return
            self._settled_to = self._rest.popleft()
            self._settled.append(block)

    def _shown(self, block: _Open | Block) -> BlockView | Block:
        if not isinstance(block, _Open):
            return block
        if block.view is None:
            block.view = _View(block)
        return block.view

    def _end(self, outcome: Outcome, *, complete: bool) -> None:
        self._cool()
        self._outcome = outcome
        for index in self._rest:
            block = self._blocks[index]
            if isinstance(block, _Open):
                self._changed.add(index)
                self._blocks[index] = block.end(complete)
        self._settle()

    def _warm(self, event: TextDelta | ReasoningDelta | ToolCallDelta, pieces: Pieces, part: int = 0) -> None:
        """Let pieces like this one take the short way."""
        self._note()
        self._hot_kind, self._hot_index, self._hot_part, self._hot_pieces = type(event), event.index, part, pieces
        self._hot_seen = len(pieces.tail)

    def _note(self) -> None:
        """Note what the short way left unsaid: that a block has changed."""
        if len(self._hot_pieces.tail) != self._hot_seen:
            self._hot_seen = len(self._hot_pieces.tail)
            self._snapshot = None
            self._changed.add(self._hot_index)
            block = self._blocks[self._hot_index]
            if isinstance(block, _Open):
                block.view = None

    def _roll(self) -> None:
        self._hot_pieces.roll()
        self._hot_seen = -1

    def _cool(self) -> None:
        """Another block goes on, or this one is over: no more pieces take the short way."""
        if self._hot_index >= 0:
            self._note()
            self._hot_kind, self._hot_index, self._hot_pieces, self._hot_seen = None, -1, Pieces(), 0


def _choice_of(stop: Stop) -> int:
    return stop.choice


_HANDLERS: Final[Mapping[type, Callable[[StreamAccumulator, Any], None]]] = {
    # What is not here (raw, interrupted, go_away, session) changes nothing in an answer.
    TextDelta: StreamAccumulator._text_delta,
    ReasoningDelta: StreamAccumulator._reasoning_delta,
    ToolCallDelta: StreamAccumulator._call_delta,
    Start: StreamAccumulator._start,
    Restart: StreamAccumulator._restart,
    BlockStart: StreamAccumulator._block_start,
    ToolCallStart: StreamAccumulator._call_start,
    ToolCallDone: StreamAccumulator._call_done,
    ToolCallCancelled: StreamAccumulator._calls_cancelled,
    Citation: StreamAccumulator._citation,
    MediaDelta: StreamAccumulator._media_delta,
    TranscriptDelta: StreamAccumulator._transcript_delta,
    BlockEnd: StreamAccumulator._block_end,
    Usage: StreamAccumulator._set_usage,
    Done: StreamAccumulator._done,
    ErrorEvent: StreamAccumulator._fault,
}

_OF_OPEN_BLOCKS: Final = frozenset(
    {
        BlockStart,
        Citation,
        MediaDelta,
        ReasoningDelta,
        TextDelta,
        ToolCallDelta,
        ToolCallDone,
        ToolCallStart,
        TranscriptDelta,
    }
)
