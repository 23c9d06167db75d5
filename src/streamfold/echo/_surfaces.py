"""Which module of this package knows the requests of a surface. A module is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final, cast

from streamfold.echo._items import Surface, Turn
from streamfold.errors import UsageError
from streamfold.snapshot import Snapshot

__all__ = ["ONE_BY_ONE", "surface_of", "turn_of"]

ONE_BY_ONE: Final = frozenset({"gemini-live", "openai-realtime", "xai-realtime"})
"""Surfaces of sessions, which go on while calls wait: a result may be sent as soon as it is there."""

_MODULES: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "bedrock-converse": "bedrock_converse",
    "cohere": "cohere",
    "gemini": "gemini",
    "gemini-interactions": "gemini_interactions",
    "gemini-live": "gemini_live",
    "ollama": "ollama",
    "openai-chat": "openai_chat",
    "openai-realtime": "openai_realtime",
    "openai-responses": "openai_responses",
    "xai-realtime": "openai_realtime",
}


def surface_of(answer: Snapshot) -> Surface:
    """The module that knows the provider's requests.

    Raises:
        UsageError: The answer names no surface, or one that takes no turns back.
    """
    module = _MODULES.get(answer.surface or "")
    if module is None:
        raise UsageError(f"the surface {answer.surface!r} takes no answers back; those that do: {', '.join(_MODULES)}")
    return cast("Surface", import_module(f"streamfold.echo.{module}"))


def turn_of(answer: Snapshot, choice: int) -> Turn:
    """One choice of the answer.

    Raises:
        UsageError: There is no such choice.
    """
    if choice not in range(answer.choices):
        raise UsageError(f"there is no choice {choice!r}: the answer has {answer.choices}")
    one = answer.choice(choice)
    return Turn(one.blocks, one.stop, answer.outcome == "complete")
