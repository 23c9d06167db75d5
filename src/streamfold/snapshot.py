"""An answer as it stands: immutable, cheap to take at every event, put together only where it is looked at.

A snapshot shares what it can with the accumulator and with other snapshots: blocks in chunks, open ones by views of
their growing text. Blocks and text are made when they are asked for, and kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from streamfold.blocks import Block, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock
from streamfold.errors import StreamError
from streamfold.events import ErrorEvent, Stop, Usage, encode_json

__all__ = ["BlockView", "Choice", "Outcome", "Snapshot"]

Outcome: TypeAlias = Literal["open", "complete", "failed", "truncated", "cancelled"]
"""What became of an answer; ``complete`` alone is success."""


class BlockView(Protocol):
    """Something that can become a block when somebody looks."""

    def block(self) -> Block:
        """The block as it stood when the view was taken; the same object each time."""
        ...


class Choice(msgspec.Struct, frozen=True):
    """One of the answers, where a caller asked for several.

    Attributes:
        index: Which.
        blocks: Its blocks, in index order.
        stop: Why it ended; its ``reason`` is None while it is open.
    """

    index: int
    blocks: tuple[Block, ...]
    stop: Stop

    @property
    def text(self) -> str:
        """All visible text, refusals included, joined with nothing."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock | RefusalBlock))

    @property
    def reasoning(self) -> str:
        """All reasoning, blocks joined by a blank line."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, ReasoningBlock) and block.text)

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls that the caller is meant to run: finished by the provider, with arguments that parse."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCallBlock) and block.state == "ready")

    @property
    def withheld_calls(self) -> tuple[ToolCallBlock, ...]:
        """All other calls; ``state`` says why."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCallBlock) and block.state != "ready")


