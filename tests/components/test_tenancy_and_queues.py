"""Team, Priorities and Queues: what they register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from components.kueue.queues import Queues, QueuesArgs
from components.tenancy.priorities import Priorities
from components.tenancy.team import Team

Register = Callable[[Callable[[], object]], Any]

LABELS = {"flexspot.dev/owner": "ann"}


def queues_args(**changes: Any) -> QueuesArgs:
    arguments: QueuesArgs = {
        "cohort": "ai-platform",
        "labels": LABELS,
        "flavors": [{"name": "l4-spot", "node_labels": {"karpenter.sh/capacity-type": "spot"}, "tolerations": [{"key": "nvidia.com/gpu"}]}],
        "queues": [
            {
                "name": "red",
                "namespace": "red",
                "local_queue": "default",
                "quotas": [{"flavor": "l4-spot", "gpus": 2, "cpu": "8", "memory": "32Gi"}],
            }
        ],
    }
    arguments.update(changes)  # pyright: ignore[reportCallIssue, reportArgumentType] -- what is wrong on purpose, too
    return arguments


def test_a_teams_quota_is_on_requests_which_kubernetes_counts(register: Register) -> None:
    registered = register(lambda: Team("red", {"namespace": "red", "max_gpus": 6, "labels": LABELS}))

    [quota] = registered.of("kubernetes:core/v1:ResourceQuota")
    assert quota["spec"] == {"hard": {"requests.nvidia.com/gpu": "6"}}
    assert quota["metadata"]["namespace"] == "red"


def test_a_teams_defaults_give_no_container_a_gpu(register: Register) -> None:
    [limits] = register(lambda: Team("red", {"namespace": "red", "max_gpus": 6, "labels": LABELS})).of("kubernetes:core/v1:LimitRange")

    [item] = limits["spec"]["limits"]
    assert item["default"].keys() == item["defaultRequest"].keys() == {"cpu", "memory"}


def test_a_negative_ceiling_is_refused(register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match="Team red: max_gpus is -1"):
            Team("red", {"namespace": "red", "max_gpus": -1, "labels": LABELS})

    assert register(declare).resources == []


def test_a_class_that_preempts_nothing_waits_for_free_room(register: Register) -> None:
    classes = [
        {"name": "gpu-training", "value": 100, "preempts": True, "description": "Trains."},
        {"name": "gpu-best-effort", "value": 1, "preempts": False, "description": "Waits."},
    ]

    registered = register(lambda: Priorities("priorities", {"classes": classes, "labels": LABELS}))  # pyright: ignore[reportArgumentType]

    policies = {
        each["metadata"]["name"]: each["preemptionPolicy"] for each in registered.of("kubernetes:scheduling.k8s.io/v1:PriorityClass")
    }
    assert policies == {"gpu-training": "PreemptLowerPriority", "gpu-best-effort": "Never"}


def test_a_cluster_queue_lists_resources_in_the_order_that_kueue_asks_for(register: Register) -> None:
    [queue] = register(lambda: Queues("queues", queues_args())).of("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue")

    [group] = queue["spec"]["resourceGroups"]
    assert [each["name"] for each in group["flavors"][0]["resources"]] == group["coveredResources"] == ["cpu", "memory", "nvidia.com/gpu"]
    assert [each["nominalQuota"] for each in group["flavors"][0]["resources"]] == ["8", "32Gi", "2"]


def test_a_cluster_queue_takes_from_its_own_namespace_alone_and_can_get_its_share_back(register: Register) -> None:
    [queue] = register(lambda: Queues("queues", queues_args())).of("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue")

    assert queue["spec"]["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "red"}}
    assert queue["spec"]["preemption"] == {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    assert queue["spec"]["cohortName"] == "ai-platform"


def test_a_quota_of_an_unknown_flavor_is_refused(register: Register) -> None:
    def declare() -> None:
        with pytest.raises(ValueError, match="queue red has a quota of flavor l4-spot; flavors are a100"):
            Queues("queues", queues_args(flavors=[{"name": "a100", "node_labels": {}, "tolerations": []}]))

    assert register(declare).resources == []
