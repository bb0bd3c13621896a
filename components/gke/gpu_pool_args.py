"""The arguments of GkeGpuNodePool, the same with their defaults filled in, and what GKE or a policy would refuse."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pulumi

from capacity.catalog.capacity_type import CapacityType, Origin, facts_of, gpu_marks_of
from capacity.catalog.gke_rules import NodePoolOptions, refusals
from capacity.catalog.machines import Cloud, Machine, machines_of, machines_with
from capacity.catalog.node_labels import GPU_RESOURCE
from capacity.settings.pools import GkePool, GpuDriver, ReservationUse, SharingStrategy
from capacity.values.names import NAME
from components.shared_args import NodeTaint


def gpu_machine(where: str, machine: str, accelerator: str, gpus: int) -> Machine:
    """The catalog's row of `machine`, which has `gpus` GPUs of `accelerator` (GKE's name, such as nvidia-l4).

    Raises ValueError, beginning with `where`, when there is no such machine, and names the machines that have those GPUs.
    """
    machines = machines_of(Cloud.GCP)
    fits = machines_with(machines, accelerator, gpus)
    if machine in fits:
        return machines[machine]
    found = machines.get(machine)
    if found is None:
        has = "is not in the machine catalog (capacity/catalog/gcp.yaml)"
    elif found.gpu is None:
        has = "has no GPUs"
    else:
        has = f"has {' or '.join(map(str, found.gpu.counts))} of {found.gpu.name}"
    if fits:
        remedy = f"machines that have these are {', '.join(fits)}"
    else:
        kinds = sorted({each.gpu.name for each in machines.values() if each.gpu})
        remedy = f"no machine has these; accelerators are {', '.join(kinds)}"
    raise ValueError(f"{where}: machine {machine} {has}; asked for {gpus} of {accelerator}; {remedy}")


class GkeReservationArgs(TypedDict):
    """Which reservation the nodes draw on."""

    use: str
    """`specific`: the named one alone. `any`: whichever open one matches, and on-demand capacity when none has room."""

    name: NotRequired[str | None]
    """The reservation's name; with `specific` alone. Default: none."""

    project: NotRequired[str | None]
    """The project that owns a shared reservation. Default: the pool's own project."""


class GkeGpuSharingArgs(TypedDict):
    """Several containers on one GPU, each of which still asks for one `nvidia.com/gpu`."""

    strategy: str
    """`time-sharing` or `mps`."""

    clients_per_gpu: int
    """Containers on one GPU, or on one of its MIG partitions, at most: 2 to 48."""


