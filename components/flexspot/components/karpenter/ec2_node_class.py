"""A Karpenter EC2NodeClass: image, network, disks and placement of the EC2 instances of NodePools."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_aws import ec2
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.settings.cluster import MOST_USER_DATA, Kubelet, user_data_problem
from flexspot.capacity.settings.pools import IMAGES_AND_SCRATCH, SYSTEM_ALONE, EksNodeDisk, Gp3Volume, ReservationKind
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import AMI_ALIAS, AWS_ACCOUNT, CAPACITY_RESERVATION, FORMS
from flexspot.components.cloud_names import DISCOVERY_TAG, fitted
from flexspot.components.karpenter.node_pools import NodeClassRef
from flexspot.components.shared_args import checked_options, publish, refuse


class KubeletArgs(TypedDict):
    """Kubelet settings. Bounds are those of Kubelet in the settings. A field that is omitted keeps the image's value."""

    max_pods: NotRequired[int | None]
    """Maximum pods per node. Default: as many as its network interfaces have addresses for."""

    pods_per_core: NotRequired[int | None]
    """Maximum pods per vCPU, only on AL2023. Default: no limit."""

    kube_reserved: NotRequired[dict[str, str]]
    """Resources reserved for the kubelet and the container runtime, by cpu, memory, ephemeral-storage and pid. Default: what the image
    computes."""

    system_reserved: NotRequired[dict[str, str]]
    """Resources reserved for system processes. Default: none."""

    eviction_hard: NotRequired[dict[str, str]]
    """Hard eviction thresholds by signal, as an amount or a percentage. Below one, pods are evicted at once. Default: the image's own."""

    eviction_soft: NotRequired[dict[str, str]]
    """Soft eviction thresholds by signal, as an amount or a percentage. Below one, pods are evicted after a grace period. Default: none."""

    eviction_soft_grace_period: NotRequired[dict[str, str]]
    """The grace period of each signal in `eviction_soft`. Default: none."""

    image_gc_high_threshold_percent: NotRequired[int | None]
    """Disk usage in percent at which the kubelet starts to delete unused images. Default: the kubelet's, 85."""

    image_gc_low_threshold_percent: NotRequired[int | None]
    """Disk usage in percent at which it stops deleting them. Default: the kubelet's, 80."""

    cpu_cfs_quota: NotRequired[bool | None]
    """If true, the kubelet enforces CPU limits of containers. Default: the kubelet's, true."""


class NodeBootstrapArgs(TypedDict):
    """Kubelet settings and user data of nodes."""

    kubelet: NotRequired[KubeletArgs | None]
    """Kubelet settings of the nodes. Default: the image's own."""

    user_data: NotRequired[str | None]
    """User data, merged with Karpenter's own. On AL2023: a NodeConfig, a script with #! or a MIME archive. On Bottlerocket: TOML.

    Default: none."""


def check_bootstrap(where: str, ami: str, args: NodeBootstrapArgs) -> None:
    """Raise ValueError, beginning with `where`, for values that Karpenter, the image or EC2 would reject."""
    kubelet, user_data = checked_options(f"{where}: kubelet", Kubelet, args.get("kubelet") or {}), args.get("user_data")
    if kubelet.pods_per_core is not None and ami.startswith("bottlerocket@"):
        refuse(
            where, SettingsProblem("kubelet.pods_per_core", str(kubelet.pods_per_core), "Bottlerocket has no such setting", "leave it out")
        )
    if user_data is None:
        return
    if len(user_data) > MOST_USER_DATA:
        refuse(where, SettingsProblem("user_data", f"{len(user_data)} characters", f"must have at most {MOST_USER_DATA}", "shorten it"))
    if problem := user_data_problem(ami, user_data):
        refuse(where, SettingsProblem("user_data", "", problem, "write it in a format of the image's family"))


