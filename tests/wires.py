"""Payloads as the three surfaces send them: short streams, each about one thing, made by hand from the protocol pages.

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

WIRES: Final[dict[str, dict[str, Stream]]] = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
}
