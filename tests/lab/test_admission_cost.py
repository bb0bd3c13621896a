"""The API server's cost limit of CEL is enough for the largest objects: it judges them. It would ignore a rule that costs more."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
from admission_fixtures import DryRunCluster, ignored_errors, with_policies_of
from admission_parity import rule_messages
from kubernetes.client.exceptions import ApiException
from program_declarations import as_shipped
from tenancy_fixtures import SAFE_CONTAINER, SAFE_POD

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

TEAM = "team-alpha"
CHECKPOINT = "checkpoint-on-ephemeral-volume"

CONTAINERS, VARIABLES, MOUNTS = 20, 100, 60
"""Numbers per pod, per container and per container: the largest sensible object."""


def saving_pod(*, nested: bool) -> KubeObject:
    """Return a pod in which each variable of each container says that checkpoints are written to a mount. All mounts outlive it.

    The mounts are side by side, or each is below the one before.
    """
    paths = ["/data" + "/part" * (number if nested else 1) + f"-{number}" * (not nested) for number in range(MOUNTS)]
    # A path that the last mount decides: all others are checked before.
    places = [f"{paths[-1 - number % 5]}/run-{number}" for number in range(VARIABLES)]
    each = {
        "image": "registry.example.com/team/trainer:1.2",
        "env": [{"name": f"part{number}.CHECKPOINT_DIR", "value": place} for number, place in enumerate(places)],
        "args": [f"--option-{number}=/value/{number}" for number in range(60)],
        "volumeMounts": [{"name": f"volume-{number}", "mountPath": path} for number, path in enumerate(paths)],
        "securityContext": SAFE_CONTAINER,
    }
    first = {"resources": {"limits": {GPU_RESOURCE: "1"}}}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 15,
        "securityContext": SAFE_POD,
        "priorityClassName": "gpu-training",
        "volumes": [{"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": f"claim-{number}"}} for number in range(MOUNTS)],
        "containers": [{"name": f"container-{number}", **copy.deepcopy(each), **({} if number else first)} for number in range(CONTAINERS)],
    }


def losing_pod(*, nested: bool) -> KubeObject:
    """Return the same, but the last variable of the last container names the last mount, which ends with the pod."""
    pod = saving_pod(nested=nested)
    pod["volumes"][-1] = {"name": f"volume-{MOUNTS - 1}", "emptyDir": {}}
    kept, lost = (mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"][-2:])
    for container in pod["containers"]:
        for number, variable in enumerate(container["env"]):
            variable["value"] = f"{kept}/run-{number}"
    pod["containers"][-1]["env"][-1]["value"] = f"{lost}/run"
    return pod


def job(pod: KubeObject) -> KubeObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "large", "namespace": TEAM, "labels": {"kueue.x-k8s.io/queue-name": "default"}},
        "spec": {"suspend": True, "backoffLimit": 6, "activeDeadlineSeconds": 3600, "template": {"spec": pod}},
    }


@pytest.fixture
def server(cluster: Cluster) -> Iterator[DryRunCluster]:
    """Yield the shipped local stack's policies, including those that protect a guarantee."""
    with with_policies_of(as_shipped("local"), cluster, TEAM, guards=True) as found:
        # Otherwise no error of a policy would be visible: policies with errors are ignored silently.
        assert "apiserver_validating_admission_policy_check_total{" in found.metrics()
        yield found


def test_the_largest_jobs_are_judged_on_creation_and_on_update(server: DryRunCluster) -> None:
    before = ignored_errors(server)

    for nested in (False, True):
        taken = server.ask(job(saving_pod(nested=nested)))
        assert taken.taken is not None, taken.refusal
        assert CHECKPOINT not in taken.warned

        lost = job(losing_pod(nested=nested))
        [said] = rule_messages(lost, [])[CHECKPOINT]
        assert server.ask(lost).denied == {CHECKPOINT: said}

    # Updates are judged like creations, with both objects checked.
    large = server.create(job(saving_pod(nested=False)))
    with pytest.raises(ApiException) as refused:
        server.patch("batch/v1/Job", large["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 10**9}}, TEAM)
    assert "never-ends" in str(refused.value.body)
    server.patch("batch/v1/Job", large["metadata"]["name"], {"spec": {"activeDeadlineSeconds": 1800}}, TEAM)
    server.delete("batch/v1/Job", large["metadata"]["name"], TEAM)
    assert ignored_errors(server) == before
