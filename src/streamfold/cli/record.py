"""``streamfold record``: what a command prints, or what comes by a pipe, goes through and into a recording."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import IO, Final

import click

from streamfold.cli._input import Input
from streamfold.cli._main import COMPLETE, ending
from streamfold.errors import UsageError
from streamfold.providers.registry import PROVIDERS
from streamfold.recording.files import Recorder

__all__ = ["record"]

_SIGNALLED: Final = 128  # what shells add to the number of a signal
_PATIENCE_S: Final = 2.0  # for a command to end by itself


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-o", "--output", type=click.Path(dir_okay=False), required=True, help="Where to: .sfcap or .sfcap.zst.")
@click.option("--provider", type=click.Choice(list(PROVIDERS)), help="Whose stream it is, for who reads it later.")
@click.option("--no-redact", is_flag=True, help="Keep the secrets in the command line.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@ending
def record(output: str, provider: str | None, no_redact: bool, command: tuple[str, ...]) -> int:
    """Record what a command prints, read by read, and print it.

    \b
        streamfold record -o x.sfcap -- curl -N …
        curl -N … | streamfold record -o x.sfcap -

    The exit code is that of the command; one that is not 0 is recorded as a failure of the transport. What is printed
    is taken for the body: of the heads of request and response nothing is known, and curl's -i would go into it.
    """
    if output == "-":
        raise UsageError("a recording goes into a file: what is recorded goes to standard output")
    if command != ("-",) and shutil.which(command[0]) is None:
        raise UsageError(f"there is no command {command[0]!r}")
    with Recorder(output, provider=provider, redact=not no_redact) as recorder:
        if command == ("-",):
            _pass_on(sys.stdin.buffer, recorder)
            recorder.end()
            return COMPLETE
        recorder.command(command)
        with _running(command) as process:
            assert process.stdout is not None
            _pass_on(process.stdout, recorder)
            code = process.wait()
        if code == COMPLETE:
            recorder.end()
        else:
            code = code if code > 0 else _SIGNALLED - code
            recorder.end("cut", error=f"{os.path.basename(command[0])} ended with exit code {code}")
    return code


def _pass_on(file: IO[bytes], recorder: Recorder) -> None:
    """Each read to the recording and to standard output, at once, to the end."""
    source, sink = Input(file, None), sys.stdout.fileno()
    with source.reading():  # Ctrl-C comes between two reads, not between the recording and its hash
        for data in source.raw():
            recorder.read(data)
            left = memoryview(data)
            while left:
                left = left[os.write(sink, left) :]


@contextmanager
def _running(command: tuple[str, ...]) -> Generator[subprocess.Popen[bytes]]:
    """A command, whose standard output is ours; whatever happens here, it has ended behind it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is on its way: a command that is left alone would live on
        assert process.stdout is not None
        process.stdout.close()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    process.send_signal(number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE_S)
