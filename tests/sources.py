"""Sources of bytes that keep a record: how often they were read, and how often closed."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Recorded:
    """What all of them share."""

    def __init__(
        self,
        chunks: Sequence[bytes],
        *,
        fails: BaseException | None = None,
        closing_fails: BaseException | None = None,
    ) -> None:
        self.chunks = list(chunks)
        self.fails, self.closing_fails = fails, closing_fails
        self.reads = 0
        self.closed = 0

    def read_next(self) -> bytes | None:
        """The next chunk, None at the end; the failure, if there is one, in its place."""
        if self.reads < len(self.chunks):
            self.reads += 1
            return self.chunks[self.reads - 1]
        if self.fails is not None:
            raise self.fails
        return None

    def close(self) -> None:
        self.closed += 1
        if self.closing_fails is not None:
            raise self.closing_fails


class Source(Recorded):
    """An iterator of bytes that can be closed."""

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self.read_next()
        if chunk is None:
            raise StopIteration
        return chunk


class AsyncSource(Recorded):
    """The same, awaited: each read and the closing pass a checkpoint of whichever event loop runs."""

    def __init__(self, chunks: Sequence[bytes], checkpoint: Callable[[], Any], **faults: Any) -> None:
        super().__init__(chunks, **faults)
        self.checkpoint = checkpoint

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await self.checkpoint()
        chunk = self.read_next()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self.close()
        await self.checkpoint()


# -- a real server ----------------------------------------------------------------------------------------------------


class Server:
    """Answers every request with the chunks that are registered for its path."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.answers: dict[str, list[bytes]] = {}
        self.cut: set[str] = set()  # paths whose connection breaks off before the last chunk of HTTP
        self.held: set[str] = set()  # paths whose connection stays open behind the answer
        self.released = threading.Event()  # until this

    def serve(self, path: str, chunks: list[bytes], *, cut: bool = False, held: bool = False) -> str:
        """Register an answer; the address to ask."""
        self.answers[path] = chunks
        self.cut |= {path} if cut else set()
        self.held |= {path} if held else set()
        return self.address + path


@contextmanager
def http_server() -> Iterator[Server]:
    """A server of HTTP/1.1 on this machine, which sends chunk by chunk."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_: ClassVar[Server]

        def do_GET(self) -> None:
            server = self.server_
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in server.answers[self.path]:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                self.wfile.flush()
            if self.path in server.held:
                server.released.wait()
            if self.path in server.cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client left, which some tests are about
                super().handle()

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server = Handler.server_ = Server(f"http://127.0.0.1:{listening.server_port}")
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        listening.shutdown()
        thread.join()
        listening.server_close()
