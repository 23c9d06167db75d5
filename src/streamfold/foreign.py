"""What is no stream of payloads: bodies and lines that stand in the place of one, and the errors that they are."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from streamfold import limits
from streamfold.errors import FrameTooLarge, FramingError, TooDeep, Truncated
from streamfold.events import ErrorEvent
from streamfold.framing.json_array import JSONArrayStreamParser
from streamfold.framing.sse import Stray
from streamfold.payloads import (
    DECODE_ERRORS,
    BadJSON,
    DepthExceeded,
    Reader,
    is_done,
    is_given,
    is_keep_alive,
    lenient,
    read_object,
)
from streamfold.providers._errors import error_body
from streamfold.providers.by_shape import shape_of

__all__ = ["BLANKS", "Strays", "error_of_fault", "error_of_item", "is_whole", "object_of"]

BLANKS: Final = b" \t\r\n"


class Strays:
    """Looks for an error that stands bare among the frames, however many lines it takes.

    An object begins with its line and ends before the next blank line at the latest, so that nothing which only looks
    like the beginning of one can hide what follows.

    Args:
        max_bytes: Bound of one such object.
    """

    def __init__(self, max_bytes: int | None) -> None:
        self._max_bytes = None if max_bytes is None else max(1, max_bytes)
        self._block = -1
        self._open: JSONArrayStreamParser | None = None  # the object that is not whole yet

    def error_in(self, stray: Stray) -> ErrorEvent | None:
        """The error that this line completes, if it does."""
        if stray.block != self._block:
            self._block, self._open = stray.block, None
        if self._open is None:
            if stray.line.lstrip(BLANKS)[:1] not in (b"{", b"["):
                return None
            try:
                if not _BARE.decode(stray.line).error:  # most are whole: 0.5 in place of 15 microseconds
                    return None
            except DECODE_ERRORS:
                pass
            self._open = JSONArrayStreamParser(max_frame_bytes=self._max_bytes)
        items = self._open.take(stray.line + b"\n")
        if items or self._open.fault is not None:
            self._open = None
        found = (object_of(item.decode("utf-8", "replace")) for item in items)
        return next((error_body(members) for members in found if members and members.get("error")), None)


class _Bare(msgspec.Struct):
    error: Any = None


_BARE: Final = Reader(_Bare)


def is_whole(tail: bytes) -> bool:
    if is_done(tail) or is_keep_alive(tail):
        return True
    try:
        lenient(tail, max_depth=None)
    except BadJSON:
        return False
    except DepthExceeded:
        pass
    return True


def object_of(text: str) -> dict[str, Any] | None:
    """The object in a body that is one, or a list of one (Google's REST errors)."""
    try:
        value = lenient(text)
    except (BadJSON, DepthExceeded):
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def error_of_item(item: Any) -> ErrorEvent | None:
    """The error that the first object of a JSON body is, if it is no payload of any dialect."""
    try:
        body = _ERROR(item)
        if not (is_given(body.error) or is_given(body.message) or is_given(body.detail)):
            return None  # as nearly all: a tenth of the time
    except (*DECODE_ERRORS, TypeError):  # also of what came decoded
        pass
    try:
        members = read_object(item, limits.MAX_DEPTH) if isinstance(item, bytes) else None
    except (BadJSON, DepthExceeded):
        return None
    return error_body(members) if members is not None and shape_of(members, None) is None else None


class _Error(msgspec.Struct):
    """The members by one of which :func:`error_body` knows an error."""

    error: msgspec.Raw = msgspec.Raw()
    message: msgspec.Raw = msgspec.Raw()
    detail: msgspec.Raw = msgspec.Raw()


_ERROR: Final = msgspec.json.Decoder(_Error).decode


def error_of_fault(fault: FramingError) -> ErrorEvent:
    message, offset = str(fault), fault.offset
    match fault:
        case FrameTooLarge():
            return ErrorEvent("limit", message, "frame", offset=offset)
        case TooDeep():
            return ErrorEvent("limit", message, "depth", offset=offset)
        case Truncated():
            return ErrorEvent("truncated", message, retryable=True, offset=offset)
        case _:
            return ErrorEvent("protocol", message, fault.code, offset=offset)
