"""Network ranges and the way to the control plane. The ranges are checked against the plan and never resized."""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from capacity.catalog.data_files import DescribedRecord
from capacity.values.names import RESOURCE_NAME, SUBNET, VPC, Zone

if TYPE_CHECKING:
    from collections.abc import Iterable


def _is_a_range(written: str) -> str:
    if not re.fullmatch(r"\d+\.\d+\.\d+\.\d+/\d{1,2}", written):
        raise ValueError("is not an IPv4 range; it has four numbers and its size behind them, such as 10.0.0.0/20")
    try:
        IPv4Network(written)
    except ValueError as error:
        raise ValueError(f"is not an IPv4 range: {_inside(written)}; a range such as 10.0.0.0/20 begins at its first address") from error
    return written


def _inside(written: str) -> str:
    """The range that an address with a size is in, or that there is none."""
    try:
        return f"that address is inside {IPv4Interface(written).network}"
    except ValueError:
        return "a number in it is too large"


Range = Annotated[str, AfterValidator(_is_a_range)]
"""An IPv4 range in CIDR form, without host bits."""


WIDEST = 8
"""The shortest prefix from which an API server may be reached: that of the largest private networks."""


def too_wide(ranges: Iterable[str]) -> bool:
    """Whether one of some ranges is too much of the internet to let it reach an API server."""
    return any(IPv4Network(each).prefixlen < WIDEST for each in ranges)


CONTROL_PLANE_PREFIX = 28
"""The size of the range of a GKE control plane."""


def _is_a_control_planes(written: str) -> str:
    if IPv4Network(written).prefixlen != CONTROL_PLANE_PREFIX:
        raise ValueError(f"is not a /{CONTROL_PLANE_PREFIX}; GKE takes no other size of a control plane's range")
    return written


ControlPlaneRange = Annotated[Range, AfterValidator(_is_a_control_planes)]
"""The range of a GKE control plane: a /28."""

GPUDIRECT_PREFIXES = range(8, 21)
_SIXTEEN = 4
"""Bits of a sixteenth."""


def _can_be_divided(written: str) -> str:
    if IPv4Network(written).prefixlen not in GPUDIRECT_PREFIXES:
        raise ValueError(f"is not /{GPUDIRECT_PREFIXES[0]} to /{GPUDIRECT_PREFIXES[-1]}; each further network gets a sixteenth of it")
    return written


GpuDirectRange = Annotated[Range, AfterValidator(_can_be_divided)]
"""The range of the further networks of nodes."""


def gpudirect_ranges(written: str) -> list[str]:
    """The ranges of the further networks' subnetworks, in their order."""
    return [str(each) for each in IPv4Network(written).subnets(prefixlen_diff=_SIXTEEN)]


