"""What makes a site of the documents as they are on GitHub: a hook of MkDocs, loaded by mkdocs.yml.

The documents stay as they are. The README and the other documents of the root are pages, too; a link to a file or a folder of the
repository leads to a page that shows it, so that the site is whole without the repository; headings have GitHub's anchors.
The built site is then looked through: it may load nothing from elsewhere.
"""

from __future__ import annotations

import os
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"

ROOT_PAGES = {"README.md": "index.md"} | {f"{name}.md": f"{name.lower()}.md" for name in ("CONTRIBUTING", "SCOPE", "SECURITY", "CHANGELOG")}
"""Documents beside docs/, and what they are called in the site."""

LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".py": "python", ".json": "json", ".toml": "toml", ".js": "javascript", "": "text"}
SHOWN_FOLDER = "repository"
"""Where the site has files of the repository that documents lead to."""

_MANY = ("rules/", "decisions/", "changelog")
"""Pages of which there is one for nearly every word: search names guides before them."""

_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]+)?(?=\))")
_BLOCK = re.compile(r"(^```.*?^```[^\n]*$|^(?: {4}|\t)[^\n]*$)", re.MULTILINE | re.DOTALL)


@cache
def documents() -> dict[str, Path]:
    """Every document that is a page, by its name in the site."""
    found = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md")) if "site" not in path.relative_to(DOCS).parts}
    return found | {name: CHECKOUT / there for there, name in ROOT_PAGES.items()}


def linked(path: Path, text: str) -> list[Path]:
    """What the links of a document lead to, wherever in the repository it is."""
    prose = "".join(each for number, each in enumerate(_BLOCK.split(text)) if not number % 2)
    return [(path.parent / found[1]).resolve() for found in _LINK.finditer(prose)]


@cache
def shown_files() -> dict[str, Path]:
    """Files and folders that are no documents and are linked, by the name of the page that shows each."""
    there = set(documents().values())
    found = {target for path in there for target in linked(path, path.read_text(encoding="utf-8"))} - there
    return {shown_name(target): target for target in sorted(found) if target.exists()}


def shown_name(target: Path) -> str:
    """The name of the page that shows a file or a folder; of a folder with documents it is the folder's own."""
    if target.is_dir() and DOCS in target.parents:
        return f"{target.relative_to(DOCS).as_posix()}/index.md"
    # MkDocs leaves out names that begin with a dot.
    parts = [each.removeprefix(".") for each in target.relative_to(CHECKOUT).parts]
    return f"{SHOWN_FOLDER}/{'/'.join(parts)}.md"


def shown_text(target: Path) -> str:
    """The page of a file: its text; of a folder: a list of its documents, by their titles, or of its files."""
    if target.is_dir():
        names = [each for each in sorted(target.iterdir()) if not each.name.startswith((".", "_"))]
        rows = [f"- [{title(each)}]({each.name})" if each.suffix == ".md" else f"- `{each.name}`" for each in names]
        return f"# {target.name.capitalize()}\n\n" + "\n".join(rows) + "\n"
    text = target.read_text(encoding="utf-8")
    fence = "`" * max(3, 1 + max((len(each) for each in re.findall(r"`+", text)), default=0))
    head = "---\nsearch: {exclude: true}\n---\n\n"
    return f"{head}# {target.relative_to(CHECKOUT).as_posix()}\n\n{fence}{LANGUAGES[target.suffix]}\n{text.rstrip()}\n{fence}\n"


def title(path: Path) -> str:
    """The first heading of a document."""
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def in_site(path: Path, text: str, pages: dict[Path, str]) -> str:
    """A document's text with links to where the site has what they mean; `pages` has the name in the site of every file."""
    here = PurePosixPath(pages[path]).parent

    def moved(found: re.Match[str]) -> str:
        target = (path.parent / found[1]).resolve()
        name = pages.get(target)
        return found[0] if name is None else os.path.relpath(name, here) + (found[2] or "")

    parts = _BLOCK.split(text)
    return "".join(each if number % 2 else _LINK.sub(moved, each) for number, each in enumerate(parts))


def whole_navigation(written: list[Any], names: list[str]) -> list[Any]:
    """The navigation of mkdocs.yml, in which `folder/` becomes the pages of that folder, its own first."""
    found: list[Any] = []
    for entry in written:
        label, inner = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(inner, list):
            inner = whole_navigation(inner, names)
        elif inner.endswith("/"):
            inner = sorted(
                (name for name in names if name.startswith(inner)), key=lambda name: (Path(name).stem not in {"README", "index"}, name)
            )
        found.append(inner if label is None else {label: inner})
    return found


def anchor(text: str, _separator: str = "-") -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


class Loaded(HTMLParser):
    """What a page loads when it is looked at, and what a page must say of itself."""

    _LOADING = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "video": "src"}  # noqa: RUF012 -- read alone
    _REFERRING = {"canonical", "prev", "next", "alternate"}  # noqa: RUF012 -- likewise

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere: list[str] = []
        self.said: set[str] = set()
        self._styled = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an address that is not the site's own, and language, width and title."""
        told = dict(attrs)
        address = told.get(self._LOADING.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address) and not set((told.get("rel") or "").split()) & self._REFERRING:
            self.elsewhere.append(address)
        self._styled = tag == "style"
        if tag == "html" and told.get("lang"):
            self.said.add("lang")
        if tag == "meta" and told.get("name") == "viewport":
            self.said.add("viewport")
        if tag == "title":
            self.said.add("title")

    def handle_data(self, data: str) -> None:
        """A style may load fonts and pictures."""
        if self._styled:
            self.elsewhere += re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", data)


def wrong_of(page: str) -> list[str]:
    """What a page loads from elsewhere, and what it does not say of itself."""
    found = Loaded()
    found.feed(page)
    missing = sorted({"lang", "viewport", "title"} - found.said)
    return [f"loads {each}" for each in found.elsewhere] + [f"has no {each}" for each in missing]


# What MkDocs calls, by these names.


def on_config(config: Any) -> Any:
    """Anchors as GitHub's, and the navigation with the pages of folders."""
    config.mdx_configs["toc"]["slugify"] = anchor
    names = sorted([*documents(), *shown_files()])
    config.nav = whole_navigation(config.nav, names)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are not in docs/."""
    from mkdocs.structure.files import File  # noqa: PLC0415 -- in the environment of the site alone

    for name in ROOT_PAGES.values():
        files.append(File.generated(config, name, abs_src_path=str(documents()[name])))
    for name, target in shown_files().items():
        files.append(File.generated(config, name, content=shown_text(target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Links as the site has them."""
    pages = {path: name for name, path in (documents() | shown_files()).items()}
    path = documents().get(page.file.src_uri)
    if page.file.src_uri.startswith(_MANY):
        page.meta.setdefault("search", {"boost": 0.5})
    return markdown if path is None else in_site(path, markdown, pages)


def on_post_build(config: Any) -> None:
    """Raises ValueError for a page that loads something from elsewhere, or does not say its language, width and title."""
    site = Path(config.site_dir)
    wrong = [
        f"{path.relative_to(site)} {told}" for path in sorted(site.rglob("*.html")) for told in wrong_of(path.read_text(encoding="utf-8"))
    ]
    styles = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.css"))}
    wrong += [
        f"{path.relative_to(site)} loads {each}" for path, text in styles.items() for each in re.findall(r"url\([\"']?(https?:[^)]+)", text)
    ]
    if wrong:
        raise ValueError("the site is not whole: " + "; ".join(wrong[:20]))
