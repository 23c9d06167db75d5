"""Bedrock ConverseStream, and Nova's own stream, which wraps the same events by name.

Reads against the service's model: messageStart, contentBlockStart, contentBlockDelta, contentBlockStop, messageStop,
metadata. The event's type stands beside the payload (a header of the binary framing, a frame's name) or around it
(``{"contentBlockDelta": {…}}``: Nova, and clients that decode the framing themselves); where it stands nowhere, the
members tell. Text and reasoning have no start of their own. Usage follows the stop, so the end of input is the end.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from streamfold.blocks import Block, Citation, Executor, JSONText, ToolResultBlock
from streamfold.events import ErrorEvent, StopReason, Usage
from streamfold.payloads import Payload, compact, read_object
from streamfold.providers import _usage
from streamfold.providers._aws import exception, is_exception
from streamfold.providers._errors import truncated
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenMedia, OpenReasoning
from streamfold.providers._table import BaseNormalizer, text_of

__all__ = ["BedrockConverseNormalizer"]

Members: TypeAlias = dict[str, Any]

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal",
    "content_filtered": "refusal",
    "malformed_model_output": "other",
    "malformed_tool_use": "other",
}
"""What ``stopReason`` means; any other word, or none at the stop, is ``other``."""

SERVER_TOOLS: Final[Mapping[str, str]] = {
    "nova_code_interpreter": "code_execution",
    "nova_grounding": "web_search",
}
"""Kinds of the tools that the service runs, where the kind is not the tool's own name."""

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    # unified name -> where it may stand; the second names are the wire's own doubles
    "input_tokens": ("inputTokens",),
    "output_tokens": ("outputTokens",),
    "total_tokens": ("totalTokens",),
    "cache_read_tokens": ("cacheReadInputTokens", "cacheReadInputTokenCount"),
    "cache_write_tokens": ("cacheWriteInputTokens", "cacheWriteInputTokenCount"),
}

_HALVES: Final = ("text", "input")
_PADDING: Final = "p"  # random length, so that sizes tell nothing
_PLAIN_METADATA: Final = frozenset({"usage", "metrics", _PADDING})
_NOTHING: Final[Members] = {}


