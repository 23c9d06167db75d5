"""What every normaliser is, and the small readers they share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Protocol, TypeAlias, Unpack

import msgspec

from streamfold import limits
from streamfold.errors import UsageError
from streamfold.events import ErrorEvent, Event
from streamfold.payloads import BadJSON, DepthExceeded, Payload, is_done, is_keep_alive
from streamfold.providers._answer import Answer, NormalizerSettings
from streamfold.providers._errors import truncated

__all__ = [
    "END",
    "BaseNormalizer",
    "CloseHow",
    "Cursor",
    "More",
    "Normalizer",
    "Say",
    "id_of",
    "text_of",
    "whole_number",
]

CloseHow = Literal["eof", "cut", "cancel"]

END: Final[Payload] = {}
"""This object stands for a payload where there is none left."""
More: TypeAlias = Callable[[Iterable[Payload], Callable[[Event], None]], Payload]
"""Reads payloads for as long as each is one more piece of what the last one was, and adds their events: one each, or
what the answer's ``spans`` say.

Returns the first payload that is something else, ``END`` if there is none.
"""
Say: TypeAlias = Callable[[str], Event]
"""Makes the event of a piece; a ``partial`` of the event's class costs no more than the class."""


class Cursor(msgspec.Struct, frozen=True, gc=False):
    """How far an answer was read: enough to ask for the rest where a provider can resume.

    To keep one as JSON: ``msgspec.json.encode(cursor)``, and back by ``Cursor(**members)`` or
    ``msgspec.json.decode(text, type=Cursor)``.

    Attributes:
        response_id: The provider's name for the answer.
        last_sequence: The last sequence number (OpenAI Responses).
        last_event_id: The surface's own last event id (Gemini Interactions), else the stream's SSE id.
        last_signature: The last signature of reasoning that came whole.
    """

    response_id: str | None = None
    last_sequence: int | None = None
    last_event_id: str | None = None
    last_signature: str | None = None


class Normalizer(Protocol):
    """Payloads of one wire dialect in, unified events out; nothing raises on input."""

    surface: str
    answer: Answer
    next_sequence: int | None
    last_event_id: str | None
    chosen: Normalizer | None
    more: More | None
    lives: bool

    def feed(self, payloads: Iterable[Payload]) -> list[Event]:
        """The events that these payloads mean."""
        ...

    def read(self, payloads: Iterator[Payload], out: list[Event], more: More | None) -> None:
        """The same into a list of the caller's; ``more`` is how to begin."""
        ...

    def close(self, how: CloseHow = "eof") -> list[Event]:
        """The end of input: ``eof`` clean, ``cut`` by the transport, ``cancel`` by the caller."""
        ...

    def fail(self, error: ErrorEvent) -> list[Event]:
        """End the answer with an error found below the payloads."""
        ...

    def replay(self) -> None:
        """A new connection begins, which may repeat payloads."""
        ...

    @property
    def cursor(self) -> Cursor:
        """Of all payloads fed so far."""
        ...


