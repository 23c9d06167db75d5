"""Unified events of one answer out of a source of bytes, pulled or awaited; and the answer folded in one call."""

from __future__ import annotations

from collections import deque
from typing import Final, Unpack

from streamfold.accumulator import StreamAccumulator
from streamfold.astream import AsyncByteSource, AsyncPullStream
from streamfold.decoder import CloseHow, Cursor, Settings, StreamDecoder, Traced
from streamfold.errors import UsageError
from streamfold.events import Event
from streamfold.providers.registry import Provider
from streamfold.snapshot import Snapshot
from streamfold.stream import ByteSource, PullStream, status_of

__all__ = [
    "AsyncUnifiedStream",
    "UnifiedStream",
    "afold",
    "aiter_traced",
    "aiter_unified",
    "fold",
    "iter_traced",
    "iter_unified",
]


_ELSEWHERE: Final = "another stream goes on with this answer: resume that one"


class UnifiedStream(PullStream[Event]):
    """Unified events of one answer. Iterate it; leaving its ``with`` closes the source."""

    def __init__(self, source: ByteSource, decoder: StreamDecoder) -> None:
        super().__init__(source, decoder)
        self._decoder = decoder
        decoder.came_with(*status_of(source))
        decoder.look_back()

    def resume(self, source: ByteSource) -> UnifiedStream:
        """Go on with the answer over another connection: what comes of it now belongs behind what came before.

        For an answer whose source failed or ended too early, and for one that was left early; this stream is closed, if
        it is not yet. Ask the provider for what comes after :attr:`cursor`: what it repeats is dropped, what it leaves
        out is reported. An ``error`` that said that the answer broke off is unsaid by this, and blocks that it closed
        go on.

        Args:
            source: The bytes of the new connection, as for :func:`iter_unified`.

        Returns:
            A stream whose ``snapshot()`` is of the whole answer. Of an answer that has come to its end it gives what
            was not handed out, and does not read the source.

        Raises:
            UsageError: ``source`` gives no bytes, or another stream has resumed this answer.
        """
        self.close()
        if not self._decoder.ended:
            raise UsageError(_ELSEWHERE)
        stream = UnifiedStream(source, self._decoder)
        stream._batch = iter(self._decoder.reconnect())
        self._batch = iter(())  # a snapshot of either stream is of the whole answer
        return stream

    @property
    def cursor(self) -> Cursor:
        """Of the last event handed out; it moves only when all events of a frame are out."""
        return self._decoder.cursor_at(self._left())

    def snapshot(self) -> Snapshot:
        """The answer as the events handed out so far tell it."""
        return self._decoder.snapshot(self._left())

    def _cancel(self) -> None:
        left = self._left()
        if left or not self._decoder.ended:
            self._decoder.cancel(left)


class AsyncUnifiedStream(AsyncPullStream[Event]):
    """Unified events of one answer. Iterate it; leaving its ``async with`` closes the source."""

    def __init__(self, source: AsyncByteSource, decoder: StreamDecoder) -> None:
        super().__init__(source, decoder)
        self._decoder = decoder
        decoder.came_with(*status_of(source))
        decoder.look_back()

    def resume(self, source: AsyncByteSource) -> AsyncUnifiedStream:
        """The async twin of :meth:`UnifiedStream.resume`; this stream has to be closed, or read to its end.

        Raises:
            UsageError: It is neither; ``source`` gives no bytes; another stream has resumed this answer.
        """
        if not self._closed:
            raise UsageError("this stream is open: leave its `async with`, or await aclose(), then resume")
        if not self._decoder.ended:
            raise UsageError(_ELSEWHERE)
        stream = AsyncUnifiedStream(source, self._decoder)
        stream._batch = iter(self._decoder.reconnect())
        self._batch = iter(())
        return stream

    @property
    def cursor(self) -> Cursor:
        """Of the last event handed out; it moves only when all events of a frame are out."""
        return self._decoder.cursor_at(self._left())

    def snapshot(self) -> Snapshot:
        """The answer as the events handed out so far tell it."""
        return self._decoder.snapshot(self._left())

    def _cancel(self) -> None:
        left = self._left()
        if left or not self._decoder.ended:
            self._decoder.cancel(left)


