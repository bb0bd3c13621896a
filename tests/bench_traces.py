"""`python tests/bench_traces.py [FOLDER]`: strategies over records of Spot availability, and checks of every result.

FOLDER has traces in the format of github.com/skypilot-org/spot-traces. Default: synthetic records. Prices are those of p4d.24xlarge in the
course (62 % off on Spot). The job works for 48 hours, or for half of a record that is shorter than 96. Its deadline is a quarter longer. It
saves every half hour in a minute, starts in ten, and also saves on notice, 90 seconds before an interruption, as on EKS.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from spot_traces import made_trace

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.cost.replay import STRATEGIES, Comparison, Job, Rates, Trace, compare, read_traces

if TYPE_CHECKING:
    from collections.abc import Sequence

RATES = Rates(Decimal("12.50"), Decimal("32.77"))
WORK_HOURS = 48
SLACK = 1.25
STARTS = 10
NOTICE_SECONDS = facts_of("eks")[CapacityType.SPOT].notice_seconds or 0
HEAD = f"| record | Spot there | bound, USD | {' | '.join(STRATEGIES)} |"


def groups_of(folder: Path | None) -> list[list[Trace]]:
    """Return each record alone, and also the records of one machine, region and time together as zones."""
    if folder is None:
        made = [[made_trace(seed, ticks=2000, up_hours=up, down_hours=down)] for seed, up, down in ((1, 8, 1), (2, 2, 2), (3, 0.5, 3))]
        return [*made, [made_trace(seed, ticks=2000, up_hours=2, down_hours=4) for seed in (4, 5, 6)]]
    read = read_traces(folder)
    return [group for zones in read for group in ([[each] for each in zones] + ([zones] if len(zones) > 1 else []))]


def compared(zones: Sequence[Trace], notice_seconds: int) -> Comparison:
    """Return the results of all strategies, on the largest number of nodes in the record."""
    work = round(min(WORK_HOURS * 3600, len(zones[0].available) * zones[0].gap_seconds / 2))
    nodes = max(1, *(max(each.available) for each in zones))
    job = Job(work, round(work * SLACK), 1800, nodes, checkpoint_seconds=60, restart_seconds=600, notice_seconds=notice_seconds)
    return compare(zones, job, RATES, starts=STARTS)


def table(comparisons: Sequence[Comparison]) -> list[str]:
    """Return the guide's table: means over all starts, as multiples of the bound, and their means over the records in the last line."""
    ratios = [[each.mean_usd / found.bound_usd for each in found.results.values()] for found in comparisons]
    firsts = [f"{each.name} | {each.available_share * 100:.0f} % | {each.bound_usd:,.0f}" for each in comparisons]
    ratios.append([sum(each, Decimal(0)) / len(comparisons) for each in zip(*ratios, strict=True)])
    firsts.append(f"mean of {len(comparisons)} | |")
    return [f"| {first} | {' | '.join(f'{each:.3f}' for each in times)} |" for first, times in zip(firsts, ratios, strict=True)]


def broken(found: Comparison) -> list[str]:
    """Return impossible results: a strategy that misses its deadline, a cost below the bound."""
    late = [f"{found.name}: {name} missed {each.missed}" for name, each in found.results.items() if each.missed]
    return late + [f"{found.name}: {name} is below the bound" for name, each in found.results.items() if each.mean_usd < found.bound_usd]


def main() -> None:
    """Print the tables, with a save on notice and without. Exits with 1 for an impossible result."""
    problems: list[str] = []
    groups = groups_of(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    for title, notice in (("saving on notice", NOTICE_SECONDS), ("without", 0)):
        found = [compared(zones, notice) for zones in groups]
        problems += [problem for each in found for problem in broken(each)]
        sys.stdout.write("\n".join([f"multiples of the bound, {title}:", HEAD, *table(found), "\n"]))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
