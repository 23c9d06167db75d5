"""How each surface answers over HTTP: its paths, the headers of its streams, its error bodies, how a run is cancelled.

Tables, and the small readers they need. Does no I/O.

Source: the vendors' references; the headers are those of public recorded streams, without their ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

__all__ = [
    "ENDPOINTS",
    "SESSIONS",
    "Asked",
    "Endpoint",
    "Run",
    "asked",
    "error_body",
    "error_headers",
    "only_streams",
    "session_surfaces",
    "stream_headers",
]

_encode: Final = msgspec.json.encode


# -- errors -----------------------------------------------------------------------------------------------------------


class _Words(NamedTuple):
    """What a status is called: OpenAI's type and code, Anthropic's type, Google's status, AWS's exception."""

    openai: str
    code: str | None
    anthropic: str
    google: str
    aws: str


_INVALID: Final = _Words(
    "invalid_request_error", None, "invalid_request_error", "INVALID_ARGUMENT", "ValidationException"
)
_FAILED: Final = _Words("server_error", "server_error", "api_error", "INTERNAL", "InternalServerException")
_BUSY: Final = "ServiceUnavailableException"
_WORDS: Final[Mapping[int, _Words]] = {
    400: _INVALID,
    401: _Words("invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED",
                "UnrecognizedClientException"),
    403: _Words("invalid_request_error", None, "permission_error", "PERMISSION_DENIED", "AccessDeniedException"),
    404: _Words("invalid_request_error", "not_found", "not_found_error", "NOT_FOUND", "ResourceNotFoundException"),
    429: _Words("requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "ThrottlingException"),
    500: _FAILED,
    503: _Words("server_error", "service_unavailable", "overloaded_error", "UNAVAILABLE", _BUSY),
    504: _Words("server_error", "timeout", "timeout_error", "DEADLINE_EXCEEDED", "ModelTimeoutException"),
    529: _Words("server_error", "overloaded", "overloaded_error", "UNAVAILABLE", _BUSY),
}  # fmt: skip


def _words(status: int) -> _Words:
    return _WORDS.get(status) or (_INVALID if status < 500 else _FAILED)


def _openai(status: int, message: str) -> Any:
    words = _words(status)
    return {"error": {"message": message, "type": words.openai, "param": None, "code": words.code}}


def _anthropic(status: int, message: str) -> Any:
    return {"type": "error", "error": {"type": _words(status).anthropic, "message": message}, "request_id": None}


def _google(status: int, message: str) -> Any:
    return {"error": {"code": status, "message": message, "status": _words(status).google}}


def _interactions(status: int, message: str) -> Any:
    return {"error": {"code": _words(status).google.lower(), "message": message}}


def _cohere(status: int, message: str) -> Any:
    return {"message": message}


def _ollama(status: int, message: str) -> Any:
    return {"error": message}


def _aws(status: int, message: str) -> Any:
    return {"message": message}


# -- endpoints --------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """How a surface lets a run in the background be taken up and cancelled.

    Attributes:
        resource: The member of an event that holds the run's object.
        parameter: The parameter of the query that says which event was the last.
        number: The member of an event that this names.
        terminal: The event that ends a cancelled run.
        behind: Bytes that stand behind the terminal event.
    """

    resource: str
    parameter: str
    number: str
    terminal: Callable[[dict[str, Any], int], dict[str, Any]]
    behind: bytes = b""

    def id_of(self, event: Any) -> str | None:
        """The run's id, where the event holds its object."""
        resource = event.get(self.resource) if isinstance(event, dict) else None
        id_ = resource.get("id") if isinstance(resource, dict) else None
        return id_ if isinstance(id_, str) else None

    def cancelled(self, resource: dict[str, Any], number: int) -> bytes:
        """What ends the stream of a run that was cancelled.

        Args:
            resource: The run's object.
            number: How many events came before.
        """
        event = self.terminal({**resource, "status": "cancelled"}, number)
        name = event.get("type") or event.get("event_type")
        return b"event: %b\ndata: %b\n\n%b" % (str(name).encode(), _encode(event), self.behind)


def _response_incomplete(response: dict[str, Any], number: int) -> dict[str, Any]:
    # No client knows a response.cancelled; the status inside says what it was.
    return {"type": "response.incomplete", "sequence_number": number, "response": response}


def _interaction_completed(interaction: dict[str, Any], number: int) -> dict[str, Any]:
    return {"event_type": "interaction.completed", "interaction": interaction}


class Endpoint(NamedTuple):
    """Where a surface is asked for a stream.

    Attributes:
        surface: Whose streams it gives.
        path: What its path ends in. ``model``, ``id`` and ``cancel`` are groups, where there are any.
        headers: Of a stream, beside the framing's content type.
        error: An error as this surface words it.
        by: What asks for a stream: the ``path``, or ``stream`` in the body, which is ``true`` or ``false`` if absent.
        run: How runs in the background are handled, where there are any.
    """

    surface: str
    path: re.Pattern[str]
    headers: tuple[tuple[str, str], ...]
    error: Callable[[int, str], Any]
    by: str = "false"
    run: Run | None = None


_RUN: Final = r"(?:/(?P<id>[^/]+)(?P<cancel>/cancel)?)?/?$"
_OPENAI: Final = (
    ("openai-version", "2020-10-01"),
    ("openai-organization", "org-replay"),
    ("openai-project", "proj_replay"),
    ("openai-processing-ms", "0"),
)
_ANTHROPIC: Final = (("cache-control", "no-cache"), ("vary", "Accept-Encoding"))
_GOOGLE: Final = (
    ("content-disposition", "attachment"),
    ("vary", "Origin"),
    ("vary", "X-Origin"),
    ("vary", "Referer"),
    ("server-timing", "gfet4t7; dur=0"),
)

