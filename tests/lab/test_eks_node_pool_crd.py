"""A real API server accepts every NodePool that GpuNodePool can create, and adds nothing to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from eks_objects import EC2_NODE_CLASS, NODE_POOL, pool_args, stack_plan
from server_questions import integers

from flexspot.components.eks.addons import EFA_NODE_LABEL
from flexspot.components.karpenter.node_pools import GpuNodePool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

Register = Callable[[Callable[[], object]], Any]

CHOICES: dict[str, dict[str, Any]] = {
    "quiet": {"quiet_hours": [{"schedule": "0 8 * * mon-fri", "hours": 10}, {"schedule": "@daily", "hours": 2}]},
    "expiring": {"expire_after_seconds": 604_800, "termination_grace_seconds": None, "startup_taints": []},
    "valued": {"startup_taints": [{"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoSchedule"}]},
    "block": {"capacity_types": ["reserved"], "node_labels": {"karpenter.k8s.aws/capacity-reservation-type": "capacity-block"}},
    "efa": {"node_labels": dict([EFA_NODE_LABEL])},
    "ordered": {"weight": 100, "capacity_types": ["reserved", "spot", "on-demand"], "consolidates": True},
}
"""Options that the plan's pools do not use, but callers may."""


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[Cluster]:
    """Yield the API server without NodePools before and after."""
    yield cluster
    for each in cluster.list(NODE_POOL):
        cluster.delete(NODE_POOL, each["metadata"]["name"])
    cluster.wait_for(NODE_POOL, lambda found: not found, "the deletion of every NodePool")


def chosen(register: Register) -> dict[str, KubeObject]:
    stack = stack_plan("dev-eks")

    def declare() -> None:
        for name, changes in CHOICES.items():
            arguments = pool_args(stack, stack.plan.pools[0], EC2_NODE_CLASS)
            arguments.update({"pool": name, **changes})  # pyrefly: ignore[no-matching-overload] -- keys of the same type
            GpuNodePool(name, arguments)

    return {each["metadata"]["name"]: integers(each) for each in register(declare).of("kubernetes:karpenter.sh/v1:NodePool")}


def test_the_server_accepts_all_other_options_of_a_pool(clean: Cluster, register: Register) -> None:
    for name, each in chosen(register).items():
        clean.apply(each)

        found = clean.get(NODE_POOL, name)
        assert found is not None
        assert found["spec"] == each["spec"], "what the server fills in would show as a change in every later preview"
