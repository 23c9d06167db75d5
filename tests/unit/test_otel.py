"""What is recorded, as OpenTelemetry's own SDK reads it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from streamfold import ErrorEvent, Snapshot, Stopwatch, Timing, UsageError
from streamfold.events import Usage
from streamfold.otel import METRICS, Conventions, MetricsExport
from tests.conftest import RECORDED, ROOT

TIMING = Timing(
    time_to_first_chunk_s=0.5,
    time_to_first_token_s=0.6,
    duration_s=2.0,
    time_per_output_token_s=0.03,
    chunks=4,
    gaps_s=(0.1, 0.0, 1.4),
)
ANSWER = Snapshot("openai-chat", "c", "gpt-4o-2024-08-06", Usage(10, 48, 58), outcome="complete")


def points(
    timing: Timing = TIMING, answer: Snapshot = ANSWER, conventions: Conventions = "operation", **more: Any
) -> dict[tuple[str, str | None], Any]:
    """The points of every metric, by its name and type of token."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    server = more.pop("server", False)
    MetricsExport(provider.get_meter("test"), conventions=conventions, server=server).record(timing, answer, **more)
    read = reader.get_metrics_data()
    provider.shutdown()
    if read is None:
        return {}
    return {
        (metric.name, point.attributes.get("gen_ai.token.type")): point
        for metric in read.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }


def sums(**settings: Any) -> dict[str, tuple[int, float]]:
    """How many values went into each metric, and their sum."""
    return {
        name if token is None else f"{name} {token}": (point.count, round(point.sum, 9))
        for (name, token), point in points(**settings).items()
    }


def test_the_names_that_back_ends_know() -> None:
    assert sums() == {
        "gen_ai.client.operation.duration": (1, 2.0),
        "gen_ai.client.operation.time_to_first_chunk": (1, 0.5),
        "gen_ai.client.operation.time_per_output_chunk": (3, 1.5),
        "gen_ai.client.token.usage input": (1, 10),
        "gen_ai.client.token.usage output": (1, 48),
    }


def test_the_names_of_the_conventions_that_moved() -> None:
    assert sums(conventions="inference") == {
        "gen_ai.client.inference.duration": (1, 2.0),
        "gen_ai.client.inference.time_to_first_chunk": (1, 0.5),
        "gen_ai.client.inference.time_per_output_chunk": (3, 1.5),
        "gen_ai.client.inference.operation.input_tokens": (1, 10),
        "gen_ai.client.inference.operation.output_tokens": (1, 48),
    }


def test_conventions_that_there_are_none_of() -> None:
    with pytest.raises(UsageError, match="not 'semconv'"):
        points(conventions=cast("Conventions", "semconv"))


def test_what_a_model_server_measures_of_itself() -> None:
    server = {name: value for name, value in sums(server=True).items() if name.startswith("gen_ai.server.")}
    assert server == {
        "gen_ai.server.request.duration": (1, 2.0),
        "gen_ai.server.time_to_first_token": (1, 0.6),
        "gen_ai.server.time_per_output_token": (1, 0.03),
    }


def test_names_and_units_are_those_of_the_published_conventions() -> None:
    published = {value for name, value in vars(gen_ai_metrics).items() if name.startswith("GEN_AI_")}
    assert {name for name, row in METRICS if row.of != "inference"} == published
    assert {row.unit for _, row in METRICS} == {"s", "{token}"}
    assert all(hasattr(TIMING if row.unit == "s" else Usage(), row.member) for _, row in METRICS)


def test_attributes() -> None:
    every = points(request_model="gpt-4o", attributes={"server.address": "api.example"})
    point = dict(every["gen_ai.client.token.usage", "input"].attributes)
    assert point == {
        gen_ai_attributes.GEN_AI_OPERATION_NAME: "chat",
        gen_ai_attributes.GEN_AI_PROVIDER_NAME: "openai",
        gen_ai_attributes.GEN_AI_REQUEST_MODEL: "gpt-4o",
        gen_ai_attributes.GEN_AI_RESPONSE_MODEL: "gpt-4o-2024-08-06",
        gen_ai_attributes.GEN_AI_TOKEN_TYPE: "input",
        "server.address": "api.example",
    }
    duration = every["gen_ai.client.operation.duration", None]
    assert gen_ai_attributes.GEN_AI_TOKEN_TYPE not in duration.attributes
    assert tuple(duration.explicit_bounds)[:3] == (0.01, 0.02, 0.04)


SURFACES = {
    "anthropic": ("anthropic", "chat"),
    "openai-responses": ("openai", "chat"),
    "gemini": ("gcp.gen_ai", "generate_content"),
    "bedrock-converse": ("aws.bedrock", "chat"),
    "my-own": ("my-own", "chat"),
    None: ("unknown", "chat"),
}


@pytest.mark.parametrize(("surface", "told"), SURFACES.items(), ids=map(str, SURFACES))
def test_the_surface_tells_provider_and_operation(surface: str | None, told: tuple[str, str]) -> None:
    duration = points(answer=Snapshot(surface))["gen_ai.client.operation.duration", None].attributes
    assert (duration["gen_ai.provider.name"], duration["gen_ai.operation.name"]) == told


def test_the_caller_knows_better() -> None:
    every = points(provider="azure.ai.openai", operation="fetch_response")
    duration = every["gen_ai.client.operation.duration", None].attributes
    assert duration["gen_ai.provider.name"] == "azure.ai.openai"
    assert duration["gen_ai.operation.name"] == "fetch_response"


ERRORS: dict[str, tuple[Snapshot, str | None]] = {
    "complete": (ANSWER, None),
    "cancelled": (Snapshot("anthropic", outcome="cancelled"), None),
    "by its word": (
        Snapshot(error=ErrorEvent("provider", "busy", "overloaded_error", 529), outcome="failed"),
        "overloaded_error",
    ),
    "by its status": (Snapshot(error=ErrorEvent("provider", "busy", None, 529), outcome="failed"), "529"),
    "by its kind": (Snapshot(error=ErrorEvent("truncated", "cut"), outcome="truncated"), "truncated"),
    "without an event": (Snapshot(outcome="truncated"), "truncated"),
}


@pytest.mark.parametrize(("answer", "word"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(answer: Snapshot, word: str | None) -> None:
    every = points(answer=answer)
    assert every["gen_ai.client.operation.duration", None].attributes.get("error.type") == word
    assert "error.type" not in every["gen_ai.client.operation.time_to_first_chunk", None].attributes


def test_what_is_not_known_is_not_recorded() -> None:
    assert sums(timing=Timing(), answer=Snapshot()) == {}


def test_every_recording_can_be_recorded() -> None:
    for recording in RECORDED:
        watch = Stopwatch()
        watch.read(10**9, recording.read_bytes())
        watch.end(2 * 10**9)
        timing = watch.timing()
        recorded = sums(timing=timing, answer=watch.snapshot())
        count = recorded.get("gen_ai.client.operation.time_per_output_chunk", (0, 0))[0]
        assert count == max(timing.chunks - 1, 0), recording.name


def test_the_page_shows_every_name() -> None:
    page = (ROOT / "docs" / "timing.md").read_text()
    rows = {f"| `{name}` | `{row.member}` |" for name, row in METRICS}
    assert [row for row in sorted(rows) if row not in page] == []


def test_a_meter_may_have_several_exports() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    for _ in range(2):
        MetricsExport(meter).record(TIMING, ANSWER)
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    assert {point.count for metric in scope.metrics for point in metric.data.data_points} == {2, 6}
