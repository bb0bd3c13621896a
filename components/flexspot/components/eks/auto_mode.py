"""EKS Auto Mode: node classes, the identity of its nodes, nodes for controllers, and the add-ons that it does not include."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import eks
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from flexspot.capacity.catalog.platform import PARTITIONS
from flexspot.capacity.catalog.versions import RECOMMENDED, auto_mode
from flexspot.capacity.settings.cluster import EksAddons, SystemPool
from flexspot.capacity.settings.pools import IMAGES_AND_SCRATCH, EksNodeDisk
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import FORMS, RESOURCE_NAME
from flexspot.components.cloud_names import DISCOVERY_TAG, NAMESPACE, check_choice, check_cluster_name, check_place
from flexspot.components.eks.addons import AddonInstaller
from flexspot.components.eks.cluster_args import AddonsArgs
from flexspot.components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL, role_name
from flexspot.components.iam import RoleShape, ec2_trust, granted_role
from flexspot.components.karpenter.ec2_node_class import (
    NodeClassArgs,
    check_efa,
    check_own_tags,
    check_reservations,
    efa_layout,
    id_terms,
    placement_fields,
)
from flexspot.components.karpenter.node_pools import NodeClassRef, consolidating_disruption
from flexspot.components.shared_args import RoleOptionsArgs, check_role_options, checked_options, defaults, filled, publish, refuse

GROUP = "eks.amazonaws.com"
KIND = "NodeClass"

MOST_PODS = 110
"""Maximum pods of an Auto Mode node (create-node-class.adoc at 0026c9df, considerations)."""

_PREFIX = 16
"""Number of addresses in a prefix, /28."""

BUILT_IN = "default"
"""The name of the class that EKS creates with its built-in pools."""

_RESERVED_TAGS = ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.sh/managed-by")
_RESERVED_PREFIXES = ("kubernetes.io/cluster/", "eks.amazonaws.com/nodeclass", "eks:", "aws:")
"""Tags that a NodeClass rejects, and those that Auto Mode and AWS set (create-node-class.adoc at 0026c9df, "Node Class Specification")."""


class AutoNodeClassArgs(NodeClassArgs):
    """Arguments of AutoNodeClass. `node_class` must not be `default`."""

    pods: NotRequired[int]
    """Number of pods for which a node with EFA interfaces gets addresses at start. Auto Mode adds none to such a node later.

    Default: 110, the maximum on an Auto Mode node."""


def check_auto_node_class(name: str, args: AutoNodeClassArgs) -> EksNodeDisk:
    """Return the requested volume. Raises ValueError for values that Auto Mode would reject."""
    where = f"AutoNodeClass {name}"
    called = args["node_class"]
    if not re.fullmatch(RESOURCE_NAME, called) or called == BUILT_IN:
        problem = f"must be {FORMS[RESOURCE_NAME]}, but not {BUILT_IN}, which EKS creates"
        refuse(where, SettingsProblem("node_class", repr(called), problem, "rename it"))
    check_reservations(where, args)
    check_efa(where, args)
    if (pods := args.get("pods", MOST_PODS)) < 1:
        refuse(where, SettingsProblem("pods", str(pods), "must be at least 1", "leave it out for the maximum"))
    check_own_tags(where, args, "Auto Mode or AWS", _RESERVED_TAGS, _RESERVED_PREFIXES)
    return checked_options(where, EksNodeDisk, args)


def auto_node_class_spec(args: AutoNodeClassArgs, disk: EksNodeDisk) -> dict[str, Any]:
    """Return the spec of a NodeClass that has passed its checks. Empty fields are omitted.

    Source: awsdocs/amazon-eks-user-guide, latest/ug/automode/create-node-class.adoc at 0026c9df and auto-odcr.adoc (read 2026-11-25). The
    definition itself is not public. The volume's key is the account's own for EBS. Names of fields that are not on that page come from
    AWS's release notes for Auto Mode (auto-change.adoc).
    """
    volume = disk.volume(IMAGES_AND_SCRATCH)
    discovered = [{"tags": {DISCOVERY_TAG: args["cluster"]}}]
    interfaces = _network_interfaces(args)
    return {
        "role": args["node_role"],
        "subnetSelectorTerms": id_terms(args.get("subnet_ids")) or discovered,
        "securityGroupSelectorTerms": discovered + id_terms(args.get("more_security_group_ids")),
        "ephemeralStorage": {"size": f"{volume.gib}Gi", "iops": volume.iops, "throughput": volume.throughput_mib},
        # Kubernetes' default without a team's own policies. Each team's namespace denies by default.
        "networkPolicy": "DefaultAllow",
        "networkPolicyEventLogs": "Disabled",
        "snatPolicy": "Random",
        # EC2 gives no public address to an instance with several interfaces, and rejects the field.
        "advancedNetworking": {"networkInterfaces": interfaces} if interfaces else {"associatePublicIPAddress": False},
        # The owner's field has this name here, and `ownerID` in Karpenter's own class.
        **placement_fields(args, "owner"),
        "tags": dict(sorted(args["tags"].items())),
    }


def _network_interfaces(args: AutoNodeClassArgs) -> list[dict[str, Any]]:
    """Return the interfaces as for a self-managed Karpenter. The first has the addresses of all pods, because none is added later.

    EKS user guide, "Manage EFA devices on Amazon EKS", EKS Auto Mode: since 2026-07-21 (auto-change.md; read 2026-11-26).
    """
    first, *others = efa_layout(args) or [{}]
    pods = min(args.get("pods", MOST_PODS), MOST_PODS)
    return [first | {"secondaryIPv4PrefixCount": -(-pods // _PREFIX)}, *others] if first else []


def auto_node_class_ref(node_class: str) -> NodeClassRef:
    """Return a NodePool's reference to the NodeClass of that name."""
    return {"group": GROUP, "kind": KIND, "name": node_class}


