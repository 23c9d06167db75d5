"""Where a client says otherwise, who is right, and by what clause. The page ``docs/judges.md`` is made from this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["DIFFERENCES", "READ", "REASONS", "Reason"]


class Reason(NamedTuple):
    """One sentence, and what decides."""

    right: str  # "streamfold", "the client", "both"
    what: str
    clause: str


REASONS: Final[Mapping[str, Reason]] = {
    "reasoning on top": Reason(
        "streamfold",
        "The provider counts reasoning beside `completion_tokens`; the client passes that number on.",
        "`total_tokens` is `prompt_tokens + completion_tokens + reasoning_tokens` here, and the output is all of it.",
    ),
    "empty output": Reason(
        "streamfold",
        "The client takes `output` of the terminal event for the answer, which this back end sends empty.",
        "The call came whole in `response.output_item.done`, which is authoritative for its item.",
    ),
    "cut arguments": Reason(
        "both",
        "The client gives what can be parsed of arguments that were cut off; streamfold gives their text.",
        "`stop_reason` is `max_tokens` and no `content_block_stop` came: the call stands in `withheld_calls`.",
    ),
    "second message_start": Reason(
        "streamfold",
        "The client goes on with the blocks of the message before, under the same indexes.",
        "A `message_start` begins a message: what was open belongs to another one.",
    ),
    "no message_stop": Reason(
        "streamfold",
        "The connection closed after `message_delta`; the client takes the answer for whole.",
        "A stream ends with `message_stop`; without it the answer is truncated and has no reason.",
    ),
    "compaction": Reason(
        "streamfold",
        "The framework adds up `usage.iterations`; streamfold reports the provider's totals, the rest in `usage.raw`.",
        "What `message_delta` reports replaces what `message_start` did: compaction is not part of the totals.",
    ),
    "programmatic call": Reason(
        "streamfold",
        "The framework takes a call that code execution made for one that the provider runs.",
        "It is a `tool_use` block, which the caller answers by a `tool_result`; the official client lists it too.",
    ),
    "custom tool": Reason(
        "streamfold",
        "The framework knows no custom tools.",
        "`custom_tool_call` is an item that the caller answers by a `custom_tool_call_output`.",
    ),
    "added-up usage": Reason(
        "streamfold",
        "The framework adds up totals that the provider repeats on each chunk, or in two places of one.",
        "What is reported is a running total: the last one counts.",
    ),
    "choices joined": Reason(
        "streamfold",
        "The framework joins the texts of two choices.",
        "Each `choices[].index` is an answer of its own.",
    ),
    "text in parts": Reason(
        "streamfold",
        "The framework drops text that stands in a list of content parts.",
        "`delta.content` may be a list of `thinking` and `text` parts at this vendor.",
    ),
    "arguments by path": Reason(
        "streamfold",
        "The client hands out the pieces: it does not join `partialArgs`.",
        "Pieces with `willContinue` belong to one call, each to the place that its `jsonPath` names.",
    ),
    "unreported": Reason(
        "both",
        "The totals name no output tokens; the client's sum of what it was not told is 0.",
        "What was not reported is None, never an estimate.",
    ),
}

READ: Final[Mapping[str, tuple[int, str]]] = {
    # an official client -> recordings that it makes an answer of, and what the others are
    "boto3, ConverseStream": (9, "answers that fail, and one whose text has a start of nothing, which it refuses"),
    "anthropic": (34, "an answer that ends in an error"),
    "google-genai": (27, "answers that fail, blocked prompts, and JSON arrays, which it refuses"),
    "google-genai, Interactions": (
        4,
        "answers that fail, and the older vocabulary: it gives out each event as an unknown one, the bare object",
    ),
    "openai, Chat Completions": (
        87,
        "answers that fail, the legacy completions, calls and contents without an index, on which it raises",
    ),
    "openai, Responses": (
        61,
        "an answer that fails, ids that change, an answer taken up after its beginning, on which it raises",
    ),
}

DIFFERENCES: Final[Mapping[tuple[str, str, str], str]] = {
    # (the judge, without its version; capture; member) -> reason
    ("openai, Chat Completions", "xai-chat/ver-xai-tool-call.sse", "output_tokens"): "reasoning on top",
    (
        "openai, Responses",
        "compat-chatgpt-codex/rig-codex-sessions-long-history-replay-nonstreaming.sse",
        "calls",
    ): "empty output",
    ("anthropic", "anthropic/sdk-tool-input-cut-at-max-tokens-no-block-stop.sse", "calls"): "cut arguments",
    ("anthropic", "anthropic/syn-spliced-message-start.sse", "calls"): "second message_start",
    ("anthropic", "derived-failures/anthropic-close-after-message-delta.sse", "stop"): "no message_stop",
    ("litellm", "compat-mistral/ver-mistral-reasoning.sse", "text"): "text in parts",
    (
        "pydantic-ai, Chat Completions",
        "compat-groq/rig-raw-stream-capture-matrix-stream-raw-round-trips-terminal-type.sse",
        "input_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-groq/rig-raw-stream-capture-matrix-stream-raw-round-trips-terminal-type.sse",
        "output_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-mistral/rig-terminal-metadata-matrix-streaming-ministral-3b-tiny-plain-two.sse",
        "text",
    ): "choices joined",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/rig-prompt-caching-streaming-probe-r1.sse",
        "input_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/rig-prompt-caching-streaming-probe-r1.sse",
        "output_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/rig-raw-stream-capture-matrix-stream-raw-round-trips-terminal-type.sse",
        "input_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/rig-raw-stream-capture-matrix-stream-raw-round-trips-terminal-type.sse",
        "output_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/rllm-streaming-responses-perplexity-sonar-supports-st-8722d4.sse",
        "input_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/rllm-streaming-responses-perplexity-sonar-supports-st-8722d4.sse",
        "output_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/ver-perplexity-citations.sse",
        "input_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "compat-perplexity/ver-perplexity-citations.sse",
        "output_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "openai-chat/rig-terminal-metadata-matrix-streaming-gpt-4-1-mini-tiny-plain-two.sse",
        "text",
    ): "choices joined",
    (
        "pydantic-ai, Chat Completions",
        "xai-chat/mag-openai-chat-model-xai-complete-image-bytes.sse",
        "input_tokens",
    ): "added-up usage",
    (
        "pydantic-ai, Chat Completions",
        "xai-chat/mag-openai-chat-model-xai-complete-image-bytes.sse",
        "output_tokens",
    ): "added-up usage",
    ("pydantic-ai, Chat Completions", "xai-chat/ver-xai-tool-call.sse", "output_tokens"): "reasoning on top",
    ("pydantic-ai, Responses", "compat-chatgpt-codex/lc-codex-custom-tool.sse", "calls"): "custom tool",
    ("pydantic-ai, Responses", "openai-responses/lc-custom-tool-r2.sse", "calls"): "custom tool",
    ("pydantic-ai, Messages", "anthropic/rf-compaction.sse", "input_tokens"): "compaction",
    ("pydantic-ai, Messages", "anthropic/rf-compaction.sse", "output_tokens"): "compaction",
    ("pydantic-ai, Messages", "anthropic/rf-programmatic-tool-calling-r2.sse", "calls"): "programmatic call",
    ("pydantic-ai, Messages", "anthropic/syn-spliced-message-start.sse", "calls"): "second message_start",
    ("pydantic-ai, Messages", "derived-failures/anthropic-close-after-message-delta.sse", "stop"): "no message_stop",
    ("google-genai", "derived-failures/gemini-malformed-function-call.sse", "output_tokens"): "unreported",
    ("google-genai", "gemini-sse/rf-vertex-streamed-args-string.sse", "calls"): "arguments by path",
    ("google-genai", "gemini-sse/rf-vertex-streamed-args-weather.sse", "calls"): "arguments by path",
}
