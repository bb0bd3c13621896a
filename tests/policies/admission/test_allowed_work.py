"""Fields, affinity, volumes, labels and later changes of a team's work, as the policies that guard a team's share judge them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from guarded_work import (
    AGAIN,
    CLAIMS,
    DEADLINE,
    KINDS,
    NOT_EVALUATED,
    OWNER,
    QUEUED,
    TEAM,
    Object,
    broken,
    cron_job,
    job,
    job_set,
    made,
    of_its_class,
    pod,
    problems_of,
    queued,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def beside(**term: Any) -> Object:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname", **term}]}}


EPHEMERAL: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def with_disk(**spec: Any) -> Object:
    return {"volumes": [{"name": "disk", "ephemeral": {"volumeClaimTemplate": {"spec": {**EPHEMERAL, **spec}}}}]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "fields,rule",
    [
        ({"affinity": beside(namespaces=["team-b"])}, "affinity-to-others"),
        ({"affinity": beside(namespaceSelector={})}, "affinity-to-others"),
        ({"affinity": beside(topologyKey="karpenter.sh/nodepool")}, "affinity-to-others"),
        ({"affinity": beside(namespaces=[TEAM])}, None),
        ({"nodeSelector": {"acme.com/rack": "7"}}, "affinity-to-others"),
        ({"nodeSelector": {"topology.kubernetes.io/zone": "us-east-1a"}}, None),
        ({"priority": 10}, "field-not-allowed"),
        ({"overhead": {"cpu": "1"}}, "field-not-allowed"),
        ({"somethingNew": True}, "field-not-allowed"),
        (with_disk(storageClassName="gp3"), None),
        (with_disk(storageClassName=""), "volume-of-the-platform"),
        (with_disk(volumeName="checkpoints-of-b"), "volume-of-the-platform"),
        (with_disk(selector={}), "volume-of-the-platform"),
    ],
)
def test_pods_have_only_fields_that_concern_themselves(kind: Callable[[Object], Object], fields: Object, rule: str | None) -> None:
    assert broken(of_its_class(kind, pod(**fields))) == ({rule} if rule else set())


@pytest.mark.parametrize("kind", QUEUED)
@pytest.mark.parametrize(
    "fields,rule",
    [
        ({"runtimeClassName": "gvisor"}, "field-not-allowed"),
        ({"serviceAccountName": "mine"}, "pods-that-never-start"),
        ({"serviceAccountName": "workloads"}, None),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "affinity-to-others"),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, None),
    ],
)
def test_queued_pods_can_start_once_they_have_quota(kind: Callable[[Object], Object], fields: Object, rule: str | None) -> None:
    assert broken(kind(pod(**fields))) == ({rule} if rule else set())


@pytest.mark.parametrize(
    "amounts,refused",
    [
        ({"cpu": "16"}, False),
        ({"cpu": "16001m"}, True),
        ({"memory": "64Gi"}, False),
        ({"memory": "65Gi"}, True),
        ({"ephemeral-storage": "9Ti"}, False),
    ],
)
@pytest.mark.parametrize("of", ["limits", "requests"])
def test_a_container_is_within_the_namespaces_limits(of: str, amounts: Object, *, refused: bool) -> None:
    spec = pod()
    spec["containers"][0]["resources"].setdefault(of, {}).update(amounts)

    assert broken(job(spec)) == ({"pods-that-never-start"} if refused else set())


@pytest.mark.parametrize(
    "counts,refused",
    [
        ({"parallelism": 64, "completions": 4}, True),
        ({"parallelism": 4, "completions": 4}, False),
        ({"parallelism": 4}, False),
        ({"completions": 4}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("kind", [job, job_set, cron_job])
def test_work_with_gpus_runs_no_more_pods_than_it_completes(kind: Callable[..., Object], counts: Object, *, refused: bool) -> None:
    assert broken(kind(pod(), ends={**DEADLINE, **counts})) == ({"more-pods-than-completions"} if refused else set())
    assert broken(queued(kind(pod(gpus=0), ends=counts), "cpu")) == set()


TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"


@pytest.mark.parametrize(
    "key,value,refused",
    [
        ("kueue.x-k8s.io/elastic-job", "true", True),
        ("kueue.x-k8s.io/admission-gated-by", "acme.com/mine", True),
        ("kueue.x-k8s.io/prebuilt-workload-name", "job-admitted", True),
        ("alpha.jobset.sigs.k8s.io/exclusive-topology", "karpenter.sh/nodepool", True),
        (TOPOLOGY, "cloud.google.com/gce-topology-block", False),
        (TOPOLOGY, "acme.com/rack", True),
        ("karpenter.sh/do-not-disrupt", "true", False),
        ("acme.com/own", "any", False),
    ],
)
def test_people_write_no_labels_or_annotations_for_controllers(key: str, value: str, *, refused: bool) -> None:
    expected = {"label-of-kueues-own"} if refused else set[str]()
    nested = cron_job(pod())
    nested["spec"]["jobTemplate"]["metadata"]["annotations"] = {key: value}
    of_pods = job(pod())
    of_pods["spec"]["template"]["metadata"] = {"annotations": {key: value}}
    of_set = job_set(pod())
    of_set["spec"]["replicatedJobs"][0]["template"]["metadata"] = {"annotations": {key: value}}

    for each in (job(pod(), annotations={key: value}), nested, of_pods, of_set):
        assert broken(each) == expected
    before = job(pod(), annotations={key: value})
    later = {**before, "spec": {**before["spec"], "activeDeadlineSeconds": 60}}
    assert broken(later, old=before) == (expected if key == TOPOLOGY else set()), "a controller may have written it"


def test_a_job_of_a_cron_job_is_no_part_of_admitted_work() -> None:
    """`kubectl create job --from=cronjob/NAME` writes such a reference."""
    assert broken(job(pod(), ownerReferences=[OWNER | {"kind": "CronJob"}])) == set()
    assert broken(made("v1", "Pod", pod(priorityClassName="gpu-production"), ownerReferences=[OWNER | {"kind": "CronJob"}])) == {
        "owner-of-ones-own"
    }


def test_a_reference_does_not_become_a_controllers_by_a_second_change() -> None:
    before = job(pod(), ownerReferences=[OWNER | {"controller": False}])

    assert broken(job(pod(), ownerReferences=[OWNER]), old=before) == {"owner-of-ones-own"}


def test_a_part_of_other_work_stays_one_and_is_changed_by_its_controller() -> None:
    owner = OWNER | {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2"}
    labels = {"jobset.sigs.k8s.io/restart-attempt": "0"}
    before = job(pod(), ownerReferences=[owner], labels=labels)

    def changed(spec: Object | None = None, **metadata: Any) -> Object:
        return {**before, "metadata": {**before["metadata"], **metadata}, "spec": before["spec"] | (spec or {})}

    assert broken(changed(annotations={"looked-at": "true"}), old=before) == set()
    assert broken(changed(ownerReferences=[]), old=before) == {"owner-of-ones-own"}
    assert broken(changed(ownerReferences=[owner | {"name": "other"}]), old=before) == {"owner-of-ones-own"}
    assert "owner-of-ones-own" in broken(changed({"parallelism": 64}), old=before)
    assert broken(changed(labels={}), old=before) == {"label-of-kueues-own"}
    sender = "system:serviceaccount:jobset-system:jobset-controller-manager"
    assert broken(changed(labels={}), old=before, sender=sender) == {NOT_EVALUATED}


@pytest.mark.parametrize("name", ["deviceclass.resource.kubernetes.io/gpu", "nvidia.com/mig-1g.5gb", "acme.com/fuse"])
@pytest.mark.parametrize("kind", QUEUED)
def test_queued_work_requests_what_its_queue_counts(kind: Callable[[Object], Object], name: str) -> None:
    spec = pod()
    spec["containers"][0]["resources"]["limits"][name] = 1

    assert broken(kind(spec)) == {"field-not-allowed"}


def test_a_pattern_of_messages_does_not_count_as_an_end() -> None:
    rules = [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["^x$"]}, AGAIN]

    assert broken(job_set(pod(), failurePolicy={"rules": rules})) == {"never-ends"}


def prefers(key: str, operator: str = "In") -> Object:
    term = {"matchExpressions": [{"key": key, "operator": operator, **({"values": ["7"]} if operator == "In" else {})}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}}


def requires(key: str, operator: str) -> Object:
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": operator}]}]
            }
        }
    }


@pytest.mark.parametrize(
    "affinity,rules",
    [
        (prefers("acme.com/rack"), set()),
        (requires("acme.com/rack", "DoesNotExist"), set()),
        (requires("acme.com/rack", "Exists"), {"affinity-to-others"}),
        (requires("node-role.kubernetes.io/control-plane", "DoesNotExist"), set()),
    ],
)
def test_a_node_label_is_known_where_it_must_be_there(affinity: Object, rules: set[str]) -> None:
    assert broken(job(pod(affinity=affinity))) == rules


def test_only_its_queue_starts_waiting_work() -> None:
    waiting, started = (job(pod(), ends={**DEADLINE, "suspend": each}) for each in (True, False))

    assert broken(started, old=waiting) == {"work-past-the-queue"}
    assert broken(waiting, old=started) == set()


def test_a_label_of_a_running_pod_is_judged_alone() -> None:
    spec = pod(nodeName="gpu-7", priority=10, tolerations=[{"operator": "Exists"}])
    before = made("v1", "Pod", spec, finalizers=["batch.kubernetes.io/job-tracking"], ownerReferences=[OWNER])
    labels = {**before["metadata"]["labels"], "looked-at": "true"}

    assert broken({**before, "metadata": {**before["metadata"], "labels": labels}}, old=before) == set()
    assert broken({**before, "metadata": {**before["metadata"], "labels": {**labels, "flexspot.dev/team": "team-b"}}}, old=before) == {
        "billed-to-others"
    }


def claim(**spec: Any) -> Object:
    return made("v1", "PersistentVolumeClaim", {**EPHEMERAL, **spec})


def test_a_claim_is_bound_to_a_volume_only_by_kubernetes() -> None:
    policy = replace(CLAIMS, conditions=CLAIMS.conditions[:1])  # This evaluator has no authorizer.
    bound = claim(volumeName="pvc-1", storageClassName="gp3")

    assert set(problems_of(bound, policy, old=claim(storageClassName="gp3"))) == {"volume-of-the-platform"}
    assert problems_of(bound, policy, old=bound) == {}
    assert set(problems_of(claim(storageClassName=""), policy, old=claim())) == {"volume-of-the-platform"}
    platforms = claim(storageClassName="")
    assert set(problems_of({**platforms, "metadata": {**platforms["metadata"], "ownerReferences": [OWNER]}}, policy, old=platforms)) == {
        "volume-of-the-platform"
    }
    old_way = claim()
    old_way["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": ""}
    assert set(problems_of(old_way, policy)) == {"volume-of-the-platform"}
