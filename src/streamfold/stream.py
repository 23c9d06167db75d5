"""The loop beneath everything: a source of bytes, pulled one read at a time; and the two neutral layers on it.

Nothing is read before the consumer asks. Whoever leaves early closes the source; so does the end, a fault, and an
exception of the consumer. The source is closed exactly once. Knows frames; knows no provider.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain
from os import PathLike
from types import TracebackType
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack

from streamfold import limits
from streamfold.errors import FramingError, UsageError
from streamfold.events import Event
from streamfold.framing.eventstream import EventStreamMessage, EventStreamParser
from streamfold.framing.json_array import JSONArrayStreamParser
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.framing.messages import WholeMessages
from streamfold.framing.sse import AS_BYTES, ServerSentEvent, SSEParser

__all__ = [
    "ByteSource",
    "FrameSettings",
    "FrameStage",
    "MapStage",
    "Mapping",
    "PullStream",
    "Stage",
    "map_event_stream",
    "parse_event_stream",
]

T = TypeVar("T")

ByteSource: TypeAlias = Any
"""Where bytes come from: an iterable of bytes, an open binary file, a response with ``iter_bytes``, ``iter_content`` or
``read``, or the bytes themselves."""

Mapping: TypeAlias = Callable[[ServerSentEvent], "Iterable[Event] | None"]
"""A provider of one's own: a frame to the events it means."""

MANY_ITEMS: Final = 64
"""A batch of more is let go before the next read, which may be long in coming."""

MUCH: Final = 4096
"""Bytes of a read; so is the batch of a larger one."""

READ_BYTES: Final = 65536
"""How much is asked of a file at once; one that has less gives less."""


