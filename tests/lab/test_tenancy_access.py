"""What people may do in a team's namespace, and what stays of its network policy, on a real API server.

That connections are refused is proven nowhere here: the lab's nodes are fake, and nothing enforces a network policy on them.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from tenancy_ground import Member, Register, job, pod, refusal, team_on

from capacity.catalog.platform import Platform, endpoints_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

SUBMITTERS, VIEWERS = "ml-red@acme.com", "finance@acme.com"


@pytest.fixture
def namespace(cluster: Cluster, register: Register) -> Iterator[str]:
    endpoints = [{"cidr": each.cidr, "protocols": list(each.protocols), "ports": list(each.ports)} for each in endpoints_of(Platform.GKE)]
    with team_on(cluster, register, [], submitters=[SUBMITTERS], viewers=[VIEWERS], own_claims=True, endpoints=endpoints) as name:
        yield name


@pytest.fixture
def submitter(cluster: Cluster) -> Member:
    return Member(cluster.kubeconfig, SUBMITTERS)


@pytest.fixture
def viewer(cluster: Cluster) -> Member:
    return Member(cluster.kubeconfig, VIEWERS)


def may(member: Member, namespace: str, verb: str, resource: str, group: str = "", name: str = "") -> bool:  # noqa: PLR0913, PLR0917 -- the question has these parts
    """What `kubectl auth can-i` answers; a subresource comes after a slash."""
    kind, _, part = resource.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "resource": kind, "subresource": part, "group": group, "name": name}
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


def test_a_submitter_sees_nothing_of_another_namespace_and_no_secret_of_its_own(
    namespace: str, cluster: Cluster, register: Register, submitter: Member
) -> None:
    with team_on(cluster, register, []) as other:
        assert not may(submitter, other, "get", "secrets")
        assert not may(submitter, other, "list", "pods")
        assert not may(submitter, other, "create", "jobs", "batch")
        assert "cannot create resource" in refusal(submitter, job(other))
    assert not may(submitter, namespace, "get", "secrets")


READ = {"get", "list", "watch"}
LOOKS: dict[tuple[str, str], set[str]] = {
    **{("", kind): READ for kind in ("pods", "events", "persistentvolumeclaims", "resourcequotas", "limitranges", "services")},
    ("", "pods/log"): {"get"},
    **{("apps", kind): READ for kind in ("deployments", "replicasets", "statefulsets")},
    **{("batch", kind): READ for kind in ("jobs", "cronjobs")},
    **{("kueue.x-k8s.io", kind): READ for kind in ("workloads", "localqueues")},
}
STARTS = {
    **LOOKS,
    **{("batch", kind): READ | {"create", "delete"} for kind in ("jobs", "cronjobs")},
    ("", "configmaps"): READ | {"create", "update", "patch", "delete"},
    ("", "secrets"): {"create", "delete"},
    ("", "persistentvolumeclaims"): READ | {"create", "delete"},
    ("", "pods/portforward"): {"create", "get"},
}
# A cluster serves it with its controller; another test lends this API server its definition for a time.
JOBSETS = ("jobset.x-k8s.io", "jobsets")
LOOKS[JOBSETS], STARTS[JOBSETS] = READ, READ | {"create", "delete"}
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def served(cluster: Cluster, folder: Path) -> Iterator[tuple[str, str]]:
    """Group and name of everything in a namespace that the API server has now, with what is below it.

    Asked with a discovery cache of its own in `folder`: the cluster's is shared by all tests and keeps what it once found.
    """
    asking = DynamicClient(cluster._client.client, cache_file=str(folder / "discovery.json"))  # noqa: SLF001 -- what there is, and not one kind of it
    for each in asking.resources.search(namespaced=True):
        if each.kind.endswith("List"):
            continue
        yield each.group or "", each.name
        yield from ((each.group or "", f"{each.name}/{below}") for below in each.subresources)


@pytest.mark.parametrize("group,rights", [(SUBMITTERS, STARTS), (VIEWERS, LOOKS)])
def test_a_team_has_these_rights_and_no_other_on_anything_that_the_server_has(
    group: str, rights: dict[tuple[str, str], set[str]], namespace: str, cluster: Cluster, tmp_path: Path
) -> None:
    member = Member(cluster.kubeconfig, group)
    kinds = set(served(cluster, tmp_path))
    assert kinds > {*STARTS.keys() - {JOBSETS}, ("apps", "daemonsets"), ("", "pods/exec"), ("rbac.authorization.k8s.io", "rolebindings")}

    found = {kind: {verb for verb in VERBS if may(member, namespace, verb, kind[1], kind[0])} for kind in kinds}

    # Everybody may ask what they may do themselves.
    everybody = {("authorization.k8s.io", "localsubjectaccessreviews")}
    assert {kind: verbs for kind, verbs in found.items() if verbs and kind not in everybody} == {
        kind: verbs for kind, verbs in rights.items() if kind in kinds
    }


@pytest.mark.parametrize(
    "verb,resource,group",
    [("create", "jobsets", "jobset.x-k8s.io"), ("get", "localqueues/pendingworkloads", "visibility.kueue.x-k8s.io")],
)
def test_a_submitter_has_the_rights_that_controllers_of_a_cluster_ask_for(
    verb: str, resource: str, group: str, namespace: str, submitter: Member
) -> None:
    """Their kinds are not on the lab."""
    assert may(submitter, namespace, verb, resource, group)


def test_a_submitter_gives_its_work_files_and_keys_and_reads_no_key(namespace: str, submitter: Member) -> None:
    key, files = secret(namespace), secret(namespace)
    files["kind"] = "ConfigMap"
    assert refusal(submitter, key) == refusal(submitter, files) == ""

    name = files["metadata"]["name"]
    submitter.patch("v1/ConfigMap", name, {"data": {"rate": "0.1"}}, namespace)
    stored = submitter.get("v1/ConfigMap", name, namespace)
    assert stored is not None
    assert stored["data"] == {"rate": "0.1"}
    with pytest.raises(ApiException, match="cannot get resource"):
        submitter.get("v1/Secret", key["metadata"]["name"], namespace)
    submitter.delete("v1/Secret", key["metadata"]["name"], namespace)


def test_a_teams_people_read_the_quota_of_their_own_queue_alone(cluster: Cluster, register: Register) -> None:
    with team_on(cluster, register, [], submitters=[SUBMITTERS], viewers=[VIEWERS], cluster_queues=["red"]):
        for people in (SUBMITTERS, VIEWERS):
            member = Member(cluster.kubeconfig, people)
            assert may(member, "", "get", "clusterqueues", "kueue.x-k8s.io", "red")
            assert not may(member, "", "get", "clusterqueues", "kueue.x-k8s.io", "blue")
            assert not may(member, "", "list", "clusterqueues", "kueue.x-k8s.io")
            assert not may(member, "", "patch", "clusterqueues", "kueue.x-k8s.io", "red")


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
