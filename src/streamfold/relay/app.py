"""The HTTP face: events of any provider as the response of a route of one's own, over Starlette."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from streamfold.encoders.chat_completions import ChatCompletionsEncoder
from streamfold.errors import StreamError, UsageError
from streamfold.events import Event

try:
    from starlette.responses import StreamingResponse
except ModuleNotFoundError as fault:
    if fault.name != "starlette":
        raise
    raise UsageError("a route needs starlette: pip install 'streamfold[relay]'") from None

__all__ = ["chat_completions_response"]

_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # proxies that gather a body spoil a stream


def chat_completions_response(
    events: AsyncIterable[Event], *, cut_on_error: bool = True, **settings: Any
) -> StreamingResponse:
    """A response that streams the answer in the dialect of Chat Completions.

    The events are pulled as fast as the client reads. When the client leaves, ``events`` is closed, and with it the
    stream behind it.

    Args:
        events: What :func:`streamfold.aiter_unified` gives.
        cut_on_error: Whether a body that ends in an error is left without its last chunk; the server logs
            :class:`streamfold.StreamError` then.
        settings: See :class:`ChatCompletionsEncoder`.
    """
    body = _body(events, ChatCompletionsEncoder(**settings), cut_on_error)
    return StreamingResponse(body, media_type="text/event-stream", headers=_HEADERS)


async def _body(
    events: AsyncIterable[Event], encoder: ChatCompletionsEncoder, cut_on_error: bool
) -> AsyncIterator[bytes]:
    async with aclosing(_closable(events)):
        async for event in events:
            if frames := encoder.encode(event):
                yield frames
            if encoder.ended:
                break
        if frames := encoder.close():
            yield frames
    if encoder.error is not None and cut_on_error:
        raise StreamError(encoder.error)  # behind the last byte, so that the server leaves the body without its end


class _Open:
    """What needs no closing."""

    async def aclose(self) -> None:
        """Nothing is open."""


def _closable(events: Any) -> Any:
    return events if hasattr(events, "aclose") else _Open()
