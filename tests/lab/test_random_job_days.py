"""Days of random work with a hostile member. After each step no team waits longer for its share than the page on the guarantee states.

A day is a seed. Submissions, endings and reclaims are random; the attempts of the member of team alpha are from hostile_submissions.yaml.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from admission_fixtures import with_policies
from queue_fixtures import GUARDS, ONE_L4, QueuePlatform, condition_of, queues_of
from queue_objects import admission_objects
from tenancy_fixtures import Member
from test_hostile_submissions import MEMBERS, TRIES, outcome, submission

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.lab.cluster import WaitTimeoutError, condition
from flexspot.lab.exercise.play import JOB, WORKLOAD, release

if TYPE_CHECKING:
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = [
    pytest.mark.lab,
    pytest.mark.waits,
    pytest.mark.nightly(
        tested_by="test_no_submission_of_a_member_keeps_another_team_from_its_share, "
        "test_an_idle_share_is_borrowed_and_reclaimed_by_its_owner_and_the_borrower_resumes, "
        "test_within_a_queue_higher_priority_preempts_lower_and_equal_waits"
    ),
]

DAYS, STEPS = (1, 2, 3, 4, 5, 6), 24
RECLAIM_SECONDS = 60
"""docs/guides/guarantee.md: within this time a team has its share."""

SHARES = {"alpha": 2, "beta": 2, "gamma": 0}
CLASSES = ("training", "interactive")


def gpus(workload: KubeObject) -> int:
    """Return the GPUs that a Workload requests at once."""
    each = workload["spec"]["podSets"]
    return sum(
        int(podset["count"]) * int(container.get("resources", {}).get("requests", {}).get(GPU_RESOURCE, 0))
        for podset in each
        for container in podset["template"]["spec"]["containers"]
    )


def holds(workload: KubeObject) -> bool:
    reserved = condition_of(workload, "QuotaReserved")
    return reserved is not None and reserved["status"] == "True" and not condition(workload, "Finished")


def waits(workload: KubeObject) -> bool:
    return not holds(workload) and not condition(workload, "Finished") and workload["spec"].get("active", True)


def of_team(platform: QueuePlatform, team: str, workloads: list[KubeObject]) -> list[KubeObject]:
    return [
        each for each in workloads if each["metadata"]["namespace"] == platform.own(team) and "deletionTimestamp" not in each["metadata"]
    ]


def is_stuck(workload: KubeObject) -> bool:
    """Return whether it has quota and does not run."""
    ready = condition_of(workload, "PodsReady")
    return holds(workload) and (ready is None or ready["status"] != "True")


def waiting_within_share(platform: QueuePlatform, workloads: list[KubeObject]) -> list[str]:
    """Return work that waits, or has quota and does not run, although its team would stay within its share with it."""
    evicted = [each for each in workloads if holds(each) and condition(each, "Evicted")]
    found = [f"{each['metadata']['name']} is stopped and holds its quota" for each in evicted]
    for team, share in SHARES.items():
        own = of_team(platform, team, workloads)
        left = share - sum(gpus(each) for each in own if holds(each))
        found += [f"{each['metadata']['name']} of {team} waits" for each in own if waits(each) and 0 < gpus(each) <= left]
        if team != "alpha":
            idle = share - sum(gpus(each) for each in own if holds(each) and not is_stuck(each))
            still = [each for each in own if is_stuck(each) and gpus(each) <= idle]
            found += [f"{each['metadata']['name']} of {team} is admitted and does not run" for each in still]
    return found


@dataclass
class Day:
    """One day: the actions so far, and the Jobs that each team still has."""

    platform: QueuePlatform
    member: Member
    drawn: random.Random
    jobs: dict[str, list[str]] = field(default_factory=lambda: {team: [] for team in SHARES})
    done: list[str] = field(default_factory=list)

    def step(self) -> None:
        choices = [self.submits, self.submits, self.submits, self.finishes, self.takes_back, self.attacks]
        self.done.append(self.drawn.choice(choices)())

    def submits(self) -> str:
        team, workload_class = self.drawn.choice(list(SHARES)), self.drawn.choice(CLASSES)
        name, pods = f"job-{len(self.done)}", self.drawn.choice((1, 2))
        self.platform.submit(team, name, workload_class, pods=pods)
        # Before Kueue has seen it, it does not wait.
        self.platform.wait_for_workload(team, name, lambda each: each, "there")
        self.jobs[team].append(name)
        return f"{team} submits {name}: {workload_class}, {pods} pods"

    def finishes(self) -> str:
        """A Job that is preempted while it ends is Complete anyway: see test_stopped_at_its_end.py."""
        team = self.drawn.choice(list(SHARES))
        release(self.platform.cluster, self.platform.own(team))
        return f"what runs of {team} finishes"

    def takes_back(self) -> str:
        team = self.drawn.choice(list(SHARES))
        if not self.jobs[team]:
            return f"{team} has nothing to take back"
        name = self.jobs[team].pop(self.drawn.randrange(len(self.jobs[team])))
        self.platform.cluster.delete(JOB, name, self.platform.own(team))
        return f"{team} deletes {name}"

    def attacks(self) -> str:
        title, tried = self.drawn.choice([*TRIES["as_member"].items()])
        names = {"$ADMITTED": "1", "$NODE": "node"}
        came = outcome(self.member, submission(self.platform, f"try-{len(self.done)}", tried, names))
        return f"alpha tries {title}: {came}"


def wait_until_none_waits(day: Day) -> None:
    """Return once no team waits for its own share."""
    what = "\n  ".join(["no team to wait after:", *day.done])
    look = partial(waiting_within_share, day.platform)
    try:
        day.platform.cluster.wait_for(WORKLOAD, lambda workloads: not look(workloads), what, timeout_seconds=RECLAIM_SECONDS)
    except WaitTimeoutError as error:
        pytest.fail("\n".join([str(error), *look(day.platform.cluster.list(WORKLOAD))]))


@pytest.mark.parametrize("seed", DAYS)
def test_on_a_random_day_no_team_waits_for_its_own_share(seed: int, cluster: Cluster, register: Register) -> None:
    pool = {"name": "l4-spot", "machine": ONE_L4, "capacity_type": "spot", "max_nodes": 4, "serves": list(CLASSES)}
    services = {"name": "l4-on-demand", "machine": "g6.xlarge", "capacity_type": "on-demand", "max_nodes": 1, "serves": ["inference"]}
    teams: list[dict[str, Any]] = [{"name": team, "shares": {"l4-spot": share}} for team, share in SHARES.items()]
    teams[0] |= {"submitters": [MEMBERS], "unqueued": {"l4-on-demand": 1}}
    with (
        queues_of(cluster, register, {"l4-spot": 4}, pools=[pool, services], teams=teams, without=GUARDS) as platform,
        with_policies(cluster, admission_objects(platform.plan, register), platform.own("alpha")),
    ):
        day = Day(platform, Member(cluster.kubeconfig, MEMBERS), random.Random(seed))  # noqa: S311 -- the same day for the same seed
        for _ in range(STEPS):
            day.step()
            wait_until_none_waits(day)
    assert any("submits" in each for each in day.done)
