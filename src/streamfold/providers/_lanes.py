"""Responses over a WebSocket: many responses on one connection, one after another, or beside each other in lanes.

Each response is a turn, and a stream as it is over HTTP: a normaliser of that dialect reads it. Here is told which one
a message is for: by its lane (``stream_id``), and in its lane by the response that it announces. A successor that the
server starts by itself (after ``response.steer``) is a turn like any other.

There is no cursor: the numbers count anew with each response, and a connection that drops loses what was running.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Unpack

import msgspec

from streamfold.events import ErrorEvent, Event
from streamfold.payloads import Payload, Reader, read_object
from streamfold.providers._answer import NormalizerSettings
from streamfold.providers._closes import QUIET, close_error
from streamfold.providers._errors import provider_error, truncated
from streamfold.providers._live import LiveNormalizer
from streamfold.providers._table import CloseHow, Cursor, Normalizer, id_of, text_of

__all__ = ["LanesNormalizer"]

OF_THE_CONNECTION: Final = frozenset({"websocket_connection_limit_reached"})
"""Errors that refuse no request: the connection is at its end."""

ANNOUNCING: Final = frozenset({"response.created", "response.queued", "response.in_progress"})
"""What may begin a response in a lane where another one has ended."""

_MOST: Final = 1024  # lanes that are known by their names; servers allow 32

_NO_RESPONSE: Final = ("response.steer.", "response.inject.")


class _Response(msgspec.Struct, gc=False):
    id: Any = None


class _Message(msgspec.Struct, gc=False):
    type: Any = None
    stream_id: Any = None
    response: _Response | None = None
    object: Any = None
    id: Any = None
    error: Any = None


_MESSAGE: Final = Reader(_Message)


class _Lane(msgspec.Struct, eq=False):
    """What runs in a lane, or ran last.

    Attributes:
        reader: Who reads it.
        turn: Its number.
    """

    reader: Normalizer
    turn: int

    @property
    def runs(self) -> bool:
        """Whether its end has not come."""
        return not self.reader.answer.ended


class LanesNormalizer(LiveNormalizer):
    """Messages of many responses to unified events, each response a turn.

    Args:
        another: Makes a normaliser for the next response.
    """

    surface = "openai-responses"
    terminal = "a terminal event"

    def __init__(self, another: Callable[[], Normalizer], **settings: Unpack[NormalizerSettings]) -> None:
        super().__init__(**settings)
        self._another = another

    def _begin(self) -> None:
        super()._begin()
        self._lanes: dict[str, _Lane] = {}
        self._last_id: str | None = None

    def _message(self, payload: Payload) -> bool:
        self.answer.about = None
        message = _MESSAGE.read(payload, self.answer.max_depth)
        if message is None:
            return False
        name, kind = text_of(message.stream_id), text_of(message.type)
        lane = self._lanes.get(name)
        running = lane if lane is not None and lane.runs else None
        if kind == "error" or (message.error and not kind and not message.object):
            return self._error(name, running, message, payload)
        if running is None and self._begins(message, kind, lane):
            running = self._open(name)
        elif running is not None and kind == "response.created" and self._is_another(message, running):
            self._relay(running, running.reader.fail(truncated(self.terminal)))
            running = self._open(name)
        if running is None:
            return kind.startswith("response.")
        self._read_in(running, payload)
        return True

    def _begins(self, message: _Message, kind: str, lane: _Lane | None) -> bool:
        """Whether a message begins a response in a lane where none runs."""
        if lane is None:  # perhaps not from its first event
            return message.object == "response" or (
                kind.startswith("response.") and not kind.startswith(_NO_RESPONSE) and kind != "response.event"
            )
        return (kind in ANNOUNCING or message.object == "response") and self._is_another(message, lane)

    def _is_another(self, message: _Message, lane: _Lane) -> bool:
        id_ = id_of(message.response.id if message.response is not None else message.id)
        known = lane.reader.answer.id
        return id_ != known if id_ and known else not lane.runs

    def _error(self, name: str, running: _Lane | None, message: _Message, payload: Payload) -> bool:
        """A nested error is a frame of the connection, and ends what its lane runs; or it refuses a request.

        A flat one belongs to the events of the response, and ``response.failed`` may follow.
        """
        if running is not None and not isinstance(message.error, dict):
            self._read_in(running, payload)
            return True
        members = read_object(payload, self.answer.max_depth) or {}
        flat = {member: members[member] for member in ("code", "message", "param") if members.get(member) is not None}
        error = provider_error(members.get("error") or flat, members)
        if running is None and error.code in OF_THE_CONNECTION:
            self.answer.add(msgspec.structs.replace(error, fatal=False))
            return True
        running = running or self._open(name)
        self._relay(running, running.reader.fail(error))
        return True

    def _open(self, name: str) -> _Lane:
        self._lanes.pop(name, None)
        lane = self._lanes[name] = _Lane(self._another(), self.opened)
        self.opened += 1
        if len(self._lanes) > _MOST:
            oldest = self._lanes.pop(next(iter(self._lanes)))
            fault = ErrorEvent("limit", f"more than {_MOST} lanes", "lanes")
            self._relay(oldest, oldest.reader.fail(fault))
        return lane

    def _read_in(self, lane: _Lane, payload: Payload) -> None:
        answer = lane.reader.answer
        answer.offset_of = self.answer.offset_of
        events = lane.reader.feed([payload])
        self._relay(lane, events)
        self._last_id = answer.id or self._last_id
        if not events:
            self.answer.said()

    def _relay(self, lane: _Lane, events: list[Event]) -> None:
        self.relay(lane.turn, events)

    def _running(self) -> list[_Lane]:
        return [lane for lane in self._lanes.values() if lane.runs]

    # -- ends ---------------------------------------------------------------------------------------------------------

    def _sentinel(self) -> bool:
        for lane in self._running():
            self._read_in(lane, self.answer.payload)
        return True

    def disconnected(self, code: int | None = None, reason: str = "") -> list[Event]:
        """The connection has ended, and with it what the server knew of its responses."""
        out = self.answer.begin([])
        running = self._running()
        for lane in running:
            self._relay(lane, lane.reader.fail(close_error(code, reason, inside=True)))
        if not running and code not in QUIET:
            self.answer.add(close_error(code, reason, inside=False))
        self._forget_connection()
        return out

    def _forget_connection(self) -> None:
        self._lanes = {}

    @property
    def cursor(self) -> Cursor:
        """No place to go on from; the id is that of the last response, which the next one may continue."""
        return Cursor(self._last_id)

    def _fail(self, error: ErrorEvent) -> None:
        running = self._running()
        for lane in running:
            self._relay(lane, lane.reader.fail(error))
        if not running:
            self.answer.add(error)

    def _ended(self, how: CloseHow) -> None:
        if how == "eof" and self.opened:
            for lane in self._running():
                self._relay(lane, lane.reader.close(how))
        else:
            super()._ended(how)
