"""xAI's speech APIs over WebSockets: speech to text, and text to speech.

Speech to text writes down what it hears until the client says that there is no more: that is one turn. Text to speech
speaks one utterance after another: each is a turn.

Source: the vendor's guides and clients that others wrote. No real session was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from streamfold.events import Interrupted
from streamfold.payloads import Payload, read_object
from streamfold.providers._errors import provider_error
from streamfold.providers._live import LiveNormalizer, TurnAnswer
from streamfold.providers._open_blocks import OpenMedia, OpenTranscript
from streamfold.providers._table import text_of

__all__ = ["XAISpeechToTextNormalizer", "XAITextToSpeechNormalizer"]

Members: TypeAlias = dict[str, Any]


class _SpeechNormalizer(LiveNormalizer):
    """What the two have in common: one turn at a time, and an error ends it."""

    def _message(self, payload: Payload) -> bool:
        event = read_object(payload, self.answer.max_depth, ("text",))
        if event is None:
            return False
        read = self._event(text_of(event.get("type")))
        if read is not None:
            read(event)
        return read is not None

    def _event(self, kind: str) -> Callable[[Members], None] | None:
        raise NotImplementedError

    def _current(self) -> TurnAnswer | None:
        return next((turn for turn in self.open.values() if not turn.ended), None)

    def _speaking(self) -> TurnAnswer:
        return self._current() or self.open_turn()

    def _error(self, event: Members) -> None:
        error = event.get("error") or event.get("message")
        self._fail(provider_error(error, event))

    def _nothing(self, event: Members) -> None:
        """Means nothing to an answer."""
        self.answer.raw()


class XAISpeechToTextNormalizer(_SpeechNormalizer):
    """Messages of ``/v1/stt`` to unified events."""

    surface = "xai-stt"
    terminal = "transcript.done"

    def _begin(self) -> None:
        super()._begin()
        self._utterance: OpenTranscript | None = None
        self._utterances = 0  # of the turn that are whole

    def _event(self, kind: str) -> Callable[[Members], None] | None:
        read = STT_EVENTS.get(kind)
        return None if read is None else lambda event: read(self, event)

    def _partial(self, event: Members) -> None:
        """What is not final will be said again; what ends an utterance repeats all of it."""
        turn, text = self._speaking(), text_of(event.get("text"))
        if event.get("speech_final") is True and (text or self._open_block(turn) is not None):
            self._utter(turn, text)
        elif event.get("is_final") is True and text:
            block = self._block(turn)
            told = block.whole()
            apart = told and not told[-1].isspace() and not text[0].isspace()
            if told and text.startswith(told):
                turn.revise(block, text)
            else:
                turn.transcript(block, f" {text}" if apart else text)
        else:
            turn.raw()

    def _done(self, event: Members) -> None:
        """The end of all that was said, which may be there once more."""
        turn, text = self._speaking(), text_of(event.get("text"))
        if self._utterance is not None or not self._utterances:
            self._utter(turn, "" if self._utterances else text)
        self._utterances = 0
        turn.stop(0, "end", None)
        self.end_turn(turn)

    def _utter(self, turn: TurnAnswer, text: str) -> None:
        """An utterance is over."""
        block = self._block(turn) if text else self._open_block(turn)
        if block is None:
            return
        if text:
            turn.revise(block, text, final=True)
        turn.close(block)
        self._utterance, self._utterances = None, self._utterances + 1

    def _open_block(self, turn: TurnAnswer) -> OpenTranscript | None:
        block = self._utterance
        return block if block is not None and turn.open.get(block.index) is block else None

    def _block(self, turn: TurnAnswer) -> OpenTranscript:
        block = self._open_block(turn)
        if block is None:
            block = self._utterance = turn.open_transcript("user")
        return block


class XAITextToSpeechNormalizer(_SpeechNormalizer):
    """Messages of ``/v1/tts`` to unified events."""

    surface = "xai-tts"
    terminal = "audio.done"

    def _begin(self) -> None:
        super()._begin()
        self._audio: OpenMedia | None = None

    def _event(self, kind: str) -> Callable[[Members], None] | None:
        read = TTS_EVENTS.get(kind)
        return None if read is None else lambda event: read(self, event)

    def _delta(self, event: Members) -> None:
        """A piece of audio; times of words may come without any."""
        data = text_of(event.get("delta"))
        if not data:
            self.answer.raw()
            return
        turn, block = self._speaking(), self._audio
        if block is None or turn.open.get(block.index) is not block:
            block = self._audio = turn.open_media(None)  # which codec was asked for stands in the address
        turn.media(block, data)
        turn.said()

    def _done(self, event: Members) -> None:
        turn = self._speaking()
        for block in list(turn.open.values()):
            turn.close(block)
        turn.stop(0, "end", None)
        self.end_turn(turn)

    def _clear(self, event: Members) -> None:
        """The client had the rest of the utterance dropped."""
        turn = self._current()
        if turn is None:
            self.answer.raw()
            return
        turn.cut_all()
        turn.out.append(Interrupted())
        turn.stop(0, "cancelled", None)
        self.end_turn(turn)


STT_EVENTS: Final[Mapping[str, Callable[[XAISpeechToTextNormalizer, Members], None]]] = {
    "transcript.created": XAISpeechToTextNormalizer._nothing,
    "transcript.partial": XAISpeechToTextNormalizer._partial,
    "transcript.done": XAISpeechToTextNormalizer._done,
    "error": XAISpeechToTextNormalizer._error,
}

TTS_EVENTS: Final[Mapping[str, Callable[[XAITextToSpeechNormalizer, Members], None]]] = {
    "audio.delta": XAITextToSpeechNormalizer._delta,
    "audio.done": XAITextToSpeechNormalizer._done,
    "audio.clear": XAITextToSpeechNormalizer._clear,
    "error": XAITextToSpeechNormalizer._error,
}
