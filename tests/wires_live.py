"""Sessions by the grammar of their surfaces, written after the protocol pages: messages of the server, in order."""

from __future__ import annotations

from typing import Any, Final

from tests.wires import INTERACTIONS
from tests.wires_realtime import REALTIME_WIRES

Frame = dict[str, Any]

_PCM: Final = "audio/pcm;rate=24000"


def _said(text: str, **more: Any) -> Frame:
    return {"serverContent": {"outputTranscription": {"text": text, **more}}}


def _sound(data: str = "AAABAAIA") -> Frame:
    return {"serverContent": {"modelTurn": {"parts": [{"inlineData": {"mimeType": _PCM, "data": data}}]}}}


_HEARD: Final[Frame] = {"serverContent": {"inputTranscription": {"text": "Find a train\ud83d"}}}
_GENERATED: Final[Frame] = {"serverContent": {"generationComplete": True}}
_COUNTED: Final[Frame] = {
    "promptTokenCount": 12,
    "responseTokenCount": 40,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 57,
}
_OVER: Final[Frame] = {"serverContent": {"turnComplete": True}, "usageMetadata": _COUNTED}
_CALLS: Final[Frame] = {
    "toolCall": {
        "functionCalls": [
            {"id": "fc_1", "name": "find_train", "args": {"to": "Oslo"}},
            {"name": "find_hotel", "args": {"city": "Oslo", "nights": 2}},
            {"id": "fc_3", "name": "now", "args": {}},
        ]
    }
}

GEMINI_LIVE: Final[dict[str, list[Frame]]] = {
    "two turns, words late": [
        {"setupComplete": {"sessionId": "s"}},
        _HEARD,
        {"serverContent": {"modelTurn": {"parts": [{"text": "Hm.", "thought": True}, {"text": "Well"}]}}},
        {"serverContent": {**_sound()["serverContent"], "outputTranscription": {"text": "It is"}}},
        _sound("AAAB"),
        _GENERATED,
        _OVER,
        _said(" foggy."),
        {"serverContent": {}},
        _said("Next", finished=True),
        _sound(),
        {"serverContent": {"turnComplete": True, "turnCompleteReason": "NEED_MORE_INPUT"}},
    ],
    "calls, interrupted": [
        {"setupComplete": {}},
        _CALLS,
        {"serverContent": {"interrupted": True}, "toolCallCancellation": {"ids": ["fc_3", "fc_9"]}},
        {"serverContent": {"turnComplete": True}},
        {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4}},
        _said("Only the train", languageCode="en"),
        _OVER,
    ],
    "all members at once": [
        {
            "setupComplete": {},
            "serverContent": {
                "modelTurn": {"parts": [{"text": "Hi"}, {"executableCode": {}}]},
                "inputTranscription": {"text": "Hello?"},
                "outputTranscription": {"text": "Hi"},
                "turnComplete": True,
                "interactionStatus": "IDLE",
            },
            "toolCall": _CALLS["toolCall"],
            "toolCallCancellation": {"ids": ["fc_1"]},
            "usageMetadata": _COUNTED,
            "sessionResumptionUpdate": {"newHandle": "h", "resumable": True},
            "goAway": {"timeLeft": "9.500s"},
            "voiceActivity": {"voiceActivityType": "ACTIVITY_END"},
        },
    ],
    "taken up again": [
        {"setupComplete": {}},
        {"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}},
        {"sessionResumptionUpdate": {}},
        _said("One,"),
        {"goAway": {"timeLeft": "5s"}},
        {"setupComplete": {}},
        _said("Two"),
        {"serverContent": {"turnComplete": True, "interactionStatus": "IN_PROGRESS"}},
        _sound(),
        {"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}},
        _said("Three"),
    ],
}

LYRIA: Final[dict[str, list[Frame]]] = {
    "music": [
        {"setupComplete": {}},
        {"filteredPrompt": {"text": "a", "filteredReason": "b"}},
        {"serverContent": {"audioChunks": [{"data": "AAAB"}, {"data": "AAAC", "mimeType": "audio/opus"}]}},
        {"warning": "mind"},
        {"serverContent": {"audioChunks": [{"data": "AAAD", "sourceMetadata": {"clientContent": {}}}]}},
    ],
}


def _over_a_websocket(stream: list[Frame], size: int) -> list[Frame]:
    """Interactions: events one by one, or so many in a message; the connection is told of first."""
    if size == 1:
        return [{"event_type": "interaction.connected"}, *stream]
    batches = [{"events": stream[at : at + size]} for at in range(0, len(stream), size)]
    return [{"event_type": "interaction.connected"}, *batches, {"event_type": "reconnection_required"}]


INTERACTIONS_LIVE: Final[dict[str, list[Frame]]] = {
    f"{name}, {size} a message": _over_a_websocket(stream, size)
    for name, stream in INTERACTIONS.items()
    for size in (1, 3)
}

LIVE_WIRES: Final[dict[str, dict[str, list[Frame]]]] = {
    "gemini-live": GEMINI_LIVE,
    "gemini": INTERACTIONS_LIVE,
    "lyria": LYRIA,
    **REALTIME_WIRES,
}
"""Provider -> its sessions."""
