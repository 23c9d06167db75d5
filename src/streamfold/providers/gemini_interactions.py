"""Gemini Interactions (``POST /v1beta/interactions`` with ``stream``), in both of its vocabularies.

Reads against the vendor's list of events and of steps. Since May 2026 an answer comes as steps (``step.*``); before, as
contents (``content.*``), which says the same in other words. A step is known by its index. The last event repeats
nothing: the deltas are the only copy.

``meta`` of a block holds the members of its step that the block has no place for. A step of the model's output can
become several blocks, as it holds text and media: those after the first say so by ``continues_step``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, UnsetType

from streamfold.blocks import Block, Citation, JSONText, OtherBlock, ToolResultBlock
from streamfold.events import BlockEnd, Event, GoAway, Raw, ReasoningDelta, StopReason, TextDelta, ToolCallDelta, Usage
from streamfold.payloads import DECODE_ERRORS, Payload, Reader, compact, depth_exceeds, json_text
from streamfold.pieces import MANY
from streamfold.providers import _usage
from streamfold.providers._byte_offsets import ByteOffsets
from streamfold.providers._errors import provider_error, truncated
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenMedia, OpenReasoning
from streamfold.providers._table import END, BaseNormalizer, Cursor, More, text_of

__all__ = ["GeminiInteractionsNormalizer"]

Members: TypeAlias = dict[str, Any]

STATUSES: Final[Mapping[str, StopReason]] = {
    "completed": "end",
    "requires_action": "tool_use",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
    "cancelled": "cancelled",
    "canceled": "cancelled",
}
"""What a final status means; ``failed`` is an error, any other word is ``other``."""

UNFINISHED: Final = frozenset({"queued", "in_progress", "idle"})
"""Statuses in which a run goes on, though its stream may end."""

KINDS: Final[Mapping[str, str]] = {
    "google_search": "web_search",
    "mcp_server_tool": "mcp",
}
"""Kinds of the tools that the server runs, where they are not called as their steps are: ``code_execution_call``."""

_MEDIA: Final = ("image", "audio", "video", "document")
_HELD: Final = frozenset(
    {"type", "id", "call_id", "name", "arguments", "result", "is_error", "content", "summary", "text"}
)
"""Members of steps that blocks hold in members of their own."""
_REMEMBERED: Final = 1024  # event ids, to tell what a new connection repeats

# -- the everyday shapes ----------------------------------------------------------------------------------------------
# One struct reads them all, with its members in the order of the wire. They admit what is named and nothing else, so
# but for ``arguments`` and ``result`` nothing in them can nest deeper than ``_LEVELS``. gc=False: they are dropped at
# once. A tag would not do: msgspec lets it be absent where there is no union to choose from, and looks twice at a
# payload that ends with it.

_LEVELS: Final = 4
_NO_RESULT: Final = msgspec.Raw()


class _Words(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    type: Literal["text"]


class _Annotation(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    start_index: int = -1
    end_index: int = -1
    url: str = ""
    title: str = ""
    type: str = ""


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    text: str = ""
    annotations: list[_Annotation] | None = None
    signature: str = ""
    id: str = ""
    type: str = ""
    name: str = ""
    content: _Words | None = None
    arguments: Any = None
    result: msgspec.Raw = _NO_RESULT
    is_error: bool | None = None


class _Nothing(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The arguments of a call before they come."""


