"""Requirements and affinities that say what is refused: NotIn holds for nodes without the label as well, DoesNotExist for them alone."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.values.verdict import Verdict
from policies.core import judge_all
from policies.inventory.gpu_machines import gpu_selection
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import GpuPool, Pool
from policies.judging import DEFAULTS
from policies.rules import all_rules
from policies.values.field import UNKNOWN, Field, Tri

CATEGORY, COUNT, MAKER = (f"karpenter.k8s.aws/instance-{name}" for name in ("category", "gpu-count", "gpu-manufacturer"))


def node_pool(*requirements: tuple[str, str, list[Any]], taints: list[dict[str, str]] | None = None, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "requirements": [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements],
                    "taints": taints or [],
                },
            }
        },
    }


@pytest.mark.parametrize(
    "requirement,makes_gpus",
    [
        ((CATEGORY, "NotIn", ["c", "m", "r", "t"]), True),
        ((CATEGORY, "NotIn", ["c", "m", "r", "t", "g"]), True),
        (("eks.amazonaws.com/instance-category", "NotIn", ["a", "c", "m", "r", "t", "i"]), True),
        ((COUNT, "NotIn", ["0"]), True),
        # Nobody is accused who refuses GPUs, or only old or small machines.
        ((CATEGORY, "NotIn", ["c", "m", "r", "t", "g", "gr", "p"]), False),
        ((CATEGORY, "NotIn", ["t"]), False),
        ((CATEGORY, "NotIn", ["g", "p"]), False),
        (("karpenter.k8s.aws/instance-family", "NotIn", ["t2", "t3"]), False),
        (("node.kubernetes.io/instance-type", "NotIn", ["g5.xlarge"]), False),
    ],
)
def test_a_pool_that_refuses_all_ordinary_machines_makes_gpu_nodes(requirement: tuple[str, str, list[Any]], makes_gpus: Tri) -> None:
    [pool] = [view for view in views_of(from_manifest(node_pool(requirement))) if isinstance(view, Pool)]

    assert isinstance(pool, GpuPool) is makes_gpus


def test_a_pool_that_refuses_nvidia_makes_none_of_its_gpu_nodes_whatever_it_names_besides() -> None:
    manifest = node_pool((CATEGORY, "In", ["g"]), (MAKER, "NotIn", ["nvidia"]))

    [pool] = [view for view in views_of(from_manifest(manifest)) if isinstance(view, Pool)]

    assert not isinstance(pool, GpuPool)


def test_what_is_refused_and_not_known_yet_is_undecided() -> None:
    selection = gpu_selection(Field({"key": CATEGORY, "operator": "NotIn", "values": ["c", UNKNOWN]}))

    assert selection.names is UNKNOWN


SPOT = "karpenter.sh/capacity-type"


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
def test_an_affinity_is_held_against_what_the_pools_nodes_are(expression: tuple[Any, str, list[Any]], meets: Tri) -> None:
    manifest = node_pool((CATEGORY, "In", ["g"]), (SPOT, "In", ["spot"]), tier="gold")
    [pool] = [view for view in views_of(from_manifest(manifest)) if isinstance(view, Pool)]
    key, operator, values = expression

    assert pool.offer.meets(Field({"key": key, "operator": operator, "values": values})) is meets


def work(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
                    "containers": [{"name": "main", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
                }
            },
        },
    }


def verdicts(rule: str, *manifests: dict[str, Any]) -> set[Verdict]:
    judged = judge_all([from_manifest(each) for each in manifests], all_rules(), DEFAULTS, closed=True)
    return {finding.verdict for findings in judged for finding in findings if finding.rule == rule and finding.object.kind == "Job"}


def test_work_that_refuses_spot_is_not_told_to_survive_it() -> None:
    pool = node_pool((CATEGORY, "In", ["g"]), (SPOT, "In", ["spot"]))

    assert Verdict.FAIL in verdicts("job-dies-on-interruption", pool, work((CATEGORY, "In", ["g"])))
    assert Verdict.FAIL not in verdicts("job-dies-on-interruption", pool, work((SPOT, "NotIn", ["spot"])))


def test_work_whose_only_pool_it_may_use_has_a_taint_that_it_does_not_tolerate_is_told_of_it() -> None:
    taint = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    pool = node_pool((CATEGORY, "In", ["g"]), (SPOT, "In", ["on-demand"]), taints=taint)
    other = node_pool((CATEGORY, "In", ["g"]), (SPOT, "In", ["spot"]))
    other["metadata"]["name"] = "spot"

    assert verdicts("missing-toleration", pool, other, work((SPOT, "NotIn", ["spot"]))) == {Verdict.FAIL}
    assert verdicts("missing-toleration", pool, other, work((SPOT, "NotIn", ["on-demand"]))) == {Verdict.PASS}
