"""Payloads as the surfaces send them: short streams, each about one thing, made by hand from the protocol pages.

Tables quote them, property tests take them apart: members dropped, nulled, retyped, payloads doubled, swapped, mixed.
"""

from __future__ import annotations

from itertools import count
from typing import Any, Final

Payload = dict[str, Any]
Stream = list[Payload]

# -- Chat -------------------------------------------------------------------------------------------------------------


def chunk(delta: Any = None, finish: str | None = None, *, index: int = 0, **top: Any) -> Payload:
    """A chunk of one choice; members of ``top`` stand beside ``choices``."""
    choice = {"index": index, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice], **top}


def entry(arguments: Any = None, name: Any = None, **members: Any) -> Payload:
    """One entry of ``tool_calls``; what is None is left out."""
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return {**members, "function": function}


def call_chunk(*entries: Payload, finish: str | None = None, index: int = 0) -> Payload:
    return chunk({"tool_calls": list(entries)}, finish, index=index)


def detail(text: str) -> Payload:
    """One entry of ``reasoning_details``."""
    return {"type": "reasoning.text", "text": text, "index": 0, "format": "f"}


CHAT_USAGE: Final = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}

CHAT: Final[dict[str, Stream]] = {
    "text": [
        chunk({"role": "assistant", "content": "", "refusal": None}, id="c1", model="m"),
        chunk({"content": "Hel"}, id="c1", model="m", obfuscation="xx"),
        chunk({"content": "lo"}, id="c1", model="m"),
        chunk({}, "stop", id="c1", model="m"),
        {"object": "chat.completion.chunk", "id": "c1", "choices": [], "usage": CHAT_USAGE},
    ],
    "calls": [
        chunk({"role": "assistant", "content": None}, id="c2"),
        call_chunk(entry("", "add", index=0, id="call_a", type="function")),
        call_chunk(entry('{"x":', index=0)),
        call_chunk(entry("1}", index=0)),
        call_chunk(entry("{}", "sub", index=1, id="call_b", type="function")),
        chunk({}, "tool_calls"),
    ],
    "calls without ids": [
        call_chunk(entry('{"a":1}', "one"), entry('{"b":2}', "two")),
        call_chunk(entry("", "three", index=0), finish=None),
        call_chunk(entry("{", index=0)),
        call_chunk(entry("}", index=0), finish="tool_calls"),
    ],
    "custom tool": [
        call_chunk({"index": 0, "id": "cu", "type": "custom", "custom": {"name": "sh", "input": "ls"}}),
        call_chunk({"index": 0, "custom": {"input": " -l"}}, finish="tool_calls"),
    ],
    "legacy call": [
        chunk({"function_call": {"name": "add"}}),
        chunk({"function_call": {"arguments": '{"x"'}}),
        chunk({"function_call": {"arguments": ":1}"}}, "function_call"),
    ],
    "reasoning": [
        chunk({"reasoning_content": "Hm", "content": None}, id="c3"),
        chunk({"reasoning_content": "m", "content": None}),
        chunk({"reasoning": ".", "reasoning_details": [detail(".")]}),
        chunk({"reasoning": "!", "reasoning_details": [detail("!")]}),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "enc", "index": 1, "signature": "sig"}]}),
        chunk({"reasoning_encrypted": "venice"}),
        chunk({"thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "s2"}]}),
        chunk({"content": "Yes", "reasoning_content": None}, "stop"),
    ],
    "content list": [
        chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}),
        chunk({"content": [{"type": "text", "text": "A"}, {"type": "reference", "reference_ids": [1]}]}),
        chunk({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "S"}]}, "B"]}),
        chunk({"content": "C"}, "stop", usage=CHAT_USAGE),
    ],
    "refusal": [chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop")],
    "audio": [
        chunk({"audio": {"id": "au"}}),
        chunk({"audio": {"data": "QUJ", "transcript": "Hel"}}),
        chunk({"audio": {"data": "DREVG", "transcript": "lo"}}),
        chunk({"audio": {"expires_at": 9}}),
        chunk({}, "stop"),
    ],
    "images and sources": [
        chunk({"content": "See."}, citations=["https://a"], search_results=[{"url": "https://a", "title": "A"}]),
        chunk({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]}),
        chunk({"images": [{"type": "image_url", "image_url": {"url": "https://i"}}]}),
        chunk(
            {
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {"url": "https://b", "title": "B", "start_index": 0, "end_index": 3},
                    }
                ]
            },
            "stop",
            citations=["https://a", "https://c"],
        ),
    ],
    "two choices": [
        chunk({"content": "a"}, index=0),
        chunk({"content": "b"}, index=1),
        call_chunk(entry("{}", "f", index=0, id="x"), index=1),
        chunk({}, "stop", index=0),
        chunk({}, "tool_calls", index=1),
    ],
    "azure": [
        {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        chunk({"content": "x"}, id="az", model="m"),
        {"choices": [{"index": 0, "finish_reason": None, "content_filter_results": {"hate": {"filtered": False}}}]},
        chunk({}, "content_filter"),
    ],
    "legacy completion": [
        {"object": "text_completion", "id": "t1", "choices": [{"index": 0, "text": "Once", "finish_reason": None}]},
        {
            "object": "text_completion",
            "id": "t1",
            "choices": [{"index": 0, "text": " upon", "finish_reason": "length"}],
        },
    ],
    "groq error": [
        chunk({"content": "x"}, x_groq={"id": "q", "usage": CHAT_USAGE}),
        {"error": {"message": "no", "type": "invalid_request_error", "code": "tool_use_failed", "status_code": 400}},
    ],
    "openrouter error": [
        chunk({"content": "x"}),
        chunk({"content": ""}, "error", error={"code": 502, "message": "upstream"}, usage=CHAT_USAGE),
    ],
}

