"""Gemini ``streamGenerateContent`` (Gemini API and Vertex AI), from event streams and JSON arrays alike.

Reads against ``GenerateContentResponse``: every chunk brings parts of one or several candidates, and repeats the
totals. There is no sentinel: an answer ends with its input, and ended well if every candidate named a finish reason.

What has to go back in the next request stays with the blocks. A part is a block, and ``meta`` holds the members that
the block has no place for, as they came. Only text is put together: neighbouring parts of text are one block
(neighbouring thoughts another), and those that carry more than text are listed in its ``meta`` under ``parts``, each
with the ``start`` and ``end`` of its text in code points: a signature belongs to its part, and goes back with no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import msgspec

from streamfold.blocks import Block, JSONText, OtherBlock, ToolResultBlock
from streamfold.events import (
    MALFORMED,
    ErrorEvent,
    Event,
    ReasoningDelta,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    Usage,
)
from streamfold.payloads import DECODE_ERRORS, Payload, Reader, compact, depth_exceeds, is_given, json_text
from streamfold.pieces import MANY, Pieces
from streamfold.providers import _usage
from streamfold.providers._arguments_by_path import ArgumentsByPath
from streamfold.providers._errors import provider_error
from streamfold.providers._grounding import Sources
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenReasoning
from streamfold.providers._table import END, BaseNormalizer, More, Say, text_of, whole_number

__all__ = ["GeminiGenerateContentNormalizer"]

Members: TypeAlias = dict[str, Any]

FINISH_REASONS: Final[Mapping[str | int, StopReason]] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "LANGUAGE": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "MODEL_ARMOR": "refusal",
    "ESCALATION": "refusal",
    "PUP_LIMITED_DISABLED": "refusal",
    "CONTINUATION": "pause",
    # enum-encoding=int; beyond 4 the numbers of Gemini API and Vertex mean different things
    1: "end",
    2: "length",
    3: "refusal",
    4: "refusal",
}
"""What ``finishReason`` means; any other word is ``other``."""

SERVER_TOOLS: Final[Mapping[str, str]] = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "GOOGLE_SEARCH_IMAGE": "image_search",
    "URL_CONTEXT": "url_context",
    "GOOGLE_MAPS": "google_maps",
    "FILE_SEARCH": "file_search",
    "MEDIA_PROCESSING": "media_processing",
}
"""Kinds of the tools that the server runs; any other is called by its own name."""

_OF_A_CALL: Final = ("name", "id", "args", "partialArgs", "willContinue")
_SUCCESS: Final = ("OUTCOME_OK", 1)
_LEAVES: Final = ("numberValue", "boolValue", "nullValue")
_LEVELS: Final = 9  # that these chunks nest at most

# -- chunks of one part, of text or of a call whose arguments come by path: nearly all there are -----------------------
# These structs admit nothing but what is named, so that whatever they refuse is read the general way, and nothing in
# what they admit can nest but the totals and the ratings. gc=False: they hold no cycle and are dropped at once.


class _Leaf(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    json_path: str
    string_value: str | None = None
    will_continue: bool = False
    number_value: int | float | msgspec.UnsetType = msgspec.UNSET
    bool_value: bool | msgspec.UnsetType = msgspec.UNSET


class _CallPiece(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    partial_args: tuple[_Leaf, ...] = ()
    will_continue: bool = False
    name: str = ""
    id: str = ""
    args: Any = None


class _HotPart(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    text: str | msgspec.UnsetType = msgspec.UNSET  # not null, which the general way takes for text too
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _CallPiece | msgspec.UnsetType = msgspec.UNSET


class _HotContent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: tuple[_HotPart]
    role: str | None = None


class _Nothing(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    pass


class _Rating(msgspec.Struct, gc=False):
    """Of what it says, a plain end has no use."""


class _HotCandidate(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    content: _HotContent
    finish_reason: str | None = None
    index: int = 0
    grounding_metadata: _Nothing | None = None  # what most chunks of an answer with search say
    safety_ratings: tuple[_Rating, ...] | None = None
    finish_message: str | None = None


class _HotChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    candidates: tuple[_HotCandidate]
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None


_UNSET: Final = msgspec.UNSET
_LF: Final = 10
_ABSENT: Final = msgspec.Raw()
_HOT: Final = msgspec.json.Decoder(_HotChunk).decode

# -- what all other chunks are read into ------------------------------------------------------------------------------


class _Candidate(msgspec.Struct, gc=False, rename="camel"):
    content: Any = None
    finish_reason: Any = None
    index: Any = 0
    finish_message: Any = None
    safety_ratings: Any = None
    grounding_metadata: Any = None
    citation_metadata: Any = None
    url_context_metadata: Any = None
    continuation_token: Any = None


class _Chunk(msgspec.Struct, gc=False, rename="camel"):
    candidates: tuple[_Candidate, ...] | None = None
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: Any = None
    response_id: Any = None
    prompt_feedback: Any = None
    error: Any = None


class _Count(msgspec.Struct, gc=False, rename="camel"):
    modality: Any = None
    token_count: Any = None


_Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | None


class _Totals(msgspec.Struct, gc=False, rename="camel"):
    prompt_token_count: _Tokens = None
    candidates_token_count: _Tokens = None
    total_token_count: _Tokens = None
    thoughts_token_count: _Tokens = None
    tool_use_prompt_token_count: _Tokens = None
    cached_content_token_count: _Tokens = None
    prompt_tokens_details: tuple[_Count, ...] = ()
    candidates_tokens_details: tuple[_Count, ...] = ()


class _OfText(msgspec.Struct, gc=False, rename="camel"):
    modality: Literal["TEXT"]


class _TextAlone(_OfText, gc=False, forbid_unknown_fields=True, rename="camel"):
    token_count: _Tokens = None


class _PlainCounts(msgspec.Struct, gc=False, kw_only=True, rename="camel"):
    prompt_token_count: _Tokens = None
    candidates_token_count: _Tokens = None
    total_token_count: Annotated[int, msgspec.Meta(ge=0)]
    cached_content_token_count: _Tokens = None
    tool_use_prompt_token_count: _Tokens = None
    thoughts_token_count: _Tokens = None


class _PlainTotals(_PlainCounts, gc=False, kw_only=True, rename="camel"):
    """Totals of text alone that say all there is to say: what most chunks bring."""

    prompt_tokens_details: tuple[_OfText] | None = None
    candidates_tokens_details: tuple[_OfText] | None = None


class _WordlessTotals(_PlainCounts, gc=False, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The same where no text can hold a blank."""

    prompt_tokens_details: tuple[_TextAlone] | None = None
    candidates_tokens_details: tuple[_TextAlone] | None = None
    tool_use_prompt_tokens_details: tuple[_TextAlone] | None = None
    cache_tokens_details: tuple[_TextAlone] | None = None
    service_tier: Literal["standard", "flex", "priority", None] = None
    traffic_type: Literal["ON_DEMAND", "PROVISIONED_THROUGHPUT", None] = None


