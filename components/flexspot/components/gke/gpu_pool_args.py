"""Arguments of GkeGpuNodePool and their checks."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import pulumi

from flexspot.capacity.catalog.accelerators import NVIDIA, ON_GKE, TPU
from flexspot.capacity.catalog.capacity_type import CapacityType, Origin, facts_of
from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of, machines_with
from flexspot.capacity.catalog.node_labels import GKE_TPU_TOPOLOGY_LABEL
from flexspot.capacity.settings.gke_rules import RequestedPool, refusals
from flexspot.capacity.settings.machines import DescribedGkeMachine
from flexspot.capacity.settings.network import GkeNetworkSettings
from flexspot.capacity.settings.pools import GkeNodeOptions, GpuDriver, SharingStrategy
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.names import FORMS, NAME
from flexspot.components.shared_args import NodeTaint, checked_options, refuse, refuse_first


class GkeMachineArgs(TypedDict):
    """A machine that is not in the catalog, without its GPUs. Bounds and defaults are those of the settings' `machines`."""

    vcpu: int
    """vCPU."""

    memory_mib: int
    """Memory, in MiB."""

    gpu_memory_mib: int
    """Memory of one GPU, in MiB."""

    bundled_local_ssd_disks: NotRequired[int]
    """Number of built-in 375 GB disks. Default: 0."""

    boot_disk: NotRequired[str]
    """Boot disk type: hyperdisk-balanced or pd-balanced. Default: hyperdisk-balanced."""

    compact_placement: NotRequired[bool]
    """True if it supports compact placement. Default: False."""

    flex_start: NotRequired[bool]
    """True if DWS offers it. Default: False."""


@dataclass(frozen=True)
class RequestedGpus:
    """GPUs that a pool requests."""

    machine: str
    accelerator: str
    """GKE's name for the GPUs, such as nvidia-l4."""
    gpus: int
    described: GkeMachineArgs | None = None
    """Description of a machine that is not in the catalog."""


def gpu_machine(where: str, requested: RequestedGpus) -> Machine:
    """Return the catalog's row of the requested machine, or the machine that its description defines.

    Raises ValueError, beginning with `where`, if there is no such machine, and names the machines that have those GPUs. Also for a
    description of a machine that the catalog has, or one that settings would reject.
    """
    machine, accelerator, gpus = requested.machine, requested.accelerator, requested.gpus
    machines = machines_of(Vendor.GCP)
    if requested.described is not None:
        if machine in machines:
            refuse(where, SettingsProblem("machine_description", "", f"the catalog already has {machine}", "leave it out"))
        gpu = {"name": accelerator, "count": gpus, "memory_mib": requested.described["gpu_memory_mib"]}
        return checked_options(where, DescribedGkeMachine, {**requested.described, "name": machine, "gpu": gpu}).machine("")
    fits = machines_with(machines, accelerator, gpus)
    if machine in fits:
        return machines[machine]
    found = machines.get(machine)
    if found is None:
        has = "is not in the machine catalog (flexspot/capacity/catalog/gcp.yaml) and has no machine_description"
    elif found.gpu is None:
        has = "has no GPUs"
    else:
        has = f"has {' or '.join(map(str, found.gpu.counts))} {found.gpu.name}"
    if fits:
        remedy = f"use one of {', '.join(fits)}"
    else:
        kinds = sorted({each.gpu.name for each in machines.values() if each.gpu})
        remedy = f"no machine has these; use one of the accelerators {', '.join(kinds)}"
    raise ValueError(f"{where}: machine (is {machine}): {has} (requested: {gpus} {accelerator}); {remedy}")


class GkeReservationArgs(TypedDict):
    """The reservation that the nodes use."""

    use: str
    """`specific`: only the named reservation. `any`: any open reservation that matches. With either, no node starts when it is full."""

    name: NotRequired[str | None]
    """The reservation's name. Only with `specific`. Default: none."""

    project: NotRequired[str | None]
    """The project that owns a shared reservation. Default: the pool's own project."""

    block: NotRequired[str | None]
    """Name of the one reservation block that nodes come from. Only with `specific`. Default: any."""

    sub_block: NotRequired[str | None]
    """Name of the one sub-block of `block` that nodes come from. Default: any."""


