"""EKS's own add-ons: which a cluster gets, what they may do, and how they get onto nodes with taints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_aws import eks

from components.eks.system_nodes import CRITICAL_ADDONS, role_name
from components.iam import GrantedRole, RoleShape, granted_role, pod_trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.eks.cluster_args import ClusterShape

EBS_DRIVER = "aws-ebs-csi-driver"

_ON_SYSTEM_NODES = [{"key": CRITICAL_ADDONS, "operator": "Exists"}]
_EVERYWHERE = [{"operator": "Exists"}]


@dataclass(frozen=True)
class EksAddon:
    """An add-on: its name, its configuration, and the service account and policy of the role it has, if it has one."""

    name: str
    configuration: dict[str, Any] | None = None
    service_account: str | None = None
    policy: str | None = None


POD_IDENTITY_AGENT = EksAddon("eks-pod-identity-agent")
KUBE_PROXY = EksAddon("kube-proxy")
"""Both are on every node, whatever its taints (the agent's chart in aws/eks-pod-identity-agent; for kube-proxy the add-on has no such
setting, aws/containers-roadmap issue 2604), and so is vpc-cni."""

VPC_CNI = EksAddon(
    "vpc-cni",
    # Without it a NetworkPolicy is accepted and does nothing. The schema asks for a string (EKS user guide, network policies).
    {"enableNetworkPolicy": "true"},
    service_account="aws-node",
    policy="AmazonEKS_CNI_Policy",
)

AFTER_NODES = (
    # It tolerates the system nodes' taint by default as well; said here, because without DNS nothing else starts.
    EksAddon("coredns", {"tolerations": _ON_SYSTEM_NODES}),
    EksAddon(
        EBS_DRIVER,
        {"controller": {"tolerations": _ON_SYSTEM_NODES}, "node": {"tolerateAllTaints": True}},
        service_account="ebs-csi-controller-sa",
        # Narrower than AmazonEBSCSIDriverPolicy and its V2: it touches only what is tagged with the cluster that Pod Identity names.
        policy="AmazonEBSCSIDriverEKSClusterScopedPolicy",
    ),
    # The controller tolerates nothing by default (the chart in awslabs/mountpoint-s3-csi-driver), and the add-on is not healthy before it
    # runs. v2.0.0 refused its tolerations (aws/containers-roadmap issue 2676). No role: pods mount with their own identity.
    EksAddon("aws-mountpoint-s3-csi-driver", {"controller": {"tolerations": _ON_SYSTEM_NODES}, "node": {"tolerateAllTaints": True}}),
    # The agent itself is on every node. What it asks about GPUs (DCGM) tolerates nothing by default, and where that is missing, each GPU
    # node is reported as broken (aws/containers-roadmap issue 2567; charts/configuration.schema.json in aws/eks-node-monitoring-agent).
    EksAddon("eks-node-monitoring-agent", {"dcgmAgent": {"tolerations": _EVERYWHERE}}),
)
"""Those that wait for a node to run on."""

ADDONS = (POD_IDENTITY_AGENT, KUBE_PROXY, VPC_CNI, *AFTER_NODES)

_NAMESPACE = "kube-system"


@dataclass(frozen=True)
class AddonInstaller:
    """Installs add-ons on one cluster; `name` is what their Pulumi names begin with."""

    name: str
    shape: ClusterShape
    cluster: pulumi.Input[str]
    parent: pulumi.Resource

    def before_nodes(self) -> list[pulumi.Resource]:
        """The add-ons without which no node becomes ready.

        The agent before vpc-cni, which gets its credentials from it and would otherwise take the node's; those may do nothing to the
        network (terraform-aws-eks issue 3260).
        """
        agent = self._install(POD_IDENTITY_AGENT, [])
        return [agent, self._install(KUBE_PROXY, []), self._install(VPC_CNI, [agent])]

    def after_nodes(self, nodes: pulumi.Resource) -> list[pulumi.Resource]:
        """The other add-ons, which EKS reports as healthy only once they run."""
        return [self._install(addon, [nodes]) for addon in AFTER_NODES]

    def _install(self, addon: EksAddon, after: Sequence[pulumi.Resource]) -> pulumi.Resource:
        waits_for = [*after]
        identities: list[eks.AddonPodIdentityAssociationArgs] | None = None
        if addon.service_account and addon.policy:
            granted = self._role(addon.name, addon.service_account, addon.policy)
            identities = [eks.AddonPodIdentityAssociationArgs(role_arn=granted.role.arn, service_account=addon.service_account)]
            waits_for += granted.grants
        return eks.Addon(
            f"{self.name}-{addon.name}",
            addon_name=addon.name,
            cluster_name=self.cluster,
            addon_version=self.shape.addon_versions.get(addon.name),
            configuration_values=None if addon.configuration is None else configuration_text(addon.configuration),
            pod_identity_associations=identities,
            # What somebody changed by hand is changed back: the program is where the configuration is.
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            tags=self.shape.tags,
            opts=pulumi.ResourceOptions(parent=self.parent, depends_on=waits_for),
        )

    def _role(self, addon: str, service_account: str, policy: str) -> GrantedRole:
        shape = RoleShape(
            name=role_name(self.shape.cluster, addon),
            description=f"EKS add-on {addon}",
            trust=pod_trust(self.shape.arn, _NAMESPACE, service_account),
            partition=self.shape.partition,
            policies=[policy],
            tags=self.shape.tags,
        )
        return granted_role(f"{self.name}-{addon}-role", shape, self.parent)


def configuration_text(configuration: dict[str, Any]) -> str:
    """A configuration as EKS takes it, the same text for the same configuration always."""
    return json.dumps(configuration, separators=(",", ":"), sort_keys=True)
