"""Routes of the pods of each class to their capacity."""

from __future__ import annotations

import pytest
from plan_settings import Settings, eks, gke, local, plan_of, pool, route_of

from flexspot.capacity.plan.model import Taint


def test_a_class_does_not_tolerate_the_pools_of_others() -> None:
    plan = plan_of(local(pool("own", "g6.xlarge", "spot", 1, "training"), pool("other", "g5.xlarge", "spot", 1, "interactive")))

    assert Taint("flexspot.dev/class", "interactive") not in route_of(plan, "training").tolerations
    assert route_of(plan, "training").node_affinity == ("karpenter.sh/nodepool", ("own",))


@pytest.mark.parametrize(
    "settings,seconds",
    [
        (gke(pool("p", "g2-standard-8", "spot", 1, "training")), 15),
        (gke(pool("p", "g2-standard-8", "spot", 1, "training", shutdown_grace_seconds=120)), 90),
        (eks(pool("p", "g6.xlarge", "spot", 1, "training")), 90),
        (eks(pool("p", "g6.xlarge", "spot", 1, "training"), classes={"training": {"grace_seconds": 300}}), 90),
        (gke(pool("p", "g2-standard-8", "flex-start", 1, "training"), classes={"training": {"grace_seconds": 300}}), 300),
    ],
    ids=["gke-15-of-90", "gke-105-for-90", "eks-90-for-90", "eks-90-of-300", "gke-flex-start-is-not-interrupted"],
)
def test_the_grace_period_is_the_classs_within_the_notice(settings: Settings, seconds: int) -> None:
    # facts/apis.md G25: more than the notice has no effect.
    assert route_of(plan_of(settings), "training").grace_seconds == seconds


def test_the_shortest_notice_of_all_pools_applies() -> None:
    slow = pool("slow", "g2-standard-8", "spot", 1, "training", shutdown_grace_seconds=60)
    settings = gke(slow, pool("fast", "g2-standard-12", "spot", 1, "training", shutdown_grace_seconds=45))

    assert route_of(plan_of(settings), "training").grace_seconds == 45 - 15


@pytest.mark.parametrize(
    "hours,more,expected",
    [(160, {}, 160), (10, {"max_run_hours": 24}, 10), (100, {"max_run_hours": 24}, 24), (None, {}, 168)],
)
def test_the_run_limit_is_the_shortest_of_class_and_nodes(hours: int | None, more: Settings, expected: int) -> None:
    flex = pool("p", "g2-standard-8", "flex-start", 1, "training", **more)

    plan = plan_of(gke(flex, classes={"training": {"run_limit_hours": hours}}))

    assert route_of(plan, "training").max_run_seconds == expected * 3600


def test_jobs_on_queued_capacity_have_their_run_time_and_keep_their_nodes() -> None:
    route = route_of(
        plan_of(gke(pool("p", "g2-standard-8", "queued", 1, "training"), classes={"training": {"run_limit_hours": 10}})), "training"
    )

    assert route.job_annotations == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "36000"}
    assert route.pod_annotations == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def test_jobs_without_a_limit_request_the_longest_run_time() -> None:
    route = route_of(
        plan_of(gke(pool("p", "g2-standard-8", "queued", 1, "training"), classes={"training": {"run_limit_hours": None}})), "training"
    )

    assert route.job_annotations == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "604800"}


def test_pods_on_gke_keep_their_nodes_if_only_empty_nodes_are_removed() -> None:
    stays = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    moved = {"training": {"disruption": {"remove": "underutilized", "idle_seconds": 600}}}
    spot = pool("p", "g2-standard-8", "spot", 1, "training")

    assert route_of(plan_of(gke(spot)), "training").pod_annotations == stays
    assert route_of(plan_of(gke(spot, classes=moved)), "training").pod_annotations == {}
    # Karpenter's pools have this setting themselves, and on Autopilot the annotation requests another kind of pod.
    assert route_of(plan_of(eks(pool("p", "g6.xlarge", "spot", 1, "training"))), "training").pod_annotations == {}
    assert route_of(plan_of(gke(spot, cluster={"mode": "autopilot"})), "training").pod_annotations == {}
