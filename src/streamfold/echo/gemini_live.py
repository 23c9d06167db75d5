"""Gemini Live: the results of calls as one message of the client, and what was said as contents for another session.

Reads against ``BidiGenerateContentToolResponse`` and ``BidiGenerateContentClientContent``. A session holds its own
history: contents are for one that is begun anew (``clientContent.turns``), where a handle takes it up no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from streamfold.blocks import TextBlock, TranscriptBlock
from streamfold.echo._google import function_response
from streamfold.echo._items import Answered, Item, Turn, waiting

__all__ = ["items", "results", "waiting"]


def items(turn: Turn) -> list[Item]:
    """What was said, by whom: words of audio as the text they are. Audio itself and calls go into no history."""
    said = groupby(_said(turn), key=lambda words: words[0])
    return [{"role": role, "parts": [{"text": "".join(text for _, text in words)}]} for role, words in said]


def results(turn: Turn, answered: Iterable[Answered]) -> list[Item]:
    """One message with all of them."""
    responses = [function_response(block, result) for block, result in answered]
    return [{"toolResponse": {"functionResponses": responses}}] if responses else []


def _said(turn: Turn) -> Iterator[tuple[str, str]]:
    for block in turn.blocks:
        if isinstance(block, TranscriptBlock | TextBlock) and block.text:
            yield "user" if isinstance(block, TranscriptBlock) and block.source == "user" else "model", block.text
