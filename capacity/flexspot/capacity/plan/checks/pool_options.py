"""Checks of pools' options: what capacity types and clouds require, and combinations that do not work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Architecture
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.unreachable_limits import NodeCeilings, out_of_reach
from flexspot.capacity.catalog.workload_classes import Fallback
from flexspot.capacity.plan.pools import compute_class_of, max_run_seconds
from flexspot.capacity.settings.cluster import user_data_problem
from flexspot.capacity.settings.gke_rules import RequestedPool, refusals
from flexspot.capacity.settings.pools import MAX_NODES, EksPool, GkePool, ReservationKind
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.platform import EksSettings


def user_data_is_of_the_images_form(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse user data and kubelet settings that the image family does not read."""
    if not settings.cluster.has_own_image:
        return
    nodes, ami, path = settings.cluster.nodes, settings.cluster.image, "cluster.nodes"
    if nodes.user_data is not None and (problem := user_data_problem(ami, nodes.user_data)):
        yield SettingsProblem(f"{path}.user_data", "", problem, "use a format that the image's family reads", "user-data-of-another-form")
    if ami.startswith("al2023@"):
        return
    remedy = "leave it out, or use al2023"
    if nodes.fast_image_pull:
        yield SettingsProblem(f"{path}.fast_image_pull", "true", "is a setting of nodeadm, which only AL2023 has", remedy, "al2023-alone")
    if (pods := nodes.kubelet.pods_per_core) is not None:
        yield SettingsProblem(f"{path}.kubelet.pods_per_core", str(pods), "is not a setting of Bottlerocket", remedy, "al2023-alone")


def reservations_belong_to_reserved_pools(pool: ResolvedPool, options: EksPool) -> Iterator[SettingsProblem]:
    """Refuse an EKS reserved pool without a reservation, and a reservation on any other pool."""
    reserved, path = options.capacity_type is CapacityType.RESERVED, f"{pool.path}.reservation"
    if reserved and options.reservation is None:
        problem = "is missing: a reserved pool needs a reservation"
        yield SettingsProblem(path, "", problem, "name one, or choose another capacity_type", "reserved-pool-without-reservation")
    if not reserved and options.reservation is not None:
        problem = f"cannot be combined with capacity_type {options.capacity_type}"
        yield SettingsProblem(path, "", problem, "leave it out, or make the pool reserved", "reservation-not-used")


def a_capacity_block_is_in_one_zone(resolved: ResolvedSettings, pool: ResolvedPool, options: EksPool) -> Iterator[SettingsProblem]:
    """Refuse a capacity block on a pool in several zones. Capacity blocks are sold in one zone, and the others would have no machines."""
    block = options.reservation and options.reservation.kind
    if block is ReservationKind.CAPACITY_BLOCK and len(options.zones or resolved.zones) != 1:
        written = ", ".join(options.zones) or "(all)"
        yield SettingsProblem(
            f"{pool.path}.zones", written, "a capacity block is in one zone", "name only that zone", "capacity-block-without-zone"
        )


