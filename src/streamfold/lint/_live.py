"""Sessions over a WebSocket that are no event stream: Gemini Live, Lyria, Interactions, xAI's speech, Responses.

A session is many turns, and has a client whose messages count where the session was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from streamfold.lint._gemini import GeminiCheck, InteractionsCheck
from streamfold.lint._realtime import RealtimeCheck, XAIRealtimeCheck
from streamfold.lint._responses import TERMINAL, ResponsesCheck
from streamfold.lint._surface import Known, Members, SurfaceCheck, entries, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers import gemini_live

__all__ = [
    "LIVE",
    "GeminiLiveCheck",
    "InteractionsSocketCheck",
    "LyriaCheck",
    "ResponsesSocketCheck",
    "SpeechToTextCheck",
    "TextToSpeechCheck",
]

_DURATION: Final = re.compile(r"\d+(\.\d+)?s\Z").match
_MAX_CALLS: Final = 1_000  # ids that are remembered
_MAX_LANES: Final = 64  # 32 are allowed


class BidiCheck(SurfaceCheck):
    """What Google's two bidirectional surfaces share: a setup and its answer, messages of one member."""

    client: ClassVar[frozenset[str]]
    """Members that a message of the client may have, exactly one each."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._ready = self._asked = False

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        if "setupComplete" in members:
            if self._ready:
                self.report("restarted", "a second setupComplete comes")
        elif not self._ready and members:
            self.report("order", f"{shown(next(iter(members)))} comes before setupComplete")
        self._ready = True

    def sent(self, members: Members) -> None:
        """See the base."""
        names = {_camel(name) for name in members}
        if len(names) != 1 or not names <= self.client:
            self.report("client_message", f"a message of the client has the members {shown(sorted(members))}")
        elif "setup" in names:
            if self._asked:
                self.report("client_message", "the client sends a second setup")
        elif not self._ready:
            self.report("client_message", f"the client sends {shown(next(iter(members)))} before setupComplete")
        self._asked = True


class GeminiLiveCheck(BidiCheck):
    """Turns of Gemini Live. One message may hold several members."""

    client: ClassVar[frozenset[str]] = frozenset(
        {"setup", "clientContent", "realtimeInput", "toolResponse", "contextUpdate"}
    )
    known: ClassVar[Known] = {
        "the payload": frozenset({*gemini_live.MEMBERS, "error", "code", "message"}),
        "serverContent": frozenset(
            {
                *("modelTurn", "outputTranscription", "inputTranscription", "interimInputTranscription"),
                *("generationComplete", "interrupted", "turnComplete", "turnCompleteReason", "interactionStatus"),
                *("groundingMetadata", "urlContextMetadata", "waitingForInput"),
            }
        ),
        "a part": GeminiCheck.known["a part"],
        "a function call": frozenset({"id", "name", "args", "partialArgs", "willContinue"}),
        "sessionResumptionUpdate": frozenset({"newHandle", "resumable", "lastConsumedClientMessageIndex"}),
        "goAway": frozenset({"timeLeft"}),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._generated = self._interrupted = False  # this turn
        self._calls: dict[str, None] = {}

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        content = object_of(members.get("serverContent"))
        yield "the payload", members
        yield "serverContent", content
        for part in entries(object_of(content.get("modelTurn")).get("parts")):
            yield "a part", part
        for call in entries(object_of(members.get("toolCall")).get("functionCalls")):
            yield "a function call", call
        for name in ("sessionResumptionUpdate", "goAway"):
            yield name, object_of(members.get(name))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        super().read(members, name)
        for call in entries(object_of(members.get("toolCall")).get("functionCalls")):
            self._call(call)
        cancelled = object_of(members.get("toolCallCancellation")).get("ids")
        for id_ in cancelled if isinstance(cancelled, list) else ():
            if not isinstance(id_, str) or id_ not in self._calls:
                self.report("unknown_call", f"the call {shown(id_)} is taken back and never came")
        self._content(object_of(members.get("serverContent")))
        left = object_of(members.get("goAway")).get("timeLeft")
        if left is not None and not (isinstance(left, str) and _DURATION(left)):
            self.report("wrong_type", f"timeLeft is {shown(left)}, and no duration such as '9.5s'")
        update = object_of(members.get("sessionResumptionUpdate"))
        if update.get("resumable") is True and not text_in(update, "newHandle"):
            self.report("no_handle", "a session is called resumable without a handle")

    def _call(self, call: Members) -> None:
        if not text_in(call, "name"):
            self.report("no_call_name", "a functionCall has no name")
        if not isinstance(call.get("args", {}), dict):
            self.report("wrong_type", f"the args of {shown(text_in(call, 'name'))} are no object")
        if len(self._calls) < _MAX_CALLS:
            self._calls[text_in(call, "id")] = None

    def _content(self, content: Members) -> None:
        if content.get("modelTurn") and self._generated:
            self.report("content_after_finish", "content comes after generationComplete")
        if content.get("interrupted") is True:
            self._interrupted = True
        if content.get("generationComplete") is True:
            if self._interrupted:
                self.report("order", "generationComplete comes in a turn that was interrupted")
            if self._generated:
                self.report("terminal_twice", "generationComplete comes twice in a turn")
            self._generated = True
        if content.get("turnComplete") is True:
            self._generated = self._interrupted = False

    def sent(self, members: Members) -> None:
        """See the base."""
        super().sent(members)
        answer = object_of(members.get("toolResponse") or members.get("tool_response"))
        results = answer.get("functionResponses") or answer.get("function_responses")
        for result in entries(results):
            if not text_in(result, "id"):
                self.report("no_call_id", "a result of the client's does not name its call")
            elif result["id"] not in self._calls and len(self._calls) < _MAX_CALLS:
                self.report("unknown_call", f"the client answers the call {shown(result['id'])}, which never came")


class LyriaCheck(BidiCheck):
    """Music without turns."""

    has_usage: ClassVar[bool] = False
    client: ClassVar[frozenset[str]] = frozenset({"setup", "clientContent", "musicGenerationConfig", "playbackControl"})
    known: ClassVar[Known] = {
        "the payload": frozenset({"setupComplete", "serverContent", "filteredPrompt", "warning", "error"}),
        "serverContent": frozenset({"audioChunks"}),
        "an audio chunk": frozenset({"data", "mimeType", "sourceMetadata"}),
    }

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        content = object_of(members.get("serverContent"))
        yield "the payload", members
        yield "serverContent", content
        for chunk in entries(content.get("audioChunks")):
            yield "an audio chunk", chunk

    def sent(self, members: Members) -> None:
        """See the base."""
        super().sent(members)
        content = object_of(members.get("clientContent") or members.get("client_content"))
        for prompt in entries(content.get("weightedPrompts") or content.get("weighted_prompts")):
            if prompt.get("weight") == 0:
                self.report("client_message", "the client weighs a prompt with 0")


class InteractionsSocketCheck(InteractionsCheck):
    """Interactions over a WebSocket: events alone or several in a message, and no ``[DONE]``."""

    needs_done: ClassVar[bool] = False

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._created = True  # a connection may join an interaction that runs

    def payload(self, members: Members, name: str | None) -> None:
        """See the base."""
        for event in entries(members.get("events")) if "events" in members else [members]:
            if text_in(event, "event_type") == "interaction.created":
                self._created = False
            super().payload(event, None)


class ResponsesSocketCheck(SurfaceCheck):
    """Responses over a WebSocket: one after another, and side by side in lanes; each is numbered for itself."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._lanes: dict[str, ResponsesCheck] = {}

    def payload(self, members: Members, name: str | None) -> None:
        """See the base."""
        lane, kind = text_in(members, "stream_id"), text_in(members, "type")
        if not kind.startswith("response.") or kind.startswith("response.steer."):
            return
        check = self._lanes.get(lane)
        id_ = object_of(members.get("response")).get("id")
        if check is None or (kind == "response.created" and check.id != id_):
            while len(self._lanes) >= _MAX_LANES:
                del self._lanes[next(iter(self._lanes))]
            check = self._lanes[lane] = ResponsesCheck(self.report)
        check.payload(members, None)
        if kind in TERMINAL:
            del self._lanes[lane]


