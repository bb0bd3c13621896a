"""Text inside a table of Markdown, for the reference pages that are written from the code."""

from __future__ import annotations

import re

_CODE = re.compile(r"(`[^`]*`)")


def table_cell(text: str) -> str:
    """Text as a cell of a table has it: in one line, with bars that end no cell, and angle brackets that are no tag outside of code."""
    words = " ".join(text.split()).replace("|", "\\|")
    return "".join(each if number % 2 else each.replace("<", "&lt;") for number, each in enumerate(_CODE.split(words)))


def anchor(heading: str) -> str:
    """What GitHub and the site call a heading: in small letters, a hyphen for each space, without other signs."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
