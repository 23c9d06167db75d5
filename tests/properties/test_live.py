"""Sessions under whatever may come: members in any order, words cut anywhere, messages spoilt, connections dropped."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import ErrorEvent, LiveSession, Raw, Snapshot, TranscriptBlock, TranscriptDelta, TurnEvent
from streamfold.blocks import Block
from streamfold.events import BlockEnd, Event
from streamfold.providers._answer import Answer
from streamfold.providers.registry import of_messages
from tests.live import broken
from tests.promises import broken_by_batches
from tests.properties.test_normalizers import _spoil, blind_values, made_up, more
from tests.reading import alike
from tests.wires_live import LIVE_WIRES, Frame

PROVIDERS: Final = tuple(LIVE_WIRES)
ALL: Final = {name: [frame for frames in wires.values() for frame in frames] for name, wires in LIVE_WIRES.items()}


def _names(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = set(value) if isinstance(value, dict) else set()
    return own.union(*map(_names, inner))


NAMES: Final = st.sampled_from(sorted(_names(list(ALL.values()))))
BLIND: Final = st.lists(st.dictionaries(NAMES, blind_values, max_size=6), max_size=6)


@st.composite
def spoilt(draw: st.DrawFn, provider: str) -> list[Frame]:
    """A session by the grammar, with messages of others put in, and members dropped, nulled, retyped, moved."""
    of_it = st.sampled_from(list(LIVE_WIRES[provider].values()))
    frames = deepcopy(draw(of_it)) + (deepcopy(draw(of_it)) if draw(st.booleans()) else [])
    for frame in draw(st.lists(st.sampled_from(ALL[provider]), max_size=3)):
        frames.insert(draw(st.integers(0, len(frames))), deepcopy(frame))
    for _ in range(draw(st.integers(0, 4))):
        _spoil(draw, frames)
    return frames


SESSIONS: Final = {provider: spoilt(provider) | BLIND for provider in PROVIDERS}
one_of = st.sampled_from(PROVIDERS).flatmap(lambda name: st.tuples(st.just(name), SESSIONS[name]))
Case = tuple[str, list[Frame]]


def as_bytes(frame: Any) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode()


def batches(session: LiveSession, frames: list[Any]) -> list[list[TurnEvent]]:
    return [session.feed(as_bytes(frame)) for frame in frames]


def told(provider: str, frames: list[Any], **settings: Any) -> list[TurnEvent]:
    return [event for batch in batches(LiveSession(provider, **settings), frames) for event in batch]


def plain(events: list[TurnEvent]) -> list[Any]:
    """Events and their turns by what they say, however the wire wrote its JSON."""
    return list(zip([turn for turn, _ in events], alike(event for _, event in events), strict=True))


@more
@given(
    case=one_of,
    code=st.sampled_from([None, 1000, 1001, 1006, 1011, 4000]),
    point=st.integers(0, 12),
    named=st.booleans(),
)
def test_the_promises_hold_whatever_comes_and_whenever_it_closes(
    case: Case, code: int | None, point: int, named: bool
) -> None:
    provider, frames = case
    session = LiveSession(provider if named else "auto")
    events: list[TurnEvent] = []
    for part in (frames[:point], frames[point:]):
        came = batches(session, part)
        if named:  # else a message may set free those that were held
            assert not broken_by_batches([[event for _, event in batch] for batch in came])
        events += [event for batch in came for event in batch]
        events += session.close(code)
    assert not broken(events)
    assert all(turn.outcome != "open" for turn in session.turns)
    assert_folds(session, events)


def assert_folds(session: LiveSession, events: list[TurnEvent]) -> None:
    """A snapshot holds the blocks that its turn's events closed, calls that were taken back as such."""
    for number, turn in enumerate(session.turns):
        ended = [event.block for owner, event in events if owner == number and isinstance(event, BlockEnd)]
        assert list(turn.blocks) == sorted(map(_as_it_came, ended, [turn] * len(ended)), key=lambda block: block.index)


def _as_it_came(block: Block, turn: Snapshot) -> Block:
    shown = turn.blocks[block.index]
    taken_back = shown.type == "tool_call" and shown.state in ("cancelled", "void")
    return shown if taken_back else block


@more
@given(case=one_of, limit=st.integers(0, 3), depth=st.sampled_from([1, 2, 3, 5, None]))
def test_the_promises_hold_at_tight_limits(case: Case, limit: int, depth: int | None) -> None:
    provider, frames = case
    session = LiveSession(provider, max_blocks=limit, max_depth=depth, max_frame_bytes=500)
    events = [event for batch in batches(session, frames) for event in batch]
    assert not broken(events + session.close(1006))