class _Opened(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    id: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    signature: str | UnsetType = UNSET
    type: str = ""
    name: str | UnsetType = UNSET
    arguments: _Nothing | UnsetType = UNSET


class _Interaction(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    id: str = ""
    status: str = ""
    usage: dict[str, Any] | None = None
    role: str = ""
    created: str = ""
    updated: str = ""
    service_tier: str = ""
    object: str = ""
    model: str = ""


class _Everyday(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    index: int | None = None
    step: _Opened | None = None
    delta: _Delta | None = None
    content: _Opened | None = None
    interaction: _Interaction | None = None
    interaction_id: str = ""
    status: str = ""
    event_type: Literal[
        "",
        "interaction.completed",
        "interaction.complete",
        "step.start",
        "step.delta",
        "step.stop",
        "content.start",
        "content.delta",
        "content.stop",
        "interaction.status_update",
    ] = ""
    event_id: str | None = None


_EVERYDAY: Final = msgspec.json.Decoder(_Everyday).decode
_ENCODE: Final = msgspec.json.Encoder().encode
_LINES: Final = msgspec.json.Encoder().encode_lines
_DELTAS: Final = ("step.delta", "content.delta")
_STOPS: Final = ("step.stop", "content.stop")
_OPENS: Final = ("step.start", "content.start")
_CITES: Final = ("text_annotation_delta", "text_annotation")
_WORDED: Final = {type_: _Opened(type=type_) for type_ in ("model_output", "text", "thought")}  # as they open
_OF_WORDS: Final = (OpenBlock, OpenReasoning)

# -- what all other payloads are read into ----------------------------------------------------------------------------


class _Event(msgspec.Struct, gc=False):
    index: Any = None
    delta: Any = None
    step: Any = None
    content: Any = None
    interaction: Any = None
    interaction_id: Any = None
    event_type: str = ""
    event_id: Any = None
    usage: Any = None
    step_usage: Any = None
    metadata: Any = None
    error: Any = None
    object: Any = None
    events: Any = None


_HALVES: Final = ("text", "arguments")
_EVENT: Final = Reader(_Event, _HALVES)
_DECODE: Final = _EVENT.decode


class _Step(msgspec.Struct):
    """One step, or one content, while it streams."""

    index: object
    members: Members
    type: str
    block: OpenBlock | None = None  # that its deltas go to
    medium: str = ""  # which kind of media that is
    offsets: ByteOffsets | None = None  # of the text in that block
    opened: int = 0  # blocks


def _step(index: object, members: Members) -> _Step:
    return _Step(index, members, text_of(members.get("type")))


class GeminiInteractionsNormalizer(BaseNormalizer):
    """Events of Gemini Interactions to unified events.

    Args:
        after: Cursor of an earlier reading: what a server repeats up to its event id is dropped.
    """

    surface = "gemini-interactions"
    terminal = "interaction.completed"

    def _begin(self) -> None:
        self._steps: dict[object, _Step] = {}
        self._latest: _Step | None = None
        self._usage: Members | None = None
        self._event_ids: deque[str] | None = None  # the last ones; only runs in the background have any
        self._reconnected = False  # and nothing came since that has an event id
        self._repeats = False  # what comes now is known
        self._begun = False  # something came that means something
        self._ending: tuple[bytes, _Interaction] | None = None  # what the short way met and read
        depth = self.answer.max_depth
        self._deep = depth is None or depth >= _LEVELS

    def _resume(self, after: Cursor) -> None:
        super()._resume(after)
        if after.last_event_id is not None:
            self._event_ids = deque((after.last_event_id,), _REMEMBERED)
            self._reconnected = True
            self.last_event_id = after.last_event_id

    def replay(self) -> None:
        """A new connection begins: drop what it repeats."""
        super().replay()
        self._reconnected = self._event_ids is not None

    # -- events -------------------------------------------------------------------------------------------------------

    def _mean(self, payload: Payload) -> bool:
        known = self._means(payload)
        if known:
            self._begun = True
        return known

    def _means(self, payload: Payload) -> bool:
        answer = self.answer
        if self._ending is not None:
            read, interaction = self._ending
            self._ending = None
            if read is payload and self._ended_well(read, interaction):
                return True
        event: _Event | None = None
        if type(payload) is bytes and (len(payload) <= self._shallow or not depth_exceeds(payload, answer.max_depth)):
            try:
                event = _DECODE(payload)
                answer.kind = event.event_type
            except DECODE_ERRORS:
                pass
        if event is None:
            event = _EVENT.read(payload, answer.max_depth)
            if event is None:
                return False
        kind = event.event_type or answer.event_name() or ""
        if (event.event_id is not None or self._repeats) and not self._is_new(event, kind):
            answer.meant = True
            return True
        handler = EVENTS.get(kind)
        if handler is not None:
            handler(self, event)
            return True
        if type(event.events) is list and not event.event_type:
            return self._several(event.events)
        if event.object == "interaction" and not event.event_type:  # a server that did not stream
            self._whole(payload)
            return True
        if event.error and not kind:  # an error body in the place of a stream
            self._error(event)
        elif kind.startswith("interaction."):  # seen in community code: interaction.requires_action
            self._completed(event)
        return False

    def _several(self, events: list[Any]) -> bool:
        """A message of a WebSocket may carry several; it comes out as raw too where one of them is unknown, or none."""
        known = [isinstance(event, dict) and self._means(event) for event in events if not self.answer.ended]
        told = self.answer.out[self.answer.before :]
        if not all(known) and not any(isinstance(event, Raw) for event in told):
            self.answer.meant = False  # others of them mean something
        if not all(known) or not known:
            self.answer.raw(known=False)
        return any(known)

    def _is_new(self, event: _Event, kind: str) -> bool:
        """Count the event; False for one that a new connection only repeats.

        A server begins after the event it was told, or with the first one.
        """
        event_id = event.event_id
        if not isinstance(event_id, str) or not event_id:
            return not self._repeats
        known = self._event_ids
        if known is None:
            known = self._event_ids = deque(maxlen=_REMEMBERED)
        if self._reconnected:
            self._reconnected = False
            interaction = _object(event.interaction).get("id")
            anew = kind in _STARTS and interaction == (self.answer.id or interaction)
            self._repeats = anew or event_id in known
        if self._repeats:
            self._repeats = event_id != known[-1]
            return False
        known.append(event_id)
        self.last_event_id = event_id
        return True

    def _created(self, event: _Event) -> None:
        self._identify(event)
        self._read_usage(event)

    def _identify(self, event: _Event) -> None:
        interaction = _object(event.interaction)
        self.answer.identify(interaction.get("id"), interaction.get("model") or interaction.get("agent"))

    def _status(self, event: _Event) -> None:
        if self.answer.id is None:
            self.answer.identify(event.interaction_id, None)
        self._read_usage(event)
        self.answer.raw()  # says nothing but where the run stands; later ones bring continuation tokens

    def _completed(self, event: _Event) -> None:
        interaction = _object(event.interaction)
        status = text_of(interaction.get("status")) or _ENDS.get(event.event_type, "")
        if not status or status in UNFINISHED:
            self.answer.raw()
            return
        self._identify(event)
        if status == "failed":
            self._read_usage(event)
            error = interaction.get("error") or event.error
            self._fail(provider_error(error, {} if error else {"message": "the interaction failed"}))
            return
        for block in list(self.answer.open.values()):  # no stop came: text is taken as it is, a call is not
            if isinstance(block, OpenCall) or STATUSES.get(status) == "cancelled":
                self.answer.cut(block)
            else:
                self.answer.close(block)
        self._read_usage(event)
        if interaction.get("continuation_token"):
            self.answer.raw()
        self.answer.stop(0, STATUSES.get(status, "other"), status)
        self.answer.done()

    def _ended_well(self, payload: bytes, interaction: _Interaction) -> bool:
        """:meth:`_completed` where nothing is open and nothing went wrong; False where it is not so."""
        answer, status, usage = self.answer, interaction.status, interaction.usage
        reason = STATUSES.get(status)
        if reason is None or answer.open or (len(payload) > self._shallow and depth_exceeds(payload, answer.max_depth)):
            return False
        answer.identify(interaction.id, interaction.model)
        if usage:
            self._total(usage)
        answer.stop(0, reason, status)
        answer.done()
        return True

    def _reconnection(self, event: _Event) -> None:
        """The server closes the connection; the interaction goes on under its id."""
        self.answer.out.append(GoAway(0))

    def _error(self, event: _Event) -> None:
        self._fail(provider_error(event.error, {}))

    def _whole(self, payload: Payload) -> None:
        body = _BODY.read(payload, None) or _Body()
        self.answer.identify(body.id, body.model)
        for number, members in enumerate(body.steps or body.outputs or ()):
            if isinstance(members, dict):
                self._stop_step(self._start_step(number, cast("Members", members)))
        interaction = {
            "id": body.id,
            "model": body.model,
            "status": body.status,
            "usage": body.usage,
            "error": body.error,
        }
        self._completed(_Event(interaction=interaction, event_type="interaction.completed"))

    def _sentinel(self) -> bool:
        self._fail(truncated(self.terminal))
        return True

    # -- steps --------------------------------------------------------------------------------------------------------

    def _step_start(self, event: _Event) -> None:
        members = event.step if type(event.step) is dict else event.content
        index = _key(event.index)
        known = self._steps.get(index)
        if known is not None:
            self._stop_step(known)
        self._start_step(index, _object(members))
        self._read_usage(event)
        self.answer.meant = True

    def _start_step(self, index: object, members: Members) -> _Step:
        step = self._latest = self._steps[index] = _step(index, members)
        self.answer.hold(len(self._steps))
        opener = _STEPS.get(step.type)
        if opener is not None:
            opener(self, step)
        elif step.type in _MEDIA:
            self._media(step, members)
        elif step.type.endswith("_call"):
            self._begin_call(step, members)
        else:
            self._open_whole(step)
        if members.get("error"):  # one step failed; the interaction goes on
            self.answer.out.append(msgspec.structs.replace(provider_error(members["error"], {}), fatal=False))
        return step

    def _step_stop(self, event: _Event) -> None:
        step = self._step_at(event)
        if step is not None:
            self._stop_step(step)
            if event.step_usage is not None:  # of the step, no running total
                self.answer.raw()
            self.answer.meant = True
        self._read_usage(event)

    def _step_at(self, event: _Event) -> _Step | None:
        index = _key(event.index)
        return self._latest if index is None else self._steps.get(index)

    def _stop_step(self, step: _Step) -> None:
        block = step.block
        if step.type.endswith("_call"):
            self._finish_call(step)
        elif block is not None:
            if block.kind == "tool_result":  # any other holds the whole step
                block.meta = _meta(step.members, step.type)
            self.answer.close(block)
        if self._steps.get(step.index) is step:
            del self._steps[step.index]
        self._latest = next(reversed(self._steps.values())) if self._steps else None

    def _close(self, step: _Step, block: OpenBlock) -> None:
        """A block of another kind follows in the step: this one is whole."""
        if isinstance(block, OpenCall):
            self._finish_call(step)
        self.answer.close(block)

    def _follow(self, step: _Step) -> Members | None:
        """Another block of the step begins, the one before is whole; what the new one has to say of that."""
        if step.block is not None:
            self._close(step, step.block)
        step.offsets = None
        step.opened += 1
        return {"continues_step": True} if step.opened > 1 else None

    def _open_output(self, step: _Step) -> None:
        content = step.members.get("content")
        for part in content if isinstance(content, list) else ():
            members = _object(part)
            if members.get("type") in _MEDIA:
                self._media(step, members)
            else:
                self._text(step, members)

    def _open_thought(self, step: _Step) -> None:
        self._reasoning_block(step)
        summary = step.members.get("summary")
        for part in summary if isinstance(summary, list) else ():
            self._thought_summary(step, {"content": part})
        if step.members.get("signature"):
            self._thought_signature(step, step.members)

    def _open_text(self, step: _Step) -> None:
        self._text(step, step.members)

    def _open_whole(self, step: _Step) -> None:
        """A result, or a step that nobody knows: made of all that comes until it stops."""
        members, type_ = step.members, step.type
        name = text_of(members.get("name")) or _kind_of(type_.removesuffix("_result"))

        def result(index: int, complete: bool, meta: JSONText | None) -> Block:
            content, call_id = members.get("result"), text_of(members.get("call_id"))
            text = content if content is None or type(content) is JSONText else compact(content)
            failed = members.get("is_error") is True
            return ToolResultBlock(index, call_id or None, name, text, failed, complete=complete, meta=meta)

        def other(index: int, complete: bool, meta: JSONText | None) -> Block:
            return OtherBlock(index, type_ or "unknown", compact(members), complete=complete, meta=meta)

        if type_.endswith("_result"):
            step.block = self.answer.open_whole("tool_result", result, _meta(members, type_))
        else:
            step.block = self.answer.open_whole("other", other)

    # -- deltas -------------------------------------------------------------------------------------------------------

    def _delta(self, event: _Event) -> None:
        delta = _object(event.delta)
        kind = text_of(delta.get("type"))
        step = self._step_at(event)
        handler = DELTAS.get(kind)
        if step is None:
            if kind in _OWNERLESS or not kind:
                self._nobodys(kind)
                return
            step = self._latest = self._steps[_key(event.index)] = _step(
                _key(event.index), {"type": _OWNERS.get(kind, kind)}
            )
            self.answer.hold(len(self._steps))
        if handler is not None:
            handler(self, step, delta)
        elif kind in _MEDIA:
            self._media(step, delta)
        elif kind.endswith(("_call", "_result")):
            self._tool_delta(step, delta)
        elif step.block is not None and step.block.index in self.answer.open:
            self.answer.raw(index=step.block.index)
        self._read_usage(event)

    def _nobodys(self, kind: str) -> None:
        self.answer.raw()
        if kind == "arguments_delta":
            self.answer.warn("orphan_fragment", "a piece of arguments belongs to no step that is open")

    def _text(self, step: _Step, delta: Members) -> None:
        piece, annotations = text_of(delta.get("text")), delta.get("annotations")
        if piece:
            self.answer.text(self._text_block(step), piece)
        if annotations:
            self._annotations(step, delta)

    def _text_block(self, step: _Step) -> OpenBlock:
        block = step.block
        if type(block) is not OpenBlock or block.index not in self.answer.open:
            block = step.block = self.answer.open_text("text", 0, self._follow(step))
        return block

    def _reasoning_block(self, step: _Step) -> OpenReasoning:
        block = step.block
        if type(block) is not OpenReasoning or block.index not in self.answer.open:
            block = step.block = self.answer.open_reasoning(0, self._follow(step))
        return block

    def _thought_summary(self, step: _Step, delta: Members) -> None:
        piece = text_of(_object(delta.get("content")).get("text"))
        if piece:
            self.answer.reasoning(self._reasoning_block(step), piece)

    def _thought_signature(self, step: _Step, delta: Members) -> None:
        """Comes several times, also empty: the last one that says something counts."""
        signature = text_of(delta.get("signature"))
        self.answer.last_signature = signature or self.answer.last_signature
        if step.type.endswith(("_call", "_result")):  # a member of the step, which must not be closed by it
            self.answer.raw(index=None if step.block is None else step.block.index)
            self._tool_delta(step, {"signature": signature})
            return
        block = self._reasoning_block(step)
        block.signature = signature or block.signature
        self.answer.raw(index=block.index)

    def _annotations(self, step: _Step, delta: Members) -> None:
        block = self._text_block(step)
        offsets = step.offsets = step.offsets or ByteOffsets()
        offsets.follow(block)
        annotations = delta.get("annotations")
        for annotation in annotations if isinstance(annotations, list) else ():
            source = _object(annotation)
            if source:
                self.answer.cite(block, _citation(block.index, source, offsets))

    def _media(self, step: _Step, delta: Members) -> None:
        """Images come whole, sound in pieces: what names no type of its own goes on, and sound of the same type."""
        kind, mime_type, uri = (text_of(delta.get(name)) for name in ("type", "mime_type", "uri"))
        block = step.block
        goes_on = (
            isinstance(block, OpenMedia)
            and kind == step.medium
            and not uri
            and (not mime_type or (kind == "audio" and mime_type == block.mime_type))
        )
        if not isinstance(block, OpenMedia) or not goes_on:
            if block is not None:
                self._close(step, block)
            step.opened, step.medium = step.opened + 1, kind
            meta = {name: value for name, value in delta.items() if name not in ("data", "mime_type", "uri")}
            if step.opened > 1:
                meta["continues_step"] = True
            block = step.block = self.answer.open_media(mime_type or None, 0, meta)
        if uri:
            self.answer.media_url(block, uri)
        self.answer.media(block, text_of(delta.get("data")))
        self.answer.meant = True

    # -- tools --------------------------------------------------------------------------------------------------------

    def _begin_call(self, step: _Step, members: Members) -> None:
        """A call opens when its name is known: the contents of old name it in their delta."""
        type_, name = step.type, text_of(members.get("name"))
        if type_ == "function_call":
            if name:
                step.block = self.answer.open_call(members.get("id"), name, meta=_meta(members, ""))
        else:
            kind = _kind_of(type_.removesuffix("_call"))
            step.block = self.answer.open_call(
                members.get("id"), name or kind, kind=kind, executor="provider", meta=_meta(members, type_)
            )
        arguments = members.get("arguments")  # else a placeholder for those to come
        if arguments and isinstance(step.block, OpenCall):
            step.block.given = arguments if isinstance(arguments, str) else compact(arguments)

    def _arguments(self, step: _Step, delta: Members) -> None:
        call, piece = step.block, delta.get("arguments")
        if not isinstance(call, OpenCall) or call.index not in self.answer.open:
            self._nobodys("arguments_delta" if piece else "")
        elif piece:
            self.answer.arguments(call, piece if isinstance(piece, str) else compact(piece))

    def _tool_delta(self, step: _Step, delta: Members) -> None:
        """Brings whole members of the step: the arguments of a call, what a tool gave back, signatures."""
        for name, value in delta.items():
            if value not in (None, ""):
                step.members[name] = value
        if step.block is None and step.type.endswith("_call"):
            self._begin_call(step, step.members)
        elif step.block is None:
            self._open_whole(step)
        call, arguments = step.block, delta.get("arguments")
        if isinstance(call, OpenCall):
            call.meta = _meta(step.members, "" if step.type == "function_call" else step.type, made_up=call.meta)
            if arguments is not None:
                call.given = ""
                self.answer.settle_arguments(call, arguments if isinstance(arguments, str) else compact(arguments))
        self.answer.meant = True

    def _finish_call(self, step: _Step) -> None:
        call = step.block
        if call is None:  # it never got a name: it is shown, and not run
            step.block = call = self.answer.open_call(step.members.get("id"), "", meta=_meta(step.members, ""))
        if isinstance(call, OpenCall) and call.index in self.answer.open:
            self.answer.finish_call(call, call.given if call.is_empty() else None, incomplete=not call.name)

    # -- the short way ------------------------------------------------------------------------------------------------

    @property
    def more(self) -> More | None:
        """The short way, once something came that means something. No attribute: it would hold what holds it."""
        return self._read_everyday if self._begun and self.hot and self._deep and not self._repeats else None

    @more.setter
    def more(self, more: More | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """There is no other."""

    def _read_everyday(self, payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
        """The short way. See :data:`More`; it says what the general way says of payloads that are no more than this."""
        answer, steps, step = self.answer, self._steps, self._latest
        open_, out = answer.open, answer.out
        flow: OpenBlock | None = None  # whose text the payload before was, of the step at ``index``
        index: int | None = None
        for payload in payloads:
            if type(payload) is not bytes:
                return payload
            try:
                event = _EVERYDAY(payload)
            except DECODE_ERRORS:
                return payload
            kind, event_id, delta = event.event_type, event.event_id, event.delta
            if flow is not None:
                if delta is not None and event.index == index and delta.type == "text" and kind in _DELTAS:
                    piece = delta.text
                    if piece and event_id is None and delta.annotations is None:
                        flow.tail.append(piece)
                        if len(flow.tail) > MANY:
                            flow.roll()
                        add(TextDelta(flow.index, piece))
                        continue
                flow = None
            index = event.index
            if event_id is not None and (not event_id or self._reconnected or self._event_ids is None):
                return payload
            if index is None:
                step = None  # which one is meant is for the general way to say
            elif step is None or step.index != index:
                step = steps.get(index)
            before = len(out)
            if kind in _DELTAS:
                if step is None or delta is None:
                    return payload
                block, type_ = step.block, delta.type
                if block is not None and (block.half or block.settled is not None or block.index not in open_):
                    return payload
                if type_ == "text":
                    piece = delta.text
                    if not piece or delta.annotations is not None:
                        return payload
                    if block is None and not step.opened and not answer.is_full(0):
                        block = self._text_block(step)
                    if type(block) is not OpenBlock:
                        return payload
                    flow = block
                    block.add(piece)
                    add(TextDelta(block.index, piece))
                elif type_ == "thought_signature":
                    if type(block) is not OpenReasoning:
                        return payload
                    answer.last_signature = delta.signature or answer.last_signature
                    block.signature = delta.signature or block.signature
                    answer.payload, answer.kind, answer.meant = payload, kind, False
                    answer.raw(index=block.index)
                elif type_ == "arguments_delta":
                    piece = delta.arguments
                    if type(block) is not OpenCall or type(piece) is not str or not piece:
                        return payload
                    block.add(piece)
                    add(ToolCallDelta(block.index, block.id, piece))
                elif type_ == "thought_summary":
                    words = delta.content
                    if type(block) is not OpenReasoning or words is None or not words.text or not block.parts:
                        return payload
                    block.parts[0].add(words.text)
                    add(ReasoningDelta(block.index, words.text))
                elif type_ == step.type:
                    if not self._brought(step, delta, payload):
                        return payload
                elif type_ not in _CITES or not self._annotated(step, delta.annotations or [], event, payload):
                    return payload
            elif kind in _STOPS:
                if step is None or (step.block is None and answer.is_full(0)):  # a call without a name opens as it ends
                    return payload
                block = step.block
                if step.type in _WORDED and type(block) in _OF_WORDS and block is not None and not block.half:
                    if open_.pop(block.index, None) is not None:
                        add(BlockEnd(block.index, block.block(True)))
                    del steps[step.index]
                    self._latest = next(reversed(steps.values())) if steps else None
                else:
                    self._stop_step(step)
                step = None
            elif kind in _OPENS:
                opened = event.step or event.content
                if opened is None or index is None or answer.is_full(len(steps) + 1):
                    return payload
                if step is not None:  # no stop came
                    if step.block is None or opened != _WORDED.get(opened.type):
                        return payload
                    self._stop_step(step)
                step = self._opened(index, opened)
                if step is None:
                    return payload
                self._latest = steps[index] = step
            elif event.interaction is not None:
                if event_id is None and kind in _ENDS:
                    self._ending = payload, event.interaction  # an end is for the caller to see
                return payload
            elif kind == "interaction.status_update" and answer.id is not None:
                answer.payload, answer.kind, answer.meant = payload, kind, False
                answer.raw()
            else:
                return payload
            if event_id is not None and self._event_ids is not None:
                self._event_ids.append(event_id)
                self.last_event_id = event_id
            count = len(out) - before
            if count != 1:
                answer.spans.append((before, count))
                answer.surplus += count - 1
        return END

    def _opened(self, index: int, opened: _Opened) -> _Step | None:
        """:meth:`_start_step` of a step that says next to nothing; None where it says more."""
        type_, signature, answer = opened.type, opened.signature or None, self.answer
        bare = _WORDED.get(type_)
        if bare is not None:
            if opened != bare:
                return None
            if type_ == "thought":
                return _Step(index, {"type": type_}, type_, answer.open_reasoning(), opened=1)
            return _Step(index, {"type": type_}, type_)
        members: Members = {"type": type_}
        if opened.id:
            members["id"] = opened.id
        if opened.call_id:
            members["call_id"] = opened.call_id
        if signature:
            members["signature"] = signature
        name = opened.name or ""
        if name:
            members["name"] = name
        step = _Step(index, members, type_)
        if type_ == "function_call":
            if name:
                step.block = answer.open_call(opened.id, name, meta={"signature": signature} if signature else None)
        elif type_.endswith("_call"):
            kind = _kind_of(type_.removesuffix("_call"))
            meta = {"type": type_, "signature": signature} if signature else {"type": type_}
            step.block = answer.open_call(opened.id, name or kind, kind=kind, executor="provider", meta=meta)
        elif type_.endswith("_result"):
            self._open_whole(step)
        else:
            return None
        return step

    def _brought(self, step: _Step, delta: _Delta, payload: bytes) -> bool:
        """:meth:`_tool_delta` of a call's arguments or of what a tool gave back; False where it is not all there is."""
        answer, block, members, arguments = self.answer, step.block, step.members, delta.arguments
        if delta.annotations is not None or (len(payload) > self._shallow and depth_exceeds(payload, answer.max_depth)):
            return False
        if step.type.endswith("_call"):
            if delta.result is not _NO_RESULT or arguments is None or (block is None and not delta.name):
                return False
            if block is None:
                if answer.is_full(0):
                    return False
                members["name"] = delta.name
                members["id"] = delta.id or members.get("id")
            if delta.signature:
                members["signature"] = delta.signature
            if block is None:
                self._begin_call(step, members)
                block = step.block
            elif delta.signature and isinstance(block, OpenCall):
                block.meta = _meta(members, "" if step.type == "function_call" else step.type, made_up=block.meta)
            if isinstance(block, OpenCall):
                block.given = ""
                text = arguments if type(arguments) is str else str(compact(arguments))
                if block.tail or block.full:
                    answer.settle_arguments(block, text)
                elif text:
                    block.tail.append(text)
                    answer.out.append(ToolCallDelta(block.index, block.id, text))
            return True
        if arguments is not None or block is None or block.kind != "tool_result":
            return False
        if delta.signature:
            members["signature"] = delta.signature
        if delta.is_error is not None:
            members["is_error"] = delta.is_error
        if delta.result is not _NO_RESULT:
            result = json_text(delta.result)
            if result not in ("null", '""'):
                members["result"] = result
        return True

    def _annotated(self, step: _Step, annotations: list[_Annotation], event: _Everyday, payload: bytes) -> bool:
        """:meth:`_annotations` of sources that have an address and a title; False where one has not."""
        block, found = step.block, list[Citation]()
        # Encoded it is the payload, letter by letter: then each source encoded is what stands there.
        if type(block) is not OpenBlock or _ENCODE(event) != payload:
            return False
        offsets = step.offsets = step.offsets or ByteOffsets()
        offsets.follow(block)
        index, size = block.index, offsets.size
        code_point = offsets.code_point
        plain = size == offsets.length  # all of it is ASCII
        for source, text in zip(annotations, _LINES(annotations).decode().split("\n"), strict=False):
            url, title, begin, end = source.url, source.title, source.start_index, source.end_index
            if not (url and title):
                return False
            stop: int | None
            start: int | None = begin if begin > 0 else 0
            if plain:
                stop = end if 0 <= end <= size else None
            else:
                stop = code_point(end)
                start = code_point(begin) if begin > 0 else 0
            if stop is None or start is None or start >= stop:
                start = stop = None
            found.append(Citation(index, url, title, None, start, stop, JSONText(text)))
        block.citations.extend(found)
        self.answer.out.extend(found)
        return bool(found)

    def _read_usage(self, event: _Event) -> None:
        """Running totals, wherever an event has them."""
        if event.metadata is not None:
            metadata = _object(event.metadata)
            self._total(metadata.get("usage"))
            self._total(metadata.get("total_usage"))
        if event.usage is not None:
            self._total(event.usage)
        if event.interaction is not None:
            self._total(_object(event.interaction).get("usage"))

    def _total(self, usage: Any) -> None:
        if usage and type(usage) is dict and usage != self._usage:
            self._usage = self.answer.totals(self._usage, usage)
            self.answer.report(_totals_of(self._usage))


class _Body(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    status: Any = None
    steps: tuple[Any, ...] | None = None
    outputs: tuple[Any, ...] | None = None
    usage: Any = None
    error: Any = None


_BODY: Final = Reader(_Body)

EVENTS: Final[Mapping[str, Callable[[GeminiInteractionsNormalizer, _Event], None]]] = {
    "interaction.created": GeminiInteractionsNormalizer._created,
    "interaction.start": GeminiInteractionsNormalizer._created,
    "interaction.status_update": GeminiInteractionsNormalizer._status,
    "step.start": GeminiInteractionsNormalizer._step_start,
    "content.start": GeminiInteractionsNormalizer._step_start,
    "step.delta": GeminiInteractionsNormalizer._delta,
    "content.delta": GeminiInteractionsNormalizer._delta,
    "step.stop": GeminiInteractionsNormalizer._step_stop,
    "content.stop": GeminiInteractionsNormalizer._step_stop,
    "interaction.completed": GeminiInteractionsNormalizer._completed,
    "interaction.complete": GeminiInteractionsNormalizer._completed,
    # over a WebSocket
    "interaction.connected": GeminiInteractionsNormalizer._created,
    "interaction.cancelled": GeminiInteractionsNormalizer._completed,
    "interaction.canceled": GeminiInteractionsNormalizer._completed,
    "reconnection_required": GeminiInteractionsNormalizer._reconnection,
    "error": GeminiInteractionsNormalizer._error,
}
_STARTS: Final = ("interaction.created", "interaction.start")
_ENDS: Final = {  # of an interaction whose status they leave out: what it is
    "interaction.completed": "completed",
    "interaction.complete": "completed",
    "interaction.cancelled": "cancelled",
    "interaction.canceled": "cancelled",
}

_STEPS: Final[Mapping[str, Callable[[GeminiInteractionsNormalizer, _Step], None]]] = {
    # Besides these: images, audio, video and documents are media, every ``*_call`` is a call, every ``*_result`` a
    # result, all others (user_input, what is new) are ``other``.
    "model_output": GeminiInteractionsNormalizer._open_output,
    "thought": GeminiInteractionsNormalizer._open_thought,
    "text": GeminiInteractionsNormalizer._open_text,
}

DELTAS: Final[Mapping[str, Callable[[GeminiInteractionsNormalizer, _Step, Members], None]]] = {
    # Besides these: media, and whole members of calls and results, by the type of their step.
    "text": GeminiInteractionsNormalizer._text,
    "thought_summary": GeminiInteractionsNormalizer._thought_summary,
    "thought_signature": GeminiInteractionsNormalizer._thought_signature,
    "arguments_delta": GeminiInteractionsNormalizer._arguments,
    "text_annotation_delta": GeminiInteractionsNormalizer._annotations,
    "text_annotation": GeminiInteractionsNormalizer._annotations,
}
_OWNERS: Final = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    "text_annotation": "text",
    "thought_summary": "thought",
    "thought_signature": "thought",
}
_OWNERLESS: Final = ("arguments_delta",)


def _citation(index: int, source: Members, offsets: ByteOffsets) -> Citation:
    """Places are counted in bytes of the text."""
    get = source.get
    begin, end, url, title = get("start_index"), get("end_index"), get("url"), get("title")
    stop = offsets.code_point(end) if type(end) is int else None
    start = None if stop is None else offsets.code_point(begin) if type(begin) is int and begin > 0 else 0
    if start is None or stop is None or start >= stop:
        start = stop = None
    if not (url and title and type(url) is str and type(title) is str):  # else it is all that there is to it
        origin = text_of(get("source"))  # "a URL, title, or other identifier"
        url = text_of(url) or text_of(get("document_uri")) or (origin if "://" in origin else "")
        title = text_of(title) or text_of(get("file_name")) or text_of(get("name")) or origin
    return Citation(index, url or None, title or None, None, start, stop, compact(source))


def _totals_of(members: Members) -> Usage | None:
    """Thoughts are counted beside the output, and what tools read beside the input."""
    whole, get = _usage.whole, members.get
    tokens_in, tokens_out = whole(get("total_input_tokens")), whole(get("total_output_tokens"))
    thoughts, tools = whole(get("total_thought_tokens")), whole(get("total_tool_use_tokens"))
    total = whole(get("total_tokens"))
    if tools is not None:
        tokens_in = (tokens_in or 0) + tools
    if thoughts is not None:
        tokens_out = (tokens_out or 0) + thoughts
    if total is None:
        if tokens_in is None and tokens_out is None:
            return None
        if tokens_in is not None and tokens_out is not None:
            total = tokens_in + tokens_out
    audio_in, image_in = _audio_and_images(get("input_tokens_by_modality"))
    audio_out, image_out = _audio_and_images(get("output_tokens_by_modality"))
    return Usage(
        tokens_in,
        tokens_out,
        total,
        thoughts,
        whole(get("total_cached_tokens")),
        None,
        audio_in,
        audio_out,
        image_in,
        image_out,
        None,
        compact(members),
    )


def _audio_and_images(counts: Any) -> tuple[int | None, int | None]:
    """How many tokens of each: of the first count of its kind."""
    found: dict[Any, int | None] = {}
    for count in counts if type(counts) is list else ():
        if type(count) is dict and (modality := count.get("modality")) in _COUNTED and modality not in found:
            found[modality] = _usage.whole(count.get("tokens"))
    return (found.get("audio"), found.get("image")) if found else _UNCOUNTED


_COUNTED: Final = ("audio", "image")
_UNCOUNTED: Final = (None, None)


def _kind_of(stem: str) -> str:
    return KINDS.get(stem, stem)


def _meta(members: Members, type_: str, *, made_up: Members | None = None) -> Members | None:
    """What has to go back with the step in the next request, but for the members that blocks hold."""
    meta: Members = {"type": type_} if type_ else {}
    for name, value in members.items():
        if name not in _HELD and value not in (None, ""):
            meta[name] = value
    if made_up is not None and "synthetic_id" in made_up:
        meta["synthetic_id"] = True
    return meta or None


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else {}


def _key(index: Any) -> object:
    return index if type(index) is int or isinstance(index, str | float) else None
