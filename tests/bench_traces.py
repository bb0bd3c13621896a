"""`python tests/bench_traces.py [FOLDER]`: strategies over records of Spot availability, and what must hold on every one of them.

FOLDER has traces in the format of github.com/skypilot-org/spot-traces; without it, records are made up. `tests/strategy_table.py` says
which job is played. At the end is the guide's table: multiples of the bound, with a save on notice and without. With --html PAGE a plot is
written.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console
from spot_traces import made_trace
from strategy_table import HEAD, RATES, STARTS, job_for, mean_row, ratios_of, row

from capacity.cost.comparison import Comparison, compare, comparison_page
from capacity.cost.replay import Trace, read_traces
from capacity.cost.strategies import DEADLINE_AWARE
from infra.cli.advise_arithmetic_commands import comparison_table


def groups_of(folder: Path | None) -> list[list[Trace]]:
    """Each record alone, and those of one machine, place and time together as zones."""
    if folder is None:
        made = [[made_trace(seed, ticks=2000, up_hours=up, down_hours=down)] for seed, up, down in ((1, 8, 1), (2, 2, 2), (3, 0.5, 3))]
        return [*made, [made_trace(seed, ticks=2000, up_hours=2, down_hours=4) for seed in (4, 5, 6)]]
    read = read_traces(folder)
    return [group for zones in read for group in ([[each] for each in zones] + ([zones] if len(zones) > 1 else []))]


def broken(found: Comparison) -> list[str]:
    """What must never be: an aware strategy that is late, a cost below the bound."""
    late = [f"{each.strategy} missed {each.missed}" for each in found.results if each.strategy in DEADLINE_AWARE and each.missed]
    low = [f"{each.strategy} is below the bound" for each in found.results if each.below_bound]
    return [f"{found.name}: {problem}" for problem in late + low]


def main() -> None:
    """Prints a table for each record; ends with 1 when something does not hold."""
    parser = argparse.ArgumentParser(description="strategies over records of Spot availability")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--html", type=Path)
    arguments = parser.parse_args()
    console, begun = Console(width=120), time.perf_counter()
    comparisons: list[Comparison] = []
    groups = groups_of(arguments.folder)
    for zones in groups:
        found = compare(zones, job_for(zones), RATES, starts=STARTS)
        comparisons.append(found)
        console.print(comparison_table(found))
        rate, wait = zones[0].interruptions_per_hour(found.job.nodes), zones[0].mean_wait_hours(found.job.nodes)
        console.print(f"  first zone: {rate:.2f} interruptions in an hour of running, {wait:.2f} h until it is back\n")
    for title, notice in (("saving on notice", job_for(groups[0]).notice_seconds), ("without", 0)):
        table = [ratios_of(zones, notice_seconds=notice) for zones in groups]
        worst = max(table, key=lambda each: each.over_the_better)
        lines = [f"multiples of the bound, {title}:", HEAD, *map(row, table), mean_row(table)]
        told = f"adaptive at most {worst.over_the_better:.3f} of the better of on-demand and greedy, in {worst.comparison.name}\n"
        sys.stdout.write("\n".join([*lines, told, ""]))
    console.print(f"{len(comparisons)} records, {STARTS} starts each, {time.perf_counter() - begun:.0f} s")
    if arguments.html:
        arguments.html.write_text(comparison_page(comparisons), encoding="utf-8")
    if problems := [problem for found in comparisons for problem in broken(found)]:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
