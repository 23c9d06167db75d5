"""Cohere's v2 chat (``POST /v2/chat`` with ``stream``), its own protocol and not the compatible one.

Reads against the vendor's event list: message-start, content-start, content-delta, content-end, tool-plan-delta,
tool-call-start, tool-call-delta, tool-call-end, citation-start, citation-end, message-end, debug. Contents and calls
are numbered apart. The plan that comes before tool calls is reasoning; no event ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from streamfold.blocks import Citation
from streamfold.events import StopReason
from streamfold.payloads import Payload, compact, read_object
from streamfold.providers import _usage
from streamfold.providers._errors import error_body, provider_error
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenReasoning
from streamfold.providers._table import BaseNormalizer, text_of, whole_number

__all__ = ["CohereNormalizer"]

Members: TypeAlias = dict[str, Any]

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    "COMPLETE": "end",
    "STOP_SEQUENCE": "end",
    "TOOL_CALL": "tool_use",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "refusal",
    "USER_CANCEL": "cancelled",
}
"""What ``finish_reason`` means; any other word, or none at the end, is ``other``."""

FAILURES: Final = frozenset({"ERROR", "TIMEOUT"})
"""Words for an end that is none: the answer is not whole, and asking again may help."""

USAGE: Final[_usage.Places] = {
    # billed_units are what is paid for, not what was read and written
    "tokens": {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "reasoning_tokens": "reasoning_tokens",
    },
    "cached_tokens": "cache_read_tokens",
}

_HALVES: Final = ("text", "thinking", "tool_plan", "arguments")
_NOTHING: Final[Members] = {}


class CohereNormalizer(BaseNormalizer):
    """Events of Cohere's v2 chat to unified events."""

    surface = "cohere"
    terminal = "message-end"

    def _begin(self) -> None:
        self._begun = False
        self._contents: dict[object, OpenBlock] = {}
        self._calls: dict[object, OpenCall] = {}
        self._plan: OpenReasoning | None = None
        self._text: OpenBlock | None = None  # the one that was opened last

    def _mean(self, payload: Payload) -> bool:
        event = read_object(payload, self.answer.max_depth, _HALVES)
        if event is None:
            return False
        kind = text_of(event.get("type")) or self.answer.event_name() or ""
        handler = _EVENTS.get(kind)
        if handler is not None:
            handler(self, event)
            return True
        if kind in ("", "error") and (error := error_body(event)) is not None:  # an error in the place of an event
            self._fail(error)
        return False

    # -- the message --------------------------------------------------------------------------------------------------

    def _message_start(self, event: Members) -> None:
        if self._begun:  # a proxy that started again upstream: never join the two
            self.answer.restart("message-start")
            self._contents, self._calls, self._plan, self._text = {}, {}, None, None
        self._begun = True
        self.answer.identify(event.get("id"), None)

    def _message_end(self, event: Members) -> None:
        delta = _object(event.get("delta"))
        usage, word = delta.get("usage"), text_of(delta.get("finish_reason"))
        self._end_plan()
        if isinstance(usage, dict):
            self.answer.report(_usage.read(cast("Members", usage), USAGE))
        error = delta.get("error")
        if word in FAILURES or error:
            found = provider_error(error, {"code": word or None, "status": 504 if word == "TIMEOUT" else 500})
            self._fail(found)
            return
        self.answer.cut_all()  # a block without its end broke off
        self.answer.stop(0, STOP_REASONS.get(word, "other"), word or None)
        self.answer.done()

    def _nothing(self, event: Members) -> None:
        """Says nothing that has a unified meaning, so it comes out as ``raw``."""

    # -- text and thinking --------------------------------------------------------------------------------------------

    def _content_start(self, event: Members) -> None:
        content, index = _object(_message(event).get("content")), _key(event)
        opener = {"text": self._open_text, "thinking": self._open_thinking}.get(text_of(content.get("type")))
        self._end_content(index)
        if opener is not None:
            self._contents[index] = opener()
            self._add(content, index)

    def _content_delta(self, event: Members) -> None:
        self._add(_object(_message(event).get("content")), _key(event))
        if event.get("logprobs"):
            self.answer.raw()

    def _content_end(self, event: Members) -> None:
        self._end_content(_key(event))

    def _add(self, content: Members, index: object) -> None:
        """The pieces of a content, each to the block of its kind."""
        if piece := text_of(content.get("thinking")):
            block = self._fitting(index, "reasoning", self._open_thinking)
            assert isinstance(block, OpenReasoning)
            self.answer.reasoning(block, piece)
        if piece := text_of(content.get("text")):
            self.answer.text(self._fitting(index, "text", self._open_text), piece)

    def _fitting(self, index: object, kind: str, opener: Callable[[], OpenBlock]) -> OpenBlock:
        block = self._contents.get(index)
        if block is None or block.kind != kind:
            self._end_content(index)
            block = self._contents[index] = opener()
        return block

    def _open_text(self) -> OpenBlock:
        self._end_plan()
        self._text = self.answer.open_text()
        return self._text

    def _open_thinking(self) -> OpenBlock:
        self._end_plan()
        return self.answer.open_reasoning()

    def _end_content(self, index: object) -> None:
        block = self._contents.pop(index, None)
        if block is not None:
            self.answer.close(block)

    # -- calls, and the plan before them ------------------------------------------------------------------------------

    def _tool_plan_delta(self, event: Members) -> None:
        if piece := text_of(_message(event).get("tool_plan")):
            if self._plan is None:
                self._plan = self.answer.open_reasoning(meta={"member": "tool_plan"})
            self.answer.reasoning(self._plan, piece)

    def _end_plan(self) -> None:
        if self._plan is not None:
            self.answer.close(self._plan)
            self._plan = None

    def _tool_call_start(self, event: Members) -> None:
        entry = _entry(event)
        function, index = _object(entry.get("function")), _key(event)
        self._end_plan()
        self._end_call(index)
        call = self.answer.open_call(entry.get("id"), text_of(function.get("name")) or "function")
        self._calls[index] = call
        self.answer.arguments(call, text_of(function.get("arguments")))

    def _tool_call_delta(self, event: Members) -> None:
        piece = text_of(_object(_entry(event).get("function")).get("arguments"))
        call = self._calls.get(_key(event))
        if call is not None:
            self.answer.arguments(call, piece)
        elif piece:
            self.answer.raw()
            self.answer.warn("orphan_fragment", "a piece of arguments belongs to no call that is open")

    def _tool_call_end(self, event: Members) -> None:
        self._end_call(_key(event))

    def _end_call(self, index: object) -> None:
        call = self._calls.pop(index, None)
        if call is not None:
            self.answer.finish_call(call)

    # -- citations ----------------------------------------------------------------------------------------------------

    def _citation_start(self, event: Members) -> None:
        citation = _message(event).get("citations")
        if not isinstance(citation, dict):
            return
        members = cast("Members", citation)
        block = self._cited(members)
        if block is None or block.index not in self.answer.open:
            self.answer.raw()
            return
        sources = members.get("sources")
        documents = [_document(source) for source in (sources if isinstance(sources, list) else ())]
        url, title, words = (
            next((text for document in documents if (text := text_of(document.get(name)))), None)
            for name in ("url", "title", "snippet")
        )
        start, end = whole_number(members.get("start")), whole_number(members.get("end"))
        if start is None or end is None or end < start:
            start = end = None
        self.answer.cite(block, Citation(block.index, url, title, words, start, end, compact(members)))

    def _cited(self, citation: Members) -> OpenBlock | None:
        """The text that a citation speaks of: the content that it numbers, else the latest. A plan cites nothing."""
        number = citation.get("content_index")
        block = self._contents.get(number) if isinstance(number, int) else None
        block = block or self._text
        of_text = citation.get("type") in (None, "TEXT_CONTENT")
        return block if of_text and block is not None and block.kind == "text" else None


