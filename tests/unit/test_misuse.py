"""What goes wrong first where somebody begins: a slip shows at once, by a sentence that says what to do instead."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import streamfold
from streamfold import ErrorEvent, Snapshot, StreamAccumulator, StreamDecoder, StreamError, UsageError
from tests.conftest import ROOT
from tests.samples import ANSWERS, ANTHROPIC, CHAT, chat, chat_call, cut, sse

RECORDED = {path.stem: path for path in sorted((ROOT / "examples" / "recordings").glob("*.sse"))}


def ended(source: Any, provider: Any = "auto") -> ErrorEvent:
    error = streamfold.fold(source, provider).error
    assert error is not None
    return error


# -- reads whose line ends are gone ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", sorted(RECORDED.keys() - {"gemini-blocked"})
)  # one frame is whole without its line ends
def test_lines_without_their_ends_are_told(name: str) -> None:
    lines = RECORDED[name].read_bytes().splitlines()
    body = b"".join(lines)
    told = {(ended(reads).kind, ended(reads).code, ended(reads).retryable) for reads in (lines, [body], cut(body, 7))}
    assert told == {("protocol", "no_line_ends", False)}
    assert "iter_bytes" in ended(lines).message


@pytest.mark.parametrize(
    "body",
    [b'data: {"a":"data: x"', b'data: {"a":1}\ndata: {"a":', b"event: x", b'data: {"a":["}', b'\n\ndata: {"a":'],
)
def test_a_cut_is_no_loss_of_line_ends(body: bytes) -> None:
    assert ended([body], "openai-chat").kind == "truncated"


# -- another provider's stream -----------------------------------------------------------------------------------------

OTHERS = [
    (name, provider)
    for name in ("anthropic", "openai-chat", "openai-responses")
    for provider in ("anthropic", "openai-chat", "openai-responses", "gemini", "cohere", "ollama")
    if name != provider
]


@pytest.mark.parametrize(("name", "provider"), OTHERS)
def test_the_wrong_provider_is_told(name: str, provider: str) -> None:
    for size in (1, 50, 100_000):
        error = ended(cut(ANSWERS[name], size), provider)
        assert (error.kind, error.code, error.retryable) == ("protocol", "wrong_provider", False)
        assert error.message == f"these payloads are not {provider}'s; they look like {name}'s"


def test_what_looks_like_nothing_is_not_told() -> None:
    assert ended([sse([{"a": 1}])], "anthropic").kind == "truncated"
    assert ended([ANTHROPIC[:-60]], "anthropic").kind == "truncated"


# -- HTTP statuses -----------------------------------------------------------------------------------------------------


class Response:
    """As of httpx; aiohttp's has ``status``."""

    def __init__(self, body: bytes, status: object, *, member: str = "status_code", wait: str | None = None) -> None:
        self.body = body
        self.headers = {} if wait is None else {"Retry-After": wait}
        setattr(self, member, status)

    def iter_bytes(self) -> Iterator[bytes]:
        yield from cut(self.body, 9)

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        for piece in self.iter_bytes():
            yield piece


STATUSES: dict[str, tuple[bytes, int, tuple[str, str | None, bool]]] = {
    # body, status -> kind, code and whether it may pass
    "a page": (b"<html>Bad Gateway</html>", 502, ("protocol", "not_a_stream", True)),
    "a page that forbids": (b"<html>Forbidden</html>", 403, ("protocol", "not_a_stream", False)),
    "nothing": (b"", 503, ("provider", "503", True)),
    "nothing, for good": (b"", 401, ("provider", "401", False)),
    "an error": (b'{"error":{"message":"m"}}', 429, ("provider", None, True)),
    "an error that no waiting helps": (
        b'{"error":{"message":"m","code":"insufficient_quota"}}',
        429,
        ("provider", "insufficient_quota", False),
    ),
    "an error in a frame": (b'data: {"error":{"message":"m"}}\n\n', 500, ("provider", None, True)),
}


