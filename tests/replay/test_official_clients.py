"""The providers' own clients against the replay server: every recording gives them the answer that it gives us."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from streamfold import Snapshot, fold
from streamfold.testing import ReplayServer
from tests.official import anthropic, genai, openai
from tests.replay.conftest import RECORDINGS

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # within google-genai
MESSAGES: Any = [{"role": "user", "content": "x"}]
CHAT = ("openai-chat-parallel-tools", "deepseek-reasoning", "xai-chat-reasoning-tool-call")
RESPONSES = ("openai-responses-function-call", "xai-responses-reasoning-function-call")
GENERATE = ("gemini-thought-signature", "gemini-partial-args", "gemini-blocked")
INTERACTIONS = ("gemini-interactions-steps", "gemini-interactions-function-call")


def ours(name: str) -> Snapshot:
    """The answer as streamfold folds the file."""
    return fold([(RECORDINGS / f"{name}.sse").read_bytes()])


def calls_of(answer: Snapshot) -> list[tuple[str | None, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in answer.tool_calls]


class Clients:
    """Each client's stream as a list, by its blocking or its asynchronous face."""

    def __init__(self, server: ReplayServer, *, blocking: bool) -> None:
        self.server, self.blocking = server, blocking

    def chat(self, name: str) -> list[Any]:
        asked: Any = {"model": "m", "messages": MESSAGES, "stream": True, "extra_headers": by_name(name)}
        return self._openai(lambda client: client.chat.completions.create(**asked))

    def responses(self, name: str, **more: Any) -> list[Any]:
        asked: Any = {"model": "m", "input": "x", "stream": True, "extra_headers": by_name(name), **more}
        return self._openai(lambda client: client.responses.create(**asked))

    def taken_up(self, id_: str, after: int) -> list[Any]:
        return self._openai(lambda client: client.responses.retrieve(id_, stream=True, starting_after=after))

    def messages(self, name: str) -> Any:
        asked: Any = {"model": name, "max_tokens": 9, "messages": MESSAGES}
        key: Any = {"base_url": self.server.url, "api_key": "k", "max_retries": 0}
        if self.blocking:
            with anthropic.Anthropic(**key) as client, client.messages.stream(**asked) as stream:
                return stream.get_final_message()

        async def final() -> Any:
            async with anthropic.AsyncAnthropic(**key) as client, client.messages.stream(**asked) as stream:
                return await stream.get_final_message()

        return asyncio.run(final())

    def generate(self, name: str) -> list[Any]:
        client = self._google()
        asked: Any = {"model": name, "contents": "x"}
        if self.blocking:
            with client:
                return list(client.models.generate_content_stream(**asked))

        async def chunks() -> list[Any]:
            async with client.aio as face:
                return [chunk async for chunk in await face.models.generate_content_stream(**asked)]

        try:
            return asyncio.run(chunks())
        finally:
            client.close()

    def interactions(self, name: str) -> list[Any]:
        client = self._google()
        asked: Any = {"model": name, "input": "x", "stream": True}
        if self.blocking:
            with client:
                return list(client.interactions.create(**asked))

        async def events() -> list[Any]:
            async with client.aio as face:
                return [event async for event in await face.interactions.create(**asked)]

        try:
            return asyncio.run(events())
        finally:
            client.close()

    def _google(self) -> Any:
        return genai.Client(api_key="k", http_options=genai.types.HttpOptions(base_url=self.server.url))

    def _openai(self, ask: Any) -> list[Any]:
        key: Any = {"base_url": self.server.openai_url, "api_key": "k", "max_retries": 0}
        if self.blocking:
            with openai.OpenAI(**key) as client:
                stream: Iterator[Any] = ask(client)
                return list(stream)

        async def items() -> list[Any]:
            async with openai.AsyncOpenAI(**key) as client:
                stream: AsyncIterator[Any] = await ask(client)
                return [item async for item in stream]

        return asyncio.run(items())


def by_name(name: str) -> dict[str, str]:
    return {"streamfold-recording": name}


@pytest.fixture(params=["blocking", "asynchronous"])
def clients(request: pytest.FixtureRequest, server: ReplayServer) -> Clients:
    return Clients(server, blocking=request.param == "blocking")


@pytest.mark.parametrize("name", CHAT)
def test_openai_reads_chat_completions(clients: Clients, name: str) -> None:
    answer = ours(name)
    chunks = clients.chat(name)
    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == answer.text
    arguments: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls or ()):
        names, texts = arguments.setdefault(call.index, ["", ""])
        arguments[call.index] = [names or call.function.name or "", texts + (call.function.arguments or "")]
    assert [(called, json.loads(text)) for called, text in arguments.values()] == calls_of(answer)
    usage = [chunk.usage for chunk in chunks if chunk.usage is not None][-1]
    assert answer.usage is not None
    assert usage.prompt_tokens == answer.usage.input_tokens


