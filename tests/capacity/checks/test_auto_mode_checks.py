"""Checks of EKS Auto Mode: settings of parts that AWS manages or does not offer are refused with a remedy."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, plan_of, pool, reports

from flexspot.capacity.catalog.versions import Addon, auto_mode
from flexspot.capacity.plan.checks.managed_nodes import (
    auto_mode_supports_the_settings,
    machines_are_launched,
    names_are_not_taken_by_eks,
    node_hours,
    volumes_leave_the_nvme_disks,
    work_ends_before_its_node,
    zones_are_names,
)
from flexspot.capacity.plan.checks.system_nodes import controllers_have_room

AUTO: dict[str, Any] = {"cluster.mode": "auto", "cluster.ami": None}
REFUSED = "refused: option-not-in-auto-mode at "
# Settings that Auto Mode refuses, one per parameter.
MANAGED: dict[str, Any] = {
    "cluster.ami": "al2023@v20260903",
    "cluster.images_file": "images.yaml",
    "cluster.nodes": {"kubelet": {"max_pods": 50}},
    "cluster.node_repair": False,
    "cluster.existing": "theirs",
    "cluster.existing_karpenter": {"node_role": "KarpenterNodeRole-theirs"},
    "cluster.existing_gpu_operator": True,
    "cluster.system_pool": {"machine": "m6i.xlarge", "min_nodes": 3, "max_nodes": 4},
    "cluster.addon_versions": {"vpc-cni": "v1.22.4-eksbuild.3"},
    "controllers.karpenter": {"replicas": 1},
    "controllers.load_balancer_controller": {"install": True},
    "controllers.nvidia_device_plugin": {"version": "0.18.0"},
    "controllers.neuron_device_plugin": {"version": "1.9.0"},
    "controllers.efa_device_plugin": {"version": "v0.5.30"},
}
PLACES = {"cluster.system_pool": "cluster.system_pool.min_nodes", "cluster.addon_versions": "cluster.addon_versions.vpc-cni"}


def test_minimal_settings_are_accepted_in_auto_mode_without_a_warning() -> None:
    plan = plan_of("eks", AUTO | {"control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}})

    assert plan.warnings == ()
    assert plan.versions.charts.keys() == {"kueue", "dcgm-exporter"}
    assert plan.versions.system_release is None
    assert set(plan.pools[0].labels) == {
        "eks.amazonaws.com/instance-gpu-name",
        "eks.amazonaws.com/instance-gpu-memory",
        "karpenter.sh/capacity-type",
    }


@pytest.mark.parametrize("setting", MANAGED)
def test_settings_of_managed_parts_are_refused_only_in_auto_mode(setting: str) -> None:
    problems = found(auto_mode_supports_the_settings, "eks", AUTO | {setting: MANAGED[setting]})

    assert [f"refused: {each.rule} at {each.path}" for each in problems if each.refused] == [REFUSED + PLACES.get(setting, setting)]
    assert all(each.allowed for each in problems)
    standard = {key: value for key, value in MANAGED.items() if key == setting}
    assert reports(auto_mode_supports_the_settings, "eks", standard) == []


def test_only_versions_of_installed_addons_are_accepted() -> None:
    for addon in Addon:
        problems = reports(auto_mode_supports_the_settings, "eks", AUTO | {"cluster.addon_versions": {addon.value: "default"}})
        wanted = [f"{REFUSED}cluster.addon_versions.{addon.value}"] if addon in auto_mode().addons else []
        assert problems == wanted


@pytest.mark.parametrize(
    "name,taken", [("default", True), ("system", True), ("general-purpose", True), ("system-nodes", True), ("gpu", False)]
)
def test_pools_must_not_have_names_of_pools_that_eks_creates_in_auto_mode(name: str, taken: object) -> None:
    changes = {"pools.0.name": name, "teams.0.shares": {}}

    assert reports(names_are_not_taken_by_eks, "eks", AUTO | changes) == (["refused: reserved-name at pools.0.name"] if taken else [])
    assert reports(names_are_not_taken_by_eks, "eks", changes) == []


def test_zone_ids_are_refused_in_auto_mode() -> None:
    ids = {"zones": ["use1-az1", "use1-az2"]}

    assert reports(zones_are_names, "eks", AUTO | ids) == [f"{REFUSED}zones.0", f"{REFUSED}zones.1"]
    assert reports(zones_are_names, "eks", ids) == []


@pytest.mark.parametrize(
    "machine,launched",
    [("g6e.xlarge", True), ("p5.48xlarge", True), ("p6-b300.48xlarge", True), ("g7e.2xlarge", True), ("g7.2xlarge", False)],
)
def test_machines_that_aws_does_not_list_for_auto_mode_are_refused(machine: str, launched: object) -> None:
    changes = {"pools.0": pool("gpu", machine, "on-demand", "inference"), "teams.0.shares": {}}

    [*problems] = found(machines_are_launched, "eks", AUTO | changes)

    assert [(each.rule, each.path, each.refused) for each in problems] == (
        [] if launched else [("machine-not-in-auto-mode", "pools.0.machine", True)]
    )
    assert reports(machines_are_launched, "eks", changes) == []


def test_a_described_machine_that_is_not_listed_gets_a_warning() -> None:
    described = {
        "name": "g9.xlarge",
        "vcpu": 4,
        "memory_mib": 16384,
        "gpu": {"name": "x1", "count": 1, "memory_mib": 24000, "model": "x1"},
    }
    changes = {"machines": [described], "pools.0": pool("gpu", "g9.xlarge", "on-demand", "inference"), "teams.0.shares": {}}

    assert reports(machines_are_launched, "eks", AUTO | changes) == ["warned: machine-not-in-auto-mode at pools.0.machine"]


def test_a_volume_larger_than_the_nvme_disks_is_refused() -> None:
    """Auto Mode then leaves the disks to pods as raw devices, without images and scratch data on them."""
    small, large = ({"pools.0": pool("gpu", "g6.xlarge", "spot", "training", boot_disk_gib=gib)} for gib in (200, 240))

    assert reports(volumes_leave_the_nvme_disks, "eks", AUTO | small) == []
    assert reports(volumes_leave_the_nvme_disks, "eks", AUTO | large) == ["refused: volume-instead-of-nvme at pools.0.boot_disk_gib"]


@pytest.mark.parametrize(
    "limit,checkpoint,verdicts",
    [
        (480, False, []),
        (481, False, ["refused: run-limit-beyond-auto-mode at classes.rendering.run_limit_hours"]),
        (None, False, ["refused: run-limit-beyond-auto-mode at classes.rendering.run_limit_hours"]),
        (None, True, ["warned: run-limit-beyond-auto-mode at classes.rendering.run_limit_hours"]),
    ],
)
def test_a_job_that_outlives_its_node_is_refused_without_checkpoints(limit: int | None, checkpoint: object, verdicts: list[str]) -> None:
    own = CLASS | {"run_limit_hours": limit, "checkpoint": checkpoint}
    changes = {"classes.rendering": own, "pools.0": pool("gpu", "g6.xlarge", "spot", "rendering"), "teams.0.shares": {"gpu": 1}}

    assert reports(work_ends_before_its_node, "eks", AUTO | changes) == verdicts
    assert reports(work_ends_before_its_node, "eks", changes) == []
    assert node_hours() == 480


def test_system_nodes_need_no_spare_node_and_no_room_for_karpenter_in_auto_mode() -> None:
    one: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.xlarge", "min_nodes": 2, "max_nodes": 2}}
    small: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 2, "max_nodes": 2}}

    assert reports(controllers_have_room, "eks", AUTO | one) == []
    # Two m6i.large have room for all controllers but Karpenter, which does not run on them in Auto Mode.
    assert reports(controllers_have_room, "eks", small) == ["refused: system-pool-too-small at cluster.system_pool.min_nodes"]
    assert reports(controllers_have_room, "eks", AUTO | small) == []
