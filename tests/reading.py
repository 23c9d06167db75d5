"""Reading payloads in every way there is, which must all say the same; and the few things every table needs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final, Literal

import msgspec
import pytest
from _pytest.mark.structures import ParameterSet

from streamfold import Done, ErrorEvent, Event, JSONText, Raw, Snapshot, Stop, StreamAccumulator, Usage, encode_event
from streamfold.events import StopReason
from streamfold.providers.registry import normalizer
from tests.promises import broken, is_json, whole

Row = tuple[Any, ...]

TRUNCATED: Final = ErrorEvent("truncated", "", retryable=True)
ORPHAN: Final = ErrorEvent("protocol", "", "orphan_fragment", fatal=False)
BAD_JSON: Final = ErrorEvent("protocol", "", "bad_json")


def rows(table: Mapping[str, Row], bugs: Mapping[str, str] | None = None) -> list[ParameterSet]:
    """The rows of a table by their sentences; those of known bugs are expected to fail until they are fixed."""
    known = bugs or {}
    unknown = known.keys() - table.keys()
    assert not unknown, f"no such rows: {sorted(unknown)}"
    marks = {sentence: [pytest.mark.xfail(strict=True, reason=reason)] for sentence, reason in known.items()}
    return [pytest.param(*row, id=sentence, marks=marks.get(sentence, [])) for sentence, row in table.items()]


def as_text(payload: Any) -> Any:
    """The payload as JSON text without blanks; text that came as such stays as it is."""
    return payload if isinstance(payload, str) else json.dumps(payload, separators=(",", ":"), ensure_ascii=False)


def as_bytes(payload: Any) -> bytes:
    text: str = as_text(payload)
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can write
        return json.dumps(payload, separators=(",", ":")).encode()


def read(
    provider: str,
    payloads: Iterable[Any],
    how: Literal["eof", "cut", "cancel"] = "eof",
    **settings: Any,
) -> list[Event]:
    """The events of these payloads and of the end: read one by one and at once, by the quick way and the general one,
    as bytes, text and objects. They must be the same, and keep the promises. Messages of our own count for nothing.
    """
    payloads = list(payloads)
    data = [as_bytes(payload) for payload in payloads]
    events = _one_by_one(provider, data, how, **settings)
    ways = {
        "at once": _at_once(provider, data, how, **settings),
        "the general way": _one_by_one(provider, data, how, hot=False, **settings),
        "as text": _one_by_one(provider, [piece.decode() for piece in data], how, **settings),
        "as objects": _one_by_one(provider, deepcopy(payloads), how, **settings),
    }
    for way, others in ways.items():
        assert alike(others) == alike(events), way
    assert not broken(events, ended=how != "cancel")
    return [own_words(event) for event in events]


def _one_by_one(provider: str, payloads: Iterable[Any], how: Any, *, hot: bool = True, **settings: Any) -> list[Event]:
    made: Any = normalizer(provider, **settings)
    made.hot = hot
    return [*(event for payload in payloads for event in made.feed([payload])), *made.close(how)]


def _at_once(provider: str, payloads: list[Any], how: Any, **settings: Any) -> list[Event]:
    made = normalizer(provider, **settings)
    return [*made.feed(payloads), *made.close(how)]


def own_words(event: Event) -> Event:
    """The same event; of an error that we worded ourselves the words are left out."""
    if isinstance(event, ErrorEvent) and event.kind != "provider":
        return msgspec.structs.replace(event, message="")
    return event


def alike(events: Iterable[Event]) -> list[Any]:
    """Events by what they say: the letters in which the wire wrote its JSON do not count."""
    return [_plain(json.loads(encode_event(event), parse_int=whole)) for event in events]


def _plain(value: Any) -> Any:
    """The value, JSON inside its text read."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, str) and value[:1] in ("{", "[", '"') and is_json(value):
        return ["JSON", json.loads(value, parse_int=whole)]
    return value


def fold(events: Iterable[Event]) -> Snapshot:
    accumulator = StreamAccumulator()
    accumulator.extend(events)
    return accumulator.snapshot()


# -- events in few words ----------------------------------------------------------------------------------------------


def json_of(value: Any) -> JSONText:
    return JSONText(as_text(value))


def raw(payload: Any, index: int | None = None, name: str | None = None, *, is_json: bool = True) -> Raw:
    """The whole payload as ``raw``, under the name that it gives itself."""
    names = ("type", "event_type", "object")
    own = next(filter(None, map(payload.get, names)), None) if isinstance(payload, dict) else None
    text = json_of(payload) if is_json else JSONText(json.dumps(payload, ensure_ascii=False))
    return Raw(name or own or "message", text, index, is_json)


def done(reason: StopReason | None, word: str | None = None, stop_sequence: str | None = None) -> Done:
    """The end of an answer of one choice."""
    return Done(reason, word, stop_sequence, (Stop(0, reason, word, stop_sequence),))


def usage(members: Any, **counts: Any) -> Usage:
    return Usage(**counts, raw=json_of(members))
