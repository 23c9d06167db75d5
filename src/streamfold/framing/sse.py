"""Server-sent events: bytes cut anywhere in, whole frames out (WHATWG HTML 9.2.5 grammar, 9.2.6 interpretation).

Strategy: nearly every read of a live answer holds nothing but frames of one shape (``data:`` lines, or ``event:`` and
``data:`` in turns). Such a read is split at LF and its shape is proven by comparisons that run in C. Everything else
(comments, ids, several data lines, lone CRs, odd spacing) is read line by line by the general reader, which alone is
the definition; a property test holds the two against each other. Knows nothing of JSON, payloads or providers.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from streamfold import limits
from streamfold.errors import FrameTooLarge, FramingError, UsageError

__all__ = ["SSEParser", "ServerSentEvent"]

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_LF, _CR, _COLON = 10, 13, 58
_SMALL: Final = 1024  # fragments shorter than this are merged: a list of 1-byte reads costs 50 bytes a byte
_NO_HEAD: Final = b"event: "  # of a frame without an event field
_MAX_RETRY_DIGITS: Final = 18  # fits 64 bits; int() of an endless digit string is quadratic


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One frame.

    Attributes:
        event: Its type; ``"message"`` where none was named.
        data: Its data lines, joined by LF.
        id: The stream's last event ID at this frame, ``""`` if there is none.
        retry: The reconnection time that stands in this frame, in milliseconds.
        complete: False for a tail that the end of input, not a blank line, closed.
    """

    event: str = "message"
    data: str = ""
    id: str = ""
    retry: int | None = None
    complete: bool = True


