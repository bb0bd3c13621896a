"""What the nodes of a GKE pool are: their labels, how long their pods have at an interruption, how many GPUs they have in all."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.catalog.accelerators import TPU
from capacity.catalog.node_labels import (
    GKE_ACCELERATOR_LABEL,
    GKE_POOL_LABEL,
    GKE_SPOT_LABEL,
    GKE_TPU_LABEL,
    GKE_TPU_TOPOLOGY_LABEL,
    INSTANCE_TYPE_LABEL,
)
from policies.inventory.gpu_machines import is_gpu_machine
from policies.inventory.node_offer import CatalogMachine, NodeOffer, machines_of
from policies.values.field import UNKNOWN, Field, Tri, Unknown

if TYPE_CHECKING:
    from policies.inventory.views import Bounds

PROVISIONING_LABEL = "cloud.google.com/gke-provisioning"
FLEX_START_LABEL = "cloud.google.com/gke-flex-start"

# Prefixes of labels that GKE, the kubelet and Google's controllers set; a pool's own are listed.
_CLOUDS = (
    *("cloud.google.com/", "autoscaling.gke.io/", "gke.io/", "networking.gke.io/", "topology.gke.io/", "kubernetes.io/"),
    *("node.kubernetes.io/", "topology.kubernetes.io/", "beta.kubernetes.io/", "failure-domain.beta.kubernetes.io/"),
)
_CHOSEN = ("cloud.google.com/compute-class", "cloud.google.com/gke-queued")
"""Labels of the cloud's that are there only if the pool writes them."""

_SHUTDOWN, _CRITICAL = Decimal(30), Decimal(15)
"""GKE's seconds of a node's shutdown, and those of them that are kept for critical pods, where a pool does not say."""


def offer_of(pool: Field, spot: Tri) -> NodeOffer:
    """The labels that the pool's nodes have before they boot.

    Source: docs.cloud.google.com/kubernetes-engine, "Spot VMs", "GPUs", "Flex-start"; GoogleCloudPlatform/cluster-autoscaler.
    """
    node = pool.at("nodeConfig")
    labels, name = node.at("labels").parts(), pool.at("name")
    fixed = dict(labels.named)
    fixed[GKE_POOL_LABEL] = Field(UNKNOWN) if name.absent else name
    fixed[INSTANCE_TYPE_LABEL] = node.at("machineType")
    machine = machines_of("gcp").get(str(node.at("machineType").text()))
    accelerators = node.at("guestAccelerators")
    if has_tpus := is_gpu_machine(str(node.at("machineType").text()), (TPU,)):
        fixed[GKE_TPU_LABEL] = Field(machine.gpu if machine else UNKNOWN)
        fixed[GKE_TPU_TOPOLOGY_LABEL] = _tpu_topology(pool, machine)
    first = next(iter(accelerators.parts().fields), Field(None))
    if has_tpus:
        fixed[GKE_ACCELERATOR_LABEL] = Field(None)
    elif not accelerators.known or (first.absent and not machine and is_gpu_machine(str(node.at("machineType").text()))):
        fixed[GKE_ACCELERATOR_LABEL] = Field(UNKNOWN)
    else:
        fixed[GKE_ACCELERATOR_LABEL] = Field(machine.gpu or None) if first.absent and machine else first.at("type")
    flex = node.at("flexStart").equals("true")
    fixed[GKE_SPOT_LABEL] = _mark(spot)
    fixed[FLEX_START_LABEL] = _mark(flex)
    fixed[PROVISIONING_LABEL] = _provisioning(node, spot, flex)
    for key in _CHOSEN:
        fixed.setdefault(key, Field(None if labels.complete else UNKNOWN))
    return NodeOffer(fixed=fixed, open_prefixes=_CLOUDS, complete=labels.complete)


def _tpu_topology(pool: Field, machine: CatalogMachine | None) -> Field:
    """The slice's where there is one over several hosts, else what one host has by itself."""
    placement = pool.at("placementPolicy")
    written = placement.at("tpuTopology")
    if not written.absent or not placement.known:
        return written
    return Field(machine.tpu_topology if machine else UNKNOWN)


def _mark(answer: Tri) -> Field:
    return Field(UNKNOWN if answer is UNKNOWN else ("true" if answer else None))


def _provisioning(node: Field, spot: Tri, flex: Tri) -> Field:
    if node.at("preemptible").equals("true") is True:
        return Field("preemptible")
    if spot is True:
        return Field("spot")
    if flex is True:
        return Field("flex-start")
    return Field(UNKNOWN if UNKNOWN in (spot, flex) else "standard")


def notice_of(node: Field) -> Decimal | Unknown | None:
    """Seconds that pods have when a Spot node ends: the node's shutdown less what is kept for critical pods."""
    kubelet = node.at("kubeletConfig")
    shutdown, critical = (kubelet.at(f"shutdownGracePeriod{part}Seconds") for part in ("", "CriticalPods"))
    if not (shutdown.known and critical.known):
        return UNKNOWN
    whole, kept = shutdown.number(), critical.number()
    return (whole if isinstance(whole, Decimal) and whole else _SHUTDOWN) - (kept if isinstance(kept, Decimal) else _CRITICAL)


def node_gpus_of(pool: Field) -> Decimal | Unknown | None:
    """The GPUs that pods get of one node; None where that cannot be told, as where pods share a GPU or get slices of one."""
    node = pool.at("nodeConfig")
    accelerators = node.at("guestAccelerators").parts()
    if not (node.known and accelerators.complete):
        return UNKNOWN
    shared = [each for each in accelerators.fields if not (each.at("gpuSharingConfig").absent and each.at("gpuPartitionSize").absent)]
    machine = machines_of("gcp").get(str(node.at("machineType").text()))
    counts = [each.at("count").number() for each in accelerators.fields] or [
        Decimal(machine.gpu_counts[0]) if machine and machine.gpu else None
    ]
    if UNKNOWN in counts:
        return UNKNOWN
    if shared or None in counts:
        return None
    return sum((count for count in counts if isinstance(count, Decimal)), Decimal(0))


def gpus_of(pool: Field, bounds: Bounds) -> Decimal | Unknown | None:
    """The most GPUs that pods can get of the pool; None where that cannot be told."""
    each, nodes = node_gpus_of(pool), _nodes(pool, bounds)
    if UNKNOWN in (each, nodes):
        return UNKNOWN
    return nodes * each if isinstance(each, Decimal) and isinstance(nodes, Decimal) else None


def _nodes(pool: Field, bounds: Bounds) -> Decimal | Unknown | None:
    """The most nodes, in all zones: of the two maxima the total is one of all zones, and the other, like a count, of each."""
    amounts = {ceiling.field.rpartition(".")[2]: ceiling.amount for group in bounds for ceiling in group}
    if (total := amounts.get("totalMaxNodeCount")) is not None:
        return total
    each_zone, zones = next((amount for amount in amounts.values() if amount is not None), None), pool.at("nodeLocations")
    if UNKNOWN in (each_zone, zones.value):
        return UNKNOWN
    # Without zones of its own the pool has those of its cluster, which nobody can count here.
    count = len(zones.parts().fields)
    return each_zone * count if isinstance(each_zone, Decimal) and count else None
