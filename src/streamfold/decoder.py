"""The whole chain as one sans-IO object: bytes in, events out.

Composes a framing parser and a normaliser, and owns what lies between them: which framing it is, a tail that was never
closed, a body that is no stream at all (``foreign.py``), the cursor (``position.py``), and the fold behind
``snapshot()``. No sockets, no clock.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypedDict, Unpack, cast

import msgspec

from streamfold import limits
from streamfold.accumulator import StreamAccumulator
from streamfold.errors import FramingError, NotJSONArray, Truncated, UsageError
from streamfold.events import ErrorEvent, Event, ReasoningDelta, Restart, TextDelta, ToolCallDelta
from streamfold.foreign import BLANKS, Strays, error_of_fault, error_of_item, is_whole, object_of
from streamfold.framing.eventstream import EventStreamMessage, EventStreamParser
from streamfold.framing.json_array import JSONArrayStreamParser
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.framing.messages import WholeMessages
from streamfold.framing.sse import AS_BYTES, ServerSentEvent, SSEParser, Stray
from streamfold.payloads import (
    BadJSON,
    DepthExceeded,
    Payload,
    one_line,
    read_object,
)
from streamfold.position import Before, Position, counts_of, frames_out, nothing
from streamfold.providers._answer import RawMode
from streamfold.providers._aws import exception
from streamfold.providers._errors import error_body, no_body, truncated, with_status
from streamfold.providers._table import END, CloseHow, Cursor, Normalizer
from streamfold.providers.by_shape import shape_of
from streamfold.providers.registry import Provider, framing_of, normalizer, of_messages
from streamfold.snapshot import Snapshot
from streamfold.think_tags import ThinkTags

__all__ = ["BY_FIRST_BYTE", "FRAMINGS", "CloseHow", "Cursor", "Framing", "Settings", "StreamDecoder", "Traced"]

Framing: TypeAlias = Literal["auto", "sse", "json_array", "eventstream", "jsonl", "messages"]
Traced: TypeAlias = tuple[ServerSentEvent | None, tuple[Event, ...]]
"""A frame and the events it caused; None for events that no frame caused."""

_OF_NORMALIZER: Final = ("after", "max_depth", "max_blocks", "raw", "call_id")
_OF_FRAMING: Final = {
    "sse": ("max_frame_bytes", "max_residue_bytes", "on_eof"),
    "json_array": ("max_frame_bytes", "max_depth"),
    "eventstream": ("max_frame_bytes",),
    "jsonl": ("max_frame_bytes",),
    "messages": ("max_frame_bytes",),
}
FRAMINGS: Final = ("auto", *_OF_FRAMING)
_PARSERS: Final[Mapping[str, Callable[..., _Parser]]] = {  # but for the one that most streams have
    "json_array": JSONArrayStreamParser,
    "eventstream": EventStreamParser,
    "jsonl": JSONLinesParser,
    "messages": WholeMessages,
}
BY_FIRST_BYTE: Final = {
    **dict.fromkeys(b"{[", "json_array"),
    **dict.fromkeys(b"\0\1", "eventstream"),  # of the length of a message, which is 24 MiB at most
}
"""Which framing the first byte that is no blank tells; ``sse`` where it is none of these."""
_FIRST_LETTERS: Final = b"de"  # of what nearly every event stream begins with
_BOM: Final = b"\xef\xbb\xbf"
_PACKED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # how gzip and zstandard begin
_SHOWN: Final = 200  # characters of a body that is no stream
_BODY: Final = 4 * _SHOWN  # bytes that hold so many characters, whatever they are
_FOLD_AT: Final = 512  # events that wait to be folded: many answers end before anybody asks for a snapshot
_RUN: Final = 64  # of these, deltas in a row that are joined where they came one a read, in a third of a fold's time
_MUCH: Final = 4096  # bytes of a read; nothing of a larger one is kept when its events are out


class Settings(TypedDict, total=False):
    """The settings of a stream, the same keywords everywhere.

    Attributes:
        framing: ``auto`` (by the first byte), ``sse``, ``json_array``, ``eventstream`` (AWS's binary one), ``jsonl`` or
            ``messages`` (the source gives whole payloads, as text, bytes or dicts).
        max_frame_bytes: Bound of one unfinished frame, in bytes; None is no limit, here and below.
        max_residue_bytes: Bound of what is kept of lines that are no event stream, in bytes.
        max_depth: Levels of arrays and objects a payload may nest.
        max_blocks: Blocks an answer may open.
        on_eof: ``flush`` delivers a last frame that no blank line closed; ``discard`` is the browser's rule.
        think_tags: Whether ``<think>…</think>`` in text becomes reasoning.
        raw: Which ``raw`` events are handed out: ``all``, those of ``unknown`` kinds, or ``none``.
        call_id: Makes the ids of calls that came without one, from the index of their block. Anything but a new text
            raises :class:`UsageError` where the call begins.
        after: The cursor of an earlier reading that this one continues: what is repeated is dropped, what is missing is
            reported. Of what came before it this reading knows nothing: blocks count from 0, and an item that began
            there comes with what its end says. Who has the earlier stream goes on with
            :meth:`streamfold.UnifiedStream.resume`.
    """

    framing: Framing
    max_frame_bytes: int | None
    max_residue_bytes: int | None
    max_depth: int | None
    max_blocks: int | None
    on_eof: Literal["flush", "discard"]
    think_tags: bool
    raw: RawMode
    call_id: Callable[[int], str] | None
    after: Cursor | None


class _Parser(Protocol):
    """The decoder's side of a framing parser."""

    fault: FramingError | None

    def begin_at(self, offset: int) -> None: ...

    def take(self, data: bytes) -> list[bytes]: ...

    def finish(self, how: str) -> list[bytes]: ...

    def offset_of(self, k: int) -> int: ...

    def release(self) -> None: ...


class _Kept(NamedTuple):
    """An answer as it stood when the end of input, or its reader, broke it off.

    Attributes:
        normalizer: What it knew.
        tags: What they held.
        accumulator: What of the answer is folded.
        over: Whether the answer itself had come to its end.
    """

    normalizer: Normalizer
    tags: ThinkTags | None
    accumulator: StreamAccumulator
    over: bool = False


_UNCOPYABLE: Final = (TypeError, ValueError, AttributeError, RecursionError, copy.Error)
"""What a normaliser of one's own may make of being copied: one may hold a lock, or a file."""


class StreamDecoder:
    """Bytes of one answer in, unified events out.

    Args:
        provider: Whose stream it is, ``auto`` to tell by the first payload; or a normaliser class of one's own.
        settings: See :class:`Settings`.

    Raises:
        UsageError: An unknown provider, framing or setting, or a setting of another kind or range.
    """

    fault: None = None  # nothing that comes from a provider is raised
    ended = False
    """Whether ``done`` or a fatal error was handed out; nothing follows."""

    # What most answers never change stands on the class: many have no more than fifteen frames.
    _parser: _Parser | None = None
    _sse: SSEParser | None = None
    _tags: ThinkTags | None = None
    _quick = False  # payloads go straight from the parser to the normaliser
    _closed: CloseHow | None = None
    _provider: object = None  # as it was named, where it was
    # of the connection
    _status: int | None = None  # of HTTP, if it said that something was wrong
    _retry_after_ms: int | None = None  # and what it asked for
    _request_id: str | None = None  # by which the provider finds it again
    _code: str | None = None  # its word for what went wrong
    _why: ErrorEvent | None = None  # it broke off, in the words of who held it
    _alike: str | None = None  # whose payloads these look like, if they mean nothing to who should read them
    _seen = False  # whether a payload was read
    _body = b""  # its first bytes, blanks left out: what to show of a body that is no stream
    _head = b""  # blanks that wait for the byte which tells the framing
    _skipped = 0  # bytes before those
    _dropped = 0  # of these, blanks of the same line
    _strays: Strays | None = None
    # how far
    _after: Cursor | None = None
    _event_id = ""  # the last event id before this connection
    _over = False  # the answer has come to its end
    _end_id = ""  # at this event id
    _tail: Cursor | None = None  # where the reading stood when the end of input completed a frame, which moves nothing
    # the batch that was handed out last; a decoder that nobody looks back at keeps nothing of it
    _looked_at = False
    _batch: Sequence[Event] = ()
    _payloads: Sequence[Any] = ()
    _spans: Sequence[tuple[int, int]] = ()
    _framed: int | None = None  # frames of it that come before the events which no frame caused; None: all
    _before: Before = (None, None, None, None, False)
    _position: Position | None = None  # in it
    # what is not folded yet
    _accumulator: StreamAccumulator | None = None
    _folded = 0  # events of what waits that are folded already
    _wait = _RUN + 8  # events that may wait before somebody looks what they hold: some begin the answer
    # an answer that was broken off, for who has another connection
    _lent = False  # the accumulator is the caller's: what went into it cannot be taken back
    _kept: _Kept | None = None
    _told: Sequence[Event] = ()  # events of the answer that are not folded there
    _behind = 0  # events of the last batch that only say that it broke off
    _unseen = 0  # events of the last batch that nobody was handed

    bare_error_in: int | None = None
    """Where the lines begin among which an error stood bare, in bytes from the start of the stream."""

    _framing = "auto"
    _settings: Mapping[str, Any] = MappingProxyType({})  # of the framing

    def __init__(self, provider: Provider = "auto", **settings: Unpack[Settings]) -> None:
        self._waiting: list[Event] = []  # handed out, and not folded yet
        self._provider = provider
        self.ended = self._quick = self._looked_at = False
        if settings:
            self._configure(provider, settings)
        else:
            self._normalizer = normalizer(provider)
        self._expect(framing_of(provider) if self._framing == "auto" else self._framing)

    def _expect(self, framing: str) -> None:
        """It is to be framed like this; an error body in the place of messages shows by its first byte."""
        if framing not in ("auto", "eventstream"):
            self._begin_framing(framing)

    def _configure(self, provider: Provider, settings: Settings) -> None:
        if wrong := _wrong(settings):
            raise UsageError(wrong)
        self._framing = settings.get("framing", "auto")
        self._after = settings.get("after")
        if self._after is not None:
            self._event_id = self._after.last_event_id or ""
        if settings.get("think_tags"):
            self._tags = ThinkTags(settings.get("max_blocks", limits.MAX_BLOCKS))
        self._settings = settings
        self._normalizer = self._made(provider)

    def _made(self, provider: Any, **more: Any) -> Normalizer:
        settings = self._settings
        ours: Any = {name: value for name, value in settings.items() if name in _OF_NORMALIZER}
        make = of_messages if settings.get("framing") == "messages" else normalizer
        return make(provider, **{**ours, **more})

    # -- in -----------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Event]:
        """Take in the next bytes, however they were cut; the events that they complete.

        Raises:
            UsageError: ``data`` is no bytes.
        """
        if not self._quick or type(data) is not bytes:
            return self._feed_slowly(data)
        sse, normalizer = self._sse, self._normalizer
        payloads = None if sse is None else sse.take_one(data)
        if payloads is None:
            if sse is not None:
                payloads = sse.take_many(data)
                plain = sse.ids is None  # else there may be lines that are no frames, or a fault
            else:
                assert self._parser is not None
                payloads = self._parser.take(data)
                plain = self._parser.fault is None
            if not plain:
                return self._hand_out(self._read_taken(payloads), len(data))
        answer, more, looked_at = normalizer.answer, normalizer.more, self._looked_at
        if looked_at:
            self._before = (normalizer.next_sequence, normalizer.last_event_id, answer.id, answer.last_signature, True)
        events: list[Event] = []
        answer.out = events
        if answer.spans:
            answer.begin(events)
        left = iter(payloads)
        payload = None if more is None else more(left, events.append)
        if payload is not END:  # what is left is no more of the same
            normalizer.read(left if payload is None else chain((payload,), left), events, None)
            if answer.ended:
                self._end()
                self._word(events)
        waiting = self._waiting
        waiting += events
        if looked_at:
            self._batch, self._payloads, self._spans = events, payloads, answer.spans
            if len(waiting) > self._wait:
                self._wait_less(events)
        elif len(data) > _MUCH:
            self.release()
        elif len(waiting) > self._wait:
            self._wait_less(events)
        return events

    def feed_payload(self, payload: Payload) -> list[Event]:
        """Take in one whole payload: JSON text, or the object it decodes to. For who has frames already.

        Raises:
            UsageError: It is neither text, nor bytes, nor a dict.
        """
        if isinstance(payload, bytearray | memoryview):
            payload = bytes(payload)
        elif not isinstance(payload, bytes | str | dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"a payload is text, bytes or a dict, not {type(payload).__name__}")
        self._forget_batch()
        if self.ended:
            return []
        if self._parser is not None:
            self._parser.release()
        answer = self._normalizer.answer
        answer.name_of = answer.offset_of = None  # no frame of ours
        events = self._read([payload])
        self._wire()
        return self._hand_out(events)

    def close(self, how: CloseHow = "eof", why: ErrorEvent | None = None) -> list[Event]:
        """Declare the end of input; the events it causes.

        Args:
            how: ``eof``: a clean end. ``cut``: the transport failed: what is half read is dropped, and the answer ends
                in a transport error, unless it had ended. ``cancel``: the caller stops: no event, outcome
                ``cancelled``.
            why: Of ``cut``: the error to tell, in place of one that only says that it happened.

        Raises:
            UsageError: Another ``how``.
        """
        if how not in ("eof", "cut", "cancel"):
            raise UsageError(f'a stream is closed by "eof", "cut" or "cancel", not {how!r}')
        self._forget_batch()
        if self.ended:
            return []
        self._closed, self._why = how, why
        if how == "cancel":
            self.cancel()
            return []
        events = self._finish_frames(how)
        self._told = told = () if self.ended else events
        if not self.ended:
            self._keep()
        if not self.ended and how == "eof":
            events = [*events, *self._no_stream()]
        if not self.ended:
            events = [*events, *self._said(self._normalizer.close(how))]
            self._end()
        self._behind = len(events) - len(told)
        if not self._behind or not isinstance(events[-1], ErrorEvent):
            self._kept = None  # it was the end of the answer too
        return self._hand_out(events)

    def _keep(self) -> None:
        """Something may go on with the answer that is broken off now: keep it as it stands, and let a copy end.

        After a clean end of input only an answer with a place to name can be asked for the rest, and a copy costs as
        much as reading a hundred frames.
        """
        cursor = self.cursor
        named = cursor.last_sequence is not None or cursor.last_event_id is not None
        begun = self._normalizer.answer.started
        if self._lent or (begun and not named and self._closed != "cut"):
            return
        try:
            normalizer, tags = copy.deepcopy((self._normalizer, self._tags), {id(self._parser): self._parser})
        except _UNCOPYABLE:
            return
        accumulator = self._fold(0)
        self._kept = _Kept(self._normalizer, self._tags, accumulator)
        self._normalizer, self._tags, self._accumulator = normalizer, tags, accumulator.copy()

    def release(self) -> None:
        """All of the last batch was handed out, and a long wait may come: keep nothing of it."""
        if not self._looked_at or len(self._waiting) > _FOLD_AT:
            self._fold(0)
        self._batch = self._payloads = self._spans = ()
        self._position = None
        self._normalizer.answer.begin([])
        if self._parser is not None:
            self._parser.release()

    def cancel(self, left: int = 0) -> None:
        """The caller stops, and never saw the last ``left`` events of the last batch."""
        accumulator = self._fold(left)
        if self._kept is None and not self._lent:
            self._kept = _Kept(self._normalizer, self._tags, accumulator, self._over)
            self._told, self._behind = self._waiting[self._folded :], 0
            self._accumulator = accumulator = accumulator.copy()
        self._unseen = left
        accumulator.close("cancelled")
        self.ended, self._quick = True, False

    def fold_into(self, accumulator: StreamAccumulator) -> None:
        """Fold into this accumulator, which keeps what came whatever happens to the stream."""
        accumulator.late = accumulator.late or self._normalizer.lives
        self._accumulator, self._lent = accumulator, True

    def came_with(
        self,
        status: int | None,
        retry_after_ms: int | None = None,
        request_id: str | None = None,
        framing: str = "auto",
        code: str | None = None,
    ) -> None:
        """What the head of the response said of the bytes that come.

        Args:
            status: An HTTP status of 400 or more, else None.
            retry_after_ms: How long to wait, in milliseconds.
            request_id: By which the provider finds the request again.
            framing: How they are framed, if nobody has said it and none has come.
            code: The provider's word for what went wrong, where the body has none.
        """
        self._status, self._retry_after_ms, self._request_id = status, retry_after_ms, request_id
        self._code = code
        if framing != "auto" and self._framing == "auto" and self._parser is None:
            self._framing = framing
            self._expect(framing)

    def look_back(self) -> None:
        """Keep each batch until the next one: somebody hands its events out one by one, or asks for its frames."""
        self._looked_at = True

    def trace(self, data: bytes) -> list[Traced]:
        """Like :meth:`feed`, each frame paired with the events that it caused. Frames after the end cause none."""
        self.look_back()
        if not self.ended:
            return self._paired(self.feed(data))
        data = _as_bytes(data)
        taken = self._parser.take(data) if data and self._parser is not None and self._closed is None else []
        return [(frame, ()) for frame in self._frames(taken)]

    def trace_close(self, how: CloseHow = "eof") -> list[Traced]:
        """Like :meth:`close`, each frame paired with the events that it caused."""
        if not self.ended:
            return self._paired(self.close(how))
        taken = self._parser.finish(how) if self._parser is not None and self._closed is None else []
        self._closed = how
        return [(frame, ()) for frame in self._frames(taken)]

    def reconnect(self) -> list[Event]:
        """Another connection takes up the answer: drop the half frame, keep all else, drop what is replayed.

        Also after :meth:`close`, where that broke the answer off: what it said of that is unsaid. An answer that has
        come to its end stays at its end.

        Returns:
            Events that were read and never handed out, which a stream has that was left early; else none.
        """
        unseen = self._take_up()
        if self.ended:
            return unseen
        if self._sse is not None and not self._over:
            self._event_id = self._sse.last_event_id
        self._head, self._skipped, self._dropped, self._body, self._seen = b"", 0, 0, b"", False
        if self._parser is not None:
            self._begin_framing(self._framing)
        self._normalizer.replay()
        self._closed = self._tail = None
        self._follow()
        return unseen

    def restart(self, reason: str) -> list[Event]:
        """Another connection brings the answer anew, by the first request: what was said of it so far is void.

        Also after :meth:`close`, and after an error: that the answer ended is unsaid.

        Args:
            reason: In a sentence.

        Returns:
            The ends of blocks that were open, and ``restart``; nothing where nothing of the answer was said yet.
        """
        self._take_up()
        waiting, answer = self._waiting, self._normalizer.answer
        if len(waiting) > self._folded and isinstance(error := waiting[-1], ErrorEvent) and error.fatal:
            waiting.pop()
        out: list[Event] = answer.begin([])
        if answer.ended:
            out.append(Restart(reason))
        elif answer.started:
            answer.restart(reason)
        events = self._said(out)
        waiting += events
        self._forget_batch()
        self._normalizer = self._made(self._provider, after=None, first_index=answer.next_index)
        self._parser = self._sse = self._strays = self._kept = self._after = self._closed = self._tail = None
        self._alike = self._status = None
        self._head, self._skipped, self._dropped, self._body, self._seen = b"", 0, 0, b"", False
        self._event_id = self._end_id = ""
        self._over = self.ended = self._quick = False
        self._told, self._behind, self._unseen = (), 0, 0
        self._framing = self._settings.get("framing", "auto")
        self._expect(framing_of(cast("Provider", self._provider)) if self._framing == "auto" else self._framing)
        return events

    def _take_up(self) -> list[Event]:
        """Back to where the answer was broken off; what came before that and nobody was handed."""
        if self._kept is None:
            return []
        self._normalizer, self._tags, self._accumulator, over = self._kept
        self.ended = self._over = over
        unseen = max(0, self._unseen - self._behind)
        self._batch = self._batch[: len(self._batch) - self._behind]
        self._waiting, self._folded = list(self._told), 0
        self._kept, self._told, self._behind, self._unseen = None, (), 0, 0
        return self._waiting[len(self._waiting) - unseen :]

    # -- out ----------------------------------------------------------------------------------------------------------

    @property
    def only_broke_off(self) -> int:
        """How many events at the end of the last batch say no more than that the answer broke off.

        :meth:`reconnect` unsays them: who goes on need not hand them out.
        """
        return self._behind if self._kept is not None else 0

    @property
    def retry_ms(self) -> int | None:
        """The stream's last ``retry`` field, in milliseconds."""
        return None if self._sse is None else self._sse.retry_ms

    @property
    def framing(self) -> str:
        """How the bytes are framed; ``auto`` until they have told."""
        return self._framing

    @property
    def surface(self) -> str:
        """The wire dialect; ``unknown`` until a payload has told."""
        return self._normalizer.surface

    def offset_of(self, k: int) -> int:
        """Where the ``k``-th frame of the last :meth:`trace` begins, in bytes from the start of the stream."""
        assert self._parser is not None
        return self._parser.offset_of(k)

    @property
    def cursor(self) -> Cursor:
        """Of all bytes fed so far: what a resumed reading has to come after."""
        if self._tail is not None:
            return self._tail
        cursor, given = self._normalizer.cursor, self._after or Cursor()
        event_id = self._event_id if self._sse is None else self._sse.last_event_id
        if self._over:
            event_id = self._end_id
        return Cursor(
            cursor.response_id,
            given.last_sequence if cursor.last_sequence is None else cursor.last_sequence,
            cursor.last_event_id or event_id or None,
            cursor.last_signature or given.last_signature,
        )

    def cursor_at(self, left: int) -> Cursor:
        """The cursor as it stood when all but the last ``left`` events of the last batch had been handed out.

        It moves only when all events of a frame are out. Of signatures only the last one of a batch is known: it counts
        when all of the batch is out.
        """
        if self._tail is not None or not self._batch or (self._over and not left):
            return self.cursor
        given, position, out = self._after or Cursor(), self._position, len(self._batch) - left
        if position is None or position.batch is not self._batch or position.out > out:
            position = self._position = Position(self._batch, self._payloads, self._spans, self._before, given)
        if self._over and out > position.total:  # what no frame caused comes last of all
            return self.cursor
        position.move(out, self._normalizer)
        event_id = position.event_id
        if event_id is None:
            inside = out > position.events
            event_id = self._event_id if position.held else self._event_id_at(position.frames, inside=inside)
        signature = (self._before[3] or given.last_signature) if left else self.cursor.last_signature
        return Cursor(position.response_id, position.sequence, event_id or None, signature)

    def _event_id_at(self, frames: int, *, inside: bool) -> str:
        """The last event id when so many frames of the last batch are out, or events of the next one already."""
        if self._sse is None:
            return self._event_id
        return self._sse.id_before(frames) if inside else self._sse.id_of(frames - 1)

    def snapshot(self, left: int = 0) -> Snapshot:
        """The answer as it stands, without the last ``left`` events of the last batch."""
        return self._fold(left).snapshot()

    def _fold(self, left: int) -> StreamAccumulator:
        """Fold what was handed out, but for the last ``left`` events of the last batch."""
        lives = self._normalizer.lives
        if self._accumulator is None:
            self._accumulator = StreamAccumulator()
        self._accumulator.late = self._accumulator.late or lives  # auto may have told that it does only now
        waiting, begin, end = self._waiting, self._folded, len(self._waiting) - left
        if end > begin:
            news = waiting[begin:end] if begin or left else waiting
            self._accumulator.extend(news, named=not lives)
            if 2 * end < len(waiting):
                self._folded = end
            else:  # not before half of it is: each is moved once or twice, however often somebody looks
                self._waiting, self._folded = waiting[end:], 0
        return self._accumulator

    def _wait_less(self, events: list[Event]) -> None:
        """Many events wait to be folded, the last batch behind them: let them hold less, or fold them."""
        waiting, last = self._waiting, len(events)
        if len(waiting) > _FOLD_AT:
            self._wait = _RUN
            if self._looked_at:
                self._fold(last)
            else:
                self.release()
            return
        if last == 1 and not self._folded:
            end = len(waiting) - 1
            joined = _joined(waiting[end - _RUN : end])
            if joined is not None:
                waiting[end - _RUN : end] = [joined]
        self._wait = min(len(waiting) + _RUN, _FOLD_AT)

    def _hand_out(self, events: list[Event], size: int = 0) -> list[Event]:
        """Remember the batch, which was read from so many bytes."""
        self._word(events)
        self._waiting += events
        if self._looked_at:
            self._batch = events
            if len(self._waiting) > _FOLD_AT:
                self._fold(len(events))
        elif size > _MUCH or len(self._waiting) > _FOLD_AT:
            self.release()
        return events

    def _forget_batch(self) -> None:
        self._batch = self._payloads = self._spans = ()
        self._position = self._framed = None

    # -- payloads -----------------------------------------------------------------------------------------------------

    def _read(self, payloads: list[Any]) -> list[Event]:
        """The events of these payloads, by way of all that happens seldom."""
        normalizer = self._normalizer
        answer, known = normalizer.answer, normalizer.surface != "unknown"
        self._before = (normalizer.next_sequence, normalizer.last_event_id, answer.id, answer.last_signature, known)
        self._payloads, self._spans = payloads, ()
        if not payloads:
            return []
        first, self._seen = not self._seen, True
        error = error_of_item(payloads[0]) if first and self._framing == "json_array" else None
        if error is not None:
            events = self._said(normalizer.fail(error))
            self._spans = [(0, len(events)), *nothing(len(events), len(payloads) - 1)]
        elif self._tags is None:
            events = normalizer.feed(payloads)
            self._spans = normalizer.answer.spans
        else:
            events = self._read_tags(payloads)
        self._follow()
        answer, sse = self._normalizer.answer, self._sse
        strange = self._provider != "auto" and self._alike is None and not answer.recognised
        numbered = sse is not None and sse.ids is not None
        read = len(payloads)
        if answer.ended and (strange or numbered):  # none behind the end was read
            read, _ = frames_out(counts_of(self._spans, read), len(events))
        if strange:
            self._look_around(payloads[:read])
        if answer.ended:
            self._end(sse.id_of(read - 1) if numbered and sse is not None else None)
        return events

    def _look_around(self, payloads: list[Any]) -> None:
        """Whose payloads these may be, which mean nothing to who reads them."""
        name_of = self._normalizer.answer.name_of
        for number, payload in enumerate(payloads):
            try:
                members = read_object(payload, limits.MAX_DEPTH)
            except (BadJSON, DepthExceeded):
                continue
            if members:
                self._alike = shape_of(members, name_of(number) if name_of is not None else None)
            if self._alike is not None:
                break

    def _read_tags(self, payloads: list[Any]) -> list[Event]:
        events: list[Event] = []
        spans = self._spans = list[tuple[int, int]]()
        for number, payload in enumerate(payloads):
            answer, before = self._normalizer.answer, len(events)
            name_of, offset_of = answer.name_of, answer.offset_of
            answer.name_of = partial(_shifted, name_of, number) if name_of is not None else None
            answer.offset_of = partial(_shifted, offset_of, number) if offset_of is not None else None
            events += self._said(self._normalizer.feed([payload]))
            if self._tags is not None and self._tags.full and not self._normalizer.lives:
                offset = answer.offset_of(0) if answer.offset_of is not None else None
                events += self._said(self._normalizer.fail(ErrorEvent("limit", "blocks", "blocks", offset=offset)))
            spans.append((before, len(events) - before))
            self._follow()
            answer = self._normalizer.answer
            answer.name_of, answer.offset_of = name_of, offset_of
        return events

    def _said(self, events: list[Event]) -> list[Event]:
        """What a normaliser says, reasoning told from text where that is asked for."""
        return events if self._tags is None else self._tags.apply(events)

    def _follow(self) -> None:
        """The dialect may be known now, and with it the straight way."""
        if self._normalizer.chosen is not None:
            self._normalizer = self._normalizer.chosen
        known = self._seen and self._normalizer.answer.recognised
        framed = self._sse is not None or self._framing == "json_array"
        self._quick = framed and self._tags is None and known and not self.ended and self._status is None
        if self._quick:
            self._body = b""  # it is a stream

    def _fail(self, error: ErrorEvent) -> list[Event]:
        """An error that was found below the payloads ends the answer."""
        events = self._said(self._normalizer.fail(error))
        self._follow()
        self._end()
        return events

    def _end(self, event_id: str | None = None) -> None:
        """The answer has come to its end, at that event id; what is read after it moves nothing."""
        if event_id is None:
            event_id = self._event_id if self._sse is None else self._sse.last_event_id
        self._end_id = event_id
        self._over, self.ended, self._quick = True, True, False

    # -- frames -------------------------------------------------------------------------------------------------------

    def _feed_slowly(self, data: Any) -> list[Event]:
        """Bytes before the framing and the dialect are known, with tags to look for, after the end; or no bytes."""
        if self._framing != "messages":
            data = _as_bytes(data)
        self._forget_batch()
        if self.ended or (not data and data != {}):
            return []
        if not self._body and type(data) is bytes and data[0] in _FIRST_LETTERS:
            self._body = data[:_BODY]
        elif isinstance(data, bytes) and len(self._body) < _BODY and not (self._seen and self._sse):
            body = self._body + data
            mark = _BOM if body.startswith(_BOM) else b""
            self._body = (mark + body[len(mark) :].lstrip(BLANKS))[:_BODY]
        if self._parser is None:
            data = self._find_framing(data)
            if self._parser is None:
                return []
        return self._hand_out(self._read_taken(self._parser.take(data)), len(data))

    def _find_framing(self, data: bytes) -> bytes:
        """Look for the first byte that is no blank, which tells the framing; what the parser is then to be fed.

        Of the blanks before it only those of its own line mean anything to any framing; of endless ones not even all.
        """
        if not (self._head or self._skipped) and data[0] in _FIRST_LETTERS:
            self._begin_framing("sse" if self._framing == "auto" else self._framing)
            if self._sse is not None:
                self._sse.begin_at(0)
            return data
        data = self._head + data
        if not self._skipped:
            if _BOM.startswith(data):
                self._head = data
                return b""
            self._skipped = len(_BOM) if data.startswith(_BOM) else 0
            data = data[self._skipped :]
        body = data.lstrip(BLANKS)
        blanks = data[: len(data) - len(body)]
        begin = max(blanks.rfind(b"\n"), blanks.rfind(b"\r")) + 1
        line = max(begin, len(blanks) - _SHOWN)
        self._dropped = line - begin if begin else self._dropped + line
        self._skipped, self._head = self._skipped + line, b"" if body else blanks[line:]
        if not body:
            return b""
        framing = BY_FIRST_BYTE.get(body[0], "sse" if self._framing == "auto" else self._framing)
        again = b""
        if framing == "sse" and self._dropped:  # they count where a line is too long
            limit = self._settings.get("max_frame_bytes", limits.MAX_FRAME_BYTES)
            again = b" " * min(self._dropped, limit or 0)
            self._skipped -= len(again)
        self._begin_framing(framing)
        return again + data[line:]

    def _begin_framing(self, framing: str) -> None:
        self._framing, self._sse, self._strays = framing, None, None
        given: Any = self._settings
        known = {name: given[name] for name in _OF_FRAMING[framing] if name in given} if given else given
        if framing in _PARSERS:
            self._parser = _PARSERS[framing](**known)
        else:
            self._parser = self._sse = SSEParser(**known)
            if self._event_id:
                self._sse.last_event_id = self._event_id
        if self._skipped:
            self._parser.begin_at(self._skipped)
        self._wire()

    def _wire(self) -> None:
        """Let the normaliser ask for what only frames know: their names and their places."""
        answer = self._normalizer.answer
        named: Any = self._parser if isinstance(self._parser, EventStreamParser) else self._sse
        answer.name_of = named.name_of if named is not None else None
        answer.offset_of = self._parser.offset_of if self._parser is not None else None

    def _read_taken(self, taken: list[bytes]) -> list[Event]:
        """The events of what a parser took: of its frames, of a bare error between them, of the fault behind them."""
        bare = self._bare_error()
        if isinstance(self._parser, EventStreamParser) and self._parser.failure is not None:
            return self._failed(taken, self._parser.failure)
        if bare is None:
            events = self._read(taken)
            fault = self._parser.fault if self._parser is not None else None
            return events if fault is None or self.ended else [*events, *self._fault(fault)]
        stray, error = bare
        events = self._read(taken[: stray.before])
        self._payloads, self._framed = taken, stray.before
        self._spans = [*self._spans, *nothing(len(events), len(taken) - stray.before)]
        if not self.ended:
            self.bare_error_in = stray.block
            events = [*events, *self._fail(error)]
            self._end(stray.last_event_id)
        return events

    def _failed(self, taken: list[bytes], failure: EventStreamMessage) -> list[Event]:
        """The events of what a parser took, the last of which is no payload: it says why there are no more."""
        events = self._read(taken[:-1])
        members = object_of(taken[-1].decode("utf-8", "replace")) or {}
        error = exception(failure.name, members, failure.headers.get(":error-message"))
        more = [] if self.ended else self._fail(error)
        self._payloads, self._spans = taken, [*self._spans, (len(events), len(more))]
        return [*events, *more]

    def _bare_error(self) -> tuple[Stray, ErrorEvent] | None:
        """Gemini leaves the framing for a bare JSON error, in the middle of a stream too."""
        if self._sse is not None and self._sse.strays:
            if self._strays is None:
                self._strays = Strays(self._settings.get("max_residue_bytes", limits.MAX_RESIDUE_BYTES))
            for stray in self._sse.strays:
                error = self._strays.error_in(stray)
                if error is not None:
                    return stray, error
        return None

    def _fault(self, fault: FramingError) -> list[Event]:
        if not isinstance(fault, NotJSONArray):
            return self._fail(error_of_fault(fault))
        # The first byte has told what it is not. What it is shall be shown, however few bytes have come so far.
        whole = len(self._body) == _BODY or self._closed == "eof"
        return self._fail(self._not_a_stream(f"{fault.reason}: ")) if whole else []

    def _finish_frames(self, how: CloseHow) -> list[Event]:
        """What the end of input completes. A tail counts if its JSON parses or it is a sentinel, else it was cut."""
        if self._parser is None and self._head:
            self._begin_framing("sse")
            assert self._parser is not None
            self._parser.take(self._head)
        if self._parser is None:
            return []
        taken, parser = self._parser.finish(how), self._parser
        if not isinstance(parser, SSEParser | JSONLinesParser) or not parser.tail_incomplete:
            return self._read_taken(taken)
        self._tail = self.cursor
        if is_whole(taken[-1]):
            return self._read_taken(taken)
        if isinstance(parser, SSEParser) and parser.run_together:
            return []
        self._keep()
        parser.fault = Truncated("the stream ended inside a frame", parser.offset_of(0))
        events = self._read_taken([])
        self._payloads, self._spans = taken, nothing(0, 1)
        return events

    def _no_stream(self) -> list[Event]:
        """A body that is no stream at all is read as what it is."""
        if self._sse is None:
            known = self._normalizer.answer.recognised or self._alike is not None
            return [] if known or self._framing != "json_array" or not self._seen else self._fail(self._not_a_stream())
        residue = self._sse.residue.strip()
        if self._seen or not residue:
            return []
        members = object_of(residue)
        error = error_body(members) if members is not None else None
        return self._fail(error or self._not_a_stream(text=residue))

    def _word(self, events: list[Event]) -> None:
        """Let the error that ends the answer say all that is known."""
        if events and isinstance(error := events[-1], ErrorEvent) and error.fatal:
            events[-1] = self._worded(error)

    def _worded(self, error: ErrorEvent) -> ErrorEvent:
        if error.kind == "truncated":
            error = self._why_none() or error
        elif error.kind == "transport" and self._why is not None:
            error = self._why
        if error.request_id is None and self._request_id is not None:
            error = msgspec.structs.replace(error, request_id=self._request_id)
        return error if self._status is None else with_status(error, self._status, self._retry_after_ms, self._code)

    def _why_none(self) -> ErrorEvent | None:
        """What is to be said of an answer that did not even begin, besides that it has no end."""
        if self._sse is not None and self._sse.run_together:
            message = f"no line of the stream has an end: something took them away; {AS_BYTES}"
            return ErrorEvent("protocol", message, "no_line_ends", offset=0)
        if self._alike is not None and not self._normalizer.answer.recognised:
            name = self._provider if isinstance(self._provider, str) else self.surface
            message = f"these payloads are not {name}'s; they look like {self._alike}'s"
            return ErrorEvent("protocol", message, "wrong_provider")
        if self._seen or self._body:
            return None
        return truncated("a beginning: no bytes came") if self._status is None else no_body(self._status)

    def _not_a_stream(self, reason: str = "no stream: ", text: str | None = None) -> ErrorEvent:
        if self._body.removeprefix(_BOM).startswith(_PACKED):
            return ErrorEvent("protocol", "the body is compressed bytes", "compressed", offset=0)
        if text is None:
            text = self._body.removeprefix(_BOM).decode("utf-8", "replace").strip()
        return ErrorEvent("protocol", f"the body is {reason}{text[:_SHOWN]}", "not_a_stream", offset=0)

    # -- pairs --------------------------------------------------------------------------------------------------------

    def _frames(self, payloads: Sequence[Any]) -> list[ServerSentEvent]:
        if self._sse is not None:
            return [self._sse.frame(k) for k in range(len(payloads))]
        name_of = self._parser.name_of if isinstance(self._parser, EventStreamParser) else _unnamed
        return [ServerSentEvent(name_of(k) or "message", _text_of(payload)) for k, payload in enumerate(payloads)]

    def _paired(self, events: list[Event]) -> list[Traced]:
        """Each frame of the last batch with its events; events beyond them belong to no frame."""
        pairs: list[Traced] = []
        at = 0
        frames = self._frames(self._payloads)
        for frame, count in zip(frames, counts_of(self._spans, len(frames)), strict=True):
            pairs.append((frame, tuple(events[at : at + count])))
            at += count
        if at < len(events):
            pairs.insert(len(pairs) if self._framed is None else self._framed, (None, tuple(events[at:])))
        return pairs


def _joined(run: list[Any]) -> Event | None:
    """One delta that folds to what these do, if they are all of one block."""
    first = run[0]
    kind = type(first)
    if kind not in _DELTAS or {*map(type, run)} != {kind} or len({event.index for event in run}) > 1:
        return None
    index = first.index
    if kind is ToolCallDelta:
        return ToolCallDelta(index, first.id, "".join([event.delta for event in run]))
    text = "".join([event.text for event in run])
    if kind is TextDelta:
        return TextDelta(index, text)
    return ReasoningDelta(index, text, first.part) if len({event.part for event in run}) == 1 else None


_DELTAS: Final = frozenset({TextDelta, ReasoningDelta, ToolCallDelta})


def _unnamed(k: int) -> str | None:
    return None


def _text_of(payload: Payload) -> str:
    return payload.decode("utf-8", "replace") if isinstance(payload, bytes) else one_line(payload)[0]


def _shifted(read: Callable[[int], Any], by: int, k: int) -> Any:
    return read(by + k)


def _wrong(settings: Settings) -> str | None:
    """What is wrong with the settings, in a sentence; those of a normaliser alone are asked there."""
    if unknown := settings.keys() - Settings.__annotations__.keys():
        return f"no setting is called {', '.join(sorted(unknown))}"
    framing, on_eof = settings.get("framing", "auto"), settings.get("on_eof", "flush")
    tags, call_id, after = settings.get("think_tags", False), settings.get("call_id"), settings.get("after")
    if framing not in FRAMINGS:
        return f"no framing is called {framing!r}; there are {', '.join(FRAMINGS)}"
    if on_eof not in ("flush", "discard"):
        return f'on_eof is "flush" or "discard", not {on_eof!r}'
    if not isinstance(tags, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"think_tags is True or False, not {tags!r}"
    if call_id is not None and not callable(call_id):
        return f"call_id is a function or None, not {call_id!r}"
    if after is not None and not isinstance(after, Cursor):  # pyright: ignore[reportUnnecessaryIsInstance]
        return f"after is a Cursor or None, not {after!r}"
    return limits.fault_of(**{name: settings[name] for name in limits.LEAST if name in settings})  # type: ignore[literal-required]


def _as_bytes(data: Any) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    hint = f'; {AS_BYTES}; framing="messages" takes whole payloads' if isinstance(data, str | dict) else ""
    raise UsageError(f"a stream is fed bytes, not {type(data).__name__}{hint}")