class _TraceStage:
    """Bytes to frames paired with the events they caused. It reads on after the end, whose frames cause none."""

    ended = False
    fault: None = None

    def __init__(self, source: AsyncByteSource, decoder: StreamDecoder) -> None:
        self._decoder = decoder
        decoder.came_with(*status_of(source))

    def feed(self, data: bytes) -> list[Traced]:
        """The pairs that these bytes complete."""
        return self._decoder.trace(data)

    def release(self) -> None:
        """Keep nothing of the last batch."""
        self._decoder.release()

    def close(self, how: CloseHow) -> list[Traced]:
        """The pairs that the end of input completes."""
        return self._decoder.trace_close(how)


def iter_unified(source: ByteSource, provider: Provider = "auto", **settings: Unpack[Settings]) -> UnifiedStream:
    """Unified events of one answer.

    Args:
        source: An iterable of bytes, an open binary file, a response with ``iter_bytes``, ``iter_content`` or ``read``.
        provider: Whose stream it is; ``auto`` tells by the first payload. Or a normaliser class of one's own.
        settings: See :class:`Settings`.

    Returns:
        An iterator of events and a context manager that closes the source, with ``snapshot()`` and ``cursor``.

    Raises:
        UsageError: An unknown provider or setting, or ``source`` gives no bytes. Nothing that a provider sends raises;
            what the source itself raises comes through, after an ``error`` event of kind ``transport``.
    """
    return UnifiedStream(source, StreamDecoder(provider, **settings))


def aiter_unified(
    source: AsyncByteSource, provider: Provider = "auto", **settings: Unpack[Settings]
) -> AsyncUnifiedStream:
    """The async twin of :func:`iter_unified`; ``source`` may also be an async iterable or have ``aiter_bytes``."""
    return AsyncUnifiedStream(source, StreamDecoder(provider, **settings))


def iter_traced(source: ByteSource, provider: Provider = "auto", **settings: Unpack[Settings]) -> PullStream[Traced]:
    """Each frame with the events that it caused, as ``(frame, events)``; arguments as for :func:`iter_unified`.

    Events that no frame caused (an error at a cut) come with the frame None. Unlike the others it reads to the end of
    the source: frames after the terminal sign are paired with ``()``.
    """
    return PullStream(source, _TraceStage(source, StreamDecoder(provider, **settings)))


def aiter_traced(
    source: AsyncByteSource, provider: Provider = "auto", **settings: Unpack[Settings]
) -> AsyncPullStream[Traced]:
    """The async twin of :func:`iter_traced`."""
    return AsyncPullStream(source, _TraceStage(source, StreamDecoder(provider, **settings)))


def fold(
    source: ByteSource,
    provider: Provider = "auto",
    *,
    into: StreamAccumulator | None = None,
    **settings: Unpack[Settings],
) -> Snapshot:
    """The whole answer.

    Args:
        source: As for :func:`iter_unified`.
        provider: As for :func:`iter_unified`.
        into: An accumulator of the caller's; it keeps the part that came, should the source raise.
        settings: See :class:`Settings`.

    Raises:
        UsageError: As for :func:`iter_unified`; what the source raises comes through.
    """
    decoder = StreamDecoder(provider, **settings)
    decoder.fold_into(into if into is not None else StreamAccumulator())
    try:
        with UnifiedStream(source, decoder) as stream:
            deque(stream, maxlen=0)
    finally:
        answer = decoder.snapshot()
    return answer


async def afold(
    source: AsyncByteSource,
    provider: Provider = "auto",
    *,
    into: StreamAccumulator | None = None,
    **settings: Unpack[Settings],
) -> Snapshot:
    """The async twin of :func:`fold`."""
    decoder = StreamDecoder(provider, **settings)
    decoder.fold_into(into if into is not None else StreamAccumulator())
    try:
        async with AsyncUnifiedStream(source, decoder) as stream:
            async for _ in stream:
                pass
    finally:
        answer = decoder.snapshot()
    return answer
