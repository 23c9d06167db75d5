"""One call for each of many things, over processes that end with this one, whatever ends it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["ProcessDied", "each"]

Thing = TypeVar("Thing")
Result = TypeVar("Result")

_AT_ONCE: Final = 16  # things that a process is handed at once, where there are many: a small file takes 1 ms


class ProcessDied(Exception):
    """A process ended before its work did: it was killed, or ran out of memory."""


@contextmanager
def each(call: Callable[[Thing], Result], things: Sequence[Thing], jobs: int) -> Generator[Iterator[Result]]:
    """The results, in the order of the things; leaving the ``with`` ends what is still running.

    Args:
        call: Something that can be pickled; so are the things and the results.
        things: What it is called with.
        jobs: How many processes; with one, it is this.

    Raises:
        ProcessDied: While it is iterated.
    """
    if jobs < 2:
        yield map(call, things)
        return
    from concurrent.futures import ProcessPoolExecutor  # which takes as long to load as a small file to measure
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    context = get_context("spawn")  # a fork would copy locks that other threads hold, of a progress bar's say
    lifeline, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _begin, (lifeline,))
    try:
        with _interrupts_wait():  # so that processes begin with them blocked: Ctrl-C is for this one
            size = max(1, min(_AT_ONCE, len(things) // (4 * jobs)))
            results = pool.map(call, things, chunksize=size)
        yield results
    except BrokenProcessPool as fault:
        raise ProcessDied from fault
    except BaseException:
        held.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        held.close()
        lifeline.close()


def _begin(lifeline: Connection) -> None:
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """Only the process that wants the results holds the other end: it is closed when that leaves, or dies."""
    lifeline.poll(None)
    os._exit(1)


@contextmanager
def _interrupts_wait() -> Generator[None]:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
