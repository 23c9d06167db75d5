"""The whole chain as one sans-IO object: bytes in, events out.

Composes a framing parser and a normaliser, and owns what lies between them: which framing it is, a tail that was never
closed, a body that is no stream at all, the cursor, and the fold behind ``snapshot()``. No sockets, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict, Unpack, cast

import msgspec

from streamfold.accumulator import StreamAccumulator
from streamfold.errors import FrameTooLarge, FramingError, TooDeep, Truncated, UsageError
from streamfold.events import ErrorEvent, Event
from streamfold.framing.json_array import JSONArrayStreamParser
from streamfold.framing.sse import ServerSentEvent, SSEParser
from streamfold.payloads import DECODE_ERRORS, BadJSON, DepthExceeded, Payload, is_done, is_keep_alive, lenient
from streamfold.providers._answer import RawMode
from streamfold.providers._errors import error_body
from streamfold.providers._table import END, CloseHow, Cursor
from streamfold.providers.by_shape import shape_of
from streamfold.providers.registry import PROVIDERS, normalizer
from streamfold.snapshot import Snapshot
from streamfold.think_tags import ThinkTags

__all__ = ["FRAMINGS", "CloseHow", "Cursor", "Framing", "Settings", "StreamDecoder", "Traced"]

Framing: TypeAlias = Literal["auto", "sse", "json_array"]
Traced: TypeAlias = tuple[ServerSentEvent | None, tuple[Event, ...]]
"""A frame and the events it caused; None for events that no frame caused."""

FRAMINGS: Final = ("auto", "sse", "json_array")
_OF_NORMALIZER: Final = ("after", "max_depth", "max_blocks", "raw", "call_id")
_OF_FRAMING: Final = {
    "sse": ("max_frame_bytes", "max_residue_bytes", "on_eof"),
    "json_array": ("max_frame_bytes", "max_depth"),
}
_BOM: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r\n"
_SHOWN: Final = 200  # characters of a body that is no stream
_MAX_LOOKS: Final = 16  # at a residue that looks like a whole body: each look reads all of it
_FOLD_AT: Final = 512  # events that wait to be folded: many answers end before anybody asks for a snapshot


class Settings(TypedDict, total=False):
    """The settings of a stream, the same keywords everywhere.

    Attributes:
        framing: ``auto`` (by the first byte), ``sse`` or ``json_array``.
        max_frame_bytes: Bound of one unfinished frame, in bytes; None is no limit, here and below.
        max_residue_bytes: Bound of what is kept of lines that are no event stream, in bytes.
        max_depth: Levels of arrays and objects a payload may nest.
        max_blocks: Blocks an answer may open.
        on_eof: ``flush`` delivers a last frame that no blank line closed; ``discard`` is the browser's rule.
        think_tags: Whether ``<think>…</think>`` in text becomes reasoning.
        raw: Which ``raw`` events are handed out: ``all``, those of ``unknown`` kinds, or ``none``.
        call_id: Makes the ids of calls that came without one, from the index of their block.
        after: The cursor of an earlier reading that this one continues.
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

    def take(self, data: bytes) -> list[bytes]: ...

    def finish(self, how: str) -> list[bytes]: ...

    def offset_of(self, k: int) -> int: ...

    def release(self) -> None: ...


