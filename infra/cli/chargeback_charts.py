"""The charts of the chargeback page: a bar for each name, in SVG that fills any width, with its text beside it in HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from capacity.chargeback.report import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.chargeback.report import Report

_BARS = 12
"""Names that a chart shows; the tables have all."""

_COLOURS = {"allocated": "first", "idle": "second", "busy": "third", "not busy": "rail"}
"""What each part of a bar is drawn in, by its name."""


def charts(report: Report) -> str:
    """Who pays, how it was bought, and how busy it was, where that was measured."""
    teams, bought = report.by("team"), report.by("capacity_type")
    drawn = [
        _chart(
            "Who pays, USD",
            ("allocated", "idle"),
            ((key[0], f"{each.usd:,}", (float(each.allocated_usd), float(each.idle_usd))) for key, each in teams.items()),
        ),
        _chart(
            "How it was bought, USD",
            ("allocated", "idle"),
            ((key[0], f"{each.usd:,}", (float(each.allocated_usd), float(each.idle_usd))) for key, each in bought.items()),
        ),
    ]
    if any(each.measured for each in teams.values()):
        busiest = sorted(teams.items(), key=lambda pair: -pair[1].gpu_seconds)
        drawn.append(
            _chart(
                "How busy allocated GPUs were, hours measured",
                ("busy", "not busy"),
                (
                    (key[0], f"{each.used / HOUR:,.1f} of {each.measured / HOUR:,.1f}", (each.used, max(0.0, each.measured - each.used)))
                    for key, each in busiest
                    if each.measured
                ),
            )
        )
    return "".join(drawn)


def _chart(title: str, parts: tuple[str, ...], rows: Iterable[tuple[str, str, tuple[float, ...]]]) -> str:
    found = list(rows)
    most = max((sum(values) for _, _, values in found), default=0.0) or 1.0
    key = "".join(
        f'<span><svg aria-hidden="true"><rect class="{_COLOURS[part]}" width="100%" height="100%"/></svg>{escape(part)}</span>'
        for part in parts
    )
    bars = "".join(_bar(name, figure, values, most, parts) for name, figure, values in found[:_BARS])
    more = f"<p>and {len(found) - _BARS} more, in the table below</p>" if len(found) > _BARS else ""
    return f'<section><h2>{escape(title)}</h2><div class="key">{key}</div>{bars}{more}</section>'


def _bar(name: str, figure: str, values: tuple[float, ...], most: float, parts: tuple[str, ...]) -> str:
    drawn, left = "", 0.0
    for part, value in zip(parts, values, strict=True):
        width = 100 * value / most
        if width:
            drawn += f'<rect class="{_COLOURS[part]}" x="{left:.3f}%" width="{width:.3f}%" height="100%"/>'
        left += width
    told = ", ".join(f"{part} {value / (sum(values) or 1):.0%}" for part, value in zip(parts, values, strict=True))
    return (
        f'<div class="bar"><span>{escape(name)}</span><b>{escape(figure)}</b>'
        f'<svg role="img" aria-label="{escape(name)}: {escape(told)}"><rect class="rail" width="100%" height="100%"/>{drawn}</svg></div>'
    )
