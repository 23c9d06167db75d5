"""Sessions of many turns over a WebSocket: what their dialects share.

Turn and session are two things. Each turn is an answer of its own (:class:`TurnAnswer`): indexes from 0, its own
``start`` and its own ``done`` or fatal ``error``. What is of no turn (``session``, ``go_away``, an error that leaves
the session open) the session says itself (:class:`SessionAnswer`). A dialect opens turns and ends them; whose each
event of a batch is stands in ``answer.owners``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, SupportsIndex, Unpack

import msgspec

from streamfold.events import ErrorEvent, Event, GoAway, Session, ToolCallCancelled
from streamfold.payloads import Payload, sanitize
from streamfold.providers._answer import Answer, NormalizerSettings
from streamfold.providers._closes import QUIET, close_error
from streamfold.providers._errors import truncated
from streamfold.providers._open_blocks import OpenCall
from streamfold.providers._table import BaseNormalizer, CloseHow, Cursor

__all__ = ["LiveNormalizer", "SessionAnswer", "TurnAnswer"]

_REMEMBERED: Final = 1024  # calls that may still be taken back

LOST: Final = "session_lost"
"""Code of the error that says that what was said so far is not known to the provider any more."""

SESSION_EVENTS: Final = (Session, GoAway)
"""What belongs to no turn, whoever says it."""


class SessionAnswer(Answer):
    """What the session says, and whose each event of the batch is.

    Attributes:
        owners: Place in the batch -> number of the turn; an event without a row is the session's.
        about: The turn that the payload being read is about, whose its ``raw`` is; None: no turn's.
        member: Of the payload, which is being read: names its ``raw`` where nothing else does.
    """

    started = True  # a session has no start: its turns have
    about: int | None = None
    member = ""

    def __init__(self, surface: str, settings: NormalizerSettings) -> None:
        super().__init__(surface, settings)
        self.owners: dict[int, int] = {}

    def begin(self, out: list[Event]) -> list[Event]:
        """Start a batch whose events go into this list."""
        self.owners = {}
        return super().begin(out)

    def add(self, event: Event, turn: int | None = None) -> None:
        """An event of that turn, or of none."""
        if turn is not None:
            self.owners[len(self.out)] = turn
        self.out.append(event)

    def raw(self, *, index: int | None = None, name: str = "", known: bool = True) -> None:
        """Hand out the payload, once at most, as one of the turn that it is about. See :meth:`Answer.raw`."""
        place = len(self.out)
        super().raw(index=index, name=sanitize(name or self.member), known=known)
        if len(self.out) > place and self.about is not None:
            self.owners[place] = self.about


class TurnAnswer(Answer):
    """One turn. Unlike other answers it may still say something after its ``done``: what is of it and comes late.

    Attributes:
        number: Of the turn in its session, from 0.
        waiting: Ids of the calls that it made, and that were neither answered nor taken back.
    """

    def __init__(self, session: SessionAnswer, number: int, settings: NormalizerSettings) -> None:
        super().__init__(session.surface, settings)
        self.number = number
        self.waiting: dict[str, None] = {}
        self._session = session
        self._mine: list[Event] = _Mine(session, number)
        self.out = self._mine

    @property
    def failed(self) -> bool:
        """Whether a fatal error ended it: nothing more can be said of it."""
        return self.ended and self.out is not self._mine

    def read(self, payload: Payload) -> None:
        """This payload is being read."""
        session = self._session
        self.payload, self.kind, self.offset_of = payload, session.kind, session.offset_of

    def raw(self, *, index: int | None = None, name: str = "", known: bool = True) -> None:
        """Hand out the payload, once at most; of a turn that failed it is no more. See :meth:`Answer.raw`."""
        self._session.about = None if self.failed else self.number
        self._session.raw(index=index, name=name, known=known)

    def said(self) -> None:
        """The payload means something, though it may cause no event: it does not come out as ``raw``."""
        self._session.said()

    def finish_call(self, call: OpenCall, whole: str | None = None, *, incomplete: bool = False) -> None:
        """The provider is through with the call. See :meth:`Answer.finish_call`."""
        super().finish_call(call, whole, incomplete=incomplete)
        if call.state == "ready":
            self.waiting[call.id] = None

    def answered(self, ids: Iterable[str]) -> None:
        """These calls wait for nothing any more: a plain stop of the turn is no tool use on their account."""
        for id_ in list(ids):
            if id_ in self.waiting:
                del self.waiting[id_]
                self._calling[0] = self._calling.get(0, 1) - 1

    def take_back(self, ids: tuple[str, ...]) -> None:
        """The provider wants these calls run no more."""
        self.out.append(ToolCallCancelled(ids))
        self.answered(ids)

    def done(self) -> None:
        """End the turn well. See :meth:`Answer.done`."""
        if not self.ended:
            super().done()
            self.out = self._mine

    def _remember_first(self) -> None:
        """Turns begin alike, and no two calls of a session may have one id: those made up are of the turn's number."""
        super()._remember_first()
        self._seed += b"#%d" % self.number