class SpeechToTextCheck(SurfaceCheck):
    """xAI's transcripts: created, partial ones, done."""

    has_usage: ClassVar[bool] = False
    known: ClassVar[Known] = {
        "the payload": frozenset(
            {
                *("type", "event_id", "text", "is_final", "speech_final", "words", "language", "duration", "message"),
                *("start", "end", "channel", "channel_index", "speaker", "code", "error"),
            }
        )
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._created = False

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "type")
        if kind == "transcript.created":
            if self._created:
                self.report("restarted", "a second transcript.created comes")
        elif not self._created:
            self.report("order", f"{kind} comes before transcript.created")
        self._created = True
        if kind == "transcript.partial" and members.get("speech_final") is True and members.get("is_final") is not True:
            self.report("order", "an utterance is over while its last part is not final")


class TextToSpeechCheck(SurfaceCheck):
    """xAI's speech: pieces of audio, and an end for each utterance that the client asked for."""

    has_usage: ClassVar[bool] = False
    known: ClassVar[Known] = {
        "the payload": frozenset(
            {"type", "event_id", "delta", "timestamps", "words", "message", "code", "error", "characters", "duration"}
        )
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._asked: int | None = None  # utterances that wait for their end; None: the client was not heard

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        yield "the payload", members

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        kind = text_in(members, "type")
        if kind == "audio.done" and self._asked is not None:
            if self._asked == 0:
                self.report("order", "audio.done comes, and no utterance waits for it")
            self._asked = max(0, self._asked - 1)

    def sent(self, members: Members) -> None:
        """See the base."""
        kind = text_in(members, "type")
        if kind not in ("text.delta", "text.done", "text.clear"):
            self.report("client_message", f"the client sends {shown(kind)}")
        self._asked = self._asked or 0
        if kind == "text.done":
            self._asked += 1
        elif kind == "text.clear":
            self._asked = 0


def _camel(name: str) -> str:
    """A member's name as the server spells it; clients may write it with underscores."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


LIVE: Final[Mapping[str, Callable[[Report], SurfaceCheck]]] = {
    # surface, in whole messages -> its rules
    "gemini-live": GeminiLiveCheck,
    "gemini-interactions": InteractionsSocketCheck,
    "lyria": LyriaCheck,
    "openai-responses": ResponsesSocketCheck,
    "openai-realtime": RealtimeCheck,
    "xai-realtime": XAIRealtimeCheck,
    "xai-stt": SpeechToTextCheck,
    "xai-tts": TextToSpeechCheck,
}
