"""Sentences out of a stream: where they end in which language, and that cuts, bounds and blocks change none of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import (
    BlockEnd,
    BlockStart,
    Event,
    ReasoningDelta,
    Sentence,
    TextBlock,
    TextDelta,
    UsageError,
    asentences,
    sentences,
)
from streamfold.views.sentences import ABBREVIATIONS, BEFORE_NUMBERS
from tests.conftest import RECORDED, SHARED
from tests.evidence import captures, cut

BAR = "¶"  # where a sentence ends, in the tables


def events_of(pieces: Iterable[str], index: int = 0) -> Iterator[Event]:
    yield BlockStart(index, "text")
    whole = ""
    for piece in pieces:
        whole += piece
        if piece:
            yield TextDelta(index, piece)
    yield BlockEnd(index, TextBlock(index, whole))


def split(*pieces: str, max_chars: int = 400, clauses: bool = False) -> list[Sentence]:
    return list(sentences(events_of(pieces), max_chars=max_chars, clauses=clauses))


ENGLISH = [
    "Hello there. ¶How are you? ¶Fine!",
    "Pi is 3.14. ¶It is 1,000.5 big. ¶Version 2.0.1 is out.",
    "See https://example.com/a?b=1&c=2.html for that. ¶Mail me@example.com. ¶Or not.",
    "Open main.py. ¶Then run ./a.out now.",
    "Dr. Smith met Mrs. Jones at St. Mary's. ¶They left.",
    "J. R. R. Tolkien and George W. Bush met in the U.S. Army. ¶So do I. ¶Really.",
    "Use tools, e.g. Python, i.e. a language, etc. ¶Then stop. ¶He came at 5 p.m. ¶She left.",
    "See Fig. 3 and No. 5 on p. 12. ¶The answer is no. ¶That is all.",
    "Published by Smith et al. (2020). ¶It came on Jan. 5, they say.",
    "Wait... what? ¶Well… fine. ¶No... ¶Never.",
    "Really?! ¶Yes!! ¶No?",
    '"Why?" he asked. ¶"Because." ¶She left. ¶(He too.) ¶And so on.',
    "He said “Stop.” ¶Then ‘Go!’ and went. ¶‘Now!’ ¶Then.",
    "It is **done.** ¶Next *one.* ¶Last __one.__ ¶End.",
    "Water boils.[1][2] ¶Ice melts.[3] ¶That is all [4].",
    "Call `a. B` now. ¶And `x.y()` too. ¶Done.",
    "in the year 2020. ¶The next was 2021. ¶1984 is a book.",
    "It cost 5. ¶10 more came.",
    "Great! ¶😀 Next one. ¶👍🏽 Done.",
    "yes! ¶no! ¶Maybe",
    "a.m. is short for ante meridiem, says J.K. Rowling.",
    "One sentence without an end",
    "Trailing blank. ",
    "ALL CAPS. ¶NO PROBLEM.",
    "Is it 5 > 3? ¶Yes; it is: so. ¶Done.",
]
OTHERS = [
    "你好。¶今天天气怎么样？¶很好！¶对吗？¶好的。",
    "他说：“走吧。”¶然后走了。¶价格是3.14元。¶版本2.0好。¶他……走了。",
    "「行こう。」¶彼は言った。¶３．１４です．¶はい。¶そうか！？¶うん。",
    "안녕하세요. ¶잘 지내요? ¶네.",
    "Das ist z.B. Wasser, d.h. Nass. ¶Am Ende bzw. Anfang. ¶Vgl. Kap. 3. ¶Herr Dr. Meyer kam. ¶Schluss.",
    "M. Dupont est là. ¶Oui ! ¶Non ? ¶« Bon. » ¶Fin.",
    "¿Qué tal? ¶¡Bien! ¶El Sr. López y la Sra. Ruiz. ¶Fin.",
    "नमस्ते।¶कैसे हो? ¶ठीक।",
    "مرحبا. ¶كيف حالك؟ ¶جيد.",
    "Привет. ¶Это т.е. Москва, ул. Ленина. ¶Всё.",
    "สวัสดีครับ ยินดีที่ได้รู้จัก",
    "Բարեւ։ ¶Լավ։",
    "ሰላም። ¶ደህና።",
    "mixed 中文。¶English. ¶中文?¶好。¶Ok.",
]
MARKDOWN = [
    "# A title\n\n¶First line.\n¶Second line\n¶- one item. ¶With two.\n¶- another\n\n¶End.",
    "1. First item.\n¶2. Second item. ¶More.\n¶   a. Third\n¶iv. Fourth\n¶10) Fifth",
    "Before:\n\n¶```python\n¶x = 1. \n¶y = 'a. B'\n¶```\n¶\nAfter. ¶That.",
    "```\n¶code. Code.\n¶\n¶  ~~~\n¶```\n¶Text. ¶More.",
    "~~~~ js\n¶```\n¶~~~\n¶~~~~\n¶Text. ¶More.",
    "- item\n¶  ```sh\n¶  ls. Ls\n¶  ```\n¶- next. ¶One.",
    "```unclosed\n¶a. B\n¶c",
    "\n\n  Leading lines. ¶Then text.",
    "| a. | b. ¶C |\n¶| c |",
    "Line one\r\n¶Line two\r\n\r\n¶Line three\u2028¶Line four",
    "``` inline ``` is a fence. Here\n¶code",
    "> Quote. ¶More.\n¶> Next",
    "**Bold.** ¶Text `co.de` x. ¶[A link](http://a.b/c.d) here. ¶Done.",
]


@pytest.mark.parametrize("marked", [*ENGLISH, *OTHERS, *MARKDOWN])
def test_where_sentences_end(marked: str) -> None:
    assert [sentence.text for sentence in split(marked.replace(BAR, ""))] == marked.split(BAR)


@pytest.mark.parametrize("marked", [*ENGLISH, *OTHERS, *MARKDOWN])
@pytest.mark.parametrize("step", [1, 2, 3, 7])
def test_where_they_are_cut_changes_nothing(marked: str, step: int) -> None:
    text = marked.replace(BAR, "")
    assert split(*(text[at : at + step] for at in range(0, len(text), step))) == split(text)


CLAUSES = [
    "When all of this is over and done, ¶we will see, I think. ¶Or not: let us go on with what there is; ¶then stop.",
    "Well, yes, it is 1,000 at http://a.b, ¶or so they said to us.",
    "当所有这一切都已经结束并且我们都回到家里的时候，¶我们会看到，对吗？¶好。",
]


@pytest.mark.parametrize("marked", CLAUSES)
def test_where_clauses_end(marked: str) -> None:
    text = marked.replace(BAR, "")
    assert [sentence.text for sentence in split(text, clauses=True)] == marked.split(BAR)
    assert split(*text, clauses=True) == split(text, clauses=True)


def test_code_is_marked_line_by_line() -> None:
    found = split("Look:\n```py\nx = 1\n\ny = 2\n```\nDone. Really.")
    assert [(sentence.text, sentence.code) for sentence in found] == [
        ("Look:\n", False),
        ("```py\n", True),
        ("x = 1\n", True),
        ("\n", True),
        ("y = 2\n", True),
        ("```\n", True),
        ("Done. ", False),
        ("Really.", False),
    ]


@pytest.mark.parametrize("text", ["```\nx\n```", "```\nx\n", "```\nx", "```", "a\n```\n"])
def test_code_that_ends_the_block(text: str) -> None:
    found = split(text)
    assert "".join(sentence.text for sentence in found) == text
    assert found[-1] == Sentence(0, found[-1].text, True, True)
    assert found == split(*text)


# -- when they come ---------------------------------------------------------------------------------------------------


def test_a_sentence_comes_with_the_letter_that_shows_its_end() -> None:
    told: list[str] = []

    def events() -> Iterator[Event]:
        for letter in "Hi there. You.":
            told.append(letter)
            yield TextDelta(0, letter)

    stream = sentences(events())
    assert told == []
    assert next(stream) == Sentence(0, "Hi there. ")
    assert "".join(told) == "Hi there. Y"
    assert list(stream) == [Sentence(0, "You.", True)]


def test_blocks_interleave_and_each_has_one_end() -> None:
    events: list[Event] = [
        TextDelta(0, "One. T"),
        TextDelta(2, "Three. F"),
        ReasoningDelta(1, "Not this. Nor that."),
        TextDelta(0, "wo."),
        BlockEnd(0, TextBlock(0, "One. Two.")),
        TextDelta(2, "our."),
    ]
    assert list(sentences(events)) == [
        Sentence(0, "One. "),
        Sentence(2, "Three. "),
        Sentence(0, "Two.", True),
        Sentence(2, "Four.", True),
    ]


def test_a_block_without_text_says_nothing() -> None:
    assert split() == []
    assert list(sentences([])) == []


def test_awaited_events_give_the_same() -> None:
    pieces = ["Hello. W", "orld! ", "Yes."]

    async def events() -> AsyncIterator[Event]:
        for event in events_of(pieces):
            yield event

    async def collected() -> list[Sentence]:
        return [sentence async for sentence in asentences(events())]

    assert asyncio.run(collected()) == split(*pieces)


def test_a_limit_too_small_is_misuse_at_once() -> None:
    for make in (sentences, asentences):
        with pytest.raises(UsageError, match="at least 20, not 19"):
            make([], max_chars=19)  # type: ignore[call-overload, arg-type, operator]


# -- bounds -----------------------------------------------------------------------------------------------------------

LONG = {
    "words": "word " * 100,
    "one word": "x" * 500,
    "clauses without blanks": "一二三四五六七八九，" * 50,
    "blanks": "Hi. " + " " * 500 + "There.",
    "full stops": "." * 500,
    "closers": "Hi." + '"' * 500,
    "code": "```\n" + "x" * 500 + "\n```\nHi.",
    "fence": "`" * 500,
    "accents": "e\u0301" * 300,
    "families": "👩‍👩‍👧" * 100,
    "lines": "\n" * 500 + "x",
    "open code span": "`" + "a. B " * 100,
}


@pytest.mark.parametrize("name", LONG)
def test_nothing_is_held_longer_than_it_may(name: str) -> None:
    text = LONG[name]
    stream = streamfold.SentenceStream(max_chars=50)
    taken = 0
    found: list[Sentence] = []
    for count, letter in enumerate(text, 1):
        for sentence in stream.push(TextDelta(0, letter)):
            found.append(sentence)
            taken += len(sentence.text)
        assert count - taken <= 58
    found += stream.close()
    assert "".join(sentence.text for sentence in found) == text
    assert max(len(sentence.text) for sentence in found) <= 50
    assert found == split(text, max_chars=50)


def test_what_is_too_long_is_cut_between_words_and_never_in_a_character() -> None:
    assert {sentence.text[-1] for sentence in split(LONG["words"], max_chars=50)} == {" "}
    assert {sentence.text[-1] for sentence in split(LONG["clauses without blanks"], max_chars=50)} == {"，"}
    assert all(not sentence.text.startswith("\u0301") for sentence in split(LONG["accents"], max_chars=51))
    assert all(sentence.text[0] == "👩" for sentence in split(LONG["families"], max_chars=48)[:1])


@pytest.mark.parametrize("name", LONG)
def test_long_texts_come_through_at_a_cost_that_grows_with_them(name: str) -> None:
    """What looked again at all that is held, or copied what is left at each cut, would take minutes here."""
    text = (LONG[name] * 10_000)[:4_000_000]
    assert sum(len(sentence.text) for sentence in split(text)) == len(text)
    assert sum(len(sentence.text) for sentence in split(*text[:40_000])) == 40_000


# -- whatever comes ---------------------------------------------------------------------------------------------------

TOKENS = st.sampled_from(
    [
        *(
            "a",
            "B",
            "word",
            "Dr",
            "e.g",
            "U.S",
            "I",
            "No",
            "5",
            "3.14",
            "1",
            "iv",
            "好",
            "ア",
            "न",
            "😀",
            "\u0301",
            "\u200d",
        ),
        *(".", "..", "...", "…", "!", "?", "?!", "。", "！", "．", "।", "؟"),
        *(" ", "  ", "\n", "\n\n", "\r\n", "\r", "\u2028", "\t", "\xa0"),
        *('"', "'", "“", "”", "」", "(", ")", "[", "]", "[1]", "*", "**", "_", "`", "``", "```", "~~~", "```py\n"),
        *(",", ";", ":", "，", "、", "-", "–", "#", "- ", "1. ", "http://a.b/c?d=e.f"),
    ]
)
TEXTS = st.lists(TOKENS, max_size=40).map("".join) | st.text(max_size=100)


@given(text=TEXTS, points=st.lists(st.integers(0, 160), max_size=12), max_chars=st.sampled_from([20, 25, 60, 400]))
@pytest.mark.parametrize("clauses", [False, True])
def test_joined_they_are_the_text_and_cuts_change_nothing(
    text: str, points: list[int], max_chars: int, clauses: bool
) -> None:
    whole = split(text, max_chars=max_chars, clauses=clauses)
    assert "".join(sentence.text for sentence in whole) == text
    assert all(0 < len(sentence.text) <= max_chars for sentence in whole)
    assert [sentence.final for sentence in whole] == [False] * (len(whole) - 1) + [True] * bool(whole)
    edges = sorted({0, len(text), *(point for point in points if point < len(text))})
    assert split(*(text[a:b] for a, b in pairwise(edges)), max_chars=max_chars, clauses=clauses) == whole
    assert split(*text, max_chars=max_chars, clauses=clauses) == whole


@given(text=TEXTS)
def test_a_line_end_ends_a_sentence(text: str) -> None:
    for sentence in split(text):
        assert not set(sentence.text.strip()) & set("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


def test_words_of_the_tables_can_be_found() -> None:
    for word in ABBREVIATIONS | BEFORE_NUMBERS:
        assert [s.text for s in split(f"So, {word}. 5 it is.")] == [f"So, {word}. 5 it is."], word


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recordings(path: Path) -> None:
    same_text(path.read_bytes(), "auto")


def test_captures(shared: Path) -> None:
    for _, body, facts in captures(SHARED):
        same_text(body, facts["provider"])


def same_text(body: bytes, provider: str) -> None:
    with streamfold.iter_unified(cut(body, 4096), provider) as stream:
        events = list(stream)
    said: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            said[event.index] = said.get(event.index, "") + event.text
    heard: dict[int, str] = {}
    for sentence in sentences(events):
        heard[sentence.index] = heard.get(sentence.index, "") + sentence.text
    assert heard == said
