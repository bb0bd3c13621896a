"""Network ranges, access to the control plane, and full names of networks. Ranges are checked against the plan and never resized."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from flexspot.capacity.catalog.data_files import DescribedRecord
from flexspot.capacity.values.names import RESOURCE_NAME, SUBNET, VPC, Zone

if TYPE_CHECKING:
    from collections.abc import Iterable


def _ipv4_range(written: str) -> str:
    if not re.fullmatch(r"\d+\.\d+\.\d+\.\d+/\d{1,2}", written):
        raise ValueError("is not an IPv4 range; write four numbers and a prefix length, such as 10.0.0.0/20")
    try:
        IPv4Network(written)
    except ValueError as error:
        raise ValueError(f"is not an IPv4 range: {_where(written)}; write the first address of the range, as in 10.0.0.0/20") from error
    return written


def _where(written: str) -> str:
    """Return a phrase with the range that contains an address, or the reason that none does."""
    try:
        return f"that address is inside {IPv4Interface(written).network}"
    except ValueError:
        return "a number in it is too large"


Range = Annotated[str, AfterValidator(_ipv4_range)]
"""An IPv4 range in CIDR form, without host bits."""


WIDEST = 8
"""Shortest prefix of a range that may reach an API server: that of the largest private network."""


def too_wide(ranges: Iterable[str]) -> bool:
    """Return whether a range is wider than WIDEST, which would let a large part of the internet reach an API server."""
    return any(IPv4Network(each).prefixlen < WIDEST for each in ranges)


CONTROL_PLANE_PREFIX = 28
"""Prefix length of the range of a GKE control plane."""


def _control_plane_size(written: str) -> str:
    if IPv4Network(written).prefixlen != CONTROL_PLANE_PREFIX:
        raise ValueError(f"must be a /{CONTROL_PLANE_PREFIX}; GKE accepts no other size for a control plane's range")
    return written


ControlPlaneRange = Annotated[Range, AfterValidator(_control_plane_size)]
"""Range of a GKE control plane: a /28."""

GPUDIRECT_PREFIXES = range(8, 21)
_SIXTEEN = 4
"""Bits by which the prefix of a sixteenth is longer."""


def _gpudirect_size(written: str) -> str:
    if IPv4Network(written).prefixlen not in GPUDIRECT_PREFIXES:
        raise ValueError(f"must be /{GPUDIRECT_PREFIXES[0]} to /{GPUDIRECT_PREFIXES[-1]}; each additional network gets a sixteenth of it")
    return written


GpuDirectRange = Annotated[Range, AfterValidator(_gpudirect_size)]
"""Range of the additional networks of nodes."""


def gpudirect_ranges(written: str) -> list[str]:
    """Return the ranges of the subnetworks of the additional networks, in their order."""
    return [str(each) for each in IPv4Network(written).subnets(prefixlen_diff=_SIXTEEN)]


_PRIVATE = [IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
_SERVICES = range(12, 25)

EKS_SERVICES = f"/{_SERVICES[0]} to /{_SERVICES[-1]} inside {', '.join(map(str, _PRIVATE))}"
"""Ranges that EKS accepts for Services (API reference, KubernetesNetworkConfigRequest.serviceIpv4Cidr; read 2026-11-24)."""


def fits_eks_services(written: str) -> bool:
    """Return whether EKS accepts an IPv4 range for Services."""
    services = IPv4Network(written)
    return services.prefixlen in _SERVICES and any(services.subnet_of(each) for each in _PRIVATE)


def _eks_services_range(written: str) -> str:
    if not fits_eks_services(written):
        raise ValueError(f"is not a range that EKS accepts for Services; allowed: {EKS_SERVICES}")
    return written


EksServicesRange = Annotated[Range, AfterValidator(_eks_services_range)]
"""Range of the Services of an EKS cluster."""


def _not_too_wide(ranges: tuple[str, ...]) -> tuple[str, ...]:
    if too_wide(ranges):
        raise ValueError(f"has a range wider than /{WIDEST}, a large part of the internet; name the ranges of your runners")
    return ranges


RunnerRanges = Annotated[tuple[Range, ...], AfterValidator(_not_too_wide)]
"""IPv4 ranges of the machines that run `up`."""

RangeName = Annotated[str, Field(pattern=RESOURCE_NAME)]
"""Name of a secondary range of a subnetwork."""


class Access(StrEnum):
    """Access to the API server.

    PRIVATE: only from inside the network, so `up` needs a runner there. DNS_IAM (GKE): also from outside, by its DNS endpoint, protected by
    Google's IAM. PUBLIC_CIDRS: from outside, from the ranges in `cidrs`.
    """

    PRIVATE = "private"
    DNS_IAM = "dns_iam"
    PUBLIC_CIDRS = "public_cidrs"


class ControlPlane(DescribedRecord):
    """The ways to reach the API server."""

    access: Access | None = None
    """`private`: only from inside the network, so `up` needs a runner there. `dns_iam` (GKE): also from outside, by its DNS name,
    protected by Google's IAM. `public_cidrs`: from outside, from `cidrs`. Default: `dns_iam` on GKE if the stack creates the network,
    which has no runner yet; otherwise `private`."""

    cidrs: tuple[Range, ...] = ()
    """IPv4 ranges from which the API server is reachable; only with `public_cidrs`, which requires them. The whole internet is not
    allowed."""

    @model_validator(mode="after")
    def _ranges_belong_to_public_access(self) -> Self:
        if (self.access is Access.PUBLIC_CIDRS) != bool(self.cidrs):
            raise ValueError(
                "access: public_cidrs needs cidrs, and no other access accepts them; name ranges of your own network, or leave cidrs out"
            )
        if too_wide(self.cidrs):
            raise ValueError(f"cidrs has a range wider than /{WIDEST}, a large part of the internet; name the ranges of your own network")
        return self


class GkeNetworkSettings(DescribedRecord):
    """The IP ranges of a GKE cluster, or an existing network."""

    nodes_cidr: Range = "10.0.0.0/20"
    """IPv4 range of the nodes, one address per node."""

    pods_cidr: Range = "10.64.0.0/14"
    """IPv4 range of the pods. Each node takes a block: 256 addresses for 110 pods."""

    services_cidr: Range = "10.127.0.0/20"
    """IPv4 range of the Services."""

    control_plane_cidr: ControlPlaneRange = "172.16.0.0/28"
    """IPv4 range of the control plane, a /28."""

    gpudirect_cidr: GpuDirectRange = "192.168.0.0/16"
    """IPv4 range of the additional networks of pools with `network: gpudirect`, /8 to /20. Each of nine subnetworks gets a sixteenth of
    it."""

    max_pods_per_node: Annotated[int, Field(ge=8, le=256)] = 110
    """Maximum pods per node. Each node takes at least twice as many addresses, rounded up to a power of two."""

    existing_network: str | None = None
    """Name of an existing network; requires existing_subnetwork. Default: a new network is created."""

    existing_subnetwork: str | None = None
    """Name of an existing subnetwork; requires existing_network. Default: a new subnetwork is created."""

    pods_range: RangeName = "pods"
    """Name of the subnetwork's secondary range for pods."""

    services_range: RangeName = "services"
    """Name of the subnetwork's secondary range for Services."""

    runner_cidrs: RunnerRanges = ()
    """IPv4 ranges, in addition to the cluster's nodes and pods, that may reach the API server's private address from any region: another
    subnetwork of the network or Shared VPC, or networks behind a VPN or Interconnect. Not with `dns_iam`, which has no such address."""

    @model_validator(mode="after")
    def _existing_parts_are_complete(self) -> Self:
        if (self.existing_network is None) != (self.existing_subnetwork is None):
            raise ValueError("existing_network and existing_subnetwork need each other; set both, or leave both out")
        return self


