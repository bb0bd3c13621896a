"""Work on AWS's own accelerators, on real Kueue and the real scheduler: with a separate quota from that of GPUs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from plan_settings import own_class
from queue_fixtures import FOUR_L4, QueuePlatform, pools_of, queues_of
from workload_fixtures import submit

from flexspot.lab.cluster import POD
from flexspot.policies.admission.guarantee import NAME

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from queue_objects import Register

    from flexspot.lab.cluster import Cluster

pytestmark = pytest.mark.lab

NEURON = "aws.amazon.com/neuron"


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    with neuron_platform(cluster, register) as deployed:
        yield deployed


@contextmanager
def neuron_platform(cluster: Cluster, register: Register, without: tuple[str, ...] = ()) -> Generator[QueuePlatform]:
    """Yield a node of four L4 and one of sixteen Trainium devices. Alpha owns two GPUs and eight devices, beta two GPUs and no device."""
    pools = [
        {"name": "l4-spot", "machine": FOUR_L4, "node_sharing": True, "capacity_type": "spot", "max_nodes": 1, "serves": ["training"]},
        {"name": "trn-spot", "machine": "trn1.32xlarge", "capacity_type": "spot", "max_nodes": 1, "serves": ["neuron"]},
    ]
    teams = [
        {"name": "alpha", "shares": {"l4-spot": 2, "trn-spot": 8}, "borrowing_limits": {"trn-spot": 0}},
        {"name": "beta", "shares": {"l4-spot": 2}},
    ]
    with queues_of(
        cluster, register, {"l4-spot": 1, "trn-spot": 1}, pools=pools, teams=teams, classes={"neuron": own_class("neuron")}, without=without
    ) as deployed:
        yield deployed


def flavors_of(platform: QueuePlatform, job: str) -> dict[str, str]:
    """Return the flavor of each resource of a Job, as soon as Kueue has admitted it."""
    workload = platform.wait_for_workload("alpha", job, lambda each: each.get("status", {}).get("admission"), "admitted")
    [assigned] = workload["status"]["admission"]["podSetAssignments"]
    return assigned["flavors"]


def test_a_neuron_job_is_admitted_within_its_own_quota_and_leaves_that_of_gpus_alone(platform: QueuePlatform, cluster: Cluster) -> None:
    submit(platform, "queued-job", "tune", workload_class="neuron", gpus=8)
    [pod] = platform.wait_for_running("alpha", "tune")

    assert pools_of(cluster, [pod]) == {platform.own("trn-spot")}
    assert set(flavors_of(platform, "tune").values()) == {platform.own("trn-spot")}
    assert pod["spec"]["containers"][0]["resources"]["limits"][NEURON] == "8"

    # Its devices are used up, but not the GPUs: a request for one more device waits, a GPU job does not.
    submit(platform, "queued-job", "more", workload_class="neuron", gpus=1)
    platform.wait_for_refusal("alpha", "more", f"{NEURON} in flavor {platform.own('trn-spot')}")
    submit(platform, "queued-job", "train", gpus=2)
    running = platform.wait_for_running("alpha", "tune", "train")
    assert pools_of(cluster, running) == {platform.own("l4-spot"), platform.own("trn-spot")}
    assert flavors_of(platform, "train")["nvidia.com/gpu"] == platform.own("l4-spot")


def test_devices_without_a_share_or_under_another_name_pass_no_queue(cluster: Cluster, register: Register) -> None:
    """Kueue and the quota refuse them even without the policy."""
    with neuron_platform(cluster, register, without=(NAME,)) as platform:
        core = "aws.amazon.com/neuroncore"
        for team, name, workload_class, device in (("beta", "sly", "training", NEURON), ("alpha", "cores", "neuron", core)):
            job = platform.job(team, name, workload_class)
            [container] = job["spec"]["template"]["spec"]["containers"]
            container["resources"] = {"limits": {device: "1"}, "requests": {device: "1", "cpu": "1"}}
            cluster.create(job)

        platform.wait_for_refusal("beta", "sly", f"{NEURON} in flavor {platform.own('l4-spot')}")
        assert cluster.list(POD, platform.own("beta")) == []
        platform.wait_for_refusal("alpha", "cores", f"{core} in flavor {platform.own('trn-spot')}")
        [quota] = [each for each in cluster.list("v1/ResourceQuota", platform.own("alpha")) if each["metadata"]["name"] == "team"]
        assert (quota["spec"]["hard"][f"requests.{core}"], quota["spec"]["hard"][f"requests.{NEURON}"]) == ("0", "8")
