"""A team member who tries to get another team's GPUs: each attempt of hostile_submissions.yaml, on a real API server with real Kueue."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from admission_fixtures import with_policies
from kubernetes.client.exceptions import ApiException
from queue_fixtures import GUARDS, ONE_L4, QueuePlatform, queues_of
from queue_objects import admission_objects
from tenancy_fixtures import Member

from flexspot.capacity.catalog.node_labels import QUEUE_LABEL
from flexspot.lab.cluster import condition
from flexspot.lab.exercise.play import JOB, NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

MEMBERS, DEPLOYERS, DEVELOPERS = "alpha@acme.com", "deployers@acme.com", "developers@acme.com"
TRIES: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "hostile_submissions.yaml").read_text())
_POLICY = r"ValidatingAdmissionPolicy 'flexspot-g[a-z-]*' with binding '[\w-]+' denied request"
_REFUSED = re.compile(rf"{_POLICY}: (?P<rule>[a-z-]+): .*To fix it: ")

_REFUSERS = {"is forbidden: User": "forbidden", "exceeded quota": "quota", "kb.io": "kueue", "is invalid: ": "kubernetes"}
"""Other refusers, by their message: the roles, Kueue's webhooks, the API server's own validation."""


@contextmanager
def guarded_platform(cluster: Cluster, register: Register) -> Generator[QueuePlatform]:
    """Yield four nodes of one GPU, two of each team, pools for services and for pods on whole nodes, and the policies.

    One group has alpha's role `submit`, another Kubernetes' own `edit` there.
    """
    pool = {"name": "l4-spot", "machine": ONE_L4, "capacity_type": "spot", "max_nodes": 4, "serves": ["training", "interactive"]}
    large = {"name": "h100-spot", "machine": "p5.48xlarge", "capacity_type": "spot", "max_nodes": 2, "serves": ["best-effort", "spot-low"]}
    services = {"name": "l4-on-demand", "machine": "g6.xlarge", "capacity_type": "on-demand", "max_nodes": 1, "serves": ["inference"]}
    shares = {"l4-spot": 2, "h100-spot": 8}
    alpha = {"name": "alpha", "shares": shares, "unqueued": {"l4-on-demand": 1}, "submitters": [MEMBERS], "projects": ["speech"]}
    teams = [alpha, {"name": "beta", "shares": shares}]
    with queues_of(cluster, register, {"l4-spot": 4}, pools=[pool, large, services], teams=teams, without=GUARDS) as platform:
        cluster.apply(binding(platform.own("alpha")))
        with with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")):
            yield platform


def binding(namespace: str) -> KubeObject:
    rbac = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "deployers", "namespace": namespace},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": DEPLOYERS}],
    }


def merged(base: Any, more: Any) -> Any:
    """Return `more` merged into `base`: mappings by key, null removes a key, other values replace."""
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    found = {key: merged(base.get(key), value) for key, value in more.items()}
    return {key: value for key, value in {**base, **found}.items() if value is not None}


def filled(written: Any, names: dict[str, str]) -> Any:
    """Return the text with the names that begin with a dollar filled in."""
    if isinstance(written, dict):
        return {key: filled(value, names) for key, value in written.items()}
    if isinstance(written, list):
        return [filled(each, names) for each in written]
    return names.get(written, written) if isinstance(written, str) else written


def submission(platform: QueuePlatform, name: str, tried: dict[str, Any], names: dict[str, str]) -> KubeObject:
    """Return the object of an attempt."""
    tried, namespace = filled(tried, names), platform.own("alpha")
    if "manifest" in tried:
        return merged(tried["manifest"], {"metadata": {"namespace": namespace}})
    job = platform.job("alpha", name)
    spec = job["spec"]["template"]["spec"]
    if "queue" in tried:
        job["metadata"]["labels"] = {QUEUE_LABEL: tried["queue"]} if tried["queue"] else {}
    for field in ("affinity", "tolerations", "nodeSelector") if tried.get("bare") else ():
        spec.pop(field, None)
    # The Job's own list of tolerations stays, and the attempt's are added.
    tolerations = [*spec.get("tolerations", []), *tried.get("pod", {}).get("tolerations", [])]
    if "container" in tried and "resources" in tried["container"]:
        spec["containers"][0].pop("resources")
    spec["containers"][0] = merged(spec["containers"][0], tried.get("container", {}))
    job["spec"]["template"]["spec"] = merged(spec, tried.get("pod", {}) | {"tolerations": tolerations})
    job["spec"]["template"]["metadata"] = merged(job["spec"]["template"]["metadata"], tried.get("pod_metadata", {}))
    template = job["spec"]["template"]
    metadata = {"name": name, "namespace": namespace}
    match tried.get("kind", "Job"):
        case "Pod":
            job = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        case "Job":
            pass
        case "CronJob":
            nested = {"metadata": {"labels": job["metadata"]["labels"]}, "spec": job["spec"]}
            cron = {"schedule": "0 0 31 2 *", "jobTemplate": nested}
            job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": cron}
        case kind:
            labelled = merged(template, {"metadata": {"labels": {"app": name}}, "spec": {"restartPolicy": "Always"}})
            selector = {"matchLabels": {"app": name}}
            job = {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector, "template": labelled}}
    return merged(job, tried.get("job", {}))


def outcome(sender: Cluster, each: KubeObject) -> str:
    """Return the outcome of creating it: the rule that refused it, another refuser, or `taken`."""
    return outcome_of(sender.create, each)


def outcome_of(act: Callable[..., object], *arguments: Any, **named: Any) -> str:
    """Return the outcome of a call to the API server."""
    try:
        act(*arguments, **named)
    except ApiException as error:
        found = _REFUSED.search(str(error.body).replace("\\n", " "))
        if found:
            return found["rule"]
        return next((who for words, who in _REFUSERS.items() if words in str(error.body)), str(error.body))
    return "taken"


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with guarded_platform(cluster, register) as deployed:
        yield deployed


def test_no_submission_of_a_member_keeps_another_team_from_its_share(platform: QueuePlatform, cluster: Cluster) -> None:
    platform.submit("alpha", "admitted")
    platform.wait_for_running("alpha", "admitted")
    admitted = cluster.get(JOB, "admitted", platform.own("alpha"))
    assert admitted is not None
    node = next(each["metadata"]["name"] for each in cluster.list(NODE) if each["metadata"]["name"].startswith(f"node-{platform.suffix}"))
    names = {"$ADMITTED": admitted["metadata"]["uid"], "$NODE": node}

    found: dict[str, str] = {}
    wanted: dict[str, str] = {}
    for sender, group in ((Member(cluster.kubeconfig, MEMBERS), "as_member"), (Member(cluster.kubeconfig, DEPLOYERS), "as_deployer")):
        for number, (title, tried) in enumerate(TRIES[group].items()):
            each = submission(platform, f"{group.replace('_', '-')}-{number}", tried, names)
            found[title] = outcome(sender, each)
            wanted[title] = "taken" if tried["outcome"] == "harmless" else tried["outcome"]
    assert {title: each for title, each in found.items() if each != wanted[title]} == {}

    # Accepted work is harmless: alpha's queue contains it, and beta gets its whole share at once.
    platform.submit("beta", "own-0")
    platform.submit("beta", "own-1")
    platform.wait_for_running("beta", "own-0", "own-1")
    assert not [job for job, each in platform.workloads("beta").items() if not condition(each, "Admitted")]


def test_gpus_are_refused_in_namespaces_of_no_team(platform: QueuePlatform, cluster: Cluster) -> None:
    """On GKE, IAM lets whoever has `roles/container.developer` create pods in every namespace."""
    elsewhere = Member(cluster.kubeconfig, DEVELOPERS)
    rights = binding("default") | {"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": DEVELOPERS}]}
    cluster.apply(rights)
    names = {"$ADMITTED": "1", "$NODE": "node"}

    for kind in ("Pod", "Job", "Deployment", "CronJob"):
        each = merged(submission(platform, "elsewhere", {"kind": kind}, names), {"metadata": {"namespace": "default"}})
        assert outcome(elsewhere, each) == "gpus-outside-of-teams", kind
    cluster.delete("rbac.authorization.k8s.io/v1/RoleBinding", "deployers", "default")


def claim(namespace: str, name: str, **spec: Any) -> KubeObject:
    fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}, "spec": fields}


def test_a_teams_people_delete_their_claims_and_operators_delete_the_platforms(platform: QueuePlatform, cluster: Cluster) -> None:
    """The claims of checkpoints and data sets use an existing volume, without a class."""
    namespace, kind = platform.own("alpha"), "v1/PersistentVolumeClaim"
    cluster.create(claim(namespace, "checkpoints", storageClassName="", volumeName="checkpoints-of-alpha"))

    for group in (MEMBERS, DEPLOYERS):
        sender, disk = Member(cluster.kubeconfig, group), group.partition("@")[0]
        sender.create(claim(namespace, disk, storageClassName="gp3"))
        sender.delete(kind, disk, namespace)
        with pytest.raises(ApiException, match="volume-of-the-platform: it is a claim of the platform's"):
            sender.delete(kind, "checkpoints", namespace)
    kept = cluster.wait_for(kind, lambda claims: claims if len(claims) == 1 else None, "the end of the disks", namespace=namespace)
    assert [each["metadata"]["name"] for each in kept] == ["checkpoints"]

    cluster.delete(kind, "checkpoints", namespace)
    cluster.wait_for(kind, lambda claims: not claims, "the end of the platform's claim", namespace=namespace)


def test_deleted_work_deletes_its_pods(platform: QueuePlatform, cluster: Cluster) -> None:
    """Left behind, they would continue to run while Kueue gives their quota to other teams."""
    platform.submit("alpha", "left")
    platform.wait_for_running("alpha", "left")
    member = Member(cluster.kubeconfig, MEMBERS)
    jobs = member._resource(JOB)  # noqa: SLF001 -- the client of this person, with options that `delete` has not

    # Kubernetes leaves the pods of a Job behind when nothing is said.
    for how in ({"propagationPolicy": "Orphan"}, {"orphanDependents": True}, {}):
        with pytest.raises(ApiException) as refused:
            jobs.delete(name="left", namespace=platform.own("alpha"), body=how)
        assert "work-left-behind: deleted without propagationPolicy Background" in str(refused.value.body)

    jobs.delete(name="left", namespace=platform.own("alpha"), body={"propagationPolicy": "Background"})
    platform.wait_for_running("alpha")


def test_work_keeps_a_deadline_and_gives_its_gpus_back_when_it_is_over(platform: QueuePlatform, cluster: Cluster) -> None:
    """Members cannot change work.

    Users who may edit it can bring the end forward, but neither remove it nor move it beyond the class's limit.
    """
    platform.submit("alpha", "ends")
    platform.wait_for_running("alpha", "ends")
    editor = Member(cluster.kubeconfig, DEPLOYERS)

    for longer in (None, 604_801):
        with pytest.raises(ApiException) as refused:
            editor.patch(JOB, "ends", {"spec": {"activeDeadlineSeconds": longer}}, platform.own("alpha"))
        assert "never-ends: spec.activeDeadlineSeconds is " in str(refused.value.body)

    editor.patch(JOB, "ends", {"spec": {"activeDeadlineSeconds": 1}}, platform.own("alpha"))
    platform.wait_for_running("alpha")
    finished = platform.wait_for_workload("alpha", "ends", lambda each: condition(each, "Finished"), "finished, so that its quota is free")
    over = condition(finished, "Finished")
    assert over is not None
    assert (over["reason"], "longer than specified deadline" in over["message"]) == ("Failed", True)


def test_more_containers_than_rules_look_at_are_refused(platform: QueuePlatform, cluster: Cluster) -> None:
    job = platform.job("alpha", "many")
    [first] = job["spec"]["template"]["spec"]["containers"]
    small = {"cpu": "10m", "memory": "10Mi"}
    more = [first | {"name": f"more-{number}", "resources": {"limits": small, "requests": small}} for number in range(256)]
    job["spec"]["template"]["spec"]["containers"] = [first, *more]

    assert outcome(Member(cluster.kubeconfig, MEMBERS), job) == "more-than-is-looked-at"
