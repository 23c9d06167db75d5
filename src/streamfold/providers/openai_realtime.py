"""Realtime over a WebSocket: OpenAI's, in today's names and in those that Azure still sends, and xAI's copy of it.

A response is a turn. Its items interleave, so that a block is known by its item and its place in it, and by what it
holds; ``output_index`` is no key (xAI says 0 for every item). What the user said is of the turn that answers it: the
response that begins after the server has taken the words in. They are often written down only while it speaks, or when
it has ended.

A call is handed out when its item is said to be completed: ``function_call_arguments.done`` is also sent of one that
was cut off.

Source: the vendors' lists of server events, their clients' types, and recorded sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from streamfold.blocks import ApprovalBlock, Block, JSONText, ToolResultBlock, TranscriptSource
from streamfold.events import ErrorEvent, GoAway, Interrupted, Session, StopReason, ToolCallCancelled
from streamfold.payloads import BadJSON, DepthExceeded, Payload, compact, read_object, sanitize
from streamfold.providers import _usage
from streamfold.providers._errors import provider_error
from streamfold.providers._live import LiveNormalizer, TurnAnswer
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenTranscript
from streamfold.providers._table import CloseHow, id_of, text_of

__all__ = ["OpenAIRealtimeNormalizer", "XAIRealtimeNormalizer"]

Members: TypeAlias = dict[str, Any]
B = TypeVar("B", bound=OpenBlock)

BETA: Final[Mapping[str, str]] = {
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "conversation.item.created": "conversation.item.added",
    "transcription_session.created": "session.created",
    "transcription_session.updated": "session.updated",
}
"""The older name of an event, and today's."""

REASONS: Final[Mapping[str, StopReason]] = {
    "completed": "end",
    "cancelled": "cancelled",
    "turn_detected": "cancelled",
    "client_cancelled": "cancelled",
    "max_output_tokens": "length",
    "content_filter": "refusal",
}
"""What the reason of a response's end means, or its status where it gives none; any other word is ``other``."""

LEAVING: Final = frozenset({"session_expired", "reconnection_required"})
"""Errors after which the server closes the connection."""

USAGE: Final = {
    **_usage.CHAT,
    "input_token_details": _usage.CHAT["input_tokens_details"],
    "output_token_details": _usage.CHAT["output_tokens_details"],
}
MIME_TYPES: Final = {"pcm16": "audio/pcm;rate=24000", "g711_ulaw": "audio/pcmu", "g711_alaw": "audio/pcma"}
"""The older words for a format."""
CLOSED: Final[Mapping[str, StopReason]] = {
    "": "end",
    "close_requested": "end",
    "remote_hangup": "end",
    "content": "refusal",
}
"""What the reason of ``session.closed`` means; any other word is ``other``."""

_PARTS: Final = {"text": "text", "output_text": "text", "audio": "words", "output_audio": "words"}
_HALVES: Final = ("delta", "text", "transcript", "arguments")
_REMEMBERED: Final = 1024  # responses that are over, and items of the user


class _Response(msgspec.Struct, eq=False):
    """A response, while it runs and after.

    Attributes:
        turn: What it says.
        blocks: By item, place in it, and what they hold.
        calls: By item, or by the call's own id where the wire names no item.
        argued: Indexes of calls whose arguments are all there.
        seen: Items that are finished.
        interrupted: The user broke in.
        latest: The item that was spoken of last, and the place in it.
    """

    turn: TurnAnswer
    blocks: dict[tuple[str, Any, str], OpenBlock] = {}
    calls: dict[str, OpenCall] = {}
    argued: set[int] = set()
    seen: set[str] = set()
    interrupted: bool = False
    in_conversation: bool = True
    latest: tuple[str, Any] = ("", 0)
    mime_type: str | None = None


class _Heard(msgspec.Struct, eq=False):
    """What the user said in one item, or one part of it.

    Attributes:
        turn: Whose it is.
        block: In which it is written down; None where the turn ended before it was whole.
        told: What earlier blocks of it hold.
        whole: No more comes.
    """

    turn: TurnAnswer
    block: OpenTranscript | None = None
    told: str = ""
    whole: bool = False


