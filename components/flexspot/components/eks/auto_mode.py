"""EKS Auto Mode: node classes, the identity of its nodes, nodes for controllers, and the add-ons that it leaves to be installed."""

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
from flexspot.capacity.settings.cluster import SystemPool
from flexspot.capacity.settings.pools import IMAGES_AND_SCRATCH, EksNodeDisk
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import AWS_ACCOUNT, CAPACITY_RESERVATION, FORMS, RESOURCE_NAME
from flexspot.components.cloud_names import DISCOVERY_TAG, NAMESPACE, check_choice, check_cluster_name, check_place
from flexspot.components.eks.addons import AddonInstaller
from flexspot.components.eks.cluster_args import AddonsShape
from flexspot.components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL, role_name
from flexspot.components.iam import RoleShape, ec2_trust, granted_role
from flexspot.components.karpenter.ec2_node_class import EksNodeDiskArgs, check_efa, efa_layout
from flexspot.components.karpenter.node_pools import NodeClassRef, fuller_or_cheaper
from flexspot.components.shared_args import RoleOptionsArgs, check_role_options, checked_options, refuse

GROUP = "eks.amazonaws.com"
KIND = "NodeClass"

MOST_PODS = 110
"""The most pods of a node of Auto Mode (create-node-class.adoc at 0026c9df, considerations)."""

_PREFIX = 16
"""Addresses of a prefix, /28."""

BUILT_IN = "default"
"""The name of the class that EKS makes with its built-in pools."""

_RESERVED_TAGS = ("karpenter.sh/provisioner-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.sh/managed-by")
_RESERVED_PREFIXES = ("kubernetes.io/cluster/", "eks.amazonaws.com/nodeclass", "eks:", "aws:")
"""What a NodeClass refuses, and what Auto Mode and AWS set themselves (create-node-class.adoc at 0026c9df, "Node Class Specification")."""


class AutoNodeClassArgs(EksNodeDiskArgs):
    """Arguments of AutoNodeClass. Those that are not `Input` are plain, because they shape the object or are checked."""

    node_class: str
    """Name of the NodeClass, as NodePools refer to it; not `default`."""

    cluster: str
    """The cluster's name: the value of the tag karpenter.sh/discovery on its subnets and security groups."""

    node_role: pulumi.Input[str]
    """Name, not ARN, of the nodes' IAM role: AutoNodeIdentity's."""

    subnet_ids: NotRequired[list[pulumi.Input[str]]]
    """Subnets of the nodes. Default: those tagged karpenter.sh/discovery with the cluster's name."""

    more_security_group_ids: NotRequired[list[pulumi.Input[str]]]
    """Security groups of the nodes in addition to the discovered ones, such as EfaSecurityGroup's. Default: none."""

    efa_interfaces: NotRequired[int]
    """Number of EFA interfaces per node, equal to its machine's network cards (p5.48xlarge 32, p4d.24xlarge 4, g6.8xlarge 1). Default:
    0."""

    efa_first_card: NotRequired[int]
    """Index of the first network card that supports an EFA interface: 1 for p6-b300.48xlarge, whose card 0 does not. Default: 0."""

    pods: NotRequired[int]
    """Number of pods for which a node with EFA interfaces gets addresses at start: Auto Mode adds none to such a node later. Default:
    110, the maximum on an Auto Mode node."""

    placement_group: NotRequired[pulumi.Input[str] | None]
    """Name of the placement group in which the nodes start. Default: none."""

    reservation_ids: NotRequired[list[str]]
    """Capacity reservations that nodes may use, such as cr-0a1b2c3d4e5f60718. Default: none."""

    reservation_tags: NotRequired[dict[str, str]]
    """Tags of the capacity reservations that nodes may use. Cannot be combined with ids. Default: none."""

    reservation_owner: NotRequired[str | None]
    """The account that owns the reservations, 12 digits; only with tags. Default: any."""

    tags: dict[str, str]
    """Tags of the instances, volumes and network interfaces. The cluster's role must allow Auto Mode to set them."""

    labels: NotRequired[dict[str, str]]
    """Labels of the NodeClass object. Default: none."""


