"""A server that answers as the providers do, from recordings: what people test their own stack against.

It runs uvicorn in a thread of its own on the loopback. What is sent when, and where it breaks, is planned by
:mod:`streamfold.recording.plan`; here it is waited for, sent and broken.

Source: the "Resume" and "Cancel" parts of the vendors' pages; what official clients send and accept was measured.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from os import PathLike
from typing import Any, Final, NamedTuple, Self
from weakref import WeakValueDictionary

import msgspec

from streamfold.errors import UsageError
from streamfold.recording.answers import Message, Part, RecordedAnswer, Sitting, after, as_array, as_events
from streamfold.recording.plan import Fault, Plan, Step, fault_of, garbage, pace_of, schedule, strikes
from streamfold.recording.shelf import NoRecording, Shelf, load
from streamfold.recording.surfaces import (
    ENDPOINTS,
    Asked,
    Endpoint,
    Run,
    asked,
    error_body,
    error_headers,
    only_streams,
    session_surfaces,
    stream_headers,
)

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route, WebSocketRoute
    from starlette.types import Receive, Scope, Send
    from starlette.websockets import WebSocket, WebSocketDisconnect
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise UsageError("the replay server needs starlette and uvicorn: pip install 'streamfold[relay]'") from None

__all__ = ["ReplayRequest", "ReplayServer"]

_JSON: Final = msgspec.json.Decoder()
_KEPT_REQUESTS: Final = 1000
_BACKLOG: Final = 512
_KEPT_ALIVE_S: Final = 75  # as long as the fronts of providers do: after uvicorn's 5 a busy test meets a closed one
_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)
_SAID: Final = "streamfold-"
"""What the headers and parameters begin with by which a request chooses its recording and its faults."""
_OPENAI: Final = ENDPOINTS[1]
_NORMAL: Final = 1000
_REASON_BYTES: Final = 123  # RFC 6455, 5.5: what a close frame has room for
_SENDABLE: Final = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014})
"""Close codes that a close frame may carry, beside those from 3000."""


class ReplayRequest(NamedTuple):
    """A request that came.

    Attributes:
        method: ``POST``, ``GET``; ``WEBSOCKET``.
        path: Without its query.
        query: As it was sent.
        headers: By their names in lower case.
        body: The JSON of the body; None where it is none.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: Any = None


class ReplayServer:
    """Recordings, served at the providers' own paths. A context manager: inside it the server listens.

    A request may say otherwise than the settings by headers or parameters of the query: ``streamfold-recording``,
    ``-pace``, ``-chunk``, ``-seed``, ``-fault``.

    Args:
        recordings: Files and folders.
        host: Where to listen.
        port: 0 takes one that is free.
        pace: ``recorded``, ``at-once``, or how many times faster than recorded. Bodies without times come at once.
        chunk: Cut bodies anew, into pieces of so many bytes.
        seed: Of faults at random places.
        fault: What goes wrong, as text (see :func:`~streamfold.recording.plan.fault_of`) or as :class:`Fault`.

    Attributes:
        requests: The last thousand that came, for a test to look at.
        skipped: Files in the folders that were passed over, and why.
        served: The names of the recordings, by surface.

    Raises:
        OSError: A recording cannot be read.
        UsageError: There is no recording, or a setting cannot be.
    """

    def __init__(
        self,
        *recordings: str | PathLike[str],
        host: str = "127.0.0.1",
        port: int = 0,
        pace: str | float = "recorded",
        chunk: int | None = None,
        seed: int = 0,
        fault: str | Fault | None = None,
    ) -> None:
        shelf = load(*recordings)
        faults = fault if isinstance(fault, Fault) else fault_of(fault or "")
        self.requests: deque[ReplayRequest] = deque(maxlen=_KEPT_REQUESTS)
        self.skipped = shelf.skipped
        self.served: dict[str, list[str]] = {}
        replayed: list[RecordedAnswer | Sitting] = [*shelf.answers, *shelf.sittings]
        for recording in replayed:
            self.served.setdefault(recording.surface, []).append(recording.name)
        self._place = (host, port)
        self._app = _App(shelf, Plan(pace_of(str(pace)), chunk, seed, faults), self.requests)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Where it listens, without a path: the base URL of ``anthropic`` and ``google-genai``."""
        host = self._place[0]
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def openai_url(self) -> str:
        """The base URL of ``openai``."""
        return f"{self.url}/v1"

    @property
    def ws_url(self) -> str:
        """The same place for WebSockets."""
        return self.url.replace("http", "ws", 1)

    def start(self) -> Self:
        """Listen. When this returns, requests are answered.

        Raises:
            OSError: The place is taken.
            UsageError: It runs already.
        """
        if self._thread is not None:
            raise UsageError("the server runs already")
        listening = _listening(*self._place)
        self._port = listening.getsockname()[1]
        self._server = server = _Server(self._app)
        self._thread = threading.Thread(target=server.run, args=([listening],), name="streamfold-replay", daemon=True)
        self._thread.start()
        server.up.wait()
        return self

    def wait(self) -> None:
        """Wait until the server has ended, or for Ctrl-C."""
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Cut what runs, and end. No thread and no socket stays behind. Any number of times."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *fault: object) -> None:
        self.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, or asyncio does not see that it is TCP and lets small writes wait for acknowledgements.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as fault:
        listening.close()
        raise type(fault)(fault.errno, f"cannot listen on {host}, port {port}: {fault.strerror}") from None
    return listening


# -- uvicorn ----------------------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """Says when it listens, and cuts what runs when it ends."""

    def __init__(self, app: _App) -> None:
        super().__init__(
            uvicorn.Config(
                app.starlette,
                loop="asyncio",
                http=_Protocol,
                ws="websockets-sansio",
                ws_max_size=2**31,
                ws_ping_interval=None,
                lifespan="off",
                log_config=None,  # whoever runs this in his process has set up his own logs
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=_KEPT_ALIVE_S,
            )
        )
        self.up = threading.Event()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Run to the end."""
        try:
            super().run(sockets)
        finally:
            self.up.set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self.up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, without waiting for streams that may never do so."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


