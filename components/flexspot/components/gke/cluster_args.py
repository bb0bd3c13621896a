"""Arguments of GkeCluster, their defaults and their checks."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
import re
from typing import NotRequired, TypedDict

import pulumi

from flexspot.capacity.catalog.machines import BootDisk, Vendor, machines_of
from flexspot.capacity.settings.cluster import GkeClusterSettings, GkeMode, GkeSystemPool, SystemPool
from flexspot.capacity.settings.gke_rules import confidential_refusals
from flexspot.capacity.settings.network import Access, ControlPlane, GkeNetworkSettings
from flexspot.capacity.settings.platform import Observability
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import CLUSTER_NAME_LENGTH, check_choice, check_name, check_project
from flexspot.components.shared_args import checked_options, defaults, filled, refuse, refuse_first


@defaults(min_nodes=SystemPool.default("min_nodes"), max_nodes=SystemPool.default("max_nodes"), disk_gib=100)
class GkeSystemPoolArgs(TypedDict):
    """The nodes for the controllers: on-demand, without GPUs."""

    machine: str
    """Machine type, such as e2-standard-4."""

    min_nodes: NotRequired[int]
    """Number of nodes that always run, in the whole pool, not per zone, at least 1. Default: 2."""

    max_nodes: NotRequired[int]
    """Maximum nodes in the whole pool, at least one per zone, because a regional pool starts with one in each. Default: 4."""

    disk_gib: NotRequired[int]
    """Size of a node's boot disk, in GiB, at least 10. Default: 100."""

    boot_disk_type: NotRequired[str | None]
    """`pd-balanced` or `hyperdisk-balanced`. Default: the type in the catalog, or pd-balanced for machines that are not in it."""

    confidential_nodes: NotRequired[str | None]
    """Technology that encrypts the nodes' memory: `sev`, `sev_snp` or `tdx`, on machines that support it.

    Default: no encryption by the processor."""


class GkeAutoProvisioningArgs(TypedDict):
    """Limits of the whole cluster. Declared pools count towards them, so they must include what those may use."""

    max_vcpu: int
    """Maximum vCPU, at most 1,000,000."""

    max_memory_gib: int
    """Maximum memory in GiB, at most 1,000,000."""

    accelerators: NotRequired[dict[str, int]]
    """Maximum GPUs by GKE's name, such as nvidia-l4. GKE does not provision nodes with GPUs that are not listed. Default: none."""


class GkeSecurityArgs(TypedDict):
    """Security options beyond the cluster's defaults. Formats and defaults are those of GkeSecurity in the settings."""

    secrets_kms_key: NotRequired[str | None]
    """Name of the Cloud KMS key in the region that encrypts Secrets in the cluster's database. Default: only Google's own keys.

    GKE's service agent must first be allowed to use it."""

    boot_disk_kms_key: NotRequired[str | None]
    """Name of the Cloud KMS key in the region that encrypts the boot disks of system nodes and of nodes that GKE provisions by itself.

    Compute Engine's service agent must first be allowed to use it. Default: Google's own keys."""

    posture: NotRequired[str | None]
    """Reports of insecure pod settings by GKE: `disabled` or `basic`. Default: GKE decides."""

    vulnerability_scanning: NotRequired[str | None]
    """Scans of running images for vulnerabilities by GKE: `disabled` or `enterprise`. Default: GKE decides."""

    binary_authorization: NotRequired[str | None]
    """Images that may start. `disabled`: all. `project_singleton_policy_enforce`: those that the project's policy admits.

    Default: GKE's."""


class GkeMaintenanceExclusionArgs(TypedDict):
    """Days on which GKE does not upgrade by itself."""

    name: str
    """Its name, unique in the cluster."""

    scope: NotRequired[str]
    """`no_upgrades`, `no_minor_upgrades` or `no_minor_or_node_upgrades`. Default: no_upgrades."""

    starts: str
    """First day, as YYYY-MM-DD. The exclusion starts at 00:00 UTC."""

    ends: NotRequired[str | None]
    """The day on which GKE may upgrade again. Required with `no_upgrades`. Default: when support for the cluster's version ends."""


class GkeMaintenanceArgs(TypedDict):
    """Times, in UTC, at which GKE may upgrade control plane and nodes. Bounds and defaults are those of Maintenance in the settings."""

    start_utc: NotRequired[str]
    """Start, as HH:MM in UTC. Default: 02:00."""

    hours: NotRequired[int]
    """Length in hours, 4 to 24. GKE does not count windows shorter than four hours. Default: 4."""

    days: NotRequired[list[str]]
    """Weekdays on which it starts, such as `sat`. Default: every day."""

    exclusions: NotRequired[list[GkeMaintenanceExclusionArgs]]
    """Periods in which GKE does not upgrade, at most 20. Default: none."""


