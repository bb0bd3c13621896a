"""Work on Google's TPUs, on real Kueue and the real scheduler: whole hosts, whole slices, with a separate quota in chips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plan_settings import own_class
from queue_fixtures import GKE, QueuePlatform, queues_of
from workload_fixtures import submit

from flexspot.lab.cluster import POD
from flexspot.lab.exercise.play import NODE, running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

TPU = "google.com/tpu"
VOLUME = "v1/PersistentVolume"
HOSTS = 4


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield a complete slice of v5e of four hosts with four chips each, a single host, and a node of one L4. Beta owns no chip."""
    pools = [
        {"name": "slice", "machine": "ct5lp-hightpu-4t", "tpu_topology": "4x4", "max_nodes": 4, "serves": ["jax"]},
        {"name": "host", "machine": "ct5lp-hightpu-4t", "max_nodes": 1, "serves": ["tune"]},
        {"name": "l4", "machine": "g2-standard-8", "max_nodes": 1, "serves": ["training"]},
    ]
    teams = [
        {"name": "alpha", "shares": {"slice": 16, "host": 4}, "borrowing_limits": {"slice": 0, "host": 0}},
        {"name": "beta", "shares": {"l4": 1}},
    ]
    settings: dict[str, Any] = {
        **GKE,
        "pools": [{**each, "capacity_type": "spot"} for each in pools],
        "teams": teams,
        "classes": {"jax": own_class("jax", checkpoint=True), "tune": own_class("tune")},
    }
    with queues_of(cluster, register, {"slice": 4, "host": 1, "l4": 1}, **settings) as deployed:
        cluster.apply(*claim_of_checkpoints(deployed))
        yield deployed
        cluster.delete(VOLUME, deployed.own("checkpoints"))


def claim_of_checkpoints(platform: QueuePlatform) -> tuple[KubeObject, KubeObject]:
    """Return a volume for the claim that the team's checkpointed jobs mount, instead of a bucket's."""
    name, namespace, size = platform.own("checkpoints"), platform.own("alpha"), {"storage": "1Gi"}
    volume = {"storageClassName": "", "accessModes": ["ReadWriteMany"]}
    here = {"capacity": size, "hostPath": {"path": "/checkpoints"}, "claimRef": {"namespace": namespace, "name": "checkpoints"}}
    claim = {"volumeName": name, "resources": {"requests": size}}
    return (
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume | here},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "checkpoints", "namespace": namespace},
            "spec": volume | claim,
        },
    )


def whole_slice(platform: QueuePlatform, job: str) -> list[KubeObject]:
    """Return the four pods of a job, once they run."""

    def look(pods: list[KubeObject]) -> list[KubeObject] | None:
        running = [each for each in running_pods(pods) if each["metadata"]["labels"]["job-name"] == job]
        return running if len(running) == HOSTS else None

    return platform.cluster.wait_for(POD, look, f"the pods of {job} to run", namespace=platform.own("alpha"))


def test_a_job_of_a_slice_takes_each_of_its_hosts_whole_and_a_second_one_waits(platform: QueuePlatform, cluster: Cluster) -> None:
    submit(platform, "checkpointed-job", "gemma", workload_class="jax", pods=4, gpus=4)
    running = whole_slice(platform, "gemma")

    pools = {node["metadata"]["name"]: node["metadata"]["labels"]["cloud.google.com/gke-nodepool"] for node in cluster.list(NODE)}
    assert len({each["spec"]["nodeName"] for each in running}) == len(running) == HOSTS
    assert {pools[each["spec"]["nodeName"]] for each in running} == {platform.own("slice")}
    assert {each["spec"]["containers"][0]["resources"]["limits"][TPU] for each in running} == {"4"}

    submit(platform, "checkpointed-job", "second", workload_class="jax", pods=4, gpus=4)
    platform.wait_for_refusal("alpha", "second", f"{TPU} in flavor {platform.own('slice')}")
    # Used chips do not affect the single host.
    submit(platform, "queued-job", "tuned", workload_class="tune", gpus=4)
    assert {each["metadata"]["labels"]["job-name"] for each in platform.wait_for_running("alpha", "gemma", "tuned")} == {"gemma", "tuned"}

    platform.finish("alpha", "gemma", "tuned")
    whole_slice(platform, "second")
