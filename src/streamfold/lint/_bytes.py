"""What bytes, lines and messages say before anybody reads them: all that the framing parsers forgive.

Readers of their own beside the parsers, which look at nothing of this where they need not: here every line is looked
at, and none is interpreted. Hold the head of one line, or one binary message. Know nothing of payloads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from streamfold.framing.eventstream import EventStreamParser

__all__ = ["WATCHES", "ByteWatch", "JSONLinesWatch", "LineWatch", "MessageWatch", "Place", "Watch"]

Place: TypeAlias = tuple[int, str, str]
"""Offset, code of the rule, sentence."""

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_SEPARATOR: Final = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")
_FIELD_NAME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9_-]*\Z").match
_HEAD: Final = 1024  # bytes of a line that are looked at; a field's name and the longest id that is worth a word
_LARGE: Final = 1024 * 1024
_MAX_UTF8_FAULTS: Final = 10  # each costs a look at the rest of the read
_LF, _CR = 10, 13
_NAMES: Final = {b"\r\n": "CRLF", b"\n": "LF", b"\r": "CR"}


class Watch(Protocol):
    """One way to look at the bytes of a stream."""

    def feed(self, data: bytes) -> Iterator[Place]:
        """What these bytes show, however they were cut."""
        ...

    def close(self) -> Iterator[Place]:
        """What the end of input shows."""
        ...


class ByteWatch:
    """Reads that are no UTF-8, and characters that some readers take for line ends."""

    def __init__(self) -> None:
        self._offset = 0  # of the first byte that is not decoded
        self._held = b""  # of a character that is not whole yet
        self._faults = 0
        self._separated = False

    def feed(self, data: bytes) -> Iterator[Place]:
        """What these bytes show, however they were cut."""
        data = self._held + data
        at, self._held = 0, b""
        if self._offset == 0 and data.startswith(_BOM):  # a character like others: it comes whole
            yield 0, "bom", "a byte order mark begins the stream"
        while self._faults < _MAX_UTF8_FAULTS:
            try:
                data[at:].decode()
            except UnicodeDecodeError as fault:
                start = at + fault.start
                if fault.reason == "unexpected end of data":
                    self._held, at = data[start:], start
                    break
                yield self._fault(start, data)
                at += fault.end
            else:
                at = len(data)
                break
        if not self._separated and (found := _SEPARATOR.search(data, 0, at)):
            self._separated = True
            yield self._offset + found.start(), "unicode_line_end", f"U+{ord(found.group().decode()):04X} stands bare"
        self._offset += len(data) - len(self._held)

    def close(self) -> Iterator[Place]:
        """What the end of input shows."""
        if self._held:
            yield self._fault(0, self._held)

    def _fault(self, at: int, data: bytes) -> Place:
        self._faults += 1
        return self._offset + at, "bad_utf8", f"byte 0x{data[at]:02x} is no UTF-8 where it stands"


class _Line(NamedTuple):
    offset: int
    head: bytes  # up to _HEAD bytes
    size: int


class LineWatch:
    """The lines of an event stream, each looked at once. Of one frame each rule is told once: frames may have no end.

    Attributes:
        open_since: Where the frame that is open begins, or the line after the last frame.
        unusual: Kinds of lines that some surfaces do not allow, and where the first of each is.
        has_data: Whether the open frame has a data line.
        bare: Where lines begin that are no field, one place for each block of them; those before the last read are
            forgotten, but for the last one.
    """

    def __init__(self) -> None:
        self.unusual: dict[str, int] = {}
        self.bare: list[int] = []
        self.open_since = 0
        self.has_data = False
        self._line = bytearray()  # the head of the open line
        self._size = 0  # of the open line
        self._start = 0  # and where it begins
        self._position = 0
        self._cr = False  # the last byte was a CR, which may be half a line end
        self._ends: dict[str, int] = {}  # kinds of line ends, and where the first of each is
        self._begin()

    def _begin(self) -> None:
        self.has_data = self._has_fields = self._has_comment = self._bare = False
        self._data_lines = self._data_size = 0
        self._told: set[str] = set()

    @property
    def safe(self) -> int:
        """Nothing more will be found before here."""
        return min(self._position - 1, self.open_since) if self._cr else self.open_since

    def feed(self, data: bytes) -> Iterator[Place]:
        """What these bytes show, however they were cut."""
        del self.bare[:-1]
        at = 0
        if self._cr and data:
            self._cr = False
            at = 1 if data[0] == _LF else 0
            yield from self._line_end("CRLF" if at else "CR", self._position - 1)
            self._position += at
            self._restart_line()
        held = data[-1:] == b"\r"
        for end in _LINE_END.finditer(data, at):
            line = _Line(self._start, self._rest_of(data[at : end.start()]), self._size)
            self._position += end.end() - at
            at = end.end()
            if held and at == len(data):  # the line is whole; what ended it is not known yet
                self._cr = True
            else:
                yield from self._line_end(_NAMES[end.group()], self._position - len(end.group()))
            yield from self._judge_once(line)
            self._restart_line()
        if at < len(data):
            self._rest_of(data[at:])
            self._position += len(data) - at

    def close(self) -> Iterator[Place]:
        """What the end of input shows."""
        if self._cr:
            self._cr = False
            yield from self._line_end("CR", self._position - 1)
        if self._size:
            yield from self._judge_once(_Line(self._start, bytes(self._line), self._size))
        if self.has_data:
            yield self.open_since, "no_blank_line", "the input ends before a blank line closes the last frame"

    def _rest_of(self, piece: bytes) -> bytes:
        """The head of the open line, with this piece of it."""
        self._size += len(piece)
        if len(self._line) < _HEAD:
            self._line += piece[: _HEAD - len(self._line)]
        return bytes(self._line)

    def _restart_line(self) -> None:
        self._line.clear()
        self._size, self._start = 0, self._position
        if not (self._has_fields or self.has_data or self._has_comment or self._bare):
            self.open_since = self._position

    def _line_end(self, kind: str, offset: int) -> Iterator[Place]:
        if kind in self._ends:
            return
        if kind == "CR":
            yield offset, "cr_line_end", "a line ends in CR alone"
        if self._ends:
            yield offset, "mixed_line_ends", f"a line ends in {kind}, others before it in {next(iter(self._ends))}"
        self._ends[kind] = offset

    def _judge_once(self, line: _Line) -> Iterator[Place]:
        for place in self._judge(line):
            if place[1] not in self._told:
                self._told.add(place[1])
                yield place

    def _judge(self, line: _Line) -> Iterator[Place]:
        offset, head, size = line
        if head.startswith(_BOM):
            if offset:
                yield offset, "bom_inside", "a byte order mark begins a line"
                return
            head, size = head[len(_BOM) :], size - len(_BOM)
        if not head:
            yield from self._close_frame()
            return
        if head[:1] == b":":
            self.unusual.setdefault("a comment", offset)
            if self._has_fields or self.has_data:
                yield offset, "comment_in_frame", "a comment stands inside a frame"
            self._has_comment = True
            return
        name, colon, value = head.partition(b":")
        if self._has_comment and not (self._has_fields or self.has_data) and name in (b"data", b"event"):
            yield offset, "comment_in_frame", "a comment stands directly before a frame"
        yield from self._field(offset, name, colon, value, size)

    def _field(self, offset: int, name: bytes, colon: bytes, value: bytes, size: int) -> Iterator[Place]:
        if colon and value[:1] != b" ":
            self.unusual.setdefault("a field without a space behind its colon", offset)
        value = value.removeprefix(b" ")
        if name == b"data":
            yield from self._data(offset, size)
            return
        if name in (b"event", b"id", b"retry"):
            self.unusual.setdefault(f"an {name.decode()} field" if name != b"retry" else "a retry field", offset)
            self._has_fields = True
            if name == b"id" and b"\0" in value:
                yield offset, "id_nul", "an id holds NUL"
            elif name == b"retry" and not value.isdigit():
                yield offset, "bad_retry", f"retry is {_shown(value)}"
        elif _FIELD_NAME(name):
            self._has_fields = True
            yield offset, "unknown_field", f"a field is called {_shown(name)}"
        else:
            if not self._bare:
                self._bare = True
                self.bare.append(offset)
            yield offset, "bare_text", f"a line is {_shown(name + colon + value)}"

    def _data(self, offset: int, size: int) -> Iterator[Place]:
        self.has_data = True
        self._data_lines += 1
        if self._data_lines == 2:
            yield offset, "several_data_lines", "a frame has more than one data line"
        before, self._data_size = self._data_size, self._data_size + size
        if before <= _LARGE < self._data_size:
            yield self.open_since, "large_frame", f"a frame holds {self._data_size:,} bytes or more"

    def _close_frame(self) -> Iterator[Place]:
        if self._has_fields and not self.has_data:
            yield self.open_since, "no_data", "a frame has fields and no data"
        self._begin()


class JSONLinesWatch:
    """The lines of newline-delimited JSON, each looked at once."""

    def __init__(self) -> None:
        self._start = self._position = 0  # of the open line; of all
        self._blank = True  # nothing but blanks in it so far
        self._large = False

    def feed(self, data: bytes) -> Iterator[Place]:
        """What these bytes show, however they were cut."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            yield from self._more(piece)
            if self._blank:
                yield self._start, "blank_line", "a line is blank"
            self._position += 1
            self._start, self._blank, self._large = self._position, True, False
        yield from self._more(rest)

    def close(self) -> Iterator[Place]:
        """What the end of input shows."""
        if not self._blank:
            yield self._start, "no_line_end", "no line end closes the last line"

    def _more(self, piece: bytes) -> Iterator[Place]:
        self._position += len(piece)
        self._blank = self._blank and not piece.strip(_BLANKS)
        if not self._large and self._position - self._start > _LARGE:
            self._large = True
            yield self._start, "large_frame", f"a line holds more than {_LARGE:,} bytes"


