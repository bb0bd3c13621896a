"""Where pods can run, and whether the cloud may take the nodes from under them."""

from __future__ import annotations

from typing import Any

import pytest

from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import Inventory, PodSet
from policies.pods.placement import pool_matches
from policies.pods.scheduling_options import options_of
from policies.values.field import UNKNOWN, Tri

SPOT_POOL: dict[str, Any] = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "spot"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g6.xlarge"]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                ],
                "taints": [{"key": "lifecycle", "value": "spot", "effect": "NoSchedule"}],
            }
        }
    },
}
TOLERATES = [{"key": "lifecycle", "operator": "Equal", "value": "spot"}]


def job(labels: dict[str, str] | None = None, **pod: Any) -> dict[str, Any]:
    containers = [{"name": "train", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    metadata = {"name": "train", "namespace": "team-a", "labels": labels or {}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": {"spec": {"containers": containers, **pod}}},
    }


def queue(**flavor: Any) -> list[dict[str, Any]]:
    kueue = "kueue.x-k8s.io/v1beta2"
    groups: list[dict[str, Any]] = [{"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "gpus", "resources": []}]}]
    return [
        {"apiVersion": kueue, "kind": "LocalQueue", "metadata": {"name": "q", "namespace": "team-a"}, "spec": {"clusterQueue": "c"}},
        {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "c"}, "spec": {"resourceGroups": groups}},
        {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "gpus"}, "spec": flavor},
    ]


QUEUED = {"kueue.x-k8s.io/queue-name": "q"}


def given(*manifests: dict[str, Any], closed: bool = False) -> tuple[PodSet, Inventory]:
    views = tuple(view for each in manifests for view in views_of(from_manifest(each)))
    return next(view for view in views if isinstance(view, PodSet)), Inventory(views, closed)


def affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": [each]} for each in expressions]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    "pod,possible",
    [
        ({"tolerations": TOLERATES}, True),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "lifecycle", "operator": "Exists", "effect": "NoExecute"}]}, False),
        ({"tolerations": [{"key": "lifecycle", "operator": "Equal", "value": UNKNOWN}]}, UNKNOWN),
        ({"tolerations": TOLERATES, "affinity": affinity({"key": "karpenter.sh/nodepool", "operator": "In", "values": ["spot"]})}, True),
        (
            {"tolerations": TOLERATES, "affinity": affinity({"key": "karpenter.sh/nodepool", "operator": "In", "values": [UNKNOWN]})},
            UNKNOWN,
        ),
        ({"tolerations": TOLERATES, "affinity": affinity({"key": UNKNOWN, "operator": "In", "values": ["spot"]})}, UNKNOWN),
        ({"tolerations": TOLERATES, "affinity": affinity({"key": "any", "operator": "DoesNotExist"})}, True),
    ],
)
def test_a_pool_takes_pods_that_select_it_and_tolerate_its_taints(pod: dict[str, Any], possible: Tri) -> None:
    [pool_match] = pool_matches(*given(job(**pod), SPOT_POOL))

    assert pool_match.possible is possible


def test_an_affinity_for_other_nodes_leaves_no_pool() -> None:
    other = affinity({"key": "karpenter.sh/nodepool", "operator": "In", "values": ["other"]})

    assert pool_matches(*given(job(tolerations=TOLERATES, affinity=other), SPOT_POOL)) == []


def test_a_queue_adds_the_labels_and_the_tolerations_of_its_flavor() -> None:
    flavor = queue(nodeLabels={"karpenter.sh/nodepool": "spot"}, tolerations=TOLERATES)

    [pool_match] = pool_matches(*given(job(QUEUED), SPOT_POOL, *flavor))

    assert (pool_match.possible, pool_match.option.via) == (True, "flavor gpus")


@pytest.mark.parametrize(
    "flavor,pod",
    [
        ({"nodeTaints": [{"key": "lifecycle", "value": "spot", "effect": "NoSchedule"}]}, {}),
        ({"nodeLabels": {"karpenter.sh/nodepool": "spot"}}, {"nodeSelector": {"karpenter.sh/nodepool": "other"}}),
    ],
    ids=["a taint that the pods do not tolerate", "a label that contradicts their selector"],
)
def test_kueue_passes_over_a_flavor_that_the_pods_cannot_take(flavor: dict[str, Any], pod: dict[str, Any]) -> None:
    assert options_of(*given(job(QUEUED, **pod), *queue(**flavor))) == []


def required(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    """A node affinity: each of the terms is enough, and of one term all expressions must hold."""
    written = [{"matchExpressions": expressions} for expressions in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


OF_SPOT = {"nodeLabels": {"karpenter.sh/nodepool": "spot", "karpenter.sh/capacity-type": "spot"}}
ELSEWHERE = {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["reserved", "on-demand"]}


@pytest.mark.parametrize(
    "terms,passed_over",
    [
        ([[ELSEWHERE]], True),
        ([[{"key": "zone", "operator": "Exists"}, ELSEWHERE]], True),
        ([[ELSEWHERE], [{**ELSEWHERE, "values": ["spot"]}]], False),
        ([[{**ELSEWHERE, "operator": "NotIn"}]], False),
        ([[{**ELSEWHERE, "key": "zone"}]], False),
        ([[{**ELSEWHERE, "values": UNKNOWN}]], False),
    ],
    ids=["another pool", "among others", "or this one", "not the others", "another label", "not known yet"],
)
def test_kueue_passes_over_a_flavor_whose_nodes_an_affinity_excludes(terms: list[Any], passed_over: Any) -> None:
    options = options_of(*given(job(QUEUED, affinity=required(*terms)), *queue(**OF_SPOT)))

    assert options is not None
    assert (options == []) is passed_over


@pytest.mark.parametrize("manifests", [[job(QUEUED)], [job(QUEUED), *queue()[:2]]], ids=["no queue given", "no flavor given"])
def test_what_a_queue_leads_to_may_not_be_known(manifests: list[dict[str, Any]]) -> None:
    assert options_of(*given(*manifests)) is None


def test_a_deployment_is_not_taken_by_the_queue_called_default() -> None:
    [local, *rest] = queue()
    local["metadata"]["name"] = "default"
    deployment = job() | {"apiVersion": "apps/v1", "kind": "Deployment"}

    assert [option.via for option in options_of(*given(deployment, local, *rest)) or []] == [""]
    assert [option.via for option in options_of(*given(job(), local, *rest)) or []] == ["flavor gpus"]
