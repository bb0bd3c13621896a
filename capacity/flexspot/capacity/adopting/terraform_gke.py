"""A GKE cluster and its node pools, from the state of Google's Terraform provider.

Attributes of google_container_cluster and google_container_node_pool are those of pulumi_gcp 10.2.0, which is generated from Google's
provider (2026-11-27). Modules such as those of GoogleCloudPlatform/cluster-toolkit create these resources.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.adopting.found import Block, Found, FoundPool, Known, machine_with_gpus
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_labels import CLASS_LABEL, COMPUTE_CLASS_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from flexspot.capacity.adopting.terraform_state import TerraformResource

CLUSTER, NODE_POOL = "google_container_cluster", "google_container_node_pool"
_DRIVERS: Final = {"LATEST": "latest", "INSTALLATION_DISABLED": "disabled"}
_SHARING: Final = {"TIME_SHARING": "time-sharing", "MPS": "mps"}
_CONFIDENTIAL: Final = {"SEV": "sev", "SEV_SNP": "sev_snp", "TDX": "tdx"}
_DEFAULT_DISK_GIB: Final = 100
"""GKE's default size of a boot disk (documentation of NodePool's node_config.disk_size_gb in pulumi_gcp 10.2.0)."""


def read_cluster(resource: TerraformResource, found: Found) -> None:
    """Read the cluster: its location, and its name as an existing cluster."""
    values = resource.values
    name, location, project = values.text("name"), values.text("location"), values.text("project")
    found.cloud = Platform.GKE
    if name is None or location is None:
        found.leave_out(resource.address, "has no name or no location", "apply it first, then write the state anew")
        return
    zonal = re.fullmatch(r"([a-z]+-[a-z]+\d+)-[a-z]", location)
    region = zonal[1] if zonal else location
    found.settings |= {"region": region} | ({} if project is None else {"project": project})
    found.settings["zones"] = sorted({*values.texts("node_locations"), *([location] if zonal else [])})
    cluster: dict[str, Any] = {"existing": name} | ({"zone": location} if zonal else {})
    if values.true("enable_autopilot"):
        cluster["mode"] = "autopilot"
    found.settings["cluster"] = cluster
    _access(values, found)
    found.tags |= values.words("resource_labels")
    _auto_provisioning(values.block("cluster_autoscaling"), resource.address, cluster, found)
    if groups := values.text("authenticator_groups_config", "security_group"):
        found.leave_out(
            f"{resource.address} authenticator_groups_config ({groups})",
            "is a setting of the cluster, which stays its owner's",
            "name groups in teams[].submitters and teams[].viewers; the cluster knows them",
        )
    if project is not None:
        identity = f"projects/{project}/locations/{location}/clusters/{name}"
        found.known.append(Known("gcp:container/cluster:Cluster", identity, name, resource.address))
    found.leave_out(
        resource.address,
        "version, release channel, network, security and maintenance stay as they are: the stack uses the cluster, and does not own it",
        "keep it in Terraform; to move it, import it by its id into a program of your own",
    )


def inline_pools(resource: TerraformResource, named: set[str]) -> list[TerraformResource]:
    """Return node pools that exist only inside the cluster's resource, as if they were separate resources.

    A cluster's resource also lists the pools of google_container_node_pool. `named` are their names.
    """
    of_cluster = resource.values
    place = {"cluster": of_cluster.text("name"), "location": of_cluster.text("location"), "project": of_cluster.text("project")}
    found: list[TerraformResource] = []
    for number, pool in enumerate(of_cluster.blocks("node_pool")):
        if (name := pool.text("name")) is not None and name not in named:
            address = f"{resource.address} node_pool[{number}]"
            found.append(replace(resource, address=address, type=NODE_POOL, values=Block({**pool.fields, **place})))
    return found


def _access(values: Block, found: Found) -> None:
    by_name = values.block("control_plane_endpoints_config", "dns_endpoint_config").true("allow_external_traffic")
    ranges = [each.text("cidr_block") for each in values.block("master_authorized_networks_config").blocks("cidr_blocks")]
    private = values.block("private_cluster_config").true("enable_private_endpoint")
    if by_name:
        found.settings["control_plane"] = {"access": "dns_iam"}
    elif private or not ranges:
        found.settings["control_plane"] = {"access": "private"}
        if not private:
            found.guess("control_plane", "the state has no authorized networks and no DNS endpoint; private is the narrowest")
    else:
        found.settings["control_plane"] = {"access": "public_cidrs", "cidrs": [each for each in ranges if each]}


def _auto_provisioning(block: Block, address: str, cluster: dict[str, Any], found: Found) -> None:
    if not block.true("enabled"):
        return
    limits = {each.text("resource_type") or "": each.number("maximum") for each in block.blocks("resource_limits")}
    vcpu, memory = limits.pop("cpu", None), limits.pop("memory", None)
    if vcpu is not None and memory is not None:
        cluster["other_work"] = {"max_vcpu": min(vcpu, 10_000), "max_memory_gib": min(memory, 40_000)}
        found.guess("cluster.other_work", f"{address} cluster_autoscaling: its limits bind all node pools together, GPU pools too")
    if gpus := sorted(each for each in limits if each):
        found.leave_out(
            f"{address} cluster_autoscaling.resource_limits ({', '.join(gpus)})",
            "lets GKE make GPU nodes of its own, on demand, beside the pools",
            "set these maximums to 0 in Terraform, or keep them knowing that no pool's ceiling counts them",
        )


def read_node_pool(resource: TerraformResource, found: Found) -> None:
    """Read a node pool. It becomes a pool of the stack if its machines have GPUs or TPUs, else a remark."""
    values, node = resource.values, resource.values.block("node_config")
    known = _known(resource)
    if known is not None:
        found.known.append(known)
    machine = node.text("machine_type")
    accelerator = node.block("guest_accelerator")
    if machine is None:
        found.leave_out(resource.address, "has no machine type in the state", "apply it first, then write the state anew")
        return
    catalogued = machines_of(Vendor.GCP).get(machine)
    if machine_with_gpus(Vendor.GCP, machine) is None:
        if catalogued is None and accelerator.number("count"):
            why = f"{_shown_machine(machine)} is not a machine of the catalog"
            found.leave_out(resource.address, why, "describe it under `machines`, and add a pool of it")
        else:
            why = "its machines have no GPUs: it is the cluster's own, for controllers and work without GPUs"
            found.leave_out(resource.address, why, "keep it in Terraform; Flexspot's controllers run there")
        return
    name, renamed = found.pool_name(values.text("name") or "pool", resource.address)
    pool = FoundPool(name, resource.address, [machine], capacity_type_of(values, node), known=None if renamed else known)
    if renamed:
        pool.guesses["name"] = renamed
    pool.zones = sorted(values.texts("node_locations"))
    _size(values, pool, found)
    _read_capacity(values, node, pool)
    _device(accelerator, pool, attached=len(catalogued.gpu.counts) > 1 if catalogued and catalogued.gpu else True)
    _node(values, node, pool)
    pool.labels = node.words("labels")
    taints = {each.text("key"): each.text("value") for each in node.blocks("taint")}
    if isinstance(only := taints.get(CLASS_LABEL) or taints.get(COMPUTE_CLASS_LABEL), str):
        pool.serves = [only]
    found.pools.append(pool)
    _report_unsupported(values, node, resource.address, taints, found)


def _shown_machine(machine: str) -> str:
    """Return a machine's name for a message, limited to the characters and length of such names."""
    return re.sub(r"[^\w.-]", "?", machine)[:60]


