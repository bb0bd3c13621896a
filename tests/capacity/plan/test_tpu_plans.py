"""Pools of TPUs on GKE: labels, taints and quotas, shares of whole hosts and slices, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import flavor_of, gke, own_class, plan_of, pool, pool_of, queue_of, refusals, route_of, team, team_of

from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.model import Taint
from flexspot.capacity.plan.needs import project_needs
from flexspot.capacity.settings.platform import GkeSettings
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan

TPU = "google.com/tpu"
ONE_ZONE = {"zones": ["us-central1-a"]}
CLASSES = {"jax": own_class("jax", checkpoint=True), "answers": own_class("answers", queued=False, run_limit_hours=None)}


def settings(*pools: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return settings with those of CLASSES that a pool serves."""
    served = {name: each for name, each in CLASSES.items() if any(name in pool["serves"] for pool in pools)}
    return gke(*pools, **{"classes": served, **more})


def both() -> Plan:
    """Return a plan with GPUs for training, a slice of four hosts for jax, and single hosts for services."""
    pools = [
        pool("l4", "g2-standard-4", "spot", 4, "training"),
        pool("slice", "ct5lp-hightpu-4t", "spot", 4, "jax", tpu_topology="4x4", **ONE_ZONE),
        pool("hosts", "ct6e-standard-8t", "spot", 2, "answers"),
    ]
    teams = [team("red", shares={"l4": 1, "slice": 16}, unqueued={"hosts": 8}), team("blue", shares={"l4": 2, "slice": 0})]
    return plan_of(settings(*pools, teams=teams))


