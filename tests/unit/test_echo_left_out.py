"""What does not go back: calls that are withheld, half a thought, what a provider refuses; and where nothing can."""

from __future__ import annotations

from typing import Any

import pytest

import streamfold
from streamfold import (
    ApprovalBlock,
    BlockEnd,
    Done,
    JSONText,
    MediaBlock,
    OtherBlock,
    ReasoningBlock,
    Snapshot,
    Start,
    Stop,
    StreamAccumulator,
    TextBlock,
    TextDelta,
    ToolCallBlock,
    ToolResult,
    ToolResultBlock,
    TranscriptBlock,
    UsageError,
    tool_results,
)
from tests import servers
from tests.request_types import valid
from tests.samples import (
    Payload,
    array,
    block_delta,
    block_start,
    block_stop,
    chat,
    chat_call,
    message_end,
    message_start,
    sse,
)
from tests.turns import CALLER, CODE, REASONED, SEARCH, SEARCHED, THINKING, THOUGHT

Row = tuple[Any, list[Payload]]


def fold(provider: str, payloads: Any, **settings: Any) -> Snapshot:
    return streamfold.fold([sse(payloads, names=provider != "openai-chat")], provider, **settings)


# -- Anthropic --------------------------------------------------------------------------------------------------------

TEXT = {"type": "text", "text": "Well."}
ANEW = {"type": "text", "text": "Anew."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}}
FALLBACK = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}


def said(*blocks: Payload, reason: str = "end_turn") -> list[Payload]:
    return servers.anthropic({"content": list(blocks)}, reason)


def cut_in(last: Payload, *before: Payload) -> list[Payload]:
    """The connection dies inside the last block."""
    return said(*before, last)[:-3]


ANTHROPIC: dict[str, tuple[list[Payload], list[Payload]]] = {
    "a message without content": (said(), []),
    "an empty text": (said({"type": "text", "text": ""}, TEXT), [TEXT]),
    "a text of white space, where there is no other": (said({"type": "text", "text": "\n\n"}), []),
    "but not where there is one": (
        said({"type": "text", "text": "\n\n"}, TEXT),
        [{"type": "text", "text": "\n\n"}, TEXT],
    ),
    "thinking that led to nothing": (said(TEXT, THINKING, reason="max_tokens"), [TEXT]),
    "thinking that led to a text of white space": (said(THINKING, {"type": "text", "text": " "}), []),
    "half a text goes back as far as it came": (cut_in(TEXT, THINKING), [THINKING, TEXT]),
    "half a thought": (cut_in(THINKING, TEXT), [TEXT]),
    "half a call": (cut_in(USE, TEXT), [TEXT]),
    "half a call, and the thinking that led to it": (cut_in(USE, THINKING), []),
    "a call whose arguments are no JSON": (
        [
            *(message_start(), block_start(0, **TEXT), block_stop(0), block_start(1, **{**USE, "input": {}})),
            *(block_delta(1, type="input_json_delta", partial_json='{"a":'), block_stop(1), *message_end("tool_use")),
        ],
        [TEXT],
    ),
    "a search whose result will never come": (said(TEXT, SEARCH, reason="max_tokens"), [TEXT]),
    "a search that was cut": (cut_in(SEARCH, TEXT), [TEXT]),
    "a search that had its result before the cut goes back": (cut_in(TEXT, SEARCH, SEARCHED), [SEARCH, SEARCHED, TEXT]),
    "code that waits for a call that was cut": (cut_in({**USE, "caller": CALLER}, TEXT, CODE), [TEXT]),
    "what another model thought and called before it handed over": (
        said(
            *(THINKING, {"type": "redacted_thinking", "data": "UmVk"}, {"type": "connector_text", "text": "…"}, USE),
            *(TEXT, CODE, SEARCH, SEARCHED, FALLBACK, {**THINKING, "signature": "bmV3"}, TEXT),
        ),
        [TEXT, SEARCH, SEARCHED, FALLBACK, {**THINKING, "signature": "bmV3"}, TEXT],
    ),
    "of several handovers the last counts": (
        said(THINKING, FALLBACK, THINKING, TEXT, FALLBACK, TEXT),
        [FALLBACK, TEXT, FALLBACK, TEXT],
    ),
    "what came before a restart": ([*said(THINKING, TEXT)[:-2], *said(ANEW)], [ANEW]),
}