AWS_WIDEST, AWS_NARROWEST = 16, 28
"""Prefix lengths of a VPC and its subnets (Amazon VPC user guide, IP addressing)."""


EKS_ZONES = range(2, 7)
"""Numbers of zones that an EKS cluster can have. EKS requires subnets in at least two (EKS user guide, "View Amazon EKS networking
requirements for VPC and subnets"), and no region of AWS has more than six."""


CONTROL_PLANE_ZONES = 2
"""Default number of zones of an EKS control plane's addresses: the minimum of EKS, since none can change later."""

_CONTROL_PLANE_ADDRESSES = 16
"""Addresses in each range of an EKS control plane: a /28, dedicated to it (EKS user guide, "Cluster VPC and subnet considerations")."""


def control_plane_ranges(vpc_cidr: str, zones: int) -> list[str]:
    """Return the default ranges of a control plane's addresses: the last ones of the VPC, a /28 for each zone."""
    end = int(IPv4Network(vpc_cidr).broadcast_address) + 1
    first = max(end - zones * _CONTROL_PLANE_ADDRESSES, 0)
    return [f"{IPv4Address(first + number * _CONTROL_PLANE_ADDRESSES)}/{AWS_NARROWEST}" for number in range(zones)]


class Nat(StrEnum):
    """Number of NAT gateways of an EKS network. PER_ZONE survives the loss of a zone; SINGLE costs less."""

    PER_ZONE = "per-zone"
    SINGLE = "single"


