"""What the surfaces of Bedrock share: exceptions as errors, and payloads that carry a model's own payload inside."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from streamfold.events import ErrorEvent
from streamfold.payloads import DECODE_ERRORS, Payload
from streamfold.providers._errors import provider_error

__all__ = ["decoded", "exception", "is_exception", "unwrapped"]

Members = dict[str, Any]

STATUS: Final[Mapping[str, int]] = {
    "validationException": 400,
    "accessDeniedException": 403,
    "resourceNotFoundException": 404,
    "modelTimeoutException": 408,
    "modelErrorException": 424,
    "modelStreamErrorException": 424,
    "modelNotReadyException": 429,
    "throttlingException": 429,
    "internalServerException": 500,
    "serviceUnavailableException": 503,
}
"""The status that the service's model gives each exception; inside a stream none is sent."""


def is_exception(name: str) -> bool:
    """Whether a type of event names an exception."""
    return name.endswith("Exception")


def exception(name: str | None, members: Members, message: object = None) -> ErrorEvent:
    """The event for an exception, or for an error that the service's model does not list.

    Args:
        name: Its type or code.
        members: What it says: ``message``, or ``originalMessage`` where it speaks for a model.
        message: For an error, which says it beside.
    """
    said = {"code": name, "status": STATUS.get(name or ""), "message": members.get("originalMessage") or message}
    error = provider_error(members, said)
    return msgspec.structs.replace(error, retryable=True) if name in _RETRYABLE else error


_RETRYABLE: Final = frozenset({"modelStreamErrorException"})  # the others by their status, which elsewhere is final


class _Part(msgspec.Struct):
    bytes: str | None = None


_PART: Final = msgspec.json.Decoder(_Part).decode


def unwrapped(payload: Payload) -> Payload:
    """The model's own payload inside a ``chunk`` of InvokeModelWithResponseStream; any other payload as it is.

    On the wire it is base64 under ``bytes``; clients that decode that themselves give ``{"chunk": {"bytes": b"…"}}``.
    """
    inner = _inside(payload)
    return inner if inner is not None and inner.lstrip()[:1] == b"{" else payload


def _inside(payload: Payload) -> bytes | None:
    data: object = None
    if isinstance(payload, dict):
        chunk = payload.get("chunk", payload)
        data = cast("Members", chunk).get("bytes") if isinstance(chunk, dict) else None
    elif '"bytes"' in payload if isinstance(payload, str) else b'"bytes"' in payload:
        try:
            data = _PART(payload).bytes
        except DECODE_ERRORS:
            return None
    if isinstance(data, str):
        return decoded(data)
    return bytes(data) if isinstance(data, bytes | bytearray) else None


def decoded(text: str) -> bytes | None:
    """What base64 says; None where it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # of which base64's own is a kind
        return None
