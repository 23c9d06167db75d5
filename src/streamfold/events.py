"""The one vocabulary: what every provider's stream becomes. Knows blocks; knows nothing of bytes or providers.

Events are immutable and hashable. Told apart by ``event.type`` or by class, either of which narrows the type for a
checker. In JSON an event is one line, an object whose first member is ``type``; None and defaults are written out.
"""

from __future__ import annotations

import types
from functools import cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from streamfold.blocks import Block, Citation, Executor, JSONText, TranscriptSource
from streamfold.errors import Malformed, UsageError

__all__ = [
    "EVENT_TYPES",
    "BlockEnd",
    "BlockKind",
    "BlockStart",
    "Citation",
    "Done",
    "ErrorEvent",
    "ErrorKind",
    "Event",
    "GoAway",
    "Interrupted",
    "MediaDelta",
    "Raw",
    "ReasoningDelta",
    "Restart",
    "Session",
    "Start",
    "Stop",
    "StopReason",
    "TextDelta",
    "ToolCallCancelled",
    "ToolCallDelta",
    "ToolCallDone",
    "ToolCallStart",
    "TranscriptDelta",
    "Usage",
    "decode_event",
    "encode_event",
]

BlockKind: TypeAlias = Literal[
    "text", "refusal", "reasoning", "media", "transcript", "tool_result", "approval", "other"
]
StopReason: TypeAlias = Literal["end", "length", "tool_use", "refusal", "pause", "cancelled", "other"]
"""Why a choice ended, in one word for all providers."""

ErrorKind: TypeAlias = Literal["provider", "truncated", "protocol", "limit", "transport"]
"""Whose fault an error is; see :class:`ErrorEvent`."""


class Start(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="start"):
    """The first event of every answer. A later one fills or replaces ``id`` and ``model``.

    Attributes:
        surface: The wire dialect: ``openai-chat``, ``openai-responses``, ``anthropic``, …, ``unknown``.
        id: The provider's name for the answer.
        model: As the provider names it.
    """

    type: ClassVar[Literal["start"]] = "start"
    surface: str
    id: str | None = None
    model: str | None = None


class Restart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="restart"):
    """The answer begins anew: all blocks so far leave the snapshot; ``index`` goes on counting."""

    type: ClassVar[Literal["restart"]] = "restart"
    reason: str


class BlockStart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="block_start"):
    """A block opened. Tool calls open by ``tool_call_start`` instead.

    Attributes:
        index: Dense from 0 in order of opening, unique over all choices.
        kind: Which block it will be.
        choice: The answer it belongs to where several were asked for.
        meta: What the wire said of it besides.
    """

    type: ClassVar[Literal["block_start"]] = "block_start"
    index: int
    kind: BlockKind
    choice: int = 0
    meta: JSONText | None = None


class TextDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text_delta"):
    """A piece of visible text, of a ``text`` or ``refusal`` block.

    Attributes:
        index: The block this piece belongs to.
        text: Never empty. Cut where the provider cut it, perhaps inside a word.
    """

    type: ClassVar[Literal["text_delta"]] = "text_delta"
    index: int
    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="reasoning_delta"):
    """A piece of reasoning text or of its summary.

    Attributes:
        index: The block this piece belongs to.
        text: Never empty.
        part: Counts the parts of the block as they open, from 0.
    """

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    index: int
    text: str
    part: int = 0


class ToolCallStart(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="tool_call_start"):
    """A tool-call block opened.

    Attributes:
        index: The block.
        id: What a result must name; made up where the wire has none (``meta`` says so).
        name: Of the tool, as far as it is known; ``tool_call_done.name`` is what counts.
        kind: ``function``, ``custom``, ``mcp``, ``web_search``, ``code_execution``, ``shell``, ``apply_patch``, …
        executor: Who runs it.
        choice: The answer it belongs to where several were asked for.
        meta: What the wire said of it besides.
    """

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"
    index: int
    id: str
    name: str
    kind: str = "function"
    executor: Executor = "client"
    choice: int = 0
    meta: JSONText | None = None


class ToolCallDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="tool_call_delta"):
    """A piece of a call's arguments, as text."""

    type: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    index: int
    id: str
    delta: str


class ToolCallDone(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="tool_call_done"):
    """The whole call, authoritative.

    Attributes:
        index: The block.
        id: What a result must name.
        name: Of the tool.
        arguments: The whole text; blank ones have become ``{}``.
        valid: False when the arguments are no JSON (asked of JSON kinds only) or the provider marked the call
            incomplete. Only a valid call may be run.
        executor: Who runs it.
    """

    type: ClassVar[Literal["tool_call_done"]] = "tool_call_done"
    index: int
    id: str
    name: str
    arguments: str
    valid: bool = True
    executor: Executor = "client"


class MediaDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="media_delta"):
    """A piece of an image, audio or other data.

    Attributes:
        index: The block.
        mime_type: Where the wire names it.
        data: Decoded bytes (base64 in JSON).
        url: Where the data lies, instead of ``data``.
    """

    type: ClassVar[Literal["media_delta"]] = "media_delta"
    index: int
    mime_type: str | None = None
    data: bytes = b""
    url: str | None = None


class TranscriptDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="transcript_delta"):
    """A piece of the words of spoken audio.

    Attributes:
        index: The block.
        text: The words.
        source: Who speaks.
        final: The provider will not revise it.
        replaces: How many code points at the block's end ``text`` replaces.
    """

    type: ClassVar[Literal["transcript_delta"]] = "transcript_delta"
    index: int
    text: str
    source: TranscriptSource = "model"
    final: bool = False
    replaces: int = 0


class BlockEnd(msgspec.Struct, frozen=True, tag_field="type", tag="block_end"):
    """A block closed, tool calls too (right after ``tool_call_done``): here it is, assembled and authoritative."""

    type: ClassVar[Literal["block_end"]] = "block_end"
    index: int
    block: Block


class Usage(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="usage"):
    """Running totals so far; each replaces the one before. None: not reported.

    Attributes:
        input_tokens: The whole input, cached tokens included.
        output_tokens: The whole output, reasoning included.
        total_tokens: The provider's, else the sum where both parts were reported.
        reasoning_tokens: Part of ``output_tokens``.
        cache_read_tokens: Part of ``input_tokens`` that came out of a cache.
        cache_write_tokens: Part of ``input_tokens`` that went into a cache.
        input_audio_tokens: Part of ``input_tokens``; likewise the three below of theirs.
        cost_usd: Only where the provider reports a cost, in US dollars.
        raw: The provider's own members after merging.
    """

    type: ClassVar[Literal["usage"]] = "usage"
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    input_audio_tokens: int | None = None
    output_audio_tokens: int | None = None
    input_image_tokens: int | None = None
    output_image_tokens: int | None = None
    cost_usd: float | None = None
    raw: JSONText | None = None


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Why one choice ended.

    Attributes:
        choice: Which.
        reason: The unified word; None while it is open, or where the provider named none.
        raw: The provider's own word.
        stop_sequence: The sequence that stopped it, where one did.
    """

    choice: int = 0
    reason: StopReason | None = None
    raw: str | None = None
    stop_sequence: str | None = None

    def takes_calls_back(self) -> bool:
        """Whether the calls of the choice must not be run, though they are whole."""
        return self.reason == "refusal" or self.raw in MALFORMED


MALFORMED: Final = frozenset(
    {
        # Gemini
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
        # Bedrock
        "malformed_tool_use",
    }
)
"""Words for a turn whose calls went wrong. They come at the end, when calls before it have long been told."""


class Done(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The terminal sign was reached; nothing follows.

    Attributes:
        reason: Of choice 0; None where the provider named none.
        raw_reason: The provider's own word.
        stop_sequence: The sequence that stopped it, where one did.
        stops: One for each choice that ended.
    """

    type: ClassVar[Literal["done"]] = "done"
    reason: StopReason | None = None
    raw_reason: str | None = None
    stop_sequence: str | None = None
    stops: tuple[Stop, ...] = ()