_TRANSPORTS: Final[WeakValueDictionary[tuple[Any, Any], asyncio.Transport]] = WeakValueDictionary()
"""By the addresses of both ends: an ASGI application cannot break a connection in a way of its own choice."""


class _Protocol(H11Protocol):
    """HTTP whose connections can be got at."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client came."""
        super().connection_made(transport)
        _TRANSPORTS[self.server, self.client] = transport


def _break(scope: Scope, *, reset: bool) -> None:
    """Close the client's connection behind what was written, or reset it."""
    transport = _TRANSPORTS.get((scope["server"], scope["client"]))
    if transport is None:
        return
    if reset:
        sock = transport.get_extra_info("socket")
        with suppress(OSError):  # it may be gone already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


# -- runs in the background -------------------------------------------------------------------------------------------


class _RunState:
    """How far a run was told, and whether it was cancelled.

    Attributes:
        background: Whether it may be taken up and cancelled.
        told: How far some stream of it has come, in bytes of its body.
        stop: Where it was cancelled, in bytes of its body; None: it was not.
    """

    def __init__(self, answer: RecordedAnswer, run: Run, *, background: bool) -> None:
        self.answer, self.run, self.background = answer, run, background
        self.ends = [part.end for part in answer.parts]
        self.told = 0
        self.stop: int | None = None
        self.changed = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether all of it was told."""
        return self.told >= self.ends[-1]

    def cancel(self) -> None:
        """End it behind the event that is being sent, and not before the first."""
        if self.stop is None and not self.over:
            self.stop = self.ends[bisect_left(self.ends, max(1, self.told))]
            self.changed.set()

    def resource(self) -> dict[str, Any]:
        """The run's object as it stands: as it was created; as it ended, when it was told to the end."""
        objects = [part.decoded for part in self.answer.parts]
        found = [event[self.run.resource] for event in objects if self.run.id_of(event) is not None]
        resource: dict[str, Any] = found[-1] if self.over and self.stop is None else found[0]
        return resource if self.stop is None else {**resource, "status": "cancelled"}

    def terminal(self) -> bytes:
        """What ends the stream of a cancelled run."""
        last = [part.decoded for part in self.answer.parts if part.end <= (self.stop or 0)]
        numbers = [event.get(self.run.number) for event in last if isinstance(event, dict)]
        whole = [number for number in numbers if isinstance(number, int)]
        return self.run.cancelled(self.resource(), whole[-1] + 1 if whole else len(last))

    def place(self, cursor: str | None) -> int | None:
        """Where the events behind the cursor begin, in bytes; None for a cursor that cannot be."""
        if cursor is None:
            return 0
        number = int(cursor) if _NUMBER.fullmatch(cursor) else None
        begin: int | None = None
        for part in self.answer.parts:
            event = part.decoded
            value = event.get(self.run.number) if isinstance(event, dict) else None
            if value == cursor:
                return part.end
            if number is not None and isinstance(value, int):
                begin = part.end if value <= number else begin or 0
        return begin


