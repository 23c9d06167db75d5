"""Gemini ``streamGenerateContent`` (Gemini API and Vertex AI), from event streams and JSON arrays alike.

Reads against ``GenerateContentResponse``: every chunk brings parts of one or several candidates, and repeats the
totals. There is no sentinel: an answer ends with its input, and ended well if every candidate named a finish reason.

What has to go back in the next request stays with the blocks. A part is a block, and ``meta`` holds the members that
the block has no place for, as they came. Only text is put together: neighbouring parts of text are one block
(neighbouring thoughts another), and those that carry more than text are listed in its ``meta`` under ``parts``, each
with the ``start`` and ``end`` of its text in code points: a signature belongs to its part, and goes back with no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from streamfold.blocks import Block, JSONText, OtherBlock, ToolResultBlock
from streamfold.events import ErrorEvent, StopReason, Usage
from streamfold.payloads import DECODE_ERRORS, Payload, Reader, compact, depth_exceeds, is_given, known_json, one_line
from streamfold.pieces import Pieces
from streamfold.providers import _usage
from streamfold.providers._arguments_by_path import ArgumentsByPath
from streamfold.providers._errors import provider_error
from streamfold.providers._grounding import Sources
from streamfold.providers._open_blocks import OpenBlock, OpenCall, OpenReasoning
from streamfold.providers._table import BaseNormalizer, text_of, whole_number

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

MALFORMED: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
        "MALFORMED_RESPONSE",
    }
)
"""Finish reasons that take the candidate's calls back."""

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
_TRIES: Final = 2  # chunks in a row that were no text, before no more of the answer is read as such
_NO_TOTALS: Final = msgspec.Raw()

# -- chunks of text: nearly all there are -----------------------------------------------------------------------------
# These structs admit nothing but what is named, so that whatever they refuse is read the general way, and nothing in
# what they admit can nest but the totals. gc=False: they hold no cycle and are dropped at once.


