"""Changes of existing work by users with the role `edit` in a team's namespace.

A member with the role `submit` can change nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tenancy_fixtures import Member
from test_hostile_submissions import DEPLOYERS, MEMBERS, guarded_platform, outcome_of

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, QUEUE_LABEL
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, running_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield a platform where alpha has its two GPUs and has borrowed beta's; more of its work waits."""
    with guarded_platform(cluster, register) as deployed:
        deployed.submit("alpha", "running", pods=4)
        deployed.wait_for_running("alpha", "running")
        deployed.submit("alpha", "waiting", pods=2)
        deployed.wait_for_workload("alpha", "waiting", lambda each: not condition(each, "QuotaReserved"), "waiting")
        yield deployed


def pod_spec(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": fields}}}


def in_queue(name: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {QUEUE_LABEL: name}}}


CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a queue that is not there": ("waiting", in_queue("fast"), "work-past-the-queue"),
    "no queue any more": ("waiting", in_queue(None), "kueue"),
    "a queue without GPUs": ("waiting", in_queue("cpu"), "work-in-the-wrong-queue"),
    "every node": ("waiting", pod_spec(tolerations=[{"operator": "Exists"}]), "tolerates-too-much"),
    "the priority of nodes": ("waiting", pod_spec(priorityClassName="system-node-critical"), "kubernetes"),
    "another queue while it runs": ("running", in_queue("cpu"), "work-in-the-wrong-queue"),
    "a queue that is not there while it runs": ("running", in_queue("fast"), "work-past-the-queue"),
    "every node while it runs": ("running", pod_spec(tolerations=[{"operator": "Exists"}]), "kubernetes"),
    "more pods while it runs": ("running", {"spec": {"parallelism": 8}}, "more-pods-than-completions"),
    "elastic while it runs": ("running", {"metadata": {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}}, "label-of-kueues-own"),
    "a part of another's": (
        "waiting",
        {"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "running", "uid": "1", "controller": True}]}},
        "owner-of-ones-own",
    ),
    "a finalizer": ("running", {"metadata": {"finalizers": ["acme.com/keep"]}}, "finalizer-of-ones-own"),
    "billed to others": ("waiting", {"metadata": {"labels": {"flexspot.dev/team": "beta"}}}, "billed-to-others"),
    "a start by hand": ("waiting", {"spec": {"suspend": False}}, "work-past-the-queue"),
}


def test_no_change_of_work_takes_another_teams_share(platform: QueuePlatform, cluster: Cluster) -> None:
    namespace = platform.own("alpha")
    member, editor = Member(cluster.kubeconfig, MEMBERS), Member(cluster.kubeconfig, DEPLOYERS)

    for name, change, _ in CHANGES.values():
        assert outcome_of(member.patch, JOB, name, change, namespace) == "forbidden"
    found = {title: outcome_of(editor.patch, JOB, name, change, namespace) for title, (name, change, _) in CHANGES.items()}
    assert found == {title: expected for title, (_, _, expected) in CHANGES.items()}

    # Accepted changes are harmless: beta has its whole share, and alpha runs no more than its queue has admitted.
    for name in ("own-0", "own-1"):
        platform.submit("beta", name)
    platform.wait_for_running("beta", "own-0", "own-1")

    def started_as_admitted(jobs: list[KubeObject]) -> bool:
        # The preempted work leaves alpha its own two GPUs, for which Kueue may admit waiting work: it then runs as it should.
        admitted = {name for name, each in platform.workloads("alpha").items() if condition(each, "Admitted")}
        return {each["metadata"]["name"] for each in jobs if not each["spec"].get("suspend")} <= admitted

    cluster.wait_for(JOB, started_as_admitted, "that nothing runs but what Kueue has admitted", namespace=namespace)


def test_two_changes_make_no_part_of_admitted_work(platform: QueuePlatform, cluster: Cluster) -> None:
    namespace, editor = platform.own("alpha"), Member(cluster.kubeconfig, DEPLOYERS)
    running = cluster.get(JOB, "running", namespace)
    assert running is not None
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "running", "uid": running["metadata"]["uid"]}

    def refer(**more: bool) -> str:
        return outcome_of(editor.patch, JOB, "waiting", {"metadata": {"ownerReferences": [owner | more]}}, namespace)

    assert refer() == "taken"
    assert refer(controller=True) == "owner-of-ones-own"


def test_an_editor_labels_a_running_pod_and_neither_keeps_nor_deletes_it_slowly(platform: QueuePlatform, cluster: Cluster) -> None:
    namespace, editor = platform.own("alpha"), Member(cluster.kubeconfig, DEPLOYERS)
    name = running_pods(cluster.list(POD, namespace))[0]["metadata"]["name"]
    pods = editor._resource(POD)  # noqa: SLF001 -- the client of this person, with options that `delete` has not

    assert outcome_of(editor.patch, POD, name, {"metadata": {"labels": {"looked-at": "true"}}}, namespace) == "taken"
    assert outcome_of(editor.patch, POD, name, {"metadata": {"finalizers": ["acme.com/keep"]}}, namespace) == "finalizer-of-ones-own"
    for slowly in (121, 31_536_000):
        answer = outcome_of(pods.delete, name=name, namespace=namespace, body={"gracePeriodSeconds": slowly})
        assert answer == "grace-beyond-the-platforms"
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"gracePeriodSeconds": slowly},
        }
        created = outcome_of(pods.subresources["eviction"].create, name=name, namespace=namespace, body=eviction)
        assert created in {"forbidden", "grace-beyond-the-platforms"}
    assert running_pods(cluster.list(POD, namespace))[0]["metadata"]["name"] == name


def test_running_pods_get_neither_containers_nor_gpus(platform: QueuePlatform, cluster: Cluster) -> None:
    pod, *_ = running_pods(cluster.list(POD, platform.own("alpha")))
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    [container] = pod["spec"]["containers"]
    ephemeral = {
        "spec": {
            "ephemeralContainers": [{"name": "debug", "image": "busybox:1.37", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]
        }
    }
    larger = {"spec": {"containers": [container | {"resources": {each: {GPU_RESOURCE: "8"} for each in ("requests", "limits")}}]}}

    for group in (MEMBERS, DEPLOYERS):
        sender = Member(cluster.kubeconfig, group)
        for change, part in ((ephemeral, "ephemeralcontainers"), (larger, "resize"), (larger, None)):
            came = outcome_of(sender.patch, POD, name, change, namespace, subresource=part)
            assert came in {"forbidden", "kubernetes"}, (group, part)
