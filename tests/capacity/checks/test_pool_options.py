"""Checks of pools' options: requirements of capacity types and clouds, and combinations."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from resolved_fixtures import CLASS, pool, reports
from settings_documents import LEFT_OUT

from flexspot.capacity.plan.checks.places import the_efa_plugins_image_can_be_pulled
from flexspot.capacity.plan.checks.pool_options import (
    a_capacity_block_is_in_one_zone,
    a_class_is_placed_everywhere_or_nowhere,
    a_placement_group_is_in_one_zone,
    blocks_are_of_a_reservation_of_the_project,
    blocks_are_of_machines_with_blocks,
    efa_is_on_machines_that_have_it,
    gke_accepts_the_pools,
    nodes_with_efa_reach_one_another,
    placed_nodes_have_topology_labels,
    placed_pods_come_from_a_queue,
    placed_pods_find_nodes,
    runs_end_before_their_nodes,
    split_gpus_are_for_services,
    the_floor_is_below_the_ceiling,
    user_data_is_of_the_images_form,
    vcpu_and_memory_leave_the_gpus_in_reach,
)
from flexspot.capacity.settings.cluster import EksNodes


@pytest.mark.parametrize("zones", [[], ["us-east-1a", "us-east-1b"]])
def test_a_capacity_block_is_in_one_zone(zones: list[str]) -> None:
    block: dict[str, Any] = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"kind": "capacity-block", "ids": ["cr-0a1b2c3d"]}}

    assert reports(a_capacity_block_is_in_one_zone, "eks", block | {"pools.0.zones": zones}) == [
        "refused: capacity-block-without-zone at pools.0.zones"
    ]
    assert reports(a_capacity_block_is_in_one_zone, "eks", block | {"pools.0.zones": ["us-east-1b"]}) == []
    odcr = block | {"pools.0.zones": zones, "pools.0.reservation": {"kind": "on-demand", "ids": ["cr-0a1b2c3d"]}}
    assert reports(a_capacity_block_is_in_one_zone, "eks", odcr) == []


def test_work_without_checkpoints_must_end_before_its_node() -> None:
    half_a_day: dict[str, Any] = {"pools.0.capacity_type": "flex-start", "pools.0.serves": ["spot-low"], "pools.0.max_run_hours": 12}

    assert reports(runs_end_before_their_nodes, "gke", half_a_day) == ["refused: run-limit-beyond-nodes at pools.0.serves"]
    assert reports(runs_end_before_their_nodes, "gke", half_a_day | {"classes.spot-low.run_limit_hours": 12}) == []


def test_work_with_checkpoints_may_outlive_its_node_with_a_warning() -> None:
    flex: dict[str, Any] = {"pools.0.capacity_type": "flex-start"}

    assert reports(runs_end_before_their_nodes, "gke", flex | {"pools.0.max_run_hours": 24}) == [
        "warned: run-limit-beyond-nodes at pools.0.serves"
    ]
    assert reports(runs_end_before_their_nodes, "gke", flex | {"pools.0.max_run_hours": 168}) == []


def test_work_without_a_run_limit_is_refused_on_flex_start() -> None:
    flex: dict[str, Any] = {"pools.0.capacity_type": "flex-start", "classes.training.checkpoint": False}

    assert reports(runs_end_before_their_nodes, "gke", flex | {"classes.training.run_limit_hours": None}) == [
        "refused: run-limit-beyond-nodes at pools.0.serves"
    ]
    assert reports(runs_end_before_their_nodes, "gke", flex) == [], "the seven days of training are those of flex-start"


P4D: dict[str, Any] = {"pools.0.machine": "p4d.24xlarge", "pools.0.max_nodes": LEFT_OUT}
"""Eight GPUs a node, 96 vCPU, 1152 GiB."""


def test_vcpu_and_memory_ceilings_below_the_gpu_ceiling_are_refused() -> None:
    gpus = P4D | {"pools.0.max_gpus": 16}

    for cap, least in {"max_vcpu": 2 * 96, "max_memory_gib": 2 * 1152}.items():
        assert reports(vcpu_and_memory_leave_the_gpus_in_reach, "eks", gpus | {f"pools.0.{cap}": least - 1}) == [
            "refused: gpu-limit-unreachable at pools.0"
        ]
        assert reports(vcpu_and_memory_leave_the_gpus_in_reach, "eks", gpus | {f"pools.0.{cap}": least}) == []


def test_the_vcpu_ceiling_counts_for_every_machine_of_a_pool() -> None:
    larger: dict[str, Any] = {"pools.0.alternatives": ["g6.2xlarge"], "pools.0.max_vcpu": 4 * 4}

    assert reports(vcpu_and_memory_leave_the_gpus_in_reach, "eks", larger) == ["refused: gpu-limit-unreachable at pools.0"]
    assert reports(vcpu_and_memory_leave_the_gpus_in_reach, "eks", larger | {"pools.0.max_vcpu": 4 * 8}) == []


def test_min_nodes_above_the_ceiling_is_refused() -> None:
    assert reports(the_floor_is_below_the_ceiling, "gke", {"pools.0.min_nodes": 5}) == ["refused: floor-above-ceiling at pools.0.min_nodes"]
    assert reports(the_floor_is_below_the_ceiling, "gke", {"pools.0.min_nodes": 4}) == []


def test_a_gpu_ceiling_is_limited_to_the_maximum_of_nodes() -> None:
    assert reports(the_floor_is_below_the_ceiling, "eks", P4D | {"pools.0.max_gpus": 5001 * 8}) == [
        "refused: ceiling-above-any-cluster at pools.0.max_gpus"
    ]
    assert reports(the_floor_is_below_the_ceiling, "eks", P4D | {"pools.0.max_gpus": 5000 * 8}) == []


def test_the_machines_of_an_efa_pool_need_the_same_network_cards() -> None:
    mixed: dict[str, Any] = {"pools.0.efa": True, "pools.0.machine": "g6.8xlarge", "pools.0.alternatives": ["g6.16xlarge", "g6.4xlarge"]}

    assert reports(efa_is_on_machines_that_have_it, "eks", mixed) == ["refused: mixed-efa-in-pool at pools.0.alternatives.1"]
    assert reports(efa_is_on_machines_that_have_it, "eks", mixed | {"pools.0.efa": False}) == []


def test_efa_nodes_in_several_zones_or_far_apart_get_a_warning() -> None:
    efa: dict[str, Any] = {"pools.0.efa": True, "pools.0.machine": "g6.8xlarge"}
    one_zone = efa | {"pools.0.zones": ["us-east-1a"]}
    reserved = {"pools.0.capacity_type": "reserved", "pools.0.reservation": {"tags": {"for": "training"}}}

    assert reports(nodes_with_efa_reach_one_another, "eks", efa) == ["warned: efa-over-zones at pools.0.efa"]
    assert reports(nodes_with_efa_reach_one_another, "eks", one_zone) == ["warned: efa-not-placed at pools.0.efa"]
    assert reports(nodes_with_efa_reach_one_another, "eks", one_zone | {"pools.0.compact_placement": True}) == []
    assert reports(nodes_with_efa_reach_one_another, "eks", one_zone | reserved) == []
    assert reports(nodes_with_efa_reach_one_another, "eks") == []


def test_a_placement_group_is_in_one_zone() -> None:
    compact: dict[str, Any] = {"pools.0.compact_placement": True}

    assert reports(a_placement_group_is_in_one_zone, "eks", compact) == ["refused: compact-over-zones at pools.0.compact_placement"]
    assert reports(a_placement_group_is_in_one_zone, "eks", compact | {"pools.0.zones": ["us-east-1a"]}) == []
    reserved = {"pools.0.capacity_type": "reserved", "pools.0.zones": ["us-east-1a"], "pools.0.reservation": {"tags": {"for": "training"}}}
    assert reports(a_placement_group_is_in_one_zone, "eks", compact | reserved) == [
        "refused: compact-reservation at pools.0.compact_placement"
    ]


@pytest.mark.parametrize(
    "nodes,ami,verdicts",
    [
        (
            {"user_data": "[settings]\nmotd = 'ours'\n"},
            "al2023@v20260903",
            ["refused: user-data-of-another-form at cluster.nodes.user_data"],
        ),
        ({"user_data": "[settings]\nmotd = 'ours'\n"}, "bottlerocket@1.65.0", []),
        ({"fast_image_pull": True}, "al2023@v20260903", []),
        ({"fast_image_pull": True}, "bottlerocket@1.65.0", ["refused: al2023-alone at cluster.nodes.fast_image_pull"]),
        ({"kubelet": {"pods_per_core": 10}}, "bottlerocket@1.65.0", ["refused: al2023-alone at cluster.nodes.kubelet.pods_per_core"]),
    ],
)
def test_boot_settings_that_the_image_does_not_read_are_refused(nodes: dict[str, Any], ami: str, verdicts: list[str]) -> None:
    assert reports(user_data_is_of_the_images_form, "eks", {"cluster.nodes": nodes, "cluster.ami": ami}) == verdicts


def test_fast_image_pull_is_a_nodeadm_switch_without_user_data() -> None:
    [boot_config] = [yaml.safe_load(EksNodes(fast_image_pull=True).boot_data or "")]

    assert boot_config == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {"featureGates": {"FastImagePull": True}},
    }
    with pytest.raises(ValueError, match="fast_image_pull cannot be combined with user_data"):
        EksNodes(fast_image_pull=True, user_data="#!/bin/sh\n")


def test_the_efa_plugins_image_is_required_outside_partition_aws() -> None:
    check, image = the_efa_plugins_image_can_be_pulled, {"controllers.efa_device_plugin": {"image": "registry.example.com/mirror/efa"}}
    efa: dict[str, Any] = {"pools.0.efa": True, "pools.0.machine": "g6.8xlarge"}
    abroad: dict[str, Any] = efa | {"region": "cn-north-1", "zones": ["cn-north-1a", "cn-north-1b"]}

    assert reports(check, "eks", efa) == []
    assert reports(check, "eks", abroad) == ["refused: efa-image-of-another-partition at controllers.efa_device_plugin.image"]
    assert reports(check, "eks", abroad | image) == []
    assert reports(check, "eks", image) == ["warned: efa-image-not-used at controllers.efa_device_plugin.image"]


SERVICE: dict[str, Any] = {"classes.rendering": CLASS | {"queued": False}, "pools.0.serves": ["rendering"], "teams.0.shares": {}}


@pytest.mark.parametrize(
    "field,written", [("gpu_sharing", {"strategy": "time-sharing", "clients_per_gpu": 4}), ("mig_partition", "1g.5gb")]
)
def test_split_gpus_are_refused_in_queued_pools(field: str, written: object) -> None:
    split = {f"pools.0.{field}": written}

    assert reports(split_gpus_are_for_services, "gke", split) == [f"refused: split-gpus-in-a-queue at pools.0.{field}"]
    assert reports(split_gpus_are_for_services, "gke", SERVICE | split) == []
    assert reports(split_gpus_are_for_services, "gke") == []


FLEX: dict[str, Any] = {"pools.0.capacity_type": "flex-start"}
QUEUED: dict[str, Any] = {"pools.0.capacity_type": "queued"}
RESERVED: dict[str, Any] = {"pools.0.capacity_type": "reserved"}
A100: dict[str, Any] = {"pools.0.machine": "a2-highgpu-1g"}
N1: dict[str, Any] = {"pools.0.machine": "n1-standard-4", "pools.0.gpus_per_node": 1}
PARTS: dict[str, Any] = {"pools.0.mig_partition": "1g.5gb"}


@pytest.mark.parametrize(
    "changes,rule,option",
    [
        (QUEUED | {"pools.0.machine": "a3-edgegpu-8g"}, "machine-not-in-dws", "machine"),
        (FLEX | {"pools.0.surge": {"max_surge": 1}}, "upgrades-of-dws-pool", "surge"),
        (FLEX | {"pools.0.hold_upgrades": True}, "upgrades-of-dws-pool", "hold_upgrades"),
        (FLEX | {"pools.0.compact_placement": True}, "no-compact-placement", "compact_placement"),
        (N1 | {"pools.0.compact_placement": True}, "no-compact-placement", "compact_placement"),
        (A100 | {"pools.0.compact_placement": True}, "compact-over-zones", "compact_placement"),
        ({"pools.0.reservation": {"name": "acme-l4"}}, "reservation-not-used", "reservation"),
        (RESERVED | {"pools.0.reservation": {"use": "any", "project": "acme-shared"}}, "reservation-not-used", "reservation.project"),
        ({"pools.0.machine": "g2-standard-24", "pools.0.local_ssd_disks": 1}, "number-of-local-disks", "local_ssd_disks"),
        ({"pools.0.machine": "a2-highgpu-2g", "pools.0.local_ssd_disks": 3}, "number-of-local-disks", "local_ssd_disks"),
        ({"pools.0.local_ssd_disks": 32}, "too-many-local-disks", "local_ssd_disks"),
        ({"pools.0.machine": "a3-highgpu-2g", "pools.0.confidential_nodes": "tdx"}, "machine-not-confidential", "confidential_nodes"),
        (A100 | {"pools.0.mig_partition": "1g.80gb"}, "gpu-without-partitions", "mig_partition"),
        (
            A100 | PARTS | {"pools.0.gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}},
            "partitions-shared-by-mps",
            "gpu_sharing.strategy",
        ),
    ],
)
def test_options_that_gke_refuses_are_refused_with_their_path(changes: dict[str, Any], rule: str, option: str) -> None:
    """Refusals in addition to those of wrong_settings.yaml."""
    assert reports(gke_accepts_the_pools, "gke", changes) == [f"refused: {rule} at pools.0.{option}"]


@pytest.mark.parametrize(
    "changes",
    [
        FLEX | {"pools.0.max_run_hours": 168},
        QUEUED | {"pools.0.machine": "a3-highgpu-8g"},
        {"pools.0.machine": "a3-edgegpu-8g"},
        {"pools.0.shutdown_grace_seconds": 120},
        {"pools.0.min_nodes": 1},
        RESERVED | {"pools.0.reservation": {"name": "acme-l4", "project": "acme-shared"}},
        A100 | PARTS | {"pools.0.compact_placement": True, "pools.0.zones": ["us-central1-a"]},
        {"pools.0.local_ssd_disks": 1},
        {"pools.0.machine": "a3-highgpu-1g", "pools.0.confidential_nodes": "tdx"},
        {"pools.0.machine": "a2-highgpu-2g", "pools.0.local_ssd_disks": 4},
    ],
)
def test_options_that_gke_accepts_are_accepted(changes: dict[str, Any]) -> None:
    assert reports(gke_accepts_the_pools, "gke", changes) == []


PROJECTS: dict[str, dict[str, str]] = {"theirs": {"project": "shared"}, "ours": {"project": "acme-ai-test"}, "not said": {}}
H200: dict[str, Any] = RESERVED | {"pools.0.machine": "a3-ultragpu-8g", "pools.0.zones": []}


def test_a_block_of_machines_without_blocks_gets_a_warning() -> None:
    block = {"pools.0.reservation": {"name": "acme", "block": "acme-block-1"}}

    assert reports(blocks_are_of_machines_with_blocks, "gke", H200 | block) == []
    assert reports(blocks_are_of_machines_with_blocks, "gke", RESERVED | block) == [
        "warned: block-not-documented at pools.0.reservation.block"
    ]
    assert reports(blocks_are_of_machines_with_blocks, "gke", RESERVED | {"pools.0.reservation": {"name": "acme"}}) == []


def test_a_block_of_another_projects_reservation_gets_a_warning() -> None:
    block = {"name": "acme-h200", "block": "one"}
    pools = {whose: H200 | {"pools.0.reservation": block | project} for whose, project in PROJECTS.items()}

    assert reports(blocks_are_of_a_reservation_of_the_project, "gke", pools["theirs"]) == [
        "warned: block-of-another-project at pools.0.reservation.block"
    ]
    assert reports(blocks_are_of_a_reservation_of_the_project, "gke", pools["ours"]) == []
    assert reports(blocks_are_of_a_reservation_of_the_project, "gke", pools["not said"]) == []


def test_eks_pools_are_not_checked_by_gkes_rules() -> None:
    assert reports(gke_accepts_the_pools, "eks") == []


BOUGHT: dict[str, Any] = {"reservation": {"name": "bought"}}


def pools(*written: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"pools": list(written), "teams.0.shares": {}, **more}


def placed(name: str, machine: str, capacity_type: str, *serves: str, **others: Any) -> dict[str, Any]:
    return pool(name, machine, capacity_type, *serves, topology=True, **others)


@pytest.mark.parametrize("machine", ["a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g"])
def test_machines_for_large_training_have_topology_labels(machine: str) -> None:
    reserved = pools(placed("p", machine, "reserved", "training", **BOUGHT))

    assert reports(placed_nodes_have_topology_labels, "gke", reserved) == []


def test_spot_nodes_have_topology_labels_only_with_compact_placement() -> None:
    spot = placed("p", "a3-highgpu-8g", "spot", "training")

    assert reports(placed_nodes_have_topology_labels, "gke", pools(spot)) == ["refused: topology-without-labels at pools.0.topology"]
    assert reports(placed_nodes_have_topology_labels, "gke", pools(spot | {"compact_placement": True, "zones": ["us-central1-a"]})) == []


@pytest.mark.parametrize("nodes,found", [(0, 1), (3, 1), (4, 0)])
def test_topology_needs_nodes_that_always_exist(nodes: int, found: int) -> None:
    reserved = placed("p", "a3-highgpu-8g", "reserved", "training", min_nodes=nodes, **BOUGHT)

    assert reports(placed_pods_find_nodes, "gke", pools(reserved)) == ["refused: topology-without-nodes at pools.0.topology"] * found


def test_topology_accepts_queued_nodes_but_not_flex_start() -> None:
    assert reports(placed_pods_find_nodes, "gke", pools(placed("p", "a3-highgpu-8g", "queued", "training"))) == []
    assert len(reports(placed_pods_find_nodes, "gke", pools(placed("p", "a3-highgpu-8g", "flex-start", "training")))) == 1


def test_services_and_compute_classes_have_no_topology() -> None:
    service = placed("p", "a3-highgpu-8g", "reserved", "inference", **BOUGHT)
    compute_class = {"classes": {"climb": CLASS | {"fallback": "stock-out"}}}
    refused = ["refused: topology-without-queue at pools.0.topology"]

    assert reports(placed_pods_come_from_a_queue, "gke", pools(service)) == refused
    assert reports(placed_pods_come_from_a_queue, "gke", pools(placed("p", "a3-highgpu-8g", "spot", "climb"), **compute_class)) == refused
    assert reports(placed_pods_come_from_a_queue, "gke", pools(placed("p", "a3-highgpu-8g", "spot", "training"))) == []


def test_pools_without_topology_and_other_platforms_have_no_problems() -> None:
    checks = (
        placed_nodes_have_topology_labels,
        placed_pods_find_nodes,
        placed_pods_come_from_a_queue,
        a_class_is_placed_everywhere_or_nowhere,
    )

    assert [reports(check, cloud) for check in checks for cloud in ("local", "gke", "eks")] == [[]] * 12
