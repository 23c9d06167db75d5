"""Answers over HTTP, by httpx2: open the request, read as events are asked for, take up what broke off.

Waits, and decides nothing: a wire is told by its course what to send next, and tells it what came.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, suppress
from math import inf
from typing import Any, Final, Self

import anyio
import httpx2

from streamfold import limits
from streamfold.errors import UsageError
from streamfold.resume import Sent
from streamfold.transports._course import Course, EndHow, Head, Observer
from streamfold.unified import AsyncUnifiedStream, UnifiedStream

__all__ = ["AsyncClientStream", "ClientStream", "aopened", "opened"]

_ERROR_BODY_BYTES: Final = limits.MAX_RESIDUE_BYTES


def _head_of(response: httpx2.Response) -> Head:
    return Head(response.status_code, response.headers, response.http_version)


class _Asking:
    """What both wires do alike: how a request is made of what is to be sent."""

    def __init__(self, course: Course, request: httpx2.Request) -> None:
        self.course, self._request = course, request
        self._limits: dict[str, float | None] = {}
        self._begun = self._closed = False
        self._response: httpx2.Response | None = None
        self._chunks: Any = None
        self._reading = False
        self._failed: httpx2.HTTPError | None = None

    @property
    def head(self) -> Head | None:
        """Of the response that stands now."""
        return None if self._response is None else _head_of(self._response)

    def _first(self, body: bytes) -> None:
        request = self._request
        self._begun = True
        self.course.begin(Sent(request.method, str(request.url), tuple(request.headers.multi_items())), body)

    def _made(self, sent: Sent, body: bytes) -> httpx2.Request:
        """The request for a connection. httpx2 looks its timeouts up again where the body begins."""
        timeouts = self.course.timeouts
        self._limits = {"connect": timeouts.connect_s, "pool": timeouts.connect_s}
        self._limits |= dict.fromkeys(("read", "write"), timeouts.first_byte_s)
        extensions = {**self._request.extensions, "timeout": self._limits}
        headers = list(sent.headers)
        return httpx2.Request(sent.method, sent.url, headers=headers, content=body or None, extensions=extensions)


class _Tapped(httpx2.SyncByteStream):
    """The body as it comes from the network, which an observer sees first."""

    def __init__(self, stream: Any, observer: Observer) -> None:
        self._stream, self._observer = stream, observer

    def __iter__(self) -> Iterator[bytes]:
        for data in self._stream:
            self._observer.read(data)
            yield data

    def close(self) -> None:
        self._stream.close()


class _AsyncTapped(httpx2.AsyncByteStream):
    """Its async twin."""

    def __init__(self, stream: Any, observer: Observer) -> None:
        self._stream, self._observer = stream, observer

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async for data in self._stream:
            self._observer.read(data)
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Watch:
    """Ends a read that takes too long, by shutting the socket down under it: a blocked read has no other end.

    Timeouts of httpx2 cannot do that: for the whole of a body they are one, and what drains has less time than what
    reads. A read costs it no lock; the thread sleeps until the one that waits is due.
    """

    fired = False

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._turn = threading.Condition()
        self._due: float | None = None  # when the read that waits has to end
        self._until = inf  # when the thread wakes by itself
        self._over = False
        self._thread: threading.Thread | None = None  # from the first read on

    def begin(self, limit_s: float | None) -> None:
        """A read begins."""
        self._due = due = None if limit_s is None else time.monotonic() + limit_s
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="streamfold-watch", daemon=True)
            self._thread.start()
        elif due is not None and due < self._until:
            with self._turn:
                self._turn.notify()

    def end(self) -> None:
        """The read is over."""
        self._due = None

    def close(self) -> None:
        """There will be no more reads."""
        with self._turn:
            self._over = True
            self._turn.notify()
        if self._thread not in (None, threading.current_thread()):  # garbage may be collected by any thread
            self._thread.join()

    def shut_down(self) -> None:
        """End whatever is read."""
        _shut_down(self._sock)

    def _run(self) -> None:
        with self._turn:
            while not self._over:
                self._until = inf  # before it looks: who begins now, wakes it
                due = self._due
                left = None if due is None else due - time.monotonic()
                if left is None or due is None:
                    self._turn.wait()
                elif left > 0:
                    self._until = due
                    self._turn.wait(left)
                else:
                    self.fired, self._due = True, None
                    self.shut_down()


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):  # it may be closed already
        socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of TLS, which would first say goodbye


class _Wire(_Asking):
    """The connections of an answer, one after the other."""

    def __init__(self, course: Course, request: httpx2.Request, client: httpx2.Client, *, own: bool) -> None:
        super().__init__(course, request)
        self._client, self._own = client, own
        self._watch: _Watch | None = None
        self._left = threading.Event()
        self._opening = False
        self._connected: socket.socket | None = None  # the last connection of a client of its own

    def open(self) -> None:
        """Send what is to be sent and wait for the head, unless that is done. What fails is kept for the reader."""
        if self._response is not None or self._failed is not None:
            return
        if not self._begun:
            self._first(self._request.read())
        request = self._made(*self.course.asks())
        if self._own:  # whose connections are this answer's alone
            request.extensions = {**request.extensions, "trace": self._traced}
        self._opening = True
        try:
            self._response = self._client.send(request, stream=True)
        except httpx2.HTTPError as fault:
            self._failed = fault
        finally:
            self._opening = False
        if self._closed:  # by another thread, meanwhile
            self.close()
        if (response := self._response) is None:
            return
        if self.course.observer is not None:
            response.stream = _Tapped(response.stream, self.course.observer)
        self._chunks = response.iter_bytes()
        stream = response.extensions.get("network_stream")
        sock = None if stream is None or response.http_version == "HTTP/2" else stream.get_extra_info("socket")
        if sock is not None:  # a connection of HTTP/2 is not this answer's alone
            self._watch, self._limits["read"] = _Watch(sock), None

    def _traced(self, event: str, told: dict[str, Any]) -> None:
        """What httpcore tells of its doings: which connection it has made, so that a wait for a head can be ended."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._connected = told["return_value"].get_extra_info("socket")
            if self._closed and self._connected is not None:
                _shut_down(self._connected)
        if (theirs := self._request.extensions.get("trace")) is not None:
            theirs(event, told)

    def reads(self) -> Generator[bytes, None, None]:
        """The reads of all connections; an empty one where each ends."""
        course = self.course
        try:
            while True:
                yield from self._connection()
                if not (course.again or self._closed):
                    yield b""
                if not course.again or self._left.wait(course.step.delay_s):
                    return
        finally:
            self.close()

    def _connection(self) -> Generator[bytes, None, None]:
        course = self.course
        try:
            self.open()
            if self._failed is not None:
                raise self._failed
            if self._response is None:  # another thread has closed it
                return
            if course.answered(_head_of(self._response)):
                while not course.again and (data := self._next(course.patience_s)) is not None:
                    if data:
                        course.came()
                        yield data
                course.finished()
            else:
                course.refused(self._whole())
            self.hang_up("cancel" if course.again else "eof")
        except (httpx2.HTTPError, httpx2.StreamError) as fault:
            if not self._closed and isinstance(fault, httpx2.HTTPError):
                course.broke(fault)
            self.hang_up("cut")

    def _next(self, limit_s: float | None) -> bytes | None:
        """The next read, None at the end of the body."""
        watch = self._watch
        self._reading = True
        if watch is None:
            self._limits["read"] = limit_s
        else:
            watch.begin(limit_s)
        try:
            data: bytes | None = next(self._chunks, None)
        except httpx2.TransportError as fault:
            if watch is not None and watch.fired:
                raise httpx2.ReadTimeout(f"{limit_s} seconds") from fault
            raise
        finally:
            self._reading = False
            if watch is not None:
                watch.end()
        if data is None and watch is not None and watch.fired:  # what a shut socket gives is an end as well
            raise httpx2.ReadTimeout(f"{limit_s} seconds")
        return data

    def _whole(self) -> bytes:
        body = bytearray()
        while len(body) < _ERROR_BODY_BYTES and (data := self._next(self.course.patience_s)) is not None:
            self.course.came()
            body += data
        return bytes(body)

    def _drain(self) -> EndHow:
        """Read what is left behind the answer, for a short time: a response that was read to its end frees its
        connection for the next one."""
        until = time.monotonic() + self.course.timeouts.drain_s
        try:
            while (left := until - time.monotonic()) > 0:
                if self._next(left) is None:
                    return "eof"
        except (httpx2.HTTPError, httpx2.StreamError):
            pass
        return "cancel"

    def hang_up(self, how: EndHow) -> None:
        """Be done with the connection."""
        response, self._response, self._failed = self._response, None, None
        watch, self._watch = self._watch, None
        try:
            if response is not None:
                response.close()
        finally:
            self._chunks = None
            if watch is not None:
                watch.close()
            self.course.hung_up(how)

    def close(self) -> None:
        """Be done with all. Any number of times; a read that another thread waits for is ended, and that one closes."""
        drains = self.course.over and not self._closed and not self._reading and self._response is not None
        self._closed = True
        self._left.set()
        if self._reading:
            if self._watch is not None:
                self._watch.shut_down()
            return
        if self._opening and self._own:
            if (sock := self._connected) is not None:
                _shut_down(sock)
            return
        try:
            self.hang_up(self._drain() if drains else "cancel")
        finally:
            if self._own:
                self._client.close()

    def post(self, sent: Sent) -> bool:
        """Send a request that is answered at once; whether it was heard."""
        client = httpx2.Client() if self._own else self._client
        try:
            response = client.send(self._made(sent, b""), stream=True)
            response.close()  # what the body says is not asked, and it may have no end
            return response.is_success
        except httpx2.HTTPError:
            return False
        finally:
            if self._own:
                client.close()


