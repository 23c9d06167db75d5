"""What the pages of mkdocs need besides: Sphinx's roles, which the docstrings use, are plain names there."""

from __future__ import annotations

import re

_ROLE = re.compile(r":(?:class|func|meth|attr|data|exc|mod):<code>~?([^<]*)</code>")


def on_page_content(html: str, **_: object) -> str:
    """Called by mkdocs for every page."""
    return _ROLE.sub(r"<code>\1</code>", html)
