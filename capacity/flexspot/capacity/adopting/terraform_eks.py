"""An EKS cluster with its node groups and its Karpenter, from the state of AWS's Terraform provider.

Attributes of aws_eks_cluster, aws_eks_node_group, aws_launch_template and aws_subnet are those of pulumi_aws 7.51.1, which is generated
from AWS's provider (2026-11-27).

terraform-aws-modules/eks creates these resources: `aws_eks_cluster.this[0]`, a node group with a launch template in each
`module.eks_managed_node_group`, and in its `karpenter` submodule the nodes' role as `aws_iam_role.node[0]`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.adopting.found import Block, Found, FoundPool, Known, machine_with_gpus, with_the_same_gpus
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.node_images import shipped_images
from flexspot.capacity.catalog.node_labels import CLASS_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.versions import PROPOSED_KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.adopting.terraform_state import TerraformResource

CLUSTER, NODE_GROUP, SUBNET, TEMPLATE, ROLE = (
    *("aws_eks_cluster", "aws_eks_node_group", "aws_subnet"),
    *("aws_launch_template", "aws_iam_role"),
)
_ARN: Final = re.compile(r"arn:aws[a-z-]*:eks:([a-z0-9-]+):(\d{12}):cluster/.+")
_BOUGHT: Final = {"SPOT": CapacityType.SPOT, "CAPACITY_BLOCK": CapacityType.RESERVED, "ON_DEMAND": CapacityType.ON_DEMAND}
_BLOCK: Final = "capacity-block"


def read_cluster(resource: TerraformResource, found: Found) -> None:
    """Read the cluster: its account and region, its name as an existing cluster, and its VPC."""
    values = resource.values
    name = values.text("name")
    found.cloud = Platform.EKS
    if name is None:
        found.leave_out(resource.address, "has no name", "apply it first, then write the state anew")
        return
    if place := _ARN.fullmatch(values.text("arn") or ""):
        found.settings |= {"account": place[2], "region": place[1]}
    version = values.text("version") or PROPOSED_KUBERNETES
    if values.text("version") is None:
        found.guess("cluster.version", f"{resource.address} has none")
    found.settings["cluster"] = {"existing": name, "version": version, "ami": image_for(version, found)}
    if vpc := values.text("vpc_config", "vpc_id"):
        found.settings["network"] = {"existing_vpc": vpc}
    found.tags |= values.words("tags")
    found.known.append(Known("aws:eks/cluster:Cluster", name, name, resource.address))
    if values.block("compute_config").true("enabled"):
        found.leave_out(
            f"{resource.address} compute_config",
            "is EKS Auto Mode, and a cluster in Auto Mode that is there already can be used by no stack",
            "make the platform in a cluster of its own (cluster.mode: auto, without cluster.existing), or turn Auto Mode off",
        )
    found.leave_out(
        resource.address,
        "version, endpoints, access entries, logs and add-ons stay as they are: the stack uses the cluster, and does not own it",
        "keep it in Terraform; to move it, import it by its id into a program of your own",
    )


def image_for(version: str, found: Found) -> str:
    """Return the newest known release of Amazon Linux 2023 that has images for a version."""
    known = shipped_images().with_images_for("al2023", version) or shipped_images().with_images_for("al2023", PROPOSED_KUBERNETES)
    found.guess("cluster.ami", "the newest known release; to keep the nodes' present image, name its release")
    return known[-1]


def read_subnets(subnets: Iterable[TerraformResource], groups: Iterable[TerraformResource], found: Found) -> None:
    """Read the zones and one private subnet per zone: those of the node groups, or else those for internal load balancers."""
    used = {each for group in groups for each in group.values.texts("subnet_ids")}
    by_zone: dict[str, str] = {}
    more: list[str] = []
    listed = [each for each in subnets if each.values.text("id") and each.values.text("availability_zone")]
    vpc = found.settings.get("network", {}).get("existing_vpc")
    inside = [each for each in listed if vpc is None or each.values.text("vpc_id") == vpc]
    chosen = [each for each in inside if each.values.text("id") in used]
    chosen = chosen or [each for each in inside if "kubernetes.io/role/internal-elb" in each.values.words("tags")]
    chosen = chosen or [each for each in inside if not each.values.true("map_public_ip_on_launch")]
    for each in chosen:
        zone, identity = each.values.text("availability_zone") or "", each.values.text("id") or ""
        if by_zone.setdefault(zone, identity) != identity:
            more.append(each.address)
    if more:
        found.leave_out(more, "is a second private subnet of its zone", "put its id in network.existing_private_subnets to use it instead")
    if by_zone:
        found.settings["zones"] = sorted(by_zone)
        if vpc is not None:
            found.settings["network"]["existing_private_subnets"] = [by_zone[zone] for zone in sorted(by_zone)]
    elif used:
        why = "their zones are not in the state"
        found.leave_out(sorted(used), why, "name zones and network.existing_private_subnets in the same order")


def read_node_role(resource: TerraformResource, found: Found) -> None:
    """Read the role of Karpenter's nodes, as the karpenter submodule names it."""
    name = resource.values.text("name")
    if name is not None and re.search(r"karpenter[^.]*\.aws_iam_role\.node(\[0\])?$", resource.address):
        found.settings.setdefault("karpenter", {})["node_role"] = name


