"""The ledger of one answer while it is being emitted: which blocks are open, what came of them, how it may end.

Normalisers say what a payload means; this module says it in the vocabulary and keeps the vocabulary's promises:
``start`` first, dense indexes, every block closed once and with its assembled form, what the authoritative end adds
emitted as a delta, usage before the end, nothing after it. It knows no wire format.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, Literal, TypedDict, TypeVar, cast, get_args

import msgspec

from streamfold import limits
from streamfold.blocks import Citation, Executor, JSONText, ToolCallBlock, ToolCallState, TranscriptSource
from streamfold.errors import UsageError
from streamfold.events import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Done,
    ErrorEvent,
    ErrorKind,
    Event,
    MediaDelta,
    Raw,
    ReasoningDelta,
    Restart,
    Start,
    Stop,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptDelta,
    Usage,
)
from streamfold.partial_json import PartialJSON
from streamfold.payloads import (
    DECODE_ERRORS,
    DepthExceeded,
    Payload,
    Reader,
    compact,
    is_json,
    known_json,
    one_line,
    sanitize,
)
from streamfold.providers._open_blocks import (
    MakeBlock,
    OpenBlock,
    OpenCall,
    OpenMedia,
    OpenReasoning,
    OpenTranscript,
    OpenWhole,
    Told,
)
from streamfold.providers._usage import Members, merge

__all__ = ["Answer", "NormalizerSettings", "RawMode"]

B = TypeVar("B", bound="OpenBlock")
RawMode = Literal["all", "unknown", "none"]
_RAW_MODES: Final = ("all", "unknown", "none")
_REASONS: Final = frozenset((*get_args(StopReason), None))
_NO_CHOICE: Final[frozenset[int]] = frozenset()


class NormalizerSettings(TypedDict, total=False):
    """The settings that reach a normaliser; meanings and defaults as everywhere (see :mod:`streamfold.limits`).

    Attributes:
        first_index: Of the first block, where an answer that was started again goes on counting.
    """

    max_depth: int | None
    max_blocks: int | None
    raw: RawMode
    call_id: Callable[[int], str] | None
    first_index: int


class Answer:
    """What has been said of one answer, and what may still be said.

    A normaliser calls :meth:`begin` once a batch of payloads and appends to ``out``, directly or through the methods
    below; once the answer has ended, what is appended there goes nowhere. ``spans`` lists, for the batch, the payloads
    that caused other than one event, as ``(events before it, events of it)``: enough to pair every payload with its
    events, and free where all cause one.
    """

    # of the batch
    surplus = 0  # events beyond one a payload, over all spans
    payload: Payload = b""
    before = 0  # events of the batch that came before it
    kind: str | None = None  # the type it names itself, where the strict decoder has read it: it is JSON then
    meant = False  # it means something, or has come out as raw
    # of the answer
    max_depth: int | None = limits.MAX_DEPTH
    _block_limit = limits.MAX_BLOCKS
    _raw_mode: RawMode = "all"
    _call_id: Callable[[int], str] | None = None
    started = False
    ended = False
    recognised = False  # whether a payload was of a kind that the dialect knows
    id: str | None = None
    model: str | None = None
    last_signature: str | None = None
    usage: Usage | None = None  # the running totals, as they were handed out last
    name_of: Callable[[int], str | None] | None = None  # SSE event name of the k-th payload of the batch
    offset_of: Callable[[int], int | None] | None = None  # and where its frame begins
    _seed: bytes = b""  # what made-up ids are hashed from where the answer has no id
    _calls = 0
    _next_index = 0
    _held = 0  # parts of blocks, and what may become a block, as far as they are counted one by one

    def __init__(self, surface: str, settings: NormalizerSettings) -> None:
        self.surface = surface
        self.id = self.last_signature = None
        self.out: list[Event] = []
        self.spans: list[tuple[int, int]] = []
        self.open: dict[int, OpenBlock] = {}
        self.stops: dict[int, Stop] = {}
        # how many calls of a choice the client runs, and choices with a refusal part
        self._calling: dict[int, int] = {}
        self._refusing: set[int] | frozenset[int] = _NO_CHOICE
        if settings:
            self._configure(settings)

    def _configure(self, settings: NormalizerSettings) -> None:
        blocks = settings.get("max_blocks", limits.MAX_BLOCKS)
        self.max_depth = settings.get("max_depth", limits.MAX_DEPTH)
        if wrong := limits.fault_of(max_depth=self.max_depth, max_blocks=blocks):
            raise UsageError(wrong)
        self._block_limit = sys.maxsize if blocks is None else blocks
        self._raw_mode = settings.get("raw", "all")
        self._call_id = settings.get("call_id")
        self._next_index = settings.get("first_index", 0)
        self._made = set[str]()  # the ids that it made
        if self._raw_mode not in _RAW_MODES:
            raise UsageError(f'raw is "all", "unknown" or "none", not {self._raw_mode!r}')
        if type(self._next_index) is not int or self._next_index < 0:
            raise UsageError(f"first_index is a whole number from 0 up, not {self._next_index!r}")

    @property
    def next_index(self) -> int:
        """Of the block that would open next."""
        return self._next_index

    # -- batches ------------------------------------------------------------------------------------------------------

    def begin(self, out: list[Event]) -> list[Event]:
        """Start a batch whose events go into this list."""
        self.out = out
        if self.spans:
            self.spans, self.surplus = [], 0
        return out

    def pair(self, out: list[Event], *, known: bool) -> None:
        """A payload was read that caused other than one event, or that was the first: let it and the answer show."""
        before = self.before
        count = len(out) - before
        if not count and not self.meant:
            self.raw(known=known)
            count = len(out) - before
        if not self.started:
            self.started = True
            self._remember_first()
            out.insert(before, Start(self.surface, self.id, self.model))
            count += 1
        if count != 1:
            self.spans.append((before, count))
            self.surplus += count - 1

    def event_name(self) -> str | None:
        """The SSE event name of the payload that is being read, where there is one."""
        return self.name_of(self.before - self.surplus) if self.name_of else None

    # -- start, raw, ends ---------------------------------------------------------------------------------------------

    def identify(self, id: object, model: object) -> None:  # noqa: A002
        """Name the answer. What is absent, empty or no text leaves what is known."""
        known_id, known_model = self.id, self.model
        if type(id) is str and id and id != known_id:
            self.id = id if id.isascii() else sanitize(id)
        if type(model) is str and model and model != known_model:
            self.model = model if model.isascii() else sanitize(model)
        if not self.started:
            self.started = True
            if self.id is None:
                self._remember_first()
            self.out.insert(self.before, Start(self.surface, self.id, self.model))
        elif self.id != known_id or self.model != known_model:
            self.out.append(Start(self.surface, self.id, self.model))

    def raw(self, *, index: int | None = None, name: str = "", known: bool = True) -> None:
        """Hand out the payload that is being read, once at most.

        Args:
            index: The block it concerns.
            name: For a payload that names no type of its own: the member that matters in it.
            known: Whether the provider's table lists its kind (what ``raw="unknown"`` leaves out).
        """
        if self.meant or self._raw_mode == "none" or (known and self._raw_mode == "unknown"):
            return
        self.meant = True
        if self.kind and type(self.payload) is bytes:
            known_text = known_json(self.payload)
            if known_text is None:
                known_text = _joined_lines(self.payload)
            self.out.append(Raw(self.kind, known_text, index))
            return
        text, is_json, own = self._text_and_name()
        self.out.append(Raw(own or self.event_name() or name or "message", text, index, is_json))

    def _text_and_name(self) -> tuple[JSONText, bool, str]:
        text, is_json = one_line(self.payload)
        try:
            named = _NAMED.read(str(text), None) if is_json else None
        except DepthExceeded:  # deeper than any reader goes; that it may is the caller's wish
            named = None
        names = (named.type, named.event_type, named.object) if named else ()
        return text, is_json, next((sanitize(name) for name in names if isinstance(name, str) and name), "")

    @property
    def shows_all(self) -> bool:
        """Whether every payload that says nothing else is handed out."""
        return self._raw_mode == "all"

    def said(self) -> None:
        """The payload means something, though it may cause no event: it does not come out as ``raw``."""
        self.meant = True

    def warn(self, code: str, message: str) -> None:
        """Report a fault of the wire that changes nothing else."""
        self.out.append(ErrorEvent("protocol", message, code, fatal=False, offset=self._offset()))

    def fail(self, error: ErrorEvent) -> None:
        """End the answer with a fatal error; what is open is closed as incomplete."""
        if self.ended:
            return
        self._ensure_started()
        self.cut_all()
        self.out.append(error)
        self._end()

    def payload_error(self, kind: ErrorKind, message: str, code: str) -> ErrorEvent:
        """A fatal error that names the payload that is being read."""
        return ErrorEvent(kind, message, code, offset=self._offset())

    def done(self) -> None:
        """End the answer well; what is still open is closed as incomplete."""
        if self.ended:
            return
        self._ensure_started()
        if self.open:
            self.cut_all()
        told, resolved = self.stops, self._resolved
        stops = (
            (resolved(told[0]),) if len(told) == 1 and 0 in told else tuple([resolved(told[n]) for n in sorted(told)])
        )
        first = stops[0] if stops and stops[0].choice == 0 else Stop()
        self.out.append(Done(first.reason, first.raw, first.stop_sequence, stops))
        self._end()

    def stop(self, choice: int, reason: StopReason | None, raw: str | None, stop_sequence: str | None = None) -> None:
        """Remember why a choice ended; a plain ``end`` never weakens what was said before.

        Raises:
            UsageError: ``reason`` is no word of the vocabulary.
        """
        if reason not in _REASONS:
            raise UsageError(f"a stop reason is {', '.join(get_args(StopReason))} or None, not {reason!r}")
        before = self.stops.get(choice)
        if before is None or before.reason in (None, "end") or reason not in (None, "end"):
            self.stops[choice] = Stop(choice, reason, raw, stop_sequence)

    def restart(self, reason: str) -> None:
        """The answer begins anew."""
        self.cut_all()
        self.out.append(Restart(reason))
        self.id = self.model = None
        self.stops, self._calling, self._refusing = {}, {}, _NO_CHOICE

    def totals(self, before: Members | None, now: Members) -> Members:
        """Running totals after a newer object. What is merged is read again with each, so it may not grow for ever."""
        totals = merge(before, now)
        if totals is not now and len(compact(totals)) > limits.MAX_USAGE_BYTES:
            self.too_much_usage()
        return totals

    def too_much_usage(self) -> None:
        """End the answer: its totals have grown beyond their bound."""
        most = f"the totals of the answer come to more than {limits.MAX_USAGE_BYTES} bytes"
        self.fail(self.payload_error("limit", most, "usage"))

    def report(self, usage: Usage | None) -> None:
        """Hand out running totals where they changed."""
        if usage is not None and usage != self.usage:
            self.usage = usage
            self.out.append(usage)

    def _end(self) -> None:
        self.ended = True
        self.out = []

    def _remember_first(self) -> None:
        if self.id is None:
            self._seed = _digest(one_line(self.payload)[0])

    def _ensure_started(self) -> None:
        if not self.started:
            self.started = True
            self.out.insert(self.before, Start(self.surface, self.id, self.model))

    def _offset(self) -> int | None:
        return self.offset_of(self.before - self.surplus) if self.offset_of else None

    def _resolved(self, stop: Stop) -> Stop:
        """A plain stop where the choice declined is a refusal, where it calls the client's tools a tool use."""
        reason = stop.reason
        if reason == "end" and (stop.choice in self._refusing or self._calling.get(stop.choice)):
            reason = "refusal" if stop.choice in self._refusing else "tool_use"
            return Stop(stop.choice, reason, stop.raw, stop.stop_sequence)
        return stop

    # -- blocks of text -----------------------------------------------------------------------------------------------

    # Opening and closing happens a dozen times in an answer of fifty payloads, so these few do all they do themselves.

    def open_text(self, kind: BlockKind = "text", choice: int = 0, meta: dict[str, Any] | None = None) -> OpenBlock:
        """Open a block of visible text: ``text`` or ``refusal``."""
        index = self._next_index
        if index >= self._block_limit:
            self._too_many()
        self._next_index = index + 1
        block = self.open[index] = OpenBlock(index, kind, choice, meta)
        self.out.append(BlockStart(index, kind, choice, compact(meta) if meta else None))
        if kind == "refusal":
            self._refusing = self._refusing or set()
            cast("set[int]", self._refusing).add(choice)
        return block

    def open_reasoning(self, choice: int = 0, meta: dict[str, Any] | None = None) -> OpenReasoning:
        """Open a block of reasoning."""
        index = self._next_index
        if index >= self._block_limit:
            self._too_many()
        self._next_index = index + 1
        block = self.open[index] = OpenReasoning(index, "reasoning", choice, meta)
        self.out.append(BlockStart(index, "reasoning", choice, compact(meta) if meta else None))
        return block

    def open_media(self, mime_type: str | None, choice: int = 0, meta: dict[str, Any] | None = None) -> OpenMedia:
        """Open a block of media."""
        return self._opened(OpenMedia(self._take_index(), "media", choice, meta, mime_type=mime_type))

    def open_transcript(
        self, source: TranscriptSource = "model", choice: int = 0, meta: dict[str, Any] | None = None
    ) -> OpenTranscript:
        """Open a block of spoken words."""
        return self._opened(OpenTranscript(self._take_index(), "transcript", choice, meta, source=source))

    def text(self, block: OpenBlock, piece: str) -> None:
        """A piece of visible text."""
        piece = self._characters(block, piece)
        if piece:
            block.add(piece)
            self.out.append(TextDelta(block.index, piece))

    def reasoning(self, block: OpenReasoning, piece: str, wire_part: object = 0) -> None:
        """A piece of reasoning, of the part that the wire numbers so."""
        piece = self._characters(block, piece)
        if piece:
            part = self.part(block, wire_part)
            block.parts[part].add(piece)
            self.out.append(ReasoningDelta(block.index, piece, part))

    def part(self, block: OpenReasoning, wire_part: object) -> int:
        """Our number of the part that the wire numbers so; of parts there may be as many as of blocks."""
        number = block.numbers.get(wire_part)
        if number is None:
            self.hold_another()
            number = block.part(wire_part)
        return number

    def transcript(self, block: OpenTranscript, piece: str, *, final: bool = False, replaces: int = 0) -> None:
        """A piece of spoken words.

        Args:
            block: Whose.
            piece: The words.
            final: The provider will not revise them.
            replaces: How many code points at the end of what was said they stand for.
        """
        piece = self._characters(block, piece)
        if piece or replaces:
            if replaces:
                block.cut(replaces)
            block.add(piece)
            self.out.append(TranscriptDelta(block.index, piece, block.source, final, replaces))

    def revise(self, block: OpenTranscript, whole: str, *, final: bool = False) -> None:
        """What was said, from the beginning: the piece that makes it of what was told. Costs what ``whole`` is long."""
        block.half, whole = "", sanitize(whole)
        told = block.whole()
        kept = len(told) if whole.startswith(told) else _alike(told, whole)
        if kept == len(whole) < len(told) and kept:  # it only grew shorter: a piece is never empty
            kept -= 1
        if whole[kept:] or len(told) > kept:
            self.transcript(block, whole[kept:], final=final, replaces=len(told) - kept)

    def media(self, block: OpenMedia, piece: str | bytes) -> None:
        """A piece of base64, or of the data itself."""
        self._media(block, block.decode(piece) if isinstance(piece, str) else piece)

    def media_url(self, block: OpenMedia, url: str) -> None:
        """Media that lies elsewhere; an address that is none says nothing."""
        if not url:
            return
        block.url = sanitize(url)
        self.out.append(MediaDelta(block.index, block.mime_type, url=block.url))

    def cite(self, block: OpenBlock, citation: Citation) -> None:
        """A source of the block."""
        block.citations.append(citation)
        self.out.append(citation)

    def settle_text(self, block: OpenBlock, whole: str | None) -> None:
        """What the authoritative text adds to the pieces becomes a last piece."""
        if whole and not block.says(whole):
            rest = self._rest(block, whole)
            if rest:
                self.text(block, rest)

    def settle_reasoning(self, block: OpenReasoning, wire_part: object, whole: str | None) -> None:
        """The same for one part of a block of reasoning."""
        if whole:
            block.half = ""
            part = block.parts[self.part(block, wire_part)]
            if not part.says(whole):
                rest = self._rest(part, whole)
                if rest:
                    self.reasoning(block, rest, wire_part)

    def settle_arguments(self, call: OpenCall, whole: str | None) -> None:
        """The same for the arguments of a call."""
        if whole and not call.says(whole):
            rest = self._rest(call, whole)
            if rest:
                self.arguments(call, rest)

    def settle_since(self, call: OpenCall, mark: int, whole: str) -> None:
        """The same for the arguments since the mark; where that contradicts them, the end of the call has to tell."""
        rest = self._rest(call, whole, mark)
        if rest:
            self.arguments(call, rest)

    def close(self, block: OpenBlock, *, complete: bool = True) -> None:
        """The block is whole. Does nothing if it is not open."""
        index = block.index
        if self.open.pop(index, None) is None:
            return
        if block.half:
            self._give_up_half(block)
        if type(block) is OpenMedia:
            self._media(block, block.rest())
        elif type(block) is OpenReasoning and block.signed is not None:
            block.signature, block.signed = block.signed.whole(), None
            if complete:  # half of one signs nothing
                self.last_signature = block.signature
        self.out.append(BlockEnd(index, block.block(complete)))

    def cut(self, block: OpenBlock) -> None:
        """The block broke off."""
        if isinstance(block, OpenCall) and block.executor == "client":
            block.state = "cut"
        self.close(block, complete=False)

    def cut_all(self) -> None:
        """Whatever is open broke off."""
        for block in list(self.open.values()):
            self.cut(block)

    def open_whole(
        self, kind: BlockKind, make: MakeBlock, meta: dict[str, Any] | None = None, choice: int = 0
    ) -> OpenWhole:
        """Open a block that ``make`` makes when it ends."""
        return self._opened(OpenWhole(self._take_index(), kind, choice, meta, make=make))

    # -- tool calls ---------------------------------------------------------------------------------------------------

    def open_call(
        self,
        id: object,  # noqa: A002 - the vocabulary's own name
        name: str,
        *,
        kind: str = "function",
        executor: Executor = "client",
        is_json: bool = True,
        choice: int = 0,
        meta: dict[str, Any] | None = None,
    ) -> OpenCall:
        """Open a tool call. Without an id it gets one that is made up, the same at every reading of the same bytes."""
        index = self._next_index
        if index >= self._block_limit:
            self._too_many()
        self._next_index = index + 1
        if type(id) is str and id not in ("", "null"):
            own_id = id if id.isascii() else sanitize(id)
        else:
            own_id = self._made_up_id(index)
            meta = {**(meta or {}), "synthetic_id": True}
        self._calls += 1
        name = name if name.isascii() else sanitize(name)
        state: ToolCallState = "provider" if executor == "provider" else "open"
        if executor == "client":
            self._calling[choice] = self._calling.get(choice, 0) + 1
        call = OpenCall(
            index,
            "tool_call",
            choice,
            meta,
            id=own_id,
            name=name,
            call_kind=kind,
            executor=executor,
            is_json=is_json,
            state=state,
        )
        self.open[index] = call
        self.out.append(ToolCallStart(index, own_id, name, kind, executor, choice, compact(meta) if meta else None))
        return call

    def whole_call(
        self,
        id: object,  # noqa: A002 - the vocabulary's own name
        name: str,
        arguments: str,
        *,
        kind: str = "function",
        executor: Executor = "client",
        is_text: bool = False,
        choice: int = 0,
        meta: dict[str, Any] | None = None,
        incomplete: bool = False,
    ) -> str:
        """What :meth:`open_call` and :meth:`finish_call` say of a call that comes in one piece, in one step; its id.

        ``is_text``: the arguments are no JSON.
        """
        index = self._next_index
        if index >= self._block_limit:
            self._too_many()
        self._next_index = index + 1
        if type(id) is str and id not in ("", "null"):
            own_id = id if id.isascii() else sanitize(id)
        else:
            own_id = self._made_up_id(index)
            meta = {**(meta or {}), "synthetic_id": True}
        self._calls += 1
        name, told = sanitize(name), sanitize(str(arguments))
        whole = "{}" if not (is_text or incomplete) and (not told or told.isspace()) else told
        valid = not incomplete and (is_text or is_json(whole, self.max_depth))
        state: ToolCallState = "provider"
        if executor == "client":
            self._calling[choice] = self._calling.get(choice, 0) + 1
            state = "ready" if valid else "invalid"
        json_meta = compact(meta) if meta else None
        out = self.out
        out.append(ToolCallStart(index, own_id, name, kind, executor, choice, json_meta))
        if told:
            out.append(ToolCallDelta(index, own_id, told))
        out.append(ToolCallDone(index, own_id, name, whole, valid, executor))
        block = ToolCallBlock(index, own_id, name, whole, kind, executor, state, choice, not incomplete, json_meta)
        out.append(BlockEnd(index, block))
        return own_id

    def whole_block(
        self, kind: BlockKind, make: MakeBlock, meta: dict[str, Any] | None = None, choice: int = 0
    ) -> None:
        """A block that comes in one piece: what opens it and what ends it."""
        index = self._take_index()
        json_meta = compact(meta) if meta else None
        self.out.append(BlockStart(index, kind, choice, json_meta))
        self.out.append(BlockEnd(index, make(index, True, json_meta)))

    def calls_client(self, choice: int = 0) -> None:
        """The choice asks the caller to act, which makes its plain stop a tool use."""
        self._calling[choice] = self._calling.get(choice, 0) + 1

    def run_by_provider(self, call: OpenCall) -> None:
        """The call turns out to be none that the client runs."""
        if call.executor == "client":
            call.executor = call.state = "provider"
            self._calling[call.choice] -= 1

    def arguments(self, call: OpenCall, piece: str) -> None:
        """A piece of a call's arguments."""
        piece = self._characters(call, piece)
        if piece:
            call.add(piece)
            if call.scanner is not None:
                call.scanner.feed(piece)
            self.out.append(ToolCallDelta(call.index, call.id, piece))

    def has_whole_json(self, call: OpenCall) -> bool:
        """Whether the arguments so far are one whole JSON value; linear over all askings."""
        if call.scanner is None:
            call.scanner = PartialJSON(max_depth=None)
            call.scanner.feed(call.whole())
        return call.scanner.complete

    def finish_call(self, call: OpenCall, whole: str | None = None, *, incomplete: bool = False) -> None:
        """The provider is through with the call.

        Args:
            call: Which.
            whole: The authoritative arguments, where the wire repeats them.
            incomplete: The provider says that the call is not to be trusted.
        """
        if whole:
            self.settle_arguments(call, whole)
        if call.half:
            self._give_up_half(call)
        arguments = call.text()
        if call.is_json and not incomplete and (not arguments or arguments.isspace()):
            arguments = "{}"
        call.settled = arguments
        valid = not incomplete and (not call.is_json or is_json(arguments, self.max_depth))
        if call.executor == "client":
            call.state = "ready" if valid else "invalid"
        self.out.append(ToolCallDone(call.index, call.id, call.name, arguments, valid, call.executor))
        self.close(call, complete=not incomplete)

    def _made_up_id(self, index: int) -> str:
        if self._call_id is not None:
            made: Any = self._call_id(index)
            made = sanitize(made) if isinstance(made, str) else made
            if not isinstance(made, str) or not made or made in self._made:
                raise UsageError(f"call_id is to make another text for each call, not {made!r} for block {index}")
            self._made.add(made)
            return made
        seed = self.id.encode() if self.id else self._seed or _digest(one_line(self.payload)[0])
        return f"call_{blake2b(seed + b'/%d' % self._calls, digest_size=6).hexdigest()}"

    # -- the inside ---------------------------------------------------------------------------------------------------

    def is_full(self, count: int) -> bool:
        """Whether one more block is one too many, or the ``count`` of things that are held of which blocks may come."""
        return count > self._block_limit or self._next_index >= self._block_limit

    def hold(self, count: int) -> None:
        """So many things are held of which blocks may come: there may be no more of them than of blocks."""
        if count > self._block_limit:
            self._too_many()

    def hold_another(self) -> None:
        """One thing more, of those that are counted over the whole answer."""
        self._held += 1
        self.hold(self._held)

    def _take_index(self) -> int:
        index = self._next_index
        if index >= self._block_limit:
            self._too_many()
        self._next_index = index + 1
        return index

    def _too_many(self) -> None:
        self.fail(self.payload_error("limit", f"the answer opens more than {self._block_limit} blocks", "blocks"))

    def _opened(self, block: B) -> B:
        self.open[block.index] = block
        meta = compact(block.meta) if block.meta else None
        kind = cast("BlockKind", block.kind)  # calls open otherwise
        self.out.append(BlockStart(block.index, kind, block.choice, meta))
        return block

    def _characters(self, block: OpenBlock, piece: str) -> str:
        """Whole characters only: half a surrogate pair waits for its other half, a lone one becomes U+FFFD.

        And plain text only: JSON in the place of text would be embedded where the event is encoded, not quoted.
        """
        piece = str(piece)
        if not block.half and piece.isascii():
            return piece
        piece = block.half + piece
        block.half = ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            block.half, piece = piece[-1], piece[:-1]
        return sanitize(piece)

    def _rest(self, pieces: Told, whole: str | None, mark: int = 0) -> str:
        """What ``whole`` adds to what was told since the mark; where it contradicts that, all of it is what counts."""
        if not whole:  # also an empty one: gateways send that for "not repeated here"
            return ""
        pieces.half = ""
        had = pieces.begins(whole, mark)
        if had is None or len(had) < len(whole):
            whole = sanitize(whole)
            had = pieces.begins(whole, mark)
        if had is not None:
            pieces.settled = None
            return whole[len(had) :]
        if not mark:
            pieces.settled = str(whole)
        return ""

    def _media(self, block: OpenMedia, data: bytes) -> None:
        if data:
            block.data.append(data)
            self.out.append(MediaDelta(block.index, block.mime_type, data))

    def _give_up_half(self, block: OpenBlock) -> None:
        """The other half of a surrogate pair never came."""
        block.half, half = "", "\ufffd"
        match block:
            case OpenReasoning():
                last = len(block.parts) - 1
                self.reasoning(block, half, next((n for n, part in block.numbers.items() if part == last), 0))
            case OpenCall():
                self.arguments(block, half)
            case OpenTranscript():
                self.transcript(block, half)
            case _:
                self.text(block, half)


def _joined_lines(payload: bytes) -> JSONText:
    """A payload that the strict decoder has read, on one line."""
    try:
        return JSONText(msgspec.json.format(payload, indent=-1), "utf-8")
    except DECODE_ERRORS:  # bad UTF-8 in a member that was skipped
        return one_line(payload)[0]


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    differ = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differ, min(len(one), len(other)))


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


class _Named(msgspec.Struct):
    type: Any = None
    event_type: Any = None
    object: Any = None


_NAMED: Final = Reader(_Named)
