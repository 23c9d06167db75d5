"""The whole chain without I/O: bytes cut anywhere, ends of every kind, bodies that are no stream, tags in text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import (
    Block,
    BlockEnd,
    BlockStart,
    Done,
    ErrorEvent,
    Event,
    Raw,
    ReasoningBlock,
    ReasoningDelta,
    Restart,
    Snapshot,
    Start,
    StreamDecoder,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallStart,
    UsageError,
    encode_event,
    limits,
)
from tests.samples import (
    ANSWERS,
    ANTHROPIC,
    ANTHROPIC_PAYLOADS,
    CHAT,
    RESPONSES_PAYLOADS,
    Payload,
    array,
    block_delta,
    block_start,
    block_stop,
    chat,
    chat_call,
    chat_text,
    cut,
    message_end,
    message_start,
    responses_payloads,
    sse,
    text_delta,
)
from tests.ways import by_decoder

every_surface = pytest.mark.parametrize("name", ANSWERS)
FRAMES = [frame + b"\n\n" for frame in CHAT.split(b"\n\n") if frame]


def decoded(chunks: Iterable[bytes], provider: str = "openai-chat", **settings: Any) -> Snapshot:
    return by_decoder(chunks, provider, **settings)[1]


def ends(events: list[Event]) -> list[Event]:
    """The events that end an answer."""
    return [event for event in events if isinstance(event, Done) or (isinstance(event, ErrorEvent) and event.fatal)]


# -- bytes ------------------------------------------------------------------------------------------------------------


@every_surface
@pytest.mark.parametrize("provider", ["auto", "its own"])
def test_cuts_never_change_the_events(name: str, provider: str) -> None:
    body, provider = ANSWERS[name], name if provider == "its own" else provider
    whole = by_decoder([body], provider)
    for size in (1, 2, 3, 7, 64):
        assert by_decoder(cut(body, size), provider) == whole
    for at in range(len(body)):
        assert by_decoder([body[:at], b"", body[at:]], provider) == whole


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_feed_takes_whatever_holds_bytes(kind: Any) -> None:
    assert by_decoder([kind(chunk) for chunk in cut(CHAT, 9)], "openai-chat") == by_decoder([CHAT], "openai-chat")


@pytest.mark.parametrize("data", ["data: x\n\n", None, 5, {"a": 1}], ids=["text", "None", "a number", "a dict"])
@pytest.mark.parametrize("before", [b"", CHAT[:100], CHAT], ids=["at first", "inside", "after the end"])
def test_feed_takes_nothing_else(data: Any, before: bytes) -> None:
    decoder = StreamDecoder("openai-chat")
    decoder.feed(before)
    with pytest.raises(UsageError, match="a stream is fed bytes"):
        decoder.feed(data)


def test_feeding_nothing_does_nothing() -> None:
    decoder = StreamDecoder("openai-chat")
    assert decoder.feed(b"") == []
    decoder.feed(FRAMES[0])
    before = decoder.snapshot()
    assert decoder.feed(b"") == []
    assert decoder.snapshot() is before


@every_surface
def test_each_frame_is_read_when_it_is_whole(name: str) -> None:
    body, fed = ANSWERS[name], 0
    decoder = StreamDecoder(name)
    for frame, caused in streamfold.iter_traced([body], name):
        end = body.index(b"\n\n", fed) + 2
        assert decoder.feed(body[fed : end - 1]) == [], frame
        assert decoder.feed(body[end - 1 : end]) == list(caused), frame
        fed = end


# -- ends -------------------------------------------------------------------------------------------------------------


@every_surface
@pytest.mark.parametrize("how", ["eof", "cut", "cancel"])
def test_an_answer_that_breaks_off_anywhere_ends_once(name: str, how: Any) -> None:
    """After every byte: one end at most, with all blocks closed, and only the terminal sign is success."""
    body = ANSWERS[name]
    whole = len(by_decoder([body], name)[0])
    for at in range(len(body) + 1):
        decoder = StreamDecoder(name)
        events = decoder.feed(body[:at])
        complete = decoder.ended
        more = decoder.close(how)
        events = [*events, *more]
        snapshot = decoder.snapshot()
        if complete:
            assert more == []
            assert len(events) == whole
        elif how == "cancel":
            assert more == []
            assert ends(events) == []
            assert snapshot.outcome == "cancelled"
        elif how == "cut":
            assert isinstance(events[-1], ErrorEvent)
            assert (events[-1].kind, events[-1].retryable) == ("transport", True)
            assert snapshot.outcome == "failed"
        elif snapshot.outcome != "complete":  # the last frame may be whole but for its blank line
            assert isinstance(events[-1], ErrorEvent)
            if at >= body.index(b"data:") + 4:  # what breaks off in the first lines could be a body of its own
                assert events[-1].kind == "truncated"
        if how != "cancel":
            assert len(ends(events)) == 1
            assert ends(events)[0] is events[-1]
            assert isinstance(events[0], Start)
            opened = [e.index for e in events if isinstance(e, BlockStart | ToolCallStart)]
            assert sorted(opened) == sorted(e.index for e in events if isinstance(e, BlockEnd))
        assert all(call.id == "toolu_1" for call in snapshot.tool_calls)


@every_surface
def test_a_truncated_answer_keeps_what_came(name: str) -> None:
    at = ANSWERS[name].index(b'"lo"') - 60
    snapshot = decoded([ANSWERS[name][:at]], name)
    assert (snapshot.text, snapshot.outcome) == ("Hel", "truncated")
    assert not snapshot.blocks[0].complete


@every_surface
@pytest.mark.parametrize("how", ["eof", "cut", "cancel"])
def test_closing_again_and_feeding_after_it_do_nothing(name: str, how: Any) -> None:
    for body in (b"", ANSWERS[name][:200], ANSWERS[name]):
        decoder = StreamDecoder(name)
        decoder.feed(body)
        decoder.close(how)
        before = decoder.snapshot()
        assert decoder.ended
        for again in ("eof", "cut", "cancel"):
            assert decoder.close(again) == []
        assert decoder.feed(ANSWERS[name]) == []
        assert decoder.feed_payload({"id": "x", "choices": []}) == []
        assert decoder.snapshot() is before


@pytest.mark.parametrize("how", ["end", None, 5, "EOF"])
def test_there_is_no_other_way_to_close(how: Any) -> None:
    for body in (b"", CHAT):
        decoder = StreamDecoder("openai-chat")
        decoder.feed(body)
        with pytest.raises(UsageError, match='"eof", "cut" or "cancel"'):
            decoder.close(how)


SURFACES = {**dict.fromkeys(ANSWERS), "auto": "unknown"}


@pytest.mark.parametrize(("provider", "surface"), SURFACES.items(), ids=SURFACES.keys())
@pytest.mark.parametrize("body", [b"", b"\n\n", b": hi\n\n", b"  \r\n", b"event: x\nid: 7\n\n"], ids=repr)
def test_a_body_without_a_payload_is_truncated(body: bytes, provider: str, surface: str | None) -> None:
    events, snapshot = by_decoder(cut(body, 1), provider)
    assert [event.type for event in events] == ["start", "error"]
    assert snapshot.surface == (surface or provider)
    assert snapshot.outcome == "truncated"


@every_surface
def test_payloads_after_the_terminal_sign_change_nothing(name: str) -> None:
    for late in (ANSWERS[name], b"data: {broken\n\n", b"<html>"):
        for chunks in ([ANSWERS[name] + late], [ANSWERS[name], late], cut(ANSWERS[name] + late, 50)):
            assert by_decoder(chunks, name) == by_decoder([ANSWERS[name]], name)


def test_the_end_is_said_at_once() -> None:
    for name, body in ANSWERS.items():
        decoder = StreamDecoder(name)
        for chunk in cut(body, 1)[:-1]:
            decoder.feed(chunk)
            assert not decoder.ended
        assert [event.type for event in decoder.feed(b"\n")][-1] == "done"
        assert decoder.ended
        assert decoder.snapshot().outcome == "complete"


# -- sentinels, keep-alives, what is no JSON --------------------------------------------------------------------------

TEXT = sse([chat({"content": "a"}), chat(finish="stop")])
BARE = sse([chat({"content": "a"})])
SENTINELS: dict[str, tuple[bytes, str, str | None]] = {  # body -> outcome, reason
    "as it should be": (TEXT + b"data: [DONE]\n\n", "complete", "end"),
    "without a blank": (TEXT + b"data:[DONE]\n\n", "complete", "end"),
    "with blanks": (TEXT + b"data:  [DONE] \n\n", "complete", "end"),
    "with more behind it": (TEXT + b"data: [DONE]\\n\n\n", "complete", "end"),
    "never closed": (TEXT + b"data: [DONE]", "complete", "end"),
    "missing": (TEXT, "complete", "end"),
    "without a reason": (BARE + b"data: [DONE]\n\n", "complete", None),
    "never closed, without a reason": (BARE + b"data: [DONE]", "complete", None),
    "neither": (BARE, "truncated", None),
    "cut": (BARE + b"data: [DON", "truncated", None),
    "half a keep-alive": (BARE + b"data: ", "truncated", None),
    "in lower case": (BARE + b"data: [done]\n\n", "failed", None),
    "alone": (b"data: [DONE]\n\n", "complete", None),
}


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize(("body", "outcome", "reason"), SENTINELS.values(), ids=SENTINELS.keys())
def test_sentinels(body: bytes, outcome: str, reason: str | None, size: int) -> None:
    snapshot = decoded(cut(body, size))
    assert (snapshot.outcome, snapshot.stop.reason) == (outcome, reason)
    assert snapshot.text == ("" if body.startswith(b"data: [") else "a")


@pytest.mark.parametrize("name", ["anthropic", "openai-responses"])
def test_a_sentinel_ends_no_answer_where_it_is_none(name: str) -> None:
    early = ANSWERS[name].replace(b"\n\n", b"\n\ndata: [DONE]\n\n", 1)
    events, snapshot = by_decoder([early], name)
    assert (snapshot.text, snapshot.outcome) == ("Hello", "complete")
    assert [event.payload for event in events if isinstance(event, Raw) and not event.is_json] == ['"[DONE]"']


KEEP_ALIVES = {
    "a comment": b": keep-alive\n\n",
    "a blank payload": b"data:\n\n",
    "a payload of blanks": b"data:    \n\n",
    "a comment framed as data": b"data: : OPENROUTER PROCESSING\n\n",
    "a ping": b"event: ping\ndata: {}\n\n",
    "a block without data": b"event: x\nid: 1\n\n",
}


@every_surface
@pytest.mark.parametrize("keep_alive", KEEP_ALIVES.values(), ids=KEEP_ALIVES.keys())
def test_keep_alives_change_nothing(keep_alive: bytes, name: str) -> None:
    body = keep_alive + ANSWERS[name].replace(b"\n\n", b"\n\n" + keep_alive)
    events, snapshot = by_decoder(cut(body, 77), name)
    assert snapshot.blocks == decoded([ANSWERS[name]], name).blocks
    assert snapshot.outcome == "complete"
    assert not snapshot.warnings
    assert isinstance(events[0], Start)


NO_JSON = {
    "cut": b'{"id":',
    "words": b"oops",
    "single quotes": b"{'a': 1}",
    "two in one": b"{}{}",
    "a comma": b'{"a":1,}',
}


@every_surface
@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("payload", NO_JSON.values(), ids=NO_JSON.keys())
def test_a_payload_that_is_no_json_ends_the_answer(payload: bytes, size: int, name: str) -> None:
    at = ANSWERS[name].index(b"\n\n", ANSWERS[name].index(b'"Hel"')) + 2
    before, after = ANSWERS[name][:at], ANSWERS[name][at:]
    events, snapshot = by_decoder(cut(before + b"data: " + payload + b"\n\n" + after, size), name)
    error = snapshot.error
    assert error is not None
    assert (error.kind, error.code, error.offset) == ("protocol", "bad_json", len(before))
    assert snapshot.blocks[0].complete is False
    assert ends(events) == [events[-1]]


LENIENT = {
    "control characters": ('"a\tb\x01c"', "a\tb\x01c"),
    "half a surrogate pair": ('"a\\ud83d"', "a\ufffd"),
    "bad UTF-8": ('"a\udcff"', "a\ufffd"),
    "a pair": ('"\\ud83d\\ude00"', "\U0001f600"),
}


@pytest.mark.parametrize(("text", "read"), LENIENT.values(), ids=LENIENT.keys())
def test_what_a_lenient_reader_can_read_is_read(text: str, read: str) -> None:
    chunk = '{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}],"x":NaN}'
    chunk = chunk.replace("%s", text)
    body = b"data: " + chunk.encode("utf-8", "surrogateescape") + b"\n\ndata: [DONE]\n\n"
    for size in (1, 10_000):
        snapshot = decoded(cut(body, size))
        assert (snapshot.text, snapshot.outcome) == (read, "complete")


# -- bodies that are no stream ----------------------------------------------------------------------------------------

PAGE = b"<!DOCTYPE html>\n<html><body>Bad Gateway: upstream failed</body></html>\n"
ERROR = b'{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}'
PRETTY = json.dumps(json.loads(ERROR), indent=2).encode()
BODIES: dict[str, tuple[bytes, str, str | None, str]] = {  # body, kind, code, part of the message
    "a JSON error": (ERROR, "provider", "model_not_found", "no such model"),
    "a pretty JSON error": (PRETTY, "provider", "model_not_found", "no such model"),
    "with line ends of DOS": (PRETTY.replace(b"\n", b"\r\n"), "provider", "model_not_found", "no such model"),
    "with a byte order mark": (b"\xef\xbb\xbf" + ERROR, "provider", "model_not_found", "no such model"),
    "an error in a list": (b"[" + ERROR + b"]", "provider", "model_not_found", "no such model"),
    "an error that is a sentence": (b'{"error":"no such model","code":"404"}', "provider", "404", "no such model"),
    "a message": (b'{"message":"no such model"}', "provider", None, "no such model"),
    "a detail": (b'{"detail":"no such model"}', "provider", None, "no such model"),
    "an object without an error": (b'{"hello":"world"}', "protocol", "not_a_stream", '{"hello":"world"}'),
    "a page": (PAGE, "protocol", "not_a_stream", "<!DOCTYPE html>\n<html>"),
    "plain text": (b"Internal Server Error", "protocol", "not_a_stream", "Internal Server Error"),
    "text with a colon": (b"error: upstream\n", "protocol", "not_a_stream", "error: upstream"),
    "a number": (b"404", "protocol", "not_a_stream", "404"),
    "gzip": (gzip.compress(CHAT, mtime=0), "protocol", "compressed", "compressed"),
    "zstandard": (b"\x28\xb5\x2f\xfd\x24\x00" + bytes(range(64)), "protocol", "compressed", "compressed"),
    "bad UTF-8": (b"\xff\xfe\x00", "protocol", "not_a_stream", "\ufffd\ufffd"),
}


def bodies() -> Iterable[Any]:
    for framing in ("auto", "sse", "json_array"):
        for name, facts in BODIES.items():
            for size in (1, 5, 10_000):
                yield pytest.param(framing, *facts, size, id=f"{framing}: {name}, by {size}")


@pytest.mark.parametrize(("framing", "body", "kind", "code", "message", "size"), list(bodies()))
def test_a_body_that_is_no_stream(
    framing: Any, body: bytes, kind: str, code: str | None, message: str, size: int
) -> None:
    events, snapshot = by_decoder(cut(body, size), "openai-chat", framing=framing)
    assert [event.type for event in events if not isinstance(event, Raw)] == ["start", "error"]
    error = snapshot.error
    assert error is not None
    assert (error.kind, error.code) == (kind, code)
    assert message in error.message
    assert len(error.message) < 300
    assert snapshot.outcome == "failed"


@every_surface
@pytest.mark.parametrize("body", [ERROR, PAGE, b"oops"], ids=["error", "page", "text"])
def test_a_body_that_is_no_stream_of_any_surface(body: bytes, name: str) -> None:
    for provider in (name, "auto"):
        snapshot = decoded(cut(body, 7), provider)
        assert snapshot.outcome == "failed"
        assert snapshot.surface == ("unknown" if provider == "auto" else name)


@pytest.mark.parametrize("size", [1, 9, 10_000])
def test_a_bare_error_in_the_middle_of_a_stream_ends_it(size: int) -> None:
    for error in (ERROR + b"\n", PRETTY + b"\n\n", ERROR):
        body = FRAMES[0] + FRAMES[1] + error
        snapshot = decoded(cut(body, size))
        assert snapshot.error is not None
        assert (snapshot.text, snapshot.error.code) == ("Hel", "model_not_found")


def test_a_bare_error_ends_the_answer_where_it_stands_however_the_bytes_were_cut() -> None:
    body = FRAMES[0] + FRAMES[1] + ERROR + b"\n\n" + b"".join(FRAMES[2:])
    outcomes = [by_decoder(cut(body, size), "openai-chat") for size in (1, 50, 10_000)]
    assert outcomes[0][1].outcome == "failed"
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_bare_error_of_many_levels_is_read_however_the_bytes_were_cut() -> None:
    inner: Any = "deep"
    for _ in range(20):
        inner = {"details": inner}
    body = json.dumps({"error": {"message": "no", "details": inner}}, indent=1).replace("\n", "\r\n").encode() + b"\r\n"
    for size in (10_000, 1):
        snapshot = decoded(cut(body, size), framing="sse")
        assert snapshot.error is not None
        assert snapshot.error.kind == "provider"


def test_a_bare_error_after_a_stray_line_is_read() -> None:
    snapshot = decoded([FRAMES[0] + b"stray\n\n" + ERROR + b"\n\n"])
    assert snapshot.error is not None
    assert snapshot.error.code == "model_not_found"


def test_stray_lines_in_a_stream_change_nothing() -> None:
    body = b"".join(b"stray\nwhat: ever\n" + frame for frame in FRAMES)
    assert decoded(cut(body, 9)) == decoded([CHAT])


# -- framing ----------------------------------------------------------------------------------------------------------

ITEMS = [chat({"content": "Hel"}), chat({"content": "lo"}), chat(finish="stop")]
HEADS: dict[str, bytes] = {  # what a body may begin with, and still be what it is
    "nothing": b"",
    "a byte order mark": b"\xef\xbb\xbf",
    "blanks": b" \t\r\n\n",
    "a mark and blanks": b"\xef\xbb\xbf\r\n  \n",
    "three hundred blanks": b"\n" * 300,
}


@pytest.mark.parametrize("size", [1, 2, 10_000])
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_framing_is_told_by_the_first_byte(head: bytes, size: int) -> None:
    for body in (array(ITEMS), sse(ITEMS)):
        assert decoded(cut(head + body, size)).text == "Hello"
        assert decoded(cut(head + body, size)).outcome == "complete"


STARTS = {
    "data": b"data: ",
    "event": b"event: x\ndata: ",
    "comment": b": hi\n\ndata: ",
    "id": b"id: 1\ndata: ",
    "retry": b"retry: 1\ndata: ",
    "field without a value": b"event\ndata: ",
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_every_line_of_an_event_stream_can_be_its_first(start: bytes) -> None:
    body = b"".join(start + json.dumps(item).encode() + b"\n\n" for item in ITEMS)
    for size in (1, 10_000):
        assert decoded(cut(body, size)).text == "Hello"


@pytest.mark.parametrize("size", [1, 9, 10_000])
def test_a_whole_completion_is_an_answer_too(size: int) -> None:
    """The server did not stream."""
    message = {"role": "assistant", "content": "Hello"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}
    snapshot = decoded(cut(json.dumps(whole, indent=1).encode(), size))
    assert (snapshot.id, snapshot.text, snapshot.stop.reason, snapshot.outcome) == ("c", "Hello", "end", "complete")


ARRAY = array(ITEMS)
FAULTS_OF_ARRAYS: dict[str, tuple[bytes, str, str | None]] = {
    "cut in an item": (ARRAY[:-60], "truncated", None),
    "cut between items": (array(ITEMS[:2])[:-2], "truncated", None),
    "no JSON": (ARRAY.replace(b'"m"', b"m", 1), "protocol", "malformed"),
    "a lost comma": (ARRAY.replace(b"\n,", b"\n", 1), "protocol", "malformed"),
}


@pytest.mark.parametrize("size", [1, 9, 10_000])
@pytest.mark.parametrize(("body", "kind", "code"), FAULTS_OF_ARRAYS.values(), ids=FAULTS_OF_ARRAYS.keys())
def test_faults_of_an_array_are_events(body: bytes, kind: str, code: str | None, size: int) -> None:
    events, snapshot = by_decoder(cut(body, size), "openai-chat")
    error = snapshot.error
    assert error is not None
    assert (error.kind, error.code) == (kind, code)
    assert ends(events) == [events[-1]]


# -- payloads that others framed --------------------------------------------------------------------------------------

PAYLOADS: dict[str, list[Any]] = {
    "openai-chat": [*chat_text("Hel", "lo")],
    "anthropic": [*ANTHROPIC_PAYLOADS],
    "openai-responses": [*RESPONSES_PAYLOADS],
}


@every_surface
@pytest.mark.parametrize("kind", ["dict", "text", "bytes", "in turns"])
@pytest.mark.parametrize("provider", ["auto", "its own"])
def test_payloads_mean_what_their_frames_mean(name: str, kind: str, provider: str) -> None:
    provider = name if provider == "its own" else provider
    decoder = StreamDecoder(provider)
    events: list[Event] = []
    for number, payload in enumerate(PAYLOADS[name]):
        text = payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"))
        forms = {"dict": payload, "text": text, "bytes": text.encode()}
        form = ("dict", "text", "bytes")[number % 3] if kind == "in turns" else kind
        events += decoder.feed_payload(forms[form])
    assert [encode_event(event) for event in events] == [
        encode_event(e) for e in by_decoder([ANSWERS[name]], provider)[0]
    ]
    assert decoder.ended
    assert decoder.close() == []
    assert decoder.snapshot() == decoded([ANSWERS[name]], provider)


@every_surface
def test_payloads_that_stop_early_are_truncated(name: str) -> None:
    decoder = StreamDecoder(name)
    for payload in PAYLOADS[name][:2]:
        decoder.feed_payload(payload)
    assert [event.type for event in decoder.close()][-1] == "error"
    assert decoder.snapshot().outcome == "truncated"


def test_a_payload_does_not_change_when_its_object_does() -> None:
    payload = chat({"content": "a"}, x=[1])
    decoder = StreamDecoder("openai-chat")
    decoder.feed_payload(payload)
    payload["choices"][0]["delta"]["content"] = "b"
    assert decoder.snapshot().text == "a"


@pytest.mark.parametrize("payload", [None, 5, ["a"], TextDelta(0, "x")], ids=repr)
@pytest.mark.parametrize("provider", ["auto", *ANSWERS])
def test_what_is_no_payload_is_misuse(payload: Any, provider: str) -> None:
    with pytest.raises(UsageError):
        StreamDecoder(provider).feed_payload(payload)


@every_surface
def test_bytes_and_payloads_do_not_mix_up_their_names(name: str) -> None:
    """Frames of odd shape before a payload: whose event name and place would it have?"""
    decoder = StreamDecoder(name)
    decoder.feed(b": hi\n\nevent: odd\nid: 1\ndata: {}\n\n")
    events = decoder.feed_payload({"x": 1})
    assert [event.name for event in events if isinstance(event, Raw)]
    assert not [event for event in events if isinstance(event, ErrorEvent)]


# -- whose stream it is -----------------------------------------------------------------------------------------------


def test_auto_waits_for_a_payload_that_tells() -> None:
    pings = sse([{"type": "ping"}, {"hello": 1}, {}])
    events, snapshot = by_decoder(cut(pings + ANTHROPIC, 50), "auto")
    assert isinstance(events[0], Start)
    assert snapshot.surface == "anthropic"
    assert snapshot.text == "Hello"
    assert [event.name for event in events if isinstance(event, Raw)][:3] == ["ping", "message", "message"]


STRANGERS: dict[str, list[Payload | str]] = {
    "many payloads": [{"hello": n} for n in range(limits.MAX_SNIFF_PAYLOADS)],
    "much of one": [{"hello": "x" * (limits.MAX_SNIFF_BYTES + 1)}],
    "the end": [{"hello": 1}],
}


@pytest.mark.parametrize("size", [100, 1 << 20])
@pytest.mark.parametrize("payloads", STRANGERS.values(), ids=STRANGERS.keys())
def test_auto_gives_up(payloads: list[Any], size: int) -> None:
    events, snapshot = by_decoder(cut(sse(payloads), size), "auto")
    assert (snapshot.surface, snapshot.outcome) == ("unknown", "truncated")
    assert [event.type for event in events] == ["start", *["raw"] * len(payloads), "error"]


def test_auto_that_gave_up_does_not_change_its_mind() -> None:
    body = sse(STRANGERS["many payloads"]) + ANTHROPIC
    events, snapshot = by_decoder(cut(body, 100), "auto")
    assert (snapshot.surface, snapshot.outcome, snapshot.blocks) == ("unknown", "truncated", ())
    assert sum(isinstance(event, Raw) for event in events) == body.count(b"\n\n")


def test_the_wrong_provider_is_all_raw_and_told() -> None:
    events, snapshot = by_decoder([ANTHROPIC], "openai-chat")
    assert (snapshot.outcome, snapshot.blocks) == ("failed", ())
    assert isinstance(events[-1], ErrorEvent)
    assert events[-1].code == "wrong_provider"
    raws = [event.name for event in events if isinstance(event, Raw)]
    assert raws.count("content_block_delta") == 4


def test_a_message_that_starts_again_is_a_restart() -> None:
    body = sse(ANTHROPIC_PAYLOADS[:4], names=True) + ANTHROPIC.replace(b"msg_1", b"msg_2")
    for size in (1, 10_000):
        events, snapshot = by_decoder(cut(body, size), "anthropic")
        assert sum(isinstance(event, Restart) for event in events) == 1
        assert (snapshot.id, snapshot.text, snapshot.outcome) == ("msg_2", "Hello", "complete")
        assert [block.index for block in snapshot.blocks] == [1, 2]


# -- tags in text -----------------------------------------------------------------------------------------------------


def tagged(pieces: Iterable[str], **settings: Any) -> tuple[list[Event], Snapshot]:
    return by_decoder([sse(chat_text(*pieces))], "openai-chat", **{"think_tags": True, **settings})


TAGS: dict[str, tuple[str, list[tuple[str, str]]]] = {  # text -> its blocks
    "none": ("no tags", [("text", "no tags")]),
    "first": ("<think>a</think>b", [("reasoning", "a"), ("text", "b")]),
    "in the middle": ("a<think>b</think>c", [("text", "a"), ("reasoning", "b"), ("text", "c")]),
    "last": ("a<think>b</think>", [("text", "a"), ("reasoning", "b")]),
    "alone": ("<think>b</think>", [("reasoning", "b")]),
    "twice": (
        "<think>a</think>b<think>c</think>d",
        [("reasoning", "a"), ("text", "b"), ("reasoning", "c"), ("text", "d")],
    ),
    "one behind the other": ("<think>a</think><think>b</think>", [("reasoning", "a"), ("reasoning", "b")]),
    "empty": ("a<think></think>b", [("text", "a"), ("text", "b")]),
    "unclosed": ("a<think>b", [("text", "a"), ("reasoning", "b")]),
    "unopened": ("a</think>b", [("text", "a</think>b")]),
    "nested": ("<think>a<think>b</think>c</think>d", [("reasoning", "a<think>b"), ("text", "c</think>d")]),
    "half a tag at the end": ("a<thin", [("text", "a<thin")]),
    "half a closing tag at the end": ("<think>a</thi", [("reasoning", "a</thi")]),
    "what looks like one": ("a<thinker>b< think>", [("text", "a<thinker>b< think>")]),
    "a tag inside its beginning": ("a<th<think>b</</think>c", [("text", "a<th"), ("reasoning", "b</"), ("text", "c")]),
    "in capitals": ("<THINK>a", [("text", "<THINK>a")]),
    "characters of many bytes": ("é<think>👩‍🚀</think>é", [("text", "é"), ("reasoning", "👩‍🚀"), ("text", "é")]),
}


def kinds_and_texts(snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(block.type, block.text) for block in snapshot.blocks if isinstance(block, TextBlock | ReasoningBlock)]


@pytest.mark.parametrize(("text", "blocks"), TAGS.values(), ids=TAGS.keys())
def test_think_tags_cut_anywhere(text: str, blocks: list[tuple[str, str]]) -> None:
    cuts = [[text], list(text), *([text[:at], text[at:]] for at in range(1, len(text)))]
    for pieces in cuts:
        events, snapshot = tagged(pieces)
        assert kinds_and_texts(snapshot) == blocks
        assert [block.index for block in snapshot.blocks] == list(range(len(blocks)))
        assert all(block.complete for block in snapshot.blocks)
        assert snapshot.outcome == "complete"
        assert_deltas_add_up(events)


def assert_deltas_add_up(events: list[Event]) -> None:
    """What the pieces of each block say is what its end says, and each is opened and closed once."""
    said: dict[int, str] = {}
    for event in events:
        if isinstance(event, BlockStart):
            assert event.index == len(said)
            said[event.index] = ""
        elif isinstance(event, TextDelta | ReasoningDelta):
            assert event.text
            said[event.index] += event.text
        elif isinstance(event, BlockEnd) and isinstance(event.block, TextBlock | ReasoningBlock):
            assert said.pop(event.index) == event.block.text
            said[event.index] = "closed"
    assert all(words == "closed" for words in said.values())


@given(pieces=st.lists(st.sampled_from(["<think>", "</think>", "<thi", "nk>", "</", "a", "b", " ", "é"]), min_size=1))
def test_think_tags_of_any_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    events, snapshot = tagged(pieces)
    assert_deltas_add_up(events)
    assert kinds_and_texts(snapshot) == kinds_and_texts(tagged([text])[1])
    rest, blocks, kind = text, [], "text"
    while rest:  # the naive twin
        words, tag, rest = rest.partition("<think>" if kind == "text" else "</think>")
        blocks += [(kind, words)] if words else []
        kind = kind if not tag else "reasoning" if kind == "text" else "text"
    assert kinds_and_texts(snapshot) == blocks


def test_think_tags_are_text_by_default() -> None:
    text = "<think>a</think>b"
    assert decoded([sse(chat_text(text))]).text == text
    assert tagged([text], think_tags=False)[1].text == text


def test_think_tags_beside_calls_and_on_every_surface() -> None:
    call = chat_call(0, "{}", id="c", name="f")
    body = sse(
        [chat({"content": "<think>a"}), chat({"content": "</think>b"}), call, chat(finish="tool_calls"), "[DONE]"]
    )
    payloads = [
        message_start(),
        block_start(0, type="text", text=""),
        *map(text_delta, ["<think>a</th", "ink>b"]),
        block_stop(0),
        block_start(1, type="tool_use", id="c", name="f", input={}),
        block_delta(1, type="input_json_delta", partial_json="{}"),
        block_stop(1),
        *message_end("tool_use"),
    ]
    for provider, answer in (("openai-chat", body), ("anthropic", sse(payloads, names=True))):
        for size in (1, 10_000):
            events, snapshot = by_decoder(cut(answer, size), provider, think_tags=True)
            assert [block.type for block in snapshot.blocks] == ["reasoning", "text", "tool_call"]
            assert [block.index for block in snapshot.blocks] == [0, 1, 2]
            assert (snapshot.reasoning, snapshot.text) == ("a", "b")
            assert [call.id for call in snapshot.tool_calls] == ["c"]
            assert_deltas_add_up(events)
    spoken = sse(responses_payloads("<thi", "nk>a</think>", "b"), names=True)
    assert kinds_and_texts(decoded(cut(spoken, 40), "openai-responses", think_tags=True)) == [
        ("reasoning", "a"),
        ("text", "b"),
    ]


def test_think_tags_of_several_choices_do_not_mix() -> None:
    body = sse(
        [
            chat({"content": "<think>a"}, choice=0),
            chat({"content": "x<thi"}, choice=1),
            chat({"content": "</think>b"}, choice=0),
            chat({"content": "nk>y"}, choice=1),
            chat(finish="stop", choice=0),
            chat(finish="stop", choice=1),
            "[DONE]",
        ]
    )
    snapshot = decoded([body], think_tags=True)
    assert [(c.reasoning, c.text) for c in (snapshot.choice(0), snapshot.choice(1))] == [("a", "b"), ("y", "x")]


@pytest.mark.parametrize("how", ["eof", "cut", "a frame too large", "a bare error"])
def test_think_tags_of_an_answer_that_breaks_off(how: Any) -> None:
    for pieces, blocks in ((["<think>a"], [("reasoning", "a")]), (["b<thi"], [("text", "b<thi")])):
        decoder = StreamDecoder("openai-chat", think_tags=True, max_frame_bytes=500)
        events = decoder.feed(sse(chat_text(*pieces, finish=None)))
        if how == "a frame too large":
            events += decoder.feed(b"data: " + b"x" * 1000)
        elif how == "a bare error":
            events += decoder.feed(ERROR + b"\n\n")
        else:
            events += decoder.close(how)
        snapshot = decoder.snapshot()
        assert isinstance(events[-1], ErrorEvent)
        assert kinds_and_texts(snapshot) == blocks
        assert not snapshot.blocks[0].complete
        assert_deltas_add_up(events)


# -- as far as it was read --------------------------------------------------------------------------------------------


@every_surface
def test_a_snapshot_is_of_all_that_was_fed(name: str) -> None:
    decoder = StreamDecoder(name)
    assert decoder.snapshot() == Snapshot()
    seen: list[Block] = []
    for chunk in cut(ANSWERS[name], 40):
        decoder.feed(chunk)
        assert decoder.snapshot() is decoder.snapshot()
        seen = list(decoder.snapshot().blocks)
    assert seen == list(decoded([ANSWERS[name]], name).blocks)


def test_half_a_call_is_never_handed_out() -> None:
    for name, body in (("anthropic", ANTHROPIC), ("openai-chat", CALLS)):
        for at in range(len(body)):
            decoder = StreamDecoder(name)
            decoder.feed(body[:at])
            before = decoder.snapshot().tool_calls
            decoder.close("cut")
            for call in (*before, *decoder.snapshot().tool_calls):
                assert json.loads(call.arguments) == {"a": 1}
            withheld = [block for block in decoder.snapshot().blocks if isinstance(block, ToolCallBlock)]
            assert {block.state for block in withheld} <= {"cut", "ready"}


CALLS = sse(
    [
        chat_call(0, id="c", name="f"),
        chat_call(0, '{"a"'),
        chat_call(0, ":1}"),
        chat(finish="tool_calls"),
        "[DONE]",
    ]
)


# -- started again ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["eof", "cut", None])
def test_an_answer_that_is_started_again_goes_on_counting(how: Any) -> None:
    whole = StreamDecoder("openai-chat").feed(CHAT)
    for provider in ("openai-chat", "auto"):
        decoder = StreamDecoder(provider)
        for at in range(0, len(CHAT), 11):
            told = decoder.feed(CHAT[:at])
            if decoder.ended:
                break
            if how is not None:
                decoder.close(how)
            events = decoder.restart("it broke off")
            assert [event.type for event in events][-1:] == (["restart"] if told else [])
            assert decoder.snapshot().blocks == ()
            assert (decoder.ended, decoder.snapshot().outcome) == (False, "open")
        decoder.restart("once more")
        blocks = sum(event.type == "block_start" for event in whole)
        assert [event.type for event in decoder.feed(CHAT)] == [event.type for event in whole]
        assert (decoder.snapshot().text, len(decoder.snapshot().blocks)) == ("Hello", blocks)
        assert decoder.snapshot().blocks[0].index > 5


def test_first_index_is_a_count() -> None:
    assert streamfold.OpenAIChatNormalizer(first_index=7).feed([CHAT_CHUNK])[1].index == 7  # type: ignore[union-attr]
    for wrong in (-1, True, "3"):
        with pytest.raises(UsageError, match="first_index"):
            streamfold.OpenAIChatNormalizer(first_index=wrong)  # type: ignore[arg-type]


CHAT_CHUNK = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}
