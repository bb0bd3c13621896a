"""A network for a GKE cluster: one subnetwork, and a way out for nodes that have no address of their own on the internet."""

from ipaddress import IPv4Network
from itertools import combinations
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import compute

from flexspot.capacity.settings.network import GkeNetworkSettings
from flexspot.components.cloud_names import NETWORK_NAME_LENGTH, check_name, check_project, fitted
from flexspot.components.shared_args import checked_options, publish

_MIN_PORTS = 64
_MAX_PORTS = 4096


class GkeNetworkArgs(TypedDict):
    """Arguments of GkeNetwork; all are plain because they shape the network."""

    project: str
    """The id of the project."""

    region: str
    """The region of the subnetwork and of the NAT, such as us-central1."""

    network: str
    """Name of the network, at most 63 characters; prefix of the names of its parts."""

    nodes_cidr: NotRequired[str]
    """IPv4 range of the nodes, one address per node. Default: 10.0.0.0/20."""

    pods_cidr: NotRequired[str]
    """IPv4 range of the pods, one block per node. Default: 10.64.0.0/14."""

    services_cidr: NotRequired[str]
    """IPv4 range of the Services. Default: 10.127.0.0/20."""

    pods_range: NotRequired[str]
    """Name of the secondary range that holds `pods_cidr`. Default: pods."""

    services_range: NotRequired[str]
    """Name of the secondary range that holds `services_cidr`. Default: services."""


class GkeNetwork(pulumi.ComponentResource):
    """A VPC network with one subnetwork for nodes, pods and Services, and Cloud NAT for nodes without public addresses.

    Google's own services are reached without NAT, by Private Google Access. Raises ValueError for a name that Google Cloud would refuse,
    for anything that is not an IPv4 range, and for overlapping ranges: they cannot be changed once the cluster exists.
    """

    network: pulumi.Output[str]
    """The network's id, `projects/PROJECT/global/networks/NAME`."""

    subnetwork: pulumi.Output[str]
    """The subnetwork's id, `projects/PROJECT/regions/REGION/subnetworks/NAME`."""

    pods_range: pulumi.Output[str]
    """Name of the secondary range of the pods; what uses it waits for the subnetwork."""

    services_range: pulumi.Output[str]
    """Name of the secondary range of the Services; what uses it waits for the subnetwork."""

    def __init__(self, name: str, args: GkeNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        net = _checked(name, args)
        fields = ("nodes_cidr", "pods_cidr", "services_cidr", "pods_range", "services_range")
        super().__init__("flexspot:index:GkeNetwork", name, {**args, **net.model_dump(include={*fields})}, opts)
        child = pulumi.ResourceOptions(parent=self)
        network = compute.Network(
            f"{name}-network",
            project=args["project"],
            name=args["network"],
            # One subnetwork of known ranges, not one in each region of the world.
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            opts=child,
        )
        subnetwork = compute.Subnetwork(
            f"{name}-subnetwork",
            project=args["project"],
            region=args["region"],
            name=fitted(f"{args['network']}-nodes", NETWORK_NAME_LENGTH),
            network=network.id,
            ip_cidr_range=net.nodes_cidr,
            private_ip_google_access=True,
            secondary_ip_ranges=[
                compute.SubnetworkSecondaryIpRangeArgs(range_name=net.pods_range, ip_cidr_range=net.pods_cidr),
                compute.SubnetworkSecondaryIpRangeArgs(range_name=net.services_range, ip_cidr_range=net.services_cidr),
            ],
            opts=child,
        )
        router = compute.Router(
            f"{name}-router",
            project=args["project"],
            region=args["region"],
            name=fitted(f"{args['network']}-router", NETWORK_NAME_LENGTH),
            network=network.id,
            opts=child,
        )
        compute.RouterNat(
            f"{name}-nat",
            project=args["project"],
            region=args["region"],
            name=fitted(f"{args['network']}-nat", NETWORK_NAME_LENGTH),
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            # This subnetwork alone: another of the network may then have a NAT of its own.
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[compute.RouterNatSubnetworkArgs(name=subnetwork.id, source_ip_ranges_to_nats=["ALL_IP_RANGES"])],
            # All pods of a node share its ports, and ports are counted for each remote address. A node that pulls a model from one place
            # over many connections grows to 4,096; giving each node that from the start would take an address for every 15 nodes.
            # Dynamic allocation excludes endpoint-independent mapping.
            enable_dynamic_port_allocation=True,
            min_ports_per_vm=_MIN_PORTS,
            max_ports_per_vm=_MAX_PORTS,
            enable_endpoint_independent_mapping=False,
            log_config=compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=child,
        )
        self.network = network.id
        self.subnetwork = subnetwork.id
        # The name is known before; who uses the output waits for the range itself.
        self.pods_range = subnetwork.name.apply(lambda _: net.pods_range)
        self.services_range = subnetwork.name.apply(lambda _: net.services_range)
        publish(self)


def _checked(name: str, args: GkeNetworkArgs) -> GkeNetworkSettings:
    """Return the ranges with their defaults. Raises ValueError for those that cannot be."""
    where = f"GkeNetwork {name}"
    check_project(f"{where}: project", args["project"])
    check_name(f"{where}: network", args["network"], NETWORK_NAME_LENGTH)
    net = checked_options(where, GkeNetworkSettings, args)
    if net.pods_range == net.services_range:
        raise ValueError(
            f"{where}: pods_range and services_range are both {net.pods_range!r}; a range's name is its own; rename one of them"
        )
    ranges = {field: IPv4Network(getattr(net, field)) for field in ("nodes_cidr", "pods_cidr", "services_cidr")}
    for (one, its), (other, others) in combinations(ranges.items(), 2):
        if its.overlaps(others):
            raise ValueError(f"{where}: {one} is {its}, which overlaps with {other}, {others}; ranges share no address; move one of them")
    return net
