"""The site of the documents: every page is in its navigation, links lead to pages of it, and nothing is loaded from elsewhere.

`make docs` builds it strictly, with MkDocs in an environment of its own; what is here needs neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import site_pages
import yaml

from infra.cli import commands_page

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS: dict[str, Any] = yaml.safe_load((site_pages.CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8"))
PAGES = site_pages.documents()


def entries(navigation: list[Any]) -> Iterator[str]:
    """The pages of a navigation, in its order."""
    for entry in navigation:
        inner = next(iter(entry.values())) if isinstance(entry, dict) else entry
        yield from entries(inner) if isinstance(inner, list) else [inner]


def test_every_document_is_once_in_the_navigation_and_nothing_else_is() -> None:
    found = list(entries(site_pages.whole_navigation(SETTINGS["nav"], sorted([*PAGES, *site_pages.shown_files()]))))

    assert len(found) == len(set(found))
    assert set(PAGES) - set(found) == set()
    assert set(found) - set(PAGES) <= set(site_pages.shown_files())
    assert len(found) > 130


def test_a_folder_of_the_navigation_begins_with_its_own_page() -> None:
    assert site_pages.whole_navigation([{"Rules": "rules/"}], ["rules/a.md", "other.md", "rules/README.md"]) == [
        {"Rules": ["rules/README.md", "rules/a.md"]}
    ]


def test_the_reference_of_commands_is_written_from_the_commands() -> None:
    """When this fails: `python -m infra.cli.commands_page`."""
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page()


def test_a_command_of_the_reference_has_its_choices_bounds_and_defaults() -> None:
    written = commands_page.page()

    assert "    flexspot advise job --machine TEXT --region TEXT --hours NUMBER [OPTIONS]" in written
    assert "| `--budget-against` | `expected, worst-case` | `expected` | Which figure budgets are compared with. |" in written
    assert "| `--near-percent` | `1 to 100` | `80` |" in written
    assert "| `--interruptible`, `--not-interruptible` |  | on |" in written
    assert "| `--cluster` | `NAME=PATH` several times |" in written


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_to_a_page_of_the_site(name: str) -> None:
    path = PAGES[name]
    there = {*PAGES.values(), *site_pages.shown_files().values()}

    assert [target for target in site_pages.linked(path, path.read_text(encoding="utf-8")) if target not in there] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_list_or_a_table_begins_after_an_empty_line(name: str) -> None:
    """GitHub begins one after any line; the site, as Markdown was first described, would run it into the paragraph."""
    prose = re.sub(r"^```.*?^```", "", PAGES[name].read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    begins = re.findall(r"^(?![-*] |[|#\s]|\d+\. ).+\n(?:[-*] |\d+\. |\|).*", prose, re.MULTILINE)

    # A line that continues an entry of a list begins with two spaces.
    assert begins == []


def test_links_are_those_of_the_site_and_code_stays_as_it_is() -> None:
    pages = {path: name for name, path in (PAGES | site_pages.shown_files()).items()}
    text = (
        "[why](../decisions) [set](../settings.md#pools) [start](../../README.md#two-commands) [x](https://a.example/y.md)"
        "\n\n    [in](../lint.md)\n"
    )

    moved = site_pages.in_site(site_pages.DOCS / "guides" / "eks.md", text, pages)

    assert moved == (
        "[why](../decisions/index.md) [set](../settings.md#pools) [start](../index.md#two-commands) [x](https://a.example/y.md)"
        "\n\n    [in](../lint.md)\n"
    )


def test_a_file_that_documents_lead_to_is_a_page_that_shows_it() -> None:
    shown = site_pages.shown_files()

    assert shown["repository/stacks/Pulumi.local.yaml.md"].read_text(encoding="utf-8").strip() in site_pages.shown_text(
        shown["repository/stacks/Pulumi.local.yaml.md"]
    )
    assert "- [45. The linter is a distribution of its own" in site_pages.shown_text(shown["decisions/index.md"])
    assert not [name for name in shown if "/." in name]


@pytest.mark.parametrize(
    "said,told",
    [
        ('<script src="https://cdn.example/x.js"></script>', ["loads https://cdn.example/x.js"]),
        ('<script src="//cdn.example/x.js"></script>', ["loads //cdn.example/x.js"]),
        ('<link rel="stylesheet" href="https://fonts.example/f.css">', ["loads https://fonts.example/f.css"]),
        ('<link rel="preconnect" href="https://fonts.example">', ["loads https://fonts.example"]),
        ('<link rel="canonical" href="https://flexspot.example/">', []),
        (
            "<style>@import 'https://a.example/a.css'; p {background: url(\"https://b.example/b.png\")}</style>",
            ["loads https://a.example/a.css", "loads https://b.example/b.png"],
        ),
        ('<img src="https://a.example/a.png"><img src="a.png">', ["loads https://a.example/a.png"]),
        ('<a href="https://a.example">out</a>', []),
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(said: str, told: list[str]) -> None:
    page = f'<html lang="en"><head><meta name="viewport" content="width=device-width"><title>t</title></head><body>{said}</body></html>'

    assert site_pages.wrong_of(page) == told


def test_a_page_without_language_width_and_title_is_found() -> None:
    assert site_pages.wrong_of("<html><body>x</body></html>") == ["has no lang", "has no title", "has no viewport"]


def test_the_sites_versions_are_pinned_with_hashes() -> None:
    wanted = re.findall(r"^([\w-]+==\S+)$", (site_pages.DOCS / "site" / "requirements.in").read_text(encoding="utf-8"), re.MULTILINE)
    locked = (site_pages.DOCS / "site" / "requirements.txt").read_text(encoding="utf-8")

    assert len(wanted) == 2
    assert [each for each in wanted if f"{each} \\\n    --hash=sha256:" not in locked] == []


def test_make_docs_counts_warnings_which_a_quiet_build_does_not() -> None:
    """MkDocs 1.6.1 with --quiet sees no warning, so that --strict lets a link to nowhere pass."""
    recipe = (site_pages.CHECKOUT / "Makefile").read_text(encoding="utf-8").partition("\ndocs: ")[2].partition("\n\n")[0]

    assert "mkdocs build --strict" in recipe
    assert "--quiet" not in recipe
    assert SETTINGS["strict"] is True
    assert set(SETTINGS["validation"]["links"].values()) == {"warn"}
