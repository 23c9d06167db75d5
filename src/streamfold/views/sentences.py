"""Whole sentences out of a stream of events, each as soon as it is sure: for who speaks an answer or shows it by steps.

The rules are those of UAX 29 (sentence boundaries), and besides them what they leave to a locale: abbreviations,
initials, list markers, inline code. Two things are stricter than there, as text comes in pieces and a wrong break is
heard: a full stop ends nothing without white space behind it (numbers, addresses, names of files), and what follows it
must not begin in lower case. Every decision is of the text alone, never of how it was cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Final

import msgspec

from streamfold.errors import UsageError
from streamfold.events import EVENT_TYPES, BlockEnd, Event, TextDelta, no_event

__all__ = ["Sentence", "SentenceStream", "asentences", "sentences"]

MAX_CHARS: Final = 400
"""Characters a sentence may have, unless said otherwise: some 25 seconds of speech."""
MIN_CHARS: Final = 20
"""The least that ``max_chars`` may be."""
MIN_CLAUSE: Final = 24
"""Characters before a comma, so that it ends a clause: shorter ones sound chopped. A third where a letter is a word."""

_LOOK: Final = 8  # characters behind a boundary that decide of it
_FULL_STOPS: Final = ".․﹒．…"
_TERMINALS: Final = (
    # Sentence_Terminal of the Unicode Character Database but for the full stops; outside the BMP there are dead scripts
    "!?\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104a\u104b\u1362\u1367\u1368"
    "\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d-\u1b7f"
    "\u1c3b\u1c3c\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u3002\ua4ff\ua60e\ua60f\ua6f3"
    "\ua6f7\ua876\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16\ufe56\ufe57\uff01"
    "\uff1f\uff61"
)
_CLAUSE_ENDS: Final = ",;:，；：、،؛"
_LINE_ENDS: Final = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
_QUOTES_AND_BRACKETS: Final = "\"')\\]}”’»›」』）】》〉〕｝］"
_CLOSERS: Final = re.compile(rf"(?:[{_QUOTES_AND_BRACKETS}*_]|\[\d{{1,3}}\])*")  # emphasis, and sources: "so.[1][2]"
_HALF_CLOSER: Final = re.compile(r"\[\d{0,3}\Z|[ \xa0\u202f]»\Z")
_GUILLEMET: Final = re.compile(r"[ \xa0\u202f]»(?=\s)")  # French has a blank before it; German opens with it
_OPENERS: Final = frozenset("\"'([{“‘«‹「『（【《〈〔｛［¿¡*_`")
_GOES_ON: Final = frozenset(",;:-–—，；：、|")  # the last: another cell of a table
_SPACE: Final = re.compile(r"\s*")
_LAST_LINE_END: Final = re.compile(rf".*[{_LINE_ENDS}]", re.DOTALL)
_TERMINATORS: Final = re.compile(rf"[{_FULL_STOPS}{_TERMINALS}]+")
_CANDIDATE: Final = re.compile(rf"[{_FULL_STOPS}{_TERMINALS}{_LINE_ENDS}]")
_CANDIDATE_OR_CLAUSE: Final = re.compile(rf"[{_FULL_STOPS}{_TERMINALS}{_LINE_ENDS}{_CLAUSE_ENDS}]")

_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_HALF_FENCE: Final = re.compile(r"\s*(?:`{0,2}|~{0,2})\Z")
_LINE: Final = re.compile(rf"[^{_LINE_ENDS}]*(?:\r\n|[{_LINE_ENDS}])")
_MARKER: Final = re.compile(r"\s*(?:\d{1,4}|[A-Za-z]|[ivxIVX]{2,5})\Z")  # before the full stop of "1." or "iv."

_WORD: Final = re.compile(r"(?:[^\W\d_]+\.)*[^\W\d_]+\Z")
_INITIALS: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z|[^\W\d_]\Z")
_LONGEST_WORD: Final = 24


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ABBREVIATIONS: Final = _words(
    # titles and what else stands before a name
    "mr mrs ms mx dr drs prof rev hon gen col maj capt cmdr lt sgt cpl sen rep gov pres st messrs mme mmes mlle "
    "hr fr frl dipl ing sig dott avv sr sra srta dra ud uds "
    # what never ends a sentence
    "e.g i.e cf viz vs approx ca resp incl esp "
    "z.b d.h u.a s.o s.u bzw vgl evtl ggf inkl exkl sog bspw insb "
    "p.ex p.ej núm bijv d.w.z o.a m.b.t "
    "т.е т.к т.н напр см ул им стр"
)
"""Words that do not end a sentence, though a full stop follows and then a capital."""

BEFORE_NUMBERS: Final = _words(
    "no nos nr fig figs eq eqs art vol p pp ch sec sect chap tab ref bd abs kap n núm pág гл рис "
    "jan feb mar apr jun jul aug sep sept oct nov dec al"
)
"""Words that do not end a sentence where a number follows."""


class Sentence(msgspec.Struct, frozen=True, gc=False):
    """A sentence, a clause, a line of code, or as much of one as may be held.

    Attributes:
        index: The block it stands in.
        text: With the white space that follows it: the texts of a block joined are the block's text.
        final: Whether the block ends here.
        code: Whether it is a line of a fenced code block, fences included.
    """

    index: int
    text: str
    final: bool = False
    code: bool = False


class SentenceStream:
    """Events in, sentences out; no I/O. See :func:`sentences`.

    Args:
        max_chars: Characters a sentence may have.
        clauses: Whether clauses count as sentences.

    Raises:
        UsageError: ``max_chars`` is less than ``MIN_CHARS``.
    """

    def __init__(self, *, max_chars: int = MAX_CHARS, clauses: bool = False) -> None:
        if max_chars < MIN_CHARS:
            raise UsageError(f"max_chars is at least {MIN_CHARS}, not {max_chars}")
        self._max_chars, self._clauses = max_chars, clauses
        self._open: dict[int, _Splitter] = {}

    def push(self, event: Event) -> Iterator[Sentence]:
        """Take in an event; the sentences that are sure now."""
        if isinstance(event, TextDelta):
            splitter = self._open.get(event.index)
            if splitter is None:
                splitter = self._open[event.index] = _Splitter(event.index, self._max_chars, clauses=self._clauses)
            yield from splitter.feed(event.text)
        elif isinstance(event, BlockEnd) and event.index in self._open:
            yield from self._open.pop(event.index).close()
        elif type(event) not in EVENT_TYPES:
            raise no_event(event)

    def close(self) -> Iterator[Sentence]:
        """There are no more events; what is held of blocks that nobody closed."""
        while self._open:
            yield from self._open.pop(min(self._open)).close()


def sentences(events: Iterable[Event], *, max_chars: int = MAX_CHARS, clauses: bool = False) -> Iterator[Sentence]:
    """The visible text of an answer in whole sentences, each as soon as what follows shows that it is whole.

    ::

        with streamfold.iter_unified(response.iter_bytes()) as stream:
            for sentence in streamfold.sentences(stream):
                speak(sentence.text)

    Only the deltas of text and refusals are read; take in the events of one answer, or of your own mapping. Pulls an
    event when it is asked for a sentence, and not before. A line end always ends a sentence. A fenced code block comes
    line by line, marked ``code``; in inline code nothing ends.

    Args:
        events: In their order.
        max_chars: What is longer is cut, between words where it can be: how many characters a sentence may have, and
            but for a few how many are held of a block.
        clauses: Whether commas, colons and semicolons end a sentence too, behind 24 characters (of Chinese or
            Japanese 8): sooner to speak.

    Returns:
        Sentences; their texts of one block joined are its deltas joined. The last of each block is ``final``.

    Raises:
        UsageError: ``max_chars`` is less than 20.

    Source:
        Unicode Standard Annex 29, "Sentence Boundaries", with tailorings.
    """
    stream = SentenceStream(max_chars=max_chars, clauses=clauses)
    return _sentences(events, stream)


def _sentences(events: Iterable[Event], stream: SentenceStream) -> Iterator[Sentence]:
    for event in events:
        yield from stream.push(event)
    yield from stream.close()


def asentences(
    events: AsyncIterable[Event], *, max_chars: int = MAX_CHARS, clauses: bool = False
) -> AsyncIterator[Sentence]:
    """The same of events that are awaited. See :func:`sentences`."""
    stream = SentenceStream(max_chars=max_chars, clauses=clauses)
    return _asentences(events, stream)


async def _asentences(events: AsyncIterable[Event], stream: SentenceStream) -> AsyncIterator[Sentence]:
    async for event in events:
        for sentence in stream.push(event):
            yield sentence
    for sentence in stream.close():
        yield sentence


class _Splitter:
    """The text of one block in pieces, out in sentences. Holds ``max_chars`` characters and a few more.

    Every boundary has something behind it, so that the last sentence is known to be the last.
    """

    def __init__(self, index: int, max_chars: int, *, clauses: bool) -> None:
        self._index, self._max = index, max_chars
        self._candidate = _CANDIDATE_OR_CLAUSE if clauses else _CANDIDATE
        self._text = ""  # what is held
        self._scanned = 0  # characters of it that no boundary begins at
        self._line_start = True  # whether it begins a line
        self._fence = ""  # what opened the code block that it stands in

    def feed(self, text: str) -> Iterator[Sentence]:
        """Take in a piece; the sentences that are sure now."""
        for at in range(0, len(text), self._max):  # each cut copies what is left, so that must not be much
            self._text += text[at : at + self._max]
            while (end := self._next_end(whole=False)) is not None:
                yield self._take(end)

    def close(self) -> Iterator[Sentence]:
        """The end of the block; the rest."""
        while (end := self._next_end(whole=True)) is not None:
            yield self._take(end)
        if self._text:
            last = self._take(len(self._text))
            yield Sentence(self._index, last.text, True, last.code)

    def _take(self, end: int) -> Sentence:
        piece, self._text, self._scanned = self._text[:end], self._text[end:], 0
        fence = _FENCE.match(piece) if self._line_start else None
        code = bool(self._fence) or fence is not None
        if fence is not None:
            if not self._fence:
                self._fence = fence.group(1)
            elif fence.group(1).startswith(self._fence) and not piece[fence.end() :].strip():
                self._fence = ""
        self._line_start = piece[-1] in _LINE_ENDS or (self._line_start and piece.isspace())
        return Sentence(self._index, piece, False, code)

    def _next_end(self, *, whole: bool) -> int | None:
        """Where the next sentence ends; None: that is not sure yet, or it is the last one.

        Args:
            whole: Whether nothing more will come.
        """
        text = self._text
        if self._fence:
            end = self._line_end(0)
        elif not self._line_start:
            end = self._sentence_end(whole=whole)
        elif fence := _FENCE.match(text):
            end = self._line_end(fence.start(1))
        elif not whole and _HALF_FENCE.match(text):
            end = None
        else:
            end = self._sentence_end(whole=whole)
        if end is not None and end <= self._max:
            return end
        if end is not None or len(text) >= self._max + _LOOK or (whole and len(text) > self._max):
            return self._cut(text)
        return None

    def _line_end(self, at: int) -> int | None:
        line = _LINE.match(self._text, at)
        return line.end() if line is not None and line.end() < len(self._text) else None

    def _sentence_end(self, *, whole: bool) -> int | None:
        at = self._scanned
        while found := self._candidate.search(self._text, at):
            self._scanned = found.start()
            end = self._boundary(found.start(), whole=whole)
            if end is None:
                return None
            if end:
                return end
            run = _TERMINATORS.match(self._text, found.start())
            at = run.end() if run is not None else found.end()
        self._scanned = len(self._text)
        return None

    # Of a place where a sentence may end: where it does end, 0 if it does not, None if that takes more text.

    def _boundary(self, at: int, *, whole: bool) -> int | None:
        text = self._text
        if text[at] in _LINE_ENDS:
            return self._spaced(at, whole=whole) if text[:at].strip() else 0
        if text.count("`", 0, at) % 2:
            return 0
        run = _TERMINATORS.match(text, at)
        behind = run.end() if run is not None else at + 1
        closers = _CLOSERS.match(text, behind)
        closed = closers.end() if closers is not None else behind
        if not whole and (closed == len(text) or _HALF_CLOSER.match(text, closed)):
            return None
        if guillemet := _GUILLEMET.match(text, closed):
            closed = guillemet.end()
        if closed == len(text):
            return 0
        if run is None:
            return self._clause(at, closed, whole=whole)
        if not text[closed].isspace():
            return closed if self._ends_unspaced(at, run.group(), text[closed]) else 0
        end = self._spaced(closed, whole=whole)
        if not end or text[end - 1] in _LINE_ENDS:
            return end
        follows = self._first_behind(end, whole=whole)
        if follows is None:
            return None
        return end if self._ends_before(follows, at, run.group(), closed - behind) else 0

    def _spaced(self, at: int, *, whole: bool) -> int | None:
        """Where the white space ends that begins here; where the last line of it begins, if it holds any."""
        space = _SPACE.match(self._text, at)
        end = space.end() if space is not None else at
        if end == len(self._text):
            return 0 if whole else None
        lines = _LAST_LINE_END.match(self._text, at, end)
        return lines.end() if lines is not None else end

    def _first_behind(self, at: int, *, whole: bool) -> str | None:
        """What the next sentence would begin with, behind what opens it; nothing if that is too far."""
        text = self._text[at : at + _LOOK]
        for character in text:
            if character not in _OPENERS:
                return character
        return "" if whole or len(text) == _LOOK else None

    def _ends_before(self, follows: str, at: int, run: str, closers: int) -> bool:
        """Whether a sentence ends at the terminators ``run``, where white space and then ``follows`` is behind them."""
        if follows in _GOES_ON or _TERMINATORS.match(follows):
            return False
        if run.strip(_FULL_STOPS):
            return not (closers and follows.islower())  # "Why?" he asked
        return not follows.islower() and not (run == "." and self._abbreviates(at, follows))

    def _ends_unspaced(self, at: int, run: str, follows: str) -> bool:
        """The same where no white space is: scripts that have none, and nothing else."""
        if follows in _GOES_ON:
            return False
        if run.strip(_FULL_STOPS):
            return not run.isascii() or _is_caseless(follows)
        if run.endswith("．"):
            return not follows.isnumeric()
        return run == "." and at > 0 and _is_caseless(self._text[at - 1]) and _is_caseless(follows)

    def _abbreviates(self, at: int, follows: str) -> bool:
        """Whether a full stop belongs to the word before it: an abbreviation, an initial, the marker of a list."""
        if self._line_start and _MARKER.match(self._text, 0, at):
            return True
        begin = max(0, at - _LONGEST_WORD)
        found = _WORD.search(self._text, begin, at)
        if found is None or (begin and found.start() == begin):
            return False
        word = found.group()
        if word.lower() in ABBREVIATIONS or (word.lower() in BEFORE_NUMBERS and follows.isnumeric()):
            return True
        return word[0].isupper() and word != "I" and _INITIALS.match(word) is not None

    def _clause(self, at: int, closed: int, *, whole: bool) -> int | None:
        text = self._text
        if at < (MIN_CLAUSE if text[at].isascii() else MIN_CLAUSE // 3):
            return 0
        if text[closed].isspace():
            return self._spaced(closed, whole=whole)
        return 0 if text[at].isascii() else closed

    def _cut(self, text: str) -> int:
        """Where to cut what is too long: behind a blank, else behind a comma, else between characters."""
        half = self._max // 2
        for at in range(self._max, half, -1):
            if text[at - 1].isspace():
                return at
        for at in range(self._max, half, -1):
            if text[at - 1] in _CLAUSE_ENDS:
                return at
        for at in range(self._max, half, -1):
            if not (unicodedata.combining(text[at]) or text[at] in _JOINED or text[at - 1] == _JOINER):
                return at
        return self._max


_JOINER: Final = "\u200d"
_JOINED: Final = frozenset("\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")


def _is_caseless(character: str) -> bool:
    return unicodedata.category(character) == "Lo"
