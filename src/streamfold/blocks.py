"""What an answer is made of once it is folded: immutable blocks. Knows nothing of events, streams or providers.

Every block names its place: ``index`` (dense from 0 in order of opening, over all choices), ``choice`` (0 but where a
caller asked for several answers), ``complete`` (False where the stream broke off inside it) and ``meta`` (what the wire
said besides, as JSON text: item ids, a signature on a text part, whether an id was made up).
"""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from streamfold.errors import Malformed

__all__ = [
    "ApprovalBlock",
    "Block",
    "Citation",
    "Executor",
    "JSONText",
    "MediaBlock",
    "OtherBlock",
    "ReasoningBlock",
    "RefusalBlock",
    "TextBlock",
    "ToolCallBlock",
    "ToolCallState",
    "ToolResultBlock",
    "TranscriptBlock",
    "TranscriptSource",
]

Executor: TypeAlias = Literal["client", "provider"]
TranscriptSource: TypeAlias = Literal["model", "user"]
ToolCallState: TypeAlias = Literal["open", "ready", "invalid", "cut", "void", "cancelled", "provider"]


class JSONText(str):
    """A JSON value as its text: hashable and immutable where a dict would be neither, and parsed only when asked for.

    It is a ``str`` that holds JSON on one line; in an encoded event it is embedded as JSON, not as a string.
    """

    __slots__ = ()

    def decoded(self) -> Any:
        """The value: dicts, lists, text, numbers, booleans or None, fresh at each call.

        A number that Python cannot hold (``1e999``, five thousand digits) is None.

        Raises:
            Malformed: The text is no JSON (only possible for an instance that somebody made by hand), or nests deeper
                than Python can follow (only where ``max_depth`` was lifted).
        """
        try:
            return _decoded(self)
        except (ValueError, RecursionError) as fault:
            raise Malformed(f"not JSON: {fault}", 0) from None


def _decoded(text: JSONText) -> Any:
    data = text.encode()
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return _GRAMMAR.decode(text)  # msgspec admits no number beyond a float, and no integer of 4301 digits


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) < 4300 else None  # more make int() raise ValueError


def _float(number: str) -> float | None:
    value = float(number)
    return value if math.isfinite(value) else None


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


_GRAMMAR: Final = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_no_number)


class Citation(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="citation"):
    """A source that a piece of text rests on; also the event that reports it.

    Attributes:
        index: The block it belongs to.
        url: Of the source, where it has one.
        title: Of the source.
        cited_text: The words of the source that are quoted.
        start: Where the citing text begins, in code points of the block's text; None where that cannot be worked out.
        end: Where it ends, exclusive.
        raw: The provider's own object.
    """

    type: ClassVar[Literal["citation"]] = "citation"
    index: int
    url: str | None = None
    title: str | None = None
    cited_text: str | None = None
    start: int | None = None
    end: int | None = None
    raw: JSONText | None = None


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Visible text."""

    type: ClassVar[Literal["text"]] = "text"
    index: int
    text: str = ""
    citations: tuple[Citation, ...] = ()
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class RefusalBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="refusal"):
    """Visible text by which the model declines."""

    type: ClassVar[Literal["refusal"]] = "refusal"
    index: int
    text: str = ""
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class ReasoningBlock(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    """Reasoning, or its summary; one block for one item of the wire.

    Attributes:
        text: The parts joined by a blank line.
        parts: The parts as the provider numbered them.
        signature: What the provider wants back unchanged to accept the block in the next request.
        encrypted: Reasoning only the provider can read (the latest copy).
        redacted: The provider withheld the text.
    """

    type: ClassVar[Literal["reasoning"]] = "reasoning"
    index: int
    text: str = ""
    parts: tuple[str, ...] = ()
    signature: str | None = None
    encrypted: str | None = None
    redacted: bool = False
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class ToolCallBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="tool_call"):
    """A call of a tool.

    Attributes:
        id: What the result must name.
        name: Of the tool; the kind's own name where the wire has none.
        arguments: As text; JSON for the JSON kinds.
        kind: ``function``, ``custom``, ``mcp``, ``web_search``, ``code_execution``, ``shell``, …
        executor: Who runs it.
        state: ``open`` while it streams; ``ready`` to run; ``invalid``: finished, but its arguments are no JSON or the
            provider marked it incomplete; ``cut``: the stream ended inside it; ``void``: the turn was refused or the
            call malformed; ``cancelled``; ``provider``: run by the provider.
    """

    type: ClassVar[Literal["tool_call"]] = "tool_call"
    index: int
    id: str
    name: str
    arguments: str = ""
    kind: str = "function"
    executor: Executor = "client"
    state: ToolCallState = "open"
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class MediaBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="media"):
    """An image, audio or other data, inline or by URL."""

    type: ClassVar[Literal["media"]] = "media"
    index: int
    mime_type: str | None = None
    data: bytes = b""
    url: str | None = None
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class TranscriptBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="transcript"):
    """The words of spoken audio, of the model or of the user."""

    type: ClassVar[Literal["transcript"]] = "transcript"
    index: int
    text: str = ""
    source: TranscriptSource = "model"
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class ToolResultBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="tool_result"):
    """What a tool that the provider ran gave back.

    Attributes:
        call_id: The call it answers; perhaps one of an earlier answer.
        name: Of the tool, or of the kind of result.
        content: The provider's own content.
        is_error: The tool failed; the answer goes on.
    """

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    index: int
    call_id: str | None = None
    name: str | None = None
    content: JSONText | None = None
    is_error: bool = False
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class ApprovalBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="approval"):
    """The provider asks whether it may run a call."""

    type: ClassVar[Literal["approval"]] = "approval"
    index: int
    id: str
    name: str
    arguments: str = ""
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


class OtherBlock(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="other"):
    """A block of the wire that no other kind describes.

    Attributes:
        kind: The provider's name for it.
        raw: The provider's own object.
    """

    type: ClassVar[Literal["other"]] = "other"
    index: int
    kind: str
    raw: JSONText | None = None
    choice: int = 0
    complete: bool = True
    meta: JSONText | None = None


Block: TypeAlias = (
    TextBlock
    | RefusalBlock
    | ReasoningBlock
    | ToolCallBlock
    | MediaBlock
    | TranscriptBlock
    | ToolResultBlock
    | ApprovalBlock
    | OtherBlock
)
"""A block of any kind; ``block.type`` or its class tells which."""
