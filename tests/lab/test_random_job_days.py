"""Days of random work with a hostile member: after each step nobody who asks for a share waits longer than the page on the guarantee says.

A day is a seed. Who submits, finishes and takes back is drawn; what the member of team alpha tries is drawn from hostile_submissions.yaml.
"""

from __future__ import annotations

import json
import random
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from admission_ground import holding
from queue_fixtures import FOUR_L4, QueueGround, condition_of, queues_of
from queue_objects import admission_objects
from tenancy_ground import Member
from test_hostile_submissions import MEMBERS, TRIES, outcome, submission

from capacity.catalog.node_labels import GPU_RESOURCE
from lab.cluster import WaitTimeoutError, condition
from lab.exercise.play import JOB, WORKLOAD, release

if TYPE_CHECKING:
    from collections.abc import Callable

    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane

pytestmark = [pytest.mark.lab, pytest.mark.waits]

DAYS, STEPS = (1, 2, 3, 4, 5, 6), 24
RECLAIM_SECONDS = 60
"""docs/guides/guarantee.md: within this time a team has what is its own."""

SHARES = {"alpha": 2, "beta": 2, "gamma": 0}
CLASSES = ("training", "interactive")


def gpus(workload: KubeObject) -> int:
    """What a Workload asks for at once."""
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


def of_team(ground: QueueGround, team: str, workloads: list[KubeObject]) -> list[KubeObject]:
    return [each for each in workloads if each["metadata"]["namespace"] == ground.own(team) and "deletionTimestamp" not in each["metadata"]]


def stands_still(workload: KubeObject) -> bool:
    """Whether it has quota and does not run."""
    ready = condition_of(workload, "PodsReady")
    return holds(workload) and (ready is None or ready["status"] != "True")


def kept_from_their_own(ground: QueueGround, workloads: list[KubeObject]) -> list[str]:
    """Work that waits, or has quota and does not run, although with it its team would have no more than its share."""
    evicted = [each for each in workloads if holds(each) and condition(each, "Evicted")]
    found = [f"{each['metadata']['name']} is stopped and holds its quota" for each in evicted]
    for team, share in SHARES.items():
        own = of_team(ground, team, workloads)
        left = share - sum(gpus(each) for each in own if holds(each))
        found += [f"{each['metadata']['name']} of {team} waits" for each in own if waits(each) and 0 < gpus(each) <= left]
        if team != "alpha":
            idle = share - sum(gpus(each) for each in own if holds(each) and not stands_still(each))
            still = [each for each in own if stands_still(each) and gpus(each) <= idle]
            found += [f"{each['metadata']['name']} of {team} is admitted and does not run" for each in still]
    return found


def borrowed_and_still(ground: QueueGround, workloads: list[KubeObject]) -> list[str]:
    """Work of honest teams beyond their shares that has quota and does not run: nobody's own, and not as it should be."""
    still = [each for team in SHARES if team != "alpha" for each in of_team(ground, team, workloads) if stands_still(each)]
    return [f"{each['metadata']['name']} has borrowed quota and does not run" for each in still]


LINES = 40


def kueue_said(lab: ControlPlane, stuck: list[str]) -> str:
    """The last lines of Kueue's log about work that does not get its own: what the state of its objects does not tell."""
    names = {each.partition(" ")[0] for each in stuck}
    written = lab.home.log("kueue").read_text(encoding="utf-8", errors="replace").splitlines()
    told = [json.loads(line) for line in written if line.startswith("{") and any(name in line for name in names)]
    shown = ("ts", "logger", "caller", "msg", "error", "reason", "status")
    return "\n".join([*stuck, *(" ".join(str(each[key]) for key in shown if key in each) for each in told[-LINES:])])


