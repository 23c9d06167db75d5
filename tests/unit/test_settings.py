"""Settings: the same keywords everywhere, with the design's defaults; a wrong one is told when it is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import streamfold
from streamfold import (
    ErrorEvent,
    Event,
    Raw,
    Settings,
    StreamDecoder,
    ToolCallBlock,
    ToolCallStart,
    UsageError,
    encode_event,
    limits,
)
from tests.samples import ANSWERS, ANTHROPIC, CHAT, RESPONSES, array, chat, chat_call, chat_text, cut, sse
from tests.ways import WAYS, Way, by_decoder

# -- names and defaults -----------------------------------------------------------------------------------------------

LIMITS = {  # in their units
    "MAX_FRAME_BYTES": 8 * 1024 * 1024,
    "MAX_RESIDUE_BYTES": 64 * 1024,
    "MAX_DEPTH": 200,
    "MAX_BLOCKS": 100_000,
    "MAX_SNIFF_PAYLOADS": 8,
    "MAX_SNIFF_BYTES": 64 * 1024,
}
GIVEN: dict[str, Any] = {  # each setting at another value than its default
    "framing": "sse",
    "max_frame_bytes": None,
    "max_residue_bytes": 10,
    "max_depth": 50,
    "max_blocks": None,
    "on_eof": "discard",
    "think_tags": True,
    "raw": "none",
    "call_id": lambda index: f"call_{index}",
    "after": streamfold.Cursor("resp_1", -1),
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items(), ids=LIMITS.keys())
def test_default_bounds_are_the_designs(name: str, value: int) -> None:
    assert getattr(limits, name) == value


def test_the_settings_are_these() -> None:
    assert set(Settings.__annotations__) == set(GIVEN)


def test_each_setting_is_documented() -> None:
    for name in GIVEN:
        assert f"{name}:" in (inspect.getdoc(Settings) or "")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("name", GIVEN)
def test_every_way_takes_every_setting(name: str, way: Way) -> None:
    settings = {name: GIVEN[name]}
    events, answer = way(cut(RESPONSES, 50), "openai-responses", **settings)
    again, same = by_decoder([RESPONSES], "openai-responses", **settings)
    assert [encode_event(event) for event in events] == [encode_event(event) for event in again]
    assert answer == same
    assert answer.text == "Hello"


# -- wrong ones -------------------------------------------------------------------------------------------------------

WRONG: dict[str, dict[str, Any]] = {
    "framing": {"framing": "html"},
    "no framing": {"framing": None},
    "raw": {"raw": "some"},
    "on_eof": {"on_eof": "drop"},
    "max_frame_bytes below 1": {"max_frame_bytes": 0},
    "max_frame_bytes as text": {"max_frame_bytes": "1"},
    "max_frame_bytes as a float": {"max_frame_bytes": 1e6},
    "max_frame_bytes as a truth": {"max_frame_bytes": True},
    "max_residue_bytes below 0": {"max_residue_bytes": -1},
    "max_depth below 0": {"max_depth": -1},
    "max_depth as text": {"max_depth": "9"},
    "max_blocks below 0": {"max_blocks": -1},
    "max_blocks as text": {"max_blocks": "9"},
    "think_tags": {"think_tags": "no"},
    "call_id": {"call_id": "call_"},
    "after": {"after": "resp_1"},
    "unknown": {"max_frame": 9},
}


@pytest.mark.parametrize("settings", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_is_told_at_once(settings: Any) -> None:
    with pytest.raises(UsageError):
        StreamDecoder("openai-chat", **settings)


ENTRIES: dict[str, Callable[..., object]] = {
    "StreamDecoder": StreamDecoder,
    "iter_unified": lambda *args, **settings: streamfold.iter_unified([], *args, **settings),
    "aiter_unified": lambda *args, **settings: streamfold.aiter_unified([], *args, **settings),
    "iter_traced": lambda *args, **settings: streamfold.iter_traced([], *args, **settings),
    "aiter_traced": lambda *args, **settings: streamfold.aiter_traced([], *args, **settings),
    "fold": lambda *args, **settings: streamfold.fold([], *args, **settings),
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
def test_every_way_in_tells_at_once(entry: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match="no provider is called 'openai'; there are auto, "):
        entry("openai")
    with pytest.raises(UsageError, match="no framing is called 'html'"):
        entry("auto", framing="html")
    for provider in (None, 5, ["auto"]):
        with pytest.raises(UsageError, match="a provider is"):
            entry(provider)


@pytest.mark.parametrize(
    "entry", [streamfold.parse_event_stream, streamfold.aparse_event_stream], ids=["sync", "async"]
)
def test_the_neutral_layer_tells_at_once(entry: Any) -> None:
    wrong: list[dict[str, Any]] = [
        {"framing": "auto"},
        {"framing": "html"},
        {"on_eof": "drop"},
        {"max_frame": 9},
        {"raw": "none"},
        {"max_frame_bytes": 0},
        {"max_depth": -1},
        {"framing": []},
    ]
    for settings in wrong:
        with pytest.raises(UsageError):
            entry([], **settings)


@pytest.mark.parametrize("framing", ["sse", "json_array"])
def test_the_neutral_layer_takes_each_setting_whatever_the_framing(framing: Any) -> None:
    body = b"[1]" if framing == "json_array" else b"data: 1\n\n"
    frames = streamfold.parse_event_stream(
        [body], framing=framing, max_frame_bytes=9, max_residue_bytes=9, max_depth=9, on_eof="discard"
    )
    assert [frame.data for frame in frames] == ["1"]


# -- what each does ---------------------------------------------------------------------------------------------------


def fault(events: list[Event]) -> tuple[str, str | None] | None:
    """Kind and code of the fatal error, if the answer ended in one."""
    last = events[-1]
    return (last.kind, last.code) if isinstance(last, ErrorEvent) else None


LONG = sse(chat_text("ok", "x" * 500))
LINE = max(map(len, LONG.split(b"\n")))


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_max_frame_bytes(size: int) -> None:
    for bound, ends in ((LINE, None), (LINE - 1, ("limit", "frame")), (None, None)):
        events, answer = by_decoder(cut(LONG, size), "openai-chat", max_frame_bytes=bound)
        assert fault(events) == ends
        assert (answer.error and answer.error.offset) == (len(sse(chat_text("ok", finish=None))) if ends else None)
        assert answer.text == ("ok" if ends else "ok" + "x" * 500)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_max_frame_bytes_of_an_array(size: int) -> None:
    payloads = [chat({"content": "ok"}), chat({"content": "x" * 500}), chat(finish="stop")]
    body = array(payloads)
    item = len(array(payloads[1:2])) - 3
    for bound, ends in ((item, None), (item - 1, ("limit", "frame")), (None, None)):
        events, answer = by_decoder(cut(body, size), "openai-chat", max_frame_bytes=bound)
        assert fault(events) == ends
        assert answer.text == ("ok" if ends else "ok" + "x" * 500)


def test_max_residue_bytes() -> None:
    page = b"<html>\n" + b"x" * 300 + b"\n</html>\n"
    for bound, shown in ((None, "<html>\n" + "x" * 193), (4, "<htm"), (64, "<html>\n" + "x" * 57)):
        events, answer = by_decoder(cut(page, 9), "openai-chat", max_residue_bytes=bound)
        assert fault(events) == ("protocol", "not_a_stream")
        assert answer.error is not None
        assert answer.error.message == f"the body is no stream: {shown}"


def nested(levels: int) -> bytes:
    """A chunk that nests so many levels, itself included, then an end."""
    inner = b'{"choices":[{"index":0,"delta":{"content":"ok","x":' + b"[" * (levels - 4) + b"]" * (levels - 4) + b"}}]}"
    return b"data: " + inner + b"\n\n" + sse([chat(finish="stop"), "[DONE]"])


@pytest.mark.parametrize("levels", [10, 200, 300])
def test_max_depth(levels: int) -> None:
    for bound, ends in ((levels, None), (levels - 1, ("limit", "depth")), (None, None)):
        events, answer = by_decoder(cut(nested(levels), 100), "openai-chat", max_depth=bound)
        assert fault(events) == ends
        assert answer.text == ("" if ends else "ok")


def test_max_blocks() -> None:
    calls = [chat_call(n, "{}", id=f"c{n}", name="f") for n in range(5)]
    body = sse([*calls, chat(finish="tool_calls"), "[DONE]"])
    for bound, ends in ((5, None), (4, ("limit", "blocks")), (0, ("limit", "blocks")), (None, None)):
        events, answer = by_decoder(cut(body, 99), "openai-chat", max_blocks=bound)
        assert fault(events) == ends
        assert len(answer.blocks) == (bound if ends else 5)
        assert sum(isinstance(event, ErrorEvent) for event in events) == (1 if ends else 0)
        states = {block.state for block in answer.blocks if isinstance(block, ToolCallBlock)}
        assert states <= ({"cut"} if ends else {"ready"})


OPEN_TAILS = {  # body without its last blank line -> outcome by each rule
    "a finish reason": (sse(chat_text("Hello")[:-1])[:-1], "complete", "truncated"),
    "the sentinel": (CHAT[:-1], "complete", "complete"),
    "the sentinel alone": (b"data: [DONE]", "complete", "truncated"),
    "half a payload": (sse(chat_text("Hello")[:-2])[:-9], "truncated", "truncated"),
}


@pytest.mark.parametrize("size", [1, 5, 10_000])
@pytest.mark.parametrize(("body", "flush", "discard"), OPEN_TAILS.values(), ids=OPEN_TAILS.keys())
def test_on_eof(body: bytes, flush: str, discard: str, size: int) -> None:
    assert streamfold.fold(cut(body, size), "openai-chat").outcome == flush
    assert streamfold.fold(cut(body, size), "openai-chat", on_eof="flush").outcome == flush
    assert streamfold.fold(cut(body, size), "openai-chat", on_eof="discard").outcome == discard


STRANGE = sse(
    [
        chat({"content": "a"}),
        chat({}),  # known, and means nothing
        {"object": "brand.new", "x": 1},  # unknown
        chat(finish="stop"),
        "[DONE]",
    ]
)


@pytest.mark.parametrize(
    ("mode", "names"),
    [("all", ["chat.completion.chunk", "brand.new"]), ("unknown", ["brand.new"]), ("none", [])],
    ids=["all", "unknown", "none"],
)
def test_raw(mode: Any, names: list[str]) -> None:
    events, answer = by_decoder([STRANGE], "openai-chat", raw=mode)
    assert [event.name for event in events if isinstance(event, Raw)] == names
    assert (answer.text, answer.outcome) == ("a", "complete")
    if mode == "all":
        assert events == by_decoder([STRANGE], "openai-chat")[0], "the default"


@pytest.mark.parametrize("provider", ["anthropic", "auto"])
def test_raw_of_pings(provider: str) -> None:
    pings = {mode: [e for e in by_decoder([ANTHROPIC], provider, raw=mode)[0] if isinstance(e, Raw)] for mode in MODES}
    assert [len(pings[mode]) for mode in MODES] == [1, 0, 0]


MODES = ("all", "unknown", "none")

NAMELESS = sse([chat_call(0, "{}", name="f"), chat_call(1, "{}", name="g"), chat(finish="tool_calls"), "[DONE]"])


def test_call_id_makes_the_ids_that_are_missing() -> None:
    asked: list[int] = []

    def make(index: int) -> str:
        asked.append(index)
        return f"mine-{index}"

    events, answer = by_decoder(cut(NAMELESS, 9), "openai-chat", call_id=make)
    assert asked == [0, 1]
    assert [call.id for call in answer.tool_calls] == ["mine-0", "mine-1"]
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    assert [start.meta and start.meta.decoded() for start in starts] == [{"synthetic_id": True}] * 2


NO_IDS: dict[str, Callable[[int], Any]] = {
    "nothing": lambda index: None,
    "a number": lambda index: index,
    "bytes": lambda index: b"%d" % index,
    "no text": lambda index: "",
    "the same for two": lambda index: "mine",
}


@pytest.mark.parametrize("make", NO_IDS.values(), ids=NO_IDS.keys())
@pytest.mark.parametrize("size", [9, 9999])
def test_what_call_id_makes_has_to_be_an_id(make: Callable[[int], Any], size: int) -> None:
    with pytest.raises(UsageError, match="call_id is to make another text for each call"):
        streamfold.fold(cut(NAMELESS, size), "openai-chat", call_id=make)


def test_call_id_is_not_asked_where_the_provider_gave_one() -> None:
    answer = by_decoder([ANTHROPIC], "anthropic", call_id=lambda index: "made up")[1]
    assert [call.id for call in answer.tool_calls] == ["toolu_1"]


def test_ids_that_are_made_up_are_the_same_at_every_reading() -> None:
    readings = [
        [call.id for call in streamfold.fold(cut(NAMELESS, size), "openai-chat").tool_calls] for size in (1, 9, 999)
    ]
    assert readings[0] == readings[1] == readings[2]
    assert len(set(readings[0])) == 2
    for made in readings[0]:
        assert made.startswith("call_")
        assert len(made) == len("call_") + 12
        assert int(made.removeprefix("call_"), 16) >= 0


@pytest.mark.parametrize("provider", ["auto", *ANSWERS])
def test_auto_is_the_default_framing_and_provider(provider: str) -> None:
    for name, body in ANSWERS.items():
        if provider in ("auto", name):
            assert streamfold.fold([body], provider) == streamfold.fold([body], provider, framing="sse")
            assert streamfold.fold([body]) == streamfold.fold([body], name)
