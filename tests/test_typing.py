"""The types that users see, by mypy and pyright in their strict modes, over ``tests/typing``.

A comment ``# type: ignore[...]`` there says that a line must be an error. Both checkers are told to report those that
ignore nothing, so that each is an assertion; and beside the cases lie the same without these comments.
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
FOLDERS = ("cases", "bare")

CASES = ROOT / "tests" / "typing"
EXPECTED = re.compile(r"  # type: ignore\[[a-z-]+\]")


def needs(tool: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(tool) is None
    return pytest.mark.skipif(missing, reason=f"{tool} is not installed")


def laid_out(place: Path) -> None:
    """The cases, and what they are without their comments, beside a configuration of their own."""
    shutil.copytree(CASES, place / "cases", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "bare").mkdir()
    for path in CASES.glob("*.py"):
        (place / "bare" / path.name).write_text(EXPECTED.sub("", path.read_text()))
    settings = {
        "include": FOLDERS,
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (place / "pyrightconfig.json").write_text(json.dumps(settings))
    packages = "namespace_packages = true\nexplicit_package_bases = true\n"
    (place / "mypy.ini").write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT / 'src'},{place}\n{packages}")


def mypy(place: Path) -> dict[str, str]:
    """Each error of mypy, by the place of its line."""
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--no-error-summary", *FOLDERS]
    run = subprocess.run(
        [*command, "--cache-dir", ".cache"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not run.stderr
    errors = re.findall(r"^(\S+?:\d+): error: (.*)$", run.stdout, re.MULTILINE)
    assert bool(errors) == bool(run.returncode), run.stdout
    return dict(errors)


def pyright(place: Path) -> dict[str, str]:
    """Each error of pyright, by the place of its line."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", "."]
    run = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    report = json.loads(run.stdout)
    assert report["summary"]["filesAnalyzed"] == len(FOLDERS) * len(list(CASES.glob("*.py")))
    return {
        f"{Path(fault['file']).relative_to(place.resolve())}:{fault['range']['start']['line'] + 1}": fault["message"]
        for fault in report["generalDiagnostics"]
    }


CHECKERS = [
    pytest.param(mypy, marks=needs("mypy"), id="mypy"),
    pytest.param(pyright, marks=needs("pyright"), id="pyright"),
]


@pytest.fixture(scope="module", params=CHECKERS)
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each error of a checker, by the place of its line; of both folders at once: most of the time goes by before."""
    place = tmp_path_factory.mktemp("typing")
    laid_out(place)
    checker: Checker = request.param
    return checker(place)


def test_what_users_write_is_understood(errors: dict[str, str]) -> None:
    assert {place: words for place, words in errors.items() if place.startswith("cases/")} == {}


def test_what_is_wrong_is_an_error(errors: dict[str, str]) -> None:
    wrong = {
        f"bare/{path.name}:{number}"
        for path in CASES.glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if EXPECTED.search(line)
    }
    assert wrong
    assert {place for place in errors if place.startswith("bare/")} == wrong
