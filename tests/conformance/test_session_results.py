"""The results of calls are the frames that the clients of the recorded sessions sent."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import LiveSession, tool_results
from tests.conftest import SHARED
from tests.live import Recording, recordings

OUTPUTS = ("function_call_output", "mcp_approval_response")


def results_of(frame: dict[str, Any]) -> list[dict[str, Any]]:
    """The frame as what ``tool_results`` makes, if it holds results: an item's event, or the items of a request."""
    if frame.get("type") == "conversation.item.create" and frame["item"]["type"] in OUTPUTS:
        return [frame]
    items = frame.get("input") if frame.get("type") == "response.create" else None
    return [item for item in items if item.get("type") in OUTPUTS] if isinstance(items, list) else []


SENT: dict[str, tuple[Recording, list[dict[str, Any]]]] = {
    name: (recording, found)
    for name, recording in recordings(SHARED)
    if (found := [item for frame in recording.frames("out") for item in results_of(frame)])
}


@pytest.mark.parametrize("name", SENT)
def test_results_are_what_the_recorded_client_sent(name: str) -> None:
    recording, sent = SENT[name]
    session = LiveSession(recording.facts["provider"])
    given = {(item.get("item") or item)["call_id"]: (item.get("item") or item)["output"] for item in sent}
    for frame in recording.frames():
        session.feed(frame)
    made = [
        item
        for turn in session.turns
        if turn.tool_calls
        for item in tool_results(turn, {call.id: given[call.id] for call in turn.tool_calls})
    ]
    assert made == sent


def test_sessions_with_results_are_there(shared: Any) -> None:
    assert {name.partition("/")[0] for name in SENT} == {"openai-realtime", "xai-realtime", "responses-ws"}
    assert len(SENT) >= 4