_FIELDS = {
    "max_pods": "maxPods",
    "pods_per_core": "podsPerCore",
    "kube_reserved": "kubeReserved",
    "system_reserved": "systemReserved",
    "eviction_hard": "evictionHard",
    "eviction_soft": "evictionSoft",
    "eviction_soft_grace_period": "evictionSoftGracePeriod",
    "image_gc_high_threshold_percent": "imageGCHighThresholdPercent",
    "image_gc_low_threshold_percent": "imageGCLowThresholdPercent",
    "cpu_cfs_quota": "cpuCFSQuota",
}
"""EC2NodeClass's names of the kubelet's fields."""


def bootstrap_spec(args: NodeBootstrapArgs) -> dict[str, Any]:
    """Return the kubelet and user data fields of an EC2NodeClass's spec. Empty ones are omitted."""
    given: dict[str, Any] = {**(args.get("kubelet") or {})}
    kubelet = {_FIELDS[name]: value for name, value in given.items() if value is not None and value != {}}
    user_data = args.get("user_data")
    return {**({"kubelet": kubelet} if kubelet else {}), **({} if user_data is None else {"userData": user_data})}


PLACEMENT_GROUP_CHARACTERS = 255
"""EC2's limit for the name (API reference, CreatePlacementGroup)."""


class EfaPlacementGroupArgs(TypedDict):
    """Arguments of EfaPlacementGroup."""

    cluster: str
    """The cluster's name."""

    pool: str
    """The pool's name. The group serves only this pool."""

    tags: dict[str, str]
    """Tags of the group."""


