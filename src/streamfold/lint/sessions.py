"""Recorded sessions against their rules: lines of ``{"dir": "in" | "out" | "close", …}`` in, findings out.

The messages of each connection go to a linter of their own; offsets are those of the lines. Knows no surface.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Unpack

import msgspec

from streamfold import limits
from streamfold.errors import UsageError
from streamfold.framing.jsonl import JSONLinesParser
from streamfold.lint.linter import CheckSettings, Linter
from streamfold.lint.rules import RULES, Finding
from streamfold.stream import ByteSource, PullStream

__all__ = ["SessionLinter", "check_session"]


class _Line(msgspec.Struct):
    dir: Literal["in", "out", "close"]
    frame: msgspec.Raw = msgspec.Raw(b"null")
    code: int | None = None


_LINE: Final = msgspec.json.Decoder(_Line).decode
_DROPPED: Final = 1006  # no close frame came: the connection broke, which is no fault of the wire


class SessionLinter:
    """Bytes of one recorded session in, findings out, sorted by offset; no I/O.

    A line is an object: ``dir`` says who sent the message in ``frame``, the server (``in``) or the client (``out``);
    ``close`` ends a connection, with its ``code``, and the next line is of another one.

    Args:
        provider: Whose session it is: ``gemini-live``, ``openai-realtime``, …; not ``auto``.
        settings: See :class:`CheckSettings`; ``framing`` is not asked.

    Raises:
        UsageError: An unknown provider or setting.
    """

    ended = False
    fault: None = None  # nothing that comes from a recording is raised

    def __init__(self, provider: str, **settings: Unpack[CheckSettings]) -> None:
        if provider == "auto":  # by the time the server tells, the client has said what its rules judge
            raise UsageError("name whose session it is: 'auto' tells that of streams alone")
        settings["framing"] = "messages"
        self._provider, self._settings = provider, settings
        self._lines = JSONLinesParser(max_frame_bytes=settings.get("max_frame_bytes", limits.MAX_FRAME_BYTES))
        self._linter = self._another()
        self._closed = self._dead = False

    def _another(self) -> Linter:
        return Linter(self._provider, **self._settings)

    def feed(self, data: bytes) -> list[Finding]:
        """Take in the next bytes; the findings that are sure.

        Raises:
            UsageError: ``data`` is no bytes.
        """
        return self._read(self._lines.take(bytes(data)))

    def close(self, how: Literal["eof", "cut", "cancel"] = "eof") -> list[Finding]:
        """Declare the end of the recording, which need not be that of the session; the rest of the findings."""
        if self._closed:
            return []
        self._closed = True
        found = self._read(self._lines.finish(how))
        return found + self._linter.close("cut")

    def release(self) -> None:
        """All of the last batch was handed out, and a long wait may come: keep nothing of it."""
        self._lines.release()
        self._linter.release()

    def _read(self, lines: list[bytes]) -> list[Finding]:
        found: list[Finding] = []
        for number, line in enumerate(lines):
            if not self._dead:
                found += self._line(line, self._lines.offset_of(number))
        if self._lines.fault is not None and not self._dead:
            found += self._stop("limit", self._lines.fault.offset, str(self._lines.fault))
        return found

    def _line(self, data: bytes, offset: int) -> list[Finding]:
        try:
            line = _LINE(data)
            frame: Any = msgspec.json.decode(line.frame) if line.dir == "out" else None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return self._stop("not_a_recording", offset, "a line is none of a recorded session")
        if line.dir == "close":
            found = self._linter.close("cut" if line.code == _DROPPED else "eof")
            self._linter = self._another()
            return found
        if line.dir == "in":
            return self._linter.feed_at(bytes(line.frame), offset)
        return self._linter.sent(frame, offset) if isinstance(frame, dict) else []

    def _stop(self, code: str, offset: int, message: str) -> list[Finding]:
        self._dead = True
        rule = RULES[code]
        return [*self._linter.close("cut"), Finding(code, rule.severity, offset, message, rule.breaks)]


def check_session(source: ByteSource, provider: str, **settings: Unpack[CheckSettings]) -> PullStream[Finding]:
    """What a recorded session does that its surface does not, pulled as it is found, in the order of the recording.

    Args:
        source: The bytes of the recording; see :class:`SessionLinter` and :data:`streamfold.stream.ByteSource`.
        provider: Whose session it is; not ``auto``.
        settings: See :class:`CheckSettings`.

    Returns:
        An iterator, and a context manager that closes the source. No finding: nothing is wrong.

    Raises:
        UsageError: An unknown provider or setting; a source that gives no bytes.
    """
    return PullStream(source, SessionLinter(provider, **settings))
