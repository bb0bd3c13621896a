"""Texts as they may be shown: other people's, which may hold any character, and cells of Markdown's tables and of spreadsheets."""

from __future__ import annotations

import re


def printable(text: str, *, lines: bool = False) -> str:
    """The text with what a reader's program would obey instead of showing it in the writing of Python, backslash and all.

    That is every control character and every mark that turns text around or hides in it, which could clear a terminal, change its title, or
    make a name look like another; and the ends of lines, by which a name could begin a line of its own, such as a command to a runner.
    `lines`: the text may have several, and tabulators.
    """
    if text.isprintable():
        return text
    kept = "\n\t" if lines else ""
    return "".join(each if each.isprintable() or each in kept or _is_blank(each) else _as_written(each) for each in text)


def _is_blank(character: str) -> bool:
    """Whether it is a blank of another width, such as one at which no line breaks: Python takes none but the usual one for printable."""
    return character.isspace() and character not in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"


def _as_written(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


_CODE = re.compile(r"(`[^`]*`)")


def table_cell(text: str) -> str:
    """Text as a cell of a table has it: in one line, with bars that end no cell, and angle brackets that are no tag outside of code."""
    words = " ".join(text.split()).replace("|", "\\|")
    return "".join(each if number % 2 else each.replace("<", "&lt;") for number, each in enumerate(_CODE.split(words)))


def anchor(heading: str) -> str:
    """What GitHub and the site call a heading: in small letters, a hyphen for each space, without other signs."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def spreadsheet_cell(text: str) -> str:
    """A spreadsheet takes text that begins like this for a formula, which could send its data elsewhere."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
