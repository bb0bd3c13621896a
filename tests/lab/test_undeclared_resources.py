"""Resources that a pod requests besides GPUs, vCPU and memory, which no queue counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from queue_fixtures import queues_of

from flexspot.capacity.plan.kueue_configuration import ONE_BOOT, kueue_configuration

if TYPE_CHECKING:
    from flexspot.lab.cluster import Cluster
    from flexspot.lab.control_plane import LabControlPlane

pytestmark = pytest.mark.lab

Register = Callable[[Callable[[], object]], Any]

OF_THE_MACHINE = {"namespace", "health", "metrics", "webhook", "leaderElection", "internalCertManagement", "featureGates"}
"""Settings of addresses and certificates of the lab's Kueue."""

L4: dict[str, Any] = {
    "pools": [{"name": "l4", "machine": "g6.xlarge", "capacity_type": "spot", "max_nodes": 2, "serves": ["training"]}],
    "teams": [{"name": "red", "shares": {"l4": 2}}],
}


def test_resources_that_come_with_a_node_do_not_keep_a_job_queued(cluster: Cluster, register: Register) -> None:
    with queues_of(cluster, register, {}, **L4) as platform:
        job = platform.job("red", "more")
        [container] = job["spec"]["template"]["spec"]["containers"]
        for amounts in container["resources"].values():
            amounts |= {"ephemeral-storage": "10Gi", "vpc.amazonaws.com/efa": "4", "hugepages-2Mi": "128Mi"}

        cluster.create(job)

        assert platform.wait_for_flavors("red", "more") == {platform.own("l4")}


def test_the_labs_kueue_decides_by_the_configuration_that_a_clouds_has(lab: LabControlPlane) -> None:
    written = yaml.safe_load((lab.home.settings("kueue") / "configuration.yaml").read_text())
    released = kueue_configuration(ONE_BOOT)

    assert {field for field in {*written, *released} if written.get(field) != released.get(field)} <= OF_THE_MACHINE
    assert written["metrics"]["enableClusterQueueResources"] == released["metrics"]["enableClusterQueueResources"]