class EksNetworkSettings(DescribedRecord):
    """The IP ranges of an EKS cluster, or an existing VPC."""

    vpc_cidr: Range = "10.0.0.0/16"
    """IPv4 range of the VPC."""

    private_cidrs: tuple[Range, ...] = ("10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18")
    """IPv4 ranges of nodes and pods, one per zone in the order of `zones`."""

    public_cidrs: tuple[Range, ...] = ("10.0.192.0/22", "10.0.196.0/22", "10.0.200.0/22")
    """IPv4 ranges of load balancers and NAT gateways, one per zone in the order of `zones`."""

    control_plane_zones: tuple[Zone, ...] = ()
    """Zones of the control plane's own addresses, two or more. AWS never changes them on an existing cluster: if you change the first
    two of `zones`, list here the zones that the cluster has. Default: the first two of `zones`."""

    control_plane_cidrs: tuple[Range, ...] = ()
    """IPv4 ranges of the control plane's own addresses, one per control plane zone. Default: the last ranges of `vpc_cidr`, a /28 each."""

    services_cidr: EksServicesRange = "172.20.0.0/16"
    """IPv4 range of the Services: /12 to /24, in private address space."""

    pods_per_node: Annotated[int, Field(ge=4, le=250)] = 32
    """Pods per node to plan addresses for: each pod takes one from its node's range. GPU nodes run few pods."""

    nat: Nat = Nat.PER_ZONE
    """`per-zone`: one NAT gateway in each zone. `single`: one for all zones, which costs less but fails with its zone."""

    interface_endpoints: bool | None = None
    """Create interface endpoints, by which nodes and Karpenter reach AWS services inside the VPC instead of through NAT. They are billed
    per hour and zone. S3 always has a gateway endpoint, which is free. Default: true only in production."""

    existing_vpc: Annotated[str, Field(pattern=VPC)] | None = None
    """Id of an existing VPC; requires existing_private_subnets. Default: a new VPC is created."""

    existing_private_subnets: tuple[Annotated[str, Field(pattern=SUBNET)], ...] = ()
    """Ids of the VPC's private subnets, in the order of `zones`."""

    existing_control_plane_subnets: tuple[Annotated[str, Field(pattern=SUBNET)], ...] = ()
    """Ids of the VPC's subnets for the control plane's own addresses, in at least two zones. AWS never changes them on an existing
    cluster. Default: the first two of existing_private_subnets."""

    runner_cidrs: RunnerRanges = ()
    """IPv4 ranges outside the VPC, such as a peered network, that may reach the private API server."""

    @model_validator(mode="after")
    def _existing_parts_are_complete(self) -> Self:
        if (self.existing_vpc is None) != (not self.existing_private_subnets):
            raise ValueError("existing_vpc and existing_private_subnets need each other; set both, or leave both out")
        if self.existing_control_plane_subnets and self.existing_vpc is None:
            raise ValueError("existing_control_plane_subnets needs existing_vpc; set it, or leave both out")
        if len(self.existing_control_plane_subnets) == 1:
            raise ValueError("existing_control_plane_subnets has one subnet, but EKS needs two; name two in different zones")
        return self

    @model_validator(mode="after")
    def _aws_accepts_the_sizes(self) -> Self:
        for name in ("vpc_cidr", "private_cidrs", "public_cidrs", "control_plane_cidrs"):
            written: str | tuple[str, ...] = getattr(self, name)
            for each in (written,) if isinstance(written, str) else written:
                if not AWS_WIDEST <= IPv4Network(each).prefixlen <= AWS_NARROWEST:
                    raise ValueError(f"{name} {each} must be between /{AWS_WIDEST} and /{AWS_NARROWEST}, the sizes that AWS accepts")
        return self


_FULL = re.compile(
    r"(?:https://[^/]+/compute/[^/]+/)?projects/(?P<project>[^/]+)/(?:regions/(?P<region>[^/]+)/subnetworks|global/networks)/(?P<name>[^/]+)"
)


@dataclass(frozen=True)
class NetworkName:
    """Full name of a network or a subnetwork."""

    project: str
    region: str | None
    """None: it is a network."""
    name: str


def full_name(written: str) -> NetworkName | None:
    """Parse a full name or its address. Return None for a short name, which is in the stack's own project and region."""
    match = _FULL.fullmatch(written)
    return None if match is None else NetworkName(match["project"], match["region"], match["name"])
