"""Models of InvokeModelWithResponseStream with a format of their own: Titan, Llama, Mistral, Cohere, Claude's old text.

All of them send one text in pieces and name their stop on the last; a member tells which it is. Models that speak
another dialect (Anthropic's Messages, Converse events, Chat Completions) do so inside ``chunk`` payloads: ``by_shape``
hands them over. The counts of the last payload are the service's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from streamfold.events import StopReason, Usage
from streamfold.payloads import Payload, read_object
from streamfold.providers import _usage
from streamfold.providers._errors import truncated
from streamfold.providers._open_blocks import OpenBlock
from streamfold.providers._table import BaseNormalizer, text_of

__all__ = ["BedrockTextNormalizer"]

Members: TypeAlias = dict[str, Any]

METRICS: Final = "amazon-bedrock-invocationMetrics"
GUARDRAIL: Final = "amazon-bedrock-guardrailAction"

STOP_REASONS: Final[Mapping[str, StopReason]] = {
    # Titan
    "FINISH": "end",
    "FINISHED": "end",
    "STOP_CRITERIA_MET": "end",
    "LENGTH": "length",
    "CONTENT_FILTERED": "refusal",
    # Llama, Mistral, DeepSeek, Claude
    "stop": "end",
    "stop_sequence": "end",
    "length": "length",
    "max_tokens": "length",
    # Cohere
    "COMPLETE": "end",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "refusal",
    "USER_CANCEL": "cancelled",
}
"""What a model's word for its stop means; any other is ``other``."""


class _Said(NamedTuple):
    """What a payload adds."""

    text: Any = None
    stop: Any = None
    counts: Mapping[str, str] = {}  # where it keeps the counts of its own


def _titan(members: Members) -> _Said:
    return _Said(members.get("outputText"), members.get("completionReason"), _TITAN_COUNTS)


def _llama(members: Members) -> _Said:
    return _Said(members.get("generation"), members.get("stop_reason"), _LLAMA_COUNTS)


def _claude_text(members: Members) -> _Said:
    return _Said(members.get("completion"), members.get("stop_reason"))


def _first_of(name: str) -> Callable[[Members], _Said]:
    """For those who send a list of one output."""

    def read(members: Members) -> _Said:
        outputs = members.get(name)
        first: Any = outputs[0] if isinstance(outputs, list) and outputs else None
        output = cast("Members", first) if isinstance(first, dict) else {}
        stop = output.get("stop_reason") or output.get("finish_reason") or members.get("finish_reason")
        return _Said(output.get("text"), stop)

    return read


def _cohere(members: Members) -> _Said:
    return _Said(members.get("text"), members.get("finish_reason"))


_TITAN_COUNTS: Final = {"inputTextTokenCount": "input_tokens", "totalOutputTextTokenCount": "output_tokens"}
_LLAMA_COUNTS: Final = {"prompt_token_count": "input_tokens", "generation_token_count": "output_tokens"}
_METRIC_COUNTS: Final = {
    "inputTokenCount": "input_tokens",
    "outputTokenCount": "output_tokens",
    "cacheReadInputTokenCount": "cache_read_tokens",
    "cacheWriteInputTokenCount": "cache_write_tokens",
}


def _nothing(members: Members) -> _Said:
    return _Said()


MODELS: Final[Mapping[str, Callable[[Members], _Said]]] = {
    # a member that only payloads of these models have -> how to read them; the first counts
    "outputText": _titan,
    "generation": _llama,
    "completion": _claude_text,
    "outputs": _first_of("outputs"),  # Mistral
    "generations": _first_of("generations"),  # Cohere's Command
    "choices": _first_of("choices"),  # DeepSeek
    "is_finished": _cohere,  # Cohere's Command, in pieces
    METRICS: _nothing,
}

_SILENT: Final = frozenset(
    {
        *("outputText", "index", "totalOutputTextTokenCount", "inputTextTokenCount", "completionReason"),
        *("completion", "stop", "stop_reason", "generation", "prompt_token_count", "generation_token_count"),
        *("outputs", "generations", "choices", "id", "text", "is_finished", "finish_reason", "event_type"),
        METRICS,
    }
)
"""Members that are read, or say nothing; any other makes the payload come out as ``raw`` too."""


class BedrockTextNormalizer(BaseNormalizer):
    """Texts in pieces, as the models of Bedrock send them, to unified events."""

    surface = "bedrock-invoke"
    terminal = "a stop reason or the service's counts"

    def _begin(self) -> None:
        self._block: OpenBlock | None = None
        self._usage: Members | None = None
        self._counted = False  # the service's counts came: they stand on the last payload

    def _mean(self, payload: Payload) -> bool:
        members = read_object(payload, self.answer.max_depth, _HALVES)
        reader = next((MODELS[name] for name in MODELS if name in members), None) if members is not None else None
        if members is None or reader is None:
            return False
        said = reader(members)
        if members.get("id"):
            self.answer.identify(members["id"], None)
        if isinstance(said.text, str) and said.text:
            if self._block is None:
                self._block = self.answer.open_text()
            self.answer.text(self._block, said.text)
        if word := text_of(said.stop):
            self.answer.stop(0, STOP_REASONS.get(word, "other"), word)
        if members.get(GUARDRAIL) == "INTERVENED":
            self.answer.stop(0, "refusal", word or "INTERVENED")
        counted = self._count(members, said.counts)
        if members.keys() - _SILENT:  # traces of guardrails, log probabilities, what is new
            self.answer.raw()
        elif word or counted:
            self.answer.said()
        return True

    def _count(self, members: Members, own: Mapping[str, str]) -> bool:
        """The model counts as it goes, the service once, at the end; whether one of them does here."""
        metrics = members.get(METRICS)
        found = {name: members[name] for name in own if members.get(name) is not None}
        if isinstance(metrics, dict):
            found = {**found, **cast("Members", metrics)}
            self._counted = True
        if found:
            self._usage = self.answer.totals(self._usage, found)
            self.answer.report(_totals(self._usage))
        return bool(found)

    def _end_of_input(self) -> None:
        if not self._counted and 0 not in self.answer.stops:
            self._fail(truncated(self.terminal))
            return
        if self._block is not None:
            self.answer.close(self._block)
        self.answer.done()


_HALVES: Final = ("outputText", "generation", "completion", "text")


def _totals(members: Members) -> Usage | None:
    """The service's counts where there are any, else the model's."""
    found = (_usage.read(members, places) for places in (_METRIC_COUNTS, _TITAN_COUNTS, _LLAMA_COUNTS))
    return next((usage for usage in found if usage is not None), None)