_HALVES: Final = ("text", "stringValue")
_CHUNK: Final = Reader(_Chunk, _HALVES)
_TOTALS: Final = Reader(_Totals)
_DECODE: Final = _CHUNK.decode
_COUNT: Final = _TOTALS.decode
_PLAIN_COUNT: Final = msgspec.json.Decoder(_PlainTotals).decode
_WORDLESS_COUNT: Final = msgspec.json.Decoder(_WordlessTotals).decode
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_COUNTED: Final = tuple(name for name in _Totals.__struct_fields__ if name.endswith("_count"))


class _OpenCandidate:
    """What is open of one candidate. What most never have stands on the class."""

    finished = False
    malformed = False
    block: OpenBlock | None = None  # of text or thoughts, that a part may go on
    pieces: Pieces
    say: Say  # what makes an event of a piece of it
    thought: bool | None = None  # whether it is one; None where no block is open
    marks: list[Members] | None = None  # of that block: its parts that carry more than text
    call: OpenCall | None = None  # whose arguments come by path
    arguments: ArgumentsByPath | None = None
    code_call: str | None = None  # id of the code that ran last
    sources: Sources | None = None
    # how long the block's text is, as far as its pieces were joined
    joined = 0
    joined_length = 0

    def __init__(self, index: int) -> None:
        self.index = index
        self.texts: list[OpenBlock] = []

    def next_argument(self, piece: _CallPiece) -> ToolCallDelta | None:
        """What the piece adds to the arguments of the open call, if it is no more than a piece of a string."""
        call, leaves, arguments = self.call, piece.partial_args, self.arguments
        if (
            len(leaves) != 1
            or arguments is None
            or (string := leaves[0].string_value) is None
            or not piece.will_continue
            or piece.name
            or piece.args is not None
            or call is None
            or call.half
        ):
            return None
        text = arguments.grown(leaves[0].json_path, string, ends=not leaves[0].will_continue)
        if not text:
            return None
        call.add(text)
        return ToolCallDelta(call.index, call.id, text)

    def length(self) -> int:
        """Of the open block's text, in code points; linear over all askings."""
        full = self.pieces.full
        self.joined_length += sum(map(len, full[self.joined :]))
        self.joined = len(full)
        return self.joined_length + sum(map(len, self.pieces.tail))


