"""The teams' namespaces: their quotas follow from what their queues could ever admit."""

from __future__ import annotations

from plan_settings import Settings, local, own_class, plan_of, pool, team, team_of

HUNDRED = pool("l4", "g6.xlarge", "spot", 100, "training")


def max_gpus(*teams: Settings, **more: object) -> int:
    """The quota of team red, of a hundred GPUs."""
    return team_of(plan_of(local(HUNDRED, teams=list(teams), **more)), "red").max_gpus


def hard(**more: object) -> dict[str, str]:
    """All of the quota of team red, which may hold a hundred GPUs, with `more` in its settings."""
    return team_of(plan_of(local(HUNDRED, teams=[team("red", shares={"l4": 0}, **more)])), "red").hard


def test_a_namespace_holds_what_its_settings_say() -> None:
    said = hard(max_pods=500, max_jobs=20, max_volumes=3, max_storage_gib=100)

    assert (said["pods"], said["count/jobs.batch"], said["persistentvolumeclaims"], said["requests.storage"]) == ("500", "20", "3", "100Gi")


def test_there_are_two_pods_for_each_gpu_so_that_each_can_be_replaced() -> None:
    settings = local(pool("l4", "g6.xlarge", "spot", 150, "training"), teams=[team("red", shares={"l4": 0})])

    assert team_of(plan_of(settings), "red").hard["pods"] == "300"


def test_there_are_never_fewer_pods_than_gpus_because_a_queue_would_admit_one_for_each() -> None:
    assert hard(max_pods=7)["pods"] == "100"


def test_no_container_has_more_than_the_largest_node() -> None:
    settings = local(pool("l4", "g6.xlarge", "spot", 4, "training"), pool("a10g", "g5.48xlarge", "spot", 2, "training"))

    assert team_of(plan_of(settings), "red").container_limits == {"cpu": "192", "memory": "768Gi"}


def test_groups_are_told_once_and_in_order() -> None:
    plan = plan_of(local(HUNDRED, teams=[team("red", submitters=["ml-red@acme.com", "ci", "ci"], viewers=["finance"])]))

    red = team_of(plan, "red")
    assert (red.submitters, red.viewers) == (("ci", "ml-red@acme.com"), ("finance",))


def test_a_team_may_borrow_the_whole_flavor_where_nothing_limits_it() -> None:
    assert max_gpus(team("red", shares={"l4": 2}), team("blue", shares={"l4": 50})) == 100


def test_a_borrowing_limit_comes_on_top_of_what_is_the_teams_own() -> None:
    assert max_gpus(team("red", shares={"l4": 2}, borrowing_limits={"l4": 3}), team("blue")) == 2 + 3


def test_a_cohorts_limit_comes_on_top_of_all_that_is_inside_of_it() -> None:
    cohorts = [{"name": "group", "shares": {"l4": 10}, "borrowing_limits": {"l4": 1}}]
    teams = (team("red", cohort="group", shares={"l4": 2}), team("green", cohort="group", shares={"l4": 5}), team("blue"))

    assert max_gpus(*teams, cohorts=cohorts) == (10 + 2 + 5) + 1


def test_the_tightest_cohort_on_the_way_to_the_root_counts() -> None:
    cohorts = [
        {"name": "department", "shares": {"l4": 1}, "borrowing_limits": {"l4": 4}},
        {"name": "group", "parent": "department", "shares": {"l4": 0}, "borrowing_limits": {"l4": 50}},
    ]
    teams = (team("red", cohort="group", shares={"l4": 2}), team("green", cohort="department", shares={"l4": 3}))

    assert max_gpus(*teams, cohorts=cohorts) == (1 + 2 + 3) + 4


def test_every_flavor_adds_to_the_quota_and_so_does_what_no_queue_gives_away() -> None:
    settings = local(
        pool("l4", "g6.xlarge", "spot", 4, "training"),
        pool("a10g", "g5.xlarge", "spot", 2, "training"),
        pool("serving", "g6.xlarge", "on-demand", 8, "inference"),
        teams=[team("red", shares={"l4": 1, "a10g": 1}, borrowing_limits={"l4": 1}, unqueued={"serving": 3}, monthly_budget_usd=7)],
    )

    red = team_of(plan_of(settings), "red")

    assert red.max_gpus == (1 + 1) + 2 + 3
    assert (red.unqueued_gpus, red.unqueued_priority_classes, red.monthly_budget_usd) == (3, ("gpu-production",), 7)


def test_only_the_classes_without_queue_may_use_the_unqueued_part() -> None:
    classes = {"other": own_class("other", queued=False, capacity=["on-demand"])}
    settings = local(HUNDRED, pool("serving", "g6.xlarge", "on-demand", 8, "other"), classes=classes, teams=[team("red")])

    assert team_of(plan_of(settings), "red").unqueued_priority_classes == ("own-other",)
