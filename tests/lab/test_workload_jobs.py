"""Rendered jobs on the program's queues: admitted, counted and ended as intended by the real controllers, on fake nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from workload_fixtures import end, job_of, pods_of, spot_platform, submit, wait_for_failure, wait_for_job, wait_for_pods

from flexspot.capacity.catalog.node_labels import TEAM_LABEL
from flexspot.capacity.workloads.requests import GANG_SERVICE, Launcher
from flexspot.components.tenancy.team import Team
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register

    from flexspot.components.tenancy.team import TeamArgs
    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with spot_platform(cluster, register) as deployed:
        yield deployed


def test_a_gang_and_a_batch_are_admitted_with_their_classes_priority_and_the_gangs_pods_have_names(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", "gang", pods=2)
    submit(platform, "queued-job", "batch", pods=3, at_once=2, workload_class="best-effort")

    gang, batch = wait_for_pods(platform, "gang", 2), wait_for_pods(platform, "batch", 2)

    assert {(each["spec"]["hostname"], each["spec"]["subdomain"]) for each in gang} == {(f"gang-{n}", GANG_SERVICE) for n in (0, 1)}
    assert [each["spec"]["terminationGracePeriodSeconds"] for each in (*gang, *batch)] == [90, 90, 60, 60]
    assert job_of(platform, "gang")["spec"]["suspend"] is False
    classes = {name: each["spec"]["priorityClassRef"]["name"] for name, each in platform.workloads("alpha").items()}
    assert classes == {"gang": "gpu-training", "batch": "gpu-best-effort"}
    platform.finish("alpha", "gang")


def test_gangs_of_every_launcher_are_admitted_and_the_index_precedes_variables_that_use_it(platform: QueuePlatform) -> None:
    for launcher in Launcher:
        submit(platform, "checkpointed-job", launcher.value, pods=2, launcher=launcher.value, command=["python", "train.py"])

    for launcher in Launcher:
        for pod in wait_for_pods(platform, launcher.value, 2):
            [main] = pod["spec"]["containers"]
            known = set[str]()
            for variable in main["env"]:
                assert set(re.findall(r"\$\((\w+)\)", variable.get("value", ""))) <= known, "a kubelet fills in those that come before"
                known.add(variable["name"])
            assert set(re.findall(r"\$\((\w+)\)", " ".join(main["command"]))) <= known
    platform.finish("alpha", *(launcher.value for launcher in Launcher))


def test_the_teams_service_names_the_pods_of_a_gang_and_no_others(platform: QueuePlatform, register: Register) -> None:
    alpha = platform.own("alpha")
    team: TeamArgs = {"namespace": alpha, "labels": {TEAM_LABEL: alpha}, "hard": {"requests.nvidia.com/gpu": "8"}}
    [service] = register(lambda: Team(alpha, team)).of("kubernetes:core/v1:Service")
    platform.cluster.apply(service)
    submit(platform, "checkpointed-job", "gang", pods=2)
    submit(platform, "checkpointed-job", "alone")
    wait_for_pods(platform, "gang", 2)
    wait_for_pods(platform, "alone", 1)

    def named(slices: list[KubeObject]) -> set[str] | None:
        endpoints: list[list[dict[str, str]]] = [each.get("endpoints") or [] for each in slices]
        names = {each.get("hostname", "") for listed in endpoints for each in listed}
        return names if len(names) == 2 else None

    chosen = f"kubernetes.io/service-name={GANG_SERVICE}"
    found = platform.cluster.wait_for("discovery.k8s.io/v1/EndpointSlice", named, "names of two pods", namespace=alpha, labels=chosen)
    assert found == {"gang-0", "gang-1"}, "what a name server makes names of"
    platform.finish("alpha", "gang", "alone")


def test_real_failures_are_counted_and_end_the_job_when_its_retries_are_used_up(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", "broken", retries=1)

    for _ in range(2):
        [pod] = wait_for_pods(platform, "broken", 1)
        end(platform, pod, 1)

    assert wait_for_failure(platform, "broken") == ("BackoffLimitExceeded", 2)


def test_a_fatal_exit_code_ends_a_gang_at_once_and_in_a_batch_of_one_job_its_own_index_alone(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", "gang", pods=2, fatal_exit_codes=[3])
    pods = wait_for_pods(platform, "gang", 2)
    end(platform, pods[0], 3)
    reason, _ = wait_for_failure(platform, "gang")
    assert reason == "PodFailurePolicy"
    platform.cluster.wait_for(POD, lambda found: not pods_of(found, "gang"), "the end of the gang", namespace=platform.own("alpha"))

    submit(platform, "queued-job", "batch", pods=2, at_once=2, fatal_exit_codes=[3])
    pods = wait_for_pods(platform, "batch", 2)
    end(platform, next(each for each in pods if each["spec"]["hostname"] == "batch-1"), 3)
    batch = wait_for_job(platform, "batch", lambda each: each["status"].get("failedIndexes") == "1", "index 1 failed")
    assert (condition(batch, "Failed"), batch["status"]["active"]) == (None, 1)


@pytest.mark.nightly(tested_by="test_work_keeps_a_deadline_and_gives_its_gpus_back_when_it_is_over")
def test_a_job_is_ended_by_its_deadline(platform: QueuePlatform) -> None:
    submit(platform, "checkpointed-job", "long", run_seconds=60)
    wait_for_pods(platform, "long", 1)
    # The shortest allowed deadline is a minute. A test of the controller's own clock is not needed.
    platform.cluster.patch(JOB, "long", {"spec": {"activeDeadlineSeconds": 1}}, platform.own("alpha"))

    reason, _ = wait_for_failure(platform, "long")

    assert reason == "DeadlineExceeded"
