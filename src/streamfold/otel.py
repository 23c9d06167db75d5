"""Timing and usage of answers as OpenTelemetry's metrics for generative AI. Imports nothing of it: the meter is yours.

``pip install 'streamfold[otel]'`` installs the API that meters come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from streamfold.errors import UsageError
from streamfold.snapshot import Snapshot
from streamfold.timing import Timing

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

__all__ = ["METRICS", "Conventions", "Metric", "MetricsExport"]

Conventions: TypeAlias = Literal["operation", "inference"]
"""Which names: those of semantic-conventions up to 1.41 (``gen_ai.client.operation.*``), which back ends know, or those
of semantic-conventions-genai 0.1 (``gen_ai.client.inference.*``)."""

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKEN: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_EACH_TOKEN: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_TOKENS: Final = tuple(4.0**power for power in range(14))


class Metric(NamedTuple):
    """A histogram of the conventions, and the figure that goes into it.

    Attributes:
        member: Of :class:`streamfold.Timing`, or of :class:`streamfold.Usage`.
        unit: ``s`` or ``{token}``.
        bounds: The buckets that the conventions ask for.
        of: The names it belongs to; None: of a model server, in both.
        tells_errors: Whether it carries ``error.type``.
        token_type: The value of ``gen_ai.token.type``.
    """

    member: str
    unit: str
    bounds: tuple[float, ...]
    of: Conventions | None
    tells_errors: bool = False
    token_type: str | None = None


METRICS: Final[tuple[tuple[str, Metric], ...]] = (
    ("gen_ai.client.operation.duration", Metric("duration_s", "s", _SECONDS, "operation", True)),
    ("gen_ai.client.operation.time_to_first_chunk", Metric("time_to_first_chunk_s", "s", _SECONDS, "operation")),
    ("gen_ai.client.operation.time_per_output_chunk", Metric("gaps_s", "s", _SECONDS, "operation")),
    ("gen_ai.client.token.usage", Metric("input_tokens", "{token}", _TOKENS, "operation", token_type="input")),
    ("gen_ai.client.token.usage", Metric("output_tokens", "{token}", _TOKENS, "operation", token_type="output")),
    ("gen_ai.client.inference.duration", Metric("duration_s", "s", _SECONDS, "inference", True)),
    ("gen_ai.client.inference.time_to_first_chunk", Metric("time_to_first_chunk_s", "s", _SECONDS, "inference")),
    ("gen_ai.client.inference.time_per_output_chunk", Metric("gaps_s", "s", _SECONDS, "inference")),
    (
        "gen_ai.client.inference.operation.input_tokens",
        Metric("input_tokens", "{token}", _TOKENS, "inference", True),
    ),
    (
        "gen_ai.client.inference.operation.output_tokens",
        Metric("output_tokens", "{token}", _TOKENS, "inference", True),
    ),
    ("gen_ai.server.request.duration", Metric("duration_s", "s", _SECONDS, None, True)),
    ("gen_ai.server.time_to_first_token", Metric("time_to_first_token_s", "s", _FIRST_TOKEN, None)),
    ("gen_ai.server.time_per_output_token", Metric("time_per_output_token_s", "s", _EACH_TOKEN, None)),
)
"""The names of the conventions, and which figure goes by each."""

_PROVIDERS: Final[Mapping[str, str]] = {
    # surface -> whose flavour of telemetry it is, where the caller does not say whose server it was
    "anthropic": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "openai-realtime": "openai",
    "gemini": "gcp.gen_ai",
    "gemini-interactions": "gcp.gen_ai",
    "gemini-live": "gcp.gen_ai",
    "bedrock-converse": "aws.bedrock",
    "cohere": "cohere",
}
_OPERATIONS: Final[Mapping[str, str]] = {"gemini": "generate_content"}  # every other surface chats


class MetricsExport:
    """Records answers into histograms of a meter.

    Args:
        meter: ``opentelemetry.metrics.get_meter(…)``.
        conventions: Which names.
        server: Whether what is measured is the model server itself, so that ``gen_ai.server.*`` are recorded too: a
            client measures the network with it.

    Raises:
        UsageError: There are no such conventions.
    """

    def __init__(self, meter: Meter, *, conventions: Conventions = "operation", server: bool = False) -> None:
        if conventions not in get_args(Conventions):
            raise UsageError(f'conventions are "operation" or "inference", not {conventions!r}')
        self._rows = [(name, row) for name, row in METRICS if row.of == conventions or (server and row.of is None)]
        self._histograms = {
            name: meter.create_histogram(name, row.unit, explicit_bucket_boundaries_advisory=row.bounds)
            for name, row in dict(self._rows).items()
        }

    def record(
        self,
        timing: Timing,
        answer: Snapshot,
        *,
        provider: str | None = None,
        request_model: str | None = None,
        operation: str | None = None,
        attributes: Mapping[str, str | int] | None = None,
    ) -> None:
        """Record one answer. What is not known is not recorded: no token is counted that the provider did not report.

        ``error.type`` is the provider's own word for what went wrong, else the HTTP status, else the ``kind`` of the
        error.

        Args:
            timing: Its figures.
            answer: What it came to.
            provider: ``gen_ai.provider.name``; told by the surface where it is left out.
            request_model: ``gen_ai.request.model``.
            operation: ``gen_ai.operation.name``; told by the surface where it is left out.
            attributes: What else every point carries: ``server.address``, ….
        """
        surface = answer.surface or "unknown"
        common: dict[str, str | int] = {
            **(attributes or {}),
            "gen_ai.operation.name": operation or _OPERATIONS.get(surface, "chat"),
            "gen_ai.provider.name": provider or _PROVIDERS.get(surface, surface),
        }
        if request_model is not None:
            common["gen_ai.request.model"] = request_model
        if answer.model is not None:
            common["gen_ai.response.model"] = answer.model
        error = _error_type(answer)
        for name, row in self._rows:
            point = dict(common)
            if row.token_type is not None:
                point["gen_ai.token.type"] = row.token_type
            if row.tells_errors and error is not None:
                point["error.type"] = error
            value = getattr(timing if row.unit == "s" else answer.usage, row.member, None)
            for each in value if isinstance(value, tuple) else (value,):
                if each is not None:
                    self._histograms[name].record(each, point)


def _error_type(answer: Snapshot) -> str | None:
    error = answer.error
    if error is not None:
        return error.code or (error.kind if error.status is None else str(error.status))
    return answer.outcome if answer.outcome in ("failed", "truncated") else None
