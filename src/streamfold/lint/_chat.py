"""Chat Completions: choices by index, in them tool calls by index, a reason for each choice, then ``[DONE]``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from streamfold.lint._surface import Known, Members, SurfaceCheck, entries, known, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers import openai_chat

__all__ = ["ChatCheck"]

_CONTENT: Final = ("content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call")
_OBJECTS: Final = ("chat.completion.chunk", "chat.completion", "text_completion")


class _Choice:
    """What is remembered of one choice: its reason, and which id each of its calls has."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self.calls: dict[int, str] = {}


class ChatCheck(SurfaceCheck):
    """The order of a stream of chunks."""

    needs_done: ClassVar[bool] = True
    known: ClassVar[Known] = {
        "the payload": known(
            openai_chat._Chunk,
            besides="created service_tier system_fingerprint obfuscation moderation prompt_filter_results",
        ),
        "a choice": known(openai_chat._Choice, besides="logprobs content_filter_results"),
        "a delta": frozenset({*openai_chat._DELTA, "role"}),
        "a tool call": frozenset({"index", "id", "type", "function", "custom"}),
        "a function": frozenset({"name", "arguments"}),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._choices: dict[int, _Choice] = {}

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members
        for choice in entries(members.get("choices")):
            yield "a choice", choice
            delta = object_of(choice.get("delta"))
            yield "a delta", delta
            for call in entries(delta.get("tool_calls")):
                yield "a tool call", call
                yield "a function", object_of(call.get("function"))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        if members.get("error"):
            return
        kind = members.get("object")
        if isinstance(kind, str) and kind and kind not in _OBJECTS and "choices" in members:  # else it is no chunk
            self.report("unknown_type", f"a payload's object is {shown(kind)}")
        self.same_id(members.get("id"))
        if not isinstance(members.get("choices"), list):
            self.report("no_choices", "a chunk has no list of choices")
        for choice in entries(members.get("choices")):
            self._choice(choice, whole=kind in ("chat.completion", "text_completion"))

    def over(self) -> None:
        """See the base."""
        unfinished = [index for index, choice in self._choices.items() if choice.reason is None]
        if unfinished or not self._choices:
            self.report("no_finish_reason", f"no finish reason came for choice {unfinished[0] if unfinished else 0}")

    def _choice(self, choice: Members, *, whole: bool) -> None:
        index = choice.get("index", None)
        if type(index) is not int:
            self.report("no_index", "a choice has no index")
            index = 0
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice()
        delta = choice.get("delta")
        if not isinstance(delta, dict) and not whole:
            self.report("no_delta", "a choice has no delta")
        delta = object_of(delta)
        if state.reason is not None and any(delta.get(name) for name in _CONTENT):
            self.report("content_after_finish", f"choice {index} goes on after its finish reason")
        if text_in(delta, "reasoning") and text_in(delta, "reasoning_content"):
            self.report("both_reasonings", "a delta has both reasoning and reasoning_content")
        for call in entries(delta.get("tool_calls")):
            self._call(state, call)
        self._reason(state, index, choice.get("finish_reason"))

    def _reason(self, state: _Choice, index: int, reason: Any) -> None:
        if not isinstance(reason, str) or not reason:
            return
        if reason == state.reason:
            self.report("terminal_twice", f"the finish reason of choice {index} comes again")
        elif state.reason is not None:
            self.report("reason_changes", f"the finish reason is {shown(reason)} after {shown(state.reason)}")
        state.reason = reason

    def _call(self, state: _Choice, call: Members) -> None:
        index, own = call.get("index"), call.get("id")
        if type(index) is not int:
            self.report("no_index", "an entry of tool_calls has no index")
            return
        known_id = state.calls.get(index)
        if known_id is None:
            if index != len(state.calls):
                self.report("index_jump", f"tool call {index} comes where {len(state.calls)} is next")
            state.calls[index] = own if isinstance(own, str) else ""
        elif own == "":
            self.report("empty_id", f"a fragment of tool call {index} has an empty id")
        elif isinstance(own, str) and known_id and own != known_id:
            self.report("index_reused", f"tool call {index} is called {shown(own)} after {shown(known_id)}")
            state.calls[index] = own
