"""How a session is taken up on another connection: what is said otherwise than on the first. Pure: it connects nowhere.

Source: the vendors' pages on session resumption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

__all__ = ["TAKE_UP", "Message", "Opening"]

Message: TypeAlias = "dict[str, Any] | str | bytes"
"""What is sent: an object that becomes a text frame of JSON, text, or the bytes of a binary frame."""


class Opening(NamedTuple):
    """How a connection begins.

    Attributes:
        url: Where.
        messages: What the client says first.
    """

    url: str
    messages: tuple[Message, ...] = ()


def _by_setup(opening: Opening, handle: str) -> Opening:
    """Gemini Live: the same setup, with the handle."""
    return opening._replace(messages=tuple([_with_handle(message, handle) for message in opening.messages]))


def _with_handle(message: Message, handle: str) -> Message:
    if not isinstance(message, dict) or not isinstance(message.get("setup"), dict):
        return message
    setup = cast("dict[str, Any]", message["setup"])
    name = "session_resumption" if "session_resumption" in setup else "sessionResumption"
    resumption = cast("dict[str, Any]", setup.get(name) or {})
    return {**message, "setup": {**setup, name: {**resumption, "handle": handle}}}


def _by_address(opening: Opening, handle: str) -> Opening:
    """xAI: the conversation's id in the address; what the client says first enables resumption again."""
    parts = urlsplit(opening.url)
    query = [(name, value) for name, value in parse_qsl(parts.query, True) if name != "conversation_id"]
    return opening._replace(url=urlunsplit(parts._replace(query=urlencode([*query, ("conversation_id", handle)]))))


TAKE_UP: Final[Mapping[str, Callable[[Opening, str], Opening]]] = {
    "gemini-live": _by_setup,
    "xai-realtime": _by_address,
}
"""Providers whose sessions another connection can take up -> how it begins, by the first opening and the handle."""
