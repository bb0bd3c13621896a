"""Checks of existing parts: accepted combinations, charts that a plan omits, and settings without effect."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, plan_of, pool, reports

from flexspot.capacity.plan.checks.existing_parts import (
    TABLE,
    a_gpu_operator_is_where_it_works,
    another_karpenter_is_on_its_own_cluster,
    settings_without_effect_are_reported,
)
from flexspot.capacity.plan.checks.places import eks_ranges_have_room, gke_ranges_have_room, ranges_do_not_overlap
from flexspot.capacity.plan.checks.versions import karpenter_works_with_the_version
from flexspot.capacity.settings.stack_schema import stack_file_schema

THEIRS: dict[str, Any] = {"cluster.existing": "ml", "cluster.existing_karpenter": {"node_role": "KarpenterNodeRole-ml"}}
OPERATOR: dict[str, Any] = {"cluster.existing_gpu_operator": True}


def test_an_existing_karpenter_and_gpu_operator_are_accepted_and_not_installed() -> None:
    plan = plan_of("eks", THEIRS | OPERATOR)

    assert plan.warnings == ()
    assert plan.versions.charts.keys() == {"kueue"}
    assert plan_of("eks", {"cluster.existing": "ml"}).versions.charts.keys() == {
        "kueue",
        "karpenter",
        "nvidia-device-plugin",
        "dcgm-exporter",
    }


def test_a_gpu_operator_is_accepted_on_a_new_cluster() -> None:
    assert reports(a_gpu_operator_is_where_it_works, "eks", OPERATOR) == []
    assert plan_of("eks", OPERATOR).versions.charts.keys() == {"kueue", "karpenter"}


@pytest.mark.parametrize("change", [{"cluster.node_repair": True}, {"cluster.nodes": {"kubelet": {"max_pods": 50}}}])
def test_settings_of_node_classes_are_accepted_with_an_existing_karpenter(change: dict[str, Any]) -> None:
    assert reports(another_karpenter_is_on_its_own_cluster, "eks", THEIRS | change) == []


def test_the_version_of_an_existing_karpenter_is_not_checked() -> None:
    assert reports(karpenter_works_with_the_version, "eks", THEIRS | {"cluster.version": "1.25"}) == []


def test_a_gpu_operator_without_nvidia_gpus_gets_a_warning() -> None:
    neuron = {
        "pools": [pool("trn", "trn1.32xlarge", "spot", "neuron")],
        "classes": {"neuron": {**CLASS, "priority_class": "neuron", "priority": 7}},
        "teams": [{"name": "red", "shares": {"trn": 16}}],
    }

    assert reports(a_gpu_operator_is_where_it_works, "eks", OPERATOR | neuron) == [
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
def test_settings_without_effect_are_reported_with_their_path(cloud: str, changes: dict[str, Any], expected: list[str]) -> None:
    assert reports(settings_without_effect_are_reported, cloud, changes) == expected


def test_a_range_of_an_existing_vpc_is_reported_once() -> None:
    network = VPC["network"] | {"vpc_cidr": "10.9.0.0/16"}

    for changes, setting, part in (({}, "network.existing_vpc", "VPC"), (CLUSTER, "cluster.existing", "cluster")):
        [problem] = found(settings_without_effect_are_reported, "eks", {**changes, "network": network})
        assert (problem.path, problem.value, problem.refused) == ("network.vpc_cidr", "'10.9.0.0/16'", False)
        assert problem.problem == f"has no effect: the stack does not create the {part} ({setting})"
        assert problem.allowed == f"leave it out and have the owner of the {part} set it, or remove {setting}"


@pytest.mark.parametrize("each", TABLE, ids=lambda each: f"{each.model.__name__}-{each.setting}")
def test_every_setting_of_the_table_exists(each: Any) -> None:
    definitions = stack_file_schema()["$defs"]
    for path in (each.setting, *each.warned, *each.refused):
        model: Any = definitions[each.model.__name__]
        for step in path.split("."):
            model = model["properties"][step]
            reference = model.get("$ref") or next((one["$ref"] for one in model.get("anyOf", []) if "$ref" in one), None)
            model = definitions[reference.rpartition("/")[2]] if reference else model


def test_ranges_of_an_existing_network_are_not_checked() -> None:
    """The default ranges were checked before, so a cluster of many nodes was refused for ranges that it does not have."""
    many: dict[str, Any] = {"pools.0.max_nodes": 5_000}
    for cloud, check in (("eks", eks_ranges_have_room), ("gke", gke_ranges_have_room)):
        assert reports(check, cloud, many) != []
        assert reports(check, cloud, CLUSTER | many) == []
    assert reports(ranges_do_not_overlap, "eks", CLUSTER | {"network.services_cidr": "10.0.0.0/16"}) == []