class BedrockConverseNormalizer(BaseNormalizer):
    """Events of ConverseStream to unified events."""

    surface = "bedrock-converse"
    terminal = "messageStop"

    def _begin(self) -> None:
        self._begun = self._stopped = False
        self._usage: Members | None = None
        self._by_index: dict[object, OpenBlock] = {}
        self._items: dict[int, list[str]] = {}  # of the results of the service's tools, by their blocks
        self._blank: OpenCall | None = None  # stopped without any input: no arguments, or cut before the first

    # -- events -------------------------------------------------------------------------------------------------------

    def _mean(self, payload: Payload) -> bool:
        members = read_object(payload, self.answer.max_depth, _HALVES)
        if members is None:
            return False
        name, event = self._event_of(members)
        handler = _EVENTS.get(name)
        if handler is not None:
            if self._blank is not None and name not in ("messageStop", "metadata"):
                self._finish_blank()
            handler(self, event)
        elif is_exception(name):
            self._fail(exception(name, event))
        else:
            return False
        return True

    def _event_of(self, members: Members) -> tuple[str, Members]:
        """The type of the event and its members."""
        name = self.answer.event_name() or ""
        if name in _EVENTS or is_exception(name):
            return name, members
        for name, event in members.items():
            if isinstance(event, dict) and (name in _EVENTS or is_exception(name)):
                return name, cast("Members", event)
        return next((name for telling, name in _TELLING if telling in members), ""), members

    def _message_start(self, event: Members) -> None:
        if self._begun:  # a proxy that started again upstream: never join the two
            self.answer.restart("messageStart")
            self._by_index, self._usage, self._stopped = {}, None, False
        self._begun = True
        self.answer.identify(None, None)

    def _block_start(self, event: Members) -> None:
        index, start = _key(event.get("contentBlockIndex")), _object(event.get("start"))
        kind = next((name for name in _STARTS if isinstance(start.get(name), dict)), None)
        if kind is None:  # text has been seen to start with nothing
            return
        self._stop_block(index)
        self._by_index[index] = _STARTS[kind](self, start[kind])

    def _block_delta(self, event: Members) -> None:
        index, delta = _key(event.get("contentBlockIndex")), _object(event.get("delta"))
        for name, value in delta.items():
            handler = _DELTAS.get(name)
            if handler is not None:
                handler(self, value, index)

    def _block_stop(self, event: Members) -> None:
        self._stop_block(_key(event.get("contentBlockIndex")))

    def _message_stop(self, event: Members) -> None:
        word = text_of(event.get("stopReason"))
        reason = STOP_REASONS.get(word, "other")
        if self._blank is not None:
            self._finish_blank(cut=reason == "length")
        self.answer.cut_all()  # a block without its stop broke off
        self._by_index.clear()
        extra = event.get("additionalModelResponseFields")
        stop_sequence = text_of(_object(extra).get("stop_sequence"))  # comes where the request asked for it
        self.answer.stops.pop(0, None)  # the newer one counts
        self.answer.stop(0, reason, word or None, stop_sequence or None)
        self._stopped = True
        if extra:
            self.answer.raw()
        else:
            self.answer.said()

    def _metadata(self, event: Members) -> None:
        usage, totals = event.get("usage"), None
        if isinstance(usage, dict) and usage:
            now = cast("Members", usage)
            whole = _usage.whole(now.get("totalTokens")) is not None
            self._usage = now if whole else self.answer.totals(self._usage, now)
            totals = _totals(self._usage)
            self.answer.report(totals)
        if any(event[name] for name in event.keys() - _PLAIN_METADATA):  # traces of guardrails, service tiers
            self.answer.raw()
        elif totals is not None:
            self.answer.said()

    # -- blocks open --------------------------------------------------------------------------------------------------

    def _open_tool_use(self, start: Members) -> OpenBlock:
        name, kind = text_of(start.get("name")), "function"
        executor: Executor = "client"
        if start.get("type") == "server_tool_use":
            kind, executor = SERVER_TOOLS.get(name, name or "server_tool"), "provider"
        return self.answer.open_call(start.get("toolUseId"), name or kind, kind=kind, executor=executor)

    def _open_tool_result(self, start: Members) -> OpenBlock:
        """The result of a tool that the service ran; its content comes by deltas."""
        call_id, name = text_of(start.get("toolUseId")) or None, text_of(start.get("type")) or "tool_result"
        is_error = start.get("status") == "error"
        items: list[str] = []

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            content = JSONText(f"[{','.join(items)}]") if items else None
            return ToolResultBlock(index, call_id, name, content, is_error, complete=complete, meta=meta)

        opened = self.answer.open_whole("tool_result", make)
        self._items[opened.index] = items
        return opened

    def _open_image(self, start: Members) -> OpenBlock:
        form = text_of(start.get("format"))
        return self.answer.open_media(f"image/{form}" if form else None)

    # -- deltas -------------------------------------------------------------------------------------------------------

    def _fitting(self, index: object, kind: str, opener: Callable[[], OpenBlock]) -> OpenBlock:
        """The block at that index if it is of the delta's kind; a delta of another kind opens a block of its own."""
        block = self._open_at(index)
        if block is None or block.kind != kind:
            self._stop_block(index)
            block = self._by_index[index] = opener()
        return block

    def _open_at(self, index: object) -> OpenBlock | None:
        """The block at that index, as long as it is open."""
        block = self._by_index.get(index)
        return block if block is not None and block.index in self.answer.open else None

    def _text(self, value: Any, index: object) -> None:
        if isinstance(value, str) and value:  # an empty one can come before reasoning (gpt-oss)
            self.answer.text(self._fitting(index, "text", self.answer.open_text), value)

    def _tool_input(self, value: Any, index: object) -> None:
        piece, block = text_of(_object(value).get("input")), self._open_at(index)
        if not isinstance(block, OpenCall):
            if piece:
                self.answer.raw()
                self.answer.warn("orphan_fragment", "a piece of tool input belongs to no call that is open")
        elif piece:
            self.answer.arguments(block, piece)
        else:
            self.answer.raw(index=block.index)

    def _reasoning(self, value: Any, index: object) -> None:
        content = _object(value)
        text, signature = text_of(content.get("text")), text_of(content.get("signature"))
        redacted = _base64(content.get("redactedContent"))
        if not (text or signature or redacted):
            return
        block = self._fitting(index, "reasoning", self.answer.open_reasoning)
        assert isinstance(block, OpenReasoning)
        if text:
            self.answer.reasoning(block, text)
        if signature:
            block.sign(signature)
        if redacted:
            block.redacted = True
            block.blobs.append(redacted)
        if signature or redacted:
            self.answer.raw(index=block.index)

    def _citation(self, value: Any, index: object) -> None:
        source = _object(value)
        if not source:
            return
        block = self._fitting(index, "text", self.answer.open_text)  # it may come before the text, or alone
        quoted = source.get("sourceContent")
        words = [text_of(_object(part).get("text")) for part in (quoted if isinstance(quoted, list) else ())]
        url = text_of(_object(_object(source.get("location")).get("web")).get("url"))
        title = text_of(source.get("title"))
        # Its places are in the source; the whole block is what cites.
        citation = Citation(block.index, url or None, title or None, "".join(words) or None, raw=compact(source))
        self.answer.cite(block, citation)

    def _tool_result(self, value: Any, index: object) -> None:
        block = self._fitting(index, "tool_result", lambda: self._open_tool_result(_NOTHING))
        self._items[block.index] += map(compact, value if isinstance(value, list) else ())
        self.answer.raw(index=block.index)

    def _image(self, value: Any, index: object) -> None:
        source = _object(_object(value).get("source"))
        data, place = _base64(source.get("bytes")), text_of(_object(source.get("s3Location")).get("uri"))
        if not (data or place):
            return
        block = self._fitting(index, "media", lambda: self.answer.open_media(None))
        assert isinstance(block, OpenMedia)
        if data:
            self.answer.media(block, data)
            self.answer.said()
        if place:
            self.answer.media_url(block, place)

    # -- blocks close, ends -------------------------------------------------------------------------------------------

    def _stop_block(self, index: object) -> None:
        block = self._by_index.pop(index, None)
        if not isinstance(block, OpenCall):
            if block is not None:
                self.answer.close(block)
        elif block.is_empty():
            self._finish_blank()
            self._blank = block
            self.answer.said()
        else:
            self.answer.finish_call(block)

    def _finish_blank(self, *, cut: bool = False) -> None:
        """A call without any input is whole, unless the next thing said is that the tokens ran out."""
        if self._blank is not None:
            self.answer.finish_call(self._blank, incomplete=cut)
            self._blank = None

    def _fail(self, error: ErrorEvent) -> None:
        self._finish_blank()
        super()._fail(error)

    def _end_of_input(self) -> None:
        if self._stopped:
            self.answer.done()
        else:
            self._fail(truncated(self.terminal))


