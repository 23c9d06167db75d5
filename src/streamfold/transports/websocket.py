"""Live sessions over the ``websockets`` library: connect, send what is given, yield events as they are asked for.

What the messages mean, and whether the session can be taken up again, is decided by :class:`LiveSession`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, Unpack

from streamfold import limits
from streamfold.errors import LinkError, UsageError
from streamfold.events import GoAway
from streamfold.live_session import LiveSession, SessionSettings, TurnEvent
from streamfold.providers._closes import meaning_of
from streamfold.recording._redact import redacted_fault
from streamfold.transports._take_up import TAKE_UP, Message, Opening

__all__ = ["LiveConnection", "LiveEndHow", "LiveObserver", "live"]

_NORMAL: Final = 1000
_NO_FRAME: Final = 1006
_LONGEST_DELAY_S: Final = 8.0
_CLOSING_S: Final = 2.0  # is waited for the server to agree that it is over; a frozen one never does
_OF_A_NOTICE: Final = 2 / 3  # is waited for a turn to end: connecting anew takes its time too

LiveEndHow: TypeAlias = Literal["eof", "cut", "cancel"]
"""How a connection ended: the server closed it, it broke off or was not to be had, or this side left it."""


class LiveObserver(Protocol):
    """Looks on at one connection: its opening request, the messages both ways, how it ends.

    :class:`streamfold.Recorder` is one.
    """

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> None:
        """The opening request is about to be sent. All is as it was given, keys included."""
        ...

    def response(self, status: int, headers: Iterable[tuple[str, str]], http_version: str) -> None:
        """It was answered: 101, or why not."""
        ...

    def read(self, data: bytes, *, op: Literal["text", "binary"], sent: bool) -> None:
        """A message has come, or is about to be sent."""
        ...

    def end(
        self, how: LiveEndHow, *, error: str | None = None, code: int | None = None, reason: str | None = None
    ) -> None:
        """The connection has ended, with this close code, or by this fault. Once, and after nothing else."""
        ...


def live(
    provider: str,
    url: str,
    *,
    opening: Iterable[Message] = (),
    headers: Mapping[str, str] | None = None,
    attempts: int = 5,
    delay_s: float = 0.5,
    ping_timeout_s: float | None = 60.0,
    observer: Callable[[], LiveObserver] | None = None,
    **settings: Unpack[SessionSettings],
) -> LiveConnection:
    """A session over a WebSocket, to be used as ``async with streamfold.live(…) as session``.

    Args:
        provider: Whose session it is; ``auto``: its first messages tell.
        url: Where it is, ``wss://…``.
        opening: What is sent as soon as a connection stands, on each one: ``setup``, ``session.update``, ….
        headers: Of the opening request: the key goes here.
        attempts: Connections in a row that may fail, or bring nothing, where a session is taken up; then the last fault
            is raised, or what the close means is the end.
        delay_s: How long to wait before the second of them, in seconds; it doubles, to 8 at the most.
        ping_timeout_s: How long a ping may go unanswered, in seconds (some servers take 30); None is no limit.
        observer: Makes who looks on at a connection, for each of them: ``streamfold.Recordings("folder")`` records
            them, a file each, which all commands read.
        settings: See :class:`SessionSettings`.

    Raises:
        UsageError: As :class:`LiveSession`; or ``websockets`` is not installed (``pip install 'streamfold[client]'``).
    """
    return LiveConnection(
        LiveSession(provider, **settings),
        Opening(url, tuple(opening)),
        {"additional_headers": dict(headers or {}), "ping_timeout": ping_timeout_s}
        | {"max_size": settings.get("max_frame_bytes", limits.MAX_FRAME_BYTES)}
        | {"max_queue": limits.MAX_WAITING_MESSAGES, "close_timeout": _CLOSING_S},
        attempts,
        delay_s,
        observer,
    )


class LiveConnection:
    """The connection of a session: an async iterator of :class:`TurnEvent`, and an async context manager.

    Nothing is read before an event is asked for, but for the few messages that the library holds ready; a server that
    sends faster has to wait. Where the provider can take a session up (Gemini Live, xAI's voice agent, each where its
    opening enables that), it is done by the last handle: when the server said that it goes away, as soon as the handle
    holds all that was said, or else before its notice is over; and when the link drops. A turn that was open then has
    ended truncated. Anywhere else the iteration ends with the connection, behind what its close means.

    What was sent since the handle came is not sent again: see :attr:`LiveSession.unsaved`. A handle that is refused is
    told (a non-fatal ``error`` with the code ``session_lost``, and a ``session`` without a handle), and a connection is
    made once without it: what was said before is for the caller to say again.

    Attributes:
        session: What was said so far: turns, handle.
        taken_up: How many times another connection took the session up.
    """

    def __init__(
        self,
        session: LiveSession,
        opening: Opening,
        options: Mapping[str, Any],
        attempts: int,
        delay_s: float,
        observe: Callable[[], LiveObserver] | None,
    ) -> None:
        try:
            import websockets.exceptions  # an extra, needed here alone
            from websockets.asyncio.client import connect
        except ImportError:
            raise UsageError("live sessions need websockets: pip install 'streamfold[client]'") from None
        import asyncio  # importing the package loads none of it

        self.session = session
        self.taken_up = 0
        self._foreign: Any
        self._asyncio, self._connect, self._foreign = asyncio, _followed_nowhere(connect), websockets.exceptions
        self._opening, self._options = opening, options
        self._attempts, self._delay_s = attempts, delay_s
        self._observe = observe
        self._observer: LiveObserver | None = None  # of the connection that stands
        self._socket: Any = None
        self._ready: deque[TurnEvent] = deque()
        self._failures = 0  # connections in a row that brought nothing
        self._leaving = False  # the server said that it will close
        self._leave_at: float | None = None  # in the event loop's time: then no end of a turn is waited for
        self._left = False  # this side has closed, to be there before it does
        self._lost = False  # there is no connection, and another one is to be made
        self._over = False
        self._waits: Any = None  # the timeout around a wait for another connection

    async def __aenter__(self) -> Self:
        async with self._until_closed():
            await self._open(self._opening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TurnEvent:
        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            await self._more()
        return self._ready.popleft()

    async def send(self, message: Message) -> None:
        """Send a message: an object as a text frame of JSON, text, or bytes as a binary frame.

        Raises:
            UsageError: There is no connection: before it was opened, or after it ended; or this is no message.
            LinkError: The link has dropped; the next event asked for takes the session up, where that can be done. What
                was sent just before may be lost.
        """
        if self._lost:
            raise LinkError("the link has dropped: the next event takes the session up")
        if self._socket is None:
            raise UsageError("there is no connection to send by")
        await self._say(self._socket, message)

    async def aclose(self) -> None:
        """Close the connection; turns that are open were cut off. Any number of times."""
        socket, self._socket, self._over, self._lost = self._socket, None, True, False
        self._ready.clear()
        self.session.close()
        waits, self._waits = self._waits, None
        if waits is not None:
            waits.reschedule(0)  # it is over now
        try:
            self._hung_up("cancel")
        finally:
            if socket is not None:
                await _closed(socket)

    # -- the inside ---------------------------------------------------------------------------------------------------

    @property
    def _take_up(self) -> Callable[[Opening, str], Opening] | None:
        """How another connection takes the session up; None where none can."""
        provider = self.session.provider
        return TAKE_UP.get(provider) if isinstance(provider, str) else None

    async def _more(self) -> None:
        """Wait for the next message, or for another connection."""
        if self._lost:
            await self._again()
        socket = self._socket
        if socket is None:
            if self._over:
                return  # closed by another task meanwhile
            raise UsageError("a live session is read inside its async with")
        try:
            async with self._asyncio.timeout_at(self._leave_at):
                message = await socket.recv()
        except self._foreign.ConnectionClosed as fault:
            self._ended(*_close_of(fault))
        except self._foreign.ConcurrencyError as fault:
            raise UsageError("one task at a time reads a live session") from fault
        except TimeoutError:
            self._leave_at = None
            await self._leave_to_return()
        else:
            await self._take(message)

    async def _take(self, message: str | bytes) -> None:
        self._seen(message)
        events = self.session.feed(message)
        self._ready += events
        if any(event.turn is not None for event in events):
            self._failures = 0
        for _, event in events:
            if isinstance(event, GoAway):
                self._note_leaving(event.time_left_ms)
        if self.session.ended:
            self._over = True
            await self._leave()
        elif self._leaving and self.session.resumable:
            await self._leave_to_return()

    def _note_leaving(self, time_left_ms: int | None) -> None:
        self._leaving = True
        if time_left_ms is not None and self._take_up is not None:
            self._leave_at = self._asyncio.get_running_loop().time() + time_left_ms / 1000 * _OF_A_NOTICE

    async def _leave_to_return(self) -> None:
        """Close the connection before the server does, where another one can take the session up."""
        if self._take_up is not None and self.session.resume_handle is not None and not self._left:
            self._left = True
            await self._leave()

    async def _leave(self) -> None:
        """Close the connection from this side; what was on its way is read after it."""
        if self._socket is not None:
            await self._socket.close()

    def _ended(self, code: int, reason: str) -> None:
        if self._over:  # closed by another task, which told the session
            return
        self._socket = None
        mine = self._left and code == _NORMAL
        self._hung_up("cancel" if mine else "cut" if code == _NO_FRAME else "eof", code=code, reason=reason)
        handle = self.session.resume_handle
        self._ready += self.session.close(None if mine else code, reason)
        kept = self.session.resume_handle is not None
        again = self._leaving or (code != _NORMAL and meaning_of(code, reason).retryable)
        again = again and self._failures < self._attempts and kept and self._take_up is not None
        self._lost = again or (handle is not None and not kept)  # once without the handle that was refused
        self._over = not self._lost
        self._leaving, self._leave_at, self._left = False, None, False

    async def _again(self) -> None:
        """Another connection, by the last handle; without one that was refused."""
        take_up, handle = self._take_up, self.session.resume_handle
        opening = self._opening if take_up is None or handle is None else take_up(self._opening, handle)
        while self._lost and not self._over:
            self._failures += 1
            try:
                async with self._until_closed():
                    if self._failures > 1:
                        await self._asyncio.sleep(min(self._delay_s * 2 ** (self._failures - 2), _LONGEST_DELAY_S))
                    await self._open(opening)
                    self._lost = False
                    self.taken_up += handle is not None
            except LinkError:
                if self._failures >= self._attempts and not self._over:
                    self._over, self._lost = True, False
                    raise

    @asynccontextmanager
    async def _until_closed(self) -> AsyncGenerator[None]:
        """Inside it, whatever is waited for ends as soon as another task closes the session."""
        try:
            async with self._asyncio.timeout(None) as self._waits:
                yield
                if self._over:
                    await self._asyncio.sleep(0)  # the end of the wait may be on its way still
        except TimeoutError:
            if not self._over:
                raise
        finally:
            self._waits = None

    async def _open(self, opening: Opening) -> None:
        self._begun(opening.url)
        try:
            socket = await self._connected(opening)
        except BaseException as fault:
            reason = None if isinstance(fault, self._asyncio.CancelledError) else str(fault)
            self._hung_up("cancel" if reason is None else "cut", error=reason)
            raise
        if self._over:  # closed by another task, which saw no connection
            await _closed(socket)
        else:
            self._socket = socket

    async def _connected(self, opening: Opening) -> Any:
        """A socket on which everything was said that is said first."""
        try:
            socket = await self._connect(opening.url, **self._options)
        except (self._foreign.InvalidURI, ValueError) as fault:
            raise UsageError("the address is none of a WebSocket") from fault
        except self._foreign.InvalidStatus as fault:
            self._answered(fault.response)
            raise self._link_error(fault) from fault
        except (OSError, self._foreign.WebSocketException) as fault:
            raise self._link_error(fault) from fault
        try:
            self._answered(socket.response)
            for message in opening.messages:
                await self._say(socket, message)
        except BaseException:
            await _closed(socket)
            raise
        return socket

    async def _say(self, socket: Any, message: Message) -> None:
        frame = _frame_of(message)
        self._seen(frame, sent=True)
        self.session.sent(message)
        try:
            await socket.send(frame)
        except (OSError, self._foreign.WebSocketException) as fault:
            raise self._link_error(fault) from fault

    # -- who looks on -------------------------------------------------------------------------------------------------

    def _begun(self, url: str) -> None:
        if self._observe is not None:
            self._observer = self._observe()
            self._observer.request("GET", url, self._options["additional_headers"].items())

    def _answered(self, response: Any) -> None:
        if self._observer is not None:
            self._observer.response(response.status_code, response.headers.raw_items(), "HTTP/1.1")

    def _seen(self, message: str | bytes, *, sent: bool = False) -> None:
        if self._observer is None:
            return
        if isinstance(message, str):
            self._observer.read(message.encode(), op="text", sent=sent)
        else:
            self._observer.read(message, op="binary", sent=sent)

    def _hung_up(self, how: LiveEndHow, **what: Any) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.end(how, **what)

    def _link_error(self, fault: Any) -> LinkError:
        """What the library raised, as ours."""
        if isinstance(fault, self._foreign.ConnectionClosed):
            code, reason = _close_of(fault)
            return LinkError(" ".join(filter(None, (f"the connection closed: {code}", reason))), code)
        status = fault.response.status_code if isinstance(fault, self._foreign.InvalidStatus) else None
        said = redacted_fault(str(fault), self._options["additional_headers"].items())
        return LinkError(f"no connection: {said or type(fault).__name__}", status)


async def _closed(socket: Any) -> None:
    """Close it; whoever is cancelled meanwhile does not wait for the server to agree, and leaves no connection."""
    try:
        await socket.close()
    except BaseException:
        socket.transport.abort()
        raise


def _followed_nowhere(connect: Any) -> Any:
    """The library's ``connect``, which takes a redirection for the refusal that it is: followed, it would carry keys to
    whatever address the server names, but for those of the headers that are called Authorization and Cookie."""

    class Connect(connect):  # type: ignore[misc]
        def process_redirect(self, exc: Exception) -> Exception:
            return exc

    return Connect


def _frame_of(message: Message) -> str | bytes:
    """What goes out: of a text frame the text, of a binary one the bytes."""
    try:
        frame = json.dumps(message) if isinstance(message, dict) else message
        if isinstance(frame, str):
            frame.encode()
    except (TypeError, ValueError) as fault:  # one of them is UnicodeError
        raise UsageError(f"a message is an object of JSON, text in UTF-8 or bytes: {fault}") from fault
    if not isinstance(frame, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a message is an object of JSON, text or bytes, not {type(frame).__name__}")
    return frame


def _close_of(fault: Any) -> tuple[int, str]:
    """Code and reason of a close: what the server sent, else what this side found wrong, else none came."""
    frame = fault.rcvd or fault.sent
    return (_NO_FRAME, "") if frame is None else (frame.code, frame.reason)
