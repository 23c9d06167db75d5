"""A file in, the figures of its answers out: one answer for the body of a response, one a turn for a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Final

import msgspec

from streamfold import FramingError, LiveSession, Snapshot, UsageError
from streamfold.cli._sessions import RecordedSession
from streamfold.costs import Cost, cost_of
from streamfold.live_session import TurnEvent
from streamfold.providers.registry import PROVIDERS, framing_of
from streamfold.recording.files import Recording, is_recording, read_recording, unpacked
from streamfold.recording.sessions import LOOKED_AT, Line, provider_of, told_session
from streamfold.timing import Stopwatch, Timing

__all__ = ["Asked", "Figures", "Measured", "files_in", "measure"]

STDIN: Final = "-"
SUFFIXES: Final = (".sfcap", ".sfcap.zst", ".sse", ".json", ".jsonl", ".ndjson", ".bin", ".body")
"""Files of a folder that are looked at; others have to be named."""

_READ: Final = 65536
_WITHOUT_TIMES: Final = ("bytes", "frames", "chunks", "output_tokens")  # figures that need none


class _NoAnswer(Exception):
    """The file says nothing that has figures."""


class Asked(msgspec.Struct, frozen=True):
    """What the caller said of the files."""

    provider: str
    framing: Any
    stall_s: float


class Figures(msgspec.Struct, frozen=True):
    """Of one answer.

    Attributes:
        turn: Which of a session; None for the body of a response.
        timed: Whether the file says when what came.
        fault: The provider's word for what went wrong, or ours.
    """

    file: str
    turn: int | None
    surface: str | None
    model: str | None
    outcome: str
    fault: str | None
    timed: bool
    timing: Timing
    input_tokens: int | None
    cost: Cost | None

    def members(self) -> dict[str, Any]:
        """As one JSON object: what nothing tells is null."""
        known = Timing.__struct_fields__ if self.timed else _WITHOUT_TIMES
        timing = {
            name: getattr(self.timing, name) if name in known else None
            for name in Timing.__struct_fields__
            if name != "gaps_s"  # as many as chunks
        }
        return {
            "file": self.file,
            "turn": self.turn,
            "surface": self.surface,
            "model": self.model,
            "outcome": self.outcome,
            "error": self.fault,
            **timing,
            "input_tokens": self.input_tokens,
            "cost_usd": self.cost and self.cost.cost_usd,
            "cost_is_estimate": self.cost and self.cost.cost_is_estimate,
        }


class Measured(msgspec.Struct, frozen=True):
    """Of one file: its answers, or what is wrong with it."""

    file: str
    answers: tuple[Figures, ...] = ()
    broken: str | None = None


def files_in(paths: Iterable[str]) -> Iterator[str]:
    """The files that are meant: those that are named, and what looks like recordings in folders and below, in order."""
    for path in paths:
        if path == STDIN or not os.path.isdir(path):
            yield path
        else:
            yield from _below(path)


def _below(top: str) -> Iterator[str]:
    closed: list[str] = []
    for folder, below, names in os.walk(top, onerror=lambda fault: closed.append(fault.filename)):
        below.sort()
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(SUFFIXES))
    yield from closed  # whoever opens one is told why it cannot be read


def measure(asked: Asked, path: str) -> Measured:
    """The figures of a file. What is wrong with it is told and not raised."""
    name = os.fsencode(path).decode(errors="replace")  # a name is bytes, and may be no text
    try:
        return Measured(name, tuple(_measured(asked, path, name)))
    except (FramingError, UsageError, OSError, _NoAnswer) as fault:
        words = fault.strerror if isinstance(fault, OSError) else None
        return Measured(name, broken=f"{name}: {words or fault}")


def _measured(asked: Asked, path: str, name: str) -> Iterator[Figures]:
    with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
        chunks = iter(partial(file.read, _READ), b"")
        first = next(chunks, b"")
        chunks = chain([first], chunks)
        if is_recording(first):
            yield from _of_recording(asked, name, read_recording(chunks))
        else:
            yield from _of_body(asked, name, chunks)


# -- recordings: with times -------------------------------------------------------------------------------------------


def _of_recording(asked: Asked, name: str, recording: Recording) -> Iterator[Figures]:
    head = recording.head
    told = head.provider if head.provider in PROVIDERS and asked.provider == "auto" else None
    asked = msgspec.structs.replace(asked, provider=told or asked.provider)
    url = head.request and head.request.url
    priced = {"url": url, "at": _moment(head.started)}
    if recording.is_session:
        found = list(_of_session(asked, name, recording, priced))
    else:
        found = [_of_response(asked, name, recording, priced)]
    if recording.intact is False:
        raise _NoAnswer("the bytes are not those that were recorded: their hash is another")
    yield from found


def _of_response(asked: Asked, name: str, recording: Recording, priced: dict[str, Any]) -> Figures:
    watch = Stopwatch(asked.provider, stall_s=asked.stall_s, framing=asked.framing)
    response = recording.head.response
    if response is not None:
        watch.head(response.t, response.status)
    now = 0

    def received() -> Iterator[bytes]:
        nonlocal now
        for read in recording:
            if not read.sent:
                now = read.t
                yield read.data

    for data in unpacked(received(), recording.headers.get("content-encoding")):
        watch.read(now, data)
    end = recording.end
    if end is None:  # the recorder died
        watch.end(now, "cut")
    else:
        watch.end(end.t, end.end)
    timed = _tells_times(now, recording)
    return _figures(name, None, watch.snapshot(), watch.timing(), timed=timed, priced=priced)


def _of_session(asked: Asked, name: str, recording: Recording, priced: dict[str, Any]) -> Iterator[Figures]:
    reads = list(recording)
    provider = (
        provider_of(Line("in", msgspec.Raw(read.data)) for read in reads[:LOOKED_AT])
        if asked.provider == "auto"
        else asked.provider
    )
    session = LiveSession(provider, max_turns=None)
    turns = _Turns(asked.stall_s)
    now = 0
    for read in reads:
        now = read.t
        if read.sent:
            session.sent(read.data)
            turns.sent(now)
        else:
            turns.came(now, session.feed(read.data))
    end = recording.end
    if end is not None and end.end != "cancel":
        turns.came(end.t, session.close(1006 if end.code is None and end.end == "cut" else end.code, end.reason or ""))
    else:
        turns.came(now if end is None else end.t, session.close())
    yield from turns.figures(name, session, timed=_tells_times(now, recording), priced=priced)


def _tells_times(last_ns: int, recording: Recording) -> bool:
    """Whether it says when what came: what was converted from a body or a cassette has 0 everywhere."""
    response, end = recording.head.response, recording.end
    return any((last_ns, response and response.t, end and end.t))


class _Turns:
    """A watch for each turn of a session: it starts with the last message that was sent before the turn began."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self._asked = 0
        self._watches: dict[int, Stopwatch] = {}

    def sent(self, at: int) -> None:
        """The client sent a message."""
        self._asked = at

    def came(self, at: int, told: Iterable[TurnEvent]) -> None:
        """A message brought these events."""
        of: dict[int, list[Any]] = {}
        for turn, event in told:
            if turn is not None:
                of.setdefault(turn, []).append(event)
        for turn, events in of.items():
            if turn not in self._watches:
                self._watches[turn] = Stopwatch(begun_ns=self._asked, stall_s=self._stall_s)
            self._watches[turn].see(at, *events)

    def figures(self, name: str, session: LiveSession, **how: Any) -> Iterator[Figures]:
        """Of every turn."""
        if not self._watches:
            raise _NoAnswer("the session holds no answer")
        for turn, watch in self._watches.items():
            yield _figures(name, turn, session.snapshot(turn), watch.timing(), **how)


