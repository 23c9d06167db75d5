"""A JSON array as it streams: bytes cut anywhere in, the JSON text of each item out (Gemini without ``alt=sse``).

Strategy: the general reader walks strings and brackets, resumes where it stopped, and alone is the definition. Beside
it stands a short way for reads that hold whole items: cut at the vendor's separator and let the decoder confirm the
cut. Whatever the decoder refuses goes to the general reader; a property test holds the two against each other. The
only thing this module knows of an item is whether it is JSON; payloads, events and providers lie further along.

There is no standard for this framing beyond JSON itself. Decided here: a bare object is one item, objects may follow
each other, and so may arrays (two answers in one log); inside an array the comma is required, for a lost comma means
lost bytes; an item is any JSON value.
"""

from __future__ import annotations

# The house keeps json out of framing. Here it is the second judge of an item that msgspec refuses, because the library
# takes what only this decoder takes: control characters in strings, NaN, halves of surrogate pairs. No value is kept.
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Final, cast

import msgspec

from streamfold import limits
from streamfold.errors import (
    Empty,
    FrameTooLarge,
    FramingError,
    Malformed,
    NotJSONArray,
    TooDeep,
    TrailingData,
    Truncated,
    UsageError,
)

__all__ = ["JSONArrayStreamParser"]

_NEXT_ITEM: Final = b"\n,\r\n{"  # as Gemini separates items; everything else of its layout has LF alone
_BOM: Final = b"\xef\xbb\xbf"

# Between items: where the reader stands, and what each byte that may come there leads to.
_MARK, _START, _FIRST, _VALUE, _COMMA, _AFTER_ARRAY, _AFTER_OBJECT, _ITEM = range(8)
_VALUE_STARTS: Final = dict.fromkeys(b'{["-0123456789tfnNI', _ITEM)  # N and I: NaN and Infinity
_STEPS: Final[dict[int, dict[int, int]]] = {
    _START: {ord("["): _FIRST, ord("{"): _ITEM},
    _FIRST: {**_VALUE_STARTS, ord("]"): _AFTER_ARRAY},
    _VALUE: _VALUE_STARTS,
    _COMMA: {ord(","): _VALUE, ord("]"): _AFTER_ARRAY},
    _AFTER_ARRAY: {ord("["): _FIRST},
    _AFTER_OBJECT: {ord("{"): _ITEM},
}
_LOOKS_LIKE: Final = {
    **dict.fromkeys(b"d:", "an event stream"),
    **dict.fromkeys(b"eir", "an event stream or plain text"),
    ord("<"): "an HTML or XML page",
    0x1F: "a compressed body that nobody decompressed",
}


def _again(group: bytes) -> bytes:
    """The pattern of ``group`` as often as it matches, never given back.

    A possessive group, but for CPython before 3.11.5, which misreads those; an atomic one holds a mark a match.
    """
    return b"(?:%s)*+" % group if sys.version_info >= (3, 11, 5) else b"(?>(?:%s)*)" % group


# These match at every place, so a search never tries the next one and there is always a match; and nothing in them can
# be matched in two ways, so they are linear.
_Match = Callable[..., "re.Match[bytes]"]
_SPACE: Final = cast(_Match, re.compile(rb"[ \t\n\r]*+").match)
_SPACE_OR_COMMA: Final = cast(_Match, re.compile(rb"[ \t\n\r,]*+").match)
_BARE: Final = cast(_Match, re.compile(rb"[-+.0-9A-Za-z]*+").match)  # a number or a literal, good or bad
_TO_QUOTE: Final = rb'[^"\\]*+' + _again(rb'\\.[^"\\]*+')
_REST_OF_STRING: Final = cast(_Match, re.compile(_TO_QUOTE + rb'(?:(")|(\\)?\Z)', re.DOTALL).match)
_BRACKETS: Final = re.compile(
    rb'[^"{}\[\]]*+' + _again(rb'"' + _TO_QUOTE + rb'"[^"{}\[\]]*+') + rb'(?:([{\[])|([}\]])|(")|\Z)', re.DOTALL
).finditer
_STRING_END, _ESCAPE = 1, 2  # groups of _REST_OF_STRING
_OPENING, _CLOSING, _OPEN_STRING = 1, 2, 3  # groups of _BRACKETS

