"""How a WebSocket closed, as an error: which codes say what, and after which of them another connection may succeed.

The reason of a close is free text, which changes: it decides nothing alone, and only where the code leaves it open.
Source: RFC 6455, section 7.4.1, the register of close codes, and what providers were seen to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from streamfold.events import ErrorEvent, ErrorKind
from streamfold.payloads import sanitize

__all__ = ["CLOSES", "QUIET", "Meaning", "close_error", "meaning_of"]


class Meaning(NamedTuple):
    """What a close code says.

    Attributes:
        kind: Of the error, where no turn was open (inside a turn it is ``truncated``, whatever the code).
        retryable: Whether another connection may succeed.
    """

    kind: ErrorKind
    retryable: bool


CLOSES: Final[Mapping[int, Meaning]] = {
    1000: Meaning("transport", True),  # a normal close
    1001: Meaning("transport", True),  # going away; also the end of a session's time
    1002: Meaning("protocol", False),
    1003: Meaning("protocol", False),  # data of a kind it does not take
    1005: Meaning("transport", True),  # no code was given
    1006: Meaning("transport", True),  # no close frame came
    1007: Meaning("provider", False),  # invalid argument: a bad setup, an unknown handle, the context used up
    1008: Meaning("provider", False),  # policy: an unknown model, a broken tool protocol
    1009: Meaning("limit", False),  # a message too big
    1010: Meaning("protocol", False),
    1011: Meaning("provider", True),  # a fault of the server, a deadline, also a quota
    1012: Meaning("provider", True),  # restart
    1013: Meaning("provider", True),  # overload
    1014: Meaning("transport", True),  # a bad gateway
    1015: Meaning("transport", True),  # TLS
}
"""What each code says; any other one is the provider's own, and final."""

QUIET: Final = frozenset({None, 1000, 1001})
"""Closes that are no error between two turns; None: the caller left."""

_OPEN: Final = frozenset({1008, 1011})
_REASONS: Final[Mapping[str, bool]] = {  # of these two codes: a word of the reason -> whether to try again
    "quota": False,
    "billing": False,
    "api key": False,
    "not found": False,
    "not supported": False,
    "aborted": True,
    "deadline": True,
}
_OTHER: Final = Meaning("provider", False)


def meaning_of(code: int | None, reason: str = "") -> Meaning:
    """What a close says.

    Args:
        code: Of the close frame; None where none came.
        reason: Of the close frame.
    """
    meaning = CLOSES[1006] if code is None else CLOSES.get(code, _OTHER)
    if code in _OPEN:
        words = reason.lower()
        meaning = meaning._replace(
            retryable=next((again for word, again in _REASONS.items() if word in words), meaning.retryable)
        )
    return meaning


def close_error(code: int | None, reason: str = "", *, inside: bool) -> ErrorEvent:
    """The error that a close is.

    Args:
        code: Of the close frame; None where none came.
        reason: Of the close frame.
        inside: Whether a turn was open: then it was cut off.
    """
    kind, retryable = meaning_of(code, reason)
    said = " ".join(filter(None, ("" if code is None else str(code), sanitize(reason))))
    message = f"the connection closed{' inside a turn' if inside else ''}{f': {said}' if said else ''}"
    word = None if code is None else str(code)
    return ErrorEvent("truncated" if inside else kind, message, word, code, retryable=retryable)
