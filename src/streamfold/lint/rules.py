"""The rules, as one table, and what a breach of one is called. Knows no wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

__all__ = ["RULES", "Finding", "Report", "Rule", "Severity"]

Severity: TypeAlias = Literal["error", "warning", "note"]
"""``error``: readers that follow the surface lose or misread the answer. ``warning``: clients in use are known to trip
over it. ``note``: legal or harmless, and worth knowing."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing that a stream does and its surface does not.

    Attributes:
        code: Which rule; a key of :data:`RULES`.
        severity: How bad it is.
        offset: Where, in bytes from the start of the stream: the frame, line or byte in question begins here.
        message: What was found, in one sentence.
        breaks: What that breaks, and for whom.
    """

    code: str
    severity: Severity
    offset: int
    message: str
    breaks: str

    def __str__(self) -> str:
        return f"{self.offset}: {self.severity} {self.code}: {self.message}; {self.breaks}"


class Rule(NamedTuple):
    """A row of the table.

    Attributes:
        severity: Of its findings.
        about: What a stream must do, or must not.
        breaks: What goes wrong where it does not keep to that, and for whom.
    """

    severity: Severity
    about: str
    breaks: str


Report: TypeAlias = Callable[[str, str], None]
"""Takes the code of a rule and a sentence; the finding is of the frame that is being read."""

RULES: Final[Mapping[str, Rule]] = {
    # -- bytes and lines
    "bom": Rule(
        "warning",
        "A byte order mark begins the stream.",
        "the openai and anthropic clients, httpx-sse and sseclient-py do not strip it and lose the first field",
    ),
    "bom_inside": Rule(
        "error",
        "A byte order mark begins a later line of the stream.",
        "every reader takes it for a part of the field's name and drops the line",
    ),
    "bad_utf8": Rule(
        "error",
        "Bytes are no UTF-8.",
        "strict readers (the openai and anthropic clients) raise UnicodeDecodeError, the others show U+FFFD",
    ),
    "unicode_line_end": Rule(
        "note",
        "U+0085, U+2028 or U+2029 stands unescaped in the stream.",
        "readers built on str.splitlines or httpx's iter_lines cut the payload in two there",
    ),
    "cr_line_end": Rule(
        "warning",
        "Lines end in a lone CR.",
        "the anthropic client and sseclient-py hand the event out late, readers that look for LF never do",
    ),
    "mixed_line_ends": Rule(
        "warning",
        "Lines of one stream end differently.",
        "readers that look for a doubled line end of one kind (LF LF, CRLF CRLF) join two events into one",
    ),
    "bare_text": Rule(
        "error",
        "A line is no field and no comment of an event stream.",
        "readers drop it, so that an error told this way looks like a clean end; google-genai raises",
    ),
    "unknown_field": Rule(
        "warning",
        "A line names a field that event streams do not have.",
        "readers drop it, and what it says is lost",
    ),
    "id_nul": Rule(
        "warning",
        "An id holds NUL, so that it does not count.",
        "whoever resumes asks for the id before it and receives events twice",
    ),
    "bad_retry": Rule(
        "warning",
        "A retry field is no plain number of milliseconds.",
        "browsers ignore it; readers that call int() raise, or wait for another time than was meant",
    ),
    "no_data": Rule(
        "warning",
        "A frame has fields and no data.",
        "the openai and anthropic clients and httpx-sse hand out an empty event and fail in json.loads",
    ),
    "empty_data": Rule(
        "warning",
        "A frame's data is blank.",
        "readers that decode every payload as JSON raise; a keep-alive is a comment",
    ),
    "framed_comment": Rule(
        "error",
        "A comment is framed as data.",
        "readers that decode every payload as JSON raise; a keep-alive is a line that begins with a colon",
    ),
    "several_data_lines": Rule(
        "note",
        "A payload stands on several data lines.",
        "readers that take each data line for a payload fail; the format allows it, no provider does it",
    ),
    "comment_in_frame": Rule(
        "note",
        "A comment stands between the lines of a frame.",
        "Google's JavaScript client drops the data that follows; a blank line after the comment prevents it",
    ),
    "no_blank_line": Rule(
        "warning",
        "No blank line closes the last frame.",
        "browsers, httpx-sse and the openai and anthropic clients drop that frame",
    ),
    "large_frame": Rule(
        "note",
        "A frame holds more than 1 MiB.",
        "readers that bound a frame at 1 MiB (httpx2, mcp) raise",
    ),
    # -- payloads
    "not_strict_json": Rule(
        "error",
        "Only a lenient reader makes JSON of a payload (raw control characters, NaN, Infinity).",
        "strict readers (JSON.parse, json.loads, the official clients) raise and lose the rest of the answer",
    ),
    "lone_surrogate": Rule(
        "warning",
        "A payload escapes half a surrogate pair.",
        "Python readers raise when they print or store the text, strict decoders refuse the payload",
    ),
    "not_an_object": Rule(
        "warning",
        "A payload is JSON, but no object.",
        "readers that look for its members raise",
    ),
    "bad_json": Rule(
        "error",
        "A payload is no JSON, and the reading ends there.",
        "every reader loses the rest of the answer",
    ),
    "bad_framing": Rule(
        "error",
        "The framing is not kept (a lost comma, a length that cannot be, bytes behind the end), and the reading ends"
        " there.",
        "every reader loses the rest of the answer",
    ),
    "bad_checksum": Rule(
        "error",
        "A message of AWS's binary framing does not match its checksum, and the reading ends there.",
        "boto3 raises ChecksumMismatch, and no mark tells any reader where the next message begins",
    ),
    "no_event_type": Rule(
        "error",
        "The headers of a message of AWS's binary framing do not say what it is.",
        "boto3 drops it without a word",
    ),
    "blank_line": Rule(
        "warning",
        "A line of newline-delimited JSON is blank.",
        "readers that decode every line (the ollama client) raise",
    ),
    "no_line_end": Rule(
        "warning",
        "No line end closes the last line of newline-delimited JSON.",
        "readers that act on line ends never hand that line out",
    ),
    "limit": Rule(
        "error",
        "A bound is passed: a frame too long, nesting too deep, too many blocks.",
        "readers with such bounds stop there; readers without them run out of memory",
    ),
    "not_a_stream": Rule(
        "error",
        "The body is no stream: a page, an error document, compressed or other bytes, or nothing at all.",
        "readers find no event in it and show an empty answer",
    ),
    "not_a_recording": Rule(
        "error",
        "A line of a recorded session does not say whose message it holds, and the reading ends there.",
        "nobody can tell what the server sent from what the client did",
    ),
    "unknown_surface": Rule(
        "error",
        "The payloads are of no surface that is known.",
        "no client of any provider can read them",
    ),
    "unknown_type": Rule(
        "warning",
        "A payload, block, item or delta is of a type that its surface does not have.",
        "clients drop it, and those that check the type (a closed union) raise",
    ),
    "unknown_member": Rule(
        "note",
        "A payload has a member that its surface does not have.",
        "clients drop it; those that forbid extra members raise",
    ),
    "wrong_type": Rule(
        "error",
        "A member holds another type than its surface says.",
        "typed clients (pydantic, generated structs) refuse the payload, others raise where they use it",
    ),
    "no_event_name": Rule(
        "error",
        "A frame of the Messages surface has no event field.",
        "the anthropic client drops such a frame without a word",
    ),
    "event_name_differs": Rule(
        "error",
        "The event field of a frame says another type than its payload.",
        "readers that dispatch on one and readers that dispatch on the other take it for different events",
    ),
    "extra_line": Rule(
        "error",
        "A Gemini stream has lines other than 'data: ' and blank ones.",
        "google-genai raises UnknownApiResponseError on comments, on other fields and on data without the space",
    ),
    # -- order
    "order": Rule(
        "error",
        "An event comes where its surface does not allow it.",
        "readers that keep state raise (KeyError, IndexError) or drop the event",
    ),
    "restarted": Rule(
        "warning",
        "An answer begins twice in one stream.",
        "readers join the two, and the calls of the first run with the arguments of the second",
    ),
    "part_not_added": Rule(
        "warning",
        "A piece of text comes before its part was opened.",
        "the openai client's stream helper looks the part up and raises",
    ),
    "block_overlap": Rule(
        "error",
        "A block opens while another one of the Messages surface is open.",
        "readers with one current block put the deltas of one into the other",
    ),
    "index_jump": Rule(
        "warning",
        "An index is not the one after the last.",
        "readers that keep a list by index raise IndexError or leave a hole",
    ),
    "index_reused": Rule(
        "error",
        "An index that belongs to one block, item or call is given to another.",
        "readers that go by the index overwrite the first one or join the two",
    ),
    "no_index": Rule(
        "error",
        "An entry has no index.",
        "the clients' stream helpers raise, others put everything into the first block",
    ),
    "wrong_index": Rule(
        "error",
        "A delta or a stop names an index that is not open.",
        "readers that go by the index raise, others add the piece to the wrong block",
    ),
    "wrong_delta": Rule(
        "error",
        "A delta is not of the kind of its block.",
        "readers that go by the block's kind drop it or raise",
    ),
    "not_closed": Rule(
        "warning",
        "A block or an item is still open at the end of the answer.",
        "readers that hand out what is finished never hand it out",
    ),
    "id_changes": Rule(
        "warning",
        "The id of an answer or of an item changes.",
        "readers that group by id take it for several answers or items",
    ),
    "sequence_gap": Rule(
        "error",
        "Sequence numbers are missing.",
        "a reader that checks them takes the events for lost; one that resumes asks for the wrong place",
    ),
    "sequence_back": Rule(
        "warning",
        "A sequence number comes again or goes back.",
        "readers that drop what they have seen drop the event",
    ),
    "no_sequence": Rule(
        "note",
        "Events of a Responses stream have no sequence number.",
        "nobody can resume there, and the official types demand it",
    ),
    "no_event_id": Rule(
        "note",
        "An event of a Realtime session has no event_id.",
        "an error that speaks of an event cannot name it, and nobody can drop what comes twice",
    ),
    "no_handle": Rule(
        "warning",
        "A session is called resumable and has no handle to resume it by.",
        "clients that keep the latest handle forget the one that worked",
    ),
    "client_message": Rule(
        "error",
        "A message of the client is none that the server takes then.",
        "the server closes the connection (1007), or drops the message",
    ),
    # -- ends
    "truncated": Rule(
        "error",
        "The stream ends without the terminal sign of its surface.",
        "the official clients raise nothing and show half an answer as a whole one",
    ),
    "no_done": Rule(
        "warning",
        "A stream that ought to end in [DONE] does not.",
        "readers that act on [DONE] wait for it until the connection closes",
    ),
    "foreign_done": Rule(
        "warning",
        "[DONE] ends a stream of a surface that has none.",
        "readers of that surface that decode every payload as JSON (google-genai) raise",
    ),
    "no_finish_reason": Rule(
        "warning",
        "The answer, or one of its choices, ends without a reason.",
        "readers cannot tell a whole answer from one that was cut, and agents do not run its calls",
    ),
    "terminal_twice": Rule(
        "note",
        "A finish reason, or what carries it, comes more than once.",
        "readers that finish at the first one miss what comes with the second, usage mostly",
    ),
    "reason_changes": Rule(
        "warning",
        "A choice names two different finish reasons.",
        "readers act on the first or on the last, and differ",
    ),
    "content_after_finish": Rule(
        "warning",
        "Content comes after the finish reason of its choice.",
        "readers that stop there lose it",
    ),
    "early_finish": Rule(
        "note",
        "A Gemini candidate goes on after a finish reason.",
        "readers that stop at the first finish reason lose the rest",
    ),
    "after_end": Rule(
        "error",
        "Something follows the terminal sign.",
        "readers stop there: whatever it says is lost",
    ),
    "status_differs": Rule(
        "warning",
        "The terminal event and the status of its response disagree.",
        "readers that go by one and readers that go by the other see different ends",
    ),
    "in_band_error": Rule(
        "note",
        "The stream tells an error.",
        "nothing is wrong with the wire: the request failed",
    ),
    # -- content
    "end_differs": Rule(
        "error",
        "The deltas of a text and the text at its end are not the same.",
        "whoever showed the deltas showed something else than whoever waits for the end stores",
    ),
    "end_adds": Rule(
        "warning",
        "The end of a text brings more than its deltas did.",
        "readers that only print deltas miss it",
    ),
    "output_differs": Rule(
        "warning",
        "The output of the terminal event is not the list of the items that came.",
        "readers that take the answer from the terminal event (the openai client's get_final_response) lose items",
    ),
    "bad_arguments": Rule(
        "warning",
        "The arguments of a finished tool call are no JSON.",
        "agents raise, or run the call with nothing",
    ),
    "no_call_id": Rule(
        "error",
        "A tool call has no id.",
        "its result cannot name it: the next request is refused",
    ),
    "unknown_call": Rule(
        "error",
        "A cancellation of the server's, or a result of the client's, is of a call that never came.",
        "the call that was meant runs on, or waits for its result for ever",
    ),
    "empty_id": Rule(
        "warning",
        "A later fragment of a tool call has an empty id.",
        "readers for which an id, even an empty one, begins a call open a second one",
    ),
    "no_call_name": Rule(
        "error",
        "A tool call has no name.",
        "nobody knows which tool to run",
    ),
    "call_id_twice": Rule(
        "error",
        "Two tool calls have one id.",
        "results are given to the wrong call, or refused",
    ),
    "orphan_fragment": Rule(
        "error",
        "A piece of arguments belongs to no call.",
        "readers add it to the wrong call or drop it: the arguments are no JSON any more",
    ),
    "no_choices": Rule(
        "warning",
        "A chunk has no list of choices.",
        "readers that loop over it, or take the first, raise TypeError",
    ),
    "no_message": Rule(
        "error",
        "A chunk of Ollama's own API has neither a message nor a response.",
        "the ollama client, which demands one, raises",
    ),
    "no_delta": Rule(
        "warning",
        "A choice has no delta.",
        "readers that ask the delta for its content raise AttributeError",
    ),
    "both_reasonings": Rule(
        "note",
        "A delta brings its reasoning twice, as text and as details.",
        "readers that add up all they know show it twice",
    ),
    "other_reason": Rule(
        "note",
        "The finish reason is none that its surface documents.",
        "agents do not know whether to go on",
    ),
    # -- usage
    "no_usage": Rule(
        "note",
        "The answer ends without any usage.",
        "nobody can account for it; on Chat Completions the request has to ask (stream_options.include_usage)",
    ),
    "usage_missing": Rule(
        "error",
        "A message_start or message_delta has no usage.",
        "the anthropic client reads its members and raises AttributeError",
    ),
    "usage_sum": Rule(
        "warning",
        "The total of the usage is not the sum of its parts.",
        "bills, budgets and limits that use one and those that use the other differ",
    ),
    "usage_part": Rule(
        "warning",
        "A part of the usage is larger than the whole, or negative.",
        "what is left of the whole comes out negative: costs are computed wrong",
    ),
}
"""Every rule by its code. ``docs/check.md`` is this table."""
