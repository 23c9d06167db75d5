"""Recorded sessions: the events of their messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import msgspec

from streamfold import FramingError, LiveSession, Malformed, TurnEvent
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.recording.sessions import LINE, LOOKED_AT, Line, provider_of

__all__ = ["RecordedSession"]


class RecordedSession:
    """The events of a recorded session, message by message.

    Args:
        chunks: The bytes of the recording.
        provider: Whose session it is; ``auto``: told by the first lines.
        max_frame_bytes: Bound of one message, in bytes.
        settings: Of the session.

    Attributes:
        session: What the messages were fed to.
    """

    def __init__(self, chunks: Iterable[bytes], provider: str, *, max_frame_bytes: int | None, **settings: Any) -> None:
        self._lines = self._lines_of(chunks, max_frame_bytes)
        if provider == "auto":
            first: list[Line] = []
            self._lines = chain(first, self._after(first))
            provider = provider_of(first)
        self.session = LiveSession(provider, max_frame_bytes=max_frame_bytes, **settings)

    def __iter__(self) -> Iterator[TurnEvent]:
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[list[TurnEvent]]:
        """The events of each message that came; none for one that was sent."""
        closed = True
        for line in self._lines:
            closed = line.dir == "close"
            if line.dir == "in":
                yield self.session.feed(bytes(line.frame))
            elif line.dir == "out":
                self.session.sent(bytes(line.frame))
                yield []
            else:
                yield self.session.close(line.code, line.reason or "")
        if not closed:  # the recording ends before the connection did
            yield self.session.close()

    def _after(self, first: list[Line]) -> Iterator[Line]:
        """Read the first lines into a list; the lines that follow, and the fault, if those met one."""
        lines = self._lines
        try:
            for line in islice(lines, LOOKED_AT):
                first.append(line)  # noqa: PERF402 - those before a fault stay
        except FramingError as fault:
            return _raising(fault)
        return lines

    def _lines_of(self, chunks: Iterable[bytes], max_frame_bytes: int | None) -> Iterator[Line]:
        parser = JSONLinesParser(max_frame_bytes=max_frame_bytes)
        number = 0
        for chunk in chain(chunks, (None,)):
            if chunk is None:
                parser.close()
            else:
                parser.feed(chunk)
            for text in parser:
                number += 1
                try:
                    yield LINE.decode(text)
                except (msgspec.DecodeError, RecursionError):
                    raise Malformed(f"line {number} is none of a recorded session", parser.offset_of(0)) from None


def _raising(fault: FramingError) -> Iterator[Line]:
    raise fault
    yield  # which makes it an iterator
