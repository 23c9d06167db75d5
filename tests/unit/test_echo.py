"""What goes back: every turn of both sides, what is left out, what cannot be, and that nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamfold
from streamfold import Snapshot
from tests import servers
from tests.request_types import valid
from tests.retold import joined
from tests.samples import (
    Payload,
    cut,
    sse,
)
from tests.turns import (
    CALL,
    REASONED,
    SEARCH,
    SEARCH_GAVE,
    SEARCHED,
    SEARCHING,
    SIGNATURE,
    THINKING,
    THOUGHT,
    TURNS,
    WIRES,
    Turn,
)

# -- both sides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_an_answer_goes_back_member_by_member(turn: Turn) -> None:
    assert turn.answer().echo() == turn.echo


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_results_follow_it(turn: Turn) -> None:
    assert turn.answered(turn.answer()) == list(turn.results)


@pytest.mark.parametrize("name", [name for name, turn in TURNS.items() if not turn.foreign])
def test_both_are_what_the_official_client_sends(name: str) -> None:
    turn = TURNS[name]
    answer = turn.answer()
    for item in [*turn.echo, *turn.results, *answer.echo(), *turn.answered(answer)]:
        valid(turn.provider, item)


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_however_the_stream_was_cut(turn: Turn) -> None:
    echoes = [streamfold.fold(cut(turn.body(), size), turn.provider).echo() for size in (1, 17, 4096)]
    assert echoes[0] == echoes[1] == echoes[2]


@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_it_is_fresh_at_each_call_and_ready_for_json(turn: Turn) -> None:
    answer = turn.answer()
    first = answer.echo()
    kept = deepcopy(first)
    assert json.loads(json.dumps(first)) == first
    for item in first:
        for value in item.values():
            if isinstance(value, list):
                value.clear()
        item.clear()
    assert answer.echo() == kept


# -- one byte, one part -----------------------------------------------------------------------------------------------

SECRETS = (
    *("signature", "thoughtSignature", "thought_signature", "data", "encrypted_content", "encrypted_index"),
    *("fingerprint", "id", "call_id", "tool_use_id"),
)


def secrets(value: Any) -> Iterator[str]:
    """Texts that must come through letter by letter: nobody but the provider can tell what a wrong one does."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in SECRETS and isinstance(inner, str) and len(inner) > 3:
                yield inner
            else:
                yield from secrets(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from secrets(inner)


SPOTS = [
    pytest.param(turn, secret, id=f"{name}: {secret}")
    for name, turn in TURNS.items()
    for secret in dict.fromkeys(secrets(turn.echo))
]


@pytest.mark.parametrize(("turn", "secret"), SPOTS)
def test_one_flipped_byte_shows(turn: Turn, secret: str) -> None:
    flipped = secret[:2] + chr(ord(secret[2]) ^ 1) + secret[3:]
    echo = streamfold.fold([turn.body().replace(secret.encode(), flipped.encode())], turn.provider).echo()
    assert echo != turn.echo
    assert echo == json.loads(json.dumps(turn.echo).replace(secret, flipped))


MESSAGE = {"type": "message", "role": "assistant", "status": "completed"}
ANSWERED = {"type": "output_text", "text": "4", "annotations": []}
ONE, TWO = {"type": "text", "text": "One."}, {"type": "text", "text": "Two."}
HIDDEN = {**THINKING, "thinking": ""}
EMPTY = {"text": "", "thoughtSignature": "c2lnbmVk"}
PARTS = [
    {"text": "One."},
    EMPTY,
    {**SEARCHING, **SIGNATURE},
    SEARCH_GAVE,
    {"text": "Two.", "thoughtSignature": "c2Vjb25k"},
]
ITEMS = [{**MESSAGE, "id": f"msg_{number}", "content": [ANSWERED]} for number in range(2)]
STEPS = [THOUGHT, {"type": "model_output", "content": [ONE]}, {**THOUGHT, "signature": "c2Vjb25k"}, CALL]


class Sequence(NamedTuple):
    """Parts whose order counts.

    Attributes:
        parts: All that stand in one turn.
        empty: Those of them that show nothing, and count all the same.
        told: The stream of a turn.
        held: The turn.
    """

    parts: list[Payload]
    empty: list[Payload]
    told: Callable[[list[Payload]], Any]
    held: Callable[[list[Payload]], list[Payload]]

    def echo(self, provider: str, parts: list[Payload]) -> list[Payload]:
        return streamfold.fold([WIRES[provider](self.told(parts))], provider).echo()


SEQUENCES: dict[str, Sequence] = {
    "anthropic": Sequence(
        [ONE, HIDDEN, SEARCH, SEARCHED, TWO],
        [HIDDEN],
        lambda blocks: servers.anthropic({"content": blocks}),
        lambda blocks: [{"role": "assistant", "content": blocks}],
    ),
    "openai-responses": Sequence(
        [REASONED, *ITEMS, {**REASONED, "id": "rs_2"}, {**ITEMS[0], "id": "msg_2"}],
        [REASONED],
        servers.responses,
        list,
    ),
    "gemini": Sequence(
        PARTS,
        [EMPTY],
        lambda parts: servers.gemini({"parts": parts}),
        lambda parts: [{"role": "model", "parts": parts}],
    ),
    "gemini-interactions": Sequence(STEPS, [STEPS[0], STEPS[2]], servers.interactions, list),
}
SWAPS = [(provider, at) for provider, sequence in SEQUENCES.items() for at in range(len(sequence.parts) - 1)]
EMPTIES = [(provider, part) for provider, sequence in SEQUENCES.items() for part in sequence.empty]


@pytest.mark.parametrize(("provider", "at"), SWAPS)
def test_one_swapped_part_shows(provider: str, at: int) -> None:
    sequence = SEQUENCES[provider]
    parts = sequence.parts
    swapped = [*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]
    echo = sequence.echo(provider, swapped)
    assert echo != sequence.held(parts)
    if provider != "openai-responses":  # there, reasoning that moved away from what it led to stays out
        assert echo == sequence.held(swapped)


@pytest.mark.parametrize(("provider", "empty"), EMPTIES)
def test_one_dropped_empty_part_shows(provider: str, empty: Payload) -> None:
    sequence = SEQUENCES[provider]
    parts = sequence.parts
    dropped = [part for part in parts if part is not empty]
    assert sequence.echo(provider, parts) == sequence.held(parts)
    assert sequence.echo(provider, dropped) == sequence.held(dropped) != sequence.held(parts)


# -- any turn ---------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda text: not text.isspace()
)
tokens = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", min_size=5, max_size=40)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)
objects = st.dictionaries(texts, values, max_size=3)