@defaults(
    control_plane_cidr=GkeNetworkSettings.default("control_plane_cidr"),
    access=Access.PRIVATE.value,
    release_channel=GkeClusterSettings.default("release_channel").value,
    mode=GkeClusterSettings.default("mode").value,
    deletion_protection=True,
    max_pods_per_node=GkeNetworkSettings.default("max_pods_per_node"),
    managed_prometheus=Observability.default("managed_prometheus"),
)
class GkeClusterArgs(TypedDict):
    """Arguments of GkeCluster. Those that are not `Input` are plain, because they shape the cluster or are checked."""

    cluster: str
    """The cluster's name: up to 40 lower-case letters, digits and hyphens."""

    project: str
    """The id of the project."""

    region: str
    """The region of the control plane and the nodes, such as us-central1."""

    zones: list[str]
    """Zones of the region in which nodes may start, such as us-central1-a, at least one. Autopilot chooses its own."""

    network: pulumi.Input[str]
    """Id of the network."""

    subnetwork: pulumi.Input[str]
    """Id of the subnetwork of the nodes."""

    pods_range: pulumi.Input[str]
    """Name of the subnetwork's secondary range for pods."""

    services_range: pulumi.Input[str]
    """Name of the subnetwork's secondary range for Services."""

    control_plane_cidr: NotRequired[str]
    """IPv4 range of the control plane: a /28 that nothing else uses. Default: 172.16.0.0/28."""

    access: NotRequired[str]
    """Access to the API server. `private`: only from the ranges of the cluster's nodes and pods. `dns_iam`: by its DNS name from anywhere,
    protected by Google's IAM, and by no IP address. `public_cidrs`: by its IP address, from `cidrs`. Default: private."""

    cidrs: NotRequired[list[str]]
    """IPv4 ranges that may reach the API server. Only with `public_cidrs`. Default: none."""

    runner_cidrs: NotRequired[list[str]]
    """IPv4 ranges, besides the cluster's own, that may reach the private address from any region. Not with `dns_iam`. Default: none."""

    release_channel: NotRequired[str]
    """rapid, regular, stable or extended. Default: regular."""

    min_version: NotRequired[str | None]
    """Minimum version of the control plane: 1.35 for the newest 1.35 release, or one such as 1.35.0-gke.1171000. Default: the channel's."""

    mode: NotRequired[str]
    """`standard`: with declared node pools. `autopilot`: GKE manages all nodes. Default: standard."""

    deletion_protection: NotRequired[bool]
    """While this is true, the cluster cannot be destroyed. Default: True."""

    node_service_account: pulumi.Input[str]
    """Email address of the nodes' service account."""

    resource_labels: NotRequired[dict[str, str]]
    """Labels of the cluster and of its nodes' machines and disks, for billing. Default: none."""

    owner_labels: NotRequired[dict[str, str]]
    """Kubernetes labels of the system nodes that identify their owner in reports. Default: none."""

    max_pods_per_node: NotRequired[int]
    """Maximum pods per node: 8 to 256. Each node takes twice as many addresses. Autopilot chooses its own. Default: 110."""

    system_pool: NotRequired[GkeSystemPoolArgs | None]
    """The nodes for the controllers. Required with `standard`, not allowed with `autopilot`. Default: none."""

    auto_provisioning: NotRequired[GkeAutoProvisioningArgs | None]
    """Limits for node auto-provisioning (NAP). Only with `standard`. Default: GKE creates no node pools by itself."""

    multi_networking: NotRequired[bool]
    """If true, nodes and pods may have additional networks. Only with `standard`. Default: False."""

    managed_prometheus: NotRequired[bool]
    """If true, Google Cloud Managed Service for Prometheus collects metrics in the cluster, including those of GPUs and workloads.

    Autopilot always does. Default: True."""

    groups_domain: NotRequired[str | None]
    """The Google Workspace domain whose groups Kubernetes roles may be bound to, through its group gke-security-groups.

    Default: none, so Kubernetes knows no group. https://docs.cloud.google.com/kubernetes-engine/docs/how-to/google-groups-rbac"""

    maintenance: NotRequired[GkeMaintenanceArgs]
    """Times at which GKE may upgrade. Default: every day from 02:00 UTC, for 4 hours."""

    security: NotRequired[GkeSecurityArgs]
    """Security options beyond the cluster's defaults. Default: none."""


def boot_disk(pool: GkeSystemPoolArgs) -> BootDisk:
    """Return the type of the boot disks of the system pool's nodes."""
    if (written := pool.get("boot_disk_type")) is not None:
        return BootDisk(written)
    known = machines_of(Vendor.GCP).get(pool["machine"])
    return BootDisk.PD_BALANCED if known is None else known.boot_disk


def is_autopilot(args: GkeClusterArgs) -> bool:
    """Return whether GKE manages all nodes."""
    return args["mode"] == GkeMode.AUTOPILOT


LARGEST_CEILING = 1_000_000
"""Largest ceiling. A larger one would limit nothing, like 10**18 in Google's own examples."""