class MessageWatch:
    """The messages of AWS's binary framing: what their headers leave out. Faults are the decoder's to tell."""

    def __init__(self) -> None:
        self._parser = EventStreamParser()

    def feed(self, data: bytes) -> Iterator[Place]:
        """What these bytes show, however they were cut."""
        for message, _, offset in self._parser._messages(data):
            said = message.headers.get(":message-type")
            if said is None:
                yield offset, "no_event_type", "a message has no :message-type"
            elif said not in _MESSAGE_TYPES:
                yield offset, "unknown_type", f"a message is of type {said!r:.60}"
            elif message.name is None:
                yield offset, "no_event_type", f"the headers of a message of type {said!r} do not name it"

    def close(self) -> Iterator[Place]:
        """What the end of input shows."""
        return iter(())


_MESSAGE_TYPES: Final = ("event", "exception", "error")
_BLANKS: Final = b" \t\r"

WATCHES: Final[Mapping[str, Callable[[], Watch]]] = {
    # framing -> what looks at its bytes beside the parser; the others have nothing that is forgiven
    "sse": LineWatch,
    "jsonl": JSONLinesWatch,
    "eventstream": MessageWatch,
}


def _shown(text: bytes) -> str:
    word = text[:40].decode("utf-8", "replace")
    return repr(word + "…" if len(text) > len(word.encode()) else word)
