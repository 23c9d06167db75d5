"""Reads of a file or a live pipe, and how far they have come."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from itertools import chain
from types import FrameType
from typing import IO, Final, Protocol, cast

import click

from streamfold.cli._main import complain, wait_no_longer
from streamfold.decoder import BY_FIRST_BYTE
from streamfold.errors import FramingError
from streamfold.recording.exchange import close_line, session_lines
from streamfold.recording.files import ZSTANDARD, Recording, is_recording, read_recording, unpacked
from streamfold.views.lines import size

__all__ = ["Answer", "Input", "told_framing"]

READ_BYTES: Final = 65_536
LARGE: Final = 4_000_000  # bytes; reading fewer takes no time worth showing
_ENOUGH: Final = 9  # bytes that tell whether it is a recording
_NO_CONTENT: Final = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and blanks


class _Readable(Protocol):
    def read1(self, size: int) -> bytes: ...


class Answer:
    """The body of a recorded response as a source, with what its head says, as a client's response has it."""

    def __init__(self, chunks: Iterator[bytes], status_code: int | None, headers: Mapping[str, str]) -> None:
        self._chunks, self.status_code, self.headers = chunks, status_code, headers

    def iter_bytes(self) -> Iterator[bytes]:
        """The body."""
        return self._chunks


class Input:
    """The reads of an open binary file, each as large as what is there; of a recording (``.sfcap``), those it holds.

    Iterating calls ``before_read`` before each read, which may wait: by then, what the earlier reads brought is to be
    shown.

    Args:
        file: Where to read.
        chunk: Cut what was read into pieces of this many bytes, to see that the cuts change nothing.

    Attributes:
        count: Bytes read so far.
        total: The size of the file, in bytes, where it has one.
    """

    def __init__(self, file: IO[bytes], chunk: int | None) -> None:
        self._file, self._chunk = cast("_Readable", file), chunk  # a buffered reader or what click wraps it in
        self.before_read: Callable[[], object] = _nothing
        self.count = 0
        self.total = _size_of(file)
        self._waiting = self._interrupted = False
        self._reads: Iterator[bytes] = self.raw()
        self._recording: Recording | None = None
        self._looked = False

    def __iter__(self) -> Iterator[bytes]:
        for data in self._content():
            if self._chunk is None:
                yield data
            else:
                yield from (data[at : at + self._chunk] for at in range(0, len(data), self._chunk))

    @property
    def recording(self) -> Recording | None:
        """The recording that the file is, by its first bytes.

        Raises:
            Malformed: It begins as one, and is damaged.
            UsageError: It is compressed, and the library that unpacks is not installed.
        """
        if not self._looked:
            self._looked = True
            begin = next(self._reads, b"")
            while len(begin) < _ENOUGH and (more := next(self._reads, b"")):
                begin += more
            self._reads = chain((begin,) if begin else (), self._reads)
            if is_recording(_plain(begin)):
                self._recording = read_recording(self._reads)
                click.get_current_context().call_on_close(self._ask_intact)
        return self._recording

    def _content(self) -> Iterator[bytes]:
        recording = self.recording
        if recording is None:
            yield from self._reads
        elif recording.is_session:
            yield from session_lines(recording)
            if recording.end is not None:
                yield close_line(recording.end)
        else:
            yield from recording.iter_bytes()

    def _ask_intact(self) -> None:
        """Say so if what was recorded is not what is there. What is behind the end of the answer is read for it, of a
        file."""
        assert self._recording is not None
        if self.total is not None:
            with suppress(FramingError, OSError):
                deque(self._recording, maxlen=0)
        if self._recording.intact is False:
            complain("warning: these are not the bytes that were recorded: their hash is another")

    def raw(self) -> Iterator[bytes]:
        """The bytes of the file, whatever they are, as they come."""
        while data := self._read():
            self.count += len(data)
            yield data

    def progress(self) -> str:
        """How far the reading has come, for people."""
        return size(self.count) + (f" of {size(self.total)}" if self.total else "")

    @contextmanager
    def reading(self) -> Generator[None]:
        """While it lasts, Ctrl-C ends the wait for a read and nothing else, so that no event and no line is cut in two.

        A second Ctrl-C ends whatever it finds, and so does half a second without a further read. Large files show a bar
        on standard error, where that disturbs nothing.
        """
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            with self._bar():
                yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _read(self) -> bytes:
        self.before_read()
        self._waiting = True
        if self._interrupted:
            raise KeyboardInterrupt
        data = self._file.read1(READ_BYTES)  # read() would wait for the whole amount
        self._waiting = False
        return data

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        if self._waiting or self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        wait_no_longer()

    @contextmanager
    def _bar(self) -> Generator[None]:
        if self.total is None or self.total < LARGE or not sys.stderr.isatty() or sys.stdout.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("reading", total=self.total)
            before = self.before_read

            def show() -> None:
                progress.update(task, completed=self.count)
                before()

            self.before_read = show
            yield


def _plain(begin: bytes) -> bytes:
    """The same beginning, unpacked where it is compressed so that it may be a recording."""
    if not begin.startswith(ZSTANDARD):
        return begin
    with suppress(FramingError):
        return next(unpacked([begin], "zstd"), b"")
    return begin[:0]


def _nothing() -> None:
    return


def _size_of(file: IO[bytes]) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, UnsupportedOperation):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def told_framing(chunks: Iterator[bytes]) -> tuple[str, Iterator[bytes]]:
    """Which framing the first byte tells, and the chunks it was read from."""
    head: list[bytes] = []
    for chunk in chunks:
        head.append(chunk)
        body = chunk.lstrip(_NO_CONTENT)
        if body:
            return BY_FIRST_BYTE.get(body[0], "sse"), chain(head, chunks)
    return "sse", iter(head)