def runs_end_before_their_nodes(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse runs that are longer than the life of a node, unless they write checkpoints. A PodDisruptionBudget does not delay its end."""
    end = max_run_seconds(resolved, pool)
    for name in sorted(set(pool.settings.serves) & set(resolved.classes)):
        each = resolved.classes[name]
        if end is None or (each.run_limit_hours is not None and each.run_limit_hours * SECONDS_OF_AN_HOUR <= end):
            continue
        limit = "no run_limit_hours" if each.run_limit_hours is None else f"run_limit_hours {each.run_limit_hours}"
        problem = f"the pool's nodes are deleted after {end // SECONDS_OF_AN_HOUR} hours, but class {name} has {limit}"
        remedy = f"set run_limit_hours of {name} to {end // SECONDS_OF_AN_HOUR} or less, or let it write checkpoints"
        yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "run-limit-beyond-nodes", refused=not each.checkpoint)


def gpu_ceilings_are_whole_nodes(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse a GPU ceiling that is not a whole number of nodes: the pool could never reach it."""
    limit, per_node = pool.settings.max_gpus, pool.gpus_per_node
    if limit is not None and limit % per_node:
        lower = limit // per_node * per_node
        near = " or ".join(str(each) for each in (lower, lower + per_node) if each)
        problem = f"is not a multiple of the {per_node} GPUs of a {pool.machines[0].name}"
        yield SettingsProblem(f"{pool.path}.max_gpus", str(limit), problem, f"allowed: {near}", "gpu-limit-not-a-multiple")


def node_and_gpu_ceilings_agree(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse ceilings in nodes and GPUs that contradict each other."""
    nodes, gpus = pool.settings.max_nodes, pool.settings.max_gpus
    if nodes is not None and gpus is not None and nodes * pool.gpus_per_node != gpus:
        problem = f"{nodes} nodes have {nodes * pool.gpus_per_node} GPUs, not {gpus}"
        yield SettingsProblem(f"{pool.path}.max_gpus", str(gpus), problem, "set only one of max_nodes and max_gpus", "ceilings-disagree")


def vcpu_and_memory_leave_the_gpus_in_reach(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse a vCPU or memory ceiling that the pool reaches before its GPU ceiling: queues would promise GPUs that never come."""
    gib = pool.settings.max_memory_gib
    ceilings = NodeCeilings(pool.max_nodes, pool.settings.max_vcpu, None if gib is None else gib * 1024)
    for machine in pool.machines:
        ended = out_of_reach([(machine, pool.gpus_per_node)], pool.ceiling.gpus, ceilings)
        if ended:
            caps = {"max_vcpu": pool.settings.max_vcpu, "max_memory_gib": pool.settings.max_memory_gib}
            written = ", ".join(f"{name}: {cap}" for name, cap in caps.items() if cap is not None)
            problem = f"with {machine.name} the pool stops at {ended.gpus} GPUs and never reaches its ceiling of {pool.ceiling.gpus}"
            need = f"allow at least {pool.max_nodes * machine.vcpu} vCPU and {-(-pool.max_nodes * machine.memory_mib // 1024)} GiB"
            yield SettingsProblem(pool.path, written, problem, need, "gpu-limit-unreachable")


def the_floor_is_below_the_ceiling(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse min_nodes where it has no effect or is above the ceiling, and a GPU ceiling with too many nodes."""
    if pool.settings.min_nodes and resolved.settings.cloud is not Platform.GKE:
        path, problem = f"{pool.path}.min_nodes", "has no effect: Karpenter launches a node only when a pod needs it"
        yield SettingsProblem(path, str(pool.settings.min_nodes), problem, "leave it out", "floor-without-effect")
    elif pool.settings.min_nodes > pool.max_nodes:
        problem = f"is above the ceiling of {pool.max_nodes} nodes"
        yield SettingsProblem(f"{pool.path}.min_nodes", str(pool.settings.min_nodes), problem, "lower it", "floor-above-ceiling")
    if pool.max_nodes > MAX_NODES:
        problem = f"needs {pool.max_nodes} nodes of {pool.machines[0].name}"
        allowed = f"allowed: up to {MAX_NODES} nodes in a pool"
        yield SettingsProblem(f"{pool.path}.max_gpus", str(pool.settings.max_gpus), problem, allowed, "ceiling-above-any-cluster")


def split_gpus_are_for_services(pool: ResolvedPool, options: GkePool) -> Iterator[SettingsProblem]:
    """Refuse shared or partitioned GPUs in queued pools. Each GPU appears as several, and a queue's quota counts whole ones."""
    split = [field for field in ("gpu_sharing", "mig_partition") if getattr(options, field) is not None]
    if split and pool.queued:
        problem = "splits GPUs, but the pool's queue admits only whole ones"
        remedy = "let the pool serve only classes with queued: false"
        yield SettingsProblem(f"{pool.path}.{split[0]}", "", problem, remedy, "split-gpus-in-a-queue")


def gke_accepts_the_pools(resolved: ResolvedSettings, pool: ResolvedPool, options: GkePool) -> Iterator[SettingsProblem]:
    """Refuse pools that GKE would refuse, before a deployment requests them, and options that GKE would ignore."""
    zones = len(options.zones or resolved.zones)
    run_seconds = None if options.max_run_hours is None else options.max_run_hours * 3600
    asked = RequestedPool(options.capacity_type, pool.machines[0], options.min_nodes, run_seconds, options, zones)
    for each in refusals(asked, pool.max_nodes):
        # GKE's limit is in seconds, the setting in hours.
        run_time = each.path == "max_run_seconds"
        option, value = ("max_run_hours", str(options.max_run_hours)) if run_time else (each.path, each.value)
        yield replace(each, path=f"{pool.path}.{option}", value=value)


_IN_BLOCKS = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
"""Prefixes of the names of machines that Google reserves in blocks.

docs.cloud.google.com/ai-hypercomputer, "Reserve capacity through your account team": A3 High to A4X Max (read 2026-11-25).
"""


def blocks_are_of_machines_with_blocks(pool: ResolvedPool, options: GkePool) -> Iterator[SettingsProblem]:
    """Warn about blocks of reservations of other machines: Google's pages document none."""
    reservation = options.reservation
    if reservation is not None and reservation.block is not None and not pool.machines[0].name.startswith(_IN_BLOCKS):
        problem = f"is a block, but Google documents none for reservations of {pool.machines[0].name}"
        remedy = "leave it out if `gcloud compute reservations blocks list` shows none"
        yield SettingsProblem(
            f"{pool.path}.reservation.block", repr(reservation.block), problem, remedy, "block-not-documented", refused=False
        )


def blocks_are_of_a_reservation_of_the_project(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about a block of another project's reservation, on which Google's sources differ.

    GoogleCloudPlatform/cluster-toolkit refuses it ("Shared extended reservations are not supported by GKE", modules/compute/gke-node-pool,
    read 2026-11-26). The tests of GoogleCloudPlatform/cluster-autoscaler contain the name of one.
    """
    own = getattr(resolved.settings, "project", None)
    for pool in resolved.pools.values():
        reservation = pool.settings.reservation if isinstance(pool.settings, GkePool) else None
        if reservation is not None and reservation.block is not None and reservation.project not in {None, own}:
            problem = f"is a block of a reservation of project {reservation.project}, which Google's own Terraform modules reject"
            remedy = "reserve in the stack's project, leave the block out, or try it with one node first"
            path = f"{pool.path}.reservation.block"
            yield SettingsProblem(path, repr(reservation.block), problem, remedy, "block-of-another-project", refused=False)


def efa_is_on_machines_that_have_it(resolved: ResolvedSettings, pool: ResolvedPool, options: EksPool) -> Iterator[SettingsProblem]:
    """Refuse EFA on machines without it, and in pools whose machines have different network cards. A node class lists the cards."""
    if not options.efa:
        return
    path, first = f"{pool.path}.efa", pool.machines[0]
    if first.efa_interfaces == 0:
        with_efa = sorted(each.name for each in resolved.machines.values() if each.efa_interfaces and each.gpu)
        problem = f"{first.name} has no EFA interface"
        yield SettingsProblem(
            path, "true", problem, f"leave it out, or use a machine with EFA: {nearest(first.name, with_efa)}", "efa-without-interface"
        )
    for number, other in enumerate(pool.machines[1:]):
        if first.efa_interfaces and _efa_cards(first) != _efa_cards(other):
            problem = f"has {_efa_cards(other)} EFA interfaces, but {first.name} has {_efa_cards(first)}"
            remedy = "all machines of a pool with efa need the same number; put it in a separate pool"
            yield SettingsProblem(f"{pool.path}.alternatives.{number}", repr(other.name), problem, remedy, "mixed-efa-in-pool")


def nodes_with_efa_reach_one_another(resolved: ResolvedSettings, pool: ResolvedPool, options: EksPool) -> Iterator[SettingsProblem]:
    """Warn about EFA pools whose nodes are in several zones or may be far apart. Reservations have their own placement.

    EFA traffic stays in one zone, and is faster between nodes that are close together:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html, limitations (read 2026-11-24).
    """
    if not options.efa or not pool.machines[0].efa_interfaces:
        return
    if len(options.zones or resolved.zones) != 1:
        problem = "EFA does not cross zones: a job with nodes in several zones has no EFA between them"
        yield SettingsProblem(f"{pool.path}.efa", "true", problem, "give the pool one zone", "efa-over-zones", refused=False)
    elif not options.compact_placement and options.capacity_type is not CapacityType.RESERVED:
        problem = "the pool's nodes may be far apart in the network"
        remedy = "set compact_placement too, or accept the distance in exchange for fewer stock-outs"
        yield SettingsProblem(f"{pool.path}.efa", "true", problem, remedy, "efa-not-placed", refused=False)


def a_pool_has_one_architecture(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse pools with several processor architectures, because Karpenter may launch any of their machines. Warn about arm64."""
    first = pool.machines[0]
    for number, other in enumerate(pool.machines[1:]):
        if other.architecture is not first.architecture:
            problem = f"is {other.architecture}, but {first.name} is {first.architecture}"
            path, remedy = f"{pool.path}.alternatives.{number}", "put it in a separate pool"
            yield SettingsProblem(path, repr(other.name), problem, remedy, "mixed-architectures-in-pool")
    if first.architecture is Architecture.ARM64:
        problem = "is arm64, on which the platform is untested"
        serves = ", ".join(pool.settings.serves)
        remedy = f"make sure that images of {serves} are built for arm64, and that the nodes' image has a driver for its GPUs"
        yield SettingsProblem(f"{pool.path}.machine", repr(first.name), problem, remedy, "arm64-not-tried", refused=False)


def _efa_cards(machine: Machine) -> str:
    return f"{machine.efa_interfaces}{f' (from network card {machine.efa_first_card})' if machine.efa_first_card else ''}"


def a_placement_group_is_in_one_zone(resolved: ResolvedSettings, pool: ResolvedPool, options: EksPool) -> Iterator[SettingsProblem]:
    """Refuse compact placement with a reservation or in several zones.

    A cluster placement group is in one zone, so all nodes would be in the zone of the first one. A capacity reservation can be used inside
    a group only if it was created in that group, which does not exist before the platform.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html#placement-groups-cluster
    """
    if not options.compact_placement:
        return
    path = f"{pool.path}.compact_placement"
    if options.capacity_type is CapacityType.RESERVED:
        problem = "cannot be combined with a reservation, which works only in the placement group in which it was created"
        yield SettingsProblem(path, "true", problem, "leave it out, and reserve capacity that is close together", "compact-reservation")
    elif len(options.zones or resolved.zones) != 1:
        problem = "needs a pool in one zone, as a cluster placement group is in one zone"
        yield SettingsProblem(path, "true", problem, "give the pool one zone", "compact-over-zones")


_WITH_TOPOLOGY_LABELS = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
"""Prefixes of machines whose nodes have the topology labels:
https://docs.cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas"""


def placed_nodes_have_topology_labels(pool: ResolvedPool, options: GkePool) -> Iterator[SettingsProblem]:
    """Refuse a topology on nodes without the labels of every level. Kueue ignores such nodes, so it would never admit a job."""
    if not options.topology:
        return
    machine = pool.machines[0].name
    if not machine.startswith(_WITH_TOPOLOGY_LABELS):
        problem = f"nodes of {machine} have no labels for their place in the network"
        remedy = f"leave it out, or use a machine that has them: {', '.join(each.rstrip('-') for each in _WITH_TOPOLOGY_LABELS)}"
        yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-labels")
    elif options.capacity_type is CapacityType.SPOT and not options.compact_placement:
        problem = "Spot nodes have labels for their place in the network only with compact placement"
        yield SettingsProblem(f"{pool.path}.topology", "true", problem, "set compact_placement too", "topology-without-labels")


def placed_pods_find_nodes(pool: ResolvedPool, options: GkePool) -> Iterator[SettingsProblem]:
    """Refuse a topology on pools whose nodes do not exist before a job is admitted.

    With a topology Kueue admits only to existing nodes, and an autoscaler creates nodes only for admitted pods, so neither would start.
    With a ProvisioningRequest Kueue places pods once the nodes exist. Source: Kueue v0.19, keps/2724 ("support Cluster Autoscaler without
    ProvisioningRequest" is a non-goal) and pkg/scheduler/flavorassigner/tas_flavorassigner.go.
    """
    if not options.topology:
        return
    if options.capacity_type is not CapacityType.QUEUED and options.min_nodes != pool.max_nodes:
        problem = f"Kueue places pods only on existing nodes, and of {pool.max_nodes} nodes only {options.min_nodes} always exist"
        remedy = f"set min_nodes to {pool.max_nodes}, make the pool queued, or leave it out"
        yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-nodes")


def placed_pods_come_from_a_queue(resolved: ResolvedSettings, pool: ResolvedPool, options: GkePool) -> Iterator[SettingsProblem]:
    """Refuse a topology where it has no effect: Kueue only places work that a queue admits flavor by flavor."""
    if not options.topology:
        return
    climbing = any(each.fallback is Fallback.STOCK_OUT for each in pool.classes)
    if not pool.queued or compute_class_of(resolved, pool) is not None or climbing:
        problem = "has no effect: Kueue places only pods of queued classes with fallback: quota"
        yield SettingsProblem(
            f"{pool.path}.topology", "true", problem, "leave it out, or let the pool serve such a class", "topology-without-queue"
        )


def a_class_is_placed_everywhere_or_nowhere(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a class whose pools only partly have a topology.

    A flavor with a topology takes only jobs that request one, and other flavors take none of those, so some pools would stay empty.
    """
    placed = {pool.name for pool in resolved.pools.values() if getattr(pool.settings, "topology", False)}
    for name, each in resolved.classes.items():
        pools = [pool.name for pool in resolved.pools.values() if name in pool.settings.serves]
        others = [pool for pool in pools if pool not in placed]
        if each.queued and others and len(others) < len(pools):
            written = ", ".join(f"{pool} ({'with' if pool in placed else 'without'})" for pool in pools)
            problem = "is served by pools with topology and by pools without, but a job can be admitted to only one of the two kinds"
            remedy = "add a separate class for the pools with topology"
            yield SettingsProblem(f"classes.{name}", written, problem, remedy, "topology-for-part-of-a-class")
