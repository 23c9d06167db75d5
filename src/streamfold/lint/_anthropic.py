"""Anthropic Messages: one block at a time, each numbered one higher than the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from streamfold.lint._surface import Known, Members, SurfaceCheck, known, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers import anthropic

__all__ = ["AnthropicCheck"]

_CALL: Final = frozenset({"input_json_delta"})
DELTAS: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"text_delta", "citations_delta"}),
    "thinking": frozenset({"thinking_delta", "signature_delta"}),
    "tool_use": _CALL,
    "server_tool_use": _CALL,
    "mcp_tool_use": _CALL,
    "compaction": frozenset({"compaction_delta"}),
}
"""Which deltas a block takes. Blocks without a row come whole."""

BLOCKS: Final = frozenset({*DELTAS, "redacted_thinking", "container_upload", "mcp_tool_listing", "fallback"})
"""Types of blocks, besides every ``*_tool_result``."""

_ALL_DELTAS: Final = frozenset[str]().union(*DELTAS.values())


class AnthropicCheck(SurfaceCheck):
    """The order of a Messages stream."""

    known: ClassVar[Known] = {
        "the payload": known(anthropic._Event, besides="amazon-bedrock-invocationMetrics"),
        "message": known(
            anthropic._Message,
            besides="type role stop_details container diagnostics context_management input_transformations",
        ),
        "a content block": known(
            anthropic._ContentBlock,
            besides="file_id mcp_server_name tools encrypted_content tool_changes from trigger",
        ),
        "a delta": known(anthropic._Delta, besides="estimated_tokens"),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._started = self._prefilled = self._finished = False
        self._open: str | None = None  # type of the open block
        self._index: object = None  # and its index
        self._next = 0

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members
        for place, member in (("message", "message"), ("a content block", "content_block"), ("a delta", "delta")):
            yield place, object_of(members.get(member))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "type")
        if name is None and self.named:
            self.report("no_event_name", f"a frame of type {shown(kind)} has no event field")
        self.same_name(kind, name)
        handler = _EVENTS.get(kind)
        if handler is None:
            return
        if not self._started and kind != "message_start":
            self.report("order", f"{kind} comes before message_start")
            self._started = True  # said once
        handler(self, members)

    def over(self) -> None:
        """See the base."""
        self._all_closed()
        if not self._finished and not self._prefilled:
            self.report("no_finish_reason", "message_stop comes without a message_delta that names a reason")

    def _message_start(self, members: Members) -> None:
        message = object_of(members.get("message"))
        if self._started:
            self.report("restarted", "a second message_start comes")
            self.id, self._open, self._next, self._finished = None, None, 0, False
        self._started = True
        self.same_id(message.get("id"))
        self._prefilled = bool(message.get("stop_reason"))
        self._usage_of(message, "message_start")

    def _block_start(self, members: Members) -> None:
        kind = text_in(object_of(members.get("content_block")), "type")
        if self._open is not None:
            self.report("block_overlap", f"a {shown(kind)} block opens before the {shown(self._open)} block stops")
        self._late("a block")
        index = members.get("index")
        if type(index) is not int:
            self.report("no_index", "a content_block_start has no index")
        elif index < self._next:
            self.report("index_reused", f"index {index} is given again")
        elif index > self._next:
            self.report("index_jump", f"index {index} comes where {self._next} is next")
        if kind not in BLOCKS and not kind.endswith("_tool_result"):
            self.report("unknown_type", f"a content block is of type {shown(kind)}")
        self._open, self._index = kind, index
        self._next = index + 1 if type(index) is int else self._next + 1

    def _block_delta(self, members: Members) -> None:
        kind = text_in(object_of(members.get("delta")), "type")
        if not self._is_at_open_block(members, kind or "a delta"):
            return
        if kind not in _ALL_DELTAS:
            self.report("unknown_type", f"a delta is of type {shown(kind)}")
        elif kind not in DELTAS.get(self._open or "", _ALL_DELTAS):
            self.report("wrong_delta", f"a {kind} comes in a {shown(self._open)} block")

    def _block_stop(self, members: Members) -> None:
        if self._is_at_open_block(members, "content_block_stop"):
            self._open = None

    def _is_at_open_block(self, members: Members, what: str) -> bool:
        """Whether a delta or a stop is of the block that is open."""
        if self._open is None:
            self.report("order", f"{what} comes while no block is open")
            return False
        if "index" not in members:
            self.report("no_index", f"{what} has no index")
        elif members["index"] != self._index:
            self.report("wrong_index", f"{what} names index {shown(members['index'])}, open is {shown(self._index)}")
        return True

    def _message_delta(self, members: Members) -> None:
        self._all_closed()
        self._usage_of(members, "message_delta")
        reason = object_of(members.get("delta")).get("stop_reason")
        if self._finished:
            self.report("terminal_twice", "a second message_delta names a reason")
        self._finished = self._finished or bool(reason)

    def _all_closed(self) -> None:
        if self._open is not None:
            self.report("not_closed", f"the {shown(self._open)} block has no content_block_stop")
            self._open = None

    def _late(self, what: str) -> None:
        if self._finished:
            self.report("content_after_finish", f"{what} comes after the message_delta with the stop reason")

    def _usage_of(self, members: Members, kind: str) -> None:
        if not isinstance(members.get("usage"), dict):
            self.report("usage_missing", f"{kind} has no usage")

    def _nothing(self, members: Members) -> None:
        """Says nothing of the order."""


_EVENTS: Final[Mapping[str, Callable[[AnthropicCheck, Members], Any]]] = {
    "message_start": AnthropicCheck._message_start,
    "content_block_start": AnthropicCheck._block_start,
    "content_block_delta": AnthropicCheck._block_delta,
    "content_block_stop": AnthropicCheck._block_stop,
    "message_delta": AnthropicCheck._message_delta,
    "message_stop": AnthropicCheck._nothing,
}
