"""The pages that Flexspot writes, as a browser meets them: readable in both schemes, on a phone, and with nothing from elsewhere.

Contrast is WCAG 2.2's (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio, read on 2026-11-27): 4.5 for text (1.4.3), 3 for what charts are
drawn with (1.4.11).
"""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
import site_pages
from spot_traces import made_trace

from capacity.cost.comparison import COLOURS, compare, comparison_page
from capacity.cost.comparison import STYLE as STRATEGIES
from capacity.cost.replay import Job, Rates
from infra.cli.chargeback_html import STYLE as CHARGEBACK

PAGES = {"strategies": STRATEGIES, "chargeback": CHARGEBACK}
TEXT, DRAWN = 4.5, 3.0


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def schemes(style: str) -> list[dict[str, str]]:
    """The colours by name: the light scheme's, and with the dark one's over them."""
    found = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{[^}]*\}", style)[:2]]
    assert "prefers-color-scheme: dark" in style
    return [found[0], found[0] | found[1]]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_text_can_be_read_in_both_schemes(page: str, scheme: int) -> None:
    colours = schemes(PAGES[page])[scheme]

    assert contrast(colours["ink"], colours["ground"]) >= TEXT
    assert contrast(colours["quiet"], colours["ground"]) >= TEXT
    assert contrast(colours["ink"], colours.get("warn", colours["ground"])) >= TEXT


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_what_charts_are_drawn_with_can_be_seen_in_both_schemes(scheme: int) -> None:
    bars = schemes(CHARGEBACK)[scheme]
    points = schemes(STRATEGIES)[scheme]

    assert {
        name: contrast(bars[name], bars["ground"]) for name in ("first", "second", "third") if contrast(bars[name], bars["ground"]) < DRAWN
    } == {}
    assert {each: contrast(each, points["ground"]) for each in COLOURS if contrast(each, points["ground"]) < DRAWN} == {}


@pytest.mark.parametrize("page", PAGES)
def test_a_table_is_never_wider_than_a_phone(page: str) -> None:
    style = PAGES[page]

    assert ".wide { overflow-x: auto }" in style
    assert "@media screen and (max-width: 620px)" in style
    assert "attr(data-of)" in style
    assert "overflow-wrap: anywhere" in style


def test_the_page_of_strategies_says_its_language_width_and_title_and_may_load_nothing() -> None:
    job, rates = Job(12 * 3600, 16 * 3600, 1800, restart_seconds=600), Rates(Decimal("0.918"), Decimal("3.06"))
    page = comparison_page([compare([made_trace(1, ticks=400)], job, rates, starts=1)])

    assert site_pages.wrong_of(page) == []
    assert "default-src 'none'" in page
    assert page.count("<table>") == page.count('<div class="wide"><table>') == 1
    cells = re.findall(r"<td([^>]*)>", page)
    assert all(' data-of="' in each for each in cells)