def text_of(value: Any) -> str:
    """The value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def id_of(value: Any) -> str:
    """The value if it is an id, else nothing: empty, null and the word "null" count as absent."""
    return value if isinstance(value, str) and value != "null" else ""


def whole_number(value: Any) -> int | None:
    """The value if it is a whole number that can count something, else None."""
    return value if type(value) is int and value >= 0 else None  # type(): true is no number


class BaseNormalizer:
    """What all normalisers do alike; a dialect adds its table.

    A subclass names its ``surface`` and its ``terminal`` sign, and says in :meth:`_mean` what a payload means. Where
    the payload was a piece of something, it may leave in ``more`` a reader for more pieces of the same: the short way
    of the everyday payload, which :meth:`_mean` defines.
    """

    surface: str
    terminal: str

    chosen: Normalizer | None = None
    """Who goes on in its place, where a normaliser only finds out which dialect a stream speaks."""
    next_sequence: int | None = None
    """The sequence number that should come next, on surfaces that number their payloads."""
    last_event_id: str | None = None
    """The last event id of the surface's own, on surfaces whose payloads have one."""
    more: More | None = None
    unwrap: Callable[[Payload], Payload] | None = None
    """What takes each payload out of the one that it came in; None where they come bare, as nearly always."""
    lives = False
    """Whether it goes on with another turn after the end of one."""
    hot = True
    """Whether payloads may take the short way. For tests only."""

    _shallow = 2 * limits.MAX_DEPTH  # a payload of fewer bytes cannot hold the brackets to nest too deep

    def __init__(self, *, after: Cursor | None = None, **settings: Unpack[NormalizerSettings]) -> None:
        try:
            surface, _ = self.surface, self.terminal
        except AttributeError as fault:
            raise UsageError(f"{type(self).__name__} has to name its surface and its terminal sign: {fault}") from None
        self.answer = Answer(surface, settings)
        self.next_sequence = self.last_event_id = None
        if settings:
            if unknown := settings.keys() - NormalizerSettings.__annotations__.keys():
                raise UsageError(f"no setting is called {', '.join(sorted(unknown))}")
            depth = self.answer.max_depth
            self._shallow = sys.maxsize if depth is None else 2 * depth
        self._begin()
        if after is not None:
            self._resume(after)

    def _begin(self) -> None:
        """Set up what the dialect remembers of an answer."""

    def _resume(self, after: Cursor) -> None:
        """This reading continues the one that the cursor is of."""
        self.answer.id = after.response_id
        self.answer.last_signature = after.last_signature

    def feed(self, payloads: Iterable[Payload]) -> list[Event]:
        """The events that these payloads mean.

        Args:
            payloads: JSON text (``str`` or ``bytes``) or decoded objects, one each.
        """
        out: list[Event] = []
        self.read(iter(payloads), out, self.more)
        return out

    def read(self, payloads: Iterator[Payload], out: list[Event], more: More | None) -> None:
        """Add what each payload of a batch means, and pair it with the events that it causes.

        One that means nothing is handed out as ``raw``.

        Args:
            payloads: The batch.
            out: Where its events go.
            more: The short way to try first; None where the first payload is known to be none of its.
        """
        answer = self.answer
        if out is not answer.out:  # else the batch has begun
            answer.begin(out)
        if self.unwrap is not None:
            payloads = map(self.unwrap, payloads)
        mean = self._mean
        while not answer.ended:
            payload = next(payloads, END) if more is None else more(payloads, out.append)
            if payload is END:
                return
            before = answer.before = len(out)
            answer.payload, answer.kind, answer.meant = payload, None, False
            try:
                if known := mean(payload):
                    answer.recognised = True
            except (BadJSON, DepthExceeded) as fault:
                known = self._unreadable(payload, fault)
            except RecursionError:  # where a caller lifted ``max_depth`` beyond what the interpreter follows
                known = self._unreadable(payload, DepthExceeded())
            if len(out) != before + 1 or not answer.started:
                answer.pair(out, known=known)
            more = self.more
        self.more = None
        for _ in payloads:  # after the end they mean nothing
            answer.spans.append((len(out), 0))
            answer.surplus -= 1

    def close(self, how: CloseHow = "eof") -> list[Event]:
        """The end of input.

        Args:
            how: ``eof``, a clean end: the answer is done or truncated, as its surface says. ``cut``: the transport
                failed. ``cancel``: the caller stopped, which is no event.
        """
        out = self.answer.begin([])
        self.more = None
        if not self.answer.ended:
            self._ended(how)
        self.answer.ended = True
        return out

    def fail(self, error: ErrorEvent) -> list[Event]:
        """End the answer with an error found below the payloads: a frame too large, a body that is no stream."""
        out = self.answer.begin([])
        self.more = None
        if not self.answer.ended:
            self._fail(error)
        return out

    def replay(self) -> None:
        """A new connection begins, which may repeat payloads; dialects without numbers cannot tell."""
        self.more = None

    @property
    def cursor(self) -> Cursor:
        """Of all payloads fed so far."""
        last = None if self.next_sequence is None else self.next_sequence - 1
        return Cursor(self.answer.id, last, self.last_event_id, self.answer.last_signature)

    def _mean(self, payload: Payload) -> bool:
        """Emit what the payload means; whether its kind is in the dialect's table.

        Raises:
            BadJSON, DepthExceeded: From reading it by :func:`streamfold.payloads.read_object`: an end of the answer,
                which :meth:`_unreadable` tells. Whatever else is raised here is a fault of the code, not of the
                payload, and reaches the caller.
        """
        raise NotImplementedError

    def _sentinel(self) -> bool:
        """``[DONE]`` came; most dialects have no use for it."""
        return True

    def _end_of_input(self) -> None:
        """The clean end of input without the terminal sign of most dialects: truncated."""
        self._fail(truncated(self.terminal))

    def _fail(self, error: ErrorEvent) -> None:
        self.answer.fail(error)

    def _ended(self, how: CloseHow) -> None:
        if how == "eof":
            self._end_of_input()
        elif how == "cut":
            self._fail(ErrorEvent("transport", "the connection broke off", retryable=True))

    def _unreadable(self, payload: Payload, fault: BadJSON | DepthExceeded) -> bool:
        """What is no JSON: a sentinel, a keep-alive, or the end of the answer."""
        answer = self.answer
        if isinstance(fault, DepthExceeded):
            levels = f"{answer.max_depth} levels" if answer.max_depth is not None else "levels than can be followed"
            self._fail(answer.payload_error("limit", f"a payload nests more than {levels}", "depth"))
        elif is_done(payload):
            return self._sentinel()
        elif not is_keep_alive(payload):
            self._fail(answer.payload_error("protocol", f"a payload is no JSON: {fault}", "bad_json"))
        return True
