"""Bedrock, Cohere and Ollama under whatever may come: spoilt streams, blind payloads, binary frames cut anywhere."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamfold import ErrorEvent, Event, Raw, StreamDecoder
from streamfold.providers.registry import normalizer
from tests.naive_fold import differences
from tests.promises import broken, broken_by_batches
from tests.properties.test_normalizers import (
    _spoil,
    as_bytes,
    at_once,
    batches_of,
    blind_values,
    cut,
    events_of,
    folded,
    made_up,
    more,
)
from tests.reading import alike
from tests.wires import Stream
from tests.wires_more import MORE_WIRES, converse_bytes, invoke_bytes

PROVIDERS: Final = tuple(MORE_WIRES)
ALL: Final = {name: [p for stream in wires.values() for p in stream] for name, wires in MORE_WIRES.items()}


def _names(value: Any) -> set[str]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = set(value) if isinstance(value, dict) else set()
    return own.union(*map(_names, inner))


NAMES: Final = st.sampled_from(sorted(_names(list(ALL.values()))))
BLIND: Final = st.lists(st.dictionaries(NAMES, blind_values, max_size=6), max_size=4)


@st.composite
def spoilt(draw: st.DrawFn, provider: str) -> Stream:
    """A stream by the grammar, with payloads of others put in, and members dropped, nulled, retyped, moved."""
    stream = deepcopy(draw(st.sampled_from(list(MORE_WIRES[provider].values()))))
    for payload in draw(st.lists(st.sampled_from(ALL[provider]), max_size=3)):
        stream.insert(draw(st.integers(0, len(stream))), deepcopy(payload))
    for _ in range(draw(st.integers(0, 4))):
        _spoil(draw, stream)
    return stream


STREAMS: Final = {provider: spoilt(provider) | BLIND for provider in PROVIDERS}
one_of = st.sampled_from(PROVIDERS).flatmap(lambda name: st.tuples(st.just(name), STREAMS[name]))
Case = tuple[str, Stream]


@more
@given(case=one_of)
def test_the_promises_hold_whatever_comes(case: Case) -> None:
    provider, stream = case
    batches = batches_of(provider, map(as_bytes, stream))
    events = [event for batch in batches for event in batch]
    assert not broken(events)
    assert not broken_by_batches(batches)
    assert not differences(folded(events), events)


@more
@given(case=one_of, limit=st.integers(0, 3), depth=st.sampled_from([1, 2, 3, 5, None]))
def test_the_promises_hold_at_tight_limits(case: Case, limit: int, depth: int | None) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    events = at_once(provider, payloads, max_blocks=limit, max_depth=depth)
    assert not broken(events)
    assert events == events_of(provider, payloads, max_blocks=limit, max_depth=depth)


@more
@given(case=one_of)
def test_every_way_of_feeding_says_the_same(case: Case) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    events = alike(events_of(provider, payloads, call_id=made_up))
    assert alike(at_once(provider, payloads, call_id=made_up)) == events
    assert alike(events_of(provider, [payload.decode() for payload in payloads], call_id=made_up)) == events
    assert alike(events_of(provider, deepcopy(stream), call_id=made_up)) == events
    assert events_of(provider, payloads) == at_once(provider, payloads)  # ids that are made up, too


@more
@given(case=one_of)
def test_raw_events_are_all_that_the_raw_setting_takes_away(case: Case) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    others = [event for event in events_of(provider, payloads) if not isinstance(event, Raw)]
    assert events_of(provider, payloads, raw="none") == others


@more
@given(case=one_of, how=st.sampled_from(["eof", "cut", "cancel", "fail"]), point=st.integers(0, 12))
def test_nothing_follows_the_end(case: Case, how: Any, point: int) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    made = normalizer(provider)
    events = made.feed(payloads[:point])
    events += made.fail(ErrorEvent("limit", "too large")) if how == "fail" else made.close(how)
    assert not broken(events, ended=how != "cancel")
    assert made.feed(payloads) == made.close() == []


@more
@given(stream=STREAMS["bedrock-text"], name=st.sampled_from(["bedrock-invoke", "bedrock-anthropic", "auto"]))
def test_a_payload_inside_another_is_the_payload(stream: Stream, name: str) -> None:
    bare = [as_bytes(payload) for payload in stream]
    inside = parts_of(stream)
    assert alike(events_of(name, inside, call_id=made_up)) == alike(events_of(name, bare, call_id=made_up))


def parts_of(stream: Stream) -> list[bytes]:
    decoder = StreamDecoder("bedrock-invoke")
    return [frame.data.encode() for frame, _ in decoder.trace(invoke_bytes(stream)) if frame is not None]


@st.composite
def binaries(draw: st.DrawFn) -> bytes:
    """Bodies in AWS's framing, now and then cut off or spoilt."""
    if draw(st.booleans()):
        stream = draw(spoilt("bedrock-converse"))
        body = converse_bytes({k: v for k, v in payload.items() if k.isascii()} for payload in stream)
    else:
        body = invoke_bytes(draw(st.sampled_from(list(ALL)).flatmap(spoilt)))
    spoil = draw(st.sampled_from(["", "", "cut", "flip"]))
    at = draw(st.integers(0, max(0, len(body) - 1)))
    if spoil == "cut":
        return body[:at]
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :] if spoil and body else body