class EfaPlacementGroup(pulumi.ComponentResource):
    """A cluster placement group for the nodes of one pool, so that EFA traffic between them takes the shortest path.

    All nodes are in the zone of the first node, and launches fail more often there for lack of capacity: give the NodePool one zone. The
    name is CLUSTER-POOL, unique in the account's region, cut with a hash at 255 characters. A different name replaces the group.

    Raises ValueError for an empty cluster or pool name, before anything is registered.
    """

    name: pulumi.Output[str]
    """The group's name, known once it exists."""

    def __init__(self, name: str, args: EfaPlacementGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for argument in ("cluster", "pool"):
            if not args[argument]:
                problem = "must not be empty: the group's name contains it"
                refuse(f"EfaPlacementGroup {name}", SettingsProblem(argument, "''", problem, f"give the {argument}'s name"))
        super().__init__("flexspot:index:EfaPlacementGroup", name, {**args}, opts)
        group_name = fitted(f"{args['cluster']}-{args['pool']}", PLACEMENT_GROUP_CHARACTERS)
        group = ec2.PlacementGroup(
            f"{name}-placement-group",
            name=group_name,
            strategy="cluster",
            tags=args["tags"] | {"Name": group_name},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = group.name
        publish(self)


class EksNodeDiskArgs(TypedDict):
    """The volume with images, logs and ephemeral storage. Bounds and defaults are those of EksNodeDisk in the settings."""

    boot_disk_gib: NotRequired[int]
    """Size of the volume, in GiB: 20 to 16384. Default: 200, and 30 with `local_nvme`."""

    boot_disk_iops: NotRequired[int]
    """IOPS of the volume (operations a second): 3000 to 16000, and at most 500 per GiB. Default: 6000, and 3000 with `local_nvme`."""

    boot_disk_throughput_mib: NotRequired[int]
    """Throughput of the volume, in MiB a second: 125 to 1000, and at most a quarter of `boot_disk_iops`. Default: 500, and 125 with
    `local_nvme`."""


class NodeClassArgs(EksNodeDiskArgs):
    """Arguments of node classes of Karpenter and of Auto Mode. Those that are not `Input` are plain, because they shape the object."""

    node_class: str
    """Name of the object, as NodePools refer to it."""

    cluster: str
    """The cluster's name, which is the value of the tag karpenter.sh/discovery on its subnets and security groups."""

    node_role: pulumi.Input[str]
    """Name, not ARN, of the nodes' IAM role."""

    subnet_ids: NotRequired[list[pulumi.Input[str]]]
    """Subnets of the nodes. Default: those tagged karpenter.sh/discovery with the cluster's name."""

    more_security_group_ids: NotRequired[list[pulumi.Input[str]]]
    """Security groups of the nodes, such as EfaSecurityGroup's, in addition to those that are discovered or named. Default: none."""

    efa_interfaces: NotRequired[int]
    """Number of EFA interfaces per node, equal to its machine's network cards (p5.48xlarge 32, p4d.24xlarge 4, g6.8xlarge 1). Default: 0.

    A machine with fewer is not launched, so all of the NodePool's machines must have the same number."""

    efa_first_card: NotRequired[int]
    """Index of the first network card that supports an EFA interface: 1 for p6-b300.48xlarge, whose card 0 does not. Default: 0."""

    placement_group: NotRequired[pulumi.Input[str] | None]
    """Name of the placement group in which the nodes start. Default: none."""

    reservation_ids: NotRequired[list[str]]
    """Capacity reservations that nodes may use, such as cr-0a1b2c3d4e5f60718. Default: none."""

    reservation_tags: NotRequired[dict[str, str]]
    """Tags of the capacity reservations that nodes may use. Karpenter accepts `*` for any value. Cannot be combined with ids.

    Default: none."""

    reservation_owner: NotRequired[str | None]
    """The account that owns the reservations, 12 digits. Only with tags. Default: any."""

    tags: dict[str, str]
    """Tags of the instances, volumes, network interfaces and launch templates. Karpenter adds its own, including Name.

    In Auto Mode the cluster's role must allow EKS to set them."""

    labels: NotRequired[dict[str, str]]
    """Labels of the object. Default: none."""


class Ec2NodeClassArgs(NodeClassArgs, NodeBootstrapArgs):
    """Arguments of Ec2NodeClass."""

    ami: str
    """Image alias with its release: al2023@v20260903 or bottlerocket@1.65.0. GPU machines get its NVIDIA variant automatically."""

    allow_latest_ami: NotRequired[bool]
    """If true, `ami` may be `@latest`, with which every image release replaces the nodes. Default: False."""

    security_group_ids: NotRequired[list[pulumi.Input[str]]]
    """Security groups of the nodes. Default: those tagged karpenter.sh/discovery with the cluster's name."""

    zones: NotRequired[list[str]]
    """Zones in which nodes may start, as in the NodePool. A capacity block needs exactly one. Default: the zones of the subnets."""

    kms_key: NotRequired[pulumi.Input[str] | None]
    """ARN, id or alias of the key that encrypts the volumes. Default: the account's EBS key."""

    local_nvme: NotRequired[bool]
    """If true, the machine's own NVMe disks, as one RAID 0, replace the volume for images, logs and ephemeral storage.

    Default: False."""

    reservation_kind: NotRequired[str]
    """Kind of reservation: on-demand (an ODCR) or capacity-block (for a fixed time). Default: on-demand."""


# The name of a Kubernetes object: a DNS subdomain.
_OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")

MOST_INTERFACES = 150
"""Most networkInterfaces in Karpenter's definition of EC2NodeClass (v1.14.1)."""

_ALIAS_LENGTH = 30
"""Longest alias in Karpenter's definition of EC2NodeClass."""

EBS_CLUSTER_TAG = "ebs.csi.aws.com/cluster-name"
"""The tag by which the EBS driver may attach volumes to an instance. Its value is the cluster's name.

AmazonEBSCSIDriverEKSClusterScopedPolicy requires it, or eks:cluster-name, which EKS sets on the nodes of its own groups, or since its v2
eks:eks-cluster-name, which Karpenter sets. All mean the same. This one works with each version of the policy.
https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonEBSCSIDriverEKSClusterScopedPolicy.html (v1, read 2026-11-24); v2 is
the document in moto 5.2.5"""

_RESERVED_TAGS = (
    EBS_CLUSTER_TAG,
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
)
_RESERVED_PREFIXES = ("kubernetes.io/cluster", "aws:")


def check_node_class(name: str, args: Ec2NodeClassArgs) -> Gp3Volume:
    """Return the volume of a valid node class.

    Raises ValueError if the class is invalid or a policy would reject it. The message begins with the rule's name if a policy has one, and
    names the argument, its value, what is allowed and the next step. Values that may be Outputs are not checked.
    """
    where = f"Ec2NodeClass {name}"
    if not _OBJECT_NAME.fullmatch(args["node_class"]):
        problem = "must be at most 253 lower-case letters, digits, inner hyphens and dots"
        refuse(where, SettingsProblem("node_class", repr(args["node_class"]), problem, "rename it"))
    _check_image(where, args)
    check_bootstrap(where, args["ami"], args)
    disk = checked_options(where, EksNodeDisk, args)
    _check_reservation(where, args)
    check_efa(where, args)
    check_own_tags(where, args, "Flexspot, Karpenter or AWS", _RESERVED_TAGS, _RESERVED_PREFIXES)
    return disk.volume(SYSTEM_ALONE if args.get("local_nvme") else IMAGES_AND_SCRATCH)


def check_own_tags(where: str, args: NodeClassArgs, setters: str, reserved: tuple[str, ...], prefixes: tuple[str, ...]) -> None:
    """Raise ValueError, beginning with `where`, for empty keys and for those that others set."""
    for key in sorted(args["tags"]):
        if key in reserved or key.startswith(prefixes) or not key:
            own = ", ".join((*reserved, *(f"{prefix}..." for prefix in prefixes)))
            refuse(where, SettingsProblem("tags", repr(key), f"must not be empty, nor a key that {setters} set: {own}", "leave it out"))


def check_efa(where: str, args: NodeClassArgs) -> None:
    """Raise ValueError, beginning with `where`, for interfaces that no machine has."""
    most, efa, first = MOST_INTERFACES - 1, args.get("efa_interfaces") or 0, args.get("efa_first_card") or 0
    if not 0 <= efa <= most:
        cards = f"must be the machine's number of EFA cards, at most {most} without the one that has an address"
        refuse(where, SettingsProblem("efa_interfaces", str(efa), cards, "leave it out for none"))
    if first < 0 or (first and not efa):
        problem = "must be a network card's number, from 0, of a machine with efa_interfaces"
        refuse(where, SettingsProblem("efa_first_card", str(first), problem, "leave it out for card 0"))


def _check_image(where: str, args: Ec2NodeClassArgs) -> None:
    ami = args["ami"]
    if not re.fullmatch(AMI_ALIAS, ami) or len(ami) > _ALIAS_LENGTH:
        form = f"must be al2023@RELEASE or bottlerocket@RELEASE, at most {_ALIAS_LENGTH} characters"
        refuse(where, SettingsProblem("ami", repr(ami), form, "write one such as al2023@v20260903 or bottlerocket@1.65.0"))
    if ami.endswith("@latest") and not args.get("allow_latest_ami"):
        problem = "every release of the image would replace the nodes"
        remedy = "pin a release, such as al2023@v20260903 or bottlerocket@1.65.0, or set allow_latest_ami"
        refuse(f"ami-not-pinned: {where}", SettingsProblem("ami", ami, problem, remedy))


def _check_reservation(where: str, args: Ec2NodeClassArgs) -> None:
    kind = args.get("reservation_kind") or ReservationKind.ON_DEMAND
    ids, tags = args.get("reservation_ids") or [], args.get("reservation_tags") or {}
    if kind not in set(ReservationKind):
        refuse(where, SettingsProblem("reservation_kind", kind, "is not a kind of reservation", f"use {' or '.join(ReservationKind)}"))
    check_reservations(where, args)
    for key, value in sorted(tags.items()):
        if not key or not value:
            written = f"{key!r}: {value!r}"
            refuse(where, SettingsProblem("reservation_tags", written, "neither key nor value may be empty", "write '*' for any value"))
    if kind != ReservationKind.CAPACITY_BLOCK:
        return
    if not ids and not tags:
        refuse(where, SettingsProblem("reservation_kind", kind, "needs a reservation", "give reservation_ids or reservation_tags"))
    zones = args.get("zones") or []
    if len(set(zones)) != 1:
        problem = "must be one zone, because a capacity block is in exactly one"
        remedy = "name only that zone, also for the NodePool"
        refuse(f"capacity-block-without-zone: {where}", SettingsProblem("zones", ", ".join(zones) or "[]", problem, remedy))


def check_reservations(where: str, args: NodeClassArgs) -> None:
    """Raise ValueError, beginning with `where`, for reservations given both by id and by tags, and for invalid ids or owners."""
    ids, tags, owner = args.get("reservation_ids") or [], args.get("reservation_tags") or {}, args.get("reservation_owner")
    if ids and tags:
        conflict = "cannot be combined with reservation_tags"
        refuse(where, SettingsProblem("reservation_ids", ", ".join(ids), conflict, "leave one of the two out"))
    for each in ids:
        if not re.fullmatch(CAPACITY_RESERVATION, each):
            refuse(where, SettingsProblem("reservation_ids", repr(each), f"must be {FORMS[CAPACITY_RESERVATION]}", "copy it from EC2"))
    if owner is not None and (not tags or not re.fullmatch(AWS_ACCOUNT, owner)):
        problem = f"must be {FORMS[AWS_ACCOUNT]}, and is only for reservation_tags"
        refuse(where, SettingsProblem("reservation_owner", owner, problem, "leave it out with reservation_ids"))


def node_class_spec(args: Ec2NodeClassArgs, volume: Gp3Volume) -> dict[str, Any]:
    """Return the spec of a node class that has passed its checks. Empty fields are omitted.

    Source: the definition of EC2NodeClass, karpenter.k8s.aws/v1 of Karpenter's AWS provider v1.14.1.
    """
    discovered = [{"tags": {DISCOVERY_TAG: args["cluster"]}}]
    groups, interfaces = id_terms(args.get("security_group_ids")), efa_layout(args)
    return {
        "amiSelectorTerms": [{"alias": args["ami"]}],
        "role": args["node_role"],
        "subnetSelectorTerms": id_terms(args.get("subnet_ids")) or discovered,
        "securityGroupSelectorTerms": (groups or discovered) + id_terms(args.get("more_security_group_ids")),
        "blockDeviceMappings": _block_devices(args, volume),
        **({"instanceStorePolicy": "RAID0"} if args.get("local_nvme") else {}),
        # The API server's defaults, so that a later preview shows no change. A hop limit of 1 keeps the node's credentials from pods, which
        # are one hop further away.
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        **bootstrap_spec(args),
        "detailedMonitoring": False,
        # EC2 gives no public address to an instance with several interfaces, and rejects the field.
        **({"networkInterfaces": interfaces} if interfaces else {"associatePublicIPAddress": False}),
        **placement_fields(args, "ownerID"),
        "tags": dict(sorted({**args["tags"], EBS_CLUSTER_TAG: args["cluster"]}.items())),
    }


def id_terms(written: list[pulumi.Input[str]] | None) -> list[dict[str, Any]]:
    """Return a selector term for each id. Ids that are known are sorted, because their order has no meaning."""
    ids: list[Any] = written or []
    known = all(isinstance(each, str) for each in ids)
    return [{"id": each} for each in (sorted(ids) if known else ids)]


def _block_devices(args: Ec2NodeClassArgs, volume: Gp3Volume) -> list[dict[str, Any]]:
    """Return the node's volumes, all gp3, encrypted and deleted with it.

    AL2023 has one, its root. Bottlerocket has its system on /dev/xvda, with 4 GiB as in Karpenter's default. Its images, logs and pods'
    ephemeral storage are on /dev/xvdb (pkg/providers/amifamily/bottlerocket.go).
    """
    common: dict[str, Any] = {"volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    if (key := args.get("kms_key")) is not None:
        common["kmsKeyID"] = key
    large = common | {"volumeSize": f"{volume.gib}Gi", "iops": volume.iops, "throughput": volume.throughput_mib}
    if not args["ami"].startswith("bottlerocket@"):
        return [{"deviceName": "/dev/xvda", "ebs": large}]
    return [{"deviceName": "/dev/xvda", "ebs": common | {"volumeSize": "4Gi"}}, {"deviceName": "/dev/xvdb", "ebs": large}]


def efa_layout(args: NodeClassArgs) -> list[dict[str, Any]]:
    """Return one interface with an address and an EFA-only interface, which needs none, on each card that supports EFA. Empty without EFA.

    The fields are the same in node classes of Karpenter and of Auto Mode.

    If the first card supports EFA, it has both, at device index 0 and 1. On every other card the EFA-only interface is at device index 0.
    Source: EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards" (efa-acc-inst-types, read
    2026-11-24), and EKS User Guide, "Manage EFA devices on Amazon EKS".
    """
    count, first = args.get("efa_interfaces") or 0, args.get("efa_first_card") or 0
    if not count:
        return []
    return [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        *(
            {"networkCardIndex": card, "deviceIndex": 1 if card == 0 else 0, "interfaceType": "efa-only"}
            for card in range(first, first + count)
        ),
    ]


def placement_fields(args: NodeClassArgs, owner_field: str) -> dict[str, Any]:
    """Return the fields for the placement group and the reservations: a term for each id, or one with all the tags and the owner."""
    tags, account, group = args.get("reservation_tags"), args.get("reservation_owner"), args.get("placement_group")
    owner: dict[str, Any] = {} if account is None else {owner_field: account}
    by_id = [{"id": each} for each in sorted(set(args.get("reservation_ids") or []))]
    terms = [owner | {"tags": dict(sorted(tags.items()))}] if tags else by_id
    return {
        **({} if group is None else {"placementGroupSelector": {"name": group}}),
        **({"capacityReservationSelectorTerms": terms} if terms else {}),
    }


GROUP = "karpenter.k8s.aws"
KIND = "EC2NodeClass"


def ec2_node_class_ref(node_class: str) -> NodeClassRef:
    """Return a NodePool's reference to the EC2NodeClass of that name."""
    return {"group": GROUP, "kind": KIND, "name": node_class}


class Ec2NodeClass(pulumi.ComponentResource):
    """Image, network, disks and identity of the nodes of one or more NodePools.

    The image is pinned. Volumes are gp3, encrypted and deleted with their node. The metadata service requires a token and is not reachable
    from pods. Nodes have no public address. With `efa_interfaces` every node has its EFA interfaces whether or not a pod requests them, and
    the pool's nodes need the label of GpuPlugins' EFA plugin. A changed image, disk, network or tag is drift: nodes are replaced as the
    NodePool's budgets allow.

    Raises ValueError, before anything is registered: for an unpinned image under the rule ami-not-pinned, for a capacity block without its
    zone under capacity-block-without-zone, and for values that Karpenter or EC2 would reject. This component has not been used in a live
    account.
    """

    name: pulumi.Output[str]
    """The EC2NodeClass's name."""

    def __init__(self, name: str, args: Ec2NodeClassArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        disk = check_node_class(name, args)
        super().__init__("flexspot:index:Ec2NodeClass", name, {**args}, opts)
        CustomResource(
            f"{name}-node-class",
            api_version=f"{GROUP}/v1",
            kind=KIND,
            metadata=ObjectMetaArgs(name=args["node_class"], labels=args.get("labels") or None),
            spec=node_class_spec(args, disk),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["node_class"])
        publish(self)
