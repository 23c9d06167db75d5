"""The judges: each reads the bytes through the client's own transport, parser and, where it has one, accumulator.

Loading this loads all the clients, which takes seconds: :mod:`tests.judges.table` does so when one is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import anthropic
import botocore
import botocore.session
import google.genai
import httpx2
import litellm
import openai
from botocore.eventstream import EventStream
from botocore.parsers import EventStreamJSONParser
from google.genai import types as google_types
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tests.judges.table import Unread, Verdict, in_one_form

litellm.suppress_debug_info = True

__all__ = [
    "chat_completions",
    "converse_stream",
    "generate_content",
    "interactions",
    "messages",
    "pydantic_chat",
    "pydantic_messages",
    "pydantic_responses",
    "responses",
    "with_litellm",
]

_HEADERS: Final = {"content-type": "text/event-stream"}


def _transport(body: bytes) -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, headers=_HEADERS, content=body)))


# -- openai -----------------------------------------------------------------------------------------------------------


def _openai(body: bytes) -> openai.OpenAI:
    return openai.OpenAI(api_key="none", max_retries=0, http_client=_transport(body))


def chat_completions(body: bytes) -> Verdict:
    state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
    with _openai(body).chat.completions.create(model="m", messages=[], stream=True) as stream:
        for chunk in stream:
            state.handle_chunk(chunk)
    answer = state.current_completion_snapshot
    choice = next(choice for choice in answer.choices if choice.index == 0)
    message, usage = choice.message, answer.usage
    return Verdict(
        (message.content or "") + (message.refusal or ""),
        tuple((call.function.name, in_one_form(call.function.arguments)) for call in message.tool_calls or ()),
        choice.finish_reason,
        usage and usage.prompt_tokens,
        usage and usage.completion_tokens,
    )


def responses(body: bytes) -> Verdict:
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=[], text_format=openai.omit)
    answer: Any = None
    with _openai(body).responses.create(model="m", input="", stream=True) as stream:
        for event in stream:
            state.handle_event(event)
            answer = getattr(event, "response", answer)
    if answer is None or answer.status not in ("completed", "incomplete"):
        raise Unread
    usage, reason = answer.usage, answer.incomplete_details and answer.incomplete_details.reason
    return Verdict(
        "".join(_words(answer.output)),
        tuple(_client_calls(answer.output)),
        reason or answer.status,
        usage and usage.input_tokens,
        usage and usage.output_tokens,
    )


def _words(output: Iterable[Any]) -> Iterator[str]:
    for item in output:
        if item.type == "message":
            for part in item.content:
                yield part.text if part.type == "output_text" else part.refusal


def _client_calls(output: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for item in output:
        if item.type == "function_call":
            yield item.name, in_one_form(item.arguments)
        elif item.type == "custom_tool_call":
            yield item.name, item.input


# -- anthropic --------------------------------------------------------------------------------------------------------


def messages(body: bytes) -> Verdict:
    client = anthropic.Anthropic(api_key="none", max_retries=0, http_client=_transport(body))
    with client.messages.stream(model="m", messages=[], max_tokens=1) as stream:
        answer = stream.get_final_message()
    if answer.stop_reason is None:
        raise Unread
    usage = answer.usage
    return Verdict(
        "".join(block.text for block in answer.content if block.type == "text"),
        tuple((block.name, in_one_form(block.input)) for block in answer.content if block.type == "tool_use"),
        answer.stop_reason,
        usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0),
        usage.output_tokens,
    )


# -- google-genai -----------------------------------------------------------------------------------------------------


def generate_content(body: bytes) -> Verdict:
    options = google_types.HttpOptions(httpx_client=_transport(body))
    client = google.genai.Client(api_key="none", http_options=options)
    text, calls, stop, usage = "", [], None, None
    for chunk in client.models.generate_content_stream(model="m", contents="x"):
        usage = chunk.usage_metadata or usage
        for candidate in chunk.candidates or ():
            if candidate.index:
                continue
            stop = candidate.finish_reason or stop
            for part in (candidate.content and candidate.content.parts) or ():
                if part.function_call:
                    calls.append((part.function_call.name or "", in_one_form(part.function_call.args or {})))
                text += "" if part.thought else part.text or ""
    if stop is None:
        raise Unread
    return Verdict(
        text,
        tuple(calls),
        stop.value,
        usage and (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        usage and (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
    )


def interactions(body: bytes) -> Verdict:
    """The client gives events, and joins nothing; the contents of the older vocabulary it hands out as unknown."""
    options = google_types.HttpOptions(httpx_client=_transport(body))
    client = google.genai.Client(api_key="none", http_options=options)
    text, calls, arguments, end = "", dict[int, str](), dict[int, str](), None
    for event in client.interactions.create(model="m", input="x", stream=True):
        match event.event_type:
            case "step.start" if event.step.type == "function_call":
                calls[event.index], arguments[event.index] = event.step.name, ""
            case "step.delta" if event.delta.type == "text":
                text += event.delta.text
            case "step.delta" if event.delta.type == "arguments_delta":
                arguments[event.index] += event.delta.arguments or ""
            case "interaction.completed":
                end = event.interaction
    if end is None:
        raise Unread
    usage = end.usage
    return Verdict(
        text,
        tuple((name, in_one_form(arguments[index])) for index, name in calls.items()),
        end.status,
        usage and (usage.total_input_tokens or 0) + (usage.total_tool_use_tokens or 0),
        usage and (usage.total_output_tokens or 0) + (usage.total_thought_tokens or 0),
    )


# -- boto3 ------------------------------------------------------------------------------------------------------------


class _Body:
    """What botocore reads a response from."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> Iterator[bytes]:
        yield self.body

    def close(self) -> None:
        """Nothing is open."""


