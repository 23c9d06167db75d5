"""How the benchmarks measure: both ways in turn, processor time, the smaller of two honest ratios."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

__all__ = ["compare", "seconds"]

Run = Callable[[], object]


def seconds(run: Run, repeat: int = 1) -> float:
    """Processor time of one run, in seconds. A busy machine moves this by percents, wall time by factors."""
    gc.collect()
    begin = time.thread_time()
    for _ in range(repeat):
        run()
    return (time.thread_time() - begin) / repeat


def compare(yardstick: Run, ways: Mapping[str, Run], rounds: int = 9, at_least: float = 0.02) -> dict[str, float]:
    """How many times as long as the yardstick each way takes.

    Yardstick and ways run in turn (A B C A B C …). Of the ratio of the best times and the median of the ratios the
    smaller one counts: what is above it is the machine's doing.
    """
    repeat = {name: _repeats(run, at_least) for name, run in [("", yardstick), *ways.items()]}
    times: dict[str, list[float]] = {name: [] for name in repeat}
    for _ in range(rounds):
        for name, run in [("", yardstick), *ways.items()]:
            times[name].append(seconds(run, repeat[name]))
    return {name: ratio(times[name], times[""]) for name in ways}


def ratio(times: Sequence[float], yardstick: Sequence[float]) -> float:
    """The smaller of the ratio of the best and the median of the ratios."""
    pairs = [time / base for time, base in zip(times, yardstick, strict=True)]
    return min(min(times) / min(yardstick), statistics.median(pairs))


def _repeats(run: Run, at_least: float) -> int:
    once = max(seconds(run), 1e-7)
    return max(1, int(at_least / once))
