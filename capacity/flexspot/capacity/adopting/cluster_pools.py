"""Reads from a running cluster, or manifests of a state: the cluster's identity, Karpenter's NodePools, and other pools by their nodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.adopting.found import Block, Found, FoundPool, Known, machine_with_gpus, with_the_same_gpus
from flexspot.capacity.catalog.accelerators import ACCELERATORS
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_labels import (
    CAPACITY_TYPE_LABEL,
    CLASS_LABEL,
    GKE_POOL_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_SPOT_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    ZONE_ID_LABEL,
    ZONE_LABEL,
)
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.chargeback.queries import EKS_CAPACITY_LABEL, EKS_POOL_LABEL, GKE_FLEX_START_LABEL, GKE_PROVISIONING_LABEL
from flexspot.capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable


Objects = dict[str, list[Block]]
"""Objects by kind, in the order of the listing."""

_PREFERRED: Final = ("reserved", "spot", "on-demand")
"""The order in which Karpenter tries the capacity types that a NodePool allows (karpenter.sh/docs/concepts/nodepools)."""

_KWOK: Final = "karpenter.kwok.sh"


def name_in(each: Block) -> str:
    """Return an object's name, or an empty text if it has none."""
    return each.text("metadata", "name") or ""


def read_node_pools(objects: Objects, found: Found, where: dict[str, str]) -> None:
    """Read Karpenter's NodePools. `where` maps kind and name of an object to its name in messages."""
    classes = {name_in(each): each for kind in ("EC2NodeClass", "NodeClass") for each in objects.get(kind, [])}
    held = _nodes_of(objects, KARPENTER_POOL_LABEL)
    for each in objects.get("NodePool", []):
        name = name_in(each)
        address = where.get(f"NodePool/{name}", f"NodePool {name}")
        if each.text("spec", "template", "spec", "nodeClassRef", "group") == _KWOK:
            found.cloud = Platform.LOCAL
        known = Known("kubernetes:karpenter.sh/v1:NodePool", name, name, address)
        found.known.append(known)
        _read_node_pool(each, known, classes, len(held.get(name, [])), found)


def _read_node_pool(each: Block, known: Known, classes: dict[str, Block], nodes: int, found: Found) -> None:
    address = known.address
    node = each.block("spec", "template", "spec")
    allowed = {one.text("key") or "": one for one in node.blocks("requirements")}
    values = {key: one.texts("values") for key, one in allowed.items() if one.text("operator") == "In"}
    machines = with_the_same_gpus(Vendor.AWS, values.get(INSTANCE_TYPE_LABEL, []))
    if not machines:
        why = f"names no machine with GPUs ({INSTANCE_TYPE_LABEL}): it creates nodes of any machine, or of machines without GPUs"
        found.leave_out(address, why, "add a pool that names its machines; cluster.other_work bounds nodes without GPUs")
        return
    bought = [one for one in _PREFERRED if one in values.get(CAPACITY_TYPE_LABEL, [])] or ["on-demand"]
    name, renamed = found.pool_name(name_in(each), address)
    pool = FoundPool(name, address, machines, CapacityType(bought[0]), known=None if renamed else known)
    if renamed:
        pool.guesses["name"] = renamed
    if len(bought) > 1:
        why = f"allows {' and '.join(bought)}, and a pool has one capacity type: it is {bought[0]} in the proposal"
        found.leave_out(f"{address} {CAPACITY_TYPE_LABEL}", why, f"add a pool with a ceiling of its own for {' and for '.join(bought[1:])}")
    pool.zones = sorted(values.get(ZONE_LABEL) or values.get(ZONE_ID_LABEL) or [])
    _limits(each, pool, nodes)
    taints = {one.text("key"): one.text("value") for one in node.blocks("taints")}
    pool.labels = each.block("spec", "template", "metadata").words("labels") | {key: of[0] for key, of in values.items() if len(of) == 1}
    if isinstance(only := taints.get(CLASS_LABEL), str):
        pool.serves = [only]
    of_class = classes.get(node.text("nodeClassRef", "name") or "", Block({})).block("spec")
    _node_class(of_class, pool, found)
    found.leave_marks_out(address, taints)
    found.pools.append(pool)


def _limits(each: Block, pool: FoundPool, nodes: int) -> None:
    limits = {key: quantity(value) for key, value in (each.block("spec", "limits").fields or {}).items() if isinstance(value, (str, int))}
    devices = next((limits[kind.resource] for kind in ACCELERATORS if limits.get(kind.resource)), None)
    machine = machines_of(Vendor.AWS)[pool.machines[0]]
    gpus = machine.gpu.counts[0] if machine.gpu else 1
    if (most := limits.get("nodes")) is not None and most >= 1:
        pool.limits["max_nodes"] = int(most)
    elif devices is not None and devices >= gpus:
        pool.limits["max_gpus"] = int(devices)
    else:
        pool.limits["max_nodes"] = max(1, nodes)
        pool.guesses["max_nodes"] = f"the NodePool has no limit on its GPUs; it has {nodes} node(s) now"


