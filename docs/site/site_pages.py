"""A hook of MkDocs that makes a site of the documents as they are on GitHub; mkdocs.yml loads it.

The README and the other documents of the root are pages, too. A link to a file of the repository becomes plain text, because the site does
not contain that file. Headings have GitHub's anchors. The built site may load nothing from elsewhere.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"

ROOT_PAGES = {"README.md": "index.md"} | {f"{name}.md": f"{name.lower()}.md" for name in ("CONTRIBUTING", "SCOPE", "SECURITY", "CHANGELOG")}
"""Documents outside of docs/, with their names in the site."""

DECISIONS = "decisions/index.md"
"""The page that lists the decisions; links to their folder lead there."""

_MANY = ("rules/", "decisions/", "changelog")
"""Pages that contain nearly every word; search lists guides before them."""

_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]+)?\)")
_BLOCK = re.compile(r"(^```.*?^```[^\n]*$|^(?: {4}|\t)[^\n]*$)", re.MULTILINE | re.DOTALL)
_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["']((?:https?:)?//[^"']+)"""
    r"""|<link\b(?![^>]*\brel="(?:canonical|prev|next|alternate)")[^>]*\bhref=["']((?:https?:)?//[^"']+)"""
    r"""|(?:url\(|@import )["']?((?:https?:)?//[^"')]+)"""
)


@cache
def documents() -> dict[str, Path]:
    """Return every document that is a page, by its name in the site."""
    found = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md")) if "site" not in path.relative_to(DOCS).parts}
    return found | {name: CHECKOUT / there for there, name in ROOT_PAGES.items()}


def decisions() -> str:
    """Return the text of the page that lists the decisions by their titles."""
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in (DOCS / "decisions").iterdir()}
    return "# Decisions\n\n" + "".join(f"- [{title}]({name})\n" for name, title in sorted(titles.items()))


def in_site(path: Path, text: str) -> str:
    """Return a document's text with the links of the site."""
    pages = {there: name for name, there in documents().items()} | {DOCS / "decisions": DECISIONS}
    here = PurePosixPath(pages[path]).parent

    def moved(found: re.Match[str]) -> str:
        label, link, heading = found.groups(default="")
        name = pages.get((path.parent / link).resolve())
        return label if name is None else f"[{label}]({os.path.relpath(name, here)}{heading})"

    parts = _BLOCK.split(text)
    return "".join(each if number % 2 else _LINK.sub(moved, each) for number, each in enumerate(parts))


def loaded(text: str) -> list[str]:
    """Return the addresses elsewhere that a page or a style loads."""
    return [f"loads {''.join(found)}" for found in _ELSEWHERE.findall(text)]


def wrong_of(page: str) -> list[str]:
    """Return what a page loads from elsewhere, and which of its language, width and title it does not say."""
    missing = [each for each in ("lang", "viewport", "title") if not re.search(rf'<html[^>]* {each}=|<meta name="{each}"|<{each}>', page)]
    return loaded(page) + [f"has no {each}" for each in missing]


# MkDocs calls these functions by their names.


def on_config(config: Any) -> Any:
    """Sets GitHub's anchors."""
    from pymdownx.slugs import slugify  # noqa: PLC0415 -- in the environment of the site alone

    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are not in docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 -- in the environment of the site alone

    for name in ROOT_PAGES.values():
        files.append(File.generated(config, name, abs_src_path=str(documents()[name])))
    files.append(File.generated(config, DECISIONS, content=decisions()))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Returns a page with the links of the site."""
    path = documents().get(page.file.src_uri)
    if page.file.src_uri.startswith(_MANY):
        page.meta.setdefault("search", {"boost": 0.5})
    return markdown if path is None else in_site(path, markdown)


def on_post_build(config: Any) -> None:
    """Raises ValueError for a page that loads something from elsewhere, or does not say its language, width and title."""
    site = Path(config.site_dir)
    wrong = [
        f"{path.relative_to(site)} {each}"
        for pattern, check in (("*.html", wrong_of), ("*.css", loaded))
        for path in sorted(site.rglob(pattern))
        for each in check(path.read_text(encoding="utf-8"))
    ]
    if wrong:
        raise ValueError("the site is not whole: " + "; ".join(wrong[:20]))
