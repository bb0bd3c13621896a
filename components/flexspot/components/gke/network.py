"""Networks of a GKE cluster: its VPC with Cloud NAT, and networks by which GPUs of several nodes communicate with RDMA."""

import re
from ipaddress import IPv4Network
from itertools import combinations
from typing import NotRequired, TypedDict

import pulumi
from pulumi_gcp import compute
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import DaemonSet, DaemonSetSpecArgs
from pulumi_kubernetes.core.v1 import (
    AffinityArgs,
    ContainerArgs,
    HostPathVolumeSourceArgs,
    NodeAffinityArgs,
    NodeSelectorArgs,
    NodeSelectorRequirementArgs,
    NodeSelectorTermArgs,
    PodSpecArgs,
    PodTemplateSpecArgs,
    ResourceRequirementsArgs,
    SecurityContextArgs,
    TolerationArgs,
    VolumeArgs,
    VolumeMountArgs,
)
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

from flexspot.capacity.catalog.gke_accelerators import GIB_FOLDER, GVNIC_NETWORK, HOST_FOLDER, gpudirect, rdma_network_names
from flexspot.capacity.catalog.node_labels import GKE_ACCELERATOR_LABEL
from flexspot.capacity.settings.network import GPUDIRECT_PREFIXES, GkeNetworkSettings, gpudirect_ranges
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.components.cloud_names import NETWORK_NAME_LENGTH, check_name, check_project, fitted
from flexspot.components.shared_args import checked_options, ipv4_range, publish, refuse

_MIN_PORTS = 64
_MAX_PORTS = 4096


