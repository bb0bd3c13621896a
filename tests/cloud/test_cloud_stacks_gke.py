"""The GKE stacks, deployed, changed and destroyed with the real engine as a user does it. A stand-in cloud plays Google's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stack_journey import Order, counted, existing, goes_up, names_of, programs_run
from ways_in import OFFICE

if TYPE_CHECKING:
    from cloud_world import CloudWorld

    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stack_lab(lab: LabControlPlane) -> LabControlPlane:
    """The lab that all tests share. Each test here removes its stack again."""
    return lab


def test_dev_gke_goes_up_stays_unchanged_and_goes_down(world: CloudWorld) -> None:
    before = world.objects()
    created = goes_up(world, "dev-gke")
    host = world.cloud.settings["control_plane"]["host"]
    assert programs_run(world) == {f"gke-gcloud-auth-plugin for https://{host}"}
    assert_order_of_creation(world)

    assert counted(world.flexspot("up", "-s", "dev-gke", "--yes")) == {}
    deleted = counted(world.flexspot("destroy", "-s", "dev-gke", "--yes"))

    assert deleted == {"deleted": created}
    assert world.cloud.all() == []
    assert world.objects() <= before
    assert_order_of_deletion(world)


def assert_order_of_creation(world: CloudWorld) -> None:
    order = Order(world.cloud.events(), "create")
    order.assert_after("cluster-cluster", "network-subnetwork", "nodes-account")
    order.assert_after("cluster-system-pool", "cluster-cluster")
    for pool in order.matching(r"(l4|t4|h100|a100)-[a-z-]+-node-pool"):
        # Without dedicated nodes for controllers, GKE would not taint the GPU nodes.
        order.assert_after(pool, "cluster-system-pool")
    order.assert_after("kueue-release", "cluster-system-pool")
    order.assert_after("kube-state-metrics-deployment", "cluster-system-pool", "kube-state-metrics-account")
    for queue in order.matching(r"queues-.*"):
        order.assert_after(queue, "kueue-release")
    for identity in order.matching(r".*-storage-workload-identity"):
        # The identity pool that it is bound to is created with the cluster.
        order.assert_after(identity, "cluster-cluster")


def assert_order_of_deletion(world: CloudWorld) -> None:
    order = Order(world.cloud.events(), "delete")
    on_cluster = order.matching(r"queues-.*|.*-namespace|kueue-release|.*-volume")
    assert on_cluster
    order.assert_after("cluster-cluster", "cluster-system-pool", *on_cluster)
    order.assert_after("network-network", "network-subnetwork", "network-router", "cluster-cluster")


@pytest.mark.nightly(tested_by="test_each_way_into_a_gke_cluster_is_open_to_the_callers_in_the_settings")
def test_shipped_prod_gke_stops_at_the_first_object_and_continues_from_inside_its_network(world: CloudWorld) -> None:
    """The cluster is private, in its own network. The cloud resources are created; then the API server does not answer a runner outside."""
    before = world.objects()
    with world.changed("prod-gke", control_plane={"access": "private"}, cluster={"deletion_protection": False}):
        stopped = world.flexspot("up", "-s", "prod-gke", "--yes")

        assert stopped.returncode == 1
        assert f"configured Kubernetes cluster is unreachable: dial tcp {world.cloud.settings['control_plane']['host']}" in stopped.stdout
        # The cluster's own nodes and kinds exist.
        of_the_cloud = ("v1/Node ", "apiextensions.k8s.io/v1/CustomResourceDefinition ")
        assert {each for each in world.objects() - before if not each.startswith(of_the_cloud)} == set()
        assert any(each.startswith("gcp:container/cluster:Cluster ") for each in world.held())

        world.cloud.configure(runner="10.8.0.10")
        try:
            assert counted(world.flexspot("up", "-s", "prod-gke", "--yes")).keys() >= {"created"}
            assert existing(world, "prod-gke") == names_of(world, "prod-gke")
            counted(world.flexspot("destroy", "-s", "prod-gke", "--yes"))
        finally:
            world.cloud.configure(runner=OFFICE)
    assert world.cloud.all() == []
    assert world.objects() <= before
