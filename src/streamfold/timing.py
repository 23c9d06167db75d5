"""When what of an answer came: timed reads in, figures out. Holds no clock: whoever waits for the bytes has one.

Names and definitions follow OpenTelemetry's conventions for generative AI; ``METRICS`` in :mod:`streamfold.otel` says
which figure goes by which name there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, Unpack

import msgspec

from streamfold.decoder import CloseHow, Settings, StreamDecoder
from streamfold.errors import UsageError
from streamfold.events import ErrorEvent, Event, Usage
from streamfold.providers.registry import Provider
from streamfold.snapshot import Snapshot

__all__ = ["STALL_S", "Stopwatch", "Timing", "percentile"]

STALL_S: Final = 2.0
"""Seconds without a chunk that count as a stall, unless a caller says otherwise."""

GLUED_PIECES: Final = 3  # pieces that come at once, where one is what a model makes at a time
GLUED_WAIT_NS: Final = 50_000_000  # silence before them; models that make 20 pieces a second are slow ones
GLUED_OF: Final = 8  # pieces of an answer from which on it can be told
AT_ONCE_NS: Final = 1_000_000  # between the reads by which a large piece of a body is taken from the kernel

_PIECES: Final = frozenset({"text_delta", "reasoning_delta", "tool_call_delta", "media_delta", "transcript_delta"})
_OF_BLOCKS: Final = _PIECES | {"block_start", "tool_call_start", "tool_call_done", "citation", "block_end"}
_NS: Final = 1_000_000_000


class Timing(msgspec.Struct, frozen=True):
    """When an answer came. Seconds from the request on; None: it never came, or nothing tells.

    A *chunk* is a frame that brings something of a block: neither a keep-alive, nor what opens or closes the answer,
    nor totals alone. A *gap* is the time from one chunk to the next, 0 for chunks of one read.

    Attributes:
        time_to_response_head_s: The head of the response.
        time_to_first_byte_s: The first byte of the body, keep-alives included.
        time_to_first_chunk_s: The first chunk.
        time_to_first_token_s: The first piece of text, reasoning or arguments.
        time_to_first_text_s: The first piece of visible text.
        duration_s: The end of the answer: its terminal sign or fatal error, else the end of the stream.
        gap_p50_s: Half of the gaps are no longer than this, by nearest rank.
        gap_p99_s: 99 of 100 gaps are no longer than this.
        gap_max_s: The longest gap.
        time_per_output_token_s: ``(duration - time to first token) / (output tokens - 1)``, of complete answers. What
            a model reasons before it sends anything is among the tokens, and not in this time.
        output_tokens_per_s: Output tokens over the whole duration, which no hidden reasoning flatters.
        output_tokens: As the provider counts them.
        stall_s: From which length on silence was a stall.
        stalls: Times that no chunk came for longer, behind the first chunk: up to the next one, or up to the end.
        stalled_s: How long they took together.
        glued: Whether something held pieces back and handed them out together: of at least 8, more than half came three
            or more at a time behind 50 ms of silence. None where there are too few, or no reads are known.
        reads: Reads that brought bytes.
        bytes: How many.
        frames: Frames in them.
        chunks: Those that brought something of a block.
        gaps_s: All gaps, in order.
    """

    time_to_response_head_s: float | None = None
    time_to_first_byte_s: float | None = None
    time_to_first_chunk_s: float | None = None
    time_to_first_token_s: float | None = None
    time_to_first_text_s: float | None = None
    duration_s: float | None = None
    gap_p50_s: float | None = None
    gap_p99_s: float | None = None
    gap_max_s: float | None = None
    time_per_output_token_s: float | None = None
    output_tokens_per_s: float | None = None
    output_tokens: int | None = None
    stall_s: float = STALL_S
    stalls: int = 0
    stalled_s: float = 0.0
    glued: bool | None = None
    reads: int = 0
    bytes: int = 0
    frames: int = 0
    chunks: int = 0
    gaps_s: tuple[float, ...] = ()


class Stopwatch:
    """Timed reads of one answer in, its :class:`Timing` out. Does no I/O and holds no clock.

    Where the bytes are at hand, ``read`` takes them; beside a stream that another reads, ``see`` takes its events. A
    time that lies before the one before counts as that one.

    Args:
        provider: Whose answer it is.
        begun_ns: When the request was sent, in nanoseconds on the caller's clock; all times are on that clock.
        stall_s: From which length on silence is a stall, in seconds.
        settings: Of the decoder that ``read`` feeds.

    Raises:
        UsageError: An unknown provider or setting, or a ``stall_s`` that is no length of time.
    """

    def __init__(
        self,
        provider: Provider = "auto",
        *,
        begun_ns: int = 0,
        stall_s: float = STALL_S,
        **settings: Unpack[Settings],
    ) -> None:
        if not stall_s >= 0:
            raise UsageError(f"stall_s is a number of seconds from 0 up, not {stall_s!r}")
        self._decoder = StreamDecoder(provider, **settings)
        self._begun = self._now = begun_ns
        self._stall_s = stall_s
        self._head: int | None = None
        self._byte: int | None = None
        self._chunk: int | None = None
        self._token: int | None = None
        self._text: int | None = None
        self._over: int | None = None  # the answer came to its end
        self._end: int | None = None  # the stream did
        self._complete = False
        self._beside = False  # a stream that another reads
        self._last = begun_ns  # chunk
        self._gaps = array("q")  # 8 bytes a chunk
        self._output_tokens: int | None = None
        self._reads = self._bytes = self._frames = self._chunks = 0
        self._deliveries = _Deliveries(begun_ns)

    def head(self, t_ns: int, status: int | None = None) -> None:
        """The head of the response came, with this HTTP status."""
        self._head = self._at(t_ns)
        if status is not None and status >= 400:
            self._decoder.came_with(status)

    def read(self, t_ns: int, data: bytes) -> list[Event]:
        """A read brought these bytes; the events that they complete.

        Raises:
            UsageError: ``data`` is no bytes.
        """
        at = self._at(t_ns)
        traced = self._decoder.trace(data)
        if data:
            self._reads += 1
            self._bytes += len(data)
            self._byte = at if self._byte is None else self._byte
        pieces = sum(self._frame(at, events) for _, events in traced)
        self._deliveries.came(at, pieces)
        self._frames += sum(frame is not None for frame, _ in traced)
        return [event for _, events in traced for event in events]

    def see(self, t_ns: int, *events: Event) -> None:
        """Beside a stream that is read elsewhere: these events were handed out.

        Those of one call are taken for one frame, as :func:`streamfold.iter_traced` pairs them; an event by itself is
        a frame by itself.
        """
        self._beside = True
        self._frame(self._at(t_ns), events)
        self._frames += 1

    def end(self, t_ns: int, how: CloseHow = "eof") -> list[Event]:
        """The stream ended; the events that this causes. Any number of times; the first counts.

        Raises:
            UsageError: Another ``how`` than those of :meth:`streamfold.StreamDecoder.close`.
        """
        if self._end is not None:
            return []
        at = self._at(t_ns)
        traced = [] if self._beside else self._decoder.trace_close(how)
        for _, events in traced:
            self._frame(at, events)
        self._frames += sum(frame is not None for frame, _ in traced)
        self._end = at
        return [event for _, events in traced for event in events]

    def snapshot(self) -> Snapshot:
        """The answer that ``read`` was given, as it stands."""
        return self._decoder.snapshot()

    def timing(self) -> Timing:
        """The figures, as far as they are known."""
        end = self._over if self._over is not None else self._end
        gaps = sorted(self._gaps)
        stalls = [gap for gap in self._gaps if gap > self._stall_s * _NS]
        if end is not None and self._chunk is not None and end - self._last > self._stall_s * _NS:
            stalls.append(end - self._last)
        duration = self._since(end)
        return Timing(
            self._since(self._head),
            self._since(self._byte),
            self._since(self._chunk),
            self._since(self._token),
            self._since(self._text),
            duration,
            percentile(gaps, 50) / _NS if gaps else None,
            percentile(gaps, 99) / _NS if gaps else None,
            gaps[-1] / _NS if gaps else None,
            self._time_per_token(end),
            self._output_tokens / duration if self._output_tokens is not None and duration else None,
            self._output_tokens,
            self._stall_s,
            len(stalls),
            sum(stalls) / _NS,
            self._deliveries.glued() if self._reads else None,
            self._reads,
            self._bytes,
            self._frames,
            self._chunks,
            tuple(gap / _NS for gap in self._gaps),
        )

    def _at(self, t_ns: int) -> int:
        self._now = max(self._now, t_ns)
        return self._now

    def _frame(self, at: int, events: Iterable[Event]) -> bool:
        """Take in the events of a frame; whether it brought a piece of the answer."""
        brought: set[str] = set()
        for event in events:
            brought.add(event.type)
            if isinstance(event, Usage):
                self._output_tokens = event.output_tokens
            elif event.type == "done" or (isinstance(event, ErrorEvent) and event.fatal):
                self._over, self._complete = at, event.type == "done"
            elif self._token is None and _is_token(event):
                self._token = at
            if self._text is None and event.type == "text_delta":
                self._text = at
        if brought & _OF_BLOCKS and not self._closes(brought):
            self._take(at)
        return bool(brought & _PIECES)

    def _closes(self, brought: set[str]) -> bool:
        """Whether the blocks are only closed because the answer is over: nothing of them came now."""
        return self._over is not None and brought & _OF_BLOCKS == {"block_end"}

    def _take(self, at: int) -> None:
        self._chunks += 1
        if self._chunk is None:
            self._chunk = at
        else:
            self._gaps.append(at - self._last)
        self._last = at

    def _since(self, at: int | None) -> float | None:
        return None if at is None else (at - self._begun) / _NS

    def _time_per_token(self, end: int | None) -> float | None:
        count = self._output_tokens or 0
        if end is None or self._token is None or count < 2 or not self._complete:
            return None
        return (end - self._token) / (count - 1) / _NS


class _Deliveries:
    """Pieces by the reads that brought them. What the kernel hands out in several reads in a row came at once."""

    def __init__(self, begun: int) -> None:
        self._last = begun  # read that brought pieces
        self._in_read = 0  # pieces of that
        self._wait = self._count = 0  # of the delivery that is open
        self._glued = self._all = 0  # pieces

    def came(self, at: int, pieces: int) -> None:
        """A read brought so many."""
        if not pieces:
            return
        wait = at - self._last
        same = wait == 0 and self._in_read > 0
        if not same and not (wait < AT_ONCE_NS and self._in_read >= GLUED_PIECES):
            self._glued += self._held_back()
            self._wait, self._count = wait, 0
        self._in_read = pieces + (self._in_read if same else 0)
        self._count += pieces
        self._all += pieces
        self._last = at

    def glued(self) -> bool | None:
        """Whether most were held back."""
        return None if self._all < GLUED_OF else 2 * (self._glued + self._held_back()) > self._all

    def _held_back(self) -> int:
        return self._count if self._count >= GLUED_PIECES and self._wait >= GLUED_WAIT_NS else 0


def _is_token(event: Event) -> bool:
    return event.type in ("text_delta", "reasoning_delta") or (event.type == "tool_call_delta" and event.delta != "")


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The least of the values that no fewer than this share of them are up to (nearest rank): one of them, not a mean.

    Args:
        ordered: Values from the least to the greatest.
        percent: From 1 to 100.

    Raises:
        UsageError: There are no values, or no such share.
    """
    if not ordered or not 1 <= percent <= 100:
        raise UsageError(f"there is no percentile {percent} of {len(ordered)} values")
    return ordered[-(-percent * len(ordered) // 100) - 1]
