"""What the commands that read a stream share: their options, whose stream it is, lines out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import click

from streamfold import ErrorEvent, limits
from streamfold.cli._input import Answer, Input
from streamfold.cli._main import COMPLETE, FAULTY, complain
from streamfold.cli._sessions import RecordedSession
from streamfold.decoder import FRAMINGS
from streamfold.providers.registry import PROVIDERS, framing_of
from streamfold.recording.sessions import told_session
from streamfold.views.lines import neutral_json
from streamfold.views.terminal import error_line

__all__ = [
    "MEANING",
    "PROVIDER",
    "READING",
    "code_of",
    "complain_of",
    "options",
    "print_json",
    "session_of",
    "told_whose",
]

Option: TypeAlias = Callable[[Any], Any]


# -- options ----------------------------------------------------------------------------------------------------------


def _bound(context: click.Context, parameter: click.Parameter, value: int) -> int | None:
    return value or None


READING: Final[tuple[Option, ...]] = (
    click.argument("file", type=click.File("rb")),
    click.option(
        "--framing", type=click.Choice(FRAMINGS), default="auto", help="How the bytes are framed.", show_default=True
    ),
    click.option(
        "--max-frame-bytes",
        type=click.IntRange(min=0),
        metavar="N",
        default=limits.MAX_FRAME_BYTES,
        callback=_bound,
        help="Bound of one unfinished frame, in bytes; 0 is no bound.",
        show_default=True,
    ),
    click.option("--chunk", type=click.IntRange(min=1), metavar="N", help="Re-cut the input into reads of N bytes."),
)
PROVIDER: Final[Option] = click.option(
    "--provider", type=click.Choice(list(PROVIDERS)), default="auto", help="Whose stream it is.", show_default=True
)
MEANING: Final[tuple[Option, ...]] = (
    PROVIDER,
    click.option("--think-tags", is_flag=True, help="Take <think>…</think> in text for reasoning."),
)


def options(*options: Option) -> Option:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# -- whose stream it is -----------------------------------------------------------------------------------------------


def told_whose(source: Input, settings: dict[str, Any]) -> tuple[bool, Any]:
    """Whether it is a recorded session, and what to read; what a recording says is set where nothing else was said."""
    chunks, recording = iter(source), source.recording
    told = None if recording is None else recording.head.provider
    if told is not None and told in PROVIDERS and settings["provider"] == "auto":
        settings["provider"] = told
    recorded = False
    if settings["framing"] in ("auto", "messages"):
        recorded, chunks = told_session(chunks)
        if not recorded and "messages" in (settings["framing"], framing_of(settings["provider"])):
            settings["framing"] = "jsonl"  # in a file they are a line each
    if recorded or recording is None:
        return recorded, chunks
    return False, Answer(chunks, recording.status_code, recording.headers)


def session_of(chunks: Iterator[bytes], settings: dict[str, Any], **more: Any) -> RecordedSession:
    return RecordedSession(chunks, settings["provider"], max_frame_bytes=settings["max_frame_bytes"], **more)


# -- output -----------------------------------------------------------------------------------------------------------


def print_json(line: bytes) -> None:
    if sys.stdout.isatty():
        line = neutral_json(line.decode()).encode()
    sys.stdout.buffer.write(line + b"\n")


def complain_of(error: ErrorEvent) -> int:
    complain(error_line(error) if error.fatal else f"warning: {error_line(error)}")
    return code_of(error)


def code_of(error: ErrorEvent) -> int:
    return FAULTY if error.fatal else COMPLETE
