"""Answers of every provider, told again in Chat Completions: through our own parser and through OpenAI's client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfold import (
    RefusalBlock,
    Snapshot,
    TextBlock,
    Usage,
    fold,
    iter_unified,
)
from streamfold.encoders.chat_completions import chat_completions
from streamfold.events import StopReason
from tests.conftest import ROOT
from tests.evidence import cut, every_capture

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
        one, sent = told(body, facts["provider"])
        count += 1
        for size in (7, 4096):
            if found := list(differences(one, fold(cut(sent, size), "openai-chat"))):
                wrong[name] = found
    assert wrong == {}
    assert count > 250
