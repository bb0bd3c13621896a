"""Lines of shell in the documents' blocks of code, as users copy them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import site_pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAMS = (
    "flexspot make kubectl pulumi uv uvx pip pipx python python3 helm export cd git gcloud aws docker go curl npm mkdocs bash sh source"
)
"""First words of a line of shell. A line behind a prompt is one, whatever its first word is."""

_COMMAND = re.compile(
    rf"(?P<prompt>\$ )?(?P<said>(?:[A-Z_]+=\S+ )*(?:\.venv/bin/|\.tools/bin/)?(?:{'|'.join(PROGRAMS.split())})(?: .*)?|(?<=\$ ).*)"
)
_FENCE = re.compile(r"```(\w*)")
_SHELL = {"", "bash", "sh", "shell", "console", "text"}
"""Languages of fenced blocks that may be shell."""


@dataclass(frozen=True)
class Shown:
    """A line of shell, without prompt and comment, and its place."""

    page: str
    line: int
    said: str


def shown_commands() -> Iterator[Shown]:
    """Return those of every document except the generated references, whose lines are forms and not commands."""
    for name, path in site_pages.documents().items():
        if not name.startswith("rules/") and not name.endswith("-reference.md"):
            yield from commands_of(name, path)


def commands_of(name: str, path: Path) -> Iterator[Shown]:
    """Return those of one document, in order. Lines that end in a backslash continue."""
    text = path.read_text(encoding="utf-8")
    # Newlines stay, so that numbers of lines are right.
    text = re.sub(r"(?:[^\n]*\\\n)+[^\n]*", lambda found: re.sub(r" *\\\n\s*", " ", found[0]) + "\n" * found[0].count("\n"), text)
    fenced: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if fence := _FENCE.match(line.strip()):
            fenced = fence[1] if fenced is None else None
            continue
        inside = fenced in _SHELL if fenced is not None else line.startswith(("    ", "\t"))
        if inside and (found := _COMMAND.fullmatch(line.strip())):
            yield Shown(name, number, re.sub(r"\s+# .*$", "", found["said"]).strip())
