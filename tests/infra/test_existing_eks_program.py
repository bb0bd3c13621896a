"""The program on an existing EKS cluster: objects that it reads, resources that it leaves out, and what waits for the objects read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
from eks_declarations import CLUSTER, NODE_CLASS, NODE_POOL, RELEASE, gpu_pools, node_classes
from program_declarations import as_shipped, declared, shipped

if TYPE_CHECKING:
    from program_declarations import Declarations

pytestmark = pytest.mark.slow

AGENT = "kubernetes:apps/v1:DaemonSet kube-system/eks-pod-identity-agent"
S3 = "kubernetes:storage.k8s.io/v1:CSIDriver s3.csi.aws.com"
CONTROLLER = "kubernetes:apps/v1:Deployment {}"
DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition ec2nodeclasses.karpenter.k8s.aws"
POLICY = "kubernetes:nvidia.com/v1:ClusterPolicy cluster-policy"

OURS_ALONE = ("aws:sqs", "aws:cloudwatch/event", "aws:eks/accessEntry", f"{RELEASE} karpenter", "flexspot:index:Karpenter")
"""Prefixes of resource names that belong to a Karpenter of the platform."""


@functools.cache
def existing(stack: str = "dev-eks", *, karpenter: bool = False, operator: bool = False) -> Declarations:
    """Return the declarations of a stack on an existing cluster, with its own Karpenter or GPU operator."""
    cluster: dict[str, Any] = {"existing": "ml", "version": "1.35", "ami": "al2023@v20260903", "existing_gpu_operator": operator}
    if karpenter:
        cluster["existing_karpenter"] = {"node_role": "KarpenterNodeRole-ml", "deployment": "karpenter/karpenter"}
    return declared(stack, shipped(stack, cluster=cluster))


def test_an_existing_cluster_is_read_and_neither_created_nor_given_a_network() -> None:
    declarations = existing()

    assert declarations.read == sorted([f"{CLUSTER} ml", AGENT, S3])
    assert [name for name in declarations.made if name.startswith((CLUSTER, "aws:ec2", "aws:eks/addon"))] == []
    assert f"{CLUSTER} cluster-cluster" in declarations.waits_for(f"{RELEASE} karpenter-release")
    assert set(gpu_pools(declarations)) == {"l4-spot", "t4-spot"}


def test_nothing_is_created_in_the_cluster_before_its_required_parts_are_found() -> None:
    declarations = existing()
    inside = [name for name in declarations.made if name.startswith("kubernetes:")]

    assert len(inside) > 50
    needed = {"kubernetes:apps/v1:DaemonSet cluster-parts-needs-eks-pod-identity-agent"}
    needed |= {"kubernetes:storage.k8s.io/v1:CSIDriver cluster-parts-needs-aws-mountpoint-s3-csi-driver"}
    assert needed <= declarations.waits_for("pulumi:providers:kubernetes cluster")
    assert {name for name in inside if "$pulumi:providers:kubernetes::cluster::" not in declarations.made[name].provider} == set()


def test_an_existing_karpenter_gets_the_pools_and_no_second_one_is_installed() -> None:
    declarations, ours = existing("prod-eks", karpenter=True), existing("prod-eks")

    assert declarations.read == sorted([f"{CLUSTER} ml", AGENT, S3, CONTROLLER.format("karpenter/karpenter"), DEFINITION])
    assert [name for name in declarations.made if name.startswith(OURS_ALONE)] == []
    pools = [name for name in declarations.made if name.startswith((NODE_POOL, NODE_CLASS))]
    assert pools == [name for name in ours.made if name.startswith((NODE_POOL, NODE_CLASS))]
    read = "kubernetes:apps/v1:Deployment karpenter-controller"
    assert [name for name in pools if read not in declarations.waits_for(name)] == []
    assert gpu_pools(declarations) == gpu_pools(ours)
    classes = node_classes(declarations)
    assert classes == {name: each | {"role": "KarpenterNodeRole-ml"} for name, each in node_classes(ours).items()}


def test_the_used_node_class_fields_of_newer_karpenters_are_required() -> None:
    [asked] = existing("prod-eks", karpenter=True).inputs_of("flexspot:index:ExistingKarpenter")
    optional = {"capacityReservationSelectorTerms", "networkInterfaces", "placementGroupSelector"}
    used = {field for spec in node_classes(as_shipped("prod-eks")).values() for field in spec}

    assert set(asked["fields"]) == optional & used
    assert asked["reserved"] is True
    [least] = existing("dev-eks", karpenter=True).inputs_of("flexspot:index:ExistingKarpenter")
    assert (least["fields"], least["reserved"]) == ([], False)


def test_an_existing_gpu_operator_replaces_device_plugin_and_exporter() -> None:
    declarations, ours = existing("prod-eks", operator=True), existing("prod-eks")

    assert POLICY in declarations.read
    gone = {name for name in ours.made if name not in declarations.made and name.startswith(RELEASE)}
    assert gone == {f"{RELEASE} gpu-plugins-nvidia", f"{RELEASE} dcgm-exporter-release"}
    [asked] = declarations.inputs_of("flexspot:index:ExistingGpuOperator")
    tainted = {(each["key"], each["value"]) for spec in gpu_pools(declarations).values() for each in spec["template"]["spec"]["taints"]}
    assert {(each["key"], each["value"]) for each in asked["taints"]} == tainted
    assert asked["dcgm_exporter"] is True


def test_on_a_new_cluster_a_later_gpu_operator_is_not_looked_for() -> None:
    cluster = shipped("dev-eks")["cluster"] | {"existing_gpu_operator": True}
    declarations = declared("dev-eks", shipped("dev-eks", cluster=cluster))

    assert declarations.read == []
    assert [name for name in as_shipped("dev-eks").made if name not in declarations.made and name.startswith(RELEASE)] == [
        f"{RELEASE} dcgm-exporter-release",
        f"{RELEASE} gpu-plugins-nvidia",
    ]