class GkeNetworkArgs(TypedDict):
    """Arguments of GkeNetwork. All are plain because they shape the network."""

    project: str
    """The id of the project."""

    region: str
    """The region of the subnetwork and of the NAT, such as us-central1."""

    network: str
    """Name of the network, at most 63 characters. The names of its parts begin with it."""

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

    Google's own services are reached without NAT, by Private Google Access. Raises ValueError for a name that Google Cloud would reject,
    for invalid IPv4 ranges, and for overlapping ranges, which cannot be changed once the cluster exists.
    """

    network: pulumi.Output[str]
    """The network's id, `projects/PROJECT/global/networks/NAME`."""

    subnetwork: pulumi.Output[str]
    """The subnetwork's id, `projects/PROJECT/regions/REGION/subnetworks/NAME`."""

    pods_range: pulumi.Output[str]
    """Name of the secondary range of the pods. Resources that use it wait for the subnetwork."""

    services_range: pulumi.Output[str]
    """Name of the secondary range of the Services. Resources that use it wait for the subnetwork."""

    def __init__(self, name: str, args: GkeNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        net = _checked(name, args)
        fields = ("nodes_cidr", "pods_cidr", "services_cidr", "pods_range", "services_range")
        super().__init__("flexspot:index:GkeNetwork", name, {**args, **net.model_dump(include={*fields})}, opts)
        child = pulumi.ResourceOptions(parent=self)
        network = compute.Network(
            f"{name}-network",
            project=args["project"],
            name=args["network"],
            # One subnetwork with known ranges, not one in each region of the world.
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
            # Only this subnetwork, so that another one of the network can have a separate NAT.
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[compute.RouterNatSubnetworkArgs(name=subnetwork.id, source_ip_ranges_to_nats=["ALL_IP_RANGES"])],
            # All pods of a node share its ports, and ports are counted for each remote address. A node that pulls a model from one place
            # over many connections grows to 4,096. Giving each node that many from the start would take an address for every 15 nodes.
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
        # The name is known earlier. Resources that use the output wait for the range itself.
        self.pods_range = subnetwork.name.apply(lambda _: net.pods_range)
        self.services_range = subnetwork.name.apply(lambda _: net.services_range)
        publish(self)


def _checked(name: str, args: GkeNetworkArgs) -> GkeNetworkSettings:
    """Return the ranges with their defaults. Raises ValueError for invalid ones."""
    where = f"GkeNetwork {name}"
    check_project(f"{where}: project", args["project"])
    check_name(f"{where}: network", args["network"], NETWORK_NAME_LENGTH)
    net = checked_options(where, GkeNetworkSettings, args)
    if net.pods_range == net.services_range:
        refuse(where, SettingsProblem("pods_range", repr(net.pods_range), "services_range has the same name", "rename one of them"))
    ranges = {field: IPv4Network(getattr(net, field)) for field in ("nodes_cidr", "pods_cidr", "services_cidr")}
    for (one, its), (other, others) in combinations(ranges.items(), 2):
        if its.overlaps(others):
            refuse(where, SettingsProblem(one, str(its), f"overlaps with {other} ({others})", "move one of them"))
    return net


_MOST_RDMA_NETWORKS = 15
"""Limit of RDMA networks: a sixteenth of the range is for the ordinary network."""


class GkeRdmaNetworksArgs(TypedDict):
    """Arguments of GkeRdmaNetworks. All are plain because they shape the networks."""

    project: str
    """The id of the project."""

    region: str
    """The region of the cluster, such as us-central1."""

    zone: str
    """Zone of the nodes, such as us-central1-b: an RDMA network belongs to one zone."""

    network: str
    """Prefix of the networks' names, such as the name of the cluster's network."""

    rdma_networks: int
    """RDMA network cards per node, 1 to 15. Each has a separate subnetwork."""

    cidr: NotRequired[str]
    """IPv4 range for all of them, /8 to /20. Each gets a sixteenth. Default: 192.168.0.0/16."""


class GkeRdmaNetworks(pulumi.ComponentResource):
    """The two additional networks of nodes with GPUDirect: an ordinary one for their second card, and an RDMA network with one subnetwork
    per card.

    The RDMA network uses Google's profile ZONE-vpc-roce, which sets its rules: it accepts no other cards, and no firewall rules. All
    networks of a project count against its quota (15 by default). Raises ValueError for names and ranges that Google Cloud would reject.
    This component has not been deployed to a live project.
    """

    networks: pulumi.Output[list[str]]
    """Names of the networks of a node's additional cards, in their order: the ordinary one first."""

    subnetworks: pulumi.Output[list[str]]
    """Names of their subnetworks, in the same order."""

    def __init__(self, name: str, args: GkeRdmaNetworksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        cidr = args.get("cidr", GkeNetworkSettings.default("gpudirect_cidr"))
        _check_rdma(name, args, cidr)
        super().__init__("flexspot:index:GkeRdmaNetworks", name, {**args, "cidr": cidr}, opts)
        child = pulumi.ResourceOptions(parent=self)
        first, *others = gpudirect_ranges(cidr)
        ordinary = _network(f"{name}-gvnic", args, "gvnic", None, child)
        fast = _network(f"{name}-rdma", args, "rdma", f"projects/{args['project']}/global/networkProfiles/{args['zone']}-vpc-roce", child)
        subnetworks = [_subnetwork(f"{name}-gvnic", args, "gvnic", ordinary, first, child)]
        for number, cidr_of_card in enumerate(others[: args["rdma_networks"]]):
            subnetworks.append(_subnetwork(f"{name}-rdma-{number}", args, f"rdma-{number}", fast, cidr_of_card, child))
        self.networks = pulumi.Output.all(ordinary.name, *[fast.name] * args["rdma_networks"])
        self.subnetworks = pulumi.Output.all(*(each.name for each in subnetworks))
        publish(self)


def _network(name: str, args: GkeRdmaNetworksArgs, part: str, profile: str | None, opts: pulumi.ResourceOptions) -> compute.Network:
    return compute.Network(
        f"{name}-network",
        project=args["project"],
        name=fitted(f"{args['network']}-{part}", NETWORK_NAME_LENGTH),
        auto_create_subnetworks=False,
        network_profile=profile,
        opts=opts,
    )


def _subnetwork(  # noqa: PLR0913, PLR0917 -- what a subnetwork is made of
    name: str, args: GkeRdmaNetworksArgs, part: str, network: compute.Network, cidr: str, opts: pulumi.ResourceOptions
) -> compute.Subnetwork:
    return compute.Subnetwork(
        f"{name}-subnetwork",
        project=args["project"],
        region=args["region"],
        name=fitted(f"{args['network']}-{part}", NETWORK_NAME_LENGTH),
        network=network.id,
        ip_cidr_range=cidr,
        opts=opts,
    )


def _check_rdma(name: str, args: GkeRdmaNetworksArgs, cidr: str) -> None:
    where, region = f"GkeRdmaNetworks {name}", args["region"]
    check_project(f"{where}: project", args["project"])
    check_name(f"{where}: network", args["network"], NETWORK_NAME_LENGTH)
    if not re.fullmatch(re.escape(region) + "-[a-z]", args["zone"]):
        refuse(where, SettingsProblem("zone", repr(args["zone"]), f"is not a zone of {region}", f"use one such as {region}-a"))
    if not 1 <= args["rdma_networks"] <= _MOST_RDMA_NETWORKS:
        refuse(where, SettingsProblem("rdma_networks", str(args["rdma_networks"]), f"must be 1 to {_MOST_RDMA_NETWORKS}", ""))
    written = ipv4_range(f"{where}: cidr", cidr)
    if written.prefixlen not in GPUDIRECT_PREFIXES:
        allowed = f"/{GPUDIRECT_PREFIXES[0]} to /{GPUDIRECT_PREFIXES[-1]}"
        refuse(where, SettingsProblem("cidr", repr(cidr), f"must be {allowed}, because each network gets a sixteenth of it", ""))


class GkeRdmaNodesArgs(TypedDict):
    """Arguments of GkeRdmaNodes."""

    networks: pulumi.Input[list[str]]
    """Names of the networks of a node's additional cards, the ordinary one first, as GkeRdmaNetworks returns them."""

    subnetworks: pulumi.Input[list[str]]
    """Names of their subnetworks, in the same order."""

    rdma_networks: int
    """RDMA network cards per node."""

    accelerators: list[str]
    """GKE's names for the GPUs of the nodes with such cards, such as nvidia-h200-141gb."""

    labels: dict[str, str]
    """Labels of every object."""


INSTALLER = "nccl-rdma-installer"
"""Google's name for it, of which a cluster has only one."""

NETWORKING = "networking.gke.io/v1"


class GkeRdmaNodes(pulumi.ComponentResource):
    """The cluster objects for the nodes' additional network cards, on a cluster with multi-networking, and the DaemonSet that installs
    NCCL's plugin on the nodes.

    Pods name the Networks in an annotation. The DaemonSet is Google's, with two changes. The plugin's files are below the folder that GKE's
    device plugin mounts into every container with GPUs, so that pods need no host folders, which teams' namespaces reject. And a single
    image, of a fixed version, does everything. The DaemonSet is privileged and runs only on nodes with these GPUs, in kube-system, because
    only there GKE allows the priority that lets it start before the jobs. This component has not been deployed to a live cluster.
    """

    network_names: pulumi.Output[list[str]]
    """Names of the Networks for RDMA, known once they exist."""

    def __init__(self, name: str, args: GkeRdmaNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        if not args["accelerators"]:
            raise ValueError(f"GkeRdmaNodes {name}: accelerators (is empty): must be the GPUs of nodes with RDMA network cards; add one")
        super().__init__("flexspot:index:GkeRdmaNodes", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        rdma = rdma_network_names(args["rdma_networks"])
        made = [_network_objects(name, args, place, each, child) for place, each in enumerate([GVNIC_NETWORK, *rdma])]
        DaemonSet(
            f"{name}-installer",
            metadata=ObjectMetaArgs(name=INSTALLER, namespace="kube-system", labels=args["labels"]),
            spec=_installer(args),
            opts=child,
        )
        self.network_names = pulumi.Output.all(*(each.id for each in made)).apply(lambda _: rdma)
        publish(self)


def _network_objects(name: str, args: GkeRdmaNodesArgs, place: int, network: str, opts: pulumi.ResourceOptions) -> CustomResource:
    metadata = ObjectMetaArgs(name=network, labels=args["labels"])

    def at(names: list[str]) -> str:
        return names[place]

    parameters = CustomResource(
        f"{name}-{network}-parameters",
        api_version=NETWORKING,
        kind="GKENetworkParamSet",
        metadata=metadata,
        spec={
            "vpc": pulumi.Output.from_input(args["networks"]).apply(at),
            "vpcSubnet": pulumi.Output.from_input(args["subnetworks"]).apply(at),
            "deviceMode": "NetDevice" if network == GVNIC_NETWORK else "RDMA",
        },
        opts=opts,
    )
    return CustomResource(
        f"{name}-{network}",
        api_version=NETWORKING,
        kind="Network",
        metadata=metadata,
        spec={"type": "Device", "parametersRef": {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": network}},
        opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[parameters])),
    )


_MARTIANS = "for card in /proc/sys/net/ipv4/conf/gpu*rdma*/log_martians; do [ ! -e $card ] || echo 0 > $card; done"
"""Disable the kernel's log of martian packets, in which it would write millions of lines about RDMA's packets."""

_INSTALL = f"""set -ex
{_MARTIANS}
/scripts/container_entry.sh install --install-nccl
mkdir -p /host/lib64 /host/{GIB_FOLDER}
cp -r /var/lib/gib/lib64/. /host/lib64
cp -r /var/lib/gib/. /host/{GIB_FOLDER}
"""
"""Script that installs the plugin in the folder of the host that the device plugin mounts into containers."""

_PAUSE = "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"


def _installer(args: GkeRdmaNodesArgs) -> DaemonSetSpecArgs:
    selector = {"k8s-app": INSTALLER}
    kinds = NodeSelectorRequirementArgs(key=GKE_ACCELERATOR_LABEL, operator="In", values=sorted(args["accelerators"]))
    nodes = NodeSelectorArgs(node_selector_terms=[NodeSelectorTermArgs(match_expressions=[kinds])])
    return DaemonSetSpecArgs(
        selector=LabelSelectorArgs(match_labels=selector),
        template=PodTemplateSpecArgs(
            metadata=ObjectMetaArgs(labels={**args["labels"], **selector}),
            spec=PodSpecArgs(
                priority_class_name="system-node-critical",
                affinity=AffinityArgs(node_affinity=NodeAffinityArgs(required_during_scheduling_ignored_during_execution=nodes)),
                tolerations=[TolerationArgs(operator="Exists")],
                automount_service_account_token=False,
                # The node's own network, whose cards it configures.
                host_network=True,
                volumes=[VolumeArgs(name="libraries", host_path=HostPathVolumeSourceArgs(path=HOST_FOLDER, type="DirectoryOrCreate"))],
                init_containers=[
                    ContainerArgs(
                        name="installer",
                        image=gpudirect().installer.image,
                        command=["/bin/sh", "-c", _INSTALL],
                        resources=ResourceRequirementsArgs(requests={"cpu": "150m", "memory": "128Mi"}),
                        security_context=SecurityContextArgs(privileged=True),
                        volume_mounts=[VolumeMountArgs(name="libraries", mount_path="/host")],
                    )
                ],
                containers=[
                    ContainerArgs(
                        name="pause",
                        image=_PAUSE,
                        resources=ResourceRequirementsArgs(requests={"cpu": "10m", "memory": "16Mi"}, limits={"memory": "16Mi"}),
                    )
                ],
            ),
        ),
    )
