"""Server-sent events: bytes cut anywhere in, whole frames out (WHATWG HTML 9.2.5 grammar, 9.2.6 interpretation).

Strategy: nearly every read of a live answer holds nothing but frames of one shape (``data:`` lines, or ``event:`` and
``data:`` in turns). Such a read is split at LF and its shape is proven by comparisons that run in C. Everything else
(comments, ids, several data lines, lone CRs, odd spacing) is read line by line by the general reader, which alone is
the definition; a property test holds the two against each other. Knows nothing of JSON, payloads or providers.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from streamfold import limits
from streamfold.errors import FrameTooLarge, FramingError, UsageError

__all__ = ["AS_BYTES", "SSEParser", "ServerSentEvent", "Stray"]

AS_BYTES: Final = 'open files with "rb", take iter_bytes() or iter_content() of a response'
_NO_HEAD: Final = b"event: "  # of a frame without an event field
_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_RUN_TOGETHER: Final = re.compile(
    # A field whose value goes on in another field: a comment, the name of an event, or a whole value of JSON.
    rb"(?:event)?: ?[\w .:-]*?data: ?[\[{]|(?:id: ?[\w.-]*?)?data: ?[\[{].*?[}\]](?:data|event|id): ?[\w\[{]",
    re.DOTALL,
)
_BARE: Final = (b"{", b"[")  # how a line begins that may be JSON without a field, as Gemini's errors in mid-stream
_LF, _CR, _COLON = 10, 13, 58
_SMALL: Final = 1024  # fragments shorter than this are merged: a list of 1-byte reads costs 50 bytes a byte
_FEW: Final = 8192  # bytes of whole lines that may wait, as they came, for the blank line that makes them a frame
_USUAL_BOUNDS: Final = (limits.MAX_FRAME_BYTES, limits.MAX_RESIDUE_BYTES)
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


class Stray(NamedTuple):
    """A line that no field of the grammar accounts for, and where it stands.

    Attributes:
        before: How many frames of the same take come before it.
        block: Where the lines begin that no blank line parts from it, in bytes from the start of the stream.
        last_event_id: The stream's last event ID at this line.
        line: The line, without its end.
    """

    before: int
    block: int
    last_event_id: str
    line: bytes


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
        strays: The lines of the last take that are no field of the grammar.
        run_together: Whether the whole stream was one line that looks like many whose ends were taken away, as
            something does that hands over line by line. Known at the end of input.
    """

    fast = True
    """Whether reads of one plain shape may take the short way. For tests only."""

    # What most streams never change stands on the class: an answer may have no more than fifteen frames.
    last_event_id = ""
    replacements = 0
    fault: FramingError | None = None
    tail_incomplete = False  # the last frame was closed by the end of input
    run_together = False
    # of the last take
    ids: list[str] | None = None  # last event IDs, in step with the payloads; None where it was of one plain shape
    _heads: list[bytes] | None = None
    _offsets: list[int] | None = None
    _block = b""  # what a plain take was cut out of
    # of the bytes that no frame has used yet
    _held_size = 0
    _position = 0  # of the first held byte, from the start of the stream
    _at_start = True  # a byte order mark may still come
    _begin = 0  # where the stream began, from its start
    _skip_lf = False  # the last line ended in CR: a LF that comes next is its other half
    _room = -1  # bytes that the next read may have to take the short way: none where something is open or held
    _usual = b"data: "  # what stood before the payload of the last read that was one frame
    _closed = False
    # of the frame that is open, where the general reader has begun it
    _inside = False
    _head = _NO_HEAD
    _data_size = 0
    _retry: int | None = None
    _frame_offset = 0
    _pending_id: str | None = None
    _retry_ms: int | None = None

    def __init__(
        self,
        *,
        max_frame_bytes: int | None = limits.MAX_FRAME_BYTES,
        max_residue_bytes: int | None = limits.MAX_RESIDUE_BYTES,
        on_eof: Literal["flush", "discard"] = "flush",
    ) -> None:
        if (max_frame_bytes, max_residue_bytes) != _USUAL_BOUNDS and (
            wrong := limits.fault_of(max_frame_bytes=max_frame_bytes, max_residue_bytes=max_residue_bytes)
        ):
            raise UsageError(wrong)
        if on_eof not in ("flush", "discard"):
            raise UsageError(f'on_eof is "flush" or "discard", not {on_eof!r}')
        self._limit = sys.maxsize if max_frame_bytes is None else max_frame_bytes
        self._residue_room = sys.maxsize if max_residue_bytes is None else max_residue_bytes
        self._flush_tail = on_eof == "flush"
        self._held: list[bytes] = []  # joined once, when what they belong to is whole
        self._data: list[bytes] = []  # of the frame that is open
        self._residue: list[bytes] = []
        self._payloads: list[bytes] = []  # of the last take
        self._ids_before: list[str] = []  # in step with ids, which are those after
        self.strays: list[Stray] = []
        self._retries: list[int | None] = []
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
        return self.take_one(data) or self.take_many(data)

    def take_one(self, data: bytes) -> list[bytes] | None:
        """The same of a read that is one whole frame of a plain shape, as most of a live stream are; else None.

        Where there is none, nothing was fed: the read has still to be taken.
        """
        size, usual = len(data), self._usual
        if size > self._room:
            return None
        if not data.startswith(usual):
            usual = _head_of(data)
            if not usual:
                return None
            self._usual = usual
        start = len(usual)
        end = data.find(b"\n", start)
        if end != size - 2 or data[-1] != _LF or _CR in data:
            if end != size - 3 or data[-4:] != b"\r\n\r\n" or data.find(b"\r") != end - 1:
                return None
            end -= 1  # Gemini, and sse-starlette
        self._position += size
        self._block = data
        payloads = self._payloads = [data[start:end]]
        return payloads

    def take_many(self, data: bytes) -> list[bytes]:
        """The same of any read."""
        if self._heads is not None:
            self._forget()
        else:
            self._payloads, self._block = [], b""
        if self._closed:
            raise UsageError("the parser is closed")
        if data and self.fault is None:
            self._take_whole(self._without_bom(data) if self._at_start else data)
        clean = self.fast and self.ids is None and not (self._held or self._inside or self._at_start)
        self._room = self._limit if clean else -1
        return self._payloads

    def begin_at(self, offset: int) -> None:
        """The stream began so many bytes before what is fed first: nothing but blank lines, and perhaps its mark."""
        self._position = self._begin = offset
        self._at_start = False
        if self.fast:
            self._room = self._limit

    def finish(self, how: str) -> list[bytes]:
        """Declare the end: ``"eof"`` delivers an open frame, ``"cut"`` and ``"cancel"`` drop it."""
        self._forget()
        if self._closed:
            return []
        self._closed = True
        if self.fault is None and (self._held or self._inside):
            if how == "eof":
                self._read_tail()
            elif how == "cut":
                self._read_lines(b"")  # lines that are whole were sent, whatever became of the rest
        self._held, self._data, self._inside, self.fast, self._room = [], [], False, False, -1
        return self._payloads

    def release(self) -> None:
        """Keep nothing of the last :meth:`take`: a long wait may come."""
        self._forget()

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
        if self._heads is not None:
            head = self._heads[k]
        elif self._block.startswith(b"event: "):
            head = self._block.split(b"\n", 3 * k + 1)[3 * k].removesuffix(b"\r")
        else:
            return None
        return head[7:].decode("utf-8", "replace") or None

    def id_of(self, k: int) -> str:
        """The last event ID at the ``k``-th frame of the last take."""
        return self.last_event_id if self.ids is None else self.ids[k]

    def id_before(self, k: int) -> str:
        """The last event ID before the ``k``-th frame of the last take."""
        return self.last_event_id if self.ids is None else self._ids_before[k]

    def offset_of(self, k: int) -> int:
        """Where the ``k``-th frame of the last take begins, in bytes from the start of the stream."""
        if self._offsets is not None:
            return self._offsets[k]
        lines = k * (3 if self._block.startswith(b"event: ") else 2)
        before = sum(len(line) + 1 for line in self._block.split(b"\n", lines)[:lines])
        return self._position - len(self._block) + before

    # -- whole frames of one shape -----------------------------------------------------------------------------------

    def _take_whole(self, data: bytes) -> None:
        # A CR ends its line at once, so a read that ends in one may complete a frame.
        if self._inside or self._skip_lf or not self.fast or data[-1:] == b"\r":
            self._read_lines(data)
            return
        end = self._end_of_frames(data)
        if end == 0:
            if data:
                self._hold(data)
            return
        size, held = len(data), self._held
        rest = size - end
        if rest and (rest > self._limit or _is_due(data[end:])):
            self._read_lines(data)
            return
        block = data if end == size else data[:end]
        if held:
            block = b"".join([*held, block])
        payloads = _split(block) if end > 0 and len(block) <= self._limit else None
        if payloads is None:
            self._read_lines(data)
            return
        self._payloads, self._block = payloads, block
        self._position += len(block)
        self._held, self._held_size = [data[end:]] if rest else [], rest

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

    def _forget(self) -> None:
        """Begin a take: nothing of the one before is to be had any more."""
        self._payloads, self._heads, self.ids, self._retries, self._offsets = [], None, None, [], None
        self._block, self.strays = b"", []

    def _hold(self, data: bytes) -> None:
        """Keep what no blank line has ended yet; once it is much, of its last line alone."""
        held, before = self._held, self._held_size
        if held and len(held[-1]) < _SMALL:
            held[-1] += data
        else:
            held.append(data)
        size = self._held_size = before + len(data)
        if size > self._limit or (data.find(b"\n") >= 0 and _is_due(b"".join(held), before)):
            self._read_lines(b"")

    # -- the general reader: the definition --------------------------------------------------------------------------

    def _read_held_lines(self) -> None:
        if self._held and not self._closed and self.fault is None:
            kept = (self._payloads, self._heads, self.ids, self._retries, self._offsets, self.strays)
            self._read_lines(b"")  # completes lines, never a frame: whatever completes one was taken at once
            self._payloads, self._heads, self.ids, self._retries, self._offsets, self.strays = kept

    def _read_lines(self, data: bytes) -> None:
        """Read what is held and ``data``, line by line; hold the rest."""
        if self._heads is None:
            self._heads, self.ids, self._offsets, self.strays, self._ids_before = [], [], [], [], []
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
                before = self.last_event_id
                if self._pending_id is not None:
                    self.last_event_id, self._pending_id = self._pending_id, None
                if data:  # a block without a data line dispatches nothing
                    payloads.append(data[0] if len(data) == 1 else b"\n".join(data))
                    heads.append(self._head)
                    ids.append(self.last_event_id)
                    self._ids_before.append(before)
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
                elif not self._rare_field(name, value):
                    self._keep_stray(Stray(len(payloads), frame_offset, self.last_event_id, line))
            if len(data) > _SMALL and len(data[-2]) < _SMALL:
                last = data.pop()
                data[-1] += b"\n" + last
        self._position = position
        self._inside, self._data, self._data_size, self._frame_offset = inside, data, data_size, frame_offset

    def _rare_field(self, name: bytes, value: bytes) -> bool:
        """Read a field other than data; whether it is one of the grammar."""
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
            return False
        return True

    def _keep_stray(self, stray: Stray) -> None:
        self.strays.append(stray)
        if self._residue_room > 0:
            self._residue.append(stray.line[: self._residue_room])
            self._residue_room -= len(stray.line) + 1

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
        self.fault = FrameTooLarge(self._limit + 1, self._limit, offset)
        self._held, self._data, self.fast = [], [], False

    def _read_tail(self) -> None:
        """Take what the end of input leaves open: a line without its end, a frame without its blank line."""
        self._read_lines(b"")
        if self.fault is not None:
            return
        committed = (self._retry_ms, self.last_event_id)
        line = b"".join(self._held)
        if line:
            self.run_together = self._position in (self._begin, len(_BOM)) and _RUN_TOGETHER.match(line) is not None
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


