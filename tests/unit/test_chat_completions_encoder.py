"""Answers of every provider, told again in Chat Completions: through our own parser and through OpenAI's client."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamfold import (
    BlockEnd,
    BlockStart,
    Citation,
    Done,
    ErrorEvent,
    Event,
    MediaBlock,
    MediaDelta,
    Raw,
    ReasoningDelta,
    RefusalBlock,
    Restart,
    Snapshot,
    Start,
    Stop,
    TextBlock,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptDelta,
    Usage,
    aiter_unified,
    fold,
    iter_unified,
)
from streamfold.blocks import JSONText
from streamfold.client import open_stream
from streamfold.decoder import StreamDecoder
from streamfold.encoders.chat_completions import ChatCompletionsEncoder, achat_completions, chat_completions
from streamfold.events import StopReason
from streamfold.relay.app import chat_completions_response
from streamfold.testing import ReplayServer
from tests.conftest import ROOT
from tests.evidence import cut, every_capture
from tests.official import openai, openai_chat
from tests.samples import block_start, block_stop, message_end, message_start, sse

RECORDINGS = sorted(path for path in (ROOT / "examples" / "recordings").iterdir() if path.suffix != ".md")
TOLD_AS: dict[StopReason | None, StopReason | None] = {  # reasons that the dialect has no word for
    "pause": "end",
    "cancelled": "end",
    "other": "end",
}


def told(body: bytes, provider: str = "auto") -> tuple[Snapshot, bytes]:
    """An answer, and what is sent of it."""
    with iter_unified(cut(body, 4096), provider) as stream:
        sent = b"".join(chat_completions(stream))
    return stream.snapshot(), sent


def words(answer: Snapshot, n: int, kind: type[TextBlock] | type[RefusalBlock]) -> str:
    return "".join(block.text for block in answer.choice(n).blocks if isinstance(block, kind))


def differences(one: Snapshot, again: Snapshot) -> Iterator[str]:
    """Where an answer and what came of it on the other side are not the same."""
    if one.outcome not in ("complete", "cancelled"):
        error, other = one.error, again.error
        assert error is not None
        if other is None or (other.message, other.code or error.kind) != (error.message, error.code or error.kind):
            yield f"error {error} became {other}"
    for n in range(one.choices):
        for kind in (TextBlock, RefusalBlock):
            if words(one, n, kind) != words(again, n, kind):
                yield f"{kind.__name__} of choice {n}"
        was, became = one.choice(n), again.choice(n)
        if was.reasoning != became.reasoning:
            yield f"reasoning of choice {n}: {was.reasoning!r} became {became.reasoning!r}"
        if one.outcome != "complete":
            continue
        calls = [[(call.id, call.name, call.arguments) for call in choice.tool_calls] for choice in (was, became)]
        if calls[0] != calls[1]:
            yield f"calls of choice {n}: {calls[0]} became {calls[1]}"
        expected = TOLD_AS.get(was.stop.reason, was.stop.reason)
        if expected == "end" and any(call.state == "ready" for call in became.tool_calls):
            expected = "tool_use"
        if expected != became.stop.reason:
            yield f"stop of choice {n}: {was.stop} became {became.stop}"
    if counted(one.usage) != counted(again.usage):
        yield f"usage: {counted(one.usage)} became {counted(again.usage)}"


def counted(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {name: getattr(usage, name) for name in usage.__struct_fields__ if name != "raw"}


@pytest.mark.parametrize("size", [1, 7, 4096, 10**9])
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_recording_comes_out_as_it_went_in(path: Path, size: int) -> None:
    one, sent = told(path.read_bytes())
    assert list(differences(one, fold(cut(sent, size), "openai-chat"))) == []


def test_every_capture_comes_out_as_it_went_in(shared: Path) -> None:
    wrong: dict[str, list[str]] = {}
    count = 0
    for name, body, facts in every_capture(shared):
        with iter_unified(cut(body, 4096), facts["provider"]) as stream:
            events = list(stream)
        sent = b"".join(chat_completions(events))
        count += 1
        if any(isinstance(event, Restart) for event in events):  # what was sent cannot be taken back: that is told
            again = fold([sent], "openai-chat")
            assert again.error is not None
            assert again.error.code == "restarted"
            continue
        for size in (7, 4096):
            if found := list(differences(stream.snapshot(), fold(cut(sent, size), "openai-chat"))):
                wrong[name] = found
    assert wrong == {}
    assert count > 250


# -- what is sent for which event -------------------------------------------------------------------------------------


def payloads(*events: Event, **settings: Any) -> list[Any]:
    """The payloads of these events, envelopes left out; the sentinel as text."""
    encoder = ChatCompletionsEncoder(**settings)
    sent = b"".join(map(encoder.encode, events))
    found: list[Any] = []
    for frame in sent.split(b"\n\n")[:-1]:
        text = frame.removeprefix(b"data: ").decode()
        found.append(text if text[0] in ":[" else json.loads(text))
    envelope = ("id", "object", "created", "model")
    return [
        {name: value for name, value in found_.items() if name not in envelope} if isinstance(found_, dict) else found_
        for found_ in found
    ]


def chunk(delta: dict[str, Any], finish_reason: str | None = None, *, index: int = 0, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish_reason, **more}]}


BEGUN = (Start("anthropic", "msg_1", "m"), BlockStart(0, "text"))
FIRST = chunk({"role": "assistant", "content": "a"})
CALL = ToolCallStart(0, "call_1", "get")

SENT: dict[str, tuple[tuple[Event, ...], list[Any]]] = {
    "text, with the role once": (
        (*BEGUN, TextDelta(0, "a"), TextDelta(0, "b"), Done("end", "end_turn")),
        [FIRST, chunk({"content": "b"}), chunk({}, "stop", native_finish_reason="end_turn"), "[DONE]"],
    ),
    "a refusal is no content, and its reason is a plain stop": (
        (BlockStart(0, "refusal"), TextDelta(0, "no"), Done("refusal")),
        [chunk({"role": "assistant", "refusal": "no"}), chunk({}, "stop"), "[DONE]"],
    ),
    "a filter that took the answer": (
        (Done("refusal", "SAFETY"),),
        [
            chunk({"role": "assistant", "content": ""}, "content_filter", native_finish_reason="SAFETY"),
            "[DONE]",
        ],
    ),
    "parts of reasoning stand apart": (
        (BlockStart(0, "reasoning"), ReasoningDelta(0, "a"), ReasoningDelta(0, "b", 1)),
        [chunk({"role": "assistant", "reasoning_content": "a"}), chunk({"reasoning_content": "\n\nb"})],
    ),
    "a call begins with its arguments, so that its name is whole": (
        (CALL, ToolCallDelta(0, "call_1", "{}"), ToolCallDone(0, "call_1", "get", "{}")),
        [
            chunk(
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "get", "arguments": "{}"},
                        }
                    ],
                }
            )
        ],
    ),
    "the name that its end tells counts where no arguments came": (
        (CALL, ToolCallDone(0, "call_1", "get_weather", "{}")),
        [
            chunk(
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": "{}"},
                        }
                    ],
                }
            )
        ],
    ),
    "a call that the provider ran has no place here": (
        (
            ToolCallStart(0, "ws_1", "web_search", "web_search", "provider"),
            ToolCallDelta(0, "ws_1", "{}"),
            ToolCallDone(0, "ws_1", "web_search", "{}", executor="provider"),
        ),
        [],
    ),
    "a custom call": (
        (ToolCallStart(0, "call_1", "sql", "custom"), ToolCallDelta(0, "call_1", "SELECT")),
        [
            chunk(
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}
                    ],
                }
            )
        ],
    ),
    "a citation counts from the beginning of the content": (
        (
            *BEGUN,
            TextDelta(0, "a"),
            BlockStart(1, "text"),
            Citation(1, "https://x", "X", None, 0, 3),
            TextDelta(1, "abc"),
        ),
        [
            FIRST,
            chunk(
                {
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {"url": "https://x", "title": "X", "start_index": 1, "end_index": 4},
                        }
                    ]
                }
            ),
            chunk({"content": "abc"}),
        ],
    ),
    "audio in pieces, and its words": (
        (
            BlockStart(0, "media"),
            MediaDelta(0, "audio/pcm", b"ab"),
            BlockStart(1, "transcript"),
            TranscriptDelta(1, "hi"),
            TranscriptDelta(1, "what was asked", "user"),
        ),
        [
            chunk({"role": "assistant", "audio": {"id": "audio_0", "data": "YWI="}}),
            chunk({"audio": {"transcript": "hi"}}),
        ],
    ),
    "a picture, whole": (
        (
            BlockStart(0, "media"),
            MediaDelta(0, "image/png", b"ab"),
            BlockEnd(0, MediaBlock(index=0, mime_type="image/png", data=b"ab")),
        ),
        [
            chunk(
                {
                    "role": "assistant",
                    "images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,YWI="}}],
                }
            )
        ],
    ),
    "two choices end by their own reasons": (
        (
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            BlockStart(1, "text", 1),
            TextDelta(1, "b"),
            Done("end", stops=(Stop(0, "end"), Stop(1, "length"))),
        ),
        [
            FIRST,
            chunk({"role": "assistant", "content": "b"}, index=1),
            chunk({}, "stop"),
            chunk({}, "length", index=1),
            "[DONE]",
        ],
    ),
    "the totals of the end, once": (
        (*BEGUN, TextDelta(0, "a"), Usage(1), Usage(1, 2, 3, cache_read_tokens=1), Done("end")),
        [
            FIRST,
            chunk({}, "stop"),
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 1,
                    "completion_tokens": 2,
                    "total_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 1},
                },
            },
            "[DONE]",
        ],
    ),
    "an error is the last frame, without the sentinel; the totals come before it": (
        (
            *BEGUN,
            TextDelta(0, "a"),
            Usage(1),
            ErrorEvent("provider", "full", "overloaded_error", 529),
            TextDelta(0, "b"),
        ),
        [
            FIRST,
            {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": None, "total_tokens": None}},
            {
                "error": {
                    "message": "full",
                    "type": "provider",
                    "param": None,
                    "code": "overloaded_error",
                    "status": 529,
                }
            },
        ],
    ),
    "a warning is none": ((ErrorEvent("protocol", "a hole", "sequence_gap", fatal=False),), []),
    "a ping keeps the connection alive": ((Raw("ping", JSONText("{}")),), [": keep-alive"]),
    "an answer that begins anew before anything was sent": (
        (
            Start("anthropic", "msg_1"),
            BlockStart(0, "text"),
            Restart("message_start"),
            BlockStart(1, "text"),
            TextDelta(1, "a"),
        ),
        [FIRST],
    ),
}


@pytest.mark.parametrize(("events", "sent"), SENT.values(), ids=SENT.keys())
def test_what_is_sent(events: tuple[Event, ...], sent: list[Any]) -> None:
    assert payloads(*events) == sent


def test_every_chunk_of_an_answer_has_its_id_and_model() -> None:
    sent = b"".join(
        chat_completions([*BEGUN, TextDelta(0, "a"), Start("anthropic", "msg_2"), TextDelta(0, "b"), Done("end")])
    )
    chunks = [json.loads(frame[6:]) for frame in sent.split(b"\n\n")[:-2]]
    assert [(chunk["id"], chunk["model"], chunk["created"]) for chunk in chunks] == [("msg_1", "m", 0)] * 3
    named = ChatCompletionsEncoder(id="chatcmpl-1", model="mine", created=7)
    frame = b"".join(map(named.encode, [*BEGUN, TextDelta(0, "a")]))
    assert b'"id":"chatcmpl-1"' in frame
    assert b'"created":7' in frame
    assert b'"model":"mine"' in frame


def test_usage_that_nobody_asked_for_is_not_sent() -> None:
    assert payloads(*BEGUN, Usage(1), Done("end"), include_usage=False)[-2] == chunk(
        {"role": "assistant", "content": ""}, "stop"
    )


def test_events_that_end_without_an_end_are_an_error() -> None:
    sent = b"".join(chat_completions([*BEGUN, TextDelta(0, "a")]))
    assert fold([sent], "openai-chat").error == ErrorEvent(
        "provider",
        "the answer broke off",
        "truncated",
        raw=fold([sent], "openai-chat").error.raw,  # type: ignore[union-attr]
    )


async def _later(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def test_the_async_twin_sends_the_same() -> None:
    async def twin(events: list[Event]) -> bytes:
        return b"".join([frames async for frames in achat_completions(_later(events))])

    for events, _ in SENT.values():
        assert asyncio.run(twin(list(events))) == b"".join(chat_completions(events))


# -- a route, its server, and OpenAI's client -------------------------------------------------------------------------


@contextmanager
def serving(closed: list[str]) -> Iterator[str]:
    """A server with a route that answers with a recording, named by the model; on the loopback, in a thread."""

    async def completions(request: Request) -> Response:
        name = (await request.json())["model"]
        body = next(path for path in RECORDINGS if path.name == name).read_bytes()

        async def reads() -> AsyncIterator[bytes]:
            try:
                for piece in cut(body, 11):
                    yield piece
            finally:
                closed.append(name)

        return chat_completions_response(aiter_unified(reads()))

    app = Starlette(routes=[Route("/v1/chat/completions", completions, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def route() -> Iterator[tuple[str, list[str]]]:
    closed: list[str] = []
    with serving(closed) as url:
        yield url, closed


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_route_through_the_official_client(route: tuple[str, list[str]], path: Path) -> None:
    url, closed = route
    one = fold([path.read_bytes()])
    state = openai_chat.ChatCompletionStreamState()
    reasoning, failed = "", None
    with (
        openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client,
        client.chat.completions.create(model=path.name, messages=[], stream=True) as stream,
    ):
        try:
            for piece in stream:
                state.handle_chunk(piece)
                for choice in piece.choices:
                    reasoning += getattr(choice.delta, "reasoning_content", None) or ""
        except openai.APIError as fault:
            failed = str(fault)
    assert failed == (None if one.error is None else one.error.message)
    for _ in range(500):  # the client can be done with its answer before the server is
        if path.name in closed:
            break
        time.sleep(0.01)
    assert closed[-1] == path.name
    assert reasoning == one.reasoning
    if failed and not one.blocks:
        return
    answer = state.current_completion_snapshot
    message, usage = answer.choices[0].message, answer.usage
    assert (message.content or "") + (message.refusal or "") == one.text
    if failed:
        return
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    assert calls == [(call.id, call.name, call.arguments) for call in one.tool_calls]
    again = fold([b"".join(chat_completions(iter_unified([path.read_bytes()])))], "openai-chat")
    assert answer.choices[0].finish_reason == again.stop.raw
    if one.usage is not None:
        assert usage is not None
        assert (usage.prompt_tokens, usage.completion_tokens) == (one.usage.input_tokens, one.usage.output_tokens)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_route_through_our_own_client(route: tuple[str, list[str]], size: int) -> None:
    for path in RECORDINGS:
        one = fold([path.read_bytes()])
        request = {"model": path.name, "messages": [], "stream": True}
        sent: list[bytes] = []
        with httpx2.stream("POST", f"{route[0]}/chat/completions", json=request) as response:
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            try:
                sent += response.iter_raw()
                assert one.outcome == "complete"
            except httpx2.RemoteProtocolError:  # the body is cut off behind an error
                assert one.outcome != "complete"
        assert list(differences(one, fold(cut(b"".join(sent), size), "openai-chat"))) == []


SPOKEN = ("anthropic-thinking-tool-use.sse", "openai-chat-parallel-tools.sse", "gemini-thought-signature.sse")
"""Answers with text, reasoning and calls whose characters have several bytes."""


@pytest.mark.parametrize("size", [1, 7])
def test_both_clients_read_it_cut_anywhere(route: tuple[str, list[str]], tmp_path: Path, size: int) -> None:
    """What the route sent, from a server that cuts it inside characters as well: every character once."""
    for name in SPOKEN:
        request = {"model": name, "messages": [], "stream": True}
        (tmp_path / name).write_bytes(httpx2.post(f"{route[0]}/chat/completions", json=request).content)
    with ReplayServer(tmp_path, chunk=size) as server:
        for name in SPOKEN:
            one = fold([(RECORDINGS[0].parent / name).read_bytes()])
            assert any(ord(character) > 127 for block in one.blocks for character in str(block)), name
            asked = {"model": name.removesuffix(".sse"), "stream": True}
            with open_stream("POST", f"{server.openai_url}/chat/completions", json=asked) as stream:
                for _ in stream:
                    pass
            assert list(differences(one, stream.snapshot())) == []
            with openai.OpenAI(base_url=server.openai_url, api_key="none") as client:
                pieces = list(client.chat.completions.create(**asked, messages=[]))
            state = openai_chat.ChatCompletionStreamState()
            for piece in pieces:
                state.handle_chunk(piece)
            message = state.current_completion_snapshot.choices[0].message
            assert (message.content or "") == one.text
            calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
            assert calls == [(call.id, call.name, call.arguments) for call in one.tool_calls]


def test_a_client_that_leaves_closes_the_source(route: tuple[str, list[str]]) -> None:
    url, closed = route
    before = len(closed)
    request = {"model": "openai-responses-function-call.sse", "messages": [], "stream": True}
    with httpx2.stream("POST", f"{url}/chat/completions", json=request) as response:
        next(response.iter_raw())
    for _ in range(200):
        if len(closed) > before:
            break
        threading.Event().wait(0.01)
    assert len(closed) == before + 1


def test_an_answer_that_began_with_the_name_of_a_call_begins_anew_unseen() -> None:
    """Nothing of it was sent yet; the call that stands behind it is the first, and the only one."""
    first = [message_start(), block_start(0, type="tool_use", id="t", name="void", input={})]
    with_call = [block_start(0, type="tool_use", id="u", name="real", input={}), block_stop(0)]
    decoder = StreamDecoder("anthropic")
    events = decoder.feed(sse(first)) + decoder.restart("overloaded")
    events += decoder.feed(sse([message_start(), *with_call, *message_end("tool_use")]))
    again = fold([b"".join(chat_completions(events))], "openai-chat")
    assert (again.outcome, [call.name for call in again.tool_calls]) == ("complete", ["real"])
    chunks = [chunk for chunk in payloads(*events) if chunk != "[DONE]" and chunk["choices"]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [call["index"] for delta in deltas for call in delta.get("tool_calls", ())] == [0]