class Stage(Protocol[T]):
    """What turns reads into the items that a stream yields."""

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be read."""
        ...

    @property
    def fault(self) -> Exception | None:
        """What to raise once everything before it is out."""
        ...

    def feed(self, data: bytes) -> list[T]:
        """What these bytes complete."""
        ...

    def close(self, how: Literal["eof", "cut", "cancel"]) -> list[T]:
        """What the end of input completes."""
        ...

    def release(self) -> None:
        """All of the last batch was handed out, and a long wait may come: keep nothing of it."""
        ...


class PullStream(Generic[T]):
    """An iterator over what comes of a source, and a context manager that closes it."""

    def __init__(self, source: ByteSource, stage: Stage[T]) -> None:
        self._chunks, self._closers = open_source(source)
        self._stage = stage
        self._batch: Any = iter(())  # what is being handed out; it knows how much of it is left
        self._batches: Any = self._pull()  # Any: typing's Generator does not know that one can be running
        self._items: Iterator[T] = chain.from_iterable(self._batches)
        self._started = self._closed = False

    def __iter__(self) -> Iterator[T]:
        return self._items

    def __next__(self) -> T:
        return next(self._items)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with suppress(Exception):  # what is wrong is what was raised first
                self.close()

    def close(self) -> None:
        """Stop, and close the source. May be called at any time and more than once, by another thread too.

        A generator cannot be closed while it runs: a source that is one is closed as soon as its read returns.
        """
        self._items = iter(())
        left = self._left()
        deque(self._batch, maxlen=0)  # a loop may hold it still: it ends here
        self._batch = iter(range(left))  # and what was left of it goes on counting as not handed out
        if self._started and not self._batches.gi_running:
            self._batches.close()
        self._finish()

    def _pull(self) -> Generator[Iterator[T], None, None]:
        stage, chunks = self._stage, self._chunks
        feed = stage.feed
        self._started = True
        try:
            yield self._batch  # what another stream read of the same answer and never handed out
            reading = not stage.ended
            try:
                for chunk in chunks if reading else ():
                    reading = False  # what is raised from here on is not the source's
                    if self._closed:  # while it was read
                        return
                    items = feed(chunk)
                    if items:
                        self._batch = batch = iter(items)
                        yield batch
                        if len(chunk) > MUCH or len(items) > MANY_ITEMS:
                            items.clear()
                            stage.release()
                    if stage.ended:
                        break
                    reading = True
            except BaseException as fault:
                if reading:
                    if isinstance(fault, Exception):
                        yield self._handing_out(stage.close("cut"))
                    with suppress(Exception):  # what is wrong is what the source raised first
                        self._finish()
                raise
            if not self._closed and (items := stage.close("eof")):
                yield self._handing_out(items)
            if stage.fault is not None:
                raise stage.fault
        finally:
            self._finish()

    def _handing_out(self, items: list[T]) -> Iterator[T]:
        self._batch = batch = iter(items)
        return batch

    def _left(self) -> int:
        """How many items of the batch were not handed out yet."""
        left: int = self._batch.__length_hint__()
        return left

    def _finish(self) -> None:
        if not self._closed:
            self._closed = True
            if not sys.is_finalizing():  # at exit nobody asks how it ended, and nothing can be copied any more
                self._cancel()
        closers, self._closers = parted(self._closers)
        if closers:
            with ExitStack() as stack:  # all of them, though one raises
                for close in reversed(closers):
                    stack.callback(close)

    def _cancel(self) -> None:
        if not self._stage.ended:
            self._stage.close("cancel")


# -- sources ----------------------------------------------------------------------------------------------------------


def open_source(source: ByteSource) -> tuple[Iterator[bytes], list[Callable[[], object]]]:
    """The reads of a source, and what closes it.

    Raises:
        UsageError: It is nothing that gives bytes.
    """
    if isinstance(source, list | tuple):
        return iter(source), []
    if isinstance(source, bytes | bytearray | memoryview):
        return iter([bytes(source)]), []
    chunks = _reads(source)
    closers = [close for close in (getattr(chunks, "close", None), getattr(source, "close", None)) if callable(close)]
    return chunks, closers[-1:] if chunks is source else closers


Closer = TypeVar("Closer", bound=Callable[[], object])


def parted(closers: list[Closer]) -> tuple[list[Closer], list[Closer]]:
    """What can be called now; and what closes a generator that runs, which is left to who reads it."""
    later = [close for close in closers if _runs(getattr(close, "__self__", None))]
    return [close for close in closers if close not in later], later


def _runs(owner: object) -> bool:
    return any(getattr(owner, name, None) is True for name in ("gi_running", "ag_running"))


def status_of(source: Any) -> tuple[int | None, int | None]:
    """Of a response, its HTTP status if that is 400 or more, and for how many milliseconds it asks to wait."""
    status = getattr(source, "status_code", None)
    status = getattr(source, "status", None) if status is None else status
    if not isinstance(status, int) or status < 400:  # RFC 9110, 15.5
        return None, None
    get = getattr(getattr(source, "headers", None), "get", None)
    wait = (get("retry-after") or get("Retry-After")) if callable(get) else None
    return int(status), int(wait) * 1000 if isinstance(wait, str) and _SECONDS.fullmatch(wait) else None


_SECONDS: Final = re.compile(r"\d{1,9}", re.ASCII)


def _reads(source: Any) -> Iterator[bytes]:
    if hasattr(source, "iter_bytes"):  # httpx, httpx2
        return iter(source.iter_bytes())
    if hasattr(source, "iter_content"):  # requests; None: whatever has arrived
        return iter(source.iter_content(None))
    for name in ("read1", "read"):  # read1 gives what is there, read would wait for the whole amount
        if hasattr(source, name):
            return iter(partial(getattr(source, name), READ_BYTES), b"")
    if isinstance(source, Iterable) and not isinstance(source, str):
        return iter(source)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    hint = ""
    if isinstance(source, str | PathLike):
        hint = f"; {AS_BYTES}"
    elif hasattr(source, "__aiter__") or hasattr(source, "aiter_bytes"):
        hint = "; the async twins (afold, aiter_unified, …) take what is awaited"
    raise UsageError(f"{type(source).__name__} is no source of bytes{hint}")


# -- the neutral layers -----------------------------------------------------------------------------------------------


FrameFraming: TypeAlias = Literal["sse", "json_array", "eventstream", "jsonl", "messages"]


class FrameSettings(TypedDict, total=False):
    """Settings of the framing alone; meanings and defaults as in :class:`streamfold.decoder.Settings`."""

    framing: FrameFraming
    max_frame_bytes: int | None
    max_residue_bytes: int | None
    max_depth: int | None
    on_eof: Literal["flush", "discard"]


_FRAMINGS: Final[dict[str, tuple[Any, tuple[str, ...]]]] = {
    # name -> its parser, and the settings that reach it
    "sse": (SSEParser, ("max_frame_bytes", "max_residue_bytes", "on_eof")),
    "json_array": (JSONArrayStreamParser, ("max_frame_bytes", "max_depth")),
    "eventstream": (EventStreamParser, ("max_frame_bytes",)),
    "jsonl": (JSONLinesParser, ("max_frame_bytes",)),
    "messages": (WholeMessages, ("max_frame_bytes",)),
}


class FrameStage:
    """Bytes to frames. A fault is raised once the frames before it are out."""

    def __init__(self, *, framing: FrameFraming = "sse", **settings: Any) -> None:
        if not isinstance(framing, str) or framing not in _FRAMINGS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"no framing is called {framing!r}; there are {', '.join(_FRAMINGS)}")
        for name in settings.keys() - FrameSettings.__annotations__.keys():
            raise UsageError(f"no setting is called {name!r}; there are {', '.join(FrameSettings.__annotations__)}")
        wrong = limits.fault_of(**{name: bound for name, bound in settings.items() if name in limits.LEAST})
        if wrong is not None:
            raise UsageError(wrong)
        parser, its_own = _FRAMINGS[framing]
        self._parser = parser(**{name: value for name, value in settings.items() if name in its_own})
        self.fault: FramingError | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be read."""
        return self.fault is not None

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The frames that these bytes complete."""
        self._parser.feed(data)
        return self._ready()

    def close(self, how: Literal["eof", "cut", "cancel"]) -> list[ServerSentEvent]:
        """The frames that the end of input completes; a connection that was cut or left completes none."""
        if how != "eof" or self.ended:
            return []
        self._parser.close()
        return self._ready()

    def release(self) -> None:
        """Keep nothing of the last batch."""
        self._parser.release()

    def _ready(self) -> list[ServerSentEvent]:
        frames: list[ServerSentEvent] = []
        try:
            frames.extend(map(_frame_of, self._parser))
        except FramingError as fault:
            self.fault = fault
        return frames


def _frame_of(item: ServerSentEvent | EventStreamMessage | str) -> ServerSentEvent:
    """What a parser yields, as a frame."""
    match item:
        case ServerSentEvent():
            return item
        case EventStreamMessage():
            data = item.payload.decode("utf-8", "replace") or item.headers.get(":error-message", "")
            return ServerSentEvent(item.name or "message", str(data))
        case _:
            return ServerSentEvent(data=item)


class MapStage:
    """Bytes to frames to whatever a caller's own mapping makes of them."""

    def __init__(self, mapping: Mapping, frames: FrameStage) -> None:
        self._mapping, self._frames = mapping, frames
        self._raised: Exception | None = None  # by the mapping

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be read."""
        return self.fault is not None

    @property
    def fault(self) -> Exception | None:
        """What to raise once everything before it is out."""
        return self._raised or self._frames.fault

    def feed(self, data: bytes) -> list[Event]:
        """The events of the frames that these bytes complete."""
        return self._mapped(self._frames.feed(data))

    def close(self, how: Literal["eof", "cut", "cancel"]) -> list[Event]:
        """The events of the frames that the end of input completes."""
        return [] if self._raised else self._mapped(self._frames.close(how))

    def release(self) -> None:
        """Keep nothing of the last batch."""
        self._frames.release()

    def _mapped(self, frames: list[ServerSentEvent]) -> list[Event]:
        events: list[Event] = []
        try:
            for frame in frames:
                for event in self._mapping(frame) or ():
                    events.append(event)  # noqa: PERF402 - what came before a fault has to stay
        except Exception as fault:  # noqa: BLE001 - raised to the caller, behind the events before it
            self._raised = fault
        return events


def parse_event_stream(source: ByteSource, **settings: Unpack[FrameSettings]) -> PullStream[ServerSentEvent]:
    """The frames of a stream, nothing added; items, lines and messages of other framings stand in ``data``.

    Args:
        source: See :data:`ByteSource`.
        settings: See :class:`FrameSettings`.

    Returns:
        An iterator, and a context manager that closes the source.

    Raises:
        FramingError: While iterating, after the frames before the fault.
        UsageError: ``source`` gives no bytes, or a setting is unknown.
    """
    return PullStream(source, FrameStage(**settings))


def map_event_stream(source: ByteSource, mapping: Mapping, **settings: Unpack[FrameSettings]) -> PullStream[Event]:
    """The events that ``mapping`` makes of the frames: a provider of one's own.

    Nothing is added: no ``start``, no error at a cut. Push the events into a :class:`StreamAccumulator`, which asks
    little of them. What ``mapping`` raises reaches the caller.

    Args:
        source: See :data:`ByteSource`.
        mapping: A frame to an iterable of events, or None for none.
        settings: See :class:`FrameSettings`.

    Raises:
        FramingError: While iterating, after the events of the frames before the fault.
        UsageError: ``source`` gives no bytes, or a setting is unknown.
    """
    return PullStream(source, MapStage(mapping, FrameStage(**settings)))