ENDPOINTS: Final = (
    Endpoint("openai-responses", re.compile(r"/responses" + _RUN), _OPENAI, _openai, "false",
             Run("response", "starting_after", "sequence_number", _response_incomplete)),
    Endpoint("openai-chat", re.compile(r"/chat/completions/?$"), _OPENAI, _openai),
    Endpoint("anthropic", re.compile(r"/messages/?$"), _ANTHROPIC, _anthropic),
    Endpoint("gemini", re.compile(r"/(?P<model>[^/:]+):streamGenerateContent$"), _GOOGLE, _google, "path"),
    Endpoint("gemini-interactions", re.compile(r"/interactions" + _RUN), _GOOGLE[1:], _interactions, "false",
             Run("interaction", "last_event_id", "event_id", _interaction_completed, b"event: done\ndata: [DONE]\n\n")),
    Endpoint("cohere", re.compile(r"/v2/chat/?$"), (("cache-control", "no-cache"),), _cohere),
    Endpoint("ollama", re.compile(r"/api/chat/?$"), (), _ollama, "true"),
    Endpoint("bedrock-converse", re.compile(r"/model/(?P<model>[^/]+)/converse-stream$"), (), _aws, "path"),
    Endpoint("bedrock-invoke", re.compile(r"/model/(?P<model>[^/]+)/invoke-with-response-stream$"), (), _aws, "path"),
)  # fmt: skip
"""The first whose path fits counts. Whatever stands before that names a gateway, an account, a version."""

_NO_STREAM: Final = re.compile(r":generateContent$|/model/[^/]+/(?:converse|invoke)$")
"""Paths that a surface answers in one piece, which is nothing to replay."""

SESSIONS: Final = (
    (re.compile(r"/realtime$"), ("openai-realtime", "xai-realtime")),
    (re.compile(r"BidiGenerateContent$"), ("gemini-live",)),
    (re.compile(r"BidiGenerateMusic$"), ("lyria",)),
    (re.compile(r"/responses$"), ("openai-responses",)),
    (re.compile(r"/interactions/live$"), ("gemini",)),
    (re.compile(r"/stt$"), ("xai-stt",)),
    (re.compile(r"/tts$"), ("xai-tts",)),
)
"""Paths of WebSockets -> the providers whose sessions are held there."""


class Asked(NamedTuple):
    """What a path asks for.

    Attributes:
        endpoint: Of whom.
        model: Which model, where the path says so.
        id: Which run, where the path says so.
        cancel: Whether to cancel it.
    """

    endpoint: Endpoint
    model: str | None = None
    id: str | None = None
    cancel: bool = False


def asked(path: str) -> Asked | None:
    """What a path asks for; None where no surface has such a path."""
    for endpoint in ENDPOINTS:
        found = endpoint.path.search(path)
        if found is not None:
            groups = found.groupdict()
            return Asked(endpoint, groups.get("model"), groups.get("id"), bool(groups.get("cancel")))
    return None


def only_streams(path: str) -> bool:
    """Whether this is a path of a surface's at which nothing streams."""
    return _NO_STREAM.search(path) is not None


def session_surfaces(path: str) -> tuple[str, ...]:
    """The providers whose sessions are held at the path of a WebSocket."""
    return next((surfaces for pattern, surfaces in SESSIONS if pattern.search(path)), ())


# -- heads ------------------------------------------------------------------------------------------------------------

_CONTENT_TYPE: Final[Mapping[str, str]] = {
    "sse": "text/event-stream; charset=utf-8",
    "json_array": "application/json; charset=UTF-8",
    "jsonl": "application/x-ndjson",
    "eventstream": "application/vnd.amazon.eventstream",
}
_REQUEST_ID: Final[Mapping[str, str]] = {
    "openai-responses": "x-request-id",
    "openai-chat": "x-request-id",
    "anthropic": "request-id",
    "bedrock-converse": "x-amzn-requestid",
    "bedrock-invoke": "x-amzn-requestid",
}
_BARE: Final = frozenset({"gemini", "gemini-interactions"})
"""Surfaces whose event streams name no charset."""


def stream_headers(endpoint: Endpoint, framing: str, request_id: str) -> list[tuple[str, str]]:
    """The head of a stream, as the surface sends it."""
    kind = _CONTENT_TYPE[framing]
    if framing == "sse" and endpoint.surface in _BARE:
        kind = "text/event-stream"
    name = _REQUEST_ID.get(endpoint.surface)
    return [("content-type", kind), *endpoint.headers, *([(name, request_id)] if name else [])]


def error_headers(endpoint: Endpoint, status: int) -> dict[str, str]:
    """What the head of an error says of it, beside Retry-After."""
    return {"x-amzn-errortype": _words(status).aws} if endpoint.error is _aws else {}


def error_body(endpoint: Endpoint, status: int, message: str, *, array: bool = False) -> bytes:
    """The body of an error, as the surface words it.

    Args:
        endpoint: Whose.
        status: Of HTTP.
        message: For people.
        array: Whether the answer would have been a JSON array: Gemini puts the error into one as well.
    """
    body = endpoint.error(status, message)
    return _encode([body] if array else body)