class OpenAIRealtimeNormalizer(LiveNormalizer):
    """Events of OpenAI Realtime to unified events, turn by turn."""

    surface = "openai-realtime"
    terminal = "response.done"

    def _begin(self) -> None:
        super()._begin()
        self._model: str | None = None
        self._mime_type: str | None = None  # of the audio that comes
        self._interrupts = True  # whether a response ends when the user begins to speak
        self._writes = False  # a session that answers nothing, and only writes down what it hears
        self._names_conversations = False
        self._clear()

    def _clear(self) -> None:
        self._responses: dict[str, _Response] = {}
        self._latest: _Response | None = None
        self._items: dict[str, TurnAnswer | None] = {}  # of the user; None: the next response is their answer
        self._heard: dict[tuple[str, Any], _Heard] = {}
        self._hearing: TurnAnswer | None = None  # of which nothing came yet but what the user said
        self._whole_session: _Response | None = None  # the one turn of a session without responses

    def _message(self, payload: Payload) -> bool:
        event = read_object(payload, self.answer.max_depth, _HALVES)
        if event is None:
            return False
        kind = text_of(event.get("type"))
        kind = BETA.get(kind, kind)
        read = EVENTS.get(kind) or self._own_event(kind)
        self.answer.about = None
        if read is not None:
            read(self, event)
        else:
            of = CONTENT.get(kind)
            response = self._response_of(event, opens=of is not None)
            if of is not None and response is not None:
                of(self, response, event)
            return of is not None or kind in SILENT
        return True

    def _own_event(self, kind: str) -> Callable[[Any, Members], None] | None:
        """What an event means that only this vendor sends."""
        return None

    # -- the session --------------------------------------------------------------------------------------------------

    def _session(self, event: Members) -> None:
        session = _object(event.get("session"))
        self._model = id_of(session.get("model")) or self._model
        self._mime_type = _mime_type(session) or self._mime_type
        audio = _object(_object(session.get("audio")).get("input"))
        detection = _object(session.get("turn_detection")) or _object(audio.get("turn_detection"))
        if "interrupt_response" in detection:
            self._interrupts = detection["interrupt_response"] is not False
        kind = session.get("type")
        self._writes = text_of(event.get("type")).startswith("transcription_session.") or kind == "transcription"
        self._tell(session)

    def _tell(self, session: Members) -> None:
        self.tell(Session(id_of(session.get("id")) or self.session.id))

    def _error(self, event: Members) -> None:
        """The session goes on after most errors; where it does not, the close tells."""
        error = provider_error(event.get("error"), event)
        self.answer.add(msgspec.structs.replace(error, fatal=False))
        if error.code in LEAVING:
            self.answer.add(GoAway(0))

    def _forget_connection(self) -> None:
        self._stop_writing()
        self._clear()

    def _ended(self, how: CloseHow) -> None:
        super()._ended(how)
        self._stop_writing()

    def _stop_writing(self) -> None:
        """What the user said in turns that are over is written down no further."""
        for heard in self._heard.values():
            if heard.turn.ended and not heard.turn.failed:
                self._stop_hearing(heard, complete=False)

    def _ends_well(self, turn: TurnAnswer, code: int | None) -> bool:
        """What the user said last and nobody answered is no answer that broke off."""
        if turn is self._hearing and not turn.ended:
            self._hearing = None
            turn.stop(0, "cancelled", None)
            self.end_turn(turn)
            return True
        return False

    # -- turns --------------------------------------------------------------------------------------------------------

    def _running(self) -> _Response | None:
        """The response of the conversation that has not ended; others may run beside it."""
        running = (r for r in self._responses.values() if r.in_conversation and not r.turn.ended)
        return next(running, None)

    def _response_of(self, event: Members, *, opens: bool) -> _Response | None:
        """The response that an event is about; the events of one that is over come out as ``raw``."""
        id_ = id_of(event.get("response_id")) or id_of(_object(event.get("response")).get("id"))
        response = self._responses.get(id_) if id_ else self._latest
        if response is None or (response.turn.ended and not id_):
            if not opens:
                return None
            response = self._open(id_)
        if response.turn.ended:
            if not response.turn.failed:
                self.answer.about = response.turn.number
            if event.get("type") == "response.done":
                self.open.pop(response.turn.number, None)
            return None
        self.answer.about = response.turn.number
        if opens and (item := id_of(event.get("item_id"))):
            response.latest = (item, event.get("content_index") or 0)
        return response

    def _open(self, id_: str, *, in_conversation: bool = True) -> _Response:
        """A response begins: it is the answer to all that the user said so far."""
        hearing = self._hearing if in_conversation else None
        if hearing is not None and not hearing.ended:
            turn = hearing
            turn.identify(id_, self._model)
        else:
            if hearing is not None:
                self.open.pop(hearing.number, None)
            turn = self.open_turn(id_, self._model)
        self.answer.about = turn.number
        response = self._latest = _Response(turn, in_conversation=in_conversation, mime_type=self._mime_type)
        if in_conversation:
            self._hearing = None
            for item, heard_in in self._items.items():
                if heard_in is None:
                    self._items[item] = turn
        self._responses[id_] = response
        if len(self._responses) > _REMEMBERED:
            self._forget_response()
        return response

    def _forget_response(self) -> None:
        """Of endless responses those that are over are forgotten first."""
        ids = self._responses
        response = ids.pop(next((id_ for id_, r in ids.items() if r.turn.ended), None) or next(iter(ids)))
        if not response.turn.ended:
            self.end_turn(response.turn, ErrorEvent("limit", f"more than {_REMEMBERED} responses run", "responses"))

    def _created(self, event: Members) -> None:
        members = _object(event.get("response"))
        id_ = id_of(members.get("id"))
        response = self._responses.get(id_) if id_ else None
        if response is None or response.turn.ended:
            conversation = id_of(members.get("conversation_id"))
            self._names_conversations = self._names_conversations or bool(conversation)
            response = self._open(id_, in_conversation=bool(conversation) or not self._names_conversations)
        self.answer.about = response.turn.number
        response.mime_type = _mime_type(members) or response.mime_type
        self.answer.raw()

    def _done(self, response: _Response, event: Members) -> None:
        members, turn = _object(event.get("response")), response.turn
        status, details = text_of(members.get("status")) or "completed", _object(members.get("status_details"))
        turn.identify(id_of(members.get("id")), None)
        reason = text_of(details.get("reason")) or status
        if reason == "turn_detected" and not response.interrupted:
            turn.out.append(Interrupted(reason))
            response.interrupted = True
        output = members.get("output")
        for item in output if isinstance(output, list) else ():
            self._item(response, _object(item), whole=status == "completed")
        self._close_rest(response, status)
        usage = _object(members.get("usage")) or _object(event.get("usage"))  # xAI has it beside the response
        turn.report(_usage.read(usage, USAGE))
        if status == "failed":
            error = details.get("error")
            self.end_turn(turn, provider_error(error, {} if error else {"message": "the response failed"}))
            return
        turn.stop(0, REASONS.get(reason) or REASONS.get(text_of(details.get("type")) or status, "other"), reason)
        self._leave_unheard(turn)
        self.end_turn(turn)

    def _close_rest(self, response: _Response, status: str) -> None:
        """What no event of its own has closed."""
        turn = response.turn
        for block in response.blocks.values():
            turn.close(block, complete=status == "completed" and not response.interrupted)
        taken_back: list[str] = []
        for call in response.calls.values():
            if call.index not in turn.open:
                continue
            if status == "cancelled" and call.executor == "client":
                taken_back.append(call.id)
                turn.cut(call)
            elif call.index in response.argued:
                self.finish_call(turn, call, call.given, incomplete=status != "completed")
        if taken_back:
            turn.out.append(ToolCallCancelled(tuple(taken_back)))

    # -- items --------------------------------------------------------------------------------------------------------

    def _block(self, response: _Response, event: Members, holds: str, opener: Callable[[], B]) -> B:
        """The block of that item, part and content."""
        key = (id_of(event.get("item_id")), _place(event.get("content_index")), holds)
        block = response.blocks.get(key)
        if block is None or block.index not in response.turn.open:
            block = response.blocks[key] = opener()
        return cast("B", block)

    def _settle(self, response: _Response, event: Members, holds: str, whole: str, *, complete: bool = True) -> None:
        """The part is over, and this is what it was."""
        turn = response.turn
        key = (id_of(event.get("item_id")), _place(event.get("content_index")), holds)
        if key in response.blocks and response.blocks[key].index not in turn.open:
            return
        if key not in response.blocks and not whole:
            return
        if holds == "text":
            block = self._block(response, event, holds, partial(turn.open_text, meta=_meta(event)))
            turn.settle_text(block, whole)
        else:
            block = self._block(response, event, holds, turn.open_transcript)
            if whole:
                turn.revise(block, whole, final=True)
        turn.close(block, complete=complete and not response.interrupted)

    def _text(self, response: _Response, event: Members) -> None:
        if piece := text_of(event.get("delta")):
            turn = response.turn
            turn.text(self._block(response, event, "text", partial(turn.open_text, meta=_meta(event))), piece)
            turn.said()

    def _text_done(self, response: _Response, event: Members) -> None:
        self._settle(response, event, "text", text_of(event.get("text")))

    def _words(self, response: _Response, event: Members) -> None:
        if piece := text_of(event.get("delta")):
            turn = response.turn
            turn.transcript(self._block(response, event, "words", turn.open_transcript), piece)
            turn.said()

    def _words_done(self, response: _Response, event: Members) -> None:
        self._settle(response, event, "words", text_of(event.get("transcript")))

    def _audio(self, response: _Response, event: Members) -> None:
        if piece := text_of(event.get("delta")):
            self._sound(response, event, piece)

    def _sound(self, response: _Response, event: Members, piece: str | bytes) -> None:
        turn = response.turn
        meta = {**_meta(event), "content_index": _place(event.get("content_index"))}  # what a client truncates by
        opener = partial(turn.open_media, response.mime_type, meta=meta)
        turn.media(self._block(response, event, "audio", opener), piece)
        turn.said()

    def _audio_done(self, response: _Response, event: Members) -> None:
        key = (id_of(event.get("item_id")), _place(event.get("content_index")), "audio")
        if key in response.blocks:
            response.turn.close(response.blocks[key], complete=not response.interrupted)

    def _item_added(self, response: _Response, event: Members) -> None:
        item = _object(event.get("item"))
        response.latest = (id_of(item.get("id")), 0)
        if text_of(item.get("type")) in CALLS and not self._call_of(response, item):
            self._open_call(response, item)

    def _item_done(self, response: _Response, event: Members) -> None:
        self._item(response, _object(event.get("item")), whole=True)

    def _item(self, response: _Response, item: Members, *, whole: bool) -> None:
        """The item as it is in the end.

        Args:
            response: Whose.
            item: Its members.
            whole: Whether a call that is not said to be completed is one that the model made badly; else its response
                broke off.
        """
        id_ = id_of(item.get("id")) or id_of(item.get("call_id"))
        if id_ in response.seen:
            return
        kind, status = text_of(item.get("type")), text_of(item.get("status"))
        if kind == "message":
            content = item.get("content")
            for index, part in enumerate(content if isinstance(content, list) else ()):
                part_of = {"item_id": id_, "content_index": index}
                members = _object(part)
                holds = _PARTS.get(text_of(members.get("type")))
                if holds is not None:
                    said = text_of(members.get("text" if holds == "text" else "transcript"))
                    self._settle(response, part_of, holds, said, complete=status != "incomplete")
        elif kind in CALLS and not self._call_ended(response, item, status, whole=whole):
            return
        elif kind == "mcp_approval_request":
            self._approval(response, item)
        if id_ and (_tells_content(item) or kind != "message"):
            response.seen.add(id_)
            response.turn.hold(len(response.seen))

    def _approval(self, response: _Response, item: Members) -> None:
        id_, name, arguments = (sanitize(text_of(item.get(member))) for member in ("id", "name", "arguments"))

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            return ApprovalBlock(index, id_, name, arguments, complete=complete, meta=meta)

        turn = response.turn
        meta = {"server_label": item["server_label"]} if item.get("server_label") else None
        turn.close(turn.open_whole("approval", make, meta))
        turn.calls_client()

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call_of(self, response: _Response, event: Members) -> OpenCall | None:
        """The call that an event or an item names."""
        calls = response.calls
        names = (event.get("item_id"), event.get("id"), event.get("call_id"))
        return next((calls[name] for name in map(id_of, names) if name in calls), None)

    def _open_call(self, response: _Response, item: Members) -> OpenCall:
        ours = item.get("type") != "mcp_call"
        id_ = id_of(item.get("item_id")) or id_of(item.get("id"))
        meta: Members = {"item_id": id_} if ours and id_ else {}
        if item.get("server_label"):
            meta["server_label"] = item["server_label"]
        call = response.turn.open_call(
            id_of(item.get("call_id")) or (None if ours else id_),
            text_of(item.get("name")) or ("function" if ours else "mcp"),
            kind="function" if ours else "mcp",
            executor="client" if ours else "provider",
            meta=meta or None,
        )
        response.calls[id_ or call.id] = call
        call.given = text_of(item.get("arguments"))
        return call

    def _arguments(self, response: _Response, event: Members) -> None:
        """A piece of the arguments; of a call without a name nobody knows what it calls: its end says all of it."""
        call = self._call_of(response, event)
        if call is None and text_of(event.get("name")):
            call = self._open_call(response, event)
        if call is not None and call.index in response.turn.open and text_of(event.get("delta")):
            response.turn.arguments(call, event["delta"])
            response.turn.said()

    def _arguments_done(self, response: _Response, event: Members) -> None:
        call = self._call_of(response, event)
        if call is None:
            if text_of(event.get("type")) == "response.mcp_call_arguments.done":
                return  # its item, which names it, is to come
            call = self._open_call(response, event)
        if call.index in response.turn.open:
            whole, name = text_of(event.get("arguments")), text_of(event.get("name"))
            response.turn.settle_arguments(call, whole)
            call.name, call.given = name or call.name, whole or call.given
            response.argued.add(call.index)
            response.turn.raw(index=call.index)

    def _call_ended(self, response: _Response, item: Members, status: str, *, whole: bool) -> bool:
        """What the item says of its call in the end; whether it is over."""
        call, turn = self._call_of(response, item), response.turn
        if status not in ("completed", "incomplete", "failed") and item.get("type") != "mcp_call":
            return False
        if status == "incomplete" and not whole:
            return False
        if call is None:
            call = self._open_call(response, item)
        if call.index not in turn.open:
            return True
        call.name = text_of(item.get("name")) or call.name
        arguments = text_of(item.get("arguments")) or call.given
        error = item.get("error")
        incomplete = status == "incomplete" or (call.executor == "client" and status == "failed")
        self.finish_call(turn, call, arguments, incomplete=incomplete)
        if call.executor == "provider" and (error is not None or item.get("output") is not None):
            self._result(turn, call, compact(item["output"] if error is None else error), failed=error is not None)
        return True

    def _result(self, turn: TurnAnswer, call: OpenCall, content: JSONText, *, failed: bool) -> None:
        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            return ToolResultBlock(index, call.id, call.name, content, failed, complete=complete, meta=meta)

        turn.close(turn.open_whole("tool_result", make))

    # -- what the user says -------------------------------------------------------------------------------------------

    def _speech_started(self, event: Members) -> None:
        """The user begins to speak, and breaks in on whatever response of the conversation runs."""
        self._note_item(id_of(event.get("item_id")))
        response = self._running()
        if response is None or not self._interrupts or response.interrupted:
            self.answer.raw()
            return
        response.interrupted = True
        self.answer.about = response.turn.number
        response.turn.out.append(Interrupted())

    def _committed(self, event: Members) -> None:
        self._note_item(id_of(event.get("item_id")))
        self.answer.raw()

    def _item_of_conversation(self, event: Members) -> None:
        """An item that came into the conversation, also by the client, and in a replay of what was said before."""
        item = _object(event.get("item"))
        if item.get("role") == "user" and item.get("type") == "message":
            self._note_item(id_of(item.get("id")))
        self.answer.raw()

    def _note_item(self, item: str) -> None:
        """Something that the user said is in: the next response is its answer."""
        if item and item not in self._items:
            self._items[item] = None
            if len(self._items) > _REMEMBERED:
                del self._items[next(iter(self._items))]

    def _turn_of(self, item: str) -> TurnAnswer:
        """The turn of what the user said in that item."""
        if self._writes:
            turn = self._items.get(item)
            if turn is None:
                turn = self._items[item] = self.open_turn(item, self._model)
            return turn
        turn = self._items.get(item)
        if turn is None and item not in self._items:  # its beginning was not seen, or it comes late
            response = self._running() or self._latest
            turn = response.turn if response is not None else None
        if turn is None:
            turn = self._hearing
        if turn is None or (turn is self._hearing and turn.ended):
            turn = self._hearing = self.open_turn(None, self._model)
        return turn

    def _heard_in(self, event: Members) -> _Heard | None:
        """What was written down of that part so far; None where nothing more can be said of it."""
        item = id_of(event.get("item_id"))
        key = (item, _place(event.get("content_index")))
        heard = self._heard.get(key)
        if heard is None:
            heard = self._heard[key] = _Heard(self._turn_of(item))
            if len(self._heard) > _REMEMBERED:
                first = next(iter(self._heard))
                self._stop_hearing(self._heard.pop(first), complete=False)
        if heard.turn.failed:
            return None
        self.answer.about = heard.turn.number
        return None if heard.whole else heard

    def _block_of(self, heard: _Heard) -> OpenTranscript:
        if heard.block is None or heard.block.index not in heard.turn.open:
            heard.turn.read(self.answer.payload)
            heard.block = heard.turn.open_transcript("user")
        return heard.block

    def _stop_hearing(self, heard: _Heard, *, complete: bool) -> None:
        if heard.block is not None:
            heard.turn.close(heard.block, complete=complete)
        heard.whole = True

    def _leave_unheard(self, turn: TurnAnswer) -> None:
        """The turn ends while words of it are still being written down: the rest comes in another block, late."""
        for heard in self._heard.values():
            if heard.turn is turn and heard.block is not None and heard.block.index in turn.open:
                heard.told += heard.block.whole()
                turn.close(heard.block, complete=False)
                heard.block = None

    def _user_delta(self, event: Members) -> None:
        heard, piece = self._heard_in(event), text_of(event.get("delta"))
        if heard is not None and piece:
            heard.turn.transcript(self._block_of(heard), piece)
            self.answer.said()

    def _user_whole(self, event: Members, *, final: bool = True) -> None:
        """The words from the beginning."""
        heard, whole = self._heard_in(event), text_of(event.get("transcript"))
        if heard is None:
            return
        if heard.told:
            whole = whole[len(heard.told) :] if whole.startswith(heard.told) else whole
        if whole:
            heard.turn.revise(self._block_of(heard), whole, final=final)
            self.answer.said()
        if final:
            self._stop_hearing(heard, complete=True)
            self._end_writing(heard, event)

    def _user_done(self, event: Members) -> None:
        self._user_whole(event, final=event.get("status") != "in_progress")  # xAI says it several times

    def _user_failed(self, event: Members) -> None:
        """What the user said could not be written down; the response goes on."""
        heard = self._heard.get((id_of(event.get("item_id")), _place(event.get("content_index"))))
        if heard is not None and not heard.turn.failed:
            self.answer.about = heard.turn.number
            self._stop_hearing(heard, complete=False)
            self._end_writing(heard, event)
        self.answer.raw()

    def _end_writing(self, heard: _Heard, event: Members) -> None:
        """Where nothing is answered each item is a turn."""
        if self._writes and not heard.turn.ended:
            heard.turn.report(_usage.read(_object(event.get("usage")), USAGE))
            heard.turn.stop(0, "other" if event.get("error") else "end", None)
            self.end_turn(heard.turn)

    # -- sessions without responses: translation ----------------------------------------------------------------------

    def _all(self) -> _Response:
        """The one turn of the session."""
        response = self._whole_session
        if response is None or response.turn.ended:
            response = self._whole_session = _Response(self.open_turn(self.session.id, self._model))
        self.answer.about = response.turn.number
        return response

    def _session_words(self, event: Members, source: TranscriptSource) -> None:
        if piece := text_of(event.get("delta")):
            response = self._all()
            turn = response.turn
            turn.transcript(self._block(response, {}, source, partial(turn.open_transcript, source)), piece)
            turn.said()

    def _session_audio(self, event: Members) -> None:
        if piece := text_of(event.get("delta")):
            response = self._all()
            response.mime_type = _session_mime_type(event) or self._mime_type
            turn = response.turn
            turn.media(self._block(response, {}, "audio", partial(turn.open_media, response.mime_type)), piece)
            turn.said()

    def _session_closed(self, event: Members) -> None:
        response, word = self._whole_session, text_of(event.get("reason"))
        if response is None or response.turn.ended:
            self.answer.raw()
            return
        self.answer.about = response.turn.number
        if word == "connection_lost":
            self.end_turn(response.turn, provider_error({"message": "the connection was lost", "code": word}, event))
            return
        for block in response.blocks.values():
            response.turn.close(block)
        response.turn.stop(0, CLOSED.get(word, "other"), word or None)
        self.end_turn(response.turn)


