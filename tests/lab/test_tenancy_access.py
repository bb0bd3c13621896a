"""What people may do in a team's namespace, and what stays of its network policy, on a real API server.

That connections are refused is proven nowhere here: the lab's nodes are fake, and nothing enforces a network policy on them.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from tenancy_ground import Member, Register, job, pod, refusal, team_on

from capacity.catalog.platform import Platform, endpoints_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

SUBMITTERS, VIEWERS = "ml-red@acme.com", "finance@acme.com"


@pytest.fixture
def namespace(cluster: Cluster, register: Register) -> Iterator[str]:
    endpoints = [{"cidr": each.cidr, "protocols": list(each.protocols), "ports": list(each.ports)} for each in endpoints_of(Platform.GKE)]
    with team_on(cluster, register, [], submitters=[SUBMITTERS], viewers=[VIEWERS], endpoints=endpoints) as name:
        yield name


@pytest.fixture
def submitter(cluster: Cluster) -> Member:
    return Member(cluster.kubeconfig, SUBMITTERS)


@pytest.fixture
def viewer(cluster: Cluster) -> Member:
    return Member(cluster.kubeconfig, VIEWERS)


def may(member: Member, namespace: str, verb: str, resource: str, group: str = "") -> bool:
    """What `kubectl auth can-i` answers; a subresource comes after a slash."""
    kind, _, part = resource.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "resource": kind, "subresource": part, "group": group}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    return bool(member.create(review)["status"]["allowed"])


def secret(namespace: str) -> KubeObject:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"key-{uuid.uuid4().hex[:8]}", "namespace": namespace}}


def test_a_submitter_starts_work_sees_it_and_ends_it(namespace: str, submitter: Member) -> None:
    work = job(namespace)

    assert refusal(submitter, work) == ""

    assert submitter.get("batch/v1/Job", work["metadata"]["name"], namespace) is not None
    assert submitter.list("v1/Pod", namespace) == []
    submitter.delete("batch/v1/Job", work["metadata"]["name"], namespace)
    assert submitter.list("kueue.x-k8s.io/v1beta2/Workload", namespace) == []


def test_a_submitter_makes_no_pods_and_gives_itself_no_rights(namespace: str, submitter: Member) -> None:
    on_the_host = pod(namespace, volumes=[{"name": "host", "hostPath": {"path": "/"}}])
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mine", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": SUBMITTERS}],
    }

    assert "cannot create resource" in refusal(submitter, on_the_host)
    assert "cannot create resource" in refusal(submitter, binding)
    assert "cannot create resource" in refusal(submitter, secret(namespace))


def test_a_submitter_sees_nothing_of_another_namespace_and_no_secret_of_its_own(
    namespace: str, cluster: Cluster, register: Register, submitter: Member
) -> None:
    with team_on(cluster, register, []) as other:
        assert not may(submitter, other, "get", "secrets")
        assert not may(submitter, other, "list", "pods")
        assert not may(submitter, other, "create", "jobs", "batch")
        assert "cannot create resource" in refusal(submitter, job(other))
    assert not may(submitter, namespace, "get", "secrets")


@pytest.mark.parametrize(
    "verb,resource,group",
    [("update", "jobs", "batch"), ("patch", "jobs", "batch"), ("create", "pods/exec", ""), ("delete", "resourcequotas", "")],
)
def test_a_submitter_changes_nothing_that_others_decide(verb: str, resource: str, group: str, namespace: str, submitter: Member) -> None:
    assert not may(submitter, namespace, verb, resource, group)


@pytest.mark.parametrize(
    "verb,resource,group",
    [
        ("create", "pods/portforward", ""),
        ("get", "pods/log", ""),
        ("create", "jobsets", "jobset.x-k8s.io"),
        ("list", "localqueues", "kueue.x-k8s.io"),
    ],
)
def test_a_submitter_reaches_what_it_runs(verb: str, resource: str, group: str, namespace: str, submitter: Member) -> None:
    assert may(submitter, namespace, verb, resource, group)


def test_a_viewer_looks_and_starts_nothing(namespace: str, viewer: Member) -> None:
    assert may(viewer, namespace, "list", "pods")
    assert may(viewer, namespace, "get", "pods/log")
    assert may(viewer, namespace, "list", "workloads", "kueue.x-k8s.io")
    assert not may(viewer, namespace, "create", "pods/portforward")
    assert "cannot create resource" in refusal(viewer, job(namespace))


def test_somebody_in_no_group_of_the_team_sees_nothing(namespace: str, cluster: Cluster) -> None:
    assert not may(Member(cluster.kubeconfig, "others@acme.com"), namespace, "list", "pods")


def test_the_network_policy_is_taken_as_it_is_written(namespace: str, cluster: Cluster) -> None:
    policy = cluster.get("networking.k8s.io/v1/NetworkPolicy", "isolation", namespace)

    assert policy is not None
    spec = policy["spec"]
    assert spec["podSelector"] == {}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"from": [{"podSelector": {}}]}]
    assert len(spec["egress"]) == 1 + 1 + len(endpoints_of(Platform.GKE)) + 1
