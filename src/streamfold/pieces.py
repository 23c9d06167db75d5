"""What grows, and views of it that stay true while it grows: text at its end, and things by their numbers."""

from __future__ import annotations

from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

__all__ = ["MANY", "Pieces", "PiecesView", "Row", "RowView", "joined"]

T = TypeVar("T")

MANY: Final = 80  # pieces that are joined into one: a short text costs 50 bytes more than its letters

PiecesView: TypeAlias = tuple[list[str], int, list[str], int]
"""Both lists of a :class:`Pieces` and how much of each there was."""

RowView: TypeAlias = tuple[tuple[T, ...], ...]
"""The things of a :class:`Row` in the order of their numbers, in chunks that other views share."""

CHUNK: Final = 64  # things that are copied when one of them changes, where somebody looks in between


class Pieces(msgspec.Struct, kw_only=True):
    """Pieces of text in order. Linear: each is joined twice at most.

    Both lists are only ever appended to, so a view of them never changes. A struct, as it costs a third of a class to
    make.
    """

    full: list[str] = []
    tail: list[str] = []

    def add(self, text: str) -> None:
        """Append a piece."""
        self.tail.append(text)
        if len(self.tail) > MANY:
            self.roll()

    def tail_to_add_to(self) -> list[str]:
        """The list that pieces may be appended to directly, until it holds more than ``MANY``."""
        if len(self.tail) > MANY:
            self.roll()
        return self.tail

    def roll(self) -> None:
        """Join what has gathered into one string."""
        self.full.append("".join(self.tail))
        self.tail = []

    def replace(self, text: str) -> None:
        """Hold this text instead; views keep the one before."""
        self.full, self.tail = [], [text] if text else []

    def cut(self, count: int) -> None:
        """Take that many code points off the end; views keep what they show. What stands before is not looked at."""
        self.tail = list(self.tail)
        count = _cut(self.tail, count)
        if count and self.full:
            self.full = list(self.full)
            _cut(self.full, count)

    def view(self) -> PiecesView:
        """The text as it stands, to be joined when it is asked for."""
        return (self.full, len(self.full), self.tail, len(self.tail))

    def whole(self) -> str:
        """All of the text."""
        return "".join(self.full) + "".join(self.tail) if self.full else "".join(self.tail)

    def is_empty(self) -> bool:
        """Whether nothing has come yet."""
        return not (self.tail or self.full)


class Row(Generic[T]):
    """Things by number, of which any may change.

    A view costs what has changed since the one before and a word for each chunk: next to nothing among 100,000 whose
    numbers are dense, as those of blocks and of parts are.
    """

    def __init__(self) -> None:
        self._chunks: dict[int, dict[int, T]] = {}
        self._shown: dict[int, tuple[T, ...]] = {}  # each chunk as the last view shows it
        self._changed: set[int] = set()  # chunks that it does not show as they are

    def put(self, number: int, thing: T) -> None:
        """Here is this now, whatever was here."""
        place = number // CHUNK
        self._changed.add(place)
        chunk = self._chunks.get(place)
        if chunk is None:
            self._chunks[place] = {number: thing}
            return
        late = number not in chunk and number < next(reversed(chunk))
        chunk[number] = thing
        if late:
            self._chunks[place] = dict(sorted(chunk.items()))

    def view(self) -> RowView[T]:
        """All of them, as they are now."""
        shown, late = self._shown, False
        for place in self._changed:
            if place not in shown and shown and place < next(reversed(shown)):
                late = True
            shown[place] = tuple(self._chunks[place].values())
        if late:
            self._shown = shown = dict(sorted(shown.items()))
        self._changed = set()
        return tuple(shown.values())


def _cut(pieces: list[str], count: int) -> int:
    """Take code points off the end of the last pieces; how many are left to take."""
    while pieces and count:
        last = pieces.pop()
        if len(last) > count:
            pieces.append(last[:-count])
        count -= min(count, len(last))
    return count


def joined(view: PiecesView) -> str:
    """The text that a view shows."""
    full, whole, tail, pieces = view
    return "".join(full[:whole]) + "".join(tail[:pieces])
