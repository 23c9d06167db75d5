"""The types that users see, by mypy and pyright in their strict modes, over ``tests/typing``.

A comment ``# type: ignore[...]`` there says that a line must be an error. Both checkers are told to report those that
ignore nothing, so that each is an assertion; and the last test here takes them all away.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

Checker = Callable[[Path], dict[str, str]]

CASES = ROOT / "tests" / "typing"
EXPECTED = re.compile(r"  # type: ignore\[[a-z-]+\]")


def needs(tool: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(tool) is None
    return pytest.mark.skipif(missing, reason=f"{tool} is not installed")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """The cases beside a configuration of their own."""
    shutil.copytree(CASES, tmp_path / "cases", ignore=shutil.ignore_patterns("__pycache__"))
    settings = {
        "include": ["cases"],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT / 'src'}\n")
    return tmp_path


def mypy(cases: Path) -> dict[str, str]:
    """Each error of mypy, by the place of its line."""
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary", "cases"]
    run = subprocess.run(
        [*command, "--cache-dir", ".cache"],
        cwd=cases,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.stderr
    errors = re.findall(r"^(?:cases/)?(\S+?:\d+): error: (.*)$", run.stdout, re.MULTILINE)
    assert bool(errors) == bool(run.returncode), run.stdout
    return dict(errors)


def pyright(cases: Path) -> dict[str, str]:
    """Each error of pyright, by the place of its line."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", "."]
    run = subprocess.run(command, cwd=cases, capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] == len(list(CASES.glob("*.py")))
    return {
        f"{Path(fault['file']).name}:{fault['range']['start']['line'] + 1}": fault["message"]
        for fault in report["generalDiagnostics"]
    }


CHECKERS = [
    pytest.param(mypy, marks=needs("mypy"), id="mypy"),
    pytest.param(pyright, marks=needs("pyright"), id="pyright"),
]


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_users_write_is_understood(checker: Checker, cases: Path) -> None:
    assert checker(cases) == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_is_wrong_is_an_error(checker: Checker, cases: Path) -> None:
    wrong: set[str] = set()
    for path in (cases / "cases").glob("*.py"):
        lines = path.read_text().splitlines()
        wrong |= {f"{path.name}:{number}" for number, line in enumerate(lines, 1) if EXPECTED.search(line)}
        path.write_text("\n".join(EXPECTED.sub("", line) for line in lines))
    assert wrong
    assert set(checker(cases)) == wrong
