"""Topology: the levels by which Kueue places pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog.node_labels import GKE_TOPOLOGY_LABELS
from flexspot.components.kueue.queues import Topology, TopologyArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

ZONE_AND_HOST = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]


def topology_args(*levels: str) -> TopologyArgs:
    return {"name": "network", "levels": list(levels), "labels": {"flexspot.dev/owner": "ml-platform"}}


@pytest.mark.parametrize("levels", [list(GKE_TOPOLOGY_LABELS), ZONE_AND_HOST], ids=["gke", "zone and host"])
def test_levels_are_written_the_widest_first(levels: list[str], register: Register) -> None:
    [made] = register(lambda: Topology("network", topology_args(*levels))).of("kubernetes:kueue.x-k8s.io/v1beta2:Topology")

    assert made["spec"] == {"levels": [{"nodeLabel": level} for level in levels]}
    assert made["metadata"] == {"name": "network", "labels": {"flexspot.dev/owner": "ml-platform"}}


def test_its_name_is_the_output(outputs: Outputs) -> None:
    assert outputs(lambda: Topology("net", topology_args(*ZONE_AND_HOST))) == {"topology": "network"}


@pytest.mark.parametrize(
    "levels,problem",
    [
        ([], "levels (is empty): Kueue accepts 1 to 16"),
        ([f"example.com/level-{number}" for number in range(17)], "Kueue accepts 1 to 16"),
        (
            ["example.com/rack", "example.com/rack"],
            "levels (is example.com/rack, example.com/rack): a label is listed twice; list each once",
        ),
        (["kubernetes.io/hostname", "example.com/rack"], "kubernetes.io/hostname must be the last"),
    ],
)
def test_levels_that_kueue_would_reject_are_refused_before_anything_is_registered(
    levels: list[str], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(Topology, "network", topology_args(*levels))
