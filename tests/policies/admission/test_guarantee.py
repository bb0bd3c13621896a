"""The policies that guard a team's share: of kinds that the lab has no controller of, of who sends, and the page that lists the tries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cel_evaluator import judged
from snapshot_fixtures import assert_snapshot

from policies.admission.boundary import Guarantee
from policies.admission.guarantee import NAME, guarantee_policies

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
TEAM = "team-a"
COMES, GOES = guarantee_policies(
    Guarantee(
        {TEAM: ("default", "big")},
        ("gpu-training",),
        ("gpu-production",),
        120,
        {f"queue.{TEAM}.default": "", f"queue.{TEAM}.big": ""},
    )
)

Object = dict[str, Any]


def pod(*, gpus: int | str = 1, **more: Any) -> Object:
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container: Object = {"name": "main", "image": "work:1", "securityContext": safe}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"priorityClassName": "gpu-training", "securityContext": context, "containers": [container], **more}


def made(api: str, kind: str, spec: Object, **metadata: Any) -> Object:
    labels = {"kueue.x-k8s.io/queue-name": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": TEAM, "labels": labels, **metadata}, "spec": spec}


def job(spec: Object, **metadata: Any) -> Object:
    return made("batch/v1", "Job", {"template": {"spec": spec}}, **metadata)


def job_set(*pods: Object) -> Object:
    jobs = [{"name": f"job-{number}", "template": {"spec": {"template": {"spec": each}}}} for number, each in enumerate(pods)]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def cron_job(spec: Object) -> Object:
    nested = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "default"}}, "spec": {"template": {"spec": spec}}}
    return made("batch/v1", "CronJob", {"jobTemplate": nested})


def ray_cluster(spec: Object) -> Object:
    group = {"template": {"spec": spec}}
    return made("ray.io/v1", "RayCluster", {"headGroupSpec": group, "workerGroupSpecs": [group]})


def pytorch_job(spec: Object) -> Object:
    return made("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"template": {"spec": spec}}}})


def broken(each: Object, **how: Any) -> set[str] | None:
    found = judged(COMES, each, namespace_labels={"flexspot.dev/team": TEAM}, **how)
    return None if found is None else {rule for rule, said in found.items() if said}


KINDS: list[Callable[[Object], Object]] = [job, lambda spec: job_set(pod(), spec), cron_job, ray_cluster, pytorch_job]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spec,rules",
    [
        (pod(), set()),
        (pod(priorityClassName="system-node-critical"), {"priority-of-others"}),
        (pod(nodeName="gpu-7"), {"placed-by-hand"}),
        (pod(tolerations=[{"operator": "Exists"}]), {"tolerates-too-much"}),
        (pod(hostNetwork=True), {"pods-that-never-start"}),
        (pod(terminationGracePeriodSeconds=121), {"grace-beyond-the-platforms"}),
    ],
)
def test_every_kind_of_work_is_held_to_the_same(kind: Callable[[Object], Object], spec: Object, rules: set[str]) -> None:
    assert broken(kind(spec)) == rules


@pytest.mark.parametrize("gpus", [1, "1", "1000m"])
@pytest.mark.parametrize("kind", KINDS)
def test_gpus_count_however_their_number_is_written(kind: Callable[[Object], Object], gpus: int | str) -> None:
    assert broken(kind(pod(gpus=gpus, terminationGracePeriodSeconds=600))) == {"grace-beyond-the-platforms"}


def test_services_take_the_priority_of_what_waits_in_no_queue() -> None:
    def deployment(spec: Object) -> Object:
        return made("apps/v1", "Deployment", {"template": {"spec": spec}})

    assert broken(deployment(pod(priorityClassName="gpu-production"))) == set()
    assert broken(deployment(pod())) == {"priority-of-others"}
    assert broken(deployment(pod(priorityClassName=""))) == {"priority-of-others"}
    assert broken(deployment(pod(gpus=0, priorityClassName=""))) == set()


def test_more_groups_of_pods_than_rules_look_at_are_refused() -> None:
    assert broken(job_set(*[pod()] * 64)) == set()
    assert broken(job_set(*[pod()] * 65)) == {"more-than-is-looked-at"}


def test_a_queue_is_one_of_the_namespaces_own() -> None:
    assert broken(job(pod(), labels={"kueue.x-k8s.io/queue-name": "big"})) == set()
    assert broken(job(pod(), labels={"kueue.x-k8s.io/queue-name": "beta"})) == {"work-past-the-queue"}
    said = judged(COMES, job(pod(), labels={"kueue.x-k8s.io/queue-name": "beta"}))
    assert said is not None
    assert said["work-past-the-queue"][0].endswith("To fix it: name one of these: big, default")


OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "admitted", "uid": "1", "controller": True}


@pytest.mark.parametrize(
    "sender,asked",
    [
        ("ann@acme.com", True),
        (f"system:serviceaccount:{TEAM}:workloads", True),
        ("system:admin", True),
        ("system:serviceaccount:kube-system:job-controller", False),
        ("system:serviceaccount:kueue-system:kueue-controller-manager", False),
        ("system:kube-controller-manager", False),
        ("system:node:gpu-7", False),
    ],
)
def test_controllers_make_parts_of_admitted_work_and_people_and_their_programs_do_not(sender: str, *, asked: bool) -> None:
    assert broken(job(pod(), ownerReferences=[OWNER]), sender=sender) == ({"owner-of-ones-own"} if asked else None)


def test_an_update_is_judged_by_what_it_brings() -> None:
    before = job(pod(), ownerReferences=[OWNER], finalizers=["acme.com/controllers"])

    assert broken(before, old=before) is None, "nothing of it changed"
    relabelled = job(pod(), ownerReferences=[OWNER], finalizers=["acme.com/controllers"], labels={"kueue.x-k8s.io/queue-name": "big"})
    assert broken(relabelled, old=before) == set(), "owner and finalizer were there"
    assert broken(before, old=job(pod())) == {"owner-of-ones-own", "finalizer-of-ones-own"}


def test_what_is_deleted_is_asked_of_by_its_own_policy() -> None:
    assert {operation for rule in GOES.resource_rules for operation in rule.operations} == {"DELETE"}
    assert {operation for rule in COMES.resource_rules for operation in rule.operations} == {"CREATE", "UPDATE"}


def test_a_refusal_names_its_rule_and_what_to_write() -> None:
    found = judged(COMES, job(pod(priorityClassName="gpu-production")))

    assert found is not None
    [said] = found["priority-of-others"]
    assert said.startswith("spec.template.spec.priorityClassName is gpu-production, which is not for this kind of work. To fix it: ")
    assert said.endswith("name one of these: gpu-training")
    assert all(each.guards and each.stops for each in (COMES, GOES))


BEGIN, END = "<!-- every try -->", "<!-- end of every try -->"


def test_the_guide_lists_every_try_with_its_outcome() -> None:
    tries = yaml.safe_load((ROOT / "tests/lab/hostile_submissions.yaml").read_text())
    who = {"as_member": "a member", "as_deployer": "who may `edit`"}
    words = {"forbidden": "the role has no such right", "kueue": "Kueue's own webhook", "kubernetes": "Kubernetes itself"}
    rows = [
        f"| {title} | {who[group]} | {tried['because'] if tried['outcome'] == 'harmless' else words.get(tried['outcome'], '')} |"
        if tried["outcome"] in {"harmless", *words}
        else f"| {title} | {who[group]} | refused: `{tried['outcome']}` |"
        for group, each in tries.items()
        for title, tried in each.items()
    ]
    assert len(rows) >= 60
    page = ROOT / "docs/guides/guarantee.md"
    text = page.read_text()
    head, tail = text[: text.index(BEGIN)], text[text.index(END) :]
    table = "\n".join(["| it tries to be | sent by | and |", "|---|---|---|", *rows])
    assert_snapshot(f"{head}{BEGIN}\n\n{table}\n\n{tail}", page)
    assert NAME in head
    assert all(f"`{each.rule}`" in head for policy in (COMES, GOES) for each in policy.validations), "each rule has its line"