class XAIRealtimeNormalizer(OpenAIRealtimeNormalizer):
    """Events of xAI's voice agent, which has the names of OpenAI's; what it sends otherwise."""

    surface = "xai-realtime"
    handle_ages = False

    def _begin(self) -> None:
        super()._begin()
        self._conversation: str | None = None
        self._resumes = False  # whether the conversation can be taken up
        self._binary = False

    def _own_event(self, kind: str) -> Callable[[Any, Members], None] | None:
        return XAI_EVENTS.get(kind)

    def _message(self, payload: Payload) -> bool:
        """Audio comes in binary frames where the session says so; everything else is an object."""
        if self._binary and isinstance(payload, bytes) and self._is_sound(payload):
            response = self._running()
            if response is None:
                self.answer.about = None
                return False
            self.answer.about = response.turn.number
            item, place = response.latest
            self._sound(response, {"item_id": item, "content_index": place}, payload)
            return True
        return super()._message(payload)

    def _is_sound(self, payload: bytes) -> bool:
        if payload.lstrip()[:1] != b"{":
            return True
        try:
            return read_object(payload, self.answer.max_depth) is None
        except (BadJSON, DepthExceeded):
            return True

    def sent(self, message: Payload) -> None:
        """The client sent this: whether the conversation is to be kept. See :meth:`LiveNormalizer.sent`."""
        try:
            members = read_object(message, self.answer.max_depth) or {}
        except (BadJSON, DepthExceeded):
            return
        if members.get("type") == "session.update":
            self._note_resumption(_object(members.get("session")))

    def _note_resumption(self, session: Members) -> None:
        if "resumption" in session:
            self._resumes = _object(session["resumption"]).get("enabled") is True

    def _conversation_created(self, event: Members) -> None:
        """By this id another connection takes the conversation up, where the session keeps it."""
        self._conversation = id_of(_object(event.get("conversation")).get("id")) or None
        if self._resumes:
            self._tell({})
        else:
            self.answer.raw()

    def _tell(self, session: Members) -> None:
        if "audio" in session:
            output = _object(_object(session["audio"]).get("output"))
            self._binary = output.get("transport") == "binary"
        self._note_resumption(session)
        id_ = id_of(session.get("id")) or self.session.id
        if self._resumes and self._conversation:
            self.tell(Session(id_, True, self._conversation), can_resume=True)
        elif "resumption" in session:
            self.tell(Session(id_), can_resume=True)
        else:
            self.tell(Session(id_))

    def _updated(self, event: Members) -> None:
        """All that the user said so far, which may revise words."""
        self._note_item(id_of(event.get("item_id")))
        self._user_whole(event, final=False)


