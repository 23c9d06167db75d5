"""The results of an answer's calls, as items of the next request."""

from __future__ import annotations

from collections.abc import Mapping

from streamfold.blocks import ApprovalBlock, ToolCallBlock
from streamfold.echo._items import Item, ToolResult, Turn, waiting
from streamfold.echo._surfaces import ONE_BY_ONE, surface_of, turn_of
from streamfold.errors import UsageError
from streamfold.snapshot import Snapshot

__all__ = ["ToolResult", "tool_results"]


def tool_results(answer: Snapshot, results: Mapping[str, object], *, choice: int = 0) -> list[Item]:
    """The items that answer the calls of an answer, in the shape its provider wants.

    They follow ``answer.echo()`` in the next request. All results go in at once: no provider goes on before every call
    of the turn has its answer, and some want them in one message. Of a live session they are what to send, and it takes
    them one by one; Realtime also takes that of a call whose item is still open, once its arguments are whole.

    Args:
        answer: The answer that made the calls.
        results: By the call's id: text, a value that becomes JSON, or a :class:`ToolResult` where the tool failed or
            the provider's own form is wanted. A request for approval is answered by True or False.
        choice: Which of several answers was taken.

    Returns:
        The items in the order of the calls; none where the answer calls nothing. Fresh objects at each call.

    Raises:
        UsageError: ``results`` is no mapping; a call has no result; a result belongs to no call that is handed out; a
            result is not what JSON can say, as bytes and NaN are not; or the surface takes no results.
    """
    if not isinstance(results, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"results are a mapping from a call's id to its result, not a {type(results).__name__}")
    surface, turn = surface_of(answer), turn_of(answer, choice)
    wanted = surface.waiting(turn)
    for unknown in results.keys() - {block.id for block in (*waiting(turn), *wanted)}:
        raise UsageError(f"a result names {unknown!r}, {_why_not(turn, unknown)}")
    missing = [block.id for block in wanted if block.id not in results]
    if missing and answer.surface in ONE_BY_ONE:
        wanted = [block for block in wanted if block.id in results]
    elif missing:
        raise UsageError(f"no result for {', '.join(map(repr, missing))}: each call of the turn wants one")
    return surface.results(turn, [(block, _result(results[block.id])) for block in wanted])


def _result(given: object) -> ToolResult:
    return given if isinstance(given, ToolResult) else ToolResult(given)


def _why_not(turn: Turn, id_: str) -> str:
    for block in turn.blocks:
        if isinstance(block, ToolCallBlock) and block.id == id_:
            return (
                "which the provider runs" if block.state == "provider" else f"a call that is withheld ({block.state})"
            )
        if isinstance(block, ApprovalBlock) and block.id == id_:
            return "a request for approval that broke off"
    return "which is no call of the answer"