@pytest.mark.parametrize(("body", "status", "said"), STATUSES.values(), ids=STATUSES.keys())
@pytest.mark.parametrize("member", ["status_code", "status"])
def test_the_status_of_a_response_is_told(
    body: bytes, status: int, said: tuple[str, str | None, bool], member: str
) -> None:
    error = ended(Response(body, status, member=member, wait="7"), "openai-chat")
    assert (error.kind, error.code, error.retryable) == said
    assert (error.status, error.retry_after_ms) == (status, 7000)
    again = asyncio.run(streamfold.afold(Response(body, status, member=member, wait="7"), "openai-chat"))
    assert again.error == error
    traced = streamfold.iter_traced(Response(body, status, member=member, wait="7"), "openai-chat")
    assert [event for _, events in traced for event in events][-1] == error


@pytest.mark.parametrize("status", [200, None, "502", 399])
def test_no_status_changes_nothing(status: object) -> None:
    error = ended(Response(b"<html>", status, wait="7"))
    assert (error.status, error.retry_after_ms, error.retryable) == (None, None, False)


@pytest.mark.parametrize("wait", [None, "soon", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_wait_in_other_words_is_none(wait: str | None) -> None:
    assert ended(Response(b"", 503, wait=wait)).retry_after_ms is None


def test_an_answer_under_a_status_is_an_answer() -> None:
    assert streamfold.fold(Response(CHAT, 500), "openai-chat") == streamfold.fold([CHAT], "openai-chat")


def test_an_empty_body_is_told() -> None:
    for provider in ("auto", "openai-chat", "anthropic"):
        error = ended([], provider)
        assert (error.kind, error.message, error.retryable) == (
            "truncated",
            "the stream ended without a beginning: no bytes came",
            True,
        )


# -- what is no argument -----------------------------------------------------------------------------------------------


def no_maker(frame: Any) -> Any:
    return [frame]


def makes_nothing(**settings: Any) -> Any:
    return settings


class NoSurface(streamfold.BaseNormalizer):
    terminal = "bye"


class NoTerminal(streamfold.BaseNormalizer):
    surface = "acme"


class Slips(streamfold.BaseNormalizer):
    surface = "acme"
    terminal = "bye"

    def _mean(self, payload: Any) -> bool:
        self.answer.stop(0, cast("Any", "finito"), "bye")
        return True


CALLED = streamfold.fold([sse([chat_call(0, "{}", id="c", name="f"), chat(finish="tool_calls"), "[DONE]"])])


def text_file(path: Path) -> Snapshot:
    with path.open(encoding="utf-8") as file:
        return streamfold.fold(file)


any_: Any = streamfold
SLIPS: dict[str, tuple[Callable[[], Any], str]] = {
    "a function of frames": (lambda: streamfold.fold([b""], no_maker), "map_event_stream"),
    "a function that makes no normaliser": (lambda: streamfold.fold([b""], makes_nothing), "map_event_stream"),
    "a class without a surface": (lambda: streamfold.fold([b""], NoSurface), "NoSurface has to name its surface"),
    "a class without a terminal sign": (lambda: streamfold.fold([b""], NoTerminal), "NoTerminal has to name"),
    "a reason that is none": (lambda: streamfold.fold([b"data: {}\n\n"], Slips), "a stop reason is end, length"),
    "a text pushed": (lambda: StreamAccumulator().push(cast("Any", "Hello")), "not str"),
    "a text encoded": (lambda: any_.encode_event("Hello"), "not str"),
    "a snapshot encoded": (lambda: any_.encode_event(CALLED), "not Snapshot"),
    "a text in sentences": (lambda: list(any_.sentences(["Hello."])), "not str"),
    "a text file": (lambda: text_file(RECORDED["gemini-blocked"]), 'open files with "rb"'),
    "lines of text": (lambda: any_.fold(["data: {}"]), "iter_bytes"),
    "a path": (lambda: any_.fold("answer.sse"), 'open files with "rb"'),
    "text in a parser": (lambda: streamfold.SSEParser().feed(cast("Any", "x")), 'open files with "rb"'),
    "a list of results": (lambda: any_.tool_results(CALLED, ["r"]), "a mapping from a call's id"),
    "one result": (lambda: any_.tool_results(CALLED, "r"), "a mapping from a call's id"),
    "bytes as a result": (lambda: streamfold.tool_results(CALLED, {"c": b"r"}), "which bytes is not"),
    "bytes in a result": (lambda: streamfold.tool_results(CALLED, {"c": {"a": [b"r"]}}), "which bytes is not"),
    "no number as a result": (lambda: streamfold.tool_results(CALLED, {"c": (1, math.nan)}), "which nan is not"),
    "a name that is none": (lambda: any_.nonsense, "has no attribute 'nonsense'"),
}


@pytest.mark.parametrize(("slip", "told"), SLIPS.values(), ids=SLIPS.keys())
def test_a_slip_is_told(slip: Callable[[], Any], told: str) -> None:
    with pytest.raises((UsageError, AttributeError), match=told.replace("(", r"\(")) as caught:
        slip()
    assert isinstance(caught.value, UsageError) == ("attribute" not in told)


def test_a_function_that_makes_a_normaliser_is_a_provider() -> None:
    def made(**settings: Any) -> Any:
        return streamfold.OpenAIChatNormalizer(**settings)

    def by_name(after: Any = None, max_depth: int | None = 9) -> Any:
        return streamfold.OpenAIChatNormalizer(after=after, max_depth=max_depth)

    assert streamfold.fold([CHAT], made).text == streamfold.fold([CHAT], by_name).text == "Hello"


def test_what_a_normaliser_of_ones_own_raises_reaches_the_caller() -> None:
    class Fails(Slips):
        def _mean(self, payload: Any) -> bool:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        StreamDecoder(Fails).feed(b"data: {}\n\n")


@pytest.mark.parametrize("outcome", ["truncated", "failed"])
def test_an_answer_that_broke_off_is_an_error_though_no_event_says_so(outcome: Any) -> None:
    accumulator = StreamAccumulator()
    accumulator.push(streamfold.TextDelta(0, "Hel"))
    accumulator.close(outcome)
    with pytest.raises(StreamError) as caught:
        accumulator.snapshot().raise_for_error()
    assert (caught.value.event.kind, accumulator.snapshot().error) == ("truncated", None)


def test_an_answer_that_was_left_is_none() -> None:
    accumulator = StreamAccumulator()
    accumulator.close()
    accumulator.snapshot().raise_for_error()


def test_every_event_may_be_pushed() -> None:
    for event in (
        streamfold.Raw("x", streamfold.JSONText("{}")),
        streamfold.Interrupted(),
        streamfold.GoAway(),
        streamfold.Session(),
    ):
        accumulator = StreamAccumulator()
        accumulator.push(event)
        assert accumulator.snapshot() == StreamAccumulator().snapshot()


# -- sources, extras --------------------------------------------------------------------------------------------------


async def awaited() -> AsyncIterator[bytes]:
    yield CHAT


def test_a_source_that_is_none_says_what_to_do_instead() -> None:
    for source, words in ((Path("answer.sse"), 'open files with "rb"'), (awaited(), "afold, aiter_unified")):
        with pytest.raises(UsageError, match=words):
            streamfold.fold(cast("Any", source))


WITHOUT = """
import importlib, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
importlib.import_module(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("streamfold.client", "httpx2", "client"),
        ("streamfold.relay.app", "starlette", "relay"),
        ("streamfold.testing", "uvicorn", "relay"),
        ("streamfold.transports.recording", "httpx2", "client"),
    ],
)
def test_what_is_not_installed_is_told_by_its_extra(module: str, missing: str, extra: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, missing, module], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("streamfold.errors.UsageError: ")
    assert f"pip install 'streamfold[{extra}]'" in done.stderr