def _tells_content(item: Members) -> bool:
    """Whether a message says what is in it; xAI tells that in ``response.done`` alone."""
    return isinstance(item.get("content"), list)


def _place(index: Any) -> int:
    return index if type(index) is int else 0


def _meta(event: Members) -> Members:
    return {"item_id": item} if (item := id_of(event.get("item_id"))) else {}


def _mime_type(members: Members) -> str | None:
    """The format of the audio that comes, as a session or a response tells it."""
    older = text_of(members.get("output_audio_format"))
    media = _object(_object(_object(members.get("audio")).get("output")).get("format"))
    kind, rate = text_of(media.get("type")), media.get("rate")
    if kind:
        return f"{kind};rate={rate}" if type(rate) is int else kind
    return MIME_TYPES.get(older)


def _session_mime_type(event: Members) -> str | None:
    kind, rate, channels = text_of(event.get("format")), event.get("sample_rate"), event.get("channels")
    if kind in MIME_TYPES:
        kind = MIME_TYPES[kind].partition(";")[0]
    if not kind:
        return None
    kind += f";rate={rate}" if type(rate) is int else ""
    return kind + (f";channels={channels}" if type(channels) is int else "")


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else {}


CALLS: Final = frozenset({"function_call", "mcp_call"})
"""Items that are calls."""

