"""What a judge says of an answer, in a form that can be compared, and who they are. Loads none of the clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from streamfold import RefusalBlock, Snapshot, TextBlock, ToolCallBlock

__all__ = ["JUDGES", "Judge", "Unread", "Verdict", "in_one_form", "ours"]


class Unread(Exception):
    """The client gives the answer up, or has no way to say what it made of it."""


class Verdict(NamedTuple):
    """Of the first choice. ``None``: the client does not say."""

    text: str | None = None
    calls: tuple[tuple[str, str], ...] | None = None  # name, and arguments as text in one form
    stop: str | None = None  # the provider's word
    input_tokens: int | None = None
    output_tokens: int | None = None


def ours(answer: Snapshot, *, refusals: bool = True) -> Verdict:
    """The same, as streamfold sees it. Calls that must not run count too: no client withholds any."""
    first = answer.choice(0)
    kinds = (TextBlock, RefusalBlock) if refusals else (TextBlock,)
    calls = [block for block in first.blocks if isinstance(block, ToolCallBlock) and block.executor == "client"]
    calls = [block for block in calls if block.kind in ("function", "custom")]  # which all clients have
    usage = answer.usage
    return Verdict(
        "".join(block.text for block in first.blocks if isinstance(block, kinds)),
        tuple((block.name, in_one_form(block.arguments)) for block in calls),
        answer.stop.raw,
        usage.input_tokens if usage else None,
        usage.output_tokens if usage else None,
    )


def in_one_form(value: Any) -> str:
    """Arguments in one form: no client agrees with another about blanks."""
    if isinstance(value, str):
        try:
            value = json.loads(value.strip() or "{}")
        except ValueError:
            return str(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


class Judge(NamedTuple):
    """A client, and the family of captures that it can be asked about.

    Attributes:
        reader: Its function in ``verdicts.py``.
        official: The vendor's own; the frameworks drop refusals.
    """

    family: str
    reader: str
    official: bool = True

    def read(self, body: bytes) -> Verdict:
        """What it makes of an answer."""
        from tests.judges import verdicts

        verdict: Verdict = getattr(verdicts, self.reader)(body)
        return verdict


def _of(package: str) -> str:
    return f"{package} {version(package)}"


JUDGES: Final[Mapping[str, Judge]] = {
    f"boto3 {version('botocore')}, ConverseStream": Judge("converse", "converse_stream"),
    f"{_of('openai')}, Chat Completions": Judge("chat", "chat_completions"),
    f"{_of('openai')}, Responses": Judge("responses", "responses"),
    _of("anthropic"): Judge("anthropic", "messages"),
    _of("litellm"): Judge("chat", "with_litellm", official=False),
    f"pydantic-ai {version('pydantic-ai-slim')}, Chat Completions": Judge("chat", "pydantic_chat", official=False),
    f"pydantic-ai {version('pydantic-ai-slim')}, Responses": Judge("responses", "pydantic_responses", official=False),
    f"pydantic-ai {version('pydantic-ai-slim')}, Messages": Judge("anthropic", "pydantic_messages", official=False),
    _of("google-genai"): Judge("gemini", "generate_content"),
    f"{_of('google-genai')}, Interactions": Judge("interactions", "interactions"),
}
