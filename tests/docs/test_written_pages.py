"""The pages that Flexspot writes, as a browser meets them: readable in both schemes, on a phone, and with nothing from elsewhere.

Contrast is WCAG 2.2's (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio, read on 2026-11-27): 4.5 for text (1.4.3), 3 for what charts are
drawn with (1.4.11).
"""

from __future__ import annotations

import re

import pytest

from flexspot.infra.cli.money.chargeback_formats import STYLE

TEXT, DRAWN = 4.5, 3.0


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


LIGHT, DARK = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{[^}]*\}", STYLE)[:2])
SCHEMES = (LIGHT, LIGHT | DARK)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_in_both_schemes(scheme: int) -> None:
    colours = SCHEMES[scheme]

    assert "prefers-color-scheme: dark" in STYLE
    assert contrast(colours["ink"], colours["ground"]) >= TEXT
    assert contrast(colours["quiet"], colours["ground"]) >= TEXT
    assert contrast(colours["ink"], colours.get("warn", colours["ground"])) >= TEXT


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_what_charts_are_drawn_with_can_be_seen_in_both_schemes(scheme: int) -> None:
    bars = SCHEMES[scheme]

    assert {
        name: contrast(bars[name], bars["ground"]) for name in ("first", "second", "third") if contrast(bars[name], bars["ground"]) < DRAWN
    } == {}


def test_a_table_is_never_wider_than_a_phone() -> None:
    assert ".wide { overflow-x: auto }" in STYLE
    assert "@media screen and (max-width: 620px)" in STYLE
    assert "attr(data-of)" in STYLE
    assert "overflow-wrap: anywhere" in STYLE
