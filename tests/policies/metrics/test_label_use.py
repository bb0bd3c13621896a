"""Which labels an expression asks of which series."""

from __future__ import annotations

import pytest

from policies.metrics.label_use import labels_asked
from policies.metrics.promql import parsed


def asked(text: str) -> list[str]:
    tree = parsed(text)
    assert tree
    return [f"{series}.{label}" for series, label in labels_asked(tree)]


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
        ('{__name__=~"gpu.*", node="a"}', []),
    ],
)
def test_a_label_is_asked_of_the_series_that_must_have_it(text: str, expected: list[str]) -> None:
    assert asked(text) == expected


def test_a_label_that_the_expression_gives_is_not_asked_of_the_series() -> None:
    assert asked('sum by (node) (label_replace(gpu, "node", "$1", "Hostname", "(.*)"))') == ["gpu.Hostname"]
    assert asked('sum by (both) (label_join(gpu, "both", "/", "a", "b"))') == ["gpu.a", "gpu.b"]
    assert asked("sum by (zone) (gpu * on (node) group_left (zone) info)") == ["gpu.node", "info.node", "info.zone"]


def test_what_an_aggregation_has_taken_away_is_asked_of_nobody() -> None:
    assert asked("sum by (team) (gpu) * on (node) info") == ["gpu.team", "info.node"]
    assert asked("topk(3, gpu) * on (node) info") == ["gpu.node", "info.node"]


def test_a_label_is_told_once() -> None:
    assert asked("sum by (node) (gpu) / count by (node) (gpu)") == ["gpu.node"]
