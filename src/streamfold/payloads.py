"""From a frame's bytes to a payload: JSON read strictly where that is fast, leniently where the wire needs it.

The hot path decodes bytes straight into the small structs that a provider module declares. What a strict decoder
refuses comes here: control characters inside strings, NaN and Infinity, unpaired surrogate escapes, bad UTF-8, and
members of another type than a provider documents (those are left out, one by one, never the payload as a whole).
Knows nothing of events or providers.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any, Final, Generic, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from streamfold import limits
from streamfold.blocks import JSONText

__all__ = [
    "DECODE_ERRORS",
    "BadJSON",
    "DepthExceeded",
    "Payload",
    "Reader",
    "as_text",
    "compact",
    "depth_exceeds",
    "is_done",
    "is_given",
    "is_json",
    "is_keep_alive",
    "json_text",
    "known_json",
    "lenient",
    "one_line",
    "read_object",
    "sanitize",
]

Payload: TypeAlias = bytes | str | dict[str, Any]
"""What a normaliser is fed: the JSON text of one frame, or the object it decodes to."""

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What the strict decoder raises. RecursionError: msgspec's own guard, where a caller lifted ``max_depth``."""

T = TypeVar("T", bound=msgspec.Struct)


class BadJSON(Exception):
    """No reader can make JSON of this payload. Never leaves the package: it becomes an ``error`` event."""


class DepthExceeded(Exception):
    """The payload nests more levels than it may. Never leaves the package."""


def is_done(payload: Payload) -> bool:
    """Whether the payload is the sentinel ``[DONE]``; trailing bytes are tolerated, as the official client does."""
    if isinstance(payload, bytes):
        return payload.lstrip().startswith(b"[DONE]")
    return isinstance(payload, str) and payload.lstrip().startswith("[DONE]")


def is_keep_alive(payload: Payload) -> bool:
    """Whether it is no payload at all: blank, or a comment that somebody framed as data (``data: : keep-alive``)."""
    if isinstance(payload, dict):
        return False
    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else payload
    return text.lstrip()[:1] in ("", ":")


# -- depth ------------------------------------------------------------------------------------------------------------

_OPENS: Final = ord("{")
_MANY: Final = 128
_NOT_TELLING: Final = bytes(byte for byte in range(256) if byte not in b'[{"}')
_ONE_KIND: Final = bytes.maketrans(b"[]", b"{}")
_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')


def depth_exceeds(text: bytes, limit: int | None) -> bool:
    """Whether the JSON text nests more than ``limit`` levels.

    A text too short for that many brackets is answered by its length, one that has few by two passes of memory speed
    (``replace`` finds a byte three times as fast as ``count`` does, but each costs 20 ns), one full of them by a pass
    that looks at every byte, and at what follows each brace: style sheets and code in strings have theirs too.
    """
    if limit is None or len(text) <= 2 * limit:
        return False
    size = len(text)
    objects, arrays = size - len(text.replace(b"{", b"", _MANY)), size - len(text.replace(b"[", b"", _MANY))
    if objects < _MANY > arrays:
        opened = objects + arrays
    else:  # an object inside which more can nest begins with a name: style sheets and code in strings have other braces
        left = text.translate(None, _NOT_TELLING)
        opened = left.count(b"[") + left.count(b'{"') + 1
    return opened > limit and _nests_deeper(text, limit)


def _nests_deeper(text: bytes, limit: int) -> bool:
    """Look at what it decodes to; for what is no JSON, count the brackets outside of strings."""
    try:
        return _object_depth_exceeds(msgspec.json.decode(text), limit)
    except DECODE_ERRORS:
        pass
    # Take the strings out, then the innermost pairs of brackets, level by level: a round a level.
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    left = b"".join(text.translate(_ONE_KIND, _NO_BRACKET).split(b'"')[::2])
    for _ in range(limit):
        inner = left.replace(b"{}", b"")
        if len(inner) == len(left):
            break
        left = inner
    if b"{}" in left:
        return True
    depth = 0  # what is left are brackets that do not match: no JSON, which may be too deep all the same
    for bracket in left:
        depth += 1 if bracket == _OPENS else -1
        if depth > limit:
            return True
    return False