class ErrorEvent(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="error"):
    """Something went wrong. A fatal one is last and excludes ``done``; the others change nothing.

    Attributes:
        kind: ``provider`` (it said so), ``truncated`` (the end without a terminal sign), ``protocol`` (no stream, or a
            payload that is no JSON), ``limit`` (a bound was passed), ``transport`` (the source failed).
        message: For people.
        code: The provider's machine word, or ours.
        status: The number the provider gave.
        fatal: Whether the answer ends here.
        retryable: Whether the same request may succeed later.
        retry_after_ms: How long the provider asks to wait.
        offset: Where in the stream, in bytes: the frame at fault begins here.
        request_id: The provider's, for its support.
        raw: The provider's own object.
    """

    type: ClassVar[Literal["error"]] = "error"
    kind: ErrorKind
    message: str
    code: str | None = None
    status: int | None = None
    fatal: bool = True
    retryable: bool = False
    retry_after_ms: int | None = None
    offset: int | None = None
    request_id: str | None = None
    raw: JSONText | None = None


class Interrupted(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="interrupted"):
    """Live surfaces: the model's turn was broken off.

    Attributes:
        reason: Why, where the wire says so.
        audio_ms: How much of its audio had been played, in milliseconds.
    """

    type: ClassVar[Literal["interrupted"]] = "interrupted"
    reason: str | None = None
    audio_ms: int | None = None


class ToolCallCancelled(msgspec.Struct, frozen=True, tag_field="type", tag="tool_call_cancelled"):
    """Live surfaces: calls that must not be run any more, or whose result is not wanted."""

    type: ClassVar[Literal["tool_call_cancelled"]] = "tool_call_cancelled"
    ids: tuple[str, ...]


class GoAway(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="go_away"):
    """Live surfaces: the server will close the connection in ``time_left_ms`` milliseconds."""

    type: ClassVar[Literal["go_away"]] = "go_away"
    time_left_ms: int | None = None


class Session(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="session"):
    """Live surfaces: the session's id, and whether and by which handle it can be taken up again."""

    type: ClassVar[Literal["session"]] = "session"
    id: str | None = None
    resumable: bool = False
    handle: str | None = None


class Raw(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="raw"):
    """A payload that nothing else describes: pings, signatures, unknown types, empty deltas.

    Attributes:
        name: The JSON ``type``, ``event_type`` or ``object``, else the SSE event name, else the member that caused it.
        payload: The whole payload as JSON text on one line.
        index: The block it concerns.
        is_json: False where the payload is no JSON; ``payload`` is then a JSON string of its text.
    """

    type: ClassVar[Literal["raw"]] = "raw"
    name: str
    payload: JSONText
    index: int | None = None
    is_json: bool = True


Event: TypeAlias = (
    Start
    | Restart
    | BlockStart
    | TextDelta
    | ReasoningDelta
    | ToolCallStart
    | ToolCallDelta
    | ToolCallDone
    | Citation
    | MediaDelta
    | TranscriptDelta
    | BlockEnd
    | Usage
    | Done
    | ErrorEvent
    | Interrupted
    | ToolCallCancelled
    | GoAway
    | Session
    | Raw
)
"""An event of any kind; ``event.type`` or its class tells which."""

EVENT_TYPES: Final[frozenset[type]] = frozenset(get_args(Event))


def _embed(value: object) -> msgspec.Raw:
    if isinstance(value, JSONText):
        return msgspec.Raw(_one_line(value).encode())
    raise NotImplementedError(f"no event holds a {type(value).__name__}")  # msgspec turns this into a TypeError


def _one_line(text: JSONText) -> str:
    if "\n" not in text and "\r" not in text:
        return text
    try:
        return msgspec.json.format(str(text), indent=-1)
    except _NO_JSON:  # made by hand: no JSON, or too deep; a line end in JSON proper is white space
        return text.replace("\r", " ").replace("\n", " ")


_NO_JSON: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_embed)


def encode_event(event: Event) -> bytes:
    """The event as one line of JSON in UTF-8, without a line end.

    Raises:
        UsageError: It is no event.
    """
    if type(event) not in EVENT_TYPES:
        raise no_event(event)
    return encode_json(event)


