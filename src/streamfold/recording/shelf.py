"""All recordings that a replay server has: read from files and folders, and which of them answers what is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from streamfold.errors import FramingError, UsageError
from streamfold.recording.answers import RecordedAnswer, Sitting, from_body, from_reads
from streamfold.recording.files import Recording, is_recording, read_recording, unpacked
from streamfold.recording.sfcap import Read
from streamfold.recording.surfaces import Endpoint

__all__ = ["NoRecording", "Shelf", "load"]

_SUFFIXES: Final = (".sfcap", ".sfcap.zst", ".sse", ".json", ".jsonl", ".bin", ".txt")
_AnyRecording = TypeVar("_AnyRecording", RecordedAnswer, Sitting)


class NoRecording(UsageError):
    """No recording answers what was asked. The words say what there is."""


def load(*places: str | PathLike[str]) -> Shelf:
    """The recordings at these places: files, and folders, of which the files count that look like recordings.

    Raises:
        OSError: A file cannot be read.
        UsageError: A file that was named is no recording; or there is none at all.
    """
    found: list[RecordedAnswer | Sitting] = []
    skipped: list[str] = []
    for place in map(Path, places):
        if not place.is_dir():
            found.append(_read(place))
            continue
        for path in sorted(place.rglob("*")):
            if path.is_file() and path.name.endswith(_SUFFIXES):
                try:
                    found.append(_read(path))
                except UsageError as fault:
                    skipped.append(str(fault))
    if not found:
        raise UsageError("there is no recording" + "".join(f"; {words}" for words in skipped))
    return Shelf(found, skipped)


def _read(path: Path) -> RecordedAnswer | Sitting:
    return msgspec.structs.replace(_told(path, _stem(path)), file=path.name)


def _told(path: Path, name: str) -> RecordedAnswer | Sitting:
    with path.open("rb") as file:
        begin = file.read(16)
    if not is_recording(begin):
        return from_body(name, path.read_bytes())
    try:
        with read_recording(path) as recording:
            reads = list(_timed(recording))
            return from_reads(name, recording.head, reads, recording.end)
    except FramingError as fault:
        raise UsageError(f"{name}: {fault}") from fault


def _stem(path: Path) -> str:
    suffix = next((suffix for suffix in sorted(_SUFFIXES, key=len, reverse=True) if path.name.endswith(suffix)), "")
    return path.name.removesuffix(suffix)


def _timed(recording: Recording) -> Iterator[Read]:
    """The reads; those of a body that was packed, unpacked, each at the time of what brought it."""
    encoding = recording.headers.get("content-encoding")
    if encoding is None or recording.is_session:
        yield from recording
        return
    at = 0

    def packed() -> Iterator[bytes]:
        nonlocal at
        for read in recording:
            at = read.t
            yield read.data

    for data in unpacked(packed(), encoding):
        yield Read(at, data)


class Shelf:
    """Recordings, and whose turn it is.

    Several that fit answer in turn, in the order of their names.

    Args:
        recordings: All.
        skipped: What was passed over, and why.

    Attributes:
        answers: Answers over HTTP, by name.
        sittings: Sessions over WebSockets, by name.
        skipped: As given.
    """

    def __init__(self, recordings: Iterable[RecordedAnswer | Sitting], skipped: Sequence[str] = ()) -> None:
        recordings = sorted(recordings, key=lambda recording: (recording.name, recording.file))
        self.answers = [recording for recording in recordings if isinstance(recording, RecordedAnswer)]
        self.sittings = [recording for recording in recordings if isinstance(recording, Sitting)]
        self.skipped = tuple(skipped)
        self._turns: Counter[tuple[str, ...]] = Counter()

    def answer(self, surface: str, *, name: str | None = None, model: str | None = None) -> RecordedAnswer:
        """The answer to a request.

        Args:
            surface: At whose path it came.
            name: Of the recording, where the request says which.
            model: Of the request: a recording of this name comes before the others.

        Raises:
            NoRecording: There is none.
        """
        return self._next(self.answers, (surface,), name, model)

    def sitting(self, surfaces: tuple[str, ...], *, name: str | None = None, model: str | None = None) -> Sitting:
        """The session for a WebSocket. See :meth:`answer`."""
        return self._next(self.sittings, surfaces, name, model)

    def with_run(self, endpoint: Endpoint, id_: str) -> RecordedAnswer | None:
        """The recording of this run; None where there is none."""
        run = endpoint.run
        for answer in self.answers:
            if answer.surface == endpoint.surface and run is not None:
                ids = (run.id_of(part.decoded) for part in answer.parts)
                if next(filter(None, ids), None) == id_:
                    return answer
        return None

    def _next(
        self, recordings: list[_AnyRecording], surfaces: tuple[str, ...], name: str | None, model: str | None
    ) -> _AnyRecording:
        fitting = [recording for recording in recordings if recording.surface in surfaces]
        if name is not None:
            named = [recording for recording in fitting if name in (recording.name, recording.file)]
            if not named:
                raise NoRecording(f"no recording of {surfaces[0]} is called {name!r}{_list(fitting)}")
            return named[0]
        if not fitting:
            raise NoRecording(f"there is no recording of {' or '.join(surfaces)}")
        of_model = next((recording for recording in fitting if recording.name == model), None)
        if of_model is not None:
            return of_model
        turn = self._turns[surfaces]
        self._turns[surfaces] += 1
        return fitting[turn % len(fitting)]


def _list(recordings: Sequence[RecordedAnswer | Sitting]) -> str:
    names = ", ".join(recording.name for recording in recordings)
    return f"; there are {names}" if names else ""
