"""What ``make`` says where a machine lacks something: one line, and what to do about it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Makefile is for POSIX shells")

TOOLS = ("sh", "rm")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder to be the PATH: a shell, and whatever a test puts there."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


def put(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def set_up(tools: Path, **environment: str) -> tuple[int, list[str]]:
    """Exit code and what was said, of a set-up in a folder that holds nothing else."""
    project = tools.parent / "project"
    project.mkdir()
    shutil.copy(ROOT / "pyproject.toml", project)
    done = subprocess.run(
        ["sh", ROOT / "scripts" / "setup.sh", "cli"],
        cwd=project,
        env={"PATH": str(tools), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_no_python(tools: Path) -> None:
    code, said = set_up(tools)
    assert code == 1
    assert said == ["setup: no Python 3.11 or newer was found (PYTHON=/path/to/python names one)"]


def test_only_an_old_python(tools: Path) -> None:
    put(tools, "python3", "exit 1")
    put(tools, "python3.12", "echo 'a version manager that has no such version' >&2; exit 127")
    code, said = set_up(tools)
    assert code == 1
    assert len(said) == 1


def test_no_venv_module(tools: Path) -> None:
    put(tools, "python3", "exit 1")
    put(tools, "python3.13", '[ "$1" = -c ] || { echo "No module named venv" >&2; exit 1; }')
    code, said = set_up(tools)
    assert code == 1
    assert said == [
        "setup: python3.13 cannot make a virtual environment (Debian and Ubuntu: apt-get install python3-venv)"
    ]
    assert not (tools.parent / "project" / ".venv").exists()


def test_no_network(tools: Path) -> None:
    code, said = set_up(tools, PYTHON=sys.executable, PIP_NO_INDEX="1")
    assert code == 1
    assert said[-1].startswith("setup: the dependencies cannot be installed; is there a network?")
    assert len(said) == 2  # the first says what is being done
    assert (tools.parent / "project" / ".venv" / "pip.log").read_text()
