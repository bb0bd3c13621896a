"""The policies that guard a team's share: kinds without a controller in the lab, senders of requests, and the page with the attempts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cel_evaluator import judged
from guarded_work import ANNOTATIONS, CLAIMS, COMES, DEADLINE, GOES, STOPS, TEAM, Object, job, made, pod
from snapshot_fixtures import assert_snapshot

from flexspot.policies.admission.guarantee import NAME, Guarantee, guarantee_policies
from flexspot.policies.admission.scheduling_options import PROJECTS, QUEUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.policies.admission.policy import AdmissionPolicy

NO_DEVICES = "no container has a limit on nvidia.com/gpu or aws.amazon.com/neuron or google.com/tpu"
ROOT = Path(__file__).parents[3]


def taking(prefix: str, **env: Any) -> Object:
    """Return a pod whose container imports a whole ConfigMap into its environment."""
    spec = pod()
    spec["containers"][0] |= {"envFrom": [{"prefix": prefix, "configMapRef": {"name": "mine"}}], "env": [env] if env else []}
    return spec


def job_set(*pods: Object, ends: Object = DEADLINE, **spec: Any) -> Object:
    jobs = [{"name": f"job-{number}", "template": {"spec": {**ends, "template": {"spec": each}}}} for number, each in enumerate(pods)]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs, **spec})


def cron_job(spec: Object, ends: Object = DEADLINE) -> Object:
    nested = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "default"}}, "spec": {**ends, "template": {"spec": spec}}}
    return made("batch/v1", "CronJob", {"jobTemplate": nested})


def ray_cluster(spec: Object) -> Object:
    group = {"template": {"spec": spec}}
    return made("ray.io/v1", "RayCluster", {"headGroupSpec": group, "workerGroupSpecs": [group]})


def pytorch_job(spec: Object) -> Object:
    return made("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"template": {"spec": spec}}}})


NOT_EVALUATED = "not evaluated"


def problems_of(each: Object, policy: AdmissionPolicy = COMES, **how: Any) -> dict[str, list[str]]:
    """Return the problems of the object by rule, or only NOT_EVALUATED if the policy is not evaluated."""
    how = {"namespace_annotations": ANNOTATIONS, **how}
    found = judged(policy, each, namespace_labels={"flexspot.dev/team": TEAM}, **how)
    return {NOT_EVALUATED: []} if found is None else {rule: problems for rule, problems in found.items() if problems}


def broken(each: Object, **how: Any) -> set[str]:
    return set(problems_of(each, **how))


QUEUED: list[Callable[[Object], Object]] = [job, lambda spec: job_set(pod(), spec), cron_job]
OF_OPERATORS: list[Callable[[Object], Object]] = [ray_cluster, pytorch_job]
KINDS = [*QUEUED, *OF_OPERATORS]


def of_its_class(kind: Callable[[Object], Object], spec: Object) -> Object:
    """Return the object with its pods in a class for its kind, if they name the class of training."""
    services = kind in OF_OPERATORS and spec["priorityClassName"] == "gpu-training"
    return kind(spec | {"priorityClassName": "gpu-production"} if services else spec)


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
        (pod(gpus="1", terminationGracePeriodSeconds=121), {"grace-beyond-the-platforms"}),
        (pod(gpus="1000m", terminationGracePeriodSeconds=121), {"grace-beyond-the-platforms"}),
        (taking(""), {"sees-gpus-of-others"}),
        (taking("NVIDIA_"), {"sees-gpus-of-others"}),
        (taking("APP_"), set()),
        (taking("", name="NVIDIA_VISIBLE_DEVICES", value="void"), set()),
    ],
)
def test_every_kind_of_work_follows_the_same_rules(kind: Callable[[Object], Object], spec: Object, rules: set[str]) -> None:
    assert broken(of_its_class(kind, spec)) == rules


@pytest.mark.parametrize("kind", OF_OPERATORS)
def test_operators_whose_work_no_queue_admits_get_no_gpus_of_queued_classes(kind: Callable[[Object], Object]) -> None:
    assert broken(kind(pod())) == {"priority-of-others"}
    assert broken(kind(pod(priorityClassName="gpu-production"))) == set()
    assert broken(kind(pod(gpus=0))) == set()


@pytest.mark.parametrize("kind", [job, job_set, cron_job])
@pytest.mark.parametrize(
    "spec,seconds,refused",
    [
        (pod(), 576000, False),
        (pod(), 576001, True),
        (pod(), None, True),
        (pod(priorityClassName="gpu-notebooks"), 28800, False),
        (pod(priorityClassName="gpu-notebooks"), 28801, True),
        (pod(priorityClassName=""), 576000, False),
        (pod(priorityClassName=""), 576001, True),
        (pod(gpus=0), None, False),
    ],
)
def test_queued_work_with_gpus_has_a_deadline_within_its_classs_limit(
    kind: Callable[..., Object], spec: Object, seconds: int | None, *, refused: bool
) -> None:
    ends = {} if seconds is None else {"activeDeadlineSeconds": seconds}

    assert broken(kind(spec, ends=ends)) - {"work-in-the-wrong-queue"} == ({"never-ends"} if refused else set())


def test_work_of_a_class_without_a_limit_needs_its_own_deadline() -> None:
    without, *_ = guarantee_policies(Guarantee({"gpu-training": None}, (), 120))

    assert problems_of(job(pod(), ends={"activeDeadlineSeconds": 10**9}), without) == {}
    [problem] = problems_of(job(pod(), ends={}), without)["never-ends"]
    assert problem.startswith("spec.activeDeadlineSeconds is missing: the work might never end, and would keep its GPUs. To fix it: ")
    assert problem.endswith("write activeDeadlineSeconds with the seconds that it may run at most")


def test_a_deadline_that_is_too_long_is_refused_with_the_class_and_its_limit() -> None:
    [problem] = problems_of(cron_job(pod(priorityClassName="gpu-notebooks"), ends={"activeDeadlineSeconds": 90000}))["never-ends"]

    assert problem.startswith("spec.jobTemplate.spec.activeDeadlineSeconds is 90000, and class gpu-notebooks allows 28800. To fix it: ")
    assert problem.endswith("write 28800 or less; longer work saves checkpoints and is submitted again")


ENDS = {"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded", "PodFailurePolicy"]}
AGAIN = {"action": "RestartJobSetAndIgnoreMaxRestarts"}


@pytest.mark.parametrize(
    "policy,refused",
    [
        ({}, False),
        ({"maxRestarts": 0}, False),
        ({"maxRestarts": 3}, True),
        ({"maxRestarts": 3, "rules": [ENDS]}, False),
        ({"maxRestarts": 3, "rules": [{"action": "FailJobSet"}]}, False),
        ({"maxRestarts": 3, "rules": [ENDS | {"targetReplicatedJobs": ["job-1"]}]}, True),
        ({"maxRestarts": 3, "rules": [{"action": "RestartJobSet"}, ENDS]}, True),
        ({"rules": [AGAIN]}, True),
        ({"rules": [ENDS, AGAIN]}, False),
    ],
)
def test_a_job_set_does_not_recreate_a_job_that_its_deadline_has_ended(policy: Object, *, refused: bool) -> None:
    assert broken(job_set(pod(), failurePolicy=policy)) == ({"never-ends"} if refused else set())
    assert broken(job_set(pod(gpus=0), failurePolicy=policy)) == {"work-in-the-wrong-queue"}


def test_a_deadline_cannot_be_removed_from_running_work() -> None:
    assert broken(job(pod(), ends={}), old=job(pod())) == {"never-ends"}
    assert broken(job(pod(), ends={"activeDeadlineSeconds": 600}), old=job(pod())) == set()


def test_services_need_a_priority_of_work_outside_queues() -> None:
    def deployment(spec: Object) -> Object:
        return made("apps/v1", "Deployment", {"template": {"spec": spec}})

    assert broken(deployment(pod(priorityClassName="gpu-production"))) == set()
    assert broken(deployment(pod())) == {"priority-of-others"}
    assert broken(deployment(pod(priorityClassName=""))) == {"priority-of-others"}
    assert broken(deployment(pod(gpus=0, priorityClassName=""))) == set()


@pytest.mark.slow
def test_more_groups_of_pods_than_rules_check_are_refused() -> None:
    assert broken(job_set(*[pod()] * 64)) == set()
    assert broken(job_set(*[pod()] * 65)) == {"more-than-is-looked-at"}


def test_a_queue_is_one_of_the_namespaces_own() -> None:
    assert broken(job(pod(), labels={"kueue.x-k8s.io/queue-name": "big"})) == set()
    [(rule, [problem])] = problems_of(job(pod(), labels={"kueue.x-k8s.io/queue-name": "beta"})).items()
    assert rule == "work-past-the-queue"
    assert problem.endswith("To fix it: name one of these: big, default")


def queued(each: Object, queue: str | None) -> Object:
    """Return the object in another queue, or in none."""
    nested = each["spec"]["jobTemplate"] if each["kind"] == "CronJob" else each
    nested["metadata"]["labels"] = {} if queue is None else {"kueue.x-k8s.io/queue-name": queue}
    return each


@pytest.mark.parametrize("kind", [job, job_set, cron_job])
@pytest.mark.parametrize(
    "gpus,queue,beginning",
    [
        (1, "default", ""),
        (1, None, ""),
        (0, "cpu", ""),
        (1, "cpu", "label kueue.x-k8s.io/queue-name is cpu, whose machines have no GPUs: it would wait for ever. To fix it: write "),
        (0, "default", f"{NO_DEVICES}, and label kueue.x-k8s.io/queue-name is default, which is for work "),
        (0, "big", f"{NO_DEVICES}, and label kueue.x-k8s.io/queue-name is big, which is for work with GPUs. "),
        (0, None, f"{NO_DEVICES}, and label kueue.x-k8s.io/queue-name is default, which is for work "),
    ],
)
def test_work_is_in_a_queue_of_the_machines_that_it_needs(
    kind: Callable[[Object], Object], gpus: int, queue: str | None, beginning: str
) -> None:
    found = problems_of(queued(kind(pod(gpus=gpus)), queue))

    assert found.keys() == ({"work-in-the-wrong-queue"} if beginning else set())
    for problem in found.get("work-in-the-wrong-queue", ()):
        assert problem.startswith(beginning)
        assert problem.endswith(f"write kueue.x-k8s.io/queue-name: {'big, default' if gpus else 'cpu'}")


def test_a_launcher_is_in_the_queue_of_its_workers_and_tolerates_no_gpu_node_by_itself() -> None:
    assert broken(job_set(pod(gpus=0), pod())) == set()
    assert broken(queued(job_set(pod(gpus=0), pod()), "cpu")) == {"work-in-the-wrong-queue"}
    led = job_set(pod(gpus=0, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]), pod())
    assert broken(led) == {"tolerates-too-much"}
    assert broken(led, old=job_set(pod(gpus=0), pod())) == set(), "Kueue may have given it the tolerations of its workers' flavor"


def test_without_a_cpu_queue_the_refusal_refers_to_the_operators() -> None:
    [problem] = problems_of(job(pod(gpus=0)), namespace_annotations={QUEUES: "default=l4.l4-spot"})["work-in-the-wrong-queue"]

    assert problem.endswith("write kueue.x-k8s.io/queue-name: there is none; ask the platform's operators")


@pytest.mark.parametrize("kind", KINDS)
def test_work_names_a_project_of_its_team_or_none(kind: Callable[[Object], Object]) -> None:
    owned = {"namespace_annotations": {**ANNOTATIONS, PROJECTS: "asr tts"}}

    def of_project(name: str | None) -> Object:
        work = of_its_class(kind, pod())
        work["metadata"]["labels"] |= {"flexspot.dev/project": name} if name else {}
        return work

    assert problems_of(of_project(None), **owned) == problems_of(of_project("tts"), **owned) == {}
    [problem] = problems_of(of_project("ads"), **owned)["billed-to-others"]
    assert problem == (
        "label flexspot.dev/project is ads, which is no project of this team: it would be billed to others."
        " To fix it: name one of these, or leave it out: asr, tts"
    )
    assert problems_of(of_project("ads")) == {}, "without a list of its own a team names any"


OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "admitted", "uid": "1", "controller": True}


@pytest.mark.parametrize(
    "sender,evaluated",
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
def test_only_controllers_may_create_parts_of_admitted_work(sender: str, *, evaluated: bool) -> None:
    assert broken(job(pod(), ownerReferences=[OWNER]), sender=sender) == {"owner-of-ones-own" if evaluated else NOT_EVALUATED}


def test_an_update_is_judged_by_its_changes() -> None:
    before = job(pod(), ownerReferences=[OWNER], finalizers=["acme.com/controllers"])

    assert broken(before, old=before) == {NOT_EVALUATED}, "nothing of it changed"
    relabelled = job(pod(), ownerReferences=[OWNER], finalizers=["acme.com/controllers"], labels={"kueue.x-k8s.io/queue-name": "big"})
    assert broken(relabelled, old=before) == set(), "owner and finalizer were there"
    assert broken(before, old=job(pod())) == {"owner-of-ones-own", "finalizer-of-ones-own"}


def test_deletions_have_a_separate_policy() -> None:
    evicts = [rule for rule in GOES.resource_rules if rule.resources == ("pods/eviction",)]
    assert [rule.operations for rule in evicts] == [("CREATE",)]
    assert {operation for rule in GOES.resource_rules if rule not in evicts for operation in rule.operations} == {"DELETE"}
    assert {operation for rule in COMES.resource_rules for operation in rule.operations} == {"CREATE", "UPDATE"}


def test_a_refusal_names_its_rule_and_what_to_write() -> None:
    [problem] = problems_of(job(pod(priorityClassName="gpu-production")))["priority-of-others"]

    assert problem.startswith("spec.template.spec.priorityClassName is gpu-production, which is not for this kind of work. To fix it: ")
    assert problem.endswith("name one of these: gpu-notebooks, gpu-training")
    assert all(each.guards and each.stops for each in (COMES, GOES))


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


BEGIN, END = "<!-- every try -->", "<!-- end of every try -->"


def test_the_guide_lists_every_try_with_its_outcome() -> None:
    tries = yaml.safe_load((ROOT / "tests/lab/hostile_submissions.yaml").read_text())
    who = {"as_member": "a member", "as_deployer": "who may `edit`"}
    words = {
        "forbidden": "the role has no such right",
        "quota": "the team's quota does not allow it",
        "kueue": "Kueue's own webhook",
        "kubernetes": "Kubernetes itself",
    }
    rows = [
        f"| {title} | {who[group]} | {tried['because'] if tried['outcome'] == 'harmless' else words.get(tried['outcome'], '')} |"
        if tried["outcome"] in {"harmless", *words}
        else f"| {title} | {who[group]} | refused: `{tried['outcome']}` |"
        for group, each in tries.items()
        for title, tried in each.items()
    ]
    assert f"lists {len(rows)} attempts and their outcome" in (ROOT / "README.md").read_text()
    page = ROOT / "docs/guides/guarantee.md"
    text = page.read_text()
    head, tail = text[: text.index(BEGIN)], text[text.index(END) :]
    table = "\n".join(["| it tries to be | sent by | and |", "|---|---|---|", *rows])
    assert_snapshot(f"{head}{BEGIN}\n\n{table}\n\n{tail}", page)
    assert NAME in head
    assert all(f"`{each.rule}`" in head for policy in (COMES, GOES, CLAIMS, STOPS) for each in policy.validations), "each rule has its line"
