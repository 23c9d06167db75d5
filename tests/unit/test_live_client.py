"""The client of live sessions against a real WebSocket server: recorded sessions, links that drop, backpressure."""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Self

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

import streamfold
from streamfold import ErrorEvent, LinkError, LiveSession, Session, TurnEvent, UsageError, limits
from streamfold.transports._take_up import TAKE_UP, Opening
from tests.cli.conftest import COMMAND, ENVIRONMENT
from tests.conftest import SHARED
from tests.live import Recording, broken, recordings, words

Frame = dict[str, Any]
Handler = Callable[[ServerConnection], Awaitable[None]]
SESSIONS = dict(recordings(SHARED))
SETUP: Frame = {"setup": {"model": "m", "sessionResumption": {}}}
CUT = [name for name, recording in SESSIONS.items() if '"newHandle"' not in json.dumps(recording.frames())]


def run(handler: Handler, client: Callable[[str], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with serve(handler, "localhost", 0) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            return await asyncio.wait_for(client(f"ws://localhost:{port}/x?model=m"), 20)

    return asyncio.run(main())


def drop(connection: ServerConnection) -> None:
    """The link is gone, without a close frame."""
    connection.transport.abort()


async def told(provider: str, url: str, **how: Any) -> tuple[LiveSession, list[TurnEvent]]:
    async with streamfold.live(provider, url, delay_s=0.01, **how) as connection:
        events = [event async for event in connection]
    assert not broken(events)
    return connection.session, events


def alone(provider: str, frames: list[Frame]) -> LiveSession:
    session = LiveSession(provider)
    for frame in frames:
        session.feed(frame)
    return session


@pytest.mark.parametrize("name", [name for name in SESSIONS if SESSIONS[name].facts["connections"] == 1])
@pytest.mark.parametrize("named", [True, False])
def test_a_recorded_session_is_read_and_its_frames_are_sent(name: str, named: bool) -> None:
    recording = SESSIONS[name]
    provider = recording.facts["provider"]
    came: list[Any] = []

    async def handler(connection: ServerConnection) -> None:
        for line in recording.lines:
            if line["dir"] == "in":
                await connection.send(json.dumps(line["frame"]).encode())
            elif line["dir"] == "out":
                came.append(json.loads(await connection.recv()))
        await connection.close()

    async def client(url: str) -> LiveSession:
        async with streamfold.live(provider if named else "auto", url) as connection:
            for frame in recording.frames("out"):
                await connection.send(frame)
            async for _ in connection:
                pass
            return connection.session

    session = run(handler, client)
    assert session.provider == provider
    assert came == recording.frames("out")
    expected = alone(provider, recording.frames())
    expected.close(1000)
    assert [turn.blocks for turn in session.turns] == [turn.blocks for turn in expected.turns]


@pytest.mark.parametrize("name", CUT)
def test_a_link_that_drops_is_told_where_the_session_cannot_be_taken_up(name: str) -> None:
    """Dropped at every message: what came stands, what was open is truncated, and nothing connects again."""
    recording = SESSIONS[name]
    provider, frames = recording.facts["provider"], recording.frames()
    connections: list[int] = []

    async def client_at(url: str) -> None:
        for kept in range(len(frames) + 1):
            connections.append(kept)
            session, events = await told(provider, url)
            expected = alone(provider, frames[:kept])
            expected.close(1006)
            assert [turn.blocks for turn in session.turns] == [turn.blocks for turn in expected.turns]
            assert [turn.outcome for turn in session.turns] == [turn.outcome for turn in expected.turns]
            last = [event.event for event in events if isinstance(event.event, ErrorEvent)][-1]
            assert last.kind in ("truncated", "transport")
            assert last.status == 1006

    async def handler(connection: ServerConnection) -> None:
        for frame in frames[: connections[-1]]:
            await connection.send(json.dumps(frame))
        await asyncio.sleep(0.02)  # what was sent is on its way
        drop(connection)

    run(handler, client_at)
    assert connections == list(range(len(frames) + 1))


KEPT = [name for name in SESSIONS if name not in CUT]


class Rerun:
    """A server that plays a recorded session and, where it is given a handle, goes on from where that one stands.

    Args:
        frames: What it says; an empty one stands for the end of a connection, which it leaves to the client.
        drop_at: How many messages of the first connection arrive before the link drops; None: it does not.
    """

    def __init__(self, frames: list[Frame], drop_at: int | None) -> None:
        self.frames = [frame for frame in frames if "setupComplete" not in frame]
        told = [frame.get("sessionResumptionUpdate", {}).get("newHandle") for frame in self.frames]
        self.stands = {handle: place + 1 for place, handle in enumerate(told) if handle}
        for handle, place in self.stands.items():
            if place < len(told) and not self.frames[place]:
                self.stands[handle] = place + 1
        self.drop_at = drop_at
        self.taken_up_by: list[str] = []

    async def __call__(self, connection: ServerConnection) -> None:
        handle = json.loads(await connection.recv())["setup"]["sessionResumption"].get("handle")
        drop_at, self.drop_at = self.drop_at, None
        if handle is not None:
            self.taken_up_by.append(handle)
        with suppress(ConnectionClosed):  # a client leaves, where the server said that it will
            await connection.send(json.dumps({"setupComplete": {}}).encode())
            place = self.stands.get(handle, 0)
            for frame in self.frames[place:drop_at]:
                if not frame:
                    await connection.wait_closed()
                await connection.send(json.dumps(frame).encode())
            if drop_at is not None:
                await asyncio.sleep(0.02)  # what was sent is on its way
                drop(connection)
            await connection.close()


@pytest.mark.parametrize("name", KEPT)
def test_a_recorded_session_with_handles_is_taken_up_wherever_the_link_drops(name: str) -> None:
    """Nothing is lost, and nothing doubled but what the handle does not hold: which turns those are is known.

    A turn that the drop cut is truncated, and what the server says behind the handle begins another. Before the first
    handle came the session is over, and says so.
    """
    first = takewhile(lambda line: line["dir"] != "close", SESSIONS[name].lines)  # the next is asked something else
    frames = [line["frame"] for line in first if line["dir"] == "in" and "goAway" not in line["frame"]]
    script = Rerun(frames, None).frames
    whole = _content(_played(script))
    seen = {"ended": 0, "exact": 0, "again": 0}
    for drop_at in range(len(script) + 1):
        server = Rerun(frames, drop_at)
        expected = _played(script[:drop_at], 1006)
        unsaved = expected.unsaved
        session, events = run(server, _read)
        handles = [handle for handle, place in server.stands.items() if place <= drop_at]
        assert server.taken_up_by == handles[-1:]
        if not handles:
            last = [event.event for event in events if isinstance(event.event, ErrorEvent)][-1]
            assert (last.kind in ("truncated", "transport"), last.status) == (True, 1006)
            assert _turns(session) == _turns(expected)
            seen["ended"] += 1
            continue
        _played(script[server.stands[handles[-1]] :], into=expected)
        assert _turns(session) == _turns(expected)
        if not unsaved:
            assert _content(session) == whole
        seen["again" if unsaved else "exact"] += 1
    assert seen["ended"]
    assert seen["exact" if "go-away" in name else "again"]


def test_a_recorded_session_is_taken_up_when_the_server_goes_away(shared: Path) -> None:
    recording = SESSIONS["gemini-live/syn-go-away-resume.jsonl"]
    server = Rerun([line.get("frame", {}) for line in recording.lines if line["dir"] != "out"], None)
    session, events = run(server, _read)
    assert server.taken_up_by == ["hdl-2"]
    assert _turns(session) == _turns(_played(recording.frames()))
    assert [turn.outcome for turn in session.turns] == ["complete", "complete"]
    assert not [event for event in events if isinstance(event.event, ErrorEvent)]


def _played(frames: list[Frame], code: int = 1000, *, into: LiveSession | None = None) -> LiveSession:
    """A session of these messages on one connection, without any."""
    session = into or LiveSession("gemini-live")
    for frame in [{"setupComplete": {}}, *frames]:
        session.feed(frame)
    session.close(code)
    return session


def _turns(session: LiveSession) -> list[Any]:
    return [(turn.blocks, turn.outcome, turn.usage) for turn in session.turns]


def _content(session: LiveSession) -> tuple[str, bytes]:
    """All words and all sound, whichever turns they stand in: words behind the end of a turn belong to that one."""
    blocks = [block for turn in session.turns for block in turn.blocks]
    words = "".join(block.text for block in blocks if isinstance(block, streamfold.TranscriptBlock))
    return words, b"".join(block.data for block in blocks if isinstance(block, streamfold.MediaBlock))


async def _read(url: str) -> tuple[LiveSession, list[TurnEvent]]:
    return await told("gemini-live", url, opening=[SETUP])


TURNS: list[list[Frame]] = [
    [
        {"serverContent": {"modelTurn": {"parts": [{"text": f"turn {number},"}]}}},
        {"serverContent": {"modelTurn": {"parts": [{"text": " whole."}]}}},
        {"serverContent": {"turnComplete": True}},
        {"sessionResumptionUpdate": {"newHandle": f"h{number}", "resumable": True}},
    ]
    for number in range(3)
]
FIRST: list[Frame] = [{"setupComplete": {}}, {"sessionResumptionUpdate": {"newHandle": "h", "resumable": True}}]
LENGTH = len(FIRST) + sum(map(len, TURNS))


class Gemini:
    """A server that goes on behind the handle it is given, and drops one link after so many messages."""

    def __init__(self, drop_at: int, *, goes_away: bool = False) -> None:
        self.drop_at, self.goes_away = drop_at, goes_away
        self.setups: list[Frame] = []

    async def __call__(self, connection: ServerConnection) -> None:
        setup = json.loads(await connection.recv())["setup"]
        self.setups.append(setup)
        handle = setup["sessionResumption"].get("handle")
        begun = {None: 0, "h": 0, **{f"h{number}": number + 1 for number in range(3)}}[handle]
        frames = [*(FIRST if handle is None else FIRST[:1]), *(frame for turn in TURNS[begun:] for frame in turn)]
        if len(self.setups) == 1:
            if self.goes_away:
                frames.insert(self.drop_at, {"goAway": {"timeLeft": "5s"}})
            else:
                frames = frames[: self.drop_at]
        for frame in frames:
            await connection.send(json.dumps(frame).encode())
            await asyncio.sleep(0.002)
        if len(self.setups) == 1 and not self.goes_away:
            drop(connection)
        elif self.goes_away and len(self.setups) == 1:
            await connection.wait_closed()
        else:
            await connection.close()


@pytest.mark.parametrize("count", range(LENGTH + 1))
def test_a_session_is_taken_up_where_the_link_drops_and_nothing_is_lost_or_doubled(count: int) -> None:
    server = Gemini(count)
    session, _ = run(server, lambda url: told("gemini-live", url, opening=[SETUP]))
    if count < len(FIRST):  # no handle so far
        assert len(server.setups) == 1
        return
    handle = "h" if count < len(FIRST) + 4 else f"h{(count - len(FIRST)) // 4 - 1}"
    assert server.setups[1]["sessionResumption"] == {"handle": handle}
    whole = [turn.text for turn in session.turns if turn.outcome == "complete"]
    cut = [turn.text for turn in session.turns if turn.outcome == "truncated"]
    inside = (count - len(FIRST)) % 4  # messages of a turn that was open; behind its end only the handle is missing
    again = [f"turn {(count - len(FIRST)) // 4}, whole."] if inside == 3 else []  # said, and said again: no handle told
    assert sorted(whole) == sorted([f"turn {number}, whole." for number in range(3)] + again)
    assert len(cut) == (inside in (1, 2))


@pytest.mark.parametrize("count", [2, 3, 5, 6, 10, LENGTH])
def test_a_session_is_taken_up_between_two_turns_where_the_server_goes_away(count: int) -> None:
    server = Gemini(count, goes_away=True)
    session, events = run(server, lambda url: told("gemini-live", url, opening=[SETUP]))
    assert len(server.setups) == 2
    whole = [turn.text for turn in session.turns if turn.outcome == "complete"]
    assert set(whole) == {f"turn {number}, whole." for number in range(3)}
    assert len(whole) <= 4  # one may have been on its way
    assert [event.event.type for event in events].count("go_away") == 1


def test_a_conversation_of_xai_is_taken_up_by_its_id_in_the_address() -> None:
    paths: list[str] = []

    async def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        paths.append(connection.request.path)
        await connection.recv()
        response = {"id": f"r{len(paths)}", "status": "completed"}
        for frame in (
            {"type": "session.created", "session": {"id": "s"}},
            {"type": "conversation.created", "conversation": {"id": "conv"}},
            {"type": "session.updated", "session": {"resumption": {"enabled": True}}},
            {"type": "response.created", "response": response},
            {"type": "response.output_text.delta", "response_id": f"r{len(paths)}", "delta": "Hi"},
        ):
            await connection.send(json.dumps(frame))
        await asyncio.sleep(0.01)
        if len(paths) == 1:
            drop(connection)
        else:
            await connection.send(json.dumps({"type": "response.done", "response": response}))
            await connection.close()

    update: Frame = {"type": "session.update", "session": {"resumption": {"enabled": True}}}
    session, _ = run(handler, lambda url: told("xai-realtime", url, opening=[update]))
    assert paths == ["/x?model=m", "/x?model=m&conversation_id=conv"]
    assert [(turn.text, turn.outcome) for turn in session.turns] == [("Hi", "truncated"), ("Hi", "complete")]


class Grok:
    """A voice agent that keeps its conversation: it drops the first link, says what was said before, and goes on.

    Args:
        drop_at: How many messages of the first connection arrive before the link drops.
    """

    def __init__(self, drop_at: int) -> None:
        self.drop_at = drop_at
        self.paths: list[str] = []
        self.said = 0  # responses that are in the conversation

    async def __call__(self, connection: ServerConnection) -> None:
        assert connection.request is not None
        self.paths.append(connection.request.path)
        await connection.recv()
        first = len(self.paths) == 1
        with suppress(ConnectionClosed):
            for frame in self.frames()[: self.drop_at if first else None]:
                await connection.send(json.dumps(frame))
                self.said += frame["type"] == "response.done"
            if first:
                await asyncio.sleep(0.02)  # what was sent is on its way
                drop(connection)

    def frames(self) -> list[Frame]:
        history = [
            {"id": f"again_{n}", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "old"}]}
            for n in range(self.said)
        ]
        return [
            {"type": "session.created", "session": {"id": "s", "model": "grok-voice-latest"}},
            {"type": "conversation.created", "conversation": {"id": "conv"}},
            *({"type": "conversation.item.added", "item": item} for item in history),
            {"type": "session.updated", "session": {"resumption": {"enabled": True}}},
            *(frame for number in range(self.said, 3) for frame in self.response(f"r{number}")),
        ]

    def response(self, id_: str) -> list[Frame]:
        place = {"response_id": id_, "item_id": f"item_{id_}"}
        return [
            {"type": "response.created", "response": {"id": id_}},
            {"type": "response.output_audio_transcript.delta", **place, "delta": f"{id_},"},
            {"type": "response.output_audio_transcript.delta", **place, "delta": " whole."},
            {"type": "response.output_audio_transcript.done", **place},
            {"type": "response.done", "response": {"id": id_, "status": "completed"}},
        ]


