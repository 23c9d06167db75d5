"""Every example of the README runs, and says what its comments say."""

from __future__ import annotations

import asyncio
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import streamfold

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers every request with a recording, in chunks."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        body = (ROOT / "examples/recordings/openai-responses-function-call.sse").read_bytes()
        for at in range(0, len(body), 1000):
            chunk = body[at : at + 1000]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's own name
        """Be quiet."""


@pytest.fixture
def url() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/responses"
        server.shutdown()


def promised(example: str) -> list[str]:
    """What the comments behind ``print`` say it prints, up to an explanation after a colon."""
    comments = re.findall(r"^ *print\(.*\)  # (.+)$", example, re.MULTILINE)
    return [re.sub(r"([\]}]): .*", r"\1", comment) for comment in comments]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(
    number: int, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"url": url, "headers": {"authorization": "Bearer none"}, "request": {"stream": True}}
    exec(compile(EXAMPLES[number], f"README example {number}", "exec"), names)
    if "async def answer" in EXAMPLES[number]:
        answer: streamfold.Snapshot = asyncio.run(names["answer"](url, {}, {}))
        assert answer.outcome == "complete"
        assert [call.name for call in answer.tool_calls] == ["find_departures"]
        return
    printed = capsys.readouterr().out
    assert printed.strip(), "an example that shows nothing shows nothing"
    lines = iter(printed.splitlines())
    for promise in promised(EXAMPLES[number]):
        assert promise in lines, f"{promise!r} is not what it prints, or not in this order"


def test_the_first_screen_has_fifteen_lines_of_code_that_run() -> None:
    code = [line for line in EXAMPLES[0].splitlines() if line.strip()]
    assert len(code) <= 15
    assert README.index("make demo") < README.index("```python") < 1500


def test_there_are_examples_of_every_layer() -> None:
    everything = "\n".join(EXAMPLES)
    names = ["iter_unified", "afold", "fold", "StreamAccumulator", "StreamDecoder", "map_event_stream", "encode_event"]
    assert [name for name in names if name not in everything] == []
