"""What does not go into a recording: keys, tokens, cookies and passwords, by the names they go under.

Names, not values: a value that looks like a key may be a part of an answer, which has to stay as it is. Whatever is
left is left byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

__all__ = ["REDACTED", "redacted_command", "redacted_fault", "redacted_headers", "redacted_url"]

REDACTED: Final = "REDACTED"

_SECRET: Final = re.compile(
    r"authentication|authorization|cookie"
    r"|(?:^|[-_.\[])(?:access|api|auth|client|id|private|refresh|secret|session)?"
    r"(?:auth|bearer|code|credential|jwt|key|otp|passphrase|passwd|password|pwd|secret|sig|signature|token)s?\]?$",
    re.ASCII | re.IGNORECASE,
)
"""Of headers: ``Authorization`` and ``Proxy-Authorization``, ``Cookie`` and ``Set-Cookie``, ``x-api-key`` (Anthropic),
``api-key`` (Azure), ``x-goog-api-key``, ``X-Amz-Security-Token``. Of parameters: ``key`` (Google), ``access_token``,
``sig`` (Azure's shared access), ``X-Amz-Signature``. And what else is called so."""

_HARMLESS: Final = re.compile(r"ratelimit|max-tokens|error-code|status-code", re.ASCII | re.IGNORECASE)
"""``x-ratelimit-remaining-tokens`` (OpenAI) is a number, and what a replay is paced by."""

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])", re.ASCII)
_USER: Final = re.compile(r"(?<=://)[^/?#\s\"']*@", re.ASCII)
_PARAMETER: Final = re.compile(
    r"(?:[?&;#]|%3F|%26|%23)(?P<name>(?:(?!%3D|%3F|%26)[^\s=&;#?\"'])+)(?:=|%3D)", re.ASCII | re.IGNORECASE
)
"""How a parameter begins; also one of an address that is itself the value of a parameter, as relays have it."""
_VALUE: Final = re.compile(r"[^\s&;#\"']*", re.ASCII)
_SUBPROTOCOL: Final = re.compile(
    r"(?P<name>[\w-]*(?:bearer|key|secret|token)(?:\.|\s*,\s*))[^\s,]+", re.ASCII | re.IGNORECASE
)
"""Browsers cannot set headers of a WebSocket: ``openai-insecure-api-key.sk-…``, ``xai-client-secret.…``."""


def _is_secret(name: str) -> bool:
    name = _HUMP.sub("-", unquote(name)).replace("_", "-").strip()
    return _SECRET.search(name) is not None and _HARMLESS.search(name) is None


