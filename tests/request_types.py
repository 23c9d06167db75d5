"""The request types of the official clients, where those are installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Union, get_args

import pytest

from tests.samples import Payload

NOT_CHECKED = "its request types are not checked"


def valid(surface: str, item: Payload) -> None:
    """Fail unless the official client's types describe the item; skip where the client is missing.

    A member that they do not name fails too, but on Chat Completions, where hosts have members of their own.
    """
    if surface == "gemini-interactions" and isinstance(item.get("result"), dict):
        item = {**item, "result": {}}  # the client's type of any object is one without members
    _walked(_validator(surface).validate_python([item]))


@cache
def _validator(surface: str) -> Any:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: request types are not checked")
    extra = "ignore" if surface == "openai-chat" else "forbid"
    return pydantic.TypeAdapter(list[TYPES[surface]()], config={"arbitrary_types_allowed": True, "extra": extra})


def _openai_chat() -> Any:
    chat = pytest.importorskip("openai.types.chat", reason="openai is not installed: " + NOT_CHECKED)
    return chat.ChatCompletionMessageParam


def _openai_responses() -> Any:
    reason = "openai is not installed: " + NOT_CHECKED
    items = pytest.importorskip("openai.types.responses.response_input_item_param", reason=reason)
    return items.ResponseInputItemParam


def _anthropic() -> Any:
    """A message whose blocks are request types: the client's own union admits its response models too."""
    reason = "anthropic is not installed: " + NOT_CHECKED
    beta = pytest.importorskip("anthropic.types.beta", reason=reason)
    extensions = pytest.importorskip("typing_extensions")
    blocks = [kind for kind in get_args(beta.BetaContentBlockParam) if extensions.is_typeddict(kind)]
    return extensions.TypedDict(
        "Message",
        {
            "role": extensions.Literal["user", "assistant"],
            "content": list[Union[tuple(blocks)]],  # type: ignore[misc]  # noqa: UP007
        },
    )


def _gemini() -> Any:
    """A type that admits nothing that it does not name."""
    types = pytest.importorskip("google.genai.types", reason="google-genai is not installed: " + NOT_CHECKED)
    return types.Content


def _gemini_interactions() -> Any:
    reason = "google-genai is not installed: " + NOT_CHECKED
    step = pytest.importorskip("google.genai._gaos.types.interactions.step", reason=reason)
    return step.StepParam


TYPES = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "gemini-interactions": _gemini_interactions,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
}


def _walked(value: Any) -> None:
    """Look at all of it: what a type calls an iterable is only checked as it is read."""
    if isinstance(value, Mapping):
        for inner in value.values():
            _walked(inner)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for inner in value:
            _walked(inner)