def _object_depth_exceeds(value: object, limit: int | None) -> bool:
    """The same question for a value that came decoded; iterative, so that no input can exhaust the stack."""
    if limit is None:
        return False
    level: list[Any] = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(limit):
        if not level:
            return False
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, _CONTAINERS)
        ]
    return bool(level)


_CONTAINERS: Final = (dict, list, tuple)


# -- lenient reading --------------------------------------------------------------------------------------------------


def lenient(payload: Payload, *, max_depth: int | None = limits.MAX_DEPTH, halves: Collection[str] = ()) -> Any:
    """Decode a payload that the strict decoder refused, or check one that came decoded.

    Args:
        payload: JSON text or an object.
        max_depth: Levels of arrays and objects it may nest.
        halves: Names of members whose text may begin or end with half a surrogate pair, because a later delta brings
            the other half. All other unpaired surrogates become U+FFFD.

    Raises:
        BadJSON: It is no JSON, even so.
        DepthExceeded: It nests deeper than ``max_depth``.
    """
    if isinstance(payload, dict):
        if _object_depth_exceeds(payload, max_depth):
            raise DepthExceeded
        return _plain(payload, halves)
    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else payload
    if depth_exceeds(text.encode("utf-8", "replace"), max_depth):
        raise DepthExceeded
    try:
        value = _LENIENT.decode(text.strip(_JSON_SPACE))
    except RecursionError:
        raise DepthExceeded from None
    except ValueError as fault:
        raise BadJSON(str(fault)) from None
    return _plain(value, halves) if _SURROGATE_ESCAPE.search(text) else value


_JSON_SPACE: Final = " \t\r\n"


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) < 4300 else None  # more make int() raise ValueError


def _float(number: str | float) -> float | None:
    """NaN, Infinity and what lies beyond are no numbers that JSON can say again: they count as null."""
    value = float(number)
    return value if math.isfinite(value) else None


_LENIENT: Final = json.JSONDecoder(strict=False, parse_int=_integer, parse_float=_float, parse_constant=_float)
_SURROGATE_ESCAPE: Final = re.compile("\\\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_UNPAIRED: Final = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_UNPAIRED_INSIDE: Final = re.compile(
    "[\ud800-\udbff](?![\udc00-\udfff]|\\Z)|(?<![\ud800-\udbff])(?<!\\A)[\udc00-\udfff]"
)


