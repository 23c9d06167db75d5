"""OpenAI Chat Completions, and the servers that speak its dialect.

Reads against ``object: "chat.completion.chunk"`` of the API reference and the dialect table of some thirty hosts. No
vendor is asked for by name: each rule reads the members that are there. One text, one refusal and one reasoning block
a choice, as the message that the chunks add up to has one member for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import msgspec

from streamfold.blocks import Citation
from streamfold.events import ErrorEvent, Event, ReasoningDelta, StopReason, TextDelta, ToolCallDelta
from streamfold.payloads import DECODE_ERRORS, Payload, Reader, compact, depth_exceeds, read_object
from streamfold.pieces import MANY, Pieces
from streamfold.providers import _usage
from streamfold.providers._errors import error_body, provider_error
from streamfold.providers._fragments import Call, Fragments
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenMedia, OpenReasoning, OpenTranscript
from streamfold.providers._reasoning_details import DetailsEntry, ReasoningDetails
from streamfold.providers._table import END, BaseNormalizer, More, Say, text_of, whole_number

__all__ = ["OpenAIChatNormalizer"]

B = TypeVar("B", bound=OpenBlock)
Members: TypeAlias = dict[str, Any]

FINISH_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": "end",
    "length": "length",
    "model_length": "length",  # Mistral
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
    "sensitive": "refusal",  # Z.ai
}
"""What ``finish_reason`` means; any other word is ``other``."""
_BROKE_OFF: Final = ("error", "insufficient_system_resource", "network_error")  # Mistral, DeepSeek, Z.ai

_OBJECTS: Final = ("chat.completion.chunk", "chat.completion", "text_completion")  # a tuple: it may be asked of a list
_TEXTS: Final = ("content", "reasoning_content", "reasoning", "refusal")
_HALVES: Final = frozenset({*_TEXTS, "text", "thinking", "arguments", "input", "transcript"})

# -- the hot shapes ---------------------------------------------------------------------------------------------------
# Nearly every chunk carries one piece of one member of choice 0 and nothing else. These structs admit that and no more
# (what must be absent is typed None), so that the decoder proves the shape in C; all else it refuses, and the general
# way below reads it. gc=False: they hold no cycle and are dropped at once. Each is made when a stream first needs it.

_Blank: TypeAlias = Literal[""] | None
_ABSENT: Final = (
    *("tool_calls", "function_call", "audio", "images", "annotations"),
    *("reasoning_details", "thinking_blocks", "reasoning_encrypted"),
)
Decode: TypeAlias = Callable[[bytes], Any]


def _struct(name: str, fields: list[Any], **settings: Any) -> Any:
    return msgspec.defstruct(name, fields, gc=False, kw_only=True, **settings)


def _absent(*names: str) -> list[Any]:
    return [(name, None, None) for name in names]


def _blank(*names: str) -> list[Any]:
    return [(name, _Blank, None) for name in names]


class _Function(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    arguments: str
    name: _Blank = None


class _Fragment(msgspec.Struct, gc=False, forbid_unknown_fields=True):  # what nobody knows is kept with the call
    index: int
    function: _Function
    id: _Blank = None
    type: Any = None


class _Detail(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    text: str
    type: Any = None
    index: Any = None
    format: Any = None
    id: _Blank = None
    signature: _Blank = None
    data: None = None


_DETAILS: Final = ("reasoning_details", tuple[_Detail])
_HOT: Final[Mapping[str, Any]] = {  # members that a chunk brings something of: the type of the first
    "content": str,
    "reasoning_content": str,
    "reasoning": str,
    "reasoning_content, reasoning_details": str,
    "reasoning, reasoning_details": str,
    "refusal": str,
    "tool_calls": tuple[_Fragment],
    "text": str,  # of the legacy completions endpoint
}


@cache
def _hot(shape: str, unnamed: tuple[str, ...]) -> Decode:
    """What decodes chunks of this shape.

    Args:
        shape: One of ``_HOT``.
        unnamed: What the answer has not been told yet of its id and model, which the chunk must not tell either.
    """
    choice: list[Any] = [("index", Literal[0], 0), ("finish_reason", _Blank, None), *_absent("usage")]
    if shape == "text":  # there is no delta
        choice += [("piece", str), *_absent("delta", "message")]
    else:
        member, details = shape.split(", ")[0], [_DETAILS] if ", " in shape else []
        given = {member, *(name for name, _ in details)}
        delta = [("piece", _HOT[shape]), *details, *_blank(*(name for name in _TEXTS if name not in given))]
        delta += _absent(*(name for name in _ABSENT if name not in given))
        choice.append(("delta", _struct("Delta", delta, rename={"piece": member})))
    one: Any = _struct("Choice", choice, rename={"piece": "text"})
    chunk: list[Any] = [*_blank(*unnamed), ("choices", tuple[one])]
    chunk += _absent("usage", "error", "x_groq", "citations", "search_results")
    return msgspec.json.Decoder(_struct("Chunk", chunk)).decode


# What reads another chunk of the same members, given where its piece goes. A chunk that nests too deep is longer than
# ``size`` bytes, and goes the general way.


def _more_text(decode: Decode, say: Say, pieces: Pieces, size: int) -> More:
    tail = pieces.tail_to_add_to()

    def more(payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
        nonlocal tail
        for payload in payloads:
            if type(payload) is not bytes or len(payload) > size:
                return payload
            try:
                choice = decode(payload).choices[0]
            except DECODE_ERRORS:
                return payload
            piece = (choice.delta or choice).piece  # a legacy completion has no delta
            if not piece:
                return payload
            tail.append(piece)
            add(say(piece))
        if len(tail) > MANY:
            tail = pieces.tail_to_add_to()
        return END

    return more


def _more_detailed(decode: Decode, say: Say, pieces: Pieces, entry: DetailsEntry, size: int) -> More:
    tail = pieces.tail_to_add_to()

    def more(payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
        nonlocal tail
        for payload in payloads:
            if type(payload) is not bytes or len(payload) > size:
                return payload
            try:
                delta = decode(payload).choices[0].delta
            except DECODE_ERRORS:
                return payload
            piece = delta.piece
            details = delta.reasoning_details
            if not piece or not details or not entry.goes_on(piece, details[0]):
                return payload
            tail.append(piece)
            add(say(piece))
        if len(tail) > MANY:
            tail = pieces.tail_to_add_to()
        return END

    return more


def _more_arguments(decode: Decode, say: Say, pieces: Pieces, wire_index: object, size: int) -> More:
    tail = pieces.tail_to_add_to()

    def more(payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
        nonlocal tail
        for payload in payloads:
            if type(payload) is not bytes or len(payload) > size:
                return payload
            try:
                fragment = decode(payload).choices[0].delta.piece[0]
            except DECODE_ERRORS:
                return payload
            piece = fragment.function.arguments
            if not piece or fragment.index != wire_index:
                return payload
            tail.append(piece)
            add(say(piece))
        if len(tail) > MANY:
            tail = pieces.tail_to_add_to()
        return END

    return more


# -- what all other chunks are read into ------------------------------------------------------------------------------


class _Choice(msgspec.Struct, gc=False):
    index: Any = 0
    delta: Any = None
    message: Any = None
    text: Any = None
    finish_reason: Any = None
    usage: Any = None


class _Chunk(msgspec.Struct, gc=False):
    id: Any = None
    type: Any = None
    event_type: Any = None
    object: Any = None
    model: Any = None
    choices: tuple[_Choice, ...] | None = None
    usage: Any = None
    x_groq: Any = None
    citations: Any = None
    search_results: Any = None
    cost: Any = None
    error: Any = None


_CHUNK: Final = Reader(_Chunk, _HALVES)
_DECODE: Final = _CHUNK.decode


class _OpenChoice:
    """What is open of one choice. What most choices never have stands on the class."""

    finished = False
    calls: Fragments | None = None
    text: OpenBlock | None = None
    refusal: OpenBlock | None = None
    reasoning: OpenReasoning | None = None
    details: ReasoningDetails | None = None
    media: OpenMedia | None = None
    transcript: OpenTranscript | None = None
    audio: Members | None = None  # id and expires_at, for who wants to refer to the audio later

    def __init__(self, index: int) -> None:
        self.index = index


class OpenAIChatNormalizer(BaseNormalizer):
    """Chunks of Chat Completions, of any dialect, to unified events."""

    surface = "openai-chat"
    terminal = "a finish reason or [DONE]"

    def _begin(self) -> None:
        self._choices: dict[int, _OpenChoice] = {}
        self._usage: Members | None = None
        self._sources: list[tuple[str, str | None]] = []  # what the whole answer rests on (Perplexity, xAI)
        self._cited = 0
        self._shape = ""  # the members that the chunk brings something of
        self._call: Call | None = None  # that its fragment went to
        self._call_index: object = None

    # -- a chunk ------------------------------------------------------------------------------------------------------

    def _mean(self, payload: Payload) -> bool:
        self.more, self._shape = None, ""
        answer = self.answer
        chunk: _Chunk | None = None
        if type(payload) is bytes:
            if payload[:6] == b"[DONE]":
                return self._sentinel()
            if len(payload) <= self._shallow or not depth_exceeds(payload, answer.max_depth):
                try:
                    chunk = _DECODE(payload)
                    if chunk.type is None is chunk.event_type and type(chunk.object) is str:
                        answer.kind = chunk.object
                except DECODE_ERRORS:
                    pass
        if chunk is None:
            chunk = _CHUNK.read(payload, answer.max_depth)
            if chunk is None:
                return False
        if answer.id is None or answer.model is None:  # the first that is named counts: Groq's compound ids change
            answer.identify(answer.id or chunk.id, answer.model or chunk.model)
        choices, usage = chunk.choices or (), chunk.usage
        if usage or chunk.x_groq is not None:
            self._read_usage(chunk)
        fresh = (chunk.citations or chunk.search_results) is not None and self._read_sources(
            chunk.citations, chunk.search_results
        )
        known = chunk.choices is not None or chunk.object in _OBJECTS
        failed = chunk.error or (not choices and "error" in (chunk.object, answer.event_name()))
        finished = False
        for choice in choices:
            delta = choice.message if choice.delta is None and chunk.object == "chat.completion" else choice.delta
            state = self._choice(choice, delta)
            reason = choice.finish_reason
            if reason and type(reason) is str and not failed:
                self._finish(state, reason)
                finished = True
        if fresh and not self._cite_sources():
            answer.raw(name="citations", known=known)
        if failed:
            members = read_object(payload, None) or {}
            self._fail(error_body(members) or provider_error(None, members))
            return True
        if finished:
            answer.said()
        elif not choices and not usage:  # Azure's filter results, llama.cpp's progress
            answer.raw(name="choices", known=known)
        elif self._shape and not usage and len(choices) == len(self._choices) == 1:
            self._warm()
        return known

    def _choice(self, choice: _Choice, delta: Any) -> _OpenChoice:
        index = choice.index
        if type(index) is not int or index < 0:
            index = max(_usage.whole(index) or 0, 0)
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _OpenChoice(index)
            self.answer.hold(len(self._choices))
        if type(delta) is dict:
            members: Members = delta
            names = [name for name, value in members.items() if value and name in _DELTA]
            for name in sorted(names, key=_ORDER.__getitem__) if len(names) > 1 else names:
                _DELTA[name](self, state, members[name], members)
        elif choice.text and isinstance(choice.text, str):  # the legacy completions endpoint
            self._text(state, choice.text)
            self._shape = "text"
        if self._sources:
            self._cite_sources()
        if choice.usage:  # Moonshot
            self._merge_usage(choice.usage)
        return state

    def _finish(self, state: _OpenChoice, reason: str) -> None:
        self.answer.stop(state.index, FINISH_REASONS.get(reason, "other"), reason)
        self._finish_choice(state)
        if state.calls is not None:
            state.calls.finish_whole(cut=self._broke_off(state))

    def _broke_off(self, state: _OpenChoice) -> bool:
        """Whether the reason for the choice's end is that it could not go on."""
        stop = self.answer.stops.get(state.index)
        return stop is not None and (stop.reason == "length" or stop.raw in _BROKE_OFF)

    def _finish_choice(self, state: _OpenChoice) -> None:
        """A finish reason, or the terminal sign: text is whole. What comes later opens new blocks."""
        self._settle(state)
        state.finished = True
        for block in (state.reasoning, state.text, state.refusal, state.media, state.transcript):
            if block is not None:
                self.answer.close(block)
        state.text = state.refusal = state.reasoning = state.details = state.media = state.transcript = None

    def _finish_calls(self, state: _OpenChoice) -> None:
        """The terminal sign: so are the calls, but for those that the tokens cut."""
        if state.calls is not None:
            state.calls.finish(cut=self._broke_off(state))

    def _settle(self, state: _OpenChoice) -> None:
        """Give the blocks what stands beside their text."""
        if state.reasoning is not None and state.details is not None:
            state.details.settle(state.reasoning)
        if state.audio:
            for block in (state.media, state.transcript):
                if block is not None:
                    block.meta = {"audio": state.audio}

    def _warm(self) -> None:
        """Let the next chunk take the short way, if it is another piece of the same: its shape is proven then."""
        state, shape, answer, size = self._choices.get(0), self._shape, self.answer, self._shallow
        if state is None or shape not in _HOT or not self.hot:
            return
        unnamed = (*(() if answer.id else ("id",)), *(() if answer.model else ("model",)))
        decode = _hot(shape, unnamed)
        match shape:
            case "content" | "text" | "refusal":
                text = self._open(state.refusal if shape == "refusal" else state.text)
                if text is not None:
                    self.more = _more_text(decode, partial(TextDelta, text.index), text, size)
            case "tool_calls":
                call, index = self._to_add_to(state), self._call_index
                if call is not None:
                    say = partial(ToolCallDelta, call.index, call.id)
                    self.more = _more_arguments(decode, say, call, index, size)
            case _:
                block, entry = self._open(state.reasoning), state.details.last if state.details else None
                if block is not None and block.parts:
                    pieces, thought = block.parts[0], partial(ReasoningDelta, block.index)
                    if ", " not in shape:
                        self.more = _more_text(decode, thought, pieces, size)
                    elif entry is not None and type(entry.members.get("index")) is int:
                        self.more = _more_detailed(decode, thought, pieces, entry, size)

    def _to_add_to(self, state: _OpenChoice) -> OpenCall | None:
        """The call that the fragment went to, if one of its index alone goes there too, unlooked at."""
        call, index = self._call, self._call_index
        if call is None or type(index) is not int or state.calls is None or state.calls.at(index) is not call:
            return None
        found = self._open(call.open)
        return found if found is not None and found.scanner is None else None

    def _open(self, block: B | None) -> B | None:
        """The block, if a piece may go straight to it: it is open, and no half of a character is waiting."""
        return block if block is not None and not block.half and block.index in self.answer.open else None

    # -- members of a delta -------------------------------------------------------------------------------------------

    def _content(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if isinstance(value, str):
            self._text(state, value)
            self._shape = "content"
            return
        for part in value if isinstance(value, list) else ():
            self._content_part(state, part)

    def _content_part(self, state: _OpenChoice, part: Any) -> None:
        """One entry of a content list (Mistral; Databricks for Claude)."""
        if isinstance(part, str):
            self._text(state, part)
        elif isinstance(part, dict):
            members = cast("Members", part)
            match members.get("type"):
                case "text":
                    self._text(state, text_of(members.get("text")))
                case "thinking":
                    self._think(state, _joined(members.get("thinking")), {"member": "content", "form": "thinking"})
                case "reasoning":
                    self._think(state, _joined(members.get("summary")), {"member": "content", "form": "reasoning"})
                    self._sign(state, _objects(members.get("summary")))
                case "image_url":
                    self._image(state, members)
                case _:
                    self.answer.raw(name="content")

    def _text(self, state: _OpenChoice, piece: str) -> None:
        if piece:
            if state.text is None:
                state.text = self.answer.open_text("text", state.index)
            self.answer.text(state.text, piece)

    def _refuse(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if isinstance(value, str):
            if state.refusal is None:
                state.refusal = self.answer.open_text("refusal", state.index)
            self.answer.text(state.refusal, value)
            self._shape = "refusal"

    def _think(self, state: _OpenChoice, piece: str, meta: Members | None = None) -> None:
        """``meta``: where it stood, if not in ``reasoning_content``: there it has to go back."""
        if piece:
            self.answer.reasoning(self._reasoning_block(state, meta), piece)

    def _reasoning_block(self, state: _OpenChoice, meta: Members | None = None) -> OpenReasoning:
        if state.reasoning is None:
            state.reasoning = self.answer.open_reasoning(state.index, meta)
        return state.reasoning

    def _sign(self, state: _OpenChoice, summary: list[Members]) -> None:
        """Databricks passes Claude's signature on with the summary."""
        for signature in (text_of(entry.get("signature")) for entry in summary):
            if signature and state.reasoning is not None:
                state.reasoning.signature = self.answer.last_signature = signature
                self.answer.raw(index=state.reasoning.index, name="content")

    def _reasoning_encrypted(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if isinstance(value, str):  # Venice
            self._reasoning_block(state).encrypted = value
            self.answer.raw(index=self._reasoning_block(state).index, name="reasoning_encrypted")

    def _reasoning_content(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if isinstance(value, str):
            self._think(state, value)
            self._shape = "reasoning_content"

    def _reasoning(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        """The same text can stand under both names: the first that is there counts."""
        if isinstance(value, str) and not text_of(delta.get("reasoning_content")):
            self._think(state, value, {"member": "reasoning"})
            self._shape = "reasoning"

    def _reasoning_details(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        self._structured_reasoning(state, "reasoning_details", value, delta)

    def _thinking_blocks(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        self._structured_reasoning(state, "thinking_blocks", value, delta)

    def _structured_reasoning(self, state: _OpenChoice, member: str, value: Any, delta: Members) -> None:
        """Its text counts only where the same does not stand beside it."""
        entries = _objects(value)
        if not entries:
            return
        beside = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning"))
        if not beside and (member == "reasoning_details" or not _objects(delta.get("reasoning_details"))):
            for entry in entries:
                self._think(state, text_of(entry.get("text") or entry.get("summary") or entry.get("thinking")))
        block = self._reasoning_block(state)
        if state.details is None:
            state.details = ReasoningDetails(self.answer)
        signature = state.details.add(member, entries)
        self._shape += f", {member}"
        if signature is not None:
            self.answer.last_signature = signature
            self.answer.raw(index=block.index, name=member)

    def _tool_calls(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if state.calls is None:
            state.calls = Fragments(self.answer, state.index)
        for entry in _objects(value if isinstance(value, list) else [value]):
            self._call, self._call_index = state.calls.add(entry), entry.get("index")
        self._shape = "tool_calls"

    def _function_call(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if isinstance(value, dict):  # the legacy form: one call a choice, without an id
            self._tool_calls(state, [{"index": 0, "function": value}], delta)

    def _audio(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        if not isinstance(value, dict):
            return
        audio = cast("Members", value)
        state.audio = state.audio or {}
        state.audio.update({name: audio[name] for name in ("id", "expires_at") if audio.get(name) is not None})
        data, words = text_of(audio.get("data")), text_of(audio.get("transcript"))
        if data:
            if state.media is None:
                state.media = self.answer.open_media(None, state.index)
            self.answer.media(state.media, data)
        if words:
            if state.transcript is None:
                state.transcript = self.answer.open_transcript("model", state.index)
            self.answer.transcript(state.transcript, words)

    def _images(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        for image in _objects(value):
            self._image(state, image)

    def _image(self, state: _OpenChoice, image: Members) -> None:
        """``{"type": "image_url", "image_url": {"url": …}}``, by data URL or by address (OpenRouter)."""
        source = image.get("image_url")
        url = text_of(cast("Members", source).get("url") if isinstance(source, dict) else source)
        head, comma, data = url.partition(",")
        inline = comma and head.startswith("data:") and head.endswith(";base64")
        if not url:
            self.answer.raw(name="images")
            return
        block = self.answer.open_media(head[5:-7] or None if inline else None, state.index)
        if inline:
            self.answer.media(block, data)
        else:
            self.answer.media_url(block, url)
        self.answer.close(block)

    def _annotations(self, state: _OpenChoice, value: Any, delta: Members) -> None:
        for annotation in _objects(value):
            source = annotation.get("url_citation")
            if not isinstance(source, dict) or state.text is None:
                self.answer.raw(name="annotations")
                continue
            source = cast("Members", source)
            start, end = whole_number(source.get("start_index")), whole_number(source.get("end_index"))
            placed = start is not None and end is not None and start < end  # OpenRouter sends 0, 0 for "nowhere"
            self.answer.cite(
                state.text,
                Citation(
                    state.text.index,
                    text_of(source.get("url")) or None,
                    text_of(source.get("title")) or None,
                    text_of(source.get("content")) or None,
                    start if placed else None,
                    end if placed else None,
                    compact(annotation),
                ),
            )

    # -- members of a chunk -------------------------------------------------------------------------------------------

    def _read_usage(self, chunk: _Chunk) -> None:
        """Usage stands on a chunk of its own, on the last, on every one, inside the choice, or under ``x_groq``."""
        groq, usage = chunk.x_groq, chunk.usage
        if isinstance(groq, dict):
            self._merge_usage(cast("Members", groq).get("usage"))
        if isinstance(chunk.cost, dict) and isinstance(usage, dict) and "cost" not in usage:
            usage = {**usage, "cost": chunk.cost}  # Venice keeps it beside
        self._merge_usage(usage)

    def _merge_usage(self, usage: Any) -> None:
        if type(usage) is dict and usage and usage != self._usage:
            self._usage = self.answer.totals(self._usage, usage)
            self.answer.report(_usage.read(self._usage))

    def _read_sources(self, urls: Any, results: Any) -> bool:
        """A growing list of addresses that every chunk repeats (Perplexity), or that the last one brings (xAI).

        Where it is left out, the results that name their addresses are the list.
        """
        if not urls:
            urls = [found.get("url") for found in _objects(results)]
        fresh = urls[len(self._sources) :] if isinstance(urls, list) else ()
        if not fresh:
            return False
        titles = {text_of(found.get("url")): text_of(found.get("title")) for found in _objects(results)}
        self._sources += [(text_of(url), titles.get(text_of(url)) or None) for url in fresh]
        self.answer.hold(len(self._sources))  # they may wait for a text for ever
        return True

    def _cite_sources(self) -> bool:
        """Whether all are told: they are of the text of choice 0, and wait where none is open."""
        if self._cited == len(self._sources):
            return True
        text = self._choices[0].text if 0 in self._choices else None
        if text is None:
            return False
        for url, title in self._sources[self._cited :]:
            if url:
                raw = compact({"url": url, "title": title})
                self.answer.cite(text, Citation(text.index, url, title, raw=raw))
            else:
                self.answer.raw(name="citations")
        self._cited = len(self._sources)
        return True

    # -- ends ---------------------------------------------------------------------------------------------------------

    def _sentinel(self) -> bool:
        for state in self._choices.values():
            self._finish_choice(state)
            self._finish_calls(state)
        self.answer.done()
        return True

    def _end_of_input(self) -> None:
        """Several vendors never send ``[DONE]``: a finish reason of every choice is as good."""
        if self._choices and all(state.finished for state in self._choices.values()):
            self._sentinel()
        else:
            super()._end_of_input()

    def _fail(self, error: ErrorEvent) -> None:
        for state in self._choices.values():
            if state.finished:
                self._finish_choice(state)
                self._finish_calls(state)
            else:
                self._settle(state)
                if state.calls is not None:
                    state.calls.cut()
        super()._fail(error)


_DELTA: Final[Mapping[str, Callable[[OpenAIChatNormalizer, _OpenChoice, Any, Members], None]]] = {
    # In the order in which a message holds them: a chunk can bring several.
    "reasoning_content": OpenAIChatNormalizer._reasoning_content,
    "reasoning": OpenAIChatNormalizer._reasoning,
    "reasoning_details": OpenAIChatNormalizer._reasoning_details,
    "thinking_blocks": OpenAIChatNormalizer._thinking_blocks,
    "reasoning_encrypted": OpenAIChatNormalizer._reasoning_encrypted,
    "refusal": OpenAIChatNormalizer._refuse,
    "content": OpenAIChatNormalizer._content,
    "images": OpenAIChatNormalizer._images,
    "annotations": OpenAIChatNormalizer._annotations,
    "audio": OpenAIChatNormalizer._audio,
    "function_call": OpenAIChatNormalizer._function_call,
    "tool_calls": OpenAIChatNormalizer._tool_calls,
}
_ORDER: Final = {name: place for place, name in enumerate(_DELTA)}


def _objects(value: Any) -> list[Members]:
    """The objects of a list; nothing where it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _joined(value: Any) -> str:
    """The text of a list of ``{"text": …}``, or the text itself."""
    return value if isinstance(value, str) else "".join(text_of(entry.get("text")) for entry in _objects(value))
