"""Topology: the levels by which Kueue places pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from capacity.catalog.node_labels import GKE_TOPOLOGY_LABELS
from components.kueue.topology import Topology, TopologyArgs

Register = Callable[[Callable[[], object]], Any]

ZONE_AND_HOST = ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]


def topology_args(*levels: str) -> TopologyArgs:
    return {"name": "network", "levels": list(levels), "labels": {"flexspot.dev/owner": "ml-platform"}}


@pytest.mark.parametrize("levels", [list(GKE_TOPOLOGY_LABELS), ZONE_AND_HOST], ids=["gke", "zone and host"])
def test_levels_are_written_the_widest_first(levels: list[str], register: Register) -> None:
    [made] = register(lambda: Topology("network", topology_args(*levels))).of("kubernetes:kueue.x-k8s.io/v1beta2:Topology")

    assert made["spec"] == {"levels": [{"nodeLabel": level} for level in levels]}
    assert made["metadata"] == {"name": "network", "labels": {"flexspot.dev/owner": "ml-platform"}}


def test_the_object_is_a_child_and_its_name_the_output(register: Register) -> None:
    parents: dict[str, pulumi.Resource | None] = {}
    made: list[Topology] = []
    names: list[str] = []

    def note(resource: pulumi.ResourceTransformationArgs) -> None:
        parents[resource.name] = resource.opts.parent

    def declare() -> None:
        made.append(Topology("net", topology_args(*ZONE_AND_HOST), pulumi.ResourceOptions(transformations=[note])))
        made[0].topology.apply(names.append)

    register(declare)

    assert parents == {"net": None, "net-topology": made[0]}
    assert names == ["network"]


@pytest.mark.parametrize(
    "levels,problem",
    [
        ([], r"levels are \(none\); give 1 to 16"),
        ([f"example.com/level-{number}" for number in range(17)], "give 1 to 16"),
        (["example.com/rack", "example.com/rack"], "levels are example.com/rack, example.com/rack; each once"),
        (["kubernetes.io/hostname", "example.com/rack"], "kubernetes.io/hostname is the last or none of them"),
    ],
)
def test_levels_that_kueue_would_refuse_are_refused_before_anything_is_registered(
    levels: list[str], problem: str, register: Register
) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match=f"Topology network: .*{problem}"):
            Topology("network", topology_args(*levels))

    assert register(declare).resources == []
