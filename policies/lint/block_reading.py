"""Ordinary YAML, as generators and most people write it, read line by line: several times as fast as a parser that makes nodes.

It knows block style with keys of one line, scalars of one line, literal blocks, and flow style within one line. Of everything else it says
that it does not know, and yaml_reading's parser reads it: anchors, tags, escapes, folded texts, duplicate keys, and whatever is no YAML.
What it does read is what the parser reads (tests/policies/lint/test_lint_block_reading.py holds the two against each other).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class _Line(NamedTuple):
    """What one line is by itself. `column` is where its key or its item begins, `dash` where its dash stands (-1: it has none).

    `key` is None for an item that is no mapping. `form` is one of those below; `size` is how many values `value` is.
    """

    column: int
    dash: int
    key: str | None
    value: Any
    size: int
    form: int


_COMPLETE, _NOTHING, _LITERAL = range(3)
"""Forms of a line: its value stands in it; it follows or is null; it is a literal block that follows, whose end `value` describes."""

_SKIPPED: Final = _Line(0, -1, None, None, 0, -1)
"""A line of blanks, or a comment."""

_UNKNOWN: Final = _Line(0, -1, None, None, 0, -2)
"""A line that only a parser understands."""

# What begins no scalar without quotes, or what only a parser takes for one.
_LINE: Final = re.compile(
    r"(?P<indent> *)(?P<dash>- +)?"
    r"(?:(?P<plain>[A-Za-z0-9_./][A-Za-z0-9_./$-]{0,200})|\"(?P<double>[^\"\\]{0,200})\"|'(?P<single>[^']{0,200})'):(?: +(?P<value>.*))?"
)
_ITEM: Final = re.compile(r"(?P<indent> *)-(?: +(?P<value>.*))?")
_IGNORED: Final = re.compile(r" *(?:#.*)?")
_START: Final = re.compile(r"--- *(?:#.*)?")

# Each with a comment that may follow.
_PLAIN: Final = re.compile(r"(?P<written>(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^\s]))(?:[^:#]|(?<! )#|:(?=[^ ]))*?) *(?:(?<= )#.*)?")
_QUOTED: Final = re.compile(r"(?:\"(?P<double>[^\"\\]*)\"|'(?P<single>(?:[^']|'')*)') *(?:(?<= )#.*)?")
_BLOCK: Final = re.compile(r"\|(?P<end>[-+]?) *(?:(?<= )#.*)?")
_FLOW: Final = re.compile(
    r" *(?:(?P<sign>[\[\]{},])|\"(?P<double>[^\"\\]*)\"|'(?P<single>(?:[^']|'')*)'"
    r"|(?P<plain>(?:[A-Za-z0-9_./$=<+~]|-+(?=[A-Za-z0-9_]))(?:[A-Za-z0-9_./$=<>+~@*|-]|:(?=[A-Za-z0-9_/])| (?=[A-Za-z0-9_./-]))*))"
    r" *(?P<colon>:(?= |$))?"
)
_REST: Final = re.compile(r" *(?:(?<= )#.*)?")

# Blanks and ends of lines of other sorts, and what no YAML holds.
_ODD: Final = re.compile("[^\n -~\u00a1-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_DEPTH: Final = 60
"""Deeper nesting is left to the parser, which has a bound for it."""

_LINE_LENGTH: Final = 10_000
"""The longest line of which parts are looked at: longer ones are data."""

_REMEMBERED_AT_MOST: Final = 100_000
_REMEMBERED_LENGTH: Final = 160


class BlockReader:
    """Reads documents. `scalar` gives the value of a text, and whether it stood without quotes."""

    def __init__(self, scalar: Callable[[str, bool], Any]) -> None:
        self._scalar = scalar
        # Lines come again and again within a repository: "      containers:", "kind: Job".
        self._lines: dict[str, _Line] = {"": _SKIPPED}

    def read(self, text: str) -> tuple[dict[str, Any], int, int] | None:  # noqa: C901, PLR0911, PLR0912, PLR0915 -- a call a line would cost what this saves
        """The mapping that a document is, the line of its first key from 0, and how many values it has; None where a parser has to say."""
        if _ODD.search(text) is not None:
            return None
        lines = text.split("\n")
        known, understood = self._lines, self._understood
        place, end = 0, len(lines)
        while place < end and (known.get(lines[place]) or understood(lines[place])) is _SKIPPED:
            place += 1
        if place < end and _START.fullmatch(lines[place]):
            place += 1
            while place < end and (known.get(lines[place]) or understood(lines[place])) is _SKIPPED:
                place += 1
        first = place
        root: dict[str, Any] = {}
        # The collections that are open, outermost first, each with its column; a list that stands in its key's own column comes after it.
        columns: list[int] = []
        opened: list[Any] = []
        column = 0
        held: Any = root
        sequence = False
        # Where a value belongs that may follow: its key, or None for an item of a list; `waits` says whether one may.
        waits, key_waiting = False, None
        size = 1
        while place < end:
            line = lines[place]
            place += 1
            token = known.get(line) or understood(line)
            here, dash, key, value, count, form = token
            if form < 0:
                if token is _SKIPPED:
                    continue
                return None
            begin = here if dash < 0 else dash
            if waits and (begin > column or (begin == column and dash >= 0 and not sequence)):
                # A list or a mapping below what waits.
                columns.append(column)
                opened.append(held)
                if len(opened) > _DEPTH:
                    return None
                made: Any = {} if dash < 0 else []
                if sequence:
                    held[-1] = made
                else:
                    held[key_waiting] = made
                column, held, sequence = begin, made, dash >= 0
            else:
                while begin < column or (begin == column and sequence and dash < 0):
                    if not opened:
                        return None
                    column, held = columns.pop(), opened.pop()
                    sequence = type(held) is list
                if begin != column or sequence is not (dash >= 0):
                    return None
            waits = False
            if dash >= 0:
                if key is None:
                    held.append(value)
                    size += count
                else:
                    inner: dict[str, Any] = {}
                    held.append(inner)
                    size += 1
                    columns.append(column)
                    opened.append(held)
                    if len(opened) > _DEPTH:
                        return None
                    column, held, sequence = here, inner, False
            if key is not None:
                if key in held:
                    return None
                held[key] = value
                size += count
            if form != _COMPLETE:
                waits, key_waiting = form == _NOTHING, key
                if form == _LITERAL:
                    found = _literal(lines, place, column, value)
                    if found is None:
                        return None
                    written, place = found
                    if sequence:
                        held[-1] = self._scalar(written, False)
                    else:
                        held[key] = self._scalar(written, False)
        return (root, first, size) if root else None

    def _understood(self, line: str) -> _Line:
        found = self._token(line)
        if len(line) <= _REMEMBERED_LENGTH and len(self._lines) < _REMEMBERED_AT_MOST:
            self._lines[line] = found
        return found

    def _token(self, line: str) -> _Line:
        if _IGNORED.fullmatch(line):
            return _SKIPPED
        if len(line) > _LINE_LENGTH or line.startswith(("---", "...")):
            return _UNKNOWN
        match = _LINE.fullmatch(line)
        if match is not None:
            plain, double, single = match["plain"], match["double"], match["single"]
            key = plain if plain is not None else double if double is not None else single
            column, dash = len(match["indent"]), -1
            if match["dash"]:
                column, dash = column + len(match["dash"]), column
        else:
            match = _ITEM.fullmatch(line)
            if match is None:
                return _UNKNOWN
            key, dash = None, len(match["indent"])
            column = dash
        value = match["value"]
        if not value or value[0] == "#":
            return _Line(column, dash, key, None, 1, _NOTHING)
        block = _BLOCK.fullmatch(value)
        if block is not None:
            return _Line(column, dash, key, block["end"], 1, _LITERAL)
        found = self._value(value)
        return _UNKNOWN if found is None else _Line(column, dash, key, *found, _COMPLETE)

    def _value(self, text: str) -> tuple[Any, int] | None:
        """A value that ends in its line, and how many values it is."""
        if (match := _PLAIN.fullmatch(text)) is not None:
            return self._scalar(match["written"], True), 1
        if (match := _QUOTED.fullmatch(text)) is not None:
            return self._scalar(_unquoted(match["double"], match["single"]), False), 1
        if text[0] in "[{":
            found = self._flow(text)
            if found is not None and _REST.fullmatch(text, found[2]):
                return found[0], found[1]
        return None

    def _flow(self, text: str) -> tuple[Any, int, int] | None:  # noqa: C901, PLR0911, PLR0912, PLR0915 -- one state machine
        """A list or mapping in flow style, how many values it is, and where it ends."""
        root: Any = None
        opened: list[Any] = []
        place, size = 0, 0
        # What may come: a value or an end (at the start of a collection), a value, or a comma or an end.
        start, comma = False, False
        key: str | None = None
        while True:
            match = _FLOW.match(text, place)
            if match is None:
                return None
            place = match.end()
            sign, colon = match["sign"], match["colon"]
            held = opened[-1] if opened else None
            if sign in {"]", "}"}:
                if colon or not (comma or start) or key is not None or type(held) is not (list if sign == "]" else dict):
                    return None
                opened.pop()
                start, comma = False, True
                if not opened:
                    return root, size, place
                continue
            if sign == ",":
                if not comma or colon:
                    return None
                comma = False
                continue
            if comma:
                return None
            start = False
            if sign is None and colon:
                # Only a mapping has keys here, one before each value.
                if type(held) is not dict or key is not None:
                    return None
                plain = match["plain"]
                key = plain if plain is not None else _unquoted(match["double"], match["single"])
                if key in held or key == "<<":
                    return None
                continue
            if colon:
                return None
            size += 1
            if sign is not None:
                value: Any = [] if sign == "[" else {}
            elif match["plain"] is not None:
                value = self._scalar(match["plain"], True)
            else:
                value = self._scalar(_unquoted(match["double"], match["single"]), False)
            if held is None:
                root = value
            elif type(held) is list:
                held.append(value)
            elif key is None:
                return None
            else:
                held[key] = value
            key = None
            if sign is None:
                comma = True
            else:
                opened.append(value)
                start = True
                if len(opened) > _DEPTH // 2:
                    return None


def _unquoted(double: str | None, single: str | None) -> str:
    return double if double is not None else (single or "").replace("''", "'")


def _literal(lines: list[str], place: int, column: int, end: str) -> tuple[str, int] | None:
    """The text of a literal block whose key is at `column`, and where the lines after it begin."""
    count = len(lines)
    first = place
    while first < count and not lines[first].strip(" "):
        first += 1
    if first == count:
        return None
    indent = len(lines[first]) - len(lines[first].lstrip(" "))
    if indent <= column or any(len(lines[each]) > indent for each in range(place, first)):
        return None
    margin = " " * indent
    held: list[str] = []
    while place < count:
        line = lines[place]
        if not line.startswith(margin):
            if line.strip(" "):
                break
            line = margin
        held.append(line[indent:])
        place += 1
    else:
        # What follows the last end of a line is no line.
        if held[-1]:
            return None
        held.pop()
    text = "\n".join(held)
    if end == "+":
        return text + "\n", place
    text = text.rstrip("\n")
    return (text if end == "-" else text + "\n"), place
