"""Default bounds. Each is a keyword of the same name, in lower case, everywhere; ``None`` means no limit."""

from typing import Any, Final

MAX_FRAME_BYTES: Final = 8 * 1024 * 1024
"""Bytes one unfinished frame may hold. 1 MiB bites in practice; inline images of 6 MB are seen on the wire."""

MAX_RESIDUE_BYTES: Final = 64 * 1024
"""Bytes kept of lines that no field of the event-stream grammar accounts for (error bodies, HTML pages)."""

MAX_DEPTH: Final = 200
"""Levels of arrays and objects one payload may nest."""

MAX_BLOCKS: Final = 100_000
"""Blocks one answer may open."""

MAX_SNIFF_PAYLOADS: Final = 8
"""Payloads ``provider="auto"`` looks at before it gives up."""

MAX_SNIFF_BYTES: Final = 64 * 1024
"""Bytes of payloads ``provider="auto"`` holds before it gives up."""

MAX_USAGE_BYTES: Final = 64 * 1024
"""Bytes of JSON text that the totals of an answer may come to, where a provider tells them member by member."""

MAX_WARNINGS: Final = 1_000
"""Non-fatal errors a snapshot keeps; what comes after them is not kept."""

MAX_TURNS: Final = 1_000
"""Turns whose snapshots a live session keeps; the oldest are let go."""

MAX_WAITING_MESSAGES: Final = 16
"""Messages of a live session that the client holds ready for a reader who has not asked for them."""

LEAST: Final = {"max_frame_bytes": 1, "max_residue_bytes": 0, "max_depth": 0, "max_blocks": 0, "max_turns": 1}
"""What each bound that can be set is at least."""


def fault_of(**bounds: Any) -> str | None:
    """What is wrong with bounds that a caller has set, in a sentence; None if nothing is."""
    for name, bound in bounds.items():
        whole = isinstance(bound, int) and not isinstance(bound, bool)
        if bound is not None and not (whole and bound >= LEAST[name]):
            return f"{name} is a whole number from {LEAST[name]} up, or None for no limit, not {bound!r}"
    return None
