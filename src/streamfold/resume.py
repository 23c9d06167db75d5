"""What to do when a connection breaks off before the answer has ended: pure policy, from values to values.

Knows the requests that take an answer up by its cursor, those that cancel one, and how long to wait. It does no I/O,
has no clock and draws no lots: whoever waits makes the jitter and does the waiting.

Source: the "Resume" and "Cancel" parts of the vendors' pages on background runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from streamfold.decoder import Cursor
from streamfold.events import ErrorEvent

__all__ = [
    "TAKE_UP",
    "Policy",
    "Sent",
    "Step",
    "TakeUp",
    "cancel_request",
    "reconnect_delay",
    "resume_request",
]

_FIRST_DELAY_S: Final = 0.5
_DOUBLINGS: Final = 64  # beyond them every cap is reached; 2.0 ** 2000 is no number
_OF_THE_BODY: Final = frozenset(
    {"content-length", "content-type", "content-encoding", "transfer-encoding", "expect", "idempotency-key"}
)
"""Headers that say something of a request with a body, and nothing of one that has none."""


class Sent(NamedTuple):
    """A request, as far as it decides what can follow.

    Attributes:
        method: ``POST``, ``GET``.
        url: Whole, with its query.
        headers: Names and values in order, the key among them.
        background: Whether its body asked for a run in the background.
        stream: Whether it asked for a stream.
        store: What it said of keeping the answer; None: nothing.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    background: bool = False
    stream: bool = False
    store: bool | None = None


class TakeUp(NamedTuple):
    """How a surface lets an answer be taken up.

    Attributes:
        cursor: The member of :class:`Cursor` that says how far it was read.
        parameter: The parameter of the query that says so to the provider.
    """

    cursor: Literal["last_sequence", "last_event_id"]
    parameter: str


TAKE_UP: Final[Mapping[str, TakeUp]] = {
    # surface -> ...; of runs in the background only. The others have no cursor: they can but start again.
    "openai-responses": TakeUp("last_sequence", "starting_after"),
    "gemini-interactions": TakeUp("last_event_id", "last_event_id"),
}
_WITHOUT: Final = frozenset({"xai"})
"""Providers that speak such a surface and answer ``background`` with status 400."""


class Step(NamedTuple):
    """What to do next.

    Attributes:
        action: ``stop``; ``resume`` by ``request``; ``restart``: send the first request again.
        delay_s: How long to wait before that, in seconds.
        request: Of ``resume``, what to send; None otherwise.
    """

    action: Literal["stop", "resume", "restart"]
    delay_s: float = 0.0
    request: Sent | None = None


class Policy(NamedTuple):
    """How persistent to be.

    Attributes:
        attempts: Connections in a row that may bring nothing new before it is given up; and how often an answer may be
            started again in all, since each start is paid for.
        restart: Whether an answer without a cursor may be started again.
        delay_s: The first wait, in seconds; it doubles.
        cap_s: Bound of the waits, in seconds. A provider that asks for more than this is not asked again.
    """

    attempts: int = 3
    restart: bool = False
    delay_s: float = _FIRST_DELAY_S
    cap_s: float = 30.0

    def next_step(
        self,
        error: ErrorEvent,
        resume: Sent | None,
        *,
        http_error: bool = False,
        failures: int = 1,
        restarts: int = 0,
        retry_ms: int = 0,
        jitter: float = 0.0,
    ) -> Step:
        """What to do about an answer that ended in this error.

        Args:
            error: The fatal error that would be told.
            resume: The request that takes the answer up (:func:`resume_request`), None where there is none.
            http_error: Whether the status of HTTP said so. An error inside the stream is the end of its run, and only
                another run can do better.
            failures: Connections in a row that broke off without bringing anything new, and the one before them.
            restarts: How often the answer was started again so far.
            retry_ms: The stream's last ``retry`` field, in milliseconds.
            jitter: A draw from ``[0, 1)``.
        """
        wait_s = max(retry_ms, error.retry_after_ms or 0) / 1000
        if not error.retryable or wait_s > self.cap_s:
            return Step("stop")
        run_is_over = error.kind == "provider" and not http_error
        if resume is not None and not run_is_over:
            tries, step = failures, Step("resume", request=resume)
        elif self.restart:
            tries, step = restarts + 1, Step("restart")
        else:
            return Step("stop")
        if tries > self.attempts:
            return Step("stop")
        backoff_s = reconnect_delay(tries, jitter=jitter, cap_s=self.cap_s, first_s=self.delay_s)
        return step._replace(delay_s=max(wait_s, backoff_s))


