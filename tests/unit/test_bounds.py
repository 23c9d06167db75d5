"""Bounds: whatever comes without end is one typed outcome, keeps what was folded, and memory stays flat."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import streamfold
from streamfold import ErrorEvent, StreamDecoder, ToolCallBlock, limits
from streamfold.payloads import depth_exceeds
from tests.conftest import ROOT
from tests.endless import HEADS, MANY, MIB, STATUS, STREAMS
from tests.samples import ANTHROPIC, CHAT, chat, chat_call, cut, responses_payloads, sse
from tests.ways import by_decoder
from tests.wires import event as responses_event

FLAT = 24 * MIB

# -- streams without end, each in a process of its own ----------------------------------------------------------------

FRAME, DEPTH, BLOCKS = ["limit", "frame"], ["limit", "depth"], ["limit", "blocks"]
TRUNCATED = ["truncated", None]
HEL: dict[str, Any] = {"text": "Hel", "blocks": 1}

ENDS: dict[str, tuple[Any, dict[str, Any]]] = {
    # name -> the fault, and what else is to be seen
    **{f"a line, {provider}": (FRAME, HEL) for provider in HEADS},
    "a line, auto": (FRAME, {"blocks": 0}),
    "a line of a field that nobody knows": (FRAME, HEL),
    "a comment": (FRAME, HEL),
    "data lines": (FRAME, HEL),
    "data lines without data": (FRAME, HEL),
    "an item": (FRAME, HEL),
    "an item of escapes": (FRAME, HEL),
    "a number": (FRAME, HEL),
    "a literal": (FRAME, HEL),
    "brackets": (DEPTH, HEL),
    "members": (FRAME, HEL),
    "an item of Gemini's": (FRAME, HEL),
    "comments": (TRUNCATED, HEL),
    "comments without a blank line": (TRUNCATED, HEL),
    "ids": (TRUNCATED, HEL),
    "ids without a blank line": (TRUNCATED, HEL),
    "event names without a blank line": (TRUNCATED, HEL),
    "line ends": (TRUNCATED, HEL),
    "line ends of old": (TRUNCATED, HEL),
    "line ends first": (TRUNCATED, {"blocks": 0}),
    "blanks first": (TRUNCATED, {"blocks": 0}),
    "blanks between items": (TRUNCATED, HEL),
    "stray lines": (TRUNCATED, HEL),
    "stray lines without a blank line": (TRUNCATED, HEL),
    "a page": (["protocol", "not_a_stream"], {"blocks": 0}),
    "objects": (TRUNCATED, HEL),
    "a million frames": (TRUNCATED, {**HEL, "raw": 0}),
    "a million frames, auto": (TRUNCATED, {"blocks": 0}),
    "a million items": (TRUNCATED, HEL),
    "a million items of Gemini's": (TRUNCATED, {**HEL, "raw": 0}),
    "32 MiB of text in Gemini's items": (TRUNCATED, {"blocks": 1, "text": "HelHelHel"}),
    "32 MiB of text, gemini": (TRUNCATED, {"blocks": 1, "text": "Helword w"}),
    "32 MiB of totals, gemini": (TRUNCATED, HEL),
    "a string of arguments without end, gemini": (TRUNCATED, {"blocks": 2, "text": "Hel", "withheld": 1}),
    "32 MiB of text, interactions": (TRUNCATED, {"blocks": 1, "text": "Helword w"}),
    "event ids without end, interactions": (TRUNCATED, {"blocks": 1, "length": 150_000}),
    "many raw events": (TRUNCATED, HEL),
    "32 MiB of text": (TRUNCATED, {"blocks": 1, "text": "Helword w"}),
    "32 MiB of text, anthropic": (TRUNCATED, {"blocks": 1, "text": "Helword w"}),
    "32 MiB of pings": (TRUNCATED, HEL),
    "32 MiB that nobody knows": (TRUNCATED, HEL),
    "holes in the numbers": (TRUNCATED, {"warnings": limits.MAX_WARNINGS}),
    "payloads after the end": (None, {"text": "Hello", "outcome": "complete"}),
}


Measured = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    """What is found of a stream, by its name."""
    if not STATUS.exists():
        pytest.skip("memory is read from /proc, which is Linux's")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.endless"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        asked, told = process.stdin, process.stdout
        assert asked is not None
        assert told is not None

        def measure(name: str) -> dict[str, Any]:
            asked.write(f"{name}\n")
            asked.flush()
            found: dict[str, Any] = json.loads(told.readline())
            return found

        yield measure


def test_every_endless_stream_is_read() -> None:
    assert {name for name in STREAMS if "calls" not in name} == set(ENDS)


@pytest.mark.parametrize(
    ("name", "fault", "facts"),
    [pytest.param(name, fault, facts, id=name) for name, (fault, facts) in ENDS.items()],
)
def test_what_has_no_end_has_one_outcome_and_holds_no_memory(
    measured: Measured, name: str, fault: Any, facts: dict[str, Any]
) -> None:
    found = measured(name)
    assert found["fault"] == fault
    assert found["ends"] == 1
    assert {member: found[member] for member in facts} == facts
    assert found["grown"] < FLAT


def test_a_million_blocks_end_at_the_bound_that_nobody_set(measured: Measured) -> None:
    found = measured("a million calls")
    assert (found["fault"], found["ends"], found["blocks"]) == (BLOCKS, 1, limits.MAX_BLOCKS)
    assert (found["calls"], found["withheld"]) == (limits.MAX_BLOCKS, 0)


@pytest.mark.parametrize("provider", HEADS)
def test_more_blocks_than_may_be_end_in_one_error_and_stay(measured: Measured, provider: str) -> None:
    found = measured(f"more calls than may be, {provider}")
    assert (found["fault"], found["ends"], found["blocks"]) == (BLOCKS, 1, MANY)
    finished = 0 if provider == "openai-chat" else MANY  # there, only the end of the answer finishes them
    assert (found["calls"], found["withheld"]) == (finished, MANY - finished)


@pytest.mark.parametrize("provider", HEADS)
def test_as_many_blocks_as_may_be_are_all_there(measured: Measured, provider: str) -> None:
    found = measured(f"as many calls as may be, {provider}")
    assert found["fault"] != BLOCKS
    assert (found["blocks"], found["calls"], found["withheld"]) == (MANY, MANY, 0)


# -- depth ------------------------------------------------------------------------------------------------------------


def deep(levels: int) -> dict[str, bytes]:
    return {
        "arrays": b"[" * levels + b"]" * levels,
        "objects": b'{"a":' * levels + b"1" + b"}" * levels,
        "arrays that never close": b"[" * levels,
        "closed by the wrong bracket": b"[" * levels + b"}" * levels,
        "in turns": b'[{"a":' * (levels // 2) + b"1" + b"}]" * (levels // 2),
        "behind brackets in strings": b'["' + b"[" * levels + b'",' + b"[" * levels + b"]" * levels + b"]",
    }


DEEP = deep(100_000)  # more than the stack has room for, if something followed them all
LESS_DEEP = deep(20_000)  # a hundred times our own bound


@pytest.mark.parametrize("max_depth", [limits.MAX_DEPTH, None], ids=["bounded", "unbounded"])
@pytest.mark.parametrize("provider", ["auto", *HEADS])
@pytest.mark.parametrize("name", DEEP)
def test_a_payload_too_deep_ends_the_answer(name: str, provider: str, max_depth: int | None) -> None:
    """Without a bound of ours, what the interpreter can follow is the bound."""
    payload = (LESS_DEEP if max_depth else DEEP)[name]
    head = b"" if provider == "auto" else HEADS[provider]
    events, answer = by_decoder([head + b"data: " + payload + b"\n\n"], provider, max_depth=max_depth)
    assert [event.type for event in events].count("error") == 1
    assert isinstance(events[-1], ErrorEvent)
    faults = {("limit", "depth")} if max_depth else {("limit", "depth"), ("protocol", "bad_json")}
    assert (events[-1].kind, events[-1].code) in faults
    assert events[-1].offset == len(head)
    assert answer.text == ("" if provider == "auto" else "Hel")
    assert answer.outcome == "failed"


@pytest.mark.parametrize("max_depth", [limits.MAX_DEPTH, None], ids=["bounded", "unbounded"])
@pytest.mark.parametrize("size", [1000, 1 << 20])
@pytest.mark.parametrize("name", ["arrays", "objects", "in turns"])
def test_an_item_too_deep_ends_the_answer(name: str, size: int, max_depth: int | None) -> None:
    body = b"[" + json.dumps(chat({"content": "Hel"})).encode() + b"," + DEEP[name] + b"]"
    events, answer = by_decoder(cut(body, size), "openai-chat", max_depth=max_depth)
    assert isinstance(events[-1], ErrorEvent)
    assert (events[-1].kind, events[-1].code) == ("limit", "depth")
    assert (answer.text, answer.outcome) == ("Hel", "failed")


@pytest.mark.parametrize("max_depth", [limits.MAX_DEPTH, None], ids=["bounded", "unbounded"])
@pytest.mark.parametrize("arguments", DEEP.values(), ids=DEEP.keys())
def test_arguments_too_deep_are_a_call_that_is_not_handed_out(arguments: bytes, max_depth: int | None) -> None:
    text = arguments.decode()
    pieces = [text[at : at + 5000] for at in range(0, len(text), 5000)]
    body = sse(
        [
            chat_call(0, id="c", name="f"),
            *(chat_call(0, piece) for piece in pieces),
            chat(finish="tool_calls"),
            "[DONE]",
        ]
    )
    answer = by_decoder(cut(body, 10_000), "openai-chat", max_depth=max_depth)[1]
    (call,) = answer.blocks
    assert isinstance(call, ToolCallBlock)
    assert call.arguments == text
    assert (call.state, answer.tool_calls, answer.outcome) == ("invalid", (), "complete")


STYLES = ".a { b }" * 300  # braces that open nothing, where there are too many of them to be looked at one by one


@pytest.mark.parametrize(("levels", "exceeds"), [(198, False), (199, False), (200, True), (201, True)])
@pytest.mark.parametrize("begin", ["{", "{ ", "{\n"])
def test_braces_in_strings_are_no_levels_however_many_there_are(begin: str, levels: int, exceeds: bool) -> None:
    text = f'{begin}"a":' * levels + json.dumps([STYLES]) + "}" * levels
    assert depth_exceeds(text.encode(), 200) is exceeds


@pytest.mark.parametrize("max_depth", [1000, 5000, None])
@pytest.mark.parametrize("leaf", ["\ud800", 1.0, float("nan")], ids=["half a pair", "number", "no number"])
@pytest.mark.parametrize("levels", [300, 985, 990, 995, 1000, 3000])
@pytest.mark.parametrize("provider", [*HEADS, "auto", "ollama", "gemini-live"])
def test_depths_at_the_edge_of_what_the_interpreter_follows_have_an_outcome(
    provider: str, levels: int, leaf: Any, max_depth: int | None
) -> None:
    value = leaf
    for _ in range(levels):
        value = {"a": value}
    text = b'{"a":' * levels + json.dumps(leaf).encode() + b"}" * levels
    for payload in (value, text):
        decoder = StreamDecoder(provider, max_depth=max_depth)
        events = [*decoder.feed_payload(payload), *decoder.close()]
        faults = {(e.kind, e.code) for e in events if isinstance(e, ErrorEvent)}
        assert faults <= {("limit", "depth"), ("limit", "json_depth"), ("truncated", None)}
        assert decoder.snapshot().to_json()


@pytest.mark.parametrize("objects", [0, 100, 127, 128, 150, 5000])
@pytest.mark.parametrize("arrays", [0, 100, 127, 128, 150, 5000])
@pytest.mark.parametrize("levels", [limits.MAX_DEPTH, limits.MAX_DEPTH + 1])
def test_brackets_beside_one_another_are_no_depth(objects: int, arrays: int, levels: int) -> None:
    """The payload is the first level, the member the others; what else it holds, or says, nests less."""
    deep = "[" * (levels - 1) + "]" * (levels - 1)
    many = ",".join(["{}"] * objects + ["[]"] * arrays)
    payload = f'{{"choices":[],"text":"[[{{{{","deep":{deep},"many":[{many}]}}'
    _, answer = by_decoder([b"data: %s\n\ndata: [DONE]\n\n" % payload.encode()], "openai-chat")
    assert (answer.error and answer.error.code) == ("depth" if levels > limits.MAX_DEPTH else None)


def test_the_error_of_an_unbounded_depth_names_no_bound() -> None:
    answer = by_decoder([b"data: " + DEEP["arrays"] + b"\n\n"], "openai-chat", max_depth=None)[1]
    assert answer.error is not None
    assert "None" not in answer.error.message


# -- big things that are allowed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [READ := 65536, 1 << 24])
def test_a_frame_just_below_its_bound_is_read(size: int) -> None:
    text = "x" * (limits.MAX_FRAME_BYTES - 500)
    body = sse([chat({"content": text}), chat(finish="stop"), "[DONE]"])
    answer = by_decoder(cut(body, size), "openai-chat")[1]
    assert (answer.outcome, len(answer.text)) == ("complete", len(text))


def test_without_a_bound_there_is_none() -> None:
    text = "x" * (2 * limits.MAX_FRAME_BYTES)
    body = sse([chat({"content": text}), chat(finish="stop"), "[DONE]"])
    answer = by_decoder([body], "openai-chat", max_frame_bytes=None)[1]
    assert len(answer.text) == len(text)


def test_numbers_of_any_size_are_no_fault() -> None:
    for digits in (30, 5000):
        usage = f'{{"choices":[],"usage":{{"prompt_tokens":{"9" * digits},"completion_tokens":1}}}}'
        events, answer = by_decoder([b"data: " + usage.encode() + b"\n\n" + CHAT], "openai-chat")
        assert (answer.outcome, answer.text) == ("complete", "Hello")
        assert json.loads(answer.to_json())
        for event in events:
            assert streamfold.encode_event(event)


def test_a_choice_of_any_number_is_no_fault() -> None:
    for number in (10**9, 10**30):
        body = sse([chat({"content": "x"}, choice=number), chat(finish="stop", choice=number), "[DONE]"])
        events, answer = by_decoder([body], "openai-chat")
        assert answer.outcome == "complete"
        assert json.loads(answer.to_json())["choices"][-1]["text"] == "x"
        for event in events:
            assert streamfold.encode_event(event)


# -- an open decoder that waits ---------------------------------------------------------------------------------------

WAITING = {
    "openai-chat": sse([chat({"content": "w "}, x="y" * 100)] * 600),
    "anthropic": HEADS["anthropic"]
    + ANTHROPIC.split(b"\n\n")[3] * 0
    + sse([{"type": "ping", "x": "y" * 100}] * 900, names=True),
    "openai-responses": sse(responses_payloads(*["w "] * 700)[:-4], names=True),
}


@pytest.mark.parametrize("provider", WAITING)
def test_a_decoder_that_waits_holds_little_beside_the_answer(provider: str) -> None:
    body = WAITING[provider]
    StreamDecoder(provider).feed(body)  # what is made once
    gc.collect()
    tracemalloc.start()
    try:
        decoder = StreamDecoder(provider)
        decoder.feed(bytes(bytearray(body[:65536])))
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(decoder.snapshot().text) < 2000
    assert held < 16 * 1024


def test_a_decoder_that_has_read_nothing_holds_next_to_nothing() -> None:
    StreamDecoder("anthropic").feed(ANTHROPIC)
    gc.collect()
    tracemalloc.start()
    try:
        decoders = [StreamDecoder("anthropic") for _ in range(100)]
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < len(decoders) * 4 * 1024


def test_what_waits_is_as_long_as_what_is_read() -> None:
    assert all(len(body) > 65536 for body in WAITING.values())


# -- what may become blocks, and never does --------------------------------------------------------------------------

UNOPENED: dict[str, tuple[str, Any]] = {
    "choices without a word": ("openai-chat", lambda k: {"choices": [{"index": k, "delta": {}}]}),
    "candidates without a part": ("gemini", lambda k: {"candidates": [{"index": k, "content": {"parts": []}}]}),
    "calls that never get a name": ("openai-chat", lambda k: chat({"tool_calls": [{"index": k, "id": f"c{k}"}]})),
    "calls that never get a name, of several choices": (
        "openai-chat",
        lambda k: {"choices": [{"index": k % 9, "delta": {"tool_calls": [{"id": f"c{k}"}]}}]},
    ),
    "addresses that no text cites": ("openai-chat", lambda k: {"choices": [], "citations": ["u"] * k}),
    "entries of structured reasoning": (
        "openai-chat",
        lambda k: chat({"reasoning_details": [{"index": k, "type": "reasoning.text"}]}),
    ),
    "parts of a summary": (
        "openai-responses",
        lambda k: responses_event("reasoning_summary_text.delta", output_index=0, summary_index=k, delta="a"),
    ),
    "whole parts of reasoning": (
        "openai-responses",
        lambda k: responses_event("reasoning_text.done", output_index=0, content_index=k, text="a"),
    ),
    "steps of no kind": ("gemini-interactions", lambda k: {"event_type": "step.start", "index": k, "step": {}}),
}


@pytest.mark.parametrize(("provider", "payload"), UNOPENED.values(), ids=UNOPENED)
def test_what_opens_no_block_is_held_within_the_limit_of_blocks(provider: str, payload: Any) -> None:
    decoder = StreamDecoder(provider, max_blocks=10)
    events = [event for k in range(50) for event in decoder.feed_payload(payload(k))]
    assert decoder.ended
    assert isinstance(events[-1], ErrorEvent)
    assert (events[-1].kind, events[-1].code) == ("limit", "blocks")


TAGGED: dict[str, list[str]] = {
    "in one piece": ["<think>a</think>b" * 9],
    "a piece a block": ["<think>a</think>", "b"] * 9,
    "a piece a letter": list("<think>a</think>b" * 9),
}


@pytest.mark.parametrize("pieces", TAGGED.values(), ids=TAGGED)
def test_blocks_that_tags_make_count_against_the_limit_of_blocks(pieces: list[str]) -> None:
    body = sse([*(chat({"content": piece}) for piece in pieces), chat(finish="stop"), "[DONE]"])
    for size in (1, 1 << 20):
        events, answer = by_decoder(cut(body, size), "openai-chat", think_tags=True, max_blocks=3)
        assert isinstance(events[-1], ErrorEvent)
        assert (events[-1].kind, events[-1].code, [e.type for e in events].count("error")) == ("limit", "blocks", 1)
        assert [event.type for event in events].count("block_end") == len(answer.blocks) == 3
        assert (answer.text, answer.reasoning, answer.outcome) == ("b", "a\n\na", "failed")
