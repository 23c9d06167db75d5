"""A session of many turns over a WebSocket as one sans-IO object: messages in, events out, each with its turn.

Knows no socket and no provider: whoever has the connection feeds what it brings, and says when it closes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypedDict, Unpack

from streamfold import limits
from streamfold.accumulator import StreamAccumulator
from streamfold.errors import FrameTooLarge, UsageError
from streamfold.events import ErrorEvent, Event
from streamfold.framing.messages import WholeMessages
from streamfold.payloads import BadJSON, DepthExceeded, Payload, read_object
from streamfold.providers._answer import RawMode
from streamfold.providers._closes import QUIET, close_error
from streamfold.providers._live import SESSION_EVENTS, LiveNormalizer
from streamfold.providers._sessions import told_by
from streamfold.providers._table import Normalizer
from streamfold.providers.registry import Provider, normalizer, of_messages
from streamfold.snapshot import Snapshot

__all__ = ["LiveSession", "SessionSettings", "TurnEvent"]


class TurnEvent(NamedTuple):
    """An event, and whose it is.

    Attributes:
        turn: Number of the turn, from 0; None: the event is the session's.
        event: As everywhere. Of one turn they are a complete stream: ``start`` first, indexes from 0, ``done`` or a
            fatal ``error``; after that only what comes late (transcripts, usage, calls taken back).
    """

    turn: int | None
    event: Event


class SessionSettings(TypedDict, total=False):
    """The settings of a session; meanings and defaults as in :class:`streamfold.decoder.Settings`.

    Attributes:
        max_frame_bytes: Bound of one message, in bytes; None is no limit, here and below.
        max_depth: Levels of arrays and objects a message may nest.
        max_blocks: Blocks a turn may open.
        max_turns: Turns whose snapshots are kept.
        raw: Which ``raw`` events are handed out: ``all``, those of ``unknown`` kinds, or ``none``.
        call_id: Makes the ids of calls that came without one, from the index of their block.
    """

    max_frame_bytes: int | None
    max_depth: int | None
    max_blocks: int | None
    max_turns: int | None
    raw: RawMode
    call_id: Callable[[int], str] | None


class LiveSession:
    """The messages of one session in, over as many connections as it takes; events and a snapshot per turn out.

    Args:
        provider: Whose session it is: ``gemini-live``, ``openai-realtime``, …; or a normaliser class of one's own. A
            surface that gives one answer a connection has one turn for each. ``auto``: the first messages tell, those
            that are :meth:`sent` too; if they are like nobody's, all is ``raw`` and the turn ends truncated.
        settings: See :class:`SessionSettings`.

    Raises:
        UsageError: An unknown provider or setting, or a setting of another kind or range.
    """

    ended = False
    """Whether a message went over a limit: nothing more is read."""

    def __init__(self, provider: Provider, **settings: Unpack[SessionSettings]) -> None:
        if unknown := settings.keys() - SessionSettings.__annotations__.keys():
            raise UsageError(f"no setting is called {', '.join(sorted(unknown))}")
        bounds = {name: bound for name, bound in settings.items() if name in limits.LEAST}
        if wrong := limits.fault_of(**bounds):
            raise UsageError(wrong)
        self._max_turns = settings.get("max_turns", limits.MAX_TURNS)
        self._messages = WholeMessages(max_frame_bytes=settings.get("max_frame_bytes", limits.MAX_FRAME_BYTES))
        ours: Any = {name: value for name, value in settings.items() if name not in ("max_frame_bytes", "max_turns")}
        self._settings = ours
        self._reader = _reader_of(provider, ours)
        self._guess = _Guess() if provider == "auto" else None
        self._provider = provider
        self._turns: dict[int, StreamAccumulator] = {}
        self._let_go = 0  # turns before this one are no longer kept
        self._untold: list[TurnEvent] = []  # what a message of the client's made clear of those of the server

    # -- in -----------------------------------------------------------------------------------------------------------

    def feed(self, message: bytes | bytearray | memoryview | str | dict[str, Any]) -> list[TurnEvent]:
        """Take in the next message of the server; the events that it causes.

        Args:
            message: One whole message, of a text or a binary frame, or the object it decodes to.

        Raises:
            UsageError: It is neither bytes, text nor an object.
        """
        if self.ended:
            return []
        taken = self._messages.take(message)
        fault = self._messages.fault
        if isinstance(fault, FrameTooLarge):
            self.ended = True
            error = ErrorEvent("limit", str(fault), "frame", offset=fault.offset)
            return self._with_untold(self._told(self._reader.fail(error)))
        if self._guess is not None and taken:
            return self._with_untold(self._look(self._guess, taken[0]))
        return self._with_untold(self._told(self._reader.feed(taken)) if taken else [])

    def sent(self, message: Payload) -> None:
        """The client sent this message. Not needed, and it makes some answers better: which calls wait for a result.

        Args:
            message: JSON text, or the object it decodes to; what is neither says nothing.
        """
        if not isinstance(message, bytes | str | dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            return
        if self._guess is None:
            self._reader.sent(message)
        else:
            self._untold += self._look(self._guess, message, sent=True)

    def close(self, code: int | None = None, reason: str = "") -> list[TurnEvent]:
        """The connection has closed; the events that it causes. A next one may take the session up: go on feeding.

        A turn that was open was cut off, whatever the code: a fatal ``error`` of kind ``truncated``. Between two turns
        a close is an error where its code says so.

        Args:
            code: Of the close frame; None where it was the caller who left. A dropped connection has 1006.
            reason: Of the close frame.
        """
        if self.ended:
            return []
        events = self._with_untold(self._told(self._reader.disconnected(code, reason)))
        if self._turns:
            self._guess = None
        return events

    # -- out ----------------------------------------------------------------------------------------------------------

    @property
    def provider(self) -> Provider:
        """Whose session it is; ``auto`` where that was asked for and no message has told."""
        return self._provider

    @property
    def turns(self) -> Sequence[Snapshot]:
        """The turns as they stand, in order; of a very long session the last ones (``max_turns``)."""
        return tuple([turn.snapshot() for turn in self._turns.values()])

    def snapshot(self, turn: int | None = None) -> Snapshot:
        """One turn as it stands.

        Args:
            turn: Its number; None: the last one, which is empty before the first.

        Raises:
            UsageError: There is no such turn, or it is no longer kept.
        """
        if turn is None:
            return next(reversed(self._turns.values())).snapshot() if self._turns else Snapshot()
        if turn not in self._turns:
            raise UsageError(f"there is no turn {turn!r}, or it is no longer kept")
        return self._turns[turn].snapshot()

    @property
    def resume_handle(self) -> str | None:
        """By which another connection can take the session up; None where there is none.

        The one that came last between two turns: what was said after it may have to be said again.
        """
        return self._reader.handle

    @property
    def resumable(self) -> bool:
        """Whether taking it up now would lose nothing: the handle holds every turn, and the server said so last."""
        return self._reader.resumable

    @property
    def unsaved(self) -> Sequence[int]:
        """Numbers of the turns that whoever takes the session up by the handle has not, or not whole.

        Those that were open when it came, and those begun since; after a handle was refused (a non-fatal ``error`` with
        the code ``session_lost``) all before that too. Empty where there never was a handle, and where it names a
        conversation that the provider keeps as it goes on (xAI).
        """
        return self._reader.unsaved

    # -- the inside ---------------------------------------------------------------------------------------------------

    def _look(self, guess: _Guess, message: Payload, *, sent: bool = False) -> list[TurnEvent]:
        """A message while it is not sure whose the session is: what it means to the likeliest.

        Sessions that begin alike say the same of themselves until they differ, so that this is not told twice where
        another one turns out to be meant, and what was told before stands. No turn was told by then: the first one ends
        the looking.
        """
        events: list[TurnEvent] = []
        known = guess.provider
        guess.see(message)
        if guess.provider != known:
            self._provider = guess.provider
            self._reader = _reader_of(guess.provider, self._settings)
            again = [event for held, was_sent in guess.held for event in self._say(held, sent=was_sent)]
            events = [told for told in again if known == "auto" or told.turn is not None]
        guess.hold(message, sent=sent)
        events += self._say(message, sent=sent)
        if guess.sure or self._turns or (guess.full if guess.provider != "auto" else events):
            self._guess = None
        return events

    def _with_untold(self, events: list[TurnEvent]) -> list[TurnEvent]:
        if self._untold:
            events, self._untold = self._untold + events, []
        return events

    def _say(self, message: Payload, *, sent: bool) -> list[TurnEvent]:
        if not sent:
            return self._told(self._reader.feed([message]))
        self._reader.sent(message)
        return []

    def _told(self, events: list[Event]) -> list[TurnEvent]:
        owner_of = self._reader.answer.owners.get
        told: list[TurnEvent] = []
        for place, event in enumerate(events):
            turn = owner_of(place)
            told.append(TurnEvent(turn, event))
            if turn is not None and (turn >= self._let_go or turn in self._turns):
                self._accumulator(turn).push(event)
        return told

    def _accumulator(self, turn: int) -> StreamAccumulator:
        accumulator = self._turns.get(turn)
        if accumulator is None:
            accumulator = self._turns[turn] = StreamAccumulator()
            accumulator.late = True
            if self._max_turns is not None and len(self._turns) > self._max_turns:
                oldest = next(iter(self._turns))
                del self._turns[oldest]
                self._let_go = max(self._let_go, oldest + 1)
        return accumulator


def _reader_of(provider: Provider, settings: Any) -> LiveNormalizer:
    made = of_messages(provider, **settings)
    return made if isinstance(made, LiveNormalizer) else _OneAnswerEach(made, partial(normalizer, provider, **settings))


class _Guess:
    """Whose a session is whose provider nobody named, as far as its first messages tell.

    Attributes:
        provider: The likeliest; ``auto`` while none is.
        sure: Whether no other one begins like that.
        held: Messages so far, and whether the client sent them.
    """

    def __init__(self) -> None:
        self.provider, self.sure = "auto", False
        self.held: list[tuple[Payload, bool]] = []

    def see(self, message: Payload) -> None:
        """Take in what this message tells."""
        try:
            told = told_by(read_object(message, limits.MAX_DEPTH))
        except (BadJSON, DepthExceeded):
            return
        if told is not None and (told.sure or self.provider == "auto"):
            self.provider, self.sure = told

    def hold(self, message: Payload, *, sent: bool) -> None:
        """Keep it, to be read again if it turns out to be of another provider; of what was sent no more than that."""
        if not (sent and self.full):
            self.held.append((message, sent))

    @property
    def full(self) -> bool:
        """Whether enough was looked at."""
        return len(self.held) >= limits.MAX_SNIFF_PAYLOADS


class _OneAnswerEach(LiveNormalizer):
    """A surface that gives one answer a connection, over WebSockets too: each connection is a turn."""

    surface = "unknown"
    terminal = "its terminal sign"

    def __init__(self, first: Normalizer, another: Callable[[], Normalizer]) -> None:
        super().__init__()
        self._inner, self._another = first, another
        self._number = 0
        self._used = False

    def feed(self, payloads: Any) -> list[Event]:
        """The events that these payloads mean."""
        self._used = True
        return self._relayed(self._inner.feed(payloads))

    def disconnected(self, code: int | None = None, reason: str = "") -> list[Event]:
        """The connection has ended, and with it the answer; the next one brings another.

        A normal close is the clean end of input, which is the end of an answer on some surfaces.
        """
        chosen = self._inner.chosen or self._inner
        if chosen.answer.ended or not self._used:
            out = self._relayed([])
            if code not in QUIET:
                self.answer.add(close_error(code, reason, inside=False))
        elif code in (None, 1000):
            out = self._relayed(self._inner.close("eof"))
        else:
            out = self._relayed(self._inner.fail(close_error(code, reason, inside=True)))
        if self._used:
            self._inner, self._used = self._another(), False
            self._number += 1
        return out

    def fail(self, error: ErrorEvent) -> list[Event]:
        """End the answer with an error found below the messages."""
        return self._relayed(self._inner.fail(error))

    def _relayed(self, events: list[Event]) -> list[Event]:
        out = self.answer.begin([])
        for event in events:
            self.answer.add(event, None if isinstance(event, SESSION_EVENTS) else self._number)
        return out
