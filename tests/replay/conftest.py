"""One server over the project's own recordings, for all tests that leave it as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamfold.testing import ReplayServer
from tests.conftest import ROOT

RECORDINGS = ROOT / "examples" / "recordings"


@pytest.fixture(scope="session")
def server() -> Iterator[ReplayServer]:
    with ReplayServer(RECORDINGS) as server:
        yield server
