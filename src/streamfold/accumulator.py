"""Events in, an answer out: the one place that folds.

Asks little of the events, so that people's own mappings can stay small: a block may open by its first delta and may
never be closed by name. What ``block_end`` and ``tool_call_done`` say is authoritative.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final, TypeVar, get_args

import msgspec

from streamfold import limits
from streamfold.blocks import (
    ApprovalBlock,
    Block,
    Citation,
    Executor,
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
    EVENT_TYPES,
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
    no_event,
)
from streamfold.partial_json import JSONValue, Nothing, PartialJSON
from streamfold.pieces import MANY, Pieces, PiecesView, Row, RowView, joined
from streamfold.snapshot import BlockView, Outcome, Snapshot

__all__ = ["StreamAccumulator"]


class _Open:
    """A block that is open: what all kinds share, and where it stands now."""

    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        self.index, self.kind, self.choice, self.meta = index, kind, choice, meta
        self.named = False  # by a start: until one comes the block is what its first delta made of it
        self.view: _View | None = None  # of the block as it stands, if one was taken

    def name(self, start: Any) -> bool:
        """Take over what a start says that comes after the first delta; whether it says anything new."""
        before = (self.kind, self.choice, self.meta)
        self.kind, self.choice, self.meta, self.named = start.kind, start.choice, start.meta, True
        return before != (start.kind, start.choice, start.meta)

    def state(self) -> Any:
        """All that may change while the block is open, in a form that does not."""
        return self.kind, self.choice, self.meta

    def make(self, state: Any, complete: bool) -> Block:
        """The block as it stood at ``state``: of what an end alone brings, which has not come."""
        kind, choice, meta = state
        match kind:
            case "tool_result":
                return ToolResultBlock(self.index, choice=choice, complete=complete, meta=meta)
            case "approval":
                return ApprovalBlock(self.index, "", "", choice=choice, complete=complete, meta=meta)
            case _:
                return OtherBlock(self.index, "unknown", choice=choice, complete=complete, meta=meta)

    def end(self, complete: bool) -> Block:
        """The block, now that the answer is over and nothing closed it by name."""
        return self.make(self.state(), complete)


class _OpenText(_Open):
    """Visible text, of kind ``text`` or ``refusal``."""

    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, kind, choice, meta)
        self.pieces = Pieces()
        self.citations: list[Citation] = []  # only ever appended to

    def state(self) -> Any:
        return self.kind, self.choice, self.meta, self.pieces.view(), (self.citations, len(self.citations))

    def make(self, state: Any, complete: bool) -> Block:
        kind, choice, meta, view, (citations, cited) = state
        if kind == "refusal":
            return RefusalBlock(self.index, joined(view), choice, complete, meta)
        return TextBlock(self.index, joined(view), tuple(citations[:cited]), choice, complete, meta)


class _OpenReasoning(_Open):
    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, kind, choice, meta)
        self.parts: dict[int, Pieces] = {}
        self.row = Row[PiecesView]()  # views of the parts
        self.fed: set[int] = set()  # those that may have grown since: the last one does without a word
        self.last = 0

    def part(self, number: int) -> Pieces:
        self.fed.add(number)
        self.last = number
        if number not in self.parts:
            self.parts[number] = Pieces()
        return self.parts[number]

    def state(self) -> Any:
        for number in self.fed:
            self.row.put(number, self.parts[number].view())
        self.fed.intersection_update((self.last,))
        return self.choice, self.meta, self.row.view()

    def make(self, state: Any, complete: bool) -> Block:
        choice, meta, row = state
        parts = tuple(text for text in map(joined, chain.from_iterable(row)) if text)
        return ReasoningBlock(self.index, "\n\n".join(parts), parts, choice=choice, complete=complete, meta=meta)


class _OpenCall(_Open):
    id = ""
    call_name = ""
    call_kind = "function"
    executor: Executor = "client"
    call_state: ToolCallState = "open"
    finished = False
    preview: PartialJSON | None = None  # fed from the first time somebody asks

    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, kind, choice, meta)
        self.pieces = Pieces()

    def name(self, start: Any) -> bool:
        before = self.state()
        self.call_kind, self.choice, self.meta, self.named = start.kind, start.choice, start.meta, True
        if not self.finished:  # else the end has told, which counts
            self.id, self.call_name, self.executor = start.id, start.name, start.executor
            if self.call_state == "open" and start.executor == "provider":
                self.call_state = "provider"
        return bool(before != self.state())

    def finish(self, done: ToolCallDone) -> bool:
        """Take over the whole call; whether it says anything new."""
        before = self.state()
        self.id, self.call_name, self.executor, self.finished = done.id, done.name, done.executor, True
        if self.call_state != "cancelled":
            self.call_state = "provider" if done.executor == "provider" else "ready" if done.valid else "invalid"
        if self.pieces.whole() != done.arguments:
            self.pieces.replace(done.arguments)
            self.preview = None
        return bool(before != self.state())

    def state(self) -> Any:
        told = (self.id, self.call_name, self.call_kind, self.executor, self.call_state, self.finished)
        return self.pieces.view(), told, self.choice, self.meta

    def make(self, state: Any, complete: bool) -> Block:
        view, (id_, name, kind, executor, call_state, finished), choice, meta = state
        return ToolCallBlock(self.index, id_, name, joined(view), kind, executor, call_state, choice, finished, meta)

    def end(self, complete: bool) -> Block:
        if self.call_state == "open":  # half a call is never handed out, however well the answer ended
            self.call_state = "cut"
        return super().end(complete)


class _OpenMedia(_Open):
    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, kind, choice, meta)
        self.mime_type: str | None = None
        self.url: str | None = None
        self.data: list[bytes] = []

    def add(self, delta: MediaDelta) -> bool:
        """Take over a piece; whether it brings anything."""
        before = self.state()
        self.mime_type, self.url = delta.mime_type or self.mime_type, delta.url or self.url
        if delta.data:
            self.data.append(delta.data)
        return bool(before != self.state())

    def state(self) -> Any:
        return self.choice, self.meta, self.mime_type, self.url, len(self.data)

    def make(self, state: Any, complete: bool) -> Block:
        choice, meta, mime_type, url, count = state
        return MediaBlock(self.index, mime_type, b"".join(self.data[:count]), url, choice, complete, meta)


class _OpenTranscript(_Open):
    source: TranscriptSource = "model"

    def __init__(self, index: int, kind: str, choice: int = 0, meta: JSONText | None = None) -> None:
        super().__init__(index, kind, choice, meta)
        self.pieces = Pieces()

    def add(self, delta: TranscriptDelta) -> bool:
        """Take over a piece; whether it brings anything."""
        before = self.source
        self.source = delta.source
        if delta.replaces > 0:
            self.pieces.cut(delta.replaces)
        if delta.text:
            self.pieces.add(delta.text)
        return bool(delta.text) or delta.replaces > 0 or before != delta.source

    def state(self) -> Any:
        return self.choice, self.meta, self.pieces.view(), self.source

    def make(self, state: Any, complete: bool) -> Block:
        choice, meta, view, source = state
        return TranscriptBlock(self.index, joined(view), source, choice, complete, meta)


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


_KINDS: Final[Mapping[str, type[_Open]]] = {  # those of whose content nothing comes before the end are _Open itself
    "text": _OpenText,
    "refusal": _OpenText,
    "reasoning": _OpenReasoning,
    "media": _OpenMedia,
    "transcript": _OpenTranscript,
}
_NO_PIECES: Final = Pieces()  # which nothing is ever added to
_ENDS: Final = frozenset(get_args(Outcome)) - {"open"}


class StreamAccumulator:
    """Folds events into blocks. Push events in order; take a snapshot whenever one is wanted.

    ``push`` costs about what creating the event cost; a snapshot costs the same at the first delta and at the
    100,000th.

    Attributes:
        late: Whether what live surfaces say of a turn after its end is folded in: words of a transcript, totals, calls
            taken back.
    """

    late = False

    # What many answers never change stands on the class: a short one costs less to fold than all of this to set up.
    _surface: str | None = None
    _id: str | None = None
    _model: str | None = None
    _usage: Usage | None = None
    _error: ErrorEvent | None = None
    _outcome: Outcome = "open"
    _snapshot: Snapshot | None = None
    _choices = 1
    _stops: tuple[Stop, ...] = ()
    _row: Row[BlockView | Block] | None = None  # the blocks as the last snapshot shows them, if there are several
    _calls_of: dict[str, set[int]] | None = None  # by their ids, from the first time that one is taken back
    # Where a piece like the last one goes, until somebody looks.
    _hot_kind: Any = None
    _hot_index = -1
    _hot_part = 0
    _hot_pieces = _NO_PIECES
    _hot_seen = 0  # how long its tail was when somebody last looked

    def __init__(self) -> None:
        self._warnings: list[ErrorEvent] = []
        self._changed: set[int] = set()
        self._blocks: dict[int, _Open | Block] = {}
        self._fresh: set[int] = set()  # those that the last snapshot does not show as they are

    def reset(self) -> None:
        """Forget everything; snapshots that were taken stay as they are."""
        self._surface = self._id = self._model = self._usage = self._error = self._snapshot = None
        self._outcome = "open"
        self._warnings, self._changed = [], set()
        self._clear_blocks()

    def _clear_blocks(self) -> None:
        self._blocks, self._fresh = {}, set()
        self._choices, self._stops = 1, ()
        self._row = self._calls_of = None
        self._hot_kind, self._hot_index, self._hot_part, self._hot_pieces, self._hot_seen = None, -1, 0, _NO_PIECES, 0

    # -- in -----------------------------------------------------------------------------------------------------------

    def push(self, event: Event) -> None:
        """Fold one event in. After a terminal event only ``start`` means something: it begins another answer.

        And what comes :attr:`late`, where that is asked for.

        Raises:
            UsageError: It is no event.
        """
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
        if handler is None:
            if type(event) not in EVENT_TYPES:
                raise no_event(event)
        elif self._outcome == "open" or type(event) is Start or (self.late and type(event) in _LATE):
            handler(self, event)

    def extend(self, events: Iterable[Event], *, named: bool = False) -> None:
        """Fold events in, in order.

        Args:
            events: Which.
            named: They are of an answer whose blocks are all closed by name, once, and whose calls nobody cancels.
                What closes a block holds all of it, so what came of it before need not be looked at.
        """
        if named:
            events = _without_what_ends_hold(list(events))
        push = self._push
        kind, index, part, tail = self._hot_kind, self._hot_index, self._hot_part, self._hot_pieces.tail
        usage: Usage | None = None
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
            if type(event) is Usage:  # some providers send it with every piece: of many the last one counts
                usage = event
                continue
            if len(tail) > MANY:
                self._roll()
            if usage is not None:
                push(usage)
                usage = None
            push(event)
            kind, index, part, tail = self._hot_kind, self._hot_index, self._hot_part, self._hot_pieces.tail
        if len(tail) > MANY:
            self._roll()
        if usage is not None:
            push(usage)

    def close(self, outcome: Outcome = "cancelled") -> None:
        """No more events will come: what is open is closed as incomplete. Does nothing once the answer has ended.

        Who folds events that others send (a relay, a queue) and sees them stop without an end closes as ``truncated``.

        Args:
            outcome: How to call it.

        Raises:
            UsageError: That is no outcome, or the one that an answer has while it is open.
        """
        if outcome not in _ENDS:
            raise UsageError(f"an answer is closed as {', '.join(sorted(_ENDS))}, not {outcome!r}")
        if self._outcome == "open":
            self._end(outcome, complete=False)

    def copy(self) -> StreamAccumulator:
        """Another one that holds the same: what is pushed into either leaves the other as it is."""
        self._cool()
        twin = copy.copy(self)
        twin._warnings, twin._changed = list(self._warnings), set(self._changed)
        twin._row, twin._fresh, twin._calls_of = None, set(self._blocks), None
        twin._blocks = {
            index: copy.deepcopy(block) if isinstance(block, _Open) else block for index, block in self._blocks.items()
        }
        return twin

    # -- out ----------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """The answer as it stands; the same object as the last time where nothing has changed since."""
        if len(self._hot_pieces.tail) != self._hot_seen:
            self._note()
        if self._snapshot is None:
            row: RowView[BlockView | Block]
            if len(self._blocks) == 1:  # most of the time, and a row costs more
                (block,) = self._blocks.values()
                row = ((self._shown(block),),)
            else:
                row = self._shown_blocks()
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
                row,
            )
        return self._snapshot

    def _shown_blocks(self) -> RowView[BlockView | Block]:
        row = self._row
        if row is None:
            row = self._row = Row()
        for index in self._fresh:
            row.put(index, self._shown(self._blocks[index]))
        self._fresh.clear()
        return row.view()

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
            gone = self._changed.union(self._blocks)
            self.reset()
            self._changed = gone
        names = (event.surface, event.id or self._id, event.model or self._model)
        if names != (self._surface, self._id, self._model):
            self._surface, self._id, self._model = names
            self._snapshot = None

    def _restart(self, event: Restart) -> None:
        if self._blocks:
            self._changed.update(self._blocks)
            self._clear_blocks()
            self._snapshot = None

    def _block_start(self, event: BlockStart) -> None:
        self._name(event, _KINDS.get(event.kind, _Open), event.kind)

    def _call_start(self, event: ToolCallStart) -> None:
        self._name(event, _OpenCall, "tool_call")

    def _name(self, start: BlockStart | ToolCallStart, kind: type[_Open], word: str) -> None:
        """Open a block by its start. Where a delta has opened it, the start still names it; a second one does not."""
        block = self._block(start.index, kind, word)
        if block is not None and not block.named and block.name(start):
            self._count(block.choice)
            self._touch(block)
            if isinstance(block, _OpenCall):
                self._file(block.id, block.index)

    def _text_delta(self, event: TextDelta) -> None:
        block = self._block(event.index, _OpenText, "text")
        if block is not None and event.text:
            self._touch(block)
            block.pieces.add(event.text)
            self._warm(event, block.pieces)

    def _reasoning_delta(self, event: ReasoningDelta) -> None:
        block = self._block(event.index, _OpenReasoning, "reasoning")
        if block is not None and event.text:
            self._touch(block)
            pieces = block.part(event.part)
            pieces.add(event.text)
            self._warm(event, pieces, event.part)

    def _media_delta(self, event: MediaDelta) -> None:
        block = self._block(event.index, _OpenMedia, "media")
        if block is not None and block.add(event):
            self._touch(block)

    def _transcript_delta(self, event: TranscriptDelta) -> None:
        block = self._block(event.index, _OpenTranscript, "transcript")
        if block is not None and block.add(event):
            self._touch(block)

    def _citation(self, event: Citation) -> None:
        block = self._block(event.index, _OpenText, "text")
        if block is not None and block.kind == "refusal":
            self._misplaced(event.index, "is of another kind")
        elif block is not None:
            self._touch(block)
            block.citations.append(event)

    def _call_delta(self, event: ToolCallDelta) -> None:
        call = self._block(event.index, _OpenCall, "tool_call")
        if call is None:
            return
        if call.finished:  # and what the end said counts
            self._misplaced(event.index, "is closed")
            return
        if event.id and not call.id:
            call.id = event.id
            self._file(event.id, event.index)
            self._touch(call)
        if event.delta:
            self._touch(call)
            call.pieces.add(event.delta)
            if call.preview is not None:
                call.preview.feed(event.delta)
            else:
                self._warm(event, call.pieces)

    def _call_done(self, event: ToolCallDone) -> None:
        call = self._block(event.index, _OpenCall, "tool_call")
        if call is not None:
            self._cool()
            if call.finish(event):
                self._file(event.id, event.index)
                self._touch(call)

    def _calls_cancelled(self, event: ToolCallCancelled) -> None:
        if self._calls_of is None:
            self._calls_of = {}
            for index, block in self._blocks.items():
                if isinstance(block, _OpenCall | ToolCallBlock):
                    self._file(block.id, index)
        for id_ in frozenset(event.ids):
            for index in self._calls_of.pop(id_, ()):
                self._cancel(index, id_)

    def _cancel(self, index: int, id_: str) -> None:
        block = self._blocks.get(index)
        if not isinstance(block, _OpenCall | ToolCallBlock) or block.id != id_ or _is_cancelled(block):
            return
        if isinstance(block, _OpenCall):
            block.call_state = "cancelled"
            self._touch(block)
        else:
            self._blocks[index] = msgspec.structs.replace(block, state="cancelled")
            self._mark(index)

    def _file(self, id_: str, index: int) -> None:
        """Where to find the call of this id, if another one is taken back; costs nothing where none is."""
        if self._calls_of is not None:
            self._calls_of.setdefault(id_, set()).add(index)

    def _block_end(self, event: BlockEnd) -> None:
        index, block = event.index, event.block
        known = self._blocks.get(index)
        if type(block) is ToolCallBlock:
            self._file(block.id, index)
        if block.index != index:  # a mapping's slip: the event's own place counts, as with all others
            block = msgspec.structs.replace(block, index=index)
        if known is None:
            self._count(block.choice)
            self._place(index, block)
            return
        if type(block) is ToolCallBlock and _is_cancelled(known):  # it stays so, whatever its end says
            block = msgspec.structs.replace(block, state="cancelled")
        if known == block:
            return
        self._count(block.choice)
        self._mark(index)
        self._blocks[index] = block
        if isinstance(known, _Open):
            self._cool()

    def _set_usage(self, event: Usage) -> None:
        if event != self._usage:
            self._usage = event
            self._snapshot = None

    def _done(self, event: Done) -> None:
        stops = event.stops
        if len(stops) != 1 or stops[0].choice != 0:  # nearly always one answer was asked for
            by_choice = {stop.choice: stop for stop in stops}
            if event.reason is not None or not by_choice:
                by_choice.setdefault(0, Stop(0, event.reason, event.raw_reason, event.stop_sequence))
            stops = tuple([by_choice[choice] for choice in sorted(by_choice)])
        self._stops = tuple(stops)
        self._count(self._stops[-1].choice)
        self._end("complete", complete=True)
        taken_back = [stop.choice for stop in self._stops if stop.takes_calls_back()]
        if taken_back:
            self._void(frozenset(taken_back))

    def _void(self, choices: frozenset[int]) -> None:
        """The calls of a turn that was refused, or went wrong, must not run."""
        for index, block in self._blocks.items():
            if isinstance(block, ToolCallBlock) and block.state == "ready" and block.choice in choices:
                self._blocks[index] = msgspec.structs.replace(block, state="void")
                self._mark(index)

    def _fault(self, event: ErrorEvent) -> None:
        if not event.fatal:
            self._warn(event)
            return
        self._error = event
        self._end("truncated" if event.kind == "truncated" else "failed", complete=False)

    def _warn(self, event: ErrorEvent) -> None:
        if len(self._warnings) < limits.MAX_WARNINGS:
            self._warnings.append(event)
            self._snapshot = None

    # -- blocks in their order ----------------------------------------------------------------------------------------

    def _block(self, index: int, kind: type[OpenBlock], word: str) -> OpenBlock | None:
        """The open block that an event names; opened by it if it is new. None, and a warning, where it cannot be."""
        block = self._blocks.get(index)
        if block is None:
            opened = kind(index, word)
            self._place(index, opened)
            return opened
        if type(block) is kind:
            return block
        self._misplaced(index, "is of another kind" if isinstance(block, _Open) else "is closed")
        return None

    def _misplaced(self, index: int, why: str) -> None:
        message = f"an event names block {index}, which {why}"
        self._warn(ErrorEvent("protocol", message, "misplaced_event", fatal=False))

    def _count(self, choice: int) -> None:
        if choice >= self._choices:
            self._choices = choice + 1

    def _mark(self, index: int) -> None:
        self._changed.add(index)
        self._fresh.add(index)
        self._snapshot = None

    def _touch(self, block: _Open) -> None:
        """An open block changes: views that were taken show it as it was."""
        block.view = None
        self._mark(block.index)

    def _place(self, index: int, block: _Open | Block) -> None:
        self._mark(index)
        self._blocks[index] = block

    def _shown(self, block: _Open | Block) -> BlockView | Block:
        if not isinstance(block, _Open):
            return block
        if block.view is None:
            block.view = _View(block)
        return block.view

    def _end(self, outcome: Outcome, *, complete: bool) -> None:
        self._cool()
        self._snapshot = None
        self._outcome = outcome
        for index, block in self._blocks.items():
            if isinstance(block, _Open):
                self._mark(index)
                self._blocks[index] = block.end(complete)

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
            self._fresh.add(self._hot_index)
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
            self._hot_kind, self._hot_index, self._hot_pieces, self._hot_seen = None, -1, _NO_PIECES, 0


def _without_what_ends_hold(events: list[Any]) -> list[Event]:
    """The events without those of blocks that they close."""
    closed = {event.index for event in events if type(event) is BlockEnd}
    if not closed:
        return events
    return [event for event in events if type(event) not in _OF_OPEN_BLOCKS or event.index not in closed]


def _is_cancelled(block: _Open | Block | None) -> bool:
    if isinstance(block, _OpenCall):
        return block.call_state == "cancelled"
    return isinstance(block, ToolCallBlock) and block.state == "cancelled"


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

_LATE: Final = frozenset({BlockStart, TranscriptDelta, BlockEnd, Usage, ToolCallCancelled})
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