# -- the application --------------------------------------------------------------------------------------------------


class _App:
    """What every request is answered with."""

    def __init__(self, shelf: Shelf, plan: Plan, requests: deque[ReplayRequest]) -> None:
        self._shelf, self._plan, self._requests = shelf, plan, requests
        self._refused: Counter[tuple[str, str]] = Counter()
        self._served: Counter[str] = Counter()
        self._runs: dict[tuple[str, str], _RunState] = {}
        self.starlette = Starlette(
            routes=[
                Route("/{path:path}", self._http, methods=["GET", "POST"]),
                WebSocketRoute("/{path:path}", self._websocket),
            ]
        )

    # -- HTTP ---------------------------------------------------------------------------------------------------------

    async def _http(self, request: Request) -> Response:
        path = request.scope["path"]
        body = _json(await request.body())
        self._requests.append(
            ReplayRequest(request.method, path, request.url.query, dict(request.headers.items()), body)
        )
        what = asked(path)
        if what is None:
            words = "it only streams" if only_streams(path) else "no surface has this path"
            return _refusal(_OPENAI, 400 if only_streams(path) else 404, f"streamfold replay: {words}: {path}")
        try:
            plan = self._plan.but(_said(request))
            refusal = self._refuse(what.endpoint, plan.fault, request)
            return refusal or self._answer(request, what, body, plan)
        except UsageError as fault:
            status = 404 if isinstance(fault, NoRecording) else 400
            return _refusal(what.endpoint, status, f"streamfold replay: {fault}")

    def _refuse(self, endpoint: Endpoint, fault: Fault, request: Request | None = None) -> Response | None:
        """The error that comes in the place of the answer; None if none does."""
        status = fault.error
        if status is None and fault.status is not None:
            key = (endpoint.surface, str(fault))
            self._refused[key] += 1
            status = fault.status if self._refused[key] <= fault.times else None
        if status is None:
            return None
        headers = {}
        if fault.error is None and fault.retry_after is not None:
            headers["retry-after"] = str(fault.retry_after)
        return _refusal(endpoint, status, "The replay server was told to answer so.", headers, request)

    def _answer(self, request: Request, what: Asked, body: Any, plan: Plan) -> Response:
        endpoint, run = what.endpoint, what.endpoint.run
        if what.id is not None and run is not None:
            return self._of_run(request, what, what.id, run, plan)
        if request.method != "POST":
            return _refusal(endpoint, 405, f"streamfold replay: {endpoint.surface} is asked by POST")
        if not isinstance(body, dict):
            return _refusal(endpoint, 400, "streamfold replay: the body of the request is no JSON object")
        background = run is not None and body.get("background") is True
        streams = endpoint.by == "path" or body.get("stream", endpoint.by == "true") is True
        if not streams and not background:
            return _refusal(endpoint, 400, "streamfold replay: it only streams: say so in the request")
        model = what.model or body.get("model")
        name = _said(request).get("recording")
        answer = self._shelf.answer(endpoint.surface, name=name, model=model if isinstance(model, str) else None)
        state = self._begun(answer, endpoint, run, background=background)
        if not streams and state is not None:
            return Response(msgspec.json.encode(state.resource()), media_type="application/json")
        if endpoint.surface == "gemini" and answer.framing in ("sse", "json_array"):
            answer = as_events(answer) if request.query_params.get("alt") == "sse" else as_array(answer)
        return self._stream(endpoint, answer, plan, state)

    def _begun(
        self, answer: RecordedAnswer, endpoint: Endpoint, run: Run | None, *, background: bool
    ) -> _RunState | None:
        """A run that begins, under the id that its events say."""
        ids = (run.id_of(part.decoded) for part in answer.parts) if run is not None else ()
        id_ = next(filter(None, ids), None)
        if run is None or id_ is None:
            return None
        self._runs[endpoint.surface, id_] = state = _RunState(answer, run, background=background)
        return state

    def _of_run(self, request: Request, what: Asked, id_: str, run: Run, plan: Plan) -> Response:
        endpoint = what.endpoint
        state = self._runs.get((endpoint.surface, id_))
        if state is None:
            answer = self._shelf.with_run(endpoint, id_)
            state = None if answer is None else self._begun(answer, endpoint, run, background=True)
        if state is None or not (state.background or what.cancel):
            return _refusal(endpoint, 404, f"streamfold replay: no run in the background has the id {id_}")
        if what.cancel:
            if not state.background:
                return _refusal(endpoint, 400, "streamfold replay: only runs in the background can be cancelled")
            state.cancel()
            return Response(msgspec.json.encode(state.resource()), media_type="application/json")
        if request.query_params.get("stream") not in ("true", "True", "1"):
            return Response(msgspec.json.encode(state.resource()), media_type="application/json")
        cursor = request.query_params.get(run.parameter)
        start = state.place(cursor)
        if start is None:
            return _refusal(endpoint, 400, f"streamfold replay: {run.parameter}={cursor} is no event of {id_}")
        return self._stream(endpoint, state.answer, plan, state, start)

    def _stream(
        self, endpoint: Endpoint, answer: RecordedAnswer, plan: Plan, state: _RunState | None, start: int = 0
    ) -> Response:
        self._served[answer.name] += 1
        key = f"{answer.name}/{self._served[answer.name]}"
        reads = after(answer.reads, start) if start else answer.reads
        parts = [Part(part.end - start, part.payload) for part in answer.parts if part.end > start]
        headed = 0 if answer.head is None else answer.head.t
        since = headed if not start else reads[0].t if reads else 0
        steps = schedule(reads, plan, framing=answer.framing, parts=parts, since=since, broken=answer.broken, key=key)
        request_id = f"req_{sha256(f'{plan.seed}/{key}'.encode()).hexdigest()[:24]}"
        told = dict.fromkeys(name.lower() for name, _ in answer.headers)
        own = stream_headers(endpoint, answer.framing, request_id)
        if answer.head is None:
            headers = own
        else:
            headers = [*answer.headers, *([] if "content-type" in told else own[:1])]
        wait_s = plan.fault.first_byte + (0.0 if plan.pace is None or start else headed / 1e9 / plan.pace)
        return _Streamed(200 if answer.head is None else answer.head.status, headers, wait_s, steps, state, start)

    # -- WebSockets ---------------------------------------------------------------------------------------------------

    async def _websocket(self, socket_: WebSocket) -> None:
        path = socket_.scope["path"]
        self._requests.append(ReplayRequest("WEBSOCKET", path, socket_.url.query, dict(socket_.headers.items())))
        found = self._sitting(socket_, path)
        if isinstance(found, Response):
            await socket_.send_denial_response(found)
            return
        plan, sitting = found
        await socket_.accept()
        self._served[sitting.name] += 1
        with suppress(WebSocketDisconnect):
            await _sit(socket_, sitting, plan, f"{sitting.name}/{self._served[sitting.name]}")

    def _sitting(self, socket_: WebSocket, path: str) -> tuple[Plan, Sitting] | Response:
        said, surfaces = _said(socket_), session_surfaces(path)
        try:
            plan = self._plan.but(said)
            if not surfaces:
                raise NoRecording(f"no surface has a WebSocket at {path}")
            model = socket_.query_params.get("model")
            sitting = self._shelf.sitting(surfaces, name=said.get("recording"), model=model)
        except UsageError as fault:
            status = 404 if isinstance(fault, NoRecording) else 400
            return _refusal(_OPENAI, status, f"streamfold replay: {fault}")
        return self._refuse(_OPENAI, plan.fault) or (plan, sitting)


