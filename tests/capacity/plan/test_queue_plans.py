"""Cohorts, ClusterQueues and LocalQueues: owned and unowned quota."""

from __future__ import annotations

import pytest
from plan_settings import Settings, local, own_class, plan_of, pool, queue_of, team

from flexspot.capacity.plan.model import Amount, CohortPlan, FlavorQuota

ONE = Amount(gpus=1, vcpu=4, memory_mib=16384)
TWO = Amount(gpus=2, vcpu=8, memory_mib=32768)


def l4(*teams: Settings, **more: object) -> Settings:
    """Return settings with eight g6.xlarge (one GPU, 4 vCPU, 16 GiB each) for training."""
    return local(pool("l4", "g6.xlarge", "spot", 8, "training"), teams=list(teams), cohort="root", **more)


def test_a_team_without_shares_has_no_queue_and_one_with_a_share_of_zero_may_borrow() -> None:
    plan = plan_of(l4(team("none"), team("borrower", shares={"l4": 0})))

    assert [(queue.cluster_queue, queue.quotas[0].nominal.gpus) for queue in plan.queues] == [("borrower", 0)]


def test_limits_have_vcpu_and_memory_in_proportion_like_shares() -> None:
    red = team("red", shares={"l4": 2}, borrowing_limits={"l4": 1}, lending_limits={"l4": 2})

    assert queue_of(plan_of(l4(red, team("blue", shares={"l4": 2}))), "red").quotas == (FlavorQuota("l4", TWO, ONE, TWO),)


def test_unowned_quota_belongs_to_the_root_cohort() -> None:
    plan = plan_of(
        l4(
            team("red", shares={"l4": 2}, cohort="group"),
            team("blue", shares={"l4": 3}),
            cohorts=[{"name": "group", "shares": {"l4": 1}, "weight": 2}],
        )
    )

    assert plan.cohorts == (
        CohortPlan("root", None, 1, (FlavorQuota("l4", TWO),)),
        CohortPlan("group", "root", 2, (FlavorQuota("l4", ONE),)),
    )


def test_the_cohort_tree_is_that_of_the_settings_the_root_first() -> None:
    plan = plan_of(l4(team("red", shares={"l4": 1}, cohort="a"), cohorts=[{"name": "b"}, {"name": "a", "parent": "b"}]))

    assert [(cohort.name, cohort.parent) for cohort in plan.cohorts] == [("root", None), ("a", "b"), ("b", "root")]
    assert queue_of(plan, "red").cohort == "a"


def test_shares_of_several_pools_of_one_flavor_are_added() -> None:
    settings = local(
        pool("spot", "g6.xlarge", "spot", 4, "climb"),
        pool("on-demand", "g6.xlarge", "on-demand", 4, "climb"),
        classes={"climb": own_class("climb", fallback="stock-out", capacity=["spot", "on-demand"])},
        teams=[team("red", shares={"spot": 1, "on-demand": 1})],
    )

    assert queue_of(plan_of(settings), "red").quotas == (FlavorQuota("any-l4", TWO),)


def test_a_limit_of_one_pool_of_a_flavor_does_not_limit_its_other_pools() -> None:
    settings = local(
        pool("spot", "g6.xlarge", "spot", 4, "climb"),
        pool("on-demand", "g6.xlarge", "on-demand", 4, "climb"),
        classes={"climb": own_class("climb", fallback="stock-out", capacity=["spot", "on-demand"])},
        teams=[team("red", shares={"spot": 2, "on-demand": 2}, borrowing_limits={"spot": 0}, lending_limits={"spot": 1})],
    )

    [quota] = queue_of(plan_of(settings), "red").quotas

    assert quota.borrowing_limit is not None
    assert quota.borrowing_limit.gpus == 0 + 2, "no Spot GPUs, and the two on-demand GPUs that it does not own"
    assert quota.lending_limit is not None
    assert quota.lending_limit.gpus == 1 + 2


@pytest.mark.parametrize(
    "platform,own,stop", [("none", "none", "none"), ("none", "drain", "drain"), ("hold", "none", "hold"), ("drain", "hold", "drain")]
)
def test_the_stricter_stop_of_platform_and_team_applies(platform: str, own: str, stop: str) -> None:
    plan = plan_of(l4(team("red", shares={"l4": 2}, stop=own), team("blue", shares={"l4": 2}), queueing={"stop": platform}))

    assert (queue_of(plan, "red").stop, queue_of(plan, "blue").stop) == (stop, platform)


@pytest.mark.parametrize("fallback,moves_on", [("quota", True), ("stock-out", False)])
def test_a_queue_tries_the_next_flavor_only_with_quota_fallback(fallback: str, *, moves_on: bool) -> None:
    settings = local(
        pool("spot", "g6.xlarge", "spot", 4, "own"),
        classes={"own": own_class("own", fallback=fallback)},
        teams=[team("red", shares={"spot": 1})],
    )

    assert queue_of(plan_of(settings), "red").moves_on is moves_on
