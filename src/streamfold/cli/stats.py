"""``streamfold stats``: the figures of many answers."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from streamfold import UsageError
from streamfold.cli._main import COMPLETE, FAULTY, complain, ending
from streamfold.cli._many import ProcessDied, each
from streamfold.cli._measure import STDIN, Asked, Figures, Measured, files_in, measure
from streamfold.costs import Cost
from streamfold.decoder import FRAMINGS
from streamfold.providers.registry import PROVIDERS
from streamfold.timing import STALL_S, percentile
from streamfold.views.lines import neutral_json, one_line

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["stats"]

_WORTH: Final = 8_000_000  # bytes: nearly a second's work, where a process takes a third of one to begin


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, allow_dash=True), metavar="PATHS...")
@click.option(
    "--provider", type=click.Choice(list(PROVIDERS)), default="auto", help="Whose answers they are.", show_default=True
)
@click.option(
    "--framing", type=click.Choice(FRAMINGS), default="auto", help="How bodies are framed.", show_default=True
)
@click.option(
    "--stall",
    "stall_s",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=STALL_S,
    help="How long no chunk comes where that is a stall.",
    show_default=True,
)
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes to read with. [default: as the work needs]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object an answer, a line each.")
@click.option("--summary", is_flag=True, help="Add up all answers behind them.")
@ending
def stats(paths: tuple[str, ...], jobs: int | None, as_json: bool, summary: bool, **asked: Any) -> int:
    """Say when what of an answer came, what stalled, and what it cost.

    PATHS are files and folders, or - for standard input. Recordings with times (.sfcap, .sfcap.zst) have all figures,
    bodies only those that need none. A session has a row for each turn. A file that cannot be read is a line on
    standard error and exit code 1; the others still count.
    """
    files = list(files_in(paths))
    if not files:
        raise UsageError("there are no recordings in these folders")
    show: Callable[[Figures], object] = _print_json_of if as_json else _ignore
    answers: list[Figures] = []
    broken: list[str] = []
    try:
        with _measured(Asked(**asked), files, jobs, quiet=as_json and sys.stdout.isatty()) as measured:
            for one in measured:
                if one.broken is not None:
                    broken.append(one.broken)
                for figures in one.answers:
                    answers.append(figures)
                    show(figures)
    except ProcessDied:
        broken.append("a process that was reading died; what it had not read is left out")
    if not as_json:
        _print_tables(answers, summary=summary)
    elif summary:
        _print_json({"summary": summary_of(answers, len(broken))})
    for words in broken:
        complain(words)
    return FAULTY if broken else COMPLETE


@contextmanager
def _measured(asked: Asked, files: Sequence[str], jobs: int | None, *, quiet: bool) -> Generator[Iterator[Measured]]:
    """Each file measured, in order, with a bar on standard error while that is looked at."""
    if STDIN in files:
        jobs = 1  # only this process has it
    elif jobs is None:
        jobs = (os.cpu_count() or 1) if sum(map(_size, files)) > _WORTH else 1
    with each(partial(measure, asked), files, min(jobs, len(files))) as results, _bar(len(files), quiet=quiet) as step:
        yield map(step, results)


@contextmanager
def _bar(count: int, *, quiet: bool) -> Generator[Callable[[Measured], Measured]]:
    if quiet or count < 2 or not sys.stderr.isatty():
        yield _as_it_is
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("measuring", total=count)

        def step(measured: Measured) -> Measured:
            progress.advance(task)
            return measured

        yield step


def _as_it_is(measured: Measured) -> Measured:
    return measured


def _ignore(figures: Figures) -> None:
    return


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


# -- all together -----------------------------------------------------------------------------------------------------

_SPREAD: Final = (
    "time_to_response_head_s",
    "time_to_first_byte_s",
    "time_to_first_chunk_s",
    "time_to_first_token_s",
    "time_to_first_text_s",
    "duration_s",
    "time_per_output_token_s",
    "output_tokens_per_s",
)
"""Figures of which every answer has one; of all their gaps together the spread is told as ``gap_s``."""


def summary_of(answers: Sequence[Figures], broken: int = 0) -> dict[str, Any]:
    """What many answers have in common; p50 and p99 are by nearest rank, over the answers that have the figure."""
    timed = [figures.timing for figures in answers if figures.timed]
    costs = [figures.cost for figures in answers if figures.cost is not None]
    return {
        "answers": len(answers),
        "timed": len(timed),
        "broken": broken,
        "outcomes": dict(Counter(figures.outcome for figures in answers)),
        **{name: _spread(getattr(timing, name) for timing in timed) for name in _SPREAD},
        "gap_s": _spread(gap for timing in timed for gap in timing.gaps_s),
        "stalls": sum(timing.stalls for timing in timed) if timed else None,
        "stalled_s": sum(timing.stalled_s for timing in timed) if timed else None,
        "glued": sum(timing.glued is True for timing in timed) if timed else None,
        "input_tokens": _sum(figures.input_tokens for figures in answers),
        "output_tokens": _sum(figures.timing.output_tokens for figures in answers),
        "cost_usd": sum(cost.cost_usd for cost in costs) if costs else None,
        "cost_is_estimate": any(cost.cost_is_estimate for cost in costs) if costs else None,
    }


def _spread(values: Iterable[float | None]) -> dict[str, float] | None:
    known = sorted(value for value in values if value is not None)
    return {"p50": percentile(known, 50), "p99": percentile(known, 99), "max": known[-1]} if known else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# -- output -----------------------------------------------------------------------------------------------------------


def _print_json_of(figures: Figures) -> None:
    _print_json(figures.members())


def _print_json(value: Any) -> None:
    line = msgspec.json.encode(value)
    if sys.stdout.isatty():
        line = neutral_json(line.decode()).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value * 1000:,.0f} ms" if value < 10 else f"{value:,.1f} s"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _dollars(cost: Cost | None) -> str:
    return "" if cost is None else f"{'~' if cost.cost_is_estimate else ''}${cost.cost_usd:.6f}"


_COLUMNS: Final[tuple[tuple[str, Callable[[Figures], str]], ...]] = (
    ("file", lambda f: f.file if f.turn is None else f"{f.file} turn {f.turn}"),
    ("model", lambda f: f.model or f.surface or ""),
    ("outcome", lambda f: f.outcome if f.fault is None else f"{f.outcome}: {f.fault}"),
    ("first byte", lambda f: _seconds(f.timing.time_to_first_byte_s if f.timed else None)),
    ("token", lambda f: _seconds(f.timing.time_to_first_token_s if f.timed else None)),
    ("text", lambda f: _seconds(f.timing.time_to_first_text_s if f.timed else None)),
    ("end", lambda f: _seconds(f.timing.duration_s if f.timed else None)),
    ("chunks", lambda f: _count(f.timing.chunks)),
    ("gap p50", lambda f: _seconds(f.timing.gap_p50_s if f.timed else None)),
    ("p99", lambda f: _seconds(f.timing.gap_p99_s if f.timed else None)),
    ("max", lambda f: _seconds(f.timing.gap_max_s if f.timed else None)),
    ("stalls", lambda f: _count(f.timing.stalls if f.timed else None)),
    ("glued", lambda f: {None: "", True: "yes", False: "no"}[f.timing.glued if f.timed else None]),
    ("tokens", lambda f: _count(f.timing.output_tokens)),
    ("tokens/s", lambda f: _rate(f.timing.output_tokens_per_s if f.timed else None)),
    ("cost", lambda f: _dollars(f.cost)),
)
_TEXTS: Final = frozenset({"file", "model", "outcome"})  # columns that are no numbers
_LEFT_OUT: Final = ("first byte", "gap p50", "p99", "chunks", "tokens", "model", "max", "glued", "stalls", "text")
"""What a narrow terminal goes without, the first first; ``--json`` has everything."""


def _print_tables(answers: Sequence[Figures], *, summary: bool) -> None:
    columns = {name: [cell(figures) for figures in answers] for name, cell in _COLUMNS}
    if answers:
        _print_table({name: cells for name, cells in columns.items() if any(cells)})
    if summary:
        told = summary_of(answers)
        spread = [(name, told[name]) for name in (*_SPREAD, "gap_s") if told[name] is not None]
        if spread:
            click.echo()
            shown = {of: [f"{found[of]:,.3f}" for _, found in spread] for of in ("p50", "p99", "max")}
            _print_table({"file": [name for name, _ in spread], **shown}, named=False)
        if answers:
            click.echo()
        click.echo(_total(told))


def _total(told: dict[str, Any]) -> str:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in told["outcomes"].items())
    words = [f"{told['answers']} answers: {outcomes}" if outcomes else "no answers"]
    words += [f"{told['output_tokens']:,} output tokens"] if told["output_tokens"] is not None else []
    if told["cost_usd"] is not None:
        words.append(_dollars(Cost(told["cost_usd"], told["cost_is_estimate"])))
    return ", ".join(words)


def _print_table(columns: dict[str, list[str]], *, named: bool = True) -> None:
    from rich.console import Console

    endless = Console(width=10_000)
    console = Console(highlight=False)
    if not sys.stdout.isatty():  # a file has no width: a line an answer
        console.width = max(1, endless.measure(_table(columns, named=named)).maximum)
    for name in _LEFT_OUT:
        if endless.measure(_table(columns, named=named)).maximum <= console.width:
            break
        columns = {kept: cells for kept, cells in columns.items() if kept != name}
    console.print(_table(columns, named=named))


def _table(columns: dict[str, list[str]], *, named: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        text = name in _TEXTS
        shown = name if named or not text else ""
        table.add_column(shown, justify="left" if text else "right", no_wrap=not text, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(one_line(cell)) for cell in row))
    return table
