"""Answers drawn for people: lines of styled spans, which a caller prints, colours or wraps as it likes.

::

    for line in draw(answer):
        print(plain(line))
"""

from streamfold.views.lines import Line, Span, Style, cells, neutral, plain, wrap
from streamfold.views.terminal import Drawing, draw, error_line, usage_line

__all__ = [
    "Drawing",
    "Line",
    "Span",
    "Style",
    "cells",
    "draw",
    "error_line",
    "neutral",
    "plain",
    "usage_line",
    "wrap",
]