class _TextPart(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    text: str
    thought: bool = False
    thought_signature: str | None = None


class _TextContent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    parts: tuple[_TextPart, ...] = ()
    role: str | None = None


class _Nothing(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    pass


class _TextCandidate(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    content: _TextContent | None = None
    finish_reason: str | None = None
    index: int = 0
    grounding_metadata: _Nothing | None = None  # what most chunks of an answer with search say


class _TextChunk(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    candidates: tuple[_TextCandidate]
    usage_metadata: msgspec.Raw = msgspec.Raw()
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None


_TEXT: Final = msgspec.json.Decoder(_TextChunk).decode

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


class _Totals(msgspec.Struct, gc=False, rename="camel"):
    prompt_token_count: Any = None
    candidates_token_count: Any = None
    total_token_count: Any = None
    thoughts_token_count: Any = None
    tool_use_prompt_token_count: Any = None
    cached_content_token_count: Any = None


class _Details(msgspec.Struct, gc=False, rename="camel"):
    prompt_tokens_details: tuple[_Count, ...] = ()
    candidates_tokens_details: tuple[_Count, ...] = ()


_HALVES: Final = ("text", "stringValue")
_CHUNK: Final = Reader(_Chunk, _HALVES)
_TOTALS: Final = Reader(_Totals)
_DETAILS: Final = Reader(_Details)
_DECODE: Final = _CHUNK.decode


class _OpenCandidate:
    """What is open of one candidate. What most never have stands on the class."""

    finished = False
    malformed = False
    block: OpenBlock | None = None  # of text or thoughts, that a part may go on
    pieces: Pieces
    marks: list[Members] | None = None  # of that block: its parts that carry more than text
    call: OpenCall | None = None  # whose arguments come by path
    arguments: ArgumentsByPath
    code_call: str | None = None  # id of the code that ran last
    sources: Sources | None = None
    # how long the block's text is, as far as its pieces were joined
    _joined = 0
    _length = 0

    def __init__(self, index: int) -> None:
        self.index = index
        self.texts: list[OpenBlock] = []

    def begin(self, block: OpenBlock, pieces: Pieces) -> OpenBlock:
        self.block, self.pieces, self.marks, self._joined, self._length = block, pieces, None, 0, 0
        return block

    def length(self) -> int:
        """Of the open block's text, in code points; linear over all askings."""
        full = self.pieces.full
        self._length += sum(map(len, full[self._joined :]))
        self._joined = len(full)
        return self._length + sum(map(len, self.pieces.tail))


class GeminiGenerateContentNormalizer(BaseNormalizer):
    """Chunks of ``streamGenerateContent`` to unified events."""

    surface = "gemini"
    terminal = "a finish reason"

    def _begin(self) -> None:
        self._candidates: dict[int, _OpenCandidate] = {}
        self._totals = _NO_TOTALS  # as they came last
        self._merged: JSONText | None = None  # and after merging
        self._blocked = False
        self._text_tries = _TRIES if self.hot else 0

    # -- a chunk ------------------------------------------------------------------------------------------------------

    def _mean(self, payload: Payload) -> bool:
        if self._text_tries and self.hot and type(payload) is bytes:
            text_chunk = self._chunk_of_text(payload)
            if text_chunk is not None:
                self._read_text(text_chunk)
                return True
        chunk = self._decoded(payload)
        return chunk is not None and self._read_chunk(chunk)

    def _decoded(self, payload: Payload) -> _Chunk | None:
        if type(payload) is bytes and not depth_exceeds(payload, self.answer.max_depth):
            try:
                return _DECODE(payload)
            except DECODE_ERRORS:
                pass
        return _CHUNK.read(payload, self.answer.max_depth)

    def _chunk_of_text(self, payload: bytes) -> _TextChunk | None:
        try:
            chunk = _TEXT(payload)
        except DECODE_ERRORS:
            self._text_tries -= 1  # refusing costs more than reading: not for every chunk of a stream
            return None
        totals = chunk.usage_metadata
        if totals != self._totals and memoryview(totals).nbytes >= self._shallow:  # they may nest too deep
            return None
        self._text_tries = _TRIES
        return chunk

    def _read_text(self, chunk: _TextChunk) -> None:
        """A chunk whose parts are text, which :meth:`_read_chunk` would read to the same end."""
        answer = self.answer
        if answer.id is None or answer.model is None:
            answer.identify(answer.id or chunk.response_id, answer.model or chunk.model_version)
        candidate = chunk.candidates[0]
        state = self._candidates.get(candidate.index) or self._open_candidate(candidate.index)
        if candidate.content is not None:
            for part in candidate.content.parts:
                signature = part.thought_signature
                beside = None if signature is None else {"thoughtSignature": signature}
                self._text(state, part.text, beside, thought=part.thought)
        if candidate.grounding_metadata is not None:
            self._sources(state)
        if candidate.finish_reason:
            self._finish(state, candidate.finish_reason)
            answer.meant = True
        if chunk.usage_metadata != self._totals:
            self._report(chunk.usage_metadata)

    def _read_chunk(self, chunk: _Chunk) -> bool:
        answer = self.answer
        if answer.id is None or answer.model is None:  # old streams name neither, Vertex not always both
            answer.identify(answer.id or chunk.response_id, answer.model or chunk.model_version)
        for candidate in chunk.candidates or ():
            self._candidate(candidate)
        if isinstance(chunk.prompt_feedback, dict):
            self._feedback(cast("Members", chunk.prompt_feedback))
        has_totals = is_given(chunk.usage_metadata)
        if has_totals and chunk.usage_metadata != self._totals:
            self._report(chunk.usage_metadata)
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
        for member, metadata in (
            ("groundingMetadata", candidate.grounding_metadata),
            ("citationMetadata", candidate.citation_metadata),
            ("urlContextMetadata", candidate.url_context_metadata),
        ):
            if metadata is not None and self._sources(state).take(member, metadata):
                self.answer.raw(name=member)
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
        return state

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

    def _mark(self, state: _OpenCandidate, block: OpenBlock, mark: Members) -> None:
        if state.marks is None:
            state.marks = []
            block.meta = {"parts": state.marks}
        state.marks.append(mark)
        signature = self._sign(mark)
        if signature and type(block) is OpenReasoning:
            block.signature = signature
        self.answer.raw(index=block.index, name=next(iter(mark)))

    def _turn_to(self, state: _OpenCandidate, *, thought: bool) -> OpenBlock:
        self._leave(state)
        if thought:
            reasoning = self.answer.open_reasoning(state.index)
            return state.begin(reasoning, reasoning.parts[reasoning.part(0)])
        text = self.answer.open_text("text", state.index)
        state.texts.append(text)
        return state.begin(text, text)

    def _leave(self, state: _OpenCandidate) -> None:
        """Another kind of part comes: the text is whole, unless its sources may still be told."""
        block, state.block = state.block, None
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

        self.answer.close(self.answer.open_whole("other", make, None, state.index))

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
                self._nobodys(state, part, members)
                return
            meta = self._meta(state, part, "functionCall", members, *_OF_A_CALL)
            call = state.call = self.answer.open_call(id_, name, choice=state.index, meta=meta)
            state.arguments = ArgumentsByPath(call)
        elif len(part) > 1:
            beside = _beside(part)
            self._sign(beside)
            call.meta = {**(call.meta or {}), **beside}
        args, leaves, goes_on = members.get("args"), members.get("partialArgs"), members.get("willContinue") is True
        if goes_on and args and isinstance(args, dict) and call.is_empty():
            state.arguments.begin_with(cast("Members", args))
        for leaf in leaves if isinstance(leaves, list) else ():
            text = _written(state.arguments, _object(leaf))
            if text:
                self.answer.arguments(call, text)
        if not goes_on:
            whole = args if args or (args is not None and call.is_empty()) else None
            self._finish_call(state, None if whole is None else compact(whole))

    def _finish_call(self, state: _OpenCandidate, whole: str | None = None, *, cut: bool = False) -> None:
        call, arguments = state.call, state.arguments
        assert call is not None
        state.call = None
        if not cut:
            rest = arguments.end()
            if rest:
                self.answer.arguments(call, rest)
        incomplete = cut or state.malformed or arguments.faulty
        self.answer.finish_call(call, whole or arguments.whole(), incomplete=incomplete)

    def _nobodys(self, state: _OpenCandidate, part: Members, members: Members) -> None:
        """A call without a name, where none is open: filler behind a call that is done, or a piece that got lost."""
        self.answer.raw(name="functionCall")
        if members.get("args") or members.get("partialArgs"):
            self.answer.warn("orphan_fragment", "a piece of a function call belongs to no call that is open")

    # -- tools that the provider runs ---------------------------------------------------------------------------------

    def _executable_code(self, state: _OpenCandidate, part: Members, value: Any) -> None:
        members = _object(value)
        meta = self._meta(state, part, "executableCode", members, "code", "id")
        state.code_call = self._run(state, members, "code_execution", text_of(members.get("code")), meta, is_json=False)

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
        is_json: bool = True,
    ) -> str:
        call = self.answer.open_call(
            members.get("id"), kind, kind=kind, executor="provider", is_json=is_json, choice=state.index, meta=meta
        )
        self.answer.finish_call(call, arguments)
        return call.id

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
        self.answer.close(self.answer.open_whole("tool_result", make, {member: {}, **meta}, state.index))

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
        data = bytes(totals)
        self._totals = msgspec.Raw(data)
        read = _TOTALS.read(data, None)
        if read is None:
            return
        text = known_json(data) or one_line(data)[0]
        if self._merged is not None and read.total_token_count is None:
            text = compact(_usage.merge(self._merged.decoded(), text.decoded()))
            data = text.encode()
            read = _TOTALS.read(data, None) or read
        self._merged = text
        # Most answers are of text alone: their lists say again what the counts say.
        listed = b"IMAGE" in data or b"AUDIO" in data or b'TEXT"' not in data
        self.answer.report(_usage_of(read, _DETAILS.read(data, None) if listed else None, text))


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


def _usage_of(totals: _Totals, details: _Details | None, raw: JSONText) -> Usage | None:
    """Thoughts are counted beside the answer's tokens, and what tools read beside the prompt's."""
    whole = _usage.whole
    prompt, candidates, thoughts = (
        whole(totals.prompt_token_count),
        whole(totals.candidates_token_count),
        whole(totals.thoughts_token_count),
    )
    total, cached = whole(totals.total_token_count), whole(totals.cached_content_token_count)
    tools = whole(totals.tool_use_prompt_token_count)
    tokens_in = prompt if tools is None else (prompt or 0) + tools
    tokens_out = candidates if thoughts is None else (candidates or 0) + thoughts
    if tokens_in is None and tokens_out is None and total is None:
        return None
    if total is None and tokens_in is not None and tokens_out is not None:
        total = tokens_in + tokens_out
    if details is None:
        return Usage(tokens_in, tokens_out, total, thoughts, cached, raw=raw)
    prompts, answers = details.prompt_tokens_details, details.candidates_tokens_details
    return Usage(
        tokens_in,
        tokens_out,
        total,
        thoughts,
        cached,
        None,
        _count_of(prompts, *_AUDIO),
        _count_of(answers, *_AUDIO),
        _count_of(prompts, *_IMAGE),
        _count_of(answers, *_IMAGE),
        raw=raw,
    )


_AUDIO: Final = ("AUDIO", 4)
_IMAGE: Final = ("IMAGE", 2)


def _count_of(counts: tuple[_Count, ...], *names: str | int) -> int | None:
    return next((_usage.whole(count.token_count) for count in counts if count.modality in names), None)


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
