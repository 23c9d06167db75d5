"""Lyria RealTime (``BidiGenerateMusic`` over a WebSocket): music that comes until somebody stops it.

There is no text, no tool, no usage and no turn: the music of a connection is one turn, which a normal close ends.

Source: the vendor's Live Music API reference and its Python client's types. No real session was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from streamfold.events import Session
from streamfold.payloads import Payload, read_object
from streamfold.providers._errors import provider_error
from streamfold.providers._live import LiveNormalizer, TurnAnswer
from streamfold.providers._open_blocks import OpenMedia
from streamfold.providers._table import text_of

__all__ = ["LyriaNormalizer"]

Members: TypeAlias = dict[str, Any]

MIME_TYPE: Final = "audio/l16;rate=48000;channels=2"
"""What a chunk is that does not say."""

_NORMAL: Final = (None, 1000)


class LyriaNormalizer(LiveNormalizer):
    """Messages of Lyria RealTime to unified events."""

    surface = "lyria"
    terminal = "a normal close"

    def _begin(self) -> None:
        super()._begin()
        self._music: OpenMedia | None = None

    def _message(self, payload: Payload) -> bool:
        message = read_object(payload, self.answer.max_depth)
        if message is None:
            return False
        known = False
        for name, read in MEMBERS.items():
            if name in message:
                known, self.answer.member = True, name
                read(self, message[name])
        if not known and message.get("error"):
            self._fail(provider_error(message["error"], message))
            return True
        if unknown := [name for name in message if name not in MEMBERS]:
            self.answer.raw(name=unknown[0], known=False)
        return known

    def _setup(self, value: Any) -> None:
        self.tell(Session())

    def _content(self, value: Any) -> None:
        content = _object(value)
        chunks = content.get("audioChunks")
        for chunk in chunks if isinstance(chunks, list) else ():
            self._chunk(_object(chunk))
        if content.keys() - {"audioChunks"}:
            self.answer.raw()

    def _chunk(self, chunk: Members) -> None:
        """The prompts and settings that a chunk was made with are in its message; see ``iter_traced``."""
        data = text_of(chunk.get("data"))
        if not data:
            return
        turn = next(iter(self.open.values()), None) or self.open_turn()
        mime_type = text_of(chunk.get("mimeType")) or MIME_TYPE
        music = self._music
        if music is None or music.index not in turn.open or music.mime_type != mime_type:
            if music is not None:
                turn.close(music)
            music = self._music = turn.open_media(mime_type)
        turn.media(music, data)
        turn.said()

    def _nothing(self, value: Any) -> None:
        """A prompt was left out, or something else that the music goes on after."""
        self.answer.raw()

    def _ends_well(self, turn: TurnAnswer, code: int | None) -> bool:
        if code in _NORMAL and not turn.ended:
            if self._music is not None:
                turn.close(self._music)
            turn.stop(0, "end", None)
            self.end_turn(turn)
        return code in _NORMAL


MEMBERS: Final[Mapping[str, Callable[[LyriaNormalizer, Any], None]]] = {
    "setupComplete": LyriaNormalizer._setup,
    "serverContent": LyriaNormalizer._content,
    "filteredPrompt": LyriaNormalizer._nothing,
    "warning": LyriaNormalizer._nothing,
}


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else {}
