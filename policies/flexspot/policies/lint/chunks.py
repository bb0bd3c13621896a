"""The texts of a file's documents, cut apart before anything reads them: of YAML, and of the YAML and JSON in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


# A line of content: not blank, no comment, no directive such as %YAML, no bare `---`. Searched for, because a pattern that matches all the
# other lines one after the other would keep a way back for each of them.
_CONTENT: Final = re.compile(rb"^(?!%|---[ \t]*(?:#|\r?$))[ \t]*[^#\s]", re.MULTILINE)
_FENCE: Final = re.compile(rb"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?:\{[ \t.]*)?(?P<language>[A-Za-z]*)[^\n`]*$")
_LANGUAGES: Final = frozenset({b"yaml", b"yml", b"json"})
_AFTER_SEPARATOR: Final = frozenset(b" \t\r\n")


@dataclass(frozen=True)
class Chunk:
    """The text of one document. `line` is how many lines of its file stand before it."""

    line: int
    text: bytes


def yaml_chunks(text: bytes, line: int = 0) -> Iterator[Chunk]:
    """The documents of YAML text: what `---` at the start of a line separates, which no scalar may hold (YAML 1.1, section 9.1).

    Texts of blanks and comments alone are left out.
    """
    carried = b""
    for part in _parts(text):
        here = carried + part
        carried = b""
        if _CONTENT.search(here) is not None:
            yield Chunk(line, here)
        elif here.startswith(b"%") or b"\n%" in here:
            # Directives are of the document after them.
            carried = here
            continue
        line += here.count(b"\n")


def markdown_chunks(text: bytes) -> Iterator[Chunk]:
    """The documents of the fenced YAML and JSON in Markdown, without the indentation that their fences have in lists."""
    opened: bytes | None = None
    body: list[bytes] = []
    indent = 0
    first = 0
    wanted = False
    # Line by line: a list of them would take several times the text's memory.
    for number, whole in enumerate(BytesIO(text)):
        line = whole.removesuffix(b"\n")
        bare = line.rstrip()
        if opened is None:
            match = _FENCE.match(bare)
            if match is not None:
                opened, indent, first = match["fence"], len(match["indent"]), number + 1
                body = []
                wanted = match["language"].lower() in _LANGUAGES
        elif bare.lstrip().startswith(opened) and not bare.strip(opened[:1] + b" \t"):
            if wanted:
                yield from yaml_chunks(b"\n".join(body) + b"\n", first)
            opened = None
        elif wanted:
            body.append(line[indent:] if not line[:indent].strip() else line)


def _parts(text: bytes) -> Iterator[bytes]:
    """The text cut before each line that is `---`, or begins with `---` and a blank."""
    begin = 0
    found = text.find(b"\n---")
    while found >= 0:
        if found + 4 == len(text) or text[found + 4] in _AFTER_SEPARATOR:
            yield text[begin : found + 1]
            begin = found + 1
        found = text.find(b"\n---", found + 4)
    yield text[begin:]