def redacted_headers(headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The same headers, in their order; of those that hold a secret the value is ``REDACTED``."""
    return tuple([(name, _redacted_value(name, value)) for name, value in headers])


def _redacted_value(name: str, value: str) -> str:
    if _is_secret(name):
        return REDACTED
    if name.lower() == "sec-websocket-protocol":
        return _SUBPROTOCOL.sub(rf"\g<name>{REDACTED}", value)
    return redacted_url(value)  # Location, Referer, Link


def redacted_url(text: str) -> str:
    """The same text; addresses in it without user and password, and without the values of secret parameters."""
    text = _USER.sub("", text)
    kept: list[str] = []
    at = 0
    for found in _PARAMETER.finditer(text):
        value = _VALUE.match(text, found.end())
        if found.start() >= at and value and value[0] and _is_secret(found["name"]):
            kept += (text[at : found.end()], REDACTED)
            at = value.end()
    return "".join(kept) + text[at:]


def redacted_fault(text: str, headers: Iterable[tuple[str, str]] = ()) -> str:
    """What an error says, which may name the address, or a header that cannot be sent: a key with a line end in it."""
    for name, value in headers:
        if _is_secret(name):
            for word in _PRINTED_AS_IT_IS.findall(value):
                text = text.replace(word, REDACTED)
    return redacted_url(text)


_PRINTED_AS_IT_IS: Final = re.compile(r"[^\x00-\x20\x7f-\U0010ffff\\'\"]{4,}")
"""Of a value that an error shows as Python writes it: all but what is escaped there, and what is too short to tell."""


# -- command lines ----------------------------------------------------------------------------------------------------


def redacted_command(arguments: Iterable[str]) -> tuple[str, ...]:
    """The same command line without the secrets that curl takes in headers, addresses, users, cookies and forms."""
    kept: list[str] = []
    left = iter(arguments)
    for argument in left:
        kept += _redacted_argument(argument, left)
    return tuple(kept)


def _redacted_argument(argument: str, left: Iterator[str]) -> list[str]:
    """The argument, with the one behind it where that is its value."""
    if argument.startswith("--"):
        option, equals, value = argument.partition("=")
        redact = _LONG.get(option, _all if _is_secret(option[2:]) else None)
        if equals:
            return [f"{option}={(redact or _anything)(value)}"]
        return [argument, *map(redact, _next(left))] if redact else [_anything(argument)]
    if argument.startswith("-"):
        for at, letter in enumerate(argument[1:], 2):  # -sNH: the first that takes a value takes the rest for it
            if letter in _SHORT_WITH_VALUE:
                redact = _SHORT.get(letter, _anything)
                rest = argument[at:]
                return [argument[:at] + redact(rest)] if rest else [argument, *map(redact, _next(left))]
    return [_anything(argument)]


def _next(left: Iterator[str]) -> list[str]:
    value = next(left, None)
    return [] if value is None else [value]


def _all(value: str) -> str:
    return REDACTED


def _header(value: str) -> str:
    name, colon, content = value.partition(":")
    blank = content[: len(content) - len(content.lstrip())]
    return f"{name}:{blank}{_redacted_value(name, content[len(blank) :])}" if colon else value


def _form(value: str) -> str:
    """``name=value&…``; what is no form has no such names."""
    return redacted_url(f"?{value}")[1:]


def _anything(value: str) -> str:
    """An address, with or without its scheme, a header, a setting of the environment, or a script that holds them."""
    if _CURL.search(value):
        value = _OPTION_INSIDE.sub(rf"\g<option>{REDACTED}", value)
    value = _LOGIN.sub(rf"\g<user>{REDACTED}@", redacted_url(value))
    return _HEADER_INSIDE.sub(_redacted_header, _SETTING.sub(_redacted_setting, value))


_CURL: Final = re.compile(r"\bcurl\s", re.ASCII)
_OPTION_INSIDE: Final = re.compile(
    r"(?P<option>(?<=\s)(?:-\w*[uUbE]\s*|--(?:proxy-)?(?:user|cert|pass)[\s=]+|--(?:cookie|oauth2-bearer)[\s=]+))"
    r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'-][^\s\"']*)",
    re.ASCII,
)
_LOGIN: Final = re.compile(r"^(?P<user>[^\s/?#\"'@:]+:)[^\s/?#\"'@]+@", re.ASCII)
_SETTING: Final = re.compile(r"(?P<name>\b[A-Za-z_]\w*)=(?:\"[^\"]+\"|'[^']+'|[^\s&;#\"']+)", re.ASCII)
_HEADER_INSIDE: Final = re.compile(r"(?P<name>\b[A-Za-z][\w-]*)(?P<colon>\s*:[ \t]*)(?P<value>[^\r\n\"']+)", re.ASCII)


def _redacted_setting(found: re.Match[str]) -> str:
    return f"{found['name']}={REDACTED}" if _is_secret(found["name"]) else found[0]


def _redacted_header(found: re.Match[str]) -> str:
    return f"{found['name']}{found['colon']}{REDACTED}" if _is_secret(found["name"]) else found[0]


_SHORT_WITH_VALUE: Final = frozenset("AbcCdDeEFhHKmoPQrtTuUwxXyYz")  # curl's
_SHORT: Final[Mapping[str, Callable[[str], str]]] = {
    "u": _all,
    "U": _all,
    "b": _all,
    "E": _all,  # a file, and behind a colon its password
    "H": _header,
    "d": _form,
    "F": _form,
}
_LONG: Final[Mapping[str, Callable[[str], str]]] = {
    **dict.fromkeys(("--user", "--proxy-user", "--cookie", "--oauth2-bearer", "--cert", "--proxy-cert"), _all),
    **dict.fromkeys(("--pass", "--proxy-pass", "--tlspassword", "--proxy-tlspassword"), _all),
    **dict.fromkeys(("--header", "--proxy-header"), _header),
    **dict.fromkeys(("--data", "--data-raw", "--data-ascii", "--data-binary", "--data-urlencode"), _form),
    **dict.fromkeys(("--form", "--form-string", "--url-query"), _form),
    "--cookie-jar": _anything,  # a file
    "--key": _anything,
}
