"""Idle GPUs are shared among the teams by their weights."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from queue_fixtures import FOUR_L4, QueuePlatform, by_job, condition_of, queues_of

from flexspot.lab.cluster import condition
from flexspot.lab.exercise.play import WORKLOAD

if TYPE_CHECKING:
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(
        tested_by="test_fair_sharing_uses_weights, test_a_tree_of_cohorts_is_declared_with_weights_and_a_root_that_owns_nothing_is_not"
    ),
]

WEIGHTS = {"one": 1, "two": 2, "three": 3}
GPUS = 12
ROUNDS = 7
# Of different durations, so that GPUs become free one by one. If many did at once, each team's first Job would get one, whatever its
# weight.
RUN_SECONDS = (8, 12, 9, 13, 10)


def moment(timestamp: str) -> float:
    return datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()


class Ledger:
    """Times at which each Workload got a GPU and gave it back, from the times that Kueue writes into its conditions.

    A preempted Workload gets one more than once, and its conditions have only the last time. So every state that a watch shows is recorded.
    """

    def __init__(self) -> None:
        self._turns: dict[tuple[str, float], float | None] = {}

    def look(self, workloads: list[KubeObject]) -> bool:
        """Record new times. Return whether all of the Workloads are done."""
        for job, each in by_job(workloads).items():
            reserved, finished = condition_of(each, "QuotaReserved"), condition(each, "Finished")
            if reserved is None:
                continue
            changed = moment(reserved["lastTransitionTime"])
            if reserved["status"] == "True":
                self._turns[job, changed] = moment(finished["lastTransitionTime"]) if finished else None
            else:
                for (of_job, got_at), ended in self._turns.items():
                    if of_job == job and ended is None:
                        self._turns[job, got_at] = changed
        return bool(workloads) and all(condition(each, "Finished") for each in workloads)

    def over(self, before: float) -> float:
        """Return when the last of the turns that started before a moment was over."""
        return max(ended for (_, got_at), ended in self._turns.items() if got_at <= before and ended is not None)

    def last_start(self, team: str) -> float:
        """Return when the last of a team's Jobs got its GPU: until then the team had a waiting Job."""
        return max(got_at for (job, got_at) in self._turns if job.startswith(f"{team}-"))

    def gpus(self, team: str, begin: float, end: float) -> float:
        """Return the average number of GPUs of a team between two moments."""
        turns = [(got_at, ended) for (job, got_at), ended in self._turns.items() if job.startswith(f"{team}-")]
        held = sum(max(0.0, min(end, ended or end) - max(begin, got_at)) for got_at, ended in turns)
        return held / (end - begin)


def submit_all(platform: QueuePlatform, jobs: dict[str, int]) -> None:
    """Submit the teams' Jobs in turn, so that none has a lead."""
    for number in range(max(jobs.values())):
        for team, count in jobs.items():
            if number < count:
                platform.submit(team, f"{team}-{number}", run_time=f"{RUN_SECONDS[number % len(RUN_SECONDS)]}s")


def test_teams_without_a_share_get_gpus_in_proportion_to_their_weights(cluster: Cluster, register: Register) -> None:
    pool = {
        "name": "l4-spot",
        "machine": FOUR_L4,
        "node_sharing": True,
        "capacity_type": "spot",
        "max_nodes": GPUS // 4,
        "serves": ["training"],
    }
    teams = [{"name": team, "weight": weight, "shares": {"l4-spot": 0}} for team, weight in WEIGHTS.items()]
    # Each team has a number of Jobs with which all run out of waiting ones at about the same time.
    jobs = {team: weight * GPUS // sum(WEIGHTS.values()) * ROUNDS for team, weight in WEIGHTS.items()}
    ledger = Ledger()

    with queues_of(
        cluster, register, {"l4-spot": GPUS // 4}, pools=[pool], classes={"training": {"capacity": ["spot"]}}, teams=teams
    ) as platform:
        [root] = platform.plan.cohorts
        assert [quota.nominal.gpus for quota in root.quotas] == [GPUS], "GPUs that no team owns belong to the cohort"
        submit_all(platform, jobs)
        submitted = datetime.now(UTC).timestamp()
        names = {platform.own(team) for team in WEIGHTS}

        def all_done(workloads: list[KubeObject]) -> bool:
            own = [each for each in workloads if each["metadata"]["namespace"] in names]
            return ledger.look(own) and len(own) == sum(jobs.values())

        cluster.wait_for(WORKLOAD, all_done, "all Jobs to finish", timeout_seconds=180)

    # While all three have waiting Jobs: the first team got GPUs before there was any other to share with.
    begin, end = ledger.over(submitted), min(ledger.last_start(team) for team in WEIGHTS)
    assert end - begin > 20, f"{end - begin:.0f} s are too short to say anything"
    gpus = {team: ledger.gpus(team, begin, end) for team in WEIGHTS}
    total = sum(gpus.values())
    assert total > 0.6 * GPUS, f"of {GPUS} GPUs {total:.1f} were given away on average: most stood idle"
    shares = {team: held / total * sum(WEIGHTS.values()) for team, held in gpus.items()}
    # Conditions have whole seconds, and a turn is about ten of them long.
    assert shares == pytest.approx(WEIGHTS, rel=0.15), gpus
