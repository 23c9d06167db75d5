"""Blocks while they are open: what came of them so far, and what they will be once they are closed."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, TypeAlias

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
from streamfold.pieces import Pieces

__all__ = ["MakeBlock", "OpenBlock", "OpenCall", "OpenMedia", "OpenReasoning", "OpenTranscript", "OpenWhole"]

MakeBlock: TypeAlias = Callable[[int, bool, JSONText | None], Block]
"""Makes a block of its index, whether it is complete, and its meta."""


class OpenBlock:
    """A block that is open: of kind ``text`` or ``refusal``, and what all the others share.

    What most blocks never have stands on the class, so that opening one costs little.
    """

    half: str = ""  # the first half of a surrogate pair, waiting for the second
    citations: tuple[Citation, ...] = ()

    def __init__(self, index: int, kind: BlockKind, choice: int, meta: dict[str, Any] | None) -> None:
        self.index, self.kind, self.choice, self.meta = index, kind, choice, meta
        self.pieces = Pieces()

    def json_meta(self) -> JSONText | None:
        """What the wire said besides."""
        return compact(self.meta) if self.meta else None

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        text, meta = str(self.pieces), self.json_meta()
        if self.kind == "refusal":
            return RefusalBlock(self.index, text, self.choice, complete, meta)
        return TextBlock(self.index, text, self.citations, self.choice, complete, meta)


class OpenReasoning(OpenBlock):
    """Reasoning: parts by the number the wire gives them, in order of opening."""

    signature: str | None = None
    encrypted: str | None = None
    redacted: bool = False

    def __init__(self, index: int, choice: int, meta: dict[str, Any] | None) -> None:
        self.index, self.kind, self.choice, self.meta = index, "reasoning", choice, meta
        self.parts: list[Pieces] = []
        self.numbers: dict[object, int] = {}

    def part(self, wire_number: object) -> int:
        """Our number of the part that the wire calls so; opens it if it is new."""
        number = self.numbers.get(wire_number)
        if number is None:
            number = self.numbers[wire_number] = len(self.parts)
            self.parts.append(Pieces())
        return number

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        parts = tuple([text for text in map(str, self.parts) if text])
        text = parts[0] if len(parts) == 1 else "\n\n".join(parts)
        return ReasoningBlock(
            self.index,
            text,
            parts,
            self.signature,
            self.encrypted,
            self.redacted,
            self.choice,
            complete,
            self.json_meta(),
        )


class OpenCall(OpenBlock):
    """A tool call."""

    scanner: PartialJSON | None = None
    whole: str = ""  # arguments that came with the start, in case no piece follows

    def __init__(
        self,
        index: int,
        choice: int,
        meta: dict[str, Any] | None,
        id: str,  # noqa: A002 - the vocabulary's own name
        name: str,
        kind: str = "function",
        executor: Executor = "client",
        is_json: bool = True,
    ) -> None:
        self.index, self.kind, self.choice, self.meta = index, "tool_call", choice, meta
        self.pieces = Pieces()
        self.id, self.name, self.call_kind, self.executor, self.is_json = id, name, kind, executor, is_json
        self.state: ToolCallState = "provider" if executor == "provider" else "open"

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        return ToolCallBlock(
            self.index,
            self.id,
            self.name,
            str(self.pieces),
            self.call_kind,
            self.executor,
            self.state,
            self.choice,
            complete,
            self.json_meta(),
        )


class OpenMedia(OpenBlock):
    """Media: base64 pieces are decoded as whole quartets come together."""

    url: str | None = None
    carry: str = ""

    def __init__(self, index: int, choice: int, meta: dict[str, Any] | None, mime_type: str | None) -> None:
        super().__init__(index, "media", choice, meta)
        self.mime_type = mime_type
        self.data: list[bytes] = []

    def decode(self, piece: str) -> bytes:
        """The bytes that the piece completes. White space is passed over, both alphabets are read."""
        text = self.carry + "".join(piece.split()).rstrip("=").translate(_URL_SAFE)
        whole = len(text) - len(text) % 4
        self.carry = text[whole:]
        return _b64(text[:whole])

    def rest(self) -> bytes:
        """The bytes of an unpadded last quartet."""
        text, self.carry = self.carry, ""
        return _b64(text + "=" * (-len(text) % 4)) if len(text) > 1 else b""

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        data = b"".join(self.data)
        return MediaBlock(self.index, self.mime_type, data, self.url, self.choice, complete, self.json_meta())


_URL_SAFE: Final = str.maketrans("-_", "+/")


def _b64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


class OpenTranscript(OpenBlock):
    """The words of spoken audio."""

    def __init__(self, index: int, choice: int, meta: dict[str, Any] | None, source: TranscriptSource) -> None:
        super().__init__(index, "transcript", choice, meta)
        self.source: TranscriptSource = source

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        return TranscriptBlock(self.index, str(self.pieces), self.source, self.choice, complete, self.json_meta())


class OpenWhole(OpenBlock):
    """A block that came in one piece and waits for its end: a tool's result, a block of no other kind."""

    raw: JSONText | None = None

    def __init__(self, index: int, kind: BlockKind, choice: int, meta: dict[str, Any] | None, make: MakeBlock) -> None:
        super().__init__(index, kind, choice, meta)
        self.make = make

    def block(self, complete: bool) -> Block:
        """The block as it is now."""
        return self.make(self.index, complete, self.json_meta())