def _known(resource: TerraformResource) -> Known | None:
    values = resource.values
    name, cluster, location, project = (values.text(each) for each in ("name", "cluster", "location", "project"))
    if None in (name, cluster, location, project) or name is None or cluster is None:
        return None
    identity = f"{project}/{location}/{cluster.rpartition('/')[2]}/{name}"
    return Known("gcp:container/nodePool:NodePool", identity, name, resource.address)


def capacity_type_of(values: Block, node: Block) -> CapacityType:
    """Return the capacity type. Queued nodes also have flex_start set, so they are tested first."""
    if values.block("queued_provisioning").true("enabled"):
        return CapacityType.QUEUED
    if node.true("flex_start"):
        return CapacityType.FLEX_START
    if node.true("spot") or node.true("preemptible"):
        return CapacityType.SPOT
    reserved = node.text("reservation_affinity", "consume_reservation_type") in {"SPECIFIC_RESERVATION", "ANY_RESERVATION"}
    return CapacityType.RESERVED if reserved else CapacityType.ON_DEMAND


def _size(values: Block, pool: FoundPool, found: Found) -> None:
    scaling = values.block("autoscaling")
    zones = len(pool.zones) or len(found.settings.get("zones") or ()) or 1
    if not scaling:
        count = values.number("node_count") or values.number("initial_node_count") or 0
        pool.limits["max_nodes"] = max(1, count * zones)
        pool.limits["min_nodes"] = count * zones
        pool.guesses["max_nodes"] = f"no autoscaling: node_count {count} in each of {zones} zone(s) is minimum and maximum"
        return
    total, per_zone = scaling.number("total_max_node_count"), scaling.number("max_node_count")
    pool.limits["max_nodes"] = total or (per_zone or 0) * zones or 1
    least, least_per_zone = scaling.number("total_min_node_count"), scaling.number("min_node_count")
    pool.limits["min_nodes"] = least or (least_per_zone or 0) * zones
    if not total and per_zone:
        pool.guesses["max_nodes"] = f"max_node_count {per_zone} is per zone, times {zones} zone(s)"
    elif not total:
        pool.guesses["max_nodes"] = "the state has no maximum; raise it to what you are willing to pay for"


