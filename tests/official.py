"""The providers' own clients, each loaded when something of it is asked for: together that takes seconds."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["anthropic", "genai", "openai", "openai_chat"]


class _Later:
    """A module that is imported when it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks whether it is a fixture
            raise AttributeError(name)
        return getattr(import_module(self._name), name)


anthropic: Any = _Later("anthropic")
genai: Any = _Later("google.genai")
openai: Any = _Later("openai")
openai_chat: Any = _Later("openai.lib.streaming.chat")  # its package does not load it
