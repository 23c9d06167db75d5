"""OpenAI Responses: numbered events; items by output index, in them parts; each told in pieces and then as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from streamfold.lint._surface import Known, Members, Running, SurfaceCheck, entries, known, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers import openai_responses
from streamfold.providers.openai_responses import CALLS, OUTPUTS

__all__ = ["TERMINAL", "ResponsesCheck"]


class _Text(NamedTuple):
    """How one text of an item is told: its family, which member counts its parts, which one holds the whole."""

    family: str
    part: str | None
    whole: str


TEXTS: Final[Mapping[str, _Text]] = {
    # without .delta and .done
    "response.output_text": _Text("output_text", "content_index", "text"),
    "response.refusal": _Text("refusal", "content_index", "refusal"),
    "response.reasoning_summary_text": _Text("summary", "summary_index", "text"),
    "response.reasoning_text": _Text("content", "content_index", "text"),
    "response.function_call_arguments": _Text("arguments", None, "arguments"),
    "response.custom_tool_call_input": _Text("arguments", None, "input"),
    "response.mcp_call_arguments": _Text("arguments", None, "arguments"),
    "response.code_interpreter_call_code": _Text("arguments", None, "code"),
    "response.apply_patch_call_operation_diff": _Text("arguments", None, "diff"),
    "response.shell_call_command": _Text("command", "command_index", "command"),
}
"""Events that tell a text in pieces, and then whole."""

_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "output_text": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("content", "text"),
}
"""Type of a content part -> family of its text, and the member that holds it."""

ITEMS: Final = frozenset(
    {
        *CALLS,
        *OUTPUTS,
        "message",
        "reasoning",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "additional_tools",
        "program",
        "compaction",
        "agent_message",
        "multi_agent_call",
    }
)
"""Types of items."""

TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class _Item:
    """What is remembered of one item. ``begun`` is false where its beginning was not seen."""

    def __init__(self, kind: str, id_: Any, *, begun: bool = True) -> None:
        self.kind, self.id, self.begun, self.done = kind, id_, begun, False
        self.texts: dict[tuple[str, int], Running] = {}
        self.parts: set[tuple[str, int]] = set()  # that were opened


class ResponsesCheck(SurfaceCheck):
    """The order of a Responses stream, and whether its pieces are its wholes."""

    known: ClassVar[Known] = {
        "the payload": known(
            openai_responses._Event,
            besides="obfuscation logprobs annotation_index agent stream_id headers partial_image_b64"
            " partial_image_index background output_format quality size output steer",
        ),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._items: dict[int, _Item] = {}
        self._created = False
        self._resumed = False  # the stream goes on with an answer whose beginning is elsewhere
        self._next_sequence: int | None = None
        self._unnumbered = False

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "type")
        self.same_name(kind, name)
        self._count(members)
        if not kind.startswith("response."):
            return
        if kind != "response.created" and not self._created:
            self.report("order", f"{kind} comes before response.created")
            self._created = True  # said once
        if isinstance(members.get("response"), dict):
            self.same_id(members["response"].get("id"))
        if kind in TERMINAL:
            self._terminal(kind, members)
        elif kind in _EVENTS:
            _EVENTS[kind](self, members)
        else:
            text, _, phase = kind.rpartition(".")
            if text in TEXTS and phase in ("delta", "done"):
                self._told(kind, TEXTS[text], members, phase)

    def _count(self, members: Members) -> None:
        """Gaps are the reader's to find; what goes back it reads all the same."""
        number = members.get("sequence_number")
        if type(number) is not int:
            if not self._unnumbered:
                self._unnumbered = True
                self.report("no_sequence", "an event has no sequence_number")
            return
        if self._next_sequence is None:
            self._resumed = self._created = number > 0 and not self._unnumbered
        elif number < self._next_sequence:
            self.report("sequence_back", f"sequence number {number} comes where {self._next_sequence} is next")
        self._next_sequence = number + 1

    # -- items --------------------------------------------------------------------------------------------------------

    def _begin(self, members: Members) -> None:
        if self._created and not self._resumed:
            self.report("restarted", "a second response.created comes")
        self._created = True

    def _added(self, members: Members) -> None:
        index, item = members.get("output_index"), object_of(members.get("item"))
        kind = text_in(item, "type")
        if kind not in ITEMS:
            self.report("unknown_type", f"an item is of type {shown(kind)}")
        if type(index) is not int:
            self.report("no_index", "an output_item.added has no output_index")
            return
        if index in self._items:
            self.report("index_reused", f"output index {index} is given again")
        elif index != len(self._items) and not self._resumed:
            self.report("index_jump", f"output index {index} comes where {len(self._items)} is next")
        self._items[index] = _Item(kind, item.get("id"))

    def _item_at(self, members: Members, what: str) -> _Item | None:
        """The item that an event speaks of; it has to be open."""
        index = members.get("output_index")
        if type(index) is not int:
            self.report("no_index", f"{what} has no output_index")
            return None
        item = self._items.get(index)
        if item is None:
            if not self._resumed:
                self.report("order", f"{what} comes before output index {index} was added")
            item = self._items[index] = _Item("", None, begun=False)
        elif item.done:
            self.report("order", f"{what} comes after output index {index} was done")
        named = members.get("item_id", object_of(members.get("item")).get("id"))
        if named is not None and item.id is not None and named != item.id:
            self.report("id_changes", f"the item at output index {members['output_index']} has another id than before")
        item.id = named if named is not None else item.id
        return item

    def _done(self, members: Members) -> None:
        item = self._item_at(members, "output_item.done")
        if item is not None:
            whole = object_of(members.get("item"))
            self._same_type(item, whole)
            self._compare(item, whole, "output_item.done")
            item.done = True

    def _same_type(self, item: _Item, whole: Members) -> None:
        kind = text_in(whole, "type")
        if item.kind and kind and kind != item.kind:
            self.report("output_differs", f"an item is {shown(kind)} in the end and was {shown(item.kind)}")
        item.kind = item.kind or kind

    def _part_added(self, members: Members) -> None:
        item, part = self._item_at(members, "content_part.added"), object_of(members.get("part"))
        if item is not None:
            family, _ = _PARTS.get(text_in(part, "type"), ("", ""))
            if not family:
                self.report("unknown_type", f"a content part is of type {shown(text_in(part, 'type'))}")
            item.parts.add((family, _number(members.get("content_index"))))

    def _part_done(self, members: Members) -> None:
        item, part = self._item_at(members, "content_part.done"), object_of(members.get("part"))
        if item is not None:
            self._compare_part(item, part, _number(members.get("content_index")), "content_part.done")

    # -- texts --------------------------------------------------------------------------------------------------------

    def _told(self, kind: str, text: _Text, members: Members, phase: str) -> None:
        item = self._item_at(members, kind)
        if item is None:
            return
        key = (text.family, _number(members.get(text.part)) if text.part else 0)
        if phase == "delta":
            if text.family in ("output_text", "refusal") and key not in item.parts and item.begun:
                item.parts.add(key)
                self.report("part_not_added", f"{kind} comes before its content part was added")
            item.texts.setdefault(key, Running()).add(text_in(members, "delta"))
        else:
            self._against(item, key, text_in(members, text.whole), kind)

    def _against(self, item: _Item, key: tuple[str, int], whole: str, where: str) -> None:
        """Hold a whole text against its pieces; after that, the whole is what later ones are held against."""
        if not whole or not item.begun:  # gateways send an empty one for "not repeated here"
            return
        told = item.texts.setdefault(key, Running())
        code = told.against(whole)
        if code is not None and (told.units or code == "end_differs"):
            differs = "does not begin with" if code == "end_differs" else "is longer than"
            self.report(code, f"the {key[0].replace('_', ' ')} in {where} {differs} what its deltas said")
        elif code is not None:
            self.report(code, f"the {key[0].replace('_', ' ')} in {where} had no deltas")
        if code is not None:
            item.texts[key] = Running()
            item.texts[key].add(whole)

    def _compare(self, item: _Item, whole: Members, where: str) -> None:
        """Hold an item as it is in the end against what was told of it."""
        if item.kind == "message" or whole.get("type") == "message":
            for number, part in enumerate(entries(whole.get("content"))):
                self._compare_part(item, part, number, where)
        elif item.kind == "reasoning":
            for number, part in enumerate(entries(whole.get("summary"))):
                self._against(item, ("summary", number), text_in(part, "text"), where)
            for number, part in enumerate(entries(whole.get("content"))):
                self._compare_part(item, part, number, where)
        elif ("arguments", 0) in item.texts:
            self._against(
                item, ("arguments", 0), CALLS[item.kind].arguments(whole) if item.kind in CALLS else "", where
            )

    def _compare_part(self, item: _Item, part: Members, number: int, where: str) -> None:
        family, member = _PARTS.get(text_in(part, "type"), ("", ""))
        if family:
            self._against(item, (family, number), text_in(part, member), where)

    # -- the end ------------------------------------------------------------------------------------------------------

    def _terminal(self, kind: str, members: Members) -> None:
        response = object_of(members.get("response"))
        status = text_in(response, "status")
        if status and status != kind.removeprefix("response."):
            self.report("status_differs", f"{kind} brings a response whose status is {shown(status)}")
        if kind == "response.failed":
            return
        output = entries(response.get("output"))
        for index, whole in enumerate(output):
            item = self._items.get(index)
            if item is not None:
                self._same_type(item, whole)
                if item.kind == whole.get("type"):
                    self._compare(item, whole, kind)
        if len(output) != len(self._items) and not self._resumed:
            self.report("output_differs", f"{kind} lists {len(output)} items, {len(self._items)} came")
        for index, item in self._items.items():
            if not item.done and index >= len(output):
                self.report("not_closed", f"the item at output index {index} has no output_item.done")


def _number(value: Any) -> int:
    return value if type(value) is int else 0


_EVENTS: Final[Mapping[str, Callable[[ResponsesCheck, Members], Any]]] = {
    "response.created": ResponsesCheck._begin,
    "response.output_item.added": ResponsesCheck._added,
    "response.output_item.done": ResponsesCheck._done,
    "response.content_part.added": ResponsesCheck._part_added,
    "response.content_part.done": ResponsesCheck._part_done,
}
