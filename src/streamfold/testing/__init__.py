"""For tests of one's own stack: a server that replays recordings, by itself and as a fixture of pytest.

    with ReplayServer("recordings/", fault="cut=event:3") as server:
        client = openai.OpenAI(base_url=server.openai_url, api_key="any")

With pytest, ``pytest_plugins = ["streamfold.testing"]`` in the top ``conftest.py`` (or ``-p streamfold.testing``) has
the fixture ``streamfold_replay``: called with the same arguments it gives a server, which ends with the test.

PYTEST_DONT_REWRITE: nothing is asserted here.
"""

from __future__ import annotations

from typing import Any

from streamfold.transports.replay import ReplayRequest, ReplayServer

__all__ = ["ReplayRequest", "ReplayServer"]


def pytest_configure(config: Any) -> None:
    """Called by pytest, where this is one of its plugins; only then is pytest imported."""
    from streamfold.testing import _fixtures

    config.pluginmanager.register(_fixtures, "streamfold.testing.fixtures")
