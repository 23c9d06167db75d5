"""What goes back of every recorded answer: what a plain reader makes of its payloads, member by member, in the form
that the official client sends.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import streamfold
from streamfold import ApprovalBlock, UsageError, tool_results
from streamfold.providers.registry import normalizer
from tests.conftest import SHARED
from tests.evidence import SURFACES, captures
from tests.request_types import valid
from tests.retold import RETOLD, dense, payloads_of

CAPTURES = {
    name: (body, facts)
    for name, body, facts in captures(SHARED)
    if facts["family"] in SURFACES and facts["outcome"] == "complete"
}
NOT_STORED = {  # nobody stored it, and it is not in the item: the API would know nothing of it
    "compat-chatgpt-codex/lc-codex-invoke-lifts-system-message-into-instructions.sse",
    "compat-copilot/ver-github-copilot-id-rotation-1.sse",
}
HOSTS_OWN = {  # members that the official client does not know
    "compat-mistral/ver-mistral-reasoning.sse",
    "xai-responses/ver-xai-image-generation-tool-1.sse",
    "xai-responses/ver-xai-web-search-tool-1.sse",
}


@pytest.mark.parametrize("name", CAPTURES)
def test_what_goes_back_is_what_came(name: str, record_property: Any) -> None:
    body, facts = CAPTURES[name]
    surface = SURFACES[facts["family"]]
    answer = streamfold.fold([body], facts["provider"])
    if surface == "anthropic" and answer.stop.reason == "refusal":
        with pytest.raises(UsageError, match="refused"):
            answer.echo()
        return
    echo = answer.echo()
    withheld = [block for block in answer.withheld_calls if block.executor == "client"]
    if withheld:
        assert not [call.id for call in withheld if call.id in json.dumps(echo)]
        return
    wanted = RETOLD[surface](payloads_of(body))
    if name in NOT_STORED:
        assert any(item["type"] == "reasoning" for item in wanted)
        assert [item["type"] for item in echo] == [item["type"] for item in wanted if item["type"] != "reasoning"]
        return
    assert dense(echo) == dense(wanted)
    record_property("ran", "echoes=1")


@pytest.mark.parametrize("name", [name for name in CAPTURES if name not in HOSTS_OWN])
def test_the_official_client_would_send_it(name: str) -> None:
    body, facts = CAPTURES[name]
    answer = streamfold.fold([body], facts["provider"])
    if answer.stop.reason == "refusal" and answer.surface == "anthropic":
        return
    assert answer.surface is not None
    granted = {block.id: True for block in answer.blocks if isinstance(block, ApprovalBlock)}
    results = tool_results(answer, {**{call.id: "42" for call in answer.tool_calls}, **granted})
    assert bool(results) == bool(answer.tool_calls or granted)
    for item in [*answer.echo(), *results]:
        valid(answer.surface, item)


def test_the_captures_are_there(shared: Any) -> None:
    assert CAPTURES


def test_results_are_those_of_the_recorded_next_request(shared: Any) -> None:
    """Of a session over WebSockets, whose log has both sides."""
    log = (shared / "captures" / "responses-ws" / "syn-two-turns.jsonl").read_text().splitlines()
    frames = [json.loads(line) for line in log]
    (first, second) = [number for number, line in enumerate(frames) if line["dir"] == "out"]
    accumulator = streamfold.StreamAccumulator()
    reader = normalizer("openai-responses")
    accumulator.extend(reader.feed([line["frame"] for line in frames[first + 1 : second]]))
    accumulator.extend(reader.close("eof"))
    (call,) = accumulator.tool_calls()
    assert tool_results(accumulator.snapshot(), {call.id: "rain"}) == frames[second]["frame"]["input"]
