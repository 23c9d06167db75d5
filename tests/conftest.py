"""Where the shared evidence lies, and what of it ran."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("STREAMFOLD_SHARED", ROOT.parent / "shared"))
RECORDED = sorted(path for path in (ROOT / "examples" / "recordings").iterdir() if path.suffix != ".md")
"""The recordings of our own."""
REQUIRED = os.environ.get("STREAMFOLD_REQUIRE_SHARED") == "1"

# A run starts hundreds of interpreters and loads a hundred modules in each worker: where nothing compiled may be kept,
# all of them are compiled each time, which takes longer than the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# No deadline: a busy machine is no fault of the code. Derandomised, so that a commit is green or red for everyone.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("thorough", deadline=None, max_examples=5000)
settings.load_profile(os.environ.get("STREAMFOLD_HYPOTHESIS", "default"))


def shared_or_skip() -> Path:
    """The shared evidence; where it is absent the test skips, or fails if it was required."""
    if SHARED.is_dir():
        return SHARED
    message = f"no shared evidence at {SHARED} (set STREAMFOLD_SHARED)"
    if REQUIRED:
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@pytest.fixture(scope="session")
def shared() -> Path:
    return shared_or_skip()


def pytest_collection_finish() -> None:
    """The tests themselves live to the end: no collection of garbage needs to look through them."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tests name what they ran by the property ``ran``; the last lines of a run add it up."""
    if report.when == "call" and report.passed:
        for name, value in report.user_properties:
            if name == "ran":
                kind, count = str(value).split("=")
                _RAN[kind] += int(count)


_RAN: Counter[str] = Counter()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _RAN:
        terminalreporter.write_line("ran " + ", ".join(f"{count} {kind}" for kind, count in sorted(_RAN.items())))
