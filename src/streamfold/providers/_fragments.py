"""Which tool call a fragment belongs to, where fragments come with ids, indexes, names, or none of them.

The seven steps of "tool-call identity" (DESIGN 3), for one choice. Never a guess: what fits no call is reported.
"""

from __future__ import annotations

from typing import Any, Final, cast

from streamfold.partial_json import PartialJSON
from streamfold.payloads import as_text, is_json, sanitize
from streamfold.providers._answer import Answer
from streamfold.providers._open_blocks import OpenCall
from streamfold.providers._usage import whole

__all__ = ["Call", "Fragments"]

Members = dict[str, Any]
_OWN: Final = frozenset({"index", "id", "type", "function", "custom", "name", "arguments", "input"})


class Call:
    """A call of one choice: begun by its first fragment, open in the answer once its name and its id are settled."""

    __slots__ = ("finished", "gathered", "id", "index", "is_json", "looks", "meta", "name", "open", "scanner")

    def __init__(self, id: str | None, index: object, *, is_json: bool) -> None:  # noqa: A002 - the wire's own name
        self.id, self.index, self.is_json = id, index, is_json
        self.name = ""
        self.gathered: list[str] = []  # arguments that came before the name
        self.scanner: PartialJSON | None = None  # of these, fed from the first time somebody asks
        self.meta: Members = {}
        self.open: OpenCall | None = None
        self.finished = False
        self.looks = 0  # at whether the arguments are whole