@pytest.mark.parametrize("name", RESPONSES)
def test_openai_reads_responses(clients: Clients, name: str) -> None:
    answer = ours(name)
    response = clients.responses(name)[-1].response
    assert response.output_text == answer.text
    calls = [item for item in response.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == calls_of(answer)
    assert answer.usage is not None
    assert response.usage.input_tokens == answer.usage.input_tokens
    assert response.usage.output_tokens == answer.usage.output_tokens


def test_openai_takes_a_run_up(clients: Clients) -> None:
    whole = clients.responses(RESPONSES[0], background=True)
    id_ = whole[0].response.id
    rest = clients.taken_up(id_, whole[4].sequence_number)
    assert rest == whole[5:]


def test_anthropic_reads_messages(clients: Clients) -> None:
    answer = ours("anthropic-thinking-tool-use")
    message = clients.messages("anthropic-thinking-tool-use")
    assert "".join(block.text for block in message.content if block.type == "text") == answer.text
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    assert calls == calls_of(answer)
    assert "".join(block.thinking for block in message.content if block.type == "thinking") == answer.reasoning
    assert message.stop_reason == "tool_use"
    assert answer.usage is not None
    assert message.usage.output_tokens == answer.usage.output_tokens


def test_anthropic_raises_what_comes_in_the_stream(clients: Clients) -> None:
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        clients.messages("anthropic-overloaded")


@pytest.mark.parametrize("name", GENERATE)
def test_google_reads_generated_content(clients: Clients, name: str) -> None:
    answer = ours(name)
    chunks = clients.generate(name)
    candidates = [candidate for chunk in chunks for candidate in chunk.candidates or ()]
    parts = [part for candidate in candidates for part in (candidate.content and candidate.content.parts) or ()]
    assert "".join(part.text for part in parts if part.text and not part.thought) == answer.text
    assert "".join(part.text for part in parts if part.text and part.thought) == answer.reasoning
    if answer.usage is not None and answer.usage.input_tokens:
        assert chunks[-1].usage_metadata.prompt_token_count == answer.usage.input_tokens
    if name == "gemini-blocked":
        assert chunks[0].prompt_feedback.block_reason == "SAFETY"


@pytest.mark.parametrize("name", INTERACTIONS)
def test_google_reads_interactions(clients: Clients, name: str) -> None:
    answer = ours(name)
    events = clients.interactions(name)
    deltas = [event.delta for event in events if event.event_type == "step.delta"]
    assert "".join(delta.text for delta in deltas if delta.type == "text") == answer.text
    arguments = "".join(delta.arguments for delta in deltas if delta.type == "arguments_delta")
    assert (json.loads(arguments) if arguments else None) == next((of for _, of in calls_of(answer)), None)
    assert answer.usage is not None
    assert events[-1].interaction.usage.total_tokens == answer.usage.total_tokens


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "asynchronous"])
def test_clients_see_faults_as_of_the_providers(blocking: bool) -> None:
    with ReplayServer(RECORDINGS, fault="cut=event:2") as server:
        clients = Clients(server, blocking=blocking)
        with pytest.raises(openai.APIConnectionError):
            clients.chat(CHAT[0])
        with pytest.raises(Exception, match="incomplete chunked read"):
            clients.messages("anthropic-thinking-tool-use")
        with pytest.raises(Exception, match=r"incomplete chunked read|payload is not completed"):
            clients.generate(GENERATE[0])
    with ReplayServer(RECORDINGS, fault="error=503") as server:
        clients = Clients(server, blocking=blocking)
        with pytest.raises(openai.InternalServerError) as refused:
            clients.responses(RESPONSES[0])
        assert refused.value.status_code == 503
        with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
            clients.messages("anthropic-thinking-tool-use")
        with pytest.raises(genai.errors.ServerError, match="UNAVAILABLE"):
            clients.generate(GENERATE[0])


def test_clients_try_again_behind_429() -> None:
    with ReplayServer(RECORDINGS, fault="status=429,retry-after=0") as server:
        key: Any = {"api_key": "k", "max_retries": 2}
        with openai.OpenAI(base_url=server.openai_url, **key) as one:
            chunks = list(one.chat.completions.create(model="m", messages=MESSAGES, stream=True))
        with anthropic.Anthropic(base_url=server.url, **key) as other:
            asked: Any = {"model": "anthropic-thinking-tool-use", "max_tokens": 9, "messages": MESSAGES}
            with other.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        assert chunks
        assert message.stop_reason == "tool_use"
        assert [request.path for request in server.requests] == ["/v1/chat/completions"] * 2 + ["/v1/messages"] * 2