@dataclass
class Day:
    """One day: what was done, and which Jobs each team still has."""

    ground: QueueGround
    member: Member
    drawn: random.Random
    jobs: dict[str, list[str]] = field(default_factory=lambda: {team: [] for team in SHARES})
    done: list[str] = field(default_factory=list)

    def step(self) -> None:
        choices = [self.submits, self.submits, self.submits, self.finishes, self.takes_back, self.attacks]
        self.done.append(self.drawn.choice(choices)())

    def submits(self) -> str:
        team, workload_class = self.drawn.choice(list(SHARES)), self.drawn.choice(CLASSES)
        name, asked = f"job-{len(self.done)}", self.drawn.choice((1, 2))
        self.ground.submit(team, name, workload_class, gpus=asked)
        # Before Kueue has seen it, it waits for nothing.
        self.ground.wait_for_workload(team, name, lambda each: each, "there")
        self.jobs[team].append(name)
        return f"{team} submits {name}: {workload_class}, {asked} GPUs"

    def finishes(self) -> str:
        """Whoever is preempted while its Job ends is Complete all the same: see test_stopped_at_its_end.py."""
        team = self.drawn.choice(list(SHARES))
        release(self.ground.cluster, self.ground.own(team))
        return f"what runs of {team} finishes"

    def takes_back(self) -> str:
        team = self.drawn.choice(list(SHARES))
        if not self.jobs[team]:
            return f"{team} has nothing to take back"
        name = self.jobs[team].pop(self.drawn.randrange(len(self.jobs[team])))
        self.ground.cluster.delete(JOB, name, self.ground.own(team))
        return f"{team} deletes {name}"

    def attacks(self) -> str:
        title, tried = self.drawn.choice([*TRIES["as_member"].items()])
        names = {"$ADMITTED": "1", "$NODE": "node"}
        came = outcome(self.member, submission(self.ground, f"try-{len(self.done)}", tried, names))
        return f"alpha tries {title}: {came}"


def warn(said: str) -> None:
    """For what breaks no guarantee.

    Seen once in some 200 days, on a busy machine: a Workload of Kueue 0.19.0 with QuotaReserved and without Admitted for 60 s, 5 of 4 GPUs
    reserved. Upstream knows such races of the scheduler's two writers (kubernetes-sigs/kueue#11480). Kueue fixes such a Workload in
    0.1 s where a test makes one; what kept it from that is not known, so its log is shown.
    """
    warnings.warn(said, stacklevel=2)


def wait_for_none(
    lab: ControlPlane, day: Day, look: Callable[[QueueGround, list[KubeObject]], list[str]], tell: Callable[[str], None]
) -> None:
    """Returns once `look` finds nothing in the Workloads; after the time in which that should be so, `tell` hears what it finds."""
    cluster = day.ground.cluster
    what = "\n  ".join([f"{look.__name__}, nobody after:", *day.done])
    try:
        cluster.wait_for(WORKLOAD, lambda workloads: not look(day.ground, workloads), what, timeout_seconds=RECLAIM_SECONDS)
    except WaitTimeoutError as error:
        tell(f"{error}\n{kueue_said(lab, look(day.ground, cluster.list(WORKLOAD)))}")


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("seed", DAYS)
def test_on_a_random_day_nobody_waits_for_what_is_its_own(seed: int, cluster: Cluster, lab: ControlPlane, register: Register) -> None:
    pool = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": 1, "serves": list(CLASSES)}
    services = {"name": "l4-on-demand", "machine": "g6.xlarge", "capacity_type": "on-demand", "max_nodes": 1, "serves": ["inference"]}
    teams: list[dict[str, Any]] = [{"name": team, "shares": {"l4-spot": share}} for team, share in SHARES.items()]
    teams[0] |= {"submitters": [MEMBERS], "unqueued": {"l4-on-demand": 1}}
    with (
        queues_of(cluster, register, {"l4-spot": 1}, pools=[pool, services], teams=teams) as ground,
        holding(cluster, admission_objects(ground.plan, register), ground.own("alpha")),
    ):
        day = Day(ground, Member(cluster.kubeconfig, MEMBERS), random.Random(seed))  # noqa: S311 -- the same day for the same seed
        for _ in range(STEPS):
            day.step()
            wait_for_none(lab, day, kept_from_their_own, pytest.fail)
            wait_for_none(lab, day, borrowed_and_still, warn)
    assert any("submits" in each for each in day.done)
