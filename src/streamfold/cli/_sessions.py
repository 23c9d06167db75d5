"""Recorded sessions: lines of ``{"dir": "in"|"out"|"close", …}``, each a message of a WebSocket or its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, Literal

import msgspec

from streamfold import FramingError, LiveSession, Malformed, TurnEvent, UsageError
from streamfold.framing.jsonl import JSONLinesParser

__all__ = ["RecordedSession", "told_provider", "told_session"]

_FIRST: Final = re.compile(rb'\s*\{\s*"dir"\s*:', re.ASCII)
_ENOUGH: Final = 64  # bytes that tell whether a line begins like that
_NO_CONTENT: Final = b"\xef\xbb\xbf \t\r\n"
_LOOKED_AT: Final = 8  # lines, to tell whose session it is


class _Line(msgspec.Struct):
    dir: Literal["in", "out", "close"]
    frame: msgspec.Raw = msgspec.Raw(b"null")
    code: int | None = None
    reason: str | None = ""


_LINE: Final = msgspec.json.Decoder(_Line)
_ANY: Final = msgspec.json.Decoder()


def told_session(chunks: Iterator[bytes]) -> tuple[bool, Iterator[bytes]]:
    """Whether the bytes begin as a recorded session does, and the chunks that this was read from."""
    head: list[bytes] = []
    begin = b""
    for chunk in chunks:
        head.append(chunk)
        begin = (begin + chunk).lstrip(_NO_CONTENT)
        if len(begin) >= _ENOUGH or begin[:1] not in (b"", b"{"):
            break
    return _FIRST.match(begin) is not None, chain(head, chunks)


class RecordedSession:
    """The events of a recorded session, message by message.

    Args:
        chunks: The bytes of the recording.
        provider: Whose session it is; ``auto``: told by the first lines.
        max_frame_bytes: Bound of one message, in bytes.
        settings: Of the session.

    Attributes:
        session: What the messages were fed to.
    """

    def __init__(self, chunks: Iterable[bytes], provider: str, *, max_frame_bytes: int | None, **settings: Any) -> None:
        self._lines = self._lines_of(chunks, max_frame_bytes)
        if provider == "auto":
            first: list[_Line] = []
            self._lines = chain(first, self._after(first))
            provider = _provider_of(first)
        self.session = LiveSession(provider, max_frame_bytes=max_frame_bytes, **settings)

    def __iter__(self) -> Iterator[TurnEvent]:
        closed = True
        for line in self._lines:
            closed = line.dir == "close"
            if line.dir == "in":
                yield from self.session.feed(bytes(line.frame))
            elif line.dir == "out":
                self.session.sent(bytes(line.frame))
            else:
                yield from self.session.close(line.code, line.reason or "")
        if not closed:  # the recording ends before the connection did
            yield from self.session.close()

    def _after(self, first: list[_Line]) -> Iterator[_Line]:
        """Read the first lines into a list; the lines that follow, and the fault, if those met one."""
        lines = self._lines
        try:
            for line in islice(lines, _LOOKED_AT):
                first.append(line)  # noqa: PERF402 - those before a fault stay
        except FramingError as fault:
            return _raising(fault)
        return lines

    def _lines_of(self, chunks: Iterable[bytes], max_frame_bytes: int | None) -> Iterator[_Line]:
        parser = JSONLinesParser(max_frame_bytes=max_frame_bytes)
        number = 0
        for chunk in chain(chunks, (None,)):
            if chunk is None:
                parser.close()
            else:
                parser.feed(chunk)
            for text in parser:
                number += 1
                try:
                    yield _LINE.decode(text)
                except msgspec.DecodeError:
                    raise Malformed(f"line {number} is none of a recorded session", parser.offset_of(0)) from None


def told_provider(chunks: Iterator[bytes], provider: str) -> tuple[str, Iterator[bytes]]:
    """Whose session a recording is, and the chunks that this was read from.

    Raises:
        UsageError: ``provider`` is ``auto``, and the first lines do not tell.
    """
    if provider != "auto":
        return provider, chunks
    parser, head, lines = JSONLinesParser(), list[bytes](), list[_Line]()
    for chunk in chunks:
        head.append(chunk)
        lines += map(_line_of, parser.take(chunk))
        if len(lines) >= _LOOKED_AT or parser.fault is not None:
            break
    lines += map(_line_of, parser.finish("eof"))
    return _provider_of(lines[:_LOOKED_AT]), chain(head, chunks)


def _line_of(text: bytes) -> _Line:
    """A line, or one that says nothing where it is none: the linter tells that."""
    try:
        return _LINE.decode(text)
    except msgspec.DecodeError:
        return _Line("close")


def _raising(fault: FramingError) -> Iterator[_Line]:
    raise fault
    yield  # which makes it an iterator


def _is_lyria(frame: Mapping[str, Any]) -> bool:
    named = _object(frame.get("setup")).get("model")
    return "lyria" in str(named) or "weightedPrompts" in str(frame) or "audioChunks" in str(frame)


def _is_gemini_live(frame: Mapping[str, Any]) -> bool:
    return bool(frame.keys() & {"setup", "setupComplete", "serverContent", "toolCall", "sessionResumptionUpdate"})


def _is_interactions(frame: Mapping[str, Any]) -> bool:
    return bool(frame.keys() & {"event_type", "events"})


def _typed(*kinds: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a message is of one of these types, or of a type that begins like one that ends in a dot."""
    families = tuple(kind for kind in kinds if kind.endswith("."))
    return lambda frame: (type_ := str(frame.get("type"))) in kinds or type_.startswith(families)


_SHAPES: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    # provider -> what one of its first messages looks like, in either direction; the first row that fits any counts
    "lyria": _is_lyria,
    "gemini-live": _is_gemini_live,
    "gemini": _is_interactions,
    "xai-stt": _typed("transcript."),
    "xai-tts": _typed("audio.", "text."),
    "xai-realtime": _typed("ping", "conversation.created"),
    "openai-realtime": _typed("session.", "conversation.", "input_audio_buffer."),
    "openai-responses": _typed("response."),
}


def _provider_of(lines: Iterable[_Line]) -> str:
    frames = [_object(_ANY.decode(line.frame)) for line in lines if line.dir != "close"]
    for provider, fits in _SHAPES.items():
        if any(map(fits, frames)):
            return provider
    raise UsageError("the first messages do not tell whose session this is: name the provider")


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
