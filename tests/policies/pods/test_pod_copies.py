"""How many pods of one template run at once, by what the object itself says."""

from __future__ import annotations

from typing import Any

import pytest

from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import PodSet
from policies.pods.selection import copies_of
from policies.values.field import UNKNOWN

POD: dict[str, Any] = {"template": {"spec": {"containers": [{"name": "work"}]}}}
SENTINEL = "3eeb2bf0-c639-47a8-9e75-3b44932eb421"


def copies(api_version: str, kind: str, spec: dict[str, Any]) -> list[object]:
    source = from_manifest({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
    return [copies_of(view) for view in views_of(source) if isinstance(view, PodSet)]


@pytest.mark.parametrize(
    "spec,expected",
    [
        ({}, 1),
        ({"parallelism": 4}, 4),
        ({"parallelism": "4"}, 4),
        ({"parallelism": 4, "completions": 2}, 2),
        ({"parallelism": 0}, 0),
        ({"parallelism": SENTINEL, "completions": 2}, UNKNOWN),
    ],
)
def test_a_job_runs_as_many_as_it_may_and_no_more_than_it_has_left(spec: dict[str, Any], expected: object) -> None:
    assert copies("batch/v1", "Job", {**POD, **spec}) == [expected]


def test_a_jobset_runs_each_of_its_jobs_as_often_as_it_says() -> None:
    jobs = [
        {"name": "driver", "template": {"spec": POD}},
        {"name": "workers", "replicas": 2, "template": {"spec": {**POD, "parallelism": 8}}},
        {"name": "later", "replicas": SENTINEL, "template": {"spec": POD}},
    ]

    assert copies("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs}) == [1, 16, UNKNOWN]


def test_replicas_that_nobody_wrote_may_be_an_autoscaler_s() -> None:
    assert copies("apps/v1", "Deployment", POD) == [UNKNOWN]
    assert copies("apps/v1", "StatefulSet", {**POD, "replicas": 3}) == [3]


def test_a_group_of_workers_may_grow_to_its_maximum() -> None:
    cluster = {"headGroupSpec": POD, "workerGroupSpecs": [{**POD, "replicas": 1, "maxReplicas": 8}, {**POD, "replicas": 2}]}

    assert copies("ray.io/v1", "RayCluster", cluster) == [1, 8, 2]


def test_a_leader_leads_the_others_of_its_group() -> None:
    group = {"size": 4, "leaderTemplate": POD["template"], "workerTemplate": POD["template"]}

    assert copies("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": group}) == [2, 6]
    assert copies("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {**group, "size": SENTINEL}}) == [UNKNOWN] * 2


def test_roles_are_counted_one_by_one_and_a_pod_is_one() -> None:
    roles = {"Master": POD, "Worker": {**POD, "replicas": 3}}

    assert copies("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": roles}) == [1, 3]
    assert copies("v1", "Pod", POD["template"]["spec"]) == [1]
