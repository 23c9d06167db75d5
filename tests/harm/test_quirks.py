"""Guided by harm: what goes wrong on the wire has a test that names it. ``quirks.toml`` is the table.

The table is held against the pages and cases that it speaks of, so that a statement which is new there, or gone, shows
here; and against the tests that it names.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
Entry = dict[str, Any]

PAGES: dict[str, list[Entry]] = tomllib.loads(Path(__file__).with_name("quirks.toml").read_text())
CASES = PAGES.pop("cases")
ENTRIES = [*CASES, *(entry for entries in PAGES.values() for entry in entries)]
NAMED = {f"tests/{test}" for entry in ENTRIES for test in entry["tests"]}

SEEN = re.compile(r"\[(?:[A-Z], ?)*W\b[^\]]*\]")
"""A mark of the pages: seen on the wire, perhaps also typed or documented, perhaps with where and how often."""


def marked(page: Path) -> list[str]:
    """The lines of a page that have such a mark. The first one explains the marks, and states nothing."""
    return [line for line in page.read_text().splitlines() if SEEN.search(line)][1:]


def test_every_page_that_has_seen_something_is_in_the_table(shared: Path) -> None:
    assert {page.stem for page in (shared / "protocols").glob("*.md") if marked(page)} == PAGES.keys()


@pytest.mark.parametrize("page", PAGES)
def test_every_statement_of_a_page_has_an_entry(page: str, shared: Path) -> None:
    lines = marked(shared / "protocols" / f"{page}.md")
    told: Counter[str] = Counter()
    for entry in PAGES[page]:
        stated = [line for line in lines if entry["line"] in line]
        assert len(stated) == 1, f"{entry['line']!r} stands in {len(stated)} marked lines"
        told[stated[0]] += 1
    assert not [line for line in lines if told[line] < len(SEEN.findall(line))]


def test_every_case_has_an_entry(shared: Path) -> None:
    assert [entry["id"] for entry in CASES] == sorted(path.stem for path in (shared / "cases").glob("*.json"))


def test_every_entry_says_what_goes_wrong_and_what_proves_it() -> None:
    for entry in ENTRIES:
        assert entry.keys() in ({"id", "fault", "tests"}, {"line", "quirk", "tests"})
        assert all(entry.values()), entry


def test_no_test_that_is_named_needs_the_shared_evidence() -> None:
    files = {test.partition("::")[0] for test in NAMED}
    assert not [file for file in files if re.search(r"\bshared\b|\bSHARED\b", (ROOT / file).read_text())]


def test_every_test_that_is_named_exists(request: pytest.FixtureRequest) -> None:
    """Asked of this run; what a run of a part leaves out is collected once more."""
    missing = NAMED - {item.nodeid for item in request.session.items}
    if missing:
        missing -= collected({test.partition("::")[0] for test in missing})
    assert not missing


def collected(files: set[str]) -> set[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib"]
    run = subprocess.run([*command, *sorted(files)], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(run.stdout.splitlines())
