"""A NodeClass of EKS Auto Mode: network, volume and identity of the nodes of NodePools; their image is AWS's own."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import Any, NotRequired

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.settings.pools import IMAGES_AND_SCRATCH, EksNodeDisk
from capacity.values.errors import SettingsProblem
from capacity.values.names import AWS_ACCOUNT, CAPACITY_RESERVATION, FORMS, RESOURCE_NAME
from components.cloud_names import DISCOVERY_TAG
from components.karpenter.ec2_node_class import EksNodeDiskArgs, check_efa, efa_layout
from components.karpenter.gpu_node_pool import NodeClassRef
from components.shared_args import checked_options, refuse

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


__all__ = ["AutoNodeClass", "AutoNodeClassArgs", "auto_node_class_ref"]


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