class GkeGpuSharingArgs(TypedDict):
    """Sharing of one GPU by several containers, each of which still requests one `nvidia.com/gpu`."""

    strategy: str
    """`time-sharing` or `mps`."""

    clients_per_gpu: int
    """Maximum containers per GPU, or per MIG partition: 2 to 48."""


class GkeSurgeArgs(TypedDict):
    """Number of nodes that an upgrade replaces at once, 1 to 20 in total."""

    max_surge: NotRequired[int]
    """Extra nodes created before old ones are removed. Default: 0."""

    max_unavailable: NotRequired[int]
    """Nodes removed before their replacements are created. Default: 1."""


class GkeNodeOptionsArgs(TypedDict):
    """Options of a node other than its machine. Bounds and defaults are those of GkeNodeOptions in the settings."""

    reservation: NotRequired[GkeReservationArgs | None]
    """The reservation. Required for a reserved pool, not allowed for others. Default: none."""

    shutdown_grace_seconds: NotRequired[int | None]
    """Seconds between the termination signal and the end of a Spot node, 30 to 120. The last 15 are for system pods.

    Needs a control plane of 1.35.0-gke.1171000 or later. Default: GKE's own, 30."""

    gpu_driver: NotRequired[str]
    """`default` or `latest`: the driver that GKE installs. `disabled`: something else installs one. Default: default."""

    gpu_sharing: NotRequired[GkeGpuSharingArgs | None]
    """Sharing of a GPU by containers. Default: GPUs are not shared."""

    mig_partition: NotRequired[str | None]
    """The MIG partition size into which every GPU is split, such as 1g.5gb. Default: GPUs are not split."""

    compact_placement: NotRequired[bool]
    """If true, nodes are placed close together, for traffic between them. Default: False."""

    tpu_topology: NotRequired[str | None]
    """Arrangement in which the TPU chips of several nodes form one slice, such as 4x4. The pool is this slice. Default: one per node."""

    local_ssd_disks: NotRequired[int]
    """Number of 375 GB disks to add to each node as ephemeral storage. Default: 0."""

    boot_disk_gib: NotRequired[int]
    """Size of a node's boot disk, in GiB, at least 10. Default: 200."""

    boot_disk_kms_key: NotRequired[str | None]
    """Name of the Cloud KMS key in the region that encrypts the boot disks. Default: Google's own key.

    Compute Engine's service agent must first be allowed to use it."""

    confidential_nodes: NotRequired[str | None]
    """Technology that encrypts the nodes' memory: `sev`, `sev_snp` or `tdx`, on machines that support it.

    Default: no encryption by the processor."""

    secondary_boot_disk_images: NotRequired[list[str]]
    """Disk images with preloaded container images, such as projects/PROJECT/global/images/IMAGE. Default: none."""

    surge: NotRequired[GkeSurgeArgs | None]
    """Number of nodes that an upgrade replaces at once. Not for flex-start and queued.

    Default: one, removed before its replacement is created."""

    hold_upgrades: NotRequired[bool]
    """If true, GKE upgrades the nodes only when support for their version ends. Not for flex-start and queued. Default: False."""


class GkeNodeNetworkArgs(TypedDict):
    """An additional network for one of the nodes' network cards."""

    network: pulumi.Input[str]
    """Name of the network."""

    subnetwork: pulumi.Input[str]
    """Name of the subnetwork, in the cluster's region."""


