"""A provider of one's own: the worked examples of its page, and what the library keeps for a class."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import BaseNormalizer, Event, StreamDecoder, UsageError
from streamfold.payloads import Payload, read_object
from tests.conftest import ROOT
from tests.promises import broken, broken_by_batches

PAGE = (ROOT / "docs" / "own-provider.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


class Acme(BaseNormalizer):
    """What the page shows."""

    surface = "acme"
    terminal = "bye"
    framing = "jsonl"

    def _begin(self) -> None:
        self.block: Any = None

    def _mean(self, payload: Payload) -> bool:
        answer = self.answer
        match read_object(payload, answer.max_depth):
            case {"say": str(piece)}:
                self.block = self.block or answer.open_text()
                answer.text(self.block, piece)
            case {"call": {"id": id_, "tool": str(name), "input": value}}:
                answer.finish_call(answer.open_call(id_, name), json.dumps(value))
            case {"bye": str(why)}:
                if self.block:
                    answer.close(self.block)
                answer.stop(0, "end", why)
                answer.done()
            case _:
                return False
        return True


LINES = b'{"say":"Hel"}\n{"say":"lo"}\n{"new":1}\n{"bye":"finished"}'


def test_the_examples_are_short() -> None:
    assert len(EXAMPLES) == 2
    assert all(len(example.splitlines()) < 40 for example in EXAMPLES)
    assert ["BaseNormalizer" in example for example in EXAMPLES] == [False, True]


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_a_class_goes_where_a_name_goes(step: int) -> None:
    chunks = [LINES[at : at + step] for at in range(0, len(LINES), step)]
    answer = streamfold.fold(chunks, Acme)
    assert (answer.surface, answer.text, answer.outcome, answer.stop.reason) == ("acme", "Hello", "complete", "end")
    with streamfold.iter_unified(chunks, Acme) as stream:
        events = list(stream)
    assert [event.type for event in events if event.type == "raw"] == ["raw"]
    assert [event for _, caused in streamfold.iter_traced(chunks, Acme) for event in caused] == events
    assert asyncio.run(streamfold.afold(chunks, Acme)) == answer
    decoder = StreamDecoder(Acme, framing="jsonl", raw="none")
    read = [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.close()
    assert read == [event for event in events if event.type != "raw"]


ENDS = {
    "without its end": (b'{"say":"Hel"}\n', "truncated", "truncated"),
    "no JSON": (b'{"say":"Hel"}\n{"say"\n', "failed", "protocol"),
    "too deep": (b"[" * 300 + b"]" * 300 + b"\n", "failed", "limit"),
}


@pytest.mark.parametrize(("body", "outcome", "kind"), ENDS.values(), ids=ENDS.keys())
def test_the_ends_are_kept_for_it(body: bytes, outcome: str, kind: str) -> None:
    answer = streamfold.fold([body], Acme)
    assert answer.outcome == outcome
    assert answer.error is not None
    assert answer.error.kind == kind


def test_a_name_that_is_none_stays_misuse() -> None:
    with pytest.raises(UsageError, match="no provider is called"):
        streamfold.fold([b""], "acme")


payloads = st.lists(
    st.fixed_dictionaries({"say": st.text(max_size=3)})
    | st.fixed_dictionaries({"call": st.fixed_dictionaries({"id": st.text(), "tool": st.text(), "input": st.none()})})
    | st.fixed_dictionaries({"bye": st.just("finished")})
    | st.dictionaries(st.text(max_size=3), st.none() | st.integers(), max_size=2),
    max_size=6,
)


@given(stream=payloads)
def test_the_promises_are_kept_for_it(stream: list[Any]) -> None:
    made = Acme()
    batches: list[list[Event]] = [*(made.feed([json.dumps(payload)]) for payload in stream), made.close()]
    assert not broken(event for batch in batches for event in batch)
    assert not broken_by_batches(batches)
