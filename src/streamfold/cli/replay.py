"""``streamfold replay``: recordings, served as the providers serve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streamfold.cli._main import COMPLETE, complain, ending
from streamfold.recording.plan import FAULTS
from streamfold.views.lines import one_line

__all__ = ["replay"]


@click.command(
    help=f"""Serve recordings at the providers' own paths.

    Point a client's base URL at it: what is printed first says how. PLACES are recordings (.sfcap, .sfcap.zst, bodies
    as .sse, .json, .jsonl or .bin, sessions as .jsonl) and folders of them. Several of one surface answer in turn; a
    request takes one by the header streamfold-recording, or by its name as the model.

    \b
    Faults, as NAME=VALUE: {", ".join(FAULTS[:5])} with a place (N,
    byte:N, event:N or random); status=429 (with times=1,
    retry-after=1); error=500; first-byte=2.5. A request sets its own
    by the header streamfold-fault.
    """
)
@click.argument("places", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--host", default="127.0.0.1", help="Where to listen.", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0: any that is free.", show_default=True)
@click.option(
    "--pace",
    default="recorded",
    metavar="recorded|FACTOR|at-once",
    help="How fast, where the recording has times; 2 is twice as fast.",
    show_default=True,
)
@click.option("--chunk", type=click.IntRange(min=1), metavar="N", help="Cut bodies anew, into pieces of N bytes.")
@click.option("--fault", "faults", multiple=True, metavar="NAME=VALUE", help="What goes wrong; any number of times.")
@click.option("--seed", type=int, default=0, help="Of faults at random places.", show_default=True)
@ending
def replay(places: tuple[Path, ...], faults: tuple[str, ...], **settings: Any) -> int:
    """See the help above."""
    from streamfold.transports.replay import ReplayServer  # an extra, needed here alone

    server = ReplayServer(*places, fault=",".join(faults), **settings)
    for words in server.skipped:
        complain(f"passed over: {words}")
    with server:
        click.echo(f"OPENAI_BASE_URL={server.openai_url}")
        click.echo(f"ANTHROPIC_BASE_URL={server.url}")
        click.echo(f"GOOGLE_GEMINI_BASE_URL={server.url}")
        for surface, names in server.served.items():
            click.echo(one_line(f"# {surface}: {', '.join(names)}"))
        server.wait()
    return COMPLETE