class GkeGpuNodePoolArgs(GkeNodeOptionsArgs):
    """Arguments of GkeGpuNodePool. Those that are not `Input` are plain, because they shape the pool or are checked."""

    pool: str
    """The node pool's name in GKE and in the plan: up to 40 lower-case letters, digits and hyphens."""

    project: str
    """The GCP project of the cluster."""

    region: str
    """The region of the cluster, such as us-central1."""

    cluster_zone: NotRequired[str | None]
    """Zone of the control plane of a zonal cluster, such as us-central1-a. Default: the cluster is regional."""

    cluster: pulumi.Input[str]
    """The cluster's name."""

    zones: list[str]
    """Zones of the region in which nodes may start, such as us-central1-a, at least one. Even in a zonal cluster, nodes may use all of
    them."""

    machine: str
    """The machine type, such as g2-standard-8."""

    accelerator: str
    """GKE's name for the machine's GPUs, such as nvidia-l4, or for its TPU chips, such as tpu-v6e-slice."""

    gpus_per_node: int
    """GPUs or TPU chips per node: the machine's number, or one of the numbers that can be attached to it."""

    machine_description: NotRequired[GkeMachineArgs | None]
    """Description of a machine that is not in the catalog. It then has `gpus_per_node` GPUs of type `accelerator`.

    Default: it is in the catalog."""

    capacity_type: str
    """Capacity type: reserved, flex-start, queued, spot or on-demand."""

    min_nodes: NotRequired[int]
    """Minimum nodes in the whole pool, not per zone. Must be 0 for flex-start and queued. Default: 0."""

    max_nodes: int
    """Maximum nodes in the whole pool, not per zone, at least 1."""

    node_labels: NotRequired[dict[str, str]]
    """Node labels in addition to those that GKE sets. Default: none."""

    taints: list[NodeTaint]
    """Node taints in addition to those that GKE sets. One must have the key nvidia.com/gpu (google.com/tpu for TPUs) and the value
    `present`."""

    resource_labels: dict[str, str]
    """Labels of the pool's virtual machines and disks, for billing."""

    service_account: pulumi.Input[str]
    """Email address of the nodes' service account."""

    max_run_seconds: NotRequired[int | None]
    """Seconds after which each node ends, 600 to 604800. Only for flex-start. Default: 604800 for flex-start."""

    max_pods_per_node: NotRequired[int | None]
    """Maximum pods per node: 8 to 256. Default: the cluster's own."""

    further_networks: NotRequired[list[GkeNodeNetworkArgs]]
    """Additional networks of the nodes, on a cluster with multi-networking. Default: none."""


@dataclass(frozen=True)
class CheckedPool:
    """A pool that has passed its checks: its arguments, its options with their defaults, and its machine."""

    args: GkeGpuNodePoolArgs
    options: GkeNodeOptions
    machine: Machine

    @property
    def capacity_type(self) -> CapacityType:
        """The pool's capacity type."""
        return CapacityType(self.args["capacity_type"])

    @property
    def is_spot(self) -> bool:
        """True if the cloud may reclaim the nodes."""
        return self.capacity_type is CapacityType.SPOT

    @property
    def has_tpus(self) -> bool:
        """True if the nodes have TPU chips, and not GPUs."""
        return self.machine.gpu is not None and self.machine.gpu.accelerator is TPU

    @property
    def is_dws(self) -> bool:
        """True if the Dynamic Workload Scheduler provides the nodes: flex-start, queued or not."""
        return self.capacity_type in {CapacityType.FLEX_START, CapacityType.QUEUED}


GPU_DRIVERS: dict[str, str] = {GpuDriver.DEFAULT: "DEFAULT", GpuDriver.LATEST: "LATEST", GpuDriver.DISABLED: "INSTALLATION_DISABLED"}
SHARING_STRATEGIES: dict[str, str] = {SharingStrategy.TIME_SHARING: "TIME_SHARING", SharingStrategy.MPS: "MPS"}
DEVICE_LABELS = frozenset((*(each.gke_label for each in ON_GKE), GKE_TPU_TOPOLOGY_LABEL))
"""Labels that GKE sets on the nodes of a pool for its GPUs or TPU chips."""

TAINT_EFFECTS = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE", "PreferNoSchedule": "PREFER_NO_SCHEDULE"}


