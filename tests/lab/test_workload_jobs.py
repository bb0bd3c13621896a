"""Rendered jobs on the program's queues: admitted, counted and ended as intended by the real controllers, on fake nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from workload_ground import end, job_of, pods_of, spot_platform, submit, wait_for_failure, wait_for_job, wait_for_pods

from flexspot.capacity.catalog.node_labels import TEAM_LABEL
from flexspot.capacity.workloads.requests import GANG_SERVICE, Launcher
from flexspot.components.tenancy.team import Team
from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from flexspot.components.tenancy.team import TeamArgs
    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab


@pytest.fixture
def ground(cluster: Cluster, register: Register) -> Iterator[QueueGround]:
    with spot_platform(cluster, register) as made:
        yield made


def test_a_gang_and_a_batch_are_admitted_with_their_classes_priority_and_the_gangs_pods_have_names(ground: QueueGround) -> None:
    submit(ground, "checkpointed-job", "gang", pods=2)
    submit(ground, "queued-job", "batch", pods=3, at_once=2, workload_class="best-effort")

    gang, batch = wait_for_pods(ground, "gang", 2), wait_for_pods(ground, "batch", 2)

    assert {(each["spec"]["hostname"], each["spec"]["subdomain"]) for each in gang} == {(f"gang-{n}", GANG_SERVICE) for n in (0, 1)}
    assert [each["spec"]["terminationGracePeriodSeconds"] for each in (*gang, *batch)] == [90, 90, 60, 60]
    assert job_of(ground, "gang")["spec"]["suspend"] is False
    classes = {name: each["spec"]["priorityClassRef"]["name"] for name, each in ground.workloads("alpha").items()}
    assert classes == {"gang": "gpu-training", "batch": "gpu-best-effort"}
    ground.finish("alpha", "gang")


def test_gangs_of_every_launcher_are_admitted_and_a_pod_knows_its_place_before_what_is_made_of_it(ground: QueueGround) -> None:
    for launcher in Launcher:
        submit(ground, "checkpointed-job", launcher.value, pods=2, launcher=launcher.value, command=["python", "train.py"])

    for launcher in Launcher:
        for pod in wait_for_pods(ground, launcher.value, 2):
            [main] = pod["spec"]["containers"]
            known = set[str]()
            for variable in main["env"]:
                assert set(re.findall(r"\$\((\w+)\)", variable.get("value", ""))) <= known, "a kubelet fills in those that come before"
                known.add(variable["name"])
            assert set(re.findall(r"\$\((\w+)\)", " ".join(main["command"]))) <= known
    ground.finish("alpha", *(launcher.value for launcher in Launcher))


def test_the_teams_service_names_the_pods_of_a_gang_and_no_others(ground: QueueGround, register: Register) -> None:
    alpha = ground.own("alpha")
    team: TeamArgs = {"namespace": alpha, "labels": {TEAM_LABEL: alpha}, "hard": {"requests.nvidia.com/gpu": "8"}}
    [service] = register(lambda: Team(alpha, team)).of("kubernetes:core/v1:Service")
    ground.cluster.apply(service)
    submit(ground, "checkpointed-job", "gang", pods=2)
    submit(ground, "checkpointed-job", "alone")
    wait_for_pods(ground, "gang", 2)
    wait_for_pods(ground, "alone", 1)

    def named(slices: list[KubeObject]) -> set[str] | None:
        endpoints: list[list[dict[str, str]]] = [each.get("endpoints") or [] for each in slices]
        names = {each.get("hostname", "") for listed in endpoints for each in listed}
        return names if len(names) == 2 else None

    chosen = f"kubernetes.io/service-name={GANG_SERVICE}"
    found = ground.cluster.wait_for("discovery.k8s.io/v1/EndpointSlice", named, "names of two pods", namespace=alpha, labels=chosen)
    assert found == {"gang-0", "gang-1"}, "what a name server makes names of"
    ground.finish("alpha", "gang", "alone")


def test_real_failures_are_counted_and_end_the_job_when_its_retries_are_used_up(ground: QueueGround) -> None:
    submit(ground, "checkpointed-job", "broken", retries=1)

    for _ in range(2):
        [pod] = wait_for_pods(ground, "broken", 1)
        end(ground, pod, 1)

    assert wait_for_failure(ground, "broken") == ("BackoffLimitExceeded", 2)


def test_a_fatal_exit_code_ends_a_gang_at_once_and_in_a_batch_of_one_job_its_own_index_alone(ground: QueueGround) -> None:
    submit(ground, "checkpointed-job", "gang", pods=2, fatal_exit_codes=[3])
    pods = wait_for_pods(ground, "gang", 2)
    end(ground, pods[0], 3)
    reason, _ = wait_for_failure(ground, "gang")
    assert reason == "PodFailurePolicy"
    ground.cluster.wait_for(POD, lambda found: not pods_of(found, "gang"), "the end of the gang", namespace=ground.own("alpha"))

    submit(ground, "queued-job", "batch", pods=2, at_once=2, fatal_exit_codes=[3])
    pods = wait_for_pods(ground, "batch", 2)
    end(ground, next(each for each in pods if each["spec"]["hostname"] == "batch-1"), 3)
    batch = wait_for_job(ground, "batch", lambda each: each["status"].get("failedIndexes") == "1", "index 1 failed")
    assert (condition(batch, "Failed"), batch["status"]["active"]) == (None, 1)


@pytest.mark.nightly(held_by="test_work_keeps_a_deadline_and_gives_its_gpus_back_when_it_is_over")
def test_a_job_is_ended_by_its_deadline(ground: QueueGround) -> None:
    submit(ground, "checkpointed-job", "long", run_seconds=60)
    wait_for_pods(ground, "long", 1)
    # The shortest allowed deadline is a minute. A test of the controller's own clock is not needed.
    ground.cluster.patch(JOB, "long", {"spec": {"activeDeadlineSeconds": 1}}, ground.own("alpha"))

    reason, _ = wait_for_failure(ground, "long")

    assert reason == "DeadlineExceeded"
