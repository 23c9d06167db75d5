"""Ollama's own API: chunks that are all alike, the last one with the reason and the counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from streamfold.lint._surface import Known, Members, SurfaceCheck, entries, object_of, shown, text_in
from streamfold.lint.rules import Report
from streamfold.providers import ollama

__all__ = ["OllamaCheck"]

_WORDS: Final = frozenset({"load", "unload"})
_NOT_SILENT: Final = frozenset({"context", "logprobs", "remote_model", "remote_host", "completed", "total", "error"})


class OllamaCheck(SurfaceCheck):
    """The chunks of ``/api/chat`` and ``/api/generate``."""

    reasons: ClassVar[frozenset[str]] = _WORDS
    known: ClassVar[Known] = {
        "the payload": ollama._SILENT | _NOT_SILENT,
        "message": ollama._SILENT_IN_MESSAGE | {"tool_name"},
        "a tool call": frozenset({"id", "type", "function"}),
        "a function": frozenset({"index", "name", "arguments", "description"}),
    }

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._model: str | None = None

    def places(self, members: Members) -> Iterator[tuple[str, Members]]:
        """See the base."""
        message = object_of(members.get("message"))
        yield "the payload", members
        yield "message", message
        for call in entries(message.get("tool_calls")):
            yield "a tool call", call
            yield "a function", object_of(call.get("function"))

    def read(self, members: Members, name: str | None) -> None:
        """See the base."""
        if members.get("error"):
            return
        if not members.keys() & {"message", "response", "image"} and not members.keys() & {"completed", "total"}:
            self.report("no_message", "a chunk has neither a message nor a response")
        model = text_in(members, "model")
        if model and self._model not in (None, model):
            self.report("id_changes", f"the model is called {shown(model)} after {shown(self._model)}")
        self._model = model or self._model
        for call in entries(object_of(members.get("message")).get("tool_calls")):
            self._call(object_of(call.get("function")))
        if members.get("done") is True and not text_in(members, "done_reason"):
            self.report("no_finish_reason", "the last chunk has no done_reason")

    def _call(self, function: Members) -> None:
        if not text_in(function, "name"):
            self.report("no_call_name", "a tool call has no name")
        arguments: Any = function.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            self.report("wrong_type", f"the arguments of {shown(text_in(function, 'name'))} are no object")