_EVENTS: Final[Mapping[str, Callable[[CohereNormalizer, Members], None]]] = {
    "message-start": CohereNormalizer._message_start,
    "content-start": CohereNormalizer._content_start,
    "content-delta": CohereNormalizer._content_delta,
    "content-end": CohereNormalizer._content_end,
    "tool-plan-delta": CohereNormalizer._tool_plan_delta,
    "tool-call-start": CohereNormalizer._tool_call_start,
    "tool-call-delta": CohereNormalizer._tool_call_delta,
    "tool-call-end": CohereNormalizer._tool_call_end,
    "citation-start": CohereNormalizer._citation_start,
    "citation-end": CohereNormalizer._nothing,
    "message-end": CohereNormalizer._message_end,
    "debug": CohereNormalizer._nothing,
}


def _message(event: Members) -> Members:
    return _object(_object(event.get("delta")).get("message"))


def _entry(event: Members) -> Members:
    """The call of an event: the member is in the plural and holds one."""
    calls = _message(event).get("tool_calls")
    return _object(calls[0]) if isinstance(calls, list) and calls else _object(calls)


def _document(source: Any) -> Members:
    """What a source says of itself."""
    members = _object(source)
    return _object(members.get("document") or members.get("tool_output"))


def _key(event: Members) -> object:
    index = event.get("index")
    return index if isinstance(index, int | str | float) else None


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else _NOTHING