def converse_stream(body: bytes) -> Verdict:
    """boto3's own reader of ConverseStream, by its model of the service; it gives events, and joins nothing."""
    service = botocore.session.Session().get_service_model("bedrock-runtime")
    shape = service.operation_model("ConverseStream").get_event_stream_output()
    text, names, inputs, stop, usage = "", dict[int, str](), dict[int, str](), None, None
    for event in EventStream(_Body(body), shape, EventStreamJSONParser(), "ConverseStream"):
        match event:
            case {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": call}}}:
                if call.get("type") != "server_tool_use":
                    names[index], inputs[index] = call["name"], ""
            case {"contentBlockDelta": {"delta": {"text": piece}}}:
                text += piece
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}}:
                if index in inputs:
                    inputs[index] += piece
            case {"messageStop": {"stopReason": reason}}:
                stop = reason
            case {"metadata": {"usage": counted}}:
                usage = counted
            case _:
                pass
    if stop is None:
        raise Unread
    cached = ("cacheReadInputTokens", "cacheWriteInputTokens")
    return Verdict(
        text,
        tuple((names[index], in_one_form(inputs[index])) for index in names),
        stop,
        usage and usage["inputTokens"] + sum(usage.get(name, 0) for name in cached),
        usage and usage["outputTokens"],
    )


def _not_legacy(body: bytes) -> None:
    """The legacy completions endpoint is another one to the frameworks."""
    if b'"text_completion"' in body:
        raise Unread


# -- litellm ----------------------------------------------------------------------------------------------------------


def with_litellm(body: bytes) -> Verdict:
    _not_legacy(body)
    asked = [{"role": "user", "content": "x"}]
    chunks = litellm.completion("openai/m", messages=asked, stream=True, client=_openai(body))
    answer: Any = litellm.stream_chunk_builder(list(chunks))
    if answer is None:
        raise Unread
    choice = answer.choices[0]
    calls = [(call.function.name, in_one_form(call.function.arguments)) for call in choice.message.tool_calls or ()]
    # It estimates tokens that were not reported, has its own words for reasons, and drops refusals.
    return Verdict(choice.message.content, tuple(calls))


# -- pydantic-ai ------------------------------------------------------------------------------------------------------


def _pydantic_chat(client: httpx2.AsyncClient) -> Model[Any]:
    return OpenAIChatModel("m", provider=OpenAIProvider(api_key="none", http_client=client))


def _pydantic_responses(client: httpx2.AsyncClient) -> Model[Any]:
    return OpenAIResponsesModel("m", provider=OpenAIProvider(api_key="none", http_client=client))


def _pydantic_messages(client: httpx2.AsyncClient) -> Model[Any]:
    return AnthropicModel("m", provider=AnthropicProvider(api_key="none", http_client=client))


def _with_pydantic_ai(make: Callable[[httpx2.AsyncClient], Model[Any]]) -> Callable[[bytes], Verdict]:
    def read(body: bytes) -> Verdict:
        return asyncio.run(_ask(make, body))

    return read


async def _ask(make: Callable[[httpx2.AsyncClient], Model[Any]], body: bytes) -> Verdict:
    _not_legacy(body)
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers=_HEADERS, content=body))
    async with httpx2.AsyncClient(transport=transport) as client:
        asked: list[parts.ModelMessage] = [parts.ModelRequest.user_text_prompt("x")]
        async with model_request_stream(make(client), asked) as stream:
            async for _ in stream:
                pass
            answer = stream.get()
    return Verdict(
        "".join(part.content for part in answer.parts if isinstance(part, parts.TextPart)),
        tuple(
            (part.tool_name, in_one_form(part.args or {}))
            for part in answer.parts
            if isinstance(part, parts.ToolCallPart)
        ),
        str(answer.provider_details["finish_reason"]) if (answer.provider_details or {}).get("finish_reason") else None,
        answer.usage.input_tokens or None,
        answer.usage.output_tokens or None,
    )


pydantic_chat = _with_pydantic_ai(_pydantic_chat)
pydantic_responses = _with_pydantic_ai(_pydantic_responses)
pydantic_messages = _with_pydantic_ai(_pydantic_messages)