class AutoNodeClass(pulumi.ComponentResource):
    """Network, volume and identity of Auto Mode nodes. AWS chooses their image, a Bottlerocket, and each weekly image is drift.

    Nodes have no public address, and pods cannot reach their metadata service: Auto Mode has a hop limit of 1 that cannot be changed. If a
    machine has NVMe disks larger than the volume, Auto Mode puts images and scratch data on these and creates a 20 GiB volume instead
    (automode-learn-instances.adoc at 06faff14).

    Raises ValueError, before anything is registered, for values that Auto Mode would reject. This component has not been used in a live
    account.
    """

    name: pulumi.Output[str]
    """The NodeClass's name."""

    def __init__(self, name: str, args: AutoNodeClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        disk = check_auto_node_class(name, args)
        super().__init__("flexspot:index:AutoNodeClass", name, {**args}, opts)
        CustomResource(
            f"{name}-node-class",
            api_version=f"{GROUP}/v1",
            kind=KIND,
            metadata=ObjectMetaArgs(name=args["node_class"], labels=args.get("labels") or None),
            spec=auto_node_class_spec(args, disk),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["node_class"])
        publish(self)


@defaults(partition="aws", metrics_server=EksAddons.default("metrics_server"), version="")
class AutoAddonsArgs(AddonsArgs):
    """Arguments of AutoAddons. The add-ons' arguments are those of EksCluster."""

    cluster_name: pulumi.Input[str]
    """The cluster's name, known once the cluster exists."""

    version: NotRequired[str]
    """The cluster's Kubernetes version, such as 1.35. Required if an add-on's version is `recommended`. Default: it is not known."""

    labels: dict[str, str]
    """Labels of Kubernetes objects."""


class AutoAddons(pulumi.ComponentResource):
    """The add-ons that Auto Mode does not include, and the ConfigMap without which it accepts a NetworkPolicy but does not enforce it.

    Add-ons only become healthy once they run, so make this depend on nodes for them: AutoSystemPool. Raises ValueError for names, accounts
    and regions that AWS would reject. This component has not been deployed to a live account.
    """

    versions: pulumi.Output[dict[str, str]]
    """The requested versions of add-ons, known once they exist."""

    def __init__(self, name: str, args: AutoAddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where, given = f"AutoAddons {name}", {**args}
        args = filled(AutoAddonsArgs, args)
        check_cluster_name(f"{where}:", args["cluster"])
        check_place(f"{where}:", args["account"], args["partition"], args["region"])
        check_role_options(f"{where}:", args["iam_path"], args["permissions_boundary"])
        if RECOMMENDED in args["addon_versions"].values() and not args["version"]:
            problem = f"is missing, but version {RECOMMENDED} of an add-on requires it"
            refuse(where, SettingsProblem("version", "", problem, "name the Kubernetes version, such as 1.35"))
        super().__init__("flexspot:index:AutoAddons", name, given, opts)
        policies = ConfigMap(
            f"{name}-network-policies",
            metadata=ObjectMetaArgs(name="amazon-vpc-cni", namespace=NAMESPACE, labels=args["labels"]),
            # awsdocs/amazon-eks-user-guide, latest/ug/automode/auto-net-pol.adoc at 01385604, "Enable Network Policy Controller".
            data={"enable-network-policy-controller": "true"},
            opts=pulumi.ResourceOptions(parent=self),
        )
        installed = AddonInstaller(name, args, args["version"], args["cluster_name"], self).after_nodes([], but=auto_mode().addons)
        # Not an output: resources for others that wait for drivers and network policies.
        self.ready: list[pulumi.Resource] = [policies, *installed]
        self.versions = pulumi.Output.from_input(args["addon_versions"])
        publish(self)


NODE_POLICIES = ("AmazonEKSWorkerNodeMinimalPolicy", "AmazonEC2ContainerRegistryPullOnly")
"""Policies to join with separate credentials for pods, and to pull images. Such nodes allow no logins, so no policy for sessions is needed.

awsdocs/amazon-eks-user-guide, latest/ug/automode/automode-get-started-cli.adoc at 01385604, "Node IAM Role" (read 2026-11-25).
"""

ACCESS_POLICY = "AmazonEKSAutoNodePolicy"


class AutoNodeIdentityArgs(RoleOptionsArgs):
    """Arguments of AutoNodeIdentity."""

    cluster: str
    """The cluster's name, 1 to 100 characters. It is plain because the role's name is built from it."""

    cluster_name: pulumi.Input[str]
    """The same name as an output of the cluster, so that the access entry waits for it."""

    tags: dict[str, str]
    """Tags of the role and the access entry."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""


class AutoNodeIdentity(pulumi.ComponentResource):
    """The IAM role of the nodes that Auto Mode launches for custom NodeClasses, and the access entry with which they join.

    EKS creates such an entry itself only for its built-in pools. The entry is of type EC2, with AWS's own policy for Auto Mode nodes on the
    whole cluster (create-node-class.adoc at 0026c9df, "Create node class access entry").

    Raises ValueError for a name or partition that AWS would reject. This component has not been deployed to a live account.
    """

    role_name: pulumi.Output[str]
    """The role's name for AutoNodeClass, known once its policies and its access exist. Nodes that start earlier could not join."""

    def __init__(self, name: str, args: AutoNodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"AutoNodeIdentity {name}:"
        partition = args.get("partition", "aws")
        check_cluster_name(where, args["cluster"])
        check_choice(f"{where} partition", partition, list(PARTITIONS))
        check_role_options(where, args.get("iam_path"), args.get("permissions_boundary"))
        super().__init__("flexspot:index:AutoNodeIdentity", name, {**args, "partition": partition}, opts)
        granted = granted_role(
            f"{name}-role",
            RoleShape(
                name=role_name(args["cluster"], "auto-nodes"),
                description=f"Auto Mode's nodes in the cluster {args['cluster']}",
                trust=ec2_trust(partition),
                partition=partition,
                policies=NODE_POLICIES,
                tags=args["tags"],
                iam_path=args.get("iam_path"),
                permissions_boundary=args.get("permissions_boundary"),
            ),
            self,
        )
        entry = eks.AccessEntry(
            f"{name}-access",
            cluster_name=args["cluster_name"],
            principal_arn=granted.role.arn,
            type="EC2",
            tags=args["tags"],
            opts=pulumi.ResourceOptions(parent=self),
        )
        access = eks.AccessPolicyAssociation(
            f"{name}-policy",
            cluster_name=args["cluster_name"],
            principal_arn=granted.role.arn,
            policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{ACCESS_POLICY}",
            access_scope=eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[entry]),
        )
        self.role_name = pulumi.Output.all(granted.role.name, access.id, *(each.id for each in granted.grants)).apply(
            lambda known: known[0]
        )
        publish(self)


_HIGHEST_WEIGHT = 100
"""Karpenter's highest weight, so that pods that tolerate the taint use these nodes, and not Spot nodes for other work."""


class AutoSystemPoolArgs(TypedDict):
    """Arguments of AutoSystemPool."""

    pool: str
    """Name of the NodePool. `system` is reserved by EKS."""

    machine: str
    """Instance type with an x86 processor and without GPUs, such as m6i.xlarge."""

    max_nodes: NotRequired[int]
    """Maximum number of nodes, at least 1. Default: 4."""

    zones: list[str]
    """Zones in which nodes may start, by name."""

    node_class: NodeClassRef
    """The node class."""

    expire_after_hours: int
    """Age in hours at which a node is drained."""

    drain_hours: int
    """Hours after which a drain is forced to end."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of its nodes that identify their owner in reports. Default: none."""


class AutoSystemPool(pulumi.ComponentResource):
    """On-demand nodes for pods that tolerate `CriticalAddonsOnly`, created as controllers need them, up to a ceiling.

    Auto Mode's own pool `system` has the same taint but no ceiling, and chooses its own machines. The nodes have the label that the
    controllers select, so controllers are deployed as on other clusters of the platform. Half-empty nodes are consolidated, one in ten at a
    time.

    Raises ValueError for a ceiling below one and for a name that EKS reserves.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: AutoSystemPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where, most = f"AutoSystemPool {name}", args.get("max_nodes", SystemPool.default("max_nodes"))
        if most < 1:
            refuse(where, SettingsProblem("max_nodes", str(most), "must be at least 1", "leave it out for 4"))
        if args["pool"] in {"system", "general-purpose"}:
            refuse(where, SettingsProblem("pool", repr(args["pool"]), "is the name of a NodePool that EKS creates", "rename it"))
        super().__init__("flexspot:index:AutoSystemPool", name, {**args}, opts)
        wanted = {
            CAPACITY_TYPE_LABEL: ["on-demand"],
            INSTANCE_TYPE_LABEL: [args["machine"]],
            ZONE_LABEL: sorted(args["zones"]),
        }
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {
                    "metadata": {"labels": dict(sorted({**args.get("owner_labels", {}), SYSTEM_LABEL: "true"}.items()))},
                    "spec": {
                        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()],
                        "nodeClassRef": dict(args["node_class"]),
                        "taints": [{"key": CRITICAL_ADDONS, "value": "true", "effect": "NoSchedule"}],
                        "expireAfter": f"{args['expire_after_hours']}h",
                        "terminationGracePeriod": f"{args['drain_hours']}h",
                    },
                },
                "disruption": consolidating_disruption(60),
                "weight": _HIGHEST_WEIGHT,
                "limits": {"nodes": str(most)},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        publish(self)