def no_event(thing: object) -> UsageError:
    """The error for what stands in the place of an event."""
    return UsageError(f"an event is one of the classes of streamfold.Event, not {type(thing).__name__}")


def encode_json(value: Any) -> bytes:
    """Whatever is made of events and blocks, as one line of JSON in UTF-8; JSON text in it is embedded."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair in something made by hand: none of ours holds one
        return _ENCODER.encode(_encodable(value))


def _encodable(value: Any) -> Any:
    """The same value with every unpaired surrogate replaced by U+FFFD."""
    if isinstance(value, str):
        return type(value)(value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    if isinstance(value, tuple | list):
        return tuple(_encodable(item) for item in value)
    if isinstance(value, dict):
        return {name: _encodable(item) for name, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, msgspec.Struct):
        return type(value)(*(_encodable(getattr(value, name)) for name in value.__struct_fields__))
    return value


def decode_event(line: bytes | str) -> Event:
    """The event that :func:`encode_event` wrote: ``decode_event(encode_event(e)) == e``.

    Args:
        line: One JSON object; members this version does not know are ignored. One whose ``type`` it does not know, or
            whose members have other types than here, becomes :class:`Raw`, so that old readers survive new events.

    Raises:
        Malformed: ``line`` is not a JSON object with a ``type``.
        UsageError: ``line`` is neither bytes nor text.
    """
    if not isinstance(line, bytes | str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"an event is decoded from bytes or text, not {type(line).__name__}")
    try:
        return _decoded(line)
    except _NO_JSON as fault:
        raise Malformed(f"not an event: {fault}", 0) from None


def _decoded(line: bytes | str) -> Event:
    tag = _TAG.decode(line).type
    kind = _BY_TAG.get(tag)
    if kind is not None:
        try:
            event: Event = _load(line, kind)
            return event
        except msgspec.ValidationError:
            pass
    text = line if isinstance(line, str) else line.decode()
    return Raw(tag, JSONText(_one_line(JSONText(text.strip()))))


class _Tag(msgspec.Struct):
    type: str


_TAG: Final = msgspec.json.Decoder(_Tag)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BY_TAG: Final[dict[str, Any]] = {kind.type: kind for kind in get_args(Event)}
_BLOCK_BY_TAG: Final[dict[str, Any]] = {kind.type: kind for kind in get_args(Block)}


@cache
def _plan(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Of each member: what reads it, and whether null means None."""
    plan: dict[str, tuple[Any, bool]] = {}
    for name, hint in get_type_hints(kind).items():
        if name not in kind.__struct_fields__:
            continue
        options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        if JSONText in options:
            plan[name] = (JSONText, type(None) in options)
        elif hint == Block:
            plan[name] = (Block, False)
        elif get_origin(hint) is tuple and get_args(hint)[0] is Citation:
            plan[name] = (Citation, False)
        else:
            plan[name] = (msgspec.json.Decoder(hint), False)
    return plan


def _load(source: bytes | str | msgspec.Raw, kind: Any) -> Any:
    """Build a ``kind`` member by member: JSON text has to come through letter by letter, which no decoder hook sees."""
    members = _MEMBERS.decode(source)
    plan = _plan(kind)
    values: dict[str, Any] = {}
    for name, raw in members.items():
        if name not in plan:
            continue
        reader, nullable = plan[name]
        if reader is JSONText:
            text = bytes(raw).decode()
            values[name] = None if nullable and text == "null" else JSONText(_one_line(JSONText(text)))
        elif reader is Block:
            values[name] = _load(raw, _BLOCK_BY_TAG.get(_TAG.decode(raw).type) or _unknown_block())
        elif reader is Citation:
            values[name] = tuple(_load(item, Citation) for item in msgspec.json.decode(raw, type=list[msgspec.Raw]))
        else:
            values[name] = reader.decode(raw)
    try:
        return kind(**values)
    except TypeError as fault:  # a required member is missing
        raise msgspec.ValidationError(str(fault)) from None


def _unknown_block() -> Any:
    raise msgspec.ValidationError("a kind of block this version does not know")
