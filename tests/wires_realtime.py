"""Sessions of Realtime, of Responses over a WebSocket and of xAI's speech, by the grammar of their pages."""

from __future__ import annotations

from typing import Any, Final

Frame = dict[str, Any]

_TRANSCRIPTION: Final = "conversation.item.input_audio_transcription"
_COUNTED: Final[Frame] = {"total_tokens": 7, "input_tokens": 3, "output_tokens": 4}


def _session(kind: str = "created", **members: Any) -> Frame:
    return {"type": f"session.{kind}", "session": {"id": "s1", "model": "m1", **members}}


def _created(id_: str, **more: Any) -> Frame:
    return {"type": "response.created", "response": {"id": id_, "status": "in_progress", **more}}


def _of(kind: str, id_: str, item: str, **more: Any) -> Frame:
    return {"type": f"response.{kind}", "response_id": id_, "item_id": item, "content_index": 0, **more}


def _item(kind: str, id_: str, **members: Any) -> Frame:
    return {"type": f"response.output_item.{kind}", "response_id": id_, "output_index": 0, "item": members}


def _over(id_: str, status: str = "completed", reason: str | None = None, **more: Any) -> Frame:
    details = {"type": status, "reason": reason} if reason else None
    response = {"id": id_, "status": status, "status_details": details, "output": [], "usage": _COUNTED, **more}
    return {"type": "response.done", "response": response}


def _heard(kind: str, **more: Any) -> Frame:
    return {"type": f"{_TRANSCRIPTION}.{kind}", "item_id": "u1", "content_index": 0, **more}


def _call(kind: str, id_: str, status: str, arguments: str = "") -> Frame:
    call = {"id": "c1", "type": "function_call", "status": status, "call_id": "call_1", "name": "find_train"}
    return _item(kind, id_, **call, arguments=arguments)


_SPEECH: Final[Frame] = {"type": "input_audio_buffer.speech_started", "item_id": "u1", "audio_start_ms": 9}
_COMMITTED: Final[Frame] = {"type": "input_audio_buffer.committed", "item_id": "u1"}
_ARGUMENTS: Final = "function_call_arguments"
_WORDS: Final = "output_audio_transcript"

OPENAI_REALTIME: Final[dict[str, list[Frame]]] = {
    "words late, a call beside text": [
        _session(),
        _COMMITTED,
        _created("r1"),
        _heard("delta", delta="Find a train\ud83d"),
        _item("added", "r1", id="i1", type="message", status="in_progress"),
        _of("output_text.delta", "r1", "i1", delta="Let me"),
        _call("added", "r1", "in_progress"),
        _of(f"{_ARGUMENTS}.delta", "r1", "c1", delta='{"to":'),
        _of("output_text.delta", "r1", "i1", delta=" see."),
        _of("output_text.done", "r1", "i1", text="Let me see."),
        _of(f"{_ARGUMENTS}.done", "r1", "c1", arguments='{"to":"Oslo"}', call_id="call_1", name="find_train"),
        _call("done", "r1", "completed", '{"to":"Oslo"}'),
        _over("r1"),
        {"type": "rate_limits.updated", "rate_limits": []},
        _heard("completed", transcript="Find a train."),
    ],
    "broken in on": [
        _session(audio={"output": {"format": {"type": "audio/pcm", "rate": 24000}}}),
        _created("r1"),
        _of(f"{_WORDS}.delta", "r1", "i1", delta="The hist"),
        _of("output_audio.delta", "r1", "i1", delta="AAABAAIA"),
        _call("added", "r1", "in_progress"),
        _of(f"{_ARGUMENTS}.done", "r1", "c1", arguments='{"to"'),
        _SPEECH,
        _of(f"{_WORDS}.done", "r1", "i1", transcript="The hist"),
        _over("r1", "cancelled", "turn_detected"),
        _COMMITTED,
        _created("r2"),
        _heard("delta", delta="Stop"),
        {"type": "error", "error": {"code": "response_cancel_not_active", "message": "no"}},
        _over("r2", "failed"),
        _heard("failed", error={"code": "x"}),
    ],
    "older names, responses beside each other": [
        _session(),
        _created("r1", conversation_id="c"),
        _created("r2", conversation_id=None),
        _of("text.delta", "r1", "i1", delta="One"),
        _of("audio_transcript.delta", "r2", "i1", delta="Two"),
        _of("audio.delta", "r2", "i1", delta="AAAB"),
        _over("r2", "incomplete", "max_output_tokens"),
        _of("text.done", "r1", "i1", text="One."),
        _over("r1", "incomplete", "content_filter"),
    ],
    "the provider's tools": [
        _created("r1"),
        _item("added", "r1", id="p1", type="mcp_call", name="look", server_label="s", arguments=""),
        _of("mcp_call_arguments.delta", "r1", "p1", delta="{}"),
        _item("done", "r1", id="p1", type="mcp_call", name="look", arguments="{}", output="ok"),
        _item("done", "r1", id="a1", type="mcp_approval_request", name="look", arguments="{}"),
        _over("r1"),
    ],
    "what is only written down": [
        _session(type="transcription"),
        _heard("delta", delta="one"),
        _heard("completed", transcript="One.", usage=_COUNTED),
    ],
    "a translation": [
        {"type": "session.input_transcript.delta", "delta": "Hallo"},
        {"type": "session.output_transcript.delta", "delta": "Hello"},
        {"type": "session.output_audio.delta", "delta": "AAAB", "format": "pcm16", "sample_rate": 24000},
        {"type": "session.closed", "reason": "close_requested"},
    ],
}

