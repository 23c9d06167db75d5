"""A client over httpx2: it sends a request that you have built, and yields unified events until the answer has ended.

It builds no prompts. It reads the status and the content type, notices an upstream that froze, takes an answer up where
the provider lets it, and cancels it. Needs the extra ``client``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Unpack

from streamfold.decoder import Settings
from streamfold.errors import UsageError
from streamfold.providers.registry import Provider
from streamfold.resume import Policy

try:
    from streamfold.transports._course import EndHow, Head, Observer, Timeouts, make_course
    from streamfold.transports.http import AsyncClientStream, ClientStream, aopened, opened
except ModuleNotFoundError as fault:
    if fault.name not in ("anyio", "httpx2"):
        raise
    raise UsageError("the client needs httpx2: pip install 'streamfold[client]'") from None

if TYPE_CHECKING:
    import httpx2

__all__ = ["AsyncClientStream", "ClientStream", "EndHow", "Head", "Observer", "aopen_stream", "open_stream"]


def open_stream(
    request: httpx2.Request | str,
    url: str | None = None,
    *,
    headers: Any = None,
    json: Any = None,
    provider: Provider = "auto",
    client: httpx2.Client | None = None,
    connect_timeout_s: float | None = 10.0,
    first_byte_timeout_s: float | None = 120.0,
    idle_timeout_s: float | None = 120.0,
    drain_timeout_s: float = 0.1,
    restart: bool = False,
    attempts: int = 3,
    delay_s: float = 0.5,
    observer: Callable[[], Observer] | None = None,
    **settings: Unpack[Settings],
) -> ClientStream:
    """An answer over HTTP, as unified events: ``with open_stream("POST", url, json=…) as stream``.

    Args:
        request: An ``httpx2.Request``, or a method.
        url: With a method: where.
        headers: With a method: your key among them.
        json: With a method: the body.
        provider: Whose answer it is; ``auto`` tells by the first payload.
        client: An ``httpx2.Client`` whose connections are used, and used again. Without it each stream has its own.
        connect_timeout_s: How long to wait for a connection, in seconds; None, here and below, is for ever.
        first_byte_timeout_s: How long to wait for the head of the response, and again for the first byte behind it.
        idle_timeout_s: How long to wait for each further byte. A keep-alive is a sign of life.
        drain_timeout_s: How long to wait, once the answer has ended, for the end of the response, which sets the
            connection free for the next request.
        restart: Whether an answer that no cursor takes up is asked for again from its beginning. You pay for each.
        attempts: Connections in a row that may bring nothing new before it is given up; restarts in all.
        delay_s: How long to wait before the second of them; it doubles, up to half a minute, and varies at random.
            A longer ``retry`` field or Retry-After counts, if it is no more than half a minute.
        observer: Makes who looks on at a connection, for each of them: an :class:`Observer`, as
            :class:`streamfold.recording.files.Recorder` is one.
        settings: See :class:`streamfold.Settings`. With ``after``, ask for what comes after it.

    Raises:
        UsageError: Arguments that cannot be. While it is iterated: what httpx2 raises, behind the ``error`` event that
            says it, once nothing more is tried.
    """
    timeouts = Timeouts(connect_timeout_s, first_byte_timeout_s, idle_timeout_s, drain_timeout_s)
    course = make_course(provider, Policy(attempts, restart, delay_s), timeouts, observer, dict(settings))
    return opened(course, request, url, headers, json, client)


def aopen_stream(
    request: httpx2.Request | str,
    url: str | None = None,
    *,
    headers: Any = None,
    json: Any = None,
    provider: Provider = "auto",
    client: httpx2.AsyncClient | None = None,
    connect_timeout_s: float | None = 10.0,
    first_byte_timeout_s: float | None = 120.0,
    idle_timeout_s: float | None = 120.0,
    drain_timeout_s: float = 0.1,
    restart: bool = False,
    attempts: int = 3,
    delay_s: float = 0.5,
    observer: Callable[[], Observer] | None = None,
    **settings: Unpack[Settings],
) -> AsyncClientStream:
    """The async twin of :func:`open_stream`, under asyncio and trio; ``client`` is an ``httpx2.AsyncClient``."""
    timeouts = Timeouts(connect_timeout_s, first_byte_timeout_s, idle_timeout_s, drain_timeout_s)
    course = make_course(provider, Policy(attempts, restart, delay_s), timeouts, observer, dict(settings))
    return aopened(course, request, url, headers, json, client)
