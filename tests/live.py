"""Sessions of many turns: the recorded ones and their facts, and what is promised of the events of every turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from streamfold import (
    BlockEnd,
    Done,
    ErrorEvent,
    Event,
    GoAway,
    Interrupted,
    LiveSession,
    MediaDelta,
    ReasoningBlock,
    Session,
    Snapshot,
    ToolCallBlock,
    ToolCallCancelled,
    ToolCallDone,
    ToolResult,
    TranscriptBlock,
    TurnEvent,
    Usage,
)
from streamfold.providers.registry import PROVIDERS
from tests.evidence import same_text
from tests.promises import LIVE, Reader

LATE: Final = ("block_start", "transcript_delta", "block_end", "usage", "tool_call_cancelled", "interrupted", "raw")
"""What may be said of a turn after its end."""

DOUBTED: dict[str, tuple[str, ...]] = {}
"""Capture -> members whose fact is not what the session says, or is open."""


class Recording(NamedTuple):
    """A recorded session: lines of what went in which direction, and the facts that the server's side folds to."""

    lines: list[dict[str, Any]]
    facts: dict[str, Any]

    def frames(self, direction: str = "in") -> list[dict[str, Any]]:
        return [line["frame"] for line in self.lines if line["dir"] == direction]


def recordings(shared: Path) -> Iterator[tuple[str, Recording]]:
    """Every recorded session whose provider is known."""
    for path in sorted((shared / "expected").glob("*.json")):
        document = json.loads(path.read_text())
        for file, facts in document["captures"].items():
            if file.endswith(".jsonl") and facts["provider"] in PROVIDERS:
                name = f"{document['folder']}/{file}"
                text = (shared / "captures" / name).read_text()
                yield name, Recording([json.loads(line) for line in text.splitlines()], facts)


class Told(NamedTuple):
    """What a session says of a recording: events with their turns, those that the server's messages caused."""

    session: LiveSession
    events: list[TurnEvent]
    finished: list[Snapshot]  # the turns that the wire ended, as they stand in the end


def tell(recording: Recording, form: Any = json.dumps, *, client: bool = True, provider: str | None = None) -> Told:
    """Feed the session, each message in the form asked for.

    Args:
        recording: Which.
        form: Makes of a message what a connection hands over.
        client: Tell the session what the client sent.
        provider: Whose the session is said to be; None: whose it is.
    """
    session = LiveSession(provider or recording.facts["provider"])
    events: list[TurnEvent] = []
    for line in recording.lines:
        if line["dir"] == "in":
            events += session.feed(form(line["frame"]))
        elif line["dir"] == "out" and client:
            session.sent(line["frame"])
        elif line["dir"] == "close":
            session.close(line["code"], line["reason"])
    numbers = [told.turn for told in events if isinstance(told.event, Done)]
    return Told(session, events, [session.snapshot(number) for number in numbers])


def differences(told: Told, recording: Recording) -> Iterator[str]:
    """What the session says otherwise than the facts."""
    facts, events = recording.facts, [event for _, event in told.events]
    turns = told.session.turns
    blocks = [block for turn in turns for block in turn.blocks]
    parts = [part for block in blocks if isinstance(block, ReasoningBlock) for part in block.parts]
    done = [e for e in events if isinstance(e, ToolCallDone) and e.valid and e.executor == "client"]
    calls = [{"id": e.id, "name": e.name, "json": True, "arguments": json.loads(e.arguments)} for e in done]
    cut = [b for t in turns for b in t.withheld_calls if b.executor == "client" and b.state != "cancelled"]
    found = {
        "messages": len(recording.frames()),
        "text": "".join(turn.text for turn in turns),
        "transcript": "".join(words(turns, "model")),
        "user_transcripts": "".join(words(turns, "user")),  # not every wire says where an utterance ends
        "reasoning": "".join(parts),
        "tool_calls": calls,
        "withheld_calls": sorted(block.name for block in cut),
        "cancelled_calls": [id_ for e in events if isinstance(e, ToolCallCancelled) for id_ in e.ids],
        "interrupted": sum(isinstance(event, Interrupted) for event in events),
        "go_away": sum(isinstance(event, GoAway) for event in events),
        "media_chunks": sum(isinstance(event, MediaDelta) for event in events),
        "errors": [event.code for event in events if isinstance(event, ErrorEvent)],
    }
    wanted = {**facts, "user_transcripts": "".join(facts["user_transcripts"])}
    for member, value in found.items():
        alike = same_text(value, wanted[member]) if isinstance(value, str) else value == wanted[member]
        if not alike:
            yield f"{member}: {value!r} is not {wanted[member]!r}"
    if len(told.finished) != len(facts["turns"]):
        yield f"turns: {len(told.finished)} are not {len(facts['turns'])}"
    for number, (turn, fact) in enumerate(zip(told.finished, facts["turns"], strict=False)):
        if fact["reason"] not in (None, turn.stop.reason):
            yield f"turn {number}: {turn.stop} is not {fact['reason']}"
        yield from (f"turn {number}: {line}" for line in usage_differences(turn.usage, fact["usage"]))