class _AsyncWire(_Asking):
    """The twin of :class:`_Wire`. A read is ended by the scope it waits in."""

    def __init__(self, course: Course, request: httpx2.Request, client: httpx2.AsyncClient, *, own: bool) -> None:
        super().__init__(course, request)
        self._client, self._own = client, own
        self._waits: anyio.CancelScope | None = None  # for a head, or for its time to ask again

    async def open(self) -> None:
        """Send what is to be sent and wait for the head, unless that is done. What fails is kept for the reader."""
        if self._response is not None or self._failed is not None:
            return
        if not self._begun:
            self._first(await self._request.aread())
        request = self._made(*self.course.asks())
        with anyio.CancelScope() as self._waits:
            try:
                self._response = await self._client.send(request, stream=True)
            except httpx2.HTTPError as fault:
                self._failed = fault
        if self._closed:  # by another task, meanwhile
            await self.hang_up("cancel")
        if (response := self._response) is None:
            return
        self._limits["read"] = None
        if self.course.observer is not None:
            response.stream = _AsyncTapped(response.stream, self.course.observer)
        self._chunks = response.aiter_bytes()

    async def reads(self) -> AsyncGenerator[bytes, None]:
        """The reads of all connections; an empty one where each ends."""
        course = self.course
        try:
            while True:
                async with aclosing(self._connection()) as reads:  # trio warns of a generator that is only forgotten
                    async for data in reads:
                        yield data
                if not (course.again or self._closed):
                    yield b""
                if not course.again or self._closed:
                    return
                with anyio.CancelScope() as self._waits:
                    await anyio.sleep(course.step.delay_s)
                if self._closed:
                    return
        finally:
            await self.aclose()

    async def _connection(self) -> AsyncGenerator[bytes, None]:
        course = self.course
        try:
            await self.open()
            if self._failed is not None:
                raise self._failed
            if self._response is None:  # another task has closed it
                return
            if course.answered(_head_of(self._response)):
                while not course.again and (data := await self._next(course.patience_s)) is not None:
                    if data:
                        course.came()
                        yield data
                course.finished()
            else:
                course.refused(await self._whole())
            await self.hang_up("cancel" if course.again else "eof")
        except (httpx2.HTTPError, httpx2.StreamError) as fault:
            if not self._closed and isinstance(fault, httpx2.HTTPError):
                course.broke(fault)
            await self.hang_up("cut")

    async def _next(self, limit_s: float | None) -> bytes | None:
        """The next read, None at the end of the body."""
        self._reading = True
        try:
            with anyio.move_on_after(limit_s):
                data: bytes | None = await anext(self._chunks, None)
                return data
        finally:
            self._reading = False
        raise httpx2.ReadTimeout(f"{limit_s} seconds")

    async def _whole(self) -> bytes:
        body = bytearray()
        while len(body) < _ERROR_BODY_BYTES and (data := await self._next(self.course.patience_s)) is not None:
            self.course.came()
            body += data
        return bytes(body)

    async def _drain(self) -> EndHow:
        """See :meth:`_Wire._drain`."""
        with anyio.move_on_after(self.course.timeouts.drain_s):
            try:
                while await self._next(None) is not None:
                    pass
            except (httpx2.HTTPError, httpx2.StreamError):
                return "cancel"
            return "eof"
        return "cancel"

    async def hang_up(self, how: EndHow) -> None:
        """Be done with the connection, also where the task is cancelled."""
        response, self._response, self._failed = self._response, None, None
        chunks, self._chunks = self._chunks, None
        try:
            with anyio.CancelScope(shield=True):
                if chunks is not None and not self._reading:
                    await _unwound(chunks)
                if response is not None:
                    await response.aclose()
        finally:
            self.course.hung_up(how)

    async def aclose(self) -> None:
        """Be done with all. Any number of times; whatever another task waits for is ended."""
        drains = self.course.over and not self._closed and not self._reading and self._response is not None
        self._closed = True
        if self._waits is not None:
            self._waits.cancel()
        try:
            await self.hang_up(await self._drain() if drains else "cancel")
        finally:
            if self._own:
                with anyio.CancelScope(shield=True):
                    await self._client.aclose()

    async def post(self, sent: Sent) -> bool:
        """Send a request that is answered at once; whether it was heard."""
        client = httpx2.AsyncClient() if self._own else self._client
        try:
            response = await client.send(self._made(sent, b""), stream=True)
            await response.aclose()
            return response.is_success
        except httpx2.HTTPError:
            return False
        finally:
            if self._own:
                await client.aclose()


