"""The commands. Each is bytes in, one call of the library, lines out."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, TypeAlias

import click
import msgspec

from streamfold import (
    ErrorEvent,
    Event,
    FramingError,
    Snapshot,
    __version__,
    encode_event,
    iter_unified,
    limits,
    parse_event_stream,
)
from streamfold.cli._input import Answer, Input, told_framing
from streamfold.cli._main import COMPLETE, FAULTY, WRONG_USAGE, Main, complain, ending
from streamfold.cli._page import page
from streamfold.cli._sessions import RecordedSession
from streamfold.cli.convert import convert
from streamfold.cli.record import record
from streamfold.cli.replay import replay
from streamfold.cli.stats import stats
from streamfold.decoder import FRAMINGS
from streamfold.lint.linter import check as findings_in
from streamfold.lint.rules import Finding
from streamfold.lint.sessions import check_session
from streamfold.providers.registry import PROVIDERS, framing_of
from streamfold.recording.sessions import told_provider, told_session
from streamfold.stream import PullStream
from streamfold.views.lines import neutral_json, one_line
from streamfold.views.terminal import Drawing, error_line, events_of

__all__ = ["main"]

Option: TypeAlias = Callable[[Any], Any]


@click.group(cls=Main, invoke_without_command=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Read the streamed answer of a language-model provider.

    FILE is a recording, or - for standard input, live pipes included:

    \b
        curl -N … | streamfold fold -

    \b
    Exit codes:
        0    the answer is complete
        1    it failed, was truncated, or could not be read
        2    wrong usage, or no such file
        130  interrupted
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(WRONG_USAGE)


# -- options ----------------------------------------------------------------------------------------------------------


def _bound(context: click.Context, parameter: click.Parameter, value: int) -> int | None:
    return value or None


_READING: Final[tuple[Option, ...]] = (
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
_PROVIDER: Final[Option] = click.option(
    "--provider", type=click.Choice(list(PROVIDERS)), default="auto", help="Whose stream it is.", show_default=True
)
_MEANING: Final[tuple[Option, ...]] = (
    _PROVIDER,
    click.option("--think-tags", is_flag=True, help="Take <think>…</think> in text for reasoning."),
)


def _options(*options: Option) -> Option:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# -- commands ---------------------------------------------------------------------------------------------------------


@main.command()
@_options(*_READING, *_MEANING)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a drawing.")
@ending
def fold(file: IO[bytes], chunk: int | None, as_json: bool, **settings: Any) -> int:
    """Fold a stream into its answer.

    On a terminal the answer is drawn while it comes; elsewhere its lines are printed without colours. The last line
    says how it ended and what it cost; what went wrong is a line on standard error.
    """
    source = Input(file, chunk)
    with source.reading():
        recorded, chunks = _told_session(source, settings)
        if recorded:
            return _fold_session(chunks, settings, as_json=as_json)
    if as_json:
        answer, broken_off_by = _folded(source, chunks, settings, _ignore)
        _print_json(answer.to_json().encode())
        return _report(answer, broken_off_by)
    drawing, where = Drawing(), page()
    source.before_read = lambda: where.show(drawing, source.progress())
    answer, broken_off_by = _folded(source, chunks, settings, drawing.push)
    where.finish(drawing, answer)
    return _report(answer, broken_off_by, seen=where.seen_with_errors)


def _folded(
    source: Input, chunks: Any, settings: dict[str, Any], see: Callable[[Event], object]
) -> tuple[Snapshot, BaseException | None]:
    """The answer as far as it came, and what broke the reading off."""
    stream = iter_unified(chunks, raw="none", **settings)
    with source.reading():
        try:
            with stream:
                for event in stream:
                    see(event)
        except BrokenPipeError:  # of standard output
            raise
        except (KeyboardInterrupt, OSError, FramingError) as fault:
            return stream.snapshot(), fault
    return stream.snapshot(), None


def _ignore(event: Event) -> None:
    return


@main.command()
@_options(*_READING, *_MEANING)
@click.option(
    "--raw",
    type=click.Choice(["all", "unknown", "none"]),
    default="all",
    help="Which raw events to print: all, those of unknown kinds, or none.",
    show_default=True,
)
@ending
def events(file: IO[bytes], chunk: int | None, **settings: Any) -> int:
    """Print each unified event of a stream as a line of JSON."""
    source = Input(file, chunk)
    source.before_read = sys.stdout.flush
    code = COMPLETE
    with source.reading():
        recorded, chunks = _told_session(source, settings)
        if recorded:
            return _session_events(chunks, settings)
        with iter_unified(chunks, **settings) as stream:
            for event in stream:
                _print_json(encode_event(event))
                if event.type == "error" and event.kind != "transport":  # whose exception follows, and says more
                    code = _complain_of(event) or code
    return code


def _complain_of(error: ErrorEvent) -> int:
    complain(error_line(error) if error.fatal else f"warning: {error_line(error)}")
    return _code_of(error)


def _code_of(error: ErrorEvent) -> int:
    return FAULTY if error.fatal else COMPLETE


# -- recorded sessions ------------------------------------------------------------------------------------------------


def _told_session(source: Input, settings: dict[str, Any]) -> tuple[bool, Any]:
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


def _session_of(chunks: Iterator[bytes], settings: dict[str, Any], **more: Any) -> RecordedSession:
    return RecordedSession(chunks, settings["provider"], max_frame_bytes=settings["max_frame_bytes"], **more)


def _session_events(chunks: Iterator[bytes], settings: dict[str, Any]) -> int:
    """Each event with its turn, a line of JSON; null where it is the session's."""
    code = COMPLETE
    try:
        for turn, event in _session_of(chunks, settings, raw=settings["raw"]):
            _print_json(b'%b,"turn":%b}' % (encode_event(event)[:-1], msgspec.json.encode(turn)))
            if isinstance(event, ErrorEvent):
                code = _complain_of(event) or code
    except FramingError as fault:
        complain(str(fault))
        return FAULTY
    return code