def usage_differences(usage: Usage | None, fact: dict[str, Any] | None) -> Iterator[str]:
    if fact is None or usage is None:
        if (fact is None) != (usage is None):
            yield f"{usage} is not {fact}"
        return
    for name, wanted in fact.items():
        found = getattr(usage, name)
        if found != wanted and not (wanted is None and found in (None, 0)):
            yield f"{name} {found} is not {wanted}"


def words(turns: Iterable[Snapshot], source: str) -> list[str]:
    """What was said, block by block."""
    blocks = (block for turn in turns for block in turn.blocks)
    return [block.text for block in blocks if isinstance(block, TranscriptBlock) and block.source == source]


def broken(events: Iterable[TurnEvent], *, closed: bool = True) -> list[str]:
    """The promises that the events of a session break: each turn is a complete stream, but for what comes late.

    Args:
        events: Of a session, from the first.
        closed: Whether the connection has closed, so that every turn has to be over.
    """
    readers: dict[int, Reader] = {}
    found: list[str] = []
    for turn, event in events:
        if turn is None:
            if event.type not in ("session", "go_away", "raw", "error"):
                found.append(f"an event of no turn: {event!r}")
            continue
        if isinstance(event, Session | GoAway):
            found.append(f"an event of the session's own has a turn: {event!r}")
        if turn > len(readers):
            found.append(f"turns are counted as they begin: {event!r}")
        reader = readers.setdefault(turn, Reader())
        if reader.ended and event.type in LATE and reader.last is not None:
            if isinstance(reader.last, ErrorEvent) and reader.last.fatal:
                found.append(f"nothing follows a fatal error: {event!r}")
            reader.ended = False
            _read(reader, event)
            reader.ended = True
        else:
            _read(reader, event)
    for number, reader in readers.items():
        found += [f"turn {number}: {promise}" for promise in reader.broken]
        if closed and not (reader.ended and not reader.open):
            found.append(f"turn {number} is not over")
    return found


def _read(reader: Reader, event: Event) -> None:
    if isinstance(event, ToolCallCancelled):
        reader.expect(bool(event.ids), "calls that are taken back have ids", event)
    if event.type in LIVE:
        reader.expect(reader.started, "start is the first event", event)
        reader.check_form(event)
    else:
        if not isinstance(event, BlockEnd) or not isinstance(event.block, ToolCallBlock):
            reader.last = None if isinstance(reader.last, ToolCallDone) else reader.last
        reader.read(event)


# -- what the client sends back ---------------------------------------------------------------------------------------


def results_sent(frame: dict[str, Any]) -> tuple[dict[str, Any], list[Any]] | None:
    """Results of calls that a client's message holds, by id, and the items that hold them; None where it holds none."""
    answer = frame.get("toolResponse") or frame.get("tool_response")  # one client spells the outermost member otherwise
    if answer:
        sent = answer["functionResponses"]
        return {result["id"]: _google(result) for result in sent}, [{"toolResponse": answer}]
    item = frame.get("item")
    if frame.get("type") == "conversation.item.create" and isinstance(item, dict):
        return ({item["call_id"]: item["output"]}, [frame]) if item["type"] == "function_call_output" else None
    items = frame.get("input")
    outputs = [i for i in items if i.get("type") == "function_call_output"] if isinstance(items, list) else []
    return ({output["call_id"]: output["output"] for output in outputs}, outputs) if outputs else None


def _google(result: dict[str, Any]) -> Any:
    rest = {name: value for name, value in result.items() if name not in ("id", "name")}
    return rest["response"]["output"] if rest.keys() == {"response"} else ToolResult(rest, native=True)
