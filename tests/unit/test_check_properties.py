"""Whatever a stream is changed into: the linter raises nothing, and how the bytes were cut changes no finding."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from streamfold import RULES, Finding, check, check_session
from streamfold.providers.registry import PROVIDERS
from tests.unit.test_check import HEALTHY, MORE, ROWS
from tests.unit.test_check_sessions import FAULTS, recorded
from tests.unit.test_check_sessions import HEALTHY as SESSIONS

WIRES = [
    *HEALTHY.values(),
    *(row.wire for row in ROWS.values() if len(row.wire) < 10_000),
    *(wire for _, _, wire in MORE.values()),
]
PIECES = sorted({piece for wire in WIRES for piece in wire.split(b"\n\n")}, key=lambda piece: (len(piece), piece))
ODD = [
    *(b"\n", b"\r", b"\r\n", b"\n\n", b":", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xe2", b" ", b"null"),
    *(
        b"id: ",
        b"retry: x",
        b"event:",
        b"data:",
        b"data: [DONE]\n\n",
        b'{"error":{}}',
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"\\",
    ),
]

edits = st.tuples(st.integers(0, 400), st.integers(0, 12), st.sampled_from(ODD) | st.binary(max_size=4))


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Frames of several surfaces in any order, or one stream; then a few bytes changed."""
    frames = st.lists(st.sampled_from(PIECES), max_size=8).map(lambda some: b"\n\n".join([*some, b""]))
    wire = draw(st.sampled_from(WIRES) | frames | st.binary(max_size=60))
    for at, width, put in draw(st.lists(edits, max_size=4)):
        at = at * len(wire) // 400
        wire = wire[:at] + put + wire[at + width :]
    return wire


def findings(chunks: list[bytes], provider: str) -> list[Finding]:
    with check(chunks, provider) as found:
        return list(found)


# Messages come whole, and cannot be cut.
providers = st.sampled_from([name for name, dialect in PROVIDERS.items() if dialect.framing != "messages"])


@given(wire=streams(), points=st.lists(st.integers(0, 2_000), max_size=8), provider=providers)
def test_cuts_change_no_finding(wire: bytes, points: list[int], provider: str) -> None:
    whole = findings([wire], provider)
    edges = sorted({0, len(wire), *(point for point in points if point < len(wire))})
    assert findings([wire[a:b] for a, b in pairwise(edges)], provider) == whole
    assert findings([bytes([byte]) for byte in wire], provider) == whole


FRAMES_OF_NOBODY = [
    *(b'data: {"a":1}\n\n', b'data: {"error":{}}\n\n', b"data: {x}\n\n", b"data: [1]\n\n", b"data: : hi\n\n"),
    *(b"data: [DONE]\n\n", b": hi\n\n", b'{"error":{"message":"m"}}\n\n', b'data: {"choices":[]}\n\n'),
    b"{x\n",
]
TELLS_NOTHING = FRAMES_OF_NOBODY[0]
many_frames = st.lists(st.sampled_from([TELLS_NOTHING] * 4 + FRAMES_OF_NOBODY), max_size=14).map(b"".join)


@given(wire=many_frames, points=st.lists(st.integers(0, 200), max_size=4))
@example(wire=TELLS_NOTHING * 9 + b"data: {x}\n\n", points=[])
@example(wire=TELLS_NOTHING + b'{"error":{"message":"m"}}\n\n{x\n', points=[])
@example(wire=TELLS_NOTHING + b'{"error":{"message":"m"}}\n\n' * 2, points=[])
def test_cuts_change_no_finding_where_nothing_tells_whose_stream_it_is(wire: bytes, points: list[int]) -> None:
    whole = findings([wire], "auto")
    edges = sorted({0, len(wire), *(point for point in points if point < len(wire))})
    assert findings([wire[a:b] for a, b in pairwise(edges)], "auto") == whole
    assert findings([bytes([byte]) for byte in wire], "auto") == whole


@given(wire=streams(), provider=providers)
def test_findings_are_of_the_stream_and_in_its_order(wire: bytes, provider: str) -> None:
    found = findings([wire], provider)
    assert all(0 <= finding.offset <= len(wire) for finding in found)
    assert all(one.offset <= other.offset for one, other in pairwise(found))
    assert all(finding.severity == RULES[finding.code].severity for finding in found)
    for finding in found:
        assert json.loads(msgspec.json.encode(finding))["code"] == finding.code


odd_values = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], [[]], {}, {"type": "x"}, [{"id": []}, 3]])


@st.composite
def sessions(draw: st.DrawFn) -> tuple[str, bytes]:
    """A session whose values are changed into other kinds here and there, and perhaps a few bytes."""
    known = [*SESSIONS.values(), *((provider, stream) for _, provider, stream, _ in FAULTS.values())]
    provider, stream = draw(st.sampled_from(known))
    stream = json.loads(json.dumps(stream))
    for _ in range(draw(st.integers(0, 3))):
        place = stream[draw(st.integers(0, len(stream) - 1))]
        while isinstance(place, dict) and place:
            name = draw(st.sampled_from(sorted(place)))
            if not isinstance(place[name], dict | list) or draw(st.booleans()):
                place[name] = draw(odd_values)
                break
            place = place[name]
            if isinstance(place, list):
                place = place[0] if place else None
    wire = recorded(stream)
    for at, width, put in draw(st.lists(edits, max_size=1)):
        at = at * len(wire) // 400
        wire = wire[:at] + put + wire[at + width :]
    return provider, wire


@given(session=sessions(), step=st.integers(1, 60))
def test_sessions_raise_nothing_and_cuts_change_no_finding(session: tuple[str, bytes], step: int) -> None:
    provider, wire = session
    with check_session(wire, provider) as found:
        whole = list(found)
    assert all(one.offset <= other.offset for one, other in pairwise(whole))
    assert all(0 <= finding.offset <= len(wire) for finding in whole)
    with check_session([wire[at : at + step] for at in range(0, len(wire), step)], provider) as found:
        assert list(found) == whole