def _read_capacity(values: Block, node: Block, pool: FoundPool) -> None:
    affinity = node.block("reservation_affinity")
    if pool.capacity_type is CapacityType.RESERVED:
        named = affinity.texts("values")
        reservation = re.fullmatch(
            r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
            r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub_block>[^/]+))?)?",
            named[0] if named else "",
        )
        if affinity.text("consume_reservation_type") == "SPECIFIC_RESERVATION" and reservation:
            pool.options["reservation"] = {key: value for key in ("name", "project", "block", "sub_block") if (value := reservation[key])}
        else:
            pool.options["reservation"] = {"use": "any"}
            pool.guesses["reservation"] = "with ANY_RESERVATION GKE goes on to on-demand prices; a reserved pool of Flexspot does not"
    if pool.capacity_type is CapacityType.FLEX_START and (seconds := re.fullmatch(r"(\d{1,9})s", node.text("max_run_duration") or "")):
        pool.options["max_run_hours"] = max(1, int(seconds[1]) // SECONDS_OF_AN_HOUR)
    placement = values.block("placement_policy")
    if topology := placement.text("tpu_topology"):
        pool.options["tpu_topology"] = topology
    elif placement.text("type") == "COMPACT":
        pool.options["compact_placement"] = True


def _device(accelerator: Block, pool: FoundPool, *, attached: bool) -> None:
    count = accelerator.number("count")
    if attached and count:
        pool.options["gpus_per_node"] = count
    driver = accelerator.text("gpu_driver_installation_config", "gpu_driver_version")
    if driver in _DRIVERS:
        pool.options["gpu_driver"] = _DRIVERS[driver]
    sharing = accelerator.block("gpu_sharing_config")
    if (strategy := _SHARING.get(sharing.text("gpu_sharing_strategy") or "")) and (clients := sharing.number("max_shared_clients_per_gpu")):
        pool.options["gpu_sharing"] = {"strategy": strategy, "clients_per_gpu": clients}
    if partition := accelerator.text("gpu_partition_size"):
        pool.options["mig_partition"] = partition


def _node(values: Block, node: Block, pool: FoundPool) -> None:
    size = node.number("disk_size_gb") or _DEFAULT_DISK_GIB
    pool.options["boot_disk_gib"] = size
    disks = node.block("ephemeral_storage_local_ssd_config").number("local_ssd_count") or 0
    machine = machines_of(Vendor.GCP).get(pool.machines[0])
    if more := max(0, disks - (machine.bundled_local_ssd_disks if machine else 0)):
        pool.options["local_ssd_disks"] = more
    if key := node.text("boot_disk_kms_key"):
        pool.options["boot_disk_kms_key"] = key
    confidential = node.block("confidential_nodes")
    if confidential.true("enabled"):
        pool.options["confidential_nodes"] = _CONFIDENTIAL.get(confidential.text("confidential_instance_type") or "SEV", "sev")
    if images := [image for each in node.blocks("secondary_boot_disks") if (image := each.text("disk_image"))]:
        pool.options["secondary_boot_disk_images"] = images
    grace = node.block("kubelet_config").number("shutdown_grace_period_seconds")
    if grace and pool.capacity_type is CapacityType.SPOT:
        pool.options["shutdown_grace_seconds"] = grace
    surge = values.block("upgrade_settings")
    most, without = surge.number("max_surge") or 0, surge.number("max_unavailable") or 0
    lasting = pool.capacity_type not in {CapacityType.FLEX_START, CapacityType.QUEUED}
    if lasting and surge and (most, without) not in {(0, 0), (0, 1)}:
        pool.options["surge"] = {"max_surge": most, "max_unavailable": without}


def _report_unsupported(values: Block, node: Block, address: str, taints: dict[str | None, str | None], found: Found) -> None:
    """Record parts of a pool that have no equivalent in the settings."""
    found.leave_marks_out(address, taints, node.words("labels"))
    if (node.text("service_account") or "default") != "default":
        why = "Flexspot creates an account for nodes"
        found.leave_out(f"{address} node_config.service_account", why, "grant that account what yours has")
    for field in ("linux_node_config", "sandbox_config", "host_maintenance_policy"):
        if node.block(field):
            why = "there is no setting for it"
            found.leave_out(f"{address} node_config.{field}", why, "keep the pool in Terraform if its work needs it")
    if values.block("network_config").blocks("additional_node_network_configs"):
        why = "further networks of an existing cluster's pools are not mapped: `network: gpudirect` needs a cluster that the stack makes"
        found.leave_out(f"{address} network_config.additional_node_network_configs", why, "keep the pool in Terraform")
