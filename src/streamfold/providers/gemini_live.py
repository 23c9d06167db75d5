"""Gemini Live (``BidiGenerateContent`` over a WebSocket), on the Gemini API and on Vertex.

A message may carry any mix of the members in :data:`MEMBERS`; all are read, in the order of that table, whatever their
order in the message. The end of a turn comes after them.

Words of audio have no order against the audio, nor against the end of the turn. What the model said and comes after its
turn is of the turn before, until something shows that the next one has begun: see :meth:`GeminiLiveNormalizer._spoken`.
What the user said is of the turn that answers it, and so opens it.

Source: the vendor's Live API reference, its Python client's types, and recorded sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from streamfold.events import ErrorEvent, Event, Interrupted, Session, StopReason, Usage
from streamfold.payloads import BadJSON, DepthExceeded, Payload, as_text, compact, read_object
from streamfold.providers import _usage
from streamfold.providers._closes import close_error
from streamfold.providers._errors import provider_error
from streamfold.providers._live import LiveNormalizer, TurnAnswer
from streamfold.providers._open_blocks import OpenBlock
from streamfold.providers._table import id_of, text_of

__all__ = ["GeminiLiveNormalizer"]

Members: TypeAlias = dict[str, Any]
B = TypeVar("B", bound=OpenBlock)

STATUSES_OF_AN_END: Final = frozenset({"", "INTERACTION_STATUS_UNSPECIFIED", "IDLE", "REQUIRES_ACTION"})
"""What ``interactionStatus`` may be beside a ``turnComplete`` that is the end; any other (IN_PROGRESS): the model goes
on in the background, and will speak again."""

REASONS: Final[Mapping[str, StopReason]] = {
    "": "end",
    "TURN_COMPLETE_REASON_UNSPECIFIED": "end",
    "NEED_MORE_INPUT": "end",
    "RESPONSE_REJECTED": "refusal",
}
"""What ``turnCompleteReason`` means; of the rest those that hold a word of :data:`REFUSALS` are a refusal, all others
``other``."""

REFUSED_BY: Final = frozenset({1007, 1008, 1011})
"""Close codes by which a handle is refused: one that is unknown or too old, or whose session another socket holds."""

REFUSALS: Final = ("PROHIBITED", "SAFETY", "BLOCKLIST", "UNSAFE", "CELEBRITY", "PEOPLE", "MINORS")

_HALVES: Final = ("text",)
_MODEL: Final = ("text", "reasoning", "media", "model")  # tracks of what the model says
_ALTERNATE: Final = {"text": "reasoning", "reasoning": "text"}  # one ends where the other begins
_SILENT: Final = frozenset({"modelTurn", "outputTranscription", "inputTranscription", "interrupted", "turnComplete"})
_SILENT_AT_THE_END: Final = _SILENT | {"turnCompleteReason", "interactionStatus"}
_SILENT_IN_A_PART: Final = frozenset({"text", "thought", "inlineData", "functionCall"})
_OF_WORDS: Final = ("languageCode", "speakerLabel")  # hold for a whole block
_SILENT_IN_WORDS: Final = frozenset({"text", "finished", *_OF_WORDS})


class GeminiLiveNormalizer(LiveNormalizer):
    """Messages of Gemini Live to unified events, turn by turn."""

    surface = "gemini-live"
    terminal = "turnComplete"

    def _begin(self) -> None:
        super()._begin()
        self._tracks: dict[str, OpenBlock] = {}  # where what comes goes on; they run side by side
        self._usage: Members | None = None  # of the turn
        self._interrupted = False
        self._heard_only = False  # nothing of the turn came yet but what the user said
        self._fresh = True  # what the model says next is of a turn that has not begun
        self._finished = False  # its words are
        self._told = False  # by the client, of what it sends
        self._asked_by: str | None = None  # the handle that this connection began with, until it is taken

    def _message(self, payload: Payload) -> bool:
        message = read_object(payload, self.answer.max_depth, _HALVES)
        if message is None:
            return False
        known = False
        for name, read in MEMBERS.items():
            if name in message:
                known, self.answer.member = True, name
                read(self, message[name])
        self._complete(_object(message.get("serverContent")))
        if message.get("error") or (message.get("code") and not known):  # in no reference, and told all the same
            self._fail(provider_error(message.get("error"), message))
            return True
        if others := [name for name in message if name not in MEMBERS]:
            self.answer.raw(name=others[0], known=False)
        return known

    # -- turns --------------------------------------------------------------------------------------------------------

    def _current(self) -> TurnAnswer | None:
        """The turn that is open."""
        return self._turn if self._turn is not None and self._turn.number in self.open else None

    def _answering(self, *, goes_on: bool = False) -> TurnAnswer:
        """The turn in which the model speaks or calls.

        Args:
            goes_on: It does so after the calls that it made, so that they wait for nothing: it has their results, or
                does without. Sound and text stand in the order in which they were made, words of sound do not.
        """
        turn = self._heard()
        self._heard_only = False
        if goes_on and turn.waiting and not self._told:
            turn.answered(turn.waiting)
        return turn

    def _heard(self) -> TurnAnswer:
        """The turn that answers what the user says."""
        turn = self._current()
        if turn is None:
            self._close_late()
            self._tracks, self._usage = {}, None
            self._interrupted, self._heard_only, self._fresh, self._finished = False, True, False, False
            turn = self.open_turn()
        return turn

    def _spoken(self) -> TurnAnswer:
        """The turn of the words that the model speaks.

        They come late, after the end of their turn, unless something shows that another one has begun: what the user
        said, or that he has spoken, content of the model, an empty ``serverContent`` (newer models begin their turns
        with one), what the client sent, ``finished`` words, or a new connection.
        """
        turn = self._turn
        if turn is None or turn.number in self.open or turn.failed or self._fresh or self._finished:
            return self._answering()
        self.answer.about = turn.number
        return turn

    def _close_late(self) -> None:
        """Nothing more comes late."""
        if self._turn is not None:
            for block in list(self._turn.open.values()):
                self._turn.close(block)

    def _complete(self, content: Members) -> None:
        if not _ends(content):
            if content.get("turnComplete") is True:
                self._end_tracks(*_MODEL)
                self.answer.raw()
            return
        turn, word = self._answering(), text_of(content.get("turnCompleteReason"))
        if not self._interrupted:
            self._end_tracks(*self._tracks)
        self._end_tracks("user")
        reason = REASONS.get(word) or ("refusal" if any(part in word for part in REFUSALS) else "other")
        turn.stop(0, "cancelled" if self._interrupted else reason, word or None)
        self.end_turn(turn)
        self._fresh = False

    def _ends_well(self, turn: TurnAnswer, code: int | None) -> bool:
        """What the user said last and nobody answered is no answer that broke off."""
        if self._heard_only:
            self._give_up(turn)
        return self._heard_only

    def disconnected(self, code: int | None = None, reason: str = "") -> list[Event]:
        """The connection has ended; see :meth:`LiveNormalizer.disconnected`.

        One that ends before its ``setupComplete`` by one of :data:`REFUSED_BY` was refused its handle.
        """
        asked_by, self._asked_by = self._asked_by, None
        if asked_by is None or asked_by != self.handle or code not in REFUSED_BY:
            return super().disconnected(code, reason)
        out = self.answer.begin([])
        self.lose(close_error(code, reason, inside=False))
        self._forget_connection()
        return out

    def _give_up(self, turn: TurnAnswer) -> None:
        """The end of this turn will never come: what makes it cannot be taken up again."""
        self._end_tracks("user")
        turn.stop(0, "cancelled", None)
        self.end_turn(turn)

    def _forget_connection(self) -> None:
        self._close_late()
        self._fresh = True

    def _fail(self, error: ErrorEvent) -> None:
        super()._fail(error)
        self._fresh = True

    # -- members ------------------------------------------------------------------------------------------------------

    def _setup(self, value: Any) -> None:
        turn = self._current()
        if turn is not None:  # taken up on another connection: that restores what was said, and generates nothing
            self._give_up(turn)
        self._forget_connection()
        self._asked_by = None
        self.answer.about = None
        members = _object(value)
        self.tell(Session(id_of(members.get("sessionId")) or self.session.id))
        self._beside(members, {"sessionId"})

    def _content(self, value: Any) -> None:
        content = _object(value)
        if not content:
            self._fresh = True
            self.answer.raw()
            return
        if _ends(content):
            self._answering()  # a turn without content is one too: what else the message holds is of it
        self._words("user", content.get("inputTranscription"))
        parts = _object(content.get("modelTurn")).get("parts")
        for part in parts if isinstance(parts, list) else ():
            self._part(_object(part))
        self._words("model", content.get("outputTranscription"))
        if content.get("interrupted") is True:
            self._interrupt()
        silent = _SILENT_AT_THE_END if content.get("turnComplete") is True else _SILENT
        self._beside(content, silent)

    def _part(self, part: Members) -> None:
        text, data = part.get("text"), _object(part.get("inlineData"))
        if isinstance(text, str) and text and part.get("thought") is True:
            turn = self._answering(goes_on=True)
            turn.reasoning(self._track(turn, "reasoning", turn.open_reasoning), text)
        elif isinstance(text, str) and text:
            turn = self._answering(goes_on=True)
            turn.text(self._track(turn, "text", turn.open_text), text)
        if text_of(data.get("data")):
            self._media(text_of(data.get("mimeType")) or None, data["data"])
        if "functionCall" in part:
            self._call(part["functionCall"])
        signature = text_of(part.get("thoughtSignature"))
        if signature and self._turn is not None:
            self._turn.last_signature = signature
        self._beside(part, _SILENT_IN_A_PART)

    def _media(self, mime_type: str | None, data: str) -> None:
        turn = self._answering(goes_on=True)
        block = self._tracks.get("media")
        if block is not None and mime_type not in (None, getattr(block, "mime_type", None)):
            self._end_tracks("media")
        turn.media(self._track(turn, "media", lambda: turn.open_media(mime_type)), data)
        turn.said()

    def _words(self, source: Any, value: Any) -> None:
        words = _object(value)
        piece, finished = text_of(words.get("text")), words.get("finished") is True
        if piece:
            turn = self._heard() if source == "user" else self._spoken()
            meta = {name: words[name] for name in _OF_WORDS if isinstance(words.get(name), str)}
            block = self._tracks.get(source)
            if block is not None and {**(block.meta or {}), **meta} != (block.meta or {}):  # somebody else speaks
                self._end_tracks(source)
            opener = partial(turn.open_transcript, source, meta=meta or None)
            turn.transcript(self._track(turn, source, opener), piece, final=finished)
        if finished:
            self._end_tracks(source)
        if source == "model" and (piece or finished):
            self._finished = finished
        self._beside(words, _SILENT_IN_WORDS)

    def _interrupt(self) -> None:
        """The user broke in: what the model was saying is cut."""
        turn: TurnAnswer | None = self._current() or self._turn
        if turn is None:
            self.answer.raw()
            return
        if turn.number in self.open:
            self._interrupted, self._heard_only = True, False
        for kind in _MODEL:
            block = self._tracks.pop(kind, None)
            if block is not None:
                turn.cut(block)
        turn.out.append(Interrupted())

    def _calls_made(self, value: Any) -> None:
        calls = _object(value).get("functionCalls")
        for call in calls if isinstance(calls, list) else ():
            self._call(call)

    def _call(self, value: Any) -> None:
        """A whole call. One that comes by ``partialArgs``, which no server of this API sends, is not to be run."""
        members = _object(value)
        name, arguments = text_of(members.get("name")), members.get("args")
        if not members:
            self.answer.raw()
            return
        turn = self._answering()
        call = turn.open_call(id_of(members.get("id")), name or "function")
        if isinstance(arguments, dict) and arguments:
            turn.arguments(call, as_text(cast("Members", arguments)))
        self.finish_call(turn, call, incomplete=not name or "partialArgs" in members)
        self._beside(members, {"id", "name", "args"})

    def _cancellation(self, value: Any) -> None:
        ids = _object(value).get("ids")
        known = [id_ for id_ in ids if isinstance(id_, str)] if isinstance(ids, list) else []
        if not known or not self.take_back(known):
            self.answer.raw()

    def _totals(self, value: Any) -> None:
        """Running totals of the turn; those that come behind its end are its own too."""
        totals, turn = _object(value), self._current() or self._turn
        if turn is None or not totals:
            self.answer.raw()
            return
        if self._usage is not None and _usage.whole(totals.get("totalTokenCount")) is None:
            totals = {**self._usage, **{name: count for name, count in totals.items() if count is not None}}
        if totals != self._usage:
            self._usage = totals
            turn.report(_totals_of(totals))

    def _resumption(self, value: Any) -> None:
        """An update that is empty says that the session cannot be taken up as it is."""
        members = _object(value)
        handle = id_of(members.get("newHandle")) or None
        self.tell(Session(self.session.id, members.get("resumable") is True, handle), can_resume=True)
        self._beside(members, {"newHandle", "resumable"})

    def _leave(self, value: Any) -> None:
        self.go_away(_milliseconds(_object(value).get("timeLeft")))

    def _activity(self, value: Any) -> None:
        """The user began or ceased to speak. What the model says next answers him."""
        if _object(value).get("voiceActivityType") == "ACTIVITY_END":
            self._fresh = True
        self.answer.raw()

    def _nothing(self, value: Any) -> None:
        """Means nothing to an answer."""
        self.answer.raw()

    def _beside(self, members: Members, read: Container[str]) -> None:
        """What is there besides the members that were read has no meaning of its own."""
        if others := [name for name, value in members.items() if value is not None and name not in read]:
            self.answer.raw(name=others[0])

    # -- tracks -------------------------------------------------------------------------------------------------------

    def _track(self, turn: TurnAnswer, kind: str, opener: Callable[[], B]) -> B:
        """The block in which the track goes on."""
        block = self._tracks.get(kind)
        if block is None or block.index not in turn.open:
            if kind in _ALTERNATE:
                self._end_tracks(_ALTERNATE[kind])
            block = self._tracks[kind] = opener()
        return cast("B", block)

    def _end_tracks(self, *kinds: str) -> None:
        for kind in kinds:
            block = self._tracks.pop(kind, None)
            if block is not None and self._turn is not None:
                self._turn.close(block)

    # -- what the client sent -----------------------------------------------------------------------------------------

    def sent(self, message: Payload) -> None:
        """The client sent this: results of calls, or what opens another turn. See :meth:`LiveNormalizer.sent`."""
        self._told = True
        try:
            members = read_object(message, self.answer.max_depth) or {}
        except (BadJSON, DepthExceeded):
            return
        if "setup" in members:
            resumption = _either(_object(members["setup"]), "sessionResumption", "session_resumption")
            self._asked_by = id_of(resumption.get("handle")) or None
        results = _either(members, "toolResponse", "tool_response").get("functionResponses")
        ids = [id_of(_object(result).get("id")) for result in results] if isinstance(results, list) else []
        if ids and self._turn is not None:
            self._turn.answered(ids)
        said = _either(members, "clientContent", "client_content")
        live = _either(members, "realtimeInput", "realtime_input")
        if ids or said.get("turnComplete") is True or "text" in live or "activityEnd" in live:
            self._fresh = True


MEMBERS: Final[Mapping[str, Callable[[GeminiLiveNormalizer, Any], None]]] = {
    "setupComplete": GeminiLiveNormalizer._setup,
    "serverContent": GeminiLiveNormalizer._content,
    "toolCall": GeminiLiveNormalizer._calls_made,
    "toolCallCancellation": GeminiLiveNormalizer._cancellation,
    "usageMetadata": GeminiLiveNormalizer._totals,
    "sessionResumptionUpdate": GeminiLiveNormalizer._resumption,
    "goAway": GeminiLiveNormalizer._leave,
    "voiceActivity": GeminiLiveNormalizer._activity,
    "voiceActivityDetectionSignal": GeminiLiveNormalizer._nothing,
}
"""The members of a message, in the order in which they are read."""


def _ends(content: Members) -> bool:
    """Whether the turn is over, and not just a pause of a model that goes on in the background."""
    return content.get("turnComplete") is True and text_of(content.get("interactionStatus")) in STATUSES_OF_AN_END


def _totals_of(members: Members) -> Usage | None:
    """Thoughts are counted beside the output, and what tools read beside the input. Vertex has another word for it."""
    get = members.get
    tokens_in, total = _usage.whole(get("promptTokenCount")), _usage.whole(get("totalTokenCount"))
    tokens_out = _usage.whole(get("responseTokenCount"))
    outputs = get("responseTokensDetails")
    if tokens_out is None:
        tokens_out = _usage.whole(get("candidatesTokenCount"))
    if outputs is None:
        outputs = get("candidatesTokensDetails")
    thoughts, tools = _usage.whole(get("thoughtsTokenCount")), _usage.whole(get("toolUsePromptTokenCount"))
    if tools is not None:
        tokens_in = (tokens_in or 0) + tools
    if thoughts is not None:
        tokens_out = (tokens_out or 0) + thoughts
    if total is None and tokens_in is not None and tokens_out is not None:
        total = tokens_in + tokens_out
    if tokens_in is None and tokens_out is None and total is None:
        return None
    inputs = get("promptTokensDetails")
    return Usage(
        tokens_in,
        tokens_out,
        total,
        thoughts,
        _usage.whole(get("cachedContentTokenCount")),
        None,
        _count_of(inputs, "AUDIO"),
        _count_of(outputs, "AUDIO"),
        _count_of(inputs, "IMAGE"),
        _count_of(outputs, "IMAGE"),
        raw=compact(members),
    )


def _count_of(counts: Any, modality: str) -> int | None:
    for count in counts if isinstance(counts, list) else ():
        if _object(count).get("modality") == modality:
            return _usage.whole(_object(count).get("tokenCount"))
    return None


_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)


def _milliseconds(duration: Any) -> int | None:
    """Google's JSON form of a duration: ``9.500s``."""
    match = _SECONDS.fullmatch(duration) if isinstance(duration, str) else None
    return round(float(match[1]) * 1000) if match else None


def _either(members: Members, name: str, other: str) -> Members:
    return _object(members.get(name)) or _object(members.get(other))


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else {}