def reconnect_delay(
    attempt: int, *, jitter: float, cap_s: float = 30.0, retry_ms: int = 0, first_s: float = _FIRST_DELAY_S
) -> float:
    """How long to wait before opening the stream again.

    Args:
        attempt: Failures in a row so far, from 1.
        jitter: A draw from ``[0, 1)``, made by the caller: this module holds no randomness. Between half of the wait
            and all of it is waited, so that clients which lost one server do not all return at once.
        cap_s: Bound of the wait before jitter, in seconds; it starts at ``first_s`` and doubles.
        retry_ms: The stream's last ``retry`` field, in milliseconds; the wait is never shorter.
        first_s: The first wait, in seconds.

    Returns:
        Seconds to wait.

    Raises:
        ValueError: ``attempt`` is less than 1.

    Source:
        HTML Living Standard, "Server-sent events", reconnection time.
    """
    if attempt < 1:
        raise ValueError(f"attempts count from 1, not {attempt}")
    wait_s: float = min(cap_s, first_s * 2.0 ** min(attempt - 1, _DOUBLINGS))
    return max(wait_s * (1 + jitter) / 2, retry_ms / 1000)


def resume_request(surface: str, first: Sent, cursor: Cursor, provider: object = None) -> Sent | None:
    """The request that takes the answer up behind the cursor; None where there is no such thing.

    Args:
        surface: The wire dialect of the answer.
        first: The request that began it, or an earlier one that took it up.
        cursor: How far it was read.
        provider: As it was named, where it was.
    """
    way = TAKE_UP.get(surface)
    place = None if way is None else getattr(cursor, way.cursor)
    if way is None or place is None or not _runs_on(first, provider):
        return None
    url = _of_the_answer(first.url, cursor.response_id, drop=("stream", way.parameter))
    if url is None:
        return None
    parts = urlsplit(url)
    query = urlencode({"stream": "true", way.parameter: place})
    url = urlunsplit(parts._replace(query=f"{parts.query}&{query}" if parts.query else query))
    return first._replace(method="GET", url=url, headers=_without_body(first.headers))


def cancel_request(surface: str, first: Sent, cursor: Cursor, provider: object = None) -> Sent | None:
    """The request that cancels the answer; None where closing the connection is all that can be done.

    Args:
        surface: The wire dialect of the answer.
        first: The request that began it, or one that took it up.
        cursor: What names it.
        provider: As it was named, where it was.
    """
    if surface not in TAKE_UP or not _runs_on(first, provider):
        return None
    drop = ("stream", TAKE_UP[surface].parameter)
    url = _of_the_answer(first.url, cursor.response_id, "cancel", drop=drop)
    return None if url is None else first._replace(method="POST", url=url, headers=_without_body(first.headers))


def _runs_on(first: Sent, provider: object) -> bool:
    """Whether the answer goes on when the connection has gone. Only such a run can be got again by a GET at all."""
    if provider in _WITHOUT:
        return False
    return first.method == "GET" or (first.background and first.stream and first.store is not False)


def _of_the_answer(url: str, answer: str | None, *below: str, drop: tuple[str, ...]) -> str | None:
    """The answer's own address, by that of the request that began it: whatever leads to it leads to this, and whatever
    its query says (a key, the version of Azure) is said again."""
    if not answer or answer in (".", ".."):
        return None
    parts, name = urlsplit(url), quote(answer, safe="")
    path = parts.path.rstrip("/")
    if path.rpartition("/")[2] != name:
        path = f"{path}/{name}"
    path = "/".join((path, *below))
    query = [part for part in parts.query.split("&") if part and not _names(part, drop)]  # the rest as it was written
    return urlunsplit(parts._replace(path=path, query="&".join(query), fragment=""))


def _names(part: str, names: tuple[str, ...]) -> bool:
    return any(name in names for name, _ in parse_qsl(part, keep_blank_values=True))


def _without_body(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple([(name, value) for name, value in headers if name.lower() not in _OF_THE_BODY])
