"""A part that dies while Jobs run: status names it, start repairs it, and no Job is lost."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from flexspot.lab.cluster import WaitTimeoutError
from flexspot.lab.control_plane import LabControlPlane, PartState
from flexspot.lab.exercise.play import JOB, LOW, POD, clean_up, gpu_job, platform_objects, release, wait_for_completion, wait_for_running
from flexspot.lab.processes import running_parts
from flexspot.lab.progress import Silence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster
    from flexspot.lab.tools.build import Tools

pytestmark = pytest.mark.lab

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kueue", "karpenter")


@pytest.fixture
def team_with_jobs(cluster: Cluster) -> Iterator[str]:
    """Yield a team with three Jobs: two run on its own share, one on a borrowed GPU."""
    cluster.apply(*platform_objects())
    for number in range(3):
        cluster.create(gpu_job(f"job-{number}", "team-alpha", LOW))
    wait_for_running(cluster, "team-alpha", 3)
    yield "team-alpha"
    clean_up(cluster)


def finish(cluster: Cluster, team: str, count: int) -> None:
    """Let the Jobs end. A pod that replaces another after the release is released as well: it would run for minutes."""
    for _ in range(4):
        release(cluster, team)
        with suppress(WaitTimeoutError):
            return wait_for_completion(cluster, team, count, timeout_seconds=20)
    pods = [f"{each['metadata']['name']} {each['status'].get('phase')}" for each in cluster.list(POD, team)]
    pytest.fail(f"{count} Jobs of {team} are not complete; its pods: {', '.join(pods)}")


# The other parts start in the same way; a restart of the API server is also in test_kubernetes_provider.py.
_BREADTH = pytest.mark.nightly(tested_by="test_a_killed_part_is_named_by_status_repaired_by_start_and_no_job_is_lost")


@pytest.mark.parametrize("part", [each if each == "kueue" else pytest.param(each, marks=_BREADTH) for each in PARTS])
def test_a_killed_part_is_named_by_status_repaired_by_start_and_no_job_is_lost(
    part: str, lab: LabControlPlane, tools: Tools, cluster: Cluster, team_with_jobs: str
) -> None:
    jobs_before = {job["metadata"]["uid"] for job in cluster.list(JOB, team_with_jobs)}
    victim = running_parts(lab.home)[part].process
    victim.kill()
    victim.wait(10)

    status = lab.status(tools)
    assert [each.name for each in status] == list(PARTS)
    stopped = {each.name: each for each in status if each.state is PartState.STOPPED}
    assert set(stopped) == {part}
    assert stopped[part].last_lines, "status shows the last lines of its log"

    report = lab.start(tools, Silence())

    assert part in report.started
    assert all(each.state is PartState.RUNNING for each in lab.status(tools))
    # Work that is submitted after the repair runs, too, so the part not only answers but works.
    cluster.create(gpu_job("job-after-repair", team_with_jobs, LOW))
    wait_for_running(cluster, team_with_jobs, 4)
    finish(cluster, team_with_jobs, 4)
    assert jobs_before <= {job["metadata"]["uid"] for job in cluster.list(JOB, team_with_jobs)}
