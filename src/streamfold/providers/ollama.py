"""Ollama's own API: ``/api/chat`` and ``/api/generate``, a JSON object a line.

Every object is a chunk: text, thinking, whole tool calls; the one that says ``done`` is the last and brings the counts.
A model that is loaded or unloaded says so and nothing else. An object with ``error`` ends the answer in an error.

Source: the vendor's API documentation and the types of its Python client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from streamfold.events import StopReason
from streamfold.payloads import Payload, as_text, read_object
from streamfold.providers import _usage
from streamfold.providers._errors import provider_error
from streamfold.providers._open_blocks import OpenBlock, OpenReasoning
from streamfold.providers._table import BaseNormalizer, text_of

__all__ = ["OllamaNormalizer"]

Members: TypeAlias = dict[str, Any]

STOP_REASONS: Final[Mapping[str, StopReason]] = {"stop": "end", "length": "length"}
"""What ``done_reason`` means; any other word (``load``, ``unload``) is ``other``. Old servers send none."""

USAGE: Final[_usage.Places] = {"prompt_eval_count": "input_tokens", "eval_count": "output_tokens"}

_COUNTS: Final = (
    *USAGE,
    *("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"),  # in nanoseconds
)
_SILENT: Final = frozenset(
    {*_COUNTS, "model", "created_at", "message", "response", "thinking", "done", "done_reason", "image"}
)
"""Members that are read, or say nothing; any other makes the payload come out as ``raw`` too."""
_SILENT_IN_MESSAGE: Final = frozenset({"role", "content", "thinking", "tool_calls", "images"})
_HALVES: Final = ("content", "thinking", "response")
_NOTHING: Final[Members] = {}


class OllamaNormalizer(BaseNormalizer):
    """Chunks of Ollama's own API to unified events."""

    surface = "ollama"
    terminal = '"done": true'

    def _begin(self) -> None:
        self._block: OpenBlock | None = None  # text or thinking that goes on

    def _mean(self, payload: Payload) -> bool:
        chunk = read_object(payload, self.answer.max_depth, _HALVES)
        if chunk is None:
            return False
        if chunk.get("error"):
            self._fail(provider_error(chunk["error"], chunk))
            return True
        if not isinstance(chunk.get("done"), bool):
            return False
        self.answer.identify(None, chunk.get("model"))
        message = _object(chunk.get("message"))
        self._think(text_of(message.get("thinking")) + text_of(chunk.get("thinking")))
        self._say(text_of(message.get("content")) + text_of(chunk.get("response")))
        images = message.get("images")
        for image in (chunk.get("image"), *(images if isinstance(images, list) else ())):
            self._show(image)
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._call(_object(call))
        if chunk["done"]:
            self._done(chunk)
        elif message.keys() - _SILENT_IN_MESSAGE or chunk.keys() - _SILENT:  # log probabilities, progress
            self.answer.raw()
        return True

    def _think(self, piece: str) -> None:
        if piece:
            if not isinstance(self._block, OpenReasoning):
                self._end_block()
                self._block = self.answer.open_reasoning()
            self.answer.reasoning(self._block, piece)

    def _say(self, piece: str) -> None:
        if piece:
            if self._block is None or isinstance(self._block, OpenReasoning):
                self._end_block()
                self._block = self.answer.open_text()
            self.answer.text(self._block, piece)

    def _show(self, image: Any) -> None:
        if isinstance(image, str) and image:
            self._end_block()
            block = self.answer.open_media(None)
            self.answer.media(block, image)
            self.answer.close(block)

    def _call(self, entry: Members) -> None:
        """A whole call: its arguments are an object. Only newer servers give it an id."""
        function = _object(entry.get("function"))
        name, arguments = text_of(function.get("name")), function.get("arguments")
        if not name and arguments is None:
            self.answer.raw()
            return
        self._end_block()
        call = self.answer.open_call(entry.get("id"), name or "function")
        text = "" if arguments is None else as_text(arguments)
        self.answer.arguments(call, "" if text == "{}" else text)
        self.answer.finish_call(call, incomplete=not name)  # one without a name is reported, not run

    def _end_block(self) -> None:
        if self._block is not None:
            self.answer.close(self._block)
            self._block = None

    def _done(self, chunk: Members) -> None:
        self._end_block()
        counts = {name: chunk[name] for name in _COUNTS if chunk.get(name) is not None}
        self.answer.report(_usage.read(counts, USAGE))
        if chunk.keys() - _SILENT:  # the context of /api/generate, log probabilities
            self.answer.raw()
        word = text_of(chunk.get("done_reason"))
        self.answer.stop(0, STOP_REASONS.get(word, "other") if word else None, word or None)
        self.answer.done()


def _object(value: Any) -> Members:
    return cast("Members", value) if isinstance(value, dict) else _NOTHING
