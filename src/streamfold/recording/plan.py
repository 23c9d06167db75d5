"""What a replay does when: seconds to wait, bytes to send, and where it breaks. Values in, values out.

Nothing here waits or draws lots: a place that is ``random`` follows from the seed, the recording's name and how often
it was asked for, so that a run with the same seed breaks at the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from streamfold.errors import UsageError
from streamfold.recording.answers import Part
from streamfold.recording.sfcap import Read

__all__ = [
    "FAULTS",
    "Fault",
    "Place",
    "Plan",
    "Step",
    "Strike",
    "fault_of",
    "garbage",
    "pace_of",
    "recut",
    "schedule",
    "strikes",
]

Strike: TypeAlias = Literal["cut", "end", "reset", "stall", "garbage"]

_Unit: TypeAlias = Literal["byte", "event", "random"]

_MOST_AT_ONCE: Final = 65_536
_GARBAGE_BYTES: Final = 32
_AROUND: Final[Mapping[str, tuple[bytes, bytes]]] = {
    # framing -> what stands around garbage, so that no reader can pass over it: an event stream skips lines of no
    # field, and inside a string of JSON any bytes would be text. AWS's messages have a checksum.
    "sse": (b"\n\ndata: ", b"\n\n"),
    "jsonl": (b'"\n', b"\n"),
    "json_array": (b'"', b'"'),
}


class Place(NamedTuple):
    """Where a fault strikes.

    Attributes:
        unit: ``byte``: so many bytes of the body were sent; ``event``: so many events; ``random``: the seed says.
        at: How many.
    """

    unit: _Unit
    at: int = 0


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong. A place that an answer does not reach does not strike it.

    Attributes:
        cut: Where the connection is closed, the body unfinished.
        end: Where the body ends, as if it were whole.
        reset: Where the connection is reset.
        stall: Where nothing more comes, the connection left open.
        garbage: Where 32 bytes come that are none of the stream's, and that nobody can read as a part of it.
        status: Answer this status (429, 529, …) the first ``times`` times, with an error body of the surface.
        times: How often.
        retry_after: Of that answer, in seconds; None leaves the header out.
        error: Answer this status always.
        first_byte: How long the head of the response is held back, in seconds.
    """

    cut: Place | None = None
    end: Place | None = None
    reset: Place | None = None
    stall: Place | None = None
    garbage: Place | None = None
    status: int | None = None
    times: int = 1
    retry_after: int | None = 1
    error: int | None = None
    first_byte: float = 0.0


NO_FAULT: Final = Fault()
_STRIKES: Final[tuple[Strike, ...]] = ("garbage", "stall", "end", "cut", "reset")
"""In the order they strike where several do so at one place."""

FAULTS: Final = tuple(field.name.replace("_", "-") for field in msgspec.structs.fields(Fault))
"""The names of all faults and of what says more about them, as they are written."""

_PLACE: Final = re.compile(r"(?:(byte|event):)?(\d{1,15})|random", re.ASCII)


def fault_of(text: str) -> Fault:
    """Faults as they are written: ``cut=1200``, ``cut=event:2``, ``reset=random``, ``status=429,times=2``.

    A place without a unit counts bytes; that of ``stall`` counts events.

    Raises:
        UsageError: There is no such fault, or no such value of it.
    """
    members: dict[str, Any] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, equals, value = map(str.strip, word.partition("="))
        if name not in FAULTS or not equals:
            raise UsageError(f"{word!r} is no fault: NAME=VALUE with one of {', '.join(FAULTS)}")
        members[name.replace("-", "_")] = _value(name, value)
    return Fault(**members)


def _value(name: str, value: str) -> Any:
    if name in _STRIKES:
        found = _PLACE.fullmatch(value)
        if found is None:
            raise UsageError(f"{name}={value}: a place is N, byte:N, event:N or random")
        unit, at = found.groups(default="event" if name == "stall" else "byte")
        return Place("random") if value == "random" else Place(cast(_Unit, unit), int(at))
    if name == "retry-after" and value == "none":
        return None
    try:
        number = float(value) if name == "first-byte" else int(value)
    except ValueError:
        raise UsageError(f"{name}={value}: this is no number") from None
    least, most = (400, 599) if name in ("status", "error") else (0, 86_400)
    if not least <= number <= most:
        raise UsageError(f"{name}={value}: it is from {least} to {most}")
    return number


class Plan(msgspec.Struct, frozen=True):
    """How answers are given.

    Attributes:
        pace: How many times faster than recorded: 1.0 is as recorded, None at once. Bytes without times come at once.
        chunk: Cut the body anew, into pieces of so many bytes; None: as it was read.
        seed: Of places that are random, and of garbage.
        fault: What goes wrong.
    """

    pace: float | None = 1.0
    chunk: int | None = None
    seed: int = 0
    fault: Fault = NO_FAULT

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise UsageError(f"a chunk has at least one byte, not {self.chunk}")
        if self.pace is not None and not self.pace > 0:
            raise UsageError(f"a pace is above 0, not {self.pace}")

    def but(self, said: dict[str, str]) -> Plan:
        """The plan with what one request says otherwise: ``pace``, ``chunk``, ``seed``, ``fault``, as text.

        Raises:
            UsageError: What it says cannot be.
        """
        readers = {"pace": pace_of, "chunk": _whole, "seed": _whole, "fault": fault_of}
        members = {name: readers[name](text) for name, text in said.items() if name in readers}
        return msgspec.structs.replace(self, **members)


