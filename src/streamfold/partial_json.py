"""A preview of JSON text that has not arrived whole: a tool call's arguments while the model still writes them.

Knows JSON text and nothing of events, blocks or providers. The parser keeps a stack of open containers instead of
calling itself, so no depth of nesting meets the recursion limit. Between two tokens a table says, for each state, which
character starts what; inside a string or a number the parser stays with it until it ends. A container is put into its
place when it opens, a string when it opens and then grows there, everything else when nothing can change it any more.
So the tree is the preview at any time, taking ``value`` costs nothing, and the work is linear in the text however it
was cut.
"""

# The tables below the class name its steps, which are nobody else's business:
# pyright: reportPrivateUsage=false

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args, overload

import msgspec

from streamfold import limits
from streamfold.errors import UsageError

__all__ = [
    "NOTHING",
    "FaultCode",
    "JSONValue",
    "Nothing",
    "PartialJSON",
    "PartialJSONFault",
    "PreviewMode",
    "parse_partial_json",
]

JSONValue: TypeAlias = "bool | int | float | str | list[JSONValue] | dict[str, JSONValue] | None"
"""What a JSON text stands for."""

PreviewMode: TypeAlias = Literal["trailing-strings", "complete"]
"""``trailing-strings`` shows a string that is still open as far as it goes, ``complete`` only closed ones."""

FaultCode: TypeAlias = Literal["malformed", "trailing_data", "too_deep", "truncated"]
"""The same words as the codes of the framing errors."""

_Container: TypeAlias = "list[JSONValue] | dict[str, JSONValue]"

_Default = TypeVar("_Default")


class Nothing(enum.Enum):
    """The type of ``NOTHING``: an enum, so that checkers narrow ``is NOTHING``, and a copy or pickle is that object."""

    NOTHING = "NOTHING"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "NOTHING"

    __str__ = __repr__


NOTHING: Final = Nothing.NOTHING
"""No preview yet: neither ``null`` nor ``{}``, either of which would be a claim about the arguments. It is falsy."""


class PartialJSONFault(msgspec.Struct, frozen=True, gc=False):
    """Why a text cannot become JSON. A value, not an exception: a preview never raises on what the model wrote.

    Attributes:
        code: One word for programs: ``malformed``; ``trailing_data`` after a whole document; ``too_deep``;
            ``truncated``, the end was declared too early.
        offset: The first character that cannot be right, counted in characters (code points) from the start of the
            text; its length where the text ended too early.
        message: A sentence for people, without any of the text, which may be private.
    """

    code: FaultCode
    offset: int
    message: str

    def __str__(self) -> str:
        return f"{self.message} (at character {self.offset})"