_CONFIRM: Final = msgspec.json.Decoder(msgspec.Raw).decode  # checks the grammar of the whole text, makes no values
_CONFIRM_ALL: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_DECODE_ERRORS: Final = (msgspec.DecodeError, RecursionError)
_NO_LIMIT: Final = 1 << 62
_PIECE: Final = 128 * 1024  # of longer reads: copies of what fits into the processor's cache cost half
_FEW: Final = 12  # items of Gemini's: they have some 15 brackets each
_BLANKS: Final = b" " * len(rb"\ud800\udc00")  # the longest that the decoder wants to see whole


def _why_refused(text: bytes) -> str | None:
    try:
        _CONFIRM(text)
    except _DECODE_ERRORS as fault:
        return str(fault)
    return None


_TOO_SHORT: Final = _why_refused(b"[")  # the decoder's words for it, asked rather than known


class JSONArrayStreamParser:
    """Incremental, bounded parser of a streamed JSON array; does no I/O.

    Feed it bytes cut anywhere, then iterate: it yields the JSON text of each item as soon as its last byte is there (a
    bare number or literal: the byte after it) and stops when it needs more bytes; after the next feed it can be
    iterated again. Items before a fault are yielded before the fault is raised, so how the bytes were cut never
    changes the outcome. It holds at most one item, besides what was fed and not yet walked.

    Args:
        max_frame_bytes: Bound of one item, in bytes; white space between items does not count.
        max_depth: Levels of arrays and objects one item may nest; the array around the items does not count.

    Attributes:
        fault: What ended the stream early, else None.
    """

    fast = True
    """Whether whole items of a read may be taken at once. For tests only."""

    def __init__(
        self,
        *,
        max_frame_bytes: int | None = limits.MAX_FRAME_BYTES,
        max_depth: int | None = limits.MAX_DEPTH,
    ) -> None:
        if wrong := limits.fault_of(max_frame_bytes=max_frame_bytes, max_depth=max_depth):
            raise UsageError(wrong)
        self._limit = _NO_LIMIT if max_frame_bytes is None else max_frame_bytes
        self._max_depth = _NO_LIMIT if max_depth is None else max_depth
        # the bytes that were fed
        self._chunk = b""  # what is being walked
        self._at = 0  # how far
        self._base = 0  # of _chunk, in bytes from the start of the stream
        self._unread = bytearray()  # what was fed before _chunk was walked to its end
        self._closed = False
        # where the reader stands
        self._place = _MARK
        self._open = False  # inside an item; _place is then the place it stands in
        self._start = 0  # of the item read last, in bytes from the start of the stream
        self._bare = False  # the open item is a number or a literal
        self._depth = 0
        self._in_string = False
        self._escaped = False  # the byte before was the backslash of an escape
        # An open item's bytes of earlier reads. A bytearray grows in amortised linear time and costs a byte a byte,
        # where a list of 1-byte reads costs 50; it is copied once, when the item is whole, and never cut at the front.
        self._held = bytearray()
        self._waiting = -1  # offset of the item that was left unread once, for the next read to complete
        self.fault: FramingError | None = None
        # where the items of the last take begin; of those taken at once (index of the first, their text, its offset)
        # that is worked out when somebody asks
        self._offsets: list[int] = []
        self._runs: list[tuple[int, bytes, int]] = []

    # -- the public face: feed, iterate, close ------------------------------------------------------------------------

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take in the next bytes, however they were cut.

        Raises:
            UsageError: ``data`` is no bytes, or the parser is closed.
        """
        if self._closed:
            raise UsageError("the parser is closed")
        if type(data) is not bytes:
            data = _as_bytes(data)
        if self.fault is not None:
            return
        if self._unread or self._at < len(self._chunk):
            self._unread += data
        else:
            self._base += len(self._chunk)
            self._chunk, self._at = data, 0

    def close(self) -> None:
        """Declare the end of input: iterating then yields what was pending, and raises if the JSON is not whole."""
        self._closed = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        item = self._next_item()
        if item is not None:
            return item.decode("utf-8", "replace")
        if self.fault is not None:
            raise self.fault.with_traceback(None)  # raised again on every call: do not pile tracebacks up
        raise StopIteration

    # -- the decoder's face: all items of a read at once --------------------------------------------------------------

    def take(self, data: bytes) -> list[bytes]:
        """Feed, and return every item that is whole now. A fault is left in ``fault``, never raised."""
        if type(data) is not bytes:
            data = _as_bytes(data)
        self._offsets, self._runs = [], []
        # Most reads of a live answer are one whole item behind its separator. A CR in it: there is a second one.
        if data[:5] == _NEXT_ITEM and data[-1:] == b"}" and data.find(b"\r", 4) < 0 and self._is_between():
            item = data[4:]
            if len(item) <= self._limit and not _may_nest(item, self._max_depth):
                try:
                    _CONFIRM(item)
                except _DECODE_ERRORS:
                    pass
                else:
                    self._offsets.append(self._base + 4)
                    self._base += len(data)
                    return [item]
        items: list[bytes] = []
        for piece in (data,) if len(data) <= _PIECE else _pieces(data):
            self.feed(piece)
            self._read_all(items)
        return items

    def begin_at(self, offset: int) -> None:
        """The stream began so many bytes before what is fed first: nothing but blanks, and perhaps its mark."""
        self._base, self._place = offset, _START

    def finish(self, how: str) -> list[bytes]:
        """Declare the end: ``"eof"`` completes or faults what is open, ``"cut"`` and ``"cancel"`` drop it."""
        self._offsets, self._runs = [], []
        items: list[bytes] = []
        if how == "eof":
            self.close()
        self._read_all(items)
        if how != "eof":
            self._closed, self._open, self._place = True, False, _AFTER_ARRAY  # a place where the input may end
            self._chunk, self._at, self._held = b"", 0, bytearray()
        return items

    def release(self) -> None:
        """Keep nothing of the last :meth:`take`: a long wait may come."""
        self._offsets, self._runs = [], []

    def offset_of(self, k: int) -> int:
        """Where the ``k``-th item of the last take or finish begins, in bytes from the start of the stream."""
        for index, text, offset in self._runs:
            self._offsets[index:index] = _offsets_of_run(text, offset)
        self._runs = []
        return self._offsets[k]

    def _read_all(self, items: list[bytes]) -> None:
        if self._unread:
            self._let_go()
        if self._open:
            self._read_next(items)
        if self.fast and not self._open and not self._closed and self._reach_item():
            self._take_run(items)
            if self._at == len(self._chunk):
                self._let_go()
                return
            if self._reach_item() and self._may_wait():
                return
        while (self._at < len(self._chunk) or self._closed) and self._read_next(items):
            pass
        self._let_go()

    def _read_next(self, items: list[bytes]) -> bool:
        item = self._next_item()
        if item is None:
            return False
        items.append(item)
        self._offsets.append(self._start)
        return True

    # -- the short way: whole items at once ---------------------------------------------------------------------------

    def _is_between(self) -> bool:
        """Whether all that was fed is read, the last of it was an item of an array, and more may come."""
        return self.fast and self._place == _COMMA and not (self._chunk or self._open or self._closed or self.fault)

    def _take_run(self, items: list[bytes]) -> None:
        """Take the items up to the end of the read, or to its last separator, if the decoder confirms them.

        A wrong cut, inside an item or a string, leaves a bracket or a quote open: it never decodes. Two cuts are tried
        a read at most, so this is linear whatever comes.
        """
        if self._place not in (_FIRST, _VALUE):
            return
        chunk = self._chunk
        if chunk.endswith((b"}", b"]")):  # the first read of a live answer, and its last
            self._take_run_to(len(chunk) - chunk.endswith(b"]"), items)
        if self._place != _COMMA:
            self._take_run_to(chunk.rfind(b"\n,", self._at), items)

    def _take_run_to(self, end: int, items: list[bytes]) -> None:
        if end <= self._at:
            return
        text = b"[%b]" % self._chunk[self._at : end]
        try:
            run = list(map(bytes, _CONFIRM_ALL(text)))
        except _DECODE_ERRORS:
            return
        if len(text) > self._limit and max(map(len, run)) > self._limit:
            return
        if _any_may_nest(run, self._max_depth):
            return
        self._runs.append((len(items), text, self._base + self._at - 1))
        items += run
        self._at, self._place = end, _COMMA

    def _may_wait(self) -> bool:
        """Whether what is left is the beginning of one item, to be joined with the next read and taken whole; once.

        The decoder says of such a text that it is too short. It would also say so where an escape or a literal does
        not fit into the last bytes, though a bracket there closes the item; behind blanks it looks at them one by one.
        """
        offset = self._base + self._at
        if offset == self._waiting or self._chunk[self._at] not in b"{[":
            return False
        self._waiting = offset
        return self._verdict(self._chunk[self._at :] + _BLANKS) == _TOO_SHORT

    def _verdict(self, text: bytes) -> str | None:
        """What the strict decoder has against the text, or that it may be over a bound; None if it is one item."""
        if len(text) > self._limit or _may_nest(text, self._max_depth):
            return "near a bound"
        return _why_refused(text)

    # -- the general reader: the definition ---------------------------------------------------------------------------

    def _next_item(self) -> bytes | None:
        """The next whole item. None: more bytes are needed, or there is a fault, or nothing can follow."""
        while self.fault is None:
            if self._open or self._reach_item():
                item = self._read_item()
                if item is not None:
                    return item
            if self.fault is None and not self._let_go():
                return self._at_end() if self._closed else None
        self._chunk, self._unread, self._held = b"", bytearray(), bytearray()  # after a fault nothing is of use
        return None

    def _let_go(self) -> bool:
        """Drop what was walked and turn to what was fed meanwhile; whether there is anything."""
        self._base += self._at
        self._chunk = self._chunk[self._at :]
        self._at = 0
        if self._unread:
            self._chunk += self._unread
            self._unread.clear()
        return bool(self._chunk)

    def _reach_item(self) -> bool:
        """Walk white space and separators; whether an item begins here. Else the bytes are used up or at fault."""
        if self._place == _MARK:
            self._pass_mark()
        chunk = self._chunk
        if self._place == _COMMA and chunk.startswith(_NEXT_ITEM, self._at):  # 0.1 in place of 0.5 microseconds
            self._at, self._place = self._at + 4, _VALUE
            return True
        while self.fault is None:
            self._at = at = _SPACE(chunk, self._at).end()
            if at == len(chunk):
                break
            step = _STEPS[self._place].get(chunk[at])
            if step == _ITEM:
                return True
            if step is None:
                self.fault = _misplaced(chunk[at], self._place, self._base + at)
                break
            self._place = step
            self._at += 1
        return False

    def _pass_mark(self) -> None:
        """Drop one byte order mark at the very start; its bytes may come apart."""
        while self._place == _MARK and self._at < len(self._chunk):
            passed = self._base + self._at
            if self._chunk[self._at] == _BOM[passed]:
                self._at += 1
                self._place = _START if passed == 2 else _MARK
            elif passed == 0:
                self._place = _START
            else:
                self.fault = NotJSONArray("no JSON array: it looks like binary data", 0)
                break

    def _read_item(self) -> bytes | None:
        """The item that is open or begins here, if its end is there. Else what there is of it is held, or at fault."""
        chunk, at = self._chunk, self._at
        if not self._open:
            self._open, self._start = True, self._base + at
            self._bare, self._in_string, self._escaped, self._depth = chunk[at] not in b'{["', False, False, 0
        stop = min(len(chunk), at + self._limit - len(self._held))
        end = self._end_of_bare(at, stop) if self._bare else self._end_of_value(at, stop)
        if self.fault is not None:
            return None
        if end > stop or (end < 0 and stop < len(chunk)):  # whatever more of it came with this read
            self.fault = FrameTooLarge(self._limit + 1, self._limit, self._start)
            return None
        self._at = len(chunk) if end < 0 else end
        if end >= 0 and not self._held:
            return self._complete(chunk[at:end])
        self._held += chunk[at : self._at]
        return self._complete(bytes(self._held)) if end >= 0 else None

    def _end_of_bare(self, at: int, stop: int) -> int:
        """Where the number or literal ends, -1 if that is not to be seen yet: ``1`` may be the half of ``12``."""
        end = _BARE(self._chunk, at, stop + 1).end()
        return -1 if end == len(self._chunk) <= stop else end

    def _end_of_value(self, at: int, stop: int) -> int:
        """Where the array, object or string ends, -1 if not before ``stop``."""
        if not self._held and self._chunk[at] == ord('"'):
            self._in_string = True
            at += 1
        if self._in_string:
            at = self._end_of_string(at, stop)
            if at < 0 or self._depth == 0:
                return at
        for bracket in _BRACKETS(self._chunk, at, stop):
            kind = bracket.lastindex
            if kind == _OPENING:
                self._depth += 1
                if self._depth > self._max_depth:
                    self.fault = TooDeep(self._max_depth, self._start)
                    break
            elif kind == _CLOSING:
                self._depth -= 1
                if self._depth == 0:
                    return bracket.end()
            elif kind == _OPEN_STRING:
                self._in_string = True
                self._end_of_string(bracket.end(), stop)
                break
        return -1

    def _end_of_string(self, at: int, stop: int) -> int:
        """Where the open string ends, -1 if not before ``stop``."""
        if self._escaped and at < stop:
            self._escaped = False
            at += 1
        chunk = self._chunk
        end = chunk.find(b'"', at, stop)
        # Inline images are megabytes without an escape: two searches at memory speed, the pattern takes 6 ns a byte.
        if chunk.find(b"\\", at, stop if end < 0 else end) < 0:
            self._in_string = end < 0
            return end if end < 0 else end + 1
        rest = _REST_OF_STRING(chunk, at, stop)
        self._in_string = rest.lastindex != _STRING_END
        self._escaped = rest.lastindex == _ESCAPE
        return -1 if self._in_string else rest.end()

    def _complete(self, item: bytes) -> bytes | None:
        """Close the open item, unless it is no JSON: brackets balance in much that is none."""
        self.fault = _fault_of(item, self._start)
        self._held = bytearray()
        self._open = False
        self._place = _COMMA if self._place in (_FIRST, _VALUE) else _AFTER_OBJECT
        return item if self.fault is None else None

    def _at_end(self) -> bytes | None:
        """What the end of input completes: a number or literal. What it cuts off is a fault."""
        offset = self._base + self._at
        if self._open:
            if self._bare and _fault_of(bytes(self._held), self._start) is None:
                return self._complete(bytes(self._held))
            self.fault = Truncated("the input ended inside an item", self._start)
        elif self._place in (_FIRST, _VALUE, _COMMA):
            self.fault = Truncated("the input ended before the array did", offset)
        elif self._place == _START or (self._place == _MARK and offset == 0):
            self.fault = Empty("the input ended before any JSON came", offset)
        elif self._place == _MARK:
            self.fault = Truncated("the input ended inside a byte order mark", 0)
        return None


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def _as_bytes(data: bytes | bytearray | memoryview) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"feed takes bytes, not {type(data).__name__}")
    return bytes(data)


def _misplaced(byte: int, place: int, offset: int) -> FramingError:
    if place == _START:
        guess = _LOOKS_LIKE.get(byte) or ("plain text" if 0x20 < byte < 0x7F else "binary data")
        return NotJSONArray(f"no JSON array: it looks like {guess}", offset)
    if place in (_AFTER_ARRAY, _AFTER_OBJECT):
        return TrailingData("more than white space follows the end of the JSON", offset)
    expected = "a comma or the end of the array" if place == _COMMA else "a JSON value"
    return Malformed(f"{expected} should stand here", offset)


def _fault_of(item: bytes, offset: int) -> FramingError | None:
    """What keeps the item from being JSON to a lenient reader."""
    try:
        _CONFIRM(item)
    except _DECODE_ERRORS:
        try:
            # parse_int: no value is made, for int() raises on more than 4300 digits, which is no fault of the JSON
            json.loads(item.decode("utf-8", "replace"), strict=False, parse_int=str)
        except RecursionError:  # no bound, or one beyond what the interpreter can follow
            return TooDeep(_levels(item) - 1, offset)
        except ValueError:
            return Malformed("the item is no JSON", offset)
    return None


def _levels(item: bytes) -> int:
    depth = deepest = 0
    for bracket in _BRACKETS(item):
        depth += {_OPENING: 1, _CLOSING: -1}.get(bracket.lastindex or 0, 0)
        deepest = max(deepest, depth)
    return deepest


def _may_nest(item: bytes, levels: int) -> bool:
    """Whether there are brackets enough for more than ``levels``; those in strings count too, so False is sure."""
    if len(item) <= 2 * levels:
        return False
    # replace finds a byte three times as fast as count does
    return 2 * len(item) - len(item.replace(b"{", b"")) - len(item.replace(b"[", b"")) > levels


def _any_may_nest(items: list[bytes], levels: int) -> bool:
    """The same of any of these: a few together have brackets no more than one may have, and that is seen at once."""
    for at in range(0, len(items), _FEW):
        few = items[at : at + _FEW]
        if _may_nest(b"".join(few), levels) and any(_may_nest(item, levels) for item in few):
            return True
    return False


def _offsets_of_run(text: bytes, offset: int) -> list[int]:
    offsets: list[int] = []
    at = 1  # behind the bracket
    for raw in _CONFIRM_ALL(text):
        at = _SPACE_OR_COMMA(text, at).end()
        offsets.append(offset + at)
        at += len(bytes(raw))
    return offsets