def sanitize(text: str) -> str:
    """The same text with every unpaired surrogate replaced by U+FFFD, and pairs joined into their character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _joined(_UNPAIRED.sub("\ufffd", text))
    return text


def _joined(text: str) -> str:
    """Surrogate pairs as the characters they mean; half pairs at the ends stay as they are."""
    return (
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") if _HAS_SURROGATE(text) else text
    )


_HAS_SURROGATE: Final = re.compile("[\ud800-\udfff]").search


def _plain(value: Any, halves: Collection[str], *, written: bool = False) -> Any:
    """The value without unpaired surrogates and numbers that JSON has no word for; iterative, like the questions above.

    Where it is to be ``written``, what is no JSON becomes the text that Python has for it.
    """
    made: dict[Any, Any] = {}
    todo: list[tuple[Any, Any, Any]] = [(made, None, value)]
    while todo:
        holder, place, item = todo.pop()
        if isinstance(item, str):
            holder[place] = _joined(_UNPAIRED_INSIDE.sub("\ufffd", item)) if place in halves else sanitize(item)
        elif isinstance(item, dict):
            members = holder[place] = {sanitize(str(key)): child for key, child in item.items()}
            todo.extend([(members, key, child) for key, child in members.items()])
        elif isinstance(item, list | tuple):
            items = holder[place] = list(item)
            todo.extend([(items, number, child) for number, child in enumerate(items)])
        elif isinstance(item, float):
            holder[place] = _float(item)
        else:
            holder[place] = str(item) if written and not isinstance(item, int | None) else item
    return made[None]


def read_object(payload: Payload, max_depth: int | None, halves: Collection[str] = ()) -> dict[str, Any] | None:
    """The payload as a dict, None where it is JSON but no object; strictly where that goes, else leniently.

    Raises:
        BadJSON: It is no JSON.
        DepthExceeded: It nests deeper than ``max_depth``.
    """
    value: Any = payload
    if type(payload) is bytes and not depth_exceeds(payload, max_depth):
        try:
            value = msgspec.json.decode(payload)
        except DECODE_ERRORS:
            value = lenient(payload, max_depth=max_depth, halves=halves)
    else:
        value = lenient(payload, max_depth=max_depth, halves=halves)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


# -- writing ----------------------------------------------------------------------------------------------------------


def compact(value: object) -> JSONText:
    """The value as JSON text: no blanks, valid UTF-8; NaN and Infinity, which JSON has no word for, become null."""
    try:
        return JSONText(msgspec.json.encode(value).decode())
    except (UnicodeError, TypeError, OverflowError, RecursionError):
        return JSONText(_written(_plain(value, (), written=True)))


def as_text(value: object) -> str:
    """Text as it is, nothing for None, and any other value as the JSON that it should have been sent as.

    Plain text, for members that are text whatever it says: :class:`JSONText` is embedded where an event is encoded.
    """
    return "" if value is None else str(value if isinstance(value, str) else compact(value))


def _written(value: Any) -> str:
    """A plain value as JSON text; iterative, because writers that are not give up at some depth."""
    pieces: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, tuple):  # text of ours: in plain values arrays are lists
            pieces += item
        elif isinstance(item, dict):
            members = [((f"{_scalar(key)}:",), child) for key, child in item.items()]
            todo += _reversed("{", [part for member in members for part in (*member, (",",))], "}")
        elif isinstance(item, list):
            todo += _reversed("[", [part for child in item for part in (child, (",",))], "]")
        else:
            pieces.append(_scalar(item))
    return "".join(pieces)


def _reversed(begin: str, parts: list[Any], end: str) -> list[Any]:
    """What is to be written, last part first; the comma after the last is none."""
    return [(end,), *parts[-2::-1], (begin,)]


_scalar: Final = json.JSONEncoder(ensure_ascii=False).encode


def one_line(payload: Payload) -> tuple[JSONText, bool]:
    """The payload as JSON text on one line, and whether it is JSON (else the text stands there as a JSON string).

    The letters of the wire are kept, but for white space outside strings where that holds a line end, unpaired
    surrogates, and what only a lenient reader understands.
    """
    if isinstance(payload, dict):
        return compact(payload), True
    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else payload
    text = text.strip(_JSON_SPACE)
    try:
        _SKIM.decode(text)
    except DECODE_ERRORS:
        try:
            return compact(lenient(text, max_depth=None)), True
        except (BadJSON, DepthExceeded):
            return JSONText(json.dumps(sanitize(text), ensure_ascii=False)), False
    if "\n" in text or "\r" in text:
        return JSONText(msgspec.json.format(text, indent=-1)), True
    return JSONText(text), True


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a member that was left as text was there, and not null."""
    size = memoryview(raw).nbytes
    return size > 4 or (size > 0 and bytes(raw) != b"null")


def json_text(raw: msgspec.Raw) -> JSONText:
    """A member that was left as text."""
    return known_json(bytes(raw)) or one_line(bytes(raw))[0]


def known_json(data: bytes) -> JSONText | None:
    """Text that the strict decoder has passed over, so that it is JSON; None where it still needs a closer look."""
    if _LF in data or _CR in data:
        return None
    try:
        return JSONText(data.decode().strip())
    except UnicodeDecodeError:  # in a member that the decoder skipped
        return None


