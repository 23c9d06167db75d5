"""Which dialect a stream speaks, told by the shape of its first payload. The one module that composes normalisers.

``auto`` knows every shape; ``xai`` and ``gemini`` are vendors whose endpoints speak several dialects, so that one name
serves all of them. What such a vendor does otherwise than others is no matter of shape: the dialects read it as
something that any sender may do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, Unpack, cast

import msgspec

from streamfold import limits
from streamfold.events import ErrorEvent, Event
from streamfold.payloads import (
    DECODE_ERRORS,
    BadJSON,
    DepthExceeded,
    Payload,
    compact,
    depth_exceeds,
    is_done,
    is_keep_alive,
    read_object,
)
from streamfold.providers._answer import NormalizerSettings
from streamfold.providers._aws import is_exception, unwrapped
from streamfold.providers._errors import provider_error
from streamfold.providers._sessions import told_by
from streamfold.providers._table import BaseNormalizer, CloseHow, Cursor, More, Normalizer, text_of
from streamfold.providers.registry import normalizer, of_messages

__all__ = [
    "AutoMessagesNormalizer",
    "AutoNormalizer",
    "BedrockAnthropicNormalizer",
    "BedrockInvokeNormalizer",
    "GeminiNormalizer",
    "XAINormalizer",
    "shape_of",
]

Members: TypeAlias = dict[str, Any]

_ANTHROPIC: Final = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    }
)


def _is_chat(members: Members, kind: str) -> bool:
    return "choices" in members or text_of(members.get("object")).startswith(("chat.completion", "text_completion"))


def _is_responses(members: Members, kind: str) -> bool:
    if kind == "error":
        return "sequence_number" in members
    return kind.startswith("response.") or members.get("object") == "response"


def _is_anthropic(members: Members, kind: str) -> bool:
    if kind == "error":
        return isinstance(members.get("error"), dict)
    return kind in _ANTHROPIC or (kind == "message" and "role" in members)


def _is_interactions(members: Members, kind: str) -> bool:
    if members.get("object") == "interaction":
        return True
    own = text_of(members.get("event_type"))
    events = members.get("events")
    if isinstance(events, list) and events and not own:  # a message of a WebSocket
        first = events[0]
        return isinstance(first, dict) and "event_type" in first
    return own in ("error", "reconnection_required") or (own or kind).startswith(("interaction.", "step.", "content."))


def _is_generate_content(members: Members, kind: str) -> bool:
    return "candidates" in members or "promptFeedback" in members or "modelVersion" in members


_CONVERSE: Final = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop")


def _is_converse(members: Members, kind: str) -> bool:
    if kind in _CONVERSE or is_exception(kind) or "contentBlockIndex" in members:
        return True
    return any(isinstance(members.get(name), dict) for name in _CONVERSE)  # wrapped by name, as Nova does


_COHERE: Final = frozenset(
    {
        "message-start",
        "content-start",
        "content-delta",
        "content-end",
        "tool-plan-delta",
        "tool-call-start",
        "message-end",
    }
)


def _is_cohere(members: Members, kind: str) -> bool:
    return kind in _COHERE


def _is_ollama(members: Members, kind: str) -> bool:
    says = isinstance(members.get("message"), dict) or isinstance(members.get("response"), str)
    return isinstance(members.get("done"), bool) and says


_BEDROCK_TEXTS: Final = (
    # members that stand together in the payloads of a model of Bedrock's, and nowhere else
    {"outputText"},
    {"generation", "generation_token_count"},
    {"completion", "stop_reason"},
    {"is_finished"},
)


def _is_bedrock_text(members: Members, kind: str) -> bool:
    if any(telling <= members.keys() for telling in _BEDROCK_TEXTS) or "text" in _first(members.get("generations")):
        return True
    first = _first(members.get("outputs")) or _first(members.get("choices"))
    return {"text", "stop_reason"} <= first.keys() and "finish_reason" not in first


def _first(items: Any) -> Members:
    """The first of a list of objects."""
    first: Any = items[0] if isinstance(items, list) and items else None
    return cast("Members", first) if isinstance(first, dict) else {}


SHAPES: Final[Mapping[str, Callable[[Members, str], bool]]] = {
    # provider -> whether a payload (its members, and its type or SSE event name) is of its dialect; the first counts
    "openai-responses": _is_responses,
    "anthropic": _is_anthropic,
    "bedrock-text": _is_bedrock_text,
    "openai-chat": _is_chat,
    "gemini-interactions": _is_interactions,
    "gemini-generate-content": _is_generate_content,
    "bedrock-converse": _is_converse,
    "cohere": _is_cohere,
    "ollama": _is_ollama,
}


def shape_of(members: Members, event_name: str | None, among: Iterable[str] = SHAPES) -> str | None:
    """The provider whose dialect the payload speaks, None if none can be told."""
    kind = text_of(members.get("type")) or event_name or ""
    for provider in among:
        if SHAPES[provider](members, kind):
            return provider
    return None


class _Held(NamedTuple):
    """A payload that waits for its dialect, with what its frame said."""

    payload: Payload
    name: str | None
    offset: int | None


class AutoNormalizer(BaseNormalizer):
    """Holds payloads until one of them shows its dialect, then hands all to that dialect's normaliser.

    Pings and payloads of no known shape wait for one that has a shape; all that this sets free is paired with it. If
    eight payloads or 64 KiB hold none, the surface is ``unknown``: every payload comes out as ``raw``, and the stream
    ends truncated.
    """

    surface = "unknown"
    terminal = "a sign of any surface that is known"
    among: tuple[str, ...] = tuple(SHAPES)
    """The dialects it may be, in the order in which they are asked."""
    ends_in_done = "openai-chat"
    """Whose stream one is that says ``[DONE]`` and nothing else."""

    def __init__(self, *, after: Cursor | None = None, **settings: Unpack[NormalizerSettings]) -> None:
        super().__init__(after=after, **settings)
        self._after, self._settings = after, settings

    def _begin(self) -> None:
        self._held: list[_Held] = []
        self._held_bytes = 0
        self._out: list[Event] = []  # of the batch
        self._unknown = False
        self._wrapped = False  # the payloads come inside others

    def feed(self, payloads: Iterable[Payload]) -> list[Event]:
        """The events that these payloads mean. See :meth:`BaseNormalizer.feed`."""
        if self.chosen is not None:
            return self.chosen.feed(payloads)
        came = list(payloads)
        if came and not self._held and unwrapped(came[0]) is came[0] and self._tells_at_once(came[0]):
            return self._pass_on(came)
        batch = list(map(unwrapped, came))
        self._wrapped = self._wrapped or any(map(operator.is_not, batch, came))
        events = self._feed(batch)
        if self._wrapped and self.chosen is not None:
            self.chosen.unwrap = unwrapped
        return events

    def _feed(self, batch: list[Payload]) -> list[Event]:
        """The same for payloads that stand alone."""
        answer = self.answer
        if batch and not self._held and self._tells_at_once(batch[0]):
            return self._pass_on(batch)
        out = self._out = answer.begin([])
        for number, payload in enumerate(batch):
            if self._unknown or answer.ended:
                answer.out = out  # the batch has begun, though the end of an answer lets go of it
                super().read(iter((payload,)), out, None)
                continue
            before = len(out)
            self._look(self._hold(payload, number))
            if len(out) != before + 1:
                answer.spans.append((before, len(out) - before))
                answer.surplus += len(out) - before - 1
            if self.chosen is not None:
                self._hand_over(self.chosen, batch, number + 1)
                break
        return out

    def _tells_at_once(self, payload: Payload) -> bool:
        """Whether the very first payload shows the dialect, as nearly always: then nothing is held and set free."""
        if self._unknown or self.answer.ended:
            return False
        try:
            members = read_object(payload, self.answer.max_depth)
        except (BadJSON, DepthExceeded):
            return False
        name_of = self.answer.name_of
        provider = self._told_by(members, name_of(0) if name_of else None) if members else None
        return provider is not None and self._takes(provider)

    def _takes(self, provider: str) -> bool:
        self.chosen = self._made(provider)
        return True

    def _told_by(self, members: Members, name: str | None) -> str | None:
        """The provider whose dialect a payload speaks, None if none can be told."""
        return shape_of(members, name, self.among)

    def _made(self, provider: str) -> Normalizer:
        return normalizer(provider, after=self._after, **self._settings)

    def _pass_on(self, batch: list[Payload]) -> list[Event]:
        """The whole batch is the chosen one's, and so is what it says of its events."""
        chosen, answer = self.chosen, self.answer
        assert chosen is not None
        chosen.answer.name_of, chosen.answer.offset_of = answer.name_of, answer.offset_of
        events = chosen.feed(batch)
        answer.spans, answer.surplus = chosen.answer.spans, chosen.answer.surplus
        return events

    def read(self, payloads: Iterator[Payload], out: list[Event], more: More | None) -> None:
        """See :meth:`BaseNormalizer.read`."""
        out.extend(self.feed(payloads))

    def close(self, how: CloseHow = "eof") -> list[Event]:
        """The end of input; what is still held comes out as ``raw``."""
        if self.chosen is not None:
            return self.chosen.close(how)
        out = self._out = self.answer.begin([])
        if how != "cancel" and not self.answer.ended:
            self._give_up()
            self._ended(how)
        self.answer.ended = True
        return out

    def fail(self, error: ErrorEvent) -> list[Event]:
        """End the answer with an error found below the payloads."""
        if self.chosen is not None:
            return self.chosen.fail(error)
        out = self._out = self.answer.begin([])
        if not self.answer.ended:
            self._give_up()
            self.answer.fail(error)
        return out

    def _mean(self, payload: Payload) -> bool:
        read_object(payload, self.answer.max_depth)  # for its faults alone
        return False

    def _hold(self, payload: Payload, number: int) -> _Held:
        name_of, offset_of = self.answer.name_of, self.answer.offset_of
        held = _Held(payload, name_of(number) if name_of else None, offset_of(number) if offset_of else None)
        self._held.append(held)
        self._held_bytes += _size(payload)
        return held

    def _look(self, held: _Held) -> None:
        """Choose by this payload, give up, or go on waiting."""
        try:
            members = read_object(held.payload, self.answer.max_depth) or {}
        except (BadJSON, DepthExceeded):
            if is_done(held.payload):
                self._choose(self.ends_in_done)
            elif not is_keep_alive(held.payload) or self._held_enough():
                self._give_up()  # which meets the fault again, and says so
            return
        provider = self._told_by(members, held.name)
        if provider is not None:
            self._choose(provider)
        elif members.get("error") and "type" not in members:  # an error body: every vendor's looks alike
            self._held.pop()
            self._give_up()
            self.answer.fail(provider_error(members["error"], members))
        elif self._held_enough():
            self._give_up()

    def _held_enough(self) -> bool:
        return len(self._held) >= limits.MAX_SNIFF_PAYLOADS or self._held_bytes > limits.MAX_SNIFF_BYTES

    def _choose(self, provider: str) -> None:
        self.chosen = self._made(provider)
        held, self._held = self._held, []
        self.chosen.answer.name_of = lambda number: held[number].name
        self.chosen.answer.offset_of = lambda number: held[number].offset
        self._out.extend(self.chosen.feed([h.payload for h in held]))

    def _hand_over(self, chosen: Normalizer, batch: list[Payload], first: int) -> None:
        """The rest of the batch, and all batches to come, are the chosen one's."""
        answer, name_of, offset_of = self.answer, self.answer.name_of, self.answer.offset_of
        chosen.answer.name_of = (lambda number: name_of(first + number)) if name_of else None
        chosen.answer.offset_of = (lambda number: offset_of(first + number)) if offset_of else None
        before = len(self._out)
        self._out.extend(chosen.feed(batch[first:]))
        answer.spans.extend((before + at, count) for at, count in chosen.answer.spans)
        chosen.answer.name_of, chosen.answer.offset_of = name_of, offset_of

    def _give_up(self) -> None:
        """The surface is unknown: all that is held comes out as it came, at once."""
        self._unknown = True
        held, self._held = self._held, []
        answer = self.answer
        spans, surplus, names, offsets = list(answer.spans), answer.surplus, answer.name_of, answer.offset_of
        for waiting in held:
            answer.name_of, answer.offset_of = _always(waiting.name), _always(waiting.offset)
            super().read(iter((waiting.payload,)), self._out, None)
        answer.spans, answer.surplus, answer.name_of, answer.offset_of = spans, surplus, names, offsets


