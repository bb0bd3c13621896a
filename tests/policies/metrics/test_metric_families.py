"""The data about metrics: well-formed, and saying of each what rules ask."""

from __future__ import annotations

import re

from policies.metrics.label_use import HISTOGRAM_SERIES, amounts_by_container, histograms

NAME = re.compile(r"[a-z_:][a-z0-9_:]*")


def test_names_are_those_of_families_and_not_of_their_series() -> None:
    names = histograms() | amounts_by_container()

    assert [name for name in names if not NAME.fullmatch(name) or name.endswith(HISTOGRAM_SERIES)] == []
    assert "kueue_admission_wait_time_seconds" in names
    assert "karpenter_nodes_termination_duration_seconds" not in names, "a summary has series of its own name"
