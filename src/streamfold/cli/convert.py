"""``streamfold convert``: recordings from one format into another."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Final

import click
import msgspec

from streamfold import __version__
from streamfold.cli._main import COMPLETE, ending
from streamfold.errors import UsageError
from streamfold.providers.registry import PROVIDERS
from streamfold.recording import _har, _vcr
from streamfold.recording._packing import zstandard
from streamfold.recording.exchange import (
    Ending,
    Exchange,
    body_of,
    session_lines,
    sessions_of,
    without_secrets,
    written,
)
from streamfold.recording.files import is_recording, read_recording
from streamfold.recording.sessions import told_session
from streamfold.recording.sfcap import Head, Read

__all__ = ["convert"]

_FORMATS: Final[Mapping[str, str]] = {
    # end of a name -> format; the first that fits counts
    ".sfcap.zst": "sfcap.zst",
    ".sfcap": "sfcap",
    ".yaml": "vcr",
    ".yml": "vcr",
    ".har": "har",
    ".jsonl": "raw",
    ".sse": "raw",
    ".bin": "raw",
    ".json": "raw",
    ".txt": "raw",
}
_NAMES: Final = tuple(dict.fromkeys(_FORMATS.values()))
_STANDARD: Final = "-"
_OF_MANY: Final = ("vcr", "har")  # one file holds any number of exchanges


@click.command()
@click.argument("source", metavar="IN", type=click.Path(exists=True, allow_dash=True))
@click.argument("target", metavar="OUT", type=click.Path(allow_dash=True))
@click.option(
    "--from", "from_", type=click.Choice(_NAMES), help="The format of IN; by its name, where this is not said."
)
@click.option("--to", type=click.Choice(_NAMES), help="The format of OUT; by its name, sfcap where that is a folder.")
@click.option("--index", type=click.IntRange(min=0), metavar="N", help="Only the exchange of this number, from 0.")
@click.option(
    "--provider", type=click.Choice(list(PROVIDERS)), help="Whose streams they are, for who reads them later."
)
@click.option("--no-redact", is_flag=True, help="Keep the secrets in headers and addresses.")
@ending
def convert(
    source: str,
    target: str,
    from_: str | None,
    to: str | None,
    index: int | None,
    provider: str | None,
    no_redact: bool,
) -> int:
    """Convert recordings: raw bodies, .sfcap, VCR cassettes, HAR.

    \b
        streamfold convert cassette.yaml recordings/
        streamfold convert recordings/ all.har
        streamfold convert x.sfcap x.sse

    IN may be a folder of recordings, or -: standard input, a recording or a raw body unless --from says otherwise. OUT
    may be -: standard output, a recording unless --to says otherwise. Several exchanges go into one cassette or HAR, or
    into a folder, numbered. A session of a WebSocket goes from and to its lines (.jsonl).
    """
    exchanges = _read(source, from_)
    if index is not None:
        if index >= len(exchanges):
            raise UsageError(f"there are {len(exchanges)} exchanges, numbered from 0")
        exchanges = exchanges[index : index + 1]
    if provider is not None:
        exchanges = [one._replace(head=msgspec.structs.replace(one.head, provider=provider)) for one in exchanges]
    if not no_redact:
        exchanges = [without_secrets(one) for one in exchanges]
    is_folder = os.path.isdir(target) or target.endswith(os.sep) or (_format_of(target) is None and to not in _OF_MANY)
    is_folder = is_folder and target != _STANDARD
    to = to or _format_of(target) or "sfcap"
    if to in _OF_MANY:
        _put(target, _har.har_of(exchanges, __version__) if to == "har" else _vcr.cassette_of(exchanges))
        return COMPLETE
    write = _WRITERS[to]
    if is_folder and not (len(exchanges) == 1 and to == "raw"):
        os.makedirs(target, exist_ok=True)
        for number, exchange in enumerate(exchanges, 1):
            _put(os.path.join(target, f"{number:04}.{_suffix(to, exchange)}"), write(exchange, not no_redact))
        return COMPLETE
    if len(exchanges) != 1:
        raise UsageError(f"there are {len(exchanges)} exchanges: OUT is a folder for them, or --index chooses one")
    _put(target, write(exchanges[0], not no_redact))
    return COMPLETE


def _format_of(name: str) -> str | None:
    return next((format_ for end, format_ in _FORMATS.items() if name.endswith(end)), None)


def _suffix(to: str, exchange: Exchange) -> str:
    return to if to != "raw" else "jsonl" if exchange.is_session else "txt"


def _put(path: str, data: bytes) -> None:
    if path == _STANDARD:
        sys.stdout.buffer.write(data)
        return
    with open(path, "wb") as file:
        file.write(data)


# -- in ---------------------------------------------------------------------------------------------------------------


def _read(source: str, from_: str | None) -> list[Exchange]:
    if os.path.isdir(source):
        names = sorted(name for name in os.listdir(source) if name.endswith((".sfcap", ".sfcap.zst")))
        if not names:
            raise UsageError(f"{source} holds no recordings (.sfcap, .sfcap.zst)")
        return [_recorded(os.path.join(source, name)) for name in names]
    if source == _STANDARD:
        data = sys.stdin.buffer.read()
        format_ = from_ or ("sfcap" if is_recording(data) else "raw")
        if format_.startswith("sfcap"):
            return [_recorded([data])]
    else:
        format_ = from_ or _format_of(source) or "raw"
        if format_.startswith("sfcap"):
            return [_recorded(source)]
        with open(source, "rb") as file:
            data = file.read()
    if format_ == "raw":
        is_session, _ = told_session(iter([data]))
        return sessions_of(data) if is_session else [Exchange(Head(), (Read(0, data),) if data else (), None)]
    return _har.exchanges_in(data) if format_ == "har" else _vcr.exchanges_in(data)


def _recorded(place: str | list[bytes]) -> Exchange:
    with read_recording(place) as recording:
        reads = tuple(recording)
    end = recording.end
    return Exchange(
        recording.head, reads, None if end is None else Ending(end.t, end.end, end.error, end.code, end.reason)
    )


# -- out --------------------------------------------------------------------------------------------------------------


def _raw(exchange: Exchange, redact: bool) -> bytes:
    return b"".join(session_lines(exchange.reads, exchange.end)) if exchange.is_session else body_of(exchange)


def _packed(exchange: Exchange, redact: bool) -> bytes:
    packed: bytes = zstandard().compress(written(exchange, redact=redact))
    return packed


def _sfcap(exchange: Exchange, redact: bool) -> bytes:
    return written(exchange, redact=redact)


_WRITERS: Final[Mapping[str, Callable[[Exchange, bool], bytes]]] = {
    "sfcap": _sfcap,
    "sfcap.zst": _packed,
    "raw": _raw,
}
