"""Rights of users in a team's namespace, on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tenancy_fixtures import Member, Register, job, refusal, rules_of, team_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster

pytestmark = pytest.mark.lab

SUBMITTERS, VIEWERS = "ml-red@acme.com", "finance@acme.com"


@pytest.fixture
def namespace(cluster: Cluster, register: Register) -> Iterator[str]:
    with team_on(cluster, register, [], submitters=[SUBMITTERS], viewers=[VIEWERS], own_claims=True) as name:
        yield name


def may(member: Member, namespace: str, verb: str, resource: str, group: str = "", name: str = "") -> bool:  # noqa: PLR0913, PLR0917 -- the question has these parts
    """Return the answer of `kubectl auth can-i`; a subresource follows a slash."""
    kind, _, part = resource.partition("/")
    attributes = {"namespace": namespace, "verb": verb, "resource": kind, "subresource": part, "group": group, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    return bool(member.create(review)["status"]["allowed"])


def test_a_teams_people_have_rights_in_their_own_namespace_alone_and_others_none_in_it(
    namespace: str, cluster: Cluster, register: Register
) -> None:
    submitter = Member(cluster.kubeconfig, SUBMITTERS)
    with team_on(cluster, register, []) as other:
        assert not may(submitter, other, "get", "secrets")
        assert not may(submitter, other, "list", "pods")
        assert not may(submitter, other, "create", "jobs", "batch")
        assert "cannot create resource" in refusal(submitter, job(other))
    assert refusal(submitter, job(namespace)) == ""
    assert not may(Member(cluster.kubeconfig, "others@acme.com"), namespace, "list", "pods")


READ = {"get", "list", "watch"}
LOOKS: dict[tuple[str, str], set[str]] = {
    **{("", kind): READ for kind in ("pods", "events", "persistentvolumeclaims", "resourcequotas", "limitranges", "services")},
    ("", "pods/log"): {"get"},
    **{("apps", kind): READ for kind in ("deployments", "replicasets", "statefulsets")},
    **{("batch", kind): READ for kind in ("jobs", "cronjobs")},
    **{("kueue.x-k8s.io", kind): READ for kind in ("workloads", "localqueues")},
    ("jobset.x-k8s.io", "jobsets"): READ,
    ("visibility.kueue.x-k8s.io", "localqueues/pendingworkloads"): {"get"},
}
STARTS = {
    **LOOKS,
    **{("batch", kind): READ | {"create", "delete"} for kind in ("jobs", "cronjobs")},
    ("jobset.x-k8s.io", "jobsets"): READ | {"create", "delete"},
    ("", "configmaps"): READ | {"create", "update", "patch", "delete"},
    ("", "secrets"): {"create", "delete"},
    ("", "persistentvolumeclaims"): READ | {"create", "delete"},
    ("", "pods/portforward"): {"create", "get"},
}


def test_a_team_has_these_rights_and_no_other(namespace: str, cluster: Cluster) -> None:
    of_anybody, _ = rules_of(Member(cluster.kubeconfig, "others@acme.com"), namespace)
    for people, rights in ((SUBMITTERS, STARTS), (VIEWERS, LOOKS)):
        found, _ = rules_of(Member(cluster.kubeconfig, people), namespace)
        assert found - of_anybody == {f"{group}/{resource} {verb}" for (group, resource), verbs in rights.items() for verb in verbs}


def test_a_teams_people_read_the_quota_of_their_own_queue_alone(cluster: Cluster, register: Register) -> None:
    with team_on(cluster, register, [], submitters=[SUBMITTERS], viewers=[VIEWERS], cluster_queues=["red"]):
        for people in (SUBMITTERS, VIEWERS):
            member = Member(cluster.kubeconfig, people)
            assert may(member, "", "get", "clusterqueues", "kueue.x-k8s.io", "red")
            assert not may(member, "", "get", "clusterqueues", "kueue.x-k8s.io", "blue")
            assert not may(member, "", "list", "clusterqueues", "kueue.x-k8s.io")
            assert not may(member, "", "patch", "clusterqueues", "kueue.x-k8s.io", "red")
