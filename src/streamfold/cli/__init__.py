"""The command line, ``streamfold``. It needs the extra ``streamfold[cli]``; the library does not."""

from __future__ import annotations

import sys

__all__ = ["main"]

try:
    from streamfold.cli.commands import main
except ModuleNotFoundError as missing:
    if missing.name not in ("click", "rich"):
        raise
    from streamfold.cli._missing import main
except KeyboardInterrupt:  # it takes long enough to load for somebody to change their mind
    sys.exit(130)
