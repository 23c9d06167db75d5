"""What checkers know of sessions. Checked by mypy and pyright, never run; an ignored error must be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, assert_type

import streamfold
from streamfold import (
    Event,
    LinkError,
    LiveConnection,
    LiveObserver,
    LiveSession,
    Provider,
    Snapshot,
    TurnEvent,
    tool_results,
)


def a_session_takes_messages_and_gives_events_with_their_turns(session: LiveSession, frame: dict[str, Any]) -> None:
    assert_type(session.feed(b"{}"), list[TurnEvent])
    for turn, event in session.feed(frame):
        assert_type(turn, int | None)
        assert_type(event, Event)
    assert_type(session.close(1006, "gone"), list[TurnEvent])
    assert_type(session.snapshot(), Snapshot)
    assert_type(session.turns, Sequence[Snapshot])
    assert_type(session.resume_handle, str | None)
    assert_type(session.resumable, bool)
    assert_type(session.unsaved, Sequence[int])
    assert_type(session.provider, Provider)
    session.sent(tool_results(session.snapshot(0), {"c1": "07:12"})[0])
    session.feed(7)  # type: ignore[arg-type]
    LiveSession("gemini-live", max_turns=None, raw="none")
    LiveSession("gemini-live", speed=1)  # type: ignore[call-arg]


class Quiet:
    """An observer."""

    def request(self, method: str, url: str, headers: Iterable[tuple[str, str]]) -> None: ...

    def response(self, status: int, headers: Iterable[tuple[str, str]], http_version: str) -> None: ...

    def read(self, data: bytes, *, op: Literal["text", "binary"], sent: bool) -> None: ...

    def end(
        self,
        how: Literal["eof", "cut", "cancel"],
        *,
        error: str | None = None,
        code: int | None = None,
        reason: str | None = None,
    ) -> None: ...


async def a_connection_gives_the_same_and_takes_messages(fault: LinkError) -> None:
    observers: list[Callable[[], LiveObserver]] = [
        Quiet,
        lambda: streamfold.Recorder("x.sfcap"),
        streamfold.Recordings("x"),
    ]
    async with streamfold.live("gemini-live", "wss://x", opening=[{"setup": {}}], observer=observers[0]) as connection:
        assert_type(connection, LiveConnection)
        async for told in connection:
            assert_type(told, TurnEvent)
        await connection.send({"clientContent": {}})
        await connection.send(7)  # type: ignore[arg-type]
        assert_type(connection.session, LiveSession)
        assert_type(connection.taken_up, int)
    assert_type(fault.status, int | None)
    streamfold.live("gemini-live", "wss://x", observer=Quiet())  # type: ignore[arg-type]