class SSEParser:
    """Incremental, bounded parser of an event stream; does no I/O.

    Feed it bytes cut anywhere, then iterate: it yields each frame that is complete and stops when it needs more bytes.
    Frames before a fault are yielded before the fault is raised, so how the bytes were cut never changes the outcome.

    Args:
        max_frame_bytes: Bound of one unfinished frame: the line that is open plus the data collected, in bytes.
        max_residue_bytes: How much to keep of lines that are no field of the grammar.
        on_eof: ``"flush"`` delivers a last frame whose blank line never came, marked ``complete=False``;
            ``"discard"`` is the browser's rule.

    Attributes:
        last_event_id: The last event ID, committed at blank lines only.
        replacements: How many U+FFFD stand for bad UTF-8 in the frames handed out so far.
        fault: What ended the stream early, else None.
    """

    fast = True
    """Whether reads of one plain shape may take the short way. For tests only."""

    def __init__(
        self,
        *,
        max_frame_bytes: int | None = limits.MAX_FRAME_BYTES,
        max_residue_bytes: int | None = limits.MAX_RESIDUE_BYTES,
        on_eof: Literal["flush", "discard"] = "flush",
    ) -> None:
        if on_eof not in ("flush", "discard"):
            raise UsageError(f'on_eof is "flush" or "discard", not {on_eof!r}')
        self._limit = float("inf") if max_frame_bytes is None else max_frame_bytes
        self._residue_room = float("inf") if max_residue_bytes is None else max_residue_bytes
        self._flush_tail = on_eof == "flush"
        # the bytes that no frame has used yet
        self._held: list[bytes] = []  # joined once, when what they belong to is whole
        self._held_size = 0
        self._position = 0  # of the first held byte, from the start of the stream
        self._at_start = True  # a byte order mark may still come
        self._skip_lf = False  # the last line ended in CR: a LF that comes next is its other half
        # the frame that is open, where the general reader has begun it
        self._inside = False
        self._head = _NO_HEAD
        self._data: list[bytes] = []
        self._data_size = 0
        self._retry: int | None = None
        self._frame_offset = 0
        self._pending_id: str | None = None
        # what belongs to the stream
        self.last_event_id = ""
        self._retry_ms: int | None = None
        self._residue: list[bytes] = []
        self.residue_lines = 0
        self.replacements = 0
        self.fault: FramingError | None = None
        self._closed = False
        # the frames of the last take, in step with the payloads it returned
        self._heads: list[bytes] | None = None
        self.ids: list[str] | None = None  # None where the take was of one plain shape
        self.id_before = ""  # the last event ID when it began
        self._retries: list[int | None] = []
        self._offsets: list[int] | None = None
        self._payloads: list[bytes] = []
        self._block = b""
        self._block_offset = 0
        self.tail_incomplete = False
        self._ready: deque[ServerSentEvent] = deque()

    # -- the public face: feed, iterate, close --------------------------------------------------------------------

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take in the next bytes, however they were cut.

        Raises:
            UsageError: ``data`` is no bytes, or the parser is closed.
        """
        self._queue(self.take(_as_bytes(data)))

    def close(self) -> None:
        """Declare the end of input. A frame that is still open is delivered, or not, as ``on_eof`` says."""
        self._queue(self.finish("eof"))

    def __iter__(self) -> Iterator[ServerSentEvent]:
        return self

    def __next__(self) -> ServerSentEvent:
        if self._ready:
            return self._ready.popleft()
        if self.fault is not None:
            raise self.fault
        raise StopIteration

    @property
    def retry_ms(self) -> int | None:
        """The stream's reconnection time in milliseconds; it acts as soon as its line ends."""
        self._read_held_lines()
        return self._retry_ms

    @property
    def residue(self) -> str:
        """The lines that no field of the grammar accounts for, up to the bound: an error body, an HTML page."""
        self._read_held_lines()
        return b"\n".join(self._residue).decode("utf-8", "replace")

    def _queue(self, payloads: list[bytes]) -> None:
        self._ready.extend(self.frame(k) for k in range(len(payloads)))

    # -- the decoder's face: all payloads of a read at once ----------------------------------------------------------

    def take(self, data: bytes) -> list[bytes]:
        """Feed, and return the data of every frame that is whole now. A fault is left in ``fault``, never raised."""
        if self._held or self._inside or self._skip_lf or self._at_start or not self.fast:
            return self._take_any(data)
        if data[-2:] == b"\n\n":  # most reads of a live stream are one whole frame
            end = data.find(b"\n")
            start = 6 if data[:6] == b"data: " else 0
            if not start and data[:7] == b"event: " and data[end + 1 : end + 7] == b"data: ":
                start = end + 7
                end = data.find(b"\n", start)
            size = len(data)
            if start and end == size - 2 and size <= self._limit and data.find(b"\r") < 0:
                payloads = [data[start:end]]
                self._remember(payloads, None if start == 6 else [data[: start - 7]], data)
                return payloads
        elif data[-4:] == b"\r\n\r\n" and data[:6] == b"data: ":  # Gemini, and gateways built on sse-starlette
            size = len(data)
            if data.find(b"\r") == size - 4 and data.find(b"\n") == size - 3 and size <= self._limit:
                payloads = [data[6:-4]]
                self._remember(payloads, None, data)
                return payloads
        return self._take_any(data)

    def finish(self, how: str) -> list[bytes]:
        """Declare the end: ``"eof"`` delivers an open frame, ``"cut"`` and ``"cancel"`` drop it."""
        self._forget()
        if self._closed:
            return []
        self._closed = True
        if self.fault is None and how == "eof":
            self._read_tail()
        self._held, self._data, self._inside, self.fast = [], [], False, False
        return self._payloads

    def frame(self, k: int) -> ServerSentEvent:
        """The ``k``-th frame of the last :meth:`take` or :meth:`finish`, with its text decoded."""
        return ServerSentEvent(
            self.name_of(k) or "message",
            self._decoded(self._payloads[k]),
            self.last_event_id if self.ids is None else self.ids[k],
            self._retries[k] if self._retries else None,
            not (self.tail_incomplete and k == len(self._payloads) - 1),
        )

    def name_of(self, k: int) -> str | None:
        """The event type of the ``k``-th frame of the last take, None where it has none."""
        name = b"" if self._heads is None else self._heads[k][7:]
        return name.decode("utf-8", "replace") or None

    def id_of(self, k: int) -> str:
        """The last event ID at the ``k``-th frame of the last take."""
        return self.last_event_id if self.ids is None else self.ids[k]

    def offset_of(self, k: int) -> int:
        """Where the ``k``-th frame of the last take begins, in bytes from the start of the stream."""
        if self._offsets is not None:
            return self._offsets[k]
        lines_each = 2 if self._heads is None else 3
        return self._block_offset + sum(len(line) + 1 for line in self._block.split(b"\n")[: k * lines_each])

    # -- whole frames of one shape -----------------------------------------------------------------------------------

    def _take_any(self, data: bytes) -> list[bytes]:
        self._forget()
        if self._closed:
            raise UsageError("the parser is closed")
        if self.fault is not None or not data:
            return []
        if self._at_start:
            data = self._without_bom(data)
        # A CR ends its line at once, so a read that ends in one may complete a frame.
        if self._inside or self._skip_lf or not self.fast or data[-1:] == b"\r":
            self._read_lines(data)
            return self._payloads
        end = self._end_of_frames(data)
        if end == 0:
            self._hold(data)
            return self._payloads
        block = data if end == len(data) else data[:end]
        payloads = self._split(b"".join([*self._held, block]) if self._held else block) if end > 0 else None
        if payloads is None:
            self._read_lines(data)
            return self._payloads
        self._held, self._held_size = [], 0
        if end < len(data):
            self._hold(data[end:])
        return payloads

    def _end_of_frames(self, data: bytes) -> int:
        """The length of ``data`` up to its last blank line, 0 if it has none, -1 if that is not plain to see."""
        if data.find(b"\r") < 0:
            end = data.rfind(b"\n\n") + 2
            return end if end > 1 else int(data[:1] == b"\n" and self._held_ends_in_lf())
        end = data.rfind(b"\n\r\n") + 3
        end = end if end > 2 else 2 if data[:2] == b"\r\n" and self._held_ends_in_lf() else 0
        rest = data[end:]
        if rest.find(b"\n") < 0 and rest.find(b"\r") < 0:
            return end
        plain = rest[:1] != b"\n" and rest.find(b"\n\n") < 0 and rest.count(b"\r") == rest.count(b"\r\n")
        return end if plain else -1

    def _held_ends_in_lf(self) -> bool:
        return bool(self._held) and self._held[-1].endswith(b"\n")

    def _split(self, block: bytes) -> list[bytes] | None:
        """The payloads of a block of whole frames, None if they are not all of one plain shape."""
        lines = block.split(b"\n")
        each = 2 if block.startswith(b"data: ") else 3 if block.startswith(b"event: ") else 0
        if not each or len(lines) % each != 1 or len(block) > self._limit < max(map(len, lines)):
            return None
        blanks, data_lines = lines[each - 1 :: each], lines[each - 2 : -1 : each]
        if block.find(b"\r") < 0:
            if any(blanks):
                return None
            payloads = [line[6:] for line in data_lines if line[:6] == b"data: "]
        else:
            others = block.replace(b"\r", b"")  # three times as fast as count
            if blanks.count(b"\r") != len(blanks) or len(block) - len(others) != len(lines) - 1:
                return None
            payloads = [line[6:-1] for line in data_lines if line[:6] == b"data: " and line[-1] == _CR]
        if len(payloads) != len(data_lines):
            return None
        heads = None
        if each == 3:
            heads = lines[:-1:3]
            # What lies between two texts with one beginning has it too.
            if min(heads)[:7] != b"event: " or max(heads)[:7] != b"event: ":
                return None
            if b"\r" in block:
                heads = [head[:-1] for head in heads]
        self._remember(payloads, heads, block)
        return payloads

    def _remember(self, payloads: list[bytes], heads: list[bytes] | None, block: bytes) -> None:
        self._payloads, self._heads, self.ids, self._offsets = payloads, heads, None, None
        self._block, self._block_offset = block, self._position
        self._position += len(block)

    def _forget(self) -> None:
        """Begin a take: nothing of the one before is to be had any more."""
        self._payloads, self._heads, self.ids, self._retries, self._offsets = [], None, None, [], None
        self._block = b""

    def _hold(self, data: bytes) -> None:
        if self._held and len(self._held[-1]) < _SMALL:
            self._held[-1] += data
        else:
            self._held.append(data)
        self._held_size += len(data)
        if self._held_size > self._limit:
            self._read_lines(b"")  # what is held may be several lines; only the last one is unfinished

    # -- the general reader: the definition --------------------------------------------------------------------------

    def _read_held_lines(self) -> None:
        if self._held and not self._closed and self.fault is None:
            kept = (self._payloads, self._heads, self.ids, self._retries, self._offsets)
            self._read_lines(b"")  # completes lines, never a frame: whatever completes one was taken at once
            self._payloads, self._heads, self.ids, self._retries, self._offsets = kept

    def _read_lines(self, data: bytes) -> None:
        """Read what is held and ``data``, line by line; hold the rest."""
        if self._heads is None:
            self._heads, self.ids, self._offsets = [], [], []
            self.id_before = self.last_event_id
        if data and not self._skip_lf and data.find(b"\n") < 0 and data.find(b"\r") < 0:
            self._hold_line(data)
            return
        text = b"".join([*self._held, data])
        self._held, self._held_size = [], 0
        if self._skip_lf and text:
            self._skip_lf = False
            if text[0] == _LF:
                text = text[1:]
                self._position += 1
        lines, widths, rest = _lines_of(text)
        self._skip_lf = bool(lines) and not rest and text[-1] == _CR
        self._read_whole_lines(lines, widths)
        if self.fault is None and rest:
            self._hold_line(rest)

    def _read_whole_lines(self, lines: list[bytes], widths: Iterable[int]) -> None:
        """The grammar. One loop with its state in local names: every method called here would be called once a line."""
        payloads, heads, ids, offsets, retries = self._payloads, self._heads, self.ids, self._offsets, self._retries
        assert heads is not None
        assert ids is not None
        assert offsets is not None
        limit, position = self._limit, self._position
        inside, data, data_size, frame_offset = self._inside, self._data, self._data_size, self._frame_offset
        for line, width in zip(lines, widths, strict=False):
            if not line:
                if self._pending_id is not None:
                    self.last_event_id, self._pending_id = self._pending_id, None
                if data:  # a block without a data line dispatches nothing
                    payloads.append(data[0] if len(data) == 1 else b"\n".join(data))
                    heads.append(self._head)
                    ids.append(self.last_event_id)
                    offsets.append(frame_offset)
                    retries.append(self._retry)
                    data, data_size = [], 0
                inside, self._head, self._retry = False, _NO_HEAD, None
                position += width
                continue
            if not inside:
                inside, frame_offset = True, position
            if len(line) + data_size > limit:
                self._overflow(frame_offset)
                break
            position += width
            if line[:6] == b"data: ":
                data.append(line[6:])
                data_size += len(line) - 5
            elif line[:7] == b"event: ":
                self._head = line
            elif line[0] != _COLON:
                name, _, value = line.partition(b":")
                value = value[1:] if value[:1] == b" " else value
                if name == b"data":
                    data.append(value)
                    data_size += len(value) + 1
                else:
                    self._rare_field(name, value, line)
            if len(data) > _SMALL:
                data = [b"\n".join(data)]
        self._position = position
        self._inside, self._data, self._data_size, self._frame_offset = inside, data, data_size, frame_offset

    def _rare_field(self, name: bytes, value: bytes, line: bytes) -> None:
        if name == b"event":
            self._head = b"event: " + value
        elif name == b"id":
            if b"\0" not in value:
                self._pending_id = value.decode("utf-8", "replace")
        elif name == b"retry":
            # Only ASCII digits: int() alone would take "+5", "1_000" and other scripts' digits.
            if value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
                self._retry = self._retry_ms = int(value)
        else:
            self._keep_residue(line)

    def _keep_residue(self, line: bytes) -> None:
        if self._residue_room > 0:
            self.residue_lines += 1
            self._residue.append(line[: int(min(self._residue_room, len(line)))])
            self._residue_room -= len(line) + 1

    def _hold_line(self, data: bytes) -> None:
        if self._held and len(self._held[-1]) < _SMALL:
            self._held[-1] += data
        else:
            self._held.append(data)
        self._held_size += len(data)
        if self._held_size + self._data_size > self._limit:
            self._overflow(self._frame_offset if self._inside else self._position)

    def _overflow(self, offset: int) -> None:
        # As if it had come byte by byte: the first byte over the bound is one over it.
        self.fault = FrameTooLarge(int(self._limit) + 1, int(self._limit), offset)
        self._held, self._data, self.fast = [], [], False

    def _read_tail(self) -> None:
        """Take what the end of input leaves open: a line without its end, a frame without its blank line."""
        self._read_lines(b"")
        if self.fault is not None:
            return
        committed = (self._retry_ms, self.last_event_id)
        line = b"".join(self._held)
        if line:
            self._read_whole_lines([line], [len(line)])
            self._retry_ms = committed[0]  # a field acts when its line ends, and this one never did
        if self._data and self._flush_tail and self.fault is None:
            self.tail_incomplete = True
            self._read_whole_lines([b""], [0])
            self.last_event_id = committed[1]

    # -- small matters -----------------------------------------------------------------------------------------------

    def _without_bom(self, data: bytes) -> bytes:
        head = b"".join([*self._held, data]) if self._held else data
        self._held, self._held_size = [], 0
        if len(head) < len(_BOM) and _BOM.startswith(head):
            self._held = [head]  # not counted: a byte order mark is part of no frame
            return b""
        self._at_start = False
        if head.startswith(_BOM):
            self._position += len(_BOM)
            return head[len(_BOM) :]
        return head

    def _decoded(self, data: bytes) -> str:
        text = data.decode("utf-8", "replace")
        if "\ufffd" in text:
            self.replacements += text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
        return text


def _lines_of(text: bytes) -> tuple[list[bytes], Iterable[int], bytes]:
    """The lines that are whole, without their ends; how many bytes each took, with its end; and the rest."""
    if text.find(b"\r") < 0:
        lines = text.split(b"\n")
        rest = lines.pop()
        return lines, [len(line) + 1 for line in lines], rest
    lines, widths, at = [], [], 0
    for end in _LINE_END.finditer(text):
        lines.append(text[at : end.start()])
        widths.append(end.end() - at)
        at = end.end()
    return lines, widths, text[at:]


def _as_bytes(data: bytes | bytearray | memoryview) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise UsageError(f"an event stream is fed bytes, not {type(data).__name__}")