def _head_of(frame: bytes) -> bytes:
    """What stands before the payload of a frame of one plain shape; nothing if it is of no such shape."""
    if frame.startswith(b"event: "):
        start = frame.find(b"\n") + 7
        return frame[:start] if frame.startswith(b"data: ", start - 6) else b""
    return b"data: " if frame.startswith(b"data: ") else b""


def _split(block: bytes) -> list[bytes] | None:
    """The payloads of a block of whole frames, None if they are not all of one plain shape.

    Where the same bytes stand between all payloads, the block is split at those: one object a frame, not three. The
    line ends of the block tell whether any piece holds more than a payload.
    """
    end, lf = b"\n", -1
    if block.find(b"\r") >= 0:
        end, lf = b"\r\n", _count(block, b"\n")
        if block[-4:] != b"\r\n\r\n" or lf != _count(block, b"\r"):
            return None
    if block[:6] == b"data: ":
        payloads = block[6 : -2 * len(end)].split(end + end + b"data: ")
        return payloads if _count(block, b"\n") == 2 * len(payloads) else None
    if block[:7] != b"event: ":
        return None
    head = block[: block.find(end)] + end + b"data: "
    if block.startswith(head) and block.startswith(end + head, block.rfind(end + b"event: ")):
        payloads = block[len(head) : -2 * len(end)].split(end + end + head)
        if _count(block, b"\n") == 3 * len(payloads):
            return payloads
    lines = block.split(end)
    heads, data = lines[:-1:3], lines[1::3]
    if len(lines) != 3 * len(data) + 1 or any(lines[2::3]) or lf not in (-1, len(lines) - 1):
        return None
    # Heads are many times the same few; what lies between two texts with one beginning has it too.
    kinds = set(heads)
    plain = min(kinds)[:7] == max(kinds)[:7] == b"event: " and min(data)[:6] == max(data)[:6] == b"data: "
    return [line[6:] for line in data] if plain else None


def _count(block: bytes, byte: bytes) -> int:
    return len(block) - len(block.replace(byte, b""))  # three times as fast as count


def _is_due(waiting: bytes, known: int = 0) -> bool:
    """Whether whole lines that wait for the blank line behind them have to be read before it comes.

    They are many bytes, or one of them may say that it never comes. Of so many bytes that is known.
    """
    end = waiting.rfind(b"\n")
    if end < known:
        return False
    if end > _FEW:
        return True
    for line in waiting[waiting.rfind(b"\n", 0, known) + 1 : end].split(b"\n"):
        if line.lstrip(b" \t").startswith(_BARE):
            return True
    return False


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
    raise UsageError(f"an event stream is fed bytes, not {type(data).__name__}; {AS_BYTES}")
