"""The official clients, and two frameworks, read the same bytes: where they say otherwise, it is known why.

The same recording goes through the client's own transport, parser and accumulator and through streamfold; text, calls,
stop reason and token counts are compared. No network: the transports are mocks, the clients are not.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import streamfold
from tests.conftest import SHARED
from tests.evidence import captures, every_capture
from tests.judges.differences import DIFFERENCES, READ, REASONS
from tests.judges.page import PAGE, page
from tests.judges.table import JUDGES, Verdict, ours

pytestmark = pytest.mark.filterwarnings("ignore")  # what the clients warn of is theirs

CAPTURES = {name: (body, facts) for name, body, facts in captures(SHARED)}
CAPTURES |= {name: (body, facts) for name, body, facts in every_capture(SHARED) if facts["family"] == "converse"}
ROWS = [
    (judge, name)
    for judge, (family, *_) in JUDGES.items()
    for name, (_, facts) in CAPTURES.items()
    if facts["family"] == family
]


@pytest.fixture(scope="module", autouse=True)
def _swept() -> Iterator[None]:
    """Loops and sockets that a client leaves behind are its own fault, not that of the test during which they go."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@cache
def verdict(judge: str, name: str) -> Verdict | None:
    """Of a capture; None where the client gives up, in whatever way it does."""
    try:
        return JUDGES[judge].read(CAPTURES[name][0])
    except Exception:  # noqa: BLE001
        return None


def disputed(judge: str, name: str) -> set[str] | None:
    body, facts = CAPTURES[name]
    theirs = verdict(judge, name)
    if theirs is None:
        return None
    mine = ours(streamfold.fold([body], facts["provider"]), refusals=JUDGES[judge].official)
    pairs = zip(theirs._fields, theirs, mine, strict=True)
    return {member for member, their, my in pairs if their is not None and their != my}


@pytest.mark.parametrize(("judge", "name"), ROWS)
def test_they_agree(judge: str, name: str, record_property: Any) -> None:
    found = disputed(judge, name)
    if found is None:
        assert not [key for key in DIFFERENCES if key[:2] == (plain(judge), name)]
        return
    assert found == {member for who, capture, member in DIFFERENCES if (who, capture) == (plain(judge), name)}
    record_property("ran", "verdicts=1")


def plain(judge: str) -> str:
    """The judge without its version."""
    name, _, rest = judge.partition(" ")
    return f"{name},{rest.partition(',')[2]}" if "," in rest else name


def test_every_difference_has_its_reason() -> None:
    assert set(DIFFERENCES.values()) == set(REASONS)


def test_few_differ(shared: Path) -> None:
    """At most one capture in twenty."""
    official = {judge for judge, what in JUDGES.items() if what.official}
    asked = [row for row in ROWS if row[0] in official]
    differ = {(who, capture) for who, capture, _ in DIFFERENCES if who in {plain(judge) for judge in official}}
    assert 20 * len(differ) <= len(asked)


def test_they_read_what_they_are_asked(shared: Path) -> None:
    """A client that gives everything up would agree with all."""
    count = Counter(plain(judge) for judge, name in ROWS if JUDGES[judge].official and verdict(judge, name) is not None)
    assert count == {judge: number for judge, (number, _) in READ.items()}


def test_the_page_is_made_of_the_table() -> None:
    assert PAGE.read_text() == page()
