"""Bytes that are packed, by the names of HTTP's content codings; unpacked read by read, in pieces of bounded size.

What is wrong with them is told as a fault of ours: no error of a library that unpacks gets out.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from streamfold.errors import Malformed, UsageError

__all__ = ["ZSTANDARD", "unpacked", "zstandard"]

ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
"""How what zstandard packed begins."""

_PIECE: Final = 1 << 20
"""Bytes of one piece at most; of zstandard, which has no such bound, 16 MiB: see ``_SLICE``."""

_SLICE: Final = 512
"""Packed bytes that zstandard gets at once: four of them can stand for a block of 128 KiB."""


def unpacked(reads: Iterable[bytes], encoding: str | None) -> Iterator[bytes]:
    """The bytes of a body whose ``Content-Encoding`` is this, each read by itself.

    Raises:
        UsageError: An encoding that cannot be unpacked here.
        Malformed: While it is iterated: the bytes are not packed so; with the offset of the read where this shows.
    """
    for name in reversed([name.strip().lower() for name in (encoding or "").split(",")]):
        if name not in ("", "identity"):
            if name not in _UNPACKING:
                raise UsageError(f"a body that is packed with {name} cannot be read here")
            reads = _unpacked(reads, name, _UNPACKING[name]())
    return iter(reads)


def _unpacked(reads: Iterable[bytes], name: str, unpacking: _Unpacking) -> Iterator[bytes]:
    offset = 0
    for data in reads:
        try:
            yield from filter(None, unpacking.feed(data))
        except unpacking.fault as fault:
            raise Malformed(f"the bytes are not what {name} packs: {fault}", offset) from None
        offset += len(data)


class _Unpacking(Protocol):
    """What unpacks one coding.

    Attributes:
        fault: What it raises where the bytes are not packed so.
    """

    fault: type[Exception]

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class _Gzip:
    """Gzip of any number of members, zlib, and deflate without a header, which some servers send for ``deflate``."""

    fault: type[Exception] = zlib.error

    def __init__(self) -> None:
        self._stream: Any = zlib.decompressobj(zlib.MAX_WBITS | 32)  # 32: either header
        self._begin: bytes | None = b""  # until there are the two bytes that tell

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes give."""
        if self._begin is not None:
            data = self._begin + data
            self._begin = data if len(data) < 2 else None
            if self._begin is not None:
                return
            if not data.startswith(b"\x1f\x8b") and (data[0] & 15 != 8 or int.from_bytes(data[:2]) % 31):  # RFC 1950
                self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        piece = b""
        while data or len(piece) == _PIECE:
            if self._stream.eof:
                self._stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
            piece = self._stream.decompress(data, _PIECE)
            data = self._stream.unconsumed_tail or self._stream.unused_data
            yield piece


class _Zstandard:
    """Any number of frames."""

    def __init__(self) -> None:
        library = zstandard()
        self.fault: type[Exception] = library.ZstdError
        self._stream: Any = library.ZstdDecompressor().decompressobj(read_across_frames=True)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes give."""
        for at in range(0, len(data), _SLICE):
            yield self._stream.decompress(data[at : at + _SLICE])


_UNPACKING: Final[Mapping[str, Callable[[], _Unpacking]]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Gzip,
    "zstd": _Zstandard,
}


def zstandard() -> Any:
    """The library.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import zstandard as library
    except ImportError:
        raise UsageError("what is compressed so needs zstandard: pip install 'streamfold[record]'") from None
    return library
