"""``streamfold frames``: a stream in, its frames out, whatever they mean."""

from __future__ import annotations

import sys
from typing import IO, Any, Final

import click
import msgspec

from streamfold import FramingError, parse_event_stream
from streamfold.cli._input import Input, told_framing
from streamfold.cli._main import COMPLETE, FAULTY, complain, ending
from streamfold.cli._reading import READING, options, print_json

__all__ = ["frames"]

_MEMBERS: Final = {"sse": ("event", "data", "id", "retry"), "eventstream": ("event", "data")}


@click.command()
@options(*READING)
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
                    print_json(msgspec.json.encode({name: getattr(frame, name) for name in members}))
                    if not frame.complete:
                        complain("warning: the input ended before the last frame was closed by a blank line")
        except FramingError as fault:
            complain(str(fault))
            return FAULTY
    return COMPLETE