@pytest.mark.parametrize(("payloads", "content"), ANTHROPIC.values(), ids=ANTHROPIC)
def test_anthropic(payloads: list[Payload], content: list[Payload]) -> None:
    answer = fold("anthropic", payloads)
    assert answer.echo() == ([{"role": "assistant", "content": content}] if content else [])
    for item in answer.echo():
        if not any(block["type"] == "connector_text" for block in item["content"]):
            valid("anthropic", item)


def test_a_turn_that_anthropic_refused_stays_out() -> None:
    answer = fold("anthropic", said(THINKING, TEXT, USE, reason="refusal"))
    with pytest.raises(UsageError, match="refused"):
        answer.echo()
    assert tool_results(answer, {}) == []
    with pytest.raises(UsageError, match=r"withheld \(void\)"):
        tool_results(answer, {"toolu_1": "3"})


def test_a_call_from_before_the_handover_wants_no_answer() -> None:
    after = {**USE, "id": "toolu_2"}
    answer = fold("anthropic", said(USE, FALLBACK, after, reason="tool_use"))
    wanted = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_2", "content": "3"}]}]
    assert tool_results(answer, {"toolu_2": "3"}) == wanted
    assert tool_results(answer, {"toolu_1": "run for nothing", "toolu_2": "3"}) == wanted


def test_arguments_that_are_no_object_go_back_inside_one() -> None:
    call = ToolCallBlock(0, "toolu_1", "add", "[1]", state="ready")
    assert made("anthropic", call).echo()[0]["content"][0]["input"] == {"INVALID_JSON": "[1]"}


# -- Responses --------------------------------------------------------------------------------------------------------


def message(text: str = "Well.", **members: Any) -> Payload:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {**item, **members}


def call(number: int = 1, **members: Any) -> Payload:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "add"}
    return {**item, "arguments": "{}", "status": "completed", **members}


def without_id(item: Payload) -> Payload:
    return {name: value for name, value in item.items() if name != "id"}


KEPT_BY_PROVIDER = {"type": "reasoning", "id": "rs_1", "summary": []}
SHOWN = {**KEPT_BY_PROVIDER, "content": [{"type": "reasoning_text", "text": "Hm."}]}
EASY = {"type": "message", "role": "assistant", "content": "Well."}
BROKEN = call(status="incomplete", arguments='{"a"')
SEARCHING = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}

DRAWN = {"type": "image_generation_call", "status": "completed", "result": "QQ=="}

RESPONSES: dict[str, tuple[list[Payload], list[Payload]]] = {
    "reasoning that led to nothing": (servers.responses([REASONED], "incomplete"), []),
    "half a call, and the reasoning that led to it": (servers.responses([REASONED, BROKEN], "incomplete"), []),
    "half a call, but not the reasoning before an earlier item": (
        servers.responses([REASONED, message(), BROKEN], "incomplete"),
        [REASONED, message()],
    ),
    "the id of an item whose reasoning stays out": (
        servers.responses([REASONED, BROKEN, call(2), message(phase="final_answer")]),
        [without_id(call(2)), {**EASY, "phase": "final_answer"}],
    ),
    "but not of one that cannot be without": (servers.responses([REASONED, BROKEN, SEARCHING]), [SEARCHING]),
    "half a message: its words, under no id": (servers.responses([message()])[:-4], [EASY]),
    "half a message, and the reasoning that led to it": (servers.responses([REASONED, message()])[:-4], [EASY]),
    "whole items of an answer that broke off go back": (
        servers.responses([REASONED, message(), call()])[:-2],
        [REASONED, message()],
    ),
    "reasoning that the provider would have kept, had the answer ended": (
        servers.responses([KEPT_BY_PROVIDER, message()])[:-1],
        [EASY],
    ),
    "reasoning that the item shows, though nobody stored it": (
        servers.responses([SHOWN, message()], store=False),
        [SHOWN, message()],
    ),
    "and though the answer broke off": (servers.responses([SHOWN, message(), call()])[:-2], [SHOWN, message()]),
    "what the provider still ran when the answer broke off": (
        servers.responses([message(), SEARCHING])[:-2],
        [message()],
    ),
    "an id that is no text names nothing": (servers.responses([message(id=[])]), [EASY]),
    "what the provider ran under no id": (
        servers.responses([message(), without_id(SEARCHING), DRAWN, {**DRAWN, "id": []}, {**DRAWN, "id": ""}]),
        [message()],
    ),
    "an item of a type that is no text, after reasoning": (
        [
            {"type": "response.created", "response": {"id": "resp_1", "store": False}},
            {"type": "response.output_item.done", "output_index": 0, "item": KEPT_BY_PROVIDER},
            {"type": "response.output_item.done", "output_index": 1, "item": {"type": [], "id": "x"}},
            {"type": "response.completed", "response": {"id": "resp_1", "store": False, "status": "completed"}},
        ],
        [],
    ),
    "nothing came": ([{"type": "response.created", "response": {"id": "resp_1"}}], []),
}


