"""The HTTP face: events of any provider as the response of a route of one's own, over Starlette."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import StreamingResponse

from streamfold.encoders.chat_completions import ChatCompletionsEncoder
from streamfold.errors import StreamfoldError
from streamfold.events import Event

__all__ = ["BrokenOff", "chat_completions_response"]

_HEADERS: Final = {"cache-control": "no-cache", "x-accel-buffering": "no"}  # proxies that gather a body spoil a stream


class BrokenOff(StreamfoldError):
    """An answer ended in an error after HTTP 200: raised behind its last byte, so that the server cuts the body off.

    A client that looks for no error in the body is told of it by its transport.
    """


def chat_completions_response(
    events: AsyncIterable[Event], *, cut_on_error: bool = True, **settings: Any
) -> StreamingResponse:
    """A response that streams the answer in the dialect of Chat Completions.

    The events are pulled as fast as the client reads. When the client leaves, ``events`` is closed, and with it the
    stream behind it.

    Args:
        events: What :func:`streamfold.aiter_unified` gives.
        cut_on_error: Whether a body that ends in an error is left without its last chunk; the server logs
            :class:`BrokenOff` then.
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
    if encoder.failed and cut_on_error:
        raise BrokenOff("the answer ended in an error, which its body tells")


class _Open:
    """What needs no closing."""

    async def aclose(self) -> None:
        """Nothing is open."""


def _closable(events: Any) -> Any:
    return events if hasattr(events, "aclose") else _Open()
