"""Work without GPUs: its queue and its nodes, on real Kueue and the real scheduler, while GPUs are idle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from queue_fixtures import SHARED_NODE, QueuePlatform, condition_of, pools_of, queues_of, why_waiting
from workload_fixtures import submit

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, KARPENTER_POOL_LABEL
from flexspot.capacity.plan.cpu_work import OTHER_WORK
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import WORKLOAD, running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

VCPU_OF_NODE = 8


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield a node of four GPUs and one of eight vCPU without GPUs. Alpha owns 8 vCPU, of which 2 are for launchers, beta 4."""
    alpha = {"name": "alpha", "shares": {"l4-spot": 2}, "cpu_work": {"vcpu": 8, "memory_gib": 32}}
    beta = {"name": "beta", "shares": {"l4-spot": 2}, "cpu_work": {"vcpu": 4, "memory_gib": 16}}
    room = {"max_vcpu": 16, "max_memory_gib": 64}
    with queues_of(cluster, register, {"l4-spot": 1}, pools=[SHARED_NODE], teams=[alpha, beta], other_work=room) as deployed:
        cluster.create(cpu_node(deployed))
        yield deployed


def cpu_node(platform: QueuePlatform) -> KubeObject:
    """Return a fake node like those of Karpenter's pool without GPUs."""
    name = f"node-{platform.suffix}-cpu-{uuid4().hex[:6]}"
    amounts, fake = {"cpu": str(VCPU_OF_NODE), "memory": "64Gi", "pods": "110"}, {"kwok.x-k8s.io/node": "fake"}
    labels = {**fake, "kubernetes.io/hostname": name, KARPENTER_POOL_LABEL: OTHER_WORK}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels, "annotations": fake}, "status": status}


def unschedulable(platform: QueuePlatform, team: str) -> int:
    """Return the number of a team's pods that fit on no node, as soon as there are any."""

    def look(pods: list[KubeObject]) -> int:
        said = [each for pod in pods for each in pod.get("status", {}).get("conditions") or [] if each["type"] == "PodScheduled"]
        return sum(each["status"] == "False" and each["reason"] == "Unschedulable" for each in said)

    return platform.cluster.wait_for(POD, look, "a pod without a node", namespace=platform.own(team))


def prepare(platform: QueuePlatform, name: str, team: str = "alpha", **fields: Any) -> None:
    submit(platform, "queued-job", name, team=team, gpus=0, **fields)


def test_work_without_gpus_runs_on_nodes_without_any_and_waits_when_they_are_full_while_gpus_are_idle(
    platform: QueuePlatform, cluster: Cluster
) -> None:
    prepare(platform, "prepare", cpu="5")
    [pod] = platform.wait_for_running("alpha", "prepare")
    assert pools_of(cluster, [pod]) == {OTHER_WORK}
    assert not [each for each in pod["spec"]["tolerations"] if each.get("key", "").startswith("nvidia.com")]

    # Within quota, but without a node: 5 of 8 vCPU are used. Nothing of it goes to the idle GPU node with its 96.
    prepare(platform, "no-node", team="beta", cpu="4")
    platform.wait_for_workload("beta", "no-node", lambda each: condition(each, "Admitted"), "admitted")
    assert unschedulable(platform, "beta") == 1
    assert not running_pods(cluster.list(POD, platform.own("beta")))

    # Above quota, in its own queue and in what others lend.
    prepare(platform, "no-quota", cpu="6")
    said = platform.wait_for_refusal("alpha", "no-quota", "insufficient unused quota")
    assert "l4-spot" not in said, "no flavor of GPUs is tried"

    platform.finish("alpha", "prepare")
    assert pools_of(cluster, platform.wait_for_running("beta", "no-node")) == {OTHER_WORK}


def flavors_of(workload: KubeObject) -> dict[str, dict[str, str]]:
    """Return the flavors of each pod set of an admitted Workload, by resource."""
    return {each["name"]: each["flavors"] for each in workload["status"]["admission"]["podSetAssignments"]}


def test_launchers_of_gpu_workers_get_nodes_without_gpus_or_wait(platform: QueuePlatform, cluster: Cluster) -> None:
    """A JobSet is one Workload of several pod sets. The lab has no JobSet, so Workloads are written by hand, only for Kueue.

    Alpha has 2 vCPU for launchers.
    """
    assert platform.plan.cpu_work is not None
    cpu, gpu = platform.plan.cpu_work.flavor, platform.own("l4-spot")

    cluster.create(workload_of_launchers(platform, "set", launchers=1))
    assert flavors_of(wait_for_quota(platform, "set", "True")) == {
        "launcher": {"cpu": cpu, "memory": cpu},
        "worker": {"cpu": gpu, "memory": gpu, GPU_RESOURCE: gpu},
    }
    cluster.create(workload_of_launchers(platform, "more", launchers=2))
    refused = why_waiting(wait_for_quota(platform, "more", "False"))
    assert f"insufficient unused quota for cpu in flavor {cpu}" in refused
    assert f"flavor {gpu} doesn't match node affinity" in refused
    for name in ("set", "more"):
        cluster.delete(WORKLOAD, name, platform.own("alpha"))


def workload_of_launchers(platform: QueuePlatform, name: str, launchers: int) -> KubeObject:
    """Return a Workload of one worker with a GPU, and launchers that exclude nodes with GPUs."""
    worker = platform.job("alpha", "worker")["spec"]["template"]["spec"]
    launcher = without_gpus(platform.job("alpha", "launcher"))["spec"]["template"]["spec"]
    expression = {"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "DoesNotExist"}
    terms = [{"matchExpressions": [expression]}]
    launcher["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    pods = (("launcher", launchers, launcher), ("worker", 1, worker))
    pod_sets = [{"name": each, "count": count, "template": {"spec": spec}} for each, count, spec in pods]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": platform.own("alpha")},
        "spec": {"queueName": "default", "active": True, "podSets": pod_sets},
    }


def wait_for_quota(platform: QueuePlatform, name: str, status: str) -> KubeObject:
    """Return a Workload as soon as its condition QuotaReserved has this status."""

    def found(workloads: list[KubeObject]) -> KubeObject | None:
        one = next((each for each in workloads if each["metadata"]["name"] == name), None)
        quota = one and condition_of(one, "QuotaReserved")
        return one if quota and quota["status"] == status else None

    return platform.cluster.wait_for(WORKLOAD, found, f"QuotaReserved of {name} to be {status}", namespace=platform.own("alpha"))


def without_gpus(job: KubeObject) -> KubeObject:
    """Return a Job as a user writes it who needs no GPU and names no pools."""
    spec = job["spec"]["template"]["spec"]
    amounts = {"cpu": "1", "memory": "1Gi"}
    spec["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    for field in ("affinity", "tolerations", "nodeSelector"):
        spec.pop(field, None)
    return job