def check_auto_node_class(name: str, args: AutoNodeClassArgs) -> EksNodeDisk:
    """The volume that is asked for. Raises ValueError for what Auto Mode would refuse."""
    where = f"AutoNodeClass {name}"
    called = args["node_class"]
    if not re.fullmatch(RESOURCE_NAME, called) or called == BUILT_IN:
        allowed = f"it is {FORMS[RESOURCE_NAME]}, and {BUILT_IN} is EKS's own"
        refuse(where, SettingsProblem("node_class", repr(called), allowed, "rename it"))
    ids, tags, owner = args.get("reservation_ids") or [], args.get("reservation_tags") or {}, args.get("reservation_owner")
    if ids and tags:
        problem = "it stands beside reservation_tags, and a pool has one of them"
        refuse(where, SettingsProblem("reservation_ids", ", ".join(ids), problem, "leave one out"))
    for each in ids:
        if not re.fullmatch(CAPACITY_RESERVATION, each):
            refuse(where, SettingsProblem("reservation_ids", repr(each), f"an id is {FORMS[CAPACITY_RESERVATION]}", "copy it from there"))
    if owner is not None and (not tags or not re.fullmatch(AWS_ACCOUNT, owner)):
        refuse(where, SettingsProblem("reservation_owner", owner, f"it is {FORMS[AWS_ACCOUNT]}, beside tags", "leave it out with ids"))
    check_efa(where, args.get("efa_interfaces") or 0, args.get("efa_first_card") or 0)
    if (pods := args.get("pods", MOST_PODS)) < 1:
        refuse(where, SettingsProblem("pods", str(pods), "it is 1 or more", "leave it out for the most"))
    for key in sorted(args["tags"]):
        if key in _RESERVED_TAGS or key.startswith(_RESERVED_PREFIXES) or not key:
            own = ", ".join((*_RESERVED_TAGS, *(f"{prefix}..." for prefix in _RESERVED_PREFIXES)))
            refuse(where, SettingsProblem("tags", repr(key), f"empty keys are refused, and Auto Mode or AWS set {own}", "leave it out"))
    return checked_options(where, EksNodeDisk, args)


def auto_node_class_spec(args: AutoNodeClassArgs, disk: EksNodeDisk) -> dict[str, Any]:
    """The spec of a NodeClass that has passed its checks. What is empty is left out.

    Source: awsdocs/amazon-eks-user-guide, latest/ug/automode/create-node-class.adoc at 0026c9df and auto-odcr.adoc (read 2026-11-25); the
    definition itself is not public. The volume's key is the account's own for EBS. Names of fields beyond that page are of AWS's release
    notes for Auto Mode (auto-change.adoc).
    """
    volume = disk.volume(IMAGES_AND_SCRATCH)
    discovered = [{"tags": {DISCOVERY_TAG: args["cluster"]}}]
    subnets: list[Any] = args.get("subnet_ids") or []
    known = all(isinstance(each, str) for each in subnets)
    reservations, interfaces = _reservation_terms(args), _network_interfaces(args)
    return {
        "role": args["node_role"],
        "subnetSelectorTerms": [{"id": each} for each in (sorted(subnets) if known else subnets)] or discovered,
        "securityGroupSelectorTerms": discovered + [{"id": each} for each in args.get("more_security_group_ids") or []],
        "ephemeralStorage": {"size": f"{volume.gib}Gi", "iops": volume.iops, "throughput": volume.throughput_mib},
        # What is not written by a team's own policies stays as Kubernetes has it; each team's namespace denies by default.
        "networkPolicy": "DefaultAllow",
        "networkPolicyEventLogs": "Disabled",
        "snatPolicy": "Random",
        # EC2 gives no public address to an instance with several interfaces, and refuses the question.
        "advancedNetworking": {"networkInterfaces": interfaces} if interfaces else {"associatePublicIPAddress": False},
        **({} if (group := args.get("placement_group")) is None else {"placementGroupSelector": {"name": group}}),
        **({"capacityReservationSelectorTerms": reservations} if reservations else {}),
        "tags": dict(sorted(args["tags"].items())),
    }