class StreamDecoder:
    """Bytes of one answer in, unified events out.

    Args:
        provider: Whose stream it is, ``auto`` to tell by the first payload.
        settings: See :class:`Settings`.

    Raises:
        UsageError: An unknown provider, framing or setting.
    """

    fault: None = None  # nothing that comes from a provider is raised
    ended = False
    """Whether ``done`` or a fatal error was handed out; nothing follows."""

    # What most answers never change stands on the class: many have no more than fifteen frames.
    _parser: _Parser | None = None
    _sse: SSEParser | None = None
    _tags: ThinkTags | None = None
    _quick = False  # payloads go straight from the parser to the normaliser
    _seen = False  # whether a payload was read
    _head = b""  # the body's first bytes: what tells the framing, and what to show of a body that is no stream
    _residue_lines = 0
    _residue_looks = 0
    # the batch that was handed out last, and where the reading stood before it
    _batch: Sequence[Event] = ()
    _payloads: Sequence[Any] = ()
    _spans: Sequence[tuple[int, int]] = ()
    _sequence_before: int | None = None
    # what is not folded yet
    _accumulator: StreamAccumulator | None = None

    _framing = "auto"
    _settings: Mapping[str, Any] = MappingProxyType({})  # of the framing

    def __init__(self, provider: str = "auto", **settings: Unpack[Settings]) -> None:
        self._waiting: list[Event] = []  # handed out, and not folded yet
        if settings:
            self._configure(provider, settings)
        else:
            self._normalizer = normalizer(provider)
        framing = PROVIDERS[provider].framing if self._framing == "auto" else self._framing
        if framing != "auto":
            self._begin_framing(framing)

    def _configure(self, provider: str, settings: Settings) -> None:
        if unknown := settings.keys() - Settings.__annotations__.keys():
            raise UsageError(f"no setting is called {', '.join(sorted(unknown))}")
        self._framing = settings.get("framing", "auto")
        if self._framing not in FRAMINGS:
            raise UsageError(f"no framing is called {self._framing!r}; there are {', '.join(FRAMINGS)}")
        on_eof = settings.get("on_eof", "flush")
        if on_eof not in ("flush", "discard"):
            raise UsageError(f'on_eof is "flush" or "discard", not {on_eof!r}')
        if settings.get("think_tags"):
            self._tags = ThinkTags()
        self._settings = settings
        ours: Any = {name: value for name, value in settings.items() if name in _OF_NORMALIZER}
        self._normalizer = normalizer(provider, **ours)

    # -- in -----------------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Event]:
        """Take in the next bytes, however they were cut; the events that they complete.

        Raises:
            UsageError: ``data`` is no bytes.
        """
        if not self._quick or type(data) is not bytes:
            return self._feed_slowly(data)
        sse, normalizer = self._sse, self._normalizer
        assert sse is not None
        payloads = sse.take(data)
        self._sequence_before = normalizer.next_sequence
        events: list[Event] = []
        self._spans = ()
        if payloads:
            more = normalizer.more
            single = len(payloads) == 1
            if not single or more is None or more(payloads, events.append) is not END:
                normalizer.read(iter(payloads), events, None if single else more)
                answer = normalizer.answer
                self._spans = answer.spans
                if answer.ended:
                    self.ended, self._quick = True, False
        self._payloads = payloads
        if sse.ids is not None or sse.fault is not None:
            events = self._look_below(events)
        self._batch = events
        if events:
            self._waiting += events
            if len(self._waiting) > _FOLD_AT:
                self._fold(len(events))
        return events

    def feed_payload(self, payload: Payload) -> list[Event]:
        """Take in one whole payload: JSON text, or the object it decodes to. For who has frames already."""
        return [] if self.ended else self._hand_out(self._read([payload]))

    def close(self, how: CloseHow = "eof") -> list[Event]:
        """Declare the end of input; the events it causes.

        Args:
            how: ``eof``: a clean end. ``cut``: the transport failed: what is half read is dropped, and the answer ends
                in a transport error, unless it had ended. ``cancel``: the caller stops: no event, outcome
                ``cancelled``.

        Raises:
            UsageError: Another ``how``.
        """
        if how not in ("eof", "cut", "cancel"):
            raise UsageError(f'a stream is closed by "eof", "cut" or "cancel", not {how!r}')
        if self.ended:
            return []
        if how == "cancel":
            self.cancel()
            return []
        events: list[Event] = []
        if self._parser is not None:
            events = self._look_below(self._read(self._finish_frames(how)))
        if not self.ended:
            if how == "eof":
                events = [*events, *self._no_stream()]
            events = [*events, *self._normalizer.close(how)]
        self.ended, self._quick = True, False
        return self._hand_out(events)

    def release(self) -> None:
        """All of the last batch was handed out, and a long wait may come: keep nothing of it."""
        if len(self._waiting) > _FOLD_AT:
            self._fold(0)
        self._batch = self._payloads = self._spans = ()
        if self._parser is not None:
            self._parser.release()

    def cancel(self, left: int = 0) -> None:
        """The caller stops, and never saw the last ``left`` events of the last batch."""
        self._fold(left).close("cancelled")
        self.ended, self._quick = True, False

    def fold_into(self, accumulator: StreamAccumulator) -> None:
        """Fold into this accumulator, which keeps what came whatever happens to the stream."""
        self._accumulator = accumulator

    def trace(self, data: bytes) -> list[Traced]:
        """Like :meth:`feed`, each frame paired with the events that it caused. Frames after the end cause none."""
        if self.ended and self._parser is not None:
            return [(frame, ()) for frame in self._frames(self._parser.take(data))]
        return self._paired(self.feed(data))

    def trace_close(self, how: CloseHow = "eof") -> list[Traced]:
        """Like :meth:`close`, each frame paired with the events that it caused."""
        if self.ended:
            return []
        self._payloads = []
        return self._paired(self.close(how))

    def reconnect(self) -> None:
        """Another connection takes up the answer: drop the half frame, keep all else, drop what is replayed."""
        last_event_id = self._sse.last_event_id if self._sse is not None else ""
        if self._parser is not None:
            self._begin_framing(self._framing)
        if self._sse is not None:
            self._sse.last_event_id = last_event_id
        self._head = b""
        self._normalizer.replay()
        self._notice_end()

    # -- out ----------------------------------------------------------------------------------------------------------

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
        cursor = self._normalizer.cursor
        if cursor.last_event_id is None and self._sse is not None and self._sse.last_event_id:
            cursor = msgspec.structs.replace(cursor, last_event_id=self._sse.last_event_id)
        return cursor

    def cursor_at(self, left: int) -> Cursor:
        """The cursor as it stood when all but the last ``left`` events of the last batch had been handed out.

        It moves only when all events of a frame are out.
        """
        if not left and not self._batch:
            return self.cursor
        whole = self._frames_out(len(self._batch) - left)
        cursor, sequence, event_id = self.cursor, self._sequence_before, None
        numbers = [n for n in map(_sequence_number, self._payloads[:whole]) if n is not None]
        last = numbers[-1] if numbers else None if sequence is None else sequence - 1
        if self._sse is not None:
            event_id = self._sse.id_of(whole - 1) if whole else self._sse.id_before
        return msgspec.structs.replace(cursor, last_sequence=last, last_event_id=event_id or None)

    def snapshot(self, left: int = 0) -> Snapshot:
        """The answer as it stands, without the last ``left`` events of the last batch."""
        return self._fold(left).snapshot()

    def _fold(self, left: int) -> StreamAccumulator:
        """Fold what was handed out, but for the last ``left`` events of the last batch."""
        if self._accumulator is None:
            self._accumulator = StreamAccumulator()
        if len(self._waiting) > left:
            count = len(self._waiting) - left
            self._accumulator.extend(self._waiting[:count], ended=self.ended and not left)
            self._waiting = self._waiting[count:]
        return self._accumulator

    def _hand_out(self, events: list[Event]) -> list[Event]:
        """Remember the batch."""
        self._waiting += events
        self._batch = events
        return events

    # -- payloads -----------------------------------------------------------------------------------------------------

    def _read(self, payloads: list[Any]) -> list[Event]:
        """The events of these payloads, by way of all that happens seldom."""
        self._payloads, self._spans = payloads, []
        if not payloads:
            return []
        normalizer = self._normalizer
        self._sequence_before = normalizer.next_sequence
        first, self._seen = not self._seen, True
        if first and self._framing == "json_array" and isinstance(payloads[0], bytes):
            self._head = payloads[0][:_SHOWN]
            error = _error_of_body(payloads[0])
            if error is not None:
                events = normalizer.fail(error)
                self._spans = [(0, len(events))]
                self._notice_end()
                return events
        if self._tags is None:
            events = normalizer.feed(payloads)
            self._spans = normalizer.answer.spans
        else:
            events = self._read_tags(self._tags, payloads)
        self._notice_end()
        return events

    def _read_tags(self, tags: ThinkTags, payloads: list[Any]) -> list[Event]:
        events: list[Event] = []
        spans = self._spans = list[tuple[int, int]]()
        answer, sse, parser = self._normalizer.answer, self._sse, self._parser
        for number, payload in enumerate(payloads):
            if sse is not None:
                answer.name_of = partial(_shifted, sse.name_of, number)
            if parser is not None:
                answer.offset_of = partial(_shifted, parser.offset_of, number)
            before = len(events)
            events += tags.apply(self._normalizer.feed([payload]))
            spans.append((before, len(events) - before))
            self._notice_end()
            answer = self._normalizer.answer
        self._wire()
        return events

    def _notice_end(self) -> None:
        if self._normalizer.chosen is not None:
            self._normalizer = self._normalizer.chosen
        self.ended = self._normalizer.answer.ended
        known = self._normalizer.surface != "unknown"
        self._quick = self._sse is not None and self._tags is None and known and not self.ended

    # -- frames -------------------------------------------------------------------------------------------------------

    def _feed_slowly(self, data: Any) -> list[Event]:
        """Bytes before the framing and the dialect are known, with tags to look for, after the end; or no bytes."""
        data = _as_bytes(data)
        if self.ended or not data:
            return []
        if self._parser is None:
            data = self._head + data if self._head else data
            body = data[:_SHOWN].removeprefix(_BOM).lstrip(_SPACE) or data.removeprefix(_BOM).lstrip(_SPACE)
            if not body or _BOM.startswith(body):
                self._head = data
                return []
            self._head = body[:_SHOWN]
            self._begin_framing("json_array" if body[:1] in b"[{" else "sse")
        assert self._parser is not None
        events = self._read(self._parser.take(data))
        if self._sse is None or self._sse.ids is not None or self._sse.fault is not None:
            events = self._look_below(events)
        return self._hand_out(events)

    def _begin_framing(self, framing: str) -> None:
        self._framing, self._sse = framing, None
        known = {name: self._settings[name] for name in _OF_FRAMING[framing] if name in self._settings}
        if framing == "json_array":
            self._parser = JSONArrayStreamParser(**known)
        else:
            self._parser = self._sse = SSEParser(**known)
        self._wire()

    def _wire(self) -> None:
        """Let the normaliser ask for what only frames know: their names and their places."""
        answer = self._normalizer.answer
        answer.name_of = self._sse.name_of if self._sse is not None else None
        answer.offset_of = self._parser.offset_of if self._parser is not None else None

    def _finish_frames(self, how: CloseHow) -> list[bytes]:
        """What the end of input completes. A tail counts if its JSON parses or it is a sentinel, else it was cut."""
        assert self._parser is not None
        payloads = self._parser.finish(how)
        if self._sse is None or not self._sse.tail_incomplete or _is_whole(payloads[-1]):
            return payloads
        self._sse.fault = Truncated("the stream ended inside a frame", self._sse.offset_of(len(payloads) - 1))
        return payloads[:-1]

    def _look_below(self, events: list[Event]) -> list[Event]:
        """Faults of the framing, and a bare error body between the frames, end the answer."""
        fault = self._parser.fault if self._parser is not None else None
        error = _error_of_fault(fault) if fault is not None else self._error_in_residue()
        if error is None or self.ended:
            return events
        more = self._normalizer.fail(error)
        self._notice_end()
        return [*events, *more]

    def _error_in_residue(self, *, at_end: bool = False) -> ErrorEvent | None:
        """Gemini leaves the framing for a bare JSON error, in the middle of a stream too."""
        lines = self._sse.residue_lines if self._sse is not None else 0
        if lines == self._residue_lines and not at_end:
            return None
        self._residue_lines = lines
        residue = self._sse.residue.strip() if self._sse is not None else ""
        if residue[:1] not in ("{", "[") or residue[-1:] not in ("}", "]") or self._residue_looks > _MAX_LOOKS:
            return None
        self._residue_looks += not at_end
        members = _object_of(residue)
        return error_body(members) if members is not None and (members.get("error") or not self._seen) else None

    def _no_stream(self) -> list[Event]:
        """A body that is no stream at all is read as what it is."""
        if self._seen and (self._framing != "json_array" or self._normalizer.answer.recognised):
            return []
        head = self._sse.residue if self._sse is not None else self._head.decode("utf-8", "replace")
        if not head.strip():
            return []
        packed = self._head[:2] == b"\x1f\x8b" or self._head[:4] == b"\x28\xb5\x2f\xfd"
        what = "compressed bytes" if packed else f"no stream: {head.strip()[:_SHOWN]}"
        error = ErrorEvent("protocol", f"the body is {what}", "compressed" if packed else "not_a_stream", offset=0)
        events = self._normalizer.fail(error)
        self._notice_end()
        return events

    # -- pairs --------------------------------------------------------------------------------------------------------

    def _frames(self, payloads: Sequence[Any]) -> list[ServerSentEvent]:
        if self._sse is not None:
            return [self._sse.frame(k) for k in range(len(payloads))]
        return [ServerSentEvent(data=payload.decode("utf-8", "replace")) for payload in payloads]

    def _paired(self, events: list[Event]) -> list[Traced]:
        """Each frame of the last batch with its events; events beyond them belong to no frame."""
        pairs: list[Traced] = []
        at = 0
        frames = self._frames(self._payloads)
        for frame, count in zip(frames, _counts(self._spans, len(frames)), strict=True):
            pairs.append((frame, tuple(events[at : at + count])))
            at += count
        if at < len(events):
            pairs.append((None, tuple(events[at:])))
        return pairs

    def _frames_out(self, events_out: int) -> int:
        """How many frames of the last batch caused the first ``events_out`` events, the last one wholly."""
        at = 0
        for number, count in enumerate(_counts(self._spans, len(self._payloads))):
            at += count
            if at > events_out or (at == events_out and count):
                return number + (at == events_out)
        return len(self._payloads)


