"""Normalisers, decoder and fold under whatever may come: blind payloads, spoilt streams, bytes cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import pairwise
from typing import Any, Final

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streamfold import (
    Block,
    ErrorEvent,
    Event,
    MediaBlock,
    Raw,
    ReasoningBlock,
    RefusalBlock,
    Snapshot,
    StreamAccumulator,
    StreamDecoder,
    TextBlock,
    ToolCallBlock,
    TranscriptBlock,
    UsageError,
)
from streamfold.providers.registry import normalizer
from tests.conftest import SHARED
from tests.evidence import captures
from tests.naive_fold import differences
from tests.promises import broken, broken_by_batches
from tests.reading import alike
from tests.wires import WIRES, Payload, Stream

DIALECTS: Final = tuple(WIRES)
PROVIDERS: Final = (*DIALECTS, "gemini", "auto")
# An example costs a few milliseconds. Why it fails is seen in a row; explaining costs more than finding.
more = settings(max_examples=3 * settings().max_examples, phases=set(Phase) - {Phase.explain})

# -- payloads ---------------------------------------------------------------------------------------------------------

TEXTS: Final = (
    "",
    "a",
    "null",
    "0",
    " ",
    "\n",
    "é😀",
    "\ud83d",
    "\ude00",
    "a\u2028",
    "=",
    "QQ==",
    '{"a":1}',
    "{}",
    "[",
    "\0",
)
NUMBERS: Final = (0, 1, 2, -1, 7, 2**63, 10**30, 0.0, 1.0, 1.5, -0.0, 1e308, float("nan"), float("inf"))
SHAPES: Final[tuple[Any, ...]] = ([], {}, [{}], [None, 1, "a"], {"type": "text"}, {"text": "t"}, {"id": {}}, [[["a"]]])
junk = st.sampled_from((None, True, False, *NUMBERS, *TEXTS, *SHAPES))


def _inside(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _inside(inner)


ALL: Final[dict[str, Stream]] = {
    name: [p for stream in wires.values() for p in stream] for name, wires in WIRES.items()
}
EVERYTHING: Final = [value for payloads in ALL.values() for payload in payloads for value in _inside(payload)]
NAMES: Final = sorted({name for value in EVERYTHING if isinstance(value, dict) for name in value})
WORDS: Final = sorted({value for value in EVERYTHING if isinstance(value, str)})
names, words = st.sampled_from(NAMES), st.sampled_from(WORDS)

blind_values = st.recursive(
    junk | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)
blind = st.lists(st.dictionaries(names, blind_values, max_size=6), max_size=4)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a payload where something stands: what holds it, and its name or number there."""
    held: Iterable[Any] = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [place for name, inner in held for place in ((value, name), *_places(inner))]


def _spoil(draw: st.DrawFn, stream: Stream) -> None:
    at = draw(st.integers(0, len(stream) - 1))
    match draw(st.sampled_from(("member", "member", "member", "drop", "double", "move"))):
        case "member":
            places = _places(stream[at])
            if places:
                holder, name = draw(st.sampled_from(places))
                what = draw(st.sampled_from(("drop", "null", "junk", "word")))
                if what == "drop":
                    del holder[name]
                else:
                    holder[name] = None if what == "null" else deepcopy(draw(junk if what == "junk" else words))
        case "drop":
            if len(stream) > 1:
                del stream[at]
        case "double":
            stream.insert(draw(st.integers(at, len(stream))), deepcopy(stream[at]))
        case _:
            stream.insert(draw(st.integers(0, len(stream) - 1)), stream.pop(at))


@st.composite
def spoilt(draw: st.DrawFn, dialect: str) -> Stream:
    """A stream by the grammar, with payloads of others put in, and members dropped, nulled, retyped, moved."""
    of_it = st.sampled_from(list(WIRES[dialect].values()))
    stream = deepcopy(draw(of_it)) + (deepcopy(draw(of_it)) if draw(st.booleans()) else [])
    for payload in draw(st.lists(st.sampled_from(ALL[dialect]), max_size=3)):
        stream.insert(draw(st.integers(0, len(stream))), deepcopy(payload))
    for _ in range(draw(st.integers(0, 4))):
        _spoil(draw, stream)
    if draw(st.booleans()):  # else nearly all that was moved would be a hole in the numbers
        for payload in stream:
            payload.pop("sequence_number", None)
    return stream


