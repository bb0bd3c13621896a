"""The EKS stacks, deployed, changed and destroyed with the real engine as a user does it. A stand-in cloud plays AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stack_journey import (
    Order,
    counted,
    existing,
    goes_up,
    is_refused_before_anything,
    modelled,
    names_of,
    operations,
    programs_run,
    refusals,
)

if TYPE_CHECKING:
    from cloud_world import CloudWorld

    from flexspot.lab.control_plane import LabControlPlane

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stack_lab(lab: LabControlPlane) -> LabControlPlane:
    """The lab that all tests share. Each test here removes its stack again."""
    return lab


STAYS_FOR_A_WHILE = {"aws:kms/key:Key"}
"""AWS keeps a key for deletionWindowInDays by design, in case something encrypted with it is still needed."""


def test_dev_eks_goes_up_stays_unchanged_and_goes_down(world: CloudWorld) -> None:
    before = world.objects()
    created = goes_up(world, "dev-eks")
    assert programs_run(world) == {"aws eks get-token --cluster-name dev --region us-east-1 --output json"}
    assert_order_of_creation(world)

    assert counted(world.flexspot("up", "-s", "dev-eks", "--yes")) == {}
    moved = {"zones": ["us-east-1b", "us-east-1c"]}
    # The cluster's security group is part of what changes, so the preview does not know that it stays.
    tag = frozenset({"aws:ec2:Tag cluster-discovery-tag"})
    is_refused_before_anything(world, "dev-eks", {"subnet-overlap", "subnet-zones"}, moved, seem_replaced=tag)

    deleted = counted(world.flexspot("destroy", "-s", "dev-eks", "--yes"))

    assert deleted == {"deleted": created}
    assert_nothing_is_left(world)
    assert world.objects() <= before
    assert_order_of_deletion(world)


@pytest.mark.nightly(
    tested_by="test_the_control_plane_is_upgraded_first, test_the_outcomes_of_a_tenth_of_the_edits_match_the_reviewed_ones, "
    "test_between_s3_and_lustre_only_claims_are_replaced_and_no_bucket_is_deleted, test_dev_eks_goes_up_stays_unchanged_and_goes_down"
)
def test_dev_eks_upgrades_kubernetes_and_moves_its_checkpoints_to_efs_and_back(world: CloudWorld) -> None:
    # The shipped image has both versions.
    with world.changed("dev-eks", cluster={"version": "1.34"}):
        goes_up(world, "dev-eks")
        goes_to_the_next_version_of_kubernetes(world)
        checkpoints_move_to_efs_and_back(world)
        counted(world.flexspot("destroy", "-s", "dev-eks", "--yes"))
    assert_nothing_is_left(world)


def goes_to_the_next_version_of_kubernetes(world: CloudWorld) -> None:
    """Check that the preview matches the model, nothing is replaced, and the engine follows Kubernetes' version skew policy."""
    at_first = world.settings("dev-eks")
    then = at_first | {"cluster": at_first["cluster"] | {"version": "1.35"}}
    is_refused_before_anything(world, "dev-eks", {"version"}, {"cluster": {"version": "1.36"}})
    world.change("dev-eks", cluster={"version": "1.35"})

    preview = world.flexspot("preview", "-s", "dev-eks")
    assert preview.returncode == 0, preview.stdout[-4000:] + preview.stderr[-4000:]
    shown = operations(preview.stdout)
    world.cloud.forget_events()
    done = counted(world.flexspot("up", "-s", "dev-eks", "--yes"))

    assert shown == modelled("dev-eks", at_first, then)
    assert {*shown.values()} == {"update"}
    assert done.keys() == {"updated"}
    order = Order(world.cloud.events(), "update")
    assert set(order.done) == {"cluster-cluster", "cluster-kube-proxy", "cluster-system-nodes", "cluster-coredns"}
    order.assert_after("cluster-kube-proxy", "cluster-cluster")
    order.assert_after("cluster-system-nodes", "cluster-cluster", "cluster-kube-proxy")
    order.assert_after("cluster-coredns", "cluster-system-nodes")
    assert counted(world.flexspot("up", "-s", "dev-eks", "--yes")) == {}
    world.cloud.forget_events()


def checkpoints_move_to_efs_and_back(world: CloudWorld) -> None:
    """Check that the run matches the model and deletes no bucket. The engine recognises a claim by its name."""
    shipped, teams = world.settings("dev-eks"), [team["name"] for team in world.settings("dev-eks")["teams"]]
    claims = {f"kubernetes:core/v1:PersistentVolumeClaim {team}-checkpoints-claim" for team in teams}
    efs = shipped | {"storage": shipped.get("storage", {}) | {"checkpoints": "efs"}}

    world.change("dev-eks", storage={"checkpoints": "efs"})
    preview = world.flexspot("preview", "-s", "dev-eks")
    shown = operations(preview.stdout)
    assert shown == modelled("dev-eks", shipped, efs)
    assert {name for name, done in shown.items() if done == "replace" and "Claim" in name} == claims
    assert all(f"volume claim {team}/checkpoints is deleted and created again" in preview.stdout + preview.stderr for team in teams)
    counted(world.flexspot("up", "-s", "dev-eks", "--yes"))
    assert existing(world, "dev-eks") == names_of(world, "dev-eks")

    world.change("dev-eks", storage={"checkpoints": "s3"})
    back = world.flexspot("up", "-s", "dev-eks", "--yes")
    counted(back)
    assert "file system dev-checkpoints is deleted, with everything in it" in back.stdout + back.stderr
    assert existing(world, "dev-eks") == names_of(world, "dev-eks")
    assert refusals(world) == []
    world.cloud.forget_events()


def assert_nothing_is_left(world: CloudWorld) -> None:
    assert world.held() == []
    assert {held.token for held in world.cloud.all()} == STAYS_FOR_A_WHILE
    for held in world.cloud.all():
        world.cloud.remove(held.token, held.identity)


def assert_order_of_creation(world: CloudWorld) -> None:
    order = Order(world.cloud.events(), "create")
    order.assert_after("cluster-cluster", "cluster-logs", *order.matching(r"network-private-us-east-1[a-z]"))
    order.assert_after("cluster-system-nodes", "cluster-vpc-cni", "cluster-kube-proxy")
    order.assert_after("cluster-coredns", "cluster-system-nodes")
    order.assert_after("karpenter-release", "karpenter-crds", "cluster-system-nodes", "cluster-coredns")
    order.assert_after("kueue-release", "cluster-system-nodes", "cluster-coredns")
    order.assert_after("kube-state-metrics-deployment", "cluster-system-nodes")
    for node_class in order.matching(r".*-node-class"):
        order.assert_after(node_class, "karpenter-crds", "karpenter-release")
    for pool in order.matching(r".*-node-pool"):
        order.assert_after(pool, "karpenter-release")
    for queue in order.matching(r"queues-.*"):
        order.assert_after(queue, "kueue-release")


def assert_order_of_deletion(world: CloudWorld) -> None:
    order = Order(world.cloud.events(), "delete")
    # Karpenter removes its machines before anything that they need is deleted, including itself.
    order.assert_after("karpenter-release", *order.matching(r".*-node-pool"), *order.matching(r".*-node-class"))
    order.assert_after("cluster-cluster", "cluster-system-nodes", "karpenter-release", "kueue-release", *order.matching(r".*-namespace"))
    order.assert_after("network-vpc", "cluster-cluster", *order.matching(r"network-(?!vpc$).*"))