Handler = Callable[[BedrockConverseNormalizer, Members], None]

_EVENTS: Final[Mapping[str, Handler]] = {
    "messageStart": BedrockConverseNormalizer._message_start,
    "contentBlockStart": BedrockConverseNormalizer._block_start,
    "contentBlockDelta": BedrockConverseNormalizer._block_delta,
    "contentBlockStop": BedrockConverseNormalizer._block_stop,
    "messageStop": BedrockConverseNormalizer._message_stop,
    "metadata": BedrockConverseNormalizer._metadata,
}

_TELLING: Final = (
    # a member -> the event that has it, where nothing names the event
    ("delta", "contentBlockDelta"),
    ("start", "contentBlockStart"),
    ("contentBlockIndex", "contentBlockStop"),
    ("stopReason", "messageStop"),
    ("usage", "metadata"),
    ("role", "messageStart"),
)

_STARTS: Final[Mapping[str, Callable[[BedrockConverseNormalizer, Members], OpenBlock]]] = {
    "toolUse": BedrockConverseNormalizer._open_tool_use,
    "toolResult": BedrockConverseNormalizer._open_tool_result,
    "image": BedrockConverseNormalizer._open_image,
}

_DELTAS: Final[Mapping[str, Callable[[BedrockConverseNormalizer, Any, object], None]]] = {
    "text": BedrockConverseNormalizer._text,
    "toolUse": BedrockConverseNormalizer._tool_input,
    "reasoningContent": BedrockConverseNormalizer._reasoning,
    "citation": BedrockConverseNormalizer._citation,
    "toolResult": BedrockConverseNormalizer._tool_result,
    "image": BedrockConverseNormalizer._image,
}


def _totals(members: Members) -> Usage | None:
    """Cached input is counted beside ``inputTokens``; in the vocabulary it is part of it."""
    found = {
        unified: next((n for name in names if (n := _usage.whole(members.get(name))) is not None), None)
        for unified, names in USAGE.items()
    }
    if all(number is None for number in found.values()):
        return None
    tokens_in, tokens_out, total = found["input_tokens"], found["output_tokens"], found["total_tokens"]
    if tokens_in is not None and (total is None or total != tokens_in + (tokens_out or 0)):
        tokens_in += (found["cache_read_tokens"] or 0) + (found["cache_write_tokens"] or 0)
    if total is None and tokens_in is not None and tokens_out is not None:
        total = tokens_in + tokens_out
    return Usage(**{**found, "input_tokens": tokens_in, "total_tokens": total}, raw=compact(members))


def _key(index: Any) -> object:
    return index if isinstance(index, int | str | float) else None


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else _NOTHING


def _base64(value: Any) -> str:
    """A blob as base64, which it is on the wire; clients that decode the framing themselves hand out the bytes."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else text_of(value)
