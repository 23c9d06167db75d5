"""InvokeModelWithResponseStream: every model's own format, and other dialects, inside ``chunk`` payloads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import streamfold
from streamfold import (
    BedrockInvokeNormalizer,
    BlockEnd,
    BlockStart,
    Event,
    Start,
    TextBlock,
    TextDelta,
    Usage,
)
from streamfold.events import StopReason
from streamfold.providers._aws import unwrapped
from tests.reading import TRUNCATED, alike, done, raw, read, rows, usage
from tests.wires import ANTHROPIC, CHAT, Payload, Stream
from tests.wires_more import CONVERSE, METRICS, TEXTS, invoke_bytes, part

S = Start("bedrock-invoke")
COUNTED = usage(METRICS, input_tokens=5, output_tokens=6, total_tokens=11)


def text(*pieces: str, start: Start = S) -> list[Event]:
    deltas = [TextDelta(0, piece) for piece in pieces]
    return [start, BlockStart(0, "text"), *deltas]


def ended(whole: str, reason: StopReason | None, word: str | None) -> list[Event]:
    return [BlockEnd(0, TextBlock(0, whole)), done(reason, word)]


GUARDED = TEXTS["Titan behind a guardrail"][0]
TITAN_COUNTS = {"totalOutputTextTokenCount": 6, "inputTextTokenCount": 5}
EMPTY = {"generation": "", "stop_reason": None, "generation_token_count": None}


def llama(tokens_in: int, tokens_out: int) -> Usage:
    members = {"prompt_token_count": tokens_in, "generation_token_count": tokens_out}
    return usage(members, input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out)


STREAMS: dict[str, tuple[list[Any], list[Event]]] = {
    "Titan": (
        TEXTS["Titan"],
        [
            *text("Hel", "lo"),
            usage(
                {"inputTextTokenCount": 5, "totalOutputTextTokenCount": 6, **METRICS},
                input_tokens=5,
                output_tokens=6,
                total_tokens=11,
            ),
            *ended("Hello", "end", "FINISH"),
        ],
    ),
    "a guardrail that steps in refuses, and its trace is kept": (
        [GUARDED],
        [
            *text("Blocked"),
            usage(
                {"inputTextTokenCount": 6.0, "totalOutputTextTokenCount": 3.0},
                input_tokens=6,
                output_tokens=3,
                total_tokens=9,
            ),
            raw(GUARDED),
            *ended("Blocked", "refusal", "INTERVENED"),
        ],
    ),
    "Llama counts as it goes": (
        TEXTS["Llama"],
        [
            S,
            llama(5, 1),
            *text("Hi")[1:],
            llama(5, 2),
            llama(5, 3),
            *ended("Hi", "length", "length"),
        ],
    ),
    "Mistral": (TEXTS["Mistral"], [*text("Hi"), COUNTED, *ended("Hi", "end", "stop")]),
    "DeepSeek": (TEXTS["DeepSeek"], [*text("Hi", "!"), *ended("Hi!", "end", "stop")]),
    "Claude's old text": (TEXTS["Claude's text"], [*text(" Hi", "."), *ended(" Hi.", "end", "stop_sequence")]),
    "Cohere's Command": (
        TEXTS["Cohere's Command"],
        [*text("Hi", start=Start("bedrock-invoke", "g")), *ended("Hi", "end", "COMPLETE")],
    ),
    "Cohere's Command in pieces": (
        TEXTS["Cohere's Command in pieces"],
        [*text("Hi"), COUNTED, *ended("Hi", "length", "MAX_TOKENS")],
    ),
    "the service's counts are an end, where no reason is named": (
        [{"generation": "Hi"}, {"amazon-bedrock-invocationMetrics": METRICS}],
        [*text("Hi"), COUNTED, BlockEnd(0, TextBlock(0, "Hi")), streamfold.Done()],
    ),
    "a word that nobody knows": (
        [{"completion": "a", "stop_reason": "new"}],
        [*text("a"), *ended("a", "other", "new")],
    ),
    "an empty piece comes out as raw": (
        [EMPTY, {"generation": "a", "stop_reason": "stop"}],
        [S, raw(EMPTY), *text("a")[1:], *ended("a", "end", "stop")],
    ),
    "no reason and no counts are no end": (
        [{"outputText": "a", "completionReason": None}],
        [*text("a"), BlockEnd(0, TextBlock(0, "a", complete=False)), TRUNCATED],
    ),
    "a payload of no model": ([{"a": 1}], [S, raw({"a": 1}), TRUNCATED]),
}


@pytest.mark.parametrize(("payloads", "events"), rows(STREAMS))
def test_streams(payloads: list[Any], events: list[Event]) -> None:
    assert read("bedrock-text", payloads) == events


# -- inside chunks ----------------------------------------------------------------------------------------------------

DIALECTS: dict[str, tuple[str, Stream]] = {
    **{f"{name} of Anthropic": ("anthropic", stream) for name, stream in ANTHROPIC.items()},
    **{f"{name} of Chat": ("openai-chat", stream) for name, stream in CHAT.items()},
    **{f"{name} of Nova": ("bedrock-converse", stream) for name, stream in CONVERSE.items()},
    **{name: ("bedrock-text", stream) for name, stream in TEXTS.items()},
}


@pytest.mark.parametrize("provider", ["bedrock-invoke", "auto"])
@pytest.mark.parametrize(("dialect", "stream"), DIALECTS.values(), ids=DIALECTS.keys())
def test_a_model_speaks_its_dialect_inside_chunks(dialect: str, stream: Stream, provider: str) -> None:
    wanted = read(dialect, stream, call_id=str)
    assert alike(read(provider, [part(payload) for payload in stream], call_id=str)) == alike(wanted)


@pytest.mark.parametrize("size", [1, 50, 4096])
def test_in_its_framing(size: int) -> None:
    body = invoke_bytes(ANTHROPIC["text"])
    chunks = [body[at : at + size] for at in range(0, len(body), size)]
    for provider in ("bedrock-anthropic", "bedrock-invoke", "auto"):
        answer = streamfold.fold(chunks, provider)
        assert answer.surface == "anthropic"
        assert answer.blocks == streamfold.fold(ANTHROPIC["text"], "anthropic", framing="messages").blocks


def test_a_client_that_has_decoded_the_framing_can_be_read() -> None:
    body = [{"chunk": {"bytes": json.dumps(payload).encode()}} for payload in ANTHROPIC["text"]]
    with streamfold.iter_unified(body, "bedrock-anthropic", framing="messages") as stream:
        assert alike(stream) == alike(read("anthropic", ANTHROPIC["text"]))


class ClientStream:
    """What boto3 hands out: iterated for dicts, closed, and raising what the service sends for an exception."""

    def __init__(self, events: list[Any], failure: Exception | None = None) -> None:
        self.events, self.failure, self.closed = events, failure, 0

    def __iter__(self) -> Iterator[Any]:
        yield from self.events
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        self.closed += 1


def test_the_stream_of_a_client_is_a_source() -> None:
    source = ClientStream(CONVERSE["reasoning"])
    answer = streamfold.fold(source, "bedrock-converse", framing="messages")
    assert (answer.text, answer.outcome, source.closed) == ("Yes", "complete", 1)


def test_what_a_client_raises_comes_through() -> None:
    source, answer = ClientStream(CONVERSE["text"][:3], OSError("throttled")), streamfold.StreamAccumulator()
    with pytest.raises(OSError, match="throttled"):
        streamfold.fold(source, "bedrock-converse", framing="messages", into=answer)
    assert answer.snapshot().text == "Hello"
    assert answer.snapshot().error is not None
    assert source.closed == 1


UNWRAPPED: dict[str, tuple[Any, Any]] = {
    "on the wire": (b'{"bytes":"e30=","p":"ab"}', b"{}"),
    "as text": ('{"bytes":"e30="}', b"{}"),
    "as an object": ({"bytes": "e30="}, b"{}"),
    "as a client hands it out": ({"chunk": {"bytes": b"{}"}}, b"{}"),
    "padding first": (b'{"p":"ab","bytes":"e30="}', b"{}"),
    "no base64": (b'{"bytes":"e30"}', b'{"bytes":"e30"}'),
    "no object inside": (b'{"bytes":"QUJD"}', b'{"bytes":"QUJD"}'),
    "bytes that are no text": (b'{"bytes":5}', b'{"bytes":5}'),
    "no JSON": (b'{"bytes":', b'{"bytes":'),
    "of anybody else": (b'{"a":"bytes"}', b'{"a":"bytes"}'),
    "a chunk that is none": ({"chunk": 5}, {"chunk": 5}),
    "deep": (b'{"a":' + b"[" * 5000 + b',"bytes"', b'{"a":' + b"[" * 5000 + b',"bytes"'),
}


@pytest.mark.parametrize(("payload", "inner"), UNWRAPPED.values(), ids=UNWRAPPED.keys())
def test_what_is_inside(payload: Any, inner: Any) -> None:
    assert unwrapped(payload) == inner


def test_a_payload_that_nobody_knows_comes_out_as_it_is_inside() -> None:
    unknown: Payload = {"model": "of tomorrow"}
    events = BedrockInvokeNormalizer().feed([part(unknown)] * 9)
    assert alike(events) == alike([Start("unknown"), *[raw(unknown)] * 9])
