"""A Karpenter EC2NodeClass: what the EC2 instances of NodePools are made of."""

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from components.karpenter.gpu_pool_args import NodeClassRef
from components.karpenter.node_class_args import Ec2NodeClassArgs, NodeClass
from components.karpenter.node_class_checks import check_node_class
from components.karpenter.node_class_spec import node_class_spec

__all__ = ["Ec2NodeClass", "Ec2NodeClassArgs", "ec2_node_class_ref"]

GROUP = "karpenter.k8s.aws"
KIND = "EC2NodeClass"


def ec2_node_class_ref(node_class: str) -> NodeClassRef:
    """How a NodePool refers to the EC2NodeClass of that name."""
    return {"group": GROUP, "kind": KIND, "name": node_class}


class Ec2NodeClass(pulumi.ComponentResource):
    """Image, network, disks and identity of the nodes of one or more NodePools.

    The image is pinned; volumes are gp3, encrypted and gone with their node; the metadata service asks for a token and does not answer
    pods; nodes have no public address. With `efa_interfaces` every node has its EFA interfaces whether or not a pod asks for them, and the
    pool's nodes need the label of GpuPlugins' EFA plugin. A changed image, disk, network or tag is drift: nodes are replaced as the
    NodePool's budgets allow.

    Raises ValueError before anything is registered: for an image that is not pinned under the rule ami-not-pinned, for a capacity block
    without its zone under capacity-block-without-zone, and for what Karpenter or EC2 would refuse. Nothing here was launched in AWS.
    """

    name: pulumi.Output[str]
    """The EC2NodeClass's name."""

    def __init__(self, name: str, args: Ec2NodeClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        node_class = NodeClass(**args)
        check_node_class(name, node_class)
        super().__init__("flexspot:index:Ec2NodeClass", name, {**args}, opts)
        CustomResource(
            f"{name}-node-class",
            api_version=f"{GROUP}/v1",
            kind=KIND,
            metadata=ObjectMetaArgs(name=node_class.node_class, labels=node_class.labels or None),
            spec=node_class_spec(node_class),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(node_class.node_class)
        self.register_outputs({"name": self.name})
