"""The policies that guard a team's share: kinds without a controller in the lab, senders of requests, and the page with the attempts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from guarded_work import (
    AGAIN,
    ANNOTATIONS,
    CLAIMS,
    COMES,
    ELSEWHERE,
    FACTS,
    GOES,
    KINDS,
    NOT_EVALUATED,
    OF_OPERATORS,
    OWNER,
    QUEUED,
    STOPS,
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
from snapshot_fixtures import assert_snapshot

from flexspot.policies.admission.guarantee import NAME, guarantee_policies
from flexspot.policies.admission.scheduling_options import PROJECTS, QUEUES, UNQUEUED_POOLS

if TYPE_CHECKING:
    from collections.abc import Callable


NO_DEVICES = "no container has a limit on nvidia.com/gpu or aws.amazon.com/neuron or google.com/tpu"
ROOT = Path(__file__).parents[3]


def taking(prefix: str, **env: Any) -> Object:
    """Return a pod whose container imports a whole ConfigMap into its environment."""
    spec = pod()
    spec["containers"][0] |= {"envFrom": [{"prefix": prefix, "configMapRef": {"name": "mine"}}], "env": [env] if env else []}
    return spec


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
    without, *_ = guarantee_policies(replace(FACTS, queued={"gpu-training": None}))

    assert problems_of(job(pod(), ends={"activeDeadlineSeconds": 10**9}), without) == {}
    [problem] = problems_of(job(pod(), ends={}), without)["never-ends"]
    assert problem.startswith("spec.activeDeadlineSeconds is missing: the work might never end, and would keep its GPUs. To fix it: ")
    assert problem.endswith("write activeDeadlineSeconds with the seconds that it may run at most")


def test_a_deadline_that_is_too_long_is_refused_with_the_class_and_its_limit() -> None:
    [problem] = problems_of(cron_job(pod(priorityClassName="gpu-notebooks"), ends={"activeDeadlineSeconds": 90000}))["never-ends"]

    assert problem.startswith("spec.jobTemplate.spec.activeDeadlineSeconds is 90000, and class gpu-notebooks allows 28800. To fix it: ")
    assert problem.endswith("write 28800 or less; longer work saves checkpoints and is submitted again")


ENDS = {"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded", "PodFailurePolicy"]}


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
    assert broken(job_set(launcher(), pod())) == set()
    assert broken(queued(job_set(launcher(), pod()), "cpu")) == {"work-in-the-wrong-queue"}
    led = job_set(launcher(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]), pod())
    assert broken(led) == {"tolerates-too-much"}
    assert broken(led, old=job_set(launcher(), pod())) == {"tolerates-too-much"}, "an update, too"


GPU, POOL = "nvidia.com/gpu.product", "karpenter.sh/nodepool"


def launcher(label: str = GPU, operator: str = "DoesNotExist", **more: Any) -> Object:
    terms = [{"matchExpressions": [{"key": label, "operator": operator}]}]
    near = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return pod(gpus=0, affinity=near, **more)


@pytest.mark.parametrize("spec", [pod(gpus=0), launcher(operator="Exists"), launcher(label="kubernetes.io/arch")])
def test_a_launcher_that_may_run_on_gpu_nodes_is_refused_with_the_label_that_they_have(spec: Object) -> None:
    [problem] = problems_of(job_set(pod(), spec))["launcher-on-gpu-nodes"]

    assert problem.startswith("spec.replicatedJobs[1].template.spec.template.spec requests no GPU and may run on GPU nodes")
    assert "require nodes without nvidia.com/gpu.product in affinity.nodeAffinity" in problem


def whole_node(value: str, **how: Any) -> Object:
    return {"tolerations": [{"key": "flexspot.dev/whole-node", "value": value, "effect": "NoSchedule", **how}]}


@pytest.mark.parametrize("kind", QUEUED)
def test_queued_pods_with_several_gpus_use_all_of_a_node(kind: Callable[[Object], Object]) -> None:
    assert broken(kind(pod(gpus=8, **whole_node("8")))) == set()
    assert broken(kind(pod(gpus="4", **whole_node("4")))) == set()
    assert broken(kind(pod(gpus=8))) == {"part-of-a-node"}
    assert broken(kind(pod(gpus=3))) == {"part-of-a-node"}


@pytest.mark.parametrize(
    "spec", [pod(gpus=1, **whole_node("8")), pod(gpus=8, **whole_node("", operator="Exists")), launcher(**whole_node("8"))]
)
def test_only_pods_with_all_gpus_of_a_whole_node_tolerate_its_taint(spec: Object) -> None:
    assert "tolerates-too-much" in broken(job_set(pod(), spec))


def test_pods_without_containers_are_judged() -> None:
    """A CustomResource may lack fields that Kubernetes requires in pods. A rule that fails would refuse it with an error."""
    assert problems_of(made("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": {"spec": {}}}})) == {}


def test_gpus_of_sidecars_are_a_part_of_a_pods_gpus() -> None:
    half = pod(gpus=4)["containers"][0]
    spec = pod(gpus=4, initContainers=[half | {"name": "beside", "restartPolicy": "Always"}])

    assert broken(job(spec | whole_node("8"))) == set()
    assert broken(job(spec | whole_node("4"))) == {"tolerates-too-much"}


def test_a_pod_of_several_gpus_is_refused_with_the_line_or_the_sizes_that_nodes_have() -> None:
    [whole], [part] = (problems_of(job(pod(gpus=gpus)))["part-of-a-node"] for gpus in (8, 3))

    assert whole.endswith('add a toleration with key: flexspot.dev/whole-node, value: "8", effect: NoSchedule')
    assert part.endswith("request one of these: 1, 4, 8")


CLASS = "cloud.google.com/compute-class"
SPOT = {"tolerations": [{"key": "example.com/spot", "operator": "Exists"}]}


def selected(*expressions: Object, **more: Any) -> Object:
    terms = [{"matchExpressions": [each]} for each in expressions]
    near = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return pod(priorityClassName="gpu-production", affinity=near, **more)


@pytest.mark.parametrize(
    "spec,refused",
    [
        (pod(priorityClassName="gpu-production"), False),
        (pod(priorityClassName="gpu-production", **SPOT), True),
        (pod(priorityClassName="gpu-production", nodeSelector={POOL: "l4-on-demand"}, **SPOT), False),
        (pod(priorityClassName="gpu-production", nodeSelector={"topology.kubernetes.io/zone": "a"}, **SPOT), True),
        (pod(priorityClassName="gpu-production", gpus=8, **whole_node("8")), True),
        (pod(priorityClassName="gpu-production", nodeSelector={CLASS: "inference"}), True),
        (selected({"key": CLASS, "operator": "In", "values": ["inference"]}), True),
        (selected({"key": CLASS, "operator": "DoesNotExist"}), False),
        (selected({"key": POOL, "operator": "In", "values": ["l4-on-demand"]}, **SPOT), False),
        (selected({"key": POOL, "operator": "NotIn", "values": ["l4-spot"]}, **SPOT), False),
        (selected({"key": GPU, "operator": "In", "values": ["l4"]}, **SPOT), True),
        (
            selected(
                {"key": POOL, "operator": "In", "values": ["l4-on-demand"]},
                {"key": POOL, "operator": "In", "values": ["l4-spot"]},
                **SPOT,
            ),
            True,
        ),
        (pod(gpus=0, priorityClassName="", **SPOT), False),
    ],
)
def test_a_service_runs_only_in_pools_in_which_its_team_has_gpus_outside_of_queues(spec: Object, *, refused: bool) -> None:
    deployment = made("apps/v1", "Deployment", {"template": {"spec": spec}})

    assert broken(deployment) == ({"unqueued-elsewhere"} if refused else set())


def test_a_service_of_a_compute_class_selects_its_class_alone() -> None:
    """GKE adds the toleration, and refuses other selectors beside the class."""
    spec = pod(priorityClassName="gpu-production", nodeSelector={CLASS: "inference"})
    deployment = made("apps/v1", "Deployment", {"template": {"spec": spec}})

    assert broken(deployment, namespace_annotations={**ANNOTATIONS, UNQUEUED_POOLS: "l4-class"}) == set()


def test_a_service_elsewhere_is_refused_with_the_pools_of_its_team() -> None:
    deployment = made("apps/v1", "Deployment", {"template": {"spec": pod(priorityClassName="gpu-production", **SPOT)}})

    [problem] = problems_of(deployment)["unqueued-elsewhere"]
    assert problem.startswith("spec.template.spec may run in pool l4-spot, in which this team has no GPUs outside of queues. To fix it: ")
    assert problem.endswith("select one of these pools by karpenter.sh/nodepool: l4-on-demand")
    [problem] = problems_of(deployment, namespace_annotations={QUEUES: "default="})["unqueued-elsewhere"]
    assert problem.endswith("ask the platform's operators for some")


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


@pytest.mark.parametrize("kind", KINDS)
def test_people_request_no_gpus_outside_of_teams(kind: Callable[[Object], Object]) -> None:
    without = pod(gpus=0)

    assert broken(kind(pod()), policy=ELSEWHERE) == {"gpus-outside-of-teams"}
    assert broken(kind(without) if kind is not QUEUED[1] else job_set(without), policy=ELSEWHERE) == set()
    assert broken(made("ray.io/v1", "RayCluster", {"headGroupSpec": {"template": {"spec": {}}}}), policy=ELSEWHERE) == set()
    daemons = made("apps/v1", "DaemonSet", {"template": {"spec": pod(gpus=8)}})
    assert broken(daemons, policy=ELSEWHERE) == {"gpus-outside-of-teams"}
    assert broken(job_set(*[without] * 64, pod()), policy=ELSEWHERE) == {"gpus-outside-of-teams"}
    assert broken(kind(pod()), policy=ELSEWHERE, sender="system:serviceaccount:gpu-operator:gpu-operator") == {NOT_EVALUATED}


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
    assert all(f"`{each.rule}`" in head for policy in (COMES, GOES, CLAIMS, STOPS, ELSEWHERE) for each in policy.validations), (
        "each rule has its line"
    )
