"""Parts of somebody else's: what is taken, what a plan leaves out beside them, and which settings nothing reads then."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, plan_of, pool, told

from flexspot.capacity.plan.checks.existing_parts import (
    TABLE,
    a_gpu_operator_is_where_it_works,
    another_karpenter_is_on_its_own_cluster,
    what_nothing_reads_is_told,
)
from flexspot.capacity.plan.checks.places import eks_ranges_have_room, gke_ranges_have_room, ranges_do_not_overlap
from flexspot.capacity.plan.checks.versions import karpenter_works_with_the_version
from flexspot.capacity.settings.stack_schema import stack_file_schema

THEIRS: dict[str, Any] = {"cluster.existing": "ml", "cluster.existing_karpenter": {"node_role": "KarpenterNodeRole-ml"}}
OPERATOR: dict[str, Any] = {"cluster.existing_gpu_operator": True}


def test_a_cluster_with_both_of_its_own_is_taken_without_a_word_and_neither_is_installed() -> None:
    plan = plan_of("eks", THEIRS | OPERATOR)

    assert plan.warnings == ()
    assert plan.versions.charts.keys() == {"kueue"}
    assert plan_of("eks", {"cluster.existing": "ml"}).versions.charts.keys() == {
        "kueue",
        "karpenter",
        "nvidia-device-plugin",
        "dcgm-exporter",
    }


def test_a_gpu_operator_may_come_to_a_cluster_that_the_stack_makes() -> None:
    assert told(a_gpu_operator_is_where_it_works, "eks", OPERATOR) == []
    assert plan_of("eks", OPERATOR).versions.charts.keys() == {"kueue", "karpenter"}


@pytest.mark.parametrize("change", [{"cluster.node_repair": True}, {"cluster.nodes": {"kubelet": {"max_pods": 50}}}])
def test_what_is_of_node_classes_and_not_of_the_controller_stays_ours(change: dict[str, Any]) -> None:
    assert told(another_karpenter_is_on_its_own_cluster, "eks", THEIRS | change) == []


def test_the_version_of_somebody_elses_karpenter_is_not_judged_by_the_one_that_would_be_installed() -> None:
    assert told(karpenter_works_with_the_version, "eks", THEIRS | {"cluster.version": "1.25"}) == []


def test_a_gpu_operator_without_a_gpu_of_nvidias_is_warned_of() -> None:
    neuron = {
        "pools": [pool("trn", "trn1.32xlarge", "spot", "neuron")],
        "classes": {"neuron": {**CLASS, "priority_class": "neuron", "priority": 7}},
        "teams": [{"name": "red", "shares": {"trn": 16}}],
    }

    assert told(a_gpu_operator_is_where_it_works, "eks", OPERATOR | neuron) == [
        "warned: gpu-operator-not-used at cluster.existing_gpu_operator"
    ]


CLUSTER: dict[str, Any] = {"cluster.existing": "ml"}
KUEUE: dict[str, Any] = {"queueing.existing_kueue": True, "controllers.kueue.replicas": 3}
VPC: dict[str, Any] = {"network": {"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": ["subnet-0a1b2c3d", "subnet-1a2b3c4d"]}}


@pytest.mark.parametrize(
    "cloud, changes, expected",
    [
        ("eks", CLUSTER, []),
        ("eks", CLUSTER | {"network.nat": "single"}, ["warned: setting-of-existing-part at network.nat"]),
        ("eks", {"network.nat": "single"}, []),
        ("eks", VPC, []),
        ("eks", CLUSTER | VPC, []),
        ("eks", CLUSTER | {"cluster.addons.metrics_server": True}, ["warned: setting-of-existing-part at cluster.addons"]),
        ("eks", CLUSTER | {"cluster.deletion_protection": True}, ["refused: setting-of-existing-part at cluster.deletion_protection"]),
        ("eks", CLUSTER | {"cluster.deletion_protection": False}, ["warned: setting-of-existing-part at cluster.deletion_protection"]),
        ("gke", CLUSTER | {"cluster.deletion_protection": True}, ["refused: setting-of-existing-part at cluster.deletion_protection"]),
        ("gke", CLUSTER | {"cluster.maintenance.hours": 6}, ["warned: setting-of-existing-part at cluster.maintenance"]),
        ("gke", KUEUE, ["warned: setting-of-existing-part at controllers.kueue"]),
        ("eks", KUEUE, ["warned: setting-of-existing-part at controllers.kueue"]),
    ],
)
def test_what_is_written_without_effect_is_told_where_it_stands(cloud: str, changes: dict[str, Any], expected: list[str]) -> None:
    assert told(what_nothing_reads_is_told, cloud, changes) == expected


def test_a_range_beside_a_vpc_that_is_there_is_told_once_whoever_has_made_the_cluster() -> None:
    network = VPC["network"] | {"vpc_cidr": "10.9.0.0/16"}

    for changes, setting in (({}, "network.existing_vpc"), (CLUSTER, "cluster.existing")):
        [problem] = found(what_nothing_reads_is_told, "eks", {**changes, "network": network})
        assert (problem.path, problem.value, problem.refused) == ("network.vpc_cidr", "'10.9.0.0/16'", False)
        assert f"({setting}): nothing reads it" in problem.problem
        assert problem.allowed == f"leave it out and have its owner set it, or remove {setting}"


@pytest.mark.parametrize("each", TABLE, ids=lambda each: f"{each.model.__name__}-{each.setting}")
def test_every_setting_of_the_table_is_one(each: Any) -> None:
    definitions = stack_file_schema()["$defs"]
    for path in (each.setting, *each.warned, *each.refused):
        model: Any = definitions[each.model.__name__]
        for step in path.split("."):
            model = model["properties"][step]
            reference = model.get("$ref") or next((one["$ref"] for one in model.get("anyOf", []) if "$ref" in one), None)
            model = definitions[reference.rpartition("/")[2]] if reference else model


def test_the_ranges_of_a_network_that_is_not_made_are_not_asked_for_room() -> None:
    """Those of the defaults were, and a cluster of many nodes was refused for ranges that it does not have."""
    many: dict[str, Any] = {"pools.0.max_nodes": 5_000}
    for cloud, check in (("eks", eks_ranges_have_room), ("gke", gke_ranges_have_room)):
        assert told(check, cloud, many) != []
        assert told(check, cloud, CLUSTER | many) == []
    assert told(ranges_do_not_overlap, "eks", CLUSTER | {"network.services_cidr": "10.0.0.0/16"}) == []
