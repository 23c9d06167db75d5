"""Transports of httpx2 that record: put around any other, under any client that takes one, official ones among them.

What they hand on is what they were handed; each read of a body is in its file before the client has it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from os import PathLike
from typing import Any

from streamfold.errors import UsageError
from streamfold.recording.files import Place, Recorder, Recordings

try:
    import httpx2
except ModuleNotFoundError as fault:
    if fault.name != "httpx2":
        raise
    raise UsageError("a transport that records needs httpx2: pip install 'streamfold[client]'") from None

__all__ = ["AsyncRecordingTransport", "RecordingTransport"]


class RecordingTransport(httpx2.BaseTransport):
    """Records every exchange of a client: ``OpenAI(http_client=httpx2.Client(transport=RecordingTransport("x")))``.

    A body that came to its end is ``eof``, one that broke off ``cut``, with what was raised; one that the client left,
    by closing the response, ``cancel``: official clients do so behind the last event of a stream.

    Args:
        place: A folder, or what gives the place of the next recording; see
            :class:`streamfold.recording.files.Recordings`.
        transport: What sends the requests; an ``httpx2.HTTPTransport`` of its own where there is none.
        provider: Whose streams they are.
        redact: Whether headers and addresses go in without their secrets.
        bodies: Whether the bodies of requests are kept, where they are text. They hold prompts.

    Raises:
        OSError: While it is used: a recording cannot be written.
    """

    def __init__(
        self,
        place: str | PathLike[str] | Callable[[], Place],
        transport: httpx2.BaseTransport | None = None,
        *,
        provider: str | None = None,
        redact: bool = True,
        bodies: bool = False,
    ) -> None:
        self._recordings = Recordings(place, provider=provider, redact=redact, bodies=bodies)
        self._transport = httpx2.HTTPTransport() if transport is None else transport

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it and record what comes."""
        recorder = _begun(self._recordings, request)
        try:
            response = self._transport.handle_request(request)
        except BaseException as fault:
            _failed(recorder, fault)
            raise
        _answered(recorder, response)
        response.stream = _Recorded(response.stream, recorder)
        return response

    def close(self) -> None:
        """Close the transport that is beneath."""
        self._transport.close()


class AsyncRecordingTransport(httpx2.AsyncBaseTransport):
    """The async twin of :class:`RecordingTransport`, under asyncio and trio. Writing to the file is not awaited."""

    def __init__(
        self,
        place: str | PathLike[str] | Callable[[], Place],
        transport: httpx2.AsyncBaseTransport | None = None,
        *,
        provider: str | None = None,
        redact: bool = True,
        bodies: bool = False,
    ) -> None:
        self._recordings = Recordings(place, provider=provider, redact=redact, bodies=bodies)
        self._transport = httpx2.AsyncHTTPTransport() if transport is None else transport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it and record what comes."""
        recorder = _begun(self._recordings, request)
        try:
            response = await self._transport.handle_async_request(request)
        except BaseException as fault:
            _failed(recorder, fault)
            raise
        _answered(recorder, response)
        response.stream = _AsyncRecorded(response.stream, recorder)
        return response

    async def aclose(self) -> None:
        """Close the transport that is beneath."""
        await self._transport.aclose()


def _begun(recordings: Recordings, request: httpx2.Request) -> Recorder:
    try:
        body = request.content
    except httpx2.RequestNotRead:  # it is sent as it is made
        body = b""
    return recordings.begin(request.method, str(request.url), request.headers.multi_items(), body)


def _answered(recorder: Recorder, response: httpx2.Response) -> None:
    recorder.response(response.status_code, response.headers.multi_items(), response.http_version)


def _failed(recorder: Recorder, fault: BaseException) -> None:
    """What the transport raised ends the exchange; a task that is cancelled, or Ctrl-C, has left it."""
    if isinstance(fault, Exception):
        recorder.end("cut", error=f"{type(fault).__name__}: {fault}")
    else:
        recorder.end("cancel")


class _Recorded(httpx2.SyncByteStream):
    """A body that is recorded as it is read."""

    def __init__(self, stream: Any, recorder: Recorder) -> None:
        self._stream, self._recorder = stream, recorder

    def __iter__(self) -> Iterator[bytes]:
        recorder = self._recorder
        try:
            for data in self._stream:
                recorder.read(data)
                yield data
        except BaseException as fault:
            _failed(recorder, fault)
            raise
        recorder.end("eof")

    def close(self) -> None:
        """Close the response; what was not read is not recorded."""
        self._recorder.end("cancel")
        self._stream.close()


class _AsyncRecorded(httpx2.AsyncByteStream):
    """Its async twin."""

    def __init__(self, stream: Any, recorder: Recorder) -> None:
        self._stream, self._recorder = stream, recorder

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        recorder = self._recorder
        try:
            async for data in self._stream:
                recorder.read(data)
                yield data
        except BaseException as fault:
            _failed(recorder, fault)
            raise
        recorder.end("eof")

    async def aclose(self) -> None:
        """Close the response; what was not read is not recorded."""
        self._recorder.end("cancel")
        await self._stream.aclose()
