"""Unified events in, the server-sent events of Chat Completions out: what any client of that dialect reads.

Pure: no sockets, no clock. Told in the dialect are text, refusals, reasoning (``reasoning_content``, as DeepSeek, vLLM
and others send it), calls that the client is to run, url citations, audio, images (as OpenRouter sends them), the
finish reason of every choice, usage, and errors after HTTP 200. The dialect has no place for calls that the provider
ran itself and for their results, nor for signatures: those stay with whoever holds the snapshot.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from streamfold.blocks import MediaBlock
from streamfold.events import (
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    MediaDelta,
    Raw,
    ReasoningDelta,
    Restart,
    Start,
    Stop,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptDelta,
    Usage,
)

__all__ = ["ChatCompletionsEncoder", "achat_completions", "chat_completions"]

FINISH_REASONS: Final[Mapping[StopReason | None, str | None]] = {
    "end": "stop",
    "length": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "pause": "stop",  # the dialect knows no other word for an answer that is whole as far as it goes
    "cancelled": "stop",
    "other": "stop",
    None: None,
}
"""What each reason is called here. The provider's own word goes into ``native_finish_reason``, as OpenRouter does."""

KEEP_ALIVE: Final = b": keep-alive\n\n"
_DONE: Final = b"data: [DONE]\n\n"
_PINGS: Final = ("ping", "keepalive")  # Anthropic; OpenAI Responses
_TEXT_KINDS: Final = ("custom", "apply_patch", "shell")  # calls whose input is no JSON
_NO_ID: Final = "chatcmpl-0"


