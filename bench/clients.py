"""Side by side with what people use today: the official clients, and httpx-sse with ``json.loads``.

    python bench/clients.py [--rounds N]

All read the same recordings in reads of 4 KiB, through the response object that each expects; what they say is dropped.
Recordings that a client refuses (an error in mid-stream) are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import httpx_sse
import openai
import orjson
from anthropic.types import RawMessageStreamEvent
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from measure import compare
from recordings import FAMILIES, bodies, cut, payloads
from streamfold import iter_unified

OFFICIAL: dict[str, tuple[str, type, Any, Any]] = {
    "chat": (f"openai {openai.__version__}", openai.Stream, ChatCompletionChunk, openai.OpenAI(api_key="none")),
    "responses": (f"openai {openai.__version__}", openai.Stream, ResponseStreamEvent, openai.OpenAI(api_key="none")),
    "anthropic": (
        f"anthropic {anthropic.__version__}",
        anthropic.Stream,
        RawMessageStreamEvent,
        anthropic.Anthropic(api_key="none"),
    ),
}
HEADERS = {"content-type": "text/event-stream"}


def official(family: str, chunks: list[bytes]) -> Iterator[Any]:
    _, stream, kind, client = OFFICIAL[family]
    request = httpx2.Request("POST", "http://localhost")
    response = httpx2.Response(200, content=iter(chunks), headers=HEADERS, request=request)
    yield from stream(cast_to=kind, response=response, client=client)


def with_httpx_sse(chunks: list[bytes]) -> Iterator[Any]:
    source = httpx_sse.EventSource(httpx.Response(200, content=iter(chunks), headers=HEADERS))
    for frame in source.iter_sse():
        if frame.data != "[DONE]":
            yield json.loads(frame.data)


def accepted(family: str, chunks: list[bytes]) -> bool:
    try:
        for _ in official(family, chunks):
            pass
    except (openai.OpenAIError, anthropic.AnthropicError):
        return False
    return True


def draining(streams: list[list[bytes]], read: Callable[[list[bytes]], Iterator[Any]]) -> Callable[[], None]:
    def run() -> None:
        for chunks in streams:
            for _ in read(chunks):
                pass

    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| family | streamfold | httpx-sse + json.loads | official client | official / streamfold |")
    print(f"|{' --- |' * 5}")
    for family, (name, *_) in OFFICIAL.items():
        streams = [
            chunks for chunks in (cut(body, 4096) for body in bodies(FAMILIES[family])) if accepted(family, chunks)
        ]
        data = [payload for chunks in streams for payload in payloads(b"".join(chunks))]

        def yardstick(data: list[bytes] = data) -> None:
            for payload in data:
                orjson.loads(payload)

        ways = {
            "ours": draining(streams, lambda chunks, p=FAMILIES[family].provider: iter_unified(chunks, p)),  # type: ignore[misc]
            "sse": draining(streams, with_httpx_sse),
            "official": draining(streams, lambda chunks, f=family: official(f, chunks)),  # type: ignore[misc]
        }
        ratios = compare(yardstick, ways, options.rounds)
        ours, sse, theirs = ratios["ours"], ratios["sse"], ratios["official"]
        print(f"| {family} | {ours:.2f} | {sse:.1f} | {theirs:.0f} ({name}) | {theirs / ours:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
