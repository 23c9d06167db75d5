"""Nothing that a provider sends raises, and yet nothing is caught wide: a bug of ours must show, not become a ``raw``.

Reads the source. A handler may name what the decoders themselves raise, or our own errors; all else is listed here
with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pytest

from streamfold.payloads import DECODE_ERRORS

SOURCE: Final = Path(__file__).resolve().parent.parent / "src" / "streamfold"
FILES: Final = sorted(
    [
        *SOURCE.glob("providers/**/*.py"),
        *(SOURCE / f"{name}.py" for name in ("decoder", "accumulator", "payloads", "pieces", "snapshot", "think_tags")),
        *SOURCE.glob("framing/*.py"),
    ]
)

NARROW: Final = frozenset({"DECODE_ERRORS", "_DECODE_ERRORS", "BadJSON", "DepthExceeded", "FramingError", "_Unfit"})
"""What the strict decoder raises, and classes of ours that nothing else raises."""

ALLOWED: Final = {
    # file, function, what it catches -> why that is no wider than what it guards
    ("payloads.py", "lenient", "RecursionError"): "the standard decoder recurses; only where a caller lifted max_depth",
    ("payloads.py", "lenient", "ValueError"): "JSONDecodeError, and integers of too many digits",
    ("payloads.py", "sanitize", "UnicodeEncodeError"): "asked on purpose: whether the text has half a pair",
    ("payloads.py", "compact", "UnicodeError, TypeError, OverflowError, RecursionError"): "what msgspec cannot write",
    ("payloads.py", "known_json", "UnicodeDecodeError"): "bad UTF-8 in a member that the decoder skipped",
    ("payloads.py", "is_json", "ValueError, RecursionError"): "JSONDecodeError, digits; the standard decoder recurses",
    ("framing/messages.py", "_text_of", "TypeError, ValueError, RecursionError"): "what msgspec cannot write",
    ("decoder.py", "_keep", "_UNCOPYABLE"): "what a normaliser of a caller's own may make of being copied",
    (
        "providers/_table.py",
        "__init__",
        "AttributeError",
    ): "a class of a caller's own that lacks a name",
    ("providers/_aws.py", "decoded", "ValueError"): "what is no base64, or no ASCII",
    ("providers/_open_blocks.py", "_one_blob", "ValueError"): "what is no base64, or no ASCII",
    (
        "providers/openai_responses.py",
        "more",
        "_NOT_PLAIN",
    ): "the decoder's TypeError: the payload is an object already",
    ("providers/_table.py", "read", "RecursionError"): "a caller lifted max_depth beyond what the interpreter follows",
    ("framing/json_array.py", "_fault_of", "RecursionError"): "the standard decoder recurses",
    ("framing/json_array.py", "_fault_of", "ValueError"): "JSONDecodeError, and integers of too many digits",
}


class Handler(NamedTuple):
    """One ``except``."""

    file: str
    function: str
    catches: str
    line: int
    guarded: int  # statements inside its ``try``, at any depth

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.function, self.catches


@cache
def nodes(file: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(file.read_text())))


@cache
def handlers(file: Path) -> tuple[Handler, ...]:
    return tuple(_handlers(file))


def _handlers(file: Path) -> Iterator[Handler]:
    functions = [node for node in nodes(file) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for block in nodes(file):
        if not isinstance(block, ast.Try | ast.TryStar):
            continue
        around = [f for f in functions if f.lineno <= block.lineno <= (f.end_lineno or 0)]
        function = max(around, key=lambda f: f.lineno).name if around else "<module>"
        guarded = sum(isinstance(node, ast.stmt) for statement in block.body for node in ast.walk(statement))
        for handler in block.handlers:
            kind = handler.type
            names = kind.elts if isinstance(kind, ast.Tuple) else [] if kind is None else [kind]
            caught = ", ".join(ast.unparse(name) for name in names) or "everything"
            yield Handler(file.relative_to(SOURCE).as_posix(), function, caught, handler.lineno, guarded)


ALL: Final = [handler for file in FILES for handler in handlers(file)]


def is_narrow(handler: Handler) -> bool:
    return set(handler.catches.split(", ")) <= NARROW


def test_there_are_handlers_to_look_at() -> None:
    assert {handler.file.partition("/")[0] for handler in ALL} >= {"providers", "framing", "payloads.py", "decoder.py"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(SOURCE).as_posix())
def test_no_handler_is_wider_than_its_reason(file: Path) -> None:
    wide = [handler for handler in handlers(file) if not is_narrow(handler) and handler.key not in ALLOWED]
    assert not wide


def test_every_exception_to_the_rule_is_there() -> None:
    assert set(ALLOWED) - {handler.key for handler in ALL} == set()


@pytest.mark.parametrize("handler", ALL, ids=lambda handler: f"{handler.file}:{handler.line}")
def test_a_try_guards_one_call_not_a_page(handler: Handler) -> None:
    """So that what it catches can only come from there."""
    assert handler.guarded <= 3


def test_the_decoder_s_errors_are_the_decoder_s() -> None:
    caught = (msgspec.DecodeError, UnicodeError, RecursionError)
    assert caught == DECODE_ERRORS


def test_nothing_is_suppressed_without_a_handler() -> None:
    """``contextlib.suppress`` and bare ``finally: return`` would hide what no handler names."""
    for file in FILES:
        for node in nodes(file):
            assert not (isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith("suppress")), file
            if isinstance(node, ast.Try):
                leaves = [n for s in node.finalbody for n in ast.walk(s) if isinstance(n, ast.Return | ast.Break)]
                assert not leaves, file