@more
@given(case=one_of)
def test_every_way_of_reading_says_the_same(case: Case) -> None:
    provider, frames = case
    events = told(provider, frames, call_id=made_up)
    for form in (deepcopy, lambda frame: as_bytes(frame).decode()):
        session = LiveSession(provider, call_id=made_up)
        assert plain([event for frame in frames for event in session.feed(form(frame))]) == plain(events)
    at_once = of_messages(provider, call_id=made_up)
    assert alike(at_once.feed(list(map(as_bytes, frames)))) == alike(event for _, event in events)
    stream = streamfold.iter_unified(list(map(as_bytes, frames)), provider, framing="messages", call_id=made_up)
    assert alike(stream)[: len(events)] == alike(event for _, event in events)
    assert told(provider, frames) == told(provider, frames)  # ids that are made up, too


@more
@given(case=one_of)
def test_raw_events_are_all_that_the_raw_setting_takes_away(case: Case) -> None:
    provider, frames = case
    others = [event for event in told(provider, frames) if not isinstance(event.event, Raw)]
    assert told(provider, frames, raw="none") == others


def _shuffled(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        names = draw(st.permutations(list(value)))
        return {name: _shuffled(draw, value[name]) for name in names}
    return [_shuffled(draw, inner) for inner in value] if isinstance(value, list) else value


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[str, list[Frame], list[Frame]]:
    provider, frames = draw(one_of)
    return provider, frames, _shuffled(draw, frames)


@more
@given(case=shuffled())
def test_the_order_of_members_in_a_message_says_nothing(case: tuple[str, list[Frame], list[Frame]]) -> None:
    """But for the order inside what is passed on as it came: arguments, metadata, raw payloads and their names."""
    provider, frames, others = case
    ids = {"call_id": made_up}  # others are made of the letters
    assert unnamed(told(provider, frames, **ids)) == unnamed(told(provider, others, **ids))


def unnamed(events: list[TurnEvent]) -> list[Any]:
    out: list[Any] = []
    counted: dict[int | None, Any] = {}
    for turn, event in plain(events):
        if event["type"] == "usage":  # the same totals written otherwise are told again
            if counted.get(turn) == event:
                continue
            counted[turn] = event
        if event["type"] == "raw":
            event["name"] = None
        if event["type"] in ("tool_call_delta", "tool_call_done", "block_end", "tool_call_start", "block_start"):
            event = json.loads(json.dumps(event, sort_keys=True))
        out.append((turn, event))
    return out


HEARD: Final = "conversation.item.input_audio_transcription"


def _grown(pieces: list[str]) -> list[str]:
    """What had been said behind each of the pieces."""
    return list(accumulate(pieces))


def _gemini(source: str) -> Callable[[list[str]], list[Frame]]:
    return lambda pieces: [
        *({"serverContent": {f"{source}Transcription": {"text": piece}}} for piece in pieces),
        {"serverContent": {"turnComplete": True}},
    ]


def _realtime(whole: bool, name: str = "response.output_audio_transcript") -> Callable[[list[str]], list[Frame]]:
    """What the model says, the whole of it told in the end, or only that it is over."""
    place = {"response_id": "r", "item_id": "i", "content_index": 0}
    return lambda pieces: [
        {"type": "response.created", "response": {"id": "r"}},
        *({"type": f"{name}.delta", **place, "delta": piece} for piece in pieces),
        {"type": f"{name}.done", **place, **({"transcript": "".join(pieces)} if whole else {})},
        {"type": "response.done", "response": {"id": "r", "status": "completed"}},
    ]


def _heard(pieces: list[str]) -> list[Frame]:
    """What the user says, in pieces."""
    deltas = [{"type": f"{HEARD}.delta", "item_id": "u", "delta": piece} for piece in pieces]
    return [*deltas, {"type": f"{HEARD}.completed", "item_id": "u", "transcript": "".join(pieces)}]


def _heard_anew(pieces: list[str]) -> list[Frame]:
    """The same of xAI, from the beginning each time, its end said more than once."""
    told = [{"item_id": "u", "transcript": text} for text in _grown(pieces)]
    whole = {"type": f"{HEARD}.completed", **told[-1]}
    updates = [{"type": f"{HEARD}.updated", **version} for version in told]
    return [*updates, {**whole, "status": "in_progress"}, {**whole, "status": "completed"}]


def _translated(pieces: list[str]) -> list[Frame]:
    deltas = [{"type": "session.output_transcript.delta", "delta": piece} for piece in pieces]
    return [*deltas, {"type": "session.closed", "reason": "close_requested"}]


def _chunks(pieces: list[str], *, grown: bool, ends_by: str) -> list[Frame]:
    """Speech to text: what is not final in between, chunks of their own or grown ones, the whole at the end."""
    partial: Frame = {"type": "transcript.partial", "is_final": True, "speech_final": False}
    frames: list[Frame] = []
    for so_far, piece in zip(_grown(pieces), pieces, strict=True):
        frames += [{**partial, "text": piece[:1], "is_final": False}, {**partial, "text": so_far if grown else piece}]
    whole = "".join(pieces)
    over = {**partial, "text": whole, "speech_final": True}
    return (
        [*frames, over, {"type": "transcript.done", "text": ""}]
        if ends_by == "utterance"
        else [*frames, {"type": "transcript.done", "text": whole}]
    )


WORDS: Final[dict[str, tuple[str, Callable[[list[str]], list[Frame]]]]] = {
    # provider, and the pieces of what is said as its messages; over Interactions and text to speech no words are told
    "gemini-live, of the model": ("gemini-live", _gemini("output")),
    "gemini-live, of the user": ("gemini-live", _gemini("input")),
    "openai-realtime, of the model": ("openai-realtime", _realtime(True)),
    "openai-realtime, without the whole": ("openai-realtime", _realtime(False)),
    "openai-realtime, by its older names": (
        "openai-realtime",
        _realtime(True, "response.audio_transcript"),
    ),
    "openai-realtime, of the user": ("openai-realtime", _heard),
    "openai-realtime, translated": ("openai-realtime", _translated),
    "xai-realtime, of the model": ("xai-realtime", _realtime(True)),
    "xai-realtime, of the user, anew each time": ("xai-realtime", _heard_anew),
    "xai-stt, in chunks": ("xai-stt", partial(_chunks, grown=False, ends_by="utterance")),
    "xai-stt, in chunks that grow": ("xai-stt", partial(_chunks, grown=True, ends_by="utterance")),
    "xai-stt, ended by nothing else": ("xai-stt", partial(_chunks, grown=False, ends_by="transcript")),
}


@pytest.mark.parametrize(("provider", "said"), WORDS.values(), ids=WORDS)
@given(text=st.text(min_size=1, max_size=40), cuts=st.lists(st.integers(0, 40), max_size=6))
def test_words_are_the_same_however_they_are_cut(provider: str, said: Any, text: str, cuts: list[int]) -> None:
    places = [0, *sorted({cut for cut in cuts if 0 < cut < len(text)}), len(text)]
    frames = said([text[a:b] for a, b in pairwise(places)])
    session = LiveSession(provider)
    events = [event for batch in batches(session, frames) for event in batch]
    assert not broken(events, closed=False)
    shown = ""
    for _, event in events:
        if isinstance(event, TranscriptDelta):
            shown = shown[: len(shown) - event.replaces] + event.text
    (block,) = session.snapshot().blocks
    assert isinstance(block, TranscriptBlock)
    assert (shown, block.text, block.complete) == (text, text, True)


@given(versions=st.lists(st.text(alphabet="ab \U0001f600", max_size=8), min_size=1, max_size=6))
def test_words_that_are_said_anew_each_time_end_as_the_last_version(versions: list[str]) -> None:
    """Cumulative transcripts: each version of the whole replaces the one before, told as what differs."""
    answer = Answer("any", {})
    block = answer.open_transcript("user")
    text = ""
    for version in versions:
        before = len(answer.out)
        answer.revise(block, version)
        for event in answer.out[before:]:
            assert isinstance(event, TranscriptDelta)
            text = text[: len(text) - event.replaces] + event.text
            assert event.text or not version
        assert text == version
    answer.close(block)
    end = answer.out[-1]
    assert isinstance(end, BlockEnd)
    assert isinstance(end.block, TranscriptBlock)
    assert end.block.text == versions[-1]


@more
@given(
    provider=st.sampled_from((*PROVIDERS, "auto")),
    messages=st.lists(blind_values | st.text(max_size=20) | st.binary(max_size=20), max_size=6),
)
def test_nothing_raises_whatever_a_message_is(provider: str, messages: list[Any]) -> None:
    session = LiveSession(provider)
    events: list[TurnEvent] = []
    for message in messages:
        given_as = message if isinstance(message, str | bytes | dict) else as_bytes(message)
        events += session.feed(given_as)
        session.sent(given_as)
    assert not broken(events + session.close())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_message_that_is_no_json_is_a_fault_of_the_protocol(provider: str) -> None:
    for frames in LIVE_WIRES[provider].values():
        for count in range(len(frames) + 1):
            session = LiveSession(provider)
            events = [event for batch in batches(session, frames[:count]) for event in batch]
            events += (fault := session.feed(b"{"))
            errors: list[Event] = [event for _, event in fault if isinstance(event, ErrorEvent)]
            over = provider == "gemini" and session.turns[-1:] and session.snapshot().outcome != "open"
            assert errors or over  # behind the end of an answer that is the only one of its connection nothing counts
            events += [event for batch in batches(session, frames[count:]) for event in batch] + session.close()
            assert not broken(events)
