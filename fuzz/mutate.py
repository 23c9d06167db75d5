"""Changes to an input that knows what it is: frames and lines are moved, members get values of another type.

Bytes that are flipped blindly rarely leave JSON intact; most of what goes wrong in the field is well-formed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, Final

__all__ = ["mutate"]

ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**53, 10**400, 0.0, 1.5, 1e400),
    *("", " ", "a", "null", "{}", '{"a":1}', "\ud800", "\udc00", "\u2028", "\x00", "é😀", "a" * 300),
    *([], {}, [[]], [{}], {"a": {}}, [None], {"type": "x"}, {"": 0}),
)
LINES: Final = (
    b"\n",
    b"\r",
    b"\r\n",
    b":",
    b": ",
    b"data: [DONE]\n\n",
    b"event: x\n",
    b"id: 7\n",
    b"retry: 5\n",
    b"\xef\xbb\xbf",
)


def mutate(data: bytes, chance: random.Random, words: tuple[Any, ...] = ()) -> bytes:
    """The input, changed in one to four places."""
    for _ in range(chance.randint(1, 4)):
        data = chance.choice(_WAYS)(data, chance, words)
    return data


def _lines(data: bytes, chance: random.Random, words: tuple[Any, ...]) -> bytes:
    """A line is dropped, doubled, moved, or broken off."""
    lines = data.split(b"\n")
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines.insert(to, lines.pop(at))
        case _:
            lines[at] = lines[at][: chance.randint(0, len(lines[at]))]
    return b"\n".join(lines)


def _bytes(data: bytes, chance: random.Random, words: tuple[Any, ...]) -> bytes:
    """Some bytes are cut out, put in, or changed."""
    at = chance.randint(0, len(data))
    match chance.randrange(3):
        case 0:
            return data[:at] + data[at + chance.randint(1, 20) :]
        case 1:
            return data[:at] + chance.choice(LINES) + data[at:]
        case _:
            return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _end(data: bytes, chance: random.Random, words: tuple[Any, ...]) -> bytes:
    """The connection breaks."""
    return data[: chance.randint(0, len(data))]


def _members(data: bytes, chance: random.Random, words: tuple[Any, ...]) -> bytes:
    """A member of a payload gets another value, goes, or comes."""
    lines = data.split(b"\n")
    places = [at for at, line in enumerate(lines) if b"{" in line]
    if not places:
        return data
    at = chance.choice(places)
    head, brace, rest = lines[at].partition(b"{")
    try:
        value, end = json.JSONDecoder().raw_decode((brace + rest).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return data
    tail = (brace + rest).decode("utf-8", "replace")[end:].encode("utf-8", "replace")
    _change(value, chance, words)
    try:
        lines[at] = head + json.dumps(value, separators=(",", ":")).encode() + tail
    except (ValueError, RecursionError):
        return data
    return b"\n".join(lines)


def _change(value: Any, chance: random.Random, words: tuple[Any, ...]) -> None:
    while True:
        inner = [
            one
            for one in (value.values() if isinstance(value, dict) else value)
            if one and isinstance(one, dict | list)
        ]
        if not inner or chance.random() < 0.3:
            break
        value = chance.choice(inner)
    new = chance.choice(words) if words and chance.random() < 0.5 else chance.choice(ODD)
    if isinstance(value, list):
        value.insert(chance.randint(0, len(value)), new)
        return
    names = [*value, "type", "index", "id", "name"]
    name = chance.choice(names)
    if chance.random() < 0.2:
        value.pop(name, None)
    else:
        value[name] = new


_WAYS: Final[tuple[Callable[[bytes, random.Random, tuple[Any, ...]], bytes], ...]] = (
    *(_members, _members, _members, _lines, _lines),
    *(_bytes, _end),
)
