"""Kueue is killed while many Jobs queue: nothing is lost and nothing runs twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from queue_fixtures import FOUR_L4, QueueGround, queues_of

from lab.cluster import POD, condition
from lab.exercise.play import JOB
from lab.processes import running_parts
from lab.progress import Silence

if TYPE_CHECKING:
    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject
    from lab.control_plane import ControlPlane
    from lab.tools.build import Tools

pytestmark = pytest.mark.lab

JOBS = 50
NODES = 2


def wait_for_complete(ground: QueueGround, count: int) -> None:
    """Returns once so many of the team's Jobs are Complete."""

    def look(jobs: list[KubeObject]) -> bool:
        return sum(condition(job, "Complete") is not None for job in jobs) >= count

    ground.cluster.wait_for(JOB, look, f"{count} Jobs to complete", namespace=ground.own("alpha"), timeout_seconds=180)


def test_kueue_killed_again_and_again_while_fifty_jobs_queue_loses_none_and_runs_none_twice(
    cluster: Cluster, register: Register, lab: ControlPlane, tools: Tools
) -> None:
    pool = {"name": "l4-spot", "machine": FOUR_L4, "capacity_type": "spot", "max_nodes": NODES, "serves": ["training"]}
    team = {"name": "alpha", "shares": {"l4-spot": 4 * NODES}}
    names = {f"job-{number}" for number in range(JOBS)}
    with queues_of(
        cluster, register, {"l4-spot": NODES}, pools=[pool], classes={"training": {"capacity": ["spot"]}}, teams=[team]
    ) as ground:
        for name in sorted(names):
            ground.submit("alpha", name, run_time="1s")
        for complete in (5, 15, 25):
            wait_for_complete(ground, complete)
            kueue = running_parts(lab.home)["kueue"].process
            kueue.kill()
            kueue.wait(10)
            assert any(job["spec"]["suspend"] for job in cluster.list(JOB, ground.own("alpha"))), "some Jobs queue while Kueue is away"
            assert "kueue" in lab.start(tools, Silence()).started
        wait_for_complete(ground, JOBS)

        jobs = cluster.list(JOB, ground.own("alpha"))
        assert {job["metadata"]["name"]: job["status"].get("succeeded") for job in jobs} == dict.fromkeys(names, 1)
        assert [job["metadata"]["name"] for job in jobs if job["status"].get("failed")] == []
        # The Job controller tells of every pod that it makes, of those too that are gone by now.
        made = [event for event in cluster.list("v1/Event", ground.own("alpha")) if event["reason"] == "SuccessfulCreate"]
        assert sorted(event["involvedObject"]["name"] for event in made) == sorted(names), "one pod a Job"
        assert len(cluster.list(POD, ground.own("alpha"))) == JOBS
