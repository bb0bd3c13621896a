"""Labels that an expression requires of each series."""

from __future__ import annotations

import re

import pytest

from flexspot.policies.metrics import HISTOGRAM_SERIES, amounts_by_container, histograms, parsed, required_labels


@pytest.mark.parametrize(
    "text,expected",
    [
        ('gpu{node="a", pod!="b", zone=""}', ["gpu.node"]),
        ("sum by (node) (rate(gpu[5m]))", ["gpu.node"]),
        ("sum without (node) (gpu)", []),
        ("gpu * on (node) group_left (zone) info", ["gpu.node", "info.node", "info.zone"]),
        ("info * on (node) group_right (zone) gpu", ["info.node", "gpu.node", "info.zone"]),
        ("gpu and on (node) info", ["gpu.node", "info.node"]),
        ("gpu / ignoring (node) info", []),
        ("max by (node) (gpu or other)", ["gpu.node", "other.node"]),
        ("vector(1) > on (node) abs(gpu)", ["gpu.node"]),
        ("vector(1)", []),
        # Labels that the expression adds, or that an aggregation has dropped, are required of no series.
        ('sum by (node) (label_replace(gpu, "node", "$1", "Hostname", "(.*)"))', ["gpu.Hostname"]),
        ('sum by (both) (label_join(gpu, "both", "/", "a", "b"))', ["gpu.a", "gpu.b"]),
        ("sum by (zone) (gpu * on (node) group_left (zone) info)", ["gpu.node", "info.node", "info.zone"]),
        ("sum by (team) (gpu) * on (node) info", ["gpu.team", "info.node"]),
        ("topk(3, gpu) * on (node) info", ["gpu.node", "info.node"]),
        ("sum by (node) (gpu) / count by (node) (gpu)", ["gpu.node"]),
        ('{__name__=~"gpu.*", node="a"}', []),
    ],
)
def test_a_label_is_required_of_the_series_that_must_have_it(text: str, expected: list[str]) -> None:
    tree = parsed(text)

    assert tree
    assert [f"{series}.{label}" for series, label in required_labels(tree)] == expected


def test_listed_names_are_metric_families_and_not_their_series() -> None:
    names = histograms() | amounts_by_container()

    assert [name for name in names if not re.fullmatch(r"[a-z_:][a-z0-9_:]*", name) or name.endswith(HISTOGRAM_SERIES)] == []
    assert "kueue_admission_wait_time_seconds" in names
    assert "karpenter_nodes_termination_duration_seconds" not in names, "a summary has series under its bare name"
