"""The guide's figures, recalculated from the public records of github.com/skypilot-org/spot-traces, which are not part of this project.

They are read from the folder that TRACES names, else from shared/data/spot-traces next to the checkout; without them the tests are skipped.
"""

from __future__ import annotations

import os
from itertools import chain, pairwise
from pathlib import Path

import pytest
from bench_traces import HEAD, NOTICE_SECONDS, compared, table

from flexspot.capacity.cost.replay import read_trace, read_traces

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "costs.md"
RECORDS = Path(os.environ.get("TRACES") or ROOT.parent / "shared" / "data" / "spot-traces")
needs_records = pytest.mark.skipif(not RECORDS.is_dir(), reason=f"no records at {RECORDS}; TRACES names a copy of spot-traces")


@needs_records
@pytest.mark.nightly(tested_by="test_a_strategy_meets_every_feasible_deadline, test_no_strategy_costs_less_than_knowing_the_future")
def test_the_guide_has_the_table_over_all_public_records_here() -> None:
    alone = [[each] for each in chain.from_iterable(read_traces(RECORDS))]
    found, without = ([compared(zones, notice) for zones in alone] for notice in (NOTICE_SECONDS, 0))
    guide = GUIDE.read_text(encoding="utf-8")

    assert {each.missed for comparison in found for each in comparison.results.values()} == {0}
    assert "\n".join(table(found)) in guide
    assert HEAD in guide
    first, second, third = table(without)[-1].split("| | | ")[1][:-2].split(" | ")
    assert f"Without a save on notice the means are {first}, {second} and {third}." in guide


@needs_records
@pytest.mark.nightly(tested_by="test_the_model_agrees_with_simulated_interruptions")
def test_the_record_of_sixteen_nodes_counts_as_the_guide_says() -> None:
    """The figures of the guide and of the shipped share of a gang."""
    trace = read_trace(RECORDS / "availability" / "16-node" / "aws-08-27-2023" / "us-west-2a_v100_1.json")
    hours = trace.gap_seconds / 3600
    taken = sum(max(0, before - after) for before, after in pairwise(trace.available)) / (sum(trace.available) * hours)
    losses = [16 - after for before, after in pairwise(trace.available) if before == 16 > after]
    gang = len(losses) / (trace.available.count(16) * hours)

    # A review of this project counted 8.7 an hour for independent nodes, and 0.49 to 0.60 in the records.
    assert (f"{taken:.2f}", f"{gang:.2f}", f"{16 * taken:.2f}") == ("0.54", "0.55", "8.66")
    assert f"{sum(losses) / len(losses) / 16:.0%}" == "77%"
