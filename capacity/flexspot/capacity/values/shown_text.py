"""Text that is safe to show: text from other sources, and cells of Markdown tables and spreadsheets."""

from __future__ import annotations

import re


def printable(text: str, *, lines: bool = False) -> str:
    """Return the text with control characters escaped as in Python.

    Escaped are all control characters and all marks that hide text or change its direction. They could clear a terminal, change its title,
    or make a name look like another. So are line ends, by which a name could begin a line of its own, such as a command to a CI runner.
    With `lines`, line ends and tabs are kept.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(each if each.isprintable() or each in kept or _is_blank(each) else _escaped(each) for each in text)


def _is_blank(character: str) -> bool:
    """Return whether a character is a blank. Python treats only the usual space as printable, and not blanks of another width."""
    return character.isspace() and character not in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


_CODE = re.compile(r"(`[^`]*`)")


def table_cell(text: str) -> str:
    """Return text as a Markdown table cell: one line, with escaped bars, and without HTML tags outside code."""
    words = " ".join(text.split()).replace("|", "\\|")
    return "".join(each if number % 2 else each.replace("<", "&lt;") for number, each in enumerate(_CODE.split(words)))


def anchor(heading: str) -> str:
    """Return the anchor of a heading on GitHub and the documentation site: lower case, hyphens for spaces, no other punctuation."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def spreadsheet_cell(text: str) -> str:
    """Escape text that a spreadsheet would evaluate as a formula, which could send its data elsewhere."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
