"""OpenAI Realtime and xAI's voice agent: items of responses, each told in pieces and then as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from streamfold.lint._surface import Known, Members, Running, SurfaceCheck, entries, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers.openai_realtime import BETA

__all__ = ["RealtimeCheck", "XAIRealtimeCheck"]

TEXTS: Final = {
    # event without .delta and .done -> the member that holds the whole; None: audio, which is not repeated
    "response.output_text": "text",
    "response.output_audio_transcript": "transcript",
    "response.output_audio": None,
    "response.function_call_arguments": "arguments",
    "response.mcp_call_arguments": "arguments",
    "conversation.item.input_audio_transcription": "transcript",
}
"""Events that tell a text in pieces."""

ITEMS: Final = frozenset(
    {
        *("message", "function_call", "function_call_output", "force_message", "custom_tool_call", "web_search_call"),
        *("mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "file_search_call"),
    }
)
"""Types of items."""

STATUSES: Final = frozenset({"completed", "cancelled", "incomplete", "failed"})
_MAX_REMEMBERED: Final = 1_000  # responses, items, calls
_USER: Final = "conversation.item.input_audio_transcription"


class _Item:
    """What is remembered of one item."""

    def __init__(self, id_: str) -> None:
        self.id, self.done = id_, False


class _Told(NamedTuple):
    """One text."""

    running: Running
    ends: set[str]  # events that ended it


class RealtimeCheck(SurfaceCheck):
    """The order of a session: responses, in them items that interleave. Both vocabularies."""

    known: ClassVar[Known] = {
        "response": frozenset(
            {
                *("object", "id", "status", "status_details", "output", "conversation_id", "output_modalities"),
                *("modalities", "max_output_tokens", "audio", "usage", "metadata", "voice", "output_audio_format"),
                *("temperature", "max_response_output_tokens", "reasoning", "prompt", "tools", "tool_choice"),
            }
        ),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._responses: dict[str, dict[int | str, _Item]] = {}  # that run
        self._texts: dict[tuple[str, str, int], _Told] = {}  # event, item, part
        self._calls: dict[str, None] = {}
        self._numbered = True

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "response", object_of(members.get("response"))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "type")
        kind = BETA.get(kind, kind)
        if not text_in(members, "event_id") and self._numbered:
            self._numbered = False
            self.report("no_event_id", f"{shown(kind)} has no event_id")
        if kind == "response.created":
            self._created(members)
        elif kind == "response.done":
            self._done(members)
        elif kind.startswith("response.") and "response_id" in members:
            self._of_response(kind, members)
        elif kind.startswith(_USER):
            self._told(kind, members)
        elif kind == "conversation.item.truncated":
            self._forget(text_in(members, "item_id"))

    def _created(self, members: Members) -> None:
        id_ = text_in(object_of(members.get("response")), "id")
        if id_ in self._responses:
            self.report("restarted", f"the response {shown(id_)} is created a second time")
        elif len(self._responses) < _MAX_REMEMBERED:
            self._responses[id_] = {}

    def _of_response(self, kind: str, members: Members) -> None:
        id_ = text_in(members, "response_id")
        items = self._responses.get(id_)
        if items is None:
            self.report("order", f"{kind} is of the response {shown(id_)}, which does not run")
            return
        if kind == "response.output_item.added":
            self._added(items, members)
            return
        place = self._place(members, kind)
        if place is None:
            return
        item = items.get(place)
        if item is None:
            self.report("order", f"{kind} comes before the item at {place} was added")
            item = items[place] = _Item("")
        elif item.done:
            self.report("order", f"{kind} comes after the item at {place} was done")
        named = _id_of(members)
        if named and item.id and named != item.id:
            self.report("id_changes", f"the item at {place} is called {shown(named)} after {shown(item.id)}")
        item.id = named or item.id
        if kind == "response.output_item.done":
            item.done = True
            self._compare(object_of(members.get("item")))
        else:
            self._told(kind, members)

    def _added(self, items: dict[int | str, _Item], members: Members) -> None:
        item = object_of(members.get("item"))
        kind = text_in(item, "type")
        if kind not in ITEMS:
            self.report("unknown_type", f"an item is of type {shown(kind)}")
        if text_in(item, "call_id") and len(self._calls) < _MAX_REMEMBERED:
            self._calls[text_in(item, "call_id")] = None
        place = self._place(members, "response.output_item.added")
        if place is None:
            return
        if place in items:
            self.report("index_reused", f"place {place} is given again")
        elif type(place) is int and place != len(items):
            self.report("index_jump", f"output index {place} comes where {len(items)} is next")
        if len(items) < _MAX_REMEMBERED:
            items[place] = _Item(text_in(item, "id"))

    def _place(self, members: Members, kind: str) -> int | str | None:
        """What an item of a response is told by."""
        index = members.get("output_index")
        if type(index) is not int:
            self.report("no_index", f"{kind} has no output_index")
            return None
        return index

    # -- texts --------------------------------------------------------------------------------------------------------

    def _told(self, kind: str, members: Members) -> None:
        text, _, phase = kind.rpartition(".")
        if text not in TEXTS:
            return
        if text == "response.function_call_arguments" and text_in(members, "call_id"):
            self._calls.setdefault(text_in(members, "call_id"), None)
        part = members.get("content_index")
        key = (text, text_in(members, "item_id"), part if type(part) is int else 0)
        told = self._texts.get(key)
        if phase == "delta":
            if told is None:
                told = _Told(Running(), set())
                if len(self._texts) < _MAX_REMEMBERED:
                    self._texts[key] = told
            if told.ends:
                self.report("order", f"{kind} comes after the end of what it tells")
            if TEXTS[text] is not None:
                told.running.add(text_in(members, "delta"))
        elif phase in ("done", "completed") and members.get("status") != "in_progress":  # xAI's are, at first
            self._end(told, key, kind, text_in(members, TEXTS[text] or ""))

    def _end(self, told: _Told | None, key: tuple[str, str, int], kind: str, whole: str) -> None:
        if told is None:
            told = _Told(Running(), set())
            if len(self._texts) < _MAX_REMEMBERED:
                self._texts[key] = told
        elif kind in told.ends:
            self.report("terminal_twice", f"{kind} comes a second time")
        told.ends.add(kind)
        if TEXTS[key[0]] is not None and whole and told.running.units:
            self._against(told, whole, kind)

    def _against(self, told: _Told, whole: str, where: str) -> None:
        code = told.running.against(whole)
        if code is not None:
            differs = "does not begin with" if code == "end_differs" else "is longer than"
            self.report(code, f"the text in {where} {differs} what its deltas said")

    def _compare(self, item: Members) -> None:
        """Hold an item as it is in the end against what was told of it."""
        id_ = text_in(item, "id")
        wholes = [("response.function_call_arguments", 0, text_in(item, "arguments"))]
        for number, part in enumerate(entries(item.get("content"))):
            wholes.append(("response.output_text", number, text_in(part, "text")))
            wholes.append(("response.output_audio_transcript", number, text_in(part, "transcript")))
        for text, number, whole in wholes:
            told = self._texts.pop((text, id_, number), None)
            if told is not None and whole:
                self._against(told, whole, "response.output_item.done")
        self._forget(id_)

    def _forget(self, id_: str) -> None:
        for key in [key for key in self._texts if key[1] == id_]:
            del self._texts[key]

    # -- the end ------------------------------------------------------------------------------------------------------

    def _done(self, members: Members) -> None:
        response = object_of(members.get("response"))
        id_, status = text_in(response, "id"), text_in(response, "status")
        items = self._responses.pop(id_, None)
        if items is None:
            self.report("order", f"the response {shown(id_)} is done and was not created")
            return
        if status not in STATUSES:
            self.report("status_differs", f"response.done brings a response whose status is {shown(status)}")
        for place, item in items.items():
            if not item.done:
                self.report("not_closed", f"the item at {place} has no output_item.done")
            self._forget(item.id)
        output = entries(response.get("output"))
        if output and len(output) != len(items):
            self.report("output_differs", f"response.done lists {len(output)} items, {len(items)} came")

    def sent(self, members: Members) -> None:
        """See the base."""
        item: Any = object_of(members.get("item"))
        if members.get("type") == "conversation.item.create" and item.get("type") == "function_call_output":
            id_ = text_in(item, "call_id")
            if not id_:
                self.report("no_call_id", "a result of the client's does not name its call")
            elif id_ not in self._calls and len(self._calls) < _MAX_REMEMBERED:
                self.report("unknown_call", f"the client answers the call {shown(id_)}, which never came")


class XAIRealtimeCheck(RealtimeCheck):
    """xAI's copy: its output indexes are all 0, so that items are told by their ids."""

    def _place(self, members: Members, kind: str) -> int | str | None:
        id_ = _id_of(members)
        if not id_:
            self.report("no_index", f"{kind} names no item")
        return id_ or None


def _id_of(members: Members) -> str:
    return text_in(members, "item_id") or text_in(object_of(members.get("item")), "id")
