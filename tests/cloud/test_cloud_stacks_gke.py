"""The GKE stacks, deployed, changed and destroyed by the real engine as a person does it; a stand-in cloud plays Google's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stack_journey import Order, counted, goes_up, made, names_of, programs_run
from ways_in import OFFICE

if TYPE_CHECKING:
    from cloud_world import CloudWorld

    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stack_lab(lab: LabControlPlane) -> LabControlPlane:
    """The lab that all tests share: each test here takes its stack away again."""
    return lab


def test_dev_gke_goes_up_stays_and_goes_down(world: CloudWorld) -> None:
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
        # Without nodes of its own for controllers, GKE would put no taint on the GPU nodes.
        order.assert_after(pool, "cluster-system-pool")
    order.assert_after("kueue-release", "cluster-system-pool")
    order.assert_after("kube-state-metrics-deployment", "cluster-system-pool", "kube-state-metrics-account")
    for queue in order.matching(r"queues-.*"):
        order.assert_after(queue, "kueue-release")
    for identity in order.matching(r".*-storage-workload-identity"):
        # The identity pool that it is bound to comes with the cluster.
        order.assert_after(identity, "cluster-cluster")


def assert_order_of_deletion(world: CloudWorld) -> None:
    order = Order(world.cloud.events(), "delete")
    on_cluster = order.matching(r"queues-.*|.*-namespace|kueue-release|.*-volume")
    assert on_cluster
    order.assert_after("cluster-cluster", "cluster-system-pool", *on_cluster)
    order.assert_after("network-network", "network-subnetwork", "network-router", "cluster-cluster")


@pytest.mark.nightly(held_by="test_each_way_into_a_cluster_of_gke_is_open_to_whom_the_settings_name")
def test_prod_gke_as_it_was_stops_at_the_first_object_and_goes_on_from_inside_its_network(world: CloudWorld) -> None:
    """Private, in a network of its own: the cloud's half is made, and then nobody answers whoever is outside."""
    before = world.objects()
    with world.changed("prod-gke", control_plane={"access": "private"}, cluster={"deletion_protection": False}):
        stopped = world.flexspot("up", "-s", "prod-gke", "--yes")

        assert stopped.returncode == 1
        assert f"configured Kubernetes cluster is unreachable: dial tcp {world.cloud.settings['control_plane']['host']}" in stopped.stdout
        # The cluster's own nodes and kinds are there.
        of_the_cloud = ("v1/Node ", "apiextensions.k8s.io/v1/CustomResourceDefinition ")
        assert {each for each in world.objects() - before if not each.startswith(of_the_cloud)} == set()
        assert any(each.startswith("gcp:container/cluster:Cluster ") for each in world.held())

        world.cloud.configure(runner="10.8.0.10")
        try:
            assert counted(world.flexspot("up", "-s", "prod-gke", "--yes")).keys() >= {"created"}
            assert made(world, "prod-gke") == names_of(world, "prod-gke")
            counted(world.flexspot("destroy", "-s", "prod-gke", "--yes"))
        finally:
            world.cloud.configure(runner=OFFICE)
    assert world.cloud.all() == []
    assert world.objects() <= before