# -- Responses --------------------------------------------------------------------------------------------------------


def numbered(*payloads: Payload) -> Stream:
    """The payloads with sequence numbers from 0."""
    number = count()
    return [{"type": p["type"], "sequence_number": next(number), **p} for p in payloads]


def event(kind: str, **members: Any) -> Payload:
    return {"type": f"response.{kind}", **members}


def created(id: str = "resp_1", model: str = "m") -> Payload:  # noqa: A002 - the wire's own name
    return event("created", response={"id": id, "model": model, "status": "in_progress", "usage": None})


def completed(*output: Payload, usage: Any = None, **members: Any) -> Payload:
    response = {"id": "resp_1", "model": "m", "status": "completed", "usage": usage, "output": list(output), **members}
    return event("completed", response=response)


def added(index: int, **item: Any) -> Payload:
    return event("output_item.added", output_index=index, item=item)


def finished(index: int, **item: Any) -> Payload:
    return event("output_item.done", output_index=index, item=item)


def of(kind: str, index: int, item_id: str, **members: Any) -> Payload:
    """An event of the item at this output index."""
    return event(kind, item_id=item_id, output_index=index, **members)


RESPONSES_USAGE: Final = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 6,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
TEXT_PART: Final = {"type": "output_text", "text": "Hello", "annotations": []}
MESSAGE: Final = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT_PART]}
CALL: Final = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "status": "completed"}

