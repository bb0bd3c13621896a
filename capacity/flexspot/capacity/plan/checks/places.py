"""Checks of network ranges, access to the API server, node images, and locations of buckets, keys and queues."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NEURON
from flexspot.capacity.catalog.machines import Architecture, Vendor
from flexspot.capacity.catalog.platform import partition_of
from flexspot.capacity.settings.network import Access, full_name
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.pools import NodeNetwork
from flexspot.capacity.settings.storage import LEASE_MARGIN_SECONDS
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.values.names import is_production

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.settings.network import NetworkName
    from flexspot.capacity.settings.platform import PlatformSettings


_GKE_RESERVED = 4
"""Addresses of a subnet that Google reserves: network, gateway, the last but one and broadcast."""

_AWS_RESERVED = 5
"""Addresses of a subnet that AWS reserves: the first four and the last."""

_SURGE = 1
"""Nodes that an upgrade temporarily adds to a pool."""


def ranges_do_not_overlap(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse ranges that overlap: traffic for a shared address would reach only one of them. Ranges must also be inside the VPC."""
    settings = resolved.settings
    if isinstance(settings, (GkeSettings, EksSettings)) and _ranges_are_unused(settings):
        return
    if isinstance(settings, GkeSettings):
        net = settings.network
        named = {name: getattr(net, name) for name in ("nodes_cidr", "pods_cidr", "services_cidr", "control_plane_cidr")}
        # Pods have addresses in all of these networks, so no two may overlap.
        if any(pool.network is NodeNetwork.GPUDIRECT for pool in settings.pools):
            named["gpudirect_cidr"] = net.gpudirect_cidr
    elif isinstance(settings, EksSettings):
        net = settings.network
        named = {f"private_cidrs.{n}": each for n, each in enumerate(net.private_cidrs[: len(settings.zones)])}
        named |= {f"public_cidrs.{n}": each for n, each in enumerate(net.public_cidrs[: len(settings.zones)])}
        named |= {f"control_plane_cidrs.{n}": each for n, each in enumerate(settings.control_plane_cidrs)}
        for name, written in named.items():
            if not IPv4Network(written).subnet_of(IPv4Network(net.vpc_cidr)):
                problem = f"is outside vpc_cidr {net.vpc_cidr}"
                yield SettingsProblem(f"network.{name}", written, problem, "choose a range inside it", "range-outside-vpc")
        # A range that overlaps the VPC's also overlaps ranges inside it. Only the former is reported.
        if IPv4Network(net.services_cidr).overlaps(IPv4Network(net.vpc_cidr)):
            problem = f"overlaps vpc_cidr {net.vpc_cidr}"
            yield SettingsProblem("network.services_cidr", net.services_cidr, problem, "choose another range", "ranges-overlap")
    else:
        return
    for (name, written), (other, taken) in combinations(named.items(), 2):
        if IPv4Network(written).overlaps(IPv4Network(taken)):
            yield SettingsProblem(f"network.{other}", taken, f"overlaps {name} {written}", "choose another range", "ranges-overlap")


def _network_exists(settings: GkeSettings | EksSettings) -> bool:
    """Return whether the network exists already. Its ranges are then not the stack's."""
    if isinstance(settings, GkeSettings):
        return settings.network.existing_network is not None
    return settings.network.existing_vpc is not None


def _ranges_are_unused(settings: GkeSettings | EksSettings) -> bool:
    """Return whether the settings' ranges are not those of the nodes' network."""
    return settings.cluster.existing is not None or _network_exists(settings)


