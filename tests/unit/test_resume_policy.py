"""What follows on a connection that broke off, as values: no socket, no clock, no lots."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from streamfold import Cursor, ErrorEvent
from streamfold.resume import Policy, Sent, Step, cancel_request, reconnect_delay, resume_request

HEADERS = (
    ("Authorization", "Bearer k"),
    ("Content-Type", "application/json"),
    ("content-length", "9"),
    ("X-Org", "o"),
)
KEPT = (("Authorization", "Bearer k"), ("X-Org", "o"))
RESPONSES = Sent("POST", "https://api.test/v1/responses", HEADERS, background=True, stream=True)
INTERACTIONS = RESPONSES._replace(url="https://api.test/v1beta/interactions")
AT_7 = Cursor("resp_1", 7, "sse-id")
AT_E = Cursor("v1_x", None, "ev/2 &")

RESUMED: dict[str, tuple[str, Sent, Cursor, str]] = {
    # surface, first request, cursor -> where the rest is
    "Responses": (
        "openai-responses", RESPONSES, AT_7,
        "https://api.test/v1/responses/resp_1?stream=true&starting_after=7",
    ),
    "its first event": (
        "openai-responses", RESPONSES, Cursor("resp_1", 0),
        "https://api.test/v1/responses/resp_1?stream=true&starting_after=0",
    ),
    "Azure, which has its version in the query": (
        "openai-responses", RESPONSES._replace(url="https://a.test/openai/v1/responses?api-version=2026-01&x="), AT_7,
        "https://a.test/openai/v1/responses/resp_1?api-version=2026-01&x=&stream=true&starting_after=7",
    ),
    "behind a prefix, with a slash at the end": (
        "openai-responses", RESPONSES._replace(url="http://127.0.0.1:8/proxy/a%20b/responses/"), AT_7,
        "http://127.0.0.1:8/proxy/a%20b/responses/resp_1?stream=true&starting_after=7",
    ),
    "an answer that a GET took up before": (
        "openai-responses",
        Sent("GET", "https://api.test/v1/responses/resp_1?starting_after=3&stream=true&api-version=1", KEPT), AT_7,
        "https://api.test/v1/responses/resp_1?api-version=1&stream=true&starting_after=7",
    ),
    "an id that is no name of a file": (
        "openai-responses", RESPONSES, Cursor("a/../b?c", 1),
        "https://api.test/v1/responses/a%2F..%2Fb%3Fc?stream=true&starting_after=1",
    ),
    "Interactions, the key in the query": (
        "gemini-interactions", INTERACTIONS._replace(url="https://g.test/v1beta/interactions?key=k"), AT_E,
        "https://g.test/v1beta/interactions/v1_x?key=k&stream=true&last_event_id=ev%2F2+%26",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("surface", "first", "cursor", "url"), RESUMED.values(), ids=RESUMED.keys())
def test_the_request_that_takes_an_answer_up(surface: str, first: Sent, cursor: Cursor, url: str) -> None:
    request = resume_request(surface, first, cursor)
    assert request is not None
    assert (request.method, request.url, request.headers) == ("GET", url, KEPT)
    place = parse_qs(urlsplit(request.url).query)
    assert place["stream"] == ["true"]
    assert resume_request(surface, request, cursor) == request  # once more from there


NEVER: dict[str, tuple[str, Sent, Cursor, str]] = {
    "no background": ("openai-responses", RESPONSES._replace(background=False), AT_7, "auto"),
    "no stream": ("openai-responses", RESPONSES._replace(stream=False), AT_7, "auto"),
    "not stored": ("openai-responses", RESPONSES._replace(store=False), AT_7, "auto"),
    "xAI, which has the cursor and no background": ("openai-responses", RESPONSES, AT_7, "xai"),
    "no number yet": ("openai-responses", RESPONSES, Cursor("resp_1"), "auto"),
    "no id": ("openai-responses", RESPONSES, Cursor(None, 7), "auto"),
    "an id that leads elsewhere": ("openai-responses", RESPONSES, Cursor("..", 7), "auto"),
    "Interactions without event ids": ("gemini-interactions", INTERACTIONS, Cursor("v1_x", 7), "auto"),
    "Anthropic": ("anthropic", RESPONSES, AT_7, "auto"),
    "Chat": ("openai-chat", RESPONSES, AT_7, "auto"),
    "generateContent": ("gemini", RESPONSES, AT_7, "auto"),
    "unknown": ("unknown", RESPONSES, AT_7, "auto"),
}


@pytest.mark.parametrize(("surface", "first", "cursor", "provider"), NEVER.values(), ids=NEVER.keys())
def test_what_cannot_be_taken_up(surface: str, first: Sent, cursor: Cursor, provider: str) -> None:
    assert resume_request(surface, first, cursor, provider) is None


def test_the_request_that_cancels() -> None:
    taken_up = resume_request("openai-responses", RESPONSES, AT_7)
    assert taken_up is not None
    for first in (RESPONSES, taken_up):
        request = cancel_request("openai-responses", first, Cursor("resp_1"))
        assert request is not None
        assert (request.method, request.headers) == ("POST", KEPT)
        assert request.url == "https://api.test/v1/responses/resp_1/cancel"
    first = INTERACTIONS._replace(url=INTERACTIONS.url + "?key=k")
    request = cancel_request("gemini-interactions", first, AT_E)
    assert request is not None
    assert request.url == "https://api.test/v1beta/interactions/v1_x/cancel?key=k"
    assert cancel_request("openai-responses", RESPONSES, Cursor()) is None
    assert cancel_request("openai-responses", RESPONSES._replace(background=False), AT_7) is None
    assert cancel_request("openai-responses", RESPONSES, AT_7, "xai") is None
    assert cancel_request("anthropic", RESPONSES, AT_7) is None


CUT = ErrorEvent("transport", "x", "broken_off", retryable=True)
OVERLOADED = ErrorEvent("provider", "x", "overloaded_error", 529, retryable=True)
ASKED_TO_WAIT = ErrorEvent("provider", "x", "rate_limit", 429, retryable=True, retry_after_ms=2000)
FINAL = ErrorEvent("provider", "x", "invalid_api_key", 401)
GET = Sent("GET", "https://api.test/v1/responses/resp_1?starting_after=7")
BOTH, SHY = Policy(3, restart=True), Policy(3)

STEPS = {
    # policy, error, resume request, what else is known -> action, seconds to wait
    "cut": (SHY, CUT, GET, {}, ("resume", 0.25)),
    "cut, again and again": (SHY, CUT, GET, {"failures": 3}, ("resume", 1.0)),
    "cut, too often": (SHY, CUT, GET, {"failures": 4}, ("stop", 0.0)),
    "cut, and no cursor": (SHY, CUT, None, {}, ("stop", 0.0)),
    "cut, and it may be started again": (BOTH, CUT, None, {}, ("restart", 0.25)),
    "started again too often": (BOTH, CUT, None, {"restarts": 3}, ("stop", 0.0)),
    "a cursor goes before a start": (BOTH, CUT, GET, {"restarts": 3}, ("resume", 0.25)),
    "truncated": (SHY, ErrorEvent("truncated", "x", retryable=True), GET, {}, ("resume", 0.25)),
    "the run itself failed": (SHY, OVERLOADED, GET, {}, ("stop", 0.0)),
    "the run itself failed, another may not": (BOTH, OVERLOADED, GET, {}, ("restart", 0.25)),
    "the server of the rest is overloaded": (SHY, OVERLOADED, GET, {"http_error": True}, ("resume", 0.25)),
    "overloaded at once": (BOTH, OVERLOADED, None, {"http_error": True}, ("restart", 0.25)),
    "it asks to wait": (SHY, ASKED_TO_WAIT, GET, {"http_error": True}, ("resume", 2.0)),
    "it asks to wait too long": (SHY._replace(cap_s=1.5), ASKED_TO_WAIT, GET, {"http_error": True}, ("stop", 0.0)),
    "retry:": (SHY, CUT, GET, {"retry_ms": 3000, "jitter": 0.9}, ("resume", 3.0)),
    "a draw": (SHY, CUT, GET, {"jitter": 0.5}, ("resume", 0.375)),
    "no waiting helps": (BOTH, FINAL, GET, {"http_error": True}, ("stop", 0.0)),
    "no attempts": (Policy(0, restart=True), CUT, GET, {}, ("stop", 0.0)),
}


@pytest.mark.parametrize(("policy", "error", "resume", "known", "step"), STEPS.values(), ids=STEPS.keys())
def test_the_next_step(
    policy: Policy, error: ErrorEvent, resume: Sent | None, known: dict[str, object], step: tuple[str, float]
) -> None:
    made = policy.next_step(error, resume, **known)  # type: ignore[arg-type]
    assert (made.action, made.delay_s) == step
    assert made.request == (resume if made.action == "resume" else None)
    assert isinstance(made, Step)


def test_waits_double_to_their_bound_and_vary_by_half() -> None:
    assert [reconnect_delay(n, jitter=0.0) for n in (1, 2, 3, 7, 8, 5000)] == [0.25, 0.5, 1.0, 15.0, 15.0, 15.0]
    assert reconnect_delay(1, jitter=0.999) == pytest.approx(0.5, abs=0.001)
    assert reconnect_delay(50, jitter=0.5, cap_s=8.0) == 6.0
    assert reconnect_delay(1, jitter=0.0, retry_ms=700) == 0.7
    assert reconnect_delay(1, jitter=0.0, first_s=0.0) == 0.0
    with pytest.raises(ValueError):
        reconnect_delay(0, jitter=0.0)
