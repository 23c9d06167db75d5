"""What checkers know of sessions. Checked by mypy and pyright, never run; an ignored error must be one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

from streamfold import Event, LiveSession, Provider, Snapshot, TurnEvent, tool_results


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
