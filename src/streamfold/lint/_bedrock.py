"""Bedrock ConverseStream: blocks by index between the start and the stop of the message, then what was used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from streamfold.lint._surface import Known, Members, Numbered, SurfaceCheck, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers.bedrock_converse import STOP_REASONS

__all__ = ["ConverseCheck"]

DELTAS: Final[Mapping[str, frozenset[str]]] = {
    # kind of a block -> the deltas that it takes; those of text and reasoning open without a start
    "toolUse": frozenset({"toolUse"}),
    "toolResult": frozenset({"toolResult"}),
    "image": frozenset({"image"}),
    "text": frozenset({"text", "citation"}),
    "reasoningContent": frozenset({"reasoningContent"}),
}
_STARTED: Final = frozenset({"toolUse", "toolResult", "image"})
_KIND_OF: Final[Mapping[str, str]] = {delta: kind for kind, deltas in DELTAS.items() for delta in deltas}
_PADDING: Final = frozenset({"p"})


class ConverseCheck(SurfaceCheck):
    """The order of ConverseStream, by its own name or wrapped by name as Nova does."""

    names: ClassVar[frozenset[str]] = frozenset({"sse", "eventstream"})
    reasons: ClassVar[frozenset[str]] = frozenset(STOP_REASONS)
    known: ClassVar[Known] = {
        "messageStart": _PADDING | {"role"},
        "contentBlockStart": _PADDING | {"contentBlockIndex", "start"},
        "contentBlockDelta": _PADDING | {"contentBlockIndex", "delta"},
        "contentBlockStop": _PADDING | {"contentBlockIndex"},
        "messageStop": _PADDING | {"stopReason", "additionalModelResponseFields"},
        "metadata": _PADDING | {"usage", "metrics", "trace", "performanceConfig", "serviceTier"},
        "start.toolUse": frozenset({"toolUseId", "name", "type"}),
        "start.toolResult": frozenset({"toolUseId", "type", "status"}),
        "start.image": frozenset({"format"}),
        "delta.toolUse": frozenset({"input"}),
        "delta.reasoningContent": frozenset({"text", "signature", "redactedContent"}),
        "delta.citation": frozenset({"title", "source", "sourceContent", "location"}),
        "delta.image": frozenset({"source", "error"}),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._started = self._stopped = self._counted = False
        self._blocks = Numbered(report, "block", needs_start=False)
        self._name = ""  # of the event that is read

    def payload(self, members: Members, name: str | None) -> None:
        """See the base. What the name says is beside the payload, or around it."""
        if name not in _EVENTS:
            wrapped = next((kind for kind in _EVENTS if isinstance(members.get(kind), dict)), None)
            name, members = (wrapped, members[wrapped]) if wrapped is not None else (name, members)
        self._name = name or ""
        super().payload(members, name)

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        if self._name in _EVENTS:
            yield self._name, members
        for within in ("start", "delta"):
            for kind, value in object_of(members.get(within)).items():
                place = f"{within}.{kind}"
                if place in self.known:
                    yield place, object_of(value)

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        handler = _EVENTS.get(name or "")
        if handler is None:
            return
        if not self._started and name != "messageStart":
            self.report("order", f"{name} comes before messageStart")
            self._started = True  # said once
        handler(self, members)

    def _message_start(self, members: Members) -> None:
        if self._started:
            self.report("restarted", "a second messageStart comes")
            self._stopped = self._counted = False
            self._blocks = Numbered(self.report, "block", needs_start=False)
        self._started = True

    def _block_start(self, members: Members) -> None:
        self._late("a block")
        start = object_of(members.get("start"))
        self._one_of("contentBlockStart", start)
        kind = next((name for name in start if name in _STARTED), "")
        for name in start.keys() - _STARTED:
            self.report("unknown_type", f"a block starts as {shown(name)}")
        if kind == "toolUse" and not text_in(object_of(start[kind]), "name"):
            self.report("no_call_name", "a toolUse has no name")
        if kind or start:
            self._blocks.start(members.get("contentBlockIndex"), kind)

    def _block_delta(self, members: Members) -> None:
        self._late("a delta")
        self._one_of("contentBlockDelta", object_of(members.get("delta")))
        for name in object_of(members.get("delta")):
            kind = _KIND_OF.get(name)
            if kind is None:
                self.report("unknown_type", f"a delta is of type {shown(name)}")
                continue
            index = members.get("contentBlockIndex")
            if kind in _STARTED and type(index) is int and self._blocks.is_new(index):
                self.report("order", f"a delta of type {shown(name)} comes before its contentBlockStart")
            of = self._blocks.at(index, kind, f"a delta of type {shown(name)}")
            if of and name not in DELTAS[of]:
                self.report("wrong_delta", f"a delta of type {shown(name)} comes in a block of {shown(of)}")

    def _one_of(self, what: str, union: Members) -> None:
        """boto3 refuses a union that has none of its members, or several."""
        if len(union) != 1:
            self.report("wrong_type", f"a {what} has {len(union)} members where one is due")

    def _block_stop(self, members: Members) -> None:
        self._blocks.stop(members.get("contentBlockIndex"), "a contentBlockStop")

    def _message_stop(self, members: Members) -> None:
        self._blocks.over()
        if self._stopped:
            self.report("terminal_twice", "a second messageStop comes")
        self._stopped = True
        if not text_in(members, "stopReason"):
            self.report("no_finish_reason", "messageStop names no stopReason")

    def _metadata(self, members: Members) -> None:
        if not self._stopped:
            self.report("order", "metadata comes before messageStop")
        elif self._counted:
            self.report("terminal_twice", "a second metadata comes")
        self._counted = True

    def _late(self, what: str) -> None:
        if self._stopped:
            self.report("content_after_finish", f"{what} comes after messageStop")


_EVENTS: Final[Mapping[str, Callable[[ConverseCheck, Members], Any]]] = {
    "messageStart": ConverseCheck._message_start,
    "contentBlockStart": ConverseCheck._block_start,
    "contentBlockDelta": ConverseCheck._block_delta,
    "contentBlockStop": ConverseCheck._block_stop,
    "messageStop": ConverseCheck._message_stop,
    "metadata": ConverseCheck._metadata,
}