def checked_pool(name: str, args: GkeGpuNodePoolArgs) -> CheckedPool:
    """Return a pool that has passed its checks.

    Raises ValueError otherwise. The message has the name of the policy's rule if there is one, else the argument, its value, what is
    allowed and the next step. Values that may be Outputs are not checked.
    """
    where = f"GkeGpuNodePool {name}"
    types = list(facts_of("gke"))
    if args["capacity_type"] not in types:
        refuse(where, SettingsProblem("capacity_type", args["capacity_type"], f"must be one of {', '.join(types)}", ""))
    _check_limits(where, args)
    refuse_first(where, _taints_and_labels(where, args))
    requested = RequestedGpus(args["machine"], args["accelerator"], args["gpus_per_node"], args.get("machine_description"))
    machine = gpu_machine(where, requested)
    options = checked_options(where, GkeNodeOptions, args)
    refuse_first(where, _place(args))
    capacity_type, least, zones = CapacityType(args["capacity_type"]), args.get("min_nodes") or 0, len(args["zones"])
    asked = RequestedPool(capacity_type, machine, least, args.get("max_run_seconds"), options, zones)
    refuse_first(where, refusals(asked, args["max_nodes"]))
    return CheckedPool(args, options, machine)


def _check_limits(where: str, args: GkeGpuNodePoolArgs) -> None:
    most, least = args["max_nodes"], args.get("min_nodes") or 0
    if most < 1:
        raise ValueError(
            f"gpu-pool-without-limit: {where}: max_nodes (is {most}): a GPU pool needs a ceiling of at least one node; raise it"
        )
    if not 0 <= least <= most:
        refuse(where, SettingsProblem("min_nodes", str(least), f"must be 0 to max_nodes ({most})", "change one of them"))


def _taints_and_labels(where: str, args: GkeGpuNodePoolArgs) -> Iterator[SettingsProblem]:
    taints, key = args["taints"], _taint_key(args)
    of_gpus = [taint for taint in taints if taint["key"] == key]
    if not any(taint["effect"] in {"NoSchedule", "NoExecute"} for taint in of_gpus):
        found = ", ".join(f"{taint['key']}:{taint['effect']}" for taint in taints)
        problem = SettingsProblem("taints", found, "other pods would fill the nodes", f"add {key}=present:NoSchedule")
        refuse(f"gpu-pool-without-taint: {where}", problem)
    for taint in of_gpus:
        if taint["value"] != "present":
            problem = "GKE sets a taint with this key and the value 'present', so the nodes would have two"
            yield SettingsProblem(f"taints[{key}].value", taint["value"], problem, "write present")
    for taint in taints:
        if taint["effect"] not in TAINT_EFFECTS:
            yield SettingsProblem(f"taints[{taint['key']}].effect", taint["effect"], f"must be one of {', '.join(TAINT_EFFECTS)}", "")
    marks = facts_of("gke")[CapacityType(args["capacity_type"])].marks[Origin.NODE_POOL]
    for own in sorted({taint["key"] for taint in taints} & {taint.key for taint in marks.taints}):
        yield SettingsProblem("taints", own, "is set by GKE, which rejects a second one", "leave it out")
    labels = args.get("node_labels") or {}
    for own in sorted(labels.keys() & (marks.labels.keys() | DEVICE_LABELS)):
        yield SettingsProblem("node_labels", own, "is set by GKE", "leave it out")


def _taint_key(args: GkeGpuNodePoolArgs) -> str:
    """Return the key of the taint that a pool must have. A machine outside the catalog has GPUs, because settings describe no others."""
    known = machines_of(Vendor.GCP).get(args["machine"])
    return known.gpu.accelerator.taint_key if known is not None and known.gpu is not None else NVIDIA.taint_key


def _place(args: GkeGpuNodePoolArgs) -> Iterator[SettingsProblem]:
    if not re.fullmatch(NAME, args["pool"]):
        yield SettingsProblem("pool", args["pool"], f"must be {FORMS[NAME]}", "rename the pool")
    zones, region = args["zones"], args["region"]
    if not zones or any(not zone.startswith(f"{region}-") for zone in zones):
        yield SettingsProblem("zones", ", ".join(zones) or "empty", f"must be zones of {region}", f"use one such as {region}-a")
    if (zone := args.get("cluster_zone")) is not None and not zone.startswith(f"{region}-"):
        yield SettingsProblem("cluster_zone", zone, f"is not a zone of {region}", "use the control plane's, or leave it out if regional")
    pods, (least, most) = args.get("max_pods_per_node"), GkeNetworkSettings.bounds("max_pods_per_node")
    if pods is not None and not least <= pods <= most:
        yield SettingsProblem("max_pods_per_node", str(pods), f"must be {least} to {most}", "")
