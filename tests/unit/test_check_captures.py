"""The wire linter over the recorded streams: what it has to say of each, and that it is quiet on healthy ones."""

from __future__ import annotations

from typing import Any

import pytest

from streamfold import RULES, Finding, check
from tests.conftest import ROOT, SHARED
from tests.evidence import cut, every_capture

CAPTURES = {name: (body, facts) for name, body, facts in every_capture(SHARED)}
RECORDINGS = sorted(
    path for path in (ROOT / "examples" / "recordings").iterdir() if path.suffix not in (".md", ".py", ".txt")
)
OFFICIAL = ("anthropic/", "bedrock-", "compat-cohere/", "openai-", "gemini-", "xai-")

FAULTS: dict[str, set[str]] = {
    # capture -> rules of errors and warnings that it breaks; all others break none
    # cut or edited by who recorded them
    "anthropic/sdk-tool-input-cut-at-max-tokens-no-block-stop.sse": {"no_blank_line", "not_closed"},
    "anthropic/sdk-tool-use.sse": {"no_blank_line"},
    "anthropic/syn-spliced-message-start.sse": {"restarted"},
    "bedrock-converse/rf-tool-no-args.bin": {"order", "wrong_type"},  # framed again from a list of other events
    "gemini-sse/gold-prompt-blocked-safety-googleai.sse": {"no_blank_line"},
    "gemini-sse/gold-prompt-blocked-with-message.sse": {"no_blank_line"},
    "gemini-sse/gold-quotes-escaped.sse": {"no_blank_line", "truncated"},
    # failures that a surface tells outside of its framing, or does not tell
    "gemini-sse/gold-error-mid-stream-bare-json.sse": {"bare_text"},
    "derived-failures/anthropic-close-after-message-delta.sse": {"truncated"},
    "derived-failures/anthropic-vertex-event-inserted.sse": {"unknown_type"},
    "derived-failures/bedrock-converse-bad-message-crc.bin": {"bad_checksum"},
    "derived-failures/gemini-503-bare-json-after-finish.sse": {"bare_text"},
    "derived-failures/interactions-refusal-bare-json-line.sse": {"bare_text"},
    # a realtime session, which is no stream of Chat Completions
    "openai-chat/ver-openai-realtime-speech-translation.sse": {"unknown_surface"},
    # the dialects of other hosts
    "compat-alibaba-dashscope/ver-alibaba-tool-call.sse": {"empty_id"},
    "compat-azure/rllm-function-calling-azure-grok-4-1-fast-non-reasoni-4e3c4f-r2.sse": {"usage_part"},
    "compat-chatgpt-codex/rig-codex-sessions-long-history-replay-nonstreaming.sse": {"output_differs"},
    "compat-copilot/rig-reasoning-roundtrip-streaming.sse": {"id_changes"},
    "compat-copilot/ver-github-copilot-id-rotation-1.sse": {"id_changes"},
    "compat-doubleword/rig-prompt-caching-streaming-probe-r1.sse": {"usage_part"},
    "compat-gpustack/rllm-streaming-responses-gpustack-qwen3-supports-streaming-responses.sse": {"no_done"},
    "compat-groq/pai-groq-groq-model-web-search-tool-stream.sse": {"id_changes"},
    "compat-huggingface-router/clas-provider-huggingface-huggingface-respects-turns-interface-r2.sse": {"no_done"},
    "compat-huggingface-router/clas-provider-huggingface-huggingface-respects-turns-interface.sse": {"no_done"},
    "compat-huggingface-router/clas-provider-huggingface-huggingface-simple-request.sse": {"no_done"},
    "compat-lmstudio/ver-lmstudio-tool-call-1.sse": {"end_adds"},
    "compat-local-proxy/ollm-completion-streaming.sse": {"no_index"},
    "compat-mistral/mag-mistral-chat-model-complete-function-call.sse": {"no_index"},
    "compat-mistral/oinf-synchronous-streaming-chat-completions-with-tool-6afee5.sse": {"no_index"},
    "compat-openrouter/pai-openai-responses-openai-responses-raw-cot-stream-openrouter.sse": {"foreign_done"},
    "compat-perplexity/rig-prompt-caching-streaming-probe-r1.sse": {"no_done", "unknown_type", "id_changes"},
    "compat-perplexity/rig-raw-stream-capture-matrix-stream-raw-round-trips-terminal-type.sse": {
        *("no_done", "unknown_type", "id_changes")
    },
    "compat-perplexity/rllm-streaming-responses-perplexity-sonar-supports-st-8722d4.sse": {"no_done", "unknown_type"},
    "compat-perplexity/ver-perplexity-citations.sse": {"no_done", "unknown_type"},
    "compat-snowflake/pai-snowflake-snowflake-thinking-streaming.sse": {"no_finish_reason"},
}

FAULTY_RECORDINGS = {  # all others break no rule but such as are noted
    "openai-responses-cut.sse": {"no_blank_line", "truncated", "bad_utf8"},
    "xai-messages-index.sse": {"index_reused", "no_index"},  # what xAI's surface does, and Anthropic's does not
}


def findings(body: bytes, provider: str, step: int) -> list[Finding]:
    with check(cut(body, step), provider) as found:
        return list(found)


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_has_the_findings_that_it_earns(name: str, record_property: Any) -> None:
    body, facts = CAPTURES[name]
    found = findings(body, facts["provider"], 4096)
    assert {f.code for f in found if f.severity != "note"} == FAULTS.get(name, set()), [str(f) for f in found]
    assert findings(body, facts["provider"], 17) == found
    record_property("ran", "linted captures=1")


def test_every_capture_with_faults_is_there(shared: object) -> None:
    assert not FAULTS.keys() - CAPTURES.keys()


def test_official_streams_that_are_whole_have_no_errors() -> None:
    """A provider's own word is what its surface is: an error there would be the linter's."""
    wrong = {name for name, codes in FAULTS.items() if any(RULES[code].severity == "error" for code in codes)}
    assert sorted(name for name in wrong if name.startswith(OFFICIAL)) == [
        "bedrock-converse/rf-tool-no-args.bin",
        "gemini-sse/gold-error-mid-stream-bare-json.sse",
        "gemini-sse/gold-quotes-escaped.sse",
        "openai-chat/ver-openai-realtime-speech-translation.sse",
    ]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_the_recordings_of_the_repository(recording: Any) -> None:
    found = findings(recording.read_bytes(), "auto", 4096)
    assert {f.code for f in found if f.severity != "note"} == FAULTY_RECORDINGS.get(recording.name, set())
    assert findings(recording.read_bytes(), "auto", 1) == found