_R = OpenAIRealtimeNormalizer
_TRANSCRIPTION: Final = "conversation.item.input_audio_transcription"

EVENTS: Final[Mapping[str, Callable[[OpenAIRealtimeNormalizer, Members], None]]] = {
    "error": _R._error,
    "session.created": _R._session,
    "session.updated": _R._session,
    "response.created": _R._created,
    "conversation.item.added": _R._item_of_conversation,
    "input_audio_buffer.speech_started": _R._speech_started,
    "input_audio_buffer.committed": _R._committed,
    f"{_TRANSCRIPTION}.delta": _R._user_delta,
    f"{_TRANSCRIPTION}.completed": _R._user_done,
    f"{_TRANSCRIPTION}.failed": _R._user_failed,
    # of sessions that translate
    "session.input_transcript.delta": partial(_R._session_words, source="user"),
    "session.output_transcript.delta": partial(_R._session_words, source="model"),
    "session.output_audio.delta": _R._session_audio,
    "session.closed": _R._session_closed,
}
"""Events of the session and of the conversation."""

XAI_EVENTS: Final[Mapping[str, Callable[[XAIRealtimeNormalizer, Members], None]]] = {
    "conversation.created": XAIRealtimeNormalizer._conversation_created,
    f"{_TRANSCRIPTION}.updated": XAIRealtimeNormalizer._updated,
}

