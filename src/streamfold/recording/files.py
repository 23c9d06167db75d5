"""Recordings on disk and in pipes: written while the stream runs, read back read by read; ``.zst`` as well.

The clock is here; the format is :mod:`streamfold.recording.sfcap`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from os import PathLike, fspath
from time import perf_counter_ns
from types import TracebackType
from typing import IO, Any, Final, Self, TypeAlias

from streamfold.errors import Malformed
from streamfold.recording._packing import ZSTANDARD, unpacked, zstandard
from streamfold.recording.sfcap import (
    End,
    EndHow,
    Head,
    Read,
    RecordingReader,
    RecordingWriter,
    RequestHead,
    ResponseHead,
)

__all__ = ["ZSTANDARD", "Place", "Recorder", "Recording", "Recordings", "is_recording", "read_recording", "unpacked"]

Place: TypeAlias = "str | PathLike[str] | IO[bytes]"
"""A path, or an open binary file, which whoever opened it closes."""

_BEGIN: Final = b'{"sfcap":'
_CHUNK: Final = 65536


class Recorder:
    """Writes one exchange as it happens; each line is on its way to the file before the call returns.

    What was written before a crash can be read. A context manager: leaving it ends the recording, as ``cancel`` where
    nothing else was said.

    Args:
        place: Where to. A path that ends in ``.zst`` is compressed (``pip install 'streamfold[record]'``).
        provider: Whose stream it is, for who reads it later.
        redact: Whether headers and addresses go in without their secrets.
        clock: Nanoseconds from any beginning, never going back.

    Raises:
        OSError: The file cannot be written.
        UsageError: ``.zst`` without the library that compresses.
    """

    def __init__(
        self,
        place: Place,
        *,
        provider: str | None = None,
        redact: bool = True,
        clock: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._writer = RecordingWriter(redact=redact)
        self._provider, self._clock = provider, clock
        self._request: RequestHead | None = None
        self._command: tuple[str, ...] | None = None
        self._begun, self._started = clock(), _now()
        self._headed = self._over = False
        self._file, self._close = _opened_to_write(place)

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]] = (), body: str | None = None) -> None:
        """The request is sent now: times count from here."""
        self._request = RequestHead(method, url, tuple(headers), body)
        self._begun, self._started = self._clock(), _now()

    def command(self, arguments: Iterable[str]) -> None:
        """What is recorded is the output of this command, which starts now."""
        self._command = tuple(arguments)
        self._begun, self._started = self._clock(), _now()

    def response(self, status: int, headers: Iterable[tuple[str, str]] = (), http_version: str | None = None) -> None:
        """The head of the response came."""
        self._begin(ResponseHead(status, tuple(headers), http_version, self._now()))

    def read(self, data: bytes, *, op: Any = None, sent: bool = False) -> None:
        """A read brought this; or a message of a WebSocket came (``op`` says which kind), or was ``sent``."""
        at = self._now()
        self._begin(None)
        self._write(self._writer.read(at, data, op=op, sent=sent))

    def end(
        self, how: EndHow = "eof", *, error: str | None = None, code: int | None = None, reason: str | None = None
    ) -> None:
        """The exchange is over. Any number of times; the first counts."""
        if self._over:
            return
        at = self._now()
        self._begin(None)
        self._over = True
        try:
            self._write(self._writer.end(at, how, error=error, code=code, reason=reason))
        finally:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end("cancel")

    def _begin(self, response: ResponseHead | None) -> None:
        if not self._headed:
            self._headed = True
            self._write(self._writer.head(Head(self._request, response, self._provider, self._started, self._command)))

    def _write(self, line: bytes) -> None:
        self._file.write(line)
        self._file.flush()

    def _now(self) -> int:
        return self._clock() - self._begun


def _now() -> str:
    return datetime.now(UTC).isoformat()


class Recordings:
    """Where the recordings of many exchanges go, one file each. It can be used from several threads and processes.

    Calling it gives the recorder of the next one: it is what :func:`streamfold.client.open_stream` takes as
    ``observer``.

    Args:
        place: A folder, which is made where it is missing: the files in it are numbered, from ``0001.sfcap``. Or what
            gives the place of the next recording.
        provider: Whose streams they are.
        redact: Whether headers and addresses go in without their secrets.
        bodies: Whether the bodies of requests are kept, where they are text. They hold prompts.
    """

    def __init__(
        self,
        place: str | PathLike[str] | Callable[[], Place],
        *,
        provider: str | None = None,
        redact: bool = True,
        bodies: bool = False,
    ) -> None:
        self._next = place if callable(place) else partial(_next_in, fspath(place))
        self._provider, self._redact, self._bodies = provider, redact, bodies

    def __call__(self) -> Recorder:
        return Recorder(self._next(), provider=self._provider, redact=self._redact)

    def begin(self, method: str, url: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> Recorder:
        """The recorder of a request that is sent now.

        Raises:
            OSError: No file can be made.
        """
        recorder = self()
        recorder.request(method, url, headers, _text_of(body) if self._bodies else None)
        return recorder


def _next_in(folder: str) -> str:
    """A new file in the folder, numbered behind those that are there."""
    os.makedirs(folder, exist_ok=True)
    number = sum(name.endswith(".sfcap") for name in os.listdir(folder))
    while True:
        number += 1
        path = os.path.join(folder, f"{number:04}.sfcap")
        try:
            open(path, "xb").close()  # two that record at once get two files
        except FileExistsError:
            continue
        return path


def _text_of(body: bytes) -> str | None:
    try:
        return body.decode() or None
    except UnicodeDecodeError:
        return None


class Recording:
    """A recording that is read: an iterable of its reads, once; a source of bytes for every driver.

    Attributes:
        head: What was asked and answered.
        end: How it ended; None until the reads are out, and where the recorder died.
        intact: Whether the bytes are those that were recorded; None where nothing tells.
    """

    def __init__(self, chunks: Iterable[bytes], close: Callable[[], object] | None = None) -> None:
        self._reader = RecordingReader()
        self._closing = close
        self._reads = self._read(iter(chunks))
        self._first: list[Read] = []
        for read in self._reads:
            self._first.append(read)
            break
        if self._reader.head is None:
            raise Malformed("this is no recording: it holds no line", 0)
        self.head: Head = self._reader.head

    @property
    def end(self) -> End | None:
        """The last line."""
        return self._reader.end

    @property
    def intact(self) -> bool | None:
        """Whether the hash of the end is that of the bytes."""
        return self._reader.intact

    @property
    def is_session(self) -> bool:
        """Whether it is of a WebSocket: its reads are messages."""
        response = self.head.response
        return any(read.op is not None for read in self._first) or (response is not None and response.status == 101)

    @property
    def status_code(self) -> int | None:
        """The HTTP status, where the recording knows it: what an error body is read by."""
        return None if self.head.response is None else self.head.response.status

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the response, by their names in lower case."""
        response = self.head.response
        return {} if response is None else {name.lower(): value for name, value in response.headers}

    def __iter__(self) -> Iterator[Read]:
        while self._first:
            yield self._first.pop()
        for read in self._reads:  # noqa: UP028 - who leaves this loop may go on with another
            yield read

    def iter_bytes(self) -> Iterator[bytes]:
        """The bytes that were received, read by read, unpacked where the response was compressed.

        Raises:
            ConnectionError: The recording says that the transport failed: behind the bytes before it.
            Malformed: The file is damaged.
        """
        yield from unpacked((read.data for read in self if not read.sent), self.headers.get("content-encoding"))
        if self.end is not None and self.end.end == "cut":
            raise ConnectionError(self.end.error or "the connection failed here when it was recorded")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, if it was opened here."""
        close, self._closing = self._closing, None
        if close is not None:
            close()

    def _read(self, chunks: Iterator[bytes]) -> Iterator[Read]:
        try:
            for chunk in chunks:
                self._reader.feed(chunk)
                yield from self._reader
            self._reader.close()
            yield from self._reader
        finally:
            self.close()


def read_recording(place: Place | Iterable[bytes]) -> Recording:
    """A recording, from a path, an open binary file, or chunks of bytes; compressed or not.

    Raises:
        Malformed: It is none; also while its reads are taken, where the file is damaged.
        OSError: The file cannot be read.
        UsageError: It is compressed, and the library that unpacks is not installed.
    """
    close: Callable[[], object] | None = None
    if isinstance(place, (str, PathLike)):
        file = open(fspath(place), "rb")  # noqa: SIM115 - closed by the recording
        chunks, close = _chunks_of(file), file.close
    else:
        chunks = _chunks_of(place) if hasattr(place, "read") else iter(place)
    try:
        return Recording(_plain(chunks), close)
    except BaseException:
        if close is not None:
            close()
        raise


def is_recording(begin: bytes) -> bool:
    """Whether a file that begins so is a recording; a compressed one counts, whatever is inside."""
    return begin.startswith((_BEGIN, ZSTANDARD))


def _chunks_of(file: Any) -> Iterator[bytes]:
    return iter(partial(getattr(file, "read1", file.read), _CHUNK), b"")


def _plain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks, unpacked if they are zstandard's."""
    first = next(chunks, b"")
    while first and len(first) < len(ZSTANDARD) and (more := next(chunks, b"")):
        first += more
    return unpacked(_after(first, chunks), "zstd" if first.startswith(ZSTANDARD) else None)


def _after(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _opened_to_write(place: Place) -> tuple[Any, Callable[[], object]]:
    if not isinstance(place, (str, PathLike)):
        return place, place.flush
    path = fspath(place)
    packing = zstandard() if path.endswith(".zst") else None
    file = open(path, "wb")  # noqa: SIM115 - closed at the end of the recording
    if packing is None:
        return file, file.close
    packed = packing.ZstdCompressor().stream_writer(file)
    return _Flushing(packed, packing.FLUSH_BLOCK, file), packed.close


class _Flushing:
    """A compressor whose every flush lets whoever reads the file see what was written so far."""

    def __init__(self, packed: Any, how: Any, file: IO[bytes]) -> None:
        self.write, self._packed, self._how, self._file = packed.write, packed, how, file

    def flush(self) -> None:
        """Write what is held."""
        self._packed.flush(self._how)
        self._file.flush()
