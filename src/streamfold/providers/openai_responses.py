"""OpenAI Responses (``POST /v1/responses`` with ``stream``), and the servers that speak it.

Reads against the vendor's list of event types and of item types. An item is known by its ``output_index``: items
overlap, and their ids rotate on some hosts while the index holds. What ``output_item.done`` and the terminal event
say of an item is authoritative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from streamfold.blocks import ApprovalBlock, Block, Citation, Executor, JSONText, OtherBlock, ToolResultBlock
from streamfold.events import BlockKind, ErrorEvent, Event, ReasoningDelta, StopReason, TextDelta, ToolCallDelta
from streamfold.payloads import DECODE_ERRORS, Payload, Reader, compact, depth_exceeds, read_object
from streamfold.pieces import MANY, Pieces
from streamfold.providers import _usage
from streamfold.providers._errors import provider_error
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenMedia, OpenReasoning, OpenTranscript, OpenWhole
from streamfold.providers._table import END, BaseNormalizer, Cursor, More, Say, text_of, whole_number

__all__ = ["OpenAIResponsesNormalizer"]

Members: TypeAlias = dict[str, Any]

INCOMPLETE_REASONS: Final[Mapping[str, StopReason]] = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "refusal",
    "steered": "cancelled",
}
"""What ``incomplete_details.reason`` means; any other word is ``other``."""

# -- items ------------------------------------------------------------------------------------------------------------


def _member(name: str) -> Callable[[Members], str]:
    def read(item: Members) -> str:
        value = item.get(name)
        return value if isinstance(value, str) else "" if value is None else compact(value)

    return read


def _queries(item: Members) -> str:
    return compact({"queries": item["queries"]}) if item.get("queries") else ""


def _prompt(item: Members) -> str:
    return compact({"prompt": item["prompt"]}) if item.get("prompt") else ""


def _commands(item: Members) -> str:
    action = item.get("action")
    commands = cast("Members", action).get("commands") if isinstance(action, dict) else None
    return "\n".join(map(text_of, commands)) if isinstance(commands, list) else ""


def _diff(item: Members) -> str:
    operation = item.get("operation")
    return text_of(cast("Members", operation).get("diff")) if isinstance(operation, dict) else ""


def _computer_action(item: Members) -> str:
    return _member("actions" if item.get("actions") else "action")(item)


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
    "file_search_call": _CallType("file_search", "provider", True, _queries, "results"),
    "image_generation_call": _CallType("image_generation", "provider", True, _prompt, "result"),
    "mcp_call": _CallType("mcp", "provider", True, _member("arguments"), "output"),
    "web_search_call": _CallType("web_search", "provider", True, _member("action")),
}
"""Items that are calls. ``shell_call`` and ``tool_search_call`` say themselves who runs them."""

OUTPUTS: Final = frozenset(
    {
        "apply_patch_call_output",
        "computer_call_output",
        "custom_tool_call_output",
        "function_call_output",
        "local_shell_call_output",
        "multi_agent_call_output",
        "program_output",
        "shell_call_output",
        "tool_search_output",
    }
)
"""Items that are the result of a call."""

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
        "code",
    }
)
"""Members of items that blocks hold in members of their own."""

# -- the hot shapes: one delta of the block that the delta before belonged to -------------------------------------


def _hot_shape(kind: str, part: str) -> Callable[[bytes], Any]:
    fields: list[Any] = [
        ("type", Literal[kind]),
        ("sequence_number", int | None, None),
        ("output_index", int),
        ("part", int, 0),
        ("delta", str),
    ]
    return msgspec.json.Decoder(
        msgspec.defstruct("Delta", fields, rename={"part": part}, kw_only=True, gc=False)
    ).decode


_HOT: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "response.output_text.delta": _hot_shape("response.output_text.delta", "content_index"),
    "response.reasoning_summary_text.delta": _hot_shape("response.reasoning_summary_text.delta", "summary_index"),
    "response.reasoning_text.delta": _hot_shape("response.reasoning_text.delta", "content_index"),
    "response.function_call_arguments.delta": _hot_shape("response.function_call_arguments.delta", "content_index"),
    "response.custom_tool_call_input.delta": _hot_shape("response.custom_tool_call_input.delta", "content_index"),
    "response.code_interpreter_call_code.delta": _hot_shape(
        "response.code_interpreter_call_code.delta", "content_index"
    ),
    "response.shell_call_command.delta": _hot_shape("response.shell_call_command.delta", "command_index"),
}

# -- what all other payloads are read into; large members stay text ---------------------------------------------------


class _Incomplete(msgspec.Struct, gc=False):
    reason: Any = None


class _Response(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    status: Any = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    usage: Any = None
    output: tuple[msgspec.Raw, ...] | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    sequence_number: Any = None
    output_index: Any = None
    item_id: Any = None
    content_index: Any = None
    summary_index: Any = None
    command_index: Any = None
    delta: Any = None
    text: Any = None
    refusal: Any = None
    arguments: Any = None
    input: Any = None
    diff: Any = None
    command: Any = None
    part: Any = None
    annotation: Any = None
    item: Any = None
    response: _Response | None = None
    error: Any = None
    code: Any = None  # of an error, and of code_interpreter_call_code.done
    message: Any = None
    param: Any = None
    status: Any = None
    object: Any = None


_HALVES: Final = frozenset({"delta", "text", "refusal", "arguments", "input", "code", "diff", "command"})
_EVENT: Final = Reader(_Event, _HALVES)
_DECODE: Final = _EVENT.decode
_RESPONSE: Final = Reader(_Response)


class _Item:
    """One output item while it streams."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.type = ""
        self.members: Members = {}
        self.parts: dict[tuple[str, int], OpenBlock] = {}  # of a message, by kind and content index
        self.block: OpenBlock | None = None  # of any other item
        self.command = 0
        self.done = False