_SMALLEST_DISK_GIB = 10


def check_cluster(name: str, args: GkeClusterArgs) -> None:
    """Raise ValueError for values that GKE would reject, and for clusters that are insecure or can grow without limit."""
    where = f"GkeCluster {name}"
    check_name(f"{where}: cluster", args["cluster"], CLUSTER_NAME_LENGTH)
    check_project(f"{where}: project", args["project"])
    _check_zones(where, args)
    checked_options(where, GkeClusterSettings, args, "mode", "release_channel", "min_version", "groups_domain", "maintenance", "security")
    network = checked_options(where, GkeNetworkSettings, args, "control_plane_cidr", "max_pods_per_node", "runner_cidrs")
    if checked_options(where, ControlPlane, args).access is Access.DNS_IAM and network.runner_cidrs:
        problem = "is not allowed with access dns_iam, where the API server has no address"
        refuse(where, SettingsProblem("runner_cidrs", repr(args["runner_cidrs"]), problem, "leave it out, or use access private"))
    if is_autopilot(args):
        _check_autopilot(where, args)
    else:
        _check_standard(where, args)


def _check_zones(where: str, args: GkeClusterArgs) -> None:
    zones, region = args["zones"], args["region"]
    strangers = [zone for zone in zones if not re.fullmatch(re.escape(region) + "-[a-z]", zone)]
    if not zones or strangers or len(set(zones)) < len(zones):
        problem = f"must be zones of {region}, at least one and each once"
        refuse(where, SettingsProblem("zones", repr(zones), problem, f"use some, such as {region}-a"))


def _check_autopilot(where: str, args: GkeClusterArgs) -> None:
    for name, value in (("system_pool", args["system_pool"]), ("auto_provisioning", args["auto_provisioning"])):
        if value is not None:
            problem = "is not allowed with mode autopilot, where GKE manages all nodes"
            refuse(where, SettingsProblem(name, repr(value), problem, "leave it out, or use mode standard"))


def _check_standard(where: str, args: GkeClusterArgs) -> None:
    if args["system_pool"] is None:
        problem = "is required with mode standard, because controllers need nodes without GPUs"
        refuse(where, SettingsProblem("system_pool", "", problem, "add one, with a machine such as e2-standard-4"))
    _check_system_pool(where, filled(GkeSystemPoolArgs, args["system_pool"]), len(args["zones"]))
    if args["auto_provisioning"] is not None:
        _check_ceilings(where, args["auto_provisioning"])


def _check_system_pool(where: str, pool: GkeSystemPoolArgs, zones: int) -> None:
    if not pool["machine"]:
        refuse(where, SettingsProblem("system_pool.machine", "empty", "must be a machine type", "use one such as e2-standard-4"))
    options = checked_options(f"{where}: system_pool", GkeSystemPool, pool)
    if options.max_nodes < zones:
        problem = f"must be at least {zones}, because the pool starts with a node in each of the {zones} zones"
        refuse(where, SettingsProblem("system_pool.max_nodes", str(options.max_nodes), problem, "raise it, or use fewer zones"))
    if pool["disk_gib"] < _SMALLEST_DISK_GIB:
        limit = f"must be at least {_SMALLEST_DISK_GIB}"
        refuse(where, SettingsProblem("system_pool.disk_gib", str(pool["disk_gib"]), limit, "use 100 if in doubt"))
    if pool["boot_disk_type"] is not None:
        check_choice(f"{where}: system_pool.boot_disk_type", pool["boot_disk_type"], list(BootDisk))
    known = machines_of(Vendor.GCP).get(pool["machine"])
    if options.confidential_nodes is not None and known is not None:
        refuse_first(where, confidential_refusals("system_pool.confidential_nodes", options.confidential_nodes, known))


def _check_ceilings(where: str, auto_provisioning: GkeAutoProvisioningArgs) -> None:
    accelerators = auto_provisioning.get("accelerators", {})
    ceilings: dict[str, int | None] = {
        "max_vcpu": auto_provisioning.get("max_vcpu"),
        "max_memory_gib": auto_provisioning.get("max_memory_gib"),
        **{f"accelerators.{name}": gpus for name, gpus in accelerators.items()},
    }
    for name, ceiling in ceilings.items():
        if ceiling is None or not 1 <= ceiling <= LARGEST_CEILING:
            remedy = "set the maximum of the whole cluster, including its declared pools"
            refuse(where, SettingsProblem(f"auto_provisioning.{name}", str(ceiling), f"must be 1 to {LARGEST_CEILING:,}", remedy))
    for name in accelerators:
        if not re.fullmatch(r"[a-z][a-z0-9-]*-[a-z0-9-]*[a-z0-9]", name):
            problem = "is not GKE's name of a GPU"
            refuse(where, SettingsProblem("auto_provisioning.accelerators", repr(name), problem, "use a name such as nvidia-l4"))