@pytest.mark.parametrize(("payloads", "items"), RESPONSES.values(), ids=RESPONSES)
def test_responses(payloads: list[Payload], items: list[Payload]) -> None:
    answer = fold("openai-responses", payloads)
    assert answer.echo() == items
    for item in answer.echo():
        valid("openai-responses", item)


def test_reasoning_that_was_not_stored_and_is_not_in_the_item() -> None:
    answer = fold("openai-responses", servers.responses([KEPT_BY_PROVIDER, message()], store=False))
    assert answer.echo() == [EASY]


# -- Chat Completions -------------------------------------------------------------------------------------------------

END = [chat(finish="stop"), "[DONE]"]
CHAT: dict[str, tuple[list[Payload | str], list[Payload]]] = {
    "nothing was said": ([chat({"role": "assistant", "content": ""}), *END], []),
    "reasoning alone": ([chat({"reasoning_content": "Hm"}), chat(finish="length"), "[DONE]"], []),
    "half a call": (
        [chat({"content": "Well."}), chat_call(0, '{"a"', id="call_1", name="add")],
        [{"role": "assistant", "content": "Well."}],
    ),
    "a call whose arguments are no JSON": (
        [chat_call(0, '{"a"', id="call_1", name="add"), chat(finish="tool_calls"), "[DONE]"],
        [],
    ),
    "structured reasoning that broke off: its signature may not have come": (
        [chat({"reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0}]}), chat({"content": "W"})],
        [{"role": "assistant", "content": "W"}],
    ),
    "a call by the legacy member has none": (
        servers.chat_completions({"function_call": {"name": "add", "arguments": "{}"}}),
        [{"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}}],
    ),
    "audio goes back by its id": (
        [chat({"audio": {"id": "audio_1", "data": "AAAA"}}), chat({"audio": {"transcript": "Hi."}}), *END],
        [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}],
    ),
    "and by its words where it has none": (
        [chat({"audio": {"data": "AAAA", "transcript": "Hi."}}), *END],
        [{"role": "assistant", "content": "Hi."}],
    ),
    "images": (
        [
            chat({"content": "Here."}),
            chat({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}]}),
            chat({"images": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]}),
            *END,
        ],
        [
            {
                "role": "assistant",
                "content": "Here.",
                "images": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
                    {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
                ],
            }
        ],
    ),
    "sealed reasoning (Venice)": (
        [chat({"reasoning_content": "Hm"}), chat({"reasoning_encrypted": "RW5j"}), chat({"content": "4"}), *END],
        [{"role": "assistant", "content": "4", "reasoning_content": "Hm", "reasoning_encrypted": "RW5j"}],
    ),
    "reasoning in two goes": (
        [
            *(chat({"reasoning_content": "Hm"}), chat({"content": "4"}), chat(finish="stop")),
            *(chat({"reasoning_content": "!"}), chat({"content": "2"}), "[DONE]"),
        ],
        [{"role": "assistant", "content": "42", "reasoning_content": "Hm!"}],
    ),
}


@pytest.mark.parametrize(("payloads", "messages"), CHAT.values(), ids=CHAT)
def test_chat_completions(payloads: list[Payload | str], messages: list[Payload]) -> None:
    answer = fold("openai-chat", payloads)
    assert answer.echo() == messages
    for item in answer.echo():
        valid("openai-chat", item)


def test_an_id_that_the_host_never_sent_is_made_up_for_both_sides() -> None:
    answer = fold("openai-chat", [chat_call(0, "{}", name="add"), chat(finish="tool_calls"), "[DONE]"])
    (call,), (message,) = answer.tool_calls, answer.echo()
    assert message["tool_calls"] == [
        {"id": call.id, "type": "function", "function": {"name": "add", "arguments": "{}"}}
    ]
    assert tool_results(answer, {call.id: "3"}) == [{"role": "tool", "tool_call_id": call.id, "content": "3"}]


def test_the_legacy_member_is_answered_by_name() -> None:
    answer = fold("openai-chat", servers.chat_completions({"function_call": {"name": "add", "arguments": "{}"}}))
    (call,) = answer.tool_calls
    results = tool_results(answer, {call.id: 3})
    assert results == [{"role": "function", "name": "add", "content": "3"}]
    valid("openai-chat", results[0])


def test_each_choice_goes_back_by_itself() -> None:
    answer = fold(
        "openai-chat",
        [
            *(chat({"content": "a"}), chat({"content": "b"}, choice=1)),
            *(chat(finish="stop"), chat(finish="stop", choice=1), "[DONE]"),
        ],
    )
    assert answer.echo() == answer.echo(0) == [{"role": "assistant", "content": "a"}]
    assert answer.echo(choice=1) == [{"role": "assistant", "content": "b"}]
    for number in (2, -1):
        with pytest.raises(UsageError, match="there is no choice"):
            answer.echo(number)


def test_results_are_of_the_choice_that_was_taken() -> None:
    payloads = [
        *(chat_call(0, "{}", id="call_1", name="add"), chat(finish="tool_calls")),
        *(chat({"content": "b"}, choice=1), chat(finish="stop", choice=1), "[DONE]"),
    ]
    answer = fold("openai-chat", payloads)
    assert tool_results(answer, {}, choice=1) == []
    with pytest.raises(UsageError, match="no result for 'call_1'"):
        tool_results(answer, {}, choice=0)


def test_reasoning_that_stood_in_tags_goes_back_in_tags() -> None:
    payloads = [chat({"content": "<think>Hm</think>So"}), chat({"content": "<thi"}), chat({"content": "nk>!"}), *END]
    plain, told_apart = fold("openai-chat", payloads), fold("openai-chat", payloads, think_tags=True)
    assert told_apart.text == "So"
    assert told_apart.echo() == [{"role": "assistant", "content": "<think>Hm</think>So<think>!</think>"}]
    assert plain.echo() == [{"role": "assistant", "content": "<think>Hm</think>So<think>!"}]


# -- Gemini -----------------------------------------------------------------------------------------------------------

SIGNED = {"functionCall": {"name": "add", "args": {}}, "thoughtSignature": "c2lnbmVk"}
MUSING = {"text": "Hm.", "thought": True}


def parted(*parts: Payload, finish: str = "STOP") -> list[Payload]:
    return servers.gemini({"parts": list(parts)}, finish)


GEMINI: dict[str, tuple[list[Payload], list[Payload]]] = {
    "nothing was said": (parted(), []),
    "a prompt that was blocked": ([{"promptFeedback": {"blockReason": "SAFETY"}}], []),
    "thoughts alone": (parted(MUSING, finish="MAX_TOKENS"), []),
    "a mark alone, which signs nothing": (parted(MUSING, {"text": "", "thoughtSignature": "c2lnbmVk"}), []),
    "empty text, which nothing signs": (parted({"text": ""}, {"text": "4"}, {"text": ""}), [{"text": "4"}]),
    "calls that the provider takes back": (
        parted({"text": "Well."}, SIGNED, finish="MALFORMED_FUNCTION_CALL"),
        [{"text": "Well."}],
    ),
    "a call whose arguments broke off": (
        [servers.chunk({"text": "Well."}), *servers.gemini_arguments_by_path("add", {"a": "b"})[:3]],
        [{"text": "Well."}],
    ),
    "what was said before the connection broke goes back": (
        parted({"text": "Well."}, SIGNED)[:-1],
        [{"text": "Well."}, SIGNED],
    ),
    "more of a part than anybody knows, where it says nothing": (parted({"text": "4"}, {}), [{"text": "4"}]),
}


@pytest.mark.parametrize(("payloads", "parts"), GEMINI.values(), ids=GEMINI)
def test_gemini(payloads: list[Payload], parts: list[Payload]) -> None:
    answer = streamfold.fold([sse(payloads, end="\r\n")], "gemini")
    assert answer.echo() == ([{"role": "model", "parts": parts}] if parts else [])
    for item in answer.echo():
        valid("gemini", item)


def test_each_candidate_goes_back_by_itself() -> None:
    payloads = [
        *(servers.chunk({"text": "a"}), servers.chunk(SIGNED, candidate=1)),
        *(servers.chunk(finish="STOP"), servers.chunk(finish="STOP", candidate=1)),
    ]
    answer = streamfold.fold([sse(payloads, end="\r\n")], "gemini")
    assert answer.echo() == [{"role": "model", "parts": [{"text": "a"}]}]
    assert answer.echo(1) == [{"role": "model", "parts": [SIGNED]}]
    assert tool_results(answer, {}) == []
    (call,) = answer.choice(1).tool_calls
    response = {"functionResponse": {"name": "add", "response": {"output": "3"}}}
    assert tool_results(answer, {call.id: "3"}, choice=1) == [{"role": "user", "parts": [response]}]


def test_what_came_by_array_goes_back_the_same() -> None:
    payloads = parted(MUSING, SIGNED)
    assert streamfold.fold([array(payloads)], "gemini").echo() == [{"role": "model", "parts": [MUSING, SIGNED]}]


CALLED = {"type": "function_call", "id": "c_1", "name": "add", "arguments": {"a": 1}}
WORDS = {"type": "model_output", "content": [{"type": "text", "text": "Well."}]}
SOUGHT = {"type": "google_search_call", "id": "s_1", "arguments": {"queries": ["q"]}}


def with_step(step: Payload) -> list[Payload | str]:
    """Words, and before their end a step of no kind that anybody knows."""
    *words, completed, done = servers.interactions([WORDS])
    odd: list[Payload | str] = [
        {"event_type": "step.start", "index": 1, "step": step},
        {"event_type": "step.stop", "index": 1},
    ]
    return [*words, *odd, completed, done]


INTERACTIONS: dict[str, tuple[list[Payload | str], list[Payload]]] = {
    "nothing was said": (servers.interactions([]), []),
    "thoughts alone": (servers.interactions([THOUGHT], "incomplete"), []),
    "a thought that neither shows nor signs anything": (servers.interactions([{"type": "thought"}, WORDS]), [WORDS]),
    "a step of output without content": (
        servers.interactions([{"type": "model_output", "content": []}, WORDS]),
        [WORDS],
    ),
    "a step that says no type": (with_step({"a": 1}), [WORDS]),
    "a step of a type that is no text": (with_step({"type": []}), [WORDS]),
    "half a call": (servers.interactions([THOUGHT, WORDS, CALLED])[:-4], [THOUGHT, WORDS]),
    "half a thought": (servers.interactions([WORDS, THOUGHT])[:-4], [WORDS]),
    "half a search of the provider's": (servers.interactions([WORDS, SOUGHT])[:-3], [WORDS]),
    "half a text goes back as far as it came": (
        servers.interactions([WORDS])[:-4],
        [{**WORDS, "content": [{"type": "text", "text": "Wel"}]}],
    ),
}


@pytest.mark.parametrize(("payloads", "steps"), INTERACTIONS.values(), ids=INTERACTIONS)
def test_gemini_interactions(payloads: list[Payload | str], steps: list[Payload]) -> None:
    answer = streamfold.fold([sse(payloads, names=True)], "gemini-interactions")
    assert answer.echo() == steps
    for item in answer.echo():
        valid("gemini-interactions", item)


def test_a_call_that_came_without_an_id_has_the_same_made_up_one_on_both_sides() -> None:
    nameless = {name: value for name, value in CALLED.items() if name != "id"}
    body = sse(servers.interactions([nameless], "requires_action"), names=True)
    answer = streamfold.fold([body], "gemini")
    (call,), (step,) = answer.tool_calls, answer.echo()
    assert step == {**CALLED, "id": call.id}
    assert tool_results(answer, {call.id: None}) == [
        {"type": "function_result", "call_id": call.id, "name": "add", "result": "null"}
    ]


PAUSED = {
    "gemini": sse(parted({"text": "Well, "}, finish="CONTINUATION"), end="\r\n"),
    "gemini-interactions": sse(servers.interactions([WORDS], "requires_continuation"), names=True),
}


@pytest.mark.parametrize(("provider", "body"), PAUSED.items(), ids=PAUSED)
def test_a_turn_that_goes_on_by_a_token_does_not_go_back(provider: str, body: bytes) -> None:
    with pytest.raises(UsageError, match="goes on under its"):
        streamfold.fold([body], provider).echo()


# -- xAI --------------------------------------------------------------------------------------------------------------

HOSTED = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "xs_call_1", "name": "x_keyword_search", "input": "{}"}
GROK: dict[str, tuple[bytes, list[Payload]]] = {
    "openai-chat": (
        sse(servers.chat_completions({"content": "4", "reasoning_content": "Hm."})),
        [{"role": "assistant", "content": "4", "reasoning_content": "Hm."}],
    ),
    "openai-responses": (
        sse(servers.responses([REASONED, HOSTED, message(), call()]), names=True),
        [REASONED, HOSTED, message(), call()],
    ),
    "anthropic": (
        sse(said({**THINKING, "signature": ""}, USE, reason="tool_use"), names=True).replace(
            b',"index":1', b',"index":0'
        ),
        [{"role": "assistant", "content": [{**THINKING, "signature": ""}, USE]}],
    ),
}


