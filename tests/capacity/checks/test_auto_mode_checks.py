"""What EKS Auto Mode cannot do, or does itself, is refused where it is written, with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest
from resolved_fixtures import CLASS, found, plan_of, pool, told

from flexspot.capacity.catalog.versions import Addon, auto_mode
from flexspot.capacity.plan.checks.managed_nodes import (
    machines_are_launched,
    names_are_not_eks_own,
    node_hours,
    settings_are_ones_that_auto_mode_has,
    volumes_leave_the_nvme_disks,
    work_ends_before_its_node,
    zones_are_names,
)
from flexspot.capacity.plan.checks.system_nodes import controllers_have_room

AUTO: dict[str, Any] = {"cluster.mode": "auto", "cluster.ami": None}
REFUSED = "refused: option-not-in-auto-mode at "
# Beside a mode, the least settings of EKS.
BESIDE: dict[str, Any] = {
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


def test_the_least_settings_are_taken_in_auto_mode_without_a_word() -> None:
    plan = plan_of("eks", AUTO | {"control_plane": {"access": "public_cidrs", "cidrs": ["203.0.113.0/24"]}})

    assert plan.warnings == ()
    assert plan.versions.charts.keys() == {"kueue", "dcgm-exporter"}
    assert plan.versions.system_release is None
    assert set(plan.pools[0].labels) == {
        "eks.amazonaws.com/instance-gpu-name",
        "eks.amazonaws.com/instance-gpu-memory",
        "karpenter.sh/capacity-type",
    }


@pytest.mark.parametrize("setting", BESIDE)
def test_what_aws_does_itself_or_lets_nobody_do_is_refused_in_auto_mode_alone(setting: str) -> None:
    problems = found(settings_are_ones_that_auto_mode_has, "eks", AUTO | {setting: BESIDE[setting]})

    assert [f"refused: {each.rule} at {each.path}" for each in problems if each.refused] == [REFUSED + PLACES.get(setting, setting)]
    assert all(each.allowed for each in problems)
    standard = {key: value for key, value in BESIDE.items() if key == setting}
    assert told(settings_are_ones_that_auto_mode_has, "eks", standard) == []


def test_an_addon_that_is_installed_keeps_its_version_and_one_that_is_not_is_refused() -> None:
    for addon in Addon:
        problems = told(settings_are_ones_that_auto_mode_has, "eks", AUTO | {"cluster.addon_versions": {addon.value: "default"}})
        wanted = [f"{REFUSED}cluster.addon_versions.{addon.value}"] if addon in auto_mode().addons else []
        assert problems == wanted


@pytest.mark.parametrize(
    "name,taken", [("default", True), ("system", True), ("general-purpose", True), ("system-nodes", True), ("gpu", False)]
)
def test_pools_are_not_called_like_what_eks_makes_in_auto_mode(name: str, taken: object) -> None:
    changes = {"pools.0.name": name, "teams.0.shares": {}}

    assert told(names_are_not_eks_own, "eks", AUTO | changes) == (["refused: reserved-name at pools.0.name"] if taken else [])
    assert told(names_are_not_eks_own, "eks", changes) == []


def test_zones_are_written_by_name_because_no_label_of_auto_mode_has_ids() -> None:
    ids = {"zones": ["use1-az1", "use1-az2"]}

    assert told(zones_are_names, "eks", AUTO | ids) == [f"{REFUSED}zones.0", f"{REFUSED}zones.1"]
    assert told(zones_are_names, "eks", ids) == []


@pytest.mark.parametrize(
    "machine,launched",
    [("g6e.xlarge", True), ("p5.48xlarge", True), ("p6-b300.48xlarge", True), ("g7e.2xlarge", True), ("g7.2xlarge", False)],
)
def test_machines_are_those_that_aws_lists_for_auto_mode(machine: str, launched: object) -> None:
    changes = {"pools.0": pool("gpu", machine, "on-demand", "inference"), "teams.0.shares": {}}

    [*problems] = found(machines_are_launched, "eks", AUTO | changes)

    assert [(each.rule, each.path, each.refused) for each in problems] == (
        [] if launched else [("machine-not-in-auto-mode", "pools.0.machine", True)]
    )
    assert told(machines_are_launched, "eks", changes) == []


def test_a_machine_that_the_stack_describes_may_be_newer_than_the_list() -> None:
    described = {
        "name": "g9.xlarge",
        "vcpu": 4,
        "memory_mib": 16384,
        "gpu": {"name": "x1", "count": 1, "memory_mib": 24000, "model": "x1"},
    }
    changes = {"machines": [described], "pools.0": pool("gpu", "g9.xlarge", "on-demand", "inference"), "teams.0.shares": {}}

    assert told(machines_are_launched, "eks", AUTO | changes) == ["warned: machine-not-in-auto-mode at pools.0.machine"]


def test_a_volume_that_would_take_the_place_of_nvme_disks_is_refused() -> None:
    """Auto Mode then leaves the disks to pods as bare devices, and nobody has images and scratch data there."""
    small, large = ({"pools.0": pool("gpu", "g6.xlarge", "spot", "training", boot_disk_gib=gib)} for gib in (200, 240))

    assert told(volumes_leave_the_nvme_disks, "eks", AUTO | small) == []
    assert told(volumes_leave_the_nvme_disks, "eks", AUTO | large) == ["refused: volume-instead-of-nvme at pools.0.boot_disk_gib"]


@pytest.mark.parametrize(
    "limit,checkpoint,verdicts",
    [
        (480, False, []),
        (481, False, ["refused: run-limit-beyond-auto-mode at classes.rendering.run_limit_hours"]),
        (None, False, ["refused: run-limit-beyond-auto-mode at classes.rendering.run_limit_hours"]),
        (None, True, ["warned: run-limit-beyond-auto-mode at classes.rendering.run_limit_hours"]),
    ],
)
def test_a_job_ends_before_aws_ends_its_node(limit: int | None, checkpoint: object, verdicts: list[str]) -> None:
    own = CLASS | {"run_limit_hours": limit, "checkpoint": checkpoint}
    changes = {"classes.rendering": own, "pools.0": pool("gpu", "g6.xlarge", "spot", "rendering"), "teams.0.shares": {"gpu": 1}}

    assert told(work_ends_before_its_node, "eks", AUTO | changes) == verdicts
    assert told(work_ends_before_its_node, "eks", changes) == []
    assert node_hours() == 480


def test_controllers_need_room_below_the_ceiling_alone_and_none_for_what_aws_runs() -> None:
    one: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.xlarge", "min_nodes": 2, "max_nodes": 2}}
    small: dict[str, Any] = {"cluster.system_pool": {"machine": "m6i.large", "min_nodes": 2, "max_nodes": 2}}

    assert told(controllers_have_room, "eks", AUTO | one) == []
    # Two m6i.large have room for all but Karpenter, which is not theirs to run here.
    assert told(controllers_have_room, "eks", small) == ["refused: system-pool-too-small at cluster.system_pool.min_nodes"]
    assert told(controllers_have_room, "eks", AUTO | small) == []
