"""What each capacity type and each cloud's own options ask of a pool, and what they must not be combined with."""

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
from flexspot.capacity.settings.gke_rules import AskedPool, refusals
from flexspot.capacity.settings.pools import MAX_NODES, EksPool, GkePool, ReservationKind
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.platform import EksSettings


def user_data_is_of_the_images_form(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Each family of images reads its own form of user data, and has its own settings of the kubelet."""
    if not settings.cluster.has_own_image:
        return
    nodes, ami, path = settings.cluster.nodes, settings.cluster.image, "cluster.nodes"
    if nodes.user_data is not None and (problem := user_data_problem(ami, nodes.user_data)):
        yield SettingsProblem(
            f"{path}.user_data", "", problem, "write it in a form that the image's family reads", "user-data-of-another-form"
        )
    if ami.startswith("al2023@"):
        return
    remedy = "leave it out, or use al2023"
    if nodes.fast_image_pull:
        yield SettingsProblem(f"{path}.fast_image_pull", "true", "is a setting of nodeadm, which only AL2023 has", remedy, "al2023-alone")
    if (pods := nodes.kubelet.pods_per_core) is not None:
        yield SettingsProblem(f"{path}.kubelet.pods_per_core", str(pods), "is not a setting of Bottlerocket", remedy, "al2023-alone")


def reservations_belong_to_reserved_pools(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A reserved pool of EKS says which reservation, and no other pool does."""
    if not isinstance(pool.settings, EksPool):
        return
    reserved, path = pool.settings.capacity_type is CapacityType.RESERVED, f"{pool.path}.reservation"
    if reserved and pool.settings.reservation is None:
        problem = "is missing: a reserved pool needs a reservation"
        yield SettingsProblem(path, "", problem, "name it, or choose another capacity_type", "reserved-pool-without-reservation")
    if not reserved and pool.settings.reservation is not None:
        problem = f"does not go with capacity_type {pool.settings.capacity_type}"
        yield SettingsProblem(path, "", problem, "leave it out, or make the pool reserved", "reservation-not-used")


def a_capacity_block_is_in_one_zone(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A capacity block is sold in one zone; a pool in others would ask for what is not there."""
    block = isinstance(pool.settings, EksPool) and pool.settings.reservation and pool.settings.reservation.kind
    if block is ReservationKind.CAPACITY_BLOCK and len(pool.settings.zones or resolved.zones) != 1:
        written = ", ".join(pool.settings.zones) or "(all)"
        yield SettingsProblem(
            f"{pool.path}.zones", written, "a capacity block is in one zone", "name only that zone", "capacity-block-without-zone"
        )


def work_fits_into_the_run_time(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A node that ends before a job's limit takes the job with it, whatever a PodDisruptionBudget says."""
    end = max_run_seconds(resolved, pool)
    for name in sorted(set(pool.settings.serves) & set(resolved.classes)):
        each = resolved.classes[name]
        if end is None or (each.run_limit_hours is not None and each.run_limit_hours * SECONDS_OF_AN_HOUR <= end):
            continue
        limit = "no run_limit_hours" if each.run_limit_hours is None else f"run_limit_hours {each.run_limit_hours}"
        problem = f"its nodes end after {end // SECONDS_OF_AN_HOUR} hours, but class {name} has {limit}"
        remedy = f"set run_limit_hours of {name} to {end // SECONDS_OF_AN_HOUR} or less, or let it write checkpoints"
        yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "run-limit-beyond-nodes", refused=not each.checkpoint)


def gpu_ceilings_are_whole_nodes(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A part of a node cannot be launched, so a GPU ceiling between two nodes is not the one that holds."""
    limit, per_node = pool.settings.max_gpus, pool.gpus_per_node
    if limit is not None and limit % per_node:
        lower = limit // per_node * per_node
        near = " or ".join(str(each) for each in (lower, lower + per_node) if each)
        problem = f"is not a multiple of the {per_node} GPUs of a {pool.machines[0].name}"
        yield SettingsProblem(f"{pool.path}.max_gpus", str(limit), problem, f"allowed: {near}", "gpu-limit-not-a-multiple")


def node_and_gpu_ceilings_agree(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Given both, they say the same."""
    nodes, gpus = pool.settings.max_nodes, pool.settings.max_gpus
    if nodes is not None and gpus is not None and nodes * pool.gpus_per_node != gpus:
        problem = f"{nodes} nodes have {nodes * pool.gpus_per_node} GPUs, not {gpus}"
        yield SettingsProblem(f"{pool.path}.max_gpus", str(gpus), problem, "set only one of max_nodes and max_gpus", "ceilings-disagree")


def vcpu_and_memory_leave_the_gpus_in_reach(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A vCPU or memory ceiling that ends a pool earlier than its GPU ceiling: queues would promise GPUs that never come."""
    gib = pool.settings.max_memory_gib
    ceilings = NodeCeilings(pool.max_nodes, pool.settings.max_vcpu, None if gib is None else gib * 1024)
    for machine in pool.machines:
        ended = out_of_reach([(machine, pool.gpus_per_node)], pool.ceiling.gpus, ceilings)
        if ended:
            caps = {"max_vcpu": pool.settings.max_vcpu, "max_memory_gib": pool.settings.max_memory_gib}
            written = ", ".join(f"{name}: {cap}" for name, cap in caps.items() if cap is not None)
            problem = f"with {machine.name} the pool stops at {ended.gpus} GPUs and never reaches its ceiling of {pool.ceiling.gpus}"
            need = f"{pool.max_nodes * machine.vcpu} vCPU and {-(-pool.max_nodes * machine.memory_mib // 1024)} GiB are needed"
            yield SettingsProblem(pool.path, written, problem, need, "gpu-limit-unreachable")


def the_floor_is_below_the_ceiling(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """min_nodes fits, and costs money around the clock."""
    if pool.settings.min_nodes and resolved.settings.cloud is not Platform.GKE:
        path, problem = f"{pool.path}.min_nodes", "has no effect: Karpenter launches a node only when a pod needs it"
        yield SettingsProblem(path, str(pool.settings.min_nodes), problem, "leave it out", "floor-without-effect")
    elif pool.settings.min_nodes > pool.max_nodes:
        problem = f"is above the ceiling of {pool.max_nodes} nodes"
        yield SettingsProblem(f"{pool.path}.min_nodes", str(pool.settings.min_nodes), problem, "lower it", "floor-above-ceiling")
    if pool.max_nodes > MAX_NODES:
        problem = f"are {pool.max_nodes} nodes of {pool.machines[0].name}"
        allowed = f"allowed: {MAX_NODES} nodes in a pool"
        yield SettingsProblem(f"{pool.path}.max_gpus", str(pool.settings.max_gpus), problem, allowed, "ceiling-above-any-cluster")


def split_gpus_are_for_services(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A shared or partitioned GPU shows as several: a queue's quota, counted in whole ones, would promise a part of what there is."""
    if not isinstance(pool.settings, GkePool):
        return
    split = [field for field in ("gpu_sharing", "mig_partition") if getattr(pool.settings, field) is not None]
    if split and pool.queued:
        problem = "splits GPUs, but the pool's queue admits only whole ones"
        remedy = "let the pool serve only classes with queued: false"
        yield SettingsProblem(f"{pool.path}.{split[0]}", "", problem, remedy, "split-gpus-in-a-queue")


def gke_takes_the_pools(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """What GKE would refuse of a pool, or do nothing for, is known before it is asked."""
    if not isinstance(pool.settings, GkePool):
        return
    settings = pool.settings
    zones = len(settings.zones or resolved.zones)
    run_seconds = None if settings.max_run_hours is None else settings.max_run_hours * 3600
    asked = AskedPool(settings.capacity_type, pool.machines[0], settings.min_nodes, run_seconds, settings, zones)
    for each in refusals(asked, pool.max_nodes):
        # Settings count in hours what GKE counts in seconds.
        run_time = each.path == "max_run_seconds"
        option, value = ("max_run_hours", str(settings.max_run_hours)) if run_time else (each.path, each.value)
        yield replace(each, path=f"{pool.path}.{option}", value=value)


_IN_BLOCKS = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
"""How the names of machines begin that Google reserves in blocks.

docs.cloud.google.com/ai-hypercomputer, "Reserve capacity through your account team": A3 High to A4X Max (read 2026-11-25).
"""


def blocks_are_of_machines_that_come_in_them(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A reservation of other machines has no blocks, as far as Google's pages say."""
    reservation = pool.settings.reservation if isinstance(pool.settings, GkePool) else None
    if reservation is not None and reservation.block is not None and not pool.machines[0].name.startswith(_IN_BLOCKS):
        problem = f"is a block, but Google documents none for reservations of {pool.machines[0].name}"
        remedy = "leave it out, if `gcloud compute reservations blocks list` shows none"
        yield SettingsProblem(
            f"{pool.path}.reservation.block", repr(reservation.block), problem, remedy, "block-not-documented", refused=False
        )


def blocks_are_of_a_reservation_of_the_project(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Google's sources differ on a block of another project's reservation, so nobody can rely on it.

    GoogleCloudPlatform/cluster-toolkit refuses it ("Shared extended reservations are not supported by GKE", modules/compute/gke-node-pool,
    read 2026-11-26); the tests of GoogleCloudPlatform/cluster-autoscaler have its name.
    """
    own = getattr(resolved.settings, "project", None)
    for pool in resolved.pools.values():
        reservation = pool.settings.reservation if isinstance(pool.settings, GkePool) else None
        if reservation is not None and reservation.block is not None and reservation.project not in {None, own}:
            problem = f"is a block of a reservation of {reservation.project}, which Google's own Terraform modules refuse"
            remedy = "reserve in the stack's project, leave the block out, or try it with one node first"
            path = f"{pool.path}.reservation.block"
            yield SettingsProblem(path, repr(reservation.block), problem, remedy, "block-of-another-project", refused=False)


def efa_is_on_machines_that_have_it(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A node class lists the network cards, so all machines of its pool must have the same number of them."""
    if not isinstance(pool.settings, EksPool) or not pool.settings.efa:
        return
    path, first = f"{pool.path}.efa", pool.machines[0]
    if first.efa_interfaces == 0:
        with_efa = sorted(each.name for each in resolved.machines.values() if each.efa_interfaces and each.gpu)
        problem = f"{first.name} has no EFA interface"
        yield SettingsProblem(
            path, "true", problem, f"leave it out; machines with EFA: {nearest(first.name, with_efa)}", "efa-without-interface"
        )
    for number, other in enumerate(pool.machines[1:]):
        if first.efa_interfaces and _efa_cards(first) != _efa_cards(other):
            problem = f"has {_efa_cards(other)} EFA interfaces, but {first.name} has {_efa_cards(first)}"
            remedy = "all machines of a pool with efa need the same number; give it a pool of its own"
            yield SettingsProblem(f"{pool.path}.alternatives.{number}", repr(other.name), problem, remedy, "mixed-efa-in-pool")


def nodes_with_efa_reach_one_another(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """EFA's traffic stays in one zone, and is the faster, the closer the nodes are. A reservation brings its own place.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html, limitations (read 2026-11-24)
    """
    settings = pool.settings
    if not isinstance(settings, EksPool) or not settings.efa or not pool.machines[0].efa_interfaces:
        return
    if len(settings.zones or resolved.zones) != 1:
        problem = "EFA does not cross zones: a job with nodes in several zones has no EFA between them"
        yield SettingsProblem(f"{pool.path}.efa", "true", problem, "give the pool one zone", "efa-over-zones", refused=False)
    elif not settings.compact_placement and settings.capacity_type is not CapacityType.RESERVED:
        problem = "its nodes may be far apart in the network"
        remedy = "set compact_placement too, or accept that in exchange for fewer stock-outs"
        yield SettingsProblem(f"{pool.path}.efa", "true", problem, remedy, "efa-not-placed", refused=False)


def a_pool_has_one_architecture(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A job's image is built for one kind of processor, or for several; Karpenter launches whichever machine it likes."""
    first = pool.machines[0]
    for number, other in enumerate(pool.machines[1:]):
        if other.architecture is not first.architecture:
            problem = f"is {other.architecture}, but {first.name} is {first.architecture}"
            path, remedy = f"{pool.path}.alternatives.{number}", "give it a pool of its own"
            yield SettingsProblem(path, repr(other.name), problem, remedy, "mixed-architectures-in-pool")
    if first.architecture is Architecture.ARM64:
        problem = "is arm64, on which the platform is untested"
        serves = ", ".join(pool.settings.serves)
        remedy = f"make sure that images of {serves} are built for arm64, and that the nodes' image has a driver for its GPUs"
        yield SettingsProblem(f"{pool.path}.machine", repr(first.name), problem, remedy, "arm64-not-tried", refused=False)


def _efa_cards(machine: Machine) -> str:
    return f"{machine.efa_interfaces}{f' (from network card {machine.efa_first_card})' if machine.efa_first_card else ''}"


def a_placement_group_is_in_one_zone(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """A cluster placement group is of one zone: its nodes would all be in whichever zone came first.

    A capacity reservation is used from within a group only if it was made in that very group, which is not there before the platform is.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html#placement-groups-cluster
    """
    if not isinstance(pool.settings, EksPool) or not pool.settings.compact_placement:
        return
    path = f"{pool.path}.compact_placement"
    if pool.settings.capacity_type is CapacityType.RESERVED:
        problem = "does not go with a reservation, which can be used only from the placement group that it was made in"
        yield SettingsProblem(path, "true", problem, "leave it out; reserve the capacity close together", "compact-reservation")
    elif len(pool.settings.zones or resolved.zones) != 1:
        problem = "needs a pool in one zone: a cluster placement group is in one zone"
        yield SettingsProblem(path, "true", problem, "give the pool one zone", "compact-over-zones")


_WITH_LABELS = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
"""Machines whose nodes have the labels: https://docs.cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas"""


def _placed(resolved: ResolvedSettings) -> list[tuple[ResolvedPool, GkePool]]:
    pools = [(pool, pool.settings) for pool in resolved.pools.values()]
    return [(pool, settings) for pool, settings in pools if isinstance(settings, GkePool) and settings.topology]


def placed_nodes_say_where_they_are(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Kueue leaves out nodes without the labels of every level, so on a pool of such no job would ever be admitted."""
    for pool, settings in _placed(resolved):
        machine = pool.machines[0].name
        if not machine.startswith(_WITH_LABELS):
            problem = f"nodes of {machine} have no labels for their place in the network"
            remedy = f"leave it out; machines that have them: {', '.join(each.rstrip('-') for each in _WITH_LABELS)}"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-labels")
        elif settings.capacity_type is CapacityType.SPOT and not settings.compact_placement:
            problem = "Spot nodes have labels for their place in the network only with compact placement"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, "set compact_placement too", "topology-without-labels")


def placed_pods_find_nodes(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Kueue admits with a topology onto nodes that exist, and an autoscaler makes nodes for pods that are admitted: neither would begin.

    With a ProvisioningRequest the place is looked for once the nodes are there. Source: Kueue v0.19, keps/2724 ("support Cluster Autoscaler
    without ProvisioningRequest" is a non-goal) and pkg/scheduler/flavorassigner/tas_flavorassigner.go.
    """
    for pool, settings in _placed(resolved):
        if settings.capacity_type is not CapacityType.QUEUED and settings.min_nodes != pool.max_nodes:
            problem = f"Kueue places pods only on existing nodes, and of {pool.max_nodes} nodes only {settings.min_nodes} always exist"
            remedy = f"set min_nodes to {pool.max_nodes}, make the pool queued, or leave it out"
            yield SettingsProblem(f"{pool.path}.topology", "true", problem, remedy, "topology-without-nodes")


def placed_pods_come_from_a_queue(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Only what a queue gives away flavor by flavor is placed by Kueue."""
    for pool, _ in _placed(resolved):
        climbing = any(each.fallback is Fallback.STOCK_OUT for each in pool.classes)
        if not pool.queued or compute_class_of(resolved, pool) is not None or climbing:
            problem = "has no effect: Kueue places the pods of queued classes with fallback: quota"
            yield SettingsProblem(
                f"{pool.path}.topology", "true", problem, "leave it out, or change what the pool serves", "topology-without-queue"
            )


def a_class_is_placed_everywhere_or_nowhere(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A flavor with a topology takes only jobs that ask for one, and other flavors none of those: some pools would stay empty."""
    placed = {pool.name for pool, _ in _placed(resolved)}
    for name, each in resolved.classes.items():
        pools = [pool.name for pool in resolved.pools.values() if name in pool.settings.serves]
        others = [pool for pool in pools if pool not in placed]
        if each.queued and others and len(others) < len(pools):
            written = ", ".join(f"{pool} ({'with' if pool in placed else 'without'})" for pool in pools)
            problem = "is served by pools with topology and by pools without, but a job can be admitted to only one of the two kinds"
            remedy = "give the pools with topology a class of their own"
            yield SettingsProblem(f"classes.{name}", written, problem, remedy, "topology-for-part-of-a-class")
