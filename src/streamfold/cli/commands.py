"""The command line and the names of its commands. Each is bytes in, one call of the library, lines out.

A command is a function in a module, both of its name, that is loaded when the command is asked for.
"""

from __future__ import annotations

from typing import Final

import click

from streamfold import __version__
from streamfold.cli._main import WRONG_USAGE, Commands, Main

__all__ = ["COMMANDS", "main"]

COMMANDS: Final = Commands(
    {
        # name -> the first sentence of its help
        "check": "Say what a stream does that its surface does not.",
        "convert": "Convert recordings: raw bodies, .sfcap, VCR cassettes, HAR.",
        "events": "Print each unified event of a stream as a line of JSON.",
        "fold": "Fold a stream into its answer.",
        "frames": "Print each frame of a stream as a line of JSON.",
        "record": "Record what a command prints, read by read, and print it.",
        "replay": "Serve recordings at the providers' own paths.",
        "stats": "Say when what of an answer came, what stalled, and what it cost.",
    }
)


@click.group(cls=Main, commands=COMMANDS, invoke_without_command=True)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def main(context: click.Context) -> None:
    """Read the streamed answer of a language-model provider.

    FILE is a recording, or - for standard input, live pipes included:

    \b
        curl -N … | streamfold fold -

    \b
    Exit codes:
        0    the answer is complete
        1    it failed, was truncated, or could not be read
        2    wrong usage, or no such file
        130  interrupted
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(WRONG_USAGE)
