"""``streamfold fold``: a stream in, its answer out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

import click

from streamfold import ErrorEvent, Event, FramingError, Snapshot, iter_unified
from streamfold.cli._input import Input
from streamfold.cli._main import COMPLETE, FAULTY, complain, ending
from streamfold.cli._page import page
from streamfold.cli._reading import MEANING, READING, code_of, complain_of, options, print_json, session_of, told_whose
from streamfold.views.terminal import Drawing, error_line, events_of

__all__ = ["fold"]


@click.command()
@options(*READING, *MEANING)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a drawing.")
@ending
def fold(file: IO[bytes], chunk: int | None, as_json: bool, **settings: Any) -> int:
    """Fold a stream into its answer.

    On a terminal the answer is drawn while it comes; elsewhere its lines are printed without colours. The last line
    says how it ended and what it cost; what went wrong is a line on standard error.
    """
    source = Input(file, chunk)
    with source.reading():
        recorded, chunks = told_whose(source, settings)
        if recorded:
            return _fold_session(chunks, settings, as_json=as_json)
    if as_json:
        answer, broken_off_by = _folded(source, chunks, settings, _ignore)
        print_json(answer.to_json().encode())
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


def _fold_session(chunks: Iterator[bytes], settings: dict[str, Any], *, as_json: bool) -> int:
    """All turns of a session; its members in JSON are those of the last turn."""
    recorded = session_of(chunks, settings, raw="none", max_turns=None)
    where = None if as_json else page()
    code = COMPLETE
    broken: FramingError | None = None
    try:
        for turn, event in recorded:
            if isinstance(event, ErrorEvent):
                drawn = where is not None and where.seen_with_errors and turn is not None
                code = (code_of(event) if drawn else complain_of(event)) or code
    except FramingError as fault:
        broken = fault
    turns = recorded.session.turns
    if as_json:
        last = recorded.session.snapshot().to_json().encode()
        print_json(b'%b,"turns":[%b]}' % (last[:-1], b",".join(turn.to_json().encode() for turn in turns)))
    for answer in turns if where is not None else ():
        drawing = Drawing()
        for event in events_of(answer):
            drawing.push(event)
        page().finish(drawing, answer)
    if broken is not None:
        complain(str(broken))
        return FAULTY
    return code
