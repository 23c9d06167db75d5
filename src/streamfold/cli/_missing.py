"""What the command line says where its extra is not installed. Knows nothing but the words."""

from __future__ import annotations

import sys
from typing import Any, Final, NoReturn

__all__ = ["MESSAGE", "main"]

MESSAGE: Final = "streamfold: the command line needs click and rich: pip install 'streamfold[cli]'"


def _say_so(**_settings: object) -> NoReturn:
    print(MESSAGE, file=sys.stderr)
    sys.exit(2)


main: Any = _say_so
