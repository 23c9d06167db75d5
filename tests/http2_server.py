"""A server of HTTP/2 on this machine, in the clear, whose frames are said by the test; a thread a connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final, Literal, TypeAlias

import h2.config
import h2.connection
import h2.errors
import h2.events

from tests.wire_server import running

Act: TypeAlias = bytes | float | Literal["end", "reset", "goaway", "hold"]
"""Bytes to send, seconds to wait, or an end: of the stream, by a reset of it, of the connection, or none."""

HEAD: Final = [(":status", "200"), ("content-type", "text/event-stream")]


class Http2Server:
    """How many connections came."""

    def __init__(self, answer: Callable[[str], list[Act]]) -> None:
        self.answer = answer
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            self._sockets.append(connection)
            thread = threading.Thread(target=self._talk, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self._sockets:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _talk(self, connection: socket.socket) -> None:
        state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        state.initiate_connection()
        streams: dict[int, str] = {}
        with suppress(OSError), connection:
            connection.sendall(state.data_to_send())
            while data := connection.recv(65536):
                for event in state.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        streams[event.stream_id] = str(dict(event.headers)[":path"])  # type: ignore[index]
                    elif isinstance(event, h2.events.StreamEnded):
                        self._say(connection, state, event.stream_id, self.answer(streams[event.stream_id]))
                connection.sendall(state.data_to_send())

    def _say(self, connection: socket.socket, state: h2.connection.H2Connection, stream: int, acts: list[Act]) -> None:
        state.send_headers(stream, HEAD)
        for act in acts:
            if isinstance(act, bytes):
                state.send_data(stream, act)
            elif isinstance(act, float):
                time.sleep(act)
            elif act == "end":
                state.end_stream(stream)
            elif act == "reset":
                state.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
            elif act == "goaway":
                state.close_connection(h2.errors.ErrorCodes.INTERNAL_ERROR)
            connection.sendall(state.data_to_send())


def serving_http2(answer: Callable[[str], list[Act]]) -> AbstractContextManager[Http2Server]:
    """A server that says to each request what ``answer`` makes of its path."""
    return running(Http2Server(answer))
