"""The streamed answer of any language-model provider as one typed event vocabulary, folded into blocks.

::

    with streamfold.iter_unified(response.iter_bytes(), "anthropic") as stream:
        for event in stream:
            ...
    answer = stream.snapshot()

Names are loaded when they are first asked for, so that the neutral layers load no provider.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamfold import client as client
    from streamfold.accumulator import (
        StreamAccumulator,
    )
    from streamfold.astream import (
        AsyncByteSource,
        AsyncPullStream,
        amap_event_stream,
        aparse_event_stream,
    )
    from streamfold.blocks import (
        ApprovalBlock,
        Block,
        JSONText,
        MediaBlock,
        OtherBlock,
        ReasoningBlock,
        RefusalBlock,
        TextBlock,
        ToolCallBlock,
        ToolResultBlock,
        TranscriptBlock,
    )
    from streamfold.decoder import (
        Cursor,
        Settings,
        StreamDecoder,
    )
    from streamfold.echo.results import (
        ToolResult,
        tool_results,
    )
    from streamfold.errors import (
        ChecksumMismatch,
        Empty,
        FrameTooLarge,
        FramingError,
        LinkError,
        Malformed,
        NotJSONArray,
        StreamError,
        StreamfoldError,
        TooDeep,
        TrailingData,
        Truncated,
        UsageError,
    )
    from streamfold.events import (
        BlockEnd,
        BlockStart,
        Citation,
        Done,
        ErrorEvent,
        ErrorKind,
        Event,
        GoAway,
        Interrupted,
        MediaDelta,
        Raw,
        ReasoningDelta,
        Restart,
        Session,
        Start,
        Stop,
        StopReason,
        TextDelta,
        ToolCallCancelled,
        ToolCallDelta,
        ToolCallDone,
        ToolCallStart,
        TranscriptDelta,
        Usage,
        decode_event,
        encode_event,
    )
    from streamfold.framing.json_array import (
        JSONArrayStreamParser,
    )
    from streamfold.framing.sse import (
        ServerSentEvent,
        SSEParser,
    )
    from streamfold.lint.linter import (
        CheckSettings,
        Linter,
        check,
    )
    from streamfold.lint.rules import (
        RULES,
        Finding,
        Rule,
    )
    from streamfold.lint.sessions import (
        SessionLinter,
        check_session,
    )
    from streamfold.live_session import (
        LiveSession,
        TurnEvent,
    )
    from streamfold.partial_json import (
        NOTHING,
        PartialJSON,
        parse_partial_json,
    )
    from streamfold.providers._table import (
        BaseNormalizer,
    )
    from streamfold.providers.anthropic import (
        AnthropicNormalizer,
    )
    from streamfold.providers.bedrock_converse import (
        BedrockConverseNormalizer,
    )
    from streamfold.providers.by_shape import (
        BedrockAnthropicNormalizer,
        BedrockInvokeNormalizer,
        GeminiNormalizer,
        XAINormalizer,
    )
    from streamfold.providers.cohere import (
        CohereNormalizer,
    )
    from streamfold.providers.gemini import (
        GeminiGenerateContentNormalizer,
    )
    from streamfold.providers.gemini_interactions import (
        GeminiInteractionsNormalizer,
    )
    from streamfold.providers.ollama import (
        OllamaNormalizer,
    )
    from streamfold.providers.openai_chat import (
        OpenAIChatNormalizer,
    )
    from streamfold.providers.openai_responses import (
        OpenAIResponsesNormalizer,
    )
    from streamfold.providers.registry import (
        Provider,
    )
    from streamfold.recording.files import (
        Recorder,
        Recording,
        Recordings,
        read_recording,
    )
    from streamfold.snapshot import (
        Choice,
        Outcome,
        Snapshot,
    )
    from streamfold.stream import (
        ByteSource,
        PullStream,
        map_event_stream,
        parse_event_stream,
    )
    from streamfold.timing import (
        Stopwatch,
        Timing,
    )
    from streamfold.transports.websocket import (
        LiveConnection,
        LiveObserver,
        live,
    )
    from streamfold.unified import (
        AsyncUnifiedStream,
        UnifiedStream,
        afold,
        aiter_traced,
        aiter_unified,
        fold,
        iter_traced,
        iter_unified,
    )
    from streamfold.views.sentences import (
        Sentence,
        SentenceStream,
        asentences,
        sentences,
    )

__version__ = "0.1.0"

__all__ = [
    "NOTHING",
    "RULES",
    "AnthropicNormalizer",
    "ApprovalBlock",
    "AsyncByteSource",
    "AsyncPullStream",
    "AsyncUnifiedStream",
    "BaseNormalizer",
    "BedrockAnthropicNormalizer",
    "BedrockConverseNormalizer",
    "BedrockInvokeNormalizer",
    "Block",
    "BlockEnd",
    "BlockStart",
    "ByteSource",
    "CheckSettings",
    "ChecksumMismatch",
    "Choice",
    "Citation",
    "CohereNormalizer",
    "Cursor",
    "Done",
    "Empty",
    "ErrorEvent",
    "ErrorKind",
    "Event",
    "Finding",
    "FrameTooLarge",
    "FramingError",
    "GeminiGenerateContentNormalizer",
    "GeminiInteractionsNormalizer",
    "GeminiNormalizer",
    "GoAway",
    "Interrupted",
    "JSONArrayStreamParser",
    "JSONText",
    "LinkError",
    "Linter",
    "LiveConnection",
    "LiveObserver",
    "LiveSession",
    "Malformed",
    "MediaBlock",
    "MediaDelta",
    "NotJSONArray",
    "OllamaNormalizer",
    "OpenAIChatNormalizer",
    "OpenAIResponsesNormalizer",
    "OtherBlock",
    "Outcome",
    "PartialJSON",
    "Provider",
    "PullStream",
    "Raw",
    "ReasoningBlock",
    "ReasoningDelta",
    "Recorder",
    "Recording",
    "Recordings",
    "RefusalBlock",
    "Restart",
    "Rule",
    "SSEParser",
    "Sentence",
    "SentenceStream",
    "ServerSentEvent",
    "Session",
    "SessionLinter",
    "Settings",
    "Snapshot",
    "Start",
    "Stop",
    "StopReason",
    "Stopwatch",
    "StreamAccumulator",
    "StreamDecoder",
    "StreamError",
    "StreamfoldError",
    "TextBlock",
    "TextDelta",
    "Timing",
    "TooDeep",
    "ToolCallBlock",
    "ToolCallCancelled",
    "ToolCallDelta",
    "ToolCallDone",
    "ToolCallStart",
    "ToolResult",
    "ToolResultBlock",
    "TrailingData",
    "TranscriptBlock",
    "TranscriptDelta",
    "Truncated",
    "TurnEvent",
    "UnifiedStream",
    "Usage",
    "UsageError",
    "XAINormalizer",
    "afold",
    "aiter_traced",
    "aiter_unified",
    "amap_event_stream",
    "aparse_event_stream",
    "asentences",
    "check",
    "check_session",
    "decode_event",
    "encode_event",
    "fold",
    "iter_traced",
    "iter_unified",
    "live",
    "map_event_stream",
    "parse_event_stream",
    "parse_partial_json",
    "read_recording",
    "sentences",
    "tool_results",
]

_HOMES = {
    "accumulator": ("StreamAccumulator",),
    "astream": (
        "AsyncByteSource",
        "AsyncPullStream",
        "amap_event_stream",
        "aparse_event_stream",
    ),
    "blocks": (
        "ApprovalBlock",
        "Block",
        "JSONText",
        "MediaBlock",
        "OtherBlock",
        "ReasoningBlock",
        "RefusalBlock",
        "TextBlock",
        "ToolCallBlock",
        "ToolResultBlock",
        "TranscriptBlock",
    ),
    "decoder": (
        "Cursor",
        "Settings",
        "StreamDecoder",
    ),
    "echo.results": (
        "ToolResult",
        "tool_results",
    ),
    "errors": (
        "ChecksumMismatch",
        "Empty",
        "FrameTooLarge",
        "FramingError",
        "LinkError",
        "Malformed",
        "NotJSONArray",
        "StreamError",
        "StreamfoldError",
        "TooDeep",
        "TrailingData",
        "Truncated",
        "UsageError",
    ),
    "events": (
        "BlockEnd",
        "BlockStart",
        "Citation",
        "Done",
        "ErrorEvent",
        "ErrorKind",
        "Event",
        "GoAway",
        "Interrupted",
        "MediaDelta",
        "Raw",
        "ReasoningDelta",
        "Restart",
        "Session",
        "Start",
        "Stop",
        "StopReason",
        "TextDelta",
        "ToolCallCancelled",
        "ToolCallDelta",
        "ToolCallDone",
        "ToolCallStart",
        "TranscriptDelta",
        "Usage",
        "decode_event",
        "encode_event",
    ),
    "framing.json_array": ("JSONArrayStreamParser",),
    "framing.sse": (
        "SSEParser",
        "ServerSentEvent",
    ),
    "lint.linter": (
        "CheckSettings",
        "Linter",
        "check",
    ),
    "lint.rules": (
        "RULES",
        "Finding",
        "Rule",
    ),
    "lint.sessions": (
        "SessionLinter",
        "check_session",
    ),
    "live_session": (
        "LiveSession",
        "TurnEvent",
    ),
    "partial_json": (
        "NOTHING",
        "PartialJSON",
        "parse_partial_json",
    ),
    "providers._table": ("BaseNormalizer",),
    "providers.anthropic": ("AnthropicNormalizer",),
    "providers.bedrock_converse": ("BedrockConverseNormalizer",),
    "providers.by_shape": (
        "BedrockAnthropicNormalizer",
        "BedrockInvokeNormalizer",
        "GeminiNormalizer",
        "XAINormalizer",
    ),
    "providers.cohere": ("CohereNormalizer",),
    "providers.gemini": ("GeminiGenerateContentNormalizer",),
    "providers.gemini_interactions": ("GeminiInteractionsNormalizer",),
    "providers.ollama": ("OllamaNormalizer",),
    "providers.openai_chat": ("OpenAIChatNormalizer",),
    "providers.openai_responses": ("OpenAIResponsesNormalizer",),
    "providers.registry": ("Provider",),
    "recording.files": (
        "Recorder",
        "Recording",
        "Recordings",
        "read_recording",
    ),
    "snapshot": (
        "Choice",
        "Outcome",
        "Snapshot",
    ),
    "stream": (
        "ByteSource",
        "PullStream",
        "map_event_stream",
        "parse_event_stream",
    ),
    "timing": (
        "Stopwatch",
        "Timing",
    ),
    "transports.websocket": (
        "LiveConnection",
        "LiveObserver",
        "live",
    ),
    "unified": (
        "AsyncUnifiedStream",
        "UnifiedStream",
        "afold",
        "aiter_traced",
        "aiter_unified",
        "fold",
        "iter_traced",
        "iter_unified",
    ),
    "views.sentences": (
        "Sentence",
        "SentenceStream",
        "asentences",
        "sentences",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_WITH_EXTRAS = ("client",)
"""Modules that need more than the package itself, and so export nothing from here but themselves."""


if not TYPE_CHECKING:  # a checker that sees this takes every name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _WITH_EXTRAS:
            return import_module(f"{__name__}.{name}")
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{module}"), name)
        globals()[name] = value  # the next access is a plain one
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_WITH_EXTRAS})
