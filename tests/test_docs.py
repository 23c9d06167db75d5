"""The pages under docs/: every example runs and says what its comments say; every page is in the navigation."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import streamfold
from tests.test_readme import promised

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
EXAMPLES = [
    pytest.param(example, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, example in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(compile(example, "an example", "exec"), names)
    printed = capsys.readouterr().out
    assert printed.strip(), "an example that shows nothing shows nothing"
    lines = iter(printed.splitlines())
    for promise in promised(example):
        assert any(line.endswith(promise.partition(":")[0]) for line in lines), promise


def test_every_public_name_is_in_the_reference() -> None:
    """By itself, or in the page of its module."""
    named = [
        name for page in PAGES for name in re.findall(r"^::: streamfold\.([\w.]+)$", page.read_text(), re.MULTILINE)
    ]
    modules = [import_module(f"streamfold.{name}") for name in named if (ROOT / f"src/streamfold/{name}.py").exists()]
    shown = {*named, *(name for module in modules for name in module.__all__)}
    assert [name for name in streamfold.__all__ if name not in shown] == []
    assert sorted(name for name, count in Counter(named).items() if count > 1) == []


def test_every_page_is_in_the_navigation() -> None:
    named = re.findall(r"^ *- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]


def test_the_first_page_leads_to_every_other() -> None:
    linked = set(re.findall(r"\]\(([^)#:]+\.md)", (ROOT / "docs/index.md").read_text(encoding="utf-8")))
    assert linked == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES} - {"index.md"}


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
