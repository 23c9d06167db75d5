"""Whose session over a WebSocket it is, told by its first messages, in either direction.

Some begin alike: Gemini Live and Lyria with an empty ``setupComplete``, OpenAI Realtime and xAI's copy of it with the
same names. There the likelier one is told, and marked as not sure, until a message says more.

Source: the vendors' lists of messages, and the first ones of recorded sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from streamfold.providers._table import text_of

__all__ = ["Told", "told_by"]

Members: TypeAlias = dict[str, Any]


class Told(NamedTuple):
    """What a message tells.

    Attributes:
        provider: Whose session it is of.
        sure: Whether no other provider has messages like that.
    """

    provider: str
    sure: bool


def told_by(message: Any) -> Told | None:
    """Whose session this message is of.

    Args:
        message: What its JSON decodes to.

    Returns:
        None where it does not tell: it is no object, or one that nobody knows.
    """
    members = _object(message)
    if not members:
        return None
    kind = text_of(members.get("type"))
    for sure, shapes in ((True, SURE), (False, LIKELY)):
        for provider, fits in shapes.items():
            if fits(members, kind):
                return Told(provider, sure)
    return None


def _has(*names: str) -> Callable[[Members, str], bool]:
    """Whether a message has one of these members."""
    return lambda members, kind: any(name in members for name in names)


def _of_kind(*kinds: str) -> Callable[[Members, str], bool]:
    """Whether a message is of one of these types."""
    return lambda members, kind: kind in kinds


def _is_lyria(members: Members, kind: str) -> bool:
    if "lyria" in text_of(_object(members.get("setup")).get("model")):
        return True
    content = _object(members.get("clientContent")) or _object(members.get("client_content"))
    return (
        "weightedPrompts" in content
        or "weighted_prompts" in content
        or "audioChunks" in _object(members.get("serverContent"))
        or any(name in members for name in ("filteredPrompt", "musicGenerationConfig", "playbackControl"))
    )


def _is_gemini_live(members: Members, kind: str) -> bool:
    return bool(_object(members.get("setup")).get("model")) or any(name in members for name in _OF_GEMINI_LIVE)


_OF_GEMINI_LIVE: Final = (
    "serverContent",
    "toolCall",
    "toolCallCancellation",
    "sessionResumptionUpdate",
    "goAway",
    "clientContent",
    "client_content",
    "realtimeInput",
    "realtime_input",
    "toolResponse",
    "tool_response",
)


def _is_interactions(members: Members, kind: str) -> bool:
    """Its events alone or in lists: Cohere's models on Bedrock have ``event_type`` too, with other words."""
    events = members.get("events")
    first = _object(events[0]) if isinstance(events, list) and events else members
    return text_of(first.get("event_type")).startswith(_OF_INTERACTIONS)


_OF_INTERACTIONS: Final = ("interaction.", "step.", "content.", "error", "reconnection_required")


def _model_of(members: Members, kind: str) -> str:
    """The model that a session of Realtime says it is of."""
    return text_of(_object(members.get("session")).get("model")) if kind.startswith("session.") else ""


def _is_xai(members: Members, kind: str) -> bool:
    return _model_of(members, kind).startswith("grok") or (
        kind == "ping" and "timestamp" in members
    )  # Anthropic's have none


def _is_openai(members: Members, kind: str) -> bool:
    return bool(_model_of(members, kind)) and not _is_xai(members, kind)


def _is_numbered(members: Members, kind: str) -> bool:
    """Responses over a WebSocket: events are numbered in each response; a request is the body of one over HTTP."""
    if not kind.startswith("response."):
        return False
    if kind == "response.create":
        return "input" in members or "model" in members
    return "sequence_number" in members or _object(members.get("response")).get("object") == "response"


def _is_realtime(members: Members, kind: str) -> bool:
    """Every event of that server has an id of its own."""
    if kind == "response.create" or kind.startswith(_OF_REALTIME):
        return True
    if kind.startswith("response.") or kind == "error":
        return "event_id" in members or _object(members.get("response")).get("object") == "realtime.response"
    return kind.startswith(("session.", "transcription_session.", "conversation.", "input_audio_buffer."))


_OF_REALTIME: Final = ("response.done", "response.output_audio", "response.audio", "response.text.")


def _is_responses(members: Members, kind: str) -> bool:
    refused = kind == "error" and "status" in members and bool(_object(members.get("error")))
    return refused or kind.startswith("response.")


SURE: Final[Mapping[str, Callable[[Members, str], bool]]] = {
    # provider -> whether a message (its members, its type) is of its sessions and no other's; the first counts
    "lyria": _is_lyria,
    "gemini-live": _is_gemini_live,
    "gemini": _is_interactions,
    "xai-stt": _of_kind("transcript.created", "transcript.partial", "transcript.done"),
    "xai-tts": _of_kind("text.delta", "text.done", "text.clear", "audio.delta", "audio.clear"),
    "xai-realtime": _is_xai,
    "openai-realtime": _is_openai,
    "openai-responses": _is_numbered,
}

LIKELY: Final[Mapping[str, Callable[[Members, str], bool]]] = {
    # provider -> whether it is likely to be
    "gemini-live": _has("setup", "setupComplete"),
    "xai-tts": _of_kind("audio.done"),  # to the server it is the end of what speech to text hears
    "xai-realtime": _of_kind("ping", "conversation.created"),  # OpenAI's beta had the latter, behind its session
    "openai-realtime": _is_realtime,
    "openai-responses": _is_responses,
}


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else {}
