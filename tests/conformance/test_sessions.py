"""Every recorded session of a surface that is known folds to its facts, whatever form its messages come in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import streamfold
from streamfold.providers.registry import PROVIDERS
from tests.conftest import SHARED
from tests.evidence import lines
from tests.live import DOUBTED, broken, differences, recordings, results_sent, tell
from tests.reading import alike

SESSIONS = dict(recordings(SHARED))
FORMS: dict[str, Callable[[Any], Any]] = {
    "text": json.dumps,
    "a binary frame": lambda frame: json.dumps(frame, ensure_ascii=False).encode(),
    "decoded": lambda frame: frame,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_folds_to_its_facts(name: str, form: Any, record_property: Any) -> None:
    recording = SESSIONS[name]
    told = tell(recording, form)
    found = [line for line in differences(told, recording) if not line.startswith(DOUBTED.get(name, ("-",)))]
    assert not found
    assert not broken(told.events, closed=False)
    record_property("ran", "sessions=1")
    record_property("ran", f"facts={len(recording.facts)}")


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_the_same_in_every_form_of_its_messages(name: str) -> None:
    first, *others = (tell(SESSIONS[name], form).events for form in FORMS.values())
    for other in others:
        assert [told.turn for told in other] == [told.turn for told in first]
        assert alike([told.event for told in other]) == alike([told.event for told in first])


@pytest.mark.parametrize("client", [True, False])
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_tells_whose_it_is(name: str, client: bool) -> None:
    """From its first message on, whether it is told what the client sent or not."""
    named, told = tell(SESSIONS[name], client=client), tell(SESSIONS[name], client=client, provider="auto")
    assert told.session.provider == SESSIONS[name].facts["provider"]
    assert told.events == named.events


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("name", SESSIONS)
def test_a_reading_of_messages_tells_whose_they_are(name: str, form: Any) -> None:
    recording = SESSIONS[name]
    messages = list(map(form, recording.frames()))
    named = streamfold.iter_unified(messages, recording.facts["provider"], framing="messages")
    told = streamfold.iter_unified(messages, framing="messages")
    assert lines(list(told)) == lines(list(named))
    assert told.snapshot() == named.snapshot()


@pytest.mark.parametrize("name", [name for name in SESSIONS if SESSIONS[name].facts["connections"] == 1])
def test_a_reading_goes_on_after_a_turn_and_says_what_the_session_says(name: str) -> None:
    recording = SESSIONS[name]
    provider: Any = recording.facts["provider"]
    told = tell(recording, client=False)
    with streamfold.iter_unified(list(map(json.dumps, recording.frames())), provider, framing="messages") as stream:
        events = list(stream)
    said = [told.event for told in told.events]
    assert lines(events[: len(said)]) == lines(said)
    assert all(event.type in ("block_end", "error", "done", "media_delta") for event in events[len(said) :])


@pytest.mark.parametrize("name", SESSIONS)
def test_a_close_leaves_no_turn_open_and_cuts_those_that_were(name: str) -> None:
    """Dropped at every message: the turns that were open are truncated, all others stand as they stood."""
    recording = SESSIONS[name]
    provider = recording.facts["provider"]
    for count in range(len(recording.frames()) + 1):
        session = streamfold.LiveSession(provider)
        events = [told for frame in recording.frames()[:count] for told in session.feed(frame)]
        before = [turn.outcome for turn in session.turns]
        events += (last := session.close(1006))
        assert not broken(events)
        after = [turn.outcome for turn in session.turns]
        assert "open" not in after
        assert [b for b, a in zip(before, after, strict=True) if b != "open" and a != b] == []
        errors = [told.event for told in last if isinstance(told.event, streamfold.ErrorEvent)]
        assert all(error.retryable and error.status == 1006 for error in errors)


ANSWERING = [name for name, recording in SESSIONS.items() if any(map(results_sent, recording.frames("out")))]


@pytest.mark.parametrize("name", ANSWERING)
def test_results_go_back_as_the_recorded_client_sent_them(name: str) -> None:
    """Made when the recorded client sent them, of what had come by then, and made again when all is over."""
    recording = SESSIONS[name]
    session = streamfold.LiveSession(recording.facts["provider"])
    sent: list[tuple[dict[str, Any], list[Any]]] = []
    for line in recording.lines:
        if line["dir"] == "in":
            session.feed(line["frame"])
        elif line["dir"] == "out":
            if (results := results_sent(line["frame"])) is not None:
                assert streamfold.tool_results(_caller(session, results[0]), results[0]) == results[1]
                sent.append(results)
            session.sent(line["frame"])
    for ids, items in sent:
        assert streamfold.tool_results(_caller(session, ids), ids) == items


def _caller(session: streamfold.LiveSession, ids: dict[str, Any]) -> streamfold.Snapshot:
    """The turn that made these calls."""
    turns = [
        turn for turn in session.turns if ids.keys() & {call.id for call in turn.blocks if call.type == "tool_call"}
    ]
    (turn,) = turns
    return turn


def test_the_sessions_are_there(shared: Path) -> None:
    documents = [json.loads(path.read_text()) for path in (shared / "expected").glob("*.json")]
    known = {
        f"{document['folder']}/{file}"
        for document in documents
        for file, facts in document["captures"].items()
        if file.endswith(".jsonl") and facts["provider"] in PROVIDERS
    }
    assert SESSIONS.keys() == known
    folders = {"gemini-live", "gemini-live-interactions", "lyria-realtime", "openai-realtime", "xai-realtime"}
    assert {name.partition("/")[0] for name in known} >= folders | {"responses-ws", "xai-stt", "xai-tts"}
