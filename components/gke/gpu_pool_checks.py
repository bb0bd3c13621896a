"""What GKE, or a policy, would refuse of a GPU node pool, told before anything is registered."""

import re
from collections.abc import Callable

from capacity.catalog.capacity_type import CapacityType, Origin, facts_of, gpu_marks_of
from capacity.catalog.gke_rules import NodePoolOptions, refusals
from capacity.catalog.machines import Machine
from capacity.catalog.node_labels import GPU_RESOURCE
from capacity.settings.pools import GkePool, GpuDriver, ReservationUse, SharingStrategy
from capacity.values.names import NAME
from components.gke.gpu_machine import gpu_machine
from components.gke.gpu_pool_args import GpuPool

DISK_GB = 375
"""GB of one local SSD disk."""

GPU_DRIVERS: dict[str, str] = {GpuDriver.DEFAULT: "DEFAULT", GpuDriver.LATEST: "LATEST", GpuDriver.DISABLED: "INSTALLATION_DISABLED"}
SHARING_STRATEGIES: dict[str, str] = {SharingStrategy.TIME_SHARING: "TIME_SHARING", SharingStrategy.MPS: "MPS"}
TAINT_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE", "PreferNoSchedule": "PREFER_NO_SCHEDULE"}

Complain = Callable[[str, object, str, str], None]


def checked_machine(name: str, pool: GpuPool) -> Machine:
    """The machine of a pool that can be made.

    Raises ValueError otherwise: under the name of the policy's rule where there is one, else naming the input, its value, what is allowed
    and the next step. Values that may be Outputs are not looked at.
    """
    where = f"GkeGpuNodePool {name}"

    def complain(argument: str, value: object, allowed: str, remedy: str) -> None:
        raise ValueError(f"{where}: {argument} is {value}; {allowed}; {remedy}")

    types = list(facts_of("gke"))
    if pool.capacity_type not in types:
        complain("capacity_type", pool.capacity_type, f"GKE has {', '.join(types)}", "use one of these")
    _check_limits_and_taints(where, pool, complain)
    machine = gpu_machine(where, pool.machine, pool.accelerator, pool.gpus_per_node)
    _check_place(pool, complain)
    _check_rules(pool, machine, complain)
    _check_gpus(pool, complain)
    _check_disks_and_network(pool, machine, complain)
    return machine


def _check_limits_and_taints(where: str, pool: GpuPool, complain: Complain) -> None:
    if pool.max_nodes < 1:
        raise ValueError(f"gpu-pool-without-limit: {where} has max_nodes={pool.max_nodes}; a GPU pool has a ceiling of at least one node")
    if not 0 <= pool.min_nodes <= pool.max_nodes:
        complain("min_nodes", pool.min_nodes, f"it is 0 to max_nodes, {pool.max_nodes}", "change one of them")
    of_gpus = [taint for taint in pool.taints if taint["key"] == GPU_RESOURCE]
    if not any(taint["effect"] in {"NoSchedule", "NoExecute"} for taint in of_gpus):
        found = ", ".join(f"{taint['key']}:{taint['effect']}" for taint in pool.taints) or "none"
        raise ValueError(
            f"gpu-pool-without-taint: {where} has taints {found}; add {GPU_RESOURCE}=present:NoSchedule, or other pods will fill its nodes"
        )
    for taint in of_gpus:
        if taint["value"] != "present":
            complain(f"the taint on {GPU_RESOURCE}", taint["value"], "GKE sets it with the value present", "write present, or it has two")
    for taint in pool.taints:
        if taint["effect"] not in TAINT_EFFECTS:
            complain(f"the effect of taint {taint['key']}", taint["effect"], f"effects are {', '.join(TAINT_EFFECTS)}", "use one of these")
    marks = facts_of("gke")[CapacityType(pool.capacity_type)].marks[Origin.NODE_POOL]
    for own in sorted({taint["key"] for taint in pool.taints} & {taint.key for taint in marks.taints}):
        complain("taints", f"with {own}", "GKE sets that one by itself and refuses a second", "leave it out")
    for own in sorted(pool.node_labels.keys() & (marks.labels.keys() | gpu_marks_of("gke")[Origin.NODE_POOL].labels.keys())):
        complain("node_labels", f"with {own}", "GKE sets that one by itself", "leave it out")


