"""What happens to an answer over HTTP from its first request to its end, whoever waits for it, and however.

Leaves the deciding to :mod:`streamfold.resume` and the waiting to the wires: it is told what came and how a connection
ended, and says what comes of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import httpx2
import msgspec

from streamfold.decoder import CloseHow, StreamDecoder
from streamfold.errors import UsageError
from streamfold.events import ErrorEvent, Event
from streamfold.providers.registry import Provider
from streamfold.recording._redact import redacted_fault
from streamfold.resume import Policy, Sent, Step, cancel_request, resume_request

__all__ = ["Course", "EndHow", "Head", "Observer", "Timeouts", "make_course"]

EndHow: TypeAlias = Literal["eof", "cut", "cancel"]
"""How a connection ended: the body came to its end, it broke off, or this side left it."""

FRAMING_OF: Final[Mapping[str, str]] = {
    # media type -> framing, where the first byte does not tell more: under ``text/event-stream`` error bodies and
    # arrays are seen, under ``application/json`` event streams
    "application/vnd.amazon.eventstream": "eventstream",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}
_REQUEST_IDS: Final = ("x-request-id", "request-id", "x-amzn-requestid", "apim-request-id", "x-goog-request-id")
_ERROR_TYPE: Final = "x-amzn-errortype"  # AWS: ``ThrottlingException``, perhaps a colon and an address behind it
_NUMBER: Final = re.compile(r"\d{1,18}(?:\.\d{1,9})?", re.ASCII)


class Head(NamedTuple):
    """The head of a response.

    Attributes:
        status: Of HTTP.
        headers: By name, whatever its case.
        http_version: ``HTTP/1.1``, ``HTTP/2``.
    """

    status: int
    headers: httpx2.Headers
    http_version: str


class Observer(Protocol):
    """Looks on at one connection: a request, what is answered, how it ends."""

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> None:
        """The request is about to be sent. All is as it is sent, keys included."""
        ...

    def response(self, status: int, headers: Iterable[tuple[str, str]], http_version: str) -> None:
        """The head of the response has come."""
        ...

    def read(self, data: bytes) -> None:
        """A read of the body has come, as it came: compressed, if it was. What is drained behind the answer too."""
        ...

    def end(self, how: EndHow, *, error: str | None = None) -> None:
        """The connection has ended, by this fault if it broke off. Once, and after nothing else."""
        ...


class Timeouts(NamedTuple):
    """How long to wait for what, in seconds; None is for ever.

    Attributes:
        connect_s: For a connection, one of a pool included.
        first_byte_s: For the head of the response, and again for the first byte behind it.
        idle_s: For any further byte.
        drain_s: For the end of the response, once the answer has ended.
    """

    connect_s: float | None
    first_byte_s: float | None
    idle_s: float | None
    drain_s: float


class _Ended(NamedTuple):
    """How a connection ended, for the course to decide by."""

    how: Literal["eof", "cut", "refused"]
    error: ErrorEvent | None = None
    fault: Exception | None = None
    body: bytes = b""


class Course:
    """An answer from its first request to its end, over as many connections as it takes. A stage of a stream.

    Its source gives the reads of a connection and then an empty one, which stands for its end: here it is decided
    whether that is told, or another connection goes on.
    """

    fault: Exception | None = None
    over = False
    """Whether the answer itself has come to its end."""

    def __init__(
        self,
        decoder: StreamDecoder,
        provider: Provider,
        policy: Policy,
        timeouts: Timeouts,
        observe: Callable[[], Observer] | None,
    ) -> None:
        self.decoder, self.timeouts = decoder, timeouts
        self._provider, self._policy = provider, policy
        self.first = self.sent = Sent("GET", "")
        self.body = b""
        self.head: Head | None = None
        self.step = Step("stop")
        self.again = False  # this connection is done with, and ``step`` says how another one goes on
        self._ended: _Ended | None = None
        self._observe = observe
        self.observer: Observer | None = None  # of the connection that stands
        self._came = False  # any bytes, by this connection
        self._stood = decoder.cursor  # when this connection was made
        self._failures = self._restarts = 0

    def begin(self, sent: Sent, body: bytes) -> None:
        """This is the first request."""
        self.first, self.body = _told_by(sent, body), body
        self.sent = self.first

    # -- of a connection ----------------------------------------------------------------------------------------------

    def asks(self) -> tuple[Sent, bytes]:
        """What is to be sent now."""
        body = self.body if self.sent is self.first else b""
        self._came = self.again = False
        self._stood = self.decoder.cursor
        if self._observe is not None:
            self.observer = self._observe()
            self.observer.request(self.sent.method, self.sent.url, self.sent.headers)
        return self.sent, body

    def answered(self, head: Head) -> bool:
        """The head has come; whether what follows may be an answer, and not only say why there is none."""
        self.head = head
        if self.observer is not None:
            self.observer.response(head.status, head.headers.multi_items(), head.http_version)
        if head.status >= 300:  # a redirection that the client was not to follow is no answer either
            return False
        media_type = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.decoder.came_with(None, None, _request_id(head), FRAMING_OF.get(media_type, "auto"))
        return True

    def came(self) -> None:
        """A read has come."""
        self._came = True

    @property
    def patience_s(self) -> float | None:
        """How long the next read may take."""
        return self.timeouts.idle_s if self._came else self.timeouts.first_byte_s

    def hung_up(self, how: EndHow) -> None:
        """The connection is done with."""
        observer, self.observer = self.observer, None
        if observer is not None:
            fault = self._ended.fault if how == "cut" and self._ended is not None else None
            observer.end(how, error=None if fault is None else f"{type(fault).__name__}: {fault}")

    def finished(self) -> None:
        """The body came to its end."""
        self._ended = _Ended("eof")

    def refused(self, body: bytes) -> None:
        """There is no answer, and this is why."""
        self._ended = _Ended("refused", body=body)

    def broke(self, fault: httpx2.HTTPError) -> None:
        """The connection broke off, or never stood."""
        said = redacted_fault(str(fault), self.sent.headers)
        self._ended = _Ended("cut", _error_of(fault, said, self._came), fault)

    # -- of the stream ------------------------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        """Whether nothing more is to be read."""
        return self.decoder.ended

    def feed(self, data: bytes) -> list[Event]:
        """The events of a read, or of the end of a connection."""
        if not data:
            return self._go_on()
        events = self.decoder.feed(data)
        return self._at_the_end(events) if events and self.decoder.ended else events

    def close(self, how: CloseHow) -> list[Event]:
        """The end of input, which is not up to this side."""
        return self.decoder.close(how)

    def release(self) -> None:
        """Keep nothing of the last batch."""
        self.decoder.release()

    def _at_the_end(self, events: list[Event]) -> list[Event]:
        """The answer has ended by itself. Another one may do better than one that failed."""
        self.over = True
        error = events[-1]
        if not isinstance(error, ErrorEvent) or self._decide(error).action != "restart":
            self.step = Step("stop")
            return events
        self.over = False
        return [*events[:-1], *self._anew(error)]

    def _go_on(self) -> list[Event]:
        ended, self._ended = self._ended, None
        if self.decoder.ended or ended is None:
            return []
        if ended.how == "refused":
            return self._after_refusal(ended.body)
        if ended.how == "cut":
            assert ended.error is not None
            step = self._decide(ended.error)
            if step.action == "stop":
                self.fault = ended.fault
                return self.decoder.close("cut", ended.error)
            return self._anew(ended.error) if step.action == "restart" else self._taken_up([])
        return self._after_end(self.decoder.close("eof"))

    def _after_end(self, events: list[Event]) -> list[Event]:
        """The body came to its end, and perhaps the answer did not."""
        error = events[-1] if events else None
        if not isinstance(error, ErrorEvent) or not error.fatal:
            self.over = True
            return events
        behind = self.decoder.only_broke_off
        step = self._decide(error)
        if step.action == "restart":
            return [*events[: len(events) - (behind or 1)], *self._anew(error)]
        if step.action == "resume" and behind:
            return self._taken_up(events[: len(events) - behind])
        self.step = Step("stop")
        return events

    def _after_refusal(self, body: bytes) -> list[Event]:
        """The status says that there is no answer, or none this time."""
        assert self.head is not None
        headers = self.head.headers
        code = headers.get(_ERROR_TYPE, "").partition(":")[0] or None
        said = (self.head.status, _wait_asked_ms(headers), _request_id(self.head), "auto", code)
        judge = StreamDecoder(self._provider)
        judge.came_with(*said)
        error = [*judge.feed(body), *judge.close()][-1]
        if isinstance(error, ErrorEvent):
            step = self._decide(error, http_error=True)
            if step.action != "stop":
                return self._anew(error) if step.action == "restart" else self._taken_up([])
        self.decoder.came_with(*said)
        return [*self.decoder.feed(body), *self.decoder.close()]

    def cancelling(self) -> Sent | None:
        """The request that cancels the answer, where there is one and it has not ended."""
        if self.over:
            return None
        return cancel_request(self.decoder.surface, self.first, self.decoder.cursor, self._provider)

    def _decide(self, error: ErrorEvent, *, http_error: bool = False) -> Step:
        decoder = self.decoder
        # What moved the cursor is new, though it meant nothing more: many events only repeat what deltas said. What did
        # not, will come again, or is none of this answer's.
        self._failures = 1 if decoder.cursor != self._stood else self._failures + 1
        self.step = self._policy.next_step(
            error,
            resume_request(decoder.surface, self.first, decoder.cursor, self._provider),
            http_error=http_error,
            failures=self._failures,
            restarts=self._restarts,
            retry_ms=decoder.retry_ms or 0,
            jitter=random.random(),
        )
        return self.step

    def _taken_up(self, events: list[Event]) -> list[Event]:
        """Another connection goes on behind what came."""
        assert self.step.request is not None
        self.sent, self.again = self.step.request, True
        self.decoder.reconnect()
        return events

    def _anew(self, error: ErrorEvent) -> list[Event]:
        """Another connection begins again."""
        self._restarts += 1
        self.sent, self.again = self.first, True
        return self.decoder.restart(f"{error.code or error.kind}: {error.message}")


def make_course(
    provider: Provider,
    policy: Policy,
    timeouts: Timeouts,
    observe: Callable[[], Observer] | None,
    settings: dict[str, Any],
) -> Course:
    """The course of an answer.

    Raises:
        UsageError: A setting that cannot be.
    """
    for name, value in timeouts._asdict().items():
        if not (_is_duration(value) or (value is None and name != "drain_s")):
            raise UsageError(f"a timeout is a number of seconds, or None for none, not {value!r}")
    if isinstance(policy.attempts, bool) or not isinstance(policy.attempts, int) or policy.attempts < 0:
        raise UsageError(f"attempts is a whole number from 0 up, not {policy.attempts!r}")
    if settings.get("after") is not None:  # the first request asks for the rest of an answer, and not for all of it
        policy = policy._replace(restart=False)
    return Course(StreamDecoder(provider, **settings), provider, policy, timeouts, observe)


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _told_by(sent: Sent, body: bytes) -> Sent:
    """The request, with what its body asks for."""
    try:
        asked = msgspec.json.decode(body, type=_Asked)  # which skips the rest, and that may be many megabytes
    except (msgspec.DecodeError, RecursionError):
        return sent
    store = asked.store if isinstance(asked.store, bool) else None
    return sent._replace(background=asked.background is True, stream=asked.stream is True, store=store)


class _Asked(msgspec.Struct):
    background: Any = None
    stream: Any = None
    store: Any = None


_FAULTS: Final[tuple[tuple[type[httpx2.HTTPError], str, bool], ...]] = (
    # class, code, whether another try may do better; the first that fits counts
    (httpx2.ConnectTimeout, "connect_timeout", True),
    (httpx2.PoolTimeout, "connect_timeout", True),
    (httpx2.TimeoutException, "idle_timeout", True),
    (httpx2.ConnectError, "connect_failed", True),
    (httpx2.ProxyError, "connect_failed", True),
    (httpx2.UnsupportedProtocol, "unsupported_protocol", False),
    (httpx2.LocalProtocolError, "request", False),
    (httpx2.TransportError, "broken_off", True),
    (httpx2.DecodingError, "compressed", False),
    (httpx2.HTTPError, "request", False),
)


def _error_of(fault: httpx2.HTTPError, said: str, came: bool) -> ErrorEvent:
    """A failure of the transport as an event."""
    _, code, retryable = next(row for row in _FAULTS if isinstance(fault, row[0]))
    if code == "idle_timeout" and not came:
        code = "first_byte_timeout"
    message = _SENTENCES.get(code, "the connection broke off")
    return ErrorEvent("transport", f"{message}: {said}" if said else message, code, retryable=retryable)


_SENTENCES: Final = {
    "connect_timeout": "no connection within its time",
    "first_byte_timeout": "no first byte within its time",
    "idle_timeout": "no byte within the idle time",
    "connect_failed": "no connection",
    "unsupported_protocol": "the address cannot be asked",
    "request": "the request cannot be sent",
    "compressed": "the body cannot be decompressed",
}


def _request_id(head: Head) -> str | None:
    return next((head.headers[name] for name in _REQUEST_IDS if head.headers.get(name)), None)


def _wait_asked_ms(headers: Mapping[str, str]) -> int | None:
    """For how many milliseconds the response asks to wait: RFC 9110, 10.2.3, and OpenAI's own header."""
    own, wait = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    if _NUMBER.fullmatch(own):
        return int(float(own))
    if _NUMBER.fullmatch(wait):
        return int(float(wait) * 1000)
    try:  # a date, which counts from the sender's own clock
        until, since = (parsedate_to_datetime(text) for text in (wait, headers.get("date", "")))
        return max(0, int((until - since).total_seconds() * 1000))
    except (ValueError, TypeError):
        return None
