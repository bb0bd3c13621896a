"""Requirements and affinities that exclude values: NotIn also matches nodes without the label, DoesNotExist only those."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Manifest, found, job, node_pool, views

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.inventory.gpu_machines import gpu_selection
from flexspot.policies.inventory.views import GpuPool, Pool
from flexspot.policies.values.field import UNKNOWN, Field, Tri

CATEGORY, COUNT, MAKER = (f"karpenter.k8s.aws/instance-{name}" for name in ("category", "gpu-count", "gpu-manufacturer"))
SPOT = "karpenter.sh/capacity-type"
GPU = (CATEGORY, "In", ["g"])


@pytest.mark.parametrize(
    "requirement,makes_gpus",
    [
        ((CATEGORY, "NotIn", ["c", "m", "r", "t"]), True),
        ((CATEGORY, "NotIn", ["c", "m", "r", "t", "g"]), True),
        (("eks.amazonaws.com/instance-category", "NotIn", ["a", "c", "m", "r", "t", "i"]), True),
        ((COUNT, "NotIn", ["0"]), True),
        # Pools that refuse GPUs, or only old or small machines, are no GPU pools.
        ((CATEGORY, "NotIn", ["c", "m", "r", "t", "g", "gr", "p"]), False),
        ((CATEGORY, "NotIn", ["t"]), False),
        ((CATEGORY, "NotIn", ["g", "p"]), False),
        (("karpenter.k8s.aws/instance-family", "NotIn", ["t2", "t3"]), False),
        (("node.kubernetes.io/instance-type", "NotIn", ["g5.xlarge"]), False),
    ],
)
def test_a_pool_that_refuses_all_ordinary_machines_creates_gpu_nodes(requirement: tuple[str, str, list[Any]], makes_gpus: Tri) -> None:
    [pool] = views(Pool, node_pool(requirement))

    assert isinstance(pool, GpuPool) is makes_gpus


def test_a_pool_that_refuses_nvidia_is_no_gpu_pool_whatever_else_it_requires() -> None:
    [pool] = views(Pool, node_pool(GPU, (MAKER, "NotIn", ["nvidia"])))

    assert not isinstance(pool, GpuPool)


def test_an_unknown_refused_value_leaves_the_selection_undecided() -> None:
    selection = gpu_selection(Field({"key": CATEGORY, "operator": "NotIn", "values": ["c", UNKNOWN]}))

    assert selection.names is UNKNOWN


@pytest.mark.parametrize(
    "expression,meets",
    [
        ((SPOT, "NotIn", ["spot"]), False),
        ((SPOT, "NotIn", ["on-demand"]), True),
        ((SPOT, "DoesNotExist", []), False),
        ((SPOT, "Exists", []), True),
        (("karpenter.sh/nodepool", "NotIn", ["gpu"]), False),
        (("karpenter.sh/nodepool", "NotIn", ["other"]), True),
        (("tier", "NotIn", ["gold"]), False),
        (("tier", "NotIn", ["silver"]), True),
        (("tier", "DoesNotExist", []), False),
        (("team", "NotIn", ["a"]), True),
        (("team", "DoesNotExist", []), True),
        (("team", "Exists", []), False),
        ((SPOT, "NotIn", [UNKNOWN]), UNKNOWN),
        ((UNKNOWN, "NotIn", ["a"]), UNKNOWN),
        (("karpenter.k8s.aws/instance-cpu", "Gt", ["4"]), True),
    ],
)
def test_an_affinity_is_compared_with_the_pools_nodes(expression: tuple[Any, str, list[Any]], meets: Tri) -> None:
    [pool] = views(Pool, node_pool(GPU, (SPOT, "In", ["spot"]), labels={"tier": "gold"}))
    key, operator, values = expression

    assert pool.offer.meets(Field({"key": key, "operator": operator, "values": values})) is meets


def work(key: str, operator: str, values: list[str]) -> Manifest:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return job(spec={"backoffLimit": 0}, restartPolicy="Never", affinity=affinity)


def verdicts(rule: str, *manifests: Manifest) -> set[Verdict]:
    return {finding.verdict for finding in found(*manifests, closed=True, rule=rule) if finding.object.kind == "Job"}


def test_work_that_refuses_spot_does_not_have_to_survive_interruptions() -> None:
    pool = node_pool(GPU, (SPOT, "In", ["spot"]))

    assert Verdict.FAIL in verdicts("job-dies-on-interruption", pool, work(*GPU))
    assert Verdict.FAIL not in verdicts("job-dies-on-interruption", pool, work(SPOT, "NotIn", ["spot"]))


def test_work_must_tolerate_the_taint_of_the_only_pool_that_it_selects() -> None:
    pool = node_pool(GPU, (SPOT, "In", ["on-demand"]), taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    other = node_pool(GPU, (SPOT, "In", ["spot"])) | {"metadata": {"name": "spot"}}

    assert verdicts("missing-toleration", pool, other, work(SPOT, "NotIn", ["spot"])) == {Verdict.FAIL}
    assert verdicts("missing-toleration", pool, other, work(SPOT, "NotIn", ["on-demand"])) == {Verdict.PASS}
