"""Errors as providers word them: one reader for all shapes, one table of what may be tried again."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec

from streamfold.events import ErrorEvent
from streamfold.payloads import as_text, compact, sanitize

__all__ = ["error_body", "no_body", "provider_error", "truncated", "with_status"]

Members = dict[str, Any]

_RETRYABLE_STATUS: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_RETRYABLE_CODE: Final = frozenset(
    {
        # Anthropic
        "overloaded_error", "api_error", "rate_limit_error", "timeout_error",
        # OpenAI and its dialects
        "server_error", "internal_server_error", "internal_error", "rate_limit_exceeded", "service_unavailable",
        "service_unavailable_error", "overloaded", "timeout", "engine_overloaded", "provider_unavailable",
        "too_many_requests", "server_is_overloaded", "slow_down", "vector_store_timeout", "gateway_timeout",
        "bad_gateway", "request_timeout",
        # Google
        "UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED",
    }
)  # fmt: skip
_FINAL_CODE: Final = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "invalid_api_key"})
"""Words that no waiting helps, though they come with status 429."""


def provider_error(error: object, payload: Members) -> ErrorEvent:
    """The event for an error that a provider reports.

    Args:
        error: The error itself: an object or a sentence.
        payload: What it stands in; its members fill what the error leaves out.
    """
    members = cast("Members", error) if isinstance(error, dict) else {}
    code, status = _code_and_status(members, payload)
    retryable = (status in _RETRYABLE_STATUS or code in _RETRYABLE_CODE) and code not in _FINAL_CODE
    return ErrorEvent(
        "provider",
        _message(error, members, payload) or code or "the provider reports an error without a message",
        code,
        status,
        True,
        retryable,
        _retry_after_ms(members, payload),
        None,
        _text(members.get("request_id")) or _text(payload.get("request_id")),
        compact(error if error else payload),
    )


def error_body(payload: Members) -> ErrorEvent | None:
    """The error that a body which is no stream carries, None if it carries none.

    Shapes seen: ``{"error": {…}}``, ``{"error": "…", "code": …}`` (xAI), ``{"message": …}`` (Cohere, Mistral,
    Doubleword), ``{"detail": …}`` (FastAPI, Codex), ``{"type": "error", "error": {…}}`` (Anthropic).
    """
    error = payload.get("error")
    if error:
        return provider_error(error, payload)
    if _text(payload.get("message")) or payload.get("detail"):
        return provider_error(None, payload)
    return None


def with_status(error: ErrorEvent, status: int, retry_after_ms: int | None, code: str | None = None) -> ErrorEvent:
    """The error of a response whose HTTP status said so before its body did.

    Args:
        error: What the body says.
        status: 400 or more.
        retry_after_ms: What the response's headers ask for.
        code: The word that they have for it, which counts where the body has none.
    """
    if code is not None and error.code in (None, str(status)):
        error = msgspec.structs.replace(error, code=code)
    may_pass = (status in _RETRYABLE_STATUS or status >= 500) and error.code not in _FINAL_CODE
    return msgspec.structs.replace(
        error,
        status=status if error.status is None else error.status,
        retryable=may_pass or (error.kind == "provider" and error.retryable),
        retry_after_ms=retry_after_ms if error.retry_after_ms is None else error.retry_after_ms,
    )


def no_body(status: int) -> ErrorEvent:
    """The error of a response that has an HTTP status of 400 or more and nothing else."""
    return ErrorEvent("provider", f"HTTP status {status}, and an empty body", str(status), status)


def truncated(what: str) -> ErrorEvent:
    """The event for a stream that ended without its terminal sign."""
    return ErrorEvent("truncated", f"the stream ended without {what}", retryable=True)


_WORDS: Final = ("code", "status", "type")  # Google keeps the word in status, its code is the number
_NUMBERS: Final = ("code", "status", "status_code", "raw_status_code")


def _code_and_status(members: Members, payload: Members) -> tuple[str | None, int | None]:
    """The machine word and the number; a number without a word serves as both."""
    outer_type = payload.get("type")
    outer = {**payload, "type": None} if outer_type == "error" else payload  # that names the payload, not the fault
    words = (source.get(name) for source in (members, outer) for name in _WORDS)
    numbers = (source.get(name) for source in (members, outer) for name in _NUMBERS)
    word = next((value for value in words if isinstance(value, str) and value), None)
    status = next((value for value in numbers if isinstance(value, int) and not isinstance(value, bool)), None)
    if word is None and status is not None:
        word = str(status)
    return (sanitize(word) if word else None), status


def _message(error: object, members: Members, payload: Members) -> str:
    for value in (members.get("message"), error, payload.get("message"), payload.get("detail"), members.get("detail")):
        if isinstance(value, str) and value:
            return sanitize(value)
        if isinstance(value, list) and value:  # FastAPI lists what is wrong, field by field
            return as_text(value)
    return as_text(payload.get("detail") or "")


def _retry_after_ms(members: Members, payload: Members) -> int | None:
    for source in (members, payload):
        value = source.get("retry_after_ms")
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return int(min(value, 2**53))
        value = source.get("retry_after")
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return int(min(value * 1000, 2**53))
        details = source.get("details")  # Google's RetryInfo: {"retryDelay": "34.07s"}
        for detail in details if isinstance(details, list) else ():
            delay = cast("Members", detail).get("retryDelay") if isinstance(detail, dict) else None
            if isinstance(delay, str) and (match := _SECONDS.fullmatch(delay)):
                return int(float(match[1]) * 1000)
    return None


_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)


def _text(value: object) -> str | None:
    return sanitize(value) if isinstance(value, str) and value else None