class AutoMessagesNormalizer(AutoNormalizer):
    """Whole messages, those of sessions too: see :func:`streamfold.providers._sessions.told_by`.

    What Gemini Live and Lyria both begin with waits for the next message, and so do pings, whosever they are.
    """

    def _told_by(self, members: Members, name: str | None) -> str | None:
        if members.keys() <= _OF_SETUP or members.get("type") == "ping":
            return None
        told = told_by(members)
        return super()._told_by(members, name) if told is None else told.provider

    def _made(self, provider: str) -> Normalizer:
        return of_messages(provider, after=self._after, **self._settings)


_OF_SETUP: Final = frozenset({"setupComplete"})


class XAINormalizer(AutoNormalizer):
    """xAI: Chat Completions, Responses or Anthropic's Messages, as the endpoint has it."""

    among = ("openai-responses", "anthropic", "openai-chat")


class GeminiNormalizer(AutoNormalizer):
    """Gemini: ``generateContent`` or Interactions, as the endpoint has it."""

    among = ("gemini-generate-content", "gemini-interactions")
    ends_in_done = "gemini-interactions"

    def _tells_at_once(self, payload: Payload) -> bool:
        """Nearly every chunk of ``generateContent`` begins with its candidates: its values need not be looked at."""
        if type(payload) is bytes and payload[1:16].lstrip().startswith(b'"candidates"') and payload[:1] == b"{":
            try:
                _SKIM(payload)
            except DECODE_ERRORS:
                return super()._tells_at_once(payload)
            if not (self._unknown or self.answer.ended or depth_exceeds(payload, self.answer.max_depth)):
                return self._takes("gemini-generate-content")
        return super()._tells_at_once(payload)


_SKIM: Final = msgspec.json.Decoder(msgspec.Raw).decode  # checks the grammar of the whole text, makes no values


def _size(payload: Payload) -> int:
    """How many bytes the payload has as JSON text, whichever way it comes."""
    if isinstance(payload, bytes):
        return len(payload)
    return len((payload if isinstance(payload, str) else compact(payload)).encode("utf-8", "replace"))


class BedrockInvokeNormalizer(AutoNormalizer):
    """InvokeModelWithResponseStream: the dialect of whatever model it is, inside ``chunk`` payloads."""

    among = ("anthropic", "bedrock-converse", "bedrock-text", "openai-chat")


class BedrockAnthropicNormalizer(AutoNormalizer):
    """Anthropic's models there: Messages, or the text completions of old ones."""

    among = ("anthropic", "bedrock-text")
    ends_in_done = "anthropic"


V = TypeVar("V")


def _always(value: V) -> Callable[[int], V]:
    return lambda _: value