def read_node_group(resource: TerraformResource, templates: dict[str, Block], zones: dict[str, str], found: Found) -> None:
    """Read a node group. If its machines have GPUs, a Karpenter pool replaces it; otherwise it stays as it is.

    `templates` are launch templates, and `zones` the zones of subnets, by id.
    """
    values = resource.values
    name, cluster = values.text("node_group_name"), values.text("cluster_name")
    if name is not None and cluster is not None:
        found.known.append(Known("aws:eks/nodeGroup:NodeGroup", f"{cluster}:{name}", name, resource.address))
    template = templates.get(values.text("launch_template", "id") or "", Block({}))
    machines = values.texts("instance_types") or [each for each in [template.text("instance_type")] if each]
    with_gpus = with_the_same_gpus(Vendor.AWS, machines)
    if not with_gpus:
        if machines:
            why = f"no machine of it ({', '.join(machines)}) is one of the catalog with GPUs"
            remedy = "keep it in Terraform if it is for controllers and work without GPUs; else describe the machine under `machines`"
        else:
            why, remedy = "has no instance type in the state, nor has its launch template", "write the launch template into the same state"
        found.leave_out(resource.address, why, remedy)
        return
    found_name, renamed = found.pool_name(values.text("node_group_name") or "pool", resource.address)
    bought = _BOUGHT.get(values.text("capacity_type") or "ON_DEMAND", CapacityType.ON_DEMAND)
    pool = FoundPool(found_name, resource.address, with_gpus, bought)
    if renamed:
        pool.guesses["name"] = renamed
    pool.zones = sorted({zones[each] for each in values.texts("subnet_ids") if each in zones})
    if others := [each for each in machines if machine_with_gpus(Vendor.AWS, each) and each not in with_gpus]:
        why = f"a pool has machines with the same GPUs alone, those of {with_gpus[0]}"
        found.leave_out(
            f"{pool.address} instance types ({', '.join(sorted(others))})", why, "add a pool with a ceiling of its own for them"
        )
    _reserved(template, pool)
    least, most = values.number("scaling_config", "min_size"), values.number("scaling_config", "max_size")
    pool.limits["max_nodes"] = most or 1
    if not most:
        pool.guesses["max_nodes"] = "max_size is 0 or missing; raise it to what you are willing to pay for"
    if least:
        why = f"min_size {least}: a pool of Karpenter has no floor, a node comes when a pod needs it"
        found.leave_out(f"{resource.address} scaling_config.min_size", why, "keep the node group for what must always run")
    _node(values, template, pool, found)
    taints = {each.text("key"): each.text("value") for each in values.blocks("taint")}
    pool.labels = values.words("labels")
    if isinstance(only := taints.get(CLASS_LABEL) or pool.labels.get(CLASS_LABEL), str):
        pool.serves = [only]
    found.pools.append(pool)
    found.leave_out(
        resource.address,
        f"is a node group, and pool {pool.name} that takes its place is a NodePool of Karpenter: it is not adopted but replaced",
        "after `up`, let its work end, then set its min_size and desired_size to 0 and take it out of Terraform",
    )
    found.leave_marks_out(resource.address, taints, pool.labels)


def _reserved(template: Block, pool: FoundPool) -> None:
    target = template.block("capacity_reservation_specification").block("capacity_reservation_target")
    identity = target.text("capacity_reservation_id")
    block = template.text("instance_market_options", "market_type") == _BLOCK
    if identity is not None:
        pool.capacity_type = CapacityType.RESERVED
        pool.options["reservation"] = {"kind": _BLOCK if block else "on-demand", "ids": [identity]}
    elif pool.capacity_type is CapacityType.RESERVED:
        pool.guesses["capacity_type"] = "the state names no capacity reservation"


def _node(values: Block, template: Block, pool: FoundPool, found: Found) -> None:
    volume = template.block("block_device_mappings").block("ebs")
    if size := volume.number("volume_size") or values.number("disk_size"):
        pool.options["boot_disk_gib"] = size
    if any((each.text("interface_type") or "").startswith("efa") for each in template.blocks("network_interfaces")):
        pool.options["efa"] = True
    if template.text("placement", "group_name") and pool.capacity_type is not CapacityType.RESERVED:
        pool.options["compact_placement"] = True
    if "user_data" in template.fields:
        why = "user data may hold secrets, so it is not read"
        found.leave_out(f"{pool.address} user_data", why, "write what nodes need of it in cluster.nodes (kubelet, user_data)")


def finish(found: Found, karpenter_at: str | None) -> None:
    """Add Karpenter's settings after all resources were read. `karpenter_at` is its namespace and name, if it is in a state."""
    cluster: dict[str, Any] | None = found.settings.get("cluster")
    role = found.settings.pop("karpenter", {}).get("node_role")
    if cluster is None or found.cloud is not Platform.EKS:
        return
    if role is not None:
        cluster["existing_karpenter"] = {"node_role": role} | ({"deployment": karpenter_at} if karpenter_at else {})
    elif karpenter_at is not None:
        why = "Karpenter is there, and the role of its nodes is not in what was read"
        found.leave_out(
            f"Karpenter {karpenter_at}", why, "name it in cluster.existing_karpenter.node_role; without it a second one is installed"
        )
