"""What fuzzing found stays found, and the fuzzer itself runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz.mutate import mutate
from fuzz.run import FOUND, run, seeds, smaller
from fuzz.targets import TARGETS

FILES = [path for path in sorted(FOUND.rglob("*")) if path.is_file() and path.name != "README.md"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_stays_found(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_holds_for_some_changes(name: str) -> None:
    """A hundred changes, the same ones at every run; ``make fuzz`` tries others for as long as one likes."""
    chance, inputs = random.Random(name), seeds(name)
    for _ in range(100):
        TARGETS[name](mutate(chance.choice(inputs), chance))


def test_a_run_ends_in_time_and_says_how_much_it_tried() -> None:
    assert run("partial_json", 0.1, seed=1) > 0


def test_an_input_is_made_smaller_until_nothing_can_go() -> None:
    def target(data: bytes) -> None:
        assert b"bad" not in data

    assert smaller(target, b"one\ntwo bad three\nfour") == b"bad"


def test_changes_are_repeated_by_their_seed() -> None:
    data = seeds("stream-auto")[0]
    assert mutate(data, random.Random(1)) == mutate(data, random.Random(1))
    assert len({mutate(data, random.Random(seed)) for seed in range(20)}) > 10
