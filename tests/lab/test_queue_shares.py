"""Guaranteed shares, borrowing, reclaim and preemption: the product's queues on real Kueue."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from queue_fixtures import QueuePlatform, condition_of, queues_of, two_teams

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, running_pods

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

SHORTAGE = "insufficient unused quota"


def preempted(platform: QueuePlatform, team: str) -> dict[str, str]:
    """Return the reason of preemption of each preempted Job of a team."""
    return {job: found["reason"] for job, each in platform.workloads(team).items() if (found := condition(each, "Preempted"))}


def test_an_idle_share_is_borrowed_and_reclaimed_by_its_owner_and_the_borrower_resumes(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as platform:
        for number in range(4):
            platform.submit("alpha", f"alpha-{number}")
        platform.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")

        # Both of the owner's Jobs have a lower priority than the borrower's: a guaranteed share does not depend on priority.
        platform.submit("beta", "beta-0", "interactive")
        platform.submit("beta", "beta-1", "interactive")
        platform.wait_for_running("beta", "beta-0", "beta-1")

        reasons = preempted(platform, "alpha")
        assert list(reasons.values()) == ["InCohortReclamation"] * 2, reasons
        for job in reasons:
            found = cluster.get(JOB, job, platform.own("alpha"))
            assert found is not None
            assert found["spec"]["suspend"] is True, "a preempted Job waits in its queue"
        platform.wait_for_running("alpha", *({f"alpha-{number}" for number in range(4)} - set(reasons)))

        platform.finish("beta", "beta-0", "beta-1")
        platform.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")
        platform.finish("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")


def test_no_team_takes_a_share_in_use_whatever_the_priority(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as platform:
        platform.submit("beta", "notebook-0", "interactive")
        platform.submit("beta", "notebook-1", "interactive")
        platform.wait_for_running("beta", "notebook-0", "notebook-1")
        platform.submit("alpha", "alpha-0")
        platform.submit("alpha", "alpha-1")
        platform.wait_for_running("alpha", "alpha-0", "alpha-1")

        platform.submit("alpha", "alpha-2")
        platform.wait_for_refusal("alpha", "alpha-2", SHORTAGE)
        assert preempted(platform, "beta") == {}
        platform.wait_for_running("beta", "notebook-0", "notebook-1")


@contextmanager
def two_of_four_nodes(cluster: Cluster, register: Register, policy: str = "") -> Generator[QueuePlatform]:
    """Yield a pool of four nodes with a GPU each, of which two exist; two for each team. `policy` replaces the plan's."""

    def adapt(each: KubeObject) -> None:
        if each["kind"] == "PriorityClass" and policy:
            each["preemptionPolicy"] = policy

    pool = {"name": "l4-spot", "machine": "g6.xlarge", "capacity_type": "spot", "max_nodes": 4, "serves": ["training", "interactive"]}
    teams = [{"name": "alpha", "shares": {"l4-spot": 2}}, {"name": "beta", "shares": {"l4-spot": 2}}]
    with queues_of(cluster, register, {"l4-spot": 2}, adapt, pools=[pool], teams=teams) as platform:
        yield platform


def scheduler_message(platform: QueuePlatform, job: str) -> str:
    """Return the scheduler's message about a Job's first pod once it fits on no node."""

    def look(pods: list[KubeObject]) -> str:
        of_job = [pod for pod in pods if pod["metadata"]["labels"].get("job-name") == job]
        said = [condition_of(pod, "PodScheduled") for pod in of_job]
        return next((str(each["message"]) for each in said if each and each["status"] == "False"), "")

    return platform.cluster.wait_for(POD, look, f"the scheduler to find no node for {job}", namespace=platform.own("alpha"))


def test_admitted_work_waits_for_its_node_and_takes_none_from_anothers_share(cluster: Cluster, register: Register) -> None:
    with two_of_four_nodes(cluster, register) as platform:
        platform.submit("beta", "notebook-0", "interactive")
        platform.submit("beta", "notebook-1", "interactive")
        before = {pod["metadata"]["uid"] for pod in platform.wait_for_running("beta", "notebook-0", "notebook-1")}

        platform.submit("alpha", "training-0")
        platform.wait_for_workload("alpha", "training-0", lambda each: condition(each, "Admitted"), "admitted")

        assert "not eligible due to preemptionPolicy=Never" in scheduler_message(platform, "training-0")
        platform.add_nodes("l4-spot", 1)
        platform.wait_for_running("alpha", "training-0")
        assert {pod["metadata"]["uid"] for pod in platform.wait_for_running("beta", "notebook-0", "notebook-1")} == before


@pytest.mark.nightly(tested_by="test_admitted_work_waits_for_its_node_and_takes_none_from_anothers_share")
def test_with_the_courses_policy_the_scheduler_takes_a_node_from_anothers_share(cluster: Cluster, register: Register) -> None:
    """This is why pods of queued classes never preempt: Kueue does not notice it."""
    with two_of_four_nodes(cluster, register, "PreemptLowerPriority") as platform:
        platform.submit("beta", "notebook-0", "interactive")
        platform.submit("beta", "notebook-1", "interactive")
        before = {pod["metadata"]["uid"] for pod in platform.wait_for_running("beta", "notebook-0", "notebook-1")}

        platform.submit("alpha", "training-0")

        platform.wait_for_running("alpha", "training-0")
        kept = {pod["metadata"]["uid"] for pod in running_pods(cluster.list(POD, platform.own("beta")))}
        assert len(kept & before) == 1
        assert preempted(platform, "beta") == {}


def test_within_a_queue_higher_priority_preempts_lower_and_equal_waits(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as platform:
        platform.submit("beta", "beta-0", pods=2)
        platform.wait_for_running("beta", "beta-0")
        platform.submit("alpha", "notebook", "interactive")
        platform.submit("alpha", "training-0")
        platform.wait_for_running("alpha", "notebook", "training-0")

        platform.submit("alpha", "training-1")
        platform.wait_for_running("alpha", "training-0", "training-1")
        assert preempted(platform, "alpha") == {"notebook": "InClusterQueue"}

        platform.submit("alpha", "training-2")
        platform.wait_for_refusal("alpha", "training-2", SHORTAGE)
        assert preempted(platform, "alpha") == {"notebook": "InClusterQueue"}, "equals do not preempt each other"
        assert preempted(platform, "beta") == {}, "the other team is left alone"


def test_across_the_cohort_the_lowest_priority_of_the_borrower_goes_first(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as platform:
        # The notebook is submitted first: it is chosen for its priority, not its age.
        platform.submit("alpha", "notebook", "interactive")
        platform.wait_for_running("alpha", "notebook")
        for number in range(3):
            platform.submit("alpha", f"training-{number}")
        platform.wait_for_running("alpha", "notebook", "training-0", "training-1", "training-2")

        platform.submit("beta", "beta-0")
        platform.wait_for_running("beta", "beta-0")

        assert preempted(platform, "alpha") == {"notebook": "InCohortReclamation"}
        platform.wait_for_running("alpha", "training-0", "training-1", "training-2")
