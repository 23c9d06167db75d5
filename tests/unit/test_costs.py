"""What answers cost: reported, else estimated and marked so, else unknown."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import genai_prices
import pytest

import streamfold
from streamfold import Snapshot, Usage, UsageError
from streamfold.costs import Cost, cost_of
from tests.conftest import ROOT


def answer(model: str | None = "gpt-4o", surface: str = "openai-chat", **usage: Any) -> Snapshot:
    return Snapshot(surface, "c", model, Usage(**usage) if usage else None)


TOKENS = {"input_tokens": 1000, "output_tokens": 100}


def test_what_the_provider_reports_counts() -> None:
    assert cost_of(answer(**TOKENS, cost_usd=0.5)) == Cost(0.5, False)
    assert cost_of(answer(**TOKENS, cost_usd=0.0)) == Cost(0.0, False)


def test_an_estimate_is_marked() -> None:
    cost = cost_of(answer(**TOKENS))
    assert cost is not None
    assert cost.cost_is_estimate
    assert cost.price_of == "openai/gpt-4o"


def test_an_estimate_is_the_price_of_the_tokens() -> None:
    price = genai_prices.calc_price(genai_prices.Usage(input_tokens=10**6), model_ref="gpt-4o", provider_id="openai")
    cost = cost_of(answer(input_tokens=10**6, output_tokens=0))
    assert cost is not None
    assert Decimal(str(cost.cost_usd)) == price.total_price


def test_tokens_out_of_a_cache_cost_less() -> None:
    dear = cost_of(answer("claude-sonnet-4-5", "anthropic", **TOKENS))
    cheap = cost_of(answer("claude-sonnet-4-5", "anthropic", **TOKENS, cache_read_tokens=900))
    assert dear is not None
    assert cheap is not None
    assert cheap.cost_usd < dear.cost_usd


def test_prices_change() -> None:
    then = cost_of(answer("o3", **TOKENS), at=datetime(2025, 5, 1, tzinfo=UTC))
    now = cost_of(answer("o3", **TOKENS), at=datetime(2026, 1, 1, tzinfo=UTC))
    assert then is not None
    assert now is not None
    assert then.cost_usd > now.cost_usd


UNKNOWN: dict[str, Snapshot] = {
    "no usage": answer(),
    "no model": answer(None, **TOKENS),
    "a model of one's own": answer("our-finetune-7b", **TOKENS),
    "no output tokens": answer(input_tokens=10),
    "no input tokens": answer(output_tokens=10),
    "parts that are more than the whole": answer(input_tokens=10, output_tokens=1, cache_read_tokens=100),
}


@pytest.mark.parametrize("of", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_is_not_known_is_not_guessed(of: Snapshot) -> None:
    assert cost_of(of) is None


WHOSE: dict[str, tuple[Snapshot, dict[str, Any], str | None]] = {
    "the caller says": (answer("gpt-4o", **TOKENS), {"provider": "azure"}, "azure/gpt-4o"),
    "the caller says, and is wrong": (answer("gpt-4o", **TOKENS), {"provider": "anthropic"}, None),
    "the address says": (
        answer("gpt-4o", **TOKENS),
        {"url": "https://api.openai.com/v1/chat/completions"},
        "openai/gpt-4o",
    ),
    "the address is nobody's": (answer("gpt-4o", **TOKENS), {"url": "https://gateway.example/v1"}, "openai/gpt-4o"),
    "the surface says": (answer("gemini-2.5-flash", "gemini", **TOKENS), {}, "google/gemini-2.5-flash"),
    "another model is meant": (answer("my-deployment", **TOKENS), {"model": "gpt-4o"}, "openai/gpt-4o"),
}


@pytest.mark.parametrize(("of", "said", "price_of"), WHOSE.values(), ids=WHOSE.keys())
def test_whose_price_it_is(of: Snapshot, said: dict[str, Any], price_of: str | None) -> None:
    cost = cost_of(of, **said)
    assert (cost and cost.price_of) == price_of


def test_usage_stays_as_it_was_reported() -> None:
    body = (ROOT / "examples/recordings/anthropic-thinking-tool-use.sse").read_bytes()
    folded = streamfold.fold(body)
    assert cost_of(folded, model="claude-sonnet-4-5") is not None
    assert folded.usage is not None
    assert folded.usage.cost_usd is None
    assert folded == streamfold.fold(body)


def test_without_the_extra_only_estimates_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert cost_of(answer(**TOKENS, cost_usd=0.5)) == Cost(0.5, False)
    with pytest.raises(UsageError, match=r"streamfold\[costs\]"):
        cost_of(answer(**TOKENS))
