"""Anthropic Messages (``POST /v1/messages`` with ``stream``), and the servers that speak it.

Reads against the vendor's event list: message_start, content_block_start, content_block_delta, content_block_stop,
message_delta, message_stop, ping, error. The wire's block index is no key of ours: servers have reused, skipped and
left it out, so a ``content_block_start`` always opens a fresh block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

import msgspec

from streamfold import limits
from streamfold.blocks import Block, Citation, Executor, JSONText, OtherBlock, ToolResultBlock
from streamfold.events import ErrorEvent, Event, Raw, ReasoningDelta, StopReason, TextDelta, ToolCallDelta, Usage
from streamfold.payloads import (
    DECODE_ERRORS,
    Payload,
    Reader,
    compact,
    depth_exceeds,
    is_given,
    json_text,
    known_json,
    read_object,
)
from streamfold.pieces import MANY, Pieces
from streamfold.providers import _usage
from streamfold.providers._errors import provider_error
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenReasoning, OpenWhole
from streamfold.providers._table import END, BaseNormalizer, More, Say, text_of

__all__ = ["AnthropicNormalizer"]

Members: TypeAlias = dict[str, Any]

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
}
"""What ``stop_reason`` means; any other word, or none at the end, is ``other``."""

SERVER_TOOLS: Final[Mapping[str, str]] = {
    "code_execution": "code_execution",
    "bash_code_execution": "code_execution",
    "text_editor_code_execution": "code_execution",
    "tool_search_tool_regex": "tool_search",
    "tool_search_tool_bm25": "tool_search",
}
"""Kinds of the tools that the server runs, where the kind is not the tool's own name."""

# -- the everyday payloads, but for what begins and ends a message --------------------------------------------------

# Whatever is not of these shapes goes the general way, where a type that is left out is told by the members: that lets
# the decoder check all types as tags, which costs nothing. gc=False: these hold no cycle and are dropped at once.


class _TextDelta(msgspec.Struct, gc=False, tag_field="type", tag="text_delta", rename={"piece": "text"}):
    piece: str


class _ThinkingDelta(msgspec.Struct, gc=False, tag_field="type", tag="thinking_delta", rename={"piece": "thinking"}):
    piece: str


class _InputDelta(msgspec.Struct, gc=False, tag_field="type", tag="input_json_delta", rename={"piece": "partial_json"}):
    piece: str


class _SignatureDelta(msgspec.Struct, gc=False, tag_field="type", tag="signature_delta", rename={"piece": "signature"}):
    piece: str


class _CitationsDelta(msgspec.Struct, gc=False, tag_field="type", tag="citations_delta", rename={"piece": "citation"}):
    piece: dict[str, Any]


class _EmptyText(msgspec.Struct, gc=False, tag_field="type", tag="text"):
    text: Literal[""] = ""
    citations: tuple[()] | None = None


class _EmptyThinking(msgspec.Struct, gc=False, tag_field="type", tag="thinking"):
    thinking: Literal[""] = ""
    signature: Literal[""] = ""