thinking = st.fixed_dictionaries({"type": st.just("thinking"), "thinking": texts | st.just(""), "signature": tokens})
redacted = st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": tokens})
spoken = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
used = st.fixed_dictionaries({"type": st.just("tool_use"), "id": tokens, "name": texts, "input": objects})


@given(st.lists(thinking | redacted | spoken | used, max_size=6), texts)
def test_any_anthropic_turn(blocks: list[Payload], last: str) -> None:
    message = {"role": "assistant", "content": [*blocks, {"type": "text", "text": last}]}
    assert fold("anthropic", servers.anthropic(message, "tool_use")).echo() == [message]


parts = st.fixed_dictionaries({"type": st.just("output_text"), "text": texts, "annotations": st.just([])})
messages = st.fixed_dictionaries(
    {
        **{name: st.just(value) for name, value in MESSAGE.items()},
        "id": tokens,
        "content": st.lists(parts, min_size=1, max_size=3),
    }
)
summaries = st.lists(st.fixed_dictionaries({"type": st.just("summary_text"), "text": texts}), max_size=3)
reasoned = st.fixed_dictionaries(
    {"type": st.just("reasoning"), "id": tokens, "summary": summaries, "encrypted_content": tokens}
)
called = st.fixed_dictionaries(
    {
        "type": st.just("function_call"),
        "id": tokens,
        "call_id": tokens,
        "name": texts,
        "arguments": values.map(json.dumps),
        "status": st.just("completed"),
    }
)
custom = st.fixed_dictionaries(
    {"type": st.just("custom_tool_call"), "id": tokens, "call_id": tokens, "name": texts, "input": texts}
)


@given(st.lists(messages | reasoned | called | custom, max_size=5, unique_by=lambda item: item["id"]), messages)
def test_any_responses_turn(items: list[Payload], last: Payload) -> None:
    items = [*items, {**last, "id": "msg_last"}]
    assert fold("openai-responses", servers.responses(items)).echo() == items


calls = st.fixed_dictionaries(
    {
        "id": tokens,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": texts, "arguments": values.map(json.dumps)}),
    }
)
chats = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": texts},
    optional={
        "reasoning_content": texts,
        "tool_calls": st.lists(calls, min_size=1, max_size=4, unique_by=lambda call: call["id"]),
    },
)


@given(chats)
def test_any_chat_turn(message: Payload) -> None:
    assert fold("openai-chat", servers.chat_completions(message)).echo() == [message]


signed = st.fixed_dictionaries({}, optional={"thoughtSignature": tokens, "partMetadata": objects})
shown = st.fixed_dictionaries({"text": texts})
thought = st.fixed_dictionaries({"text": texts, "thought": st.just(True)})
function = st.fixed_dictionaries(
    {"functionCall": st.fixed_dictionaries({"name": texts, "args": objects}, optional={"id": tokens})}
)
unsaid = st.fixed_dictionaries({"text": st.just(""), "thoughtSignature": tokens})
said = st.builds(dict.__or__, shown | thought | function, signed)


def id_of(part: Payload) -> str:
    id_: str = part.get("functionCall", {}).get("id", "")
    return id_


@given(st.lists(said | unsaid, max_size=6, unique_by=lambda part: id_of(part) or object()))
def test_any_gemini_turn(parts: list[Payload]) -> None:
    parts = [*parts, {"text": "So."}]
    echo = streamfold.fold([WIRES["gemini"](servers.gemini({"parts": parts}))], "gemini").echo()
    assert echo == [{"role": "model", "parts": list(joined(parts))}]


contents = st.fixed_dictionaries({"type": st.just("text"), "text": texts})
content = st.lists(contents, min_size=1, max_size=1)
thoughts = st.fixed_dictionaries(
    {"type": st.just("thought"), "signature": tokens},
    optional={"summary": content},
)
outputs = st.fixed_dictionaries(
    {"type": st.just("model_output"), "content": st.lists(contents, min_size=1, max_size=1)}
)
wanted = st.fixed_dictionaries({"type": st.just("function_call"), "id": tokens, "name": texts, "arguments": objects})
found = st.fixed_dictionaries(
    {"type": st.just("google_search_result"), "call_id": tokens, "result": st.lists(objects)},
    optional={"signature": tokens},
)


@given(
    st.lists(thoughts | outputs | wanted | found, max_size=6, unique_by=lambda step: step.get("id", object())), outputs
)
def test_any_interactions_turn(first: list[Payload], last: Payload) -> None:
    body = WIRES["gemini-interactions"](servers.interactions([*first, last]))
    assert streamfold.fold([body], "gemini-interactions").echo() == [*first, last]


def fold(provider: str, payloads: Any, **settings: Any) -> Snapshot:
    return streamfold.fold([sse(payloads, names=provider != "openai-chat")], provider, **settings)
