"""Which provider's name means which dialect. Nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from types import FunctionType
from typing import Any, Final, NamedTuple, TypeAlias, Unpack

from streamfold.errors import UsageError
from streamfold.providers._answer import NormalizerSettings
from streamfold.providers._table import Cursor, Normalizer

__all__ = ["PROVIDERS", "Dialect", "Provider", "framing_of", "normalizer", "of_messages"]

Provider: TypeAlias = str | Callable[..., Normalizer]
"""The name of a provider, or what makes a normaliser of one's own: a class, called with the settings."""


class Dialect(NamedTuple):
    """Where the normaliser of a dialect lives, and how its bytes are framed unless they say otherwise."""

    module: str
    name: str
    framing: str = "auto"


PROVIDERS: Final[Mapping[str, Dialect]] = {
    "auto": Dialect("by_shape", "AutoNormalizer"),
    "openai-responses": Dialect("openai_responses", "OpenAIResponsesNormalizer"),
    "openai-chat": Dialect("openai_chat", "OpenAIChatNormalizer"),
    "anthropic": Dialect("anthropic", "AnthropicNormalizer"),
    "xai": Dialect("by_shape", "XAINormalizer"),
    "gemini": Dialect("by_shape", "GeminiNormalizer"),
    "gemini-interactions": Dialect("gemini_interactions", "GeminiInteractionsNormalizer"),
    "gemini-generate-content": Dialect("gemini", "GeminiGenerateContentNormalizer"),
    "bedrock-converse": Dialect("bedrock_converse", "BedrockConverseNormalizer"),
    "bedrock-anthropic": Dialect("by_shape", "BedrockAnthropicNormalizer"),
    "bedrock-invoke": Dialect("by_shape", "BedrockInvokeNormalizer"),
    "bedrock-text": Dialect("bedrock_invoke", "BedrockTextNormalizer"),
    "cohere": Dialect("cohere", "CohereNormalizer"),
    "ollama": Dialect("ollama", "OllamaNormalizer"),
    "gemini-live": Dialect("gemini_live", "GeminiLiveNormalizer", "messages"),
    "lyria": Dialect("lyria", "LyriaNormalizer", "messages"),
    "openai-realtime": Dialect("openai_realtime", "OpenAIRealtimeNormalizer", "messages"),
    "xai-realtime": Dialect("openai_realtime", "XAIRealtimeNormalizer", "messages"),
    "xai-stt": Dialect("xai_speech", "XAISpeechToTextNormalizer", "messages"),
    "xai-tts": Dialect("xai_speech", "XAITextToSpeechNormalizer", "messages"),
}
"""A new provider is a file beside this one and a row here."""

IN_LANES: Final[Mapping[str, str]] = {"openai-responses": "openai-responses", "xai": "openai-responses"}
"""Providers whose WebSockets carry many responses -> the dialect of each."""


def normalizer(
    provider: Provider, *, after: Cursor | None = None, **settings: Unpack[NormalizerSettings]
) -> Normalizer:
    """A fresh normaliser for the provider.

    Raises:
        UsageError: There is none of this name, or it is no name at all.
    """
    if not isinstance(provider, str) and not callable(provider):  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError(f"a provider is a name or what makes a normaliser, not {provider!r}")
    if isinstance(provider, str):
        made: Normalizer = _class_of(provider)(after=after, **settings)
        return made
    if isinstance(provider, FunctionType) and not _takes_settings(provider):
        raise UsageError(_NO_MAKER)
    made = provider(after=after, **settings)
    if not hasattr(made, "feed"):
        raise UsageError(_NO_MAKER)
    return made


_NO_MAKER: Final = (
    "a provider of one's own is a class, or a function that makes a normaliser from the settings; "
    "a function from a frame to events goes to map_event_stream"
)


def _takes_settings(function: FunctionType) -> bool:
    code = function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return "after" in named or bool(code.co_flags & _TAKES_KEYWORDS)


_TAKES_KEYWORDS: Final = 0x08
"""CO_VARKEYWORDS of the data model; ``inspect`` would be a long import for it."""


def of_messages(
    provider: Provider, *, after: Cursor | None = None, **settings: Unpack[NormalizerSettings]
) -> Normalizer:
    """The same for whole messages, as a WebSocket hands them over, which may be those of many answers.

    Who has a cursor goes on with one answer: those of a WebSocket have none.

    Raises:
        UsageError: As :func:`normalizer`.
    """
    if provider == "auto":
        made_by_shape: Normalizer = import_module(_BY_SHAPE).AutoMessagesNormalizer(after=after, **settings)
        return made_by_shape
    dialect = IN_LANES.get(provider) if isinstance(provider, str) else None
    if dialect is None or after is not None:
        return normalizer(provider, after=after, **settings)
    lanes = import_module("streamfold.providers._lanes").LanesNormalizer
    made: Normalizer = lanes(partial(normalizer, dialect, **settings), **settings)
    return made


_BY_SHAPE: Final = "streamfold.providers.by_shape"


def framing_of(provider: Provider) -> str:
    """How the bytes of this provider are framed unless they say otherwise; one of one's own may have ``framing``."""
    return PROVIDERS[provider].framing if isinstance(provider, str) else str(getattr(provider, "framing", "auto"))


@cache
def _class_of(provider: str) -> Any:
    dialect = PROVIDERS.get(provider)
    if dialect is None:
        raise UsageError(f"no provider is called {provider!r}; there are {', '.join(PROVIDERS)}")
    return getattr(import_module(f"streamfold.providers.{dialect.module}"), dialect.name)
