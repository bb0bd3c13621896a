"""Names that would have two meanings."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, pool, told

from capacity.plan.checks.classes import (
    alternatives_are_other_machines,
    flavors_do_not_take_a_pools_name,
    names_are_unique,
    pools_do_not_take_a_name_of_the_platform,
    teams_do_not_take_a_namespace_of_the_cluster,
)


@pytest.mark.parametrize(
    "path,twice,apart",
    [
        ("pools.1", pool("l4-spot", "g5.xlarge", "spot", "training"), pool("a10g-spot", "g5.xlarge", "spot", "training")),
        ("teams.1", {"name": "red"}, {"name": "blue"}),
        ("cohorts", [{"name": "research"}, {"name": "research"}], [{"name": "research"}, {"name": "product"}]),
    ],
)
def test_a_name_stands_once(path: str, twice: Any, apart: Any) -> None:
    assert told(names_are_unique, "local", {path: twice}) == [f"refused: duplicate-name at {path.partition('.')[0]}.1.name"]
    assert told(names_are_unique, "local", {path: apart}) == []


def test_a_cohort_does_not_take_the_name_of_the_root() -> None:
    assert told(names_are_unique, "local", {"cohort": "acme", "cohorts": [{"name": "acme"}]}) == [
        "refused: duplicate-name at cohorts.0.name"
    ]
    assert told(names_are_unique, "local", {"cohort": "acme", "cohorts": [{"name": "platform"}]}) == []


def test_two_classes_have_two_priority_classes() -> None:
    rendering = {"classes.rendering": CLASS | {"priority_class": "gpu-training"}}

    assert told(names_are_unique, "local", rendering) == ["refused: duplicate-name at classes.rendering.priority_class"]
    assert told(names_are_unique, "local", {"classes.rendering": CLASS}) == []


def test_a_pool_is_not_called_like_a_flavor_of_several_pools() -> None:
    assert told(flavors_do_not_take_a_pools_name, "local", {"pools.0.name": "any-l4"}) == ["refused: reserved-name at pools.0.name"]
    assert told(flavors_do_not_take_a_pools_name, "local", {"pools.0.name": "many-l4"}) == []


def test_the_third_of_a_name_is_told_too() -> None:
    thrice: dict[str, Any] = {"teams.1": {"name": "red"}, "teams.2": {"name": "red"}}

    assert told(names_are_unique, "local", thrice) == ["refused: duplicate-name at teams.1.name", "refused: duplicate-name at teams.2.name"]


@pytest.mark.parametrize("cloud,machine,other", [("local", "g6.xlarge", "g6.2xlarge"), ("eks", "g6.xlarge", "g6.2xlarge")])
def test_an_alternative_is_another_machine(cloud: str, machine: str, other: str) -> None:
    assert told(alternatives_are_other_machines, cloud, {"pools.0.alternatives": [other, machine]}) == [
        "refused: duplicate-name at pools.0.alternatives.1"
    ]
    assert told(alternatives_are_other_machines, cloud, {"pools.0.alternatives": [other, other]}) == [
        "refused: duplicate-name at pools.0.alternatives.1"
    ]
    assert told(alternatives_are_other_machines, cloud, {"pools.0.alternatives": [other]}) == []


def test_pools_of_gke_have_no_alternatives() -> None:
    assert told(alternatives_are_other_machines, "gke") == []


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease", "kueue-system", "karpenter", "gmp-system"])
def test_a_team_is_not_called_like_a_namespace_of_the_cluster(name: str) -> None:
    assert told(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": name}) == ["refused: reserved-name at teams.0.name"]
    assert told(teams_do_not_take_a_namespace_of_the_cluster, "local", {"teams.0.name": f"team-{name}"}) == []


@pytest.mark.parametrize(
    "cloud,name", [("gke", "system"), ("gke", "default-pool"), ("gke", "nap-1"), ("eks", "other-work"), ("local", "other-work")]
)
def test_a_pool_is_not_called_like_one_that_the_cluster_has_by_itself(cloud: str, name: str) -> None:
    assert told(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": name}) == ["refused: reserved-name at pools.0.name"]
    assert told(pools_do_not_take_a_name_of_the_platform, cloud, {"pools.0.name": f"my-{name}"}) == []
    assert told(pools_do_not_take_a_name_of_the_platform, "eks" if cloud == "gke" else "gke", {"pools.0.name": name}) == []
