"""What the controller's permissions are limited to, and the parts of a policy that say so."""

from __future__ import annotations

from dataclasses import dataclass

from components.eks.names import cluster_arn

NODE_POOL_TAG = "karpenter.sh/nodepool"
NODE_CLAIM_TAG = "karpenter.sh/nodeclaim"
NODE_CLASS_TAG = "karpenter.k8s.aws/ec2nodeclass"
CLUSTER_NAME_TAG = "eks:eks-cluster-name"
REGION_TAG = "topology.kubernetes.io/region"
"""Tags that Karpenter puts on what it makes, and by which it may change that and nothing else."""


@dataclass(frozen=True)
class ControllerScope:
    """One cluster in one region, the role of its nodes and its queue; all names are whole and plain."""

    cluster: str
    account: str
    partition: str
    region: str
    node_role_name: str
    queue_name: str

    @property
    def cluster_arn(self) -> str:
        """The cluster's ARN."""
        return cluster_arn(self.partition, self.region, self.account, self.cluster)

    @property
    def node_role_arn(self) -> str:
        """The ARN of the role that nodes run as, which has no path."""
        return f"arn:{self.partition}:iam::{self.account}:role/{self.node_role_name}"

    @property
    def queue_arn(self) -> str:
        """The interruption queue's ARN."""
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{self.queue_name}"

    @property
    def instance_profiles(self) -> str:
        """The ARNs of the account's instance profiles."""
        return f"arn:{self.partition}:iam::{self.account}:instance-profile/*"

    def ec2(self, *kinds: str) -> list[str]:
        """The ARNs of EC2 resources of some kinds in the region, those that are shared from another account among them."""
        return [f"arn:{self.partition}:ec2:{self.region}:*:{kind}/*" for kind in kinds]

    def ownerless(self, *kinds: str) -> list[str]:
        """The ARNs of EC2 resources whose ARN has no account: images and snapshots."""
        return [f"arn:{self.partition}:ec2:{self.region}::{kind}/*" for kind in kinds]

    def owned(self, tags: str) -> dict[str, str]:
        """The condition that the cluster owns it: `tags` is aws:ResourceTag, what exists, or aws:RequestTag, what is being made."""
        return {f"{tags}/kubernetes.io/cluster/{self.cluster}": "owned"}

    def named(self) -> dict[str, str]:
        """The condition that what is being made carries the cluster's name, under the key that EKS itself uses."""
        return {f"aws:RequestTag/{CLUSTER_NAME_TAG}": self.cluster}

    def regional(self, tags: str) -> dict[str, str]:
        """The condition that it belongs to this region: instance profiles themselves belong to none."""
        return {f"{tags}/{REGION_TAG}": self.region}
