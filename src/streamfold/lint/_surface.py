"""What the rules of every surface share: how they are asked, and texts that are compared without being kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, ClassVar, Final, TypeAlias

import msgspec

from streamfold.lint.rules import Report

__all__ = [
    "Members",
    "Numbered",
    "PlainCheck",
    "Running",
    "SurfaceCheck",
    "entries",
    "known",
    "object_of",
    "text_in",
]

Members: TypeAlias = dict[str, Any]
Known: TypeAlias = Mapping[str, frozenset[str]]
"""Where an object stands in a payload -> the members that its surface documents for it."""

_MAX_SEEN: Final = 1_000  # members that were reported once: no stream makes the list endless


class SurfaceCheck:
    """The order and the members of one surface. Bounded by what is open, never by what was said.

    Attributes:
        known: See :data:`Known`.
        needs_done: Whether ``[DONE]`` ends the stream; else it is foreign to the surface.
        names: Framings whose frames have names that count.
        has_usage: Whether answers are counted.
        reasons: Words for an end that the surface documents, and that mean none of the unified reasons.
        named: Whether frames of this stream have names.
        done: Whether ``[DONE]`` came.
    """

    known: ClassVar[Known] = {}
    needs_done: ClassVar[bool] = False
    names: ClassVar[frozenset[str]] = frozenset({"sse"})
    has_usage: ClassVar[bool] = True
    reasons: ClassVar[frozenset[str]] = frozenset()
    named = True
    done = False

    def __init__(self, report: Report) -> None:
        self.report = report
        self.id: str | None = None
        self._seen: set[tuple[str, str]] = set()

    def payload(self, members: Members, name: str | None) -> None:
        """One object of the stream, and the event field of its frame."""
        for place, found in self.places(members):
            unknown = found.keys() - self.known[place]
            for member in sorted(unknown) if unknown else ():
                if (place, member) not in self._seen and len(self._seen) < _MAX_SEEN:
                    self._seen.add((place, member))
                    self.report("unknown_member", f"{place} has a member {shown(member)}")
        self.read(members, name)

    def sentinel(self) -> None:
        """``[DONE]`` came."""
        self.done = True
        if not self.needs_done:
            self.report("foreign_done", "[DONE] comes on a surface that has no such sign")

    def sent(self, members: Members) -> None:
        """The client sent this message, where a session was recorded."""

    def over(self) -> None:
        """The answer reached its terminal sign, and no error ended it."""

    def read(self, members: Members, name: str | None) -> None:
        """What the surface says of the payload."""

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """The objects in a payload whose members are documented."""
        return iter(())

    def same_id(self, found: Any, what: str = "the answer") -> None:
        """The answer's id stands here; it must not change."""
        if not isinstance(found, str) or not found:
            return
        if self.id is not None and found != self.id:
            self.report("id_changes", f"{what} is called {shown(found)} after {shown(self.id)}")
        self.id = found

    def same_name(self, kind: str, name: str | None) -> None:
        """The event field and the type of the payload say the same."""
        if name is not None and kind and name != kind:
            self.report("event_name_differs", f"the event field says {shown(name)}, the payload {shown(kind)}")


class PlainCheck(SurfaceCheck):
    """A surface without rules of its own."""


class Numbered:
    """Blocks that are numbered from 0 as they open, and named by their number until they stop.

    Args:
        report: Of the check.
        what: What such a block is called.
        needs_start: Whether a delta at a number never seen is a fault; else it opens the block.
    """

    def __init__(self, report: Report, what: str, *, needs_start: bool = True) -> None:
        self._report, self._what, self._needs_start = report, what, needs_start
        self.open: dict[int, str] = {}  # number -> kind
        self._next = 0

    def start(self, index: Any, kind: str) -> None:
        """A block opens at that index."""
        if type(index) is not int:
            self._report("no_index", f"the start of a {self._what} has no index")
            return
        if index < self._next:
            self._report("index_reused", f"index {index} is given again")
        elif index > self._next:
            self._report("index_jump", f"index {index} comes where {self._next} is next")
        self._next = max(self._next, index + 1)
        self.open[index] = kind

    def at(self, index: Any, kind: str, said: str) -> str | None:
        """The kind of the open block that something is said of; None where it is of none.

        Args:
            index: As the wire names it.
            kind: Of the block that it would open.
            said: What is said, for a sentence.
        """
        if type(index) is not int:
            self._report("no_index", f"{said} has no index")
            return None
        if index not in self.open:
            if self._needs_start or index < self._next:
                self._report("wrong_index", f"{said} names index {index}, which is not open")
                return None
            self.start(index, kind)
        return self.open[index]

    def is_new(self, index: int) -> bool:
        """Whether no block had that index yet."""
        return index >= self._next

    def stop(self, index: Any, said: str) -> None:
        """The block at that index stops."""
        if self.at(index, "", said) is not None:
            del self.open[index]

    def over(self) -> None:
        """Nothing may be open any more."""
        for index in self.open:
            self._report("not_closed", f"the {self._what} at index {index} has no stop")
        self.open.clear()


class Running:
    """A text as its pieces come: its length and a digest, so that a whole can be held against it."""

    def __init__(self) -> None:
        self._digest = blake2b(digest_size=16)
        self.units = 0

    def add(self, piece: str) -> None:
        """Append a piece. UTF-16: two halves of a pair, which two pieces may bring, are the character they make."""
        data = piece.encode("utf-16-le", "surrogatepass")
        self._digest.update(data)
        self.units += len(data)

    def against(self, whole: str) -> str | None:
        """The code of the rule that a whole text breaks after these pieces; None where they agree."""
        data = whole.encode("utf-16-le", "surrogatepass")
        if blake2b(data[: self.units], digest_size=16).digest() != self._digest.digest():
            return "end_differs"
        return "end_adds" if len(data) > self.units else None


def known(*structs: type[msgspec.Struct], besides: str = "") -> frozenset[str]:
    """The members that a dialect reads, and those it has no use for, which are documented all the same."""
    return frozenset(name for struct in structs for name in struct.__struct_encode_fields__) | set(besides.split())


def object_of(value: Any) -> Members:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: Any) -> list[Members]:
    """The objects of a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_in(members: Members, name: str) -> str:
    """The member if it is text, else nothing."""
    value = members.get(name)
    return value if isinstance(value, str) else ""


def shown(word: object) -> str:
    """A word of the wire for a sentence: quoted, and not longer than a line can hold."""
    text = word if isinstance(word, str) else repr(word)
    return repr(text if len(text) <= 60 else text[:60] + "…")