def _counts(spans: Sequence[tuple[int, int]], payloads: int) -> list[int]:
    """How many events each payload of a batch caused: one, but where a span says otherwise."""
    counts: list[int] = []
    at = 0
    for before, count in spans:
        counts += [1] * (before - at)
        counts.append(count)
        at = before + count
    return counts + [1] * (payloads - len(counts))


def _shifted(read: Callable[[int], Any], by: int, k: int) -> Any:
    return read(by + k)


def _sequence_number(payload: Any) -> int | None:
    try:
        members = payload if isinstance(payload, dict) else _NUMBERED.decode(payload)
    except DECODE_ERRORS:
        return None
    return members.get("sequence_number") if isinstance(members, dict) else members.sequence_number


class _Numbered(msgspec.Struct):
    sequence_number: int | None = None


_NUMBERED: Final = msgspec.json.Decoder(_Numbered)


def _is_whole(tail: bytes) -> bool:
    if is_done(tail) or is_keep_alive(tail):
        return True
    try:
        lenient(tail, max_depth=None)
    except BadJSON:
        return False
    except DepthExceeded:
        pass
    return True


def _object_of(text: str) -> dict[str, Any] | None:
    """The object in a body that is one, or a list of one (Google's REST errors)."""
    try:
        value = lenient(text)
    except (BadJSON, DepthExceeded):
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _error_of_body(body: bytes) -> ErrorEvent | None:
    """The error that the first object of a JSON body is, if it is no payload of any dialect."""
    members = _object_of(body.decode("utf-8", "replace"))
    return error_body(members) if members is not None and shape_of(members, None) is None else None


def _error_of_fault(fault: FramingError) -> ErrorEvent:
    message, offset = str(fault), fault.offset
    match fault:
        case FrameTooLarge():
            return ErrorEvent("limit", message, "frame", offset=offset)
        case TooDeep():
            return ErrorEvent("limit", message, "depth", offset=offset)
        case Truncated():
            return ErrorEvent("truncated", message, retryable=True, offset=offset)
        case _:
            return ErrorEvent("protocol", message, fault.code, offset=offset)


def _as_bytes(data: Any) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise UsageError(f"a stream is fed bytes, not {type(data).__name__}")