_LF, _CR = 10, 13
_SKIM: Final = msgspec.json.Decoder(msgspec.Raw)


def is_json(text: str, max_depth: int | None = limits.MAX_DEPTH) -> bool:
    """Whether the text is one JSON value that any reader takes: no NaN, no raw control characters in strings."""
    if (
        max_depth is not None
        and len(text) > 2 * max_depth
        and depth_exceeds(text.encode("utf-8", "replace"), max_depth)
    ):
        return False
    try:
        _SKIM.decode(text)
    except DECODE_ERRORS:
        if not _SURROGATE_ESCAPE.search(text):
            return False
        try:  # "\\ud83d" alone is JSON by the grammar, though msgspec refuses it
            _STRICT.decode(text.strip(_JSON_SPACE))
        except (ValueError, RecursionError):
            return False
    return True


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


_STRICT: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)


# -- typed reading ----------------------------------------------------------------------------------------------------


class Reader(Generic[T]):
    """Reads payloads into one struct: strictly from bytes, leniently from what that refuses.

    Args:
        kind: The struct; every member has a default, so that a missing one is no error.
        halves: See :func:`lenient`.
    """

    def __init__(self, kind: type[T], halves: Collection[str] = ()) -> None:
        self.kind = kind
        self.halves = frozenset(halves)
        self.decode: Callable[[bytes | str], T] = msgspec.json.Decoder(kind).decode

    def read(self, payload: Payload | msgspec.Raw, max_depth: int | None) -> T | None:
        """The struct, or None where the payload is JSON but no object.

        Raises:
            BadJSON: It is no JSON.
            DepthExceeded: It nests deeper than ``max_depth``.
        """
        if not isinstance(payload, dict):
            if isinstance(payload, msgspec.Raw):
                payload = bytes(payload)
            data = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
            if depth_exceeds(data, max_depth):
                raise DepthExceeded
            try:
                return self.decode(payload)
            except DECODE_ERRORS:
                pass
        value = lenient(payload, max_depth=max_depth, halves=self.halves)
        return self.convert(value) if isinstance(value, dict) else None

    def convert(self, value: dict[str, Any]) -> T:
        """The struct of a decoded object; members of another type than declared are left at their default."""
        return cast("T", _convert_struct(value, self.kind))


class _Unfit(Exception):
    pass


def _convert_struct(value: dict[str, Any], kind: type[msgspec.Struct]) -> msgspec.Struct:
    members: dict[str, Any] = {}
    for name, wire_name, hint in _members(kind):
        if wire_name in value:
            try:
                members[name] = _convert(value[wire_name], hint)
            except _Unfit:
                continue
    return kind(**members)


@cache
def _members(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple(
        (name, wire, hints[name])
        for name, wire in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    )


def _convert(value: Any, hint: Any) -> Any:
    if hint is Any:
        return value
    if hint is msgspec.Raw:
        return msgspec.Raw(compact(value).encode())
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(value, get_args(hint))
    if origin is tuple:
        return tuple(_convert_items(value, get_args(hint)[0]))
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        if isinstance(value, dict):
            return _convert_struct(cast("dict[str, Any]", value), hint)
        raise _Unfit
    if type(value) is hint:  # type(), not isinstance: true is no 1
        return value
    raise _Unfit


def _convert_union(value: Any, options: tuple[Any, ...]) -> Any:
    for option in options:
        if option is type(None):
            if value is None:
                return None
            continue
        try:
            return _convert(value, option)
        except _Unfit:
            continue
    raise _Unfit


def _convert_items(value: Any, hint: Any) -> Iterator[Any]:
    if not isinstance(value, list | tuple):
        raise _Unfit
    for item in value:
        try:
            yield _convert(item, hint)
        except _Unfit:
            continue
