"""Pools of AWS's accelerators: counts, taints and requests use Neuron devices, and none of NVIDIA's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import eks, flavor_of, local, own_class, plan_of, pool, pool_of, queue_of, refusals, route_of, team, team_of

from flexspot.capacity.plan.model import Taint

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan

NEURON = "aws.amazon.com/neuron"
CLASSES = {
    "neuron-training": own_class("neuron-training"),
    "neuron-serving": own_class("neuron-serving", queued=False, run_limit_hours=None),
}


def both(**more: Any) -> Plan:
    """Return a plan with GPUs for training, Trainium for a separate class, and Inferentia for services."""
    pools = [
        pool("l4", "g6.xlarge", "spot", 4, "training"),
        pool("trn", "trn1.32xlarge", "spot", 2, "neuron-training"),
        pool("inf", "inf2.xlarge", "spot", 3, "neuron-serving"),
    ]
    teams = [team("red", shares={"l4": 1, "trn": 16}, unqueued={"inf": 2}), team("blue", shares={"l4": 2})]
    return plan_of(local(*pools, classes=CLASSES, teams=teams, **more))


def test_a_neuron_pool_has_labels_taints_and_counts_of_its_devices() -> None:
    found = pool_of(both(), "trn")

    assert (found.resource, found.gpus_per_node, found.ceiling.gpus) == (NEURON, 16, 32)
    assert found.taints[0] == Taint(NEURON, "present")
    assert "nvidia.com/gpu" not in {taint.key for taint in found.taints}
    # Karpenter's AWS provider v1.14.1, pkg/providers/instancetype/types.go: no memory of Neuron devices.
    assert {key: value for key, value in found.labels.items() if "instance-" in key} == {
        "karpenter.k8s.aws/instance-accelerator-name": "trainium"
    }


def test_a_flavor_and_the_pods_of_its_class_request_the_devices_of_their_pools() -> None:
    plan = both()

    assert {flavor.name: flavor.resource for flavor in plan.flavors} == {"l4": "nvidia.com/gpu", "trn": NEURON}
    assert route_of(plan, "training").resource == "nvidia.com/gpu"
    assert route_of(plan, "neuron-training").resource == route_of(plan, "neuron-serving").resource == NEURON
    assert Taint(NEURON, "present") in flavor_of(plan, "trn").tolerated


def test_a_namespace_has_a_quota_of_each_kind_of_device_and_zero_of_uncounted_names() -> None:
    plan = both()

    red, blue = team_of(plan, "red").hard, team_of(plan, "blue").hard
    assert (red["requests.nvidia.com/gpu"], red[f"requests.{NEURON}"]) == ("4", "34"), "what it can borrow of training, and its devices"
    assert (blue["requests.nvidia.com/gpu"], blue[f"requests.{NEURON}"]) == ("4", "0")
    for hard in (red, blue):
        # The plugin offers the same devices under these names (AWS Neuron documentation, "Neuron device plugin").
        assert hard["requests.aws.amazon.com/neuroncore"] == hard["requests.aws.amazon.com/neurondevice"] == "0"


def test_a_class_with_different_accelerators_is_refused_with_a_remedy() -> None:
    pools = [pool("l4", "g6.xlarge", "spot", 4, "training"), pool("trn", "trn1.2xlarge", "spot", 2, "training")]

    [problem] = refusals(local(*pools, teams=[team("red", shares={"l4": 1, "trn": 1})]))

    assert (problem.rule, problem.path) == ("class-with-several-accelerators", "classes.training")
    assert problem.value == "nvidia.com/gpu: l4; aws.amazon.com/neuron: trn"
    assert "add a class for each accelerator" in problem.allowed


@pytest.mark.parametrize("option", [{"mig_partition": "1g.10gb"}, {"gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}}])
def test_sharing_and_partitioning_neuron_devices_is_refused(option: dict[str, Any]) -> None:
    [problem] = refusals(eks(pool("trn", "trn1.2xlarge", "spot", 2, "training", **option), teams=[team("red", shares={"trn": 1})]))

    assert problem.path == f"pools.0.{next(iter(option))}"


def test_auto_mode_refuses_a_pool_of_neuron_devices() -> None:
    cluster = {"version": "1.35", "mode": "auto"}
    trn = pool("trn", "trn1.2xlarge", "spot", 2, "training")

    problems = refusals(eks(trn, cluster=cluster, teams=[team("red", shares={"trn": 1})]))

    assert ("accelerator-not-in-auto-mode", "pools.0.machine") in {(each.rule, each.path) for each in problems}


def test_a_described_machine_of_a_neuron_family_has_neuron_devices() -> None:
    machine = {
        "name": "trn3.48xlarge",
        "vcpu": 192,
        "memory_mib": 2097152,
        "gpu": {"name": "trainium3", "count": 16, "memory_mib": 147456},
    }
    plan = plan_of(eks(pool("trn", "trn3.48xlarge", "spot", 1, "training"), machines=[machine], teams=[team("red", shares={"trn": 16})]))

    assert pool_of(plan, "trn").resource == NEURON
    assert queue_of(plan, "red").quotas[0].nominal.gpus == 16