def _node_class(spec: Block, pool: FoundPool, found: Found) -> None:
    terms = spec.blocks("capacityReservationSelectorTerms")
    if pool.capacity_type is CapacityType.RESERVED and (reservation := _reservation(terms)):
        pool.options["reservation"] = reservation
    _read_shared_settings(spec, found)
    # Bottlerocket has two volumes. The second one is for images.
    for mapping in spec.blocks("blockDeviceMappings"):
        size = re.fullmatch(r"(\d+)Gi", mapping.text("ebs", "volumeSize") or "")
        if size and int(size[1]) >= 20:  # noqa: PLR2004 -- the setting's minimum
            pool.options["boot_disk_gib"] = int(size[1])
            for setting, field in {"boot_disk_iops": "iops", "boot_disk_throughput_mib": "throughput"}.items():
                if (number := mapping.block("ebs").number(field)) is not None:
                    pool.options[setting] = number
    if any((each.text("interfaceType") or "").startswith("efa") for each in spec.blocks("networkInterfaces")):
        pool.options["efa"] = True
    if spec.block("placementGroupSelector"):
        pool.options["compact_placement"] = True
    if "userData" in spec.fields or "kubelet" in spec.fields:
        why = "user data may hold secrets, so it is not read, and the kubelet's settings are of all nodes in a stack"
        found.leave_out(f"{pool.address} node class: userData, kubelet", why, "write what nodes need of it in cluster.nodes")


def _reservation(terms: list[Block]) -> dict[str, Any] | None:
    if ids := [identity for term in terms if (identity := term.text("id"))]:
        return {"ids": ids}
    if not terms or not (tags := terms[0].words("tags")):
        return None
    owner = terms[0].text("ownerID")
    return {"tags": tags} | ({"owner": owner} if owner else {})


def _read_shared_settings(spec: Block, found: Found) -> None:
    """Read the role and the image of a node class, which apply to all nodes of a stack."""
    if (role := spec.text("role")) and found.cloud is not Platform.LOCAL:
        found.settings.setdefault("karpenter", {})["node_role"] = role
    alias = spec.text("amiSelectorTerms", "alias")
    cluster = found.settings.get("cluster")
    if alias and re.fullmatch(r"(al2023|bottlerocket)@v?\d[\w.-]*", alias) and isinstance(cluster, dict):
        cluster["ami"] = alias
        found.guesses = [each for each in found.guesses if each.path != "cluster.ami"]


def read_nodes(objects: Objects, found: Found) -> None:
    """Read pools that are not objects, from their nodes: GKE node pools and EKS node groups. Only the cloud knows their ceilings."""
    taken = {each.name for each in found.pools}
    for label, word in ((GKE_POOL_LABEL, "node pool"), (EKS_POOL_LABEL, "node group")):
        for name, nodes in sorted(_nodes_of(objects, label).items()):
            # A node that Karpenter created may be in a group by its user data.
            own = [each for each in nodes if KARPENTER_POOL_LABEL not in each.words("metadata", "labels")]
            if own and name not in taken:
                _read_nodes_of_pool(f"{word} {name}", name, own, Vendor.GCP if label == GKE_POOL_LABEL else Vendor.AWS, found)


def _read_nodes_of_pool(address: str, name: str, nodes: list[Block], cloud: Vendor, found: Found) -> None:
    labels = nodes[0].words("metadata", "labels")
    machine = labels.get(INSTANCE_TYPE_LABEL, "")
    if machine_with_gpus(cloud, machine) is None:
        if any(key in nodes[0].block("status", "capacity").fields for key in (kind.resource for kind in ACCELERATORS)):
            found.leave_out(address, "its machine is not in the catalog", "describe it under `machines`, and add a pool of it")
        else:
            found.leave_out(
                address, "its nodes have no GPUs: it is the cluster's own", "keep it as it is; Flexspot's controllers run there"
            )
        return
    found_name, renamed = found.pool_name(name, address)
    pool = FoundPool(found_name, address, [machine], _capacity_type_of_labels(labels), labels=labels)
    if renamed:
        pool.guesses["name"] = renamed
    pool.limits["max_nodes"] = len(nodes)
    pool.guesses["max_nodes"] = f"{len(nodes)} node(s) exist now; only the cloud knows the maximum of a {address.rpartition(' ')[0]}"
    pool.zones = sorted({zone for each in nodes if (zone := each.words("metadata", "labels").get(ZONE_LABEL))})
    if (reservation := labels.get(GKE_RESERVATION_NAME_LABEL)) and pool.capacity_type is CapacityType.RESERVED:
        pool.options["reservation"] = {"name": reservation}
    counted = machines_of(cloud)[machine].gpu
    if cloud is Vendor.GCP and counted is not None and len(counted.counts) > 1:
        held = quantity(nodes[0].block("status", "capacity").text("nvidia.com/gpu") or "0")
        pool.options["gpus_per_node"] = int(held or counted.counts[0])
    taints = {each.text("key"): each.text("value") for each in nodes[0].blocks("spec", "taints")}
    if isinstance(only := taints.get(CLASS_LABEL), str):
        pool.serves = [only]
    found.pools.append(pool)


