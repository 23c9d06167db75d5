"""What the surfaces share: the turn they read, the results a caller gives, and small readers of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast

import msgspec

from streamfold.blocks import ApprovalBlock, Block, JSONText, ToolCallBlock
from streamfold.errors import Malformed, UsageError
from streamfold.events import Stop, encode_json
from streamfold.payloads import BadJSON, DepthExceeded, lenient

__all__ = [
    "Answered",
    "Item",
    "Surface",
    "ToolResult",
    "Turn",
    "Waiting",
    "error_text",
    "json_value",
    "members_of",
    "meta_of",
    "object_of",
    "text_of_result",
    "typed",
    "value_of",
    "waiting",
    "without",
]

Item: TypeAlias = dict[str, Any]
"""One item of a request, as the object that goes into its JSON."""

Waiting: TypeAlias = ToolCallBlock | ApprovalBlock
"""A block that the caller has to answer before the provider goes on."""

INVALID_JSON: Final = "INVALID_JSON"
"""The member under which arguments go back that are no object, where nothing else is taken (Anthropic's own advice)."""


class ToolResult(msgspec.Struct, frozen=True):
    """What running a call gave.

    Attributes:
        content: Text, or a value that becomes JSON. For an approval: whether it is granted.
        is_error: The tool failed; ``content`` says how.
        native: ``content`` has the provider's own form already (Anthropic content blocks, Responses input parts, the
            output list of a shell call, the members of a Gemini ``functionResponse``, …) and goes out as it is.
    """

    content: Any = ""
    is_error: bool = False
    native: bool = False


Answered: TypeAlias = tuple[Waiting, ToolResult]


class Turn(NamedTuple):
    """One choice of an answer, as it goes back.

    Attributes:
        blocks: In index order.
        stop: Why it ended.
        complete: Whether a terminal sign came; an answer that broke off was stored by nobody.
    """

    blocks: tuple[Block, ...]
    stop: Stop
    complete: bool


class Surface(Protocol):
    """What a module of this package knows of its provider's requests."""

    def items(self, turn: Turn) -> list[Item]:
        """The items to append to the next request."""
        ...

    def waiting(self, turn: Turn) -> Sequence[Waiting]:
        """The blocks of the turn that want an answer, in order."""
        ...

    def results(self, turn: Turn, answered: Iterable[Answered]) -> list[Item]:
        """The items that answer them."""
        ...


def waiting(turn: Turn) -> Sequence[Waiting]:
    """The calls that the caller is meant to run, and the approvals it is asked for."""
    return [block for block in turn.blocks if isinstance(block, ToolCallBlock | ApprovalBlock) and _waits(block)]


def _waits(block: Waiting) -> bool:
    return block.state == "ready" if isinstance(block, ToolCallBlock) else block.complete


# -- reading blocks ---------------------------------------------------------------------------------------------------


def meta_of(block: Block) -> Item:
    """What the wire said of the block besides; a dict of its own at each call."""
    value = None if block.meta is None else value_of(block.meta)
    return cast("Item", value) if isinstance(value, dict) else {}


def value_of(text: str) -> Any:
    """The value of a JSON text; None where it is no JSON. Read leniently, so that it can always be written again."""
    try:
        return JSONText(text).decoded()
    except Malformed:
        pass
    try:
        return lenient(text, max_depth=None)
    except (BadJSON, DepthExceeded):
        return None


def typed(value: Any) -> Item | None:
    """An item that goes back as it came, None where it is no object that says its type: none of those is taken."""
    item = cast("Item", value) if isinstance(value, dict) else {}
    return item if isinstance(item.get("type"), str) else None


def object_of(arguments: str) -> Item:
    """The arguments of a call, where the provider takes an object and nothing else."""
    value = value_of(arguments)
    return cast("Item", value) if isinstance(value, dict) else {INVALID_JSON: arguments}


def without(members: Mapping[str, Any], *names: str) -> Item:
    """The members but for these."""
    return {name: value for name, value in members.items() if name not in names}


# -- writing results --------------------------------------------------------------------------------------------------


def members_of(result: ToolResult) -> Item:
    """A native result that is an object.

    Raises:
        UsageError: It is none.
    """
    if not isinstance(result.content, dict):
        raise UsageError("the provider's own form of this result is an object")
    return cast("Item", result.content)


def json_value(content: Any) -> Any:
    """A result as a value, for providers that take objects: what it is once it has been JSON.

    Raises:
        UsageError: It is not what JSON can say.
    """
    return content if isinstance(content, str) else value_of(text_of_result(content))


def text_of_result(content: Any) -> str:
    """A result as text, for providers that know no other form: itself, or its JSON.

    Raises:
        UsageError: It is neither text nor what JSON can say.
    """
    if isinstance(content, str):
        return content
    what = type(content).__name__
    try:
        text = encode_json(content).decode()
        strange = _strange(msgspec.to_builtins(content, builtin_types=(bytes, bytearray, memoryview), enc_hook=str))
    except (TypeError, NotImplementedError, ValueError, OverflowError, RecursionError):
        raise UsageError(f"a tool's result is text or what JSON can say, not {what}") from None
    if strange is not None:
        raise UsageError(f"a tool's result is text or what JSON can say, which {strange} is not")
    return text


def _strange(value: Any) -> str | None:
    """What of a value an encoder would pass over in silence: bytes, as base64, and numbers that are none, as null."""
    if isinstance(value, float):
        return None if isfinite(value) else repr(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return type(value).__name__
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = cast("Item", value).values()
    elif isinstance(value, list | tuple):
        items = cast("list[Any]", value)
    return next((strange for strange in map(_strange, items) if strange is not None), None)


def error_text(result: ToolResult) -> str:
    """A result as text, for providers that have no other place to say that a tool failed."""
    return text_of_result({"error": result.content} if result.is_error else result.content)
