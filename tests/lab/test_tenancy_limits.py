"""Refusals in a team's namespace, with the messages of a real API server: quotas, limits, Pod Security."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from tenancy_fixtures import QUOTA, Register, job, pod, refusal, team_on, with_container

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.components.tenancy.priorities import PriorityArgs
    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

ROOT = f"gpu-{uuid.uuid4().hex[:6]}"
SERVICES, TRAINING = f"{ROOT}-services", f"{ROOT}-training"
CLASSES: list[PriorityArgs] = [
    {"name": SERVICES, "value": 1000, "preempts": False, "description": "Waits in no queue."},
    {"name": TRAINING, "value": 100, "preempts": False, "description": "Waits in a queue."},
]


@pytest.fixture
def namespace(cluster: Cluster, register: Register) -> Iterator[str]:
    """Yield a team of two GPUs, one of them for services, at most one Job, and containers of four CPUs."""
    with team_on(cluster, register, CLASSES, unqueued={"gpus": 1, "priority_classes": [SERVICES]}) as name:
        yield name


def used(cluster: Cluster, namespace: str, quota: str) -> dict[str, str]:
    found = cluster.get(QUOTA, quota, namespace)
    assert found is not None
    return found["status"]["used"]


def claim(namespace: str, name: str, size: str) -> KubeObject:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def test_exceeding_a_quota_is_refused_with_the_used_and_allowed_amounts(cluster: Cluster, namespace: str) -> None:
    assert refusal(cluster, pod(namespace, gpus=1)) == refusal(cluster, job(namespace)) == ""

    gpu, exceeded = "requests.nvidia.com/gpu", "exceeded quota: team, requested"
    assert f"{exceeded}: {gpu}=2, used: {gpu}=1, limited: {gpu}=2" in refusal(cluster, pod(namespace, gpus=2))
    # Whether it runs or waits.
    assert f"{exceeded}: count/jobs.batch=1, used: count/jobs.batch=1" in refusal(cluster, job(namespace))
    message = refusal(cluster, claim(namespace, "scratch", "2Ti"))
    assert f"{exceeded}: requests.storage=2Ti, used: requests.storage=0, limited: requests.storage=1Ti" in message
    assert [refusal(cluster, pod(namespace)) for _ in range(4)] == [""] * 4
    assert f"{exceeded}: pods=1, used: pods=5, limited: pods=5" in refusal(cluster, pod(namespace))


def test_services_have_a_separate_quota_and_do_not_take_the_queues_gpus(cluster: Cluster, namespace: str) -> None:
    message = refusal(cluster, pod(namespace, gpus=2, priority=SERVICES))
    assert "exceeded quota: unqueued, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=0" in message

    assert refusal(cluster, pod(namespace, gpus=1, priority=TRAINING)) == ""
    assert used(cluster, namespace, "unqueued") == {"requests.nvidia.com/gpu": "0"}
    assert refusal(cluster, pod(namespace, gpus=1, priority=SERVICES)) == ""
    assert used(cluster, namespace, "unqueued") == {"requests.nvidia.com/gpu": "1"}
    # The next one exceeds the number of services and the team's GPUs: the API server names one of the two quotas.
    assert "exceeded quota: " in refusal(cluster, pod(namespace, gpus=1, priority=SERVICES))


def test_an_oversized_container_is_refused_and_one_without_requests_gets_small_defaults(cluster: Cluster, namespace: str) -> None:
    message = refusal(cluster, with_container(pod(namespace), resources={"limits": {"cpu": "8", "memory": "64Gi"}}))
    assert "maximum cpu usage per Container is 4, but limit is 8" in message
    assert "maximum memory usage per Container is 16Gi, but limit is 64Gi" in message
    # A container that requests much and sets no limit is accepted.
    assert refusal(cluster, with_container(pod(namespace), resources={"requests": {"cpu": "3", "memory": "12Gi"}})) == ""

    # facts/apis.md G15: a LimitRange with a GPU in it gives one to every container.
    each = pod(namespace)
    each["spec"]["initContainers"] = [{**each["spec"]["containers"][0], "name": "prepare"}]
    created = cluster.create(each)
    for container in (*created["spec"]["containers"], *created["spec"]["initContainers"]):
        assert container["resources"] == {"limits": {"cpu": "4", "memory": "16Gi"}, "requests": {"cpu": "250m", "memory": "512Mi"}}
    assert not [each for each in created["spec"]["tolerations"] if "gpu" in each["key"]]


PRIVILEGES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"volumes": [{"name": "host", "hostPath": {"path": "/"}}]}, {}, "restricted volume types"),
    ({"hostNetwork": True}, {}, "host namespaces"),
    ({"securityContext": {"runAsUser": 0}}, {}, "runAsNonRoot != true"),
    (
        {},
        {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]}}},
        "unrestricted capabilities",
    ),
    ({}, {"securityContext": {"capabilities": {"drop": ["ALL"]}}}, "allowPrivilegeEscalation != false"),
]


def test_a_pod_with_privileges_is_refused_with_the_rule_that_it_breaks(cluster: Cluster, namespace: str) -> None:
    for spec, container, message in PRIVILEGES:
        refused = refusal(cluster, with_container(pod(namespace, **spec), **container))

        assert 'violates PodSecurity \\"restricted:v1.35\\"' in refused
        assert message in refused

    # Pods without a named account, and what its token allows: test_default_account_token.py.
    created = cluster.create(pod(namespace, serviceAccountName="workloads"))
    assert not created["spec"].get("volumes"), "without privileges it is taken, without a token of Kubernetes"
