"""Blocks while they are open: what came of them so far, and what they will be once they are closed."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from streamfold.blocks import (
    Block,
    Citation,
    Executor,
    JSONText,
    MediaBlock,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ToolCallBlock,
    ToolCallState,
    TranscriptBlock,
    TranscriptSource,
)
from streamfold.events import BlockKind
from streamfold.partial_json import PartialJSON
from streamfold.payloads import compact
from streamfold.pieces import MANY, Pieces

__all__ = ["MakeBlock", "OpenBlock", "OpenCall", "OpenMedia", "OpenReasoning", "OpenTranscript", "OpenWhole", "Told"]

MakeBlock: TypeAlias = Callable[[int, bool, JSONText | None], Block]
"""Makes a block of its index, whether it is complete, and its meta."""


class Told(Pieces, kw_only=True):
    """Text whose pieces are what was told of it, and which the provider may say again as a whole.

    Where the whole contradicts the pieces it is what counts; what a later end adds is still measured by the pieces.
    """

    settled: str | None = None  # the whole that contradicts the pieces
    half: str = ""  # the first half of a surrogate pair, waiting for the second

    def add(self, text: str) -> None:
        """Append a piece. One that follows an end shows that it was none."""
        self.settled = None
        self.tail.append(text)
        if len(self.tail) > MANY:
            self.roll()

    def mark(self) -> int:
        """The place between what was told and what will be, for :meth:`begins`."""
        self.roll()
        return len(self.full)

    def says(self, whole: str) -> bool:
        """Whether this is what was told, where that is plain to see: ends say one text up to four times.

        What was told is joined as in :meth:`begins`, which tells all that is not so plain.
        """
        full, tail = self.full, self.tail
        if self.half or self.settled is not None or not (full or tail):
            return False
        if tail or len(full) > 1:
            if not whole.startswith(full[0] if full else tail[0]):
                return False
            self.full = full = ["".join(full) + "".join(tail)]
            self.tail = []
        return full[0] == whole

    def begins(self, whole: str, mark: int = 0) -> str | None:
        """What was told since the mark, if ``whole`` begins with it, else None.

        Costs what ``whole`` is long, not what was told: that is joined once, and only where its first piece fits.
        """
        full, tail = self.full, self.tail
        count = max(len(full) - mark, 0)
        if not count and not tail:
            return ""
        had = full[mark] if count else tail[0]
        if count + len(tail) > 1 and whole.startswith(had):
            had = "".join(full[mark:]) + "".join(tail)
            full[mark:], self.tail = [had], []
        return had if whole.startswith(had) else None

    def text(self) -> str:
        """What the text is."""
        return self.whole() if self.settled is None else self.settled


class OpenBlock(Told):
    """A block that is open: of kind ``text`` or ``refusal``, and what all the others share.

    It is a struct, and the text that grows, not a holder of it: blocks are opened by the dozen in short answers.
    """

    index: int
    kind: BlockKind | Literal["tool_call"]
    choice: int = 0
    meta: dict[str, Any] | None = None
    citations: list[Citation] = []

    def json_meta(self) -> JSONText | None:
        """What the wire said besides."""
        return compact(self.meta) if self.meta else None

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        text = self.settled
        if text is None:
            text = self.whole() if self.full else "".join(self.tail)
        meta = compact(self.meta) if self.meta else None
        if self.kind == "refusal":
            return RefusalBlock(self.index, text, self.choice, complete, meta)
        return TextBlock(self.index, text, tuple(self.citations), self.choice, complete, meta)


class OpenReasoning(OpenBlock):
    """Reasoning: parts by the number the wire gives them, in order of opening."""

    parts: list[Told] = []
    numbers: dict[Any, int] = {}
    signature: str | None = None
    signed: Pieces | None = None  # of the signature, where it comes in pieces
    encrypted: str | None = None
    blobs: list[str] = []  # its pieces, where it comes in pieces, each base64 by itself
    redacted: bool = False

    def sign(self, piece: str) -> None:
        """A piece of the signature."""
        if self.signed is None:
            self.signed = Pieces()
        self.signed.add(piece)

    def part(self, wire_number: object) -> int:
        """Our number of the part that the wire calls so; opens it if it is new."""
        number = self.numbers.get(wire_number)
        if number is None:
            number = self.numbers[wire_number] = len(self.parts)
            self.parts.append(Told())
        return number

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        if len(self.parts) == 1:
            text = self.parts[0].text()
            parts: tuple[str, ...] = (text,) if text else ()
        else:
            parts = tuple([text for part in self.parts if (text := part.text())])
            text = parts[0] if len(parts) == 1 else "\n\n".join(parts)
        return ReasoningBlock(
            self.index,
            text,
            parts,
            self.signature if self.signed is None else self.signed.whole(),
            _one_blob(self.blobs) if self.blobs else self.encrypted,
            self.redacted,
            self.choice,
            complete,
            compact(self.meta) if self.meta else None,
        )


class OpenCall(OpenBlock):
    """A tool call."""

    id: str = ""
    name: str = ""
    call_kind: str = "function"
    executor: Executor = "client"
    is_json: bool = True
    state: ToolCallState = "open"
    scanner: PartialJSON | None = None
    given: str = ""  # arguments that came with the start, in case no piece follows
    told: tuple[dict[str, Any] | None, JSONText | None] | None = None  # meta as the start told it, and its text

    def json_meta(self) -> JSONText | None:
        """What the wire said besides; written once, where whoever opened the call only ever replaces it."""
        told = self.told
        if told is not None and told[0] is self.meta:
            return told[1]
        return compact(self.meta) if self.meta else None

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        return ToolCallBlock(
            self.index,
            self.id,
            self.name,
            self.text(),
            self.call_kind,
            self.executor,
            self.state,
            self.choice,
            complete,
            self.json_meta(),
        )


class OpenMedia(OpenBlock):
    """Media: base64 pieces are decoded as whole quartets come together."""

    mime_type: str | None = None
    url: str | None = None
    data: list[bytes] = []
    carry: str = ""

    def decode(self, piece: str) -> bytes:
        """The bytes that the piece completes. Both alphabets are read; what is of neither is passed over."""
        if not self.carry and len(piece) % 4 == 0 and _QUARTETS.fullmatch(piece):  # nearly all: a fifth of the time
            return _b64(piece)
        text = self.carry + _NO_BASE64.sub("", piece.translate(_URL_SAFE))
        *padded, text = _PADDING.split(text) if "=" in text else (text,)  # where a run ends, the next begins a quartet
        whole = len(text) - len(text) % 4
        self.carry = text[whole:]
        return b"".join([*map(_b64, padded), _b64(text[:whole])])

    def rest(self) -> bytes:
        """The bytes of an unpadded last quartet."""
        text, self.carry = self.carry, ""
        return _b64(text)

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        data = b"".join(self.data)
        return MediaBlock(self.index, self.mime_type, data, self.url, self.choice, complete, self.json_meta())


_URL_SAFE: Final = str.maketrans("-_", "+/")
_NO_BASE64: Final = re.compile("[^A-Za-z0-9+/=]+")
_PADDING: Final = re.compile("=+")
_QUARTETS: Final = re.compile("[A-Za-z0-9+/]*={0,2}")  # where their number fits


def _b64(text: str) -> bytes:
    """The bytes of a run without its padding; a single letter of a quartet holds none."""
    if len(text) % 4 == 1:
        text = text[:-1]
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _one_blob(pieces: list[str]) -> str:
    """The pieces as one; as they are where there is one, or where they are no base64."""
    try:
        parts = [base64.b64decode(piece, validate=True) for piece in pieces[1:] and pieces]
    except ValueError:
        parts = []
    return base64.b64encode(b"".join(parts)).decode() if parts else "".join(pieces)


class OpenTranscript(OpenBlock):
    """The words of spoken audio."""

    source: TranscriptSource = "model"

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        return TranscriptBlock(self.index, self.whole(), self.source, self.choice, complete, self.json_meta())


class OpenWhole(OpenBlock):
    """A block that came in one piece and waits for its end: a tool's result, a block of no other kind."""

    make: MakeBlock | None = None
    raw: JSONText | None = None
    revised: dict[str, Any] | None = None  # what stands there now, if that is other than ``raw``

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        assert self.make is not None
        return self.make(self.index, complete, self.json_meta())
