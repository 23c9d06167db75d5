"""Both sides of a conversation, hand-made from the protocol pages: what a request holds of an answer, and of results.

Tables quote them; the stream that such a turn once came by is told by ``tests/servers.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import streamfold
from streamfold import Snapshot, ToolResult, tool_results
from tests import servers
from tests.samples import Payload, sse


class Turn(NamedTuple):
    """An answer's stream and what goes back.

    Attributes:
        provider: Which.
        payloads: The stream.
        echo: The items of the answer in the next request.
        given: Results, by the id of their call; in the order of the calls where the wire has no ids.
        results: The items of the results.
        foreign: It holds parts that the official client's types do not have.
    """

    provider: str
    payloads: Iterable[Payload | str]
    echo: list[Payload]
    given: Mapping[str, Any] | tuple[Any, ...] = MappingProxyType({})
    results: Sequence[Payload] = ()
    foreign: bool = False

    def body(self) -> bytes:
        return WIRES[self.provider](self.payloads)

    def answer(self) -> Snapshot:
        return streamfold.fold([self.body()], self.provider)

    def answered(self, answer: Snapshot) -> list[Payload]:
        given = self.given
        if isinstance(given, tuple):
            given = {call.id: result for call, result in zip(answer.tool_calls, given, strict=True)}
        return tool_results(answer, given)


WIRES: Mapping[str, Callable[[Iterable[Payload | str]], bytes]] = {
    "anthropic": partial(sse, names=True),
    "openai-responses": partial(sse, names=True),
    "openai-chat": sse,
    "gemini": partial(sse, end="\r\n"),
    "gemini-interactions": partial(sse, names=True),
}
"""How each surface frames its payloads."""


# -- Anthropic --------------------------------------------------------------------------------------------------------


def _messages(content: list[Payload], reason: str = "end_turn", given: Any = None, results: Any = None) -> Turn:
    message = {"role": "assistant", "content": content}
    answers = [{"role": "user", "content": results}] if results else []
    return Turn("anthropic", servers.anthropic(message, reason), [message], given or {}, answers)


THINKING = {"type": "thinking", "thinking": "Add the numbers.", "signature": "RXVCc2lnbmF0dXJl"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
FOUND = {"type": "web_search_result", "url": "https://a.example", "title": "Tides", "encrypted_content": "RW5j"}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [FOUND]}
CITED = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "Tides",
    "encrypted_index": "RWlk",
    "cited_text": "twice a day",
}
CODE = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "roll()"}}
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_2"}


def _tool_use(number: int, name: str = "add", **arguments: Any) -> Payload:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def _tool_result(number: int, content: Any, **members: Any) -> Payload:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content, **members}


ANTHROPIC: dict[str, Turn] = {
    "text": _messages([{"type": "text", "text": "Hello."}]),
    "thinking with its signature": _messages([THINKING, {"type": "text", "text": "It is 4."}]),
    "thinking that is signed and not shown": _messages([{**THINKING, "thinking": ""}, {"type": "text", "text": "4"}]),
    "thinking that a compatible server does not sign": _messages(
        [{**THINKING, "signature": ""}, {"type": "text", "text": "4"}]
    ),
    "redacted thinking, and thinking between texts": _messages(
        [
            {"type": "redacted_thinking", "data": "UmVkYWN0ZWQ="},
            THINKING,
            {"type": "text", "text": "One "},
            {**THINKING, "signature": "c2Vjb25k"},
            {"type": "text", "text": "two."},
        ]
    ),
    "thinking before calls, all answered in one message": _messages(
        [THINKING, {"type": "text", "text": "Let me see."}, _tool_use(1, a=1, b=2.5), _tool_use(2, "now")],
        "tool_use",
        {"toolu_2": "noon", "toolu_1": {"sum": 3.5}},
        [_tool_result(1, '{"sum":3.5}'), _tool_result(2, "noon")],
    ),
    "a tool that failed, and one that answers by blocks of its own": _messages(
        [_tool_use(1), _tool_use(2, "photo")],
        "tool_use",
        {
            "toolu_1": ToolResult("no such number", is_error=True),
            "toolu_2": ToolResult([{"type": "text", "text": "a photo"}], native=True),
        },
        [
            _tool_result(1, "no such number", is_error=True),
            _tool_result(2, [{"type": "text", "text": "a photo"}]),
        ],
    ),
    "a call that is a member of a toolset": _messages(
        [{**_tool_use(1), "toolset_name": "browser"}],
        "tool_use",
        {"toolu_1": ""},
        [_tool_result(1, "", toolset_name="browser")],
    ),
    "a call from inside code execution, which has not ended": _messages(
        [CODE, {**_tool_use(1, "roll"), "caller": CALLER}],
        "tool_use",
        {"toolu_1": 6},
        [_tool_result(1, "6")],
    ),
    "a server tool with its result, and a text that cites it": _messages(
        [SEARCH, SEARCHED, {"type": "text", "text": "Twice a day.", "citations": [CITED]}]
    ),
    "the same, called by code": _messages(
        [
            {**SEARCH, "caller": {"type": "direct"}},
            {**SEARCHED, "caller": {"type": "direct"}},
            {"type": "text", "text": "Twice a day."},
        ]
    ),
    "a pause: the server tool has not answered yet": _messages(
        [{"type": "text", "text": "Searching."}, SEARCH], "pause_turn"
    ),
    "a result that answers the turn before": _messages([SEARCHED, {"type": "text", "text": "Twice."}]),
    "an MCP tool and its result": _messages(
        [
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "ask", "server_name": "wiki", "input": {"q": "?"}},
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "content": [{"type": "text", "text": "42"}],
                "is_error": False,
            },
            {"type": "text", "text": "42."},
        ]
    ),
    "a compaction, and the answer after it": _messages(
        [
            {"type": "compaction", "content": "The story so far.", "encrypted_content": "Q29tcA=="},
            THINKING,
            {"type": "text", "text": "On we go."},
        ]
    ),
    "a compaction alone, by which the turn pauses": _messages(
        [{"type": "compaction", "content": "The story so far."}], "compaction"
    ),
    "a file of the container, a tool listing": _messages(
        [
            {"type": "container_upload", "file_id": "file_1"},
            {"type": "mcp_tool_listing", "mcp_server_name": "wiki", "tools": []},
            {"type": "text", "text": "Done."},
        ]
    ),
    "an answer that began on another model": _messages(
        [
            {"type": "text", "text": "Well, "},
            {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}},
            THINKING,
            {"type": "text", "text": "here it is."},
            _tool_use(1),
        ],
        "tool_use",
        {"toolu_1": "ok"},
        [_tool_result(1, "ok")],
    ),
}

# -- Responses --------------------------------------------------------------------------------------------------------


def _items(items: list[Payload], given: Any = None, results: Any = None, **settings: Any) -> Turn:
    return Turn("openai-responses", servers.responses(items, **settings), items, given or {}, results or [])


def _said(text: str, number: int = 1, **members: Any) -> Payload:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    return {**item, **members}


REASONED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo1"}
URL = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5}


def _function(number: int = 1, name: str = "add", arguments: str = '{"a": 1}', **members: Any) -> Payload:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
    return {**item, "arguments": arguments, "status": "completed", **members}


def _output(number: int, output: Any, **members: Any) -> Payload:
    return {"type": "function_call_output", "call_id": f"call_{number}", "output": output, **members}


RESPONSES: dict[str, Turn] = {
    "text": _items([_said("Hello.")]),
    "text with sources": _items([_said("", content=[{"type": "output_text", "text": "Hello.", "annotations": [URL]}])]),
    "reasoning, encrypted, and what it led to": _items([REASONED, _said("4")]),
    "reasoning with a summary": _items(
        [{**REASONED, "summary": [{"type": "summary_text", "text": text} for text in ("One.", "Two.")]}, _said("4")]
    ),
    "reasoning that the provider keeps": _items([{"type": "reasoning", "id": "rs_1", "summary": []}, _said("4")]),
    "a preamble and calls": _items(
        [
            REASONED,
            _said("Let me see.", phase="commentary"),
            _function(1),
            _function(2, "now", "{}", namespace="clock"),
        ],
        {"call_1": {"sum": 3}, "call_2": "noon"},
        [_output(1, '{"sum":3}'), _output(2, "noon")],
    ),
    "a tool that failed, and one that answers by parts": _items(
        [_function(1), _function(2)],
        {
            "call_1": ToolResult("no such number", is_error=True),
            "call_2": ToolResult([{"type": "input_text", "text": "a photo"}], native=True),
        },
        [_output(1, '{"error":"no such number"}'), _output(2, [{"type": "input_text", "text": "a photo"}])],
    ),
    "a call that a program made": _items(
        [
            {"type": "program", "id": "pr_1", "call_id": "call_p", "code": "add()", "fingerprint": "Zg=="},
            _function(1, caller={"type": "program", "caller_id": "call_p"}),
        ],
        {"call_1": 3},
        [_output(1, "3", caller={"type": "program", "caller_id": "call_p"})],
    ),
    "a refusal": _items([_said("", content=[{"type": "refusal", "refusal": "I cannot help with that."}])]),
    "a message of two parts, and another message": _items(
        [
            _said(
                "",
                content=[
                    {"type": "output_text", "text": "One.", "annotations": []},
                    {"type": "output_text", "text": "Two.", "annotations": []},
                ],
            ),
            _said("Three.", 2, phase="final_answer"),
        ]
    ),
    "a custom tool": _items(
        [{"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sh", "input": "ls -l"}],
        {"call_1": "total 0"},
        [{"type": "custom_tool_call_output", "call_id": "call_1", "output": "total 0"}],
    ),
    "a patch, applied": _items(
        [
            {
                "type": "apply_patch_call",
                "id": "apc_1",
                "call_id": "call_1",
                "status": "completed",
                "operation": {"type": "create_file", "path": "a.txt", "diff": "+hello\n"},
            }
        ],
        {"call_1": ""},
        [{"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"}],
    ),
    "a patch that failed": _items(
        [
            {
                "type": "apply_patch_call",
                "id": "apc_1",
                "call_id": "call_1",
                "status": "completed",
                "operation": {"type": "delete_file", "path": "a.txt"},
            }
        ],
        {"call_1": ToolResult("no such file", is_error=True)},
        [{"type": "apply_patch_call_output", "call_id": "call_1", "status": "failed", "output": "no such file"}],
    ),
    "shell commands of ours": _items(
        [
            {
                "type": "shell_call",
                "id": "sh_1",
                "call_id": "call_1",
                "status": "completed",
                "action": {"commands": ["ls", "pwd"], "timeout_ms": None, "max_output_length": 4096},
                "environment": {"type": "local"},
            }
        ],
        {"call_1": "a.txt\n/"},
        [
            {
                "type": "shell_call_output",
                "call_id": "call_1",
                "max_output_length": 4096,
                "output": [{"stdout": "a.txt\n/", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            }
        ],
    ),
    "shell commands that the provider ran": _items(
        [
            {
                "type": "shell_call",
                "id": "sh_1",
                "call_id": "call_1",
                "status": "completed",
                "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
                "environment": {"type": "container_reference", "container_id": "cntr_1"},
            },
            {
                "type": "shell_call_output",
                "id": "sho_1",
                "call_id": "call_1",
                "status": "completed",
                "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
            _said("One file."),
        ]
    ),
    "a local shell": _items(
        [
            {
                "type": "local_shell_call",
                "id": "lsh_1",
                "call_id": "call_1",
                "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}},
            }
        ],
        {"call_1": "a.txt"},
        [{"type": "local_shell_call_output", "id": "call_1", "output": "a.txt"}],
    ),
    "a computer": _items(
        [
            {
                "type": "computer_call",
                "id": "cu_1",
                "call_id": "call_1",
                "status": "completed",
                "action": {"type": "screenshot"},
                "pending_safety_checks": [],
            }
        ],
        {"call_1": "data:image/png;base64,iVBORw0="},
        [
            {
                "type": "computer_call_output",
                "call_id": "call_1",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0="},
            }
        ],
    ),
    "a search for tools of ours": _items(
        [
            {
                "type": "tool_search_call",
                "id": "tsc_1",
                "call_id": "call_1",
                "status": "completed",
                "execution": "client",
                "arguments": {"query": "money"},
            }
        ],
        {"call_1": []},
        [
            {
                "type": "tool_search_output",
                "call_id": "call_1",
                "execution": "client",
                "status": "completed",
                "tools": [],
            }
        ],
    ),
    "a search for tools that the provider ran, without a call id": _items(
        [
            {
                "type": "tool_search_call",
                "id": "tsc_1",
                "status": "completed",
                "execution": "server",
                "arguments": {"paths": ["fx"]},
            },
            {
                "type": "tool_search_output",
                "id": "tso_1",
                "status": "completed",
                "execution": "server",
                "tools": [{"type": "function", "name": "fx", "parameters": {"type": "object"}, "strict": True}],
            },
            _function(1, "fx"),
        ],
        {"call_1": 1.1},
        [_output(1, "1.1")],
    ),
    "searches, code, files and an image": _items(
        [
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "tides"},
            },
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "status": "completed",
                "container_id": "cntr_1",
                "code": "print(1)",
                "outputs": [{"type": "logs", "logs": "1"}],
            },
            {
                "type": "code_interpreter_call",
                "id": "ci_2",
                "status": "completed",
                "container_id": "cntr_1",
                "code": "pass",
                "outputs": None,
            },
            {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["tides"], "results": []},
            {
                "type": "image_generation_call",
                "id": "ig_1",
                "status": "completed",
                "output_format": "png",
                "result": "iVBORw0KGgo=",
            },
            _said("Here."),
        ]
    ),
    "MCP: a list of tools, a call and what it gave, a call that failed": _items(
        [
            {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "wiki", "tools": []},
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "status": "completed",
                "server_label": "wiki",
                "name": "ask",
                "arguments": '{"q":"?"}',
                "output": "42",
            },
            {
                "type": "mcp_call",
                "id": "mcp_2",
                "status": "failed",
                "server_label": "wiki",
                "name": "ask",
                "arguments": "{}",
                "error": {"type": "http_error", "code": 500, "message": "down"},
            },
            _said("42."),
        ]
    ),
    "MCP: the provider asks whether it may": _items(
        [
            {
                "type": "mcp_approval_request",
                "id": "mcpr_1",
                "server_label": "shop",
                "name": "buy",
                "arguments": '{"n":1}',
            },
            {
                "type": "mcp_approval_request",
                "id": "mcpr_2",
                "server_label": "shop",
                "name": "sell",
                "arguments": "{}",
            },
        ],
        {"mcpr_1": True, "mcpr_2": ToolResult({"approve": False, "reason": "never"}, native=True)},
        [
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
            {"type": "mcp_approval_response", "approval_request_id": "mcpr_2", "approve": False, "reason": "never"},
        ],
    ),
    "reasoning that is shown": _items(
        [{**REASONED, "content": [{"type": "reasoning_text", "text": "Hm."}]}, _said("4")]
    ),
    "reasoning under both names": _items(
        [
            {
                **REASONED,
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "content": [{"type": "reasoning_text", "text": "Hm."}, {"type": "reasoning_text", "text": "So."}],
            },
            _said("4"),
        ]
    ),
    "what a program of the provider gave": _items(
        [
            {"type": "program", "id": "pr_1", "call_id": "call_p", "code": "add()", "fingerprint": "Zg=="},
            {"type": "program_output", "id": "po_1", "call_id": "call_p", "result": "3", "status": "completed"},
            _said("3"),
        ]
    ),
    "a search that has arguments in the place of an action (xAI)": _items(
        [
            {
                "type": "web_search_call",
                "id": "ws_1",
                "name": "web_search",
                "arguments": '{"query": "tides"}',
                "status": "completed",
            },
            _said("Twice a day."),
        ]
    )._replace(foreign=True),
    "a compaction": _items([{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABo2"}, _said("On.")]),
    "a message that broke off for want of tokens": _items([_said("It is", status="incomplete")], status="incomplete"),
}

# -- Chat Completions -------------------------------------------------------------------------------------------------


def _message(given: Any = None, results: Any = None, **members: Any) -> Turn:
    message = {"role": "assistant", "content": None, **members}
    return Turn("openai-chat", servers.chat_completions(message), [message], given or {}, results or [])


def _call(number: int, name: str = "add", arguments: str = '{"a": 1}', **members: Any) -> Payload:
    call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {**call, **members}


def _tool(number: int, content: Any) -> Payload:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}


SIGNED = {"type": "reasoning.text", "text": "Hm.", "signature": "U2ln", "format": "anthropic-claude-v1", "index": 0}
SEALED = {
    "type": "reasoning.encrypted",
    "data": "RW5jcnlwdGVk",
    "id": "rs_1",
    "format": "openai-responses-v1",
    "index": 1,
}

CHAT: dict[str, Turn] = {
    "text": _message(content="Hello."),
    "calls, answered one by one": _message(
        {"call_2": "noon", "call_1": [1, 2]},
        [_tool(1, "[1,2]"), _tool(2, "noon")],
        tool_calls=[_call(1), _call(2, "now", "{}")],
    ),
    "text before a call": _message({"call_1": None}, [_tool(1, "null")], content="Let me see.", tool_calls=[_call(1)]),
    "a tool that failed": _message(
        {"call_1": ToolResult({"no": "such number"}, is_error=True)},
        [_tool(1, '{"error":{"no":"such number"}}')],
        tool_calls=[_call(1)],
    ),
    "a tool that answers by parts": _message(
        {"call_1": ToolResult([{"type": "text", "text": "3"}], native=True)},
        [_tool(1, [{"type": "text", "text": "3"}])],
        tool_calls=[_call(1)],
    ),
    "reasoning before a call (DeepSeek, Moonshot, Z.ai)": _message(
        {"call_1": "3"}, [_tool(1, "3")], content=None, reasoning_content="Hm.", tool_calls=[_call(1)]
    ),
    "reasoning before text": _message(content="4", reasoning_content="Hm."),
    "reasoning under its other name (Groq, Ollama, Cerebras)": _message(content="4", reasoning="Hm."),
    "reasoning inside the text (Mistral)": _message(
        content=[
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "4"},
        ]
    )._replace(foreign=True),
    "reasoning inside the text (Databricks)": _message(
        content=[
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm.", "signature": "U2ln"}]},
            {"type": "text", "text": "4"},
        ]
    )._replace(foreign=True),
    "structured reasoning, signed and sealed (OpenRouter)": _message(
        {"call_1": "3"}, [_tool(1, "3")], reasoning_details=[SIGNED, SEALED], tool_calls=[_call(1)]
    ),
    "thinking blocks (LiteLLM)": _message(
        content="4", thinking_blocks=[{"type": "thinking", "thinking": "Hm.", "signature": "U2ln"}]
    ),
    "a call with a signature of its own (Gemini by this API)": _message(
        {"call_1": "3"},
        [_tool(1, "3")],
        tool_calls=[_call(1, extra_content={"google": {"thought_signature": "R1NJRw=="}})],
    ),
    "a custom tool": _message(
        {"call_1": "total 0"},
        [_tool(1, "total 0")],
        tool_calls=[{"id": "call_1", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}],
    ),
    "a refusal": _message(content=[{"type": "refusal", "refusal": "I cannot help with that."}]),
    "text and a refusal": _message(content="Well.", refusal="No."),
}

# -- Gemini -----------------------------------------------------------------------------------------------------------


def _content(parts: list[Payload], given: Any = None, results: Any = None, told: Any = None) -> Turn:
    content = {"role": "model", "parts": parts}
    answers = [{"role": "user", "parts": results}] if results else []
    return Turn("gemini", told or servers.gemini(content), [content], given or {}, answers)


SIGNATURE = {"thoughtSignature": "CpQBAdHtim9zaWdu"}


def _called(name: str = "add", id: str | None = None, **arguments: Any) -> Payload:  # noqa: A002
    call = {"name": name, "args": arguments}
    return {"functionCall": call if id is None else {**call, "id": id}}


def _returned(name: str, response: Any, **members: Any) -> Payload:
    return {"functionResponse": {"name": name, "response": response, **members}}


SEARCHING = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["tides"]}, "id": "tool_1"}}
SEARCH_GAVE = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"search": "twice"}, "id": "tool_1"}}

GEMINI: dict[str, Turn] = {
    "text": _content([{"text": "Hello, \u2028there."}]),
    "a signature on a part without text": _content([{"text": "It is 4."}, {"text": "", **SIGNATURE}]),
    "a signature on a part with text": _content([{"text": "It is "}, {"text": "4.", **SIGNATURE}]),
    "two signatures, and text between them that has none": _content(
        [
            {"text": "One", **SIGNATURE},
            {"text": ", two"},
            {"text": "", "thoughtSignature": "c2Vjb25k"},
            {"text": ", three", "thoughtSignature": "dGhpcmQ="},
            {"text": "."},
        ]
    ),
    "thoughts and text by turns": _content(
        [
            {"text": "**Adding**\n\nTwo and two.", "thought": True},
            {"text": "It is "},
            {"text": "Sure?", "thought": True, **SIGNATURE},
            {"text": "4."},
        ]
    ),
    "text that says more of itself": _content(
        [{"text": "Hello", "partMetadata": {"take": 2}}, {"text": "."}, {"text": "!", "partMetadata": {"take": 2}}]
    ),
    "a signed call": _content(
        [{"text": "Adding.", "thought": True}, {**_called(a=1, b=[2.5, None]), **SIGNATURE}],
        ({"sum": 3.5},),
        [_returned("add", {"sum": 3.5})],
    ),
    "calls of one name at once, the first of them signed": _content(
        [{**_called(a=1), **SIGNATURE}, _called(a=2), _called("now")],
        ("3", [4], "noon"),
        [_returned("add", {"output": "3"}), _returned("add", {"output": [4]}), _returned("now", {"output": "noon"})],
    ),
    "calls with ids": _content(
        [{**_called(id="call_1", a=1), **SIGNATURE}, _called("now", id="call_2")],
        {"call_2": ToolResult("no clock", is_error=True), "call_1": {"sum": 3}},
        [_returned("add", {"sum": 3}, id="call_1"), _returned("now", {"error": "no clock"}, id="call_2")],
    ),
    "a tool that answers in a form of its own": _content(
        [_called("photo", id="call_1")],
        {"call_1": ToolResult({"response": {}, "parts": [{"inlineData": {"mimeType": "image/png"}}]}, native=True)},
        [_returned("photo", {}, id="call_1", parts=[{"inlineData": {"mimeType": "image/png"}}])],
    ),
    "a call whose arguments came one by one": _content(
        [{**_called("book", city="Boston", seats=2, price=0.5, window=True), **SIGNATURE}],
        ({"booked": True},),
        [_returned("book", {"booked": True})],
        told=[
            *servers.gemini_arguments_by_path(
                "book", {"city": "Boston", "seats": 2, "price": 0.5, "window": True}, **SIGNATURE
            ),
            servers.chunk(finish="STOP"),
        ],
    ),
    "code that the provider ran": _content(
        [
            {"executableCode": {"language": "PYTHON", "code": "print(6 * 7)", "id": "code_1"}, **SIGNATURE},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n", "id": "code_1"}},
            {"executableCode": {"language": "PYTHON", "code": "1 / 0"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
            {"text": "42."},
        ]
    ),
    "a search by the provider": _content(
        [
            {**SEARCHING, **SIGNATURE},
            {**SEARCH_GAVE, "thoughtSignature": "c2Vjb25k"},
            {"text": "Twice a day.", "thoughtSignature": "dGhpcmQ="},
        ]
    ),
    "a function that the provider called over MCP": _content(
        [
            _returned("wiki", {"content": [{"text": "42"}]}, id="mcp_1"),
            {"text": "42."},
        ]
    ),
    "pictures, drawn and filed": _content(
        [
            {"text": "See:"},
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, **SIGNATURE},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.example/b.mp4"}},
        ]
    ),
    "a part that nobody knows": _content(
        [{"text": "Hello."}, {"audioTranscription": {"text": "Hello."}, **SIGNATURE}, {"text": "Bye."}]
    ),
    "a signature alone": _content([{"text": "Hello."}, dict(SIGNATURE)]),
}

# -- Gemini Interactions ----------------------------------------------------------------------------------------------


def _steps(steps: list[Payload], given: Any = None, results: Any = None, told: Any = None) -> Turn:
    status = "requires_action" if given else "completed"
    return Turn("gemini-interactions", told or servers.interactions(steps, status), steps, given or {}, results or [])


THOUGHT = {"type": "thought", "signature": "EpoGCpcGAXLI2nw="}
CALL = {"type": "function_call", "id": "c_1", "name": "add", "arguments": {"a": 1, "b": [2.5, None]}}
NOW = {"type": "function_call", "id": "c_2", "name": "function", "arguments": {}}
FOUND_STEP = [{"search_suggestions": "<b>"}]
PLACE = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 5}


def _output_step(*content: Payload) -> Payload:
    return {"type": "model_output", "content": list(content)}


def _text_content(text: str, **members: Any) -> Payload:
    return {"type": "text", "text": text, **members}


def _result_step(number: int, name: str, result: Any, **members: Any) -> Payload:
    return {"type": "function_result", "call_id": f"c_{number}", "name": name, "result": result, **members}


OF_OLD: list[Payload] = [THOUGHT, {"type": "text", "text": "Let me see."}, CALL]

INTERACTIONS: dict[str, Turn] = {
    "text": _steps([_output_step(_text_content("Hello."))]),
    "a thought that is signed and not shown": _steps([THOUGHT, _output_step(_text_content("4"))]),
    "thoughts with summaries, between texts": _steps(
        [
            {**THOUGHT, "summary": [{"type": "text", "text": "**Adding**\n\nTwo and two."}]},
            _output_step(_text_content("It is ")),
            {"type": "thought", "signature": "c2Vjb25k"},
            _output_step(_text_content("4.")),
        ]
    ),
    "calls at once": _steps(
        [THOUGHT, CALL, NOW],
        {"c_2": "noon", "c_1": {"sum": 3.5}},
        [_result_step(1, "add", {"sum": 3.5}), _result_step(2, "function", "noon")],
    ),
    "a tool that failed, and one whose result is a list": _steps(
        [_output_step(_text_content("Let me see.")), CALL, NOW],
        {"c_1": ToolResult("no such number", is_error=True), "c_2": [1, 2]},
        [_result_step(1, "add", "no such number", is_error=True), _result_step(2, "function", "[1,2]")],
    ),
    "a tool that answers by contents": _steps(
        [CALL],
        {"c_1": ToolResult([_text_content("a photo")], native=True)},
        [_result_step(1, "add", [_text_content("a photo")])],
    ),
    "a call that is signed itself": _steps(
        [{**CALL, "signature": "c2lnbmVk"}], {"c_1": True}, [_result_step(1, "add", "true")]
    )._replace(foreign=True),
    "a search by the provider, signed, and the text that cites it": _steps(
        [
            {"type": "google_search_call", "id": "s_1", "arguments": {"queries": ["tides"]}, "signature": "c2VhcmNo"},
            {
                "type": "google_search_result",
                "call_id": "s_1",
                "result": [{"search_suggestions": "<b>"}],
                "signature": "Zm91bmQ=",
            },
            _output_step(_text_content("Twice a day.", annotations=[PLACE])),
        ]
    ),
    "code, files and addresses": _steps(
        [
            {"type": "code_execution_call", "id": "x_1", "arguments": {"code": "1 / 0", "language": "python"}},
            {"type": "code_execution_result", "call_id": "x_1", "result": "ZeroDivisionError", "is_error": True},
            {"type": "file_search_call", "id": "f_1", "signature": "ZmlsZXM="},
            {"type": "file_search_result", "call_id": "f_1", "signature": "Zm91bmQ="},
            {"type": "url_context_call", "id": "u_1", "arguments": {"urls": ["https://a.example"]}},
            {"type": "url_context_result", "call_id": "u_1", "result": [{"url": "https://a.example"}]},
            _output_step(_text_content("Done.")),
        ]
    ),
    "an MCP tool and its result": _steps(
        [
            {
                "type": "mcp_server_tool_call",
                "id": "m_1",
                "name": "ask",
                "server_name": "wiki",
                "arguments": {"question": "?"},
            },
            {
                "type": "mcp_server_tool_result",
                "call_id": "m_1",
                "name": "ask",
                "server_name": "wiki",
                "result": [_text_content("42")],
            },
            _output_step(_text_content("42.")),
        ]
    ),
    "text and pictures in one step, and a second step of text": _steps(
        [
            _output_step(
                _text_content("See:"),
                {"type": "image", "mime_type": "image/png", "data": "iVBORw0KGgo="},
                _text_content("and"),
                {"type": "video", "mime_type": "video/mp4", "uri": "https://a.example/b.mp4"},
            ),
            _output_step(_text_content("There.")),
        ]
    ),
    "a step that nobody knows": _steps(
        [{"type": "daydream", "id": "d_1", "of": ["sheep"]}, _output_step(_text_content("Well."))]
    )._replace(foreign=True),
    "contents of the older vocabulary": _steps(
        [THOUGHT, _output_step(_text_content("Let me see.")), CALL],
        {"c_1": 3},
        [_result_step(1, "add", "3")],
        told=servers.interactions_of_old(OF_OLD, "requires_action"),
    ),
}

TURNS: dict[str, Turn] = {
    f"{turn.provider}: {sentence}": turn
    for table in (ANTHROPIC, RESPONSES, CHAT, GEMINI, INTERACTIONS)
    for sentence, turn in table.items()
}
