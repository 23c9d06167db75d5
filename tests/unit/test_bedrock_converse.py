"""ConverseStream: every event, block and delta of the service's model, and the servers that send it otherwise."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from streamfold import (
    BedrockConverseNormalizer,
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    MediaBlock,
    MediaDelta,
    ReasoningBlock,
    ReasoningDelta,
    Restart,
    Start,
    StreamDecoder,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    ToolResultBlock,
    Usage,
)
from streamfold.events import StopReason
from tests.reading import ORPHAN, TRUNCATED, done, fold, json_of, raw, read, rows, usage
from tests.wires import Payload
from tests.wires_more import (
    CITED,
    CONVERSE,
    MESSAGE_START,
    binary,
    block_delta,
    block_start,
    block_stop,
    converse_bytes,
    message_stop,
    metadata,
    named,
    texts,
)

S = Start("bedrock-converse")
OVER = [message_stop()]
END = done("end", "end_turn")
CALL = block_start(0, toolUse={"toolUseId": "t", "name": "add"})


def said(index: int, whole: str, *citations: Citation, complete: bool = True) -> BlockEnd:
    return BlockEnd(index, TextBlock(index, whole, citations, complete=complete))


def text(index: int, *pieces: str) -> list[Event]:
    deltas = [TextDelta(index, piece) for piece in pieces]
    return [BlockStart(index, "text"), *deltas, said(index, "".join(pieces))]


def thought(index: int, whole: str, **members: Any) -> BlockEnd:
    return BlockEnd(index, ReasoningBlock(index, whole, (whole,) if whole else (), **members))


def called(index: int, arguments: str, **members: Any) -> list[Event]:
    """The end of a call that is ready."""
    block = ToolCallBlock(index, "t", "add", arguments, state="ready", **members)
    return [ToolCallDone(index, "t", "add", arguments), BlockEnd(index, block)]


COUNTED = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
CITATION = Citation(0, "https://example.org/p", "policy", "20 days of leave", raw=json_of(CITED))
RESULT = block_start(0, toolResult={"toolUseId": "s", "type": "nova_grounding_result", "status": "error"})
SIGNED = block_delta(0, reasoningContent={"signature": "c2ln"})
REDACTED = block_delta(0, reasoningContent={"redactedContent": "QQ=="})
FOUND = block_delta(0, toolResult=[{"text": "a"}])
AND_MORE = block_delta(0, toolResult=[{"json": {"b": 1}}])
MALFORMED = message_stop("malformed_tool_use")
HALF_BLOB = block_delta(0, reasoningContent={"redactedContent": "Q"})
EMPTY_DELTAS = [
    block_delta(0, reasoningContent={}),
    block_delta(0, citation="s"),
    block_delta(0, image={"source": {}}),
    block_delta(0, image={"error": {"message": "m"}}),
]
NO_INPUT = block_delta(0, toolUse={"input": ""})
LOST = block_delta(7, toolUse={"input": "{"})
NOTHING = block_start(0)
UNKNOWN = {"contentBlockIndex": 0, "delta": {"video": {}}}

STREAMS: dict[str, tuple[list[Any], list[Event]]] = {
    "text has no start of its own": (
        [MESSAGE_START, block_delta(0, text="Hel"), block_delta(0, text="lo"), block_stop(0), *OVER],
        [S, *text(0, "Hel", "lo"), END],
    ),
    "text whose start says nothing": (
        [NOTHING, block_delta(0, text="a"), block_stop(0), *OVER],
        [S, raw(NOTHING, name="message"), *text(0, "a"), END],
    ),
    "an empty text before reasoning opens nothing": (
        [block_delta(0, text=""), block_delta(0, reasoningContent={"text": "Hm"}), block_stop(0), *OVER],
        [
            S,
            raw(block_delta(0, text=""), name="message"),
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm"),
            thought(0, "Hm"),
            END,
        ],
    ),
    "a signature belongs to its block, in pieces too": (
        [block_delta(0, reasoningContent={"text": "Hm"}), SIGNED, SIGNED, block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            ReasoningDelta(0, "Hm"),
            raw(SIGNED, 0, "message"),
            raw(SIGNED, 0, "message"),
            thought(0, "Hm", signature="c2lnc2ln"),
            END,
        ],
    ),
    "redacted reasoning is one blob, though it comes in pieces": (
        [REDACTED, REDACTED, block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            raw(REDACTED, 0, "message"),
            raw(REDACTED, 0, "message"),
            thought(0, "", encrypted="QUE=", redacted=True),
            END,
        ],
    ),
    "a call": (
        [CALL, block_delta(0, toolUse={"input": '{"x":1}'}), block_stop(0), message_stop("tool_use")],
        [
            S,
            ToolCallStart(0, "t", "add"),
            ToolCallDelta(0, "t", '{"x":1}'),
            *called(0, '{"x":1}'),
            done("tool_use", "tool_use"),
        ],
    ),
    "a call without arguments is whole": (
        [CALL, NO_INPUT, block_stop(0), message_stop("tool_use")],
        [S, ToolCallStart(0, "t", "add"), raw(NO_INPUT, 0, "message"), *called(0, "{}"), done("tool_use", "tool_use")],
    ),
    "one before another block, too": (
        [CALL, block_stop(0), block_delta(1, text="a"), block_stop(1), message_stop("max_tokens")],
        [S, ToolCallStart(0, "t", "add"), *called(0, "{}"), *text(1, "a"), done("length", "max_tokens")],
    ),
    "one that the limit of tokens cut before its first piece is not": (
        [CALL, block_stop(0), message_stop("max_tokens")],
        [
            S,
            ToolCallStart(0, "t", "add"),
            ToolCallDone(0, "t", "add", "", False),
            BlockEnd(0, ToolCallBlock(0, "t", "add", "", state="invalid", complete=False)),
            done("length", "max_tokens"),
        ],
    ),
    "a call that never stops is cut": (
        [CALL, block_delta(0, toolUse={"input": "{"}), message_stop("malformed_tool_use")],
        [
            S,
            ToolCallStart(0, "t", "add"),
            ToolCallDelta(0, "t", "{"),
            BlockEnd(0, ToolCallBlock(0, "t", "add", "{", state="cut", complete=False)),
            done("other", "malformed_tool_use"),
        ],
    ),
    "a piece of input that no call waits for": (
        [LOST, *OVER],
        [S, raw(LOST, name="message"), ORPHAN, END],
    ),
    "a tool that the service runs, by its kind": (
        [
            block_start(0, toolUse={"toolUseId": "s", "name": "nova_grounding", "type": "server_tool_use"}),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            ToolCallStart(0, "s", "nova_grounding", "web_search", "provider"),
            ToolCallDone(0, "s", "nova_grounding", "{}", executor="provider"),
            BlockEnd(0, ToolCallBlock(0, "s", "nova_grounding", "{}", "web_search", "provider", "provider")),
            END,
        ],
    ),
    "and its result, which comes by deltas": (
        [RESULT, FOUND, AND_MORE, block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "tool_result"),
            raw(FOUND, 0, "message"),
            raw(AND_MORE, 0, "message"),
            BlockEnd(
                0,
                ToolResultBlock(
                    0, "s", "nova_grounding_result", json_of([{"text": "a"}, {"json": {"b": 1}}]), is_error=True
                ),
            ),
            END,
        ],
    ),
    "a citation before its text": (
        [block_delta(0, citation=CITED), block_delta(0, text="20 days"), block_stop(0), *OVER],
        [S, BlockStart(0, "text"), CITATION, TextDelta(0, "20 days"), said(0, "20 days", CITATION), END],
    ),
    "a citation that is all there is of its block": (
        [block_delta(0, text="a"), block_stop(0), block_delta(1, citation=CITED), block_stop(1), *OVER],
        [
            S,
            *text(0, "a"),
            BlockStart(1, "text"),
            msgspec.structs.replace(CITATION, index=1),
            said(1, "", msgspec.structs.replace(CITATION, index=1)),
            END,
        ],
    ),
    "what a guardrail puts in the place of an answer is its text": (
        [block_delta(0, text="Not here."), block_stop(0), message_stop("guardrail_intervened"), metadata()],
        [
            S,
            *text(0, "Not here."),
            usage(COUNTED, input_tokens=3, output_tokens=4, total_tokens=7),
            done("refusal", "guardrail_intervened"),
        ],
    ),
    "an image": (
        [
            block_start(0, image={"format": "png"}),
            block_delta(0, image={"source": {"bytes": "QUJD"}}),
            block_stop(0),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "media"),
            MediaDelta(0, "image/png", b"ABC"),
            BlockEnd(0, MediaBlock(0, "image/png", b"ABC")),
            END,
        ],
    ),
    "an image that lies elsewhere": (
        [block_delta(0, image={"source": {"s3Location": {"uri": "s3://b/i"}}}), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "media"),
            MediaDelta(0, None, url="s3://b/i"),
            BlockEnd(0, MediaBlock(0, url="s3://b/i")),
            END,
        ],
    ),
    "a delta of another kind opens a block of its own": (
        [block_delta(0, reasoningContent={"text": "Hm"}), block_delta(0, text="a"), block_stop(0), *OVER],
        [S, BlockStart(0, "reasoning"), ReasoningDelta(0, "Hm"), thought(0, "Hm"), *text(1, "a"), END],
    ),
    "blocks interleave": (
        [
            block_delta(0, text="a"),
            block_delta(1, text="b"),
            block_delta(0, text="c"),
            block_stop(0),
            block_stop(1),
            *OVER,
        ],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockStart(1, "text"),
            TextDelta(1, "b"),
            TextDelta(0, "c"),
            said(0, "ac"),
            said(1, "b"),
            END,
        ],
    ),
    "a block without its stop broke off": (
        [block_delta(0, text="a"), *OVER],
        [S, BlockStart(0, "text"), TextDelta(0, "a"), said(0, "a", complete=False), END],
    ),
    "deltas that say nothing": (
        [*EMPTY_DELTAS, *OVER],
        [S, *[raw(delta, name="message") for delta in EMPTY_DELTAS], END],
    ),
    "a payload that is no object": (["5", *OVER], [S, raw("5"), END]),
    "a blob whose pieces are no base64": (
        [HALF_BLOB, HALF_BLOB, block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "reasoning"),
            *[raw(HALF_BLOB, 0, "message")] * 2,
            thought(0, "", encrypted="QQ", redacted=True),
            END,
        ],
    ),
    "a delta that nobody knows": ([UNKNOWN, *OVER], [S, raw(UNKNOWN, name="message"), END]),
    "an event that nobody knows": ([{"new": {"a": 1}}, *OVER], [S, raw({"new": {"a": 1}}), END]),
    "events that stand bare, told by their members": (
        [
            {"role": "assistant", "p": "ab"},
            {"contentBlockIndex": 0, "delta": {"text": "a"}, "p": "abc"},
            {"contentBlockIndex": 0},
            {"stopReason": "end_turn"},
            {"usage": {"inputTokens": 1}, "metrics": {"latencyMs": 1}},
        ],
        [S, *text(0, "a"), usage({"inputTokens": 1}, input_tokens=1), END],
    ),
    "usage follows the stop, and done the end of input": (
        [*OVER, metadata()],
        [S, usage(COUNTED, input_tokens=3, output_tokens=4, total_tokens=7), END],
    ),
    "usage before the stop": (
        [metadata({"outputTokens": 4}), *OVER],
        [S, usage({"outputTokens": 4}, output_tokens=4), END],
    ),
    "metadata with a trace comes out as raw too": (
        [*OVER, {"metadata": {"trace": {"guardrail": {}}}}],
        [S, raw({"metadata": {"trace": {"guardrail": {}}}}, name="message"), END],
    ),
    "the stop sequence, where the request asked for it": (
        [message_stop("stop_sequence", additionalModelResponseFields={"stop_sequence": "END"})],
        [
            S,
            raw(message_stop("stop_sequence", additionalModelResponseFields={"stop_sequence": "END"}), name="message"),
            done("end", "stop_sequence", "END"),
        ],
    ),
    "a message that starts again": (
        [MESSAGE_START, block_delta(0, text="a"), MESSAGE_START, block_delta(0, text="b"), block_stop(0), *OVER],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            said(0, "a", complete=False),
            Restart("messageStart"),
            *text(1, "b"),
            END,
        ],
    ),
    "no stop is no end": (
        [block_delta(0, text="a"), block_stop(0), metadata({"inputTokens": 1})],
        [S, *text(0, "a"), usage({"inputTokens": 1}, input_tokens=1), TRUNCATED],
    ),
    "an exception ends the answer": (
        [block_delta(0, text="a"), {"throttlingException": {"message": "slow"}}],
        [
            S,
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            said(0, "a", complete=False),
            ErrorEvent(
                "provider", "slow", "throttlingException", 429, retryable=True, raw=json_of({"message": "slow"})
            ),
        ],
    ),
}


@pytest.mark.parametrize(("payloads", "events"), rows(STREAMS))
def test_streams(payloads: list[Any], events: list[Event]) -> None:
    assert read("bedrock-converse", payloads) == events


STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "other",
    "malformed_tool_use": "other",
    "something_new": "other",
}


@pytest.mark.parametrize(("word", "reason"), STOPS.items())
def test_stop_reasons(word: str, reason: StopReason) -> None:
    assert read("bedrock-converse", [message_stop(word)]) == [S, done(reason, word)]


def test_calls_of_a_turn_that_is_malformed_must_not_run() -> None:
    answer = fold(read("bedrock-converse", [CALL, block_delta(0, toolUse={"input": "{}"}), block_stop(0), MALFORMED]))
    assert answer.tool_calls == ()
    assert [call.state for call in answer.withheld_calls] == ["void"]


def test_a_stop_without_a_reason_is_another() -> None:
    assert read("bedrock-converse", [message_stop(None)])[-1] == done("other", None)


EXCEPTIONS = {
    # name, status, whether the same request may succeed later
    "validationException": (400, False),
    "modelTimeoutException": (408, True),
    "modelStreamErrorException": (424, True),
    "throttlingException": (429, True),
    "internalServerException": (500, True),
    "serviceUnavailableException": (503, True),
    "brandNewException": (None, False),
}


@pytest.mark.parametrize(("name", "fact"), EXCEPTIONS.items())
def test_exceptions(name: str, fact: tuple[int | None, bool]) -> None:
    error = read("bedrock-converse", [{name: {"message": "m"}}])[-1]
    assert isinstance(error, ErrorEvent)
    assert (error.kind, error.code, error.message) == ("provider", name, "m")
    assert (error.status, error.retryable) == fact


USAGES: dict[str, tuple[Payload, dict[str, int]]] = {
    "cached input is counted beside": (
        {
            "inputTokens": 3,
            "outputTokens": 4,
            "cacheReadInputTokens": 10,
            "cacheWriteInputTokens": 20,
            "totalTokens": 37,
        },
        {"input_tokens": 33, "cache_read_tokens": 10, "cache_write_tokens": 20, "output_tokens": 4, "total_tokens": 37},
    ),
    "unless the total says that it is inside": (
        {"inputTokens": 30, "outputTokens": 4, "cacheReadInputTokens": 10, "totalTokens": 34},
        {"input_tokens": 30, "cache_read_tokens": 10, "output_tokens": 4, "total_tokens": 34},
    ),
    "what no model lists is kept as it came": (
        {**COUNTED, "serverToolUsage": {"webSearches": 1}},
        {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    ),
    "under the names that double them": (
        {"inputTokens": 3, "outputTokens": 4, "cacheReadInputTokenCount": 0, "cacheWriteInputTokenCount": 0},
        {"input_tokens": 3, "cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": 4, "total_tokens": 7},
    ),
    "once where both names stand there": (
        {"inputTokens": 3, "cacheReadInputTokens": 5, "cacheReadInputTokenCount": 5},
        {"input_tokens": 8, "cache_read_tokens": 5},
    ),
}


@pytest.mark.parametrize(("members", "counts"), rows(USAGES))
def test_usage(members: Payload, counts: dict[str, int]) -> None:
    events = read("bedrock-converse", [message_stop(), metadata(members)])
    assert [event for event in events if isinstance(event, Usage)] == [usage(members, **counts)]


def test_usage_that_says_nothing_is_raw() -> None:
    nothing = metadata({"serverToolUsage": {}})
    assert read("bedrock-converse", [message_stop(), nothing]) == [S, raw(nothing, name="message"), END]


def test_padding_changes_nothing() -> None:
    """``p`` stands in nine of ten payloads, of random length."""
    stream = CONVERSE["reasoning"]
    padded = [
        {name: {**members, "p": "abcdefgh"[:n]} for name, members in event.items()} for n, event in enumerate(stream)
    ]

    def told(payloads: list[Payload]) -> list[Event]:
        return [event for event in read("bedrock-converse", payloads) if event.type != "raw"]

    assert told(padded) == told(stream)


# -- in its framing ---------------------------------------------------------------------------------------------------

BODY = converse_bytes([MESSAGE_START, block_delta(0, text="a"), block_stop(0), message_stop(), metadata()])


def decoded(body: bytes, provider: str = "auto", **settings: Any) -> list[Event]:
    decoder = StreamDecoder(provider, **settings)
    return [*decoder.feed(body), *decoder.close()]


@pytest.mark.parametrize("provider", ["bedrock-converse", "auto"])
@pytest.mark.parametrize("framing", ["auto", "eventstream"])
def test_the_name_of_an_event_is_a_header(provider: str, framing: Any) -> None:
    events = decoded(BODY, provider, framing=framing)
    assert [event.type for event in events] == [
        *("start", "block_start", "text_delta", "block_end", "usage", "done"),
    ]


FAILURES: dict[str, tuple[bytes, ErrorEvent]] = {
    "an exception": (
        named("throttlingException", b'{"message":"slow"}', "exception"),
        ErrorEvent("provider", "slow", "throttlingException", 429, retryable=True, raw=json_of({"message": "slow"})),
    ),
    "what the model said, where the exception says nothing": (
        named("modelStreamErrorException", b'{"originalStatusCode":500,"originalMessage":"boom"}', "exception"),
        ErrorEvent(
            "provider",
            "boom",
            "modelStreamErrorException",
            424,
            retryable=True,
            raw=json_of({"originalStatusCode": 500, "originalMessage": "boom"}),
        ),
    ),
    "an error that no model lists": (
        binary(texts({":message-type": "error", ":error-code": "InternalError", ":error-message": "boom"})),
        ErrorEvent(
            "provider",
            "boom",
            "InternalError",
            raw=json_of({"code": "InternalError", "status": None, "message": "boom"}),
        ),
    ),
}


@pytest.mark.parametrize("provider", ["bedrock-converse", "bedrock-anthropic", "bedrock-invoke", "auto", "openai-chat"])
@pytest.mark.parametrize(("message", "error"), rows(FAILURES))
def test_a_failure_is_the_last_message_whatever_the_dialect(message: bytes, error: ErrorEvent, provider: str) -> None:
    assert decoded(message + BODY, provider)[1:] == [error]


def test_a_failure_is_paired_with_its_frame() -> None:
    decoder = StreamDecoder("bedrock-converse")
    pairs = [*decoder.trace(BODY[:100]), *decoder.trace(BODY[100:] + named("validationException", b"{}", "exception"))]
    frame, events = pairs[-1]
    assert frame is not None
    assert (frame.event, frame.data) == ("validationException", "{}")
    assert [event.type for event in events] == ["error"]
    assert decoder.trace(BODY) == []  # nothing is read behind it


def test_damage_is_told_with_its_place() -> None:
    first = len(converse_bytes([MESSAGE_START]))
    damaged = BODY[: first + 40] + b"\0" + BODY[first + 41 :]
    error = decoded(damaged)[-1]
    assert isinstance(error, ErrorEvent)
    assert (error.kind, error.code, error.offset) == ("protocol", "checksum", first)


def test_a_body_that_is_an_error_is_read_as_one() -> None:
    for framing in ("auto", "eventstream"):
        error = decoded(b'{"message":"no such model"}', "bedrock-converse", framing=framing)[-1]
        assert isinstance(error, ErrorEvent)
        assert (error.kind, error.message) == ("provider", "no such model")


def test_clients_hand_out_blobs_as_bytes() -> None:
    made = BedrockConverseNormalizer()
    events = made.feed(
        [
            block_delta(0, reasoningContent={"redactedContent": b"ABC"}),
            block_stop(0),
            block_delta(1, image={"source": {"bytes": b"ABC"}}),
            block_stop(1),
            message_stop(),
        ]
    )
    ends = [event.block for event in [*events, *made.close()] if isinstance(event, BlockEnd)]
    assert ends == [
        ReasoningBlock(0, "", (), None, "QUJD", redacted=True),
        MediaBlock(1, None, b"ABC"),
    ]


def test_done_waits_for_the_end_of_input() -> None:
    made = BedrockConverseNormalizer()
    assert not [event for event in made.feed([message_stop(), metadata()]) if isinstance(event, Done)]
    assert [event.type for event in made.close()] == ["done"]


def test_results_in_many_pieces_cost_what_they_weigh() -> None:
    def cost(pieces: int) -> float:
        stream = [RESULT, *[FOUND] * pieces, block_stop(0)]
        taken: list[float] = []
        for _ in range(3):
            made = BedrockConverseNormalizer(raw="none")
            started = time.thread_time()
            made.feed(stream)
            taken.append(time.thread_time() - started)
        return min(taken)

    assert cost(32_000) < 32 * cost(2_000)  # quadratic: two hundred and fifty-six times


def test_a_result_of_the_service_without_its_start() -> None:
    end = read("bedrock-converse", [FOUND, block_stop(0), *OVER])[-2]
    assert end == BlockEnd(0, ToolResultBlock(0, None, "tool_result", json_of([{"text": "a"}])))


def test_places_are_told() -> None:
    first = len(converse_bytes([MESSAGE_START]))
    for ahead in (b"", b"\n \n"):
        error = decoded(ahead + converse_bytes([MESSAGE_START]) + named("metadata", b"no JSON"), "bedrock-converse")[-1]
        assert isinstance(error, ErrorEvent)
        assert (error.code, error.offset) == ("bad_json", first + len(ahead))