async def _unwound(chunks: AsyncGenerator[bytes, None]) -> None:
    """Let the generators of httpx2 end from the innermost to the outermost, by a read that is cancelled at once.

    To close the outermost leaves those inside to the collector of garbage, of which trio warns.
    """
    with suppress(httpx2.HTTPError, httpx2.StreamError), anyio.CancelScope() as scope:
        scope.cancel()
        async for _ in chunks:  # what has been read already comes without waiting
            pass


# -- the streams ------------------------------------------------------------------------------------------------------


class ClientStream(UnifiedStream):
    """Unified events of an answer that is asked for. Use it under ``with``, which sends the request.

    A plain ``for`` works too. Where nothing more is tried, what httpx2 raised (an ``httpx2.HTTPError``) is raised
    behind the ``error`` event that says it; an HTTP status of 400 or more is an ``error`` event and no exception.
    """

    def __init__(self, course: Course, wire: _Wire) -> None:
        super().__init__(wire.reads(), course.decoder)
        self._stage = course
        self._course, self._wire = course, wire
        self._closers = [*self._closers, wire.close]  # a generator that never began does not close anything

    def __enter__(self) -> Self:
        try:
            self._wire.open()
        except BaseException:
            self.close()
            raise
        return self

    @property
    def response(self) -> Head | None:
        """The head of the response, of the last one where the answer was taken up; None before one came."""
        return self._course.head or self._wire.head

    def cancel(self) -> bool:
        """Stop the answer and close: the outcome is ``cancelled``, with what came before.

        A run in the background goes on when its connection has gone: it is cancelled by a request to the provider
        (Responses, Interactions). Everywhere else closing is all there is.

        Returns:
            Whether the provider heard a request to cancel. Nothing is raised where it did not.
        """
        sent = self._course.cancelling()
        self.close()
        return sent is not None and self._wire.post(sent)


