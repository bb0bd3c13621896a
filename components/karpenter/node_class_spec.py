"""The spec of an EC2NodeClass, as Karpenter's API takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from components.karpenter.node_class_args import NodeClass

DISCOVERY_TAG = "karpenter.sh/discovery"
"""The tag by which Karpenter finds the subnets and security groups of a cluster; its value is the cluster's name."""


def node_class_spec(node_class: NodeClass) -> dict[str, Any]:
    """The spec of `node_class`, which has passed its checks. What is empty is left out.

    Source: the definition of EC2NodeClass, karpenter.k8s.aws/v1 of Karpenter's AWS provider v1.14.1.
    """
    discovered = [{"tags": {DISCOVERY_TAG: node_class.cluster}}]
    subnets, groups = _terms(node_class.subnet_ids), _terms(node_class.security_group_ids)
    reservations = _reservation_terms(node_class)
    return {
        "amiSelectorTerms": [{"alias": node_class.ami}],
        "role": node_class.node_role,
        "subnetSelectorTerms": subnets or discovered,
        "securityGroupSelectorTerms": groups or discovered,
        "blockDeviceMappings": _block_devices(node_class),
        **({"instanceStorePolicy": "RAID0"} if node_class.local_nvme else {}),
        # What the API server would fill in, so that nothing shows as a change in a later preview. A hop limit of 1 keeps the node's
        # credentials from pods, which have a hop more.
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "detailedMonitoring": node_class.detailed_monitoring,
        # EC2 gives no public address to an instance with several interfaces, and refuses the question.
        **(
            {"networkInterfaces": _network_interfaces(node_class.efa_interfaces)}
            if node_class.efa_interfaces
            else {"associatePublicIPAddress": False}
        ),
        **({} if node_class.placement_group is None else {"placementGroupSelector": {"name": node_class.placement_group}}),
        **({"capacityReservationSelectorTerms": reservations} if reservations else {}),
        "tags": dict(sorted(node_class.tags.items())),
    }


def _terms(ids: list[Any]) -> list[dict[str, Any]]:
    """A selector term for each id. Known ids are sorted: the order in which they are written decides nothing."""
    known = all(isinstance(each, str) for each in ids)
    return [{"id": each} for each in (sorted(ids) if known else ids)]


def _block_devices(node_class: NodeClass) -> list[dict[str, Any]]:
    """The node's volumes, all gp3, encrypted and deleted with it.

    AL2023 has one, its root. Bottlerocket has its system on /dev/xvda, 4 GiB as Karpenter's own default has it, and images, logs and pods'
    ephemeral storage on /dev/xvdb (pkg/providers/amifamily/bottlerocket.go).
    """
    common: dict[str, Any] = {"volumeType": "gp3", "encrypted": True, "deleteOnTermination": True}
    if node_class.kms_key is not None:
        common["kmsKeyID"] = node_class.kms_key
    large = common | {"volumeSize": f"{node_class.disk_gib}Gi", "iops": node_class.disk_iops, "throughput": node_class.disk_throughput_mib}
    if not node_class.is_bottlerocket:
        return [{"deviceName": "/dev/xvda", "ebs": large}]
    return [{"deviceName": "/dev/xvda", "ebs": common | {"volumeSize": "4Gi"}}, {"deviceName": "/dev/xvdb", "ebs": large}]


def _network_interfaces(efa_interfaces: int) -> list[dict[str, Any]]:
    """One interface with an address, and EFA-only interfaces, which need none, one on each network card.

    The first card has both, at device index 0 and 1; on every other the EFA interface is at device index 0.
    Source: EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards", and EKS User Guide, "Manage
    EFA devices on Amazon EKS".
    """
    return [
        {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
        *({"networkCardIndex": card, "deviceIndex": 1 if card == 0 else 0, "interfaceType": "efa-only"} for card in range(efa_interfaces)),
    ]


def _reservation_terms(node_class: NodeClass) -> list[dict[str, Any]]:
    """The selector terms of the reservations: one for each id, or one with all the tags."""
    if node_class.reservation_tags:
        return [{"tags": dict(sorted(node_class.reservation_tags.items()))}]
    return [{"id": each} for each in sorted(set(node_class.reservation_ids))]