def test_a_tpu_pool_has_labels_of_chip_and_topology_and_gkes_taint() -> None:
    found, hosts = pool_of(both(), "slice"), pool_of(both(), "hosts")

    assert (found.resource, found.gpus_per_node, found.ceiling.gpus, found.slice_nodes) == (TPU, 4, 16, 4)
    assert found.taints[0] == Taint(TPU, "present")
    assert "nvidia.com/gpu" not in {taint.key for taint in found.taints}
    assert found.labels["cloud.google.com/gke-tpu-accelerator"] == "tpu-v5-lite-podslice"
    assert found.labels["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert "cloud.google.com/gke-accelerator" not in found.labels
    # GKE sets the topology of a single host by itself.
    assert (hosts.labels["cloud.google.com/gke-tpu-topology"], hosts.slice_nodes, hosts.whole_nodes) == ("2x4", 0, True)


def test_a_flavor_and_the_pods_of_its_class_request_chips() -> None:
    plan = both()

    assert {flavor.name: flavor.resource for flavor in plan.flavors} == {"l4": "nvidia.com/gpu", "slice": TPU}
    assert route_of(plan, "jax").resource == route_of(plan, "answers").resource == TPU
    assert Taint(TPU, "present") in flavor_of(plan, "slice").tolerated
    labels = flavor_of(plan, "slice").node_labels
    assert (labels["cloud.google.com/gke-tpu-topology"], labels["cloud.google.com/gke-nodepool"]) == ("4x4", "slice")
    assert {quota.flavor: quota.nominal.gpus for quota in queue_of(plan, "red").quotas} == {"l4": 1, "slice": 16}


def test_a_namespace_has_a_separate_quota_of_chips() -> None:
    red, blue = team_of(both(), "red"), team_of(both(), "blue")

    assert (red.hard["requests.nvidia.com/gpu"], red.hard[f"requests.{TPU}"]) == ("4", "24"), "its slice and its unqueued chips"
    assert (blue.hard["requests.nvidia.com/gpu"], blue.hard[f"requests.{TPU}"]) == ("4", "16"), "chips that it may borrow"
    assert (red.most_unqueued(TPU), red.most_unqueued("nvidia.com/gpu")) == (8, 0)


def test_the_project_needs_a_quota_of_chips() -> None:
    read = parse_settings(settings(pool("hosts", "ct6e-standard-8t", "spot", 2, "jax"), teams=[team("red", shares={"hosts": 8})]), "test")
    assert isinstance(read, GkeSettings)

    [quota] = project_needs(build_plan(read), read).quotas

    assert (quota.accelerator, quota.gpus) == ("tpu-v6e-slice", 16)


def refused(machine: str, max_nodes: int, capacity: str = "spot", **more: Any) -> set[tuple[str | None, str]]:
    """Return rules and paths of the refusals of a single pool."""
    options = {**ONE_ZONE, **more}
    classes = {"jax": own_class("jax", capacity=[capacity], checkpoint=True)}
    problems = refusals(
        gke(pool("tpus", machine, capacity, max_nodes, "jax", **options), classes=classes, teams=[team("red", shares={"tpus": 0})])
    )
    return {(each.rule, each.path) for each in problems}


@pytest.mark.parametrize(
    "machine,nodes,options,rule,path",
    [
        ("ct5lp-hightpu-4t", 3, {"tpu_topology": "4x4"}, "slice-not-whole", "max_nodes"),
        ("ct5lp-hightpu-4t", 8, {"tpu_topology": "4x4"}, "slice-not-whole", "max_nodes"),
        ("ct5lp-hightpu-4t", 4, {"tpu_topology": "4x4", "min_nodes": 1}, "slice-not-whole", "min_nodes"),
        ("ct5lp-hightpu-4t", 4, {"tpu_topology": "4x4", "zones": ["us-central1-a", "us-central1-b"]}, "slice-over-zones", "zones"),
        ("ct5lp-hightpu-4t", 4, {"tpu_topology": "4x4", "surge": {"max_surge": 1}}, "surge-of-a-slice", "surge"),
        ("ct5lp-hightpu-4t", 1, {"tpu_topology": "2x2"}, "topology-of-one-host", "tpu_topology"),
        ("ct6e-standard-8t", 2, {"tpu_topology": "4x4"}, "topology-of-one-host", "tpu_topology"),
        ("ct5lp-hightpu-4t", 9, {"tpu_topology": "6x6"}, "unknown-tpu-topology", "tpu_topology"),
        ("ct5p-hightpu-4t", 64, {"tpu_topology": "8x4x8"}, "unknown-tpu-topology", "tpu_topology"),
        ("ct5p-hightpu-4t", 4, {"tpu_topology": "4x4"}, "unknown-tpu-topology", "tpu_topology"),
        ("g2-standard-4", 4, {"tpu_topology": "4x4"}, "topology-without-tpus", "tpu_topology"),
        ("ct6e-standard-4t", 1, {"mig_partition": "1g.10gb"}, "gpu-option-of-tpus", "mig_partition"),
        ("ct6e-standard-4t", 1, {"gpu_driver": "latest"}, "gpu-option-of-tpus", "gpu_driver"),
        ("ct6e-standard-4t", 1, {"compact_placement": True}, "no-compact-placement", "compact_placement"),
        ("ct6e-standard-4t", 1, {"local_ssd_disks": 1}, "too-many-local-disks", "local_ssd_disks"),
        ("ct6e-standard-4t", 1, {"confidential_nodes": "sev"}, "machine-not-confidential", "confidential_nodes"),
        ("ct6e-standard-4t", 1, {"topology": True, "min_nodes": 1}, "topology-without-labels", "topology"),
        ("ct6e-standard-4t", 1, {"network": "gpudirect"}, "gpudirect-without-cards", "network"),
    ],
)
def test_tpu_options_that_gke_refuses_are_refused(machine: str, nodes: int, options: dict[str, Any], rule: str, path: str) -> None:
    assert (rule, f"pools.0.{path}") in refused(machine, nodes, **options)


@pytest.mark.parametrize(
    "capacity,options,rule",
    [
        ("queued", {}, "tpus-not-queued"),
        ("reserved", {"reservation": {"use": "any"}}, "tpu-reservation-without-name"),
    ],
)
def test_capacity_types_without_tpus_are_refused(capacity: str, options: dict[str, Any], rule: str) -> None:
    assert rule in {each for each, _ in refused("ct6e-standard-4t", 1, capacity, **options)}


@pytest.mark.parametrize("field", ["shares", "borrowing_limits", "lending_limits"])
@pytest.mark.parametrize("topology,chips,allowed", [("4x4", 8, "0 or 16"), (None, 6, "4 or 8")])
def test_shares_of_parts_of_a_host_or_slice_are_refused(field: str, topology: str | None, chips: int, allowed: str) -> None:
    tpus = pool("tpus", "ct5lp-hightpu-4t", "spot", 4, "jax", **ONE_ZONE, **({"tpu_topology": topology} if topology else {}))
    owner = team("red", **{"shares": {"tpus": 16}, field: {"tpus": chips}})

    problems = refusals(settings(tpus, teams=[owner]))

    assert [(each.path, each.allowed) for each in problems if each.rule == "part-of-a-node"] == [
        (f"teams.0.{field}.tpus", f"allowed: {allowed}")
    ]


def test_a_slice_cannot_serve_an_unqueued_class() -> None:
    tpus = pool("tpus", "ct5lp-hightpu-4t", "spot", 4, "answers", tpu_topology="4x4", **ONE_ZONE)

    problems = refusals(settings(tpus, teams=[team("red", unqueued={"tpus": 16})]))

    assert {(each.rule, each.path) for each in problems} == {("slice-for-single-pods", "pools.0.serves")}


def test_tpus_are_refused_in_compute_classes_and_on_autopilot() -> None:
    climbing = {"jax": own_class("jax", fallback="stock-out", checkpoint=True)}
    tpus = pool("tpus", "ct6e-standard-4t", "spot", 1, "jax", **ONE_ZONE)
    teams = [team("red", shares={"tpus": 4})]

    assert "tpus-in-compute-class" in {each.rule for each in refusals(settings(tpus, classes=climbing, teams=teams))}
    autopilot = settings(tpus, teams=teams, cluster={"mode": "autopilot"})
    assert "tpus-on-autopilot" in {each.rule for each in refusals(autopilot)}