STREAMS: Final = {dialect: spoilt(dialect) | blind for dialect in DIALECTS}
STREAMS["gemini"] = STREAMS["gemini-generate-content"] | STREAMS["gemini-interactions"]
STREAMS["auto"] = st.sampled_from(DIALECTS).flatmap(STREAMS.__getitem__)
dialect_and_stream = st.sampled_from(DIALECTS).flatmap(lambda name: st.tuples(st.just(name), STREAMS[name]))
provider_and_stream = st.sampled_from(PROVIDERS).flatmap(lambda name: st.tuples(st.just(name), STREAMS[name]))
Case = tuple[str, Stream]


def as_bytes(payload: Payload) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()


# -- reading ----------------------------------------------------------------------------------------------------------


def made_up(index: int) -> str:
    return f"made_{index}"


def batches_of(provider: str, payloads: Iterable[Any], *, hot: bool = True, **settings: Any) -> list[list[Event]]:
    """The events of each payload by itself, and of the end."""
    made: Any = normalizer(provider, **settings)
    made.hot = hot
    return [*(made.feed([payload]) for payload in payloads), made.close()]


def events_of(provider: str, payloads: Iterable[Any], **settings: Any) -> list[Event]:
    return [event for batch in batches_of(provider, payloads, **settings) for event in batch]


def at_once(provider: str, payloads: list[Any], *, hot: bool = True, **settings: Any) -> list[Event]:
    made: Any = normalizer(provider, **settings)
    made.hot = hot
    return [*made.feed(payloads), *made.close()]


def folded(events: Iterable[Event]) -> Snapshot:
    accumulator = StreamAccumulator()
    for event in events:
        accumulator.push(event)
    return accumulator.snapshot()


# -- the promises -----------------------------------------------------------------------------------------------------


@more
@given(case=provider_and_stream)
def test_the_promises_hold_whatever_comes(case: Case) -> None:
    provider, stream = case
    batches = batches_of(provider, map(as_bytes, stream))
    assert not broken(event for batch in batches for event in batch)
    assert not broken_by_batches(batches)


@more
@given(case=provider_and_stream, limit=st.integers(0, 3), depth=st.sampled_from([1, 2, 3, 5, None]))
def test_the_promises_hold_at_tight_limits(case: Case, limit: int, depth: int | None) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    events = at_once(provider, payloads, max_blocks=limit, max_depth=depth)
    assert not broken(events)
    assert sum(event.type in ("block_start", "tool_call_start") for event in events) <= limit
    assert events == events_of(provider, payloads, max_blocks=limit, max_depth=depth)


@more
@given(case=provider_and_stream)
def test_what_came_goes_back_or_is_left_out(case: Case) -> None:
    """Whatever the provider sent, the answer goes back as JSON, or the caller is told why it cannot."""
    provider, stream = case
    answer = folded(events_of(provider, map(as_bytes, stream)))
    for choice in range(min(answer.choices, 3)):
        try:
            items = answer.echo(choice)
        except UsageError:
            continue
        assert json.dumps(items)


@more
@given(case=dialect_and_stream)
def test_every_way_of_feeding_says_the_same(case: Case) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    events = alike(events_of(provider, payloads, call_id=made_up))
    assert alike(at_once(provider, payloads, call_id=made_up)) == events
    assert alike(events_of(provider, payloads, hot=False, call_id=made_up)) == events
    assert alike(at_once(provider, payloads, hot=False, call_id=made_up)) == events
    assert alike(events_of(provider, [payload.decode() for payload in payloads], call_id=made_up)) == events
    assert alike(events_of(provider, deepcopy(stream), call_id=made_up)) == events
    spaced = [json.dumps(payload, indent=1).encode() for payload in stream]
    assert alike(events_of(provider, spaced, call_id=made_up)) == events


@more
@given(case=dialect_and_stream)
def test_a_batch_says_which_events_are_whose(case: Case) -> None:
    """As many of each payload as it causes alone, whichever way it went."""
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    made: Any = normalizer(provider, call_id=made_up)
    events = made.feed(payloads)
    alone = batches_of(provider, payloads, hot=False, call_id=made_up)[:-1]
    assert events == [event for batch in alone for event in batch]
    starts = [sum(map(len, alone[:number])) for number in range(len(alone))]
    other = [(start, len(batch)) for start, batch in zip(starts, alone, strict=True) if len(batch) != 1]
    assert list(made.answer.spans) == other


@more
@given(case=provider_and_stream)
def test_made_up_ids_do_not_depend_on_how_payloads_come(case: Case) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    assert events_of(provider, payloads) == at_once(provider, payloads)


@more
@given(case=provider_and_stream)
def test_raw_events_are_all_that_the_raw_setting_takes_away(case: Case) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    everything = events_of(provider, payloads)
    others = [event for event in everything if not isinstance(event, Raw)]
    assert events_of(provider, payloads, raw="none") == others
    some = events_of(provider, payloads, raw="unknown")
    assert [event for event in some if not isinstance(event, Raw)] == others
    rest = iter(everything)
    assert all(any(event == other for other in rest) for event in some)


