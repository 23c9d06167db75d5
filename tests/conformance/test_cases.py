"""Every case from a public bug report has its one right outcome, at every chunking and by every driver."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import streamfold
from streamfold import (
    Citation,
    Done,
    ErrorEvent,
    Event,
    MediaDelta,
    Raw,
    ReasoningBlock,
    ReasoningDelta,
    Snapshot,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStart,
    TranscriptBlock,
    TranscriptDelta,
)
from tests.conftest import SHARED
from tests.evidence import holds, lines, strings_of

OURS = ("openai-responses", "openai-chat", "anthropic", "xai", "gemini", "gemini-interactions", "sse-only")
Case = dict[str, Any]


def cases(shared: Path) -> list[Case]:
    found = [json.loads(path.read_text()) for path in sorted((shared / "cases").glob("*.json"))]
    return [case for case in found if case["provider"] in OURS]


def body_of(case: Case) -> bytes:
    if "bytes" in case:
        return str(case["bytes"]).encode()
    if "bytes_b64" in case:
        return base64.b64decode(case["bytes_b64"])
    parts = (p if isinstance(p, str) else p["repeat"] * p["times"] for p in case["bytes_parts"])
    return "".join(parts).encode()


def chunkings(case: Case) -> Iterator[list[bytes]]:
    body = body_of(case)
    listed = case.get("chunking", [])
    if isinstance(listed, str):
        step = int(listed.partition(":")[2])
        listed = list(range(step, len(body), step))
    edges = [0, *listed, len(body)]
    yield [body[a:b] for a, b in pairwise(edges)]
    for step in (1, 7, 64, len(body)):
        yield [body[at : at + step] for at in range(0, len(body), step)]


class Source:
    """An iterable that counts what is asked of it."""

    def __init__(self, chunks: list[bytes], *, hang: bool = False, fail: Exception | None = None) -> None:
        self.chunks, self.hang, self.fail = chunks, hang, fail
        self.pulled = self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            self.pulled += 1
            yield chunk
        if self.hang:
            raise AssertionError("the connection stays open: nobody may ask for more")
        if self.fail is not None:
            raise self.fail

    def close(self) -> None:
        self.closed += 1


def settings_of(case: Case) -> dict[str, Any]:
    options = dict(case.get("options", {}))
    if "max_buffer" in options:
        options["max_frame_bytes"] = options.pop("max_buffer")
    return options


# -- running ----------------------------------------------------------------------------------------------------------


def run(case: Case, chunks: list[bytes], **settings: Any) -> tuple[Snapshot, list[Event], Source]:
    source = Source(chunks, hang=case.get("source_end") == "hang")
    events: list[Event] = []
    deltas = (TextDelta, ReasoningDelta, ToolCallDelta, MediaDelta, TranscriptDelta)
    stop_after = case.get("action", {}).get("after_events")
    with streamfold.iter_unified(source, case["provider"], **settings) as stream:
        for event in stream:
            events.append(event)
            if stop_after is not None and sum(isinstance(e, deltas) for e in events) >= stop_after:
                break
    return stream.snapshot(), events, source


def resumed(case: Case, chunks: list[bytes]) -> tuple[Snapshot, list[Event], Any]:
    decoder = streamfold.StreamDecoder(case["provider"])
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    cursor = decoder.cursor
    decoder.reconnect()
    events += decoder.feed(case["reconnect_bytes"].encode())
    events += decoder.close()
    return decoder.snapshot(), events, cursor


@pytest.mark.parametrize("case", cases(SHARED), ids=lambda case: case["id"])
def test_case(case: Case, record_property: Any) -> None:
    for chunks in chunkings(case):
        check(case, chunks)
    record_property("ran", "cases=1")


def test_the_cases_are_there(shared: Path) -> None:
    assert cases(shared)


def check(case: Case, chunks: list[bytes]) -> None:
    expect = case["expect"]
    if case["provider"] == "sse-only":
        frames = [frame_of(f, expect["sse_events"]) for f in streamfold.parse_event_stream(chunks)]
        assert frames == expect["sse_events"], case["id"]
        return
    if "reconnect_bytes" in case:
        answer, events, cursor = resumed(case, chunks)
        assert cursor.last_sequence == expect["resume_cursor"]
        assert cursor.response_id == expect["response_id"]
    else:
        answer, events, source = run(case, chunks, **settings_of(case))
        if "close_calls" in expect or expect.get("source_closed"):
            assert source.closed == expect.get("close_calls", 1)
        if chunks == next(chunkings(case)) and "max_chunks_pulled" in expect:
            assert source.pulled <= expect["max_chunks_pulled"]
        if "action" not in case:
            auto, its_events, _ = run({**case, "provider": "auto"}, chunks, **settings_of(case))
            assert lines(its_events)[1:] == lines(events)[1:]  # `start` may name the surface "unknown"
            assert auto.blocks == answer.blocks
        if "last_event_id" in expect:
            decoder = streamfold.StreamDecoder(case["provider"])
            for chunk in chunks:
                decoder.feed(chunk)
            assert decoder.cursor.last_event_id == expect["last_event_id"]
    for member, facts in expect.items():
        checker = CHECKS.get(member)
        if checker is not None:
            assert checker(answer, events, facts), f"{case['id']}: {member} {facts!r}: {answer.to_json():.2000}"
        else:
            assert member in ELSEWHERE, f"{case['id']}: nothing checks {member}"
    if "default_expect" in case and settings_of(case):
        plain, events, _ = run(case, chunks)
        for member, facts in case["default_expect"].items():
            assert CHECKS[member](plain, events, facts), f"{case['id']}: {member}"


def frame_of(frame: streamfold.ServerSentEvent, wanted: list[dict[str, str]]) -> dict[str, str]:
    found = {"event": frame.event, "data": frame.data}
    return {**found, "id": frame.id} if any("id" in event for event in wanted) and frame.id else found


# -- members of expect ------------------------------------------------------------------------------------------------


def same_error(answer: Snapshot, events: list[Event], wanted: dict[str, Any] | None) -> bool:
    error = answer.error
    if wanted is None or error is None:
        return error is None and wanted is None
    seen = {str(error.code), str(error.status)}
    words = [str(wanted[name]) for name in ("code", "status", "type") if name in wanted]
    return (
        error.kind in (wanted["kind"], *wanted.get("accept_kinds", ()))
        and all(word in seen for word in words)
        and wanted.get("message_contains", "").lower() in error.message.lower()
        and wanted.get("retryable", error.retryable) == error.retryable
    )


def same_calls(answer: Snapshot, events: list[Event], wanted: list[dict[str, Any]], choice: int = 0) -> bool:
    blocks = answer.choice(choice).blocks
    calls = [b for b in blocks if isinstance(b, ToolCallBlock) and b.executor == "client"]
    return (
        len(calls) == len(wanted)
        and len({call.id for call in calls}) == len(calls)
        and all(same_call(answer, events, call, fact) for call, fact in zip(calls, wanted, strict=True))
    )


def same_call(answer: Snapshot, events: list[Event], call: ToolCallBlock, wanted: dict[str, Any]) -> bool:
    if wanted["id"] != "*" and call.id != wanted["id"]:
        return False
    named = (ToolCallStart, ToolCallDelta, ToolCallDone)
    stable = {event.id for event in events if isinstance(event, named) and event.index == call.index}
    runnable = wanted.get("valid", True) and answer.outcome == "complete"
    return (
        bool(call.id)
        and stable == {call.id}
        and call.name == wanted["name"]
        and ("arguments" not in wanted or call.arguments == wanted["arguments"])
        and ("arguments_json" not in wanted or json.loads(call.arguments) == wanted["arguments_json"])
        and (not runnable or (call.state == "ready"))
        and (wanted.get("valid", True) or call.state != "ready")
    )


def same_choices(answer: Snapshot, events: list[Event], wanted: list[dict[str, Any]]) -> bool:
    done = next(event for event in events if isinstance(event, Done))
    stops = {stop.choice: stop.reason for stop in done.stops}
    return answer.choices == len(wanted) and all(
        answer.choice(w["index"]).text == w["text"]
        and answer.choice(w["index"]).stop.reason == w["stop_reason"] == stops[w["index"]]
        and same_calls(answer, events, w["tool_calls"], w["index"])
        for w in wanted
    )


def same_usage(answer: Snapshot, events: list[Event], wanted: dict[str, int]) -> bool:
    return answer.usage is not None and all(getattr(answer.usage, name) == value for name, value in wanted.items())


def same_usage_raw(answer: Snapshot, events: list[Event], wanted: dict[str, int]) -> bool:
    assert answer.usage is not None
    assert answer.usage.raw is not None
    raw = answer.usage.raw.decoded()
    return all(raw[name] == value for name, value in wanted.items())


def keeps(answer: Snapshot, events: list[Event], wanted: list[str]) -> bool:
    seen = (*answer.blocks, *(event for event in events if isinstance(event, Raw | Citation | MediaDelta)))
    kept = [text for value in seen for text in strings_of(value)]
    if any(isinstance(event, MediaDelta) for event in events):
        kept.append("inlineData")  # the name of the member is not kept: what it held is
    return all(holds(kept, text) for text in wanted)


def in_order(answer: Snapshot, events: list[Event], wanted: list[str]) -> bool:
    kinds = [event.type for event in events if event.type in wanted]
    return list(dict.fromkeys(kinds)) == wanted


def same_stop(answer: Snapshot, events: list[Event], wanted: str | None) -> bool:
    done = [event.reason for event in events if isinstance(event, Done)]
    return answer.stop.reason == wanted and all(reason == wanted for reason in done)


BLOCKS = {"tool_call": ToolCallBlock, "text": TextBlock, "reasoning": ReasoningBlock}

CHECKS: dict[str, Callable[[Snapshot, list[Event], Any], bool]] = {
    "text": lambda a, e, w: a.text == w,
    "text_prefix": lambda a, e, w: a.text.startswith(w),
    "reasoning": lambda a, e, w: a.reasoning == w,
    "reasoning_joined": lambda a, e, w: a.reasoning == w,
    "reasoning_parts": lambda a, e, w: [p for b in a.blocks if isinstance(b, ReasoningBlock) for p in b.parts] == w,
    "blocks": lambda a, e, w: [b.type for b in a.blocks if isinstance(b, tuple(BLOCKS.values()))] == w,
    "tool_calls": same_calls,
    "choices": same_choices,
    "usage": same_usage,
    "usage_raw": same_usage_raw,
    "stop_reason": same_stop,
    "stop_raw": lambda a, e, w: a.stop.raw == w,
    "error": same_error,
    "complete": lambda a, e, w: (a.outcome == "complete") == w,
    "signatures": keeps,
    "raw_keeps": keeps,
    "id": lambda a, e, w: a.id == w,
    "role": lambda a, e, w: [item["role"] for item in a.echo()] == [w],
    "done_events": lambda a, e, w: sum(isinstance(event, Done) for event in e) == w,
    "error_events": lambda a, e, w: sum(isinstance(event, ErrorEvent) for event in e) == w,
    "text_delta_count": lambda a, e, w: sum(isinstance(event, TextDelta) for event in e) == w,
    "first_events": lambda a, e, w: [v.type for v in e if v.type.endswith("_delta")][: len(w)] == w,
    "event_order": in_order,
    "each_event_utf8": lambda a, e, w: all(text.encode() is not None for v in e for text in strings_of(v)),
    "audio": lambda a, e, w: (
        keeps(a, e, [w["id"], *w["data_pieces"]])
        and "".join(b.text for b in a.blocks if isinstance(b, TranscriptBlock)) == w["transcript"]
    ),
    "tool_call_events": lambda a, e, w: all(sum(v.type == name for v in e) == count for name, count in w.items()),
    "gap_reported": lambda a, e, w: any(
        v.code == "sequence_gap" and all(str(n) in v.message for n in w) for v in e if isinstance(v, ErrorEvent)
    ),
}
ELSEWHERE = {
    "source_closed",
    "close_calls",
    "max_chunks_pulled",
    "resume_cursor",
    "response_id",
    "last_event_id",
    "done_without_eof",
}
