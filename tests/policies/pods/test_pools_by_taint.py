"""A few pools that stand for all give the findings that all would, and what compares objects takes time in proportion to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from bench_lint import PER_DOUBLING, crossed
from hypothesis import given
from hypothesis import strategies as st

from policies.core import judge_all
from policies.inventory.reading.source import from_manifest
from policies.judging import DEFAULTS
from policies.pods import placement
from policies.rules import all_rules

if TYPE_CHECKING:
    from policies.inventory.views import GpuPool

KEYS = st.sampled_from(["nvidia.com/gpu", "team-a", "team-b", "cloud.google.com/gke-queued", ""])
TAINTS = st.lists(
    st.fixed_dictionaries(
        {"key": KEYS.filter(bool), "value": st.sampled_from(["x", "y"]), "effect": st.sampled_from(["NoSchedule", "PreferNoSchedule"])}
    ),
    max_size=3,
)
TOLERATIONS = st.lists(
    st.fixed_dictionaries({"key": KEYS, "operator": st.sampled_from(["Exists", "Equal"]), "value": st.just("x")}), max_size=3
)
CAPACITY = st.sampled_from(["spot", "on-demand"])


def pool(number: int, taints: list[dict[str, str]], capacity: str) -> dict[str, Any]:
    requirements = [
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["g6"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
    ]
    spec = {"limits": {"nvidia.com/gpu": 8}, "template": {"spec": {"requirements": requirements, "taints": taints}}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": f"p{number}"}, "spec": spec}


def job(tolerations: list[dict[str, str]]) -> dict[str, Any]:
    written = [{key: value for key, value in each.items() if value} for each in tolerations]
    container = {"name": "a", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pod = {"tolerations": written, "terminationGracePeriodSeconds": 110, "containers": [container]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}}


def told(manifests: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    [findings] = judge_all([from_manifest(each) for each in manifests], all_rules(), DEFAULTS)[:1]
    return [(each.rule, each.verdict, each.message) for each in findings]


@given(st.lists(st.tuples(TAINTS, CAPACITY), min_size=1, max_size=6), TOLERATIONS)
def test_a_few_pools_stand_for_all(pools: list[tuple[list[dict[str, str]], str]], tolerations: list[dict[str, str]]) -> None:
    manifests = [job(tolerations), *(pool(number, *each) for number, each in enumerate(pools))]
    by_few = told(manifests)

    class All:
        def __init__(self, pools: tuple[GpuPool, ...]) -> None:
            self._pools = pools

        def those_for(self, _option: object) -> tuple[GpuPool, ...]:
            return self._pools

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(placement, "PoolsByTaint", All)
        assert told(manifests) == by_few


@pytest.mark.thorough
def test_twice_the_objects_take_twice_the_time() -> None:
    for name, measured in crossed().items():
        assert measured[-1][1] / measured[0][1] <= PER_DOUBLING**2, (name, measured)
