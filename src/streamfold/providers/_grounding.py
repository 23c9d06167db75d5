"""What a Gemini candidate rests on: grounding and citation metadata as citations of its text blocks.

Places are told in bytes of the visible text, or of one of its parts; where the metadata quotes the text, the quote
decides which. Metadata comes repeated, growing, and before the text that it speaks of.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from streamfold.blocks import Citation, JSONText
from streamfold.payloads import compact
from streamfold.providers._answer import Answer
from streamfold.providers._byte_offsets import ByteOffsets
from streamfold.providers._open_blocks import OpenBlock

__all__ = ["Sources"]

Members: TypeAlias = dict[str, Any]
_NOTHING: Final[Members] = {}


class _Source(NamedTuple):
    """Where it can be found."""

    url: str | None
    title: str | None
    words: str | None
    raw: JSONText


class _Claim(NamedTuple):
    """A stretch of the text, and a source that it rests on."""

    start: int  # in bytes
    end: int
    quote: str  # the words there
    source: _Source


class Sources:
    """Of one candidate.

    Args:
        answer: Where citations go.
        texts: The candidate's text blocks in order, a list that grows.
    """

    def __init__(self, answer: Answer, texts: Sequence[OpenBlock]) -> None:
        self._answer, self._texts = answer, texts
        self._last: dict[str, Any] = {}  # metadata by the name of its member, as it came last
        self._known: set[_Claim] = set()
        self._waiting: list[_Claim] = []
        self._offsets = ByteOffsets()
        self._followed = 0  # which block the offsets follow
        self._begins = [(0, 0)]  # of each block, in bytes and code points

    def take(self, member: str, metadata: Any) -> bool:
        """Cite what can be cited; whether the metadata says anything that it did not say before."""
        if not isinstance(metadata, dict) or not metadata or self._last.get(member) == metadata:
            return False
        self._last[member] = metadata
        claims = [claim for claim in _CLAIMS[member](metadata) if claim not in self._known]
        if claims:
            self._follow()
        for claim in claims:
            if claim not in self._known:
                self._known.add(claim)
                if not self._placed(claim):
                    self._waiting.append(claim)
        return True

    def settle(self) -> None:
        """The text is whole: a claim that finds no place even now has none."""
        if self._waiting:
            self._follow()
            last = next((block for block in reversed(self._texts) if block.index in self._answer.open), None)
            for claim in self._waiting:
                if not self._placed(claim) and last is not None:
                    self._say(last, claim.source, None, None)
            self._waiting = []

    def _placed(self, claim: _Claim) -> bool:
        """Cite at the place, which the quote confirms, be it in the whole text or in the part that came last."""
        begins = self._begins
        for first, _ in (begins[0], begins[-1]) if claim.quote else begins[:1]:
            start, end = self._offsets.code_point(first + claim.start), self._offsets.code_point(first + claim.end)
            if start is None or end is None or start >= end:
                continue
            if claim.quote and not self._offsets.has(claim.quote, first + claim.start, first + claim.end):
                continue
            number = bisect_right(begins, start, key=itemgetter(1)) - 1
            block, begin = self._texts[number], begins[number][1]
            closes = begins[number + 1][1] if number + 1 < len(begins) else self._offsets.length
            if end <= closes and block.index in self._answer.open:
                self._say(block, claim.source, start - begin, end - begin)
                return True
        return False

    def _say(self, block: OpenBlock, source: _Source, start: int | None, end: int | None) -> None:
        url, title, words, raw = source
        self._answer.cite(block, Citation(block.index, url, title, words, start, end, raw))

    def _follow(self) -> None:
        offsets, texts = self._offsets, self._texts
        while self._followed < len(texts):
            offsets.follow(texts[self._followed])
            if self._followed + 1 == len(texts):
                return
            self._followed += 1
            offsets.turn()
            self._begins.append((offsets.size, offsets.length))


def _grounded(metadata: Members) -> Iterator[_Claim]:
    """One claim for each source of each support."""
    sources = [
        _source(next(filter(_is_object, chunk.values()), _NOTHING), chunk)
        for chunk in _objects(metadata.get("groundingChunks"))
    ]
    for support in _objects(metadata.get("groundingSupports")):
        segment = support.get("segment")
        segment = cast("Members", segment) if isinstance(segment, dict) else _NOTHING
        indices = support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else ():
            if type(index) is int and 0 <= index < len(sources):
                yield _Claim(*_stretch(segment), _text(segment, "text") or "", sources[index])


def _cited(metadata: Members) -> Iterator[_Claim]:
    for citation in _objects(metadata.get("citations") or metadata.get("citationSources")):  # Vertex; Gemini API
        yield _Claim(*_stretch(citation), "", _source(citation, citation))


def _nothing(metadata: Members) -> Iterator[_Claim]:
    return iter(())


_CLAIMS: Final = {"groundingMetadata": _grounded, "citationMetadata": _cited, "urlContextMetadata": _nothing}


def _stretch(members: Members) -> tuple[int, int]:
    """Where the claim begins and ends; a number that is left out is 0, as in all of Google's JSON."""
    start, end = members.get("startIndex", 0), members.get("endIndex", 0)
    return (start, end) if type(start) is int and type(end) is int else (0, 0)


def _source(members: Members, raw: Members) -> _Source:
    url = _text(members, "uri", "sourceUri")
    return _Source(url, _text(members, "title"), _text(members, "text"), compact(raw))


def _text(members: Members, *names: str) -> str | None:
    return next((value for name in names if isinstance(value := members.get(name), str) and value), None)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _objects(value: Any) -> list[Members]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