class ChatCompletionsEncoder:
    """The events of one answer to the bytes of one response, as they come.

    Every event gives the frames that it completes, often none. After ``done`` or a fatal error nothing follows.

    Args:
        id: Of every chunk; None: the answer's own.
        model: So is this.
        created: When the answer began, in seconds since 1970; this module has no clock.
        include_usage: Whether the chunk with the usage is sent before the end, as for a request with
            ``stream_options: {"include_usage": true}``.

    Attributes:
        ended: Whether the last frame was given.
        error: What the answer ended in, if not well. HTTP said 200 by then: whoever serves the bytes should end the
            connection without ending the body, as many clients do not look for the error.
    """

    def __init__(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the name on the wire
        model: str | None = None,
        created: int = 0,
        include_usage: bool = True,
    ) -> None:
        self._id, self._model, self._created, self._include_usage = id, model, created, include_usage
        self._own_id, self._own_model = id is None, model is None
        self._choice_of: dict[int, int] = {}  # block index -> choice, of blocks that are told
        self._refusals: set[int] = set()  # blocks, and
        self._refused: set[int] = set()  # the choices they stand in
        self._begun: set[int] = set()  # choices
        self._part: dict[int, int] = {}  # choice -> the part of its reasoning that came last
        self._reasoned: dict[int, int] = {}  # choice -> the block it stood in
        self._calls: dict[int, _Call] = {}  # block index -> call
        self._cut: list[_Call] = []  # those of which nothing but the name came; a restart may follow, which voids them
        self._count: dict[int, int] = {}  # choice -> its calls so far
        self._length: dict[int, int] = {}  # choice -> code points of its content so far
        self._place: dict[int, int] = {}  # block index -> where its text begins in the content
        self._usage: Usage | None = None
        self.ended = False
        self.error: ErrorEvent | None = None

    def encode(self, event: Event) -> bytes:
        """The frames that this event completes."""
        handler = None if self.ended else _HANDLERS.get(type(event))
        if handler is None:
            return b""
        if self._cut and not isinstance(event, BlockEnd | Restart):
            cut, self._cut = self._cut, []
            return b"".join(self._fragment(call, call.name, "") for call in cut) + handler(self, event)
        return handler(self, event)

    def close(self) -> bytes:
        """Declare the end of events. An answer without ``done`` and without an error broke off, which is told."""
        return self.encode(ErrorEvent("truncated", "the answer broke off", "truncated"))

    # -- events -------------------------------------------------------------------------------------------------------

    def _start(self, event: Start) -> bytes:
        if self._own_id and not self._begun:  # the chunks of an answer have one id
            self._id = event.id or self._id
        if self._own_model:
            self._model = event.model or self._model
        return b""

    def _restart(self, event: Restart) -> bytes:
        """What was sent cannot be taken back; an answer of which nothing was sent begins anew unseen."""
        if not self._begun:
            for of_the_answer in (self._choice_of, self._calls, self._cut, self._count):
                of_the_answer.clear()
            return b""
        return self._error(
            ErrorEvent("provider", f"the answer began anew: {event.reason}", "restarted", retryable=True)
        )

    def _block_start(self, event: BlockStart) -> bytes:
        self._choice_of[event.index] = event.choice
        if event.kind == "refusal":
            self._refusals.add(event.index)
        self._place[event.index] = self._length.get(event.choice, 0)
        return b""

    def _text(self, event: TextDelta) -> bytes:
        choice = self._choice_of.get(event.index, 0)
        if event.index not in self._refusals:
            self._length[choice] = self._length.get(choice, 0) + len(event.text)
            return self._delta(choice, {"content": event.text})
        self._refused.add(choice)
        return self._delta(choice, {"refusal": event.text})

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        choice = self._choice_of.get(event.index, 0)
        place = (event.index, event.part)
        before = (self._reasoned.get(choice), self._part.get(choice))
        self._reasoned[choice], self._part[choice] = place
        gap = "" if before in (place, (None, None)) else "\n\n"  # as blocks and their parts are joined
        return self._delta(choice, {"reasoning_content": gap + event.text})

    def _call_start(self, event: ToolCallStart) -> bytes:
        if event.executor == "client":
            number = self._count[event.choice] = self._count.get(event.choice, -1) + 1
            self._calls[event.index] = _Call(event.choice, number, event.id, event.name, event.kind)
        return b""  # a name can still grow until arguments come

    def _call_delta(self, event: ToolCallDelta) -> bytes:
        call = self._calls.get(event.index)
        if call is None:
            return b""
        call.sent.append(event.delta)
        return self._fragment(call, call.name, event.delta)

    def _call_done(self, event: ToolCallDone) -> bytes:
        call = self._calls.pop(event.index, None)
        if call is None:
            return b""
        sent = "".join(call.sent)
        rest = event.arguments.removeprefix(sent) if event.arguments.startswith(sent) else ""
        return self._fragment(call, event.name, rest) if rest or not call.begun else b""

    def _citation(self, event: Citation) -> bytes:
        if event.url is None:
            return b""
        place = self._place.get(event.index, 0)  # the content is one text, whatever blocks it came in
        start, end = (None if at is None else place + at for at in (event.start, event.end))
        told = {"url": event.url, "title": event.title, "start_index": start, "end_index": end}
        told = {name: value for name, value in told.items() if value is not None}
        annotation = {"type": "url_citation", "url_citation": told}
        return self._delta(self._choice_of.get(event.index, 0), {"annotations": [annotation]})

    def _media(self, event: MediaDelta) -> bytes:
        """Audio goes piece by piece; a picture goes whole, when its block ends."""
        if not event.data or not (event.mime_type or "").startswith("audio/"):
            return b""
        audio = {"id": f"audio_{event.index}", "data": base64.b64encode(event.data).decode()}
        return self._delta(self._choice_of.get(event.index, 0), {"audio": audio})

    def _transcript(self, event: TranscriptDelta) -> bytes:
        if event.source != "model" or event.replaces or not event.text:  # what was sent cannot be replaced
            return b""
        return self._delta(self._choice_of.get(event.index, 0), {"audio": {"transcript": event.text}})

    def _block_end(self, event: BlockEnd) -> bytes:
        choice = self._choice_of.pop(event.index, event.block.choice)
        self._place.pop(event.index, None)
        call = self._calls.pop(event.index, None)
        if call is not None and not call.begun:
            self._cut.append(call)
        block = event.block
        if not isinstance(block, MediaBlock) or not (block.mime_type or "image/").startswith("image/"):
            return b""
        url = block.url
        if block.data:
            url = f"data:{block.mime_type or 'image/png'};base64,{base64.b64encode(block.data).decode()}"
        image = {"type": "image_url", "image_url": {"url": url}}
        return self._delta(choice, {"images": [image]}) if url else b""

    def _totals(self, event: Usage) -> bytes:
        self._usage = event
        return b""

    def _done(self, event: Done) -> bytes:
        stops = event.stops or (Stop(0, event.reason, event.raw_reason, event.stop_sequence),)
        frames = [self._finish(stop) for stop in stops]
        frames += (self._usage_chunk(), _DONE)
        self.ended = True
        return b"".join(frames)

    def _error(self, event: ErrorEvent) -> bytes:
        if not event.fatal:
            return b""
        self.ended, self.error = True, event
        error = {
            "message": event.message,
            "type": event.kind,
            "param": None,
            "code": event.code,
            "status": event.status,
        }
        return self._usage_chunk() + _frame({"error": error})

    def _raw(self, event: Raw) -> bytes:
        return KEEP_ALIVE if event.name in _PINGS else b""

    # -- frames -------------------------------------------------------------------------------------------------------

    def _fragment(self, call: _Call, name: str, arguments: str) -> bytes:
        custom = call.kind in _TEXT_KINDS
        body: dict[str, Any] = {"input" if custom else "arguments": arguments}
        head: dict[str, Any] = {"index": call.number}
        if not call.begun:
            call.begun = True
            kind = "custom" if custom else "function"
            head |= {"id": call.id, "type": kind}
            body = {"name": name, **body}
        return self._delta(call.choice, {"tool_calls": [{**head, "custom" if custom else "function": body}]})

    def _delta(self, choice: int, delta: dict[str, Any]) -> bytes:
        if choice not in self._begun:
            self._begun.add(choice)
            delta = {"role": "assistant", **delta}
        return self._chunk([{"index": choice, "delta": delta, "finish_reason": None}])

    def _finish(self, stop: Stop) -> bytes:
        reason = FINISH_REASONS[stop.reason]
        if reason is None:
            return b""
        if stop.reason == "refusal" and stop.choice in self._refused:
            reason = "stop"  # the refusal itself was told
        delta = {} if stop.choice in self._begun else {"role": "assistant", "content": ""}
        self._begun.add(stop.choice)
        choice = {"index": stop.choice, "delta": delta, "finish_reason": reason}
        return self._chunk([choice | ({"native_finish_reason": stop.raw} if stop.raw is not None else {})])

    def _usage_chunk(self) -> bytes:
        if self._usage is None or not self._include_usage:
            return b""
        return self._chunk([], usage=_usage_of(self._usage))

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        chunk = {"id": self._id or _NO_ID, "object": "chat.completion.chunk", "created": self._created}
        return _frame({**chunk, "model": self._model or "", "choices": choices, **more})