class GkeGpuNodePoolArgs(TypedDict):
    """Arguments of GkeGpuNodePool. Those that are not `Input` are plain, because they shape the pool or are checked."""

    pool: str
    """The node pool's name in GKE and in the plan: up to 40 lower-case letters, digits and hyphens."""

    project: str
    """The GCP project of the cluster."""

    region: str
    """The region of the cluster, such as us-central1."""

    cluster: pulumi.Input[str]
    """The cluster's name."""

    zones: list[str]
    """Zones of the region in which nodes may start, such as us-central1-a; at least one."""

    machine: str
    """The machine type, such as g2-standard-8."""

    accelerator: str
    """GKE's name of the machine's GPUs, such as nvidia-l4."""

    gpus_per_node: int
    """GPUs of one node: those that the machine has, or one of the counts that can be attached to it."""

    capacity_type: str
    """How the capacity is bought: reserved, flex-start, queued, spot or on-demand."""

    min_nodes: NotRequired[int]
    """Nodes that stay, in the whole pool, not in each zone; 0 for flex-start and queued. Default: 0."""

    max_nodes: int
    """Ceiling in nodes of the whole pool, not of each zone; at least 1."""

    node_labels: NotRequired[dict[str, str]]
    """Labels of the nodes besides those that GKE sets by itself. Default: none."""

    taints: list[NodeTaint]
    """Taints of the nodes besides those that GKE sets by itself; one of them on nvidia.com/gpu with the value `present`."""

    resource_labels: dict[str, str]
    """Labels of the pool's virtual machines and disks, by which Google bills them."""

    service_account: pulumi.Input[str]
    """E-mail address of the service account that the nodes run as."""

    max_run_seconds: NotRequired[int | None]
    """Seconds after which every node ends; flex-start alone, 600 to 604800. Default: 604800 for flex-start."""

    shutdown_grace_seconds: NotRequired[int | None]
    """Seconds between the signal and the end of a Spot node, 30 to 120, of which the last 15 are for system pods. Default: GKE's own, 30.

    Needs a control plane of 1.35.0-gke.1171000 or later.
    """

    reservation: NotRequired[GkeReservationArgs | None]
    """The reservation; a reserved pool names one, no other may. Default: none."""

    gpu_driver: NotRequired[str]
    """`default` or `latest`: the driver that GKE installs; `disabled`: something else installs one. Default: default."""

    gpu_sharing: NotRequired[GkeGpuSharingArgs | None]
    """How containers share a GPU. Default: they do not."""

    mig_partition: NotRequired[str | None]
    """Size of the MIG partitions into which every GPU is divided, such as 1g.5gb. Default: GPUs are whole."""

    compact_placement: NotRequired[bool]
    """Whether the nodes are placed close to each other, for traffic between them. Default: False."""

    local_ssd_disks: NotRequired[int]
    """Disks of 375 GB to add to each node, as its ephemeral storage. Default: 0."""

    bundled_local_ssd_disks: NotRequired[int | None]
    """How many of the 375 GB disks that come with the machine are its ephemeral storage: all or 0. Default: all."""

    boot_disk_gib: NotRequired[int]
    """Size of a node's boot disk, in GiB; at least 10. Default: 200."""

    boot_disk_type: NotRequired[str | None]
    """Type of the boot disk. Default: hyperdisk-balanced on a3-ultragpu, a4 and g4 machines, else pd-balanced."""

    secondary_boot_disk_images: NotRequired[list[str]]
    """Disk images that hold container images, such as projects/PROJECT/global/images/IMAGE. Default: none."""

    gvnic: NotRequired[bool | None]
    """Whether nodes use Google's virtual NIC, which A3 and A4 machines need. Default: where the machine needs it."""

    max_pods_per_node: NotRequired[int | None]
    """Pods of one node, at most: 8 to 256. Default: the cluster's own."""


@dataclass(frozen=True, kw_only=True)
class GpuPool:
    """GkeGpuNodePoolArgs with their defaults; None is what the machine or GKE decides."""

    pool: str
    project: str
    region: str
    cluster: pulumi.Input[str]
    zones: list[str]
    machine: str
    accelerator: str
    gpus_per_node: int
    capacity_type: str
    min_nodes: int = 0
    max_nodes: int
    node_labels: dict[str, str] = field(default_factory=dict[str, str])
    taints: list[NodeTaint]
    resource_labels: dict[str, str]
    service_account: pulumi.Input[str]
    max_run_seconds: int | None = None
    shutdown_grace_seconds: int | None = None
    reservation: GkeReservationArgs | None = None
    gpu_driver: str = GkePool.default("gpu_driver").value
    gpu_sharing: GkeGpuSharingArgs | None = None
    mig_partition: str | None = None
    compact_placement: bool = False
    local_ssd_disks: int = 0
    bundled_local_ssd_disks: int | None = None
    boot_disk_gib: int = GkePool.default("boot_disk_gib")
    boot_disk_type: str | None = None
    secondary_boot_disk_images: list[str] = field(default_factory=list[str])
    gvnic: bool | None = None
    max_pods_per_node: int | None = None

    @property
    def is_spot(self) -> bool:
        """Whether the cloud may take the nodes back."""
        return self.capacity_type == CapacityType.SPOT

    @property
    def is_dws(self) -> bool:
        """Whether the Dynamic Workload Scheduler gives the nodes: flex-start, queued or not."""
        return self.capacity_type in {CapacityType.FLEX_START, CapacityType.QUEUED}


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