def gke_ranges_have_room(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse GKE ranges that are too small for the plan's nodes.

    Each node takes an address of the node range and a block of the pod range: twice its pods, rounded up to a power of two.
    """
    if _ranges_are_unused(settings):
        return
    net = settings.network
    nodes = _gke_nodes(resolved)
    room = IPv4Network(net.nodes_cidr).num_addresses - _GKE_RESERVED
    if nodes > room:
        problem = f"has room for {room} nodes, but the plan can have {nodes}"
        yield SettingsProblem("network.nodes_cidr", net.nodes_cidr, problem, _at_least(nodes + _GKE_RESERVED), "range-too-small")
    block = 1 << (2 * net.max_pods_per_node - 1).bit_length()
    held = IPv4Network(net.pods_cidr).num_addresses // block
    if nodes > held:
        problem = f"has blocks of {block} addresses for {held} nodes, but the plan can have {nodes}"
        remedy = f"{_at_least(nodes * block)}, or lower max_pods_per_node"
        yield SettingsProblem("network.pods_cidr", net.pods_cidr, problem, remedy, "range-too-small")


def _gke_nodes(resolved: ResolvedSettings) -> int:
    assert isinstance(resolved.settings, GkeSettings)  # noqa: S101 -- tells the type checker what was checked
    pools = sum(pool.max_nodes + _SURGE for pool in resolved.pools.values())
    # The system pool's max_nodes counts the nodes of all zones.
    return pools + resolved.settings.cluster.system_pool.max_nodes + _SURGE


def existing_vpcs_have_a_subnet_in_each_zone(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse fewer existing subnets than zones. They are listed in the order of the zones."""
    if not _network_exists(settings):
        return
    subnets, zones = settings.network.existing_private_subnets, settings.zones
    if len(subnets) < len(zones):
        problem = f"has subnets for only {len(subnets)} of {len(zones)} zones"
        path = "network.existing_private_subnets"
        yield SettingsProblem(path, ", ".join(subnets), problem, "name one for each zone", "range-too-small")


def eks_ranges_have_room(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse EKS ranges that are too small for the plan's nodes and pods, each of which takes an address of a private range.

    Every zone needs a range, and the pools of each zone must fit.
    """
    net, zones = settings.network, settings.zones
    if _ranges_are_unused(settings):
        return
    for name in ("private_cidrs", "public_cidrs"):
        ranges: tuple[str, ...] = getattr(net, name)
        problem = f"has {len(ranges)} range{'' if len(ranges) == 1 else 's'} for {len(zones)} zones"
        if len(ranges) < len(zones):
            yield SettingsProblem(f"network.{name}", ", ".join(ranges), problem, "give one for each zone", "range-too-small")
            return
        # A range belongs to the zone at the same index. An extra one may shift the others, and AWS cannot change a subnet's range.
        if len(ranges) > len(zones) and name in net.model_fields_set:
            remedy = "leave out the range of the zone that does not exist"
            yield SettingsProblem(f"network.{name}", ", ".join(ranges), problem, remedy, "range-without-zone")
    each_node = 1 + net.pods_per_node
    nodes = sum(pool.max_nodes for pool in resolved.pools.values()) + settings.cluster.system_pool.max_nodes
    rooms = {zone: IPv4Network(written).num_addresses - _AWS_RESERVED for zone, written in zip(zones, net.private_cidrs, strict=False)}
    room = sum(rooms.values())
    if nodes * each_node > room:
        problem = f"have room for {room} addresses, but the plan's {nodes} nodes can take {nodes * each_node} ({each_node} each)"
        written = ", ".join(net.private_cidrs[: len(zones)])
        remedy = "use larger ranges, or a lower pods_per_node"
        yield SettingsProblem("network.private_cidrs", written, problem, remedy, "range-too-small")
    for pool in resolved.pools.values():
        inside = sum(rooms.get(zone, 0) for zone in pool.settings.zones)
        if pool.settings.zones and pool.max_nodes * each_node > inside:
            problem = f"have room for {inside} addresses, but the pool's {pool.max_nodes} nodes can take {pool.max_nodes * each_node}"
            yield SettingsProblem(
                f"{pool.path}.zones", ", ".join(pool.settings.zones), problem, "use more zones or ranges", "range-too-small"
            )


def access_fits_the_cloud(settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse `dns_iam` on EKS. The DNS endpoint behind IAM is GKE's."""
    if settings.control_plane.access is Access.DNS_IAM:
        allowed = f"allowed: {Access.PRIVATE}, {Access.PUBLIC_CIDRS}"
        yield SettingsProblem("control_plane.access", "'dns_iam'", "is not supported on EKS", allowed, "access-of-another-cloud")


def runners_have_an_address_to_reach(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse runner ranges with `dns_iam`.

    IAM decides about access by the DNS name, and the API server has no address that ranges could restrict.
    """
    if settings.network.runner_cidrs and settings.access is Access.DNS_IAM:
        problem = f"restricts access to an address, but with {Access.DNS_IAM} the API server has none"
        remedy = f"remove it, or choose control_plane.access {Access.PRIVATE}"
        yield SettingsProblem("network.runner_cidrs", ", ".join(settings.network.runner_cidrs), problem, remedy, "runners-without-address")


def a_runner_reaches_the_api_server(settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """Warn if no runner can reach the API server of a new network.

    `up` creates the objects inside the cluster through its API server. A network that the same `up` creates has no runner yet, nor a
    connection to other networks, so runner ranges help only later.
    """
    if settings.access is not Access.PRIVATE:
        return
    if settings.cluster.existing is None and not _network_exists(settings):
        problem = "allows access only from the network that this stack creates: the first `up` stops at the first object inside the cluster"
        if isinstance(settings, GkeSettings):
            remedy = f"use {Access.DNS_IAM}, where Google's IAM decides about access, or an existing network with a runner in it"
        else:
            remedy = f"use {Access.PUBLIC_CIDRS} with a runner's range, use an existing VPC with a runner, or run `up` again from inside"
        yield SettingsProblem("control_plane.access", f"'{Access.PRIVATE}'", problem, remedy, "nobody-in-the-network", refused=False)


def _at_least(addresses: int) -> str:
    return f"use /{32 - (addresses - 1).bit_length()} or larger"


def system_nodes_reach_every_zone(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse fewer system nodes than zones. A regional node pool of GKE starts with a node in each zone."""
    if isinstance(resolved.settings, GkeSettings) and resolved.settings.cluster.existing is None and not resolved.autopilot:
        most, zones = resolved.settings.cluster.system_pool.max_nodes, len(set(resolved.zones))
        if most < zones:
            problem = f"is below the number of zones ({zones}), and GKE starts a node in each"
            remedy = f"raise it to {zones} or more, or name fewer zones"
            yield SettingsProblem("cluster.system_pool.max_nodes", str(most), problem, remedy, "system-pool-below-zones")


def the_boundary_is_of_the_account(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a permissions boundary of another account.

    It must be of the role's account or of AWS (IAM user guide, "Permissions boundaries").
    """
    settings = resolved.settings
    boundary = settings.iam.permissions_boundary if isinstance(settings, EksSettings) else None
    if boundary is not None and isinstance(settings, EksSettings) and boundary.split(":")[4] not in {settings.account, "aws"}:
        problem = f"is a policy of another account than {settings.account}, and IAM does not accept it for roles of that account"
        yield SettingsProblem("iam.permissions_boundary", boundary, problem, "use a policy of this account", "boundary-of-another-account")


def images_are_pinned(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse `@latest` in production, and warn elsewhere: every release of an AMI would be drift, and drift replaces nodes."""
    if settings.cluster.has_own_image and settings.cluster.image.endswith("@latest"):
        remedy = f"pin a release; {_images_for(resolved, settings)}"
        refused = is_production(settings.environment)
        yield SettingsProblem(
            "cluster.ami", repr(settings.cluster.ami), "replaces nodes at every release", remedy, "unpinned-ami", refused=refused
        )


def images_are_of_the_version(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse an image release without images for the cluster's version: Karpenter would launch no node.

    "failed to discover any AMIs for alias" (pkg/providers/amifamily/al2023.go of github.com/aws/karpenter-provider-aws). The version of an
    existing cluster is not known here.
    """
    if not settings.cluster.has_own_image or settings.cluster.image.endswith("@latest"):
        return
    ami, version = settings.cluster.image, settings.cluster.version
    has = resolved.images.versions_of(ami)
    remedy = _images_for(resolved, settings)
    if not has:
        problem = "is not a known release, and no node would launch without its images"
        yield SettingsProblem("cluster.ami", repr(ami), problem, remedy, "ami-not-known")
    elif settings.cluster.existing is None and version not in has:
        problem = f"has images for Kubernetes {has[0]} to {has[-1]} but none for {version}, so no node would launch"
        yield SettingsProblem("cluster.ami", repr(ami), problem, remedy, "ami-of-another-version")


def neuron_nodes_have_an_image(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse an image release without an image for Neuron devices, if pools have them. Warn if that is not known.

    Karpenter uses only images with Neuron's driver for such nodes, and reports nothing if there are none: Variant.Requirements of
    pkg/providers/amifamily/types.go (github.com/aws/karpenter-provider-aws, v1.14.1).
    """
    settings, ami = resolved.settings, ""
    pools = [name for name, pool in resolved.pools.items() if pool.gpu.accelerator is NEURON]
    if isinstance(settings, EksSettings) and settings.cluster.has_own_image:
        ami = settings.cluster.image
    if not isinstance(settings, EksSettings) or not pools or settings.cluster.existing is not None or not resolved.images.versions_of(ami):
        return
    version = settings.cluster.version
    has = resolved.images.has_neuron_image(ami, version)
    if has is False:
        problem = f"has no image with Neuron's driver for Kubernetes {version}, so no node of {', '.join(pools)} would launch"
        yield SettingsProblem("cluster.ami", repr(ami), problem, _images_for(resolved, settings), "ami-without-neuron")
    elif has is None:
        problem = f"may have no image with Neuron's driver for Kubernetes {version}, which nodes of {', '.join(pools)} need"
        remedy = "run `flexspot images refresh`, which asks AWS"
        yield SettingsProblem("cluster.ami", repr(ami), problem, remedy, "ami-neuron-not-read", refused=False)


def the_efa_plugins_image_can_be_pulled(resolved: ResolvedSettings, settings: EksSettings) -> Iterator[SettingsProblem]:
    """Refuse the EFA plugin's default image in other partitions. Nodes can pull it only in partition aws, where one region has it."""
    if resolved.auto_mode:
        return
    used, written, path = any(pool.efa for pool in settings.pools), settings.controllers.efa_device_plugin.image, _EFA_IMAGE
    partition = partition_of(settings.region)
    if used and written is None and partition != "aws":
        problem = f"is missing: the chart's default image is in partition aws, but {settings.region} is in {partition}"
        remedy = "copy the image to a registry in that partition, and name the copy"
        yield SettingsProblem(path, "", problem, remedy, "efa-image-of-another-partition")
    if written is not None and not used:
        yield SettingsProblem(path, written, "is for a plugin that no pool needs", "leave it out", "efa-image-not-used", refused=False)


_EFA_IMAGE = "controllers.efa_device_plugin.image"


def _images_for(resolved: ResolvedSettings, settings: EksSettings) -> str:
    """Describe the releases with images for the cluster's version, and how to find newer ones."""
    family, version = settings.cluster.image.partition("@")[0], settings.cluster.version
    newer = "`flexspot images refresh` asks AWS for others"
    if fitting := resolved.images.with_images_for(family, version):
        return f"releases for Kubernetes {version}: {fitting[0]} to {fitting[-1]} (the newest known); {newer}"
    return f"no release with images for Kubernetes {version} is known, only for {', '.join(resolved.images.versions(family))}; {newer}"


def the_system_machine_exists(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a machine for the system nodes that is unknown, has GPUs, or does not suit the controllers."""
    cluster = getattr(resolved.settings, "cluster", None)
    if cluster is None or cluster.existing or resolved.autopilot:
        return
    name: str = cluster.system_pool.machine
    machine = resolved.machines.get(name)
    plain = [each.name for each in resolved.machines.values() if each.gpu is None]
    path = "cluster.system_pool.machine"
    if machine is None:
        yield SettingsProblem(path, repr(name), "is not a machine of the catalog", nearest(name, plain), "unknown-machine")
    elif machine.gpu is not None:
        yield SettingsProblem(path, repr(name), "has GPUs, which controllers do not use", nearest(name, plain), "system-pool-with-gpu")
    elif machine.architecture is Architecture.ARM64:
        remedy = nearest(name, [each for each in plain if resolved.machines[each].architecture is Architecture.AMD64])
        yield SettingsProblem(path, repr(name), "is arm64, but the system nodes' image is for x86_64", remedy, "system-pool-with-arm64")
    elif resolved.words.catalog is Vendor.AWS and not machine.max_pods:
        remedy = "add max_pods to its description"
        problem = "is described without max_pods, which decides how much memory a node reserves"
        yield SettingsProblem(path, repr(name), problem, remedy, "system-machine-without-max-pods")


def buckets_are_in_the_region(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse buckets outside the region. Each checkpoint would cost egress, and time that an interrupted Spot node does not have."""
    location = getattr(getattr(resolved.settings, "storage", None), "location", None)
    if location is not None and location.lower() != resolved.region:
        problem = f"is not the cluster's region {resolved.region}"
        yield SettingsProblem("storage.location", repr(location), problem, f"allowed: {resolved.region}", "bucket-outside-region")


def keys_are_in_the_region(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse keys of other regions, as Cloud KMS and AWS KMS do.

    Google's pages require the same for Secrets and disks, but an example of its API has a key in `global`. Such a key causes a warning.
    """
    for path, key, what in _keys(resolved.settings):
        place = key.split(":")[3] if key.startswith("arn:") else key.split("/")[3]
        if place != resolved.region:
            wide = "-" not in place and not path.startswith("storage.")
            problem = f"is a key in {place}, but {what} are in {resolved.region}"
            yield SettingsProblem(path, repr(key), problem, f"use a key in {resolved.region}", "key-outside-region", refused=not wide)


def _keys(settings: PlatformSettings) -> Iterator[tuple[str, str, str]]:
    """Yield each key of the settings with its path and what it encrypts."""
    storage: str | None = getattr(getattr(settings, "storage", None), "encryption_key", None)
    named = [("storage.encryption_key", storage, "the buckets")]
    if isinstance(settings, GkeSettings):
        security = settings.cluster.security
        named += [
            ("cluster.security.secrets_kms_key", security.secrets_kms_key, "the cluster's Secrets"),
            ("cluster.security.boot_disk_kms_key", security.boot_disk_kms_key, "the nodes' disks"),
            *((f"pools.{n}.boot_disk_kms_key", each.boot_disk_kms_key, "the nodes' disks") for n, each in enumerate(settings.pools)),
        ]
    yield from ((path, key, what) for path, key, what in named if key is not None)


def leases_are_longer_than_the_grace(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse leases that are shorter than the grace period.

    An item whose lease ends while an interrupted worker still writes is delivered again.
    """
    least = max((each.grace_seconds for each in resolved.classes.values()), default=0) + LEASE_MARGIN_SECONDS
    for number, team in enumerate(resolved.settings.teams):
        if team.work_queue is not None and team.work_queue.lease_seconds < least:
            path = f"teams.{number}.work_queue.lease_seconds"
            problem = f"must exceed the longest grace period of a class by {LEASE_MARGIN_SECONDS} seconds"
            remedy = f"allowed: {least} to 600"
            yield SettingsProblem(path, str(team.work_queue.lease_seconds), problem, remedy, "lease-within-grace")


def names_are_not_reserved_by_google(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse names with google in them. Buckets and work queues are named after project and environment, and Google reserves such names.

    https://docs.cloud.google.com/storage/docs/buckets#naming, https://docs.cloud.google.com/pubsub/docs/pubsub-basics#resource_names
    """
    has_queues = any(team.work_queue is not None for team in settings.teams)
    for path, name, begins in (("project", settings.project, True), ("environment", settings.environment, has_queues)):
        if "google" in name or (begins and name.startswith("goog")):
            problem = (
                "becomes part of the names of buckets and work queues, and Google rejects names that contain google or start with goog"
            )
            yield SettingsProblem(path, repr(name), problem, "choose a name without it", "name-with-google")


def the_network_and_its_subnetwork_belong_together(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse an existing network and subnetwork whose projects or regions do not match each other or the stack."""
    network, subnetwork = settings.network.existing_network, settings.network.existing_subnetwork
    if network is None or subnetwork is None:
        return
    yield from _form_of_network("network.existing_network", network, "projects/PROJECT/global/networks/NAME", of_region=False)
    yield from _form_of_network(
        "network.existing_subnetwork", subnetwork, f"projects/PROJECT/regions/{settings.region}/subnetworks/NAME", of_region=True
    )
    of_network, of_subnetwork = full_name(network), full_name(subnetwork)
    if of_subnetwork is not None and of_subnetwork.region not in {None, settings.region}:
        problem = f"is in region {of_subnetwork.region}, but GKE accepts only a subnetwork in the cluster's region, {settings.region}"
        remedy = f"name a subnetwork in {settings.region}, or set region to {of_subnetwork.region}"
        yield SettingsProblem("network.existing_subnetwork", repr(subnetwork), problem, remedy, "subnetwork-of-another-region")
    yield from _projects(settings.project, of_network, of_subnetwork)


def _form_of_network(path: str, written: str, form: str, *, of_region: bool) -> Iterator[SettingsProblem]:
    found = full_name(written)
    if "/" in written and (found is None or (found.region is None) is of_region):
        what = "subnetwork" if of_region else "network"
        yield SettingsProblem(
            path, repr(written), f"is not the full name of a {what}", f"allowed: a short name, or {form}", "not-a-network-name"
        )


def _projects(own: str, network: NetworkName | None, subnetwork: NetworkName | None) -> Iterator[SettingsProblem]:
    """Yield a problem if network and subnetwork are in different projects. A short name is in the stack's own project."""
    of_network, of_subnetwork = (each.project if each else own for each in (network, subnetwork))
    if of_network == of_subnetwork:
        return
    if network is None:
        path, problem = "network.existing_network", f"is a short name in project {own}, but the subnetwork is in {of_subnetwork}"
        remedy = f"write projects/{of_subnetwork}/global/networks/NAME: a network of the subnetwork's host project"
    elif subnetwork is None:
        path, problem = "network.existing_subnetwork", f"is a short name in project {own}, but the network is in {of_network}"
        remedy = f"write projects/{of_network}/regions/REGION/subnetworks/NAME: a subnetwork of that network"
    else:
        path, problem = "network.existing_subnetwork", f"is in project {of_subnetwork}, but its network is in {of_network}"
        remedy = "name both in one project: the host project of the Shared VPC"
    yield SettingsProblem(path, "", problem, remedy, "subnetwork-of-another-project")
