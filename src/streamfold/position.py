"""How far a batch of events is handed out, in frames: what a cursor can name, as it moves by whole frames alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec

from streamfold.events import Event, Restart, Start
from streamfold.payloads import BadJSON, DepthExceeded, Reader
from streamfold.providers._table import Cursor, Normalizer

__all__ = ["Before", "Position", "counts_of", "frames_out", "nothing"]

Before: TypeAlias = tuple[int | None, str | None, str | None, str | None, bool]
"""Where the reading stood before a batch: the number that should come next, event id, response id, signature, and
whether the dialect was known."""


def counts_of(spans: Sequence[tuple[int, int]], payloads: int) -> list[int]:
    """How many events each payload of a batch caused: one, but where a span says otherwise."""
    counts: list[int] = []
    at = 0
    for before, count in spans:
        counts += [1] * (before - at)
        counts.append(count)
        at = before + count
    return counts + [1] * (payloads - len(counts))


def nothing(before: int, payloads: int) -> list[tuple[int, int]]:
    """The spans of payloads that caused no event, behind so many events."""
    return [(before, 0)] * payloads


def frames_out(counts: Sequence[int], events_out: int, frames: int = 0, events: int = 0) -> tuple[int, int]:
    """How many frames of a batch caused the first ``events_out`` events, the last one wholly; and their events.

    So many frames and their events are known to be among them.
    """
    while frames < len(counts) and events + counts[frames] <= events_out:
        events += counts[frames]
        frames += 1
        if events == events_out and counts[frames - 1]:
            break
    return frames, events


class Position:
    """How far a batch is handed out. It only goes on: who asks after each event asks for the next few frames."""

    def __init__(
        self,
        batch: Sequence[Event],
        payloads: Sequence[Any],
        spans: Sequence[tuple[int, int]],
        before: Before,
        given: Cursor,
    ) -> None:
        self.batch, self._payloads = batch, payloads
        self._counts = counts_of(spans, len(payloads))
        self.total = sum(self._counts)  # events that frames caused
        self.out = -1  # events that are out
        self.frames = self.events = 0  # frames that are out wholly, and their events
        sequence, self.event_id, self.response_id, _, self._known = before
        self.sequence = given.last_sequence if sequence is None else sequence - 1
        self._numbered = 0  # frames whose numbers are known

    @property
    def held(self) -> bool:
        """Whether what came before the dialect was known is not out yet."""
        return not self._known and not self.events

    def move(self, out: int, normalizer: Normalizer) -> None:
        """So many events are out now."""
        if out == self.out:
            return
        self.out, begin = out, self.events
        self.frames, self.events = frames_out(self._counts, out, self.frames, self.events)
        if self.held:
            return
        for payload in self._payloads[self._numbered : self.frames]:
            numbered = _numbered(payload)
            if normalizer.next_sequence is not None and numbered.sequence_number is not None:
                self.sequence = max(numbered.sequence_number, -1 if self.sequence is None else self.sequence)
            if normalizer.last_event_id is not None:
                self.event_id = numbered.event_id or self.event_id
        self._numbered = self.frames
        for event in self.batch[begin : self.events]:
            if isinstance(event, Start | Restart):
                self.response_id = (event.id or self.response_id) if isinstance(event, Start) else None


class _Numbered(msgspec.Struct):
    sequence_number: int | None = None
    event_id: str | None = None


_NUMBERED: Final = Reader(_Numbered)


def _numbered(payload: Any) -> _Numbered:
    """What a payload is numbered by, on the surfaces that number theirs."""
    try:
        return _NUMBERED.read(payload, None) or _Numbered()
    except (BadJSON, DepthExceeded):
        return _Numbered()
