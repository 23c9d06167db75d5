"""Text that grows at its end, and views of it that stay true while it grows."""

from __future__ import annotations

from typing import Final, TypeAlias

__all__ = ["MANY", "Pieces", "PiecesView", "joined"]

MANY: Final = 4096  # pieces that are joined into one: a million one-letter deltas must not cost a million objects

PiecesView: TypeAlias = tuple[list[str], int, list[str], int]
"""Both lists of a :class:`Pieces` and how much of each there was."""


class Pieces:
    """Pieces of text in order. Linear: each is joined twice at most.

    Both lists are only ever appended to, so a view of them never changes. ``tail`` may be appended to directly, by who
    calls :meth:`roll` when it has grown past ``MANY``.
    """

    __slots__ = ("full", "tail")

    def __init__(self) -> None:
        self.full: list[str] = []
        self.tail: list[str] = []

    def add(self, text: str) -> None:
        """Append a piece."""
        self.tail.append(text)
        if len(self.tail) > MANY:
            self.roll()

    def roll(self) -> None:
        """Join what has gathered into one string."""
        self.full.append("".join(self.tail))
        self.tail = []

    def replace(self, text: str) -> None:
        """Hold this text instead; views keep the one before."""
        self.full, self.tail = [text], []

    def view(self) -> PiecesView:
        """The text as it stands, to be joined when it is asked for."""
        return (self.full, len(self.full), self.tail, len(self.tail))

    def __str__(self) -> str:
        return "".join(self.full) + "".join(self.tail)

    def __bool__(self) -> bool:
        return bool(self.tail or self.full)


def joined(view: PiecesView) -> str:
    """The text that a view shows."""
    full, whole, tail, pieces = view
    return "".join(full[:whole]) + "".join(tail[:pieces])
