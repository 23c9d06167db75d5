"""OpenAI Responses (``POST /v1/responses`` with ``stream``), and the servers that speak it.

Reads against the vendor's list of event types and of item types. An item is known by its ``output_index``: items
overlap, and their ids rotate on some hosts while the index holds. What ``output_item.done`` and the terminal event
say of an item is authoritative. An event that no item takes comes out as ``raw``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from streamfold.blocks import ApprovalBlock, Block, Citation, Executor, JSONText, OtherBlock, ToolResultBlock
from streamfold.events import BlockKind, ErrorEvent, Event, ReasoningDelta, StopReason, TextDelta, ToolCallDelta, Usage
from streamfold.payloads import (
    DECODE_ERRORS,
    Payload,
    Reader,
    as_text,
    compact,
    depth_exceeds,
    is_given,
    read_object,
    sanitize,
)
from streamfold.pieces import MANY, Pieces
from streamfold.providers import _usage
from streamfold.providers._errors import provider_error
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenMedia, OpenReasoning, OpenTranscript, OpenWhole
from streamfold.providers._table import END, BaseNormalizer, Cursor, Say, id_of, text_of, whole_number

__all__ = ["OpenAIResponsesNormalizer"]

Members: TypeAlias = dict[str, Any]

INCOMPLETE_REASONS: Final[Mapping[str, StopReason]] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "refusal",
    "steered": "cancelled",
}
"""What ``incomplete_details.reason`` means; any other word is ``other``."""

ENDED: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
"""What the status of a response may be once it has ended."""
RUNNING: Final = frozenset({"queued", "in_progress", "searching", "interpreting", "generating"})
"""What the status of an item may be while it has not."""
_CUT: Final = frozenset({"incomplete"})
"""What it is where the item will never be whole."""

# -- items ------------------------------------------------------------------------------------------------------------


def _member(name: str) -> Callable[[Members], str]:
    def read(item: Members) -> str:
        value = item.get(name)
        return value if type(value) is str else as_text(value)

    return read


def _object_of(name: str) -> Callable[[Members], str]:
    def read(item: Members) -> str:
        return as_text({name: item[name]}) if item.get(name) else ""

    return read


def _commands(item: Members) -> str:
    action = item.get("action")
    commands = cast("Members", action).get("commands") if isinstance(action, dict) else None
    return "\n".join(map(text_of, commands)) if isinstance(commands, list) else ""


def _diff(item: Members) -> str:
    operation = item.get("operation")
    return text_of(cast("Members", operation).get("diff")) if isinstance(operation, dict) else ""


def _computer_action(item: Members) -> str:
    return _member("actions" if item.get("actions") else "action")(item)


def _searched(item: Members) -> str:
    return _member("action")(item) or _member("arguments")(item)  # xAI


class _CallType(NamedTuple):
    kind: str
    executor: Executor
    is_json: bool
    arguments: Callable[[Members], str]
    result: str = ""  # the member that holds what the tool gave back, where the provider runs it


CALLS: Final[Mapping[str, _CallType]] = {
    "function_call": _CallType("function", "client", True, _member("arguments")),
    "custom_tool_call": _CallType("custom", "client", False, _member("input")),
    "apply_patch_call": _CallType("apply_patch", "client", False, _diff),
    "computer_call": _CallType("computer", "client", True, _computer_action),
    "local_shell_call": _CallType("local_shell", "client", True, _member("action")),
    "shell_call": _CallType("shell", "client", False, _commands),
    "tool_search_call": _CallType("tool_search", "client", True, _member("arguments")),
    "code_interpreter_call": _CallType("code_execution", "provider", False, _member("code"), "outputs"),
    "file_search_call": _CallType("file_search", "provider", True, _object_of("queries"), "results"),
    "image_generation_call": _CallType("image_generation", "provider", True, _object_of("prompt"), "result"),
    "mcp_call": _CallType("mcp", "provider", True, _member("arguments"), "output"),
    "web_search_call": _CallType("web_search", "provider", True, _searched),
}
"""Items that are calls. ``shell_call`` and ``tool_search_call`` say themselves who runs them."""
_HOSTED: Final = "xs_"
"""How the call ids of custom tools begin that the provider has run itself: xAI's search in X."""

OUTPUTS: Final[Mapping[str, str]] = {
    "apply_patch_call_output": "output",
    "computer_call_output": "output",
    "custom_tool_call_output": "output",
    "function_call_output": "output",
    "local_shell_call_output": "output",
    "multi_agent_call_output": "output",
    "program_output": "result",
    "shell_call_output": "output",
    "tool_search_output": "tools",
}
"""Items that are the result of a call, and the member that holds what the tool gave back."""

PARTS: Final[Mapping[str, Literal["text", "refusal"]]] = {"output_text": "text", "text": "text", "refusal": "refusal"}
"""Content parts that are visible; ``reasoning_text`` belongs to the reasoning of its item."""

FAMILIES: Final = ("summary", "content")
"""Where a reasoning item holds its parts."""

_NOT_PLAIN: Final = (*DECODE_ERRORS, TypeError)
"""What the strict decoder raises of a payload that is an object, too."""

_HELD: Final = frozenset(
    {
        "id",
        "content",
        "summary",
        "encrypted_content",
        "arguments",
        "input",
        "call_id",
        "name",
        "result",
        "output",
        "tools",
        "code",
    }
)
"""Members of items that blocks hold in members of their own."""

# -- the hot shapes: one delta of the block that the delta before belonged to -------------------------------------

