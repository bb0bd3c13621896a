"""How the pods of each class get to their capacity."""

from __future__ import annotations

import pytest
from plan_settings import Settings, eks, gke, local, own_class, plan_of, pool, route_of

from capacity.plan.model import RoutePool, Taint

ON_GKE = {"reservation": {"name": "bought"}}


def test_the_class_taint_is_tolerated_by_the_route_and_never_given_by_a_flavor() -> None:
    plan = plan_of(local(pool("own", "g6.xlarge", "spot", 1, "training")))

    own = Taint("flexspot.dev/class", "training")
    assert own in route_of(plan, "training").tolerations
    assert all(own not in flavor.tolerated for flavor in plan.flavors)


def test_a_class_does_not_tolerate_the_pools_of_others() -> None:
    plan = plan_of(local(pool("own", "g6.xlarge", "spot", 1, "training"), pool("other", "g5.xlarge", "spot", 1, "interactive")))

    assert Taint("flexspot.dev/class", "interactive") not in route_of(plan, "training").tolerations
    assert route_of(plan, "training").node_affinity == ("karpenter.sh/nodepool", ("own",))


def test_pools_are_in_the_order_of_the_class_and_then_by_name() -> None:
    plan = plan_of(
        gke(
            pool("a-spot", "g2-standard-8", "spot", 1, "training"),
            pool("c-reserved", "g2-standard-8", "reserved", 1, "training", **ON_GKE),
            pool("b-reserved", "g2-standard-12", "reserved", 1, "training", **ON_GKE),
        )
    )

    assert [(route_pool.pool, route_pool.capacity_type, route_pool.flavor) for route_pool in route_of(plan, "training").pools] == [
        ("b-reserved", "reserved", "b-reserved"),
        ("c-reserved", "reserved", "c-reserved"),
        ("a-spot", "spot", "a-spot"),
    ]


def test_a_stock_out_class_selects_its_compute_class_on_gke_and_nothing_beside_it() -> None:
    plan = plan_of(
        gke(
            pool("l4-reserved", "g2-standard-8", "reserved", 1, "inference", **ON_GKE),
            pool("l4-on-demand", "g2-standard-8", "on-demand", 1, "inference"),
        )
    )

    route = route_of(plan, "inference")

    assert route.node_selector == {"cloud.google.com/compute-class": "inference"}
    assert route.node_affinity is None, "GKE refuses pods that combine a compute class with other selectors"
    assert [route_pool.pool for route_pool in route.pools] == ["l4-reserved", "l4-on-demand"]


def test_a_stock_out_class_is_kept_to_its_own_pools_on_eks_where_weights_order_them() -> None:
    route = route_of(plan_of(eks(pool("l4", "g6.xlarge", "on-demand", 1, "inference"))), "inference")

    assert (route.node_selector, route.node_affinity) == ({}, ("karpenter.sh/nodepool", ("l4",)))


def test_an_unqueued_class_has_no_flavor() -> None:
    route = route_of(plan_of(local(pool("l4", "g6.xlarge", "on-demand", 1, "inference"))), "inference")

    assert not route.queued
    assert [(route_pool.pool, route_pool.flavor) for route_pool in route.pools] == [("l4", None)]


def test_the_pools_of_a_queued_class_that_moves_on_are_one_flavor() -> None:
    classes = {"climb": own_class("climb", fallback="stock-out", capacity=["spot", "on-demand"])}
    pools = [pool("one", "g6.xlarge", "spot", 1, "climb"), pool("two", "g6.xlarge", "on-demand", 1, "climb")]

    route_pools: tuple[RoutePool, ...] = route_of(plan_of(local(*pools, classes=classes)), "climb").pools

    assert [(route_pool.pool, route_pool.flavor) for route_pool in route_pools] == [("one", "any-l4"), ("two", "any-l4")]


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
def test_the_grace_period_is_what_the_class_wants_and_the_notice_allows(settings: Settings, seconds: int) -> None:
    # facts/apis.md G25: more than the notice has no effect.
    assert route_of(plan_of(settings), "training").grace_seconds == seconds


def test_the_shortest_notice_of_all_pools_counts() -> None:
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


def test_a_service_has_no_run_limit() -> None:
    assert route_of(plan_of(local(pool("p", "g6.xlarge", "on-demand", 1, "inference"))), "inference").max_run_seconds is None


def test_priorities_are_those_of_the_classes_that_a_pool_serves_the_highest_first() -> None:
    plan = plan_of(local(pool("p", "g6.xlarge", "spot", 1, "spot-low", "training"), pool("q", "g6.xlarge", "on-demand", 1, "inference")))

    assert [(each.name, each.value, each.preempts) for each in plan.priorities] == [
        ("gpu-production", 1_000_000, True),
        ("gpu-training", 100_000, False),
        ("spot-workload-low", 100, False),
    ]


def test_jobs_with_queued_capacity_carry_their_run_time_and_their_pods_stay() -> None:
    route = route_of(
        plan_of(gke(pool("p", "g2-standard-8", "queued", 1, "training"), classes={"training": {"run_limit_hours": 10}})), "training"
    )

    assert route.job_annotations == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "36000"}
    assert route.pod_annotations == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def test_without_a_limit_of_their_own_they_ask_for_the_longest_that_there_is() -> None:
    route = route_of(
        plan_of(gke(pool("p", "g2-standard-8", "queued", 1, "training"), classes={"training": {"run_limit_hours": None}})), "training"
    )

    assert route.job_annotations == {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "604800"}


def test_jobs_without_queued_capacity_carry_no_run_time() -> None:
    routes = [
        *plan_of(gke(pool("p", "g2-standard-8", "flex-start", 1, "training"))).routes,
        *plan_of(eks(pool("p", "g6.xlarge", "spot", 1, "training"))).routes,
        *plan_of(local(pool("p", "g6.xlarge", "spot", 1, "training"))).routes,
    ]

    assert [route.job_annotations for route in routes] == [{}] * 3


def test_pods_on_gke_keep_their_nodes_where_the_class_has_nodes_go_when_empty() -> None:
    stays = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    moved = {"training": {"disruption": {"remove": "underutilized", "idle_seconds": 600}}}
    spot = pool("p", "g2-standard-8", "spot", 1, "training")

    assert route_of(plan_of(gke(spot)), "training").pod_annotations == stays
    assert route_of(plan_of(gke(spot, classes=moved)), "training").pod_annotations == {}
    # Karpenter's pools say it themselves, and on Autopilot the annotation makes pods of another sort.
    assert route_of(plan_of(eks(pool("p", "g6.xlarge", "spot", 1, "training"))), "training").pod_annotations == {}
    assert route_of(plan_of(gke(spot, cluster={"mode": "autopilot"})), "training").pod_annotations == {}
