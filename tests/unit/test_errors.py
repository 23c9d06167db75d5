"""The exceptions: one tree, a word and fields for programs, a sentence for people, and whole after a journey."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

from streamfold import (
    ChecksumMismatch,
    Empty,
    ErrorEvent,
    FrameTooLarge,
    FramingError,
    JSONText,
    LinkError,
    Malformed,
    NotJSONArray,
    StreamError,
    StreamfoldError,
    TooDeep,
    TrailingData,
    Truncated,
    UsageError,
    errors,
)

EVENT = ErrorEvent("provider", "try later", "overloaded", 529, retryable=True, raw=JSONText('{"a":1}'))

ERRORS: dict[str, tuple[StreamfoldError, str, dict[str, object]]] = {  # instance, its sentence, its fields
    "root": (StreamfoldError("why"), "why", {}),
    "usage": (UsageError("why"), "why", {}),
    "link": (LinkError("refused", 503), "refused", {"status": 503}),
    "link, without a word": (LinkError("gone"), "gone", {"status": None}),
    "stream": (StreamError(EVENT), "provider overloaded: try later", {"event": EVENT}),
    "stream without a code": (
        StreamError(ErrorEvent("truncated", "cut")),
        "truncated: cut",
        {"event": ErrorEvent("truncated", "cut")},
    ),
    "framing": (FramingError("why"), "why", {}),
    "too large": (
        FrameTooLarge(11, 10, 3),
        "the frame at byte 3 holds 11 bytes, more than the limit of 10 bytes",
        {"held": 11, "limit": 10, "offset": 3},
    ),
    "too deep": (TooDeep(5, 3), "the JSON value at byte 3 nests more than 5 levels", {"limit": 5, "offset": 3}),
    "malformed": (Malformed("why", 3), "why (at byte 3)", {"reason": "why", "offset": 3}),
    "checksum": (ChecksumMismatch("why", 3), "why (at byte 3)", {"reason": "why", "offset": 3}),
    "trailing": (TrailingData("why", 3), "why (at byte 3)", {"reason": "why", "offset": 3}),
    "no array": (NotJSONArray("why", 3), "why (at byte 3)", {"reason": "why", "offset": 3}),
    "truncated": (Truncated("why", 3), "why (at byte 3)", {"reason": "why", "offset": 3}),
    "empty": (Empty("why", 3), "why (at byte 3)", {"reason": "why", "offset": 3}),
}


def tree(root: type[Exception]) -> Iterator[type[Exception]]:
    yield root
    for branch in root.__subclasses__():
        yield from tree(branch)


@pytest.mark.parametrize(("error", "sentence", "fields"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_says_what_and_where(error: StreamfoldError, sentence: str, fields: dict[str, object]) -> None:
    assert str(error) == sentence
    assert {name: getattr(error, name) for name in fields} == fields


def test_there_is_an_instance_of_every_public_error() -> None:
    assert {type(error).__name__ for error, *_ in ERRORS.values()} == set(errors.__all__)


def test_every_error_of_the_package_is_public_or_a_branch() -> None:
    for kind in tree(StreamfoldError):
        if kind.__module__.startswith("streamfold."):
            kinds = [*tree(kind), *(base for base in kind.__mro__ if base is not StreamfoldError)]
            assert any(one.__name__ in errors.__all__ for one in kinds), (
                f"{kind.__name__} can be caught by no public name"
            )


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(("error", "sentence", "fields"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_survives_pickling(
    error: StreamfoldError, sentence: str, fields: dict[str, object], protocol: int
) -> None:
    assert_same(pickle.loads(pickle.dumps(error, protocol)), error, fields)


@pytest.mark.parametrize(("error", "sentence", "fields"), ERRORS.values(), ids=ERRORS.keys())
def test_an_error_survives_copying(error: StreamfoldError, sentence: str, fields: dict[str, object]) -> None:
    assert_same(copy.copy(error), error, fields)
    assert_same(copy.deepcopy(error), error, fields)


def assert_same(twin: StreamfoldError, error: StreamfoldError, fields: dict[str, object]) -> None:
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert {name: getattr(twin, name) for name in fields} == fields


def test_a_word_for_programs_tells_the_faults_of_framing_apart() -> None:
    codes = {kind.__name__: kind.code for kind in tree(FramingError) if not kind.__name__.startswith("_")}  # type: ignore[attr-defined]
    assert codes == {
        "FramingError": "framing",
        "FrameTooLarge": "too_large",
        "TooDeep": "too_deep",
        "Malformed": "malformed",
        "ChecksumMismatch": "checksum",
        "TrailingData": "trailing_data",
        "NotJSONArray": "not_json_array",
        "Truncated": "truncated",
        "Empty": "empty",
    }


PLACES = {
    "misuse is a value error too": (UsageError, ValueError),
    "a fault of framing is no misuse": (FramingError, StreamfoldError),
    "what follows the end is malformed": (TrailingData, Malformed),
    "what is no array is malformed": (NotJSONArray, Malformed),
    "nothing at all is truncated": (Empty, Truncated),
}


@pytest.mark.parametrize(("kind", "above"), PLACES.values(), ids=PLACES.keys())
def test_the_tree(kind: type[Exception], above: type[Exception]) -> None:
    assert issubclass(kind, above)
    assert not issubclass(FramingError, ValueError)
