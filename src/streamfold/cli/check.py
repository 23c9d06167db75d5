"""``streamfold check``: a stream in, what is wrong with it out."""

from __future__ import annotations

import sys
from collections import Counter
from typing import IO, Any

import click
import msgspec

from streamfold.cli._input import Input
from streamfold.cli._main import COMPLETE, FAULTY, complain, ending
from streamfold.cli._reading import PROVIDER, READING, options, print_json, told_whose
from streamfold.lint.linter import check as findings_in
from streamfold.lint.rules import Finding
from streamfold.lint.sessions import check_session
from streamfold.recording.sessions import told_provider
from streamfold.stream import PullStream
from streamfold.views.lines import one_line

__all__ = ["check"]


@click.command()
@options(*READING, PROVIDER)
@click.option("--json", "as_json", is_flag=True, help="Each finding as a JSON object on a line of its own.")
@ending
def check(file: IO[bytes], chunk: int | None, as_json: bool, **settings: Any) -> int:
    """Say what a stream does that its surface does not.

    One finding a line: the byte where it is, how bad it is, which rule it breaks, what was found, and what that breaks
    for whom. Errors and warnings are faults (exit code 1), notes alone are not. Of a recorded session both sides are
    looked at.
    """
    source = Input(file, chunk)
    source.before_read = sys.stdout.flush
    count: Counter[str] = Counter()
    with source.reading(), _findings(source, settings) as findings:
        for finding in findings:
            count[finding.severity] += 1
            if as_json:
                print_json(msgspec.json.encode(finding))
            else:
                click.echo(one_line(str(finding)))
    if not count["error"] and not count["warning"]:
        return COMPLETE
    complain(", ".join(f"{number} {severity}{'s' * (number > 1)}" for severity, number in count.items()))
    return FAULTY


def _findings(source: Input, settings: dict[str, Any]) -> PullStream[Finding]:
    recorded, chunks = told_whose(source, settings)
    if not recorded:
        return findings_in(chunks, **settings)
    settings["provider"], chunks = told_provider(chunks, settings["provider"])
    return check_session(chunks, **settings)
