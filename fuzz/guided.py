"""The same targets and changes, guided by coverage.

    python -m fuzz.guided TARGET [-max_total_time=SECONDS …]

Needs atheris (``pip install -e ".[fuzz]"``), whose options (those of libFuzzer) follow the target. An input that breaks
a promise is written to the working directory as ``crash-…``: what it is made smaller to belongs into ``fuzz/found``.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["streamfold"]):
    from fuzz.mutate import mutate
    from fuzz.run import seeds, words
    from fuzz.targets import TARGETS


def main() -> None:
    name = sys.argv[1]
    inputs = seeds(name)
    known = words([*inputs, *seeds("payloads-auto")])

    def change(data: bytes, size: int, seed: int) -> bytes:
        return mutate(data, random.Random(seed), known)[:size]

    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(inputs):
            (Path(corpus) / str(number)).write_bytes(data)
        atheris.Setup([sys.argv[0], "-max_len=65536", *sys.argv[2:], corpus], TARGETS[name], custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