class OpenAIResponsesNormalizer(BaseNormalizer):
    """Events of OpenAI Responses to unified events.

    Args:
        after: Cursor of an earlier reading: what is replayed up to it is dropped, what is missing after it reported.
    """

    surface = "openai-responses"
    terminal = "a terminal event"

    def _begin(self) -> None:
        self._items: dict[object, _Item] = {}
        self._by_id: dict[str, _Item] = {}
        self._latest: _Item | None = None
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
        if type(payload) is bytes and (len(payload) <= self._shallow or not depth_exceeds(payload, answer.max_depth)):
            try:
                event = _DECODE(payload)
                answer.kind = event.type
            except DECODE_ERRORS:
                pass
        if event is None:
            event = _EVENT.read(payload, answer.max_depth)
            if event is None:
                return False
        kind = event.type or answer.event_name() or ""
        number = event.sequence_number
        if number == self.next_sequence and type(number) is int:
            self.next_sequence = number + 1
            self._replaying = False
        elif not self._in_sequence(event):
            answer.meant = True
            return True
        if self._pending_error is not None and kind != "response.failed":
            self._give_up()
            return True
        if not kind and event.object == "response":  # a server that did not stream
            kind, event.response = "response.completed", _RESPONSE.read(payload, None)
        handler = EVENTS.get(kind)
        if handler is not None:
            handler(self, event)
            return True
        if event.error and not kind:  # an error body in the place of a stream
            self._error(event)
        return kind in PROGRESS

    def _in_sequence(self, event: _Event) -> bool:
        """Count the payload; False for one that a new connection only repeats."""
        number = whole_number(event.sequence_number)
        if number is None:
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
        response = event.response or _Response()
        self.answer.identify(self.answer.id or response.id, response.model)  # Copilot's ids change at every event

    def _progress(self, event: _Event) -> None:
        self._created(event)
        self.answer.raw()

    def _terminal(self, event: _Event) -> None:
        self._created(event)
        response = event.response or _Response()
        status = text_of(response.status) or event.type.removeprefix("response.")
        if status == "failed":
            self._failed(event)
            return
        for index, raw in enumerate(response.output or ()):
            known = self._items.get(index)
            if known is None or not known.done:
                self._reconcile(index, read_object(bytes(raw), None) or {})
        self._close_rest(complete=status != "cancelled")
        self._report(response)
        reason, word = "end", status
        if status == "incomplete":
            details = response.incomplete_details
            word = text_of(details.reason if details else None) or status
            reason = INCOMPLETE_REASONS.get(word, "other")
        elif status != "completed":
            reason = "cancelled" if status == "cancelled" else "other"
        self.answer.stop(0, cast("StopReason", reason), word)
        self.answer.done()

    def _failed(self, event: _Event) -> None:
        self._created(event)
        response = event.response or _Response()
        self._report(response)
        error = self._pending_error
        if error is None:
            members = response.error or event.error
            error = provider_error(members, {} if members else {"message": "the response failed"})
        self._fail(error)

    def _error(self, event: _Event) -> None:
        """Flat by the type definition, nested on the wire. ``response.failed`` may follow: one fault, one event."""
        flat = {"code": event.code, "message": event.message, "param": event.param}
        error = event.error or {name: value for name, value in flat.items() if value is not None}
        self._pending_error = provider_error(error, {"status": event.status})
        self.answer.meant = True

    def _give_up(self) -> None:
        if self._pending_error is not None:
            self._fail(self._pending_error)

    def _end_of_input(self) -> None:
        self._give_up()
        super()._end_of_input()

    def _ended(self, how: Any) -> None:
        if how != "cancel":
            self._give_up()
        super()._ended(how)

    def _report(self, response: _Response) -> None:
        if isinstance(response.usage, dict) and response.usage:
            self.answer.report(_usage.read(cast("Members", response.usage)))

    # -- items --------------------------------------------------------------------------------------------------------

    def _item(self, event: _Event) -> _Item:
        """The item an event speaks of: by its index, else by its id, else the one that came last."""
        index, id_ = event.output_index, event.item_id
        item = self._items.get(index) if type(index) is int else self._unnumbered(event)
        if item is None:
            item = self._items[index] = _Item(index)
        if type(id_) is str and id_:
            self._by_id[id_] = item
        self._latest = item
        return item

    def _unnumbered(self, event: _Event) -> _Item:
        index, id_ = whole_number(event.output_index), text_of(event.item_id)
        item = self._items.get(index) if index is not None else self._by_id.get(id_) if id_ else self._latest
        if item is None:
            item = _Item(index if index is not None else id_ or None)
            self._items[item.index] = item
        return item

    def _item_added(self, event: _Event) -> None:
        if type(event.item) is not dict:
            return
        members: Members = event.item
        event.item_id = event.item_id or members.get("id")
        item = self._item(event)
        if not item.type:
            self._begin_item(item, members)
            if members.get("type") == "function_call" and item.block is not None:
                self._warm_call("response.function_call_arguments.delta", event, item.block, 0)
        self.answer.meant = True

    def _item_done(self, event: _Event) -> None:
        if type(event.item) is dict:
            members: Members = event.item
            event.item_id = event.item_id or members.get("id")
            self._finish_item(self._item(event), members)
            self.answer.meant = True

    def _reconcile(self, index: int, members: Members) -> None:
        """The terminal event lists the items: take from it what never was finished."""
        item = self._items.get(index)
        if item is not None and item.type and item.type != members.get("type"):  # the list leaves items out
            item = self._by_id.get(text_of(members.get("id")))
            if item is None:
                return
        if item is None:
            item = self._items[index] = _Item(index)
        if not item.done:
            self._finish_item(item, members)

    def _begin_item(self, item: _Item, members: Members) -> None:
        item.type, item.members = text_of(members.get("type")), members
        call = CALLS.get(item.type)
        if call is not None:
            item.block = self._open_call(call, members)
        elif item.type == "reasoning":
            item.block = item.block or self.answer.open_reasoning(0, self._meta(members))
        elif item.type != "message":
            item.block = self._open_whole(item)

    def _finish_item(self, item: _Item, members: Members) -> None:
        if item.done:
            return
        if not item.type or item.type != members.get("type"):
            self._begin_item(item, members)
        item.done, item.members = True, members
        block = item.block
        if item.type == "message":
            self._finish_message(item, members)
        elif isinstance(block, OpenCall):
            self._finish_call(block, CALLS[item.type], members)
        elif isinstance(block, OpenReasoning):
            self._finish_reasoning(block, members)
        elif block is not None:
            self.answer.close(block)

    def _close_rest(self, *, complete: bool) -> None:
        """No ``done`` came: text is taken as it is, a call is not."""
        for block in list(self.answer.open.values()):
            if complete and not isinstance(block, OpenCall):
                self.answer.close(block)
            else:
                self.answer.cut(block)

    def _meta(self, members: Members) -> Members | None:
        """What has to go back with the item in the next request, but for the members that blocks hold."""
        meta = {"item_id": members["id"]} if "id" in members else {}
        meta.update({name: value for name, value in members.items() if value is not None and name not in _HELD})
        return meta or None

    # -- messages -----------------------------------------------------------------------------------------------------

    def _part_block(self, item: _Item, kind: Literal["text", "refusal"], part: Any) -> OpenBlock:
        key = (kind, part if type(part) is int else 0)
        block = item.parts.get(key)
        if block is None or (block.index not in self.answer.open and not item.done):
            block = item.parts[key] = self.answer.open_text(kind, 0, self._meta(item.members))
        return block

    def _part_added(self, event: _Event) -> None:
        item, part = self._item(event), event.part
        kind = PARTS.get(text_of(part.get("type"))) if type(part) is dict else None
        if kind is not None:
            block = self._part_block(item, kind, event.content_index)
            if part.get("text") or part.get("refusal"):
                self.answer.settle_text(block, text_of(part.get("text") or part.get("refusal")))
            elif kind == "text":
                self._warm_text("response.output_text.delta", event, block)
        self.answer.meant = True

    def _part_done(self, event: _Event) -> None:
        if type(event.part) is dict:
            self._settle_part_of(self._item(event), event.content_index, event.part)
        self.answer.meant = True

    def _settle_part_of(self, item: _Item, index: Any, part: Members) -> None:
        """A content part as the provider has it in the end: text and sources that no event brought."""
        kind = PARTS.get(text_of(part.get("type")))
        if kind is None:
            return
        block = item.parts.get((kind, index)) or self._part_block(item, kind, index)
        if block.index not in self.answer.open:
            return
        self.answer.settle_text(block, text_of(part.get("text") if kind == "text" else part.get("refusal")))
        annotations = part.get("annotations")
        if annotations and isinstance(annotations, list):
            for annotation in annotations[len(block.citations) :]:
                self._cite(block, annotation)

    def _finish_message(self, item: _Item, members: Members) -> None:
        content = members.get("content")
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if type(part) is dict:
                self._settle_part_of(item, index, cast("Members", part))
        meta = self._meta(members)
        for block in item.parts.values():
            block.meta = meta
            self.answer.close(block)

    def _text_delta(self, event: _Event) -> None:
        piece = text_of(event.delta)
        if piece:
            block = self._part_block(self._item(event), "text", event.content_index)
            self.answer.text(block, piece)
            self._warm_text(event.type, event, block)

    def _refusal_delta(self, event: _Event) -> None:
        piece = text_of(event.delta)
        if piece:
            self.answer.text(self._part_block(self._item(event), "refusal", event.content_index), piece)

    def _text_done(self, event: _Event) -> None:
        self._settle_part(event, "text", text_of(event.text))

    def _refusal_done(self, event: _Event) -> None:
        self._settle_part(event, "refusal", text_of(event.refusal))

    def _settle_part(self, event: _Event, kind: Literal["text", "refusal"], whole: str) -> None:
        item = self._item(event)
        block = item.parts.get((kind, whole_number(event.content_index) or 0))
        if whole and (block is None or block.index in self.answer.open):
            self.answer.settle_text(block or self._part_block(item, kind, event.content_index), whole)
        self.answer.meant = True

    def _annotation(self, event: _Event) -> None:
        block = self._part_block(self._item(event), "text", event.content_index)
        if block.index in self.answer.open:
            self._cite(block, event.annotation)

    def _cite(self, block: OpenBlock, annotation: Any) -> None:
        if not isinstance(annotation, dict):
            return
        source = cast("Members", annotation)
        start, end = whole_number(source.get("start_index")), whole_number(source.get("end_index"))
        self.answer.cite(
            block,
            Citation(
                block.index,
                text_of(source.get("url")) or None,
                text_of(source.get("title")) or text_of(source.get("filename")) or None,
                text_of(source.get("quote")) or None,
                start if end is not None else None,
                end if start is not None else None,
                compact(source),
            ),
        )

    # -- reasoning ----------------------------------------------------------------------------------------------------

    def _reasoning_block(self, event: _Event) -> OpenReasoning:
        item = self._item(event)
        if not isinstance(item.block, OpenReasoning) or item.block.index not in self.answer.open:
            item.type = item.type or "reasoning"
            item.block = self.answer.open_reasoning(0, self._meta(item.members))
        return item.block

    def _summary_delta(self, event: _Event) -> None:
        self._think(event, "summary", event.summary_index)

    def _reasoning_delta(self, event: _Event) -> None:
        self._think(event, "content", event.content_index)

    def _think(self, event: _Event, family: str, part: Any) -> None:
        piece = text_of(event.delta)
        if piece:
            block, number = self._reasoning_block(event), whole_number(part) or 0
            self.answer.reasoning(block, piece, (family, number))
            ours = block.part((family, number))
            say = partial(ReasoningDelta, block.index, part=ours) if ours else partial(ReasoningDelta, block.index)
            self._warm(event.type, event, block, part, say, block.parts[ours])

    def _summary_done(self, event: _Event) -> None:
        self._settle_reasoning(event, "summary", event.summary_index)

    def _reasoning_done(self, event: _Event) -> None:
        self._settle_reasoning(event, "content", event.content_index)

    def _settle_reasoning(self, event: _Event, family: str, part: Any) -> None:
        text = text_of(event.text)
        if text:
            self.answer.settle_reasoning(self._reasoning_block(event), (family, whole_number(part) or 0), text)
        self.answer.meant = True

    def _finish_reasoning(self, block: OpenReasoning, members: Members) -> None:
        for family in ("summary", "content"):
            entries: list[Any] = members[family] if isinstance(members.get(family), list) else []
            for number, entry in enumerate(entries):
                text = text_of(cast("Members", entry).get("text")) if isinstance(entry, dict) else ""
                known = (family, number) in block.numbers
                # Hosts repeat one text under both names.
                if known or text not in [part.whole() for part in block.parts]:
                    self.answer.settle_reasoning(block, (family, number), text)
        block.encrypted = text_of(members.get("encrypted_content")) or block.encrypted
        if block.encrypted:
            self.answer.last_signature = block.encrypted
        block.meta = self._meta(members) or block.meta
        self.answer.close(block)

    # -- calls --------------------------------------------------------------------------------------------------------

    def _executor(self, call: _CallType, members: Members) -> Executor:
        """Who runs the call, where the item says so."""
        environment = members.get("environment")
        if call.kind == "shell" and isinstance(environment, dict):
            return "client" if cast("Members", environment).get("type") == "local" else "provider"
        if call.kind == "tool_search" and members.get("execution") == "server":
            return "provider"
        return call.executor

    def _open_call(self, call: _CallType, members: Members) -> OpenCall:
        return self.answer.open_call(
            members.get("call_id") or members.get("id"),
            text_of(members.get("name")) or call.kind,
            kind=call.kind,
            executor=self._executor(call, members),
            is_json=call.is_json,
            meta=self._meta(members),
        )

    def _finish_call(self, block: OpenCall, call: _CallType, members: Members) -> None:
        made_up = block.meta is not None and "synthetic_id" in block.meta
        block.meta = self._meta(members)
        if made_up:
            block.meta = {**(block.meta or {}), "synthetic_id": True}
        block.name = text_of(members.get("name")) or block.name
        incomplete = members.get("status") == "incomplete"
        self.answer.finish_call(block, call.arguments(members), incomplete=incomplete)
        result, error = members.get(call.result) if call.result else None, members.get("error")
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
            suffix = text_of(members.get("output_format")) or None
            block = self.answer.open_media(f"image/{suffix}" if suffix else None, 0, {"item_id": members.get("id")})
            self.answer.media(block, data)
            self.answer.close(block)

    def _call_at(self, event: _Event) -> OpenCall | None:
        block = self._item(event).block
        return block if isinstance(block, OpenCall) and block.index in self.answer.open else None

    def _arguments_delta(self, event: _Event, part: Any = None) -> None:
        piece, call = text_of(event.delta), self._call_at(event)
        if call is None:
            if piece:
                self.answer.raw()
                self.answer.warn("orphan_fragment", "a piece of arguments belongs to no call that is open")
            return
        self.answer.arguments(call, piece)
        if piece:
            self._warm_call(event.type, event, call, part if part is not None else event.content_index)

    def _arguments_done(self, event: _Event) -> None:
        """The authoritative text; for a cut call it is the part that came, and the item says so."""
        whole = next(
            (text for text in map(text_of, (event.arguments, event.input, event.code, event.diff)) if text), ""
        )
        call = self._call_at(event)
        if call is not None:
            self.answer.settle_arguments(call, whole)
        self.answer.meant = True

    def _command(self, event: _Event) -> None:
        """Commands of a shell call come one after the other; between them goes a line end."""
        item, call, number = self._item(event), self._call_at(event), whole_number(event.command_index) or 0
        if call is not None and number > item.command:
            item.command = number
            self.answer.arguments(call, "\n")
        self.answer.meant = True

    def _command_delta(self, event: _Event) -> None:
        self._command(event)
        self._arguments_delta(event, event.command_index)

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
                return ApprovalBlock(index, id_, name, text_of(members.get("arguments")), complete=complete, meta=meta)
            if kind == "tool_result":
                output = members.get("output", members.get("tools"))
                content = None if output is None else compact(output)
                return ToolResultBlock(
                    index, text_of(members.get("call_id")) or None, item.type, content, complete=complete, meta=meta
                )
            return OtherBlock(index, item.type or "unknown", compact(members), complete=complete, meta=meta)

        return self.answer.open_whole(kind, make, None if kind == "other" else self._meta(item.members))

    # -- audio --------------------------------------------------------------------------------------------------------

    def _audio_delta(self, event: _Event) -> None:
        if text_of(event.delta):
            if self._media is None:
                self._media = self.answer.open_media(None)
            self.answer.media(self._media, text_of(event.delta))

    def _audio_done(self, event: _Event) -> None:
        if self._media is not None:
            self.answer.close(self._media)
        self._media = None

    def _transcript_delta(self, event: _Event) -> None:
        if text_of(event.delta):
            if self._transcript is None:
                self._transcript = self.answer.open_transcript()
            self.answer.transcript(self._transcript, text_of(event.delta))

    def _transcript_done(self, event: _Event) -> None:
        if self._transcript is not None:
            self.answer.close(self._transcript)
        self._transcript = None

    def _warm_text(self, kind: str, event: _Event, block: OpenBlock) -> None:
        self._warm(kind, event, block, event.content_index, partial(TextDelta, block.index), block)

    def _warm_call(self, kind: str, event: _Event, call: OpenBlock, part: Any) -> None:
        if isinstance(call, OpenCall):
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
        decode = _HOT.get(kind)
        if self.hot and decode is not None and not block.half and block.index in self.answer.open:
            self.more = self._more(decode, event.output_index, part if part is not None else 0, say, pieces)

    def _more(self, decode: Callable[[bytes], Any], index: object, part: object, say: Say, pieces: Pieces) -> More:
        size, depth = self._shallow, self.answer.max_depth

        tail = pieces.tail_to_add_to()

        def more(payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
            expected = self.next_sequence
            for payload in payloads:
                if type(payload) is not bytes or len(tail) > MANY:
                    break
                if len(payload) > size and depth_exceeds(payload, depth):
                    break
                try:
                    event = decode(payload)
                except DECODE_ERRORS:
                    break
                piece, number = event.delta, event.sequence_number
                if number != expected or event.output_index != index or event.part != part or not piece:
                    break
                if number is not None:
                    expected = number + 1
                tail.append(piece)
                add(say(piece))
            else:
                payload = END
            self.next_sequence = expected
            return payload

        return more


PARTS: Final[Mapping[str, Literal["text", "refusal"]]] = {"output_text": "text", "text": "text", "refusal": "refusal"}
"""Content parts that are visible; ``reasoning_text`` belongs to the reasoning of its item."""

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
    "response.shell_call_command.done": OpenAIResponsesNormalizer._command,
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