XAI_REALTIME: Final[dict[str, list[Frame]]] = {
    "words from the beginning each time": [
        _session(),
        {"type": "conversation.created", "conversation": {"id": "conv"}},
        {"type": "ping", "timestamp": 1},
        _session("updated", resumption={"enabled": True}),
        _heard("updated", transcript="What is"),
        _heard("updated", transcript="What's the wet"),
        _heard("completed", transcript="What's the weather", status="in_progress"),
        _created("r1"),
        _of(f"{_WORDS}.delta", "r1", "i1", delta="I'll look."),
        _item("done", "r1", id="i1", type="message", status="completed"),
        _call("added", "r1", "in_progress"),
        _of(f"{_ARGUMENTS}.delta", "r1", "c1", delta="{}"),
        _call("done", "r1", "completed", "{}"),
        {**_over("r1", usage={}), "usage": _COUNTED},
        _heard("completed", transcript="What's the weather?", status="completed"),
    ],
}


def _streamed(kind: str, lane: str | None = None, **members: Any) -> Frame:
    frame = {"type": f"response.{kind}" if kind != "error" else kind, **members}
    return frame if lane is None else {**frame, "stream_id": lane}


def _text(piece: str, lane: str | None = None) -> Frame:
    return _streamed("output_text.delta", lane, output_index=0, item_id="m1", content_index=0, delta=piece)


RESPONSES: Final[dict[str, list[Frame]]] = {
    "one after another": [
        _streamed("created", response={"id": "a"}),
        _text("one"),
        _streamed("completed", response={"id": "a", "status": "completed", "usage": _COUNTED}),
        _streamed("created", response={"id": "b"}),
        _text("two"),
        _streamed("incomplete", response={"id": "b", "incomplete_details": {"reason": "steered"}}),
        _streamed("created", response={"id": "c"}),
        _text("three"),
        _streamed("completed", response={"id": "c"}),
    ],
    "lanes and errors": [
        _streamed("created", response={"id": "a"}),
        _streamed("created", "left", response={"id": "b"}),
        _text("B", "left"),
        _text("A"),
        _streamed("error", "left", status=400, error={"code": "boom", "message": "no"}),
        _streamed("steer.accepted", steer={"id": "s"}),
        _streamed("completed", response={"id": "a"}),
        _streamed("error", code="server_error", message="no"),
        _streamed("error", status=400, error={"code": "websocket_connection_limit_reached", "message": "60"}),
    ],
}

XAI_STT: Final[dict[str, list[Frame]]] = {
    "utterances": [
        {"type": "transcript.created"},
        {"type": "transcript.partial", "text": "turn", "is_final": False, "speech_final": False},
        {"type": "transcript.partial", "text": "turn on", "is_final": True, "speech_final": False},
        {"type": "transcript.partial", "text": "turn on the lights", "is_final": True, "speech_final": True},
        {"type": "transcript.partial", "text": "now", "is_final": True, "speech_final": False},
        {"type": "transcript.done", "text": "", "duration": 1.5},
        {"type": "error", "message": "no"},
    ],
}

XAI_TTS: Final[dict[str, list[Frame]]] = {
    "utterances": [
        {"type": "audio.delta", "delta": "AAABAAIA"},
        {"type": "audio.delta", "delta": "", "words": []},
        {"type": "audio.done"},
        {"type": "audio.delta", "delta": "AAAB"},
        {"type": "audio.clear"},
        {"type": "error", "message": "no"},
    ],
}

REALTIME_WIRES: Final[dict[str, dict[str, list[Frame]]]] = {
    "openai-realtime": OPENAI_REALTIME,
    "xai-realtime": XAI_REALTIME,
    "openai-responses": RESPONSES,
    "xai-stt": XAI_STT,
    "xai-tts": XAI_TTS,
}
"""Provider -> its sessions."""
