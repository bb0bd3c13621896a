"""Limits of a pool that other ceilings make unreachable, as settings, component and policy see them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.unreachable_limits import NodeCeilings, reachable_gpus
from flexspot.capacity.values.verdict import Verdict
from flexspot.components.karpenter.node_pools import check_gpu_pool
from flexspot.policies.core import judge
from flexspot.policies.inventory.reading.source import from_manifest
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

AWS = machines_of(Vendor.AWS)
ONE_GPU = ("g6.xlarge", "g6.4xlarge", "g6.16xlarge")


@pytest.mark.parametrize(
    "machine,ceilings,gpus",
    [
        # A limit of 512 vCPU and 4 TiB allows three nodes of p4d and two of p5.
        ("p4d.24xlarge", NodeCeilings(8, 512, 4096 * 1024), 24),
        ("p5.48xlarge", NodeCeilings(8, 512, 4096 * 1024), 16),
        ("p5.48xlarge", NodeCeilings(8, 191), 0),
        ("p5.48xlarge", NodeCeilings(8), 64),
        ("p5.48xlarge", NodeCeilings(vcpu=Decimal("383.9")), 8),
        ("p5.48xlarge", NodeCeilings(), None),
    ],
)
def test_other_ceilings_end_a_pool_before_its_gpus_do(machine: str, ceilings: NodeCeilings, gpus: int | None) -> None:
    assert reachable_gpus(AWS[machine], 8, ceilings) == gpus


a_few = st.integers(1, 9)


@given(st.lists(st.sampled_from(ONE_GPU), min_size=1, unique=True), a_few, a_few, st.integers(1, 300), st.integers(1, 999))
def test_the_component_and_the_policy_refuse_the_same_pools(names: list[str], gpus: int, nodes: int, vcpu: int, gib: int) -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    arguments: dict[str, Any] = {"max_gpus": gpus, "max_nodes": nodes, "max_vcpu": vcpu, "max_memory_mib": gib * 1024, "machines": names}
    arguments |= {"capacity_types": ["spot"], "weight": None, "taints": [taint], "idle_seconds": 0}
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}
    limits = {"nvidia.com/gpu": str(gpus), "nodes": nodes, "cpu": str(vcpu), "memory": f"{gib}Gi"}
    spec = {"limits": limits, "template": {"spec": {"requirements": [requirement]}}}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "l4"}, "spec": spec}
    rules = [rule for rule in all_rules() if rule.name == "gpu-limit-unreachable"]

    [finding] = judge(from_manifest(pool), rules, DEFAULTS)
    message = ""
    try:
        check_gpu_pool("l4", arguments)  # pyrefly: ignore[bad-argument-type] -- made of what the check reads
    except ValueError as error:
        message = str(error)

    assert message.startswith("gpu-limit-unreachable: ") == (finding.verdict is Verdict.FAIL), (message, finding.message)
    if message:
        assert message.partition("allow only ")[2].partition(";")[0] == finding.message.partition("allow only ")[2]