# -- bodies: without times --------------------------------------------------------------------------------------------


def _of_body(asked: Asked, name: str, chunks: Iterator[bytes]) -> Iterator[Figures]:
    framing = asked.framing
    if framing in ("auto", "messages"):
        recorded, chunks = told_session(chunks)
        if recorded:
            session = RecordedSession(chunks, asked.provider, max_frame_bytes=None, max_turns=None)
            turns = _Turns(asked.stall_s)
            for told in session.batches():
                turns.came(0, told)
            yield from turns.figures(name, session.session, timed=False)
            return
        if "messages" in (framing, framing_of(asked.provider)):
            framing = "jsonl"  # in a file they are a line each
    watch = Stopwatch(asked.provider, framing=framing)
    for data in chunks:
        watch.read(0, data)
    watch.end(0)
    yield _figures(name, None, watch.snapshot(), watch.timing(), timed=False)


# -- both -------------------------------------------------------------------------------------------------------------


def _figures(
    name: str, turn: int | None, answer: Snapshot, timing: Timing, *, timed: bool, priced: dict[str, Any] | None = None
) -> Figures:
    error = answer.error
    nameless = answer.surface in (None, "unknown")
    if not timed and nameless and error is not None and error.kind in ("protocol", "truncated"):
        raise _NoAnswer(f"this holds no answer: {error.message}")
    fault = None if error is None else error.code or error.kind
    tokens = None if answer.usage is None else answer.usage.input_tokens
    cost = _cost(answer, priced or {})
    return Figures(name, turn, answer.surface, answer.model, answer.outcome, fault, timed, timing, tokens, cost)


def _cost(answer: Snapshot, priced: dict[str, Any]) -> Cost | None:
    try:
        return cost_of(answer, **priced)
    except UsageError:  # no price list is installed
        return None


def _moment(started: str | None) -> datetime | None:
    try:
        moment = None if started is None else datetime.fromisoformat(started)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
