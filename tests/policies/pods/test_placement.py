"""Pools on which pods can run, and their scheduling options."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Manifest, inventory, job, node_pool, queues

from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.pods.placement import pool_matches
from flexspot.policies.pods.scheduling_options import options_of
from flexspot.policies.values.field import UNKNOWN, Tri

SPOT_POOL = node_pool(
    ("node.kubernetes.io/instance-type", "In", ["g6.xlarge"]),
    ("karpenter.sh/capacity-type", "In", ["spot"]),
    taints=[{"key": "lifecycle", "value": "spot", "effect": "NoSchedule"}],
)
TOLERATES = [{"key": "lifecycle", "operator": "Equal", "value": "spot"}]
QUEUED = {"kueue.x-k8s.io/queue-name": "gpus"}


def given(*manifests: Manifest) -> tuple[PodSet, Inventory]:
    everything = inventory(*manifests)
    return everything.of(PodSet)[0], everything


def affinity(*terms: list[Manifest]) -> Manifest:
    """Return a node affinity. One of the terms must hold, with all its expressions."""
    written = [{"matchExpressions": expressions} for expressions in terms]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": written}}}


def of_pool(values: Any, key: Any = "karpenter.sh/nodepool", operator: str = "In") -> Manifest:
    return affinity([{"key": key, "operator": operator, "values": values}])


@pytest.mark.parametrize(
    "pod,possible",
    [
        ({"tolerations": TOLERATES}, True),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "lifecycle", "operator": "Exists", "effect": "NoExecute"}]}, False),
        ({"tolerations": [{"key": "lifecycle", "operator": "Equal", "value": UNKNOWN}]}, UNKNOWN),
        ({"tolerations": TOLERATES, "affinity": of_pool(["gpu"])}, True),
        ({"tolerations": TOLERATES, "affinity": of_pool([UNKNOWN])}, UNKNOWN),
        ({"tolerations": TOLERATES, "affinity": of_pool(["gpu"], key=UNKNOWN)}, UNKNOWN),
        ({"tolerations": TOLERATES, "affinity": of_pool([], key="any", operator="DoesNotExist")}, True),
    ],
)
def test_a_pool_takes_pods_that_select_it_and_tolerate_its_taints(pod: dict[str, Any], possible: Tri) -> None:
    [pool_match] = pool_matches(*given(job(**pod), SPOT_POOL))

    assert pool_match.possible is possible


def test_an_affinity_for_other_nodes_leaves_no_pool() -> None:
    assert pool_matches(*given(job(tolerations=TOLERATES, affinity=of_pool(["other"])), SPOT_POOL)) == []


def test_a_queue_adds_the_labels_and_the_tolerations_of_its_flavor() -> None:
    flavor = queues("nvidia.com/gpu", nodeLabels={"karpenter.sh/nodepool": "gpu"}, tolerations=TOLERATES)
    [pool_match] = pool_matches(*given(job(labels=QUEUED), SPOT_POOL, *flavor))

    assert (pool_match.possible, pool_match.option.via) == (True, "flavor ladder")


@pytest.mark.parametrize(
    "flavor,pod",
    [
        ({"nodeTaints": [{"key": "lifecycle", "value": "spot", "effect": "NoSchedule"}]}, {}),
        ({"nodeLabels": {"karpenter.sh/nodepool": "spot"}}, {"nodeSelector": {"karpenter.sh/nodepool": "other"}}),
    ],
    ids=["a taint that the pods do not tolerate", "a label that contradicts their selector"],
)
def test_kueue_skips_a_flavor_that_the_pods_cannot_use(flavor: dict[str, Any], pod: dict[str, Any]) -> None:
    assert options_of(*given(job(labels=QUEUED, **pod), *queues("nvidia.com/gpu", **flavor))) == []


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
def test_kueue_skips_a_flavor_whose_nodes_an_affinity_excludes(terms: list[Any], passed_over: Any) -> None:
    options = options_of(*given(job(labels=QUEUED, affinity=affinity(*terms)), *queues("nvidia.com/gpu", **OF_SPOT)))

    assert options is not None
    assert (options == []) is passed_over


@pytest.mark.parametrize("known", [0, 2], ids=["no queue given", "no flavor given"])
def test_options_are_unknown_without_the_queue_or_its_flavors(known: int) -> None:
    assert options_of(*given(job(labels=QUEUED), *queues("nvidia.com/gpu")[:known])) is None


def test_a_deployment_is_not_taken_by_the_queue_called_default() -> None:
    default = queues("nvidia.com/gpu", local="default")
    deployment = job() | {"apiVersion": "apps/v1", "kind": "Deployment"}

    assert [option.via for option in options_of(*given(deployment, *default)) or []] == [""]
    assert [option.via for option in options_of(*given(job(), *default)) or []] == ["flavor ladder"]
