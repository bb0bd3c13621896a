"""The GKE stacks, deployed, changed and destroyed by the real engine as a person does it; a stand-in cloud plays Google's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stack_journey import Order, counted, made, names_of, planned, programs_run, refusals

if TYPE_CHECKING:
    from cloud_world import CloudWorld

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.timeout(900)]


def test_dev_gke_goes_up_stays_and_goes_down(world: CloudWorld) -> None:
    before = world.objects()
    world.cloud.forget_events()

    created = counted(world.flexspot("up", "-s", "dev-gke", "--yes"))

    assert created.keys() == {"created"}
    assert names_of(world, "dev-gke") == planned("dev-gke")
    assert made(world, "dev-gke") == planned("dev-gke")
    assert refusals(world) == []
    host = world.cloud.settings["control_plane"]["host"]
    assert programs_run(world) == {f"gke-gcloud-auth-plugin for https://{host}"}
    assert_order_of_creation(world)

    assert counted(world.flexspot("up", "-s", "dev-gke", "--yes")) == {}

    deleted = counted(world.flexspot("destroy", "-s", "dev-gke", "--yes"))

    assert deleted == {"deleted": created["created"]}
    assert world.cloud.all() == []
    assert world.objects() == before
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


def test_prod_gke_goes_up_is_changed_in_place_and_goes_down_when_nothing_protects_it(world: CloudWorld) -> None:
    before = world.objects()
    world.cloud.forget_events()

    created = counted(world.flexspot("up", "-s", "prod-gke", "--yes"))

    assert created.keys() == {"created"}
    assert names_of(world, "prod-gke") == planned("prod-gke")
    assert made(world, "prod-gke") == planned("prod-gke")
    assert refusals(world) == []
    assert_order_of_creation(world)

    settings = world.settings("prod-gke")
    pools = [{**pool, "max_nodes": 14} if pool["name"] == "l4-spot" else pool for pool in settings["pools"]]
    audio = {"name": "audio", "cohort": "product", "shares": {"l4-spot": 2}}
    # 14 nodes of two GPUs each.
    quotas = {"nvidia-l4": {**settings["gpu_quotas"]["nvidia-l4"], "preemptible": 28}}
    unprotected = {"deletion_protection": False}
    world.change("prod-gke", pools=pools, teams=[*settings["teams"], audio], cluster=unprotected, gpu_quotas=quotas)
    known = names_of(world, "prod-gke")
    world.cloud.forget_events()

    done = counted(world.flexspot("up", "-s", "prod-gke", "--yes"))

    assert done.keys() == {"created", "updated"}
    changes = {event.name: event.operation for event in world.cloud.events() if event.phase == "done" and event.operation != "read"}
    assert {name for name, operation in changes.items() if operation == "delete"} == set()
    assert {changes["l4-spot-node-pool"], changes["cluster-cluster"]} == {"update"}
    pool = next(held for held in world.cloud.of("gcp:container/nodePool:NodePool") if held.inputs["name"] == "l4-spot")
    assert pool.inputs["autoscaling"]["totalMaxNodeCount"] == 14
    new = {each.partition(" ")[2] for each in names_of(world, "prod-gke") - known}
    assert {"audio-namespace", "audio-storage-account", "queues-audio", "audio-checkpoints-claim"} <= new
    assert {name for name in new if "audio" not in name} == set()
    assert made(world, "prod-gke") == names_of(world, "prod-gke")

    counted(world.flexspot("destroy", "-s", "prod-gke", "--yes"))

    assert world.cloud.all() == []
    assert world.objects() == before
    assert_order_of_deletion(world)