@pytest.mark.parametrize(("surface", "row"), GROK.items(), ids=GROK)
def test_xai_goes_back_in_the_dialect_it_came_in(surface: str, row: tuple[bytes, list[Payload]]) -> None:
    body, items = row
    answer = streamfold.fold([body], "xai")
    assert (answer.surface, answer.echo()) == (surface, items)
    assert streamfold.fold([body]).echo() == items
    assert len(tool_results(answer, {call.id: "3" for call in answer.tool_calls})) == len(answer.tool_calls)


# -- blocks that somebody made by hand --------------------------------------------------------------------------------


def made(surface: str, *blocks: Any) -> Snapshot:
    accumulator = StreamAccumulator()
    accumulator.extend([Start(surface), *(BlockEnd(block.index, block) for block in blocks), Done()])
    return accumulator.snapshot()


MADE: dict[str, tuple[Snapshot, list[Payload]]] = {
    "no meta": (
        made("openai-responses", TextBlock(0, "Well."), ToolCallBlock(1, "call_1", "add", "{}", state="ready")),
        [EASY, {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}],
    ),
    "a kind that nobody knows": (
        made("openai-responses", ToolCallBlock(0, "call_1", "add", "{}", "teleport", state="ready")),
        [{"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}],
    ),
    "what belongs to other surfaces": (
        made("anthropic", MediaBlock(0, "image/png", b"x"), TranscriptBlock(1, "Hi."), ApprovalBlock(2, "a", "b")),
        [],
    ),
    "speech over Responses: its words": (
        made("openai-responses", MediaBlock(0, "audio/pcm", b"x"), TranscriptBlock(1, "Well.")),
        [EASY],
    ),
    "a result of no call": (made("anthropic", ToolResultBlock(0)), []),
    "a block of which nothing is known": (made("anthropic", OtherBlock(0, "new")), []),
    "and so elsewhere": (made("openai-responses", OtherBlock(0, "new")), []),
    "meta that is no object": (
        made("openai-chat", TextBlock(0, "Well.", meta=JSONText("[1]"))),
        [{"role": "assistant", "content": "Well."}],
    ),
    "meta that is no JSON": (
        made("openai-chat", TextBlock(0, "Well.", meta=JSONText("{"))),
        [{"role": "assistant", "content": "Well."}],
    ),
    "reasoning under its own member": (
        made("openai-chat", ReasoningBlock(0, "Hm", meta=JSONText('{"member":"reasoning"}')), TextBlock(1, "4")),
        [{"role": "assistant", "content": "4", "reasoning": "Hm"}],
    ),
    "which parts of reasoning stood under which name": (
        made(
            "openai-responses",
            ReasoningBlock(
                0,
                "a\n\nb",
                ("a", "b"),
                encrypted="e",
                meta=JSONText('{"item_id":"rs_1","summary":[0,null],"content":[0,1]}'),
            ),
            TextBlock(1, "4", meta=JSONText('{"item_id":"msg_1","status":"completed"}')),
        ),
        [
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": text} for text in ("a", "")],
                "content": [{"type": "reasoning_text", "text": text} for text in ("a", "b")],
                "encrypted_content": "e",
            },
            {**message("4")},
        ],
    ),
    "reasoning that nobody stored": (
        made(
            "openai-responses",
            ReasoningBlock(0, meta=JSONText('{"item_id":"rs_1","store":false}')),
            TextBlock(1, "Well.", meta=JSONText('{"item_id":"msg_1","status":"completed"}')),
        ),
        [EASY],
    ),
}


@pytest.mark.parametrize(("answer", "items"), MADE.values(), ids=MADE)
def test_blocks_made_by_hand(answer: Snapshot, items: list[Payload]) -> None:
    assert answer.echo() == items


# -- misuse -----------------------------------------------------------------------------------------------------------

NO_SURFACE = StreamAccumulator()
NO_SURFACE.push(TextDelta(0, "Hi."))


@pytest.mark.parametrize(
    "answer",
    [NO_SURFACE.snapshot(), StreamAccumulator().snapshot(), made("lyria", TextBlock(0, "Hi.")), made("unknown")],
    ids=["of one's own mapping", "of nothing", "of a live surface", "of nobody knows what"],
)
def test_an_answer_of_no_surface_goes_nowhere(answer: Snapshot) -> None:
    with pytest.raises(UsageError, match="takes no answers back"):
        answer.echo()
    with pytest.raises(UsageError, match="takes no answers back"):
        tool_results(answer, {})


CALLING = made(
    "openai-responses",
    ToolCallBlock(0, "call_1", "add", "{}", state="ready"),
    ToolCallBlock(1, "call_2", "add", "{", state="invalid"),
    ToolCallBlock(2, "ws_1", "web_search", "", "web_search", "provider", "provider"),
    ApprovalBlock(3, "mcpr_1", "buy", complete=True),
    ApprovalBlock(4, "mcpr_2", "buy", complete=False),
    ToolCallBlock(5, "call_3", "go", "{}", "tool_search", state="ready"),
)
GOOD = {"call_1": "3", "mcpr_1": True, "call_3": []}
MISUSE: dict[str, tuple[dict[str, Any], str]] = {
    "a call without a result": ({"call_1": "3", "call_3": []}, "no result for 'mcpr_1'"),
    "several": ({}, "no result for 'call_1', 'mcpr_1', 'call_3'"),
    "a result of no call": ({**GOOD, "call_9": ""}, "'call_9', which is no call of the answer"),
    "of a call that is withheld": ({**GOOD, "call_2": ""}, r"'call_2', a call that is withheld \(invalid\)"),
    "of a call that the provider runs": ({**GOOD, "ws_1": ""}, "'ws_1', which the provider runs"),
    "of half a request for approval": ({**GOOD, "mcpr_2": True}, "'mcpr_2', a request for approval that broke off"),
    "an approval that is neither yes nor no": ({**GOOD, "mcpr_1": "yes"}, "mcpr_1 is answered by True or False"),
    "an approval of its own form that has none": ({**GOOD, "mcpr_1": ToolResult("yes", native=True)}, "is an object"),
    "what JSON cannot say": ({**GOOD, "call_1": object()}, "what JSON can say"),
    "nor inside an error": ({**GOOD, "call_1": ToolResult(object(), is_error=True)}, "what JSON can say"),
}


@pytest.mark.parametrize(("given", "words"), MISUSE.values(), ids=MISUSE)
def test_misuse_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tool_results(CALLING, given)


def test_results_go_in_the_order_of_the_calls() -> None:
    names = [next(iter({"call_id", "approval_request_id"} & item.keys())) for item in tool_results(CALLING, GOOD)]
    assert names == ["call_id", "approval_request_id", "call_id"]


def test_a_result_may_be_a_struct_or_a_dataclass() -> None:
    answer = made("openai-chat", ToolCallBlock(0, "call_1", "add", "{}", state="ready"))
    (message,) = tool_results(answer, {"call_1": Stop(1, "end")})
    assert message["content"] == '{"choice":1,"reason":"end","raw":null,"stop_sequence":null}'


def test_an_answer_that_still_streams_goes_back_as_far_as_it_came() -> None:
    accumulator = StreamAccumulator()
    accumulator.extend([Start("anthropic"), TextDelta(0, "Hel")])
    early = accumulator.snapshot()
    accumulator.push(TextDelta(0, "lo"))
    assert early.echo() == [{"role": "assistant", "content": [{"type": "text", "text": "Hel"}]}]
    assert accumulator.snapshot().echo() == [{"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}]
