"""How a command ends: its exit code, and what goes wrong as one line on standard error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import IO, Any, Final, NoReturn, ParamSpec, cast

import click

from streamfold.cli._missing import MESSAGE
from streamfold.errors import FramingError, UsageError
from streamfold.views.lines import one_line

__all__ = [
    "COMPLETE",
    "FAULTY",
    "INTERRUPTED",
    "WRONG_USAGE",
    "Commands",
    "Main",
    "complain",
    "ending",
    "wait_no_longer",
]

COMPLETE: Final = 0
FAULTY: Final = 1
WRONG_USAGE: Final = 2
INTERRUPTED: Final = 130
_PATIENCE_S: Final = 0.5

P = ParamSpec("P")


class Commands(Mapping[str, click.Command]):
    """The commands by name, each loaded when it is asked for: the linter's rules take as long as all the others.

    Attributes:
        words: What the list of commands says of each.
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words

    def __getitem__(self, name: str) -> click.Command:
        if name not in self.words:
            raise KeyError(name)
        command: click.Command = getattr(import_module(f"streamfold.cli.{name}"), name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __len__(self) -> int:
        return len(self.words)


class Main(click.Group):
    """The group of all commands; what click would say in several lines it says in one."""

    def __init__(self, *args: Any, commands: Commands, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.commands = cast("dict[str, click.Command]", commands)  # which click only reads
        self._words = commands.words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self._words.items()))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command. See :meth:`click.Command.main`."""
        _open_what_is_closed()
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as fault:
            if not standalone_mode:
                raise
            context = fault.ctx if isinstance(fault, click.UsageError) else None
            complain(fault.format_message() + (f" (see {context.command_path} --help)" if context is not None else ""))
            code = fault.exit_code
        except click.Abort:
            code = INTERRUPTED
        if standalone_mode:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over; while the interpreter ends, Ctrl-C would kill it
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, where Ctrl-C may come before the command itself begins; click would print a blank line of it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def ending(command: Callable[P, int]) -> Callable[P, NoReturn]:
    """Whatever ends the command, end it with an exit code; a pipe that nobody reads any more ends it quietly."""

    @wraps(command)
    def ended(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        try:
            code = command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            wait_no_longer()
            code = INTERRUPTED
        except BrokenPipeError:
            code = COMPLETE
        except UsageError as fault:
            raise click.UsageError(str(fault)) from None
        except ModuleNotFoundError as missing:
            if missing.name is None or missing.name.partition(".")[0] != "rich":
                raise
            raise click.UsageError(MESSAGE) from None
        except OSError as fault:
            complain(_told(fault))
            code = FAULTY
        except FramingError as fault:  # of the recording itself
            complain(str(fault))
            code = FAULTY
        _let_go(sys.stdout)
        _let_go(sys.stderr)
        click.get_current_context().exit(code)

    return ended


def complain(words: str) -> None:
    """Say on standard error, in one line, what is wrong."""
    click.echo(f"streamfold: {one_line(words)}", err=True)


def _told(fault: OSError) -> str:
    """Which file it was and what is wrong with it, without the number of the error."""
    words = fault.strerror or str(fault)
    return words if fault.filename is None else f"{os.fsdecode(fault.filename)}: {words}"


def _open_what_is_closed() -> None:
    """A standard stream that the caller closed is an empty one; else the next file opened would take its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as the process lives


def wait_no_longer() -> None:
    """Ctrl-C was pressed: output that its reader does not take soon goes nowhere, and whatever waits is interrupted.

    A write into a pipe that is full, to a pager say, has no end of its own; Python takes it up again behind a signal.
    """
    if hasattr(signal, "pthread_kill"):  # not on Windows
        giving_up = threading.Timer(_PATIENCE_S, _give_up)
        giving_up.daemon = True
        giving_up.start()


def _give_up() -> None:
    for stream in (sys.stdout, sys.stderr):
        _to_nowhere(stream)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _let_go(stream: IO[str]) -> None:
    """What cannot be written any more goes nowhere, or the interpreter complains of it when it ends."""
    try:
        stream.flush()
    except (OSError, KeyboardInterrupt):
        _to_nowhere(stream)


def _to_nowhere(stream: IO[str]) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