class GeminiGenerateContentNormalizer(BaseNormalizer):
    """Chunks of ``streamGenerateContent`` to unified events."""

    surface = "gemini"
    terminal = "a finish reason"

    def _begin(self) -> None:
        self._candidates: dict[int, _OpenCandidate] = {}
        self._totals = _ABSENT  # as they came last
        self._merged: JSONText | None = None  # and after merging
        self._blocked = False
        self._flowing: _OpenCandidate | None = None  # whose text the chunk before went on with
        self._calling: _OpenCandidate | None = None  # whose call was opened last, until it is done
        self._ahead: _HotChunk | None = None  # what the payload that comes next says, if it was read already
        self._unnamed = False  # that payload was read strictly, and has no member that names its type
        depth = self.answer.max_depth
        self._quick = depth is None or depth >= _LEVELS

    # -- a chunk ------------------------------------------------------------------------------------------------------

    @property
    def more(self) -> More | None:
        """The short way, the same throughout. It is made when asked for: held, it would hold who holds it."""
        return self._read_run if self.hot and self._quick and not self.answer.ended else None

    @more.setter
    def more(self, more: More | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """There is no other."""

    def _read_run(self, payloads: Iterable[Payload], add: Callable[[Event], None]) -> Payload:
        """Read chunks that are one more piece of text, of thoughts or of arguments, as :meth:`_read_chunk` would.

        See :data:`More`; but a chunk that brings new totals too, or turns from thoughts to text, adds more events. A
        chunk that is read and says more waits for :meth:`_mean`.
        """
        answer, calling = self.answer, self._calling
        flow = self._flowing
        if flow is None:
            flow = self._flowing = self._ready_to_flow()
        named = answer.id is not None and answer.model is not None
        out, spans, surplus = answer.out, answer.spans, 0
        last, known, merged = self._totals, answer.usage, None
        tail = [] if flow is None or flow.block is None else flow.pieces.tail
        for payload in payloads:
            if type(payload) is not bytes:
                break
            try:
                chunk = _HOT(payload)
            except DECODE_ERRORS:
                break
            candidate = chunk.candidates[0]
            part = candidate.content.parts[0]
            piece, totals = part.text, chunk.usage_metadata
            if piece is _UNSET:
                call = part.function_call
                if call is _UNSET or part.thought is not None or depth_exceeds(payload, answer.max_depth):
                    break
                if (
                    calling is not None
                    and not (totals != last and totals != _ABSENT)
                    and part.thought_signature is None
                    and candidate.index == calling.index
                    and candidate.finish_reason is None
                    and candidate.grounding_metadata is None
                    and (named or not self._names(chunk))
                    and (argument := calling.next_argument(call)) is not None
                ):
                    add(argument)
                    continue
                state = self._candidates.get(candidate.index)
                if (
                    state is None
                    or not (call.name or (state.call is not None and (call.partial_args or not call.will_continue)))
                    or candidate.finish_reason is not None
                    or candidate.grounding_metadata is not None
                    or answer.is_full(0)
                    or (not named and self._names(chunk))
                ):
                    self._ahead = chunk
                    break
            elif (
                flow is None
                or part.function_call is not _UNSET
                or not piece
                or candidate.finish_reason is not None
                or part.thought_signature is not None
                or candidate.index != flow.index
                or (candidate.grounding_metadata is not None and flow.sources is None)
                or (candidate.safety_ratings is not None and depth_exceeds(payload, answer.max_depth))
                or (not named and self._names(chunk))
            ):
                if part.function_call is _UNSET and not depth_exceeds(payload, answer.max_depth):
                    self._ahead = chunk
                break
            news = None
            if totals != last and totals != _ABSENT:
                news = _plain_usage(totals, self._shallow, lines=payload[1] == _LF)
                if news is None:
                    if piece is _UNSET or not depth_exceeds(payload, answer.max_depth):
                        self._ahead = chunk
                    break
            if piece is _UNSET:
                count = self._call_in_run(candidate, payload)
                calling = self._calling
            else:
                assert flow is not None  # as was seen above
                count = 1
                if (part.thought is True) is not flow.thought:
                    if answer.is_full(0):
                        break
                    if len(tail) > MANY:
                        flow.pieces.roll()
                    count += 2 if flow.thought or (flow.thought is False and flow.sources is None) else 1
                    self._turn_to(flow, thought=part.thought is True)
                    self._flowing, tail = flow, flow.pieces.tail
                tail.append(piece)
                add(flow.say(piece))
            if news is not None:
                last, merged = totals, news.raw
                if news != known:
                    known = answer.usage = news
                    add(news)
                    count += 1
            if count != 1:
                spans.append((len(out) - count, count))
                surplus += count - 1
        else:
            payload = END
        if surplus:
            answer.surplus += surplus
        if merged is not None:
            self._totals, self._merged = last, merged
        if len(tail) > MANY:
            assert flow is not None
            flow.pieces.roll()
        return payload

    def _call_in_run(self, candidate: _HotCandidate, payload: Payload) -> int:
        """A call, or a piece of one, in the midst of a run; how many events that makes."""
        answer, state, (part,) = self.answer, self._candidates[candidate.index], candidate.content.parts
        assert part.function_call is not _UNSET
        before = len(answer.out)
        state.malformed = False
        self._call_part(state, part.function_call, part.thought_signature)
        if len(answer.out) == before:  # a leaf that has no place: whoever asked for raw events sees it
            answer.before, answer.payload, answer.kind, answer.meant = before, payload, None, False
            answer.raw()
        return len(answer.out) - before

    def _ready_to_flow(self) -> _OpenCandidate | None:
        """The only candidate of most answers, if text may go on there, or begin."""
        state = self._candidates.get(0)
        return state if state is not None and (state.block is None or not state.block.half) else None

    def _names(self, chunk: _HotChunk) -> bool:
        """Whether the chunk names what has no name yet: old streams name neither, Vertex not always both."""
        answer = self.answer
        return (answer.id is None and chunk.response_id is not None) or (
            answer.model is None and chunk.model_version is not None
        )

    def _mean(self, payload: Payload) -> bool:
        self._flowing = None
        ahead, self._ahead = self._ahead, None
        self._unnamed = ahead is not None
        if ahead is not None:
            self._read_hot(ahead)
            return True
        chunk = self._decoded(payload)
        return chunk is not None and self._read_chunk(chunk)

    def _decoded(self, payload: Payload) -> _Chunk | None:
        if type(payload) is bytes and (
            len(payload) <= self._shallow or not depth_exceeds(payload, self.answer.max_depth)
        ):
            try:
                return _DECODE(payload)
            except DECODE_ERRORS:
                pass
        return _CHUNK.read(payload, self.answer.max_depth)

    def _read_hot(self, chunk: _HotChunk) -> None:
        """A chunk that was read ahead, to the same end as :meth:`_read_chunk` would read it."""
        answer = self.answer
        if answer.id is None or answer.model is None:
            answer.identify(answer.id or chunk.response_id, answer.model or chunk.model_version)
        (candidate,) = chunk.candidates
        state = self._candidates.get(candidate.index) or self._open_candidate(candidate.index)
        state.malformed = candidate.finish_reason in MALFORMED
        (part,) = candidate.content.parts
        if part.function_call is not _UNSET:
            self._call_part(state, part.function_call, part.thought_signature)
        else:
            self._text_read(state, text_of(part.text), part.thought_signature, thought=part.thought is True)
        if candidate.grounding_metadata is not None:
            self._sources(state)
        if candidate.finish_reason:
            self._finish(state, candidate.finish_reason)
            explained = candidate.finish_message or candidate.safety_ratings
            if explained and answer.stops[state.index].reason != "end":
                answer.raw(name="finishReason")
            answer.meant = True
        totals = chunk.usage_metadata
        if totals != self._totals and totals != _ABSENT:
            self._report(totals)

    def _read_chunk(self, chunk: _Chunk) -> bool:
        answer = self.answer
        if answer.id is None or answer.model is None:  # old streams name neither, Vertex not always both
            answer.identify(answer.id or chunk.response_id, answer.model or chunk.model_version)
        for candidate in chunk.candidates or ():
            self._candidate(candidate)
        if isinstance(chunk.prompt_feedback, dict):
            self._feedback(cast("Members", chunk.prompt_feedback))
        totals = chunk.usage_metadata
        has_totals = is_given(totals)
        if has_totals and totals != self._totals:
            self._report(totals)
        if chunk.error:  # an element of the array, or the payload of a frame
            self._fail(provider_error(chunk.error, {}))
            return True
        known = chunk.candidates is not None or chunk.prompt_feedback is not None or has_totals
        if not chunk.candidates and not has_totals:
            answer.raw(name="promptFeedback" if chunk.prompt_feedback else "", known=known)
        return known

    def _candidate(self, candidate: _Candidate) -> None:
        state = self._open_candidate(whole_number(candidate.index) or 0)
        reason, content = candidate.finish_reason, candidate.content
        state.malformed = isinstance(reason, str) and reason in MALFORMED
        parts = cast("Members", content).get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                self._part(state, cast("Members", part))
        grounding, citations = candidate.grounding_metadata, candidate.citation_metadata
        if grounding is not None:
            self._take_sources(state, "groundingMetadata", grounding)
        if citations is not None:
            self._take_sources(state, "citationMetadata", citations)
        if candidate.url_context_metadata is not None:
            self._take_sources(state, "urlContextMetadata", candidate.url_context_metadata)
        if reason and type(reason) in (str, int):
            self._finish(state, reason)
            explained = candidate.finish_message or candidate.safety_ratings
            if candidate.continuation_token or (explained and self.answer.stops[state.index].reason != "end"):
                self.answer.raw(name="finishReason")
            self.answer.meant = True

    def _open_candidate(self, index: int) -> _OpenCandidate:
        if index < 0:
            index = 0
        state = self._candidates.get(index)
        if state is None:
            state = self._candidates[index] = _OpenCandidate(index)
            self.answer.hold(len(self._candidates))
        return state

    def _take_sources(self, state: _OpenCandidate, member: str, metadata: Any) -> None:
        if self._sources(state).take(member, metadata):
            self.answer.raw(name=member)

    def _sources(self, state: _OpenCandidate) -> Sources:
        if state.sources is None:
            state.sources = Sources(self.answer, state.texts)
        return state.sources

    def _feedback(self, feedback: Members) -> None:
        """Of the prompt; without a reason to block it, these are ratings."""
        reason = feedback.get("blockReason")
        if reason and type(reason) in (str, int):
            self._blocked = True
            self.answer.stop(0, "refusal", str(reason))
            self.answer.raw(name="promptFeedback")

    # -- parts --------------------------------------------------------------------------------------------------------

    def _part(self, state: _OpenCandidate, part: Members) -> None:
        """Members are read one by one: a part can hold an image and a signature."""
        known = [name for name in part if name in PARTS]
        for name in known:
            PARTS[name](self, state, part, part[name])
        if part and not known:
            self._other(state, part)

    def _text_part(self, state: _OpenCandidate, part: Members, text: Any) -> None:
        beside = _beside(part) if len(part) > 1 else {}
        thought = beside.pop("thought", False) is True
        self._text(state, text_of(text), beside, thought=thought)

    def _text(self, state: _OpenCandidate, text: str, beside: Members | None, *, thought: bool) -> None:
        """A part of text, and what it carries beside; with neither it says nothing."""
        if not text and not beside:
            return
        block = state.block
        if block is None or (type(block) is OpenReasoning) is not thought:
            block = self._turn_to(state, thought=thought)
        start = state.length() if beside else 0
        if text:
            if type(block) is OpenReasoning:
                self.answer.reasoning(block, text)
            else:
                self.answer.text(block, text)
        if beside:
            self._mark(state, block, {**beside, "start": start, "end": state.length()})
        self._flowing = None if block.half else state

    def _text_read(self, state: _OpenCandidate, text: str, signature: str | None, *, thought: bool) -> None:
        """The same for text that the strict decoder has read: whole characters."""
        block = state.block
        if signature is not None or not text or (block is not None and block.half):
            self._text(state, text, None if signature is None else {"thoughtSignature": signature}, thought=thought)
            return
        if block is None or state.thought is not thought:
            self._turn_to(state, thought=thought)
        state.pieces.add(text)
        self.answer.out.append(state.say(text))
        self._flowing = state

    def _mark(self, state: _OpenCandidate, block: OpenBlock, mark: Members) -> None:
        if state.marks is None:
            state.marks = []
            block.meta = {"parts": state.marks}
        state.marks.append(mark)
        signature = self._sign(mark)
        if signature and type(block) is OpenReasoning:
            block.signature = signature
        name = next(iter(mark))
        if self._unnamed:
            self.answer.kind = self.answer.event_name() or name
        self.answer.raw(index=block.index, name=name)

    def _turn_to(self, state: _OpenCandidate, *, thought: bool) -> OpenBlock:
        answer, block = self.answer, state.block
        self._flowing = None
        if block is not None and (state.thought or state.sources is None):
            answer.close(block)
        if state.marks is not None or state.joined:
            state.marks, state.joined, state.joined_length = None, 0, 0
        state.thought = thought
        if thought:
            block = answer.open_reasoning(state.index)
            state.pieces, state.say = block.parts[block.part(0)], partial(ReasoningDelta, block.index)
        else:
            state.pieces = block = answer.open_text("text", state.index)
            state.say = partial(TextDelta, block.index)
            state.texts.append(block)
        state.block = block
        return block

    def _leave(self, state: _OpenCandidate) -> None:
        """Another kind of part comes: the text is whole, unless its sources may still be told."""
        block, state.block, state.thought, self._flowing = state.block, None, None, None
        if block is not None and (state.sources is None or type(block) is OpenReasoning):
            self.answer.close(block)

    def _sign(self, beside: Members) -> str:
        signature = text_of(beside.get("thoughtSignature"))
        if signature:
            self.answer.last_signature = signature
        return signature

    def _inline_data(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        data = _object(value)
        meta = self._meta(state, part, "inlineData", data, "mimeType", "data")
        block = self.answer.open_media(text_of(data.get("mimeType")) or None, state.index, meta)
        self.answer.media(block, text_of(data.get("data")))
        self.answer.close(block)

    def _file_data(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        data = _object(value)
        meta = self._meta(state, part, "fileData", data, "mimeType", "fileUri")
        block = self.answer.open_media(text_of(data.get("mimeType")) or None, state.index, meta)
        self.answer.media_url(block, text_of(data.get("fileUri")))
        self.answer.close(block)

    def _other(self, state: _OpenCandidate, part: Members) -> None:
        """A part that nobody knows, a signature alone: it goes back as it is."""
        self._leave(state)
        self._sign(part)
        kind, raw = next(iter(part)), compact(part)

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            return OtherBlock(index, kind, raw, state.index, complete, meta)

        self.answer.whole_block("other", make, None, state.index)

    def _meta(self, state: _OpenCandidate, part: Members, name: str, value: Members, *held: str) -> Members | None:
        """What a part says beside the members that its block holds."""
        self._leave(state)
        meta = _beside(part)
        self._sign(meta)
        rest = {member: inner for member, inner in value.items() if member not in held}
        if rest:
            meta[name] = rest
        return meta or None

    # -- calls of the client's tools ----------------------------------------------------------------------------------

    def _function_call(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        members = _object(value)
        name, id_ = text_of(members.get("name")), text_of(members.get("id"))
        call = state.call
        if call is None or (name and id_ != call.id):
            if call is not None:
                self._finish_call(state)
            if not name:
                self._nobodys(has_arguments=bool(members.get("args") or members.get("partialArgs")))
                return
            meta = self._meta(state, part, "functionCall", members, *_OF_A_CALL)
            if not members.get("partialArgs") and members.get("willContinue") is not True:
                self._whole_call(state, id_, name, members.get("args"), meta)
                return
            call = self._open_call(state, id_, name, meta)
        elif len(part) > 1:
            beside = _beside(part)
            self._sign(beside)
            call.meta = {**(call.meta or {}), **beside}
        args, leaves, goes_on = members.get("args"), members.get("partialArgs"), members.get("willContinue") is True
        arguments = self._begin_arguments(state, call, args, goes_on=goes_on)
        for leaf in leaves if isinstance(leaves, list) else ():
            text = _written(arguments, _object(leaf))
            if text:
                self.answer.arguments(call, text)
        if not goes_on:
            self._finish_whole(state, call, args)

    def _call_part(self, state: _OpenCandidate, piece: _CallPiece, signature: str | None) -> None:
        """What :meth:`_function_call` makes of a call, or of a piece of one."""
        beside = None if signature is None else {"thoughtSignature": signature}
        call = state.call
        if call is None or (piece.name and piece.id != call.id):
            if call is not None:
                self._finish_call(state)
            if not piece.name:
                self._nobodys(has_arguments=bool(piece.args or piece.partial_args))
                return
            self._leave(state)
            if not (piece.partial_args or piece.will_continue):
                if beside:
                    self._sign(beside)
                self._whole_call(state, piece.id, piece.name, piece.args, beside)
                return
            call = self._open_call(state, piece.id, piece.name, beside)
        elif beside:
            call.meta = {**(call.meta or {}), **beside}
        if beside:
            self._sign(beside)
        if piece.partial_args or piece.will_continue:
            arguments = self._begin_arguments(state, call, piece.args, goes_on=piece.will_continue)
            for leaf in piece.partial_args:
                value = leaf.bool_value if leaf.number_value is msgspec.UNSET else leaf.number_value
                if leaf.string_value is not None:
                    text = arguments.string(leaf.json_path, leaf.string_value, ends=not leaf.will_continue)
                else:
                    text = "" if value is msgspec.UNSET else arguments.value(leaf.json_path, value)
                if text:
                    self.answer.arguments(call, text)
        if not piece.will_continue:
            self._finish_whole(state, call, piece.args)

    def _begin_arguments(self, state: _OpenCandidate, call: OpenCall, args: Any, *, goes_on: bool) -> ArgumentsByPath:
        arguments = state.arguments
        if arguments is None:
            arguments = state.arguments = ArgumentsByPath(call)
        if goes_on and args and isinstance(args, dict) and call.is_empty():
            arguments.begin_with(cast("Members", args))
        return arguments

    def _finish_whole(self, state: _OpenCandidate, call: OpenCall, args: Any) -> None:
        whole = args if args or (args is not None and call.is_empty()) else None
        self._finish_call(state, None if whole is None else compact(whole))

    def _whole_call(self, state: _OpenCandidate, id_: str, name: str, args: Any, meta: Members | None) -> None:
        """A call that comes in one piece, as nearly all do."""
        self._calling = None
        text = "" if args is None else compact(args)
        self.answer.whole_call(id_, name, text, choice=state.index, meta=meta, incomplete=state.malformed)

    def _open_call(self, state: _OpenCandidate, id_: str, name: str, meta: Members | None) -> OpenCall:
        answer = self.answer
        call = state.call = answer.open_call(id_, name, choice=state.index, meta=meta)
        if answer.out:  # not at the bound of blocks
            call.told = (call.meta, cast("ToolCallStart", answer.out[-1]).meta)
        state.arguments, self._calling = None, state
        return call

    def _finish_call(self, state: _OpenCandidate, whole: str | None = None, *, cut: bool = False) -> None:
        call, arguments = state.call, state.arguments
        assert call is not None
        state.call = self._calling = None
        incomplete = cut or state.malformed
        if arguments is not None:
            rest = "" if cut else arguments.end()
            if rest:
                self.answer.arguments(call, rest)
            incomplete, whole = incomplete or arguments.faulty, whole or arguments.whole()
        self.answer.finish_call(call, whole, incomplete=incomplete)

    def _nobodys(self, *, has_arguments: bool) -> None:
        """A call without a name, where none is open: filler behind a call that is done, or a piece that got lost."""
        self.answer.raw(name="functionCall")
        if has_arguments:
            self.answer.warn("orphan_fragment", "a piece of a function call belongs to no call that is open")

    # -- tools that the provider runs ---------------------------------------------------------------------------------

    def _executable_code(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        members = _object(value)
        meta = self._meta(state, part, "executableCode", members, "code", "id")
        state.code_call = self._run(state, members, "code_execution", text_of(members.get("code")), meta, is_text=True)

    def _server_call(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        members = _object(value)
        meta = self._meta(state, part, "toolCall", members, "args", "id")
        args = members.get("args")
        self._run(state, members, _kind_of(members), "" if args is None else compact(args), meta)

    def _run(
        self,
        state: _OpenCandidate,
        members: Members,
        kind: str,
        arguments: str,
        meta: Members | None,
        *,
        is_text: bool = False,
    ) -> str:
        return self.answer.whole_call(
            members.get("id"),
            kind,
            arguments,
            kind=kind,
            executor="provider",
            is_text=is_text,
            choice=state.index,
            meta=meta,
        )

    def _code_result(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        members = _object(value)
        call_id = text_of(members.get("id")) or state.code_call
        failed = members.get("outcome") not in _SUCCESS
        content = {name: inner for name, inner in members.items() if name != "id"}
        self._result(state, part, "codeExecutionResult", members, call_id, "code_execution", content, is_error=failed)

    def _server_result(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        members = _object(value)
        call_id, content = text_of(members.get("id")) or None, members.get("response")
        self._result(state, part, "toolResponse", members, call_id, _kind_of(members), content)

    def _function_response(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        """What a function gave back that the provider called itself, over MCP."""
        members = _object(value)
        call_id, name = text_of(members.get("id")) or None, text_of(members.get("name")) or None
        self._result(state, part, "functionResponse", members, call_id, name, members.get("response"))

    def _result(
        self,
        state: _OpenCandidate,
        part: Members,
        member: str,
        members: Members,
        call_id: str | None,
        name: str | None,
        content: Any,
        *,
        is_error: bool = False,
    ) -> None:
        meta = self._meta(state, part, member, members, "id", "name", "response", "outcome", "output") or {}
        text = None if content is None else compact(content)

        def make(index: int, complete: bool, meta: JSONText | None) -> Block:
            return ToolResultBlock(index, call_id, name, text, is_error, state.index, complete, meta)

        # Which member the result stood in is not to be told from the block.
        self.answer.whole_block("tool_result", make, {member: {}, **meta}, state.index)

    # -- ends, totals -------------------------------------------------------------------------------------------------

    def _finish(self, state: _OpenCandidate, reason: str | int) -> None:
        """A finish reason is remembered: text, errors and other reasons may still come."""
        meaning: StopReason = FINISH_REASONS.get(reason, "other")
        self.answer.stop(state.index, meaning, str(reason))
        state.finished = True
        if state.call is not None:
            self._finish_call(state, cut=meaning != "end")

    def _settle(self, state: _OpenCandidate) -> None:
        """The candidate is whole."""
        if state.call is not None:
            self._finish_call(state)
        if state.sources is not None:
            state.sources.settle()
        for block in (*state.texts, state.block):
            if block is not None:
                self.answer.close(block)

    def _end_of_input(self) -> None:
        candidates = self._candidates.values()
        if not self._blocked and not (candidates and all(state.finished for state in candidates)):
            super()._end_of_input()
            return
        for state in candidates:
            if state.finished:
                self._settle(state)
        self.answer.done()

    def _fail(self, error: ErrorEvent) -> None:
        for state in self._candidates.values():
            if state.finished:
                self._settle(state)
        super()._fail(error)

    def _report(self, totals: msgspec.Raw) -> None:
        """Totals that are other than the last; what says no total of its own (Vertex) adds to what is known."""
        plain = _plain_usage(totals, self._shallow, lines=False)
        if plain is not None:
            self._totals, self._merged = totals, plain.raw
            self.answer.report(plain)
        elif is_given(totals):
            self._report_more(totals)

    def _report_more(self, totals: msgspec.Raw) -> None:
        """All other totals."""
        self._totals = totals
        read = _totals_of(totals)
        if read is None:
            return
        text = json_text(totals)
        if read.total_token_count is None and self._merged is not None:
            if _says_no_more(text, self._merged):
                return
            text = compact(self.answer.totals(self._merged.decoded(), text.decoded()))
            read = _totals_of(text.encode()) or read
        self._merged = text
        self.answer.report(_usage_of(read, text))


def _plain_usage(totals: msgspec.Raw, shallow: int, *, lines: bool) -> Usage | None:
    """Totals as most chunks bring them, of text alone and complete; None for all others, and where they may be deep.

    ``lines``: they are laid out over lines, as in JSON arrays. Where no blank can be part of a text all blanks are
    layout, and to drop them takes a sixth of the time of writing the totals anew.
    """
    try:
        read: _PlainCounts = (_WORDLESS_COUNT if lines else _PLAIN_COUNT)(totals)
        text = JSONText(bytes(totals).translate(None, _BLANKS) if lines else totals, "utf-8")
    except DECODE_ERRORS:
        return _plain_usage(totals, shallow, lines=False) if lines else None
    if len(text) >= shallow:
        return None
    if not lines and ("\n" in text or "\r" in text):
        text = JSONText(msgspec.json.format(totals, indent=-1), "utf-8")
    tokens_in, tokens_out = read.prompt_token_count, read.candidates_token_count
    thoughts, tools = read.thoughts_token_count, read.tool_use_prompt_token_count
    if tools is not None:
        tokens_in = (tokens_in or 0) + tools
    if thoughts is not None:
        tokens_out = (tokens_out or 0) + thoughts
    return Usage(tokens_in, tokens_out, read.total_token_count, thoughts, read.cached_content_token_count, raw=text)


PARTS: Final[Mapping[str, Callable[[GeminiGenerateContentNormalizer, _OpenCandidate, Members, Any], None]]] = {
    # All others (audioTranscription, what is new) are ``other``.
    "text": GeminiGenerateContentNormalizer._text_part,
    "functionCall": GeminiGenerateContentNormalizer._function_call,
    "executableCode": GeminiGenerateContentNormalizer._executable_code,
    "codeExecutionResult": GeminiGenerateContentNormalizer._code_result,
    "inlineData": GeminiGenerateContentNormalizer._inline_data,
    "fileData": GeminiGenerateContentNormalizer._file_data,
    "toolCall": GeminiGenerateContentNormalizer._server_call,
    "toolResponse": GeminiGenerateContentNormalizer._server_result,
    "functionResponse": GeminiGenerateContentNormalizer._function_response,
}


def _totals_of(data: bytes | msgspec.Raw) -> _Totals | None:
    try:
        return _COUNT(data)
    except DECODE_ERRORS:  # also of what counts nothing: that is left out, one by one
        pass
    read = _TOTALS.read(data, None)
    for name in () if read is None else _COUNTED:
        setattr(read, name, _counted(getattr(read, name)))
    return read


def _says_no_more(totals: JSONText, known: JSONText) -> bool:
    """Whether each member stands in what is known, letter by letter: Vertex repeats the same one on most chunks."""
    try:
        return _MEMBERS(totals.encode()).items() <= _MEMBERS(known.encode()).items()
    except DECODE_ERRORS:
        return False


def _usage_of(totals: _Totals, raw: JSONText) -> Usage | None:
    """Thoughts are counted beside the answer's tokens, and what tools read beside the prompt's."""
    tokens_in, tokens_out, total = totals.prompt_token_count, totals.candidates_token_count, totals.total_token_count
    thoughts, tools, cached = (
        totals.thoughts_token_count,
        totals.tool_use_prompt_token_count,
        totals.cached_content_token_count,
    )
    if tools is not None:
        tokens_in = (tokens_in or 0) + tools
    if thoughts is not None:
        tokens_out = (tokens_out or 0) + thoughts
    if total is None:
        if tokens_in is None and tokens_out is None:
            return None
        if tokens_in is not None and tokens_out is not None:
            total = tokens_in + tokens_out
    prompts, answers = totals.prompt_tokens_details, totals.candidates_tokens_details
    if not answers and (not prompts or (len(prompts) == 1 and prompts[0].modality == "TEXT")):  # as in most chunks
        return Usage(tokens_in, tokens_out, total, thoughts, cached, raw=raw)
    audio_in, image_in = _heard_and_seen(prompts)
    audio_out, image_out = _heard_and_seen(answers)
    return Usage(
        tokens_in, tokens_out, total, thoughts, cached, None, audio_in, audio_out, image_in, image_out, raw=raw
    )


def _heard_and_seen(counts: tuple[_Count, ...]) -> tuple[int | None, int | None]:
    """Tokens of audio and of images; most answers are of text alone."""
    audio = image = None
    for count in counts:
        modality = count.modality
        if modality == "TEXT":
            continue
        if modality in _AUDIO:
            audio = _counted(count.token_count)
        elif modality in _IMAGE:
            image = _counted(count.token_count)
    return audio, image


def _counted(value: Any) -> int | None:
    number = _usage.whole(value)
    return number if number is not None and number >= 0 else None


_BLANKS: Final = b" \t\r\n"
_AUDIO: Final = ("AUDIO", 4)  # enum-encoding=int
_IMAGE: Final = ("IMAGE", 2)


def _written(arguments: ArgumentsByPath, leaf: Members) -> str:
    """What a leaf adds to the text of the arguments."""
    path, piece = text_of(leaf.get("jsonPath")), leaf.get("stringValue")
    if isinstance(piece, str):
        return arguments.string(path, piece, ends=leaf.get("willContinue") is not True)
    for member in _LEAVES:
        if member in leaf:
            return arguments.value(path, None if member == "nullValue" else leaf[member])
    return ""


def _kind_of(members: Members) -> str:
    name = text_of(members.get("toolType"))
    return SERVER_TOOLS.get(name, name.lower() or "server_tool")


def _beside(part: Members) -> Members:
    """The members of a part that are not its content."""
    return {name: value for name, value in part.items() if name not in PARTS and value is not None}


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else {}