_PIECES: Final[Mapping[str, str]] = {
    "response.output_text.delta": "content_index",
    "response.refusal.delta": "content_index",
    "response.reasoning_summary_text.delta": "summary_index",
    "response.reasoning_text.delta": "content_index",
    "response.function_call_arguments.delta": "content_index",
    "response.custom_tool_call_input.delta": "content_index",
    "response.mcp_call_arguments.delta": "content_index",
    "response.apply_patch_call_operation_diff.delta": "content_index",
    "response.code_interpreter_call_code.delta": "content_index",
    "response.shell_call_command.delta": "command_index",
}
"""Deltas that may be many, and what each calls the part of its item."""
_PIECE: Final = Annotated[str, msgspec.Meta(min_length=1)]
_FEW: Final = 32  # items, or parts of one, that have a decoder of their own: each costs 50 microseconds to make, once


@lru_cache(maxsize=256)
def _piece_decoder(kind: str, index: int, part: int) -> Callable[[bytes], Any]:
    """What reads one more delta of the same part, and refuses any other and an empty one: the decoder compares."""
    if index >= _FEW or part >= _FEW:
        return partial(_checked, _any_piece_decoder(kind), index, part)
    return _decoder_of(kind, ("output_index", Literal[index]), ("part", Literal[part], *([] if part else [0])))


@cache
def _any_piece_decoder(kind: str) -> Callable[[bytes], Any]:
    return _decoder_of(kind, ("output_index", int), ("part", int, 0))


def _decoder_of(kind: str, *places: Any) -> Callable[[bytes], Any]:
    fields: list[Any] = [("type", Literal[kind]), ("sequence_number", int | None, None), *places, ("delta", _PIECE)]
    shape = msgspec.defstruct("Delta", fields, rename={"part": _PIECES[kind]}, kw_only=True, gc=False)
    return msgspec.json.Decoder(shape).decode


def _checked(decode: Callable[[bytes], Any], index: int, part: int, payload: bytes) -> Any:
    event = decode(payload)
    if event.output_index != index or event.part != part:
        raise msgspec.ValidationError
    return event


# -- totals: the vendor's own members, read without a table ------------------------------------------------------