@more
@given(case=provider_and_stream, how=st.sampled_from(["eof", "cut", "cancel", "fail"]), point=st.integers(0, 30))
def test_nothing_follows_the_end(case: Case, how: Any, point: int) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream]
    made = normalizer(provider)
    events = made.feed(payloads[:point])
    events += made.fail(ErrorEvent("limit", "too large")) if how == "fail" else made.close(how)
    assert not broken(events, ended=how != "cancel")
    assert [*made.feed(payloads), *(event for payload in payloads for event in made.feed([payload]))] == []
    assert [*made.close("eof"), *made.close("cut"), *made.fail(ErrorEvent("limit", "again"))] == []


# -- the fold ---------------------------------------------------------------------------------------------------------


@more
@given(case=provider_and_stream, looked=st.sets(st.integers(0, 60)))
def test_snapshots_are_the_naive_fold_and_never_change(case: Case, looked: set[int]) -> None:
    provider, stream = case
    events = events_of(provider, map(as_bytes, stream))
    accumulator = StreamAccumulator()
    snapshots: list[Snapshot] = []
    for number, event in enumerate(events):
        accumulator.push(event)
        snapshots.append(accumulator.snapshot())
        if number in looked:
            assert snapshots[-1].blocks is not None
    for number, snapshot in enumerate(snapshots):
        assert not differences(snapshot, events[: number + 1])
    other = StreamAccumulator()
    other.extend(events)
    assert other.snapshot() == accumulator.snapshot()


def grows(before: Block, after: Block) -> bool:
    """Whether all that was said of a block is still there."""
    match before, after:
        case ((TextBlock() | RefusalBlock() | TranscriptBlock() | ReasoningBlock()), _):
            return type(before) is type(after) and getattr(after, "text", "").startswith(before.text)
        case ToolCallBlock(), ToolCallBlock():
            return after.arguments.startswith(before.arguments) or not before.arguments.strip()
        case MediaBlock(), MediaBlock():
            return after.data.startswith(before.data)
    return type(before) is type(after)


def voided(block: Block) -> Block | None:
    """The block as the end of a refused turn leaves it."""
    return msgspec.structs.replace(block, state="void") if isinstance(block, ToolCallBlock) else None


FAULTS: Final = {
    "no JSON": lambda made: made.feed([b'{"a":']),
    "too deep": lambda made: made.feed([b"[" * 300 + b"]" * 300]),
    "a cut": lambda made: made.close("cut"),
    "a fault below": lambda made: made.fail(ErrorEvent("limit", "too large")),
    "the end of input": lambda made: made.close("eof"),
}


@more
@given(case=provider_and_stream, point=st.integers(0, 30), fault=st.sampled_from(list(FAULTS)))
def test_what_was_folded_before_a_fault_stays(case: Case, point: int, fault: str) -> None:
    provider, stream = case
    payloads = [as_bytes(payload) for payload in stream[:point]]
    made = normalizer(provider)
    events = made.feed(payloads)
    before = folded(events)
    end = FAULTS[fault](made)
    after = folded([*events, *end])
    assert (before.outcome == "open") == bool(end)
    assert after.outcome != "open"
    assert set(before.warnings) <= set(after.warnings)
    kept = {block.index: block for block in after.blocks}
    contradicted = _contradicted(events)
    for block in before.blocks:
        assert block.index in kept
        if block.complete:
            assert kept[block.index] in (block, voided(block))
        assert block.index in contradicted or grows(block, kept[block.index])


def _contradicted(events: list[Event]) -> set[int]:
    """Blocks whose text Responses took back by an event of its own: only their end tells it."""
    responses = any(getattr(event, "surface", "") == "openai-responses" for event in events)
    return {event.index for event in events if responses and event.type in ("block_start", "tool_call_start")}


# -- bytes ------------------------------------------------------------------------------------------------------------

odd_lines = st.sampled_from(
    [
        b"",
        b"",
        b": hi",
        b"event: error",
        b"event: message_delta",
        b"id: 7",
        b"id:",
        b"retry: 10",
        b"data",
        b"data: [DONE]",
        b"data: : keep-alive",
        b'{"error":{"message":"m","code":429}}',
        b"<html>",
        b'data: {"a":',
        b"data: 5",
        b'data: {"a":"\xff\x01"}',
        b"\xef\xbb\xbf",
        b"what",
        b"\x1f\x8b\x08",
        b"data: [[[[[[[[]]]]]]]]",
        b'data: {"type":"error","error":{"type":"overloaded_error","message":"m"}}',
    ]
)
ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r"])


