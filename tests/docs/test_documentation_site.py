"""The site of the documents: every page is in its navigation or in an index, and nothing is loaded from elsewhere.

`make docs` builds it strictly, with MkDocs in an environment of its own; these tests need neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import site_pages
import yaml

from flexspot.infra.cli import commands_page

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = site_pages.documents()


def entries(navigation: list[Any]) -> Iterator[str]:
    """Return the pages of a navigation, in order."""
    for entry in navigation:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from entries(inner) if isinstance(inner, list) else [inner]


def test_every_document_is_once_in_the_navigation_or_in_an_index() -> None:
    settings = yaml.safe_load((site_pages.CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8"))
    found = sorted(entries(settings["nav"]))

    indexed = tuple(settings["not_in_nav"].split())
    assert found == sorted({name for name in PAGES if not name.startswith(indexed)} | {"rules/README.md", site_pages.DECISIONS})
    title = re.escape("- [45. The linter is a distribution of its own")
    assert re.search(rf"^{title}.*\]\(0045-the-linter-is-a-distribution-of-its-own\.md\)$", site_pages.decisions(), re.MULTILINE)


def test_the_reference_of_commands_is_written_from_the_commands() -> None:
    """When this fails: `python -m flexspot.infra.cli.commands_page`."""
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page()


@pytest.mark.parametrize("name", PAGES)
def test_a_list_or_a_table_begins_after_an_empty_line(name: str) -> None:
    """GitHub begins one after any line; the site, as Markdown was first described, would run it into the paragraph."""
    prose = re.sub(r"^```.*?^```", "", PAGES[name].read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    begins = re.findall(r"^(?![-*] |[|#\s]|\d+\. ).+\n(?:[-*] |\d+\. |\|).*", prose, re.MULTILINE)

    # A line that continues an entry of a list begins with two spaces.
    assert begins == []


def test_links_are_those_of_the_site_and_code_stays_as_it_is() -> None:
    text = (
        "[why](../decisions) [set](../settings.md#pools) [start](../../README.md#two-commands) [x](https://a.example/y.md)"
        " [file](../../stacks/Pulumi.local.yaml)\n\n    [in](../lint.md)\n"
    )

    moved = site_pages.in_site(site_pages.DOCS / "guides" / "eks.md", text)

    assert moved == (
        "[why](../decisions/index.md) [set](../settings.md#pools) [start](../index.md#two-commands) [x](https://a.example/y.md)"
        " file\n\n    [in](../lint.md)\n"
    )


@pytest.mark.parametrize(
    "said,problems",
    [
        ('<script src="https://cdn.example/x.js"></script>', ["loads https://cdn.example/x.js"]),
        ('<script src="//cdn.example/x.js"></script>', ["loads //cdn.example/x.js"]),
        ('<link rel="stylesheet" href="https://fonts.example/f.css">', ["loads https://fonts.example/f.css"]),
        ('<link rel="canonical" href="https://flexspot.example/">', []),
        (
            "<style>@import 'https://a.example/a.css'; p {background: url(\"https://b.example/b.png\")}</style>",
            ["loads https://a.example/a.css", "loads https://b.example/b.png"],
        ),
        ('<img src="https://a.example/a.png"><img src="a.png"><a href="https://a.example">out</a>', ["loads https://a.example/a.png"]),
    ],
)
def test_a_page_that_loads_something_from_elsewhere_is_found(said: str, problems: list[str]) -> None:
    page = f'<html lang="en"><head><meta name="viewport" content="width=device-width"><title>t</title></head><body>{said}</body></html>'

    assert site_pages.wrong_of(page) == problems


def test_a_page_without_language_width_and_title_is_found() -> None:
    assert site_pages.wrong_of("<html><body>x</body></html>") == ["has no lang", "has no viewport", "has no title"]
