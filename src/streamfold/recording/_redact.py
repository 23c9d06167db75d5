"""What does not go into a recording: keys, tokens, cookies and passwords, by the names they go under.

Names, not values: a value that looks like a key may be a part of an answer, which has to stay as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit, urlunsplit

__all__ = ["REDACTED", "redacted_command", "redacted_headers", "redacted_url"]

REDACTED: Final = "REDACTED"

_SECRET_HEADER: Final = re.compile(
    r"authorization|cookie|(^|[-_])(key|token|secret|password|credential|signature)s?$", re.ASCII | re.IGNORECASE
)
"""``Authorization`` and ``Proxy-Authorization``, ``Cookie`` and ``Set-Cookie``, ``x-api-key`` (Anthropic), ``api-key``
(Azure), ``x-goog-api-key``, ``X-Amz-Security-Token``, and what else is called so."""

_SECRET_PARAMETER: Final = re.compile(
    r"(^|[-_.])(key|apikey|token|secret|password|sig|signature|credential|auth|authorization|code)s?$",
    re.ASCII | re.IGNORECASE,
)
"""``key`` (Google), ``api-key`` (Azure), ``access_token``, ``sig`` (Azure's shared access), ``X-Amz-Signature``."""


def redacted_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The same headers, in their order; of those that hold a secret the value is ``REDACTED``."""
    return tuple([(name, REDACTED if _SECRET_HEADER.search(name) else value) for name, value in headers])


def redacted_url(url: str) -> str:
    """The same address without user and password, and without the values of parameters that hold a secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    query = "&".join(map(_redacted_parameter, parts.query.split("&")))
    return urlunsplit(parts._replace(netloc=host, query=query))


def redacted_command(arguments: Iterable[str]) -> tuple[str, ...]:
    """The same command line, as curl takes it, without the secrets in its headers, addresses, users and cookies."""
    kept: list[str] = []
    for argument in arguments:
        option = kept[-1] if kept else ""
        if _SECRET_OPTION.fullmatch(option):
            kept.append(REDACTED)
        elif _ADDRESS.match(argument):
            kept.append(redacted_url(argument))
        else:
            glued = _SECRET_OPTION.match(argument)
            header = _HEADER.fullmatch(argument)
            if glued and glued.end() < len(argument):
                argument = glued[0] + REDACTED
            elif header and _SECRET_HEADER.search(header["name"]):
                argument = f"{header['before']}{header['name']}: {REDACTED}"
            kept.append(argument)
    return tuple(kept)


_SECRET_OPTION: Final = re.compile(r"-u|-b|--(proxy-)?user=?|--cookie=?|--oauth2-bearer=?", re.ASCII)
_ADDRESS: Final = re.compile(r"(https?|wss?)://", re.ASCII | re.IGNORECASE)
_HEADER: Final = re.compile(r"(?P<before>(?:-H *|--header=)?)(?P<name>[\w-]+) *:.*", re.ASCII | re.DOTALL)


def _redacted_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={REDACTED}" if equals and _SECRET_PARAMETER.search(name) else parameter