@pytest.mark.parametrize("provider", ["xai-realtime", "auto"])
@pytest.mark.parametrize("count", range(len(Grok(0).frames()) + 1))
def test_a_conversation_of_xai_goes_on_wherever_the_link_drops(count: int, provider: str) -> None:
    """What is said again of before is no new turn; a response that the drop cut is truncated, and no other is."""
    server = Grok(count)
    update: Frame = {"type": "session.update", "session": {"resumption": {"enabled": True}}}
    session, _ = run(server, lambda url: told(provider, url, opening=[update]))
    if count < 2:  # no conversation was told of
        assert server.paths == ["/x?model=m"]
        return
    assert server.paths == ["/x?model=m", "/x?model=m&conversation_id=conv"]
    inside = max(count - 3, 0) % 5  # messages of a response that had not ended
    turns = [(turn.id, words([turn], "model"), turn.outcome) for turn in session.turns]
    assert [turn for turn in turns if turn[2] == "complete"] == [
        (f"r{number}", [f"r{number}, whole."], "complete") for number in range(3)
    ]
    assert [(id_, outcome) for id_, _, outcome in turns if outcome != "complete"] == (
        [(f"r{(count - 3) // 5}", "truncated")] if inside else []
    )


@pytest.mark.parametrize("refuses", [False, True])
def test_a_session_that_cannot_be_taken_up_again_comes_to_an_end(refuses: bool) -> None:
    """The server drops every link, or lets nobody in again."""
    seen: list[int] = []

    def process_request(connection: ServerConnection, request: Any) -> Any:
        seen.append(1)
        return connection.respond(503, "full") if refuses and len(seen) > 1 else None

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        for frame in FIRST if len(seen) == 1 else []:
            await connection.send(json.dumps(frame))
        await asyncio.sleep(0.01)
        drop(connection)

    async def main() -> list[TurnEvent]:
        async with serve(handler, "localhost", 0, process_request=process_request) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            session = streamfold.live(
                "gemini-live", f"ws://localhost:{port}", opening=[SETUP], delay_s=0.001, attempts=4
            )
            async with session as connection:
                return [event async for event in connection]

    if refuses:
        with pytest.raises(LinkError, match="HTTP"):
            asyncio.run(main())
    else:
        assert [event.event.type for event in asyncio.run(main())][-1] == "error"
    assert len(seen) == 5