class Fragments:
    """The calls of one choice."""

    def __init__(self, answer: Answer, choice: int) -> None:
        self._answer, self._choice = answer, choice
        # Calls that are not finished; of them, those that may lack something, and those to be looked at when a finish
        # reason comes. Each is entered by a fragment of its own, so that no fragment and no reason asks after all.
        self._calls: dict[Call, None] = {}
        self._lacking: dict[Call, None] = {}
        self._touched: dict[Call, None] = {}
        self._by_id: dict[str, Call] = {}
        self._by_index: dict[int | str | None, Call] = {}

    def add(self, entry: Members) -> Call | None:
        """Take one entry of ``tool_calls`` in; the call that it went to, None if it is nobody's."""
        function, is_json_kind = _function_of(entry)
        id_, name = _present(entry.get("id")), _present(function.get("name"))
        index = _place(entry.get("index"))
        call = self._find(id_, index, name, is_json=is_json_kind)
        if call is None or call.finished:
            self._answer.raw(name="tool_calls")
            self._answer.warn("orphan_fragment", "a fragment of a tool call names no call that is open")
            return None
        if name:
            self._name(call, sanitize(name))
        self._keep(call, entry, function)
        self._arguments(call, function.get("arguments", function.get("input")))
        self._lacking[call] = self._touched[call] = None
        return call

    def at(self, index: object) -> Call | None:
        """The call that this index means."""
        return self._by_index.get(_place(index))

    def finish_whole(self, *, cut: bool) -> None:
        """The provider named a finish reason: calls with whole arguments are finished.

        Those without wait for the terminal sign: some servers name the reason before the last fragment.

        Args:
            cut: See :meth:`finish`.
        """
        for call in self._touched:
            if not call.finished and self._is_whole(call):
                self._finish(call, cut=cut)
                del self._calls[call]
        self._touched.clear()

    def finish(self, *, cut: bool) -> None:
        """The provider is through with its calls.

        Args:
            cut: It broke off, so that blank arguments are not "none" but "none yet" (seen at DeepSeek), and nobody
                knows whether plain text is whole.
        """
        for call in self._calls:
            self._finish(call, cut=cut)
        self._calls.clear()

    def cut(self) -> None:
        """The stream broke off: calls that never were opened become visible before the answer closes them."""
        for call in self._calls:
            self._open(call)
        self._calls.clear()

    # -- the seven steps ----------------------------------------------------------------------------------------------

    def _find(self, id_: str | None, index: int | str | None, name: str | None, *, is_json: bool) -> Call | None:
        if id_ is not None:
            return self._by_id.get(id_) or self._named_by(id_, index) or self._new(id_, index, is_json=is_json)
        at_index = self._by_index.get(index)
        if name is not None and (at_index is None or (at_index.name and self._has_whole_json(at_index))):
            return self._new(None, index, is_json=is_json)
        if at_index is not None and not at_index.finished:
            return at_index
        return self._only_one_lacking()

    def _only_one_lacking(self) -> Call | None:
        """The only call whose arguments are no whole JSON value yet."""
        whole: list[Call] = []
        found: Call | None = None
        for call in self._lacking:
            if self._has_whole_json(call):
                whole.append(call)
            elif found is None:
                found = call
            else:
                found = None
                break
        for call in whole:
            del self._lacking[call]
        return found

    def _named_by(self, id_: str, index: int | str | None) -> Call | None:
        """The call at that index, if it has neither an id nor arguments yet: the new id is its own."""
        call = self._by_index.get(index)
        if call is None or call.id is not None or call.open is not None or call.gathered:
            return None
        call.id = id_
        self._by_id[id_] = call
        return call

    def _new(self, id_: str | None, index: int | str | None, *, is_json: bool) -> Call:
        call = Call(id_, index, is_json=is_json)
        self._answer.hold_another()  # it may wait for its name for ever
        self._calls[call] = None
        self._by_index[index] = call
        if id_ is not None:
            self._by_id[id_] = call
        return call

    def _has_whole_json(self, call: Call) -> bool:
        """Whether its arguments so far are one whole JSON value; linear over all askings."""
        if call.open is not None:
            return call.finished or self._answer.has_whole_json(call.open)
        if call.scanner is None:
            call.scanner = PartialJSON(max_depth=None)
            call.scanner.feed("".join(call.gathered))
        return call.scanner.complete

    # -- names, arguments, extras -------------------------------------------------------------------------------------

    def _name(self, call: Call, name: str) -> None:
        """Whole, repeated, growing or in pieces."""
        if name == call.name:
            return
        if not call.name or name.startswith(call.name):
            call.name = name
        elif len(call.name) > _LONG:  # no tool is called so, and each piece would cost all of those before it
            self._answer.raw(name="tool_calls")
        elif not (call.gathered or (call.open and not call.open.is_empty())):
            call.name += name
        if call.open:
            call.open.name = call.name

    def _arguments(self, call: Call, value: object) -> None:
        piece = as_text(value)
        if call.open is None and piece:
            call.gathered.append(piece)
            if call.scanner is not None:
                call.scanner.feed(piece)
        elif piece and call.open is not None:
            self._answer.arguments(call.open, piece)
        # A name alone waits for its id: it may come one fragment later, and an id must not change once it was said.
        if call.open is None and call.name and (call.id or call.gathered):
            self._open(call)

    def _keep(self, call: Call, entry: Members, function: Members) -> None:
        """Members that nobody knows stay with the call (``extra_content`` holds Gemini's thought signature)."""
        extra = {name: value for source in (entry, function) for name, value in source.items() if name not in _OWN}
        extra = {name: value for name, value in extra.items() if value is not None}
        if not extra:
            return
        call.meta.update(extra)
        if call.open is not None:
            call.open.meta = call.open.meta or {}
            call.open.meta.update(extra)

    def _open(self, call: Call) -> None:
        if call.open is not None:
            return
        kind = "function" if call.is_json else "custom"
        meta = call.meta or None
        call.open = self._answer.open_call(
            call.id, call.name, kind=kind, is_json=call.is_json, choice=self._choice, meta=meta
        )
        for piece in call.gathered:
            self._answer.arguments(call.open, piece)
        call.gathered, call.scanner = [], None

    def _is_whole(self, call: Call) -> bool:
        if call.open is None or call.open.is_empty():
            return False
        if not call.is_json:
            return True
        call.looks += 1  # a reason on every chunk must not cost a look at all of the arguments each time
        return is_json(call.open.whole()) if call.looks <= _LOOKS else self._answer.has_whole_json(call.open)

    def _finish(self, call: Call, *, cut: bool = False) -> None:
        self._open(call)
        assert call.open is not None
        call.finished = True
        halved = cut and (not call.is_json or not call.open.whole().strip())
        self._answer.finish_call(call.open, incomplete=halved or not call.name)  # without a name it is told, not run


_LOOKS: Final = 8
_LONG: Final = 4096  # characters of a name to which pieces are no longer added


def _place(index: object) -> int | str | None:
    """What can be an index: a number, or text where somebody counts in words."""
    return index if isinstance(index, str) else whole(index)


def _function_of(entry: Members) -> tuple[Members, bool]:
    """Where name and arguments stand, and whether the arguments are JSON."""
    custom = entry.get("custom")
    if isinstance(custom, dict):
        return cast("Members", custom), False
    function = entry.get("function")
    if isinstance(function, dict):
        return cast("Members", function), True
    return entry, True


def _present(value: object) -> str | None:
    """Ids and names that are empty, null or the word "null" count as absent."""
    return value if isinstance(value, str) and value not in ("", "null") else None
