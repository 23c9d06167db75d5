"""Realtime and lanes of Responses: however turns, items and versions of words come between each other."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold import LiveSession, TranscriptBlock, TranscriptDelta
from tests.live import broken
from tests.properties.test_normalizers import _places, more
from tests.wires_realtime import REALTIME_WIRES, Frame

PIECES: Final = st.lists(st.text(alphabet="ab \U0001f600", min_size=1, max_size=3), min_size=1, max_size=4)
TEXTS: Final = st.lists(PIECES, min_size=1, max_size=4)


@st.composite
def merged(draw: st.DrawFn, streams: list[list[Frame]]) -> list[Frame]:
    """The frames of all streams, each in its own order."""
    left = [list(stream) for stream in streams]
    frames: list[Frame] = []
    while any(left):
        stream = draw(st.sampled_from([stream for stream in left if stream]))
        frames.append(stream.pop(0))
    return frames


def in_lane(name: str, pieces: list[str]) -> list[Frame]:
    """One response of Responses."""
    response = {"id": f"resp_{name}"}
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    frames: list[Frame] = [{"type": "response.created", "response": response}]
    frames += [{"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces]
    frames.append({"type": "response.completed", "response": response})
    numbered = [{**frame, "sequence_number": number} for number, frame in enumerate(frames)]
    return numbered if name == "0" else [{**frame, "stream_id": name} for frame in numbered]


def fed(provider: str, frames: list[Frame]) -> tuple[LiveSession, list[Any]]:
    session = LiveSession(provider)
    events = [told for frame in frames for told in session.feed(json.dumps(frame))]
    assert not broken(events, closed=False)
    return session, events


@more
@given(data=st.data(), texts=TEXTS)
def test_lanes_say_nothing_of_each_other(data: st.DataObject, texts: list[list[str]]) -> None:
    streams = [in_lane(str(number), pieces) for number, pieces in enumerate(texts)]
    session, _ = fed("openai-responses", data.draw(merged(streams)))
    alone = [fed("openai-responses", stream)[0].snapshot() for stream in streams]
    assert sorted(session.turns, key=lambda turn: turn.id or "") == alone


def response_of(name: str, texts: list[list[str]]) -> tuple[list[Frame], list[list[Frame]], Frame]:
    """One response of Realtime: how it begins, its items, how it ends."""
    created = {"type": "response.created", "response": {"id": name}}
    items: list[list[Frame]] = []
    for number, pieces in enumerate(texts):
        place = {"response_id": name, "item_id": f"item_{number}", "content_index": 0, "output_index": 0}
        deltas = [{"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces]
        items.append([*deltas, {"type": "response.output_text.done", **place, "text": "".join(pieces)}])
    return [created], items, {"type": "response.done", "response": {"id": name, "status": "completed"}}


@more
@given(data=st.data(), responses=st.lists(TEXTS, min_size=1, max_size=3))
def test_items_and_responses_may_come_between_each_other(data: st.DataObject, responses: list[list[list[str]]]) -> None:
    streams: list[list[Frame]] = []
    for number, texts in enumerate(responses):
        begin, items, end = response_of(f"resp_{number}", texts)
        streams.append([*begin, *data.draw(merged(items)), end])
    session, _ = fed("openai-realtime", data.draw(merged(streams)))
    found = {turn.id: sorted(block.text for block in turn.blocks if block.type == "text") for turn in session.turns}
    wanted = {f"resp_{number}": sorted(map("".join, texts)) for number, texts in enumerate(responses)}
    assert found == wanted


@more
@given(
    versions=st.lists(st.text(alphabet="ab \U0001f600", min_size=1, max_size=8), min_size=1, max_size=6),
    over=st.integers(0, 6),
)
def test_words_that_xai_says_anew_end_as_the_last_version(versions: list[str], over: int) -> None:
    """However the versions differ, and wherever the response begins."""
    kind = "conversation.item.input_audio_transcription"
    *others, last = [{"item_id": "u", "content_index": 0, "transcript": version} for version in versions]
    frames: list[Frame] = [{"type": f"{kind}.updated", **other} for other in others]
    frames.append({"type": f"{kind}.completed", **last, "status": "completed"})
    frames.insert(min(over, len(frames)), {"type": "response.created", "response": {"id": "r"}})
    session, events = fed("xai-realtime", frames)
    text = ""
    for _, event in events:
        if isinstance(event, TranscriptDelta):
            text = text[: len(text) - event.replaces] + event.text
    assert text == versions[-1]
    block = session.turns[-1].blocks[0]
    assert isinstance(block, TranscriptBlock)
    assert (block.text, block.complete) == (versions[-1], True)


ANYTHING: Final = (None, "", "\ud83d", -1, True, [], {}, [{"type": []}], {"type": {}})


@pytest.mark.parametrize("provider", REALTIME_WIRES)
def test_any_member_may_be_anything(provider: str) -> None:
    for frames in REALTIME_WIRES[provider].values():
        for number, frame in enumerate(frames):
            for place in range(len(_places(frame))):
                for value in ANYTHING:
                    spoilt = deepcopy(frame)
                    holder, name = _places(spoilt)[place]
                    holder[name] = value
                    session, events = fed(provider, [*frames[:number], spoilt, *frames[number + 1 :]])
                    assert not broken(events + session.close(1006))