def _check_place(pool: GpuPool, complain: Complain) -> None:
    if not re.fullmatch(NAME, pool.pool):
        complain("pool", pool.pool, "a name is a lower-case letter, then up to 39 letters, digits and inner hyphens", "rename the pool")
    if not pool.zones or any(not zone.startswith(f"{pool.region}-") for zone in pool.zones):
        complain("zones", ", ".join(pool.zones) or "empty", f"it lists zones of {pool.region}", f"name one, such as {pool.region}-a")
    if pool.max_pods_per_node is not None and not 8 <= pool.max_pods_per_node <= 256:  # noqa: PLR2004 -- GKE's own bounds
        complain("max_pods_per_node", pool.max_pods_per_node, "GKE takes 8 to 256", "use one of these")


def _check_rules(pool: GpuPool, machine: Machine, complain: Complain) -> None:
    grace, reservation = pool.shutdown_grace_seconds, pool.reservation
    if grace is not None and not 30 <= grace <= 120:  # noqa: PLR2004 -- GKE's own bounds
        complain("shutdown_grace_seconds", grace, "GKE takes 30 to 120", "use one of these; pods get 15 seconds less")
    if reservation is not None and reservation["use"] not in set(ReservationUse):
        complain("reservation.use", reservation["use"], "it is specific or any", "use one of these")
    assert machine.gpu is not None, "gpu_machine finds machines with GPUs"  # noqa: S101 -- tells the type checker what was checked
    options = NodePoolOptions(
        capacity_type=CapacityType(pool.capacity_type),
        machine=machine,
        gpu=machine.gpu,
        min_nodes=pool.min_nodes,
        max_run_seconds=pool.max_run_seconds,
        shutdown_grace_seconds=grace,
        reservation_use=None if reservation is None else reservation["use"],
        reservation_name=None if reservation is None else reservation.get("name"),
        reservation_project=None if reservation is None else reservation.get("project"),
        compact_placement=pool.compact_placement,
        local_ssd_disks=pool.local_ssd_disks,
        mig_partition=pool.mig_partition,
        mps=pool.gpu_sharing is not None and pool.gpu_sharing["strategy"] == SharingStrategy.MPS,
    )
    for each in refusals(options):
        complain(each.option, each.value, each.why, each.remedy)


def _check_gpus(pool: GpuPool, complain: Complain) -> None:
    if pool.gpu_driver not in GPU_DRIVERS:
        complain("gpu_driver", pool.gpu_driver, f"it is {', '.join(GPU_DRIVERS)}", "use one of these")
    sharing = pool.gpu_sharing
    if sharing is None:
        return
    if sharing["strategy"] not in SHARING_STRATEGIES:
        complain("gpu_sharing.strategy", sharing["strategy"], f"it is {', '.join(SHARING_STRATEGIES)}", "use one of these")
    if not 2 <= sharing["clients_per_gpu"] <= 48:  # noqa: PLR2004 -- GKE's own bounds
        complain("gpu_sharing.clients_per_gpu", sharing["clients_per_gpu"], "GKE takes 2 to 48", "leave gpu_sharing out for one")


def _check_disks_and_network(pool: GpuPool, machine: Machine, complain: Complain) -> None:
    bundled = machine.local_ssd_gb // DISK_GB
    if pool.bundled_local_ssd_disks not in {None, 0, bundled}:
        complain("bundled_local_ssd_disks", pool.bundled_local_ssd_disks, f"{machine.name} has {bundled}", "use all or 0")
    least, most = GkePool.bounds("boot_disk_gib")
    if not least <= pool.boot_disk_gib <= most:
        complain("boot_disk_gib", pool.boot_disk_gib, f"GKE takes {least} to {most}", "use one of these; images of GPU work want 100")
    if pool.gvnic is False and machine.gvnic:
        complain("gvnic", False, f"{machine.name} needs it", "leave it out")
