"""Whether a long text of ordinary YAML has a duplicate key, found without parsing it.

For CustomResourceDefinitions, which no rule looks at and which are most of what many repositories hold: this takes a sixth of the time of a
parser. It knows block style with plain keys, as generators write it; of everything else it says that it does not know.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

# Indentation, dashes of list items, a plain key without blanks, and what stands after its colon.
_KEY: Final = re.compile(rb"( *)((?:- +)*)([A-Za-z0-9_$./-]+):(?: +(.*))?$", re.MULTILINE)
_BLOCK_SCALAR: Final = re.compile(rb"[|>][-+0-9]*(?: +#.*)?$")
_SIMPLE_LIST: Final = re.compile(rb"\[[^\[\]{}:'\"]*\](?: +#.*)?$")
_QUOTES: Final = frozenset(b"'\"")
_ESCAPED_BACKSLASH: Final = b"\\\\"
_COMMENT: Final = ord("#")
_ODD_VALUES: Final = frozenset(b"|>{}[]&*!%@`?#")


def has_unique_keys(text: bytes) -> bool:  # noqa: C901, PLR0912 -- a call for each line would cost what this saves
    """Whether it is certain that no mapping in one document of YAML holds a key twice. No is not certain: only a parser knows then.

    What is no YAML at all may get a yes.
    """
    if b"\t" in text or b"\r" in text:
        return False
    columns: list[int] = []
    keys: list[set[bytes]] = []
    # To the right of the column of a key with a text without quotes, that text goes on, whatever its lines begin with.
    plain_column = -1
    place, end = 0, len(text)
    while place < end:
        match = _KEY.match(text, place)
        if match is None:
            line_end = text.find(b"\n", place)
            if line_end < 0:
                line_end = end
            bare = text[place:line_end].lstrip(b" ")
            begin = line_end - place - len(bare)
            if not (0 <= plain_column < begin and b": " not in bare and bare[-1:] != b":"):
                if not _is_harmless(bare):
                    return False
                plain_column = begin if bare[:2] == b"- " else -1
                if bare[:1] == b"-":
                    _close(columns, keys, begin)
            place = line_end + 1
            continue
        indent, dashes, key, value = match.groups()
        place = match.end() + 1
        column = len(indent)
        if dashes:
            # A dash ends the mapping of the item before it.
            _close(columns, keys, column)
            column += len(dashes)
        elif columns and columns[-1] > column:
            _close(columns, keys, column)
        if not dashes and columns and columns[-1] == column:
            held = keys[-1]
            if key in held:
                return False
            held.add(key)
        else:
            columns.append(column)
            keys.append({key})
        plain_column = column if value and value[0] not in _QUOTES and value[0] not in _ODD_VALUES else -1
        if value:
            place = _after_value(text, place, value, column)
            if place < 0:
                return False
    return True


def _after_value(text: bytes, place: int, value: bytes, column: int) -> int:  # noqa: PLR0911 -- one return for each form of a value
    """Where the line begins that follows a value, of which `value` is on the line before `place`; -1 where a parser has to say."""
    first = value[0]
    if first in _QUOTES:
        quote = value[:1]
        # A comment behind the quotes may hold more of them.
        if b" #" in value:
            return -1
        inside = _quotes(value, quote) % 2
        while inside:
            # Within quotes, what looks like a key is none; with the closing quote the number of quotes is even.
            quoted = text.find(quote, place)
            line_end = text.find(b"\n", quoted)
            if quoted < 0 or line_end < 0:
                return -1
            lines = text[place:line_end]
            if _ESCAPED_BACKSLASH in lines or b" #" in lines:
                return -1
            inside = (1 + _quotes(lines, quote)) % 2
            place = line_end + 1
        return -1 if _ESCAPED_BACKSLASH in value else place
    if first not in _ODD_VALUES:
        return -1 if b": " in value or value[-1:] == b":" else place
    if _BLOCK_SCALAR.match(value):
        # All that stands to the right of the key is text.
        following = _ends_of_block(column).search(text, place - 1)
        return following.start() + 1 if following else len(text)
    return place if value in {b"{}", b"[]"} or first == _COMMENT or _SIMPLE_LIST.match(value) else -1


def _quotes(text: bytes, quote: bytes) -> int:
    """How many quotes of a kind there are that are no part of an escape."""
    return text.count(quote) - (text.count(b'\\"') if quote == b'"' else 0)


@cache
def _ends_of_block(column: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n {0,%d}(?=[^ \n])" % column)


def _close(columns: list[int], keys: list[set[bytes]], column: int) -> None:
    """Ends the mappings whose keys stand to the right of a column."""
    while columns and columns[-1] > column:
        columns.pop()
        keys.pop()


def _is_harmless(bare: bytes) -> bool:
    """Whether a line that is no key can hold none: a comment, the start of the document, an item or the rest of a plain text."""
    if bare[:1] == b"#":
        return True
    if bare[:3] == b"---":
        return not bare[3:].strip() or bare[3:].lstrip()[:1] == b"#"
    if b": " in bare or bare[-1:] == b":":
        return False
    item = bare
    while item[:2] == b"- ":
        item = item[2:].lstrip(b" ")
    if not item:
        return True
    if item[0] in _QUOTES:
        # A text of one line; one that goes on is left to the parser.
        return item.count(item[:1]) % 2 == 0 and b"\\" not in item
    return item[0] not in _ODD_VALUES
