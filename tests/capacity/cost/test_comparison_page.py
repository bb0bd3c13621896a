"""The page of a comparison: whole, self-contained, escaped, its points where the figures are."""

from __future__ import annotations

import re
from decimal import Decimal
from xml.etree import ElementTree as ET

from spot_traces import made_trace

from capacity.cost.comparison import compare, comparison_page
from capacity.cost.replay import Job, Rates, Trace

JOB = Job(12 * 3600, 16 * 3600, 1800, restart_seconds=600)
RATES = Rates(Decimal("0.918"), Decimal("3.06"))


def plots(page: str) -> list[ET.Element]:
    return [ET.fromstring(each) for each in re.findall(r"<svg[^>]* role=.img.*?</svg>", page, re.DOTALL)]  # noqa: S314 -- our own page


def test_there_is_a_plot_and_a_table_for_each_record_and_nothing_from_elsewhere() -> None:
    found = [compare([made_trace(seed, ticks=400)], JOB, RATES, starts=2) for seed in (1, 2)]

    page = comparison_page(found)

    assert len(plots(page)) == page.count("<table>") == 2
    assert not re.search("https?://", page)
    assert "<script" not in page


def test_a_name_cannot_break_out() -> None:
    trace = Trace("<b>&zone", 300, (1,) * 400)

    page = comparison_page([compare([trace], JOB, RATES, starts=1)])

    assert "&lt;b&gt;&amp;zone" in page
    assert "<b>" not in page


def test_every_strategy_that_ended_is_a_point_inside_the_plot_and_a_cheaper_one_is_lower() -> None:
    found = compare([Trace("always", 300, (1,) * 400)], JOB, RATES, starts=1)
    (plot,) = plots(comparison_page([found]))
    points = [each for each in plot.iter("circle") if each.find("title") is not None]

    assert len(points) == len(found.results)
    height = {(each.findtext("title") or "").split(":")[0]: float(each.attrib["cy"]) for each in points}
    assert height["Spot, restarted"] > height["on-demand"], "y grows downwards"
    assert all(0 <= float(each.attrib["cx"]) <= 560 and 0 <= float(each.attrib["cy"]) <= 300 for each in points)
