"""Errors as providers word them: every shape that was seen, and what it becomes on each surface."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamfold import ErrorEvent, Event, StreamDecoder, StreamError, fold
from tests.reading import as_text, json_of, read, rows
from tests.wires import Payload, chunk, completed, created, event, message_start

Facts = dict[str, Any]


def error_of(events: list[Event]) -> ErrorEvent:
    assert isinstance(events[-1], ErrorEvent)
    assert sum(isinstance(event, ErrorEvent) for event in events) == 1
    return events[-1]


def facts(error: ErrorEvent) -> Facts:
    """What the event says besides its defaults."""
    names = ("message", "code", "status", "retryable", "retry_after_ms", "request_id")
    assert (error.kind, error.fatal, error.offset) == ("provider", True, None)
    return {name: getattr(error, name) for name in names if getattr(error, name) not in (None, False)}


# A chunk in the middle of a Chat stream, and what it says.
CHAT: dict[str, tuple[Payload, Facts]] = {
    "OpenAI's object": (
        {"error": {"message": "slow", "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
        {"message": "slow", "code": "rate_limit_exceeded", "retryable": True},
    ),
    "without a code the type is the word": (
        {"error": {"message": "bad", "type": "invalid_request_error", "code": None}},
        {"message": "bad", "code": "invalid_request_error"},
    ),
    "an empty code is none": (
        {"error": {"message": "bad", "type": "server_error", "code": ""}},
        {"message": "bad", "code": "server_error", "retryable": True},
    ),
    "a number for a code is word and status (OpenRouter)": (
        {"error": {"code": 502, "message": "up", "metadata": {"provider_name": "x"}}},
        {"message": "up", "code": "502", "status": 502, "retryable": True},
    ),
    "a number beside a type is the status (llama.cpp)": (
        {"error": {"code": 400, "message": "long", "type": "exceed_context_size_error", "n_ctx": 9}},
        {"message": "long", "code": "exceed_context_size_error", "status": 400},
    ),
    "status_code (Groq)": (
        {
            "error": {
                "message": "Failed to call a function.",
                "type": "invalid_request_error",
                "code": "tool_use_failed",
                "failed_generation": "{",
                "status_code": 400,
            }
        },
        {"message": "Failed to call a function.", "code": "tool_use_failed", "status": 400},
    ),
    "a sentence (Venice)": ({"error": "no such model"}, {"message": "no such model"}),
    "a sentence, the code beside it (xAI)": (
        {"code": "invalid-argument", "error": "Incorrect API key provided."},
        {"message": "Incorrect API key provided.", "code": "invalid-argument"},
    ),
    "everything at the top (Mistral)": (
        {"object": "error", "message": "over", "type": "service_tier", "code": "3505", "raw_status_code": 429},
        {"message": "over", "code": "3505", "status": 429, "retryable": True},
    ),
    "beside an ordinary chunk": (
        {**chunk({"content": ""}, "error"), "error": {"code": 429, "message": "slow"}},
        {"message": "slow", "code": "429", "status": 429, "retryable": True},
    ),
    "Google's word": (
        {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE", "details": []}},
        {"message": "busy", "code": "UNAVAILABLE", "status": 503, "retryable": True},
    ),
    "no message: the code": (
        {"error": {"code": "server_error"}},
        {"message": "server_error", "code": "server_error", "retryable": True},
    ),
    "no message in the object, but beside it": (
        {"error": {"code": 500}, "message": "sorry"},
        {"message": "sorry", "code": "500", "status": 500, "retryable": True},
    ),
    "quota is not retryable though its status is": (
        {"error": {"message": "pay", "code": "insufficient_quota", "status": 429}},
        {"message": "pay", "code": "insufficient_quota", "status": 429},
    ),
    "how long to wait, in seconds": (
        {"error": {"message": "slow", "code": 429, "retry_after": 1.5}},
        {"message": "slow", "code": "429", "status": 429, "retryable": True, "retry_after_ms": 1500},
    ),
    "how long to wait, in milliseconds": (
        {"error": {"message": "slow", "code": 429}, "retry_after_ms": 20},
        {"message": "slow", "code": "429", "status": 429, "retryable": True, "retry_after_ms": 20},
    ),
    "the request's id": ({"error": {"message": "x"}, "request_id": "req_1"}, {"message": "x", "request_id": "req_1"}),
    "a list": ({"error": [{"msg": "x"}]}, {"message": '[{"msg":"x"}]'}),
    "half a surrogate pair": ({"error": {"message": "a\ud83d"}}, {"message": "a\ufffd"}),
}

ANTHROPIC: dict[str, tuple[Payload, Facts]] = {
    "overloaded": (
        {
            "type": "error",
            "error": {"details": None, "type": "overloaded_error", "message": "Overloaded"},
            "request_id": "req_x",
        },
        {"message": "Overloaded", "code": "overloaded_error", "retryable": True, "request_id": "req_x"},
    ),
    "an error without its object": ({"type": "error"}, {}),
    "a sentence": ({"type": "error", "error": "sorry"}, {"message": "sorry"}),
    "in the place of a stream": (
        {"error": {"type": "not_found_error", "message": "model"}},
        {"message": "model", "code": "not_found_error"},
    ),
}
TYPES: dict[str, bool] = {
    "overloaded_error": True,
    "api_error": True,
    "rate_limit_error": True,
    "timeout_error": True,
    "invalid_request_error": False,
    "authentication_error": False,
    "billing_error": False,
    "permission_error": False,
    "not_found_error": False,
    "conflict_error": False,
    "something_new": False,
}

NESTED: Payload = {
    "type": "error",
    "error": {"type": "server_error", "code": "server_error", "message": "sorry", "param": None},
}
FLAT: Payload = {"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}
FAILED = event(
    "failed", response={"status": "failed", "error": {"code": "server_error", "message": "sorry"}, "usage": None}
)
SORRY: Facts = {"message": "sorry", "code": "server_error", "retryable": True}
SLOW: Facts = {"message": "slow", "code": "rate_limit_exceeded", "retryable": True}

RESPONSES: dict[str, tuple[list[Any], Facts]] = {
    "nested": ([created(), NESTED], SORRY),
    "flat": ([created(), FLAT], SLOW),
    "failed alone": ([created(), FAILED], SORRY),
    "the pair is one error": ([created(), NESTED, FAILED], SORRY),
    "another payload after the error changes nothing": (
        [created(), FLAT, event("output_text.delta", output_index=0, delta="a"), FAILED],
        SLOW,
    ),
    "nor does a terminal that claims success": ([created(), FLAT, completed()], SLOW),
    "nor a payload that is no JSON": ([created(), FLAT, '{"type":'], SLOW),
    "nor one too deep": ([created(), FLAT, "[" * 300 + "]" * 300], SLOW),
    "nor JSON that is no object": ([created(), FLAT, "[]", completed()], SLOW),
    "failed without an error": (
        [created(), event("failed", response={"status": "failed", "error": None})],
        {"message": "the response failed"},
    ),
    "completed, yet its status is failed": (
        [event("completed", response={"status": "failed", "error": {"code": "server_error", "message": "sorry"}})],
        SORRY,
    ),
    "with a status, over WebSocket": (
        [{**NESTED, "status": 400}],
        {"message": "sorry", "code": "server_error", "status": 400, "retryable": True},
    ),
    "with nothing": ([{"type": "error"}], {}),
    "in the place of a stream": ([{"error": {"message": "sorry", "code": "server_error"}}], SORRY),
    "a response that did not stream, and failed": (
        [
            {
                "object": "response",
                "status": "failed",
                "error": {"code": "server_error", "message": "sorry"},
                "output": [],
            }
        ],
        SORRY,
    ),
}


@pytest.mark.parametrize(("payload", "wanted"), rows(CHAT))
def test_chat(payload: Payload, wanted: Facts) -> None:
    events = read("openai-chat", [chunk({"content": "a"}), payload, "[DONE]"])
    error = error_of(events)
    assert facts(error) == wanted
    assert error.raw is not None
    whole = payload.get("error", payload)
    assert error.raw.decoded() == json.loads(json.dumps(whole).replace("\\ud83d", "\\ufffd"))
    assert [event.type for event in events] == ["start", "block_start", "text_delta", "block_end", "error"]


@pytest.mark.parametrize(("payload", "wanted"), ANTHROPIC.values(), ids=ANTHROPIC.keys())
def test_anthropic(payload: Payload, wanted: Facts) -> None:
    error = error_of(read("anthropic", [message_start(), payload, {"type": "message_stop"}]))
    assert {**facts(error), **({} if wanted else {"message": ""})} == (wanted or {"message": ""})


@pytest.mark.parametrize(("code", "retryable"), TYPES.items())
def test_which_anthropic_errors_may_be_tried_again(code: str, retryable: bool) -> None:
    error = error_of(read("anthropic", [{"type": "error", "error": {"type": code, "message": "m"}}]))
    assert (error.code, error.retryable) == (code, retryable)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 425, 429, 500, 502, 503, 504, 529])
def test_which_statuses_may_be_tried_again(status: int) -> None:
    error = error_of(read("openai-chat", [{"error": {"message": "m", "code": status}}]))
    assert (error.status, error.code) == (status, str(status))
    assert error.retryable == (status >= 500 or status in (408, 409, 425, 429))


@pytest.mark.parametrize(("payloads", "wanted"), rows(RESPONSES))
def test_responses(payloads: list[Any], wanted: Facts) -> None:
    error = error_of(read("openai-responses", payloads))
    assert {**facts(error), **({} if wanted else {"message": ""})} == (wanted or {"message": ""})


def test_an_error_waits_for_the_payload_that_may_explain_it() -> None:
    decoder = StreamDecoder("openai-responses")
    decoder.feed_payload(created())
    assert decoder.feed_payload(NESTED) == []
    assert not decoder.ended
    events = decoder.feed_payload(FAILED)
    assert facts(error_of(events)) == SORRY
    assert decoder.ended


def test_a_sentinel_is_a_payload_that_explains_nothing() -> None:
    decoder = StreamDecoder("openai-responses")
    decoder.feed_payload(NESTED)
    assert facts(error_of(decoder.feed_payload("[DONE]"))) == SORRY


def test_a_fault_below_does_not_hide_what_the_provider_said() -> None:
    decoder = StreamDecoder("openai-responses", max_frame_bytes=200)
    decoder.feed(b"data: " + as_text(FLAT).encode() + b"\n\n")
    assert facts(error_of(decoder.feed(b"data: " + b"x" * 300))) == SLOW


@pytest.mark.parametrize("how", ["eof", "cut"])
def test_an_error_that_waits_comes_at_the_end(how: Any) -> None:
    assert facts(error_of(read("openai-responses", [created(), NESTED], how))) == SORRY


def test_an_error_that_waits_is_no_event_of_a_cancelled_stream() -> None:
    assert [event.type for event in read("openai-responses", [created(), NESTED], "cancel")] == ["start"]


def test_usage_of_a_failed_response_comes_before_the_error() -> None:
    failed = event(
        "failed", response={"error": {"code": "server_error", "message": "sorry"}, "usage": {"input_tokens": 5}}
    )
    events = read("openai-responses", [created(), NESTED, failed])
    assert [event.type for event in events] == ["start", "usage", "error"]


# -- bodies that are no stream ----------------------------------------------------------------------------------------

BODIES: dict[str, tuple[Any, Facts]] = {
    "OpenAI's object": (
        {"error": {"message": "m", "type": "t", "param": None, "code": "c"}},
        {"message": "m", "code": "c"},
    ),
    "xAI": ({"code": "invalid-argument", "error": "m"}, {"message": "m", "code": "invalid-argument"}),
    "Mistral": (
        {"object": "error", "message": "m", "type": "t", "code": "1500", "raw_status_code": 500},
        {"message": "m", "code": "1500", "status": 500, "retryable": True},
    ),
    "a detail (Mistral's auth, Codex)": ({"detail": "Unauthorized"}, {"message": "Unauthorized"}),
    "details in a list (FastAPI)": ({"detail": [{"msg": "m"}]}, {"message": '[{"msg":"m"}]'}),
    "Cohere": ({"id": "x", "message": "m"}, {"message": "m"}),
    "Venice": ({"error": "m"}, {"message": "m"}),
    "Doubleword": (
        {"code": 400, "type": "Bad Request", "message": "m"},
        {"message": "m", "code": "Bad Request", "status": 400},
    ),
    "OpenRouter": (
        {"error": {"code": 401, "message": "m"}, "user_id": "u", "metadata": {"previous_errors": []}},
        {"message": "m", "code": "401", "status": 401},
    ),
    "Anthropic": (
        {"type": "error", "error": {"type": "not_found_error", "message": "m"}, "request_id": "r"},
        {"message": "m", "code": "not_found_error", "request_id": "r"},
    ),
}


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "auto"])
@pytest.mark.parametrize(("body", "wanted"), BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("indent", [None, 1])
def test_an_error_body_in_the_place_of_a_stream(provider: str, body: Any, wanted: Facts, indent: int | None) -> None:
    data = json.dumps(body, indent=indent).encode()
    for chunks in ([data], [data[at : at + 1] for at in range(len(data))]):
        answer = fold(chunks, provider)
        assert answer.outcome == "failed"
        assert answer.error is not None
        told = {name: value for name, value in facts(answer.error).items() if name != "request_id"}
        assert told == {name: value for name, value in wanted.items() if name != "request_id"}
        with pytest.raises(StreamError) as caught:
            answer.raise_for_error()
        assert caught.value.event is answer.error


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "auto"])
def test_the_id_of_the_request_is_for_the_providers_support(provider: str) -> None:
    body = {"type": "error", "error": {"type": "not_found_error", "message": "m"}, "request_id": "r"}
    answer = fold([json.dumps(body).encode()], provider)
    assert answer.error is not None
    assert answer.error.request_id == "r"


def test_the_error_keeps_the_providers_own_object() -> None:
    error = error_of(read("openai-chat", [{"error": {"message": "m", "metadata": {"a": [1]}}}]))
    assert error.raw == json_of({"message": "m", "metadata": {"a": [1]}})