_PRIVATE = [IPv4Network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
_SERVICES = range(12, 25)

EKS_SERVICES = f"/{_SERVICES[0]} to /{_SERVICES[-1]} inside {', '.join(map(str, _PRIVATE))}"
"""The ranges that EKS takes for Services (API reference, KubernetesNetworkConfigRequest.serviceIpv4Cidr; read 2026-11-24)."""


def fits_eks_services(written: str) -> bool:
    """Whether EKS takes an IPv4 range for Services."""
    services = IPv4Network(written)
    return services.prefixlen in _SERVICES and any(services.subnet_of(each) for each in _PRIVATE)


def _is_for_eks_services(written: str) -> str:
    if not fits_eks_services(written):
        raise ValueError(f"is no range that EKS takes for Services; allowed is {EKS_SERVICES}")
    return written


EksServicesRange = Annotated[Range, AfterValidator(_is_for_eks_services)]
"""The range of the Services of an EKS cluster."""


def _are_networks_of_ones_own(ranges: tuple[str, ...]) -> tuple[str, ...]:
    if too_wide(ranges):
        raise ValueError(f"holds a range wider than /{WIDEST}, a good part of the internet; name the ranges of your runners")
    return ranges


RunnerRanges = Annotated[tuple[Range, ...], AfterValidator(_are_networks_of_ones_own)]
"""IPv4 ranges of the machines that run `up`."""

RangeName = Annotated[str, Field(pattern=RESOURCE_NAME)]
"""The name of a secondary range of a subnetwork."""


class Access(StrEnum):
    """How the API server is reached.

    PRIVATE: from inside the network alone, so `up` needs a runner there. DNS_IAM (GKE): from outside too, by its DNS endpoint,
    with Google's IAM in front. PUBLIC_CIDRS: from outside, from the ranges in `cidrs`.
    """

    PRIVATE = "private"
    DNS_IAM = "dns_iam"
    PUBLIC_CIDRS = "public_cidrs"


class ControlPlane(DescribedRecord):
    """How the API server is reached."""

    access: Access | None = None
    """`private`: from inside the network alone, so that `up` needs a runner there. `dns_iam` (GKE): from outside too, by its DNS name, with
    Google's IAM in front. `public_cidrs`: from outside, from `cidrs`. Default: `dns_iam` on GKE where the stack makes the network, in which
    no runner is yet; else `private`."""

    cidrs: tuple[Range, ...] = ()
    """IPv4 ranges from which the API server is reached, with `public_cidrs` and nothing else; the whole internet is not a range."""

    @model_validator(mode="after")
    def _ranges_belong_to_public_access(self) -> Self:
        if (self.access is Access.PUBLIC_CIDRS) != bool(self.cidrs):
            raise ValueError("access: public_cidrs needs cidrs, and no other access takes them")
        if too_wide(self.cidrs):
            raise ValueError(f"cidrs holds a range wider than /{WIDEST}, a good part of the internet; name the ranges of your own network")
        return self


class GkeNetwork(DescribedRecord):
    """The ranges of a GKE cluster, or a network that is there already."""

    nodes_cidr: Range = "10.0.0.0/20"
    """IPv4 range of the nodes, with an address for each."""

    pods_cidr: Range = "10.64.0.0/14"
    """IPv4 range of the pods, with a block for each node: of 256 addresses for 110 pods."""

    services_cidr: Range = "10.127.0.0/20"
    """IPv4 range of the Services."""

    control_plane_cidr: ControlPlaneRange = "172.16.0.0/28"
    """IPv4 range of the control plane, a /28."""

    gpudirect_cidr: GpuDirectRange = "192.168.0.0/16"
    """IPv4 range of the further networks of pools with `network: gpudirect`, /8 to /20: each of nine subnetworks gets a sixteenth."""

    max_pods_per_node: Annotated[int, Field(ge=8, le=256)] = 110
    """Pods of one node, at most; each node takes the next power of two above twice as many addresses."""

    existing_network: str | None = None
    """The name of a network that is there already; with existing_subnetwork. Default: one is made."""

    existing_subnetwork: str | None = None
    """The name of a subnetwork that is there already; with existing_network. Default: one is made."""

    pods_range: RangeName = "pods"
    """The name of the subnetwork's secondary range of the pods."""

    services_range: RangeName = "services"
    """The name of the subnetwork's secondary range of the Services."""

    runner_cidrs: RunnerRanges = ()
    """IPv4 ranges besides those of the cluster's nodes and pods from which the API server's private address is reached, from any region:
    of another subnetwork of the network or Shared VPC, or behind a VPN or Interconnect. Not with `dns_iam`, which has no address."""

    @model_validator(mode="after")
    def _existing_ones_go_together(self) -> Self:
        if (self.existing_network is None) != (self.existing_subnetwork is None):
            raise ValueError("existing_network and existing_subnetwork go together")
        return self


AWS_WIDEST, AWS_NARROWEST = 16, 28
"""Prefix lengths of a VPC and its subnets (Amazon VPC user guide, IP addressing)."""


EKS_ZONES = range(2, 7)
"""How many zones an EKS cluster has: subnets in two at least (EKS user guide, "View Amazon EKS networking requirements for VPC and
subnets"), and no region of AWS has more than six."""


CONTROL_PLANE_ZONES = 2
"""How many zones an EKS control plane's addresses are in, unless told otherwise: as many as EKS asks for, since none can change later."""

_CONTROL_PLANE_ADDRESSES = 16
"""Addresses of each range of an EKS control plane: a /28, dedicated to it (EKS user guide, "Cluster VPC and subnet considerations")."""


def control_plane_ranges(vpc_cidr: str, zones: int) -> list[str]:
    """The last ranges of a VPC, a /28 for each of some zones: for a control plane's addresses, where nobody says which."""
    end = int(IPv4Network(vpc_cidr).broadcast_address) + 1
    first = max(end - zones * _CONTROL_PLANE_ADDRESSES, 0)
    return [f"{IPv4Address(first + number * _CONTROL_PLANE_ADDRESSES)}/{AWS_NARROWEST}" for number in range(zones)]


class Nat(StrEnum):
    """How many NAT gateways an EKS network has. PER_ZONE survives the loss of a zone; SINGLE costs one."""

    PER_ZONE = "per-zone"
    SINGLE = "single"


class EksNetwork(DescribedRecord):
    """The ranges of an EKS cluster, or a VPC that is there already."""

    vpc_cidr: Range = "10.0.0.0/16"
    """IPv4 range of the VPC."""

    private_cidrs: tuple[Range, ...] = ("10.0.0.0/18", "10.0.64.0/18", "10.0.128.0/18")
    """IPv4 ranges of nodes and pods, one for each zone in the order of `zones`."""

    public_cidrs: tuple[Range, ...] = ("10.0.192.0/22", "10.0.196.0/22", "10.0.200.0/22")
    """IPv4 ranges of load balancers and NAT gateways, one for each zone in the order of `zones`."""

    control_plane_zones: tuple[Zone, ...] = ()
    """Zones of the control plane's own addresses, two or more. AWS never changes them for a cluster that is there: where `zones` changes
    in its first two, name here those that the cluster has. Default: the first two of `zones`."""

    control_plane_cidrs: tuple[Range, ...] = ()
    """IPv4 ranges of the control plane's own addresses, one for each of its zones. Default: the last of `vpc_cidr`, a /28 each."""

    services_cidr: EksServicesRange = "172.20.0.0/16"
    """IPv4 range of the Services: a /12 to a /24 of private addresses."""

    pods_per_node: Annotated[int, Field(ge=4, le=250)] = 32
    """Pods of a node to count addresses for: each takes one of its node's range. GPU nodes run few."""

    nat: Nat = Nat.PER_ZONE
    """`per-zone`: a NAT gateway in each zone. `single`: one for all, which costs less and is lost with its zone."""

    interface_endpoints: bool | None = None
    """Whether what nodes and Karpenter call of AWS is reached inside the VPC, by interface endpoints billed by the hour and zone, and not
    by the NAT. S3 has a gateway endpoint always, which costs nothing. Default: true in production alone."""

    existing_vpc: Annotated[str, Field(pattern=VPC)] | None = None
    """The id of a VPC that is there already; with existing_private_subnets. Default: one is made."""

    existing_private_subnets: tuple[Annotated[str, Field(pattern=SUBNET)], ...] = ()
    """Ids of its private subnets, in the order of `zones`."""

    existing_control_plane_subnets: tuple[Annotated[str, Field(pattern=SUBNET)], ...] = ()
    """Ids of its subnets for the control plane's own addresses, in two zones or more, which AWS never changes for a cluster that is
    there. Default: the first two of existing_private_subnets."""

    runner_cidrs: RunnerRanges = ()
    """IPv4 ranges outside the VPC, such as a peered network, from which the private API server is reached."""

    @model_validator(mode="after")
    def _existing_ones_go_together(self) -> Self:
        if (self.existing_vpc is None) != (not self.existing_private_subnets):
            raise ValueError("existing_vpc and existing_private_subnets go together")
        if self.existing_control_plane_subnets and self.existing_vpc is None:
            raise ValueError("existing_control_plane_subnets are of existing_vpc, which is not there")
        if len(self.existing_control_plane_subnets) == 1:
            raise ValueError("existing_control_plane_subnets is one subnet; EKS needs two, in two zones")
        return self

    @model_validator(mode="after")
    def _sizes_are_what_aws_takes(self) -> Self:
        for name in ("vpc_cidr", "private_cidrs", "public_cidrs", "control_plane_cidrs"):
            written: str | tuple[str, ...] = getattr(self, name)
            for each in (written,) if isinstance(written, str) else written:
                if not AWS_WIDEST <= IPv4Network(each).prefixlen <= AWS_NARROWEST:
                    raise ValueError(f"{name} {each} is not between /{AWS_WIDEST} and /{AWS_NARROWEST}, which is what AWS takes")
        return self
