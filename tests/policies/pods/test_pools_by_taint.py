"""A few pools that stand for all give the findings that all would, and what compares objects takes time in proportion to them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from bench_lint import CROSSED, PER_DOUBLING
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


def calls(made: list[dict[str, Any]]) -> int:
    """How often functions are called while all rules judge the objects: the same each time, unlike seconds."""
    sources, counted = [from_manifest(each) for each in made], 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        judge_all(sources, all_rules(), DEFAULTS)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSSED)
def test_what_compares_objects_with_one_another_does_four_times_as_much_for_four_times_as_many(name: str) -> None:
    make, count = CROSSED[name]
    few = count // 5

    assert calls(make(4 * few)) / calls(make(few)) <= PER_DOUBLING**2
