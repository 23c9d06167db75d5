"""Text that grows at its end, and views of it that stay true while it grows."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

__all__ = ["MANY", "Pieces", "PiecesView", "joined"]

MANY: Final = 80  # pieces that are joined into one: a short text costs 50 bytes more than its letters

PiecesView: TypeAlias = tuple[list[str], int, list[str], int]
"""Both lists of a :class:`Pieces` and how much of each there was."""


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