class PartialJSON:
    """Incremental preview of one JSON document; does no I/O.

    Feed it text cut anywhere and look at ``value`` whenever you like. Only what can no longer turn out different is
    shown, and open strings may still grow: numbers show once a delimiter ends them, ``true``, ``false`` and ``null``
    when whole, a key together with its value; an open escape and half a surrogate pair are held back. Where a key
    repeats, the later value takes over as soon as it can be shown.

    It is a preview: run a tool on the arguments of the finished call, never on this.

    Strings can always be encoded: surrogates without a partner, escaped or raw, become U+FFFD. Numbers with a fraction
    or an exponent are floats, infinite where they exceed them; so are integers of more digits than
    ``sys.get_int_max_str_digits()`` (4300), which ``int`` refuses to read because that would take quadratic time.

    Args:
        mode: ``trailing-strings`` shows an open string as far as it goes, ``complete`` only when closed.
        max_depth: Levels of arrays and objects the document may nest; one more is an ``error``. None: no limit.

    Raises:
        UsageError: ``mode`` is neither of the two, or ``max_depth`` is negative.
    """

    __slots__ = (
        "_after",
        "_error",
        "_half",
        "_held",
        "_home",
        "_inside",
        "_key",
        "_max_depth",
        "_offset",
        "_part",
        "_root",
        "_scratch",
        "_show_open",
        "_slot",
        "_stack",
        "_state",
        "_take",
        "_top",
    )

    def __init__(self, mode: PreviewMode = "trailing-strings", *, max_depth: int | None = limits.MAX_DEPTH) -> None:
        if mode not in _MODES:
            raise UsageError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
        if max_depth is not None and max_depth < 0:
            raise UsageError(f"max_depth is {max_depth}; it must be 0 or more, or None for no limit")
        self._show_open = mode == "trailing-strings"
        self._max_depth = max_depth
        self._error: PartialJSONFault | None = None
        self._offset = 0  # of the next text's first character, counting back over _held
        self._held = ""  # an escape or literal the last text cut short: at most 5 characters, read again with the next

        # The document lies in a list of its own, so that the outermost value is put in place like any other.
        self._root: list[JSONValue] = []
        self._stack: list[tuple[_Container, _State]] = []  # (container, state after a value in it) of those around _top
        self._top: _Container = self._root  # the innermost open container
        self._key = ""  # where the next value of an object goes
        self._state = _DOCUMENT
        self._after = _END  # the state that follows a value in _top

        # An open string or number grows at _home[_slot]: in the tree if it is shown, else in _scratch.
        self._inside: _Step | None = None  # None: between tokens
        self._scratch = [""]
        self._home: Any = self._scratch
        self._slot: Any = 0
        self._take: Callable[[PartialJSON, str], None] | None = None  # gets the closed string; None: it is in its place
        self._half = ""  # a high surrogate that waits for its partner
        self._part = ""  # the part of the open number that the last character belonged to

    @property
    def value(self) -> JSONValue | Literal[Nothing.NOTHING]:
        """The preview, or ``NOTHING``.

        It is the tree itself, which later calls of ``feed`` extend in place: read it, do not change it, and take
        ``copy()`` of what must stay as it is. Looking costs nothing; a string kept from it while it is still growing
        makes the next ``feed`` copy that string once.
        """
        return self._root[0] if self._root else NOTHING

    @property
    def complete(self) -> bool:
        """Whether the document is whole and valid. White space may follow; anything else is an error, and ends this."""
        return self._state is _END and self._inside is None and self._error is None

    @property
    def error(self) -> PartialJSONFault | None:
        """Why the text cannot become JSON, else None. It never changes again, and ``value`` stays as it was then."""
        return self._error

    def copy(self) -> JSONValue | Literal[Nothing.NOTHING]:
        """The present value as a tree of its own, at a cost linear in its size. Any depth is fine."""
        return _copied(self._root)[0] if self._root else NOTHING

    def feed(self, text: str) -> None:
        """Take the next piece of the text, cut anywhere. After an ``error`` this does nothing.

        Nothing that the text holds raises. After ``close()``, anything but white space is an ``error``.

        Raises:
            UsageError: ``text`` is not a str. Decode bytes first, incrementally: a character may be cut in two.
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # not every caller is checked
            raise UsageError(f"PartialJSON.feed() takes str, not {type(text).__name__}")
        if self._error is not None or not text:
            return
        if self._held:
            text, self._held = self._held + text, ""
        pos, size = 0, len(text)
        while pos < size:
            pos = self._between(text, pos) if self._inside is None else self._inside(self, text, pos)
        self._offset += size - len(self._held)

    def close(self) -> None:
        """Declare the end of the text: a number that touches it is shown, anything unfinished is an ``error``.

        Closing again changes nothing.
        """
        if self._error is None and self._part in _WHOLE_PARTS:
            self._finish_number()
        if self._error is None and not self.complete:
            self._fail("truncated", len(self._held), "the text ended inside the document")

    # Steps: each takes the text and a position in it, and returns the position from which to go on.

    def _between(self, text: str, pos: int) -> int:
        start = self._state.starts.get(text[pos])
        if start is not None:
            return start(self, text, pos)
        blank = _BLANK.match(text, pos)
        if blank is not None:
            return blank.end()
        return self._fail(self._state.code, pos, self._state.fault)

    def _comma_in_array(self, text: str, pos: int) -> int:
        self._state = _ELEMENT
        return pos + 1

    def _comma_in_object(self, text: str, pos: int) -> int:
        self._state = _KEY
        return pos + 1

    def _colon(self, text: str, pos: int) -> int:
        self._state = _VALUE
        return pos + 1

    def _open_array(self, text: str, pos: int) -> int:
        return self._enter([], _FIRST_ELEMENT, _AFTER_ELEMENT, pos)

    def _open_object(self, text: str, pos: int) -> int:
        return self._enter({}, _FIRST_KEY, _AFTER_VALUE, pos)

    def _close_container(self, text: str, pos: int) -> int:
        self._top, self._after = self._stack.pop()
        self._state = self._after
        return pos + 1

    def _open_key(self, text: str, pos: int) -> int:
        whole = _PLAIN_STRING.match(text, pos)
        if whole is not None:
            self._take_key(whole[1])
            return whole.end()
        return self._open_hidden(PartialJSON._take_key, pos)

    def _open_string(self, text: str, pos: int) -> int:
        whole = _PLAIN_STRING.match(text, pos)
        if whole is not None:
            self._put(whole[1])
            return whole.end()
        if not self._show_open:
            return self._open_hidden(PartialJSON._put, pos)
        self._put("")
        self._home, self._slot, self._take = self._top, self._key if isinstance(self._top, dict) else -1, None
        self._inside = PartialJSON._string
        return pos + 1

    def _string(self, text: str, pos: int) -> int:
        """Go on with the open string: gather what is whole, then let the string grow by all of it at once."""
        pieces = [self._half]
        while (special := _SPECIAL.search(text, pos)) is not None:
            pieces.append(text[pos : special.start()])
            pos = special.end()
            if special[0] == '"':
                self._grow("".join(pieces), closed=True)
                self._close_string()
                return pos
            if special.lastindex is None:  # not a whole escape
                self._grow("".join(pieces))
                return self._cut_escape(text, special.start())
            pieces.append(_SHORT.get(special[1]) or chr(int(special[2], 16)))
        pieces.append(text[pos:])
        self._grow("".join(pieces))
        return len(text)

    def _cut_escape(self, text: str, pos: int) -> int:
        """At a control character or at a backslash without a whole escape: wait if the text just ends here."""
        start = _ESCAPE_START.match(text, pos)
        if start is None:
            return self._fail("malformed", pos, "a control character stands unescaped in a string")
        if start.end() < len(text):
            return self._fail("malformed", start.end(), "an escape in a string is none of JSON's")
        self._held = text[pos:]
        return len(text)

    def _literal(self, text: str, pos: int) -> int:
        word, value = _LITERALS[text[pos]]
        found = text[pos : pos + len(word)]
        if found == word:
            self._put(value)
            return pos + len(word)
        if word.startswith(found):
            self._held = found
            return len(text)
        wrong = next(at for at, letter in enumerate(found) if letter != word[at])
        return self._fail("malformed", pos + wrong, f"a literal is not {word!r}")

    def _open_number(self, text: str, pos: int) -> int:
        whole = _ENDED_NUMBER.match(text, pos)
        if whole is not None:
            self._put(_number_of(whole[0]))
            return whole.end()
        self._open_scratch()
        self._inside, self._part = PartialJSON._number, "start"
        return pos

    def _number(self, text: str, pos: int) -> int:
        for at in range(pos, len(text)):
            part = _NUMBER[self._part].get(text[at])
            if part is None:
                self._extend(text[pos:at])
                return self._end_number(text, at)
            self._part = part
        self._extend(text[pos:])
        return len(text)

    def _end_number(self, text: str, pos: int) -> int:
        if text[pos] not in _DELIMITERS or self._part not in _WHOLE_PARTS:
            return self._fail("malformed", pos, "a number is malformed")
        self._finish_number()
        return pos

    # What the steps do to the tree.

    def _put(self, value: JSONValue) -> None:
        top = self._top
        if isinstance(top, dict):
            top[self._key] = value
        else:
            top.append(value)
        self._state = self._after

    def _take_key(self, key: str) -> None:
        self._key = key
        self._state = _COLON

    def _enter(self, container: _Container, first: _State, after: _State, pos: int) -> int:
        if self._max_depth is not None and len(self._stack) >= self._max_depth:
            return self._fail("too_deep", pos, f"the document nests more than {self._max_depth} levels")
        self._put(container)
        self._stack.append((self._top, self._after))
        self._top, self._state, self._after = container, first, after
        return pos + 1

    def _open_scratch(self) -> None:
        self._home, self._slot = self._scratch, 0
        self._scratch[0] = ""

    def _open_hidden(self, take: Callable[[PartialJSON, str], None], pos: int) -> int:
        self._open_scratch()
        self._take = take
        self._inside = PartialJSON._string
        return pos + 1

    def _grow(self, piece: str, *, closed: bool = False) -> None:
        """Extend the open string by decoded text, holding back a high surrogate at its end unless no more can come."""
        self._half = "" if closed or not "\ud800" <= piece[-1:] <= "\udbff" else piece[-1]
        if self._half:
            piece = piece[:-1]
        if not piece.isascii() and _SURROGATE.search(piece):
            # The decoder joins pairs and puts U+FFFD for each half that has no partner.
            piece = piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self._extend(piece)

    def _extend(self, piece: str) -> None:
        home, slot = self._home, self._slot
        text = home[slot]
        home[slot] = None  # one owner is left, so CPython extends in place: a copy at every piece would be quadratic
        text += piece
        home[slot] = text

    def _close_string(self) -> None:
        self._inside = None
        if self._take is not None:
            self._take(self, self._scratch[0])

    def _finish_number(self) -> None:
        self._inside, self._part = None, ""
        self._put(_number_of(self._scratch[0]))

    def _fail(self, code: FaultCode, pos: int, message: str) -> int:
        self._error = PartialJSONFault(code, self._offset + pos, message)
        return _STOP


@overload
def parse_partial_json(
    text: str, mode: PreviewMode = ..., *, max_depth: int | None = ...
) -> JSONValue | Literal[Nothing.NOTHING]: ...


@overload
def parse_partial_json(
    text: str, mode: PreviewMode = ..., *, default: _Default, max_depth: int | None = ...
) -> JSONValue | _Default: ...


def parse_partial_json(
    text: str,
    mode: PreviewMode = "trailing-strings",
    *,
    default: object = NOTHING,
    max_depth: int | None = limits.MAX_DEPTH,
) -> object:
    """The preview of a JSON text that may be cut off anywhere; see ``PartialJSON`` for what it shows.

    No text raises. Where the text breaks JSON's grammar or nests too deep, the result is what could be shown before.
    More text could follow: a number that touches the end is left out, also where it is the whole text.

    To preview a text again and again while it grows, keep a ``PartialJSON``: this reads all of it at each call.

    Args:
        text: The text so far.
        mode: ``trailing-strings`` shows an open string as far as it goes, ``complete`` only when closed.
        default: The result where there is nothing to show.
        max_depth: Levels of arrays and objects the text may nest. None: no limit.

    Returns:
        A tree of its own, which nothing else changes.

    Raises:
        UsageError: ``text`` is not a str, ``mode`` is unknown or ``max_depth`` negative.
    """
    preview = PartialJSON(mode, max_depth=max_depth)
    preview.feed(text)
    value = preview.value
    return default if value is NOTHING else value


def _copied(tree: list[JSONValue]) -> list[JSONValue]:
    """A deep copy that does not call itself: each container is copied flat, then the containers in it are replaced."""
    copy = tree.copy()
    todo: list[Any] = [copy]
    while todo:
        container = todo.pop()
        for key, child in _entries(container):
            if isinstance(child, (list, dict)):
                container[key] = child.copy()
                todo.append(container[key])
    return copy


def _entries(container: _Container) -> Iterable[tuple[str | int, JSONValue]]:
    return container.items() if isinstance(container, dict) else enumerate(container)


def _number_of(text: str) -> int | float:
    """The value of a number that the grammar allows."""
    if not text.lstrip("-").isdecimal():
        return float(text)
    try:
        return int(text)
    except ValueError:  # more digits than sys.get_int_max_str_digits()
        return float(text)


_MODES: Final[tuple[PreviewMode, ...]] = get_args(PreviewMode)

_STOP: Final = sys.maxsize  # a position past any text: ends the loop of feed()

_BLANK: Final = re.compile(r"[ \t\n\r]+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN_STRING: Final = re.compile(r'"([^"\\\x00-\x1f\ud800-\udfff]*+)"')  # the everyday case in one step
_SPECIAL: Final = re.compile(r'["\x00-\x1f]|\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))?')
_ESCAPE_START: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_ENDED_NUMBER: Final = re.compile(r"-?+(?:0|[1-9][0-9]*+)(?>(?:\.[0-9]++)?)(?>(?:[eE][+-]?+[0-9]++)?)(?=[ \t\n\r,\]}])")

_SHORT: Final[Mapping[str | None, str]] = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}

_LITERALS: Final[Mapping[str, tuple[str, bool | None]]] = {
    "t": ("true", True),
    "f": ("false", False),
    "n": ("null", None),
}

_DIGITS: Final = "0123456789"
_DELIMITERS: Final = " \t\n\r,]}"  # what ends a number; any other character in or after it is a fault
_WHOLE_PARTS: Final = frozenset({"zero", "integer", "fraction", "power"})  # the number could end here
_NUMBER: Final[Mapping[str, Mapping[str, str]]] = {
    part: {character: following for characters, following in row.items() for character in characters}
    for part, row in {
        "start": {"-": "sign", "0": "zero", "123456789": "integer"},
        "sign": {"0": "zero", "123456789": "integer"},
        "zero": {".": "point", "eE": "exponent"},
        "integer": {_DIGITS: "integer", ".": "point", "eE": "exponent"},
        "point": {_DIGITS: "fraction"},
        "fraction": {_DIGITS: "fraction", "eE": "exponent"},
        "exponent": {"+-": "exponent sign", _DIGITS: "power"},
        "exponent sign": {_DIGITS: "power"},
        "power": {_DIGITS: "power"},
    }.items()
}


_Step: TypeAlias = Callable[[PartialJSON, str, int], int]


class _State(NamedTuple):
    """What may come next between two tokens."""

    fault: str
    starts: Mapping[str, _Step]
    code: FaultCode = "malformed"


_VALUE_STARTS: Final[Mapping[str, _Step]] = {
    '"': PartialJSON._open_string,
    "{": PartialJSON._open_object,
    "[": PartialJSON._open_array,
    **dict.fromkeys(_LITERALS, PartialJSON._literal),
    **dict.fromkeys("-" + _DIGITS, PartialJSON._open_number),
}

_DOCUMENT: Final = _State("a value should begin here", _VALUE_STARTS)
_ELEMENT: Final = _State("an element should begin here", _VALUE_STARTS)
_VALUE: Final = _State("a member's value should begin here", _VALUE_STARTS)
_FIRST_ELEMENT: Final = _State(
    "an element or ']' should come here", {**_VALUE_STARTS, "]": PartialJSON._close_container}
)
_AFTER_ELEMENT: Final = _State(
    "',' or ']' should come here", {",": PartialJSON._comma_in_array, "]": PartialJSON._close_container}
)
_FIRST_KEY: Final = _State(
    "a key in quotes or '}' should come here", {'"': PartialJSON._open_key, "}": PartialJSON._close_container}
)
_KEY: Final = _State("a key in quotes should begin here", {'"': PartialJSON._open_key})
_COLON: Final = _State("':' should come here", {":": PartialJSON._colon})
_AFTER_VALUE: Final = _State(
    "',' or '}' should come here", {",": PartialJSON._comma_in_object, "}": PartialJSON._close_container}
)
_END: Final = _State("text follows the end of the document", {}, "trailing_data")
