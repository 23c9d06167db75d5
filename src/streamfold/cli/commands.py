"""The commands. Each is bytes in, one call of the library, lines out."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import IO, Any, Final, TypeVar

import click
import msgspec

from streamfold import (
    ErrorEvent,
    FramingError,
    UnifiedStream,
    UsageError,
    __version__,
    encode_event,
    iter_unified,
    limits,
    parse_event_stream,
)
from streamfold.cli._input import Input, told_framing
from streamfold.cli._main import Main, complain, finishing
from streamfold.decoder import FRAMINGS
from streamfold.providers.registry import PROVIDERS
from streamfold.snapshot import Snapshot
from streamfold.views.terminal import Drawing, error_line, json_line
