"""``streamfold events``: a stream in, its unified events out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import IO, Any

import click
import msgspec

from streamfold import ErrorEvent, FramingError, encode_event, iter_unified
from streamfold.cli._input import Input
from streamfold.cli._main import COMPLETE, FAULTY, complain, ending
from streamfold.cli._reading import MEANING, READING, complain_of, options, print_json, session_of, told_whose

__all__ = ["events"]


@click.command()
@options(*READING, *MEANING)
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
        recorded, chunks = told_whose(source, settings)
        if recorded:
            return _session_events(chunks, settings)
        with iter_unified(chunks, **settings) as stream:
            for event in stream:
                print_json(encode_event(event))
                if event.type == "error" and event.kind != "transport":  # whose exception follows, and says more
                    code = complain_of(event) or code
    return code


def _session_events(chunks: Iterator[bytes], settings: dict[str, Any]) -> int:
    """Each event with its turn, a line of JSON; null where it is the session's."""
    code = COMPLETE
    try:
        for turn, event in session_of(chunks, settings, raw=settings["raw"]):
            print_json(b'%b,"turn":%b}' % (encode_event(event)[:-1], msgspec.json.encode(turn)))
            if isinstance(event, ErrorEvent):
                code = complain_of(event) or code
    except FramingError as fault:
        complain(str(fault))
        return FAULTY
    return code
