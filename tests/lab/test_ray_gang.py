"""A rendered job of `launcher: ray`. The job is done when the program of its first pod is, and an interruption is no failure of any pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from torchrun_ends import UNDER_THE_LAUNCHER
from workload_fixtures import assert_continues, end, job_of, skip_back_off, spot_platform, submit, uids, wait_for_failure, wait_for_pods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

PODS = 3
JOB = "tune"
CRASH = 3


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with spot_platform(cluster, register) as deployed:
        yield deployed


def started(platform: QueuePlatform, *, instead_of: tuple[str, ...] = ()) -> list[KubeObject]:
    """Return its pods, the first one first, as soon as all run."""
    pods = wait_for_pods(platform, JOB, PODS, instead_of=instead_of)
    return sorted(pods, key=lambda each: int(each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]))


def test_the_end_of_the_program_ends_the_job_even_if_a_pod_is_lost_at_that_moment(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", JOB, pods=PODS, launcher="ray", command=["python", "main.py"])
    first, second, third = started(platform)

    # An earlier interruption: all end with 143, and all are created again.
    for each in (first, second, third):
        end(platform, each, UNDER_THE_LAUNCHER)
    skip_back_off(platform, JOB)
    first, second, _ = started(platform, instead_of=uids([first, second, third]))
    assert_continues(job_of(platform, JOB))

    end(platform, second, UNDER_THE_LAUNCHER)
    end(platform, first, 0)

    # The third has not even ended.
    platform.wait_for_completion("alpha", JOB)


@pytest.mark.nightly(
    tested_by="test_the_end_of_the_program_ends_the_job_even_if_a_pod_is_lost_at_that_moment, "
    "test_real_failures_are_counted_and_end_the_job_when_its_retries_are_used_up"
)
def test_a_program_that_fails_counts_once(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", JOB, pods=PODS, launcher="ray", command=["python", "main.py"], retries=1, fatal_exit_codes=[CRASH])
    first, second, third = started(platform)

    for each in (second, third):
        end(platform, each, UNDER_THE_LAUNCHER)
    end(platform, first, CRASH)

    assert wait_for_failure(platform, JOB) == ("PodFailurePolicy", 1)
