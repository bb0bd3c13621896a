"""Links of the documents lead to a file and a heading that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")])

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors_of(text: str) -> set[str]:
    """Return GitHub's anchors of the headings: lower case, a hyphen for each space, no signs, and a number for repeated ones."""
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.+?)\s*$", _CODE.sub("", text), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.append(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
    return {name if not (before := found[:number].count(name)) else f"{name}-{before}" for number, name in enumerate(found)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(document: Path) -> None:
    astray: list[str] = []
    for path, anchor in _LINK.findall(_CODE.sub("", document.read_text(encoding="utf-8"))):
        target = document.parent / path if path else document
        if not target.exists():
            astray.append(path)
        elif anchor and target.suffix == ".md" and anchor not in anchors_of(target.read_text(encoding="utf-8")):
            astray.append(f"{path}#{anchor}")

    assert astray == []
