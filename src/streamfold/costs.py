"""What an answer cost: as the provider says, else as a price list has it. An estimate never goes into ``usage``.

Estimates need the extra ``costs`` (genai-prices).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streamfold.errors import UsageError
from streamfold.events import Usage
from streamfold.snapshot import Snapshot

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Cost", "cost_of"]


class Cost(msgspec.Struct, frozen=True):
    """What an answer cost.

    Attributes:
        cost_usd: In US dollars.
        cost_is_estimate: Whether it was worked out from tokens and a price list, and not reported by the provider.
        price_of: The provider and model whose prices were taken, as the price list names them; None if reported.
    """

    cost_usd: float
    cost_is_estimate: bool
    price_of: str | None = None


_LISTED: Final[Mapping[str, str]] = {
    # surface -> who alone speaks it, as the price list names him
    "bedrock-converse": "aws",
    "cohere": "cohere",
    "gemini": "google",
    "gemini-interactions": "google",
    "gemini-live": "google",
}
_PARTS: Final[Mapping[str, str]] = {
    # member of Usage -> what the price list calls it
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
    "input_audio_tokens": "input_audio_tokens",
    "output_audio_tokens": "output_audio_tokens",
    "input_image_tokens": "input_image_tokens",
    "output_image_tokens": "output_image_tokens",
}


def cost_of(
    answer: Snapshot,
    *,
    model: str | None = None,
    provider: str | None = None,
    url: str | None = None,
    at: datetime | None = None,
) -> Cost | None:
    """What an answer cost; None where the provider reports none and no price fits.

    Prices are those of the installed list, without discounts, tiers or tools. Tokens that the provider did not report
    are not guessed: without both counts there is no estimate.

    Args:
        answer: The answer.
        model: Whose price to take, where the answer does not name it or names a deployment.
        provider: Whose server it was, as genai-prices names it: ``openai``, ``aws``, ``openrouter``, ….
        url: Where the request went, which tells that too.
        at: When it was sent: prices change. The present is taken where nothing is said.

    Raises:
        UsageError: An estimate is asked for, and genai-prices is not installed.
    """
    usage = answer.usage
    if usage is None:
        return None
    if usage.cost_usd is not None:
        return Cost(usage.cost_usd, False)
    name = model or answer.model
    if name is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    told: tuple[dict[str, Any], ...] = ({"provider_id": provider},)
    if provider is None:
        listed = _LISTED.get(answer.surface or "")
        told = ({"provider_api_url": url},) if url is not None else ()
        told += ({"provider_id": listed},) if listed is not None else ({},)
    for whose in told:
        cost = _priced(usage, name, whose, at)
        if cost is not None:
            return cost
    return None


def _priced(usage: Usage, model: str, whose: Mapping[str, Any], at: datetime | None) -> Cost | None:
    try:
        import genai_prices
    except ImportError:
        raise UsageError("an estimate needs genai-prices: pip install 'streamfold[costs]'") from None
    parts = {theirs: getattr(usage, ours) for ours, theirs in _PARTS.items()}
    try:
        price = genai_prices.calc_price(
            genai_prices.Usage(**parts), model_ref=model, genai_request_timestamp=at, **whose
        )
    except (LookupError, ValueError):  # no such model; parts that are more than the whole
        return None
    return Cost(float(price.total_price), True, f"{price.provider.id}/{price.model.id}")