class Snapshot(msgspec.Struct, frozen=True, eq=False, dict=True):
    """An answer as it stands.

    ``text``, ``reasoning``, ``tool_calls``, ``withheld_calls`` and ``stop`` are those of choice 0.

    Attributes:
        surface: The wire dialect; None before ``start``.
        id: The provider's name for the answer.
        model: As the provider names it.
        usage: The latest totals.
        error: The fatal error, if the answer ended in one.
        outcome: ``open``, ``complete`` (a terminal sign came), ``failed``, ``truncated`` or ``cancelled``.
        choices: How many answers there are.
    """

    surface: str | None = None
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    error: ErrorEvent | None = None
    outcome: Outcome = "open"
    choices: int = 1
    _stops: tuple[Stop, ...] = ()
    _warnings: tuple[list[ErrorEvent], int] = ([], 0)
    _row: tuple[tuple[BlockView | Block, ...], ...] = ()

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks of all choices, in index order."""
        return tuple([_made(view) for chunk in self._row for view in chunk])

    @property
    def warnings(self) -> tuple[ErrorEvent, ...]:
        """The errors that were not fatal."""
        warnings, count = self._warnings
        return tuple(warnings[:count])

    def choice(self, index: int) -> Choice:
        """One of the answers: its own text, reasoning, calls and stop. An index that never came is an empty one."""
        stop = next((stop for stop in self._stops if stop.choice == index), Stop(index))
        return Choice(index, tuple(block for block in self.blocks if block.choice == index), stop)

    @cached_property
    def _first(self) -> Choice:
        return self.choice(0)

    @property
    def stop(self) -> Stop:
        """Why it ended; ``reason`` is None while it is open, and where the provider named none."""
        return next((stop for stop in self._stops if stop.choice == 0), Stop())

    @property
    def text(self) -> str:
        """All visible text, refusals included, joined with nothing."""
        return self._first.text

    @property
    def reasoning(self) -> str:
        """All reasoning, blocks joined by a blank line."""
        return self._first.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls that the caller is meant to run: finished by the provider, with arguments that parse."""
        return self._first.tool_calls

    @property
    def withheld_calls(self) -> tuple[ToolCallBlock, ...]:
        """All other calls; ``state`` says why."""
        return self._first.withheld_calls

    def raise_for_error(self) -> None:
        """Do nothing, unless the answer ended in a fatal error or broke off.

        Raises:
            StreamError: It did; the event is its ``event``, made up where none came, as of an accumulator that was
                closed as ``truncated`` or ``failed``.
        """
        if self.error is not None:
            raise StreamError(self.error)
        if self.outcome in ("truncated", "failed"):
            raise StreamError(ErrorEvent("truncated", "the answer broke off, and nothing told why"))

    def to_json(self) -> str:
        """The whole answer as one JSON object on one line.

        Members: ``id``, ``model``, ``surface``, ``outcome``, ``stop``, ``text``, ``reasoning``, ``blocks``,
        ``tool_calls``, ``withheld_calls``, ``usage``, ``error``, ``warnings``, and ``choices`` where there are several.
        """
        first = _choice_members(self._first)
        members: dict[str, Any] = {
            "id": self.id,
            "model": self.model,
            "surface": self.surface,
            "outcome": self.outcome,
            "stop": first.pop("stop"),
            "text": first.pop("text"),
            "reasoning": first.pop("reasoning"),
            "blocks": self.blocks,
            **first,
            "usage": self.usage,
            "error": self.error,
            "warnings": self.warnings,
        }
        if self.choices > 1:
            members["choices"] = [{"index": choice.index, **_choice_members(choice)} for choice in self._every_choice()]
        return encode_json(members).decode()

    def echo(self, choice: int = 0) -> list[dict[str, Any]]:
        """The answer as the items to append to the next request, in the shape and order its provider demands.

        Anthropic and Gemini want one message, Chat Completions one too, Responses and Interactions the items or steps
        themselves. Signatures, encrypted reasoning and ids stand where they stood; what the provider ran itself goes
        back with its results. What would make the provider refuse the request is left out: calls that are withheld,
        half a thought, an empty text. The results of the calls follow: :func:`streamfold.tool_results`.

        Args:
            choice: Which of several answers was taken.

        Returns:
            Fresh dicts and lists, ready for JSON; none where nothing of the answer can go back. The text of an answer
            that broke off goes back as far as it came.

        Raises:
            UsageError: The answer is of no provider or of a surface that takes none back, there is no such choice, or
                the provider wants the turn left out.
        """
        from streamfold.echo._surfaces import surface_of, turn_of

        return surface_of(self).items(turn_of(self, choice))

    def _every_choice(self) -> Iterator[Choice]:
        """The choices that came, in order. Sorted in one go: a choice may be anything a provider says it is."""
        stops = {stop.choice: stop for stop in self._stops}
        blocks: dict[int, list[Block]] = {number: [] for number in (0, *stops)}
        for block in self.blocks:
            blocks.setdefault(block.choice, []).append(block)
        return (Choice(n, tuple(blocks[n]), stops.get(n, Stop(n))) for n in sorted(blocks))

    def __repr__(self) -> str:
        names = ("surface", "id", "model", "outcome", "choices", "blocks", "stop", "usage", "error", "warnings")
        return f"Snapshot({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and (self is other or self._parts() == other._parts())

    def __ne__(self, other: object) -> bool:  # a Struct brings its own, which knows nothing of __eq__
        return not self == other

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        names = (self.surface, self.id, self.model)
        return (*names, self.blocks, self.usage, self._stops, self.error, self.warnings, self.outcome, self.choices)


def _made(view: BlockView | Block) -> Block:
    return view if isinstance(view, msgspec.Struct) else view.block()


def _choice_members(choice: Choice) -> dict[str, Any]:
    return {
        "stop": {"reason": choice.stop.reason, "raw": choice.stop.raw, "stop_sequence": choice.stop.stop_sequence},
        "text": choice.text,
        "reasoning": choice.reasoning,
        "tool_calls": [_call_members(call) for call in choice.tool_calls],
        "withheld_calls": [{**_call_members(call), "state": call.state} for call in choice.withheld_calls],
    }


def _call_members(call: ToolCallBlock) -> dict[str, str]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