class _Call:
    """A call of the client's: where it stands on the wire, and what of it was sent."""

    def __init__(self, choice: int, number: int, id_: str, name: str, kind: str) -> None:
        self.choice, self.number, self.id, self.name, self.kind = choice, number, id_, name, kind
        self.begun = False
        self.sent: list[str] = []


_HANDLERS: Final[Mapping[type, Callable[[ChatCompletionsEncoder, Any], bytes]]] = {
    Start: ChatCompletionsEncoder._start,
    Restart: ChatCompletionsEncoder._restart,
    BlockStart: ChatCompletionsEncoder._block_start,
    TextDelta: ChatCompletionsEncoder._text,
    ReasoningDelta: ChatCompletionsEncoder._reasoning,
    ToolCallStart: ChatCompletionsEncoder._call_start,
    ToolCallDelta: ChatCompletionsEncoder._call_delta,
    ToolCallDone: ChatCompletionsEncoder._call_done,
    Citation: ChatCompletionsEncoder._citation,
    MediaDelta: ChatCompletionsEncoder._media,
    TranscriptDelta: ChatCompletionsEncoder._transcript,
    BlockEnd: ChatCompletionsEncoder._block_end,
    Usage: ChatCompletionsEncoder._totals,
    Done: ChatCompletionsEncoder._done,
    ErrorEvent: ChatCompletionsEncoder._error,
    Raw: ChatCompletionsEncoder._raw,
}
"""Event -> what is sent for it. What is not here belongs to live sessions, which the dialect does not know."""


def _frame(payload: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(payload)


_USAGE: Final = {
    # member -> what it is called here; a member with a dot stands inside an object
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "cache_read_tokens": "prompt_tokens_details.cached_tokens",
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens",
    "input_audio_tokens": "prompt_tokens_details.audio_tokens",
    "input_image_tokens": "prompt_tokens_details.image_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens",
    "output_audio_tokens": "completion_tokens_details.audio_tokens",
    "output_image_tokens": "completion_tokens_details.image_tokens",
    "cost_usd": "cost",  # OpenRouter's
}


def _usage_of(usage: Usage) -> dict[str, Any]:
    told: dict[str, Any] = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"))  # clients expect them
    for name, place in _USAGE.items():
        value = getattr(usage, name)
        if value is not None:
            outer, dot, inner = place.partition(".")
            if dot:
                told.setdefault(outer, {})[inner] = value
            else:
                told[outer] = value
    return told


def chat_completions(events: Iterable[Event], **settings: Any) -> Iterator[bytes]:
    """The body of a Chat Completions response, frame by frame, as the events come.

    Args:
        events: Of one answer: what :func:`streamfold.iter_unified` gives, from any provider.
        settings: See :class:`ChatCompletionsEncoder`.

    Yields:
        One frame or several; always whole.
    """
    encoder = ChatCompletionsEncoder(**settings)
    for event in events:
        if frames := encoder.encode(event):
            yield frames
    if frames := encoder.close():
        yield frames


async def achat_completions(events: AsyncIterable[Event], **settings: Any) -> AsyncIterator[bytes]:
    """The async twin of :func:`chat_completions`."""
    encoder = ChatCompletionsEncoder(**settings)
    async for event in events:
        if frames := encoder.encode(event):
            yield frames
    if frames := encoder.close():
        yield frames
