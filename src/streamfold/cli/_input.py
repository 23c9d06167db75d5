"""Reads of a file or a live pipe, and how far they have come."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import UnsupportedOperation
from itertools import chain
from types import FrameType
from typing import IO, Final, Protocol, cast

from streamfold.decoder import BY_FIRST_BYTE
from streamfold.views.lines import size

__all__ = ["Input", "told_framing"]

READ_BYTES: Final = 65_536
LARGE: Final = 4_000_000  # bytes; reading fewer takes no time worth showing
_NO_CONTENT: Final = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and blanks


class _Readable(Protocol):
    def read1(self, size: int) -> bytes: ...


class Input:
    """The reads of an open binary file, each as large as what is there.

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

    def __iter__(self) -> Iterator[bytes]:
        while data := self._read():
            self.count += len(data)
            if self._chunk is None:
                yield data
            else:
                yield from (data[at : at + self._chunk] for at in range(0, len(data), self._chunk))

    def progress(self) -> str:
        """How far the reading has come, for people."""
        return size(self.count) + (f" of {size(self.total)}" if self.total else "")

    @contextmanager
    def reading(self) -> Generator[None]:
        """While it lasts, Ctrl-C ends the wait for a read and nothing else, so that no event and no line is cut in two.

        A second Ctrl-C ends whatever it finds. Large files show a bar on standard error, where that disturbs nothing.
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