CONTENT: Final[Mapping[str, Callable[[OpenAIRealtimeNormalizer, _Response, Members], None]]] = {
    "response.done": _R._done,
    "response.output_item.added": _R._item_added,
    "response.output_item.done": _R._item_done,
    "response.output_text.delta": _R._text,
    "response.output_text.done": _R._text_done,
    "response.output_audio.delta": _R._audio,
    "response.output_audio.done": _R._audio_done,
    "response.output_audio_transcript.delta": _R._words,
    "response.output_audio_transcript.done": _R._words_done,
    "response.function_call_arguments.delta": _R._arguments,
    "response.function_call_arguments.done": _R._arguments_done,
    "response.mcp_call_arguments.delta": _R._arguments,
    "response.mcp_call_arguments.done": _R._arguments_done,
}
"""Events of a response."""

SILENT: Final = frozenset(
    {
        "ping",
        "conversation.created",
        "conversation.item.done",
        "conversation.item.retrieved",
        "conversation.item.truncated",
        "conversation.item.deleted",
        f"{_TRANSCRIPTION}.segment",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.cleared",
        "input_audio_buffer.timeout_triggered",
        "input_audio_buffer.dtmf_event_received",
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
        "output_audio_buffer.cleared",
        "response.content_part.added",
        "response.content_part.done",
        "response.mcp_call.in_progress",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "mcp_list_tools.in_progress",
        "mcp_list_tools.completed",
        "mcp_list_tools.failed",
        "rate_limits.updated",
    }
)
"""Known events that say nothing the vocabulary has a word for: they come out as ``raw``."""