async def _sit(socket_: WebSocket, sitting: Sitting, plan: Plan, key: str) -> None:
    """Say what the server said, and wait for the client wherever it spoke."""
    ends: list[int] = []
    for message in sitting.messages:
        if message.dir == "in":
            ends.append((ends[-1] if ends else 0) + len(message.data))
    ahead = strikes(plan.fault, ends, ends[-1] if ends else 0, f"{plan.seed}/{key}")
    sent = since = 0
    for message in sitting.messages:
        if message.dir == "out":
            await _next_of(socket_)
            since = message.t  # the client's own time goes by while it is waited for
            continue
        if plan.pace is not None:
            await asyncio.sleep(max(0, message.t - since) / 1e9 / plan.pace)
            since = max(since, message.t)
        if message.dir == "close":
            reason = message.reason.encode("utf-8", "replace")[:_REASON_BYTES].decode("utf-8", "ignore")
            await socket_.close(_code(message), reason)
            return
        sent += len(message.data)
        while ahead and ahead[0][0] < sent:
            _, kind = ahead.pop(0)
            if kind == "garbage":
                await socket_.send_text(garbage("messages", key).decode("latin-1"))
            elif kind == "end":
                await socket_.close(_NORMAL)
                return
            elif kind == "stall":
                while True:
                    await _next_of(socket_)
            else:
                _break(socket_.scope, reset=kind == "reset")
                return
        if message.binary:
            await socket_.send_bytes(message.data)
        else:
            await socket_.send_text(message.data.decode("utf-8", "replace"))  # whatever the file says: a text it is
    await socket_.close(_NORMAL)