RESPONSES: Final[dict[str, Stream]] = {
    "text": numbered(
        created(),
        event("in_progress", response={"id": "resp_1", "status": "in_progress"}),
        {"type": "keepalive"},
        added(0, **{**MESSAGE, "status": "in_progress", "content": []}),
        of(
            "content_part.added",
            0,
            "msg_1",
            content_index=0,
            part={"type": "output_text", "text": "", "annotations": []},
        ),
        of("output_text.delta", 0, "msg_1", content_index=0, delta="Hel", logprobs=[], obfuscation="xy"),
        of("output_text.delta", 0, "msg_1", content_index=0, delta="lo", logprobs=[], obfuscation="z"),
        of("output_text.done", 0, "msg_1", content_index=0, text="Hello", logprobs=[]),
        of("content_part.done", 0, "msg_1", content_index=0, part=TEXT_PART),
        finished(0, **MESSAGE),
        completed(MESSAGE, usage=RESPONSES_USAGE),
    ),
    "call": numbered(
        created(),
        added(0, **{**CALL, "status": "in_progress", "arguments": ""}),
        of("function_call_arguments.delta", 0, "fc_1", delta='{"x"'),
        of("function_call_arguments.delta", 0, "fc_1", delta=":1}"),
        of("function_call_arguments.done", 0, "fc_1", arguments='{"x":1}'),
        finished(0, **CALL, arguments='{"x":1}'),
        completed({**CALL, "arguments": '{"x":1}'}),
    ),
    "cut call": numbered(
        added(0, **{**CALL, "status": "in_progress", "arguments": ""}),
        of("function_call_arguments.delta", 0, "fc_1", delta='{"x"'),
        of("function_call_arguments.done", 0, "fc_1", arguments='{"x"'),
        finished(0, **{**CALL, "status": "incomplete"}, arguments='{"x"'),
        event("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
    ),
    "reasoning": numbered(
        added(0, type="reasoning", id="rs_1", summary=[]),
        of("reasoning_summary_part.added", 0, "rs_1", summary_index=0, part={"type": "summary_text", "text": ""}),
        of("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="One"),
        of("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="."),
        of("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="One."),
        of("reasoning_summary_part.done", 0, "rs_1", summary_index=0, part={"type": "summary_text", "text": "One."}),
        of("reasoning_summary_text.delta", 0, "rs_1", summary_index=1, delta="Two"),
        of("reasoning_text.delta", 0, "rs_1", content_index=0, delta="Long"),
        of("reasoning_text.done", 0, "rs_1", content_index=0, text="Long."),
        finished(
            0,
            type="reasoning",
            id="rs_1",
            summary=[{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two"}],
            encrypted_content="enc",
        ),
        completed(),
    ),
    "tools of all kinds": numbered(
        added(0, type="custom_tool_call", id="ct", call_id="c_ct", name="sh", input=""),
        of("custom_tool_call_input.delta", 0, "ct", delta="ls"),
        of("custom_tool_call_input.done", 0, "ct", input="ls -l"),
        finished(0, type="custom_tool_call", id="ct", call_id="c_ct", name="sh", input="ls -l"),
        added(1, type="code_interpreter_call", id="ci", code=""),
        of("code_interpreter_call.in_progress", 1, "ci"),
        of("code_interpreter_call_code.delta", 1, "ci", delta="1+1"),
        of("code_interpreter_call_code.done", 1, "ci", code="1+1"),
        finished(1, type="code_interpreter_call", id="ci", code="1+1", outputs=[{"type": "logs", "logs": "2"}]),
        added(2, type="shell_call", id="sc", call_id="c_sc", environment={"type": "local"}),
        event("shell_call_command.added", output_index=2, command_index=0, command=""),
        event("shell_call_command.delta", output_index=2, command_index=0, delta="ls"),
        event("shell_call_command.done", output_index=2, command_index=0, command="ls"),
        event("shell_call_command.delta", output_index=2, command_index=1, delta="pwd"),
        finished(2, type="shell_call", id="sc", call_id="c_sc", action={"commands": ["ls", "pwd"]}),
        added(3, type="apply_patch_call", id="ap", call_id="c_ap", operation={"type": "update_file", "path": "a"}),
        of("apply_patch_call_operation_diff.delta", 3, "ap", delta="@@"),
        of("apply_patch_call_operation_diff.done", 3, "ap", diff="@@ +a"),
        finished(3, type="apply_patch_call", id="ap", call_id="c_ap", operation={"path": "a", "diff": "@@ +a"}),
        added(4, type="mcp_call", id="mc", name="find", server_label="s", arguments=""),
        of("mcp_call_arguments.delta", 4, "mc", delta="{}"),
        of("mcp_call_arguments.done", 4, "mc", arguments="{}"),
        finished(4, type="mcp_call", id="mc", name="find", server_label="s", arguments="{}", output="found"),
        added(5, type="web_search_call", id="ws", status="in_progress"),
        finished(5, type="web_search_call", id="ws", action={"type": "search", "query": "q"}),
        finished(6, type="image_generation_call", id="ig", result="QUJD", output_format="png"),
        finished(7, type="mcp_approval_request", id="ar", name="rm", arguments="{}", server_label="s"),
        finished(8, type="shell_call_output", id="so", call_id="c_sc", output=[{"stdout": "a"}]),
        finished(9, type="compaction", id="cm", encrypted_content="enc"),
        completed(usage=RESPONSES_USAGE),
    ),
    "refusal, sources, parts": numbered(
        added(0, type="message", id="m1"),
        of("output_text.delta", 0, "m1", content_index=0, delta="See"),
        of(
            "output_text.annotation.added",
            0,
            "m1",
            content_index=0,
            annotation_index=0,
            annotation={"type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 3},
        ),
        of("content_part.added", 0, "m1", content_index=1, part={"type": "refusal", "refusal": ""}),
        of("refusal.delta", 0, "m1", content_index=1, delta="No"),
        of("refusal.done", 0, "m1", content_index=1, refusal="No."),
        completed(),
    ),
    "interleaved items": numbered(
        added(0, type="mcp_list_tools", id="l0"),
        added(1, type="mcp_list_tools", id="l1"),
        of("mcp_list_tools.completed", 1, "l1"),
        of("output_text.delta", 2, "m2", content_index=0, delta="a"),
        of("output_text.delta", 3, "m3", content_index=0, delta="b"),
        of("output_text.delta", 2, "m2x", content_index=0, delta="c"),
        finished(1, type="mcp_list_tools", id="l1", tools=[]),
        completed({"type": "mcp_list_tools", "id": "l0", "tools": []}, {"type": "mcp_list_tools", "id": "l1"}),
    ),
    "audio": numbered(
        event("audio.delta", delta="QUJ"),
        event("audio.transcript.delta", delta="Hi"),
        event("audio.delta", delta="D"),
        event("audio.transcript.done"),
        event("audio.done"),
        completed(),
    ),
    "error, then failed": numbered(
        created(),
        of("output_text.delta", 0, "m1", content_index=0, delta="a"),
        {"type": "error", "error": {"type": "server_error", "code": "server_error", "message": "sorry", "param": None}},
        event(
            "failed",
            response={
                "id": "resp_1",
                "status": "failed",
                "error": {"code": "server_error", "message": "sorry"},
                "usage": RESPONSES_USAGE,
            },
        ),
    ),
    "flat error": [created(), {"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}],
    "a response that did not stream": [
        {"object": "response", "id": "resp_1", "model": "m", "status": "completed", "output": [MESSAGE]}
    ],
}

# -- Anthropic --------------------------------------------------------------------------------------------------------


def message_start(usage: Any = None, **message: Any) -> Payload:
    members: Payload = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
    }
    return {"type": "message_start", "message": {**members, "usage": usage, **message}}


def block_start(index: int, kind: str, **block: Any) -> Payload:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **block}}


def block_delta(index: int, kind: str, **delta: Any) -> Payload:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def block_stop(index: int) -> Payload:
    return {"type": "content_block_stop", "index": index}


def message_delta(reason: str | None = "end_turn", usage: Any = None, **delta: Any) -> Payload:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None, **delta}, "usage": usage}


MESSAGE_STOP: Final[Payload] = {"type": "message_stop"}
PING: Final[Payload] = {"type": "ping"}

ANTHROPIC: Final[dict[str, Stream]] = {
    "text": [
        message_start({"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2}),
        block_start(0, "text", text=""),
        PING,
        block_delta(0, "text_delta", text="Hel"),
        block_delta(0, "text_delta", text="lo"),
        block_stop(0),
        message_delta("end_turn", {"output_tokens": 4, "output_tokens_details": {"thinking_tokens": 1}}),
        MESSAGE_STOP,
    ],
    "thinking and a call": [
        message_start(),
        block_start(0, "thinking", thinking="", signature=""),
        block_delta(0, "thinking_delta", thinking="Hm"),
        block_delta(0, "thinking_delta", thinking="", estimated_tokens=3),
        block_delta(0, "signature_delta", signature="sig"),
        block_delta(0, "signature_delta", signature="nature"),
        block_stop(0),
        block_start(1, "redacted_thinking", data="blob"),
        block_stop(1),
        block_start(2, "tool_use", id="toolu_1", name="add", input={}, caller={"type": "direct"}),
        block_delta(2, "input_json_delta", partial_json=""),
        block_delta(2, "input_json_delta", partial_json='{"x":'),
        block_delta(2, "input_json_delta", partial_json="1}"),
        block_stop(2),
        message_delta("tool_use"),
        MESSAGE_STOP,
    ],
    "server tools": [
        message_start(),
        block_start(0, "server_tool_use", id="srv_1", name="web_search", input={}),
        block_delta(0, "input_json_delta", partial_json='{"query":"q"}'),
        block_stop(0),
        block_start(1, "web_search_tool_result", tool_use_id="srv_1", content=[{"type": "web_search_result"}]),
        block_stop(1),
        block_start(2, "code_execution_tool_result", tool_use_id="srv_0", content={"error_code": "unavailable"}),
        block_stop(2),
        block_start(3, "mcp_tool_use", id="mcp_1", name="find", server_name="s", input={"a": 1}),
        block_stop(3),
        block_start(4, "mcp_tool_result", tool_use_id="mcp_1", is_error=True, content=[]),
        block_stop(4),
        message_delta("pause_turn"),
        MESSAGE_STOP,
    ],
    "citations": [
        message_start(),
        block_start(0, "text", text="", citations=[]),
        block_delta(
            0,
            "citations_delta",
            citation={"type": "web_search_result_location", "url": "https://a", "title": "A", "cited_text": "c"},
        ),
        block_delta(0, "text_delta", text="Cited."),
        block_stop(0),
        message_delta("stop_sequence", stop_sequence="END"),
        MESSAGE_STOP,
    ],
    "other blocks": [
        message_start(),
        block_start(0, "compaction", content=None),
        block_delta(0, "compaction_delta", content="summary", encrypted_content="enc"),
        block_stop(0),
        block_start(1, "fallback", **{"from": {"model": "m"}, "to": {"model": "m2"}}),
        block_stop(1),
        block_start(2, "container_upload", file_id="file_1"),
        block_stop(2),
        message_delta("compaction", container={"id": "c"}),
        MESSAGE_STOP,
    ],
    "whole blocks in the start": [
        message_start(
            {"input_tokens": 0, "output_tokens": 0},
            stop_reason="tool_use",
            content=[
                {"type": "text", "text": "Rolling."},
                {"type": "tool_use", "id": "toolu_2", "name": "roll", "input": {"p": 1}},
            ],
            container={"id": "container_x"},
        ),
        MESSAGE_STOP,
    ],
    "cut by max_tokens": [
        message_start(),
        block_start(0, "tool_use", id="toolu_3", name="add", input={}),
        block_delta(0, "input_json_delta", partial_json='{"x'),
        message_delta("max_tokens", {"output_tokens": 9}),
        MESSAGE_STOP,
    ],
    "a blank call": [
        message_start(),
        block_start(0, "tool_use", id="toolu_4", name="now", input={}),
        block_delta(0, "input_json_delta", partial_json=""),
        block_stop(0),
        message_delta("tool_use"),
        MESSAGE_STOP,
    ],
    "a restart": [
        message_start(),
        block_start(0, "tool_use", id="toolu_5", name="add", input={}),
        block_delta(0, "input_json_delta", partial_json='{"x'),
        message_start(id="msg_2"),
        block_start(0, "text", text="Anew"),
        block_stop(0),
        message_delta("end_turn"),
        MESSAGE_STOP,
    ],
    "indexes that mean nothing": [
        message_start(),
        block_start(0, "thinking", thinking=""),
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        block_start(0, "text", text=""),
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop"},
        message_delta(None),
        MESSAGE_STOP,
    ],
    "an error": [
        message_start({"input_tokens": 3}),
        block_start(0, "text", text=""),
        block_delta(0, "text_delta", text="Hel"),
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"},
    ],
    "on Vertex": [
        message_start(),
        {"type": "vertex_event", "usage": {"tiers": {}}},
        message_delta("refusal"),
        {**MESSAGE_STOP, "amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}},
    ],
}

# -- Gemini -----------------------------------------------------------------------------------------------------------


def candidate(*parts: Payload, finish: Any = None, index: int | None = None, **members: Any) -> Payload:
    """One candidate of a chunk; what is None is left out."""
    given = {"finishReason": finish, "index": index, **members}
    content = {"parts": list(parts), "role": "model"} if parts else {"role": "model"}
    return {"content": content, **{name: value for name, value in given.items() if value is not None}}


def gemini(*parts: Payload, finish: Any = None, usage: Any = None, top: Payload | None = None, **of: Any) -> Payload:
    """A chunk of one candidate; members of ``top`` stand beside ``candidates``."""
    totals = {} if usage is None else {"usageMetadata": usage}
    return {"candidates": [candidate(*parts, finish=finish, **of)], **totals, **(top or {})}


def function_call(name: str | None = None, *leaves: Payload, args: Any = None, **members: Any) -> Payload:
    """A part with a call; what is None is left out."""
    given = {"name": name, "args": args, "partialArgs": list(leaves) or None, **members}
    return {"functionCall": {key: value for key, value in given.items() if value is not None}}


def leaf(path: str, value: Any, *, more: bool = False) -> Payload:
    """One of ``partialArgs``: the value under the member that holds its type."""
    kinds = {str: "stringValue", bool: "boolValue", type(None): "nullValue"}
    named = {kinds.get(type(value), "numberValue"): "NULL_VALUE" if value is None else value}
    return {"jsonPath": path, **named, **({"willContinue": True} if more else {})}


GEMINI_NAMES: Final[Payload] = {"modelVersion": "gm", "responseId": "r1"}
GEMINI_USAGE: Final[Payload] = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 3,
    "totalTokenCount": 17,
}

GEMINI: Final[dict[str, Stream]] = {
    "text": [
        gemini({"text": "Hel"}, usage={"promptTokenCount": 10, "totalTokenCount": 10}, top=GEMINI_NAMES),
        gemini({"text": "lo"}, usage={"promptTokenCount": 10, "totalTokenCount": 10}, top=GEMINI_NAMES),
        gemini({"text": ""}, finish="STOP", usage=GEMINI_USAGE, top=GEMINI_NAMES, index=0),
    ],
    "thoughts and signatures": [
        gemini({"text": "Hm", "thought": True}, top=GEMINI_NAMES),
        gemini({"text": "m.", "thought": True, "thoughtSignature": "c2ln"}),
        gemini({"text": "Yes"}),
        gemini({"text": " and no", "thoughtSignature": "c2lnMg=="}),
        gemini({"text": ""}),
        gemini({"text": "", "thoughtSignature": "c2lnMw=="}, finish="STOP", usage=GEMINI_USAGE),
    ],
    "calls in one chunk": [
        gemini(
            {**function_call("add", args={"x": 1}), "thoughtSignature": "c2ln"},
            function_call("add", args={"x": 2}, id="g2"),
            function_call("now"),
            finish="STOP",
            finishMessage="Model generated function call(s).",
        )
    ],
    "arguments by path": [
        gemini({**function_call("f", willContinue=True), "thoughtSignature": "c2ln"}),
        gemini(function_call(None, leaf("$.city", "Bos", more=True), willContinue=True)),
        gemini(function_call(None, leaf("$.city", "ton", more=True), willContinue=True)),
        gemini(function_call(None, leaf("$.city", ""), willContinue=True)),
        gemini(function_call(None, leaf("$.items[0].price", 0.5), leaf("$.items[0].ok", True), willContinue=True)),
        gemini(function_call(willContinue=True)),
        gemini(function_call(None, leaf("$.items[1]['a.b']", None), leaf("$.n", 100), willContinue=True)),
        gemini(function_call()),
        gemini(function_call("g", leaf("$.a", "x"))),
        gemini(finish="STOP", usage={"trafficType": "ON_DEMAND"}),
    ],
    "arguments out of order": [
        gemini(function_call("f", leaf("$.a.b", 1), leaf("$.c", "x"), willContinue=True)),
        gemini(function_call(None, leaf("$.a.d", "y", more=True), willContinue=True)),
        gemini(function_call(None, leaf("$.a.d", "z"), leaf("$.c", "more"))),
        gemini(function_call("h", leaf("$..a", 1))),
        gemini(function_call("i", willContinue=True)),
        gemini(finish="STOP"),
    ],
    "code, media, server tools": [
        gemini({"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "e1"}}),
        gemini({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "e1"}}),
        gemini({"inlineData": {"mimeType": "image/png", "data": "QUJD"}, "thoughtSignature": "c2ln"}),
        gemini({"fileData": {"mimeType": "image/png", "fileUri": "https://f"}}),
        gemini({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}, "id": "t1"}}),
        gemini({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"s": ""}, "id": "t1"}}),
        gemini({"functionResponse": {"name": "mcp", "response": {"a": 1}}}),
        gemini({"audioTranscription": {"text": "la"}}, {"thoughtSignature": "c2lnNA=="}),
        gemini({"text": "Done."}, finish="STOP"),
    ],
    "grounding": [
        gemini({"text": "Grüße, "}, groundingMetadata={}),
        gemini(
            {"text": "Welt."},
            finish="STOP",
            groundingMetadata={
                "groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}, {"web": {"uri": "https://b"}}],
                "groundingSupports": [
                    {"segment": {"startIndex": 9, "endIndex": 13, "text": "Welt"}, "groundingChunkIndices": [0, 1]},
                    {"segment": {"endIndex": 7, "text": "Grüße"}, "groundingChunkIndices": [0]},
                ],
            },
            citationMetadata={"citationSources": [{"startIndex": 0, "endIndex": 7, "uri": "https://c"}]},
            urlContextMetadata={"urlMetadata": [{"retrievedUrl": "https://a"}]},
        ),
    ],
    "a prompt that is blocked": [
        {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []}, "usageMetadata": {"promptTokenCount": 3}}
    ],
    "ratings of the prompt, then text": [
        {"promptFeedback": {"safetyRatings": [{"category": "C", "probability": "LOW"}]}},
        gemini({"text": "a"}, finish="SAFETY", safetyRatings=[{"category": "C", "blocked": True}]),
    ],
    "a malformed call": [
        gemini(function_call("add", args={"x": 1})),
        gemini(finish="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: add("),
    ],
    "two candidates": [
        {"candidates": [candidate({"text": "a"}, index=0), candidate({"text": "b"}, index=1)]},
        gemini({"text": "B"}, index=1),
        gemini({"text": "A"}, index=0, finish="MAX_TOKENS"),
        gemini(function_call("f"), index=1, finish="STOP"),
    ],
    "STOP on every chunk": [gemini({"text": "a"}, finish="STOP"), gemini({"text": "b"}, finish="STOP")],
    "numbers for words": [gemini({"text": "a"}, finish=1)],
    "continuation": [gemini({"text": "a"}, finish="CONTINUATION", continuationToken="tok")],
    "an error in a frame": [
        gemini({"text": "a"}, usage=GEMINI_USAGE),
        {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
    ],
    "no shape that is known": [{"this": {"is": "odd"}}, gemini({"text": "a"}, finish="STOP")],
}

# -- Interactions -----------------------------------------------------------------------------------------------------


def interaction(kind: str, status: str | None = None, **members: Any) -> Payload:
    """An event about the whole interaction."""
    about = {"id": "v1_x", **({"status": status} if status else {}), **members}
    return {"interaction": about, "event_type": f"interaction.{kind}"}


def step_start(index: int, kind: str, **step: Any) -> Payload:
    return {"index": index, "step": {"type": kind, **step}, "event_type": "step.start"}


def step_delta(index: int, kind: str, **delta: Any) -> Payload:
    return {"index": index, "delta": {"type": kind, **delta}, "event_type": "step.delta"}


def step_stop(index: int, **members: Any) -> Payload:
    return {"index": index, **members, "event_type": "step.stop"}


def content_start(index: int, kind: str, **content: Any) -> Payload:
    return {"index": index, "content": {"type": kind, **content}, "event_type": "content.start"}


def content_delta(index: int, kind: str, **delta: Any) -> Payload:
    return {"index": index, "delta": {"type": kind, **delta}, "event_type": "content.delta"}


def content_stop(index: int) -> Payload:
    return {"index": index, "event_type": "content.stop"}


CREATED: Final = interaction("created", "in_progress", model="gm", object="interaction")
IN_PROGRESS: Final[Payload] = {
    "interaction_id": "v1_x",
    "status": "in_progress",
    "event_type": "interaction.status_update",
}
INTERACTIONS_USAGE: Final[Payload] = {
    "total_input_tokens": 5,
    "total_output_tokens": 3,
    "total_thought_tokens": 2,
    "total_tokens": 10,
}
COMPLETED: Final = interaction("completed", "completed", usage=INTERACTIONS_USAGE)

INTERACTIONS: Final[dict[str, Stream]] = {
    "text": [
        CREATED,
        IN_PROGRESS,
        step_start(0, "thought"),
        step_delta(0, "thought_signature", signature="c2ln"),
        step_stop(0),
        step_start(1, "model_output"),
        step_delta(1, "text", text="Hel"),
        step_delta(1, "text", text="lo"),
        {**step_delta(1, "text", text="!"), "metadata": {"usage": {"total_input_tokens": 5, "total_tokens": 5}}},
        step_stop(1, usage=INTERACTIONS_USAGE, step_usage={"total_tokens": 3}),
        COMPLETED,
    ],
    "a call": [
        CREATED,
        step_start(0, "thought", signature=""),
        step_delta(0, "thought_summary", content={"type": "text", "text": "Hm"}),
        step_delta(0, "thought_signature", signature="c2ln"),
        step_delta(0, "thought_signature", signature=""),
        step_stop(0),
        step_start(1, "function_call", id="c1", name="f", arguments={}, signature="c2lnMg=="),
        step_delta(1, "arguments_delta", arguments='{"a":'),
        step_delta(1, "arguments_delta", arguments="1}"),
        step_stop(1),
        step_start(2, "function_call", id="c2", name="g", arguments={}),
        step_stop(2),
        interaction("completed", "requires_action", usage=INTERACTIONS_USAGE),
    ],
    "contents of old": [
        interaction("start", "in_progress"),
        content_start(0, "thought"),
        content_delta(0, "thought_signature", signature="c2ln"),
        content_stop(0),
        content_start(1, "text"),
        content_delta(1, "text", text="Grüße"),
        content_delta(1, "text_annotation", annotations=[{"type": "url_citation", "url": "https://a", "end_index": 4}]),
        content_stop(1),
        content_start(2, "function_call", id="c1"),
        content_delta(2, "function_call", id="c1", name="f", arguments={"a": 1}),
        content_stop(2),
        interaction("complete", "completed", usage=INTERACTIONS_USAGE),
    ],
    "server tools": [
        CREATED,
        step_start(0, "google_search_call", id="s1", signature="c2ln"),
        step_delta(0, "google_search_call", arguments={"queries": ["q"]}, signature="c2lnMg=="),
        step_stop(0),
        step_start(1, "google_search_result", call_id="s1"),
        step_delta(1, "google_search_result", result=[{"search_suggestions": "<b>"}], is_error=False),
        step_stop(1),
        step_start(2, "mcp_server_tool_call", id="m1", name="find", server_name="s", arguments={"a": 1}),
        step_stop(2),
        step_start(3, "mcp_server_tool_result", call_id="m1", name="find", result="no", is_error=True),
        step_stop(3),
        step_start(4, "user_input", content=[{"type": "text", "text": "u"}]),
        step_stop(4),
        interaction("completed", "incomplete", usage=INTERACTIONS_USAGE),
    ],
    "media and sources": [
        CREATED,
        step_start(0, "model_output", content=[{"type": "text", "text": "See "}]),
        step_delta(0, "text", text="Grüße."),
        step_delta(
            0,
            "text_annotation_delta",
            annotations=[{"type": "url_citation", "url": "https://a", "title": "A", "start_index": 4, "end_index": 11}],
        ),
        step_delta(0, "image", mime_type="image/png", data="QUJD"),
        step_delta(0, "audio", mime_type="audio/pcm", data="QUJ"),
        step_delta(0, "audio", data="D"),
        step_delta(0, "document", uri="https://d", mime_type="application/pdf"),
        step_delta(0, "text", text="More."),
        step_stop(0),
        COMPLETED,
    ],
    "in the background": [
        {**CREATED, "event_id": "e1"},
        {**step_start(0, "model_output"), "event_id": "e2"},
        {**step_delta(0, "text", text="a"), "event_id": "e3"},
        {**step_delta(0, "text", text="b"), "event_id": "e4"},
        {**step_stop(0), "event_id": "e5"},
        {**interaction("status_update"), "status": "in_progress", "event_id": "e6"},
        {**COMPLETED, "event_id": "e7"},
    ],
    "a failed step, then all of it": [
        CREATED,
        step_start(0, "model_output", error={"code": "internal", "message": "step"}),
        step_stop(0),
        interaction("completed", "failed", error={"code": "gateway_timeout", "message": "no"}),
    ],
    "an error": [
        CREATED,
        step_start(0, "model_output"),
        step_delta(0, "text", text="a"),
        {"error": {"code": "prohibited_content", "message": "no"}, "event_type": "error"},
    ],
    "a status by its event": [
        CREATED,
        step_start(0, "function_call", id="c1", name="f", arguments={}),
        step_delta(0, "arguments_delta", arguments="{}"),
        step_stop(0),
        interaction("requires_action", "requires_action"),
    ],
    "an interaction that did not stream": [
        {
            "object": "interaction",
            "id": "v1_x",
            "status": "completed",
            "steps": [
                {"type": "thought", "signature": "c2ln"},
                {"type": "model_output", "content": [{"type": "text", "text": "Hi"}]},
                {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
            ],
            "usage": INTERACTIONS_USAGE,
        }
    ],
}

# -- xAI: one name for three dialects ---------------------------------------------------------------------------------

XAI_USAGE: Final[Payload] = {
    "prompt_tokens": 12,
    "completion_tokens": 2,
    "total_tokens": 354,
    "completion_tokens_details": {"reasoning_tokens": 340},
    "num_sources_used": 0,
    "cost_in_usd_ticks": 37_756_000,
}
XAI_SEARCH: Final[Payload] = {
    "type": "custom_tool_call",
    "id": "ctc_1_xs_call_1",
    "call_id": "xs_call_1",
    "name": "x_keyword_search",
}


def without_index(payload: Payload) -> Payload:
    return {name: value for name, value in payload.items() if name != "index"}


XAI: Final[dict[str, Stream]] = {
    "chat: reasoning, then a call in one chunk": [
        chunk({"role": "assistant", "reasoning_content": "Hm"}, id="x1", model="grok"),
        chunk({"reasoning_content": "m"}, id="x1", model="grok"),
        call_chunk(entry('{"x":1}', "add", index=0, id="call_1", type="function")),
        call_chunk(entry("{}", "sub", index=1, id="call_2", type="function")),
        chunk({}, "tool_calls"),
        {"object": "chat.completion.chunk", "id": "x1", "choices": [], "usage": XAI_USAGE},
    ],
    "chat: call, reason and usage in one chunk (grok-2)": [
        {
            **call_chunk(entry('{"x":1}', "add", index=0, id="1", type="function"), finish="tool_calls"),
            "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
        }
    ],
    "chat: sources": [
        chunk({"role": "assistant", "content": "See."}),
        chunk({}, "stop", citations=["https://a", "https://b"], usage=CHAT_USAGE),
    ],
    "responses: a search that xAI ran": numbered(
        created("x-r", "grok"),
        added(0, type="reasoning", id="rs_1", summary=[], status="in_progress"),
        of("reasoning_summary_part.added", 0, "rs_1", summary_index=0, part={"type": "summary_text", "text": ""}),
        of("reasoning_summary_text.delta", 0, "rs_1", summary_index=0, delta="Hm\n"),
        of("reasoning_summary_text.done", 0, "rs_1", summary_index=0, text="Hm\n"),
        finished(
            0, type="reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Hm\n"}], encrypted_content="e"
        ),
        added(1, **XAI_SEARCH, input="", status="in_progress"),
        added(2, type="web_search_call", id="ws_1", status="in_progress", action={"type": "search", "query": ""}),
        finished(2, type="web_search_call", id="ws_1", status="completed", action={"type": "search", "query": ""}),
        of("custom_tool_call_input.delta", 1, "ctc_1_xs_call_1", delta='{"q":1}'),
        of("custom_tool_call_input.done", 1, "ctc_1_xs_call_1", input='{"q":1}'),
        finished(1, **XAI_SEARCH, input='{"q":1}', status="completed"),
        completed(usage={**RESPONSES_USAGE, "cost_in_usd_ticks": 250_000, "num_server_side_tools_used": 1}),
    ),
    "messages: two blocks of index 0, deltas without one": [
        message_start(),
        block_start(0, "thinking", thinking=""),
        without_index(block_delta(0, "thinking_delta", thinking="Hm")),
        without_index(block_delta(0, "signature_delta", signature="sig")),
        block_start(0, "text", text=""),
        without_index(block_delta(0, "text_delta", text="Hi")),
        block_stop(0),
        message_delta("end_turn"),
        MESSAGE_STOP,
    ],
}

WIRES: Final[dict[str, dict[str, Stream]]] = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini-generate-content": GEMINI,
    "gemini-interactions": INTERACTIONS,
    "xai": XAI,
}
