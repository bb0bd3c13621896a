"""Admission of gangs, Jobs over quota and Jobs of other namespaces; and stopped queues."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from queue_fixtures import CLUSTER_QUEUE, FOUR_L4, QueuePlatform, condition_of, queues_of

from flexspot.lab.cluster import POD, condition
from flexspot.lab.exercise.play import JOB, LOCAL_QUEUE
from flexspot.policies.admission.guarantee import NAME

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab


@contextmanager
def one_team(cluster: Cluster, register: Register, *others: str, without: tuple[str, ...] = ()) -> Generator[QueuePlatform]:
    """Yield a platform of four GPUs, all of the team alpha; `others` own none and may not borrow."""
    pool = {"name": "l4-spot", "machine": FOUR_L4, "node_sharing": True, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]}
    teams: list[dict[str, Any]] = [{"name": "alpha", "shares": {"l4-spot": 4}}]
    teams += [{"name": each, "shares": {"l4-spot": 0}, "borrowing_limits": {"l4-spot": 0}} for each in others]
    classes = {"training": {"capacity": ["spot"]}}
    with queues_of(cluster, register, {"l4-spot": 1}, pools=[pool], classes=classes, teams=teams, without=without) as platform:
        yield platform


def job_of(platform: QueuePlatform, team: str, name: str) -> KubeObject:
    found = platform.cluster.get(JOB, name, platform.own(team))
    assert found is not None
    return found


def test_a_gang_is_admitted_whole_or_not_at_all(cluster: Cluster, register: Register) -> None:
    with one_team(cluster, register) as platform:
        platform.submit("alpha", "small", gpus=2)
        platform.wait_for_running("alpha", "small")

        platform.submit("alpha", "gang", pods=3)
        # Two of its three pods would fit.
        platform.wait_for_refusal("alpha", "gang", "insufficient unused quota")
        assert job_of(platform, "alpha", "gang")["spec"]["suspend"] is True
        assert cluster.list(POD, platform.own("alpha"), labels="job-name=gang") == []

        platform.finish("alpha", "small")
        workload = platform.wait_for_workload("alpha", "gang", lambda each: condition(each, "Admitted"), "admitted")
        [assignment] = workload["status"]["admission"]["podSetAssignments"]
        assert (assignment["count"], assignment["resourceUsage"]["nvidia.com/gpu"]) == (3, "3")

        def all_three(pods: list[KubeObject]) -> bool:
            return [pod["status"].get("phase") for pod in pods] == ["Running"] * 3

        cluster.wait_for(POD, all_three, "all pods of the gang to run", namespace=platform.own("alpha"), labels="job-name=gang")
        platform.finish("alpha", "gang")


def test_a_job_may_not_use_the_queue_of_another_team_from_its_own_namespace(cluster: Cluster, register: Register) -> None:
    # The policy would refuse both Jobs. Kueue admits neither without it.
    with one_team(cluster, register, "beta", without=(NAME,)) as platform:
        # Beta may not even borrow. A LocalQueue that it creates for alpha's ClusterQueue must not circumvent that.
        cluster.apply(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "LocalQueue",
                "metadata": {"name": "borrowed-name", "namespace": platform.own("beta")},
                "spec": {"clusterQueue": platform.own("alpha")},
            }
        )
        intruder = platform.job("beta", "intruder")
        intruder["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "borrowed-name"
        cluster.create(intruder)
        # Alpha's queue name exists in no other namespace.
        stranger = platform.job("beta", "stranger")
        stranger["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = platform.own("alpha")
        cluster.create(stranger)

        platform.wait_for_refusal("beta", "intruder", "namespace doesn't match ClusterQueue selector")
        platform.wait_for_refusal("beta", "stranger", f"LocalQueue {platform.own('alpha')} doesn't exist")
        platform.submit("alpha", "owner", gpus=4)
        platform.wait_for_running("alpha", "owner")
        assert cluster.list(POD, platform.own("beta")) == []
        assert cluster.get(LOCAL_QUEUE, "default", platform.own("beta")) is not None, "beta has a queue, which has no quota"


HELD = pytest.mark.nightly(tested_by="test_a_stopped_queue_admits_nothing_and_a_drained_one_lets_nothing_run")


@pytest.mark.parametrize("stop,left", [("drain", set[str]()), pytest.param("hold", {"running"}, marks=HELD)])
def test_a_stopped_queue_admits_nothing_and_a_drained_one_lets_nothing_run(
    stop: str, left: set[str], cluster: Cluster, register: Register
) -> None:
    with one_team(cluster, register) as platform:
        [alpha] = platform.settings["teams"]
        platform.submit("alpha", "running", gpus=3)
        platform.wait_for_running("alpha", "running")

        platform.redeploy(register, teams=[alpha | {"stop": stop}])
        if not left:
            evicted = platform.wait_for_workload("alpha", "running", lambda each: condition(each, "Evicted"), "evicted")
            assert (condition_of(evicted, "Evicted") or {})["reason"] == "ClusterQueueStopped"
        platform.wait_for_running("alpha", *left)
        platform.submit("alpha", "waiting")
        platform.wait_for_refusal("alpha", "waiting", "is inactive")
        platform.wait_for_running("alpha", *left)
        [queue] = [each for each in cluster.list(CLUSTER_QUEUE) if each["metadata"]["name"] == platform.own("alpha")]
        assert (condition_of(queue, "Active") or {})["reason"] == "Stopped"

        platform.redeploy(register, teams=[alpha])
        platform.wait_for_running("alpha", "running", "waiting")
        platform.finish("alpha", "running", "waiting")
