"""``docs/judges.md``: who says otherwise, where, and who is right.

python -m tests.judges.page
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.judges.differences import DIFFERENCES, READ, REASONS

__all__ = ["PAGE", "page"]

PAGE: Final = Path(__file__).resolve().parent.parent.parent / "docs" / "judges.md"
HEAD: Final = """# Other clients as judges

The tests give every recording that a client can read to that client and to streamfold, and compare the text, the tool
calls, the stop reason and the input and output tokens of the first choice. The clients run as they are, behind a mock
transport: `openai` (Chat Completions and Responses), `anthropic`, `google-genai` (`generateContent` and Interactions),
`boto3` (its reader of ConverseStream, by its model of the service); and `litellm` and `pydantic-ai`, as far as they go.
All differences are on this page, which is made from the table that the tests assert.
"""


def page() -> str:
    """The text of the page."""
    lines = [HEAD, "| official client | recordings it makes an answer of | the others |", "| --- | --- | --- |"]
    lines += [f"| {judge} | {count} | {others} |" for judge, (count, others) in READ.items()] + [""]
    for key, reason in REASONS.items():
        lines += [f"## {key[0].upper()}{key[1:]}\n", f"{reason.what} {reason.clause}\n", f"Right: {reason.right}.\n"]
        lines += ["| client | recording | member |", "| --- | --- | --- |"]
        rows = sorted(place for place, why in DIFFERENCES.items() if why == key)
        lines += [f"| {judge} | `{capture}` | {member} |" for judge, capture, member in rows] + [""]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
