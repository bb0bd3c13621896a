from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.components.karpenter.node_pools import CpuNodePool, CpuNodePoolArgs

if TYPE_CHECKING:
    from collections.abc import Callable

    from component_types import Refusal, Register


NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"


def args(**changes: Any) -> CpuNodePoolArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "pool": "other-work",
        "labels": {"flexspot.dev/owner": "ann"},
        "max_vcpu": 64,
        "max_memory_gib": 256,
        "node_class": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "other-work"},
    } | changes


@pytest.fixture
def pool(register: Register) -> Callable[..., dict[str, Any]]:
    """Return the spec of the NodePool that CpuNodePool creates from some arguments."""

    def run(**changes: Any) -> dict[str, Any]:
        [made] = register(lambda: CpuNodePool("other", args(**changes))).of(NODE_POOL)
        return made

    return run


def requirements(made: dict[str, Any]) -> dict[str, tuple[str, list[str]]]:
    return {each["key"]: (each["operator"], each["values"]) for each in made["spec"]["template"]["spec"]["requirements"]}


def test_nodes_are_general_machines_without_gpus_and_without_taints_up_to_a_ceiling(pool: Callable[..., dict[str, Any]]) -> None:
    made = pool()

    assert made["spec"]["limits"] == {"cpu": "64", "memory": "256Gi"}
    assert "taints" not in made["spec"]["template"]["spec"]
    wanted = requirements(made)
    operator, families = wanted["karpenter.k8s.aws/instance-family"]
    assert (operator, {each[0] for each in families}) == ("In", {"c", "m", "r"}), "g and p are the machines with GPUs"
    assert wanted["karpenter.k8s.aws/instance-hypervisor"] == ("In", ["nitro"]), "bare metal has no known price"
    assert wanted["karpenter.sh/capacity-type"] == ("In", ["spot", "on-demand"])
    assert "topology.kubernetes.io/zone" not in wanted


def test_only_families_with_known_prices_are_used(pool: Callable[..., dict[str, Any]]) -> None:
    """A month then has a worst case: Karpenter uses a more expensive family when cheaper ones are out of stock."""
    families = requirements(pool())["karpenter.k8s.aws/instance-family"][1]

    assert families == prices_of(Vendor.AWS).family_names
    assert all((each, "us-east-1") in prices_of(Vendor.AWS).families for each in families)
    assert not {"c6in", "m5zn", "r7iz"} & set(families)


@pytest.mark.parametrize("max_vcpu,most", [(64, "33"), (8, "5"), (1, "3")])
def test_no_node_uses_more_than_half_of_the_ceiling(pool: Callable[..., dict[str, Any]], max_vcpu: int, most: str) -> None:
    assert requirements(pool(max_vcpu=max_vcpu))["karpenter.k8s.aws/instance-cpu"] == ("Lt", [most])


def test_zones_capacity_types_and_startup_taints_can_be_set(pool: Callable[..., dict[str, Any]]) -> None:
    taint = {"key": "ebs.csi.aws.com/agent-not-ready", "value": "", "effect": "NoExecute"}

    made = pool(zones=["us-east-1b", "us-east-1a"], capacity_types=["on-demand"], startup_taints=[taint], idle_seconds=300)

    assert requirements(made)["topology.kubernetes.io/zone"] == ("In", ["us-east-1a", "us-east-1b"])
    assert requirements(made)["karpenter.sh/capacity-type"] == ("In", ["on-demand"])
    assert made["spec"]["template"]["spec"]["startupTaints"] == [{"key": taint["key"], "effect": "NoExecute"}]
    assert made["spec"]["disruption"]["consolidateAfter"] == "300s"


@pytest.mark.parametrize("change", [{"max_vcpu": 0}, {"max_memory_gib": -1}])
def test_a_pool_without_a_ceiling_is_refused_before_anything_is_registered(refusal: Refusal, change: dict[str, int]) -> None:
    [(key, value)] = change.items()

    assert f"{key} (is {value}): must be at least 1" in refusal(CpuNodePool, "other", args(**change))