@st.composite
def event_streams(draw: st.DrawFn) -> bytes:
    stream, end = draw(STREAMS["auto"]), draw(ends)
    lines: list[bytes] = []
    for payload in stream:
        name = payload.get("type")
        if draw(st.booleans()) and isinstance(name, str) and name.isascii() and name.isprintable():
            lines.append(b"event: " + name.encode() + end)
        lines.append(b"data: " + as_bytes(payload) + end + end)
    for odd in draw(st.lists(odd_lines, max_size=2)):
        lines.insert(draw(st.integers(0, len(lines))), odd + draw(ends))
    if draw(st.booleans()):
        lines.append(b"data: [DONE]" + end + end)
    body = b"".join(lines)
    return body[: draw(st.integers(0, len(body)))] if draw(st.integers(0, 3)) == 0 else body


@st.composite
def arrays(draw: st.DrawFn) -> bytes:
    items = [as_bytes(payload) for payload in draw(STREAMS["auto"])]
    head, tail = draw(st.sampled_from([(b"[", b"]"), (b"", b""), (b" [", b"]x"), (b"[", b"")]))
    return head + draw(st.sampled_from([b",", b"\n", b",\r\n"])).join(items) + tail


bodies = (
    event_streams()
    | event_streams()
    | arrays()
    | st.lists(st.builds(bytes.__add__, odd_lines, ends), max_size=8).map(b"".join)
    | st.binary(max_size=40)
)
options_of_a_decoder = st.fixed_dictionaries(
    {},
    optional={
        "framing": st.sampled_from(["sse", "json_array"]),
        "max_frame_bytes": st.sampled_from([50, 200]),
        "max_residue_bytes": st.just(10),
        "max_depth": st.just(3),
        "on_eof": st.just("discard"),
        "raw": st.sampled_from(["unknown", "none"]),
    },
)


def cut(body: bytes, points: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(min(point, len(body)) for point in points), len(body)]
    return [body[a:b] for a, b in pairwise(edges)]


def decoded(provider: str, chunks: Iterable[bytes], how: Any, **settings: Any) -> tuple[list[Event], Snapshot]:
    decoder = StreamDecoder(provider, **settings)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    events += decoder.close(how)
    return events, decoder.snapshot()


@more
@given(
    provider=st.sampled_from(PROVIDERS),
    body=bodies,
    how=st.sampled_from(["eof", "eof", "cut", "cancel"]),
    options=options_of_a_decoder,
    points=st.lists(st.integers(0, 400), max_size=8),
)
def test_bytes_cut_anywhere(provider: str, body: bytes, how: Any, options: dict[str, Any], points: list[int]) -> None:
    events, answer = decoded(provider, [body], how, **options)
    assert not broken(events, ended=how != "cancel")
    if how != "cancel":
        assert not differences(answer, events)
    for chunks in (cut(body, points), cut(body, range(1, len(body))), cut(body, range(0, len(body), 7))):
        assert decoded(provider, chunks, how, **options) == (events, answer)
        traced = StreamDecoder(provider, **options)
        pairs = [pair for chunk in chunks for pair in traced.trace(chunk)] + traced.trace_close(how)
        assert [event for _, caused in pairs for event in caused] == events


# -- captured streams -------------------------------------------------------------------------------------------------

CAPTURES: Final = {
    name: (body, facts["provider"])
    for name, body, facts in captures(SHARED)
    if facts["provider"] in PROVIDERS and len(body) < 300_000
}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_captured_stream(name: str) -> None:
    body, provider = CAPTURES[name]
    decoder = StreamDecoder(provider)
    payloads = [frame.data for frame, _ in decoder.trace(body) if frame is not None]
    data = [payload.encode() for payload in payloads]
    batches = batches_of(provider, data)
    events = [event for batch in batches for event in batch]
    assert not broken(events)
    assert not broken_by_batches(batches)
    assert at_once(provider, data) == events
    assert events_of(provider, data, hot=False) == events
    assert at_once(provider, data, hot=False) == events
    assert not differences(folded(events), events)
    assert alike(events_of(provider, payloads)) == alike(events)
    objects = [_object_or_text(payload) for payload in payloads]
    assert alike(events_of(provider, objects, call_id=made_up)) == alike(events_of(provider, data, call_id=made_up))


def _object_or_text(payload: str) -> Any:
    try:
        value = msgspec.json.decode(payload)
    except msgspec.DecodeError:
        return payload
    return value if isinstance(value, dict) else payload