def _fold_session(chunks: Iterator[bytes], settings: dict[str, Any], *, as_json: bool) -> int:
    """All turns of a session; its members in JSON are those of the last turn."""
    recorded = _session_of(chunks, settings, raw="none", max_turns=None)
    where = None if as_json else page()
    code = COMPLETE
    broken: FramingError | None = None
    try:
        for turn, event in recorded:
            if isinstance(event, ErrorEvent):
                drawn = where is not None and where.seen_with_errors and turn is not None
                code = (_code_of(event) if drawn else _complain_of(event)) or code
    except FramingError as fault:
        broken = fault
    turns = recorded.session.turns
    if as_json:
        last = recorded.session.snapshot().to_json().encode()
        _print_json(b'%b,"turns":[%b]}' % (last[:-1], b",".join(turn.to_json().encode() for turn in turns)))
    for answer in turns if where is not None else ():
        drawing = Drawing()
        for event in events_of(answer):
            drawing.push(event)
        page().finish(drawing, answer)
    if broken is not None:
        complain(str(broken))
        return FAULTY
    return code


_MEMBERS: Final = {"sse": ("event", "data", "id", "retry"), "eventstream": ("event", "data")}


@main.command()
@_options(*_READING)
@ending
def frames(file: IO[bytes], chunk: int | None, framing: Any, max_frame_bytes: int | None) -> int:
    """Print each frame of a stream as a line of JSON.

    A frame of an event stream has event, data, id and retry, a message of AWS's binary one event and data; an item of a
    JSON array and a line of JSON have data only.
    """
    source = Input(file, chunk)
    source.before_read = sys.stdout.flush
    with source.reading():
        chunks = iter(source)
        if framing == "auto":
            framing, chunks = told_framing(chunks)
        members = _MEMBERS.get(framing, ("data",))
        try:
            with parse_event_stream(chunks, framing=framing, max_frame_bytes=max_frame_bytes) as stream:
                for frame in stream:
                    _print_json(msgspec.json.encode({name: getattr(frame, name) for name in members}))
                    if not frame.complete:
                        complain("warning: the input ended before the last frame was closed by a blank line")
        except FramingError as fault:
            complain(str(fault))
            return FAULTY
    return COMPLETE


@main.command()
@_options(*_READING, _PROVIDER)
@click.option("--json", "as_json", is_flag=True, help="Each finding as a JSON object on a line of its own.")
@ending
def check(file: IO[bytes], chunk: int | None, as_json: bool, **settings: Any) -> int:
    """Say what a stream does that its surface does not.

    One finding a line: the byte where it is, how bad it is, which rule it breaks, what was found, and what that breaks
    for whom. Errors and warnings are faults (exit code 1), notes alone are not. Of a recorded session both sides are
    looked at.
    """
    source = Input(file, chunk)
    source.before_read = sys.stdout.flush
    count: Counter[str] = Counter()
    with source.reading(), _findings(source, settings) as findings:
        for finding in findings:
            count[finding.severity] += 1
            if as_json:
                _print_json(msgspec.json.encode(finding))
            else:
                click.echo(one_line(str(finding)))
    if not count["error"] and not count["warning"]:
        return COMPLETE
    complain(", ".join(f"{number} {severity}{'s' * (number > 1)}" for severity, number in count.items()))
    return FAULTY


def _findings(source: Input, settings: dict[str, Any]) -> PullStream[Finding]:
    recorded, chunks = _told_session(source, settings)
    if not recorded:
        return findings_in(chunks, **settings)
    settings["provider"], chunks = told_provider(chunks, settings["provider"])
    return check_session(chunks, **settings)


main.add_command(convert)
main.add_command(record)
main.add_command(replay)
main.add_command(stats)


# -- output -----------------------------------------------------------------------------------------------------------


def _print_json(line: bytes) -> None:
    if sys.stdout.isatty():
        line = neutral_json(line.decode()).encode()
    sys.stdout.buffer.write(line + b"\n")


def _report(answer: Snapshot, broken_off_by: BaseException | None, *, seen: bool = False) -> int:
    """Say what went wrong, unless it was seen already; the exit code."""
    for warning in () if seen else answer.warnings:
        complain(f"warning: {error_line(warning)}")
    if broken_off_by is not None:
        raise broken_off_by
    if answer.error is None:
        return COMPLETE
    if not seen:
        complain(error_line(answer.error))
    return FAULTY
