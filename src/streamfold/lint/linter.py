"""A stream against its rules: bytes in, findings out, in the order of the stream.

Reads with the library's own decoder, so that what it forgives is told by the same code that forgives it, and looks
beside it at the bytes (:mod:`._bytes`) and at the payloads of the surfaces that have rules of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypedDict, Unpack

import msgspec

from streamfold import limits
from streamfold.accumulator import StreamAccumulator
from streamfold.decoder import CloseHow, Framing, StreamDecoder, Traced
from streamfold.events import (
    Done,
    ErrorEvent,
    Event,
    Raw,
    Restart,
    Start,
    ToolCallDone,
    ToolCallStart,
    Usage,
)
from streamfold.framing.sse import ServerSentEvent
from streamfold.lint._anthropic import AnthropicCheck
from streamfold.lint._bedrock import ConverseCheck
from streamfold.lint._bytes import WATCHES, ByteWatch, LineWatch, Place
from streamfold.lint._chat import ChatCheck
from streamfold.lint._cohere import CohereCheck
from streamfold.lint._gemini import GeminiCheck, InteractionsCheck
from streamfold.lint._live import LIVE
from streamfold.lint._ollama import OllamaCheck
from streamfold.lint._responses import ResponsesCheck
from streamfold.lint._surface import Members, PlainCheck, SurfaceCheck, shown
from streamfold.lint.rules import RULES, Finding
from streamfold.payloads import DECODE_ERRORS, BadJSON, DepthExceeded, is_done, is_json, is_keep_alive, lenient
from streamfold.providers._aws import unwrapped
from streamfold.stream import ByteSource, PullStream

__all__ = ["CheckSettings", "Linter", "check"]

CHECKS: Final[Mapping[str, type[SurfaceCheck]]] = {
    # surface -> its rules; one without a row is held to the rules of all
    "anthropic": AnthropicCheck,
    "openai-chat": ChatCheck,
    "openai-responses": ResponsesCheck,
    "gemini": GeminiCheck,
    "gemini-interactions": InteractionsCheck,
    "cohere": CohereCheck,
    "ollama": OllamaCheck,
    "bedrock-converse": ConverseCheck,
}
RESULTS_BY_NAME: Final = ("gemini", "ollama")
"""Surfaces whose calls need no id: a result names the tool."""
IN_LINES: Final = ("ollama",)
"""Surfaces whose clients read line by line, where the library reads any sequence of objects."""
MAX_A_RULE: Final = 10
"""Findings a rule; of more, the number is told at the end."""

_MAX_EARLY: Final = 1_000  # findings before anything tells whose stream it is
_HALVES: Final = ("delta", "text", "content", "thinking", "partial_json", "arguments", "reasoning_content", "reasoning")
_FATAL: Final = {
    "bad_json": "bad_json",
    "checksum": "bad_checksum",
    **dict.fromkeys(("not_a_stream", "compressed", "empty", "not_json_array"), "not_a_stream"),
}
_KINDS: Final = {"provider": "in_band_error", "truncated": "truncated", "limit": "limit"}
_ORDER: Final = {code: number for number, code in enumerate(RULES)}


class CheckSettings(TypedDict, total=False):
    """Settings of a check; meanings and defaults as in :class:`streamfold.Settings`."""

    framing: Framing
    max_frame_bytes: int | None
    max_depth: int | None
    max_blocks: int | None


class _Frame(NamedTuple):
    frame: ServerSentEvent | None
    events: tuple[Event, ...]
    offset: int


class Linter:
    """Bytes of one stream in, findings out, sorted by offset; no I/O.

    How the bytes are cut changes nothing. It holds the frame that is open, what the decoder holds, and of the answer's
    texts no more than digests.

    Args:
        provider: Whose stream it is, ``auto`` to tell by the first payload.
        settings: See :class:`CheckSettings`.

    Raises:
        UsageError: An unknown provider, framing or setting.
    """

    ended = False  # what follows the terminal sign is looked at too
    fault: None = None  # nothing that comes from a provider is raised

    def __init__(self, provider: str = "auto", **settings: Unpack[CheckSettings]) -> None:
        if provider in IN_LINES and settings.get("framing", "auto") == "auto":
            settings["framing"] = "jsonl"
        self._decoder = StreamDecoder(provider, raw="unknown", **settings)
        self._decoder.fold_into(_Forgetful())
        self._max_depth = settings.get("max_depth", limits.MAX_DEPTH)
        self._bytes: ByteWatch | None = ByteWatch()  # None in a framing that is no text
        self._watches = {framing: watch() for framing, watch in WATCHES.items()}  # until the framing is sure
        self._early: list[tuple[str, Place]] = []  # what they showed before it was, and which of them; "": of any text
        self._unusual: set[str] = set()  # kinds of lines that were reported
        self._check: SurfaceCheck | None = None
        self._known = False  # whether the surface is
        self._waiting: list[_Frame] = []  # frames before it is
        self._offset = 0  # of the frame that is being looked at
        self._last = -1  # of the last frame
        self._position = 0
        self._closed = self._over = self._failed = False
        self._dead = False  # the reading ended at a fault: what follows is not judged
        self._mystery = False  # the surface is none that is known
        self._at: int | None = None  # where the message stands that is read, if it stands in a recording
        self._sent: list[tuple[int, Members]] = []  # by the client, before the surface is known
        self._found: list[Finding] = []  # not handed out yet
        self._count: Counter[str] = Counter()
        # of the answer
        self._ids: set[str] = set()
        self._bad_calls: list[str] = []
        self._usage: Usage | None = None

    # -- in and out ---------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Finding]:
        """Take in the next bytes; the findings that are sure.

        Raises:
            UsageError: ``data`` is no bytes.
        """
        pairs = self._decoder.trace(data)
        text: Any = data  # with framing="messages" it may be text, or an object
        raw = (
            b"" if isinstance(text, dict) else text.encode("utf-8", "replace") if isinstance(text, str) else bytes(text)
        )
        self._position = self._position + len(raw) if self._at is None else self._at + len(raw)
        self._look_at_bytes(raw)
        self._look_at_frames(pairs)
        return self._sure(self._safe())

    def close(self, how: CloseHow = "eof") -> list[Finding]:
        """Declare the end of input; the rest of the findings. A cut or a cancel is no finding itself."""
        if self._closed:
            return []
        self._closed = True
        pairs = self._decoder.trace_close(how)
        if how == "eof":
            if self._bytes is not None:
                self._early += [("", place) for place in self._bytes.close()]
            for framing, watch in self._watches.items():
                self._early += [(framing, place) for place in watch.close()]
        self._look_at_frames(pairs)
        if how == "eof":
            self._end_of_input()
        return self._sure(None)

    def sent(self, message: dict[str, Any], offset: int | None = None) -> list[Finding]:
        """The client sent this message: some rules are of what it says, and of what answers it.

        Args:
            message: The object.
            offset: Where it stands, in bytes, if a recording is read.
        """
        at = self._position if offset is None else offset
        if self._check is None:
            self._sent += [(at, message)] if len(self._sent) < _MAX_EARLY else []
            return []
        self._offset = at
        self._check.sent(message)
        return self._sure(self._safe())

    def feed_at(self, message: bytes, offset: int) -> list[Finding]:
        """Take in the next message of a session, which stands at that offset of its recording."""
        self._at = offset
        return self.feed(message)

    def release(self) -> None:
        """All of the last batch was handed out, and a long wait may come: keep nothing of it."""
        self._decoder.release()

    # -- what was found -----------------------------------------------------------------------------------------------

    def _report(self, code: str, message: str) -> None:
        self._report_at(self._offset, code, message)

    def _report_at(self, offset: int, code: str, message: str) -> None:
        rule = RULES[code]
        self._found.append(Finding(code, rule.severity, offset, message, rule.breaks))

    @property
    def _sure_of_all(self) -> bool:
        """Whether it is known that this is a stream, how it is framed and whose it is, or never will be."""
        return self._closed or self._decoder.ended or (self._known and self._last >= 0)

    def _safe(self) -> int:
        """Nothing more will be found before here."""
        if not self._sure_of_all:
            return 0
        return self._lines.safe if self._lines is not None else self._last + 1

    def _sure(self, before: int | None) -> list[Finding]:
        """The findings before that offset, all if there is none, in order."""
        self._found.sort(key=lambda found: (found.offset, _ORDER[found.code], found.message))
        ready = [found for found in self._found if before is None or found.offset < before]
        self._found = self._found[len(ready) :]
        shown_: list[Finding] = []
        for found in ready:
            self._count[found.code] += 1
            if self._count[found.code] <= MAX_A_RULE:
                shown_.append(found)
        if before is None:
            shown_ += self._more()
        return shown_

    def _more(self) -> Iterator[Finding]:
        for code, count in self._count.items():
            if count > MAX_A_RULE:
                rule, more = RULES[code], count - MAX_A_RULE
                yield Finding(code, rule.severity, self._position, f"and {more} more of these", rule.breaks)

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _look_at_bytes(self, data: bytes) -> None:
        """What bytes and lines show waits until it is sure that they are text, and lines."""
        if self._bytes is not None:
            self._early += [("", place) for place in self._bytes.feed(data)]
        for framing, watch in self._watches.items():
            self._early += [(framing, place) for place in watch.feed(data)]

    def _judge_bytes(self) -> None:
        """Take what bytes and lines show for what it is in this framing."""
        framing = self._decoder.framing
        if framing == "json_array" and self._decoder.surface in IN_LINES:
            framing = "jsonl"
        if framing in ("eventstream", "messages"):
            self._bytes = None
        self._watches = {known: watch for known, watch in self._watches.items() if known == framing}
        for of, (offset, code, message) in self._early:
            if of == framing or (not of and self._bytes is not None):
                self._report_at(offset, code, message)
        self._early.clear()

    @property
    def _lines(self) -> LineWatch | None:
        """What looks at the lines of an event stream, if it is one."""
        watch = self._watches.get("sse")
        return watch if isinstance(watch, LineWatch) else None

    def _look_at_lines(self) -> None:
        """Lines that this surface does not have, each kind once."""
        if self._lines is None or self._decoder.surface != "gemini":
            return
        for kind in self._lines.unusual.keys() - self._unusual:
            self._unusual.add(kind)
            self._report_at(self._lines.unusual[kind], "extra_line", f"a line is {kind}")

    # -- frames -------------------------------------------------------------------------------------------------------

    def _look_at_frames(self, pairs: list[Traced]) -> None:
        number = 0
        for frame, events in pairs:
            if frame is not None:
                self._last = self._decoder.offset_of(number) if self._at is None else self._at
                number += 1
                self._waiting.append(_Frame(frame, events, self._last))
            else:
                self._waiting.append(_Frame(None, events, self._position))
        if not self._known:
            self._learn()
        if not self._sure_of_all:
            del self._early[_MAX_EARLY:]
            return
        self._judge_bytes()
        if self._check is not None:
            self._check.named = self._decoder.framing in self._check.names
        waiting, self._waiting = self._waiting, []
        for found in waiting:
            self._frame(found)
        self._look_at_lines()

    def _learn(self) -> None:
        """Whose rules hold, once the decoder knows whose stream it is, or has given up."""
        surface = self._decoder.surface
        # What tells is the first frame that causes events, wherever the reads end that bring those after it.
        events = next((waiting.events for waiting in self._waiting if waiting.events), ())
        if surface == "unknown" and not events:
            return
        self._known = True
        if surface != "unknown":
            live = self._decoder.framing == "messages" or surface not in CHECKS
            self._check = ((LIVE.get(surface) if live else CHECKS[surface]) or PlainCheck)(self._report)
            for offset, message in self._sent:
                self._offset = offset
                self._check.sent(message)
        elif not any(isinstance(e, ErrorEvent) and e.kind != "truncated" for e in events):
            self._mystery = True
            if self._last >= 0:
                self._report_at(self._waiting[0].offset, "unknown_surface", "no payload tells whose stream this is")

    def _frame(self, found: _Frame) -> None:
        frame, events, self._offset = found
        if frame is None:
            self._offset = self._cause(events)
        over = self._over and self._decoder.ended  # a live session goes on after each turn
        if frame is not None and not over:
            members = self._members(frame.data)
            failed = any(isinstance(event, ErrorEvent) and event.fatal for event in events)
            if self._check is not None and not failed:  # an error's own members are the provider's business
                if members is not None:
                    name = frame.event if self._check.named and frame.event != "message" else None
                    self._check.payload(members, name)
                elif is_done(frame.data):
                    self._check.sentinel()
            if members is None:  # said already
                events = tuple(event for event in events if not isinstance(event, Raw))
        elif frame is not None and not self._dead:
            self._after_end(frame.data)
        for event in events:
            handler = _EVENTS.get(type(event))
            if handler is not None:
                handler(self, event)

    def _members(self, data: str) -> Members | None:
        """The object that a payload is, None if it is none; and whether every reader would make the same of it."""
        if not data.strip():
            self._report("empty_data", "a frame's data is blank")
        elif is_done(data):
            pass
        elif is_keep_alive(data):
            self._report("framed_comment", "a frame's data is a comment")
        else:
            inner = unwrapped(data)
            return self._decoded(inner) if isinstance(inner, str | bytes) else inner
        return None

    def _decoded(self, data: str | bytes) -> Members | None:
        try:
            value: Any = msgspec.json.decode(data)
        except DECODE_ERRORS:
            try:
                value = lenient(data, max_depth=self._max_depth, halves=_HALVES)
            except (BadJSON, DepthExceeded):
                return None  # the decoder says so
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            if is_json(text, None):
                self._report("lone_surrogate", "a payload escapes half a surrogate pair")
            else:
                self._report("not_strict_json", "a payload is JSON to a lenient reader alone")
        if isinstance(value, dict):
            return value
        self._report("not_an_object", f"a payload is {shown(data)}")
        return None

    def _after_end(self, data: str) -> None:
        if self._check is not None and is_done(data) and not self._check.done:
            self._check.sentinel()
        else:
            self._report("after_end", f"a frame follows the end: {shown(data)}")

    # -- events -------------------------------------------------------------------------------------------------------

    def _error(self, event: ErrorEvent) -> None:
        code = _KINDS.get(event.kind)
        if event.kind == "protocol":
            code = event.code if not event.fatal else _FATAL.get(event.code or "", "bad_framing")
        if code == "truncated" and self._last < 0:
            code = "not_a_stream"
        if event.fatal:
            self._over = self._failed = True
            self._dead = event.kind != "provider"
        if code is None or code not in RULES or (code == "truncated" and self._mystery):
            return
        late = code == "not_a_stream" and self._last >= 0  # told at the end: none of the frames was any good
        here = event.offset is None or event.code in _AT_THE_END or self._at is not None
        told = self._offset if here or event.offset is None else event.offset
        offset = self._position if late else told
        self._report_at(offset, code, event.message)

    def _cause(self, events: Iterable[Event]) -> int:
        """Where what no frame caused was caused: by the end of input, or by what stands among the frames."""
        error = next((event for event in events if isinstance(event, ErrorEvent) and event.fatal), None)
        if error is None or error.kind == "truncated" or error.code in _AT_THE_END:
            return self._position
        if self._at is not None:
            return self._at
        if error.offset is not None:
            return error.offset
        block, bare = self._decoder.bare_error_in, self._lines.bare if self._lines is not None else ()
        return next((at for at in bare if block is None or at >= block), max(self._last, 0))

    def _call_start(self, event: ToolCallStart) -> None:
        meta = event.meta.decoded() if event.meta is not None else {}
        if event.executor == "client" and "synthetic_id" in meta and self._decoder.surface not in RESULTS_BY_NAME:
            self._report("no_call_id", f"the call of {shown(event.name)} has no id")
        elif event.id in self._ids:
            self._report("call_id_twice", f"a second call is called {shown(event.id)}")
        self._ids.add(event.id)

    def _call_done(self, event: ToolCallDone) -> None:
        if not event.name:
            self._report("no_call_name", f"the call {shown(event.id)} has no name")
        if not event.valid and event.executor == "client":
            self._bad_calls.append(event.name)

    def _start(self, event: Start) -> None:
        if self._over:  # another turn
            self._over, self._usage = False, None
            self._ids.clear()
            self._bad_calls.clear()

    def _restart(self, event: Restart) -> None:
        self._ids.clear()
        self._bad_calls.clear()

    def _totals(self, event: Usage) -> None:
        self._usage = event

    def _unknown(self, event: Raw) -> None:
        if self._check is not None:
            self._report("unknown_type", f"a payload is of type {shown(event.name)}")

    def _done(self, event: Done) -> None:
        self._over = True
        known: frozenset[str] = frozenset()
        if self._check is not None:
            self._check.over()
            known = self._check.reasons
        cut = any(stop.reason in ("length", "refusal") for stop in event.stops)
        for name in () if cut else self._bad_calls:
            self._report("bad_arguments", f"the arguments of {shown(name)} are no JSON")
        for stop in event.stops:
            if stop.reason == "other" and stop.raw is not None and stop.raw not in known:
                self._report("other_reason", f"the finish reason is {shown(stop.raw)}")
        if self._usage is None:
            if self._check is None or self._check.has_usage:
                self._report("no_usage", "no usage came")
        else:
            self._add_up(self._usage)

    def _add_up(self, usage: Usage) -> None:
        tokens_in, tokens_out, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
        if tokens_in is not None and tokens_out is not None and total is not None and tokens_in + tokens_out != total:
            self._report("usage_sum", f"{tokens_in} tokens in and {tokens_out} out are not {total}")
        for part, of in _PARTS_OF.items():
            count, whole = getattr(usage, part), getattr(usage, of)
            if count is not None and (count < 0 or (whole is not None and count > whole)):
                self._report("usage_part", f"{part} is {count}, {of} is {whole}")

    def _end_of_input(self) -> None:
        self._offset = self._position
        check = self._check
        if check is not None and check.needs_done and not check.done and self._over and not self._failed:
            self._report("no_done", "the input ends without [DONE]")


_AT_THE_END: Final = ("wrong_provider", "no_line_ends")
"""Errors that are of the whole stream, so that only its end tells them."""

_PARTS_OF: Final = {
    "reasoning_tokens": "output_tokens",
    "cache_read_tokens": "input_tokens",
    "cache_write_tokens": "input_tokens",
    "input_audio_tokens": "input_tokens",
    "output_audio_tokens": "output_tokens",
    "input_image_tokens": "input_tokens",
    "output_image_tokens": "output_tokens",
}

_EVENTS: Final[Mapping[type[Event], Callable[[Linter, Any], None]]] = {
    ErrorEvent: Linter._error,
    ToolCallStart: Linter._call_start,
    ToolCallDone: Linter._call_done,
    Start: Linter._start,
    Restart: Linter._restart,
    Usage: Linter._totals,
    Raw: Linter._unknown,
    Done: Linter._done,
}


class _Forgetful(StreamAccumulator):
    """Folds nothing: nobody asks a linter for the answer."""

    def extend(self, events: Iterable[Event], *, named: bool = False) -> None:
        """Nothing is kept."""


def check(source: ByteSource, provider: str = "auto", **settings: Unpack[CheckSettings]) -> PullStream[Finding]:
    """What a stream does that its surface does not, pulled as it is found, in the order of the stream.

    ::

        with streamfold.check(response.iter_bytes(), "openai-chat") as findings:
            for finding in findings:
                print(finding.offset, finding.code, finding.message)

    Args:
        source: See :data:`streamfold.stream.ByteSource`.
        provider: Whose stream it is, ``auto`` to tell by the first payload.
        settings: See :class:`CheckSettings`.

    Returns:
        An iterator, and a context manager that closes the source. No finding: nothing is wrong.

    Raises:
        UsageError: An unknown provider, framing or setting; a source that gives no bytes.
    """
    return PullStream(source, Linter(provider, **settings))
