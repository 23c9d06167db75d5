"""A server of HTTP/1.1 on this machine whose every byte, pause and end is said by the test."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

Act: TypeAlias = bytes | float | Literal["cut", "reset", "hold"]
"""Bytes to send, seconds to wait, or an end: close the connection, reset it, or hold it until the client leaves."""

END: Final = b"0\r\n\r\n"


def head(status: int = 200, content_type: str = "text/event-stream", *lines: str, length: int | None = None) -> bytes:
    """The head of a response: chunked, of this length, or (-1) ended by closing."""
    size = {None: ["Transfer-Encoding: chunked"], -1: ["Connection: close"]}.get(length, [f"Content-Length: {length}"])
    return "\r\n".join([f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", *size, *lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One chunk of HTTP."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(body: bytes) -> list[Act]:
    """A response that is all right."""
    return [head(), chunk(body), END]


class Asked(NamedTuple):
    """A request as it came.

    Attributes:
        method: ``POST``.
        path: With its query.
        headers: Names in lower case.
        body: Whole.
        connection: Over which connection, from 1.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


class WireServer:
    """What came, and how many connections stand."""

    def __init__(self, answer: Callable[[Asked], Iterable[Act]]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.open = 0
        self.changed = threading.Condition()
        self.stopped = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._threads: list[threading.Thread] = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def wait_until_left(self, timeout_s: float = 2.0) -> bool:
        """Whether no connection stands any more, within that time."""
        with self.changed:
            return self.changed.wait_for(lambda: self.open == 0, timeout_s)

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            with self.changed:
                self.open += 1
            thread = threading.Thread(target=self._talk, args=(connection, self.connections), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self.stopped.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(5)

    def _talk(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError), connection:
            while (asked := self._heard(connection, number)) is not None:
                self.asked.append(asked)
                if not self._said(connection, self.answer(asked)):
                    break
        with self.changed:
            self.open -= 1
            self.changed.notify_all()

    def _heard(self, connection: socket.socket, number: int) -> Asked | None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not self._readable(connection) or not (more := connection.recv(65536)):
                return None
            data += more
        top, _, body = data.partition(b"\r\n\r\n")
        first, *lines = top.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            if not (more := connection.recv(65536)):  # it left in the middle of its request
                return None
            body += more
        method, path, _ = first.split(" ")
        return Asked(method, path, headers, body, number)

    def _said(self, connection: socket.socket, acts: Iterable[Act]) -> bool:
        """Whether the connection goes on."""
        for act in acts:
            if isinstance(act, bytes):
                connection.settimeout(None)
                connection.sendall(act)
            elif isinstance(act, float):
                self.stopped.wait(act)
            else:
                if act == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                while act == "hold" and self._readable(connection) and connection.recv(65536):
                    pass
                return False
        return True

    def _readable(self, connection: socket.socket) -> bool:
        """Wait for a byte or the end; false where the server stops first."""
        connection.settimeout(0.05)
        while not self.stopped.is_set():
            try:
                connection.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                continue
            connection.settimeout(None)
            return True
        return False


class Serves(Protocol):
    """A server that runs in a thread until it is stopped."""

    def run(self) -> None: ...

    def stop(self) -> None: ...


S = TypeVar("S", bound=Serves)


@contextmanager
def running(server: S) -> Iterator[S]:
    """The server, at work in a thread of its own."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)


def serving(answer: Callable[[Asked], Iterable[Act]]) -> AbstractContextManager[WireServer]:
    """A server that says to each request what ``answer`` makes of it."""
    return running(WireServer(answer))