class AsyncClientStream(AsyncUnifiedStream):
    """The async twin of :class:`ClientStream`, under asyncio and trio."""

    def __init__(self, course: Course, wire: _AsyncWire) -> None:
        super().__init__(wire.reads(), course.decoder)
        self._stage = course
        self._course, self._wire = course, wire
        self._closers = [*self._closers, wire.aclose]

    async def __aenter__(self) -> Self:
        try:
            await self._wire.open()
        except BaseException:
            await self.aclose()
            raise
        return self

    @property
    def response(self) -> Head | None:
        """The head of the response, of the last one where the answer was taken up; None before one came."""
        return self._course.head or self._wire.head

    async def cancel(self) -> bool:
        """See :meth:`ClientStream.cancel`."""
        sent = self._course.cancelling()
        await self.aclose()
        return sent is not None and await self._wire.post(sent)


def opened(
    course: Course, request: httpx2.Request | str, url: str | None, headers: Any, json: Any, client: Any
) -> ClientStream:
    """A stream over a wire; arguments as of :func:`streamfold.client.open_stream`."""
    own = client is None
    if not own and not isinstance(client, httpx2.Client):
        raise UsageError(f"client is an httpx2.Client, not {client!r}")
    client = httpx2.Client() if own else client
    return ClientStream(course, _Wire(course, _request(client, request, url, headers, json), client, own=own))


def aopened(
    course: Course, request: httpx2.Request | str, url: str | None, headers: Any, json: Any, client: Any
) -> AsyncClientStream:
    """The async twin of :func:`opened`."""
    own = client is None
    if not own and not isinstance(client, httpx2.AsyncClient):
        raise UsageError(f"client is an httpx2.AsyncClient, not {client!r}")
    client = httpx2.AsyncClient() if own else client
    made = _request(client, request, url, headers, json)
    return AsyncClientStream(course, _AsyncWire(course, made, client, own=own))


def _request(
    client: httpx2.Client | httpx2.AsyncClient,
    request: httpx2.Request | str,
    url: str | None,
    headers: Any,
    json: Any,
) -> httpx2.Request:
    if isinstance(request, httpx2.Request):
        if url is not None or headers is not None or json is not None:
            raise UsageError("a request that is built already takes no URL, headers or JSON")
        return request
    if not isinstance(request, str) or url is None:
        raise UsageError("what to ask is an httpx2.Request, or a method and a URL")
    try:
        return client.build_request(request, url, headers=headers, json=json)
    except (httpx2.InvalidURL, TypeError, ValueError) as fault:
        raise UsageError(f"no request can be made of this: {fault}") from fault
