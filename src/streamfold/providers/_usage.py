"""Token counts: how running totals merge, and where each vendor keeps which number.

The tables say where to look; the arithmetic is the same for everyone. Nothing is estimated, nothing is added up over
chunks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final, cast

from streamfold.events import Usage
from streamfold.payloads import compact

__all__ = ["CHAT", "Members", "Places", "merge", "read"]

Members = dict[str, Any]

Places = Mapping[str, "str | Mapping[str, str]"]
"""Wire member -> unified name, or for an object the same of its members."""

_INPUT_DETAILS: Final = {
    "cached_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "audio_tokens": "input_audio_tokens",
    "image_tokens": "input_image_tokens",
}
_OUTPUT_DETAILS: Final = {
    "reasoning_tokens": "reasoning_tokens",
    "audio_tokens": "output_audio_tokens",
    "image_tokens": "output_image_tokens",
}
CHAT: Final[Places] = {
    "prompt_tokens": "input_tokens",
    "input_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "output_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "prompt_tokens_details": _INPUT_DETAILS,
    "input_tokens_details": _INPUT_DETAILS,
    "completion_tokens_details": _OUTPUT_DETAILS,
    "output_tokens_details": _OUTPUT_DETAILS,
    "reasoning_tokens": "reasoning_tokens",  # Copilot
    "prompt_cache_hit_tokens": "cache_read_tokens",  # DeepSeek
    "cached_tokens": "cache_read_tokens",  # Together
    "cache_read_input_tokens": "cache_read_tokens",  # proxies of Anthropic
    "cache_creation_input_tokens": "cache_write_tokens",
}
"""Where Chat Completions, Responses and all that copy them keep their counts."""

TICKS_PER_USD: Final = 10**10  # xAI's unit


def whole(value: Any) -> int | None:
    """The value if it is a whole number, else None. A float that is whole counts, true and false do not."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() else None


def merge(before: Members | None, now: Members) -> Members:
    """Running totals after a newer object: one with its own total replaces, one without adds what it knows."""
    if before is None or whole(now.get("total_tokens")) is not None:
        return now
    merged = before | now
    if _MERGED.isdisjoint(map(type, now.values())):
        return merged
    for name, value in now.items():
        if value is None:
            merged[name] = before.get(name)
        elif isinstance(value, dict) and isinstance(old := before.get(name), dict):
            merged[name] = merge(cast("Members", old), cast("Members", value))
    return merged


_MERGED: Final = frozenset({dict, type(None)})  # what does not simply take the place of what was there


def read(members: Members, places: Places = CHAT) -> Usage | None:
    """The unified totals of a provider's object; None where it reports nothing."""
    found: dict[str, Any] = {}
    for name, value in members.items():
        place = places.get(name)
        if place is None:
            continue
        if type(place) is str:
            number = value if type(value) is int else whole(value)
            if number is not None and place not in found:
                found[place] = number
        elif type(value) is dict:
            for inner, part in value.items():
                target = place.get(inner)  # type: ignore[union-attr]
                if target is not None and target not in found:
                    number = part if type(part) is int else whole(part)
                    if number is not None:
                        found[target] = number
    cost = cost_usd(members) if "cost" in members or "cost_in_usd_ticks" in members else None
    if cost is None and not found:
        return None
    tokens_in, tokens_out, total = found.get("input_tokens"), found.get("output_tokens"), found.get("total_tokens")
    reasoning = found.get("reasoning_tokens")
    if reasoning and tokens_out is not None and _is_on_top(tokens_in, tokens_out, reasoning, total):
        found["output_tokens"] = tokens_out = tokens_out + reasoning
    if total is None and tokens_in is not None and tokens_out is not None:
        found["total_tokens"] = tokens_in + tokens_out
    return Usage(**found, cost_usd=cost, raw=compact(members))


def _is_on_top(tokens_in: int | None, tokens_out: int, reasoning: int, total: int | None) -> bool:
    """Whether reasoning stands beside the output count, decided by what adds up (xAI chat: 12 + 2 + 340 = 354)."""
    if total is None or tokens_in is None:
        return reasoning > tokens_out
    return tokens_in + tokens_out != total and tokens_in + tokens_out + reasoning == total


def cost_usd(members: Members) -> float | None:
    """What the provider says the answer cost, in US dollars."""
    ticks = whole(members.get("cost_in_usd_ticks"))
    if ticks is not None:
        return _divided(ticks, TICKS_PER_USD)
    cost = members.get("cost")  # OpenRouter: a number; Perplexity: an object
    if isinstance(cost, dict):
        cost = cast("Members", cost).get("total_cost", cast("Members", cost).get("usd"))
    return _divided(cost, 1) if isinstance(cost, int | float) and not isinstance(cost, bool) else None


def _divided(number: float, divisor: int) -> float | None:
    """The nearest float; None of what is beyond all floats."""
    return number / divisor if abs(number) <= sys.float_info.max else None