def pace_of(text: str) -> float | None:
    """A pace as it is written: ``recorded``, ``at-once``, or a factor: 2 is twice as fast.

    Raises:
        UsageError: It is none of these.
    """
    if text in ("recorded", "at-once"):
        return 1.0 if text == "recorded" else None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"a pace is recorded, at-once or a factor, not {text!r}") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{text!r} is no whole number") from None


class Step(NamedTuple):
    """What to do next.

    Attributes:
        wait_s: How long to wait before it, in seconds.
        data: What to send.
        strike: What strikes now; behind anything but garbage nothing follows. None: nothing, and ``data`` is recorded.
    """

    wait_s: float
    data: bytes
    strike: Strike | None = None


def draw(key: str, bound: int) -> int:
    """A number from 0 to below ``bound`` that follows from the key."""
    return int.from_bytes(sha256(key.encode()).digest()[:8], "big") % bound


def garbage(framing: str, key: str) -> bytes:
    """32 bytes that follow from the key and that a stream of this framing cannot hold: no ASCII between its marks."""
    before, behind = _AROUND.get(framing, (b"", b""))
    size = _GARBAGE_BYTES - len(before) - len(behind)
    return before + bytes(byte | 0x80 for byte in sha256(f"{key}/garbage".encode()).digest()[:size]) + behind


def strikes(fault: Fault, ends: Sequence[int], size: int, key: str) -> list[tuple[int, Strike]]:
    """Where each fault strikes, in bytes, in order.

    Args:
        fault: What goes wrong.
        ends: Where each event ends, in bytes.
        size: Of all, in bytes.
        key: What random places follow from.
    """
    found: list[tuple[int, Strike]] = []
    for kind in _STRIKES:
        place: Place | None = getattr(fault, kind)
        if place is None:
            continue
        if place.unit == "random":
            at = 1 + draw(f"{key}/{kind}", size - 1) if size > 1 else 0
        elif place.unit == "byte":
            at = place.at
        else:
            at = 0 if place.at == 0 else ends[place.at - 1] if place.at <= len(ends) else size + 1
        if at <= size:
            found.append((at, kind))
    return sorted(found, key=lambda strike: strike[0])


def recut(reads: Iterable[Read], chunk: int | None) -> Iterator[tuple[int, bytes]]:
    """The bytes with their times: as they were read, or in pieces of ``chunk`` bytes, each as soon as it is whole.

    A read that is large, as the body of a file is, goes out in several: a client that does not read holds up what was
    written, and that should not be all.
    """
    held, at = b"", 0
    for read in reads:
        at = read.t
        if chunk is None:
            size = len(read.data)
            yield from ((at, read.data[begin : begin + _MOST_AT_ONCE]) for begin in range(0, size, _MOST_AT_ONCE))
            continue
        held += read.data
        whole = len(held) - len(held) % chunk
        yield from ((at, held[begin : begin + chunk]) for begin in range(0, whole, chunk))
        held = held[whole:]
    if held:
        yield at, held


def schedule(
    reads: Sequence[Read],
    plan: Plan,
    *,
    framing: str = "sse",
    parts: Sequence[Part] = (),
    since: int = 0,
    broken: bool = False,
    key: str = "",
) -> Iterator[Step]:
    """The steps of one answer's body.

    Args:
        reads: What is replayed.
        plan: How.
        framing: How it is framed, which says what garbage is.
        parts: Its events.
        since: When the waiting begins, in nanoseconds of the recording's time.
        broken: Whether the recording ends in a failure of its transport.
        key: What makes this answer another than the next of the same recording.
    """
    size = sum(len(read.data) for read in reads)
    key = f"{plan.seed}/{key}"
    ahead = strikes(plan.fault, [part.end for part in parts], size, key)
    sent, wait = 0, 0.0
    for at, data in recut(reads, plan.chunk):
        if plan.pace is not None:
            wait += max(0, at - since) / 1e9 / plan.pace
            since = max(since, at)
        while ahead and ahead[0][0] <= sent + len(data):
            where, kind = ahead.pop(0)
            before, data = data[: where - sent], data[where - sent :]
            if before:
                yield Step(wait, before)
                sent, wait = where, 0.0
            if kind != "garbage":
                yield Step(wait, b"", kind)
                return
            yield Step(wait, garbage(framing, key), kind)
            wait = 0.0
        if data:
            yield Step(wait, data)
            sent, wait = sent + len(data), 0.0
    if ahead:  # of an answer without a byte
        yield Step(wait, b"", ahead[0][1])
    elif broken:
        yield Step(wait, b"", "cut")
