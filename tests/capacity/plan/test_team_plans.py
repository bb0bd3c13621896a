"""Teams' namespaces: their quotas follow from what their queues could ever admit."""

from __future__ import annotations

from plan_settings import Settings, local, own_class, plan_of, pool, team, team_of

HUNDRED = pool("l4", "g6.xlarge", "spot", 100, "training")


def max_gpus(*teams: Settings, **more: object) -> int:
    """Return the quota of team red, of a hundred GPUs."""
    return team_of(plan_of(local(HUNDRED, teams=list(teams), **more)), "red").max_gpus


def hard(**more: object) -> dict[str, str]:
    """Return the quotas of team red, which may use a hundred GPUs, with `more` in its settings."""
    return team_of(plan_of(local(HUNDRED, teams=[team("red", shares={"l4": 0}, **more)])), "red").hard


def test_a_namespace_has_the_quotas_of_its_settings() -> None:
    quotas = hard(max_pods=500, max_jobs=20, max_volumes=3, max_storage_gib=100)

    assert (quotas["pods"], quotas["count/jobs.batch"], quotas["persistentvolumeclaims"], quotas["requests.storage"]) == (
        "500",
        "20",
        "3",
        "100Gi",
    )


def test_the_default_is_two_pods_per_gpu_so_that_each_can_be_replaced() -> None:
    settings = local(pool("l4", "g6.xlarge", "spot", 150, "training"), teams=[team("red", shares={"l4": 0})])

    assert team_of(plan_of(settings), "red").hard["pods"] == "300"


def test_a_quota_never_has_fewer_pods_than_gpus() -> None:
    assert hard(max_pods=7)["pods"] == "100"


def test_no_container_has_more_than_the_largest_node() -> None:
    settings = local(pool("l4", "g6.xlarge", "spot", 4, "training"), pool("a10g", "g5.48xlarge", "spot", 2, "training"))

    assert team_of(plan_of(settings), "red").container_limits == {"cpu": "192", "memory": "768Gi"}


def test_groups_are_unique_and_sorted() -> None:
    plan = plan_of(local(HUNDRED, teams=[team("red", submitters=["ml-red@acme.com", "ci", "ci"], viewers=["finance"])]))

    red = team_of(plan, "red")
    assert (red.submitters, red.viewers) == (("ci", "ml-red@acme.com"), ("finance",))


def test_a_team_may_borrow_the_whole_flavor_without_a_limit() -> None:
    assert max_gpus(team("red", shares={"l4": 2}), team("blue", shares={"l4": 50})) == 100


def test_a_borrowing_limit_is_added_to_the_teams_share() -> None:
    assert max_gpus(team("red", shares={"l4": 2}, borrowing_limits={"l4": 3}), team("blue")) == 2 + 3


def test_a_cohorts_limit_is_added_to_all_shares_inside_it() -> None:
    cohorts = [{"name": "group", "shares": {"l4": 10}, "borrowing_limits": {"l4": 1}}]
    teams = (team("red", cohort="group", shares={"l4": 2}), team("green", cohort="group", shares={"l4": 5}), team("blue"))

    assert max_gpus(*teams, cohorts=cohorts) == (10 + 2 + 5) + 1


def test_the_strictest_cohort_on_the_way_to_the_root_applies() -> None:
    cohorts = [
        {"name": "department", "shares": {"l4": 1}, "borrowing_limits": {"l4": 4}},
        {"name": "group", "parent": "department", "shares": {"l4": 0}, "borrowing_limits": {"l4": 50}},
    ]
    teams = (team("red", cohort="group", shares={"l4": 2}), team("green", cohort="department", shares={"l4": 3}))

    assert max_gpus(*teams, cohorts=cohorts) == (1 + 2 + 3) + 4


def test_every_flavor_and_unqueued_gpus_add_to_the_quota() -> None:
    settings = local(
        pool("l4", "g6.xlarge", "spot", 4, "training"),
        pool("a10g", "g5.xlarge", "spot", 2, "training"),
        pool("serving", "g6.xlarge", "on-demand", 8, "inference"),
        teams=[team("red", shares={"l4": 1, "a10g": 1}, borrowing_limits={"l4": 1}, unqueued={"serving": 3}, monthly_budget_usd=7)],
    )

    red = team_of(plan_of(settings), "red")

    assert red.max_gpus == (1 + 1) + 2 + 3
    assert (red.unqueued_gpus, red.unqueued_priority_classes, red.monthly_budget_usd) == (3, ("gpu-production",), 7)


def test_only_unqueued_classes_may_use_unqueued_gpus() -> None:
    classes = {"other": own_class("other", queued=False, capacity=["on-demand"])}
    settings = local(HUNDRED, pool("serving", "g6.xlarge", "on-demand", 8, "other"), classes=classes, teams=[team("red")])

    assert team_of(plan_of(settings), "red").unqueued_priority_classes == ("own-other",)