def _capacity_type_of_labels(labels: dict[str, str]) -> CapacityType:
    if labels.get(GKE_QUEUED_LABEL) == "true":
        return CapacityType.QUEUED
    if labels.get(GKE_FLEX_START_LABEL) == "true" or labels.get(GKE_PROVISIONING_LABEL) == "flex-start":
        return CapacityType.FLEX_START
    if labels.get(GKE_SPOT_LABEL) == "true" or labels.get(EKS_CAPACITY_LABEL) == "SPOT" or "cloud.google.com/gke-preemptible" in labels:
        return CapacityType.SPOT
    if GKE_RESERVATION_NAME_LABEL in labels or labels.get(EKS_CAPACITY_LABEL) == "CAPACITY_BLOCK":
        return CapacityType.RESERVED
    return CapacityType.ON_DEMAND


def _nodes_of(objects: Objects, label: str) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for each in objects.get("Node", []):
        if name := each.words("metadata", "labels").get(label):
            found.setdefault(name, []).append(each)
    return found


def by_kind(objects: Iterable[Block]) -> Objects:
    """Return the objects by kind."""
    found: Objects = {}
    for each in objects:
        if kind := each.text("kind"):
            found.setdefault(kind, []).append(each)
    return found


_GCE: Final = re.compile(r"gce://([a-z][a-z0-9.:-]+)/([a-z]+-[a-z]+\d+-[a-z])/.+")
_AWS: Final = re.compile(r"aws:///([a-z]{2}(?:-[a-z]+)+-\d)[a-z]/i-.+")
_GKE_CONTEXT: Final = re.compile(r"gke_([a-z][a-z0-9.:-]+)_([a-z0-9-]+)_(.+)")
"""Context as `gcloud container clusters get-credentials` names it: gke_PROJECT_LOCATION_CLUSTER."""

_EKS_CONTEXT: Final = re.compile(r"arn:aws[a-z-]*:eks:([a-z0-9-]+):(\d{12}):cluster/(.+)")
"""Context as `aws eks update-kubeconfig` names it: the cluster's ARN."""

_ZONAL: Final = re.compile(r"([a-z]+-[a-z]+\d+)-[a-z]")
_VERSION: Final = re.compile(r"v?(1\.\d+)")


def read_place(objects: Objects, version: str, context: str | None, found: Found) -> None:
    """Set the cloud and the place of a running cluster, unless a state has set them. `version` is what its API server reports."""
    nodes = objects.get("Node", [])
    providers = [each.text("spec", "providerID") or "" for each in nodes]
    on_gke = "-gke." in version or any(each.startswith("gce://") for each in providers)
    on_eks = "-eks-" in version or any(each.startswith("aws://") for each in providers) or bool(objects.get("EC2NodeClass"))
    if found.cloud is None and objects.get("KWOKNodeClass"):
        found.cloud = Platform.LOCAL
        return
    if found.cloud is not None or not (on_gke or on_eks):
        return
    found.cloud = Platform.GKE if on_gke else Platform.EKS
    found.settings["zones"] = sorted({zone for each in nodes if (zone := each.words("metadata", "labels").get(ZONE_LABEL))})
    found.guess("zones", "those in which nodes are now; there may be more")
    found.settings["cluster"] = _on_gke(providers, context or "", found) if on_gke else _on_eks(providers, context or "", version, found)
    if objects.get("ClusterQueue"):
        found.settings["queueing"] = {"existing_kueue": True}
        found.guess("queueing.existing_kueue", "the cluster has ClusterQueues; a stack needs v1beta2 of Kueue, with fair sharing on")


def _on_gke(providers: list[str], context: str, found: Found) -> dict[str, str]:
    for machine in filter(None, map(_GCE.fullmatch, providers)):
        zone = _ZONAL.fullmatch(machine[2])
        found.settings |= {"project": machine[1]} | ({"region": zone[1]} if zone else {})
    named = _GKE_CONTEXT.fullmatch(context)
    if named is None:
        return {}
    zonal = _ZONAL.fullmatch(named[2])
    found.settings |= {"project": named[1], "region": zonal[1] if zonal else named[2]}
    return {"existing": named[3]} | ({"zone": named[2]} if zonal else {})


def _on_eks(providers: list[str], context: str, version: str, found: Found) -> dict[str, str]:
    if region := next((machine[1] for machine in filter(None, map(_AWS.fullmatch, providers))), None):
        found.settings["region"] = region
    cluster: dict[str, str] = {}
    if named := _EKS_CONTEXT.fullmatch(context):
        found.settings |= {"region": named[1], "account": named[2]}
        cluster["existing"] = named[3]
    if minor := _VERSION.match(version):
        cluster["version"] = minor[1]
    return cluster
