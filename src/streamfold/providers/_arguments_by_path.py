"""A call's arguments that come leaf by leaf, each with its JSONPath, as JSON text that only ever grows.

The text follows the leaves as long as they come in the order of a document, which is how they are sent. A leaf that
belongs further up (into an object that was closed, into a string that was ended) ends the text: from there on the
value is built as a tree, and only the whole of it tells.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring
from typing import Any, Final, TypeAlias, cast

import msgspec

from streamfold import limits
from streamfold.payloads import compact
from streamfold.pieces import Pieces

__all__ = ["ArgumentsByPath"]

Step: TypeAlias = "str | int"

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]]+)
    | \[ (?: (?P<index>\d{1,9}) | '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" ) \]""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUOTED: Final = encode_basestring  # takes half surrogate pairs, which msgspec refuses


def steps_of(path: str) -> tuple[Step, ...] | None:
    """The steps of an RFC 9535 path to one place; None for any other path, and for the root."""
    if path[:1] != "$":
        return None
    if path[1:2] == "." and path[2:].isidentifier():  # most arguments have no more
        return (path[2:],)
    steps: list[Step] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or len(steps) == limits.MAX_DEPTH:
            return None
        at = match.end()
        if match["index"] is not None:
            steps.append(int(match["index"]))
        else:
            steps.append(match["name"] or _unescaped(match["single"] or match["double"] or ""))
    return tuple(steps) if steps and isinstance(steps[0], str) else None


def _unescaped(name: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    return _ESCAPE.sub(character, name) if "\\" in name else name


class _Container:
    """An object or an array that the text has open."""

    __slots__ = ("count", "is_list", "names", "step")

    def __init__(self, step: Step, *, is_list: bool) -> None:
        self.step, self.is_list = step, is_list  # the step that leads to it from the one around it
        self.names: set[Step] = set()
        self.count = 0

    def takes(self, step: Step) -> bool:
        """Whether the member may be written next."""
        if self.is_list:
            return type(step) is int and step == self.count
        return type(step) is str and step not in self.names


class ArgumentsByPath:
    """Leaves in, text out.

    Args:
        text: The call's own text, to which whatever is returned here is appended.
    """

    faulty = False
    """Whether a leaf came that has no place: the arguments are not to be trusted."""

    def __init__(self, text: Pieces) -> None:
        self._text = text
        self._open: list[_Container] = []
        self._string = ""  # path of the string that the text has open
        self._unended: set[str] = set()  # paths of strings that go on
        self._tree: Any = None

    def begin_with(self, value: dict[str, Any]) -> None:
        """The call came with arguments already: leaves add to them."""
        self._tree = value

    def has_open(self, path: str) -> bool:
        """Whether the text ends inside the string at this path, so that a piece of it only adds to the text."""
        return self._string == path and path != "" and self._tree is None

    def grown(self, path: str, piece: str, *, ends: bool) -> str:
        """What :meth:`string` returns and does where the piece adds to the text in the usual way; nothing elsewhere."""
        if self._tree is not None or self.faulty:
            return ""
        if self._string == path != "":
            text = _QUOTED(piece)[1:-1]
            if not ends:
                return text
        else:
            name, opened = path[2:], self._open
            if path[:2] != "$." or not name.isidentifier() or len(opened) > 1 or (opened and name in opened[0].names):
                return ""
            if opened:
                between = '","' if self._string else ',"'
            else:
                between = '{"'
                opened.append(_Container("$", is_list=False))
            opened[0].names.add(name)
            opened[0].count += 1
            text = between + name + '":' + _QUOTED(piece)[:-1]
        if ends:
            self._string = ""
            self._unended.discard(path)
            return text + '"'
        self._string = path
        self._unended.add(path)
        return text

    def string(self, path: str, piece: str, *, ends: bool) -> str:
        """A piece of a string; the text it adds."""
        quoted = _QUOTED(piece)
        goes_on = self.has_open(path)
        text = quoted[1:-1] if goes_on else self._leaf(path, quoted[:-1], piece, is_string=True)
        if ends:
            self._unended.discard(path)
        else:
            self._unended.add(path)
        if text is None:
            return ""
        self._string = "" if ends else path
        return text + '"' if ends else text

    def value(self, path: str, value: Any) -> str:
        """A number, a truth value or null; the text it adds."""
        return self._leaf(path, compact(value), value) or ""

    def end(self) -> str:
        """No more leaves: the text that is missing to make JSON of it."""
        if self._tree is not None or not self._open:
            return ""
        text = self._closed(0)
        self._open = []
        return text

    def whole(self) -> str | None:
        """The arguments, where the text does not tell them."""
        return None if self._tree is None else compact(_plain(self._tree))

    def _leaf(self, path: str, text: str, value: Any, *, is_string: bool = False) -> str | None:
        """What the leaf adds to the text; None if it has no place, or one in the tree."""
        steps = steps_of(path)
        if steps is None:
            self.faulty = True
            return None
        if self._tree is None:
            before = self._way_to(steps)
            if before is not None:
                return before + text
            self._tree = msgspec.json.decode(self._text.whole() + self._closed(0) or "{}")
        if is_string:
            value = _String([value], goes_on=path in self._unended)
        self.faulty = not _put(self._tree, steps, value) or self.faulty
        return None

    def _way_to(self, steps: tuple[Step, ...]) -> str | None:
        """Close what does not lead there, open what does; None where the text has passed that place."""
        opened = self._open
        common = 0
        if len(opened) > 1:
            for container, step in zip(opened[1:], steps[:-1], strict=False):
                if container.step != step:
                    break
                common += 1
        new = steps[common:]
        if opened and not opened[common].takes(new[0]):
            return None
        if len(new) > 1 and any(type(step) is int and step for step in new[1:]):  # an array begins with its first item
            return None
        text = self._closed(common + 1) if opened else "{"
        if not opened:
            opened.append(_Container("$", is_list=False))
        del opened[common + 1 :]
        for number, step in enumerate(new):
            container = opened[-1]
            text += "," if container.count else ""
            if not container.is_list:
                text += _QUOTED(cast("str", step)) + ":"
                container.names.add(step)
            container.count += 1
            if number + 1 < len(new):
                is_list = type(new[number + 1]) is int
                text += "[" if is_list else "{"
                opened.append(_Container(step, is_list=is_list))
        return text

    def _closed(self, depth: int) -> str:
        """What closes the text down to that many open containers."""
        text = '"' if self._string else ""
        self._string = ""
        return text + "".join("]" if container.is_list else "}" for container in reversed(self._open[depth:]))


class _String(list[str]):
    """A string of the tree, in pieces, so that it grows in linear time."""

    def __init__(self, pieces: list[str], *, goes_on: bool = False) -> None:
        super().__init__(pieces)
        self.goes_on = goes_on  # with the string that is at its place; else it takes that place


def _put(tree: Any, steps: tuple[Step, ...], value: Any) -> bool:
    """Set the leaf; pieces of one string are joined. False if there is no such place."""
    holder = tree
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        if not _has_place(holder, step):
            return False
        known = _get(holder, step)
        if following is None:
            _set(holder, step, _joined(known, value) if isinstance(value, _String) else value)
        elif known is None:
            _set(holder, step, [] if type(following) is int else {})
        holder = _get(holder, step)
    return True


def _joined(known: Any, piece: _String) -> _String:
    if not piece.goes_on:
        return piece
    if isinstance(known, _String):
        known.extend(piece)
        return known
    return _String([known, *piece]) if isinstance(known, str) else piece


def _has_place(holder: Any, step: Step) -> bool:
    if isinstance(holder, dict):
        return type(step) is str
    return type(holder) is list and type(step) is int and step <= len(holder)


def _get(holder: Any, step: Step) -> Any:
    if isinstance(holder, dict):
        return cast("dict[Step, Any]", holder).get(step)
    return holder[step] if cast("int", step) < len(holder) else None


def _set(holder: Any, step: Step, value: Any) -> None:
    if isinstance(holder, dict):
        cast("dict[Step, Any]", holder)[step] = value
    elif step == len(holder):
        holder.append(value)
    else:
        holder[step] = value


def _plain(value: Any) -> Any:
    if isinstance(value, _String):
        return "".join(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in cast("dict[str, Any]", value).items()}
    return value
