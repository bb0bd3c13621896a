"""Texts of other people as they may be shown: names in manifests, plans and answers of servers may hold any character."""

from __future__ import annotations


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
