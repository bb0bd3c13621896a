"""The most expensive workloads and users of a team, and what is unknown about them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from chargeback_months import HOUR, Month

from flexspot.capacity.catalog.node_labels import USER_LABEL
from flexspot.capacity.chargeback.queries import Question, Workload, label_of, workload_of
from flexspot.capacity.chargeback.report import IdlePolicy, top_consumers

JOBSET, LEADERS, HASH = "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "pod-template-hash"


@pytest.mark.parametrize(
    "controller,labels,workload",
    [
        (("Job", "train-workers-0"), {JOBSET: "train"}, "JobSet ns/train"),
        (("Job", "train"), {}, "Job ns/train"),
        (("ReplicaSet", "serve-7d9f8"), {HASH: "7d9f8"}, "Deployment ns/serve"),
        (("ReplicaSet", "serve-7d9f8"), {HASH: "other"}, "ReplicaSet ns/serve-7d9f8"),
        (("ReplicaSet", "rollout-7d9f8"), {}, "ReplicaSet ns/rollout-7d9f8"),
        (("StatefulSet", "llm-0"), {LEADERS: "llm"}, "LeaderWorkerSet ns/llm"),
        (("StatefulSet", "db"), {JOBSET: "train"}, "StatefulSet ns/db"),
        (("Job", "mine"), {LEADERS: "theirs"}, "Job ns/mine"),
        (("RayCluster", "ray"), {}, "RayCluster ns/ray"),
        (("", ""), {JOBSET: "train"}, "Pod ns/pod"),
    ],
)
def test_a_pods_workload_is_from_its_controller_and_the_matching_labels(
    controller: tuple[str, str], labels: dict[str, str], workload: str
) -> None:
    assert str(workload_of("ns", "pod", controller, {label_of(key): value for key, value in labels.items()})) == workload


def test_pods_of_one_jobset_are_one_workload_and_of_two_users_two_consumers() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    for number, user in enumerate(("ana", "ana", "ben")):
        month.pod(f"p{number}", "n1", 0, 10 * HOUR, gpus=2, controller=f"Job/train-{number}", labels={JOBSET: "train", USER_LABEL: user})

    report = month.report()
    workload = Workload("JobSet", "ns-vision", "train")
    assert [(each.workload, each.user, each.totals.gpu_hours) for each in report.work] == [(workload, "ana", 40.0), (workload, "ben", 20.0)]
    [found] = top_consumers(report, 10, lambda line: line.workload).values()
    assert [(key, totals.gpu_hours) for key, totals in found.top] == [(workload, 60.0)]
    assert found.share(found.top[0][1]) == 1.0


def test_a_pod_that_is_relabelled_is_its_new_users_from_then_on_in_whatever_slices() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("p", "n1", 0, 10 * HOUR, gpus=8)
    for user, start, end in (("ana", 0, 4), ("ben", 4, 10)):
        month.seen(Question.WORK_LABELS, {"uid": "uid-p", label_of(USER_LABEL): user}, start * HOUR, end * HOUR)

    for hours in (1, 3, 24):
        assert {each.user: each.totals.gpu_hours for each in month.report(slice_seconds=hours * HOUR).work} == {"ana": 32.0, "ben": 48.0}
    assert month.report().complete


def test_consumers_not_shown_are_summed_and_idle_gpus_are_separate() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    for number in range(7):
        month.pod(f"p{number}", "n1", 0, (number + 1) * HOUR, gpus=1)

    report = month.report(IdlePolicy.PROPORTIONAL)
    [(team, found)] = top_consumers(report, 3, lambda line: line.workload.name).items()
    assert (team, [key for key, _ in found.top], found.count) == ("vision", ["p6", "p5", "p4"], 4)
    assert found.others.gpu_hours == 1 + 2 + 3 + 4
    assert sum((each.usd for _, each in found.top), found.others.usd) + found.idle_usd == Decimal("183.44") == found.team.usd
    assert found.idle_usd == found.team.idle_usd > 0


def test_of_equal_cost_the_greater_in_gpu_hours_and_then_the_first_by_name_is_first() -> None:
    month = Month()
    month.node("unpriced", 0, 24 * HOUR, machine="p9.48xlarge")
    for name, hours in (("b", 2), ("a", 2), ("long", 9)):
        month.pod(name, "unpriced", 0, hours * HOUR)

    [found] = top_consumers(month.report(), 10, lambda line: line.workload.name).values()
    assert [key for key, _ in found.top] == ["long", "a", "b"]
    assert [totals.unpriced for _, totals in found.top] == [totals.gpu_seconds for _, totals in found.top]
    assert found.share(found.top[0][1]) is None


def test_without_kube_pod_owner_each_pod_is_a_workload_and_a_note_says_so() -> None:
    month = Month()
    month.node("n1", 0, 24 * HOUR)
    month.pod("p1", "n1", 0, HOUR, controller="")
    report = month.report()

    assert [str(each.workload) for each in report.work] == ["Pod ns-vision/p1"]
    assert any("kube_pod_owner" in each for each in report.notes)
    assert report.complete, "no dollar is missing"
