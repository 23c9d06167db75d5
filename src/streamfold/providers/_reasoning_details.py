"""Structured reasoning beside its plain text, put together from fragments.

``reasoning_details`` (OpenRouter and what copies it) and ``thinking_blocks`` (LiteLLM) repeat the text of a chat
chunk's reasoning and add what the provider wants back with it: signatures, encrypted reasoning, formats.
"""

from __future__ import annotations

from typing import Any, Final

from streamfold.providers._answer import Answer
from streamfold.providers._open_blocks import OpenReasoning
from streamfold.providers._table import text_of

__all__ = ["DetailsEntry", "ReasoningDetails"]

Members = dict[str, Any]
_GROWING: Final = ("text", "summary", "thinking", "data")


class DetailsEntry:
    """One entry: its members as they came last, and the pieces of those that grow."""

    def __init__(self) -> None:
        self.members: Members = {}
        self.pieces: dict[str, list[str]] = {}

    def add(self, fragment: Members) -> None:
        first = not self.members
        for name, value in fragment.items():
            if name in _GROWING and isinstance(value, str):
                self.pieces.setdefault(name, []).append(value)
                self.members.setdefault(name, "")
            elif first or value not in (None, ""):  # a later blank takes no signature back
                self.members[name] = value

    def goes_on(self, piece: str, detail: Any) -> bool:
        """Take another fragment that brings the same text and nothing new; False if it does bring something new."""
        members = self.members
        same = (
            detail.text == piece
            and detail.index == members.get("index")
            and detail.type == members.get("type")
            and detail.format == members.get("format")
            and "text" in self.pieces
        )
        if same:
            self.pieces["text"].append(piece)
        return same

    def whole(self) -> Members:
        return {**self.members, **{name: "".join(pieces) for name, pieces in self.pieces.items()}}


class ReasoningDetails:
    """The entries of one block of reasoning: one for each index and type."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._entries: dict[str, dict[object, DetailsEntry]] = {}
        self.last: DetailsEntry | None = None

    def add(self, member: str, fragments: list[Members]) -> str | None:
        """Take fragments in; the signature that one of them brings."""
        signature = None
        entries = self._entries.setdefault(member, {})
        for fragment in fragments:
            index = fragment.get("index")
            key = (index, text_of(fragment.get("type"))) if type(index) is int else len(entries)
            self.last = entries.get(key)
            if self.last is None:
                self.last = entries[key] = DetailsEntry()
                self._answer.hold_another()
            self.last.add(fragment)
            signature = text_of(fragment.get("signature")) or signature
        return signature

    def settle(self, block: OpenReasoning) -> None:
        """Give the block its signature, its encrypted reasoning and, for the next request, the entries themselves."""
        for member, entries in self._entries.items():
            whole = [entry.whole() for entry in entries.values()]
            for entry in whole:
                block.signature = text_of(entry.get("signature")) or block.signature
                block.encrypted = text_of(entry.get("data")) or block.encrypted
            block.meta = {**(block.meta or {}), member: whole}