def test_a_normal_close_is_the_end_though_there_is_a_handle() -> None:
    server = Gemini(LENGTH)

    async def handler(connection: ServerConnection) -> None:
        server.setups.append(json.loads(await connection.recv()))
        for frame in [*FIRST, *TURNS[0]]:
            await connection.send(json.dumps(frame))
        await connection.close()

    session, events = run(handler, lambda url: told("gemini-live", url, opening=[SETUP]))
    assert len(server.setups) == 1
    assert [turn.outcome for turn in session.turns] == ["complete"]
    assert [event for event in events if isinstance(event.event, ErrorEvent)] == []


def test_a_reader_who_waits_holds_the_server_up() -> None:
    """Of messages as large as these the sockets hold one or two: what was sent is what the library holds ready."""
    sent: list[int] = []
    frame = json.dumps({"type": "ping", "pad": "x" * 2_000_000})
    most = limits.MAX_WAITING_MESSAGES + 4  # one is put together, one on its way out, two in the system's buffers

    async def handler(connection: ServerConnection) -> None:
        for number in range(40):
            await connection.send(frame)
            sent.append(number)
        await connection.close()

    async def stands_still() -> int:
        count = -1
        while count != len(sent):
            count = len(sent)
            await asyncio.sleep(0.2)
        return count

    async def main() -> None:
        async with serve(handler, "localhost", 0, compression=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            async with streamfold.live("xai-realtime", f"ws://localhost:{port}") as connection:
                assert limits.MAX_WAITING_MESSAGES <= await stands_still() <= most
                for _ in range(8):
                    await anext(connection)
                assert await stands_still() <= 8 + most
                assert len([event async for event in connection]) == 32

    asyncio.run(main())


# -- a handle that is refused -----------------------------------------------------------------------------------------


class Refusing:
    """A server that keeps nothing: it drops the first link behind a turn, and refuses the handle that it gave.

    Args:
        code: By which close.
        forever: Whether it lets nobody in again.
    """

    def __init__(self, code: int, *, forever: bool = False) -> None:
        self.code, self.forever = code, forever
        self.handles: list[str | None] = []

    async def __call__(self, connection: ServerConnection) -> None:
        setup = json.loads(await connection.recv())["setup"]
        self.handles.append(setup["sessionResumption"].get("handle"))
        if len(self.handles) == 1:
            for frame in [*FIRST, *TURNS[0]]:
                await connection.send(json.dumps(frame))
            await asyncio.sleep(0.02)
            drop(connection)
        elif self.handles[-1] is not None or self.forever:
            await connection.close(self.code, "unknown handle")
        else:
            for frame in [FIRST[0], *TURNS[1]]:
                await connection.send(json.dumps(frame))
            await connection.close()


@pytest.mark.parametrize("attempts", [1, 5])
@pytest.mark.parametrize("code", [1007, 1008, 1011])
def test_a_handle_that_is_refused_is_told_and_done_without(code: int, attempts: int) -> None:
    server = Refusing(code)
    read = partial(told, "gemini-live", opening=[SETUP], attempts=attempts + 1)
    session, events = run(server, read)
    assert server.handles == [None, "h0", None]
    assert [(turn.text, turn.outcome) for turn in session.turns] == [
        ("turn 0, whole.", "complete"),
        ("turn 1, whole.", "complete"),
    ]
    errors = [event for event in events if isinstance(event.event, ErrorEvent)]
    codes = [(event.turn, event.event.code, event.event.fatal) for event in errors]  # type: ignore[union-attr]
    assert codes == [(None, "1006", True), (None, "session_lost", False)]
    behind = events[events.index(errors[-1]) + 1]
    assert behind == TurnEvent(None, Session())
    assert session.unsaved == (0,)


def test_it_is_done_without_once() -> None:
    server = Refusing(1007, forever=True)
    session, events = run(server, lambda url: told("gemini-live", url, opening=[SETUP]))
    assert server.handles == [None, "h0", None]
    last = events[-1].event
    assert isinstance(last, ErrorEvent)
    assert (last.code, last.fatal) == ("1007", True)
    assert session.unsaved == (0,)


# -- the link drops, or the server goes away --------------------------------------------------------------------------


async def sends_for_ever(connection: streamfold.LiveConnection) -> None:
    while True:
        await connection.send({"clientContent": {"turns": []}})
        await asyncio.sleep(0.01)


def test_what_is_sent_into_a_link_that_dropped_is_told_to_whoever_sends() -> None:
    """With the code, and the library's own exception as the cause; the next event asked for takes the session up."""
    server = Gemini(len(FIRST) + 4)

    async def client(url: str) -> list[str]:
        async with streamfold.live("gemini-live", url, opening=[SETUP], delay_s=0.01) as connection:
            events = [await anext(connection)]
            with pytest.raises(LinkError, match="1006") as raised:
                await sends_for_ever(connection)
            assert raised.value.status == 1006
            assert isinstance(raised.value.__cause__, ConnectionClosed)
            while connection.taken_up == 0:
                events.append(await anext(connection))
                if isinstance(events[-1].event, ErrorEvent):
                    with pytest.raises(LinkError, match="takes the session up") as raised:
                        await connection.send({"clientContent": {}})
                    assert raised.value.status is None
            await connection.send({"clientContent": {"turns": []}})
            async for _ in connection:
                pass
            return [turn.text for turn in connection.session.turns]

    assert run(server, client) == [f"turn {number}, whole." for number in range(3)]
    assert [setup["sessionResumption"].get("handle") for setup in server.setups] == [None, "h0"]


def test_a_server_that_goes_away_is_left_after_two_thirds_of_its_notice() -> None:
    """Though the turn has not ended; and before the notice is over."""
    left: list[float] = []

    async def handler(connection: ServerConnection) -> None:
        setup = json.loads(await connection.recv())["setup"]
        if setup["sessionResumption"].get("handle") is not None:
            for frame in [FIRST[0], *TURNS[1]]:
                await connection.send(json.dumps(frame))
            await connection.close()
            return
        for frame in [*FIRST, TURNS[0][0], {"goAway": {"timeLeft": "1.5s"}}]:
            await connection.send(json.dumps(frame))
        noticed = asyncio.get_running_loop().time()
        await connection.wait_closed()
        left.append(asyncio.get_running_loop().time() - noticed)

    session, _ = run(handler, lambda url: told("gemini-live", url, opening=[SETUP]))
    (after,) = left
    assert 0.95 <= after < 1.5
    assert [(turn.text, turn.outcome) for turn in session.turns] == [
        ("turn 0,", "truncated"),
        ("turn 1, whole.", "complete"),
    ]


# -- nothing is left --------------------------------------------------------------------------------------------------


class Watched:
    """Runs clients of one server, and says what each of them leaves behind: tasks, connections, generators."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    async def __aenter__(self) -> Self:
        self._serving = serve(self.handler, "localhost", 0)
        self.server = await self._serving.__aenter__()
        self.url = f"ws://localhost:{next(iter(self.server.sockets)).getsockname()[1]}"
        self._generators: list[Any] = []
        sys.set_asyncgen_hooks(firstiter=self._generators.append)
        self._tasks = asyncio.all_tasks()
        return self

    async def __aexit__(self, *fault: Any) -> None:
        await self._serving.__aexit__(*fault)

    async def left(self) -> list[Any]:
        """What is still there once the server has seen the end of its connections."""
        for _ in range(100):
            tasks = asyncio.all_tasks() - self._tasks
            if not tasks and not self.server.connections:
                break
            await asyncio.sleep(0.005)
        gc.collect()
        alive = gc.get_objects()  # by their types: proxies of what is gone raise when they are asked
        links = [one for one in alive if issubclass(type(one), asyncio.Transport) and not one.is_closing()]
        return [*tasks, *self.server.connections, *links, *(one for one in self._generators if one.ag_frame)]


async def going_away(connection: ServerConnection) -> None:
    """Drops the link of whoever has no handle, tells the next one that it goes away, and says the rest to the third."""
    handle = json.loads(await connection.recv())["setup"]["sessionResumption"].get("handle")
    with suppress(ConnectionClosed):
        for frame in {
            None: [*FIRST, *TURNS[0]],
            "h0": [FIRST[0], {"goAway": {"timeLeft": "9s"}}, *TURNS[1]],
        }.get(handle, [FIRST[0], *TURNS[2]]):
            await connection.send(json.dumps(frame))
            await asyncio.sleep(0)
        if handle is None:
            await asyncio.sleep(0.005)
            drop(connection)
        elif handle == "h0":
            await connection.wait_closed()


async def read_all(url: str, seen: list[TurnEvent]) -> None:
    async with streamfold.live("gemini-live", url, opening=[SETUP], delay_s=0.001) as connection:
        async for event in connection:
            seen.append(event)
            await connection.send({"realtimeInput": {"text": "And?"}}) if len(seen) % 3 == 0 else None


def test_whoever_is_cancelled_anywhere_leaves_nothing_behind() -> None:
    """At steps of the event loop ever further apart: while it connects, reads, sends, leaves, waits, connects again."""

    async def main() -> int:
        seen: list[TurnEvent] = []
        async with Watched(going_away) as watched:
            steps = 0
            for times in count():
                seen.clear()
                task = asyncio.create_task(read_all(watched.url, seen))
                for _ in range(steps):
                    await asyncio.sleep(0)
                    if task.done():
                        break
                task.cancel()
                with suppress(asyncio.CancelledError, LinkError):
                    await task
                assert await watched.left() == []
                if not task.cancelled():
                    return times
                steps += 1 + steps // 16
        raise AssertionError

    assert asyncio.run(main()) > 25


@pytest.mark.parametrize("point", ["go_away", "done", "session", "start", "block_end"])
def test_whoever_closes_behind_a_go_away_leaves_nothing_behind(point: str) -> None:
    """Also while the connection is being left, and while another one is made."""

    async def main() -> None:
        async with Watched(going_away) as watched:
            connection = streamfold.live("gemini-live", watched.url, opening=[SETUP], delay_s=0.001)
            async with connection:
                behind = False
                async for _, event in connection:
                    behind = behind or event.type == "go_away"
                    if behind and event.type == point:
                        break
                reading = asyncio.create_task(anext(connection, None))
                await asyncio.sleep(0)
                await connection.aclose()
                with suppress(UsageError):
                    await reading
                assert [event async for event in connection] == []
            assert await watched.left() == []
            assert "open" not in [turn.outcome for turn in connection.session.turns]

    asyncio.run(main())


@pytest.mark.parametrize("waits", ["before it asks again", "for the handshake"])
def test_whoever_closes_while_a_link_is_sought_ends_that_at_once(waits: str) -> None:
    """No request goes out behind it, and whoever waits for an event has waited long enough."""
    asked: list[str] = []

    async def handler(connection: ServerConnection) -> None:
        await connection.recv()
        if len(asked) == 1:
            await connection.send('{"setupComplete": {}}')
            await connection.send('{"sessionResumptionUpdate": {"newHandle": "h", "resumable": true}}')
        drop(connection)

    async def stall(connection: ServerConnection, request: Any) -> None:
        asked.append(request.path)
        if len(asked) > 1 and waits == "for the handshake":
            await asyncio.sleep(20)

    async def main() -> None:
        async with serve(handler, "localhost", 0, process_request=stall, open_timeout=1) as server:
            url = f"ws://localhost:{next(iter(server.sockets)).getsockname()[1]}"
            async with streamfold.live("gemini-live", url, opening=[SETUP], delay_s=6.0) as connection:
                reading = asyncio.create_task(told_to_the_end(connection))
                while len(asked) < 2:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)
                await asyncio.gather(connection.aclose(), connection.aclose())
                await asyncio.wait_for(reading, 1)
            server.close(close_connections=True)
        assert len(asked) == 2

    asyncio.run(main())


async def told_to_the_end(connection: streamfold.LiveConnection) -> list[TurnEvent]:
    return [event async for event in connection]


async def frozen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: asyncio.Event) -> None:
    """Answers the opening request, and nothing after it: no close either."""
    request = await reader.readuntil(b"\r\n\r\n")
    key = re.search(rb"(?i)sec-websocket-key: (\S+)", request)
    assert key
    accepted = base64.b64encode(hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    writer.write(b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    writer.write(b"Sec-WebSocket-Accept: %b\r\n\r\n" % accepted)
    with suppress(ConnectionError):
        while await reader.read(1000):
            pass
    left.set()
    writer.close()


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_server_that_never_agrees_to_close_is_left_all_the_same(cancelled: bool) -> None:
    """Whoever is cancelled while it closes leaves no connection; nobody else waits for long."""

    async def main() -> None:
        left = asyncio.Event()
        async with await asyncio.start_server(partial(frozen, left=left), "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            connection = await streamfold.live("xai-tts", url).__aenter__()
            closing = asyncio.create_task(connection.aclose())
            await asyncio.sleep(0.05)
            if cancelled:
                closing.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait_for(closing, 4)
            await asyncio.wait_for(left.wait(), 1)

    asyncio.run(main())


def test_a_redirection_is_a_refusal_and_takes_no_key_anywhere() -> None:
    seen: list[str] = []

    async def main() -> None:
        async def handler(connection: ServerConnection) -> None:
            seen.append("connection")

        async with serve(handler, "localhost", 0) as other:
            target = f"ws://localhost:{next(iter(other.sockets)).getsockname()[1]}"

            def redirect(connection: ServerConnection, request: Any) -> Any:
                response = connection.respond(307, "")
                response.headers["Location"] = target
                return response

            async with serve(handler, "localhost", 0, process_request=redirect) as server:
                url = f"ws://localhost:{next(iter(server.sockets)).getsockname()[1]}"
                with pytest.raises(LinkError) as raised:
                    await streamfold.live("xai-tts", url, headers={"x-api-key": "k"}).__aenter__()
        assert (raised.value.status, seen) == (307, [])

    asyncio.run(main())


@pytest.mark.parametrize("url", ["ws://localhost:99999", "ws://[::1", "http://localhost", "ws://"])
def test_an_address_that_cannot_be_is_a_fault_of_usage(url: str) -> None:
    with pytest.raises(UsageError, match="address"):
        asyncio.run(streamfold.live("xai-tts", url).__aenter__())


def test_a_key_that_cannot_be_sent_is_not_told() -> None:
    async def main() -> None:
        async with serve(lambda connection: connection.wait_closed(), "localhost", 0) as server:
            url = f"ws://localhost:{next(iter(server.sockets)).getsockname()[1]}"
            with pytest.raises(LinkError) as raised:
                await streamfold.live("xai-tts", url, headers={"x-api-key": "sesame\r\nopen"}).__aenter__()
        assert "sesame" not in str(raised.value)

    asyncio.run(main())


# -- who looks on -----------------------------------------------------------------------------------------------------


def test_who_looks_on_sees_each_connection_and_a_recording_has_no_secrets(tmp_path: Path) -> None:
    server = Gemini(len(FIRST) + 5)

    async def client(url: str) -> LiveSession:
        observer = streamfold.Recordings(tmp_path, provider="gemini-live")
        how: dict[str, Any] = {"headers": {"x-goog-api-key": "secret"}, "opening": [SETUP], "delay_s": 0.01}
        async with streamfold.live("gemini-live", f"{url}&key=secret", observer=observer, **how) as connection:
            async for _ in connection:
                pass
            return connection.session

    session = run(server, client)
    recordings = [streamfold.read_recording(path) for path in sorted(tmp_path.iterdir())]
    again = LiveSession("gemini-live")
    ends: list[Any] = []
    for recording in recordings:
        reads = list(recording)
        assert recording.is_session
        assert recording.head.response is not None
        assert recording.head.response.status == 101
        assert [json.loads(read.data) for read in reads if read.sent] == [{"setup": server.setups[len(ends)]}]
        assert {(read.sent, read.op) for read in reads} == {(True, "text"), (False, "binary")}
        for read in reads:
            if not read.sent:
                again.feed(read.data)
        assert recording.end is not None
        again.close(1006 if recording.end.end == "cut" else recording.end.code, recording.end.reason or "")
        ends.append((recording.end.end, recording.end.code))
    assert ends == [("cut", 1006), ("eof", 1000)]
    assert _turns(again) == _turns(session)
    assert not [path for path in tmp_path.iterdir() if b"secret" in path.read_bytes()]


@pytest.mark.parametrize("name", [name for name in SESSIONS if SESSIONS[name].facts["connections"] == 1])
def test_a_session_is_recorded_as_it_was(name: str, tmp_path: Path) -> None:
    """Both sides of it, in order; commands fold the recording to what the session folded to."""
    recording = SESSIONS[name]
    lines = [line for line in recording.lines if line["dir"] != "close"]

    async def handler(connection: ServerConnection) -> None:
        for line in lines:
            if line["dir"] == "in":
                await connection.send(json.dumps(line["frame"]).encode())
            else:
                await connection.recv()
        await connection.close()

    async def client(url: str) -> LiveSession:
        recorder = streamfold.Recorder(tmp_path / "session.sfcap", provider=recording.facts["provider"])
        async with streamfold.live(recording.facts["provider"], url, observer=lambda: recorder) as connection:
            for frame in recording.frames("out"):
                await connection.send(frame)
            async for _ in connection:
                pass
            return connection.session

    session = run(handler, client)
    with streamfold.read_recording(tmp_path / "session.sfcap") as reads:
        kept = [(read.sent, json.loads(read.data)) for read in reads]
    for sent, direction in ((True, "out"), (False, "in")):
        assert [frame for was_sent, frame in kept if was_sent == sent] == recording.frames(direction)
    done = subprocess.run(
        [*COMMAND, "fold", "--json", tmp_path / "session.sfcap"], env=ENVIRONMENT, capture_output=True, check=False
    )
    folded = json.loads(done.stdout)["turns"]
    assert [turn["text"] for turn in folded] == [turn.text for turn in session.turns]
    assert [len(turn["blocks"]) for turn in folded] == [len(turn.blocks) for turn in session.turns]


@asynccontextmanager
async def refusing() -> AsyncIterator[str]:
    """A server to which no key is good enough."""

    def refuse(connection: Any, request: Any) -> Any:
        return connection.respond(401, "no key")

    async def handler(connection: ServerConnection) -> None: ...

    async with serve(handler, "localhost", 0, process_request=refuse) as server:
        yield f"ws://localhost:{next(iter(server.sockets)).getsockname()[1]}"


def test_a_connection_that_was_not_to_be_had_is_seen_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with refusing() as url:
            recorders = streamfold.Recordings(tmp_path)
            for address in (url, "ws://localhost:1"):
                with pytest.raises(LinkError):
                    async with streamfold.live("xai-tts", address, observer=recorders):
                        pass

    asyncio.run(main())
    refused, absent = [streamfold.read_recording(path) for path in sorted(tmp_path.iterdir())]
    for recording, status in ((refused, 401), (absent, None)):
        assert list(recording) == []
        assert recording.end is not None
        assert recording.end.end == "cut"
        assert "no connection" in (recording.end.error or "")
        assert recording.status_code == status


def test_whoever_leaves_is_seen_to_have_left(tmp_path: Path) -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.send(json.dumps({"type": "audio.delta", "delta": "AAEC"}))
        await connection.wait_closed()

    async def client(url: str) -> None:
        async with streamfold.live("xai-tts", url, observer=streamfold.Recordings(tmp_path)) as connection:
            await anext(connection)

    run(handler, client)
    (recording,) = [streamfold.read_recording(path) for path in tmp_path.iterdir()]
    assert len(list(recording)) == 1
    assert recording.end is not None
    assert (recording.end.end, recording.end.code) == ("cancel", None)


# -- closing ----------------------------------------------------------------------------------------------------------


def test_who_is_cancelled_closes_the_connection() -> None:
    closed: list[int | None] = []

    async def handler(connection: ServerConnection) -> None:
        await connection.send(json.dumps({"type": "response.created", "response": {"id": "r"}}))
        await connection.wait_closed()
        closed.append(connection.close_code)

    async def client(url: str) -> LiveSession:
        begun = asyncio.Event()
        sessions: list[LiveSession] = []

        async def read() -> None:
            async with streamfold.live("openai-realtime", url) as connection:
                sessions.append(connection.session)
                async for _ in connection:
                    begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return sessions[0]

    session = run(handler, client)
    assert closed == [1000]
    assert session.snapshot().outcome == "truncated"


def test_closing_twice_is_closing_once_and_nothing_is_read_or_sent_after_it() -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.wait_closed()

    async def client(url: str) -> None:
        connection = streamfold.live("xai-tts", url)
        with pytest.raises(UsageError):
            await anext(aiter(connection))
        with pytest.raises(UsageError):
            await connection.send("x")
        async with connection:
            await connection.aclose()
            await connection.aclose()
            assert [event async for event in connection] == []

    run(handler, client)


def test_a_message_too_large_ends_the_session() -> None:
    async def handler(connection: ServerConnection) -> None:
        await connection.send(json.dumps({"type": "audio.delta", "delta": "AAEC"}))
        await connection.send(json.dumps({"type": "audio.delta", "delta": "A" * 4000}))
        await connection.wait_closed()

    session, events = run(handler, lambda url: told("xai-tts", url, max_frame_bytes=1000))
    assert isinstance(events[-1].event, ErrorEvent)
    assert session.snapshot().outcome == "truncated"
    assert events[-1].event.status == 1009


def test_what_the_first_connection_raises_is_raised() -> None:
    async def main() -> None:
        async with refusing() as url, streamfold.live("xai-tts", url):
            pass

    with pytest.raises(LinkError, match="HTTP"):
        asyncio.run(main())


@pytest.mark.parametrize("missing", ["websockets.asyncio.client", "websockets.exceptions"])
def test_who_lacks_the_extra_is_told_its_name(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UsageError, match=r"streamfold\[client\]"):
        streamfold.live("xai-tts", "ws://localhost")


OPENINGS: dict[str, tuple[str, Opening, Opening]] = {
    "a setup": (
        "gemini-live",
        Opening("wss://x", ({"setup": {"model": "m"}}, {"other": 1}, "text")),
        Opening("wss://x", ({"setup": {"model": "m", "sessionResumption": {"handle": "h 1"}}}, {"other": 1}, "text")),
    ),
    "a setup in the other spelling": (
        "gemini-live",
        Opening("wss://x", ({"setup": {"session_resumption": {"transparent": True, "handle": "old"}}},)),
        Opening("wss://x", ({"setup": {"session_resumption": {"transparent": True, "handle": "h 1"}}},)),
    ),
    "an address": (
        "xai-realtime",
        Opening("wss://x/v1?model=a%2Fb&conversation_id=old"),
        Opening("wss://x/v1?model=a%2Fb&conversation_id=h+1"),
    ),
}


@pytest.mark.parametrize(("provider", "first", "again"), OPENINGS.values(), ids=OPENINGS)
def test_how_a_session_is_taken_up(provider: str, first: Opening, again: Opening) -> None:
    assert TAKE_UP[provider](first, "h 1") == again


def test_the_recorded_sessions_are_there(shared: Path) -> None:
    assert len(CUT) >= 15
    assert all(isinstance(SESSIONS[name], Recording) for name in CUT)