async def _next_of(socket_: WebSocket) -> None:
    """A message of the client's. ``WebSocketDisconnect``: there is none any more."""
    message = await socket_.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code", _NORMAL))


def _code(message: Message) -> int:
    """The close code, where one may be sent."""
    code = message.code
    return code if code is not None and (code in _SENDABLE or 3000 <= code < 5000) else _NORMAL


class _Streamed(Response):
    """A body that is sent step by step, and broken where a step says so."""

    def __init__(
        self,
        status: int,
        headers: Sequence[tuple[str, str]],
        wait_s: float,
        steps: Iterable[Step],
        state: _RunState | None,
        start: int,
    ) -> None:
        self.status_code, self.background, self.body = status, None, b""
        self.raw_headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers
        ]
        self._wait_s, self._steps, self._state, self._position = wait_s, steps, state, start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = asyncio.ensure_future(_left(receive))
        try:
            await self._pause(self._wait_s, left)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            for step in self._steps:
                await self._pause(step.wait_s, left)
                if left.done() or await self._stopped(send, step.data if step.strike is None else b""):
                    return
                if step.strike == "stall":
                    await self._pause(None, left)
                    if left.done() or await self._stopped(send, b""):
                        return
                if step.strike in ("cut", "reset"):
                    await asyncio.sleep(0)
                    _break(scope, reset=step.strike == "reset")
                    await left
                    return
                if step.strike == "end":
                    break
                await send({"type": "http.response.body", "body": step.data, "more_body": True})
                if step.strike is None:
                    self._come(len(step.data))
                await asyncio.sleep(0)  # so that pieces are written one by one
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            left.cancel()

    def _come(self, size: int) -> None:
        self._position += size
        if self._state is not None:
            self._state.told = max(self._state.told, self._position)

    async def _stopped(self, send: Send, data: bytes) -> bool:
        """Whether the run was cancelled, and this stream of it has ended with that."""
        state = self._state
        if state is None or state.stop is None or self._position + len(data) < state.stop:
            return False
        rest = state.answer.body[self._position : state.stop]
        await send({"type": "http.response.body", "body": rest + state.terminal(), "more_body": False})
        return True

    async def _pause(self, wait_s: float | None, left: asyncio.Future[None]) -> None:
        """Wait; not for a client that left, nor on for a run that was cancelled. None: until then."""
        if wait_s is not None and wait_s <= 0:
            return
        waiting: set[asyncio.Future[Any]] = {left}
        if self._state is not None:
            waiting.add(asyncio.ensure_future(self._state.changed.wait()))
        try:
            await asyncio.wait(waiting, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for future in waiting - {left}:
                future.cancel()


async def _left(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _said(request: Request | WebSocket) -> dict[str, str]:
    """What a request says of its recording, and otherwise than the settings."""
    told = [*request.headers.items(), *request.query_params.items()]
    return {name[len(_SAID) :].lower(): value for name, value in told if name.lower().startswith(_SAID)}


def _refusal(
    endpoint: Endpoint,
    status: int,
    message: str,
    headers: dict[str, str] | None = None,
    request: Request | None = None,
) -> Response:
    array = endpoint.surface == "gemini" and request is not None and request.query_params.get("alt") != "sse"
    body = error_body(endpoint, status, message, array=array)
    return Response(body, status, error_headers(endpoint, status) | (headers or {}), media_type="application/json")


def _json(body: bytes) -> Any:
    try:
        return _JSON.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
