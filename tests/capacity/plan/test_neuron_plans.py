"""Pools of AWS's own accelerators: everything that is counted, tainted and asked for is theirs, and nothing of NVIDIA's."""

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
    """GPUs for training, Trainium for a class of its own, Inferentia for services."""
    pools = [
        pool("l4", "g6.xlarge", "spot", 4, "training"),
        pool("trn", "trn1.32xlarge", "spot", 2, "neuron-training"),
        pool("inf", "inf2.xlarge", "spot", 3, "neuron-serving"),
    ]
    teams = [team("red", shares={"l4": 1, "trn": 16}, unqueued={"inf": 2}), team("blue", shares={"l4": 2})]
    return plan_of(local(*pools, classes=CLASSES, teams=teams, **more))


def test_a_neuron_pool_is_known_tainted_and_counted_by_its_own_devices() -> None:
    found = pool_of(both(), "trn")

    assert (found.resource, found.gpus_per_node, found.ceiling.gpus) == (NEURON, 16, 32)
    assert found.taints[0] == Taint(NEURON, "present")
    assert "nvidia.com/gpu" not in {taint.key for taint in found.taints}
    # Karpenter's AWS provider v1.14.1, pkg/providers/instancetype/types.go: no memory of Neuron devices.
    assert {key: value for key, value in found.labels.items() if "instance-" in key} == {
        "karpenter.k8s.aws/instance-accelerator-name": "trainium"
    }


def test_a_flavor_and_the_pods_of_its_class_ask_for_the_devices_of_their_pools() -> None:
    plan = both()

    assert {flavor.name: flavor.resource for flavor in plan.flavors} == {"l4": "nvidia.com/gpu", "trn": NEURON}
    assert route_of(plan, "training").resource == "nvidia.com/gpu"
    assert route_of(plan, "neuron-training").resource == route_of(plan, "neuron-serving").resource == NEURON
    assert Taint(NEURON, "present") in flavor_of(plan, "trn").tolerated


def test_a_namespace_has_a_quota_of_each_kind_and_none_of_the_names_that_no_queue_counts() -> None:
    plan = both()

    red, blue = team_of(plan, "red").hard, team_of(plan, "blue").hard
    assert (red["requests.nvidia.com/gpu"], red[f"requests.{NEURON}"]) == ("4", "34"), "what it can borrow of training, and its devices"
    assert (blue["requests.nvidia.com/gpu"], blue[f"requests.{NEURON}"]) == ("4", "0")
    for hard in (red, blue):
        # The plugin offers the same devices under these names (AWS Neuron documentation, "Neuron device plugin").
        assert hard["requests.aws.amazon.com/neuroncore"] == hard["requests.aws.amazon.com/neurondevice"] == "0"


def test_a_class_with_gpus_in_one_pool_and_neuron_devices_in_another_is_refused_with_what_to_do() -> None:
    pools = [pool("l4", "g6.xlarge", "spot", 4, "training"), pool("trn", "trn1.2xlarge", "spot", 2, "training")]

    [problem] = refusals(local(*pools, teams=[team("red", shares={"l4": 1, "trn": 1})]))

    assert (problem.rule, problem.path) == ("class-with-several-accelerators", "classes.training")
    assert problem.value == "nvidia.com/gpu: l4; aws.amazon.com/neuron: trn"
    assert "add a class for each accelerator" in problem.allowed


@pytest.mark.parametrize("option", [{"mig_partition": "1g.10gb"}, {"gpu_sharing": {"strategy": "mps", "clients_per_gpu": 2}}])
def test_a_neuron_device_is_neither_shared_nor_partitioned(option: dict[str, Any]) -> None:
    [problem] = refusals(eks(pool("trn", "trn1.2xlarge", "spot", 2, "training", **option), teams=[team("red", shares={"trn": 1})]))

    assert problem.path == f"pools.0.{next(iter(option))}"


def test_auto_mode_is_refused_a_pool_whose_devices_it_documents_no_label_of() -> None:
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
