"""Gemini ``streamGenerateContent``: chunks of candidates that repeat who they are; and Interactions: steps by index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from streamfold.lint._surface import (
    Known,
    Members,
    Numbered,
    SurfaceCheck,
    entries,
    known,
    object_of,
    shown,
    text_in,
)
from streamfold.lint.rules import Report
from streamfold.providers import gemini, gemini_interactions
from streamfold.providers.gemini_interactions import DELTAS

__all__ = ["GeminiCheck", "InteractionsCheck"]


class GeminiCheck(SurfaceCheck):
    """Chunks of generateContent."""

    known: ClassVar[Known] = {
        "the payload": known(gemini._Chunk, besides="createTime turnToken modelStatus"),
        "a candidate": known(gemini._Candidate, besides="logprobsResult avgLogprobs tokenCount citationSources"),
        "a part": frozenset({*gemini.PARTS, "thought", "thoughtSignature", "partMetadata", "audioTranscription"})
        | {"videoMetadata", "mediaResolution"},
        "a function call": frozenset(gemini._OF_A_CALL),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._finished: set[object] = set()  # candidates
        self._open: set[object] = set()  # and those with a call that goes on

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members
        for candidate in entries(members.get("candidates")):
            yield "a candidate", candidate
            for part in entries(object_of(candidate.get("content")).get("parts")):
                yield "a part", part
                yield "a function call", object_of(part.get("functionCall"))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        self.same_id(members.get("responseId"))
        for candidate in entries(members.get("candidates")):
            self._candidate(candidate)

    def _candidate(self, candidate: Members) -> None:
        index = candidate.get("index", 0)
        index = index if type(index) is int else 0
        parts = entries(object_of(candidate.get("content")).get("parts"))
        if index in self._finished and any(part.get("text") or len(part.keys() - {"text"}) for part in parts):
            self.report("early_finish", f"candidate {index} goes on after a finish reason")
        for part in parts:
            if isinstance(part.get("functionCall"), dict):
                self._call(index, part["functionCall"])
        if candidate.get("finishReason"):
            if index in self._finished:
                self.report("terminal_twice", f"candidate {index} has a finish reason again")
            self._finished.add(index)

    def _call(self, candidate: int, call: Members) -> None:
        """Only the first part of a call that comes in parts has its name."""
        if not call.get("name") and candidate not in self._open:
            self.report("no_call_name", "a functionCall has no name")
        if call.get("willContinue"):
            self._open.add(candidate)
        else:
            self._open.discard(candidate)


_CALLS: Final = frozenset(
    f"{stem}_call"
    for stem in (
        *("function", "code_execution", "google_search", "google_maps", "url_context", "file_search"),
        *("retrieval", "mcp_server_tool", "tool_search", "processing"),
    )
)
STEPS: Final = frozenset(
    {
        *gemini_interactions._STEPS,
        *gemini_interactions._MEDIA,
        *_CALLS,
        *(call.removesuffix("_call") + "_result" for call in _CALLS),
        "user_input",
    }
)
"""Types of steps, and of contents in the older vocabulary."""

_KNOWN_DELTAS: Final = frozenset({*DELTAS, *STEPS})


class InteractionsCheck(SurfaceCheck):
    """Steps of an interaction, in both of its vocabularies."""

    needs_done: ClassVar[bool] = True
    known: ClassVar[Known] = {"the payload": known(gemini_interactions._Event, besides="status")}

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._created = False
        self._steps = Numbered(report, "step")

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "event_type")
        self.same_name(kind, name)
        interaction = object_of(members.get("interaction"))
        self.same_id(interaction.get("id") or members.get("interaction_id"))
        handler = _EVENTS.get(kind)
        if handler is None:
            return
        if not self._created and kind not in ("interaction.created", "interaction.start"):
            self.report("order", f"{kind} comes before interaction.created")
            self._created = True  # said once
        handler(self, members)

    def over(self) -> None:
        """See the base."""
        self._steps.over()

    def _begin(self, members: Members) -> None:
        if self._created:
            self.report("restarted", "the interaction is created a second time")
        self._created = True

    def _start(self, members: Members) -> None:
        step = object_of(members.get("step") or members.get("content"))
        kind = text_in(step, "type")
        if kind not in STEPS:
            self.report("unknown_type", f"a step is of type {shown(kind)}")
        self._steps.start(members.get("index"), kind)

    def _delta(self, members: Members) -> None:
        kind = text_in(object_of(members.get("delta")), "type")
        if kind not in _KNOWN_DELTAS:
            self.report("unknown_type", f"a delta is of type {shown(kind)}")
        self._steps.at(members.get("index"), kind, kind or "a delta")

    def _stop(self, members: Members) -> None:
        self._steps.stop(members.get("index"), "the stop of a step")

    def _nothing(self, members: Members) -> None:
        """Says nothing of the order."""


_EVENTS: Final[Mapping[str, Callable[[InteractionsCheck, Members], Any]]] = {
    "interaction.created": InteractionsCheck._begin,
    "interaction.start": InteractionsCheck._begin,
    "interaction.status_update": InteractionsCheck._nothing,
    "step.start": InteractionsCheck._start,
    "content.start": InteractionsCheck._start,
    "step.delta": InteractionsCheck._delta,
    "content.delta": InteractionsCheck._delta,
    "step.stop": InteractionsCheck._stop,
    "content.stop": InteractionsCheck._stop,
    "interaction.completed": InteractionsCheck._nothing,
    "interaction.complete": InteractionsCheck._nothing,
}
