"""The fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from streamfold.transports.replay import ReplayServer

__all__ = ["streamfold_replay"]


@pytest.fixture
def streamfold_replay() -> Iterator[Callable[..., ReplayServer]]:
    """Makes servers that replay recordings: called as ``ReplayServer`` is; they end with the test."""
    with ExitStack() as servers:

        def serve(*recordings: object, **settings: object) -> ReplayServer:
            server = ReplayServer(*recordings, **settings)  # type: ignore[arg-type] # it says itself what it takes
            return servers.enter_context(server)

        yield serve