def _network_interfaces(args: AutoNodeClassArgs) -> list[dict[str, Any]]:
    """As for a Karpenter of one's own; the first interface has the addresses of all pods, as nothing is added once the node is there.

    EKS user guide, "Manage EFA devices on Amazon EKS", EKS Auto Mode: since 2026-07-21 (auto-change.md; read 2026-11-26).
    """
    first, *others = efa_layout(args.get("efa_interfaces") or 0, args.get("efa_first_card") or 0) or [{}]
    pods = min(args.get("pods", MOST_PODS), MOST_PODS)
    return [first | {"secondaryIPv4PrefixCount": -(-pods // _PREFIX)}, *others] if first else []


def _reservation_terms(args: AutoNodeClassArgs) -> list[dict[str, Any]]:
    """A term for each id, or one with all the tags. The owner is called `owner` here, and `ownerID` in Karpenter's own class."""
    owner: dict[str, str] = {} if (account := args.get("reservation_owner")) is None else {"owner": account}
    tags = args.get("reservation_tags") or {}
    return (
        [owner | {"tags": dict(sorted(tags.items()))}]
        if tags
        else [{"id": each} for each in sorted(set(args.get("reservation_ids") or []))]
    )


def auto_node_class_ref(node_class: str) -> NodeClassRef:
    """How a NodePool refers to the NodeClass of that name."""
    return {"group": GROUP, "kind": KIND, "name": node_class}


class AutoNodeClass(pulumi.ComponentResource):
    """Network, volume and identity of Auto Mode nodes. AWS chooses their image, a Bottlerocket, and each weekly image is drift.

    Nodes have no public address, and pods cannot reach their metadata service: Auto Mode has a hop limit of 1 that cannot be changed. Where
    a machine has NVMe disks larger than the volume, Auto Mode puts images and scratch data on these and creates a 20 GiB volume instead
    (automode-learn-instances.adoc at 06faff14).

    Raises ValueError, before anything is registered, for what Auto Mode would refuse. Nothing here was launched in AWS.
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
        self.register_outputs({"name": self.name})


class AutoAddonsArgs(RoleOptionsArgs):
    """Arguments of AutoAddons; those of add-ons are those of EksCluster."""

    cluster: str
    """The cluster's name, 1 to 100 characters."""

    cluster_name: pulumi.Input[str]
    """The same name, known once the cluster exists."""

    account: str
    """The account id, 12 digits."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""

    region: str
    """The region, such as us-east-1."""

    addon_versions: NotRequired[dict[str, str]]
    """Versions of add-ons by name, or `recommended`, as for EksCluster. Default: EKS's default on the day an add-on is created."""

    version: NotRequired[str]
    """The cluster's Kubernetes version, such as 1.35; required if an add-on's version is `recommended`. Default: unknown."""

    efs_driver: NotRequired[bool]
    """Whether to install the add-on aws-efs-csi-driver. Default: False."""

    lustre_driver: NotRequired[bool]
    """Whether to install the add-on aws-fsx-csi-driver. Default: False."""

    metrics_server: NotRequired[bool]
    """Whether to install the add-on metrics-server. Default: True."""

    labels: dict[str, str]
    """Labels of Kubernetes objects."""

    tags: NotRequired[dict[str, str]]
    """Tags of add-ons and their roles. Default: none."""


class AutoAddons(pulumi.ComponentResource):
    """The add-ons that Auto Mode does not include, and the ConfigMap without which it accepts a NetworkPolicy but does not enforce it.

    Add-ons only become healthy once they run, so make this depend on nodes for them: AutoSystemPool. Raises ValueError for names and places
    that AWS would refuse. Nothing here was applied to a live account.
    """

    versions: pulumi.Output[dict[str, str]]
    """The versions of add-ons that are asked for, known once they are there."""

    def __init__(self, name: str, args: AutoAddonsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"AutoAddons {name}:"
        check_cluster_name(where, args["cluster"])
        check_place(where, args["account"], args.get("partition", "aws"), args["region"])
        check_role_options(where, args.get("iam_path"), args.get("permissions_boundary"))
        if RECOMMENDED in args.get("addon_versions", {}).values() and not args.get("version"):
            raise ValueError(f"{where} version is missing, and an add-on's is {RECOMMENDED}; it must be a version such as 1.35; name it")
        super().__init__("flexspot:index:AutoAddons", name, {**args}, opts)
        policies = ConfigMap(
            f"{name}-network-policies",
            metadata=ObjectMetaArgs(name="amazon-vpc-cni", namespace=NAMESPACE, labels=args["labels"]),
            # awsdocs/amazon-eks-user-guide, latest/ug/automode/auto-net-pol.adoc at 01385604, "Enable Network Policy Controller".
            data={"enable-network-policy-controller": "true"},
            opts=pulumi.ResourceOptions(parent=self),
        )
        shape = AddonsShape(
            cluster=args["cluster"],
            account=args["account"],
            partition=args.get("partition", "aws"),
            region=args["region"],
            version=args.get("version", ""),
            addon_versions=args.get("addon_versions", {}),
            efs_driver=args.get("efs_driver", False),
            lustre_driver=args.get("lustre_driver", False),
            metrics_server=args.get("metrics_server", True),
            tags=args.get("tags", {}),
            iam_path=args.get("iam_path"),
            permissions_boundary=args.get("permissions_boundary"),
        )
        installed = AddonInstaller(name, shape, args["cluster_name"], self).after_nodes([], but=auto_mode().addons)
        # Not an output: what waits for drivers and network policies.
        self.ready: list[pulumi.Resource] = [policies, *installed]
        self.versions = pulumi.Output.from_input(args.get("addon_versions", {}))
        self.register_outputs({"versions": self.versions})


NODE_POLICIES = ("AmazonEKSWorkerNodeMinimalPolicy", "AmazonEC2ContainerRegistryPullOnly")
"""To join with credentials of pods' own, and to pull images. Nobody logs in to such nodes, so there is no policy for sessions.

awsdocs/amazon-eks-user-guide, latest/ug/automode/automode-get-started-cli.adoc at 01385604, "Node IAM Role" (read 2026-11-25).
"""

ACCESS_POLICY = "AmazonEKSAutoNodePolicy"


class AutoNodeIdentityArgs(RoleOptionsArgs):
    """Arguments of AutoNodeIdentity."""

    cluster: str
    """The cluster's name, 1 to 100 characters; plain, because the role's name is made from it."""

    cluster_name: pulumi.Input[str]
    """The same name as an output of the cluster: the access entry waits for it."""

    tags: dict[str, str]
    """Tags of the role and the access entry."""

    partition: NotRequired[str]
    """aws, aws-cn or aws-us-gov. Default: aws."""


class AutoNodeIdentity(pulumi.ComponentResource):
    """The IAM role of the nodes that Auto Mode launches for custom NodeClasses, and the access entry with which they join.

    EKS creates such an entry itself only for its built-in pools. The entry is of type EC2, with AWS's own policy for Auto Mode nodes on the
    whole cluster (create-node-class.adoc at 0026c9df, "Create node class access entry").

    Raises ValueError for a name or partition that AWS would refuse. Nothing here was applied to a live account.
    """

    role_name: pulumi.Output[str]
    """The role's name for AutoNodeClass, known once its policies and its access exist: nodes that start before could not join."""

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
        self.register_outputs({"role_name": self.role_name})


_FIRST = 100
"""The highest weight that Karpenter takes: what tolerates the taint comes here, and not to nodes on Spot for other work."""


class AutoSystemPoolArgs(TypedDict):
    """Arguments of AutoSystemPool."""

    pool: str
    """Name of the NodePool; not `system`, which is EKS's own."""

    machine: str
    """Instance type with an x86 processor and without GPUs, such as m6i.xlarge."""

    max_nodes: NotRequired[int]
    """Maximum number of nodes; at least 1. Default: 4."""

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
        most = args.get("max_nodes", SystemPool.default("max_nodes"))
        if most < 1:
            raise ValueError(f"AutoSystemPool {name}: max_nodes is {most}; it must be at least 1; leave it out for 4")
        if args["pool"] in {"system", "general-purpose"}:
            raise ValueError(f"AutoSystemPool {name}: pool is {args['pool']!r}, which EKS makes itself; rename it")
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
                "disruption": fuller_or_cheaper(60),
                "weight": _FIRST,
                "limits": {"nodes": str(most)},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        self.register_outputs({"name": self.name})
