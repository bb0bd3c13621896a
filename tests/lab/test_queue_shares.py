"""Guaranteed shares, borrowing, reclaim and preemption: the product's queues on real Kueue."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from queue_fixtures import QueueGround, condition_of, queues_of, two_teams

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, running_pods

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

SHORTAGE = "insufficient unused quota"


def preempted(ground: QueueGround, team: str) -> dict[str, str]:
    """Return the reason of preemption of each preempted Job of a team."""
    return {job: found["reason"] for job, each in ground.workloads(team).items() if (found := condition(each, "Preempted"))}


def test_an_idle_share_is_borrowed_and_reclaimed_by_its_owner_and_the_borrower_takes_up_again(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as ground:
        for number in range(4):
            ground.submit("alpha", f"alpha-{number}")
        ground.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")

        # Both of the owner's Jobs have a lower priority than the borrower's: a guaranteed share does not depend on priority.
        ground.submit("beta", "beta-0", "interactive")
        ground.submit("beta", "beta-1", "interactive")
        ground.wait_for_running("beta", "beta-0", "beta-1")

        reasons = preempted(ground, "alpha")
        assert list(reasons.values()) == ["InCohortReclamation"] * 2, reasons
        for job in reasons:
            found = cluster.get(JOB, job, ground.own("alpha"))
            assert found is not None
            assert found["spec"]["suspend"] is True, "a preempted Job waits in its queue"
        ground.wait_for_running("alpha", *({f"alpha-{number}" for number in range(4)} - set(reasons)))

        ground.finish("beta", "beta-0", "beta-1")
        ground.wait_for_running("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")
        ground.finish("alpha", "alpha-0", "alpha-1", "alpha-2", "alpha-3")


def test_a_share_in_use_is_taken_by_nobody_whatever_the_priority(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as ground:
        ground.submit("beta", "notebook-0", "interactive")
        ground.submit("beta", "notebook-1", "interactive")
        ground.wait_for_running("beta", "notebook-0", "notebook-1")
        ground.submit("alpha", "alpha-0")
        ground.submit("alpha", "alpha-1")
        ground.wait_for_running("alpha", "alpha-0", "alpha-1")

        ground.submit("alpha", "alpha-2")
        ground.wait_for_refusal("alpha", "alpha-2", SHORTAGE)
        assert preempted(ground, "beta") == {}
        ground.wait_for_running("beta", "notebook-0", "notebook-1")


@contextmanager
def two_of_four_nodes(cluster: Cluster, register: Register, policy: str = "") -> Generator[QueueGround]:
    """Yield a pool of four nodes with a GPU each, of which two exist; two for each team. `policy` replaces the plan's."""

    def adapt(each: KubeObject) -> None:
        if each["kind"] == "PriorityClass" and policy:
            each["preemptionPolicy"] = policy

    pool = {"name": "l4-spot", "machine": "g6.xlarge", "capacity_type": "spot", "max_nodes": 4, "serves": ["training", "interactive"]}
    teams = [{"name": "alpha", "shares": {"l4-spot": 2}}, {"name": "beta", "shares": {"l4-spot": 2}}]
    with queues_of(cluster, register, {"l4-spot": 2}, adapt, pools=[pool], teams=teams) as ground:
        yield ground


def told_by_scheduler(ground: QueueGround, job: str) -> str:
    """Return the scheduler's message about a Job's first pod once it fits on no node."""

    def look(pods: list[KubeObject]) -> str:
        of_job = [pod for pod in pods if pod["metadata"]["labels"].get("job-name") == job]
        said = [condition_of(pod, "PodScheduled") for pod in of_job]
        return next((str(each["message"]) for each in said if each and each["status"] == "False"), "")

    return ground.cluster.wait_for(POD, look, f"the scheduler to find no node for {job}", namespace=ground.own("alpha"))


def test_admitted_work_waits_for_its_node_and_takes_none_from_anothers_share(cluster: Cluster, register: Register) -> None:
    with two_of_four_nodes(cluster, register) as ground:
        ground.submit("beta", "notebook-0", "interactive")
        ground.submit("beta", "notebook-1", "interactive")
        before = {pod["metadata"]["uid"] for pod in ground.wait_for_running("beta", "notebook-0", "notebook-1")}

        ground.submit("alpha", "training-0")
        ground.wait_for_workload("alpha", "training-0", lambda each: condition(each, "Admitted"), "admitted")

        assert "not eligible due to preemptionPolicy=Never" in told_by_scheduler(ground, "training-0")
        ground.add_nodes("l4-spot", 1)
        ground.wait_for_running("alpha", "training-0")
        assert {pod["metadata"]["uid"] for pod in ground.wait_for_running("beta", "notebook-0", "notebook-1")} == before


@pytest.mark.nightly(held_by="test_admitted_work_waits_for_its_node_and_takes_none_from_anothers_share")
def test_with_the_courses_policy_the_scheduler_takes_a_node_from_anothers_share(cluster: Cluster, register: Register) -> None:
    """This is why pods of queued classes never preempt: Kueue does not notice it."""
    with two_of_four_nodes(cluster, register, "PreemptLowerPriority") as ground:
        ground.submit("beta", "notebook-0", "interactive")
        ground.submit("beta", "notebook-1", "interactive")
        before = {pod["metadata"]["uid"] for pod in ground.wait_for_running("beta", "notebook-0", "notebook-1")}

        ground.submit("alpha", "training-0")

        ground.wait_for_running("alpha", "training-0")
        kept = {pod["metadata"]["uid"] for pod in running_pods(cluster.list(POD, ground.own("beta")))}
        assert len(kept & before) == 1
        assert preempted(ground, "beta") == {}


def test_within_a_queue_higher_priority_preempts_lower_and_equal_waits(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as ground:
        ground.submit("beta", "beta-0", pods=2)
        ground.wait_for_running("beta", "beta-0")
        ground.submit("alpha", "notebook", "interactive")
        ground.submit("alpha", "training-0")
        ground.wait_for_running("alpha", "notebook", "training-0")

        ground.submit("alpha", "training-1")
        ground.wait_for_running("alpha", "training-0", "training-1")
        assert preempted(ground, "alpha") == {"notebook": "InClusterQueue"}

        ground.submit("alpha", "training-2")
        ground.wait_for_refusal("alpha", "training-2", SHORTAGE)
        assert preempted(ground, "alpha") == {"notebook": "InClusterQueue"}, "equals do not preempt each other"
        assert preempted(ground, "beta") == {}, "the other team is left alone"


def test_across_the_cohort_the_lowest_priority_of_the_borrower_goes_first(cluster: Cluster, register: Register) -> None:
    with two_teams(cluster, register) as ground:
        # The notebook is submitted first: it is chosen for its priority, not its age.
        ground.submit("alpha", "notebook", "interactive")
        ground.wait_for_running("alpha", "notebook")
        for number in range(3):
            ground.submit("alpha", f"training-{number}")
        ground.wait_for_running("alpha", "notebook", "training-0", "training-1", "training-2")

        ground.submit("beta", "beta-0")
        ground.wait_for_running("beta", "beta-0")

        assert preempted(ground, "alpha") == {"notebook": "InCohortReclamation"}
        ground.wait_for_running("alpha", "training-0", "training-1", "training-2")
