"""What GkeCluster refuses, before anything is registered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from capacity.settings.cluster import GkeMode, Maintenance, ReleaseChannel
from capacity.settings.network import CONTROL_PLANE_PREFIX, WIDEST, Access, GkeNetwork, too_wide
from capacity.values.names import DOMAIN, TIME_OF_DAY
from components.gke.names import CLUSTER_NAME_LENGTH, check_name, check_project
from components.ipv4_range import ipv4_range

if TYPE_CHECKING:
    from components.gke.cluster_args import ClusterShape, GkeAutoProvisioningArgs, GkeMaintenanceArgs, SystemPool

LARGEST_CEILING = 1_000_000
"""Above it a ceiling holds nothing back; Google's own examples of 10**18 are none."""

_SMALLEST_DISK_GIB = 10


def check_cluster(name: str, shape: ClusterShape) -> None:
    """Raises ValueError for what GKE would refuse, and for what is neither safe nor finite."""
    where = f"GkeCluster {name}:"
    check_name(f"{where} cluster", shape.cluster, CLUSTER_NAME_LENGTH)
    check_project(f"{where} project", shape.project)
    _check_zones(where, shape)
    _check_choice(f"{where} mode", shape.mode, list(GkeMode))
    _check_choice(f"{where} access", shape.access, list(Access))
    _check_choice(f"{where} release_channel", shape.release_channel, list(ReleaseChannel))
    if ipv4_range(f"{where} control_plane_cidr", shape.control_plane_cidr).prefixlen != CONTROL_PLANE_PREFIX:
        raise ValueError(
            f"{where} control_plane_cidr is {shape.control_plane_cidr!r}; allowed is a /{CONTROL_PLANE_PREFIX}; GKE takes no other size"
        )
    _check_cidrs(where, shape)
    least, most = GkeNetwork.bounds("max_pods_per_node")
    if not least <= shape.max_pods_per_node <= most:
        raise ValueError(f"{where} max_pods_per_node is {shape.max_pods_per_node}; allowed are {least} to {most}; use 110 if in doubt")
    if shape.groups_domain is not None and not re.fullmatch(DOMAIN, shape.groups_domain):
        raise ValueError(
            f"{where} groups_domain is {shape.groups_domain!r}; allowed is a domain; write it as in an address, such as acme.com"
        )
    _check_maintenance(where, shape.maintenance)
    if shape.is_autopilot:
        _check_autopilot(where, shape)
    else:
        _check_standard(where, shape)


def _check_zones(where: str, shape: ClusterShape) -> None:
    strangers = [zone for zone in shape.zones if not re.fullmatch(re.escape(shape.region) + "-[a-z]", zone)]
    if not shape.zones or strangers or len(set(shape.zones)) < len(shape.zones):
        raise ValueError(
            f"{where} zones is {shape.zones!r}; allowed are zones of {shape.region}, each once and at least one; name some, such as "
            f"{shape.region}-a"
        )


def _check_choice(where: str, value: str, allowed: list[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{where} is {value!r}; allowed: {', '.join(allowed)}; choose one of them")


def _check_cidrs(where: str, shape: ClusterShape) -> None:
    ranges = [ipv4_range(f"{where} cidrs", written) for written in shape.cidrs]
    if shape.access != Access.PUBLIC_CIDRS:
        if ranges:
            raise ValueError(f"{where} cidrs is {shape.cidrs!r} with access {shape.access}; allowed with public_cidrs alone; leave it out")
        return
    if not ranges or too_wide(shape.cidrs):
        raise ValueError(
            f"{where} cidrs is {shape.cidrs!r} with access public_cidrs; allowed is at least one range and none wider than /{WIDEST}; "
            "name the ranges of your own network, or use dns_iam"
        )


def _check_maintenance(where: str, maintenance: GkeMaintenanceArgs) -> None:
    if not re.fullmatch(TIME_OF_DAY, maintenance["start_utc"]):
        raise ValueError(f"{where} maintenance.start_utc is {maintenance['start_utc']!r}; allowed is HH:MM in UTC; write 03:00")
    least, most = Maintenance.bounds("hours")
    if not least <= maintenance["hours"] <= most:
        allowed = f"allowed are {least} to {most}, because GKE counts no shorter window; use {least}"
        raise ValueError(f"{where} maintenance.hours is {maintenance['hours']}; {allowed}")


def _check_autopilot(where: str, shape: ClusterShape) -> None:
    for field, value in (("system_pool", shape.system_pool), ("auto_provisioning", shape.auto_provisioning)):
        if value is not None:
            raise ValueError(f"{where} {field} is {value!r} with mode autopilot; there all nodes are GKE's; leave it out, or use standard")


def _check_standard(where: str, shape: ClusterShape) -> None:
    if shape.nodes is None:
        raise ValueError(
            f"{where} system_pool is None with mode standard; controllers need nodes without GPUs; give one, such as e2-standard-4"
        )
    _check_system_pool(where, shape.nodes, len(shape.zones))
    if shape.auto_provisioning is not None:
        _check_ceilings(where, shape.auto_provisioning)


def _check_system_pool(where: str, pool: SystemPool, zones: int) -> None:
    if not pool.machine:
        raise ValueError(f"{where} system_pool.machine is empty; allowed is a machine type; name one, such as e2-standard-4")
    if not 1 <= pool.min_nodes <= pool.max_nodes:
        raise ValueError(
            f"{where} system_pool has min_nodes {pool.min_nodes} and max_nodes {pool.max_nodes}; allowed is 1 <= min_nodes <= max_nodes; "
            "raise max_nodes"
        )
    if pool.max_nodes < zones:
        raise ValueError(
            f"{where} system_pool.max_nodes is {pool.max_nodes} in {zones} zones; allowed is at least {zones}, because the pool starts "
            "with a node in each; raise it, or name fewer zones"
        )
    if pool.disk_gib < _SMALLEST_DISK_GIB:
        raise ValueError(f"{where} system_pool.disk_gib is {pool.disk_gib}; allowed is at least {_SMALLEST_DISK_GIB}; use 100 if in doubt")


def _check_ceilings(where: str, auto_provisioning: GkeAutoProvisioningArgs) -> None:
    accelerators = auto_provisioning.get("accelerators", {})
    ceilings: dict[str, int | None] = {
        "max_vcpu": auto_provisioning.get("max_vcpu"),
        "max_memory_gib": auto_provisioning.get("max_memory_gib"),
        **{f"accelerators.{name}": gpus for name, gpus in accelerators.items()},
    }
    for field, ceiling in ceilings.items():
        if ceiling is None or not 1 <= ceiling <= LARGEST_CEILING:
            raise ValueError(
                f"{where} auto_provisioning.{field} is {ceiling}; allowed are 1 to {LARGEST_CEILING:,}; set what the whole cluster may "
                "have at most, its declared pools included"
            )
    for name in accelerators:
        if not re.fullmatch(r"[a-z][a-z0-9-]*-[a-z0-9-]*[a-z0-9]", name):
            raise ValueError(f"{where} auto_provisioning.accelerators names {name!r}; allowed are GKE's names of GPUs; write nvidia-l4")