def decoded(name: str, chunks: list[bytes], how: Any, **settings: Any) -> Any:
    decoder = StreamDecoder(name, **settings)
    events: list[Event] = [event for chunk in chunks for event in decoder.feed(chunk)]
    events += decoder.close(how)
    return events, decoder.snapshot()


@more
@given(
    name=st.sampled_from(["bedrock-converse", "bedrock-invoke", "auto"]),
    body=binaries(),
    how=st.sampled_from(["eof", "eof", "cut", "cancel"]),
    settings=st.fixed_dictionaries(
        {}, optional={"max_frame_bytes": st.sampled_from([100, 300]), "framing": st.just("eventstream")}
    ),
    points=st.lists(st.integers(0, 900), max_size=8),
)
def test_binary_frames_cut_anywhere(
    name: str, body: bytes, how: Any, settings: dict[str, Any], points: list[int]
) -> None:
    events, answer = decoded(name, [body], how, **settings)
    assert not broken(events, ended=how != "cancel")
    for chunks in (cut(body, points), cut(body, range(1, len(body)))):
        assert decoded(name, chunks, how, **settings) == (events, answer)
        traced = StreamDecoder(name, **settings)
        pairs = [pair for chunk in chunks for pair in traced.trace(chunk)] + traced.trace_close(how)
        assert [event for _, caused in pairs for event in caused] == events


JSON_LINES: Final = st.sampled_from([b'{"a":', b"", b"5", b"[1]", b'{"error":"e"}', b"\xff", b'{"done":1}'])


@more
@given(
    stream=STREAMS["ollama"],
    odd=st.lists(st.tuples(st.integers(0, 9), JSON_LINES), max_size=2),
    end=st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    last=st.booleans(),
    points=st.lists(st.integers(0, 900), max_size=8),
    settings=st.fixed_dictionaries({}, optional={"max_frame_bytes": st.just(60), "max_depth": st.just(2)}),
)
def test_lines_cut_anywhere(
    stream: Stream,
    odd: list[tuple[int, bytes]],
    end: bytes,
    last: bool,
    points: list[int],
    settings: dict[str, Any],
) -> None:
    lines = [as_bytes(payload) for payload in stream]
    for at, line in odd:
        lines.insert(at, line)
    body = end.join(lines) + (end if last else b"")
    events, answer = decoded("ollama", [body], "eof", framing="jsonl", **settings)
    assert not broken(events)
    for chunks in (cut(body, points), cut(body, range(1, len(body)))):
        assert decoded("ollama", chunks, "eof", framing="jsonl", **settings) == (events, answer)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_whole_messages_say_what_their_payloads_say(provider: str) -> None:
    for stream in MORE_WIRES[provider].values():
        wanted = events_of(provider, deepcopy(stream))
        for messages in (deepcopy(stream), [as_bytes(p) for p in stream], [as_bytes(p).decode() for p in stream]):
            events, _ = decoded(provider, messages, "eof", framing="messages")
            assert alike(events) == alike(wanted)
            by_shape, _ = decoded("auto", messages, "eof", framing="messages")
            assert alike(by_shape) == alike(wanted)
