"""Every capture through the replay server: the same bytes, and Gemini's framed the other way the same answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx2

from streamfold import fold
from streamfold.recording.shelf import load
from streamfold.testing import ReplayServer
from tests.replay.test_server import PATHS

AT = {**PATHS, "bedrock-invoke": "/model/m/invoke-with-response-stream"}


def test_every_capture_is_served(shared: Path, record_property: Callable[[str, object], None]) -> None:
    captures = load(shared / "captures").answers
    count = Counter(capture.file for capture in captures)
    served = 0
    with ReplayServer(shared / "captures", chunk=4096) as server, httpx2.Client() as client:
        for capture in captures:
            if count[capture.file] > 1:  # the others of its name would answer as well
                continue
            at = server.url + AT[capture.surface]
            other = at.removesuffix("?alt=sse")
            if capture.framing == "json_array":
                at, other = other, at
            said = {"headers": {"streamfold-recording": capture.file}, "json": {"stream": True}}
            assert client.post(at, **said).content == capture.body, capture.file  # type: ignore[arg-type]
            if capture.surface == "gemini":
                again = client.post(other, **said).content  # type: ignore[arg-type]
                assert fold([again], "gemini").to_json() == fold([capture.body], "gemini").to_json(), capture.file
            served += 1
    assert served > 200
    record_property("ran", f"captures replayed={served}")