class _InputDetails(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    cached_tokens: int
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    reasoning_tokens: int


class _Totals(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    input_tokens: int
    input_tokens_details: _InputDetails
    output_tokens: int
    output_tokens_details: _OutputDetails
    total_tokens: int


_TOTALS: Final = msgspec.json.Decoder(_Totals).decode
_ENCODE: Final = msgspec.json.Encoder().encode


def _everyday_totals(usage: msgspec.Raw) -> Usage | None:
    """What :func:`_usage.read` makes of these members, where all are there and no others.

    None too where they do not add up, or are written as no encoder of ours would: with blanks, or one of them twice.
    """
    try:
        totals = _TOTALS(usage)
    except DECODE_ERRORS:
        return None
    text, total, details = JSONText(usage, "utf-8"), totals.total_tokens, totals.input_tokens_details
    if total != totals.input_tokens + totals.output_tokens or len(_ENCODE(totals)) != len(text):
        return None
    reasoning = totals.output_tokens_details.reasoning_tokens
    return Usage(
        totals.input_tokens,
        totals.output_tokens,
        total,
        reasoning,
        details.cached_tokens,
        details.cache_write_tokens,
        raw=text,
    )


# -- what all other payloads are read into; large members stay text ---------------------------------------------------


class _Incomplete(msgspec.Struct, gc=False):
    reason: Any = None


class _Response(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    usage: msgspec.Raw = msgspec.Raw()
    store: Any = None
    output: tuple[msgspec.Raw, ...] | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    sequence_number: int | None = None
    response: _Response | None = None
    item_id: Any = None
    output_index: Any = None
    content_index: Any = None
    summary_index: Any = None
    delta: Any = None
    text: Any = None
    arguments: Any = None
    part: Any = None
    item: Any = None
    annotation: Any = None
    command_index: Any = None
    refusal: Any = None
    input: Any = None
    diff: Any = None
    command: Any = None
    error: Any = None
    code: Any = None  # of an error, and of code_interpreter_call_code.done
    message: Any = None
    param: Any = None
    status: Any = None
    request_id: Any = None
    object: Any = None


_HALVES: Final = frozenset({"delta", "text", "refusal", "arguments", "input", "code", "diff", "command"})
_EVENT: Final = Reader(_Event, _HALVES)
_DECODE: Final = _EVENT.decode
_RESPONSE: Final = Reader(_Response)
_NO_RESPONSE: Final = _Response()


def _may_nest(payload: Payload, event: _Event, limit: int | None) -> bool:
    """Whether it may nest more than ``limit`` levels, as far as its brackets tell, and those of the items in its list.

    An answer with many sources has hundreds of brackets, yet no item of it has many: this tells it in a tenth of the
    time of looking at what it decodes to.
    """
    if limit is None:
        return False
    opened = _opened(payload)
    if opened <= limit or event.response is None or not event.response.output:
        return opened > limit
    items = [_opened(bytes(item)) for item in event.response.output]
    return opened - sum(items) + max(items) > limit


def _opened(text: Any) -> int:
    return 2 * len(text) - len(text.replace(b"{", b"")) - len(text.replace(b"[", b""))


def _list_in(members: Members, name: str) -> list[Any]:
    """The member, if it is a list; what else it may be is one entry of it."""
    value = members.get(name)
    return value if isinstance(value, list) else [] if value is None else [value]


def _places(block: OpenReasoning, members: Members) -> Members:
    """Which parts of the block stand under which name, by their place among them; None: an empty one.

    Nothing where all are summary, which is what is taken for granted.
    """
    summary, content = members.get("summary"), members.get("content")
    if not (block.numbers or summary or content):
        return {}
    shown = [number for number, part in enumerate(block.parts) if part.text()]
    in_order = [("summary", number) for number in shown]
    plain = content in (None, []) and type(summary) is list and len(summary) == len(in_order) == len(block.parts)
    if plain and [*block.numbers] == in_order:
        return {}
    place_of = {number: place for place, number in enumerate(shown)}
    places: Members = {}
    for family in FAMILIES:
        numbers = {number: ours for (name, number), ours in block.numbers.items() if name == family}
        listed = range(len(_list_in(members, family)))
        if found := [place_of.get(numbers.get(number, -1)) for number in sorted({*numbers, *listed})]:
            places[family] = found
    return places if places != {"summary": [*range(len(shown))]} else {}


class _Item(msgspec.Struct, eq=False):
    """One output item while it streams."""

    place: object = None  # its output index; without one its id, or None
    type: str = ""
    id: str = ""
    members: Members = {}  # as its last event had them
    parts: dict[tuple[str, int], OpenBlock] = {}  # of a message, by kind and content index
    call: OpenCall | None = None
    thought: OpenReasoning | None = None
    whole: OpenWhole | None = None  # of any other item
    command: int = 0  # of a shell call: which one is told
    command_at: int = 0  # and where in the call it begins
    done: bool = False
    listed: bool = False  # found in the list of the terminal event

    def is_another(self, members: Members) -> bool:
        """Whether these members are of another item, which a host that does not number gives the same place."""
        kind = text_of(members.get("type"))
        return (kind != "" and kind != self.type) or (self.done and id_of(members.get("id")) not in ("", self.id))

    def may_be(self, kind: str) -> bool:
        """Whether it can be the one that the terminal event lists with this type."""
        return not self.listed and (self.type == kind or not self.type or not kind)


class OpenAIResponsesNormalizer(BaseNormalizer):
    """Events of OpenAI Responses to unified events.

    Args:
        after: Cursor of an earlier reading: what is replayed up to it is dropped, what is missing after it reported.
    """

    surface = "openai-responses"
    terminal = "a terminal event"

    def _begin(self) -> None:
        self._all: list[_Item] = []
        self._items: dict[object, _Item] = {}  # by their place
        self._by_id: dict[str, _Item] = {}
        self._latest: _Item | None = None
        self._stored = True  # the provider keeps what it said, reasoning too
        self._media: OpenMedia | None = None
        self._transcript: OpenTranscript | None = None
        self._pending_error: ErrorEvent | None = None
        self._replaying = False

    def _resume(self, after: Cursor) -> None:
        super()._resume(after)
        if after.last_sequence is not None:
            self.next_sequence = after.last_sequence + 1
            self._replaying = True

    def replay(self) -> None:
        """A new connection begins: drop what it repeats."""
        super().replay()
        self._replaying = self.next_sequence is not None

    def _mean(self, payload: Payload) -> bool:
        self.more = None
        answer = self.answer
        event: _Event | None = None
        if type(payload) is bytes:
            try:
                event = _DECODE(payload)
                answer.kind = event.type
            except DECODE_ERRORS:
                pass
        if event is None or (len(payload) > self._shallow and _may_nest(payload, event, answer.max_depth)):
            answer.kind = None
            event = _EVENT.read(payload, answer.max_depth)
            if event is None:
                self._give_up()
                return False
        kind = event.type or self._name_of(event)
        number = event.sequence_number
        if number is not None and number == self.next_sequence and not self._replaying:
            self.next_sequence = number + 1
        elif not self._in_sequence(number):
            answer.meant = True
            return True
        if self._pending_error is not None and kind != "response.failed":
            self._give_up()
            return True
        handler = EVENTS.get(kind)
        if handler is not None:
            handler(self, event)
            if answer.meant or answer.ended:
                return True
        elif event.error and not kind:  # an error body in the place of a stream
            self._error(event)
            return False
        known = handler is not None or kind in PROGRESS
        if len(answer.out) == answer.before:
            answer.raw(index=self._concerned(event), known=known)
        return known

    def _name_of(self, event: _Event) -> str:
        """The type of an event that does not say it: the frame may, and a server that did not stream."""
        kind = self.answer.event_name() or ""
        if not kind and event.object == "response":
            event.response = response = _RESPONSE.read(self.answer.payload, None) or _NO_RESPONSE
            kind = f"response.{text_of(response.status) or 'completed'}"
        event.type = kind
        return kind

    def _in_sequence(self, number: int | None) -> bool:
        """Count the payload; False for one that a new connection only repeats."""
        if number is None or number < 0:
            return True
        if self.next_sequence is not None:
            if number < self.next_sequence:
                return not self._replaying  # elsewhere a gateway numbers carelessly: read it all the same
            if number > self.next_sequence:
                missing = (
                    f"{self.next_sequence}"
                    if number == self.next_sequence + 1
                    else f"{self.next_sequence} to {number - 1}"
                )
                self.answer.warn("sequence_gap", f"missing sequence numbers: {missing}")
        self._replaying = False
        self.next_sequence = number + 1
        return True

    # -- the response -------------------------------------------------------------------------------------------------

    def _created(self, event: _Event) -> None:
        response = event.response or _NO_RESPONSE
        self._stored = self._stored and response.store is not False
        answer = self.answer
        if answer.id is None or response.model != answer.model:
            # Copilot's ids change at every event: the first one counts.
            answer.identify(answer.id or id_of(response.id), response.model)

    def _progress(self, event: _Event) -> None:
        self._created(event)
        self.answer.raw()

    def _terminal(self, event: _Event) -> None:
        self._created(event)
        response = event.response or _NO_RESPONSE
        word = text_of(response.status)
        if word not in ENDED:
            word = event.type.removeprefix("response.")
        if word == "failed":
            self._failed(event)
            return
        if response.output:
            self._reconcile(response.output)
        if self.answer.open:
            self._close_rest(complete=word != "cancelled")
        self._report(response)
        reason: StopReason = "cancelled" if word == "cancelled" else "end"
        if word == "incomplete":
            details = response.incomplete_details
            word = text_of(details.reason if details else None) or word
            reason = INCOMPLETE_REASONS.get(word, "other")
        self.answer.stop(0, reason, word)
        self.answer.done()

    def _failed(self, event: _Event) -> None:
        self._created(event)
        response = event.response or _NO_RESPONSE
        self._report(response)
        members = response.error or event.error
        self._fail(provider_error(members, {} if members else {"message": "the response failed"}))

    def _error(self, event: _Event) -> None:
        """Flat by the type definition, nested on the wire. ``response.failed`` may follow: one fault, one event."""
        flat = {"code": event.code, "message": event.message, "param": event.param}
        error = event.error or {name: value for name, value in flat.items() if value is not None}
        self._pending_error = provider_error(error, {"status": event.status, "request_id": event.request_id})
        self.answer.meant = True

    def _give_up(self) -> None:
        if self._pending_error is not None:
            self._fail(self._pending_error)

    def _sentinel(self) -> bool:
        self._give_up()
        return True

    def _fail(self, error: ErrorEvent) -> None:
        """What the provider has said counts, whatever else comes to light before it was explained."""
        super()._fail(self._pending_error or error)

    def _report(self, response: _Response) -> None:
        usage = response.usage
        totals = _everyday_totals(usage)
        if totals is None and is_given(usage):
            totals = _usage.read(read_object(bytes(usage), None) or {})
        self.answer.report(totals)

    # -- items --------------------------------------------------------------------------------------------------------

    def _item(self, event: _Event) -> _Item:
        """The item an event speaks of: by its index, else by its id, else the one that came last."""
        index = event.output_index
        item = self._latest = (self._items.get(index) if type(index) is int else None) or self._item_of_no_place(event)
        return item

    def _item_of_no_place(self, event: _Event) -> _Item:
        """The same where nothing is known of its index, or it has none."""
        index, id_ = whole_number(event.output_index), id_of(event.item_id)
        return self._named(index, id_) or self._new_item(id_ or None if index is None else index, id_)

    def _known(self, event: _Event) -> _Item | None:
        index = event.output_index
        item = self._items.get(index) if type(index) is int else None
        return item or self._named(whole_number(index), id_of(event.item_id))

    def _named(self, index: int | None, id_: str) -> _Item | None:
        if index is None:
            return self._by_id.get(id_) if id_ else self._latest
        item = self._items.get(index)
        if item is None and id_:
            item = self._by_id.get(id_)
            if item is None or type(item.place) is int:  # an id that two places have names neither
                return None
            item.place, self._items[index] = index, item  # it had none so far
        return item

    def _new_item(self, place: object, id_: str) -> _Item:
        item = self._items[place] = _Item(place, id=id_)
        if id_:
            self._by_id[id_] = item
        self._all.append(item)
        self.answer.hold(len(self._all))
        return item

    def _note_id(self, item: _Item, members: Members) -> None:
        """Ids are taken from where an item is told of, not from its deltas: those may rotate, and are many."""
        id_ = members.get("id")
        if id_ != item.id and (id_ := id_of(id_)):
            item.id, self._by_id[id_] = id_, item

    def _item_of(self, event: _Event, members: Members) -> _Item:
        """The item whose members these are."""
        if not event.item_id:
            event.item_id = members.get("id")
        item = self._item(event)
        if item.members and (item.done or item.type != members.get("type")) and item.is_another(members):
            self._latest = item = self._new_item(item.place, id_of(members.get("id")))
        return item

    def _concerned(self, event: _Event) -> int | None:
        """The block that an event without a meaning of its own is about, while it is open."""
        named = event.output_index is not None or id_of(event.item_id)
        item = self._known(event) if named else None
        if item is None:
            return None
        part = whole_number(event.content_index) or 0
        block = item.call or item.thought or item.whole or item.parts.get(("text", part))
        block = block or item.parts.get(("refusal", part))
        return block.index if block is not None and block.index in self.answer.open else None

    def _item_added(self, event: _Event) -> None:
        members: Members = event.item
        kind = members.get("type") if type(members) is dict else None
        if type(kind) is not str or not kind:
            return
        items, by_id, index, id_ = self._items, self._by_id, event.output_index, members.get("id")
        new = type(index) is int and index >= 0 and index not in items and event.item_id is None
        if new and type(id_) is str and id_ not in ("", "null") and id_ not in by_id:  # nearly all
            item = self._latest = items[index] = by_id[id_] = _Item(index, kind, id_, members)
            self._all.append(item)
            self.answer.hold(len(self._all))
            self._open_item(item, kind, members)
        else:
            item = self._item_of(event, members)
            if not item.members:
                self._begin_item(item, members)
        if kind == "function_call" and item.call is not None:
            self._warm_call("response.function_call_arguments.delta", event, item.call, 0)
        self.answer.meant = True

    def _item_done(self, event: _Event) -> None:
        members: Members = event.item
        if type(members) is dict:
            item = self._items.get(event.output_index) if type(event.output_index) is int else None
            if item is None or item.done or item.type != members.get("type"):
                item = self._item_of(event, members)
            self._latest = item
            self._finish_item(item, members)
            self.answer.meant = True

    def _reconcile(self, output: Sequence[msgspec.Raw]) -> None:
        """The terminal event lists the items: take from it what never was finished.

        Some hosts give the items other ids here, and some leave items out. Where every item stands at its place, the
        place tells which is which, else the order of those of one type.
        """
        items = self._all
        if len(output) == len(items) and all(item.done for item in items):
            return
        listed = [read_object(bytes(raw), None) for raw in output]
        kinds = [text_of(members.get("type")) if members else "" for members in listed]
        in_place = all(self._is_at_its_place(item, kinds) for item in items)
        in_order: dict[str, deque[_Item]] = {}
        for item in items:
            if not in_place or type(item.place) is not int:
                in_order.setdefault(item.type, deque()).append(item)
        for place, members in enumerate(listed):
            if members is None:
                continue
            others = in_order.get(kinds[place], deque[_Item]())
            while others and others[0].listed:
                others.popleft()
            found = (
                self._items.get(place) if in_place else None,
                self._by_id.get(id_of(members.get("id"))),
                others[0] if others else None,
            )
            item = next((item for item in found if item is not None and item.may_be(kinds[place])), _Item(place))
            item.listed = True
            self._finish_item(item, members, _CUT | RUNNING)

    def _is_at_its_place(self, item: _Item, kinds: Sequence[str]) -> bool:
        """Whether a list of items of these types can hold it where its index says; true of one that has no index."""
        place = item.place
        if not isinstance(place, int):
            return True
        return place < len(kinds) and item.may_be(kinds[place]) and self._items[place] is item

    def _begin_item(self, item: _Item, members: Members) -> None:
        item.members = members
        item.type = kind = text_of(members.get("type")) or item.type
        if members.get("id") != item.id:
            self._note_id(item, members)
        self._open_item(item, kind, members)

    def _open_item(self, item: _Item, kind: str, members: Members) -> None:
        if kind == "message":  # whose parts open blocks
            return
        call = CALLS.get(kind)
        if call is not None:
            item.call = self._open_call(call, members)
        elif kind == "reasoning":
            item.thought = item.thought or self.answer.open_reasoning(0, self._meta(members))
        else:
            item.whole = self._open_whole(item)

    def _finish_item(self, item: _Item, members: Members, unfinished: frozenset[str] = _CUT) -> None:
        """The item is done, unless its status is one of these."""
        if item.done:
            return
        if not item.members:
            self._begin_item(item, members)
        item.members = members
        if members.get("id") != item.id:
            self._note_id(item, members)
        if item.call is not None:
            incomplete = text_of(members.get("status")) in unfinished
            self._finish_call(item.call, CALLS[item.type], members, incomplete)
        elif item.type == "reasoning" and item.thought is not None:
            self._finish_reasoning(item.thought, members)
        elif item.whole is not None:
            item.whole.meta = self._meta(members) if item.whole.kind != "other" else None
            self.answer.close(item.whole)
        else:
            self._finish_message(item, members)
        item.done = True

    def _close_rest(self, *, complete: bool) -> None:
        """No ``done`` came: text is taken as it is, a call is not."""
        for block in list(self.answer.open.values()):
            if not complete or isinstance(block, OpenCall):
                self.answer.cut(block)
            elif isinstance(block, OpenReasoning):
                self._close_reasoning(block, {})
            else:
                self.answer.close(block)

    def _meta(self, members: Members) -> Members | None:
        """What has to go back with the item in the next request, but for the members that blocks hold."""
        id_ = members.get("id")
        meta = {} if id_ is None else {"item_id": id_}
        for name, value in members.items():
            if value is not None and name not in _HELD:
                meta[name] = value  # noqa: PERF403 - a comprehension is a call
        return meta or None

    # -- messages -----------------------------------------------------------------------------------------------------

    def _part_at(self, event: _Event, kind: Literal["text", "refusal"], opens: bool = True) -> OpenBlock | None:
        """The block of the content part that the event names; None where it is not open."""
        index, part = event.output_index, event.content_index
        item = (self._items.get(index) if type(index) is int else None) or self._item_of_no_place(event)
        self._latest = item
        block = item.parts.get((kind, part if type(part) is int and part > 0 else 0))
        if block is None:
            return self._open_part(item, kind, part) if opens else None
        return block if block.index in self.answer.open else None

    def _open_part(self, item: _Item, kind: Literal["text", "refusal"], part: Any) -> OpenBlock | None:
        """A new block of a content part; None where the item is done, so that no part of it opens."""
        if item.done:
            return None
        item.type = item.type or "message"
        block = self.answer.open_text(kind, 0, self._meta(item.members))
        item.parts[kind, part if type(part) is int and part > 0 else 0] = block
        return block if block.index in self.answer.open else None

    def _part_added(self, event: _Event) -> None:
        part: Members = event.part if type(event.part) is dict else {}
        kind = PARTS.get(text_of(part.get("type")))
        block = self._part_at(event, kind) if kind else None
        if kind is None or block is None:
            return
        if whole := part.get(kind):
            self.answer.settle_text(block, text_of(whole))
        elif kind == "text":
            self._warm_text("response.output_text.delta", event, block)
        self.answer.meant = True

    def _part_done(self, event: _Event) -> None:
        part: Members = event.part
        kind = PARTS.get(text_of(part.get("type"))) if type(part) is dict else None
        block = self._part_at(event, kind) if kind else None
        if kind is not None and block is not None:
            self._settle_part(block, kind, part)
            self.answer.meant = True

    def _settle_part(self, block: OpenBlock, kind: Literal["text", "refusal"], part: Members) -> None:
        """A content part as the provider has it in the end: text and sources that no event brought."""
        whole = part.get(kind)
        if type(whole) is str and whole and not block.says(whole):
            self.answer.settle_text(block, whole)
        annotations = part.get("annotations")
        if annotations and isinstance(annotations, list):
            for annotation in annotations[len(block.citations) :]:
                self._cite(block, annotation)

    def _finish_message(self, item: _Item, members: Members) -> None:
        parts, answer = item.parts, self.answer
        for index, part in enumerate(_list_in(members, "content")):
            kind = PARTS.get(text_of(part.get("type"))) if type(part) is dict else None
            if kind is not None:
                block = parts.get((kind, index)) or self._open_part(item, kind, index)
                if block is not None and block.index in answer.open:
                    self._settle_part(block, kind, part)
                    continue
            answer.raw()  # a part of a kind that no block is of
        meta = self._meta(members)
        for block in parts.values():
            block.meta = meta
            answer.close(block)

    def _text_delta(self, event: _Event) -> None:
        self._visible(event, "text")

    def _refusal_delta(self, event: _Event) -> None:
        self._visible(event, "refusal")

    def _visible(self, event: _Event, kind: Literal["text", "refusal"]) -> None:
        piece = text_of(event.delta)
        block = self._part_at(event, kind) if piece else None
        if block is not None:
            self.answer.text(block, piece)
            self.answer.meant = True
            self._warm_text(event.type, event, block)

    def _text_done(self, event: _Event) -> None:
        self._tell_whole(event, "text", text_of(event.text))

    def _refusal_done(self, event: _Event) -> None:
        self._tell_whole(event, "refusal", text_of(event.refusal))

    def _tell_whole(self, event: _Event, kind: Literal["text", "refusal"], whole: str) -> None:
        block = self._part_at(event, kind, whole != "")
        if block is not None:
            if whole and not block.says(whole):
                self.answer.settle_text(block, whole)
            self.answer.meant = True

    def _annotation(self, event: _Event) -> None:
        source = event.annotation
        block = self._part_at(event, "text", isinstance(source, dict))
        if block is not None:
            self._cite(block, source)

    def _cite(self, block: OpenBlock, annotation: Any) -> None:
        if not isinstance(annotation, dict):
            return
        source = cast("Members", annotation)
        start, end = whole_number(source.get("start_index")), whole_number(source.get("end_index"))
        if start is None or end is None or end < start:
            start = end = None
        self.answer.cite(
            block,
            Citation(
                block.index,
                text_of(source.get("url")) or None,
                text_of(source.get("title")) or text_of(source.get("filename")) or None,
                text_of(source.get("quote")) or None,
                start,
                end,
                compact(source),
            ),
        )

    # -- reasoning ----------------------------------------------------------------------------------------------------

    def _reasoning_at(self, event: _Event, opens: bool = True) -> OpenReasoning | None:
        """The reasoning of the item; None where the item is done."""
        item = self._item(event)
        if item.thought is None and opens and not item.done:
            item.type = item.type or "reasoning"
            item.thought = self.answer.open_reasoning(0, self._meta(item.members))
        block = item.thought
        return block if block is not None and block.index in self.answer.open else None

    def _summary_delta(self, event: _Event) -> None:
        self._think(event, "summary", event.summary_index)

    def _reasoning_delta(self, event: _Event) -> None:
        self._think(event, "content", event.content_index)

    def _think(self, event: _Event, family: str, part: Any) -> None:
        piece = text_of(event.delta)
        block = self._reasoning_at(event) if piece else None
        if block is not None:
            key = (family, whole_number(part) or 0)
            ours = self.answer.part(block, key)
            self.answer.reasoning(block, piece, key)
            self.answer.meant = True
            say = partial(ReasoningDelta, block.index, part=ours) if ours else partial(ReasoningDelta, block.index)
            self._warm(event.type, event, block, part, say, block.parts[ours])

    def _summary_done(self, event: _Event) -> None:
        self._settle_reasoning(event, "summary", event.summary_index)

    def _reasoning_done(self, event: _Event) -> None:
        self._settle_reasoning(event, "content", event.content_index)

    def _settle_reasoning(self, event: _Event, family: str, part: Any) -> None:
        whole = text_of(event.text)
        block = self._reasoning_at(event, whole != "")
        if block is not None:
            self.answer.settle_reasoning(block, (family, part if type(part) is int and part > 0 else 0), whole)
            self.answer.meant = True

    def _finish_reasoning(self, block: OpenReasoning, members: Members) -> None:
        for family in FAMILIES:
            if not members.get(family):
                continue
            others = {block.parts[ours].text(): ours for (name, _), ours in block.numbers.items() if name != family}
            for number, entry in enumerate(_list_in(members, family)):
                text = text_of(entry.get("text")) if type(entry) is dict else ""
                if text in others and (family, number) not in block.numbers:  # hosts repeat one text under both names
                    block.numbers[family, number] = others[text]
                else:
                    self.answer.settle_reasoning(block, (family, number), text)
        block.encrypted = text_of(members.get("encrypted_content")) or block.encrypted
        if block.encrypted:
            self.answer.last_signature = block.encrypted
        block.meta = self._meta(members) or block.meta
        self._close_reasoning(block, members)

    def _close_reasoning(self, block: OpenReasoning, members: Members) -> None:
        """Besides the item's members, meta keeps where each part stood and that the provider does not keep it."""
        kept = _places(block, members) if self._stored else {**_places(block, members), "store": False}
        if kept:
            block.meta = {**(block.meta or {}), **kept}
        self.answer.close(block)

    # -- calls --------------------------------------------------------------------------------------------------------

    def _executor(self, call: _CallType, members: Members) -> Executor:
        """Who runs the call, where the item says so."""
        kind = call.kind
        if kind == "shell" and isinstance(members.get("environment"), dict):
            return "client" if members["environment"].get("type") == "local" else "provider"
        if kind == "tool_search" and members.get("execution") == "server":
            return "provider"
        if kind == "custom" and text_of(members.get("call_id")).startswith(_HOSTED):
            return "provider"
        return call.executor

    def _open_call(self, call: _CallType, members: Members) -> OpenCall:
        return self.answer.open_call(
            id_of(members.get("call_id")) or id_of(members.get("id")),
            text_of(members.get("name")) or call.kind,
            kind=call.kind,
            executor=self._executor(call, members),
            is_json=call.is_json,
            meta=self._meta(members),
        )

    def _finish_call(self, block: OpenCall, call: _CallType, members: Members, incomplete: bool) -> None:
        before, block.meta = block.meta, self._meta(members)
        if before is not None and "synthetic_id" in before:
            block.meta = {**(block.meta or {}), "synthetic_id": True}
        block.name = text_of(members.get("name")) or block.name
        if block.executor == "client" and self._executor(call, members) == "provider":
            self.answer.run_by_provider(block)
        self.answer.finish_call(block, call.arguments(members), incomplete=incomplete)
        if call.executor == "client" and not call.result:
            return
        result, error = members.get(call.result), members.get("error")
        if call.kind == "image_generation":
            self._image(text_of(result), members)
        elif result is not None or (error is not None and call.executor == "provider"):
            self._result(block, call, result if result is not None else error, is_error=error is not None)

    def _result(self, call: OpenCall, kind: _CallType, result: Any, *, is_error: bool) -> None:
        """What the provider's tool gave back stands inside the call's item."""
        content = compact(result)

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            return ToolResultBlock(index, call.id, call.name, content, is_error, complete=complete, meta=meta)

        self.answer.close(self.answer.open_whole("tool_result", make))

    def _image(self, data: str, members: Members) -> None:
        if data:
            suffix, id_ = text_of(members.get("output_format")), members.get("id")
            meta = None if id_ is None else {"item_id": id_}
            block = self.answer.open_media(f"image/{suffix}" if suffix else None, 0, meta)
            self.answer.media(block, data)
            self.answer.close(block)

    def _call_at(self, event: _Event) -> OpenCall | None:
        """The call of the item, while it is open."""
        item = self._known(event)
        if item is None or item.call is None or item.call.index not in self.answer.open:
            return None
        self._latest = item
        return item.call

    def _arguments_delta(self, event: _Event) -> None:
        self._take_arguments(event, event.content_index)

    def _take_arguments(self, event: _Event, part: Any) -> None:
        piece, call = text_of(event.delta), self._call_at(event)
        if piece and call is not None:
            self.answer.arguments(call, piece)
            self.answer.meant = True
            self._warm_call(event.type, event, call, part)
        elif piece:
            self.answer.raw()
            self.answer.warn("orphan_fragment", "a piece of arguments belongs to no call that is open")

    def _arguments_done(self, event: _Event) -> None:
        """The authoritative text; for a cut call it is the part that came, and the item says so."""
        whole = text_of(event.arguments) or text_of(event.input) or text_of(event.code) or text_of(event.diff)
        call = self._call_at(event)
        if call is not None:
            self.answer.settle_arguments(call, whole)
            self.answer.meant = True

    def _command(self, event: _Event) -> None:
        """Commands of a shell call come one after the other; between them goes a line end."""
        call = self._call_at(event)
        if call is None:
            return
        item, number = self._item(event), whole_number(event.command_index) or 0
        if number > item.command:
            self.answer.arguments(call, "\n")
            item.command, item.command_at = number, call.mark()
        self.answer.meant = True

    def _command_done(self, event: _Event) -> None:
        """What the whole command adds to its pieces; where it contradicts them, the item tells."""
        self._command(event)
        call = self._call_at(event)
        if call is not None:
            item = self._item(event)
            if item.command == (whole_number(event.command_index) or 0):
                self.answer.settle_since(call, item.command_at, text_of(event.command))

    def _command_delta(self, event: _Event) -> None:
        self._command(event)
        self._take_arguments(event, event.command_index)

    # -- other items --------------------------------------------------------------------------------------------------

    def _open_whole(self, item: _Item) -> OpenWhole:
        if item.type == "mcp_approval_request":
            self.answer.calls_client()
        kind: BlockKind = (
            "approval" if item.type == "mcp_approval_request" else "tool_result" if item.type in OUTPUTS else "other"
        )

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            members = item.members
            id_, name = text_of(members.get("id")), text_of(members.get("name"))
            if kind == "approval":
                arguments = sanitize(as_text(members.get("arguments")))
                return ApprovalBlock(index, id_, name, arguments, complete=complete, meta=meta)
            if kind == "tool_result":
                output, call_id = members.get(OUTPUTS[item.type]), id_of(members.get("call_id")) or None
                content = None if output is None else compact(output)
                return ToolResultBlock(index, call_id, item.type, content, complete=complete, meta=meta)
            return OtherBlock(index, item.type or "unknown", compact(members), complete=complete, meta=meta)

        return self.answer.open_whole(kind, make, None if kind == "other" else self._meta(item.members))

    # -- audio --------------------------------------------------------------------------------------------------------

    def _audio_delta(self, event: _Event) -> None:
        if text_of(event.delta):
            if self._media is None:
                self._media = self.answer.open_media(None)
            self.answer.media(self._media, text_of(event.delta))
            self.answer.meant = True

    def _audio_done(self, event: _Event) -> None:
        if self._media is not None:
            self.answer.close(self._media)
        self._media = None

    def _transcript_delta(self, event: _Event) -> None:
        if text_of(event.delta):
            if self._transcript is None:
                self._transcript = self.answer.open_transcript()
            self.answer.transcript(self._transcript, text_of(event.delta))
            self.answer.meant = True

    def _transcript_done(self, event: _Event) -> None:
        if self._transcript is not None:
            self.answer.close(self._transcript)
        self._transcript = None

    def _warm_text(self, kind: str, event: _Event, block: OpenBlock) -> None:
        self._warm(kind, event, block, event.content_index, partial(TextDelta, block.index), block)

    def _warm_call(self, kind: str, event: _Event, call: OpenCall, part: Any) -> None:
        self._warm(kind, event, call, part, partial(ToolCallDelta, call.index, call.id), call)

    def _warm(self, kind: str, event: _Event, block: OpenBlock, part: Any, say: Say, pieces: Pieces) -> None:
        """Let another delta of that block take the short way.

        Args:
            kind: The type of the deltas.
            event: Whose ``output_index`` they have.
            block: Which they belong to.
            part: What the wire calls the part of the item.
            say: The event of a piece.
            pieces: Where it goes.
        """
        index = event.output_index
        if kind not in _PIECES or type(index) is not int or index < 0 or not self.hot:
            return
        if block.half or block.index not in self.answer.open:
            return
        part = part if type(part) is int and part > 0 else 0
        decode = _piece_decoder(kind, index, part)
        size, depth = self._shallow, self.answer.max_depth
        tail = pieces.tail_to_add_to()

        def more(payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
            nonlocal tail
            expected = self.next_sequence
            step = expected is not None  # some hosts do not number
            for payload in payloads:
                if len(payload) > size and (type(payload) is not bytes or depth_exceeds(payload, depth)):
                    break
                try:
                    event = decode(payload)  # type: ignore[arg-type]
                except _NOT_PLAIN:
                    break
                if event.sequence_number != expected:
                    break
                if step:
                    expected += 1  # type: ignore[operator]
                piece = event.delta
                tail.append(piece)
                add(say(piece))
            else:
                payload = END
                if len(tail) > MANY:
                    tail = pieces.tail_to_add_to()
            self.next_sequence = expected
            return payload

        self.more = more


EVENTS: Final[Mapping[str, Callable[[OpenAIResponsesNormalizer, _Event], None]]] = {
    "response.created": OpenAIResponsesNormalizer._created,
    "response.queued": OpenAIResponsesNormalizer._progress,
    "response.in_progress": OpenAIResponsesNormalizer._progress,
    "response.completed": OpenAIResponsesNormalizer._terminal,
    "response.incomplete": OpenAIResponsesNormalizer._terminal,
    "response.cancelled": OpenAIResponsesNormalizer._terminal,
    "response.failed": OpenAIResponsesNormalizer._failed,
    "error": OpenAIResponsesNormalizer._error,
    "response.output_item.added": OpenAIResponsesNormalizer._item_added,
    "response.output_item.done": OpenAIResponsesNormalizer._item_done,
    "response.content_part.added": OpenAIResponsesNormalizer._part_added,
    "response.content_part.done": OpenAIResponsesNormalizer._part_done,
    "response.output_text.delta": OpenAIResponsesNormalizer._text_delta,
    "response.output_text.done": OpenAIResponsesNormalizer._text_done,
    "response.output_text.annotation.added": OpenAIResponsesNormalizer._annotation,
    "response.refusal.delta": OpenAIResponsesNormalizer._refusal_delta,
    "response.refusal.done": OpenAIResponsesNormalizer._refusal_done,
    "response.reasoning_summary_text.delta": OpenAIResponsesNormalizer._summary_delta,
    "response.reasoning_summary_text.done": OpenAIResponsesNormalizer._summary_done,
    "response.reasoning_text.delta": OpenAIResponsesNormalizer._reasoning_delta,
    "response.reasoning_text.done": OpenAIResponsesNormalizer._reasoning_done,
    "response.function_call_arguments.delta": OpenAIResponsesNormalizer._arguments_delta,
    "response.function_call_arguments.done": OpenAIResponsesNormalizer._arguments_done,
    "response.custom_tool_call_input.delta": OpenAIResponsesNormalizer._arguments_delta,
    "response.custom_tool_call_input.done": OpenAIResponsesNormalizer._arguments_done,
    "response.mcp_call_arguments.delta": OpenAIResponsesNormalizer._arguments_delta,
    "response.mcp_call_arguments.done": OpenAIResponsesNormalizer._arguments_done,
    "response.code_interpreter_call_code.delta": OpenAIResponsesNormalizer._arguments_delta,
    "response.code_interpreter_call_code.done": OpenAIResponsesNormalizer._arguments_done,
    "response.apply_patch_call_operation_diff.delta": OpenAIResponsesNormalizer._arguments_delta,
    "response.apply_patch_call_operation_diff.done": OpenAIResponsesNormalizer._arguments_done,
    "response.shell_call_command.added": OpenAIResponsesNormalizer._command,
    "response.shell_call_command.delta": OpenAIResponsesNormalizer._command_delta,
    "response.shell_call_command.done": OpenAIResponsesNormalizer._command_done,
    "response.audio.delta": OpenAIResponsesNormalizer._audio_delta,
    "response.audio.done": OpenAIResponsesNormalizer._audio_done,
    "response.audio.transcript.delta": OpenAIResponsesNormalizer._transcript_delta,
    "response.audio.transcript.done": OpenAIResponsesNormalizer._transcript_done,
}

PROGRESS: Final = frozenset(
    {
        "keepalive",  # on the wire, in no type definition
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.mcp_list_tools.failed",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.file_search_call.completed",
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call.completed",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.generating",
        "response.image_generation_call.completed",
        "response.image_generation_call.partial_image",
        "response.shell_call_output_content.delta",
        "response.shell_call_output_content.done",
        "response.compaction.compacting",
        # over WebSocket
        "response.steer.accepted",
        "response.steer.pending",
        "response.steer.failed",
        "response.inject.created",
        "response.inject.failed",
    }
)
"""Known types that say nothing the vocabulary has a word for: they come out as ``raw``."""