class _NoInput(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A placeholder for the pieces to come."""


class _ToolUse(msgspec.Struct, gc=False, tag_field="type", tag="tool_use"):
    type: ClassVar[str] = "tool_use"
    id: str = ""
    name: Any = None
    input: _NoInput | None = None
    caller: Any = None
    server_name: Any = None
    toolset_name: Any = None


class _ServerToolUse(_ToolUse, gc=False, tag_field="type", tag="server_tool_use"):
    type: ClassVar[str] = "server_tool_use"


class _DeltaEvent(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _TextDelta | _ThinkingDelta | _InputDelta | _SignatureDelta | _CitationsDelta


class _StartEvent(msgspec.Struct, gc=False, tag_field="type", tag="content_block_start"):
    index: int
    content_block: _EmptyText | _EmptyThinking | _ToolUse | _ServerToolUse


class _StopEvent(msgspec.Struct, gc=False, tag_field="type", tag="content_block_stop"):
    index: int


class _PingEvent(msgspec.Struct, gc=False, tag_field="type", tag="ping"):
    pass


class _Reason(msgspec.Struct, gc=False):
    stop_reason: str
    stop_sequence: Any = None
    stop_details: None = None
    container: None = None


class _EndEvent(msgspec.Struct, gc=False, tag_field="type", tag="message_delta"):
    delta: _Reason
    usage: dict[str, Any]
    context_management: None = None
    input_transformations: None = None


# Of nearly all payloads it is known what they are, and a decoder of one shape is faster than one that tells seven.


class _TextEvent(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _TextDelta


class _ThinkingEvent(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _ThinkingDelta


class _InputEvent(msgspec.Struct, gc=False, tag_field="type", tag="content_block_delta"):
    index: int
    delta: _InputDelta


_TEXT: Final = msgspec.json.Decoder(_TextEvent).decode
_THINKING: Final = msgspec.json.Decoder(_ThinkingEvent).decode
_INPUT: Final = msgspec.json.Decoder(_InputEvent).decode
_DECODERS: Final = {_TextDelta: _TEXT, _ThinkingDelta: _THINKING, _InputDelta: _INPUT}
_SHORT: Final = 64  # bytes: no delta is as short
_PLACE: Final = len('{"type":"content_block_')  # where deltas differ from starts, in the vendor's own layout
_DELTA: Final = ord("d")
_EVERYDAY: Final = msgspec.json.Decoder(_DeltaEvent | _StartEvent | _StopEvent | _PingEvent | _EndEvent).decode


def _everyday(normalizer: AnthropicNormalizer) -> More:
    """Reads payloads for as long as they are of everyday shapes: deltas, and what begins and ends blocks.

    It says what the general way would say, and gives up before it has changed anything.
    """
    takes, size = normalizer.takes, normalizer.shallow
    index, decode, say, pieces = normalizer.warm
    tail = pieces.tail

    def more(payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
        nonlocal index, decode, say, pieces, tail
        if len(tail) > MANY:
            tail = pieces.tail_to_add_to()
        event: Any
        for payload in payloads:
            if type(payload) is not bytes:
                return payload
            if _SHORT < len(payload) <= size and payload[_PLACE] == _DELTA:
                try:
                    event = decode(payload)
                except DECODE_ERRORS:
                    pass
                else:
                    piece = event.delta.piece
                    if piece and event.index == index:
                        tail.append(piece)
                        add(say(piece))
                        continue
            if not takes(payload):
                return payload
            index, decode, say, pieces = normalizer.warm
            tail = pieces.tail
        return END

    return more


# -- what all other payloads are read into; large members stay text ---------------------------------------------------


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    signature: Any = None
    citation: Any = None
    content: Any = None
    encrypted_content: Any = None
    stop_reason: Any = None
    stop_sequence: Any = None
    stop_details: Any = None
    container: Any = None


class _ContentBlock(msgspec.Struct, gc=False):
    type: str = ""
    id: Any = None
    name: Any = None
    text: Any = None
    thinking: Any = None
    signature: Any = None
    data: Any = None
    citations: Any = None
    input: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()
    tool_use_id: Any = None
    is_error: Any = None
    to: Any = None
    caller: Any = None
    server_name: Any = None
    toolset_name: Any = None


class _Message(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    content: tuple[_ContentBlock, ...] | None = None
    stop_reason: Any = None
    stop_sequence: Any = None
    usage: Any = None
    stop_details: Any = None
    container: Any = None
    context_management: Any = None
    input_transformations: Any = None
    diagnostics: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: Any = None
    delta: _Delta | None = None
    content_block: _ContentBlock | None = None
    message: _Message | None = None
    usage: Any = None
    error: Any = None
    context_management: Any = None
    input_transformations: Any = None


class _Result(msgspec.Struct):
    error_code: Any = None


_HALVES: Final = ("text", "thinking", "partial_json")
_EVENT: Final = Reader(_Event, _HALVES)
_MESSAGE: Final = Reader(_Message, _HALVES)
_RESULT: Final = Reader(_Result)
_DECODE: Final = _EVENT.decode


_Warm: TypeAlias = tuple[object, Callable[[bytes], Any], Say, Pieces]
"""The index that a delta names, what decodes one of its kind, what makes its event, and the text that grows."""


def _warm_of(block: OpenBlock, index: object) -> _Warm:
    at = block.index
    if block.kind == "text":
        return index, _TEXT, partial(TextDelta, at), block
    if type(block) is OpenCall:
        return index, _INPUT, partial(ToolCallDelta, at, block.id), block
    if type(block) is OpenReasoning:
        return index, _THINKING, partial(ReasoningDelta, at), block.parts[block.part(0)]
    return _COLD


_COLD: Final[_Warm] = (None, _TEXT, partial(TextDelta, 0), Pieces())  # None: which no delta names


class AnthropicNormalizer(BaseNormalizer):
    """Events of Anthropic Messages to unified events."""

    surface = "anthropic"
    terminal = "message_stop"

    def _begin(self) -> None:
        self._begun = False
        self._usage: Members | None = None
        self._totals_size = 0  # in bytes of JSON text
        self._by_index: dict[object, OpenBlock] = {}
        self._latest: OpenBlock | None = None
        self._prefilled: Members | None = None  # the block of message_start that is being read
        self._blank: OpenCall | None = None  # stopped without any input: no arguments, or cut before the first
        self.warm = _COLD

    # -- the short way ------------------------------------------------------------------------------------------------

    warm: _Warm
    """Where a delta like the last one goes."""

    @property
    def shallow(self) -> int:
        """How many bytes a payload may have that cannot nest too deep."""
        return self._shallow

    def takes(self, payload: bytes) -> bool:
        """Read a payload that is no delta like the last one; whether its shape is an everyday one."""
        try:
            event = _EVERYDAY(payload)
        except DECODE_ERRORS:
            return False
        if len(payload) > self._shallow and depth_exceeds(payload, self.answer.max_depth):
            return False
        return _TAKES[type(event)](self, event, payload)

    def _open_at(self, index: int) -> OpenBlock | None:
        """The block at that index, if it is open and no half of a character waits in it."""
        block = self._by_index.get(index)
        return None if block is None or block.half or block.index not in self.answer.open else block

    def _takes_delta(self, event: _DeltaEvent, payload: bytes) -> bool:
        """Read a citation, a signature, a delta that says nothing, or one that only looks unlike the last one."""
        delta: Any = event.delta
        block = self._open_at(event.index)
        if block is None:
            return False
        if type(delta) is _CitationsDelta:
            if block.kind != "text":
                return False
            self._cite(block, delta.piece)
            return True
        if type(delta) is _SignatureDelta:
            if type(block) is not OpenReasoning or not self._takes_raw("content_block_delta", payload, block.index):
                return False
            self._sign(block, delta.piece)
            return True
        piece = delta.piece
        if not piece:
            return self._takes_raw("content_block_delta", payload, block.index)
        index, decode, say, pieces = self.warm
        if event.index != index or decode is not _DECODERS.get(type(delta)):
            return False
        pieces.add(piece)  # it is a long one, or laid out otherwise than the vendor does
        self.answer.out.append(say(piece))
        return True

    def _takes_raw(self, name: str, payload: bytes, index: int | None) -> bool:
        """Hand out a payload that says nothing else."""
        answer = self.answer
        text = known_json(payload) if answer.shows_all else None
        if text is None:
            return False
        answer.out.append(Raw(name, text, index))
        return True

    def _takes_ping(self, event: _PingEvent, payload: bytes) -> bool:
        return self._takes_raw("ping", payload, None)

    def _takes_stop(self, event: _StopEvent, payload: bytes) -> bool:
        index, answer = event.index, self.answer
        block = self._open_at(index)
        if block is None:
            return False
        if type(block) is OpenCall:
            if not (block.tail or block.full):
                return False
            before = len(answer.out)
            answer.finish_call(block)
            answer.spans.append((before, 2))
            answer.surplus += 1
        else:
            answer.close(block)
        by_index = self._by_index
        del by_index[index]
        self._latest = next(reversed(by_index.values())) if by_index else None
        self.warm = _COLD
        return True

    def _takes_start(self, event: _StartEvent, payload: bytes) -> bool:
        content, index, answer = event.content_block, event.index, self.answer
        if index in self._by_index or answer.is_full(0):
            return False
        block: OpenBlock
        if type(content) is _EmptyText:
            block = answer.open_text()
        elif type(content) is _EmptyThinking:
            block = answer.open_reasoning()
        elif cast("_ToolUse", content).id in ("", "null"):  # one will be made up
            return False
        else:
            block = self._open_tool_use(cast("_ToolUse", content))
        self._latest = self._by_index[index] = block
        self.warm = _warm_of(block, index)
        return True

    def _takes_end(self, event: _EndEvent, payload: bytes) -> bool:
        """Read the totals and why the message ends, where all blocks are closed."""
        delta, answer = event.delta, self.answer
        if answer.open or not delta.stop_reason or not event.usage:
            return False
        if self._totals_size + 4 * len(payload) > limits.MAX_USAGE_BYTES:  # 1e9 is written as 1000000000.0
            return False
        out = answer.out
        before = len(out)
        self._latest = None
        self._read_usage(event.usage)
        self._stop(delta.stop_reason, delta.stop_sequence)
        if len(out) == before:  # the totals are what they were
            answer.spans.append((before, 0))
            answer.surplus -= 1
        return True

    # -- events -------------------------------------------------------------------------------------------------------

    def _mean(self, payload: Payload) -> bool:
        answer = self.answer
        event: _Event | None = None
        if type(payload) is bytes and (len(payload) <= self._shallow or not depth_exceeds(payload, answer.max_depth)):
            try:
                event = _DECODE(payload)
            except DECODE_ERRORS:
                pass
            else:
                answer.kind = event.type
                handler = _EVENTS.get(event.type)
                if handler is not None and self._blank is None:
                    handler(self, event)
                    return True
        if event is None:
            event = _EVENT.read(payload, answer.max_depth)
            if event is None:
                return False
        kind = event.type or ("content_block_delta" if _is_piece(event.delta) else answer.event_name() or "")
        handler = _EVENTS.get(kind)
        if handler is not None:
            if self._blank is not None and kind not in _BEFORE_AN_END:
                self._finish_blank()
            handler(self, event)
            return True
        if event.error:  # an error body in the place of a stream
            self._error(event)
        return False

    def _message_start(self, event: _Event) -> None:
        self._begin_message(event.message or _Message(), event.type)
        if self.hot:
            self.more = _everyday(self)

    def _message(self, event: _Event) -> None:
        """The whole message: the server did not stream."""
        message = _MESSAGE.read(self.answer.payload, None) or _Message()
        if event.type != "message" or message.content is None:  # the name that a frame has where it has none
            self.answer.raw(known=False)
            return
        self._begin_message(message, event.type)
        self._message_stop(event)

    def _begin_message(self, message: _Message, kind: str) -> None:
        self._cool()
        if self._begun:  # a proxy that started again upstream: never join the two
            self.answer.restart("message_start")
            self._usage, self._latest = None, None
            self._by_index.clear()
        self._begun = True
        self.answer.identify(message.id, message.model)
        self._read_usage(message.usage)
        self._stop(message.stop_reason, message.stop_sequence)
        if message.content:  # programmatic tool calling sends whole blocks here
            self._whole_blocks(message.content, kind)
        if (
            message.container
            or message.context_management
            or message.input_transformations
            or message.stop_details
            or message.diagnostics
        ):
            self.answer.raw()

    def _whole_blocks(self, contents: Iterable[_ContentBlock], kind: str) -> None:
        payload = read_object(self.answer.payload, None) or {}
        message = payload if kind == "message" else payload["message"]
        items = [item for item in message["content"] if isinstance(item, dict)]
        for self._prefilled, content in zip(items, contents, strict=True):
            self._end_block(self._start_block(content, None), None)
        self._prefilled = None

    def _content_block_start(self, event: _Event) -> None:
        index, content = event.index, event.content_block
        if type(index) is not int:
            index = _key(index)
        if index in self._by_index:  # xAI gives every block the index 0
            self._end_block(self._by_index[index], index)
        if content is not None:
            self._warm(self._start_block(content, index), index)
        else:
            self.answer.raw()

    def _start_block(self, content: _ContentBlock, index: object) -> OpenBlock:
        opener = _BLOCKS.get(content.type)
        if opener is None:
            result = content.type.endswith("_tool_result")
            opener = AnthropicNormalizer._open_result if result else AnthropicNormalizer._open_other
        block = self._latest = self._by_index[index] = opener(self, content)
        return block

    def _content_block_delta(self, event: _Event) -> None:
        delta, index, answer = event.delta or _Delta(), _key(event.index), self.answer
        self._cool()  # until it is clear that no half of a character is waiting
        said = len(answer.out)
        handler = _DELTAS.get(delta.type or _kind_of(delta))
        if handler is not None:
            handler(self, delta, index)
        if len(answer.out) == said:
            block = self._block_at(index)
            answer.raw(index=None if block is None else block.index, known=handler is not None or not delta.type)

    def _content_block_stop(self, event: _Event) -> None:
        index, by_index = event.index, self._by_index
        block = by_index.pop(index, None) if type(index) is int else None
        if block is None:  # no such index, or none at all: the block that was opened last
            block = self._block_at(_key(index))
            if block is not None:
                self._stop_block(block, _key(index))
            else:
                self.answer.raw()
            return
        self._cool()
        self._latest = next(reversed(by_index.values())) if by_index else None
        if type(block) is OpenCall:
            self._finish_call(block)
        else:
            self.answer.close(block)

    def _message_delta(self, event: _Event) -> None:
        delta = event.delta or _Delta()
        if self._blank is not None:
            self._finish_blank(cut=STOP_REASONS.get(text_of(delta.stop_reason)) == "length")
        self._cut_open_blocks()
        self._read_usage(event.usage)
        self._stop(delta.stop_reason, delta.stop_sequence)
        if event.context_management or event.input_transformations or delta.container or delta.stop_details:
            self.answer.raw()
        self.answer.meant = True

    def _message_stop(self, event: _Event) -> None:
        self._cut_open_blocks()
        if 0 not in self.answer.stops:
            self.answer.stop(0, "other", None)
        self.answer.done()

    def _ping(self, event: _Event) -> None:
        """Says nothing, so it comes out as ``raw``."""

    def _error(self, event: _Event) -> None:
        self._fail(provider_error(event.error, read_object(self.answer.payload, None) or {}))

    # -- blocks open --------------------------------------------------------------------------------------------------

    def _open_text(self, block: _ContentBlock) -> OpenBlock:
        opened = self.answer.open_text()
        if block.text:
            self.answer.text(opened, text_of(block.text))
        for citation in block.citations if isinstance(block.citations, list) else ():
            self._cite(opened, citation)
        return opened

    def _open_thinking(self, block: _ContentBlock) -> OpenBlock:
        opened = self.answer.open_reasoning()
        if block.thinking:
            self.answer.reasoning(opened, text_of(block.thinking))
        if block.signature:
            self._sign(opened, text_of(block.signature))
        return opened

    def _open_redacted(self, block: _ContentBlock) -> OpenBlock:
        opened = self.answer.open_reasoning()
        opened.redacted, opened.encrypted = True, text_of(block.data) or None
        return opened

    def _open_tool_use(self, block: _ContentBlock | _ToolUse) -> OpenCall:
        kind, name = "function", text_of(block.name)
        executor: Executor = "client"
        if block.type == "server_tool_use":
            kind, executor = SERVER_TOOLS.get(name, name or "server_tool"), "provider"
        elif block.type == "mcp_tool_use":
            kind, executor = "mcp", "provider"
        meta: Members | None = None
        if block.caller is not None or block.server_name is not None or block.toolset_name is not None:
            beside = {"caller": block.caller, "server_name": block.server_name, "toolset_name": block.toolset_name}
            meta = {name: value for name, value in beside.items() if value is not None}
        opened = self.answer.open_call(block.id, name or kind, kind=kind, executor=executor, meta=meta)
        given = block.input
        if isinstance(given, msgspec.Raw) and is_given(given) and bytes(given)[1:-1].strip():  # else a placeholder
            opened.given = json_text(given)
        return opened

    def _open_result(self, block: _ContentBlock) -> OpenBlock:
        """The result of a tool that the server ran: a list on success, an object with an error code on failure."""
        content = json_text(block.content) if is_given(block.content) else None
        call_id, name = text_of(block.tool_use_id) or None, block.type
        failed = content is not None and content[:1] == "{" and _read(_RESULT, block.content).error_code is not None
        is_error = block.is_error is True or failed

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            return ToolResultBlock(index, call_id, name, content, is_error, complete=complete, meta=meta)

        return self.answer.open_whole("tool_result", make, {"caller": block.caller} if block.caller else None)

    def _open_other(self, block: _ContentBlock) -> OpenBlock:
        kind = block.type or "unknown"
        if kind == "fallback" and isinstance(block.to, dict):  # what follows comes from another model
            self.answer.identify(None, cast("Members", block.to).get("model"))

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            raw = opened.raw if opened.revised is None else compact(opened.revised)
            return OtherBlock(index, kind, raw, complete=complete, meta=meta)

        opened = self.answer.open_whole("other", make)
        opened.raw = compact(self._members_of_block())
        return opened

    def _members_of_block(self) -> Any:
        """The content block that is being opened, as it stands in the payload."""
        if self._prefilled is not None:
            return self._prefilled
        return (read_object(self.answer.payload, None) or {}).get("content_block")

    # -- deltas -------------------------------------------------------------------------------------------------------

    def _block_at(self, index: object) -> OpenBlock | None:
        """The block a delta or stop belongs to: by its index, else the one opened last, as long as it is open."""
        block = self._by_index.get(index) or self._latest
        if block is self._blank:
            return None
        return block if block is not None and block.index in self.answer.open else None

    def _fitting(self, index: object, kind: str, opener: Callable[[], OpenBlock]) -> OpenBlock:
        """The block at that index if it is of the delta's kind; a delta of another kind opens a block of its own."""
        block = self._block_at(index)
        if block is None or block.kind != kind:
            if block is not None:
                self._end_block(block, index)
            block = self._latest = self._by_index[index] = opener()
        return block

    def _text_delta(self, delta: _Delta, index: object) -> None:
        piece = text_of(delta.text)
        if piece:
            block = self._fitting(index, "text", self.answer.open_text)
            self.answer.text(block, piece)
            self._warm(block, index)

    def _thinking_delta(self, delta: _Delta, index: object) -> None:
        piece = text_of(delta.thinking)
        if piece:
            block = self._fitting(index, "reasoning", self.answer.open_reasoning)
            assert isinstance(block, OpenReasoning)
            self.answer.reasoning(block, piece)
            self._warm(block, index)

    def _input_json_delta(self, delta: _Delta, index: object) -> None:
        piece, block = text_of(delta.partial_json), self._block_at(index)
        if not isinstance(block, OpenCall):
            if piece:
                self.answer.raw()
                self.answer.warn("orphan_fragment", "a piece of tool input belongs to no call that is open")
            return
        if piece:
            self.answer.arguments(block, piece)
        else:
            self.answer.raw(index=block.index)
        self._warm(block, index)

    def _signature_delta(self, delta: _Delta, index: object) -> None:
        block = self._block_at(index)
        if isinstance(block, OpenReasoning):
            self._sign(block, text_of(delta.signature))
            self.answer.raw(index=block.index)

    def _citations_delta(self, delta: _Delta, index: object) -> None:
        if isinstance(delta.citation, dict):
            self._cite(self._fitting(index, "text", self.answer.open_text), delta.citation)

    def _compaction_delta(self, delta: _Delta, index: object) -> None:
        """Brings the summary whole: it replaces what the start said."""
        block = self._block_at(index)
        if isinstance(block, OpenWhole) and block.raw is not None:
            if block.revised is None:
                block.revised = dict(block.raw.decoded())
            block.revised["content"] = delta.content
            if delta.encrypted_content is not None:
                block.revised["encrypted_content"] = delta.encrypted_content
            self.answer.raw(index=block.index)

    def _warm(self, block: OpenBlock, index: object) -> None:
        """Let the next payload take the short way, if it is an everyday one; deltas of this block may."""
        if self.hot and not block.half and block.index in self.answer.open:
            self.warm = _warm_of(block, index)
            self.more = _everyday(self)

    def _cool(self) -> None:
        """Let the next payload take the general way: this one may leave half a character, or a call without input."""
        self.more, self.warm = None, _COLD

    def _sign(self, block: OpenReasoning, signature: str) -> None:
        if signature:  # two pieces are seen: they are joined
            block.sign(signature)

    def _cite(self, block: OpenBlock, citation: Any) -> None:
        if not isinstance(citation, dict):
            return
        source = cast("Members", citation)
        title = text_of(source.get("title")) or text_of(source.get("document_title"))
        self.answer.cite(
            block,
            Citation(
                block.index,
                text_of(source.get("url")) or None,
                title or None,
                text_of(source.get("cited_text")) or None,
                raw=compact(source),  # its places are in the source; the whole block is what cites
            ),
        )

    # -- blocks close, totals, ends -----------------------------------------------------------------------------------

    def _stop_block(self, block: OpenBlock, index: object) -> None:
        self._cool()
        if type(block) is OpenCall:
            self._finish_call(block)
        else:
            self.answer.close(block)
        if self._by_index.get(index) is block:
            del self._by_index[index]
        else:  # an index of no open block means the one opened last
            self._by_index.popitem()
        self._latest = next(reversed(self._by_index.values())) if self._by_index else None

    def _end_block(self, block: OpenBlock, index: object) -> None:
        """The block is over because something else begins in its place, or because it came whole."""
        self._stop_block(block, index)
        self._finish_blank()

    def _finish_call(self, call: OpenCall) -> None:
        if call.tail or call.full:
            self.answer.finish_call(call)
        elif call.given:
            self.answer.finish_call(call, call.given)
        else:
            self._finish_blank()
            self._blank = call
            self.answer.said()

    def _finish_blank(self, *, cut: bool = False) -> None:
        """A call without any input is whole, unless the next thing said is that the tokens ran out."""
        if self._blank is not None:
            self.answer.finish_call(self._blank, incomplete=cut)
            self._blank = None

    def _fail(self, error: ErrorEvent) -> None:
        self._finish_blank()
        super()._fail(error)

    def _cut_open_blocks(self) -> None:
        """The message is over: a block without its stop broke off (``max_tokens`` inside tool input)."""
        self._cool()
        if self.answer.open:
            self.answer.cut_all()
            self._by_index.clear()
        self._latest = None

    def _stop(self, reason: Any, stop_sequence: Any) -> None:
        if isinstance(reason, str) and reason:
            self.answer.stops.pop(0, None)  # the newer one counts
            self.answer.stop(0, STOP_REASONS.get(reason, "other"), reason, text_of(stop_sequence) or None)

    def _read_usage(self, usage: Any) -> None:
        if isinstance(usage, dict) and usage:
            answer, before, now = self.answer, self._usage, cast("Members", usage)
            self._usage = totals = now if before is None else _usage.merge(before, now)
            text = compact(totals)
            self._totals_size = len(text)
            if self._totals_size > limits.MAX_USAGE_BYTES and totals is not now:
                answer.too_much_usage()
            answer.report(_read_totals(totals, text))


_EVENTS: Final[Mapping[str, Callable[[AnthropicNormalizer, _Event], None]]] = {
    "message_start": AnthropicNormalizer._message_start,
    "content_block_start": AnthropicNormalizer._content_block_start,
    "content_block_delta": AnthropicNormalizer._content_block_delta,
    "content_block_stop": AnthropicNormalizer._content_block_stop,
    "message_delta": AnthropicNormalizer._message_delta,
    "message_stop": AnthropicNormalizer._message_stop,
    "ping": AnthropicNormalizer._ping,
    "error": AnthropicNormalizer._error,
    "message": AnthropicNormalizer._message,
}

_TAKES: Final[Mapping[type, Callable[[AnthropicNormalizer, Any, bytes], bool]]] = {
    _DeltaEvent: AnthropicNormalizer._takes_delta,
    _StopEvent: AnthropicNormalizer._takes_stop,
    _StartEvent: AnthropicNormalizer._takes_start,
    _PingEvent: AnthropicNormalizer._takes_ping,
    _EndEvent: AnthropicNormalizer._takes_end,
}

_BEFORE_AN_END: Final = frozenset({"ping", "message_delta"})
"""What may come between the stop of a call and the word that the tokens ran out inside it."""

_BLOCKS: Final[Mapping[str, Callable[[AnthropicNormalizer, _ContentBlock], OpenBlock]]] = {
    # Besides these: every ``*_tool_result`` is a result, all others (container_upload, mcp_tool_listing, compaction,
    # fallback, what is new) are ``other``.
    "text": AnthropicNormalizer._open_text,
    "thinking": AnthropicNormalizer._open_thinking,
    "redacted_thinking": AnthropicNormalizer._open_redacted,
    "tool_use": AnthropicNormalizer._open_tool_use,
    "server_tool_use": AnthropicNormalizer._open_tool_use,
    "mcp_tool_use": AnthropicNormalizer._open_tool_use,
    "mcp_tool_result": AnthropicNormalizer._open_result,
}

_DELTAS: Final[Mapping[str, Callable[[AnthropicNormalizer, _Delta, object], None]]] = {
    "text_delta": AnthropicNormalizer._text_delta,
    "thinking_delta": AnthropicNormalizer._thinking_delta,
    "input_json_delta": AnthropicNormalizer._input_json_delta,
    "signature_delta": AnthropicNormalizer._signature_delta,
    "citations_delta": AnthropicNormalizer._citations_delta,
    "compaction_delta": AnthropicNormalizer._compaction_delta,
}


def _read_totals(members: Members, text: JSONText) -> Usage | None:
    """Cached input is counted beside ``input_tokens`` here; in the vocabulary it is part of it."""
    get = members.get
    tokens_in, tokens_out, total = get("input_tokens"), get("output_tokens"), get("total_tokens")
    cache_read, cache_write = get("cache_read_input_tokens"), get("cache_creation_input_tokens")
    if not {type(tokens_in), type(tokens_out), type(total), type(cache_read), type(cache_write)} <= _COUNTS:
        counts = (tokens_in, tokens_out, total, cache_read, cache_write)
        tokens_in, tokens_out, total, cache_read, cache_write = map(_usage.whole, counts)
    details = get("output_tokens_details")
    reasoning = _usage.whole(cast("Members", details).get("thinking_tokens")) if isinstance(details, dict) else None
    cost = _usage.cost_usd(members) if "cost" in members or "cost_in_usd_ticks" in members else None
    if tokens_in is not None:
        tokens_in += (cache_read or 0) + (cache_write or 0)
        if total is None and tokens_out is not None:
            total = tokens_in + tokens_out
    elif tokens_out is total is cache_read is cache_write is reasoning is cost:  # nothing is reported
        return None
    return Usage(tokens_in, tokens_out, total, reasoning, cache_read, cache_write, cost_usd=cost, raw=text)


_COUNTS: Final = frozenset({int, type(None)})


def _read(reader: Reader[Any], raw: msgspec.Raw) -> Any:
    """The struct of a member that was left as text; its depth was looked at with the whole payload."""
    return (reader.read(raw, None) if is_given(raw) else None) or reader.kind()


def _key(index: Any) -> object:
    return index if type(index) is int or isinstance(index, str | float) else None


def _kind_of(delta: _Delta) -> str:
    """The type of a delta that does not name it, by the member it has."""
    return next((kind for member, kind in _KINDS.items() if type(getattr(delta, member)) is str), "")


def _is_piece(delta: _Delta | None) -> bool:
    """Whether a payload that names no type shows by its delta that it is a piece of a block."""
    return delta is not None and (delta.type or _kind_of(delta)) in _DELTAS


_KINDS: Final = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "partial_json": "input_json_delta",
    "signature": "signature_delta",
}