class _Mine(list[Event]):
    """Where a turn puts its events: into the batch of the session, as its own."""

    def __init__(self, session: SessionAnswer, number: int) -> None:
        super().__init__()
        self._session, self._number = session, number

    def append(self, event: Event, /) -> None:
        self._session.add(event, self._number)

    def insert(self, at: SupportsIndex, event: Event, /) -> None:
        """The one event that is inserted is ``start``, which a turn says before it says anything else."""
        self.append(event)


class LiveNormalizer(BaseNormalizer):
    """What the dialects of sessions do alike; see :class:`BaseNormalizer` for the rest.

    It goes on after the end of a turn. A dialect says in :meth:`_message` what a message means, by way of the turns
    that it opens with :meth:`open_turn` and ends with :meth:`end_turn`. A connection that ends (:meth:`disconnected`)
    ends the turns that were open with it, and another one may take the session up.

    Attributes:
        open: The turns that the wire has not ended, by number.
        opened: How many turns there were so far.
        session: The session as it was last told.
        handle: By which it can be taken up again: the last one that came between two turns, else the last one.
    """

    lives = True
    answer: SessionAnswer
    handle_ages = True
    """Whether a handle is of the moment in which it came; else it names the session, and holds what comes after."""

    def __init__(self, *, after: Cursor | None = None, **settings: Unpack[NormalizerSettings]) -> None:
        self._settings = settings
        super().__init__(after=after, **settings)

    def _begin(self) -> None:
        self.answer = SessionAnswer(self.surface, self._settings)
        self.open: dict[int, TurnAnswer] = {}
        self.opened = 0
        self.session = Session()
        self.handle: str | None = None
        self._whole = False  # whether the handle came between two turns
        self._held = 0  # turns that the handle holds whole, but for those that were lost
        self._lost = 0  # turns that no handle holds any more
        self._calls: dict[str, TurnAnswer] = {}  # whose the calls are that may be taken back
        self._turn: TurnAnswer | None = None  # the last that was opened

    @property
    def resumable(self) -> bool:
        """Whether taking the session up by the handle would lose nothing."""
        return self.handle is not None and self.session.resumable and not self._since

    @property
    def unsaved(self) -> tuple[int, ...]:
        """Turns that the provider does not hold by the handle, or not whole: lost, open when it came, or begun since.

        Where there never was a handle, or where it names the session itself, there is nothing to tell.
        """
        return (*range(self._lost), *(self._since if self.handle is not None and self.handle_ages else ()))

    @property
    def _since(self) -> range:
        """Turns that were open when the handle came, or have begun since."""
        if self.handle is None or not self.handle_ages:
            return range(min(self.open, default=self.opened), self.opened)
        return range(self._held, self.opened)

    # -- what a dialect says ------------------------------------------------------------------------------------------

    def _message(self, payload: Payload) -> bool:
        """Emit what the message means; whether its kind is in the dialect's table.

        Raises:
            BadJSON, DepthExceeded: From reading it.
        """
        raise NotImplementedError

    def open_turn(self, id: object = None, model: object = None) -> TurnAnswer:  # noqa: A002
        """A turn begins; its ``start`` goes out at once."""
        turn = self._turn = TurnAnswer(self.answer, self.opened, self._settings)
        self.open[turn.number] = turn
        self.opened += 1
        turn.read(self.answer.payload)
        turn.identify(id, model)
        self.answer.about = turn.number
        return turn

    def end_turn(self, turn: TurnAnswer, error: ErrorEvent | None = None) -> None:
        """A turn is over, done or failed. Its late words may still come."""
        self.open.pop(turn.number, None)
        if error is None:
            turn.done()
        else:
            turn.fail(error)

    def finish_call(
        self, turn: TurnAnswer, call: OpenCall, whole: str | None = None, *, incomplete: bool = False
    ) -> None:
        """The provider is through with a call of the turn, and may take it back later."""
        turn.finish_call(call, whole, incomplete=incomplete)
        if call.state == "ready":
            self._calls[call.id] = turn
            if len(self._calls) > _REMEMBERED:
                del self._calls[next(iter(self._calls))]

    def take_back(self, ids: Iterable[str]) -> bool:
        """The provider wants these calls run no more; whether it had made all of them."""
        ids = tuple(dict.fromkeys(ids))
        by_turn: dict[int, list[str]] = {}
        for id_ in ids:
            if id_ in self._calls:
                by_turn.setdefault(self._calls[id_].number, []).append(id_)
        for known in by_turn.values():
            self._calls[known[0]].take_back(tuple(known))
            for id_ in known:
                self._calls.pop(id_, None)
        return sum(map(len, by_turn.values())) == len(ids)

    def tell(self, session: Session, *, can_resume: bool = False) -> None:
        """The session says how it stands.

        Args:
            session: As it stands.
            can_resume: The message was about whether, and by which handle, it can be taken up again.
        """
        if can_resume:
            whole = not self.open
            if session.resumable and session.handle and (whole or not self._whole):
                self.handle, self._whole = session.handle, whole
                self._held = min(self.open, default=self.opened)
        else:
            session = Session(session.id, self.session.resumable, self.session.handle)
        self.session = session
        self.answer.add(session)

    def lose(self, error: ErrorEvent) -> None:
        """The provider refuses to take the session up: it knows nothing of what was said. A new one may begin.

        Args:
            error: By which it said so.
        """
        self.handle, self._whole, self._lost, self._held = None, False, self.opened, self.opened
        message = f"the session cannot be taken up: {error.message}"
        self.answer.add(msgspec.structs.replace(error, message=message, code=LOST, fatal=False))
        self.session = Session(self.session.id)
        self.answer.add(self.session)

    def go_away(self, time_left_ms: int | None) -> None:
        """The server will close the connection."""
        self.answer.add(GoAway(time_left_ms))

    def relay(self, turn: int, events: Iterable[Event]) -> None:
        """Events of a turn that another normaliser reads."""
        for event in events:
            self.answer.add(event, None if isinstance(event, SESSION_EVENTS) else turn)

    # -- in -----------------------------------------------------------------------------------------------------------

    def _mean(self, payload: Payload) -> bool:
        turn = self._turn
        goes_on = turn is not None and turn.number in self.open and not turn.ended
        self.answer.about = turn.number if turn is not None and goes_on else None
        self.answer.member = ""
        for turn in self.open.values():
            turn.read(payload)
        known = self._message(payload)
        if self._turn is not None:
            self.answer.id = self._turn.id
        return known

    def sent(self, message: Payload) -> None:
        """The client sent this, which tells what the server's messages leave open: which calls were answered.

        Whoever does not tell loses little: what the answers give away is read from them. Most dialects need none of it.
        """

    def disconnected(self, code: int | None = None, reason: str = "") -> list[Event]:
        """The connection has ended, and with it the turns that were open; another one may take the session up.

        Args:
            code: Of the close frame; None where it was the caller who left, or nobody knows.
            reason: Of the close frame.
        """
        out = self.answer.begin([])
        told = False  # by a turn that was cut off: what only the user said last is none
        for turn in list(self.open.values()):
            broke_off = not turn.ended
            if not self._ends_well(turn, code):
                self.end_turn(turn, close_error(code, reason, inside=True))
                told = told or broke_off
        if not told and code not in QUIET:
            self.answer.add(close_error(code, reason, inside=False))
        self._forget_connection()
        return out

    def _ends_well(self, turn: TurnAnswer, code: int | None) -> bool:
        """Whether a close is no truncation of this open turn, which the dialect has then ended."""
        return False

    def _forget_connection(self) -> None:
        """What was of the connection is of no use on the next one."""

    def fail(self, error: ErrorEvent) -> list[Event]:
        """End the session with an error found below the messages."""
        out = super().fail(error)
        self._forget_connection()
        self.answer.ended = True
        return out

    def replay(self) -> None:
        """A new connection begins."""
        self._forget_connection()

    @property
    def cursor(self) -> Cursor:
        """Of the last turn. It resumes no session: where one can, :attr:`handle` does."""
        turn = self._turn
        return Cursor(turn.id if turn else None, None, None, turn.last_signature if turn else None)

    def _fail(self, error: ErrorEvent) -> None:
        """A fatal error of the turns that are open; where none is, of the session.

        After a message that could not be read the rest of the turn still comes: the wire ends it, and nothing of it
        counts.
        """
        turns = [turn for turn in self.open.values() if not turn.ended]
        for turn in turns:
            if error.kind == "protocol":
                turn.fail(error)
            else:
                self.end_turn(turn, error)
        if not turns:
            self.answer.add(error)

    def _ended(self, how: CloseHow) -> None:
        if how == "cut":
            self._fail(ErrorEvent("transport", "the connection broke off", retryable=True))
        elif how == "eof" and not self.answer.recognised:
            self._fail(truncated(self.terminal))
        elif how == "eof":
            for turn in list(self.open.values()):
                if not self._ends_well(turn, None):
                    self.end_turn(turn, truncated(self.terminal))
        if how != "cancel":
            self._forget_connection()
