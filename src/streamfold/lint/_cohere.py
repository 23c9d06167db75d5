"""Cohere's v2 chat: contents and calls, each numbered apart, between the start and the end of the message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from streamfold.lint._surface import Known, Members, Numbered, SurfaceCheck, object_of, shown, text_in
from streamfold.lint.rules import Report

__all__ = ["CohereCheck"]

DELTAS: Final[Mapping[str, str]] = {"text": "text", "thinking": "thinking"}
"""Type of a content -> the member of its deltas."""


class CohereCheck(SurfaceCheck):
    """The order of a v2 chat stream."""

    needs_done: ClassVar[bool] = True
    reasons: ClassVar[frozenset[str]] = frozenset({"ERROR", "TIMEOUT"})
    known: ClassVar[Known] = {
        "the payload": frozenset({"type", "id", "index", "delta", "logprobs", "prompt"}),
        "delta": frozenset({"message", "finish_reason", "usage", "error"}),
        "message": frozenset({"role", "content", "tool_plan", "tool_calls", "citations"}),
        "content": frozenset({"type", "text", "thinking"}),
        "a call": frozenset({"id", "type", "function"}),
        "a function": frozenset({"name", "arguments"}),
        "a citation": frozenset({"start", "end", "text", "sources", "type", "content_index"}),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._started = False
        self._begin()

    def _begin(self) -> None:
        self._contents = Numbered(self.report, "content")
        self._calls = Numbered(self.report, "tool call")
        self._citations = Numbered(self.report, "citation")

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        delta = object_of(members.get("delta"))
        message = object_of(delta.get("message"))
        call = object_of(message.get("tool_calls"))
        yield "the payload", members
        yield "delta", delta
        yield "message", message
        yield "content", object_of(message.get("content"))
        yield "a call", call
        yield "a function", object_of(call.get("function"))
        yield "a citation", object_of(message.get("citations"))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "type")
        self.same_name(kind, name)
        handler = _EVENTS.get(kind)
        if handler is None:
            return
        if not self._started and kind != "message-start":
            self.report("order", f"{kind} comes before message-start")
            self._started = True  # said once
        handler(self, members)

    def _message_start(self, members: Members) -> None:
        if self._started:
            self.report("restarted", "a second message-start comes")
            self.id = None
            self._begin()
        self._started = True
        self.same_id(members.get("id"))

    def _content_start(self, members: Members) -> None:
        kind = text_in(_content(members), "type")
        if kind not in DELTAS:
            self.report("unknown_type", f"a content is of type {shown(kind)}")
        self._contents.start(members.get("index"), kind)

    def _content_delta(self, members: Members) -> None:
        open_ = self._contents.at(members.get("index"), "", "a content-delta")
        if open_ in DELTAS:
            for name in _content(members).keys() & DELTAS.keys() - {open_}:
                self.report("wrong_delta", f"a piece of {name} comes in a content of type {shown(open_)}")

    def _content_end(self, members: Members) -> None:
        self._contents.stop(members.get("index"), "a content-end")

    def _call_start(self, members: Members) -> None:
        call = object_of(_message(members).get("tool_calls"))
        if not text_in(object_of(call.get("function")), "name"):
            self.report("no_call_name", "a tool-call-start has no name")
        self._calls.start(members.get("index"), "")

    def _call_delta(self, members: Members) -> None:
        self._calls.at(members.get("index"), "", "a tool-call-delta")

    def _call_end(self, members: Members) -> None:
        self._calls.stop(members.get("index"), "a tool-call-end")

    def _citation_start(self, members: Members) -> None:
        self._citations.start(members.get("index"), "")

    def _citation_end(self, members: Members) -> None:
        self._citations.stop(members.get("index"), "a citation-end")

    def _message_end(self, members: Members) -> None:
        for blocks in (self._contents, self._calls, self._citations):
            blocks.over()
        if not text_in(object_of(members.get("delta")), "finish_reason"):
            self.report("no_finish_reason", "message-end names no finish_reason")

    def _nothing(self, members: Members) -> None:
        """Says nothing of the order."""


def _message(members: Members) -> Members:
    return object_of(object_of(members.get("delta")).get("message"))


def _content(members: Members) -> Members:
    return object_of(_message(members).get("content"))


_EVENTS: Final[Mapping[str, Callable[[CohereCheck, Members], Any]]] = {
    "message-start": CohereCheck._message_start,
    "content-start": CohereCheck._content_start,
    "content-delta": CohereCheck._content_delta,
    "content-end": CohereCheck._content_end,
    "tool-plan-delta": CohereCheck._nothing,
    "tool-call-start": CohereCheck._call_start,
    "tool-call-delta": CohereCheck._call_delta,
    "tool-call-end": CohereCheck._call_end,
    "citation-start": CohereCheck._citation_start,
    "citation-end": CohereCheck._citation_end,
    "message-end": CohereCheck._message_end,
}
